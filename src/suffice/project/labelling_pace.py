"""How long a label takes, of all people and of each, from the times in the journal."""

from collections.abc import Iterable, Sequence
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
    return _typical([gap for times in moments.values() for gap in _working_gaps(times)])


def pace_of(times: Iterable[float]) -> float | None:
    """The same for the labels of one person, from their times.

    Examples:
        >>> pace_of(4.0 * n for n in range(20)), pace_of([0.0, 4.0])
        (4.0, None)
    """
    return _typical(_working_gaps(times))


def _working_gaps(times: Iterable[float]) -> list[float]:
    """Times between two labels of a person, pauses left out."""
    return [gap for before, later in pairwise(sorted(times)) if (gap := later - before) <= _PAUSE]


def _typical(work: Sequence[float]) -> float | None:
    seconds = median(work) if len(work) >= _FEWEST_GAPS else 0.0
    return seconds if seconds >= _QUICKEST else None
