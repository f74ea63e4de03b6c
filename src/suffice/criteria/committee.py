"""Rules that watch how far a committee of models agrees.

A committee may be draws from a posterior, passes of a network with dropout, or a bagging of any classifier; its
agreement is a number from 0 to 1, see :func:`suffice.criteria.committee_agreement`.
"""

from dataclasses import dataclass, field
from typing import ClassVar, Final

from suffice.arguments import real, whole
from suffice.criteria.base import Criterion
from suffice.criteria.comparing import Comparison
from suffice.criteria.stability import snapped, tightened
from suffice.criteria.step import Step
from suffice.criteria.verdict import Verdict

_SELECTED: Final = Comparison("agreement of the committee on the selected items", ">=", limit="level")
_RISE: Final = Comparison("rise of the committee's agreement on the stop set", "<=", limit="tolerance")
_AGAINST: Final = Comparison(
    "agreement of the committee on the selected items", ">=", limit="agreement on the stop set,"
)


@dataclass
class SelectionAgreement(Criterion):
    r"""Stop when the committee agrees on the items that were selected: at a level or above.

    .. math:: SA_t \ge \ell

    The items were chosen because the committee disagreed on them most, so agreement here says that little is left to
    disagree on. At the default level every member must vote alike on every item; equality up to rounding (1e-12)
    counts.

    Args:
        level: From 0 to 1.

    Raises:
        InvalidValueError: ``level`` is not from 0 to 1.

    Reference: [TomanekWermterHahn2007].

    Examples:
        >>> rule = SelectionAgreement(level=0.9)
        >>> print(rule.observe(Step(n_labelled=30, selected_agreement=0.85)))
        Go on at 30 labels: the agreement of the committee on the selected items, 0.85, is below the level 0.9.
        >>> rule.observe(Step(n_labelled=31, selected_agreement=0.9)).stop
        True
    """

    level: float = 1.0

    requires: ClassVar[frozenset[str]] = frozenset({"selected_agreement"})

    def __post_init__(self) -> None:
        self.level = real(self.level, "level", "from 0 to 1", lambda x: 0.0 <= x <= 1.0)

    def tighten(self, factor: float) -> None:
        """Bring the level nearer to 1: its distance times ``factor``."""
        self.level = tightened(self.level, factor, limit=1.0)

    def judge(self, step: Step) -> Verdict:
        """Compare the agreement with the level."""
        assert step.selected_agreement is not None  # it is required, so observe has checked
        return _SELECTED.verdict(self, step, snapped(step.selected_agreement, self.level), self.level)


@dataclass
class ValidationSetAgreement(Criterion):
    r"""Stop when the committee's agreement on the stop set no longer rises.

    .. math:: \max(A_{t-k+1}, \dots, A_t) - \max(A_1, \dots, A_{t-k}) \le \text{tolerance}

    The paper reads the end of the rise off the curve; to compare the best of the last ``k`` steps with the best of all
    before is how we put that in a number. It takes ``k + 1`` steps.

    Args:
        rounds: ``k``, at least 1. With single labels a committee is noisy, and more than 3 is wise.
        tolerance: A rise up to this does not count, from 0 to below 1. At 0 every new maximum counts.

    Raises:
        InvalidValueError: An argument out of range.

    Reference: [TomanekHahn2008], for the agreement and its use.

    Examples:
        >>> rule = ValidationSetAgreement(rounds=2)
        >>> for n, agreement in enumerate([0.6, 0.8, 0.9, 0.9, 0.89], start=20):
        ...     verdict = rule.observe(Step(n_labelled=n, stop_agreement=agreement))
        >>> print(verdict)
        Stop at 24 labels: the rise of the committee's agreement on the stop set, 0, is at most the tolerance 0.
    """

    rounds: int = 3
    tolerance: float = 0.0
    best: float | None = field(default=None, init=False, repr=False)
    recent: list[float] = field(default_factory=list, init=False, repr=False)

    requires: ClassVar[frozenset[str]] = frozenset({"stop_agreement"})

    def __post_init__(self) -> None:
        self.rounds = whole(self.rounds, "rounds", least=1)
        self.tolerance = real(self.tolerance, "tolerance", "from 0 to below 1", lambda x: 0.0 <= x < 1.0)

    def judge(self, step: Step) -> Verdict:
        """Compare the best of the last steps with the best before."""
        assert step.stop_agreement is not None  # it is required, so observe has checked
        self.recent = [*self.recent, step.stop_agreement]
        if len(self.recent) > self.rounds:
            oldest, *self.recent = self.recent
            self.best = oldest if self.best is None else max(self.best, oldest)
        if self.best is None:
            reason = f"{len(self.recent)} of the {self.rounds + 1} steps that it takes to see a rise are made"
            return self.verdict(step, stop=False, ready=False, threshold=self.tolerance, reason=reason)
        rise = max(self.recent) - self.best
        return _RISE.verdict(self, step, snapped(rise, self.tolerance), self.tolerance)


@dataclass
class IntrinsicStopping(Criterion):
    r"""Stop when the committee agrees on the selected items as much as on the stop set, or more.

    .. math:: SA_t \ge VSA_t

    Then the items that are selected are no longer harder than any others. There is no threshold to choose. Equality up
    to rounding (1e-12) counts.

    Reference: [OlssonTomanek2009].

    Examples:
        >>> rule = IntrinsicStopping()
        >>> print(rule.observe(Step(n_labelled=30, selected_agreement=0.7, stop_agreement=0.9)))
        Go on at 30 labels: the agreement of the committee on the selected items, 0.7, is below the agreement on the
        stop set, 0.9.
        >>> rule.observe(Step(n_labelled=31, selected_agreement=0.93, stop_agreement=0.92)).stop
        True
    """

    requires: ClassVar[frozenset[str]] = frozenset({"selected_agreement", "stop_agreement"})

    def judge(self, step: Step) -> Verdict:
        """Compare the two agreements."""
        assert step.selected_agreement is not None  # both are required, so observe has checked
        assert step.stop_agreement is not None
        value = snapped(step.selected_agreement, step.stop_agreement)
        return _AGAINST.verdict(self, step, value, step.stop_agreement)
