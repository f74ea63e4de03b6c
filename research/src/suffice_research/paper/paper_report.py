"""The results of the paper's experiments: figures redrawn from our runs, tables, and one self-contained HTML page."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import isfinite, isinf
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import numpy as np

from suffice.numerics import Floats
from suffice.report.figures import (
    GRID,
    INK,
    MUTED,
    Drawn,
    Sketch,
    draw_all,
    few_ticks,
    literal,
    new_figure,
    say_beside,
    scale_errors,
    thinned,
)
from suffice.report.html_page import NOTHING, PageFigure, ReportTable, page_figure, plain, rendered, write_page
from suffice_research.data.catalogue import SETS
from suffice_research.data.protocols import (
    MODELS,
    PROTOCOLS,
    RUN_NAMES,
    SHORT_NAMES,
    TITLES,
    Experiment,
    spelled_model,
)
from suffice_research.paper.claims import HIGH, ClaimFinding
from suffice_research.paper.outcome import (
    MedianAndRange,
    RunGroup,
    RunOutcome,
    grouped,
    has_two_arms,
    main_arms,
    of_model,
    on_several_sets,
    other_arm,
    running_minima,
    spread,
    told_arm,
)

#: The paper's colours of the models, dark enough for a thin line on white.
COLOURS: Final = MappingProxyType({"gpr": "#c0272d", "brr": "#2e7d32", "blr": "#1f5fbf", "bdnn": "#7b2d8e"})
#: Colours of the paper's thresholds, the largest first.
STOPS: Final = ("#9aa5b1", "#616e7c", "#1f2933")


#: Additional vertical gap between two models, in units of the axis.
_GAP = 0.7


def correlations(groups: Sequence[RunGroup], protocol: str) -> Sketch:
    """Bars in the paper's order and colours, with the published values; several arms are drawn below each other."""
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
        f"Figure 2 of the paper. Bars are {bars}; diamonds are what the paper gives.{lighter}{told_arm(groups)} "
        f"{SHORT_NAMES}",
        f"Bars of the correlation, {_correlations_in_words(groups)}.",
        figure,
    )


def _places(experiments: Sequence[Sequence[RunGroup]]) -> list[list[float]]:
    """Vertical positions of the bars from the top, with a gap after each experiment, larger after each model."""
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
        f"{MODELS[each.model]} on {each.title}{f' ({each.arm})' if each.arm else ''}: {_correlation_number(each)}"
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
        f"{spelled_model(model)}: error and stopping time",
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
    """Draw the curves of all seeds, and the stops above all curves."""
    axis = figure.add_subplot(place)
    strip = axis.inset_axes((0.0, 1.0, 1.0, 0.25), sharex=axis)
    curves = [getattr(run, what) for run in runs.outcomes]
    _draw_curves(axis, runs, curves)
    _draw_stops(axis, strip, runs)
    scale_errors(axis, curves)
    first, last = runs.labels(max(map(len, curves)))[[0, -1]]
    # The axis starts at 0 if the initial labels take little space.
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
    # The median ends with the shortest run, because a median of fewer runs would jump there.
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


#: Limits of the axis. Values beyond it are drawn at its edge, with their numbers.
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
        f"{_same_place_caption(groups)} {SHORT_NAMES}",
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
        told.append(f"{MODELS[sets[0].model]} at {sets[0].thresholds[1]}: {reach}")
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
            # Axis labels that all panels share are shown once per row and once per column.
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
        f"{told_arm(drawn)} Labelling goes from top to bottom. Both axes are linear, as the correlation is. "
        f"{SHORT_NAMES}",
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
        # A single seed with a very large first value must not determine the range of the axis.
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
    names = ", ".join(f"{MODELS[each.model]} on {each.title}" for each in drawn)
    return f"one panel for each of {names}{reach}"


def draw_paper(outcomes: Iterable[RunOutcome], folder: Path) -> list[Drawn]:
    """Draw the figures for which there are runs, each as PNG and as PDF. The same runs give the same bytes.

    Args:
        outcomes: Runs of any protocol; those that are missing leave out their panel.
        folder: Folder for the files, created if missing.

    Raises:
        MissingExtraError: matplotlib is not installed.
        SufficeError: A file cannot be written.
    """
    return draw_all(sketches(outcomes), folder)


def sketches(outcomes: Iterable[RunOutcome]) -> Iterator[Sketch]:
    """The figures one after the other, before they are written."""
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


def settings_table(experiments: Iterable[Experiment]) -> ReportTable:
    """Columns, splits and settings of some experiments of one protocol, a row for each.

    Args:
        experiments: At least one.
    """
    given = list(experiments)
    return ReportTable(
        f"{given[0].protocol}-settings",
        "What was run",
        ("run", "target", "inputs", "rows", "test", "pool", "initial", "steps", "thresholds", "settings"),
        tuple(_row(each) for each in given),
        "Inputs are standardised, and so is a numeric target unless it says otherwise. Thresholds are the paper's, "
        "then those of the script. Gamma, the scale of the ratio, is the minimum over so many steps. "
        f"{RUN_NAMES}",
    )


def _row(each: Experiment) -> tuple[str, ...]:
    sizes = (each.rows, each.test, each.pool_size, each.initial, each.step_count)
    rows, test, pool, initial, steps = map(str, sizes)
    thresholds = " ".join(f"{value:g}" for value in each.thresholds)
    return each.name, _target(each), _inputs(each), rows, test, pool, initial, steps, thresholds, _settings(each)


def _target(each: Experiment) -> str:
    view = each.view
    if view.positive is not None:
        return f"{view.target} = {view.positive:g}"
    return view.target if view.standardised else f"{view.target}, as it is"


def _inputs(each: Experiment) -> str:
    """Number of inputs, and columns that are neither inputs nor target."""
    columns, view = SETS[each.data].columns, each.view
    if not columns:
        return "28 x 28 pixels"
    left = [name for name in columns if name not in (*view.inputs, view.target)]
    leak = f"; {view.target} is one of them" if view.target in view.inputs else ""
    return f"{len(view.inputs)}, all{f' but {_joined(left)}' if left else ' others'}{leak}"


def _joined(names: list[str]) -> str:
    return " and ".join(names)


def _settings(each: Experiment) -> str:
    words = {"pool": "the pool, before the run", "bought": "labels bought, or outside", "outside": "labels outside"}
    parts = [] if each.model == "bdnn" else [f"hyper-parameters from {words[each.hyperparameters]}"]
    if each.inverse_precision is not None:
        parts = [f"C = {each.inverse_precision:g}"]
    if each.centres:
        parts.append(f"{each.centres} centres, {each.bandwidth:g} of a step wide")
    if each.noise_floor is not None:
        parts.append(f"noise at least {each.noise_floor:g}")
    if each.model == "bdnn":
        parts.append(f"{each.batch} labels an acquisition")
    parts.append(f"gamma over {each.calibration}")
    return "; ".join(parts) or NOTHING


def findings_markdown(findings: Iterable[ClaimFinding]) -> str:
    """The findings as a list, with a heading for each protocol.

    Examples:
        >>> print(findings_markdown([ClaimFinding("It stops", "figure 7", "published", "holds", "At 67.")]))
        **As published**
        <BLANKLINE>
        - *It stops* (figure 7): **holds**. At 67.
        <BLANKLINE>
    """
    given, lines = list(findings), []
    for protocol, heading in TITLES.items():
        own = [each for each in given if each.protocol == protocol]
        if own:
            told = (f"- *{plain(each.claim)}* ({each.where}): **{each.verdict}**. {plain(each.words)}" for each in own)
            lines += [f"**{heading}**", "", *told, ""]
    return "\n".join(lines)


_ARM = "hyper-parameters from"
_RANGE = "Of several seeds: the median (lowest to highest)."
_NEVER = "A run that never stopped counts as later than all others."
_EXCESS = "Excess: (error at the stop - least error) / (first error - least error), 0 being the best of the run."


def paper_tables(outcomes: Iterable[RunOutcome]) -> list[ReportTable]:
    """All tables for which there are runs, those of the published protocol first."""
    given = list(outcomes)
    published, corrected = grouped(given, "published"), grouped(given, "corrected")
    return [
        *([_published_runs(published)] if published else []),
        *(_published_stops(of_model(published, model)) for model in MODELS if of_model(published, model)),
        *([_same_place(on_several_sets(published), "published")] if on_several_sets(published) else []),
        *([_corrected_correlations(corrected)] if corrected else []),
        *(_corrected_stops(of_model(corrected, model)) for model in MODELS if of_model(corrected, model)),
        *([_same_place(on_several_sets(corrected), "corrected")] if on_several_sets(corrected) else []),
        *([_cost(corrected)] if any(other_arm(corrected, each) for each in corrected) else []),
    ]


def _published_runs(groups: Sequence[RunGroup]) -> ReportTable:
    several = any(len(each.outcomes) > 1 for each in groups)
    rows = [
        (
            spelled_model(each.model),
            each.title,
            str(each.outcomes[0].pool),
            str(each.outcomes[0].features),
            str(each.outcomes[0].steps),
            *([str(len(each.outcomes))] if several else []),
            *_beside_published(each),
        )
        for each in groups
    ]
    head = ("model", "data", "rows of the pool", "features", "steps", *(["seeds"] if several else []))
    return ReportTable(
        "published-correlations",
        "As published: correlation of error ratio and error",
        (*head, "correlation", "published", "difference"),
        tuple(rows),
        _RANGE if several else "",
    )


def _published_stops(groups: Sequence[RunGroup]) -> ReportTable:
    thresholds = groups[0].thresholds
    first = groups[0].outcomes[0]
    rows = [
        (
            each.title,
            _cell(spread(run.error_first for run in each.outcomes), _error),
            _cell(spread(run.error_best for run in each.outcomes), _error),
            *(
                cell
                for threshold in thresholds
                for cell in (_acquisitions(each, threshold), _error_at_stop(each, threshold))
            ),
        )
        for each in groups
    ]
    a_time = int(groups[0].labels(2)[1] - groups[0].labels(1)[0])
    note = (
        "A stop is the number of the acquisition, counted from 0 as the authors' scripts count. Labels by then: "
        f"{first.initial} from the start, and {a_time} for each acquisition, that of the stop included."
    )
    several = any(len(each.outcomes) > 1 for each in groups)
    return ReportTable(
        f"published-stops-{groups[0].model}",
        f"As published, {spelled_model(groups[0].model)}: where each threshold stops, and the error there",
        (
            *("data", "first error", "least error"),
            *(name for each in thresholds for name in (f"stop at {each}", f"error at {each}")),
        ),
        tuple(rows),
        f"{note} {_RANGE} {_NEVER}" if several else note,
    )


def _corrected_correlations(groups: Sequence[RunGroup]) -> ReportTable:
    rows = [
        (
            *(spelled_model(each.model), each.title, each.arm or NOTHING),
            *map(str, (each.outcomes[0].pool, each.outcomes[0].features, each.outcomes[0].steps, len(each.outcomes))),
            *_beside_published(each),
        )
        for each in groups
    ]
    return _without_empty_arms(
        ReportTable(
            "corrected-correlations",
            "Corrected: correlation of error ratio and error",
            (
                *("model", "data", _ARM, "rows of the pool", "features", "steps", "seeds"),
                *("correlation", "published", "difference"),
            ),
            tuple(rows),
            f"{_RANGE} The difference is that of the median.",
        )
    )


def _corrected_stops(groups: Sequence[RunGroup]) -> ReportTable:
    thresholds = groups[0].thresholds
    rows = [
        (
            *(each.title, each.arm or NOTHING),
            *(
                cell
                for threshold in thresholds
                for cell in (
                    _cell(spread(each.stops(threshold)), _count),
                    f"{each.stopped(threshold)} of {len(each.outcomes)}",
                    _excess(each, threshold, reach=True),
                )
            ),
        )
        for each in groups
    ]
    return _without_empty_arms(
        ReportTable(
            f"corrected-stops-{groups[0].model}",
            f"Corrected, {spelled_model(groups[0].model)}: labels at each threshold, and what more would have brought",
            (
                *("data", _ARM),
                *(f"{what} at {each}" for each in thresholds for what in ("labels", "stopped", "excess")),
            ),
            tuple(rows),
            f"{_RANGE} {_NEVER} {_EXCESS}",
        )
    )


def _same_place(groups: Sequence[RunGroup], protocol: str) -> ReportTable:
    """Claim (b): whether one threshold stops at the same place on every data set."""
    sets = list(dict.fromkeys(each.title for each in groups))
    arms = list(dict.fromkeys((each.model, each.arm) for each in groups))
    rows = []
    for model, arm in sorted(arms, key=lambda key: list(MODELS).index(key[0])):
        tried = {each.title: each for each in groups if (each.model, each.arm) == (model, arm)}
        for threshold in next(iter(tried.values())).thresholds:
            known = [at for each in tried.values() if (at := _middle_excess(each, threshold)) is not None]
            silent = [
                _missing(each, threshold) for each in tried.values() if each.stopped(threshold) < len(each.outcomes)
            ]
            # Empty cells for data sets without a run of the model.
            cells = [_excess(tried[title], threshold) if title in tried else "" for title in sets]
            apart = _share(max(known) - min(known)) if len(known) > 1 else NOTHING
            if 1 < len(known) < len(tried):
                apart += f" ({len(known)} of {len(tried)} sets)"
            rows.append((spelled_model(model), arm or NOTHING, threshold, apart, *cells, ", ".join(silent) or "none"))
    return _without_empty_arms(
        ReportTable(
            f"{protocol}-same-place",
            f"{TITLES[protocol]}: does one threshold stop at the same place on every data set?",
            ("model", _ARM, "threshold", "spread", *sets, "never stopped"),
            tuple(rows),
            f"Under each data set: the excess at the stop, the median of all seeds. {_NEVER} {_EXCESS} "
            "Spread: highest - lowest of a line, of the sets that it stops on; the smaller, the more the threshold "
            "means the same everywhere.",
        )
    )


def _missing(runs: RunGroup, threshold: str) -> str:
    count = len(runs.outcomes)
    return runs.title if count == 1 else f"{runs.title} in {count - runs.stopped(threshold)} of {count}"


def _without_empty_arms(table: ReportTable) -> ReportTable:
    """The table without the column of arms if none of its runs has one."""
    at = table.head.index(_ARM)
    if any(row[at] != NOTHING for row in table.rows):
        return table
    head, *rows = (row[:at] + row[at + 1 :] for row in (table.head, *table.rows))
    return replace(table, head=head, rows=tuple(rows))


def _cost(groups: Sequence[RunGroup]) -> ReportTable:
    """Cost of learning hyper-parameters from bought labels."""
    rows = []
    for bought in groups:
        outside = other_arm(groups, bought)
        if bought.arm != "bought" or outside is None:
            continue
        threshold = bought.thresholds[1]
        best = {run.seed: run.error_best for run in outside.outcomes}
        times = spread(run.error_best / best[run.seed] for run in bought.outcomes if best.get(run.seed))
        rows.append(
            (
                *(spelled_model(bought.model), bought.title),
                *(_cell(spread(run.error_best for run in each.outcomes), _error) for each in (bought, outside)),
                _cell(times, _share),
                threshold,
                *(_cell(spread(each.stops(threshold)), _count) for each in (bought, outside)),
            )
        )
    return ReportTable(
        "corrected-cost",
        "Corrected: what it costs to learn hyper-parameters from the labels of the run",
        (
            *("model", "data", "least error, bought", "least error, outside", "bought / outside"),
            *("threshold", "labels, bought", "labels, outside"),
        ),
        tuple(rows),
        f"{_RANGE} {_NEVER} Bought: hyper-parameters from the labels bought so far. Outside: from labels that the run "
        "did not pay for and that are not counted. Bought / outside: least errors of the same seed.",
    )


def _beside_published(runs: RunGroup) -> tuple[str, str, str]:
    found, told = spread(runs.correlations), runs.published
    # An undefined correlation is written in words, because an empty cell could mean that it was not computed.
    lacking = len(runs.outcomes) - len(runs.correlations)
    return (
        _cell(found, _digits) + f"; {lacking} undefined" * bool(lacking) if found else "undefined",
        NOTHING if told is None else _digits(told),
        NOTHING if found is None or told is None else f"{round(found.median - told, 4) + 0.0:+.4f}",
    )


def _excess(runs: RunGroup, threshold: str, *, reach: bool = False) -> str:
    """The median excess, with its range if requested; in words if it is not a number."""
    found = spread(runs.excesses(threshold))
    without = "never" if runs.stopped(threshold) < len(runs.outcomes) else "no fall"
    number: Callable[[float], str] = lambda value: without if isinf(value) else _share(value)  # noqa: E731
    return NOTHING if found is None else _cell(found, number) if reach else number(found.median)


def _middle_excess(runs: RunGroup, threshold: str) -> float | None:
    found = spread(runs.excesses(threshold))
    return None if found is None or isinf(found.median) else found.median


def _acquisitions(runs: RunGroup, threshold: str) -> str:
    given = (run.stops[threshold] for run in runs.outcomes)
    return _cell(spread(float("inf") if at is None else float(at) for at in given), _count)


def _error_at_stop(runs: RunGroup, threshold: str) -> str:
    given = (run.error_at_stop[threshold] for run in runs.outcomes)
    return _cell(spread(at for at in given if at is not None), _error)


def _cell(found: MedianAndRange | None, number: Callable[[float], str]) -> str:
    if found is None:
        return NOTHING
    middle = number(found.median)
    alone = found.number == 1 or isinf(found.lowest)
    return middle if alone else f"{middle} ({number(found.lowest)} to {number(found.highest)})"


def _digits(value: float) -> str:
    return f"{value:.4f}"


def _share(value: float) -> str:
    return f"{value:.3f}"


def _error(value: float) -> str:
    return f"{value:#.4g}".removesuffix(".")


def _count(value: float) -> str:
    return "never" if isinf(value) else f"{value:.0f}" if value == int(value) else f"{value:.1f}"


_NAMES: Final = {**TITLES, "further": "Further"}
_ABOUT: Final = {
    "published": (
        "What the authors ran, with the errors of their scripts. It shows whether our computations equal theirs: "
        "the correlations should come out as printed in the paper."
    ),
    "corrected": (
        "What the paper says, on the columns that it means, with hyper-parameters learned from labels that the run has "
        "paid for, and over several seeds. It shows what holds up."
    ),
    "further": "What belongs to neither of the two.",
}
#: The verdicts from good to bad: style, symbol, and the words for one and for several claims.
_VERDICTS: Final = {
    "holds": ("holds", "✓", "holds", "hold"),
    "holds in part": ("in-part", "◐", "holds in part", "hold in part"),
    "does not hold": ("fails", "✗", "does not hold", "do not hold"),
    "not tested": ("untested", "–", "was not tested", "were not tested"),  # noqa: RUF001 - a dash is meant
}
_TERMS: Final = (
    (
        "Error ratio",
        "A bound on how much the last label can have changed the model's expected error, divided by the least such "
        "bound among the first labels of the run. It is 1 until there are enough of those, and falls as labels change "
        "less.",
    ),
    (
        "Threshold, stop",
        "A threshold λ stops a run at the first label at which the error ratio is at most λ. "
        "Never: the ratio did not come down to it before the run ended.",
    ),
    (
        "Error",
        "The expected error on rows set aside for the test: the mean squared error plus the model's own variance for a "
        "number, the cross entropy for a class. Under the published protocol: what the authors' scripts recorded.",
    ),
    (
        "Correlation",
        "Of error ratio and error, at those labels only at which the ratio was lower than ever before: elsewhere it "
        "cannot stop a run. It is undefined with fewer than three of them.",
    ),
    (
        "Excess",
        "How far the error at the stop is above the least of the run: (error at the stop - least error) / (first error "
        "- least error). 0 is the best of the run, 1 no better than the first error, more than 1 worse. The least may "
        "come before the stop or after it; where the error rises at first, the share is larger than it looks.",
    ),
    (
        "Verdict",
        "Decided by our rules, the same for every run: a claim holds if all cases that it speaks of agree, in "
        "part if at least half do, else it does not hold. A high correlation is one above 0.9; one place is an excess "
        "within 0.1; an error has risen again if it ends more than 5 % above its least; a published number is met to "
        "its last digit by GPR and BRR, and within 0.05 by BLR and BDNN, whose picks depend on a solver's tolerance or "
        "on a training.",
    ),
    (
        "Bought, outside",
        "Whether hyper-parameters were learned from the labels bought so far, as in practice, or from other labels "
        "that the run did not pay for. The second shows what learning them costs.",
    ),
    (
        "Median (lowest to highest)",
        "Over the seeds, which change the test rows, the pool and the first labels. A run that never stopped counts as "
        "later than all others.",
    ),
)


_PAPER: Final = (
    "The paper: H. Ishibashi and H. Hino, Stopping criterion for active learning based on error stability, 2021 "
    "(arXiv:2104.01836). GPR is Gaussian process regression, BRR Bayesian ridge regression, BLR Bayesian logistic "
    "regression, BDNN a Bayesian deep neural network."
)


class ClaimFindings(NamedTuple):
    """Findings on one claim of the paper.

    Attributes:
        claim: The claim.
        where: Where the paper makes it.
        findings: What was found, protocol by protocol.
    """

    claim: str
    where: str
    findings: list[ClaimFinding]


class ReportPart(NamedTuple):
    """Part of the report for one protocol, or for none.

    Attributes:
        about: What the protocol shows.
        figures: Its figures.
        tables: Its tables.
    """

    about: str
    figures: list[PageFigure]
    tables: list[ReportTable]


@dataclass(frozen=True)
class PaperReportContents:
    """Contents of the page.

    Attributes:
        title: Its heading.
        findings: Claims of the paper with what was found.
        scope: What the findings are judged from, in sentences; nothing if from everything.
        tables: Tables; the first word of a name, up to the hyphen, is the protocol, or it comes after both.
        figures: Figures in their files, named likewise.
        skipped: Runs that are missing, each with the reason.
        provenance: How it was made, name by name: the command, versions, the device. No date, so that the same runs
            give the same page.
    """

    title: str
    findings: Sequence[ClaimFinding] = ()
    scope: Sequence[str] = ()
    tables: Sequence[ReportTable] = ()
    figures: Sequence[Drawn] = ()
    skipped: Sequence[tuple[str, str]] = ()
    provenance: Sequence[tuple[str, str]] = ()


def write_report(path: Path, contents: PaperReportContents) -> None:
    """Write the page, completely or not at all.

    Raises:
        SufficeError: It cannot be written, or a figure's file cannot be read.
    """
    write_page(path, report(contents))


def report(contents: PaperReportContents) -> str:
    """The page as text."""
    parts = {
        name: ReportPart(
            _ABOUT[name],
            [page_figure(figure) for figure in contents.figures if _part(figure.name) == name],
            [table for table in contents.tables if _part(table.name) == name],
        )
        for name in _NAMES
    }
    filled = {name: part for name, part in parts.items() if part.figures or part.tables}
    claims: dict[tuple[str, str], list[ClaimFinding]] = {}
    for finding in contents.findings:
        claims.setdefault((finding.claim, finding.where), []).append(finding)
    return rendered(
        "paper_report.html.jinja",
        package="suffice_research",
        title=contents.title,
        headings={
            "summary": "Summary",
            **{name: _NAMES[name] for name in filled},
            "reading": "How to read it",
            **({"skipped": "Left out"} if contents.skipped else {}),
            **({"provenance": "How this page was made"} if contents.provenance else {}),
        },
        paper=_PAPER,
        counts=[(_NAMES[name], counted) for name in PROTOCOLS if (counted := _counted(contents.findings, name))],
        scope=contents.scope,
        claims=[ClaimFindings(claim, where, findings) for (claim, where), findings in claims.items()],
        protocol_names=_NAMES,
        badges={verdict: (look, sign) for verdict, (look, sign, _, _) in _VERDICTS.items()},
        parts=filled,
        terms_of_page=_TERMS,
        skipped=contents.skipped,
        provenance=contents.provenance,
    )


def _counted(findings: Sequence[ClaimFinding], protocol: str) -> str:
    """Number of tested claims that hold under a protocol; empty if none was tested."""
    given = [each.verdict for each in findings if each.protocol == protocol]
    tested = [verdict for verdict in given if verdict != "not tested"]
    if not given:
        return ""
    parts = []
    for verdict, (_, _, one, several) in _VERDICTS.items():
        number = given.count(verdict)
        of_all = f" of {len(tested)} claims" if verdict == "holds" else ""
        if number or of_all:
            parts.append(f"{number}{of_all} {one if number == 1 else several}")
    return f"{', '.join(parts)}."


def _part(name: str) -> str:
    protocol = name.partition("-")[0]
    return protocol if protocol in PROTOCOLS else "further"
