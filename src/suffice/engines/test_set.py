"""A test set that is kept up to date with a posterior: its error after every label."""

import numpy as np

from suffice.engines.rows import FeatureRows, KernelRows
from suffice.special import Floats


class FollowedError:
    r"""Expected squared error on a test set, :math:`\frac1m \sum_j (y_j - \mu_j)^2 + s_j`, after every label.

    Args:
        rows: The test points, following the posterior.
        y: Their labels, standardised, ``m``.

    Reference: [IshibashiHino2021] section 5.1, the expectation of the squared error over the posterior.
    """

    def __init__(self, rows: KernelRows | FeatureRows, y: Floats) -> None:
        self._rows = rows
        self._residual = np.array(y, dtype=np.float64)
        self._variance = float(rows.prior_variance().sum())

    def follow(self, white: Floats) -> Floats:
        """Catch up with the posterior.

        Args:
            white: The surprises of the labels that came since the last time, ``k``.

        Returns:
            The error after each of them, ``k``.
        """
        squared, falls = np.zeros(len(white)), np.zeros(len(white))
        for tile, rows in self._rows.follow():
            falls += np.einsum("ij,ij->i", rows, rows)
            moves = np.cumsum(rows * white[:, None], axis=0)
            left = self._residual[tile] - moves
            squared += np.einsum("ij,ij->i", left, left)
            self._residual[tile] = left[-1]
        variance = self._variance - np.cumsum(falls)
        self._variance = float(variance[-1])
        return np.asarray((squared + np.maximum(variance, 0.0)) / len(self._residual))
