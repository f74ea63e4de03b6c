"""The tables of the comparison."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final

import numpy as np

from suffice.recommendation.compared_rules import catalogue
from suffice.report.html_page import NOTHING, ReportTable
from suffice.research.compare.leaderboard import Row, leaderboard, mean_by_group
from suffice.research.compare.recording import MODELS
from suffice.research.compare.sources import SOURCES

#: The boards that there may be, and what they are called.
TITLES: Final = {
    "regression": "Numbers to predict",
    "classification": "Classes to predict",
    "all": "All runs",
}
#: Ways to set a rule, the simplest first: of ways that do equally well the first is shown.
SETTINGS: Final = ("default", "one threshold", "per cost", "costs", "reference")
#: Rules that look at no model, or cheat.
REFERENCES: Final = frozenset(entry.name for entry in catalogue() if entry.kind == "reference")


@dataclass(frozen=True, eq=False)
class Leaderboard:
    """Rules ranked over runs of one kind.

    Attributes:
        key: One of :data:`TITLES`.
        rows: The runs, rule by rule, as :func:`suffice.research.compare.leaderboard.rows` gives them.
        ranked: Each rule with each way to set it, as :func:`suffice.research.compare.leaderboard.leaderboard` has them.
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
        """Of each rule the way to set it that has the least mean regret, the best rule first."""
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
    """The rules ranked over runs with numbers, over those with classes, and over all where there are both.

    Over all runs only those rules are ranked that have them all: a rule that needs classes has no run without.

    Args:
        rows: What :func:`suffice.research.compare.leaderboard.rows` made.
        resamples: How many times runs are drawn again for the intervals.
    """
    own = {kind: [row for row in rows if MODELS[row["model"]] == kind] for kind in ("regression", "classification")}
    found = {kind: several for kind, several in own.items() if several}
    if len(found) > 1:
        everywhere = set.intersection(*({row["rule"] for row in several} for several in found.values()))
        found["all"] = [row for row in rows if row["rule"] in everywhere]
    return [Leaderboard(key, several, leaderboard(several, resamples=resamples)) for key, several in found.items()]


def case_of(row: Row) -> tuple[Any, ...]:
    """Which run a row is of."""
    return tuple(row[name] for name in ("data", "model", "seed", "batch", "variant"))


def runs_of(rows: Iterable[Row]) -> list[Row]:
    """One row of each run, whichever rule it is of: for what is the same for all rules.

    Examples:
        >>> row = {"data": "a", "model": "gp", "batch": 1, "variant": ""}
        >>> [each["seed"] for each in runs_of([row | {"seed": 0}, row | {"seed": 0}, row | {"seed": 1}])]
        [0, 1]
    """
    return list({case_of(row): row for row in rows}.values())


def pairs_of(rows: Iterable[Row]) -> list[tuple[str, str]]:
    """Data sets with the models that were run on them, data set by data set.

    Examples:
        >>> pairs_of([{"data": data, "model": model} for model in ("gp", "ridge") for data in ("b", "a")])
        [('b', 'gp'), ('b', 'ridge'), ('a', 'gp'), ('a', 'ridge')]
    """
    found = list(dict.fromkeys((row["data"], row["model"]) for row in rows))
    order = list(dict.fromkeys(data for data, _ in found))
    return sorted(found, key=lambda pair: order.index(pair[0]))


def mean_regrets(rows: Sequence[Row]) -> dict[str, float]:
    """Mean regret at each ratio, every data set weighing the same.

    Examples:
        >>> mean_regrets([{"data": "a", "regret": {"10": 0.5}}, {"data": "b", "regret": {"10": 1.5}}])
        {'10': 1.0}
    """
    names = list(rows[0]["regret"])
    table = [[row["regret"][name] for row in rows] for name in names]
    means = mean_by_group(table, [row["data"] for row in rows])
    return dict(zip(names, means.tolist(), strict=True))


def mean_regret(rows: Sequence[Row]) -> float:
    """Mean regret over all ratios, every data set weighing the same."""
    return float(np.mean(list(mean_regrets(rows).values())))


def short(data: str) -> str:
    """Short name of a data set; for a table the name of its file.

    Examples:
        >>> short("wine"), short("tables/mine.csv")
        ('wine', 'mine.csv')
    """
    return Path(data).name


#: What relative regret is, for people.
REGRET: Final = (
    "Relative regret: how much more the stop costs than the best stop of the same run would have, counting the labels "
    "bought and the error that is left. 0.25 is a quarter more; 0 is the best."
)
#: What stands after the name of a rule that looks at no model.
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


#: Head of the column with the share of wrong predictions.
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
        # What cannot be had (the oracle) or is no rule (at once, never, at random) has no rank.
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
    """A regret with as many digits as say something.

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
    """The mean regret of each rule for each number of labels at a time and whatever else was varied; or None."""

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
        # The same for all runs on a data set: each is counted once.
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
    """How often guaranteed bounds of rules were true; None if none was evaluated."""
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
    """Sort key of a setting: to stop at once before all numbers, never to stop after them."""
    return (0, float(value)) if not isinstance(value, str) else (-1 if value == "at once" else 1, 0.0)


def _value(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _listed(words: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(words))


def _counted(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"
