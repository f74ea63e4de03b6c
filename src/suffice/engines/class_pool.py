"""A pool scored by class uncertainty: all rows for every pick, or only the rows that can be the best."""

from collections.abc import Callable
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from suffice.engines.disk_rows import DiskRows
from suffice.engines.variance_pool import Indices
from suffice.numerics import Floats

_SCORED_ROWS: Final = 4096


class ClassPool(Protocol):
    """A pool that finds its most useful points under a posterior of a classifier."""

    @property
    def source(self) -> Any:
        """The features, if the pool can be kept for other classes and posteriors."""

    def nearest(self, posterior: Any, n: int) -> Indices:
        """The ``n`` most useful points, most useful first; ties to the lowest index."""

    def take(self, indices: Indices) -> None:
        """Leave points out from now on."""


class ScoredPool:
    """A pool that is scored completely at every pick; a pool on disk is then read once per pick.

    Args:
        features: ``m x J``, in memory or on disk.
        score: Function of a posterior and the features of some rows that returns how useful each label would be.
    """

    def __init__(self, features: Floats | DiskRows, score: Callable[[Any, Floats], Floats]) -> None:
        self._features, self._score = features, score
        # The pool is not kept for other classes: it stores nothing that can be reused, and the score may differ.
        self.source = None
        self._free = np.ones(len(features), dtype=bool)

    def nearest(self, posterior: Any, n: int) -> Indices:
        """The ``n`` points of largest score, largest first; ties to the lowest index."""
        if isinstance(self._features, DiskRows):
            return self._nearest_on_disk(self._features, posterior, n)
        rows, score = self.scores(posterior)
        return rows[most_useful(score, n)]

    def scores(self, posterior: Any) -> tuple[Indices, Floats]:
        """The points of a pool in memory that are not left out, ascending, and their scores."""
        rows = np.flatnonzero(self._free)
        parts = [rows[k : k + _SCORED_ROWS] for k in range(0, len(rows), _SCORED_ROWS)]
        found = [self._score(posterior, self._features[part]) for part in parts]
        return rows, np.concatenate([np.zeros(0), *found])

    def _nearest_on_disk(self, source: DiskRows, posterior: Any, n: int) -> Indices:
        """Return the same from batches. One number is kept per row, and few arrays of that size exist at a time."""
        score = np.full(len(source), -np.inf)
        for start, block in source.batches():
            for first in range(0, len(block), _SCORED_ROWS):
                part = block[first : first + _SCORED_ROWS]
                score[start + first : start + first + len(part)] = self._score(posterior, part)
        score[~self._free] = -np.inf
        n = min(n, int(np.count_nonzero(self._free)))
        best = float(score.max(initial=0.0)) or 1.0
        score /= -best
        np.round(score, 11, out=score)
        cut = np.partition(score, n - 1)[n - 1] if 0 < n < len(score) else np.inf
        found = np.flatnonzero((score <= cut) & self._free)
        return found[np.argsort(score[found], kind="stable")][:n]

    def take(self, indices: Indices) -> None:
        """Leave points out from now on."""
        self._free[indices] = False


def most_useful(scores: Floats, n: int, best: float | None = None) -> NDArray[np.intp]:
    """Return the positions of the ``n`` largest scores, largest first; scores equal up to rounding by position.

    Args:
        scores: Scores of at least 0.
        n: Number of positions.
        best: The largest score of all points, if these scores are a part.

    Examples:
        >>> most_useful(np.array([0.3, 0.5 - 1e-14, 0.5]), 2)
        array([1, 2])
    """
    return np.argsort(score_ranks(scores, best), kind="stable")[:n]


def score_ranks(scores: Floats, best: float | None = None) -> Floats:
    """Numbers that order scores, largest first, and are equal for scores that are equal up to rounding."""
    largest = float(scores.max(initial=0.0)) if best is None else best
    return -np.round(scores / (largest or 1.0), 11)


# Scores closer than this are equal up to rounding. Such ties go to the lowest index.
_TIE: Final = 1e-11
_PROBIT: Final = np.pi / 8.0
_ROWS: Final = 2048
# Number of points whose features are copied at a time.
_COPIED: Final = 1 << 12
# Number of points from which on layers are used, and number of points in the innermost layer.
_MANY: Final = 10_000
_SMALLEST: Final = 64


class WeightPosterior(Protocol):
    """Interface of a posterior of two classes."""

    @property
    def weights(self) -> Floats:
        """Mean, ``J``."""

    @property
    def factor(self) -> Floats:
        """Lower factor of the precision, ``J x J``."""

    @property
    def inverse_factor(self) -> Floats:
        """The inverse of the factor."""

    @property
    def information(self) -> Floats:
        """The precision."""


class _Anchor(NamedTuple):
    """The posterior when a layer was last scored, and a lower bound on its other points with its range of validity."""

    weights: Floats
    factor: Floats
    inverse: Floats
    information: Floats
    rest: float
    drift: float


class _Layer:
    """Some points of the pool, and an inner layer of those that can be the best at present."""

    def __init__(self, columns: Floats, indices: Indices, *, averaged: bool) -> None:
        self._columns = contiguous(columns)
        self.indices = indices
        # Scores and spreads of the last look, and ranks. The memory of new arrays of this size, returned to the system
        # after each look, would take longer than the scores.
        self._u, self._q, self._rank = np.empty((3, len(indices)))
        self._begin(len(indices), averaged)

    def _begin(self, size: int, averaged: bool) -> None:
        self._size, self._averaged = size, averaged
        self._width = self._inner_width()
        self._drift = 0.5
        self._anchor: _Anchor | None = None
        self._inner: _Layer | None = None
        self.looks = 0

    def _inner_width(self) -> int:
        size = self._size
        return max(_SMALLEST, size // (8 if size >= _MANY else 4)) if size > 2 * _SMALLEST else 0

    def nearest(self, posterior: WeightPosterior, n: int, free: NDArray[np.bool_]) -> tuple[Indices, Floats]:
        """The points of :func:`leading` in this layer, and their ``u``."""
        least = self._others(posterior)
        if least is not None and self._anchor is not None:
            found, u = self._inner_layer(self._anchor).nearest(posterior, n, free)
            if len(found) >= n and u.max() + _TIE < least:
                return found, u
            self._drift = max(0.7 * self._drift, 1e-4)
        return self._look(posterior, n, free)

    def _inner_layer(self, anchor: _Anchor) -> "_Layer":
        """The inner layer. It is made when it is first used: at few labels the posterior moves too far for many."""
        if self._inner is None:
            inner = np.flatnonzero(self._ranks(anchor.drift) < anchor.rest)
            # ``take`` keeps the order in memory; an index in brackets changes it, and takes twice the time.
            columns = np.take(self._columns, inner, axis=1)
            self._inner = _Layer(columns, self.indices[inner], averaged=self._averaged)
        return self._inner

    def _ranks(self, drift: float) -> Floats:
        """Lower bounds on scores after a drift of the posterior since the last look, as used for the inner layer."""
        np.multiply(self._q, -drift, out=self._rank)
        self._rank += self._u
        return self._rank

    def _others(self, posterior: WeightPosterior) -> float | None:
        """Lower bound of ``u`` of the points outside the inner layer; None if it is not known."""
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
        """Return ``1/c``: from a bound if that is at least ``least``, else from the smallest eigenvalue if useful."""
        if not self._averaged:
            return 1.0
        change = anchor.inverse @ (posterior.information - anchor.information) @ anchor.inverse.T
        # The eigenvalues of I + change are at least 1 minus the norm of the change.
        bound = 1.0 - float(np.sqrt(np.vdot(change, change)))
        if bound >= least or least >= 1.0 or self._size < _MANY:
            return bound
        return 1.0 + float(np.linalg.eigvalsh(change)[0])

    def _look(self, posterior: WeightPosterior, n: int, free: NDArray[np.bool_]) -> tuple[Indices, Floats]:
        """Score all points of the layer, and choose the inner layer for the picks to come."""
        self.looks += 1
        self._inner = self._anchor = None
        inverse = posterior.inverse_factor
        u, _ = uncertainty(self._columns, posterior, inverse, averaged=self._averaged, out=(self._u, self._q))
        u[np.flatnonzero(~(free if len(free) == len(u) else free[self.indices]))] = np.inf
        best = leading(u, n)
        width = max(self._width, 2 * n)
        if self._width and width < len(u):
            rest = self._rank_at(width)
            while rest <= u[best[-1]] and self._drift > 1e-4:
                # There would be no bound on the other points, so a smaller drift is allowed.
                self._drift *= 0.5
                rest = self._rank_at(width)
            self._set_anchor(posterior, inverse, rest)
        return self.indices[best], u[best]

    def _rank_at(self, position: int) -> float:
        """The rank at a position in rising order."""
        rank = self._ranks(self._drift)
        rank.partition(position)
        return float(rank[position])

    def _set_anchor(self, posterior: WeightPosterior, inverse: Floats, rest: float) -> None:
        self._anchor = _Anchor(
            posterior.weights.copy(),
            posterior.factor.copy(),
            inverse,
            posterior.information.copy(),
            rest,
            self._drift,
        )


def contiguous(columns: Floats) -> Floats:
    """The columns in rows of memory, as they are or copied.

    Block by block this is several times as fast as for the whole matrix at once.
    """
    if columns.strides[1] == columns.itemsize:
        return columns
    found = np.empty(columns.shape, columns.dtype)
    for first in range(0, columns.shape[1], _COPIED):
        found[:, first : first + _COPIED] = columns[:, first : first + _COPIED]
    return found


def uncertainty(
    columns: Floats,
    posterior: WeightPosterior,
    inverse: Floats,
    *,
    averaged: bool,
    out: tuple[Floats, Floats] | None = None,
) -> tuple[Floats, Floats]:
    """Return ``u`` and ``q`` of points, whose features are columns, without other arrays with one entry per point.

    Args:
        columns: The features.
        posterior: The posterior.
        inverse: The inverse of its factor.
        averaged: Whether predictions are averaged over the posterior.
        out: Arrays for the result.
    """
    m, J = columns.shape[1], len(inverse)
    # Whitened features and mean by one product, which reads the points once.
    both = np.vstack([inverse, posterior.weights])
    u, q = (np.empty(m), np.empty(m)) if out is None else out
    for first in range(0, m, _ROWS):
        tile = slice(first, min(first + _ROWS, m))
        products = both @ columns[:, tile].astype(np.float64, copy=False)
        variance = np.einsum("ij,ij->j", products[:J], products[:J])
        spread = 1.0 + _PROBIT * variance if averaged else 1.0
        u[tile] = np.abs(products[J]) / np.sqrt(spread)
        q[tile] = np.sqrt(variance / spread)
    return u, q


class _LowestRanks:
    """The points of lowest rank among those added so far, and the lowest rank of the others.

    Args:
        width: Number of points to keep.
        features: Number of features of a point.
        most: Largest number of points that are added at a time.
        dtype: Number type that features are kept in.
        cut: Points of this rank or more are not kept, even if there is room.
    """

    def __init__(self, width: int, features: int, most: int, dtype: Any, cut: float) -> None:
        self._width, self._fill = width, 0
        # Pages that are never written to take no memory.
        room = width + max(width // 8, most)
        self._columns = np.empty((features, room), dtype)
        self._rank, self._indices = np.empty(room), np.empty(room, np.intp)
        self._cut, self.rest = cut, np.inf

    def add(self, rank: Floats, start: int, columns: Floats) -> None:
        """Points ``start`` and following; those of infinite rank are not kept."""
        if self._fill + len(rank) > len(self._rank):
            self._drop()
        keep = rank < self._cut
        self.rest = min(self.rest, float(rank[~keep].min(initial=np.inf)))
        chosen = np.flatnonzero(keep)
        here = slice(self._fill, self._fill + len(chosen))
        self._rank[here], self._indices[here] = rank[chosen], start + chosen
        # Whole rows of the block are gathered, a few at a time: several times as fast as column by column.
        rows = columns.T
        for first in range(0, len(chosen), _COPIED):
            part = chosen[first : first + _COPIED]
            self._columns[:, here.start + first : here.start + first + len(part)] = rows.take(part, axis=0).T
        self._fill = here.stop

    def _drop(self) -> None:
        """Keep the lowest ranks only."""
        if self._fill <= self._width:
            return
        parted = np.argpartition(self._rank[: self._fill], self._width)
        self.rest = min(self.rest, float(self._rank[parted[self._width]]))
        kept, self._fill = np.sort(parted[: self._width]), self._width
        # One array after the other, so that little is copied at a time.
        for values in (self._rank, self._indices, *self._columns):
            values[: self._width] = values[kept]
        self._cut = float(self._rank[: self._width].max())

    def layer(self, *, averaged: bool) -> _Layer:
        """Return the points that were kept. Nothing is copied."""
        self._drop()
        return _Layer(self._columns[:, : self._fill], self._indices[: self._fill], averaged=averaged)


# Bytes per point of an inner layer while it is scored, in addition to the features.
_LOOKED_AT: Final = 48
# Largest number of points of a pool on disk from which the size of the next inner layer is estimated.
_SAMPLED: Final = 20_000


class _StreamedLayer(_Layer):
    """All points of a pool on disk. Scoring reads it once, and copies the inner layer into memory.

    The inner layer is as large as the memory allows. The drift of the posterior up to which it is valid is estimated
    before the pass, from a sample of the points.
    """

    def __init__(self, source: DiskRows, *, averaged: bool) -> None:
        self._source, self._dtype = source, np.dtype(np.float32 if source.single else np.float64)
        self._begin(len(source), averaged)
        if self._width:
            each = 1.125 * self._dtype.itemsize * source.shape[1] + _LOOKED_AT
            self._width = max(_SMALLEST, min(len(source) - 1, int(source.memory_limit / each)))
        self._sample = np.zeros((source.shape[1], 0))

    def _look(self, posterior: WeightPosterior, n: int, free: NDArray[np.bool_]) -> tuple[Indices, Floats]:
        self.looks += 1
        # The old layer is released before the new one is allocated.
        self._inner = self._anchor = None
        inverse = posterior.inverse_factor
        source, width, lowest = self._source, max(self._width, 2 * n), None
        if self._width and width < self._size:
            self._drift, cut = self._drift_and_cut(posterior, inverse, width)
            lowest = _LowestRanks(width, source.shape[1], source.batch_rows, self._dtype, cut)
        u = np.empty(self._size)
        for start, block in source.batches():
            score, spread = uncertainty(block.T, posterior, inverse, averaged=self._averaged)
            part = slice(start, start + len(block))
            score[~free[part]] = np.inf
            u[part] = score
            if lowest is not None:
                lowest.add(score - self._drift * spread, start, block.T)
        best = leading(u, n)
        if lowest is not None:
            self._inner = lowest.layer(averaged=self._averaged)
            self._set_anchor(posterior, inverse, lowest.rest)
        return best, u[best]

    def _drift_and_cut(self, posterior: WeightPosterior, inverse: Floats, width: int) -> tuple[float, float]:
        """Return the largest drift for which all points that may become best fit into the inner layer, with a margin.

        Also return the rank below which there are about as many points as fit.
        """
        if not self._sample.shape[1]:
            # A few rows of each batch, so that the sample covers the pool.
            most = min(_SAMPLED, self._source.memory_limit // (64 * self._source.shape[1]))
            step = max(1, self._size // max(1, most))
            self._sample = np.hstack([block[-start % step :: step].T.copy() for start, block in self._source.batches()])
        u, q = uncertainty(self._sample, posterior, inverse, averaged=self._averaged)
        ratio = u / np.maximum(q, np.finfo(np.float64).tiny)
        fit = width / self._size
        # Three standard errors of a share in the sample.
        share = max(0.0, fit - 3.0 * float(np.sqrt(fit * (1.0 - fit) / len(ratio))))
        drift = min(4.0, max(1e-4, 0.85 * float(np.quantile(ratio, share))))
        # A small sample does not determine the rank of the cut well.
        return drift, float(np.quantile(u - drift * q, share)) if len(ratio) >= _SAMPLED // 2 else np.inf


class UncertainPool:
    """A pool whose most uncertain points are found without scoring all of it at every pick.

    Args:
        features: ``m x J``, in memory or on disk.
        averaged: Whether the predictive is averaged over the posterior (``s`` as above); else ``s`` counts as 0, which
            is the plug-in predictive of the paper.

    Attributes:
        source: The features, if they are on disk.
    """

    def __init__(self, features: Floats | DiskRows, *, averaged: bool) -> None:
        self._whole = (
            _StreamedLayer(features, averaged=averaged)
            if isinstance(features, DiskRows)
            else _Layer(features.T, np.arange(len(features)), averaged=averaged)
        )
        self._free = np.ones(len(features), dtype=bool)
        self.source = features if isinstance(features, DiskRows) else None

    @property
    def looks(self) -> int:
        """Number of passes over the whole pool."""
        return self._whole.looks

    def nearest(self, posterior: WeightPosterior, n: int) -> Indices:
        """The ``n`` most uncertain points under the posterior, most uncertain first; ties to the lowest index."""
        return self.leading(posterior, n)[0][:n]

    def leading(self, posterior: WeightPosterior, n: int) -> tuple[Indices, Floats]:
        """Return the candidates for the ``n`` most uncertain points if this pool is a part; see :func:`leading`."""
        n = min(n, int(np.count_nonzero(self._free)))
        if not n:
            return np.zeros(0, dtype=np.intp), np.zeros(0)
        return self._whole.nearest(posterior, n, self._free)

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
        return leading(values, 1)[:1]
    cut = np.partition(values, n - 1)[n - 1] if n < len(values) else np.inf
    found = np.flatnonzero((values <= cut + _TIE) & np.isfinite(values))
    order = np.argsort(np.round(values[found] / _TIE), kind="stable")
    return found[order][:n]


def leading(values: Floats, n: int) -> NDArray[np.intp]:
    """Return the positions of one part that are sufficient to find :func:`smallest` of all parts.

    For ``n = 1``, these are the lowest position among the values that are equal to the smallest up to rounding, and
    then the positions of smaller values, which may tie with a slightly smaller value of another part. For a larger
    ``n``, they are the ``n`` smallest.

    Examples:
        >>> leading(np.array([0.3, 0.1 + 1e-12, 0.1, 0.1]), 1)
        array([1, 2])
    """
    if n != 1:
        return smallest(values, n) if n else np.zeros(0, dtype=np.intp)
    low = float(values.min(initial=np.inf))
    if not np.isfinite(low):
        return np.zeros(0, dtype=np.intp)
    near = np.flatnonzero(values <= low + _TIE)
    before = np.minimum.accumulate(np.concatenate([[np.inf], values[near[:-1]]]))
    return near[values[near] < before]
