"""Plans against brute force over all sizes, and the figures of the documentation."""

import math
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from suffice.checks import (
    attainable_bound,
    lower_bound,
    plan,
    plan_recall,
    planner,
    spent_alpha,
    upper_bound,
)
from suffice.checks.hypergeometric import count_quantile, probability_at_most
from suffice.checks.planner import Items
from suffice.errors import InvalidValueError
from tests.checks import exact
from tests.thoroughness import examples


def succeeding(target: Fraction, wrong_items: int, pool: int, alpha: float, items: Items) -> list[Fraction]:
    """The probability with which a check of each size below ``pool`` succeeds."""
    result = []
    for checked in range(pool):
        good = Fraction(0)
        for wrong in range(checked + 1):
            bound = exact.upper(wrong, checked, pool, alpha)
            share = Fraction(bound, pool) if items == "all" else Fraction(bound - wrong, pool - checked)
            good += exact.pmf(pool, wrong_items, checked, wrong) if share <= target else 0
        result.append(good)
    return result


@given(st.data())
@examples(120)
def test_plans_are_those_of_brute_force(data: st.DataObject) -> None:
    pool = data.draw(st.integers(1, 22))
    target, expected = (data.draw(st.integers(0, 20)) / 20 for _ in range(2))
    alpha, wanted = data.draw(st.sampled_from([0.05, 0.2, 0.4])), data.draw(st.sampled_from([0.5, 0.8, 0.95]))
    items: Items = data.draw(st.sampled_from(["all", "remaining"]))
    planned = plan(target, expected, pool, alpha=alpha, probability=wanted, items=items)
    wrong_items = math.ceil(Fraction(str(expected)) * pool)
    succeeds = succeeding(Fraction(str(target)), wrong_items, pool, alpha, items)
    likely = [float(good) for good in succeeds]
    reached = [good >= Fraction(wanted) for good in succeeds]
    if not any(reached):
        assert (planned.labels, planned.success) == (None, None)
    else:
        assert planned.labels == reached.index(True)
        assert planned.success == pytest.approx(likely[planned.labels], abs=1e-12)


def quick(target: float, expected: float, pool: int, alpha: float, items: Items) -> NDArray[np.float64]:
    """The probability of success of a check of each size below ``pool``, in double precision by SciPy."""
    wrong_items = math.ceil(Fraction(str(expected)) * pool)
    share = Fraction(str(target))
    found = np.zeros(pool)
    counts = np.arange(wrong_items + 1)
    for checked in range(pool):
        limit = math.floor(share * (pool if items == "all" else pool - checked))
        most = np.full(len(counts), limit) if items == "all" else counts + limit
        # The bound is at most the allowed number if one more wrong item is excluded.
        excluded = (most >= pool) | (stats.hypergeom.cdf(counts, pool, np.minimum(most + 1, pool), checked) <= alpha)
        good = excluded & (counts <= most)
        found[checked] = stats.hypergeom.pmf(counts, pool, wrong_items, checked)[good].sum()
    return found


@pytest.mark.no_cover
# The pools with several separate intervals of sizes that succeed are those of one or two hundred items.
@pytest.mark.one_in(2)
@pytest.mark.parametrize("items", ["all", "remaining"])
@pytest.mark.parametrize("alpha", [0.05, 0.025])
@pytest.mark.parametrize(
    ("target", "expected", "pool"),
    [
        (0.1, 0.04, 400),
        (0.1, 0.05, 150),
        (0.1, 0.03, 120),
        (0.05, 0.02, 700),
        (0.2, 0.1, 100),
        (0.2, 0.15, 200),
        (0.05, 0.01, 90),
        (0.3, 0.2, 60),
        (0.02, 0.03, 250),
        (0.05, 0.05, 300),
    ],
)
def test_plans_are_those_of_a_search_of_all_sizes(
    target: float, expected: float, pool: int, alpha: float, items: Items
) -> None:
    likely = quick(target, expected, pool, alpha, items)
    assert np.abs(likely - 0.8).min() > 1e-9
    planned = plan(target, expected, pool, alpha=alpha, items=items)
    reached = np.flatnonzero(likely >= 0.8)
    if len(reached):
        assert planned.labels == reached[0]
        assert planned.success == pytest.approx(likely[reached[0]], abs=1e-9)
    else:
        assert (planned.labels, planned.success) == (None, None)


def test_sizes_that_succeed_form_several_intervals() -> None:
    """Both the saw and the end of the pool separate them: the plan is the first size of the first interval."""
    likely = quick(0.1, 0.04, 400, 0.025, "remaining")
    reached = likely >= 0.8
    begins = np.flatnonzero(reached & ~np.r_[False, reached[:-1]])
    assert len(begins) > 1
    planned = plan(0.1, 0.04, 400, alpha=0.025)
    assert planned.labels == begins[0] == 190
    assert planned.success == pytest.approx(0.834, abs=5e-4)
    assert likely[200] < 0.8
    assert likely[340] < 0.5


# For 4,600 items: target, expected error, and the size of a check on its own (alpha = 0.05) and of the first one of a
# sequence (0.025), for the items that remain and for all.
FIGURES = [
    (0.1, 0.05, (180, 233), (177, 216)),
    (0.1, 0.03, (76, 100), (75, 99)),
    (0.05, 0.02, (237, 316), (230, 280)),
    (0.05, 0.01, (125, 144), (123, 140)),
    (0.2, 0.1, (82, 107), (81, 100)),
]


@pytest.mark.parametrize(("target", "expected", "remaining", "everything"), FIGURES)
def test_documented_figures(
    target: float, expected: float, remaining: tuple[int, int], everything: tuple[int, int]
) -> None:
    for items, sizes in (("remaining", remaining), ("all", everything)):
        for alpha, labels in zip((0.05, 0.025), sizes, strict=True):
            assert plan(target, expected, 4600, alpha=alpha, items=items).labels == labels  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("target", "expected", "size", "alpha"),
    [(0.1, 0.05, 180, 0.05), (0.05, 0.01, 125, 0.05), (0.2, 0.1, 90, 0.05), (0.1, 0.05, 216, 0.025)],
)
def test_documented_sizes_succeed(target: float, expected: float, size: int, alpha: float) -> None:
    wrong = count_quantile(round(expected * 4600), size, 4600, 0.8)
    assert upper_bound(wrong, size, 4600, alpha) <= round(target * 4600)
    assert attainable_bound(size, expected, 4600, alpha=alpha, items="all") <= target


# Error of a frozen model, and its bound from a check of 60, 100 and 200 items with the expected number of wrong ones:
# the description gives averages over samples, which lie within half a percentage point.
@pytest.mark.parametrize(
    ("error", "bounds"),
    [
        (0.140, (0.232, 0.208, 0.186)),
        (0.166, (0.270, 0.233, 0.212)),
        (0.016, (0.073, 0.056, 0.040)),
        (0.009, (0.061, 0.046, 0.030)),
    ],
)
def test_average_bounds_are_those_described(error: float, bounds: tuple[float, ...]) -> None:
    pool = 4600
    wrong_items = round(error * pool)
    for checked, described in zip((60, 100, 200), bounds, strict=True):
        before, mean = 0.0, 0.0
        for wrong in range(checked + 1):
            up_to = probability_at_most(wrong, wrong_items, checked, pool)
            mean += (up_to - before) * upper_bound(wrong, checked, pool, 0.05) / pool
            before = up_to
        assert mean == pytest.approx(described, abs=0.011)


def test_the_table_of_the_documentation() -> None:
    page = (Path(__file__).parents[2] / "docs" / "guarantee-measured.md").read_text()
    errors = (0.01, 0.02, 0.03, 0.05, 0.1)
    for target in (0.05, 0.1, 0.2):
        plans = [plan(target, error, 4600, alpha=spent_alpha(1)).labels for error in errors]
        cells = ["" if labels is None else f"{labels} " for labels in plans]
        assert f"| {target:.0%} |".replace("%", " %") + "".join(f" {cell}|" for cell in cells) in page


@given(st.data())
@examples(60)
def test_the_attainable_bound_is_attained(data: st.DataObject) -> None:
    pool = data.draw(st.integers(2, 500))
    checked = data.draw(st.integers(0, pool - 1))
    expected = data.draw(st.integers(0, 50)) / 50
    items: Items = data.draw(st.sampled_from(["all", "remaining"]))
    share = attainable_bound(checked, expected, pool, items=items)
    wrong_items = math.ceil(Fraction(str(expected)) * pool)

    def reached(wrong: int) -> bool:
        bound = upper_bound(wrong, checked, pool, 0.05)
        return (bound / pool if items == "all" else (bound - wrong) / (pool - checked)) <= share

    likely = [x for x in range(checked + 1) if reached(x)]
    assert probability_at_most(likely[-1], wrong_items, checked, pool) >= 0.8 - 1e-12
    assert likely == list(range(len(likely)))


@given(st.data())
@examples(80)
def test_recall_plans_are_those_of_brute_force(data: st.DataObject) -> None:
    pool = data.draw(st.integers(1, 20))
    missed, found = data.draw(st.integers(0, min(pool, 6))), data.draw(st.integers(0, 40))
    target = data.draw(st.sampled_from([0.3, 0.5, 0.8, 0.9, 0.95, 1.0]))
    alpha, wanted = data.draw(st.sampled_from([0.05, 0.2])), data.draw(st.sampled_from([0.5, 0.8]))
    planned = plan_recall(target, found, missed, pool, alpha=alpha, probability=wanted)
    succeeds = []
    for checked in range(pool):
        good = Fraction(0)
        for new in range(checked + 1):
            everything = found + exact.upper(new, checked, pool, alpha)
            reached = found + new >= Fraction(str(target)) * everything
            good += exact.pmf(pool, missed, checked, new) if reached else 0
        # Probabilities are computed in double precision here; none of these cases is a tie.
        assert abs(float(good) - wanted) > 1e-12 or good == 0
        succeeds.append(float(good))
    least = next((m for m, good in enumerate(succeeds) if good >= wanted), None)
    assert planned.labels == least
    assert planned.success == (None if least is None else pytest.approx(succeeds[least], abs=1e-12))


def test_recall_of_a_rare_class_is_expensive() -> None:
    """5,000 items, 1 % of the class, 49 found: at least 2,526 of the 4,000 unlabelled items must be checked."""
    assert plan_recall(0.95, found=49, missed=0, pool=4000).labels == 2526
    one_missed = plan_recall(0.95, found=49, missed=1, pool=4000)
    assert one_missed.labels is not None
    assert one_missed.labels > 2526
    assert plan_recall(1.0, found=49, missed=0, pool=4000).labels == 3800
    never = plan_recall(1.0, found=3, missed=2, pool=20)
    assert never.labels is None
    assert str(never).startswith("Not achievable without labelling all 20 items: no smaller check shows")


def test_nothing_needs_to_be_checked_where_the_target_is_sure() -> None:
    assert plan(1.0, 0.5, 100).labels == 0
    assert plan_recall(0.5, found=100, missed=0, pool=50).labels == 0


@pytest.mark.parametrize(("expected", "target", "pool"), [(0.2, 0.1, 60), (0.1, 0.1, 60), (0.0, 0.0, 15)])
def test_what_is_not_achievable_is_said(expected: float, target: float, pool: int) -> None:
    planned = plan(target, expected, pool)
    assert planned.labels is None
    assert planned.success is None
    assert str(planned).startswith(f"Not achievable without labelling all {pool} items: no smaller check shows with ")


def test_shares_are_the_decimal_numbers_that_were_written() -> None:
    # In floating point, 0.29 * 100 is below 29.
    assert plan(0.29, 0.29, 100, items="all", probability=0.01).labels is not None
    assert plan(0.29, 0.0, 100, items="all") == plan(29 / 100, 0.0, 100, items="all")


@pytest.mark.parametrize("items", ["all", "remaining"])
def test_large_plans_are_fast_and_close(items: Items, monkeypatch: pytest.MonkeyPatch) -> None:
    start = time.process_time()
    plans = {error: plan(0.05, error, 10**9, items=items) for error in (0.02, 0.04, 0.0499, 0.05, 0.06)}
    assert time.process_time() - start < 5.0
    assert (plans[0.02].labels, plans[0.04].labels) == (234, 2698)
    close = plans[0.0499]
    assert close.labels is not None
    assert close.labels > 10**7
    # The count that is allowed at this size is not exceeded with the requested probability.
    bound = attainable_bound(close.labels, 0.0499, 10**9, items=items)
    assert 0.0499 < bound <= 0.05
    assert close.success == pytest.approx(0.8, abs=1e-4)
    assert plans[0.05].labels is plans[0.06].labels is None
    searched = plan(0.05, 0.044, 10**6, items=items).labels
    monkeypatch.setattr(planner, "_MOST_INTERVALS", 5)
    bisected = plan(0.05, 0.044, 10**6, items=items)
    assert searched is not None
    assert bisected.labels is not None
    assert searched <= bisected.labels <= 1.02 * searched
    assert bisected.success is not None
    assert bisected.success >= 0.8


def test_typical_plans_take_milliseconds() -> None:
    plan(0.1, 0.05, 4600)
    cases = [(0.1, 0.05), (0.1, 0.03), (0.05, 0.02), (0.05, 0.01), (0.2, 0.1), (0.01, 0.005)]
    start = time.process_time()
    for pool in (4600, 10**6, 10**9):
        for target, expected in cases:
            plan(target, expected, pool)
    assert (time.process_time() - start) / (3 * len(cases)) < 0.05


def test_a_check_of_almost_all_items_is_a_plan() -> None:
    """If few items remain and wrong ones are rare, all that remain are right with the confidence asked for."""
    planned = plan(0.05, 0.045, 4600)
    assert planned.labels == 4599
    assert quick(0.05, 0.045, 600, 0.05, "remaining").argmax() == 599


@pytest.mark.no_cover
@pytest.mark.parametrize("missed", [0, 3, 40])
def test_bisected_plans_of_recall_succeed(missed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for counted in ({}, {"predicted": 60, "right": 50}):
        searched = plan_recall(0.8, 50, missed, 2000, **counted).labels
        monkeypatch.setattr(planner, "_MOST_INTERVALS", 2)
        bisected = plan_recall(0.8, 50, missed, 2000, **counted)
        monkeypatch.undo()
        assert searched is not None
        assert bisected.labels is not None
        assert bisected.success is not None
        assert searched <= bisected.labels <= 1.05 * searched
        assert bisected.success >= 0.8


@pytest.mark.parametrize(
    ("arguments", "keywords", "message"),
    [
        ((1.2, 0.1, 100), {}, "target must be a number from 0 to 1"),
        ((0.1, -0.1, 100), {}, "expected must be a number from 0 to 1"),
        ((0.1, 0.1, 0), {}, "pool must be a whole number, 1 or more"),
        ((0.1, 0.1, 10**13), {}, "pool must be at most"),
        ((0.1, 0.1, 100), {"alpha": 0.0}, "alpha must be a number above 0 and below 1"),
        ((0.1, 0.1, 100), {"probability": 1.0}, "probability must be a number above 0 and below 1"),
        ((0.1, 0.1, 100), {"items": "some"}, 'items must be "remaining" or "all"'),
    ],
)
def test_bad_arguments_are_named(arguments: tuple[Any, ...], keywords: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        plan(*arguments, **keywords)


def test_bad_arguments_of_the_other_functions_are_named() -> None:
    with pytest.raises(InvalidValueError, match="checked must be below pool=100"):
        attainable_bound(100, 0.1, 100)
    with pytest.raises(InvalidValueError, match='items must be "remaining" or "all"'):
        attainable_bound(10, 0.1, 100, items="some")  # type: ignore[arg-type]
    with pytest.raises(InvalidValueError, match="target must be a number above 0"):
        plan_recall(0.0, 1, 1, 100)
    with pytest.raises(InvalidValueError, match="missed must be at most pool=100"):
        plan_recall(0.9, 1, 101, 100)


# Recall with predicted items that count as found.


def test_predicted_items_make_recall_cheaper() -> None:
    alone = plan_recall(0.8, found=50, missed=190, pool=4000).labels
    counted = plan_recall(0.8, found=50, missed=10, pool=4000, predicted=200, right=180)
    assert alone is not None
    assert counted.labels is not None
    assert counted.success is not None
    assert counted.success >= 0.8
    assert counted.labels < alone
    assert "if 10 items of it are neither labelled nor predicted and 180 of the 200 predicted ones" in str(counted)
    assert plan_recall(0.99, found=1, missed=20, pool=400, predicted=20, right=10).labels is None


@pytest.mark.parametrize(
    ("found", "missed", "pool", "predicted", "right"), [(20, 6, 300, 40, 34), (52, 4, 60, 9, 7), (40, 0, 80, 20, 12)]
)
def test_a_plan_of_recall_with_predicted_items_is_that_of_all_sizes(
    found: int, missed: int, pool: int, predicted: int, right: int
) -> None:
    planned = plan_recall(0.8, found, missed, pool, predicted=predicted, right=right, alpha=0.1)
    size = planned.labels
    assert size is not None

    def success(checked: int) -> float:
        inside = round(checked * predicted / pool)
        total = Fraction(0)
        for hits in range(inside + 1):
            for new in range(missed + 1):
                known = found + lower_bound(hits, inside, predicted, 0.05)
                bound = exact.upper(new, checked - inside, pool - predicted, 0.05)
                if Fraction(known + new, known + bound) >= Fraction(4, 5):
                    total += exact.pmf(predicted, right, inside, hits) * exact.pmf(
                        pool - predicted, missed, checked - inside, new
                    )
        return float(total)

    assert planned.success == pytest.approx(success(size), abs=1e-12)
    assert success(size) >= 0.8
    smaller = range(size) if pool < 100 else range(size - 12, size)
    assert all(success(each) < 0.8 for each in smaller)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"predicted": 101}, "predicted must be at most pool=100"),
        ({"predicted": 10, "right": 11}, "right at most predicted"),
        ({"predicted": 95, "missed": 6}, "missed must be at most pool less predicted, 5"),
        ({"right": 1}, "right at most predicted"),
    ],
)
def test_bad_predicted_items(change: dict[str, int], message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        plan_recall(**({"target": 0.8, "found": 10, "missed": 5, "pool": 100} | change))  # type: ignore[arg-type]
