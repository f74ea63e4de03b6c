"""The posterior of a network trained with dropout: per layer, columns of weights that are present or dropped."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from suffice.arguments import real
from suffice.errors import InvalidTypeError, InvalidValueError
from suffice.posteriors.arrays import Value, frozen
from suffice.special import Floats


@dataclass(frozen=True, init=False, eq=False)
class DropoutLayer(Value):
    """One layer: each input unit's weights are ``keep N(m, sigma^2 I) + (1 - keep) N(0, sigma^2 I)``.

    Args:
        weight: Mean weights ``M``, ``H_out x H_in``; further axes (a convolution's kernel) belong to the input unit.
        bias: Mean biases, ``N(bias, sigma^2 I)``; none if left out.
        keep: Probability that an input unit is kept, in (0, 1]. (PyTorch's ``p`` is the probability of dropping.)
        sigma: Standard deviation of every weight and bias about its mean.

    Raises:
        InvalidValueError: ``keep`` or ``sigma`` out of range, or a shape that does not fit.

    Reference: [IshibashiHino2021] section 5.2, model 4, and appendix C.

    Examples:
        >>> DropoutLayer([[1.0, 2.0, 3.0]], bias=[0.5], keep=0.5).inputs
        3
    """

    weight: Floats
    bias: Floats
    keep: float
    sigma: float

    def __init__(
        self, weight: ArrayLike, bias: ArrayLike | None = None, *, keep: float = 1.0, sigma: float = 1.0
    ) -> None:
        means = frozen(weight, "weight")
        if means.ndim < 2 or means.size == 0:
            raise InvalidValueError(f"weight must be outputs x inputs (x ...), but its shape is {means.shape}")
        biases = frozen([] if bias is None else bias, "bias", ndim=1)
        if len(biases) not in {0, len(means)}:
            raise InvalidValueError(f"bias holds {len(biases)} numbers, but weight has {len(means)} outputs")
        object.__setattr__(self, "weight", means)
        object.__setattr__(self, "bias", biases)
        object.__setattr__(self, "keep", real(keep, "keep", "above 0 and at most 1", lambda p: 0.0 < p <= 1.0))
        object.__setattr__(self, "sigma", real(sigma, "sigma", "above 0", lambda s: s > 0.0))

    @property
    def inputs(self) -> int:
        """Number of input units (channels), each kept or dropped as a whole."""
        return int(self.weight.shape[1])

    @property
    def columns(self) -> Floats:
        """Mean weights as one row per input unit."""
        return np.asarray(np.moveaxis(self.weight, 1, 0).reshape(self.inputs, -1))

    def __repr__(self) -> str:
        return f"DropoutLayer({'x'.join(map(str, self.weight.shape))}, keep={self.keep:g}, sigma={self.sigma:g})"


@dataclass(frozen=True)
class DropoutNetwork:
    """A network's posterior: independent layers, first to last.

    Args:
        layers: One or more :class:`DropoutLayer`.

    Raises:
        InvalidValueError: No layer.
        InvalidTypeError: Something that is not a layer.

    Reference: [IshibashiHino2021] section 5.2, model 4, and appendix C.

    Examples:
        >>> DropoutNetwork([DropoutLayer([[1.0, 2.0]], keep=0.5), DropoutLayer([[1.0]])])
        DropoutNetwork(layers=(DropoutLayer(1x2, keep=0.5, sigma=1), DropoutLayer(1x1, keep=1, sigma=1)))
    """

    layers: Iterable[DropoutLayer]

    def __post_init__(self) -> None:
        layers = tuple(self.layers) if isinstance(self.layers, Iterable) else (self.layers,)
        if not layers:
            raise InvalidValueError("layers must hold at least one DropoutLayer")
        for index, layer in enumerate(layers):
            if not isinstance(layer, DropoutLayer):
                raise InvalidTypeError(f"layers[{index}] must be a DropoutLayer, not {type(layer).__name__}")
        object.__setattr__(self, "layers", layers)

    def sample(self, n: int, rng: np.random.Generator) -> Floats:
        """Draw ``n`` parameter vectors: per layer the weights by input unit, then the biases; ``n x J``."""
        return np.concatenate([part for layer in self.layers for part in _sample_layer(layer, n, rng)], axis=1)

    def log_density(self, theta: Floats) -> Floats:
        """Log density of each row of ``theta``, laid out as :meth:`sample` does; ``n x J`` to ``n``."""
        total, start = np.zeros(len(theta)), 0
        for layer in self.layers:
            middle = start + layer.weight.size
            stop = middle + layer.bias.size
            weights = theta[:, start:middle].reshape(len(theta), layer.inputs, -1)
            total += _log_mixture(weights, layer) + _log_normal(theta[:, middle:stop] - layer.bias, layer.sigma)
            start = stop
        return total


def _sample_layer(layer: DropoutLayer, n: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    kept = rng.random((n, layer.inputs, 1)) < layer.keep
    columns = layer.columns
    weights = kept * columns + layer.sigma * rng.standard_normal((n, *columns.shape))
    return weights.reshape(n, -1), layer.bias + layer.sigma * rng.standard_normal((n, layer.bias.size))


def _log_mixture(weights: Floats, layer: DropoutLayer) -> Floats:
    kept = np.log(layer.keep) + _log_normal(weights - layer.columns, layer.sigma)
    if layer.keep == 1.0:
        return np.asarray(kept.sum(axis=-1))
    return np.asarray(np.logaddexp(kept, np.log1p(-layer.keep) + _log_normal(weights, layer.sigma)).sum(axis=-1))


def _log_normal(deviation: Floats, sigma: float) -> Floats:
    size = deviation.shape[-1]
    return np.asarray(-0.5 * ((deviation / sigma) ** 2).sum(axis=-1) - size * (np.log(sigma) + 0.5 * np.log(2 * np.pi)))
