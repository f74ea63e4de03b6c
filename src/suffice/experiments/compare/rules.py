"""The catalogue: every stopping rule that is compared, with its settings, and the references to compare with."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any, Final

from suffice.criteria import RULES, Budget, Criterion
from suffice.criteria.rule_info import rule_info
from suffice.experiments.compare.costs import RATIOS
from suffice.experiments.compare.entry import Entry
from suffice.trace import Trace

#: References that are no rules: the board works them out from the errors of a run.
RANDOM_STOP: Final = "RandomStop"
ORACLE: Final = "Oracle"
#: The two ends that every rule may be set to: a person who knows that labels are dear, or errors, needs no rule.
AT_ONCE: Final = "AtOnce"
NEVER: Final = "Never"

#: Data sets that the constants of LabelWorth were fixed on: how it does there is no test of it.
MADE_ON: Final = frozenset({"diabetes", "friedman", "breast_cancer", "wine", "sms_spam", "digits"})


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
