"""A proper posterior for a deep network: that of its last layer alone, by Laplace's approximation.

With the network's features held fixed, its last layer is a softmax regression on them. Under a Gaussian prior that has
a posterior that is Gaussian to second order, and the divergence between two of them is exact.
"""

from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.special import log_softmax

from suffice.models.deep.sampling import features
from suffice.models.laplace import laplace, learn_alpha
from suffice.models.predictive import weight_draws
from suffice.models.threads import one_thread
from suffice.special import Floats


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
