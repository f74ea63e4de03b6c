"""One run of an experiment and its reported measures."""

import csv
import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.numerics import Floats
from suffice.research.data.protocols import Experiment
from suffice.trace import Trace


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


# A fall in error smaller than this share of it is rounding.
_NO_FALL = 1e-6
_CURVES = frozenset({"ratio", "error", "counted_from"})


@dataclass(frozen=True, eq=False)
class RunOutcome:
    """The measures of one run.

    Attributes:
        protocol: ``published`` or ``corrected``.
        model: ``gpr``, ``brr``, ``blr`` or ``bdnn``.
        data: Name of the data set.
        seed: Seed of split and first labels.
        arm: What hyper-parameters were learned from: ``bought`` labels or labels ``outside`` the run; None where the
            protocol knows one way only.
        features: Inputs of the model.
        pool: Rows to choose from.
        initial: Labels at the start.
        steps: Acquisitions made.
        correlation: Of error ratio and error, at the running minima of the ratio.
        published_correlation: What the paper's run had.
        stops: For each threshold the acquisitions made when it was reached, counted from 0; None if never.
        error_first: Error after the first acquisition.
        error_best: Least error of the run.
        error_at_stop: Error at each stop; None if never.
        seconds: Time that the run took.
        ratio: Error ratio after each step.
        error: Error after each step.
        counted_from: First step that counts for the correlation.
    """

    protocol: str
    model: str
    data: str
    seed: int
    arm: str | None
    features: int
    pool: int
    initial: int
    steps: int
    correlation: float | None
    published_correlation: float | None
    stops: Mapping[str, int | None]
    error_first: float
    error_best: float
    error_at_stop: Mapping[str, float | None]
    seconds: float
    ratio: Floats
    error: Floats
    counted_from: int

    @property
    def name(self) -> str:
        """Model and data set."""
        return f"{self.model}/{self.data}"

    def excess(self, threshold: str) -> float | None:
        """Excess of the error at the stop: (at stop - best) / (first - best).

        0 is the best of the run, and above 1 the error is worse than the first. None if it never stopped, or if the
        error never fell below the first.
        """
        at = self.error_at_stop[threshold]
        fall = self.error_first - self.error_best
        return None if at is None or fall <= _NO_FALL * self.error_first else (at - self.error_best) / fall

    def row(self) -> dict[str, Any]:
        """The run without its curves, as it is written to JSON."""
        return {
            each.name: dict(value) if isinstance(value := getattr(self, each.name), Mapping) else value
            for each in fields(self)
            if each.name not in _CURVES
        }


def measure(experiment: Experiment, trace: Trace, *, seed: int, arm: str | None, seconds: float) -> RunOutcome:
    """Measure a run.

    Args:
        experiment: The experiment.
        trace: The run.
        seed: Its seed.
        arm: What its hyper-parameters were learned from.
        seconds: Time that it took.
    """
    ratio = trace.ratio(calibration=experiment.calibration)
    error = np.asarray(trace.measures["published_error"] if experiment.loss == "softmax twice" else trace.error)
    first = experiment.counted_from
    stops = {f"{each:g}": first_at_most(ratio, each, first) for each in experiment.thresholds}
    return RunOutcome(
        protocol=experiment.protocol,
        model=experiment.model,
        data=experiment.data,
        seed=seed,
        arm=arm,
        features=len(experiment.view.inputs) or 784,
        pool=experiment.pool_size,
        initial=experiment.initial,
        steps=len(trace),
        correlation=correlation(ratio, error, first),
        published_correlation=experiment.correlation,
        stops=stops,
        error_first=float(error[0]),
        error_best=float(error.min()),
        error_at_stop={name: None if at is None else float(error[at]) for name, at in stops.items()},
        seconds=seconds,
        ratio=ratio,
        error=error,
        counted_from=first,
    )


def rows_csv(outcomes: Iterable[RunOutcome]) -> str:
    """The rows as CSV, with columns ``stop_0.05`` and ``error_at_stop_0.05`` for each threshold; empty for None."""
    flat = []
    for each in outcomes:
        row = each.row()
        stops, errors = row.pop("stops"), row.pop("error_at_stop")
        row |= {f"stop_{name}": at for name, at in stops.items()}
        flat.append(row | {f"error_at_stop_{name}": error for name, error in errors.items()})
    names = list(dict.fromkeys(name for row in flat for name in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(flat)
    return text.getvalue()
