"""Pools in torch, on a GPU or a CPU, for a Gaussian process and for a classifier.

For a classifier, the device scores all points, in single precision if requested, and bounds the rounding error of each
score. The few points that can be among the best within these bounds are scored again by the function for pools in
memory. The picks are therefore those of a pool in memory, including ties.
"""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

import numpy as np
import torch
from scipy.linalg.lapack import dtrtri

from suffice.engines.class_pool import most_useful, smallest, uncertainty
from suffice.engines.disk_rows import blocks_of
from suffice.engines.tracked_rows import KernelRows
from suffice.engines.variance_pool import SINGLE, TIE, Indices, PoolCandidates
from suffice.errors import InvalidValueError, NotEnoughMemoryError
from suffice.models.gaussian_state import KernelState
from suffice.models.laplace import logit_factors
from suffice.models.predictive import hermite, weight_draws
from suffice.numerics import Floats

# Number of labels whose rows are kept in one array. Memory is allocated in such parts, so that nothing is copied when
# it grows. Also the number of terms of a product that are summed in single precision.
_PART: Final = 128
# Bytes of the rows of a block that are processed at a time, so that they stay in the cache of a GPU.
_TILE_BYTES: Final = 1 << 25
# Number of points of a pool that are processed at a time if everything is recomputed in double precision.
_AT_ONCE: Final = 1 << 15
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
        self._columns = torch.empty((self.points.shape[1], len(self)), dtype=self.dtype, device=self.device)
        scales = self._scale.expand(self.points.shape[1])
        for d, column in enumerate(self.points.T):
            self._columns[d] = column.double() / scales[d] - self._middle[d]
        self._half = 0.5 * (self._columns * self._columns).sum(dim=0)
        self._parts: list[Any] = []
        # The factor of the labelled points, in double precision.
        self._factor = torch.zeros((0, 0), dtype=torch.float64, device=self.device)

    def __len__(self) -> int:
        return len(self.points)

    def follow(self, extra: Floats | None = None) -> Iterator[tuple[slice, Any, Any]]:
        """Append the rows of the labels since the last call, tile by tile.

        Args:
            extra: A matrix, ``e x n``, that the earlier rows are multiplied by, so that they are read only once.

        Yields:
            The tile, the new rows, ``k x t``, and the product, ``e x t``, in double precision.
        """
        state, old, new = self.state, self.n, self.state.n
        if new == old:
            return
        self._make_room(new)
        factor = torch.as_tensor(np.tril(state.lower), device=self.device)
        lower, across = factor[old:, old:], factor[old:, :old]
        if self.single:
            # The inverse is computed in double precision, so that no digit of single precision is lost.
            identity = torch.eye(new - old, dtype=torch.float64, device=self.device)
            lower = torch.linalg.solve_triangular(lower, identity, upper=False)
            across = lower @ across
        if extra is not None:
            across = torch.cat([across, torch.as_tensor(extra, device=self.device)])
        lower, across = lower.to(self.dtype), across.to(self.dtype)
        fresh = self.scaled(torch.as_tensor(state.features[old:new], device=self.device))
        half = (0.5 * (fresh * fresh).sum(dim=1)).to(self.dtype)[:, None]
        fresh, k = fresh.to(self.dtype), new - old
        width = max(1024, _TILE_BYTES // (len(across) * self._columns.element_size()))
        for start in range(0, len(self), width):
            tile = slice(start, min(start + width, len(self)))
            block = torch.addmm(-half - self._half[tile], fresh, self._columns[:, tile]).clamp_max_(0.0).exp_()
            block = lower @ block if self.single else block
            product = None
            if extra is None:
                for part, rows in self._stored(tile):
                    block.addmm_(across[:, part], rows, alpha=-1.0)
            else:
                product = torch.zeros((len(extra), tile.stop - tile.start), dtype=torch.float64, device=self.device)
                for part, rows in self._stored(tile):
                    both = across[:, part] @ rows
                    block -= both[:k]
                    product += both[k:]
            block = block if self.single else torch.linalg.solve_triangular(lower, block, upper=False)
            for number in range(old // _PART, (new - 1) // _PART + 1):
                here = slice(max(old - number * _PART, 0), min(new - number * _PART, _PART))
                there = slice(here.start + number * _PART - old, here.stop + number * _PART - old)
                self._parts[number][here, tile] = block[there]
            yield tile, block, product
        self._factor, self.n = factor, new

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
        known = self.scaled(torch.as_tensor(self.state.features[: self.n], device=self.device))
        return torch.linalg.solve_triangular(self._factor, kernel(known, scaled), upper=False)

    def indices(self, given: Indices) -> Any:
        """Indices as a tensor."""
        return torch.as_tensor(np.asarray(given, dtype=np.int64), device=self.device)

    def features(self, indices: Indices) -> Floats:
        """Features of some points."""
        found: Floats = self.points[self.indices(indices)].double().cpu().numpy()
        return found

    def rewind(self, n: int) -> None:
        """Remove the rows after the first ``n`` labels."""
        self.n, self._factor = n, self._factor[:n, :n]

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


def no_memory(items: int, labels: int, size: float, rows: TorchRows) -> NotEnoughMemoryError:
    """The error for a device that does not have the memory."""
    return NotEnoughMemoryError(
        f"following {items:,} items over {labels:,} labels needs {size / 1e9:,.1f} GB of the memory of {rows.device}, "
        "and that is not free: a smaller pool or fewer labels would help"
    )


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
        self._sample = KernelRows(state, self._rows.features(sample), capacity, np.float64)
        self._around = self._rows.scaled(self._rows.points[self._rows.indices(sample)])
        m, place = len(self._rows), self._rows.device
        self._tiles = [slice(k, min(k + _AT_ONCE, m)) for k in range(0, m, _AT_ONCE)]
        try:
            self._sums = torch.zeros((4, m), dtype=torch.float64, device=place)
            self._prior = torch.empty((self._size, m), dtype=torch.float32, device=place)
        except torch.OutOfMemoryError:
            raise no_memory(m, capacity, 4.0 * m * (self._size + 8), self._rows) from None
        self._scale = torch.empty(m, dtype=torch.float64, device=place)
        for tile in self._tiles:
            prior = kernel(self._around, self._rows.scaled(self._rows.points[tile]))
            self._prior[:, tile] = prior
            self._scale[tile] = prior.square().sum(dim=0).sqrt()
        self._free = torch.ones(m, dtype=torch.bool, device=place)
        self._begun = False

    # Variance, its error, the sum of squared covariances, and its error.
    @property
    def _variance(self) -> Any:
        return self._sums[0]

    @property
    def _squares(self) -> Any:
        return self._sums[2]

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

    def contenders(self) -> Indices:
        """Points whose score could be the largest, within the bounds of rounding; ascending."""
        variance, variance_error, squares, squares_error = self._sums
        low = self._reduction(squares - squares_error, variance + variance_error)
        high = self._reduction(squares + squares_error, variance - variance_error)
        best = torch.where(self._free, low, 0.0).max()
        found: Indices = torch.nonzero(self._free & (high >= best))[:, 0].cpu().numpy().astype(np.intp)
        return found

    def _reduction(self, squares: Any, variance: Any) -> Any:
        return squares.clamp_min_(0.0).div_(variance.clamp_min_(0.0).add_(self._state.noise).mul_(self._size))

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
        self._free[self._rows.indices(indices)] = False

    def mark(self) -> Any:
        """Present state, for :meth:`rewind`."""
        return self._rows.n, self._sample.mark(), self._begun, self._free.clone(), self._sums.clone()

    def rewind(self, mark: Any) -> None:
        """Go back to a mark."""
        self._rows.rewind(mark[0])
        self._sample.rewind(mark[1])
        self._begun, self._free, self._sums = mark[2], mark[3].clone(), mark[4].clone()

    def _whitened_sample(self) -> Floats:
        """``V`` at the sample, ``n x q``."""
        return np.concatenate([self._sample.stored(tile) for tile in self._sample.tiles], axis=1)

    def _put(self, where: Any, prior: Any, whitened: Any) -> None:
        """Store the values that are computed in double precision from the prior covariances with the sample."""
        sample = torch.as_tensor(self._whitened_sample(), device=self._rows.device)
        squares = (prior - sample.T @ whitened).square().sum(dim=0)
        # A covariance is a difference of numbers up to 1.
        error = 2.0 * TIE * self._size**0.5
        self._sums[0, where], self._sums[1, where] = 1.0 - whitened.square().sum(dim=0), TIE
        self._sums[2, where], self._sums[3, where] = squares, error * (2.0 * squares.sqrt() + error)

    def _compute_all(self) -> None:
        for _ in self._sample.follow():
            pass
        for _ in self._rows.follow():
            pass
        for tile in self._tiles:
            prior = kernel(self._around, self._rows.scaled(self._rows.points[tile]))
            self._put(tile, prior, self._rows.stored(tile))
            # Rows in single precision have rounding errors themselves.
            self._sums[1, tile] += self._row_eps
            self._sums[3, tile] += 2.0 * self._row_eps * (self._size * self._squares[tile]).sqrt()

    def _update_all(self) -> None:
        """As :meth:`suffice.engines.variance_reduction.CovarianceSums._apply`, with the tiles of the device."""
        place, old = self._rows.device, self._rows.n
        white = np.concatenate([rows for _, rows in self._sample.follow()], axis=1)
        across = white @ self._whitened_sample()[:old].T
        gram, of_white = torch.as_tensor(white @ white.T, device=place), torch.as_tensor(white, device=place).float()
        of_products = torch.as_tensor(
            np.stack(
                [
                    _MARGIN * float(np.finfo(np.float32).eps) * np.linalg.norm(white, axis=1),
                    _MARGIN * self._row_eps * np.linalg.norm(across, axis=1),
                ]
            ),
            device=place,
        )
        of_rows = torch.as_tensor(self._row_eps / np.diag(self._state.lower)[old:], device=place)
        for tile, new, product in self._rows.follow(across):
            rows, products = new.double(), -product
            for first in range(0, self._size, _PART):
                part = slice(first, first + _PART)
                products += of_white[:, part] @ self._prior[part, tile]
            within, size = gram @ rows, rows.abs()
            spread = of_products @ size
            self._sums[3, tile] += 2.0 * (
                self._scale[tile] * spread[0]
                + spread[1]
                + of_rows @ (within - products).abs()
                + _EPS * self._squares[tile].abs()
            )
            self._sums[1, tile] += 2.0 * (of_rows @ size) + _EPS * self._variance[tile].abs()
            self._sums[2, tile] += (rows * (within - 2.0 * products)).sum(dim=0)
            self._sums[0, tile] -= rows.square().sum(dim=0)


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


class _Formula(NamedTuple):
    """The score of points under a posterior, with bounds on its error.

    Attributes:
        matrix: Matrix that points are multiplied by, ``E x J``, in double precision.
        score: Function of the product, ``E x t``, that returns one number for each point; larger is more useful.
        size: Number of values for each point that exist at a time.
        slope: Bound on the error of a score per rounding: coefficients of the norm of the point and of its square.
        noise: Bound on the other errors, in roundings and absolutely.
        memory: Bound on the error of the score in memory: coefficient of the cube of the norm of the point.
    """

    matrix: Floats
    score: Callable[[Any], Any]
    size: int
    slope: tuple[float, float]
    noise: tuple[float, float] = (_STEPS, 0.0)
    memory: float = 0.0


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
        formula = _formula(self._name, posterior)
        contenders = self._contenders(formula, n)
        if len(contenders) > _FEW and self.dtype == torch.float32:
            contenders = self._narrowed(formula, contenders, n)
        indices: Indices = contenders.cpu().numpy().astype(np.intp)
        return indices[self._order(posterior, self._rows(indices), n)]

    def scores(self, posterior: Any) -> tuple[Any, Any]:
        """Return the score of every point, computed on the device, and a bound on its error."""
        formula = _formula(self._name, posterior)
        self._scan(formula)
        return self._found.clone(), _error(formula, self._norm)

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
                self._found[tile] = formula.score(matrix @ self._columns[:, tile])

    def _narrowed(self, formula: _Formula, contenders: Any, n: int) -> Any:
        """The same from some points, in double precision."""
        matrix = torch.as_tensor(formula.matrix, device=self.device)
        score = torch.empty(len(contenders), dtype=torch.float64, device=self.device)
        width = max(1024, _TILE_BYTES // (formula.size * 8))
        for start in range(0, len(contenders), width):
            part = contenders[start : start + width]
            rows = torch.as_tensor(self._rows(part.cpu().numpy().astype(np.intp)), device=self.device)
            score[start : start + width] = formula.score(matrix @ rows.T)
        return contenders[_can_win(score, _error(formula, self._norm[contenders].double()), n)]

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
    return found.add_(eps * first).mul_(norm).add_(eps * noise + other)


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


def _formula(name: str, posterior: Any) -> _Formula:
    """Return the formula of an acquisition under a posterior of two classes or many.

    A product of ``J`` terms has an error of at most ``(J + 8) eps |a| |x|``, including the rounding of its factors.
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
        return _Formula(matrix, _bald_of_two, 8 * _NODES, (slope, 0.0), (_STEPS, _BETWEEN_RULES))
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
    mean, deviation = product[0], product[1:].square().sum(dim=0).sqrt_()
    nodes, weights = _tensors(hermite(_NODES), mean)
    logits = mean + deviation * nodes[:, None]
    average, inner = weights @ torch.sigmoid(logits), weights @ _coin_entropy(logits)
    wide = torch.nonzero(deviation.square() > _WIDE)[:, 0]
    if len(wide):
        average[wide], inner[wide] = _wide_averages(mean[wide], deviation[wide])
    return -torch.xlogy(average, average) - torch.xlogy(1.0 - average, 1.0 - average) - inner


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
