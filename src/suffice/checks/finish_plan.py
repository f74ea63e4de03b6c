r"""Plans for a goal about a whole data set: labels of people, a check, and predictions for the rest.

Of :math:`N` final labels, at most :math:`B` may be wrong. Labels of people count as right, so that :math:`B` of the
:math:`R` items without a label may have a wrong prediction. A check with corrections (see
:mod:`suffice.checks.sequential_terms`) proves this for the items that it leaves. It always ends, at the latest when
only :math:`B` items are left, so that every goal can be reached.

In a screening for a class, people read the likeliest items first. The goal is that of all items of the class at most a
share is missed. The same check proves it: an item of the class that it finds counts as wrong, and is found then.
"""

import math
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from suffice.arguments import floats, real, whole
from suffice.checks.hypergeometric import LARGEST_POOL, exact_share, probability
from suffice.errors import InvalidValueError
from suffice.forecast import CURVE_POWER
from suffice.presentation.text_format import count, interval_words, two_digits

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# Numbers of answers of a check, and of labels before it, that are compared.
_SIZES: Final = 400
_CANDIDATES: Final = 60
# A later check must save this share of all labels, or the check is now. If a check was advised before, it must save
# more.
_SAVED: Final = 0.02
_SAVED_AFTER_ADVICE: Final = 0.1
# Rounding error of a sum of probabilities.
_ROUNDING: Final = 1e-9


def allowed_wrong(at_most: float, rows: int, annotator_error: float = 0.0) -> int:
    """The number of wrong predictions that a goal for a whole data set allows.

    Args:
        at_most: Largest acceptable share of wrong labels among all final labels, from 0 to 1. It is taken as the
            decimal number that it prints as.
        rows: Number of final labels.
        annotator_error: Largest share of wrong labels among those of people. It is subtracted from ``at_most``.

    Raises:
        InvalidValueError: An argument is out of range, or the labels of people alone exceed the goal.

    Examples:
        >>> allowed_wrong(0.29, 100), allowed_wrong(0.05, 1250), allowed_wrong(0.05, 1250, annotator_error=0.02)
        (29, 62, 37)
    """
    share = exact_share(at_most, "at_most")
    people = Fraction(
        repr(real(annotator_error, "annotator_error", "at least 0 and below 1", lambda x: 0.0 <= x < 1.0))
    )
    if people and people >= share:
        raise InvalidValueError(
            f"a share of {100.0 * float(people):g} % of wrong labels of people leaves nothing of the goal of "
            f"{100.0 * float(share):g} % for predictions: if people label every row, as many labels are wrong; raise "
            "the goal, or ask several people for each item"
        )
    return math.floor((share - people) * whole(rows, "rows", least=0))


def allowed_missed(at_most: float, found: int) -> int:
    r"""The number of items of a class that a screening may miss.

    With :math:`F` items found before the check and the goal :math:`\varepsilon`,

    .. math:: B = \Bigl\lfloor \frac{\varepsilon F}{1 - \varepsilon} \Bigr\rfloor .

    The check finds :math:`k` more items of the class and proves that at most :math:`B` of the others are missed. From
    :math:`\text{missed} \le B` follows :math:`(1 - \varepsilon) \, \text{missed} \le \varepsilon F`, hence
    :math:`\text{missed} \le \varepsilon (F + \text{missed}) \le \varepsilon (F + k + \text{missed})`: at most a share
    :math:`\varepsilon` of all items of the class is missed.

    Args:
        at_most: Largest acceptable share of missed items among all items of the class, at least 0 and below 1. It is
            taken as the decimal number that it prints as.
        found: ``F``, the number of items of the class that people have found.

    Raises:
        InvalidValueError: An argument is out of range.

    Examples:
        >>> allowed_missed(0.05, 312), allowed_missed(0.05, 19), allowed_missed(0.05, 18), allowed_missed(0.1, 0)
        (16, 1, 0, 0)
    """
    share = Fraction(repr(real(at_most, "at_most", "at least 0 and below 1", lambda x: 0.0 <= x < 1.0)))
    return math.floor(share / (1 - share) * whole(found, "found", least=0))


def joint_answers(pool: ArrayLike, allowed: ArrayLike, wrong: ArrayLike, alpha: float) -> Floats:
    r"""The typical number of answers of a check that corrects the items that it finds wrong.

    With a share :math:`e` of wrong items among :math:`R`, about :math:`e t` of the first :math:`t` answers are wrong.
    The proof needs, by a normal approximation, with :math:`p = (B + 1 + e t) / R` and :math:`f = 1 - t / R`,

    .. math:: t \Bigl(\frac{B + 1}{R} - e f\Bigr) \ge z_\alpha \sqrt{t \, p (1 - p) f},

    and at least as many answers as without a wrong one. The check ends when :math:`B` items are left.

    Args:
        pool: ``R``, numbers of items.
        allowed: ``B``, the number of wrong items that may be left: one for all, or as many as ``pool``.
        wrong: Expected numbers of wrong items, as many as ``pool``.
        alpha: Error probability of the check.

    Examples:
        >>> joint_answers([3000, 3000, 3000], 150, [60, 120, 200], 0.025).round(-1).tolist()
        [180.0, 560.0, 1260.0]
    """
    from scipy.special import ndtri  # takes as long to import as the rest, and is not always needed

    size = np.atleast_1d(np.asarray(pool, dtype=np.float64))[:, None]
    error = np.clip(np.atleast_1d(np.asarray(wrong, dtype=np.float64))[:, None] / np.maximum(size, 1.0), 0.0, 1.0)
    most = np.atleast_1d(np.asarray(allowed, dtype=np.float64))[:, None]
    last = np.maximum(size - most, 0.0)
    # From one answer to the last one, in equal ratios.
    answers = np.maximum(last, 1.0) ** np.linspace(0.0, 1.0, _SIZES)
    left = np.clip(1.0 - answers / np.maximum(size, 1.0), 0.0, 1.0)
    share = np.clip((most + 1.0 + error * answers) / np.maximum(size, 1.0), 0.0, 1.0)
    margin = max(0.0, -float(ndtri(alpha))) * np.sqrt(answers * share * (1.0 - share) * left)
    enough = answers * ((most + 1.0) / np.maximum(size, 1.0) - error * left) >= margin
    with np.errstate(divide="ignore"):
        least = math.log(alpha) / np.log1p(-np.minimum((most + 1.0) / np.maximum(size, 1.0), 1.0 - 1e-12))
    enough &= answers >= np.minimum(least, last)
    enough[:, -1] = True
    found = np.take_along_axis(answers, enough.argmax(axis=1)[:, None], axis=1)
    return np.asarray(np.where(last > 0.0, found, 0.0)[:, 0])


@dataclass(frozen=True)
class FinishPlan:
    """Plan of labels and a check after which at most a given share of all final labels is wrong.

    All numbers except those of now are expected ones. What the check proves does not depend on them.

    Attributes:
        at_most: Share of wrong labels among all final labels that is acceptable.
        rows: Number of final labels.
        by_people: Number of labels by people now.
        allowed: Number of wrong predictions that may be left.
        wrong: Expected number of wrong predictions among the items without a label now.
        low: Lower end of its 90 % interval.
        high: Upper end.
        more_labels: Number of labels before the check.
        check_size: Typical number of answers of the check; 0 if none is necessary.
        check_low: The same at the lower end of the interval.
        check_high: The same at the upper end.
        wrong_at_check: Expected number of wrong predictions among the items without a label when the check starts.
        class_name: In a screening, the class that is looked for; otherwise None. Then labels are items that people
            read, ``at_most`` is a share of the items of the class, ``allowed`` is the number of them that may be missed
            when the check starts, and ``wrong`` the number among the items that nobody has read.
        found: In a screening, the number of items of the class that people have found now; otherwise None.
        annotator_error: Share of the labels by people that may be wrong; ``allowed`` does not include them.
        tolerance: For numbers, the largest error that is not wrong; None for classes.
        check_open: Whether the check is open; then ``check_size`` is the number of answers that are still expected.

    Examples:
        >>> print(plan_finish(0.05, [0.4] * 300 + [0.02] * 1700, by_people=200, alpha=0.025, low=0.05, high=0.1))
        200 labels so far. Next: about 240 more, then a check of about 140 items (between 95 and 180). Predictions
        supply the other 1,600 labels.
    """

    at_most: float
    rows: int
    by_people: int
    allowed: int
    wrong: float
    low: float
    high: float
    more_labels: int
    check_size: int
    check_low: int
    check_high: int
    wrong_at_check: float = 0.0
    class_name: str | None = None
    found: int | None = None
    annotator_error: float = 0.0
    tolerance: float | None = None
    check_open: bool = False

    @property
    def check_now(self) -> bool:
        """Whether to check now: more labels before the check would save little."""
        return self.more_labels == 0

    @property
    def by_people_at_end(self) -> int:
        """Expected number of labels by people at the end, those of the check included."""
        return min(self.rows, self.by_people + self.more_labels + self.check_size)

    @property
    def predicted(self) -> int:
        """Expected number of final labels that are predictions."""
        return self.rows - self.by_people_at_end

    def after(self, by_people: int) -> "FinishPlan":
        """The same plan when some of its labels are given: fewer labels remain before the check."""
        more = max(0, self.more_labels - (by_people - self.by_people))
        return replace(self, by_people=by_people, more_labels=more)

    def with_alpha(self, alpha: float) -> "FinishPlan":
        """The same plan with a check of another error probability, for a check that is not the first.

        Args:
            alpha: Error probability of the check.
        """
        if not self.check_size:
            return self
        left = self.rows - self.by_people
        scale = self.wrong_at_check / max(self.wrong, 1e-12)
        return replace(self, **_check_sizes(self, left - self.more_labels, scale, probability(alpha, "alpha")))

    def as_dict(self) -> dict[str, Any]:
        """The plan as JSON values, with derived values and its printed sentence; a screening has two values more."""
        derived = {name: getattr(self, name) for name in ("by_people_at_end", "predicted", "check_now")}
        own = {name: value for name, value in asdict(self).items() if value is not None}
        return {**own, **derived, "sentence": str(self)}

    def __str__(self) -> str:
        so_far = f"{count(self.by_people, 'label')} so far"
        if self.found is not None:
            so_far = f"{count(self.by_people, 'item')} read so far, {self.found:,} of class {self.class_name!r} found"
        return f"{so_far}. {self._next_words()}. {self._end_words()}.".replace("\u00a0", " ")

    def _next_words(self) -> str:
        """Labels and answers to come, as a sentence without its full stop."""
        left = self.check_size + self.predicted
        size, low, high = (two_digits(each, left) for each in (self.check_size, self.check_low, self.check_high))
        between = interval_words(low, high)
        if self.check_open:
            return f"Next: about {count(size, 'more answer')} in the check{between}"
        check = f"a check of about {count(size, 'item')}{between}" if self.check_size else "no check"
        if self.check_now:
            return f"Next: {check}" if self.check_size else "No check is necessary"
        more = f"Next: about {two_digits(self.more_labels):,} more"
        return f"{more}, then {check}" if self.check_size else f"{more}, and {check}"

    def _end_words(self) -> str:
        """What is left at the end, as a sentence without its full stop."""
        left, read = two_digits(self.predicted), self.found is not None
        if not left:
            return "Then all items are read" if read else "Then all labels are by people"
        if read:
            return f"The other {left:,} need not be read" if left > 1 else "The other one need not be read"
        return f"Predictions supply the other {count(left, 'label') if left > 1 else 'label'}"


def plan_finish(  # noqa: PLR0913 - all but two by keyword
    at_most: float,
    shares: ArrayLike,
    *,
    by_people: int,
    alpha: float,
    low: float | None = None,
    high: float | None = None,
    rest: int | None = None,
    annotator_error: float = 0.0,
    answer_cost: float = 1.0,
    check_advised: bool = False,
    learns: bool = True,
) -> FinishPlan:
    r"""Plan labels of the least certain items and a check of the others, with the least human work.

    With :math:`n` labels now and :math:`m` more for the items that are most likely wrong, the expected number of wrong
    predictions is

    .. math:: D_m = \Bigl(\frac{n}{n + m}\Bigr)^{1/3} \sum_{i > m} q_i,

    where :math:`q_1 \ge q_2 \ge \dots` are the probabilities of an error now. The factor is what the model learns. The
    plan minimises :math:`m` plus the typical number of answers of the check, see :func:`joint_answers`. The check is
    now if a later one saves less than 2 % of all labels.

    Args:
        at_most: Largest acceptable share of wrong labels among all final labels.
        shares: Probability of a wrong prediction for each item without a label, or for a random sample of them.
        by_people: Number of labels by people now.
        alpha: Error probability of the check.
        low: Lower end of the 90 % interval for the share of wrong predictions; that of ``shares`` if left out.
        high: Upper end.
        rest: Number of items without a label; that of ``shares`` if left out.
        annotator_error: As for :func:`allowed_wrong`.
        answer_cost: Cost of an answer in the check, relative to a label. Above 0; below 1 if it is cheaper to confirm
            or correct a prediction than to label an item.
        check_advised: Whether the last plan was to check at once; then that remains the plan unless a later check is
            clearly better.
        learns: Whether the predictions improve with more labels; False for predictions that stay as they are.

    Raises:
        InvalidValueError: An argument is out of range.
    """
    probable = np.sort(np.clip(floats(shares, "shares"), 0.0, 1.0))[::-1]
    left = whole(len(probable) if rest is None else rest, "rest", least=0)
    labels = whole(by_people, "by_people", least=0)
    rows, level = labels + left, probability(alpha, "alpha")
    if rows > LARGEST_POOL:
        raise InvalidValueError(f"there must be at most {LARGEST_POOL:,} rows, not {rows:,}")
    cost = real(answer_cost, "answer_cost", "above 0", lambda x: x > 0.0)
    allowed = allowed_wrong(at_most, rows, annotator_error)
    made = _before_plan(at_most, probable, (low, high), left, labels)
    made = replace(made, allowed=allowed, annotator_error=float(annotator_error))
    if allowed >= left:
        return made
    more = _candidates(left, allowed)
    wrong = _expected_left(probable, more, left)
    if labels and learns:
        wrong *= (labels / (labels + more)) ** CURVE_POWER
    return _least_labels(made, more, wrong, np.full(len(more), allowed), level, cost, check_advised=check_advised)


def plan_screening(  # noqa: PLR0913 - all but two by keyword
    at_most: float,
    shares: ArrayLike,
    *,
    class_name: str,
    found: int,
    by_people: int,
    alpha: float,
    low: float | None = None,
    high: float | None = None,
    rest: int | None = None,
    check_advised: bool = False,
) -> FinishPlan:
    r"""Plan how many of the likeliest items of a class to read before a check of the others, with the least work.

    Let :math:`q_1 \ge q_2 \ge \dots` be the probabilities that the items that nobody has read are of the class, and
    :math:`F` the number of items of the class that are found. After the next :math:`m` items,

    .. math:: F_m = F + \sum_{i \le m} q_i, \qquad D_m = \sum_{i > m} q_i

    are expected to be found and to be left, and :func:`allowed_missed` of :math:`F_m` may be missed. The plan minimises
    :math:`m` plus the typical number of answers of the check, as :func:`plan_finish` does.

    Args:
        at_most: Largest acceptable share of missed items among all items of the class, at least 0 and below 1.
        shares: Probability that an item is of the class, for each item that nobody has read, or for a random sample of
            them.
        class_name: The class.
        found: Number of items of the class that people have found.
        by_people: Number of items that people have read.
        alpha: Error probability of the check.
        low: Lower end of the 90 % interval for the share of items of the class; that of ``shares`` if left out.
        high: Upper end.
        rest: Number of items that nobody has read; that of ``shares`` if left out.
        check_advised: As for :func:`plan_finish`.

    Raises:
        InvalidValueError: An argument is out of range.

    Examples:
        >>> print(plan_screening(0.05, [0.9] * 100 + [0.3] * 100 + [0.002] * 1700, class_name="yes", found=90,
        ...     by_people=100, alpha=0.025))
        100 items read so far, 90 of class 'yes' found. Next: about 220 more, then a check of about 580 items. The other
        1,100 need not be read.
    """
    probable = np.sort(np.clip(floats(shares, "shares"), 0.0, 1.0))[::-1]
    left = whole(len(probable) if rest is None else rest, "rest", least=0)
    n_read, level = whole(by_people, "by_people", least=0), probability(alpha, "alpha")
    n_found = whole(found, "found", least=0)
    if n_found > n_read:
        raise InvalidValueError(f"found must be at most by_people={n_read}, not {found!r}")
    if n_read + left > LARGEST_POOL:
        raise InvalidValueError(f"there must be at most {LARGEST_POOL:,} items, not {n_read + left:,}")
    allowed = allowed_missed(at_most, n_found)
    made = _before_plan(at_most, probable, (low, high), left, n_read)
    made = replace(made, allowed=allowed, class_name=class_name, found=n_found)
    if allowed >= left:
        return made
    more = _candidates(left, allowed)
    missed = _expected_left(probable, more, left)
    # The number that is found by then is not whole; it is rounded down.
    then = n_found + np.floor(missed[0] - missed + _ROUNDING).astype(np.int64)
    may_miss = np.array([allowed_missed(at_most, int(number)) for number in then])
    return _least_labels(made, more, missed, may_miss, level, 1.0, check_advised=check_advised)


def _before_plan(
    at_most: float, probable: Floats, interval: tuple[float | None, float | None], left: int, labels: int
) -> FinishPlan:
    """What is known before a plan is made: the numbers of now."""
    mean = float(probable.mean()) if len(probable) else 0.0
    low, high = (mean if end is None else end for end in interval)
    return FinishPlan(float(at_most), labels + left, labels, 0, mean * left, low * left, high * left, 0, 0, 0, 0)


def _candidates(left: int, allowed: int) -> Integers:
    """Numbers of labels before the check that are compared."""
    more = np.unique(np.round(np.geomspace(1.0, left - allowed, _CANDIDATES)).astype(np.int64))
    return np.concatenate([[0], more[more < left]])


def _expected_left(probable: Floats, more: Integers, left: int) -> Floats:
    """Expected numbers of errors, or of items of a class, after the items with the largest probabilities are gone.

    Args:
        probable: Probabilities of a sample of the items, in falling order.
        more: Numbers of items that are gone.
        left: Number of items.
    """
    places = np.minimum(np.round(more * (len(probable) / left)).astype(np.int64), len(probable))
    rising = np.concatenate([[0.0], np.cumsum(probable)])
    return np.asarray((rising[-1] - rising[places]) * (left / len(probable)))


def _least_labels(  # noqa: PLR0913, PLR0917 - the numbers of a plan
    made: FinishPlan,
    more: Integers,
    wrong: Floats,
    allowed: Integers,
    alpha: float,
    cost: float,
    *,
    check_advised: bool,
) -> FinishPlan:
    """The plan with the fewest labels.

    Args:
        made: The numbers of now.
        more: Numbers of labels before the check.
        wrong: Expected number of wrong items after each of them.
        allowed: Number of wrong items that may be left after each of them.
        alpha: Error probability of the check.
        cost: Cost of an answer in the check, relative to a label.
        check_advised: As for :func:`plan_finish`.
    """
    labels, left = made.by_people, made.rows - made.by_people
    totals = more + cost * joint_answers(left - more, allowed, wrong, alpha)
    best = int(totals.argmin())
    saved = _SAVED_AFTER_ADVICE if check_advised else _SAVED
    if (1.0 - saved) * (labels + totals[0]) <= labels + totals[best]:
        best = 0
    expected = float(wrong[best])
    made = replace(made, more_labels=int(more[best]), allowed=int(allowed[best]), wrong_at_check=expected)
    return replace(made, **_check_sizes(made, left - made.more_labels, expected / max(made.wrong, 1e-12), alpha))


def _check_sizes(plan: FinishPlan, pool: int, scale: float, alpha: float) -> dict[str, Any]:
    """The typical number of answers of a check, and those at the ends of the interval."""
    expected = [plan.wrong_at_check, plan.low * scale, plan.high * scale]
    middle, first, last = map(math.ceil, joint_answers([pool] * 3, plan.allowed, expected, alpha))
    return {"check_size": middle, "check_low": min(first, middle), "check_high": max(middle, last)}
