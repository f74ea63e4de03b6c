r"""How many answers of people a check takes, before there is a project or a file, and what a random sample has shown.

The number of answers of a check that ends by itself is random. Its distribution follows exactly from the limits of the
check, for a number of wrong items that is assumed; see :func:`suffice.checks.sequential_terms.proof_probabilities`.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from suffice.arguments import whole
from suffice.checks.hypergeometric import check_counts, exact_share, lower_bound, probability, upper_bound
from suffice.checks.planner import plan, pool_size
from suffice.checks.random_check import spent_alpha
from suffice.checks.sequential_terms import SequentialTerms, planned_share, proof_probabilities
from suffice.presentation.answer_plan_words import answer_plan_sentences, sample_sentences
from suffice.presentation.html_parts import card

#: Probability with which a check of fixed size must reach its target.
SUCCESS: Final = 0.8
#: The quantiles of the number of answers.
LOW, MIDDLE, HIGH = 0.1, 0.5, 0.9
#: Expected shares of wrong predictions in a table, as parts of the target.
TABLE_PARTS: Final = (0.0, 0.2, 0.4, 0.6, 0.8)


@dataclass(frozen=True)
class AnswerPlan:
    """How many answers a check takes until a target is proven, if a share of the predictions is wrong.

    Attributes:
        at_most: The target: the largest acceptable share of wrong predictions.
        expected: The share of wrong predictions that is assumed.
        planned_for: The share of wrong predictions that the check is planned for.
        pool: Number of predictions.
        confidence: The confidence of all checks of these predictions together.
        alpha: Error probability that this check spends.
        corrected: Whether predictions that are found wrong are corrected, and the target is about those that remain.
        fewest: Number of answers if all of them are right.
        low: Number of answers within which one check of ten ends; None if the target is not reached with that
            probability, or not within the largest number of answers.
        median: The same for half of the checks.
        high: The same for nine checks of ten.
        fixed: Number of answers of a check of fixed size which proves the target with a probability of 80 %; None if
            only an answer for every prediction does, and for ``corrected``.

    Examples:
        >>> print(plan_answers(0.05, 0.02, 20_000))
        To prove that at most 5 % of 20,000 predictions are wrong (95 % confidence) takes about 240 answers, if 2 % are
        wrong. One check of ten ends within 110 answers, and nine of ten within 560. A check of fixed size takes 310
        answers, and succeeds with a probability of 80 %. The check is planned for 2 % wrong.
    """

    at_most: float
    expected: float
    planned_for: float
    pool: int
    confidence: float
    alpha: float
    corrected: bool
    fewest: int
    low: int | None
    median: int | None
    high: int | None
    fixed: int | None

    def as_dict(self) -> dict[str, Any]:
        """The plan as JSON values."""
        return dict(self.__dict__)

    def __str__(self) -> str:
        return " ".join(answer_plan_sentences(self.as_dict())).replace("\u00a0", " ")

    def _repr_html_(self) -> str:
        """The plan, for notebooks."""
        first, *rest = answer_plan_sentences(self.as_dict())
        return card(first, [("", sentence) for sentence in rest])


def plan_answers(  # noqa: PLR0913 - all but three by keyword
    at_most: float,
    expected: float | None,
    pool: int,
    *,
    planned_for: float | None = None,
    alpha: float = 0.05,
    number: int = 1,
    corrected: bool = False,
) -> AnswerPlan:
    """How many answers a check that ends by itself takes.

    Args:
        at_most: The target: the largest acceptable share of wrong predictions, above 0 and below 1.
        expected: The share of wrong predictions that is assumed, from 0 to 1; half of ``at_most`` if None. The number
            of wrong ones is rounded.
        pool: Number of predictions, from which the check is drawn.
        planned_for: The share that the check is planned for, before the truth is known; ``expected`` if left out.
        alpha: Probability with which the proofs may be wrong, for all checks of these predictions together.
        number: Number of the check of these predictions, from 1; see :func:`spent_alpha`.
        corrected: Whether predictions that are found wrong are corrected, as for a target for all final labels.

    Raises:
        InvalidValueError: An argument is out of range, or the target cannot be proven at all.

    Examples:
        >>> made = plan_answers(0.05, 0.02, 20_000)
        >>> made.fewest, made.low, made.median, made.high
        (109, 109, 243, 561)
        >>> plan_answers(0.05, 0.06, 20_000).median is None
        True
    """
    target, size = probability(at_most, "at_most"), pool_size(pool)
    guess = float(exact_share(planned_share(target, expected), "expected"))
    wanted = guess if planned_for is None else planned_share(target, planned_for)
    spent = spent_alpha(number, alpha)
    terms = SequentialTerms.of_share(target, pool=size, alpha=spent, expected=wanted, corrected=corrected)
    terms.require_provable()
    fewest = terms.proof([])
    assert fewest is not None
    low, median, high = _quantiles(terms, round(guess * size))
    # A check of fixed size is about the predictions as they are.
    fixed = None if corrected else plan(target, guess, size, alpha=spent, probability=SUCCESS, items="all").labels
    return AnswerPlan(target, guess, wanted, size, 1.0 - alpha, spent, corrected, fewest, low, median, high, fixed)


def answer_table(  # noqa: PLR0913 - all but two by keyword
    at_most: float,
    pool: int,
    *,
    expected: float | None = None,
    alpha: float = 0.05,
    number: int = 1,
    corrected: bool = False,
) -> list[AnswerPlan]:
    """How many answers one check takes if from none to four fifths of the share of the target are wrong.

    Args:
        at_most: As for :func:`plan_answers`.
        pool: The same.
        expected: The share of wrong predictions that the check is planned for; half of ``at_most`` if left out.
        alpha: As for :func:`plan_answers`.
        number: The same.
        corrected: The same.

    Raises:
        InvalidValueError: An argument is out of range, or the target cannot be proven at all.

    Examples:
        >>> [made.median for made in answer_table(0.05, 20_000)]
        [119, 163, 286, 562, 3585]
        >>> [made.median for made in answer_table(0.05, 20_000, expected=0.01)]
        [94, 132, 255, 856, 4526]
    """
    target = probability(at_most, "at_most")
    options: dict[str, Any] = {"alpha": alpha, "number": number, "corrected": corrected}
    options["planned_for"] = planned_share(target, expected)
    shares = [float(f"{part * target:.12g}") for part in TABLE_PARTS]
    return [plan_answers(target, share, pool, **options) for share in shares]


def _quantiles(terms: SequentialTerms, wrong_items: int) -> list[int | None]:
    """The numbers of answers within which a proof has certain probabilities."""
    last = min(terms.longest, max(2 * terms.planned, 64))
    while True:
        proven = proof_probabilities(terms, [wrong_items], last)[0]
        # With more wrong predictions than allowed, which are not corrected, a proof is an error and gets no likelier.
        hopeless = wrong_items > terms.allowed and not terms.corrected
        if proven[-1] >= HIGH or last == terms.longest or hopeless:
            break
        last = min(terms.longest, 2 * last)
    enough = [np.flatnonzero(proven >= level) for level in (LOW, MIDDLE, HIGH)]
    return [int(places[0]) + 1 if len(places) else None for places in enough]


@dataclass(frozen=True)
class SampleBounds:
    """What a random sample of fixed size has shown about all predictions.

    Attributes:
        pool: Number of predictions.
        checked: Number of those that were drawn at random and checked.
        wrong: Number of wrong ones among them.
        confidence: The confidence of each limit.
        at_most: Upper limit of the share of wrong predictions.
        at_least: Lower limit of that share.
        remaining_at_most: Upper limit of the share among those that were not checked; None if all were checked.

    Examples:
        >>> print(sample_bounds(pool=20_000, checked=300, wrong=7))
        At most 4.4 % of the 20,000 predictions are wrong (95 % confidence). 7 of the 300 checked ones are wrong, 2.3 %.
        With the same confidence at least 1.1 % are wrong. If the wrong ones that were found are corrected, at most
        4.4 % of the other 19,700 are wrong.
    """

    pool: int
    checked: int
    wrong: int
    confidence: float
    at_most: float
    at_least: float
    remaining_at_most: float | None

    def as_dict(self) -> dict[str, Any]:
        """The limits as JSON values."""
        return dict(self.__dict__)

    def __str__(self) -> str:
        return " ".join(sample_sentences(self.as_dict())).replace("\u00a0", " ")

    def _repr_html_(self) -> str:
        """What the sample has shown, for notebooks."""
        first, *rest = sample_sentences(self.as_dict())
        return card(first, [("", sentence) for sentence in rest], tone="stop")


def sample_bounds(pool: int, checked: int, wrong: int, *, alpha: float = 0.05) -> SampleBounds:
    """What a random sample of fixed size has shown.

    The sample must have been drawn at random, and its size must not depend on the answers. Use a check for a sample
    that ends when enough is proven.

    Args:
        pool: Number of predictions.
        checked: Number of them that were drawn at random and checked.
        wrong: Number of wrong ones among them.
        alpha: Probability with which each limit may be wrong.

    Raises:
        InvalidValueError: An argument is out of range.

    Examples:
        >>> found = sample_bounds(20_000, 300, 7)
        >>> round(found.at_least, 4), round(found.at_most, 4)
        (0.0111, 0.0432)
    """
    size = pool_size(pool)
    drawn, faults = whole(checked, "checked", least=1), whole(wrong, "wrong", least=0)
    check_counts(faults, drawn, size)
    level = probability(alpha, "alpha")
    most, least = upper_bound(faults, drawn, size, level), lower_bound(faults, drawn, size, level)
    rest = size - drawn
    remaining = (most - faults) / rest if rest else None
    return SampleBounds(size, drawn, faults, 1.0 - level, most / size, least / size, remaining)
