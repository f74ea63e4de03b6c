"""Expected cross entropy against quadrature and draws."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad

from suffice.models import predictive
from suffice.models.laplace import Laplace, SoftmaxLaplace
from suffice.models.predictive import (
    AveragedPredictions,
    BinaryCrossEntropy,
    SoftmaxCrossEntropy,
    expected_softplus,
    hermite,
    moderated_logits,
    weight_draws,
)
from tests.thoroughness import examples


@pytest.mark.parametrize("variance", [0.0, 1e-6, 0.05, 0.15, 0.16, 0.3, 0.31, 0.5, 1.0, 1.9, 2.1, 10.0, 1e3, 1e6])
def test_expected_softplus(variance: float) -> None:
    deviation = np.sqrt(variance)
    for mean in (-30.0, -5.0, -1.0, 0.0, 0.3, 2.0, 7.0, 300.0):

        def integrand(z: float, mean: float = mean) -> float:
            return float(np.logaddexp(0.0, mean + deviation * z) * np.exp(-0.5 * z * z) / np.sqrt(2 * np.pi))

        kink = float(np.clip(-mean / deviation, -12, 12)) if deviation else 0.0
        truth = quad(integrand, -12, 12, points=[kink], limit=400, epsabs=1e-12, epsrel=1e-12)[0]
        found = expected_softplus(np.array([mean]), np.array([variance]))[0]
        assert found == pytest.approx(truth, abs=6e-8)


def test_binary_error_is_the_average_over_draws() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = (X[:, 0] > 0).astype(int)
    posterior = Laplace(3, 2, 1.0).extend(X[:15], y[:15])
    draws = posterior.posterior().sample(40_000, rng)
    logits = draws @ X.T
    truth = np.logaddexp(0.0, np.where(y == 1, -logits, logits)).mean()
    assert BinaryCrossEntropy(X, y).error(posterior) == pytest.approx(truth, rel=6e-3)


def test_single_precision_of_the_variance_is_enough() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 20))
    y = (X[:, 0] > 0).astype(int)
    posterior = Laplace(20, 2, 1.0).extend(X[:100], y[:100])
    mean, variance = posterior.latent(X)
    truth = (expected_softplus(mean, variance).sum() - mean[y == 1].sum()) / 500
    assert BinaryCrossEntropy(X, y).error(posterior) == pytest.approx(truth, rel=1e-6)


def test_many_classes_by_draws() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = rng.integers(0, 3, size=60)
    posterior = SoftmaxLaplace(2, 3, 1.0).extend(X, y)
    draws = posterior.posterior().sample(50_000, rng).reshape(-1, 3, 2)
    logits = np.einsum("skj,ij->sik", draws, X)
    truth = np.mean(np.logaddexp.reduce(logits, axis=2) - logits[:, np.arange(60), y])
    assert SoftmaxCrossEntropy(X, y).error(posterior) == pytest.approx(truth, rel=2e-2)
    assert weight_draws(posterior, 8).mean(axis=0) == pytest.approx(posterior.weights)


@examples(50)
@given(st.lists(st.tuples(st.floats(-40.0, 40.0), st.floats(0.0, 2.0)), min_size=1, max_size=9))
def test_interpolation_is_quadrature(points: list[tuple[float, float]]) -> None:
    mean, variance = np.array(points).T
    nodes, weights = hermite(48)
    expected = np.logaddexp(0.0, mean[:, None] + np.sqrt(variance)[:, None] * nodes) @ weights
    np.testing.assert_allclose(expected_softplus(mean, variance), expected, rtol=0.0, atol=5e-8)
    single = expected_softplus(mean.astype(np.float32), variance.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, expected, rtol=3e-7, atol=1e-6)


def test_interpolation_at_the_ends_of_cells() -> None:
    # The nearest node is furthest from points in the middle between nodes.
    mean, variance = (grid.ravel() for grid in np.meshgrid(np.arange(0.0625, 20.0, 0.125), np.arange(1, 128, 2) / 64))
    nodes, weights = hermite(48)
    expected = np.logaddexp(0.0, mean[:, None] + np.sqrt(variance)[:, None] * nodes) @ weights
    for sign in (-1.0, 1.0):
        # log(1 + e^f) - log(1 + e^-f) = f.
        found = expected_softplus(sign * mean, variance) - (0.0 if sign > 0.0 else -mean)
        np.testing.assert_allclose(found, expected, rtol=0.0, atol=5e-8)


@examples(30)
@given(st.lists(st.tuples(st.floats(-50.0, 50.0), st.floats(0.0, 1e4)), max_size=20))
def test_every_point_by_the_rule_of_its_own_variance(points: list[tuple[float, float]]) -> None:
    mean, variance = np.array(points).reshape(-1, 2).T
    alone = [expected_softplus(mean[i : i + 1], variance[i : i + 1])[0] for i in range(len(mean))]
    np.testing.assert_allclose(expected_softplus(mean, variance), alone, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("held", [1, 5000, 1 << 20])
def test_all_draws_at_once_are_one_after_the_other(held: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 4)), rng.integers(0, 5, size=60)
    posterior = SoftmaxLaplace(4, 5, 1.0).extend(X, y)
    losses = []
    for weights in weight_draws(posterior, 32):
        logits = X @ weights.T
        losses.append(np.mean(np.logaddexp.reduce(logits, axis=1) - logits[np.arange(60), y]))
    monkeypatch.setattr(predictive, "_HELD", held)
    assert SoftmaxCrossEntropy(X, y).error(posterior) == pytest.approx(np.mean(losses), rel=1e-6)


def test_losses_from_logits_are_those_of_the_posterior() -> None:
    rng = np.random.default_rng(0)
    X, y = 100.0 * rng.normal(size=(40, 3)), rng.integers(0, 2, size=40)
    posterior = Laplace(3, 2, 1e-6).extend(X[:20], y[:20])
    predictions = AveragedPredictions(X, y, classes=2)
    logits = moderated_logits(posterior, X)
    expected = np.logaddexp(0.0, np.where(y == 1, -logits, logits)).mean()
    assert predictions.losses(posterior) == predictions.losses_of(logits)
    assert predictions.losses(posterior).log_loss == pytest.approx(expected, rel=1e-14)
    assert BinaryCrossEntropy(X, y).error(posterior) == BinaryCrossEntropy(X, y).error_of(*posterior.latent(X))


@pytest.mark.parametrize("classes", [1, 2])
@pytest.mark.parametrize("unknown", [0, 3])
def test_losses_under_several_posteriors_are_those_under_each(classes: int, unknown: int) -> None:
    rng = np.random.default_rng(0)
    mean, variance = 3.0 * rng.normal(size=(5, 30)), rng.uniform(0.0, 4.0, size=(5, 30))
    codes = rng.integers(0, classes, size=30)
    expected = BinaryCrossEntropy(np.zeros((30, 1)), codes)
    alone = [expected.error_of(*row) for row in zip(mean, variance, strict=True)]
    np.testing.assert_allclose(expected.errors_of(mean, variance), alone, rtol=1e-6)
    averaged = AveragedPredictions(np.zeros((30, 1)), codes, classes=classes, unknown=unknown)
    for row, losses in zip(mean, averaged.losses_of_two(mean), strict=True):
        assert losses.log_loss == pytest.approx(np.logaddexp(0.0, np.where(codes == 1, -row, row)).mean(), rel=1e-12)
        wrong = np.count_nonzero((row > 0.0) != (codes == 1)) if classes > 1 else 0
        assert losses.wrong_share == pytest.approx((wrong + unknown) / (30 + unknown))
        assert losses == averaged.losses_of(row)
