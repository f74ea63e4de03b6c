"""Hypergeometric probabilities in rational arithmetic."""

import math
from fractions import Fraction
from functools import cache


@cache
def pmf(pool: int, wrong_items: int, checked: int, count: int) -> Fraction:
    if not max(0, checked - (pool - wrong_items)) <= count <= min(wrong_items, checked):
        return Fraction(0)
    ways = math.comb(wrong_items, count) * math.comb(pool - wrong_items, checked - count)
    return Fraction(ways, math.comb(pool, checked))


def ways(pool: int, wrong_items: int, checked: int, count: int) -> int:
    """Number of samples with at most ``count`` wrong items, for large numbers."""
    term = math.comb(wrong_items, count) * math.comb(pool - wrong_items, checked - count)
    total = term
    for x in range(count, 0, -1):
        term = term * (x * (pool - wrong_items - checked + x)) // ((wrong_items - x + 1) * (checked - x + 1))
        total += term
    return total


@cache
def cdf(pool: int, wrong_items: int, checked: int, count: int) -> Fraction:
    return sum((pmf(pool, wrong_items, checked, x) for x in range(count + 1)), Fraction(0))


@cache
def upper(wrong: int, checked: int, pool: int, alpha: float) -> int:
    """The bound by trying every D."""
    return max(d for d in range(pool + 1) if cdf(pool, d, checked, wrong) > Fraction(alpha))


@cache
def lower(wrong: int, checked: int, pool: int, alpha: float) -> int:
    return min(d for d in range(pool + 1) if 1 - cdf(pool, d, checked, wrong - 1) > Fraction(alpha))
