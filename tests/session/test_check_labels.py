"""The labels of a complete check are random labels, which estimate and decision count before they are learned."""

import json
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.naive_bayes import GaussianNB

import suffice as sf
from suffice.models import BayesianLogistic, BayesianRidge, GaussianProcess
from suffice.project.project_learner import ProjectLearner
from suffice.project.settings import Settings
from suffice.project.state import Answer
from suffice.session.error_estimate import error_now

RNG = np.random.default_rng(3)
X = RNG.normal(size=(300, 3))
CLASSES = np.where(X[:, 0] + 0.8 * RNG.normal(size=300) > 0.0, "right", "left")
NUMBERS = X[:, 0] - X[:, 1] + 0.3 * RNG.normal(size=300)
CLASSIFIERS = [
    BayesianLogistic(alpha=1.0),
    BayesianLogistic(),
    GaussianNB(),
    RandomForestClassifier(20, random_state=0),
]
REGRESSORS = [GaussianProcess(1.0, 0.1), BayesianRidge()]
SIZE = 40


def labels_for(model: Any) -> Any:
    return NUMBERS if type(model) in map(type, REGRESSORS) else CLASSES


def quantity(model: Any) -> dict[str, Any]:
    """What a check of the model guarantees."""
    return {"tolerance": 0.5} if labels_for(model) is NUMBERS else {}


def labelled_learner(model: Any, **options: Any) -> sf.ActiveLearner:
    learner = sf.ActiveLearner(model, X, criterion=sf.Budget(200), **{"seed": 0, **options})
    while len(learner.labelled) < 30:
        items = learner.ask(5)
        learner.tell(items, labels_for(model)[items])
    return learner


def updated_monitor(model: Any) -> sf.StopMonitor:
    """A monitor after two updates."""
    monitor = sf.StopMonitor(X, sf.Budget(200), seed=0)
    for n in (20, 30):
        monitor.update(model.fit(X[:n], CLASSES[:n]), np.arange(n), CLASSES[:n], random=True)
    return monitor


def assert_one_error(loop: sf.ActiveLearner | sf.StopMonitor) -> None:
    """The error of the decision is the estimate, and its number of random labels is that of the loop."""
    estimate = loop.error_estimate()
    assert loop.decision(compare=False).error == error_now(estimate, share=loop.share)
    assert estimate.random_labels == loop.random_labels


@pytest.mark.parametrize("model", [*CLASSIFIERS, *REGRESSORS], ids=lambda model: type(model).__name__)
def test_a_learner_counts_the_labels_of_a_check(model: Any) -> None:
    learner, y = labelled_learner(model), labels_for(model)
    before = learner.error_estimate()
    check = learner.check(SIZE, **quantity(model))
    items = check.indices
    check.tell({int(item): y[item] for item in items[:-1]})
    # An open check changes nothing.
    assert learner.error_estimate() == before
    check.tell(y[check.pending])
    after = learner.error_estimate()
    assert after.random_labels == before.random_labels + SIZE
    assert after != before
    assert learner.decision(compare=False).n_labelled == 30 + SIZE
    assert_one_error(learner)
    # Learning the labels does not change their number.
    learner.ask()
    assert learner.error_estimate().random_labels == before.random_labels + SIZE
    assert_one_error(learner)


def test_the_estimate_is_close_to_the_errors_of_a_large_check() -> None:
    learner = labelled_learner(BayesianLogistic(alpha=1.0))
    check = learner.check(200)
    predicted = check.model.predict(X[check.indices])
    check.tell(CLASSES[check.indices])
    wrong = float((predicted != CLASSES[check.indices]).mean())
    error = learner.decision().error
    assert error is not None
    assert error.low < wrong < error.high
    assert error.value == pytest.approx(wrong, abs=0.05)


@pytest.mark.parametrize("model", [BayesianLogistic(alpha=1.0), GaussianNB()], ids=lambda model: type(model).__name__)
def test_a_corrected_answer_of_a_complete_check_changes_the_estimate(model: Any) -> None:
    learner = labelled_learner(model)
    check = learner.check(SIZE)
    check.tell(CLASSES[check.indices])
    before = learner.error_estimate()
    predicted = dict(zip(check.unlabelled.tolist(), check.predictions.tolist(), strict=True))
    item = next(int(item) for item in check.indices if predicted[int(item)] == CLASSES[item])
    learner.correct(item, "left" if CLASSES[item] == "right" else "right")
    after = learner.error_estimate()
    assert after.value > before.value
    assert after.random_labels == before.random_labels
    assert_one_error(learner)


def test_an_aborted_check_counts_its_random_labels_once() -> None:
    learner = labelled_learner(BayesianLogistic(alpha=1.0))
    before, check = learner.random_labels, learner.check(SIZE)
    check.tell({int(item): CLASSES[item] for item in check.indices[:7]})
    assert learner.random_labels == before
    check.abort()
    assert learner.error_estimate().random_labels == before + 7
    assert_one_error(learner)


def test_the_items_of_one_predicted_class_are_not_random() -> None:
    learner = labelled_learner(BayesianLogistic(alpha=1.0))
    before, check = learner.random_labels, learner.check(SIZE, precision_of="right")
    check.tell(CLASSES[check.indices])
    assert learner.error_estimate().random_labels == before
    assert learner.decision(compare=False).n_labelled == 30 + SIZE
    assert_one_error(learner)


def test_a_saved_learner_counts_them_too() -> None:
    learner = labelled_learner(BayesianLogistic(alpha=1.0))
    check = learner.check(SIZE)
    check.tell(CLASSES[check.indices])
    state = json.loads(json.dumps(learner.state_dict()))
    again = sf.ActiveLearner.from_state(state, BayesianLogistic(alpha=1.0), X)
    assert again.error_estimate() == learner.error_estimate()
    assert again.decision() == learner.decision()


@pytest.mark.parametrize("model", [BayesianLogistic(alpha=1.0), GaussianNB()], ids=lambda model: type(model).__name__)
def test_a_monitor_counts_the_labels_of_a_check(model: Any) -> None:
    monitor = updated_monitor(model)
    before, check = monitor.error_estimate(), monitor.check(SIZE)
    items = check.indices
    check.tell({int(item): CLASSES[item] for item in items[:-1]})
    assert monitor.error_estimate() == before
    check.tell(CLASSES[check.pending])
    assert monitor.error_estimate().random_labels == before.random_labels + SIZE
    assert_one_error(monitor)
    learned = np.append(np.arange(30), items)
    monitor.update(model.fit(X[learned], CLASSES[learned]), learned, CLASSES[learned], random=np.arange(30))
    assert monitor.error_estimate().random_labels == before.random_labels + SIZE
    assert_one_error(monitor)


def test_answers_that_another_object_holds_leave_nothing_behind() -> None:
    learner, other = (labelled_learner(BayesianLogistic(alpha=1.0)) for _ in range(2))
    check = learner.check(SIZE)
    items = check.indices.tolist()
    check.cannot_label(items[:2])
    check.tell(CLASSES[check.pending])
    other.decision_numbers(0.1)
    before = {**other.state_dict(), "seconds": 0.0, "checksum": ""}
    labels = {item: CLASSES[item] for item in items[2:]}
    with other.with_checked(labels, random=items[2:], skipped=items[:2]):
        assert other.error_estimate() == learner.error_estimate()
        assert other.left == learner.left
        numbers = other.decision_numbers(0.1)
    assert (numbers.n_labelled, numbers.error) == (30 + len(labels), learner.decision(0.1).error)
    assert {**other.state_dict(), "seconds": 0.0, "checksum": ""} == before
    assert other.labelled == labelled_learner(BayesianLogistic(alpha=1.0)).labelled


def settings(model: str, at_most: float | None) -> Settings:
    classes = ("left", "right") if model == "logistic" else ()
    task: Any = "classification" if classes else "regression"
    rule = sf.LabelWorth().state_dict()
    return Settings("checked", task, classes, "y", "table", ("a", "b", "c"), None, model, rule, at_most=at_most)


@pytest.mark.no_cover
@pytest.mark.parametrize(
    ("model", "at_most"),
    [("logistic", 0.1), ("ridge", 0.4), pytest.param("logistic", None, marks=pytest.mark.slow)],
)
def test_the_learner_of_a_project_counts_them_and_forgets_nothing(model: str, at_most: float | None) -> None:
    y = CLASSES.tolist() if model == "logistic" else NUMBERS.tolist()
    learner = ProjectLearner(settings(model, at_most), X)
    answers = [Answer(item, y[item], item < 10 or item % 4 == 0) for item in range(33)]
    # The last two items of the check cannot be labelled.
    checked = [Answer(item, y[item], random=True) for item in range(100, 140)]
    checked += [Answer(item, None, random=True) for item in (140, 141)]
    learner.follow(answers)
    before = learner.learning_status()
    learner.follow(answers, checked=checked)
    after = learner.learning_status()
    assert (after.n_answers, after.n_labelled, after.n_checked) == (33, 33, 42)
    assert (before.errors[-1].n_labelled, after.errors[-1].n_labelled) == (33, 73)
    assert after.errors[-1].random_labels == before.errors[-1].random_labels + 40
    assert after.numbers is not None
    assert after.numbers.error is not None
    newest = after.errors[-1]
    assert tuple(after.numbers.error) == (newest.value, newest.low, newest.high, newest.random_labels)
    assert (after.numbers.n_labelled, after.numbers.unlabelled) == (73, 300 - 75)
    assert (after.verdict, after.curve) == (before.verdict, before.curve)
    # Without the check, everything is as before.
    learner.follow(answers)
    assert learner.learning_status() == before
    # When labelling continues, the result is that of a learner that starts anew.
    learner.follow(answers, checked=checked)
    learner.learning_status()
    learner.follow([*answers, *checked, Answer(200, y[200])])
    fresh = ProjectLearner(settings(model, at_most), X)
    fresh.follow([*answers, *checked, Answer(200, y[200])])
    assert learner.learning_status() == fresh.learning_status()
    assert fresh.learning_status().errors[-1].random_labels == newest.random_labels


def test_answers_of_a_check_wait_until_the_checked_model_is_there() -> None:
    learner = ProjectLearner(settings("logistic", None), X)
    answers = [Answer(item, CLASSES[item], random=True) for item in range(30)]
    checked = [Answer(item, CLASSES[item], random=True) for item in range(100, 140)]
    learner.follow(answers, checked=checked, patience=lambda: learner.n_answers == 20)
    assert (learner.n_answers, learner.checked) == (20, [])
    assert learner.learning_status().errors[-1].random_labels == 20
    learner.follow(answers, checked=checked)
    assert learner.learning_status().errors[-1].random_labels == 70
