"""Numerical functions that keep full precision: near zero, and with Cholesky factors of nearly singular matrices."""

from typing import Final, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from suffice.errors import InvalidValueError, NotPositiveDefiniteError

Floats = NDArray[np.float64]
#: Numbers of one precision, an array or a scalar; a function of them keeps both.
Real = TypeVar("Real", NDArray[np.float64], NDArray[np.longdouble], np.float64, np.longdouble)

# Within this distance of 0 the series below is used; outside it, plain subtraction loses less than 3 bits.
_SERIES_RADIUS: Final = 0.5
# y = x/(2+x) stays within [-1/3, 1/5] there, so y^2 <= 1/9: 20 terms leave a remainder below 1e-20.
_SERIES_TERMS: Final = 20
# 1, 1/3, 1/5, ... in extended and in double precision.
_ODD_WIDE: Final = 1 / np.arange(1, 2 * _SERIES_TERMS + 2, 2).astype(np.longdouble)
_ODD: Final = [float(c) for c in _ODD_WIDE]


def log1p_gap(x: Floats) -> Floats:
    """Return ``x - log(1 + x)``, elementwise for ``x > -1``, to full relative precision.

    With ``y = x / (2 + x)``: ``log(1 + x) = 2 artanh(y)`` and ``x - 2y = x y`` exactly, hence
    ``x - log(1 + x) = x y - 2 y^3 (1/3 + y^2/5 + y^4/7 + ...)``.

    Args:
        x: Values above -1, any shape.

    Returns:
        Array of the shape of ``x``; non-negative, zero only at 0 (or where the square underflows).

    Examples:
        >>> import numpy as np
        >>> log1p_gap(np.array([0.0, 1e-12, 1.0]))
        array([0.00000000e+00, 5.00000000e-25, 3.06852819e-01])
    """
    x = np.asarray(x, dtype=np.float64)
    result = np.empty_like(x)
    far = np.abs(x) > _SERIES_RADIUS
    result[far] = x[far] - np.log1p(x[far])
    result[~far] = log1p_gap_series(x[~far], _SERIES_TERMS)
    return result


def log1p_gap_series(x: Real, terms: int) -> Real:
    """Sum the first ``terms`` (at most 20) terms of the series in :func:`log1p_gap`, in the precision of ``x``.

    Args:
        x: Values of magnitude at most 1/2: an array, or one numpy number.
        terms: How many terms.

    Examples:
        >>> import numpy as np
        >>> log1p_gap_series(np.array([0.5]), 20) - (0.5 - np.log(1.5)) < 1e-16
        array([ True])
    """
    odd = _ODD_WIDE if x.dtype == np.longdouble else _ODD
    y = x / (2 + x)
    square = y * y
    tail = square * odd[terms] + odd[terms - 1]
    for term in range(terms - 2, 0, -1):
        tail = tail * square + odd[term]
    result: Real = y * (x - 2 * square * tail)
    return result


def ratio_gap(a: ArrayLike, b: ArrayLike) -> Floats:
    """Return ``a/b - 1 - log(a/b)``, elementwise for positive ``a`` and ``b``, to full relative precision.

    Near ``a = b`` it is :func:`log1p_gap` of the exact difference ``(a - b)/b``; otherwise the logarithm of the ratio
    is used, which is accurate also if ``a/b`` is very small.

    Examples:
        >>> ratio_gap([1.0, 1.0, 1e-30], [1.0, 2.0, 1.0]).round(6)
        array([ 0.      ,  0.193147, 68.077553])
    """
    top, bottom = np.broadcast_arrays(np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64))
    x = np.asarray((top - bottom) / bottom)
    near = np.abs(x) <= _SERIES_RADIUS
    result = np.empty_like(x)
    result[near] = log1p_gap_series(x[near], _SERIES_TERMS)
    result[~near] = x[~near] - np.log(top[~near] / bottom[~near])
    return result


def variance_gap(a: ArrayLike, b: ArrayLike) -> Floats:
    """Return ``s - 1 - log s`` with ``s = (a/b)^2``, for positive standard deviations ``a`` and ``b``.

    It is ``(a/b - 1)^2 + 2 (a/b - 1 - log(a/b))``: a sum of non-negative terms.

    Examples:
        >>> variance_gap(2.0, 1.0).round(6)
        np.float64(1.613706)
    """
    top, bottom = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    x = (top - bottom) / bottom
    return np.asarray(x * x + 2.0 * ratio_gap(top, bottom))


def bernoulli_kl(p: float, q: float) -> float:
    """Return ``p log(p/q) + (1-p) log((1-p)/(1-q))``, the KL divergence of two Bernoulli variables.

    Written as ``p g(q/p) + (1-p) g((1-q)/(1-p))`` with ``g(x) = x - 1 - log x``: both terms are non-negative, so
    nothing cancels if ``p`` and ``q`` are close, and the result has full relative precision. It is infinite if an
    outcome has probability 0 under ``q`` only.

    Examples:
        >>> bernoulli_kl(0.5, 0.5), round(bernoulli_kl(0.5, 0.25), 6), bernoulli_kl(0.5, 1.0)
        (0.0, 0.143841, inf)
    """
    if (q == 0.0 and p > 0.0) or (q == 1.0 and p < 1.0):
        return float("inf")
    if p == 0.0:
        return float(-np.log1p(-q))
    if p == 1.0:
        return float(-np.log(q))
    heads, tails = ratio_gap([q, 1.0 - q], [p, 1.0 - p])
    return float(p * heads + (1.0 - p) * tails)


# If a pivot is below this share of its diagonal entry, digits were lost that refinement restores.
_REFINE_BELOW: Final = 1e-4
_REFINEMENTS: Final = 4
_EPS: Final = float(np.finfo(np.float64).eps)


def cholesky(matrix: Floats, name: str = "matrix") -> Floats:
    r"""Return the lower factor ``L`` of ``matrix = L L'``, accurate even for a condition number near 1e14.

    A factorisation without refinement is exact for a matrix that differs by rounding, which changes the smallest
    eigenvalue of a matrix of condition 1e12 by 1e-4 of its value. If a pivot indicates such a loss, the factor is
    refined: the residual ``R = matrix - L L'`` is computed without rounding (:func:`_residual`), and with
    ``E = L^-1 R L^-T``, ``L <- L (I + lower(E) - diag(E)/2)`` squares the error. The remaining error is the rounding of
    ``L`` itself, which is amplified only by the square root of the condition number.

    Args:
        matrix: Symmetric ``J x J``; only symmetric up to the rounding of its type is required.
        name: Its name in an error.

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
        name: Its name in an error.
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


# From this number of right sides on, solving for them as rows is faster, up to two times.
_MANY_SIDES: Final = 32


def _solve_triangular(lower: Floats, right: Floats, *, transposed: bool) -> Floats:
    # A third of the time of `import suffice`, and not always needed.
    from scipy.linalg.blas import dtrsm
    from scipy.linalg.lapack import dtrtrs

    if not right.size:
        return np.zeros(right.shape)
    # LAPACK expects column order: it reads a matrix in row order as the transpose, so that no copy is needed.
    by_rows = lower.flags.c_contiguous and not lower.flags.f_contiguous
    matrix, below, turned = (lower.T, 0, not transposed) if by_rows else (lower, 1, transposed)
    if right.ndim == 2 and right.shape[1] >= _MANY_SIDES and np.all(lower.diagonal()):
        # The transposed equations: the right sides are rows, in column order.
        sides = np.array(right, dtype=np.float64, order="C").T
        return np.asarray(dtrsm(1.0, matrix, sides, side=1, lower=below, trans_a=not turned, overwrite_b=1).T)
    solution, failed = dtrtrs(matrix, right, lower=below, trans=turned)
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

    Each row of ``lower`` is split into parts with so few bits that sums of products of two parts are exact in double
    precision. The large products are subtracted from ``matrix`` first, then the small ones.
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
    """Return the smallest share of a diagonal entry that remains in its pivot."""
    return float(np.min(np.diag(lower) ** 2 / np.diag(matrix)))


def _not_positive_definite(matrix: Floats, name: str) -> NotPositiveDefiniteError:
    values = np.linalg.eigvalsh(matrix)
    return NotPositiveDefiniteError(
        f"{name} is not positive definite: its eigenvalues run from {values[0]:.3g} to {values[-1]:.3g}, and the "
        f"smallest must be clearly above 0 (beyond rounding). Remove linearly dependent or constant parameters, "
        f"or add a small value to the diagonal."
    )
