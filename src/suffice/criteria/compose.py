"""Rules composed of rules. Each holds copies, so one rule can be used in several places without sharing state."""

from dataclasses import dataclass, field
from typing import Any

from suffice.arguments import whole
from suffice.criteria.base import Criterion
from suffice.criteria.outlook import First, Known, Last
from suffice.criteria.step import Step
from suffice.criteria.verdict import Certificate, Verdict
from suffice.errors import InvalidTypeError, InvalidValueError


def _own(rules: tuple[Criterion, ...], flatten: type[Criterion]) -> tuple[Criterion, ...]:
    """Return copies of ``rules``; a rule of the class ``flatten`` is replaced by its parts."""
    if not isinstance(rules, tuple | list) or not rules:
        raise InvalidValueError(f"{flatten.__name__} needs a tuple of at least one rule, not {rules!r}")
    own: list[Criterion] = []
    for rule in rules:
        _require_rule(rule)
        own.extend(part.copy() for part in (getattr(rule, "rules") if type(rule) is flatten else (rule,)))  # noqa: B009
    return tuple(own)


def _require_rule(rule: object) -> None:
    if not isinstance(rule, Criterion):
        raise InvalidTypeError(f"a stopping rule is composed of stopping rules, not {type(rule).__name__}")


@dataclass
class AllOf(Criterion):
    """Stop when all rules say stop at the same step: ``a & b``.

    Args:
        rules: One or more rules.

    Examples:
        >>> from suffice.criteria import Budget
        >>> (Budget(2) & Budget(3)).observe(Step(n_labelled=2)).stop
        False
    """

    rules: tuple[Criterion, ...]

    def __post_init__(self) -> None:
        self.rules = _own(self.rules, AllOf)

    def judge(self, step: Step) -> Verdict:
        """Judge with every rule; all must say stop."""
        parts = tuple(rule.observe(step) for rule in self.rules)
        waiting = [part for part in parts if not part.stop]
        reason = "; and ".join(p.reason for p in parts) if not waiting else "; ".join(p.reason for p in waiting)
        certificate = Certificate.best(parts)
        ready = all(part.ready for part in parts)
        outlook = Last(tuple(part.outlook for part in parts))
        return self.verdict(
            step, stop=not waiting, reason=reason, ready=ready, parts=parts, certificate=certificate, outlook=outlook
        )


@dataclass
class AnyOf(Criterion):
    """Stop when at least one of the rules says stop: ``a | b``.

    Args:
        rules: One or more rules.

    Examples:
        >>> from suffice.criteria import Budget
        >>> print((Budget(2) | Budget(3)).observe(Step(n_labelled=2)))
        Stop at 2 labels: 2 labels are bought, and the budget is 2.
    """

    rules: tuple[Criterion, ...]

    def __post_init__(self) -> None:
        self.rules = _own(self.rules, AnyOf)

    def judge(self, step: Step) -> Verdict:
        """Judge with every rule; one that says stop is enough."""
        parts = tuple(rule.observe(step) for rule in self.rules)
        stopping = [part for part in parts if part.stop]
        reason = "; ".join(part.reason for part in stopping or parts)
        certificate = Certificate.best(parts)
        ready = any(part.ready for part in parts)
        outlook = First(tuple(part.outlook for part in parts))
        return self.verdict(
            step, stop=bool(stopping), reason=reason, ready=ready, parts=parts, certificate=certificate, outlook=outlook
        )


@dataclass
class Patience(Criterion):
    """Stop when a rule has said stop at ``k`` consecutive steps: ``rule.patience(k)``.

    Args:
        rule: The rule.
        k: Number of consecutive steps, at least 1. A "go on" between them restarts the count.

    Examples:
        >>> from suffice.criteria import Budget
        >>> rule = Budget(2).patience(2)
        >>> [rule.observe(Step(n_labelled=n)).stop for n in (1, 2, 3)]
        [False, False, True]
    """

    rule: Criterion
    k: int
    in_a_row: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        _require_rule(self.rule)
        self.rule, self.k = self.rule.copy(), whole(self.k, "patience", least=1)

    def judge(self, step: Step) -> Verdict:
        """Judge with the rule and count its stops."""
        part = self.rule.observe(step)
        self.in_a_row = self.in_a_row + 1 if part.stop else 0
        count = f"{part.reason} ({self.in_a_row} of {self.k} steps in a row)"
        reason = count if part.stop and self.k > 1 else part.reason
        # The forecast of the first stop does not say how long a noisy value stays below its threshold.
        outlook = part.outlook if self.k == 1 else None
        return _passed_on(self, step, part, stop=self.in_a_row >= self.k, reason=reason, outlook=outlook)


@dataclass
class After(Criterion):
    """Stop when a rule says stop, but not before ``n`` labels: ``rule.after(n)``.

    Args:
        rule: The rule; it observes every step, also the early ones.
        n: Smallest number of labels, including the initial ones.

    Examples:
        >>> from suffice.criteria import Budget
        >>> rule = Budget(2).after(4)
        >>> [rule.observe(Step(n_labelled=n)).stop for n in (2, 3, 4)]
        [False, False, True]
    """

    rule: Criterion
    n: int

    def __post_init__(self) -> None:
        _require_rule(self.rule)
        self.rule, self.n = self.rule.copy(), whole(self.n, "after", least=0)

    def judge(self, step: Step) -> Verdict:
        """Judge with the rule; suppress its stop while there are too few labels."""
        part = self.rule.observe(step)
        early = part.stop and step.n_labelled < self.n
        reason = f"{part.reason}, but at least {self.n} labels are required" if early else part.reason
        outlook = Last((part.outlook, Known(self.n - step.n_labelled)))
        return _passed_on(self, step, part, stop=part.stop and not early, reason=reason, outlook=outlook)


def _passed_on(rule: Criterion, step: Step, part: Verdict, **own: Any) -> Verdict:
    """Return the verdict of a rule that wraps another one: its own decision with the other rule's numbers."""
    passed = {name: getattr(part, name) for name in ("value", "threshold", "ready", "certificate")}
    return rule.verdict(step, parts=(part,), **passed, **own)
