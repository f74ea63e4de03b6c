"""Laplace posteriors of logistic regression, updated label by label, for two classes or many."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Self

import numpy as np
from scipy.linalg.blas import dsymv, dtrmm
from scipy.linalg.lapack import dpotrf, dpotri, dtrtri
from scipy.optimize import minimize_scalar

from suffice.divergence import KLPair, kl
from suffice.errors import InvalidValueError
from suffice.models.labelled_loss import BinaryLoss, LabelledLoss, SoftmaxLoss
from suffice.models.newton_search import LEAST_PIVOT, Objective, Solver, WeightPoint, has_many, minimum, solver
from suffice.models.threads import one_thread
from suffice.numerics import Floats
from suffice.posteriors import Gaussian

# Number of rows for which variances are computed at a time, so that intermediate results fit into the CPU cache.
_ROWS: Final = 1024
# The same in bytes, for many classes.
_LARGEST_TILE: Final = 1 << 20
#: From this pivot on, a variance computed from the covariance has an error of about 1e-11. Computing it from the factor
#: is slower.
SAFE_PIVOT: Final = 1e-4


class Snapshot:
    """The posterior ``N(weights, information^-1)`` after some label; nothing is copied.

    Attributes:
        weights: ``P`` numbers, the minimum.
        information: ``H``, ``P x P``.
        factor: Lower ``L`` with ``H = L L'``.
        pivot: Smallest share of a diagonal entry of ``H`` that is left in ``L``; see
            :data:`~suffice.models.newton_search.LEAST_PIVOT`.
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
        # Made from the state in which a Gaussian is pickled, because the factor is given.
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
    factors = np.empty((outputs, width, width))
    for k, first in enumerate(range(0, len(inverse), width)):
        # Rows above the block are 0 in a lower triangle.
        block = inverse[first:, first : first + width]
        factors[k] = block if len(block) == width else np.linalg.qr(block, mode="r")
    return factors


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
    if state.pivot >= SAFE_PIVOT:
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


class GrowingPosterior:
    """Common part of the binary and the multi-class posterior: the minimum, kept up to date, and results.

    Args:
        loss: The loss, without rows. Labels are class codes ``0 .. K-1``; there are ``P`` weights.
        alpha: Prior precision, above 0.

    Attributes:
        n_features: ``J``.
        n_classes: ``K``.
        alpha: Prior precision.
    """

    def __init__(self, loss: LabelledLoss, alpha: float) -> None:
        if not (0.0 < alpha < np.inf):
            raise InvalidValueError(f"alpha is the precision of the prior and must be above 0, not {alpha!r}")
        self.n_features, self.n_classes, self.alpha = loss.n_features, loss.n_classes, float(alpha)
        self._loss = loss
        zero = np.zeros(loss.outputs * loss.n_features)
        prior = np.eye(len(zero), order="F")
        self._state = Snapshot(zero, self.alpha * prior, np.sqrt(self.alpha) * prior, 1.0)
        self._point = WeightPoint(zero, loss.logits(zero, 0), zero)

    @property
    def n(self) -> int:
        """Number of labels."""
        return self._loss.n

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

    @property
    def inverse_factor(self) -> Floats:
        """The inverse of :attr:`factor`, ``P x P``."""
        return self._state.inverse_factor

    def snapshot(self) -> Snapshot:
        """Return the state for :func:`divergences`; it does not change when labels are added."""
        return self._state

    def latent(self, features: Floats) -> tuple[Floats, Floats]:
        """Mean and variance of the logits of ``m`` rows, each ``m`` numbers, or ``m x K`` for many classes."""
        return latent(self._state, self._loss.outputs, features)

    def frozen(self) -> "LaplaceWeights":
        """Return the present posterior, without the labels."""
        return LaplaceWeights(self.weights, self.factor, self.alpha, self.n_classes, self._state.pivot)

    def posterior(self) -> Gaussian:
        """Return the posterior over all ``P`` weights, as a Gaussian with its precision."""
        return self._state.gaussian()

    def labelled(self) -> tuple[Floats, Any]:
        """Features (``n x J``) and class codes (``n``) of all labels so far."""
        return self._loss.labelled()

    def extend(self, features: Floats, labels: Any) -> Self:
        """Add labels, move to the new minimum, and return the object itself.

        The search is that of :mod:`suffice.models.newton_search`, with the old Hessian and the new rows. The gradient
        at the end is at most 1e-8, or its rounding error if that is larger:
        ``eps sum_i |x_ij| q_i (1 + sum_k |x_ik w_k|)`` for feature ``j``, with ``q_i`` the probability of the classes
        other than label ``i``. This happens with features of scale 1e8. Without fused multiply-add of the processor the
        search may also end where no weight is further from the minimum than 1e-8 of its standard deviation.

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
        loss, objective = self._loss, Objective(self._loss, self.alpha)
        start = loss.append(features, labels)
        there, logits = objective.extended(self._point, start)
        solve: Solver | None
        if has_many(there.weights):
            # The new rows change the Hessian in few directions, so conjugate gradients need no new factor.
            solve = self._state.solve if start else lambda vector: vector / self.alpha
        else:
            solve = solver(self._state.information + loss.curvature(logits, start))
        self._move(objective, there, solve)
        return self

    def reweigh(self, alpha: float) -> Self:
        """Move to the minimum under another prior precision, with the same labels."""
        here, change = self._point, alpha - self.alpha
        self.alpha = float(alpha)
        moved = self._state.information.copy(order="F")
        np.fill_diagonal(moved, moved.diagonal() + change)
        there = here._replace(gradient=here.gradient + change * here.weights)
        self._move(Objective(self._loss, self.alpha), there, solver(moved))
        return self

    def objective(self) -> float:
        """Return the negative log posterior up to a constant, loss plus ``alpha w'w / 2``, at the minimum."""
        return Objective(self._loss, self.alpha).value(self._point)

    def _move(self, objective: Objective, here: WeightPoint, solve: Solver | None) -> None:
        """Move from ``here`` to the minimum, with the inverse of a nearby Hessian."""
        usable = solve if self._state.pivot >= LEAST_PIVOT else None
        weights, hessian, self._point = minimum(objective, here, usable)
        self._state = Snapshot(weights, *hessian)


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
        super().__init__(SoftmaxLoss(n_features, n_classes), alpha)

    @property
    def weights(self) -> Floats:
        """The minimum, ``K x J``."""
        return self._state.weights.reshape(self.n_classes, self.n_features)


def _squared_norms(lower: Floats, rows: Floats) -> Floats:
    """Return ``|lower x|^2`` of each row ``x``. A triangular product has half the operations of a general one."""
    norms = np.empty(len(rows))
    for first in range(0, len(rows), _ROWS):
        part = slice(first, first + _ROWS)
        white = dtrmm(1.0, lower, rows[part].T, lower=1)
        np.einsum("ij,ij->j", white, white, out=norms[part])
    return norms


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
    forms = np.empty((len(rows), K))
    for first in range(0, len(rows), at_once := max(1, _LARGEST_TILE // (8 * K * J))):
        part = rows[first : first + at_once]
        products = (part @ side).reshape(len(part), K, J)
        np.matmul(products, part[:, :, None], out=forms[first : first + at_once, :, None])
    return forms


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
        super().__init__(BinaryLoss(n_features), alpha)


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
    gaps = _trace_gaps(old, new, change) if has_many(shift) else None
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
    result = minimize_scalar(loss, bounds=between, method="bounded", options={"xatol": 1e-4})
    # The search never tries the ends themselves.
    return posterior.reweigh(float(np.clip(np.exp(result.x if result.fun < least else best), *_ALPHA)))
