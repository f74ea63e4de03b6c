"""Squared errors of a linear model on a test set, by as many rows as there are features."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice.engines.tracked_rows import FeatureRows, FollowedError, linear_error
from suffice.models.gaussian_state import WeightState, block_of
from tests.thoroughness import examples


@examples(60)
@given(
    seed=st.integers(0, 2**31 - 1),
    features=st.integers(1, 6),
    tests=st.integers(1, 40),
    rank=st.integers(1, 6),
    noise=st.sampled_from([1e-4, 0.1, 10.0]),
    shift=st.sampled_from([0.0, 30.0]),
)
def test_errors_equal_those_of_all_test_rows(
    seed: int, features: int, tests: int, rank: int, noise: float, shift: float
) -> None:
    rng = np.random.default_rng(seed)
    # Test features that may be linearly dependent, and labels that may be far from any prediction.
    X = rng.normal(size=(tests, min(rank, features))) @ rng.normal(size=(min(rank, features), features))
    y = rng.normal(size=tests) + shift
    state = WeightState(1.0, noise, features)
    followed = linear_error(state, X, y), FollowedError(FeatureRows(state, X, np.float64), y)
    for size in (1, 3, 2):
        points, labels = rng.normal(size=(size, features)), rng.normal(size=size)
        extension = state.extend(block_of(state, points), labels)
        found, expected = (each.follow(extension.white) for each in followed)
        scale = float(np.mean(y**2)) + float(np.mean(X**2))
        np.testing.assert_allclose(found.expected, expected.expected, rtol=1e-9, atol=1e-11 * scale)
        np.testing.assert_allclose(found.predictive, expected.predictive, rtol=1e-9, atol=1e-11 * scale)
        # The definition, after the last label.
        residual = y - X @ state.weights
        spread = np.einsum("ij,jk,ik->i", X, np.linalg.inv(state.factor @ state.factor.T), X)
        np.testing.assert_allclose(found.predictive[-1], np.mean(residual**2), rtol=1e-8, atol=1e-10 * scale)
        np.testing.assert_allclose(found.expected[-1], np.mean(residual**2 + spread), rtol=1e-8, atol=1e-10 * scale)


def test_cost_does_not_depend_on_the_number_of_test_rows() -> None:
    rng = np.random.default_rng(0)
    error = linear_error(WeightState(1.0, 0.1, 4), rng.normal(size=(1000, 4)), rng.normal(size=1000))
    assert error._rows.points.shape == (4, 4)


def test_jump_is_the_same_as_following() -> None:
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(50, 3)), rng.normal(size=50)
    state = WeightState(1.0, 0.1, 3)
    jumped, followed = linear_error(state, X, y), linear_error(state, X, y)
    extension = state.extend(block_of(state, rng.normal(size=(5, 3))), rng.normal(size=5))
    jumped.jump()
    followed.follow(extension.white)
    extension = state.extend(block_of(state, rng.normal(size=(2, 3))), rng.normal(size=2))
    np.testing.assert_allclose(jumped.follow(extension.white), followed.follow(extension.white), rtol=1e-12)


def test_a_gain_from_the_last_block_is_that_of_its_rows() -> None:
    rng = np.random.default_rng(2)
    state = WeightState(1.0, 0.1, 3)
    state.learn(rng.normal(size=(4, 3)), rng.normal(size=4))
    before, factor = state.n, state.factor
    points = rng.normal(size=(3, 3))
    state.extend(block_of(state, points), rng.normal(size=3))
    # A posterior that learned all labels at once knows no block, and computes the gain from the rows.
    anew = WeightState(1.0, 0.1, 3)
    anew.learn(state.features, np.zeros(state.n))
    np.testing.assert_allclose(state.gain(before, factor), anew.gain(before, factor), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("rows", [1, 3])
def test_few_test_rows_are_followed_as_they_are(rows: int) -> None:
    X = np.eye(3)[:rows]
    error = linear_error(WeightState(1.0, 0.1, 3), X, np.zeros(rows))
    assert np.array_equal(error._rows.points, X)
