"""The cost of stopping at each step: remaining error plus labels bought."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from suffice.errors import InvalidValueError
from suffice.numerics import Floats
from suffice.trace import Trace

#: Costs of an error of 1 if a label costs 1: from 10 to 100 000 by thirds of a decade, with three digits.
RATIOS: Final = tuple(float(f"{10.0 ** (1.0 + third / 3.0):.3g}") for third in range(13))
# Share of a run's steps over which the error is smoothed, and relative distance from the best error that is still good.
_SMOOTHED: Final = 0.05
_GOOD: Final = 0.05


@dataclass(frozen=True, eq=False)
class CostedRun:
    """The labels and the error of a run after each step.

    Attributes:
        n_labelled: Labels bought, including the initial ones; at least 1. Stored as an array of floats.
        error: Error on the test set, stored in the same way.
        whole: Whether the whole error has a cost, or only the part above the least error of the run.

    Raises:
        InvalidValueError: They have different lengths or are empty, or a number is invalid.

    Examples:
        >>> run = CostedRun([10, 11, 12, 13], [0.5, 0.3, 0.2, 0.2])
        >>> run.best_error, len(run)
        (0.2, 4)
    """

    n_labelled: Any
    error: Any
    whole: bool = False

    def __post_init__(self) -> None:
        labels, error = (np.array(values, dtype=np.float64) for values in (self.n_labelled, self.error))
        if labels.ndim != 1 or labels.shape != error.shape or not len(labels):
            raise InvalidValueError(
                f"n_labelled and error must hold one number for each step, at least one; their shapes are "
                f"{labels.shape} and {error.shape}. A run is judged by its error: give simulate a test set"
            )
        if not np.isfinite(error).all() or labels[0] < 1 or (np.diff(labels) < 0).any():
            raise InvalidValueError("error must hold finite numbers, and n_labelled counts from 1 that never fall")
        object.__setattr__(self, "n_labelled", labels)
        object.__setattr__(self, "error", error)

    @classmethod
    def of(cls, trace: Trace, error: Any = None) -> "CostedRun":
        """Return the run of a trace with its predictive error, or with another number after each step.

        The predictive error is the share of wrong predictions for classes, and the mean squared error for numbers. The
        whole error has a cost.

        Raises:
            InvalidValueError: The trace has no predictive error: it has no test set, or an earlier version recorded it.
        """
        found = trace.predictive_error
        if error is None and len(trace.error) and (not len(found) or np.isnan(found).any()):
            raise InvalidValueError(
                "the run has no predictive_error, since an earlier version of suffice recorded it; record it again"
            )
        own = trace.wrong_share if len(trace.wrong_share) else found
        return cls(trace.n_labelled, own if error is None else error, whole=True)

    def __len__(self) -> int:
        return len(self.error)

    @cached_property
    def best_error(self) -> float:
        """Least error of the run."""
        return float(self.error.min())


def cost_curve(run: CostedRun, ratio: Any) -> Floats:
    r"""Cost of a stop at each step, in labels.

    .. math:: C(t) = A \, (e_t - \min_s e_s) + n_t \quad\text{or}\quad C(t) = A \, e_t + n_t,

    the second if the whole error has a cost, with ``e`` the error and ``n`` the labels bought. These include the
    initial ones, so the least cost is never 0.

    Args:
        run: The run, of ``T`` steps.
        ratio: ``A``, the cost of an error of 1 if a label costs 1; or several.

    Returns:
        ``T`` costs; ``R x T`` for ``R`` ratios.

    Examples:
        >>> cost_curve(CostedRun([10, 11, 12], [0.5, 0.3, 0.25]), 100.0)
        array([35., 16., 12.])
    """
    weighted = np.multiply.outer(
        np.asarray(ratio, dtype=np.float64), run.error - (0.0 if run.whole else run.best_error)
    )
    return np.asarray(weighted + run.n_labelled)


def regret(run: CostedRun, stop: int | None, ratio: float, *, extra: float = 0) -> float:
    r"""Regret: the cost of a stop above that of the best one, relative to the latter.

    .. math:: \frac{C(t) + x - \min_s C(s)}{\min_s C(s)}

    Args:
        run: The run.
        stop: The step ``t``, from 0; None if a rule never stopped: all labels of the run are then paid for.
        ratio: ``A`` of :func:`cost_curve`.
        extra: ``x``, labels that were needed in addition to those of the run.

    Examples:
        >>> regret(CostedRun([10, 11, 12], [0.5, 0.3, 0.25]), 1, 100.0)
        0.3333333333333333
    """
    return float(regrets(run, [stop], [ratio], extra=extra)[0, 0])


def regrets(run: CostedRun, stops: Sequence[int | None], ratios: Sequence[float], *, extra: float = 0) -> Floats:
    """:func:`regret` of several stops at several ratios, ``stops x ratios``.

    Examples:
        >>> regrets(CostedRun([10, 11, 12], [0.5, 0.3, 0.25]), [1, None], [10.0, 100.0]).round(3)
        array([[0.   , 0.333],
               [0.043, 0.   ]])
    """
    costs = cost_curve(run, ratios)
    least = costs.min(axis=1)
    return np.asarray(((costs[:, paid_steps(run, stops)] + extra).T - least) / least)


def random_regrets(run: CostedRun, ratios: Sequence[float]) -> Floats:
    """Expected regret at each ratio of stopping at a step drawn at random: the mean over all steps.

    Examples:
        >>> random_regrets(CostedRun([10, 11, 12], [0.5, 0.3, 0.25]), [100.0])
        array([0.75])
    """
    costs = cost_curve(run, ratios)
    least = costs.min(axis=1)
    return np.asarray((costs.mean(axis=1) - least) / least)


def paid_steps(run: CostedRun, stops: Sequence[int | None]) -> NDArray[np.intp]:
    """Return the steps up to which labels are paid for: the last step for a rule that never stops.

    Raises:
        InvalidValueError: A stop is not a step of the run.

    Examples:
        >>> paid_steps(CostedRun([10, 11, 12], [0.5, 0.3, 0.25]), [0, None])
        array([0, 2])
    """
    steps = np.array([len(run) - 1 if stop is None else stop for stop in stops], dtype=np.intp)
    if ((steps < 0) | (steps >= len(run))).any():
        raise InvalidValueError(f"stops must be steps from 0 to {len(run) - 1}, or None; they are {list(stops)}")
    return steps


def optimal_steps(run: CostedRun, ratios: Sequence[float]) -> NDArray[np.intp]:
    """The step of least cost at each ratio, the first of several.

    Examples:
        >>> optimal_steps(CostedRun([10, 11, 12], [0.5, 0.3, 0.25]), [1.0, 10.0, 100.0])
        array([0, 1, 2])
    """
    return np.asarray(cost_curve(run, ratios).argmin(axis=1))


@dataclass(frozen=True)
class CostRange:
    """Range of costs in a comparison, with the best stops.

    Attributes:
        ratios: Costs of an error of 1.
        best_at: Median over the runs of the best step at each ratio, as a share of the run: 0 the first, 1 the last.
        first: Share of the runs in which the best step at the least ratio is in the first tenth of the steps.
        settled: Share of the runs in which the best step at the largest ratio is the step of least error, so that
            larger ratios would change nothing.
    """

    ratios: tuple[float, ...]
    best_at: tuple[float, ...]
    first: float
    settled: float

    @property
    def wide(self) -> bool:
        """Whether both ends are reached in at least half of the runs."""
        return self.first >= 0.5 and self.settled >= 0.5


def width(runs: Sequence[CostedRun], ratios: Sequence[float] = RATIOS) -> CostRange:
    """Return the range of ratios for runs. It is wide if the best step ranges from the first to that of least error.

    Args:
        runs: The runs, at least one.
        ratios: Costs of an error of 1, ascending.

    Examples:
        >>> found = width([CostedRun([10, 11, 12], [0.5, 0.3, 0.25])], [1.0, 10.0, 100.0])
        >>> found.best_at, found.wide
        ((0.0, 0.5, 1.0), True)
    """
    best = np.array([optimal_steps(run, ratios) for run in runs])
    places = best / np.array([[max(len(run) - 1, 1)] for run in runs])
    settled = [step == int(run.error.argmin()) for step, run in zip(best[:, -1], runs, strict=True)]
    return CostRange(
        ratios=tuple(float(ratio) for ratio in ratios),
        best_at=tuple(np.median(places, axis=0).tolist()),
        first=float(np.mean(places[:, 0] <= 0.1)),
        settled=float(np.mean(settled)),
    )


def smoothed(error: Any) -> Floats:
    """The error as a moving mean over 5 % of the steps, and at least one.

    The window is centred at its step. It is one step longer if 5 % is an even number, and it becomes shorter on both
    sides near either end, so that a steep start is not flattened.

    Examples:
        >>> smoothed(np.arange(60.0) % 3)[:4]
        array([0., 1., 1., 1.])
    """
    values = np.asarray(error, dtype=np.float64)
    at = np.arange(len(values))
    half = np.minimum(max(1, int(_SMOOTHED * len(values))) // 2, np.minimum(at, len(values) - 1 - at))
    # Differences from the first value, so that adding a constant to the error only adds it to the result.
    sums = np.concatenate([[0.0], np.cumsum(values - values[0])])
    return np.asarray((sums[at + half + 1] - sums[at - half]) / (2 * half + 1) + values[0])


def first_good(run: CostedRun) -> int:
    """Return the first step whose smoothed error is within 5 % of the best smoothed error.

    Examples:
        >>> first_good(CostedRun([10, 11, 12, 13], [0.5, 0.3, 0.208, 0.2]))
        2
    """
    curve = smoothed(run.error)
    best = curve.min()
    return int(np.argmax(curve <= best + _GOOD * abs(best)))
