"""A rule that stops when a random check has guaranteed the error of the unlabelled items."""

from dataclasses import dataclass
from typing import ClassVar

from suffice.arguments import real
from suffice.criteria.base import Comparison, Criterion
from suffice.criteria.step import Step
from suffice.criteria.verdict import Certificate, Verdict
from suffice.presentation.number_format import percent_at_least, percent_at_most

_ERROR = Comparison("guaranteed error", "<=", "target")
_ASSUMPTION = "The check is a random sample, and the truth is what annotators answer."


@dataclass
class ErrorGuarantee(Criterion):
    """Stop when a check guarantees that at most a given share of the predictions for unlabelled items is wrong.

    The rule uses the step's ``guaranteed_error`` and ``guarantee_confidence``. A step without them means that the
    present model has no guarantee, and the rule says "go on". :class:`suffice.ActiveLearner` judges a check when it is
    complete; :meth:`suffice.ActiveLearner.check_size` says how large a check should be. The rule is not one of
    :data:`suffice.criteria.RULES`: these are compared on recorded runs, which contain no checks.

    Args:
        at_most: The largest acceptable share of wrong predictions, above 0 and below 1.
        confidence: The least confidence that the guarantee must have, above 0 and below 1.

    Raises:
        InvalidValueError: An argument is out of range.

    Examples:
        >>> rule = ErrorGuarantee(at_most=0.05)
        >>> print(rule.observe(Step(n_labelled=300)))
        Go on at 300 labels: no check has guaranteed the error of the present model.
        >>> print(rule.observe(Step(n_labelled=400, guaranteed_error=0.043, guarantee_confidence=0.95)))
        Stop at 400 labels: the guaranteed error, 0.043, is at most the target 0.05.
    """

    at_most: float
    confidence: float = 0.95

    optional: ClassVar[frozenset[str]] = frozenset({"guaranteed_error", "guarantee_confidence"})

    def __post_init__(self) -> None:
        self.at_most = real(self.at_most, "at_most", "above 0 and below 1", lambda x: 0.0 < x < 1.0)
        self.confidence = real(self.confidence, "confidence", "above 0 and below 1", lambda x: 0.0 < x < 1.0)

    def judge(self, step: Step) -> Verdict:
        """Compare the guaranteed error with the target."""
        error, confidence = step.guaranteed_error, step.guarantee_confidence
        if error is None or confidence is None:
            reason = "no check has guaranteed the error of the present model"
            return self.verdict(step, stop=False, threshold=self.at_most, reason=reason)
        # A confidence computed as 1 - alpha may be rounded.
        if confidence < self.confidence - 1e-12:
            sure = f"{percent_at_least(confidence)} confidence, and {percent_at_least(self.confidence)} are required"
            reason = f"the error is guaranteed with {sure}".replace("\u00a0", " ")
            return self.verdict(step, stop=False, value=error, threshold=self.at_most, reason=reason)
        statement = (
            f"At most {percent_at_most(error)} of the predictions for the unlabelled items are wrong "
            f"({percent_at_least(confidence)} confidence)."
        )
        return self.verdict(
            step,
            stop=_ERROR.holds(error, self.at_most),
            value=error,
            threshold=self.at_most,
            reason=_ERROR.sentence(error, self.at_most),
            certificate=Certificate(statement.replace("\u00a0", " "), _ASSUMPTION),
        )
