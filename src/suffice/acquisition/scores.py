"""Acquisitions: scores from predictions and posteriors, and orders that use no model; a larger score is more useful."""

from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray
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
    """Closeness of the two likeliest classes: 1 minus the difference of their probabilities; ``m x K`` to ``m``.

    Examples:
        >>> margin(np.array([[0.5, 0.4, 0.1], [1.0, 0.0, 0.0]])).round(4)
        array([0.9, 0. ])
    """
    if probabilities.shape[1] < 2:
        return np.zeros(len(probabilities))
    top = np.partition(probabilities, -2, axis=1)[:, -2:]
    return np.asarray(1.0 - (top[:, 1] - top[:, 0]))


def bald(probs: Any) -> Floats:
    r"""Information of each label about the parameters, :math:`H[\bar p] - \overline{H[p]}` over samples, in nats.

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
    """Usefulness of the label of each row under a posterior of the weights, ``m``.

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


Indices = NDArray[np.intp]


class Chooser(Protocol):
    """Says which items of a pool to label next."""

    def propose(self, most: int) -> Indices:
        """The next picks in order, as many as are known whatever their labels will be: at least 1, at most ``most``."""

    def batch(self, size: int) -> Indices:
        """Picks to be labelled together; fewer than ``size`` only where the pool ends."""

    def take(self, indices: Indices) -> None:
        """Leave items out from now on: they are labelled."""

    def skip(self, indices: Indices) -> None:
        """Leave items out from now on: they will have no label."""


class RandomOrder:
    """Items in random order.

    Args:
        size: Size of the pool.
        rng: Where the order comes from.

    Examples:
        >>> order = RandomOrder(5, np.random.default_rng(0))
        >>> order.take(order.propose(2))
        >>> len(order.batch(9))
        3
    """

    def __init__(self, size: int, rng: np.random.Generator) -> None:
        self._order = rng.permutation(size)
        self._free = np.ones(size, dtype=bool)
        self._next = 0

    def propose(self, most: int) -> Indices:
        """The next items of the order."""
        return self.batch(most)

    def batch(self, size: int) -> Indices:
        """The next items of the order."""
        while self._next < len(self._order) and not self._free[self._order[self._next]]:
            self._next += 1
        ahead = self._order[self._next : self._next + size]
        if not self._free[ahead].all():
            later = self._order[self._next :]
            ahead = later[self._free[later]][:size]
        return np.asarray(ahead)

    def take(self, indices: Indices) -> None:
        """Leave items out."""
        self._free[indices] = False

    def skip(self, indices: Indices) -> None:
        """Leave items out."""
        self._free[indices] = False


class InOrder(RandomOrder):
    """Items in the order of the pool."""

    def __init__(self, size: int) -> None:
        super().__init__(size, np.random.default_rng(0))
        self._order = np.arange(size)


class KCentre:
    """The item farthest from all that are taken: covers the pool evenly, and twice as well as can be at worst.

    Ties go to the lowest index. Each pick costs one pass over the pool.

    Args:
        points: Features, ``m x D``.

    Reference: [Gonzalez1985] section 2; [SenerSavarese2018] algorithm 1.

    Examples:
        >>> cover = KCentre(np.array([[0.0], [1.0], [10.0], [4.0]]))
        >>> cover.take(np.array([0]))
        >>> cover.batch(3)
        array([2, 3, 1])
    """

    def __init__(self, points: Floats) -> None:
        self._points = points - points.mean(axis=0)
        self._squares = np.einsum("ij,ij->i", self._points, self._points)
        self._distance = np.full(len(points), np.inf)
        self._free = np.ones(len(points), dtype=bool)

    def propose(self, most: int) -> Indices:
        """The next items: labels do not matter, so all are known; a few at a time are worked out."""
        return self.batch(min(most, 32))

    def batch(self, size: int) -> Indices:
        """The farthest item, again and again."""
        distance, free, chosen = self._distance.copy(), self._free.copy(), []
        for _ in range(min(size, int(free.sum()))):
            # With nothing taken yet, the item nearest to the middle is the first.
            score = -self._squares if np.isinf(distance).all() else distance
            pick = int(np.argmax(np.where(free, score, -np.inf)))
            chosen.append(pick)
            free[pick] = False
            np.minimum(distance, self._distances(pick), out=distance)
        return np.array(chosen, dtype=np.intp)

    def take(self, indices: Indices) -> None:
        """Leave items out, and measure from them."""
        self._free[indices] = False
        for index in indices:
            np.minimum(self._distance, self._distances(int(index)), out=self._distance)

    def skip(self, indices: Indices) -> None:
        """Leave items out; they cover nothing."""
        self._free[indices] = False

    def _distances(self, index: int) -> Floats:
        squared = self._squares + self._squares[index] - 2.0 * (self._points @ self._points[index])
        return np.asarray(np.maximum(squared, 0.0))


def label_free_chooser(name: str, points: Floats, rng: np.random.Generator) -> Chooser | None:
    """The chooser of a name that asks no model; None for a name that does."""
    if name == "random":
        return RandomOrder(len(points), rng)
    if name == "order":
        return InOrder(len(points))
    return KCentre(points) if name == "k-centre" else None
