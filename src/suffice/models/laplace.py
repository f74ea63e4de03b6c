"""Laplace posteriors of logistic regression, updated label by label, for two classes or many."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from math import sqrt
from typing import Any, Final, NamedTuple, Self, TypeAlias

import numpy as np
from scipy.linalg.blas import dsymv, dtrmm
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs, dtrtri
from scipy.optimize import minimize_scalar
from scipy.special import softmax

from suffice.divergence import KLPair, kl
from suffice.errors import InvalidValueError
from suffice.models.threads import one_thread
from suffice.numerics import Floats
from suffice.posteriors import Gaussian

#: If a pivot is below this share of its diagonal entry, the prior is lost in the rounding of the sum over labels.
LEAST_PIVOT: Final = 1e-7
_EPS: Final = float(np.finfo(np.float64).eps)
_TINY: Final = float(np.finfo(np.float64).tiny)
# Distance to the minimum, in posterior standard deviations, from which one Newton step is exact up to rounding.
_NEAR: Final = 1e-9
# A step with an old Hessian must leave at most this share of the distance; otherwise a new Hessian is cheaper.
_CONTRACTION: Final = 0.25
# Largest change of a logit for which the Hessian is nearly constant.
_SLIGHT: Final = 0.01
# After this many Hessians without a lower objective or half the distance, the remaining distance is rounding error.
_STALLS: Final = 3
_MOST_HESSIANS: Final = 300
# From this number of classes on, one large product is faster than one for each pair of classes.
_MANY_CLASSES: Final = 8
# Largest size of its factor, in bytes.
_LARGEST_PRODUCT: Final = 1 << 25
# Norm of the gradient after the last step, a tenth of the documented bound.
_GRADIENT: Final = 1e-9
# From this number of weights on, products and factors of P x P matrices dominate the cost of a label. A divergence from
# traces needs no product, and conjugate gradients need fewer factors.
_MANY_WEIGHTS: Final = 400
# Largest share of the squared distance that may remain after conjugate gradients, and most products for one step.
_INEXACT: Final = 0.01
_MOST_PRODUCTS: Final = 60
# Most steps with one factor.
_MOST_STEPS: Final = 30
# Number of rows for which variances are computed at a time, so that intermediate results fit into the CPU cache.
_ROWS: Final = 1024
# The same in bytes, for many classes.
_LARGEST_TILE: Final = 1 << 20
# From this pivot on, a variance computed from the covariance has an error of about 1e-11. Computing it from the factor
# is slower.
_SAFE_PIVOT: Final = 1e-4


# Multiplies a vector by the inverse of a Hessian.
_Solver: TypeAlias = Callable[[Floats], Floats]


class Snapshot:
    """The posterior ``N(weights, information^-1)`` after some label; nothing is copied.

    Attributes:
        weights: ``P`` numbers, the minimum.
        information: ``H``, ``P x P``.
        factor: Lower ``L`` with ``H = L L'``.
        pivot: Smallest share of a diagonal entry of ``H`` that is left in ``L``; see :data:`LEAST_PIVOT`.
    """

    def __init__(self, weights: Floats, information: Floats, factor: Floats, pivot: float) -> None:
        self.weights, self.information, self.factor, self.pivot = weights, information, factor, pivot

    @cached_property
    def inverse_factor(self) -> Floats:
        """``L^-1``, lower triangular."""
        return np.asarray(dtrtri(self.factor, lower=1)[0])

    @cached_property
    def covariance(self) -> Floats:
        """The lower triangle of ``H^-1``; above the diagonal are zeros."""
        return np.asarray(dpotri(self.factor, lower=1)[0])

    def solve(self, vector: Floats) -> Floats:
        """Return ``H^-1 v`` from the covariance, of which one triangle is read."""
        return np.asarray(dsymv(1.0, self.covariance, vector, lower=1))

    def trace_with(self, change: Floats) -> float:
        """``tr(H^-1 change)`` for a symmetric matrix."""
        diagonal = float(self.covariance.diagonal() @ change.diagonal())
        # In the same memory order as the other matrix, so that nothing is copied; the matrix is symmetric.
        return 2.0 * float(np.vdot(self.covariance.T, change)) - diagonal

    def gaussian(self) -> Gaussian:
        """Return the posterior as a Gaussian, for :func:`suffice.kl`."""
        # Made from the state in which a Gaussian is pickled, because the factor is already known.
        value = Gaussian.__new__(Gaussian)
        value.__setstate__({"mean": self.weights.copy(), "factor": self.factor.copy(), "of": "precision"})
        return value


def logit_factors(inverse: Floats, outputs: int) -> Floats:
    """``R_k`` with variance ``|R_k x|^2`` of logit ``k`` at features ``x``, ``C x J x J``.

    Args:
        inverse: Inverse of the lower factor of the precision, ``P x P``.
        outputs: ``C``.
    """
    width = len(inverse) // outputs
    found = np.empty((outputs, width, width))
    for k, first in enumerate(range(0, len(inverse), width)):
        # Rows above the block are 0 in a lower triangle.
        block = inverse[first:, first : first + width]
        found[k] = block if len(block) == width else np.linalg.qr(block, mode="r")
    return found


def latent(state: "Snapshot | LaplaceWeights", outputs: int, features: Floats) -> tuple[Floats, Floats]:
    """Mean and variance of the logits of ``m`` rows, each ``m`` numbers, or ``m x K`` for many classes.

    Args:
        state: The posterior.
        outputs: Number of logits of a row, ``C``.
        features: ``m x J``.
    """
    mean = features @ state.weights.reshape(outputs, -1).T
    if outputs == 1:
        return mean[:, 0], _squared_norms(state.inverse_factor, features)
    if state.pivot >= _SAFE_PIVOT:
        return mean, _block_forms(state.covariance, features)
    variance = np.empty_like(mean)
    for k, factor in enumerate(logit_factors(state.inverse_factor, outputs)):
        # Squares of a factor lose no digits.
        spread = features @ factor.T
        variance[:, k] = np.einsum("ij,ij->i", spread, spread)
    return mean, variance


@dataclass(frozen=True, eq=False)
class LaplaceWeights:
    """A posterior of the weights after some label, without the labels. Pools are scored with it.

    Attributes:
        weights: Mean, ``J`` numbers, or ``K x J`` for many classes.
        factor: Lower factor of the precision, ``P x P``.
        alpha: Prior precision.
        n_classes: ``K``.
        pivot: As for :class:`Snapshot`.
    """

    weights: Floats
    factor: Floats
    alpha: float
    n_classes: int
    pivot: float

    @cached_property
    def information(self) -> Floats:
        """The precision, ``P x P``."""
        return np.asarray(self.factor @ self.factor.T)

    @cached_property
    def inverse_factor(self) -> Floats:
        """The inverse of the factor."""
        return np.asarray(dtrtri(self.factor, lower=1)[0])

    @cached_property
    def covariance(self) -> Floats:
        """The lower triangle of the covariance; above the diagonal are zeros."""
        return np.asarray(dpotri(self.factor, lower=1)[0])

    @property
    def nbytes(self) -> int:
        """Bytes of weights and factor."""
        return self.weights.nbytes + self.factor.nbytes

    def latent(self, features: Floats) -> tuple[Floats, Floats]:
        """Mean and variance of the logits of ``m`` rows, each ``m`` numbers, or ``m x K`` for many classes."""
        return latent(self, len(np.atleast_2d(self.weights)), features)


class _Point(NamedTuple):
    """Weights (``P``), the logits of all labelled rows there, and the gradient (``P``)."""

    weights: Floats
    logits: Floats
    gradient: Floats


class GrowingPosterior(ABC):
    """Common part of the binary and the multi-class posterior: rows, search of the minimum, and results.

    Args:
        n_features: ``J``.
        n_classes: ``K``; labels are class codes ``0 .. K-1``.
        alpha: Prior precision, above 0.
        outputs: Number of logits of a row, ``C``: 1 for two classes, else ``K``. There are ``P = C J`` weights.

    Attributes:
        n: Number of labels.
        alpha: Prior precision.
    """

    def __init__(self, n_features: int, n_classes: int, alpha: float, outputs: int) -> None:
        if not (0.0 < alpha < np.inf):
            raise InvalidValueError(f"alpha is the precision of the prior and must be above 0, not {alpha!r}")
        self.n_features, self.n_classes, self.alpha, self.n = n_features, n_classes, float(alpha), 0
        self._outputs, self._longest = outputs, 0.0
        self._unreached: Floats | None = None
        # One column per label: a product with the first n columns needs no copy, and long rows are fast to read.
        # Zeros, because the array is saved, and a file must not contain earlier contents of the memory.
        self._columns, self._scratch = np.zeros((2, n_features, 16))
        self._codes = np.zeros(16, dtype=np.intp)
        zero = np.zeros(outputs * n_features)
        prior = np.eye(len(zero), order="F")
        self._state = Snapshot(zero, self.alpha * prior, np.sqrt(self.alpha) * prior, 1.0)
        self._point = _Point(zero, self._logits(zero, 0), zero)

    @property
    def weights(self) -> Floats:
        """The minimum, ``J`` numbers, or ``K x J`` for many classes."""
        return self._state.weights

    @property
    def information(self) -> Floats:
        """The Hessian ``H``, ``P x P``."""
        return self._state.information

    @property
    def factor(self) -> Floats:
        """Lower Cholesky factor of :attr:`information`, ``P x P``."""
        return self._state.factor

    def snapshot(self) -> Snapshot:
        """Return the state for :func:`divergences`; it does not change when labels are added."""
        return self._state

    def latent(self, features: Floats) -> tuple[Floats, Floats]:
        """Mean and variance of the logits of ``m`` rows, each ``m`` numbers, or ``m x K`` for many classes."""
        return latent(self._state, self._outputs, features)

    def frozen(self) -> "LaplaceWeights":
        """Return the present posterior, without the labels."""
        return LaplaceWeights(self.weights, self.factor, self.alpha, self.n_classes, self._state.pivot)

    def posterior(self) -> Gaussian:
        """Return the posterior over all ``P`` weights, as a Gaussian with its precision."""
        return self._state.gaussian()

    def labelled(self) -> tuple[Floats, Any]:
        """Features (``n x J``) and class codes (``n``) of all labels so far."""
        return np.ascontiguousarray(self._columns[:, : self.n].T), self._codes[: self.n].copy()

    def extend(self, features: Floats, labels: Any) -> Self:
        """Add labels, move to the new minimum, and return the object itself.

        Steps with the old Hessian and the new rows are repeated while each leaves at most a quarter of the distance
        (with 400 weights or more, Newton steps by conjugate gradients). Then the Hessian at the point reached is
        formed, and the last step is made with it. If that does not converge, a line search along the Newton step
        ensures that the objective falls with every Hessian, from any starting point. The gradient at the end is at most
        1e-8, or its rounding error if that is larger: ``eps sum_i |x_ij| q_i (1 + sum_k |x_ik w_k|)`` for feature
        ``j``, with ``q_i`` the probability of the classes other than label ``i``. This happens with features of scale
        1e8.

        Args:
            features: ``k x J``.
            labels: ``k`` class codes.

        Raises:
            InvalidValueError: Shapes do not match, or a code is not that of a class.
        """
        features, labels = np.asarray(features, dtype=np.float64), np.asarray(labels)
        if features.shape != (len(labels), self.n_features):
            raise InvalidValueError(f"features must be {len(labels)} x {self.n_features}, not {features.shape}")
        if not len(labels):
            return self
        if not 0 <= labels.min() <= labels.max() < self.n_classes:
            raise InvalidValueError(f"labels must be codes from 0 to {self.n_classes - 1}, not {labels.tolist()}")
        start = self._append(features, labels)
        here = self._point
        logits = self._logits(here.weights, start)
        gradient = here.gradient + self._pull(logits, start)
        whole = np.concatenate([here.logits, logits], axis=1)
        there = _Point(here.weights, whole, gradient)
        if len(here.weights) >= _MANY_WEIGHTS:
            # The new rows change the Hessian in few directions, so conjugate gradients need no new factor.
            self._settle(there, self._state.solve if start else lambda vector: vector / self.alpha)
        else:
            self._settle(there, _solver(self._state.information + self._curvature(logits, start)))
        return self

    def reweigh(self, alpha: float) -> Self:
        """Move to the minimum under another prior precision, with the same labels."""
        here, change = self._point, alpha - self.alpha
        self.alpha = float(alpha)
        moved = self._state.information.copy(order="F")
        np.fill_diagonal(moved, moved.diagonal() + change)
        self._settle(here._replace(gradient=here.gradient + change * here.weights), _solver(moved))
        return self

    def objective(self, here: _Point | None = None) -> float:
        """Return the negative log posterior up to a constant, loss plus ``alpha w'w / 2``; default: at the minimum."""
        at = here or self._point
        return self._loss(at.logits) + 0.5 * self.alpha * float(at.weights @ at.weights)

    def _append(self, features: Floats, labels: Any) -> int:
        """Store the rows, and return the number of rows before."""
        start, end = self.n, self.n + len(labels)
        if end > len(self._codes):
            # Not a power of 2, because columns at such a distance would map to the same cache lines.
            room = 2 * end + 24
            wider = np.zeros((2, self.n_features, room))
            wider[0, :, :start] = self._columns[:, :start]
            self._columns, self._scratch = wider
            self._codes = np.concatenate([self._codes[:start], np.zeros(room - start, dtype=np.intp)])
        self._columns[:, start:end] = features.T
        self._codes[start:end] = labels
        self._longest = max(self._longest, sqrt((features * features).sum(axis=1).max()))
        self.n, self._unreached = end, None
        return start

    def _settle(self, here: _Point, solve: _Solver | None) -> None:
        """Move from ``here`` to the minimum, with the inverse of a nearby Hessian, and compute the Hessian there."""
        if self._state.pivot >= LEAST_PIVOT and solve is not None:
            here = self._approach(here, solve, _NEAR)
        lowest, nearest, stalled = np.inf, np.inf, 0
        for _ in range(_MOST_HESSIANS):
            state, step, distance = self._newton(here)
            change, size = self._longest * sqrt(step @ step), sqrt(here.gradient @ here.gradient)
            # After a Newton step that changes the logits by a small share, at most that share of the gradient remains.
            last = change <= _SLIGHT
            if distance <= _NEAR and size * (change if last else 1.0) <= _GRADIENT:
                state.weights = here.weights - step if last else here.weights
                break
            value = self.objective(here)
            lower, nearer = value < lowest * (1.0 - 4.0 * _EPS), distance < 0.5 * nearest
            stalled = 0 if lower or nearer else stalled + 1
            lowest, nearest = value if lower else lowest, distance if nearer else nearest
            if stalled == _STALLS:
                break
            there = here if state.pivot < LEAST_PIVOT else self._approach(here, partial(_solve, state.factor), 0.0)
            here = self._search(here, step) if there is here else there
        self._point, self._state = here, state

    def _approach(self, here: _Point, solve: _Solver, near: float) -> _Point:
        """Take steps with one Hessian while they converge fast, or until the distance is ``near``."""
        if len(here.weights) >= _MANY_WEIGHTS:
            return self._descend(here, solve)
        before, last = here, np.inf
        while True:
            step = solve(here.gradient)
            left = float(here.gradient @ step)
            if not left <= 0.25 * last:
                return before
            if left <= near**2 or left > _CONTRACTION**2 * last:
                return here
            before, last = here, left
            here = self._at(here.weights - step)

    def _descend(self, here: _Point, solve: _Solver) -> _Point:
        """Make Newton steps without new factors, until the distance is very small or only rounding error remains.

        Each step solves the equations of the Hessian at its point by conjugate gradients, preconditioned with the
        inverse of a nearby Hessian. A product with the Hessian takes ``4 n P`` operations and one with the inverse
        ``2 P^2``, a new factor ``P^3 / 3``. If a step does not halve the distance, a line search along it is made.
        """
        first = solve(here.gradient)
        left = float(here.gradient @ first)
        for _ in range(_MOST_STEPS):
            step = self._conjugate_step(here, solve, first, left) if left > _NEAR**2 else None
            if step is None:
                break
            there = self._at(here.weights - step)
            first = solve(there.gradient)
            if not (following := float(there.gradient @ first)) <= 0.25 * left:
                there = self._search(here, step)
                if not self.objective(there) < self.objective(here) * (1.0 - 4.0 * _EPS):
                    break
                first = solve(there.gradient)
                following = float(there.gradient @ first)
            here, left = there, following
        return here

    def _conjugate_step(self, here: _Point, solve: _Solver, first: Floats, left: float) -> Floats | None:
        """Return the Newton step, more exact for a smaller distance; None if it takes too many products.

        Args:
            here: The point.
            solve: The preconditioner.
            first: The gradient multiplied by the preconditioner.
            left: Product of gradient and ``first``, the squared distance.
        """
        times = self._hessian_product(here.logits)
        rest, along, size = here.gradient.copy(), first, left
        step, wanted = np.zeros_like(rest), left * min(_INEXACT, left)
        for _ in range(_MOST_PRODUCTS):
            image = times(along)
            length = size / float(along @ image)
            step += length * along
            rest -= length * image
            scaled = solve(rest)
            size, before = float(rest @ scaled), size
            if not size > wanted:
                return step
            along = scaled + (size / before) * along
        return None

    def _hessian_product(self, logits: Floats) -> Callable[[Floats], Floats]:
        """The function that multiplies ``P`` numbers by the Hessian at the given logits of all rows."""
        H = self._curvature(logits, 0)
        return lambda vector: np.asarray(H @ vector + self.alpha * vector)

    def _search(self, here: _Point, step: Floats) -> _Point:
        """Return the minimum along the Newton step, or its end if the objective still falls there."""
        there, along = self._at(here.weights - step), -self._logits(step, 0)
        if there.gradient @ step >= 0.0 or np.abs(along).max() <= _SLIGHT:
            return there
        slope, bend = self.alpha * float(here.weights @ step), self.alpha * float(step @ step)

        def falls(share: float) -> bool:
            pull = float(np.vdot(self._residual(here.logits + share * along, 0), along))
            return pull + share * bend < slope

        high = 1.0
        # If the losses are nearly linear, the step can be too long by many orders of magnitude.
        while not falls(low := high / 16.0) and high > _TINY:
            high = low
        for _ in range(40):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if falls(middle) else (low, middle)
        return self._at(here.weights - low * step)

    def _logits(self, weights: Floats, start: int) -> Floats:
        """Logits of the labelled rows from ``start`` on, ``C x (n - start)``."""
        return np.asarray(weights.reshape(self._outputs, -1) @ self._columns[:, start : self.n])

    def _pull(self, logits: Floats, start: int) -> Floats:
        """Gradient of the loss of the rows from ``start`` on, ``P``."""
        return np.asarray((self._residual(logits, start) @ self._columns[:, start : self.n].T).ravel())

    def _at(self, weights: Floats) -> _Point:
        logits = self._logits(weights, 0)
        return _Point(weights, logits, self._pull(logits, 0) + self.alpha * weights)

    def _newton(self, here: _Point) -> tuple[Snapshot, Floats, float]:
        """Return the posterior with the Hessian at a point, the Newton step from there, and its length."""
        information = self._curvature(here.logits, 0)
        diagonal = information.diagonal() + self.alpha
        np.fill_diagonal(information, diagonal)
        # LAPACK expects column order; for a symmetric matrix it is the same as row order.
        lower, failed = dpotrf(information.T, lower=1)
        pivot = 0.0 if failed else float((lower.diagonal() ** 2 / diagonal).min())
        if pivot >= LEAST_PIVOT:
            step = _solve(lower, here.gradient)
            return Snapshot(here.weights, information, lower, pivot), step, sqrt(abs(here.gradient @ step))
        lower = self._orthogonalised(here.logits)
        return Snapshot(here.weights, information, lower, pivot), *self._reached_step(here, lower)

    def _reached_step(self, here: _Point, factor: Floats) -> tuple[Floats, float]:
        """Return the Newton step and its length, without rounding errors outside the span of the rows."""
        stray = here.weights - self._reached(here.weights)
        gradient = self._reached(here.gradient)
        step = self._reached(_solve(factor, gradient))
        return step + stray, sqrt(abs(gradient @ step) + self.alpha * (stray @ stray))

    def _orthogonalised(self, logits: Floats) -> Floats:
        """Return the factor from the rows instead of ``H``: the condition number is then only its square root."""
        rows = self._roots(logits)
        # Large rows first, so that each row is rounded relative to its own size.
        rows = rows[np.argsort(-np.abs(rows).max(axis=1), kind="stable")]
        stacked = np.concatenate([rows, np.sqrt(self.alpha) * np.eye(rows.shape[1])])
        triangle = np.asarray(np.linalg.qr(stacked, mode="r"))
        if not np.isfinite(triangle).all():
            # The OpenBLAS of numpy 1.26 divides by the norm of a column that is subnormal.
            triangle = np.asarray(np.linalg.qr(np.where(np.abs(stacked) < _TINY, 0.0, stacked), mode="r"))
        return np.asfortranarray((triangle * np.sign(triangle.diagonal())[:, None]).T)

    def _reached(self, vector: Floats) -> Floats:
        """Return weights, a gradient or a step without rounding errors that a weak prior does not suppress.

        These are in directions orthogonal to all rows, because the minimum is a combination of rows, and in the part
        that all classes have in common, because the residuals of a row sum to 0.
        """
        if self._unreached is None:
            rows = self._columns[:, : self.n].T
            scale = np.abs(rows).max(axis=0) + _TINY
            _, sizes, basis = np.linalg.svd(np.linalg.qr(rows / scale, mode="r"))
            rank = int((sizes > sizes[0] * max(rows.shape) * _EPS).sum())
            # For rows of scaled features the weights are w * scale.
            self._unreached = np.linalg.qr(basis[rank:].T / scale[:, None])[0]
        parts = vector.reshape(self._outputs, -1)
        parts = parts - parts @ self._unreached @ self._unreached.T
        return (parts - parts.mean(axis=0) if self._outputs > 1 else parts).ravel()

    @abstractmethod
    def _residual(self, logits: Floats, start: int) -> Floats:
        """Derivative of the loss of the rows from ``start`` on by their logits, of the same shape."""

    @abstractmethod
    def _curvature(self, logits: Floats, start: int) -> Floats:
        """Hessian of the loss of the rows from ``start`` on by the weights, a new ``P x P`` matrix."""

    @abstractmethod
    def _roots(self, logits: Floats) -> Floats:
        """Rows ``A`` with ``A'A`` the Hessian of the loss of all labels."""

    @abstractmethod
    def _loss(self, logits: Floats) -> float:
        """Negative log likelihood of all labels."""


class SoftmaxLaplace(GrowingPosterior):
    r"""Logistic regression for ``K`` classes, ``p_k = exp(w_k'x) / sum_l exp(w_l'x)``.

    All ``K J`` weights are under the prior, none is set to 0. The gradient by ``w_k`` is ``X'(p_k - y_k) + alpha w_k``
    with labels ``y_k`` as 0 and 1, and the blocks of the Hessian are

    .. math:: H_{kl} = -X' \mathrm{diag}(p_k p_l) X \;(k \ne l), \qquad H_{kk} = \alpha I - \sum_{l \ne k} H_{kl},

    because the probabilities sum to 1. This takes ``K(K-1)/2`` products, or one product of ``K J x n`` matrices.

    Args:
        n_features: ``J``; the caller adds a constant feature if it is wanted.
        n_classes: ``K``, 2 or more (for 2, :class:`~suffice.models.laplace.Laplace` has half the weights).
        alpha: Prior precision.

    Reference: [IshibashiHino2021] section 5.2, model 2, for more than two classes.

    Examples:
        >>> import numpy as np
        >>> model = SoftmaxLaplace(1, 3, alpha=1.0).extend(np.array([[-1.0], [0.0], [1.0]]), np.array([0, 1, 2]))
        >>> model.weights.ravel().round(4) + 0.0
        array([-0.6143,  0.    ,  0.6143])
    """

    def __init__(self, n_features: int, n_classes: int, alpha: float = 1.0) -> None:
        if n_classes < 2:
            raise InvalidValueError(f"n_classes must be 2 or more, not {n_classes}")
        super().__init__(n_features, n_classes, alpha, outputs=n_classes)

    @property
    def weights(self) -> Floats:
        """The minimum, ``K x J``."""
        return self._state.weights.reshape(self.n_classes, self.n_features)

    def _residual(self, logits: Floats, start: int) -> Floats:
        own = self._codes[start : self.n], np.arange(self.n - start)
        odds = np.exp(logits - logits.max(axis=0))
        mine = odds[own]
        # 1 - p of the label's class is computed as the sum of the others, not as a difference of nearly equal numbers.
        odds[own] = 0.0
        odds[own] = -(others := odds.sum(axis=0))
        return np.asarray(odds / (mine + others))

    def _curvature(self, logits: Floats, start: int) -> Floats:
        rows, scratch = self._columns[:, start : self.n], self._scratch[:, start : self.n]
        p, J = softmax(logits, axis=0), self.n_features
        if self.n_classes >= _MANY_CLASSES:
            return _curvature_of_many(p, rows)
        blocks = np.zeros((self.n_classes, J, self.n_classes, J))
        for k in range(self.n_classes):
            for other in range(k):
                product = rows @ np.multiply(rows, 0.5 * p[k] * p[other], out=scratch).T
                product = product + product.T
                blocks[k, :, other] = blocks[other, :, k] = -product
                blocks[k, :, k] += product
                blocks[other, :, other] += product
        return blocks.reshape(self.n_classes * J, self.n_classes * J)

    def _hessian_product(self, logits: Floats) -> Callable[[Floats], Floats]:
        p, rows = softmax(logits, axis=0), self._columns[:, : self.n]

        def times(vector: Floats) -> Floats:
            change = p * (vector.reshape(self.n_classes, -1) @ rows)
            change -= p * change.sum(axis=0)
            return np.asarray((change @ rows.T).ravel() + self.alpha * vector)

        return times

    def _roots(self, logits: Floats) -> Floats:
        # diag(p) - p p' = B B' with B = diag(u)(I - u u') and u = sqrt(p), because I - u u' is a projection.
        u = np.sqrt(softmax(logits, axis=0))
        halves = u * (np.eye(self.n_classes)[:, :, None] - u[:, None] * u)
        rows = np.einsum("cki,ji->cikj", halves, self._columns[:, : self.n])
        return np.asarray(rows.reshape(-1, self.n_classes * self.n_features))

    def _loss(self, logits: Floats) -> float:
        own = logits[self._codes[: self.n], np.arange(self.n)]
        return float((np.logaddexp.reduce(logits, axis=0) - own).sum())


def _curvature_of_many(p: Floats, rows: Floats) -> Floats:
    """Hessian of the loss of many classes: one product ``Z Z'`` of the rows ``p_k x``, ``K J x n``.

    Args:
        p: Probabilities, ``K x n``.
        rows: Features, ``J x n``.
    """
    (K, n), J = p.shape, len(rows)
    H = np.zeros((K * J, K * J))
    at_once = max(1, _LARGEST_PRODUCT // (8 * K * J))
    for start in range(0, n, at_once):
        part = slice(start, start + at_once)
        Z = (p[:, None, part] * rows[:, part]).reshape(K * J, -1)
        H -= Z @ Z.T
    blocks, own = H.reshape(K, J, K, J), np.arange(K)
    # The blocks of a class sum to 0 up to rounding.
    blocks[own, :, own] = 0.0
    half = -0.5 * (H @ np.tile(np.eye(J), (K, 1))).reshape(K, J, J)
    blocks[own, :, own] = half + half.transpose(0, 2, 1)
    return H


def _squared_norms(lower: Floats, rows: Floats) -> Floats:
    """Return ``|lower x|^2`` of each row ``x``. A triangular product has half the operations of a general one."""
    found = np.empty(len(rows))
    for first in range(0, len(rows), _ROWS):
        part = slice(first, first + _ROWS)
        white = dtrmm(1.0, lower, rows[part].T, lower=1)
        np.einsum("ij,ij->j", white, white, out=found[part])
    return found


def _block_forms(covariance: Floats, rows: Floats) -> Floats:
    """Return ``x' S_k x`` of each row ``x`` for all blocks ``S_k`` on the diagonal, by one product.

    Args:
        covariance: Lower triangle of a ``K J x K J`` matrix.
        rows: ``m x J``.

    Returns:
        ``m x K``.
    """
    J = rows.shape[1]
    K = len(covariance) // J
    own = np.arange(K)
    # x'Sx = x'Tx with T twice the lower triangle, and the diagonal once.
    triangles = 2.0 * covariance.reshape(K, J, K, J)[own, :, own]
    triangles[:, np.arange(J), np.arange(J)] *= 0.5
    side = np.ascontiguousarray(triangles.transpose(1, 0, 2).reshape(J, K * J))
    found = np.empty((len(rows), K))
    for first in range(0, len(rows), at_once := max(1, _LARGEST_TILE // (8 * K * J))):
        part = rows[first : first + at_once]
        products = (part @ side).reshape(len(part), K, J)
        np.matmul(products, part[:, :, None], out=found[first : first + at_once, :, None])
    return found


def _solver(information: Floats) -> _Solver | None:
    """The function that multiplies by the inverse of a matrix; None if that is not positive definite."""
    factor, failed = dpotrf(information, lower=1)
    return None if failed else partial(_solve, np.asarray(factor))


def _solve(factor: Floats, right: Floats) -> Floats:
    return np.asarray(dpotrs(factor, right, lower=1)[0])


__all__ = [
    "GrowingPosterior",
    "Laplace",
    "Snapshot",
    "SoftmaxLaplace",
    "divergence_from_prior",
    "divergences",
    "evidence",
    "laplace",
    "learn_alpha",
    "log_evidence",
    "settle_alpha",
]

# Up to this Frobenius norm the series to the 8th power has an error of at most 1e-10; above it, subtraction has.
_SERIES_NORM: Final = 0.03
# Below this, subtraction loses digits, because the traces have an error of about 1e-11.
_LEAST_GAP: Final = 1e-6
# A general matrix product is faster than a symmetric one below this number of features.
_SMALL: Final = 24
_ALPHA: Final = (1e-4, 1e4)


class Laplace(GrowingPosterior):
    """Logistic regression for two classes, ``p(y = 1) = sigmoid(w'x)``.

    The gradient is ``X'(p - y) + alpha w`` and the Hessian ``X' diag(p (1 - p)) X + alpha I``. Rows are stored with the
    sign of their label, so both depend only on the logit ``s`` of the observed label: ``p - y`` is ``-sigmoid(-s)``.

    Args:
        n_features: ``J``; the caller adds a constant feature if it is wanted.
        n_classes: 2.
        alpha: Prior precision.

    Reference: [IshibashiHino2021] section 5.2, model 2 (where the covariance is the inverse of the paper's ``H``).

    Examples:
        >>> import numpy as np
        >>> model = Laplace(2, 2, alpha=1.0).extend(np.array([[1.0, 0.5], [1.0, -2.0]]), np.array([1, 0]))
        >>> old = model.snapshot()
        >>> model.extend(np.array([[1.0, 1.0]]), np.array([1])).weights.round(4)
        array([0.3435, 0.824 ])
        >>> divergences(old, model.snapshot()).new_old.round(4)
        np.float64(0.0548)
    """

    def __init__(self, n_features: int, n_classes: int = 2, alpha: float = 1.0) -> None:
        if n_classes != 2:
            raise InvalidValueError(f"Laplace is for 2 classes, not {n_classes}; use SoftmaxLaplace")
        super().__init__(n_features, n_classes, alpha, outputs=1)

    def labelled(self) -> tuple[Floats, Any]:
        """Features (``n x J``) and class codes (``n``) of all labels so far."""
        features, codes = super().labelled()
        return features * (2.0 * codes - 1.0)[:, None], codes

    def _append(self, features: Floats, labels: Any) -> int:
        return super()._append(features * (2.0 * labels - 1.0)[:, None], labels)

    def _residual(self, logits: Floats, start: int) -> Floats:  # noqa: ARG002
        # Above 700 the exponential overflows, and the residual is practically 0.
        residual: Floats = -1.0 / (1.0 + np.exp(np.minimum(logits, 700.0)))
        return residual

    def _curvature(self, logits: Floats, start: int) -> Floats:
        rows, root = self._columns[:, start : self.n], _deviation(logits[0])
        weighted = self._scratch[:, start : self.n]
        if len(rows) < _SMALL:
            product: Floats = rows @ np.multiply(rows, root * root, out=weighted).T
            return 0.5 * (product + product.T)
        np.multiply(rows, root, out=weighted)
        return weighted @ weighted.T

    def _roots(self, logits: Floats) -> Floats:
        return (self._columns[:, : self.n] * _deviation(logits[0])).T

    def _loss(self, logits: Floats) -> float:
        return float(np.logaddexp(0.0, -logits).sum())


def divergences(old: Snapshot, new: Snapshot) -> KLPair:
    r"""Return both KL divergences between two posteriors of a model, without subtracting nearly equal numbers.

    With :math:`E = L^{-1} (H_{new} - H_{old}) L^{-T}` for :math:`H_{old} = L L'`, its eigenvalues :math:`\lambda_i`,
    and ``d`` the difference of the weights:

    .. math::
        2\,\mathrm{KL}[old\|new] &= \sum_i \{\lambda_i - \log(1 + \lambda_i)\} + d' H_{new} d \\
        2\,\mathrm{KL}[new\|old] &= \sum_i \{\log(1 + \lambda_i) - \lambda_i / (1 + \lambda_i)\} + d' H_{old} d

    For a small ``E`` the sums are series in the traces of its powers, otherwise they are computed from the Cholesky
    factor of ``I + E``. If the prior is lost in the rounding of ``H``, the two factors are compared instead. With 400
    weights or more, the sums are :math:`\mathrm{tr}(H_{old}^{-1} \Delta) - g` and
    :math:`g - \mathrm{tr}(H_{new}^{-1} \Delta)` with :math:`\Delta = H_{new} - H_{old}` and ``g`` the difference of the
    log determinants, unless they are so small that digits would be lost.

    Args:
        old: ``snapshot()`` before the labels.
        new: ``snapshot()`` after them.

    Returns:
        :class:`~suffice.divergence.KLPair` of two numbers.

    Reference: [IshibashiHino2021] section 5.2, the Gaussian KL.
    """
    if min(old.pivot, new.pivot) < LEAST_PIVOT:
        first, second = old.gaussian(), new.gaussian()
        return KLPair(np.asarray(kl(second, first)), np.asarray(kl(first, second)))
    change, shift = new.information - old.information, new.weights - old.weights
    gaps = _trace_gaps(old, new, change) if len(shift) >= _MANY_WEIGHTS else None
    if gaps is None:
        E: Floats = old.inverse_factor @ change @ old.inverse_factor.T
        gaps = _series_gaps(E) if np.vdot(E, E) <= _SERIES_NORM**2 else _cholesky_gaps(E)
    before, after = (shift @ state.factor for state in (old, new))
    return KLPair(0.5 * (gaps[0] + before @ before), 0.5 * (gaps[1] + after @ after))


def _trace_gaps(old: Snapshot, new: Snapshot, change: Floats) -> tuple[Any, Any] | None:
    """Return the two sums over eigenvalues from traces and log determinants; None if they are too small for that."""
    grown = 2.0 * float(np.log(new.factor.diagonal() / old.factor.diagonal()).sum())
    gaps = grown - new.trace_with(change), old.trace_with(change) - grown
    return gaps if min(gaps) >= _LEAST_GAP else None


def divergence_from_prior(posterior: GrowingPosterior) -> float:
    r"""Return ``KL[posterior||prior]``.

    .. math:: \tfrac12 \{\alpha (\mathrm{tr} H^{-1} + w'w) - P - P \log \alpha + \log\det H\}

    Examples:
        >>> divergence_from_prior(Laplace(3, 2, alpha=2.0))
        0.0
    """
    state, alpha = posterior.snapshot(), posterior.alpha
    inverse, weights = state.inverse_factor, state.weights.ravel()
    grown = 2.0 * np.log(state.factor.diagonal() / np.sqrt(alpha)).sum()
    return max(0.0, 0.5 * float(alpha * (np.vdot(inverse, inverse) + weights @ weights) - len(weights) + grown))


def _series_gaps(E: Floats) -> tuple[Any, Any]:
    """``sum log(1 + l) - l/(1 + l)`` and ``sum l - log(1 + l)`` over the eigenvalues of a small symmetric matrix."""
    dot = np.vdot
    second = E @ E
    third, fourth = E @ second, second @ second
    # The traces of the powers 2 to 8, each over its power.
    a, b, c, d = dot(E, E) / 2.0, dot(E, second) / 3.0, dot(second, second) / 4.0, dot(second, third) / 5.0
    e, f, g = dot(third, third) / 6.0, dot(third, fourth) / 7.0, dot(fourth, fourth) / 8.0
    return a - 2.0 * b + 3.0 * c - 4.0 * d + 5.0 * e - 6.0 * f + 7.0 * g, a - b + c - d + e - f + g


def _cholesky_gaps(E: Floats) -> tuple[Any, Any]:
    """Return the same two sums for a matrix that is large enough for subtraction without a loss of digits."""
    excess = E.trace()
    np.fill_diagonal(E, E.diagonal() + 1.0)
    factor = dpotrf(E, lower=1)[0]
    inverse = dtrtri(factor, lower=1)[0]
    grown = 2.0 * np.log(factor.diagonal()).sum()
    return grown + (np.vdot(inverse, inverse) - len(E)), excess - grown


def laplace(features: Floats, labels: Any, n_classes: int, alpha: float) -> GrowingPosterior:
    """Return the posterior after the given labels: :class:`Laplace` for two classes, else :class:`SoftmaxLaplace`.

    Examples:
        >>> laplace(np.ones((3, 1)), np.array([0, 1, 1]), 2, alpha=1e-6).weights.round(4)  # the log odds, log 2
        array([0.6931])
    """
    kind = Laplace if n_classes == 2 else SoftmaxLaplace
    return kind(features.shape[1], n_classes, alpha).extend(features, labels)


def log_evidence(features: Floats, labels: Any, n_classes: int, alpha: float) -> float:
    """Return Laplace's approximation of ``log p(labels | alpha)``, see :func:`evidence`."""
    return evidence(laplace(features, labels, n_classes, alpha))


def evidence(posterior: GrowingPosterior) -> float:
    """Return ``P/2 log(alpha) - log det(L) - alpha w'w / 2 - loss`` at the minimum: the log of the labels' probability.

    Examples:
        >>> evidence(Laplace(3, 2, alpha=1.0))  # no labels
        0.0
    """
    spread = 0.5 * np.log(posterior.alpha) - np.log(posterior.factor.diagonal())
    return float(spread.sum()) - posterior.objective()


def learn_alpha(features: Floats, labels: Any, n_classes: int, alpha: float = 1.0) -> float:
    """Return the prior precision in [1e-4, 1e4] that maximises :func:`log_evidence`.

    Args:
        features: ``n x J``.
        labels: ``n`` class codes.
        n_classes: ``K``.
        alpha: Start of the search.

    Examples:
        >>> X = np.random.default_rng(0).normal(size=(200, 5))
        >>> y = (X @ np.array([2.0, -1.0, 0.5, 0.0, 0.0]) + np.sin(np.arange(200)) > 0).astype(int)
        >>> round(learn_alpha(X, y, 2), 2)
        0.19
    """
    return settle_alpha(laplace(features, labels, n_classes, alpha)).alpha


@one_thread()
def settle_alpha(posterior: GrowingPosterior) -> GrowingPosterior:
    """Move a posterior to the prior precision of the largest evidence, and return it.

    MacKay's fixed point ``alpha = gamma / w'w`` ignores that ``H`` depends on ``alpha`` through the weights, and
    converges slowly if they approach 0. So the evidence itself is maximised: by factors of 4 from the present precision
    until it falls, then by Brent's method.
    """
    low, high = np.log(_ALPHA)

    def loss(log_alpha: float) -> float:
        return -evidence(posterior.reweigh(float(np.exp(log_alpha))))

    best = float(np.clip(np.log(posterior.alpha), low, high))
    least = loss(best)
    for step in (np.log(4.0), -np.log(4.0)):
        while (following := float(np.clip(best + step, low, high))) != best and (value := loss(following)) < least:
            best, least = following, value
    between = (max(low, best - np.log(4.0)), min(high, best + np.log(4.0)))
    found = minimize_scalar(loss, bounds=between, method="bounded", options={"xatol": 1e-4})
    # The search never tries the ends themselves.
    return posterior.reweigh(float(np.clip(np.exp(found.x if found.fun < least else best), *_ALPHA)))


def _deviation(logits: Floats) -> Floats:
    """Return ``sqrt(p (1 - p))``, accurate also for very small values."""
    half = np.exp(-0.5 * np.abs(logits))
    return half / (1.0 + half * half)
