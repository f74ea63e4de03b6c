"""The paper's figure of correlation coefficients, experiment by experiment."""

from collections.abc import Sequence
from typing import Any

from suffice.experiments.paper.claims import HIGH
from suffice.experiments.paper.groups import RunGroup, has_two_arms, spread, told_arm
from suffice.report.paper.colours import COLOURS
from suffice.report.style import INK, MUTED, Sketch, literal, new_figure, say_beside

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
