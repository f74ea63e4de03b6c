import math
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtr

from suffice.bounds import risk_gap, threshold, total_variation
from suffice.criteria import Step
from suffice.errors import InfiniteDivergenceError, InvalidTypeError, InvalidValueError, SufficeError
from suffice.numerics import Floats

GRID = 10.0 ** np.concatenate([np.linspace(-30, 30, 241), np.linspace(-3, 2, 101)])
KL = st.floats(min_value=0.0, max_value=1e30, allow_subnormal=True)


def exact_risk_gap(kl: float) -> mp.mpf:
    """The root of Bennett's function to 60 digits, from the Lambert form at 200 digits."""
    with mp.workdps(200):
        return mp.exp(mp.lambertw((mp.mpf(kl) - 1) / mp.e).real + 1) - 1


def test_risk_gap_equals_the_lambert_form_to_13_digits() -> None:
    computed = np.asarray(risk_gap(GRID))
    with mp.workdps(60):
        errors = [abs((mp.mpf(r) - e) / e) for r, e in zip(computed, map(exact_risk_gap, GRID), strict=True)]
    assert max(errors) <= 1e-13


def test_risk_gap_is_correct_in_the_last_place() -> None:
    # Stronger than promised: it is what makes the function monotone between neighbouring floats.
    if np.finfo(np.longdouble).eps == np.finfo(np.float64).eps:
        pytest.skip("this platform has no extended precision")
    for kl in GRID[::7]:
        with mp.workdps(60):
            error = abs(mp.mpf(risk_gap(float(kl))) - exact_risk_gap(kl))
            assert error <= 0.51 * math.ulp(risk_gap(float(kl)))


@given(KL)
def test_risk_gap_inverts_bennetts_function(kl: float) -> None:
    r = risk_gap(kl)
    with mp.workdps(700):
        bennett = (1 + mp.mpf(r)) * mp.log1p(mp.mpf(r)) - mp.mpf(r)
        assert abs(bennett - mp.mpf(kl)) <= 4e-13 * mp.mpf(kl) + mp.mpf("1e-320")


@given(KL, KL)
def test_bounds_are_monotone(a: float, b: float) -> None:
    low, high = sorted((a, b))
    assert risk_gap(low) <= risk_gap(high)
    assert total_variation(low) <= total_variation(high)


def test_risk_gap_is_monotone_between_neighbouring_floats() -> None:
    if np.finfo(np.longdouble).eps == np.finfo(np.float64).eps:
        pytest.skip("this platform has no extended precision")
    kl = 10.0 ** np.random.default_rng(0).uniform(-30, 30, 50_000)
    assert (np.asarray(risk_gap(np.nextafter(kl, np.inf))) >= np.asarray(risk_gap(kl))).all()


def test_zero_is_exactly_zero() -> None:
    assert risk_gap(0.0) == 0.0
    assert risk_gap(0.0, second_moment=0.3) == 0.0
    assert total_variation(0.0, 5.0) == 0.0
    assert np.array_equal(risk_gap([0.0, 0.0]), [0.0, 0.0])


def test_extremes_of_the_float_range() -> None:
    tiny, huge = risk_gap(5e-324), risk_gap(1.7e308)
    assert tiny == pytest.approx(math.sqrt(2) * math.sqrt(5e-324), rel=1e-15)
    assert float(exact_risk_gap(1.7e308)) == pytest.approx(huge, rel=1e-13)
    assert total_variation(1e-300) == pytest.approx(math.sqrt(0.5) * 1e-150, rel=1e-15)
    assert total_variation(1e300) == 1.0


@pytest.mark.parametrize("function", [risk_gap, total_variation])
def test_scalars_and_arrays_agree_bit_for_bit(function: Any) -> None:
    several = function(GRID)
    assert isinstance(function(float(GRID[0])), float)
    assert [function(float(k)) for k in GRID] == several.tolist()
    assert np.array_equal(function(GRID.reshape(2, -1)), several.reshape(2, -1))
    assert function(np.zeros((0, 3))).shape == (0, 3)
    assert function([1, 2]).shape == (2,)


def test_rounding_below_zero_counts_as_zero_relative_to_the_terms() -> None:
    assert risk_gap(-1e-12) == 0.0
    assert risk_gap(-9e-10) == 0.0
    assert risk_gap(-5e-5, terms=1e5) == 0.0
    with pytest.raises(InvalidValueError, match=r"kl is negative \(value -1e-08\)"):
        risk_gap(-1e-8)
    with pytest.raises(InvalidValueError, match="negative"):
        risk_gap(-5e-10, terms=0.1)


@pytest.mark.parametrize(
    ("value", "error", "words"),
    [
        (-0.5, InvalidValueError, "kl is negative .*-0.5"),
        (math.nan, InvalidValueError, "kl is NaN"),
        (math.inf, InfiniteDivergenceError, "kl is infinite"),
        (-math.inf, InvalidValueError, "kl is negative"),
        ([0.1, 0.2, -3.0], InvalidValueError, "kl is negative at index 2"),
        ([[0.1, math.nan]], InvalidValueError, r"kl is NaN at index \(0, 1\)"),
        ("much", InvalidTypeError, "kl must be a real number or an array of them, not 'much'"),
    ],
)
def test_a_bad_divergence_is_named(value: object, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        risk_gap(value)  # type: ignore[call-overload]


def test_total_variation_names_the_direction() -> None:
    with pytest.raises(InvalidValueError, match="kl_pq is NaN"):
        total_variation(math.nan, 0.1)
    with pytest.raises(InfiniteDivergenceError, match="kl_qp is infinite"):
        total_variation(0.1, math.inf)


def test_total_variation_equals_its_definition_to_13_digits() -> None:
    for kl in GRID:
        with mp.workdps(60):
            k = mp.mpf(float(kl))
            exact = min(mp.sqrt(k / 2), mp.sqrt(-mp.expm1(-k)))
            assert abs((mp.mpf(total_variation(float(kl))) - exact) / exact) <= 1e-13


@given(KL, KL)
def test_total_variation_is_symmetric_and_the_smaller_direction_decides(a: float, b: float) -> None:
    assert total_variation(a, b) == total_variation(b, a) == min(total_variation(a), total_variation(b)) <= 1.0


@given(st.floats(min_value=1e-12, max_value=1e3))
def test_one_direction_of_the_paper_is_at_least_twice_the_tight_bound(kl: float) -> None:
    assert risk_gap(kl) >= 2.0 * total_variation(kl) * (1 - 1e-12)


def test_the_papers_bound_says_nothing_beyond_its_limit() -> None:
    assert risk_gap(2 * math.log(2) - 1) == pytest.approx(1.0, rel=1e-15)


@given(st.floats(1e-6, 1e6), st.floats(1e-3, 1e3), st.floats(1e-3, 1e3))
def test_second_moment_is_footnote_one(kl: float, moment: float, width: float) -> None:
    with mp.workdps(60):
        v, b, k = mp.mpf(moment), mp.mpf(width), mp.mpf(kl)
        exact = v / b * (mp.exp(mp.lambertw((b**2 * k - v) / (v * mp.e)).real + 1) - 1) / b
        got = risk_gap(kl, second_moment=moment, loss_range=width)
        assert abs(mp.mpf(got) - exact) <= 1e-12 * exact


def test_second_moment_edges() -> None:
    assert risk_gap(0.3, second_moment=1.0) == risk_gap(0.3)
    assert risk_gap(0.3, second_moment=0.0) == 0.0
    assert np.asarray(risk_gap([0.1, 0.2], second_moment=[0.5, 1.0])).shape == (2,)
    for bad in (-1.0, math.nan, math.inf):
        with pytest.raises(InvalidValueError, match="second_moment"):
            risk_gap(0.3, second_moment=bad)
        with pytest.raises(InvalidValueError, match="loss_range"):
            risk_gap(0.3, second_moment=1.0, loss_range=bad)
    with pytest.raises(InvalidValueError, match="overflows"):
        risk_gap(1e20, second_moment=1e-300)


def test_threshold_equals_theorem_2() -> None:
    for eta, delta in [(0.05, 0.05), (0.5, 1e-300), (0.999, 0.999), (1e-9, 0.1)]:
        with mp.workdps(60):
            exact = mp.mpf(eta) * mp.sqrt(-2 / mp.log(mp.mpf(delta) / 2))
            assert abs((mp.mpf(threshold(eta, delta)) - exact) / exact) <= 1e-13
    assert np.asarray(threshold([0.1, 0.2], 0.05)).shape == (2,)


@pytest.mark.parametrize("bad", [0.0, 1.0, -0.1, math.nan])
def test_threshold_refuses_what_the_theorem_does_not_cover(bad: float) -> None:
    with pytest.raises(InvalidValueError, match="eta is not between 0 and 1"):
        threshold(bad, 0.05)
    with pytest.raises(InvalidValueError, match="delta is not between 0 and 1"):
        threshold(0.05, bad)


def test_bounds_hold_for_ten_thousand_random_posteriors_and_losses() -> None:
    """Gaussians with a step loss and categorical distributions with random losses: exact expectations on both sides."""
    rng = np.random.default_rng(7)
    n = 5000
    m, cut = rng.normal(scale=rng.uniform(0, 2, n)), rng.normal(size=n)
    s = np.exp(rng.normal(scale=0.7, size=n))
    kl_pq = 0.5 * (s**2 - 1 - 2 * np.log(s) + m**2)
    kl_qp = 0.5 * (1 / s**2 - 1 + 2 * np.log(s) + m**2 / s**2)
    mass_p, mass_q = ndtr((cut - m) / s), ndtr(cut)
    _assert_bounded(mass_p, mass_q, kl_pq, kl_qp, mass_p, mass_q)

    p, q = (rng.dirichlet(np.full(6, 0.7), size=n) + 1e-9 for _ in range(2))
    p, q = p / p.sum(1, keepdims=True), q / q.sum(1, keepdims=True)
    loss = rng.uniform(size=(n, 6)) ** rng.choice([0.2, 1.0, 5.0], size=(n, 1))
    kl_pq, kl_qp = (p * np.log(p / q)).sum(1), (q * np.log(q / p)).sum(1)
    moments = [(d * loss**2).sum(1) for d in (p, q)]
    _assert_bounded((p * loss).sum(1), (q * loss).sum(1), kl_pq, kl_qp, *moments)


def _assert_bounded(loss_p: Floats, loss_q: Floats, kl_pq: Floats, kl_qp: Floats, *moments: Floats) -> None:
    change, slack = loss_p - loss_q, 1e-12
    moment_p, moment_q = moments
    assert (change <= np.asarray(risk_gap(kl_pq)) + slack).all()
    assert (change >= -np.asarray(risk_gap(kl_qp)) - slack).all()
    assert (change <= np.asarray(risk_gap(kl_pq, second_moment=moment_q)) + slack).all()
    assert (change >= -np.asarray(risk_gap(kl_qp, second_moment=moment_p)) - slack).all()
    assert (np.abs(change) <= np.asarray(total_variation(kl_pq, kl_qp)) + slack).all()


def test_tensors_are_taken_as_numbers() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    kl = torch.tensor([0.1, 0.2], dtype=torch.float64, requires_grad=True)
    assert np.array_equal(risk_gap(kl), risk_gap([0.1, 0.2]))
    assert risk_gap(kl[0]) == risk_gap(0.1)


NO_NUMBERS = [
    "0.3",
    True,
    np.True_,
    [True, False],
    ["0.3"],
    np.array("0.3"),
    np.ma.masked_array([0.3, 0.4], [True, False]),
    np.ma.masked,
    date(2020, 1, 1),
    [date(2020, 1, 1)],
    np.datetime64("2020-01-01"),
    np.timedelta64(3, "D"),
    np.array(["2020-01-01"], dtype="datetime64[D]"),
    0.3 + 0.0j,
    None,
]


@pytest.mark.parametrize("value", NO_NUMBERS, ids=repr)
def test_what_is_not_a_number_is_no_divergence(value: Any) -> None:
    for function in (risk_gap, total_variation):
        with pytest.raises(SufficeError, match=r"kl.* must be"):
            function(value)
    if value is not None:  # a step may lack a divergence
        with pytest.raises(SufficeError, match="kl_new_old"):
            Step(n_labelled=10, kl_new_old=value)


def test_numbers_of_other_types_are_divergences() -> None:
    expected = risk_gap(0.25)
    others: list[Any] = [Fraction(1, 4), Decimal("0.25"), np.float32(0.25), np.array(0.25), np.ma.array(0.25)]
    for value in others:
        assert risk_gap(value) == expected
    assert np.array_equal(risk_gap(np.array([Fraction(1, 4), 0])), risk_gap([0.25, 0.0]))
