"""The opinions of several people on the same items, and the error of one person that they show."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final, TypeVar

from suffice.project.events import Label
from suffice.project.settings import Settings
from suffice.project.state import LabelledItem, ProjectState

# Opinions of two people on fewer items say little about their errors.
_FEWEST_PAIRS: Final = 20

# A class, a number, or whether a number is large.
_Kind = TypeVar("_Kind", str, float, bool, str | float)


def annotator_error_seen(state: ProjectState, settings: Settings) -> dict[str, Any] | None:
    """The share of wrong labels of one person, estimated from the opinions of two people on the same items.

    If two people err independently with the share ``e``, and differ whenever one of them is wrong, they differ on
    ``2 e (1 - e)`` of the items. Numbers differ if one of the two must be off by more than the tolerance.

    Args:
        state: The state of the project.
        settings: Settings of the project.

    Returns:
        ``share``, ``both`` (items with two opinions) and ``different`` (items on which they differ); None if there are
        fewer than 20 such items, or people agree on all of them.
    """
    pairs = [pair for each in state.labelled(several_acts=True) if (pair := pair_of(each)) is not None]
    if settings.task == "classification":
        different = sum(one != other for one, other in pairs)
    elif settings.tolerance is None:
        return None
    else:
        different = sum(abs(float(one) - float(other)) > 2.0 * settings.tolerance for one, other in pairs)
    if len(pairs) < _FEWEST_PAIRS or not different:
        return None
    share = 0.5 * (1.0 - math.sqrt(max(0.0, 1.0 - 2.0 * different / len(pairs))))
    return {"share": round(share, 4), "both": len(pairs), "different": different}


def majority_of(labels: Sequence[_Kind]) -> _Kind | None:
    """The label that is given more often than every other; None if there is none.

    Examples:
        >>> majority_of(["cat", "dog", "cat"]), majority_of(["cat", "dog"]), majority_of([])
        ('cat', None, None)
    """
    if len(labels) < 2:
        return labels[0] if labels else None
    first = Counter(labels).most_common(2)
    return first[0][0] if len(first) == 1 or (len(first) == 2 and first[0][1] > first[1][1]) else None


def pair_of(labelled: LabelledItem) -> tuple[Label, Label] | None:
    """The labels of the first two people who labelled an item, ordered by their names; None if there was only one.

    People are ordered by name, so that kappa does not depend on the order in which labels were given.
    """
    if len(labelled.opinions) < 2:
        return None
    one, other = sorted(labelled.opinions[:2], key=lambda opinion: opinion.person)
    return one.label, other.label
