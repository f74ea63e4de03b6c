"""The beginning of a long text, an item in one line, a long curve with fewer points."""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

#: Characters of a text or of an item in a table.
LONGEST_SUMMARY: Final = 200
#: Cells of an item that a summary looks at.
_MOST_CELLS: Final = 40


def shortened(text: str, most: int = LONGEST_SUMMARY) -> str:
    """The beginning of a text, in one line.

    Args:
        text: Any text.
        most: Characters to keep at most, the ellipsis included.

    Examples:
        >>> shortened("a  b", 10), shortened("a long text", 7)
        ('a b', 'a long…')
    """
    # A cell may hold millions of characters: only the beginning is split into words.
    line = " ".join(text[: 4 * most].split())
    return line if len(line) <= most and len(text) <= 4 * most else f"{line[: most - 1].rstrip()}…"


def item_summary(cells: Sequence[tuple[str, str]], main: str | None) -> str:
    """The beginning of an item's text, or of its cells, in one line of at most 200 characters.

    Args:
        cells: Name and value of each cell.
        main: Name of the cell that holds the item's text, or None.

    Examples:
        >>> item_summary([("size", "3"), ("colour", ""), ("town", "Rome")], None)
        'size: 3, town: Rome'
        >>> item_summary([("subject", "Offer"), ("body", "Buy  now")], "body")
        'Buy now'
    """
    text = dict(cells).get(main) if main is not None else None
    if text is not None:
        return shortened(text)
    return shortened(
        ", ".join(f"{name}: {value[: 2 * LONGEST_SUMMARY]}" for name, value in cells[:_MOST_CELLS] if value)
    )


def thinned_positions(values: ArrayLike, most: int) -> list[int]:
    """Positions of the points that a curve needs to look the same: the extremes of each short stretch, and both ends.

    Args:
        values: Heights of the curve, all finite.
        most: How many points to keep at most, 4 or more.

    Returns:
        Positions, rising; all of them where the curve is short enough.

    Examples:
        >>> kept = thinned_positions(np.arange(8000) % 7, 400)
        >>> len(kept) <= 400, kept[0], kept[-1], max(position % 7 for position in kept)
        (True, 0, 7999, 6)
    """
    heights = np.asarray(values, dtype=float)
    if len(heights) <= most:
        return list(range(len(heights)))
    stretches = np.array_split(np.arange(len(heights)), most // 2 - 1)
    extremes = {int(each[at(heights[each])]) for each in stretches for at in (np.argmin, np.argmax)}
    return sorted(extremes | {0, len(heights) - 1})
