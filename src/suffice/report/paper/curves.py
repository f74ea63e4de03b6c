"""The paper's figures of error and stopping time, model by model."""

from collections.abc import Sequence
from math import isinf
from typing import Any

import numpy as np

from suffice.data.protocols import MODELS
from suffice.experiments.paper.groups import (
    MedianAndRange,
    RunGroup,
    has_two_arms,
    main_arms,
    other_arm,
    spread,
    told_arm,
)
from suffice.report.paper.colours import COLOURS, STOPS
from suffice.report.style import INK, Sketch, few_ticks, literal, new_figure, say_beside, scale_errors, thinned
from suffice.special import Floats

_FIGURES = {"gpr": 4, "brr": 5, "blr": 6, "bdnn": 7}


def error_curves(groups: Sequence[RunGroup], protocol: str) -> Sketch:
    """Error against labels, a panel for each data set of one model, with the stop at each of the paper's thresholds.

    Args:
        groups: Runs of one model, at least one.
        protocol: The protocol, for the name.
    """
    model, drawn = groups[0].model, main_arms(groups)
    deep = model == "bdnn"
    number = 2 * len(drawn) if deep else len(drawn)
    rows, columns = -(-number // 2), min(number, 2)
    figure = new_figure(0.2 + 4.6 * columns, 0.2 + 2.9 * rows)
    grid = figure.add_gridspec(rows, columns)
    for place, runs in enumerate(drawn):
        if deep:
            _draw_pair(figure, grid[place, 0], runs, "error", title=f"(a) {runs.title}: error")
            _draw_pair(figure, grid[place, 1], runs, "ratio", title=f"(b) {runs.title}: error ratio")
        else:
            axis = _draw_pair(figure, grid[place // 2, place % 2], runs, "error", title=_named(place, runs))
            _draw_other(axis, other_arm(groups, runs))
    return Sketch(
        f"{protocol}-errors-{model}",
        f"{model.upper()}: error and stopping time",
        _curves_caption(groups, drawn),
        f"Curves of the error of {MODELS[model]} against labels; {_curves_in_words(drawn)}.",
        figure,
    )


def _named(place: int, runs: RunGroup) -> str:
    return f"({'abcdefgh'[place % 8]}) {runs.title}"


def _curves_caption(groups: Sequence[RunGroup], drawn: Sequence[RunGroup]) -> str:
    several = any(len(each.outcomes) > 1 for each in drawn)
    lines = " Thin lines: the seeds; thick line: their median." if several else ""
    both = has_two_arms(groups)
    dashed = " Dashed: the median with hyper-parameters from labels outside the run." if both else told_arm(groups)
    reach = " (their median; a bar from the first to the last, to the edge if some never did)" if several else ""
    count = ", with how many of the seeds stopped if not all did" if several else ""
    return (
        f"Figure {_FIGURES[groups[0].model]} of the paper.{lines}{dashed} Above each panel: the labels at which the "
        f"threshold λ stopped{reach}; the number is on the right{count}."
    )


def _draw_pair(figure: Any, place: Any, runs: RunGroup, what: str, *, title: str) -> Any:
    """Draw the curves of all seeds, and above them, where no curve can be in the way, the stops."""
    axis = figure.add_subplot(place)
    strip = axis.inset_axes((0.0, 1.0, 1.0, 0.25), sharex=axis)
    curves = [getattr(run, what) for run in runs.outcomes]
    _draw_curves(axis, runs, curves)
    _draw_stops(axis, strip, runs)
    scale_errors(axis, curves)
    first, last = runs.labels(max(map(len, curves)))[[0, -1]]
    # Labels that were there before the run are shown where they take little room.
    axis.set_xlim(0.0 if first < last / 4.0 else first, last)
    few_ticks(axis.xaxis)
    axis.set_xlabel("labels")
    axis.set_ylabel("error ratio" if what == "ratio" else "error")
    strip.set_title(literal(title))
    if what == "ratio":
        for threshold, colour in zip(runs.thresholds, STOPS, strict=True):
            axis.axhline(float(threshold), color=colour, lw=0.8, ls=(0, (4, 3)))
    return axis


def _draw_curves(axis: Any, runs: RunGroup, curves: Sequence[Floats]) -> None:
    colour = COLOURS[runs.model]
    if len(curves) > 1:
        for curve in curves:
            axis.plot(*thinned(runs.labels(len(curve)), curve), color=colour, lw=0.5, alpha=0.4)
    middle = _median(curves)
    axis.plot(*thinned(runs.labels(len(middle)), middle), color=colour, lw=1.5)


def _median(curves: Sequence[Floats]) -> Floats:
    # A median of fewer runs than before would jump where the shortest ends.
    shortest = min(map(len, curves))
    middle: Floats = np.median([curve[:shortest] for curve in curves], axis=0)
    return middle


def _draw_other(axis: Any, runs: RunGroup | None) -> None:
    if runs is not None:
        middle = _median([run.error for run in runs.outcomes])
        labels, error = thinned(runs.labels(len(middle)), middle)
        axis.plot(labels, error, color=INK, lw=0.9, ls=(0, (4, 2)), alpha=0.8)


def _draw_stops(axis: Any, strip: Any, runs: RunGroup) -> None:
    for row, (threshold, colour) in enumerate(zip(runs.thresholds, STOPS, strict=True)):
        found = spread(runs.stops(threshold))
        if found is None or isinf(found.lowest):
            continue
        last = runs.labels(max(run.steps for run in runs.outcomes))[-1]
        strip.plot([found.lowest, min(found.highest, last)], [row, row], color=colour, lw=2.2, alpha=0.5)
        if isinf(found.median):
            continue
        strip.plot(found.median, row, "o", color=colour, ms=4)
        strip.plot([found.median, found.median], [row, len(STOPS) + 0.1], color=colour, lw=1.0)
        axis.axvline(found.median, color=colour, lw=1.0)
    for row, threshold in enumerate(runs.thresholds):
        say_beside(strip, _number(spread(runs.stops(threshold)), runs.stopped(threshold)), row)
    strip.set_yticks(range(len(STOPS)), [f"λ = {each}" for each in runs.thresholds], fontsize=7)
    strip.set_ylim(len(STOPS) + 0.1, -0.7)
    strip.tick_params(axis="x", bottom=False, labelbottom=False)
    strip.tick_params(axis="y", length=0)
    strip.spines[["left", "bottom"]].set_visible(False)
    strip.set_facecolor("#f5f7fa")


def _number(found: MedianAndRange | None, stopped: int) -> str:
    if found is None or not stopped:
        return "never"
    middle = "never" if isinf(found.median) else f"{found.median:.0f}"
    return middle if stopped == found.number else f"{middle} ({stopped} of {found.number})"


def _curves_in_words(drawn: Sequence[RunGroup]) -> str:
    told = (
        f"{each.title} stops at "
        + ", ".join(f"{_number(spread(each.stops(at)), each.stopped(at))} for {at}" for at in each.thresholds)
        for each in drawn
    )
    return "; ".join(told)
