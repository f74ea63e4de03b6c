"""The compared stopping rules with their settings, and the references."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from suffice.criteria import RULES, Budget, Criterion
from suffice.criteria.base import ComparedRule, Kind, rule_info
from suffice.errors import InvalidValueError
from suffice.models.factory import ModelTask
from suffice.numerics.special_functions import Floats
from suffice.recommendation.stopping_costs import RATIOS
from suffice.trace import Trace


@dataclass(frozen=True, kw_only=True, eq=False)
class Entry(ComparedRule):
    """A rule to compare, and its settings in order: the first is the one that stops soonest, the last the strictest.

    The attributes below are in addition to those of :class:`suffice.criteria.base.ComparedRule`. A reference that
    is not a rule has ``make=None``: it is computed from the errors of a run.

    Attributes:
        name: Name in tables; required, like ``kind`` and ``make``.
        tasks: Where the rule can be used.

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
        """The rule whose one replay tells the stops of all settings; see ``sense``."""
        return self.rule(self.settings[0]) if self.once is None else self.once()

    def holds(self, values: Floats) -> NDArray[np.bool_]:
        """Whether values stand to the limits in the entry's sense, ``values x settings``."""
        found, limits = values[:, None], self.limits
        if self.sense == "at least":
            return np.asarray((found >= limits) | (np.abs(found - limits) <= self.slack))
        return np.asarray(found < limits if self.sense == "below" else found <= limits)

    def needs(self) -> frozenset[str]:
        """Fields of a step without which the rule cannot judge."""
        return frozenset() if self.make is None else self.rule(self.settings[0]).needs()

    def extra_labels(self, trace: Trace) -> int:
        """Labels that the rule needs beside those of a run: they were paid for too."""
        return int(np.max(trace.measures[self.charged], initial=0)) if self.charged else 0


#: References that are no rules: the board works them out from the errors of a run.
RANDOM_STOP: Final = "RandomStop"
ORACLE: Final = "Oracle"
#: The two ends that every rule may be set to: a person who knows that labels or errors are expensive needs no rule.
AT_ONCE: Final = "AtOnce"
NEVER: Final = "Never"

#: Data sets that the constants of LabelWorth were fixed on: how it does there is no test of it.
MADE_ON: Final = frozenset(
    {
        *("power_plant", "protein", "gas_emission", "grid_stability", "diabetes"),
        *("grid_stable", "htru2", "skin", "adult", "newsgroups", "breast_cancer", "sms_spam", "digits"),
    }
)


def catalogue(ratios: Sequence[float] = RATIOS) -> tuple[Entry, ...]:
    """Return everything that is compared: the rules, as they declare it themselves, then references.

    Args:
        ratios: Costs of an error of 1, in labels: the settings of rules that take costs.

    Examples:
        >>> names = [entry.name for entry in catalogue()]
        >>> len(names) == len(set(names)), "StabilizingPredictions" in names
        (True, True)
    """
    rules = [entry for rule in RULES.values() for entry in _entries_of(rule, ratios)]
    return (*_in_order(rules), *_references())


def for_trace(trace: Trace, ratios: Sequence[float] = RATIOS) -> list[Entry]:
    """The entries that can be replayed on a run: those that need nothing but what it recorded.

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
    """An entry for a rule that is told what errors and labels cost.

    Args:
        name: What it is called.
        make: Makes the rule of ``(error_cost, label_cost)``.
        ratios: What an error of 1 costs in labels.
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
