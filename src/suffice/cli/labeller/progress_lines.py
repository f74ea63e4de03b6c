"""Whether it is enough, as lines: the verdict, the curve behind it, and what more labels would buy."""

import math
from typing import Final

from rich.text import Text

from suffice.cli.labeller.paper import Viewport, wrapped
from suffice.cli.labeller.view import LabellerView
from suffice.cli.labeller.visible import visible
from suffice.cli.rule_values import RuleValues
from suffice.presentation.messages import RATIO_RULE
from suffice.presentation.text_chart import chart
from suffice.session.insight import LearningStatus
from suffice.session.summary import learning_sentences

# A chart of fewer lines shows nothing, and of more nothing more.
_LOWEST: Final = 5
_HIGHEST: Final = 18
# The axis takes these, and the caption and the numbers below it take two lines and an empty one.
_AXIS: Final = 9
_AROUND: Final = 3
_COLOURS: Final = {"•": "cyan", "*": "cyan", "╌": "yellow", "-": "yellow"}


def can_stop(learning_status: LearningStatus) -> bool:
    """Whether the rule says that it is enough."""
    return learning_status.verdict is not None and learning_status.verdict.stop


def progress_lines(view: LabellerView, viewport: Viewport) -> list[Text]:
    """As much as fits: the sentences that matter most, and the curve.

    Args:
        view: What is shown.
        viewport: The area.
    """
    said = [wrapped(sentence, viewport.width) for sentence in _said(view, viewport)]
    least = _LOWEST + _AROUND if has_curve(view.learning_status) and viewport.width >= _AXIS + 12 else 0
    # The first two sentences matter more than the curve; the others less.
    while len(said) > 1 and _height(said) + (least if len(said) > 2 else 0) > viewport.height:
        said.pop()
    height = viewport.height - _height(said) - _AROUND
    curve = _curve(view, viewport.part(viewport.width, min(height, _HIGHEST))) if least and height >= _LOWEST else []
    style = "bold green" if can_stop(view.learning_status) else "bold"
    lines = [Text(line, style) for line in said[0]] if said else []
    for paragraph in said[1:]:
        lines += [Text(), *map(Text, paragraph)]
    return lines + curve


def first_lines(view: LabellerView, width: int) -> int:
    """How many lines of some width the first sentence takes."""
    return len(wrapped(next(iter(_said(view, Viewport(width, 1))), ""), width))


def has_curve(learning_status: LearningStatus) -> bool:
    """Whether there is something to draw."""
    return any(math.isfinite(point.value) for point in learning_status.curve)


def _said(view: LabellerView, viewport: Viewport) -> list[str]:
    counts = view.counts
    said = learning_sentences(view.learning_status, view.settings, counts.labelled, size=counts.size - counts.skipped)
    # Wrapped, a number should not lose its unit.
    return [visible(sentence, viewport.encoding).replace(" %", "\u00a0%") for sentence in said]


def _height(said: list[tuple[str, ...]]) -> int:
    return sum(map(len, said)) + max(0, len(said) - 1)


def _curve(view: LabellerView, viewport: Viewport) -> list[Text]:
    """The curve with a caption above and the numbers of labels below."""
    points = [point for point in view.learning_status.curve if math.isfinite(point.value)]
    rule = type(view.settings.criterion()).__name__
    values = [point.value for point in points]
    thresholds = [math.nan if point.threshold is None else point.threshold for point in points]
    found = RuleValues(rule, values, thresholds)
    width, height = max(8, viewport.width - _AXIS), max(3, viewport.height)
    if rule == RATIO_RULE and found.threshold is not None:
        drawing = chart(values, found.threshold, width=width, height=height, plain=viewport.plain)
    else:
        drawing = found.chart(width=width, height=height, plain=viewport.plain)
    first, last = f"{points[0].n_labelled:,}", f"{points[-1].n_labelled:,} labels"
    axis = f"{'':>8}{first}{last:>{max(1, width - len(first))}}" if len(points) > 1 else f"{'':>8}{last}"
    return [
        Text(),
        Text(
            found.caption if len(found.caption) <= viewport.width else viewport.cut(found.name, viewport.width), "dim"
        ),
        *map(_coloured, drawing),
        Text(axis, "dim", no_wrap=True),
    ]


def _coloured(line: str) -> Text:
    """A line of the chart, the curve apart from the threshold and the axis."""
    axis = max(line.find("┤"), line.find("|")) + 1
    return Text.assemble((line[:axis], "dim"), *((letter, _COLOURS.get(letter, "")) for letter in line[axis:]))
