"""Pools in torch, on a GPU or a CPU, for a Gaussian process and for a classifier.

For a classifier, the device scores all points, in single precision if requested, and bounds the rounding error of each
score. The few points that can be among the best within these bounds are scored again by the function for pools in
memory. The picks are therefore those of a pool in memory, including ties.
"""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache, partial
from typing import Any, Final, NamedTuple

import numpy as np
import torch
from scipy.linalg.lapack import dtrtri

from suffice.engines.class_pool import most_useful, smallest, uncertainty
from suffice.engines.disk_rows import blocks_of
from suffice.engines.variance_pool import SINGLE, TIE, Indices, PoolCandidates
from suffice.engines.variance_reduction import PlannedPicks
from suffice.errors import InvalidValueError, NotEnoughMemoryError
from suffice.models.gaussian_state import Block, KernelState
from suffice.models.kernels import half_squares
from suffice.models.laplace import logit_factors
from suffice.models.predictive import hermite, weight_draws
from suffice.numerics import Floats

# Number of labels whose rows are kept in one array. Memory is allocated in such parts, so that nothing is copied when
# it grows. Also the number of terms of a product that are summed in single precision.
_PART: Final = 128
# Bytes of the rows of a block that are processed at a time, so that they stay in the cache of a GPU.
_TILE_BYTES: Final = 1 << 25
# Number of points of a pool that are processed at a time if everything is recomputed in double precision.
_AT_ONCE: Final = 1 << 16
# Picks are planned from one point of this many, but from no fewer and no more points than these; in pools of this size.
_ONE_OF, _LEADING, _PLANNED_FROM = 256, (1024, 1 << 15), 1 << 17
# One point of this many is looked at to find the leading ones.
_STRIDE: Final = 64
# All points are computed again if most of the leading sums have a relative error above the first number, and at least
# this many labels after the last time.
_LOOSE, _RENEWED_AFTER = 0.1, 64
# Factor of errors over those of a single rounding.
_MARGIN: Final = 8.0
_EPS: Final = float(np.finfo(np.float64).eps)


class TorchRows:
    """Points on a device that follow a Gaussian process, as :class:`suffice.engines.KernelRows` does in memory.

    A block of ``k`` labels costs ``2 n k`` operations and ``n`` reads per point, after ``n`` labels.

    Args:
        state: The posterior to follow.
        points: Inputs, ``m x D``: an array or a tensor.
        device: Device of the points, such as ``"cuda"``; by default that of the tensor.
        single: Whether to keep rows in single precision.

    Attributes:
        n: Number of labels applied so far.
        half: Half of the square of the distance of each point from the centre, in units of the length scale.
    """

    def __init__(self, state: KernelState, points: Any, device: Any = None, *, single: bool = True) -> None:
        self.state, self.n, self.single = state, 0, single
        given = torch.as_tensor(points)
        self.device = torch.device(given.device if device is None else device)
        self.dtype = torch.float32 if single else torch.float64
        self.points = given.to(self.device)
        self._scale = torch.as_tensor(np.asarray(state.kernel.length_scale), device=self.device)
        # In double precision first, so that subtracting the centre of distant points loses no digits.
        self._middle = torch.stack([column.double().mean() for column in self.points.T]) / self._scale
        self._centre: Floats = self._middle.cpu().numpy()
        self._columns = torch.empty((self.points.shape[1], len(self)), dtype=self.dtype, device=self.device)
        scales = self._scale.expand(self.points.shape[1])
        for d, column in enumerate(self.points.T):
            self._columns[d] = column.double() / scales[d] - self._middle[d]
        self.half = 0.5 * (self._columns * self._columns).sum(dim=0)
        self._parts: list[Any] = []
        # The labelled points, scaled, and their factor, in double precision, with room for more.
        self._known = self._columns.new_zeros((0, self.points.shape[1]), dtype=torch.float64)
        self._factor = self._known.new_zeros((0, 0))

    def __len__(self) -> int:
        return len(self.points)

    def follow(self, extra: Any = None, latest: Any = None) -> Iterator[tuple[slice, Any, Any]]:
        """Append the rows of the labels since the last call, tile by tile.

        Args:
            extra: A matrix in double precision, ``e x n``, that the earlier rows are multiplied by, so that they are
                read only once.
            latest: The result of :meth:`latest`, if it was called before.

        Yields:
            The tile, the new rows, ``k x t``, and the product with its sign changed, ``e x t``.
        """
        old, new = self.n, self.state.n
        if new == old:
            return
        self._make_room(new)
        fresh, added = self.latest() if latest is None else latest
        factor, weights, k = added[:, old:], added[:, :old], new - old
        if self.single:
            # The inverse is computed in double precision, so that no digit of single precision is lost.
            factor = solve(factor, torch.eye(k, dtype=torch.float64, device=self.device))
            weights = factor @ weights
        if extra is not None:
            weights = torch.cat([weights, extra])
        lower, across = factor.to(self.dtype), weights.to(self.dtype)
        half = (0.5 * (fresh * fresh).sum(dim=1)).to(self.dtype)[:, None]
        fresh = fresh.to(self.dtype)
        width = max(1024, _TILE_BYTES // (len(across) * self._columns.element_size()))
        for start in range(0, len(self), width):
            tile = slice(start, min(start + width, len(self)))
            with _full_precision():
                block = torch.addmm(-half - self.half[tile], fresh, self._columns[:, tile]).clamp_max_(0.0).exp_()
                block = (lower @ block if k > 1 else lower * block) if self.single else block
                if extra is not None:
                    block = torch.cat([block, block.new_zeros((len(extra), block.shape[1]))])
                for part, rows in self._stored(tile):
                    block.addmm_(across[:, part], rows, alpha=-1.0)
            block, product = block[:k], None if extra is None else block[k:]
            block = block if self.single else solve(lower, block)
            for number in range(old // _PART, (new - 1) // _PART + 1):
                here = slice(max(old - number * _PART, 0), min(new - number * _PART, _PART))
                there = slice(here.start + number * _PART - old, here.stop + number * _PART - old)
                self._parts[number][here, tile] = block[there]
            yield tile, block, product
        self.n = new

    def latest(self) -> tuple[Any, Any]:
        """Copy the labels since the last call of :meth:`follow` to the device.

        Returns:
            Their points, scaled, ``k x D``, and their rows of the factor, ``k x n``, in double precision.
        """
        state, old, new = self.state, self.n, self.state.n
        if new > len(self._factor):
            factor, known = self._factor, self._known
            self._factor = factor.new_zeros((2 * new, 2 * new))
            self._known = known.new_zeros((2 * new, known.shape[1]))
            self._factor[:old, :old], self._known[:old] = factor[:old, :old], known[:old]
        self._known[old:new] = torch.as_tensor(self._scaled_labelled(slice(old, new)), device=self.device)
        self._factor[old:new, :new] = torch.as_tensor(np.tril(state.lower[old:new, :new], old), device=self.device)
        return self._known[old:new], self._factor[old:new, :new]

    def _stored(self, tile: slice) -> Iterator[tuple[slice, Any]]:
        """The rows of a tile, part by part."""
        for number, part in enumerate(self._parts):
            labels = slice(number * _PART, min((number + 1) * _PART, self.n))
            if labels.start < labels.stop:
                yield labels, part[: labels.stop - labels.start, tile]

    def stored(self, tile: slice) -> Any:
        """``V`` at a tile, ``n x t``, in double precision."""
        empty = torch.zeros((0, tile.stop - tile.start), dtype=torch.float64, device=self.device)
        return torch.cat([empty, *(rows.double() for _, rows in self._stored(tile))])

    def _scaled_labelled(self, labels: slice) -> Floats:
        """Some of the labelled points as :meth:`scaled` returns them, in memory."""
        return np.asarray(self.state.kernel.scaled(self.state.features[labels]) - self._centre)

    def half_of(self, labels: slice) -> Floats:
        """``half`` at some of the labelled points."""
        return half_squares(self._scaled_labelled(labels))

    def scaled(self, features: Any) -> Any:
        """Return points in units of the length scale, relative to the centre of the pool, in double precision."""
        return features.double() / self._scale - self._middle

    def posterior(self, features: Any) -> tuple[Any, Any]:
        """``W`` and the latent covariance of some points, in double precision."""
        scaled = self.scaled(features)
        prior = kernel(scaled, scaled)
        prior.fill_diagonal_(1.0)
        whitened = self.whiten(scaled)
        return whitened, prior - whitened.T @ whitened

    def whiten(self, scaled: Any) -> Any:
        """``W`` at some scaled points, ``n x k``, in double precision."""
        if not self.n:
            return torch.zeros((0, len(scaled)), dtype=torch.float64, device=self.device)
        factor = self._factor[: self.n, : self.n]
        return solve(factor, kernel(self._known[: self.n], scaled))

    def indices(self, given: Indices) -> Any:
        """Indices as a tensor."""
        return torch.as_tensor(np.asarray(given, dtype=np.int64), device=self.device)

    def features(self, indices: Indices) -> Floats:
        """Features of some points."""
        found: Floats = self.points[self.indices(indices)].double().cpu().numpy()
        return found

    def rewind(self, n: int) -> None:
        """Remove the rows after the first ``n`` labels."""
        self.n = n

    def _make_room(self, labels: int) -> None:
        """Allocate rows for a number of labels.

        Raises:
            NotEnoughMemoryError: The device does not have the memory.
        """
        while len(self._parts) * _PART < labels:
            try:
                self._parts.append(torch.empty((_PART, len(self)), dtype=self.dtype, device=self.device))
            except torch.OutOfMemoryError:
                raise no_memory(len(self), labels, len(self) * labels * self._columns.element_size(), self) from None


def _of_exact(squares: Any, size: int) -> Any:
    """Bounds of the errors of variances and sums of squares that are computed in double precision, ``2 x k``.

    Args:
        squares: The sums of squares.
        size: Number of points of the sample.
    """
    # A covariance is a difference of numbers up to 1.
    error = 2.0 * TIE * size**0.5
    return torch.stack([torch.full_like(squares, TIE), (2.0 * squares.sqrt()).add_(error).mul_(error)])


def no_memory(items: int, labels: int, size: float, rows: TorchRows) -> NotEnoughMemoryError:
    """The error for a device that does not have the memory."""
    return NotEnoughMemoryError(
        f"following {items:,} items over {labels:,} labels needs {size / 1e9:,.1f} GB of the memory of {rows.device}, "
        "and that is not free: a smaller pool or fewer labels would help"
    )


def solve(lower: Any, rows: Any) -> Any:
    """Compute ``lower^-1 rows``."""
    return rows / lower if len(lower) == 1 else torch.linalg.solve_triangular(lower, rows, upper=False)


def _product(matrix: Any, rows: Any) -> Any:
    """Compute ``matrix @ rows``, which for a single row is faster without a product of matrices."""
    return matrix * rows if len(rows) == 1 else matrix @ rows


def kernel(a: Any, b: Any) -> Any:
    """The Gaussian kernel of points around the origin in units of the length scale."""
    squares = 0.5 * ((a * a).sum(dim=1)[:, None] + (b * b).sum(dim=1)) - a @ b.T
    return torch.exp(-squares.clamp_min_(0.0))


class TorchPool:
    """A pool in the memory of a device of torch, scored by latent variance.

    It is equivalent to :class:`suffice.engines.MemoryPool`. In double precision the picks are the same, unless two
    variances differ by no more than the rounding errors of many labels. In single precision, scores have errors of
    about ``1e-6`` of the prior variance, and picks can differ if two variances are that close. The posterior itself,
    and the covariance of the candidates from which picks are planned, are in double precision in both cases.

    Args:
        state: The posterior to follow.
        points: Inputs, ``m x D``: an array or a tensor.
        device: Device of the points, such as ``"cuda"``; by default that of the tensor.
        single: Whether to keep rows in single precision.
    """

    def __init__(self, state: KernelState, points: Any, device: Any = None, *, single: bool = True) -> None:
        self._rows, self._warned = TorchRows(state, points, device, single=single), False
        self._variance = torch.ones(len(self._rows), dtype=self._rows.dtype, device=self._rows.device)
        self._free = torch.ones(len(self._rows), dtype=torch.bool, device=self._rows.device)

    def top(self, n: int) -> PoolCandidates:
        """The ``n`` points of largest variance, ties to the lowest index."""
        score = torch.where(self._free, self._variance, -torch.inf)
        n = min(n, int(self._free.sum()))
        best, single = float(score.max()) if n else 0.0, self._rows.single
        tie, slack = TIE, SINGLE if single else 0.0
        if single and n and best < 100.0 * SINGLE and not self._warned:
            self._warned = True
            warnings.warn(
                "the largest variance of the pool is below 1e-4 of the prior, near the resolution of single precision: "
                "picks may differ from those of double precision",
                stacklevel=2,
            )
        indices, rest, rest_index = self._largest(score, n, tie)
        features = self._rows.points[indices].double()
        whitened, covariance = self._rows.posterior(features)
        return PoolCandidates(
            indices.cpu().numpy().astype(np.intp),
            features.cpu().numpy(),
            whitened.cpu().numpy(),
            rest + slack,
            rest_index,
            tie,
            covariance.cpu().numpy(),
        )

    @staticmethod
    def _largest(score: Any, n: int, margin: float) -> tuple[Any, float, int]:
        """Indices of the ``n`` largest scores, ascending, the best of the rest, and its lowest index."""
        if not n:
            return torch.zeros(0, dtype=torch.long, device=score.device), -np.inf, len(score)
        cut = torch.topk(score, n, sorted=False).values.min()
        above = torch.nonzero(score > cut + margin)[:, 0]
        equal = torch.nonzero((score >= cut - margin) & (score <= cut + margin))[: n - len(above), 0]
        indices = torch.cat([above, equal]).sort().values
        others = score.clone()
        others[indices] = -torch.inf
        rest = float(others.max())
        if rest == -np.inf:
            return indices, rest, len(score)
        return indices, rest, int(torch.argmax((others >= rest - 2.0 * margin).to(torch.uint8)))

    def follow(self) -> None:
        """Update to the posterior; the pool is read once."""
        for tile, rows, _ in self._rows.follow():
            self._variance[tile] -= (rows * rows).sum(dim=0)

    def features(self, indices: Indices) -> Floats:
        """Features of some points."""
        return self._rows.features(indices)

    def take(self, indices: Indices) -> None:
        """Leave points out from now on."""
        self._free[self._rows.indices(indices)] = False

    def jump(self) -> None:
        """Do nothing: a Gaussian process is followed label by label."""

    def tidy(self) -> None:
        """Do nothing: keeping the points that are taken is faster than moving the others."""

    def mark(self) -> tuple[int, Any, Any]:
        """Present state."""
        return self._rows.n, self._variance.clone(), self._free.clone()

    def rewind(self, mark: tuple[int, Any, Any]) -> None:
        """Go back to a mark."""
        self._rows.rewind(mark[0])
        self._variance, self._free = mark[1].clone(), mark[2].clone()


class TorchSums:
    """A pool in the memory of a device of torch, scored by the reduction of its mean variance.

    It is equivalent to :class:`suffice.engines.variance_reduction.KernelSums`, with the same bounds of rounding errors
    and the same picks. The prior covariances with the sample are kept in single precision.

    Args:
        state: The posterior.
        points: Inputs, ``m x D``: an array or a tensor.
        sample: The points of the pool over which the mean variance is computed.
        capacity: Number of labels to allocate memory for in the rows of the sample.
        device: Device of the pool; by default that of the tensor.
        single: Whether to keep rows in single precision.

    Raises:
        NotEnoughMemoryError: The device does not have the memory.
    """

    def __init__(  # noqa: PLR0913 - the last two by keyword or as above
        self,
        state: KernelState,
        points: Any,
        sample: Indices,
        capacity: int,
        device: Any = None,
        *,
        single: bool = True,
    ) -> None:
        self._state, self._rows = state, TorchRows(state, points, device, single=single)
        self._size, self._row_eps = len(sample), float(torch.finfo(self._rows.dtype).eps)
        self._around = self._rows.scaled(self._rows.points[self._rows.indices(sample)])
        m, place = len(self._rows), self._rows.device
        try:
            self._variance, self._squares = torch.zeros((2, m), dtype=torch.float64, device=place)
            # Bounds of the errors of both, without those of the roundings that are the same for all points.
            self._errors = torch.zeros((2, m), dtype=torch.float32, device=place)
            self._scale = torch.empty(m, dtype=torch.float32, device=place)
            self._prior = torch.empty((self._size, m), dtype=torch.float32, device=place)
        except torch.OutOfMemoryError:
            raise no_memory(m, capacity, 4.0 * m * (self._size + 8), self._rows) from None
        for tile in self._tiles():
            prior = kernel(self._around, self._rows.scaled(self._rows.points[tile]))
            self._prior[:, tile] = prior
            self._scale[tile] = prior.square().sum(dim=0).sqrt()
        # ``V`` at the sample, on the device, with room for more labels.
        self._whitened_sample = torch.zeros((capacity, self._size), dtype=torch.float64, device=place)
        self._taken = torch.zeros(m, dtype=torch.bool, device=place)
        # Number of roundings of the sums since all points were computed, and number of labels at that time.
        self._updates = self._computed = 0
        self._begun = False

    def follow(self) -> None:
        """Update to the posterior; the pool is read once."""
        n, new = self._state.n, self._state.n - self._rows.n
        if not self._begun or new * (self._size + 2 * (n - new) + new) > n * self._size:
            self._compute_all()
            self._begun = True
        elif new:
            self._update_all()

    def jump(self) -> None:
        """Discard updated values: everything is computed from the posterior when it is needed."""
        self._begun = False

    def contenders(self, computed: Indices | None = None) -> Indices:
        """Points whose score could be the largest, within the bounds of rounding; ascending.

        Args:
            computed: Points to choose from, which were recomputed since the last update; all if left out.
        """
        if computed is not None:
            return self._best_of(self._rows.indices(computed), 0)
        high = self._bound(slice(None), 1.0, self._updates).masked_fill_(self._taken, -torch.inf)
        # No point above the best lower bound is below that of the point of the largest upper bound.
        least = self._bound(high.argmax()[None], -1.0, self._updates)
        return self._best_of(torch.nonzero(high >= least)[:, 0], self._updates)

    def _best_of(self, where: Any, updates: int) -> Indices:
        """Those of some free points, ascending, whose score could be the largest of them."""
        if len(where) > 1:
            where = where[self._bound(where, 1.0, updates) >= self._bound(where, -1.0, updates).max()]
        found: Indices = where.cpu().numpy().astype(np.intp)
        return found

    def _bound(self, where: Any, sign: float, updates: int) -> Any:
        """Bound of the scores of some points times the size of the sample: upper for a sign of 1, lower for -1.

        Args:
            where: The points.
            sign: Sign of the bound.
            updates: Maximal number of updates since the points were computed.
        """
        values = self._squares[where], self._variance[where]
        return self._bound_of(*values, self._errors[:, where], sign, updates)

    def _bound_of(self, squares: Any, variance: Any, errors: Any, sign: float, updates: int) -> Any:
        """The same from sums of squares and variances, with the errors of both."""
        of_sums, of_variance = self._slack(errors, sign, updates)
        noise = self._state.noise
        return of_sums.add_(squares).div_((variance + noise).sub_(of_variance).clamp_(min=noise)).clamp_(min=0.0)

    def _slack(self, errors: Any, sign: float, updates: int) -> Any:
        """Bounds of the errors of sums and variances, times a sign, with those of updates."""
        # Each update rounds the sums once, of which none is above 1 for each point of the sample. Errors are summed in
        # single precision.
        factor = sign * (1.0 + 4.0 * updates * float(torch.finfo(torch.float32).eps))
        of_variance, of_sums = errors.double() * factor
        return of_sums.add_(sign * 2.0 * self._size * _EPS * updates), of_variance.add_(sign * _EPS * updates)

    def plan(self, first: int, most: int) -> PlannedPicks | None:
        """Plan picks from the points of the largest scores, in double precision.

        Args:
            first: The first pick.
            most: Largest number of picks.

        Returns:
            The plan; None for a small pool, or if many points have the same score, or without memory.
        """
        if len(self._rows) < _PLANNED_FROM:
            return None
        size = min(max(len(self._rows) // _ONE_OF, _LEADING[0]), _LEADING[1])
        where = self._leading(size)
        place = torch.searchsorted(where, first)
        if not most <= len(where) <= 4 * size or place == len(where) or where[place] != first:
            return None
        try:
            return self._planned(where, place[None], most)
        except torch.OutOfMemoryError:
            return None

    def _leading(self, size: int) -> Any:
        """The points of the largest upper bounds, about so many, ascending."""
        high = self._bound(slice(None), 1.0, self._updates).masked_fill_(self._taken, -torch.inf)
        some = torch.topk(high[::_STRIDE], min(4 * size, len(high)) // _STRIDE)
        if self._rows.n - self._computed >= _RENEWED_AFTER:
            # With many labels, sums are small, and may be smaller than the errors of the first updates.
            error, squares = (values[::_STRIDE][some.indices] for values in (self._errors[1], self._squares))
            if (error > _LOOSE * squares).double().mean() > 0.5:
                self._compute_all()
                return self._leading(size)
        return torch.nonzero(high >= some.values[len(some.values) // 4])[:, 0]

    def _planned(self, where: Any, place: Any, most: int) -> PlannedPicks:
        """Plan picks from some points, the first of which is that at a place."""
        mark, n, noise = self.mark(), self._rows.n, self._state.noise
        scaled = self._rows.scaled(self._rows.points[where])
        prior = kernel(self._around, scaled)
        white = prior.new_empty((n + most, len(where)))
        white[:n] = self._rows.whiten(scaled)
        # As for picks that are not planned, the points are as exact from here on as double precision allows.
        self._put(where, prior, white[:n])
        covariance, variance = prior.sub_(self._whitened_sample[:n].T @ white[:n]), self._variance[where]
        barred, places, least, latent = torch.zeros_like(variance), list[Any](), list[Any](), list[Any]()
        for i in range(n, n + most):
            barred[place] = -torch.inf
            places.append(place)
            latent.append(variance[place].clamp_(min=0.0))
            if len(places) == most:
                break
            pivot = (latent[-1] + noise).sqrt()
            column = kernel(scaled[place], scaled)[0] - (white[:i].index_select(1, place).T @ white[:i])[0]
            torch.div(column, pivot, out=white[i])
            variance.addcmul_(white[i], white[i], value=-1.0)
            covariance.addr_(covariance.index_select(1, place)[:, 0] / pivot, white[i], alpha=-1.0)
            squares = covariance.square().sum(dim=0)
            error = _of_exact(squares, self._size)
            low, high = (self._bound_of(squares, variance, error, sign, 0).add_(barred) for sign in (-1.0, 1.0))
            # The first of those that tie.
            place = torch.argmax((high >= low.max()).to(torch.uint8), dim=0, keepdim=True)
            least.append(low[place])
        chosen, latents = torch.cat(places), torch.cat(latent)
        later = white[n:, chosen].T.tril(-1) + (latents + noise).sqrt().diag()
        block = (self._rows.points[where[chosen]].double(), white[:n, chosen], later, latents)
        indices: Indices = where[chosen].cpu().numpy().astype(np.intp)
        confirm = partial(self._confirm, where, torch.cat([*least, latents[:0]]))
        return PlannedPicks(indices, Block(*(values.cpu().numpy() for values in block)), mark, confirm)

    def _confirm(self, where: Any, least: Any) -> int:
        """Update to the posterior after planned picks.

        Args:
            where: The points from which the picks were planned.
            least: Lower bounds of the scores of the picks after the first, when they were picked.

        Returns:
            How many picks have a larger score than all points that they were not planned from.
        """
        hidden = self._taken.clone()
        hidden[where] = True
        below = (self._update_all(hidden)[: len(least)] < least).cpu().numpy()
        return 1 + int(below.argmin() if not below.all() else len(below))

    def compute(self, indices: Indices) -> None:
        """Recompute some points in double precision."""
        for first in range(0, len(indices), _AT_ONCE):
            where = self._rows.indices(indices[first : first + _AT_ONCE])
            scaled = self._rows.scaled(self._rows.points[where])
            self._put(where, kernel(self._around, scaled), self._rows.whiten(scaled))

    def features(self, indices: Indices) -> Floats:
        """Features of some points."""
        return self._rows.features(indices)

    def take(self, indices: Indices) -> None:
        """Leave points out from now on. They stay in the mean."""
        self._taken[self._rows.indices(indices)] = True

    def mark(self) -> Any:
        """Present state, for :meth:`rewind`."""
        arrays = tuple(values.clone() for values in (self._taken, self._variance, self._squares, self._errors))
        return self._rows.n, self._begun, (self._updates, self._computed), arrays

    def rewind(self, mark: Any) -> None:
        """Go back to a mark."""
        self._rows.rewind(mark[0])
        self._begun, (self._updates, self._computed) = mark[1:3]
        self._taken, self._variance, self._squares, self._errors = (values.clone() for values in mark[3])

    def _tiles(self) -> Iterator[slice]:
        """The points that are recomputed at a time."""
        m = len(self._rows)
        return (slice(first, min(first + _AT_ONCE, m)) for first in range(0, m, _AT_ONCE))

    def _follow_sample(self, fresh: Any, added: Any) -> Any:
        """Rows of the sample of the labels since the last update, ``k x q``, in double precision.

        Args:
            fresh: Their points, scaled.
            added: Their rows of the factor.
        """
        old, new = self._rows.n, self._state.n
        if new > len(self._whitened_sample):
            room = self._whitened_sample.new_zeros((2 * new, self._size))
            room[:old] = self._whitened_sample[:old]
            self._whitened_sample = room
        if new > old:
            rows = kernel(fresh, self._around).sub_(added[:, :old] @ self._whitened_sample[:old])
            self._whitened_sample[old:new] = solve(added[:, old:], rows)
        return self._whitened_sample[old:new]

    def _put(self, where: Any, prior: Any, whitened: Any) -> None:
        """Store the values that are computed in double precision from the prior covariances with the sample."""
        squares = (prior - self._whitened_sample[: len(whitened)].T @ whitened).square().sum(dim=0)
        self._variance[where], self._squares[where] = 1.0 - whitened.square().sum(dim=0), squares
        self._errors[:, where] = _of_exact(squares, self._size).float()

    def _compute_all(self) -> None:
        latest = self._rows.latest()
        self._follow_sample(*latest)
        for _ in self._rows.follow(None, latest):
            pass
        self._updates, self._computed = 0, self._rows.n
        # Rows in single precision have rounding errors themselves.
        lower, farthest = np.diag(self._state.lower), self._rows.half_of(slice(0, self._state.n))
        of_rows = 2.0 * self._row_eps * (1.0 + farthest.max(initial=0.0)) / lower.min(initial=1.0)
        of_prior = float(torch.finfo(torch.float32).eps) if self._rows.single else 0.0
        for tile in self._tiles():
            if of_prior:
                prior = self._prior[:, tile].double()
            else:
                prior = kernel(self._around, self._rows.scaled(self._rows.points[tile]))
            self._put(tile, prior, self._rows.stored(tile))
            error = (self._rows.half[tile] + 1.0).mul_(of_rows)
            of_covariances = error * self._size**0.5 + of_prior * self._scale[tile]
            self._errors[0, tile] += error
            self._errors[1, tile] += of_covariances * (self._squares[tile].sqrt() + of_covariances)

    def _update_all(self, hidden: Any = None) -> Any:
        """As :meth:`suffice.engines.variance_reduction.CovarianceSums._apply`, with the tiles of the device.

        Args:
            hidden: Points to leave out of the result, a mask.

        Returns:
            The largest upper bound of the scores after each of the new labels, ``k``, times the size of the sample;
            None without ``hidden``.
        """
        old = self._rows.n
        fresh, added = self._rows.latest()
        white = self._follow_sample(fresh, added)
        across, gram, k = white @ self._whitened_sample[:old].T, white @ white.T, len(white)
        # Label ``i`` changes the sum by ``R_i (G_ii R_i + 2 sum_{l < i} G_il R_l - 2 P_i)``. This is what it has in
        # addition to ``R_i (sum_l G_il R_l - 2 P_i)``.
        in_turn = gram.tril(-1) - gram.triu(1)
        of_white = white.float()
        # A product has an error of its own for each part, and one of adding the parts.
        roundings = _MARGIN + 0.5 * (old // _PART + self._size // _PART + 2)
        of_scale = 2.0 * roundings * float(torch.finfo(torch.float32).eps) * torch.linalg.vector_norm(white, dim=1)
        constant = 2.0 * roundings * self._row_eps * torch.linalg.vector_norm(across, dim=1)
        # The exponent of a prior covariance has a relative error, which grows with the distances from the centre.
        of_rows = 2.0 * self._row_eps / np.diag(self._state.lower)[old:]
        of_near = of_rows * (1.0 + self._rows.half_of(slice(old, self._state.n)))
        of_change = torch.as_tensor(np.stack([of_near, of_rows]), device=white.device)
        of_size = torch.cat([torch.stack([of_scale, constant]), of_change]).float()
        of_change = of_size[2:]
        noise, largest = self._state.noise, None if hidden is None else white.new_full((k,), -torch.inf)
        # The sums of each label have as many roundings as there are labels.
        self._updates += k * k
        for tile, new, products in self._rows.follow(across, (fresh, added)):
            with _full_precision():
                for first in range(0, self._size, _PART):
                    part = slice(first, first + _PART)
                    if products.dtype == torch.float32:
                        products.addmm_(of_white[:, part], self._prior[part, tile])
                    else:
                        products.add_(of_white[:, part] @ self._prior[part, tile])
                rows = new.double()
                falls = _product(gram, rows).sub_(products)
                near, far = _product(of_change, falls.float().abs_())
                by_scale, size, near_variance, far_variance = _product(of_size, new.abs().float())
            distances, errors = self._rows.half[tile].float(), self._errors[:, tile]
            errors[0].add_(near_variance).addcmul_(distances, far_variance)
            errors[1].add_(size).addcmul_(self._scale[tile], by_scale).add_(near).addcmul_(distances, far)
            falls.sub_(products)
            if k > 1:
                falls.add_(in_turn @ rows)
            falls.mul_(rows)
            rows.square_()
            squares, variance = self._squares[tile], self._variance[tile]
            after = squares + falls.sum(dim=0), variance - rows.sum(dim=0)
            if largest is not None:
                # The upper bounds after each label, from sums over the labels so far.
                of_sums, of_variance = self._slack(errors, 1.0, self._updates)
                falls[0] += of_sums.add_(squares).masked_fill_(hidden[tile], -torch.inf)
                rows.neg_()[0] += variance - of_variance + noise
                high = falls.cumsum_(dim=0).div_(rows.cumsum_(dim=0).clamp_(min=noise))
                torch.maximum(largest, high.amax(dim=1), out=largest)
            self._squares[tile], self._variance[tile] = after
        return largest


#: Acquisitions that a device can score, each with whether predictions are averaged over the posterior.
DEVICE_SCORES: Final = {"entropy": True, "margin": True, "map-entropy": False, "bald": True}

# More candidates than this are scored on the device in double precision first.
_FEW: Final = 4096
_PROBIT: Final = np.pi / 8.0
# Scores closer than this, relative to the best, are ties in memory.
_TIE: Final = 1e-11
# Roundings of the functions of a logit, each of a number of order 1.
_STEPS: Final = 64.0
# Nodes and draws as in suffice.acquisition, and the variance from which other nodes are used. At this variance the two
# quadratures differ by less than the last number.
_NODES, _LAGUERRE, _DRAWS, _WIDE, _BETWEEN_RULES = 20, 40, 32, 2.0, 3e-7
# The table of the score of BALD of two classes. Its rows are means of a logit, in units of 1 plus the deviation; its
# columns are deviations, on a scale that is logarithmic for large ones. Cells for each unit, and largest values.
# Pools of fewer points than the table has are scored without it.
_ROWS, _LARGEST_MEAN, _COLUMNS, _LARGEST_DEVIATION = 64, 16, 80, 500.0
_SIZE: Final = _LARGEST_MEAN * _ROWS + 1, int(np.ceil(np.log1p(_LARGEST_DEVIATION) * _COLUMNS)) + 1
_TABLE_FROM: Final = _SIZE[0] * _SIZE[1]
# Bound on the error of a value of the table between its points. The score is this value times the square of ``s / (1 +
# s)``, with ``s`` the deviation.
_TABLE_ERROR: Final = 8e-5


class _Formula(NamedTuple):
    """The score of points under a posterior, with bounds on its error.

    Attributes:
        matrix: Matrix that points are multiplied by, ``E x J``, in double precision.
        score: Function of the product, ``E x t``, that returns one number for each point; larger is more useful.
        size: Number of values for each point that exist at a time.
        slope: Bound on the error of a score per rounding: coefficients of the norm of the point and of its square.
        noise: Bound on the other errors, in roundings and absolutely.
        memory: Bound on the error of the score in memory: coefficient of the cube of the norm of the point.
        rough: A faster function than ``score``, whose error is larger; None if there is none.
        rough_error: Bound on the additional error of ``rough``: coefficient of the square of the norm of the point, and
            the largest error.
    """

    matrix: Floats
    score: Callable[[Any], Any]
    size: int
    slope: tuple[float, float]
    noise: tuple[float, float] = (_STEPS, 0.0)
    memory: float = 0.0
    rough: Callable[[Any], Any] | None = None
    rough_error: tuple[float, float] = (0.0, 0.0)


class TorchClasses:
    """A pool in the memory of a device of torch, scored by the uncertainty of its classes.

    It is equivalent to :class:`suffice.engines.class_pool.UncertainPool` and
    :class:`~suffice.engines.class_pool.ScoredPool`, for two classes or many, and makes the same picks.

    Args:
        features: ``m x J``: an array, rows on disk, or a tensor. Points are scored again from it.
        name: Acquisition, one of :data:`DEVICE_SCORES`.
        score: Function of a posterior and the features of some rows that returns how useful each label would be, in
            memory.
        device: Device of the points, such as ``"cuda"``; by default that of the tensor.
        single: Whether to score all points in single precision.

    Attributes:
        source: The features.

    Raises:
        InvalidValueError: The acquisition cannot be scored on a device.
        NotEnoughMemoryError: The device does not have the memory.
    """

    def __init__(
        self,
        features: Any,
        name: str,
        score: Callable[[Any, Floats], Floats],
        device: Any = None,
        *,
        single: bool = True,
    ) -> None:
        if name not in DEVICE_SCORES:
            raise InvalidValueError(f"{name!r} cannot be scored on a device; {', '.join(DEVICE_SCORES)} can")
        self.source, self._name, self._score = features, name, score
        tensor = isinstance(features, torch.Tensor)
        self.device = torch.device(features.device if device is None and tensor else device or "cpu")
        self.dtype = torch.float32 if single else torch.float64
        m, width = features.shape
        try:
            self._columns = torch.empty((width, m), dtype=self.dtype, device=self.device)
            self._norm = torch.zeros(m, dtype=self.dtype, device=self.device)
            self._found = torch.empty(m, dtype=self.dtype, device=self.device)
        except torch.OutOfMemoryError:
            needed = (width + 4) * m * (4 if single else 8)
            raise NotEnoughMemoryError(
                f"a pool of {m:,} items with {width} features needs {needed / 1e9:,.1f} GB of the memory of "
                f"{self.device}, and that is not free: a smaller pool would help"
            ) from None
        for start, block in [(0, features)] if tensor else blocks_of(features):
            for first in range(0, len(block), 1 << 20):
                part = torch.as_tensor(block[first : first + (1 << 20)]).to(self.device)
                here = slice(start + first, start + first + len(part))
                self._columns[:, here] = part.T.to(self.dtype)
                self._norm[here] = part.double().square().sum(dim=1).sqrt()
        self._taken = torch.zeros(0, dtype=torch.long, device=self.device)

    def __len__(self) -> int:
        return len(self._norm)

    def take(self, indices: Indices) -> None:
        """Leave points out from now on."""
        new = torch.as_tensor(np.asarray(indices, dtype=np.int64), device=self.device)
        self._taken = torch.unique(torch.cat([self._taken, new]))

    def nearest(self, posterior: Any, n: int) -> Indices:
        """The ``n`` points of largest score, largest first; ties to the lowest index."""
        n = min(n, len(self) - len(self._taken))
        if not n:
            return np.zeros(0, dtype=np.intp)
        formula = self._formula(posterior)
        contenders = self._contenders(formula, n)
        if len(contenders) > (n if formula.rough else _FEW) and (formula.rough or self.dtype == torch.float32):
            contenders = self._narrowed(formula._replace(rough=None), contenders, n)
        indices: Indices = contenders.cpu().numpy().astype(np.intp)
        return indices[self._order(posterior, self._rows(indices), n)]

    def scores(self, posterior: Any) -> tuple[Any, Any]:
        """Return the score of every point, computed on the device, and a bound on its error.

        A score that is not computed is infinite.
        """
        formula = self._formula(posterior)
        self._scan(formula)
        return self._found.clone(), _error(formula, self._norm)

    def _formula(self, posterior: Any) -> _Formula:
        return _formula(self._name, posterior, tabulated=len(self) >= _TABLE_FROM)

    def _contenders(self, formula: _Formula, n: int) -> Any:
        """Points that can be among the ``n`` best, ascending."""
        self._scan(formula)
        self._found[self._taken] = -torch.inf
        return _can_win(self._found, _error(formula, self._norm), n)

    def _scan(self, formula: _Formula) -> None:
        matrix = torch.as_tensor(formula.matrix, device=self.device).to(self.dtype)
        width = max(1024, _TILE_BYTES // (formula.size * self._columns.element_size()))
        with _full_precision():
            for start in range(0, len(self), width):
                tile = slice(start, start + width)
                self._found[tile] = (formula.rough or formula.score)(matrix @ self._columns[:, tile])

    def _narrowed(self, formula: _Formula, contenders: Any, n: int) -> Any:
        """The same from some points, in double precision."""
        matrix = torch.as_tensor(formula.matrix, device=self.device)
        score = torch.empty(len(contenders), dtype=torch.float64, device=self.device)
        width = max(1024, _TILE_BYTES // (formula.size * 8))
        for start in range(0, len(contenders), width):
            part = contenders[start : start + width]
            score[start : start + width] = formula.score(matrix @ self._on_device(part).T)
        return contenders[_can_win(score, _error(formula, self._norm[contenders].double()), n)]

    def _on_device(self, indices: Any) -> Any:
        """Features of some points, on the device and in double precision."""
        if isinstance(self.source, torch.Tensor) and self.source.device == self.device:
            return self.source[indices].double()
        return torch.as_tensor(self._rows(indices.cpu().numpy().astype(np.intp)), device=self.device)

    def _rows(self, indices: Indices) -> Floats:
        """Features of some points, in memory and in double precision."""
        if isinstance(self.source, torch.Tensor):
            where = torch.as_tensor(indices, dtype=torch.long, device=self.source.device)
            found: Floats = self.source[where].double().cpu().numpy()
            return found
        return np.asarray(self.source[indices], dtype=np.float64)

    def _order(self, posterior: Any, rows: Floats, n: int) -> Indices:
        """Positions of the ``n`` best, by the scores and ties of a pool in memory."""
        if posterior.weights.ndim == 1 and self._name != "bald":
            inverse = np.asarray(dtrtri(posterior.factor, lower=1)[0])
            return smallest(uncertainty(rows.T, posterior, inverse, averaged=DEVICE_SCORES[self._name])[0], n)
        return most_useful(self._score(posterior, rows), n)


def _error(formula: _Formula, norm: Any) -> Any:
    """Return a bound on the errors of scores, for points of these norms."""
    eps = torch.finfo(norm.dtype).eps
    (first, second), (noise, other) = formula.slope, formula.noise
    found = norm.mul(formula.memory).add_(eps * second).mul_(norm) if formula.memory else norm.mul(eps * second)
    if formula.rough:
        return found.add_(eps * first).mul_(norm).add_(_rough_error(formula, norm)).add_(eps * noise + other)
    return found.add_(eps * first).mul_(norm).add_(eps * noise + other)


def _rough_error(formula: _Formula, norm: Any) -> Any:
    slope, largest = formula.rough_error
    return norm.square().mul_(slope).clamp_(max=largest)


def _can_win(score: Any, error: Any, n: int) -> Any:
    """Positions whose score can be one of the ``n`` largest, or tie with it; ascending."""
    # A score that overflows in single precision is unknown: it is not a bound for others, and may be the best.
    low = (score - error).nan_to_num_(nan=-torch.inf, posinf=torch.inf, neginf=-torch.inf)
    cut = low.max() if n == 1 else torch.topk(low, n, sorted=False).values.min()
    tie = 4.0 * _TIE * max(1.0, abs(float(cut)))
    return torch.nonzero(~(score + error < cut - tie) & (score != -torch.inf))[:, 0]


@contextmanager
def _full_precision() -> Iterator[None]:
    """Compute products of single precision without rounding to fewer digits, which a user may have enabled."""
    # Since version 2.9 there is another setting, and the old one must not be read if that is used.
    products: Any = torch.backends.cuda.matmul
    name, full = ("fp32_precision", "ieee") if hasattr(products, "fp32_precision") else ("allow_tf32", False)
    allowed = getattr(products, name)
    setattr(products, name, full)
    try:
        yield
    finally:
        setattr(products, name, allowed)


def _formula(name: str, posterior: Any, *, tabulated: bool = False) -> _Formula:
    """Return the formula of an acquisition under a posterior of two classes or many.

    A product of ``J`` terms has an error of at most ``(J + 8) eps |a| |x|``, including the rounding of its factors.

    Args:
        name: The acquisition.
        posterior: The posterior.
        tabulated: Whether to add a faster function by a table, if there is one.
    """
    weights = np.atleast_2d(posterior.weights)
    outputs, width = weights.shape
    terms, size = width + 8.0, float(np.linalg.norm(weights, axis=1).max())
    if name == "bald" and outputs > 1:
        draws = weight_draws(posterior, _DRAWS)
        longest = float(np.linalg.norm(draws, axis=2).max())
        slope = 4.0 * np.log(outputs) * terms * longest
        matrix = draws.reshape(-1, width)
        return _Formula(matrix, _bald_of_many(outputs), 4 * len(matrix), (slope, 0.0), (_STEPS * outputs, 0.0))
    if name == "map-entropy":
        return _logit_formula(name, weights, np.zeros((outputs, 0, width)), terms * size, 0.0)
    factors, memory = logit_factors(np.asarray(dtrtri(posterior.factor, lower=1)[0]), outputs), 0.0
    if outputs > 1:
        variance = float(np.einsum("kij,kij->k", factors, factors).max()) + 1.0 / (outputs * posterior.alpha)
        memory = 0.5 * _PROBIT * size * terms * float(np.finfo(np.float64).eps) * variance
        # The part that all classes share cancels in the probabilities. It is subtracted here, so that the device loses
        # no digits; a pool in memory subtracts it for each point.
        values, vectors = np.linalg.eigh(
            np.einsum("kij,kil->kjl", factors, factors) - np.eye(width) / (outputs * posterior.alpha)
        )
        factors = np.sqrt(np.maximum(values, 0.0))[:, :, None] * vectors.transpose(0, 2, 1)
    spread = float(np.sqrt(np.einsum("kij,kij->k", factors, factors).max()))
    if name == "bald":
        matrix = np.concatenate([weights, factors[0]])
        slope = terms * (0.6 * size + 2.0 * spread)
        exact = _Formula(matrix, _bald_of_two, 8 * _NODES, (slope, 0.0), (_STEPS, _BETWEEN_RULES))
        if not tabulated:
            return exact
        # The variance is at most the square of the spread times that of the norm of the point.
        errors = _TABLE_ERROR * spread**2, _TABLE_ERROR
        return exact._replace(rough=_tabulated_bald, rough_error=errors, size=4 * len(matrix))
    # The root of 1 + c v has a relative error of sqrt(c) |dR x| / 2.
    second = 0.5 * np.sqrt(_PROBIT) * terms * spread * size
    return _logit_formula(name, weights, factors, terms * size, second)._replace(
        memory=_steepest(name, outputs) * memory
    )


def _logit_formula(name: str, weights: Floats, factors: Floats, first: float, second: float) -> _Formula:
    """Return the formula for scores of averaged logits, whose errors have these slopes."""
    outputs = len(weights)
    matrix = np.concatenate([weights, factors.reshape(-1, weights.shape[1])])

    def logits(product: Any) -> Any:
        if not factors.size:
            return product
        mean, white = product[:outputs], product[outputs:]
        variance = white.square_().view(outputs, -1, white.shape[1]).sum(dim=1)
        return variance.mul_(_PROBIT).add_(1.0).rsqrt_().mul_(mean)

    if outputs == 1:
        # Entropy and margin fall with the distance of the averaged logit from 0.
        return _Formula(matrix, lambda product: -logits(product)[0].abs(), 2 * len(matrix), (first, second))
    score = _margin if name == "margin" else _entropy
    slope = _steepest(name, outputs) * first, _steepest(name, outputs) * second
    return _Formula(matrix, lambda product: score(logits(product)), 2 * len(matrix), slope, (_STEPS * outputs, 0.0))


def _steepest(name: str, classes: int) -> float:
    """Return the largest change of a score if no logit changes by more than 1."""
    return 1.0 if name == "margin" else 2.0 * float(np.log(classes))


def _entropy(logits: Any) -> Any:
    logs = torch.log_softmax(logits, dim=0)
    return -(logs.exp() * logs).sum(dim=0)


def _margin(logits: Any) -> Any:
    top = torch.softmax(logits, dim=0).topk(2, dim=0).values
    return 1.0 - (top[0] - top[1])


def _bald_of_many(outputs: int) -> Callable[[Any], Any]:
    def score(product: Any) -> Any:
        logs = torch.log_softmax(product.view(-1, outputs, product.shape[1]), dim=1)
        p = logs.exp()
        mean = p.mean(dim=0)
        return p.mul_(logs).sum(dim=(0, 1)).div_(len(logs)) - torch.xlogy(mean, mean).sum(dim=0)

    return score


def _bald_of_two(product: Any) -> Any:
    """As :func:`suffice.acquisition.class_scores` for two classes, by the same nodes."""
    return _bald_of_logits(product[0], torch.linalg.vector_norm(product[1:], dim=0))


def _bald_of_logits(mean: Any, deviation: Any) -> Any:
    """The same from the mean and the standard deviation of each logit."""
    nodes, weights = _tensors(hermite(_NODES), mean)
    logits = mean + deviation * nodes[:, None]
    average, inner = weights @ torch.sigmoid(logits), weights @ _coin_entropy(logits)
    wide = torch.nonzero(deviation.square() > _WIDE)[:, 0]
    if len(wide):
        average[wide], inner[wide] = _wide_averages(mean[wide], deviation[wide])
    return -torch.xlogy(average, average) - torch.xlogy(1.0 - average, 1.0 - average) - inner


def _tabulated_bald(product: Any) -> Any:
    """The same by linear interpolation in a table; infinite for deviations outside the table."""
    deviation = torch.linalg.vector_norm(product[1:], dim=0)
    scale = deviation + 1.0
    place = torch.log(scale).mul_(_COLUMNS)
    outside = place >= _SIZE[1] - 1
    mean = product[0].abs().div_(scale).mul_(_ROWS).clamp_(max=_SIZE[0] - 1.0 - 1e-3)
    place.clamp_(max=_SIZE[1] - 1.0 - 1e-3)
    row, column = mean.int(), place.int()
    mean.sub_(row)
    place.sub_(column)
    corner, table = row.mul_(_SIZE[1]).add_(column), _bald_table(mean.device, mean.dtype)
    low = torch.lerp(table.index_select(0, corner), table.index_select(0, corner + 1), place)
    corner += _SIZE[1]
    high = torch.lerp(table.index_select(0, corner), table.index_select(0, corner + 1), place)
    return torch.lerp(low, high, mean).mul_(deviation.div_(scale).square_()).masked_fill_(outside, torch.inf)


@lru_cache(maxsize=2)
def _bald_table(device: Any, dtype: Any) -> Any:
    """BALD of two classes for means and deviations on a grid, divided by the square of ``s / (1 + s)``; one row."""
    place = {"device": device, "dtype": torch.float64}
    units = torch.arange(_SIZE[0], **place) / _ROWS
    deviation = torch.expm1(torch.arange(1, _SIZE[1], **place) / _COLUMNS)
    table = torch.empty(_SIZE, **place)
    # The limit of small deviations is half the slope of the probability.
    table[:, 0] = 0.5 * torch.sigmoid(units) * torch.sigmoid(-units)
    for start in range(0, _SIZE[0], _ROWS):
        rows, columns = torch.meshgrid(units[start : start + _ROWS], deviation, indexing="ij")
        scale = 1.0 + columns
        found = _bald_of_logits((rows * scale).ravel(), columns.ravel()).view(rows.shape)
        table[start : start + _ROWS, 1:] = found * (scale / columns).square()
    return table.to(dtype).ravel()


def _coin_entropy(logits: Any) -> Any:
    """Entropy of a label of two classes: ``log(1 + e^-|x|) + |x| / (1 + e^|x|)``."""
    size = logits.abs()
    return torch.log1p(torch.exp(-size)) + size * torch.sigmoid(-size)


def _wide_averages(mean: Any, deviation: Any) -> tuple[Any, Any]:
    """Average probability and average entropy of a label whose logit has a large deviation, by Gauss-Laguerre."""
    nodes, weights = np.polynomial.laguerre.laggauss(_LAGUERRE)
    scaled, tails = weights * np.exp(nodes), 1.0 / (1.0 + np.exp(nodes))
    entropies = np.log1p(np.exp(-nodes)) + nodes * tails
    places, tail, bump = _tensors((nodes, scaled * tails, scaled * entropies), mean)
    above, below = (
        torch.exp(-0.5 * ((sign * places[:, None] - mean) / deviation).square()) / (deviation * np.sqrt(2.0 * np.pi))
        for sign in (1.0, -1.0)
    )
    average = torch.special.ndtr(mean / deviation) + tail @ (below - above)
    return average.clamp_(0.0, 1.0), bump @ (above + below)


def _tensors(arrays: Any, like: Any) -> list[Any]:
    return [torch.as_tensor(array, device=like.device).to(like.dtype) for array in arrays]
