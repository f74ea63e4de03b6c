"""Statistics of more than 100,000 items: averages and counts over a random sample, extremes over all items."""

import json
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

import suffice as sf
from suffice.criteria import Criterion, ThresholdUpdate, pool_facts
from suffice.learner.pool_sample import SAMPLE_ITEMS, WHOLE_POOL, PoolSample
from tests.thoroughness import examples

LARGE = WHOLE_POOL + 1
_RNG = np.random.default_rng(0)
X = _RNG.normal(size=(LARGE + 1000, 2))
Y = (X[:, 0] + 0.5 * _RNG.normal(size=len(X)) > 0.0).astype(int)
ITEMS = _RNG.permutation(WHOLE_POOL)
ROUNDS = (40, 50, 60)
AVERAGES: dict[str, Criterion] = {
    "pool_uncertainty": sf.OverallUncertainty(),
    "pool_risk": sf.MinExpectedError(),
    "pool_confidence_variance": sf.VarianceModel(),
    "pool_changes": sf.ClassificationChange(),
    "pool_f": sf.PerformanceConvergence(),
}
EXTREMES: dict[str, Criterion] = {"pool_max_entropy": sf.EntropyMax(), "pool_margin": sf.MarginExhaustion(0.1)}


@cache
def table(n: int) -> Any:
    """Class probabilities of all items by a model of some labels."""
    return LogisticRegression().fit(X[ITEMS[:n]], Y[ITEMS[:n]]).predict_proba(X)


def followed(size: int, rule: Criterion, rounds: tuple[int, ...] = ROUNDS, seed: int | None = 3) -> sf.StopMonitor:
    monitor = sf.StopMonitor(range(size), rule, seed=seed, estimate_time=0.0)
    for n in rounds:
        monitor.update(probabilities=table(n)[:size], indices=ITEMS[:n], labels=Y[ITEMS[:n]])
    return monitor


def by_hand(name: str, items: Any, n: int, before: int) -> Any:
    return pool_facts(table(n)[items], before=table(before)[items].argmax(axis=1))[name]


@pytest.mark.parametrize("name", AVERAGES)
def test_averages_of_a_large_pool_are_those_of_the_stop_set(name: str) -> None:
    monitor = followed(LARGE, AVERAGES[name])
    sample = np.setdiff1d(sf.StopSet.draw(LARGE, 2000, seed=3).indices, ITEMS[:60])
    step, verdict = monitor.steps[-1], monitor.rule_verdict
    assert getattr(step, name) == by_hand(name, sample, 60, 50)
    assert step.pool_sample == len(sample)
    assert 0 < len(sample) <= SAMPLE_ITEMS
    assert verdict.reason.endswith(f" (in a random sample of {len(sample):,} unlabelled items)")
    assert str(verdict).count("random sample") == 1
    # Other items have other values, so that it cannot be the statistic of all of them.
    if name != "pool_changes":
        assert getattr(step, name) != by_hand(name, np.setdiff1d(np.arange(LARGE), ITEMS[:60]), 60, 50)


@pytest.mark.parametrize("name", [*AVERAGES, *EXTREMES])
def test_statistics_of_a_pool_of_100_000_items_are_those_of_all_unlabelled_ones(name: str) -> None:
    monitor = followed(WHOLE_POOL, (AVERAGES | EXTREMES)[name])
    rest = np.setdiff1d(np.arange(WHOLE_POOL), ITEMS[:60])
    assert getattr(monitor.steps[-1], name) == by_hand(name, rest, 60, 50)
    assert monitor.steps[-1].pool_sample is None
    assert "sample" not in monitor.rule_verdict.reason


@pytest.mark.parametrize("name", EXTREMES)
def test_extremes_of_a_large_pool_are_those_of_all_unlabelled_items(name: str) -> None:
    monitor, rest = followed(LARGE, EXTREMES[name]), np.setdiff1d(np.arange(LARGE), ITEMS[:60])
    assert getattr(monitor.steps[-1], name) == by_hand(name, rest, 60, 50)
    assert getattr(monitor.steps[-1], name) != by_hand(name, PoolSample.draw(LARGE, 3, wanted=True).items, 60, 50)
    assert "sample" not in monitor.rule_verdict.reason


def test_averages_and_extremes_of_one_rule() -> None:
    both = followed(LARGE, sf.EntropyMax() | sf.OverallUncertainty()).steps[-1]
    assert both.pool_max_entropy == followed(LARGE, sf.EntropyMax()).steps[-1].pool_max_entropy
    assert both.pool_uncertainty == followed(LARGE, sf.OverallUncertainty()).steps[-1].pool_uncertainty
    tightened = followed(LARGE, ThresholdUpdate(sf.MinExpectedError(0.9)))
    assert tightened.rule_verdict.reason.count("random sample") == 1


def test_the_largest_gain_of_a_committee_is_that_of_all_unlabelled_items() -> None:
    members = np.stack([np.full((LARGE, 2), 0.5), np.tile([0.4, 0.6], (LARGE, 1))], axis=1)
    outside = np.setdiff1d(np.arange(LARGE), sf.StopSet.draw(LARGE, seed=0).indices)[-1]
    members[outside] = [[0.0, 1.0], [1.0, 0.0]]
    monitor = sf.StopMonitor(range(LARGE), sf.InformationGain(), estimate_time=0.0)
    monitor.update(probabilities=members, indices=[0, 1], labels=[0, 1])
    assert monitor.steps[-1].pool_gain == pytest.approx(np.log(2.0))


@pytest.mark.parametrize("changed_of_sample", [0, 3])
def test_changes_are_counted_in_the_same_sample_at_each_update(changed_of_sample: int) -> None:
    monitor = sf.StopMonitor(range(LARGE), sf.ClassificationChange(), seed=1)
    sample = sf.StopSet.draw(LARGE, seed=1).indices
    predicted = np.arange(LARGE) % 2
    known = np.setdiff1d(np.arange(100), sample)[:10]
    monitor.update(predictions=predicted, indices=known[:8], labels=predicted[known[:8]])
    assert not monitor.rule_verdict.ready
    now = predicted.copy()
    now[sample[:changed_of_sample]] = 1 - now[sample[:changed_of_sample]]
    others = np.setdiff1d(np.arange(200, LARGE), sample)[:500]
    now[others] = 1 - now[others]
    verdict = monitor.update(predictions=now, indices=known, labels=predicted[known])
    assert monitor.steps[-1].pool_changes == changed_of_sample
    assert monitor.rule_verdict.stop == (changed_of_sample == 0)
    assert "in a random sample of 2,000 unlabelled items" in verdict.reason


@given(order=st.permutations(range(30)), name=st.sampled_from(sorted(AVERAGES)))
@examples(4)
def test_the_order_of_labels_does_not_matter(order: list[int], name: str) -> None:
    monitor = sf.StopMonitor(range(LARGE), AVERAGES[name], seed=0)
    for n in (20, 30):
        known = [ITEMS[k] for k in order if k < n]
        monitor.update(probabilities=table(n + 20)[:LARGE], indices=known, labels=Y[known])
    other = sf.StopMonitor(range(LARGE), AVERAGES[name], seed=0)
    for n in (20, 30):
        other.update(probabilities=table(n + 20)[:LARGE], indices=ITEMS[:n], labels=Y[ITEMS[:n]])
    assert monitor.verdicts == other.verdicts
    assert monitor.steps == other.steps


@pytest.mark.parametrize("name", AVERAGES)
def test_a_saved_monitor_goes_on_with_its_sample(name: str) -> None:
    monitor = followed(LARGE, AVERAGES[name], ROUNDS[:2])
    again = sf.StopMonitor.from_state(json.loads(json.dumps(monitor.state_dict())), range(LARGE))
    for each in (monitor, again):
        each.update(probabilities=table(60)[:LARGE], indices=ITEMS[:60], labels=Y[ITEMS[:60]])
    assert again.steps == monitor.steps
    assert again.verdicts == monitor.verdicts


def test_the_seed_chooses_the_sample() -> None:
    values = {followed(LARGE, sf.OverallUncertainty(), (40,), seed).steps[-1].pool_uncertainty for seed in (0, 1, 2)}
    assert len(values) == 3
    assert (
        followed(LARGE, sf.OverallUncertainty(), (40,), None).steps
        == followed(LARGE, sf.OverallUncertainty(), (40,), 0).steps
    )


def test_all_items_are_used_if_nearly_all_of_the_sample_is_labelled() -> None:
    monitor = sf.StopMonitor(range(LARGE), sf.ClassificationChange(), seed=0, estimate_time=0.0)
    sample, predicted = sf.StopSet.draw(LARGE, seed=0).indices, np.arange(LARGE) % 2
    few = np.append(sample[:1800], [0, 1])
    few = np.unique(few)
    monitor.update(predictions=predicted, indices=few, labels=predicted[few])
    assert monitor.rule_verdict.n_labelled == len(few)
    now, more = predicted.copy(), np.unique(np.append(few, sample[:1801]))
    rest = np.setdiff1d(np.arange(LARGE), more)
    now[rest[:7]] = 1 - now[rest[:7]]
    monitor.update(predictions=now, indices=more, labels=predicted[more])
    # The classes of items outside the sample were not kept, and count as unchanged once.
    assert monitor.steps[-1].pool_changes == np.isin(rest[:7], sample).sum()
    assert monitor.steps[-1].pool_sample is None
    last, later = np.append(more, rest[20]), now.copy()
    later[rest[30:39]] = 1 - later[rest[30:39]]
    monitor.update(predictions=later, indices=last, labels=predicted[last])
    assert monitor.steps[-1].pool_changes == 9


def test_codes_of_the_sample_and_of_the_pool() -> None:
    sample, codes = PoolSample.draw(LARGE, 0, wanted=True), np.arange(LARGE) % 5
    assert sample.codes_of_sample(codes).tolist() == (sample.items % 5).tolist()
    assert sample.codes_of_sample(sample.items % 5).tolist() == (sample.items % 5).tolist()
    spread = sample.codes_of_all(sample.items % 5)
    assert spread[sample.items].tolist() == (sample.items % 5).tolist()
    assert np.count_nonzero(spread == -1) == LARGE - SAMPLE_ITEMS
    assert sample.codes_of_all(codes) is codes
    for small in (PoolSample.draw(WHOLE_POOL, 0, wanted=True), PoolSample.draw(LARGE, 0, wanted=False)):
        assert small.places([]) is None
        assert small.codes_of_all(codes[: small.size]).tolist() == codes[: small.size].tolist()


def test_an_extended_pool_gets_a_sample_of_all_its_items() -> None:
    model = LogisticRegression().fit(X[ITEMS[:40]], Y[ITEMS[:40]])
    for size in (WHOLE_POOL, LARGE):
        monitor = sf.StopMonitor(X[:size], sf.OverallUncertainty(), seed=2, estimate_time=0.0)
        monitor.update(model, ITEMS[:40], Y[ITEMS[:40]])
        monitor.extend(X[size : size + 900])
        sample = np.setdiff1d(sf.StopSet.draw(size + 900, seed=2).indices, ITEMS[:40])
        facts = pool_facts(model.predict_proba(X[sample]))
        assert monitor.steps[-1].pool_uncertainty == pytest.approx(facts["pool_uncertainty"], rel=1e-12)
        assert monitor.steps[-1].pool_sample == len(sample)


def test_changes_of_another_sample_are_not_compared() -> None:
    monitor = sf.StopMonitor(X[:LARGE], sf.ClassificationChange(), seed=2, estimate_time=0.0)
    models = {n: LogisticRegression().fit(X[ITEMS[:n]], Y[ITEMS[:n]]) for n in ROUNDS}
    for n in ROUNDS[:2]:
        monitor.update(models[n], ITEMS[:n], Y[ITEMS[:n]])
    monitor.extend(X[LARGE : LARGE + 500])
    assert not monitor.rule_verdict.ready
    assert "pool_changes is not known any more" in monitor.rule_verdict.reason
    monitor.update(models[60], ITEMS[:60], Y[ITEMS[:60]])
    sample = np.setdiff1d(sf.StopSet.draw(LARGE + 500, seed=2).indices, ITEMS[:60])
    was, now = (models[n].predict(X[sample]) for n in ROUNDS[1:])
    assert monitor.steps[-1].pool_changes == np.count_nonzero(was != now)


def test_a_learner_uses_the_whole_pool() -> None:
    learner = sf.ActiveLearner(
        LogisticRegression(),
        X[:LARGE],
        criterion=sf.OverallUncertainty(),
        acquisition="random",
        seed=0,
        initial=ITEMS[:30],
    )
    items = ITEMS[:40]
    for new in (items[:30], items[30:]):
        learner.tell(new, Y[new])
    model = LogisticRegression().fit(X[items], Y[items])
    rest = np.setdiff1d(np.arange(LARGE), items)
    facts = pool_facts(model.predict_proba(X[rest]))
    assert learner.rule_verdict.value == pytest.approx(facts["pool_uncertainty"], rel=1e-9)
    assert "sample" not in learner.rule_verdict.reason
