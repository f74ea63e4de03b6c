"""What a sequential check of a project takes, before it starts."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from suffice.arguments import real
from suffice.checks import SequentialTerms
from suffice.checks.sequential_plan import ExpectedCheck
from suffice.errors import InvalidValueError
from suffice.presentation.check_words import sequential_offer_sentences
from suffice.project.check_offers import check_offers
from suffice.project.learning_status import LearningStatus

if TYPE_CHECKING:
    from suffice.project.labelling_project import Project


@dataclass(frozen=True)
class SequentialOffer:
    """A sequential check that could start.

    Attributes:
        number: Number of the check that would start.
        at_most: The target, the largest acceptable share of wrong predictions.
        tolerance: For numbers, the largest error that does not count as wrong.
        pool: Number of unlabelled items to draw from, skipped ones included.
        allowed: Number of them that may be wrong.
        least: Number of answers that prove the target if none of them is wrong.
        expected: Estimated share of wrong predictions; items that were skipped count as wrong.
        check: What the check is expected to take.
        alpha: Error probability that the check would spend.
        confidence: The confidence of all checks of the project together.
    """

    number: int
    at_most: float
    tolerance: float | None
    pool: int
    allowed: int
    least: int
    expected: float
    check: ExpectedCheck
    alpha: float
    confidence: float

    def as_dict(self) -> dict[str, Any]:
        """The offer as JSON values, with sentences."""
        values = {**self.__dict__, "check": self.check._asdict()}
        return values | {"sentences": sequential_offer_sentences(values)}


def sequential_offer(
    project: "Project", learning_status: LearningStatus, at_most: float, *, tolerance: float | None = None
) -> SequentialOffer:
    """What a sequential check needs: the least number of answers, and what it is expected to take.

    Args:
        project: The project.
        learning_status: Results of its model.
        at_most: The target, a share of wrong predictions above 0 and below 1.
        tolerance: For numbers, the largest error that does not count as wrong.

    Raises:
        InvalidValueError: An argument cannot be used.
        SufficeError: The error is not estimated yet, or there is nothing to check.
    """
    real(at_most, "at_most", "above 0 and below 1", lambda x: 0.0 < x < 1.0)
    offers = check_offers(project, learning_status, at_most=at_most, tolerance=tolerance, sizes=())
    assert offers.target_check is not None
    terms = SequentialTerms.of_share(at_most, pool=offers.pool, alpha=offers.alpha, expected=offers.expected)
    least = terms.proof([])
    if least is None:
        raise InvalidValueError(f"no check of {offers.pool:,} items can prove this target; ask for a larger share")
    return SequentialOffer(
        offers.number,
        at_most,
        tolerance,
        offers.pool,
        terms.allowed,
        least,
        offers.expected,
        offers.target_check,
        offers.alpha,
        offers.confidence,
    )
