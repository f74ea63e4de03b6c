"""Clopper-Pearson limits against exact sums."""

import math
from fractions import Fraction

import pytest

from suffice.checks.binomial import binomial_limits
from suffice.errors import InvalidValueError


def at_most(count: int, trials: int, p: float) -> float:
    share = Fraction(p)
    terms = (math.comb(trials, k) * share**k * (1 - share) ** (trials - k) for k in range(count + 1))
    return float(sum(terms))


@pytest.mark.parametrize(("count", "trials", "alpha"), [(0, 1, 0.05), (0, 20, 0.05), (3, 20, 0.01), (19, 20, 0.1)])
def test_each_tail_has_half_of_the_probability(count: int, trials: int, alpha: float) -> None:
    low, high = binomial_limits(count, trials, alpha)
    assert at_most(count, trials, high) == pytest.approx(alpha / 2.0)
    if count:
        assert 1.0 - at_most(count - 1, trials, low) == pytest.approx(alpha / 2.0)
    else:
        assert low == 0.0
    assert binomial_limits(trials - count, trials, alpha) == pytest.approx((1.0 - high, 1.0 - low))


@pytest.mark.parametrize(("count", "trials", "alpha"), [(1, 0, 0.05), (3, 2, 0.05), (-1, 5, 0.05), (1, 5, 0.0)])
def test_impossible_numbers_are_refused(count: int, trials: int, alpha: float) -> None:
    with pytest.raises(InvalidValueError, match="must be"):
        binomial_limits(count, trials, alpha)


def test_the_limits_contain_the_probability_often_enough() -> None:
    for p in (0.02, 0.3, 0.95):
        limits = [binomial_limits(k, 30) for k in range(31)]
        missed = sum(
            math.comb(30, k) * p**k * (1.0 - p) ** (30 - k)
            for k, (low, high) in enumerate(limits)
            if not low <= p <= high
        )
        assert missed <= 0.05
