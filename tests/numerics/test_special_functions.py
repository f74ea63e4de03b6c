import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice.numerics import bernoulli_kl, log1p_gap, variance_gap

PROBABILITY = st.floats(min_value=1e-12, max_value=1 - 1e-12)


@given(st.floats(min_value=-1 + 1e-9, max_value=1e12))
def test_log1p_gap_has_full_relative_precision(x: float) -> None:
    with mp.workdps(400):
        exact = mp.mpf(x) - mp.log1p(mp.mpf(x))
        assert abs(mp.mpf(float(log1p_gap(np.array(x)))) - exact) <= 4e-15 * exact + mp.mpf("1e-320")


def test_log1p_gap_at_the_seam_of_its_two_forms() -> None:
    x = np.array([-0.5, np.nextafter(-0.5, -1), 0.5, np.nextafter(0.5, 1), 0.0, -0.0])
    with mp.workdps(60):
        exact = [float(mp.mpf(float(v)) - mp.log1p(mp.mpf(float(v)))) for v in x]
    assert log1p_gap(x) == pytest.approx(exact, rel=2e-15)


@given(PROBABILITY, PROBABILITY)
def test_bernoulli_kl_has_full_relative_precision(p: float, q: float) -> None:
    with mp.workdps(80):
        a, b = mp.mpf(p), mp.mpf(q)
        exact = a * mp.log(a / b) + (1 - a) * mp.log((1 - a) / (1 - b))
        # 1 - p is rounded, by 1e-16; what that moves is the divergence's own sensitivity, sqrt(KL) times it.
        assert abs(mp.mpf(bernoulli_kl(p, q)) - exact) <= 1e-14 * exact + 1e-15 * mp.sqrt(exact)


@given(st.floats(1e-300, 1e300), st.floats(1e-300, 1e300))
def test_variance_gap_has_full_relative_precision(a: float, b: float) -> None:
    if not 1e-150 < a / b < 1e150:
        return
    with mp.workdps(400):
        square = (mp.mpf(a) / mp.mpf(b)) ** 2
        exact = square - 1 - mp.log(square)
        assert abs(mp.mpf(float(variance_gap(a, b))) - exact) <= 1e-14 * exact


def test_variance_gap_of_neighbours() -> None:
    a = np.nextafter(0.3, 1)
    with mp.workdps(60):
        square = (mp.mpf(float(a)) / mp.mpf(0.3)) ** 2
        assert float(variance_gap(a, 0.3)) == pytest.approx(float(square - 1 - mp.log(square)), rel=1e-13)


def test_bernoulli_kl_at_certainty() -> None:
    assert bernoulli_kl(1.0, 0.5) == pytest.approx(math.log(2))
    assert bernoulli_kl(0.0, 0.5) == pytest.approx(math.log(2))
    assert bernoulli_kl(1.0, 1.0) == bernoulli_kl(0.0, 0.0) == 0.0
    assert bernoulli_kl(0.5, 1.0) == bernoulli_kl(0.5, 0.0) == math.inf
