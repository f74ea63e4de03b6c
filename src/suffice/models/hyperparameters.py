"""Hyper-parameters learned from the labels: marginal likelihood of Gaussian processes, evidence of ridge regression."""

from typing import Final, NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotri
from scipy.optimize import minimize

from suffice.models.kernels import GaussianKernel
from suffice.models.threads import one_thread
from suffice.numerics.cholesky import solve_lower
from suffice.numerics.special_functions import Floats

#: More labels than this make the search for a length scale slow and hardly better: so many are taken, evenly spread.
MOST_LABELS: Final = 1000
_COARSE_LABELS: Final = 200
_LENGTH: Final = (1e-6, 1e12)
_NOISE: Final = (1e-4, 1e1)
_PRECISION: Final = (1e-6, 1e9)
_LENGTH_VARIANCE: Final = 3.0
_NOISE_VARIANCE: Final = 1.5**2
# Degrees of freedom that the noise of ridge regression has at least.
_LEAST_FREEDOM: Final = 3.0


class LogMarginal(NamedTuple):
    """The log marginal likelihood, and its gradient by the logarithms of the length scales and of the noise."""

    value: float
    gradient: Floats


def log_marginal(X: Floats, y: Floats, length_scale: Floats, noise: float) -> LogMarginal:
    r"""Return the log marginal likelihood of a Gaussian process with a Gaussian kernel, and its gradient.

    .. math:: \log p(y) = -\frac12 y' C^{-1} y - \frac12 \log|C| - \frac n2 \log 2\pi, \quad C = K + \sigma^2 I,

    .. math:: \partial_\theta \log p(y) = \frac12 \mathrm{tr}\{(a a' - C^{-1})\, \partial_\theta C\}, \; a = C^{-1} y.

    For a length scale :math:`\partial C_{ij} / \partial \log l_d = K_{ij} (x_{id} - x_{jd})^2 / l_d^2`; the sum over
    pairs is two matrix products, whatever the number of features.

    Args:
        X: Inputs, ``n x D``.
        y: Targets, ``n``.
        length_scale: One number (shape ``(1,)``) or one per feature (``(D,)``).
        noise: Noise variance.

    Returns:
        Value, and gradient by ``log length_scale`` and ``log noise``, in this order.

    Examples:
        >>> log_marginal(np.array([[0.0]]), np.array([0.0]), np.array([1.0]), 1.0).value  # -log(2)/2 - log(2 pi)/2
        -1.2655...
    """
    n, scaled = len(y), (X - X.mean(axis=0)) / length_scale
    K = GaussianKernel((1.0,))(scaled, scaled)
    try:
        lower = np.asarray(np.linalg.cholesky(K + noise * np.eye(n)), dtype=np.float64)
    except np.linalg.LinAlgError:
        return LogMarginal(-np.inf, np.zeros(len(length_scale) + 1))
    white = solve_lower(lower, y)
    inverse = np.asarray(dpotri(lower, lower=1)[0])
    inverse = inverse + np.tril(inverse, -1).T
    a = inverse @ y
    value = float(-0.5 * white @ white - np.log(np.diag(lower)).sum() - 0.5 * n * np.log(2 * np.pi))
    by_noise = 0.5 * noise * float(a @ a - np.trace(inverse))
    weights = (np.outer(a, a) - inverse) * K
    # sum_ij w_ij (x_i - x_j)^2 = 2 sum_i w_i. x_i^2 - 2 x' w x, for each feature.
    by_feature = (weights.sum(axis=1)[:, None] * scaled**2).sum(axis=0) - (scaled * (weights @ scaled)).sum(axis=0)
    by_length = by_feature if len(length_scale) > 1 else np.array([by_feature.sum()])
    return LogMarginal(value, np.append(by_length, by_noise))


class ProcessScales(NamedTuple):
    """Length scales (one, or one per feature) and noise variance of a Gaussian process."""

    length_scale: Floats
    noise: float


class ScalesPrior(NamedTuple):
    r"""Log-normal prior of length scales and noise variance of a Gaussian process.

    For inputs of deviation 1 and a target of variance 1, with ``D`` features,

    .. math:: \log l \sim N(\sqrt 2 + \tfrac12 \log 12 + \tfrac12 \log D, 3), \qquad
              \log \sigma^2 \sim N(-2, 1.5^2).

    The length scale grows with the root of the dimension, as distances do. The prior of the length scale is that of the
    reference for inputs between 0 and 1, whose deviation is :math:`12^{-1/2}`. Its prior of the noise has its mode near
    0.007 and is narrower; tables have more noise.

    Attributes:
        length: Mean of the log of a length scale.
        noise: Mean of the log of the noise variance.

    Reference: [HvarfnerEtAl2024] section 4.
    """

    length: float
    noise: float

    @classmethod
    def of_data(cls, X: Floats, y: Floats) -> "ScalesPrior":
        """The prior in the units of inputs, ``n x D``, and targets, ``n``."""
        deviation = float(np.sqrt(X.var(axis=0).mean())) or 1.0
        squares = float(y @ y) / max(len(y), 1) or 1.0
        dimension = 0.5 * np.log(12.0 * X.shape[1])
        return cls(float(np.sqrt(2.0) + dimension + np.log(deviation)), float(-2.0 + np.log(squares)))

    def log_density(self, theta: Floats) -> tuple[float, Floats]:
        """Log density, up to a constant, of the logs of length scales and noise; and its gradient."""
        distance = theta - np.append(np.full(len(theta) - 1, self.length), self.noise)
        variance = np.append(np.full(len(theta) - 1, _LENGTH_VARIANCE), _NOISE_VARIANCE)
        return float(-0.5 * np.sum(distance**2 / variance)), -distance / variance


@one_thread()
def learn_process(
    X: Floats, y: Floats, start: ProcessScales, *, fixed: tuple[bool, bool], prior: ScalesPrior | None = None
) -> ProcessScales:
    """Maximise the marginal likelihood, times a prior if there is one, over what is not fixed.

    The likelihood has several peaks and, where nothing correlates, a plain from which no gradient leads back. So the
    search climbs from two places: from ``start``, and from the best of a coarse grid.

    Args:
        X: Inputs, ``n x D``; evenly spread rows of them if there are more than :data:`MOST_LABELS`.
        y: Targets, standardised, ``n``.
        start: Where to start; its length scale has the shape that is wanted.
        fixed: Whether the length scale, and whether the noise, stays as it is.
        prior: Prior of both.

    Returns:
        The best that was found.
    """
    X, y = _evenly(X, y, MOST_LABELS)
    free = np.array([not fixed[0]] * len(start.length_scale) + [not fixed[1]])
    if not free.any() or len(y) < 2:
        return start
    first = np.log(np.append(start.length_scale, start.noise))
    starts = first, _coarse(X, y, first, free)
    best = max((_climb(X, y, begin, free, prior) for begin in starts), key=lambda found: found[0])
    length, noise = np.exp(best[1][:-1]), float(np.exp(best[1][-1]))
    return ProcessScales(start.length_scale if fixed[0] else length, start.noise if fixed[1] else noise)


def _climb(
    X: Floats, y: Floats, begin: Floats, free: "np.typing.NDArray[np.bool_]", prior: ScalesPrior | None = None
) -> tuple[float, Floats]:
    """Log marginal likelihood, with the prior, at the top of the peak that ``begin`` lies on, and where that is."""
    theta = begin.copy()
    # The kernel has variance 1; a target that is not standardised may have more noise than that.
    noises = _NOISE[0], _NOISE[1] * max(1.0, float(y @ y) / len(y))
    limits = np.log([*[_LENGTH] * (len(theta) - 1), noises])[free]

    def loss(part: Floats) -> tuple[float, Floats]:
        theta[free] = part
        found = log_marginal(X, y, np.exp(theta[:-1]), float(np.exp(theta[-1])))
        if prior is not None and not np.isinf(found.value):
            value, gradient = prior.log_density(theta)
            found = LogMarginal(found.value + value, found.gradient + gradient)
        return (1e300 if np.isinf(found.value) else -found.value), -found.gradient[free]

    found = minimize(loss, np.clip(begin[free], *limits.T), jac=True, method="L-BFGS-B", bounds=limits)
    theta[free] = found.x
    return -float(found.fun), theta


def _coarse(X: Floats, y: Floats, first: Floats, free: "np.typing.NDArray[np.bool_]") -> Floats:
    """The best of a few common length scales and noises, by some of the labels."""
    X, y = _evenly(X, y, _COARSE_LABELS)
    typical = float(np.sqrt(2.0 * X.var(axis=0).sum())) or 1.0
    lengths = np.geomspace(0.03, 30.0, 13) * typical if free[0] else [None]
    noises = (1e-3, 1e-2, 0.1, 0.5) if free[-1] else [None]
    grid = []
    for length in lengths:
        for noise in noises:
            theta = first.copy()
            if length is not None:
                theta[:-1] = np.log(length)
            if noise is not None:
                theta[-1] = np.log(noise)
            grid.append((log_marginal(X, y, np.exp(theta[:-1]), float(np.exp(theta[-1]))).value, theta))
    return max(grid, key=lambda entry: entry[0])[1]


def _evenly(X: Floats, y: Floats, most: int) -> tuple[Floats, Floats]:
    if len(y) <= most:
        return X, y
    rows = np.linspace(0, len(y) - 1, most).astype(int)
    return X[rows], y[rows]


def left_out(inverse: Floats, weighted: Floats, y: Floats) -> tuple[Floats, Floats]:
    r"""Mean and variance of each label given all others, for labels with covariance ``C``.

    .. math:: \mu_{-i} = y_i - [C^{-1} y]_i / [C^{-1}]_{ii}, \qquad v_{-i} = 1 / [C^{-1}]_{ii}.

    Args:
        inverse: The diagonal of :math:`C^{-1}`, ``n``.
        weighted: :math:`C^{-1} y`, ``n``.
        y: Labels with mean 0, ``n``.

    Reference: [RasmussenWilliams2006] section 5.4.2.
    """
    return np.asarray(y - weighted / inverse), np.asarray(1.0 / inverse)


@one_thread()
def process_left_out(X: Floats, y: Floats, scales: ProcessScales) -> tuple[Floats, Floats]:
    """Mean and variance, noise included, of each label of a Gaussian process given all others, ``n`` each."""
    scaled = (X - X.mean(axis=0)) / scales.length_scale
    covariance = GaussianKernel((1.0,))(scaled, scaled) + scales.noise * np.eye(len(y))
    # numpy lets other threads go on meanwhile; SciPy's inverse of a factor does not.
    try:
        lower = np.linalg.cholesky(covariance)
    except np.linalg.LinAlgError:
        # Items that are the same, with hardly any noise: rounding is made up for, as in the posterior itself.
        lower = np.linalg.cholesky(covariance + 1e-13 * np.trace(covariance) * np.eye(len(y)))
    inverse = np.linalg.inv(lower)
    return left_out(np.einsum("ij,ij->j", inverse, inverse), inverse.T @ (inverse @ y), y)


@one_thread()
def ridge_left_out(features: Floats, y: Floats, scales: "RidgeScales") -> tuple[Floats, Floats]:
    r"""Mean and variance, noise included, of each label of ridge regression given all others, ``n`` each.

    With :math:`C = \Phi\Phi'/\alpha + I/\beta`, :math:`C^{-1} = \beta (I - \Phi H^{-1} \Phi' \beta)`: the residuals and
    leverages of the fit are all that is needed.
    """
    alpha, beta = scales
    eigenvalues, vectors = np.linalg.eigh(features.T @ features)
    rotated = features @ vectors
    curvature = beta * np.maximum(eigenvalues, 0.0) + alpha
    leverage = beta * np.einsum("ij,j,ij->i", rotated, 1.0 / curvature, rotated)
    residual = y - rotated @ (beta * (rotated.T @ y) / curvature)
    return left_out(beta * np.maximum(1.0 - leverage, 1e-12), beta * residual, y)


class RidgeScales(NamedTuple):
    """Prior precision of the weights, and precision of the noise."""

    alpha: float
    beta: float


def ridge_evidence(features: Floats, y: Floats, scales: RidgeScales) -> float:
    r"""Return the log evidence of ridge regression, :math:`\log N(y; 0, \Phi\Phi'/\alpha + I/\beta)`.

    With :math:`H = \alpha I + \beta \Phi'\Phi` and :math:`\mu` the mean of the weights:

    .. math:: \tfrac J2 \log\alpha + \tfrac n2 \log\beta - \tfrac12 \log|H| - \tfrac\beta2 |y - \Phi\mu|^2
              - \tfrac\alpha2 |\mu|^2 - \tfrac n2 \log 2\pi.

    Args:
        features: ``n x J``.
        y: Targets, ``n``.
        scales: Prior and noise precision.

    Examples:
        >>> round(ridge_evidence(np.eye(2), np.zeros(2), RidgeScales(1.0, 1.0)), 4)  # -log(2) - log(2 pi)
        -2.531
    """
    (n, J), (alpha, beta) = features.shape, scales
    eigenvalues, vectors = np.linalg.eigh(features.T @ features)
    curvature = beta * np.maximum(eigenvalues, 0.0) + alpha
    moment = vectors.T @ (features.T @ y)
    # beta |y - Phi mu|^2 + alpha |mu|^2 = beta |y|^2 - beta^2 (Phi'y)' H^-1 Phi'y.
    misfit = beta * float(y @ y) - beta**2 * float(np.sum(moment**2 / curvature))
    spread = J * np.log(alpha) + n * np.log(beta / (2.0 * np.pi)) - float(np.log(curvature).sum())
    return float(0.5 * (spread - misfit))


def with_freedom(features: Floats, scales: RidgeScales, *, fixed: tuple[bool, bool]) -> RidgeScales:
    r"""Return both precisions with the noise variance as its posterior mean instead of its mode.

    The residuals of ``n`` labels have :math:`\nu = n - \tau` degrees of freedom, where :math:`\tau` is the number of
    weights that the labels determine, see :func:`learn_ridge`. The mean of an inverse chi-squared variance is
    :math:`\nu / (\nu - 2)` times its mode. Both learned variances, of noise and of weights, are multiplied by it, so
    predictions stay as they are and only their variances grow. :math:`\nu` counts as 3 at least.

    Args:
        features: ``n x J``.
        scales: What :func:`learn_ridge` returns.
        fixed: Whether alpha, and whether beta, was given: such a one stays.

    Examples:
        >>> with_freedom(np.eye(8), RidgeScales(1.0, 1.0), fixed=(False, False))  # tau is 4, so the factor is 4 / 2
        RidgeScales(alpha=0.5, beta=0.5)
    """
    if fixed[1]:
        return scales
    information = scales.beta * np.maximum(np.linalg.eigvalsh(features.T @ features), 0.0)
    freedom = max(len(features) - float(np.sum(information / (information + scales.alpha))), _LEAST_FREEDOM)
    shrink = (freedom - 2.0) / freedom
    return RidgeScales(scales.alpha if fixed[0] else scales.alpha * shrink, scales.beta * shrink)


def learn_ridge(
    features: Floats, y: Floats, start: RidgeScales, *, fixed: tuple[bool, bool], iterations: int = 200
) -> RidgeScales:
    r"""Return prior and noise precision by the fixed point of the evidence.

    With :math:`\tau_i` the eigenvalues of :math:`\beta \Phi'\Phi`, :math:`\mu` the mean of the weights:

    .. math:: \tau = \sum_i \frac{\tau_i}{\tau_i + \alpha}, \qquad \alpha = \frac{\tau}{\mu'\mu}, \qquad
              \frac1\beta = \frac{|y - \Phi\mu|^2}{n - \tau}.

    One eigendecomposition serves all iterations; each is ``O(J)``.

    Args:
        features: ``n x J``.
        y: Targets, ``n``.
        start: Where to start.
        fixed: Whether alpha, and whether beta, stays as it is.
        iterations: How many at most.

    Returns:
        Both precisions.

    Reference: [IshibashiHino2021] section 5.2, model 1.
    """
    alpha, beta = start
    n = len(y)
    eigenvalues, vectors = np.linalg.eigh(features.T @ features)
    eigenvalues = np.maximum(eigenvalues, 0.0)
    moment = vectors.T @ (features.T @ y)
    total = float(y @ y)
    # Bounds in units of the data: of the mean squares of features and target.
    target, squares = total / n or 1.0, np.einsum("ij,ij->j", features, features) / n
    squares = squares[squares > 0.0] if squares.any() else np.ones(1)
    precisions = np.array(_PRECISION) * [squares.min(), squares.max()] / target
    noises = np.array(_NOISE) * target
    alpha = alpha if fixed[0] else float(np.clip(alpha, *precisions))
    for _ in range(iterations):
        weights = beta * moment / (beta * eigenvalues + alpha)
        tau = float(np.sum(beta * eigenvalues / (beta * eigenvalues + alpha)))
        residual = max(total - 2.0 * float(weights @ moment) + float(eigenvalues @ weights**2), 1e-12 * total, 1e-300)
        before = alpha, beta
        if not fixed[0]:
            alpha = float(np.clip(tau / max(float(weights @ weights), 1e-300), *precisions))
        if not fixed[1]:
            beta = float(np.clip(max(n - tau, 1e-3 * n) / residual, 1.0 / noises[1], 1.0 / noises[0]))
        if abs(alpha - before[0]) <= 1e-8 * alpha and abs(beta - before[1]) <= 1e-8 * beta:
            break
    return RidgeScales(alpha, beta)
