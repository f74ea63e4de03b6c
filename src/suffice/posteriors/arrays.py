"""Arrays as parts of a value object: checked, copied, never written to again."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from suffice.arguments import floats
from suffice.errors import InvalidValueError
from suffice.special import Floats


class Value:
    """Base of value objects that hold arrays: the arrays stay read-only after copying and unpickling."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        for part in state.values():
            if isinstance(part, np.ndarray):
                part.flags.writeable = False
        self.__dict__.update(state)


def frozen(value: ArrayLike, name: str, *, ndim: int | None = None, promote: bool = False) -> Floats:
    """Return a read-only float64 copy of ``value``, or say what is wrong with it.

    Args:
        value: Anything that can be turned into numbers.
        name: What to call it in an error.
        ndim: Number of dimensions it must have; any number if left out.
        promote: Whether fewer dimensions than ``ndim`` are filled up with axes of length 1.

    Raises:
        InvalidTypeError: ``value`` is not numeric.
        InvalidValueError: A wrong number of dimensions, or a NaN or infinite entry.

    Examples:
        >>> frozen([1, 2], "mean", ndim=1)
        array([1., 2.])
    """
    array = floats(value, name)
    if promote and ndim is not None:
        array = array.reshape((1,) * (ndim - array.ndim) + array.shape)
    if ndim is not None and array.ndim != ndim:
        raise InvalidValueError(f"{name} must have {ndim} dimension(s), but its shape is {array.shape}")
    bad = np.argwhere(~np.isfinite(array))
    if len(bad):
        index = tuple(int(i) for i in bad[0])
        raise InvalidValueError(f"{name} must be finite, but is {array[index]} at index {index}")
    array.flags.writeable = False
    return array
