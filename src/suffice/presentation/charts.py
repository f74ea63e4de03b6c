"""Curves over labels: as SVG in the colours of the page, and as text for a terminal."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

#: Possible first digits of the distance between ticks.
_STEPS: Final = (1.0, 2.0, 2.5, 5.0, 10.0)
#: Below this, powers of ten for the ticks would underflow.
_TINY: Final = 1e-300
_LEAST: Final = 1e-305
#: Width of a character as a share of the font size: enough for digits and lower-case letters.
_LETTER: Final = 0.56
_WRITING: Final = 13.0
_TOP, _BOTTOM, _RIGHT = 46.0, 46.0, 16.0
#: A value of 0 cannot be shown on a log scale: it is drawn below the least of the others by this factor.
_BELOW: Final = 0.5
#: Labels are on a log scale if the chart extends to more than this multiple of the labels so far.
_FAR: Final = 3.0


@dataclass(frozen=True)
class Chart:
    """The data to draw.

    Attributes:
        title: Description of the chart, also for screen readers.
        name: Name of the vertical axis.
        line: Labels and values, one pair per point, in the order of the labels.
        rough: Labels and values of a noisy line, drawn thin behind the other.
        band: Labels, and the lower and upper end of an interval there.
        limit: Labels, and the limit that the value is compared with there.
        limit_name: Name of the limit.
        stop: Labels at which the rule first said stop, or None.
        ahead: Forecast of the labels that are enough: lower end, middle and upper end, or None.
        log: Whether the vertical axis is on a log scale; all values that are not above 0 are drawn at the bottom.
        percent: Whether values are shares, to be written in percent.
        zero: Whether the vertical axis begins at 0, or below it.
    """

    title: str
    name: str
    line: Sequence[tuple[float, float]]
    rough: Sequence[tuple[float, float]] = ()
    band: Sequence[tuple[float, float, float]] = ()
    limit: Sequence[tuple[float, float]] = ()
    limit_name: str = "threshold"
    stop: int | None = None
    ahead: tuple[int, int, int] | None = None
    log: bool = False
    percent: bool = False
    zero: bool = False


def svg(chart: Chart, width: int, height: int, *, shown: str = "") -> str:
    """Draw a chart.

    Args:
        chart: The data; its line has at least one point.
        width: Width in pixels.
        height: Height in pixels.
        shown: A CSS class of the element.

    Returns:
        An ``svg`` element without external resources.

    Examples:
        >>> drawn = svg(Chart("Error <1>", "error", [(10, 0.5), (20, 0.25)]), 400, 200)
        >>> drawn.startswith('<svg class="chart" viewBox="0 0 400 200"'), "Error &lt;1&gt;" in drawn
        (True, True)
    """
    across, up = _across(chart), _up(chart)
    marks = [_said(tick, percent=chart.percent) for tick in up.ticks]
    left = 14.0 + _LETTER * _WRITING * max(map(len, marks), default=1)
    x = across.placed(left, width - _RIGHT)
    y = up.placed(height - _BOTTOM, _TOP)
    frame = _Frame(left, width - _RIGHT, _TOP, height - _BOTTOM)
    parts = [
        *(_grid(frame, y(tick), mark) for tick, mark in zip(up.ticks, marks, strict=True)),
        *(_foot(frame, x(tick), f"{tick:,.0f}") for tick in across.ticks),
        f'<path class="axis" d="M{frame.left:.1f} {frame.bottom:.1f}H{frame.right:.1f}"/>',
        _text(frame.right, height - 6.0, "labels (log scale)" if across.log else "labels", "end"),
        _text(2.0, 14.0, chart.name, "start"),
        *_drawn_ahead(chart, frame, x),
        _polygon(chart, x, y),
        _path("limit", [(x(n), y(value)) for n, value in chart.limit]),
        _path("rough", [(x(n), y(value)) for n, value in chart.rough]),
        _path("curve", [(x(n), y(value)) for n, value in chart.line]),
        *_points(chart, x, y),
        *_named_limit(chart, frame),
        *_drawn_stop(chart, frame, x),
    ]
    inside = "\n".join(part for part in parts if part)
    css = f"chart {shown}".strip()
    return (
        f'<svg class="{css}" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" '
        f'aria-label="{escape(chart.title)}">\n{inside}\n</svg>'
    )


@dataclass(frozen=True)
class _Frame:
    """Position of the axes, in pixels."""

    left: float
    right: float
    top: float
    bottom: float


@dataclass(frozen=True)
class _Scale:
    """A linear or logarithmic scale."""

    low: float
    high: float
    ticks: tuple[float, ...]
    log: bool = False

    def placed(self, start: float, end: float) -> Callable[[float], float]:
        """Return a function from numbers to positions between two ends; numbers beyond the scale are at an end."""
        change: Callable[[float], float] = math.log if self.log else float
        low, high = change(self.low), change(self.high)

        def place(value: float) -> float:
            share = (change(min(max(value, self.low), self.high)) - low) / (high - low)
            return start + share * (end - start)

        return place


def _across(chart: Chart) -> _Scale:
    ends = [n for n, _ in chart.line] + ([] if chart.ahead is None else [float(chart.ahead[2])])
    low, high = min(ends), max(ends)
    if high == low:
        low, high = low - 1.0, high + 1.0
    # A distant forecast would leave no space for the labels so far.
    if low >= 1.0 and high > _FAR * chart.line[-1][0]:
        return _Scale(
            low, high, tuple(tick for tick in _log_ticks(low, high, (1, 2, 5)) if tick == round(tick)), log=True
        )
    return _Scale(low, high, _whole_ticks(low, high))


def _up(chart: Chart) -> _Scale:
    values = [value for _, value in (*chart.line, *chart.rough, *chart.limit)]
    values += [end for _, low, high in chart.band for end in (low, high)]
    # Smaller values would underflow when the lower margin is added.
    above = [value for value in values if value > _LEAST]
    if chart.log and above:
        low, high = min(above) * (_BELOW if len(above) < len(values) else 0.85), max(above) * 1.1
        return _Scale(low, high, _log_ticks(low, high), log=True)
    values += [0.0] if chart.zero else []
    low, high = min(values), max(values)
    room = 0.06 * (high - low) or abs(low) or 1.0
    low, high = low if low == 0.0 else low - room, high + room
    return _Scale(low, high, tuple(tick for tick in ticks(low, high, 5) if low <= tick <= high))


def ticks(low: float, high: float, most: int) -> tuple[float, ...]:
    """Return round numbers that cover the range from ``low`` to ``high``.

    Args:
        low: The least number.
        high: The largest, above ``low``.
        most: Approximate number of ticks; there may be one more.

    Examples:
        >>> ticks(0.0, 0.33, 5)
        (0.0, 0.1, 0.2, 0.3, 0.4)
    """
    rough = max((high - low) / (most - 1), _TINY)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * each for each in _STEPS if power * each >= rough * (1.0 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    digits = max(0, 2 - math.floor(math.log10(step)))
    return tuple(round(number * step, digits) for number in range(first, last + 1))


def _whole_ticks(low: float, high: float) -> tuple[float, ...]:
    inside = [tick for tick in ticks(low, high, 7) if low <= tick <= high and tick == round(tick)]
    return tuple(inside or [round(low)])


def _log_ticks(low: float, high: float, *wanted: tuple[int, ...]) -> tuple[float, ...]:
    """Return powers of ten, with 2 and 5 times these if there are few of them.

    Examples:
        >>> _log_ticks(0.04, 1.1)
        (0.05, 0.1, 0.2, 0.5, 1.0)
        >>> _log_ticks(0.0009, 1.1)
        (0.001, 0.01, 0.1, 1.0)
    """
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for digits in wanted or ((1,), (1, 2, 5), (1, 2, 3, 4, 5, 6, 8)):
        found = [float(f"{digit}e{power}") for power in powers for digit in digits]
        inside = tuple(tick for tick in found if low <= tick <= high)
        if len(inside) >= 3:
            return inside
    return inside or (float(f"{low:.3g}"), float(f"{high:.3g}"))


def _said(value: float, *, percent: bool) -> str:
    if percent:
        return f"{100.0 * value:.4g}\u00a0%"
    return f"{value:,.10g}" if 1e-4 <= abs(value) < 1e7 or not value else f"{value:.3g}"


def _grid(frame: _Frame, y: float, mark: str) -> str:
    line = f'<path class="grid" d="M{frame.left:.1f} {y:.1f}H{frame.right:.1f}"/>'
    return line + _text(frame.left - 6.0, y + 4.5, mark, "end")


def _foot(frame: _Frame, x: float, mark: str) -> str:
    where = "middle" if x - frame.left > 12.0 else "start"
    line = f'<path class="axis" d="M{x:.1f} {frame.bottom:.1f}v5"/>'
    # The last mark is aligned at its end, so that it does not extend beyond the right edge.
    return line + _text(min(x, frame.right), frame.bottom + 19.0, mark, "end" if frame.right - x < 12.0 else where)


def _text(x: float, y: float, words: str, anchor: str, css: str = "") -> str:
    kind = f' class="{css}"' if css else ""
    return f'<text{kind} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'


def _path(css: str, points: Sequence[tuple[float, float]]) -> str:
    if len(points) < 2:
        return ""
    return f'<path class="{css}" d="M{"L".join(f"{x:.1f} {y:.1f}" for x, y in points)}"/>'


def _polygon(chart: Chart, x: Callable[[float], float], y: Callable[[float], float]) -> str:
    if len(chart.band) < 2:
        return ""
    around = [(x(n), y(low)) for n, low, _ in chart.band] + [(x(n), y(high)) for n, _, high in reversed(chart.band)]
    return _path("band", around).replace('"/>', 'Z"/>')


def _points(chart: Chart, x: Callable[[float], float], y: Callable[[float], float]) -> list[str]:
    """Draw a dot at the end of the line, and a single interval, which cannot be drawn as a band."""
    n, value = chart.line[-1]
    alone = chart.band if len(chart.band) == 1 else ()
    bars = [f'<path class="whisker" d="M{x(at):.1f} {y(low):.1f}V{y(high):.1f}"/>' for at, low, high in alone]
    return [*bars, f'<circle class="now" cx="{x(n):.1f}" cy="{y(value):.1f}" r="4"/>']


def _named_limit(chart: Chart, frame: _Frame) -> list[str]:
    """Draw the name of the dashed line, in the upper right corner, which is empty."""
    if not chart.limit:
        return []
    value = chart.limit[-1][1]
    same = all(each == value for _, each in chart.limit)
    words = f"{chart.limit_name} {value:.3g}" if same else chart.limit_name
    start = frame.right - _LETTER * 1.1 * _WRITING * len(words) - 8.0
    dash = _path("limit", [(start - 26.0, 10.0), (start, 10.0)])
    return [dash, _text(frame.right, 14.0, words, "end", "limit-name")]


def _drawn_stop(chart: Chart, frame: _Frame, x: Callable[[float], float]) -> list[str]:
    if chart.stop is None:
        return []
    at = x(chart.stop)
    words, late = f"the rule says stop at {chart.stop:,} labels", at > (frame.left + frame.right) / 2.0
    line = f'<path class="stop" d="M{at:.1f} {frame.top:.1f}V{frame.bottom:.1f}"/>'
    place = at + 4.0 if late else at - 4.0
    return [line, _text(place, frame.top - 7.0, words, "end" if late else "start", "stop-name")]


def _drawn_ahead(chart: Chart, frame: _Frame, x: Callable[[float], float]) -> list[str]:
    if chart.ahead is None:
        return []
    low, middle, high = (x(float(n)) for n in chart.ahead)
    area = (
        f'<rect class="ahead" x="{low:.1f}" y="{frame.top:.1f}" width="{max(high - low, 2.0):.1f}" '
        f'height="{frame.bottom - frame.top:.1f}"/>'
    )
    line = f'<path class="ahead-line" d="M{middle:.1f} {frame.top:.1f}V{frame.bottom:.1f}"/>'
    late = middle > (frame.left + frame.right) / 2.0
    place = middle + 4.0 if late else middle - 4.0
    words = _text(place, frame.top - 7.0, "expected to be enough", "end" if late else "start", "ahead-name")
    return [area, line, words]


def both_widths(chart: Chart) -> str:
    """Return a chart for a wide page and one for a narrow page; the style sheet shows one of them."""
    return svg(chart, 920, 300, shown="wide") + "\n" + svg(chart, 340, 260, shown="narrow")


def chart(values: Sequence[float], threshold: float, *, width: int, height: int, plain: bool = False) -> list[str]:
    r"""Draw ``values`` on a log scale as rows of text, the threshold as a line.

    Each column shows the smallest and the largest value of its share of the steps as a bar of dots.

    Args:
        values: The curve, one entry per step; values of 0 are drawn at the bottom.
        threshold: Value at which the line is drawn.
        width: Number of columns, in addition to 7 for the axis.
        height: Number of rows.
        plain: Whether to use only ASCII characters.

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
        # A value above the threshold is always drawn above its line.
        return line - 1 if value > floor and line == at and line > 0 else line

    labels = [f"{math.exp(top - span * line / max(1, height - 1)):.2g}" for line in range(height)]
    labels[row(floor)] = f"{threshold:.2g}"
    return _drawn(values, row, [row(floor)] * width, labels, plain=plain)


def number_chart(  # noqa: PLR0913 - options of a drawing, by keyword
    values: Sequence[float], thresholds: Sequence[float], *, log: bool, width: int, height: int, plain: bool = False
) -> list[str]:
    r"""Draw the numbers that a rule compares, and their thresholds, as rows of text.

    Args:
        values: The curve, one entry per step; NaN for steps without a value. At least one is a number.
        thresholds: The threshold of each value; if all are equal, one line is drawn.
        log: Whether the scale is logarithmic; all numbers are above 0 then.
        width: Number of columns, in addition to 7 for the axis.
        height: Number of rows.
        plain: Whether to use only ASCII characters.

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
        # Space for values above and below the threshold, even if they are very close to it.
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
    """Return the lines of the curve, its threshold, whose row is given for each column, and the labels of the axis."""
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
    """Return the numbers that belong to one of ``width`` columns."""
    start, stop = (k * len(values) // width for k in (column, column + 1))
    return [value for value in values[start : max(stop, start + 1)] if not math.isnan(value)]
