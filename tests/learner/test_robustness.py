"""What reviewers broke: scales, skips, failures in the middle, inputs that people have."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import suffice as sf
from suffice.acquisition import class_scores
from suffice.errors import InvalidValueError, MissingInputError, NotEnoughMemoryError
from suffice.models import BayesianLogistic, BayesianRidge, GaussianProcess
from suffice.models.laplace import Laplace
from suffice.models.regression import RidgeScales, learn_ridge, log_marginal
from suffice.numerics import Floats
from tests.thoroughness import crossed, some

RNG = np.random.default_rng(0)


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("columns", "dtype", "beta"),
    crossed(
        [[1.0, 1, 1, 1], [1e8, 1, 1, 1], [1e8] * 4, [1e-8, 1, 1e4, 1]], ["float64", "float32"], [1.0, 1e4], every=2
    ),
)
def test_linear_loops_at_any_scale(columns: list[float], dtype: str, beta: float) -> None:
    X = np.random.default_rng(1).normal(size=(400, 4)) * columns
    y = X[:, 1] / columns[1] + 0.1 * np.random.default_rng(2).normal(size=400)
    model = BayesianRidge(1.0, beta)
    options: dict[str, Any] = {"X_test": X[:50], "y_test": y[:50], "dtype": dtype}
    trace = sf.simulate(model, X, y, initial=6, steps=40, acquisition="variance", **options)
    labelled = list(trace.initial)
    for step, pick in enumerate(trace.indices):
        variance = model.fit(X[labelled], y[labelled]).latent(X)[1]
        variance[labelled] = -1.0
        assert variance[pick] >= (1.0 - 1e-5) * variance.max()
        labelled.append(int(pick))
        mean, spread = model.fit(X[labelled], y[labelled]).latent(X[:50])
        assert trace.error[step] == pytest.approx(np.mean((y[:50] - mean) ** 2 + spread), rel=1e-6)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("noise", [1e-13, 1e-15, 1e-18, 1e-30])
def test_processes_with_hardly_any_noise(noise: float) -> None:
    X = np.repeat(RNG.normal(size=(40, 2)), 2, axis=0)
    y = np.sin(X[:, 0])
    trace = sf.simulate(GaussianProcess(0.5, noise), X, y, initial=3, X_test=X, y_test=y)
    assert trace.error[-1] < 1e-6
    assert np.isfinite(trace.kl_new_old).all()


@pytest.mark.one_in(4)
@pytest.mark.parametrize("model", [GaussianProcess(1.0, 0.05), BayesianRidge(1.0, 10.0)], ids=str)
@pytest.mark.parametrize("seed", some(range(5), every=3))
def test_after_a_skip_the_pick_is_still_the_largest_variance(model: Any, seed: int) -> None:
    X = np.random.default_rng(seed).normal(size=(200, 3))
    learner = sf.ActiveLearner(model, X, acquisition="variance", seed=seed)
    learner.tell(learner.ask(10), X[learner.ask(10), 0])
    for number in range(60):
        item = int(learner.ask()[0])
        known = learner.labelled
        variance = model.fit(X[known], X[known, 0]).latent(X)[1]
        variance[[*known, *learner.skipped]] = -1.0
        assert variance[item] >= (1.0 - 1e-9) * variance.max()
        if number % 4 == 0:
            learner.skip(item)
        else:
            learner.tell(item, X[item, 0])


def test_a_label_that_fails_late_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    X = RNG.normal(size=(30, 2))
    learner = sf.ActiveLearner(GaussianProcess(1.0, 0.05), X, initial=5)
    learner.tell(np.arange(5), X[:5, 0])

    def fails(act: Callable[[], object]) -> None:
        with monkeypatch.context() as patched:
            # The last thing that is computed of a label.
            for module in ("models.gaussian_state", "learner.gaussian_backend"):
                patched.setattr(f"suffice.{module}.in_units_of_noise", lambda *_: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                act()

    for _ in range(2):
        fails(lambda: learner.tell(6, 9.0))
    learner.tell(6, X[6, 0])
    learner.tell(7, X[7, 0])
    assert learner.labelled == [0, 1, 2, 3, 4, 6, 7]
    assert learner.model.n_labels_ == 7
    fails(lambda: learner.correct(7, 9.0))
    assert learner.model.predict(X[7:8]) == pytest.approx(
        GaussianProcess(1.0, 0.05).fit(X[learner.labelled], X[learner.labelled, 0]).predict(X[7:8])
    )


def test_a_start_that_fails_can_be_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    X = RNG.normal(size=(30, 2))
    learner = sf.ActiveLearner(GaussianProcess(1.0, 0.05), X, initial=5)
    with monkeypatch.context() as patched:
        patched.setattr(GaussianProcess, "prior", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            learner.tell(np.arange(5), X[:5, 0])
    learner.tell(np.arange(5), X[:5, 0])
    assert learner.model.n_labels_ == 5


def test_memory_is_said_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("suffice.engines.disk_rows.free_memory", lambda: 10**6)
    with pytest.raises(NotEnoughMemoryError, match="pool items"):
        sf.ActiveLearner(GaussianProcess(), np.zeros((40_000, 2)))
    with pytest.raises(NotEnoughMemoryError, match="pool items"):
        sf.ActiveLearner(BayesianLogistic(), np.zeros((40_000, 20)))


@dataclass
class NeedsAccuracy(sf.Criterion):
    requires = frozenset({"accuracy"})

    def judge(self, step: sf.Step) -> sf.Verdict:
        return self.verdict(step, stop=False, reason="never")


def test_what_cannot_work_fails_before_a_label_is_bought() -> None:
    X = RNG.normal(size=(30, 2))
    with pytest.raises(MissingInputError, match="accuracy"):
        sf.ActiveLearner(GaussianProcess(), X, criterion=NeedsAccuracy())
    for model in (GaussianProcess(-1.0), GaussianProcess([1.0] * 3), BayesianRidge(0.0), BayesianLogistic(alpha=-1.0)):
        with pytest.raises(InvalidValueError):
            sf.ActiveLearner(model, X)
    for test in (X[:, :1], np.hstack([X, X])):
        with pytest.raises(InvalidValueError, match="X_test has"):
            sf.simulate(GaussianProcess(1.0, 0.1), X, X[:, 0], X_test=test, y_test=X[:, 0])
    bad = X.copy()
    bad[2, 1] = np.nan
    with pytest.raises(InvalidValueError, match="X_test contains NaN at row 2, column 1"):
        sf.simulate(GaussianProcess(1.0, 0.1), X, X[:, 0], X_test=bad, y_test=X[:, 0])
    with pytest.raises(InvalidValueError, match="seed"):
        sf.simulate(GaussianProcess(1.0, 0.1), X, X[:, 0], seed=-1)
    with pytest.raises(InvalidValueError, match="numbers"):
        sf.ActiveLearner(GaussianProcess(), [["a", "b"]])


def test_texts_and_sparse_tables() -> None:
    texts = ["free money now", "see you at lunch", "win money", "lunch tomorrow"] * 10
    kinds = ["spam", "ham"] * 20
    trace = sf.simulate(make_pipeline(TfidfVectorizer(), BayesianLogistic(1.0)), texts, kinds, initial=4, steps=10)
    assert len(trace) == 10
    X = RNG.normal(size=(30, 2))
    dense = sf.simulate(GaussianProcess(1.0, 0.1), X, X[:, 0], steps=5)
    sparse = sf.simulate(GaussianProcess(1.0, 0.1), csr_array(X), X[:, 0], steps=5)
    assert sparse.indices.tolist() == dense.indices.tolist()


def test_tables_with_names() -> None:
    X = pd.DataFrame(RNG.normal(size=(40, 2)), columns=["age", "height"])
    y = pd.Series(X["age"].to_numpy(), index=np.arange(40)[::-1])
    learner = sf.ActiveLearner(GaussianProcess(1.0, 0.1), X)
    items = learner.ask(10)
    learner.tell(items, y.iloc[items])
    assert learner.model.predict(X).shape == (40,)
    X.loc[3, "height"] = np.nan
    with pytest.raises(InvalidValueError, match="row 3, column 1 \\('height'\\)"):
        sf.ActiveLearner(GaussianProcess(), X)


def test_missing_and_mixed_classes_are_refused() -> None:
    X = RNG.normal(size=(60, 2))
    learner = sf.ActiveLearner(BayesianLogistic(1.0), X)
    for labels in (["ham", float("nan")], ["ham", None], ["ham", 3], [pd.NA, "ham"]):
        with pytest.raises(InvalidValueError):
            learner.tell([0, 1], labels)
    with pytest.raises(InvalidValueError):
        sf.simulate(BayesianLogistic(1.0), X, ["a", np.nan] * 30, steps=4)
    learner.tell(np.arange(10), ["ham", "spam"] * 5)
    with pytest.raises(InvalidValueError, match="all words or all numbers"):
        learner.tell(20, 3)
    assert len(learner.labelled) == 10
    regressor = sf.ActiveLearner(GaussianProcess(1.0, 0.1), X)
    with pytest.raises(InvalidValueError, match="NaN"):
        regressor.tell(1, pd.NA)


def test_corrections_one_at_a_time() -> None:
    X = RNG.normal(size=(40, 2))
    learner = sf.ActiveLearner(GaussianProcess(1.0, 0.1, normalize_y=True), X)
    right = sf.ActiveLearner(GaussianProcess(1.0, 0.1, normalize_y=True), X)
    learner.tell(np.arange(12), [*X[:11, 0], 500.0])
    right.tell(np.arange(12), X[:12, 0])
    learner.correct(11, X[[11], 0])
    assert learner.model.prior_ == right.model.prior_
    with pytest.raises(InvalidValueError, match="one item"):
        learner.correct([3, 4], [1.0, 2.0])
    early = sf.ActiveLearner(GaussianProcess(1.0, 0.1), X)
    early.tell(2, 1.0)
    for label in (np.nan, "spam"):
        with pytest.raises(InvalidValueError):
            early.correct(2, label)
    assert early.labels == {2: 1.0}
    assert early.trace().initial.tolist() == [2]


def test_a_class_corrected_away_leaves_no_trace() -> None:
    X = RNG.normal(size=(60, 2))
    y = np.where(X[:, 0] > 0, "a", "b")
    slip, right = (sf.ActiveLearner(BayesianLogistic(), X) for _ in range(2))
    for item in range(35):
        slip.tell(item, "aa" if item == 15 else y[item])
        right.tell(item, y[item])
        if item == 17:
            slip.correct(15, y[15])
    assert slip.model.alpha_ == pytest.approx(right.model.alpha_, rel=1e-2)
    assert slip.model.learned_at_ == right.model.learned_at_ == 20
    assert slip.model.classes_.tolist() == ["a", "b"]


def test_nothing_is_shared_with_the_caller() -> None:
    X = RNG.normal(size=(40, 2))
    y = X[:, 0].copy()
    learner = sf.ActiveLearner(make_pipeline(StandardScaler(), BayesianRidge(1.0, 10.0)), X)
    learner.tell(np.arange(20), y[:20])
    before = learner.model.predict(X[:2])
    learner.model.fit(100.0 * X + 7.0, y)
    X_kept = X[:2].copy()
    X[:] = 0.0
    assert learner.model.predict(X_kept) == pytest.approx(before)
    model = BayesianLogistic()
    classes = y > 0
    first = model.fit(X_kept.repeat(20, axis=0) + RNG.normal(size=(40, 2)), classes).alpha_
    inputs = model.X_.copy()
    assert model.fit(inputs, classes).alpha_ == first


def test_gradient_of_the_marginal_likelihood_with_an_offset() -> None:
    X = RNG.normal(size=(40, 2))
    y = np.sin(X[:, 0])
    here, there = (log_marginal(x, y, np.array([1.0]), 0.1) for x in (X, X + 1e6))
    assert there.gradient == pytest.approx(here.gradient, rel=1e-4)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_learned_ridge_scales_with_the_data(scale: float) -> None:
    X = np.random.default_rng(3).normal(size=(100, 3))
    y = X @ [1.0, 2.0, 3.0] + 0.3 * np.random.default_rng(4).normal(size=100)
    one = learn_ridge(X, y, RidgeScales(1.0, 1.0), fixed=(False, False))
    other = learn_ridge(scale * X, y, RidgeScales(1.0, 1.0), fixed=(False, False))
    assert other.alpha == pytest.approx(scale**2 * one.alpha, rel=1e-4)
    assert other.beta == pytest.approx(one.beta, rel=1e-4)


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("mean", "variance"), [(0.0, 1.0), (0.0, 100.0), (2.0, 100.0), (30.0, 1e4), (3e3, 1e8)])
def test_bald_of_wide_logits(mean: float, variance: float) -> None:
    class Fixed(Laplace):
        def latent(self, features: Floats) -> tuple[Floats, Floats]:
            return np.full(len(features), mean), np.full(len(features), variance)

    z = np.random.default_rng(0).normal(size=2_000_000)
    p = 1.0 / (1.0 + np.exp(-np.clip(mean + np.sqrt(variance) * z, -700, 700)))

    def entropy(q: Any) -> Any:
        q = np.clip(q, 1e-300, 1.0)
        return -q * np.log(q) - (1.0 - q) * np.log(np.clip(1.0 - q, 1e-300, 1.0))

    truth = entropy(p.mean()) - entropy(p).mean()
    assert class_scores(Fixed(1), np.zeros((1, 1)), "bald")[0] == pytest.approx(truth, abs=2e-3)


def test_broken_files_and_odd_seeds(tmp_path: Path) -> None:
    X = RNG.normal(size=(30, 2))
    trace = sf.simulate(GaussianProcess(1.0, 0.1), X, X[:, 0], steps=3, seed=np.int64(3))  # type: ignore[arg-type]
    trace.save(tmp_path / "a.npz")
    assert repr(trace) == "Trace(3 steps after 10 initial labels)"
    whole = (tmp_path / "a.npz").read_bytes()
    for broken in (b"", whole[:100], whole[:-30], b"x" * 50):
        (tmp_path / "b.npz").write_bytes(broken)
        with pytest.raises(InvalidValueError, match="not a run"):
            sf.Trace.load(tmp_path / "b.npz")
