r"""Planning of checks: the number of labels for a target, and the bound that a size can guarantee.

A check of :math:`m` items succeeds if the bound that it gives is at or below the target. Larger checks do not always
succeed more often: the number of wrong items that a check may contain is an integer, so the probability of success is
saw-toothed in :math:`m`, and it falls where few items remain. A plan states the least size that itself succeeds with
the requested probability. The search goes through the sizes in intervals in which every size is proved to fail.
"""

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from itertools import pairwise
from typing import Final, Literal, get_args

import numpy as np

from suffice.arguments import whole
from suffice.checks.hypergeometric import (
    LARGEST_POOL,
    count_quantile,
    exact_share,
    lower_bound,
    probability_at_most,
    upper_bound,
)
from suffice.checks.hypergeometric import probability as checked_probability
from suffice.deprecation import warn_deprecated
from suffice.errors import InvalidValueError
from suffice.presentation.text_format import count, percent, percent_at_least

#: The items that a bound is about: those that are unlabelled after the check, or all that were unlabelled before it.
Items = Literal["remaining", "all"]

#: The largest number of missed items for which :func:`plan_recall` compares all outcomes.
MOST_MISSED: Final = 10_000

# A search for a size that has not ended after this number of intervals continues by bisection.
_MOST_INTERVALS: Final = 150
# If no check is likely to succeed, at most this multiple of 1 / target items can be so few that their bound is 0.
_LAST_ITEMS: Final = 4
# Outcomes with a probability below this are left out of a sum.
_NEVER: Final = 1e-12


@dataclass(frozen=True)
class CheckPlan:
    """The size of a check that is likely to prove a goal.

    Attributes:
        labels: Least size that itself succeeds with the requested probability; some larger sizes may not. None if only
            labelling every item does, or nothing does.
        success: Probability with which a check of that size succeeds, at least the requested one; None as above.
        pool: Number of unlabelled items.
        alpha: Probability with which the guarantee may be false.
        probability: Requested probability of success.
        goal: What the check is to prove, as a clause.
        assumption: What is assumed about the truth, as a clause.

    Examples:
        >>> made = plan(target=0.05, expected=0.02, pool=4600)
        >>> made.labels, round(made.success, 3)
        (237, 0.806)
    """

    labels: int | None
    success: float | None
    pool: int
    alpha: float
    probability: float
    goal: str
    assumption: str

    @property
    def least(self) -> int | None:
        """Return :attr:`labels`; deprecated, use that."""
        warn_deprecated("CheckPlan.least", "use labels, which is the least size now")
        return self.labels

    def __str__(self) -> str:
        likely = f"shows with a probability of {percent(self.probability)} that {self.goal}"
        what = f"{likely} ({percent_at_least(1.0 - self.alpha)} confidence), if {self.assumption}."
        if self.labels is None:
            words = f"Not achievable without labelling all {count(self.pool, 'item')}: no smaller check {what}"
        else:
            words = f"A check of {count(self.labels, 'item')} {what}"
        return words.replace("\u00a0", " ")


def plan(  # noqa: PLR0913 - keyword arguments with defaults
    target: float,
    expected: float,
    pool: int,
    *,
    alpha: float = 0.05,
    probability: float = 0.8,
    items: Items = "remaining",
) -> CheckPlan:
    r"""Number of labels that a check takes to show that the share of wrong predictions is at most ``target``.

    The check succeeds if :math:`(U(\alpha; M, m, k) - k) / (M - m) \le` ``target``, or, with ``items="all"``, if
    :math:`U(\alpha; M, m, k) / M \le` ``target``, where :math:`k \sim \mathrm{Hyp}(M, D, m)` for the expected number of
    wrong items :math:`D`. The plan's ``labels`` is the least :math:`m` below :math:`M` that succeeds with at least the
    requested probability. Some larger sizes do not: the number of wrong items that a check may contain is an integer,
    and with ``items="remaining"`` a bound on few remaining items is wide. If the expected share is so close to the
    target that a check takes many thousands of labels, the plan can be slightly larger than the least size.

    Args:
        target: Largest acceptable share of wrong predictions, from 0 to 1.
        expected: Share of wrong predictions that is expected, from 0 to 1; the number is rounded up.
        pool: ``M``, the number of unlabelled items.
        alpha: Probability with which the bound may fail; for a check in a sequence, see :func:`spent_alpha`.
        probability: Requested probability of success, above 0 and below 1.
        items: Which items the target is about: those that remain unlabelled after the check, or all in the pool.

    Returns:
        The plan; its ``labels`` is None if nothing less than labelling every item is enough.

    Raises:
        InvalidValueError: An argument is out of range.

    Examples:
        >>> print(plan(0.1, 0.05, 4600))
        A check of 180 items shows with a probability of 80 % that at most 10 % of the predictions for the unlabelled
        items are wrong (95 % confidence), if 5 % are.
        >>> print(plan(0.1, 0.05, 100))
        Not achievable without labelling all 100 items: no smaller check shows with a probability of 80 % that
        at most 10 % of the predictions for the unlabelled items are wrong (95 % confidence), if 5 % are.
    """
    size = pool_size(pool)
    share, guess = exact_share(target, "target"), exact_share(expected, "expected")
    level, wanted = checked_probability(alpha, "alpha"), checked_probability(probability, "probability")
    _check_items(items)
    search = _ErrorSearch(share, guess, size, level, wanted, items)
    labels = search.least(size - 1)
    success = None if labels is None else search.success(labels)
    which = "unlabelled items" if items == "remaining" else f"{count(size, 'item')} that are unlabelled now"
    goal = f"at most {percent(float(share))} of the predictions for the {which} are wrong"
    return CheckPlan(labels, success, size, level, wanted, goal, f"{percent(float(guess))} are")


def attainable_bound(  # noqa: PLR0913 - keyword arguments with defaults
    checked: int,
    expected: float,
    pool: int,
    *,
    alpha: float = 0.05,
    probability: float = 0.8,
    items: Items = "remaining",
) -> float:
    r"""The share of wrong predictions that a check of a given size bounds with a given probability.

    The check contains at most :math:`k_q` wrong items with the requested probability, and then its bound is at most
    :math:`(U(\alpha; M, m, k_q) - k_q) / (M - m)`.

    Args:
        checked: ``m``, the size of the check, below ``pool``.
        expected: Share of wrong predictions that is expected, from 0 to 1; the number is rounded up.
        pool: ``M``, the number of unlabelled items.
        alpha: Probability with which the bound may fail.
        probability: Probability that the check gives this bound or a smaller one.
        items: Which items the share is about, as for :func:`plan`.

    Returns:
        The share.

    Raises:
        InvalidValueError: An argument is out of range.

    Examples:
        >>> round(attainable_bound(100, expected=0.02, pool=4600), 4)
        0.0762
        >>> round(attainable_bound(237, expected=0.02, pool=4600), 4)
        0.05
    """
    size, sample = pool_size(pool), whole(checked, "checked", least=0)
    guess = exact_share(expected, "expected")
    level, wanted = checked_probability(alpha, "alpha"), checked_probability(probability, "probability")
    if sample >= size:
        raise InvalidValueError(
            f"checked must be below pool={size}, not {checked!r}; a check of all items is the truth"
        )
    _check_items(items)
    wrong = count_quantile(math.ceil(guess * size), sample, size, wanted)
    bound = upper_bound(wrong, sample, size, level)
    return bound / size if items == "all" else (bound - wrong) / (size - sample)


def plan_recall(  # noqa: PLR0913 - keyword arguments with defaults
    target: float,
    found: int,
    missed: int,
    pool: int,
    *,
    predicted: int = 0,
    right: int = 0,
    alpha: float = 0.05,
    probability: float = 0.8,
) -> CheckPlan:
    r"""Number of labels that a check takes to show that a share ``target`` of the items of a class is found.

    A check with :math:`k` items of the class finds these too, and succeeds if
    :math:`(F + k) / (F + U(\alpha; M, m, k)) \ge` ``target`` for the :math:`F` items found before. The plan's
    ``labels`` is the least :math:`m` that succeeds with the requested probability; some larger sizes may not.

    If items predicted as the class count as found too, a check succeeds if
    :math:`(F + k + L) / (F + L + U(\alpha/2)) \ge` ``target``, see :meth:`Guarantee.of_recall`. The plan then assumes
    that the check contains predicted items in proportion. If many items are missed, the plan can be slightly larger
    than the least size, in both cases.

    Args:
        target: Requested recall, above 0 and at most 1.
        found: ``F``, the number of items of the class among the labels before the check.
        missed: Expected number of items of the class among the unlabelled ones that do not count as found, up to
            10,000.
        pool: ``M``, the number of unlabelled items, with the predicted ones.
        predicted: Number of unlabelled items that are predicted as the class, if these count as found; 0 if not.
        right: Expected number of these that belong to the class.
        alpha: Probability with which the guarantee may be false.
        probability: Requested probability of success, above 0 and below 1.

    Returns:
        The plan; its ``labels`` is None if nothing less than labelling every item is enough.

    Raises:
        InvalidValueError: An argument is out of range.

    Examples:
        >>> plan_recall(0.95, found=49, missed=0, pool=4000).labels
        2526
        >>> plan_recall(0.8, found=50, missed=10, pool=4000, predicted=200, right=180).labels < 1500
        True
    """
    size = pool_size(pool)
    goal = exact_share(target, "target")
    if not goal:
        raise InvalidValueError(f"target must be a number above 0 and at most 1, not {target!r}")
    known, hidden = whole(found, "found", least=0), whole(missed, "missed", least=0)
    level, wanted = checked_probability(alpha, "alpha"), checked_probability(probability, "probability")
    named, hits = whole(predicted, "predicted", least=0), whole(right, "right", least=0)
    if named > size or hits > named:
        raise InvalidValueError(
            f"predicted must be at most pool={size} and right at most predicted, not {predicted!r} and {right!r}"
        )
    if hidden > min(size - named, MOST_MISSED):
        limits = f"pool={size}" if not named else f"pool less predicted, {size - named}"
        raise InvalidValueError(f"missed must be at most {limits} and at most {MOST_MISSED:,}, not {missed!r}")
    words = f"at least {percent_at_least(float(goal))} of the items of the class are found"
    are = "are" if hidden > 1 else "is"
    if named:
        search = _RecallSearch(goal, known, hidden, size, named, hits, level / 2.0)
        labels = first_not(
            lambda first, last: search.success(first, last) < wanted, size - 1, _intervals(hidden, 3_000)
        )
        missing = f"{count(hidden, 'item') if hidden else 'no item'} of it {are} neither labelled nor predicted"
        assumption = f"{missing} and {hits:,} of the {named:,} predicted ones are right"
        success = None if labels is None else search.success(labels, labels)
        return CheckPlan(labels, success, size, level, wanted, words, assumption)

    @cache
    def least_size(positives: int) -> int:
        """Return the least size that succeeds with some items of the class: P[Hyp(M, A + 1, m) <= k] <= alpha."""
        allowed = positives + math.floor((known + positives) * (1 - goal) / goal)
        # The distribution is symmetric in the two sizes: the largest m that does not succeed is a bound itself.
        return 0 if allowed >= size else upper_bound(positives, allowed + 1, size, level) + 1

    def probability_of(sizes: int, high_at: int, low_at: int) -> float:
        """Probability of the outcomes with which a check of ``sizes`` succeeds; exact if all three sizes are equal.

        An interval of outcomes has the probability ``P[X <= high] - P[X < low]``, and both fall with the size.
        """
        low = count_quantile(hidden, min(sizes, low_at, high_at), size, _NEVER)
        high = count_quantile(hidden, max(sizes, low_at, high_at), size, 1.0 - _NEVER)
        total, begin = 0.0, -1
        for positives in range(low, high + 2):
            succeeds = positives <= high and least_size(positives) <= sizes
            if succeeds and begin < 0:
                begin = positives
            elif begin >= 0 and not succeeds:
                before = probability_at_most(begin - 1, hidden, low_at, size)
                total += max(0.0, probability_at_most(positives - 1, hidden, high_at, size) - before)
                begin = -1
        return total

    def all_fail(first: int, last: int) -> bool:
        return probability_of(last, first, last) < wanted

    labels = first_not(all_fail, size - 1, _intervals(hidden, 100_000))
    success = None if labels is None else probability_of(labels, labels, labels)
    assumption = f"{count(hidden, 'item') if hidden else 'no item'} of it {are} unlabelled"
    return CheckPlan(labels, success, size, level, wanted, words, assumption)


@dataclass(frozen=True)
class _RecallSearch:
    """The sizes at which a check shows a recall, if items predicted as the class count as found.

    Attributes:
        goal: Requested recall.
        found: Items of the class among the labels.
        missed: Items of the class among the unlabelled ones that are not predicted as it.
        pool: Number of unlabelled items.
        predicted: Number of them that are predicted as the class.
        right: Number of these that belong to it.
        alpha: Error probability of each of the two bounds.
    """

    goal: Fraction
    found: int
    missed: int
    pool: int
    predicted: int
    right: int
    alpha: float

    def success(self, first: int, last: int) -> float:
        """The probability of success of a size; of an interval of sizes, one that none of them exceeds.

        A check contains predicted items in proportion, so that both parts of it rise with the size.
        """
        fewest, most = (round(size * self.predicted / self.pool) for size in (first, last))
        rest, begin, end = self.pool - self.predicted, first - fewest, last - most
        low = count_quantile(self.missed, begin, rest, _NEVER)
        high = count_quantile(self.missed, end, rest, 1.0 - _NEVER)
        # Bounds fall with the size of a sample, so that each is the best in the interval.
        needed = [self._needed(k, upper_bound(k, end, rest, self.alpha)) for k in range(low, high + 1)]
        shown = cache(lambda hits: lower_bound(hits, max(hits, fewest), self.predicted, self.alpha))
        # The least numbers of right items among the checked predicted ones that are a success.
        hits = range(most + 1)
        enough = [most + 1 if n is None else bisect_left(hits, n - self.found, key=shown) for n in needed]
        likely = (1.0 - probability_at_most(each - 1, self.right, most, self.predicted) for each in enough)
        weights, total = [0.0, *likely, 0.0], 0.0
        # The sum of the weighted probabilities, by parts: P[X <= k] falls with the size.
        for k, (weight, following) in enumerate(pairwise(weights), start=low - 1):
            size = begin if weight >= following else end
            total += (weight - following) * probability_at_most(k, self.missed, size, rest)
        return total

    def _needed(self, new: int, bound: int) -> int | None:
        """The least number of items found before the check and predicted right that is a success; None if none is."""
        missing = self.goal * bound - new
        if missing <= 0:
            return 0
        return None if self.goal == 1 else math.ceil(missing / (1 - self.goal))


def first_not(all_fail: Callable[[int, int], bool], last: int, most: int) -> int | None:
    """The least size up to ``last`` that does not fail, or None; after many intervals one that can be slightly larger.

    ``all_fail(first, last)`` may be False for an interval in which all fail, but not for a single size. If ``most``
    intervals were not enough, the search continues by bisection.
    """
    low, step, tries = 0, 1, 0

    def fails(length: int) -> bool:
        nonlocal tries
        tries += 1
        return low + length <= last and all_fail(low, low + length)

    while fails(0):
        step = max(1, step)
        while step and not fails(step):
            step //= 2
        while step and fails(2 * step):
            step *= 2
        low += step + 1
        if tries >= most and low < last:
            return _by_bisection(lambda size: not all_fail(size, size), low, last)
    return low if low <= last else None


def _intervals(outcomes: int, work: int) -> int:
    """The number of intervals to search for a size, each of which takes a time that rises with its outcomes."""
    return min(_MOST_INTERVALS, max(10, work // (outcomes + 1)))


def _by_bisection(succeeds: Callable[[int], bool], low: int, high: int) -> int | None:
    """A size from ``low`` to ``high`` that succeeds while the one before fails; None if ``high`` does not succeed."""
    if not succeeds(high):
        return None
    low -= 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if succeeds(middle) else (middle, high)
    return high


@dataclass(frozen=True)
class _ErrorSearch:
    """The sizes at which a check bounds the share of wrong predictions with the requested probability.

    Size m succeeds if ``OK(r, m)``: r wrong items in the check are allowed, where r is the count that a check of m
    exceeds with less than the remaining probability. ``OK(r, m)`` is ``P[Hyp(M, A + 1, m) <= r] <= alpha`` for the
    largest bound A that is allowed. The distribution is symmetric in its two sizes, so that the largest m at which this
    fails is itself an upper bound, of r wrong items in a sample of A + 1.

    Attributes:
        share: Largest acceptable share of wrong items.
        expected: Share of wrong items that is expected.
        pool: Number of items.
        alpha: Probability with which the bound may fail.
        probability: Requested probability of success.
        items: The items that the share is about.
    """

    share: Fraction
    expected: Fraction
    pool: int
    alpha: float
    probability: float
    items: Items

    @cached_property
    def wrong_items(self) -> int:
        """Number of wrong items that is expected in the pool."""
        return math.ceil(self.expected * self.pool)

    def allowed(self, checked: int, wrong: int) -> int:
        """A: the largest bound U that is a success, for a size and a number of wrong items in the check.

        It does not rise with the size.
        """
        if self.items == "all":
            return math.floor(self.share * self.pool)
        return wrong + math.floor(self.share * (self.pool - checked))

    def least(self, last: int) -> int | None:
        """The least size up to ``last`` that succeeds, or None; after many intervals one that can be slightly larger.

        The first sizes are searched in intervals in which all sizes fail. An interval has about the length of a tooth
        of the saw, or several. If many were not enough, the search is by bisection between teeth; the last items, of
        which a bound can be 0, are searched in intervals again.
        """
        found, low = self._first(0, last)
        if found is not None or low > last:
            return found
        high = self._promising(low, last)
        found = _by_bisection(lambda size: self._tooth(size) is not None, low, high)
        if found is not None:
            return self._tooth(found)
        few = self.pool - math.ceil(_LAST_ITEMS / self.share) if self.share else low
        return self._first(max(low, few), last)[0]

    def success(self, checked: int) -> float:
        """The probability that a check of a size succeeds, for a size that was found."""
        wrong = count_quantile(self.wrong_items, checked, self.pool, self.probability)
        while wrong < checked and self._enough(wrong + 1, checked):
            wrong += 1
        # The comparison with the requested probability was exact; this value is not.
        return max(self.probability, probability_at_most(wrong, self.wrong_items, checked, self.pool))

    def _enough(self, wrong: int, checked: int) -> bool:
        """Whether a check of a size with a number of wrong items is a success."""
        return upper_bound(wrong, checked, self.pool, self.alpha) <= self.allowed(checked, wrong)

    def _first(self, low: int, last: int) -> tuple[int | None, int]:
        """The least size from ``low`` to ``last`` that succeeds, if few intervals fail; and the next size to try."""
        for _ in range(_MOST_INTERVALS):
            if low > last:
                break
            # Sizes from ``low`` to m have at least the r of ``low``, and are allowed at most its A.
            failure = self._last_failure(low)
            if failure < low:
                return low, low
            low = failure + 1
        return None, low

    def _last_failure(self, checked: int) -> int:
        """The largest size at which the r of a size is not allowed, with the A of that size; -1 if there is none."""
        wrong = count_quantile(self.wrong_items, checked, self.pool, self.probability)
        allowed = self.allowed(checked, wrong)
        if allowed >= self.pool:
            return -1
        return self.pool if wrong > allowed else upper_bound(wrong, allowed + 1, self.pool, self.alpha)

    def _tooth(self, checked: int) -> int | None:
        """The least size of those with the same r as ``checked``, from it on, that succeeds; None if none does."""
        wrong = count_quantile(self.wrong_items, checked, self.pool, self.probability)
        at = checked
        while at < self.pool:
            failure = self._last_failure(at)
            if failure < at:
                return at
            at = failure + 1
            if count_quantile(self.wrong_items, min(at, self.pool), self.pool, self.probability) > wrong:
                break
        return None

    def _promising(self, low: int, last: int) -> int:
        """The size between two that is the most likely to succeed, or a smaller one that surely does."""
        target, error = float(self.share), self.wrong_items / self.pool
        sure = _surely_enough(target - error, self.alpha, self.probability, self.items)
        if low <= sure <= (last if self.items == "all" else min(last, self.pool // 2)):
            return int(sure)
        if self.items == "all":
            return last
        from scipy.special import ndtri  # takes as long to import as the rest, and is not always needed

        # The bound on the rest is that of a difference between two samples; the count varies as in a finite pool.
        sizes = np.unique(np.linspace(max(low, 1), last, 1000).astype(np.int64))
        left = 1.0 - sizes / self.pool
        spread = -ndtri(self.alpha) * np.sqrt(target * (1.0 - target) / left)
        spread += ndtri(self.probability) * np.sqrt(error * (1.0 - error) * left)
        return int(sizes[np.argmax(target - error - spread / np.sqrt(sizes))])


def _surely_enough(gap: float, alpha: float, probability: float, items: Items) -> float:
    """A size from which every check succeeds, of the remaining items up to half of the pool; by Hoeffding's inequality.

    Success needs an integer between ``m expected + sqrt(m B)`` and ``m target - s sqrt(m A)`` with
    ``A = -log(alpha) / 2`` and ``B = -log(1 - probability) / 2``; ``s`` is 1 for all items and ``1 / (1 - m / M)``, at
    most 2, for the remaining ones.
    """
    if gap <= 0.0:
        return math.inf
    spread = (2.0 if items == "remaining" else 1.0) * math.sqrt(-0.5 * math.log(alpha))
    spread += math.sqrt(-0.5 * math.log1p(-probability))
    return math.ceil(((spread + math.sqrt(spread**2 + 4.0 * gap)) / (2.0 * gap)) ** 2) + 1.0


def pool_size(pool: int) -> int:
    """Return the number of items of a pool, or raise an error if it is not from 1 to 1e12."""
    size = whole(pool, "pool", least=1)
    if size > LARGEST_POOL:
        raise InvalidValueError(f"pool must be at most {LARGEST_POOL:,}, not {pool!r}")
    return size


def _check_items(items: str) -> None:
    if items not in get_args(Items):
        raise InvalidValueError(f'items must be "remaining" or "all", not {items!r}')
