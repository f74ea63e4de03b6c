"""The error of models of other packages: refits within a budget, models of all kinds, and the truth."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import make_classification
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier, RandomForestRegressor
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

import suffice as sf
from suffice.errors import InvalidValueError
from suffice.learner import monitor_round
from suffice.learner.refitted import refitted
from suffice.session.error_estimate import class_error
from suffice.session.refit_budget import FOLDS, RefitBudget

RNG = np.random.default_rng(1)
X = RNG.normal(size=(900, 4))
NOISY = RNG.random(900) < 0.15
Y = np.where((X[:, 0] + X[:, 1] ** 2 > 0.5) ^ NOISY, "yes", "no")
Z = X[:, 0] * X[:, 1] + 0.3 * RNG.normal(size=900)
CLASSIFIERS = [
    DecisionTreeClassifier(random_state=0),
    KNeighborsClassifier(1),
    KNeighborsClassifier(7),
    GaussianNB(),
    LogisticRegression(),
    RandomForestClassifier(10, random_state=0),
    HistGradientBoostingClassifier(max_iter=10, random_state=0),
    SVC(),
    LinearSVC(),
    make_pipeline(RandomForestClassifier(5, random_state=0)),
]


def monitored(model: Any, labels: Any = Y, rounds: Any = range(20, 121, 20), **options: Any) -> sf.StopMonitor:
    """A monitor after some rounds; every second label is random."""
    rule = options.pop("rule", sf.Budget(10**6))
    monitor = sf.StopMonitor(X, rule, **options)
    for n in rounds:
        monitor.update(clone(model).fit(X[:n], labels[:n]), np.arange(n), labels[:n], random=np.arange(0, n, 2))
    return monitor


# The budget.


@given(
    share=st.sampled_from([0.0, 0.25, 0.5, 1.0, 2.0]),
    sizes=st.lists(st.integers(1, 50), min_size=1, max_size=80),
    asked=st.data(),
)
def test_refits_are_at_most_a_multiple_of_the_fits(share: float, sizes: list[int], asked: Any) -> None:
    budget, n = RefitBudget(share), 0
    for size in sizes:
        n += size
        budget.count_fit(n)
        if asked.draw(st.booleans()):
            allowed = budget.allowed(n, FOLDS)
            assert 0 <= allowed <= FOLDS
            budget.spend(n, allowed)
        # The first five are always allowed; fifteen more are advanced.
        assert budget.refits <= max(FOLDS if share else 0, share * budget.fits + 15.0 * share)
    assert RefitBudget.from_state(json.loads(json.dumps(budget.state_dict()))) == budget


@pytest.mark.parametrize("share", [0.25, 1.0, 2.0])
@pytest.mark.parametrize("step", [1, 10, 100])
def test_after_forty_rounds_refits_cost_no_more_than_the_multiple(share: float, step: int) -> None:
    """By number, and by number of labels."""
    budget = RefitBudget(share)
    for n in range(20, 20 + 40 * step, step):
        budget.count_fit(n)
        budget.spend(n, budget.allowed(n, FOLDS))
    assert budget.fits == 40
    assert 0.8 * share * 40 <= budget.refits <= share * 40
    assert budget.refit_work <= share * budget.work


def test_without_a_budget_nothing_is_fitted_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: Any, **__: Any) -> Any:
        raise AssertionError("fitted again")

    monkeypatch.setattr(monitor_round, "refitted", never)
    estimate = monitored(GaussianNB(), estimate_time=0.0).error_estimate()
    # Those of the first update were never predicted.
    assert estimate.random_labels == 50
    assert estimate.predicted_at == 20


def test_no_estimate_no_refit(monkeypatch: pytest.MonkeyPatch) -> None:
    fits = []

    def counted(*given: Any, **options: Any) -> Any:
        fits.append(len(given[2]))
        return refitted(*given, **options)

    monkeypatch.setattr(monitor_round, "refitted", counted)
    monitor = monitored(GaussianNB())
    assert not fits
    monitor.error_estimate()
    monitor.error_estimate()
    monitor.decision()
    # Each of the five parts of the 60 random labels is left out once.
    assert fits == [108] * 5


@pytest.mark.parametrize("value", [-1.0, float("nan"), "much", None])
def test_a_wrong_estimate_time_is_refused(value: Any) -> None:
    with pytest.raises((InvalidValueError, TypeError), match="estimate_time"):
        sf.StopMonitor(X, estimate_time=value)
    with pytest.raises((InvalidValueError, TypeError), match="estimate_time"):
        sf.ActiveLearner(GaussianNB(), X, estimate_time=value)


# The estimate.


def test_random_labels_are_predicted_by_models_without_them() -> None:
    """Against a cross-validation by hand."""
    monitor = monitored(DecisionTreeClassifier(random_state=0), rounds=[100])
    random = np.arange(0, 100, 2)
    wrong, expected = np.zeros(50), np.zeros(50)
    for fold in range(5):
        test = random[fold::5]
        train = np.setdiff1d(np.arange(100), test)
        model = DecisionTreeClassifier(random_state=0).fit(X[train], Y[train])
        wrong[fold::5] = model.predict(X[test]) != Y[test]
        expected[fold::5] = 1.0 - model.predict_proba(X[test]).max(axis=1)
    model = DecisionTreeClassifier(random_state=0).fit(X[:100], Y[:100])
    # They were predicted by models of 90 labels, and the error has fallen since.
    fallen = wrong * 0.9 ** (1.0 / 5.0 + 0.5 / 6.0)
    by_hand = class_error(1.0 - model.predict_proba(X[100:]).max(axis=1), expected, fallen, np.full(50, 0.9**2))
    estimate = monitor.error_estimate()
    assert estimate[:5] == pytest.approx(by_hand[:5], rel=1e-9)
    assert estimate.predicted_at == 90


@pytest.mark.parametrize("model", CLASSIFIERS, ids=lambda model: type(model).__name__)
def test_no_classifier_is_certain_and_the_truth_is_near(model: Any) -> None:
    monitor = monitored(model, rounds=range(20, 301, 40))
    estimate = monitor.error_estimate()
    truth = float(np.mean(clone(model).fit(X[:300], Y[:300]).predict(X[300:]) != Y[300:]))
    assert estimate.random_labels == 150
    assert 0.02 < estimate.low < truth < estimate.high < 0.6
    assert abs(estimate.value - truth) < 0.1


@pytest.mark.parametrize("model", [RandomForestRegressor(10, random_state=0), Ridge()])
def test_regressors_need_no_standard_deviation(model: Any) -> None:
    monitor = monitored(model, Z, range(20, 301, 40), rule=sf.LabelWorth(mistake_cost=0.5))
    estimate = monitor.error_estimate()
    truth = float(np.mean((clone(model).fit(X[:300], Z[:300]).predict(X[300:]) - Z[300:]) ** 2))
    assert estimate.low < truth < estimate.high
    assert monitor.verdict.ready
    step = monitor.trace().steps()[-1]
    assert step.unlabelled_error is not None
    assert step.calibration is not None
    # The rule uses the estimate.
    assert step.unlabelled_error * step.calibration == pytest.approx(estimate.value, rel=0.2)
    assert 0.0 < monitor.error_estimate(tolerance=0.5).value < 1.0


def test_the_rule_uses_the_estimate_of_a_model_that_is_always_certain() -> None:
    monitor = monitored(DecisionTreeClassifier(random_state=0), rule=sf.LabelWorth())
    step = monitor.trace().steps()[-1]
    assert step.unlabelled_error == 0.001
    assert step.calibration is not None
    assert 0.1 < step.unlabelled_error * step.calibration < 0.6


def test_texts_are_fitted_again_as_a_whole() -> None:
    texts = [f"{'good' if label == 'yes' else 'bad'} number {k % 40}" for k, label in enumerate(Y)]
    monitor = sf.StopMonitor(texts)
    for n in (40, 80):
        model = make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(texts[:n], Y[:n])
        monitor.update(model, range(n), Y[:n], random=range(n))
    estimate = monitor.error_estimate()
    assert estimate.random_labels == 80
    assert estimate.value < 0.05
    assert estimate.low < estimate.high


class Failing(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier that can be fitted once only."""

    fits = 0

    def fit(self, inputs: Any, labels: Any) -> "Failing":
        Failing.fits += 1
        if Failing.fits > 1:
            raise RuntimeError("the licence server does not answer")
        self.model_ = GaussianNB().fit(inputs, labels)
        self.classes_ = self.model_.classes_
        return self

    def predict_proba(self, inputs: Any) -> Any:
        return self.model_.predict_proba(inputs)

    def predict(self, inputs: Any) -> Any:
        return self.model_.predict(inputs)


def test_a_model_that_cannot_be_fitted_again_is_estimated_from_earlier_predictions() -> None:
    monitor = sf.StopMonitor(X, sf.Budget(10**6))
    for n in (20, 60):
        Failing.fits = 0
        monitor.update(Failing().fit(X[:n], Y[:n]), range(n), Y[:n], random=range(n))
    estimate = monitor.error_estimate()
    assert estimate.random_labels == 40
    assert estimate.predicted_at == 20
    assert monitor._session.estimates.losses.refit_problem == "RuntimeError: the licence server does not answer"
    # It is tried once.
    assert Failing.fits == 2


def test_refits_that_are_worse_than_the_model_itself_do_not_count() -> None:
    """A model that learned from more than the labels: refits without that are not the model."""
    hidden = GaussianNB().fit(X[400:], Y[400:])

    class Pretrained(DummyClassifier):  # type: ignore[misc]
        """It knows more than its labels, if it was prepared."""

        prepared = False

        def predict_proba(self, inputs: Any) -> Any:
            return hidden.predict_proba(inputs) if self.prepared else super().predict_proba(inputs)

        def predict(self, inputs: Any) -> Any:
            return hidden.predict(inputs) if self.prepared else super().predict(inputs)

    monitor = sf.StopMonitor(X, sf.Budget(10**6))
    for n in (20, 120):
        model = Pretrained(strategy="uniform", random_state=0).fit(X[:n], Y[:n])
        model.prepared = True
        monitor.update(model, range(n), Y[:n], random=range(n))
    truth = float(np.mean(hidden.predict(X[120:]) != Y[120:]))
    estimate = monitor.error_estimate()
    assert estimate.low < truth < estimate.high
    assert estimate.random_labels == 100


def test_a_part_without_a_second_class_predicts_the_first() -> None:
    labels = np.array(["no"] * 900)
    labels[3] = "yes"
    monitor = sf.StopMonitor(X, sf.Budget(10**6))
    monitor.update(LogisticRegression().fit(X[:15], labels[:15]), range(15), labels[:15], random=range(15))
    estimate = monitor.error_estimate()
    assert not monitor._session.estimates.losses.refit_problem
    assert estimate.random_labels == 15
    assert 0.01 < estimate.value < 0.3


@pytest.mark.parametrize("model", [GaussianNB(), SVC(), Ridge()], ids=["probabilities", "labels", "numbers"])
def test_a_restored_monitor_has_the_same_estimate(model: Any) -> None:
    labels = Z if isinstance(model, Ridge) else Y
    monitor = monitored(model, labels)
    before = monitor.error_estimate()
    state = json.loads(json.dumps(monitor.state_dict()))
    restored = sf.StopMonitor.from_state(state, X)
    assert restored.error_estimate() == pytest.approx(before, rel=1e-9)
    for copied in (monitor, restored):
        copied.update(
            clone(model).fit(X[:140], labels[:140]), np.arange(140), labels[:140], random=np.arange(0, 140, 2)
        )
    assert restored.error_estimate() == pytest.approx(monitor.error_estimate(), rel=1e-9)
    assert restored._session.estimates.losses.budget == monitor._session.estimates.losses.budget


def test_a_learner_fits_its_estimator_again_too() -> None:
    learner = sf.ActiveLearner(DecisionTreeClassifier(), X, criterion=sf.Budget(10**6), random_share=0.5, initial=20)
    for _ in range(9):
        items = learner.ask(10) if learner.labelled else learner.ask(20)
        learner.tell(items, Y[items])
    estimate = learner.error_estimate()
    assert estimate.random_labels == learner.random_labels == 60
    rest = np.setdiff1d(np.arange(900), learner.labelled)
    assert estimate.low < float(np.mean(learner.model.predict(X[rest]) != Y[rest])) < estimate.high


# Cases that are hard.


@pytest.mark.parametrize("share", [1.0, 0.5, 0.2, 0.05, 0.0])
@pytest.mark.parametrize("batch", [1, 20, 100])
def test_any_share_and_any_batch(share: float, batch: int) -> None:
    rng, monitor = np.random.default_rng(0), sf.StopMonitor(X, sf.Budget(10**6))
    drawn: list[int] = []
    for n in range(20, 141 if batch > 1 else 40, batch):
        drawn += [item for item in range(max(n - batch, 0), n) if rng.random() < share]
        model = DecisionTreeClassifier(random_state=0).fit(X[:n], Y[:n])
        monitor.update(model, range(n), Y[:n], random=drawn)
        estimate = monitor.error_estimate()
        assert estimate.random_labels <= len(drawn)
        assert estimate.high - estimate.low > 0.05
        assert estimate.value >= 0.5 / 141
        if not drawn:
            # Nothing verifies it, and the interval is wide.
            assert estimate.high > 0.1
            assert "not verified by random labels" in str(monitor.decision())


@pytest.mark.parametrize("kind", ["fifty classes", "rare class", "noise"])
def test_many_classes_rare_classes_and_noise(kind: str) -> None:
    if kind == "fifty classes":
        inputs, labels = make_classification(
            1500, 20, n_informative=15, n_classes=50, n_clusters_per_class=1, class_sep=3.0, random_state=0
        )
    else:
        inputs = np.random.default_rng(0).normal(size=(1500, 4))
        labels = (inputs[:, 0] > (2.05 if kind == "rare class" else 0.0)).astype(int)
        labels ^= np.random.default_rng(1).random(1500) < (0.0 if kind == "rare class" else 0.35)
    monitor, model = sf.StopMonitor(inputs, sf.Budget(10**6)), RandomForestClassifier(10, random_state=0)
    for n in (100, 200, 300):
        model = clone(model).fit(inputs[:n], labels[:n])
        monitor.update(model, range(n), labels[:n], random=range(n))
    truth = float(np.mean(model.predict(inputs[300:]) != labels[300:]))
    estimate = monitor.error_estimate()
    assert estimate.low < truth < estimate.high
    assert estimate.low < estimate.value < estimate.high
