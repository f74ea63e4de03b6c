"""Goals: what share of wrong labels is acceptable, and of what."""

from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from suffice.arguments import real
from suffice.checks.finish_plan import allowed_wrong
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
    """

    at_most: float
    of: TargetOf = "rest"
    annotator_error: float = 0.0
    answer_cost: float = 1.0

    def allowed(self, rows: int) -> int:
        """Number of wrong predictions that a goal about all labels allows, for a number of final labels."""
        return allowed_wrong(self.at_most, rows, self.annotator_error)


def checked_goal(of: Any, at_most: Any, annotator_error: Any = 0.0, answer_cost: Any = 1.0) -> Goal:
    """Return the validated goal.

    Args:
        of: ``"rest"`` or ``"all"``.
        at_most: The acceptable share.
        annotator_error: Share of the labels by people that may be wrong.
        answer_cost: Cost of an answer in a check, relative to a label.

    Raises:
        InvalidValueError: An argument is out of range, or of no use with ``of="rest"``.

    Examples:
        >>> checked_goal("all", 0.05).of
        'all'
    """
    if of not in get_args(TargetOf):
        raise InvalidValueError(f"of must be {_NAMES}, not {of!r}")
    share = real(at_most, "at_most", "from 0 to 1", lambda x: 0.0 <= x <= 1.0)
    people = real(annotator_error, "annotator_error", "at least 0 and below 1", lambda x: 0.0 <= x < 1.0)
    cost = real(answer_cost, "correction_cost", "above 0", lambda x: x > 0.0)
    if of == "rest" and (people or cost != 1.0):
        name = "annotator_error" if people else "correction_cost"
        raise InvalidValueError(f'{name} is for a goal about all labels; give of="all", or leave it out')
    # This raises an error if the labels of people alone exceed the goal.
    allowed_wrong(share, 0, people)
    return Goal(share, of, people, cost)
