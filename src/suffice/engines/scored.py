"""A pool of classes scored anew for every pick, where no bound on how scores move is known."""

from typing import Any, Final

import numpy as np
from scipy.special import entr, expit, ndtr, softmax

from suffice.engines.cross_entropy import hermite, weight_draws
from suffice.engines.pool import Indices
from suffice.errors import InvalidValueError
from suffice.models.predictive import moderated_logits, probabilities
from suffice.special import Floats

_ROWS: Final = 4096
_NODES: Final = 20
_LAGUERRE: Final = 40
_WIDE: Final = 2.0
_DRAWS: Final = 32


class ScoredPool:
    """A pool in memory, scored as a whole at every pick.

    Args:
        features: ``m x J``.
        name: Acquisition: ``entropy``, ``map-entropy``, ``margin`` or ``bald``.
    """

    def __init__(self, features: Floats, name: str) -> None:
        self._features, self._name = features, name
        self._free = np.ones(len(features), dtype=bool)

    def nearest(self, posterior: Any, n: int) -> Indices:
        """The ``n`` points of largest score, largest first; ties to the lowest index."""
        rows = np.flatnonzero(self._free)
        score = np.concatenate(
            [np.zeros(0)]
            + [
                class_scores(posterior, self._features[rows[k : k + _ROWS]], self._name)
                for k in range(0, len(rows), _ROWS)
            ]
        )
        # Scores equal up to rounding are ties.
        best = float(score.max(initial=0.0)) or 1.0
        order = np.argsort(-np.round(score / best, 11), kind="stable")
        return rows[order[:n]]

    def take(self, indices: Indices) -> None:
        """Leave points out from now on."""
        self._free[indices] = False


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
    if name == "margin":
        top = np.partition(p, -2, axis=1)[:, -2:]
        return np.asarray(1.0 - (top[:, 1] - top[:, 0]))
    return np.asarray(entr(p).sum(axis=1))


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
    total: Floats | float = 0.0
    spread: Floats | float = 0.0
    for weights in weight_draws(posterior, _DRAWS):
        p = softmax(features @ weights.T, axis=1)
        total, spread = total + p, spread + entr(p).sum(axis=1)
    return np.asarray(entr(np.asarray(total) / _DRAWS).sum(axis=1) - np.asarray(spread) / _DRAWS)
