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
    return _typical(gap for gaps in _working_gaps(labelled).values() for gap in gaps)


def paces(labelled: Sequence[LabelledItem]) -> dict[str, float]:
    """The same for each person, by name, without those for whom it cannot be told.

    Examples:
        >>> from suffice.project.state import Opinion
        >>> made = [LabelledItem(n, "a", "ann", 0.0, False, (Opinion("ann", "a", 4.0 * n),)) for n in range(20)]
        >>> paces([*made, LabelledItem(20, "a", "bob", 0.0, False, (Opinion("bob", "a", 7.0),))])
        {'ann': 4.0}
    """
    typical = ((person, _typical(gaps)) for person, gaps in _working_gaps(labelled).items())
    return {person: seconds for person, seconds in typical if seconds is not None}


def _working_gaps(labelled: Sequence[LabelledItem]) -> dict[str, list[float]]:
    """Times between two labels of each person, pauses left out."""
    moments: dict[str, list[float]] = {}
    for each in labelled:
        for opinion in each.opinions:
            moments.setdefault(opinion.person, []).append(opinion.at)
    return {
        person: [gap for before, later in pairwise(sorted(times)) if (gap := later - before) <= _PAUSE]
        for person, times in moments.items()
    }


def _typical(gaps: Iterable[float]) -> float | None:
    work = list(gaps)
    seconds = median(work) if len(work) >= _FEWEST_GAPS else 0.0
    return seconds if seconds >= _QUICKEST else None
