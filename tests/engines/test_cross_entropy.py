"""Expected cross entropy against quadrature and draws."""

import numpy as np
import pytest
from scipy.integrate import quad

from suffice.engines.prediction_quality import BinaryCrossEntropy, SoftmaxCrossEntropy, expected_softplus
from suffice.models.laplace import Laplace, SoftmaxLaplace
from suffice.models.predictive import weight_draws


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
