r"""Plans for a target: labels first, then a sequential check, at the least cost.

The share of wrong predictions is not known; an estimate of it has an interval. A plan averages over a beta distribution
with the mean and the width of that interval, so that it changes slowly from one estimate to the next.
"""

import math
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from suffice.arguments import real, whole
from suffice.checks.hypergeometric import LARGEST_POOL, probability
from suffice.checks.sequential_terms import SequentialTerms, proof_probabilities, typical_answers
from suffice.deprecation import warn_deprecated, without_argument
from suffice.errors import InvalidValueError
from suffice.presentation.text_format import count, percent, two_digits

Floats = NDArray[np.float64]

# The beta distribution is represented by so many of its quantiles.
_NODES: Final = 15
# Half of the width of a 90 % interval in standard deviations.
_HALF_WIDTH: Final = 1.645
# A check is given up at this multiple of its typical number of answers.
_GIVEN_UP: Final = 4.0
# A check is advised if it is at least so likely to succeed; it stays advised down to the second probability.
_LIKELY: Final = 0.9
_STILL_LIKELY: Final = 0.6
# A check later must save this share of all labels, or the check is now: estimates are not more precise than that. If a
# check was advised before, it must save more, so that the advice does not change with each estimate.
_SAVED: Final = 0.02
_SAVED_AFTER_ADVICE: Final = 0.25
# Numbers of labels before the check that are compared.
_CANDIDATES: Final = 200
# Quantiles of the interval for the number of answers.
_LOW, _HIGH = 0.1, 0.9
# Up to this number of answers, the distribution of their number is computed exactly.
_EXACT: Final = 3000
#: Remedy for the argument ``probability`` of earlier versions.
NO_PROBABILITY: Final = "leave it out: the plan is for a check that ends by itself, and its field success is stated"


@dataclass(frozen=True)
class GuaranteePlan:
    """Plan of labels and of a sequential check that guarantee at most a given share of wrong predictions.

    All numbers are expected ones, by the estimate of the error. What a check proves does not depend on them.

    Attributes:
        target: Share of wrong predictions to guarantee.
        n_labelled: Number of labels now.
        pool: Number of unlabelled items now.
        error: Estimated share of wrong predictions now.
        low: Lower end of its 90 % interval.
        high: Upper end.
        reducible: The part of the error that more labels can remove.
        alpha: Error probability of the check.
        more_labels: Number of labels before the check; None if no check is likely to succeed before most items are
            labelled.
        check_size: Typical number of answers of the check; None as above.
        check_low: The check ends before this number of answers with a probability of 10 %; None as above.
        check_high: It ends after this number with a probability of 10 %; None as above.
        success: Probability that the check proves the target, if it is given up after four times its typical number of
            answers.

    Examples:
        >>> print(plan_total(0.1, error=0.09, low=0.06, high=0.12, reducible=0.05, n_labelled=100, pool=4600))
        About 530 labels in all: 180 more, then a check of about 240 (170 to 380).
    """

    target: float
    n_labelled: int
    pool: int
    error: float
    low: float
    high: float
    reducible: float
    alpha: float
    more_labels: int | None
    check_size: int | None
    check_low: int | None
    check_high: int | None
    success: float

    def after(self, n_labelled: int, pool: int) -> "GuaranteePlan":
        """The same plan when some of its labels are given: fewer labels remain before the check.

        Args:
            n_labelled: Number of labels, at least that of the plan.
            pool: Number of unlabelled items.
        """
        more = None if self.more_labels is None else max(0, self.more_labels - (n_labelled - self.n_labelled))
        return replace(self, n_labelled=n_labelled, pool=pool, more_labels=more)

    @property
    def probability(self) -> float:
        """Return :attr:`success`; deprecated, use that."""
        warn_deprecated("GuaranteePlan.probability", "use success, the probability that the check proves the target")
        return self.success

    @property
    def expected_total(self) -> int | None:
        """Number of labels after a check that succeeds, the current ones included; None as above."""
        if self.more_labels is None or self.check_size is None:
            return None
        return self.n_labelled + self.more_labels + self.check_size

    @property
    def check_now(self) -> bool:
        """Whether a check now is likely to succeed, and to take about as many labels in total as a later one."""
        return self.more_labels == 0

    @property
    def error_at_check(self) -> float | None:
        """Expected share of wrong predictions when the check is drawn; None as above."""
        if self.more_labels is None:
            return None
        return float(_errors_after(self.error, self.reducible, self.n_labelled, np.array([self.more_labels]))[0])

    def as_dict(self) -> dict[str, Any]:
        """Return the plan as JSON values, with derived values and its printed sentence."""
        derived = {name: getattr(self, name) for name in ("expected_total", "check_now", "error_at_check")}
        return {**asdict(self), **derived, "sentence": str(self)}

    def __str__(self) -> str:
        if self.expected_total is None:
            everything = count(self.n_labelled + self.pool, "item")
            now, least = percent(self.error), percent(self.error - self.reducible)
            words = (
                f"No check is likely to prove at most {percent(self.target)} before most of the {everything} are "
                f"labelled: about {now} of the predictions are wrong now, and more labels lower that to {least} at "
                "best."
            )
        else:
            size, low, high = (
                two_digits(each or 0, self.pool) for each in (self.check_size, self.check_low, self.check_high)
            )
            check = f"a check of about {size:,} ({low:,} to {high:,})"
            if self.check_now:
                parts = f"{check} now, which succeeds with a probability of {percent(self.success)}"
            else:
                parts = f"{two_digits(self.more_labels or 0):,} more, then {check}"
            words = f"About {count(two_digits(self.expected_total), 'label')} in all: {parts}."
        return words.replace("\u00a0", " ")


@lru_cache(maxsize=256)
@without_argument("probability", NO_PROBABILITY)
def plan_total(  # noqa: PLR0913 - all but two by keyword
    target: float,
    error: float,
    *,
    low: float | None = None,
    high: float | None = None,
    reducible: float,
    n_labelled: int,
    pool: int,
    alpha: float = 0.05,
    check_advised: bool = False,
) -> GuaranteePlan:
    r"""Plan labels and a sequential check together, so that at most ``target`` is proven with the fewest labels.

    With :math:`n` labels now, the share of wrong predictions after :math:`k` more is expected to be

    .. math:: e_k = e - r \Bigl(1 - \frac{n}{n + k}\Bigr),

    a learning curve whose reducible part :math:`r` falls like :math:`1/n`. The uncertainty of the estimate falls like
    :math:`(n + k)^{-1/2}`. The plan minimises :math:`k` plus the mean number of answers of a check at that point, where
    a check that does not succeed is given up at four times its typical number. The check is now if it succeeds with a
    probability of at least 90 %, and a later one saves less than 2 % of all labels.

    Args:
        target: Largest acceptable share of wrong predictions, from 0 to 1.
        error: ``e``, the estimated share of wrong predictions now, from 0 to 1.
        low: Lower end of its 90 % interval; that of ``n`` random labels if left out.
        high: Upper end.
        reducible: ``r``, the part of it that more labels can remove, from 0 to ``error``.
        n_labelled: ``n``, the number of labels now, at least 1.
        pool: Number of unlabelled items now.
        alpha: Error probability of the check; for a check in a sequence, see :func:`spent_alpha`.
        check_advised: Whether the last plan was to check at once. Then that remains the plan while the probability of
            success is at least 60 %, unless a later check saves a quarter of all labels.

    Raises:
        InvalidValueError: An argument is out of range.

    Examples:
        >>> print(plan_total(0.1, error=0.04, low=0.02, high=0.06, reducible=0.01, n_labelled=400, pool=4300))
        About 490 labels in all: a check of about 92 (45 to 310) now, which succeeds with a probability of 100 %.
        >>> print(plan_total(0.05, error=0.12, low=0.08, high=0.16, reducible=0.04, n_labelled=200, pool=4000))
        No check is likely to prove at most 5 % before most of the 4,200 items are labelled: about 12 % of the
        predictions are wrong now, and more labels lower that to 8 % at best.
    """
    size = whole(pool, "pool", least=1)
    if size > LARGEST_POOL:
        raise InvalidValueError(f"pool must be at most {LARGEST_POOL:,}, not {pool!r}")
    goal = real(target, "target", "from 0 to 1", lambda x: 0.0 <= x <= 1.0)
    now = real(error, "error", "from 0 to 1", lambda x: 0.0 <= x <= 1.0)
    n = whole(n_labelled, "n_labelled", least=1)
    level = probability(alpha, "alpha")
    part = real(reducible, "reducible", f"from 0 to error={now:g}", lambda x: 0.0 <= x <= now)
    noise = _HALF_WIDTH * math.sqrt(now * (1.0 - now) / n)
    least = max(0.0, now - noise) if low is None else real(low, "low", "from 0 to 1", lambda x: 0.0 <= x <= 1.0)
    most = min(1.0, now + noise) if high is None else real(high, "high", "from 0 to 1", lambda x: 0.0 <= x <= 1.0)
    made = GuaranteePlan(goal, n, size, now, least, most, part, level, None, None, None, None, 0.0)
    if math.floor(Fraction(repr(goal)) * size) >= size:
        return replace(made, more_labels=0, check_size=0, check_low=0, check_high=0, success=1.0)
    more = np.unique(np.round(n * np.expm1(np.linspace(0.0, math.log1p((size - 1) / n), _CANDIDATES))).astype(np.int64))
    answers = _answers(made, _possible_errors(made), more)
    typical = np.median(answers, axis=1)
    given_up = np.minimum(_GIVEN_UP * typical, size - more)
    # With too many wrong items, a check would take the whole pool.
    left = (size - more)[:, None]
    success = np.mean((answers <= given_up[:, None]) & (answers < left), axis=1)
    success[typical >= 0.5 * (size - more)] = 0.0
    costs = more + np.mean(np.minimum(answers, given_up[:, None]), axis=1)
    enough = _STILL_LIKELY if check_advised else _LIKELY
    if not (success >= _LIKELY).any() and success[0] < enough:
        return replace(made, success=float(success[0]))
    best = int(np.where(success >= min(_LIKELY, success.max()), costs, math.inf).argmin())
    saved = _SAVED_AFTER_ADVICE if check_advised else _SAVED
    if success[0] >= enough and (1.0 - saved) * (n + costs[0]) <= n + costs[best]:
        best = 0
    if best:
        sizes = np.quantile(answers[best], [0.5, _LOW, _HIGH])
        middle, first, last = (int(max(1.0, round(float(each)))) for each in sizes)
    else:
        middle, first, last = _answers_now(made, float(given_up[0]))
    return replace(
        made,
        more_labels=int(more[best]),
        check_size=middle,
        check_low=first,
        check_high=last,
        success=float(success[best]),
    )


class ExpectedCheck(NamedTuple):
    """What a sequential check that starts now is expected to take.

    Attributes:
        size: Typical number of answers.
        low: The check ends before this number of answers with a probability of 10 %.
        high: It ends after this number with a probability of 10 %.
        success: Probability that it proves the target, if it is given up after four times its typical number.
    """

    size: int
    low: int
    high: int
    success: float


def expected_check(  # noqa: PLR0913 - all but two by keyword
    target: float, error: float, *, low: float, high: float, pool: int, alpha: float
) -> ExpectedCheck:
    """Return what a sequential check that starts now is expected to take; arguments as for :func:`plan_total`.

    Examples:
        >>> expected_check(0.1, 0.04, low=0.02, high=0.06, pool=4300, alpha=0.025)
        ExpectedCheck(size=118, low=53, high=361, success=1.0)
    """
    made = GuaranteePlan(target, 1, pool, error, low, high, 0.0, alpha, None, None, None, None, 0.0)
    answers = _answers(made, _possible_errors(made), np.array([0]))[0]
    given_up = min(_GIVEN_UP * float(np.median(answers)), float(pool))
    success = float(np.mean((answers <= given_up) & (answers < pool)))
    return ExpectedCheck(*_answers_now(made, given_up), success)


def _possible_errors(plan: GuaranteePlan) -> Floats:
    """Equally likely shares of wrong predictions now."""
    from scipy.special import betaincinv  # takes as long to import as the rest, and is not always needed

    mean = min(max(plan.error, 1e-6), 1.0 - 1e-6)
    deviation = max((plan.high - plan.low) / (2.0 * _HALF_WIDTH), 1e-6)
    labels = max(mean * (1.0 - mean) / deviation**2 - 1.0, 2.0)
    places = (np.arange(_NODES) + 0.5) / _NODES
    return np.asarray(betaincinv(mean * labels, (1.0 - mean) * labels, places))


def _answers(plan: GuaranteePlan, errors: Floats, more: NDArray[np.int64]) -> Floats:
    """Typical numbers of answers of a check after more labels, for each possible error; shape (len(more), nodes)."""
    then = _errors_after(plan.error, plan.reducible, plan.n_labelled, more)[:, None]
    scale = then / plan.error if plan.error > 0.0 else np.ones_like(then)
    known = np.sqrt(plan.n_labelled / (plan.n_labelled + more))[:, None]
    possible = np.clip(then + (errors * scale - then) * known, 0.0, 1.0)
    left = (plan.pool - more)[:, None]
    # The least share of wrong items that is too large.
    target = min((math.floor(Fraction(repr(plan.target)) * plan.pool) + 1) / plan.pool, 1.0 - 1e-12)
    return typical_answers(target, possible, left, plan.alpha)


def _answers_now(plan: GuaranteePlan, given_up: float) -> tuple[int, int, int]:
    """Median and the ends of the interval of the number of answers of a check now."""
    terms = SequentialTerms.of_share(plan.target, pool=plan.pool, alpha=plan.alpha, expected=plan.error)
    errors = _possible_errors(plan)
    last = int(min(plan.pool, _EXACT, max(2.0 * given_up, terms.planned)))
    proven = proof_probabilities(terms, np.round(errors * plan.pool), last).mean(axis=0)
    typical = np.sort(_answers(plan, errors, np.array([0]))[0])
    found = []
    for quantile in (0.5, _LOW, _HIGH):
        reached = np.flatnonzero(proven >= quantile)
        # Longer checks are not computed exactly.
        found.append(int(reached[0]) + 1 if len(reached) else int(max(last, np.quantile(typical, quantile))))
    return found[0], min(found[:2]), max(found[0], found[2])


def _errors_after(error: float, reducible: float, n_labelled: int, more: NDArray[np.int64]) -> Floats:
    """The expected share of wrong predictions after more labels."""
    return np.asarray(np.maximum(0.0, error - reducible * more / (n_labelled + more)))
