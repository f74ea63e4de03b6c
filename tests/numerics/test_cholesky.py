from typing import Literal

import mpmath as mp
import numpy as np
import pytest
from numpy.typing import NDArray

from suffice.errors import NotPositiveDefiniteError
from suffice.numerics import cholesky, solve_lower, solve_upper


def ill_conditioned(size: int, condition: float, seed: int) -> NDArray[np.float64]:
    rng = np.random.default_rng(seed)
    q, _ = np.linalg.qr(rng.normal(size=(size, size)))
    matrix = (q * np.logspace(0, -np.log10(condition), size)) @ q.T
    return np.asarray((matrix + matrix.T) / 2)


@pytest.mark.parametrize("condition", [1e1, 1e6, 1e12, 1e13])
@pytest.mark.parametrize("size", [2, 7, 30])
def test_factor_equals_60_digit_cholesky(size: int, condition: float) -> None:
    matrix = ill_conditioned(size, condition, seed=size)
    with mp.workdps(60):
        exact = mp.cholesky(mp.matrix(matrix.tolist()))
        expected = np.array([[float(exact[i, j]) for j in range(size)] for i in range(size)])
    assert np.abs(cholesky(matrix) - expected).max() <= 1e-13
    assert np.diag(cholesky(matrix)) == pytest.approx(np.diag(expected), rel=1e-9)


def test_scaling_of_the_variables_costs_nothing() -> None:
    scale = np.array([1e8, 1.0, 1e-8])
    matrix = np.array([[2.0, 0.5, 0.1], [0.5, 1.0, 0.3], [0.1, 0.3, 3.0]])
    assert cholesky(scale[:, None] * matrix * scale) == pytest.approx(scale[:, None] * cholesky(matrix), rel=1e-14)


@pytest.mark.parametrize(
    "matrix",
    [
        np.array([[1.0, 2.0], [2.0, 1.0]]),
        np.array([[1.0, 1.0], [1.0, 1.0]]),
        np.zeros((2, 2)),
        -np.eye(3),
    ],
    ids=["indefinite", "singular", "zero", "negative"],
)
def test_what_is_not_positive_definite_is_refused_with_its_eigenvalues(matrix: NDArray[np.float64]) -> None:
    with pytest.raises(
        NotPositiveDefiniteError, match=r"noise matrix is not positive definite: its eigenvalues run from"
    ):
        cholesky(matrix, "noise matrix")


@pytest.mark.parametrize("seed", range(20))
def test_a_matrix_of_lower_rank_is_refused_even_if_rounding_hides_it(seed: int) -> None:
    half = np.random.default_rng(seed).normal(size=(12, 8))
    with pytest.raises(NotPositiveDefiniteError):
        cholesky(half @ half.T)


def test_solve_lower_of_nothing_and_of_a_singular_matrix() -> None:
    assert solve_lower(np.eye(3), np.zeros((3, 0))).shape == (3, 0)
    with pytest.raises(np.linalg.LinAlgError, match="the triangular matrix is singular"):
        solve_lower(np.tril(np.ones((3, 3))) - np.diag([0.0, 1.0, 0.0]), np.ones((3, 2)))


def test_solve_lower() -> None:
    lower = np.tril(np.random.default_rng(0).normal(size=(5, 5))) + 3 * np.eye(5)
    right = np.random.default_rng(1).normal(size=(5, 2))
    assert lower @ solve_lower(lower, right) == pytest.approx(right)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("sides", [2, 31, 32, 100])
def test_many_right_sides_are_solved_as_one_by_one(sides: int, order: Literal["C", "F"]) -> None:
    rng = np.random.default_rng(sides)
    # Of different scales, so that the smallest components have digits to lose.
    lower = (np.tril(rng.normal(size=(20, 20))) + 5.0 * np.eye(20)) * np.logspace(-6, 6, 20)[:, None]
    lower, right = np.array(lower, order=order), np.array(rng.normal(size=(20, sides)), order=order)
    given = right.copy()
    for solve in (solve_lower, solve_upper):
        alone = np.column_stack([solve(lower, right[:, k]) for k in range(sides)])
        np.testing.assert_allclose(solve(lower, right), alone, rtol=1e-9)
    np.testing.assert_array_equal(right, given)
    with pytest.raises(np.linalg.LinAlgError, match="the triangular matrix is singular"):
        solve_lower(np.diag([1.0, 0.0]), np.ones((2, sides)))
