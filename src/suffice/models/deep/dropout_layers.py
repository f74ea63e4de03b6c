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
    """Sees every dropout call while it is on; what happens then is the subclass's affair."""

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
        """Result of a dropout call; ``channels`` if whole channels are dropped."""
        raise NotImplementedError

    def other(self, func: Callable[..., Any], args: Any, named: Any) -> Any:
        """Any other call."""
        return func(*args, **named)


def _rate(args: Any, named: Any) -> float:
    rate = float(args[1] if len(args) > 1 else named.get("p", 0.5))
    if not 0.0 <= rate < 1.0:
        raise InvalidValueError(f"a dropout layer drops with probability {rate:g}; it must be from 0 to below 1")
    return rate


class Masks(DropoutMode):
    """One set of masks for each of ``draws`` posterior draws; use it as a context around the module's forward calls.

    The masks of the j-th dropout call depend on the seed and ``j`` alone, not on the rows, nor on the device: the same
    seed is the same draws of the posterior for whatever is predicted.

    Args:
        draws: Number of posterior draws, ``k``.
        seed: Seed of the masks.
        early: Whether to multiply the rows before the module instead of at its first dropout layer, for modules whose
            branches pass that by.
    """

    def __init__(self, draws: int, seed: int, *, early: bool = False) -> None:
        super().__init__()
        self.draws, self.seed, self.early = draws, seed, early
        self._kept: dict[tuple[Any, ...], torch.Tensor] = {}
        self._call = self._rows = 0
        self._multiplied = False

    def forward(self, module: torch.nn.Module, inputs: torch.Tensor) -> torch.Tensor:
        """Outputs of ``B`` rows under every draw, ``B x k x ...``."""
        self._call, self._rows, self._multiplied = 0, len(inputs), self.early
        with self:
            outputs: torch.Tensor = module(inputs.repeat_interleave(self.draws, dim=0) if self.early else inputs)
        if not self._multiplied:
            return outputs.unsqueeze(1).expand(-1, self.draws, *outputs.shape[1:])
        found: torch.Tensor = outputs.unflatten(0, (len(inputs), self.draws))
        return found

    def drop(self, inputs: torch.Tensor, rate: float, *, channels: bool) -> torch.Tensor:
        """Rows times the masks of this call, in every draw."""
        copies = self.draws if self._multiplied else 1
        # A module may fold further axes into that of the rows: positions of a text, parts of an image.
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
        """``k x shape``: 0 where dropped, else ``1 / (1 - rate)``."""
        key = (self._call, shape, rate, like.device, like.dtype)
        if key not in self._kept:
            # Drawn on the CPU, so that the draws are the same on every device.
            generator = torch.Generator().manual_seed((self.seed * 1_000_003 + self._call) % 2**63)
            kept = torch.rand((self.draws, *shape), generator=generator) >= rate
            self._kept[key] = (kept / (1.0 - rate)).to(like.device, like.dtype)
        return self._kept[key]


def must_multiply_early(module: torch.nn.Module, inputs: torch.Tensor) -> bool:
    """Whether rows must be multiplied before the module: a branch passes its first dropout layer by.

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
            # Whatever the module says of rows that do not fit together.
            return True


def _alike(one: torch.Tensor, other: torch.Tensor) -> bool:
    return one.shape == other.shape and torch.allclose(one, other, rtol=1e-3, atol=1e-4)


_LINEAR: Final = F.linear
_CONVOLUTIONS: Final = frozenset({torch.conv1d, torch.conv2d, torch.conv3d, F.conv1d, F.conv2d, F.conv3d})
# By name, for a function of torch has several faces.
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
    """A layer of weights as the posterior counts it.

    Attributes:
        weight: Name of its weights in the module; what is no matrix or kernel counts as a single row.
        bias: Name of its biases, or nothing.
        keep: Probability that an input unit is kept.
        channels: Number of input units where several inputs in a row belong to one unit; else 0.
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
    """A tensor some of whose units may be 0, with what that means for the layer that takes it in."""

    tensor: torch.Tensor
    version: int
    keep: float
    channels: int


class _Recorder(DropoutMode):
    """Notes which weights are used, in order, and which of their inputs may be dropped.

    A tensor carries its mark through operations that leave a dropped unit at 0 and apart from the others. Behind any
    other it counts as kept, which makes the bound on the divergence larger, never too small.
    """

    def __init__(self, names: dict[int, str], rows: int) -> None:
        super().__init__()
        self._names, self._rows = names, rows
        # By identity; the tensors are held, so that none is made where another was.
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
        # Another tensor, for the one that came may be used without dropout too.
        return self._mark(inputs.view_as(inputs), keep, int(inputs.shape[1]) if channels else 0)

    def other(self, func: Any, args: Any, named: Any) -> Any:
        inputs = _argument(args, named, (0, "input"))
        mark = self._marked(inputs)
        if func is _LINEAR or func in _CONVOLUTIONS:
            weight, bias = (_argument(args, named, place) for place in ((1, "weight"), (2, "bias")))
            name = self._names.get(id(weight), "")
            self.head, self.head_inputs = (name, inputs) if func is _LINEAR else ("", None)
            if name:
                # What goes over the positions of a text, say, is dropped at one of them and kept at another.
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
        """The mark of a tensor, unless it was written to since."""
        mark = self._marks.get(id(tensor))
        return mark if mark is not None and mark.tensor._version == mark.version else None

    def _note(self, name: str, bias: str, mark: _Dropped | None, width: int) -> None:
        """Note a layer; ``width`` is the number of inputs of a plain one, 0 for a convolution."""
        keep, channels = (1.0, 0) if mark is None else (mark.keep, mark.channels)
        if not width:
            # A kernel's weights are dropped with a channel, not with single elements of it.
            layer = Layer(name, bias, keep if channels else 1.0)
        else:
            whole = channels and width % channels == 0 and width > channels
            layer = Layer(name, bias, keep, channels if whole else 0)
        known = self.layers.get(name)
        # Weights used twice: the larger probability gives the larger bound.
        self.layers[name] = layer if known is None else replace(known, keep=max(known.keep, layer.keep))

    def used(self) -> list[Layer]:
        """The layers in order; weights that something else uses too are kept there."""
        return [
            replace(layer, keep=1.0, channels=0) if name in self._elsewhere else layer
            for name, layer in self.layers.items()
        ]


def _stays(func: Any, mark: _Dropped) -> bool:
    """Whether a dropped unit is still 0, and apart from the others, behind an operation."""
    name = getattr(func, "__name__", "")
    return name in _ZERO_AT_ZERO or (name in _POOLING and mark.channels > 0)


def _argument(args: Any, named: Any, place: tuple[int, str]) -> Any:
    index, name = place
    return args[index] if len(args) > index else named.get(name)


@dataclass(frozen=True)
class Structure:
    """Structure of a module, found by running two rows through it.

    Attributes:
        layers: Its trained weights, in the order of use; those of neither plain layers nor convolutions come last.
        outputs: Number of classes that it tells apart.
        head: Name of the weights of its last layer, if it is a plain one whose outputs are the module's; else nothing.
        dropped: Whether it has dropout at all.
    """

    layers: tuple[Layer, ...]
    outputs: int
    head: str
    dropped: bool


def structure(module: torch.nn.Module, inputs: torch.Tensor) -> Structure:
    """Run a few rows through a module and note its layers.

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
    """The weights of a module as the posterior that :func:`suffice.kl` knows."""
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
