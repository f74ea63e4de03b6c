"""The contract of a stopping rule, and everything that a rule gets for keeping it: JSON state, resume, composition."""

import copy
import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Final

from suffice.criteria.step import Step
from suffice.criteria.verdict import Verdict
from suffice.errors import InvalidTypeError, InvalidValueError, MissingInputError

if TYPE_CHECKING:
    from typing import Self

_RULES: Final[dict[str, type["Criterion"]]] = {}


class Criterion(ABC):
    """A stopping rule: told one :class:`Step` after another, it answers each with a :class:`Verdict`.

    Write a rule as a dataclass. Fields of the constructor are its parameters; fields with ``init=False`` are its state,
    and have a default that means "nothing seen". All of them hold JSON values (or rules, or tuples of rules). Then
    ``state_dict``, resume, ``reset`` and composition come for free, and only :meth:`judge` is left to write.

    A verdict speaks of its own step alone: a rule fed beyond its stop may say "go on" again. A rule sees no step but
    the one it is given and what it kept of earlier ones.

    Attributes:
        requires: Names of the :class:`Step` fields without which the rule cannot judge.

    Examples:
        >>> from dataclasses import dataclass, field
        >>> @dataclass
        ... class ThreeSteps(Criterion):
        ...     seen: int = field(default=0, init=False)
        ...     def judge(self, step):
        ...         self.seen += 1
        ...         return self.verdict(step, stop=self.seen >= 3, reason=f"{self.seen} of 3 steps made")
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
        """Take in one step, whose required fields are there, and answer it."""

    def observe(self, step: Step) -> Verdict:
        """Take in one step and answer it.

        Args:
            step: What happened; it must hold every field that the rule requires.

        Returns:
            The verdict at this step.

        Raises:
            MissingInputError: A required field is missing, named.
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
        """Take in several steps, one after the other, and answer each; the same as :meth:`observe` on every one.

        A rule may override it to compute for all steps at once.
        """
        return [self.observe(step) for step in steps]

    def needs(self) -> frozenset[str]:
        """Names of the :class:`Step` fields that this rule, with any rules inside it, requires."""
        return self._needs

    @cached_property
    def _needs(self) -> frozenset[str]:
        return self.requires.union(*(rule.needs() for rule in self._inner()))

    def _asking(self, missing: list[str]) -> str:
        """The name of the rule, this one or one inside it, that requires a missing field itself."""
        if self.requires.intersection(missing):
            return type(self).__name__
        return next(rule._asking(missing) for rule in self._inner() if rule.needs().intersection(missing))

    def verdict(self, step: Step, *, stop: bool, reason: str, **fields: Any) -> Verdict:
        """Make this rule's verdict; ``value`` and ``threshold`` are None and ``ready`` True unless given."""
        defaults: dict[str, Any] = {"value": None, "threshold": None, "ready": True}
        return Verdict(
            stop=bool(stop), reason=reason, rule=type(self).__name__, n_labelled=step.n_labelled, **(defaults | fields)
        )

    def reset(self) -> None:
        """Forget every step, as if just constructed."""
        for spec in self._fields(init=False):
            setattr(self, spec.name, _default(spec))
        for rule in self._inner():
            rule.reset()

    def state_dict(self) -> dict[str, Any]:
        """Return the rule with everything it remembers, as JSON values; :func:`criterion_from_dict` brings it back."""
        return {
            "rule": _saved_name(type(self)),
            "params": {f.name: _plain(getattr(self, f.name)) for f in self._fields(init=True)},
            "state": {f.name: _plain(getattr(self, f.name)) for f in self._fields(init=False)},
        }

    def copy(self) -> "Self":
        """Return an independent rule with the same parameters and state."""
        return copy.deepcopy(self)

    def patience(self, k: int) -> "Criterion":
        """Return a rule that stops once this one has said stop at ``k`` steps in a row."""
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
    """The name by which a saved rule is found again: bare for those of suffice, with the module for all others."""
    own = rule.__module__.startswith("suffice.criteria")
    return rule.__name__ if own else f"{rule.__module__}.{rule.__qualname__}"


def criterion_from_dict(state: Mapping[str, Any]) -> Criterion:
    """Bring back a rule from :meth:`Criterion.state_dict`; it continues exactly where it was.

    Args:
        state: What ``state_dict`` returned, also after a round trip through JSON.

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
            f"no stopping rule is named {name!r}; known: {', '.join(sorted(_RULES))}. A rule of your own must be "
            "imported before it is brought back"
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
    """Undo :func:`_plain`: saved rules become rules, a list of nothing but saved rules a tuple of rules."""
    if _is_saved_rule(value):
        return criterion_from_dict(value)
    if isinstance(value, list) and value and all(map(_is_saved_rule, value)):
        return tuple(map(criterion_from_dict, value))
    return copy.deepcopy(value)


def _is_saved_rule(value: Any) -> bool:
    return isinstance(value, Mapping) and set(value) == {"rule", "params", "state"}


def _default(spec: "dataclasses.Field[Any]") -> Any:
    return spec.default if spec.default_factory is dataclasses.MISSING else spec.default_factory()
