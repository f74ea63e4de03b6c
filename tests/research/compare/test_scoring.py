"""A run judged: stops, labels and regrets belong together, for every rule."""

import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from suffice.errors import InvalidValueError
from suffice.trace import Trace
from suffice_research.compare.scoring import RuleScore, RunCase, first_stops, scores
from suffice_research.recommendation.compared_rules import catalogue, for_trace
from suffice_research.recommendation.stopping_costs import (
    RATIOS,
    CostedRun,
    first_good,
    optimal_steps,
    random_regrets,
    regret,
)
from tests.research.compare.compare_runs import REAL, VALIDATION, real_run

CASE = RunCase("toy", "gp", 0)


def by_name(found: list[RuleScore]) -> dict[str, RuleScore]:
    return {score.rule: score for score in found}


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", REAL)
def test_every_entry_is_judged_by_its_own_stops(name: str) -> None:
    trace = real_run(name)
    run, found = CostedRun.of(trace), by_name(scores(CASE, trace))
    entries = {entry.name: entry for entry in for_trace(trace)}
    assert list(found) == list(entries)
    good = first_good(run)
    for rule, score in found.items():
        if rule in ("RandomStop", "Oracle"):
            continue
        extra = VALIDATION if rule == "HeldOutPlateau" else 0
        assert dict(zip(score.settings, score.stops, strict=True)) == first_stops(trace, entries[rule])
        assert score.seconds_per_step is not None
        for at, stop in enumerate(score.stops):
            step = len(run) - 1 if stop is None else stop
            assert score.labels[at] == trace.n_labelled[step] + extra
            own = trace.wrong_share if len(trace.wrong_share) else trace.predictive_error
            assert score.error[at] == own[step]
            assert score.forgone[at] == own[step] - own.min()
            if len(trace.wrong_share):
                assert score.wrong_share[at] == trace.wrong_share[step] >= score.least_wrong_share
            else:
                assert np.isnan([score.wrong_share[at], score.least_wrong_share]).all()
            assert score.over[at] == trace.n_labelled[step] + extra - trace.n_labelled[good]
            assert score.fired[at] == (stop is not None)
            assert score.premature[at] == (stop is not None and stop < good)
            for ratio in (0, 6, 12):
                assert score.regrets[at, ratio] == regret(run, stop, RATIOS[ratio], extra=extra)


@pytest.mark.parametrize("name", REAL)
def test_references(name: str) -> None:
    trace = real_run(name)
    run, found = CostedRun.of(trace), by_name(scores(CASE, trace))
    oracle, chance, never = (found[rule] for rule in ("Oracle", "RandomStop", "Never"))
    assert np.diag(oracle.regrets).tolist() == [0.0] * len(RATIOS)
    assert list(oracle.stops) == optimal_steps(run, RATIOS).tolist()
    assert chance.regrets[0].tolist() == random_regrets(run, RATIOS).tolist()
    assert chance.labels[0] == trace.n_labelled.mean()
    assert chance.premature[0] == pytest.approx(np.mean(np.arange(len(run)) < first_good(run)))
    assert never.stops == (None,)
    assert never.labels[0] == trace.n_labelled[-1]
    assert never.regrets[0].tolist() == [regret(run, None, ratio) for ratio in RATIOS]
    at_once = found["AtOnce"]
    assert (at_once.settings, at_once.stops, at_once.fired[0]) == ((None,), (0,), 1.0)
    assert (at_once.labels[0], at_once.error[0]) == (trace.n_labelled[0], run.error[0])
    assert at_once.regrets[0].tolist() == [regret(run, 0, ratio) for ratio in RATIOS]


def test_ratios_and_entries_of_ones_own() -> None:
    trace = real_run("gp")
    budget = next(entry for entry in catalogue() if entry.name == "Budget")
    (found,) = scores(CASE, trace, ratios=[5.0, 50.0], entries=[budget])
    assert found.ratios == (5.0, 50.0)
    assert found.regrets.shape == (len(budget.settings), 2)
    told = by_name(scores(CASE, trace, ratios=[5.0, 50.0]))["ExpectedCost"]
    assert told.settings == (5.0, 50.0)


def test_another_error_may_judge() -> None:
    trace = real_run("logistic")
    other = np.linspace(1.0, 0.5, len(trace))
    found = by_name(scores(CASE, trace, error=other))
    assert found["Never"].error[0] == 0.5
    assert found["Oracle"].best_error == 0.5


def test_a_score_can_be_sent_to_another_process() -> None:
    found = scores(CASE, real_run("ridge"))
    again = pickle.loads(pickle.dumps(found))
    assert [score.stops for score in again] == [score.stops for score in found]


def test_a_run_without_errors_is_not_judged() -> None:
    with pytest.raises(InvalidValueError, match="judged by its error"):
        scores(CASE, Trace.of_divergences([0.1], [0.1], first=5))
    with pytest.raises(InvalidValueError, match="one number for each step"):
        scores(CASE, replace(real_run("gp"), predictive_error=np.zeros(3)))


@pytest.mark.parametrize("left", [np.zeros(0), np.where(np.arange(30) < 3, np.nan, 0.5)])
def test_a_run_of_an_earlier_version_is_to_be_recorded_again(left: Any) -> None:
    trace = real_run("gp")
    with pytest.raises(InvalidValueError, match="earlier version of suffice recorded it; record it again"):
        scores(CASE, replace(trace, predictive_error=left))
