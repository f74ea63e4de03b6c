"""BatchBALD over shards: the batch of all candidates in one place, and how little is exchanged for it."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice.acquisition import batchbald
from suffice.acquisition.batchbald import BatchShard, batchbald_over
from suffice.engines.sharded_pool import DaskShards, LocalShards
from suffice.errors import InvalidValueError
from tests.acquisition.test_batchbald import KINDS, pool
from tests.thoroughness import examples


def shards_of(p: Any, cuts: Any) -> LocalShards:
    return LocalShards(np.split(p, cuts), None, BatchShard)


def require_same(p: Any, shards: Any, size: int, **options: Any) -> None:
    found, expected = batchbald_over(shards, size, **options), batchbald(p, size, **options)
    np.testing.assert_array_equal(found.indices, expected.indices)
    np.testing.assert_allclose(found.gains, expected.gains, rtol=0.0, atol=1e-11)
    assert found.exact == expected.exact


@examples(60)
@given(
    seed=st.integers(0, 10_000),
    n=st.integers(1, 200),
    classes=st.integers(2, 5),
    size=st.integers(1, 8),
    kind=st.sampled_from(KINDS),
    most=st.sampled_from([30, 100_000]),
    parts=st.integers(1, 6),
)
def test_the_batch_is_that_of_one_place(
    seed: int, n: int, classes: int, size: int, kind: str, most: int, parts: int
) -> None:
    p = pool(seed, n, 8, classes, kind)
    cuts: Any = np.unique(np.random.default_rng(seed).integers(1, n, size=parts - 1)) if n > 1 else []
    require_same(p, shards_of(p, cuts), min(size, n), configurations=most)


@pytest.mark.slow
def test_a_larger_batch_with_estimates() -> None:
    p = pool(1, 3000, 20, 4, "peaked")
    require_same(p, shards_of(p, [10, 1000, 1900]), 12, configurations=2000)


def test_few_shards_are_asked_and_few_gains_worked_out() -> None:
    p = pool(2, 4000, 10, 3)
    # The interesting candidates are in the last shard.
    p[:3000] = 0.9 * p[:3000].mean(axis=1, keepdims=True) + 0.1 * p[:3000]
    shards = shards_of(p, [1000, 2000, 3000])
    asked: list[tuple[str, int]] = []
    call = shards._call

    def counted(method: str, arguments: Any, which: Any) -> list[Any]:
        asked.append((method, len(which)))
        return call(method, arguments, which)

    shards._call = counted  # type: ignore[method-assign]
    found = batchbald_over(shards, 8)
    np.testing.assert_array_equal(found.indices, batchbald(p, 8).indices)
    assert all(number == 1 for method, number in asked if method in ("close", "winner"))
    assert shards.exchanges <= 3 * 8 + 2
    assert found.evaluated < 2 * len(p)
    # Back comes the pick with its probabilities, and a few numbers.
    assert shards.bytes_received == 8 * 10 * 3 * 8


class LosingShards(LocalShards):
    """Shards of which one is forgotten before every exchange, and made again."""

    def __init__(self, rows: Any) -> None:
        super().__init__(rows, None, BatchShard)
        self._parts = rows

    def _call(self, method: str, arguments: tuple[Any, ...], which: Any) -> list[Any]:
        k = self.exchanges % len(self)
        self._shards[k] = BatchShard(int(self.starts[k]), self._parts[k])
        self._repeat(lambda name, *given: getattr(self._shards[k], name)(*given))
        return super()._call(method, arguments, which)


@pytest.mark.parametrize("kind", KINDS)
def test_shards_that_are_made_again_change_no_pick(kind: str) -> None:
    p = pool(3, 300, 8, 3, kind)
    for most in (60, 100_000):
        require_same(p, LosingShards(np.split(p, [50, 200])), 6, configurations=most)


def test_bad_inputs_are_refused() -> None:
    p = pool(0, 20)
    with pytest.raises(InvalidValueError, match="as many samples and classes in every shard"):
        batchbald_over(LocalShards([p, p[:, :4]], None, BatchShard), 2)
    with pytest.raises(InvalidValueError, match="batch_size must be at most the number of candidates, 20"):
        batchbald_over(shards_of(p, [7]), 21)
    with pytest.raises(InvalidValueError, match="configurations must be 3 or more"):
        batchbald_over(shards_of(p, [7]), 2, configurations=2)
    with pytest.raises(InvalidValueError, match="every shard must hold at least one candidate"):
        shards_of(p, [0])
    with pytest.raises(InvalidValueError, match="must sum to 1"):
        shards_of(0.5 * p, [7])


@pytest.mark.filterwarnings("default")
def test_workers_of_a_cluster_choose_the_batch_of_one_place(cluster: Any) -> None:
    p = pool(4, 900, 10, 3, "mixed")
    parts = np.split(p, [400])
    shards = DaskShards(cluster, parts, [len(part) for part in parts], None, make=BatchShard)
    require_same(p, shards, 6)
