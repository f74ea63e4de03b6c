r"""A pool scored by how much a label reduces the mean variance of all its points.

The label of ``x`` reduces the latent variance of ``z`` by :math:`c(x, z)^2 / (s(x) + \text{noise})`, where ``c`` is the
latent covariance and ``s`` the latent variance. Summed over points ``z_1 .. z_q``, all or a sample of the pool:

.. math:: S(x) = \sum_j c(x, z_j)^2, \qquad \text{score}(x) = \frac{1}{q} \frac{S(x)}{s(x) + \text{noise}}.

``S`` and ``s`` are updated with every label, with bounds of their rounding errors. The few points that could be best
within these bounds are recomputed in double precision. So the picks are exact, and rounding errors do not accumulate.
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from suffice.engines.tracked_rows import TILE, FeatureRows, FollowedRows, KernelRows
from suffice.engines.variance_pool import TIE, Indices
from suffice.models.gaussian_state import Block, GaussianState, KernelState, WeightState, block_of
from suffice.models.kernels import centred_kernel, half_squares
from suffice.numerics import Floats, solve_lower, solve_upper

#: Size of the sample of the pool over which the mean variance of a Gaussian process is computed.
SAMPLE: Final = 256
# Number type of the prior covariances of pool and sample. With few labels, most of the data that a pick reads is these.
_STORED: Final = np.float32
# Number of terms of a product that are summed in this type. Longer sums are made in double precision.
_TERMS: Final = 128
# Factor of errors over those of a single rounding.
_MARGIN: Final = 8.0
# Number of points that are recomputed at a time.
_AT_ONCE: Final = 1024
# Numbers of picks that are planned at first and at most, and largest number of picks until the next plan.
_FIRST_PLAN, _LONGEST_PLAN, _LONGEST_PAUSE = 4, 16, 64
_EPS: Final = float(np.finfo(np.float64).eps)


def _rounding(dtype: Any) -> float:
    """Relative rounding error of a number type."""
    # With the type of ``np.dtype`` in between, mypy takes ten seconds for this line.
    return float(np.finfo(dtype).eps)


def sample_of(size: int, rng: np.random.Generator, most: int = SAMPLE) -> Indices:
    """Return a sample of a pool: all points, without random numbers, or ``most`` drawn at random; ascending.

    Examples:
        >>> sample_of(4, np.random.default_rng(0))
        array([0, 1, 2, 3])
        >>> len(sample_of(1000, np.random.default_rng(0), 256))
        256
    """
    if size <= most:
        return np.arange(size)
    return np.sort(rng.choice(size, most, replace=False)).astype(np.intp)


def sample_memory(size: int, labels: int, itemsize: int = np.dtype(_STORED).itemsize, most: int = SAMPLE) -> int:
    """Return the bytes of the sample of a Gaussian process, in addition to the rows of the pool.

    Examples:
        >>> sample_memory(1000, 10)
        1044480
    """
    return min(size, most) * (itemsize * size + 8 * labels)


class _Update(NamedTuple):
    """Effect of new labels on the points of a tile, with rounding errors.

    Attributes:
        rows: ``R``, whitened rows of the points, ``k x t``.
        products: ``P = R_z C``, ``k x t``, with ``C`` the covariance of sample and points before these labels.
        of_products: Error of a product in units of the point's scale, ``k``; and a constant, ``k``.
        of_rows: Error of a row, in units of the point's size, ``k``.
    """

    rows: Floats
    products: Floats
    of_products: tuple[Floats, Floats]
    of_rows: Floats


class PlannedPicks(NamedTuple):
    """Picks that were planned from the points of the largest scores.

    Attributes:
        indices: The picks, in order.
        block: These points as a block.
        mark: Mark of the pool before them.
        confirm: Function that updates the pool to the posterior after these picks. It returns how many of them, from
            the first one, have a larger score than all points of the pool that they were not planned from.
    """

    indices: Indices
    block: Block
    mark: Any
    confirm: Callable[[], int]


class ReductionPool(Protocol):
    """A pool scored by the reduction of its mean variance. It may be in memory or on a GPU."""

    def follow(self) -> None:
        """Update to the posterior."""

    def jump(self) -> None:
        """Update to the posterior, without the labels in between."""

    def contenders(self, computed: Indices | None = None) -> Indices:
        """Points whose score could be the largest, within the bounds of rounding; ascending.

        Args:
            computed: Points to choose from, which were recomputed since the last update; all if left out.
        """

    def compute(self, indices: Indices) -> None:
        """Recompute some points in double precision."""

    def features(self, indices: Indices) -> Floats:
        """Features of some points."""

    def take(self, indices: Indices) -> None:
        """Leave points out from now on. They stay in the mean."""

    def plan(self, first: int, most: int) -> PlannedPicks | None:
        """Plan picks from the points of the largest scores; None if that is not possible, or would not be faster.

        Args:
            first: The first pick.
            most: Largest number of picks.
        """

    def mark(self) -> Any:
        """Present state, for :meth:`rewind`."""

    def rewind(self, mark: Any) -> None:
        """Go back to a mark."""


class CovarianceSums(ABC):
    """Latent variance and sum of squared covariances with the sample, of every point of a pool, and their errors.

    Args:
        state: The posterior.
        rows: The pool, following it.
        size: Points in the sample.
    """

    def __init__(self, state: GaussianState, rows: FollowedRows, size: int) -> None:
        self._state, self._rows, self.size = state, rows, size
        m = len(rows.points)
        self._variance, self._variance_error = np.zeros(m), np.zeros(m)
        self._squares, self._squares_error = np.zeros(m), np.zeros(m)
        # Norm of the operands of products and rows; errors are a share of it.
        self._scale, self._length = np.zeros(m), np.ones(m)
        self._free: NDArray[np.bool_] = np.ones(m, dtype=bool)
        self._begun = False

    def features(self, indices: Indices) -> Floats:
        """Features of some points."""
        return self._rows.points[indices]

    def take(self, indices: Indices) -> None:
        """Leave points out from now on. They stay in the mean."""
        self._free[indices] = False

    def contenders(self, computed: Indices | None = None) -> Indices:
        """Points whose score could be the largest, within the bounds of rounding; ascending.

        Args:
            computed: Points to choose from, which were recomputed since the last update; all if left out.
        """
        low, high = self.bounds(slice(None) if computed is None else computed)
        if computed is not None:
            found: Indices = computed[high >= low.max(initial=0.0)]
            return found
        best = low[self._free].max(initial=0.0)
        return np.flatnonzero(self._free & (high >= best))

    def follow(self) -> None:
        """Update to the posterior; the pool is read once."""
        new = self._state.n - self._rows.n
        if not self._begun or self._anew(new):
            self._compute_all()
            self._begun = True
        elif new:
            self._update_all()

    def jump(self) -> None:
        """Discard updated values: everything is computed from the posterior when it is needed."""
        self._begun = False

    def bounds(self, where: Indices | slice = slice(None)) -> tuple[Floats, Floats]:
        """Return lower and upper bounds on the reduction of the mean variance by the label of each point.

        Args:
            where: The points; all if left out.
        """
        squares, squares_error = self._squares[where], self._squares_error[where]
        variance, variance_error = self._variance[where], self._variance_error[where]
        low = self._reduction(squares - squares_error, variance + variance_error)
        return low, self._reduction(squares + squares_error, variance - variance_error)

    def scores(self) -> Floats:
        """Return the reduction of the mean variance by the label of each point, from updated values, ``m``."""
        return self._reduction(self._squares.copy(), self._variance.copy())

    def _reduction(self, squares: Floats, variance: Floats) -> Floats:
        """Compute ``squares / (q (variance + noise))`` in place, with negative values set to 0."""
        np.maximum(squares, 0.0, out=squares)
        np.maximum(variance, 0.0, out=variance)
        variance += self._state.noise
        variance *= self.size
        squares /= variance
        return squares

    def compute(self, indices: Indices) -> None:
        """Recompute some points in double precision."""
        for first in range(0, len(indices), _AT_ONCE):
            part = indices[first : first + _AT_ONCE]
            self._put(part, *self._exact(self._rows.points[part], self._rows.whitened(part)))

    def plan(self, first: int, most: int) -> None:
        """Return None: picks are not planned."""
        del first, most

    def mark(self) -> Any:
        """Present state, for :meth:`rewind`."""
        kept = (self._variance, self._variance_error, self._squares, self._squares_error)
        return self._rows.mark(), self._begun, self._free.copy(), tuple(each.copy() for each in kept)

    def rewind(self, mark: Any) -> None:
        """Go back to a mark."""
        self._rows.rewind(mark[0])
        self._begun, self._free = mark[1], mark[2].copy()
        self._variance, self._variance_error, self._squares, self._squares_error = (each.copy() for each in mark[3])

    @abstractmethod
    def _anew(self, new: int) -> bool:
        """Whether recomputing all points is faster than updating them."""

    @abstractmethod
    def _compute_all(self) -> None:
        """Recompute all points from the posterior."""

    @abstractmethod
    def _update_all(self) -> None:
        """Update all points by the labels since the last call."""

    @abstractmethod
    def _exact(self, points: Floats, whitened: Floats | None) -> tuple[Floats, Floats]:
        """Variance and sum of squares of some points."""

    @abstractmethod
    def _put(self, where: Indices | slice, variance: Floats, squares: Floats) -> None:
        """Store recomputed values, with their errors."""

    def _apply(self, tile: slice, gram: Floats, update: _Update) -> None:
        r"""Update a tile: :math:`S' = S - 2 \sum_i R_i P_i + \sum_{il} R_i G_{il} R_l`, with ``G = R_z R_z'``."""
        rows, products = update.rows, update.products
        within = gram @ rows
        size, scale, length = np.abs(rows), self._scale[tile], self._length[tile]
        self._squares_error[tile] += 2.0 * (
            scale * (update.of_products[0] @ size)
            + update.of_products[1] @ size
            + length * (update.of_rows @ np.abs(within - products))
            + _EPS * np.abs(self._squares[tile])
        )
        self._variance_error[tile] += 2.0 * length * (update.of_rows @ size) + _EPS * np.abs(self._variance[tile])
        products *= -2.0
        products += within
        self._squares[tile] += np.einsum("ij,ij->j", rows, products)
        self._variance[tile] -= np.einsum("ij,ij->j", rows, rows)


class KernelSums(CovarianceSums):
    """The sums of a Gaussian process over a sample of the pool.

    With ``V`` and ``V_z`` the whitened rows of pool and sample, the covariance is ``C = k(Z, X) - V_z' V``. It is not
    stored. One label needs ``P = R_z C = R_z k(Z, X) - (R_z V_z') V``. Least cost for each point and pick: ``n``
    numbers are read twice, the second time from a tile that was just read, and ``q`` numbers in single precision once.

    Args:
        state: The posterior.
        rows: The pool, following it.
        sample: The sample of the pool: indices, or features, ``q x D``.
        capacity: Number of labels to allocate memory for.
        dtype: Number type of the rows.
    """

    def __init__(
        self,
        state: KernelState,
        rows: KernelRows,
        sample: Indices | Floats,
        capacity: int,
        dtype: "np.typing.DTypeLike" = np.float64,
    ) -> None:
        super().__init__(state, rows, len(sample))
        self._kernel_state, self._pool = state, rows
        chosen: Any = sample if sample.ndim == 2 else rows.points[sample]
        self._sample = KernelRows(state, chosen, capacity, np.float64)
        self._middle = state.kernel.scaled(rows.points).mean(axis=0)
        self._centred = state.kernel.scaled(chosen) - self._middle
        self._half = half_squares(self._centred)
        self._row_eps = _rounding(dtype)
        self._prior: list[Floats] = []

    def _anew(self, new: int) -> bool:
        n = self._state.n
        return bool(new * (self.size + 2 * (n - new) + new) > n * self.size)

    def _compute_all(self) -> None:
        for rows in (self._sample, self._pool):
            deque(rows.follow(), maxlen=0)
        first = not self._prior
        for tile in self._pool.tiles:
            prior = self._covariance(self._rows.points[tile])
            if first:
                self._prior.append(prior.astype(_STORED))
                self._scale[tile] = np.sqrt(np.einsum("ij,ij->j", prior, prior))
            self._put(tile, *self._sums(prior, np.asarray(self._pool.stored(tile), dtype=np.float64)))
            # Rows in single precision have rounding errors themselves.
            self._squares_error[tile] += 2.0 * self._row_eps * np.sqrt(self.size * self._squares[tile])
            self._variance_error[tile] += self._row_eps

    def _update_all(self) -> None:
        old = self._pool.n
        white = np.concatenate([rows for _, rows in self._sample.follow()], axis=1)
        across = np.zeros((len(white), old))
        for tile in self._sample.tiles:
            # The sample is up to date, the pool is not.
            across += white[:, tile] @ self._sample.stored(tile)[:old].T
        gram, single = white @ white.T, white.astype(_STORED)
        parts = [slice(first, first + _TERMS) for first in range(0, self.size, _TERMS)]
        errors = (
            _MARGIN * float(np.finfo(_STORED).eps) * np.linalg.norm(white, axis=1),
            _MARGIN * self._row_eps * np.linalg.norm(across, axis=1),
        )
        of_rows = self._row_eps / np.diag(self._kernel_state.lower)[old:]
        for prior, (tile, rows) in zip(self._prior, self._pool.follow(), strict=True):
            products = -self._pool.combine(tile, across)
            for part in parts:
                products += single[:, part] @ prior[part]
            self._apply(tile, gram, _Update(rows, products, errors, of_rows))

    def _exact(self, points: Floats, whitened: Floats | None) -> tuple[Floats, Floats]:
        return self._sums(self._covariance(points), self._state.whiten(points) if whitened is None else whitened)

    def _sums(self, prior: Floats, whitened: Floats) -> tuple[Floats, Floats]:
        for tile in self._sample.tiles:
            prior[tile] -= self._sample.stored(tile).T @ whitened
        variance = 1.0 - np.einsum("ij,ij->j", whitened, whitened)
        return variance, np.asarray(np.einsum("ij,ij->j", prior, prior))

    def _covariance(self, points: Floats) -> Floats:
        """``k(Z, F)``, ``q x k``."""
        centred = self._kernel_state.kernel.scaled(points) - self._middle
        return centred_kernel(self._centred, self._half, centred, half_squares(centred))

    def _put(self, where: Indices | slice, variance: Floats, squares: Floats) -> None:
        # A covariance is a difference of numbers up to 1.
        error = 2.0 * TIE * np.sqrt(self.size)
        self._variance[where], self._variance_error[where] = variance, TIE
        self._squares[where], self._squares_error[where] = squares, error * (2.0 * np.sqrt(squares) + error)

    def mark(self) -> Any:
        """Present state, for :meth:`rewind`."""
        return self._sample.mark(), super().mark()

    def rewind(self, mark: Any) -> None:
        """Go back to a mark."""
        self._sample.rewind(mark[0])
        super().rewind(mark[1])


class FeatureSums(CovarianceSums):
    r"""The sums of a linear model over the whole pool.

    :math:`S(x) = x' \Sigma M \Sigma x` with :math:`M = \sum_j z_j z_j'` over the whole pool. A label costs ``4 J``
    operations per point.

    Args:
        state: The posterior.
        rows: The pool, following it.
        dtype: Number type of the rows.
    """

    def __init__(self, state: WeightState, rows: FeatureRows, dtype: "np.typing.DTypeLike" = np.float64) -> None:
        super().__init__(state, rows, len(rows.points))
        self._weights, self._pool = state, rows
        # M = T'T; the condition number of T is only the square root of that of M.
        self._root: Floats = np.asarray(np.linalg.qr(rows.points, mode="r"))
        self._scale = self._length = np.sqrt(np.einsum("ij,ij->i", rows.points, rows.points))
        self._eps = _rounding(dtype)
        self._factor = state.factor

    def _anew(self, new: int) -> bool:
        return new > len(self._root.T)

    def _compute_all(self) -> None:
        self._pool.jump()
        self._factor = self._weights.factor
        for first in range(0, len(self._variance), TILE):
            tile = slice(first, min(first + TILE, len(self._variance)))
            self._put(tile, *self._exact(self._rows.points[tile], None))

    def _update_all(self) -> None:
        gain, factor = self._weights.gain(self._pool.n, self._factor), self._factor
        moved = gain @ self._root.T
        # P = G M Sigma X'.
        towards = solve_upper(factor, solve_lower(factor, (moved @ self._root).T)).T
        gram = moved @ moved.T
        # A solution with R loses digits in proportion to the range of its diagonal.
        span = float(np.diag(factor).max() / np.diag(factor).min())
        errors = _MARGIN * self._eps * span**2 * np.linalg.norm(towards, axis=1), np.zeros(len(gain))
        of_rows = _MARGIN * self._eps * span * np.linalg.norm(gain, axis=1)
        for tile, rows in self._pool.follow():
            products = self._pool.combine(tile, towards)
            self._apply(tile, gram, _Update(np.asarray(rows, dtype=np.float64), products, errors, of_rows))
        self._factor = self._weights.factor

    def _exact(self, points: Floats, whitened: Floats | None) -> tuple[Floats, Floats]:
        del whitened
        white = self._weights.whiten(points)
        spread = solve_lower(self._weights.factor, self._root.T).T @ white
        return np.einsum("ij,ij->j", white, white), np.einsum("ij,ij->j", spread, spread)

    def _put(self, where: Indices | slice, variance: Floats, squares: Floats) -> None:
        self._variance[where], self._variance_error[where] = variance, TIE * variance
        self._squares[where], self._squares_error[where] = squares, 4.0 * TIE * squares

    def mark(self) -> Any:
        """Present state, for :meth:`rewind`."""
        return self._factor, super().mark()

    def rewind(self, mark: Any) -> None:
        """Go back to a mark."""
        self._factor = mark[0]
        super().rewind(mark[1])


class LargestReduction:
    """Chooses the point whose label reduces the mean variance of the pool most, repeatedly.

    A score can grow when another point is labelled, so that bounds from the past do not hold. But the next picks are
    almost always among the points whose scores are largest now. Where that is faster, picks are planned from these
    points only. Then the pool is read once for all of them, and a pick is valid if no other point had a larger score in
    its turn. So the picks are those of a loop without planning.

    Args:
        state: The posterior.
        sums: The pool that follows it.
    """

    def __init__(self, state: GaussianState, sums: ReductionPool) -> None:
        self._state, self._sums = state, sums
        self._queue: Indices = np.zeros(0, dtype=np.intp)
        self._block: Block | None = None
        # Mark of the pool before planned picks, if it follows them already; and the points that were taken since.
        self._before: Any = None
        self._taken: Indices = self._queue
        # Length of the next plan; plans in a row that had no second pick, and picks until the next plan after these.
        self._length, self._failed, self._pause = _FIRST_PLAN, 0, 0

    def jump(self) -> None:
        """Update to the posterior, without the labels in between."""
        self._drop_plan()
        self._sums.jump()

    def propose(self, most: int) -> Indices:
        """Return the next picks: the rest of the plan, or a new one."""
        if not len(self._queue):
            self._queue, self._block = self._best(), None
            if len(self._queue):
                self._plan(min(most, self._length))
        return self._queue[:most]

    def batch(self, size: int) -> Indices:
        """Return picks to be labelled together; each is conditioned on those before it, which needs no label."""
        picks = self.propose(size)
        if len(picks) == size or not len(picks):
            return picks
        here, there = self._state.mark(), self._sums.mark()
        last = picks
        while len(picks) < size and len(last):
            self._state.extend(block_of(self._state, self._sums.features(last)), np.zeros(len(last)))
            self._sums.take(last)
            last = self._best()
            picks = np.append(picks, last)
        self._state.rewind(here)
        self._sums.rewind(there)
        return picks

    def block(self, indices: Indices) -> Block | None:
        """Return the first picks of a new plan as a block; None for other points."""
        if self._block is None or not np.array_equal(self._queue[: len(indices)], indices):
            return None
        return self._block.first(len(indices))

    def skip(self, indices: Indices) -> None:
        """Leave points out that have no label. They stay in the mean."""
        self._drop_plan()
        self._sums.take(indices)

    def take(self, indices: Indices) -> None:
        """Leave points out. The plan remains valid while its points are taken in order."""
        planned = min(len(self._queue), len(indices))
        self._sums.take(indices)
        if self._before is not None:
            self._taken = np.append(self._taken, indices)
        if not np.array_equal(self._queue[:planned], indices[:planned]):
            self._drop_plan()
        # The block is that of the posterior before these points.
        self._queue, self._block = self._queue[planned:], None
        if not len(self._queue):
            self._before = None

    def _drop_plan(self) -> None:
        """Forget picks that were planned."""
        self._queue, self._block = self._queue[:0], None
        if self._before is not None:
            self._sums.rewind(self._before)
            self._sums.take(self._taken)
            self._before = None

    def _plan(self, length: int) -> None:
        """Plan the picks after the first one, and update the pool to the posterior after all of them."""
        if self._pause or length == 1:
            self._pause = max(0, self._pause - 1)
            return
        plan = self._sums.plan(int(self._queue[0]), length)
        if plan is None:
            return
        here = self._state.mark()
        try:
            self._state.extend(plan.block, np.zeros(len(plan.indices)))
            valid = plan.confirm()
        finally:
            self._state.rewind(here)
        self._queue, self._block = plan.indices[:valid], plan.block
        if valid < len(plan.indices):
            self._sums.rewind(plan.mark)
        else:
            self._before, self._taken = plan.mark, self._queue[:0]
        self._length = min(2 * valid, _LONGEST_PLAN)
        self._failed = 0 if valid > 1 else self._failed + 1
        self._pause = min(2**self._failed, _LONGEST_PAUSE) - 1

    def _best(self) -> Indices:
        """Return the point of largest score, ties (up to rounding) to the lowest index; empty if no point is left."""
        self._sums.follow()
        contenders = self._sums.contenders()
        if len(contenders) > 1:
            self._sums.compute(contenders)
            contenders = self._sums.contenders(contenders)
        return contenders[:1]
