"""Gradients of the marginal likelihood against differences, values against dense densities."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

from suffice.models.kernels import GaussianKernel
from suffice.models.regression import (
    ProcessScales,
    RidgeScales,
    learn_process,
    learn_ridge,
    log_marginal,
    ridge_evidence,
)


@given(
    seed=st.integers(0, 1000),
    lengths=st.lists(st.floats(0.3, 5.0), min_size=3, max_size=3),
    noise=st.floats(1e-3, 2.0),
    per_feature=st.booleans(),
)
def test_value_and_gradient(seed: int, lengths: list[float], noise: float, per_feature: bool) -> None:
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(15, 3)), rng.normal(size=15)
    scale = np.array(lengths if per_feature else lengths[:1])
    found = log_marginal(X, y, scale, noise)
    C = GaussianKernel(tuple(scale))(X, X) + noise * np.eye(15)
    assert found.value == pytest.approx(multivariate_normal(cov=C).logpdf(y), rel=1e-9)
    theta, step = np.log(np.append(scale, noise)), 1e-5
    for k in range(len(theta)):
        up, down = theta.copy(), theta.copy()
        up[k] += step
        down[k] -= step
        values = [log_marginal(X, y, np.exp(t[:-1]), float(np.exp(t[-1]))).value for t in (up, down)]
        assert found.gradient[k] == pytest.approx((values[0] - values[1]) / (2 * step), rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("fixed", [(False, False), (True, False), (False, True)])
def test_learned_scales_are_a_maximum(fixed: tuple[bool, bool]) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = np.sin(2 * X[:, 0]) + 0.2 * rng.normal(size=60)
    start = ProcessScales(np.array([1.0]), 0.1)
    found = learn_process(X, y, start, fixed=fixed)
    best = log_marginal(X, y, found.length_scale, found.noise)
    assert best.value >= log_marginal(X, y, start.length_scale, start.noise).value
    assert np.abs(best.gradient[[not f for f in fixed]]).max() < 1e-2
    if fixed[0]:
        assert found.length_scale == start.length_scale
    if fixed[1]:
        assert found.noise == start.noise


def test_a_bad_start_does_not_trap_the_search() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = np.sin(2 * X[:, 0]) + 0.2 * rng.normal(size=60)
    good = learn_process(X, y, ProcessScales(np.array([1.0]), 0.1), fixed=(False, False))
    bad = learn_process(X, y, ProcessScales(np.array([1e-4]), 1e-4), fixed=(False, False))
    assert bad.length_scale == pytest.approx(good.length_scale, rel=1e-2)


@given(
    seed=st.integers(0, 1000),
    shape=st.tuples(st.integers(1, 12), st.integers(1, 12)),
    scales=st.tuples(st.floats(-3.0, 6.0), st.floats(-3.0, 3.0)),
    size=st.sampled_from([1e-3, 1.0, 30.0]),
    repeated=st.booleans(),
)
def test_ridge_evidence_is_the_density_of_the_labels(
    seed: int, shape: tuple[int, int], scales: tuple[float, float], size: float, repeated: bool
) -> None:
    rng = np.random.default_rng(seed)
    X, y = size * rng.normal(size=shape), rng.normal(size=shape[0])
    if repeated:
        X[:, -1] = X[:, 0]
    alpha, beta = 10.0 ** np.array(scales)
    covariance = X @ X.T / alpha + np.eye(len(y)) / beta
    expected = multivariate_normal(cov=covariance).logpdf(y)
    # Both lose digits where the labels are much more certain in some directions than in others.
    lost = np.linalg.cond(covariance) + np.linalg.cond(beta * X.T @ X + alpha * np.eye(shape[1]))
    assert ridge_evidence(X, y, RidgeScales(alpha, beta)) == pytest.approx(expected, rel=1e-9 + 1e-14 * lost, abs=1e-9)


def test_ridge_evidence_by_hand() -> None:
    # One label, one feature: y ~ N(0, 4/2 + 1/0.5).
    found = ridge_evidence(np.array([[2.0]]), np.array([3.0]), RidgeScales(2.0, 0.5))
    assert found == pytest.approx(-0.5 * np.log(2 * np.pi * 4.0) - 9.0 / 8.0, rel=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_learned_ridge_scales_are_a_maximum(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(50, 6))
    y = X @ rng.normal(size=6) + 0.5 * rng.normal(size=50)
    alpha, beta = learn_ridge(X, y, RidgeScales(1.0, 1.0), fixed=(False, False))
    best = ridge_evidence(X, y, RidgeScales(alpha, beta))
    for a, b in ((1.05, 1.0), (0.95, 1.0), (1.0, 1.05), (1.0, 0.95)):
        assert ridge_evidence(X, y, RidgeScales(a * alpha, b * beta)) < best


def test_fixed_ridge_scales_stay() -> None:
    X = np.eye(3)
    assert learn_ridge(X, np.ones(3), RidgeScales(2.0, 3.0), fixed=(True, True)) == (2.0, 3.0)
