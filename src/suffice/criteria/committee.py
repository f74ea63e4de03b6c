"""Rules that use the agreement of a committee of models.

A committee may be draws from a posterior, passes of a network with dropout, or a bagging of any classifier. Its
agreement is a number from 0 to 1, see :func:`suffice.criteria.committee_agreement`.
"""

from dataclasses import dataclass, field
from typing import ClassVar, Final

from suffice.arguments import real, whole
from suffice.criteria.base import AVERAGE_ROUNDING, Comparison, Criterion, snapped, tightened
from suffice.criteria.rule_info import CLASSES, ComparedRule, RuleInfo
from suffice.criteria.saved_state import require_state, within
from suffice.criteria.step import Step
from suffice.criteria.verdict import Verdict

__all__ = ["IntrinsicStopping", "SelectionAgreement", "ValidationSetAgreement"]

_SELECTED: Final = Comparison("agreement of the committee on the selected items", ">=", limit="level")
_RISE: Final = Comparison("rise of the committee's agreement on the stop set", "<=", limit="tolerance")
_AGAINST: Final = Comparison(
    "agreement of the committee on the selected items", ">=", limit="agreement on the stop set,"
)


@dataclass
class SelectionAgreement(Criterion):
    r"""Stop when the agreement of a committee on the items just selected is at least a level.

    .. math:: SA_t \ge \ell

    The items were chosen because the committee disagreed on them most, so agreement on them means that little
    disagreement is left. At the default level all members must give the same vote on every item. Differences by
    rounding (1e-12) are ignored.

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
    info: ClassVar[RuleInfo] = RuleInfo(
        family="committees",
        example=lambda: SelectionAgreement(0.2),
        tasks=CLASSES,
        compared=(
            ComparedRule(
                settings=(0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 1.0),
                parameter="level",
                default=1.0,
                sense="at least",
                slack=AVERAGE_ROUNDING,
            ),
        ),
    )

    def __post_init__(self) -> None:
        self.level = real(self.level, "level", "from 0 to 1", lambda x: 0.0 <= x <= 1.0)

    def tighten(self, factor: float) -> None:
        """Multiply the distance of the level from 1 by ``factor``."""
        self.level = tightened(self.level, factor, limit=1.0)

    def judge(self, step: Step) -> Verdict:
        """Compare the agreement with the level."""
        assert step.selected_agreement is not None  # it is required, so observe has checked
        return self.comparison_verdict(step, _SELECTED, snapped(step.selected_agreement, self.level), self.level)


@dataclass
class ValidationSetAgreement(Criterion):
    r"""Stop when the agreement of a committee on the stop set no longer rises.

    .. math:: \max(A_{t-k+1}, \dots, A_t) - \max(A_1, \dots, A_{t-k}) \le \text{tolerance}

    The paper reads the end of the rise from the curve. Our rule compares the best of the last ``k`` steps with the best
    of all steps before. It needs ``k + 1`` steps.

    Args:
        rounds: ``k``, at least 1. With one label per step a committee is noisy; use more than 3 then.
        tolerance: Largest rise that is ignored, from 0 to below 1. At 0 every new maximum counts.

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
    info: ClassVar[RuleInfo] = RuleInfo(
        family="committees",
        example=lambda: ValidationSetAgreement(2, 0.02),
        tasks=CLASSES,
        compared=(
            ComparedRule(
                settings=(1, 2, 3, 4, 5, 7, 10, 15, 20, 30, 50, 70, 100),
                parameter="rounds",
                default=3,
            ),
        ),
    )

    def __post_init__(self) -> None:
        self.rounds = whole(self.rounds, "rounds", least=1)
        self.tolerance = real(self.tolerance, "tolerance", "from 0 to below 1", lambda x: 0.0 <= x < 1.0)

    def check_state(self) -> None:
        """Refuse agreements out of range, and a best one before there are enough steps."""
        best, full = self.best, len(self.recent) == self.rounds
        require_state(self, "recent", "numbers from 0 to 1", holds=within(self.recent, 0.0, 1.0))
        require_state(self, "recent", f"a list of at most {self.rounds} numbers", holds=len(self.recent) <= self.rounds)
        require_state(self, "best", "None or from 0 to 1", holds=best is None or 0.0 <= best <= 1.0)
        require_state(self, "best", f"None before {self.rounds} steps are in recent", holds=best is None or full)

    def judge(self, step: Step) -> Verdict:
        """Compare the best of the last steps with the best before."""
        assert step.stop_agreement is not None  # it is required, so observe has checked
        self.recent = [*self.recent, step.stop_agreement]
        if len(self.recent) > self.rounds:
            oldest, *self.recent = self.recent
            self.best = oldest if self.best is None else max(self.best, oldest)
        if self.best is None:
            reason = f"{len(self.recent)} of the {self.rounds + 1} steps that are needed to measure a rise are done"
            return self.verdict(step, stop=False, ready=False, threshold=self.tolerance, reason=reason)
        rise = max(self.recent) - self.best
        return self.comparison_verdict(step, _RISE, snapped(rise, self.tolerance), self.tolerance)


@dataclass
class IntrinsicStopping(Criterion):
    r"""Stop when the agreement of a committee on the items just selected is at least that on the stop set.

    .. math:: SA_t \ge VSA_t

    Then the selected items are no longer harder than others. There is no threshold to choose. Differences by rounding
    (1e-12) are ignored.

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
    info: ClassVar[RuleInfo] = RuleInfo(
        family="committees",
        tasks=CLASSES,
        compared=(ComparedRule(kind="plain"),),
    )

    def judge(self, step: Step) -> Verdict:
        """Compare the two agreements."""
        assert step.selected_agreement is not None  # both are required, so observe has checked
        assert step.stop_agreement is not None
        value = snapped(step.selected_agreement, step.stop_agreement)
        return self.comparison_verdict(step, _AGAINST, value, step.stop_agreement)
