r"""Plans for a goal about a whole data set: labels of people, a check, and predictions for the rest.

Of :math:`N` final labels, at most :math:`B` may be wrong. Labels of people count as right, so that :math:`B` of the
:math:`R` items without a label may have a wrong prediction. A check with corrections (see
:mod:`suffice.checks.sequential_terms`) proves this for the items that it leaves. It always ends, at the latest when
only :math:`B` items are left, so that every goal can be reached.
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
from suffice.presentation.text_format import count, two_digits

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# Numbers of answers of a check, and of labels before it, that are compared.
_SIZES: Final = 400
_CANDIDATES: Final = 60
#: The error falls with about this power of the number of labels: the median over models and sets of development.
CURVE_POWER: Final = 1.0 / 3.0
# A later check must save this share of all labels, or the check is now. If a check was advised before, it must save
# more.
_SAVED: Final = 0.02
_SAVED_AFTER_ADVICE: Final = 0.1


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
            f"annotator_error={annotator_error!r} leaves nothing of at_most={at_most!r} for predictions: if people "
            "label every row, as many labels are wrong; raise at_most, or ask several people for each item"
        )
    return math.floor((share - people) * whole(rows, "rows", least=0))


def joint_answers(pool: ArrayLike, allowed: int, wrong: ArrayLike, alpha: float) -> Floats:
    r"""The typical number of answers of a check that corrects the items that it finds wrong.

    With a share :math:`e` of wrong items among :math:`R`, about :math:`e t` of the first :math:`t` answers are wrong.
    The proof needs, by a normal approximation, with :math:`p = (B + 1 + e t) / R` and :math:`f = 1 - t / R`,

    .. math:: t \Bigl(\frac{B + 1}{R} - e f\Bigr) \ge z_\alpha \sqrt{t \, p (1 - p) f},

    and at least as many answers as without a wrong one. The check ends when :math:`B` items are left.

    Args:
        pool: ``R``, numbers of items.
        allowed: ``B``, the number of wrong items that may be left.
        wrong: Expected numbers of wrong items, as many as ``pool``.
        alpha: Error probability of the check.

    Examples:
        >>> joint_answers([3000, 3000, 3000], 150, [60, 120, 200], 0.025).round(-1).tolist()
        [180.0, 560.0, 1260.0]
    """
    from scipy.special import ndtri  # takes as long to import as the rest, and is not always needed

    size = np.atleast_1d(np.asarray(pool, dtype=np.float64))[:, None]
    error = np.clip(np.atleast_1d(np.asarray(wrong, dtype=np.float64))[:, None] / np.maximum(size, 1.0), 0.0, 1.0)
    last = np.maximum(size - allowed, 0.0)
    # From one answer to the last one, in equal ratios.
    answers = np.maximum(last, 1.0) ** np.linspace(0.0, 1.0, _SIZES)
    left = np.clip(1.0 - answers / np.maximum(size, 1.0), 0.0, 1.0)
    share = np.clip((allowed + 1.0 + error * answers) / np.maximum(size, 1.0), 0.0, 1.0)
    margin = max(0.0, -float(ndtri(alpha))) * np.sqrt(answers * share * (1.0 - share) * left)
    enough = answers * ((allowed + 1.0) / np.maximum(size, 1.0) - error * left) >= margin
    with np.errstate(divide="ignore"):
        least = math.log(alpha) / np.log1p(-np.minimum((allowed + 1.0) / np.maximum(size, 1.0), 1.0 - 1e-12))
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

    Examples:
        >>> print(plan_finish(0.05, [0.4] * 300 + [0.02] * 1700, by_people=200, alpha=0.025, low=0.05, high=0.1))
        200 labels by people so far, about 240 more and a check of about 140 (95 to 180); then 1,600 labels are
        predictions.
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
        """The plan as JSON values, with derived values and its printed sentence."""
        derived = {name: getattr(self, name) for name in ("by_people_at_end", "predicted", "check_now")}
        return {**asdict(self), **derived, "sentence": str(self)}

    def __str__(self) -> str:
        so_far = f"{count(self.by_people, 'label')} by people so far"
        size, low, high = (two_digits(each) for each in (self.check_size, self.check_low, self.check_high))
        check = f"a check of about {size:,} ({low:,} to {high:,})"
        if not self.check_size:
            check = "no check"
        parts = f"{check} now" if self.check_now else f"about {two_digits(self.more_labels):,} more and {check}"
        one = self.predicted == 1
        then = f"then {count(two_digits(self.predicted), 'label')} {'is a prediction' if one else 'are predictions'}"
        return f"{so_far}, {parts}; {then}.".replace("\u00a0", " ")


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
    mean = float(probable.mean()) if len(probable) else 0.0
    ends = mean if low is None else low, mean if high is None else high
    made = FinishPlan(float(at_most), rows, labels, allowed, mean * left, ends[0] * left, ends[1] * left, 0, 0, 0, 0)
    if allowed >= left:
        return made
    more = np.unique(np.round(np.geomspace(1.0, left - allowed, _CANDIDATES)).astype(np.int64))
    more = np.concatenate([[0], more[more < left]])
    # Expected number of wrong predictions after the most doubtful items are labelled.
    places = np.minimum(np.round(more * (len(probable) / left)).astype(np.int64), len(probable))
    rising = np.concatenate([[0.0], np.cumsum(probable)])
    wrong = (rising[-1] - rising[places]) * (left / len(probable))
    if labels:
        wrong *= (labels / (labels + more)) ** CURVE_POWER
    answers = joint_answers(left - more, allowed, wrong, level)
    totals = more + cost * answers
    best = int(totals.argmin())
    saved = _SAVED_AFTER_ADVICE if check_advised else _SAVED
    if (1.0 - saved) * (labels + totals[0]) <= labels + totals[best]:
        best = 0
    made = replace(made, more_labels=int(more[best]), wrong_at_check=float(wrong[best]))
    return replace(made, **_check_sizes(made, left - made.more_labels, wrong[best] / max(mean * left, 1e-12), level))


def _check_sizes(plan: FinishPlan, pool: int, scale: float, alpha: float) -> dict[str, int]:
    """The typical number of answers of a check, and those at the ends of the interval."""
    expected = [plan.wrong_at_check, plan.low * scale, plan.high * scale]
    middle, first, last = map(math.ceil, joint_answers([pool] * 3, plan.allowed, expected, alpha))
    return {"check_size": middle, "check_low": min(first, middle), "check_high": max(middle, last)}
