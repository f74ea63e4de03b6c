"""The figures of the comparison."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any, Final

import numpy as np

from suffice.numerics import Floats
from suffice.recommendation.compared_rules import AT_ONCE
from suffice.report.figure_style import GRID, INK, MUTED, Drawn, Sketch, draw_all, literal, new_figure, say_beside
from suffice.research.compare.comparison_tables import REFERENCES, Leaderboard, mean_regrets, runs_of, short
from suffice.research.compare.leaderboard import Row


@dataclass(frozen=True)
class RuleStyle:
    """Colour and marker of a rule in the figures.

    Attributes:
        colour: Of its line and marks.
        marker: Shape of its marks.
        dashes: Of its line.
    """

    colour: str
    marker: str
    dashes: Any = "-"


#: For rules from the best on; they go from dark to light and back, so that neighbours differ without colours too.
_RANKED: Final = (
    RuleStyle("#0b3c6f", "o"),
    RuleStyle("#d55e00", "s"),
    RuleStyle("#00664b", "^"),
    RuleStyle("#e69f00", "D"),
    RuleStyle("#8c2d6e", "v"),
    RuleStyle("#56a4d9", "P"),
    RuleStyle("#5c3d1e", "X"),
    RuleStyle("#d47fb4", "p"),
)
#: The references, all in grey.
_REFERENCES: Final = {
    "Budget": RuleStyle(INK, "", (0, (5, 2))),
    "PoolFraction": RuleStyle(INK, "", (0, (5, 2, 1, 2))),
    "Never": RuleStyle(MUTED, "", (0, (1, 1.5))),
    "RandomStop": RuleStyle(MUTED, "", (0, (3, 1.5, 1, 1.5))),
}
#: How many rules are told apart.
MOST: Final = len(_RANKED)


def rule_style(rule: str, place: int) -> RuleStyle:
    """Return the style of the rule at a place among the best; that of a reference is fixed.

    Examples:
        >>> rule_style("Budget", 3).colour, rule_style("LabelWorth", 0).marker
        ('#1f2933', 'o')
    """
    if rule in REFERENCES:
        return _REFERENCES.get(rule, RuleStyle(MUTED, ""))
    return _RANKED[place % MOST]


_RULE_COLOUR: Final = "#c0272d"
_OTHERS: Final = "#d3d9df"
_MOST_COLUMNS: Final = 5

Curves = Mapping[str, tuple[Floats, Floats]]


def pareto_figure(model: str, points: Sequence[Row], board: Leaderboard) -> Sketch | None:
    """A panel for each rule of a model with settings to choose from; None if there is none.

    Args:
        model: The model.
        points: Its part of what :func:`suffice.research.compare.leaderboard.curves` made.
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
    """Position of the literature's setting of each rule on its curve."""
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


#: References that are drawn beside the best rules. A stop at once, where errors are dear, would press all others down.
_REFERENCES_DRAWN: Final = ("Budget", "Never", "RandomStop")
#: Below this the axis is linear, so that it can show a regret of 0.
_LINEAR: Final = 0.1


def regret_figure(board: Leaderboard) -> Sketch:
    """Mean regret against what an error costs, for the best rules and the references."""
    ranked = board.best
    rules = [row for row in ranked if row["rule"] not in REFERENCES][:MOST]
    drawn = rules + [row for row in ranked if row["rule"] in _REFERENCES_DRAWN]
    figure = new_figure(9.4, 4.6)
    axis = figure.add_subplot()
    curves = [_curve(board, row) for row in drawn]
    for place, (row, curve) in enumerate(zip(drawn, curves, strict=True)):
        _draw(axis, row, curve, place)
    _finish_regrets(axis, max(float(values.max()) for _, values in curves))
    figure.legend(loc="outside right upper", fontsize=8, handlelength=3.2, labelspacing=0.75)
    sets = len({row["data"] for row in board.rows})
    named = [f"the best {len(rules)} rules"] * bool(rules) + [row["rule"] for row in drawn[len(rules) :]]
    return Sketch(
        f"regret-{board.key}",
        f"{board.title}: regret against what an error costs",
        f"Mean relative regret of {', '.join(named)}, over {'1 data set' if sets == 1 else f'{sets} data sets'}, each "
        "weighing the same; the rules in the order of their mean over all costs, each set in the way that does best on "
        f"the whole (after the comma). Below {_LINEAR:g} the axis is linear.",
        f"Curves of the mean relative regret; {_regrets_in_words(drawn, curves)}.",
        figure,
    )


def _curve(board: Leaderboard, row: Row) -> tuple[Floats, Floats]:
    """Ratios, and mean regrets there."""
    found = mean_regrets(board.shown(row["rule"], row["setting"]))
    return np.array([float(ratio) for ratio in found]), np.array(list(found.values()))


def _draw(axis: Any, row: Row, curve: tuple[Floats, Floats], place: int) -> None:
    how = rule_style(row["rule"], place)
    axis.plot(
        *curve,
        color=how.colour,
        ls=how.dashes,
        lw=1.6 if how.marker else 1.3,
        marker=how.marker,
        # Marks in turn: of lines that lie on each other both show.
        markevery=(place % 2, 2),
        ms=5,
        mec="white",
        mew=0.5,
        label=literal(_curve_label(row)),
    )


def _curve_label(row: Row) -> str:
    return f"{row['rule']}, {row['setting']}" if row["setting"] != "reference" else str(row["rule"])


def _finish_regrets(axis: Any, highest: float) -> None:
    from matplotlib.ticker import FixedLocator, NullFormatter, NullLocator, StrMethodFormatter

    axis.set_xscale("log")
    axis.set_yscale("symlog", linthresh=_LINEAR, linscale=0.6)
    top = max(1.0, 1.15 * highest)
    axis.set_ylim(0.0, top)
    decades = [10.0**power for power in range(-1, int(np.floor(np.log10(top))) + 1)]
    axis.yaxis.set_major_locator(FixedLocator([0.0, *decades]))
    axis.yaxis.set_minor_locator(FixedLocator([step * each for each in decades for step in (2.0, 5.0)]))
    axis.xaxis.set_minor_locator(NullLocator())
    axis.yaxis.set_minor_formatter(NullFormatter())
    for side in (axis.xaxis, axis.yaxis):
        side.set_major_formatter(StrMethodFormatter("{x:,g}"))
    axis.grid(axis="y", color=GRID, lw=0.7)
    axis.set_axisbelow(True)
    axis.margins(x=0.02)
    axis.set_xlabel("cost of an error of 1, in labels")
    axis.set_ylabel("mean relative regret")


def _regrets_in_words(drawn: Sequence[Row], curves: Sequence[tuple[Floats, Floats]]) -> str:
    return "; ".join(
        f"{_curve_label(row)}: {values[0]:.2g} at {ratios[0]:g}, {values[-1]:.2g} at {ratios[-1]:g}"
        for row, (ratios, values) in zip(drawn, curves, strict=True)
    )


_STOP_COLOUR: Final = "#1f5fbf"
_GOOD: Final = "#cfe8d5"
_GOOD_INK: Final = "#1b6e3c"
#: References that have a stop of their own to show.
_BUDGETS: Final = frozenset({"Budget", "PoolFraction", "CostLimit", "TimeLimit"})
#: For the least number of labels at a time, the next, and so on.
_SHAPES: Final = "o^sDv"
_SIZE: Final = 4.4
_TICKS: Final = tuple(step * 10**power for power in range(5) for step in (1, 2, 5))


def stops_figure(data: str, board: Leaderboard) -> Sketch:
    """A strip for each rule with the labels at its stops, a panel for each model.

    Args:
        data: The data set.
        board: The board of its kind of task, which has the order of the rules and the way each is set.
    """
    rows = [row for row in board.rows if row["data"] == data]
    models = list(dict.fromkeys(row["model"] for row in rows))
    ranked = [row for row in board.best if row["rule"] not in REFERENCES - _BUDGETS]
    # Rules first, from the best on, then the references.
    shown = sorted(ranked, key=lambda row: row["rule"] in REFERENCES)
    figure = new_figure(2.9 + 4.1 * len(models), 1.15 + 0.195 * len(shown))
    shapes = dict(zip(sorted({row["batch"] for row in rows}), cycle(_SHAPES), strict=False))
    axes = figure.subplots(1, len(models), sharey=True, squeeze=False)[0]
    for axis, model in zip(axes, models, strict=True):
        own = [row for row in rows if row["model"] == model]
        _draw_stops_panel(axis, own, shown, shapes)
        axis.set_title(f"{literal(short(data))}, {model}")
    axes[0].set_yticks(range(len(shown)), [literal(_row_title(row)) for row in shown], fontsize=7.5)
    axes[0].set_ylim(len(shown) - 0.4, -0.6)
    figure.legend(handles=_stops_legend(rows, shapes), loc="outside lower center", ncols=1 + len(models), fontsize=8)
    return Sketch(
        f"stops-{_safe(data)}",
        f"{short(data)}: where each rule stops",
        "Rules in the order of the leaderboard, the references last. On the right the median of the labels at the "
        "stop, and how many runs stopped if not all did.",
        f"Strips of the labels at the stops on {short(data)}; {_stops_in_words(rows, shown)}.",
        figure,
    )


def _draw_stops_panel(axis: Any, rows: Sequence[Row], shown: Sequence[Row], shapes: Mapping[int, str]) -> None:
    runs = runs_of(rows)
    good = np.array([row["labels"] - row["over"] for row in runs])
    axis.axvspan(good.min(), good.max(), color=_GOOD, lw=0, zorder=0)
    axis.axvline(float(np.median(good)), color=_GOOD_INK, lw=1.2, zorder=1)
    best = [row["labels"] for row in rows if row["rule"] == "Oracle"]
    if best:
        axis.axvline(float(np.median(best)), color=INK, lw=1.1, ls=(0, (4, 2)), zorder=1)
    for y, each in enumerate(shown):
        axis.axhline(y, color=GRID, lw=0.6, zorder=0)
        own = [row for row in rows if (row["rule"], row["setting"]) == (each["rule"], each["setting"])]
        if own:
            _draw_strip(axis, own, y, shapes)
    _finish_stops(axis, rows)


def _draw_strip(axis: Any, rows: Sequence[Row], y: int, shapes: Mapping[int, str]) -> None:
    colour = MUTED if rows[0]["rule"] in REFERENCES else _STOP_COLOUR
    for batch, shape in shapes.items():
        for fired, look in ((True, {"mew": 0.0, "alpha": 0.55}), (False, {"mfc": "white", "mew": 0.9})):
            labels = [row["labels"] for row in rows if row["batch"] == batch and bool(row["fired"]) is fired]
            if labels:
                axis.plot(labels, [y] * len(labels), shape, ms=_SIZE, color=colour, zorder=3, clip_on=False, **look)
    say_beside(axis, _number(rows), y)


def _number(rows: Sequence[Row]) -> str:
    fired = sum(bool(row["fired"]) for row in rows)
    # A run that did not stop counts as later than all others.
    labels = sorted(row["labels"] if row["fired"] else np.inf for row in rows)
    middle = labels[(len(labels) - 1) // 2]
    said = "never" if np.isinf(middle) else f"{middle:.0f}"
    return said if fired in (0, len(rows)) else f"{said} ({fired} of {len(rows)})"


def _finish_stops(axis: Any, rows: Sequence[Row]) -> None:
    from matplotlib.ticker import FixedLocator, NullLocator, StrMethodFormatter

    # A stop at once has no strip, and needs no room.
    labels = [row["labels"] for row in rows if row["rule"] != AT_ONCE] or [row["labels"] for row in rows]
    low, high = 0.93 * min(labels), 1.05 * max(labels)
    axis.set_xscale("log")
    axis.set_xlim(low, high)
    axis.xaxis.set_major_locator(FixedLocator([tick for tick in _TICKS if low <= tick <= high]))
    axis.xaxis.set_minor_locator(NullLocator())
    axis.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axis.tick_params(axis="y", length=0)
    axis.spines["left"].set_visible(False)
    axis.set_xlabel("labels at the stop")


def _row_title(row: Row) -> str:
    return f"{row['rule']}, {row['setting']}"


def _safe(data: str) -> str:
    """The name of a data set as part of a file's name."""
    return "".join(letter if letter.isalnum() or letter in "._" else "_" for letter in short(data))


def _stops_legend(rows: Sequence[Row], shapes: Mapping[int, str]) -> list[Any]:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    def mark(shape: str, face: str, label: str) -> Any:
        return Line2D([], [], ls="", marker=shape, ms=_SIZE, mfc=face, mec=_STOP_COLOUR, mew=0.9, label=label)

    handles = [
        Patch(color=_GOOD, label="first good step, first run to last"),
        Line2D([], [], color=_GOOD_INK, lw=1.2, label="first good step, median"),
        Line2D([], [], color=INK, lw=1.1, ls=(0, (4, 2)), label="best stop, median"),
    ]
    if len(shapes) > 1:
        handles += [mark(shape, _STOP_COLOUR, f"{batch} at a time") for batch, shape in shapes.items()]
    if not all(row["fired"] for row in rows):
        handles.append(mark("o", "white", "no stop"))
    return handles


def _stops_in_words(rows: Sequence[Row], shown: Sequence[Row]) -> str:
    told = []
    for each in shown:
        own = [row for row in rows if (row["rule"], row["setting"]) == (each["rule"], each["setting"])]
        if own:
            told.append(f"{each['rule']} {_number(own)}")
    return "; ".join(told)


def draw_comparison(boards: Sequence[Leaderboard], points: Sequence[Row], folder: Path) -> list[Drawn]:
    """Draw the comparison, each figure as PNG and as PDF. The same runs give the same bytes.

    Args:
        boards: The rules ranked, kind by kind.
        points: What :func:`suffice.research.compare.leaderboard.curves` made.
        folder: Folder for the files, created if missing.

    Raises:
        MissingExtraError: matplotlib is not installed.
        SufficeError: A file cannot be written.
    """
    return draw_all(sketches(boards, points), folder, "drawing figures")


def sketches(boards: Sequence[Leaderboard], points: Sequence[Row]) -> Iterator[Sketch]:
    """The figures one after the other, not yet in files."""
    kinds = [board for board in boards if board.key != "all"]
    for board in boards:
        yield regret_figure(board)
    for board in kinds:
        for model in dict.fromkeys(row["model"] for row in board.rows):
            sketch = pareto_figure(model, [point for point in points if point["model"] == model], board)
            if sketch is not None:
                yield sketch
    for board in kinds:
        for data in dict.fromkeys(row["data"] for row in board.rows):
            yield stops_figure(data, board)
