"""Whether it is enough, as lines: the verdict, the curve behind it, and what more labels would buy."""

import math
from typing import Final

from rich.text import Text

from suffice.cli.labeller.paper import Paper, wrapped
from suffice.cli.labeller.view import View
from suffice.cli.labeller.visible import visible
from suffice.cli.rule_values import RuleValues
from suffice.presentation.messages import RATIO_RULE
from suffice.presentation.text_chart import chart
from suffice.session.insight import Insight
from suffice.session.summary import learning_sentences

# A chart of fewer lines shows nothing, and of more nothing more.
_LOWEST: Final = 5
_HIGHEST: Final = 18
# The axis takes these, and the caption and the numbers below it take two lines and an empty one.
_AXIS: Final = 9
_AROUND: Final = 3
_COLOURS: Final = {"•": "cyan", "*": "cyan", "╌": "yellow", "-": "yellow"}


def can_stop(insight: Insight) -> bool:
    """Whether the rule says that it is enough."""
    return insight.verdict is not None and insight.verdict.stop


def progress_lines(view: View, paper: Paper) -> list[Text]:
    """As much as there is room for: the sentences that matter most, and the curve.

    Args:
        view: What is shown.
        paper: The room.
    """
    said = [wrapped(sentence, paper.width) for sentence in _said(view, paper)]
    least = _LOWEST + _AROUND if has_curve(view.insight) and paper.width >= _AXIS + 12 else 0
    # The first two sentences matter more than the curve; the others less.
    while len(said) > 1 and _height(said) + (least if len(said) > 2 else 0) > paper.height:
        said.pop()
    room = paper.height - _height(said) - _AROUND
    curve = _curve(view, paper.part(paper.width, min(room, _HIGHEST))) if least and room >= _LOWEST else []
    style = "bold green" if can_stop(view.insight) else "bold"
    lines = [Text(line, style) for line in said[0]] if said else []
    for paragraph in said[1:]:
        lines += [Text(), *map(Text, paragraph)]
    return lines + curve


def first_lines(view: View, width: int) -> int:
    """How many lines of some width the first sentence takes."""
    return len(wrapped(next(iter(_said(view, Paper(width, 1))), ""), width))


def has_curve(insight: Insight) -> bool:
    """Whether there is something to draw."""
    return any(math.isfinite(point.value) for point in insight.curve)


def _said(view: View, paper: Paper) -> list[str]:
    counts = view.counts
    said = learning_sentences(view.insight, view.settings, counts.labelled, size=counts.size - counts.skipped)
    # Wrapped, a number should not lose its unit.
    return [visible(sentence, paper.encoding).replace(" %", "\u00a0%") for sentence in said]


def _height(said: list[tuple[str, ...]]) -> int:
    return sum(map(len, said)) + max(0, len(said) - 1)


def _curve(view: View, paper: Paper) -> list[Text]:
    """The curve with a caption above and the numbers of labels below."""
    points = [point for point in view.insight.curve if math.isfinite(point.value)]
    rule = type(view.settings.criterion()).__name__
    values = [point.value for point in points]
    thresholds = [math.nan if point.threshold is None else point.threshold for point in points]
    found = RuleValues(rule, values, thresholds)
    width, height = max(8, paper.width - _AXIS), max(3, paper.height)
    if rule == RATIO_RULE and found.threshold is not None:
        drawing = chart(values, found.threshold, width=width, height=height, plain=paper.plain)
    else:
        drawing = found.chart(width=width, height=height, plain=paper.plain)
    first, last = f"{points[0].n_labelled:,}", f"{points[-1].n_labelled:,} labels"
    axis = f"{'':>8}{first}{last:>{max(1, width - len(first))}}" if len(points) > 1 else f"{'':>8}{last}"
    return [
        Text(),
        Text(found.caption if len(found.caption) <= paper.width else paper.cut(found.name, paper.width), "dim"),
        *map(_coloured, drawing),
        Text(axis, "dim", no_wrap=True),
    ]


def _coloured(line: str) -> Text:
    """A line of the chart, the curve apart from the threshold and the axis."""
    axis = max(line.find("┤"), line.find("|")) + 1
    return Text.assemble((line[:axis], "dim"), *((letter, _COLOURS.get(letter, "")) for letter in line[axis:]))
