"""Predictive distribution of a Laplace posterior: averaged probabilities, draws, and quadrature nodes."""

from functools import cache
from typing import Any

import numpy as np
from scipy.special import expit, softmax

from suffice.numerics.cholesky import solve_upper
from suffice.numerics.special_functions import Floats


def moderated_logits(posterior: Any, features: Floats) -> Floats:
    r"""Logits of the averaged probabilities by MacKay's formula: :math:`\mu / \sqrt{1 + \pi s / 8}`.

    For many classes ``s`` is the variance of a logit less what all classes share, for that cancels in the
    probabilities: the mean of the weights over the classes is :math:`N(0, I / K\alpha)` whatever the labels, and
    independent of the rest.

    Args:
        posterior: :class:`~suffice.models.laplace.Laplace` or :class:`~suffice.models.laplace.SoftmaxLaplace`.
        features: ``m x J``.

    Returns:
        ``m`` numbers, or ``m x K`` for many classes.
    """
    mean, variance = posterior.latent(features)
    if mean.ndim == 2:
        shared = np.einsum("ij,ij->i", features, features) / (posterior.n_classes * posterior.alpha)
        variance = np.maximum(variance - shared[:, None], 0.0)
    return moderated(mean, variance)


def moderated(mean: Floats, variance: Floats) -> Floats:
    r"""Logits of probabilities averaged over :math:`N(\mu, s)`: MacKay's formula, :math:`\mu / \sqrt{1 + \pi s / 8}`.

    Examples:
        >>> moderated(np.array([2.0]), np.array([8.0 / np.pi])).round(4)
        array([1.4142])
    """
    return np.asarray(mean / np.sqrt(1.0 + np.pi / 8.0 * variance))


def probabilities(logits: Floats) -> Floats:
    """Class probabilities, ``m x K``, from logits of two classes (``m``) or many (``m x K``).

    Examples:
        >>> probabilities(np.zeros(1))
        array([[0.5, 0.5]])
    """
    if logits.ndim == 1:
        return np.column_stack([expit(-logits), expit(logits)])
    return np.asarray(softmax(logits, axis=1))


@cache
def hermite(n: int) -> tuple[Floats, Floats]:
    """Nodes and weights of an expectation over N(0, 1)."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(n)
    return nodes, weights / weights.sum()


def weight_draws(posterior: Any, n: int, seed: int = 0) -> Floats:
    """Draws of the weights in pairs mirrored at the mean; with one seed always from the same random numbers.

    So their noise does not jump from step to step.

    Args:
        posterior: With ``weights`` (``J``, or ``K x J``) and ``factor``, the lower factor of their precision.
        n: How many.
        seed: Seed of the random numbers.

    Returns:
        ``n x J``, or ``n x K x J``.
    """
    z = np.random.default_rng(seed).standard_normal((posterior.weights.size, (n + 1) // 2))
    offsets = solve_upper(posterior.factor, z).T.reshape(-1, *posterior.weights.shape)
    return np.concatenate([posterior.weights + offsets, posterior.weights - offsets])[:n]


def exponentials(values: Any) -> Any:
    """``exp`` of an array or a tensor, on its device."""
    return np.exp(values) if isinstance(values, np.ndarray) else values.exp()


def as_numbers(values: Any) -> Floats:
    """An array or a tensor on any device, in double precision."""
    return np.asarray(values if isinstance(values, np.ndarray) else values.double().cpu().numpy(), dtype=np.float64)
