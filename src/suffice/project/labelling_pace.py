"""How long a label takes, from the times in the journal."""

from collections.abc import Sequence
from itertools import pairwise
from statistics import median
from typing import Final

from suffice.project.state import LabelledItem

# Seconds: a longer time between two labels of one person is a pause, and a shorter typical time is that of a program.
_PAUSE: Final = 300.0
_QUICKEST: Final = 0.3
_FEWEST_GAPS: Final = 10


def pace(labelled: Sequence[LabelledItem]) -> float | None:
    """Seconds that a label typically took: the median between two labels of one person, pauses left out.

    Args:
        labelled: Labels that people gave.

    Returns:
        Seconds; None where there are too few labels to tell, or a program gave them.

    Examples:
        >>> from suffice.project.state import Opinion
        >>> made = [LabelledItem(n, "a", "ann", 0.0, False, (Opinion("ann", "a", 4.0 * n),)) for n in range(20)]
        >>> pace(made), pace(made[:5])
        (4.0, None)
    """
    moments: dict[str, list[float]] = {}
    for each in labelled:
        for opinion in each.opinions:
            moments.setdefault(opinion.person, []).append(opinion.at)
    gaps = [later - before for times in moments.values() for before, later in pairwise(sorted(times))]
    work = [gap for gap in gaps if gap <= _PAUSE]
    typical = median(work) if len(work) >= _FEWEST_GAPS else 0.0
    return typical if typical >= _QUICKEST else None
