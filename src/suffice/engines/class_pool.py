"""A pool scored by class uncertainty: all rows for every pick, or only the rows that can win."""

from collections.abc import Callable
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dtrtri

from suffice.engines.variance_pool import Indices
from suffice.numerics.special_functions import Floats

_SCORED_ROWS: Final = 4096


class ScoredPool:
    """A pool in memory, scored as a whole at every pick.

    Args:
        features: ``m x J``.
        score: Of a posterior and the features of some rows, how useful the label of each would be.
    """

    def __init__(self, features: Floats, score: Callable[[Any, Floats], Floats]) -> None:
        self._features, self._score = features, score
        self._free = np.ones(len(features), dtype=bool)

    def nearest(self, posterior: Any, n: int) -> Indices:
        """The ``n`` points of largest score, largest first; ties to the lowest index."""
        rows = np.flatnonzero(self._free)
        parts = [rows[k : k + _SCORED_ROWS] for k in range(0, len(rows), _SCORED_ROWS)]
        score = np.concatenate([np.zeros(0), *(self._score(posterior, self._features[part]) for part in parts)])
        # Scores equal up to rounding are ties.
        best = float(score.max(initial=0.0)) or 1.0
        order = np.argsort(-np.round(score / best, 11), kind="stable")
        return rows[order[:n]]

    def take(self, indices: Indices) -> None:
        """Leave points out from now on."""
        self._free[indices] = False


# Scores closer than this are equal up to rounding: a tie, which goes to the lowest index.
_TIE: Final = 1e-11
_PROBIT: Final = np.pi / 8.0
_ROWS: Final = 2048
# How many points count as many, and how many the innermost layer has.
_MANY: Final = 10_000
_SMALLEST: Final = 64


class WeightPosterior(Protocol):
    """What the pool needs of the posterior of two classes."""

    @property
    def weights(self) -> Floats:
        """Mean, ``J``."""

    @property
    def factor(self) -> Floats:
        """Lower factor of the precision, ``J x J``."""

    @property
    def information(self) -> Floats:
        """The precision."""


class _Anchor(NamedTuple):
    """The posterior when a layer was last looked at, what its other points can be at least, and for how long."""

    weights: Floats
    factor: Floats
    inverse: Floats
    information: Floats
    rest: float
    drift: float


class _Layer:
    """Some points of the pool, and within them the layer of those that can win for now."""

    def __init__(self, columns: Floats, indices: Indices, *, averaged: bool) -> None:
        self._columns, self.indices, self._averaged = np.ascontiguousarray(columns), indices, averaged
        self._width = self._inner_width()
        self._drift = 0.5
        self._anchor: _Anchor | None = None
        self._inner: _Layer | None = None
        self.looks = 0

    def _inner_width(self) -> int:
        size = len(self.indices)
        return max(_SMALLEST, size // (8 if size >= _MANY else 4)) if size > 2 * _SMALLEST else 0

    def nearest(self, posterior: WeightPosterior, n: int, free: NDArray[np.bool_]) -> tuple[Indices, Floats]:
        """The ``n`` points of smallest ``u`` in this layer, smallest first, and their ``u``."""
        least = self._others(posterior)
        if least is not None and self._inner is not None:
            found, u = self._inner.nearest(posterior, n, free)
            if len(found) == n and u[-1] + _TIE < least:
                return found, u
            self._drift = max(0.7 * self._drift, 1e-4)
        return self._look(posterior, n, free)

    def _others(self, posterior: WeightPosterior) -> float | None:
        """What ``u`` of the points outside the inner layer is at least; None where that is not known any more."""
        anchor = self._anchor
        if anchor is None:
            return None
        moved = (posterior.weights - anchor.weights) @ anchor.factor
        least = max(0.2, float(moved @ moved) / anchor.drift**2)
        shrunk = self._shrunk(anchor, posterior, least)
        if shrunk < least:
            self._drift = min(1.3 * self._drift, 4.0)
            return None
        return float(anchor.rest * np.sqrt(shrunk))

    def _shrunk(self, anchor: _Anchor, posterior: WeightPosterior, least: float) -> float:
        """``1/c``: by a bound where that is at least ``least``, else by the smallest eigenvalue if that is worth it."""
        if not self._averaged:
            return 1.0
        change = anchor.inverse @ (posterior.information - anchor.information) @ anchor.inverse.T
        # The eigenvalues of I + change are at least 1 less its norm.
        bound = 1.0 - float(np.sqrt(np.vdot(change, change)))
        if bound >= least or least >= 1.0 or len(self.indices) < _MANY:
            return bound
        return 1.0 + float(np.linalg.eigvalsh(change)[0])

    def _look(self, posterior: WeightPosterior, n: int, free: NDArray[np.bool_]) -> tuple[Indices, Floats]:
        """Score all points of the layer, and choose the inner layer for the picks to come."""
        self.looks += 1
        inverse = np.asarray(dtrtri(posterior.factor, lower=1)[0])
        u, q = self._scores(posterior, inverse)
        u[~free[self.indices]] = np.inf
        best = smallest(u, n)
        width = max(self._width, 2 * n)
        if self._width and width < len(u):
            rank = u - self._drift * q
            parted = np.argpartition(rank, width)
            while rank[parted[width]] <= u[best[-1]] and self._drift > 1e-4:
                # Nothing would be known of the others: fewer steps, with more certainty.
                self._drift *= 0.5
                rank = u - self._drift * q
                parted = np.argpartition(rank, width)
            inner = np.sort(parted[:width])
            self._inner = _Layer(self._columns[:, inner], self.indices[inner], averaged=self._averaged)
            self._anchor = _Anchor(
                posterior.weights.copy(),
                posterior.factor.copy(),
                inverse,
                posterior.information.copy(),
                float(rank[parted[width]]),
                self._drift,
            )
        return self.indices[best], u[best]

    def _scores(self, posterior: WeightPosterior, inverse: Floats) -> tuple[Floats, Floats]:
        m = self._columns.shape[1]
        mean, variance = np.abs(posterior.weights @ self._columns), np.empty(m)
        for first in range(0, m, _ROWS):
            tile = slice(first, min(first + _ROWS, m))
            white = inverse @ self._columns[:, tile]
            variance[tile] = np.einsum("ij,ij->j", white, white)
        if not self._averaged:
            return mean, np.sqrt(variance)
        spread = 1.0 + _PROBIT * variance
        return mean / np.sqrt(spread), np.sqrt(variance / spread)


class UncertainPool:
    """A pool in memory whose most uncertain points are found without looking at all of it.

    Args:
        features: ``m x J``.
        averaged: Whether the predictive is averaged over the posterior (``s`` as above); else ``s`` counts as 0, which
            is the plug-in predictive of the paper.
    """

    def __init__(self, features: Floats, *, averaged: bool) -> None:
        self._whole = _Layer(features.T, np.arange(len(features)), averaged=averaged)
        self._free = np.ones(len(features), dtype=bool)

    @property
    def looks(self) -> int:
        """How often the whole pool was looked at."""
        return self._whole.looks

    def nearest(self, posterior: WeightPosterior, n: int) -> Indices:
        """The ``n`` most uncertain points under the posterior, most uncertain first; ties to the lowest index."""
        return self._whole.nearest(posterior, min(n, int(np.count_nonzero(self._free))), self._free)[0]

    def take(self, indices: Indices) -> None:
        """Leave points out from now on."""
        self._free[indices] = False


def smallest(values: Floats, n: int) -> NDArray[np.intp]:
    """Positions of the ``n`` smallest finite values, smallest first; values equal up to rounding by position.

    Examples:
        >>> smallest(np.array([0.3, 0.1, 0.1, np.inf]), 3)
        array([1, 2, 0])
    """
    if n == 1:
        low = float(values.min(initial=np.inf))
        return np.array([np.argmax(values <= low + _TIE)]) if np.isfinite(low) else np.zeros(0, dtype=np.intp)
    cut = np.partition(values, n - 1)[n - 1] if n < len(values) else np.inf
    found = np.flatnonzero((values <= cut + _TIE) & np.isfinite(values))
    order = np.argsort(np.round(values[found] / _TIE), kind="stable")
    return found[order][:n]
