"""The rules that stop at a guaranteed error, or at a guaranteed recall."""

from typing import Any

import numpy as np
import pytest

import suffice as sf
from suffice.criteria import Step, criterion_from_dict
from suffice.errors import InvalidTypeError, InvalidValueError, SufficeError
from suffice.learner import ErrorGuarantee, RecallGuarantee
from suffice.models import BayesianLogistic, BayesianRidge
from suffice.session.guarantee_rules import guarantee_rules
from suffice.testing import check_criterion


def test_it_is_a_rule() -> None:
    check_criterion(lambda: ErrorGuarantee(0.1))
    rule = criterion_from_dict(ErrorGuarantee(0.1, confidence=0.9).state_dict())
    assert rule == ErrorGuarantee(0.1, confidence=0.9)
    assert rule.needs() == frozenset()


@pytest.mark.parametrize(
    ("error", "confidence", "stop"),
    [(0.05, 0.95, True), (0.05, 1.0 - 0.05, True), (0.0501, 0.95, False), (0.0, 0.94, False), (0.05, None, False)],
)
def test_error_and_confidence_are_compared(error: float, confidence: float | None, stop: bool) -> None:
    step = Step(n_labelled=100, guaranteed_error=error, guarantee_confidence=confidence)
    verdict = ErrorGuarantee(0.05).observe(step)
    assert verdict.stop is stop
    assert verdict.ready
    if stop:
        assert verdict.certificate is not None
        assert verdict.certificate.statement == (
            "At most 5 % of the predictions for the unlabelled items are wrong (95 % confidence)."
        )


@pytest.mark.parametrize("value", [0.0, 1.0, -0.1, "5 %", float("nan")])
def test_bad_parameters(value: float) -> None:
    with pytest.raises(InvalidValueError, match="at_most must be a number above 0 and below 1"):
        ErrorGuarantee(value)
    with pytest.raises(InvalidValueError, match="confidence must be a number above 0 and below 1"):
        ErrorGuarantee(0.05, confidence=value)


def test_the_tolerance_of_a_rule_is_that_of_the_check_or_larger() -> None:
    X = rare()[0]
    y = X[:, 0] + 0.1 * X[:, 1]
    learner = sf.ActiveLearner(
        BayesianRidge(alpha=1.0, beta=1.0), X, criterion=ErrorGuarantee(0.9, tolerance=0.5), seed=0
    )
    while len(learner.labelled) < 20:
        items = learner.ask(10)
        learner.tell(items, y[items])
    stops = []
    for tolerance in (1.0, 0.5, 0.2):
        check = learner.check(30, tolerance=tolerance)
        check.tell(y[check.indices])
        stops.append(learner.verdict.stop)
    assert stops == [False, True, True]
    assert ErrorGuarantee(0.9).accepts(None)
    assert not ErrorGuarantee(0.9, tolerance=1.0).accepts(None)
    with pytest.raises(InvalidValueError, match="tolerance must be a number of at least 0"):
        ErrorGuarantee(0.1, tolerance=-1.0)
    assert criterion_from_dict(ErrorGuarantee(0.1, tolerance=2.0).state_dict()) == ErrorGuarantee(0.1, tolerance=2.0)


# Recall.


def test_recall_is_a_rule() -> None:
    check_criterion(lambda: RecallGuarantee("spam", 0.1))
    rule = criterion_from_dict(RecallGuarantee("spam", 0.9, confidence=0.99).state_dict())
    assert rule == RecallGuarantee("spam", 0.9, confidence=0.99)
    assert rule.needs() == frozenset()
    assert RecallGuarantee(np.int64(3), 0.9) == RecallGuarantee(3, 0.9)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("recall", "confidence", "stop"),
    [(0.9, 0.95, True), (0.9, 1.0 - 0.05, True), (0.8999, 0.95, False), (1.0, 0.94, False), (1.0, None, False)],
)
def test_recall_and_confidence_are_compared(recall: float, confidence: float | None, stop: bool) -> None:
    step = Step(n_labelled=100, guaranteed_recall=recall, guarantee_confidence=confidence, guaranteed_error=0.0)
    verdict = RecallGuarantee("spam", 0.9).observe(step)
    assert verdict.stop is stop
    if stop:
        assert verdict.certificate is not None
        assert verdict.certificate.statement == (
            "At least 90 % of the items of class 'spam' are found (95 % confidence)."
        )


@pytest.mark.parametrize("value", [0.0, 1.0, -0.1, "5 %", float("nan")])
def test_bad_parameters_of_recall(value: float) -> None:
    with pytest.raises(InvalidValueError, match="at_least must be a number above 0 and below 1"):
        RecallGuarantee("spam", value)
    with pytest.raises(InvalidValueError, match="confidence must be a number above 0 and below 1"):
        RecallGuarantee("spam", 0.9, confidence=value)
    with pytest.raises(InvalidTypeError, match="class_name must be a class"):
        RecallGuarantee(["spam"], 0.9)  # type: ignore[arg-type]


def test_rules_inside_others_are_found() -> None:
    one, two = ErrorGuarantee(0.1), RecallGuarantee("spam", 0.8)
    assert guarantee_rules((one.patience(2) & sf.Budget(10)) | two.after(5)) == [one, two]
    assert guarantee_rules(sf.Budget(10)) == []


def rare(m: int = 1500) -> tuple[Any, Any]:
    X = np.random.default_rng(0).normal(size=(m, 2))
    return X, np.where(X[:, 0] > 1.2, "spam", "ham")


def labelled(rule: Any, n: int = 100) -> tuple[sf.ActiveLearner, Any]:
    X, y = rare()
    learner = sf.ActiveLearner(BayesianLogistic(), X, criterion=rule, seed=0)
    while len(learner.labelled) < n:
        items = learner.ask(10)
        learner.tell(items, y[items])
    return learner, y


def test_a_learner_stops_when_the_recall_is_guaranteed() -> None:
    learner, y = labelled(RecallGuarantee("spam", 0.8))
    before = learner.verdict
    assert not before.stop
    plan = learner.recall_plan("spam", 0.8)
    assert plan.labels is not None
    assert plan.alpha == 0.025
    other = learner.check(20)
    other.tell(y[other.indices])
    assert "no check has guaranteed the recall" in learner.verdict.reason
    check = learner.check(plan.labels, recall_of="spam")
    found = check.tell(y[check.indices])
    assert found is not None
    assert found.value >= 0.8
    assert learner.verdict.stop
    assert learner.verdict.value == found.value
    # The next model has no guarantee.
    learner.ask()
    assert learner.verdict.value is None


def test_the_recall_of_another_class_is_not_enough() -> None:
    learner, y = labelled(RecallGuarantee("spam", 0.3))
    check = learner.check(200, recall_of="ham")
    found = check.tell(y[check.indices])
    assert found is not None
    assert found.value > 0.3
    assert not learner.verdict.stop


@pytest.mark.slow
def test_a_planned_recall_check_succeeds_as_often_as_planned() -> None:
    learner, y = labelled(sf.Budget(1500))
    plan = learner.recall_plan("spam", 0.85, probability=0.7)
    assert plan.labels is not None
    rest = np.setdiff1d(np.arange(1500), learner.labelled)
    predicted = learner.model.predict(rare()[0][rest]) == "spam"
    truth = y[rest] == "spam"
    found, rng = int((y[learner.labelled] == "spam").sum()), np.random.default_rng(1)
    exact = sf.checks.plan_recall(
        0.85,
        found,
        int((truth & ~predicted).sum()),
        len(rest),
        predicted=int(predicted.sum()),
        right=int((truth & predicted).sum()),
        alpha=0.025,
        probability=0.7,
    )
    assert exact.labels is not None
    successes = []
    for _ in range(300):
        check = sf.checks.Check.draw(np.arange(len(rest)), exact.labels, rng)
        items = list(check.items)
        check = check.tell({item: str(y[rest[item]]) for item in items})
        guess = np.where(predicted[items], "spam", "ham")
        value = check.recall_guarantee("spam", found, predictions=guess, predicted=int(predicted.sum())).value
        successes.append(value >= 0.85)
    assert 0.6 < np.mean(successes) < 0.95


def test_the_cost_of_a_recall_is_said_first() -> None:
    learner, _ = labelled(sf.Budget(1500))
    assert "Not achievable without labelling" in str(learner.recall_plan("spam", 1.0, predicted_as_found=False))
    sizes = [learner.recall_plan("spam", 0.7, predicted_as_found=flag).labels for flag in (True, False)]
    assert sizes[0] is not None
    assert sizes[1] is not None
    assert sizes[0] < sizes[1]
    with pytest.raises(InvalidValueError, match="class_name must be one of the classes"):
        learner.recall_plan("news", 0.9)
    with pytest.raises(InvalidValueError, match=r"at_least must be a number above 0 and at most 1, not 1\.5"):
        learner.recall_plan("spam", 1.5)
    with pytest.raises(SufficeError, match="no label yet"):
        sf.ActiveLearner(BayesianLogistic(), rare()[0], seed=0).recall_plan("spam", 0.9)
    X = rare()[0]
    numbers = sf.ActiveLearner(BayesianRidge(alpha=1.0, beta=1.0), X, seed=0)
    items = numbers.ask(10)
    numbers.tell(items, X[items, 0])
    with pytest.raises(InvalidValueError, match="recall_plan is for classes"):
        numbers.recall_plan("spam", 0.9)
