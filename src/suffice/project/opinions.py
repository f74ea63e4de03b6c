"""The opinions of two people on the same items, and the error of one person that they show."""

import math
from typing import Any, Final

from suffice.project.events import Label
from suffice.project.settings import Settings
from suffice.project.state import LabelledItem, ProjectState

# Opinions of two people on fewer items say little about their errors.
_FEWEST_PAIRS: Final = 20


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


def pair_of(labelled: LabelledItem) -> tuple[Label, Label] | None:
    """The labels of the first two people who labelled an item, ordered by their names; None if there was only one.

    People are ordered by name, so that kappa does not depend on the order in which labels were given.
    """
    if len(labelled.opinions) < 2:
        return None
    one, other = sorted(labelled.opinions[:2], key=lambda opinion: opinion.person)
    return one.label, other.label
