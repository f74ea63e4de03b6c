"""Picks by largest variance: planned a block at a time, so that the pool is read once per block."""

import numpy as np

from suffice.engines.planning import plan
from suffice.engines.pool import Indices, VariancePool
from suffice.models.latent import Block, GaussianState, block_of


class LargestVariance:
    """Chooses the point of largest latent variance, again and again.

    Args:
        state: The posterior.
        pool: The pool that follows it.
        size: Number of points in the pool.
    """

    def __init__(self, state: GaussianState, pool: VariancePool, size: int) -> None:
        self._state, self._pool = state, pool
        # Wide enough for some dozens of picks in a block, narrow enough that planning costs little beside the pool.
        self._width = int(np.clip(2.0 * np.sqrt(size), 64, 512))
        self._queue: Indices = np.zeros(0, dtype=np.intp)
        self._block: Block | None = None

    def jump(self) -> None:
        """Be up to date with the posterior of a linear model, without the labels in between."""
        self._pool.jump()

    def propose(self, most: int) -> Indices:
        """The next picks: what is left of the plan, or a new one."""
        if not len(self._queue):
            self._pool.follow()
            self._pool.tidy()
            self._queue, self._block = plan(self._state, self._pool.top(self._width), self._width)
        return self._queue[:most]

    def batch(self, size: int) -> Indices:
        """Picks to be labelled together: each is conditioned on those before it, which needs no label."""
        picks = self.propose(size)
        if len(picks) == size:
            return picks
        self._pool.follow()
        here, there = self._state.mark(), self._pool.mark()
        self._condition(picks)
        while len(picks) < size:
            candidates = self._pool.top(self._width)
            if not len(candidates.indices):
                break
            more, block = plan(self._state, candidates, size - len(picks))
            self._state.extend(block, np.zeros(len(more)))
            self._pool.take(more)
            self._pool.follow()
            picks = np.append(picks, more)
        self._state.rewind(here)
        self._pool.rewind(there)
        return picks

    def _condition(self, picks: Indices) -> None:
        """Take points as labelled, for the time being: a variance does not ask what the label is."""
        self._state.extend(block_of(self._state, self._pool.features(picks)), np.zeros(len(picks)))
        self._pool.take(picks)
        self._pool.follow()

    def block(self, indices: Indices) -> Block | None:
        """The first picks of a plan that has just been made, as the posterior sees them; nothing for other points."""
        block, k = self._block, len(indices)
        if block is None or not np.array_equal(self._queue[:k], indices):
            return None
        return Block(block.features[:k], block.whitened[:, :k], block.lower[:k, :k], block.latent[:k])

    def skip(self, indices: Indices) -> None:
        """Leave points out that have no label: the plan, which counted on it, is made anew."""
        self._pool.take(indices)
        self._queue, self._block = self._queue[:0], None

    def take(self, indices: Indices) -> None:
        """Leave points out. The plan stands as long as its points are taken in order."""
        self._pool.take(indices)
        follows = np.array_equal(self._queue[: len(indices)], indices)
        self._queue = self._queue[len(indices) :] if follows else self._queue[:0]
        # The block was seen from the posterior before these points.
        self._block = None
