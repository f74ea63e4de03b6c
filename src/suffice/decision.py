"""The answer to "have I labelled enough?": keep going, enough, or this model has reached its limit."""

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, Literal, NamedTuple

import numpy as np

from suffice.arguments import real
from suffice.checks import Guarantee, GuaranteePlan
from suffice.criteria import Criterion, LabelWorth, Verdict
from suffice.forecast import Forecast
from suffice.presentation.decision_words import STOPS, decision_words

Answer = Literal["too early", "keep going", "enough", "limit", "complete"]

# An error above this share of that of the trivial prediction is not clearly below it: for classes, and for numbers
# (root mean squared, so that the model explains less than 19 % of the variance).
_HARDLY_BELOW: Final = 0.9
# Once it was not, it is clearly below it from this share on.
_CLEARLY_BELOW: Final = 0.8
# A possibly better model, or an error that is not well known, is a reason to continue, but not beyond this multiple of
# the labels at the stop.
_LONGEST_DOUBT: Final = 2.0
# The doubt whether the error reaches the target lasts at least for this many labels after the stop; and twice as long
# if the error is below the target.
_SHORTEST_DOUBT: Final = 100
# An error above this share of that of the trivial prediction must be based on at least this many random labels.
_NEAR: Final = 0.75
_FEWEST_RANDOM: Final = 20
# The trivial prediction is learned from the random labels, if there are at least this many.
_FEWEST_TRIVIAL: Final = 10
# An error above this share of wrong classes, or above this share of the error of the mean of the labels, is large.
_LARGE_SHARE: Final = 0.2
_LARGE_RELATIVE: Final = 0.7


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
        name: Name of the model: one of :data:`suffice.models.factory.MODEL_FAMILIES`, or ``"forest"``.
        description: Its name in a sentence.
        error: Its error on the compared labels, each predicted by a model that has not seen it.
        present: Error of the present model on the same labels.
        labels: Number of labels that the errors are stated for.
        clear: Whether the difference is larger than chance explains; if not, more labels are needed to decide.
    """

    name: str
    description: str
    error: float
    present: float
    labels: int
    clear: bool = True


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
class Decision:
    """The decision whether to continue labelling, with its numbers.

    Attributes:
        answer: ``"too early"``, ``"keep going"``, ``"enough"``, ``"limit"`` (more labels are not worth their cost, but
            the error is not what the user asked for, or another model is clearly better), or ``"complete"`` (nothing
            is left to label).
        n_labelled: Number of labels that the decision is about.
        unlabelled: Number of items without a label.
        share: Whether errors are shares of wrong predictions (classes), or root mean squared errors (numbers).
        since: Number of labels at which the rule first said stop, if it still does.
        error: The estimated error of the unlabelled items, or None before the model has started.
        baseline: Error of the trivial prediction: always the most common class, or the mean of the labels; or None.
        common: The most common class, for the sentence; None for numbers.
        at_most: The error that the user asked for, or None.
        forecast: Number of labels until the rule stops, extrapolated. None if it is not predictable.
        error_then: The error after these labels, extrapolated; None if it is not known.
        alternative: A model that is better on the same labels, or None. If the difference is not clear, the answer is
            ``"keep going"``, to find out, see :attr:`in_doubt`.
        rule: Name of the stopping rule.
        reason: The comparison of the rule, in a sentence.
        guarantee: The guarantee of a check for the predictions of the present model, or None.
        plan: Plan of labels and check to guarantee ``at_most``; None for numbers, and without a target.
        check_pending: Items of an open check that have no answer yet; 0 if no check is open.
        avoided: Number of wrong predictions that the next label is expected to avoid, its own included, by the rule
            :class:`suffice.LabelWorth`; None for other rules.
        price: Number of wrong predictions that cost as much as a label; None as above.
        screening: Progress of a screening, or None if there is no positive class.
        out_of_reach: Whether the target was found to be out of reach at an earlier step, and that holds; None if it
            follows from the other numbers.
        near_trivial: Whether the error was found not to be clearly below that of the trivial prediction, and that
            holds; None as above.
    """

    answer: Answer
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
    rule: str = ""
    reason: str = ""
    guarantee: Guarantee | None = None
    plan: GuaranteePlan | None = None
    check_pending: int = 0
    avoided: float | None = None
    price: float | None = None
    screening: ScreeningProgress | None = None
    out_of_reach: bool | None = None
    near_trivial: bool | None = None

    @property
    def target_guaranteed(self) -> bool:
        """Whether a check guarantees the error, or in a screening the recall, that the user asked for."""
        if self.screening is not None:
            found, wanted = self.guarantee, self.screening
            same = found is not None and found.quantity == "recall" and found.class_name == wanted.positive
            return same and found.value >= wanted.recall  # type: ignore[union-attr]
        proven = self.guarantee is not None and self.guarantee.quantity == "error" and self.at_most is not None
        return proven and self.guarantee.value <= self.at_most  # type: ignore[union-attr, operator]

    @property
    def target_missed(self) -> bool:
        """Whether a check of the present model has not shown what the user asked for."""
        if self.screening is not None:
            return False
        checked = self.guarantee is not None and self.guarantee.quantity == "error" and self.at_most is not None
        return checked and not self.target_guaranteed

    @property
    def target_expected(self) -> bool:
        """Whether a check, now or after more labels, is expected to guarantee what the user asked for."""
        return self.plan is not None and self.plan.expected_total is not None

    @property
    def stop(self) -> bool:
        """Whether more labels are not worth their cost, or nothing is left to label."""
        return self.answer in STOPS

    @property
    def hardly_better(self) -> bool:
        """Whether the error is not clearly below that of the trivial prediction."""
        if self.error is None or self.baseline is None:
            return False
        return self.error.value > _HARDLY_BELOW * self.baseline if self.near_trivial is None else self.near_trivial

    @property
    def in_doubt(self) -> bool:
        """Whether the rule says stop, but more labels are needed to know the error or to compare models.

        That is so if another model is possibly better, or if the error is not far below that of the trivial prediction
        and is based on fewer than 20 random labels. It ends at twice the labels at which the rule first said stop. For
        a target, see :attr:`target_out_of_reach`.
        """
        if self.since is None:
            return False
        possibly = self.alternative is not None and not self.alternative.clear
        return (possibly or self.error_in_doubt) and self.n_labelled < doubt_ends(self.since)[0]

    @property
    def target_out_of_reach(self) -> bool:
        """Whether it is not worth continuing for the target, although the rule says that labels are not worth it.

        That is so if no check is expected to show it (without a plan: if the error is above it), and one of two
        conditions holds. Either the lower end of the interval of the error, minus the part that more labels can remove,
        is above the target. Or it was in doubt up to twice the labels at which the rule first said stop, and for at
        least 100 labels more than these. If the error is below the target, but too close to it for a check, this takes
        twice as long.
        """
        if self.out_of_reach is not None:
            return self.out_of_reach
        if not self.target_in_question or self.target_expected:
            return False
        assert self.error is not None
        assert self.at_most is not None
        _, above, below = doubt_ends(self.n_labelled if self.since is None else self.since)
        removable = 0.0 if self.plan is None else self.plan.reducible
        long = self.n_labelled >= (above if self.above_target else below)
        return long or self.error.low - removable > self.at_most

    @property
    def target_in_question(self) -> bool:
        """Whether a target was asked for and the estimate does not reach it: no guarantee, or an error above it."""
        if self.error is None or self.at_most is None:
            return False
        return self.plan is not None or self.above_target

    @property
    def error_in_doubt(self) -> bool:
        """Whether the error is close to that of the trivial prediction, and is based on few random labels."""
        if self.error is None or self.baseline is None or self.error.random_labels >= _FEWEST_RANDOM:
            return False
        return self.error.value > _NEAR * self.baseline

    @property
    def large_error(self) -> bool:
        """Whether the error is large: above 20 % of wrong classes, or above 70 % of that of the mean of the labels."""
        if self.error is None:
            return False
        if self.share:
            return self.error.value > _LARGE_SHARE
        return self.baseline is not None and self.error.value > _LARGE_RELATIVE * self.baseline

    @property
    def above_target(self) -> bool:
        """Whether the error is above the one that the user asked for."""
        return self.error is not None and self.at_most is not None and self.error.value > self.at_most

    @property
    def wrong(self) -> int | None:
        """Estimated number of wrong predictions among the unlabelled items; None for numbers."""
        return None if self.error is None or not self.share else round(self.error.value * self.unlabelled)

    @property
    def corrected(self) -> int | None:
        """Estimated number of wrong predictions that the labels of the forecast would avoid; None if not known."""
        if self.error is None or self.error_then is None or not self.share:
            return None
        return max(0, round((self.error.value - self.error_then) * self.unlabelled))

    def as_dict(self) -> dict[str, Any]:
        """The decision as JSON values; without ``guarantee`` if there is none."""
        names = (
            "wrong",
            "corrected",
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
        }
        del values["guarantee"], values["screening"], values["out_of_reach"], values["near_trivial"]
        if self.screening is not None:
            values["screening"] = self.screening._asdict()
        return values if self.guarantee is None else values | {"guarantee": self.guarantee.to_dict()}

    def __str__(self) -> str:
        return " ".join(decision_words(self.as_dict()).sentences)


def decide(verdict: Verdict | None, about: Decision) -> Decision:
    """Return the decision from the verdict of a rule and the estimates of the error.

    Args:
        verdict: The verdict of the rule; None before the model has started.
        about: The numbers; its ``answer``, ``rule`` and ``reason`` are ignored.
    """
    answer: Answer
    clear = about.alternative is not None and about.alternative.clear
    if about.guarantee is not None and about.guarantee.quantity == "error":
        about = replace(about, error=checked_error(about.guarantee), plan=None)
    if about.n_labelled and not about.unlabelled:
        answer = "complete"
    elif about.target_guaranteed:
        answer = "enough"
    elif verdict is None or not (verdict.ready or verdict.stop):
        answer = "too early"
    elif not verdict.stop:
        answer = "keep going"
    elif about.screening is not None:
        # The aim of a screening is the recall, not the quality of the predictions.
        answer = "enough"
    elif clear:
        answer = "limit"
    elif about.target_missed or (not about.target_out_of_reach if about.target_in_question else about.in_doubt):
        # A possibly better model does not change that a target is out of reach.
        answer = "keep going"
    else:
        # A target that is out of reach counts as not reached for any estimate.
        answer = "limit" if about.above_target or about.hardly_better or about.plan is not None else "enough"
    said = {} if verdict is None else {"rule": verdict.rule, "reason": verdict.reason}
    # A plan for the target contains the number of labels.
    goes_on = answer == "keep going" and not (about.target_expected or about.target_missed)
    return Decision(
        **{
            **about.__dict__,
            "answer": answer,
            **said,
            "forecast": about.forecast if goes_on else None,
            "error_then": about.error_then if goes_on else None,
            "alternative": about.alternative if answer == "keep going" or (answer == "limit" and clear) else None,
            "plan": None if answer in ("complete", "enough") else about.plan,
        }
    )


@dataclass(frozen=True)
class StandingAdvice:
    """The advice at the last estimate of the error, so that it does not change with each noisy estimate.

    Attributes:
        plan: The plan for the target at that estimate; None without a target.
        check_seen: Whether that plan was to check at once.
        check_advised: Whether a check is advised: two successive plans were to check at once, and since then no later
            check was clearly better.
        out_of_reach: Whether the target is out of reach. It remains so until a check is advised, or the rule no longer
            says stop.
        near_trivial: Whether the error is not clearly below that of the trivial prediction. It becomes so above 90 % of
            that, and remains so above 80 %.
    """

    plan: GuaranteePlan | None = None
    check_seen: bool = False
    check_advised: bool = False
    out_of_reach: bool = False
    near_trivial: bool = False

    def next(self, about: Decision, plan: GuaranteePlan | None) -> "StandingAdvice":
        """The advice at the next estimate.

        Args:
            about: The numbers at that estimate.
            plan: The plan, made with ``check_advised`` of this advice.
        """
        error, baseline = about.error, about.baseline
        limit = _CLEARLY_BELOW if self.near_trivial else _HARDLY_BELOW
        near_trivial = error is not None and baseline is not None and error.value > limit * baseline
        check_now = plan is not None and plan.check_now
        advised = check_now and (self.check_seen or self.check_advised)
        if advised or about.since is None:
            out_of_reach = False
        else:
            out_of_reach = self.out_of_reach or replace(about, plan=plan, out_of_reach=None).target_out_of_reach
        return StandingAdvice(plan, check_now, advised, out_of_reach, near_trivial)

    def applied(self, about: Decision, *, pool: int, wait: int) -> Decision:
        """A decision with this advice.

        Args:
            about: The numbers now.
            pool: Number of items that a check is drawn from.
            wait: Number of labels between two estimates, after which a check may be advised.
        """
        plan = None if self.plan is None or not about.unlabelled else self.plan.after(about.n_labelled, pool)
        if plan is not None and plan.check_now and not self.check_advised:
            assert self.plan is not None
            plan = replace(plan, more_labels=max(1, wait - (about.n_labelled - self.plan.n_labelled)))
        return replace(about, plan=plan, out_of_reach=self.out_of_reach, near_trivial=self.near_trivial)


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


class DecisionMemory:
    """The advice of the last decisions of a learner, so that the next decision does not reverse it with each estimate.

    A check that was advised for a target stays advised unless a later one saves a quarter of the labels. A target that
    was out of reach stays so until a check is advised, or the rule no longer says stop. Each target has its own advice.
    """

    def __init__(self) -> None:
        # For each target: the number of labels of the last decision, and the advice before and after it.
        self._advice: dict[float | None, tuple[int, StandingAdvice, StandingAdvice]] = {}

    def before(self, target: float | None, n_labelled: int) -> StandingAdvice:
        """The advice before this number of labels. A second decision with the same labels starts from it, too.

        Args:
            target: The error that the user asked for, or None.
            n_labelled: Number of labels.
        """
        n, before, now = self._advice.get(target, (0, StandingAdvice(), StandingAdvice()))
        found = now if n_labelled > n else before if n_labelled == n else StandingAdvice()
        # Decisions may be many labels apart, so that a check is advised by the first plan for it.
        return replace(found, plan=None, check_seen=True)

    def decide(self, verdict: Verdict, about: Decision, before: StandingAdvice, plan: GuaranteePlan | None) -> Decision:
        """Return :func:`decide` with the advice that follows, and remember that.

        Args:
            verdict: The verdict of the rule.
            about: The numbers, without a plan.
            before: The result of :meth:`before`.
            plan: The plan for the target, made with ``check_advised`` of that.
        """
        now = before.next(about, plan)
        self._advice[about.at_most] = about.n_labelled, before, now
        return decide(verdict, now.applied(about, pool=about.unlabelled, wait=1))

    def state(self) -> list[Any]:
        """The memory as JSON values; the plans are left out, because they are made again."""
        return [
            [target, n, *([each.check_advised, each.out_of_reach, each.near_trivial] for each in advice)]
            for target, (n, *advice) in self._advice.items()
        ]

    def restore(self, state: Iterable[Any]) -> None:
        """Restore :meth:`state`."""
        self._advice = {
            target: (n, *(StandingAdvice(None, False, *each) for each in (before, now)))
            for target, n, before, now in state
        }


def numbers_from_labels(
    verdict: Verdict, about: Decision, rule: Criterion, labels: Mapping[int, Any], random_items: Collection[int]
) -> Decision:
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
    forecast, then = verdict.forecast, None
    if about.error is not None and forecast is not None:
        fall = fall_per_label(rule, verdict, about.unlabelled)
        if fall is not None:
            scale = None if about.share else baseline or 1.0
            then = more_labels_error(about.error, fall, len(labels), forecast.labels, scale)
    avoided, price = avoided_per_label(rule, verdict)
    return replace(
        about, baseline=baseline, common=common, forecast=forecast, error_then=then, avoided=avoided, price=price
    )


def doubt_ends(since: int) -> tuple[float, float, float]:
    """Return the numbers of labels at which the doubt about a decision ends.

    Args:
        since: Number of labels at which the rule first said stop.

    Returns:
        The ends of the doubt about another model or the error, about a target below the error, and about a target above
        it.

    Examples:
        >>> doubt_ends(30), doubt_ends(200)
        ((60.0, 130.0, 230.0), (400.0, 400.0, 600.0))
    """
    longer = max((_LONGEST_DOUBT - 1.0) * since, float(_SHORTEST_DOUBT))
    return _LONGEST_DOUBT * since, since + longer, since + 2.0 * longer


def first_stop(verdicts: Iterable[Verdict]) -> int | None:
    """Return the number of labels at which a rule first said stop, or None."""
    return next((said.n_labelled for said in verdicts if said.stop), None)


def checked_error(guarantee: Guarantee) -> ErrorNow:
    r"""Return the error that a check estimates: the share of wrong predictions in it, with a 90 % interval.

    The interval is that of the distribution :math:`\mathrm{Beta}(k + 1/2, m - k + 1/2)` (Jeffreys).

    Args:
        guarantee: The guarantee of the check for the share of wrong predictions.

    Examples:
        >>> [round(each, 3) for each in checked_error(Guarantee.of_error(5, 100, 4600))[:3]]
        [0.05, 0.023, 0.096]
    """
    counted = guarantee.unlabelable_as == "wrong"
    wrong = guarantee.wrong + (guarantee.unlabelable if counted else 0)
    size = guarantee.checked - (0 if counted else guarantee.unlabelable)
    from scipy.special import betaincinv  # takes as long to import as the rest, and is not always needed

    low, high = (float(betaincinv(wrong + 0.5, size - wrong + 0.5, point)) for point in (0.05, 0.95))
    value = wrong / max(size, 1)
    return ErrorNow(value, min(low, value), max(high, value), size)


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


def error_after(error: float, per_label: float, n_labelled: int, more: int) -> float:
    r"""Extrapolate an error to more labels, on a curve whose reducible part falls like 1/n.

    .. math:: e' = e - \Delta \, \frac{n k}{n + k}

    Args:
        error: ``e`` now.
        per_label: The fall of the error at the next label, the rule's :math:`\Delta`.
        n_labelled: ``n``.
        more: ``k``.

    Examples:
        >>> round(error_after(0.1, 0.0005, 100, 100), 4)
        0.075
    """
    return max(0.0, error - per_label * n_labelled * more / (n_labelled + more)) if more > 0 else error


def fall_per_label(rule: Criterion, verdict: Verdict, unlabelled: int) -> float | None:
    """Return by how much the next label lowers the error of other items, as :class:`suffice.LabelWorth` estimates it.

    For classes it is the fall of the share of wrong predictions; for numbers that of the mean squared error relative to
    the variance of the labels. None for another rule, if the rule counts errors above a tolerance, or if its last step
    is another one than the verdict's.

    Args:
        rule: The rule.
        verdict: Its verdict.
        unlabelled: Number of items without a label.
    """
    if not isinstance(rule, LabelWorth) or rule.tolerance is not None or rule.error_cost is not None or not unlabelled:
        return None
    if not rule.counts or rule.counts[-1] != verdict.n_labelled:
        return None
    return rule.values[-1] / (rule.mistake_cost or 1.0) / unlabelled


def avoided_per_label(rule: Criterion, verdict: Verdict) -> tuple[float | None, float | None]:
    """Return how many wrong predictions the next label is expected to avoid, and how many cost as much as a label.

    Both are None for another rule than :class:`suffice.LabelWorth`, and with the cost of an error as a whole.
    """
    if not isinstance(rule, LabelWorth) or rule.error_cost is not None or verdict.value is None:
        return None, None
    mistake = rule.mistake_cost or 1.0
    return verdict.value / mistake, rule.label_cost / mistake


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
        return error_after(error.value, fall, n_labelled, more)
    return math.sqrt(error_after(error.value**2, fall * scale**2, n_labelled, more))
