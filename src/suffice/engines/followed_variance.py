"""Points whose variances are kept up to date with a posterior: their mean and their largest after every label."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from suffice.engines.rows import FollowedRows
from suffice.special import Floats


class Variances(NamedTuple):
    """Latent variances of some points after each of some labels.

    Attributes:
        mean: Over all points, ``k``.
        largest: Over the points that are not taken, ``k``; 0 where none is left.
    """

    mean: Floats
    largest: Floats


class FollowedVariance:
    """Latent variances of points while labels come.

    Args:
        rows: The points, following the posterior.
    """

    def __init__(self, rows: FollowedRows) -> None:
        self._rows = rows
        self._variance = np.array(rows.prior_variance(), dtype=np.float64)
        self._prior = self._variance.copy()
        self._free: NDArray[np.bool_] = np.ones(len(self._variance), dtype=bool)

    def jump(self) -> None:
        """Be up to date with the posterior of a linear model, by its factor alone."""
        if self._rows.recomputable:
            self._rows.jump()
            self._variance = self._rows.variance()

    def take(self, indices: Any) -> None:
        """Leave points out of the largest from now on."""
        self._free[indices] = False

    def follow(self, count: int, taken: Any = None) -> Variances:
        """Catch up with the posterior.

        Args:
            count: Labels that came since the last time, ``k``.
            taken: Which of the points they were, in order, where they are among them: each is left out of the largest
                from its own label on.
        """
        total, largest = np.zeros(count), np.zeros(count)
        when = np.full(len(self._variance), count)
        when[~self._free] = 0
        if taken is not None:
            when[taken] = np.minimum(when[taken], np.arange(count))
            self.take(taken)
        order = np.arange(count)[:, None]
        for tile, rows in self._rows.follow():
            falls = np.cumsum(rows.astype(np.float64, copy=False) ** 2, axis=0)
            after = np.maximum(self._variance[tile] - falls, 0.0)
            total += after.sum(axis=1)
            np.maximum(largest, np.where(order < when[tile], after, 0.0).max(axis=1, initial=0.0), out=largest)
            self._variance[tile] = after[-1]
        self._refresh(total, largest)
        return Variances(total / max(len(self._variance), 1), largest)

    def _refresh(self, total: Floats, largest: Floats) -> None:
        """Compute variances anew where little is left of what was subtracted from, and with them the last entries."""
        if not self._rows.recomputable or not len(total):
            return
        if (self._variance < self._rows.resolution * self._prior).any():
            self._variance = self._rows.variance()
            total[-1], largest[-1] = self._variance.sum(), self._variance[self._free].max(initial=0.0)
