"""Measures of the agreement between two classifications of the same items."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.arguments import whole
from suffice.errors import InvalidValueError


def cohen_kappa(a: Any, b: Any) -> float:
    r"""Return the agreement of two classifications of the same items beyond chance.

    .. math:: \kappa = \frac{p_o - p_e}{1 - p_e}, \qquad p_o = \frac{1}{n} \sum_i [a_i = b_i],
              \qquad p_e = \sum_k \frac{n_k(a)}{n} \frac{n_k(b)}{n},

    with :math:`n_k` the number of items in class ``k``. It is from -1 to 1. If both put every item into the same single
    class (0/0), it is 1.

    Args:
        a: Class of each item, as a whole number from 0, ``n``.
        b: Class of each item in the other classification, ``n``.

    Raises:
        InvalidValueError: They are not classes of the same items, or there are no items.

    Reference: [Cohen1960].

    Examples:
        >>> round(cohen_kappa([0, 0, 1, 1], [0, 0, 1, 0]), 4)
        0.5
        >>> cohen_kappa([1, 1, 1], [1, 1, 1])
        1.0
    """
    a, b = _classes(a, "a"), _classes(b, "b")
    _require_same_items(a, b)
    n, k = len(a), max(int(a.max()), int(b.max())) + 1
    # Both terms times n squared, as integers, so that only the division rounds.
    agreed = n * int(np.count_nonzero(a == b))
    chance = int(np.bincount(a, minlength=k) @ np.bincount(b, minlength=k))
    return 1.0 if chance == n * n else (agreed - chance) / (n * n - chance)


def f_change(a: Any, b: Any, n_classes: int) -> float:
    r"""Return the difference of two classifications of the same items, as a change of the F score.

    .. math:: 1 - \frac{2 n_{11}}{2 n_{11} + n_{10} + n_{01}}

    with :math:`n_{11}` the number of items that are positive in both, :math:`n_{10}` and :math:`n_{01}` in one only.
    For two classes, the second one is positive. For more, it is the mean over the classes, each taken as positive. A
    class that is in neither (0/0) counts as unchanged: 0.

    Args:
        a: Class of each item, as a whole number from 0, ``n``.
        b: Class of each item in the other classification, ``n``.
        n_classes: Number of classes.

    Raises:
        InvalidValueError: They are not classes of the same items, there are no items, or a class is ``n_classes`` or
            more.

    Reference: [AltschulerBloodgood2019], for two classes; the mean over more is ours.

    Examples:
        >>> round(f_change([0, 1, 1, 1], [0, 1, 1, 0], n_classes=2), 4)
        0.2
        >>> f_change([0, 0], [0, 0], n_classes=2)
        0.0
    """
    a, b, k = _classes(a, "a"), _classes(b, "b"), whole(n_classes, "n_classes", least=1)
    _require_same_items(a, b)
    if max(a.max(), b.max()) >= k:
        raise InvalidValueError(
            f"n_classes is {k}, so classes must be from 0 to {k - 1}; one is {max(a.max(), b.max())}"
        )
    both = np.bincount(a[a == b], minlength=k)
    either = np.bincount(a, minlength=k) + np.bincount(b, minlength=k)
    changes = np.divide(either - 2 * both, either, out=np.zeros(k), where=either > 0)
    return float(changes[1] if k == 2 else changes.mean())


def _classes(value: Any, name: str) -> NDArray[np.intp]:
    array = np.asarray(value)
    if array.ndim != 1 or not array.size or array.dtype.kind not in "iu" or array.min() < 0:
        raise InvalidValueError(f"{name} must hold the class of each item, whole numbers from 0, at least one")
    return array.astype(np.intp, copy=False)


def _require_same_items(a: NDArray[np.intp], b: NDArray[np.intp]) -> None:
    if len(a) != len(b):
        raise InvalidValueError(f"a and b must be classes of the same items; a has {len(a)} items and b has {len(b)}")
