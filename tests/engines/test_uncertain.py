"""Uncertain points found without looking at the whole pool are those that looking at it finds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice.acquisition import class_scores
from suffice.engines.class_pool import UncertainPool, smallest
from suffice.models.laplace import Laplace
from tests.thoroughness import crossed


@pytest.mark.one_in(4)
@pytest.mark.parametrize(("averaged", "copies", "seed"), crossed([True, False], [1, 3], range(4), every=4))
def test_same_picks_as_scoring_everything(averaged: bool, copies: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = np.repeat(rng.normal(size=(6000 // copies, 4)), copies, axis=0)
    y = (X @ [1.0, -1.0, 0.5, 0.0] + rng.logistic(size=len(X)) > 0).astype(int)
    posterior = Laplace(4, 2, 1.0).extend(X[:10], y[:10])
    pool, free = UncertainPool(X, averaged=averaged), np.ones(len(X), dtype=bool)
    pool.take(np.arange(10))
    free[:10] = False
    for _ in range(300):
        mean, variance = posterior.latent(X)
        u = np.abs(mean) / np.sqrt(1.0 + np.pi * variance / 8.0 if averaged else 1.0)
        u[~free] = np.inf
        pick = int(pool.nearest(posterior, 1)[0])
        assert pick == int(np.argmax(u <= u.min() + 1e-11))
        pool.take(np.array([pick]))
        free[pick] = False
        posterior.extend(X[[pick]], y[[pick]])
    assert pool.looks < 100, "the whole pool was looked at again and again"


@pytest.mark.parametrize("n", [2, 7])
def test_batches_are_the_most_uncertain(n: int) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 3))
    y = (X[:, 0] + rng.logistic(size=len(X)) > 0).astype(int)
    posterior = Laplace(3, 2, 1.0).extend(X[:10], y[:10])
    pool = UncertainPool(X, averaged=True)
    for _ in range(40):
        picks = pool.nearest(posterior, n)
        score = class_scores(posterior, X, "entropy")
        score[~pool._free] = -1.0
        assert np.sort(score[picks])[::-1] == pytest.approx(np.sort(score)[::-1][:n], rel=1e-12)
        pool.take(picks)
        posterior.extend(X[picks], y[picks])


def test_the_end_of_the_pool() -> None:
    X = np.random.default_rng(0).normal(size=(5, 2))
    posterior = Laplace(2, 2, 1.0).extend(X[:1], np.array([1]))
    pool = UncertainPool(X, averaged=True)
    assert sorted(pool.nearest(posterior, 9).tolist()) == [0, 1, 2, 3, 4]
    pool.take(np.arange(4))
    assert pool.nearest(posterior, 3).tolist() == [4]


@given(values=st.lists(st.sampled_from([0.0, 0.5, 1.0, np.inf]), min_size=1, max_size=20), n=st.integers(1, 8))
def test_smallest_is_a_sort(values: list[float], n: int) -> None:
    order = sorted((i for i, v in enumerate(values) if np.isfinite(v)), key=lambda i: (values[i], i))
    assert smallest(np.array(values), n).tolist() == order[:n]
