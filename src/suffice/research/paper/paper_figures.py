"""The figures of the paper, redrawn from our runs, and one more."""

from collections.abc import Iterable, Iterator, Sequence
from math import isfinite, isinf
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from suffice.numerics import Floats
from suffice.report.figure_style import (
    GRID,
    INK,
    MUTED,
    Drawn,
    Sketch,
    draw_all,
    few_ticks,
    literal,
    new_figure,
    require_matplotlib,
    say_beside,
    scale_errors,
    thinned,
)
from suffice.research.data.protocols import MODELS, PROTOCOLS
from suffice.research.paper.claims import HIGH
from suffice.research.paper.groups import (
    MedianAndRange,
    RunGroup,
    grouped,
    has_two_arms,
    main_arms,
    of_model,
    on_several_sets,
    other_arm,
    spread,
    told_arm,
)
from suffice.research.paper.outcome import RunOutcome, running_minima

#: The paper's colours of the models, dark enough for a thin line on white.
COLOURS: Final = MappingProxyType({"gpr": "#c0272d", "brr": "#2e7d32", "blr": "#1f5fbf", "bdnn": "#7b2d8e"})
#: Of the paper's thresholds, the largest first.
STOPS: Final = ("#9aa5b1", "#616e7c", "#1f2933")


#: What the paper claims of all but one.
_GAP = 0.7


def correlations(groups: Sequence[RunGroup], protocol: str) -> Sketch:
    """Bars in the paper's order and colours, the published values beside them; of several arms one below the other."""
    experiments: dict[str, list[RunGroup]] = {}
    for each in groups:
        experiments.setdefault(each.name, []).append(each)
    places = _places(list(experiments.values()))
    figure = new_figure(9.0, 1.3 + 0.24 * places[-1][-1])
    axis = figure.add_subplot()
    for arms, rows in zip(experiments.values(), places, strict=True):
        for runs, y in zip(arms, rows, strict=True):
            _draw_bar(axis, runs, y, light=runs.arm == "outside" and has_two_arms(groups))
        _mark_published(axis, arms[0], rows)
    _finish(axis, groups, places, list(experiments.values()))
    figure.legend(handles=_legend(groups), loc="outside lower center", ncols=4, fontsize=8)
    several = any(len(each.outcomes) > 1 for each in groups)
    bars = "medians over the seeds, with lines from the lowest to the highest" if several else "those measured here"
    lighter = (
        " Of two bars the lighter one has its hyper-parameters from labels outside the run."
        if has_two_arms(groups)
        else ""
    )
    return Sketch(
        f"{protocol}-correlations",
        "Correlation of error ratio and error",
        f"Figure 2 of the paper. Bars are {bars}; diamonds are what the paper gives.{lighter}{told_arm(groups)}",
        f"Bars of the correlation, {_correlations_in_words(groups)}.",
        figure,
    )


def _places(experiments: Sequence[Sequence[RunGroup]]) -> list[list[float]]:
    """Heights of the bars from above: arms close together, a gap after an experiment and one more after a model."""
    places, y, model = [], 0.0, experiments[0][0].model
    for arms in experiments:
        y += _GAP if arms[0].model != model else 0.0
        model = arms[0].model
        places.append([y + 1.0 * number for number in range(1, len(arms) + 1)])
        y = places[-1][-1] + (0.35 if len(arms) > 1 else 0.15)
    return places


def _draw_bar(axis: Any, runs: RunGroup, y: float, *, light: bool) -> None:
    found, colour = spread(runs.correlations), COLOURS[runs.model]
    if found is not None:
        axis.barh(y, found.median, height=0.86, color=colour, alpha=0.45 if light else 0.9, lw=0)
        if found.number > 1:
            axis.plot([found.lowest, found.highest], [y, y], color=INK, lw=1.1, solid_capstyle="butt")
            axis.plot([found.lowest, found.highest], [y, y], "|", color=INK, ms=5, mew=1.1)
    say_beside(axis, _correlation_number(runs), y, size=7.5)


def _correlation_number(runs: RunGroup) -> str:
    found, lacking = spread(runs.correlations), len(runs.outcomes) - len(runs.correlations)
    if found is None:
        return "undefined"
    reach = f"  ({found.lowest:.2f} to {found.highest:.2f})" if found.number > 1 else ""
    return f"{found.median:.3f}{reach}" + f", {lacking} undefined" * bool(lacking)


def _mark_published(axis: Any, runs: RunGroup, rows: Sequence[float]) -> None:
    if runs.published is not None:
        middle = (rows[0] + rows[-1]) / 2.0
        axis.plot(runs.published, middle, "D", ms=5.5, mfc="white", mec=INK, mew=1.2, zorder=4)


def _finish(
    axis: Any, groups: Sequence[RunGroup], places: list[list[float]], experiments: list[list[RunGroup]]
) -> None:
    middles = [(rows[0] + rows[-1]) / 2.0 for rows in places]
    axis.set_yticks(middles, [literal(f"{arms[0].model.upper()}  {arms[0].title}") for arms in experiments])
    for name, arms in zip(axis.get_yticklabels(), experiments, strict=True):
        name.set_color(COLOURS[arms[0].model])
    axis.tick_params(axis="y", length=0)
    axis.set_ylim(places[-1][-1] + 0.7, places[0][0] - 0.7)
    lowest = min([0.0, *(value for each in groups for value in each.correlations)])
    axis.set_xlim(1.06 * lowest if lowest < 0.0 else 0.0, 1.03)
    axis.axvline(HIGH, color=INK, lw=0.9, ls=(0, (4, 3)))
    axis.axvline(0.0, color=MUTED, lw=0.8)
    axis.spines["left"].set_visible(False)
    axis.set_xlabel("correlation of error ratio and error")


def _legend(groups: Sequence[RunGroup]) -> list[Any]:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Any] = []
    if has_two_arms(groups):
        names = {"bought labels": 0.9, "labels outside the run": 0.45}
        handles = [
            Patch(color=INK, alpha=alpha, lw=0, label=f"hyper-parameters from {name}") for name, alpha in names.items()
        ]
    if any(each.published is not None for each in groups):
        handles.append(Line2D([], [], ls="", marker="D", ms=5.5, mfc="white", mec=INK, mew=1.2, label="in the paper"))
    return [*handles, Line2D([], [], color=INK, lw=0.9, ls=(0, (4, 3)), label=f"{HIGH:g}")]


def _correlations_in_words(groups: Sequence[RunGroup]) -> str:
    return "; ".join(
        f"{each.model.upper()} {each.title}{f' ({each.arm})' if each.arm else ''}: {_correlation_number(each)}"
        for each in groups
    )


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
        say_beside(strip, _n1(spread(runs.stops(threshold)), runs.stopped(threshold)), row)
    strip.set_yticks(range(len(STOPS)), [f"λ = {each}" for each in runs.thresholds], fontsize=7)
    strip.set_ylim(len(STOPS) + 0.1, -0.7)
    strip.tick_params(axis="x", bottom=False, labelbottom=False)
    strip.tick_params(axis="y", length=0)
    strip.spines[["left", "bottom"]].set_visible(False)
    strip.set_facecolor("#f5f7fa")


def _n1(found: MedianAndRange | None, stopped: int) -> str:
    if found is None or not stopped:
        return "never"
    middle = "never" if isinf(found.median) else f"{found.median:.0f}"
    return middle if stopped == found.number else f"{middle} ({stopped} of {found.number})"


def _curves_in_words(drawn: Sequence[RunGroup]) -> str:
    told = (
        f"{each.title} stops at "
        + ", ".join(f"{_n1(spread(each.stops(at)), each.stopped(at))} for {at}" for at in each.thresholds)
        for each in drawn
    )
    return "; ".join(told)


#: What lies beyond an axis is drawn at its edge, and told in numbers beside it.
_WIDEST, _NARROWEST = 1.0, 0.2


def same_place(groups: Sequence[RunGroup], protocol: str) -> Sketch | None:
    """A panel for each model: the excess error at the stop, threshold by threshold, for each data set.

    None if no model was tried on more than one.
    """
    compared = main_arms(on_several_sets(groups))
    models = [found for model in MODELS if (found := of_model(compared, model))]
    if not models:
        return None
    columns = min(len(models), 2)
    rows = [models[at : at + columns] for at in range(0, len(models), columns)]
    heights = [max(_lines(each) for each in row) for row in rows]
    figure = new_figure(0.2 + 4.7 * columns, sum(0.75 + 0.17 * height for height in heights))
    grid = figure.add_gridspec(len(rows), columns, height_ratios=[0.75 + 0.17 * height for height in heights])
    for y, row in enumerate(rows):
        for x, runs in enumerate(row):
            _draw_same_place_panel(figure.add_subplot(grid[y, x]), runs, groups)
    return Sketch(
        f"{protocol}-same-place",
        "Does one threshold stop at the same place on every data set?",
        _same_place_caption(groups),
        f"Strips of the excess error at the stop; {_same_place_in_words(models)}.",
        figure,
    )


def _same_place_caption(groups: Sequence[RunGroup]) -> str:
    several = any(len(each.outcomes) > 1 for each in groups)
    both = has_two_arms(groups)
    points = "Small points: the seeds that stopped; large point and number: the median of all. " if several else ""
    arms = "Hollow, without a number: hyper-parameters from labels outside the run. " if both else ""
    return (
        "Not in the paper. Excess: how much of the fall in error was still to come at the stop, from 0 (the least "
        f"error of the run) to 1 (the first). {points}{arms}Where the points of a threshold lie below each other, it "
        "stops at the same place on every data set. A triangle: beyond the edge."
        f"{told_arm(groups)}"
    )


def _lines(runs: Sequence[RunGroup]) -> int:
    return len(runs[0].thresholds) * (len(runs) + 1)


def _draw_same_place_panel(axis: Any, sets: Sequence[RunGroup], groups: Sequence[RunGroup]) -> None:
    ticks: list[tuple[int, str]] = []
    colour = COLOURS[sets[0].model]
    arms = [(each, other_arm(groups, each)) for each in sets]
    every = [v for pair in arms for each in pair if each for t in each.thresholds for v in each.excesses(t)]
    known = [value for value in every if isfinite(value)]
    edge = min(_WIDEST, max(_NARROWEST, 1.08 * max(known, default=0.0)))
    for threshold in sets[0].thresholds:
        ticks.append((len(ticks), f"λ = {threshold}"))
        for runs, outside in arms:
            y = len(ticks)
            axis.axhline(y, color=GRID, lw=0.6, zorder=0)
            _draw_row(axis, runs.excesses(threshold), y=y - 0.15 * bool(outside), edge=edge, colours=(colour, colour))
            if outside is not None:
                _draw_row(axis, outside.excesses(threshold), y=y + 0.2, edge=edge, colours=(colour, "white"))
            _say(axis, runs, threshold, y)
            ticks.append((y, runs.title))
    axis.set_yticks([y for y, _ in ticks], [literal(name) for _, name in ticks], fontsize=7.5)
    for (_, name), shown in zip(ticks, axis.get_yticklabels(), strict=True):
        shown.set_fontweight("bold" if name.startswith("λ") else "normal")
    axis.set_ylim(len(ticks) - 0.4, -0.8)
    axis.set_xlim(-0.02 * edge, edge)
    few_ticks(axis.xaxis)
    axis.tick_params(axis="y", length=0)
    axis.spines["left"].set_visible(False)
    axis.set_title(sets[0].model.upper(), color=colour, fontweight="bold")
    axis.set_xlabel("excess error at the stop")


def _draw_row(axis: Any, excesses: Sequence[float], *, y: float, edge: float, colours: tuple[str, str]) -> None:
    found, (colour, face) = spread(excesses), colours
    if found is None:
        return
    if found.number > 1:
        inside = [value for value in excesses if value <= edge]
        axis.plot(inside, [y] * len(inside), "o", ms=2.5, mew=0, color=colour, alpha=0.35)
    if isfinite(found.median):
        shape, x = ("o", found.median) if found.median <= edge else (">", edge)
        axis.plot(x, y, shape, ms=5, mfc=face, mec=colour, mew=1.0, clip_on=False, zorder=3)


def _say(axis: Any, runs: RunGroup, threshold: str, y: float) -> None:
    found, stopped, number = spread(runs.excesses(threshold)), runs.stopped(threshold), len(runs.outcomes)
    middle = f"{found.median:.3f}" if found and isfinite(found.median) else "never" if stopped < number else "no fall"
    say_beside(axis, f"{middle} ({stopped} of {number})" if 0 < stopped < number else middle, y)


def _same_place_in_words(models: Sequence[Sequence[RunGroup]]) -> str:
    told = []
    for sets in models:
        found = (spread(each.excesses(each.thresholds[1])) for each in sets)
        middle = [each.median for each in found if each and isfinite(each.median)]
        reach = f"from {min(middle):.3f} to {max(middle):.3f}" if middle else "no stop"
        told.append(f"{sets[0].model.upper()} at {sets[0].thresholds[1]}: {reach}")
    return "; ".join(told)


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


__all__ = ["Drawn", "draw_paper", "require_matplotlib", "sketches"]


def draw_paper(outcomes: Iterable[RunOutcome], folder: Path) -> list[Drawn]:
    """Draw what the runs at hand show, each figure as PNG and as PDF. The same runs give the same bytes.

    Args:
        outcomes: Runs of any protocol; those that are missing leave out their panel.
        folder: Folder for the files, created if missing.

    Raises:
        MissingExtraError: matplotlib is not installed.
        SufficeError: A file cannot be written.
    """
    return draw_all(sketches(outcomes), folder)


def sketches(outcomes: Iterable[RunOutcome]) -> Iterator[Sketch]:
    """The figures one after the other, not yet in files."""
    given = list(outcomes)
    for protocol in PROTOCOLS:
        groups = grouped(given, protocol)
        if not groups:
            continue
        own = (of_model(groups, model) for model in MODELS)
        found = [
            correlations(groups, protocol),
            scatter(groups, protocol),
            *(error_curves(runs, protocol) for runs in own if runs),
            same_place(groups, protocol),
        ]
        yield from (each for each in found if each is not None)
