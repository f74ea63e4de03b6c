r"""Whether a confidence orders errors: are wrong predictions less confident than right ones?

The measure is the area under the ROC curve (AUC): the share of pairs of a right and a wrong prediction in which the
right one has the larger confidence; a tie counts one half. Without a relation it is 0.5. The one-sided test of Mann and
Whitney compares it with the AUC of all ways to choose as many items as wrong ones. With many items it compares it with
4,999 random ways, and then the order of 100 levels of confidence counts. Both are valid with ties.

An order is stated if the p-value is at most ``alpha``. Otherwise, that no order is visible is stated only if it would
probably be visible: if :math:`n_w n_r / (n_w + n_r + 1) \ge 8` for the numbers of wrong and of right predictions, such
as 9 wrong of 400, or 10 wrong of 60. This limit was chosen by simulation, with normal confidences whose AUC is 0.75:

==========================  ======  ======  ======  ======  ======  ======
wrong, right                5, 20   5, 195  8, 52   8, 192  10, 50  20, 20
n_w n_r / (n_w + n_r + 1)   3.8     4.9     6.8     7.6     8.2     9.8
the order is visible        55 %    64 %    77 %    82 %    83 %    89 %
==========================  ======  ======  ======  ======  ======  ======
"""

import math
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from suffice.arguments import floats
from suffice.checks.hypergeometric import probability
from suffice.errors import InvalidTypeError, InvalidValueError
from suffice.presentation.prediction_words import confidence_sentence

Floats = NDArray[np.float64]

# With fewer wrong or right predictions, which may have one common cause, nothing is said.
_FEWEST: Final = 3
# The product of both numbers over one more than all from which on an AUC of 0.75 is visible with a probability of 80 %.
_ENOUGH: Final = 8.0
# The distribution is computed up to this product of the number of items and of the less common kind of them.
_EXACT_UP_TO: Final = 6000
# Otherwise random choices are compared, of confidences in at most so many levels.
_DRAWS: Final = 4999
_LEVELS: Final = 100


@dataclass(frozen=True)
class JudgedConfidence:
    """Whether a confidence orders errors.

    Attributes:
        orders: True if wrong predictions are less confident than right ones (``p_value`` is at most ``alpha``); False
            if this is not visible; None if there are too few wrong or too few right predictions to say so.
        auc: Share of pairs in which the right prediction is more confident than the wrong one; None without a pair.
        p_value: Probability of such an AUC, or a larger one, if confidence and errors are unrelated; None without a
            pair.
        wrong: Number of wrong predictions.
        right: Number of right predictions.
        alpha: Probability with which an order is stated if there is none, at most.

    Examples:
        >>> judged = judged_confidence([0.2, 0.4, 0.3, 0.7, 0.8, 0.9, 0.95], [True] * 3 + [False] * 4)
        >>> judged.orders, judged.auc, round(judged.p_value, 4)
        (True, 1.0, 0.0286)
    """

    orders: bool | None
    auc: float | None
    p_value: float | None
    wrong: int
    right: int
    alpha: float = 0.05

    def __str__(self) -> str:
        return confidence_sentence(asdict(self))

    def to_dict(self) -> dict[str, Any]:
        """Return the judgement as JSON values, with its sentence."""
        return {**asdict(self), "statement": str(self)}


def judged_confidence(confidence: ArrayLike, wrong: ArrayLike, *, alpha: float = 0.05) -> JudgedConfidence:
    """Judge whether a confidence orders errors, from randomly drawn items with known labels.

    Args:
        confidence: Confidence of each item, shape (n,). Any numbers, of which larger ones mean more confidence.
        wrong: Whether the prediction of each item is wrong, shape (n,).
        alpha: Probability with which an order may be stated if there is none.

    Raises:
        InvalidTypeError: The confidences are not numbers, or ``wrong`` does not consist of True and False.
        InvalidValueError: The shapes differ, or a confidence is not finite.

    Examples:
        >>> confidence = [0.5, 0.6, 0.55, 0.7, 0.65, 0.8, 0.9] + [0.95] * 40 + [0.7] * 13
        >>> print(judged_confidence(confidence, [True] * 6 + [False] * 54))
        The confidence orders errors: a wrong prediction is less sure than a right one in 94 % of all pairs (6 wrong, 54
        right, p < 0.001).
        >>> print(judged_confidence([0.9, 0.8, 0.7], [False, False, True]))
        Whether the confidence orders errors cannot be said yet: the checked items have 1 wrong and 2 right predictions.
    """
    level, values = probability(alpha, "alpha"), floats(confidence, "confidence")
    faults = np.asarray(wrong)
    if faults.dtype != bool:
        raise InvalidTypeError(f"wrong must be a series of True and False, not of {faults.dtype}; use wrong == 1")
    if values.ndim != 1 or values.shape != faults.shape:
        raise InvalidValueError(
            f"confidence and wrong must be series of the same length, not of shapes {values.shape} and {faults.shape}"
        )
    if not np.isfinite(values).all():
        raise InvalidValueError("confidence must be finite numbers; leave out items without one, drawn at random")
    n_wrong = int(faults.sum())
    n_right = len(faults) - n_wrong
    if not (n_wrong and n_right):
        return JudgedConfidence(None, None, None, n_wrong, n_right, level)
    ranks = _doubled_ranks(values)
    found = int(ranks[~faults].sum())
    auc = (found / 2.0 - n_right * (n_right + 1) / 2.0) / (n_right * n_wrong)
    p_value = _p_value(ranks, faults)
    enough = n_wrong * n_right >= _ENOUGH * (len(faults) + 1)
    orders = (True if p_value <= level else False if enough else None) if min(n_wrong, n_right) >= _FEWEST else None
    return JudgedConfidence(orders, auc, p_value, n_wrong, n_right, level)


def _doubled_ranks(values: Floats) -> NDArray[np.int64]:
    """Twice the rank of each value; equal values have the mean of their ranks."""
    _, places, sizes = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(sizes)
    return np.asarray((2 * ends - sizes + 1)[places], dtype=np.int64)


def _p_value(ranks: NDArray[np.int64], faults: NDArray[np.bool_]) -> float:
    """Probability that the right predictions have so large ranks, or larger ones, if all choices are equally likely."""
    # The less common kind is chosen. Its ranks are counted from the end where it is expected, so that a small sum is
    # evidence of an order.
    few_are_wrong = 2 * int(faults.sum()) <= len(faults)
    chosen = faults if few_are_wrong else ~faults
    scores = ranks if few_are_wrong else 2 * (len(ranks) + 1) - ranks
    size = int(chosen.sum())
    if len(scores) * size <= _EXACT_UP_TO:
        return _exact_share(scores, size, int(scores[chosen].sum()))
    # Levels of confidence with about the same number of items; what is compared is the order of the levels.
    scores = _doubled_ranks((scores * _LEVELS // (2 * len(scores) + 1)).astype(np.float64))
    levels, sizes = np.unique(scores, return_counts=True)
    drawn = np.random.default_rng(0).multivariate_hypergeometric(sizes, size, _DRAWS, method="marginals")
    return float(1 + np.sum(drawn @ levels <= int(scores[chosen].sum()))) / (1 + _DRAWS)


def _exact_share(scores: NDArray[np.int64], size: int, most: int) -> float:
    """Share of all choices of ``size`` items whose scores add up to at most ``most``."""
    # Probability of each number of chosen items and each sum of their scores, if each item is chosen with this chance.
    chance = size / len(scores)
    reached = np.zeros((size + 1, most + 1))
    reached[0, 0] = 1.0
    for score in scores.tolist():
        kept = reached[:-1, : max(0, most + 1 - score)] * chance
        reached *= 1.0 - chance
        reached[1:, score:] += kept
    log_all = math.lgamma(len(scores) + 1) - math.lgamma(size + 1) - math.lgamma(len(scores) - size + 1)
    log_all += size * math.log(chance) + (len(scores) - size) * math.log1p(-chance)
    return min(1.0, float(reached[-1].sum()) / math.exp(log_all))
