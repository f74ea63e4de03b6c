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
        index = int(np.flatnonzero(self._gain >= self._best - TIE)[0])
        self._free[index] = False
        return index, float(self._gain[index])

    def look(self, configurations: Configurations) -> None:
        """Find the best gains next to a batch whose labels have these configurations."""
        self._best = -np.inf
        self._gain.fill(-np.inf)
        full = self._pool.weights(configurations.rows)
        if not self._lazy:
            self._settle(np.flatnonzero(self._free), full)
            return
        self._renew(configurations)
        if self._bound[self._free].max() <= TIE:
            # Gains are never negative, so all tie.
            self._settle(np.flatnonzero(self._free)[:1], full)
            return
        ladder = [self._pool.weights(rows) for rows in configurations.merged()]
        alive = self._beaten(np.flatnonzero(self._free), ladder, full)
        for step, weights in enumerate(ladder):
            above = ladder[step + 1] if step + 1 < len(ladder) else full
            alive = self._bounding(alive, weights, _rows(above), _rows(full))
            self._settle(self._sorted(alive)[:_FEW], full)
            alive = self._open(alive)
        self._settle_in_turn(alive, full)

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

    def _beaten(self, alive: Indices, ladder: list[Weights], full: Weights) -> Indices:
        """Look closely at the few candidates that promise most, and return those that may still beat them."""
        head = alive
        if len(alive) > _HEAD:
            head = alive[np.argpartition(-self._bound[alive], _HEAD)[:_HEAD]]
        if ladder:
            self._lower(head, ladder[0])
        self._settle(self._sorted(head)[:_FEW], full)
        return self._open(alive)

    def _bounding(self, alive: Indices, weights: Weights, above: int, full: int) -> Indices:
        """Lower the bounds of candidates, the most promising first, as long as it pays; return those still open."""
        order = self._sorted(alive)
        wasted = 0
        for start in range(0, len(order), _PIECE):
            piece = self._open(order[start : start + _PIECE])
            self._lower(piece, weights)
            wasted += len(piece) * _rows(weights) - (len(piece) - len(self._open(piece))) * above
            if wasted > _WASTE * len(order) * full:
                break
        return self._open(order)

    def _settle_in_turn(self, alive: Indices, full: Weights) -> None:
        """Gains of candidates, the most promising first, until no bound reaches the best gain."""
        order, size = self._sorted(alive), _FEW
        while len(order):
            self._settle(order[:size], full)
            order = self._open(order[size:])
            size *= 2

    def _lower(self, which: Indices, weights: Weights) -> None:
        self.bounded += len(which)
        self._bound[which] = np.minimum(self._bound[which], self._pool.information(which, weights))

    def _settle(self, which: Indices, full: Weights) -> None:
        self.evaluated += len(which)
        gains = self._pool.information(which, full)
        self._gain[which] = gains
        self._bound[which] = np.minimum(self._bound[which], gains)
        self._best = max(self._best, float(gains.max(initial=-np.inf)))

    def _open(self, which: Indices) -> Indices:
        """Candidates not settled whose bound reaches the best gain, or a tie with it."""
        reach = self._best - TIE - _ROUNDING
        return which[(self._bound[which] >= reach) & np.isneginf(self._gain[which])]

    def _sorted(self, which: Indices) -> Indices:
        return which[np.argsort(-self._bound[which], kind="stable")]


def _rows(weights: Weights) -> int:
    return int(weights.rows.shape[0])
