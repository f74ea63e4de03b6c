"""Variances of points while labels come: at every label those of the posterior, recomputed."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice.engines.tracked_rows import TILE, FeatureRows, FollowedVariance, KernelRows
from suffice.models.gaussian_state import KernelState, WeightState, block_of
from suffice.models.kernels import GaussianKernel
from suffice.numerics import Floats
from tests.thoroughness import examples

NOISE = 0.1


def state_of(kind: str, *, noise: float = NOISE) -> Any:
    if kind == "kernel":
        return KernelState(GaussianKernel((1.3,)), noise, 3, 4)
    return WeightState(0.7, noise, 3, 4)


def rows_of(state: Any, points: Floats, dtype: Any = np.float64) -> Any:
    return KernelRows(state, points, 4, dtype) if isinstance(state, KernelState) else FeatureRows(state, points, dtype)


def covariance(kind: str, A: Floats, B: Floats) -> Floats:
    if kind == "kernel":
        return np.asarray(np.exp(-0.5 * ((A[:, None] - B[None]) ** 2).sum(axis=-1) / 1.3**2))
    return np.asarray(A @ B.T / 0.7)


def variances(kind: str, labelled: Floats, points: Floats, noise: float = NOISE) -> Floats:
    """Of the textbook, with the inverse in full."""
    across = covariance(kind, points, labelled)
    inverse = np.linalg.inv(covariance(kind, labelled, labelled) + noise * np.eye(len(labelled)))
    own = np.array([covariance(kind, point[None], point[None])[0, 0] for point in points])
    return np.asarray(own - np.einsum("ij,jk,ik->i", across, inverse, across))


def label(state: Any, points: Floats) -> None:
    state.extend(block_of(state, points), np.zeros(len(points)))


kinds = pytest.mark.parametrize("kind", ["kernel", "weights"])


@kinds
@examples(40)
@given(seed=st.integers(0, 10**6), sizes=st.lists(st.integers(1, 5), min_size=1, max_size=6))
def test_mean_and_largest_after_every_label(kind: str, seed: int, sizes: list[int]) -> None:
    points = np.random.default_rng(seed).normal(size=(40, 3))
    order = np.random.default_rng(seed + 1).permutation(40)
    state = state_of(kind)
    followed = FollowedVariance(rows_of(state, points))
    done = 0
    for size in sizes:
        items = order[done : done + size]
        label(state, points[items])
        found = followed.follow(size, items)
        assert found.mean.shape == found.largest.shape == (size,)
        for k in range(size):
            known = order[: done + k + 1]
            expected = variances(kind, points[known], points)
            assert found.mean[k] == pytest.approx(expected.mean(), rel=1e-9)
            assert found.largest[k] == pytest.approx(np.delete(expected, known).max(), rel=1e-9)
        done += size


@kinds
def test_points_that_are_not_labelled_themselves(kind: str) -> None:
    """A stop set of its own: labels are of other items, and the largest is over all of it."""
    rng = np.random.default_rng(0)
    points, labels = rng.normal(size=(25, 3)), rng.normal(size=(12, 3))
    state = state_of(kind)
    followed = FollowedVariance(rows_of(state, points))
    for first in range(0, 12, 3):
        label(state, labels[first : first + 3])
        found = followed.follow(3)
        expected = variances(kind, labels[: first + 3], points)
        assert found.mean[-1] == pytest.approx(expected.mean(), rel=1e-9)
        assert found.largest[-1] == pytest.approx(expected.max(), rel=1e-9)


@kinds
def test_points_left_out_stay_in_the_mean(kind: str) -> None:
    points = np.random.default_rng(1).normal(size=(10, 3))
    state = state_of(kind)
    followed = FollowedVariance(rows_of(state, points))
    followed.take(np.array([0, 4]))
    label(state, points[[7, 2]])
    found = followed.follow(2, np.array([7, 2]))
    after = [variances(kind, points[known], points) for known in ([7], [7, 2])]
    assert found.mean == pytest.approx([each.mean() for each in after], rel=1e-9)
    assert found.largest == pytest.approx(
        [np.delete(after[0], [0, 4, 7]).max(), np.delete(after[1], [0, 4, 7, 2]).max()], rel=1e-9
    )


@kinds
def test_where_no_point_is_left_the_largest_is_0(kind: str) -> None:
    points = np.random.default_rng(1).normal(size=(4, 3))
    state = state_of(kind)
    followed = FollowedVariance(rows_of(state, points))
    label(state, points)
    found = followed.follow(4, np.arange(4))
    assert found.largest[-1] == 0.0
    assert (found.largest[:-1] > 0.0).all()
    assert found.mean[-1] > 0.0


@kinds
def test_a_point_that_was_left_out_and_is_labelled_after_all(kind: str) -> None:
    points = np.random.default_rng(2).normal(size=(6, 3))
    state = state_of(kind)
    followed = FollowedVariance(rows_of(state, points))
    widest = int(variances(kind, points[[0, 1]], points).argmax())
    followed.take(np.array([widest]))
    label(state, points[[0, widest]])
    found = followed.follow(2, np.array([0, widest]))
    expected = variances(kind, points[[0]], points)
    assert found.largest[0] == pytest.approx(np.delete(expected, [0, widest]).max(), rel=1e-9)


def test_a_jump_is_as_good_as_every_label() -> None:
    points = np.random.default_rng(3).normal(size=(30, 3))
    state = state_of("weights")
    followed = FollowedVariance(rows_of(state, points))
    state.learn(points[:10], np.zeros(10))
    followed.jump()
    followed.take(np.arange(10))
    label(state, points[10:12])
    found = followed.follow(2, np.array([10, 11]))
    expected = variances("weights", points[:12], points)
    assert found.mean[-1] == pytest.approx(expected.mean(), rel=1e-9)
    assert found.largest[-1] == pytest.approx(expected[12:].max(), rel=1e-9)


@kinds
def test_points_in_several_tiles(kind: str) -> None:
    rng = np.random.default_rng(4)
    points = rng.normal(size=(TILE + 300, 3))
    state = state_of(kind)
    followed = FollowedVariance(rows_of(state, points))
    items = np.array([5, TILE + 7, 40])
    label(state, points[items])
    found = followed.follow(3, items)
    expected = variances(kind, points[items], points)
    assert found.mean[-1] == pytest.approx(expected.mean(), rel=1e-9)
    assert found.largest[-1] == pytest.approx(np.delete(expected, items).max(), rel=1e-9)


@kinds
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_long_run_with_little_noise_loses_no_digits_that_matter(kind: str, dtype: Any) -> None:
    """Variances fall to a thousandth of a millionth of the prior, by subtraction."""
    rng = np.random.default_rng(5)
    points = rng.normal(size=(50, 3))
    state = state_of(kind, noise=1e-9)
    followed = FollowedVariance(rows_of(state, points, dtype))
    for turn in range(20 if kind == "weights" else 4):
        items = rng.permutation(50)[:4]
        label(state, points[items])
        found = followed.follow(4)
        assert (found.mean >= 0.0).all()
        assert (found.largest >= found.mean - 1e-15).all()
        if kind == "weights" and turn > 2:
            white = state.whiten(points)
            exact = np.einsum("ij,ij->j", white, white)
            assert found.mean[-1] == pytest.approx(exact.mean(), rel=1e-3)
            assert found.largest[-1] == pytest.approx(exact.max(), rel=1e-3)


@kinds
def test_nothing_came(kind: str) -> None:
    points = np.random.default_rng(6).normal(size=(5, 3))
    state = state_of(kind)
    followed = FollowedVariance(rows_of(state, points))
    found = followed.follow(0)
    assert found.mean.shape == found.largest.shape == (0,)
    label(state, points[:1])
    assert followed.follow(1).mean[0] == pytest.approx(variances(kind, points[:1], points).mean(), rel=1e-9)
