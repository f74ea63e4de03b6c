"""Cholesky factors that stay accurate for nearly singular matrices, and an error where there is none."""

from typing import Final

import numpy as np

from suffice.errors import InvalidValueError, NotPositiveDefiniteError
from suffice.numerics.special_functions import Floats

# A pivot that keeps less than this share of its diagonal entry has lost digits that refinement brings back.
_REFINE_BELOW: Final = 1e-4
_REFINEMENTS: Final = 4
_EPS: Final = float(np.finfo(np.float64).eps)


def cholesky(matrix: Floats, name: str = "matrix") -> Floats:
    r"""Return the lower factor ``L`` of ``matrix = L L'``, accurate even for a condition number near 1e14.

    A plain factorisation is exact for a matrix off by rounding, which moves the smallest eigenvalue of a matrix of
    condition 1e12 by 1e-4 of itself. Where a pivot shows such a loss the factor is refined: the residual
    ``R = matrix - L L'`` is formed without rounding (:func:`_residual`), and with ``E = L^-1 R L^-T``,
    ``L <- L (I + lower(E) - diag(E)/2)`` squares the error. What is left is the rounding of ``L`` itself, which only
    costs the square root of the condition number.

    Args:
        matrix: Symmetric ``J x J``; only symmetric up to the rounding of its type is required.
        name: What to call it in an error.

    Returns:
        Lower-triangular ``J x J`` with a positive diagonal.

    Raises:
        NotPositiveDefiniteError: ``matrix`` is not positive definite, or too close to singular to tell.

    Examples:
        >>> import numpy as np
        >>> cholesky(np.array([[4.0, 2.0], [2.0, 5.0]]))
        array([[2., 0.],
               [1., 2.]])
    """
    try:
        lower = np.asarray(np.linalg.cholesky(matrix), dtype=np.float64)
    except np.linalg.LinAlgError:
        raise _not_positive_definite(matrix, name) from None
    worst = _smallest_pivot(lower, matrix)
    if worst < len(matrix) * _EPS:
        raise _not_positive_definite(matrix, name)
    return lower if worst > _REFINE_BELOW else _refined(lower, matrix, name)


def symmetric(matrix: Floats, name: str, *, tolerance: float = 1e-8) -> Floats:
    """Return the symmetric part of a matrix that is symmetric up to rounding.

    Args:
        matrix: ``J x J``.
        name: What to call it in an error.
        tolerance: Largest difference of mirrored entries, relative to the roots of their diagonal entries.

    Raises:
        InvalidValueError: It is not symmetric; two entries that differ are named.

    Examples:
        >>> import numpy as np
        >>> symmetric(np.array([[1.0, 0.5], [0.5 + 1e-12, 1.0]]), "covariance").round(6)
        array([[1. , 0.5],
               [0.5, 1. ]])
    """
    root = np.sqrt(np.abs(np.diag(matrix))) + np.finfo(np.float64).tiny
    gap = np.abs(matrix - matrix.T) / root[:, None] / root
    if gap.max(initial=0.0) > tolerance:
        i, j = (int(k) for k in np.unravel_index(int(gap.argmax()), gap.shape))
        raise InvalidValueError(
            f"{name} is not symmetric: entry ({i}, {j}) is {matrix[i, j]}, ({j}, {i}) {matrix[j, i]}"
        )
    return matrix / 2.0 + matrix.T / 2.0


def solve_lower(lower: Floats, right: Floats) -> Floats:
    """Return ``lower^-1 right`` for a lower-triangular matrix.

    Examples:
        >>> import numpy as np
        >>> solve_lower(np.array([[2.0, 0.0], [1.0, 2.0]]), np.array([2.0, 5.0]))
        array([1., 2.])
    """
    return _solve_triangular(lower, right, transposed=False)


def solve_upper(lower: Floats, right: Floats) -> Floats:
    """Return ``lower'^-1 right`` for a lower-triangular matrix: the other half of solving ``lower lower' x = right``.

    Examples:
        >>> import numpy as np
        >>> solve_upper(np.array([[2.0, 0.0], [1.0, 2.0]]), np.array([4.0, 4.0]))
        array([1., 2.])
    """
    return _solve_triangular(lower, right, transposed=True)


def _solve_triangular(lower: Floats, right: Floats, *, transposed: bool) -> Floats:
    from scipy.linalg.lapack import dtrtrs  # a third of the time of `import suffice`, and not always needed

    if not right.size:
        return np.zeros(right.shape)
    # LAPACK reads columns: a matrix kept by rows is the transpose of what it sees, which spares a copy.
    if lower.flags.c_contiguous and not lower.flags.f_contiguous:
        solution, failed = dtrtrs(lower.T, right, lower=0, trans=0 if transposed else 1)
    else:
        solution, failed = dtrtrs(lower, right, lower=1, trans=1 if transposed else 0)
    if failed:
        raise np.linalg.LinAlgError("the triangular matrix is singular")
    return np.asarray(solution)


def _refined(lower: Floats, matrix: Floats, name: str) -> Floats:
    for _ in range(_REFINEMENTS):
        error = solve_lower(lower, solve_lower(lower, _residual(matrix, lower)).T)
        size = float(np.abs(error).max())
        if not size < 0.5:
            raise _not_positive_definite(matrix, name)
        correction = np.tril(error)
        np.fill_diagonal(correction, np.diag(correction) / 2.0)
        lower = lower + lower @ correction
        if size < 1e-9:  # the next error is its square
            break
    if _smallest_pivot(lower, matrix) < _EPS:
        raise _not_positive_definite(matrix, name)
    return lower


def _residual(matrix: Floats, lower: Floats) -> Floats:
    """Return ``matrix - lower lower'`` with about 22 correct digits relative to its rows.

    Each row of ``lower`` is cut into pieces of so few bits that the products of two pieces sum exactly in double
    precision; the large products cancel against ``matrix`` first, and only then are the small ones subtracted.
    """
    bits = (53 - int(np.ceil(np.log2(len(lower) + 1)))) // 2
    high, rest = _leading_bits(lower, bits)
    middle, low = _leading_bits(rest, bits)
    residual = matrix - high @ high.T
    for product in (high @ middle.T, middle @ middle.T / 2.0 + high @ low.T, middle @ low.T + low @ low.T / 2.0):
        residual -= product
        residual -= product.T
    return residual


def _leading_bits(values: Floats, bits: int) -> tuple[Floats, Floats]:
    """Split each row exactly into its leading ``bits`` bits, relative to its largest entry, and the rest."""
    largest = np.abs(values).max(axis=1, keepdims=True)
    _, exponent = np.frexp(largest)
    # Adding and subtracting a large constant rounds every entry to the same unit.
    anchor = np.ldexp(0.75, exponent + 54 - bits)
    leading = (values + anchor) - anchor
    return leading, values - leading


def _smallest_pivot(lower: Floats, matrix: Floats) -> float:
    """Smallest share of a diagonal entry that is left once the entries before it are known."""
    return float(np.min(np.diag(lower) ** 2 / np.diag(matrix)))


def _not_positive_definite(matrix: Floats, name: str) -> NotPositiveDefiniteError:
    values = np.linalg.eigvalsh(matrix)
    return NotPositiveDefiniteError(
        f"{name} is not positive definite: its eigenvalues run from {values[0]:.3g} to {values[-1]:.3g}, and the "
        f"smallest must be clearly above 0 (beyond rounding). Remove linearly dependent or constant parameters, "
        f"or add a small value to the diagonal."
    )
