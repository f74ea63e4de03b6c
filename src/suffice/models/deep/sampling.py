"""Class probabilities under draws of a network's posterior, row block by row block."""

from collections.abc import Iterator
from typing import Final

import torch

from suffice.models.deep.masks import Masks
from suffice.models.deep.readout import head_inputs
from suffice.models.deep.training import fitting_threads, precision

# Numbers that enter a block, in all its draws: few enough for the caches of a processor, many enough to fill a GPU.
_CACHED: Final = 100_000
_FILLED: Final = 25_000_000


def log_draws(
    module: torch.nn.Module, inputs: torch.Tensor, masks: Masks, *, autocast: torch.dtype | None = None
) -> torch.Tensor:
    """Log probabilities of the classes under draws of the dropout masks; every row sees the same masks.

    Args:
        module: In evaluation mode.
        inputs: ``N x ...``, on the module's device.
        masks: The draws, ``k`` of them.
        autocast: Number type of the arithmetic, or None for that of the weights.

    Returns:
        ``N x k x C``, float32, on the module's device.
    """
    with torch.no_grad(), fitting_threads(module, inputs.device), precision(inputs.device, autocast):
        found: torch.Tensor | None = None
        for rows in _blocks(inputs, masks.draws):
            logits = masks.forward(module, inputs[rows]).float()
            if found is None:
                found = torch.empty((len(inputs), *logits.shape[1:]), device=logits.device)
            found[rows] = torch.log_softmax(logits, dim=-1)
    assert found is not None
    return found


def features(module: torch.nn.Module, inputs: torch.Tensor) -> torch.Tensor:
    """What reaches the last layer with nothing dropped, ``N x J``."""
    with fitting_threads(module, inputs.device):
        return torch.cat([head_inputs(module, inputs[rows]).float() for rows in _blocks(inputs, 1)])


def _blocks(inputs: torch.Tensor, draws: int) -> Iterator[slice]:
    room = _CACHED if inputs.device.type == "cpu" else _FILLED
    size = max(8, room // (draws * inputs[0].numel()))
    for first in range(0, len(inputs), size):
        yield slice(first, first + size)
