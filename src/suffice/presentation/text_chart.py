"""A curve as text, for a terminal."""

import math
from collections.abc import Callable, Sequence


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

    labels = [f"{math.exp(top - span * line / max(1, height - 1)):.2g}" for line in range(height)]
    labels[row(floor)] = f"{threshold:.2g}"
    return _drawn(values, row, [row(floor)] * width, labels, plain=plain)


def number_chart(  # noqa: PLR0913 - options of a drawing, by keyword
    values: Sequence[float], thresholds: Sequence[float], *, log: bool, width: int, height: int, plain: bool = False
) -> list[str]:
    r"""Draw any number that a rule compares, and what it is compared with, as rows of text.

    Args:
        values: The curve, one entry a step; NaN where there is nothing to draw. At least one is a number.
        thresholds: What each is compared with; one line where it is always the same.
        log: Whether the scale is logarithmic; all numbers are above 0 then.
        width: Columns to use, besides 7 for the axis.
        height: Rows to use.
        plain: Whether to draw with the characters that every terminal has.

    Returns:
        ``height`` lines.

    Examples:
        >>> print("\n".join(number_chart([math.nan, 0.5, 0.75, 1.0], [0.9] * 4, log=False, width=8, height=3)))
             1 ┤      ••
           0.9 ┤╌╌╌╌╌╌╌╌
           0.5 ┤  ••••
    """
    change, back = (math.log, math.exp) if log else (float, float)
    numbers = [change(number) for number in (*values, *thresholds) if not math.isnan(number)]
    top, span = max(numbers), (max(numbers) - min(numbers)) or 1.0
    limits = {limit for limit in thresholds if not math.isnan(limit)}
    level = limits.pop() if len(limits) == 1 else None

    def line_of(value: float) -> int:
        return min(height - 1, max(0, round((top - change(value)) / span * (height - 1))))

    at = 0
    if level is not None:
        # Room for a line of values on either side, however close they are to the threshold.
        most, least = height - 1 - (change(level) > min(numbers)), int(change(level) < top)
        at = max(least, min(most, line_of(level)))

    def row(value: float) -> int:
        line = line_of(value)
        if level is None:
            return line
        return at if value == level else min(line, at - 1) if value > level else max(line, at + 1)

    digits = 3 if log else 4
    labels = [f"{back(top - span * line / max(1, height - 1)):.{digits}g}" for line in range(height)]
    if level is not None:
        labels[at] = f"{level:.4g}"
    shares = (_share(thresholds, column, width) for column in range(width))
    return _drawn(values, row, [row(share[-1]) if share else None for share in shares], labels, plain=plain)


def _drawn(
    values: Sequence[float],
    row: Callable[[float], int],
    threshold: Sequence[int | None],
    labels: Sequence[str],
    *,
    plain: bool,
) -> list[str]:
    """The curve over its threshold, whose row is given for each column, and the labels of the axis."""
    grid = [[" "] * len(threshold) for _ in labels]
    dot, dash, axis = "*-|" if plain else "•╌┤"
    for column, at in enumerate(threshold):
        if at is not None:
            grid[at][column] = dash
        share = _share(values, column, len(threshold))
        for line in range(row(max(share)), row(min(share)) + 1) if share else ():
            grid[line][column] = dot
    wide = max(6, *map(len, labels))
    return [f"{label:>{wide}} {axis}{''.join(line).rstrip()}" for label, line in zip(labels, grid, strict=True)]


def _share(values: Sequence[float], column: int, width: int) -> list[float]:
    """The numbers that belong to one of so many columns."""
    start, stop = (k * len(values) // width for k in (column, column + 1))
    return [value for value in values[start : max(stop, start + 1)] if not math.isnan(value)]
