"""Elementary functions that keep full precision near zero."""

from typing import Final, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

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

    Near ``a = b`` it is :func:`log1p_gap` of the exact difference ``(a - b)/b``; elsewhere the logarithm of the ratio
    itself, which stays right when ``a/b`` is tiny.

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
    """Return ``p log(p/q) + (1-p) log((1-p)/(1-q))``, the KL divergence of two coins, to full relative precision.

    Written as ``p g(q/p) + (1-p) g((1-q)/(1-p))`` with ``g(x) = x - 1 - log x``: both terms are non-negative, so
    nothing cancels when ``p`` and ``q`` are close. Infinite where ``p`` gives mass that ``q`` does not.

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
