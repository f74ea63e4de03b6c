"""Stopping rules with active learners of small-text."""

import pickle
import sys
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

import suffice as sf
from suffice.errors import InvalidTypeError, InvalidValueError, MissingExtraError, MissingInputError, SufficeError
from suffice.integrations.small_text import SmallTextCriterion
from tests.every_rule import OF_OPTIMISATION, OF_SCREENING, RULES
from tests.integrations.snippets import run_snippet

# The fast tests include the example of the adapter only, because the framework imports for seconds.
pytestmark = pytest.mark.slow

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 4))
Y = np.where(X[:, 0] + X[:, 1] > 0.8, 2, np.where(X[:, 0] > 0.0, 1, 0))
BINARY = (X[:, 0] > 0.0).astype(int)
#: Rules that no monitor provides the inputs of for classes.
NOT_FOLLOWED = {"PacBayes", "MaxVariance", "HeldOutPlateau", "QuantileRecall", *OF_OPTIMISATION}


def small_text() -> Any:
    """The framework. It imports for seconds, so only a process that runs its tests imports it."""
    return pytest.importorskip("small_text")


@pytest.fixture(autouse=True)
def _installed() -> None:
    small_text()


@cache
def probabilities_factory() -> Any:
    """A factory of classifiers that small-text knows nothing of but their methods, as those for PyTorch."""

    class Probabilities(small_text().Classifier):  # type: ignore[misc]
        def __init__(self) -> None:
            self.model = LogisticRegression()

        def fit(self, train_set: Any, weights: Any = None) -> Any:
            self.model.fit(train_set.x, train_set.y, sample_weight=weights)
            return self

        def predict(self, data_set: Any, return_proba: bool = False) -> Any:
            p = self.predict_proba(data_set)
            return (p.argmax(axis=1), p) if return_proba else p.argmax(axis=1)

        def predict_proba(self, data_set: Any) -> Any:
            return self.model.predict_proba(data_set.x)

    class ProbabilitiesFactory(small_text().AbstractClassifierFactory):  # type: ignore[misc]
        def new(self) -> Any:
            return Probabilities()

    return ProbabilitiesFactory()


def learner(model: Any = None, labels: Any = BINARY, n: int = 30, factory: Any = None) -> Any:
    classes = np.unique(labels)
    data = small_text().SklearnDataset(X, labels, target_labels=classes)
    if factory is None:
        factory = small_text().SklearnClassifierFactory(LogisticRegression() if model is None else model, len(classes))
    found = small_text().PoolBasedActiveLearner(factory, small_text().RandomSampling(), data)
    found.initialize_data(np.arange(n), labels[:n])
    return found


def advanced(active: Any, labels: Any = BINARY, size: int = 10) -> Any:
    """Label the next items in order."""
    n = len(active.indices_labeled)
    active.indices_queried = np.arange(n, n + size)
    active.update(labels[n : n + size])
    return active


def test_the_snippet() -> None:
    criterion = run_snippet("with_small_text")["criterion"]
    assert criterion.verdict.stop
    assert criterion.verdict.n_labelled < 1000


@pytest.mark.parametrize("name", sorted(set(RULES) - NOT_FOLLOWED))
def test_every_rule_says_what_it_says_in_a_monitor(name: str) -> None:
    committee = {"InformationGain", "SelectionAgreement", "ValidationSetAgreement", "IntrinsicStopping"}
    model = RandomForestClassifier(10, random_state=0) if name in committee else LogisticRegression()
    options: dict[str, Any] = {"positive": 1} if name in OF_SCREENING else {}
    criterion, monitor = SmallTextCriterion(RULES[name], **options), sf.StopMonitor(X, RULES[name], **options)
    active = learner(model)
    for n in (30, 40, 50, 60):
        stop = criterion.stop(active_learner=active, predictions=np.zeros(3), proba=None, indices_stopping=None)
        expected = monitor.update(type(model)(**model.get_params()).fit(X[:n], BINARY[:n]), range(n), BINARY[:n])
        assert stop is expected.stop
        assert criterion.verdict is not None
        assert criterion.verdict.ready == expected.ready
        if name != "TimeLimit":
            assert criterion.verdict.reason == expected.reason
        advanced(active)
    assert len(criterion.verdicts) == len(monitor.verdicts)


@pytest.mark.parametrize("labels", [BINARY, Y], ids=["two classes", "three"])
def test_other_classifiers_give_probabilities(labels: Any) -> None:
    wrapped, plain = (SmallTextCriterion(sf.StabilizingPredictions() & sf.LabelWorth()) for _ in range(2))
    actives = learner(labels=labels, factory=probabilities_factory()), learner(labels=labels)
    for _ in range(3):
        for criterion, active in zip((wrapped, plain), actives, strict=True):
            criterion.stop(active_learner=active)
            advanced(active, labels)
    assert wrapped.monitor is not None
    assert plain.monitor is not None
    for one, other in zip(wrapped.monitor.steps, plain.monitor.steps, strict=True):
        assert one.unlabelled_error == pytest.approx(other.unlabelled_error, rel=1e-9)
    with pytest.raises(MissingInputError, match="ErrorStability requires kl_new_old"):
        SmallTextCriterion(sf.ErrorStability(0.1)).stop(active_learner=actives[0])


def test_it_is_a_criterion_of_small_text() -> None:
    criterion = SmallTextCriterion(sf.Budget(35))
    assert isinstance(criterion, small_text().StoppingCriterion)
    assert criterion.verdict is None
    assert criterion.verdicts == []
    active = learner()
    assert criterion.stop(active_learner=active) is False
    assert criterion.stop(active_learner=active) is False
    assert criterion.stop(active_learner=advanced(active)) is True
    assert len(criterion.verdicts) == 2


def test_random_labels_corrected_removed_and_ignored_ones() -> None:
    criterion, active = SmallTextCriterion(random=range(30, 40)), learner()
    criterion.stop(active_learner=active)
    criterion.stop(active_learner=advanced(active))
    monitor = criterion.monitor
    assert monitor is not None
    assert monitor.random_labels == 10
    active.update_label_at(3, 1 - BINARY[3], retrain=True)
    criterion.stop(active_learner=active)
    assert monitor.labels[3] == 1 - BINARY[3]
    active.remove_label_at(39, retrain=True)
    active.ignore_sample_at(40)
    criterion.stop(active_learner=active)
    assert len(monitor.labels) == 39
    assert criterion.verdict is not None
    assert criterion.verdict.n_labelled == 39


def test_a_saved_criterion_goes_on() -> None:
    active, criterion = learner(), SmallTextCriterion()
    criterion.stop(active_learner=active)
    other = pickle.loads(pickle.dumps(criterion))
    advanced(active)
    for each in (criterion, other):
        each.stop(active_learner=active)
    assert other.verdict == criterion.verdict


def test_a_saved_criterion_of_other_classifiers_goes_on() -> None:
    dill = pytest.importorskip("dill")
    active, criterion = learner(factory=probabilities_factory()), SmallTextCriterion()
    criterion.stop(active_learner=active)
    other = dill.loads(dill.dumps(criterion, recurse=True))
    advanced(active)
    assert other.stop(active_learner=active) == criterion.stop(active_learner=active)
    assert other.verdict == criterion.verdict


def test_bad_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidTypeError, match="rule must be a stopping rule such as"):
        SmallTextCriterion("Budget")  # type: ignore[arg-type]
    criterion = SmallTextCriterion(sf.Budget(10))
    with pytest.raises(MissingInputError, match="stop requires active_learner"):
        criterion.stop(predictions=np.zeros(3))
    data = small_text().SklearnDataset(X, BINARY, target_labels=np.arange(2))
    factory = small_text().SklearnClassifierFactory(LogisticRegression(), 2)
    blank = small_text().PoolBasedActiveLearner(factory, small_text().RandomSampling(), data)
    with pytest.raises(InvalidValueError, match="call initialize_data first"):
        criterion.stop(active_learner=blank)
    criterion.stop(active_learner=learner())
    smaller = small_text().PoolBasedActiveLearner(factory, small_text().RandomSampling(), data[np.arange(50)].clone())
    smaller.initialize_data(np.arange(20), BINARY[:20])
    with pytest.raises(InvalidValueError, match="50 items, and the first call had 200"):
        criterion.stop(active_learner=smaller)
    with pytest.raises(TypeError, match="wrong"):
        SmallTextCriterion(wrong=3).stop(active_learner=learner())
    monkeypatch.setitem(sys.modules, "small_text", None)
    with pytest.raises(MissingExtraError, match="pip install small-text"):
        SmallTextCriterion()


def test_several_labels_for_each_item_are_refused() -> None:
    labels = csr_matrix(np.column_stack([BINARY, 1 - BINARY]))
    data = small_text().SklearnDataset(csr_matrix(X), labels, target_labels=np.arange(2))
    factory = small_text().SklearnClassifierFactory(LogisticRegression(), 2, kwargs={"multi_label": True})
    active = small_text().PoolBasedActiveLearner(factory, small_text().RandomSampling(), data)
    active.initialize_data(np.arange(30), labels[:30])
    with pytest.raises(SufficeError, match="one label each"):
        SmallTextCriterion().stop(active_learner=active)
