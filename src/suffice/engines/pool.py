"""Where a pool lives, seen from the loop: the best candidates out, picks in, one exchange per block of picks."""

from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from suffice.engines.rows import FeatureRows, KernelRows
from suffice.special import Floats

Indices = NDArray[np.intp]

#: Variances closer than this, relative to the largest prior variance, are equal up to rounding: a tie.
TIE: Final = 2e-15
# How far variances kept in single precision can be off, likewise.
_SINGLE: Final = 1e-6


@dataclass(frozen=True)
class Candidates:
    """The points of largest score, and what is known of the others.

    Attributes:
        indices: Where they stand in the pool, ascending.
        features: Their features, ``B x D``.
        whitened: ``W`` at them, ``r x B``, where the pool has it at hand.
        rest: Largest score among the others; minus infinity if there are none. A variance never grows, so it stays an
            upper bound while labels come.
        rest_index: Lowest index among the others of that score.
    """

    indices: Indices
    features: Floats
    whitened: Floats | None
    rest: float
    rest_index: int


class VariancePool(Protocol):
    """A pool scored by latent variance. Memory, a file, a graphics card or workers may hold it."""

    tie: float

    def top(self, n: int) -> Candidates:
        """The ``n`` points of largest variance, ties to the lowest index."""

    def follow(self) -> None:
        """Catch up with the posterior."""

    def features(self, indices: Indices) -> Floats:
        """Features of some points."""

    def take(self, indices: Indices) -> None:
        """Leave points out from now on: they are labelled, or were skipped."""

    def tidy(self) -> None:
        """A good moment to drop what is taken."""

    def mark(self) -> Any:
        """Where it stands, for :meth:`rewind`."""

    def rewind(self, mark: Any) -> None:
        """Go back to a mark."""


class MemoryPool:
    """A pool in memory.

    Args:
        rows: Its points, following a posterior.
        dtype: Number type that the rows are kept in.
    """

    def __init__(self, rows: KernelRows | FeatureRows, dtype: "np.typing.DTypeLike" = np.float64) -> None:
        self._rows, self._points = rows, rows.points
        self._variance = rows.prior_variance()
        # Where each row stands in the pool, and the other way round; rows that are taken are dropped now and then.
        self._index = np.arange(len(self._variance))
        self._place = self._index.copy()
        self._free = np.ones(len(self._variance), dtype=bool)
        largest_prior = float(self._variance.max(initial=0.0))
        self.tie = TIE * largest_prior
        self._slack = _SINGLE * largest_prior if np.dtype(dtype) == np.float32 else 0.0

    def top(self, n: int) -> Candidates:
        """The ``n`` points of largest variance, ties to the lowest index."""
        score = np.where(self._free, self._variance, -np.inf)
        rows, rest, first = largest(score, n, self.tie)
        indices = self._index[rows]
        rest_index = int(self._index[first]) if first < len(self._index) else len(self._place)
        return Candidates(indices, self._points[indices], self._rows.whitened(rows), rest + self._slack, rest_index)

    def follow(self) -> None:
        """Catch up with the posterior: the pool is read once."""
        for tile, rows in self._rows.follow():
            self._variance[tile] -= np.einsum("ij,ij->j", rows, rows)

    def features(self, indices: Indices) -> Floats:
        """Features of some points."""
        return self._points[indices]

    def take(self, indices: Indices) -> None:
        """Leave points out from now on."""
        places = self._place[indices]
        self._free[places[places >= 0]] = False

    def tidy(self) -> None:
        """Drop the rows that are taken, where that is cheap and a good part of all."""
        if not isinstance(self._rows, FeatureRows) or 8 * np.count_nonzero(self._free) > 7 * len(self._free):
            return
        keep = self._free
        self._rows.keep(keep)
        self._variance, self._index, self._free = self._variance[keep], self._index[keep], keep[keep]
        self._place[:] = -1
        self._place[self._index] = np.arange(len(self._index))

    def mark(self) -> tuple[Any, Floats, NDArray[np.bool_]]:
        """Where it stands."""
        return self._rows.mark(), self._variance.copy(), self._free.copy()

    def rewind(self, mark: tuple[Any, Floats, NDArray[np.bool_]]) -> None:
        """Go back to a mark; nothing was tidied since."""
        self._rows.rewind(mark[0])
        self._variance, self._free = mark[1].copy(), mark[2].copy()


def largest(score: Floats, n: int, margin: float = 0.0) -> tuple[Indices, float, int]:
    """Indices of the ``n`` largest scores (ties to the lowest index, ascending), and the best of the rest.

    Args:
        score: One per point; minus infinity marks a point that may not be chosen.
        n: How many; fewer come back where fewer may be chosen.
        margin: Scores this close count as equal.

    Returns:
        Indices; the largest score of the rest; the lowest index of the rest with that score.

    Examples:
        >>> largest(np.array([1.0, 3.0, 3.0, 3.0, 2.0]), 2)
        (array([1, 2]), 3.0, 3)
    """
    m = len(score)
    if n < m:
        cut = float(np.partition(score, m - n)[m - n])
        above = score > cut + margin
        equal = np.flatnonzero((score >= cut - margin) & ~above)
        above[equal[: n - int(np.count_nonzero(above))]] = True
        indices, others = np.flatnonzero(above), np.where(above, -np.inf, score)
        rest = float(others.max())
        rest_index = int(np.argmax(others >= rest - 2.0 * margin)) if rest > -np.inf else m
    else:
        indices, rest, rest_index = np.arange(m), -np.inf, m
    return indices[score[indices] > -np.inf], rest, rest_index
