"""A pool of a Gaussian process on a graphics card, or on the processor, by torch."""

import warnings
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray

from suffice.engines.variance_pool import SINGLE, TIE, PoolCandidates
from suffice.errors import NotEnoughMemoryError
from suffice.models.gaussian_state import KernelState
from suffice.numerics.special_functions import Floats

Indices = NDArray[np.intp]

# Labels whose rows are kept in one array: room is made in such parts, and nothing is copied when it grows.
_PART: Final = 128
# Bytes of the rows of a block that are worked on at a time: they stay in the cache of a graphics card.
_TILE_BYTES: Final = 1 << 25


class TorchPool:
    """A pool in the memory of a device of torch, scored by the latent variance of a Gaussian process.

    It does what :class:`suffice.engines.MemoryPool` does, and the picks are the same in double precision, except where
    two variances differ by no more than the rounding errors of many labels. In single precision, scores are right to
    about ``1e-6`` of the prior variance, and picks can differ where two variances are that close. The posterior itself,
    and the covariance of the candidates from which picks are planned, are in double precision in both.

    A block of ``k`` labels costs ``2 n k`` operations and ``n`` reads per point, after ``n`` labels.

    Args:
        state: The posterior to follow.
        points: Inputs, ``m x D``: an array or a tensor.
        device: Where to keep them, such as ``"cuda"``; that of a tensor if left out.
        single: Whether to keep rows in single precision.
    """

    def __init__(self, state: KernelState, points: Any, device: Any = None, *, single: bool = True) -> None:
        self._state, self.n, self._single, self._warned = state, 0, single, False
        given = torch.as_tensor(points)
        self._device = torch.device(given.device if device is None else device)
        self._dtype = torch.float32 if single else torch.float64
        self._points = given.to(self._device)
        scale = torch.as_tensor(np.asarray(state.kernel.length_scale), device=self._device)
        # In double precision first, so that the middle of far points is subtracted without a loss.
        self._middle = torch.stack([(column.double()).mean() for column in self._points.T]) / scale
        self._scale = scale
        self._columns = torch.empty((self._points.shape[1], len(self._points)), dtype=self._dtype, device=self._device)
        for d, column in enumerate(self._points.T):
            self._columns[d] = column.double() / scale[d if len(scale) > 1 else 0] - self._middle[d]
        self._half = 0.5 * (self._columns * self._columns).sum(dim=0)
        self._variance = torch.ones(len(self._points), dtype=self._dtype, device=self._device)
        self._free = torch.ones(len(self._points), dtype=torch.bool, device=self._device)
        self._parts: list[Any] = []
        # The factor of the labelled points, in double precision.
        self._factor = torch.zeros((0, 0), dtype=torch.float64, device=self._device)

    def top(self, n: int) -> PoolCandidates:
        """The ``n`` points of largest variance, ties to the lowest index."""
        score = torch.where(self._free, self._variance, -torch.inf)
        n = min(n, int(self._free.sum()))
        best = float(score.max()) if n else 0.0
        tie, slack = TIE, SINGLE if self._single else 0.0
        if self._single and n and best < 100.0 * SINGLE and not self._warned:
            self._warned = True
            warnings.warn(
                "the largest variance of the pool is below 1e-4 of the prior, near the resolution of single precision: "
                "picks may differ from those of double precision",
                stacklevel=2,
            )
        indices, rest, rest_index = self._largest(score, n, tie)
        features = self._points[indices].double()
        whitened, covariance = self._posterior(features)
        return PoolCandidates(
            indices.cpu().numpy().astype(np.intp),
            features.cpu().numpy(),
            whitened.cpu().numpy(),
            rest + slack,
            rest_index,
            tie,
            covariance.cpu().numpy(),
        )

    def _largest(self, score: Any, n: int, margin: float) -> tuple[Any, float, int]:
        """Indices of the ``n`` largest scores, ascending, the best of the rest, and its lowest index."""
        m = len(score)
        if not n:
            return torch.zeros(0, dtype=torch.long, device=self._device), -np.inf, m
        cut = torch.topk(score, n, sorted=False).values.min()
        above = torch.nonzero(score > cut + margin)[:, 0]
        equal = torch.nonzero((score >= cut - margin) & (score <= cut + margin))[: n - len(above), 0]
        indices = torch.cat([above, equal]).sort().values
        others = score.clone()
        others[indices] = -torch.inf
        rest = float(others.max())
        if rest == -np.inf:
            return indices, rest, m
        first = int(torch.argmax((others >= rest - 2.0 * margin).to(torch.uint8)))
        return indices, rest, first

    def _posterior(self, features: Any) -> tuple[Any, Any]:
        """``W`` and the latent covariance of some points, in double precision."""
        scaled = features / self._scale - self._middle
        prior = self._kernel(scaled, scaled)
        prior.fill_diagonal_(1.0)
        if not self.n:
            return torch.zeros((0, len(features)), dtype=torch.float64, device=self._device), prior
        known = torch.as_tensor(self._state.features[: self.n], device=self._device) / self._scale - self._middle
        whitened = torch.linalg.solve_triangular(self._factor, self._kernel(known, scaled), upper=False)
        return whitened, prior - whitened.T @ whitened

    def _kernel(self, a: Any, b: Any) -> Any:
        """The kernel of scaled points around the origin, in double precision."""
        squares = 0.5 * ((a * a).sum(dim=1)[:, None] + (b * b).sum(dim=1)) - a @ b.T
        return torch.exp(-squares.clamp_min_(0.0))

    def follow(self) -> None:
        """Catch up with the posterior: the pool is read once."""
        state, old, new = self._state, self.n, self._state.n
        if new == old:
            return
        self._make_room(new)
        factor = torch.as_tensor(np.tril(state.lower), device=self._device)
        lower, across = factor[old:, old:], factor[old:, :old]
        if self._single:
            # The inverse, which is computed in double precision, costs no digit of single precision.
            identity = torch.eye(new - old, dtype=torch.float64, device=self._device)
            lower = torch.linalg.solve_triangular(lower, identity, upper=False)
            across = lower @ across
        lower, across = lower.to(self._dtype), across.to(self._dtype)
        fresh = torch.as_tensor(state.features[old:new], device=self._device) / self._scale - self._middle
        half = (0.5 * (fresh * fresh).sum(dim=1)).to(self._dtype)[:, None]
        fresh = fresh.to(self._dtype)
        width = max(1024, _TILE_BYTES // ((new - old) * self._columns.element_size()))
        for start in range(0, self._columns.shape[1], width):
            tile = slice(start, start + width)
            block = torch.addmm(-half - self._half[tile], fresh, self._columns[:, tile])
            block.clamp_max_(0.0).exp_()
            block = lower @ block if self._single else block
            for number in range(0, old, _PART):
                rows = self._parts[number // _PART][: min(_PART, old - number), tile]
                block.addmm_(across[:, number : number + _PART], rows, alpha=-1.0)
            block = block if self._single else torch.linalg.solve_triangular(lower, block, upper=False)
            for number in range(old // _PART, (new - 1) // _PART + 1):
                here = slice(max(old - number * _PART, 0), min(new - number * _PART, _PART))
                there = slice(here.start + number * _PART - old, here.stop + number * _PART - old)
                self._parts[number][here, tile] = block[there]
            self._variance[tile] -= (block * block).sum(dim=0)
        self._factor, self.n = factor, new

    def features(self, indices: Indices) -> Floats:
        """Features of some points."""
        found: Floats = self._points[torch.as_tensor(indices, device=self._device)].double().cpu().numpy()
        return found

    def take(self, indices: Indices) -> None:
        """Leave points out from now on."""
        self._free[torch.as_tensor(np.asarray(indices), device=self._device)] = False

    def jump(self) -> None:
        """Nothing: a Gaussian process is followed label by label."""

    def tidy(self) -> None:
        """Nothing: points that are taken stay, which costs less than to move the others."""

    def mark(self) -> tuple[int, Any, Any]:
        """Where it stands."""
        return self.n, self._variance.clone(), self._free.clone()

    def rewind(self, mark: tuple[int, Any, Any]) -> None:
        """Go back to a mark."""
        self.n, self._variance, self._free = mark[0], mark[1].clone(), mark[2].clone()
        self._factor = self._factor[: self.n, : self.n]

    def _make_room(self, labels: int) -> None:
        """Allocate rows for so many labels.

        Raises:
            NotEnoughMemoryError: The device does not have the memory.
        """
        m = len(self._points)
        while len(self._parts) * _PART < labels:
            try:
                self._parts.append(torch.empty((_PART, m), dtype=self._dtype, device=self._device))
            except torch.OutOfMemoryError:
                size = m * self._columns.element_size() / 1e9
                raise NotEnoughMemoryError(
                    f"following {m:,} items over {labels:,} labels needs {labels * size:,.1f} GB of the memory of "
                    f"{self._device}, and that is not free: a smaller pool or fewer labels would help"
                ) from None
