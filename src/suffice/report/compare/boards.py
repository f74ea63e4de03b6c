"""Leaderboards of the comparison, by kind of task, and the rows that a table or figure shows."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from suffice.experiments.compare.averages import mean_by_group
from suffice.experiments.compare.board import Row, leaderboard
from suffice.experiments.compare.recording import MODELS
from suffice.experiments.compare.rules import catalogue

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
        rows: The runs, rule by rule, as :func:`suffice.experiments.compare.board.rows` gives them.
        ranked: As :func:`suffice.experiments.compare.board.leaderboard` gives them: each rule with each way to set it.
    """

    key: str
    rows: Sequence[Row]
    ranked: Sequence[Row]

    @property
    def title(self) -> str:
        """What kind of runs they are."""
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
        rows: What :func:`suffice.experiments.compare.board.rows` made.
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
    """What a data set is called where there is little room: a table by the name of its file.

    Examples:
        >>> short("wine"), short("tables/mine.csv")
        ('wine', 'mine.csv')
    """
    return Path(data).name
