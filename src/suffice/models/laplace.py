"""Laplace's posterior of logistic regression for two classes, the divergence of two of them, and the learned prior."""

from typing import Any, Final

import numpy as np
from scipy.linalg.lapack import dpotrf, dtrtri
from scipy.optimize import minimize_scalar

from suffice.divergence import KLPair, kl
from suffice.errors import InvalidValueError
from suffice.models.softmax import LEAST_PIVOT, GrowingPosterior, Snapshot, SoftmaxLaplace
from suffice.models.threads import one_thread
from suffice.special import Floats

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

# Up to this Frobenius norm the series to the 8th power is right to 1e-10; beyond it, subtraction is.
_SERIES_NORM: Final = 0.03
# A general matrix product is faster than a symmetric one below this number of features.
_SMALL: Final = 24
_ALPHA: Final = (1e-4, 1e4)


class Laplace(GrowingPosterior):
    """Logistic regression for two classes, ``p(y = 1) = sigmoid(w'x)``.

    The gradient is ``X'(p - y) + alpha w`` and the Hessian ``X' diag(p (1 - p)) X + alpha I``. Rows are kept with the
    sign of their label, so both need the logit ``s`` of the label that came alone: ``p - y`` is ``-sigmoid(-s)``.

    Args:
        n_features: ``J``; a constant feature is up to the caller.
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
        # Past 700 the exponential overflows, and the residual is 0 to all purposes.
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
    r"""Both KL divergences between two posteriors of one model, without subtracting nearly equal numbers.

    With :math:`E = L^{-1} (H_{new} - H_{old}) L^{-T}` for :math:`H_{old} = L L'`, its eigenvalues :math:`\lambda_i`,
    and ``d`` the difference of the weights:

    .. math::
        2\,\mathrm{KL}[old\|new] &= \sum_i \{\lambda_i - \log(1 + \lambda_i)\} + d' H_{new} d \\
        2\,\mathrm{KL}[new\|old] &= \sum_i \{\log(1 + \lambda_i) - \lambda_i / (1 + \lambda_i)\} + d' H_{old} d

    For a small ``E`` the sums are series in the traces of its powers, else they come from the Cholesky factor of
    ``I + E``. Where rounding took the prior out of ``H``, the two factors are compared instead.

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
    E: Floats = old.inverse_factor @ change @ old.inverse_factor.T
    gaps = _series_gaps(E) if np.vdot(E, E) <= _SERIES_NORM**2 else _cholesky_gaps(E)
    before, after = (shift @ state.factor for state in (old, new))
    return KLPair(0.5 * (gaps[0] + before @ before), 0.5 * (gaps[1] + after @ after))


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
    """The same two sums for a matrix so far from 0 that subtraction loses little."""
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
    """Return the prior precision in [1e-4, 1e4] that the labels speak for: the maximum of :func:`log_evidence`.

    Args:
        features: ``n x J``.
        labels: ``n`` class codes.
        n_classes: ``K``.
        alpha: Where the search starts.

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

    MacKay's fixed point ``alpha = gamma / w'w`` leaves out that ``H`` depends on ``alpha`` through the weights, and
    converges slowly where they go to 0. So the evidence itself is climbed: by factors of 4 from the present precision
    until it falls, and by Brent's method between.
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
    """``sqrt(p (1 - p))``, right however small."""
    half = np.exp(-0.5 * np.abs(logits))
    return half / (1.0 + half * half)
