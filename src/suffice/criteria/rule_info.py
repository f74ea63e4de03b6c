"""Metadata of each stopping rule, declared next to its code.

A rule class declares ``info``, a :class:`RuleInfo`, and its module names the class in ``__all__``. The exports, the
table in the documentation, the comparison of rules, the names that the command accepts and the tests derive from that.
"""

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Literal

import numpy as np

from suffice.criteria.base import Criterion
from suffice.errors import InvalidTypeError

Family = Literal[
    "bounds and posteriors",
    "two costs, no threshold",
    "confidence",
    "accuracy",
    "trends",
    "stability of predictions",
    "committees",
    "screening",
    "optimisation",
    "counting",
]
Kind = Literal["threshold", "cost", "plain", "reference"]
Sense = Literal["at most", "below", "at least"]
TaskType = Literal["regression", "classification"]
CLASSES: tuple[TaskType, ...] = ("classification",)
NUMBERS: tuple[TaskType, ...] = ("regression",)


@dataclass(frozen=True, kw_only=True, eq=False)
class ComparedRule:
    """One form of a rule in the comparison of rules, and the settings to try.

    The settings are in order: the first is the one that stops soonest, the last the strictest.

    Attributes:
        make: Returns the rule at a setting; for a cost rule, at the cost of an error of 1 when a label costs 1. None
            for the class itself.
        settings: Values of ``parameter``. None for a rule with nothing to choose. A cost rule is compared at the costs
            of the comparison, and has no settings of its own.
        parameter: Name of the parameter that the settings are values of.
        default: The setting of the literature, one of ``settings``; where there is none, ours.
        name: Name in tables; by default that of the class.
        kind: ``threshold`` for a rule with a setting to choose; ``cost`` for one that takes the costs of errors and
            labels; ``plain`` for one with nothing to choose; ``reference`` for one that does not look at a model, or
            that uses the true errors.
        sense: Set where the number that the rule compares does not depend on the setting, and the rule stops where it
            stands in this sense to the limit, and its other conditions do not depend on the setting either. One
            replay then gives the stops of all settings.
        limit: Attribute of the rule that holds the limit; ``parameter`` by default.
        slack: Difference from an ``at least`` limit that is ignored.
        in_a_row: Number of consecutive steps for which the sense must hold for a stop.
        once: Returns the rule to replay once; by default the rule at the first setting. With ``in_a_row`` it must say
            stop at the first step of a row.
        charged: Field of a step that counts labels which the rule needs in addition to those of the run.
        after: Name of the rule after which this form is listed; by default it follows the other forms of its class.
    """

    make: Callable[[Any], Criterion] | None = None
    settings: tuple[Any, ...] = (None,)
    parameter: str = ""
    default: Any = None
    name: str = ""
    kind: Kind = "threshold"
    sense: Sense | None = None
    limit: str = ""
    slack: float = 0.0
    in_a_row: int = 1
    once: Callable[[], Criterion] | None = None
    charged: str = ""
    after: str = ""


@dataclass(frozen=True, kw_only=True, eq=False)
class RuleInfo:
    """Metadata of a stopping rule; the class attribute ``info`` of every rule of suffice.

    Attributes:
        family: Group of the rule in the documentation.
        compared: The forms in which the rule is compared with others; none for a rule of screening or of
            optimisation, because recorded runs have neither a positive class nor a least value to find.
        tasks: Where the rule can be used.
        example: Returns the rule with parameters at which it says both "go on" and "stop" on short runs. None for the
            class without arguments.
        origin: Where a rule comes from that has no ``Reference`` in its docstring: ``"practice"`` or ``"ours"``.
    """

    family: Family
    compared: tuple[ComparedRule, ...] = ()
    tasks: tuple[TaskType, ...] = ("regression", "classification")
    example: Callable[[], Criterion] | None = None
    origin: Literal["", "practice", "ours"] = ""


def rule_info(rule: type[Criterion]) -> RuleInfo:
    """Return what is listed about a rule of suffice.

    Raises:
        InvalidTypeError: The class does not declare ``info`` itself.
    """
    info: RuleInfo | None = vars(rule).get("info")
    if info is None:
        raise InvalidTypeError(
            f"the rule {rule.__name__} is listed, but its class has no attribute info; declare info = RuleInfo(...) as "
            "CONTRIBUTING.md says"
        )
    return info


def example_rule(rule: type[Criterion]) -> Criterion:
    """Return a rule of suffice with parameters at which it says both "go on" and "stop" on short runs."""
    make: Callable[[], Criterion] = rule_info(rule).example or rule
    return make()


def rules_in(*modules: ModuleType) -> dict[str, type[Criterion]]:
    """Return the rules that modules list in ``__all__``, by name, in the order of their definitions."""
    return {name: rule for module in modules for name, rule in vars(module).items() if name in module.__all__}


def rule_summary(rule: type[Criterion]) -> str:
    """Return the first sentence of a rule's docstring, without markup.

    Examples:
        >>> from suffice.criteria import InformationGain
        >>> rule_summary(InformationGain)
        'Stop when the largest information gain over the pool is at most a threshold.'
    """
    return re.sub(r":\w+:|``?", "", " ".join((inspect.getdoc(rule) or "").split("\n\n")[0].split()))


def rule_sources(rule: type[Criterion]) -> tuple[str, ...]:
    """Return the keys of the bibliography that a rule's docstring names; none if it has no ``Reference``.

    Examples:
        >>> from suffice.criteria import Budget, PacBayes
        >>> rule_sources(PacBayes), rule_sources(Budget)
        (('McAllester1999', 'Maurer2004'), ())
    """
    _, _, reference = (inspect.getdoc(rule) or "").partition("\nReference: ")
    return tuple(re.findall(r"\[(\w+)\]", reference.partition("\n\n")[0]))


def geometric_grid(loosest: float, strictest: float, count: int, *others: float) -> tuple[float, ...]:
    """Return settings from the loosest to the strictest in equal ratios, with three digits, and other values.

    Examples:
        >>> geometric_grid(1.0, 0.01, 3, 0.05)
        (1.0, 0.1, 0.05, 0.01)
    """
    values = {float(f"{value:.3g}") for value in np.geomspace(loosest, strictest, count)} | set(others)
    return tuple(sorted(values, reverse=loosest > strictest))


def grid_towards_one(farthest: float, nearest: float, count: int, *others: float) -> tuple[float, ...]:
    """Return settings whose distance from 1 falls from ``farthest`` to ``nearest`` in equal ratios, and 1 itself.

    Examples:
        >>> grid_towards_one(0.1, 0.001, 3)
        (0.9, 0.99, 0.999, 1.0)
    """
    gaps = geometric_grid(farthest, nearest, count)
    return tuple(sorted({float(f"{1.0 - gap:.6g}") for gap in gaps} | {1.0, *others}))
