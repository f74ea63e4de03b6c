"""Items chosen by a function of the user: its arguments, its scores, batches, random labels, saving and refusals."""

import json
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.sparse import csr_matrix
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import suffice as sf
from suffice.acquisition import margin
from suffice.engines import NpyPool
from suffice.engines.worker_rows import WorkerRows
from suffice.errors import InvalidTypeError, InvalidValueError, SufficeError
from suffice.learner.own_acquisition import checked_function, function_name, largest
from suffice.models import BayesianLogistic, BayesianRidge, GaussianProcess

RNG = np.random.default_rng(0)
X = RNG.normal(size=(150, 3))
Y = X @ [1.0, -2.0, 0.5] + 0.1 * RNG.normal(size=150)
CLASSES = np.where(Y > 0.0, "yes", "no")


def least_margin(model: Any, candidates: Any, labelled: Any) -> Any:
    """Margin sampling."""
    del labelled
    return margin(model.predict_proba(candidates))


def distances(points: Any, others: Any) -> Any:
    """The distance of each point to the nearest of others."""
    points, others = np.asarray(points, dtype=float), np.asarray(others, dtype=float)
    return np.sqrt(((points[:, None] - others[None]) ** 2).sum(axis=2)).min(axis=1)


def farthest(model: Any, candidates: Any, labelled: Any, batch: Any) -> Any:
    """The distance to the nearest item that is labelled or in the batch."""
    del model
    return distances(candidates, np.concatenate([np.asarray(labelled.X), np.asarray(batch)]))


def spread(model: Any, candidates: Any, labelled: Any) -> Any:
    """The deviation of a prediction of a number."""
    del labelled
    return model.predict(candidates, return_std=True)[1]


def labelled_with(acquisition: Any, model: Any, rows: Any, labels: Any, *, steps: int, **others: Any) -> Any:
    """A learner after some labels."""
    learner = sf.ActiveLearner(model, rows, acquisition=acquisition, seed=0, **others)
    while len(learner.labelled) < steps:
        items = learner.ask()
        learner.tell(items, labels[items])
    return learner


@pytest.mark.no_cover
@pytest.mark.parametrize("every", [4, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("model", [BayesianLogistic(1.0), LogisticRegression()], ids=["own", "estimator"])
def test_a_margin_by_hand_picks_what_the_named_margin_picks(model: Any, every: int) -> None:
    own = labelled_with(least_margin, model, X, CLASSES, steps=40, random_share=0.0)
    for n in range(10, 40, every):
        past = own.labelled[:n]
        probabilities = _after(model, past).model.predict_proba(X)
        free = np.setdiff1d(np.arange(len(X)), past)
        best = margin(probabilities[free])
        assert best[free == own.labelled[n]] >= best.max() - 1e-8


def _after(model: Any, items: list[int]) -> Any:
    learner = sf.ActiveLearner(model, X, initial=items[:10], seed=0, acquisition="order")
    learner.tell(items[:10], CLASSES[items[:10]])
    for item in items[10:]:
        learner.tell(item, CLASSES[item])
    return learner


def test_a_deviation_by_hand_picks_what_the_named_variance_picks() -> None:
    model = GaussianProcess(1.5, 0.1)
    own = labelled_with(spread, model, X, Y, steps=30, random_share=0.0)
    named = labelled_with("variance", model, X, Y, steps=30)
    assert own.labelled == named.labelled


POOLS = {
    "array": X,
    "single": X.astype(np.float32),
    "table": pd.DataFrame(X, columns=["a", "b", "c"]),
    "sparse": csr_matrix(X),
}


@pytest.mark.parametrize("form", POOLS)
@pytest.mark.parametrize(
    ("model", "labels"),
    [
        (BayesianLogistic(1.0), CLASSES),
        (BayesianRidge(1.0, 10.0), Y),
        (GaussianProcess(1.5, 0.1), Y),
        (RandomForestClassifier(5, random_state=0), CLASSES),
        (RandomForestRegressor(5, random_state=0), Y),
        (make_pipeline(StandardScaler(with_mean=False), LogisticRegression()), CLASSES),
    ],
    ids=["logistic", "ridge", "process", "forest", "numbers", "pipeline"],
)
def test_the_function_receives_rows_in_the_form_of_the_pool(form: str, model: Any, labels: Any) -> None:
    rows, own = POOLS[form], type(model).__module__.startswith("suffice") and form == "sparse"
    seen: list[tuple[int, int]] = []

    def acquisition(fitted: Any, candidates: Any, labelled: Any) -> Any:
        assert type(candidates) is type(rows) is type(labelled.X)
        assert getattr(candidates, "dtype", None) == getattr(rows, "dtype", None)
        assert list(getattr(candidates, "columns", [])) == list(getattr(rows, "columns", []))
        assert len(labelled) == labelled.X.shape[0] == len(labelled.y)
        assert labelled.y.tolist() == labels[labelled.indices].tolist()
        # Models of suffice predict dense rows only, as `learner.model` does.
        assert fitted.predict(candidates.toarray() if own else candidates).shape == (candidates.shape[0],)
        seen.append((candidates.shape[0], len(labelled)))
        return -np.arange(candidates.shape[0])

    learner = labelled_with(acquisition, model, rows, labels, steps=16, random_share=0.0)
    assert seen == [(150 - n, n) for n in range(10, 16)]
    rest = [item for item in range(150) if item not in learner.labelled[:10]]
    assert learner.labelled[10:] == rest[:6]


def test_texts_and_images_reach_the_function_unchanged() -> None:
    texts = [f"{'good' if k % 2 else 'bad'} item {k}" for k in range(60)]
    labels = np.array(["up" if k % 2 else "down" for k in range(60)])

    def longest(model: Any, candidates: list[str], labelled: Any) -> list[int]:
        assert model.predict_proba(candidates).shape[1] == 2
        assert all(isinstance(text, str) for text in [*candidates, *labelled.X])
        return [len(text) for text in candidates]

    model = make_pipeline(TfidfVectorizer(), LogisticRegression())
    learner = labelled_with(longest, model, texts, labels, steps=14, random_share=0.0)
    assert len(learner.labelled) == 14


def test_a_pool_on_disk_is_read_in_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("suffice.engines.disk_rows.DiskRows.small", property(lambda _: False))
    np.save(tmp_path / "pool.npy", X)
    sizes = []

    def acquisition(model: Any, candidates: Any, labelled: Any) -> Any:
        del labelled
        assert isinstance(candidates, np.ndarray)
        sizes.append(len(candidates))
        return spread(model, candidates, None)

    pool = NpyPool(tmp_path / "pool.npy")
    monkeypatch.setattr(NpyPool, "batch_rows", property(lambda _: 64))
    ridge = BayesianRidge(1.0, 10.0)
    on_disk = labelled_with(acquisition, ridge, pool, Y, steps=15, random_share=0.0)
    assert max(sizes) == 64
    assert min(sizes) < 64
    in_memory = labelled_with(spread, ridge, X, Y, steps=15, random_share=0.0)
    assert on_disk.labelled == in_memory.labelled


def test_a_network_is_asked_too() -> None:
    pytest.importorskip("torch")
    from suffice.models import DropoutNetwork

    calls = []

    def acquisition(model: Any, candidates: Any, labelled: Any, batch: Any) -> Any:
        calls.append(len(batch))
        uncertain = margin(model.predict_proba(candidates))
        return uncertain + 0.1 * distances(candidates, np.concatenate([labelled.X, batch]))

    network = DropoutNetwork(hidden=(8,), epochs=5, samples=4, classes=["no", "yes"])
    learner = sf.ActiveLearner(network, X, acquisition=acquisition, seed=0, random_share=0.0)
    for _ in range(3):
        items = learner.ask(5)
        learner.tell(items, CLASSES[items])
    assert calls == [0, 1, 2, 3, 4]
    assert len(learner.labelled) == 15


def test_a_function_without_batch_is_called_once_for_a_batch() -> None:
    calls = []

    def acquisition(model: Any, candidates: Any, labelled: Any) -> Any:
        calls.append(1)
        return least_margin(model, candidates, labelled)

    learner = labelled_with(acquisition, LogisticRegression(), X, CLASSES, steps=10, random_share=0.0)
    eight = learner.ask(8)
    assert len(set(eight.tolist())) == 8
    assert len(calls) == 1
    assert learner.ask(8).tolist() == eight.tolist()
    assert len(calls) == 1
    assert learner.ask().tolist() == eight[:1].tolist()
    assert len(calls) == 2


def test_a_batch_with_a_diversity_term_is_chosen_one_by_one() -> None:
    learner = labelled_with(farthest, LogisticRegression(), X, CLASSES, steps=10, random_share=0.0)
    batch = learner.ask(6)
    known = list(learner.labelled)
    for item in batch.tolist():
        free = np.setdiff1d(np.arange(len(X)), known)
        assert item == free[np.argmax(distances(X[free], X[known]))]
        known.append(item)
    named = labelled_with("k-centre", LogisticRegression(), X, CLASSES, steps=10)
    assert named.ask(6).tolist() == batch.tolist()


def test_random_items_of_a_batch_are_in_the_batch_that_the_function_sees() -> None:
    seen: list[int] = []

    def acquisition(model: Any, candidates: Any, labelled: Any, *, batch: Any) -> Any:
        seen.append(len(batch))
        return farthest(model, candidates, labelled, batch)

    learner = labelled_with(acquisition, LogisticRegression(), X, CLASSES, steps=10, random_share=0.5)
    items = learner.ask(6)
    assert seen == [3, 4, 5]
    assert len(set(items.tolist())) == 6
    learner.tell(items, CLASSES[items])
    assert set(items[[1, 3, 5]].tolist()) <= set(learner.random_items)


def test_the_recommended_share_of_random_labels_stays() -> None:
    shares = {"classes": (LogisticRegression(), CLASSES, 0.35), "numbers": (GaussianProcess(1.5, 0.1), Y, 0.5)}
    shares["ridge"] = (BayesianRidge(1.0, 10.0), Y, 0.5)
    for model, labels, share in shares.values():
        learner = labelled_with(lambda m, x, seen: np.zeros(len(x)), model, X, labels, steps=50)
        assert learner.trace().about["random_share"] == share
        assert len(learner.random_items) == 10 + int(40 * share + 1e-9)
        assert learner.error_estimate().random_labels > 0
    none = labelled_with(least_margin, LogisticRegression(), X, CLASSES, steps=20, positive="yes")
    assert none.random_items == none.labelled[:10]


def test_equal_scores_go_by_index_up_to_rounding() -> None:
    assert largest(np.array([0.3, 0.1 + 0.2, 0.3]), 3).tolist() == [0, 1, 2]
    assert largest(np.array([0.1 + 0.2, 0.3, 1.0]), 2).tolist() == [2, 0]
    single: Any = np.array([1.0, 1.0 + 1e-7, 0.0], dtype=np.float32)
    assert largest(single, 1).tolist() == [0]
    # A very low score in place of -inf does not make the others equal.
    assert largest(np.array([-1e30, 0.1, 0.2]), 3).tolist() == [2, 1, 0]


@given(scores=arrays(np.float64, st.integers(1, 30), elements=st.sampled_from([-np.inf, -2.0, 0.0, 0.5, 0.5001, 7.0])))
@pytest.mark.parametrize("size", [1, 3, 40])
def test_the_largest_are_those_of_a_stable_sort(scores: Any, size: int) -> None:
    order = [k for k in np.argsort(-scores, kind="stable").tolist() if scores[k] > -np.inf]
    assert largest(scores, size).tolist() == order[:size]


def test_an_excluded_item_is_not_chosen() -> None:
    def only_right(model: Any, candidates: Any, labelled: Any) -> Any:
        del model, labelled
        return np.where(candidates[:, 0] > 1.5, candidates[:, 1], -np.inf)

    learner = labelled_with(only_right, LogisticRegression(), X, CLASSES, steps=10, random_share=0.0)
    right = np.setdiff1d(np.flatnonzero(X[:, 0] > 1.5), learner.labelled)
    items = learner.ask(100)
    assert set(items.tolist()) == set(right.tolist())
    learner.tell(items, CLASSES[items])
    with pytest.raises(SufficeError, match=r"acquisition only_right excludes all \d+ candidates .*stop labelling"):
        learner.ask()
    with pytest.raises(InvalidValueError, match=r"excludes so many items that \d+ are left for a batch of 30"):
        sf.simulate(LogisticRegression(), X, CLASSES, acquisition=only_right, random_share=0.0, batch=30)


BAD = {
    "shape": (lambda m, x, seen: np.zeros(3), InvalidValueError, r"one number for each of the 140 candidates.*\(3,\)"),
    "column": (lambda m, x, seen: np.zeros((len(x), 1)), InvalidValueError, r"its shape is \(140, 1\)"),
    "number": (lambda m, x, seen: 0.5, InvalidValueError, r"its shape is \(\)"),
    "nan": (lambda m, x, seen: np.full(len(x), np.nan), InvalidValueError, r"score of item \d+ is nan"),
    "infinite": (lambda m, x, seen: np.full(len(x), np.inf), InvalidValueError, r"score of item \d+ is inf"),
    "none": (lambda m, x, seen: None, InvalidTypeError, r"not a NoneType of object"),
    "texts": (lambda m, x, seen: ["high"] * len(x), InvalidTypeError, r"not a list of <U4"),
    "ragged": (lambda m, x, seen: [[1], [2, 3]], InvalidTypeError, r"return a numpy array of floats"),
    "complex": (lambda m, x, seen: np.zeros(len(x), dtype=complex), InvalidTypeError, r"complex128"),
    "masked": (lambda m, x, seen: np.ma.masked_less(np.arange(len(x)), 3), InvalidTypeError, r"masked values"),
    "error": (lambda m, x, seen: 1 / 0, SufficeError, r"acquisition <lambda> raised ZeroDivisionError"),
    "all": (lambda m, x, seen: np.full(len(x), -np.inf), SufficeError, r"excludes all 140 candidates"),
}


@pytest.mark.parametrize("kind", BAD)
def test_scores_that_cannot_be_used_are_refused_by_name(kind: str) -> None:
    function, error, message = BAD[kind]
    learner = labelled_with(function, LogisticRegression(), X, CLASSES, steps=10, random_share=0.0)
    with pytest.raises(error, match=message) as caught:
        learner.ask()
    assert "acquisition <lambda>" in str(caught.value)
    assert len(learner.labelled) == 10


def test_a_function_that_cannot_be_called_is_refused_by_name() -> None:
    with pytest.raises(InvalidTypeError, match=r"acquisition margin must take \(model, X_candidates, labelled\)"):
        sf.ActiveLearner(LogisticRegression(), X, acquisition=margin)
    with pytest.raises(InvalidTypeError, match="not the class OrderedRows"):
        sf.simulate(LogisticRegression(), X, CLASSES, acquisition=type("OrderedRows", (), {"__call__": least_margin}))
    with pytest.raises(InvalidTypeError, match="may take batch"):
        sf.ActiveLearner(LogisticRegression(), X, acquisition=lambda m, x, seen, chosen: 0.0)


def test_rows_elsewhere_are_refused_with_the_remedy() -> None:
    workers: Any = WorkerRows.__new__(WorkerRows)
    with pytest.raises(InvalidValueError, match=r"acquisition least_margin is a function.*leave client out"):
        checked_function(least_margin, workers)
    with pytest.raises(InvalidValueError, match="leave device out"):
        sf.ActiveLearner(GaussianProcess(1.5, 0.1), X, acquisition=spread, device="cpu")
    tensor: Any = SimpleNamespace(is_cuda=True, device="cuda:0")
    with pytest.raises(InvalidValueError, match=r"X_pool is on cuda:0; give X_pool\.cpu\(\)"):
        checked_function(spread, tensor)


def test_a_saved_learner_asks_for_the_function_again() -> None:
    model = LogisticRegression()
    learner = labelled_with(least_margin, model, X, CLASSES, steps=25)
    state = json.loads(json.dumps(learner.state_dict()))
    again = sf.ActiveLearner.from_state(state, model, X, acquisition=least_margin)
    assert again.ask(5).tolist() == learner.ask(5).tolist()
    assert again.state_dict()["function"] == "least_margin"
    with pytest.raises(InvalidValueError, match=r"function least_margin.*give it again.*acquisition=least_margin"):
        sf.ActiveLearner.from_state(state, model, X)
    with pytest.raises(InvalidValueError, match="not 'function farthest'"):
        sf.ActiveLearner.from_state(state, model, X, acquisition=farthest)
    named = labelled_with("margin", model, X, CLASSES, steps=12).state_dict()
    with pytest.raises(InvalidValueError, match="acquisition is saved with the learner"):
        sf.ActiveLearner.from_state(named, model, X, acquisition=least_margin)


def test_the_record_shows_the_name_of_the_function() -> None:
    learner = labelled_with(least_margin, LogisticRegression(), X, CLASSES, steps=12)
    assert learner.trace().about["acquisition"] == "function least_margin"
    trace = sf.simulate(LogisticRegression(), X, CLASSES, steps=3, acquisition=partial(least_margin))
    assert trace.about["acquisition"] == "function least_margin"
    assert function_name(SimpleNamespace()) == "SimpleNamespace"


@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize("acquisition", [least_margin, farthest])
def test_a_simulated_run_picks_what_the_learner_picks(batch: int, acquisition: Any) -> None:
    model = BayesianLogistic(1.0)
    trace = sf.simulate(model, X, CLASSES, acquisition=acquisition, batch=batch, steps=6, seed=0)
    learner = sf.ActiveLearner(model, X, acquisition=acquisition, seed=0)
    learner.tell(items := learner.ask(10), CLASSES[items])
    for _ in range(6):
        items = learner.ask(batch)
        learner.tell(items, CLASSES[items])
    assert np.ravel(trace.indices).tolist() == learner.labelled[10:]
    assert trace.random_items.tolist() == learner.random_items
    checked = sf.simulate(model, X, CLASSES, acquisition=acquisition, batch=batch, steps=6, seed=0, check=20)
    assert np.ravel(checked.indices).tolist() == np.ravel(trace.indices).tolist()


def test_a_checkpoint_of_a_run_continues_with_the_same_picks(tmp_path: Path) -> None:
    options: dict[str, Any] = {"acquisition": least_margin, "seed": 0, "checkpoint": tmp_path / "run"}
    model = BayesianLogistic(1.0)
    first = sf.simulate(model, X, CLASSES, steps=5, **options)
    whole = sf.simulate(model, X, CLASSES, steps=12, **options)
    plain = sf.simulate(model, X, CLASSES, steps=12, acquisition=least_margin, seed=0)
    assert whole.indices.tolist() == plain.indices.tolist()
    assert whole.indices[:5].tolist() == first.indices.tolist()
    with pytest.raises(SufficeError, match="acquisition"):
        sf.simulate(model, X, CLASSES, steps=12, **(options | {"acquisition": farthest}))


def test_skips_corrections_checks_and_switches_go_on_with_the_function() -> None:
    learner = labelled_with(least_margin, LogisticRegression(), X, CLASSES, steps=40)
    (skipped,) = learner.ask().tolist()
    learner.skip(skipped)
    assert learner.ask().tolist() != [skipped]
    before = learner.ask(40).tolist()
    wrong = learner.labelled[-1]
    learner.correct(wrong, "yes" if CLASSES[wrong] == "no" else "no")
    assert learner.ask(40).tolist() != before
    learner.correct(wrong, CLASSES[wrong])
    assert learner.ask(40).tolist() == before
    check = learner.check(30)
    held = set(check.pending)
    assert not held & set(learner.ask(20).tolist())
    check.tell(CLASSES[list(check.pending)])
    learner.switch("logistic")
    assert learner.trace().about["acquisition"] == "function least_margin"
    items = learner.ask(3)
    learner.tell(items, CLASSES[items])
    assert len(learner.labelled) == 73


def test_a_running_check_keeps_its_sample() -> None:
    learner = labelled_with(least_margin, BayesianLogistic(1.0), X, CLASSES, steps=90, check_share=0.3)
    running = learner.running_check
    assert running is not None
    assert running.size > 10
