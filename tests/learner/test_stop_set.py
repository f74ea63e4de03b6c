"""The stop set: drawn once by its seed, never smaller, in proportion to clusters; what a kappa on it is worth."""

import copy
import math
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from suffice import StopSet
from suffice.criteria import cohen_kappa
from suffice.errors import InvalidValueError
from suffice.learner.step_inputs import _shares
from suffice.numerics import Floats


def blobs(*sizes: int) -> Floats:
    """Clusters far apart, as large as said."""
    rng = np.random.default_rng(0)
    return np.concatenate([rng.normal(100.0 * k, 0.1, size=(size, 2)) for k, size in enumerate(sizes)])


def by_blob(stop_set: StopSet, X: Floats) -> list[int]:
    counts: list[int] = np.bincount((X[stop_set.indices, 0] / 100.0).round().astype(int)).tolist()
    return counts


class TestDrawing:
    @given(st.integers(1, 300), st.integers(1, 400), st.integers(0, 1000))
    def test_different_items_in_order_as_many_as_asked(self, pool: int, size: int, seed: int) -> None:
        found = StopSet.draw(pool, size, seed=seed)
        items = found.indices.tolist()
        assert len(found) == len(items) == min(pool, size)
        assert items == sorted(set(items))
        assert 0 <= items[0] <= items[-1] < pool
        assert found.pool_size == pool

    def test_the_seed_decides(self) -> None:
        one, same, other = (StopSet.draw(500, 50, seed=seed).indices.tolist() for seed in (3, 3, 4))
        assert one == same != other
        assert StopSet.draw(500, 50).indices.tolist() == StopSet.draw(500, 50, seed=0).indices.tolist()

    def test_the_same_on_any_machine(self) -> None:
        assert (
            StopSet.draw(1000, 6, seed=1).indices.tolist()
            == np.sort(np.random.default_rng(1).permutation(1000)[:6]).tolist()
        )

    def test_neither_the_callers_randomness_nor_the_inputs_matter(self) -> None:
        X = np.random.default_rng(0).normal(size=(200, 3))
        first = StopSet.draw(X, 20, seed=2).indices.tolist()
        np.random.default_rng(2).normal(size=5)
        assert StopSet.draw(X + 1.0, 20, seed=2).indices.tolist() == first
        assert StopSet.draw(200, 20, seed=2).indices.tolist() == first
        assert StopSet.draw(csr_matrix(X), 20, seed=2).indices.tolist() == first
        assert StopSet.draw(np.int64(200), 20, seed=np.int64(2)).indices.tolist() == first  # type: ignore[arg-type]

    def test_every_item_has_the_same_chance(self) -> None:
        counts = np.zeros(20)
        for seed in range(2000):
            counts[StopSet.draw(20, 5, seed=seed).indices] += 1
        # 2000 draws with chance 1/4: a deviation of 19.4 each.
        assert np.abs(counts - 500.0).max() < 4.0 * 19.4

    def test_2000_or_all(self) -> None:
        assert len(StopSet.draw(5000)) == 2000
        assert StopSet.draw(1234).indices.tolist() == list(range(1234))


class TestAValue:
    def test_it_cannot_be_changed(self) -> None:
        found = StopSet.draw(100, 10)
        with pytest.raises(ValueError, match="read-only"):
            found.indices[0] = 3
        with pytest.raises(AttributeError):
            found.pool_size = 3  # type: ignore[misc]

    def test_what_it_was_made_of_may_change(self) -> None:
        items = np.array([1, 2, 3])
        found = StopSet(items, 10)
        items[0] = 9
        assert found.indices.tolist() == [1, 2, 3]
        assert found.indices.dtype == np.intp

    def test_it_can_be_sent_and_copied(self) -> None:
        found = StopSet.draw(100, 10, seed=4)
        for again in (copy.deepcopy(found), pickle.loads(pickle.dumps(found))):
            assert again.indices.tolist() == found.indices.tolist()
            assert again.pool_size == 100

    def test_it_reads_well(self) -> None:
        assert repr(StopSet.draw(100, 10)) == "StopSet(10 of 100 items)"

    @pytest.mark.parametrize(
        "bad", [[], [[1, 2]], [1, 1], [-1], [10], [0.5], ["a"], 3, np.zeros(0, dtype=int)], ids=str
    )
    def test_items_that_are_none(self, bad: Any) -> None:
        with pytest.raises(InvalidValueError, match="indices must be different items of the pool, from 0 to 9"):
            StopSet(bad, 10)

    @pytest.mark.parametrize("bad", [0, -1, 2.5, "all", None, True])
    def test_a_pool_that_is_none(self, bad: Any) -> None:
        with pytest.raises(InvalidValueError, match="pool_size must be a whole number, 1 or more"):
            StopSet(np.array([0]), bad)

    def test_items_are_in_order(self) -> None:
        items = np.array([5, 2, 9])
        found = StopSet(items, 10)
        assert found.indices.tolist() == [2, 5, 9]
        assert items.tolist() == [5, 2, 9]
        with pytest.raises(ValueError, match="read-only"):
            found.indices[0] = 3


class TestArguments:
    @pytest.mark.parametrize("bad", [0, -5])
    def test_a_pool_without_items(self, bad: Any) -> None:
        with pytest.raises(InvalidValueError, match="pool must be a whole number, 1 or more"):
            StopSet.draw(bad)

    @pytest.mark.parametrize(
        "bad", ["pool", None, 3.5, True, [[1.0]], np.float64(3.0), np.zeros((0, 2)), np.array(4)], ids=repr
    )
    def test_a_pool_that_is_none(self, bad: Any) -> None:
        with pytest.raises(InvalidValueError, match="pool must be the number of items, or a table of their inputs"):
            StopSet.draw(bad)

    @pytest.mark.parametrize("bad", [0, -1, 1.5, "all", None])
    def test_sizes_and_seeds(self, bad: Any) -> None:
        with pytest.raises(InvalidValueError, match="size must be a whole number, 1 or more"):
            StopSet.draw(10, bad)
        if bad != 0:
            with pytest.raises(InvalidValueError, match="seed must be a whole number, 0 or more"):
                StopSet.draw(10, seed=bad)
        if bad is not None:
            with pytest.raises(InvalidValueError, match="clusters must be a whole number, 1 or more"):
                StopSet.draw(blobs(10), clusters=bad)

    def test_clusters_are_those_of_inputs(self) -> None:
        with pytest.raises(InvalidValueError, match="give the inputs as pool, not their number"):
            StopSet.draw(10, clusters=2)

    def test_clusters_of_sparse_inputs(self) -> None:
        X = blobs(30, 10)
        for sparse in (csr_matrix(X), csr_matrix(X).tocoo(), csr_matrix(X).tocsc()):
            assert by_blob(StopSet.draw(sparse, 8, clusters=2), X) == [6, 2]

    @pytest.mark.parametrize(
        "bad",
        [np.array([["a"], ["b"]]), np.array([[1.0], [math.nan]]), csr_matrix([[1.0], [math.inf]]), np.array([[1j]])],
        ids=["words", "nan", "sparse infinity", "complex"],
    )
    def test_clusters_of_inputs_that_are_no_numbers(self, bad: Any) -> None:
        with pytest.raises(InvalidValueError, match="clusters are those of the inputs, which must be finite numbers"):
            StopSet.draw(bad, 1, clusters=1)
        # Without clusters nothing is read of the inputs but their number.
        assert len(StopSet.draw(bad, 1)) == 1


class TestClusters:
    def test_each_in_proportion(self) -> None:
        X = blobs(600, 300, 100)
        assert by_blob(StopSet.draw(X, 100, clusters=3), X) == [60, 30, 10]
        assert by_blob(StopSet.draw(X, 10, clusters=3), X) == [6, 3, 1]

    def test_a_rare_kind_is_not_missed(self) -> None:
        X = blobs(980, 20)
        for seed in range(5):
            assert by_blob(StopSet.draw(X, 50, seed=seed, clusters=2), X) == [49, 1]
        drawn = [StopSet.draw(X, 50, seed=seed) for seed in range(40)]
        assert any(by_blob(each, X) == [50] for each in drawn)

    def test_what_rounding_leaves_goes_to_the_largest_remainders(self) -> None:
        # 7 of 100 items: 3.5, 2.1, 1.4 by share; so 3, 2, 1 and the last one to the first.
        X = blobs(50, 30, 20)
        assert by_blob(StopSet.draw(X, 7, clusters=3), X) == [4, 2, 1]
        # 2.3, 2.3, 2.4: the last.
        assert _shares(np.repeat([0, 1, 2], [33, 33, 34]), 7) == {0: 2, 1: 2, 2: 3}

    @given(st.lists(st.integers(1, 50), min_size=1, max_size=8), st.integers(1, 400))
    def test_shares_are_fair(self, sizes: list[int], wanted: int) -> None:
        groups = np.repeat(np.arange(len(sizes)), sizes)
        asked = min(wanted, len(groups))
        counts = _shares(groups, asked)
        assert sum(counts.values()) == asked
        for group, size in enumerate(sizes):
            exact = asked * size / len(groups)
            assert math.floor(exact) <= counts[group] <= math.floor(exact) + 1
            assert counts[group] <= size
        # The groups that were rounded up have remainders at least as large as the others.
        up = [asked * s / len(groups) % 1.0 for g, s in enumerate(sizes) if counts[g] > asked * s / len(groups)]
        down = [asked * s / len(groups) % 1.0 for g, s in enumerate(sizes) if counts[g] < asked * s / len(groups)]
        assert not up or not down or min(up) >= max(down) - 1e-9

    def test_the_seed_decides_here_too(self) -> None:
        X = blobs(100, 50)
        one, same, other = (StopSet.draw(X, 30, seed=seed, clusters=2).indices.tolist() for seed in (1, 1, 2))
        assert one == same != other
        assert one == sorted(set(one))

    def test_more_clusters_than_items_and_a_set_of_all(self) -> None:
        X = blobs(3, 2)
        assert StopSet.draw(X, 100, clusters=50).indices.tolist() == [0, 1, 2, 3, 4]
        assert StopSet.draw(X, 1, clusters=1).pool_size == 5

    def test_inputs_of_any_shape(self) -> None:
        X = blobs(30, 10)
        images = np.repeat(X, 8, axis=1).reshape(40, 4, 4)
        assert by_blob(StopSet.draw(images, 8, clusters=2), X) == [6, 2]


class TestTheErrorOfAKappa:
    def test_by_hand(self) -> None:
        found = StopSet.draw(101, 25)
        # Agreement .9 + .1 * .5 = .95; sqrt(.95 * .05 / 25 * 76 / 100) / .5.
        assert found.kappa_error(0.9) == pytest.approx(math.sqrt(0.95 * 0.05 / 25 * 76 / 100) / 0.5)
        # Agreement by chance 0: kappa is the agreement itself.
        assert found.kappa_error(0.9, chance=0.0) == pytest.approx(math.sqrt(0.9 * 0.1 / 25 * 0.76))

    def test_at_the_ends(self) -> None:
        found = StopSet.draw(100, 25)
        assert found.kappa_error(1.0) == 0.0
        assert found.kappa_error(-1.0) == 0.0
        assert StopSet.draw(1).kappa_error(0.5) == 0.0
        assert StopSet.draw(50).kappa_error(0.2, chance=0.3) == 0.0

    @pytest.mark.parametrize(("kappa", "chance"), [(0.99, 0.5), (0.8, 0.5), (0.5, 0.2), (0.9, 0.9)])
    def test_against_random_subsets_with_chance_known(self, kappa: float, chance: float) -> None:
        """The agreement of a random subset, turned into a kappa by the chance of the whole pool."""
        pool, size, draws = 2000, 400, 4000
        agreed = np.arange(pool) < round(pool * (kappa + (1.0 - kappa) * chance))
        rng = np.random.default_rng(0)
        found = [agreed[rng.permutation(pool)[:size]].mean() for _ in range(draws)]
        expected = StopSet.draw(pool, size).kappa_error((agreed.mean() - chance) / (1.0 - chance), chance=chance)
        # The deviation of 4000 draws is known to about 1 in 90.
        assert np.std(found) / (1.0 - chance) == pytest.approx(expected, rel=0.05)

    @pytest.mark.parametrize("changed", [10, 60, 200])
    def test_against_kappas_of_random_subsets(self, changed: int) -> None:
        """Two classes of equal share: the chance of each subset is hardly another."""
        pool, size, draws = 1000, 200, 2000
        before = np.arange(pool) % 2
        after = before.copy()
        after[:changed] = 1 - after[:changed]
        rng = np.random.default_rng(1)
        subsets = [rng.permutation(pool)[:size] for _ in range(draws)]
        found = [cohen_kappa(before[items], after[items]) for items in subsets]
        error = StopSet.draw(pool, size).kappa_error(cohen_kappa(before, after))
        assert np.std(found) == pytest.approx(error, rel=0.08)
        assert np.mean(found) == pytest.approx(cohen_kappa(before, after), abs=4.0 * error / math.sqrt(draws) + 0.002)

    @given(st.floats(0.0, 1.0), st.floats(0.0, 0.99), st.integers(2, 500))
    def test_it_falls_with_the_size(self, kappa: float, chance: float, size: int) -> None:
        small, large = (StopSet.draw(1000, s).kappa_error(kappa, chance=chance) for s in (size, size + 1))
        assert 0.0 <= large <= small + 1e-15

    @pytest.mark.parametrize("bad", [-1.1, 1.1, math.nan, "high", None])
    def test_numbers_that_are_no_kappa(self, bad: Any) -> None:
        with pytest.raises(InvalidValueError, match="kappa must be a number from -1 to 1"):
            StopSet.draw(10).kappa_error(bad)

    @pytest.mark.parametrize("bad", [-0.1, 1.0, math.nan, "even"])
    def test_numbers_that_are_no_chance(self, bad: Any) -> None:
        with pytest.raises(InvalidValueError, match="chance must be a number from 0 and below 1"):
            StopSet.draw(10).kappa_error(0.9, chance=bad)
