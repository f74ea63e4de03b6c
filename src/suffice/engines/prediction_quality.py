"""Losses, accuracy and calibration of predictions on a test set."""

from functools import cache
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.polynomial import Polynomial
from scipy.special import log_softmax, logsumexp, ndtr

from suffice.models.predictive import as_numbers, exponentials, hermite, moderated_logits, weight_draws
from suffice.numerics.special_functions import Floats

# Up to the first variance the series is right to 5e-8, up to each of the others so many nodes of Gauss-Hermite are;
# above, Gauss-Laguerre is.
_SERIES: Final = 0.15
_HERMITE: Final = ((0.5, 8), (1.0, 12), (2.0, 24))
_LAGUERRE: Final = 40
_DRAWS: Final = 32
# Bytes of the logits of all draws that are held at a time.
_HELD: Final = 1 << 20


def expected_softplus(mean: Floats, variance: Floats) -> Floats:
    r"""Return :math:`E[\log(1 + e^f)]` for :math:`f \sim N(\mu, s)`, elementwise, to about 5e-8.

    Small variances: :math:`\sum_k \frac{s^k}{2^k k!} g^{(2k)}(\mu)`, whose derivatives are polynomials in
    :math:`v = p(1 - p)`. Middle ones: Gauss-Hermite. Large ones: :math:`E[\max(f, 0)]` is known in closed form, and
    what is missing, :math:`E[\log(1 + e^{-|f|})]`, is an integral of a wide density against an exponential
    (Gauss-Laguerre).

    Args:
        mean: ``mu``, ``m``.
        variance: ``s``, ``m``.

    Returns:
        ``m`` numbers.

    Examples:
        >>> expected_softplus(np.zeros(2), np.array([0.0, 1.0])).round(5)
        array([0.69315, 0.80606])
    """
    # Most points of a test set have small variances, so all are computed by the series, and those for which it does not
    # hold are computed again.
    result = _by_series(mean, variance)
    left = np.flatnonzero(variance > _SERIES)
    for limit, nodes in _HERMITE:
        if not len(left):
            return result
        small = variance[left] <= limit
        part, left = left[small], left[~small]
        result[part] = _by_hermite(mean[part], variance[part], nodes)
    if len(left):
        result[left] = _by_laguerre(mean[left], variance[left])
    return result


def _by_series(mean: Floats, variance: Floats) -> Floats:
    tail = np.exp(-np.abs(mean))
    v = tail / (1.0 + tail) ** 2
    total = np.zeros_like(mean)
    # Larger variances are none of its business, and must not overflow.
    half = 0.5 * np.minimum(variance, variance.dtype.type(_SERIES))
    for k, coefficients in reversed(list(enumerate(_derivatives(), start=1))):
        inner = v * coefficients[-1]
        for c in coefficients[-2:0:-1]:
            inner += c
            inner *= v
        total += inner
        total *= half if k == 1 else half / k
    # The logarithm itself is several times faster than log1p, and off by a rounding of 1.
    return np.maximum(mean, 0.0) + np.log(1.0 + tail) + total


@cache
def _derivatives() -> tuple[tuple[float, ...], ...]:
    """Coefficients in ``v`` of the even derivatives of log(1 + e^f), the second first.

    From ``v' = v (1 - 2p)`` and ``(1 - 2p)^2 = 1 - 4v``: ``g(v)'' = v {(g2 v + g1)(1 - 4v) - 2 v g1}``, with ``g1``
    and ``g2`` the derivatives by ``v``.
    """
    v = Polynomial([0.0, 1.0])
    g, found = v, []
    for _ in range(5):
        found.append(tuple(float(c) for c in g.coef))
        first, second = g.deriv(1), g.deriv(2)
        g = v * ((second * v + first) * (1.0 - 4.0 * v) - 2.0 * v * first)
    return tuple(found)


def _by_hermite(mean: Floats, variance: Floats, n: int) -> Floats:
    r"""Gauss-Hermite with an even number of nodes, two at a time.

    Nodes come in pairs :math:`\pm z`, and with :math:`t = e^{-|\mu|}`

    .. math::
        \log(1 + e^{\mu + \sigma z}) + \log(1 + e^{\mu - \sigma z})
        = 2 \max(\mu, 0) + \log\{1 + t^2 + t (g + 1/g)\}, \quad g = e^{\sigma z},

    which is one exponential and one logarithm for both.
    """
    nodes, weights = (part[n // 2 :].astype(mean.dtype) for part in hermite(n))
    tail = np.exp(-np.abs(mean))
    pairs = np.exp(np.sqrt(variance) * nodes[:, None])
    pairs += 1.0 / pairs
    pairs *= tail
    pairs += 1.0 + tail * tail
    return np.asarray(np.maximum(mean, 0.0) + weights @ np.log(pairs, out=pairs))


def _by_laguerre(mean: Floats, variance: Floats) -> Floats:
    nodes, weights = _laguerre()
    deviation = np.sqrt(variance)
    z = mean / deviation
    ramp = mean * ndtr(z) + deviation * np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi)
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
        self._ones = np.asarray(codes) == 1

    def error(self, posterior: Any) -> float:
        """The expected error under a posterior of the weights."""
        return self.error_of(*posterior.latent(self._features))

    def error_of(self, mean: Floats, variance: Floats) -> float:
        """The expected error, from mean and variance of each logit, ``m`` numbers each."""
        # Single precision leaves a mean over the test set right to 1e-6, and takes half the time.
        mean, variance = mean.astype(np.float32), variance.astype(np.float32)
        total = expected_softplus(mean, variance).sum(dtype=np.float64) - mean[self._ones].sum(dtype=np.float64)
        return float(total / len(mean))


class SoftmaxCrossEntropy:
    """Expected cross entropy of many classes, by the same few draws of the weights at every step.

    Args:
        features: Test features, ``m x J``.
        codes: Classes, from 0.
    """

    def __init__(self, features: Floats, codes: Any) -> None:
        # Single precision leaves a mean over the test set right to 1e-6, far below the noise of the draws.
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
    that of the two-class posterior, in which a second class stands for all others.

    Args:
        features: Rows of known classes, ``m x J``.
        codes: Their classes, from 0.
        classes: Number of known classes.
        unknown: Number of other rows of the test set, whose classes are not known. They count as wrong.
    """

    def __init__(self, features: Floats, codes: Any, *, classes: int, unknown: int = 0) -> None:
        self._features, self._codes = features, np.asarray(codes)
        self._signs = np.where(self._codes == 1, 1.0, -1.0)
        self._classes, self._unknown = classes, unknown

    def losses(self, posterior: Any) -> ClassLosses:
        """The losses under a posterior of the weights."""
        return self.losses_of(moderated_logits(posterior, self._features))

    def losses_of(self, logits: Floats) -> ClassLosses:
        """The losses of logits of averaged probabilities, ``m``, or ``m x K`` for many classes."""
        m = len(self._codes)
        if logits.ndim == 1:
            against = -self._signs * logits
            # The same as logaddexp(0, against), several times faster.
            loss = np.maximum(against, 0.0) + np.log1p(np.exp(-np.abs(against)))
            wrong = np.count_nonzero((logits > 0.0) != (self._codes == 1)) if self._classes > 1 else 0
        else:
            loss = -log_softmax(logits, axis=1)[np.arange(m), self._codes]
            wrong = np.count_nonzero(logits.argmax(axis=1) != self._codes)
        return ClassLosses(float(loss.mean()), (int(wrong) + self._unknown) / (m + self._unknown))


_BINS: Final = 15


class Quality(NamedTuple):
    """Quality of predictions on a test set.

    Attributes:
        error: Posterior mean of the cross entropy, in nats.
        log_loss: Cross entropy of the averaged prediction, in nats; at most ``error``.
        accuracy: Share of rows whose likeliest class, on average over the draws, is right.
        calibration_error: Expected calibration error: how far the confidence is from the share that is right.
    """

    error: float
    log_loss: float
    accuracy: float
    calibration_error: float


def quality(log_draws: Any, codes: Any) -> Quality:
    r"""Judge predictions by their draws.

    The error is :math:`-\frac{1}{Nk} \sum_{i,j} \log p_j(y_i | x_i)`: the expectation of the loss over the posterior,
    which the stopping rule bounds the change of. The log loss is that of the averaged prediction,
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
    # From the logarithms: a small probability does not become 0.
    log_loss = float(np.log(chosen.shape[1]) - logsumexp(chosen, axis=1).mean())
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
