"""Predictions of classifiers: averages over a Laplace posterior, draws, leave-one-out predictions, and their quality.

Leave-one-out predictions need no new fit. Losses, accuracy and calibration are computed on a test set.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any, Final, NamedTuple

import numpy as np
import scipy
from numpy.polynomial import Polynomial
from numpy.typing import NDArray

from suffice.numerics import Floats, solve_upper


def moderated_logits(posterior: Any, features: Floats) -> Floats:
    r"""Logits of the averaged probabilities by MacKay's formula: :math:`\mu / \sqrt{1 + \pi s / 8}`.

    For many classes, ``s`` is the variance of a logit without the part that all classes share, which cancels in the
    probabilities. The mean of the weights over the classes is :math:`N(0, I / K\alpha)` for any labels, and independent
    of the rest.

    Args:
        posterior: :class:`~suffice.models.laplace.Laplace` or :class:`~suffice.models.laplace.SoftmaxLaplace`.
        features: ``m x J``.

    Returns:
        ``m`` numbers, or ``m x K`` for many classes.
    """
    mean, variance = posterior.latent(features)
    if mean.ndim == 2:
        shared = np.einsum("ij,ij->i", features, features) / (posterior.n_classes * posterior.alpha)
        variance = np.maximum(variance - shared[:, None], 0.0)
    return moderated(mean, variance)


def moderated(mean: Floats, variance: Floats) -> Floats:
    r"""Logits of probabilities averaged over :math:`N(\mu, s)`: MacKay's formula, :math:`\mu / \sqrt{1 + \pi s / 8}`.

    Examples:
        >>> moderated(np.array([2.0]), np.array([8.0 / np.pi])).round(4)
        array([1.4142])
    """
    return np.asarray(mean / np.sqrt(1.0 + np.pi / 8.0 * variance))


def probabilities(logits: Floats) -> Floats:
    """Class probabilities, ``m x K``, from logits of two classes (``m``) or many (``m x K``).

    Examples:
        >>> probabilities(np.zeros(1))
        array([[0.5, 0.5]])
    """
    if logits.ndim == 1:
        return np.column_stack([scipy.special.expit(-logits), scipy.special.expit(logits)])
    return np.asarray(scipy.special.softmax(logits, axis=1))


@cache
def hermite(n: int) -> tuple[Floats, Floats]:
    """Nodes and weights of an expectation over N(0, 1)."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(n)
    return nodes, weights / weights.sum()


def weight_draws(posterior: Any, n: int, seed: int = 0) -> Floats:
    """Return draws of the weights, in pairs that are symmetric about the mean.

    The same seed gives the same random numbers at every step, so that the noise of the draws changes little.

    Args:
        posterior: With ``weights`` (``J``, or ``K x J``) and ``factor``, the lower factor of their precision.
        n: Number of draws.
        seed: Seed of the random numbers.

    Returns:
        ``n x J``, or ``n x K x J``.
    """
    z = np.random.default_rng(seed).standard_normal((posterior.weights.size, (n + 1) // 2))
    offsets = solve_upper(posterior.factor, z).T.reshape(-1, *posterior.weights.shape)
    return np.concatenate([posterior.weights + offsets, posterior.weights - offsets])[:n]


def exponentials(values: Any) -> Any:
    """``exp`` of an array or a tensor, on its device."""
    return np.exp(values) if isinstance(values, np.ndarray) else values.exp()


def as_numbers(values: Any) -> Floats:
    """An array or a tensor on any device, in double precision."""
    return np.asarray(values if isinstance(values, np.ndarray) else values.double().cpu().numpy(), dtype=np.float64)


# Least and largest number of leave-one-out predictions, and their total cost: numbers of a triangle that are read.
_FEWEST_GUESSES, _MOST, _COST = 100, 500, 5 * 10**8
# Largest number of values in memory at a time.
_MOST_HELD: Final = 2_000_000
# Largest leverage of a label on its own logit; larger values are rounding errors.
_MOST_OWN: Final = 1.0 - 1e-9
_FACTORS: Final[Floats] = np.geomspace(0.1, 10.0, 21)


class Guesses(NamedTuple):
    """Labels and their leave-one-out predictions.

    Attributes:
        logits: Logits of the averaged probabilities, ``m``, or ``m x K`` for many classes.
        codes: The classes, as codes.
    """

    logits: Floats
    codes: NDArray[np.intp]


class _Without(NamedTuple):
    """A posterior for :func:`moderated_logits` that is different for each row."""

    mean: Floats
    variance: Floats
    n_classes: int
    alpha: float

    def latent(self, features: Floats) -> tuple[Floats, Floats]:
        """Return the mean and variance of the logits of its rows."""
        del features
        return self.mean, self.variance


def guesses(posterior: Any, places: Any = None) -> Guesses:
    r"""Leave-one-out predictions of a posterior for its labels.

    No model is fitted again. Let :math:`S` be the covariance of the logits ``f`` of an item (``K x K``), ``p`` its
    probabilities, and :math:`R = \mathrm{diag}(p) - p p'` the contribution of its label to the precision. Without the
    label, covariance and logits are, to the order of one Newton step,

    .. math:: S_{-} = (S^{-1} - R)^{-1}, \qquad f_{-} = f - S_{-} (e_y - p).

    If there are many labels, an evenly spaced part is used: at most 500, and fewer (down to 100) for many weights.

    Args:
        posterior: :class:`~suffice.models.laplace.Laplace` or :class:`~suffice.models.laplace.SoftmaxLaplace`.
        places: Positions of the labels to predict, in the order in which they were learned; by default as above.
    """
    rows, codes = posterior.labelled()
    chosen = guessed_places(posterior) if places is None else places
    rows, codes = rows[chosen], codes[chosen]
    left = (
        _two_without(posterior, rows, codes) if posterior.weights.ndim == 1 else _many_without(posterior, rows, codes)
    )
    without = _Without(*left, posterior.n_classes, posterior.alpha)
    return Guesses(moderated_logits(without, rows), codes)


def guessed_places(posterior: Any) -> NDArray[np.intp]:
    """Return the positions of the labels that :func:`guesses` uses: all, or an evenly spaced part."""
    n = len(posterior.labelled()[1])
    most = int(np.clip(_COST // posterior.weights.size**2, _FEWEST_GUESSES, _MOST))
    return np.unique(np.linspace(0, n - 1, most).astype(np.intp)) if n > most else np.arange(n)


def _two_without(posterior: Any, rows: Floats, codes: Any) -> tuple[Floats, Floats]:
    mean, variance = posterior.latent(rows)
    p = np.exp(log_probabilities(mean)[:, 1])
    variance = variance / (1.0 - np.minimum(p * (1.0 - p) * variance, _MOST_OWN))
    return mean - variance * (codes - p), variance


def _many_without(posterior: Any, rows: Floats, codes: Any) -> tuple[Floats, Floats]:
    mean = rows @ posterior.weights.T
    variance = np.empty_like(mean)
    size = max(1, _MOST_HELD // (posterior.weights.size * posterior.n_classes))
    for start in range(0, len(rows), size):
        part = slice(start, start + size)
        p = np.exp(log_probabilities(mean[part]))
        S = _covariances(posterior, rows[part])
        # R = G G', and S without the label is S + S G (1 - G'SG)^-1 G'S.
        G = np.sqrt(p)[:, None, :] * (np.eye(p.shape[1]) - p[:, :, None])
        own, basis = np.linalg.eigh(G.transpose(0, 2, 1) @ S @ G)
        side = S @ G @ basis / np.sqrt(1.0 - np.clip(own, 0.0, _MOST_OWN))[:, None, :]
        S += side @ side.transpose(0, 2, 1)
        surprise = np.eye(p.shape[1])[codes[part]] - p
        mean[part] -= np.einsum("ikl,il->ik", S, surprise)
        variance[part] = np.einsum("ikk->ik", S)
    return mean, variance


def _covariances(posterior: Any, rows: Floats) -> Floats:
    """Posterior covariance of the logits of each row, ``m x K x K``."""
    inverse, width = posterior.snapshot().inverse_factor, posterior.n_features
    spread = np.zeros((len(rows), len(inverse), posterior.n_classes))
    for k, first in enumerate(range(0, len(inverse), width)):
        # Rows above the block are 0 in a lower triangle.
        spread[:, first:, k] = rows @ inverse[first:, first : first + width].T
    return np.asarray(spread.transpose(0, 2, 1) @ spread)


#: The factors of the logits that are tried, evenly spaced on a log scale.
FACTORS: Final[Floats] = np.geomspace(0.1, 10.0, 81)
# Prior standard deviation of the log of the factor: with a probability of about 2/3 the factor is from 0.5 to 2.
_SPREAD: Final = 0.7


def sharpness(guessed: Guesses, weights: Any = 1.0) -> Floats:
    r"""Probability of each of :data:`FACTORS`, given the labels and their leave-one-out predictions.

    .. math:: \log p(t) = \sum_i w_i \log \mathrm{softmax}(t z_i)_{y_i} - \frac{(\log t)^2}{2 \cdot 0.7^2}
              + \text{const}.

    The second term keeps the factor near 1 while there are few labels.

    Args:
        guessed: The result of :func:`guesses`.
        weights: ``w``, one number for all labels, or one for each.

    Examples:
        >>> p = sharpness(Guesses(np.array([0.5, -0.5] * 50), np.array([1, 0] * 50)))  # right, and far too unsure
        >>> bool(p @ np.log(FACTORS) > np.log(4.0))
        True
    """
    likely = np.concatenate([(weights * logs).sum(axis=1) for logs in _own_logs(guessed, FACTORS)])
    likely -= 0.5 * (np.log(FACTORS) / _SPREAD) ** 2
    odds = np.exp(likely - likely.max())
    return np.asarray(odds / odds.sum())


def left_out_loss(posterior: Any) -> float:
    """Return the mean leave-one-out log loss of the labels, or of a part of them if there are many.

    All logits are multiplied by the best one of several factors from 0.1 to 10. The result thus measures how well
    classes are separated, not how confident the model is. A posterior with many weights is underconfident.

    Args:
        posterior: A posterior for :func:`guesses`, with at least one label.

    Examples:
        >>> from suffice.models.laplace import laplace
        >>> round(left_out_loss(laplace(np.ones((4, 1)), np.array([0, 1, 0, 1]), 2, alpha=1.0)), 3)
        0.706
    """
    return min(-float(logs.mean(axis=1).max()) for logs in _own_logs(guesses(posterior), _FACTORS))


def scaled_logits(logits: Floats, factors: Floats) -> Iterator[Floats]:
    """Yield logits times each factor, ``F x m`` or ``F x m x K``, a few factors at a time if there are many items.

    Examples:
        >>> [part.tolist() for part in scaled_logits(np.array([1.0, -2.0]), np.array([1.0, 3.0]))]
        [[[1.0, -2.0], [3.0, -6.0]]]
    """
    size = max(1, _MOST_HELD // max(1, logits.size))
    for start in range(0, len(factors), size):
        yield np.multiply.outer(factors[start : start + size], logits)


def _own_logs(guessed: Guesses, factors: Floats) -> Iterator[Floats]:
    """Log probability of each label if all logits are multiplied by a factor, ``F x m``: a few factors at a time."""
    for logits in scaled_logits(guessed.logits, factors):
        if logits.ndim == 2:
            yield -np.logaddexp(0.0, np.where(guessed.codes == 1, -logits, logits))
        else:
            yield np.take_along_axis(scipy.special.log_softmax(logits, axis=2), guessed.codes[None, :, None], axis=2)[
                ..., 0
            ]


def log_probabilities(logits: Floats) -> Floats:
    """Logs of the probabilities of all classes, ``m x K``, from logits of two classes (``m``) or many (``m x K``)."""
    if logits.ndim == 1:
        return np.column_stack([-np.logaddexp(0.0, logits), -np.logaddexp(0.0, -logits)])
    return np.asarray(scipy.special.log_softmax(logits, axis=1))


# Up to this variance expected values are interpolated; above it, Gauss-Laguerre has an error of at most 5e-8.
_INTERPOLATED: Final = 2.0
# Distances of the nodes of the interpolation by mean and by variance. Larger means than the last count as the last:
# values there are below 6e-9.
_MEAN_STEP, _VARIANCE_STEP = 1.0 / 8.0, 1.0 / 32.0
_LAST_MEAN: Final = 20.0
# Number of derivatives at each node, the value included, and nodes of the quadrature by which they are computed.
_DERIVATIVES, _QUADRATURE = 6, 24
_LAGUERRE: Final = 40
_DRAWS: Final = 32
# Largest size in bytes of the logits of all draws at a time.
_HELD: Final = 1 << 20


def expected_softplus(mean: Floats, variance: Floats) -> Floats:
    r"""Return :math:`E[\log(1 + e^f)]` for :math:`f \sim N(\mu, s)`, elementwise, to about 5e-8.

    With :math:`F(a, s) = E[\log(1 + e^{-f})]` for :math:`f \sim N(a, s)`, this is
    :math:`\max(\mu, 0) + F(|\mu|, s)`. Variances up to 2: the Taylor series of ``F`` around the nearest of a grid of
    nodes. Because :math:`\partial F / \partial s = \tfrac12 \partial^2 F / \partial a^2`, it has the derivatives by the
    mean only,

    .. math:: F(a + x, s + t) = \sum_k h_k(x, t/2) \frac{\partial^k F}{\partial a^k}(a, s), \qquad
              h_{k+1} = \frac{x h_k + t h_{k-1}}{k + 1}, \quad h_0 = 1, \quad h_1 = x.

    Large ones: :math:`E[\max(f, 0)]` is known in closed form, and the difference, :math:`E[\log(1 + e^{-|f|})]`, is an
    integral of a wide density against an exponential (Gauss-Laguerre).

    Args:
        mean: ``mu``, ``m``.
        variance: ``s``, ``m``.

    Returns:
        ``m`` numbers.

    Examples:
        >>> expected_softplus(np.zeros(2), np.array([0.0, 1.0])).round(5)
        array([0.69315, 0.80606])
    """
    result = _interpolated(mean, variance)
    large = np.flatnonzero(variance > _INTERPOLATED)
    if len(large):
        result[large] = _by_laguerre(mean[large], variance[large])
    return result


def _interpolated(mean: Floats, variance: Floats) -> Floats:
    number, tables = mean.dtype.type, _derivative_tables(mean.dtype)
    # Larger means and variances are computed elsewhere, and must not be outside the tables here.
    a, s = np.minimum(np.abs(mean), number(_LAST_MEAN)), np.minimum(variance, number(_INTERPOLATED))
    row, column = np.rint(a * number(1.0 / _MEAN_STEP)), np.rint(s * number(1.0 / _VARIANCE_STEP))
    node = (row * number(round(_INTERPOLATED / _VARIANCE_STEP) + 1) + column).astype(np.intp)
    x, t = a - row * number(_MEAN_STEP), s - column * number(_VARIANCE_STEP)
    before, heat = np.ones_like(x), x
    total = tables[0].take(node)
    for k, table in enumerate(tables[1:], start=1):
        total += table.take(node) * heat
        before, heat = heat, (x * heat + t * before) * number(1.0 / (k + 1))
    total += np.maximum(mean, number(0.0))
    return np.asarray(total)


@cache
def _derivative_tables(dtype: "np.dtype[Any]") -> tuple[Floats, ...]:
    """``F`` and its derivatives by the mean at all nodes, the variance changing fastest."""
    means = np.arange(0.0, _LAST_MEAN + 0.5 * _MEAN_STEP, _MEAN_STEP)
    variances = np.arange(0.0, _INTERPOLATED + 0.5 * _VARIANCE_STEP, _VARIANCE_STEP)
    nodes, weights = hermite(_QUADRATURE)
    f = means[:, None, None] + np.sqrt(variances)[:, None] * nodes
    tail = np.exp(-np.abs(f))
    # The derivatives of log(1 + e^-f) are polynomials in q = 1 / (1 + e^f), because q' = -q (1 - q).
    q = np.where(f > 0.0, tail, 1.0) / (1.0 + tail)
    values, polynomial = [(np.maximum(-f, 0.0) + np.log1p(tail)) @ weights], Polynomial([0.0, -1.0])
    for _ in range(1, _DERIVATIVES):
        values.append(polynomial(q) @ weights)
        polynomial = polynomial.deriv() * Polynomial([0.0, -1.0, 1.0])
    return tuple(value.ravel().astype(dtype) for value in values)


def _by_laguerre(mean: Floats, variance: Floats) -> Floats:
    nodes, weights = _laguerre()
    deviation = np.sqrt(variance)
    z = mean / deviation
    ramp = mean * scipy.special.ndtr(z) + deviation * np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi)
    x = nodes[:, None]
    density = np.exp(-0.5 * (x - mean) ** 2 / variance) + np.exp(-0.5 * (x + mean) ** 2 / variance)
    return np.asarray(ramp + weights @ density / (deviation * np.sqrt(2.0 * np.pi)))


@cache
def _laguerre() -> tuple[Floats, Floats]:
    """Nodes and weights for integrals against log(1 + e^-x) over x > 0."""
    nodes, weights = np.polynomial.laguerre.laggauss(_LAGUERRE)
    return nodes, weights * np.log1p(np.exp(-nodes)) * np.exp(nodes)


class BinaryCrossEntropy:
    r"""Expected cross entropy of two classes, :math:`\frac1m \sum_j E[\log(1 + e^{f_j})] - y_j \mu_j`.

    Args:
        features: Test features, ``m x J``.
        codes: Classes, 0 or 1.

    Reference: [IshibashiHino2021] section 5.1; both classes count, where the authors' code counts one.
    """

    def __init__(self, features: Floats, codes: Any) -> None:
        self._features = np.ascontiguousarray(features)
        self._ones = (np.asarray(codes) == 1).astype(np.float64)

    def error(self, posterior: Any) -> float:
        """The expected error under a posterior of the weights."""
        return self.error_of(*posterior.latent(self._features))

    def error_of(self, mean: Floats, variance: Floats) -> float:
        """The expected error, from mean and variance of each logit, ``m`` numbers each."""
        return float(self.errors_of(mean[None], variance[None])[0])

    def errors_of(self, mean: Floats, variance: Floats) -> Floats:
        """The expected error under each of ``k`` posteriors, from ``k x m`` means and variances."""
        # In single precision a mean over the test set has an error of at most 1e-6, and takes half the time.
        single: list[Any] = [values.ravel().astype(np.float32) for values in (mean, variance)]
        losses = expected_softplus(*single)
        total = losses.reshape(mean.shape).sum(axis=1, dtype=np.float64)
        return np.asarray((total - mean @ self._ones) / mean.shape[1])


class SoftmaxCrossEntropy:
    """Expected cross entropy of many classes, estimated by a few draws of the weights, the same at every step.

    Args:
        features: Test features, ``m x J``.
        codes: Classes, from 0.
    """

    def __init__(self, features: Floats, codes: Any) -> None:
        # In single precision a mean over the test set has an error of at most 1e-6, far below the noise of the draws.
        self._columns, self._codes = np.ascontiguousarray(features.T, dtype=np.float32), np.asarray(codes)

    def error(self, posterior: Any) -> float:
        """The expected error under a posterior of the weights."""
        draws = weight_draws(posterior, _DRAWS).astype(np.float32)
        (S, K, J), m = draws.shape, self._columns.shape[1]
        total, at_once = 0.0, max(1, _HELD // (4 * S * K))
        for first in range(0, m, at_once):
            part = slice(first, min(first + at_once, m))
            logits = (draws.reshape(S * K, J) @ self._columns[:, part]).reshape(S, K, -1)
            chosen = logits[:, self._codes[part], np.arange(logits.shape[2])]
            largest = logits.max(axis=1)
            logits -= largest[:, None]
            np.exp(logits, out=logits)
            total += float(np.sum(largest + np.log(logits.sum(axis=1)) - chosen, dtype=np.float64))
        return float(total / (S * m))


class ClassLosses(NamedTuple):
    """Losses of averaged predictions on a test set.

    Attributes:
        log_loss: Mean of ``-log p(true class)`` in nats, over the rows of known classes.
        wrong_share: Share of all rows whose predicted class is wrong.
    """

    log_loss: float
    wrong_share: float


class AveragedPredictions:
    r"""Losses of the averaged prediction of a Laplace posterior, :math:`\bar p` by MacKay's formula.

    The log loss is :math:`-\frac1m \sum_j \log \bar p_{y_j}(x_j)`, in double precision: it is that of
    ``predict_proba``. While one class is known, ``predict_proba`` gives it the probability 1; the log loss is then
    that of the two-class posterior, in which the second class represents all others.

    Args:
        features: Rows of known classes, ``m x J``.
        codes: Their classes, from 0.
        classes: Number of known classes.
        unknown: Number of other rows of the test set, whose classes are not known. They count as wrong.
    """

    def __init__(self, features: Floats, codes: Any, *, classes: int, unknown: int = 0) -> None:
        self._features, self._codes = features, np.asarray(codes)
        self._ones = self._codes == 1
        self._signs = np.where(self._ones, 1.0, -1.0)
        self._classes, self._unknown = classes, unknown

    def losses(self, posterior: Any) -> ClassLosses:
        """The losses under a posterior of the weights."""
        return self.losses_of(moderated_logits(posterior, self._features))

    def losses_of(self, logits: Floats) -> ClassLosses:
        """The losses of logits of averaged probabilities, ``m``, or ``m x K`` for many classes."""
        if logits.ndim == 1:
            return self.losses_of_two(logits[None])[0]
        m = len(self._codes)
        loss = -scipy.special.log_softmax(logits, axis=1)[np.arange(m), self._codes]
        return self._losses(loss.mean(), np.count_nonzero(logits.argmax(axis=1) != self._codes))

    def losses_of_two(self, logits: Floats) -> list[ClassLosses]:
        """The losses for two classes under each of ``k`` posteriors, from ``k x m`` logits."""
        against = -self._signs * logits
        # The same as logaddexp(0, against), several times faster.
        loss = np.maximum(against, 0.0) + np.log1p(np.exp(-np.abs(against)))
        wrong = np.zeros(len(logits), dtype=np.intp)
        if self._classes > 1:
            wrong = np.count_nonzero((logits > 0.0) != self._ones, axis=1)
        return [self._losses(*both) for both in zip(loss.mean(axis=1), wrong, strict=True)]

    def _losses(self, log_loss: Any, wrong: Any) -> ClassLosses:
        return ClassLosses(float(log_loss), (int(wrong) + self._unknown) / (len(self._codes) + self._unknown))


_BINS: Final = 15


class Quality(NamedTuple):
    """Quality of predictions on a test set.

    Attributes:
        error: Posterior mean of the cross entropy, in nats.
        log_loss: Cross entropy of the averaged prediction, in nats; at most ``error``.
        accuracy: Share of rows whose likeliest class, on average over the draws, is right.
        calibration_error: Expected calibration error: mean difference between confidence and accuracy.
    """

    error: float
    log_loss: float
    accuracy: float
    calibration_error: float


def quality(log_draws: Any, codes: Any) -> Quality:
    r"""Return the quality of predictions that are given as posterior draws.

    The error is :math:`-\frac{1}{Nk} \sum_{i,j} \log p_j(y_i | x_i)`: the expectation of the loss over the posterior,
    whose change the stopping rule bounds. The log loss is that of the averaged prediction,
    :math:`-\frac1N \sum_i \log \frac1k \sum_j p_j(y_i | x_i)`.

    Args:
        log_draws: Log probabilities, ``N x k x C``: an array, or a tensor on any device.
        codes: Class codes of the rows, ``N``.

    Examples:
        >>> right = quality(np.log([[[0.9, 0.1], [0.7, 0.3]]]), [0])
        >>> round(right.error, 4), round(right.log_loss, 4), right.accuracy, round(right.calibration_error, 2)
        (0.231, 0.2231, 1.0, 0.2)
    """
    rows = np.arange(len(codes))
    chosen, averaged = as_numbers(log_draws[rows, :, np.asarray(codes)]), as_numbers(exponentials(log_draws).mean(1))
    right = averaged.argmax(axis=1) == np.asarray(codes)
    # From the logarithms, so that a small probability does not become 0.
    log_loss = float(np.log(chosen.shape[1]) - scipy.special.logsumexp(chosen, axis=1).mean())
    sure = calibration_error(averaged.max(axis=1), right)
    return Quality(-float(chosen.mean()), log_loss, float(right.mean()), sure)


def calibration_error(confidence: Floats, right: Any) -> float:
    r"""Expected calibration error over 15 bins, :math:`\sum_b \frac{n_b}{n} |\mathrm{right}_b - \mathrm{sure}_b|`.

    Reference: [Guo2017] equation 3.

    Examples:
        >>> calibration_error(np.array([0.9, 0.9]), np.array([True, False])).__round__(2)
        0.4
    """
    bins = np.minimum((confidence * _BINS).astype(int), _BINS - 1)
    gap = np.bincount(bins, weights=np.asarray(right) - confidence, minlength=_BINS)
    return float(np.abs(gap).sum() / len(confidence))
