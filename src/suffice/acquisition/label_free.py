"""Acquisitions that use no model: random order, given order, and k-centre."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from suffice.numerics.special_functions import Floats

Indices = NDArray[np.intp]


class Chooser(Protocol):
    """Says which items of a pool to label next."""

    def propose(self, most: int) -> Indices:
        """The next picks in order, as many as are known whatever their labels will be: at least 1, at most ``most``."""

    def batch(self, size: int) -> Indices:
        """Picks to be labelled together; fewer than ``size`` only where the pool ends."""

    def take(self, indices: Indices) -> None:
        """Leave items out from now on: they are labelled."""

    def skip(self, indices: Indices) -> None:
        """Leave items out from now on: they will have no label."""


class RandomOrder:
    """Items in random order.

    Args:
        size: Size of the pool.
        rng: Where the order comes from.

    Examples:
        >>> order = RandomOrder(5, np.random.default_rng(0))
        >>> order.take(order.propose(2))
        >>> len(order.batch(9))
        3
    """

    def __init__(self, size: int, rng: np.random.Generator) -> None:
        self._order = rng.permutation(size)
        self._free = np.ones(size, dtype=bool)
        self._next = 0

    def propose(self, most: int) -> Indices:
        """The next items of the order."""
        return self.batch(most)

    def batch(self, size: int) -> Indices:
        """The next items of the order."""
        while self._next < len(self._order) and not self._free[self._order[self._next]]:
            self._next += 1
        ahead = self._order[self._next : self._next + size]
        if not self._free[ahead].all():
            later = self._order[self._next :]
            ahead = later[self._free[later]][:size]
        return np.asarray(ahead)

    def take(self, indices: Indices) -> None:
        """Leave items out."""
        self._free[indices] = False

    def skip(self, indices: Indices) -> None:
        """Leave items out."""
        self._free[indices] = False


class InOrder(RandomOrder):
    """Items as they stand in the pool."""

    def __init__(self, size: int) -> None:
        super().__init__(size, np.random.default_rng(0))
        self._order = np.arange(size)


class KCentre:
    """The item farthest from all that are taken: covers the pool evenly, and twice as well as can be at worst.

    Ties go to the lowest index. Each pick costs one pass over the pool.

    Args:
        points: Features, ``m x D``.

    Reference: [Gonzalez1985] section 2; [SenerSavarese2018] algorithm 1.

    Examples:
        >>> cover = KCentre(np.array([[0.0], [1.0], [10.0], [4.0]]))
        >>> cover.take(np.array([0]))
        >>> cover.batch(3)
        array([2, 3, 1])
    """

    def __init__(self, points: Floats) -> None:
        self._points = points - points.mean(axis=0)
        self._squares = np.einsum("ij,ij->i", self._points, self._points)
        self._distance = np.full(len(points), np.inf)
        self._free = np.ones(len(points), dtype=bool)

    def propose(self, most: int) -> Indices:
        """The next items: labels do not matter, so all are known; a few at a time are worked out."""
        return self.batch(min(most, 32))

    def batch(self, size: int) -> Indices:
        """The farthest item, again and again."""
        distance, free, chosen = self._distance.copy(), self._free.copy(), []
        for _ in range(min(size, int(free.sum()))):
            # With nothing taken yet, the item nearest to the middle is the first.
            score = -self._squares if np.isinf(distance).all() else distance
            pick = int(np.argmax(np.where(free, score, -np.inf)))
            chosen.append(pick)
            free[pick] = False
            np.minimum(distance, self._distances(pick), out=distance)
        return np.array(chosen, dtype=np.intp)

    def take(self, indices: Indices) -> None:
        """Leave items out, and measure from them."""
        self._free[indices] = False
        for index in indices:
            np.minimum(self._distance, self._distances(int(index)), out=self._distance)

    def skip(self, indices: Indices) -> None:
        """Leave items out; they cover nothing."""
        self._free[indices] = False

    def _distances(self, index: int) -> Floats:
        squared = self._squares + self._squares[index] - 2.0 * (self._points @ self._points[index])
        return np.asarray(np.maximum(squared, 0.0))


def label_free_chooser(name: str, points: Floats, rng: np.random.Generator) -> Chooser | None:
    """The chooser of a name that asks no model; None for a name that does."""
    if name == "random":
        return RandomOrder(len(points), rng)
    if name == "order":
        return InOrder(len(points))
    return KCentre(points) if name == "k-centre" else None
