"""The base class of stopping rules. It provides JSON state, resume and composition."""

import copy
import dataclasses
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Final

from suffice.criteria.comparing import Comparison
from suffice.criteria.step import Step
from suffice.criteria.verdict import Verdict
from suffice.errors import InvalidTypeError, InvalidValueError, MissingInputError

if TYPE_CHECKING:
    from typing import Self

_RULES: Final[dict[str, type["Criterion"]]] = {}


class Criterion(ABC):
    """A stopping rule: it takes one :class:`Step` after another and answers each with a :class:`Verdict`.

    Write a rule as a dataclass. The fields of the constructor are its parameters. Fields with ``init=False`` are its
    state; their defaults mean that no step has been observed. All fields hold JSON values (or rules, or tuples of
    rules). The base class then provides ``state_dict``, resume, ``reset`` and composition, and the rule implements
    :meth:`judge`.

    A verdict is about its own step only: a rule that continues after a stop may say "go on" again. A rule knows the
    present step and what it stored of earlier ones.

    Attributes:
        requires: Names of the :class:`Step` fields that the rule cannot judge without.

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
        """
        if not isinstance(step, Step):
            raise InvalidTypeError(f"observe takes a suffice.Step, not {type(step).__name__}")
        missing = sorted(name for name in self.needs() if getattr(step, name, None) is None)
        if missing:
            hint = "; a Step can be subclassed to carry it"
            if any(name.startswith("kl_") and name != "kl_prior" for name in missing):
                hint = "; give both posteriors to Step.between, or both divergences to Step"
            elif all(hasattr(Step, name) for name in missing):
                hint = f"; give it to the step, Step(n_labelled=..., {missing[0]}=...)"
            raise MissingInputError(f"{self._asking(missing)} requires {', '.join(missing)} in every Step{hint}")
        verdict: object = self.judge(step)
        if not isinstance(verdict, Verdict):
            raise InvalidTypeError(f"{type(self).__name__}.judge must return a Verdict, not {type(verdict).__name__}")
        return verdict

    def observe_all(self, steps: Sequence[Step]) -> list[Verdict]:
        """Return the verdicts on several steps; the same as :meth:`observe` on each of them.

        A rule may override it to process all steps at once.
        """
        return [self.observe(step) for step in steps]

    def needs(self) -> frozenset[str]:
        """Names of the :class:`Step` fields that this rule, with any rules inside it, requires."""
        return self._needs

    @cached_property
    def _needs(self) -> frozenset[str]:
        return self.requires.union(*(rule.needs() for rule in self._inner()))

    def _asking(self, missing: list[str]) -> str:
        """Return the name of the rule, this one or one inside it, that requires a missing field itself."""
        if self.requires.intersection(missing):
            return type(self).__name__
        return next(rule._asking(missing) for rule in self._inner() if rule.needs().intersection(missing))

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
        for spec in self._fields(init=False):
            setattr(self, spec.name, _default(spec))
        for rule in self._inner():
            rule.reset()

    def state_dict(self) -> dict[str, Any]:
        """Return the rule's parameters and state as JSON values; :func:`criterion_from_dict` restores the rule."""
        return {
            "rule": _saved_name(type(self)),
            "params": {f.name: _plain(getattr(self, f.name)) for f in self._fields(init=True)},
            "state": {f.name: _plain(getattr(self, f.name)) for f in self._fields(init=False)},
        }

    def copy(self) -> "Self":
        """Return an independent rule with the same parameters and state."""
        return copy.deepcopy(self)

    def patience(self, k: int) -> "Criterion":
        """Return a rule that stops when this one has said stop at ``k`` consecutive steps."""
        from suffice.criteria.compose import Patience

        return Patience(self, k)

    def after(self, n: int) -> "Criterion":
        """Return a rule that stops when this one does, but not before ``n`` labels are bought."""
        from suffice.criteria.compose import After

        return After(self, n)

    def __and__(self, other: "Criterion") -> "Criterion":
        from suffice.criteria.compose import AllOf

        return AllOf((self, other)) if isinstance(other, Criterion) else NotImplemented

    def __or__(self, other: "Criterion") -> "Criterion":
        from suffice.criteria.compose import AnyOf

        return AnyOf((self, other)) if isinstance(other, Criterion) else NotImplemented

    def _fields(self, *, init: bool) -> list["dataclasses.Field[Any]"]:
        rule: Any = self
        if not dataclasses.is_dataclass(rule):
            raise InvalidTypeError(f"{type(self).__name__} must be a dataclass to be a stopping rule")
        return [spec for spec in dataclasses.fields(rule) if spec.init is init]

    def _inner(self) -> list["Criterion"]:
        values = (getattr(self, spec.name) for spec in self._fields(init=True))
        several = (value if isinstance(value, tuple | list) else (value,) for value in values)
        return [rule for each in several for rule in each if isinstance(rule, Criterion)]


def _saved_name(rule: type[Criterion]) -> str:
    """Return the name of a rule in its saved state: with the module, except for the rules of suffice."""
    own = rule.__module__.startswith("suffice.criteria")
    return rule.__name__ if own else f"{rule.__module__}.{rule.__qualname__}"


def criterion_from_dict(state: Mapping[str, Any]) -> Criterion:
    """Restore a rule from :meth:`Criterion.state_dict`; it continues exactly where it was.

    Args:
        state: The result of ``state_dict``, also after a round trip through JSON.

    Returns:
        A rule that gives the same verdicts as the saved one would.

    Raises:
        InvalidValueError: The rule is not known, or the dictionary does not fit it.

    Examples:
        >>> from suffice.criteria import Budget
        >>> criterion_from_dict(Budget(100).state_dict())
        Budget(labels=100)
    """
    try:
        name, params, kept = state["rule"], state["params"], state["state"]
    except (KeyError, TypeError):
        raise InvalidValueError("a saved rule is a dictionary with the keys 'rule', 'params' and 'state'") from None
    if not isinstance(name, str) or name not in _RULES:
        raise InvalidValueError(
            f"no stopping rule is named {name!r}; known: {', '.join(sorted(_RULES))}. Import the module of your "
            "own rule before you restore it"
        )
    try:
        rule = _RULES[name](**{key: _revived(value) for key, value in params.items()})
    except (TypeError, AttributeError) as error:
        raise InvalidValueError(f"the saved parameters do not fit {name}: {error}") from None
    expected = {spec.name for spec in rule._fields(init=False)}
    if not isinstance(kept, Mapping) or set(kept) != expected:
        raise InvalidValueError(f"the saved state of {name} is {kept!r}; it should hold {sorted(expected)}")
    for key, value in kept.items():
        setattr(rule, key, _revived(value))
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
