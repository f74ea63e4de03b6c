"""One number against another: the decision, and the sentence that says which way it went."""

import sys
from dataclasses import dataclass
from typing import Final, Literal

from suffice.criteria.base import Criterion
from suffice.criteria.step import Step
from suffice.criteria.verdict import Verdict

# What to say where the relation holds, and where it does not.
_WORDS: Final = {"<=": ("at most", "above"), "<": ("below", "not below"), ">=": ("at least", "below")}
_LARGEST: Final = sys.float_info.max


@dataclass(frozen=True)
class Comparison:
    """A quantity that a rule compares with a limit; the rule stops where the relation holds.

    Attributes:
        quantity: What is compared, for the sentence.
        relation: How the quantity must stand to the limit for a stop.
        limit: What the limit is called.

    Examples:
        >>> Comparison("risk", "<").sentence(0.05, 0.05)
        'the risk, 0.05, is not below the threshold 0.05'
    """

    quantity: str
    relation: Literal["<=", "<", ">="]
    limit: str = "threshold"

    def holds(self, value: float, limit: float) -> bool:
        """Whether the value stands to the limit as it should."""
        if self.relation == "<":
            return value < limit
        return value <= limit if self.relation == "<=" else value >= limit

    def sentence(self, value: float, limit: float) -> str:
        """Say how the value stands to the limit."""
        words = _WORDS[self.relation][0 if self.holds(value, limit) else 1]
        shown, against = apart(value, limit)
        return f"the {self.quantity}, {shown}, is {words} the {self.limit} {against}"

    def verdict(self, rule: Criterion, step: Step, value: float, limit: float) -> Verdict:
        """The verdict of a rule that stops where the relation holds.

        A value that has overflowed counts as the largest number, so that a verdict holds finite numbers only.
        """
        finite = min(max(value, -_LARGEST), _LARGEST)
        return rule.verdict(
            step,
            stop=self.holds(finite, limit),
            value=finite,
            threshold=limit,
            reason=self.sentence(finite, limit),
        )


def apart(value: float, limit: float) -> tuple[str, str]:
    """Print two numbers with three digits, or with as many as it takes to tell them apart.

    Examples:
        >>> apart(0.05, 0.1), apart(0.05000001, 0.05)
        (('0.05', '0.1'), ('0.05000001', '0.05'))
    """
    for digits in (3, 6, 12):
        shown, against = f"{value:.{digits}g}", f"{limit:.{digits}g}"
        if shown != against or value == limit:
            return shown, against
    return repr(value), repr(limit)
