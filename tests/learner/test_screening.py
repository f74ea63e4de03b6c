"""Screening: StopMonitor and ActiveLearner with a positive class, their steps, picks, corrections and refusals."""

import json
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import BayesianRidge, LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC

import suffice as sf
from suffice.criteria import Criterion, Step, relevance_facts
from suffice.criteria.base import example_rule
from suffice.errors import InvalidTypeError, InvalidValueError, MissingInputError
from suffice.learner import RecallGuarantee
from suffice.learner.step_inputs import relevant_estimates
from suffice.models import BayesianLogistic, GaussianProcess
from tests.every_rule import OF_SCREENING

RNG = np.random.default_rng(0)
N = 400
X = RNG.normal(size=(N, 3))
Y = np.where(X[:, 0] + 0.3 * RNG.normal(size=N) > 1.3, "yes", "no")
ITEMS = RNG.permutation(N)
ROUNDS = (20, 21, 30, 31, 45, 60)
COUNTING = sorted(OF_SCREENING - {"QuantileRecall"})


def fitted(items: Any, labels: Any = Y) -> Any:
    return LogisticRegression().fit(X[items], labels[items])


def control() -> Any:
    return np.flatnonzero(Y == "yes")[::4]


def rule_named(name: str) -> Criterion:
    return (
        sf.QuantileRecall(len(control()), 0.5, 0.8)
        if name == "QuantileRecall"
        else example_rule(sf.criteria.RULES[name])
    )


def updated(rule: Criterion, rounds: Any = ROUNDS, labels: Any = Y, **options: Any) -> sf.StopMonitor:
    monitor = sf.StopMonitor(X, rule, **{"positive": "yes", "control": control(), **options})
    for n in rounds:
        monitor.update(fitted(ITEMS[:n], labels), ITEMS[:n], labels[ITEMS[:n]], random=ITEMS[:10])
    return monitor


def by_hand(rounds: Any = ROUNDS, labels: Any = Y) -> list[dict[str, Any]]:
    found = []
    for n in rounds:
        told = labels[ITEMS[:n]] == "yes"
        estimates = [told[:i].sum() + (N - i) * told[i] for i in range(10)]
        model = fitted(ITEMS[:n], labels)
        facts = {
            "n_labelled": n,
            "pool_size": N,
            "classes_seen": len(set(labels[ITEMS[:n]])),
            "relevant_found": int(told.sum()),
            "estimated_relevant": max(float(np.mean(estimates)), float(told.sum())),
            "control_found": len(set(control()) & set(ITEMS[:n])),
            **relevance_facts(model.predict_proba(X)[:, 1], np.isin(np.arange(N), ITEMS[:n])),
        }
        found.append(facts)
    return found


# The monitor.


@pytest.mark.parametrize("name", sorted(OF_SCREENING))
def test_a_monitor_gives_the_verdicts_on_steps_built_by_hand(name: str) -> None:
    rule = rule_named(name)
    monitor = updated(rule)
    steps = [
        Step(**{key: value for key, value in facts.items() if key in rule.reads() | {"n_labelled"}})
        for facts in by_hand()
    ]
    assert monitor.trace().steps() == steps
    assert monitor.verdicts == rule.copy().observe_all(steps)
    assert monitor.relevant_found == sum(Y[ITEMS[: ROUNDS[-1]]] == "yes")


@pytest.mark.parametrize("name", sorted(OF_SCREENING))
def test_a_monitor_continues_from_json(name: str) -> None:
    rule = rule_named(name)
    one = updated(rule, ROUNDS[:3])
    saved = json.loads(json.dumps(one.state_dict(), allow_nan=False))
    other = sf.StopMonitor.from_state(saved, X)
    for n in ROUNDS[3:]:
        given = fitted(ITEMS[:n]), ITEMS[:n], Y[ITEMS[:n]], ITEMS[:10]
        assert one.update(*given) == other.update(*given)
    assert one.trace().steps() == other.trace().steps()


@pytest.mark.parametrize("name", COUNTING)
def test_a_corrected_label_changes_the_steps_before(name: str) -> None:
    rule = rule_named(name)
    wrong = Y.copy()
    changed = ITEMS[:15][Y[ITEMS[:15]] == "no"][3]
    wrong[changed] = "yes"
    right, corrected = updated(rule), updated(rule, ROUNDS[:4], wrong)
    for n in ROUNDS[4:]:
        corrected.update(fitted(ITEMS[:n]), ITEMS[:n], Y[ITEMS[:n]], ITEMS[:10])
    if name == "QuantCI":
        # What the model said at the time stays.
        assert corrected.verdicts[-1] == right.verdicts[-1]
        return
    told = [step.relevant_found for step in corrected.trace().steps()]
    assert told == [step.relevant_found for step in right.trace().steps()]
    if name != "Safe":
        # The estimates of the steps before stay.
        assert corrected.verdicts == right.verdicts


def test_what_a_screening_lacks_is_named() -> None:
    with pytest.raises(MissingInputError, match=r"RecallTest requires relevant_found: give positive="):
        updated(sf.RecallTest(), positive=None, control=())
    with pytest.raises(MissingInputError, match=r"QuantCI requires .* no predict_proba"):
        sf.StopMonitor(X, sf.QuantCI(), positive="yes").update(LinearSVC().fit(X, Y), ITEMS[:20], Y[ITEMS[:20]])
    # A rule that counts needs no probabilities.
    model = LinearSVC().fit(X, Y)
    assert not sf.StopMonitor(X, sf.RecallTest(), positive="yes").update(model, ITEMS[:20], Y[ITEMS[:20]]).stop


@pytest.mark.parametrize(
    ("options", "kind", "said"),
    [
        ({"positive": ["yes"]}, InvalidTypeError, "positive must be a class"),
        ({"control": [1]}, InvalidValueError, "give positive= too"),
        ({"positive": "yes", "control": [N]}, InvalidValueError, "control holds 400"),
        ({"positive": "yes", "control": [1, 1]}, InvalidValueError, "twice"),
        (
            {"positive": "yes", "rule": sf.Budget(9) | sf.QuantileRecall(59), "control": [1]},
            InvalidValueError,
            "has 1;",
        ),
    ],
)
def test_wrong_arguments_of_a_monitor(options: dict[str, Any], kind: type[Exception], said: str) -> None:
    with pytest.raises(kind, match=said):
        sf.StopMonitor(X, **options)


def test_a_positive_class_is_not_for_numbers() -> None:
    monitor = sf.StopMonitor(X, sf.Budget(10), positive="yes")
    with pytest.raises(InvalidValueError, match="predicts numbers"):
        monitor.update(BayesianRidge().fit(X, X[:, 0]), [0, 1], [0.5, 0.6])
    with pytest.raises(InvalidValueError, match="predicts numbers"):
        sf.ActiveLearner(GaussianProcess(), X, positive="yes")


def test_a_class_that_is_a_number_may_come_from_numpy() -> None:
    codes = (Y == "yes").astype(int)
    monitor = sf.StopMonitor(X, sf.RecallTest(0.5, 0.3), positive=np.int64(1))
    monitor.update(GaussianNB().fit(X, codes), ITEMS[:40], codes[ITEMS[:40]])
    assert monitor.relevant_found == codes[ITEMS[:40]].sum()
    json.dumps(monitor.state_dict())


def test_a_check_of_the_rest_guarantees_the_recall() -> None:
    rule = RecallGuarantee("yes", at_least=0.5)
    order = np.argsort(-fitted(ITEMS[:60]).predict_proba(X)[:, 1])[:150]
    monitor = sf.StopMonitor(X, rule, positive="yes", seed=0)
    monitor.update(fitted(order), order, Y[order])
    check = monitor.check(120, recall_of="yes", predicted_as_found=False)
    proven = check.tell(Y[check.indices])
    assert proven is not None
    assert proven.quantity == "recall"
    assert monitor.relevant_found == sum(Y[list(monitor.labels)] == "yes")
    assert proven.value <= monitor.relevant_found / (Y == "yes").sum()
    assert monitor.verdict.stop == (proven.value >= 0.5)
    assert "found, class" in monitor._repr_html_()


def test_estimates_are_right_on_average() -> None:
    rng, relevant = np.random.default_rng(1), np.arange(200) < 20
    found = []
    for _ in range(200):
        order = np.argsort(-2.0 * relevant + rng.gumbel(size=200))[:60].tolist()
        drawn = []
        rest = rng.permutation(np.setdiff1d(np.arange(200), []))
        # Every third label is drawn at random from the unlabelled items.
        labelled: list[int] = []
        while len(labelled) < 60:
            random = len(labelled) % 3 == 2
            source = rest if random else order
            labelled.append(next(int(i) for i in source if int(i) not in set(labelled)))
            drawn.append(random)
        y, flags = relevant[labelled].astype(float), np.array(drawn)
        before, left = np.cumsum(y) - y, 200 - np.arange(60)
        found.append((before + left * y)[flags].mean())
    assert np.mean(found) == pytest.approx(20.0, abs=4.0 * np.std(found) / np.sqrt(200))
    assert relevant_estimates([True], [False], 10).tolist() == [1.0]


# The learner.


def screen(learner: sf.ActiveLearner, most: int, labels: Any = Y, size: int = 1) -> list[Any]:
    verdicts = []
    while learner.left and len(learner.labelled) < most:
        items = learner.ask(size)
        verdicts.append(learner.tell(items, labels[items]))
    return verdicts


def test_relevant_items_come_first() -> None:
    learner = sf.ActiveLearner(BayesianLogistic(), X, criterion=sf.RecallTest(), positive="yes")
    screen(learner, 120)
    assert learner.relevant_found == (Y[learner.labelled] == "yes").sum()
    at_random = (Y == "yes").sum() * 120 / N
    assert learner.relevant_found > 2.0 * at_random
    p = learner.model.predict_proba(X)[:, 1]
    rest = np.setdiff1d(np.arange(N), learner.labelled)
    assert learner.ask().tolist() == [rest[p[rest].argmax()]]
    assert learner.ask(5).tolist() == rest[np.argsort(-p[rest], kind="stable")[:5]].tolist()
    assert learner.trace().about["acquisition"] == "relevance"
    assert learner.trace().about["positive"] == "yes"


@pytest.mark.slow
def test_the_first_relevant_item_is_looked_for_at_random() -> None:
    rare = np.where(np.arange(N) == 170, "yes", "no")
    first = np.setdiff1d(np.arange(N), [170])[:10]
    orders = []
    for seed in (0, 1):
        learner = sf.ActiveLearner(
            BayesianLogistic(), X, criterion=sf.RecallTest(), positive="yes", initial=first, seed=seed
        )
        screen(learner, 60, rare)
        orders.append(learner.labelled)
    assert orders[0] != orders[1]
    learner = sf.ActiveLearner(BayesianLogistic(), X, criterion=sf.RecallTest(), positive="yes")
    learner.skip(np.arange(100, 200))
    screen(learner, 400, rare)
    assert len(learner.labelled) == 300
    assert learner.relevant_found == 0


@pytest.mark.one_in(3)
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("size", [1, 4])
def test_live_and_replayed_are_the_same(classes: int, size: int) -> None:
    labels = Y if classes == 2 else np.where((Y == "no") & (X[:, 1] > 0.5), "maybe", Y)
    for name in COUNTING:
        rule = rule_named(name)
        learner = sf.ActiveLearner(BayesianLogistic(), X, criterion=rule, positive="yes", random_share=0.25)
        screen(learner, 50, labels, size)
        assert learner.trace().replay(rule) == learner.verdicts, name
        for step in learner.trace().steps():
            if step.relevant_found is not None:
                assert step.relevant_found == (labels[learner.labelled[: step.n_labelled]] == "yes").sum()
    facts = {key: value for key, value in vars(learner.trace().steps()[-1]).items() if value is not None}
    assert set(facts) >= {"relevant_found", "pool_size", "estimated_relevant"}


def test_probabilities_are_those_of_the_model() -> None:
    learner = sf.ActiveLearner(BayesianLogistic(alpha=1.0), X, criterion=sf.QuantCI(), positive="yes")
    screen(learner, 50)
    p = learner.model.predict_proba(X)[:, 1]
    expected = relevance_facts(p, np.isin(np.arange(N), learner.labelled))
    step = learner.trace().steps()[-1]
    for name, value in expected.items():
        assert getattr(step, name) == pytest.approx(value, rel=1e-6)


def test_a_corrected_label_of_a_learner_counts_from_the_start() -> None:
    rule = sf.RecallTest(0.5, 0.3)
    learner = sf.ActiveLearner(BayesianLogistic(alpha=1.0), X, criterion=rule | sf.Safe(), positive="yes")
    screen(learner, 40)
    item = next(item for item in learner.labelled if Y[item] == "yes")
    before = learner.relevant_found
    learner.correct(item, "no")
    assert learner.relevant_found == before - 1  # type: ignore[operator]
    told = np.array([learner.labels[i] for i in learner.labelled]) == "yes"
    assert [step.relevant_found for step in learner.trace().steps()] == [
        told[: step.n_labelled].sum() for step in learner.trace().steps()
    ]
    assert learner.trace().replay(rule | sf.Safe()) == learner.verdicts


def test_wrong_arguments_of_a_learner() -> None:
    with pytest.raises(InvalidValueError, match="give positive="):
        sf.ActiveLearner(BayesianLogistic(), X, acquisition="relevance")
    with pytest.raises(MissingInputError, match=r"relevant_found, .*positive=\.\.\."):
        sf.ActiveLearner(BayesianLogistic(), X, criterion=sf.RecallTest())
    with pytest.raises(MissingInputError, match=r"control_found, .*StopMonitor"):
        sf.ActiveLearner(BayesianLogistic(), X, criterion=sf.QuantileRecall(59), positive="yes")
    with pytest.raises(InvalidTypeError, match="positive must be a class"):
        sf.ActiveLearner(BayesianLogistic(), X, positive=("yes",))


def test_another_acquisition_goes_with_a_positive_class() -> None:
    learner = sf.ActiveLearner(
        BayesianLogistic(), X, criterion=sf.RecallTest(), positive="yes", acquisition="random", seed=3
    )
    screen(learner, 30)
    assert learner.trace().about["acquisition"] == "random"
