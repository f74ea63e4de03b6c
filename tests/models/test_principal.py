"""Principal components as features: those of the singular values, and as many as stand out from noise."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

import suffice as sf
from suffice.engines import NpyPool
from suffice.errors import InvalidValueError
from suffice.learner.learning_loop import model_family
from suffice.models import BayesianLogistic, PrincipalFeatures, principal
from suffice.models.capacity import MOST_WEIGHTS, most_features, most_principal
from suffice.models.factory import default_model, make_model
from suffice.models.laplace import GrowingPosterior
from suffice.numerics import Floats
from suffice.testing import MODEL_CHECKS


def low_rank(n: int, width: int, rank: int, *, noise: float = 0.1, seed: int = 0) -> Floats:
    """Rows in few directions of different size, with noise in all columns."""
    rng = np.random.default_rng(seed)
    directions = rng.normal(size=(rank, width)) * np.linspace(2.0, 1.0, rank)[:, None]
    return np.asarray(rng.normal(size=(n, rank)) @ directions + noise * rng.normal(size=(n, width)) + 3.0)


def oracle(X: Floats, d: int) -> Floats:
    """The first components by a singular value decomposition, over the deviation of the first; the sign is free."""
    centred = X - X.mean(axis=0)
    U, s, _ = np.linalg.svd(centred, full_matrices=False)
    return np.asarray((U * s)[:, :d] / (U[:, 0] * s[0]).std())


def require_same(Z: Floats, expected: Floats, tolerance: float = 1e-8) -> None:
    assert Z.shape == expected.shape
    signs = np.sign((Z * expected).sum(axis=0))
    np.testing.assert_allclose(Z * signs, expected, atol=tolerance)


@given(st.integers(0, 10**6), st.integers(12, 60), st.integers(2, 30), st.integers(1, 12))
def test_components_are_those_of_the_singular_values(seed: int, n: int, width: int, d: int) -> None:
    X = low_rank(n, width, 2, noise=1.0, seed=seed)
    made = PrincipalFeatures(d, fewest=100).fit(X)
    Z = made.transform(X)
    require_same(Z, oracle(X, min(n, width, d)), 1e-6)
    assert Z[:, 0].std() == pytest.approx(1.0)
    assert made.get_feature_names_out().tolist() == [f"component{k}" for k in range(Z.shape[1])]
    # New rows are seen as the old ones.
    np.testing.assert_allclose(made.transform(X[:1]), Z[:1])


def test_scikit_learn_accepts_it() -> None:
    check_estimator(PrincipalFeatures(2), on_skip=None)


@pytest.mark.parametrize(
    ("rank", "fewest", "used"), [(12, 5, {12, 13}), (6, 6, {6, 7}), (4, 8, {30}), (0, 5, {30}), (4, 0, {4, 5})]
)
def test_components_of_noise_are_left_out_if_enough_are_none(rank: int, fewest: int, used: set[int]) -> None:
    # The largest variance of noise varies, so one of its components may be among those in use.
    assert PrincipalFeatures(30, fewest=fewest).fit(low_rank(400, 200, rank, noise=1.0)).n_components_ in used


@pytest.mark.parametrize("shape", [(2000, 200), (300, 300), (200, 1000)])
def test_noise_alone_does_not_stand_out(shape: tuple[int, int]) -> None:
    X = np.random.default_rng(1).normal(size=shape)
    made = PrincipalFeatures(30, fewest=0).fit(X)
    # The largest variance is the published one.
    assert made.pca_.explained_variance_[0] == pytest.approx((1.0 + np.sqrt(shape[1] / shape[0])) ** 2, rel=0.1)
    assert made.n_components_ <= 2


def test_the_noise_is_the_mean_variance_of_all_others() -> None:
    X = low_rank(500, 100, 8, noise=1.0)
    made = PrincipalFeatures(30, fewest=0).fit(X)
    variances = np.linalg.eigvalsh(np.cov(X.T))[::-1]
    largest = variances[made.n_components_ :].mean() * (1.0 + np.sqrt(100 / 500)) ** 2
    assert made.n_components_ == np.count_nonzero(variances > largest) >= 8


def test_components_of_rounding_are_left_out() -> None:
    X = low_rank(50, 20, 3, noise=0.0)
    assert PrincipalFeatures(10).fit(X).n_components_ == 3
    same = PrincipalFeatures(10).fit(np.ones((5, 4)))
    assert (same.n_components_, same.scale_) == (1, 1.0)
    assert not same.transform(np.ones((2, 4))).any()


def test_batches_give_the_components_of_all_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    X = low_rank(500, 30, 6)
    for most in (10_000, 120):
        monkeypatch.setattr(principal, "_MOST_ROWS", most)
        monkeypatch.setattr(principal, "_FEWEST_ROWS", 10)
        whole, batches = PrincipalFeatures(6).fit(X), PrincipalFeatures(6)
        for start in range(0, 500, 90):
            batches.partial_fit(X[start : start + 90])
        np.testing.assert_allclose(batches.transform(X), whole.transform(X), atol=1e-10)
        # No row is stored once the components are computed.
        assert sum(len(value) == most for value in vars(whole).values() if isinstance(value, np.ndarray)) == 0
        assert len(pickle.dumps(batches)) < X.nbytes
    # A sample gives nearly the same plane: what all rows have in it is nearly a linear function of the sample's.
    monkeypatch.setattr(principal, "_MOST_ROWS", 10_000)
    sampled, full = (
        np.column_stack([np.ones(500), made.transform(X)]) for made in (whole, PrincipalFeatures(6).fit(X))
    )
    rest = full - sampled @ np.linalg.lstsq(sampled, full)[0]
    assert np.abs(rest).max() < 0.01
    # A batch after that starts again.
    again = batches.partial_fit(X[:90]).transform(X[:90])
    np.testing.assert_allclose(again, PrincipalFeatures(6).fit_transform(X[:90]), atol=1e-10)


@pytest.mark.parametrize("most", [20_000_000, 100])
def test_sparse_rows(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(principal, "_MOST_NUMBERS", most)
    X = low_rank(200, 40, 6, noise=0.3)
    X[np.random.default_rng(0).random(X.shape) < 0.5] = 0.0
    dense = PrincipalFeatures(5, fewest=100).fit(X)
    thin = PrincipalFeatures(5, fewest=100).fit(sparse.csr_matrix(X))
    require_same(thin.transform(sparse.csr_matrix(X)), dense.transform(X), 1e-6)
    assert isinstance(thin.transform(sparse.csr_matrix(X)), np.ndarray)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e200])
def test_inputs_must_be_finite(value: float) -> None:
    X = np.ones((4, 3))
    X[2, 1] = value
    for rows in (X, *([sparse.csr_matrix(X)] if not np.isfinite(value) else [])):
        with pytest.raises(InvalidValueError, match="at row 2, column 1"):
            PrincipalFeatures(2).fit(rows)
    with pytest.raises(InvalidValueError, match="at row 2, column 1"):
        PrincipalFeatures(2).fit(np.arange(12.0).reshape(4, 3)).transform(X)


@pytest.mark.parametrize(
    ("options", "said"),
    [({"n_components": 0}, "n_components must be"), ({"fewest": -1}, "fewest must be"), ({"seed": -1}, "seed must be")],
)
def test_arguments_that_cannot_be_used(options: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidValueError, match=said):
        PrincipalFeatures(**options).fit(np.eye(4))
    with pytest.raises(InvalidValueError, match="at least 2 rows"):
        PrincipalFeatures(2).fit(np.ones((1, 3)))


# The choice of the model


@given(st.integers(1, 5000), st.integers(2, 300))
def test_the_default_never_has_many_weights(n_features: int, n_classes: int) -> None:
    outputs = n_classes if n_classes > 2 else 1
    chosen = default_model("classification", n_features=n_features, n_classes=n_classes)
    if chosen.name == "logistic":
        assert not chosen.reason
        assert outputs * (n_features + 1) <= MOST_WEIGHTS or n_features <= 5
    else:
        assert chosen.name == "components"
        assert outputs * (n_features + 1) > MOST_WEIGHTS
        assert outputs * (most_principal(n_classes) + 1) <= max(MOST_WEIGHTS, 6 * outputs)
        assert most_principal(n_classes) <= most_features(n_classes)
        assert f"{n_features:,} columns and {n_classes:,} classes" in chosen.reason
        assert f"{outputs * (n_features + 1):,} weights" in chosen.reason


def test_the_default_at_the_limit() -> None:
    assert default_model("classification", n_features=99, n_classes=10).name == "logistic"
    assert default_model("classification", n_features=100, n_classes=10).name == "components"
    assert default_model("classification", n_features=999, n_classes=2).name == "logistic"
    assert default_model("classification", n_features=1000, n_classes=2).name == "components"
    assert default_model("regression", n_features=5000).name == "gp"
    # A text uses 25 of its components at least, and the model chooses how many.
    assert default_model("classification", n_features=400, n_classes=2, components=[(0, 400)]).name == "logistic"
    assert default_model("classification", n_features=165, n_classes=20, components=[(0, 165)]).name == "logistic"
    assert default_model("classification", n_features=865, n_classes=20, components=[(0, 165)]).name == "components"


@pytest.mark.parametrize(
    ("classes", "most", "fewest"), [(2, 100, 5), (10, 49, 9), (12, 40, 11), (26, 25, 25), (100, 9, 99)]
)
def test_the_model_on_components(classes: int, most: int, fewest: int) -> None:
    features, model = (step for _, step in make_model("components", classes=range(classes)).steps)
    assert repr(features) == repr(PrincipalFeatures(most, fewest=fewest))
    assert (model.alpha, model.classes, model.components) == (1.0, list(range(classes)), None)
    assert model_family(model, [features]) == "components"
    unknown = make_model("components")
    assert repr(unknown[0]) == repr(PrincipalFeatures(49))
    with pytest.raises(InvalidValueError, match="uses all features; leave components out"):
        make_model("components", components=[(0, 3)])


X_WIDE = low_rank(240, 400, 6, noise=0.5)
WIDE = np.array(["a", "b", "c"])[np.digitize(X_WIDE[:, 0] - X_WIDE[:, 0].mean(), [-1.0, 1.0])]


class OnComponents(BayesianLogistic):
    """The model on the components of the pool, which a learner has computed before."""

    def features(self, X: Floats) -> Floats:
        return super().features(PrincipalFeatures(5).fit(X_WIDE[:, :3]).transform(X))


@pytest.mark.parametrize("check", MODEL_CHECKS, ids=lambda check: check.__name__)
def test_conformance(check: Any) -> None:
    check(lambda: OnComponents(alpha=1.0, classes=["a", "b", "c"]), X_WIDE[:24, :3], WIDE[:24])


def test_the_learner_is_that_of_the_components() -> None:
    pipeline = make_model("components", classes=["a", "b", "c"])
    Z = clone(pipeline[0]).fit_transform(X_WIDE)
    wide = sf.ActiveLearner(pipeline, X_WIDE, seed=0)
    plain = sf.ActiveLearner(BayesianLogistic(alpha=1.0, classes=["a", "b", "c"]), Z, seed=0)
    for size in (10, *[1] * 8, 4):
        items = wide.ask(size)
        assert items.tolist() == plain.ask(size).tolist()
        verdicts = [learner.tell(items, WIDE[items]) for learner in (wide, plain)]
        assert verdicts[0] == verdicts[1]
    np.testing.assert_allclose(wide.model.predict_proba(X_WIDE), plain.model.predict_proba(Z), rtol=1e-12)


def test_a_learner_on_components_never_has_more_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sizes stand for time: the Hessian of all columns would be 7,850 x 7,850."""
    sizes: list[int] = []
    extend = GrowingPosterior.extend

    def counted(self: GrowingPosterior, features: Floats, labels: Any) -> GrowingPosterior:
        sizes.append(len(self.information))
        return extend(self, features, labels)

    monkeypatch.setattr(GrowingPosterior, "extend", counted)
    rng = np.random.default_rng(0)
    y = rng.integers(0, 10, size=600)
    X = rng.normal(size=(len(y), 784)) + 3.0 * rng.normal(size=(10, 784))[y]
    name = default_model("classification", n_features=784, n_classes=10).name
    learner = sf.ActiveLearner(make_model(name, classes=range(10)), X, seed=0)
    for size in (10, 1, 1, 1):
        items = learner.ask(size)
        learner.tell(items, y[items])
    assert 0 < max(sizes) <= 500
    # Each label is learned once: nothing is learned again.
    assert len(sizes) == 4
    assert float((learner.model.predict(X) != y).mean()) < 0.5


@pytest.mark.parametrize("kind", ["sparse", "on disk"])
def test_other_pools_give_the_same_picks(kind: str, tmp_path: Path) -> None:
    pool: Any = sparse.csr_matrix(X_WIDE)
    if kind == "on disk":
        np.save(tmp_path / "X.npy", X_WIDE)
        pool = NpyPool(tmp_path / "X.npy", memory_limit=4000)
    model = make_model("components", classes=["a", "b", "c"])
    learners = [sf.ActiveLearner(model, rows, seed=0) for rows in (X_WIDE, pool)]
    for size in (10, 1, 1, 1):
        items, others = (learner.ask(size) for learner in learners)
        assert items.tolist() == others.tolist()
        for learner in learners:
            learner.tell(items, WIDE[items])
    mine, theirs = (learner.model[-1].state_.weights for learner in learners)
    np.testing.assert_allclose(theirs, mine, rtol=1e-6, atol=1e-9)


def test_gaps_are_refused_as_by_the_model_on_all_columns() -> None:
    X = X_WIDE.copy()
    X[3, 7] = np.nan
    for model in (make_model("components"), make_model("logistic")):
        with pytest.raises(InvalidValueError, match="contains NaN at row 3, column 7"):
            sf.ActiveLearner(model, X)


def test_a_saved_learner_continues() -> None:
    model = make_model("components", classes=["a", "b", "c"])
    learner = sf.ActiveLearner(model, X_WIDE, seed=0)
    items = learner.ask(20)
    learner.tell(items, WIDE[items])
    again = sf.ActiveLearner.from_state(learner.state_dict(), model, X_WIDE)
    for _ in range(3):
        item = learner.ask()
        assert again.ask().tolist() == item.tolist()
        assert again.tell(item, WIDE[item]) == learner.tell(item, WIDE[item])


@pytest.mark.parametrize("shape", [(32, 60), (20, 100), (50, 51)])
def test_the_number_of_components_is_found_where_the_rest_is_rounding_error(shape: tuple[int, int]) -> None:
    for seed in range(20):
        X = np.random.default_rng(seed).normal(size=shape)
        assert 0 <= PrincipalFeatures().fit(X).transform(X).shape[1] <= min(shape)
