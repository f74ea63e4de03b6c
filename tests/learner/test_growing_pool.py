"""Pools that grow: the same posterior as with all items from the start, guarantees, checks, saving and refusals."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix, issparse
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import suffice as sf
from suffice.acquisition import margin
from suffice.checks import CheckRegistry, rows_digest
from suffice.errors import InvalidTypeError, InvalidValueError, SufficeError
from suffice.learner.backend import extended_order
from suffice.learner.more_rows import extended_pool
from suffice.models import BayesianLogistic, BayesianRidge, GaussianProcess
from tests.every_rule import RULES
from tests.thoroughness import examples

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 3))
Y = X @ [1.0, -2.0, 0.5] + 0.3 * RNG.normal(size=300)
CLASSES = np.where(Y > 0.0, "yes", "no")

MODELS = {
    "process": (GaussianProcess(), Y),
    "ridge": (BayesianRidge(), Y),
    "logistic": (BayesianLogistic(), CLASSES),
    "estimator": (LogisticRegression(), CLASSES),
    "pipeline": (make_pipeline(StandardScaler(), BayesianLogistic()), CLASSES),
}


def labelled(learner: Any, labels: Any, n: int, *, batch: int = 1) -> Any:
    """The learner after some more labels."""
    for _ in range(n):
        items = learner.ask(batch)
        learner.tell(items, labels[items])
    return learner


@pytest.mark.parametrize("name", MODELS)
@examples(40)
@given(size=st.integers(60, 250), before=st.integers(0, 30), after=st.integers(1, 12), seed=st.integers(0, 3))
def test_the_posterior_is_that_of_a_learner_with_all_items(
    name: str, size: int, before: int, after: int, seed: int
) -> None:
    model, labels = MODELS[name]
    grown = labelled(sf.ActiveLearner(model, X[:size], seed=seed), labels, before)
    learned = list(grown.labelled)
    assert grown.extend(X[size:]).tolist() == list(range(size, 300))
    assert grown.labelled == learned
    assert grown.left == 300 - before
    labelled(grown, labels, 10 + after)
    whole = sf.ActiveLearner(model, X, seed=seed, initial=grown._loop.first)
    at = 0
    for n in [grown._loop.record.begun, *grown._loop.record.sizes]:
        items = np.array(grown.labelled[at : at + n])
        whole.tell(items, labels[items], random=np.isin(items, grown.random_items))
        at += n
    assert whole.labelled == grown.labelled
    if grown._prepared.backend.task == "classification":
        assert np.array_equal(whole.model.predict_proba(X), grown.model.predict_proba(X))
    else:
        for one, two in zip(
            whole.model.predict(X, return_std=True), grown.model.predict(X, return_std=True), strict=True
        ):
            np.testing.assert_array_equal(one, two)
    assert whole.rule_verdict == grown.rule_verdict


def test_new_items_are_asked_for() -> None:
    learner = labelled(sf.ActiveLearner(GaussianProcess(), X[:100], seed=0), Y, 40)
    learner.extend(X[100:])
    labelled(learner, Y, 40)
    assert sum(item >= 100 for item in learner.labelled) > 15
    assert learner.trace().about["extended"] == [100]
    learner.extend(X[:20])
    assert learner.trace().about["extended"] == [100, 300]
    assert learner.left == 240


@given(drawn=st.integers(0, 60), rest=st.integers(1, 60), new=st.integers(1, 60), seed=st.integers(0, 99))
def test_the_extended_order_has_each_unlabelled_item_once(drawn: int, rest: int, new: int, seed: int) -> None:
    left, more = np.arange(drawn, drawn + rest), np.arange(drawn + rest, drawn + rest + new)
    order = extended_order(drawn, left, more, np.random.default_rng(seed))
    assert sorted(order.tolist()) == [*left.tolist(), *more.tolist()]


def test_random_labels_catch_up_with_the_new_items() -> None:
    """After the first new items, the random labels are a random sample of all items."""
    shares = []
    for seed in range(400):
        order = extended_order(40, np.arange(40, 100), np.arange(100, 150), np.random.default_rng(seed))
        sample = [*range(40), *order[:35].tolist()]
        shares.append(np.mean(np.array(sample) >= 100))
    # 75 of 150 items, of which 50 are new: the hypergeometric mean is one third.
    assert abs(np.mean(shares) - 1.0 / 3.0) < 0.01
    assert np.std(shares) < 0.06


@pytest.mark.parametrize("model", [BayesianRidge(), GaussianProcess()], ids=["all at random", "a share"])
def test_the_next_random_labels_come_from_the_new_items(model: Any) -> None:
    learner = labelled(sf.ActiveLearner(model, X[:150], seed=0), Y, 90)
    random = len(learner.random_items)
    learner.extend(X[150:])
    labelled(learner, Y, 40)
    first = learner.random_items[random : random + 12]
    assert all(item >= 150 for item in first)


def test_a_saved_learner_continues_after_an_extension() -> None:
    for model, labels in MODELS.values():
        learner = labelled(sf.ActiveLearner(model, X[:120], seed=3), labels, 25)
        learner.extend(X[120:])
        labelled(learner, labels, 10)
        again = sf.ActiveLearner.from_state(json.loads(json.dumps(learner.state_dict())), model, X)
        assert again.ask(12).tolist() == learner.ask(12).tolist()
        assert again.decision() == learner.decision()
        assert labelled(again, labels, 8).labelled == labelled(learner, labels, 8).labelled
        assert again.trace().about == learner.trace().about
        again.extend(X[:5])
        with pytest.raises(InvalidValueError, match="X_pool has 120 rows"):
            sf.ActiveLearner.from_state(learner.state_dict(), model, X[:120])


def test_an_extension_before_the_first_labels_changes_no_first_item() -> None:
    learner = labelled(sf.ActiveLearner(LogisticRegression(), X[:100], seed=0), CLASSES, 4)
    asked = learner.ask(6).tolist()
    learner.extend(X[100:])
    assert learner.ask(6).tolist() == asked
    again = sf.ActiveLearner.from_state(learner.state_dict(), LogisticRegression(), X)
    assert again.ask(6).tolist() == asked
    labelled(learner, CLASSES, 20)
    assert learner.random_items[:10] == learner.labelled[:10]


def test_a_guarantee_covers_the_items_before_the_extension() -> None:
    learner: Any = labelled(sf.ActiveLearner(LogisticRegression(), X[:200], seed=0), CLASSES, 40)
    check = learner.check(60)
    check.tell(CLASSES[check.pending])
    assert learner.guarantee.about_present_model
    learner.extend(X[200:])
    found = learner.guarantee
    assert (found.later_items, found.about_present_model, found.check.pool_size) == (100, False, 200)
    assert "the model at 40 labels and the 200 items before the extension; it does not cover the 100 items" in str(
        found
    )
    assert learner.decision().guarantee is None
    again = sf.ActiveLearner.from_state(learner.state_dict(), LogisticRegression(), X)
    assert str(again.guarantee) == str(found)
    # The labels of the check are learned, and the next check spends what is left.
    assert len(learner.labelled) == 100
    later = learner.check(50)
    assert later.record.number == 2
    assert later.unlabelled.max() == 299
    later.tell(CLASSES[later.pending])
    assert learner.guarantee.later_items == 0
    assert learner.guarantee.about_present_model


def test_a_goal_about_all_labels_is_open_again() -> None:
    learner = labelled(sf.ActiveLearner(LogisticRegression(), X[:200], seed=0), CLASSES, 40)
    check = learner.check(at_most=0.3, of="all")
    while check.open:
        check.tell(CLASSES[check.pending])
    assert learner.final_labels(0.3).guarantee.reached
    learner.extend(X[200:])
    with pytest.raises(SufficeError, match="the goal is not reached"):
        learner.final_labels(0.3)


@pytest.mark.parametrize("sequential", [False, True])
def test_an_open_check_goes_on_with_its_own_items(sequential: bool) -> None:
    learner = labelled(sf.ActiveLearner(LogisticRegression(), X[:200], seed=0), CLASSES, 40)
    check = learner.check(at_most=0.3) if sequential else learner.check(30)
    first = check.pending[:5]
    check.tell(dict(zip(first.tolist(), CLASSES[first].tolist(), strict=True)))
    learner.extend(X[200:])
    assert learner._session.checks.open is check
    assert not set(check.pending.tolist()) & set(learner.ask(50).tolist())
    items = learner.ask()
    learner.tell(items, CLASSES[items])
    while check.open:
        check.tell(CLASSES[check.pending])
    assert check.unlabelled.max() == 199
    assert check.guarantee is not None
    assert learner.guarantee.later_items == 100
    labelled(learner, CLASSES, 3)


def test_the_registry_counts_the_checks_of_the_extended_pool() -> None:
    registry = CheckRegistry()
    learner = labelled(sf.ActiveLearner(LogisticRegression(), X[:200], seed=0, checks=registry), CLASSES, 40)
    check = learner.check(20)
    check.tell(CLASSES[check.pending])
    learner.extend(X[200:])
    assert registry.started(rows_digest(X[:200])) == registry.started(rows_digest(X)) == 1
    other = labelled(sf.ActiveLearner(LogisticRegression(), X, seed=1, checks=registry), CLASSES, 20)
    assert other.check(20).record.number == 2
    assert learner.check(20).record.number == 3
    again = sf.ActiveLearner.from_state(learner.state_dict(), LogisticRegression(), X, checks=registry)
    assert again.checks[-1].record.number == 3
    assert registry.started(rows_digest(X)) == 3


def test_a_stop_is_judged_again_with_the_larger_pool() -> None:
    rule = sf.LabelWorth(mistake_cost=0.3)
    learner: Any = sf.ActiveLearner(BayesianLogistic(), X[:60], criterion=rule, seed=0)
    while not learner.verdict.stop:
        labelled(learner, CLASSES, 1)
    stopped = len(learner.labelled)
    more = np.random.default_rng(1).normal(size=(20000, 3))
    learner.extend(more)
    assert not learner.verdict.stop
    withdrawn = learner._session._stop.withdrawn
    assert withdrawn is not None
    assert (withdrawn.stopped_at, withdrawn.cause) == (stopped, "items")


def test_a_stop_by_a_guarantee_is_withdrawn_because_of_the_new_items() -> None:
    rule = sf.learner.ErrorGuarantee(at_most=0.2)
    learner: Any = labelled(sf.ActiveLearner(BayesianLogistic(), X[:200], criterion=rule, seed=0), CLASSES, 60)
    check = learner.check(at_most=0.2)
    while check.open:
        check.tell(CLASSES[check.pending])
    assert learner.verdict.stop
    learner.extend(X[200:])
    assert not learner.verdict.stop
    assert learner.decision().withdrawn.cause == "items"
    assert "items were added" in str(learner.decision())


def test_skips_costs_functions_and_switches_stay() -> None:
    def least_margin(model: Any, candidates: Any, seen: Any) -> Any:
        del seen
        return margin(model.predict_proba(candidates))

    learner = sf.ActiveLearner(LogisticRegression(), X[:100], seed=0, acquisition=least_margin, costs=np.full(100, 2.0))
    labelled(learner, CLASSES, 20)
    learner.skip(learner.ask(2))
    skipped = learner.skipped
    with pytest.raises(InvalidValueError, match="a cost for each item; give costs= for the 200 new ones too"):
        learner.extend(X[100:])
    assert learner.left == 78
    learner.extend(X[100:], costs=np.full(200, 3.0))
    assert learner.skipped == skipped
    assert learner._loop._counted._costs[[0, 250]].tolist() == [2.0, 3.0]
    labelled(learner, CLASSES, 5)
    learner.switch("logistic")
    assert learner.trace().about["extended"] == [100]
    learner.extend(X[:10], costs=1.0)
    again = sf.ActiveLearner.from_state(
        learner.state_dict(), LogisticRegression(), np.concatenate([X, X[:10]]), acquisition=least_margin
    )
    assert again.ask(5).tolist() == learner.ask(5).tolist()
    plain = sf.ActiveLearner(LogisticRegression(), X[:100])
    with pytest.raises(InvalidValueError, match="leave costs out"):
        plain.extend(X[100:], costs=2.0)


def test_a_drawn_stop_set_is_drawn_again_and_a_given_one_stays() -> None:
    rule = RULES["StabilizingPredictions"]
    for stop_set, largest in ((None, 299), (250, 299), (sf.learner.StopSet.draw(100, 50, seed=0), 99)):
        learner = sf.ActiveLearner(BayesianLogistic(), X[:100], criterion=rule, stop_set=stop_set, seed=0)
        labelled(learner, CLASSES, 15)
        learner.extend(X[100:])
        assert max(learner._arguments["stop_set"]) <= largest
        assert (max(learner._arguments["stop_set"]) > 99) == (largest > 99)
        again = sf.ActiveLearner.from_state(learner.state_dict(), BayesianLogistic(), X)
        again.extend(X[:50])
        assert (max(again._arguments["stop_set"]) > 299) == (largest > 99)


TEXTS = [f"{'good' if k % 2 else 'bad'} item {k}" for k in range(60)]
FORMS = {
    "array": (X[:200], X[200:]),
    "table": (pd.DataFrame(X[:200], columns=list("abc")), pd.DataFrame(X[200:, ::-1], columns=list("cba"))),
    "sparse": (csr_matrix(X[:200]), csr_matrix(X[200:])),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_pool_of_any_form_grows(form: str) -> None:
    first, more = FORMS[form]
    learner = labelled(sf.ActiveLearner(LogisticRegression(), first, seed=0), CLASSES, 30)
    learner.extend(more)
    joined = learner._not_saved["X_pool"]
    assert type(joined) is type(first)
    np.testing.assert_array_equal(joined.toarray() if issparse(joined) else np.asarray(joined), X)
    labelled(learner, CLASSES, 5)


def test_texts_grow() -> None:
    labels = np.array(["up" if k % 2 else "down" for k in range(60)])
    model = make_pipeline(TfidfVectorizer(), LogisticRegression())
    learner = labelled(sf.ActiveLearner(model, TEXTS[:40], seed=0), labels, 15)
    learner.extend(TEXTS[40:])
    labelled(learner, labels, 20)
    assert max(learner.labelled) >= 40
    with pytest.raises(InvalidTypeError, match=r"item 1 of X_new must be a text, .* not int"):
        learner.extend(["fine", 3])


def test_a_network_learns_its_rounds_again() -> None:
    pytest.importorskip("torch")
    from suffice.models import DropoutNetwork

    network = DropoutNetwork(hidden=(8,), epochs=5, samples=4, classes=["no", "yes"])
    learner = labelled(sf.ActiveLearner(network, X[:100], seed=0), CLASSES, 3, batch=5)
    learner.extend(X[100:])
    labelled(learner, CLASSES, 1, batch=5)
    assert len(learner.labelled) == 20


@pytest.mark.parametrize(
    ("more", "error", "message"),
    [
        (X[:5, :2], InvalidValueError, "X_new has 2 columns and the pool has 3"),
        (X[0], InvalidValueError, "X_new must have 2 axes"),
        (X[:0], InvalidValueError, "at least one row"),
        (X[:3].tolist(), InvalidTypeError, "the same kind as the pool, a numpy array, not a list"),
        (pd.DataFrame(X[:3]), InvalidTypeError, "a numpy array, not a pandas DataFrame"),
        (csr_matrix(X[:3]), InvalidTypeError, "a numpy array, not a sparse matrix"),
        (np.array([["a", "b", "c"]]), InvalidTypeError, "must hold float64, as the pool does"),
        (np.array([[1.0, np.nan, 2.0]]), InvalidValueError, "X_new"),
        (None, InvalidTypeError, "not a NoneType"),
    ],
)
def test_rows_that_do_not_fit_are_refused_by_name(more: Any, error: type[Exception], message: str) -> None:
    learner = labelled(sf.ActiveLearner(GaussianProcess(), X[:100], seed=0), Y, 15)
    asked = learner.ask(3).tolist()
    with pytest.raises(error, match=message):
        learner.extend(more)
    assert (learner.left, learner.ask(3).tolist()) == (85, asked)


def test_tables_with_other_columns_and_pools_elsewhere_are_refused(tmp_path: Path) -> None:
    table = pd.DataFrame(X, columns=list("abc"))
    with pytest.raises(InvalidValueError, match="misses 'c' and has 'd', which it has not"):
        extended_pool(table, table.rename(columns={"c": "d"}))
    np.save(tmp_path / "pool.npy", X)
    learner = sf.ActiveLearner(BayesianRidge(), tmp_path / "pool.npy")
    with pytest.raises(InvalidTypeError, match="the pool is on disk and cannot be extended; put all rows together"):
        learner.extend(X)
    with pytest.raises(InvalidTypeError, match="a SimpleNamespace and cannot be extended"):
        extended_pool(SimpleNamespace(), X)
    images = np.zeros((4, 8, 8))
    with pytest.raises(InvalidValueError, match=r"the rows of X_new have the shape \(8, 9\)"):
        extended_pool(images, np.zeros((2, 8, 9)))
    assert extended_pool(X.astype(np.float32), X).dtype == np.float32


def test_columns_in_another_order_reach_a_pipeline_in_theirs() -> None:
    first, more = FORMS["table"]
    model = make_pipeline(StandardScaler(), LogisticRegression())
    learner = labelled(sf.ActiveLearner(model, first, seed=0), CLASSES, 15)
    learner.extend(more)
    labelled(learner, CLASSES, 5)


def test_a_generator_as_seed_goes_on() -> None:
    seed: Any = np.random.default_rng(5)
    learner = labelled(sf.ActiveLearner(BayesianLogistic(), X[:100], seed=seed), CLASSES, 30)
    learner.extend(X[100:])
    labelled(learner, CLASSES, 30)
    assert len(set(learner.labelled)) == 60


def test_a_tensor_on_a_device_grows() -> None:
    torch = pytest.importorskip("torch")
    learner = labelled(sf.ActiveLearner(GaussianProcess(), torch.tensor(X[:100]), device="cpu", seed=0), Y, 20)
    learner.extend(torch.tensor(X[100:]))
    labelled(learner, Y, 10)
    assert max(learner.labelled) >= 100


def test_an_extension_that_fails_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    learner = labelled(sf.ActiveLearner(GaussianProcess(), X[:100], seed=0), Y, 25)
    before = learner.state_dict()
    monkeypatch.setattr(sf.ActiveLearner, "_extend_order", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        learner.extend(X[100:])
    after = learner.state_dict()
    assert after["loop"]["session"] == before["loop"]["session"]
    assert (after["pool"], after["arguments"]) == (before["pool"], before["arguments"])
    labelled(learner, Y, 3)


def test_series_tensors_and_data_sets_are_joined() -> None:
    assert extended_pool(pd.Series(TEXTS[:2]), pd.Series(TEXTS[2:3])).tolist() == TEXTS[:3]
    torch = pytest.importorskip("torch")
    assert extended_pool(torch.zeros(2, 3), torch.ones(1, 3, dtype=torch.float64)).dtype == torch.float32
    with pytest.raises(InvalidTypeError, match="a tensor, not a numpy array"):
        extended_pool(torch.zeros(2, 3), X[:1])


def test_tables_of_polars_and_pyarrow_and_data_sets_are_joined() -> None:
    polars, pyarrow = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    columns, other = {"a": [1.0, 2.0], "b": ["x", "y"]}, {"b": ["z"], "a": [3.0]}
    for make in (polars.DataFrame, pyarrow.table):
        joined = extended_pool(make(columns), make(other))
        assert joined.shape == (3, 2)
        assert list(joined["a"].to_numpy()) == [1.0, 2.0, 3.0]
        with pytest.raises(InvalidValueError, match="misses 'b'"):
            extended_pool(make(columns), make({"a": [3.0]}))
    datasets = pytest.importorskip("datasets")
    parts = [datasets.Dataset.from_dict(part) for part in (columns, other)]
    assert extended_pool(*parts)["b"] == ["x", "y", "z"]


def test_a_running_check_refuses_an_extension() -> None:
    learner = labelled(sf.ActiveLearner(BayesianLogistic(), X[:200], check_share=0.2, seed=0), CLASSES, 20)
    with pytest.raises(SufficeError, match=r"running check has begun .* start a new learner with all items"):
        learner.extend(X[200:])


# Monitors.


def monitored(n: int, size: int, **others: Any) -> Any:
    """A monitor after updates with up to ``n`` labels of a pool of some size."""
    monitor = sf.StopMonitor(X[:size], seed=0, **others)
    for count in range(20, n + 1, 10):
        forest = RandomForestClassifier(5, random_state=0).fit(X[:count], CLASSES[:count])
        monitor.update(forest, np.arange(count), CLASSES[:count], random=np.arange(count))
    return monitor


def test_a_monitor_judges_its_last_step_with_all_items() -> None:
    grown, whole = monitored(50, 100), monitored(50, 300)
    assert grown.extend(X[100:]).tolist() == list(range(100, 300))
    assert (grown.left, len(grown.steps)) == (whole.left, len(whole.steps))
    assert grown.steps[-1].unlabelled_error == whole.steps[-1].unlabelled_error
    assert grown.steps[-1].pool_size == whole.steps[-1].pool_size == 300
    assert grown.error_estimate() == whole.error_estimate()
    for monitor in (grown, whole):
        forest = RandomForestClassifier(20, random_state=0).fit(X[:60], CLASSES[:60])
        monitor.update(forest, np.arange(60), CLASSES[:60])
    assert grown.steps[-1].unlabelled_error == whole.steps[-1].unlabelled_error


def test_a_guarantee_of_a_monitor_says_which_items_it_covers() -> None:
    registry = CheckRegistry()
    monitor = monitored(50, 200, checks=registry)
    check = monitor.check(40)
    check.tell(CLASSES[check.pending])
    monitor.extend(X[200:])
    assert "the 200 items before the extension" in str(monitor.guarantee)
    assert registry.started(rows_digest(X)) == 1
    again = sf.StopMonitor.from_state(json.loads(json.dumps(monitor.state_dict())), X, checks=registry)
    assert str(again.guarantee) == str(monitor.guarantee)
    assert again.left == monitor.left
    assert again.decision() == monitor.decision()
    later = again.check(30)
    assert (later.record.number, later.unlabelled.max()) == (2, 299)
    # A model that is not saved has no predictions for new items.
    monitor = sf.StopMonitor.from_state(monitor.state_dict(), X)
    monitor.extend(X[:10])
    with pytest.raises(SufficeError, match="call update"):
        monitor.error_estimate()
    forest = RandomForestClassifier(20, random_state=0).fit(X[:60], CLASSES[:60])
    monitor.update(forest, np.arange(60), CLASSES[:60])
    assert monitor.error_estimate().value > 0.0


def test_predictions_in_place_of_a_model_come_again_for_all_items() -> None:
    truth = np.arange(300) % 2
    right = np.where(RNG.random(300) < 0.85, truth, 1 - truth)
    table = np.where(right[:, None] == [0, 1], 0.8, 0.2)
    monitor = sf.StopMonitor(range(200))
    for n in (20, 30):
        monitor.update(probabilities=table[:200], indices=range(n), labels=truth[:n], random=range(n))
    assert monitor.extend(range(200, 300))[-1] == 299
    with pytest.raises(SufficeError, match="call update"):
        monitor.error_estimate()
    with pytest.raises(InvalidValueError, match="300"):
        monitor.update(probabilities=table[:200], indices=range(30), labels=truth[:30])
    monitor.update(probabilities=table, indices=range(30), labels=truth[:30])
    drawn = [*range(40), *range(250, 260)]
    monitor.update(probabilities=table, indices=drawn, labels=truth[drawn], random=drawn)
    estimate = monitor.error_estimate()
    assert estimate.random_labels == 30
    assert monitor.left == 250


@pytest.mark.no_cover
def test_rules_about_the_pool_and_the_stop_set_go_on() -> None:
    judged = 0
    for rule in RULES.values():
        try:
            monitor = monitored(40, 150, rule=rule)
        except SufficeError:
            continue
        judged += 1
        monitor.extend(X[150:])
        forest = RandomForestClassifier(5, random_state=0).fit(X[:50], CLASSES[:50])
        monitor.update(forest, np.arange(50), CLASSES[:50])
        assert monitor.steps[-1].n_labelled == 50
    assert judged > 10


def test_a_monitor_refuses_what_does_not_fit_and_stays_as_it_was() -> None:
    monitor = monitored(40, 200)
    before = monitor.state_dict()
    with pytest.raises(InvalidValueError, match="X_new has 2 columns"):
        monitor.extend(X[:4, :2])
    with pytest.raises(ValueError, match="infinity"):
        monitor.extend(np.full((4, 3), np.inf))
    after = monitor.state_dict()
    for name in ("session", "steps", "recent", "kept", "pool_size", "marks"):
        assert after[name] == before[name]
    assert monitor.left == 160
    control = sf.StopMonitor(X, positive="yes", control=[1, 2])
    with pytest.raises(InvalidValueError, match="control was drawn from the items so far"):
        control.extend(X)
