"""Bounds against rational arithmetic, against mpmath at a thousand million items, and as properties."""

import math
from decimal import Context, localcontext
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from suffice.checks import hypergeometric, lower_bound, upper_bound
from suffice.checks.hypergeometric import count_quantile, probability_at_most
from suffice.errors import InvalidTypeError, InvalidValueError
from tests.checks import exact
from tests.thoroughness import examples

ALPHAS = [0.05, 0.025, 0.05 / 6, 0.25, 0.5, 0.9]
LARGE = 10**9


@pytest.mark.parametrize("pool", [1, 2, 5, 8, 13])
@pytest.mark.parametrize("alpha", ALPHAS)
def test_bounds_are_those_of_rational_arithmetic(pool: int, alpha: float) -> None:
    for checked in range(pool + 1):
        for wrong in range(checked + 1):
            assert upper_bound(wrong, checked, pool, alpha) == exact.upper(wrong, checked, pool, alpha)
            assert lower_bound(wrong, checked, pool, alpha) == exact.lower(wrong, checked, pool, alpha)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("pool", [8, 14])
@pytest.mark.parametrize("alpha", ALPHAS)
def test_bounds_cover_the_truth(pool: int, alpha: float) -> None:
    """By enumeration of all outcomes: the probability that the bound is below the truth is at most alpha."""
    for checked in range(pool + 1):
        for truth in range(pool + 1):
            outcomes = [(x, exact.pmf(pool, truth, checked, x)) for x in range(min(truth, checked) + 1)]
            too_low = sum(p for x, p in outcomes if p and upper_bound(x, checked, pool, alpha) < truth)
            too_high = sum(p for x, p in outcomes if p and lower_bound(x, checked, pool, alpha) > truth)
            assert too_low <= Fraction(alpha)
            assert too_high <= Fraction(alpha)


@pytest.mark.parametrize(
    ("wrong", "checked"),
    [(0, 1), (0, 20), (1, 60), (3, 100), (15, 100), (100, 100), (2, 1000), (180, 1000)],
)
@pytest.mark.parametrize("alpha", [0.05, 0.025, 1e-6])
def test_bounds_of_large_pools_are_exact(wrong: int, checked: int, alpha: float) -> None:
    bound = upper_bound(wrong, checked, LARGE, alpha)
    limit = Fraction(alpha) * math.comb(LARGE, checked)
    assert exact.ways(LARGE, bound, checked, wrong) > limit
    assert bound == LARGE - checked + wrong or exact.ways(LARGE, bound + 1, checked, wrong) <= limit


def log_cdf(pool: int, wrong_items: int, checked: int, count: int) -> Any:
    """The logarithm of the CDF with 60 digits, by log-gamma and a recurrence."""

    def log_comb(n: int, k: int) -> Any:
        return mpmath.loggamma(n + 1) - mpmath.loggamma(k + 1) - mpmath.loggamma(n - k + 1)

    first = log_comb(wrong_items, count) + log_comb(pool - wrong_items, checked - count) - log_comb(pool, checked)
    total = term = mpmath.mpf(1)
    for x in range(count, 0, -1):
        term *= mpmath.mpf(x * (pool - wrong_items - checked + x)) / ((wrong_items - x + 1) * (checked - x + 1))
        total += term
        if term < total * mpmath.mpf(10) ** -50:
            break
    return first + mpmath.log(total)


@pytest.mark.parametrize(
    ("wrong", "checked"),
    [(0, 10**7), (30, 10**4), (300, 10**4), (50_000, 10**6), (0, LARGE - 10**6), (10**6, LARGE // 2)],
)
def test_bounds_of_large_samples_are_exact(wrong: int, checked: int) -> None:
    bound = upper_bound(wrong, checked, LARGE, 0.05)
    with mpmath.workdps(60):
        limit = mpmath.log(mpmath.mpf(0.05))
        assert log_cdf(LARGE, bound, checked, wrong) > limit >= log_cdf(LARGE, bound + 1, checked, wrong)


@pytest.mark.parametrize(
    ("truth", "checked", "wrong"),
    [
        pytest.param(4 * 10**8, 5 * 10**8, 2 * 10**8 - 18_000, marks=pytest.mark.slow),
        (10**7, 10**8, 10**6 - 1500),
        (10**7, 10**8, 10**6 + 1500),
        (5 * 10**8, 300, 150),
        (3 * 10**8, 10**4, 2900),
        (3, 6 * 10**8, 0),
        (10**5, LARGE - 10**4, 10**5 - 4),
    ],
)
def test_double_precision_is_within_its_margin(truth: int, checked: int, wrong: int) -> None:
    with mpmath.workdps(60):
        expected = mpmath.exp(log_cdf(LARGE, truth, checked, wrong))
        assert abs(probability_at_most(wrong, truth, checked, LARGE) / expected - 1) < 0.1 * hypergeometric._MARGIN


@pytest.mark.parametrize(
    ("pool", "truth", "checked", "wrong"),
    [
        (30_000, 5000, 3000, 465),
        (30_000, 5000, 3000, 530),
        (9000, 3000, 2500, 800),
        (LARGE, 3 * 10**8, 50, 9),
        (200, 60, 40, 7),
    ],
)
def test_probabilities_next_to_alpha_are_decided_right(pool: int, truth: int, checked: int, wrong: int) -> None:
    """The floats around the probability of one D differ from it in the 17th digit only."""
    probability = Fraction(exact.ways(pool, truth, checked, wrong), math.comb(pool, checked))
    nearest = float(probability)
    for alpha in (math.nextafter(nearest, 0.0), nearest, math.nextafter(nearest, 1.0)):
        assert upper_bound(wrong, checked, pool, alpha) == (truth if probability > Fraction(alpha) else truth - 1)


@pytest.mark.parametrize(("pool", "checked", "wrong"), [(10, 3, 1), (1000, 501, 250), (LARGE, 10**6 + 1, 500_000)])
def test_a_probability_of_one_half_is_a_tie(pool: int, checked: int, wrong: int) -> None:
    """P[X <= k] is 1/2 by symmetry, which is not above alpha = 1/2."""
    assert upper_bound(wrong, checked, pool, 0.5) == pool // 2 - 1
    assert upper_bound(wrong, checked, pool, math.nextafter(0.5, 0.0)) == pool // 2


def test_ties_without_symmetry_are_decided_in_integers() -> None:
    # One item of 16, of which 12 are wrong, is right with probability 1/4.
    assert upper_bound(0, 1, 16, 0.25) == 11
    assert upper_bound(0, 1, 2**30 // 8 * 8, 0.125) == 2**30 // 8 * 7 - 1


def test_logarithms_of_factorials_have_fifty_digits() -> None:
    with localcontext(Context(prec=60)), mpmath.workdps(60):
        for n in (1, 255, 256, 1000, 123_456, LARGE):
            expected = mpmath.loggamma(n + 1)
            difference = mpmath.mpf(str(hypergeometric._log_factorial(n))) - expected
            assert abs(difference) <= mpmath.mpf(10) ** -48 * max(1, expected)


@pytest.mark.parametrize(
    ("arguments", "bound"),
    [
        ((0, 0, 7, 0.05), 7),
        ((3, 7, 7, 0.05), 3),
        ((5, 5, 7, 0.05), 7),
        ((0, 0, 0, 0.05), 0),
        ((0, 1, 20, 0.05), 18),
        ((0, LARGE, LARGE, 0.05), 0),
        ((0, 0, LARGE, 0.05), LARGE),
        ((10, 10, LARGE, 0.05), LARGE),
    ],
)
def test_extreme_samples(arguments: tuple[int, int, int, float], bound: int) -> None:
    assert upper_bound(*arguments) == bound
    wrong, checked, pool, alpha = arguments
    assert lower_bound(checked - wrong, checked, pool, alpha) == pool - bound


@given(st.data())
@examples(200)
def test_bounds_are_monotone_in_every_argument(data: st.DataObject) -> None:
    pool = data.draw(st.one_of(st.integers(2, 60), st.integers(2, LARGE)))
    checked = data.draw(st.integers(1, pool - 1)) if pool < 100 else data.draw(st.integers(1, min(pool - 1, 3000)))
    wrong = data.draw(st.integers(0, checked - 1))
    alpha = data.draw(st.floats(1e-6, 0.9))
    smaller = alpha * data.draw(st.floats(0.01, 1.0))
    assume(smaller > 0.0)
    for bound, sign in ((upper_bound, 1), (lower_bound, -1)):
        value = bound(wrong, checked, pool, alpha)
        assert wrong <= value <= pool - checked + wrong
        # One more wrong item in the sample, and the rest of the sample unchanged.
        assert bound(wrong + 1, checked, pool, alpha) >= value + 1
        assert sign * bound(wrong, checked, pool, smaller) >= sign * value
        assert bound(wrong, checked, pool + 1, alpha) >= value
        assert bound(wrong, checked + 1, pool, alpha) <= value
    assert lower_bound(wrong, checked, pool, min(alpha, 0.4)) <= upper_bound(wrong, checked, pool, min(alpha, 0.4))


@given(st.integers(1, 40), st.data())
@examples(100)
def test_quantiles_and_probabilities_are_those_of_rational_arithmetic(pool: int, data: st.DataObject) -> None:
    wrong_items, checked = data.draw(st.integers(0, pool)), data.draw(st.integers(0, pool))
    wanted = data.draw(st.floats(0.001, 0.999))
    count = count_quantile(wrong_items, checked, pool, wanted)
    assert exact.cdf(pool, wrong_items, checked, count) >= Fraction(wanted)
    assert exact.cdf(pool, wrong_items, checked, count - 1) < Fraction(wanted)
    for x in range(-1, checked + 1):
        expected = float(exact.cdf(pool, wrong_items, checked, x))
        assert probability_at_most(x, wrong_items, checked, pool) == pytest.approx(expected, rel=1e-12, abs=1e-14)


def test_arrays_broadcast() -> None:
    wrong, checked = np.arange(4), np.array([[50], [100]])
    bounds = upper_bound(wrong, checked, 4600, 0.05)
    assert isinstance(bounds, np.ndarray)
    assert bounds.dtype == np.int64
    assert bounds.tolist() == [[upper_bound(k, m, 4600, 0.05) for k in range(4)] for m in (50, 100)]
    levels = upper_bound(3, 100, [4600, 4700], [0.05, 0.025])
    assert isinstance(levels, np.ndarray)
    assert levels.tolist() == [upper_bound(3, 100, 4600, 0.05), upper_bound(3, 100, 4700, 0.025)]
    empty = upper_bound(np.array([], dtype=np.int64), 5, 10, 0.05)
    assert isinstance(empty, np.ndarray)
    assert empty.shape == (0,)
    assert type(upper_bound(np.int64(3), np.int32(100), 4600, np.float64(0.05))) is int


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        ((-1, 10, 100, 0.05), InvalidValueError, "wrong must be a whole number from 0"),
        ((1.5, 10, 100, 0.05), InvalidValueError, "wrong must be a whole number"),
        ((True, 10, 100, 0.05), InvalidValueError, "wrong must be a whole number"),
        (("a", 10, 100, 0.05), InvalidTypeError, "wrong must be a whole number"),
        ((11, 10, 100, 0.05), InvalidValueError, "wrong must not exceed checked"),
        ((1, 101, 100, 0.05), InvalidValueError, "checked must not exceed pool"),
        ((1, 10, 10**13, 0.05), InvalidValueError, "pool must be a whole number from 0 to 1,000,000,000,000"),
        ((1, 10, 100, 0.0), InvalidValueError, "alpha must be above 0 and below 1"),
        ((1, 10, 100, 1.0), InvalidValueError, "alpha must be above 0 and below 1"),
        ((1, 10, 100, math.nan), InvalidValueError, "alpha must be above 0 and below 1"),
        ((1, 10, 100, "x"), InvalidTypeError, "alpha must be a real number"),
        (([1, 2], [10, 10, 10], 100, 0.05), InvalidValueError, "arrays of one shape"),
    ],
)
def test_bad_arguments_are_named(arguments: tuple[Any, ...], kind: type[Exception], message: str) -> None:
    for bound in (upper_bound, lower_bound):
        with pytest.raises(kind, match=message):
            bound(*arguments)
