r"""Exact bounds on the number of wrong items in a pool, from a random sample without replacement.

Of :math:`M` items, :math:`D` are wrong. A sample of :math:`m` items contains :math:`X \sim \mathrm{Hyp}(M, D, m)` wrong
ones. The bounds are integers, and they are exact: they follow from comparisons :math:`P[X \le k] > \alpha`, and each
comparison is decided correctly, with :math:`\alpha` taken as the exact value of the given float.

A comparison is decided in double precision unless the two sides agree to nine digits. The probability is then computed
with 60 digits, and in integers if that is not enough either or if the numbers are small.
"""

import math
from collections.abc import Callable
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from suffice.arguments import floats, real
from suffice.errors import InvalidTypeError, InvalidValueError

Integers = NDArray[np.int64]

#: The largest number of items for which the error bounds of the arithmetic were derived.
LARGEST_POOL: Final = 10**12

# Relative error allowed to double precision. Its terms are products of up to 1e5 factors, each off by 4e-16 at most.
_MARGIN: Final = 1e-9
# A sum of decreasing terms ends when the rest, bounded by a geometric series, is below this share of it.
_NEGLIGIBLE: Final = 1e-13
_DIGITS: Final = 60
_DECIMAL_MARGIN: Final = Decimal(10) ** -40
_FRACTION_BITS: Final = 256
# From this number on, the Stirling series with 20 terms is accurate to more than 60 digits.
_STIRLING_FROM: Final = 256
# Binomial coefficients of fewer items than this are cheap as integers.
_FEW: Final = 2000
_TERMS_IN_PYTHON: Final = 64
_HALF_LOG_TWO_PI: Final = 0.5 * math.log(2.0 * math.pi)


# The public bounds.


@overload
def upper_bound(wrong: int, checked: int, pool: int, alpha: float) -> int: ...
@overload
def upper_bound(wrong: ArrayLike, checked: ArrayLike, pool: ArrayLike, alpha: ArrayLike) -> int | Integers: ...
def upper_bound(wrong: ArrayLike, checked: ArrayLike, pool: ArrayLike, alpha: ArrayLike) -> int | Integers:
    r"""Upper bound on the number of wrong items in a pool, from the number of wrong items in a random sample.

    .. math:: U(\alpha; M, m, k) = \max \{ D : P[\mathrm{Hyp}(M, D, m) \le k] > \alpha \}

    With probability at least :math:`1 - \alpha`, the pool contains at most :math:`U` wrong items, the :math:`k` of the
    sample included. The bound rises with ``wrong`` and ``pool``, and falls with ``checked`` and ``alpha``. Without a
    sample it is ``pool``; if every item was checked, it is ``wrong``.

    Args:
        wrong: ``k``, the number of wrong items in the sample; a whole number or an array of them, like the next two.
        checked: ``m``, the size of the sample, drawn uniformly without replacement.
        pool: ``M``, the number of items from which it was drawn, up to 1e12.
        alpha: Probability with which the bound may fail, above 0 and below 1.

    Returns:
        ``U``: an int, or an array of the shape to which the arguments broadcast.

    Raises:
        InvalidTypeError: An argument is not a number or an array of numbers.
        InvalidValueError: A count is not whole, ``wrong`` exceeds ``checked``, ``checked`` exceeds ``pool``, or
            ``alpha`` is not between 0 and 1.

    Examples:
        >>> upper_bound(wrong=3, checked=100, pool=4600, alpha=0.05)
        346
        >>> upper_bound([0, 1, 2], 100, 4600, 0.05)
        array([134, 212, 281])
    """
    return _elementwise(_upper, wrong, checked, pool, alpha)


@overload
def lower_bound(wrong: int, checked: int, pool: int, alpha: float) -> int: ...
@overload
def lower_bound(wrong: ArrayLike, checked: ArrayLike, pool: ArrayLike, alpha: ArrayLike) -> int | Integers: ...
def lower_bound(wrong: ArrayLike, checked: ArrayLike, pool: ArrayLike, alpha: ArrayLike) -> int | Integers:
    r"""Lower bound on the number of wrong items in a pool, from the number of wrong items in a random sample.

    .. math:: L(\alpha; M, m, k) = \min \{ D : P[\mathrm{Hyp}(M, D, m) \ge k] > \alpha \} = M - U(\alpha; M, m, m - k)

    With probability at least :math:`1 - \alpha`, the pool contains at least :math:`L` wrong items.

    Args:
        wrong: ``k``, the number of wrong items in the sample; a whole number or an array of them, like the next two.
        checked: ``m``, the size of the sample, drawn uniformly without replacement.
        pool: ``M``, the number of items from which it was drawn, up to 1e12.
        alpha: Probability with which the bound may fail, above 0 and below 1.

    Returns:
        ``L``: an int, or an array of the shape to which the arguments broadcast.

    Raises:
        InvalidTypeError: An argument is not a number or an array of numbers.
        InvalidValueError: As for :func:`upper_bound`.

    Examples:
        >>> lower_bound(wrong=3, checked=100, pool=4600, alpha=0.05)
        39
    """
    return _elementwise(lambda k, m, n, a: n - _upper(m - k, m, n, a), wrong, checked, pool, alpha)


def count_quantile(wrong_items: int, checked: int, pool: int, probability: float) -> int:
    r"""Least ``c`` with :math:`P[\mathrm{Hyp}(M, D, m) \le c] \ge` ``probability``, for ``D = wrong_items``.

    Args:
        wrong_items: ``D``, the number of wrong items in the pool.
        checked: ``m``, the size of the sample.
        pool: ``M``.
        probability: Above 0 and below 1.

    Examples:
        >>> count_quantile(wrong_items=230, checked=180, pool=4600, probability=0.8)
        11
    """
    least, most = max(0, checked - (pool - wrong_items)), min(wrong_items, checked)
    threshold = Fraction(probability)

    def reaches(count: int) -> bool:
        # The complement of P[D - X <= D - c - 1] > 1 - p, where D - X is the number of wrong items outside the sample.
        return not _exceeds(pool, wrong_items, pool - checked, wrong_items - count - 1, 1 - threshold)

    mean = checked * wrong_items / pool
    spread = math.sqrt(max(mean * (1.0 - wrong_items / pool) * (1.0 - checked / pool), 0.0))
    from scipy.special import ndtri  # takes as long to import as the rest, and is not always needed

    guess = mean + spread * float(ndtri(probability)) - 0.5
    # The last count that does not reach it, plus one.
    return 1 + last_that_holds(lambda c: c < least or (c < most and not reaches(c)), least - 1, most, guess, 1)


def probability_at_most(count: int, wrong_items: int, checked: int, pool: int) -> float:
    r""":math:`P[\mathrm{Hyp}(M, D, m) \le c]` for ``D = wrong_items``, in double precision.

    Args:
        count: ``c``.
        wrong_items: ``D``, the number of wrong items in the pool.
        checked: ``m``, the size of the sample.
        pool: ``M``.

    Examples:
        >>> round(probability_at_most(11, wrong_items=230, checked=180, pool=4600), 6)
        0.812089
    """
    if count >= min(wrong_items, checked):
        return 1.0
    if count < max(0, checked - (pool - wrong_items)):
        return 0.0
    lower = count < (wrong_items + 1) * (checked + 1) // (pool + 2)
    start = count if lower else count + 1
    first = math.exp(log_probability(pool, wrong_items, checked, start))
    tail = first * _tail_sum(pool, wrong_items, checked, start, lower=lower)
    return tail if lower else 1.0 - tail


# The search for the bound.


def _upper(wrong: int, checked: int, pool: int, alpha: float) -> int:
    """The bound of one sample: the last D that is not excluded."""
    least, most = wrong, pool - checked + wrong
    if least == most:
        return least
    threshold = Fraction(alpha)
    # The normal approximation of the interval (Wilson's, for a finite pool) is off by a few counts of the sample.
    from scipy.special import ndtri  # takes as long to import as the rest, and is not always needed

    left, z = 1.0 - checked / pool, max(0.0, -float(ndtri(alpha)))
    weight = z * z * left
    centre = wrong + 0.5 + 0.5 * weight
    spread = math.sqrt(max(weight * (0.25 * weight + (wrong + 0.5) * (1.0 - (wrong + 0.5) / (checked + 1.0))), 0.0))
    guess = pool * (centre + spread) / (checked + weight + 1.0)
    step = 1 + int(0.1 * pool / (checked + 1.0))
    return last_that_holds(
        lambda wrong_items: _exceeds(pool, wrong_items, checked, wrong, threshold), least, most, guess, step
    )


def last_that_holds(holds: Callable[[int], bool], least: int, most: int, guess: float, step: int) -> int:
    """The last integer in ``[least, most]`` at which a condition holds that holds at ``least`` and up to some integer.

    The search starts at ``guess``, with growing steps until the answer is enclosed.
    """
    low, high = least, most + 1
    at = int(min(max(guess, low), high))
    rising = falling = False
    while high - low > 1:
        at = min(max(at, low + 1), high - 1)
        if holds(at):
            low, rising = at, True
        else:
            high, falling = at, True
        if rising and falling:
            at = (low + high) // 2
        else:
            at, step = (low + step if rising else high - step), 3 * step
    return low


# The comparison of a probability with alpha.


def _exceeds(  # noqa: PLR0911 - one return for each way to decide
    pool: int, wrong_items: int, checked: int, count: int, alpha: Fraction
) -> bool:
    """Whether ``P[Hyp(pool, wrong_items, checked) <= count] > alpha``, decided exactly; ``0 < alpha < 1``."""
    if count >= min(wrong_items, checked):
        return True
    if count < max(0, checked - (pool - wrong_items)):
        return False
    if 2 * alpha == 1 and _is_half(pool, wrong_items, checked, count):
        return False
    # Sum the tail that does not contain the mode.
    mode = (wrong_items + 1) * (checked + 1) // (pool + 2)
    lower = count < mode
    start = count if lower else count + 1
    limit = alpha if lower else 1 - alpha
    log_limit = _log(limit)
    log_first = log_probability(pool, wrong_items, checked, start)
    difference = log_first - log_limit
    # The tail is at least its first term, and at most that many times its number of terms.
    if difference > 1.0:
        return lower
    if difference < -1.0 - math.log(1.0 + min(wrong_items, checked)):
        return not lower
    difference += math.log(_tail_sum(pool, wrong_items, checked, start, lower=lower))
    if abs(difference) > _MARGIN:
        return (difference > 0.0) == lower
    if min(wrong_items, checked, pool - wrong_items, pool - checked) > _FEW:
        close = _decimal_difference(pool, wrong_items, checked, start, limit, lower=lower)
        if abs(close) > _DECIMAL_MARGIN:
            return (close > 0) == lower
    return _exceeds_in_integers(pool, wrong_items, checked, count, alpha)


def _is_half(pool: int, wrong_items: int, checked: int, count: int) -> bool:
    """Whether symmetry makes ``P[X <= count]`` one half: X and m - X, or X and D - X, have the same distribution."""
    return (2 * wrong_items == pool and 2 * count + 1 == checked) or (
        2 * checked == pool and 2 * count + 1 == wrong_items
    )


def _log(value: Fraction) -> float:
    return math.log(value.numerator) - math.log(value.denominator) if value.numerator else -math.inf


def log_probability(pool: int, wrong_items: int, checked: int, count: int) -> float:
    r"""``log P[Hyp(pool, wrong_items, checked) = count]`` in double precision, without the cancellation of log-gammas.

    With :math:`p = m / M`, the probability is :math:`b(k; D) \, b(m - k; M - D) / b(m; M)` for the binomial
    probabilities :math:`b(x; n) = \binom{n}{x} p^x (1 - p)^{n - x}`. By Stirling's formula with its remainder
    :math:`s`, :math:`\log b(x; n) = s(n) - s(x) - s(n - x) + \frac12 \log \frac{n}{2 \pi x (n - x)} - d(x; n p) -
    d(n - x; n (1 - p))` with the deviance :math:`d(x; \mu) = x \log(x / \mu) + \mu - x`, which is not negative.
    """
    # The deviation k - m D / M is the same, up to its sign, in all four cells of the 2 x 2 table.
    deviation = count * pool - checked * wrong_items
    return (
        _log_binomial(count, wrong_items, checked, pool, deviation)
        + _log_binomial(checked - count, pool - wrong_items, checked, pool, -deviation)
        - _log_binomial(checked, pool, checked, pool, 0)
    )


def _log_binomial(count: int, items: int, checked: int, pool: int, deviation: int) -> float:
    """``log b(count; items)`` for ``p = checked / pool``; ``deviation`` is ``(count - items * p) * pool``."""
    if count == 0:
        return items * math.log1p(-checked / pool)
    if count == items:
        # log p = log1p(-(1 - p)), which is accurate where p is close to 1.
        return items * math.log1p(-(pool - checked) / pool) if 2 * checked > pool else items * math.log(checked / pool)
    other = items - count
    return (
        _stirling_rest(items)
        - _stirling_rest(count)
        - _stirling_rest(other)
        + 0.5 * (math.log(items / count) - math.log(other))
        - _HALF_LOG_TWO_PI
        - count * _log1p_gap(-deviation / (pool * count))
        - other * _log1p_gap(deviation / (pool * other))
    )


def _log1p_gap(x: float) -> float:
    """``x - log(1 + x)`` for one number; see :func:`suffice.numerics.log1p_gap`."""
    if abs(x) > 0.5:
        return x - math.log1p(x)
    y = x / (2.0 + x)
    square, total, power = y * y, 0.0, y * y * y
    for odd in range(3, 43, 2):
        term = power / odd
        total += term
        if abs(term) <= 1e-18 * abs(total):
            break
        power *= square
    return x * y - 2.0 * total


def _stirling_rest(n: int) -> float:
    """``log n! - ((n + 1/2) log n - n + log(2 pi) / 2)``."""
    if n < 16:
        return _SMALL_RESTS[n]
    inverse = 1.0 / n
    square = inverse * inverse
    return inverse * (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square * (1 / 1680 - square / 1188))))


_SMALL_RESTS: Final = [math.nan] + [
    math.log(math.factorial(n)) - ((n + 0.5) * math.log(n) - n + _HALF_LOG_TWO_PI) for n in range(1, 16)
]


def _tail_sum(pool: int, wrong_items: int, checked: int, start: int, *, lower: bool) -> float:
    """The sum of a tail that starts at ``start`` and leads away from the mode, divided by its first term."""
    # Both directions are the same sum for the wrong items (from the top down) and for the right ones.
    if lower:
        count, room = start, pool - wrong_items - checked + start
        up, down = wrong_items - start + 1, checked - start + 1
    else:
        count, room = wrong_items - start, checked - start
        up, down = start + 1, pool - wrong_items - checked + start + 1
    # Term x + 1 over term x is (count - x) (room - x) / ((up + x) (down + x)), which falls with x.
    total = term = 1.0
    for x in range(min(_TERMS_IN_PYTHON, count, room)):
        ratio = (count - x) * (room - x) / ((up + x) * (down + x))
        term *= ratio
        total += term
        if term * ratio <= _NEGLIGIBLE * total * (1.0 - ratio):
            return total
    begin, size = _TERMS_IN_PYTHON, 1024
    while begin < min(count, room):
        offsets = np.arange(begin, min(begin + size, count, room), dtype=np.float64)
        ratios = (count - offsets) / (up + offsets) * ((room - offsets) / (down + offsets))
        terms = term * np.cumprod(ratios)
        total, term, ratio = total + float(terms.sum()), float(terms[-1]), float(ratios[-1])
        if term * ratio <= _NEGLIGIBLE * total * (1.0 - ratio):
            break
        begin, size = begin + size, min(2 * size, 1 << 16)
    return total


def _decimal_difference(  # noqa: PLR0913 - the parameters of the distribution
    pool: int, wrong_items: int, checked: int, start: int, limit: Fraction, *, lower: bool
) -> Decimal:
    """The logarithm of a tail over ``limit``, with 40 correct decimals."""
    if lower:
        count, room = start, pool - wrong_items - checked + start
        up, down = wrong_items - start + 1, checked - start + 1
    else:
        count, room = wrong_items - start, checked - start
        up, down = start + 1, pool - wrong_items - checked + start + 1
    # Fixed-point numbers: rounding down loses less than one unit of the last bit in each term.
    total = term = 1 << _FRACTION_BITS
    for x in range(min(count, room)):
        term = term * ((count - x) * (room - x)) // ((up + x) * (down + x))
        if not term:
            break
        total += term
    with localcontext(Context(prec=_DIGITS)):
        log_total = Decimal(total).ln() - _FRACTION_BITS * Decimal(2).ln()
        over = (wrong_items, pool - wrong_items, checked, pool - checked)
        under = (start, wrong_items - start, checked - start, pool - wrong_items - checked + start, pool)
        log_first = sum(map(_log_factorial, over), Decimal(0)) - sum(map(_log_factorial, under), Decimal(0))
        return log_first + log_total - (Decimal(limit.numerator).ln() - Decimal(limit.denominator).ln())


@lru_cache(maxsize=256)
def _log_factorial(n: int) -> Decimal:
    """``log n!`` with 60 digits, as the active decimal context has."""
    if n < _STIRLING_FROM:
        return Decimal(math.factorial(n)).ln()
    at = Decimal(n)
    series = sum((c / at**power for power, c in _stirling_coefficients()), Decimal(0))
    return (at + Decimal("0.5")) * at.ln() - at + _log_two_pi() / 2 + series


@lru_cache(maxsize=1)
def _stirling_coefficients() -> list[tuple[int, Decimal]]:
    """Power of 1/n and coefficient ``B_2j / (2j (2j - 1))`` of the Stirling series, for j = 1 to 20."""
    bernoulli = [Fraction(1)]
    for n in range(1, 41):
        bernoulli.append(-sum((math.comb(n + 1, j) * bernoulli[j] for j in range(n)), Fraction(0)) / (n + 1))
    coefficients = [(2 * j - 1, bernoulli[2 * j] / (2 * j * (2 * j - 1))) for j in range(1, 21)]
    return [(power, Decimal(each.numerator) / Decimal(each.denominator)) for power, each in coefficients]


@lru_cache(maxsize=1)
def _log_two_pi() -> Decimal:
    """``log(2 pi)`` with 60 digits."""
    # Machin: pi / 4 = 4 arctan(1/5) - arctan(1/239), in fixed-point numbers of 80 digits.
    one = 10**80

    def arctan(inverse: int) -> int:
        power, total, j = one // inverse, 0, 0
        while power:
            total += (-1) ** j * (power // (2 * j + 1))
            power, j = power // inverse**2, j + 1
        return total

    return (2 * Decimal(4 * (4 * arctan(5) - arctan(239))) / one).ln()


def _exceeds_in_integers(pool: int, wrong_items: int, checked: int, count: int, alpha: Fraction) -> bool:
    """The comparison in integers: the number of samples with at most ``count`` wrong items, against all samples."""
    term = math.comb(wrong_items, count) * math.comb(pool - wrong_items, checked - count)
    total = 0
    for x in range(count, -1, -1):
        total += term
        if not term:
            break
        room = pool - wrong_items - checked + x
        term = term * (x * room) // ((wrong_items - x + 1) * (checked - x + 1))
    return total * alpha.denominator > alpha.numerator * math.comb(pool, checked)


# Arguments.


def _elementwise(
    bound: Callable[[int, int, int, float], int], wrong: Any, checked: Any, pool: Any, alpha: Any
) -> int | Integers:
    """Validate the arguments, broadcast them, and evaluate a bound at each element; equal elements once."""
    counts = [counted(wrong, "wrong"), counted(checked, "checked"), counted(pool, "pool")]
    levels = floats(alpha, "alpha")
    if not ((levels > 0.0) & (levels < 1.0)).all():
        raise InvalidValueError(f"alpha must be above 0 and below 1, not {alpha!r}")
    try:
        k, m, n, a = np.broadcast_arrays(*counts, levels)
    except ValueError:
        shapes = ", ".join(str(each.shape) for each in (*counts, levels))
        raise InvalidValueError(
            f"wrong, checked, pool and alpha must be numbers or arrays of one shape, not of shapes {shapes}"
        ) from None
    check_counts(k, m, n)
    if k.ndim == 0:
        return bound(int(k), int(m), int(n), float(a))
    cached = lru_cache(maxsize=None)(bound)
    cases = zip(k.ravel().tolist(), m.ravel().tolist(), n.ravel().tolist(), a.ravel().tolist(), strict=True)
    return np.array([cached(*case) for case in cases], dtype=np.int64).reshape(k.shape)


def counted(value: Any, name: str) -> Integers:
    """Return counts as an int64 array, or raise an error that names the argument."""
    try:
        array = np.asarray(value)
    except (TypeError, ValueError):
        raise InvalidTypeError(f"{name} must be a whole number or an array of them, not {value!r}") from None
    if array.dtype.kind not in "iu" or (array.size and not (array.min() >= 0 and array.max() <= LARGEST_POOL)):
        if array.dtype.kind not in "iufbO":
            raise InvalidTypeError(f"{name} must be a whole number or an array of them, not {value!r}")
        raise InvalidValueError(f"{name} must be a whole number from 0 to {LARGEST_POOL:,}, not {value!r}")
    return array.astype(np.int64)


def check_counts(wrong: ArrayLike, checked: ArrayLike, pool: ArrayLike, *, what: str = "wrong") -> None:
    """Raise an error unless ``wrong <= checked <= pool`` everywhere."""
    if np.any(np.greater(wrong, checked)):
        raise InvalidValueError(
            f"{what} must not exceed checked, the size of the sample; {what}={wrong!r}, {checked=!r}"
        )
    if np.any(np.greater(checked, pool)):
        raise InvalidValueError(f"checked must not exceed pool, the number of items; {checked=!r}, {pool=!r}")


def largest_count(most: int, checked: int, pool: int, alpha: float) -> int:
    r"""The largest number of wrong items in a sample with which at most ``most`` others are wrong; -1 if there is none.

    .. math::

       \max \{ k : U(\alpha; M, m, k) - k \le B \}
       = \max \{ k : P[\mathrm{Hyp}(M, B + k + 1, m) \le k] \le \alpha \}

    Args:
        most: ``B``, the largest acceptable number of wrong items outside the sample.
        checked: ``m``, the size of the sample.
        pool: ``M``.
        alpha: Error probability.

    Examples:
        >>> largest_count(200, checked=100, pool=4600, alpha=0.05), largest_count(100, 100, 4600, 0.05)
        (0, -1)
    """
    guess = checked * most / pool
    return last_that_holds(
        lambda count: count < 0 or upper_bound(count, checked, pool, alpha) - count <= most, -1, checked, guess, 1
    )


def exact_share(value: Any, name: str) -> Fraction:
    """Return a share as the exact decimal number given: 0.29 of 100 items are 29, although the float is below 0.29."""
    return Fraction(repr(real(value, name, "from 0 to 1", lambda x: 0.0 <= x <= 1.0)))


def probability(value: Any, name: str) -> float:
    """Return a number above 0 and below 1, or raise an error that names the argument."""
    return real(value, name, "above 0 and below 1", lambda x: 0.0 < x < 1.0)
