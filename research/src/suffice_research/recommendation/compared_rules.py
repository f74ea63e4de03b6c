"""The compared stopping rules with their settings, the references, and the recommended rule.

The recommendation is for a task, a model and two costs. It is based on the recorded comparison.
"""

import json
import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from functools import cache, cached_property
from importlib.resources import files
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from suffice.arguments import real, whole
from suffice.criteria import RULES, Budget, Criterion, LabelWorth
from suffice.criteria.base import ComparedRule, Kind, rule_info
from suffice.errors import InvalidValueError
from suffice.learner.network_backend import NetworkBackend
from suffice.learner.step_inputs import COUNTED_FIELDS
from suffice.models.factory import MODEL_FAMILIES, ModelTask
from suffice.numerics import Floats
from suffice.trace import STEP_FIELDS, Trace
from suffice_research.recommendation.stopping_costs import RATIOS


@dataclass(frozen=True, kw_only=True, eq=False)
class Entry(ComparedRule):
    """A rule to compare, and its settings in order: the first is the one that stops soonest, the last the strictest.

    The attributes below are in addition to those of :class:`suffice.criteria.base.ComparedRule`. A reference that
    is not a rule has ``make=None``: it is computed from the errors of a run.

    Attributes:
        name: Name in tables; required, like ``kind`` and ``make``.
        tasks: The tasks for which the rule can be used.

    Raises:
        InvalidValueError: The settings are not different, or the default is none of them.

    Examples:
        >>> from suffice.criteria import Budget
        >>> entry = Entry(name="Budget", kind="reference", make=Budget, settings=(10, 100), parameter="labels",
        ...               default=100, sense="at least")
        >>> entry.limits
        array([ 10., 100.])
    """

    # Required here, unlike in the declaration of a rule.
    name: str = field()
    kind: Kind = field()
    make: Callable[[Any], Criterion] | None = field()
    tasks: tuple[ModelTask, ...] = ("regression", "classification")

    def __post_init__(self) -> None:
        if not self.settings or len(set(self.settings)) < len(self.settings):
            raise InvalidValueError(f"settings of {self.name} must be different values, at least one")
        if self.default not in self.settings and self.kind != "cost":
            raise InvalidValueError(f"default of {self.name} is {self.default!r}, which is none of its settings")

    @property
    def swept(self) -> bool:
        """Whether there is a setting to choose."""
        return self.kind != "cost" and len(self.settings) > 1

    @cached_property
    def limits(self) -> Floats:
        """Limit of the rule at each setting."""
        name = self.limit or self.parameter
        return np.array([float(getattr(self.rule(setting), name)) for setting in self.settings])

    def rule(self, setting: Any) -> Criterion:
        """The rule at a setting.

        Raises:
            InvalidValueError: It is a reference that is no rule.
        """
        if self.make is None:
            raise InvalidValueError(f"{self.name} is no rule that can be replayed; it follows from the errors of a run")
        return self.make(setting)

    def replayed_once(self) -> Criterion:
        """Return the rule whose replay gives the stops of all settings; see ``sense``."""
        return self.rule(self.settings[0]) if self.once is None else self.once()

    def holds(self, values: Floats) -> NDArray[np.bool_]:
        """Whether the relation ``sense`` holds between values and limits, ``values x settings``."""
        found, limits = values[:, None], self.limits
        if self.sense == "at least":
            return np.asarray((found >= limits) | (np.abs(found - limits) <= self.slack))
        return np.asarray(found < limits if self.sense == "below" else found <= limits)

    def needs(self) -> frozenset[str]:
        """Fields of a step without which the rule cannot judge."""
        return frozenset() if self.make is None else self.rule(self.settings[0]).needs()

    def extra_labels(self, trace: Trace) -> int:
        """Return the number of labels that the rule needs in addition to those of a run; they have a cost too."""
        return int(np.max(trace.measures[self.charged], initial=0)) if self.charged else 0


#: References that are not rules: they are computed from the errors of a run.
RANDOM_STOP: Final = "RandomStop"
ORACLE: Final = "Oracle"
#: The two extremes to which every rule can be set. If labels or errors are very expensive, no rule is needed.
AT_ONCE: Final = "AtOnce"
NEVER: Final = "Never"

#: Data sets on which the constants of LabelWorth were chosen; its results there are not used to evaluate it.
MADE_ON: Final = frozenset(
    {
        *("power_plant", "protein", "gas_emission", "grid_stability", "diabetes"),
        *("grid_stable", "htru2", "skin", "adult", "newsgroups", "breast_cancer", "sms_spam", "digits"),
    }
)


def catalogue(ratios: Sequence[float] = RATIOS) -> tuple[Entry, ...]:
    """Return everything that is compared: the rules, in the forms that they declare, then references.

    Args:
        ratios: Costs of an error of 1, in labels: the settings of rules with costs as parameters.

    Examples:
        >>> names = [entry.name for entry in catalogue()]
        >>> len(names) == len(set(names)), "StabilizingPredictions" in names
        (True, True)
    """
    rules = [entry for rule in RULES.values() for entry in _entries_of(rule, ratios)]
    return (*_in_order(rules), *_references())


def for_trace(trace: Trace, ratios: Sequence[float] = RATIOS) -> list[Entry]:
    """Return the entries that can be replayed on a run: those that require only recorded fields.

    Args:
        trace: The run.
        ratios: As for :func:`catalogue`.

    Examples:
        >>> trace = Trace.of_divergences([0.5, 0.4], [0.6, 0.4], first=10)
        >>> [entry.name for entry in for_trace(trace)]
        ['ErrorStability', 'ErrorStability tight', 'ErrorStability mean of 10', 'ErrorStability by labels',
        'ErrorStability median', 'DeterministicBoundRuns', 'ErrorStability of costs', 'Budget', 'AtOnce', 'Never',
        'RandomStop', 'Oracle']
    """
    return [entry for entry in catalogue(ratios) if entry.needs() <= trace.recorded]


def cost_entry(
    name: str, make: Callable[[float, float], Criterion], ratios: Sequence[float] = RATIOS, **options: Any
) -> Entry:
    """Return an entry for a rule with the costs of errors and labels as parameters.

    Args:
        name: Its name.
        make: Returns the rule for ``(error_cost, label_cost)``.
        ratios: Costs of an error of 1, in labels.
        options: Other attributes of the :class:`Entry`.

    Examples:
        >>> from suffice.criteria import ErrorStability
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


def _entries_of(rule: type[Criterion], ratios: Sequence[float]) -> list[Entry]:
    """Return the entries of one rule, from what its class declares."""
    info = rule_info(rule)
    entries = []
    for form in info.compared:
        given = {spec.name: getattr(form, spec.name) for spec in fields(form)}
        given |= {"name": form.name or rule.__name__, "make": form.make or _maker(rule, form.kind)}
        if form.kind == "cost":
            given["settings"] = tuple(float(ratio) for ratio in ratios)
        entries.append(Entry(**given, tasks=info.tasks))
    return entries


def _maker(rule: type[Criterion], kind: str) -> Callable[[Any], Criterion]:
    make: Callable[..., Criterion] = rule
    return (lambda _: make()) if kind == "plain" else make


def _in_order(entries: Sequence[Entry]) -> list[Entry]:
    """Return the entries in the order of the tables: an entry follows the one that it names in ``after``."""
    ordered = [entry for entry in entries if not entry.after]
    for entry in (each for each in entries if each.after):
        ordered.insert([each.name for each in ordered].index(entry.after) + 1, entry)
    return ordered


def _references() -> list[Entry]:
    return [
        Entry(name=AT_ONCE, kind="reference", make=lambda _: Budget(1)),
        Entry(name=NEVER, kind="reference", make=lambda _: Budget(sys.maxsize)),
        Entry(name=RANDOM_STOP, kind="reference", make=None),
        Entry(name=ORACLE, kind="reference", make=None),
    ]


_EVIDENCE_FILE: Final = "evidence.json"
_TASKS: Final = ("regression", "classification")
_NETWORK: Final = "dropout"
#: The models of the comparison, each with its tasks.
_COMPARED: Final = {name: family.tasks for name, family in MODEL_FAMILIES.items() if name != _NETWORK}
_OTHER_COSTS: Final = "ErrorStability of costs"


@cache
def recorded_evidence() -> Mapping[str, Any]:
    """The results of the comparison that is part of the package."""
    found: Mapping[str, Any] = json.loads((files(__package__) / _EVIDENCE_FILE).read_text(encoding="utf-8"))
    return found


@dataclass(frozen=True)
class Expectation:
    """Expected regret of a rule: its cost above that of the best stop, as a share of the latter.

    Attributes:
        name: Name of the rule in the comparison.
        setting: Its setting; None if there is nothing to choose.
        typical: Geometric mean of the cost divided by that of the best stop, minus 1. Rules are ranked by it, over all
            prices of an error.
        mean: Mean relative regret; dominated by the few runs in which more labels make a model worse.
        median: Median relative regret.
        p90: Relative regret that nine in ten runs did not exceed.

    Examples:
        >>> from suffice_research.recommendation import Expectation, recommend
        >>> expected = recommend("classification", mistake_cost=20.0, unlabelled=5000).expected
        >>> isinstance(expected, Expectation), 0.0 < expected.median < expected.p90
        (True, True)
    """

    name: str
    setting: Any
    typical: float
    mean: float
    median: float
    p90: float


@dataclass(frozen=True)
class Recommendation:
    """A configured rule, and the evidence for it.

    Attributes:
        rule: The rule, ready to use.
        expected: Its regret in the comparison.
        others: The next best rules over all prices of an error, best first.
        evidence: The evidence, in a sentence or two.

    Examples:
        >>> from suffice_research.recommendation import Recommendation, recommend
        >>> advice = recommend("classification", mistake_cost=20.0, unlabelled=5000)
        >>> isinstance(advice, Recommendation), type(advice.rule).__name__
        (True, 'LabelWorth')
    """

    rule: Criterion
    expected: Expectation
    others: tuple[Expectation, ...]
    evidence: str

    @property
    def regret(self) -> float:
        """Expected relative regret (geometric mean): 0.1 means a tenth more than the best stop would have cost."""
        return self.expected.typical

    def __str__(self) -> str:
        best = self.expected
        return (
            f"{self.rule}: expected to cost {best.typical:.0%} more than the best stop (geometric mean; half of the "
            f"runs at most {best.median:.0%}, nine in ten at most {best.p90:.0%}; mean {best.mean:.0%}). "
            f"{self.evidence}"
        )


def recommend(  # noqa: PLR0913 - four things are needed, the rest by keyword
    task: str,
    model: str | None = None,
    error_cost: float | None = None,
    label_cost: float = 1.0,
    *,
    mistake_cost: float | None = None,
    unlabelled: int | None = None,
    target_variance: float | None = None,
    batch: int = 1,
    given: Iterable[str] | None = None,
) -> Recommendation:
    """Recommend a stopping rule for a task and its two costs, from the results of the comparison of all rules.

    Args:
        task: ``regression`` or ``classification``.
        model: ``gp``, ``ridge`` or ``logistic``; for any other model, the average over the models of the task is used.
        error_cost: Cost of an error that is larger by 1: the share of wrong predictions for classification, the mean
            squared error for regression; 1000 if neither this nor ``mistake_cost`` is given.
        label_cost: Cost of a label, in the same unit.
        mistake_cost: In place of ``error_cost``: cost of one wrong prediction among the unlabelled items, see
            :class:`suffice.LabelWorth`; requires ``unlabelled``.
        unlabelled: Number of items that will be predicted.
        target_variance: Variance of the target, for regression. The targets in the comparison are standardised, and
            the cost of an error is converted with it; 1 by default.
        batch: Number of labels that are bought at a time.
        given: Fields of a :class:`suffice.Step` that your own loop provides; rules that need others are left out. None
            for a loop of suffice.

    Returns:
        The rule, its expected regret, and the evidence.

    Raises:
        InvalidValueError: An argument is invalid.

    Examples:
        >>> advice = recommend("classification", "logistic", error_cost=2000.0, label_cost=0.5)
        >>> advice.rule
        LabelWorth(error_cost=2000.0, label_cost=0.5, mistake_cost=None, tolerance=None)
        >>> recommend("classification", mistake_cost=5.0, unlabelled=2000).rule
        LabelWorth(error_cost=None, label_cost=1.0, mistake_cost=5.0, tolerance=None)
    """
    _require_task(task, model)
    if task == "classification" and target_variance is not None:
        raise InvalidValueError("target_variance goes with regression; classes have none, so leave it out")
    label = real(label_cost, "label_cost", "above 0", lambda x: x > 0.0)
    error = _error_of_one(error_cost, mistake_cost, unlabelled, target_variance)
    ratio, found = error / label, recorded_evidence()
    about = model if model in found["rules"] and model is not None else task
    at = _nearest(found["ratios"], ratio)
    tables = found["rules"][about]
    size = whole(batch, "batch", least=1)
    nearest = min(tables, key=lambda known: abs(math.log(int(known) / size)))
    ranked = _ranked(tables[nearest], at, _available(given, model))
    best, *others = ranked
    costs = {"error_cost": 1000.0 if error_cost is None else error_cost, "label_cost": label}
    if mistake_cost is not None:
        costs = {"mistake_cost": float(mistake_cost), "label_cost": label}
    rule = _configured(best, ratio, found["ratios"][at], costs)
    evidence = _words(found, (about, nearest), model, ratio) + _but(ranked, own_loop=given is not None)
    return Recommendation(rule, best, tuple(others[:3]), evidence)


def _require_task(task: str, model: str | None) -> None:
    if task not in _TASKS:
        raise InvalidValueError(f"task must be regression or classification, not {task!r}")
    if model in _COMPARED and task not in _COMPARED[model]:
        fitting = ", ".join(name for name, tasks in _COMPARED.items() if task in tasks)
        raise InvalidValueError(f"model {model!r} is for {_COMPARED[model][0]}, and the task is {task}; use {fitting}")
    if model == _NETWORK and task == "regression":
        raise InvalidValueError("model 'dropout' is for classification, and the task is regression; use gp, ridge")


def _available(given: Iterable[str] | None, model: str | None) -> frozenset[str] | None:
    if given is None:
        return NetworkBackend.provided_fields(validated=False) if model == _NETWORK else None
    names = frozenset([given] if isinstance(given, str) else given)
    unknown = sorted(names - STEP_FIELDS - {"n_labelled"})
    if unknown:
        near = get_close_matches(unknown[0], STEP_FIELDS, n=1)
        guess = f" Did you mean {near[0]}?" if near else ""
        raise InvalidValueError(f"given names {unknown[0]!r}, which is no field of a Step.{guess}")
    return names


def _nearest(ratios: list[float], ratio: float) -> int:
    return int(np.argmin(np.abs(np.log(np.array(ratios)) - math.log(ratio))))


def _ranked(table: Mapping[str, Any], at: int, available: frozenset[str] | None) -> list[Expectation]:
    """Return the expected regret of each usable rule, ranked over all prices: there are few data sets for one price."""
    ranked = []
    for entry in catalogue():
        # References are not recommended, nor are rules whose cost is over the whole range of the loss, which is another
        # cost than the one given here.
        counted = bool(entry.needs()) and entry.needs() <= COUNTED_FIELDS
        if entry.name not in table or counted or entry.name == _OTHER_COSTS:
            continue
        if available is not None and not entry.needs() <= available:
            continue
        part = table[entry.name]
        numbers = {name: float(part[name][at]) for name in ("typical", "mean", "median", "p90")}
        setting = None if part["settings"] is None else part["settings"][at]
        overall = float(np.mean(np.log1p(part["typical"])))
        ranked.append(((overall, entry.name), Expectation(entry.name, setting, **numbers)))
    return [each for _, each in sorted(ranked, key=lambda pair: pair[0])]


def _error_of_one(
    error_cost: float | None, mistake_cost: float | None, unlabelled: int | None, target_variance: float | None
) -> float:
    """Cost of the error of the trivial prediction, which is 1 for standardised targets."""
    if mistake_cost is None:
        if unlabelled is not None:
            raise InvalidValueError("unlabelled goes with mistake_cost, the cost of one wrong prediction; give both")
        error = real(1000.0 if error_cost is None else error_cost, "error_cost", "above 0", lambda x: x > 0.0)
        variance = 1.0 if target_variance is None else target_variance
        return error * real(variance, "target_variance", "above 0", lambda x: x > 0.0)
    if error_cost is not None:
        raise InvalidValueError("give error_cost or mistake_cost, not both")
    if unlabelled is None:
        raise InvalidValueError(
            "mistake_cost is the cost of one wrong prediction: give unlabelled, how many items there are"
        )
    return real(mistake_cost, "mistake_cost", "above 0", lambda x: x > 0.0) * whole(unlabelled, "unlabelled", least=1)


def _configured(best: Expectation, ratio: float, nearest: float, costs: Mapping[str, float]) -> Criterion:
    entry = next(entry for entry in catalogue() if entry.name == best.name)
    if entry.kind != "cost":
        return entry.rule(best.setting)
    rule = entry.rule(nearest)
    if isinstance(rule, LabelWorth):
        return LabelWorth(**costs)
    if hasattr(rule, "error_cost"):
        error = costs.get("error_cost", ratio * costs["label_cost"])
        return type(rule)(error, costs["label_cost"])  # type: ignore[call-arg]
    return entry.rule(ratio)


def _but(ranked: list[Expectation], *, own_loop: bool) -> str:
    """Reservations about the rule at this price."""
    best, ahead = ranked[0], min(ranked, key=lambda each: each.typical)
    text = " Rules are ranked over all prices of an error, since a few data sets do not settle a single one."
    if ahead.typical < best.typical:
        text += f" At this price alone {ahead.name} did better ({ahead.typical:.0%} against {best.typical:.0%})."
    if best.name == "Budget":
        text += " The budget, chosen on other data sets in runs of at most 500 labels, did better over all prices than "
        text += "any rule that this loop can feed." if own_loop else "any rule; it knows nothing of your data."
    return text


def _words(found: Mapping[str, Any], where: tuple[str, str], model: str | None, ratio: float) -> str:
    about, batch = where
    models = [about]
    if about not in _COMPARED:
        models = [name for name, tasks in _COMPARED.items() if about in tasks and name in found["rules"]]
    data, runs = ", ".join(found["data"][about]), found["runs"][about][batch]
    text = f"On {runs} runs with {', '.join(models)} on {data}, bought {batch} at a time; no rule was made on these"
    low, high = found["ratios"][0], found["ratios"][-1]
    if not low <= ratio <= high:
        text += f"; an error of 1 (of the variance of the target, for numbers) costs {ratio:.3g} labels here, and the "
        text += f"comparison went from {low:g} to {high:g}: these are the numbers of the nearer end"
    if model == _NETWORK:
        text += "; networks were not compared, so this is a guess from other models"
    elif model is not None and model not in models:
        text += f"; {model} was not among the models compared"
    return f"{text}."
