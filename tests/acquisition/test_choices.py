"""Choices that ask no model, and scores, against their definitions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice.acquisition import InOrder, KCentre, RandomOrder, bald, entropy, margin, require_known
from suffice.errors import InvalidValueError


@given(seed=st.integers(0, 1000), size=st.integers(1, 12), taken=st.integers(1, 10))
def test_k_centre_is_the_farthest_point_again_and_again(seed: int, size: int, taken: int) -> None:
    points = np.random.default_rng(seed).normal(size=(40, 3))
    cover = KCentre(points)
    cover.take(np.arange(taken))
    chosen = list(range(taken))
    for pick in cover.batch(size):
        distance = ((points[:, None] - points[chosen]) ** 2).sum(axis=2).min(axis=1)
        distance[chosen] = -1.0
        assert distance[pick] == pytest.approx(distance.max(), rel=1e-9)
        chosen.append(int(pick))


@given(
    n=st.integers(1, 30),
    steps=st.lists(st.tuples(st.sampled_from(["take", "skip"]), st.integers(1, 5)), max_size=10),
    in_order=st.booleans(),
)
def test_orders_never_repeat_and_never_lose(n: int, steps: list[tuple[str, int]], in_order: bool) -> None:
    order = InOrder(n) if in_order else RandomOrder(n, np.random.default_rng(0))
    seen: list[int] = []
    for what, size in steps:
        items = order.propose(size)
        assert not set(items.tolist()) & set(seen)
        getattr(order, what)(items)
        seen.extend(items.tolist())
    rest = order.batch(n)
    assert sorted([*seen, *rest.tolist()]) == list(range(n))
    if in_order:
        assert [*seen, *rest.tolist()] == list(range(n))


@given(seed=st.integers(0, 1000))
def test_scores_are_their_definitions(seed: int) -> None:
    p = np.random.default_rng(seed).dirichlet(np.ones(4), size=(10, 6))
    logs = np.log(np.maximum(p, 1e-300))
    assert entropy(p[0]) == pytest.approx(-(p[0] * logs[0]).sum(axis=1))
    top = np.sort(p[0], axis=1)
    assert margin(p[0]) == pytest.approx(1.0 - (top[:, -1] - top[:, -2]))
    mean = p.mean(axis=1)
    expected = -(mean * np.log(mean)).sum(axis=1) + (p * logs).sum(axis=2).mean(axis=1)
    assert bald(p) == pytest.approx(expected)
    assert (bald(p) >= 0.0).all()


def test_names() -> None:
    assert require_known("k-center", "classification") == "k-centre"
    with pytest.raises(InvalidValueError, match="entropy, map-entropy, margin, bald"):
        require_known("variance", "classification")
