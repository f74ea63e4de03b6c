r"""How sure a model of classes should be: one factor for its logits, learned from labels that it had to guess.

The prior of a model is given, and labels may be easier or harder to tell than it takes them to be. A factor ``t``
makes up for that: probabilities are :math:`\mathrm{softmax}(t z)`, ``z`` being the logits of the averaged
probabilities. Which factor is right is told by the labelled items, each guessed without its own label. They were
chosen by their features, not by their labels, so as far as one factor describes what is wrong, the choice does no harm.
Where it does not, the labelled items speak for themselves and not for the others. Measured: with 300 labels of adult
the chosen items say 1.2 and all the others 0.55, with 300 of 8 letters 1.6 and 0.93, so the error is told too small;
of SMS spam both say 1.5. With labels drawn at random the error was told as 21 % where 21 % was true for adult, and as
25 % where 19 % was true for the letters. :func:`suffice.session.estimates.expected_error` has the rest.
"""

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_softmax

from suffice.models.predictive import moderated_logits
from suffice.special import Floats

#: The factors that are looked at, evenly spaced by their logs.
FACTORS: Final[Floats] = np.geomspace(0.1, 10.0, 81)
# Standard deviation of the log of the factor before any label: from 0.5 to 2 in two of three cases.
_SPREAD: Final = 0.7
# Labels that are guessed, at least and at most, and what they may cost together: numbers of a triangle gone through.
_FEWEST, _MOST, _COST = 100, 500, 5 * 10**8
# Numbers held at a time.
_HELD: Final = 2_000_000
# A label cannot explain more of its own logit than this; beyond is rounding.
_MOST_OWN: Final = 1.0 - 1e-9


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


def guesses(posterior: Any) -> Guesses:
    r"""What a posterior says of each of its labels when that one is taken out.

    No model is fitted anew. With :math:`S` the covariance of the logits ``f`` of an item (``K x K``), ``p`` its
    probabilities, and :math:`R = \mathrm{diag}(p) - p p'` what its label adds to the precision, they are without it, up
    to a step of Newton's,

    .. math:: S_{-} = (S^{-1} - R)^{-1}, \qquad f_{-} = f - S_{-} (e_y - p).

    Of many labels some are taken, evenly spaced: 500 at most, fewer (to 100) where there are many weights.

    Args:
        posterior: :class:`~suffice.models.laplace.Laplace` or :class:`~suffice.models.softmax.SoftmaxLaplace`.
    """
    rows, codes = posterior.labelled()
    most = int(np.clip(_COST // posterior.weights.size**2, _FEWEST, _MOST))
    taken = np.unique(np.linspace(0, len(codes) - 1, most).astype(int)) if len(codes) > most else slice(None)
    rows, codes = rows[taken], codes[taken]
    left = (
        _two_without(posterior, rows, codes) if posterior.weights.ndim == 1 else _many_without(posterior, rows, codes)
    )
    without = _Without(*left, posterior.n_classes, posterior.alpha)
    return Guesses(moderated_logits(without, rows), codes)


def _two_without(posterior: Any, rows: Floats, codes: Any) -> tuple[Floats, Floats]:
    mean, variance = posterior.latent(rows)
    p = np.exp(_logs(mean)[:, 1])
    variance = variance / (1.0 - np.minimum(p * (1.0 - p) * variance, _MOST_OWN))
    return mean - variance * (codes - p), variance


def _many_without(posterior: Any, rows: Floats, codes: Any) -> tuple[Floats, Floats]:
    mean = rows @ posterior.weights.T
    variance = np.empty_like(mean)
    size = max(1, _HELD // (posterior.weights.size * posterior.n_classes))
    for start in range(0, len(rows), size):
        part = slice(start, start + size)
        p = np.exp(_logs(mean[part]))
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


def sharpness(guessed: Guesses) -> Floats:
    r"""How probable each of :data:`FACTORS` is, given how the guesses came out.

    .. math:: \log p(t) = \sum_i \log \mathrm{softmax}(t z_i)_{y_i} - \frac{(\log t)^2}{2 \cdot 0.7^2} + \text{const}.

    The second term holds the factor near 1 while labels are few.

    Args:
        guessed: What :func:`guesses` returns.

    Examples:
        >>> p = sharpness(Guesses(np.array([0.5, -0.5] * 50), np.array([1, 0] * 50)))  # right, and far too unsure
        >>> bool(p @ np.log(FACTORS) > np.log(4.0))
        True
    """
    rows = np.arange(len(guessed.codes))
    likely = np.array([_logs(t * guessed.logits)[rows, guessed.codes].sum() for t in FACTORS])
    likely -= 0.5 * (np.log(FACTORS) / _SPREAD) ** 2
    odds = np.exp(likely - likely.max())
    return np.asarray(odds / odds.sum())


def factors(probable: Floats, n: int) -> Floats:
    """So many factors, as good as drawn from their distribution: its evenly spaced quantiles, in a random order.

    Args:
        probable: Probabilities of :data:`FACTORS`.
        n: How many.

    Examples:
        >>> float(np.median(factors(np.full(81, 1 / 81), 1001)).round(2))
        1.0
    """
    # Half of each point's probability lies below it.
    reached = np.cumsum(probable) - 0.5 * probable
    drawn = np.exp(np.interp((np.arange(n) + 0.5) / n, reached, np.log(FACTORS)))
    return np.asarray(np.random.default_rng(0).permutation(drawn))


def error_changes(logits: Floats, drawn: Floats) -> Floats:
    """What each factor makes of the share of wrong predictions, as a multiple of what it is without one.

    Args:
        logits: Logits of the averaged probabilities of some items, ``m``, or ``m x K``.
        drawn: Factors, each within the limits of :data:`FACTORS`.

    Examples:
        >>> error_changes(np.array([1.0, -2.0]), np.array([1.0, 2.0])).round(3)
        array([1.   , 0.354])
    """
    wrong = np.array([_wrong(t * logits).mean() for t in (1.0, *FACTORS)])
    if not wrong[0] > 0.0:
        return np.ones(len(drawn))
    return np.asarray(np.interp(np.log(drawn), np.log(FACTORS), wrong[1:] / wrong[0]))


def _wrong(logits: Floats) -> Floats:
    """Probability of all classes but the likeliest, ``m``, with all its digits also where it is next to nothing."""
    if logits.ndim == 1:
        return np.asarray(expit(-np.abs(logits)))
    others = np.exp(logits - logits.max(axis=1, keepdims=True))
    np.put_along_axis(others, logits.argmax(axis=1)[:, None], 0.0, axis=1)
    odds = others.sum(axis=1)
    return np.asarray(odds / (1.0 + odds))


def _logs(logits: Floats) -> Floats:
    """Logs of the probabilities, ``m x K``."""
    if logits.ndim == 1:
        return np.column_stack([-np.logaddexp(0.0, logits), -np.logaddexp(0.0, -logits)])
    return np.asarray(log_softmax(logits, axis=1))
