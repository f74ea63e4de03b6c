"""Regression with Gaussian noise, exact, one label at a time: Gaussian processes and Bayesian ridge regression.

Hyper-parameters are learned from the labels, by the marginal likelihood or the evidence. The module also has the
radial basis features of the paper.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol, Self

import numpy as np
from scipy.linalg.lapack import dpotri
from scipy.optimize import minimize
from sklearn.base import BaseEstimator, RegressorMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from suffice.arguments import real, whole
from suffice.errors import InvalidValueError
from suffice.models.gaussian_state import KernelState, Scaling, WeightState
from suffice.models.inputs import column_names, prediction_inputs, require_finite, targets, training_inputs, unfitted
from suffice.models.kernels import GaussianKernel
from suffice.models.threads import one_thread
from suffice.numerics import Floats, solve_lower
from suffice.posteriors import Gaussian, GaussianProcessPosterior

#: Largest number of labels in the search for a length scale; of more labels, an evenly spaced part is used. More labels
#: would make it slow and improve it very little.
MOST_LABELS: Final = 1000
_COARSE_LABELS: Final = 200
_LENGTH: Final = (1e-6, 1e12)
_NOISE: Final = (1e-4, 1e1)
_PRECISION: Final = (1e-6, 1e9)
_LENGTH_VARIANCE: Final = 3.0
_NOISE_VARIANCE: Final = 1.5**2
# Least number of degrees of freedom of the noise of ridge regression.
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
    pairs is two matrix products for any number of features.

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
    """Maximise the marginal likelihood, times a prior if there is one, over the parameters that are not fixed.

    The likelihood has several local maxima, and is flat for very short length scales. So there are two searches: one
    from ``start``, and one from the best point of a coarse grid.

    Args:
        X: Inputs, ``n x D``; an evenly spaced part is used if there are more than :data:`MOST_LABELS` rows.
        y: Targets, standardised, ``n``.
        start: Start of the search. The length scale that is returned has the shape of this one.
        fixed: Whether the length scale, and whether the noise, is fixed.
        prior: Prior of both.

    Returns:
        The best parameters found.
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
    """Return the local maximum of the log marginal likelihood, with the prior, near ``begin``, and its position."""
    theta = begin.copy()
    # The kernel has variance 1; a target that is not standardised may have a larger noise variance.
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
    """Return the best of a few pairs of a common length scale and a noise, for a part of the labels."""
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
    # numpy releases the GIL here; SciPy's inverse of a factor does not.
    try:
        lower = np.linalg.cholesky(covariance)
    except np.linalg.LinAlgError:
        # Equal items with very little noise: rounding errors are corrected as in the posterior itself.
        lower = np.linalg.cholesky(covariance + 1e-13 * np.trace(covariance) * np.eye(len(y)))
    inverse = np.linalg.inv(lower)
    return left_out(np.einsum("ij,ij->j", inverse, inverse), inverse.T @ (inverse @ y), y)


@one_thread()
def ridge_left_out(features: Floats, y: Floats, scales: "RidgeScales") -> tuple[Floats, Floats]:
    r"""Mean and variance, noise included, of each label of ridge regression given all others, ``n`` each.

    With :math:`C = \Phi\Phi'/\alpha + I/\beta`, :math:`C^{-1} = \beta (I - \Phi H^{-1} \Phi' \beta)`: only the
    residuals and leverages of the fit are needed.
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
    :math:`\nu / (\nu - 2)` times its mode. Both learned variances, of noise and of weights, are multiplied by this
    factor, so predictions do not change and only their variances grow. :math:`\nu` is taken to be at least 3.

    Args:
        features: ``n x J``.
        scales: The result of :func:`learn_ridge`.
        fixed: Whether alpha, and whether beta, was given. Given values are not changed.

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

    One eigendecomposition is used for all iterations; each is ``O(J)``.

    Args:
        features: ``n x J``.
        y: Targets, ``n``.
        start: Start of the iteration.
        fixed: Whether alpha, and whether beta, is fixed.
        iterations: Largest number of iterations.

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


# Number of rows that are predicted at a time, so that intermediate results take a few tens of megabytes at most.
_ROWS = 4096


class RegressionPrior(Protocol):
    """Hyper-parameters, and the posterior before any label. Priors are immutable and compare by value."""

    @property
    def scaling(self) -> Scaling:
        """Standardisation of the targets."""

    def left_out(self, features: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Mean and variance of each label given all others, in the units of ``y``, ``n`` each."""

    def log_density(self, features: Floats, y: Floats) -> float:
        """Log density of the hyper-parameters under their own prior, up to a constant; 0 if there is none."""

    def start(self, n_features: int, capacity: int) -> KernelState | WeightState:
        """The posterior before any label."""


class GaussianRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Base of regressors with Gaussian noise. A model defines its :meth:`features` and how it learns :meth:`prior`."""

    X_: Floats
    y_: Floats
    prior_: Any
    state_: Any
    learned_at_: int

    @property
    def learns(self) -> bool:
        """Whether a hyper-parameter is learned from the labels."""
        raise NotImplementedError

    def check(self, n_features: int) -> None:
        """Raise an error that names the parameter, if a parameter of the constructor is invalid."""
        raise NotImplementedError

    def features(self, X: Floats) -> Floats:
        """Features in which the posterior is linear, or on which the kernel is evaluated."""
        return X

    def prior(self, features: Floats, y: Floats, previous: Any = None, random: Any = None) -> Any:
        """Return the hyper-parameters, learned from these labels only.

        Args:
            features: ``n x D``.
            y: Labels, ``n``.
            previous: Earlier hyper-parameters, from which the search starts.
            random: Which labels were drawn at random, ``n``. If it is given, new hyper-parameters are accepted only if
                they predict these labels better than the previous ones, see :func:`preferred`.
        """
        raise NotImplementedError

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from labels, forgetting earlier ones.

        Args:
            X: Inputs, ``n x D``.
            y: Numbers, ``n``.

        Returns:
            The model.
        """
        inputs, labels = training_inputs(self, X, y)
        self._learn(inputs, targets(labels), None)
        return self

    def observe(self, X: Any, y: Any) -> Self:
        """Learn from more labels. The posterior is that of :meth:`fit` on all labels, and is computed by an update.

        Learned hyper-parameters are learned again when the number of labels has doubled since the last time.

        Args:
            X: Inputs of the new labels, ``k x D``.
            y: The new labels, ``k``.

        Returns:
            The model.
        """
        if not hasattr(self, "state_"):
            return self.fit(X, y)
        inputs, labels = training_inputs(self, X, y, reset=False)
        numbers = targets(labels)
        if self.learns and self.n_labels_ + len(numbers) >= 2 * self.learned_at_:
            self._learn(np.vstack([self.X_, inputs]), np.append(self.y_, numbers), self.prior_)
        else:
            self.state_.learn(self.features(inputs), self.prior_.scaling.apply(numbers))
            self.X_, self.y_ = np.vstack([self.X_, inputs]), np.append(self.y_, numbers)
        return self

    def at(self, X: Floats, y: Floats, prior: RegressionPrior, learned_at: int, state: Any = None) -> Self:
        """Return a model with the same parameters, fitted to these labels with a given prior.

        With ``state``, the posterior after these labels, nothing is computed: the model refers to that object.
        """
        model = unfitted(self)
        model.n_features_in_ = X.shape[1]
        model._set(X, y, prior, learned_at, state)
        return model

    @property
    def hyperparameters(self) -> Any:
        """Hyper-parameters in use: two models of one class with equal ones have the same prior."""
        return self.prior_

    def posterior_after(self, X: Any, y: Any) -> Any:
        """Return the posterior after other labels, ``n x D`` and ``n`` numbers, with the present hyper-parameters."""
        inputs, numbers = np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64)
        return self.at(inputs, numbers, self.prior_, self.learned_at_).posterior

    @property
    def posterior(self) -> Any:
        """The posterior as a value."""
        raise NotImplementedError

    @property
    def n_labels_(self) -> int:
        """Labels learned from."""
        return len(self.y_)

    def latent(self, X: Any) -> tuple[Floats, Floats]:
        """Mean and variance of the noise-free value at each row, ``m`` each."""
        check_is_fitted(self, "state_")
        features = self.features(prediction_inputs(self, X))
        mean, variance = np.empty(len(features)), np.empty(len(features))
        for first in range(0, len(features), _ROWS):
            part = features[first : first + _ROWS]
            whitened = self.state_.whiten(part)
            mean[first : first + _ROWS] = self.state_.mean(part, whitened)
            variance[first : first + _ROWS] = self.state_.variance(part, whitened)
        centre, scale = self.prior_.scaling
        return centre + scale * mean, scale**2 * variance

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Predict labels.

        Args:
            X: Inputs, ``m x D``.
            return_std: Whether to return the standard deviation of the label too, its noise included.

        Returns:
            Means, ``m``; with ``return_std`` a pair of means and standard deviations.
        """
        mean, variance = self.latent(X)
        if not return_std:
            return mean
        return mean, np.sqrt(variance + self.prior_.scaling.scale**2 * self.state_.noise)

    def _learn(self, X: Floats, y: Floats, previous: RegressionPrior | None) -> None:
        self._set(X, y, self.prior(self.features(X), y, previous), len(y))

    def _set(self, X: Floats, y: Floats, prior: RegressionPrior, learned_at: int, state: Any = None) -> None:
        self.X_, self.y_, self.prior_, self.learned_at_, self.state_ = X, y, prior, learned_at, state
        if state is not None:
            return
        features = self.features(X)
        self.state_ = prior.start(features.shape[1], len(y))
        self.state_.learn(features, prior.scaling.apply(y))


# With fewer random labels than this, hyper-parameters are not compared.
_FEWEST_RANDOM: Final = 5
# Largest number of labels in this comparison; of more labels, an evenly spaced part is used.
_MOST_COMPARED: Final = 1000


def preferred(previous: Any, new: Any, features: Floats, y: Floats, random: Any) -> Any:
    r"""Return the set of hyper-parameters, of two, with the better leave-one-out predictions of the random labels.

    .. math:: \sum_{i\ \mathrm{random}} \log N(y_i; \mu_{-i}, v_{-i}) + \log p(\theta)

    Labels that the model chose are not representative of the pool. So the marginal likelihood of all labels can prefer
    hyper-parameters that are worse on the pool. Labels drawn at random do not have this bias.

    Args:
        previous: The hyper-parameters in use, or None.
        new: Those learned from these labels.
        features: ``n x D``.
        y: Labels, ``n``.
        random: Which of them were drawn at random, ``n``; None if that is not known.
    """
    if previous is None or random is None or np.count_nonzero(random) < _FEWEST_RANDOM:
        return new
    if len(y) > _MOST_COMPARED:
        rows = np.unique(np.linspace(0, len(y) - 1, _MOST_COMPARED).astype(int))
        features, y, random = features[rows], y[rows], random[rows]

    def score(prior: RegressionPrior) -> float:
        mean, variance = prior.left_out(features, y)
        density = -0.5 * ((y - mean) ** 2 / variance + np.log(variance))
        return float(density[random].sum()) + prior.log_density(features, y)

    return new if score(new) >= score(previous) else previous


def scaling_of(y: Floats, wanted: bool) -> Scaling:
    """Return the mean and deviation of the labels, or 0 and 1 if no standardisation is wanted.

    Examples:
        >>> scaling_of(np.array([1.0, 3.0]), True)
        Scaling(centre=2.0, scale=1.0)
    """
    if not wanted:
        return Scaling()
    scale = float(y.std())
    # The deviation of equal labels is a rounding error.
    return Scaling(float(y.mean()), scale if scale > 1e-12 * float(np.abs(y).max(initial=0.0)) else 1.0)


@dataclass(frozen=True)
class ProcessPrior:
    """Kernel, noise variance, and standardisation of the targets."""

    kernel: GaussianKernel
    noise: float
    scaling: Scaling
    regularized: bool = False

    @property
    def scales(self) -> ProcessScales:
        """Length scale and noise."""
        return ProcessScales(np.array(self.kernel.length_scale), self.noise)

    def left_out(self, features: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Mean and variance of each label given all others."""
        mean, variance = process_left_out(features, self.scaling.apply(y), self.scales)
        return self.scaling.centre + self.scaling.scale * mean, self.scaling.scale**2 * variance

    def log_density(self, features: Floats, y: Floats) -> float:
        """Log density of length scale and noise under their prior."""
        if not self.regularized:
            return 0.0
        theta = np.log(np.append(self.scales.length_scale, self.noise))
        return ScalesPrior.of_data(features, self.scaling.apply(y)).log_density(theta)[0]

    def start(self, n_features: int, capacity: int) -> KernelState:
        """The posterior before any label."""
        return KernelState(self.kernel, self.noise, n_features, capacity)


class GaussianProcess(GaussianRegressor):
    r"""Gaussian process regression: ``y = f(x) + noise`` with ``f ~ GP(0, k)`` and a Gaussian kernel.

    .. math:: k(x, x') = \exp\{-|x - x'|^2 / 2 l^2\}, \qquad
              \mu(x) = k(x)' (K + \sigma^2 I)^{-1} y, \qquad s(x) = 1 - k(x)' (K + \sigma^2 I)^{-1} k(x).

    Args:
        length_scale: ``l``: one number, or one per feature. By default it is learned from the labels by marginal
            likelihood, in ``fit`` and again whenever the number of labels has doubled.
        noise: Variance of the noise; by default learned in the same way.
        per_feature: Whether there is one learned length scale per feature.
        normalize_y: Whether targets are standardised with the current labels when hyper-parameters are learned; the
            prior has mean 0 and variance 1. Default: yes if a hyper-parameter is learned, no if all are given (then
            ``noise`` is in the squared units of ``y``).
        regularize: Whether hyper-parameters are learned with a weak prior, which prevents extreme values when there
            are few labels; see :class:`~suffice.models.regression.ScalesPrior`. The paper has none.

    Attributes:
        prior_: Hyper-parameters in use.
        learned_at_: Number of labels that they were learned from.
        n_labels_: Labels learned from.

    Reference: [IshibashiHino2021] section 5.2, model 3.

    Examples:
        >>> model = GaussianProcess(length_scale=1.0, noise=0.1).fit([[0.0], [1.0], [2.0]], [0.0, 0.8, 0.9])
        >>> mean, std = model.predict([[1.5]], return_std=True)
        >>> mean.round(3), std.round(3)
        (array([0.906]), array([0.427]))
        >>> model.observe([[1.5]], [1.0]).posterior
        GaussianProcessPosterior(4 observations)
    """

    def __init__(
        self,
        length_scale: float | Sequence[float] | None = None,
        noise: float | None = None,
        *,
        per_feature: bool = False,
        normalize_y: bool | None = None,
        regularize: bool = True,
    ) -> None:
        self.length_scale = length_scale
        self.noise = noise
        self.per_feature = per_feature
        self.normalize_y = normalize_y
        self.regularize = regularize

    @property
    def learns(self) -> bool:
        """Whether length scale or noise is learned."""
        return self.length_scale is None or self.noise is None

    def check(self, n_features: int) -> None:
        """Raise an error for an invalid length scale or noise."""
        self._start(np.zeros((1, n_features)), None)

    def prior(self, features: Floats, y: Floats, previous: Any = None, random: Any = None) -> ProcessPrior:
        """Return kernel and noise: the given ones, and the others by the marginal likelihood of these labels."""
        scaling = scaling_of(y, self.learns if self.normalize_y is None else self.normalize_y)
        start = self._start(features, previous)
        if self.learns:
            fixed = self.length_scale is not None, self.noise is not None
            weak = ScalesPrior.of_data(features, scaling.apply(y)) if self.regularize else None
            start = learn_process(features, scaling.apply(y), start, fixed=fixed, prior=weak)
        kernel = GaussianKernel(tuple(float(v) for v in start.length_scale))
        new = ProcessPrior(kernel, start.noise, scaling, self.learns and self.regularize)
        found: ProcessPrior = preferred(previous if self.learns else None, new, features, y, random)
        return found

    @property
    def posterior(self) -> GaussianProcessPosterior:
        """The posterior over functions, as a value."""
        check_is_fitted(self, "state_")
        state: KernelState = self.state_
        return state.posterior(self.prior_.scaling.apply(self.y_), self.prior_.scaling)

    def _start(self, features: Floats, previous: ProcessPrior | None) -> ProcessScales:
        n_features = features.shape[1]
        if self.length_scale is not None:
            length = np.atleast_1d(
                np.array(
                    [
                        real(v, "length_scale", "above 0", lambda x: x > 0.0)
                        for v in np.ravel(np.asarray(self.length_scale, dtype=object))
                    ]
                )
            )
            if len(length) not in (1, n_features):
                raise InvalidValueError(
                    f"length_scale has {len(length)} entries and X {n_features} features; give one, or one per feature"
                )
        elif previous is not None:
            length = np.array(previous.kernel.length_scale)
        else:
            # Typical distance of two standardised points; if features are not standardised, of these points.
            typical = float(np.sqrt(2.0 * features.var(axis=0).sum())) or 1.0
            length = np.full(n_features if self.per_feature else 1, typical)
        noise = 0.1 if previous is None else previous.noise
        if self.noise is not None:
            noise = real(self.noise, "noise", "above 0: it is a variance", lambda x: x > 0.0)
        return ProcessScales(length, noise)


class RadialBasis(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    r"""Radial basis functions of each input, :math:`\psi_{dm}(x) = \exp\{-(x_d - c_m)^2 / 2h^2\}`: ``D M`` features.

    The ``M`` centres are equally spaced over the range of all inputs given to ``fit``, and are the same for all
    ``D`` dimensions: standardise the inputs first. Inputs need no labels, so fit it on the whole pool.

    Args:
        n_centres: ``M``.
        bandwidth: ``h`` in steps between centres: 1 in the paper, 0.5 in its authors' code.

    Attributes:
        centres_: ``M`` numbers.
        width_: ``h``.

    Reference: [IshibashiHino2021] section 5.2, model 1.

    Examples:
        >>> RadialBasis(n_centres=3).fit_transform([[0.0], [2.0]]).round(3)
        array([[1.   , 0.607, 0.135],
               [0.135, 0.607, 1.   ]])
    """

    def __init__(self, n_centres: int = 10, *, bandwidth: float = 1.0) -> None:
        self.n_centres = n_centres
        self.bandwidth = bandwidth

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002 - scikit-learn's signature
        """Place the centres over the range of ``X``."""
        names = column_names(X)
        inputs: Floats = validate_data(self, X, dtype=np.float64, ensure_all_finite=False)
        require_finite(inputs, names)
        n = whole(self.n_centres, "n_centres", least=1)
        bandwidth = real(self.bandwidth, "bandwidth", "above 0", lambda x: x > 0.0)
        low, high = float(inputs.min()), float(inputs.max())
        step = (high - low) / max(n - 1, 1) or 1.0
        self.centres_ = np.linspace(low, high, n)
        self.width_ = bandwidth * step
        return self

    def transform(self, X: Any) -> Floats:
        """Return the basis functions at each row, ``n x D M``, those of the first input first."""
        check_is_fitted(self, "centres_")
        inputs = prediction_inputs(self, X)
        distance = (inputs[:, :, None] - self.centres_) / self.width_
        return np.asarray(np.exp(-0.5 * distance**2).reshape(len(inputs), -1))

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Return the name of each feature: the name of the input and the number of the basis function."""
        check_is_fitted(self, "centres_")
        given = getattr(self, "feature_names_in_", None) if input_features is None else input_features
        names = [f"x{d}" for d in range(self.n_features_in_)] if given is None else given
        return np.asarray([f"{name}_rbf{m}" for name in names for m in range(len(self.centres_))], dtype=object)


@dataclass(frozen=True)
class RidgePrior:
    """Prior precision of the weights, precision of the noise, and standardisation of the targets."""

    alpha: float
    beta: float
    scaling: Scaling

    def left_out(self, features: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Mean and variance of each label given all others."""
        mean, variance = ridge_left_out(features, self.scaling.apply(y), RidgeScales(self.alpha, self.beta))
        return self.scaling.centre + self.scaling.scale * mean, self.scaling.scale**2 * variance

    def log_density(self, features: Floats, y: Floats) -> float:
        """Both precisions have no prior."""
        del features, y
        return 0.0

    def start(self, n_features: int, capacity: int) -> WeightState:
        """The posterior before any label."""
        return WeightState(self.alpha, 1.0 / self.beta, n_features, capacity)


class BayesianRidge(GaussianRegressor):
    r"""Bayesian ridge regression: ``y = w'x + noise`` with ``w ~ N(0, I/alpha)`` and noise variance ``1/beta``.

    .. math:: p(w | S) = N(\beta \Sigma \Phi' y, \Sigma), \qquad \Sigma^{-1} = \alpha I + \beta \Phi'\Phi.

    Put :class:`RadialBasis` before it, in a pipeline, for the paper's model.

    Args:
        alpha: Prior precision of the weights. By default it is learned from the labels by the evidence, in ``fit``
            and again whenever the number of labels has doubled.
        beta: Precision of the noise (one over its variance); by default learned in the same way.
        fit_intercept: Whether a constant feature is added, in front. Its weight has the same prior and is part of the
            posterior, as the guarantee of the stopping rule needs. Without it, the constant is the mean of the current
            labels, and the mean of labels that were chosen differs from that of the pool. The paper has none.
        normalize_y: Whether targets are standardised with the current labels when hyper-parameters are learned.
            Default: yes if a hyper-parameter is learned, no if all are given.
        regularize: Whether a learned noise variance accounts for the degrees of freedom of its labels, see
            :func:`~suffice.models.regression.with_freedom`. In the paper it does not.

    Attributes:
        coef_, intercept_: Mean of the weights, in the units of ``y``.
        prior_: Hyper-parameters in use.
        learned_at_: Number of labels that they were learned from.

    Reference: [IshibashiHino2021] section 5.2, model 1.

    Examples:
        >>> model = BayesianRidge(alpha=1.0, beta=10.0).fit([[1.0, 0.0], [0.0, 1.0]], [1.0, -1.0])
        >>> model.coef_.round(3)
        array([ 0.909, -0.909])
        >>> model.observe([[1.0, 1.0]], [0.2]).posterior
        Gaussian(3 parameters, by precision)
    """

    def __init__(
        self,
        alpha: float | None = None,
        beta: float | None = None,
        *,
        fit_intercept: bool = True,
        normalize_y: bool | None = None,
        regularize: bool = True,
    ) -> None:
        self.alpha = alpha
        self.beta = beta
        self.fit_intercept = fit_intercept
        self.normalize_y = normalize_y
        self.regularize = regularize

    @property
    def learns(self) -> bool:
        """Whether alpha or beta is learned."""
        return self.alpha is None or self.beta is None

    def check(self, n_features: int) -> None:
        """Raise an error for an invalid alpha or beta."""
        del n_features
        self._start(None)

    def features(self, X: Floats) -> Floats:
        """The inputs, with a column of ones in front if there is an intercept."""
        return np.column_stack([np.ones(len(X)), X]) if self.fit_intercept else X

    def prior(self, features: Floats, y: Floats, previous: Any = None, random: Any = None) -> RidgePrior:
        """Return both precisions: the given ones, and the others by the evidence of these labels."""
        scaling = scaling_of(y, self.learns if self.normalize_y is None else self.normalize_y)
        if not self.learns:
            return RidgePrior(*self._start(None), scaling)
        target, fixed = scaling.apply(y), (self.alpha is not None, self.beta is not None)
        # If few labels led to weights of 0, the iteration stays at this fixed point with any further labels. So it is
        # also started from the initial values, and the result with the larger evidence is used.
        starts = dict.fromkeys((self._start(previous), self._start(None)))
        ends = [learn_ridge(features, target, start, fixed=fixed) for start in starts]
        best = max(ends, key=lambda scales: ridge_evidence(features, target, scales)) if len(ends) > 1 else ends[0]
        if self.regularize:
            best = with_freedom(features, best, fixed=fixed)
        found: RidgePrior = preferred(previous, RidgePrior(*best, scaling), features, y, random)
        return found

    def _start(self, previous: RidgePrior | None) -> RidgeScales:
        return RidgeScales(
            *(
                getattr(previous, name, 1.0) if given is None else real(given, name, "above 0", lambda x: x > 0.0)
                for name, given in (("alpha", self.alpha), ("beta", self.beta))
            )
        )

    @property
    def posterior(self) -> Gaussian:
        """The posterior over the weights (the intercept's first), for the standardised target."""
        check_is_fitted(self, "state_")
        state: WeightState = self.state_
        return state.posterior()

    @property
    def coef_(self) -> Floats:
        """Mean of the weights of the inputs, in the units of ``y``."""
        check_is_fitted(self, "state_")
        return np.asarray(self.prior_.scaling.scale * self.state_.weights[int(self.fit_intercept) :])

    @property
    def intercept_(self) -> float:
        """Mean of the constant, in the units of ``y``."""
        check_is_fitted(self, "state_")
        centre, scale = self.prior_.scaling
        return float(centre + scale * (self.state_.weights[0] if self.fit_intercept else 0.0))
