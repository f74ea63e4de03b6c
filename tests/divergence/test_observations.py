import math
from itertools import pairwise

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from suffice import kl
from suffice.divergence import batch, history, one_observation
from suffice.errors import InfiniteDivergenceError, InvalidValueError
from suffice.posteriors import Gaussian

Matrix = NDArray[np.float64]
POSITIVE = st.floats(1e-8, 1e8)


def dense_posteriors(phi: Matrix, y: Matrix, alpha: float, noise: float) -> Gaussian:
    precision = phi.T @ phi / noise + alpha * np.eye(phi.shape[1])
    return Gaussian(np.linalg.solve(precision, phi.T @ y / noise), precision=precision)


@given(POSITIVE, st.floats(-1e4, 1e4), POSITIVE)
def test_one_observation_equals_the_papers_formula_to_60_digits(s: float, e: float, noise: float) -> None:
    pair = one_observation(s, e, noise)
    with mp.workdps(60):
        S, E, beta = mp.mpf(s), mp.mpf(e), 1 / mp.mpf(noise)
        old_new = (beta * S - mp.log1p(beta * S) + beta * S * E**2 / (S + 1 / beta)) / 2
        new_old = (mp.log1p(beta * S) - S / (S + 1 / beta) + S * E**2 / (S + 1 / beta) ** 2) / 2
        assert abs(mp.mpf(float(pair.old_new)) - old_new) <= 1e-14 * old_new
        assert abs(mp.mpf(float(pair.new_old)) - new_old) <= 1e-14 * new_old


@pytest.mark.parametrize("seed", range(5))
def test_one_observation_equals_dense_gaussians(seed: int) -> None:
    rng = np.random.default_rng(seed)
    phi, y = rng.normal(size=(12, 4)), rng.normal(size=12)
    old, new = (dense_posteriors(phi[:n], y[:n], alpha=0.7, noise=0.2) for n in (11, 12))
    covariance = np.linalg.inv(phi[:11].T @ phi[:11] / 0.2 + 0.7 * np.eye(4))
    pair = one_observation(phi[11] @ covariance @ phi[11], y[11] - phi[11] @ old.mean, 0.2)
    assert float(pair.new_old) == pytest.approx(kl(new, old), rel=1e-9)
    assert float(pair.old_new) == pytest.approx(kl(old, new), rel=1e-9)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("size", [1, 2, 6, 9])
def test_batch_equals_dense_gaussians(seed: int, size: int) -> None:
    rng = np.random.default_rng(seed)
    phi, y = rng.normal(size=(6 + size, 4)), rng.normal(size=6 + size)
    old, new = (dense_posteriors(phi[:n], y[:n], alpha=0.7, noise=0.2) for n in (6, 6 + size))
    covariance = np.linalg.inv(phi[:6].T @ phi[:6] / 0.2 + 0.7 * np.eye(4))
    points = phi[6:]
    pair = batch(points @ covariance @ points.T, y[6:] - points @ old.mean, 0.2)
    assert float(pair.new_old) == pytest.approx(kl(new, old), rel=1e-8)
    assert float(pair.old_new) == pytest.approx(kl(old, new), rel=1e-8)


@pytest.mark.parametrize("seed", range(5))
def test_batch_equals_the_trace_and_determinant_form(seed: int) -> None:
    rng = np.random.default_rng(seed)
    half, e, noise = rng.normal(size=(5, 5)), rng.normal(size=5), 0.4
    S = half @ half.T
    C = S + noise * np.eye(5)
    m, after = S @ np.linalg.solve(C, e), S - S @ np.linalg.solve(C, S)
    quadratic, log_ratio = e @ np.linalg.solve(C, e), np.linalg.slogdet(C / noise)[1]
    pair = batch(S, e, noise)
    assert float(pair.old_new) == pytest.approx(0.5 * ((e @ e + np.trace(S)) / noise - log_ratio - quadratic))
    assert float(pair.new_old) == pytest.approx(
        0.5 * (quadratic + log_ratio - ((e - m) @ (e - m) + np.trace(after)) / noise)
    )


def test_batch_of_one_is_one_observation_and_of_none_is_nothing() -> None:
    single, several = one_observation(0.5, 1.0, 0.25), batch([[0.5]], [1.0], 0.25)
    assert several.new_old == pytest.approx(single.new_old)
    assert several.old_new == pytest.approx(single.old_new)
    assert tuple(map(float, batch(np.zeros((0, 0)), [], 0.25))) == (0.0, 0.0)


def test_batch_takes_a_noise_for_each_label() -> None:
    different = batch(np.diag([0.5, 0.2]), [1.0, -1.0], [0.25, 0.5])
    apart = [one_observation(0.5, 1.0, 0.25), one_observation(0.2, -1.0, 0.5)]
    assert different.new_old == pytest.approx(sum(float(pair.new_old) for pair in apart))


def test_history_equals_dense_posteriors_of_every_prefix() -> None:
    rng = np.random.default_rng(0)
    phi, y = rng.normal(size=(15, 4)), rng.normal(size=15)
    phi[7] = phi[3]  # a duplicate point
    pair = history(phi @ phi.T / 0.7, y, 0.2)
    posteriors = [dense_posteriors(phi[:n], y[:n], alpha=0.7, noise=0.2) for n in range(16)]
    assert pair.new_old == pytest.approx([kl(b, a) for a, b in pairwise(posteriors)], rel=1e-8)
    assert pair.old_new == pytest.approx([kl(a, b) for a, b in pairwise(posteriors)], rel=1e-8)


@given(st.floats(0, 1e6), st.floats(-1e3, 1e3), st.floats(1e-3, 1e3))
def test_nothing_to_learn_is_exactly_zero_and_nothing_is_negative(s: float, e: float, noise: float) -> None:
    assert tuple(map(float, one_observation(0.0, e, noise))) == (0.0, 0.0)
    pair = one_observation(s, e, noise)
    assert pair.new_old >= 0.0
    assert pair.old_new >= 0.0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((-0.1, 0.0, 1.0), "latent_variance is a variance"),
        ((0.1, 0.0, 0.0), "noise is a variance"),
        ((0.1, math.nan, 1.0), "residual must be finite"),
    ],
)
def test_bad_numbers_are_named(arguments: tuple[float, float, float], words: str) -> None:
    with pytest.raises(InvalidValueError, match=words):
        one_observation(*arguments)


def test_bad_shapes_are_named() -> None:
    with pytest.raises(InvalidValueError, match=r"covariance has shape \(2, 2\), residual \(3,\)"):
        batch(np.eye(2), np.zeros(3), 1.0)
    with pytest.raises(InvalidValueError, match="negative eigenvalue"):
        batch(-np.eye(2), np.zeros(2), 1.0)
    with pytest.raises(InvalidValueError, match="y"):
        history(np.eye(2), np.zeros(3), 1.0)


@pytest.mark.parametrize("ratio", [1e3, 1e9, 1e15, 1e18])
def test_history_keeps_its_digits_when_the_noise_is_large(ratio: float) -> None:
    half = np.random.default_rng(0).normal(size=(4, 4))
    K, y = half @ half.T, np.array([1.0, -2.0, 0.5, 3.0]) * np.sqrt(ratio)
    got = history(K, y, ratio)
    with mp.workdps(80):
        lower = mp.cholesky(mp.matrix(K.tolist()) + mp.mpf(ratio) * mp.eye(4))
        white = mp.lu_solve(lower, mp.matrix(y.tolist()))
        for i in range(4):
            u, e = lower[i, i] ** 2 / mp.mpf(ratio) - 1, white[i] * lower[i, i]
            exact = (u - mp.log1p(u) + u / (1 + u) * e**2 / mp.mpf(ratio)) / 2
            assert abs(mp.mpf(float(got.old_new[i])) - exact) <= 1e-12 * exact


def test_history_of_nothing_is_empty_and_of_an_asymmetric_matrix_an_error() -> None:
    assert history(np.zeros((0, 0)), [], 0.1).new_old.shape == (0,)
    for function in (history, batch):
        with pytest.raises(InvalidValueError, match="covariance is not symmetric"):
            function([[1.0, 0.9], [0.0, 1.0]], [1.0, 1.0], 0.1)


def test_an_overflow_is_an_error_not_a_nan() -> None:
    with pytest.raises(InfiniteDivergenceError, match="so large beside noise"):
        one_observation(1e300, 1.0, 1e-300)
