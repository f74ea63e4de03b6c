"""The most informative candidate next to a batch, found without looking closely at most of them."""

from typing import Final

import numpy as np

from suffice.acquisition.candidates import Candidates, Weights
from suffice.acquisition.choosers import Indices
from suffice.acquisition.joint import Configurations

#: Gains in nats that differ by no more than this count as equal: rounding is a thousand times smaller.
TIE: Final = 1e-10
# What rounding may add to a gain whose bound was rounded too.
_ROUNDING: Final = 1e-12
# How many candidates are bounded first, and how many of them looked at closely, to have something to beat.
_HEAD, _FEW = 256, 4
# Candidates bounded at a time, and the part of the whole work that bounds may waste before they are given up.
_PIECE, _WASTE = 1024, 0.01


class Search:
    """Keeps an upper bound of every candidate's gain, and works out gains only where the bound is not enough.

    Args:
        pool: The candidates.
        lazy: False works out every gain.
    """

    def __init__(self, pool: Candidates, *, lazy: bool) -> None:
        self.evaluated, self.bounded = pool.shape[0], 0
        self._pool, self._lazy = pool, lazy
        self._alone = pool.bald()
        self._bound = self._alone.copy()
        self._gain = self._alone.copy()
        self._free = np.ones(pool.shape[0], dtype=bool)
        self._best = float(self._gain.max())

    def take(self) -> tuple[int, float]:
        """Take the best candidate of the last look; ties go to the lowest index."""
        index = self._winner()
        self._free[index] = False
        return index, float(self._gain[index])

    def rest(self, count: int) -> list[int]:
        """The first candidates that are not taken, where one is as good as another."""
        return [int(index) for index in np.flatnonzero(self._free)[:count]]

    def look(self, configurations: Configurations) -> None:
        """Find the best gains next to a batch whose labels have these configurations."""
        self._best = -np.inf
        self._gain.fill(-np.inf)
        full, free = self._pool.weights(configurations.rows), np.flatnonzero(self._free)
        if not self._lazy:
            self._settle(free, full)
            return
        self._renew(configurations)
        ladder = [self._pool.weights(rows) for rows in configurations.merged()]
        rivals = self._challenged(self._rivals(free), ladder, full)
        for step, weights in enumerate(ladder):
            above = ladder[step + 1] if step + 1 < len(ladder) else full
            rivals = self._narrowed(rivals, weights, _rows(above), _rows(full))
            self._settle(self._sorted(rivals)[:_FEW], full)
        self._settle_rivals(rivals, full)
        self._settle_ties(free, full)

    def _renew(self, configurations: Configurations) -> None:
        """Bounds that hold now.

        Next to a larger batch no gain is larger, so old bounds hold; but not for what is estimated from configurations
        drawn anew. Merged into one, these have ``K max_k v_k`` times the even share ``1/K`` of any sample at most, so
        the gain next to nothing, times that, is a bound. No gain is above what there is left to know.
        """
        if not configurations.exact:
            share = configurations.rows.sum(axis=0).max(initial=0.0) * configurations.rows.shape[1]
            self._bound = self._alone * share
        np.minimum(self._bound, configurations.doubt(), out=self._bound)

    def _challenged(self, rivals: Indices, ladder: list[Weights], full: Weights) -> Indices:
        """Look closely at the few candidates that promise most, and return those that may still beat them."""
        head = rivals
        if len(rivals) > _HEAD:
            head = rivals[np.argpartition(-self._bound[rivals], _HEAD)[:_HEAD]]
        if ladder:
            self._lower(head, ladder[0])
        self._settle(self._sorted(head)[:_FEW], full)
        return self._rivals(rivals)

    def _narrowed(self, rivals: Indices, weights: Weights, above: int, full: int) -> Indices:
        """Lower bounds by merged configurations, of the most promising first, as long as that saves work."""
        order = self._sorted(rivals)
        wasted = 0
        for start in range(0, len(order), _PIECE):
            piece = self._rivals(order[start : start + _PIECE])
            self._lower(piece, weights)
            wasted += len(piece) * _rows(weights) - (len(piece) - len(self._rivals(piece))) * above
            if wasted > _WASTE * len(order) * full:
                break
        return self._rivals(order)

    def _settle_rivals(self, rivals: Indices, full: Weights) -> None:
        """Gains of the most promising first, until no bound is above the best gain."""
        order, size = self._sorted(self._rivals(rivals)), _FEW
        while len(order):
            self._settle(order[:size], full)
            order = self._rivals(order[size:])
            size *= 2

    def _settle_ties(self, free: Indices, full: Weights) -> None:
        """Gains of what may tie with the best at a lower index, in order, until one does."""
        order, size = free[np.isneginf(self._gain[free])], 1
        while len(order):
            near = self._bound[order] >= self._best - TIE - _ROUNDING
            order = order[near & (order < self._winner())]
            self._settle(order[:size], full)
            order, size = order[size:], 2 * size

    def _lower(self, which: Indices, weights: Weights) -> None:
        self.bounded += len(which)
        self._bound[which] = np.minimum(self._bound[which], self._pool.information(which, weights))

    def _settle(self, which: Indices, full: Weights) -> None:
        self.evaluated += len(which)
        gains = self._pool.information(which, full)
        self._gain[which] = gains
        self._bound[which] = np.minimum(self._bound[which], gains)
        self._best = max(self._best, float(gains.max(initial=-np.inf)))

    def _rivals(self, which: Indices) -> Indices:
        """Candidates, not settled, that may have a gain above the best; below a tie with nothing, none matters."""
        return which[(self._bound[which] > max(self._best, TIE)) & np.isneginf(self._gain[which])]

    def _winner(self) -> int:
        """The lowest index of a best gain so far; the number of candidates if there is none yet."""
        if np.isneginf(self._best):
            return len(self._gain)
        return int(np.argmax(self._gain >= self._best - TIE))

    def _sorted(self, which: Indices) -> Indices:
        return which[np.argsort(-self._bound[which], kind="stable")]


def _rows(weights: Weights) -> int:
    return int(weights.rows.shape[0])
