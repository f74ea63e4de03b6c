"""What a sample has shown, and what a check takes, together: as the command ``suffice plan`` and the page state it."""

from dataclasses import dataclass
from typing import Any

from suffice.checks.answer_plan import AnswerPlan, SampleBounds, answer_table, plan_answers, sample_bounds
from suffice.presentation.answer_plan_words import answer_plan_sentences, sample_sentences
from suffice.presentation.text_format import percent_at_most


@dataclass(frozen=True)
class AnnotationBudget:
    """What a sample has shown about predictions, and how many answers a check of them takes.

    Attributes:
        at_most: The target, or None.
        sample: What a sample has shown, or None.
        plan: The plan for the expected share; None without a target, and if the sample proves it.
        table: The same check if other shares are wrong; empty without a plan.
    """

    at_most: float | None
    sample: SampleBounds | None
    plan: AnswerPlan | None
    table: tuple[AnswerPlan, ...]

    @property
    def proven(self) -> bool:
        """Whether the sample proves the target."""
        return self.sample is not None and self.at_most is not None and self.sample.at_most <= self.at_most

    def sentences(self, seconds: float | None = None) -> list[str]:
        """The sample and the plan in words.

        Args:
            seconds: Seconds that an answer takes, to state the time; None if it is not known.
        """
        sentences = [] if self.sample is None else sample_sentences(self.sample.as_dict())
        if self.sample is not None and self.at_most is not None:
            wanted = f"the target of at most {percent_at_most(self.at_most)}"
            ended = f"That proves {wanted}." if self.proven else f"That does not prove {wanted}. For a new check:"
            sentences.append(ended)
        return sentences + ([] if self.plan is None else answer_plan_sentences(self.plan.as_dict(), seconds))

    def as_dict(self, seconds: float | None = None) -> dict[str, Any]:
        """The numbers as JSON values, with the sentences."""
        return {
            "sample": None if self.sample is None else self.sample.as_dict(),
            "plan": None if self.plan is None else self.plan.as_dict(),
            "table": [each.as_dict() for each in self.table],
            "sentences": [sentence.replace("\u00a0", " ") for sentence in self.sentences(seconds)],
        }


def annotation_budget(  # noqa: PLR0913 - all but one by keyword
    pool: int,
    *,
    at_most: float | None = None,
    expected: float | None = None,
    counts: tuple[int, int] | None = None,
    corrected: bool = False,
    alpha: float = 0.05,
    number: int = 1,
) -> AnnotationBudget:
    """State what a sample has shown, and plan a check.

    Args:
        pool: Number of predictions.
        at_most: The target, or None.
        expected: The share of wrong predictions that is expected; if left out, that of the sample, and without one half
            of the target.
        counts: Numbers of checked and of wrong items of a random sample, or None. It counts as a check.
        corrected: As for :func:`suffice.checks.plan_answers`.
        alpha: The same.
        number: The same.

    Raises:
        InvalidValueError: An argument is out of range.

    Examples:
        >>> annotation_budget(20_000, counts=(300, 7), at_most=0.05).proven
        True
        >>> annotation_budget(20_000, counts=(300, 12), at_most=0.05).plan.expected
        0.04
    """
    sample = None
    if counts is not None:
        sample, number = sample_bounds(pool, *counts, alpha=alpha), number + 1
        expected = counts[1] / counts[0] if expected is None else expected
    budget = AnnotationBudget(at_most, sample, None, ())
    if at_most is None or budget.proven:
        return budget
    options: dict[str, Any] = {"alpha": alpha, "number": number, "corrected": corrected}
    plan = plan_answers(at_most, expected, pool, **options)
    table = answer_table(at_most, pool, expected=plan.planned_for, **options)
    return AnnotationBudget(at_most, sample, plan, tuple(table))
