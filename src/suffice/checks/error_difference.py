r"""Whether the error has changed between two batches of items: an exact test of two checks.

:math:`k_1` of :math:`m_1` checked predictions of the first batch are wrong, and :math:`k_2` of :math:`m_2` of the
second. If nothing has changed, the checked items of both batches are exchangeable: given that :math:`k_1 + k_2` of them
are wrong, :math:`k_1` has the distribution :math:`\mathrm{Hyp}(m_1 + m_2, k_1 + k_2, m_1)`. Fisher's test adds the
probabilities of all numbers that are at most as likely as the one that was found.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np

from suffice.arguments import real
from suffice.checks.guarantee import known_fields
from suffice.checks.hypergeometric import LARGEST_POOL, check_counts, counted, probability
from suffice.checks.sequential_terms import SequentialTerms
from suffice.errors import InvalidTypeError, InvalidValueError
from suffice.presentation.prediction_words import change_sentence

# Numbers whose probability exceeds that of the one found by less than this share count as equally likely.
_TIE: Final = 1e-9
_MOST_CHECKED: Final = 1_000_000


@dataclass(frozen=True)
class ErrorChange:
    """Whether the share of wrong predictions differs between two batches.

    Attributes:
        first: Number of wrong and of checked predictions of the first batch.
        second: The same of the second batch.
        p_value: Probability of a difference at least as unlikely as this one if nothing has changed.
        alpha: Probability with which a change is stated if nothing has changed, at most.

    Examples:
        >>> found = error_change((2, 100), (12, 100))
        >>> found.changed, round(found.p_value, 4), found.shares
        (True, 0.0101, (0.02, 0.12))
    """

    first: tuple[int, int]
    second: tuple[int, int]
    p_value: float
    alpha: float = 0.05

    @property
    def changed(self) -> bool:
        """Whether a change is visible: ``p_value`` is at most ``alpha``."""
        return self.p_value <= self.alpha

    @property
    def shares(self) -> tuple[float, float]:
        """Shares of wrong predictions among the checked ones of both batches."""
        return self.first[0] / self.first[1], self.second[0] / self.second[1]

    def __str__(self) -> str:
        return change_sentence({**asdict(self), "changed": self.changed})

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as JSON values, with its sentence."""
        values = {**asdict(self), "first": list(self.first), "second": list(self.second)}
        return {**values, "changed": self.changed, "shares": list(self.shares), "statement": str(self)}

    @staticmethod
    def from_dict(saved: Mapping[str, Any]) -> "ErrorChange":
        """Restore a comparison from :meth:`to_dict`.

        Args:
            saved: The result of :meth:`to_dict`.

        Raises:
            InvalidValueError: A field is missing, unknown or out of range, or the saved p-value does not follow from
                the saved counts.
        """
        values = known_fields(ErrorChange, saved, derived={"changed", "shares", "statement"})
        made = error_change(values["first"], values["second"], alpha=values.get("alpha", 0.05))
        if abs(real(values["p_value"], "p_value") - made.p_value) > 1e-6 * made.p_value:
            raise InvalidValueError(f"p_value must be {made.p_value}, by the counts, not {values['p_value']!r}")
        return made


def error_change(first: tuple[int, int], second: tuple[int, int], *, alpha: float = 0.05) -> ErrorChange:
    r"""Test whether the share of wrong predictions differs between two batches.

    Both numbers of answers must have been fixed before the draws: those of checks of fixed size, or the first answers
    of a sequential check, see :func:`fixed_answers`. All answers of a sequential check are no such sample, since it
    ends when its answers look good. An item that cannot be labelled counts as wrong, in both batches.

    The test is exact for batches of any size if the items of both come from the same source when nothing has changed.
    If several batches are compared, each comparison may be false with the probability ``alpha``.

    Args:
        first: Number of wrong predictions and number of answers of the check of the first batch.
        second: The same of the second batch.
        alpha: Probability with which a change may be stated if nothing has changed.

    Raises:
        InvalidTypeError: An argument is not a pair of numbers.
        InvalidValueError: A count is out of range.

    Examples:
        >>> print(error_change((2, 100), (12, 100)))
        The error has changed: 2 of 100 checked predictions were wrong, then 12 of 100 (2 % and 12 %, p = 0.01).
        >>> error_change((2, 100), (4, 100)).changed
        False
    """
    level = probability(alpha, "alpha")
    (k1, m1), (k2, m2) = _counts(first, "first"), _counts(second, "second")
    return ErrorChange((k1, m1), (k2, m2), _two_sided(k1, m1, k2, m2), level)


def fixed_answers(terms: SequentialTerms) -> int:
    """Number of first answers of a sequential check that are a sample of fixed size.

    It is the least number of answers with which the check can prove its target: that without a wrong one. The number
    follows from the terms, which are fixed before the draw, and until then no answer can prove the target. So these
    answers are the first ones of a random order, as many as were fixed before it was drawn: a uniform sample without
    replacement. All answers are not, because how many there are depends on what they are.

    A check that was given up, or that failed because more answers were wrong than the target allows, may have fewer
    answers; then it cannot be compared. This makes no false statement of a change more likely.

    Args:
        terms: The terms of the check, with or without corrections.

    Returns:
        The number; 0 if the target allows that all items are wrong, so that nothing is checked.

    Raises:
        InvalidTypeError: ``terms`` are not the terms of a check.
        InvalidValueError: No number of answers can prove the target.

    Examples:
        >>> terms = SequentialTerms.of_share(0.05, pool=3000, alpha=0.025, planned=100)
        >>> fixed_answers(terms)
        82
    """
    if not isinstance(terms, SequentialTerms):
        raise InvalidTypeError(
            f"terms must be the SequentialTerms of a check, not {type(terms).__name__}; give check.terms or "
            "check.sequential"
        )
    terms.require_provable()
    return terms.proof([]) or 0


def _counts(given: Any, name: str) -> tuple[int, int]:
    """Number of wrong predictions and of answers."""
    try:
        wrong, checked = given
    except (TypeError, ValueError):
        raise InvalidTypeError(
            f"{name} must be a number of wrong predictions and a number of answers, not {given!r}; for example (3, 100)"
        ) from None
    k, m = (int(counted(value, f"{name}[{place}]")) for place, value in enumerate((wrong, checked)))
    check_counts(k, m, LARGEST_POOL, what=f"{name}[0]")
    if not 1 <= m <= _MOST_CHECKED:
        raise InvalidValueError(f"{name}[1], the number of answers, must be from 1 to {_MOST_CHECKED:,}, not {m}")
    return k, m


def _two_sided(k1: int, m1: int, k2: int, m2: int) -> float:
    """The sum of the probabilities of all numbers that are at most as likely as ``k1``, given the totals."""
    wrong, low = k1 + k2, max(0, k1 + k2 - m2)
    counts = np.arange(low, min(wrong, m1), dtype=np.float64)
    # The ratio of the probability of each number to that of the one before falls. The products begin at the mode.
    ratios = (wrong - counts) / (counts + 1.0) * ((m1 - counts) / (m2 - wrong + counts + 1.0))
    mode = int(np.sum(ratios >= 1.0))
    likely = np.concatenate([np.cumprod(1.0 / ratios[:mode][::-1])[::-1], [1.0], np.cumprod(ratios[mode:])])
    return min(1.0, float(likely[likely <= likely[k1 - low] * (1.0 + _TIE)].sum() / likely.sum()))
