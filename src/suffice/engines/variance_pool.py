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

# Variances closer than this are equal up to rounding: a tie. It is relative to the largest prior variance, or to the
# largest present variance if variances are recomputed.
TIE: Final = 2e-15
# Largest error of variances in single precision, also relative.
SINGLE: Final = 1e-6


@dataclass(frozen=True)
class PoolCandidates:
    """The points of largest score, and a bound on the others.

    Attributes:
        indices: Their indices in the pool, ascending.
        features: Their features, ``B x D``.
        whitened: ``W`` at them, ``r x B``, if the pool has it.
        rest: Largest score among the others; minus infinity if there are none. A variance never grows, so this remains
            an upper bound after further labels.
        rest_index: Lowest index among the others of that score.
        tie: Variances closer than this are equal up to rounding.
        covariance: Their latent posterior covariance, ``B x B``, if the pool has it.

    Examples:
        >>> found = PoolCandidates(np.array([4, 7]), np.ones((2, 3)), whitened=None, rest=0.2, rest_index=1, tie=1e-15)
        >>> len(found.indices), found.rest
        (2, 0.2)
    """

    indices: Indices
    features: Floats
    whitened: Floats | None
    rest: float
    rest_index: int
    tie: float
    covariance: Floats | None = None


class VariancePool(Protocol):
    """A pool scored by latent variance. It may be in memory, in a file, on a GPU or on workers."""

    def top(self, n: int) -> PoolCandidates:
        """The ``n`` points of largest variance, ties to the lowest index."""

    def follow(self) -> None:
        """Update to the posterior."""

    def features(self, indices: Indices) -> Floats:
        """Features of some points."""

    def take(self, indices: Indices) -> None:
        """Leave points out from now on: they are labelled, or were skipped."""

    def jump(self) -> None:
        """Update to the posterior in one step, if the model allows it."""

    def tidy(self) -> None:
        """Remove points that are taken, if that is useful. Called between blocks of picks."""

    def mark(self) -> Any:
        """Present state, for :meth:`rewind`."""

    def rewind(self, mark: Any) -> None:
        """Go back to a mark."""


class MemoryPool:
    """A pool in memory.

    Args:
        rows: Its points, following a posterior.
        dtype: Number type that the rows are kept in.

    Examples:
        >>> from suffice.engines import FeatureRows
        >>> from suffice.models.gaussian_state import WeightState
        >>> X, state = np.array([[1.0], [2.0], [3.0]]), WeightState(alpha=1.0, noise=1.0, n_features=1)
        >>> pool = MemoryPool(FeatureRows(state, X, np.float64))
        >>> pool.top(1).indices, pool.top(1).rest
        (array([2]), 4.0)
        >>> pool.take(np.array([2]))
        >>> state.learn(X[[2]], np.array([0.5]))  # the weight has the variance 1/10 from now on
        >>> pool.follow()
        >>> pool.variances(np.arange(3)).round(3)
        array([0.1, 0.4, 0.9])
    """

    def __init__(self, rows: FollowedRows, dtype: "np.typing.DTypeLike" = np.float64) -> None:
        self._rows, self._points = rows, rows.points
        self._variance = rows.prior_variance()
        self._prior = self._variance.copy()
        # Index in the pool of each row, and row of each index. Rows that are taken are removed from time to time.
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
        """Update to the posterior; the pool is read once."""
        if self._anew:
            self.jump()
            return
        for tile, rows in self._rows.follow():
            self._variance[tile] -= np.einsum("ij,ij->j", rows, rows)
        # If subtraction has lost too many digits, a linear model recomputes variances from then on.
        if self._rows.recomputable:
            left = self._variance < self._rows.resolution * self._prior
            self._anew = bool((left & self._free).any())
            if self._anew:
                self.jump()

    def jump(self) -> None:
        """Update to the posterior of a linear model, from its factor only."""
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
        """Return the latent variances of some points at the last update."""
        return self._variance[self._place[indices]]

    def take(self, indices: Indices) -> None:
        """Leave points out from now on."""
        places = self._place[indices]
        self._free[places[places >= 0]] = False

    def tidy(self) -> None:
        """Remove the rows that are taken, if they are many and removal is cheap."""
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
        """Go back to a mark. ``tidy`` must not have been called since."""
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
        # Variances, and the number of labels that they include.
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
        n: Number of indices; fewer are returned if fewer points may be chosen.
        margin: Scores that differ by at most this count as equal.

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
    """Interface of a posterior for planning."""

    noise: float

    def whiten(self, features: Floats) -> Floats:
        """``W`` for some points."""

    def variance(self, features: Floats, whitened: Floats) -> Floats:
        """Latent posterior variance of some points."""

    def covariance_rows(self, features: Floats, whitened: Floats, places: Indices) -> Floats:
        """Rows of the latent posterior covariance of some points."""


# Share of the candidates whose rows of the covariance are computed by one product: nine in ten picks are among them.
_LIKELY: Final = 4


class _CandidateRows:
    """Rows of the covariance of the candidates: those of likely picks by one product, others when they are needed.

    Args:
        state: The posterior.
        candidates: The candidates.
        whitened: ``W`` at them.
    """

    def __init__(self, state: Covariances, candidates: PoolCandidates, whitened: Floats) -> None:
        self._state, self._features, self._whitened = state, candidates.features, whitened
        if candidates.covariance is not None:
            self.variance = np.diag(candidates.covariance).copy()
            self._rows, self._place = candidates.covariance, np.arange(len(self.variance))
            return
        self.variance = state.variance(candidates.features, whitened).copy()
        size = len(self.variance)
        likely = np.argpartition(-self.variance, size // _LIKELY)[: size // _LIKELY]
        self._rows = state.covariance_rows(candidates.features, whitened, likely)
        self._place = np.full(size, -1)
        self._place[likely] = np.arange(len(likely))

    def row(self, place: int) -> Floats:
        """The covariances of one candidate with all candidates."""
        number = self._place[place]
        if number >= 0:
            return np.asarray(self._rows[number])
        return np.asarray(self._state.covariance_rows(self._features, self._whitened, np.array([place]))[0])


def plan(state: Covariances, candidates: PoolCandidates, most: int) -> tuple[Indices, Block]:
    r"""Pick the candidate of largest variance repeatedly, while no other point can have a larger one.

    The variance of a Gaussian model does not depend on the labels, and never grows. So the picks can be made from the
    posterior covariance of the candidates, without labels and without other points. A pick is valid while its variance
    is above the largest variance of the other points at the start. Ties (up to rounding) go to the lowest index, as in
    a loop without planning.

    Args:
        state: The posterior.
        candidates: The points of largest variance.
        most: Largest number of picks.

    Returns:
        The picks (at least one, if there is a candidate), in order, and these points as a block.

    Reference: [IshibashiHino2021] section 5.2, acquisition of models 1 and 3.
    """
    features = candidates.features
    whitened = state.whiten(features) if candidates.whitened is None else candidates.whitened
    indices, noise, tie = candidates.indices, state.noise, candidates.tie
    size = len(indices)
    most = min(most, size)
    covariances = _CandidateRows(state, candidates, whitened)
    variance, rows, product = covariances.variance, np.zeros((most, size)), np.empty(size)
    chosen: list[int] = []
    latent: list[float] = []
    while len(chosen) < most:
        j = int(variance.argmax())
        best = float(variance[j])
        # The lowest index among equal ones.
        j = int((variance[: j + 1] >= best - tie).argmax())
        if chosen and not _stands(best, int(indices[j]), candidates):
            break
        k = len(chosen)
        s = max(float(variance[j]), 0.0)
        np.matmul(rows[:k, j], rows[:k], out=product)
        np.subtract(covariances.row(j), product, out=product)
        row = np.divide(product, sqrt(s + noise), out=rows[k])
        variance -= np.multiply(row, row, out=product)
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
    """Chooses the point of largest latent variance, repeatedly.

    Args:
        state: The posterior.
        pool: The pool that follows it.
        size: Number of points in the pool.
    """

    def __init__(self, state: GaussianState, pool: VariancePool, size: int) -> None:
        self._state, self._pool = state, pool
        # Large enough for some dozens of picks in a block, because the products over the pool are faster for large
        # blocks; small enough that planning is fast compared with them.
        self._width = int(np.clip(4.0 * np.sqrt(size), 64, 512))
        self._queue: Indices = np.zeros(0, dtype=np.intp)
        self._block: Block | None = None

    def jump(self) -> None:
        """Update to the posterior of a linear model, without the labels in between."""
        self._pool.jump()

    def propose(self, most: int) -> Indices:
        """Return the next picks: the rest of the plan, or a new one."""
        if not len(self._queue):
            self._pool.follow()
            self._pool.tidy()
            self._queue, self._block = plan(self._state, self._pool.top(self._width), self._width)
        return self._queue[:most]

    def batch(self, size: int) -> Indices:
        """Return picks to be labelled together; each is conditioned on those before it, which needs no label."""
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
        """Treat points as labelled temporarily; the variances do not depend on the labels."""
        self._state.extend(block_of(self._state, self._pool.features(picks)), np.zeros(len(picks)))
        self._pool.take(picks)
        self._pool.follow()

    def block(self, indices: Indices) -> Block | None:
        """Return the first picks of a new plan as a block; None for other points."""
        if self._block is None or not np.array_equal(self._queue[: len(indices)], indices):
            return None
        return self._block.first(len(indices))

    def skip(self, indices: Indices) -> None:
        """Leave points out that have no label. The plan depends on their labels and is made again."""
        self._pool.take(indices)
        self._queue, self._block = self._queue[:0], None

    def take(self, indices: Indices) -> None:
        """Leave points out. The plan remains valid while its points are taken in order."""
        self._pool.take(indices)
        follows = np.array_equal(self._queue[: len(indices)], indices)
        self._queue = self._queue[len(indices) :] if follows else self._queue[:0]
        # The block is that of the posterior before these points.
        self._block = None
