"""The catalogue: every stopping rule that is compared, with its settings, and the references to compare with."""

import math
import sys
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from suffice.criteria import (
    Budget,
    ClassificationChange,
    CostLimit,
    Criterion,
    DeterministicBoundRuns,
    DropInConfidence,
    EntropyMax,
    ErrorStability,
    ExpectedCost,
    HeldOutPlateau,
    InformationGain,
    IntrinsicStopping,
    KappaCertificate,
    LabelWorth,
    MarginExhaustion,
    MaxConfidence,
    MaxVariance,
    MinExpectedError,
    OverallUncertainty,
    PacBayes,
    PerformanceConvergence,
    PoolFraction,
    PredictedFChange,
    SelectedAccuracy,
    SelectionAgreement,
    StabilizingPredictions,
    ThresholdUpdate,
    TimeLimit,
    UncertaintyConvergence,
    ValidationSetAgreement,
    VarianceModel,
)
from suffice.experiments.compare.costs import RATIOS
from suffice.experiments.compare.entry import Entry
from suffice.experiments.tasks import TaskName
from suffice.trace import Trace

#: References that are no rules: the board works them out from the errors of a run.
RANDOM_STOP: Final = "RandomStop"
ORACLE: Final = "Oracle"
#: The two ends that every rule may be set to: a person who knows that labels are dear, or errors, needs no rule.
AT_ONCE: Final = "AtOnce"
NEVER: Final = "Never"

#: Data sets that the constants of LabelWorth were fixed on: how it does there is no test of it.
MADE_ON: Final = frozenset({"diabetes", "friedman", "breast_cancer", "wine", "sms_spam", "digits"})

_CLASSES: Final[tuple[TaskName, ...]] = ("classification",)
_NUMBERS: Final[tuple[TaskName, ...]] = ("regression",)
_LABELS: Final = (10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500, 700, 1000, 1500, 2000, 3000, 5000)
# Averages of agreements that should be equal may differ by this much; the rules allow for it.
_ROUNDING: Final = 1e-12


def catalogue(ratios: Sequence[float] = RATIOS) -> tuple[Entry, ...]:
    """Everything that is compared: rules by what they look at, then references.

    Args:
        ratios: What an error of 1 costs in labels: the settings of rules that are told costs.

    Examples:
        >>> names = [entry.name for entry in catalogue()]
        >>> len(names) == len(set(names)), "StabilizingPredictions" in names
        (True, True)
    """
    return (*_bayesian(), *_of_costs(ratios), *_confident(), *_trends(), *_stable(), *_committees(), *_references())


def for_trace(trace: Trace, ratios: Sequence[float] = RATIOS) -> list[Entry]:
    """The entries that can be replayed on a run: those that need nothing but what it recorded.

    Args:
        trace: The run.
        ratios: As for :func:`catalogue`.

    Examples:
        >>> trace = Trace.of_divergences([0.5, 0.4], [0.6, 0.4], first=10)
        >>> [entry.name for entry in for_trace(trace)]
        ['ErrorStability', 'ErrorStability tight', 'DeterministicBoundRuns', 'ErrorStability of costs', 'Budget',
        'AtOnce', 'Never', 'RandomStop', 'Oracle']
    """
    return [entry for entry in catalogue(ratios) if entry.needs() <= trace.recorded]


def cost_entry(
    name: str, make: Callable[[float, float], Criterion], ratios: Sequence[float] = RATIOS, **options: Any
) -> Entry:
    """An entry for a rule that is told what errors and labels cost.

    Args:
        name: What it is called.
        make: Makes the rule of ``(error_cost, label_cost)``.
        ratios: What an error of 1 costs in labels.
        options: Other attributes of the :class:`Entry`.

    Examples:
        >>> cost_entry("mine", lambda error, label: ErrorStability.from_cost(label, error)).rule(100.0).threshold
        0.01
    """
    settings = tuple(float(ratio) for ratio in ratios)
    return Entry(
        name=name,
        kind="cost",
        make=lambda ratio: make(ratio, 1.0),
        settings=settings,
        parameter="error_cost",
        **options,
    )


def grid(loosest: float, strictest: float, count: int, *others: float) -> tuple[float, ...]:
    """Settings from the loosest to the strictest in equal ratios, with three digits; and others among them.

    Examples:
        >>> grid(1.0, 0.01, 3, 0.05)
        (1.0, 0.1, 0.05, 0.01)
    """
    values = {float(f"{value:.3g}") for value in np.geomspace(loosest, strictest, count)} | set(others)
    return tuple(sorted(values, reverse=loosest > strictest))


def _near_one(farthest: float, nearest: float, count: int, *others: float) -> tuple[float, ...]:
    """Settings that come ever nearer to 1, and 1 itself."""
    return tuple(sorted({float(f"{1.0 - gap:.6g}") for gap in grid(farthest, nearest, count)} | {1.0, *others}))


def _swept(name: str, make: Callable[[Any], Criterion], settings: Sequence[Any], default: Any, **others: Any) -> Entry:
    given = {"kind": "threshold", "parameter": "threshold"} | others
    return Entry(name=name, make=make, settings=tuple(settings), default=default, **given)


def _bayesian() -> list[Entry]:
    shares = grid(1.0, 1e-6, 19, 0.05)

    def tight(threshold: float) -> Criterion:
        return ErrorStability(threshold, bound="tight")

    return [
        _swept("ErrorStability", ErrorStability, shares, 0.05, sense="at most"),
        _swept("ErrorStability tight", tight, shares, 0.05, sense="at most"),
        _swept("DeterministicBoundRuns", DeterministicBoundRuns, grid(1.0, 1e-6, 13, 0.05), 0.05, sense="at most"),
        # The paper has no limit of its own; half the loss range is what a guess between two classes has.
        _swept(
            "PacBayes",
            PacBayes,
            grid(3.0, 0.05, 16, 0.5),
            0.5,
            parameter="epsilon",
            sense="at most",
            tasks=_CLASSES,
        ),
        _swept("InformationGain", InformationGain, grid(3.0, 1e-5, 18, 0.01), 0.01, sense="at most"),
        _swept("MaxVariance", MaxVariance, grid(0.99, 1e-4, 16, 0.1), 0.1, sense="at most", tasks=_NUMBERS),
    ]


def _of_costs(ratios: Sequence[float]) -> list[Entry]:
    def stability(error_cost: float, label_cost: float) -> Criterion:
        return ErrorStability.from_cost(label_cost, error_cost, bound="tight")

    return [
        cost_entry("ExpectedCost", ExpectedCost, ratios),
        cost_entry("LabelWorth", LabelWorth, ratios),
        cost_entry("ErrorStability of costs", stability, ratios, sense="at most", limit="threshold"),
    ]


def _confident() -> list[Entry]:
    risks = grid(0.5, 1e-4, 15, 0.01)
    accuracies = (0.1, 0.3, 0.5, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.92, 0.94, 0.96, 0.98, 1.0)
    # |f| = 1, the margin of a support vector machine, for the logistic function: 2 p - 1 = tanh(f / 2).
    margin = math.tanh(0.5)

    def updated(threshold: float) -> Criterion:
        return ThresholdUpdate(MinExpectedError(threshold))

    return [
        _swept("MaxConfidence", MaxConfidence, grid(2.0, 1e-5, 17, 1e-3), 1e-3, sense="below", tasks=_CLASSES),
        _swept("EntropyMax", EntropyMax, grid(2.0, 1e-4, 15, 0.01), 0.01, sense="at most", tasks=_CLASSES),
        _swept("MinExpectedError", MinExpectedError, risks, 0.01, sense="at most", tasks=_CLASSES),
        _swept("ThresholdUpdate of MinExpectedError", updated, risks, 0.01, tasks=_CLASSES),
        _swept(
            "OverallUncertainty", OverallUncertainty, grid(1.0, 1e-3, 13, 0.05), 0.05, sense="below", tasks=_CLASSES
        ),
        _swept(
            "MarginExhaustion",
            MarginExhaustion,
            sorted({*grid(1e-3, 0.999, 13), 0.9, 0.95, 0.99, margin}),
            margin,
            parameter="band",
            sense="at least",
            tasks=_CLASSES,
        ),
        _swept("SelectedAccuracy", SelectedAccuracy, accuracies, 0.9, sense="at least", tasks=_CLASSES),
        _swept(
            "HeldOutPlateau",
            lambda rounds: HeldOutPlateau(rounds=rounds),
            (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200),
            5,
            parameter="rounds",
            charged="validation_labels",
        ),
    ]


def _trends() -> list[Entry]:
    slopes = grid(0.1, 1e-7, 13, 5e-5)
    converging: dict[str, Any] = {"sense": "below", "tasks": _CLASSES}

    def extended(fall: float) -> Criterion:
        return VarianceModel(fall=fall)

    return [
        _swept(
            "DropInConfidence",
            DropInConfidence,
            (*range(1, 11), 12, 15),
            3,
            parameter="rounds",
            sense="at least",
            tasks=_CLASSES,
        ),
        # In its basic form every fall is deep enough, and the count of falls alone decides.
        _swept(
            "VarianceModel",
            VarianceModel,
            (*range(1, 11), 12, 15),
            2,
            parameter="rounds",
            sense="at least",
            tasks=_CLASSES,
        ),
        _swept(
            "VarianceModel extended",
            extended,
            (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95),
            0.5,
            parameter="fall",
            tasks=_CLASSES,
        ),
        _swept("PerformanceConvergence", _performance(100), slopes, 5e-5, **converging),
        _swept("UncertaintyConvergence", _uncertainty(100), slopes, 5e-5, **converging),
        # Two windows of 100 labels are more than many a run has.
        _swept("PerformanceConvergence, window 20", _performance(20), slopes, 5e-5, **converging),
        _swept("UncertaintyConvergence, window 20", _uncertainty(20), slopes, 5e-5, **converging),
    ]


def _performance(window: int) -> Callable[[float], Criterion]:
    return lambda threshold: PerformanceConvergence(window=window, threshold=threshold)


def _uncertainty(window: int) -> Callable[[float], Criterion]:
    return lambda threshold: UncertaintyConvergence(window=window, threshold=threshold)


def _stable() -> list[Entry]:
    kappas = _near_one(0.9, 1e-4, 15, 0.99)
    agreeing: dict[str, Any] = {"sense": "at least", "slack": _ROUNDING, "tasks": _CLASSES}
    changes = grid(0.5, 1e-4, 15, 0.05)
    return [
        Entry(name="ClassificationChange", kind="plain", make=lambda _: ClassificationChange(), tasks=_CLASSES),
        _swept("StabilizingPredictions", StabilizingPredictions, kappas, 0.99, **agreeing),
        _swept("KappaCertificate", KappaCertificate, kappas, 0.99, **agreeing),
        _swept(
            "PredictedFChange",
            PredictedFChange,
            changes,
            0.05,
            sense="below",
            in_a_row=PredictedFChange().rounds,
            once=lambda: PredictedFChange(changes[0], rounds=1),
            tasks=_CLASSES,
        ),
    ]


def _committees() -> list[Entry]:
    levels = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 1.0)
    return [
        _swept(
            "SelectionAgreement",
            SelectionAgreement,
            levels,
            1.0,
            parameter="level",
            sense="at least",
            slack=_ROUNDING,
            tasks=_CLASSES,
        ),
        _swept(
            "ValidationSetAgreement",
            ValidationSetAgreement,
            (1, 2, 3, 4, 5, 7, 10, 15, 20, 30, 50, 70, 100),
            3,
            parameter="rounds",
            tasks=_CLASSES,
        ),
        Entry(name="IntrinsicStopping", kind="plain", make=lambda _: IntrinsicStopping(), tasks=_CLASSES),
    ]


def _references() -> list[Entry]:
    spent: dict[str, Any] = {"kind": "reference", "sense": "at least"}
    # No budget is more right than another: these defaults are there for runs with nothing to choose by.
    return [
        _swept("Budget", Budget, _LABELS, 100, parameter="labels", **spent),
        _swept("PoolFraction", PoolFraction, grid(0.005, 1.0, 15, 0.1), 0.1, parameter="share", **spent),
        _swept("CostLimit", CostLimit, tuple(map(float, _LABELS)), 100.0, parameter="cost", **spent),
        _swept("TimeLimit", TimeLimit, grid(0.01, 1e4, 19, 1.0), 1.0, parameter="seconds", **spent),
        Entry(name=AT_ONCE, kind="reference", make=lambda _: Budget(1)),
        Entry(name=NEVER, kind="reference", make=lambda _: Budget(sys.maxsize)),
        Entry(name=RANDOM_STOP, kind="reference", make=None),
        Entry(name=ORACLE, kind="reference", make=None),
    ]
