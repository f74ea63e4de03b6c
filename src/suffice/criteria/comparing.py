"""The comparison of a number with a limit: the decision, and the sentence that reports it."""

from dataclasses import dataclass
from typing import Final, Literal

from suffice.arguments import real

# What the sentence says where the relation holds, and where it does not.
_RELATION_WORDS: Final = {"<=": ("at most", "above"), "<": ("below", "not below"), ">=": ("at least", "below")}
#: Averages that should be equal may differ by this much.
AVERAGE_ROUNDING: Final = 1e-12


@dataclass(frozen=True)
class Comparison:
    """A quantity that a rule compares with a limit. The rule stops if the relation holds.

    Attributes:
        quantity: Name of the quantity, for the sentence.
        relation: The relation of the quantity to the limit at which the rule stops.
        limit: Name of the limit.

    Examples:
        >>> Comparison("risk", "<").sentence(0.05, 0.05)
        'the risk, 0.05, is not below the threshold 0.05'
    """

    quantity: str
    relation: Literal["<=", "<", ">="]
    limit: str = "threshold"

    def holds(self, value: float, limit: float) -> bool:
        """Whether the relation holds."""
        if self.relation == "<":
            return value < limit
        return value <= limit if self.relation == "<=" else value >= limit

    def sentence(self, value: float, limit: float) -> str:
        """Return a sentence that says whether the relation holds."""
        words = _RELATION_WORDS[self.relation][0 if self.holds(value, limit) else 1]
        shown, against = apart(value, limit)
        return f"the {self.quantity}, {shown}, is {words} the {self.limit} {against}"


def apart(value: float, limit: float) -> tuple[str, str]:
    """Return two numbers as text, with three digits or as many as are needed to tell them apart.

    Examples:
        >>> apart(0.05, 0.1), apart(0.05000001, 0.05)
        (('0.05', '0.1'), ('0.05000001', '0.05'))
    """
    for digits in (3, 6, 12):
        shown, against = f"{value:.{digits}g}", f"{limit:.{digits}g}"
        if shown != against or value == limit:
            return shown, against
    return repr(value), repr(limit)


def tightened(threshold: float, factor: float, *, limit: float) -> float:
    """Return a stricter threshold: its distance from the strictest one, ``limit``, times ``factor``.

    Args:
        threshold: The present threshold.
        factor: Inside (0, 1).
        limit: 0 where a lower threshold is stricter, 1 where a higher one is.

    Raises:
        InvalidValueError: ``factor`` is not inside (0, 1).

    Examples:
        >>> tightened(0.1, 0.5, limit=0.0), round(tightened(0.9, 0.5, limit=1.0), 4)
        (0.05, 0.95)
    """
    share = real(factor, "factor", "between 0 and 1", lambda x: 0.0 < x < 1.0)
    stricter = limit + (threshold - limit) * share
    # Never rounded to the limit itself, because a rule may be unable to reach it.
    return threshold if stricter == limit else stricter


def snapped(value: float, limit: float) -> float:
    """Return ``value``, or ``limit`` where the two differ by no more than the rounding of an average.

    Examples:
        >>> snapped(0.1 + 0.2, 0.3), snapped(0.29, 0.3)
        (0.3, 0.29)
    """
    return limit if abs(value - limit) <= AVERAGE_ROUNDING else value
