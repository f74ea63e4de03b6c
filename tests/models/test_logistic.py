"""The logistic classifier: scikit-learn's contract, label by label, classes that turn up late, edges."""

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit, softmax
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from suffice import kl
from suffice.errors import InvalidValueError
from suffice.models.laplace import divergences, learn_alpha, log_evidence
from suffice.models.logistic import BayesianLogistic
from suffice.numerics import Floats
from tests.thoroughness import examples

NAMES = np.array(["crow", "dove", "finch", "gull"])


def data(n: int, n_classes: int, seed: int = 0) -> tuple[Floats, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    codes = (X @ rng.normal(size=(3, n_classes)) + rng.gumbel(size=(n, n_classes))).argmax(axis=1)
    return X, NAMES[codes]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("model", [BayesianLogistic(), BayesianLogistic(alpha=1.0, fit_intercept=False)], ids=repr)
def test_scikit_learn_contract(model: BayesianLogistic) -> None:
    check_estimator(model, on_skip=None)


@pytest.mark.parametrize("n_classes", [2, 3, 4])
def test_weights_are_those_of_scikit_learn(n_classes: int) -> None:
    X, y = data(150, n_classes)
    model = BayesianLogistic(alpha=0.5, fit_intercept=False).fit(X, y)
    other = LogisticRegression(C=2.0, fit_intercept=False, tol=1e-10, max_iter=5000).fit(X, y)
    np.testing.assert_allclose(model.coef_, other.coef_, atol=1e-5)
    np.testing.assert_array_equal(model.intercept_, np.zeros(len(other.coef_)))
    np.testing.assert_array_equal(model.classes_, other.classes_)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_intercept_is_a_constant_feature(n_classes: int) -> None:
    X, y = data(60, n_classes)
    model = BayesianLogistic(alpha=0.5).fit(X, y)
    other = BayesianLogistic(alpha=0.5, fit_intercept=False).fit(np.column_stack([np.ones(60), X]), y)
    np.testing.assert_allclose(np.column_stack([model.intercept_, model.coef_]), other.coef_, atol=1e-12)
    assert model.posterior.dimension == (4 if n_classes == 2 else 12)
    assert kl(model.posterior, other.posterior) == pytest.approx(0.0, abs=1e-15)


def test_probabilities_of_two_classes() -> None:
    X, y = data(40, 2)
    model = BayesianLogistic(alpha=0.5).fit(X, y)
    points = np.column_stack([np.ones(40), X])
    mean = points @ model.posterior.mean
    variance = np.sum((points @ np.linalg.inv(model.posterior.factor).T) ** 2, axis=1)
    labels, std = model.predict(X, return_std=True)
    np.testing.assert_allclose(std, np.sqrt(variance), rtol=1e-10)
    expected = expit(mean / np.sqrt(1.0 + np.pi * variance / 8.0))
    np.testing.assert_allclose(model.predict_proba(X), np.column_stack([1.0 - expected, expected]), rtol=1e-10)
    np.testing.assert_array_equal(labels, np.where(mean > 0.0, NAMES[1], NAMES[0]))


def test_probabilities_of_many_classes_leave_out_what_the_classes_share() -> None:
    X, y = data(40, 3)
    model = BayesianLogistic(alpha=0.01).fit(X, y)
    points = np.column_stack([np.ones(40), X])
    factor = model.posterior.factor
    covariance = np.linalg.inv(factor @ factor.T).reshape(3, 4, 3, 4)
    centring = np.eye(3) - 1.0 / 3.0
    centred = np.einsum("ka,aibj,kb->kij", centring, covariance, centring)
    variance = np.einsum("ni,kij,nj->nk", points, centred, points)
    logits = points @ model.posterior.mean.reshape(3, 4).T
    expected = softmax(logits / np.sqrt(1.0 + np.pi * variance / 8.0), axis=1)
    np.testing.assert_allclose(model.predict_proba(X), expected, rtol=1e-8)
    labels, std = model.predict(X, return_std=True)
    np.testing.assert_array_equal(labels, NAMES[expected.argmax(axis=1)])
    assert std.shape == (40, 3)


@examples(25)
@given(st.integers(0, 1000), st.sampled_from([2, 3]), st.sets(st.integers(1, 39), max_size=10))
def test_observing_is_fitting_all(seed: int, n_classes: int, cuts: set[int]) -> None:
    X, y = data(40, n_classes, seed)
    grown = BayesianLogistic(alpha=0.7)
    for rows in np.split(np.arange(40), sorted(cuts)):
        grown.observe(X[rows], y[rows])
    whole = BayesianLogistic(alpha=0.7).fit(X, y)
    np.testing.assert_array_equal(grown.classes_, whole.classes_)
    np.testing.assert_allclose(grown.posterior.mean, whole.posterior.mean, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(grown.posterior.factor, whole.posterior.factor, rtol=1e-8, atol=1e-8)
    assert grown.n_labels_ == whole.n_labels_ == 40


def test_alpha_is_learned_when_fitted_and_when_the_labels_have_doubled() -> None:
    X, y = data(100, 2)
    model = BayesianLogistic().fit(X[:30], y[:30])
    design, codes = np.column_stack([np.ones(100), X]), np.searchsorted(NAMES[:2], y)
    assert model.alpha_ == pytest.approx(learn_alpha(design[:30], codes[:30], 2), rel=1e-12)
    first = model.alpha_
    for i in range(30, 59):
        model.observe(X[i : i + 1], y[i : i + 1])
    assert (model.alpha_, model.learned_at_) == (first, 30)
    model.observe(X[59:60], y[59:60])
    assert model.learned_at_ == 60
    assert model.alpha_ != first
    best = log_evidence(design[:60], codes[:60], 2, model.alpha_)
    assert best >= max(log_evidence(design[:60], codes[:60], 2, f * model.alpha_) for f in (0.5, 0.9, 1.1, 2.0)) - 1e-6


def test_a_given_alpha_stays() -> None:
    X, y = data(50, 2)
    model = BayesianLogistic(alpha=3.0).fit(X[:10], y[:10]).observe(X[10:], y[10:])
    assert (model.alpha_, model.n_labels_) == (3.0, 50)


def test_classes_that_turn_up_one_after_the_other() -> None:
    X, y = data(60, 3)
    order = np.argsort(y, kind="stable")[::-1]
    model = BayesianLogistic(alpha=1.0)
    for i in order:
        model.observe(X[i : i + 1], y[i : i + 1])
        assert set(model.classes_) == set(y[order[: model.n_labels_]])
        assert model.predict_proba(X).shape == (60, len(model.classes_))
    whole = BayesianLogistic(alpha=1.0).fit(X, y)
    np.testing.assert_allclose(model.coef_, whole.coef_, atol=1e-9)


def test_a_single_class_so_far() -> None:
    X = data(20, 2)[0]
    one = BayesianLogistic().fit(X, np.full(20, "dove"))
    assert set(one.predict(X)) == {"dove"}
    np.testing.assert_array_equal(one.predict_proba(X), np.ones((20, 1)))
    known = BayesianLogistic(classes=["dove", "crow"]).fit(X, np.full(20, "dove"))
    assert known.predict_proba(X).shape == (20, 2)
    assert set(known.predict(np.zeros((1, 3)))) == {"dove"}
    assert known.observe(X[:1], ["crow"]).n_labels_ == 21


def test_known_classes_keep_the_shape_and_refuse_others() -> None:
    X, y = data(60, 3)
    model = BayesianLogistic(alpha=1.0, classes=NAMES).fit(X, y)
    assert model.predict_proba(X).shape == (60, 4)
    assert model.posterior.dimension == 16
    model = BayesianLogistic(alpha=1.0, classes=NAMES[:2])
    with pytest.raises(InvalidValueError, match=r"y holds .*'owl'.*not in classes="):
        model.fit(X[:2], ["crow", "owl"])
    model.fit(X[:2], ["crow", "dove"])
    with pytest.raises(InvalidValueError, match="'owl'"):
        model.observe(X[:1], ["owl"])
    assert model.n_labels_ == 2


def test_the_divergence_of_a_label() -> None:
    X, y = data(60, 2)
    model = BayesianLogistic(alpha=1.0).fit(X[:50], y[:50])
    before, old = model.posterior, model.state_.snapshot()
    model.observe(X[50:], y[50:])
    pair = divergences(old, model.state_.snapshot())
    assert pair.new_old == pytest.approx(float(kl(model.posterior, before)), rel=1e-9)
    assert pair.old_new == pytest.approx(float(kl(before, model.posterior)), rel=1e-9)


@pytest.mark.parametrize("method", ["fit", "observe", "predict"])
def test_a_missing_value_is_named(method: str) -> None:
    X, y = data(10, 2)
    model = BayesianLogistic(alpha=1.0).fit(X, y)
    X[4, 2] = np.nan
    with pytest.raises(InvalidValueError, match="X contains NaN at row 4, column 2"):
        getattr(model, method)(*((X, y) if method != "predict" else (X,)))


def test_a_missing_label_is_named() -> None:
    with pytest.raises(InvalidValueError, match="y contains NaN at row 1; every item needs a class"):
        BayesianLogistic().fit([[0.0], [1.0]], [0.0, np.nan])


@pytest.mark.parametrize("alpha", [0.0, -1.0, np.nan, "1"])
def test_a_wrong_alpha_is_named(alpha: Any) -> None:
    with pytest.raises(InvalidValueError, match="alpha must be a number above 0, or None"):
        BayesianLogistic(alpha=alpha).fit([[0.0], [1.0]], [0, 1])


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize("alpha", [None, 1e-8, 1e8])
def test_extremes_give_finite_answers(scale: float, alpha: float | None) -> None:
    X, y = data(30, 3)
    X[:, 1] = 1.0
    X[10:20] = X[10]
    y[X[:, 0] > 0] = "crow"
    for labels in (y, np.where(y == "crow", "crow", "dove"), np.full(30, "dove")):
        for n in (1, 2, 30):
            model = BayesianLogistic(alpha=alpha).fit(scale * X[:n], labels[:n])
            proba = model.predict_proba(scale * X)
            assert np.isfinite(proba).all()
            np.testing.assert_allclose(proba.sum(axis=1), 1.0)
            assert np.isfinite(model.posterior.factor).all()


def test_in_a_pipeline_cloned_and_pickled() -> None:
    X, y = load_iris(return_X_y=True)
    pipe = make_pipeline(StandardScaler(), BayesianLogistic())
    assert pipe.fit(X, y).score(X, y) > 0.95
    copied = pickle.loads(pickle.dumps(pipe))
    np.testing.assert_array_equal(copied.predict_proba(X), pipe.predict_proba(X))
    fresh = clone(pipe[-1])
    assert fresh.get_params() == {"alpha": None, "classes": None, "components": None, "fit_intercept": True}
    assert not hasattr(fresh, "classes_")
    np.testing.assert_array_equal(copied[-1].observe(X[:5], y[:5]).coef_, pipe[-1].observe(X[:5], y[:5]).coef_)
