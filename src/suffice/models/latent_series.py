"""Means and variances of the logits of the same rows under many posteriors of two classes."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from suffice.models.laplace import SAFE_PIVOT, Snapshot, latent
from suffice.numerics import Floats

# Largest size in bytes of the products of features, and of the posteriors that wait.
_LARGEST: Final = 1 << 26
# Largest number of posteriors at a time.
_MOST: Final = 64
#: Number of posteriors from which on it is faster than one after the other.
FEWEST: Final = 8


def most_together(features: Floats) -> int:
    """How many posteriors :class:`LatentSeries` should be given at a time; 0 if it would take too much memory.

    Args:
        features: ``m x J``.

    Examples:
        >>> most_together(np.ones((5000, 15))), most_together(np.ones((5000, 100)))
        (64, 0)
    """
    m, J = features.shape
    # A posterior has a Hessian, its factor and the inverse of that.
    most = min(_MOST, _LARGEST // (24 * J * J))
    return most if most >= FEWEST and 4 * m * J * (J + 1) <= _LARGEST else 0


class LatentSeries:
    r"""Means and variances of the logits of fixed rows under many posteriors, by one product for all of them.

    A variance is linear in the covariance :math:`S`: :math:`x'Sx = \sum_{i \le j} c_{ij} x_i x_j` with
    :math:`c_{ii} = S_{ii}` and :math:`c_{ij} = 2 S_{ij}`. The products :math:`x_i x_j` are computed once,
    ``J (J + 1) / 2`` for a row, so that :math:`k` posteriors take one product of large matrices, at half the operations
    of products with all of :math:`S`.

    Args:
        features: The rows, ``m x J``.

    Examples:
        >>> from suffice.models.laplace import Laplace
        >>> state = Laplace(2, 2, alpha=4.0).snapshot()
        >>> LatentSeries(np.array([[1.0, 2.0]])).of([state])
        (array([[0.]]), array([[1.25]]))
    """

    def __init__(self, features: Floats) -> None:
        self._features, self._columns = features, np.ascontiguousarray(features.T)
        self._pairs = np.triu_indices(features.shape[1])
        self._products = self._columns[self._pairs[0]]
        for row, second in enumerate(self._pairs[1]):
            self._products[row] *= self._columns[second]

    def of(self, states: Sequence[Snapshot]) -> tuple[Floats, Floats]:
        """Mean and variance of each row under each posterior, ``k x m`` numbers each."""
        first, second = self._pairs
        shares = np.where(first == second, 1.0, 2.0)
        packed = np.empty((len(states), len(shares)))
        for row, state in zip(packed, states, strict=True):
            np.multiply((state.inverse_factor.T @ state.inverse_factor)[first, second], shares, out=row)
        means = np.array([state.weights for state in states]).reshape(len(states), -1) @ self._columns
        variances = packed @ self._products
        for number, state in enumerate(states):
            if state.pivot < SAFE_PIVOT:
                means[number], variances[number] = latent(state, 1, self._features)
        return means, variances
