"""One thing that is compared: a stopping rule with the settings that are tried for it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.criteria import Criterion
from suffice.criteria.rule_info import ComparedRule, Kind
from suffice.errors import InvalidValueError
from suffice.experiments.tasks import TaskName
from suffice.special import Floats
from suffice.trace import Trace


@dataclass(frozen=True, kw_only=True, eq=False)
class Entry(ComparedRule):
    """A rule to compare, and its settings in order: the first is the one that stops soonest, the last the strictest.

    The attributes below are in addition to those of :class:`suffice.criteria.rule_info.ComparedRule`. A reference that
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
    tasks: tuple[TaskName, ...] = ("regression", "classification")

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
        """What the rule compares its number with, at each setting."""
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
