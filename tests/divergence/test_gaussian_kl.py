from typing import Any

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from suffice import kl
from suffice.errors import InfiniteDivergenceError, InvalidValueError
from suffice.posteriors import Gaussian

Matrix = NDArray[np.float64]
SEEDS = st.integers(0, 10_000)
FORMS = ("covariance", "precision", "cholesky")


def exact_kl(m1: Matrix, S1: Matrix, m2: Matrix, S2: Matrix) -> mp.mpf:
    """The definition, by inverse and determinant, to 60 digits."""
    with mp.workdps(60):
        a, b = mp.matrix(S1.tolist()), mp.matrix(S2.tolist())
        d, inverse = mp.matrix(m1.tolist()) - mp.matrix(m2.tolist()), b**-1
        product = inverse * a
        trace = sum(product[i, i] for i in range(a.rows))
        return (trace - mp.log(mp.det(a) / mp.det(b)) + (d.T * inverse * d)[0] - a.rows) / 2


def spread(rng: np.random.Generator, size: int) -> Matrix:
    half = rng.normal(size=(size, size + 2))
    return np.asarray(half @ half.T / size)


def gaussian(mean: Matrix, covariance: Matrix, form: str) -> Gaussian:
    given: Any = {
        "covariance": covariance,
        "precision": np.linalg.inv(covariance),
        "cholesky": np.linalg.cholesky(covariance),
    }[form]
    return Gaussian(mean, **{form: given})


@pytest.mark.parametrize("p_form", FORMS)
@pytest.mark.parametrize("q_form", FORMS)
@pytest.mark.parametrize("size", [1, 3, 8])
def test_every_pair_of_forms_equals_the_definition(p_form: str, q_form: str, size: int) -> None:
    rng = np.random.default_rng(size)
    m1, m2 = rng.normal(size=(2, size))
    S1, S2 = spread(rng, size), spread(rng, size)
    got = kl(gaussian(m1, S1, p_form), gaussian(m2, S2, q_form))
    assert got == pytest.approx(float(exact_kl(m1, S1, m2, S2)), rel=1e-9)
    assert got.kind == "exact"


@pytest.mark.parametrize("other", [*FORMS, "diagonal"])
def test_diagonals_mix_with_every_form(other: str) -> None:
    rng = np.random.default_rng(3)
    m1, m2 = rng.normal(size=(2, 4))
    variances = rng.uniform(0.5, 2.0, size=4)
    S2 = np.diag(rng.uniform(0.5, 2.0, size=4)) if other == "diagonal" else spread(rng, 4)
    p = Gaussian(m1, diagonal=variances)
    q = Gaussian(m2, diagonal=np.diag(S2)) if other == "diagonal" else gaussian(m2, S2, other)
    assert kl(p, q) == pytest.approx(float(exact_kl(m1, np.diag(variances), m2, S2)), rel=1e-10)
    assert kl(q, p) == pytest.approx(float(exact_kl(m2, S2, m1, np.diag(variances))), rel=1e-10)


@pytest.mark.parametrize("form", ["covariance", "precision"])
@pytest.mark.parametrize("size", [3, 8, 20])
def test_correct_when_the_matrix_is_ill_conditioned_by_1e12(form: str, size: int) -> None:
    rng = np.random.default_rng(size)
    q, _ = np.linalg.qr(rng.normal(size=(size, size)))
    r, _ = np.linalg.qr(q + 1e-3 * rng.normal(size=(size, size)))
    values = np.logspace(0, -12, size)
    S1, S2 = ((basis * v) @ basis.T for basis, v in ((q, values), (r, values * rng.uniform(0.5, 2.0, size))))
    S1, S2 = (S1 + S1.T) / 2, (S2 + S2.T) / 2
    m1, m2 = 1e-3 * rng.normal(size=(2, size))
    if form == "covariance":
        got, expected = kl(Gaussian(m1, S1), Gaussian(m2, S2)), exact_kl(m1, S1, m2, S2)
    else:
        got = kl(Gaussian(m1, precision=S1), Gaussian(m2, precision=S2))
        with mp.workdps(60):
            a, b = mp.matrix(S1.tolist()), mp.matrix(S2.tolist())
            d, product = mp.matrix((m1 - m2).tolist()), b * a**-1
            trace = sum(product[i, i] for i in range(size))
            expected = (trace - mp.log(mp.det(b) / mp.det(a)) + (d.T * b * d)[0] - size) / 2
    assert abs((mp.mpf(float(got)) - expected) / expected) < 1e-9


@given(SEEDS, st.integers(1, 6), st.sampled_from(FORMS), st.sampled_from(FORMS))
def test_never_negative_and_zero_only_for_equals(seed: int, size: int, p_form: str, q_form: str) -> None:
    rng = np.random.default_rng(seed)
    m1, m2 = rng.normal(size=(2, size))
    p, q = gaussian(m1, spread(rng, size), p_form), gaussian(m2, spread(rng, size), q_form)
    assert kl(p, q) > 0.0
    assert kl(p, p) == kl(q, q) == 0.0


@given(SEEDS, st.floats(1e-9, 1e-3))
def test_nearly_equal_posteriors_keep_their_digits(seed: int, step: float) -> None:
    rng = np.random.default_rng(seed)
    L = np.linalg.cholesky(spread(rng, 4) + np.eye(4))
    M = L + step * np.tril(rng.normal(size=(4, 4)))
    m1 = rng.normal(size=4)
    m2 = m1 + step * rng.normal(size=4)
    with mp.workdps(60):
        factors = [mp.matrix(f.tolist()) for f in (L, M)]
        S1, S2 = (f * f.T for f in factors)
        d, inverse = mp.matrix(m1.tolist()) - mp.matrix(m2.tolist()), S2**-1
        product = inverse * S1
        trace = sum(product[i, i] for i in range(4))
        expected = (trace - mp.log(mp.det(S1) / mp.det(S2)) + (d.T * inverse * d)[0] - 4) / 2
        got = kl(Gaussian(m1, cholesky=L), Gaussian(m2, cholesky=M))
        assert abs(mp.mpf(float(got)) - expected) <= 1e-6 * expected


def test_one_parameter_extremes() -> None:
    assert kl(Gaussian(0.0, 1e-40), Gaussian(0.0, 1.0)) == pytest.approx(0.5 * (40 * np.log(10) - 1))
    assert kl(Gaussian([0.0, 0.0], [[1e-40, 0.0], [0.0, 1.0]]), Gaussian([0.0, 0.0], np.eye(2))) == pytest.approx(
        0.5 * (40 * np.log(10) - 1)
    )


def test_a_shift_or_rescaling_of_the_parameters_changes_nothing() -> None:
    rng = np.random.default_rng(0)
    m1, m2 = rng.normal(size=(2, 3))
    S1, S2, A = spread(rng, 3), spread(rng, 3), rng.normal(size=(3, 3))
    before = kl(Gaussian(m1, S1), Gaussian(m2, S2))
    after = kl(Gaussian(A @ m1 + 5, A @ S1 @ A.T), Gaussian(A @ m2 + 5, A @ S2 @ A.T))
    assert after == pytest.approx(before, rel=1e-9)


def test_dimensions_must_match() -> None:
    with pytest.raises(InvalidValueError, match="2 and 3 parameters"):
        kl(Gaussian([0.0, 0.0], np.eye(2)), Gaussian(np.zeros(3), np.eye(3)))


def test_an_overflow_is_called_infinite() -> None:
    with pytest.raises(InfiniteDivergenceError, match=r"KL\[Gaussian \|\| Gaussian\] is infinite"):
        kl(Gaussian(0.0, 1e300), Gaussian(0.0, 1e-300))
