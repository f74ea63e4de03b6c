"""What the paper measures of a run: the correlation of error ratio and error, and where a threshold stops."""

import numpy as np
from numpy.typing import NDArray

from suffice.special import Floats


def running_minima(ratio: Floats, counted_from: int) -> NDArray[np.intp]:
    """Steps at which the ratio is as low as never before, once it is calibrated: elsewhere it cannot stop a run.

    The first that counts is the last that the ratio is calibrated by: it is 1 there, so that a ratio above 1, which
    some runs begin with, never counts.

    Args:
        ratio: Error ratio after each step, 1 until it is calibrated.
        counted_from: The first step, from 0, that counts.

    Reference: [IshibashiHino2021] section 5.1.

    Examples:
        >>> running_minima(np.array([1.0, 1.0, 0.5, 0.7, 0.4]), 1)
        array([1, 2, 4])
    """
    lowest = np.minimum.accumulate(ratio[counted_from:])
    if not len(lowest):
        return np.zeros(0, dtype=np.intp)
    return counted_from + np.flatnonzero(ratio[counted_from:] <= lowest)


def correlation(ratio: Floats, error: Floats, counted_from: int) -> float | None:
    """Correlation of error ratio and error at the running minima of the ratio; None where it is undefined.

    Args:
        ratio: Error ratio after each step, 1 until it is calibrated.
        error: Error after each step.
        counted_from: The first step, from 0, that counts.

    Reference: [IshibashiHino2021] section 5.1.

    Examples:
        >>> ratio, error = np.array([1.0, 1.0, 0.5, 0.7, 0.4]), np.array([9.0, 3.0, 2.0, 7.0, 1.0])
        >>> round(correlation(ratio, error, 1), 3)
        0.933
    """
    at = running_minima(ratio, counted_from)
    # Two points always lie on a line.
    if len(at) < 3 or not np.ptp(error[at]) or not np.ptp(ratio[at]):
        return None
    return float(np.corrcoef(ratio[at], error[at])[0, 1])


def first_at_most(ratio: Floats, threshold: float, counted_from: int) -> int | None:
    """The first step, from 0, at which the calibrated ratio is at most the threshold; None if there is none.

    Examples:
        >>> first_at_most(np.array([1.0, 1.0, 0.5, 0.7, 0.4]), 0.6, 1)
        2
    """
    found = np.flatnonzero(ratio[counted_from:] <= threshold)
    return counted_from + int(found[0]) if len(found) else None
