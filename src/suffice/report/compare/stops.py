"""Where each rule stops on a data set, seed by seed, and where it would have been right to."""

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any, Final

import numpy as np

from suffice.experiments.compare.board import Row
from suffice.experiments.compare.rules import AT_ONCE
from suffice.report.compare.boards import REFERENCES, Leaderboard, runs_of, short
from suffice.report.style import GRID, INK, MUTED, Sketch, literal, new_figure, say_beside

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
