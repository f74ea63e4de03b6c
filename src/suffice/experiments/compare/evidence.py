"""What a comparison has shown, as a small table: the setting of every rule for every cost, and what to expect of it."""

import json
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Final

import numpy as np

from suffice.experiments.compare.averages import equal_weights, weighted_quantile
from suffice.experiments.compare.board import Row, rows
from suffice.experiments.compare.entry import Entry
from suffice.experiments.compare.recording import MODELS
from suffice.experiments.compare.rules import catalogue
from suffice.experiments.compare.scoring import Score

_FILE: Final = "evidence.json"
# Ways to set a rule that say one thing for each cost, or the only one there is.
_HONEST: Final = ("per cost", "costs")
_CASE: Final = ("data", "model", "seed", "batch")


def evidence(scores: Sequence[Score], *, judged_on: Collection[str], command: str) -> dict[str, Any]:
    """Sum up a comparison.

    Args:
        scores: Those of all runs.
        judged_on: The data sets that expectations are made on: those that no rule was made on. Settings of rules are
            chosen on all of them.
        command: How to make it again.

    Returns:
        JSON values: for each model and rule the setting, geometric mean, mean, median and 90 % point of the relative
        regret by ratio; and the same for each kind of task, over its models.
    """
    known = {entry.name: entry for entry in catalogue(scores[0].ratios)}
    made = [row for row in rows(scores) if row["data"] in judged_on]
    chosen = _settings(scores, known)
    found: dict[str, dict[str, Any]] = defaultdict(dict)
    for (model, rule), group in _grouped(made, known).items():
        found[model][rule] = {"settings": chosen.get((model, rule)), **_expected(group)}
    cases = {(name, *(row[key] for key in _CASE)) for row in made for name in _names(row["model"])}
    return {
        "command": command,
        "ratios": list(scores[0].ratios),
        "data": {name: sorted({case[1] for case in cases if case[0] == name}) for name in found},
        "runs": {name: sum(case[0] == name for case in cases) for name in found},
        "rules": dict(found),
    }


@cache
def shipped() -> Mapping[str, Any]:
    """What comes with suffice."""
    found: Mapping[str, Any] = json.loads((files(__package__) / _FILE).read_text(encoding="utf-8"))
    return found


def _names(model: str) -> tuple[str, str]:
    """What a run with a model is evidence for: the model, and its kind of task."""
    return model, MODELS[model]


def _grouped(made: Sequence[Row], known: Mapping[str, Entry]) -> dict[tuple[str, str], list[Row]]:
    """Rows of rules, references apart, at their honest setting."""
    groups: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in made:
        entry = known[row["rule"]]
        plain = row["setting"] == "default" and not entry.swept
        budget = row["rule"] == "Budget"
        if (row["setting"] in _HONEST or plain) and (entry.kind != "reference" or budget):
            for name in _names(row["model"]):
                groups[name, row["rule"]].append(row)
    return groups


def _settings(scores: Sequence[Score], known: Mapping[str, Entry]) -> dict[tuple[str, str], list[Any]]:
    """For each model or task, and rule, the setting of least mean regret over all data sets, one for each ratio."""
    groups: dict[tuple[str, str], list[Score]] = defaultdict(list)
    for score in scores:
        if known[score.rule].swept:
            for name in _names(score.case.model):
                groups[name, score.rule].append(score)
    found = {}
    for key, group in groups.items():
        weights = equal_weights([score.case.data for score in group])
        means = np.tensordot(weights, np.array([score.regrets for score in group]), axes=1)
        found[key] = [group[0].settings[at] for at in means.argmin(axis=0)]
    return found


def _expected(group: Sequence[Row]) -> dict[str, list[float]]:
    weights = equal_weights([row["data"] for row in group])
    table = np.array([list(row["regret"].values()) for row in group])
    return {
        "typical": [_short(value) for value in np.expm1(weights @ np.log1p(table))],
        "mean": [_short(value) for value in weights @ table],
        "median": [_short(weighted_quantile(column, weights, 0.5)) for column in table.T],
        "p90": [_short(weighted_quantile(column, weights, 0.9)) for column in table.T],
    }


def _short(value: float) -> float:
    return float(f"{value:.4g}")
