"""Descriptions of arrays that tell runs apart: equal arrays have equal ones, up to rounding.

Features that are computed again on another processor differ in their last bits. Two weighted sums of all values, with
fixed weights, then differ by rounding only. Another order of the rows or columns changes them as other values do.
"""

import re
from typing import Any, Final
from zlib import crc32

import numpy as np

_SUMS: Final = 2
# Largest difference of the sums, relative to the norm of all values.
_ROUNDING: Final = 1e-7
_FORM: Final = re.compile(
    r"(?P<shape>\S+) with checksum (?P<sum>\w+)(?:, sums (?P<sums>\S+ \S+) and norm (?P<norm>\S+))?"
)


def described_array(array: Any) -> str:
    """A description of an array: its shape and a checksum, and for finite numbers with fractions also sums.

    Args:
        array: A numpy array of numbers or texts.

    Examples:
        >>> import numpy as np
        >>> described_array(np.array(["a", "b"]))
        '2 with checksum 9e83486d'
        >>> X = np.array([[0.5, 1.0], [2.0, 4.0]])
        >>> is_same_array(described_array(X), described_array(X * (1.0 + 1e-12)))
        True
        >>> is_same_array(described_array(X), described_array(X[::-1]))
        False
    """
    text = array if array.dtype.kind not in "OU" else np.char.encode(array.astype(str), "utf-8")
    shape = "x".join(map(str, array.shape))
    exact = f"{shape} with checksum {crc32(np.ascontiguousarray(text).tobytes()):08x}"
    if array.dtype.kind != "f" or not array.size:
        return exact
    rows = array.reshape(len(array), -1)
    norm = float(np.linalg.norm(rows))
    if not np.isfinite(norm):
        return exact
    rng = np.random.default_rng(0)
    sums = []
    for _ in range(_SUMS):
        of_rows, of_columns = rng.uniform(0.5, 1.5, len(rows)), rng.uniform(0.5, 1.5, rows.shape[1])
        sums.append(float(of_rows @ (rows @ of_columns).astype(np.float64)))
    return f"{exact}, sums {' '.join(f'{each:.17g}' for each in sums)} and norm {norm:.6g}"


def is_same_array(known: Any, value: Any) -> bool:
    """Whether two results of :func:`described_array` are those of equal arrays; one may be of an earlier version.

    Other values are the same if they are equal.

    Args:
        known: What was saved.
        value: What is there now.
    """
    if known == value:
        return True
    if not isinstance(known, str) or not isinstance(value, str):
        return False
    one, other = _FORM.fullmatch(known), _FORM.fullmatch(value)
    if one is None or other is None or one["shape"] != other["shape"]:
        return False
    if one["sum"] == other["sum"]:
        return True
    if one["sums"] is None or other["sums"] is None:
        return False
    largest = _ROUNDING * float(one["norm"])
    pairs = zip(one["sums"].split(), other["sums"].split(), strict=True)
    return all(abs(float(a) - float(b)) <= largest for a, b in pairs)
