"""Gaussian process and ridge regression against dense formulas and scikit-learn, and at the edges."""

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from sklearn.linear_model import BayesianRidge as SklearnRidge
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

import suffice as sf
from suffice.errors import InvalidValueError, NotPositiveDefiniteError
from suffice.models import BayesianRidge, GaussianProcess, RadialBasis
from suffice.models.gaussian_state import Scaling
from suffice.models.regression import RidgePrior, RidgeScales, learn_ridge, ridge_evidence
from suffice.numerics import Floats


@pytest.mark.parametrize(
    "model",
    [
        pytest.param(GaussianProcess(), marks=pytest.mark.slow),
        GaussianProcess(length_scale=1.0, noise=0.1),
        BayesianRidge(),
        BayesianRidge(alpha=1.0, beta=2.0, fit_intercept=True),
        RadialBasis(),
        pytest.param(GaussianProcess(per_feature=True), marks=pytest.mark.slow),
    ],
    ids=repr,
)
def test_scikit_learn_contract(model: Any) -> None:
    check_estimator(model, on_skip=None)


def data(n: int = 40, d: int = 3, seed: int = 0) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.sin(X[:, 0]) + X @ np.arange(d) + 0.1 * rng.normal(size=n)


def fixed_models() -> list[Any]:
    return [
        GaussianProcess(length_scale=1.3, noise=0.05),
        GaussianProcess(length_scale=[1.3, 0.7, 2.0], noise=0.05),
        BayesianRidge(alpha=0.7, beta=9.0),
        BayesianRidge(alpha=0.7, beta=9.0, fit_intercept=True),
    ]


def test_gaussian_process_is_the_dense_formula_and_scikit_learns() -> None:
    X, y = data()
    points = np.random.default_rng(1).normal(size=(20, 3))
    model = GaussianProcess(length_scale=1.3, noise=0.05).fit(X, y)
    peer = GaussianProcessRegressor(RBF(1.3), alpha=0.05, optimizer=None).fit(X, y)
    mean, std = peer.predict(points, return_std=True)
    ours, spread = model.predict(points, return_std=True)
    assert ours == pytest.approx(mean, rel=1e-9)
    assert spread**2 - 0.05 == pytest.approx(std**2, rel=1e-7)
    assert model.latent(points)[1] == pytest.approx(std**2, rel=1e-7)


def test_one_length_scale_per_feature() -> None:
    X, y = data()
    lengths = [1.3, 0.7, 2.0]
    peer = GaussianProcessRegressor(RBF(lengths), alpha=0.05, optimizer=None).fit(X, y)
    assert GaussianProcess(lengths, 0.05).fit(X, y).predict(X) == pytest.approx(peer.predict(X), rel=1e-9)


def test_ridge_is_the_dense_formula() -> None:
    X, y = data()
    model = BayesianRidge(alpha=0.7, beta=9.0, fit_intercept=False).fit(X, y)
    covariance = np.linalg.inv(0.7 * np.eye(3) + 9.0 * X.T @ X)
    assert model.coef_ == pytest.approx(9.0 * covariance @ X.T @ y, rel=1e-10)
    _, std = model.predict(X, return_std=True)
    assert std == pytest.approx(np.sqrt(np.einsum("ij,jk,ik->i", X, covariance, X) + 1 / 9.0), rel=1e-10)


def test_learned_ridge_finds_the_evidence_of_scikit_learn() -> None:
    X, y = data(200)
    peer = SklearnRidge(fit_intercept=False, alpha_1=0, alpha_2=0, lambda_1=0, lambda_2=0, tol=1e-12, max_iter=5000)
    peer.fit(X, y)
    model = BayesianRidge(fit_intercept=False, normalize_y=False, regularize=False).fit(X, y)
    assert model.prior_.alpha == pytest.approx(peer.lambda_, rel=1e-5)
    assert model.prior_.beta == pytest.approx(peer.alpha_, rel=1e-5)


def hidden(seed: int) -> tuple[Floats, Floats]:
    """Labels that the difference of two features tells, a tenth as large as they are; the first ten have none of it."""
    rng = np.random.default_rng(seed)
    common, own = rng.normal(size=(2, 40))
    own[:10] = 0.0
    return np.column_stack([common, common + 0.1 * own]), own + 0.05 * rng.normal(size=40)


@pytest.mark.parametrize("seed", [0, 2, 3])
def test_a_ridge_whose_first_labels_spoke_for_no_weights_recovers(seed: int) -> None:
    X, y = hidden(seed)
    model = BayesianRidge(fit_intercept=False, normalize_y=False, regularize=False).fit(X[:10], y[:10])
    assert model.prior_.alpha > 1e10
    # From there alone the fixed point does not come back.
    trapped = learn_ridge(X, y, RidgeScales(model.prior_.alpha, model.prior_.beta), fixed=(False, False))
    assert trapped.alpha > 1e8
    model.observe(X[10:], y[10:])
    fresh = BayesianRidge(fit_intercept=False, normalize_y=False, regularize=False).fit(X, y)
    assert model.prior_.alpha == pytest.approx(fresh.prior_.alpha, rel=1e-6) == pytest.approx(0.01, rel=0.1)
    assert model.prior_.beta == pytest.approx(fresh.prior_.beta, rel=1e-6)
    assert model.score(X, y) > 0.99


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("alpha", [1e-9, 1e12])
def test_a_previous_prior_at_its_bound_does_not_trap_a_ridge(seed: int, alpha: float) -> None:
    X, y = hidden(seed)
    model = BayesianRidge(fit_intercept=False, normalize_y=False, regularize=False)
    found = model.prior(X, y, RidgePrior(alpha, 1.0, Scaling(0.0, 1.0)))
    assert found.alpha == pytest.approx(model.prior(X, y).alpha, rel=1e-6)


@given(
    seed=st.integers(0, 500),
    previous=st.tuples(st.floats(-6.0, 9.0), st.floats(-1.0, 4.0)),
    known=st.sampled_from([(None, None), (2.0, None), (None, 3.0)]),
)
def test_of_two_starts_the_evidence_decides(
    seed: int, previous: tuple[float, float], known: tuple[float | None, float | None]
) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(15, 4))
    X[:, 3] = X[:, 2] + 0.1 * rng.normal(size=15)
    y = 3.0 * (X[:, 3] - X[:, 2]) + rng.normal(size=15)
    alpha, beta = known
    before = RidgePrior(10.0 ** previous[0], 10.0 ** previous[1], Scaling(0.0, 1.0))
    found = BayesianRidge(alpha, beta, fit_intercept=False, normalize_y=False, regularize=False).prior(X, y, before)
    assert (alpha or found.alpha, beta or found.beta) == (found.alpha, found.beta)
    fixed = alpha is not None, beta is not None
    for start in (RidgeScales(before.alpha, before.beta), RidgeScales(1.0, 1.0)):
        begin = RidgeScales(alpha or start.alpha, beta or start.beta)
        other = ridge_evidence(X, y, learn_ridge(X, y, begin, fixed=fixed))
        assert ridge_evidence(X, y, RidgeScales(found.alpha, found.beta)) >= other - 1e-9


def test_a_ridge_that_learns_again_from_equal_columns_of_any_scale_is_answered() -> None:
    answered = []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(40, 4)) * [1e7, 1e7, 1.0, 1.0]
        X[:, 1] = X[:, 0]
        y = 1e-7 * X[:, 0] + 1e-4 * rng.normal(size=40)
        model = BayesianRidge(fit_intercept=True)
        try:
            mean = model.fit(X[:20], y[:20]).observe(X[20:], y[20:]).predict(X)
        except NotPositiveDefiniteError:
            continue
        answered.append(bool(np.isfinite(mean).all()))
    assert answered
    assert all(answered)


@pytest.mark.parametrize("model", fixed_models(), ids=str)
@given(order=st.permutations(range(12)), cuts=st.lists(st.integers(1, 11), max_size=4))
def test_labels_in_any_order_and_grouping_give_the_same_posterior(
    model: Any, order: list[int], cuts: list[int]
) -> None:
    X, y = data(12)
    whole = model.fit(X, y).latent(X)
    edges = [0, *sorted(set(cuts)), 12]
    rows = np.array(order)
    model.fit(X[rows[: edges[1]]], y[rows[: edges[1]]])
    for a, b in itertools.pairwise(edges[1:]):
        model.observe(X[rows[a:b]], y[rows[a:b]])
    again = model.latent(X)
    assert again[0] == pytest.approx(whole[0], rel=1e-8, abs=1e-9)
    assert again[1] == pytest.approx(whole[1], rel=1e-8, abs=1e-10)


@pytest.mark.parametrize("model", [GaussianProcess(), BayesianRidge(), BayesianRidge(fit_intercept=False)], ids=str)
def test_learned_scales_are_learned_again_on_doubling(model: Any) -> None:
    X, y = data(80)
    model.fit(X[:20], y[:20])
    first = model.prior_
    model.observe(X[20:39], y[20:39])
    assert model.prior_ is first
    model.observe(X[39:40], y[39:40])
    assert model.prior_ != first
    assert model.learned_at_ == 40


def test_learned_process_is_as_likely_as_scikit_learns_best() -> None:
    X, y = data(60)
    y = (y - y.mean()) / y.std()
    model = GaussianProcess(regularize=False).fit(X, y)
    peer = GaussianProcessRegressor(RBF(1.0), alpha=model.prior_.noise, n_restarts_optimizer=5, random_state=0).fit(
        X, y
    )
    assert model.prior_.kernel.length_scale[0] == pytest.approx(peer.kernel_.length_scale, rel=1e-3)


@pytest.mark.parametrize("model", fixed_models(), ids=str)
def test_posterior_is_a_value_that_the_rule_takes(model: Any) -> None:
    X, y = data()
    old = model.fit(X[:30], y[:30]).posterior
    new = model.observe(X[30:31], y[30:31]).posterior
    step = sf.Step.between(old, new, n_labelled=31)
    trace = sf.audit(model, X[:31], y[:31], initial=30)
    assert trace.kl_new_old[0] == pytest.approx(step.kl_new_old, rel=1e-8)
    assert trace.kl_old_new[0] == pytest.approx(step.kl_old_new, rel=1e-8)


@pytest.mark.parametrize("model", [*fixed_models(), GaussianProcess(), BayesianRidge()], ids=str)
class TestExtremes:
    def test_one_datum(self, model: Any) -> None:
        X, y = data()
        mean, std = model.fit(X[:1], y[:1]).predict(X, return_std=True)
        assert np.isfinite(mean).all()
        assert (std > 0).all()

    def test_duplicates_and_a_constant_feature(self, model: Any) -> None:
        X, y = data()
        X = np.repeat(X, 3, axis=0)
        X[:, 1] = 5.0
        mean, std = model.fit(X, np.repeat(y, 3)).predict(X, return_std=True)
        assert np.isfinite(mean).all()
        assert (std > 0).all()

    def test_equal_labels(self, model: Any) -> None:
        X, _ = data()
        mean, std = model.fit(X, np.full(40, 3.0)).predict(X, return_std=True)
        assert np.isfinite(mean).all()
        assert np.isfinite(std).all()

    def test_features_of_scale_1e8(self, model: Any) -> None:
        X, y = data()
        mean, std = model.fit(1e8 * X, y).predict(1e8 * X, return_std=True)
        assert np.isfinite(mean).all()
        assert (std >= 0).all()
        again = model.fit(1e8 + 1e8 * X, y).observe(1e8 * X[:2], y[:2])
        assert np.isfinite(again.predict(1e8 * X)).all()

    def test_nan_is_named_by_row_and_column(self, model: Any) -> None:
        X, y = data()
        X[7, 2] = np.nan
        with pytest.raises(InvalidValueError, match="NaN at row 7, column 2"):
            model.fit(X, y)
        X[7, 2] = np.inf
        with pytest.raises(InvalidValueError, match="row 7, column 2"):
            model.fit(X, y)

    def test_a_label_that_is_no_number(self, model: Any) -> None:
        X, y = data()
        y[3] = np.nan
        with pytest.raises(InvalidValueError, match="y contains NaN at row 3"):
            model.fit(X, y)
        with pytest.raises(InvalidValueError, match="y must hold numbers"):
            model.fit(X, ["a"] * 40)


def test_features_of_scale_1e8_with_their_length_scale_are_the_same_model() -> None:
    X, y = data()
    one = GaussianProcess(1.3, 0.05).fit(X, y).predict(X)
    other = GaussianProcess(1.3e8, 0.05).fit(1e8 * X + 3e8, y).predict(1e8 * X + 3e8)
    assert other == pytest.approx(one, rel=1e-6)


def test_noise_near_zero() -> None:
    X, y = data()
    model = GaussianProcess(1.3, 1e-10).fit(X, y)
    assert model.predict(X) == pytest.approx(y, abs=1e-6)
    BayesianRidge(1.0, 1e10).fit(X, y)


def test_arguments_out_of_range_are_named() -> None:
    X, y = data()
    for model, name in (
        (GaussianProcess(length_scale=-1.0), "length_scale"),
        (GaussianProcess(noise=0.0), "noise"),
        (GaussianProcess(length_scale=[1.0, 2.0]), "length_scale"),
        (BayesianRidge(alpha=0.0), "alpha"),
        (BayesianRidge(beta="x"), "beta"),  # type: ignore[arg-type]
        (RadialBasis(n_centres=0), "n_centres"),
        (RadialBasis(bandwidth=-1.0), "bandwidth"),
    ):
        with pytest.raises(InvalidValueError, match=name):
            model.fit(X, y)


def test_singular_precision_is_answered() -> None:
    X = 1e12 * np.ones((4, 3))
    with pytest.raises(NotPositiveDefiniteError, match="alpha"):
        BayesianRidge(alpha=1e-12, beta=1e6).fit(X, np.ones(4))


def test_radial_basis_is_the_papers() -> None:
    X = np.array([[0.0, 9.0], [3.0, 6.0]])
    basis = RadialBasis(n_centres=4).fit(X)
    assert basis.centres_.tolist() == [0.0, 3.0, 6.0, 9.0]
    assert basis.width_ == 3.0
    assert basis.transform(X)[1, :4] == pytest.approx(np.exp(-0.5 * np.array([1.0, 0.0, 1.0, 4.0])))
    assert basis.get_feature_names_out()[:2].tolist() == ["x0_rbf0", "x0_rbf1"]
    assert RadialBasis(1).fit_transform(np.ones((2, 1))).tolist() == [[1.0], [1.0]]


def test_in_a_pipeline() -> None:
    X, y = data(100)
    model = make_pipeline(RadialBasis(6), BayesianRidge()).fit(X[:80], y[:80])
    assert model.score(X[80:], y[80:]) > 0.9
