"""A classifier's pool in shards: the picks of one pool in memory, including ties; workers that are killed."""

import os
import signal
from functools import partial
from typing import Any

import numpy as np
import pytest

from suffice.acquisition import class_scores
from suffice.engines.class_pool import ClassPool, ScoredPool, UncertainPool, leading, smallest
from suffice.engines.sharded_pool import ClassPrior, ClassShard, DaskShards, LocalShards, ShardedClasses
from suffice.learner import ActiveLearner
from suffice.models.laplace import laplace
from suffice.models.logistic import BayesianLogistic

EVEN = {"entropy": True, "margin": True, "map-entropy": False}
NAMES = pytest.mark.parametrize("name", ["entropy", "margin", "map-entropy", "bald"])


def points(m: int, *, ties: bool = False) -> Any:
    rng = np.random.default_rng(0)
    X = rng.integers(-2, 3, size=(m, 2)).astype(float) if ties else rng.normal(size=(m, 3))
    return np.column_stack([X, np.ones(m)])


def prior(name: str) -> ClassPrior:
    return ClassPrior(partial(class_scores, name=name), EVEN.get(name))


def in_memory(X: Any, name: str, classes: int) -> ClassPool:
    if classes == 2 and name in EVEN:
        return UncertainPool(X, averaged=EVEN[name])
    return ScoredPool(X, prior(name).score)


def sharded(X: Any, name: str, cuts: list[int]) -> ShardedClasses:
    return ShardedClasses(LocalShards(np.split(X, cuts), prior(name), ClassShard), prior(name))


def picked(X: Any, classes: int, pool: ClassPool, sizes: Any, after: Any = None) -> list[int]:
    state, rng = laplace(X[:8], np.arange(8) % classes, classes, 0.5), np.random.default_rng(7)
    found: list[int] = []
    pool.take(np.arange(8))
    for n in sizes:
        new = pool.nearest(state, n)
        pool.take(new)
        state.extend(X[new], rng.integers(classes, size=len(new)))
        found += new.tolist()
        if after is not None:
            after(len(found))
    return found


@pytest.mark.one_in(5)
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("cuts", [[], [5, 9, 700], [300, 600, 1200]])
@pytest.mark.parametrize("classes", [2, 3])
@NAMES
def test_the_picks_are_those_of_one_pool(name: str, classes: int, cuts: list[int], ties: bool) -> None:
    X, sizes = points(1500, ties=ties), [1] * 12 + [5, 1, 30, 1]
    assert picked(X, classes, sharded(X, name, cuts), sizes) == picked(X, classes, in_memory(X, name, classes), sizes)


@NAMES
def test_to_the_last_point(name: str) -> None:
    X = points(60, ties=True)
    found = picked(X, 3, sharded(X, name, [4, 20]), [10, 100, 3])
    assert found == picked(X, 3, in_memory(X, name, 3), [10, 100, 3])
    assert sorted(found) == list(range(8, 60))


def test_parts_have_the_ties_of_the_whole() -> None:
    rng = np.random.default_rng(0)
    for _ in range(300):
        # Distances of less than a tie, so that what is equal depends on the smallest value of all.
        values: Any = 0.3 + 4e-12 * rng.integers(0, 8, size=30) + (rng.random(30) < 0.3)
        parts = np.split(np.arange(30), np.sort(rng.integers(0, 31, size=3)))
        for n in (1, 2, 5):
            kept = np.sort(np.concatenate([part[leading(values[part], n)] for part in parts]))
            np.testing.assert_array_equal(kept[smallest(values[kept], n)], smallest(values, n))


def test_one_exchange_for_a_pick_and_what_it_moves() -> None:
    X = points(1500)
    for name, answered in (("entropy", 1), ("bald", 9)):
        pool = sharded(X, name, [700])
        picked(X, 2, pool, [1] * 20)
        assert pool.shards.exchanges == 20
        assert pool.shards.bytes_received == 20 * 2 * 8 * 2 * answered
        # To each of 2 shards: 4 weights, their factor, and the points to leave out.
        assert pool.shards.bytes_sent == 2 * 8 * (20 * (4 + 16) + 8 + 19)


def test_many_ties_take_a_second_exchange() -> None:
    X = np.repeat(points(30), 40, axis=0)
    pool = sharded(X, "bald", [500])
    assert picked(X, 3, pool, [1] * 5) == picked(X, 3, in_memory(X, "bald", 3), [1] * 5)
    assert pool.shards.exchanges == 10


class LosingShards(LocalShards):
    """Shards of which one is forgotten before every exchange, and made again."""

    def _call(self, method: str, arguments: tuple[Any, ...], which: Any) -> list[Any]:
        k = self.exchanges % len(self)
        old = self._shards[k]
        self._shards[k] = ClassShard(int(self.starts[k]), old._points, old._prior)
        self._repeat(lambda name, *given: getattr(self._shards[k], name)(*given))
        return super()._call(method, arguments, which)


@NAMES
def test_shards_that_are_made_again_change_no_pick(name: str) -> None:
    X, sizes = points(400, ties=True), [1] * 15
    pool = ShardedClasses(LosingShards(np.split(X, [100, 250]), prior(name), ClassShard), prior(name))
    assert picked(X, 2, pool, sizes) == picked(X, 2, in_memory(X, name, 2), sizes)


@pytest.mark.filterwarnings("default")
def test_killed_workers_change_no_pick(cluster: Any) -> None:
    X, sizes = points(1000), [1] * 20
    parts = np.split(X, [400])
    shards = DaskShards(cluster, parts, [len(part) for part in parts], prior("bald"), make=ClassShard)

    def kill(n: int) -> None:
        if n == 9:
            place = shards._places[0]
            os.kill(cluster.run(os.getpid, workers=[place])[place], signal.SIGKILL)

    found = picked(X, 3, ShardedClasses(shards, prior("bald")), sizes, kill)
    assert found == picked(X, 3, in_memory(X, "bald", 3), sizes)
    assert shards.lost >= 1


@pytest.mark.parametrize(("classes", "acquisition"), [(2, "entropy"), (3, "bald")])
@pytest.mark.filterwarnings("default")
def test_a_learner_on_workers_is_one_in_memory(cluster: Any, classes: int, acquisition: str) -> None:
    X = points(300)[:, :3]
    y = np.digitize(X[:, 0] + 0.3 * X[:, 1], np.linspace(-0.5, 0.5, classes - 1))
    model = BayesianLogistic(classes=list(range(classes)))
    options: dict[str, Any] = {"acquisition": acquisition, "seed": 3, "initial": 9}
    learners = [ActiveLearner(model, X, **options, client=client) for client in (None, cluster)]
    for size in (9, 1, 1, 4, 1, 5):
        items = [learner.ask(size) for learner in learners]
        np.testing.assert_array_equal(items[0], items[1])
        for learner in learners:
            learner.tell(items[0], y[items[0]])
