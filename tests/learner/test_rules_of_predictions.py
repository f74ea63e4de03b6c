"""Every rule with predictions in place of a model: probabilities, those of a committee, and classes alone."""

import json
from functools import cache
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Perceptron
from sklearn.naive_bayes import GaussianNB

import suffice as sf
from suffice.acquisition import bald
from suffice.criteria import Criterion, committee_agreement, worth_facts
from suffice.criteria.base import example_rule, fields_with_probabilities
from suffice.criteria.step_and_verdict import FIELD_KINDS
from suffice.errors import InvalidValueError, MissingInputError
from tests.every_rule import OF_OPTIMISATION, OF_SCREENING

N, MEMBERS = 400, 5
_RNG = np.random.default_rng(0)
X = _RNG.normal(size=(N, 3))
Y = np.where(X[:, 0] + 0.5 * _RNG.normal(size=N) > 0.0, "right", "left")
Z = np.digitize(X[:, 0] + 0.3 * X[:, 1], [-0.6, 0.6]).astype(str)
ITEMS = _RNG.permutation(N)
ROUNDS = (20, 26, 33, 41, 50)
COUNTING = {"Budget", "PoolFraction", "CostLimit", "TimeLimit"}
#: Rules that use the predicted class of each item and nothing else of the predictions.
OF_CLASSES = {
    *("SelectedAccuracy", "ClassificationChange", "StabilizingPredictions", "KappaCertificate", "PredictedFChange"),
}
OF_COMMITTEES = {"InformationGain", "SelectionAgreement", "ValidationSetAgreement", "IntrinsicStopping"}
#: Rules that need a posterior, a prior, a validation set, or numbers.
OF_MORE = {"ErrorStability", "DeterministicBoundRuns", "PacBayes", "HeldOutPlateau", "MaxVariance"}
OTHERS = OF_MORE | OF_SCREENING | OF_OPTIMISATION


@cache
def members(n: int) -> Any:
    """Class probabilities of all items by each member of a committee."""
    parts = [np.random.default_rng(k).permutation(n)[: 3 * n // 4] for k in range(MEMBERS)]
    return np.stack([GaussianNB().fit(X[ITEMS[part]], Y[ITEMS[part]]).predict_proba(X) for part in parts], axis=1)


def arguments(kind: str, n: int) -> dict[str, Any]:
    averaged = members(n).mean(axis=1)
    return {
        "committee": {"probabilities": members(n)},
        "function": {"model": lambda rows: members(n)[list(rows)]},
        "probabilities": {"probabilities": averaged},
        "classes": {"predictions": np.array(["left", "right"])[averaged.argmax(axis=1)]},
    }[kind]


def run(kind: str, rule: Criterion, **options: Any) -> sf.StopMonitor:
    monitor = sf.StopMonitor(range(N), rule, seed=0, estimate_time=0.0, **options)
    for n in ROUNDS:
        monitor.update(indices=ITEMS[:n], labels=Y[ITEMS[:n]], random=ITEMS[:n:2], **arguments(kind, n))
    return monitor


def works(kind: str, name: str) -> bool:
    """Whether a rule works with predictions of a kind."""
    if name == "ThresholdUpdate":
        name = "MinExpectedError"
    if kind == "classes":
        return name in COUNTING | OF_CLASSES
    return name not in OTHERS | (set() if kind in {"committee", "function"} else OF_COMMITTEES)


@pytest.mark.parametrize("kind", ["classes", "probabilities", "committee", "function"])
@pytest.mark.parametrize("name", sf.criteria.RULES)
def test_every_rule_gives_verdicts_or_names_what_is_missing(kind: str, name: str) -> None:
    rule = example_rule(sf.criteria.RULES[name])
    if works(kind, name):
        monitor = run(kind, rule)
        assert len(monitor.steps) >= len(ROUNDS) - 1
        assert monitor.rule_verdict.n_labelled == ROUNDS[-1]
        return
    with pytest.raises(MissingInputError) as raised:
        run(kind, rule)
    said, needs = str(raised.value), rule.needs()
    assert any(field in said.partition(": ")[0] for field in needs & set(FIELD_KINDS))
    working = said.rpartition("Rules that work: ")[2].split(", ")
    assert working[-1] == "ErrorGuarantee"
    # The rules of committees are tried only if the rule needs one.
    assert set(working[:-1]) >= COUNTING | (OF_CLASSES if name not in OTHERS else set())
    assert all(works("committee" if kind == "function" else kind, each) for each in working[:-1])


@pytest.mark.parametrize("name", sorted(OF_CLASSES))
def test_predicted_classes_give_the_verdicts_of_their_probabilities(name: str) -> None:
    rule = example_rule(sf.criteria.RULES[name])
    ours, theirs = run("classes", rule), run("probabilities", rule)
    assert ours.verdicts == theirs.verdicts
    assert any(verdict.value is not None for verdict in ours.verdicts)


@pytest.mark.parametrize("name", sorted(OF_CLASSES))
@pytest.mark.parametrize("through_json", [False, True])
def test_a_classifier_without_probabilities_is_its_predicted_classes(name: str, through_json: bool) -> None:
    rule = example_rule(sf.criteria.RULES[name])
    model, given = (sf.StopMonitor(pool, rule, seed=0, estimate_time=0.0) for pool in (X, range(N)))
    for n in ROUNDS:
        known, fitted = ITEMS[:n], Perceptron(random_state=0).fit(X[ITEMS[:n]], Z[ITEMS[:n]])
        model.update(fitted, known, Z[known])
        given.update(predictions=fitted.predict(X), indices=known, labels=Z[known])
        if through_json:
            model = sf.StopMonitor.from_state(json.loads(json.dumps(model.state_dict())), X)
            given = sf.StopMonitor.from_state(json.loads(json.dumps(given.state_dict())), range(N))
    assert model.verdicts == given.verdicts
    assert len(model.verdicts) >= len(ROUNDS) - 1


def test_numbers_by_hand() -> None:
    """Agreement, changes and accuracy of predicted classes, computed with nothing of the monitor."""
    rule = sf.StabilizingPredictions(0.5, 1) | sf.ClassificationChange() | sf.SelectedAccuracy(0.9, window=1)
    monitor = run("classes", rule)
    before, now = (members(n).mean(axis=1).argmax(axis=1) for n in ROUNDS[-2:])
    rest, new = np.setdiff1d(np.arange(N), ITEMS[: ROUNDS[-1]]), ITEMS[ROUNDS[-2] : ROUNDS[-1]]
    agreed = np.mean(before == now)
    chance = sum(np.mean(before == k) * np.mean(now == k) for k in (0, 1))
    kappa, changes, accuracy = (part.value for part in monitor.rule_verdict.parts)
    assert kappa == pytest.approx((agreed - chance) / (1.0 - chance))
    assert changes == np.count_nonzero(before[rest] != now[rest])
    assert accuracy == pytest.approx(np.mean(np.array(["left", "right"])[before[new]] == Y[new]))


def test_a_rule_that_needs_probabilities_is_refused_beside_one_that_does_not() -> None:
    rule = sf.SelectedAccuracy() & sf.MaxConfidence()
    assert fields_with_probabilities(rule) == {"selected_probabilities"}
    with pytest.raises(MissingInputError, match=r"selected_probabilities: predicted classes do not provide it"):
        run("classes", rule)
    assert not fields_with_probabilities(sf.SelectedAccuracy() & sf.StabilizingPredictions())


def test_a_class_that_is_predicted_late_keeps_the_columns() -> None:
    monitor = sf.StopMonitor(range(N), sf.PredictedFChange(0.5, 1), seed=0)
    labels = np.array(["b", "c"] * (N // 2))
    for n, predicted in ((10, ["b", "c"]), (12, ["a", "c"]), (14, ["a", "c"])):
        monitor.update(predictions=predicted * (N // 2), indices=range(n), labels=labels[:n])
    # All "b" have become "a", and "c" has stayed: F changes by 1, 1 and 0; then not at all.
    assert [verdict.value for verdict in monitor.verdicts] == [None, pytest.approx(2.0 / 3.0), 0.0]
    assert [step.stop_probabilities.shape[1] for step in monitor.steps] == [2, 3, 3]  # type: ignore[union-attr]


# Committees.


def test_a_committee_gives_the_fields_of_its_members() -> None:
    monitor = run("committee", sf.InformationGain() | sf.IntrinsicStopping() | sf.LabelWorth())
    step, before, now = monitor.steps[-1], members(ROUNDS[-2]), members(ROUNDS[-1])
    rest, new = np.setdiff1d(np.arange(N), ITEMS[: ROUNDS[-1]]), ITEMS[ROUNDS[-2] : ROUNDS[-1]]
    assert step.pool_gain == pytest.approx(bald(now[rest]).max())
    assert step.selected_agreement == pytest.approx(committee_agreement(before[new].argmax(axis=2).T, 2))
    assert step.stop_agreement == pytest.approx(committee_agreement(now.argmax(axis=2).T, 2))
    facts = worth_facts(now[rest].mean(axis=1), draws=now[rest])
    assert step.unlabelled_error == pytest.approx(facts["unlabelled_error"])
    assert step.reducible_error == pytest.approx(facts["reducible_error"])


def test_a_committee_is_that_of_a_function_that_predicts() -> None:
    class Committee:
        classes_ = np.array(["left", "right"])

        def __init__(self, n: int) -> None:
            self.n = n

    rule = sf.IntrinsicStopping() | sf.LabelWorth()
    theirs = sf.StopMonitor(
        np.arange(N), rule, seed=0, predict=lambda model, rows: members(model.n)[rows], estimate_time=0.0
    )
    for n in ROUNDS:
        theirs.update(Committee(n), ITEMS[:n], Y[ITEMS[:n]], random=ITEMS[:n:2])
    for kind in ("committee", "function"):
        ours = run(kind, rule)
        assert ours.verdicts == theirs.verdicts
        assert ours.error_estimate() == theirs.error_estimate()
        again = sf.StopMonitor.from_state(json.loads(json.dumps(ours.state_dict())), range(N))
        assert again.error_estimate() == ours.error_estimate()


def test_the_order_of_the_members_does_not_matter() -> None:
    rule = sf.InformationGain() | sf.ValidationSetAgreement()
    ours = run("committee", rule)
    theirs = sf.StopMonitor(range(N), rule, seed=0, estimate_time=0.0)
    for n in ROUNDS:
        theirs.update(probabilities=members(n)[:, ::-1], indices=ITEMS[:n], labels=Y[ITEMS[:n]])
    for one, other in zip(ours.steps, theirs.steps, strict=True):
        assert one.pool_gain == pytest.approx(other.pool_gain)
        assert one.stop_agreement == pytest.approx(other.stop_agreement)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (np.full((N - 1, 3, 2), 0.5), r"N x C, or N x K x C .*\(399, 3, 2\)"),
        (np.full((N, 0, 2), 0.5), r"N x K x C .*\(400, 0, 2\)"),
        (np.full((N, 2, 2, 2), 0.5), r"their shape is \(400, 2, 2, 2\)"),
        (np.where(np.arange(N * 6).reshape(N, 3, 2) == 9, 0.9, 0.5), r"row 1 of member 1 is \[0.5, 0.9\]"),
    ],
)
def test_committees_that_cannot_be_used(table: Any, message: str) -> None:
    monitor = sf.StopMonitor(range(N), sf.Budget(100))
    with pytest.raises(InvalidValueError, match=message):
        monitor.update(probabilities=table, indices=range(9), labels=Y[:9])
    assert monitor.left == N


def test_a_model_may_take_the_place_of_its_predicted_classes() -> None:
    monitor = sf.StopMonitor(X, sf.StabilizingPredictions(0.5, 1), seed=0, estimate_time=0.0)
    other = sf.StopMonitor(X, sf.StabilizingPredictions(0.5, 1), seed=0, estimate_time=0.0)
    for k, n in enumerate(ROUNDS):
        model, known = LogisticRegression().fit(X[ITEMS[:n]], Y[ITEMS[:n]]), ITEMS[:n]
        given: dict[str, Any] = {"predictions": model.predict(X)} if k % 2 else {"model": model}
        monitor.update(indices=known, labels=Y[known], **given)
        other.update(model, known, Y[known])
    assert monitor.verdicts == other.verdicts
