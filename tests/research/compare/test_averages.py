"""Averages in which data sets weigh the same, and means of runs drawn again."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice.errors import InvalidValueError
from suffice_research.compare.scoring import (
    equal_weights,
    interval,
    mean_by_group,
    resampled_means,
    weighted_quantile,
)

GROUPS = st.lists(st.sampled_from("abc"), min_size=1, max_size=12)
SEEDS = st.integers(0, 10**6)


@given(GROUPS)
def test_weights_add_up_and_groups_weigh_the_same(groups: list[str]) -> None:
    weights = equal_weights(groups)
    assert weights.sum() == pytest.approx(1.0)
    for group in set(groups):
        mine = [weight for weight, each in zip(weights, groups, strict=True) if each == group]
        assert sum(mine) == pytest.approx(1.0 / len(set(groups)))
        assert len(set(mine)) == 1


@given(st.lists(st.floats(-5.0, 5.0), min_size=1, max_size=20))
def test_with_equal_weights_the_median_is_the_usual_one(values: list[float]) -> None:
    assert weighted_quantile(values, np.ones(len(values)), 0.5) == pytest.approx(np.median(values))


@given(
    st.lists(st.tuples(st.floats(-5.0, 5.0), st.integers(1, 6)), min_size=1, max_size=8), st.sampled_from([0.5, 0.9])
)
def test_a_weight_is_as_many_values(pairs: list[tuple[float, int]], share: float) -> None:
    values, times = zip(*pairs, strict=True)
    repeated = np.repeat(values, times)
    expected = weighted_quantile(repeated, np.ones(len(repeated)), share)
    assert weighted_quantile(values, times, share) == pytest.approx(expected)


def test_the_90_percent_point_by_hand() -> None:
    values = np.arange(1.0, 21.0)
    # 18 of 20 are exactly 90 %: half way to the next.
    assert weighted_quantile(values, np.ones(20), 0.9) == 18.5
    # Half of the weight is on the largest.
    assert weighted_quantile([1.0, 2.0, 30.0], [0.25, 0.25, 0.5], 0.9) == 30.0


def plain_mean(values: Any, groups: list[str]) -> float:
    """Mean over the groups of the means of what is there."""
    there = [
        [value for value, each in zip(values, groups, strict=True) if each == group and not np.isnan(value)]
        for group in dict.fromkeys(groups)
    ]
    means = [np.mean(part) for part in there if part]
    return float(np.mean(means)) if means else np.nan


@given(GROUPS, SEEDS)
def test_means_are_those_of_a_plain_loop(groups: list[str], seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = np.where(rng.random((3, len(groups))) < 0.2, np.nan, rng.normal(size=(3, len(groups))))
    expected = [plain_mean(row, groups) for row in table]
    assert mean_by_group(table, groups) == pytest.approx(expected, nan_ok=True)


def plain_resampling(values: Any, data: list[str], seeds: list[int], resamples: int) -> list[float]:
    """The same drawing, one value at a time."""
    rng = np.random.default_rng(0)
    names, means = list(dict.fromkeys(data)), []
    within = {n: list(dict.fromkeys(s for d, s in zip(data, seeds, strict=True) if d == n)) for n in names}
    for _ in range(resamples):
        drawn = [names[k] for k in rng.integers(len(names), size=len(names))]
        of_sets = []
        for name in drawn:
            chosen = [within[name][k] for k in rng.integers(len(within[name]), size=len(within[name]))]
            runs = [
                value
                for seed in chosen
                for value, d, s in zip(values, data, seeds, strict=True)
                if (d, s) == (name, seed) and not np.isnan(value)
            ]
            if runs:
                of_sets.append(np.mean(runs))
        means.append(float(np.mean(of_sets)) if of_sets else np.nan)
    return means


@given(SEEDS)
def test_drawing_again_is_that_of_a_plain_loop(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 15))
    data = [str(each) for each in rng.choice(list("abc"), size)]
    seeds = [int(each) for each in rng.integers(4, size=size)]
    table = np.where(rng.random((2, size)) < 0.2, np.nan, rng.normal(size=(2, size)))
    found = resampled_means(table, data, seeds, resamples=5)
    for row, means in zip(table, found, strict=True):
        assert means == pytest.approx(plain_resampling(row, data, seeds, 5), nan_ok=True)


def test_rows_are_paired() -> None:
    """Two rules that always differ by one differ by one in every drawing, however much each of them varies."""
    rng = np.random.default_rng(1)
    values = rng.normal(size=12)
    data, seeds = [f"set {k % 3}" for k in range(12)], list(range(12))
    found = resampled_means([values, values + 1.0], data, seeds, resamples=50)
    assert found[1] - found[0] == pytest.approx(np.ones(50))
    assert found[0].std() > 0.05
    again = resampled_means([values, values + 1.0], data, seeds, resamples=50)
    assert found.tolist() == again.tolist()
    assert resampled_means([values], data, seeds, resamples=50, seed=1).tolist() != found[:1].tolist()


def test_runs_of_one_seed_are_drawn_together() -> None:
    """Of one data set with one seed there is nothing to draw."""
    found = resampled_means([[1.0, 2.0, 6.0]], ["a"] * 3, [7] * 3, resamples=9)
    assert found.tolist() == [[3.0] * 9]


def test_an_interval_covers_what_was_drawn() -> None:
    drawn = np.concatenate([np.arange(1001.0), [np.nan]])
    assert interval(drawn) == pytest.approx([50.0, 950.0])
    assert interval(np.array([np.nan])) is None


def test_at_least_one_drawing() -> None:
    with pytest.raises(InvalidValueError, match="resamples must be a whole number, 1 or more"):
        resampled_means([[1.0]], ["a"], [0], resamples=0)
