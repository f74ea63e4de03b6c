"""Acquisitions: scores from predictions and posteriors (larger is more useful), and orders that use no model.

Predictions are class probabilities under posterior samples, in numpy arrays or torch tensors.
"""

import sys
from collections.abc import Iterator
from typing import Any, Final, NamedTuple, NoReturn, Protocol

import numpy as np
import scipy
from numpy.typing import NDArray

from suffice.errors import InvalidTypeError, InvalidValueError
from suffice.models.predictive import hermite, moderated_logits, probabilities, weight_draws
from suffice.numerics import Floats

#: Number of values in a block: two such blocks of float64 fit into the second-level cache of a core (1 MB).
BLOCK: Final = 2**16
#: Number of configurations at a time, so that a block contains several candidates.
CHUNK: Final = 1024
#: Added to probabilities before a logarithm. It changes only 0, and its product with any relevant mass is above 0.
TINY: Final = 1e-200
# The sum of a row may differ from 1 by this much in any precision: float64 is often a copy of the float32 of a network.
_LOOSE: Final = 1e-4
# Half precision: rounding alone changes a sum by one unit in the last place; a softmax by a few.
_UNITS: Final = 8.0


class Weights(NamedTuple):
    """Configurations of labels for the computation of gains; see :func:`weighed`.

    Attributes:
        rows: Joint probability of sample and configuration, ``S x K``, on the device of the candidates.
        entropy: ``sum_s m_s log m_s`` of the configurations' masses.
        share: Sum over the configurations, ``K``.
    """

    rows: Any
    entropy: float
    share: Any


class Candidates(Protocol):
    """Candidates by their class probabilities, ``N x K x C``: ``K`` samples of the posterior, ``C`` classes."""

    shape: tuple[int, int, int]

    def bald(self) -> Floats:
        """Information of each label about the parameters, ``N``; checks every number."""

    def one(self, index: int) -> Floats:
        """The probabilities of one candidate, ``K x C``."""

    def weights(self, rows: Floats) -> Weights:
        """Return configurations, ``S x K``, on the device of the candidates."""

    def information(self, indices: Any, weights: Weights) -> Floats:
        r"""Information of some labels about the parameters, given configurations of others.

        With ``W`` the rows, ``m`` their masses, ``v`` their sum and ``p`` the candidate's probabilities,

        .. math:: \sum_s m_s I_s = \sum_s m_s \log m_s - \sum_{sc} (Wp)_{sc} \log (Wp)_{sc}
            + \sum_{kc} v_k p_{kc} \log p_{kc}

        where :math:`I_s \ge 0` is the mutual information of label and parameters in configuration ``s``.
        """


def candidates(probs: Any) -> Candidates:
    """Return candidates from an array or a torch tensor, which stays on its device.

    Raises:
        InvalidTypeError: They are not real numbers.
        InvalidValueError: There are not three axes, or there is no sample or no class.
    """
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(probs, torch.Tensor):
        tensor = probs.detach()
        # numpy can use a tensor in host memory, except for bfloat16.
        if tensor.device.type != "cpu" or tensor.dtype == torch.bfloat16:
            return TensorCandidates(tensor)
        probs = tensor.numpy()
    return ArrayCandidates(probs)


class ArrayCandidates:
    """Candidates in a numpy array."""

    def __init__(self, probs: Any) -> None:
        try:
            array = np.asarray(probs)
        except ValueError:
            array = np.asarray(None)
        if array.dtype.kind not in "fiub":
            raise InvalidTypeError(f"probs must be an array or a tensor of real numbers, not {_named(probs)}")
        self.shape = three_axes(array.shape)
        whole = array.dtype.kind != "f"
        self._probs = array.astype(np.float64) if whole else array
        self._allowed = allowed(float(np.finfo(self._probs.dtype).eps))

    def bald(self) -> Floats:
        """Information of each label; see :class:`Candidates`."""
        n, samples, classes = self.shape
        result = np.empty(n)
        size = max(1, BLOCK // (samples * classes))
        block = np.empty((samples, classes, size))
        logs = np.empty_like(block)
        for start in range(0, n, size):
            # Candidates are the last axis, so that the sums below read contiguous memory.
            given = self._probs[start : start + size].transpose(1, 2, 0)
            p, log_p = block[:, :, : given.shape[2]], logs[:, :, : given.shape[2]]
            np.copyto(p, given)
            sums = p.sum(axis=1)
            if not (np.abs(sums - 1.0) <= self._allowed).all() or p.min() < 0.0:
                refuse(self._probs[start : start + size].astype(np.float64), start, self._allowed)
            p *= (1.0 / sums)[:, None]
            mean = p.mean(axis=0)
            # entr is not used here and below: numpy's log is vectorised, and the product can use BLAS.
            np.add(p, TINY, out=log_p)
            np.log(log_p, out=log_p)
            p *= log_p
            result[start : start + size] = p.sum(axis=(0, 1)) / samples - plogp(mean).sum(axis=0)
        return np.maximum(result, 0.0, out=result)

    def one(self, index: int) -> Floats:
        """The probabilities of one candidate."""
        p = self._probs[index].astype(np.float64)
        return np.asarray(p / p.sum(axis=1, keepdims=True))

    def weights(self, rows: Floats) -> Weights:
        """Configurations, as they are."""
        return Weights(rows, mass_entropy(rows), rows.sum(axis=0))

    def information(self, indices: Any, weights: Weights) -> Floats:
        """Information of some labels; see :class:`Candidates`."""
        result = np.zeros(len(indices))
        _, samples, classes = self.shape
        for start, stop in pieces(len(indices), weights.rows.shape, classes, BLOCK):
            block = self._block(indices[start:stop]).reshape(-1, samples)
            entropy = ((block * np.log(block)) @ weights.share).reshape(-1, classes).sum(axis=1)
            result[start:stop] = weights.entropy + entropy - self._joint(block, weights.rows)
        return np.maximum(result, 0.0, out=result)

    def _block(self, indices: Any) -> Floats:
        """Probabilities above 0 with sums of 1, ``L x C x K``."""
        given = self._probs[indices].astype(np.float64)
        # A product with ones is many times faster than a sum along such a short axis.
        sums = (given.reshape(-1, self.shape[2]) @ np.ones(self.shape[2])).reshape(given.shape[:2])
        block = np.divide(given.transpose(0, 2, 1), sums[:, None, :], order="C")
        block += TINY
        return np.asarray(block)

    def _joint(self, block: Floats, rows: Floats) -> Floats:
        """``sum_sc q log q`` with ``q`` the joint probabilities of configuration and label, for each candidate."""
        classes = self.shape[2]
        count = len(block) // classes
        total = np.zeros(count)
        for start in range(0, len(rows), CHUNK):
            joint = block @ rows[start : start + CHUNK].T
            logs = np.log(joint)
            total += (joint.reshape(count, 1, -1) @ logs.reshape(count, -1, 1)).reshape(count)
        return total


def plogp(p: Floats) -> Floats:
    """``p log p``, elementwise, 0 at 0.

    Examples:
        >>> plogp(np.array([0.0, 1.0, 0.5])).round(4) + 0.0
        array([ 0.    ,  0.    , -0.3466])
    """
    return np.asarray(-scipy.special.entr(p))


def mass_entropy(rows: Floats) -> float:
    """``sum_s m_s log m_s`` of the masses of configurations, all above 0."""
    return float(plogp(rows.sum(axis=1)).sum())


def pieces(count: int, rows: tuple[int, int], classes: int, block: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of candidates whose joint probabilities with a chunk of configurations fill a block."""
    widest = max(min(rows[0], CHUNK), rows[1])
    size = max(1, block // (classes * widest))
    for start in range(0, count, size):
        yield start, min(start + size, count)


def three_axes(shape: Any) -> tuple[int, int, int]:
    """The shape of ``N x K x C`` probabilities, or an error."""
    if len(shape) != 3 or shape[1] < 1 or shape[2] < 1:
        raise InvalidValueError(
            f"probs must be N x K x C: candidates, samples of the posterior, classes; its shape is {tuple(shape)}"
        )
    n, samples, classes = (int(length) for length in shape)
    return n, samples, classes


def allowed(eps: float) -> float:
    """Allowed distance from 1 of a sum of probabilities of this precision."""
    return max(_LOOSE, _UNITS * eps)


def refuse(block: Floats, start: int, tolerance: float) -> NoReturn:
    """Raise an error about the first invalid numbers of a block, whose first candidate is ``start``."""
    bad = np.argwhere(~((block >= 0.0) & np.isfinite(block)))
    if len(bad):
        place = (int(bad[0][0]) + start, int(bad[0][1]), int(bad[0][2]))
        raise InvalidValueError(f"probs must be probabilities, 0 or more, but is {block[tuple(bad[0])]} at {place}")
    sums = block.sum(axis=2)
    row = np.argwhere(np.abs(sums - 1.0) > tolerance)[0]
    raise InvalidValueError(
        f"probs must sum to 1 over its last axis, the classes, within {tolerance:.2g}, "
        f"but the sum is {sums[tuple(row)]:.6g} for candidate {int(row[0]) + start}, sample {int(row[1])}"
    )


def _named(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"a {type(value).__name__}"


# Number of values in a block on an accelerator: 128 MB of float64, enough to use it fully.
_DEVICE_BLOCK: Final = 2**24


class TensorCandidates:
    """Candidates in a torch tensor; see :class:`~suffice.acquisition.scores.Candidates`.

    Args:
        probs: A tensor of any floating precision, on any device that supports float64.
    """

    def __init__(self, probs: Any) -> None:
        import torch

        if not probs.is_floating_point():
            raise InvalidTypeError(f"probs must be an array or a tensor of real numbers, not a tensor of {probs.dtype}")
        self.shape = three_axes(probs.shape)
        self._probs = probs
        self._allowed = allowed(torch.finfo(probs.dtype).eps)
        self._size = BLOCK if probs.device.type == "cpu" else _DEVICE_BLOCK

    def bald(self) -> Floats:
        """Information of each label; checks every number."""
        n, samples, classes = self.shape
        result = np.empty(n)
        size = max(1, self._size // (samples * classes))
        for start in range(0, n, size):
            p = self._probs[start : start + size].double()
            sums = p.sum(dim=2)
            if not bool(((sums - 1.0).abs() <= self._allowed).all() & (p >= 0.0).all()):
                refuse(p.cpu().numpy(), start, self._allowed)
            p = p / sums[:, :, None]
            gain = p.xlogy(p).sum(dim=(1, 2)) / samples - _sum_plogp(p.mean(dim=1))
            result[start : start + size] = gain.cpu().numpy()
        return np.maximum(result, 0.0, out=result)

    def one(self, index: int) -> Floats:
        """The probabilities of one candidate."""
        p = self._probs[index].double().cpu().numpy()
        return np.asarray(p / p.sum(axis=1, keepdims=True))

    def weights(self, rows: Floats) -> Weights:
        """Configurations, copied to the device."""
        return Weights(self._here(rows), mass_entropy(rows), self._here(rows.sum(axis=0)))

    def information(self, indices: Any, weights: Weights) -> Floats:
        """Information of some labels, given configurations of others."""
        result = np.zeros(len(indices))
        _, samples, classes = self.shape
        chosen = self._here(indices)
        for start, stop in pieces(len(indices), weights.rows.shape, classes, self._size):
            p = self._probs[chosen[start:stop]].double().transpose(1, 2)
            block = (p / p.sum(dim=1, keepdim=True) + TINY).reshape(-1, samples)
            gain = ((block * block.log()) @ weights.share).reshape(-1, classes).sum(dim=1) + weights.entropy
            for first in range(0, len(weights.rows), CHUNK):
                gain -= _sum_plogp((block @ weights.rows[first : first + CHUNK].T).reshape(stop - start, -1))
            result[start:stop] = gain.cpu().numpy()
        return np.maximum(result, 0.0, out=result)

    def _here(self, array: Any) -> Any:
        import torch

        return torch.from_numpy(array).to(self._probs.device)


def _sum_plogp(p: Any) -> Any:
    return p.xlogy(p).sum(dim=1)


#: Recommended share of labels that are drawn at random from the unlabelled items, for each task. They show how good the
#: model is. The shares were chosen by the error of the model and by that of its estimate; see
#: ``benchmarks/error_estimates.py shares``.
RANDOM_SHARES: Final = {"classification": 0.35, "regression": 0.5}
#: Names of acquisitions, by the kind of model for which they can be used.
NAMES: Final = {
    "regression": ("variance", "entropy", "variance-reduction", "random", "k-centre", "order"),
    "classification": ("entropy", "map-entropy", "margin", "bald", "relevance", "random", "k-centre", "order"),
    "any classification": ("margin", "entropy", "bald", "relevance", "random", "k-centre", "order"),
    "any regression": ("variance", "random", "k-centre", "order"),
    "network": ("batchbald", "bald", "entropy", "margin", "random", "k-centre", "order"),
}


_KINDS: Final = {"any classification": "this classifier", "any regression": "this regressor"}


def require_known(name: str, kind: str) -> str:
    """Return the name of an acquisition, or raise an error that lists the known ones.

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
    return np.asarray(scipy.special.entr(probabilities).sum(axis=1))


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
        posterior: Posterior of two classes or many: ``latent(features)`` returns mean and variance of the logits.
        features: ``m x J``.
        name: Acquisition.

    Examples:
        >>> from suffice.models import BayesianLogistic
        >>> model = BayesianLogistic(alpha=0.1).fit([[-2.0], [-1.0], [1.0], [2.0]], [0, 0, 1, 1])
        >>> class_scores(model.state_, np.array([[1.0, 0.0], [1.0, 3.0]]), "entropy").round(2)
        array([0.69, 0.38])
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
    """Return the entropy of the averaged label minus the average of its entropy.

    By Gauss-Hermite; for a logit with a large variance by Gauss-Laguerre. There the entropy, and the difference between
    the label's probability and a step function, are concentrated around a logit of 0.
    """
    nodes, weights = hermite(_NODES)
    p = scipy.special.expit(mean + np.sqrt(variance) * nodes[:, None])
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
    # Weights e^x, because the quadrature is for integrals against e^-x.
    bump = weights * np.exp(nodes) * _coin_entropy(scipy.special.expit(-nodes))
    tail = weights * np.exp(nodes) * scipy.special.expit(-nodes)
    return scipy.special.ndtr(mean / deviation) + tail @ (below - above), bump @ (above + below)


def _coin_entropy(p: Floats) -> Floats:
    return np.asarray(scipy.special.entr(p) + scipy.special.entr(1.0 - p))


def _draws_bald(posterior: Any, features: Floats) -> Floats:
    draws = [probabilities(features @ weights.T) for weights in weight_draws(posterior, _DRAWS)]
    return bald(np.stack(draws, axis=1))


Indices = NDArray[np.intp]


class Chooser(Protocol):
    """Chooses the items of a pool to label next.

    Examples:
        >>> chooser: Chooser = InOrder(4)
        >>> chooser.take(np.array([1])); chooser.skip(np.array([2]))
        >>> chooser.batch(3)
        array([0, 3])
    """

    def propose(self, most: int) -> Indices:
        """Return the next picks, as many as do not depend on labels to come: at least 1, at most ``most``."""

    def batch(self, size: int) -> Indices:
        """Return picks to be labelled together; fewer than ``size`` only if the pool has no more items."""

    def take(self, indices: Indices) -> None:
        """Leave items out from now on: they are labelled."""

    def skip(self, indices: Indices) -> None:
        """Leave items out from now on: they will have no label."""


class RandomOrder:
    """Items in random order.

    Args:
        size: Size of the pool.
        rng: Random generator of the order.

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

    @classmethod
    def of(cls, order: Indices, size: int) -> "RandomOrder":
        """A given order of some items of a pool; the others are never chosen.

        Args:
            order: The items.
            size: Size of the pool.
        """
        made = cls.__new__(cls)
        made._order, made._next = order, 0
        made._free = np.zeros(size, dtype=bool)
        made._free[order] = True
        return made

    @property
    def left(self) -> Indices:
        """The items that are not left out, in order."""
        later = self._order[self._next :]
        return np.asarray(later[self._free[later]])

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
    """Items in the order of the pool.

    Examples:
        >>> order = InOrder(5)
        >>> order.take(np.array([0, 2]))
        >>> order.batch(2)
        array([1, 3])
    """

    def __init__(self, size: int) -> None:
        self._order = np.arange(size)
        self._free = np.ones(size, dtype=bool)
        self._next = 0


class KCentre:
    """The item farthest from all items taken. The covering radius is at most twice the smallest possible one.

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
        """Return the next items. They do not depend on labels; a few are computed at a time."""
        return self.batch(min(most, 32))

    def batch(self, size: int) -> Indices:
        """Return the farthest item, repeatedly."""
        distance, free, chosen = self._distance.copy(), self._free.copy(), []
        for _ in range(min(size, int(free.sum()))):
            # The first item is the one nearest to the mean of the pool.
            score = -self._squares if np.isinf(distance).all() else distance
            pick = int(np.argmax(np.where(free, score, -np.inf)))
            chosen.append(pick)
            free[pick] = False
            np.minimum(distance, self._distances(pick), out=distance)
        return np.array(chosen, dtype=np.intp)

    def take(self, indices: Indices) -> None:
        """Leave items out, and measure distances from them."""
        self._free[indices] = False
        for index in indices:
            np.minimum(self._distance, self._distances(int(index)), out=self._distance)

    def skip(self, indices: Indices) -> None:
        """Leave items out; distances are not measured from them."""
        self._free[indices] = False

    def _distances(self, index: int) -> Floats:
        squared = self._squares + self._squares[index] - 2.0 * (self._points @ self._points[index])
        return np.asarray(np.maximum(squared, 0.0))


def label_free_chooser(name: str, points: Floats, rng: np.random.Generator) -> Chooser | None:
    """Return the chooser of an acquisition that uses no model; None for other names.

    Examples:
        >>> points, rng = np.array([[0.0], [1.0], [10.0]]), np.random.default_rng(0)
        >>> cover = label_free_chooser("k-centre", points, rng)
        >>> cover.take(np.array([0]))
        >>> cover.batch(1)
        array([2])
        >>> label_free_chooser("margin", points, rng) is None
        True
    """
    if name == "random":
        return RandomOrder(len(points), rng)
    if name == "order":
        return InOrder(len(points))
    return KCentre(points) if name == "k-centre" else None
