"""The paper's twelve scatter plots: error ratio against error where the ratio is lower than ever before."""

from collections.abc import Sequence
from typing import Any

from suffice.experiments.paper.groups import RunGroup, main_arms, spread, told_arm
from suffice.experiments.paper.measures import running_minima
from suffice.experiments.paper.outcome import RunOutcome
from suffice.report.paper.colours import COLOURS
from suffice.report.style import Sketch, few_ticks, literal, new_figure

#: The rows of the paper's figure.
_ROWS = (("gpr",), ("brr",), ("blr", "bdnn"))


def scatter(groups: Sequence[RunGroup], protocol: str) -> Sketch | None:
    """A panel for each experiment, in the paper's rows; None if no run is long enough to have a point."""
    drawn = [each for each in main_arms(groups) if any(map(_counts, each.outcomes))]
    rows = [row for models in _ROWS if (row := [each for each in drawn if each.model in models])]
    if not rows:
        return None
    columns = max(map(len, rows))
    figure = new_figure(0.3 + 2.45 * columns, 0.3 + 2.2 * len(rows))
    grid = figure.add_gridspec(len(rows), columns)
    for y, row in enumerate(rows):
        for x, runs in enumerate(row):
            axis = figure.add_subplot(grid[y, x])
            _draw_scatter_panel(axis, runs)
            # What every panel has in common is said once a row and once a column.
            axis.set_ylabel("error ratio" if x == 0 else "")
            below = y + 1 < len(rows) and x < len(rows[y + 1])
            axis.set_xlabel("" if below else "error")
    several = any(len(each.outcomes) > 1 for each in drawn)
    faint = (
        " In full colour: the run whose correlation r is the middle one. Faint: the other seeds, as far as they fit in."
        if several
        else " r is the correlation."
    )
    return Sketch(
        f"{protocol}-scatter",
        "Error ratio against error",
        f"Figure 3 of the paper: one point for each acquisition at which the ratio was lower than ever before.{faint}"
        f"{told_arm(drawn)} Labelling goes from top to bottom. Both axes are linear, as the correlation is.",
        f"Scatter plots of error ratio against error, {_scatter_in_words(drawn)}.",
        figure,
    )


def _counts(run: RunOutcome) -> bool:
    return len(run.ratio) > run.counted_from


def _draw_scatter_panel(axis: Any, runs: RunGroup) -> None:
    typical, colour = runs.typical, COLOURS[runs.model]
    for run in runs.outcomes:
        if run is not typical and _counts(run):
            _draw_points(axis, run, color=colour, ms=2.0, alpha=0.18)
    if _counts(typical):
        _draw_points(axis, typical, color=colour, ms=3.0, alpha=0.75)
        # A single seed that begins far out would press all the others into a corner.
        axis.set_ylim(0.0, 1.05 * max(1.0, typical.ratio[typical.counted_from]))
    mark = f"({runs.letter}) " if runs.letter else ""
    axis.set_title(literal(f"{mark}{runs.model.upper()} {runs.title}\nr = {_middle(runs)}"), fontsize=8.5)
    few_ticks(axis.xaxis, axis.yaxis, most=4)
    axis.margins(x=0.08)


def _draw_points(axis: Any, run: RunOutcome, **style: Any) -> None:
    at = running_minima(run.ratio, run.counted_from)
    axis.plot(run.error[at], run.ratio[at], "o", mew=0, **style)


def _middle(runs: RunGroup) -> str:
    found = runs.typical.correlation
    return "undefined" if not runs.correlations or found is None else f"{found:.3f}"


def _scatter_in_words(drawn: Sequence[RunGroup]) -> str:
    known = spread(value for each in drawn for value in each.correlations)
    reach = f"; correlations from {known.lowest:.2f} to {known.highest:.2f}" if known else ""
    names = ", ".join(f"{each.model.upper()} {each.title}" for each in drawn)
    return f"one panel for each of {names}{reach}"
