"""A falling curve as text, for a terminal."""

import math
from collections.abc import Sequence


def chart(values: Sequence[float], threshold: float, *, width: int, height: int, plain: bool = False) -> list[str]:
    r"""Draw ``values`` on a log scale as rows of text, the threshold as a line.

    Each column shows the smallest and the largest value of its share of the steps as a bar of dots.

    Args:
        values: The curve, one entry a step; values of 0 are drawn at the bottom.
        threshold: Where to draw the line.
        width: Columns to use, besides 7 for the axis.
        height: Rows to use.
        plain: Whether to draw with the characters that every terminal has.

    Returns:
        ``height`` lines.

    Examples:
        >>> print("\n".join(chart([1.0, 0.5, 0.2, 0.1], 0.1, width=8, height=3)))
             1 ┤••
          0.32 ┤  ••••
           0.1 ┤╌╌╌╌╌╌••
    """
    floor = max(threshold, 1e-12)
    top = math.log(max([1.0, *values]))
    bottom = math.log(max(min([floor, *(v for v in values if v > 0.0)]), 1e-12))
    span = max(top - bottom, 1e-9)

    at = min(height - 1, max(0, round((1.0 - (math.log(floor) - bottom) / span) * (height - 1))))

    def row(value: float) -> int:
        level = (math.log(max(value, math.exp(bottom))) - bottom) / span
        line = min(height - 1, max(0, round((1.0 - level) * (height - 1))))
        # However close to the threshold, a value above it is drawn above its line.
        return line - 1 if value > floor and line == at and line > 0 else line

    grid = [[" "] * width for _ in range(height)]
    dot, dash, axis = "*-|" if plain else "•╌┤"
    grid[row(floor)] = [dash] * width
    for column in range(width):
        start, stop = (k * len(values) // width for k in (column, column + 1))
        share = values[start : max(stop, start + 1)]
        for line in range(row(max(share)), row(min(share)) + 1):
            grid[line][column] = dot
    labels = [f"{math.exp(top - span * line / max(1, height - 1)):.2g}" for line in range(height)]
    labels[row(floor)] = f"{threshold:.2g}"
    wide = max(6, *map(len, labels))
    return [f"{label:>{wide}} {axis}{''.join(line).rstrip()}" for label, line in zip(labels, grid, strict=True)]
