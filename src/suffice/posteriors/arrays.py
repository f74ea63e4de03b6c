"""Arrays as parts of a value object: copied, finite, never written to again."""

import numpy as np
from numpy.typing import ArrayLike

from suffice.errors import InvalidTypeError, InvalidValueError
from suffice.special import Floats


def frozen(value: ArrayLike, name: str, *, ndim: int | None = None) -> Floats:
    """Return a read-only float64 copy of ``value``, or say what is wrong with it.

    Args:
        value: Anything numpy can turn into numbers.
        name: What to call it in an error.
        ndim: Number of dimensions it must have; any number if left out.

    Raises:
        InvalidTypeError: ``value`` is not numeric.
        InvalidValueError: A wrong number of dimensions, or a NaN or infinite entry.

    Examples:
        >>> frozen([1, 2], "mean", ndim=1)
        array([1., 2.])
    """
    try:
        array = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidTypeError(f"{name} must be an array of numbers, not {type(value).__name__}") from None
    if ndim is not None and array.ndim != ndim:
        raise InvalidValueError(f"{name} must have {ndim} dimension(s), but its shape is {array.shape}")
    bad = np.argwhere(~np.isfinite(array))
    if len(bad):
        index = tuple(int(i) for i in bad[0])
        raise InvalidValueError(f"{name} must be finite, but is {array[index]} at index {index}")
    array.flags.writeable = False
    return array


def positive(value: float, name: str) -> float:
    """Return ``value`` as a float if it is finite and above 0.

    Raises:
        InvalidValueError: It is not.

    Examples:
        >>> positive(2, "noise")
        2.0
    """
    number = float(value)
    if not (np.isfinite(number) and number > 0.0):
        raise InvalidValueError(f"{name} must be a finite number above 0, not {value!r}")
    return number
