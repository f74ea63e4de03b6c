"""Leave-one-out predictions of a Laplace posterior, without fitting a model again."""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

from suffice.models.predictive import moderated_logits
from suffice.numerics.special_functions import Floats

# Labels that are guessed, at least and at most, and what they may cost together: numbers of a triangle gone through.
_FEWEST_GUESSES, _MOST, _COST = 100, 500, 5 * 10**8
# Numbers held at a time.
_MOST_HELD: Final = 2_000_000
# A label cannot explain more of its own logit than this; beyond is rounding.
_MOST_OWN: Final = 1.0 - 1e-9
_FACTORS: Final[Floats] = np.geomspace(0.1, 10.0, 21)


class Guesses(NamedTuple):
    """Labels, and what a model says of them that does not know the one in question.

    Attributes:
        logits: Logits of the averaged probabilities, ``m``, or ``m x K`` for many classes.
        codes: The classes, as codes.
    """

    logits: Floats
    codes: NDArray[np.intp]


class _Without(NamedTuple):
    """A posterior, as :func:`moderated_logits` asks for it, that is another one for each row."""

    mean: Floats
    variance: Floats
    n_classes: int
    alpha: float

    def latent(self, features: Floats) -> tuple[Floats, Floats]:
        """Mean and variance of the logits of the rows that it was made for."""
        del features
        return self.mean, self.variance


def guesses(posterior: Any, places: Any = None) -> Guesses:
    r"""Leave-one-out predictions of a posterior for its labels.

    No model is fitted anew. With :math:`S` the covariance of the logits ``f`` of an item (``K x K``), ``p`` its
    probabilities, and :math:`R = \mathrm{diag}(p) - p p'` what its label adds to the precision, they are without it, up
    to a step of Newton's,

    .. math:: S_{-} = (S^{-1} - R)^{-1}, \qquad f_{-} = f - S_{-} (e_y - p).

    Of many labels some are taken, evenly spaced: 500 at most, fewer (to 100) where there are many weights.

    Args:
        posterior: :class:`~suffice.models.laplace.Laplace` or :class:`~suffice.models.laplace.SoftmaxLaplace`.
        places: Which labels, by their places in the order learned; as above if left out.
    """
    rows, codes = posterior.labelled()
    chosen = guessed_places(posterior) if places is None else places
    rows, codes = rows[chosen], codes[chosen]
    left = (
        _two_without(posterior, rows, codes) if posterior.weights.ndim == 1 else _many_without(posterior, rows, codes)
    )
    without = _Without(*left, posterior.n_classes, posterior.alpha)
    return Guesses(moderated_logits(without, rows), codes)


def guessed_places(posterior: Any) -> NDArray[np.intp]:
    """Places of the labels that :func:`guesses` takes: all, or some that are evenly spaced."""
    n = len(posterior.labelled()[1])
    most = int(np.clip(_COST // posterior.weights.size**2, _FEWEST_GUESSES, _MOST))
    return np.unique(np.linspace(0, n - 1, most).astype(np.intp)) if n > most else np.arange(n)


def _two_without(posterior: Any, rows: Floats, codes: Any) -> tuple[Floats, Floats]:
    mean, variance = posterior.latent(rows)
    p = np.exp(log_probabilities(mean)[:, 1])
    variance = variance / (1.0 - np.minimum(p * (1.0 - p) * variance, _MOST_OWN))
    return mean - variance * (codes - p), variance


def _many_without(posterior: Any, rows: Floats, codes: Any) -> tuple[Floats, Floats]:
    mean = rows @ posterior.weights.T
    variance = np.empty_like(mean)
    size = max(1, _MOST_HELD // (posterior.weights.size * posterior.n_classes))
    for start in range(0, len(rows), size):
        part = slice(start, start + size)
        p = np.exp(log_probabilities(mean[part]))
        S = _covariances(posterior, rows[part])
        # R = G G', and S without the label is S + S G (1 - G'SG)^-1 G'S.
        G = np.sqrt(p)[:, None, :] * (np.eye(p.shape[1]) - p[:, :, None])
        own, basis = np.linalg.eigh(G.transpose(0, 2, 1) @ S @ G)
        side = S @ G @ basis / np.sqrt(1.0 - np.clip(own, 0.0, _MOST_OWN))[:, None, :]
        S += side @ side.transpose(0, 2, 1)
        surprise = np.eye(p.shape[1])[codes[part]] - p
        mean[part] -= np.einsum("ikl,il->ik", S, surprise)
        variance[part] = np.einsum("ikk->ik", S)
    return mean, variance


def _covariances(posterior: Any, rows: Floats) -> Floats:
    """Posterior covariance of the logits of each row, ``m x K x K``."""
    inverse, width = posterior.snapshot().inverse_factor, posterior.n_features
    spread = np.zeros((len(rows), len(inverse), posterior.n_classes))
    for k, first in enumerate(range(0, len(inverse), width)):
        # Rows above the block are 0 in a lower triangle.
        spread[:, first:, k] = rows @ inverse[first:, first : first + width].T
    return np.asarray(spread.transpose(0, 2, 1) @ spread)


#: The factors of the logits that are looked at, evenly spaced by their logs.
FACTORS: Final[Floats] = np.geomspace(0.1, 10.0, 81)
# Standard deviation of the log of the factor before any label: from 0.5 to 2 in two of three cases.
_SPREAD: Final = 0.7


def sharpness(guessed: Guesses, weights: Any = 1.0) -> Floats:
    r"""Probability of each of :data:`FACTORS`, given the labels and their leave-one-out predictions.

    .. math:: \log p(t) = \sum_i w_i \log \mathrm{softmax}(t z_i)_{y_i} - \frac{(\log t)^2}{2 \cdot 0.7^2}
              + \text{const}.

    The second term holds the factor near 1 while labels are few.

    Args:
        guessed: What :func:`guesses` returns.
        weights: ``w``, one number for all labels, or one for each.

    Examples:
        >>> p = sharpness(Guesses(np.array([0.5, -0.5] * 50), np.array([1, 0] * 50)))  # right, and far too unsure
        >>> bool(p @ np.log(FACTORS) > np.log(4.0))
        True
    """
    likely = np.concatenate([(weights * logs).sum(axis=1) for logs in _own_logs(guessed, FACTORS)])
    likely -= 0.5 * (np.log(FACTORS) / _SPREAD) ** 2
    odds = np.exp(likely - likely.max())
    return np.asarray(odds / odds.sum())


def left_out_loss(posterior: Any) -> float:
    """Mean log loss of the labels, each predicted without itself; of many labels, of some of them.

    All logits are multiplied by one factor, the best of some from 0.1 to 10: this measures how well classes are told
    apart, however sure the model is of it. A posterior of many weights is less sure than it could be.

    Args:
        posterior: As :func:`guesses` takes it, with at least one label.

    Examples:
        >>> from suffice.models.laplace import laplace
        >>> round(left_out_loss(laplace(np.ones((4, 1)), np.array([0, 1, 0, 1]), 2, alpha=1.0)), 3)
        0.706
    """
    return min(-float(logs.mean(axis=1).max()) for logs in _own_logs(guesses(posterior), _FACTORS))


def scaled_logits(logits: Floats, factors: Floats) -> Iterator[Floats]:
    """Logits times each of some factors, ``F x m`` or ``F x m x K``: a few factors at a time where items are many.

    Examples:
        >>> [part.tolist() for part in scaled_logits(np.array([1.0, -2.0]), np.array([1.0, 3.0]))]
        [[[1.0, -2.0], [3.0, -6.0]]]
    """
    size = max(1, _MOST_HELD // max(1, logits.size))
    for start in range(0, len(factors), size):
        yield np.multiply.outer(factors[start : start + size], logits)


def _own_logs(guessed: Guesses, factors: Floats) -> Iterator[Floats]:
    """Log probability of each label if all logits are multiplied by a factor, ``F x m``: a few factors at a time."""
    for logits in scaled_logits(guessed.logits, factors):
        if logits.ndim == 2:
            yield -np.logaddexp(0.0, np.where(guessed.codes == 1, -logits, logits))
        else:
            yield np.take_along_axis(log_softmax(logits, axis=2), guessed.codes[None, :, None], axis=2)[..., 0]


def log_probabilities(logits: Floats) -> Floats:
    """Logs of the probabilities of all classes, ``m x K``, from logits of two classes (``m``) or many (``m x K``)."""
    if logits.ndim == 1:
        return np.column_stack([-np.logaddexp(0.0, logits), -np.logaddexp(0.0, -logits)])
    return np.asarray(log_softmax(logits, axis=1))
