"""A classifier's pool in shards, each scored where it lies; only candidates come back.

For every pick the driver sends each shard the posterior of the weights, and receives its most useful points. A shard
keeps its points and which of them are left out, and nothing of the past: one that is lost is made again from its part
of the pool and the points to leave out.
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np

from suffice.engines.class_pool import ScoredPool, UncertainPool, score_ranks, smallest
from suffice.engines.sharded_pool import Shard, Shards
from suffice.engines.variance_pool import Indices
from suffice.models.laplace import LaplaceWeights
from suffice.numerics.special_functions import Floats

# Points that a shard names beside those that are asked for, so that ties are mostly decided at once.
_SPARE: Final = 8


class ClassPrior(NamedTuple):
    """How a shard scores its points.

    Attributes:
        score: Of a posterior and the features of some rows, how useful the label of each would be. Workers import it.
        averaged: For a score that ranks two classes by how even the prediction is: whether the prediction is averaged
            over the posterior. None for other scores.
    """

    score: Callable[[Any, Floats], Floats]
    averaged: bool | None = None

    def by_evenness(self, posterior: Any) -> bool:
        """Whether points are ranked by how even the prediction is: there are two classes, and the score does so."""
        return self.averaged is not None and posterior.weights.ndim == 1


class ClassMessage(NamedTuple):
    """What a shard is told.

    Attributes:
        posterior: The posterior of the weights.
        taken: Points to leave out from now on, by their number in the whole pool.
    """

    posterior: LaplaceWeights
    taken: Indices

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return self.posterior.nbytes + self.taken.nbytes


class ClassAnswer(NamedTuple):
    """The most useful points of a shard.

    Attributes:
        indices: Their numbers in the whole pool.
        values: Their scores; for scores by evenness, their distances from it.
        rest: The largest score of the others; -inf if there is none that matters.
    """

    indices: Indices
    values: Floats
    rest: float = -np.inf

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return self.indices.nbytes + self.values.nbytes


class ClassShard(Shard):
    """A part of a classifier's pool.

    Args:
        start: Number of its first row in the whole pool.
        rows: As for :class:`~suffice.engines.sharded_pool.Shard`.
        prior: How points are scored, :class:`ClassPrior`.
    """

    def _scored(self, prior: ClassPrior) -> ScoredPool:
        self._prior = prior
        self._even: UncertainPool | None = None
        self._left_out: list[Indices] = []
        return ScoredPool(self._points, prior.score)

    def take(self, indices: Indices) -> None:
        """Leave points out from now on, by their number in the whole pool."""
        inside = (indices >= self._start) & (indices < self._start + len(self._points))
        here = indices[inside] - self._start
        self._left_out.append(here)
        for pool in (self._pool, self._even):
            if pool is not None:
                pool.take(here)

    def best(self, message: ClassMessage, n: int) -> ClassAnswer:
        """The points from which the ``n`` most useful ones of all shards are found."""
        self.take(message.taken)
        if self._prior.by_evenness(message.posterior):
            found, distance = self._evenly().leading(message.posterior, n)
            return ClassAnswer(found + self._start, distance)
        rows, scores = self._pool.scores(message.posterior)
        if n + _SPARE >= len(rows):
            return ClassAnswer(rows + self._start, scores)
        parted = np.argpartition(-scores, n + _SPARE)
        chosen = parted[: n + _SPARE]
        return ClassAnswer(rows[chosen] + self._start, scores[chosen], float(scores[parted[n + _SPARE]]))

    def ranked(self, message: ClassMessage, n: int, largest: float) -> ClassAnswer:
        """The ``n`` most useful points, ties to the lowest index, where the largest score of all shards is known."""
        self.take(message.taken)
        rows, scores = self._pool.scores(message.posterior)
        chosen = np.argsort(score_ranks(scores, largest), kind="stable")[:n]
        return ClassAnswer(rows[chosen] + self._start, scores[chosen])

    def _evenly(self) -> UncertainPool:
        """The pool by evenness, which takes memory only if it is needed."""
        if self._even is None:
            self._even = UncertainPool(self._points, averaged=bool(self._prior.averaged))
            for indices in self._left_out:
                self._even.take(indices)
        return self._even


class ShardedClasses:
    """A classifier's pool in shards; see :class:`suffice.engines.class_pool.ClassPool`.

    The picks are those of a pool in memory, including ties. One exchange makes a pick. A second one is needed where
    more points tie for it than a shard has named.

    Args:
        shards: Shards of the class :class:`ClassShard`, or what makes them when they are needed first.
        prior: What the shards were made with.
        source: The features, for who wants to know whether the pool can be kept.
    """

    def __init__(self, shards: Shards | Callable[[], Shards], prior: ClassPrior, source: Any = None) -> None:
        self._given, self._prior, self.source = shards, prior, source
        self._all = self._new = np.zeros(0, dtype=np.intp)

    @property
    def shards(self) -> Shards:
        """The shards."""
        if not isinstance(self._given, Shards):
            self._given = self._given()
        return self._given

    def take(self, indices: Indices) -> None:
        """Leave points out from now on. The shards are told with the next question."""
        self._new = np.append(self._new, np.asarray(indices, dtype=np.intp))

    def nearest(self, posterior: Any, n: int) -> Indices:
        """The ``n`` most useful points, most useful first; ties to the lowest index."""
        sent = posterior if isinstance(posterior, LaplaceWeights) else posterior.frozen()
        message = ClassMessage(sent, self._new)
        # Points that are taken twice are left out as well: the shards hear of them before they answer again.
        self._all, self._new = np.append(self._all, self._new), self._new[:0]
        repeat = [("take", (self._all,))]
        indices, values, rest = _joined(self.shards.ask("best", message, n, repeat=repeat))
        if self._prior.by_evenness(sent):
            return indices[smallest(values, n)]
        largest = float(values.max(initial=0.0))
        ranks = score_ranks(values, largest)
        order = np.argsort(ranks, kind="stable")[:n]
        last = ranks[order[-1]] if len(order) else np.inf
        if rest > -np.inf and score_ranks(np.array([rest]), largest)[0] <= last:
            told = ClassMessage(sent, self._new)
            indices, values, _ = _joined(self.shards.ask("ranked", told, n, largest, repeat=repeat))
            order = np.argsort(score_ranks(values, largest), kind="stable")[:n]
        return indices[order]


def _joined(answers: list[ClassAnswer]) -> tuple[Indices, Floats, float]:
    """Indices, ascending, values, and the largest score that no shard has named."""
    indices = np.concatenate([each.indices for each in answers])
    values = np.concatenate([each.values for each in answers])
    order = np.argsort(indices)
    return indices[order], values[order], max(each.rest for each in answers)
