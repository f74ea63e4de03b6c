"""Laplace posteriors against 50-digit arithmetic, scikit-learn and differences; any order and grouping; extremes."""

import copy
import pickle
import warnings
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg.lapack import dpotrf
from scipy.optimize import approx_fprime
from sklearn.linear_model import LogisticRegression

from suffice import kl
from suffice.errors import InvalidValueError
from suffice.models import labelled_loss, newton_search
from suffice.models import laplace as laplace_module
from suffice.models.laplace import (
    GrowingPosterior,
    Laplace,
    Snapshot,
    SoftmaxLaplace,
    divergences,
    laplace,
    learn_alpha,
    log_evidence,
)
from suffice.numerics import Floats
from suffice.posteriors import Gaussian
from tests.thoroughness import examples, some

EPS = np.finfo(np.float64).eps
# From 8 classes on, the Hessian is computed in another way.
CLASSES = pytest.mark.parametrize("n_classes", [2, 3, 4, 9])


def data(n: int, size: int, n_classes: int, seed: int = 0) -> tuple[Floats, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, size))
    logits = X @ rng.normal(size=(size, n_classes)) + rng.gumbel(size=(n, n_classes))
    return X, logits.argmax(axis=1)


def residual(X: Floats, y: Any, weights: Floats) -> Floats:
    """Derivative of the loss by the logits, ``n x C``, without subtracting a probability from 1."""
    logits = X @ np.atleast_2d(weights).T
    if weights.ndim == 1:
        sign = np.where(y == 1, 1.0, -1.0)[:, None]
        return np.asarray(-sign / (1.0 + np.exp(np.minimum(sign * logits, 700.0))))
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    rows = np.arange(len(y))
    total, odds[rows, y] = odds.sum(axis=1), 0.0
    odds[rows, y] = -odds.sum(axis=1)
    return np.asarray(odds / total[:, None])


def gradient(model: GrowingPosterior, X: Floats, y: Any) -> Floats:
    return np.asarray((residual(X, y, model.weights).T @ X + model.alpha * np.atleast_2d(model.weights)).ravel())


def rounding(model: GrowingPosterior, X: Floats, y: Any) -> float:
    """Norm of the rounding error of the gradient, as the documentation of ``extend`` states it."""
    w = np.abs(np.atleast_2d(model.weights))
    reach = (np.abs(X) @ w.T).max(axis=1, keepdims=True)
    share = np.abs(residual(X, y, model.weights)) * (1.0 + 2.0 * reach)
    return float(EPS * np.linalg.norm(share.T @ np.abs(X) + model.alpha * w))


def deviations(model: GrowingPosterior, X: Floats) -> Floats:
    """Standard deviation of each weight if the others are known."""
    logits = X @ np.atleast_2d(model.weights).T
    if model.weights.ndim == 1:
        p = 1.0 / (1.0 + np.exp(-np.clip(logits, -700.0, 700.0)))
    else:
        odds = np.exp(logits - logits.max(axis=1, keepdims=True))
        p = odds / odds.sum(axis=1, keepdims=True)
    curvature = (p * (1.0 - p)).T @ X**2 + model.alpha
    return np.asarray(1.0 / np.sqrt(curvature.ravel()))


@CLASSES
@pytest.mark.parametrize("alpha", [0.01, 1.0, 100.0])
def test_the_minimum_is_that_of_scikit_learn(n_classes: int, alpha: float) -> None:
    X, y = data(120, 5, n_classes)
    model = laplace(X, y, n_classes, alpha)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its tolerance is below what it can reach
        other = LogisticRegression(C=1.0 / alpha, fit_intercept=False, tol=1e-12, max_iter=10_000).fit(X, y)
    np.testing.assert_allclose(np.atleast_2d(model.weights), other.coef_, atol=2e-6)
    assert np.linalg.norm(gradient(model, X, y)) <= 1e-8


@CLASSES
def test_the_hessian_is_the_derivative_of_the_gradient(n_classes: int) -> None:
    X, y = data(60, 3, n_classes)
    model = laplace(X, y, n_classes, 0.3)

    def slope(flat: Floats) -> Floats:
        w = flat.reshape(model.weights.shape)
        return np.asarray((residual(X, y, w).T @ X + 0.3 * np.atleast_2d(w)).ravel())

    numeric = approx_fprime(model.weights.ravel(), slope, 1e-7)
    np.testing.assert_allclose(model.information, numeric, atol=1e-4)
    np.testing.assert_array_equal(model.information, model.information.T)
    np.testing.assert_allclose(model.factor @ model.factor.T, model.information, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(np.triu(model.factor, 1), 0.0)


@pytest.mark.parametrize("n_bytes", [1, 20_000, 1 << 25])
def test_the_hessian_of_many_classes_is_that_of_the_pairs(n_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = data(50, 4, 12)
    monkeypatch.setattr(labelled_loss, "_LARGEST_PRODUCT", n_bytes)
    many = laplace(X, y, 12, 0.5)
    monkeypatch.setattr(labelled_loss, "_MANY_CLASSES", 100)
    pairs = laplace(X, y, 12, 0.5)
    np.testing.assert_allclose(many.weights, pairs.weights, atol=1e-9)
    np.testing.assert_allclose(many.information, pairs.information, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(many.information, many.information.T)
    # A shift of all weights by the same vector changes the prior term alone.
    shift = many.information @ np.tile(np.eye(4), (12, 1))
    np.testing.assert_allclose(shift, 0.5 * np.tile(np.eye(4), (12, 1)), atol=1e-13)


def exact_minimum(X: Floats, y: Any, alpha: float) -> tuple[Any, Any]:
    """Minimum and Hessian of the binary model by Newton's method in 50 digits."""
    signed = mp.matrix((X * np.where(y == 1, 1.0, -1.0)[:, None]).tolist())
    w = mp.zeros(X.shape[1], 1)
    for _ in range(30):
        q = [1 / (1 + mp.exp(m)) for m in signed * w]
        spread = mp.diag([x * (1 - x) for x in q])
        hessian = signed.T * spread * signed + mp.mpf(alpha) * mp.eye(X.shape[1])
        w = w - mp.lu_solve(hessian, mp.mpf(alpha) * w - signed.T * mp.matrix(q))
    return w, hessian


def exact_kl(w1: Any, H1: Any, w2: Any, H2: Any) -> Any:
    """``KL[1||2]`` from means and precisions, by the definition."""
    product, d = H2 * H1**-1, w1 - w2
    trace = sum(product[i, i] for i in range(H1.rows))
    return (trace - H1.rows - mp.log(mp.det(H2) / mp.det(H1)) + (d.T * H2 * d)[0]) / 2


@pytest.mark.no_cover
@pytest.mark.parametrize("scale", some([0.01, 0.1, 1.0], every=3))
def test_label_by_label_against_50_digits(scale: float) -> None:
    X, y = data(41, 3, 2)
    X[-1] *= scale
    model = Laplace(3, 2, alpha=0.5)
    for i in range(40):
        model.extend(X[i : i + 1], y[i : i + 1])
    old = model.snapshot()
    new = model.extend(X[40:], y[40:]).snapshot()
    with mp.workdps(50):
        before, after = exact_minimum(X[:40], y[:40], 0.5), exact_minimum(X, y, 0.5)
        for state, (w, H) in ((old, before), (new, after)):
            np.testing.assert_allclose(state.weights, np.array([float(x) for x in w]), rtol=1e-12)
            np.testing.assert_allclose(state.information, np.array(H.tolist(), dtype=float), atol=1e-9)
        pair = divergences(old, new)
        assert abs(pair.new_old / exact_kl(*after, *before) - 1) < 1e-7
        assert abs(pair.old_new / exact_kl(*before, *after) - 1) < 1e-7


# With 27 weights 50 digits take long; the fast tests do so at both ends only.
SURPRISES = [
    pytest.param(
        n, size, scale, marks=pytest.mark.slow if size == 9 and (scale, n) not in ((1e-4, 3), (1.0, 2)) else ()
    )
    for scale in (1e-4, 1e-3, 0.01, 0.1, 1.0, 10.0)
    for size in (3, 9)
    for n in (2, 3)
]


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("n_classes", "size", "scale"), SURPRISES)
def test_the_divergence_of_two_states_against_50_digits(n_classes: int, size: int, scale: float) -> None:
    X, y = data(301, size, n_classes, seed=size)
    X[-1] *= scale
    y[-1] = (y[-1] + 1) % n_classes  # a surprise: a label that was certain would change nothing at all
    model = laplace(X[:-1], y[:-1], n_classes, 1.0)
    old = model.snapshot()
    new = model.extend(X[-1:], y[-1:]).snapshot()
    pair = divergences(old, new)
    with mp.workdps(50):
        a, b = ((mp.matrix(s.weights.tolist()), mp.matrix(s.information.tolist())) for s in (old, new))
        assert abs(pair.new_old / exact_kl(*b, *a) - 1) < 1e-9
        assert abs(pair.old_new / exact_kl(*a, *b) - 1) < 1e-9
    if scale >= 0.1:  # the general divergence works from the factors, and loses digits where they are nearly equal
        assert pair.new_old == pytest.approx(float(kl(model.posterior(), old.gaussian())), rel=1e-7)
        assert pair.old_new == pytest.approx(float(kl(old.gaussian(), model.posterior())), rel=1e-7)


@given(st.integers(0, 1000), st.integers(1, 6), st.floats(-6.0, 3.0))
def test_the_divergence_of_any_two_states(seed: int, size: int, exponent: float) -> None:
    rng = np.random.default_rng(seed)
    half = rng.normal(size=(size, size + 1))
    H = half @ half.T + np.eye(size)
    moved = H + 10.0**exponent * (half[:, :1] @ half[:, :1].T) - 0.3 * min(1.0, 10.0**exponent) * np.eye(size)
    states = []
    for matrix in (H, moved):
        matrix[:] = 0.5 * (matrix + matrix.T)
        states.append(Snapshot(rng.normal(size=size), matrix, np.asfortranarray(np.linalg.cholesky(matrix)), 1.0))
    old, new = states
    pair = divergences(old, new)
    with mp.workdps(50):
        a, b = ((mp.matrix(s.weights.tolist()), mp.matrix(s.information.tolist())) for s in (old, new))
        assert abs(pair.new_old / exact_kl(*b, *a) - 1) < 1e-9
        assert abs(pair.old_new / exact_kl(*a, *b) - 1) < 1e-9
    same = divergences(old, old)
    assert same.new_old == same.old_new == 0.0


@examples(40)
@given(st.integers(0, 1000), st.sampled_from([2, 3]), st.floats(-2.0, 2.0), st.data())
def test_any_order_and_grouping_gives_the_same_posterior(
    seed: int, n_classes: int, exponent: float, draw: st.DataObject
) -> None:
    X, y = data(30, 4, n_classes, seed)
    alpha = 10.0**exponent
    whole = laplace(X, y, n_classes, alpha)
    order = draw.draw(st.permutations(range(30)))
    cuts = sorted(draw.draw(st.sets(st.integers(1, 29), max_size=29)))
    model = (Laplace if n_classes == 2 else SoftmaxLaplace)(4, n_classes, alpha)
    for part in np.split(np.array(order), cuts):
        model.extend(X[part], y[part])
    np.testing.assert_allclose(model.weights, whole.weights, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(model.information, whole.information, rtol=1e-8, atol=1e-8 * alpha)
    features, labels = model.labelled()
    np.testing.assert_array_equal(features, X[order])
    np.testing.assert_array_equal(labels, y[order])


@CLASSES
def test_another_prior_is_the_same_as_starting_over(n_classes: int) -> None:
    X, y = data(50, 4, n_classes)
    moved, fresh = laplace(X, y, n_classes, 1.0).reweigh(0.01), laplace(X, y, n_classes, 0.01)
    np.testing.assert_allclose(moved.weights, fresh.weights, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(moved.information, fresh.information, atol=1e-8)


@CLASSES
def test_latent_mean_and_variance(n_classes: int) -> None:
    X, y = data(50, 4, n_classes)
    model = laplace(X, y, n_classes, 0.5)
    mean, variance = model.latent(X[:7])
    covariance = np.linalg.inv(model.information).reshape(*np.atleast_2d(model.weights).shape * 2)
    expected = np.array([[x @ covariance[k, :, k] @ x for k in range(len(covariance))] for x in X[:7]])
    np.testing.assert_allclose(mean, X[:7] @ model.weights.T, rtol=1e-13)
    np.testing.assert_allclose(variance, expected[:, 0] if n_classes == 2 else expected, rtol=1e-11)


@CLASSES
def test_the_posterior_is_the_gaussian_of_its_precision(n_classes: int) -> None:
    X, y = data(50, 4, n_classes)
    model = laplace(X, y, n_classes, 0.5)
    value = model.posterior()
    expected = Gaussian(model.weights.ravel(), precision=model.information)
    assert repr(value) == repr(expected)
    np.testing.assert_allclose(value.factor, expected.factor, atol=1e-12)
    assert not value.factor.flags.writeable
    assert not value.mean.flags.writeable
    copied = pickle.loads(pickle.dumps(value))
    assert kl(copied, value) == 0.0


def test_a_snapshot_stays_as_it_was_and_a_copy_goes_its_own_way() -> None:
    X, y = data(40, 4, 2)
    model = laplace(X[:20], y[:20], 2, 1.0)
    before, weights = model.snapshot(), model.weights.copy()
    twin = pickle.loads(pickle.dumps(copy.deepcopy(model)))
    model.extend(X[20:], y[20:])
    np.testing.assert_array_equal(before.weights, weights)
    assert twin.n == 20
    np.testing.assert_array_equal(twin.extend(X[20:], y[20:]).weights, model.weights)


KINDS = ["one datum", "two data", "one class", "separable", "duplicates", "constant features", "noise"]


def extreme(kind: str, n_classes: int, scale: float | str) -> tuple[Floats, Any]:
    rng = np.random.default_rng(KINDS.index(kind))
    n = {"one datum": 1, "two data": 2}.get(kind, 40)
    X, y = rng.normal(size=(n, 5)), rng.integers(0, n_classes, n)
    if kind == "one class":
        y[:] = n_classes - 1
    elif kind == "separable":
        y = np.digitize(X[:, 0], np.linspace(-0.4, 0.4, n_classes - 1))
    elif kind == "duplicates":
        X[:] = X[0]
    elif kind == "constant features":
        X[:, 1:3] = 1.0
    if scale == "mixed":
        return X * 10.0 ** np.array([-8.0, -4.0, 0.0, 4.0, 8.0]), y
    if scale == "outlier":
        X[n // 2] *= 1e8
        return X, y
    return X * float(scale), y


# The fast tests try each kind at each scale with one prior; the slow ones try them with every prior.
EXTREMES = [
    pytest.param(kind, scale, alpha, n_classes, marks=() if (i + j + 4 * n_classes) % 8 == k else pytest.mark.slow)
    for i, kind in enumerate(KINDS)
    for j, scale in enumerate((1e-8, 1.0, 1e8, "mixed", "outlier"))
    for k, alpha in enumerate((1e-8, 1e-4, 1.0, 1e8))
    for n_classes in (2, 3)
]


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("kind", "scale", "alpha", "n_classes"), EXTREMES)
def test_converges_from_anywhere(kind: str, scale: float | str, alpha: float, n_classes: int) -> None:
    converges(kind, scale, alpha, n_classes)


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("kind", "scale", "alpha", "n_classes"), EXTREMES)
def test_conjugate_gradients_converge_from_anywhere(
    kind: str, scale: float | str, alpha: float, n_classes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(newton_search, "_MANY_WEIGHTS", 1)
    converges(kind, scale, alpha, n_classes)


def converges(kind: str, scale: float | str, alpha: float, n_classes: int) -> None:
    X, y = extreme(kind, n_classes, scale)
    at_once = laplace(X, y, n_classes, alpha)
    one_by_one = (Laplace if n_classes == 2 else SoftmaxLaplace)(5, n_classes, alpha)
    old = one_by_one.snapshot()
    for i in range(len(y)):
        new = one_by_one.extend(X[i : i + 1], y[i : i + 1]).snapshot()
        pair = divergences(old, new)
        assert 0.0 <= pair.new_old < np.inf
        assert 0.0 <= pair.old_new < np.inf
        old = new
    assert np.isfinite(log_evidence(X, y, n_classes, alpha))
    for model in (at_once, one_by_one):
        remains = gradient(model, X, y)
        exact = np.linalg.norm(remains) <= max(1e-8, 16.0 * rounding(model, X, y))
        assert exact or np.abs(remains * deviations(model, X)).max() <= 1e-8
        mean, variance = model.latent(X)
        assert np.isfinite(mean).all()
        assert (variance > 0.0).all()


@CLASSES
@pytest.mark.parametrize("seed", range(4))
def test_learned_alpha_is_a_maximum_of_the_evidence(n_classes: int, seed: int) -> None:
    X, y = data(80, 4, n_classes, seed)
    alpha = learn_alpha(X, y, n_classes)
    best = log_evidence(X, y, n_classes, alpha)
    assert 1e-4 < alpha < 1e4
    for factor in (0.5, 0.9, 1.1, 2.0):
        assert log_evidence(X, y, n_classes, factor * alpha) <= best + 1e-6
    assert learn_alpha(X, y, n_classes, alpha=100.0) == pytest.approx(alpha, rel=1e-2)


def test_the_evidence_is_the_integral_where_the_posterior_is_nearly_gaussian() -> None:
    X, y = data(400, 1, 2)
    signed = X[:, 0] * np.where(y == 1, 1.0, -1.0)
    with mp.workdps(30):
        w = laplace(X, y, 2, 1.0).weights[0]
        grid = np.linspace(w - 2.0, w + 2.0, 4001)
        values = -np.logaddexp(0.0, -np.outer(grid, signed)).sum(axis=1) - 0.5 * grid**2 - 0.5 * np.log(2 * np.pi)
        integral = float(np.log(np.exp(values - values.max()).sum() * (grid[1] - grid[0])) + values.max())
    assert log_evidence(X, y, 2, 1.0) == pytest.approx(integral, abs=0.01)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_learned_alpha_stays_within_its_bounds(kind: str, n_classes: int) -> None:
    X, y = extreme(kind, n_classes, 1.0)
    assert 1e-4 <= learn_alpha(X, y, n_classes) <= 1e4


def test_wrong_arguments_are_named() -> None:
    with pytest.raises(InvalidValueError, match="alpha is the precision of the prior and must be above 0, not 0"):
        Laplace(2, 2, alpha=0.0)
    with pytest.raises(InvalidValueError, match="use SoftmaxLaplace"):
        Laplace(2, 3)
    with pytest.raises(InvalidValueError, match="n_classes must be 2 or more, not 1"):
        SoftmaxLaplace(2, 1)
    model = Laplace(2)
    with pytest.raises(InvalidValueError, match=r"features must be 1 x 2, not \(1, 3\)"):
        model.extend(np.zeros((1, 3)), np.array([0]))
    with pytest.raises(InvalidValueError, match=r"labels must be codes from 0 to 1, not \[0, 2\]"):
        model.extend(np.zeros((2, 2)), np.array([0, 2]))
    assert model.extend(np.zeros((0, 2)), np.array([], dtype=int)).n == 0


def test_two_classes_by_softmax_are_logistic_regression_with_half_the_variance() -> None:
    X, y = data(60, 4, 2)
    many, two = SoftmaxLaplace(4, 2, alpha=2.0).extend(X, y), Laplace(4, 2, alpha=1.0).extend(X, y)
    np.testing.assert_allclose(many.weights[1] - many.weights[0], two.weights, rtol=1e-10)


@pytest.mark.parametrize(("n_classes", "size", "alpha"), [(9, 3, 1.0), (26, 4, 0.01), (12, 6, 100.0), (2, 5, 1.0)])
def test_conjugate_gradients_find_what_factors_find(
    n_classes: int, size: int, alpha: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = data(70, size, n_classes)
    # Half of the classes are seen late, and some never.
    y[:40] %= max(2, n_classes // 2)
    plain, many = ((Laplace if n_classes == 2 else SoftmaxLaplace)(size, n_classes, alpha) for _ in range(2))
    for part in (slice(0, 20), *(slice(i, i + 1) for i in range(20, 60)), slice(60, 70)):
        plain.extend(X[part], y[part])
        with monkeypatch.context() as patch:
            patch.setattr(newton_search, "_MANY_WEIGHTS", 1)
            many.extend(X[part], y[part])
        scale = np.abs(plain.weights).max()
        np.testing.assert_allclose(many.weights, plain.weights, rtol=0.0, atol=1e-9 * scale)
        np.testing.assert_allclose(many.information, plain.information, rtol=1e-8, atol=1e-8 * alpha)
        np.testing.assert_allclose(many.latent(X)[1], plain.latent(X)[1], rtol=1e-8)


def test_many_weights_take_one_factor_a_label(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = data(60, 8, 50)
    model = SoftmaxLaplace(8, 50, 1.0).extend(X[:20], y[:20])
    made: list[int] = []

    def counted(matrix: Floats, **given: Any) -> Any:
        made.append(len(matrix))
        return dpotrf(matrix, **given)

    monkeypatch.setattr(newton_search, "dpotrf", counted)
    for i in range(20, 60):
        model.extend(X[i : i + 1], y[i : i + 1])
    assert made == [400] * 40
    assert np.linalg.norm(gradient(model, X, y)) <= 1e-8


@examples(30)
@given(seed=st.integers(0, 10**6), n_classes=st.integers(2, 9), size=st.integers(1, 5), n=st.integers(1, 40))
def test_the_product_with_the_hessian(seed: int, n_classes: int, size: int, n: int) -> None:
    X, y = data(n, size, n_classes, seed)
    model = laplace(X, y, n_classes, 0.3)
    vector = np.random.default_rng(seed).normal(size=model.weights.size)
    weights = np.atleast_2d(model.weights)
    sign = 2.0 * y - 1.0 if n_classes == 2 else np.ones(n)
    # For two classes, logits are those of the label that came.
    logits = (weights @ X.T) * sign
    H = model.information
    product = model._loss.hessian_product(logits)(vector) + model.alpha * vector
    np.testing.assert_allclose(product, H @ vector, rtol=1e-6, atol=1e-7)


@examples(30)
@given(
    seed=st.integers(0, 10**6),
    blocks=st.integers(1, 6),
    size=st.integers(1, 5),
    rows=st.integers(0, 9),
    tile=st.sampled_from([1, 200, 1 << 20]),
)
def test_forms_of_the_blocks_of_a_covariance(seed: int, blocks: int, size: int, rows: int, tile: int) -> None:
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(blocks * size, blocks * size))
    covariance, X = root @ root.T, rng.normal(size=(rows, size))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(laplace_module, "_LARGEST_TILE", tile)
        found = laplace_module._block_forms(np.asfortranarray(np.tril(covariance)), X)
    parts = covariance.reshape(blocks, size, blocks, size)
    expected = np.array([[x @ parts[k, :, k] @ x for k in range(blocks)] for x in X]).reshape(rows, blocks)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("n_classes", [3, 12])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_variances_of_covariance_and_of_factor_are_the_same(
    n_classes: int, scale: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = data(80, 4, n_classes)
    # Features that are nearly the same, of different scales.
    X = (X + 20.0 * X[:, :1]) * np.array([1.0, scale, 1.0, 1.0 / scale])
    model = laplace(X, y, n_classes, 0.5)
    found = model.latent(X)[1]
    monkeypatch.setattr(laplace_module, "SAFE_PIVOT", np.inf)
    np.testing.assert_allclose(found, model.latent(X)[1], rtol=1e-10)


@pytest.mark.parametrize("rows", [0, 1, 7, 1024, 1025, 2500])
def test_squared_norms_of_a_triangle(rows: int) -> None:
    rng = np.random.default_rng(rows)
    lower, X = np.tril(rng.normal(size=(6, 6))), rng.normal(size=(rows, 6))
    expected = ((X @ lower.T) ** 2).sum(axis=1)
    for points in (X, np.asfortranarray(X), np.repeat(X, 2, axis=0)[::2]):
        np.testing.assert_allclose(laplace_module._squared_norms(lower, points), expected, rtol=1e-12)
