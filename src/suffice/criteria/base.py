"""The interface of a stopping rule: comparison with a threshold, saved state, composed rules, and metadata.

A rule class declares ``info``, a :class:`RuleInfo`, and its module names the class in ``__all__``. The exports, the
table in the documentation, the comparison of rules, the names that the command accepts and the tests derive from that.
"""

import copy
import dataclasses
import inspect
import math
import re
import sys
import types
import typing
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Union, get_args, get_origin

import numpy as np

from suffice.arguments import real, whole
from suffice.criteria.step_and_verdict import (
    PREDICTION_FIELDS,
    SAMPLED_FIELDS,
    Certificate,
    First,
    Known,
    Last,
    Step,
    Verdict,
)
from suffice.errors import InvalidTypeError, InvalidValueError, MissingInputError

if TYPE_CHECKING:
    from typing import Self

# Wording of the relation in a sentence: if it holds, and if it does not.
_RELATION_WORDS: Final = {"<=": ("at most", "above"), "<": ("below", "not below"), ">=": ("at least", "below")}
#: Averages that should be equal may differ by this much.
AVERAGE_ROUNDING: Final = 1e-12


@dataclass(frozen=True)
class Comparison:
    """A quantity that a rule compares with a limit. The rule stops if the relation holds.

    Attributes:
        quantity: Name of the quantity, for the sentence.
        relation: The relation of the quantity to the limit at which the rule stops.
        limit: Name of the limit.

    Examples:
        >>> Comparison("risk", "<").sentence(0.05, 0.05)
        'the risk, 0.05, is not below the threshold 0.05'
    """

    quantity: str
    relation: Literal["<=", "<", ">="]
    limit: str = "threshold"

    def holds(self, value: float, limit: float) -> bool:
        """Whether the relation holds."""
        if self.relation == "<":
            return value < limit
        return value <= limit if self.relation == "<=" else value >= limit

    def sentence(self, value: float, limit: float) -> str:
        """Return a sentence that says whether the relation holds."""
        words = _RELATION_WORDS[self.relation][0 if self.holds(value, limit) else 1]
        shown, against = apart(value, limit)
        return f"the {self.quantity}, {shown}, is {words} the {self.limit} {against}"


def apart(value: float, limit: float) -> tuple[str, str]:
    """Return two numbers as text, with three digits or as many as are needed to tell them apart.

    Examples:
        >>> apart(0.05, 0.1), apart(0.05000001, 0.05)
        (('0.05', '0.1'), ('0.05000001', '0.05'))
    """
    for digits in (3, 6, 12):
        shown, against = f"{value:.{digits}g}", f"{limit:.{digits}g}"
        if shown != against or value == limit:
            return shown, against
    return repr(value), repr(limit)


def tightened(threshold: float, factor: float, *, limit: float) -> float:
    """Return a stricter threshold: its distance from the strictest one, ``limit``, times ``factor``.

    Args:
        threshold: The present threshold.
        factor: Inside (0, 1).
        limit: 0 if a lower threshold is stricter, 1 if a higher one is.

    Raises:
        InvalidValueError: ``factor`` is not inside (0, 1).

    Examples:
        >>> tightened(0.1, 0.5, limit=0.0), round(tightened(0.9, 0.5, limit=1.0), 4)
        (0.05, 0.95)
    """
    share = real(factor, "factor", "between 0 and 1", lambda x: 0.0 < x < 1.0)
    stricter = limit + (threshold - limit) * share
    # Never rounded to the limit itself, because a rule may be unable to reach it.
    return threshold if stricter == limit else stricter


def snapped(value: float, limit: float) -> float:
    """Return ``value``, or ``limit`` if the two differ by no more than the rounding of an average.

    Examples:
        >>> snapped(0.1 + 0.2, 0.3), snapped(0.29, 0.3)
        (0.3, 0.29)
    """
    return limit if abs(value - limit) <= AVERAGE_ROUNDING else value


_RULES: Final[dict[str, type["Criterion"]]] = {}
# A classifier that has seen one class only predicts it with probability 1 everywhere.
_FEWEST_CLASSES: Final = 2
_PROBABILITIES: Final = frozenset({"stop_probabilities", "selected_probabilities"})
_ONE_CLASS: Final = (
    "all labels so far are of one class, and the predictions of the model say nothing before there is a second one"
)
#: Metadata of a field that earlier versions did not have. It is saved only if it differs from its default, so that a
#: rule which does not use it can be exchanged with earlier versions.
ADDED_LATER: Final = {"added_later": True}


class Criterion(ABC):
    """A stopping rule: it takes one :class:`Step` after another and answers each with a :class:`Verdict`.

    Write a rule as a dataclass. The fields of the constructor are its parameters. Fields with ``init=False`` are its
    state; their defaults mean that no step has been observed. All fields hold JSON values (or rules, or tuples of
    rules). The base class then provides ``state_dict``, resume, ``reset`` and composition, and the rule implements
    :meth:`judge`.

    A verdict is about its own step only: a rule that continues after a stop may say "go on" again. A rule knows the
    present step and the values that it stored at earlier ones.

    A rule that requires a field which is computed from the predictions of a classifier does not judge a step with
    ``classes_seen`` below 2: the verdict is "go on", ``ready`` is False, and :meth:`judge` is not called. A classifier
    that has seen one class only predicts it with probability 1 everywhere.

    Attributes:
        requires: Names of the :class:`Step` fields that the rule cannot judge without.
        optional: Names of the fields that the rule uses if a step has them.
        classes_only: Those of ``stop_probabilities`` and ``selected_probabilities`` of which the rule uses only the
            most probable class of each item, so that it can be applied to predicted classes without probabilities.

    Examples:
        >>> from dataclasses import dataclass, field
        >>> @dataclass
        ... class ThreeSteps(Criterion):
        ...     seen: int = field(default=0, init=False)
        ...     def judge(self, step):
        ...         self.seen += 1
        ...         return self.verdict(step, stop=self.seen >= 3, reason=f"{self.seen} of 3 steps are done")
        >>> rule = ThreeSteps()
        >>> [rule.observe(Step(n_labelled=n)).stop for n in (1, 2, 3)]
        [False, False, True]
    """

    requires: ClassVar[frozenset[str]] = frozenset()
    optional: ClassVar[frozenset[str]] = frozenset()
    classes_only: ClassVar[frozenset[str]] = frozenset()
    # Labels at the last step that was observed. It is not saved, because it serves only to detect errors of the caller.
    _last_labelled = 0

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        _RULES[_saved_name(cls)] = cls

    @abstractmethod
    def judge(self, step: Step) -> Verdict:
        """Return the verdict on one step, whose required fields are given."""

    def observe(self, step: Step) -> Verdict:
        """Return the verdict on one step.

        Args:
            step: The step; it must hold every field that the rule requires.

        Returns:
            The verdict at this step.

        Raises:
            MissingInputError: A required field is missing; the message names it.
            InvalidValueError: The step has fewer labels than the one before it.
        """
        if not isinstance(step, Step):
            raise InvalidTypeError(f"observe takes a suffice.Step, not {type(step).__name__}")
        require_order(self, step)
        missing = sorted(name for name in self.needs() if getattr(step, name, None) is None)
        if missing:
            hint = "; a Step can be subclassed to carry it"
            if any(name.startswith("kl_") and name != "kl_prior" for name in missing):
                hint = "; give both posteriors to Step.between, or both divergences to Step"
            elif all(hasattr(Step, name) for name in missing):
                hint = f"; give it to the step, Step(n_labelled=..., {missing[0]}=...)"
            raise MissingInputError(
                f"{requiring_rule(self, missing)} requires {', '.join(missing)} in every Step{hint}"
            )
        if step.classes_seen is not None and step.classes_seen < _FEWEST_CLASSES and _uses_predictions(self):
            return self.verdict(step, stop=False, ready=False, reason=_ONE_CLASS)
        verdict: object = self.judge(step)
        if not isinstance(verdict, Verdict):
            raise InvalidTypeError(f"{type(self).__name__}.judge must return a Verdict, not {type(verdict).__name__}")
        return verdict if SAMPLED_FIELDS.isdisjoint(self.requires) else _with_sample(verdict, step)

    def observe_all(self, steps: Sequence[Step]) -> list[Verdict]:
        """Return the verdicts on several steps; the same as :meth:`observe` on each of them.

        A rule may override it to process all steps at once.
        """
        return [self.observe(step) for step in steps]

    def needs(self) -> frozenset[str]:
        """Names of the :class:`Step` fields that this rule, with any rules inside it, requires."""
        return self._needs

    def reads(self) -> frozenset[str]:
        """Names of the :class:`Step` fields that this rule, with any rules inside it, requires or uses if given.

        Examples:
            >>> from suffice.criteria import EntropyMax
            >>> sorted(EntropyMax().reads()), sorted(EntropyMax().needs())
            (['classes_seen', 'pool_max_entropy'], ['pool_max_entropy'])
        """
        return self._reads

    @cached_property
    def _needs(self) -> frozenset[str]:
        return self.requires.union(*(rule.needs() for rule in inner_rules(self)))

    @cached_property
    def _reads(self) -> frozenset[str]:
        classes = frozenset({"classes_seen"} if _uses_predictions(self) else ())
        sample = frozenset() if SAMPLED_FIELDS.isdisjoint(self.requires) else frozenset({"pool_sample"})
        return self._needs.union(self.optional, classes, sample, *(rule.reads() for rule in inner_rules(self)))

    def verdict(self, step: Step, *, stop: bool, reason: str, **fields: Any) -> Verdict:
        """Return this rule's verdict; ``value`` and ``threshold`` are None and ``ready`` is True unless given."""
        defaults: dict[str, Any] = {"value": None, "threshold": None, "ready": True}
        return Verdict(
            stop=bool(stop), reason=reason, rule=type(self).__name__, n_labelled=step.n_labelled, **(defaults | fields)
        )

    def comparison_verdict(self, step: Step, comparison: Comparison, value: float, limit: float) -> Verdict:
        """Return the verdict of a rule that stops if the relation of a comparison holds.

        A value that has overflowed becomes the largest float, so that a verdict holds finite numbers only.

        Args:
            step: The step.
            comparison: The quantity and its relation to the limit.
            value: Value of the quantity.
            limit: The limit.
        """
        value = min(max(value, -sys.float_info.max), sys.float_info.max)
        stop, reason = comparison.holds(value, limit), comparison.sentence(value, limit)
        return self.verdict(step, stop=stop, value=value, threshold=limit, reason=reason)

    def reset(self) -> None:
        """Forget every step, as if just constructed."""
        self._last_labelled = 0
        for spec in _fields(self, init=False):
            setattr(self, spec.name, _default(spec))
        for rule in inner_rules(self):
            rule.reset()

    def state_dict(self) -> dict[str, Any]:
        """Return the rule's parameters and state as JSON values; :func:`criterion_from_dict` restores the rule."""
        return {
            "rule": _saved_name(type(self)),
            "params": _saved_fields(self, init=True),
            "state": _saved_fields(self, init=False),
        }

    @staticmethod
    def from_state(state: Mapping[str, Any]) -> "Criterion":
        """Restore a rule of any class from :meth:`state_dict`; the same as :func:`criterion_from_dict`."""
        return criterion_from_dict(state)

    @classmethod
    def from_older_version(
        cls, params: Mapping[str, Any], state: Mapping[str, Any]
    ) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        """Return saved parameters and state in the present form; a rule whose form has changed overrides it."""
        return params, state

    def check_state(self) -> None:  # noqa: B027 - a rule without relations in its state needs none
        """Refuse a restored state that contradicts itself or the parameters; called by :func:`criterion_from_dict`.

        Types, finite numbers and counts of at least 0 are checked already. A rule overrides this method for relations,
        for example that two lists have the same length.

        Raises:
            InvalidValueError: The state is contradictory; the message names the field.
        """

    def copy(self) -> "Self":
        """Return an independent rule with the same parameters and state."""
        return copy.deepcopy(self)

    def patience(self, k: int) -> "Criterion":
        """Return a rule that stops when this one has said stop at ``k`` consecutive steps."""
        return Patience(self, k)

    def after(self, n: int) -> "Criterion":
        """Return a rule that stops when this one does, but not before ``n`` labels are bought."""
        return After(self, n)

    def __and__(self, other: "Criterion") -> "Criterion":
        return AllOf((self, other)) if isinstance(other, Criterion) else NotImplemented

    def __or__(self, other: "Criterion") -> "Criterion":
        return AnyOf((self, other)) if isinstance(other, Criterion) else NotImplemented


def inner_rules(rule: Criterion) -> list[Criterion]:
    """Return the rules that are parameters of a rule; none for a rule that is not composed of others.

    Examples:
        >>> from suffice.criteria import Budget
        >>> inner_rules(Budget(2) & Budget(3))
        [Budget(labels=2), Budget(labels=3)]
    """
    values = (getattr(rule, spec.name) for spec in _fields(rule, init=True))
    several = (value if isinstance(value, tuple | list) else (value,) for value in values)
    return [inner for group in several for inner in group if isinstance(inner, Criterion)]


def requiring_rule(rule: Criterion, missing: Sequence[str]) -> str:
    """Return the name of the rule, the given one or one inside it, that requires a missing field itself.

    Args:
        rule: The rule.
        missing: Names of missing fields, at least one of which it requires.

    Examples:
        >>> from suffice.criteria import Budget, EntropyMax
        >>> requiring_rule(Budget(2) | EntropyMax(), ["pool_max_entropy"])
        'EntropyMax'
    """
    if rule.requires.intersection(missing):
        return type(rule).__name__
    return next(requiring_rule(inner, missing) for inner in inner_rules(rule) if inner.needs().intersection(missing))


def fields_with_probabilities(rule: Criterion) -> frozenset[str]:
    """Return those of ``stop_probabilities`` and ``selected_probabilities`` that a rule uses as probabilities.

    Args:
        rule: The rule, with any rules inside it.

    Examples:
        >>> from suffice.criteria import MaxConfidence, StabilizingPredictions
        >>> sorted(fields_with_probabilities(StabilizingPredictions() | MaxConfidence()))
        ['selected_probabilities']
    """
    inner = inner_rules(rule)
    own = rule.reads().difference(*(each.reads() for each in inner)) | rule.requires | rule.optional
    return (own - rule.classes_only).union(*map(fields_with_probabilities, inner)) & _PROBABILITIES


def _with_sample(verdict: Verdict, step: Step) -> Verdict:
    """The verdict, with a note that the pool was sampled."""
    if step.pool_sample is None:
        return verdict
    note = f" (in a random sample of {step.pool_sample:,} unlabelled items)"
    return verdict if note in verdict.reason else dataclasses.replace(verdict, reason=verdict.reason + note)


def _uses_predictions(rule: Criterion) -> bool:
    """Whether the rule itself requires a field that is computed from predictions."""
    return not PREDICTION_FIELDS.isdisjoint(rule.requires)


def require_order(rule: Criterion, step: Step) -> None:
    """Refuse a step with fewer labels than the one before it."""
    if step.n_labelled < rule._last_labelled:
        raise InvalidValueError(
            f"n_labelled fell from {rule._last_labelled} to {step.n_labelled}; give the steps of one run in order, and "
            "reset() the rule for another run"
        )
    rule._last_labelled = step.n_labelled


def _fields(rule: Any, *, init: bool) -> list["dataclasses.Field[Any]"]:
    """Return the fields of the parameters of a rule, or those of its state."""
    if not dataclasses.is_dataclass(rule):
        raise InvalidTypeError(f"{type(rule).__name__} must be a dataclass to be a stopping rule")
    return [spec for spec in dataclasses.fields(rule) if spec.init is init]


def _saved_fields(rule: Criterion, *, init: bool) -> dict[str, Any]:
    """Return the parameters of a rule, or its state, as JSON values."""
    values = {spec.name: (spec, getattr(rule, spec.name)) for spec in _fields(rule, init=init)}
    return {
        name: _plain(value)
        for name, (spec, value) in values.items()
        if not (spec.metadata.get("added_later") and value == _default(spec))
    }


def _saved_name(rule: type[Criterion]) -> str:
    """Return the name of a rule in its saved state: with the module, except for the rules of suffice."""
    return rule.__name__ if _is_own(rule) else f"{rule.__module__}.{rule.__qualname__}"


def _is_own(rule: type[Criterion]) -> bool:
    return rule.__module__.startswith("suffice.criteria")


def criterion_from_dict(state: Mapping[str, Any]) -> Criterion:
    """Restore a rule from :meth:`Criterion.state_dict`; it continues exactly as the saved one.

    Args:
        state: The result of ``state_dict``, also after a round trip through JSON.

    Returns:
        A rule that gives the same verdicts as the saved one would.

    Raises:
        InvalidValueError: The rule is not known, or the dictionary does not fit it: a field of the state is missing,
            has a wrong type, is not finite, or contradicts another. The message names the field.

    Examples:
        >>> from suffice.criteria import Budget
        >>> criterion_from_dict(Budget(100).state_dict())
        Budget(labels=100)
    """
    try:
        name, params, saved = state["rule"], state["params"], state["state"]
    except (KeyError, TypeError):
        raise InvalidValueError("a saved rule is a dictionary with the keys 'rule', 'params' and 'state'") from None
    if not isinstance(name, str) or name not in _RULES:
        raise InvalidValueError(
            f"no stopping rule is named {name!r}; known: {', '.join(sorted(_RULES))}. Import the module of your "
            "own rule before you restore it"
        )
    if isinstance(params, Mapping) and isinstance(saved, Mapping):
        params, saved = _RULES[name].from_older_version(params, saved)
    try:
        rule = _RULES[name](**{key: _revived(value) for key, value in params.items()})
    except (TypeError, AttributeError) as error:
        raise InvalidValueError(f"the saved parameters do not fit {name}: {error}") from None
    specs = {spec.name: spec for spec in _fields(rule, init=False)}
    required = {key for key, spec in specs.items() if not spec.metadata.get("added_later")}
    if not isinstance(saved, Mapping) or not required <= set(saved) <= set(specs):
        raise InvalidValueError(f"the saved state of {name} is {saved!r}; it should hold {sorted(specs)}")
    annotations = annotations_of(type(rule))
    for key, value in saved.items():
        revived, default = _revived(value), _default(specs[key])
        # The initial value of a field is valid, even if it does not fit the annotation.
        if type(revived) is not type(default) or revived != default:
            field_name = f"{key} in the saved state of {name}"
            require_type(revived, annotations.get(key, Any), field_name, counts=_is_own(type(rule)))
        setattr(rule, key, revived)
    rule.check_state()
    return rule


def _plain(value: Any) -> Any:
    if isinstance(value, Criterion):
        return value.state_dict()
    return [_plain(v) for v in value] if isinstance(value, tuple | list) else copy.deepcopy(value)


def _revived(value: Any) -> Any:
    """Undo :func:`_plain`: a saved rule becomes a rule, a list of saved rules a tuple of rules."""
    if _is_saved_rule(value):
        return criterion_from_dict(value)
    if isinstance(value, list) and value and all(map(_is_saved_rule, value)):
        return tuple(map(criterion_from_dict, value))
    return copy.deepcopy(value)


def _is_saved_rule(value: Any) -> bool:
    return isinstance(value, Mapping) and set(value) == {"rule", "params", "state"}


def _default(spec: "dataclasses.Field[Any]") -> Any:
    return spec.default if spec.default_factory is dataclasses.MISSING else spec.default_factory()


def _own(rules: tuple[Criterion, ...], flatten: type[Criterion]) -> tuple[Criterion, ...]:
    """Return copies of ``rules``; a rule of the class ``flatten`` is replaced by its parts."""
    if not isinstance(rules, tuple | list) or not rules:
        raise InvalidValueError(f"{flatten.__name__} needs a tuple of at least one rule, not {rules!r}")
    own: list[Criterion] = []
    for rule in rules:
        require_rule(rule, "each part of a composed rule")
        own.extend(part.copy() for part in (getattr(rule, "rules") if type(rule) is flatten else (rule,)))  # noqa: B009
    return tuple(own)


def require_rule(rule: object, name: str) -> None:
    """Raise an error unless an argument is a stopping rule.

    Args:
        rule: The argument.
        name: Its name.

    Raises:
        InvalidTypeError: It is something else; the message says what to give instead.

    Examples:
        >>> require_rule("ErrorStability", "rule")
        Traceback (most recent call last):
            ...
        suffice.errors.InvalidTypeError: rule must be a stopping rule such as sf.LabelWorth(), not str
    """
    if isinstance(rule, Criterion):
        return
    if isinstance(rule, type) and issubclass(rule, Criterion):
        raise InvalidTypeError(f"{name} must be a stopping rule, not its class; give {rule.__name__}(...)")
    raise InvalidTypeError(f"{name} must be a stopping rule such as sf.LabelWorth(), not {type(rule).__name__}")


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
        require_rule(self.rule, "rule")
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
        require_rule(self.rule, "rule")
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


def annotations_of(kind: type) -> dict[str, Any]:
    """Return the annotations of a class by field; none if they cannot be evaluated.

    Examples:
        >>> from suffice.criteria import Patience
        >>> annotations_of(Patience)["in_a_row"]
        <class 'int'>
    """
    try:
        return typing.get_type_hints(kind)
    except Exception:
        return {}


def require_type(value: Any, annotation: Any, name: str, *, counts: bool) -> None:
    """Refuse a value that does not fit the annotation of its field.

    Numbers must be finite. ``True`` is not a number. A whole number fits where a float is expected. An annotation that
    does not describe JSON values or classes is not checked.

    Args:
        value: The value.
        annotation: Type of the field.
        name: Name of the field, for the error.
        counts: Whether whole numbers must be at least 0.

    Raises:
        InvalidValueError: The value does not fit; the message names the field.

    Examples:
        >>> require_type([0.5, 2], list[float], "values", counts=True)
        >>> require_type(float("nan"), float | None, "gamma", counts=True)
        Traceback (most recent call last):
        ...
        suffice.errors.InvalidValueError: gamma must be a finite number or None, not nan
    """
    if not _fits(value, annotation, counts=counts):
        raise InvalidValueError(f"{name} must be {_words(annotation, counts=counts)}, not {shortened(value)}")


def require_state(rule: object, name: str, requirement: str, *, holds: bool) -> None:
    """Refuse a saved state that contradicts itself or the parameters; for ``check_state`` of a rule.

    Args:
        rule: The rule, with the restored state.
        name: Field of the state.
        requirement: The requirement on the field, for the error.
        holds: Whether the requirement holds.

    Raises:
        InvalidValueError: The requirement does not hold.
    """
    if not holds:
        value = shortened(getattr(rule, name))
        raise InvalidValueError(
            f"{name} in the saved state of {type(rule).__name__} must be {requirement}, not {value}"
        )


def rises(numbers: Sequence[float]) -> bool:
    """Whether each number is larger than the one before.

    Examples:
        >>> rises([1, 2, 5]), rises([1, 1]), rises([])
        (True, False, True)
    """
    return all(one < other for one, other in pairwise(numbers))


def within(numbers: Sequence[float], low: float, high: float = math.inf) -> bool:
    """Whether all numbers are from ``low`` to ``high``.

    Examples:
        >>> within([0.0, 1.0], 0.0, 1.0), within([-0.1], 0.0)
        (True, False)
    """
    return all(low <= number <= high for number in numbers)


def shortened(value: Any) -> str:
    """Return the printed form of a value, at most 60 characters of it."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _fits(value: Any, annotation: Any, *, counts: bool) -> bool:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if annotation in (int, float):
        return _is_number(value, whole=annotation is int) and (annotation is float or value >= 0 or not counts)
    if origin in (Union, types.UnionType):
        return any(_fits(value, each, counts=counts) for each in arguments)
    if origin is Literal:
        return value in arguments
    if origin in (list, tuple):
        # JSON has lists only. Entries of a tuple with a type for each entry are not checked.
        alike = len(arguments) == 1 or (len(arguments) == 2 and arguments[1] is Ellipsis)
        each = arguments[0] if alike else Any
        return isinstance(value, list | tuple) and all(_fits(entry, each, counts=counts) for entry in value)
    known = isinstance(annotation, type) and annotation is not Any and origin is None
    return not known or isinstance(value, annotation)


def _is_number(value: Any, *, whole: bool) -> bool:
    if isinstance(value, bool) or not isinstance(value, int if whole else int | float):
        return False
    return whole or _is_finite(value)


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def _words(annotation: Any, *, counts: bool, several: bool = False) -> str:
    """Return what an annotation requires, in words."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    names = {
        type(None): ("None", "None"),
        bool: ("True or False", "True or False"),
        str: ("text", "texts"),
        int: ("a whole number", "whole numbers"),
        float: ("a finite number", "finite numbers"),
    }
    if annotation in names:
        found = names[annotation][several]
        return f"{found} of at least 0" if annotation is int and counts else found
    if origin in (Union, types.UnionType):
        return " or ".join(_words(each, counts=counts, several=several) for each in arguments)
    if origin in (list, tuple) and arguments:
        return f"{'lists' if several else 'a list'} of {_words(arguments[0], counts=counts, several=True)}"
    if origin is Literal:
        return " or ".join(map(repr, arguments))
    return f"{'objects' if several else 'an object'} of the type {getattr(annotation, '__name__', annotation)}"


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
        default: The setting of the literature, one of ``settings``; if there is none, ours.
        name: Name in tables; by default that of the class.
        kind: ``threshold`` for a rule with a setting to choose; ``cost`` for one that takes the costs of errors and
            labels; ``plain`` for one with nothing to choose; ``reference`` for one that does not look at a model, or
            that uses the true errors.
        sense: Relation of the compared number to the limit at which the rule stops. Set only if neither that number
            nor the other conditions of the rule depend on the setting. One replay then gives the stops of all
            settings.
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
        tasks: The tasks for which the rule can be used.
        example: Returns the rule with parameters at which it says both "go on" and "stop" on short runs. None for the
            class without arguments.
        origin: Origin of a rule without a ``Reference`` in its docstring: ``"practice"`` or ``"ours"``.
    """

    family: Family
    compared: tuple[ComparedRule, ...] = ()
    tasks: tuple[TaskType, ...] = ("regression", "classification")
    example: Callable[[], Criterion] | None = None
    origin: Literal["", "practice", "ours"] = ""


def rule_info(rule: type[Criterion]) -> RuleInfo:
    """Return the metadata of a rule of suffice.

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
