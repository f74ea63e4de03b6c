"""Pools of a classifier on a graphics card, or on the processor, by torch: the most uncertain points of all.

The device scores all points, in single precision if wanted, and bounds the rounding error of each score. The few points
that can be among the best within these bounds are scored again in memory, by the function that scores a pool in memory.
The picks are therefore those of a pool in memory, including ties.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

import numpy as np
import torch
from scipy.linalg.lapack import dtrtri

from suffice.engines.class_pool import most_useful, smallest, uncertainty
from suffice.engines.disk_rows import blocks_of
from suffice.engines.variance_pool import Indices
from suffice.errors import InvalidValueError, NotEnoughMemoryError
from suffice.models.laplace import logit_factors
from suffice.models.predictive import hermite, weight_draws
from suffice.numerics.special_functions import Floats

#: Acquisitions that a device can score, each with whether predictions are averaged over the posterior.
DEVICE_SCORES: Final = {"entropy": True, "margin": True, "map-entropy": False, "bald": True}

# Bytes of the numbers of a tile of points: they stay in the cache of a graphics card.
_TILE_BYTES: Final = 1 << 25
# More candidates than this are scored on the device in double precision first.
_FEW: Final = 4096
_PROBIT: Final = np.pi / 8.0
# Scores closer than this, relative to the best, are ties in memory.
_TIE: Final = 1e-11
# Roundings of the functions of a logit, each of a number of order 1.
_STEPS: Final = 64.0
# Nodes and draws as in suffice.acquisition, and the variance from which on other nodes are used; there the two rules
# differ by less than the last number.
_NODES, _LAGUERRE, _DRAWS, _WIDE, _BETWEEN_RULES = 20, 40, 32, 2.0, 3e-7


class _Formula(NamedTuple):
    """How points are scored under a posterior.

    Attributes:
        matrix: What points are multiplied by, ``E x J``, in double precision.
        score: Of the product, ``E x t``, one number for each point; larger is more useful.
        size: Numbers for each point that exist at a time.
        slope: What the error of a score is per rounding, at most: times the norm of the point, and times its square.
        noise: What it is besides, in roundings and absolutely.
        memory: What the error of the score in memory is, at most, times the cube of the norm of the point.
    """

    matrix: Floats
    score: Callable[[Any], Any]
    size: int
    slope: tuple[float, float]
    noise: tuple[float, float] = (_STEPS, 0.0)
    memory: float = 0.0


class TorchClasses:
    """A pool in the memory of a device of torch, scored by the uncertainty of its classes.

    It does what :class:`suffice.engines.class_pool.UncertainPool` and
    :class:`~suffice.engines.class_pool.ScoredPool` do, for two classes or many, and makes the same picks.

    Args:
        features: ``m x J``: an array, rows on disk, or a tensor. Points are scored again from it.
        name: Acquisition, one of :data:`DEVICE_SCORES`.
        score: Of a posterior and the features of some rows, how useful the label of each would be, in memory.
        device: Where to keep the points, such as ``"cuda"``; that of a tensor if left out.
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
        """The score of every point as the device computes it, and how far it may be off."""
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
    """How far scores can be off, for points of these norms."""
    eps = torch.finfo(norm.dtype).eps
    (first, second), (noise, other) = formula.slope, formula.noise
    found = norm.mul(formula.memory).add_(eps * second).mul_(norm) if formula.memory else norm.mul(eps * second)
    return found.add_(eps * first).mul_(norm).add_(eps * noise + other)


def _can_win(score: Any, error: Any, n: int) -> Any:
    """Positions whose score can be one of the ``n`` largest, or tie with it; ascending."""
    # A score that overflows in single precision may be any: it is no bound for others, and may be the best.
    low = (score - error).nan_to_num_(nan=-torch.inf, posinf=torch.inf, neginf=-torch.inf)
    cut = low.max() if n == 1 else torch.topk(low, n, sorted=False).values.min()
    tie = 4.0 * _TIE * max(1.0, abs(float(cut)))
    return torch.nonzero(~(score + error < cut - tie) & (score != -torch.inf))[:, 0]


@contextmanager
def _full_precision() -> Iterator[None]:
    """Products of single precision are not rounded to fewer digits, which a user may have allowed."""
    # Since version 2.9 there is another setting, and the old one must not be read where that is used.
    products: Any = torch.backends.cuda.matmul
    name, full = ("fp32_precision", "ieee") if hasattr(products, "fp32_precision") else ("allow_tf32", False)
    allowed = getattr(products, name)
    setattr(products, name, full)
    try:
        yield
    finally:
        setattr(products, name, allowed)


def _formula(name: str, posterior: Any) -> _Formula:
    """The formula of an acquisition under a posterior of two classes or many.

    A product of ``J`` terms is off by ``(J + 8) eps |a| |x|`` at most, with the roundings of its factors.
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
        # What all classes share cancels in the probabilities. It is subtracted here, so that the device loses no digits
        # by it; a pool in memory subtracts it for each point.
        values, vectors = np.linalg.eigh(
            np.einsum("kij,kil->kjl", factors, factors) - np.eye(width) / (outputs * posterior.alpha)
        )
        factors = np.sqrt(np.maximum(values, 0.0))[:, :, None] * vectors.transpose(0, 2, 1)
    spread = float(np.sqrt(np.einsum("kij,kij->k", factors, factors).max()))
    if name == "bald":
        matrix = np.concatenate([weights, factors[0]])
        slope = terms * (0.6 * size + 2.0 * spread)
        return _Formula(matrix, _bald_of_two, 8 * _NODES, (slope, 0.0), (_STEPS, _BETWEEN_RULES))
    # The root of 1 + c v is off by the part sqrt(c) |dR x| / 2 of itself.
    second = 0.5 * np.sqrt(_PROBIT) * terms * spread * size
    return _logit_formula(name, weights, factors, terms * size, second)._replace(
        memory=_steepest(name, outputs) * memory
    )


def _logit_formula(name: str, weights: Floats, factors: Floats, first: float, second: float) -> _Formula:
    """Scores of averaged logits, whose errors have these slopes."""
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
    """How much a score changes at most if no logit changes by more than 1."""
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
