"""Dropout by given masks: what a module's dropout calls do is replaced while a mode is on, whoever calls them.

A posterior draw of a dropout network is one set of masks. PyTorch draws new masks for every row; here a draw keeps its
masks for all rows, so that labels of different rows are predicted by the same network. And rows are multiplied only
where the first mask is applied: what comes before it is computed once for all draws.
"""

from collections.abc import Callable
from typing import Any, Final

import torch
import torch.nn.functional as F
from torch.overrides import TorchFunctionMode

from suffice.errors import InvalidValueError

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
        """What a dropout call returns; ``channels`` where whole channels are dropped."""
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
