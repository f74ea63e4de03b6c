r"""Bounds on the change of the generalisation error, from a KL divergence.

For a loss in :math:`[a, b]` and two distributions :math:`p, q` over the parameters, the expected losses differ by at
most :math:`(b - a)` times the numbers that these functions return. No assumption is made on how the examples were
chosen. Every function takes scalars (and returns a float) or arrays (and returns an array of the same shape).
"""

import math
from collections.abc import Callable
from typing import Final, TypeGuard, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike

from suffice.arguments import floats, real
from suffice.errors import InfiniteDivergenceError, InvalidValueError
from suffice.numerics import Floats, log1p_gap_series

# One number or an array of them.
Numbers = TypeVar("Numbers", Floats, np.float64)

#: A KL this far below 0, relative to the size of the terms it was summed from, is rounding and counts as 0.
ROUNDING: Final = 1e-9

# Values are processed in blocks that stay in the cache, so that the loop is limited by arithmetic, not by memory.
_BLOCK: Final = 1 << 13
# Bennett's function at r = 1/2: below it the series in r, above it the plain logarithm.
_NEAR_KL: Final = 1.5 * float(np.log(1.5)) - 0.5
# Below this r, its square underflows; r = sqrt(2 kl) is exact to the last digit there.
_UNDERFLOWS: Final = 1e-140


@overload
def risk_gap(
    kl: float, *, second_moment: float | None = None, loss_range: float = 1.0, terms: ArrayLike = 1.0
) -> float: ...
@overload
def risk_gap(
    kl: ArrayLike, *, second_moment: ArrayLike | None = None, loss_range: float = 1.0, terms: ArrayLike = 1.0
) -> float | Floats: ...
def risk_gap(
    kl: ArrayLike, *, second_moment: ArrayLike | None = None, loss_range: float = 1.0, terms: ArrayLike = 1.0
) -> float | Floats:
    r"""Bound ``E_p[L] - E_q[L]`` as a fraction of the loss range, from ``kl = KL[p||q]``.

    .. math:: r(\mathrm{KL}) = \exp\{W_0((\mathrm{KL} - 1)/e) + 1\} - 1,
              \qquad (1 + r)\log(1 + r) - r = \mathrm{KL}.

    The second form, the inverse of Bennett's function, is used for the computation, because the Lambert form loses half
    its digits below ``KL = 1e-6``. The Newton step is
    :math:`r \leftarrow (\mathrm{KL} + r - \log(1+r)) / \log(1+r)`, a sum of positive terms.

    With a known second moment :math:`v \ge E_q[(L - a)^2]` the bound is
    :math:`\frac{v}{b-a} r\bigl(\frac{(b-a)^2}{v}\mathrm{KL}\bigr)`; this is returned divided by :math:`b - a`.

    Args:
        kl: ``KL[p||q]``, finite and non-negative; any shape.
        second_moment: ``v``, a bound on the second moment under ``q`` of the loss shifted to start at 0.
        loss_range: ``b - a``; used with ``second_moment`` only.
        terms: Size of the terms from which ``kl`` was summed: a ``kl`` down to ``-1e-9 * terms`` counts as 0.

    Returns:
        ``r``; 0 exactly at 0, rising with ``kl``. A value above 1 is no information about a loss in ``[a, b]``.

    Raises:
        InvalidValueError: A KL is negative or NaN, or ``second_moment`` or ``loss_range`` is out of range.
        InfiniteDivergenceError: A KL is infinite.

    Reference: [IshibashiHino2021] Theorem 1 and its footnote.

    Examples:
        >>> risk_gap(0.0)
        0.0
        >>> f"{risk_gap(1e-20):.12e}"
        '1.414213562406e-10'
        >>> risk_gap([0.01, 1.0]).round(6)
        array([0.144717, 1.718282])
        >>> round(risk_gap(0.01, second_moment=0.1, loss_range=1.0), 6)
        0.047943
    """
    if second_moment is None and _is_plain(kl):
        return _inverse_bennett_of_one(kl)
    clean = nonnegative(kl, "kl", terms=terms)
    if second_moment is None:
        return _shaped(_in_blocks(_inverse_bennett, clean))
    share = _moment_share(second_moment, loss_range)
    clean, share = (np.array(a) for a in np.broadcast_arrays(clean, share))
    known = share > 0.0
    with np.errstate(over="ignore"):
        scaled = np.divide(clean, share, out=np.zeros_like(clean), where=known)
    if not np.isfinite(scaled).all():
        raise InvalidValueError(
            "second_moment is so small beside kl that loss_range**2 * kl / second_moment overflows; "
            "leave second_moment out to use the loss range alone"
        )
    return _shaped(share * _in_blocks(_inverse_bennett, scaled))


@overload
def total_variation(kl_pq: float, kl_qp: float | None = None, *, terms: ArrayLike = 1.0) -> float: ...
@overload
def total_variation(kl_pq: ArrayLike, kl_qp: ArrayLike | None = None, *, terms: ArrayLike = 1.0) -> float | Floats: ...
def total_variation(kl_pq: ArrayLike, kl_qp: ArrayLike | None = None, *, terms: ArrayLike = 1.0) -> float | Floats:
    r"""Bound the total variation of ``p`` and ``q``, and so ``|E_p[L] - E_q[L]|`` as a fraction of the loss range.

    .. math:: \mathrm{TV} \le \min_{K \in \{\mathrm{KL}[p\|q], \mathrm{KL}[q\|p]\}}
              \min\bigl(\sqrt{K/2}, \sqrt{1 - e^{-K}}\bigr)

    This is tighter than the paper's :func:`risk_gap`, which is at least twice as large for one direction, and it never
    exceeds 1. Use it for an absolute certificate.

    Args:
        kl_pq: ``KL[p||q]``, finite and non-negative; any shape.
        kl_qp: ``KL[q||p]``, if known: total variation is symmetric, so the smaller of the two is used.
        terms: As in :func:`risk_gap`.

    Returns:
        A bound in ``[0, 1]``; 0 exactly at 0.

    Raises:
        InvalidValueError: A KL is negative or NaN.
        InfiniteDivergenceError: A KL is infinite.

    Reference: [Pinsker1964]; [BretagnolleHuber1979].

    Examples:
        >>> total_variation(0.02, 0.08)
        0.1
        >>> total_variation([0.0, 8.0]).round(6)
        array([0.      , 0.999832])
    """
    if _is_plain(kl_pq) and _is_plain(kl_qp):
        least = np.float64(min(kl_pq, kl_qp))
        return float(min(np.sqrt(least / 2.0), np.sqrt(-np.expm1(-least))))
    smaller = nonnegative(kl_pq, "kl_pq", terms=terms)
    if kl_qp is not None:
        smaller = np.minimum(smaller, nonnegative(kl_qp, "kl_qp", terms=terms))
    return _shaped(np.minimum(np.sqrt(smaller / 2.0), np.sqrt(-np.expm1(-smaller))))


@overload
def threshold(eta: float, delta: float) -> float: ...
@overload
def threshold(eta: ArrayLike, delta: ArrayLike) -> float | Floats: ...
def threshold(eta: ArrayLike, delta: ArrayLike) -> float | Floats:
    r"""Threshold on the error ratio that gives the guarantee of Theorem 2.

    .. math:: \lambda = \eta \sqrt{-2 / \log(\delta / 2)}

    Stopping at a ratio at most :math:`\lambda` gives :math:`|E_t - E[E_t | past]| \le (b - a)\gamma\eta` with
    probability at least :math:`1 - \delta`, if the expected errors are a supermartingale.

    Args:
        eta: Size of the change that is tolerated, relative to the normaliser gamma; inside (0, 1).
        delta: Probability that the guarantee may fail; inside (0, 1).

    Returns:
        ``lambda``, broadcast over ``eta`` and ``delta``.

    Raises:
        InvalidValueError: ``eta`` or ``delta`` is not strictly between 0 and 1.

    Reference: [IshibashiHino2021] Theorem 2.

    Examples:
        >>> round(threshold(eta=0.05, delta=0.05), 6)
        0.036816
    """
    eta_values, delta_values = (_open_unit(v, name) for v, name in ((eta, "eta"), (delta, "delta")))
    # -log(delta/2) as a difference of logs: delta/2 may underflow, and log 2 - log delta never cancels.
    return _shaped(eta_values * np.sqrt(2.0 / (np.log(2.0) - np.log(delta_values))))


def nonnegative(kl: ArrayLike, name: str, *, terms: ArrayLike = 1.0) -> Floats:
    """Return ``kl`` as a float array with rounding below 0 set to 0, or raise an error.

    Args:
        kl: One or more KL divergences.
        name: Name of the argument in an error.
        terms: Size of the terms that were summed; a value below ``-1e-9 * terms`` is an error, not rounding.

    Returns:
        A new array of the same shape.

    Raises:
        InvalidTypeError: ``kl`` is not numeric.
        InvalidValueError: A value is NaN, or negative beyond rounding.
        InfiniteDivergenceError: A value is infinite.

    Examples:
        >>> nonnegative([-1e-12, 0.5], "kl")
        array([0. , 0.5])
    """
    values = floats(kl, name)
    _refuse(np.isnan(values), values, f"{name} is NaN", "a KL divergence is a number: check the two posteriors")
    _refuse(
        np.isinf(values) & (values > 0),
        values,
        f"{name} is infinite",
        "the first posterior gives mass where the second gives none, so nothing is bounded",
        InfiniteDivergenceError,
    )
    _refuse(
        values < -ROUNDING * np.asarray(terms, dtype=np.float64),
        values,
        f"{name} is negative",
        "a KL divergence is at least 0, and this is more than rounding",
    )
    return np.maximum(values, 0.0)


def _inverse_bennett(kl: Floats) -> Floats:
    """Solve ``(1 + r) log(1 + r) - r = kl`` for ``r >= 0``.

    Newton's method in double precision, then one step in extended precision, rounded once. The error is so far below
    half a unit in the last place that the result never falls when ``kl`` rises, even between adjacent floats. (On a
    platform without extended precision the last step is in double precision.)
    """
    r: Floats = np.sqrt(2.0) * np.sqrt(kl)
    near, far = (r > _UNDERFLOWS) & (kl < _NEAR_KL), kl >= _NEAR_KL
    r[near] = _near(kl[near])
    r[far] = _far(kl[far])
    return r


def _inverse_bennett_of_one(kl: float) -> float:
    """Return the same for one number, in a tenth of the time of an array with one entry."""
    number = np.float64(kl)
    if number >= _NEAR_KL:
        return float(_far(number))
    r = math.sqrt(2.0) * math.sqrt(kl)
    if r <= _UNDERFLOWS:
        return r
    return float(_near(number, terms=15 if kl > 1e-2 else 9 if kl > 1e-4 else 6))


def _near(kl: Numbers, terms: int = 15) -> Numbers:
    # r = w + w^2/6 - w^3/72 + w^4/270 - ..., w = sqrt(2 kl); its error is below 1e-5 here, and each step squares it.
    w = np.sqrt(2.0 * kl)
    r = w * (1.0 + w * (1 / 6 - w * (1 / 72 - w / 270)))
    gap = log1p_gap_series(r, terms)
    wide = ((kl + gap) / (r - gap)).astype(np.longdouble)
    wide_gap = log1p_gap_series(wide, terms)
    result: Numbers = ((kl + wide_gap) / (wide - wide_gap)).astype(np.float64)
    return result


def _far(kl: Numbers) -> Numbers:
    # The step is nearly independent of r when r is large, so one starting value is sufficient up to 1e308.
    r = np.sqrt(2.0) * np.sqrt(kl) + kl / 3.0
    for _ in range(5):
        log1p = np.log1p(r)
        r = kl / log1p + (r - log1p) / log1p
    wide = r.astype(np.longdouble)
    log1p_wide = np.log1p(wide)
    result: Numbers = (kl / log1p_wide + (wide - log1p_wide) / log1p_wide).astype(np.float64)
    return result


def _is_plain(kl: object) -> TypeGuard[float]:
    """Whether ``kl`` is one valid number, as at every step of a labelling loop."""
    return isinstance(kl, float) and 0.0 <= kl < math.inf


def _in_blocks(function: Callable[[Floats], Floats], values: Floats) -> Floats:
    flat = values.ravel()
    if flat.size <= _BLOCK:
        return function(flat).reshape(values.shape)
    result = np.empty_like(flat)
    for start in range(0, flat.size, _BLOCK):
        result[start : start + _BLOCK] = function(flat[start : start + _BLOCK])
    return result.reshape(values.shape)


def _moment_share(second_moment: ArrayLike, loss_range: float) -> Floats:
    width = real(loss_range, "loss_range", "above 0", lambda x: x > 0.0)
    moment = floats(second_moment, "second_moment")
    bad = ~(np.isfinite(moment) & (moment >= 0.0))
    _refuse(bad, moment, "second_moment is not a finite number >= 0", "it bounds the mean of a squared loss")
    return np.asarray(moment / width / width)


def _open_unit(value: ArrayLike, name: str) -> Floats:
    values = floats(value, name)
    bad = ~((values > 0.0) & (values < 1.0))
    _refuse(bad, values, f"{name} is not between 0 and 1", "both ends are excluded")
    return values


def _refuse(
    bad: np.ndarray[tuple[int, ...], np.dtype[np.bool_]],
    values: Floats,
    problem: str,
    remedy: str,
    error: type[InvalidValueError] = InvalidValueError,
) -> None:
    if not bad.any():
        return
    index = tuple(int(i) for i in np.argwhere(bad)[0])
    where = f" at index {index[0] if len(index) == 1 else index}" if index else ""
    raise error(f"{problem}{where} (value {float(values[index])!r}): {remedy}")


def _shaped(values: Floats) -> float | Floats:
    return float(values) if np.ndim(values) == 0 else values
