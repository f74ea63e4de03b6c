"""The reported measures of each run of an experiment, and the runs in groups: in the paper's order, then by seed."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from math import inf, isnan
from statistics import median
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from suffice.numerics import Floats
from suffice.trace import Trace
from suffice_research.data.protocols import MODELS, PUBLISHED, Experiment


def running_minima(ratio: Floats, counted_from: int) -> NDArray[np.intp]:
    """Steps at which the calibrated ratio has a new minimum. Only at these steps can it stop a run.

    The first step that counts is the last step of the calibration. The ratio is 1 there, so ratios above 1, with which
    some runs begin, never count.

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
    """Correlation of error ratio and error at the running minima of the ratio; None if it is undefined.

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
    # Two points are always perfectly correlated.
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


# A smaller relative decrease of the error counts as rounding.
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


#: Names of the data sets in the paper.
_TITLES: Final = MappingProxyType(
    {
        "power_plant": "Power plant",
        "protein": "Protein",
        "gas_emission": "Gas emission",
        "grid_stability": "Grid stability (r)",
        "grid_stability_c": "Grid stability (c)",
        "skin": "Skin",
        "htru2": "HTRU2",
        "mnist": "MNIST",
    }
)
_EXPERIMENTS: Final = tuple(PUBLISHED)
#: The first of an experiment's thresholds are the paper's, the others those of its script.
_THRESHOLDS: Final = {each.model: tuple(f"{value:g}" for value in each.thresholds[:3]) for each in PUBLISHED.values()}
_ARMS: Final = ("bought", None, "outside")


class MedianAndRange(NamedTuple):
    """Median and range of some numbers."""

    median: float
    lowest: float
    highest: float
    number: int


def middle(values: Iterable[float]) -> float:
    """Median. Infinity means never; if one of the two middle values is infinite, the larger one is returned.

    Examples:
        >>> middle([1.0, 2.0]), middle([1.0, float("inf")])
        (1.5, inf)
    """
    given = sorted(values)
    return given[len(given) // 2] if inf in given else float(median(given))


def spread(values: Iterable[float]) -> MedianAndRange | None:
    """Median and range; None if there are no values. Infinity stands for never.

    Examples:
        >>> spread([3.0, 1.0, float("inf")])
        MedianAndRange(median=3.0, lowest=1.0, highest=inf, number=3)
    """
    given = sorted(values)
    return MedianAndRange(middle(given), given[0], given[-1], len(given)) if given else None


@dataclass(frozen=True)
class RunGroup:
    """The runs of one experiment and one arm.

    Attributes:
        model: ``gpr``, ``brr``, ``blr`` or ``bdnn``.
        data: Name of the data set.
        arm: What hyper-parameters were learned from, or None.
        outcomes: One for each seed, in the order of the seeds; at least one.
    """

    model: str
    data: str
    arm: str | None
    outcomes: tuple[RunOutcome, ...]

    @property
    def name(self) -> str:
        """Model and data set."""
        return f"{self.model}/{self.data}"

    @property
    def title(self) -> str:
        """The name of the data set in the paper."""
        return _TITLES.get(self.data, self.data)

    @property
    def letter(self) -> str:
        """The letter of the experiment in the paper's figure of scatter plots; empty if it is not in the figure."""
        return "abcdefghijkl"[_EXPERIMENTS.index(self.name)] if self.name in _EXPERIMENTS else ""

    @property
    def thresholds(self) -> tuple[str, ...]:
        """The paper's thresholds, largest first."""
        return _THRESHOLDS[self.model]

    @property
    def published(self) -> float | None:
        """The correlation that the paper gives."""
        return self.outcomes[0].published_correlation

    @property
    def correlations(self) -> list[float]:
        """Correlations of the runs in which it is defined."""
        found = (each.correlation for each in self.outcomes)
        return [value for value in found if value is not None and not isnan(value)]

    @property
    def typical(self) -> RunOutcome:
        """The run with the median correlation (the lower one of two); the first run if none is defined."""
        ranked = sorted(self.correlations)
        lower = ranked[(len(ranked) - 1) // 2] if ranked else None
        return next((each for each in self.outcomes if each.correlation == lower), self.outcomes[0])

    def labels(self, steps: int) -> Floats:
        """Number of labels after each of a number of steps."""
        return self.outcomes[0].initial + _batch(self.name) * np.arange(1.0, steps + 1.0)

    def stops(self, threshold: str) -> list[float]:
        """Number of labels when each run stopped; infinity if it never stopped."""
        batch = _batch(self.name)
        return [
            inf if (at := each.stops[threshold]) is None else each.initial + batch * (at + 1.0)
            for each in self.outcomes
        ]

    def stopped(self, threshold: str) -> int:
        """Number of runs with a stop."""
        return sum(each.stops[threshold] is not None for each in self.outcomes)

    def excesses(self, threshold: str) -> list[float]:
        """Excess error at the stop of each run; infinity if it never stopped, or if its error never fell."""
        found = (each.excess(threshold) for each in self.outcomes)
        return [inf if value is None or isnan(value) else value for value in found]


def grouped(outcomes: Iterable[RunOutcome], protocol: str) -> list[RunGroup]:
    """The runs of a protocol in the paper's order, of one experiment those with ``bought`` labels first."""
    found: dict[tuple[str, str, str | None], list[RunOutcome]] = {}
    for each in outcomes:
        if each.protocol == protocol:
            found.setdefault((each.model, each.data, each.arm), []).append(each)
    ordered = sorted(found, key=lambda key: (_rank(f"{key[0]}/{key[1]}"), key[1], _ARMS.index(key[2])))
    return [RunGroup(*key, tuple(sorted(found[key], key=lambda each: each.seed))) for key in ordered]


def main_arms(groups: Iterable[RunGroup]) -> list[RunGroup]:
    """For each experiment the first available arm: ``bought`` before ``outside``."""
    first: dict[str, RunGroup] = {}
    for each in groups:
        first.setdefault(each.name, each)
    return list(first.values())


def of_model(groups: Iterable[RunGroup], model: str) -> list[RunGroup]:
    """The groups of one model."""
    return [each for each in groups if each.model == model]


def on_several_sets(groups: Iterable[RunGroup]) -> list[RunGroup]:
    """The groups of models with more than one data set, so that stops can be compared."""
    given = list(groups)
    return [runs for runs in given if any(each.model == runs.model and each.data != runs.data for each in given)]


def other_arm(groups: Sequence[RunGroup], runs: RunGroup) -> RunGroup | None:
    """The same experiment in the other arm, if there is one."""
    return next((each for each in groups if each.name == runs.name and each.arm != runs.arm), None)


def has_two_arms(groups: Iterable[RunGroup]) -> bool:
    """Whether hyper-parameters came from bought labels here and from outside there."""
    return {"bought", "outside"} <= {each.arm for each in groups}


def told_arm(groups: Iterable[RunGroup]) -> str:
    """Source of the hyper-parameters of some runs, as a sentence; empty if there is no choice."""
    arms = {each.arm for each in groups} - {None}
    words = {"bought": "bought labels", "outside": "labels outside the run"}
    return f" Hyper-parameters from {words[str(arms.pop())]}." if len(arms) == 1 else ""


def _batch(name: str) -> int:
    return PUBLISHED[name].batch if name in PUBLISHED else 1


def _rank(name: str) -> tuple[int, int]:
    model = list(MODELS).index(name.partition("/")[0])
    return model, _EXPERIMENTS.index(name) if name in _EXPERIMENTS else len(_EXPERIMENTS)
