"""The evidence file for recommendations: the best setting of every rule for every cost, with its expected regret."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from suffice.recommendation.compared_rules import Entry, catalogue
from suffice.research.compare.leaderboard import Row, equal_weights, rows, weighted_quantile
from suffice.research.compare.recording import MODELS
from suffice.research.compare.scoring import RuleScore

# Ways to set a rule that say one thing for each cost, or the only one there is.
_HONEST: Final = ("per cost", "costs")


def evidence(scores: Sequence[RuleScore], *, judged_on: Collection[str], command: str) -> dict[str, Any]:
    """Sum up a comparison.

    Args:
        scores: Those of all runs.
        judged_on: The data sets that expectations are made on: those that no rule was made on. Settings of rules are
            chosen on all of them.
        command: How to make it again.

    Returns:
        JSON values: for each model, batch and rule the setting, and geometric mean, mean, median and 90 % point of the
        relative regret, by ratio; and the same for each kind of task, over its models.
    """
    known = {entry.name: entry for entry in catalogue(scores[0].ratios)}
    found: dict[str, dict[str, dict[str, Any]]] = defaultdict(dict)
    data: dict[str, set[str]] = defaultdict(set)
    for name in dict.fromkeys(name for score in scores for name in _names(score.case.model)):
        for batch in sorted({score.case.batch for score in scores}):
            own = _of(scores, name, batch)
            # A configured rule is wanted: what the ends of its range would do is no help.
            made = [row for row in rows(own, ends=False) if row["data"] in judged_on]
            chosen = _settings(own, known)
            found[name][str(batch)] = {
                rule: {"settings": chosen.get(rule), **_expected(group)}
                for rule, group in _grouped(made, known).items()
            }
            data[name] |= {row["data"] for row in made}
    cases = {(name, s.case) for s in scores for name in _names(s.case.model) if s.case.data in judged_on}
    return {
        "command": command,
        "ratios": list(scores[0].ratios),
        "data": {name: sorted(several) for name, several in data.items()},
        "runs": {
            name: {batch: sum((n, str(case.batch)) == (name, batch) for n, case in cases) for batch in batches}
            for name, batches in found.items()
        },
        "rules": dict(found),
    }


def _of(scores: Sequence[RuleScore], name: str, batch: int) -> list[RuleScore]:
    """Scores of runs with a model, or of a task with any of its models, which then count as one."""
    own = [score for score in scores if name in _names(score.case.model) and score.case.batch == batch]
    return [replace(score, case=replace(score.case, model=name, variant=score.case.model)) for score in own]


def _names(model: str) -> tuple[str, str]:
    """Names that a run is evidence for: the model and its task."""
    return model, MODELS[model]


def _grouped(made: Sequence[Row], known: Mapping[str, Entry]) -> dict[str, list[Row]]:
    """Rows of each rule, references apart, at its honest setting."""
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in made:
        entry = known[row["rule"]]
        plain = row["setting"] == "default" and not entry.swept
        budget = row["rule"] == "Budget"
        if (row["setting"] in _HONEST or plain) and (entry.kind != "reference" or budget):
            groups[row["rule"]].append(row)
    return groups


def _settings(scores: Sequence[RuleScore], known: Mapping[str, Entry]) -> dict[str, list[Any]]:
    """For each rule the setting that did best over all data sets, one for each ratio."""
    groups: dict[str, list[RuleScore]] = defaultdict(list)
    for score in scores:
        if known[score.rule].swept:
            groups[score.rule].append(score)
    found = {}
    for rule, group in groups.items():
        weights = equal_weights([score.case.data for score in group])
        means = np.tensordot(weights, np.array([np.log1p(score.regrets) for score in group]), axes=1)
        found[rule] = [group[0].settings[at] for at in means.argmin(axis=0)]
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
