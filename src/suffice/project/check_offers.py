"""Costs and likely guarantees of checks of a project, before they start."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import erfc, sqrt
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from suffice.arguments import real
from suffice.checks import attainable_bound, spent_alpha
from suffice.checks import plan as planned_check
from suffice.checks.guarantee import UnlabelableAs
from suffice.checks.sequential_plan import ExpectedCheck, expected_check
from suffice.errors import InvalidValueError, SufficeError
from suffice.presentation.check_words import (
    check_offer_rows,
    check_offer_sentences,
    class_offer_rows,
    class_offer_sentences,
    target_check_words,
)
from suffice.project.learning_status import LearningStatus, Predictions
from suffice.project.status_summary import check_status, next_check_plan

if TYPE_CHECKING:
    from suffice.project.labelling_project import Project

#: Offered sizes of checks.
SIZES: Final = (50, 100, 200)
#: Offered targets for the recall or precision of a class.
TARGETS: Final = (0.8, 0.9, 0.95)
#: Probability with which a planned check must reach its target.
PROBABILITY: Final = 0.8


class CheckOffer(NamedTuple):
    """A size of a check, and the upper bound of the share of wrong predictions that it is likely to guarantee."""

    size: int
    at_most: float


@dataclass(frozen=True)
class CheckOffers:
    """Likely guarantees of checks of several sizes, if the estimated error is correct. A plan proves nothing.

    Attributes:
        number: Number of the check that would start.
        pool: Number of unlabelled items to draw from.
        alpha: Error probability that the check would spend.
        confidence: The confidence of all checks of the project together.
        expected: Share of wrong predictions that is expected, from the estimated error; items that were skipped count
            as wrong unless they are excluded.
        tolerance: For numbers, the largest error that does not count as wrong.
        offers: Sizes with their likely guarantees.
        at_most: Target share of wrong predictions, or None.
        target_check: What a sequential check for ``at_most`` is expected to take; None without a target.
        seconds: Seconds that a label typically takes, or None.
    """

    number: int
    pool: int
    alpha: float
    confidence: float
    expected: float
    tolerance: float | None
    offers: tuple[CheckOffer, ...]
    at_most: float | None = None
    target_check: ExpectedCheck | None = None
    seconds: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """The offers as JSON values, with sentences."""
        values = {**self.__dict__, "probability": PROBABILITY, "offers": [each._asdict() for each in self.offers]}
        values["target_check"] = None if self.target_check is None else self.target_check._asdict()
        words = {"target_words": target_check_words(values), "rows": check_offer_rows(values)}
        return values | words | {"sentences": check_offer_sentences(values)}


def check_offers(  # noqa: PLR0913 - keyword arguments with defaults
    project: "Project",
    learning_status: LearningStatus,
    *,
    at_most: float | None = None,
    tolerance: float | None = None,
    unlabelable_as: UnlabelableAs = "wrong",
    confidence: float | None = None,
    sizes: Sequence[int] = SIZES,
    seconds: float | None = None,
) -> CheckOffers:
    """Likely guarantees of checks, if the estimated error is correct.

    For numbers, the share of predictions with an error above ``tolerance`` is computed for normally distributed errors
    of the estimated size.

    Args:
        project: The project.
        learning_status: Results of its model.
        at_most: Share of wrong predictions for which to plan a size; that of the project's settings if left out.
        tolerance: For numbers, the largest error that does not count as wrong.
        unlabelable_as: Whether skipped items count as ``"wrong"`` or are ``"excluded"``.
        confidence: As for :meth:`suffice.project.Project.start_check`.
        sizes: Sizes to offer; those that are not below the number of items are left out.
        seconds: Seconds that a label typically takes, to state the time.

    Raises:
        InvalidValueError: An argument cannot be used.
        SufficeError: The error is not estimated yet, or there is nothing to check.
    """
    # The estimates load libraries of statistics, for which the page need not wait.
    from suffice.session.error_estimate import least_expected

    classes = project.settings.task == "classification"
    if classes and tolerance is not None:
        raise InvalidValueError("tolerance is for numbers, and the labels of this project are classes; leave it out")
    if not classes and tolerance is None:
        raise InvalidValueError(
            "to plan a check of numbers, say by how much a prediction may be off (tolerance, in units of the target)"
        )
    with project.lock:
        state = project.state()
        alpha = project.checks_alpha(confidence)
        number = state.checks.number_after(project.settings.earlier_checks)
        skipped, left, n_labelled = state.n_skipped, state.left, state.n_labelled
        one_class = classes and sum(each > 0 for each in state.counts().values()) < 2
        own = project.settings.at_most if classes and project.settings.of == "rest" else None
        target = own if at_most is None else at_most
    if target is not None:
        real(target, "at_most", "above 0 and below 1", lambda x: 0.0 < x < 1.0)
    error = learning_status.errors[-1].value if learning_status.errors else None
    if error is None:
        raise SufficeError(
            learning_status.problem
            or "the error is not estimated yet: the model has not begun to learn; label a few items first"
        )
    if not left:
        raise SufficeError("every item is labelled or skipped: there is nothing to check")
    pool, expected = left, expected_share(learning_status, tolerance) or 0.0
    cautious = least_expected(expected, n_labelled, one_class=one_class)
    if unlabelable_as == "wrong":
        pool = left + skipped
        expected, cautious = ((share * left + skipped) / pool for share in (expected, cautious))
    spent = spent_alpha(number, alpha)
    offered = tuple(
        CheckOffer(size, attainable_bound(size, cautious, pool, alpha=spent, probability=PROBABILITY))
        for size in sizes
        if size < pool
    )
    wanted = None
    if target is not None and unlabelable_as == "wrong":
        wanted = _advised_check(project, learning_status, target, confidence) if tolerance is None else None
        if wanted is None:
            low, high = _interval(learning_status, tolerance, cautious, skipped / pool)
            wanted = expected_check(target, cautious, low=low, high=high, pool=pool, alpha=spent)
    return CheckOffers(number, pool, spent, 1.0 - alpha, expected, tolerance, offered, target, wanted, seconds)


def expected_share(
    learning_status: LearningStatus, tolerance: float | None = None, *, screening: bool = False
) -> float | None:
    """The estimated share of wrong predictions, or of items of a class; None if it is not estimated yet.

    Args:
        learning_status: Results of the model.
        tolerance: For numbers, the largest error that does not count as wrong. Errors are assumed to be normally
            distributed.
        screening: Whether a check for the goal of a screening counts the items of the class that is looked for.
    """
    if screening:
        plan = None if learning_status.numbers is None else learning_status.numbers.finish
        return None if plan is None else plan.wrong / max(plan.rows - plan.by_people, 1)
    error = learning_status.errors[-1].value if learning_status.errors else None
    if error is None:
        return None
    if tolerance is not None:
        within = real(tolerance, "tolerance", "of at least 0", lambda x: x >= 0.0)
        error = erfc(within / (error * sqrt(2.0))) if error > 0.0 else 0.0
    return min(1.0, error)


def _interval(
    learning_status: LearningStatus, tolerance: float | None, error: float, skipped: float
) -> tuple[float, float]:
    """The interval of the share of wrong predictions, with skipped items counted as wrong."""
    newest = learning_status.errors[-1]
    ends = [
        expected_share(replace(learning_status, errors=(replace(newest, value=value),)), tolerance) or 0.0
        for value in (newest.low, newest.high)
    ]
    low, high = (min(1.0, share * (1.0 - skipped) + skipped) for share in sorted(ends))
    return min(low, error), max(high, error)


def _advised_check(
    project: "Project", learning_status: LearningStatus, target: float, confidence: float | None
) -> ExpectedCheck | None:
    """The check in the current advice of the project, if it is for this target and to be started now; else None."""
    plan = None if learning_status.numbers is None else learning_status.numbers.plan
    if plan is None or plan.target != target:
        return None
    with project.lock:
        checks = check_status(project.state(), project.settings)
        usual = project.checks_alpha(confidence) == project.checks_alpha(None)
    advised = next_check_plan(plan, checks) if usual else None
    if advised is None or not advised.check_now:
        return None
    assert advised.check_size is not None
    assert advised.check_low is not None
    assert advised.check_high is not None
    return ExpectedCheck(advised.check_size, advised.check_low, advised.check_high, advised.success)


class ClassOffer(NamedTuple):
    """A recall or precision, and the size of a check that is likely to guarantee it; None if all items are needed."""

    at_least: float
    size: int | None


@dataclass(frozen=True)
class ClassOffers:
    """Cost of a check of the recall or precision of a class, if the model's own estimate is correct.

    Attributes:
        quantity: ``"recall"`` or ``"precision"``.
        class_name: The class.
        pool: Number of unlabelled items to draw from; for the precision, those that are predicted as the class.
        predicted_as_found: For the recall, whether items that are predicted as the class count as found.
        expected: For the recall, items of the class that are not found, as the model expects; for the precision, items
            predicted as the class that do not belong to it.
        found: Items that are labelled as the class.
        alpha: Error probability that the check would spend.
        confidence: The confidence of all checks of the project together.
        offers: Shares and the sizes of checks.
    """

    quantity: str
    class_name: str
    pool: int
    expected: int
    found: int
    alpha: float
    confidence: float
    offers: tuple[ClassOffer, ...]
    predicted_as_found: bool = True

    def as_dict(self) -> dict[str, Any]:
        """The offers as JSON values, with sentences and the rows of the selection on the page."""
        values = {**self.__dict__, "probability": PROBABILITY, "offers": [each._asdict() for each in self.offers]}
        return values | {"sentences": class_offer_sentences(values), "rows": class_offer_rows(values)}


def class_offers(  # noqa: PLR0913 - keyword arguments with defaults
    project: "Project",
    predictions: Predictions,
    *,
    recall_of: str | None = None,
    precision_of: str | None = None,
    unlabelable_as: UnlabelableAs = "wrong",
    predicted_as_found: bool = True,
    confidence: float | None = None,
) -> ClassOffers:
    """Cost of a check of the recall or precision of a class, if the model's probabilities are correct.

    For the recall, the probabilities are calibrated by the random labels, as in
    :meth:`suffice.ActiveLearner.recall_plan`.

    A check of the recall of a rare class may need most of the items. This function computes the cost in advance.

    Args:
        project: The project.
        predictions: Predictions of its model for all items.
        recall_of: The class whose recall is wanted.
        precision_of: The class whose precision is wanted, instead.
        unlabelable_as: Whether skipped items count as ``"wrong"`` or are ``"excluded"``.
        predicted_as_found: For the recall, whether items that are predicted as the class count as found.
        confidence: As for :meth:`suffice.project.Project.start_check`.

    Raises:
        InvalidValueError: The project has no such class, or its labels are numbers.
        SufficeError: There is nothing to check.
    """
    from suffice.session.check_plans import RecallCost

    classes = project.settings.classes
    name = recall_of if precision_of is None else precision_of
    if name not in classes or predictions.probabilities is None:
        known = ", ".join(map(repr, classes[:10])) or "none, its labels are numbers"
        raise InvalidValueError(f"the class must be one of those of the project, {known}; not {name!r}")
    with project.lock:
        state = project.state()
        before, alpha = state.labels.items_before(), project.checks_alpha(confidence)
        number = state.checks.number_after(project.settings.earlier_checks)
        found = state.counts().get(name, 0)
    pool = before.unlabelled
    if unlabelable_as == "excluded":
        pool = pool[~np.isin(pool, list(before.skipped))]
    as_class = np.asarray(predictions.labels[pool] == name)
    probable = predictions.probabilities[pool, classes.index(name)]
    spent = spent_alpha(number, alpha)
    if precision_of is not None:
        pool, probable = pool[as_class], probable[as_class]
    if not len(pool):
        raise SufficeError(f"there is no unlabelled item{f' predicted as {name!r}' * (recall_of is None)} to check")
    if precision_of is not None:
        wrong = float(np.sum(1.0 - probable))
        share, size = wrong / len(pool), len(pool)
        plans = [planned_check(1.0 - target, share, size, alpha=spent, probability=PROBABILITY) for target in TARGETS]
        offers = tuple(ClassOffer(target, plan.labels) for target, plan in zip(TARGETS, plans, strict=True))
        return ClassOffers("precision", name, size, round(wrong), found, spent, 1.0 - alpha, offers)
    ratio = 1.0 if predictions.class_ratios is None else predictions.class_ratios[classes.index(name)]
    cost = RecallCost.of(probable, as_class & predicted_as_found, 1.0, ratio, len(pool))
    plans = [cost.plan(target, found, len(pool), alpha=spent, probability=PROBABILITY) for target in TARGETS]
    offers = tuple(ClassOffer(target, plan.labels) for target, plan in zip(TARGETS, plans, strict=True))
    missed = cost.missed
    return ClassOffers("recall", name, len(pool), missed, found, spent, 1.0 - alpha, offers, predicted_as_found)
