"""Acquisition scores from predictions and from Laplace posteriors; a larger score is a more useful label."""

from typing import Any, Final

import numpy as np
from scipy.special import entr, expit, ndtr

from suffice.acquisition.candidates import candidates
from suffice.errors import InvalidValueError
from suffice.models.predictive import hermite, moderated_logits, probabilities, weight_draws
from suffice.numerics.special_functions import Floats

#: Names of acquisitions, by the kind of model that they serve.
NAMES: Final = {
    "regression": ("variance", "entropy", "variance-reduction", "random", "k-centre", "order"),
    "classification": ("entropy", "map-entropy", "margin", "bald", "relevance", "random", "k-centre", "order"),
    "any classification": ("margin", "entropy", "bald", "relevance", "random", "k-centre", "order"),
    "any regression": ("variance", "random", "k-centre", "order"),
    "network": ("batchbald", "bald", "entropy", "margin", "random", "k-centre", "order"),
}


_KINDS: Final = {"any classification": "this classifier", "any regression": "this regressor"}


def require_known(name: str, kind: str) -> str:
    """Return the name of an acquisition, or say which there are.

    Examples:
        >>> require_known("k-center", "regression")
        'k-centre'
    """
    spelled = "k-centre" if name in ("k-center", "kcentre", "kcenter", "coreset") else name
    if spelled not in NAMES[kind]:
        raise InvalidValueError(
            f"acquisition for {_KINDS.get(kind, kind)} is one of {', '.join(NAMES[kind])}; not {name!r}"
        )
    return spelled


def entropy(probabilities: Floats) -> Floats:
    r"""Entropy of each row, :math:`-\sum_c p_c \log p_c`, in nats; ``m x K`` to ``m``.

    Reference: [IshibashiHino2021] section 5.2, model 2.

    Examples:
        >>> entropy(np.array([[0.5, 0.5], [1.0, 0.0]])).round(4)
        array([0.6931, 0.    ])
    """
    return np.asarray(entr(probabilities).sum(axis=1))


def margin(probabilities: Floats) -> Floats:
    """How close the two likeliest classes are: 1 less the difference of their probabilities; ``m x K`` to ``m``.

    Examples:
        >>> margin(np.array([[0.5, 0.4, 0.1], [1.0, 0.0, 0.0]])).round(4)
        array([0.9, 0. ])
    """
    if probabilities.shape[1] < 2:
        return np.zeros(len(probabilities))
    top = np.partition(probabilities, -2, axis=1)[:, -2:]
    return np.asarray(1.0 - (top[:, 1] - top[:, 0]))


def bald(probs: Any) -> Floats:
    r"""What each label would tell about the parameters, :math:`H[\bar p] - \overline{H[p]}` over samples, in nats.

    Args:
        probs: Probability of each class under each sample of the posterior, ``N x K x C``; a numpy array or a tensor.

    Returns:
        ``N`` numbers.

    Reference: [Houlsby2011] equation 2.

    Examples:
        >>> bald(np.array([[[1.0, 0.0], [0.0, 1.0]], [[0.5, 0.5], [0.5, 0.5]]])).round(4)
        array([0.6931, 0.    ])
    """
    return candidates(probs).bald()


_NODES: Final = 20
_LAGUERRE: Final = 40
_WIDE: Final = 2.0
_DRAWS: Final = 32


def class_scores(posterior: Any, features: Floats, name: str) -> Floats:
    """How useful the label of each row would be under a posterior of the weights, ``m``.

    Args:
        posterior: Of two classes or many: ``latent(features)`` gives mean and variance of the logits.
        features: ``m x J``.
        name: Acquisition.
    """
    if name not in ("bald", "entropy", "map-entropy", "margin"):
        raise InvalidValueError(f"{name!r} is not a score of classes")
    if name == "bald":
        two = posterior.weights.ndim == 1
        return _binary_bald(*posterior.latent(features)) if two else _draws_bald(posterior, features)
    plain = name == "map-entropy"
    p = probabilities(features @ posterior.weights.T if plain else moderated_logits(posterior, features))
    return margin(p) if name == "margin" else entropy(p)


def _binary_bald(mean: Floats, variance: Floats) -> Floats:
    """Entropy of the averaged label less the average of its entropy.

    By Gauss-Hermite; where the logit is wide, by Gauss-Laguerre: the entropy is a bump around even odds, and so is
    what the label's probability lacks to a step.
    """
    nodes, weights = hermite(_NODES)
    p = expit(mean + np.sqrt(variance) * nodes[:, None])
    average, inner = weights @ p, weights @ _coin_entropy(p)
    wide = np.flatnonzero(variance > _WIDE)
    if len(wide):
        average[wide], inner[wide] = _wide_averages(mean[wide], np.sqrt(variance[wide]))
    return np.asarray(_coin_entropy(average) - inner)


def _wide_averages(mean: Floats, deviation: Floats) -> tuple[Floats, Floats]:
    """Average probability, and average entropy, of a label whose logit has a deviation well above 1."""
    nodes, weights = np.polynomial.laguerre.laggauss(_LAGUERRE)
    above, below = (
        np.exp(-0.5 * ((sign * nodes[:, None] - mean) / deviation) ** 2) / (deviation * np.sqrt(2.0 * np.pi))
        for sign in (1.0, -1.0)
    )
    # Weights e^x: the rule is for integrals against e^-x.
    bump = weights * np.exp(nodes) * _coin_entropy(expit(-nodes))
    tail = weights * np.exp(nodes) * expit(-nodes)
    return ndtr(mean / deviation) + tail @ (below - above), bump @ (above + below)


def _coin_entropy(p: Floats) -> Floats:
    return np.asarray(entr(p) + entr(1.0 - p))


def _draws_bald(posterior: Any, features: Floats) -> Floats:
    draws = [probabilities(features @ weights.T) for weights in weight_draws(posterior, _DRAWS)]
    return bald(np.stack(draws, axis=1))
