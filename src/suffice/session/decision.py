"""The answer to "have I labelled enough?": keep going, enough, or this model has reached its limit."""

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from typing import Any, Final, Literal, NamedTuple

import numpy as np

from suffice.arguments import real
from suffice.checks import FinishPlan, Guarantee, GuaranteePlan
from suffice.checks.data_set import FinalGuarantee, final_guarantee
from suffice.criteria import Criterion, LabelWorth, Verdict
from suffice.forecast import Forecast, LearningCurve
from suffice.presentation.decision_words import NO_RULES, STOPS, decision_words
from suffice.presentation.html_parts import card
from suffice.session.goals import TargetOf
from suffice.session.standing_stop import ScarceClass, StopWithdrawal

Answer = Literal["too early", "keep going", "enough", "limit", "complete"]

#: An error above this share of that of the trivial prediction is not clearly below it: for classes, and for numbers
#: (root mean squared, so that the model explains less than 19 % of the variance).
HARDLY_BELOW: Final = 0.9
# The doubt whether the error reaches a target lasts for this multiple of the labels at the stop, and at least for this
# many labels more.
_LONGEST_DOUBT: Final = 2.0
_SHORTEST_DOUBT: Final = 100
# The error is compared with that of the trivial prediction if it is based on this many random labels, or on this many
# labels in all.
_FEWEST_RANDOM: Final = 20
_FEWEST_LABELS: Final = 100
# The trivial prediction is learned from the random labels, if there are at least this many.
_FEWEST_TRIVIAL: Final = 10
# An error above this share of wrong classes, or above this share of the error of the mean of the labels, is large.
_LARGE_SHARE: Final = 0.2
_LARGE_RELATIVE: Final = 0.7
# Above this number of labels, and this share of the learned ones, many are not learned yet.
_FEW_NOT_LEARNED: Final = 10
_SHARE_NOT_LEARNED: Final = 0.05


class ErrorNow(NamedTuple):
    """The estimated error of the unlabelled items.

    Attributes:
        value: For classes the share of wrong predictions, for numbers the root of the mean squared error.
        low: Lower end of the 90 % interval.
        high: Upper end.
        random_labels: Number of random labels that calibrate it; 0 if the model alone estimates it.
    """

    value: float
    low: float
    high: float
    random_labels: int = 0


class Alternative(NamedTuple):
    """Another model that is better on the same labels.

    Attributes:
        name: Name of the model: one of :data:`suffice.models.factory.MODEL_FAMILIES`.
        description: Its name in a sentence.
        error: Its error on the compared labels, each predicted by a model that has not seen it.
        present: Error of the current model on the same labels.
        labels: Number of labels that the errors are stated for.
        clear: Whether the difference is larger than chance explains; if not, more labels are needed to decide.
        ratio: Estimated error relative to that of the current model, between that of the compared labels and what is
            usual for such models; None if it is not estimated.
        error_now: The error of the unlabelled items with this model, estimated from that of the current model and the
            ratio; None if it is not known.
        saved: Number of further labels with which the current model would have this error, extrapolated; None if that
            is not known, or if it would not with all labels.
        avoided: Number of wrong predictions among the unlabelled items that it avoids, estimated; None for numbers.
        worth: What its lower error saves, by the prices of the rule; None if the rule has none.
    """

    name: str
    description: str
    error: float
    present: float
    labels: int
    clear: bool = True
    ratio: float | None = None
    error_now: float | None = None
    saved: int | None = None
    avoided: int | None = None
    worth: float | None = None


class Worsening(NamedTuple):
    """Evidence that the model has become worse, from random labels.

    Attributes:
        before: Mean loss of the newer random labels under the model before it learned each of them: the squared error
            for numbers, the cross entropy for classes.
        now: Mean loss of the same labels under the model of now, each left out of it.
        random_labels: How many labels are compared.
    """

    before: float
    now: float
    random_labels: int


class RareClass(NamedTuple):
    """A rare class, and how much of it the predictions find. It is an estimate.

    Attributes:
        name: The class.
        labels: Number of its labels.
        share: Estimated share of all items that are of the class.
        recall: Estimated share of its unlabelled items that are predicted as such; None if it is not known.
        low: Lower end of the 90 % interval of the share; None if it is not known.
        high: Upper end of that interval; None as above.
    """

    name: str
    labels: int
    share: float
    recall: float | None
    low: float | None = None
    high: float | None = None


class ScreeningProgress(NamedTuple):
    """Progress of a screening for a positive class.

    Attributes:
        positive: The class.
        found: Number of its items that are labelled.
        estimated: Estimated number of all its items, labelled and unlabelled.
        recall: The share of them that is to be found.
    """

    positive: str
    found: int
    estimated: float
    recall: float


@dataclass(frozen=True)
class DecisionNumbers:
    """The numbers that a decision is made from.

    Attributes:
        n_labelled: Number of labels that the decision is about.
        unlabelled: Number of items without a label.
        share: Whether errors are shares of wrong predictions (classes), or root mean squared errors (numbers).
        since: Number of labels at which the stop was stated, if it stands.
        error: The estimated error of the unlabelled items, or None before the model has started.
        baseline: Error of the trivial prediction: always the most common class, or the mean of the labels; or None.
        common: The most common class, for the sentence; None for numbers.
        at_most: The error that the user asked for, or None.
        forecast: Number of labels until the rule stops, extrapolated. None if it is not predictable.
        error_then: The error after these labels, extrapolated; None if it is not known.
        alternative: A model that is better on the same labels, or None.
        guarantee: The guarantee of a check for the predictions of the current model, or None.
        plan: Plan of labels and check to guarantee ``at_most``; None for numbers, and without a target.
        check_pending: Items of an open check that have no answer yet; 0 if no check is open.
        avoided: Number of wrong predictions that the next label is expected to avoid, its own included, by the rule
            :class:`suffice.LabelWorth`; at the very best, if the rule waits for more labels because the model is often
            wrong. None for other rules.
        price: Number of wrong predictions that cost as much as a label; None as above.
        screening: Progress of a screening, or None if there is no positive class.
        out_of_reach: Whether the target was found to be out of reach at an earlier step, and that holds; None if it
            follows from the other numbers.
        least_error: Share of wrong predictions of the current model that a check shows at least; None if not known.
        near_trivial: Whether the error was found not to be clearly below that of the trivial prediction, and that
            holds; None as above.
        of: What ``at_most`` is a share of: the unlabelled items (``"rest"``), or all final labels (``"all"``).
        finish: For ``"all"``: the plan of labels and check; None if the goal is reached, or nothing can be planned.
        data_set: For ``"all"``: what is guaranteed about all final labels, or about the class that a screening looks
            for, if the goal is reached.
        held_back: The rare class with so few labels that a stop of the rule is held back; None if there is none.
        withdrawn: The last stop that was withdrawn, and why; None if there is none.
        rare_class: The rarest class if it is rare, and how much of it the predictions find; None if there is none.
        not_learned: Number of labels that were given since the model learned ``n_labelled``. They are among the labels
            of the forecast, and not among the unlabelled items.
    """

    n_labelled: int
    unlabelled: int
    share: bool
    since: int | None = None
    error: ErrorNow | None = None
    baseline: float | None = None
    common: str | None = None
    at_most: float | None = None
    forecast: Forecast | None = None
    error_then: float | None = None
    alternative: Alternative | None = None
    guarantee: Guarantee | None = None
    plan: GuaranteePlan | None = None
    check_pending: int = 0
    avoided: float | None = None
    price: float | None = None
    screening: ScreeningProgress | None = None
    least_error: float | None = None
    out_of_reach: bool | None = None
    near_trivial: bool | None = None
    of: TargetOf = "rest"
    finish: FinishPlan | None = None
    data_set: FinalGuarantee | None = None
    held_back: ScarceClass | None = None
    withdrawn: StopWithdrawal | None = None
    rare_class: RareClass | None = None
    not_learned: int = 0

    @property
    def target_guaranteed(self) -> bool:
        """Whether a check guarantees the error, or in a screening the recall, that the user asked for."""
        if self.of == "all":
            return self.data_set is not None
        if self.screening is not None:
            found, wanted = self.guarantee, self.screening
            same = found is not None and found.quantity == "recall" and found.class_name == wanted.positive
            return same and found.value >= wanted.recall  # type: ignore[union-attr]
        proven = self.guarantee is not None and self.guarantee.quantity == "error" and self.at_most is not None
        return proven and self.guarantee.value <= self.at_most  # type: ignore[union-attr, operator]

    @property
    def target_missed(self) -> bool:
        """Whether a check of the current model has not shown what the user asked for."""
        if self.screening is not None:
            return False
        checked = self.guarantee is not None and self.guarantee.quantity == "error" and self.at_most is not None
        return checked and not self.target_guaranteed

    @property
    def target_expected(self) -> bool:
        """Whether a check, now or after more labels, is expected to guarantee what the user asked for."""
        return self.plan is not None and self.plan.expected_total is not None

    @property
    def hardly_better(self) -> bool:
        """Whether the error is known not to be clearly below that of the trivial prediction.

        It is known from at least 20 random labels, or 100 labels in all. It is not known for classes if all random
        labels are of one class: then no number says how often the trivial prediction is wrong.
        """
        if self.error is None or self.baseline is None or (self.share and self.baseline == 0.0):
            return False
        if self.error.random_labels < _FEWEST_RANDOM and self.n_labelled < _FEWEST_LABELS:
            return False
        return self.error.value > HARDLY_BELOW * self.baseline if self.near_trivial is None else self.near_trivial

    @property
    def target_out_of_reach(self) -> bool:
        """Whether the current model does not reach the target.

        For classes that is so if a check shows that more predictions are wrong than the target allows. For numbers,
        which have no such check: the rule says stop, the error is above the target, and either the lower end of its
        interval is above it, or it was in doubt up to twice the labels at which the rule first said stop, and for at
        least 100 labels more than these.
        """
        if self.of == "all":
            return False
        if self.share:
            return self.least_error is not None and self.at_most is not None and self.least_error > self.at_most
        if not self.target_in_question:
            return False
        if self.out_of_reach is not None:
            return self.out_of_reach
        assert self.error is not None
        assert self.at_most is not None
        longest = target_doubt_end(self.n_labelled if self.since is None else self.since)
        return self.n_labelled >= longest or self.error.low > self.at_most

    @property
    def target_in_question(self) -> bool:
        """Whether a target was asked for and the estimate does not reach it: no guarantee, or an error above it."""
        if self.error is None or self.at_most is None:
            return False
        return self.plan is not None or self.above_target

    @property
    def large_error(self) -> bool:
        """Whether the error is large: above 20 % of wrong classes, or above 70 % of that of the mean of the labels."""
        if self.error is None:
            return False
        if self.share:
            return self.error.value > _LARGE_SHARE
        return self.baseline is not None and self.error.value > _LARGE_RELATIVE * self.baseline

    @property
    def far_behind(self) -> bool:
        """Whether so many labels are not learned yet that no number of further labels follows from the learned ones."""
        return self.not_learned > max(_FEW_NOT_LEARNED, _SHARE_NOT_LEARNED * self.n_labelled)

    @property
    def above_target(self) -> bool:
        """Whether the error of the unlabelled items is above the one that the user asked for them."""
        if self.of == "all" or self.error is None or self.at_most is None:
            return False
        return self.error.value > self.at_most

    @property
    def wrong(self) -> int | None:
        """Estimated number of wrong predictions among the unlabelled items; None for numbers."""
        return None if self.error is None or not self.share else round(self.error.value * self.unlabelled)

    @property
    def corrected(self) -> int | None:
        """Estimated number of wrong predictions that the labels of the forecast would avoid; None if not known.

        Those of the items that get these labels are included.
        """
        if self.error is None or self.error_then is None or self.forecast is None or not self.share:
            return None
        more = max(self.forecast.labels - self.not_learned, 0)
        left = max(self.unlabelled - more, 0)
        return max(0, round(self.error.value * self.unlabelled - self.error_then * left))


@dataclass(frozen=True)
class Decision(DecisionNumbers):
    """The decision whether to continue labelling, with its numbers. Only :func:`decide` makes one.

    Attributes:
        answer: ``"too early"``, ``"keep going"``, ``"enough"``, ``"limit"`` (more labels are not worth their cost, but
            the error is not what the user asked for, or another model is clearly better), or ``"complete"`` (nothing
            is left to label).
        rule: Name of the stopping rule.
        reason: The comparison of the rule, in a sentence.
    """

    answer: Answer = "too early"
    rule: str = ""
    reason: str = ""

    @property
    def stop(self) -> bool:
        """Whether more labels are not worth their cost, or nothing is left to label."""
        return self.answer in STOPS

    def as_dict(self) -> dict[str, Any]:
        """The decision as JSON values; without ``guarantee`` if there is none."""
        names = (
            "wrong",
            "corrected",
            "far_behind",
            "hardly_better",
            "above_target",
            "large_error",
            "target_out_of_reach",
            "target_guaranteed",
            "target_missed",
        )
        values = {**asdict(self), **{name: getattr(self, name) for name in names}} | {
            "error": None if self.error is None else self.error._asdict(),
            "alternative": None if self.alternative is None else self.alternative._asdict(),
            "plan": None if self.plan is None else self.plan.as_dict(),
            "finish": None if self.finish is None else self.finish.as_dict(),
            "data_set": None if self.data_set is None else self.data_set.to_dict(),
        }
        for name in ("held_back", "withdrawn", "rare_class"):
            value = getattr(self, name)
            values[name] = None if value is None else value._asdict()
        if self.of == "rest":
            for name in ("of", "finish", "data_set"):
                del values[name]
        for name in ("guarantee", "screening", "out_of_reach", "near_trivial", "least_error"):
            del values[name]
        if self.screening is not None:
            values["screening"] = self.screening._asdict()
        return values if self.guarantee is None else values | {"guarantee": self.guarantee.to_dict()}

    def state_dict(self) -> dict[str, Any]:
        """The decision as JSON values, from which :meth:`from_state` makes it again."""
        values = {spec.name: getattr(self, spec.name) for spec in fields(self)}
        nested = {name: values[name] for name in _TUPLES if values[name] is not None}
        values |= {name: list(value) for name, value in nested.items()}
        for name in ("forecast", "plan", "finish"):
            values[name] = None if values[name] is None else asdict(values[name])
        values["data_set"] = None if self.data_set is None else self.data_set.to_dict()
        values["guarantee"] = None if self.guarantee is None else self.guarantee.to_dict()
        return values

    @staticmethod
    def from_state(state: Mapping[str, Any]) -> "Decision":
        """Restore :meth:`state_dict`."""
        values = dict(state)
        makers: dict[str, Callable[[Any], Any]] = {
            **{name: partial(_of_tuple, kind) for name, kind in _TUPLES.items()},
            "forecast": lambda saved: Forecast(**saved),
            "plan": lambda saved: GuaranteePlan(**saved),
            "guarantee": Guarantee.from_dict,
            "finish": lambda saved: FinishPlan(**saved),
            "data_set": final_guarantee,
        }
        made = {name: make(values[name]) for name, make in makers.items() if values.get(name) is not None}
        return Decision(**{**values, **made})

    def __str__(self) -> str:
        return " ".join(decision_words(self.as_dict()).sentences)

    def _repr_html_(self) -> str:
        """The decision in words, for notebooks."""
        words = decision_words(self.as_dict())
        rows = [
            ("error", f"{words.error_figure} {words.error_note}" if words.error_figure else ""),
            ("next", words.next_step),
            *(("" if k else "why", sentence) for k, sentence in enumerate(words.sentences[1:])),
            ("rule", "" if self.rule in NO_RULES else self.rule),
        ]
        tone = "stop" if self.stop else "undecided" if self.answer == "too early" else "go on"
        heading = words.headline if words.error_figure else words.sentences[0]
        return card(heading, [row for row in rows if row[1]], tone=tone)


_TUPLES: Final[dict[str, Any]] = {
    "error": ErrorNow,
    "alternative": Alternative,
    "screening": ScreeningProgress,
    "held_back": ScarceClass,
    "withdrawn": StopWithdrawal,
    "rare_class": RareClass,
}


def _of_tuple(kind: Any, saved: Any) -> Any:
    return kind(*saved)


def decide(verdict: Verdict | None, numbers: DecisionNumbers) -> Decision:
    """Return the decision from the verdict of a rule and the numbers.

    Args:
        verdict: The stated verdict, see :attr:`suffice.session.session.Session.verdict`; None before the model has
            started.
        numbers: The numbers, from which the decision takes those that matter for its answer.
    """
    if numbers.guarantee is not None and numbers.guarantee.quantity == "error":
        # The model was checked just now; the next check is planned when it has learned more labels.
        numbers = replace(numbers, plan=None)
    if numbers.check_pending and numbers.unlabelled:
        # A check that was started is completed first.
        numbers = replace(numbers, plan=None, forecast=None, error_then=None, since=None)
    answer = _answer(verdict, numbers)
    clear = numbers.alternative is not None and numbers.alternative.clear
    shown = numbers.alternative if answer == "keep going" or (answer == "limit" and clear) else None
    # A plan for the target contains the number of labels.
    goes_on = answer == "keep going" and not (numbers.target_expected or numbers.target_missed)
    return Decision(
        **{
            **{spec.name: getattr(numbers, spec.name) for spec in fields(DecisionNumbers)},
            "answer": answer,
            "rule": "" if verdict is None else verdict.rule,
            "reason": "" if verdict is None else verdict.reason,
            "forecast": numbers.forecast if goes_on else None,
            "error_then": numbers.error_then if goes_on else None,
            "alternative": shown,
            "plan": None if answer in ("complete", "enough") else numbers.plan,
            "held_back": numbers.held_back if answer == "keep going" else None,
            "withdrawn": numbers.withdrawn if answer in ("keep going", "too early") else None,
        }
    )


def _answer(verdict: Verdict | None, numbers: DecisionNumbers) -> Answer:  # noqa: PLR0911 - one return for each case
    """The answer of a decision. Without a target it is a reason to stop exactly if the verdict is to stop."""
    if not numbers.unlabelled:
        return "complete"
    if numbers.check_pending:
        return "keep going"
    if numbers.target_guaranteed:
        return "enough"
    if numbers.of == "all":
        return "too early" if numbers.finish is None else "keep going"
    if verdict is None or not (verdict.ready or verdict.stop):
        return "too early"
    if not verdict.stop:
        return "keep going"
    if numbers.screening is not None:
        # The aim of a screening is the recall, not the quality of the predictions.
        return "enough"
    if numbers.alternative is not None and numbers.alternative.clear:
        return "limit"
    if not numbers.target_out_of_reach and (numbers.target_missed or numbers.target_in_question):
        return "keep going"
    return "limit" if numbers.above_target or numbers.hardly_better or numbers.target_out_of_reach else "enough"


def checked_target(at_most: Any, *, share: bool) -> float | None:
    """Return a target error as a float, or None without one.

    Args:
        at_most: The error that the user asked for, or None.
        share: Whether it is a share of wrong predictions.

    Raises:
        InvalidValueError: It is not a number, or out of range.

    Examples:
        >>> checked_target(0.05, share=True)
        0.05
    """
    if at_most is None:
        return None
    if share:
        return real(at_most, "at_most", "from 0 to 1", lambda x: 0.0 <= x <= 1.0)
    return real(at_most, "at_most", "of at least 0", lambda x: x >= 0.0)


def numbers_from_labels(
    verdict: Verdict,
    about: DecisionNumbers,
    rule: Criterion,
    labels: Mapping[int, Any],
    random_items: Collection[int],
) -> DecisionNumbers:
    """Return the numbers of a decision, with those that follow from the verdict and from the labels.

    Args:
        verdict: The verdict of the rule.
        about: The other numbers.
        rule: The rule.
        labels: The label of each item that the model has learned.
        random_items: Items among them that were drawn at random.
    """
    chosen = random_items if len(random_items) >= _FEWEST_TRIVIAL else labels
    baseline, common = trivial_error([labels[item] for item in chosen], share=about.share)
    forecast, then, fall = verdict.forecast, None, fall_per_label(rule, verdict)
    avoided, price = avoided_per_label(rule, verdict)
    if about.error is not None and forecast is not None and fall is not None:
        scale = None if about.share else baseline or 1.0
        then = more_labels_error(about.error, fall, len(labels), forecast.labels, scale)
        corrected = replace(about, forecast=forecast, error_then=then).corrected
        if price is not None and corrected is not None and corrected < price * forecast.labels:
            # The estimate of the error disagrees with that of the rule: the labels would not pay.
            then = None
    return replace(
        about,
        baseline=baseline,
        common=common,
        forecast=forecast,
        error_then=then,
        avoided=avoided,
        price=price,
        alternative=with_gain(about, rule, fall, baseline, len(labels)),
    )


def target_doubt_end(since: int) -> float:
    """Return the number of labels at which the doubt whether the error falls to a target ends.

    Args:
        since: Number of labels at which the stop was stated.

    Examples:
        >>> target_doubt_end(30), target_doubt_end(200)
        (130.0, 400.0)
    """
    return since + max((_LONGEST_DOUBT - 1.0) * since, float(_SHORTEST_DOUBT))


def trivial_error(labels: Any, *, share: bool) -> tuple[float | None, str | None]:
    """Return the error of the trivial prediction, and the most common class.

    Args:
        labels: Labels that were drawn at random, as far as there are any.
        share: Whether they are classes.

    Returns:
        For classes the share of labels of other classes than the most common one; for numbers the standard deviation.
        None if there are fewer than two labels.

    Examples:
        >>> trivial_error(["a", "a", "a", "b"], share=True), trivial_error([1.0, 3.0], share=False)
        ((0.25, 'a'), (1.0, None))
    """
    values = np.asarray(labels)
    if len(values) < 2:
        return None, None
    if not share:
        return float(values.astype(np.float64).std()), None
    classes, counts = np.unique(values, return_counts=True)
    return float(1.0 - counts.max() / len(values)), str(classes[counts.argmax()])


def fall_per_label(rule: Criterion, verdict: Verdict) -> float | None:
    """Return by how much the next label lowers the error of other items, as :class:`suffice.LabelWorth` estimates it.

    For classes it is the fall of the share of wrong predictions; for numbers that of the mean squared error relative to
    the variance of the labels. None for another rule, if the rule counts errors above a tolerance, or if its last step
    is another one than the verdict's.

    Args:
        rule: The rule.
        verdict: Its verdict.
    """
    if not isinstance(rule, LabelWorth) or rule.tolerance is not None or rule.error_cost is not None:
        return None
    return rule.fall if rule.counts and rule.counts[-1] == verdict.n_labelled else None


def avoided_per_label(rule: Criterion, verdict: Verdict) -> tuple[float | None, float | None]:
    """Return how many wrong predictions the next label is expected to avoid, and how many cost as much as a label.

    Both are None for another rule than :class:`suffice.LabelWorth`, and with the cost of an error as a whole.
    """
    if not isinstance(rule, LabelWorth) or rule.error_cost is not None or verdict.value is None:
        return None, None
    mistake = rule.mistake_cost or 1.0
    return verdict.value / mistake, rule.label_cost / mistake


def with_gain(
    about: DecisionNumbers, rule: Criterion, fall: float | None, baseline: float | None, n_labelled: int
) -> Alternative | None:
    """Return the better model of a decision with what a switch to it gains.

    Args:
        about: The numbers of the decision, with the better model or None.
        rule: The rule.
        fall: The result of :func:`fall_per_label`.
        baseline: Error of the trivial prediction; for numbers the standard deviation of the labels.
        n_labelled: Number of labels that the model has learned.
    """
    other, error = about.alternative, about.error
    if other is None or error is None or other.ratio is None:
        return other
    error_now, saved, avoided, worth = other.ratio * error.value, None, None, None
    if fall is not None:
        scale = 1.0 if about.share else (baseline or 1.0) ** 2
        power = 1 if about.share else 2
        curve = LearningCurve(n_labelled, error.value**power, fall * scale)
        saved = curve.labels_to(error_now**power, about.unlabelled)
    if about.share:
        avoided = max(0, round((error.value - error_now) * about.unlabelled))
    if isinstance(rule, LabelWorth) and rule.error_cost is None and (about.share or rule.tolerance is None):
        # For numbers, an item that is predicted as badly as by the mean of the labels counts as wrong.
        scaled = [value if about.share else (value / (baseline or 1.0)) ** 2 for value in (error.value, error_now)]
        worth = (rule.mistake_cost or 1.0) * max(0.0, scaled[0] - scaled[1]) * about.unlabelled
    return other._replace(error_now=error_now, saved=saved, avoided=avoided, worth=worth)


def more_labels_error(error: ErrorNow, fall: float, n_labelled: int, more: int, scale: float | None) -> float | None:
    """Return the error after more labels, extrapolated.

    Args:
        error: The error now.
        fall: The result of :func:`fall_per_label`.
        n_labelled: Labels so far.
        more: Number of further labels.
        scale: None for classes; the standard deviation of the labels for numbers.
    """
    if scale is None:
        return LearningCurve(n_labelled, error.value, fall).error_after(more)
    return math.sqrt(LearningCurve(n_labelled, error.value**2, fall * scale**2).error_after(more))
