"""The error that a model expects of itself, and what more labels buy: against dense formulas, many draws, the truth."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit, softmax

from suffice.errors import InvalidValueError
from suffice.forecast import features, labels_left, value_after
from suffice.models import BayesianLogistic, BayesianRidge, GaussianProcess
from suffice.numerics import Floats
from suffice.project.project_learner import expected_error
from tests.project.following import CASES
from tests.thoroughness import examples

MANY = 40_000


def dense_process(model: GaussianProcess, X: Floats) -> tuple[Floats, Floats]:
    """Posterior covariance of the latent values at ``X``, and the leverage of each label, by plain inverses."""
    length, noise = model.prior_.kernel.length_scale[0], model.prior_.noise

    def kernel(a: Floats, b: Floats) -> Floats:
        return np.asarray(np.exp(-((a[:, None] - b[None]) ** 2).sum(axis=2) / (2.0 * length**2)))

    K = kernel(model.X_, model.X_)
    inverse = np.linalg.inv(K + noise * np.eye(len(K)))
    across = kernel(X, model.X_)
    return kernel(X, X) - across @ inverse @ across.T, np.diag(K @ inverse)


def dense_ridge(model: BayesianRidge, X: Floats) -> tuple[Floats, Floats]:
    """The same for ridge regression."""
    alpha, beta = model.prior_.alpha, model.prior_.beta
    covariance = np.linalg.inv(alpha * np.eye(X.shape[1]) + beta * model.X_.T @ model.X_)
    return X @ covariance @ X.T, beta * np.diag(model.X_ @ covariance @ model.X_.T)


def many_deviations(covariance: Floats, noise: float, freedom: float | None) -> Floats:
    rng = np.random.default_rng(77)
    off = rng.multivariate_normal(np.zeros(len(covariance)), covariance, size=MANY, method="eigh")
    squares = (off**2).mean(axis=1) + noise
    return np.asarray(np.sqrt(squares if freedom is None else squares * freedom / rng.chisquare(freedom, MANY)))


def numbers(n: int, seed: int = 0) -> tuple[Floats, Floats, Floats]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n + 30, 2))
    y = np.sin(X[:n, 0]) + 0.5 * X[:n, 1] + 0.2 * rng.normal(size=n)
    return X[:n], 100.0 + 20.0 * y, X[n:]


def agrees(found: tuple[float, float, float], draws: Floats, tolerance: float) -> None:
    expected = [draws.mean(), *np.quantile(draws, [0.05, 0.95])]
    np.testing.assert_allclose(found, expected, rtol=tolerance)


def test_a_process_that_is_given_everything_by_dense_formulas() -> None:
    X, y, items = numbers(25)
    model = GaussianProcess(length_scale=1.3, noise=0.05, normalize_y=True).fit(X, y)
    covariance, _ = dense_process(model, items)
    agrees(expected_error(model, items), y.std() * many_deviations(covariance, 0.05, None), 0.01)


@pytest.mark.parametrize("kind", ["process", "ridge"])
def test_noise_that_is_learned_makes_the_interval_that_of_student(kind: str) -> None:
    X, y, items = numbers(60)
    model: Any = GaussianProcess() if kind == "process" else BayesianRidge()
    # Hyper-parameters come from 40 labels; the other 20 are learned under them.
    model.fit(X[:40], y[:40]).observe(X[40:], y[40:])
    covariance, leverage = (dense_process if kind == "process" else dense_ridge)(model, items)
    noise = model.prior_.noise if kind == "process" else 1.0 / model.prior_.beta
    freedom = 40 * (1.0 - leverage.mean())
    assert 10.0 < freedom < 40.0
    draws = y[:40].std() * many_deviations(covariance, noise, freedom)
    agrees(expected_error(model, items), draws, 0.02)


def test_noise_is_never_wholly_unknown() -> None:
    # As many bends as labels: nothing is left to tell the noise from.
    X = np.arange(10.0)[:, None]
    y = np.array([0.0, 5.0, -3.0, 4.0, -5.0, 1.0, 3.0, -4.0, 2.0, -1.0])
    value, low, high = expected_error(GaussianProcess().fit(X, y), X + 0.5)
    assert 0.0 < low < value < high < 20.0 * value


def test_two_classes_by_many_draws() -> None:
    case = CASES["two classes"]
    y = np.array(case.labels)
    model = BayesianLogistic(alpha=1.0, classes=["no", "yes"]).fit(case.X[:30], y[:30])
    rows = np.column_stack([np.ones(50), case.X[30:]])
    # The Hessian of the loss at the most probable weights, written out.
    w = np.concatenate([model.intercept_, model.coef_[0]])
    known = np.column_stack([np.ones(30), case.X[:30]])
    r = expit(known @ w) * expit(-known @ w)
    covariance = np.linalg.inv(known.T @ (known * r[:, None]) + np.eye(4))
    w = np.random.default_rng(3).multivariate_normal(w, covariance, size=MANY)
    chosen = model.predict(case.X[30:]) == "yes"
    p = expit(w @ rows.T)
    agrees(expected_error(model, case.X[30:], calibrated=False), np.where(chosen, 1.0 - p, p).mean(axis=1), 0.05)


@pytest.mark.parametrize("n_classes", [3, 30])
def test_many_classes_by_many_draws(n_classes: int) -> None:
    rng = np.random.default_rng(4)
    X, names = rng.normal(size=(120, 2)), list(range(n_classes))
    y = (X @ rng.normal(size=(2, n_classes)) + rng.gumbel(size=(120, n_classes))).argmax(axis=1)
    model = BayesianLogistic(alpha=1.0, classes=names).fit(X[:60], y[:60])
    rows = np.column_stack([np.ones(60), X[60:]])
    mean = np.column_stack([model.intercept_, model.coef_])
    known = np.column_stack([np.ones(60), X[:60]])
    p = softmax(known @ mean.T, axis=1)
    # One block of the Hessian for each pair of classes: sum_i p_k (1[k = l] - p_l) x x'.
    curved = np.einsum("ik,ikl,ia,ib->kalb", p, np.eye(n_classes) - p[:, None], known, known)
    covariance = np.linalg.inv(curved.reshape(3 * n_classes, -1) + np.eye(3 * n_classes))
    w = rng.multivariate_normal(mean.ravel(), covariance, size=2000).reshape(2000, n_classes, 3)
    p = softmax(np.einsum("skj,ij->sik", w, rows), axis=2)
    chosen = model.predict(X[60:])
    agrees(expected_error(model, X[60:], calibrated=False), 1.0 - p[:, np.arange(60), chosen].mean(axis=1), 0.05)


def test_many_classes_in_pieces_are_as_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    case = CASES["three classes"]
    model = BayesianLogistic(alpha=1.0).fit(case.X[:40], np.array(case.labels[:40]))
    at_once = expected_error(model, case.X)
    monkeypatch.setattr("suffice.project.project_learner._HELD", 1000)
    np.testing.assert_allclose(expected_error(model, case.X), at_once, rtol=1e-12)


@pytest.mark.parametrize("name", list(CASES))
def test_more_labels_of_a_right_model_narrow_the_interval(name: str) -> None:
    case = CASES[name]
    rng = np.random.default_rng(6)
    X = rng.normal(size=(1500, case.X.shape[1]))
    widths, values = [], []
    for n in (20, 80, 320):
        if case.settings.task == "classification":
            scores = X @ np.random.default_rng(1).normal(size=(X.shape[1], len(case.settings.classes)))
            y: Any = np.array(case.settings.classes)[(scores + rng.gumbel(size=scores.shape)).argmax(axis=1)]
            model: Any = BayesianLogistic(alpha=1.0)
        else:
            y = 3.0 * X[:, 0] + rng.normal(size=1500)
            model = GaussianProcess(length_scale=4.0) if name == "process" else BayesianRidge()
        value, low, high = expected_error(model.fit(X[:n], y[:n]), X[1000:1200])
        assert low < value < high
        widths.append(high - low)
        values.append(value)
    assert widths[0] > widths[1] > widths[2]
    assert values[0] > values[2]


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_factor_of_one_changes_nothing(n_classes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    case = CASES["two classes" if n_classes == 2 else "three classes"]
    model = BayesianLogistic(alpha=1.0).fit(case.X[:40], np.array(case.labels[:40]))
    plain = expected_error(model, case.X, calibrated=False)
    assert abs(expected_error(model, case.X).value - plain.value) > 1e-4
    monkeypatch.setattr("suffice.project.project_learner.factors", lambda _, n: np.ones(n))
    np.testing.assert_allclose(expected_error(model, case.X), plain, rtol=1e-12)


def test_a_factor_changes_each_draw_as_it_changes_the_averaged_probabilities(monkeypatch: pytest.MonkeyPatch) -> None:
    case = CASES["three classes"]
    model = BayesianLogistic(alpha=1.0).fit(case.X[:40], np.array(case.labels[:40]))
    p = model.predict_proba(case.X)
    # 10^(1/4) is among the factors that are looked at.
    sharper = p**10.0**0.25
    sharper /= sharper.sum(axis=1, keepdims=True)
    change = (1.0 - sharper.max(axis=1)).mean() / (1.0 - p.max(axis=1)).mean()
    plain = np.array(expected_error(model, case.X, calibrated=False))
    monkeypatch.setattr("suffice.project.project_learner.factors", lambda _, n: np.full(n, 10.0**0.25))
    np.testing.assert_allclose(expected_error(model, case.X), change * plain, rtol=1e-9)


@pytest.mark.parametrize("calibrated", [False, True])
def test_the_interval_holds_the_true_error_of_a_right_model_as_a_rule(calibrated: bool) -> None:
    held = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X, w = rng.normal(size=(2060, 3)), rng.normal(size=3)
        p = expit(X @ w)
        y = (rng.random(2060) < p).astype(int)
        model = BayesianLogistic(alpha=1.0, fit_intercept=False, classes=[0, 1]).fit(X[:60], y[:60])
        chosen = model.predict(X[60:]) == 1
        truth = float(np.where(chosen, 1.0 - p[60:], p[60:]).mean())
        found = expected_error(model, X[60:560], calibrated=calibrated)
        held += found.low <= truth <= found.high
    # Made to hold it in 36; Laplace's approximation loses some.
    assert held >= 30


def test_the_same_model_says_the_same_again() -> None:
    case = CASES["process"]
    model = GaussianProcess().fit(case.X, case.labels)
    assert expected_error(model, case.X) == expected_error(model, case.X)


@examples(80)
@given(
    curve=st.lists(st.floats(1e-3, 10.0), min_size=4, max_size=60),
    labels=st.integers(1, 400),
)
def test_the_value_after_some_labels_is_where_the_line_of_the_forecast_is(curve: list[float], labels: int) -> None:
    counts = np.arange(20.0, 20.0 + len(curve))
    value = value_after(counts, curve, labels)
    assert value is not None
    distance = np.exp(features(counts, np.array(curve), value)[2]) - 0.05
    np.testing.assert_allclose(distance, np.log1p(labels / counts[-1]), rtol=1e-9)
    assert value <= min(curve)


def test_no_value_is_made_up() -> None:
    assert value_after([10, 11, 12], [1.0, 0.9, 0.8], 5) is None
    assert value_after([10, 11, 12, 13], [1.0, 0.9, 0.8, 0.7], 400) is None
    assert value_after([10, 11, 12, 13], [1.0, 0.9, 0.8, 0.7], 0) == pytest.approx(0.7)
    # A dip to nothing leaves nothing.
    assert value_after([10, 11, 12, 13], [1.0, 0.9, 0.0, 0.7], 5) == pytest.approx(0.0, abs=1e-300)
    with pytest.raises(InvalidValueError, match="labels must be a whole number"):
        value_after([10, 11, 12, 13], [1.0, 0.9, 0.8, 0.7], -1)
    with pytest.raises(InvalidValueError, match="rise"):
        value_after([10, 11, 11, 13], [1.0, 0.9, 0.8, 0.7], 5)
    assert labels_left([10, 11, 12, 13], [1.0, 0.9, 0.8, 0.7], 0.1) is not None
