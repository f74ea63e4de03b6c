"""Rules that use predictions wait for a second class: a classifier that has met one is certain of everything."""

from functools import cache
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier

import suffice as sf
from suffice.criteria import Criterion
from suffice.criteria.step_and_verdict import PREDICTION_FIELDS
from suffice.learner.prepare import provided_fields
from suffice.models import BayesianLogistic, GaussianProcess
from tests.every_rule import RULES
from tests.thoroughness import some

LATE = 8


@cache
def cancer() -> tuple[Any, Any]:
    """Two hundred cases, the benign ones first up to item 8."""
    X, y = load_breast_cancer(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    labels = np.where(y == 1, "benign", "malignant")
    order = np.concatenate([np.flatnonzero(labels == "benign")[:LATE], np.flatnonzero(labels == "malignant")[:1]])
    rest = np.setdiff1d(np.arange(len(y)), order)[: 200 - len(order)]
    order = np.concatenate([order, rest])
    return X[order], labels[order]


def learner_for(rule: Criterion, **options: Any) -> sf.ActiveLearner:
    X, y = cancer()
    return sf.ActiveLearner(
        BayesianLogistic(alpha=1.0),
        X,
        criterion=rule,
        initial=np.arange(5),
        acquisition="order",
        stop_set=30,
        validation=(X[150:], y[150:]),
        **options,
    )


def usable(rule: Criterion) -> bool:
    return rule.needs() <= provided_fields(BayesianLogistic(), validated=True)


WITH_PREDICTIONS = [name for name, rule in RULES.items() if rule.requires & PREDICTION_FIELDS and usable(rule)]


def test_every_rule_that_uses_predictions_is_tried() -> None:
    others = {name for name, rule in RULES.items() if usable(rule)} - set(WITH_PREDICTIONS)
    counting = {"Budget", "CostLimit", "PoolFraction", "TimeLimit"}
    assert others == {"ErrorStability", "DeterministicBoundRuns", *counting, "AllOf", "AnyOf", "Patience", "After"}
    assert len(WITH_PREDICTIONS) >= 18


@pytest.mark.parametrize("name", some(WITH_PREDICTIONS, every=2))
def test_a_rule_that_uses_predictions_waits_for_a_second_class(name: str) -> None:
    _, y = cancer()
    rule = RULES[name]
    learner = learner_for(rule)
    learner.tell(np.arange(5), y[:5])
    live = []
    for item in range(5, 20):
        learner.tell(item, y[item])
        # That of the rule alone: a class with few labels holds a stop back.
        live.append(learner.rule_verdict)
    early = live[: LATE - 5]
    assert [(verdict.stop, verdict.ready) for verdict in early] == [(False, False)] * len(early)
    assert all(verdict.reason.startswith("all labels so far are of one class") for verdict in early)
    assert not any(verdict.reason.startswith("all labels") for verdict in live[LATE - 5 :])
    trace = learner.trace()
    assert trace.measures["classes_seen"].tolist() == [1] * (LATE - 5) + [2] * 12
    assert trace.replay(rule) == live
    X, _ = cancer()
    options: dict[str, Any] = {"stop_set": 30, "validation": (X[150:], y[150:]), "acquisition": "order", "steps": 15}
    recorded = sf.simulate(BayesianLogistic(alpha=1.0), X, y, initial=np.arange(5), record=rule, **options)
    assert recorded.replay(rule) == live


def test_eight_rules_stopped_at_once_without_the_count() -> None:
    """What happens where a step does not say how many classes were seen, as in records of earlier versions."""
    _, y = cancer()
    rule = sf.EntropyMax(0.5)
    learner = learner_for(rule)
    learner.tell(np.arange(5), y[:5])
    for item in range(5, 8):
        learner.tell(item, y[item])
    steps = learner.trace().steps()
    assert not any(verdict.ready for verdict in learner.verdicts)
    bare = [sf.Step(n_labelled=step.n_labelled, pool_max_entropy=step.pool_max_entropy) for step in steps]
    assert all(rule.observe(step).ready for step in bare)


def test_steps_of_one_class_leave_nothing_in_a_rule() -> None:
    """Kappas of predictions that are all of one class would be 1."""
    rule = sf.StabilizingPredictions(0.9, 2)
    _, y = cancer()
    learner = learner_for(rule)
    learner.tell(np.arange(5), y[:5])
    verdicts = [learner.tell(item, y[item]) for item in range(5, 11)]
    assert [verdict.ready for verdict in verdicts] == [False, False, False, False, False, True]


def test_a_corrected_label_counts_from_the_start() -> None:
    _, y = cancer()
    rule = sf.MinExpectedError(0.3)
    learner = learner_for(rule)
    wrong = y.copy()
    wrong[2] = "malignant"
    learner.tell(np.arange(5), wrong[:5])
    assert learner.tell(5, y[5]).ready
    assert not learner.correct(2, "benign").ready
    assert learner.trace().measures["classes_seen"].tolist() == [1]
    assert learner.correct(5, "malignant").ready
    assert learner.trace().measures["classes_seen"].tolist() == [2]
    assert learner.trace().replay(rule) == learner.verdicts


def test_labels_told_together_are_counted_together() -> None:
    _, y = cancer()
    learner = learner_for(sf.MinExpectedError(0.3))
    learner.tell(np.arange(5), y[:5])
    learner.tell([5, 6], y[[5, 6]])
    learner.tell([7, 8, 9], y[[7, 8, 9]])
    learner.correct(5, "benign")
    assert learner.trace().measures["classes_seen"].tolist() == [1, 2]


def test_numbers_have_no_classes() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    trace = sf.simulate(GaussianProcess(), X, X[:, 0], steps=5, record=sf.InformationGain(0.1))
    assert "classes_seen" not in trace.measures
    assert all(verdict.ready for verdict in trace.replay(sf.InformationGain(0.1)))


def test_a_composed_rule_waits_in_its_parts() -> None:
    step = sf.Step(n_labelled=5, pool_max_entropy=0.0, classes_seen=1)
    both, one = sf.EntropyMax() & sf.Budget(3), sf.EntropyMax() | sf.Budget(3)
    assert (both.observe(step).stop, both.observe(step).ready) == (False, False)
    assert one.observe(step).stop
    assert both.reads() == {"pool_max_entropy", "classes_seen"}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("share", [True, False])
def test_a_forecast_never_exceeds_the_pool(share: bool) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 2))
    rule = sf.ErrorStability(0.001)
    learner = sf.ActiveLearner(GaussianProcess(), X, criterion=rule, random_share=0.2 if share else 0.0)
    while learner.left > 1:
        items = learner.ask()
        verdict = learner.tell(items, np.sin(X[items, 0]) + 0.1 * rng.normal(size=len(items)))
        if verdict.forecast is not None:
            assert verdict.forecast.high <= 90 - verdict.n_labelled
    replayed = learner.trace().replay(rule)
    assert [verdict.forecast for verdict in replayed[-3:]] == [verdict.forecast for verdict in learner.verdicts[-3:]]


@pytest.mark.parametrize("model", [HistGradientBoostingClassifier(), ExtraTreesClassifier(10)])
def test_trees_that_know_one_class_predict_it(model: Any) -> None:
    X, y = cancer()
    learner = sf.ActiveLearner(model, X, initial=np.arange(5), seed=0)
    learner.tell(np.arange(5), y[:5])
    assert learner.decision(0.05, of="all").finish is not None
    assert set(learner.current_model.predict(X).tolist()) == {"benign"}
    assert learner.current_model.predict_proba(X).shape == (len(X), 1)
    items = np.arange(5, 60)
    learner.tell(items, y[items])
    assert learner.current_model.predict_proba(X).shape == (len(X), 2)
