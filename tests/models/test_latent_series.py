"""Means and variances under many posteriors are those under each of them."""

import numpy as np
import pytest

from suffice.models import laplace as laplace_module
from suffice.models.laplace import Laplace, Snapshot
from suffice.models.latent_series import FEWEST, LatentSeries, most_together
from suffice.numerics import Floats


def points(n: int, J: int, own: float = 1.0) -> Floats:
    """Features that differ from the first one by a share of their own."""
    X = np.random.default_rng(n).normal(size=(n, J))
    return X[:, :1] + own * X if own < 1.0 else X


def states(J: int, n: int, alpha: float, own: float = 1.0) -> list[Snapshot]:
    """The posteriors after each of some labels."""
    X, model, after = points(n, J, own), Laplace(J, 2, alpha), []
    labels = (X[:, 0] + np.sin(np.arange(n)) > 0.0).astype(int)
    for row, label in zip(X, labels, strict=True):
        after.append(model.extend(row[None], np.array([label])).snapshot())
    return after


@pytest.mark.parametrize("J", [1, 2, 15])
def test_they_are_those_of_the_dense_covariance(J: int) -> None:
    features, posteriors = points(30, J), states(J, 25, 0.7)
    for state, mean, variance in zip(posteriors, *LatentSeries(features).of(posteriors), strict=True):
        covariance = np.linalg.inv(state.information)
        np.testing.assert_allclose(mean, features @ state.weights, rtol=1e-11, atol=1e-13)
        np.testing.assert_allclose(variance, np.einsum("ij,jk,ik->i", features, covariance, features), rtol=1e-10)


@pytest.mark.parametrize(("own", "safe"), [(0.1, True), (1e-3, False), (1e-5, False)])
def test_they_keep_their_digits_if_features_are_nearly_the_same(own: float, safe: bool) -> None:
    posteriors, features = states(5, 60, 1e-6, own), points(30, 5, own)
    assert (posteriors[-1].pivot >= laplace_module.SAFE_PIVOT) == safe
    for state, mean, variance in zip(posteriors, *LatentSeries(features).of(posteriors), strict=True):
        alone = laplace_module.latent(state, 1, features)
        np.testing.assert_allclose(mean, alone[0], rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(variance, alone[1], rtol=1e-9)


def test_no_row() -> None:
    means, variances = LatentSeries(np.ones((0, 2))).of(states(2, 1, 1.0))
    assert means.shape == variances.shape == (1, 0)


def test_the_memory_is_limited() -> None:
    for shape in ((10, 3), (5000, 55), (5001, 60), (2, 600), (100_000, 10), (1, 3000)):
        features = np.broadcast_to(0.0, shape)
        most, (m, J) = most_together(features), shape
        assert most == 0 or most >= FEWEST
        assert most * 24 * J * J <= 2**26
        assert most == 0 or 8 * m * J * (J + 1) // 2 <= 2**26
    assert most_together(np.broadcast_to(0.0, (5000, 55))) == 64
