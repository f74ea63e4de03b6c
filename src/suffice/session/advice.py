"""What stands from earlier decisions, so that the advice does not change with each noisy estimate."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from suffice.checks import GuaranteePlan
from suffice.checks.standing_finish import spacing
from suffice.session.decision import HARDLY_BELOW, DecisionNumbers

# Once an error was not clearly below that of the trivial prediction, it is clearly below it from this share on.
_CLEARLY_BELOW: Final = 0.8
#: Number of labels at which models are compared first, if the model is chosen on the labels; then at each doubling.
FIRST_COMPARISON: Final = 100
# A plan is confirmed by the plan before it, if that is at most this many estimates old. An older plan says nothing
# about noise, and a plan before this many estimates is always noisy.
_RECENT: Final = 2
_NOISY: Final = 4


@dataclass(frozen=True)
class StandingAdvice:
    """The advice at the last estimate of the error.

    Attributes:
        n_labelled: Number of labels at that estimate; 0 before the first.
        plan: The plan for the target at that estimate; None without a target.
        check_seen: Whether that plan was to check at once.
        check_advised: Whether a check is advised: two successive plans were to check at once, and since then no later
            check was clearly better.
        out_of_reach: Whether the target is out of reach. It remains so until a check is advised, or the rule no longer
            says stop.
        near_trivial: Whether the error is not clearly below that of the trivial prediction. It becomes so above 90 % of
            that, and remains so above 80 %.
    """

    n_labelled: int = 0
    plan: GuaranteePlan | None = None
    check_seen: bool = False
    check_advised: bool = False
    out_of_reach: bool = False
    near_trivial: bool = False

    def due(self, n_labelled: int) -> bool:
        """Whether the advice is to be updated: at the first decision after each multiple of :func:`spacing`."""
        every = spacing(n_labelled)
        return not self.n_labelled or n_labelled // every > self.n_labelled // every

    def next(self, numbers: DecisionNumbers, plan: GuaranteePlan | None) -> "StandingAdvice":
        """The advice at the next estimate.

        Args:
            numbers: The numbers at that estimate, without a plan.
            plan: The plan, made with ``check_advised`` of this advice.
        """
        error, baseline, n = numbers.error, numbers.baseline, numbers.n_labelled
        limit = _CLEARLY_BELOW if self.near_trivial else HARDLY_BELOW
        near_trivial = error is not None and baseline is not None and error.value > limit * baseline
        check_now = plan is not None and plan.check_now
        recent = self.n_labelled and n - self.n_labelled <= _RECENT * spacing(n)
        confirmed = self.check_seen if recent else n >= _NOISY * spacing(n)
        advised = check_now and (confirmed or self.check_advised)
        if advised or numbers.since is None:
            out_of_reach = False
        else:
            out_of_reach = self.out_of_reach or replace(numbers, plan=plan, out_of_reach=None).target_out_of_reach
        return StandingAdvice(n, plan, check_now, advised, out_of_reach, near_trivial)

    def applied(self, numbers: DecisionNumbers, pool: int) -> DecisionNumbers:
        """Numbers with this advice.

        Args:
            numbers: The numbers now.
            pool: Number of items that a check is drawn from.
        """
        n = numbers.n_labelled
        plan = None if self.plan is None or not numbers.unlabelled else self.plan.after(n, pool)
        if plan is not None and plan.check_now and not self.check_advised:
            plan = replace(plan, more_labels=max(1, spacing(n) - (n - self.n_labelled)))
        return replace(numbers, plan=plan, out_of_reach=self.out_of_reach, near_trivial=self.near_trivial)


class AdviceByTarget:
    """The standing advice for each target that was asked for.

    A check that was advised for a target stays advised unless a later one saves a quarter of the labels. A target that
    was out of reach stays so until a check is advised, or the rule no longer says stop.
    """

    def __init__(self) -> None:
        self._advice: dict[float | None, StandingAdvice] = {}

    def of(self, target: float | None, n_labelled: int) -> StandingAdvice:
        """The advice for a target before a decision.

        Args:
            target: The error that the user asked for, or None.
            n_labelled: Number of labels. If there were more before, labels were removed, and the advice starts again.
        """
        advice = self._advice.get(target, StandingAdvice())
        return advice if advice.n_labelled <= n_labelled else StandingAdvice()

    def copy(self) -> "AdviceByTarget":
        """A copy, which later advice does not change."""
        other = AdviceByTarget()
        other._advice = dict(self._advice)
        return other

    def keep(self, target: float | None, advice: StandingAdvice) -> None:
        """Store the advice for a target."""
        self._advice[target] = advice

    def state_dict(self) -> list[dict[str, Any]]:
        """The advice as JSON values."""
        return [
            {**advice.__dict__, "target": target, "plan": None if advice.plan is None else advice.plan.__dict__}
            for target, advice in self._advice.items()
        ]

    @classmethod
    def from_state(cls, state: Sequence[Mapping[str, Any]]) -> "AdviceByTarget":
        """Restore :meth:`state_dict`."""
        restored = cls()
        for entry in state:
            values = {name: value for name, value in entry.items() if name not in ("target", "plan")}
            plan = None if entry["plan"] is None else GuaranteePlan(**entry["plan"])
            restored._advice[entry["target"]] = StandingAdvice(**values, plan=plan)
        return restored
