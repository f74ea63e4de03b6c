"""Least cost of a sequential check of a project, before it starts."""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from suffice.checks import SequentialTerms, spent_alpha
from suffice.errors import InvalidValueError, SufficeError
from suffice.presentation.check_words import sequential_offer_sentences
from suffice.project.check_offers import expected_share
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
    alpha: float
    confidence: float

    def as_dict(self) -> dict[str, Any]:
        """The offer as JSON values, with sentences."""
        values = asdict(self)
        return values | {"sentences": sequential_offer_sentences(values)}


def sequential_offer(
    project: "Project", learning_status: LearningStatus, at_most: float, *, tolerance: float | None = None
) -> SequentialOffer:
    """Least number of answers that a sequential check needs.

    Args:
        project: The project.
        learning_status: Results of its model.
        at_most: The target, a share of wrong predictions above 0 and below 1.
        tolerance: For numbers, the largest error that does not count as wrong.

    Raises:
        InvalidValueError: An argument cannot be used.
        SufficeError: The error is not estimated yet, or there is nothing to check.
    """
    classes = project.settings.task == "classification"
    if classes == (tolerance is not None):
        wrong = "leave it out: the labels of this project are classes" if classes else "needed for a check of numbers"
        raise InvalidValueError(f"tolerance, the largest error that is not wrong, is {wrong}")
    expected = expected_share(learning_status, tolerance)
    if expected is None:
        raise SufficeError("the error is not estimated yet: label a few items first")
    with project.lock:
        state = project.state()
        alpha, number = project.checks_alpha(None), state.checks.next_number
        left, skipped = state.left, state.n_skipped
    if not left:
        raise SufficeError("every item is labelled or skipped: there is nothing to check")
    pool = left + skipped
    share = (expected * left + skipped) / pool
    terms = SequentialTerms.of_share(at_most, pool=pool, alpha=spent_alpha(number, alpha), expected=expected)
    least = terms.proof([])
    if least is None:
        raise InvalidValueError(f"no check of {pool:,} items can prove this target; ask for a larger share")
    return SequentialOffer(
        number, at_most, tolerance, pool, terms.allowed, least, share, spent_alpha(number, alpha), 1.0 - alpha
    )
