"""Scores of recorded runs, coverage and tightness of the guarantees of rules, and evidence for recommendations."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from suffice.bounds import risk_gap, total_variation
from suffice.criteria import LabelWorth, PacBayes, cohen_kappa
from suffice.criteria.label_worth import total_costs
from suffice.errors import InvalidValueError, MissingInputError, SufficeError
from suffice.numerics import Floats
from suffice.trace import Trace
from suffice_research.compare.recording import MODELS, RecordingJob, RecordingSettings, prepared
from suffice_research.compare.scoring import Row, RuleScore, RunCase, equal_weights, rows, scores, weighted_quantile
from suffice_research.recommendation.compared_rules import Entry, catalogue, for_trace

# Largest rounding error of a probability from 0.5 to 1 in half precision.
_HALF_PRECISION: Final = 2.0**-12


@dataclass(frozen=True)
class BoundCoverage:
    """Coverage and tightness of a bound along a run.

    Attributes:
        bound: Which one.
        steps: At how many steps it was held against the truth.
        held: Share of them at which the truth was at most the bound.
        informative: Share of them at which the bound was below 1, the range of what it bounds.
        ratio: Median of bound / truth over the steps at which the truth was above 0, and above what the rounding of a
            record can make of 0; None if there is none, or the median is infinite.
    """

    bound: str
    steps: int
    held: float
    informative: float
    ratio: float | None


class _StopSetErrors(NamedTuple):
    """Predictions on the stop set, compared with its labels.

    Attributes:
        error: Mean of ``1 - p(true class)`` after each step.
        codes: Predicted column of each item, ``steps x items``.
        truth: True column of each item; -1 for a class that was never met.
        slack: What the error may be off by, because probabilities were kept in half precision.
    """

    error: Floats
    codes: NDArray[np.intp]
    truth: NDArray[np.intp]
    slack: float


def guarantees(
    trace: Trace, y_pool: Any, stop_set: Any, *, classes: Sequence[Any] | None = None
) -> list[BoundCoverage]:
    r"""Compare the bounds of rules with guarantees with the true values, along a run with classes.

    - ``ErrorStability``, ``paper`` and ``tight``: the bound on a step's change of the expected error, against
      :math:`|e_t - e_{t-1}|` with :math:`e` the mean over the stop set of ``1 - p(true class)``, a loss from 0 to 1;
    - ``PacBayes`` (with its default ``delta``): the bound on the error against :math:`e_t`;
    - ``KappaCertificate``, for two classes: :math:`4 (1 - T) / T`, with :math:`T` the kappa of a step's predictions
      and those before, against :math:`|F_t - F_{t-1}|` of the second class.

    A step after which hyper-parameters were learned again, or at which a new class occurred, also changes the prior and
    is left out. Quantities that the run did not record are left out too.

    Args:
        trace: The run, with ``stop_probabilities`` recorded.
        y_pool: True labels of the whole pool, as they were told.
        stop_set: The stop set of the run: a :class:`suffice.StopSet`, or indices into the pool.
        classes: The classes that the model was given, if it was; else it has them in the order in which it met them.

    Raises:
        MissingInputError: The run did not record ``stop_probabilities``.
        InvalidValueError: The stop set is not that of the run.

    Examples:
        >>> from dataclasses import replace
        >>> p = np.array([[[0.75, 0.25], [0.5, 0.5]], [[0.75, 0.25], [0.25, 0.75]]])
        >>> trace = replace(Trace.of_divergences([0.5, 0.02], [0.6, 0.02], first=2), measures={"stop_probabilities": p})
        >>> found = guarantees(trace, [0, 1, 1, 0], stop_set=[0, 1])
        >>> found[1].bound, found[1].held, round(found[1].ratio, 6)  # the bound 0.1 against a change of 0.125
        ('ErrorStability tight', 0.0, 0.8)
    """
    seen, classes_met = _seen(trace, np.asarray(y_pool), stop_set, classes)
    found = []
    kept = np.setdiff1d(np.arange(1, len(trace)), [known.step for known in trace.relearned])
    change = np.abs(np.diff(seen.error))[kept - 1]
    new_old, old_new = trace.kl_new_old[kept], trace.kl_old_new[kept]
    paper = np.asarray(risk_gap(new_old)) + np.asarray(risk_gap(old_new))
    found.append(_held("ErrorStability paper", paper, change, seen.slack))
    found.append(_held("ErrorStability tight", np.asarray(total_variation(new_old, old_new)), change, seen.slack))
    if {"train_error", "kl_prior"} <= trace.recorded:
        values = [verdict.value for verdict in trace.replay(PacBayes(1.0))]
        found.append(_held("PacBayes", np.array(values, dtype=np.float64), seen.error, seen.slack))
    if classes_met == 2:
        kappas = np.array([cohen_kappa(seen.codes[t - 1], seen.codes[t]) for t in kept])
        scores = _f_of_second(seen)
        found.append(_held("KappaCertificate", _kappa_bound(kappas), np.abs(np.diff(scores))[kept - 1], 0.0))
    return [each for each in found if each.steps]


def class_columns(trace: Trace, y_pool: Any) -> list[Any]:
    """The class of each column of a run's probabilities: sorted classes of the initial labels, then later classes.

    Examples:
        >>> trace = Trace.of_divergences([0.5, 0.4], [0.6, 0.4], first=2)
        >>> class_columns(trace, ["b", "b", "c", "a"])
        ['b', 'c', 'a']
    """
    labels, items = np.asarray(y_pool), np.asarray(trace.indices).ravel()
    ends = trace.n_labelled - len(trace.initial)
    met: list[Any] = []
    for part in (trace.initial, *np.split(items, ends[:-1])):
        met += [label for label in np.unique(labels[part]).tolist() if label not in met]
    return met


def coverage_summary(found: Sequence[tuple[RunCase, Sequence[BoundCoverage]]]) -> list[dict[str, Any]]:
    """Guarantees over many runs; every data set has the same weight.

    Returns:
        For each bound ``held`` and ``informative`` (means), ``least_held`` (of one run), ``ratio`` (median),
        ``data_sets`` and ``runs``.

    Examples:
        >>> runs = [(RunCase("a", "logistic", seed), [BoundCoverage("PacBayes", 10, held, 1.0, 4.0)]) for seed, held in
        ...         ((0, 1.0), (1, 0.5))]
        >>> coverage_summary(runs)[0]["held"], coverage_summary(runs)[0]["least_held"]
        (0.75, 0.5)
    """
    groups: dict[str, list[tuple[str, BoundCoverage]]] = defaultdict(list)
    for case, several in found:
        for each in several:
            groups[each.bound].append((case.data, each))
    made = []
    for bound, group in groups.items():
        weights = equal_weights([data for data, _ in group])
        ratios = np.array([np.nan if each.ratio is None else each.ratio for _, each in group])
        there = ~np.isnan(ratios)
        made.append(
            {
                "bound": bound,
                "held": float(weights @ [each.held for _, each in group]),
                "least_held": min(each.held for _, each in group),
                "informative": float(weights @ [each.informative for _, each in group]),
                "ratio": weighted_quantile(ratios[there], weights[there], 0.5) if there.any() else None,
                "data_sets": len({data for data, _ in group}),
                "runs": len(group),
            }
        )
    return made


def guarantee_rows(case: RunCase, found: Sequence[BoundCoverage]) -> list[dict[str, Any]]:
    """Guarantees of a run as rows to write.

    Examples:
        >>> guarantee_rows(RunCase("a", "logistic", 0), [BoundCoverage("PacBayes", 10, 1.0, 0.5, None)])[0]["held"]
        1.0
    """
    return [{**asdict(case), **asdict(each)} for each in found]


def _seen(trace: Trace, labels: Any, stop_set: Any, classes: Sequence[Any] | None) -> tuple[_StopSetErrors, int]:
    if "stop_probabilities" not in trace.recorded:
        raise MissingInputError(
            "guarantees are measured on the stop set, but the run did not record stop_probabilities; "
            "simulate(..., record='all') does"
        )
    p = np.asarray(np.nan_to_num(trace.measures["stop_probabilities"]))
    items = np.asarray(getattr(stop_set, "indices", stop_set))
    if items.shape != p.shape[1:2]:
        raise InvalidValueError(
            f"stop_set must be that of the run, with {p.shape[1]} items; the one given has the shape {items.shape}"
        )
    columns = {label: at for at, label in enumerate(class_columns(trace, labels) if classes is None else classes)}
    truth = np.array([columns.get(label, -1) for label in labels[items].tolist()], dtype=np.intp)
    right = np.where(truth >= 0, p[:, np.arange(len(items)), truth], 0.0)
    error = 1.0 - right.mean(axis=1, dtype=np.float64)
    # Three standard deviations of the difference of two means of rounded numbers.
    slack = 3.0 * _HALF_PRECISION * np.sqrt(2.0 / (3.0 * len(items))) if p.dtype == np.float16 else 0.0
    return _StopSetErrors(error, p.argmax(axis=2), truth, float(slack)), p.shape[2]


def _held(bound: str, values: Floats, truth: Floats, slack: float) -> BoundCoverage:
    if not len(values):
        return BoundCoverage(bound, 0, 0.0, 0.0, None)
    moved = truth > slack
    ratios = values[moved] / truth[moved]
    return BoundCoverage(
        bound=bound,
        steps=len(values),
        # The constant allows for the rounding of sums.
        held=float(np.mean(truth <= values + slack + 1e-12)),
        informative=float(np.mean(values < 1.0)),
        ratio=float(np.median(ratios)) if len(ratios) and np.isfinite(np.median(ratios)) else None,
    )


def _kappa_bound(kappas: Floats) -> Floats:
    """``4 (1 - T) / T``; infinite if there is no agreement beyond chance."""
    return np.asarray(np.divide(4.0 * (1.0 - kappas), kappas, out=np.full(len(kappas), np.inf), where=kappas > 0.0))


def _f_of_second(seen: _StopSetErrors) -> Floats:
    """F of the second class after each step; 1 if the class neither occurs nor is predicted."""
    positive, predicted = seen.truth == 1, seen.codes == 1
    both = (predicted & positive).sum(axis=1)
    either = predicted.sum(axis=1) + positive.sum()
    return np.asarray(np.divide(2.0 * both, either, out=np.ones(len(both)), where=either > 0))


class DefaultStop(NamedTuple):
    """A run with the default costs of ``suffice run``: 1 for a label, and 1 for a wrong prediction.

    Attributes:
        labels: Labels at the stop of :class:`suffice.LabelWorth`, or at the end.
        best: Labels at the best stop in hindsight.
        pool: Items in all.
        share: Whether errors are shares of wrong predictions.
    """

    labels: int
    best: int
    pool: int
    share: bool


def default_stop(trace: Trace) -> DefaultStop | None:
    """Return the stop of the default rule and the best one, by its costs; None if the run has not recorded enough."""
    rule = LabelWorth()
    if not rule.needs() <= trace.recorded or not len(trace.predictive_error):
        return None
    share = len(trace.wrong_share) > 0
    pool = int(trace.measures["pool_size"][0])
    # The targets of the comparison have variance 1.
    costs = total_costs(trace.n_labelled, trace.wrong_share if share else trace.predictive_error, pool)
    stop = next((verdict.n_labelled for verdict in trace.replay(rule) if verdict.stop), int(trace.n_labelled[-1]))
    return DefaultStop(stop, int(trace.n_labelled[int(np.argmin(costs))]), pool, share)


@dataclass(frozen=True, eq=False)
class JudgedRun:
    """The results of a run for the comparison.

    Attributes:
        case: Which run.
        scores: Where each rule would have stopped, and what that would have cost.
        guarantees: How often bounds held; nothing without classes.
        first_error: Error after the first step.
        first_wrong_share: Share of the test set predicted wrong after the first step; None for numbers.
        seconds: What the run took when it was recorded.
        default_stop: Stops by the costs that ``suffice run`` counts by default, for a table of one's own.
    """

    case: RunCase
    scores: tuple[RuleScore, ...]
    guarantees: tuple[BoundCoverage, ...]
    first_error: float
    seconds: float
    first_wrong_share: float | None = None
    default_stop: DefaultStop | None = None


def judged(
    job: RecordingJob, trace: Trace, rules: Collection[str], *, by_column: Collection[str] = frozenset()
) -> JudgedRun:
    """Replay rules on a run, and compare their guarantees with the true values.

    Args:
        job: The run.
        trace: Its record.
        rules: Names of the rules; those that need what the run cannot have (classes) are left out.
        by_column: Tables that are compared with several columns to predict.
    """
    data = f"{job.data}:{job.target}" if job.data in by_column else job.data
    case = RunCase(data, job.model, job.seed, job.batch, variant(job.setting))
    entries = [entry for entry in for_trace(trace) if entry.name in rules]
    return JudgedRun(
        case,
        tuple(scores(case, trace, entries=entries)),
        _guarantees(job, trace),
        float(trace.predictive_error[0]),
        float(trace.about.get("seconds", 0.0)),
        float(trace.wrong_share[0]) if len(trace.wrong_share) else None,
        None if job.target is None else default_stop(trace),
    )


def variant(setting: RecordingSettings) -> str:
    """Unusual options of a setting, in words; empty if there are none.

    Examples:
        >>> variant(RecordingSettings()), variant(RecordingSettings(noise=0.1, stop_set=200))
        ('', 'noise 0.1, stop set 200')
    """
    said = [f"noise {setting.noise:g}"] if setting.noise else []
    said += [f"imbalance {setting.imbalance:g}"] if setting.imbalance is not None else []
    said += [f"stop set {setting.stop_set}"] if setting.stop_set != RecordingSettings().stop_set else []
    return ", ".join(said)


def run_summary(found: JudgedRun) -> str:
    """Return the summary of a run, on one line."""
    one = found.scores[0]
    labels = int(max(score.labels.max() for score in found.scores if score.rule == "Never"))
    errors = f"error {found.first_error:.3g} to {one.best_error:.3g} at best"
    if found.first_wrong_share is not None:
        wrong = f"{100.0 * found.first_wrong_share:.3g} to {100.0 * one.least_wrong_share:.3g}\u00a0%"
        errors = f"{wrong} wrong at best, {errors}"
    return f"{labels} labels, {errors}, good from {one.good_labels:.0f} labels on; {found.seconds:.1f} s"


def _guarantees(job: RecordingJob, trace: Trace) -> tuple[BoundCoverage, ...]:
    if MODELS[job.model] != "classification":
        return ()
    try:
        made = prepared(job)
    except SufficeError:
        # The run is saved, but its data are not available; all other results need no data.
        return ()
    return tuple(guarantees(trace, made.task.y_pool, made.stop_set, classes=made.model.classes))


# Ways to set a rule with one setting for each cost.
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
            # The evidence is for configured rules, so stopping at once and never stopping are left out.
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
    """For each rule the best setting over all data sets, one for each ratio."""
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
