r"""Forecast of the number of labels until a falling curve crosses a threshold, with an interval.

The error ratio is noisy, but a rule stops by its running minimum, which falls nearly like a power law: nearly a line in
:math:`\log` value against :math:`\log` labels. So a line is fitted to its recent part and extrapolated to the
threshold. The interval is not that of the fit. It is based on the errors of such extrapolations on replayed runs
(``benchmarks/forecast_coverage.py``; the measured coverage is in the documentation).
"""

import math
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from suffice.arguments import floats, real, whole
from suffice.errors import InvalidValueError
from suffice.numerics import Floats
from suffice.presentation.plan_words import more_labels

#: Nominal coverage of the interval: share of replayed runs whose true number of labels is in it.
COVERAGE: Final = 0.8

#: Power of the number of labels with which the reducible part of an error falls. Measured on the runs on which the
#: default rule was developed, and for complete labelled data sets (``benchmarks/finish.py``).
CURVE_POWER: Final = 1.0 / 3.0

_FEWEST_STEPS: Final = 4
# The line is fitted to steps with log n within this distance of its last value: the newer half of the labels.
_WINDOW: Final = 0.7
# Prior value of the slope, with a weight (in units of the variance of log n) that grows with the scatter about the
# line, so that it matters less for a smooth curve.
_PRIOR_SLOPE: Final = 1.2
_PRIOR_WEIGHT: Final = 0.005
_SCATTER_WEIGHT: Final = 2.0
_LEAST_SLOPE: Final = 0.05
# Distance until the next new minimum, which is needed even if the line has reached the threshold.
_WAIT: Final = 0.05
# No forecast beyond this multiple of the labels bought so far, because no replayed run was that long.
_FARTHEST: Final = 30.0
# No forecast if the upper end of the interval is more than this multiple of its lower end: it would not be useful.
_WIDEST: Final = 30.0
# log of the distance to go in log n, at 10, 50 and 90 %: intercept, and the shares of the three terms of features().
# Quantile regression on the calibration runs of benchmarks/forecast_coverage.py.
_QUANTILES: Final = np.array(
    [
        [-0.644, -0.515, 0.746, -0.808],
        [-0.129, 0.163, 0.710, -0.314],
        [-0.158, 0.890, 0.585, 0.047],
    ]
)
# The same for a curve of means over the last ten steps or so, which is smoother, at 15, 50 and 85 %. On runs that
# were not used for the fit, this interval contains the truth in about 80 % of the cases as well.
_AVERAGED_QUANTILES: Final = np.array(
    [
        [-0.692, -0.050, 1.022, -1.256],
        [-0.176, 0.238, 0.885, -0.749],
        [0.007, 0.574, 0.722, -0.018],
    ]
)


@dataclass(frozen=True)
class Forecast:
    """A number of labels still to buy.

    Attributes:
        labels: The median of the forecast: as often too low as too high.
        low: Lower end of the interval.
        high: Upper end of the interval.
        coverage: Nominal probability that the interval contains the true number; 1 for a number that is certain.

    Examples:
        >>> print(Forecast(labels=40, low=25, high=90))
        about 40 more labels (25 to 90)
        >>> print(Forecast(labels=12, low=12, high=12, coverage=1.0))
        12 more labels
    """

    labels: int
    low: int
    high: int
    coverage: float = COVERAGE

    def __str__(self) -> str:
        return more_labels(self.labels, self.low, self.high)


@dataclass(frozen=True)
class LearningCurve:
    r"""An error that falls with the number of labels, from the error of now and its fall at the next label.

    After :math:`k` more labels, with :math:`e` the error after :math:`n` labels and :math:`\Delta` its fall at the
    next label,

    .. math:: e_k = e - \frac{n \Delta}{b} \Bigl( 1 - \Bigl(\frac{n}{n + k}\Bigr)^b \Bigr), \qquad
              b = \max\Bigl(\frac13, \frac{n \Delta}{e}\Bigr),

    so that the error never falls below 0.

    Attributes:
        n_labelled: ``n``, above 0.
        error: ``e``, at least 0.
        fall: :math:`\Delta`, at least 0.

    Examples:
        >>> curve = LearningCurve(n_labelled=100, error=0.2, fall=0.0005)
        >>> round(curve.error_after(100), 4), round(curve.fall_after(100), 6)
        (0.1691, 0.000198)
    """

    n_labelled: float
    error: float
    fall: float

    @property
    def power(self) -> float:
        """``b``."""
        return max(CURVE_POWER, self.n_labelled * self.fall / self.error) if self.error > 0.0 else math.inf

    def error_after(self, more: float) -> float:
        """Return the error after ``more`` labels."""
        power = self.power
        if not math.isfinite(power):
            return 0.0 if more > 0.0 else self.error
        fallen = -math.expm1(-power * math.log1p(more / self.n_labelled))
        return max(0.0, self.error - self.n_labelled * self.fall / power * fallen)

    def labels_to(self, aim: float, most: int) -> int | None:
        """Return the number of further labels after which the error is at most ``aim``.

        Args:
            aim: The lower error.
            most: Largest number of further labels.

        Returns:
            The number; None if it is larger than ``most``.

        Examples:
            >>> curve = LearningCurve(n_labelled=100, error=0.2, fall=0.0005)
            >>> curve.labels_to(0.2 - 0.15 / 2, 1000), curve.labels_to(0.15, 100)
            (700, None)
        """
        if aim >= self.error:
            return 0
        if not self.fall:
            return None
        left = 1.0 - (self.error - aim) * self.power / (self.n_labelled * self.fall)
        if left <= 0.0:
            return None
        logarithm = -math.log(left) / self.power
        if logarithm > math.log1p(most / self.n_labelled):
            return None
        return math.ceil(round(self.n_labelled * math.expm1(logarithm), 6))

    def fall_after(self, more: float) -> float:
        """Return the fall of the error at the next label after ``more`` labels."""
        power = self.power
        if not more:
            return self.fall
        return self.fall * math.exp(-(1.0 + power) * math.log1p(more / self.n_labelled))


def labels_left(
    n_labelled: ArrayLike, values: ArrayLike, threshold: float, *, left: int | None = None, averaged: bool = False
) -> Forecast | None:
    """Forecast how many more labels it takes until ``values`` is at most ``threshold``.

    Args:
        n_labelled: Labels bought at each step so far, rising.
        values: The curve at those steps: error ratios, or any quantity that falls like a power of the labels.
        threshold: The value that it has to reach; 0 is never forecast.
        left: Number of items that can still be labelled. No number of the forecast is larger: if the curve does not
            reach the threshold before, labelling ends there. None if it is not known.
        averaged: Whether each value is a mean over the last steps, about ten of them. Such a curve is smoother and can
            be forecast with a narrower interval.

    Returns:
        The forecast, 0 labels if the last value has reached the threshold; or None if it is not predictable yet: if
        there are fewer than 4 steps, if the line crosses beyond 30 times the labels so far, or if the upper end of the
        interval is more than 30 times the lower end.

    Raises:
        InvalidValueError: The two series do not match, do not rise, or hold something that is not a number; or ``left``
            is not a whole number of at least 0.

    Examples:
        >>> import numpy as np
        >>> n = np.arange(20, 120)
        >>> print(labels_left(n, 20 / n, threshold=0.1))
        about 100 more labels (37 to 170)
        >>> print(labels_left(n, 20 / n, threshold=0.1, left=120))
        about 100 more labels (37 to 120)
    """
    most = math.inf if left is None else whole(left, "left", least=0)
    counts, curve = _checked(n_labelled, values)
    level = real(threshold, "threshold", "of at least 0", lambda x: x >= 0.0)
    if len(curve) and curve[-1] <= level:
        return Forecast(labels=0, low=0, high=0, coverage=1.0)
    if most == 0:
        return Forecast(labels=0, low=0, high=0, coverage=1.0)
    if len(counts) < _FEWEST_STEPS or level == 0.0:
        return None
    terms = features(counts, curve, level)
    to_go = np.exp((_AVERAGED_QUANTILES if averaged else _QUANTILES) @ terms)
    # Far ahead, runs fall below the line; close to the threshold, they need a new minimum. The interval includes the
    # value of the line in both cases.
    line = np.exp(terms[2]) - _WAIT
    to_go[0], to_go[2] = min(to_go[0], line), max(to_go[2], line)
    low, middle, high = np.sort(np.minimum(to_go, 700.0))
    lower, likely, upper = (min(float(counts[-1] * np.expm1(d)), most) for d in (low, middle, high))
    found = Forecast(labels=max(1, round(likely)), low=max(1, math.floor(lower)), high=max(1, math.ceil(upper)))
    if likely > _FARTHEST * counts[-1] or found.high > _WIDEST * found.low:
        return None
    return found


def value_after(n_labelled: ArrayLike, values: ArrayLike, labels: int) -> float | None:
    """Value of the line of :func:`labels_left` after some more labels.

    Args:
        n_labelled: Labels bought at each step so far, rising.
        values: The curve at those steps.
        labels: Number of further labels.

    Returns:
        The value; or None if there are fewer than 4 steps, or if ``labels`` is more than 30 times the labels so far.

    Raises:
        InvalidValueError: The two series do not match, do not rise, or hold something that is not a number.

    Examples:
        >>> import numpy as np
        >>> n = np.arange(20, 101)
        >>> round(value_after(n, 20 / n, 100), 3)
        0.099
    """
    counts, curve = _checked(n_labelled, values)
    more = whole(labels, "labels", least=0)
    if len(counts) < _FEWEST_STEPS or more > _FARTHEST * counts[-1]:
        return None
    line = _line(counts, curve)
    return float(np.exp(line.minimum[-1] - line.slope * np.log1p(more / counts[-1])))


def features(counts: Floats, curve: Floats, threshold: float) -> Floats:
    """Inputs of the forecast: 1, shortness of the run, log distance of the line, roughness of the curve.

    Args:
        counts: Labels bought at each step.
        curve: The curve at those steps.
        threshold: The value that it has to reach, above 0.

    Returns:
        Four numbers: 1; ``1 / sqrt(1 + steps / 20)``; the log of the distance in log n from now to the crossing of the
        fitted line and the threshold (plus the distance to the next minimum); the median of log value over its running
        minimum.
    """
    line = _line(counts, curve)
    distance = max(0.0, float((line.minimum[-1] - np.log(threshold)) / line.slope))
    roughness = float(np.median((line.log_value - line.minimum)[line.recent]))
    return np.array([1.0, 1.0 / np.sqrt(1.0 + len(counts) / 20.0), np.log(distance + _WAIT), roughness])


class _Line(NamedTuple):
    """The log of a curve, which of its steps are recent, its running minimum, and how fast that falls recently."""

    log_value: Floats
    recent: "np.typing.NDArray[np.bool_]"
    minimum: Floats
    slope: float


def _line(counts: Floats, curve: Floats) -> _Line:
    log_n, log_value = np.log(counts), np.log(np.maximum(curve, np.finfo(np.float64).tiny))
    recent = log_n >= log_n[-1] - _WINDOW
    minimum = np.minimum.accumulate(log_value)
    # Later steps are denser in log n. With the weight 1/n, every section of the axis has the same weight.
    slope = _slope(log_n[recent], minimum[recent], 1.0 / counts[recent])
    return _Line(log_value, recent, minimum, slope)


def _slope(x: Floats, y: Floats, weight: Floats) -> float:
    """Slope of a line through the points, shrunk towards the typical slope if they scatter."""
    weight = weight / weight.sum()
    x, y = x - weight @ x, y - weight @ y
    spread, fall = weight @ x**2, -(weight @ (x * y))
    # A single step in the window, after a large batch, has no slope.
    scatter = weight @ (y + x * (fall / spread if spread > 0.0 else 0.0)) ** 2
    prior = _PRIOR_WEIGHT + _SCATTER_WEIGHT * scatter
    return max(float((fall + prior * _PRIOR_SLOPE) / (spread + prior)), _LEAST_SLOPE)


def _checked(n_labelled: ArrayLike, values: ArrayLike) -> tuple[Floats, Floats]:
    counts, curve = floats(n_labelled, "n_labelled"), floats(values, "values")
    if counts.ndim != 1 or counts.shape != curve.shape:
        raise InvalidValueError(
            f"n_labelled and values must be two series of the same length, but their shapes are {counts.shape} and "
            f"{curve.shape}"
        )
    if not (np.isfinite(counts).all() and np.isfinite(curve).all()):
        raise InvalidValueError("n_labelled and values must be finite; one of them holds a NaN or an infinity")
    if len(counts) and (counts[0] < 1.0 or (np.diff(counts) <= 0.0).any()):
        raise InvalidValueError("n_labelled must be positive and rise from step to step")
    return counts, curve
