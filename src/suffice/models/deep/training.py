"""Training of a network on the labelled rows, in batches and epochs."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import torch
import torch.nn.functional as F

from suffice.errors import InvalidValueError, TrainingDivergedError

# Networks of fewer weights train faster on one thread.
_SMALL: Final = 100_000


@dataclass(frozen=True)
class Recipe:
    """Settings for training a network.

    Attributes:
        epochs: Times that each label is seen.
        batch_size: Labels to a step; all at once if None.
        draws: Dropout draws whose logits are averaged before the loss.
        autocast: Number type of the arithmetic, or None for that of the weights.
    """

    epochs: int
    batch_size: int | None
    draws: int = 1
    autocast: "torch.dtype | None" = None


def train(
    module: torch.nn.Module, inputs: torch.Tensor, codes: torch.Tensor, *, optimizer: Any, recipe: Recipe
) -> list[float]:
    """Train a module on labelled rows, in place; its randomness is torch's own.

    Args:
        module: Gives ``B x C`` class scores.
        inputs: ``n x ...``.
        codes: Class codes, ``n``.
        optimizer: Of the module's weights.
        recipe: How.

    Returns:
        Mean loss of each epoch.

    Raises:
        TrainingDivergedError: The loss or a weight is not finite any more.
    """
    module.train()
    losses: list[float] = []
    for epoch in range(recipe.epochs):
        total = torch.zeros((), device=inputs.device)
        for rows in batches(len(codes), recipe.batch_size):
            optimizer.zero_grad(set_to_none=True)
            loss = _loss(module, inputs[rows], codes[rows], recipe)
            loss.backward()
            optimizer.step()
            total += loss.detach() * (len(rows) / len(codes))
        losses.append(float(total))
        if not np.isfinite(losses[-1]):
            raise TrainingDivergedError(f"the loss became {losses[-1]} in epoch {epoch + 1} of {recipe.epochs}")
    module.eval()
    with torch.no_grad():
        finite = all(bool(torch.isfinite(weights).all()) for weights in module.parameters())
        # Weights may be so large that what they give is not.
        if not finite or not bool(torch.isfinite(module(inputs[:2])).all()):
            raise TrainingDivergedError("a weight or an output became infinite or NaN")
    return losses


def _loss(module: torch.nn.Module, inputs: torch.Tensor, codes: torch.Tensor, recipe: Recipe) -> torch.Tensor:
    try:
        return averaged_loss(module, inputs, codes, recipe)
    except ValueError as error:
        if "more than 1 value per channel" not in str(error):
            raise
        raise InvalidValueError(
            "network normalises over a batch, which takes two labels at least; give more labels, or a larger batch_size"
        ) from None


def averaged_loss(module: torch.nn.Module, inputs: torch.Tensor, codes: torch.Tensor, recipe: Recipe) -> torch.Tensor:
    """Cross entropy of the logits averaged over dropout draws, each row with masks of its own."""
    rows = inputs if recipe.draws == 1 else inputs.repeat(recipe.draws, *[1] * (inputs.ndim - 1))
    with precision(inputs.device, recipe.autocast):
        logits = module(rows)
    return F.cross_entropy(logits.float().unflatten(0, (recipe.draws, -1)).mean(dim=0), codes)


def batches(size: int, batch_size: int | None) -> Iterator[torch.Tensor]:
    """Rows in random order, cut into batches; one row left over joins the batch before it."""
    order = torch.randperm(size)
    if batch_size is None or batch_size >= size:
        yield order
        return
    ends = list(range(batch_size, size, batch_size))
    # Batch normalisation cannot learn from one row.
    if size - ends[-1] == 1:
        ends.pop()
    yield from torch.tensor_split(order, ends)


@contextmanager
def precision(device: torch.device, dtype: "torch.dtype | None") -> Iterator[None]:
    """Mixed precision, where a type for it is given."""
    if dtype is None:
        yield
        return
    with torch.autocast(device.type, dtype=dtype):
        yield


@contextmanager
def seeded(seed: tuple[int, ...], device: torch.device) -> Iterator[None]:
    """Torch's randomness from a seed; afterwards it is the caller's again, as it was."""
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(int(np.random.SeedSequence(seed).generate_state(1, np.uint64)[0] >> 1))
        yield


@contextmanager
def fitting_threads(module: torch.nn.Module, device: torch.device) -> Iterator[None]:
    """One thread for a small network on the CPU: a second costs more than it brings."""
    before = torch.get_num_threads()
    small = device.type == "cpu" and sum(weights.numel() for weights in module.parameters()) < _SMALL
    if small and before > 1:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        if small and before > 1:
            torch.set_num_threads(before)
