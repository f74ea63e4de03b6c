"""Parameters of rules as plain Python numbers, which JSON can hold, or an error that names them."""

import math
from typing import Any

import numpy as np

from suffice.errors import InvalidValueError


def whole(value: Any, name: str, *, least: int) -> int:
    """Return ``value`` as an int of at least ``least``; numpy's whole numbers count, ``True`` does not.

    Raises:
        InvalidValueError: It is not one.

    Examples:
        >>> whole(3, "calibration", least=1)
        3
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise InvalidValueError(f"{name} must be a whole number, {least} or more, not {value!r}")
    return int(value)


def real(value: Any, name: str) -> float:
    """Return ``value`` as a finite float; anything that is one number counts, ``True`` and text do not.

    Raises:
        InvalidValueError: It is not one.

    Examples:
        >>> real(1, "threshold")
        1.0
    """
    try:
        number = math.nan if isinstance(value, bool | str | bytes) else float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise InvalidValueError(f"{name} must be a finite number, not {value!r}")
    return number
