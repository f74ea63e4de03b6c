"""Rules that limit the number of labels, the labelled share of the pool, the cost or the time."""

import math
from dataclasses import dataclass
from typing import ClassVar, Final

from suffice.arguments import real, whole
from suffice.criteria.base import ComparedRule, Criterion, RuleInfo, geometric_grid
from suffice.criteria.step_and_verdict import Known, Step, Verdict

__all__ = ["Budget", "CostLimit", "PoolFraction", "TimeLimit"]

# No budget is better than another; the defaults are for comparisons without data to choose a setting on.
_LABELS: Final = (10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500, 700, 1000, 1500, 2000, 3000, 5000)


@dataclass
class Budget(Criterion):
    """Stop at a fixed number of labels.

    Most tools do this, so it is the reference for all other rules.

    Args:
        labels: Number of labels, including the initial ones; at least 1.

    Raises:
        InvalidValueError: ``labels`` is not a whole number of at least 1.

    Examples:
        >>> print(Budget(500).observe(Step(n_labelled=120)))
        Go on at 120 labels: 120 labels are bought, and the budget is 500. 380 more labels.
    """

    labels: int

    info: ClassVar[RuleInfo] = RuleInfo(
        family="counting",
        example=lambda: Budget(25),
        origin="practice",
        compared=(ComparedRule(kind="reference", settings=_LABELS, parameter="labels", default=100, sense="at least"),),
    )

    def __post_init__(self) -> None:
        self.labels = whole(self.labels, "labels", least=1)

    def judge(self, step: Step) -> Verdict:
        """Compare the number of labels with the budget."""
        stop = step.n_labelled >= self.labels
        bought = f"{step.n_labelled} label{' is' if step.n_labelled == 1 else 's are'} bought"
        return self.verdict(
            step,
            stop=stop,
            value=float(step.n_labelled),
            threshold=float(self.labels),
            reason=f"{bought}, and the budget is {self.labels}",
            outlook=Known(self.labels - step.n_labelled),
        )


@dataclass
class PoolFraction(Criterion):
    """Stop when a given share of the pool is labelled: ``n_labelled / pool_size >= share``.

    The initial labels count. The share of an empty pool is 1, because nothing is left to label.

    Args:
        share: The share; above 0, at most 1.

    Raises:
        InvalidValueError: ``share`` is not a number above 0 and at most 1.

    Examples:
        >>> print(PoolFraction(0.1).observe(Step(n_labelled=12, pool_size=500)))
        Go on at 12 labels: 12 of the 500 items are labelled, and the required share is 0.1 of them. 38 more labels.
    """

    share: float

    requires: ClassVar[frozenset[str]] = frozenset({"pool_size"})
    info: ClassVar[RuleInfo] = RuleInfo(
        family="counting",
        example=lambda: PoolFraction(0.4),
        origin="practice",
        compared=(
            ComparedRule(
                kind="reference",
                settings=geometric_grid(0.005, 1.0, 15, 0.1),
                parameter="share",
                default=0.1,
                sense="at least",
            ),
        ),
    )

    def __post_init__(self) -> None:
        self.share = real(self.share, "share", "above 0 and at most 1", lambda x: 0.0 < x <= 1.0)

    def judge(self, step: Step) -> Verdict:
        """Compare the labelled share with the required one."""
        assert step.pool_size is not None  # it is required, so observe has checked
        value = step.n_labelled / step.pool_size if step.pool_size else 1.0
        labelled = f"{step.n_labelled} of the {step.pool_size} items {'is' if step.n_labelled == 1 else 'are'} labelled"
        return self.verdict(
            step,
            stop=value >= self.share,
            value=value,
            threshold=self.share,
            reason=f"{labelled}, and the required share is {self.share:.10g} of them",
            outlook=Known(self._required(step.pool_size) - step.n_labelled),
        )

    def _required(self, size: int) -> int:
        """Return the smallest number of labels that reaches the share."""
        labels = math.ceil(self.share * size)
        # The product may be rounded up beyond a whole number (0.07 * 100), or down onto one.
        while labels > 0 and (labels - 1) / size >= self.share:
            labels -= 1
        while size and labels / size < self.share:
            labels += 1
        return labels


@dataclass
class CostLimit(Criterion):
    """Stop when the total cost of the labels reaches a limit: at the first step with ``cost`` of at least the limit.

    There is no forecast, because the cost of the next labels is not known. The labels of a step are already paid for
    when the rule sees the step, so the last step may exceed the limit.

    Args:
        cost: The limit, in the units of the step's ``cost``; above 0.

    Raises:
        InvalidValueError: ``cost`` is not a number above 0.

    Examples:
        >>> print(CostLimit(250).observe(Step(n_labelled=12, cost=36.0)))
        Go on at 12 labels: the labels have cost 36, and the limit is 250.
    """

    cost: float

    requires: ClassVar[frozenset[str]] = frozenset({"cost"})
    info: ClassVar[RuleInfo] = RuleInfo(
        family="counting",
        example=lambda: CostLimit(50.0),
        origin="practice",
        compared=(
            ComparedRule(
                kind="reference", settings=tuple(map(float, _LABELS)), parameter="cost", default=100.0, sense="at least"
            ),
        ),
    )

    def __post_init__(self) -> None:
        self.cost = real(self.cost, "cost", "above 0", lambda x: x > 0.0)

    def judge(self, step: Step) -> Verdict:
        """Compare the cost with the limit."""
        assert step.cost is not None  # it is required, so observe has checked
        return self.verdict(
            step,
            stop=step.cost >= self.cost,
            value=step.cost,
            threshold=self.cost,
            reason=f"the labels have cost {step.cost:.10g}, and the limit is {self.cost:.10g}",
        )


@dataclass
class TimeLimit(Criterion):
    """Stop when a given time is spent: at the first step with ``seconds`` of at least the limit.

    The rule does not read a clock, so a replayed run gives the same verdicts as the recorded one. There is no forecast,
    because the number of labels that fit in the remaining time is not known.

    Args:
        seconds: The limit; above 0.

    Raises:
        InvalidValueError: ``seconds`` is not a number above 0.

    Examples:
        >>> print(TimeLimit(60).observe(Step(n_labelled=12, seconds=61.5)))
        Stop at 12 labels: 61.5 seconds are spent, and the limit is 60.
    """

    seconds: float

    requires: ClassVar[frozenset[str]] = frozenset({"seconds"})
    info: ClassVar[RuleInfo] = RuleInfo(
        family="counting",
        example=lambda: TimeLimit(12.0),
        origin="practice",
        compared=(
            ComparedRule(
                kind="reference",
                settings=geometric_grid(0.01, 1e4, 19, 1.0),
                parameter="seconds",
                default=1.0,
                sense="at least",
            ),
        ),
    )

    def __post_init__(self) -> None:
        self.seconds = real(self.seconds, "seconds", "above 0", lambda x: x > 0.0)

    def judge(self, step: Step) -> Verdict:
        """Compare the time with the limit."""
        assert step.seconds is not None  # it is required, so observe has checked
        return self.verdict(
            step,
            stop=step.seconds >= self.seconds,
            value=step.seconds,
            threshold=self.seconds,
            reason=f"{step.seconds:.10g} seconds are spent, and the limit is {self.seconds:.10g}",
        )
