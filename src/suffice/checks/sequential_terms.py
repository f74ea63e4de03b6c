r"""Sequential checks: random answers in a fixed order, until the target is proven.

Of :math:`M` items, :math:`D` are wrong. The items are drawn in random order, and :math:`k_t` of the first :math:`t` are
wrong. Before the first answer, the number :math:`B` of wrong items that the target allows, the error probability
:math:`\alpha`, and a planned size :math:`n_0` are fixed. The error probability is spent by the schedule

.. math:: s(t) = \alpha c (t / n_0)^{3/2} \;\; (t \le n_0), \qquad s(t) = \alpha (c + (1 - c) (1 - n_0 / t))

with :math:`c = 0.75`. There are two forms:

- The predictions stay as they are. :math:`D \le B` is proven at the first :math:`t` with :math:`k_t \le b_t`. The limit
  :math:`b_t` is the largest one for which the probability of a proof up to :math:`t` is at most :math:`s(t)` if
  :math:`D = B + 1`. With more wrong items a proof is less likely.
- Items that are found wrong are corrected. :math:`D - k_t \le B` is proven at the first :math:`t` with
  :math:`k_t \le b_t`, or when only :math:`B` items are left. Level :math:`c` is allowed from the first :math:`t` on at
  which the probability of a proof with at most :math:`c` wrong answers is at most :math:`s(t)` if
  :math:`D = B + c + 1`, the least number that makes such a proof false.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from suffice.arguments import real, whole
from suffice.checks.hypergeometric import LARGEST_POOL, exact_share, log_probability, probability
from suffice.errors import InvalidTypeError, InvalidValueError

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

#: The largest number of answers of a sequential check.
LONGEST: Final = 100_000

# The share of the error probability that is spent up to the planned size, and the power by which it is spent.
_SPENT_AT_PLAN: Final = 0.75
_POWER: Final = 1.5
# Counts of wrong answers whose probability is below this share of alpha are dropped; what is dropped counts as spent.
_NEGLIGIBLE: Final = 1e-22
# Relative error of a probability after t steps, each with a few roundings; sums are compared in the safe direction.
_TOLERANCE: Final = 1e-12
_ROUNDING: Final = 1e-15
# Answers whose probabilities are computed at once.
_DRAWS_AT_A_TIME: Final = 512
# Numbers of wrong answers with a smaller probability are left out of plans.
_NEVER: Final = 1e-12
# A check is planned for at most this share of the wrong items that the target allows.
_NEAR_TARGET: Final = 0.8
_Z_OF_80_PERCENT: Final = 0.8416
# Without an expected error, a check is planned for half of the wrong items that are allowed.
_EXPECTED_SHARE: Final = 0.5


def sequential_limits(  # noqa: PLR0913 - all by keyword
    *, pool: int, allowed: int, planned: int, alpha: float, last: int, corrected: bool = False
) -> Integers:
    r"""Numbers of wrong answers with which a sequential check proves its target.

    Args:
        pool: ``M``, the number of items from which the check is drawn, up to 1e12.
        allowed: ``B``, the largest number of wrong items that the target allows.
        planned: ``n_0``, the planned number of answers; sizes above ``pool`` count as ``pool``.
        alpha: Probability with which the proof may be wrong.
        last: Number of answers up to which the limits are computed, at most ``pool``.
        corrected: Whether items that are found wrong are corrected. Then at most ``allowed`` wrong items among those
            without an answer are proven; otherwise at most ``allowed`` among all.

    Returns:
        Entry ``t - 1`` is the largest number of wrong answers with which the target is proven after ``t`` answers; -1
        where none proves it. Shape (last,). Entries never fall.

    Raises:
        InvalidTypeError: An argument is not a number.
        InvalidValueError: An argument is out of range.

    Examples:
        >>> limits = sequential_limits(pool=3000, allowed=150, planned=100, alpha=0.05, last=200)
        >>> limits[[50, 99, 199]].tolist()
        [-1, 0, 2]
        >>> limits = sequential_limits(pool=3000, allowed=150, planned=100, alpha=0.05, last=200, corrected=True)
        >>> limits[[50, 99, 199]].tolist()
        [-1, 0, 3]
    """
    terms = SequentialTerms(pool, allowed, planned, alpha, corrected)
    length = whole(last, "last", least=1)
    if length > terms.pool:
        raise InvalidValueError(f"last must be at most pool={terms.pool}, not {last!r}")
    return terms.limits(length).copy()


@dataclass(frozen=True)
class SequentialTerms:
    """The part of a sequential check that is fixed before its first answer.

    Attributes:
        pool: ``M``, the number of items from which the check is drawn.
        allowed: ``B``, the largest number of wrong items that the target allows.
        planned: ``n_0``, the planned number of answers.
        alpha: Probability with which the proof may be wrong.
        corrected: Whether items that are found wrong are corrected.

    Examples:
        >>> terms = SequentialTerms.of_share(0.05, pool=3000, alpha=0.025, planned=100)
        >>> terms.allowed, terms.proof([]), terms.proof([False, True])
        (150, 82, 125)
    """

    pool: int
    allowed: int
    planned: int
    alpha: float
    corrected: bool = False

    def __post_init__(self) -> None:
        size = whole(self.pool, "pool", least=1)
        if size > LARGEST_POOL:
            raise InvalidValueError(f"pool must be at most {LARGEST_POOL:,}, not {self.pool!r}")
        if not isinstance(self.corrected, bool | np.bool_):
            raise InvalidTypeError(f"corrected must be True or False, not {self.corrected!r}")
        values = {
            "pool": size,
            "allowed": whole(self.allowed, "allowed", least=0),
            "planned": min(whole(self.planned, "planned", least=1), size),
            "alpha": probability(self.alpha, "alpha"),
            "corrected": bool(self.corrected),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @staticmethod
    def of_share(  # noqa: PLR0913 - all but one by keyword
        at_most: float,
        *,
        pool: int,
        alpha: float,
        planned: int | None = None,
        expected: float | None = None,
        corrected: bool = False,
    ) -> "SequentialTerms":
        """The terms for a share of the pool.

        Args:
            at_most: Largest acceptable share of wrong items, from 0 to 1. It is taken as the decimal number that it
                prints as: 0.29 of 100 items are 29.
            pool: Number of items from which the check is drawn.
            alpha: Probability with which the proof may be wrong.
            planned: Planned number of answers; by ``expected`` if left out.
            expected: Expected share of wrong items; half of ``at_most`` if left out.
            corrected: Whether items that are found wrong are corrected.

        Raises:
            InvalidValueError: An argument is out of range.
        """
        share = exact_share(at_most, "at_most")
        size = whole(pool, "pool", least=1)
        allowed = math.floor(share * size)
        if planned is None:
            guess = planned_share(float(share), expected)
            planned = planned_answers(allowed, guess, size, probability(alpha, "alpha"))
        return SequentialTerms(size, allowed, planned, alpha, corrected)

    @property
    def longest(self) -> int:
        """The largest number of answers that the check can have."""
        return min(self.pool, LONGEST)

    def limits(self, last: int) -> Integers:
        """The limits up to a number of answers; see :func:`sequential_limits`. Do not change the array."""
        # Longer limits begin with the shorter ones, so that few lengths are computed.
        length = min(self.pool, max(256, 1 << (last - 1).bit_length()))
        return _limits(self, length)[:last]

    def proof(self, wrong: Sequence[Any] | NDArray[Any]) -> int | None:
        """The number of answers that prove the target if all answers after the given ones are right.

        Args:
            wrong: Whether each of the first answers is wrong, in the order in which the items were drawn. The target
                is proven if there are at least as many answers as the result.

        Returns:
            The number; None if even right answers cannot prove the target any more, or only with too many of them.
        """
        if self.allowed >= self.pool:
            return 0
        found = np.cumsum(np.asarray(wrong, dtype=bool)[: self.longest])
        total, last = int(found[-1]) if len(found) else 0, min(self.longest, max(len(found), self.planned, 64))
        while True:
            limits = self.limits(last)
            reached = np.full(last, total)
            reached[: len(found)] = found
            proven = np.flatnonzero(reached <= limits)
            if len(proven):
                return int(proven[0]) + 1
            if last == self.longest or (total > self.allowed and not self.corrected):
                return None
            last = min(self.longest, 2 * last)

    def require_provable(self) -> None:
        """Raise an error if no answers can prove the target.

        Raises:
            InvalidValueError: Even right answers only do not prove it within the largest number of answers.
        """
        if self.proof([]) is None:
            raise InvalidValueError(
                f"a check of {self.pool:,} items cannot prove with {LONGEST:,} answers that at most {self.allowed:,} "
                "are wrong; allow more"
            )

    def state_dict(self) -> dict[str, Any]:
        """The terms as JSON values."""
        return asdict(self)


@lru_cache(maxsize=64)
def _limits(terms: SequentialTerms, last: int) -> Integers:
    if terms.allowed >= terms.pool:
        return np.arange(1, last + 1, dtype=np.int64)
    return (_limits_with_corrections if terms.corrected else _limits_without_corrections)(terms, last)


def _spending(terms: SequentialTerms, last: int) -> list[float]:
    """The error probability that may be spent up to each number of answers, with a margin for rounding."""
    t = np.arange(1, last + 1, dtype=np.float64)
    early = _SPENT_AT_PLAN * np.minimum(1.0, t / terms.planned) ** _POWER
    late = _SPENT_AT_PLAN + (1.0 - _SPENT_AT_PLAN) * (1.0 - terms.planned / np.maximum(t, terms.planned))
    margin = 1.0 - np.maximum(_TOLERANCE, _ROUNDING * t)
    values: list[float] = (terms.alpha * margin * np.where(t <= terms.planned, early, late)).tolist()
    return values


def _limits_without_corrections(terms: SequentialTerms, last: int) -> Integers:
    """The limits if the predictions stay as they are."""
    limits = np.full(last, -1, dtype=np.int64)
    wrong_items, spent, negligible = terms.allowed + 1, 0.0, _NEGLIGIBLE * terms.alpha
    # Probability of each number of wrong answers without a proof so far, from ``low`` on, if one too many is wrong.
    reached, low = np.ones(1), 0
    counts = np.arange(64.0)
    for t, spendable in enumerate(_spending(terms, last), start=1):
        left = terms.pool - t + 1
        if len(reached) >= len(counts):
            counts = np.arange(2.0 * len(counts))
        wrong_left = (wrong_items - low) - counts[: len(reached)]
        moved = reached * (wrong_left / left)
        following = np.empty(len(reached) + 1)
        # A number of wrong answers that would leave more wrong items than items has probability 0.
        np.multiply(reached, np.maximum((left - wrong_left) / left, 0.0), out=following[:-1])
        following[-1] = 0.0
        following[1:] += moved
        if spent + following[0] <= spendable:
            total = spent + np.cumsum(following)
            absorbed = int(np.searchsorted(total, spendable, side="right"))
            spent, following, low = float(total[absorbed - 1]), following[absorbed:], low + absorbed
        limits[t - 1] = low - 1
        keep = len(following)
        while keep > 1 and following[keep - 1] <= negligible:
            spent += float(following[keep - 1])
            keep -= 1
        reached = following[:keep]
    return limits


def _limits_with_corrections(terms: SequentialTerms, last: int) -> Integers:
    """The limits if items that are found wrong are corrected."""
    pool, allowed = terms.pool, terms.allowed
    end = min(last, pool - allowed - 1)
    # With so many answers, more wrong ones than this are expected at the least false number of wrong items.
    highest = min(end, math.ceil((allowed + 1) * end / (pool - end)) + 2) if end else 0
    while True:
        limits = _levels(terms, end, highest)
        if limits is not None:
            break
        highest = min(end, 2 * highest + 1)
    # When no more items are left than may be wrong, every answer proves the target.
    return np.concatenate([limits, np.arange(end + 1, last + 1, dtype=np.int64)])


def _levels(terms: SequentialTerms, end: int, highest: int) -> Integers | None:
    """The limits up to ``end`` answers; None if one exceeds ``highest``."""
    pool, allowed = terms.pool, terms.allowed
    limits = np.full(end, -1, dtype=np.int64)
    levels = np.arange(highest + 1, dtype=np.float64)
    # Probability that so many wrong ones among the first t answers, in random order, came without a proof before.
    unproven = np.zeros(highest + 1)
    unproven[0] = 1.0
    starts = np.zeros(highest + 1)
    # Probability of a proof at each earlier level, for the number of wrong items of the present level.
    proofs = np.zeros(highest + 1)
    level, before = 0, 0.0
    # Probability of ``level`` wrong among the first t answers, for the same number of wrong items; None if not known.
    likely: float | None = 1.0
    for t, spendable in enumerate(_spending(terms, end), start=1):
        if likely is not None:
            wrong_items = allowed + level + 1
            likely *= max(0.0, (pool - wrong_items - t + 1 + level) / (t - level)) * (t / (pool - t + 1))
        top = min(t, highest)
        share = levels[level : top + 1] / t
        lower = np.empty(len(share))
        lower[0] = unproven[level - 1] if level else 0.0
        lower[1:] = unproven[level:top]
        unproven[level : top + 1] = (1.0 - share) * unproven[level : top + 1] + share * lower
        while level <= t:
            if level > highest:
                return None
            wrong_items = allowed + level + 1
            if likely is None:
                likely = _likely(pool, wrong_items, t, level)
            proof = likely * float(unproven[level])
            if before + proof > spendable:
                break
            starts[level], proofs[level], unproven[level] = t, proof, 0.0
            level, likely = level + 1, None
            # One more wrong item: the ratio of the hypergeometric probabilities.
            earlier, items = levels[:level], wrong_items + 1.0
            proofs[:level] *= (
                items
                / (items - earlier)
                * (np.maximum(pool - wrong_items - starts[:level] + earlier, 0.0) / max(pool - wrong_items, 1))
            )
            before = float(proofs[:level].sum())
        limits[t - 1] = level - 1
    return limits


def _likely(pool: int, wrong_items: int, answered: int, wrong: int) -> float:
    """The probability of a number of wrong answers; 0 if there are too few other items."""
    possible = wrong <= min(wrong_items, answered) and answered - wrong <= pool - wrong_items
    return math.exp(log_probability(pool, wrong_items, answered, wrong)) if possible else 0.0


# What a check is expected to take.


def proof_probabilities(terms: SequentialTerms, wrong_items: ArrayLike, last: int) -> Floats:
    """The probability that the target is proven within each number of answers, for numbers of wrong items.

    Args:
        terms: The terms of the check.
        wrong_items: Numbers of wrong items in the pool, shape (n,).
        last: Largest number of answers.

    Returns:
        Column ``t - 1`` is the probability of a proof within ``t`` answers. Shape (n, last).

    Examples:
        >>> terms = SequentialTerms.of_share(0.05, pool=3000, alpha=0.025, planned=200)
        >>> proof_probabilities(terms, [60, 150, 151], 300)[:, -1].round(3)
        array([0.628, 0.021, 0.02 ])
    """
    wrong = np.asarray(wrong_items, dtype=np.float64)[:, None]
    found = np.zeros((len(wrong), last))
    if terms.allowed >= terms.pool:
        return found + 1.0
    limits = terms.limits(last)
    # Between two numbers of answers with other limits nothing is proven, because no answer becomes right again.
    rises = np.flatnonzero(np.diff(limits, prepend=-1) > 0) + 1
    # Probability of each number of wrong answers without a proof so far, from ``low`` on, after so many answers.
    reached, low, answered, proven = np.ones((len(wrong), 1)), 0, 0, np.zeros(len(wrong))
    for t in rises.tolist():
        found[:, answered : t - 1] = proven[:, None]
        following = _after_answers(reached, wrong - low, terms.pool - answered, t - answered)
        absorbed = min(int(limits[t - 1]) + 1 - low, following.shape[1])
        if absorbed > 0:
            proven = proven + following[:, :absorbed].sum(axis=1)
            following, low = following[:, absorbed:], low + absorbed
        answered = t
        found[:, t - 1] = proven
        if not following.shape[1] or following.max() <= _NEVER:
            break
        # Counts that are never reached are left out at both ends.
        often = np.flatnonzero(following.max(axis=0) > _NEVER)
        reached, low = following[:, often[0] : often[-1] + 1], low + int(often[0])
    found[:, answered:] = proven[:, None]
    return found


def _after_answers(reached: Floats, most_wrong: Floats, left: int, answers: int) -> Floats:
    r"""The probabilities of numbers of wrong answers after some more answers.

    The number of wrong ones among :math:`k` answers from :math:`N` items with :math:`K` wrong ones has

    .. math:: \log P(0) = \sum_{i < k} \log \Bigl(1 - \frac{K}{N - i}\Bigr), \qquad
              \frac{P(j + 1)}{P(j)} = \frac{(K - j)(k - j)}{(j + 1)(N - K - k + j + 1)}.

    Args:
        reached: Probabilities of numbers of wrong answers so far, shape (n, counts).
        most_wrong: Number of wrong items that are left for the least of these numbers, shape (n, 1).
        left: Number of items that are left.
        answers: Number of answers.

    Returns:
        Probabilities from the least number of ``reached`` on, shape (n, counts + most wrong answers).
    """
    # Numbers that cannot be have the probability 0.
    wrong_left = np.clip(most_wrong - np.arange(reached.shape[1]), 0.0, left)
    if answers > 1 and wrong_left.max() + answers > left:
        # So few right items are left that some answers must be wrong.
        half = answers // 2
        first = _after_answers(reached, most_wrong, left, half)
        return _after_answers(first, most_wrong, left - half, answers - half)
    if answers == 1:
        share = wrong_left / left
        following = np.zeros((len(reached), reached.shape[1] + 1))
        following[:, :-1] = reached * (1.0 - share)
        following[:, 1:] += reached * share
        return following
    mean = answers * float(wrong_left.max()) / left
    most = min(answers, math.ceil(mean + 9.0 * math.sqrt(mean) + 40.0))
    logs = np.zeros((*wrong_left.shape, most + 1))
    for start in range(0, answers, _DRAWS_AT_A_TIME):
        items = left - np.arange(start, min(start + _DRAWS_AT_A_TIME, answers), dtype=np.float64)
        logs[..., 0] += np.log1p(-wrong_left[..., None] / items).sum(axis=-1)
    j = np.arange(most, dtype=np.float64)
    rest = left - wrong_left[..., None] - answers + j + 1.0
    with np.errstate(divide="ignore"):
        logs[..., 1:] = np.log(np.maximum(wrong_left[..., None] - j, 0.0)) + np.log((answers - j) / ((j + 1.0) * rest))
    moved = np.exp(np.cumsum(logs, axis=-1))
    following = np.zeros((len(reached), reached.shape[1] + most))
    for more in range(most + 1):
        following[:, more : more + reached.shape[1]] += reached * moved[..., more]
    return following


def planned_share(at_most: float, expected: float | None = None) -> float:
    """The share of wrong items that a check is planned for.

    Args:
        at_most: The target: the largest acceptable share of wrong items.
        expected: The expected share; half of ``at_most`` if None.

    Raises:
        InvalidTypeError: The expected share is not a number.
        InvalidValueError: It is not from 0 to 1.

    Examples:
        >>> planned_share(0.05), planned_share(0.05, 0.01)
        (0.025, 0.01)
    """
    guess = _EXPECTED_SHARE * at_most if expected is None else expected
    return real(guess, "expected", "from 0 to 1", lambda x: 0.0 <= x <= 1.0)


def planned_answers(allowed: int, expected: float, pool: int, alpha: float) -> int:
    """The number of answers that a sequential check is planned for.

    That is the size of a check of fixed size which proves the target with a probability of 80 %, by a normal
    approximation. The number decides only how the error probability is spent: a quarter or twice of the best number
    costs few labels.

    Args:
        allowed: Largest number of wrong items that the target allows.
        expected: Expected share of wrong items. Shares above 0.8 of the target count as 0.8 of it.
        pool: Number of items.
        alpha: Error probability of the check.

    Examples:
        >>> planned_answers(150, 0.02, 3000, 0.025), planned_answers(0, 0.0, 3000, 0.025)
        (293, 2925)
    """
    share = min((allowed + 1) / pool, 1.0)
    if share == 1.0:
        return 1
    guess = np.array([min(expected, _NEAR_TARGET * share)])
    return max(1, min(pool, round(float(typical_answers(share, guess, np.array([pool]), alpha)[0]))))


def typical_answers(target: float, error: Floats, pool: Integers, alpha: float) -> Floats:
    """The mean number of answers of a sequential check, approximately; the whole pool if the error is too large.

    It is the size of a check of fixed size which proves the target with a probability of 80 %, by a normal
    approximation: ``e + z s / sqrt(m)`` is the target, where ``z s`` is
    ``z_alpha sqrt(t (1 - t)) + z_80 sqrt(e (1 - e))``, less for a finite pool. No check is shorter than one without
    wrong answers.

    Args:
        target: Largest acceptable share of wrong items, above 0 and below 1.
        error: Shares of wrong items.
        pool: Numbers of items.
        alpha: Error probability of the check.
    """
    spread = _normal_quantile(alpha) * math.sqrt(target * (1.0 - target)) + _Z_OF_80_PERCENT * np.sqrt(
        error * (1.0 - error)
    )
    infinite = (spread / np.maximum(target - error, 1e-12)) ** 2
    finite = infinite * pool / (infinite + pool)
    least = np.minimum(math.log(alpha) / math.log1p(-target), (1.0 - alpha) * pool)
    return np.asarray(np.where(error >= target, 1.0 * pool, np.maximum(finite, least)))


def _normal_quantile(alpha: float) -> float:
    from scipy.special import ndtri  # takes as long to import as the rest, and is not always needed

    return max(0.0, -float(ndtri(alpha)))
