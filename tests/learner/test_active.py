"""Ask and tell: the same run as simulate, and everything that people do in between."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.pipeline import make_pipeline

import suffice as sf
from suffice.errors import InvalidTypeError, InvalidValueError, SufficeError
from suffice.models import BayesianLogistic, BayesianRidge, GaussianProcess, RadialBasis
from suffice.numerics import Floats
from tests.thoroughness import crossed, examples


def regression(m: int = 120, seed: int = 0) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, 3))
    return X, np.sin(X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=m)


def classes(m: int = 120, seed: int = 0, k: int = 2) -> tuple[Floats, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, 3))
    score = X @ np.random.default_rng(1).normal(size=(3, k)) + rng.gumbel(size=(m, k))
    return X, np.array(["ham", "spam", "eggs", "toast"])[score.argmax(axis=1)]


CASES: list[tuple[str, Any, Any]] = [
    ("process", GaussianProcess(1.0, 0.05), regression()),
    ("learned process", GaussianProcess(), regression()),
    ("ridge", BayesianRidge(1.0, 10.0), regression()),
    ("learned pipeline", make_pipeline(RadialBasis(5), BayesianRidge()), regression()),
    ("logistic", BayesianLogistic(alpha=1.0), classes()),
    ("learned logistic", BayesianLogistic(), classes()),
    ("three classes", BayesianLogistic(alpha=1.0), classes(k=3)),
]
# The fast tests have those that learn no hyper-parameters, and one that does.
FAST = {"process", "ridge", "learned pipeline", "three classes"}
each_case = pytest.mark.parametrize(
    ("model", "data"),
    [pytest.param(*case[1:], id=case[0], marks=() if case[0] in FAST else pytest.mark.slow) for case in CASES],
)


@pytest.mark.one_in(4)
@each_case
def test_the_loop_is_the_simulation(model: Any, data: Any) -> None:
    X, y = data
    learner = sf.ActiveLearner(model, X, criterion=sf.Budget(45), seed=3)
    while not learner.verdict.stop:
        item = learner.ask()
        learner.tell(item, y[item])
    trace = sf.simulate(model, X, y, steps=35, seed=3)
    again = learner.trace()
    assert learner.labelled == [*trace.initial, *trace.indices]
    for name in ("kl_new_old", "kl_old_new"):
        assert getattr(again, name) == pytest.approx(getattr(trace, name), rel=1e-6, abs=1e-13)
    assert [known.step for known in again.relearned] == [known.step for known in trace.relearned]
    rule = sf.ErrorStability(0.2)
    assert [v.stop for v in again.replay(rule)] == [v.stop for v in trace.replay(rule)]


@each_case
def test_the_verdict_is_the_replays(model: Any, data: Any) -> None:
    X, y = data
    rule = sf.ErrorStability(0.3)
    learner = sf.ActiveLearner(model, X, criterion=rule)
    told = []
    for _ in range(45):
        item = learner.ask()
        learner.tell(item, y[item])
        told.append(learner.rule_verdict)
    replayed = learner.trace().replay(rule)
    assert told[10:] == replayed


@each_case
def test_batches_are_steps(model: Any, data: Any) -> None:
    X, y = data
    # Named, since the permutation of random labels would not be drawn from the same state.
    name = "entropy" if y.dtype.kind == "U" else "variance"
    learner = sf.ActiveLearner(model, X, acquisition=name, seed=1)
    learner.tell(learner.ask(10), y[learner.ask(10)])
    for _ in range(6):
        items = learner.ask(5)
        assert len(set(items.tolist())) == 5
        learner.tell(items, y[items])
    trace = learner.trace()
    assert trace.indices.shape == (6, 5)
    assert trace.n_labelled.tolist() == [15, 20, 25, 30, 35, 40]
    again = sf.simulate(model, X, y, initial=trace.initial, acquisition=name, steps=6, batch=5)
    assert again.indices.tolist() == trace.indices.tolist()
    assert again.kl_new_old == pytest.approx(trace.kl_new_old, rel=1e-6)


@each_case
def test_asking_twice_gives_the_same(model: Any, data: Any) -> None:
    X, y = data
    learner = sf.ActiveLearner(model, X)
    for _ in range(14):
        item = learner.ask()
        assert learner.ask().tolist() == item.tolist()
        assert learner.ask(3)[0] == item[0]
        learner.tell(item, y[item])


@each_case
def test_a_skipped_item_never_comes_back(model: Any, data: Any) -> None:
    X, y = data
    learner, skipped = sf.ActiveLearner(model, X), set()
    for number in range(60):
        item = int(learner.ask()[0])
        assert item not in skipped
        if number % 3 == 0:
            learner.skip(item)
            skipped.add(item)
        else:
            learner.tell(item, y[item])
    assert set(learner.skipped) == skipped
    assert len(learner.labelled) == 40


@each_case
def test_the_model_is_that_of_the_labels_told(model: Any, data: Any) -> None:
    X, y = data
    learner = sf.ActiveLearner(model, X, initial=20)
    learner.tell(learner.ask(20), y[learner.ask(20)])
    rows = learner.labelled
    if isinstance(model, GaussianProcess | BayesianRidge | BayesianLogistic):
        alone = getattr(sf.models, type(model).__name__)(**model.get_params()).fit(X[rows], y[rows])
        assert (
            learner.model.predict(X) == pytest.approx(alone.predict(X), rel=1e-6)
            if y.dtype.kind == "f"
            else (learner.model.predict(X) == alone.predict(X)).all()
        )
    else:
        assert learner.model.predict(X).shape == (len(X),)


@each_case
def test_a_corrected_label_is_as_if_it_had_been_so_from_the_start(model: Any, data: Any) -> None:
    X, y = data
    order = np.random.default_rng(0).permutation(len(X))[:40]
    wrong = y.copy()
    wrong[order[17]] = y[order[17]] + 5.0 if y.dtype.kind == "f" else next(c for c in np.unique(y) if c != y[order[17]])
    rule = sf.ErrorStability(0.2)
    slip, right = (sf.ActiveLearner(model, X, criterion=rule) for _ in range(2))
    for item in order:
        slip.tell(item, wrong[item])
        right.tell(item, y[item])
    assert slip.verdict != right.verdict
    slip.correct(int(order[17]), y[order[17]])
    # Where hyper-parameters are learned, the search for them started elsewhere.
    assert slip.verdict.value == pytest.approx(right.verdict.value, rel=2e-3)
    assert slip.ask().tolist() == right.ask().tolist()


@examples(30)
@given(seed=st.integers(0, 100))
def test_labels_that_were_not_asked_for(seed: int) -> None:
    X, y = regression(seed=seed)
    learner = sf.ActiveLearner(GaussianProcess(1.0, 0.05), X, acquisition="variance", seed=seed)
    rng = np.random.default_rng(seed)
    for _ in range(40):
        left = np.setdiff1d(np.arange(len(X)), learner.labelled)
        item = int(rng.choice(left)) if rng.random() < 0.5 else int(learner.ask()[0])
        learner.tell(item, y[item])
    variance = GaussianProcess(1.0, 0.05).fit(X[learner.labelled], y[learner.labelled]).latent(X)[1]
    variance[learner.labelled] = -1.0
    assert variance[learner.ask()[0]] == pytest.approx(variance.max(), rel=1e-9)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("acquisition", ["random", "k-centre", "order", "variance", "entropy", "variance-reduction"])
def test_acquisitions_of_regression(acquisition: str) -> None:
    X, y = regression()
    trace = sf.simulate(GaussianProcess(1.0, 0.05), X, y, steps=60, acquisition=acquisition, X_test=X, y_test=y)
    assert len(set(trace.indices.tolist()) | set(trace.initial.tolist())) == 70
    assert trace.error[-1] < trace.error[0]


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("acquisition", "k"),
    crossed(["random", "k-centre", "order", "map-entropy", "entropy", "margin", "bald"], [2, 3], every=2),
)
def test_acquisitions_of_classification(acquisition: str, k: int) -> None:
    X, y = classes(150, k=k)
    trace = sf.simulate(BayesianLogistic(alpha=1.0), X, y, steps=40, acquisition=acquisition, X_test=X, y_test=y)
    assert len(set(trace.indices.tolist()) | set(trace.initial.tolist())) == 50
    assert trace.error[-1] < trace.error[0]


def test_entropy_and_margin_rank_two_classes_alike() -> None:
    X, y = classes(300)
    first, second = (
        sf.simulate(BayesianLogistic(alpha=1.0), X, y, steps=40, acquisition=name) for name in ("entropy", "margin")
    )
    assert first.indices.tolist() == second.indices.tolist()


def test_a_class_met_late_starts_the_history_over() -> None:
    X, y = classes(200, k=3)
    order = np.concatenate([np.flatnonzero(y != "eggs")[:30], np.flatnonzero(y == "eggs")[:5]])
    rule = sf.ErrorStability()
    learner = sf.ActiveLearner(BayesianLogistic(alpha=1.0), X, criterion=rule)
    for item in order:
        learner.tell(item, y[item])
    known = sf.ActiveLearner(BayesianLogistic(alpha=1.0, classes=["eggs", "ham", "spam"]), X, criterion=rule)
    for item in order:
        known.tell(item, y[item])
    assert learner.verdict.value == pytest.approx(known.verdict.value, rel=1e-9)
    assert [r.step for r in learner.trace().relearned] == [20]
    assert not np.isnan(learner.trace().kl_new_old).any()
    assert set(learner.model.predict(X)) <= {"eggs", "ham", "spam"}


def test_one_class_only_so_far() -> None:
    X, y = classes()
    learner = sf.ActiveLearner(BayesianLogistic(alpha=1.0), X)
    for item in np.flatnonzero(y == "ham")[:20]:
        learner.tell(item, "ham")
    assert not learner.verdict.stop
    assert (learner.model.predict(X) == "ham").all()


def test_the_pool_runs_out() -> None:
    X, y = regression(15)
    learner = sf.ActiveLearner(GaussianProcess(1.0, 0.05), X, criterion=sf.Budget(100))
    while not learner.verdict.stop:
        item = learner.ask()
        learner.tell(item, y[item])
    assert len(learner.labelled) == 15
    assert "every item of the pool is labelled" in learner.verdict.reason
    with pytest.raises(SufficeError, match="nothing left"):
        learner.ask()


def test_one_item_pool() -> None:
    learner = sf.ActiveLearner(GaussianProcess(1.0, 0.05), [[1.0]], initial=1)
    assert learner.tell(learner.ask(), 2.0).stop
    assert learner.model.predict([[1.0]]) == pytest.approx(2.0 / 1.05)
    assert len(sf.simulate(GaussianProcess(1.0, 0.05), [[1.0]], [2.0], initial=1)) == 0


def test_the_whole_pool_skipped() -> None:
    X, _ = regression(5)
    learner = sf.ActiveLearner(GaussianProcess(), X, initial=2)
    verdict = learner.skip(np.arange(5))
    assert verdict.stop


def test_mistakes_are_answered_and_change_nothing() -> None:
    X, y = regression()
    learner = sf.ActiveLearner(GaussianProcess(1.0, 0.05), X)
    for attempt, message in (
        (lambda: learner.tell(500, 1.0), "holds 500, but the pool has items 0 to 119"),
        (lambda: learner.tell(-1, 1.0), "holds -1"),
        (lambda: learner.tell([1, 1], [1.0, 2.0]), "twice"),
        (lambda: learner.tell([1, 2], [1.0]), "2 items came with labels of shape"),
        (lambda: learner.tell(1.5, 1.0), "whole numbers"),
        (lambda: learner.tell(y > 0.0, y[y > 0.0]), r"not a mask of 120 flags; give indices, e\.g\. np\.flatnonzero"),
        (lambda: learner.skip(y > 0.0), r"give indices, e\.g\. np\.flatnonzero\(mask\)"),
        (lambda: learner.tell(1, np.nan), "NaN"),
        (lambda: learner.tell(1, "spam"), "numbers"),
        (lambda: learner.correct(3, 1.0), "no label to correct"),
        (lambda: learner.ask(0), "n must be"),
    ):
        with pytest.raises(InvalidValueError, match=message):
            attempt()
    assert learner.labelled == []
    for item in range(20):
        learner.tell(item, y[item])
    before = learner.verdict
    for attempt, message in (
        (lambda: learner.tell(3, 1.0), r"correct\(3, label\)"),
        (lambda: learner.tell(50, np.nan), "NaN"),
        (lambda: learner.skip(3), "has a label"),
        (lambda: learner.correct(3, np.inf), "inf"),
    ):
        with pytest.raises(InvalidValueError, match=message):
            attempt()
    assert learner.verdict == before
    assert len(learner.labelled) == 20
    assert learner.labels[3] == y[3]


def test_bad_settings_are_named() -> None:
    X, y = regression()
    model = GaussianProcess(1.0, 0.05)
    with pytest.raises(InvalidTypeError, match="stopping rule"):
        sf.ActiveLearner(model, X, criterion="stop")  # type: ignore[arg-type]
    with pytest.raises(InvalidTypeError, match="not a model"):
        sf.ActiveLearner(object(), X)
    with pytest.raises(InvalidValueError, match="variance, entropy"):
        sf.ActiveLearner(model, X, acquisition="guess")
    with pytest.raises(InvalidValueError, match="from 1 to 120"):
        sf.ActiveLearner(model, X, initial=121)
    with pytest.raises(InvalidValueError, match="float32"):
        sf.ActiveLearner(model, X, dtype="int8")
    X[4, 1] = np.nan
    with pytest.raises(InvalidValueError, match="row 4, column 1"):
        sf.ActiveLearner(model, X)
    with pytest.raises(InvalidValueError, match="table"):
        sf.ActiveLearner(model, np.zeros(5))
    with pytest.raises(SufficeError, match="no label yet"):
        _ = sf.ActiveLearner(model, np.zeros((5, 1)), initial=2).model
    with pytest.raises(InvalidValueError, match="leave 110 steps"):
        sf.simulate(model, regression()[0], y, steps=111)
    with pytest.raises(InvalidValueError, match="belong together"):
        sf.simulate(model, regression()[0], y, X_test=X)
    with pytest.raises(InvalidValueError, match="fewer than the 10 initial"):
        sf.audit(model, regression()[0][:5], y[:5])
    with pytest.raises(InvalidValueError, match="one label for each"):
        sf.simulate(model, regression()[0], y[:5])


def test_model_and_rule_are_not_touched() -> None:
    X, y = regression()
    model, rule = GaussianProcess(), sf.ErrorStability(0.2)
    state = rule.state_dict()
    learner = sf.ActiveLearner(model, X, criterion=rule)
    for _ in range(30):
        item = learner.ask()
        learner.tell(item, y[item])
    assert rule.state_dict() == state
    assert not hasattr(model, "state_")


@each_case
def test_a_copy_goes_on_alike(model: Any, data: Any) -> None:
    X, y = data
    learner = sf.ActiveLearner(model, X)
    for _ in range(25):
        item = learner.ask()
        learner.tell(item, y[item])
    for twin in (copy.deepcopy(learner), pickle.loads(pickle.dumps(learner))):
        item = twin.ask()
        assert item.tolist() == learner.ask().tolist()
        twin.tell(item, y[item])
        assert len(twin.labelled) == 26
        assert len(learner.labelled) == 25


def test_what_a_pipeline_gives_back() -> None:
    X, y = regression()
    learner = sf.ActiveLearner(make_pipeline(RadialBasis(5), BayesianRidge(1.0, 10.0)), X)
    learner.tell(np.arange(30), y[:30])
    model = learner.model
    assert model.predict(X).shape == (120,)
    assert [name for name, _ in model.steps] == ["radialbasis", "bayesianridge"]
