"""The plan for a finished data set that stands between two estimates of the error."""

from dataclasses import dataclass, replace
from typing import Final

from suffice.checks.finish_plan import FinishPlan

# Labels between two estimates, up to a number of labels; afterwards twice as many for each doubling.
_EVERY: Final = 5
_OFTEN_UP_TO: Final = 400
# A check is not advised with fewer labels, and not if it is expected to take more answers than there are labels:
# estimates from few labels are noisy.
_FEWEST_LABELS: Final = 20


def spacing(n: int) -> int:
    """Labels between two estimates: 5 up to 400 labels, 10 up to 800, and twice as many for each doubling after that.

    Examples:
        >>> [spacing(n) for n in (10, 400, 401, 800, 3000)]
        [5, 5, 10, 10, 40]
    """
    every = _EVERY
    while n * _EVERY > _OFTEN_UP_TO * every:
        every *= 2
    return every


@dataclass(frozen=True)
class StandingFinish:
    """The plan at the last estimate of the error.

    Attributes:
        n_labelled: Number of labels at that estimate; 0 before the first.
        plan: The plan; None before the first.
        check_advised: Whether a check is advised: the plan is to check at once, and there are as many labels as the
            check is expected to take.
        totals: Number of labels at each plan, and the labels by people that it expected at the end.
    """

    n_labelled: int = 0
    plan: FinishPlan | None = None
    check_advised: bool = False
    totals: tuple[tuple[int, int], ...] = ()

    def due(self, n_labelled: int) -> bool:
        """Whether the plan is to be made again."""
        every = spacing(n_labelled)
        return self.plan is None or n_labelled // every > self.n_labelled // every

    def next(self, n_labelled: int, plan: FinishPlan, answer_cost: float = 1.0) -> "StandingFinish":
        """The plan at the next estimate, made with ``check_advised`` of this one.

        Args:
            n_labelled: Number of labels.
            plan: The plan.
            answer_cost: Cost of an answer in the check, relative to a label.
        """
        totals = (*self.totals, (n_labelled, plan.by_people_at_end))
        advised = plan.check_now and n_labelled >= max(_FEWEST_LABELS, answer_cost * plan.check_size)
        return StandingFinish(n_labelled, plan, advised, totals)

    def now(self, n_labelled: int) -> FinishPlan:
        """The plan now: as at the last estimate, with fewer labels before the check."""
        assert self.plan is not None
        plan = self.plan.after(n_labelled)
        if plan.check_now and not self.check_advised:
            until_next = spacing(n_labelled) - (n_labelled - self.n_labelled)
            plan = replace(plan, more_labels=max(1, until_next))
        return plan
