"""BatchBALD of candidates in shards, by merging upper bounds of gains.

Each shard keeps an upper bound of the gain of every candidate. For a pick, all shards are told the configurations of
the labels picked so far. Each works out the gains of its few most promising candidates, and returns the best of them
and what no gain of it is above. Only shards that can have a larger gain than the best one so far go on. At the end, the
shards that can tie with the best gain say which of their candidates do.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from suffice.acquisition.batchbald import NEGLIGIBLE, ROUNDING, TIE, BatchBALD, Configurations, Search, checked_options
from suffice.acquisition.candidates import candidates
from suffice.acquisition.scores import Indices
from suffice.errors import InvalidValueError
from suffice.models.threads import one_thread
from suffice.numerics.special_functions import Floats

_Calls = Sequence[tuple[str, tuple[Any, ...]]]


class CandidateShards(Protocol):
    """Where the shards are; :class:`suffice.engines.sharded_pool.Shards` is one."""

    def __len__(self) -> int:
        """Number of shards."""

    def ask(self, method: str, *arguments: Any, which: Sequence[int] | None = None, repeat: _Calls = ()) -> list[Any]:
        """Call a method of some shards; one that is made again repeats the calls in ``repeat``."""


class Promise(NamedTuple):
    """What a shard knows of its gains.

    Attributes:
        best: The best gain that was worked out.
        most: What no gain is above.
    """

    best: float
    most: float


@dataclass(frozen=True, eq=False)
class Winner:
    """A candidate that ties with the best gain.

    Attributes:
        index: Its number among all candidates.
        gain: Its gain.
        probabilities: Of its label under each sample, ``K x C``.
    """

    index: int
    gain: float
    probabilities: Floats

    @property
    def nbytes(self) -> int:
        """Bytes of the array."""
        return self.probabilities.nbytes


class BatchShard:
    """A part of the candidates.

    Args:
        start: Number of its first candidate among all.
        probs: Probabilities of the classes, ``N x K x C``: an array or a tensor.
        prior: Nothing is needed.
    """

    def __init__(self, start: int, probs: Any, prior: Any = None) -> None:
        del prior
        self._start, self._pool = start, candidates(probs)
        if not self._pool.shape[0]:
            raise InvalidValueError("probs: every shard must hold at least one candidate, and one holds none")
        with one_thread():
            self._search = Search(self._pool, lazy=True)

    def shape(self) -> tuple[int, int, int]:
        """Candidates, samples and classes."""
        return self._pool.shape

    def promise(self) -> Promise:
        """What is known of the gains."""
        return Promise(self._search.best, self._search.most)

    def take(self, indices: Indices) -> None:
        """Leave candidates out, by their number among all."""
        inside = (indices >= self._start) & (indices < self._start + self._pool.shape[0])
        self._search.leave_out(indices[inside] - self._start)

    def open(self, rows: Floats, exact: bool, taken: Indices) -> Promise:
        """Look at the most promising candidates next to a batch.

        Args:
            rows: Configurations of the labels of the batch, ``S x K``.
            exact: Whether none was left to chance.
            taken: Candidates to leave out.
        """
        self.take(taken)
        with one_thread():
            self._search.open(Configurations(rows, exact))
        return self.promise()

    def close(self, best: float) -> Promise:
        """Find the best gain, if it is above the one that another shard has found."""
        with one_thread():
            self._search.close(best)
        return self.promise()

    def winner(self, best: float) -> Winner | None:
        """The lowest index whose gain ties with the best one of all shards; None if no gain here does."""
        with one_thread():
            index = self._search.settle_ties(best)
        if index is None:
            return None
        return Winner(index + self._start, self._search.gain(index), self._pool.one(index))

    def rest(self, count: int) -> Indices:
        """The first candidates that are not taken."""
        return np.array(self._search.rest(count), dtype=np.intp) + self._start

    def counts(self) -> tuple[int, int]:
        """How many gains were worked out, and how many times a gain was bounded instead."""
        return self._search.evaluated, self._search.bounded


def batchbald_over(
    shards: CandidateShards,
    batch_size: int,
    *,
    configurations: int = 100_000,
    seed: int | np.random.Generator = 0,
) -> BatchBALD:
    """Choose the batch of :func:`suffice.acquisition.batchbald` from candidates in shards.

    The picks are those of all candidates in one place, including ties. At most three exchanges make a pick. The largest
    message holds the configurations, ``8 K configurations / C`` bytes at most.

    Args:
        shards: Shards of the class :class:`BatchShard`.
        batch_size: How many to choose, at most the number of candidates.
        configurations: As for :func:`~suffice.acquisition.batchbald`.
        seed: Of the draws, or what makes them.

    Raises:
        InvalidValueError: A number is out of its range, or the shards have other numbers of samples or classes.

    Examples:
        >>> from suffice.engines.sharded_pool import LocalShards
        >>> heads = np.array([[1.0, 1.0, 0.0, 0.0], [1.0, 1.0, 0.0, 0.0], [0.95, 0.05, 0.95, 0.05]])
        >>> probs = np.stack([heads, 1.0 - heads], axis=2)
        >>> batchbald_over(LocalShards([probs[:1], probs[1:]], None, BatchShard), 2).indices
        array([0, 2])
    """
    shapes = shards.ask("shape")
    if len({shape[1:] for shape in shapes}) != 1:
        raise InvalidValueError(
            f"probs must have as many samples and classes in every shard, and their shapes are {shapes}"
        )
    samples, classes = shapes[0][1:]
    whole = sum(shape[0] for shape in shapes), samples, classes
    batch_size, rng = checked_options(whole, batch_size, configurations, seed)
    picks, exact, labels = [_winner(shards, shards.ask("promise"), ())], 1, Configurations.of_nothing(samples)
    indices, gains = [picks[0].index], [picks[0].gain]
    while len(indices) < batch_size:
        labels = labels.joined(
            picks[-1].probabilities,
            most=configurations // classes,
            negligible=NEGLIGIBLE / batch_size,
            rng=rng,
        )
        exact += labels.exact
        taken = np.array(indices, dtype=np.intp)
        if labels.doubt() <= TIE:
            # No label can tell more than is left to know: the rest are ties.
            count = batch_size - len(indices)
            shards.ask("take", taken, repeat=[("take", (taken,))])
            rest = np.concatenate(shards.ask("rest", count, repeat=[("take", (taken,))]))[:count]
            indices += rest.tolist()
            gains += [0.0] * len(rest)
            exact += (len(rest) - 1) * labels.exact
            break
        repeat = [("open", (labels.rows, labels.exact, taken))]
        promises = shards.ask("open", labels.rows, labels.exact, taken, repeat=repeat)
        best = max(each.best for each in promises)
        open_yet = [k for k, each in enumerate(promises) if each.most > max(best, TIE)]
        if open_yet:
            for k, found in zip(open_yet, shards.ask("close", best, which=open_yet, repeat=repeat), strict=True):
                promises[k] = found
        picks.append(_winner(shards, promises, repeat))
        indices.append(picks[-1].index)
        gains.append(picks[-1].gain)
    counts = np.sum(shards.ask("counts"), axis=0)
    return BatchBALD(np.array(indices, dtype=np.intp), np.array(gains), exact, int(counts[0]), int(counts[1]))


def _winner(shards: CandidateShards, promises: Sequence[Promise], repeat: _Calls) -> Winner:
    """The candidate of the best gain of all shards; ties go to the lowest index."""
    best = max(each.best for each in promises)
    near = [k for k, each in enumerate(promises) if each.most >= best - TIE - ROUNDING]
    answers: list[Winner | None] = shards.ask("winner", best, which=near, repeat=repeat)
    found = [each for each in answers if each is not None]
    return min(found, key=lambda each: each.index)
