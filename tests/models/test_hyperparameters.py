"""Hyper-parameters from few or chosen labels: priors, left-out labels, degrees of freedom, acceptance."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import check_grad
from scipy.stats import norm

from suffice.models import BayesianRidge, GaussianProcess
from suffice.models.gaussian_state import Scaling
from suffice.models.kernels import GaussianKernel
from suffice.models.regression import (
    ProcessPrior,
    ProcessScales,
    RidgePrior,
    RidgeScales,
    ScalesPrior,
    learn_process,
    learn_ridge,
    preferred,
    process_left_out,
    ridge_left_out,
    with_freedom,
)
from suffice.numerics import Floats
from tests.thoroughness import thorough


def data(seed: int = 0, n: int = 25) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, np.sin(X[:, 0]) + 0.5 * X[:, 1] + 0.2 * rng.normal(size=n)


@given(seed=st.integers(0, 99), length=st.floats(0.3, 9.0), noise=st.floats(1e-3, 1.0))
def test_a_process_left_out_is_a_process_fitted_on_the_others(seed: int, length: float, noise: float) -> None:
    X, y = data(seed, 12)
    mean, variance = process_left_out(X, y, ProcessScales(np.array([length]), noise))
    for i in (0, 7, 11):
        others = np.arange(12) != i
        expected, deviation = GaussianProcess(length, noise).fit(X[others], y[others]).predict(X[[i]], return_std=True)
        assert mean[i] == pytest.approx(expected[0], rel=1e-6, abs=1e-8)
        assert variance[i] == pytest.approx(deviation[0] ** 2, rel=1e-6)


@given(seed=st.integers(0, 99), alpha=st.floats(0.01, 100.0), beta=st.floats(0.01, 1000.0))
def test_a_ridge_left_out_is_a_ridge_fitted_on_the_others(seed: int, alpha: float, beta: float) -> None:
    X, y = data(seed, 12)
    mean, variance = ridge_left_out(X, y, RidgeScales(alpha, beta))
    for i in (0, 7, 11):
        others = np.arange(12) != i
        model = BayesianRidge(alpha, beta, fit_intercept=False).fit(X[others], y[others])
        expected, deviation = model.predict(X[[i]], return_std=True)
        assert mean[i] == pytest.approx(expected[0], rel=1e-6, abs=1e-8)
        assert variance[i] == pytest.approx(deviation[0] ** 2, rel=1e-6)


def test_the_prior_of_the_scales_is_a_normal_density_of_the_logs() -> None:
    X, y = data(3, 200)
    prior = ScalesPrior.of_data(X / X.std(axis=0), y / np.sqrt(np.mean(y**2)))
    assert prior.length == pytest.approx(np.sqrt(2.0) + 0.5 * np.log(12.0 * 3), rel=1e-9)
    assert prior.noise == pytest.approx(-2.0, rel=1e-9)
    theta, middle = np.array([0.3, -1.0, 2.0, -3.0]), np.array([prior.length] * 3 + [prior.noise])
    deviations = [np.sqrt(3.0)] * 3 + [1.5]
    expected = norm.logpdf(theta, middle, deviations).sum() - norm.logpdf(middle, middle, deviations).sum()
    assert prior.log_density(theta)[0] == pytest.approx(expected, rel=1e-12)
    assert check_grad(lambda t: prior.log_density(t)[0], lambda t: prior.log_density(t)[1], theta) < 1e-5


@given(scale=st.floats(0.01, 100.0), unit=st.floats(0.01, 100.0))
def test_the_prior_follows_the_units_of_inputs_and_targets(scale: float, unit: float) -> None:
    X, y = data(1)
    plain, other = ScalesPrior.of_data(X, y), ScalesPrior.of_data(scale * X, unit * y)
    assert other.length - plain.length == pytest.approx(np.log(scale), abs=1e-9)
    assert other.noise - plain.noise == pytest.approx(2.0 * np.log(unit), abs=1e-9)


@pytest.mark.slow
def test_the_prior_keeps_few_labels_from_extreme_scales_and_yields_to_many() -> None:
    rng = np.random.default_rng(0)
    start = ProcessScales(np.array([2.0]), 0.1)
    noises: dict[bool, list[float]] = {True: [], False: []}
    for seed in range(20 if thorough() else 8):
        X, y = data(seed, 10)
        y = (y - y.mean()) / y.std()
        for weak in (True, False):
            prior = ScalesPrior.of_data(X, y) if weak else None
            noises[weak].append(learn_process(X, y, start, fixed=(False, False), prior=prior).noise)
    assert min(noises[True]) > 1e-3 > min(noises[False])
    X = rng.normal(size=(200, 3))
    y = np.sin(X[:, 0]) + 0.05 * rng.normal(size=200)
    with_prior = learn_process(X, y, start, fixed=(False, False), prior=ScalesPrior.of_data(X, y))
    without = learn_process(X, y, start, fixed=(False, False))
    assert with_prior.noise == pytest.approx(without.noise, rel=0.05)
    assert with_prior.length_scale == pytest.approx(without.length_scale, rel=0.05)


def test_the_noise_of_a_ridge_is_far_too_small_half_as_often() -> None:
    """Twelve labels and eight weights: often the labels suggest hardly any noise, where the variance is 0.25."""
    rng, modes, means = np.random.default_rng(0), [], []
    for _ in range(400):
        X = rng.normal(size=(12, 8))
        y = X @ rng.normal(size=8) + 0.5 * rng.normal(size=12)
        mode = learn_ridge(X, y, RidgeScales(1.0, 1.0), fixed=(False, False))
        modes.append(1.0 / mode.beta)
        means.append(1.0 / with_freedom(X, mode, fixed=(False, False)).beta)
    assert np.mean(np.array(means) < 0.1) < 0.5 * np.mean(np.array(modes) < 0.1)
    assert np.median(means) == pytest.approx(0.25, rel=0.6)


@given(seed=st.integers(0, 50), n=st.integers(2, 40))
def test_degrees_of_freedom_change_no_prediction_and_shrink_no_variance(seed: int, n: int) -> None:
    X, y = data(seed, n)
    scales = learn_ridge(X, y, RidgeScales(1.0, 1.0), fixed=(False, False))
    wide = with_freedom(X, scales, fixed=(False, False))
    assert wide.alpha / wide.beta == pytest.approx(scales.alpha / scales.beta, rel=1e-12)
    assert scales.beta / 3.0 - 1e-12 <= wide.beta < scales.beta
    assert with_freedom(X, scales, fixed=(False, True)) == scales


def process(length: float, noise: float, scaling: Scaling | None = None) -> ProcessPrior:
    return ProcessPrior(GaussianKernel((length,)), noise, scaling or Scaling(), regularized=True)


def test_random_labels_decide_between_hyper_parameters_by_their_left_out_density() -> None:
    X, y = data(0, 40)
    random = np.arange(40) % 4 == 0
    good, bad = process(2.0, 0.05), process(0.05, 0.05)

    def score(prior: ProcessPrior) -> float:
        mean, variance = prior.left_out(X, y)
        return float(norm.logpdf(y, mean, np.sqrt(variance))[random].sum()) + prior.log_density(X, y)

    assert score(good) > score(bad)
    assert preferred(bad, good, X, y, random) is good
    assert preferred(good, bad, X, y, random) is good
    # Nothing to decide by: the new ones.
    for unknown in (None, np.zeros(40, dtype=bool)):
        assert preferred(good, bad, X, y, unknown) is bad
    assert preferred(None, bad, X, y, random) is bad


def test_left_out_labels_are_in_the_units_of_the_target() -> None:
    X, y = data(2)
    for plain, scaled in (
        (process(2.0, 0.1), process(2.0, 0.1, Scaling(5.0, 3.0))),
        (RidgePrior(1.0, 4.0, Scaling()), RidgePrior(1.0, 4.0, Scaling(5.0, 3.0))),
    ):
        mean, variance = plain.left_out(X, y)
        other_mean, other_variance = scaled.left_out(X, 5.0 + 3.0 * y)
        assert other_mean == pytest.approx(5.0 + 3.0 * mean, rel=1e-9)
        assert other_variance == pytest.approx(9.0 * variance, rel=1e-9)


def test_of_many_labels_some_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = data(0, 1500)
    sizes: list[int] = []

    def left_out(prior: RidgePrior, features: Floats, labels: Floats) -> tuple[Floats, Floats]:
        sizes.append(len(labels))
        return real(prior, features, labels)

    real = RidgePrior.left_out
    monkeypatch.setattr(RidgePrior, "left_out", left_out)
    good, bad = RidgePrior(1.0, 10.0, Scaling()), RidgePrior(1e6, 10.0, Scaling())
    assert preferred(bad, good, X, y, np.arange(1500) % 5 == 0) is good
    assert preferred(good, bad, X, y, np.arange(1500) % 5 == 0) is good
    assert sizes == [1000] * 4
