"""A test set that is kept up to date with a posterior: its error after every label."""

import numpy as np

from suffice.engines.rows import FollowedRows
from suffice.special import Floats


class FollowedError:
    r"""Expected squared error on a test set, :math:`\frac1m \sum_j (y_j - \mu_j)^2 + s_j`, after every label.

    Args:
        rows: The test points, following the posterior.
        y: Their labels, standardised, ``m``.

    Reference: [IshibashiHino2021] section 5.1, the expectation of the squared error over the posterior.
    """

    def __init__(self, rows: FollowedRows, y: Floats) -> None:
        self._rows = rows
        self._y = y
        self._residual = np.array(y, dtype=np.float64)
        self._variance = self._prior = float(rows.prior_variance().sum())
        self._squared = float(self._residual @ self._residual)

    def jump(self) -> None:
        """Be up to date with the posterior of a linear model, by its factor and its weights alone."""
        if self._rows.recomputable:
            self._rows.jump()
            self._residual = self._y - self._rows.mean()
            self._squared = float(self._residual @ self._residual)
            self._variance = float(self._rows.variance().sum())

    def follow(self, white: Floats) -> Floats:
        """Catch up with the posterior.

        Args:
            white: The surprises of the labels that came since the last time, ``k``.

        Returns:
            The error after each of them, ``k``.
        """
        k = len(white)
        products, pulls = np.zeros((k, k)), np.zeros(k)
        for tile, rows in self._rows.follow():
            products += rows @ rows.T
            pulls += rows @ self._residual[tile]
            self._residual[tile] -= white @ rows
        # Each label takes w_i c_i off the residual r: |r|^2 falls by 2 w_i c_i'r - w_i^2 |c_i|^2, where r has lost the
        # rows before it. All that is needed are products of rows.
        before = pulls - np.tril(products, -1) @ white
        norms = np.diag(products)
        squared = self._squared + np.cumsum(white * (white * norms - 2.0 * before))
        self._variance = self._left(float(norms.sum()))
        # From the end backwards nothing is subtracted: before a label, the variances are larger by its row.
        variance = self._variance + np.cumsum(norms[::-1])[::-1] - norms
        if self._rows.recomputable:
            # The weights know better than a long sum.
            self._residual = self._y - self._rows.mean()
        self._squared = float(self._residual @ self._residual)
        return np.asarray((squared + variance) / len(self._residual))

    def _left(self, fall: float) -> float:
        """Sum of the variances after they fell; computed anew where little is left of what was subtracted from."""
        left = max(self._variance - fall, 0.0)
        if self._rows.recomputable and left < self._rows.resolution * self._prior:
            return float(self._rows.variance().sum())
        return left
