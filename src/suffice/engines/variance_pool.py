"""A pool scored by variance: the best candidates, and blocks of picks planned from one pass over the pool."""

import warnings
from dataclasses import dataclass
from math import sqrt
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from suffice.engines.disk_rows import DiskRows
from suffice.engines.tracked_rows import TILE, FollowedRows
from suffice.models.gaussian_state import Block, GaussianState, WeightState, block_of
from suffice.numerics import Floats, solve_lower

Indices = NDArray[np.intp]

# Variances closer than this, relative to what they were subtracted from, are equal up to rounding: a tie.
TIE: Final = 2e-15
# How far variances kept in single precision can be off, likewise.
SINGLE: Final = 1e-6


@dataclass(frozen=True)
class PoolCandidates:
    """The points of largest score, and what is known of the others.

    Attributes:
        indices: Where they stand in the pool, ascending.
        features: Their features, ``B x D``.
        whitened: ``W`` at them, ``r x B``, where the pool has it at hand.
        rest: Largest score among the others; minus infinity if there are none. A variance never grows, so it stays an
            upper bound while labels come.
        rest_index: Lowest index among the others of that score.
        tie: Variances closer than this are equal up to rounding.
        covariance: Their latent posterior covariance, ``B x B``, where the pool has it at hand.
    """

    indices: Indices
    features: Floats
    whitened: Floats | None
    rest: float
    rest_index: int
    tie: float
    covariance: Floats | None = None


class VariancePool(Protocol):
    """A pool scored by latent variance. Memory, a file, a graphics card or workers may hold it."""

    def top(self, n: int) -> PoolCandidates:
        """The ``n`` points of largest variance, ties to the lowest index."""

    def follow(self) -> None:
        """Catch up with the posterior."""

    def features(self, indices: Indices) -> Floats:
        """Features of some points."""

    def take(self, indices: Indices) -> None:
        """Leave points out from now on: they are labelled, or were skipped."""

    def jump(self) -> None:
        """Be up to date with the posterior at once, where the model allows it."""

    def tidy(self) -> None:
        """A good moment to drop what is taken."""

    def mark(self) -> Any:
        """Present state, for :meth:`rewind`."""

    def rewind(self, mark: Any) -> None:
        """Go back to a mark."""


class MemoryPool:
    """A pool in memory.

    Args:
        rows: Its points, following a posterior.
        dtype: Number type that the rows are kept in.
    """

    def __init__(self, rows: FollowedRows, dtype: "np.typing.DTypeLike" = np.float64) -> None:
        self._rows, self._points = rows, rows.points
        self._variance = rows.prior_variance()
        self._prior = self._variance.copy()
        # Where each row stands in the pool, and the other way round; rows that are taken are dropped now and then.
        self._index = np.arange(len(self._variance))
        self._place = self._index.copy()
        self._free = np.ones(len(self._variance), dtype=bool)
        self._warned = self._anew = False
        self._single = np.dtype(dtype) == np.float32

    def top(self, n: int) -> PoolCandidates:
        """The ``n`` points of largest variance, ties to the lowest index."""
        score = np.where(self._free, self._variance, -np.inf)
        tie, slack = self._rounding(score)
        rows, rest, first = largest(score, n, tie)
        indices = self._index[rows]
        rest_index = int(self._index[first]) if first < len(self._index) else len(self._place)
        return PoolCandidates(indices, self._points[indices], self._rows.whitened(rows), rest + slack, rest_index, tie)

    def follow(self) -> None:
        """Catch up with the posterior: the pool is read once."""
        if self._anew:
            self.jump()
            return
        for tile, rows in self._rows.follow():
            self._variance[tile] -= np.einsum("ij,ij->j", rows, rows)
        # Where little is left of what was subtracted from, a linear model computes it anew from then on.
        if self._rows.recomputable:
            left = self._variance < self._rows.resolution * self._prior
            self._anew = bool((left & self._free).any())
            if self._anew:
                self.jump()

    def jump(self) -> None:
        """Be up to date with the posterior of a linear model, by its factor alone."""
        if self._rows.recomputable:
            self._rows.jump()
            self._variance = self._rows.variance()

    def _rounding(self, score: Floats) -> tuple[float, float]:
        """Difference below which two variances count as equal, and error bound of one."""
        best = float(score.max(initial=0.0))
        if self._rows.recomputable:
            return TIE * best, SINGLE * best if self._single else 0.0
        prior = float(self._prior.max(initial=0.0))
        if self._single and 0.0 < best < 100.0 * SINGLE * prior and not self._warned:
            self._warned = True
            warnings.warn(
                "the largest variance of the pool is below 1e-4 of the prior, near the resolution of dtype float32: "
                "picks may differ from those of float64",
                stacklevel=2,
            )
        return TIE * prior, SINGLE * prior if self._single else 0.0

    def features(self, indices: Indices) -> Floats:
        """Features of some points."""
        return self._points[indices]

    def variances(self, indices: Indices) -> Floats:
        """Latent variances of some points, as they were last followed."""
        return self._variance[self._place[indices]]

    def take(self, indices: Indices) -> None:
        """Leave points out from now on."""
        places = self._place[indices]
        self._free[places[places >= 0]] = False

    def tidy(self) -> None:
        """Drop the rows that are taken, where that is cheap and a good part of all."""
        if not self._rows.recomputable or 8 * np.count_nonzero(self._free) > 7 * len(self._free):
            return
        keep = self._free
        self._rows.keep(keep)
        self._variance, self._prior = self._variance[keep], self._prior[keep]
        self._index, self._free = self._index[keep], keep[keep]
        self._place[:] = -1
        self._place[self._index] = np.arange(len(self._index))

    def mark(self) -> tuple[Any, Floats, NDArray[np.bool_]]:
        """Present state."""
        return self._rows.mark(), self._variance.copy(), self._free.copy()

    def rewind(self, mark: tuple[Any, Floats, NDArray[np.bool_]]) -> None:
        """Go back to a mark; nothing was tidied since."""
        self._rows.rewind(mark[0])
        self._variance, self._free = mark[1].copy(), mark[2].copy()


class DiskPool:
    """A pool on disk that follows a linear model: it is read once for each block of picks.

    Args:
        state: The posterior.
        source: Features, ``m x J``.
    """

    def __init__(self, state: WeightState, source: DiskRows) -> None:
        self._state, self._source = state, source
        self._free = np.ones(len(source), dtype=bool)
        # Variances, and the number of labels that they are up to date with.
        self._variance, self._n = np.zeros(0), -1

    def top(self, n: int) -> PoolCandidates:
        """The ``n`` points of largest variance, ties to the lowest index."""
        if self._n != self._state.n:
            self._variance, self._n = self._variances(), self._state.n
        score = np.where(self._free, self._variance, -np.inf)
        tie = TIE * float(score.max(initial=0.0))
        indices, rest, rest_index = largest(score, n, tie)
        return PoolCandidates(indices, self._source[indices], None, rest, rest_index, tie)

    def _variances(self) -> Floats:
        """Latent variance of each point, ``|R^-1 x|^2``: one pass."""
        found = np.empty(len(self._source))
        for start, block in self._source.batches():
            for first in range(0, len(block), TILE):
                white = solve_lower(self._state.factor, block[first : first + TILE].T)
                found[start + first : start + first + white.shape[1]] = np.einsum("ij,ij->j", white, white)
        return found

    def features(self, indices: Indices) -> Floats:
        """Features of some points."""
        return self._source[indices]

    def take(self, indices: Indices) -> None:
        """Leave points out from now on."""
        self._free[indices] = False

    def follow(self) -> None:
        """Nothing to do: variances are computed from the posterior when they are needed."""

    def jump(self) -> None:
        """Nothing to do."""

    def tidy(self) -> None:
        """Nothing to do."""

    def mark(self) -> tuple[Floats, int, NDArray[np.bool_]]:
        """Present state."""
        return self._variance, self._n, self._free.copy()

    def rewind(self, mark: tuple[Floats, int, NDArray[np.bool_]]) -> None:
        """Go back to a mark."""
        self._variance, self._n, self._free = mark[0], mark[1], mark[2].copy()


def largest(score: Floats, n: int, margin: float = 0.0) -> tuple[Indices, float, int]:
    """Indices of the ``n`` largest scores (ties to the lowest index, ascending), and the best of the rest.

    Args:
        score: One per point; minus infinity marks a point that may not be chosen.
        n: How many; fewer come back where fewer may be chosen.
        margin: Scores this close count as equal.

    Returns:
        Indices; the largest score of the rest; the lowest index of the rest with that score.

    Examples:
        >>> largest(np.array([1.0, 3.0, 3.0, 3.0, 2.0]), 2)
        (array([1, 2]), 3.0, 3)
    """
    m = len(score)
    if n < m:
        cut = float(np.partition(score, m - n)[m - n])
        above = score > cut + margin
        equal = np.flatnonzero((score >= cut - margin) & ~above)
        above[equal[: n - int(np.count_nonzero(above))]] = True
        indices, others = np.flatnonzero(above), np.where(above, -np.inf, score)
        rest = float(others.max())
        rest_index = int(np.argmax(others >= rest - 2.0 * margin)) if rest > -np.inf else m
    else:
        indices, rest, rest_index = np.arange(m), -np.inf, m
    return indices[score[indices] > -np.inf], rest, rest_index


class Covariances(Protocol):
    """Interface of a posterior, as planning needs it."""

    noise: float

    def whiten(self, features: Floats) -> Floats:
        """``W`` for some points."""

    def covariance(self, features: Floats, whitened: Floats) -> Floats:
        """Latent posterior covariance of some points."""


def plan(state: Covariances, candidates: PoolCandidates, most: int) -> tuple[Indices, Block]:
    r"""Pick the largest variance again and again among the candidates, as long as no other point can be larger.

    The variance of a Gaussian model does not depend on the labels, and never grows. So inside the candidates' own
    posterior covariance the picks are made with no label known and no other point looked at: a pick stands while its
    variance is above the largest that the other points had at the start. Ties (up to rounding) go to the lowest index,
    as they would in the plain loop.

    Args:
        state: The posterior.
        candidates: The points of largest variance.
        most: Picks at most.

    Returns:
        The picks (at least one, if there is a candidate), in order, and these points as a block.

    Reference: [IshibashiHino2021] section 5.2, acquisition of models 1 and 3.
    """
    features = candidates.features
    whitened = state.whiten(features) if candidates.whitened is None else candidates.whitened
    covariance = state.covariance(features, whitened) if candidates.covariance is None else candidates.covariance
    indices, noise, tie = candidates.indices, state.noise, candidates.tie
    size = len(indices)
    most = min(most, size)
    variance = np.diag(covariance).copy()
    rows = np.zeros((most, size))
    chosen: list[int] = []
    latent: list[float] = []
    while len(chosen) < most:
        best = float(variance.max())
        j = int((variance >= best - tie).argmax())
        if chosen and not _stands(best, int(indices[j]), candidates):
            break
        k = len(chosen)
        s = max(float(variance[j]), 0.0)
        row = (covariance[j] - rows[:k, j] @ rows[:k]) / sqrt(s + noise)
        rows[k] = row
        variance -= row * row
        variance[j] = -np.inf
        chosen.append(j)
        latent.append(s)
    lower = np.tril(rows[: len(chosen), chosen].T)
    lower[np.diag_indices(len(chosen))] = np.sqrt(np.array(latent) + noise)
    return indices[chosen], Block(features[chosen], whitened[:, chosen], lower, np.array(latent))


def _stands(best: float, index: int, candidates: PoolCandidates) -> bool:
    if best > candidates.rest + candidates.tie:
        return True
    return best >= candidates.rest - candidates.tie and index < candidates.rest_index


class LargestVariance:
    """Chooses the point of largest latent variance, again and again.

    Args:
        state: The posterior.
        pool: The pool that follows it.
        size: Number of points in the pool.
    """

    def __init__(self, state: GaussianState, pool: VariancePool, size: int) -> None:
        self._state, self._pool = state, pool
        # Wide enough for some dozens of picks in a block, narrow enough that planning costs little beside the pool.
        self._width = int(np.clip(2.0 * np.sqrt(size), 64, 512))
        self._queue: Indices = np.zeros(0, dtype=np.intp)
        self._block: Block | None = None

    def jump(self) -> None:
        """Be up to date with the posterior of a linear model, without the labels in between."""
        self._pool.jump()

    def propose(self, most: int) -> Indices:
        """The next picks: what is left of the plan, or a new one."""
        if not len(self._queue):
            self._pool.follow()
            self._pool.tidy()
            self._queue, self._block = plan(self._state, self._pool.top(self._width), self._width)
        return self._queue[:most]

    def batch(self, size: int) -> Indices:
        """Picks to be labelled together: each is conditioned on those before it, which needs no label."""
        picks = self.propose(size)
        if len(picks) == size:
            return picks
        self._pool.follow()
        here, there = self._state.mark(), self._pool.mark()
        self._condition(picks)
        while len(picks) < size:
            candidates = self._pool.top(self._width)
            if not len(candidates.indices):
                break
            more, block = plan(self._state, candidates, size - len(picks))
            self._state.extend(block, np.zeros(len(more)))
            self._pool.take(more)
            self._pool.follow()
            picks = np.append(picks, more)
        self._state.rewind(here)
        self._pool.rewind(there)
        return picks

    def _condition(self, picks: Indices) -> None:
        """Take points as labelled, for the time being: a variance does not ask what the label is."""
        self._state.extend(block_of(self._state, self._pool.features(picks)), np.zeros(len(picks)))
        self._pool.take(picks)
        self._pool.follow()

    def block(self, indices: Indices) -> Block | None:
        """The first picks of a plan that has just been made, as the posterior sees them; nothing for other points."""
        block, k = self._block, len(indices)
        if block is None or not np.array_equal(self._queue[:k], indices):
            return None
        return Block(block.features[:k], block.whitened[:, :k], block.lower[:k, :k], block.latent[:k])

    def skip(self, indices: Indices) -> None:
        """Leave points out that have no label: the plan, which counted on it, is made anew."""
        self._pool.take(indices)
        self._queue, self._block = self._queue[:0], None

    def take(self, indices: Indices) -> None:
        """Leave points out. The plan stands as long as its points are taken in order."""
        self._pool.take(indices)
        follows = np.array_equal(self._queue[: len(indices)], indices)
        self._queue = self._queue[len(indices) :] if follows else self._queue[:0]
        # The block was seen from the posterior before these points.
        self._block = None
