"""Where a pool lives, seen from the loop: the best candidates out, picks in, one exchange per block of picks."""

import warnings
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from suffice.engines.rows import FollowedRows
from suffice.special import Floats

Indices = NDArray[np.intp]

# Variances closer than this, relative to what they were subtracted from, are equal up to rounding: a tie.
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
        tie: Variances closer than this are equal up to rounding.
    """

    indices: Indices
    features: Floats
    whitened: Floats | None
    rest: float
    rest_index: int
    tie: float


class VariancePool(Protocol):
    """A pool scored by latent variance. Memory, a file, a graphics card or workers may hold it."""

    def top(self, n: int) -> Candidates:
        """The ``n`` points of largest variance, ties to the lowest index."""

    def follow(self) -> None:
        """Catch up with the posterior."""

    def features(self, indices: Indices) -> Floats:
        """Features of some points."""

    def take(self, indices: Indices) -> None:
        """Leave points out from now on: they are labelled, or were skipped."""

    def jump(self) -> None:
        """Be up to date with the posterior at once, where the model allows it."""

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

    def __init__(self, rows: FollowedRows, dtype: "np.typing.DTypeLike" = np.float64) -> None:
        self._rows, self._points = rows, rows.points
        self._variance = rows.prior_variance()
        self._prior = self._variance.copy()
        # Where each row stands in the pool, and the other way round; rows that are taken are dropped now and then.
        self._index = np.arange(len(self._variance))
        self._place = self._index.copy()
        self._free = np.ones(len(self._variance), dtype=bool)
        self._warned = self._anew = False
        self._single = np.dtype(dtype) == np.float32

    def top(self, n: int) -> Candidates:
        """The ``n`` points of largest variance, ties to the lowest index."""
        score = np.where(self._free, self._variance, -np.inf)
        tie, slack = self._rounding(score)
        rows, rest, first = largest(score, n, tie)
        indices = self._index[rows]
        rest_index = int(self._index[first]) if first < len(self._index) else len(self._place)
        return Candidates(indices, self._points[indices], self._rows.whitened(rows), rest + slack, rest_index, tie)

    def follow(self) -> None:
        """Catch up with the posterior: the pool is read once."""
        if self._anew:
            self.jump()
            return
        for tile, rows in self._rows.follow():
            self._variance[tile] -= np.einsum("ij,ij->j", rows, rows)
        # Where little is left of what was subtracted from, a linear model computes it anew from then on.
        if self._rows.recomputable:
            left = self._variance < self._rows.resolution * self._prior
            self._anew = bool((left & self._free).any())
            if self._anew:
                self.jump()

    def jump(self) -> None:
        """Be up to date with the posterior of a linear model, by its factor alone."""
        if self._rows.recomputable:
            self._rows.jump()
            self._variance = self._rows.variance()

    def _rounding(self, score: Floats) -> tuple[float, float]:
        """How close two variances count as equal, and how far one can be off."""
        best = float(score.max(initial=0.0))
        if self._rows.recomputable:
            return TIE * best, _SINGLE * best if self._single else 0.0
        prior = float(self._prior.max(initial=0.0))
        if self._single and 0.0 < best < 100.0 * _SINGLE * prior and not self._warned:
            self._warned = True
            warnings.warn(
                "the largest variance of the pool is below 1e-4 of the prior, near the resolution of dtype float32: "
                "picks may differ from those of float64",
                stacklevel=2,
            )
        return TIE * prior, _SINGLE * prior if self._single else 0.0

    def features(self, indices: Indices) -> Floats:
        """Features of some points."""
        return self._points[indices]

    def take(self, indices: Indices) -> None:
        """Leave points out from now on."""
        places = self._place[indices]
        self._free[places[places >= 0]] = False

    def tidy(self) -> None:
        """Drop the rows that are taken, where that is cheap and a good part of all."""
        if not self._rows.recomputable or 8 * np.count_nonzero(self._free) > 7 * len(self._free):
            return
        keep = self._free
        self._rows.keep(keep)
        self._variance, self._prior = self._variance[keep], self._prior[keep]
        self._index, self._free = self._index[keep], keep[keep]
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
