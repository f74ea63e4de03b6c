"""How good predictions are that come as draws: expected error, accuracy, calibration."""

from typing import Any, Final, NamedTuple

import numpy as np

from suffice.models.predictive import as_numbers, exponentials
from suffice.special import Floats

_BINS: Final = 15


class Quality(NamedTuple):
    """How good predictions are on a test set.

    Attributes:
        error: Posterior mean of the cross entropy, in nats.
        accuracy: Share of rows whose likeliest class, on average over the draws, is right.
        calibration: Expected calibration error: how far the confidence is from the share that is right.
    """

    error: float
    accuracy: float
    calibration: float


def quality(log_draws: Any, codes: Any) -> Quality:
    r"""Judge predictions by their draws.

    The error is :math:`-\frac{1}{Nk} \sum_{i,j} \log p_j(y_i | x_i)`: the expectation of the loss over the posterior,
    which the stopping rule bounds the change of; not the loss of the averaged prediction.

    Args:
        log_draws: Log probabilities, ``N x k x C``: an array, or a tensor on any device.
        codes: Class codes of the rows, ``N``.

    Examples:
        >>> right = quality(np.log([[[0.9, 0.1], [0.7, 0.3]]]), [0])
        >>> round(right.error, 4), right.accuracy, round(right.calibration, 2)
        (0.231, 1.0, 0.2)
    """
    rows = np.arange(len(codes))
    chosen, averaged = as_numbers(log_draws[rows, :, np.asarray(codes)]), as_numbers(exponentials(log_draws).mean(1))
    right = averaged.argmax(axis=1) == np.asarray(codes)
    return Quality(-float(chosen.mean()), float(right.mean()), calibration_error(averaged.max(axis=1), right))


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
