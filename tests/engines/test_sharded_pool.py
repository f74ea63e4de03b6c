"""A pool in shards: the picks of one pool in memory; workers of a Dask cluster that are killed."""

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from suffice.engines import KernelRows, MemoryPool, VariancePool
from suffice.engines import sharded_pool as sharding
from suffice.engines.sharded_pool import (
    DaskShards,
    LocalShards,
    Shard,
    ShardedPool,
    ShardedSums,
    ShardMessage,
    ShardPrior,
    Shards,
    SumsPrior,
    SumsShard,
)
from suffice.engines.variance_pool import LargestVariance
from suffice.engines.variance_reduction import KernelSums, LargestReduction, ReductionPool
from suffice.errors import SufficeError
from suffice.models.gaussian_state import KernelState, block_of
from suffice.models.kernels import GaussianKernel

PRIOR = ShardPrior((1.3,), 0.01, 64, "float64")


def points(m: int, *, ties: bool = False) -> Any:
    rng = np.random.default_rng(0)
    return rng.integers(-3, 4, size=(m, 2)).astype(float) if ties else rng.normal(size=(m, 3))


def new_state(X: Any) -> KernelState:
    return KernelState(GaussianKernel(PRIOR.length_scale), PRIOR.noise, X.shape[1], capacity=16)


def in_memory(state: KernelState, X: Any) -> VariancePool:
    return MemoryPool(KernelRows(state, X, 64, np.float64))


def picked(
    X: Any, n: int, make: Callable[[KernelState], VariancePool], after: Callable[[int], None] | None = None
) -> Any:
    state = new_state(X)
    planner, found = LargestVariance(state, make(state), len(X)), list[int]()
    while len(found) < n:
        new = planner.propose(n - len(found))
        block = planner.block(new)
        assert block is not None
        state.extend(block, np.zeros(len(new)))
        planner.take(new)
        found += new.tolist()
        if after is not None:
            after(len(found))
    return found


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("cuts", [[], [700], [1, 2, 900], [300, 600, 1200]])
def test_the_picks_are_those_of_one_pool(ties: bool, cuts: list[int]) -> None:
    X = points(1500, ties=ties)
    n = 49 if ties else 80
    found = picked(X, n, lambda state: ShardedPool(state, LocalShards(np.split(X, cuts), PRIOR)))
    assert found == picked(X, n, lambda state: in_memory(state, X))


@pytest.mark.parametrize("n", [1, 5, 64, 400])
def test_candidates_are_those_of_one_pool(n: int) -> None:
    X, rows = points(300, ties=True), np.array([3, 77, 210])
    state = new_state(X)
    one, many = in_memory(state, X), ShardedPool(state, LocalShards(np.split(X, [100, 150]), PRIOR))
    state.extend(block_of(state, X[rows]), np.zeros(3))
    for pool in (one, many):
        pool.take(rows)
        pool.follow()
    expected, found = one.top(n), many.top(n)
    np.testing.assert_array_equal(expected.indices, found.indices)
    np.testing.assert_array_equal(expected.features, found.features)
    assert (expected.rest_index, expected.tie) == (found.rest_index, found.tie)
    assert expected.rest == pytest.approx(found.rest, abs=1e-14)


def test_batches_leave_the_shards_as_they_were() -> None:
    X = points(600)
    states = [new_state(X) for _ in range(2)]
    pools = [in_memory(states[0], X), ShardedPool(states[1], LocalShards(np.split(X, [250]), PRIOR))]
    planners = [LargestVariance(state, pool, len(X)) for state, pool in zip(states, pools, strict=True)]
    for _ in range(2):
        one, two = (planner.batch(70).tolist() for planner in planners)
        assert one == two
    assert states[1].n == 0


def test_single_precision_picks_the_same_points_here() -> None:
    X = points(1500)
    prior = PRIOR._replace(dtype="float32")
    found = picked(X, 60, lambda state: ShardedPool(state, LocalShards(np.split(X, [700]), prior), single=True))
    assert found == picked(X, 60, lambda state: in_memory(state, X))


def test_one_exchange_for_a_block_and_what_it_moves() -> None:
    X = points(1500)
    shards = LocalShards(np.split(X, [700]), PRIOR)
    state = new_state(X)
    planner = LargestVariance(state, ShardedPool(state, shards), len(X))
    blocks = 0
    while state.n < 60:
        new = planner.propose(60)
        block = planner.block(new)
        assert block is not None
        state.extend(block, np.zeros(len(new)))
        planner.take(new)
        blocks += 1
    assert shards.exchanges == blocks
    # To each of 2 shards: all labels but those of the last block once, and their rows of the factor.
    assert 2 * 8 * 3 * 30 < shards.bytes_sent < 2 * 8 * 60 * (3 + 60 + 1)
    # Back: 154 candidates of each shard with number, score and 3 features.
    assert shards.bytes_received == blocks * 2 * 154 * 8 * 5


def test_a_shard_reads_its_part_of_a_file(tmp_path: Path) -> None:
    X = points(50)
    np.save(tmp_path / "x.npy", X.astype(np.float32))
    shard = Shard(20, (str(tmp_path / "x.npy"), 20, 45), PRIOR)
    np.testing.assert_array_equal(shard.features(np.array([20, 44])), X[[20, 44]].astype(np.float32))


def reductions(X: Any, n: int, make: Callable[[KernelState], ReductionPool]) -> list[int]:
    state, found = new_state(X), list[int]()
    planner = LargestReduction(state, make(state))
    while len(found) < n:
        new = planner.propose(1)
        state.extend(block_of(state, X[new]), np.zeros(1))
        planner.take(new)
        found += new.tolist()
    return found


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("cuts", [[], [1, 2, 300], [200, 400]])
def test_the_picks_by_reduction_are_those_of_one_pool(ties: bool, cuts: list[int]) -> None:
    X = points(600, ties=ties)
    sample, n = np.arange(0, 600, 9), 30
    prior = SumsPrior(PRIOR, X[sample])
    found = reductions(X, n, lambda state: ShardedSums(state, LocalShards(np.split(X, cuts), prior, SumsShard)))
    assert found == reductions(X, n, lambda state: KernelSums(state, KernelRows(state, X, 64, float), sample, 64))


class LosingShards(LocalShards):
    """Shards of which one is forgotten before some exchanges, and made again."""

    def __init__(self, rows: Any, losses: set[int]) -> None:
        super().__init__(rows, PRIOR)
        self._parts, self._losses = rows, losses

    def _call(self, method: str, arguments: tuple[Any, ...], which: Any) -> list[Any]:
        if self.exchanges in self._losses:
            k = self.exchanges % len(self)
            self._shards[k] = Shard(int(self.starts[k]), self._parts[k], PRIOR)
            self._repeat(lambda name, *given: getattr(self._shards[k], name)(*given))
        return super()._call(method, arguments, which)


def test_a_shard_that_is_made_again_goes_on_to_the_last_digit() -> None:
    X = points(1500)
    parts = np.split(X, [500, 1000])
    answers: list[list[Any]] = []
    for shards in (LocalShards(parts, PRIOR), LosingShards(parts, {2, 3, 5, 7})):
        told: list[Any] = []
        step = shards.step

        def kept(message: ShardMessage, n: int, step: Any = step, told: list[Any] = told) -> Any:
            told.append(step(message, n))
            return told[-1]

        shards.step = kept  # type: ignore[method-assign]
        picked(X, 80, lambda state, shards=shards: ShardedPool(state, shards))  # type: ignore[misc]
        answers.append(told)
    for one, two in zip(*answers, strict=True):
        for a, b in zip(one, two, strict=True):
            for x, y in zip(a, b, strict=True):
                np.testing.assert_array_equal(x, y)


def dask_shards(client: Any, X: Any) -> DaskShards:
    parts = np.split(X, [400])
    return DaskShards(client, parts, [len(part) for part in parts], PRIOR)


def kill_a_worker(client: Any, shards: DaskShards, k: int) -> None:
    """Kill the process that holds a shard."""
    place = shards._places[k]
    os.kill(client.run(os.getpid, workers=[place])[place], signal.SIGKILL)


@pytest.mark.filterwarnings("default")
def test_killed_workers_change_no_pick(cluster: Any) -> None:
    X = points(1000)
    shards = dask_shards(cluster, X)
    moments = iter([20, 60])
    due = next(moments)

    def kill(n: int) -> None:
        nonlocal due
        if n >= due:
            kill_a_worker(cluster, shards, k=0)
            due = next(moments, 1000)

    found = picked(X, 80, lambda state: ShardedPool(state, shards), after=kill)
    assert found == picked(X, 80, lambda state: in_memory(state, X))
    assert shards.lost >= 1


@pytest.mark.filterwarnings("default")
def test_an_error_of_a_shard_is_no_loss(cluster: Any) -> None:
    shards = dask_shards(cluster, points(1000))
    with pytest.raises((IndexError, ValueError)):
        shards._call("features", (np.array([10**6]),), [0])
    assert shards.lost == 0


@pytest.mark.filterwarnings("default")
def test_a_cluster_without_workers_is_reported(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    shards = dask_shards(cluster, points(1000))
    monkeypatch.setattr(sharding, "_PATIENCE", 0.0)
    monkeypatch.setattr(DaskShards, "_workers", lambda _: [])
    with pytest.raises(SufficeError, match="no worker of the cluster is left"):
        shards._start(0)


def test_the_protocol_is_complete() -> None:
    state = new_state(points(10))
    pool: VariancePool = ShardedPool(state, LocalShards([points(10)], PRIOR))
    assert isinstance(pool._shards, Shards)  # type: ignore[attr-defined]
    assert pool.features(np.zeros(0, dtype=np.intp)).shape == (0, 0)
