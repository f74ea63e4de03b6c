import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice import Criterion, Step
from suffice.criteria.budget import Budget, CostLimit, PoolFraction, TimeLimit
from suffice.errors import InvalidValueError, MissingInputError
from suffice.testing import check_criterion, example_steps
from tests.every_rule import made_up_steps

RULES: dict[str, Callable[[], Criterion]] = {
    "time": lambda: TimeLimit(60.0),
    "cost": lambda: CostLimit(70.0),
    "share": lambda: PoolFraction(0.06),
    "together": lambda: (TimeLimit(60.0) & CostLimit(70.0)) | PoolFraction(0.1),
}


@pytest.mark.parametrize("name", RULES)
def test_conformance(name: str) -> None:
    check_criterion(RULES[name], made_up_steps(35, seed=4))


def test_each_stops_on_the_limit_and_not_before_it() -> None:
    time = [TimeLimit(60).observe(Step(n_labelled=9, seconds=s)) for s in (59.999, 60.0, 60.5)]
    assert [v.stop for v in time] == [False, True, True]
    assert [v.value for v in time] == [59.999, 60.0, 60.5]
    cost = [CostLimit(7.5).observe(Step(n_labelled=9, cost=c)) for c in (7.25, 7.5, 8.0)]
    assert [v.stop for v in cost] == [False, True, True]
    share = [PoolFraction(0.25).observe(Step(n_labelled=n, pool_size=20)) for n in (4, 5, 6, 20)]
    assert [v.stop for v in share] == [False, True, True, True]
    assert [v.value for v in share] == [0.2, 0.25, 0.3, 1.0]
    assert [v.threshold for v in (time[0], cost[0], share[0])] == [60.0, 7.5, 0.25]


def test_each_says_what_is_spent() -> None:
    step = Step(n_labelled=1, seconds=3.5, cost=2.0, pool_size=500)
    assert TimeLimit(60).observe(step).reason == "3.5 seconds are spent, and the limit is 60"
    assert CostLimit(0.5).observe(step).reason == "the labels have cost 2, and the limit is 0.5"
    assert PoolFraction(0.1).observe(step).reason == (
        "1 of the 500 items is labelled, and the required share is 0.1 of them"
    )


def test_only_a_share_of_the_pool_knows_the_labels_left() -> None:
    step = Step(n_labelled=12, seconds=3.5, cost=2.0, pool_size=500)
    assert TimeLimit(60).observe(step).forecast is None
    assert CostLimit(60).observe(step).forecast is None
    forecast = PoolFraction(0.1).observe(step).forecast
    assert forecast is not None
    assert (forecast.labels, forecast.low, forecast.high, forecast.coverage) == (38, 38, 38, 1.0)


@given(st.integers(1, 3000), st.integers(1, 3000), st.integers(0, 3000))
def test_the_labels_left_are_exactly_those_after_which_it_stops(size: int, whole: int, n: int) -> None:
    share = min(whole, size) / size
    verdict = PoolFraction(share).observe(Step(n_labelled=n, pool_size=size))
    assert verdict.stop == (n >= min(whole, size))
    if not verdict.stop:
        assert verdict.forecast is not None
        left = verdict.forecast.labels
        assert PoolFraction(share).observe(Step(n_labelled=n + left, pool_size=size)).stop
        assert not PoolFraction(share).observe(Step(n_labelled=n + left - 1, pool_size=size)).stop


def test_a_share_whose_product_is_rounded_is_not_one_label_off() -> None:
    assert math.ceil(0.07 * 100) == 8  # the trap
    forecast = PoolFraction(0.07).observe(Step(n_labelled=2, pool_size=100)).forecast
    assert forecast is not None
    assert forecast.labels == 5


def test_of_an_empty_pool_nothing_is_left() -> None:
    verdict = PoolFraction(1.0).observe(Step(n_labelled=0, pool_size=0))
    assert verdict.stop
    assert verdict.value == 1.0


def test_a_limit_out_of_reach_never_stops() -> None:
    run = example_steps(50)
    for rule in (TimeLimit(1e9), CostLimit(1e9), PoolFraction(1.0)):
        assert not any(rule.observe(step).stop for step in run)


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf, "much", True, None])
def test_bad_limits_are_named(bad: object) -> None:
    with pytest.raises(InvalidValueError, match="seconds must be a number above 0, not"):
        TimeLimit(bad)  # type: ignore[arg-type]
    with pytest.raises(InvalidValueError, match="cost must be a number above 0, not"):
        CostLimit(bad)  # type: ignore[arg-type]
    with pytest.raises(InvalidValueError, match="share must be a number above 0 and at most 1, not"):
        PoolFraction(bad)  # type: ignore[arg-type]


def test_more_than_the_whole_pool_is_refused() -> None:
    with pytest.raises(InvalidValueError, match=r"share must be a number above 0 and at most 1, not 1\.5"):
        PoolFraction(1.5)


@pytest.mark.parametrize(
    ("rule", "field"), [(TimeLimit(1), "seconds"), (CostLimit(1), "cost"), (PoolFraction(1), "pool_size")]
)
def test_what_is_missing_is_named(rule: Criterion, field: str) -> None:
    with pytest.raises(MissingInputError, match=f"{type(rule).__name__} requires {field}"):
        rule.observe(Step(n_labelled=3))


def test_budget_is_as_it_was() -> None:
    check_criterion(lambda: Budget(30))
    assert str(Budget(500).observe(Step(n_labelled=120))).endswith("the budget is 500. 380 more labels.")
