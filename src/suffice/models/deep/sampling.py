"""Class probabilities under draws of a network's posterior, and the Laplace posterior of its last layer."""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import numpy as np
import torch
from scipy.special import log_softmax

from suffice.models.deep.dropout_layers import Masks, head_inputs
from suffice.models.deep.training import fitting_threads, precision
from suffice.models.laplace import laplace, learn_alpha
from suffice.models.predictive import weight_draws
from suffice.models.threads import one_thread
from suffice.numerics.special_functions import Floats

# Numbers that enter a block, in all its draws: few enough for the caches of a processor, many enough to fill a GPU.
_CACHED: Final = 100_000
_FILLED: Final = 25_000_000


def log_draws(
    module: torch.nn.Module, inputs: torch.Tensor, masks: Masks, *, autocast: "torch.dtype | None" = None
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
    """Inputs of the last layer without dropout, ``N x J``."""
    with fitting_threads(module, inputs.device):
        return torch.cat([head_inputs(module, inputs[rows]).float() for rows in _blocks(inputs, 1)])


def _blocks(inputs: torch.Tensor, draws: int) -> Iterator[slice]:
    room = _CACHED if inputs.device.type == "cpu" else _FILLED
    size = max(8, room // (draws * inputs[0].numel()))
    for first in range(0, len(inputs), size):
        yield slice(first, first + size)


class LabelledFeatures(NamedTuple):
    """Features of the labelled rows (``n x J``), their class codes, and the number of classes."""

    rows: Floats
    codes: Any
    classes: int


def head_features(module: torch.nn.Module, inputs: torch.Tensor) -> Floats:
    """Inputs of the last layer with a constant before them, ``N x (1 + J)``."""
    found = features(module, inputs).double().cpu().numpy()
    return np.column_stack([np.ones(len(found)), found])


@one_thread()
def last_layer(labelled: LabelledFeatures, alpha: float | None, n: int) -> Any:
    r"""The Laplace posterior of the last layer after the first ``n`` labels, under ``w ~ N(0, I / precision)``.

    Training makes features larger and larger, and what a weight means depends on their size. So the precision is
    :math:`\alpha \, \overline{|\phi|^2}`, which makes the prior variance of a logit :math:`1 / \alpha` on average over
    the labelled rows, whatever that size is.

    Args:
        labelled: All labels; the precision follows from all, so that posteriors of one time share a prior.
        alpha: Inverse of the prior variance of a logit; if None, the precision is learned by Laplace's evidence.
        n: How many of the labels the posterior has seen.

    Reference: [MacKay1992] section 4; [Daxberger2021] section 3.
    """
    size = float(np.einsum("ij,ij->", labelled.rows, labelled.rows)) / len(labelled.rows)
    precision = learn_alpha(*labelled) if alpha is None else float(alpha) * size
    return laplace(labelled.rows[:n], labelled.codes[:n], labelled.classes, precision)


@one_thread()
def last_layer_draws(posterior: Any, rows: Floats, draws: int, seed: int) -> Floats:
    """Log probabilities of the classes under draws of the last layer's weights, ``N x k x C``."""
    found = np.stack([rows @ weights.T for weights in weight_draws(posterior, draws, seed)], axis=1)
    logits = found if found.ndim == 3 else np.stack([np.zeros_like(found), found], axis=2)
    return np.asarray(log_softmax(logits, axis=2))
