"""Dropout with given masks, and the layers of a module in the order of their use, each with the dropout before it."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

import torch
import torch.nn.functional as F
from torch.overrides import TorchFunctionMode

from suffice.errors import InvalidValueError
from suffice.numerics import Floats
from suffice.posteriors import DropoutLayer, DropoutPosterior

_ELEMENTS: Final = frozenset({F.dropout, torch.dropout, torch.dropout_})
_CHANNELS: Final = frozenset({F.dropout1d, F.dropout2d, F.dropout3d, torch.feature_dropout})
_REFUSED: Final = frozenset(
    {F.alpha_dropout, F.feature_alpha_dropout, torch.alpha_dropout, torch.feature_alpha_dropout}
)


class DropoutMode(TorchFunctionMode):
    """Context that intercepts every dropout call. Subclasses define the result."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        named = kwargs or {}
        if func in _REFUSED:
            raise InvalidValueError(
                "alpha dropout has no weights that are present or dropped; use Dropout or Dropout1d, 2d, 3d instead"
            )
        if func in _ELEMENTS or func in _CHANNELS:
            inputs, rate = args[0] if args else named["input"], _rate(args, named)
            return inputs if rate == 0.0 else self.drop(inputs, rate, channels=func in _CHANNELS)
        return self.other(func, args, named)

    def drop(self, inputs: torch.Tensor, rate: float, *, channels: bool) -> torch.Tensor:
        """Return the result of a dropout call; ``channels`` says whether whole channels are dropped."""
        raise NotImplementedError

    def other(self, func: Callable[..., Any], args: Any, named: Any) -> Any:
        """Return the result of any other call."""
        return func(*args, **named)


def _rate(args: Any, named: Any) -> float:
    rate = float(args[1] if len(args) > 1 else named.get("p", 0.5))
    if not 0.0 <= rate < 1.0:
        raise InvalidValueError(f"a dropout layer drops with probability {rate:g}; it must be from 0 to below 1")
    return rate


class Masks(DropoutMode):
    """One set of masks for each of ``draws`` posterior draws; use it as a context around the module's forward calls.

    The masks of the j-th dropout call depend only on the seed and ``j``, not on the rows or the device. The same seed
    therefore gives the same posterior draws for all predictions.

    Args:
        draws: Number of posterior draws, ``k``.
        seed: Seed of the masks.
        early: Whether to repeat the rows for the draws before the module instead of at its first dropout layer. For
            modules with a branch that bypasses this layer.
    """

    def __init__(self, draws: int, seed: int, *, early: bool = False) -> None:
        super().__init__()
        self.draws, self.seed, self.early = draws, seed, early
        self._kept: dict[tuple[Any, ...], torch.Tensor] = {}
        self._call = self._rows = 0
        self._multiplied = False

    def forward(self, module: torch.nn.Module, inputs: torch.Tensor) -> torch.Tensor:
        """Return the outputs of ``B`` rows under every draw, ``B x k x ...``."""
        self._call, self._rows, self._multiplied = 0, len(inputs), self.early
        with self:
            outputs: torch.Tensor = module(inputs.repeat_interleave(self.draws, dim=0) if self.early else inputs)
        if not self._multiplied:
            return outputs.unsqueeze(1).expand(-1, self.draws, *outputs.shape[1:])
        found: torch.Tensor = outputs.unflatten(0, (len(inputs), self.draws))
        return found

    def drop(self, inputs: torch.Tensor, rate: float, *, channels: bool) -> torch.Tensor:
        """Return the rows times the masks of this call, for every draw."""
        copies = self.draws if self._multiplied else 1
        # A module may merge other axes, such as positions in a text or parts of an image, into the axis of the rows.
        folded, left = divmod(len(inputs), self._rows * copies)
        if left or not folded or (folded > 1 and not self._multiplied):
            raise InvalidValueError(
                f"a dropout layer of the network sees {len(inputs)} rows where {self._rows * copies} were given; rows "
                "must be the first axis everywhere (batch_first=True)"
            )
        size = tuple(inputs.shape[1:])
        shape = (size[0], *[1] * (len(size) - 1)) if channels else size
        mask = self._mask((folded, *shape), rate, inputs)
        self._multiplied = True
        self._call += 1
        masked: torch.Tensor = (inputs.unflatten(0, (self._rows, copies, folded)) * mask).flatten(0, 2)
        return masked

    def _mask(self, shape: tuple[int, ...], rate: float, like: torch.Tensor) -> torch.Tensor:
        """Return the masks, ``k x shape``: 0 for a dropped unit, else ``1 / (1 - rate)``."""
        key = (self._call, shape, rate, like.device, like.dtype)
        if key not in self._kept:
            # Drawn on the CPU, so that the draws are the same on every device.
            generator = torch.Generator().manual_seed((self.seed * 1_000_003 + self._call) % 2**63)
            kept = torch.rand((self.draws, *shape), generator=generator) >= rate
            self._kept[key] = (kept / (1.0 - rate)).to(like.device, like.dtype)
        return self._kept[key]


def must_multiply_early(module: torch.nn.Module, inputs: torch.Tensor) -> bool:
    """Whether rows must be repeated before the module, because a branch bypasses its first dropout layer.

    Raises:
        InvalidValueError: Masks cannot be applied row by row, because rows are not the first axis everywhere.
    """
    rows = inputs[:2] if len(inputs) > 1 else inputs.repeat_interleave(2, dim=0)
    late, early = (Masks(3, 0, early=early) for early in (False, True))
    with torch.no_grad():
        expected = early.forward(module, rows)
        if not _alike(early.forward(module, rows.flip(0)).flip(0), expected):
            raise InvalidValueError(
                "what the network gives for a row depends on the other rows; rows must be the first axis everywhere "
                "(batch_first=True), and batch normalisation in evaluation mode"
            )
        try:
            return not _alike(late.forward(module, rows), expected)
        except Exception:
            # Any error that the module raises for rows of different numbers.
            return True


def _alike(one: torch.Tensor, other: torch.Tensor) -> bool:
    return one.shape == other.shape and torch.allclose(one, other, rtol=1e-3, atol=1e-4)


_LINEAR: Final = F.linear
_CONVOLUTIONS: Final = frozenset({torch.conv1d, torch.conv2d, torch.conv3d, F.conv1d, F.conv2d, F.conv3d})
# By name, because torch has several objects for the same function.
_ZERO_AT_ZERO: Final = frozenset(
    [
        "relu",
        "relu_",
        "leaky_relu",
        "leaky_relu_",
        "elu",
        "elu_",
        "selu",
        "selu_",
        "celu",
        "celu_",
        "gelu",
        "silu",
        "mish",
        "hardswish",
        "relu6",
        "tanh",
        "tanh_",
        "flatten",
        "view",
        "reshape",
        "contiguous",
        "float",
        "clone",
    ]
)
_POOLING: Final = frozenset(
    f"{adaptive}{kind}_pool{axes}d" for adaptive in ("", "adaptive_") for kind in ("max", "avg") for axes in (1, 2, 3)
)


@dataclass(frozen=True)
class Layer:
    """A layer of weights of the posterior.

    Attributes:
        weight: Name of its weights in the module. Weights that are not a matrix or a kernel count as a single row.
        bias: Name of its biases, or empty.
        keep: Probability that an input unit is kept.
        channels: Number of input units if several consecutive inputs belong to one unit; else 0.
    """

    weight: str
    bias: str = ""
    keep: float = 1.0
    channels: int = 0

    @property
    def name(self) -> str:
        """Name of the layer."""
        return self.weight.removesuffix(".weight")


class _Dropped(NamedTuple):
    """A tensor with dropped units, and the consequences for the layer that uses it."""

    tensor: torch.Tensor
    version: int
    keep: float
    channels: int


class _Recorder(DropoutMode):
    """Records which weights are used, in order, and which of their inputs may be dropped.

    A tensor keeps its mark after an operation that leaves a dropped unit at 0 and separate from the others. After any
    other operation it counts as kept. This makes the bound on the divergence larger, never too small.
    """

    def __init__(self, names: dict[int, str], rows: int) -> None:
        super().__init__()
        self._names, self._rows = names, rows
        # By identity. References to the tensors are kept, so that no identity is used twice.
        self._marks: dict[int, _Dropped] = {}
        self._elsewhere: set[str] = set()
        self.layers: dict[str, Layer] = {}
        self.head_inputs: torch.Tensor | None = None
        self.head: str = ""
        self.dropped = False

    def drop(self, inputs: torch.Tensor, rate: float, *, channels: bool) -> torch.Tensor:
        self.dropped = True
        before = self._marked(inputs)
        keep = (1.0 - rate) * (before.keep if before else 1.0)
        # A new tensor, because the input may also be used without dropout.
        return self._mark(inputs.view_as(inputs), keep, int(inputs.shape[1]) if channels else 0)

    def other(self, func: Any, args: Any, named: Any) -> Any:
        inputs = _argument(args, named, (0, "input"))
        mark = self._marked(inputs)
        if func is _LINEAR or func in _CONVOLUTIONS:
            weight, bias = (_argument(args, named, place) for place in ((1, "weight"), (2, "bias")))
            name = self._names.get(id(weight), "")
            self.head, self.head_inputs = (name, inputs) if func is _LINEAR else ("", None)
            if name:
                # A layer that is applied to several positions, of a text for example, may have an input dropped at one
                # position and kept at another.
                once = len(inputs) == self._rows and (func is not _LINEAR or inputs.ndim == 2)
                width = int(weight.shape[1]) if func is _LINEAR else 0
                self._note(name, self._names.get(id(bias), ""), mark if once else None, width)
        else:
            self._elsewhere |= {self._names[id(value)] for value in args if id(value) in self._names}
        found = func(*args, **named)
        if mark is not None and isinstance(found, torch.Tensor) and _stays(func, mark):
            self._mark(found, mark.keep, mark.channels)
        return found

    def _mark(self, tensor: torch.Tensor, keep: float, channels: int) -> torch.Tensor:
        self._marks[id(tensor)] = _Dropped(tensor, tensor._version, keep, channels)
        return tensor

    def _marked(self, tensor: Any) -> _Dropped | None:
        """Return the mark of a tensor, unless the tensor was modified since."""
        mark = self._marks.get(id(tensor))
        return mark if mark is not None and mark.tensor._version == mark.version else None

    def _note(self, name: str, bias: str, mark: _Dropped | None, width: int) -> None:
        """Record a layer; ``width`` is the number of inputs of a linear layer, 0 for a convolution."""
        keep, channels = (1.0, 0) if mark is None else (mark.keep, mark.channels)
        if not width:
            # The weights of a kernel are dropped by whole channels only.
            layer = Layer(name, bias, keep if channels else 1.0)
        else:
            whole = channels and width % channels == 0 and width > channels
            layer = Layer(name, bias, keep, channels if whole else 0)
        known = self.layers.get(name)
        # Weights used twice: the larger probability gives the larger bound.
        self.layers[name] = layer if known is None else replace(known, keep=max(known.keep, layer.keep))

    def used(self) -> list[Layer]:
        """Return the layers in order. Weights that another operation uses too count as kept."""
        return [
            replace(layer, keep=1.0, channels=0) if name in self._elsewhere else layer
            for name, layer in self.layers.items()
        ]


def _stays(func: Any, mark: _Dropped) -> bool:
    """Whether a dropped unit is still 0, and separate from the others, after an operation."""
    name = getattr(func, "__name__", "")
    return name in _ZERO_AT_ZERO or (name in _POOLING and mark.channels > 0)


def _argument(args: Any, named: Any, place: tuple[int, str]) -> Any:
    index, name = place
    return args[index] if len(args) > index else named.get(name)


@dataclass(frozen=True)
class Structure:
    """Structure of a module, found by running two rows through it.

    Attributes:
        layers: Its trained weights, in the order of use; those that belong to neither linear layers nor convolutions
            are last.
        outputs: Number of classes.
        head: Name of the weights of its last layer, if that is linear and its outputs are those of the module; else
            empty.
        dropped: Whether it has dropout.
    """

    layers: tuple[Layer, ...]
    outputs: int
    head: str
    dropped: bool


def structure(module: torch.nn.Module, inputs: torch.Tensor) -> Structure:
    """Run a few rows through a module and record its layers.

    Raises:
        InvalidValueError: The module does not give one row of class scores for each row of inputs.
    """
    recorder, outputs = _record(module, inputs)
    if outputs.ndim != 2 or len(outputs) != len(inputs) or outputs.shape[1] < 2:
        raise InvalidValueError(
            f"network must give one row of class scores, at least two, for each row of inputs; {len(inputs)} rows of "
            f"shape {tuple(inputs.shape[1:])} gave {tuple(outputs.shape)}"
        )
    if bool((outputs >= 0.0).all()) and torch.allclose(outputs.sum(dim=1), torch.ones(()).to(outputs), atol=1e-4):
        raise InvalidValueError(
            "network gives probabilities, and class scores are needed; leave out its softmax, or take its logarithm"
        )
    found = [layer for layer in recorder.used() if _trained(module, layer.weight)]
    known = {name for layer in found for name in (layer.weight, layer.bias)}
    rest = [Layer(name) for name, weights in module.named_parameters() if weights.requires_grad and name not in known]
    with torch.no_grad():
        last = _apply_head(module, recorder)
    head = recorder.head if last is not None and torch.equal(last, outputs) else ""
    return Structure((*found, *rest), int(outputs.shape[1]), head, recorder.dropped)


def head_inputs(module: torch.nn.Module, inputs: torch.Tensor) -> torch.Tensor:
    """Inputs of the last layer without dropout, ``B x J``."""
    recorder, _ = _record(module, inputs)
    if recorder.head_inputs is None:
        raise InvalidValueError("network does not end in a plain (linear) layer, so it has no last-layer posterior")
    return recorder.head_inputs


def _record(module: torch.nn.Module, inputs: torch.Tensor) -> tuple[_Recorder, torch.Tensor]:
    recorder = _Recorder({id(weights): name for name, weights in module.named_parameters()}, len(inputs))
    with torch.no_grad(), recorder:
        outputs: torch.Tensor = module(inputs)
    return recorder, outputs


def _apply_head(module: torch.nn.Module, recorder: _Recorder) -> "torch.Tensor | None":
    if not recorder.head or recorder.head_inputs is None:
        return None
    layer = recorder.layers[recorder.head]
    weights = dict(module.named_parameters())
    return F.linear(recorder.head_inputs, weights[layer.weight], weights.get(layer.bias))


def _trained(module: torch.nn.Module, name: str) -> bool:
    return module.get_parameter(name).requires_grad


def dropout_posterior(module: torch.nn.Module, layers: tuple[Layer, ...], sigma: float) -> DropoutPosterior:
    """Return the weights of a module as a posterior for :func:`suffice.kl`."""
    weights = {name: _numbers(value) for name, value in module.named_parameters()}
    return DropoutPosterior(
        [
            DropoutLayer(
                _units(weights[layer.weight], layer.channels),
                weights[layer.bias] if layer.bias else None,
                keep=layer.keep,
                sigma=sigma,
            )
            for layer in layers
        ]
    )


def _units(weight: Floats, channels: int) -> Floats:
    """Weights as outputs x input units x the rest."""
    if weight.ndim < 2:
        return weight.reshape(1, -1)
    return weight.reshape(len(weight), channels, -1) if channels else weight


def _numbers(values: torch.Tensor) -> Floats:
    numbers: Floats = values.detach().double().cpu().numpy()
    return numbers
