"""What the stops of the best rules cost beyond the best stop, from dear labels to dear errors."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from suffice.experiments.compare.board import Row
from suffice.report.compare.boards import REFERENCES, Leaderboard, mean_regrets
from suffice.report.compare.looks import MOST, rule_style
from suffice.report.style import GRID, Sketch, literal, new_figure
from suffice.special import Floats

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
