"""The report of a comparison: its tables, its figures, and one self-contained HTML page."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import cycle
from pathlib import Path
from statistics import median
from typing import Any, Final

import numpy as np

from suffice.numerics import Floats
from suffice.report.figures import GRID, INK, MUTED, Drawn, Sketch, draw_all, literal, new_figure, say_beside
from suffice.report.html_page import NOTHING, ReportTable, page_figure, rendered, write_page
from suffice_research.compare.recording import MODELS, SOURCES
from suffice_research.compare.scoring import Row, leaderboard, mean_by_group
from suffice_research.recommendation.compared_rules import AT_ONCE, catalogue
from suffice_research.recommendation.stopping_costs import RATIOS

#: The possible leaderboards and their titles.
TITLES: Final = {
    "regression": "Numbers to predict",
    "classification": "Classes to predict",
    "all": "All runs",
}
#: Ways to set a rule, the simplest first; of equally good ways the first is shown.
SETTINGS: Final = ("default", "one threshold", "per cost", "costs", "reference")
#: Rules that do not use a model, or that use information that a rule cannot have.
REFERENCES: Final = frozenset(entry.name for entry in catalogue() if entry.kind == "reference")


@dataclass(frozen=True, eq=False)
class Leaderboard:
    """Rules ranked over runs of one kind.

    Attributes:
        key: One of :data:`TITLES`.
        rows: The runs, rule by rule, as :func:`suffice_research.compare.scoring.rows` gives them.
        ranked: Each rule with each way to set it, as :func:`suffice_research.compare.scoring.leaderboard` has them.
    """

    key: str
    rows: Sequence[Row]
    ranked: Sequence[Row]

    @property
    def title(self) -> str:
        """Kind of the runs."""
        return TITLES[self.key]

    @property
    def best(self) -> list[Row]:
        """For each rule the way to set it with the least mean regret, the best rule first."""
        order = sorted(self.ranked, key=lambda row: SETTINGS.index(row["setting"]))
        least: dict[str, Row] = {}
        for row in order:
            if row["rule"] not in least or row["mean"] < least[row["rule"]]["mean"]:
                least[row["rule"]] = row
        return [row for row in self.ranked if least[row["rule"]] is row]

    def shown(self, rule: str, setting: str) -> list[Row]:
        """The runs of a rule that is set in one way."""
        return [row for row in self.rows if (row["rule"], row["setting"]) == (rule, setting)]


def boards(rows: Sequence[Row], *, resamples: int = 1000) -> list[Leaderboard]:
    """The rules ranked over runs with numbers, over runs with classes, and over all runs if there are both.

    The ranking over all runs contains only rules that were applied to all runs. A rule that needs classes was not.

    Args:
        rows: What :func:`suffice_research.compare.scoring.rows` made.
        resamples: How many times runs are drawn again for the intervals.
    """
    own = {kind: [row for row in rows if MODELS[row["model"]] == kind] for kind in ("regression", "classification")}
    by_kind = {kind: several for kind, several in own.items() if several}
    if len(by_kind) > 1:
        everywhere = set.intersection(*({row["rule"] for row in several} for several in by_kind.values()))
        by_kind["all"] = [row for row in rows if row["rule"] in everywhere]
    return [Leaderboard(key, several, leaderboard(several, resamples=resamples)) for key, several in by_kind.items()]


def case_of(row: Row) -> tuple[Any, ...]:
    """Identity of the run of a row."""
    return tuple(row[name] for name in ("data", "model", "seed", "batch", "variant"))


def runs_of(rows: Iterable[Row]) -> list[Row]:
    """One row of each run, of any rule, for values that are the same for all rules.

    Examples:
        >>> row = {"data": "a", "model": "gp", "batch": 1, "variant": ""}
        >>> [each["seed"] for each in runs_of([row | {"seed": 0}, row | {"seed": 0}, row | {"seed": 1}])]
        [0, 1]
    """
    return list({case_of(row): row for row in rows}.values())


def pairs_of(rows: Iterable[Row]) -> list[tuple[str, str]]:
    """Data sets, each with the models that were run on it.

    Examples:
        >>> pairs_of([{"data": data, "model": model} for model in ("gp", "ridge") for data in ("b", "a")])
        [('b', 'gp'), ('b', 'ridge'), ('a', 'gp'), ('a', 'ridge')]
    """
    found = list(dict.fromkeys((row["data"], row["model"]) for row in rows))
    order = list(dict.fromkeys(data for data, _ in found))
    return sorted(found, key=lambda pair: order.index(pair[0]))


def mean_regrets(rows: Sequence[Row]) -> dict[str, float]:
    """Mean regret at each ratio; every data set has the same weight.

    Examples:
        >>> mean_regrets([{"data": "a", "regret": {"10": 0.5}}, {"data": "b", "regret": {"10": 1.5}}])
        {'10': 1.0}
    """
    names = list(rows[0]["regret"])
    table = [[row["regret"][name] for row in rows] for name in names]
    means = mean_by_group(table, [row["data"] for row in rows])
    return dict(zip(names, means.tolist(), strict=True))


def mean_regret(rows: Sequence[Row]) -> float:
    """Mean regret over all ratios; every data set has the same weight."""
    return float(np.mean(list(mean_regrets(rows).values())))


def short(data: str) -> str:
    """Short name of a data set; for a table the name of its file.

    Examples:
        >>> short("wine"), short("tables/mine.csv")
        ('wine', 'mine.csv')
    """
    return Path(data).name


#: Explanation of relative regret.
REGRET: Final = (
    "Relative regret: how much more the stop costs than the best stop of the same run would have, counting the labels "
    "bought and the error that is left. 0.25 is a quarter more; 0 is the best."
)
#: Mark after the name of a rule that does not use a model.
MARK: Final = "*"
_HEAD: Final = (
    "rank",
    "rule",
    "set by",
    "mean regret",
    "90 % interval",
    "median",
    "90 % point",
    "typical",
    "to the first",
    "its interval",
    "premature %",
    "stops %",
    "labels over",
    "µs a step",
)
_NOTE: Final = (
    "Wrong, for classes: the mean share of test rows whose predicted class is wrong at the stop. "
    f"{REGRET} The mean, the median and the 90 % point are over all runs and costs, every data set weighing the same; "
    "the intervals hold 90 % of the means of runs drawn again, data sets and then seeds. Typical: the geometric mean "
    "of the cost over that of the best stop, less 1, which a few bad runs do not rule. To the first: the difference "
    "of the mean to that of rank 1, over the same runs. Premature: stopped before the first good step, within 5 % of "
    "the best smoothed error, whatever labels cost: where they are dear that is right, and the oracle does it too. "
    "Labels over: median of the labels beyond that step. Where the stop differs from cost to "
    f"cost, the last columns are for errors that cost 1000 labels. {MARK}: a reference, which looks at no model (or, "
    "as the oracle, at the errors)."
)


#: Heading of the column with the share of wrong predictions.
WRONG: Final = "wrong %"


def _percent(share: float | None) -> str:
    return NOTHING if share is None else f"{100.0 * share:.1f}"


def leaderboard_table(board: Leaderboard, *, every: bool = False) -> ReportTable:
    """The rules ranked by their mean regret.

    Args:
        board: The runs of one kind, and the rules ranked over them.
        every: With every way to set a rule, rather than with the best of them.
    """
    rows, rank = [], 0
    for row in board.ranked if every else board.best:
        # References have no rank: the oracle cannot be used in practice, and the others are not rules.
        rank += row["setting"] != "reference"
        rows.append(_ranked(row, str(rank) if row["setting"] != "reference" else ""))
    sets, runs = len({row["data"] for row in board.rows}), len(runs_of(board.rows))
    over = f"{_counted(runs, 'run')} on {_counted(sets, 'data set')}"
    name = f"{'settings' if every else 'leaderboard'}-{board.key}"
    how = ", every way to set a rule" if every else ""
    if board.key == "all":
        how += "; rules that have them all"
    note = "The columns are those of the leaderboard." if every else _NOTE
    head: tuple[str, ...] = _HEAD
    if board.key == "classification":
        # The share of wrong predictions is the first number.
        at = head.index("mean regret")
        head = (*head[:at], WRONG, *head[at:])
        shares = [row["wrong_share"] for row in (board.ranked if every else board.best)]
        rows = [(*row[:at], _percent(share), *row[at:]) for row, share in zip(rows, shares, strict=True)]
    return ReportTable(name, f"{board.title}: {over}{how}", head, tuple(rows), note)


def _ranked(row: Row, rank: str) -> tuple[str, ...]:
    seconds = row["seconds_per_step"]
    return (
        rank,
        marked(row["rule"]),
        row["setting"],
        amount(row["mean"]),
        _interval(row["interval"]),
        amount(row["median"]),
        amount(row["p90"]),
        amount(row["typical"]),
        NOTHING if row["difference"] is None else _signed(row["difference"]),
        _interval(row["difference_interval"]),
        f"{100.0 * row['premature']:.0f}",
        f"{100.0 * row['stop_rate']:.0f}",
        f"{row['over']:+.0f}" if round(row["over"]) else "0",
        NOTHING if seconds is None else f"{1e6 * seconds:.0f}",
    )


def marked(rule: str) -> str:
    """The name of a rule, with a mark if it is a reference.

    Examples:
        >>> marked("Budget"), marked("LabelWorth")
        ('Budget *', 'LabelWorth')
    """
    return f"{rule} {MARK}" if rule in REFERENCES else rule


def amount(value: float) -> str:
    """A regret with its significant digits.

    Examples:
        >>> [amount(value) for value in (0.254, 12.34, 123.4, -0.001)]
        ['0.25', '12.3', '123', '0.00']
    """
    digits = 2 if abs(value) < 10.0 else 1 if abs(value) < 100.0 else 0
    return f"{round(value, digits) + 0.0:.{digits}f}"


def by_data_table(board: Leaderboard) -> ReportTable:
    """The mean regret of each rule on each data set and with each model."""

    def column(row: Row) -> str:
        return f"{short(row['data'])}, {row['model']}"

    title = f"{board.title}: mean regret on each data set and with each model"
    note = "Each rule is set as in the leaderboard."
    return _regrets_by(board, column, f"by-data-{board.key}", title, note)


def by_variation_table(board: Leaderboard) -> ReportTable | None:
    """The mean regret of each rule for each batch size and each other varied setting; or None."""

    def column(row: Row) -> str:
        return f"{row['batch']} at a time{', ' * bool(row['variant'])}{row['variant']}"

    if len({column(row) for row in board.rows}) < 2:
        return None
    title = f"{board.title}: mean regret by labels at a time, and whatever else was varied"
    note = "Each rule is set as in the leaderboard; thresholds are chosen for each number of labels at a time."
    return _regrets_by(board, column, f"by-variation-{board.key}", title, note)


def _regrets_by(board: Leaderboard, column: Callable[[Row], str], name: str, title: str, note: str) -> ReportTable:
    pairs = pairs_of(board.rows)
    ordered = sorted(runs_of(board.rows), key=lambda row: pairs.index((row["data"], row["model"])))
    columns = list(dict.fromkeys(map(column, ordered)))
    rows = []
    for row in board.best:
        own: dict[str, list[Row]] = {each: [] for each in columns}
        for run in board.shown(row["rule"], row["setting"]):
            own[column(run)].append(run)
        cells = (amount(mean_regret(several)) if several else NOTHING for several in own.values())
        rows.append((marked(row["rule"]), row["setting"], *cells))
    return ReportTable(name, title, ("rule", "set by", *columns), tuple(rows), note)


def settings_table(board: Leaderboard) -> ReportTable | None:
    """Setting chosen for each rule on the other data sets; None if there was nothing to choose."""
    chosen = [row for row in board.rows if row["setting"] in ("one threshold", "per cost")]
    if not chosen:
        return None
    ratios = list(chosen[0]["regret"])
    shown = [ratios[0], min(ratios, key=lambda each: abs(float(each) - 1000.0)), ratios[-1]]
    rows = []
    for rule, model in dict.fromkeys((row["rule"], row["model"]) for row in chosen):
        default, one, costs = (
            [row for row in board.shown(rule, setting) if row["model"] == model]
            for setting in ("default", "one threshold", "per cost")
        )
        parameter = next(iter(default[0]["params"]))
        # All runs on a data set have the same setting, so it is counted once.
        cells = [_spread({(row["data"], row["batch"]): row["params"][parameter] for row in one}.values())]
        cells += [
            _spread({(row["data"], row["batch"]): row["params"][ratio] for row in costs}.values()) for ratio in shown
        ]
        rows.append((marked(rule), model, parameter, _value(default[0]["params"][parameter]), *cells))
    head = ("rule", "model", "parameter", "default", "one threshold", *(f"per cost, {each}" for each in shown))
    return ReportTable(
        f"chosen-{board.key}",
        f"{board.title}: settings that were chosen",
        head,
        tuple(dict.fromkeys(rows)),
        "Median over the data sets (lowest to highest). A setting for a data set is chosen by the least typical regret "
        "on the other data sets of the same model and batch, never on the one judged; where there is no other, the "
        "default is taken. At once, never: on the other data sets no setting of the rule did better than to stop at "
        "the first step, or not at all. Per cost: for errors that cost so many labels.",
    )


def runs_table(rows: Sequence[Row]) -> ReportTable:
    """Table of the runs."""
    lines = []
    for data, model in pairs_of(rows):
        runs = [row for row in runs_of(rows) if (row["data"], row["model"]) == (data, model)]
        ends = [row["labels"] for row in rows if (row["data"], row["model"], row["rule"]) == (data, model, "Never")]
        lines.append(
            (
                short(data),
                SOURCES[data].title if data in SOURCES else "a table",
                MODELS[model],
                model,
                str(len(runs)),
                _listed(str(row["batch"]) for row in runs),
                _spread(ends) if ends else NOTHING,
                _spread(row["labels"] - row["over"] for row in runs),
                _least_wrong(runs),
                f"{median(row['error'] - row['forgone'] for row in runs):.4g}",
            )
        )
    head = ("data set", "what is asked", "task", "model", "runs", "at a time", "labels", "first good at")
    measured = ("least wrong %", "least error")
    return ReportTable(
        "runs",
        "What was compared on",
        (*head, *measured),
        tuple(lines),
        "Medians over the runs (lowest to highest). First good at: labels at the first step within 5 % of the best "
        "smoothed error. Errors are measured on test rows which no model and no rule saw. Least wrong: the least share "
        "of them whose predicted class was wrong. The error is that of the averaged prediction: the mean squared error "
        "for numbers, in units of their variance, and the share of wrong predictions for classes.",
    )


def _least_wrong(runs: Sequence[Row]) -> str:
    shares = [row["least_wrong_share"] for row in runs if row["least_wrong_share"] is not None]
    return _percent(median(shares) if shares else None)


def guarantees_table(summary: Sequence[Row]) -> ReportTable | None:
    """Share of the steps at which the guaranteed bounds of rules held; None if no bound was evaluated."""
    if not summary:
        return None
    rows = tuple(
        (
            row["bound"],
            f"{100.0 * row['held']:.2f}",
            f"{100.0 * row['least_held']:.2f}",
            f"{100.0 * row['informative']:.0f}",
            NOTHING if row["ratio"] is None else f"{row['ratio']:.3g}",
            str(row["data_sets"]),
            str(row["runs"]),
        )
        for row in summary
    )
    head = ("bound", "held %", "held %, worst run", "below 1, %", "bound / truth", "data sets", "runs")
    return ReportTable(
        "guarantees",
        "Bounds that rules give, against what was true",
        head,
        rows,
        "Shares of steps, on the stop set, whose labels no rule saw. ErrorStability bounds a step's change of the "
        "expected error (the mean of 1 - p(true class)), PacBayes the error itself, KappaCertificate a step's change "
        "of F (two classes only). A bound of 1 or more says nothing of a number from 0 to 1. Bound / truth: the median "
        "over the steps at which the truth was above 0.",
    )


def _interval(ends: Sequence[float] | None) -> str:
    return NOTHING if ends is None else f"{amount(ends[0])} to {amount(ends[1])}"


def _signed(value: float) -> str:
    return f"+{amount(value)}" if round(value, 2) > 0.0 else amount(value)


def _spread(values: Iterable[Any]) -> str:
    given = sorted(values, key=_place)
    low, middle, high = given[0], given[(len(given) - 1) // 2], given[-1]
    return _value(middle) if low == high else f"{_value(middle)} ({_value(low)} to {_value(high)})"


def _place(value: Any) -> tuple[int, float]:
    """Sort key of a setting: stopping at once comes before all numbers, never stopping after them."""
    return (0, float(value)) if not isinstance(value, str) else (-1 if value == "at once" else 1, 0.0)


def _value(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _listed(words: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(words))


def _counted(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


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


#: For rules in the order of their rank. The colours alternate in lightness, so that neighbours differ in greyscale too.
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
#: Maximal number of distinguishable rules.
MOST: Final = len(_RANKED)


def rule_style(rule: str, place: int) -> RuleStyle:
    """Return the style of the rule at a rank; the style of a reference is fixed.

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
        points: Its part of what :func:`suffice_research.compare.scoring.curves` made.
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
    # A few data sets on which a rule fails must not determine the range of the axes.
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
        # The lowest panel of each column has tick labels, also if the last row is not full.
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


#: References that are drawn with the best rules. A stop at once has a very high cost if errors are expensive.
_REFERENCES_DRAWN: Final = ("Budget", "Never", "RandomStop")
#: Below this the axis is linear, so that it can show a regret of 0.
_LINEAR: Final = 0.1


def regret_figure(board: Leaderboard) -> Sketch:
    """Mean regret against the cost of an error, for the best rules and the references."""
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
        # Alternating markers, so that lines that coincide are both visible.
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
#: References whose stops are shown.
_BUDGETS: Final = frozenset({"Budget", "PoolFraction", "CostLimit", "TimeLimit"})
#: Markers for the batch sizes, the smallest first.
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
    # Rules by rank, then the references.
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

    # A stop at once is not shown.
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
        points: What :func:`suffice_research.compare.scoring.curves` made.
        folder: Folder for the files, created if missing.

    Raises:
        MissingExtraError: matplotlib is not installed.
        SufficeError: A file cannot be written.
    """
    return draw_all(sketches(boards, points), folder, "drawing figures")


def sketches(boards: Sequence[Leaderboard], points: Sequence[Row]) -> Iterator[Sketch]:
    """The figures one after the other, before they are written."""
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


_TITLE: Final = "When to stop labelling: rules compared on the same runs"
_PROTOCOL: Final = (
    "Each run simulates active learning: a model starts from a few labels drawn at random, asks for the label that it "
    "expects to learn most from, learns, and so on, on a pool whose labels are known. Everything that a stopping rule "
    "may look at is recorded on the way, together with the error on test rows that neither model nor rule ever sees.",
    "Then every rule sees the same recorded runs, step by step, and says where it would have stopped. No rule sees "
    "a later step. Where the model has learned its hyper-parameters again, a rule starts over, on the past as it looks "
    "with these.",
    "Stopping at a step costs the labels bought until then, the first ones too, and so much for the error above the "
    f"least of the run. What an error of 1 costs is varied from {RATIOS[0]:,g} labels to {RATIOS[-1]:,g}, so that the "
    "best place to stop goes from the first labels to the end. A rule that never stops pays for the whole run. One "
    "that needs labels to validate on pays for these too.",
    "A threshold is never chosen on the data set that it is judged on: it is the one of least typical regret on the "
    "other data sets, in runs of the same model with as many labels at a time, either one for all costs (one "
    "threshold) or one for each (per cost). Beside its own settings a rule may be set to stop at once or never: a "
    "person who knows that labels or errors are expensive needs no rule for that. Default is the value of the "
    "literature. Rules of costs take the costs of labels and errors, and have nothing to choose. A leaderboard shows "
    "each rule in the way that did best; this choice was made after the results were seen, and all settings are listed "
    "below.",
)
_TERMS: Final = (
    ("Relative regret", REGRET.partition(": ")[2]),
    (
        "Typical",
        "The geometric mean of the cost over that of the best stop, less 1. A few runs with a very bad stop rule the "
        "mean; they do not rule this.",
    ),
    (
        "Error",
        "That of the averaged prediction on the test rows: the mean squared error for numbers, the share of wrong "
        "predictions for classes. Regret counts it.",
    ),
    (
        "First good step",
        "The first step at which the error, smoothed over 5 % of the steps, is within 5 % of its least. Where errors "
        "are cheap it is right to stop before it; so an early stop is not always a bad one.",
    ),
    (
        "References",
        "Oracle: the best stop, known only afterwards. RandomStop: a step drawn at random. AtOnce: a stop at the first "
        "step. Never: all labels. Budget, PoolFraction, CostLimit and TimeLimit look at no model; their settings are "
        "chosen as those of the rules are.",
    ),
    (
        "Interval",
        "The middle 90 % of the means that come out if data sets, and seeds within each, are drawn again with "
        "replacement. With few data sets it is wide, and should be.",
    ),
    (
        "To the first",
        "The difference to the rule of rank 1 over the same runs, and its interval; one that lies above 0 as a whole "
        "says that the first rule is better beyond the luck of the draw.",
    ),
)
#: Prefixes of the names of figures, their headings, and their explanations.
_FIGURES: Final = {
    "regret": (
        "Dear labels, dear errors",
        "On the left of each figure labels are dear, and it is best to stop early; on the right errors are dear. At a "
        "regret of 1 the stop costs twice what the best stop of the run would have cost.",
    ),
    "labels": (
        "Labels against error",
        "A rule is the better the nearer its curve, from its loosest setting to its strictest, comes to the lower "
        "left. One whose curve lies on that of a fixed budget does no better than a number of labels set beforehand. "
        "Labels are counted in units of those at the first good step, errors in units of the least of the run.",
    ),
    "stops": (
        "Where rules stop",
        "Each mark is a run; a hollow one did not stop, and has paid for all its labels. Each rule is set as in the "
        "leaderboard (after the comma); where that differs from cost to cost, for errors that cost 1000 labels. So is "
        "the best stop, the one of least cost. The first good step is where it is whatever labels cost. A rule that "
        "needs labels to validate on is charged for them.",
    ),
}


@dataclass(frozen=True, eq=False)
class ComparisonReportContents:
    """Contents of the page.

    Attributes:
        boards: The rules ranked, kind by kind; at least one.
        figures: Figures in their files.
        guarantees: What :func:`suffice_research.compare.judging.coverage_summary` made; nothing without classes.
        skipped: Runs that are missing, each with the reason.
        notes: What else one has to know, in sentences.
        provenance: How it was made, name by name: the command, versions. No date, so that the same runs give the same
            page.
    """

    boards: Sequence[Leaderboard]
    figures: Sequence[Drawn] = ()
    guarantees: Sequence[Row] = ()
    skipped: Sequence[tuple[str, str]] = ()
    notes: Sequence[str] = ()
    provenance: Sequence[tuple[str, str]] = ()

    @property
    def rows(self) -> list[Row]:
        """All rows, ordered by kind."""
        return [row for board in self.boards if board.key != "all" for row in board.rows]

    def tables(self) -> list[ReportTable]:
        """Every table of the page, in its order."""
        found: list[ReportTable | None] = [runs_table(self.rows)]
        found += [leaderboard_table(board) for board in self.boards]
        kinds = [board for board in self.boards if board.key != "all"]
        found += [make(board) for board in kinds for make in (by_data_table, by_variation_table)]
        found += [guarantees_table(self.guarantees), *map(settings_table, kinds)]
        found += [leaderboard_table(board, every=True) for board in self.boards]
        return [table for table in found if table is not None]


def write_report(path: Path, contents: ComparisonReportContents) -> None:
    """Write the page, completely or not at all.

    Raises:
        SufficeError: It cannot be written, or a figure's file cannot be read.
    """
    write_page(path, report(contents))


def report(contents: ComparisonReportContents) -> str:
    """The page as text."""
    tables = contents.tables()
    figures = {
        kind: [page_figure(figure) for figure in contents.figures if figure.name.startswith(kind)] for kind in _FIGURES
    }
    drawn = {kind: own for kind, own in figures.items() if own}
    guarantees = _tables_named(tables, "guarantees")
    return rendered(
        "comparison_report.html.jinja",
        package="suffice_research",
        title=_TITLE,
        headings={
            "summary": "In short",
            "protocol": "What was compared, and how",
            "boards": "Leaderboards",
            **{kind: _FIGURES[kind][0] for kind in drawn},
            "data": "Data set by data set",
            **({"guarantees": "Guarantees"} if guarantees else {}),
            "settings": "Settings",
            "reading": "How to read it",
            **({"skipped": "Left out"} if contents.skipped else {}),
            **({"provenance": "How this page was made"} if contents.provenance else {}),
        },
        best=[best_of(board) for board in contents.boards],
        regret=REGRET,
        notes=contents.notes,
        protocol=_PROTOCOL,
        runs=_tables_named(tables, "runs"),
        leaderboards=_tables_named(tables, "leaderboard-"),
        figures={kind: (_FIGURES[kind][1], own) for kind, own in drawn.items()},
        by_data=_tables_named(tables, "by-"),
        guarantees=guarantees,
        settings=[*_tables_named(tables, "chosen-"), *_tables_named(tables, "settings-")],
        terms_of_page=_TERMS,
        skipped=contents.skipped,
        provenance=contents.provenance,
    )


def best_of(board: Leaderboard) -> str:
    """A sentence about the best rule of a leaderboard and its significance."""
    ranked = {row["rule"]: row for row in board.best}
    rules = [row for row in board.best if row["rule"] not in REFERENCES]
    runs = len(runs_of(board.rows))
    over = f"{board.title} ({'1 run' if runs == 1 else f'{runs} runs'})"
    if not rules:
        return f"{over}: references only."
    first = rules[0]
    wrong = ""
    if board.key == "classification" and first["wrong_share"] is not None:
        wrong = f", with {100.0 * first['wrong_share']:.1f} % of the test rows predicted wrong at its stops,"
    others = [f"{_set(first)}{wrong} has the least mean regret of all rules, {amount(first['mean'])}"]
    others += [f"{_set(row)} has {amount(row['mean'])}" for row in rules[1:2]]
    words = {
        "Budget": "a fixed number of labels",
        "RandomStop": "a stop at random",
        "AtOnce": "a stop at the first step",
        "Never": "no stop",
    }
    others += [f"{said} {amount(ranked[name]['mean'])}" for name, said in words.items() if name in ranked]
    middle = min(rules, key=lambda row: row["median"])
    return f"{over}: {'; '.join(others)}. The least median is that of {_set(middle)}, {amount(middle['median'])}."


def _set(row: Row) -> str:
    """A rule and its setting, for a sentence."""
    said = {"default": "at its default", "one threshold": "one threshold", "per cost": "a threshold per cost"}
    return f"{row['rule']} ({said.get(row['setting'], 'told the costs')})"


def _tables_named(tables: Sequence[ReportTable], beginning: str) -> list[ReportTable]:
    """Tables whose names have the same prefix; a note that several tables share is shown for the first only."""
    found: list[ReportTable] = []
    notes = set()
    for table in tables:
        if table.name.startswith(beginning):
            found.append(replace(table, note="") if table.note in notes else table)
            notes.add(table.note)
    return found
