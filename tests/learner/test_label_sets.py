"""StopMonitor with labels that are sets of classes, and what other loops say about such labels."""

import json
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import suffice as sf
from suffice.checks.random_check import spent_alpha
from suffice.errors import InvalidValueError, MissingInputError, SufficeError
from suffice.learner.label_sets import label_codes, label_matrix
from suffice.project.events import checked_label
from suffice.project.settings import Settings

N = 300
_RNG = np.random.default_rng(0)
X = _RNG.normal(size=(N, 3))
SETS = (X + 0.4 * _RNG.normal(size=X.shape) > np.array([0.0, 0.4, 0.8])).astype(int)
NAMES = ["red", "green", "blue"]
ROUNDS = (40, 60, 80)
MODELS: dict[str, Any] = {
    "multi": MultiOutputClassifier(LogisticRegression()),
    "chain": ClassifierChain(LogisticRegression()),
    "rest": OneVsRestClassifier(LogisticRegression()),
    "neighbours": KNeighborsClassifier(),
    "tree": DecisionTreeClassifier(random_state=0),
    "forest": RandomForestClassifier(10, random_state=0),
    "extra": ExtraTreesClassifier(10, random_state=0),
    "network": MLPClassifier((10,), max_iter=40, random_state=0),
    "ridge": RidgeClassifier(),
    "pipeline": make_pipeline(StandardScaler(), OneVsRestClassifier(LogisticRegression())),
}


@pytest.fixture(autouse=True)
def _no_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def followed(model: Any, labels: Any = SETS, **options: Any) -> sf.StopMonitor:
    monitor = sf.StopMonitor(X, sf.Budget(200), seed=0)
    for n in ROUNDS:
        monitor.update(clone(model).fit(X[:n], SETS[:n]), range(n), labels[:n], random=range(n), **options)
    return monitor


@pytest.mark.no_cover
@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", MODELS)
def test_every_classifier_of_sets(name: str) -> None:
    monitor = followed(MODELS[name], classes=NAMES)
    wrong = clone(MODELS[name]).fit(X[:80], SETS[:80]).predict(X[80:]) != SETS[80:]
    estimate, by_class = monitor.error_estimate(), monitor.class_errors()
    assert estimate.random_labels == 80
    # A miss of an interval of 90 % is usual among so many: its width more on both sides.
    for found, truth in zip([estimate, *by_class.values()], [wrong.any(axis=1), *wrong.T], strict=True):
        room = found.high - found.low
        assert found.low - room < truth.mean() < found.high + room
    assert list(by_class) == NAMES
    again = sf.StopMonitor.from_state(json.loads(json.dumps(monitor.state_dict())), X)
    assert again.class_errors() == by_class
    assert str(again.decision(0.2)) == str(monitor.decision(0.2))
    for each in (monitor, again):
        check = each.check(50)
        guarantee = check.tell(SETS[check.indices])
        assert guarantee is not None
        rows = check.indices - 80
        assert guarantee.wrong == wrong[rows].any(axis=1).sum()
        of_classes = each.class_guarantees()
        assert [of_classes[name].wrong for name in NAMES] == wrong[rows].sum(axis=0).tolist()
        assert {one.alpha for one in of_classes.values()} == {spent_alpha(1) / 3}
        assert {one.confidence for one in of_classes.values()} == {guarantee.confidence}
    # The labels of the check go to the next update.
    known = [*range(80), *check.indices.tolist()]
    monitor.update(clone(MODELS[name]).fit(X[known], SETS[known]), known, SETS[known])
    assert monitor.error_estimate().random_labels == 130


def test_tables_and_sparse_matrices_are_the_same() -> None:
    model = MODELS["tree"]
    expected = followed(model)
    table = followed(model, pd.DataFrame(SETS, columns=NAMES))
    sparse = followed(model, csr_matrix(SETS))
    flags = followed(model, SETS == 1)
    for other in (table, sparse, flags):
        assert other.error_estimate() == expected.error_estimate()
    assert list(table.class_errors()) == NAMES
    assert list(expected.class_errors()) == [0, 1, 2]
    check = sparse.check(10)
    assert check.tell(csr_matrix(SETS[check.indices])) is not None
    check = expected.check(10)
    assert check.tell({int(item): SETS[item] for item in check.indices}) is not None


def test_predicted_sets_in_place_of_a_model() -> None:
    model = DecisionTreeClassifier(random_state=0)
    given = sf.StopMonitor(range(N), sf.Budget(200), seed=0)
    own = sf.StopMonitor(X, sf.Budget(200), seed=0, estimate_time=0.0)
    for n in ROUNDS:
        fitted = clone(model).fit(X[:n], SETS[:n])
        own.update(fitted, range(n), SETS[:n], random=range(n))
        given.update(predictions=fitted.predict(X), indices=range(n), labels=SETS[:n], random=range(n))
    assert given.error_estimate() == own.error_estimate()
    assert given.class_errors() == own.class_errors()


def test_rare_sets_do_not_hold_a_stop_back() -> None:
    monitor = followed(MODELS["tree"])
    stopped = sf.StopMonitor(X, sf.Budget(80), seed=0)
    fitted = clone(MODELS["tree"]).fit(X[:80], SETS[:80])
    assert stopped.update(fitted, range(80), SETS[:80]).stop
    assert monitor.decision_numbers().rare_class is None


def test_codes_of_sets() -> None:
    assert label_matrix(label_codes(SETS)).tolist() == SETS.tolist()


@pytest.mark.parametrize(
    ("labels", "options", "message"),
    [
        (SETS[:9] * 2, {}, r"labels must be 0 or 1 .*give correct=, or use one StopMonitor for each column"),
        (SETS[:9], {"classes": ["a", "b"]}, "classes must be 3 different names"),
        ([{"red"}, set(), {"red", "blue"}] * 3, {}, "MultiLabelBinarizer"),
        ([["red"], [], ["red", "blue"]] * 3, {}, "MultiLabelBinarizer"),
        (SETS[:8], {}, "one for each of the 9 items"),
        (SETS[:9], {"predictions": SETS[:, :2]}, r"predictions must be a matrix .* 3 columns"),
        (SETS[:9], {"predictions": SETS[:-1]}, "a row for each of the 300 items"),
        (SETS[:9], {"probabilities": SETS}, "labels are sets of classes; give a classifier"),
        (SETS[:9], {"model": LogisticRegression().fit(X, SETS[:, 0])}, r"predictions of LogisticRegression must be"),
    ],
)
def test_what_cannot_be_used_is_named(labels: Any, options: dict[str, Any], message: str) -> None:
    monitor = sf.StopMonitor(X, sf.Budget(100))
    if not options.keys() - {"classes"}:
        options = {**options, "model": clone(MODELS["tree"]).fit(X, SETS)}
    with pytest.raises(InvalidValueError, match=message):
        monitor.update(indices=range(9), labels=labels, **options)
    assert monitor.left == N


def test_what_is_for_one_class_each_is_refused() -> None:
    fitted = clone(MODELS["tree"]).fit(X, SETS)
    with pytest.raises(
        MissingInputError, match=r"labels are sets of classes; use one StopMonitor for each class\. Rules"
    ):
        sf.StopMonitor(X).update(fitted, range(9), SETS[:9])
    with pytest.raises(InvalidValueError, match="leave positive out"):
        sf.StopMonitor(X, sf.Budget(9), positive="red").update(fitted, range(9), SETS[:9])
    monitor = followed(MODELS["tree"])
    with pytest.raises(InvalidValueError, match=r"recall_of is about a class, and labels are sets"):
        monitor.check(10, recall_of="red")
    with pytest.raises(InvalidValueError, match="labels are one each, and those before were sets of classes"):
        monitor.update(DecisionTreeClassifier().fit(X, SETS[:, 0]), range(90), SETS[:90, 0])
    with pytest.raises(SufficeError, match="no check is complete"):
        monitor.class_guarantees()
    check = monitor.check(10)
    with pytest.raises(InvalidValueError, match="a row of 3 columns for each"):
        check.tell(SETS[check.indices, 0])
    with pytest.raises(InvalidValueError, match=r"labels of the check must be 0 or 1"):
        check.tell(SETS[check.indices] + 5)
    single = sf.StopMonitor(X, sf.Budget(9))
    single.update(DecisionTreeClassifier().fit(X, SETS[:, 0]), range(9), SETS[:9, 0])
    with pytest.raises(InvalidValueError, match="class_errors is for labels that are sets"):
        single.class_errors()


def test_other_loops_name_the_remedy() -> None:
    learner = sf.ActiveLearner(LogisticRegression(), X)
    items = learner.ask(2)
    for labels in (SETS[items], [["red"], ["red", "blue"]], [{"red"}, {"blue"}]):
        with pytest.raises(InvalidValueError, match=r"for sets of classes give suffice.StopMonitor a matrix"):
            learner.tell(items, labels)
    with pytest.raises(InvalidValueError, match=r"for sets of classes give suffice.StopMonitor a matrix"):
        sf.simulate(LogisticRegression(), X, SETS)
    settings = Settings("p", "classification", ("red", "blue"), "tag", "table", ("a",), None, "gp", {})
    with pytest.raises(InvalidValueError, match=r"an item has one class: make a project for each class"):
        checked_label(settings, ["red", "blue"])


@pytest.mark.slow
def test_intervals_and_guarantees_hold_as_often_as_they_say() -> None:
    of_sets, of_classes, broken = [], [], []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        inputs = rng.normal(size=(600, 4))
        labels = (inputs + rng.choice([0.3, 0.8]) * rng.normal(size=inputs.shape) > 0.4).astype(int)
        monitor = sf.StopMonitor(inputs, sf.Budget(999), seed=seed)
        for n in (30, 60, 90):
            model = DecisionTreeClassifier(random_state=0).fit(inputs[:n], labels[:n])
            monitor.update(model, range(n), labels[:n], random=range(n))
        wrong = model.predict(inputs) != labels
        estimate = monitor.error_estimate()
        of_sets.append(estimate.low <= wrong[90:].any(axis=1).mean() <= estimate.high)
        for column, each in enumerate(monitor.class_errors().values()):
            of_classes.append(each.low <= wrong[90:, column].mean() <= each.high)
        check = monitor.check(60)
        check.tell(labels[check.indices])
        rest = np.setdiff1d(np.arange(90, 600), check.indices)
        bounds = np.array([each.value for each in monitor.class_guarantees().values()])
        broken.append((wrong[rest].mean(axis=0) > bounds).any())
    assert 0.8 <= np.mean(of_sets) <= 1.0
    assert 0.85 <= np.mean(of_classes) <= 1.0
    assert np.mean(broken) <= 0.1


def test_a_pool_of_sets_grows() -> None:
    X = np.random.default_rng(0).normal(size=(400, 2))
    Y, labelled = (X > 0.0).astype(int), np.arange(100)
    model = KNeighborsClassifier().fit(X[labelled], Y[labelled])
    monitor, whole = (sf.StopMonitor(pool, rule=sf.learner.ErrorGuarantee(0.2), seed=0) for pool in (X[:300], X))
    monitor.update(model, labelled, Y[labelled], random=labelled, classes=["right", "up"])
    assert monitor.extend(X[300:]).tolist() == list(range(300, 400))
    # The model is asked again with the next update.
    with pytest.raises(SufficeError, match="call update"):
        monitor.class_errors()
    for each in (monitor, whole):
        each.update(model, labelled, Y[labelled], random=labelled, classes=["right", "up"])
    assert monitor.class_errors() == whole.class_errors()
