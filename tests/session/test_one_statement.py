"""Without a target, the verdict is to stop exactly if the decision is; for any rule, labels and order of calls."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import suffice as sf
from suffice.criteria import Criterion
from suffice.errors import InvalidValueError
from suffice.learner import ActiveLearner, StopMonitor
from suffice.learner.session_driver import SessionDriver
from suffice.models import BayesianLogistic, BayesianRidge
from suffice.session.decision import Decision
from suffice.session.standing_stop import FEW_LABELS
from tests.thoroughness import examples

STOPS = ("enough", "limit", "complete")
RULES: list[Criterion] = [
    sf.Budget(25),
    sf.StabilizingPredictions(0.9),
    sf.ErrorStability(0.6, calibration=2),
    sf.LabelWorth() | sf.Budget(40),
]
rules = st.one_of(
    st.sampled_from(RULES), st.floats(-3.0, 3.0).map(lambda power: sf.LabelWorth(mistake_cost=10.0**power))
)
SHARES = (0.01, 0.04, 0.3, 0.5)


def require_one_statement(driver: SessionDriver) -> Decision:
    """Raise an error if the verdict and the decision without a target differ."""
    decision, verdict = driver.decision(compare=False), driver.verdict
    assert verdict.stop == (decision.answer in STOPS) == decision.stop
    if not decision.check_pending:
        assert (decision.answer == "too early") == (not verdict.ready and not verdict.stop)
        assert (decision.held_back is not None) == ("known; it waits for 5 of them" in verdict.reason)
    if decision.answer != "complete":
        assert decision.reason == verdict.reason
        assert decision.stop == (decision.since is not None)
    # A withdrawal is told as long as there is no other stop.
    assert not (decision.stop and decision.withdrawn is not None)
    assert ("The advice to stop at" in str(decision)) == (decision.withdrawn is not None)
    return decision


def made(draw: Callable[[st.SearchStrategy[Any]], Any], *, numbers: bool) -> tuple[Any, Any]:
    """Inputs and labels; classes are often rare."""
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    X = rng.normal(size=(draw(st.sampled_from([30, 90, 400])), 2))
    score = X[:, 0] + draw(st.sampled_from([0.1, 1.0])) * rng.normal(size=len(X))
    if numbers:
        return X, score
    y = np.where(score > np.quantile(score, 1.0 - draw(st.sampled_from(SHARES))), "rare", "other")
    return X, np.where(X[:, 1] > 1.0, "third", y) if draw(st.booleans()) else y


@given(st.data())
@examples(40)
def test_a_learner_makes_one_statement(data: st.DataObject) -> None:
    draw = data.draw
    numbers, rule = draw(st.booleans()), draw(rules)
    if numbers and isinstance(rule, sf.StabilizingPredictions):
        rule = sf.Budget(30)
    X, y = made(draw, numbers=numbers)
    classes = None if draw(st.booleans()) else np.unique(y).tolist()
    model: Any = BayesianRidge() if numbers else BayesianLogistic(classes=classes)
    learner = ActiveLearner(
        model, X, criterion=rule, initial=draw(st.integers(1, 12)), seed=draw(st.integers(0, 9)), random_share=0.3
    )
    before = None
    for _ in range(draw(st.integers(3, 25))):
        if not learner.left:
            break
        act = draw(st.sampled_from(["tell"] * 6 + ["skip", "correct", "check", "save"]))
        begun = len(learner.verdicts) > 0
        if act == "correct" and begun:
            item = draw(st.sampled_from(learner.labelled))
            learner.correct(item, float(-y[item]) if numbers else draw(st.sampled_from(np.unique(y).tolist())))
        elif act == "check" and begun and learner.left > 3:
            check = learner.check(3, tolerance=0.5 if numbers else None)
            if check.open:
                assert require_one_statement(learner).answer == "keep going"
                if draw(st.booleans()):
                    check.tell(y[check.pending])
                else:
                    check.abort()
        elif act == "save":
            learner = ActiveLearner.from_state(json.loads(json.dumps(learner.state_dict())), model, X)
        else:
            items = learner.ask(draw(st.sampled_from([1, 2, 7])))
            said = learner.skip(items[:1]) if act == "skip" else learner.tell(items, y[items])
            assert said == learner.verdict
        decision = require_one_statement(learner)
        # A pool without items left is no advice that can be withdrawn.
        if before is not None and before.since is not None and not decision.stop and not decision.check_pending:
            assert decision.withdrawn is not None
            assert decision.withdrawn.stopped_at == before.since
        before = decision


@given(st.data())
@examples(40)
def test_a_monitor_makes_one_statement(data: st.DataObject) -> None:
    draw = data.draw
    rule = draw(rules.filter(lambda rule: not isinstance(rule, sf.ErrorStability)))
    X, y = made(draw, numbers=False)
    monitor = StopMonitor(X, rule, seed=0)
    labels: dict[int, Any] = {}
    before = None
    for _ in range(draw(st.integers(2, 15))):
        rest = [item for item in range(len(X)) if item not in labels]
        labels |= {item: y[item] for item in rest[: draw(st.sampled_from([1, 3, 12]))]}
        act = draw(st.sampled_from(["add"] * 5 + ["remove", "correct"]))
        if act == "remove" and len(labels) > 6:
            for item in list(labels)[-draw(st.integers(1, 4)) :]:
                del labels[item]
        if act == "correct":
            labels[draw(st.sampled_from(list(labels)))] = draw(st.sampled_from(np.unique(y).tolist()))
        items = np.array(list(labels))
        given_labels = np.array(list(labels.values()))
        model = BayesianLogistic().fit(X[items], given_labels)
        said = monitor.update(model, items, given_labels, random=items[: len(items) // 2])
        assert said == monitor.verdict
        decision = require_one_statement(monitor)
        # A pool without items left is no advice that can be withdrawn.
        if before is not None and before.since is not None and not decision.stop and not decision.check_pending:
            assert decision.withdrawn is not None
            assert decision.withdrawn.stopped_at == before.since
        before = decision
        again = StopMonitor.from_state(json.loads(json.dumps(monitor.state_dict())), X)
        assert again.verdict == monitor.verdict
        restored = again.decision(compare=False)
        assert (restored.answer, restored.since, restored.held_back) == (
            decision.answer,
            decision.since,
            decision.held_back,
        )
        assert restored.withdrawn == decision.withdrawn


def rare_pool() -> tuple[Any, Any]:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(2000, 3))
    score = X[:, 0] + 0.3 * rng.normal(size=2000)
    return X, np.where(score > np.quantile(score, 0.97), "spam", "ham")


def stopped(**settings: Any) -> ActiveLearner:
    """A learner at its first stop, where labels are dear."""
    X, y = rare_pool()
    learner = ActiveLearner(
        BayesianLogistic(classes=["ham", "spam"]), X, criterion=sf.LabelWorth(mistake_cost=0.02), seed=0, **settings
    )
    while not learner.verdict.stop:
        items = learner.ask()
        learner.tell(items, y[items])
    return learner


def test_a_rare_class_holds_a_stop_back_unless_it_may_be_missed() -> None:
    held, missed = stopped(), stopped(may_miss="spam")
    assert sum(bool(label == "spam") for label in missed.labels.values()) < FEW_LABELS
    assert sum(bool(label == "spam") for label in held.labels.values()) == FEW_LABELS
    assert len(missed.labels) < len(held.labels)
    X, y = rare_pool()
    rule = sf.LabelWorth(mistake_cost=0.02)
    for may_miss, learner in (((), held), (["spam"], missed)):
        trace = sf.simulate(
            BayesianLogistic(classes=["ham", "spam"]), X, y, steps=200, decide=rule, may_miss=may_miss, seed=0
        )
        assert trace.decisions[-1].decision.n_labelled == len(learner.labels)


def test_the_recall_of_a_rare_class_is_stated() -> None:
    learner = stopped()
    X, y = rare_pool()
    rare = learner.decision(compare=False).rare_class
    assert rare is not None
    assert (rare.name, rare.labels) == ("spam", FEW_LABELS)
    assert 0.005 < rare.share < 0.1
    said = str(learner.decision(compare=False))
    assert "Class 'spam' is rare" in said
    while len(learner.labels) < 200:
        items = learner.ask(5)
        learner.tell(items, y[items])
    rare = learner.decision(compare=False).rare_class
    assert rare is not None
    assert rare.recall is not None
    rest = np.array([item for item in range(2000) if item not in learner.labels and y[item] == "spam"])
    assert rare.recall == pytest.approx(float(np.mean(learner.model.predict(X[rest]) == "spam")), abs=0.25)
    # A class that is not rare has none.
    y = np.where(X[:, 0] > 0.0, "right", "left")
    learner = ActiveLearner(BayesianLogistic(), X, seed=0)
    learner.tell(learner.ask(10), y[learner.ask(10)])
    assert learner.decision(compare=False).rare_class is None


def test_classes_that_may_be_missed_are_checked() -> None:
    X, y = rare_pool()
    with pytest.raises(InvalidValueError, match="may_miss must be one of the classes 'ham', 'spam', not 'eggs'"):
        ActiveLearner(BayesianLogistic(classes=["ham", "spam"]), X, may_miss="eggs")
    with pytest.raises(InvalidValueError, match="may_miss is for classes"):
        ActiveLearner(BayesianRidge(), X, may_miss="spam")
    monitor = StopMonitor(X, may_miss="spam")
    with pytest.raises(InvalidValueError, match="may_miss holds classes"):
        monitor.update(BayesianRidge().fit(X[:9], X[:9, 0]), np.arange(9), X[:9, 0])
    monitor.update(BayesianLogistic().fit(X[:9], np.where(X[:9, 0] > 0, "spam", "ham")), np.arange(9), y[:9])
    again = StopMonitor.from_state(monitor.state_dict(), X)
    assert again.progress()["may_miss"] == ["spam"]
