"""Rules that stop when a random check has guaranteed the error of the unlabelled items, or the recall of a class."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from suffice.arguments import real
from suffice.checks import Guarantee
from suffice.criteria.base import Comparison, Criterion, inner_rules
from suffice.criteria.step_and_verdict import Certificate, Step, Verdict
from suffice.errors import InvalidTypeError
from suffice.presentation.text_format import percent_at_least, percent_at_most

_AnyRule = TypeVar("_AnyRule", bound=Criterion)
_ERROR = Comparison("guaranteed error", "<=", "target")
_RECALL = Comparison("guaranteed recall", ">=", "target")
_ASSUMPTION = "The check is a random sample, and the truth is what annotators answer."


@dataclass
class ErrorGuarantee(Criterion):
    """Stop when a check guarantees that at most a given share of the predictions for unlabelled items is wrong.

    The rule uses the step's ``guaranteed_error`` and ``guarantee_confidence``. A step without them means that the
    current model has no guarantee, and the rule says "go on". :class:`suffice.ActiveLearner` judges a check when it is
    complete; :meth:`suffice.ActiveLearner.check_size` says how large a check should be. The rule is not one of
    :data:`suffice.criteria.RULES`: these are compared on recorded runs, which contain no checks.

    Args:
        at_most: The largest acceptable share of wrong predictions, above 0 and below 1.
        confidence: The least confidence that the guarantee must have, above 0 and below 1.
        tolerance: For numbers: a prediction is wrong if it is off by more than this, at least 0. If left out, the
            tolerance of the check counts.

    Raises:
        InvalidValueError: An argument is out of range.

    Examples:
        >>> rule = ErrorGuarantee(at_most=0.05)
        >>> print(rule.observe(Step(n_labelled=300)))
        Go on at 300 labels: no check has guaranteed the error of the current model.
        >>> print(rule.observe(Step(n_labelled=400, guaranteed_error=0.043, guarantee_confidence=0.95)))
        Stop at 400 labels: the guaranteed error, 0.043, is at most the target 0.05.
    """

    at_most: float
    confidence: float = 0.95
    tolerance: float | None = None

    optional: ClassVar[frozenset[str]] = frozenset({"guaranteed_error", "guarantee_confidence"})

    def __post_init__(self) -> None:
        self.at_most = real(self.at_most, "at_most", "above 0 and below 1", lambda x: 0.0 < x < 1.0)
        self.confidence = real(self.confidence, "confidence", "above 0 and below 1", lambda x: 0.0 < x < 1.0)
        if self.tolerance is not None:
            self.tolerance = real(self.tolerance, "tolerance", "of at least 0", lambda x: x >= 0.0)

    def accepts(self, tolerance: float | None) -> bool:
        """Whether a guarantee with this tolerance, None for classes, satisfies the rule."""
        return self.tolerance is None or (tolerance is not None and tolerance <= self.tolerance)

    def judge(self, step: Step) -> Verdict:
        """Compare the guaranteed error with the target."""
        return _judged(
            self,
            step,
            ("the error", _ERROR, step.guaranteed_error, self.at_most),
            missing="no check has guaranteed the error of the current model",
            proves=lambda error: (
                f"At most {percent_at_most(error)} of the predictions for the unlabelled items are wrong"
            ),
        )


@dataclass
class RecallGuarantee(Criterion):
    """Stop when a check guarantees that at least a given share of the items of a class is found.

    The rule uses the step's ``guaranteed_recall`` and ``guarantee_confidence``. A step without them means that the
    recall of the class is not guaranteed for the current model, and the rule says "go on".
    :class:`suffice.ActiveLearner` judges a check of the class, ``learner.check(m, recall_of=class_name)``, when it is
    complete. Rules about several classes cannot be combined. A high recall of a rare class can be expensive:
    :meth:`suffice.ActiveLearner.recall_plan` says what it costs before the check is drawn.

    Args:
        class_name: The class.
        at_least: The least acceptable recall, above 0 and below 1.
        confidence: The least confidence that the guarantee must have, above 0 and below 1.

    Raises:
        InvalidTypeError: The class is not a text or a number.
        InvalidValueError: An argument is out of range.

    Examples:
        >>> rule = RecallGuarantee("relevant", at_least=0.9)
        >>> print(rule.observe(Step(n_labelled=300)))
        Go on at 300 labels: no check has guaranteed the recall of class 'relevant' for the current model.
        >>> print(rule.observe(Step(n_labelled=900, guaranteed_recall=0.92, guarantee_confidence=0.95)))
        Stop at 900 labels: the guaranteed recall, 0.92, is at least the target 0.9.
    """

    class_name: str | int | float | bool
    at_least: float
    confidence: float = 0.95

    optional: ClassVar[frozenset[str]] = frozenset({"guaranteed_recall", "guarantee_confidence"})

    def __post_init__(self) -> None:
        plain: Any = self.class_name.item() if hasattr(self.class_name, "item") else self.class_name
        if not isinstance(plain, str | int | float):
            raise InvalidTypeError(f"class_name must be a class: a text or a number, not {plain!r}")
        self.class_name = plain
        self.at_least = real(self.at_least, "at_least", "above 0 and below 1", lambda x: 0.0 < x < 1.0)
        self.confidence = real(self.confidence, "confidence", "above 0 and below 1", lambda x: 0.0 < x < 1.0)

    def judge(self, step: Step) -> Verdict:
        """Compare the guaranteed recall with the target."""
        name = repr(str(self.class_name))
        return _judged(
            self,
            step,
            ("the recall", _RECALL, step.guaranteed_recall, self.at_least),
            missing=f"no check has guaranteed the recall of class {name} for the current model",
            proves=lambda recall: f"At least {percent_at_least(recall)} of the items of class {name} are found",
        )


def guarantee_rules(rule: Criterion) -> "list[ErrorGuarantee | RecallGuarantee]":
    """The rules for guarantees that a rule is or is composed of.

    Examples:
        >>> from suffice.criteria import Budget
        >>> guarantee_rules(ErrorGuarantee(0.05) | Budget(500))
        [ErrorGuarantee(at_most=0.05, confidence=0.95, tolerance=None)]
    """
    if isinstance(rule, ErrorGuarantee | RecallGuarantee):
        return [rule]
    return [found for inner in inner_rules(rule) for found in guarantee_rules(inner)]


def proven_fields(rule: Criterion, found: Guarantee | None) -> dict[str, Any] | None:
    """Fields of a step with a guarantee of the current model; None if the rule uses no guarantees.

    Args:
        rule: The rule.
        found: The guarantee, or None if there is none.

    Examples:
        >>> from suffice.criteria import LabelWorth
        >>> proven_fields(ErrorGuarantee(0.05), Guarantee.of_error(0, 100, 1100))["guarantee_confidence"]
        0.95
        >>> proven_fields(ErrorGuarantee(0.05), None), proven_fields(LabelWorth(), None)
        ({}, None)
    """
    rules = guarantee_rules(rule)
    if not rules:
        return None
    if found is None:
        return {}
    wanted = [each for each in rules if isinstance(each, ErrorGuarantee)]
    if found.quantity in ("error", "within") and all(each.accepts(found.tolerance) for each in wanted):
        return {"guaranteed_error": found.value, "guarantee_confidence": found.confidence}
    classes = {str(each.class_name) for each in rules if isinstance(each, RecallGuarantee)}
    # The field of a step does not name the class, so rules about several classes cannot use it.
    if found.quantity == "recall" and classes == {found.class_name}:
        return {"guaranteed_recall": found.value, "guarantee_confidence": found.confidence}
    return {}


def rules_of_type(rule: Criterion, kind: type[_AnyRule]) -> list[_AnyRule]:
    """The rules of one type that a rule is or is composed of.

    Examples:
        >>> from suffice.criteria import Budget, LabelWorth
        >>> rules_of_type(LabelWorth() | Budget(500), Budget)
        [Budget(labels=500)]
    """
    if isinstance(rule, kind):
        return [rule]
    return [found for inner in inner_rules(rule) for found in rules_of_type(inner, kind)]


def _judged(
    rule: "ErrorGuarantee | RecallGuarantee",
    step: Step,
    compared: tuple[str, Comparison, float | None, float],
    *,
    missing: str,
    proves: Callable[[float], str],
) -> Verdict:
    """Compare the guaranteed value with a target.

    Args:
        rule: The rule.
        step: The step.
        compared: The name of the quantity, the comparison, the guaranteed value if there is one, and the target.
        missing: The reason to go on if nothing is guaranteed.
        proves: What a value proves, in a sentence.
    """
    name, comparison, value, target = compared
    confidence = step.guarantee_confidence
    if value is None or confidence is None:
        return rule.verdict(step, stop=False, threshold=target, reason=missing)
    # A confidence computed as 1 - alpha may be rounded.
    if confidence < rule.confidence - 1e-12:
        sure = f"{percent_at_least(confidence)} confidence, and {percent_at_least(rule.confidence)} are required"
        reason = f"{name} is guaranteed with {sure}".replace("\u00a0", " ")
        return rule.verdict(step, stop=False, value=value, threshold=target, reason=reason)
    statement = f"{proves(value)} ({percent_at_least(confidence)} confidence).".replace("\u00a0", " ")
    return rule.verdict(
        step,
        stop=comparison.holds(value, target),
        value=value,
        threshold=target,
        reason=comparison.sentence(value, target),
        certificate=Certificate(statement, _ASSUMPTION),
    )
