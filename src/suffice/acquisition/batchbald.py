"""BatchBALD: the batch of labels that together carry the most information about the parameters.

For candidates in shards, upper bounds of gains are merged. Each shard keeps an upper bound of the gain of every
candidate. For a pick, all shards receive the configurations of the labels picked so far. Each computes the gains of its
few most promising candidates, and returns the best of them and an upper bound on all its gains. Only shards that can
have a larger gain than the best one so far continue. At the end, the shards that can tie with the best gain return the
candidates that tie with it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol

import numpy as np

from suffice.acquisition.scores import TINY, Candidates, Indices, Weights, candidates, plogp
from suffice.arguments import whole
from suffice.errors import InvalidValueError
from suffice.models.threads import one_thread
from suffice.numerics import Floats

# Share of the average importance that is added to the importance of each unit of mass when configurations are drawn.
# Otherwise a configuration whose posterior has almost no entropy would be drawn rarely, with a very large weight.
_DEFENSIVE: Final = 0.1
# Sizes of merged sets: the smallest, and the factor from one to the next.
_LEAST_MERGED: Final = 32
_GROWTH: Final = 4


@dataclass(frozen=True)
class Configurations:
    """Configurations of the labels of some picks.

    Attributes:
        rows: Weight of configuration and sample together, ``S x K``; masses are above 0.
        exact: Whether no configuration was drawn at random.

    Examples:
        >>> pick, rng = np.array([[0.9, 0.1], [0.2, 0.8]]), np.random.default_rng(0)
        >>> Configurations.of_nothing(2).joined(pick, most=100, negligible=0.0, rng=rng).rows.round(2)
        array([[0.45, 0.1 ],
               [0.05, 0.4 ]])
    """

    rows: Floats
    exact: bool = True

    @classmethod
    def of_nothing(cls, samples: int) -> "Configurations":
        """The one configuration of no labels."""
        return cls(np.full((1, samples), 1.0 / samples))

    def joined(self, pick: Floats, *, most: int, negligible: float, rng: np.random.Generator) -> "Configurations":
        """Return the configurations with one more label, at most ``most`` of them.

        Configurations whose total contribution is at most ``negligible`` nats are left out. If more than ``most``
        remain, the most important ones are kept and the others are drawn at random, so that all weights are unbiased.

        Args:
            pick: Probabilities of the label under each sample, ``K x C``.
            most: Largest number of configurations.
            negligible: Largest total contribution of those left out, in nats.
            rng: Random generator.

        Reference: [FearnheadClifford2003], for the draws.
        """
        mass = self.rows @ pick
        # Mass times entropy of the posterior, by m log m - sum_k w log w with w = W p: no S C x K array is needed.
        doubt = plogp(mass) - plogp(self.rows) @ pick - self.rows @ plogp(pick)
        worth = np.maximum(np.minimum(doubt, mass * np.log(pick.shape[1])), 0.0).ravel()
        ordered = np.sort(worth)
        lost = int(np.searchsorted(np.cumsum(ordered), negligible, side="right"))
        if lost == len(ordered):
            return Configurations(self.rows[:0], self.exact)
        relevant = np.flatnonzero((worth >= ordered[lost]) & (mass.ravel() > 0.0))
        if len(relevant) <= most:
            return Configurations(self._children(relevant, pick), self.exact)
        masses, worths = mass.ravel()[relevant], worth[relevant]
        chances = worths + _DEFENSIVE * masses * (worths.sum() / masses.sum())
        drawn, factors = resampled(chances, most, rng)
        return Configurations(self._children(relevant[drawn], pick) * factors[:, None], exact=False)

    def _children(self, which: Indices, pick: Floats) -> Floats:
        parents, labels = np.divmod(which, pick.shape[1])
        return np.asarray(self.rows[parents] * pick.T[labels])

    def doubt(self) -> float:
        """Remaining entropy of the samples given the labels, ``H[w | y]``, in nats."""
        return max(float(plogp(self.rows.sum(axis=1)).sum() - plogp(self.rows).sum()), 0.0)

    def merged(self) -> list[Floats]:
        """Return merged configurations in increasing numbers, ``G x K`` each; none if there are few configurations.

        Configurations with the same likeliest sample, or the same two likeliest samples, are merged. Those with the
        largest loss are not merged. The loss is mass times divergence from the posterior of all configurations with the
        same likeliest sample.
        """
        count, samples = self.rows.shape
        size, sets = max(_LEAST_MERGED, samples + samples // 2), []
        if 2 * size > count:
            return []
        first = self.rows.argmax(axis=1)
        others = self.rows.copy()
        np.put_along_axis(others, first[:, None], -1.0, axis=1)
        _, pair = np.unique(first * samples + others.argmax(axis=1), return_inverse=True)
        loss = _loss(self.rows, first)
        worst, dearest = np.argsort(-loss, kind="stable"), np.argsort(-np.bincount(pair, loss), kind="stable")
        while 2 * size <= count:
            # Numbers of groups: samples first, then pairs of them, then single configurations.
            room = size - samples
            taken = dearest[: room // 2]
            alone = worst[: room - len(taken)]
            groups = np.where(np.isin(pair, taken), samples + pair, first)
            groups[alone] = samples + len(dearest) + np.arange(len(alone))
            sets.append(_summed(self.rows, groups))
            size *= _GROWTH
        return sets


def resampled(chances: Floats, size: int, rng: np.random.Generator) -> tuple[Indices, Floats]:
    r"""Choose about ``size`` of more items, each with a factor that is 1 on average over the draws.

    With :math:`\kappa` such that :math:`\sum_i \min(1, c_i / \kappa)` is ``size``, items of
    :math:`c_i \ge \kappa` are kept, with factor 1. The others are placed on a line as intervals of length :math:`c_i`,
    and one is drawn in every section of length :math:`\kappa`, with factor :math:`\kappa / c_i`.

    Deviation: the draws of the paper share one random number; here each section has its own, because the order of the
    configurations is periodic, and equal steps could coincide with the period.

    Args:
        chances: ``c``, above 0.
        size: Number of items to choose, below the number of items.
        rng: Random generator.

    Returns:
        Indices in increasing order, and factors.

    Reference: [FearnheadClifford2003], the optimal resampling.

    Examples:
        >>> items, factors = resampled(np.array([8.0, 1.0, 1.0, 1.0, 1.0]), 3, np.random.default_rng(0))
        >>> items, factors
        (array([0, 2, 3]), array([1., 2., 2.]))
    """
    ordered = np.sort(chances)[::-1]
    after = np.cumsum(ordered[:0:-1])[::-1][:size]
    # c_i (size - i) < c_i + c_(i+1) + ...: from here on, chances are below kappa.
    first = int(np.argmax(ordered[:size] * np.arange(size - 1, -1, -1) < after))
    light = np.flatnonzero(chances <= ordered[first])
    drawing = size - (len(chances) - len(light))
    ends = np.cumsum(chances[light])
    points = (np.arange(drawing) + rng.random(drawing)) * (ends[-1] / drawing)
    times = np.bincount(np.searchsorted(ends[:-1], points, side="right"), minlength=len(light))
    factors = np.ones(len(chances))
    factors[light] = times * (ends[-1] / drawing) / chances[light]
    chosen = np.flatnonzero(factors)
    return chosen, factors[chosen]


def _loss(rows: Floats, groups: Indices) -> Floats:
    """Mass of each configuration times the divergence of its posterior from that of its group, numbered by sample."""
    sums = np.zeros((rows.shape[1], rows.shape[1]))
    np.add.at(sums, groups, rows)
    shares = sums / np.maximum(sums.sum(axis=1, keepdims=True), TINY)
    return np.asarray(
        plogp(rows).sum(axis=1) - plogp(rows.sum(axis=1)) - (rows * np.log(shares + TINY)[groups]).sum(axis=1)
    )


def _summed(rows: Floats, groups: Indices) -> Floats:
    order = np.argsort(groups, kind="stable")
    starts = np.flatnonzero(np.diff(groups[order], prepend=-1))
    return np.asarray(np.add.reduceat(rows[order], starts, axis=0))


#: Gains in nats that differ by no more than this count as equal: rounding is a thousand times smaller.
TIE: Final = 1e-10
#: Largest rounding error of a gain and its bound together.
ROUNDING: Final = 1e-12
# Number of candidates that are bounded first, and number of these whose gains are computed, to get a first best gain.
_HEAD, _FEW = 256, 4
# Number of candidates bounded at a time, and the share of the total work after which unsuccessful bounding ends.
_PIECE, _WASTE = 1024, 0.01


class CandidateGains:
    """The gain of every candidate given a batch: an upper bound, and the gain itself if it was computed.

    Args:
        pool: The candidates.

    Attributes:
        evaluated: Number of gains that were computed.
        bounded: Number of times that a gain was only bounded.
        best: The best gain so far, which may be of another shard.
    """

    def __init__(self, pool: Candidates) -> None:
        self.evaluated, self.bounded = pool.shape[0], 0
        self._pool = pool
        self._alone = pool.bald()
        self._bound = self._alone.copy()
        self._gain = self._alone.copy()
        self._free = np.ones(pool.shape[0], dtype=bool)
        self.best = float(self._gain.max())

    def gain(self, index: int) -> float:
        """Return the gain of a candidate for which it was computed."""
        return float(self._gain[index])

    def largest_bound(self) -> float:
        """Upper bound on all gains."""
        return float(self._bound[self._free].max(initial=-np.inf))

    def free(self) -> Indices:
        """Candidates that are not left out."""
        return np.flatnonzero(self._free)

    def leave_out(self, indices: Any) -> None:
        """Leave candidates out from now on."""
        self._free[indices] = False

    def forget(self) -> None:
        """Forget all gains, because the batch has changed; bounds stay."""
        self.best = -np.inf
        self._gain.fill(-np.inf)

    def renew_bounds(self, configurations: Configurations) -> None:
        """Update the bounds for new configurations.

        A gain does not grow with the batch, so earlier bounds remain valid for exact gains, but not for estimates from
        newly drawn configurations. Merged into one configuration, these have at most ``K max_k v_k`` times the uniform
        share ``1/K`` of any sample. So the gain of an item without a batch, times this number, is a bound. No gain
        exceeds the remaining entropy.
        """
        if not configurations.exact:
            share = configurations.rows.sum(axis=0).max(initial=0.0) * configurations.rows.shape[1]
            self._bound = self._alone * share
        np.minimum(self._bound, configurations.doubt(), out=self._bound)

    def lower_bounds(self, which: Indices, merged: Weights) -> None:
        """Bound the gains of some candidates by merged configurations."""
        self.bounded += len(which)
        self._bound[which] = np.minimum(self._bound[which], self._pool.information(which, merged))

    def compute(self, which: Indices, full: Weights) -> None:
        """Compute the gains of some candidates by all configurations."""
        self.evaluated += len(which)
        gains = self._pool.information(which, full)
        self._gain[which] = gains
        self._bound[which] = np.minimum(self._bound[which], gains)
        self.best = max(self.best, float(gains.max(initial=-np.inf)))

    def rivals(self, which: Indices) -> Indices:
        """Return candidates without a computed gain that may exceed the best; none if all bounds are ties with 0."""
        return which[(self._bound[which] > max(self.best, TIE)) & np.isneginf(self._gain[which])]

    def possible_ties(self, which: Indices) -> Indices:
        """Return candidates with a lower index than the winner whose bound allows a tie with the best gain."""
        near = self._bound[which] >= self.best - TIE - ROUNDING
        return which[near & (which < self.winner())]

    def without_gain(self) -> Indices:
        """Candidates that are not left out and whose gain was not computed."""
        free = self.free()
        return free[np.isneginf(self._gain[free])]

    def winner(self) -> int:
        """The lowest index of a best gain so far; the number of candidates if there is none yet."""
        if np.isneginf(self.best):
            return len(self._gain)
        ties = self._gain >= self.best - TIE
        first = int(np.argmax(ties))
        return first if ties[first] else len(self._gain)

    def by_bound(self, which: Indices) -> Indices:
        """Candidates by falling bound."""
        return which[np.argsort(-self._bound[which], kind="stable")]

    def most_promising(self, which: Indices, count: int) -> Indices:
        """The candidates of the largest bounds, in no particular order."""
        return which if len(which) <= count else which[np.argpartition(-self._bound[which], count)[:count]]


class Search:
    """Finds the best gains given a batch, and computes a gain only if its bound does not exclude it.

    Args:
        pool: The candidates.
        lazy: If False, every gain is computed.

    Attributes:
        gains: Gains and bounds of all candidates.
    """

    def __init__(self, pool: Candidates, *, lazy: bool) -> None:
        self.gains = CandidateGains(pool)
        self._pool, self._lazy = pool, lazy
        # Configurations of the batch, and merged ones.
        self._full: Weights | None = None
        self._ladder: list[Weights] = []

    def take(self) -> tuple[int, float]:
        """Take the best candidate of the last search; ties go to the lowest index."""
        index = self.gains.winner()
        self.gains.leave_out(index)
        return index, self.gains.gain(index)

    def rest(self, count: int) -> list[int]:
        """Return the first candidates that are not taken, for picks without differences in gain."""
        return [int(index) for index in self.gains.free()[:count]]

    def look(self, configurations: Configurations) -> None:
        """Find the best gains given a batch whose labels have these configurations."""
        self.open(configurations)
        self.close()
        self.settle_ties()

    def open(self, configurations: Configurations) -> None:
        """Bound the gains given a batch, and compute those of the few most promising candidates."""
        gains, full = self.gains, self._pool.weights(configurations.rows)
        self._full, self._ladder = full, []
        gains.forget()
        if not self._lazy:
            gains.compute(gains.free(), full)
            return
        gains.renew_bounds(configurations)
        self._ladder = [self._pool.weights(rows) for rows in configurations.merged()]
        head = gains.most_promising(gains.rivals(gains.free()), _HEAD)
        if self._ladder:
            gains.lower_bounds(head, self._ladder[0])
        gains.compute(gains.by_bound(head)[:_FEW], full)

    def close(self, floor: float = -np.inf) -> None:
        """Find the best gain, if it is above the given one of another shard."""
        assert self._full is not None
        gains, full = self.gains, self._full
        gains.best = max(gains.best, floor)
        rivals = gains.rivals(gains.free())
        for step, weights in enumerate(self._ladder):
            above = self._ladder[step + 1] if step + 1 < len(self._ladder) else full
            rivals = self._narrowed(rivals, weights, _rows(above), _rows(full))
            gains.compute(gains.by_bound(rivals)[:_FEW], full)
        # Most promising candidates first, until no bound is above the best gain.
        order, size = gains.by_bound(gains.rivals(rivals)), _FEW
        while len(order):
            gains.compute(order[:size], full)
            order = gains.rivals(order[size:])
            size *= 2

    def settle_ties(self, floor: float = -np.inf) -> int | None:
        """Return the lowest index that ties with the best gain, which may be of another shard; None if none does."""
        gains = self.gains
        gains.best = max(gains.best, floor)
        if self._full is not None:
            # In the order of the indices, until one ties.
            order, size = gains.without_gain(), 1
            while len(order):
                order = gains.possible_ties(order)
                gains.compute(order[:size], self._full)
                order, size = order[size:], 2 * size
        winner = gains.winner()
        return winner if winner < self._pool.shape[0] else None

    def _narrowed(self, rivals: Indices, weights: Weights, above: int, full: int) -> Indices:
        """Lower the bounds by merged configurations, most promising candidates first, as long as that saves work."""
        gains = self.gains
        order = gains.by_bound(rivals)
        wasted = 0
        for start in range(0, len(order), _PIECE):
            piece = gains.rivals(order[start : start + _PIECE])
            gains.lower_bounds(piece, weights)
            wasted += len(piece) * _rows(weights) - (len(piece) - len(gains.rivals(piece))) * above
            if wasted > _WASTE * len(order) * full:
                break
        return gains.rivals(order)


def _rows(weights: Weights) -> int:
    return int(weights.rows.shape[0])


#: Largest effect on a gain of the configurations that are left out, over the whole batch, in nats.
NEGLIGIBLE: Final = 1e-13


class BatchBALD(NamedTuple):
    """A batch, in the order in which it was chosen.

    Attributes:
        indices: Indices of the candidates.
        gains: Information of each label about the parameters, given the labels before it, in nats.
        exact: Number of picks, from the first, that were made with exact gains; the others were made with estimates.
        evaluated: Number of gains that were computed, including one for every candidate at the start.
        bounded: Number of times that a gain was only bounded from above, which is much faster.
    """

    indices: Indices
    gains: Floats
    exact: int
    evaluated: int
    bounded: int


def batchbald(
    probs: Any,
    batch_size: int,
    *,
    configurations: int = 100_000,
    seed: int | np.random.Generator = 0,
    lazy: bool = True,
) -> BatchBALD:
    r"""Choose candidates greedily by the joint information of their labels about the parameters.

    The gain of a candidate given a batch with labels :math:`y_1 \dots y_m` is the mutual information

    .. math:: I(y; w \mid y_1 \dots y_m) = H(y \mid y_1 \dots y_m) - \frac{1}{K} \sum_k H(y \mid w_k)

    by which BatchBALD's score of the batch grows, with :math:`p(w)` uniform over the ``K`` samples.

    **Exact**: gains are exact, up to 1e-13 nats and rounding, while the number of relevant configurations of the labels
    (at most all :math:`C^{m+1}`) is at most ``configurations``. A configuration can change a gain by at most its mass
    times :math:`\min(\log C, H[w \mid y_1 \dots y_m])`. Configurations are left out only if the sum of these numbers is
    below 1e-13 nats.

    **Estimated**: if there are more, ``configurations // C`` configurations of the batch are kept, the same for all
    candidates. The most important ones are kept unchanged. The others are drawn at random with ``seed``, with unbiased
    weights. For a given batch the estimate of a gain is unbiased and never negative, and its error vanishes as
    ``configurations`` grows.

    **Lazy**: a candidate is skipped if an upper bound of its gain (an earlier gain, or the gain with merged
    configurations) is below a gain already found. For exact gains an earlier gain is a bound because the score is
    submodular. For estimates it is not. They are bounded by merging the configurations from which they are computed,
    which never lowers them. So the picks are those of ``lazy=False`` in both cases.

    **Ties**: gains within 1e-10 nats of the best count as equal, and the one with the lowest index is picked. No batch
    gains more than :math:`\log K`: if its labels determine the sample, all further gains are 0, and the picks are in
    the order of the indices. If the remaining entropy is below 1e-10 nats, gains are reported as 0, except with
    ``lazy=False``.

    Args:
        probs: Probability of each class under each sample of the posterior, ``N x K x C``: a numpy array, or a torch
            tensor of any floating precision, which is processed on its device. Sums over the classes may differ from 1
            by 1e-4, or by 8 units in the last place of half precision; every row is divided by its sum.
        batch_size: Number of candidates to choose, at most ``N``.
        configurations: Largest number of configurations of labels, including that of the candidate, in the computation
            of a gain; at least ``C``. Memory is a few times ``8 K configurations / C`` bytes.
        seed: Seed of the draws, or a random generator; it is used only if gains are estimated.
        lazy: If False, every candidate's gain is computed for every pick.

    Returns:
        The picks in order, their gains, and counts of the computations.

    Raises:
        InvalidTypeError: ``probs`` does not contain real numbers.
        InvalidValueError: It does not contain probabilities, or an argument is out of range.

    Reference: [Kirsch2019] algorithm 1; [Minoux1978] for the lazy choice; [FearnheadClifford2003] for the draws.

    Examples:
        The second candidate is a copy of the first: as informative alone, but not informative after it.

        >>> first, other = [1.0, 1.0, 0.0, 0.0], [0.95, 0.05, 0.95, 0.05]
        >>> heads = np.array([first, first, other])
        >>> batch = batchbald(np.stack([heads, 1.0 - heads], axis=2), 2)
        >>> batch.indices, batch.gains.round(4), batch.exact
        (array([0, 2]), array([0.6931, 0.4946]), 2)
    """
    pool = candidates(probs)
    samples, classes = pool.shape[1:]
    batch_size, rng = checked_options(pool.shape, batch_size, configurations, seed)
    with one_thread():
        search = Search(pool, lazy=lazy)
        picks, exact, labels = [search.take()], 1, Configurations.of_nothing(samples)
        for _ in range(batch_size - 1):
            latest = pool.one(picks[-1][0])
            labels = labels.joined(latest, most=configurations // classes, negligible=NEGLIGIBLE / batch_size, rng=rng)
            exact += labels.exact
            if lazy and labels.doubt() <= TIE:
                # No gain exceeds the remaining entropy, so all remaining candidates are ties.
                rest = search.rest(batch_size - len(picks))
                picks += [(index, 0.0) for index in rest]
                exact += (len(rest) - 1) * labels.exact
                break
            search.look(labels)
            picks.append(search.take())
    indices, gains = zip(*picks, strict=True)
    return BatchBALD(
        np.array(indices, dtype=np.intp), np.array(gains), exact, search.gains.evaluated, search.gains.bounded
    )


def checked_options(
    shape: tuple[int, int, int], batch_size: int, configurations: int, seed: Any
) -> tuple[int, np.random.Generator]:
    """Return the checked batch size and the random generator, for candidates of a shape."""
    n, _, classes = shape
    if n == 0:
        raise InvalidValueError("probs must hold at least one candidate, but holds none")
    if whole(batch_size, "batch_size", least=1) > n:
        raise InvalidValueError(f"batch_size must be at most the number of candidates, {n}, not {batch_size}")
    if whole(configurations, "configurations", least=1) < classes:
        raise InvalidValueError(f"configurations must be {classes} or more, one for each class, not {configurations}")
    rng = seed if isinstance(seed, np.random.Generator) else np.random.default_rng(whole(seed, "seed", least=0))
    return int(batch_size), rng


_Calls = Sequence[tuple[str, tuple[Any, ...]]]


class CandidateShards(Protocol):
    """Interface of the shards; :class:`suffice.engines.sharded_pool.Shards` implements it."""

    def __len__(self) -> int:
        """Number of shards."""

    def ask(self, method: str, *arguments: Any, which: Sequence[int] | None = None, repeat: _Calls = ()) -> list[Any]:
        """Call a method of some shards; a shard that is created again repeats the calls in ``repeat``."""


class Promise(NamedTuple):
    """Summary of the gains of a shard.

    Attributes:
        best: The best gain that was computed.
        most: Upper bound on all gains.
    """

    best: float
    most: float


@dataclass(frozen=True, eq=False)
class Winner:
    """A candidate that ties with the best gain.

    Attributes:
        index: Its number among all candidates.
        gain: Its gain.
        probabilities: Probabilities of its label under each sample, ``K x C``.
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
        prior: Not used.
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
        """Return the summary of the gains."""
        return Promise(self._search.gains.best, self._search.gains.largest_bound())

    def take(self, indices: Indices) -> None:
        """Leave candidates out, by their number among all."""
        inside = (indices >= self._start) & (indices < self._start + self._pool.shape[0])
        self._search.gains.leave_out(indices[inside] - self._start)

    def open(self, rows: Floats, exact: bool, taken: Indices) -> Promise:
        """Compute the gains of the most promising candidates given a batch.

        Args:
            rows: Configurations of the labels of the batch, ``S x K``.
            exact: Whether no configuration was drawn at random.
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
        return Winner(index + self._start, self._search.gains.gain(index), self._pool.one(index))

    def rest(self, count: int) -> Indices:
        """The first candidates that are not taken."""
        return np.array(self._search.rest(count), dtype=np.intp) + self._start

    def counts(self) -> tuple[int, int]:
        """Return the number of gains that were computed, and the number of times that a gain was bounded."""
        return self._search.gains.evaluated, self._search.gains.bounded


def batchbald_over(
    shards: CandidateShards,
    batch_size: int,
    *,
    configurations: int = 100_000,
    seed: int | np.random.Generator = 0,
) -> BatchBALD:
    """Choose the batch of :func:`suffice.acquisition.batchbald` from candidates in shards.

    The picks, including ties, are the same as without shards. A pick takes at most three exchanges. The largest message
    contains the configurations, at most ``8 K configurations / C`` bytes.

    Args:
        shards: Shards of the class :class:`BatchShard`.
        batch_size: Number of candidates to choose, at most the number of candidates.
        configurations: As for :func:`~suffice.acquisition.batchbald`.
        seed: Seed of the draws, or a random generator.

    Raises:
        InvalidValueError: An argument is out of range, or the shards have different numbers of samples or classes.

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
            # No gain exceeds the remaining entropy, so all remaining candidates are ties.
            count = batch_size - len(indices)
            shards.ask("take", taken, repeat=[("take", (taken,))])
            rest = np.concatenate(shards.ask("rest", count, repeat=[("take", (taken,))]))[:count]
            indices += rest.tolist()
            gains += [0.0] * len(rest)
            exact += (len(rest) - 1) * labels.exact
            break
        repeat = [("open", (labels.rows, labels.exact, taken))]
        promises = shards.ask("open", labels.rows, labels.exact, taken, repeat=repeat)
        best = max(promise.best for promise in promises)
        open_yet = [k for k, promise in enumerate(promises) if promise.most > max(best, TIE)]
        if open_yet:
            for k, promise in zip(open_yet, shards.ask("close", best, which=open_yet, repeat=repeat), strict=True):
                promises[k] = promise
        picks.append(_winner(shards, promises, repeat))
        indices.append(picks[-1].index)
        gains.append(picks[-1].gain)
    counts = np.sum(shards.ask("counts"), axis=0)
    return BatchBALD(np.array(indices, dtype=np.intp), np.array(gains), exact, int(counts[0]), int(counts[1]))


def _winner(shards: CandidateShards, promises: Sequence[Promise], repeat: _Calls) -> Winner:
    """The candidate of the best gain of all shards; ties go to the lowest index."""
    best = max(promise.best for promise in promises)
    near = [k for k, promise in enumerate(promises) if promise.most >= best - TIE - ROUNDING]
    answers: list[Winner | None] = shards.ask("winner", best, which=near, repeat=repeat)
    winners = [winner for winner in answers if winner is not None]
    return min(winners, key=lambda winner: winner.index)
