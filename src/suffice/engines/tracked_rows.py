"""Rows whose predictions are updated with every label: a pool, a test set, or points with a variance."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from suffice.engines.disk_rows import require_memory
from suffice.models.gaussian_state import KernelState, WeightState, subtract_product, trailing_solve
from suffice.models.kernels import centred_kernel, half_squares
from suffice.numerics import Floats, solve_lower

# Number of points that are processed at a time, so that intermediate results stay in the CPU cache.
TILE: Final = 2048


class FollowedRows(ABC):
    """Points that follow a posterior. Base of the rows of functions and of weights.

    Attributes:
        recomputable: Whether means and variances can be computed from the posterior's factor at any time. If so,
            :meth:`jump`, :meth:`mean`, :meth:`variance`, :attr:`resolution` and :meth:`keep` are implemented.
        points: Features of the points, ``m x D``.
        n: Number of labels applied so far.
    """

    recomputable: ClassVar[bool] = False
    points: Floats
    n: int

    @abstractmethod
    def follow(self) -> Iterator[tuple[slice, Floats]]:
        """Yield the rows of the labels since the last call, tile by tile."""

    @abstractmethod
    def whitened(self, indices: "np.typing.NDArray[np.intp]") -> Floats | None:
        """``W`` at some points, ``r x k``, if it is stored."""

    @abstractmethod
    def mark(self) -> Any:
        """The current position, for :meth:`rewind`."""

    @abstractmethod
    def rewind(self, mark: Any) -> None:
        """Go back to a mark."""

    @abstractmethod
    def prior_variance(self) -> Floats:
        """Latent variance of each point before any label."""

    def jump(self) -> None:
        """Update to the posterior without the rows in between."""
        raise NotImplementedError

    def mean(self) -> Floats:
        """Latent mean of each point, from the posterior."""
        raise NotImplementedError

    def variance(self) -> Floats:
        """Latent variance of each point, from the posterior."""
        raise NotImplementedError

    @property
    def resolution(self) -> float:
        """Share of a prior variance below which a variance must be recomputed instead of updated."""
        raise NotImplementedError

    def keep(self, rows: "np.typing.NDArray[np.bool_]") -> None:
        """Follow only some of the points."""
        raise NotImplementedError


class KernelRows(FollowedRows):
    """Points that follow a Gaussian process. All rows, ``labels x points``, are kept to compute the next ones.

    With ``L`` the factor of the labelled points, the rows are ``V = L^-1 k(Z, X)``: a new block of labels appends
    ``M^-1 (k(F, X) - W' V)``. Least cost: ``2 n`` operations and one exponential per point and label.

    Args:
        state: The posterior to follow.
        points: Inputs, ``m x D``.
        capacity: Number of labels to allocate memory for.
        dtype: Number type of the rows; single precision halves the memory.

    Attributes:
        tiles: The points that are processed at a time.

    Examples:
        >>> from suffice.models import GaussianKernel
        >>> from suffice.models.gaussian_state import KernelState
        >>> X = np.array([[0.0], [5.0]])
        >>> state = KernelState(GaussianKernel(np.array([1.0])), noise=1.0, n_features=1)
        >>> rows = KernelRows(state, X, capacity=8, dtype=np.float64)
        >>> state.learn(X[:1], np.array([2.0]))
        >>> ((_, block),) = rows.follow()  # the fall of the variance is the square: 1/2 at the label, 0 far away
        >>> (block**2).round(3)
        array([[0.5, 0. ]])
    """

    def __init__(self, state: KernelState, points: Floats, capacity: int, dtype: "np.typing.DTypeLike") -> None:
        self._state, self.n, self._dtype = state, 0, np.dtype(dtype)
        self.points = points
        scaled = state.kernel.scaled(points)
        self._middle = scaled.mean(axis=0)
        self._scaled = np.asarray(scaled - self._middle)
        self._half = half_squares(self._scaled)
        self.tiles = [slice(k, min(k + TILE, len(points))) for k in range(0, len(points), TILE)]
        # Pages that are never written to take no memory, so unused capacity costs nothing.
        self._rows = [np.zeros((capacity, t.stop - t.start), self._dtype) for t in self.tiles]

    def follow(self) -> Iterator[tuple[slice, Floats]]:
        """Append the rows of the labels since the last call."""
        state, old, new = self._state, self.n, self._state.n
        if new == old:
            return
        lower = state.lower[old:, old:]
        across = state.lower[old:, :old].astype(self._dtype)
        factor = np.asfortranarray(lower)
        fresh = state.kernel.scaled(state.features[old:]) - self._middle
        half = half_squares(fresh)
        self._make_room(new)
        for tile, rows in zip(self.tiles, self._rows, strict=True):
            block = centred_kernel(fresh, half, self._scaled[tile], self._half[tile])
            if old:
                block = subtract_product(block, across, rows[:old])
            block = trailing_solve(factor, block)
            rows[old:new] = block
            yield tile, block
        self.n = new

    def stored(self, tile: slice) -> Floats:
        """``V`` at a tile, ``n x t``, as it is stored; while :meth:`follow` runs, that before the new labels."""
        return np.asarray(self._rows[tile.start // TILE][: self.n])

    def combine(self, tile: slice, weights: Floats) -> Floats:
        """``weights @ V`` at a tile."""
        return np.asarray(weights.astype(self._dtype, copy=False) @ self.stored(tile), dtype=np.float64)

    def whitened(self, indices: "np.typing.NDArray[np.intp]") -> Floats | None:
        """Return ``V`` at some points, ``n x k``; None if it is kept in less than double precision."""
        if self._dtype != np.float64:
            return None
        found = np.empty((self.n, len(indices)))
        for number, (tile, rows) in enumerate(zip(self.tiles, self._rows, strict=True)):
            here = indices // TILE == number
            if here.any():
                found[:, here] = rows[: self.n, indices[here] - tile.start]
        return found

    def mark(self) -> int:
        """Present state, for :meth:`rewind`."""
        return self.n

    def rewind(self, mark: int) -> None:
        """Remove the rows after a mark."""
        self.n = mark

    def prior_variance(self) -> Floats:
        """Latent variance of each point before any label."""
        return self._state.kernel.diagonal(self._scaled)

    def _make_room(self, wanted: int) -> None:
        if not self._rows or wanted <= len(self._rows[0]):
            return
        room = max(wanted, 2 * len(self._rows[0]))
        require_memory(
            room * len(self.points) * self._dtype.itemsize,
            f"following {len(self.points)} items over {room} labels",
            halved=self._dtype == np.float64,
        )
        for number, rows in enumerate(self._rows):
            larger = np.zeros((room, rows.shape[1]), self._dtype)
            larger[: self.n] = rows[: self.n]
            self._rows[number] = larger


class FeatureRows(FollowedRows):
    """Points that follow a linear model. Only the features and the last factor of the precision are kept.

    With ``R`` the factor of the precision before a block, the rows are ``(M^-1 W' R^-1) X'``, ``2 J`` operations per
    point and label.

    Args:
        state: The posterior to follow.
        points: Features, ``m x J``.
        dtype: Number type of the features.

    Examples:
        >>> state = WeightState(alpha=1.0, noise=1.0, n_features=1)
        >>> rows = FeatureRows(state, np.array([[1.0], [2.0]]), np.float64)
        >>> state.learn(np.array([[1.0]]), np.array([2.0]))  # the weight is 1 +- 1/2
        >>> rows.jump()
        >>> rows.mean(), rows.variance().round(3)
        (array([1., 2.]), array([0.5, 2. ]))
    """

    recomputable = True

    def __init__(self, state: WeightState, points: Floats, dtype: "np.typing.DTypeLike") -> None:
        self._state, self.n = state, 0
        self.points = points
        self._columns = np.ascontiguousarray(points.T, dtype=dtype)
        self._before = state.factor

    def follow(self) -> Iterator[tuple[slice, Floats]]:
        """Yield the rows of the labels since the last call."""
        state = self._state
        if state.n == self.n:
            return
        gain = state.gain(self.n, self._before).astype(self._columns.dtype, copy=False)
        self._before, self.n = state.factor, state.n
        for first in range(0, self._columns.shape[1], TILE):
            tile = slice(first, min(first + TILE, self._columns.shape[1]))
            yield tile, gain @ self._columns[:, tile]

    def combine(self, tile: slice, weights: Floats) -> Floats:
        """``weights @ X'`` at a tile."""
        return np.asarray(weights.astype(self._columns.dtype, copy=False) @ self._columns[:, tile], dtype=np.float64)

    def whitened(self, indices: "np.typing.NDArray[np.intp]") -> Floats | None:
        """Return None: no rows are kept."""
        del indices
        return None

    def jump(self) -> None:
        """Update to the posterior, without the rows in between."""
        self._before, self.n = self._state.factor, self._state.n

    def mean(self) -> Floats:
        """Latent mean of each point."""
        return np.asarray(self._state.weights @ self._columns, dtype=np.float64)

    def variance(self) -> Floats:
        """Return the latent variance of each point, ``|R^-1 x|^2``, without loss of digits; ``J^2`` operations each."""
        found = np.empty(self._columns.shape[1])
        for first in range(0, len(found), TILE):
            tile = slice(first, min(first + TILE, len(found)))
            white = solve_lower(self._state.factor, self._columns[:, tile].astype(np.float64, copy=False))
            found[tile] = np.einsum("ij,ij->j", white, white)
        return found

    @property
    def resolution(self) -> float:
        """Share of a prior variance below which an updated variance is not accurate enough."""
        return 1e-6 if self._columns.dtype == np.float64 else 1e-2

    def keep(self, rows: "np.typing.NDArray[np.bool_]") -> None:
        """Follow only some of the points."""
        self._columns = np.ascontiguousarray(self._columns[:, rows])

    def mark(self) -> tuple[int, Floats]:
        """Present state, for :meth:`rewind`."""
        return self.n, self._before

    def rewind(self, mark: tuple[int, Floats]) -> None:
        """Go back to a mark."""
        self.n, self._before = mark

    def prior_variance(self) -> Floats:
        """Latent variance of each point before any label."""
        columns = self._columns.astype(np.float64, copy=False)
        return np.asarray(np.einsum("ij,ij->j", columns, columns) / self._state.alpha)


class SquaredErrors(NamedTuple):
    r"""Squared errors on a test set after each of some labels.

    Attributes:
        expected: Posterior mean of the squared error, :math:`\frac1m \sum_j (y_j - \mu_j)^2 + s_j`, ``k``.
        predictive: Squared error of the posterior mean, :math:`\frac1m \sum_j (y_j - \mu_j)^2`, ``k``.
    """

    expected: Floats
    predictive: Floats


class FollowedError:
    """Squared errors on a test set after every label.

    Args:
        rows: The test points, following the posterior.
        y: Their labels, standardised, ``m``.
        size: Number of test points, if it differs from the number of rows; see :func:`linear_error`.
        constant: Sum of squared errors that no label changes.

    Reference: [IshibashiHino2021] section 5.1, the expectation of the squared error over the posterior.
    """

    def __init__(self, rows: FollowedRows, y: Floats, *, size: int | None = None, constant: float = 0.0) -> None:
        self._rows = rows
        self._y = y
        self._size, self._constant = len(y) if size is None else size, constant
        self._residual = np.array(y, dtype=np.float64)
        self._variance = self._prior = float(rows.prior_variance().sum())
        self._squared = float(self._residual @ self._residual)

    def jump(self) -> None:
        """Update to the posterior of a linear model, from its factor and its weights only."""
        if self._rows.recomputable:
            self._rows.jump()
            self._residual = self._y - self._rows.mean()
            self._squared = float(self._residual @ self._residual)
            self._variance = float(self._rows.variance().sum())

    def follow(self, white: Floats) -> SquaredErrors:
        """Update to the posterior.

        Args:
            white: The whitened residuals of the labels since the last call, ``k``.

        Returns:
            The errors after each of them.
        """
        k = len(white)
        products, pulls = np.zeros((k, k)), np.zeros(k)
        for tile, rows in self._rows.follow():
            products += rows @ rows.T
            pulls += rows @ self._residual[tile]
            self._residual[tile] -= white @ rows
        # Each label subtracts w_i c_i from the residual r: |r|^2 falls by 2 w_i c_i'r - w_i^2 |c_i|^2, where the rows
        # before it are already subtracted from r. Only products of rows are needed.
        before = pulls - np.tril(products, -1) @ white
        norms = np.diag(products)
        squared = self._squared + np.cumsum(white * (white * norms - 2.0 * before))
        self._variance = self._left(float(norms.sum()))
        # Computed from the last label to the first, so that nothing is subtracted: before a label, the variances are
        # larger by its row.
        variance = self._variance + np.cumsum(norms[::-1])[::-1] - norms
        if self._rows.recomputable:
            # The weights give a more accurate value than a long sum.
            self._residual = self._y - self._rows.mean()
        self._squared = float(self._residual @ self._residual)
        squared = np.maximum(squared, 0.0) + self._constant
        return SquaredErrors(np.asarray((squared + variance) / self._size), squared / self._size)

    def _left(self, fall: float) -> float:
        """Return the sum of the variances after a fall; recomputed if subtraction has lost too many digits."""
        left = max(self._variance - fall, 0.0)
        if self._rows.recomputable and left < self._rows.resolution * self._prior:
            return float(self._rows.variance().sum())
        return left


def linear_error(state: WeightState, features: Floats, y: Floats) -> FollowedError:
    r"""Squared errors of a linear model on a test set, at a cost that does not depend on its size.

    With the factorisation :math:`X = Q T` of the test features, :math:`Q` orthonormal and :math:`T` of ``J`` rows,

    .. math:: |y - X w|^2 = |Q'y - T w|^2 + |y - Q Q'y|^2, \qquad \sum_j x_j' \Sigma x_j = \sum_i t_i' \Sigma t_i,

    so the ``J`` rows of ``T`` replace all ``m`` rows of ``X``. A label costs ``2 J^2`` operations instead of
    ``2 J m``, and an orthogonal transformation loses no digits.

    Args:
        state: The posterior to follow.
        features: Test features, ``m x J``.
        y: Their labels, standardised, ``m``.

    Examples:
        >>> state = WeightState(alpha=1.0, noise=1.0, n_features=1)
        >>> error = linear_error(state, np.array([[1.0], [1.0]]), np.array([0.0, 2.0]))
        >>> state.learn(np.array([[1.0]]), np.array([2.0]))  # the weight is 1 +- 1/2
        >>> error.follow(np.array([2.0]) / np.sqrt(2.0)).expected
        array([1.5])
    """
    if len(features) <= features.shape[1]:
        return FollowedError(FeatureRows(state, features, np.float64), y)
    Q, T = np.linalg.qr(features)
    inside = Q.T @ y
    outside = y - Q @ inside
    return FollowedError(FeatureRows(state, T, np.float64), inside, size=len(y), constant=float(outside @ outside))


class Variances(NamedTuple):
    """Latent variances of some points after each of some labels.

    Attributes:
        mean: Over all points, ``k``.
        largest: Largest over the points that are not taken, ``k``; 0 if there is none.
        free_mean: Mean over the points that are not taken, ``k``; 0 if there is none.
    """

    mean: Floats
    largest: Floats
    free_mean: Floats


class FollowedVariance:
    """Latent variances of points after every label, and their posterior means if the labels are given too.

    Args:
        rows: The points, following the posterior.

    Attributes:
        mean: Posterior mean of each point, standardised.
    """

    def __init__(self, rows: FollowedRows) -> None:
        self._rows = rows
        self._variance = np.array(rows.prior_variance(), dtype=np.float64)
        self._prior = self._variance.copy()
        self._free: NDArray[np.bool_] = np.ones(len(self._variance), dtype=bool)
        self.mean = np.zeros(len(self._variance))

    def jump(self) -> None:
        """Update to the posterior of a linear model, from its factor and its weights only."""
        if self._rows.recomputable:
            self._rows.jump()
            self._variance, self.mean = self._rows.variance(), self._rows.mean()

    def take(self, indices: Any) -> None:
        """Leave points out of ``largest`` and ``free_mean`` from now on."""
        self._free[indices] = False

    def follow(self, count: int, taken: Any = None, white: Floats | None = None) -> Variances:
        """Update to the posterior.

        Args:
            count: Number of labels since the last call, ``k``.
            white: Their whitened residuals, ``k``, if the means are to be updated too.
            taken: Indices of the labelled points, in order; -1 for a label of another item. Each point counts as taken
                from its own label on.
        """
        total, largest, free = np.zeros(count), np.zeros(count), np.zeros(count)
        when = np.full(len(self._variance), count)
        when[~self._free] = 0
        if taken is not None:
            known = np.asarray(taken) >= 0
            points = np.asarray(taken)[known]
            when[points] = np.minimum(when[points], np.arange(count)[known])
            self.take(points)
        order = np.arange(count)[:, None]
        for tile, rows in self._rows.follow():
            falls = np.cumsum(rows.astype(np.float64, copy=False) ** 2, axis=0)
            after = np.maximum(self._variance[tile] - falls, 0.0)
            total += after.sum(axis=1)
            unlabelled = np.where(order < when[tile], after, 0.0)
            np.maximum(largest, unlabelled.max(axis=1, initial=0.0), out=largest)
            free += unlabelled.sum(axis=1)
            self._variance[tile] = after[-1]
            if white is not None:
                self.mean[tile] += white @ rows
        if white is not None and self._rows.recomputable:
            self.mean = self._rows.mean()
        self._refresh(total, largest, free)
        left = (order < when).sum(axis=1)
        return Variances(total / max(len(self._variance), 1), largest, free / np.maximum(left, 1))

    def _refresh(self, total: Floats, largest: Floats, free: Floats) -> None:
        """Recompute variances for which subtraction has lost too many digits, and with them the last entries."""
        if not self._rows.recomputable or not len(total):
            return
        if (self._variance < self._rows.resolution * self._prior).any():
            self._variance = self._rows.variance()
            unlabelled = self._variance[self._free]
            total[-1], largest[-1], free[-1] = self._variance.sum(), unlabelled.max(initial=0.0), unlabelled.sum()
