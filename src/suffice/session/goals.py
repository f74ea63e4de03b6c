"""Goals: what share of wrong labels, or of missed items of a class, is acceptable, and of what."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, Literal, get_args

from suffice.arguments import real
from suffice.checks.finish_plan import allowed_missed, allowed_wrong
from suffice.errors import InvalidValueError

#: What a target is a share of: the items without a label, or all final labels of the data set.
TargetOf = Literal["rest", "all"]

_NAMES: Final = " or ".join(f'"{name}"' for name in get_args(TargetOf))


@dataclass(frozen=True)
class Goal:
    """An acceptable share of wrong labels; validated.

    Attributes:
        at_most: The share.
        of: What it is a share of.
        annotator_error: For ``"all"``: share of the labels by people that may be wrong.
        answer_cost: For ``"all"``: cost of an answer in a check, relative to a label.
        class_name: For ``"all"``, in a screening: the class that is looked for. Then the share is that of the items of
            the class that are missed, among all items of the class.
    """

    at_most: float
    of: TargetOf = "rest"
    annotator_error: float = 0.0
    answer_cost: float = 1.0
    class_name: Any = None

    @property
    def recall(self) -> float:
        """In a screening, the share of the items of the class that is to be found."""
        return float(1 - Fraction(repr(self.at_most)))

    def allowed(self, rows: int, found: int = 0) -> int:
        """Number of wrong predictions that a goal about all labels allows, or of missed items of a class.

        Args:
            rows: Number of final labels.
            found: In a screening, the number of items of the class that people have found.
        """
        if self.class_name is not None:
            return allowed_missed(self.at_most, found)
        return allowed_wrong(self.at_most, rows, self.annotator_error)


def checked_goal(
    of: Any, at_most: Any, annotator_error: Any = 0.0, answer_cost: Any = 1.0, *, class_name: Any = None
) -> Goal:
    """Return the validated goal.

    Args:
        of: ``"rest"`` or ``"all"``.
        at_most: The acceptable share.
        annotator_error: Share of the labels by people that may be wrong.
        answer_cost: Cost of an answer in a check, relative to a label.
        class_name: In a screening, the class that is looked for.

    Raises:
        InvalidValueError: An argument is out of range, or of no use with ``of="rest"`` or in a screening.

    Examples:
        >>> checked_goal("all", 0.05).of, checked_goal("all", 0.05, class_name="yes").allowed(1000, found=40)
        ('all', 2)
    """
    if of not in get_args(TargetOf):
        raise InvalidValueError(f"of must be {_NAMES}, not {of!r}")
    share = real(at_most, "at_most", "from 0 to 1", lambda x: 0.0 <= x <= 1.0)
    people = real(annotator_error, "annotator_error", "at least 0 and below 1", lambda x: 0.0 <= x < 1.0)
    cost = real(answer_cost, "correction_cost", "above 0", lambda x: x > 0.0)
    if of == "rest" and (people or cost != 1.0):
        name = "annotator_error" if people else "correction_cost"
        raise InvalidValueError(f'{name} is for a goal about all labels; give of="all", or leave it out')
    if of == "all" and class_name is not None:
        _require_for_screening(share, people, cost)
        return Goal(share, of, class_name=class_name)
    # This raises an error if the labels of people alone exceed the goal.
    allowed_wrong(share, 0, people)
    return Goal(share, of, people, cost)


def _require_for_screening(share: float, people: float, cost: float) -> None:
    """Raise an error for values that do not apply to a screening."""
    if people:
        raise InvalidValueError(
            "annotator_error does not apply to a screening: the goal is about the items that nobody reads, and a share "
            "of wrong labels does not tell how many items of the class people overlook; leave it out"
        )
    if cost != 1.0:
        raise InvalidValueError(
            "correction_cost does not apply to a screening: the check asks the same question as before it; leave it out"
        )
    real(share, "at_most", "at least 0 and below 1, the share of the class that may be missed", lambda x: x < 1.0)
