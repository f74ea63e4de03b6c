"""The way to a finished data set with predictions that stay as they are: which items people label, and when to check.

The policy is that of :func:`suffice.checks.plan_finish`. Most labels are for the items of which the predictions are
least sure, and some for items that are drawn at random. The random ones show how many predictions are wrong.
"""

from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from suffice.checks.confidence_judgement import JudgedConfidence, judged_confidence
from suffice.checks.finish_plan import FinishPlan, plan_finish
from suffice.checks.standing_finish import StandingFinish
from suffice.numerics import Floats

# Two-sided 90 % interval of the normal distribution.
_Z: Final = 1.645


@dataclass(frozen=True, eq=False)
class GivenErrors:
    """How likely each prediction is wrong, by the labels so far.

    Attributes:
        shares: Probability of a wrong prediction for each item without a label.
        low: Lower end of the 90 % interval for their mean.
        high: Upper end.
        judgement: Whether a lower confidence means more errors; None if no confidence is given.
    """

    shares: Floats
    low: float
    high: float
    judgement: JudgedConfidence | None


def expected_errors(
    confidence: Floats | None, wrong: Mapping[int, bool], random_items: Set[int], size: int
) -> GivenErrors:
    """Estimate how likely each prediction is wrong.

    With a confidence, the probability of an error is proportional to one minus the confidence, unless the labels show
    that the confidence does not order errors. The factor is that of the random labels.

    Args:
        confidence: Probability of each prediction by its maker, shape (size,); None if it is not known.
        wrong: Whether the prediction is wrong, for each item with a label.
        random_items: Items among them that were drawn at random.
        size: Number of items.
    """
    drawn = np.array(sorted(item for item in random_items if item in wrong), dtype=np.intp)
    faults = np.array([wrong[item] for item in drawn.tolist()], dtype=bool)
    unlabelled = np.ones(size, dtype=bool)
    unlabelled[list(wrong)] = False
    judgement = None
    doubt = np.ones(size)
    if confidence is not None:
        judgement = judged_confidence(confidence[drawn], faults)
        if judgement.orders is not False:
            doubt = 1.0 - confidence
    # Half an error more than was found, as long as there are few labels.
    expected = float(doubt[drawn].sum())
    factor = (faults.sum() + 0.5) / max(expected + 0.5 * float(doubt.mean()), 1e-9)
    shares = np.clip(factor * doubt[unlabelled], 0.0, 1.0)
    mean = float(shares.mean()) if len(shares) else 0.0
    found = max(float(faults.sum()), 0.5)
    # The relative error of the factor is that of the number of errors found.
    spread = np.exp(_Z / np.sqrt(found + 0.5))
    return GivenErrors(shares, mean / float(spread), min(1.0, mean * float(spread)), judgement)


def least_sure(confidence: Floats | None, labelled: Set[int], size: int, number: int) -> NDArray[np.intp]:
    """The items without a label whose predictions are least sure; none without a confidence.

    Args:
        confidence: Probability of each prediction; None if it is not known.
        labelled: Items that are not asked for.
        size: Number of items.
        number: How many at most.
    """
    if confidence is None or number < 1:
        return np.zeros(0, dtype=np.intp)
    # Items before the last one that is asked for have a label, or are asked for.
    wanted = min(size, number + len(labelled))
    order = np.argsort(confidence, kind="stable") if wanted == size else _smallest(confidence, wanted)
    return np.array([item for item in order.tolist() if item not in labelled][:number], dtype=np.intp)


def _smallest(values: Floats, number: int) -> NDArray[np.intp]:
    """The places of the smallest values in rising order; ties by place."""
    limit = np.partition(values, number - 1)[number - 1]
    places = np.flatnonzero(values <= limit)
    return np.asarray(places[np.argsort(values[places], kind="stable")], dtype=np.intp)


def given_plan(  # noqa: PLR0913 - all by keyword
    standing: StandingFinish,
    errors: GivenErrors,
    *,
    at_most: float,
    by_people: int,
    alpha: float,
    annotator_error: float = 0.0,
    answer_cost: float = 1.0,
) -> StandingFinish:
    """The next plan for predictions that stay as they are.

    Args:
        standing: The plan before it.
        errors: The expected errors now.
        at_most: Largest acceptable share of wrong labels among all final labels.
        by_people: Number of labels by people now.
        alpha: Error probability of the check.
        annotator_error: As for :func:`suffice.checks.allowed_wrong`.
        answer_cost: As for :func:`suffice.checks.plan_finish`.
    """
    made: FinishPlan = plan_finish(
        at_most,
        errors.shares,
        by_people=by_people,
        alpha=alpha,
        low=errors.low,
        high=errors.high,
        annotator_error=annotator_error,
        answer_cost=answer_cost,
        check_advised=standing.check_advised,
        learns=False,
    )
    return standing.next(by_people, made, answer_cost)
