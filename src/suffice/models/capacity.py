"""Choice of the number of ordered components that a classifier uses, from its labels."""

from collections.abc import Sequence
from operator import index
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from suffice.errors import InvalidTypeError, InvalidValueError
from suffice.models.laplace import GrowingPosterior, laplace, settle_alpha
from suffice.models.predictive import left_out_loss
from suffice.models.threads import one_thread
from suffice.numerics import Floats

#: Largest number of components of a text that are computed.
MOST_COMPONENTS: Final = 400
#: Largest number of weights of a classifier. With this number it learns a label in a few tenths of a second.
MOST_WEIGHTS: Final = 1000
#: Smallest number of components that a classifier uses, if there are that many.
FEWEST_COMPONENTS: Final = 25
# The same for principal components of inputs with many columns, and their number. With these a label of a pool of
# 10,000 items with 10 classes takes some 50 ms, and more components had lower errors only after 500 labels.
_MOST_PRINCIPAL_WEIGHTS: Final = 500
_MOST_PRINCIPAL: Final = 100
# Largest number of entries in a table of components (200 components of 100,000 texts), so that a pool and its copies
# fit into memory.
_MOST_NUMBERS: Final = 20_000_000
_FEWEST_FEATURES: Final = 5


def most_features(n_classes: int) -> int:
    """Return the largest number of features with which a classifier has at most 1000 weights, but at least 5.

    Examples:
        >>> most_features(2), most_features(6)
        (999, 165)
    """
    return max(_FEWEST_FEATURES, MOST_WEIGHTS // (n_classes if n_classes > 2 else 1) - 1)


def most_components(n_classes: int, n_items: int) -> int:
    """Return the number of components of a text to compute: all that a classifier can use, fewer for a very large pool.

    Examples:
        >>> most_components(2, 5000), most_components(6, 5000), most_components(2, 100_000)
        (400, 165, 200)
    """
    return max(_FEWEST_FEATURES, min(MOST_COMPONENTS, most_features(n_classes), _MOST_NUMBERS // max(n_items, 1)))


def most_principal(n_classes: int) -> int:
    """Return the number of principal components that a classifier uses at most in place of many columns.

    As many as take 500 weights, at most 100. If these are fewer than 25: as many as take 1000 weights, at most 25.

    Examples:
        >>> most_principal(2), most_principal(10), most_principal(26), most_principal(100)
        (100, 49, 25, 9)
    """
    few = _MOST_PRINCIPAL_WEIGHTS // (n_classes if n_classes > 2 else 1) - 1
    return min(_MOST_PRINCIPAL, max(few, min(FEWEST_COMPONENTS, most_features(n_classes))))


class Capacity:
    """The features that a classifier uses: the first ``d`` of each group of ordered components, and all others.

    Args:
        groups: First column and column after the last of each group, ``0 <= first < after <= n_features``.
        n_features: ``D``, without a constant.
        intercept: Whether a constant feature is in front of the others.

    Raises:
        InvalidTypeError: The groups are not pairs of whole numbers.
        InvalidValueError: A group does not fit, or two overlap.

    Examples:
        >>> capacity = Capacity([(1, 101)], 101, intercept=True)
        >>> capacity.choices(n_labels=80, n_classes=2), capacity.choices(n_labels=80, n_classes=30)
        ([25, 50], [25, 31])
        >>> capacity.columns(25)
        slice(0, 27, None)
    """

    def __init__(self, groups: Sequence[Sequence[int]], n_features: int, *, intercept: bool) -> None:
        try:
            pairs = sorted((index(first), index(after)) for first, after in groups)
        except (TypeError, ValueError):
            raise InvalidTypeError(
                f"components must be pairs of columns such as [(0, 400)], first and after the last, not {groups!r}"
            ) from None
        ends = [0, *(end for pair in pairs for end in pair), n_features]
        if ends != sorted(ends) or any(first == after for first, after in pairs):
            raise InvalidValueError(
                f"components must be pairs of columns from 0 to {n_features} that do not overlap, each the first and "
                f"the one after the last, not {list(pairs)}"
            )
        self._groups, self._n_features, self._intercept = pairs, n_features, int(intercept)

    @property
    def most(self) -> int:
        """Number of components of the largest group."""
        return max((after - first for first, after in self._groups), default=0)

    def width(self, d: int) -> int:
        """Number of features that are used with ``d`` components, including the constant."""
        left_out = sum(max(0, after - first - d) for first, after in self._groups)
        return self._intercept + self._n_features - left_out

    def columns(self, d: int) -> slice | NDArray[np.intp]:
        """Columns that are used with ``d`` components, including the constant; a slice if they are the first ones."""
        used = np.ones(self._intercept + self._n_features, dtype=bool)
        for first, after in self._groups:
            used[self._intercept + min(first + d, after) : self._intercept + after] = False
        found = np.flatnonzero(used)
        return slice(0, len(found)) if len(found) == found[-1] + 1 else found

    def choices(self, n_labels: int, n_classes: int) -> list[int]:
        """Numbers of components to choose from: 25, 50, 100, ..., all.

        At most the number of labels, and with at most 1000 weights. The first one is always included.
        """
        outputs = n_classes if n_classes > 2 else 1
        fitting = [d for d in range(1, self.most + 1) if outputs * self.width(d) <= MOST_WEIGHTS]
        largest = max(fitting, default=1)
        steps = [FEWEST_COMPONENTS]
        while 2 * steps[-1] < largest:
            steps.append(2 * steps[-1])
        steps = [min(FEWEST_COMPONENTS, self.most), *(d for d in (*steps[1:], largest) if d > FEWEST_COMPONENTS)]
        return [d for d in dict.fromkeys(steps) if d <= max(n_labels, steps[0])]

    @one_thread()
    def choose(self, features: Floats, codes: Any, n_classes: int, alpha: float, *, learn: bool) -> tuple[int, float]:
        """Return the number of components, and the prior precision, with the best leave-one-out predictions.

        The measure is :func:`~suffice.models.predictive.left_out_loss`. If two are equal, the smaller number is chosen.

        Args:
            features: All columns of the labelled items, including the constant.
            codes: Their classes as codes.
            n_classes: ``K``.
            alpha: The prior precision; the start of the search if it is learned.
            learn: Whether the prior precision is learned for each number of components.
        """
        found = []
        for d in self.choices(len(codes), n_classes):
            posterior: GrowingPosterior = laplace(features[:, self.columns(d)], codes, n_classes, alpha)
            posterior = settle_alpha(posterior) if learn else posterior
            found.append((left_out_loss(posterior), d, posterior.alpha))
        _, d, precision = min(found)
        return d, precision
