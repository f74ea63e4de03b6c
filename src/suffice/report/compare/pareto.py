"""Labels against error: what each rule trades for what, from its loosest setting to its strictest."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from suffice.experiments.compare.board import Row
from suffice.report.compare.boards import REFERENCES, Leaderboard
from suffice.report.style import INK, Sketch, literal, new_figure
from suffice.special import Floats

_RULE_COLOUR: Final = "#c0272d"
_OTHERS: Final = "#d3d9df"
_MOST_COLUMNS: Final = 5

Curves = Mapping[str, tuple[Floats, Floats]]


def pareto_figure(model: str, points: Sequence[Row], board: Leaderboard) -> Sketch | None:
    """A panel for each rule of a model with settings to choose from; None if there is none.

    Args:
        model: The model.
        points: Its part of what :func:`suffice.experiments.compare.board.curves` made.
        board: The board of its kind of task, for the order.
    """
    curves = _curves(points)
    rules = [row["rule"] for row in board.best if row["rule"] in curves and row["rule"] not in REFERENCES]
    if not rules:
        return None
    columns = min(len(rules), _MOST_COLUMNS)
    lines = -(-len(rules) // columns)
    figure = new_figure(0.4 + 2.1 * columns, 0.75 + 1.62 * lines)
    axes = np.atleast_1d(figure.subplots(lines, columns, sharex=True, sharey=True, squeeze=False).ravel())
    defaults = _defaults(points, board, model)
    for axis, rule in zip(axes, rules, strict=False):
        _draw_pareto_panel(axis, rule, curves, defaults)
    for axis in axes[len(rules) :]:
        axis.set_visible(False)
    _finish_pareto(axes, curves, len(rules), columns)
    figure.supxlabel("labels, in units of those at the first good step", fontsize=9)
    figure.supylabel("error, in units of the least of the run", fontsize=9)
    figure.legend(handles=_pareto_legend(curves), loc="outside upper center", ncols=2 if columns < 3 else 4, fontsize=8)
    about = points[0]
    runs = f"{about['runs']} runs on {about['data_sets']} data set{'s' if about['data_sets'] != 1 else ''}"
    return Sketch(
        f"labels-{model}",
        f"{model}: labels against error, from each rule's loosest setting to its strictest",
        f"Means over {runs}, each data set weighing the same; both axes are logarithmic.",
        f"Panels of labels against error, one for each of {', '.join(rules)}.",
        figure,
    )


def _curves(points: Sequence[Row]) -> dict[str, tuple[Floats, Floats]]:
    found: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for point in points:
        found[point["rule"]].append((point["labels"], point["error"]))
    return {rule: (np.array(several)[:, 0], np.array(several)[:, 1]) for rule, several in found.items()}


def _defaults(points: Sequence[Row], board: Leaderboard, model: str) -> dict[str, tuple[float, float]]:
    """Where the literature's setting of each rule is on its curve."""
    given = {
        row["rule"]: next(iter(row["params"].values()))
        for row in board.rows
        if row["setting"] == "default" and row["model"] == model and row["params"]
    }
    return {
        point["rule"]: (point["labels"], point["error"])
        for point in points
        if point["rule"] in given and point["value"] == given[point["rule"]]
    }


def _draw_pareto_panel(axis: Any, rule: str, curves: Curves, defaults: Mapping[str, tuple[float, float]]) -> None:
    from matplotlib.collections import LineCollection

    others = [np.column_stack(curve) for other, curve in curves.items() if other not in (rule, *REFERENCES)]
    axis.add_collection(LineCollection(others, colors=_OTHERS, linewidths=0.6, zorder=1))
    if "Budget" in curves:
        axis.plot(*curves["Budget"], color=INK, lw=1.0, ls=(0, (4, 2)), zorder=2)
    axis.plot(*curves[rule], color=_RULE_COLOUR, lw=1.6, marker=".", ms=3.5, zorder=3)
    if rule in defaults:
        axis.plot(*defaults[rule], "D", ms=5.5, mfc="white", mec=INK, mew=1.2, zorder=4)
    axis.set_title(literal(_folded(rule)), fontsize=8)


def _folded(rule: str) -> str:
    """A long name on two lines."""
    if len(rule) <= 26:
        return rule
    for mark in (" of ", ", ", " "):
        if mark in rule:
            first, rest = rule.split(mark, 1)
            return f"{first}{mark.rstrip()}\n{rest}"
    return rule


def _finish_pareto(axes: Any, curves: Curves, number: int, columns: int) -> None:
    from matplotlib.ticker import FixedLocator, NullFormatter, NullLocator, StrMethodFormatter

    first = axes[0]
    first.set_xscale("log")
    first.set_yscale("log")
    # A data set or two on which a rule never gets going must not press all others into a corner.
    labels, errors = (np.concatenate([curve[at] for curve in curves.values()]) for at in (0, 1))
    first.set_xlim(0.88 * labels.min(), 1.14 * labels.max())
    first.set_ylim(0.88 * errors.min(), 1.2 * errors.max())
    for side, (low, high) in ((first.xaxis, first.get_xlim()), (first.yaxis, first.get_ylim())):
        wide = high > 40.0 * low
        steps = (1.0,) if high > 2e3 * low else (1.0, 3.0) if wide else (1.0, 2.0, 5.0)
        ticks = [step * 10.0**power for power in range(-4, 9) for step in steps]
        side.set_major_locator(FixedLocator([each for each in ticks if low <= each <= high]))
        side.set_minor_locator(NullLocator())
        side.set_major_formatter(StrMethodFormatter("{x:g}"))
        side.set_minor_formatter(NullFormatter())
    for place, axis in enumerate(axes[:number]):
        # The lowest panel of a column has the numbers, also where the last row is not full.
        axis.tick_params(labelbottom=place + columns >= number, labelsize=7)


def _pareto_legend(curves: Curves) -> list[Any]:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=_RULE_COLOUR, lw=1.6, marker=".", ms=4, label="the rule"),
        Line2D([], [], ls="", marker="D", ms=5.5, mfc="white", mec=INK, mew=1.2, label="its default"),
    ]
    if "Budget" in curves:
        handles.append(Line2D([], [], color=INK, lw=1.0, ls=(0, (4, 2)), label="a fixed budget"))
    return [*handles, Line2D([], [], color=_OTHERS, lw=1.0, label="the other rules")]
