"""Rules that count what has been spent."""

from dataclasses import dataclass

from suffice.arguments import whole
from suffice.criteria.base import Criterion
from suffice.criteria.outlook import Known
from suffice.criteria.step import Step
from suffice.criteria.verdict import Verdict


@dataclass
class Budget(Criterion):
    """Stop at a fixed number of labels: what nearly every tool does, and the reference to beat.

    Args:
        labels: Number of labels, the initial ones included; at least 1.

    Raises:
        InvalidValueError: ``labels`` is not a whole number of at least 1.

    Examples:
        >>> print(Budget(500).observe(Step(n_labelled=120)))
        Go on at 120 labels: 120 labels are bought, and the budget is 500. 380 more labels.
    """

    labels: int

    def __post_init__(self) -> None:
        self.labels = whole(self.labels, "labels", least=1)

    def judge(self, step: Step) -> Verdict:
        """Compare the count with the budget."""
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
