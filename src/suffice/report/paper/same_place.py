"""A figure that the paper does not have: where on the way down each threshold stops, data set by data set."""

from collections.abc import Sequence
from math import isfinite
from typing import Any

from suffice.data.protocols import MODELS
from suffice.experiments.paper.groups import (
    RunGroup,
    has_two_arms,
    main_arms,
    of_model,
    on_several_sets,
    other_arm,
    spread,
    told_arm,
)
from suffice.report.paper.colours import COLOURS
from suffice.report.style import GRID, Sketch, few_ticks, literal, new_figure, say_beside

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
