"""The board: one row for each run, rule and way to set it; and the rules ranked over all runs."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from suffice.errors import InvalidValueError
from suffice.experiments.compare.averages import (
    equal_weights,
    interval,
    mean_by_group,
    resampled_means,
    weighted_quantile,
)
from suffice.experiments.compare.choosing import ChosenSettings, choose
from suffice.experiments.compare.entry import Entry
from suffice.experiments.compare.rules import AT_ONCE, NEVER, ORACLE, catalogue
from suffice.experiments.compare.scoring import RuleScore, RunCase
from suffice.special import Floats

Row = dict[str, Any]

# Where a row has another stop for each cost, it shows the one at this ratio, or at the nearest that there is.
_SHOWN: Final = 1000.0
_CASE: Final = ("data", "model", "seed", "batch", "variant")


def ratio_name(ratio: float) -> str:
    """How a ratio is written as a key: 21.5, 1000.

    Examples:
        >>> ratio_name(1000.0), ratio_name(21.5)
        ('1000', '21.5')
    """
    return f"{ratio:.10g}"


def rows(scores: Sequence[RuleScore], *, entries: Sequence[Entry] | None = None, ends: bool = True) -> list[Row]:
    """One row for each run, rule and way to set it.

    A row holds ``rule``, ``params``, the run (``data``, ``model``, ``seed``, ``batch``, ``variant``), ``setting``,
    ``stop`` (a step from 0, None without a stop), ``labels`` (all that were paid for), ``error``, ``regret`` by ratio,
    ``premature``, ``fired``, ``over`` (labels beyond those at the first good step), ``forgone`` (error above the best)
    and ``seconds_per_step``. The settings are

    - ``default``: that of the literature, or the only one;
    - ``one threshold``: the one that did best on the other data sets, in runs of the same model and batch, for all
      costs: by the geometric mean of the cost over that of the best stop, which a single bad run does not rule.
      Beside the settings of its list a rule may be set to stop at once or never, where both are among the scores;
    - ``per cost``: likewise, but one for each cost. ``params`` holds the setting by ratio;
    - ``costs``: the rule is told the costs, and nothing is chosen;
    - ``reference``: nothing to choose either.

    In rows with another stop for each cost (``per cost``, ``costs`` and the oracle), ``stop``, ``labels``, ``error``,
    ``premature``, ``fired``, ``over`` and ``forgone`` are those at a ratio of 1000, or the nearest that there is.

    Args:
        scores: Those of all runs that are compared.
        entries: What the scores are of; the catalogue if left out.
        ends: Whether the two ends may be chosen.

    Raises:
        InvalidValueError: A score is of none of the entries.

    Examples:
        >>> from dataclasses import replace
        >>> from suffice.experiments.compare.scoring import RunCase, scores
        >>> from suffice.trace import Trace
        >>> trace = replace(Trace.of_divergences([0.5, 0.1], [0.6, 0.1], first=10), error=np.array([0.4, 0.3]))
        >>> found = scores(RunCase("toy", "gp", 0), trace, ratios=[10.0, 100.0])
        >>> never = next(row for row in rows(found) if row["rule"] == "Never")
        >>> never["setting"], never["labels"], never["regret"]
        ('reference', 12, {'10': 0.0, '100': 0.0})
    """
    if not scores:
        return []
    found: list[Row] = []
    known = {entry.name: entry for entry in entries or catalogue(scores[0].ratios)}
    groups: dict[tuple[str, str, int], list[RuleScore]] = defaultdict(list)
    limits = _ends(scores) if ends else {}
    for score in scores:
        if score.rule not in known:
            raise InvalidValueError(f"{score.rule} is none of the entries: {', '.join(known)}")
        groups[score.rule, score.case.model, score.case.batch].append(score)
    for key, group in groups.items():
        if known[key[0]].swept and all(score.case in limits for score in group):
            groups[key] = [_between(score, *limits[score.case]) for score in group]
    for (rule, _, _), group in groups.items():
        choices = _choices(known[rule], group)
        for score in group:
            found.extend(_rows_of(known[rule], score, choices.get(score.case.data)))
    return found


def _ends(scores: Sequence[RuleScore]) -> dict[RunCase, tuple[RuleScore, RuleScore]]:
    """The scores of stopping at once and of never stopping, of the runs that have both."""
    at_once, never = ({s.case: s for s in scores if s.rule == name} for name in (AT_ONCE, NEVER))
    return {case: (first, never[case]) for case, first in at_once.items() if case in never}


def _between(score: RuleScore, first: RuleScore, last: RuleScore) -> RuleScore:
    """A score with two more settings, to stop at once and never."""
    names = ("regrets", "labels", "error", "premature", "fired")
    joined: dict[str, Any] = {n: np.concatenate([getattr(part, n) for part in (first, score, last)]) for n in names}
    settings = ("at once", *score.settings, "never")
    return replace(score, settings=settings, stops=(*first.stops, *score.stops, *last.stops), **joined)


def _choices(entry: Entry, group: Sequence[RuleScore]) -> dict[str, ChosenSettings]:
    """The settings chosen for each data set, by runs of the same model and batch on the others."""
    if not entry.swept:
        return {}
    by_data: dict[str, list[Floats]] = defaultdict(list)
    for score in group:
        by_data[score.case.data].append(np.log1p(score.regrets))
    regrets = {data: np.array(several) for data, several in by_data.items()}
    default = group[0].settings.index(entry.default)
    return {data: choose(regrets, data, default=default) for data in regrets}


def _rows_of(entry: Entry, score: RuleScore, choice: ChosenSettings | None) -> Iterator[Row]:
    shown = int(np.argmin(np.abs(np.log(np.array(score.ratios) / _SHOWN))))
    each = np.arange(len(score.ratios))
    if entry.kind == "cost" or entry.name == ORACLE:
        setting = "costs" if entry.kind == "cost" else "reference"
        yield _row(score, setting, {}, shown, score.regrets[each, each])
    elif choice is None:
        setting = "reference" if entry.kind == "reference" else "default"
        yield _row(score, setting, {}, 0, score.regrets[0])
    else:
        for setting, at in (("default", score.settings.index(entry.default)), ("one threshold", choice.one)):
            yield _row(score, setting, {entry.parameter: score.settings[at]}, at, score.regrets[at])
        params = {
            ratio_name(ratio): score.settings[at] for ratio, at in zip(score.ratios, choice.per_cost, strict=True)
        }
        chosen = np.array(choice.per_cost)
        yield _row(score, "per cost", params, choice.per_cost[shown], score.regrets[chosen, each])


def _row(score: RuleScore, setting: str, params: Mapping[str, Any], at: int, regrets: Floats) -> Row:
    return {
        "rule": score.rule,
        "params": dict(params),
        **{name: getattr(score.case, name) for name in _CASE},
        "setting": setting,
        "stop": score.stops[at],
        "labels": _plain(score.labels[at]),
        "error": float(score.error[at]),
        "regret": {ratio_name(ratio): float(value) for ratio, value in zip(score.ratios, regrets, strict=True)},
        "premature": _yes_or_share(score.premature[at]),
        "fired": _yes_or_share(score.fired[at]),
        "over": _plain(score.over[at]),
        "forgone": float(score.forgone[at]),
        "seconds_per_step": score.seconds_per_step,
    }


def _plain(number: Any) -> int | float:
    return int(number) if float(number).is_integer() else float(number)


def _yes_or_share(share: Any) -> bool | float:
    return bool(share) if share in (0.0, 1.0) else float(share)


def leaderboard(rows: Sequence[Row], *, resamples: int = 1000, seed: int = 0) -> list[Row]:
    """Rules ranked by their mean relative regret over all runs and costs, every data set weighing the same.

    For each rule and setting: ``mean``, ``median`` and ``p90`` of the regret; ``typical``, the geometric mean of the
    cost over that of the best stop, less 1; ``interval``, the middle 90 % of means
    of runs drawn again (data sets, then seeds in each); ``difference`` of the mean to that of the best rule over the
    runs that both have (None if there are none), and its ``difference_interval``, paired; the share of ``premature``
    stops, the ``stop_rate``, ``over`` (median), ``forgone`` (mean), ``seconds_per_step`` (median); and how many
    ``data_sets`` and ``runs``. The best rule is that of least mean among those that have all runs, references apart.

    Args:
        rows: What :func:`rows` made, of one kind of task or of all.
        resamples: How many times to draw.
        seed: Seed of the drawing.

    Examples:
        >>> from dataclasses import replace
        >>> from suffice.experiments.compare.scoring import RunCase, scores
        >>> from suffice.trace import Trace
        >>> trace = replace(Trace.of_divergences([0.5, 0.1], [0.6, 0.1], first=10), error=np.array([0.4, 0.3]))
        >>> found = scores(RunCase("toy", "gp", 0), trace, ratios=[10.0, 100.0])
        >>> ranked = leaderboard(rows(found), resamples=100)
        >>> oracle = next(row for row in ranked if row["rule"] == "Oracle")
        >>> oracle["mean"], oracle["interval"], oracle["runs"]
        (0.0, [0.0, 0.0], 1)
    """
    groups: dict[tuple[str, str], dict[tuple[Any, ...], Row]] = defaultdict(dict)
    for row in rows:
        groups[row["rule"], row["setting"]][tuple(row[name] for name in _CASE)] = row
    if not groups:
        return []
    cases = list(dict.fromkeys(case for group in groups.values() for case in group))
    table = np.full((len(groups), len(cases)), np.nan)
    for number, group in enumerate(groups.values()):
        for place, case in enumerate(cases):
            if case in group:
                table[number, place] = np.mean(list(group[case]["regret"].values()))
    data, seeds = [case[0] for case in cases], [case[2] for case in cases]
    means = mean_by_group(table, data)
    apart = table - table[_best(list(groups), table, means)]
    differences = mean_by_group(apart, data)
    drawn, drawn_apart = (resampled_means(each, data, seeds, resamples=resamples, seed=seed) for each in (table, apart))
    ranked = [
        {
            "rule": rule,
            "setting": setting,
            "mean": float(means[number]),
            **_spread(list(group.values())),
            "interval": interval(drawn[number]),
            "difference": None if np.isnan(differences[number]) else float(differences[number]),
            "difference_interval": interval(drawn_apart[number]),
            **_habits(list(group.values())),
        }
        for number, ((rule, setting), group) in enumerate(groups.items())
    ]
    return sorted(ranked, key=lambda row: row["mean"])


def _best(names: list[tuple[str, str]], table: Floats, means: Floats) -> int:
    """The rule of least mean among those that have most runs, references apart where there is anything else."""
    there = (~np.isnan(table)).sum(axis=1)
    rules = np.array([setting != "reference" for _, setting in names])
    eligible = rules if rules.any() else ~rules
    whole = eligible & (there == there[eligible].max())
    return int(np.argmin(np.where(whole, means, np.inf)))


def _spread(group: Sequence[Row]) -> Row:
    weights = equal_weights([row["data"] for row in group])
    values = np.array([list(row["regret"].values()) for row in group])
    spread = np.repeat(weights, values.shape[1])
    found = {name: weighted_quantile(values.ravel(), spread, share) for name, share in (("median", 0.5), ("p90", 0.9))}
    return {**found, "typical": float(np.expm1(weights @ np.log1p(values).mean(axis=1)))}


def _habits(group: Sequence[Row]) -> Row:
    weights = equal_weights([row["data"] for row in group])

    def mean(name: str) -> float:
        return float(weights @ np.array([float(row[name]) for row in group]))

    seconds = [row["seconds_per_step"] for row in group if row["seconds_per_step"] is not None]
    return {
        "premature": mean("premature"),
        "stop_rate": mean("fired"),
        "over": weighted_quantile([row["over"] for row in group], weights, 0.5),
        "forgone": mean("forgone"),
        "seconds_per_step": float(np.median(seconds)) if seconds else None,
        "data_sets": len({row["data"] for row in group}),
        "runs": len(group),
    }


def curves(scores: Sequence[RuleScore]) -> list[Row]:
    """Labels against error: for each rule with several settings, model and setting the mean over runs of both.

    ``labels`` is in units of the labels at the run's first good step, ``error`` in units of its best error; every data
    set weighs the same. A run without any error at its best has no such unit, and is left out.

    Args:
        scores: Those of all runs.

    Returns:
        ``rule``, ``model``, ``value`` (the setting), ``labels``, ``error``, ``data_sets`` and ``runs``; settings from
        the loosest to the strictest.

    Examples:
        >>> from dataclasses import replace
        >>> from suffice.experiments.compare.scoring import RunCase, scores
        >>> from suffice.trace import Trace
        >>> trace = replace(Trace.of_divergences([0.5, 0.1], [0.6, 0.1], first=10), error=np.array([0.4, 0.3]))
        >>> found = scores(RunCase("toy", "gp", 0), trace, ratios=[10.0, 100.0])
        >>> point = next(point for point in curves(found) if point["rule"] == "Budget")
        >>> point["value"], round(point["labels"], 3), round(point["error"], 3)
        (10, 0.917, 1.333)
    """
    groups: dict[tuple[str, str], list[RuleScore]] = defaultdict(list)
    for score in scores:
        if len(score.settings) > 1 and score.best_error > 0.0:
            groups[score.rule, score.case.model].append(score)
    points: list[Row] = []
    for (rule, model), group in groups.items():
        weights = equal_weights([score.case.data for score in group])
        labels = weights @ np.array([score.labels / score.good_labels for score in group])
        errors = weights @ np.array([score.error / score.best_error for score in group])
        about = {"data_sets": len({score.case.data for score in group}), "runs": len(group)}
        points += [
            {"rule": rule, "model": model, "value": value, "labels": float(x), "error": float(y), **about}
            for value, x, y in zip(group[0].settings, labels, errors, strict=True)
        ]
    return points
