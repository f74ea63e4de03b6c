r"""Accepting the predictions that are most confident, from one random check.

A check of :math:`m` of :math:`R` items is drawn, and every item has a confidence that was fixed before the draw. The
sets :math:`A_1 \subset A_2 \subset \dots` contain the items whose confidence is at least a threshold; items with the
same confidence are in the same sets. :math:`k_t` is the number of checked items in :math:`A_t` whose prediction is
wrong. There are two goals:

- *Corrected*, :func:`accept_corrected`: at most :math:`B` of the accepted items that nobody labels are wrong. The items
  that the check found wrong are corrected, and people label all items that are not accepted. Let :math:`k^*` be the
  largest :math:`k` with :math:`P[\mathrm{Hyp}(R, B + k + 1, m) \le k] \le \alpha`. The largest :math:`A_t` with
  :math:`k_t \le k^*` is accepted. This is one test, of the first :math:`B + k^* + 1` wrong items in the order of
  confidence: a false statement requires that at most :math:`k^*` of them are in the check. So all thresholds may be
  tried. A set of which at most :math:`B` items are not in the check needs no test.
- *Share*, :func:`accept_share`: at most a share :math:`\epsilon` of the accepted predictions is wrong. The largest
  :math:`A_t` is accepted for which :math:`U_s \le \epsilon |A_s|` for all sets :math:`s` from a start set to :math:`t`,
  with the bound :math:`U_s = U(\alpha; |A_s|, m_s, k_s)`. A false statement requires that the first set with too many
  wrong predictions passes, and this set is fixed before the draw. If the largest set that passes were accepted without
  those before it, the statement would be false too often.

For the second goal the start set decides: it has to pass, and a set with few checked items rarely does. More sets after
it cost little. Mean share of the items that are accepted, for :math:`R = 3000`, :math:`\epsilon = 0.05`,
:math:`\alpha = 0.025` and seven forms of the error by confidence (1,000 draws each). "Possible" is the share that could
be accepted if all errors were known:

==================================  =======  =======  =======  =======
sets, as shares of all items        m = 100  m = 200  m = 400  m = 800
==================================  =======  =======  =======  =======
:func:`accepted_shares`             0.13     0.35     0.56     0.62
0.5, 0.6, ..., 1                    0.00     0.34     0.55     0.61
0.5, 0.51, ..., 1                   0.00     0.35     0.57     0.63
0.1, 0.2, ..., 1                    0.00     0.00     0.00     0.48
0.5, 1                              0.00     0.27     0.43     0.46
1                                   0.06     0.15     0.18     0.20
possible                            0.76     0.76     0.76     0.76
==================================  =======  =======  =======  =======
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, Final, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from suffice.arguments import floats, real, whole
from suffice.checks.guarantee import known_fields
from suffice.checks.hypergeometric import check_counts, exact_share, largest_count, probability, upper_bound
from suffice.checks.planner import pool_size
from suffice.checks.random_check import Check, complete_evidence, require_fixed_size
from suffice.errors import InvalidValueError
from suffice.presentation.html_parts import card
from suffice.presentation.prediction_words import accepted_evidence, accepted_sentence

Floats = NDArray[np.float64]

#: What is guaranteed about an accepted part.
AcceptanceGoal = Literal["corrected", "share"]

# The start set is at least half of all items, and the check contains about 1.1 times as many items of it as prove the
# goal if all of them are right. The other sets are larger by 5 % of all items each.
_START: Final = Fraction(1, 2)
_START_FACTOR: Final = Fraction(11, 10)
_STEPS: Final = 20

_DERIVED: Final = ("predicted", "left")


@dataclass(frozen=True)
class AcceptedPart:
    """The most confident part of the predictions, which is accepted, and what is guaranteed about it.

    Attributes:
        goal: ``"corrected"``: at most ``allowed`` of the accepted items that nobody labels are wrong. ``"share"``: at
            most ``allowed`` of all accepted predictions are wrong, which is a share ``at_most`` of them.
        pool: ``R``, the number of items from which the check was drawn.
        checked: ``m``, the number of items in the check.
        threshold: The least confidence that is accepted; None if nothing is accepted.
        accepted: Number of items with at least this confidence, those of the check included.
        accepted_checked: Number of them in the check.
        wrong: Number of these that are wrong or cannot be labelled.
        allowed: Largest number of wrong items, as for ``goal``.
        alpha: Probability with which the statement may be false.
        confidence: The confidence that is stated.
        at_most: Largest acceptable share of wrong predictions, for the goal ``"share"``.
        unlabelable: Number of the items in ``wrong`` that cannot be labelled.
        tolerance: For numbers, the largest error that is not wrong.
        number: Number of the check among all checks of these items, from 1.
        model: Name of the model or of its predictions.

    Examples:
        >>> part = AcceptedPart("share", 3000, 400, 0.8, 1500, 200, 2, allowed=75, alpha=0.025, confidence=0.95,
        ...     at_most=0.05)
        >>> part.predicted, part.left, AcceptedPart.from_dict(part.to_dict()) == part
        (1300, 1300, True)
    """

    goal: AcceptanceGoal
    pool: int
    checked: int
    threshold: float | None
    accepted: int
    accepted_checked: int
    wrong: int
    allowed: int
    alpha: float
    confidence: float
    at_most: float | None = None
    unlabelable: int = 0
    tolerance: float | None = None
    number: int = 1
    model: str = ""

    def __post_init__(self) -> None:
        _require(self.goal in get_args(AcceptanceGoal), "goal", '"corrected" or "share"', self.goal)
        for name in ("pool", "checked", "accepted", "accepted_checked", "wrong", "allowed", "unlabelable"):
            whole(getattr(self, name), name, least=0)
        check_counts(self.unlabelable, self.wrong, self.accepted_checked, what="unlabelable")
        check_counts(self.wrong, self.accepted_checked, self.accepted)
        outside = self.checked - self.accepted_checked
        _require(outside >= 0, "accepted_checked", f"at most checked={self.checked}", self.accepted_checked)
        _require(self.accepted + outside <= self.pool, "accepted", f"at most {self.pool - outside}", self.accepted)
        probability(self.confidence, "confidence")
        stated = self.confidence <= 1.0 - probability(self.alpha, "alpha") + 1e-12
        _require(stated, "confidence", f"at most 1 - alpha = {1.0 - self.alpha!r}", self.confidence)
        whole(self.number, "number", least=1)
        empty = self.threshold is None
        _require(
            empty == (self.accepted == 0), "threshold", "None if nothing is accepted, and only then", self.threshold
        )
        _require(
            (self.at_most is None) == (self.goal == "corrected"),
            "at_most",
            "a share for the goal 'share' only",
            self.at_most,
        )
        if self.threshold is not None:
            real(self.threshold, "threshold")
        if self.at_most is not None:
            most = math.floor(exact_share(self.at_most, "at_most") * self.accepted)
            _require(self.allowed == most, "allowed", f"{most}, by at_most", self.allowed)
        if not self._proven:
            raise InvalidValueError(f"{self.wrong} wrong among {self.accepted_checked} do not prove the statement")

    @property
    def _proven(self) -> bool:
        """Whether the counts can have led to this part."""
        if self.goal == "share":
            bound = upper_bound(self.wrong, self.accepted_checked, self.accepted, self.alpha)
            return self.accepted == 0 or bound <= self.allowed
        sure = self.predicted <= self.allowed
        return sure or self.wrong <= largest_count(self.allowed, self.checked, self.pool, self.alpha)

    @property
    def predicted(self) -> int:
        """Number of accepted items that nobody has labelled, so that their final label is a prediction."""
        return self.accepted - self.accepted_checked

    @property
    def left(self) -> int:
        """Number of items without a label that are not accepted, so that people have to label them."""
        return self.pool - self.checked - self.predicted

    def __str__(self) -> str:
        return accepted_sentence({**asdict(self), "predicted": self.predicted, "left": self.left})

    @property
    def evidence(self) -> str:
        """The sample behind the statement, in sentences."""
        return accepted_evidence(asdict(self))

    def _repr_html_(self) -> str:
        """The statement and its evidence, for notebooks."""
        return card(str(self), [("evidence", self.evidence)], tone="stop")

    def to_dict(self) -> dict[str, Any]:
        """Return the accepted part as JSON values, with its statement."""
        values = {name: value for name, value in asdict(self).items() if value is not None or name == "threshold"}
        return {**values, "statement": str(self), **{name: getattr(self, name) for name in _DERIVED}}

    @staticmethod
    def from_dict(saved: Mapping[str, Any]) -> "AcceptedPart":
        """Restore an accepted part from :meth:`to_dict`.

        Args:
            saved: The result of :meth:`to_dict`.

        Raises:
            InvalidValueError: A field is missing, unknown or out of range, or the counts do not prove the statement.
        """
        return AcceptedPart(**known_fields(AcceptedPart, saved, derived={"statement", *_DERIVED}))


def accept_corrected(  # noqa: PLR0913 - keyword arguments with defaults
    check: Check,
    predictions: Mapping[int, Any] | Sequence[Any] | ArrayLike,
    confidence: Mapping[int, float] | ArrayLike,
    allowed: int,
    *,
    tolerance: float | None = None,
    parts: int = 1,
    model: str = "",
) -> AcceptedPart:
    r"""Accept the most confident predictions so that at most a number of those that nobody labels are wrong.

    The items that the check found wrong get their right labels, and people label all items that are not accepted. An
    item of the check that cannot be labelled counts as wrong. It has no label: the statement is about the accepted
    items outside the check.

    Args:
        check: A complete check of fixed size, drawn from all items without a label.
        predictions: Predictions that were fixed before the draw: by item, or in the order of ``check.items``.
        confidence: The confidence of every item of the pool, fixed before the draw: by item, or in a series if the
            items of the pool are 0, 1, ..., R - 1. Any numbers, of which larger ones mean more confidence.
        allowed: ``B``, the largest number of wrong labels, fixed before the draw. For a share of all final labels, see
            :func:`allowed_wrong`.
        tolerance: For numbers, the largest error that is not wrong.
        parts: Number of statements that this check is used for; each gets its part of ``check.alpha_spent``.
        model: Name of the model or of its predictions.

    Raises:
        InvalidTypeError: The check or the confidence is of the wrong type.
        InvalidValueError: The check is sequential or not complete, or an argument is out of range.

    Examples:
        >>> confidence = [1.0 - item / 1000 for item in range(1000)]
        >>> check = Check(tuple(range(5, 1000, 10)), pool=1000)
        >>> check = check.tell({item: "a" for item in check.items})
        >>> predictions = ["a" if item < 700 else "b" for item in check.items]
        >>> print(accept_corrected(check, predictions, confidence, allowed=50))
        Of the 635 items with a confidence of at least 0.296 that are not in the check, at most 50 are predicted wrong
        (95 % confidence). 265 items are left for people. If people label them, at most 50 of all 1,000 labels are
        wrong.
    """
    sample = _Sample.of_check(check, predictions, confidence, tolerance=tolerance, parts=parts, model=model)
    most = whole(allowed, "allowed", least=0)
    limit = largest_count(most, check.size, check.pool, sample.alpha)
    # Confidences that are not accepted: that of the first wrong item that is one too many, and lower ones. As many
    # items as may be wrong are accepted in any case.
    tested = math.inf if limit < 0 else _place(sample.checked[sample.faults], limit)
    return sample.part("corrected", min(tested, _place(sample.unchecked, most)), allowed=most)


def accept_share(  # noqa: PLR0913 - keyword arguments with defaults
    check: Check,
    predictions: Mapping[int, Any] | Sequence[Any] | ArrayLike,
    confidence: Mapping[int, float] | ArrayLike,
    at_most: float,
    *,
    shares: Sequence[float] | None = None,
    tolerance: float | None = None,
    parts: int = 1,
    model: str = "",
) -> AcceptedPart:
    r"""Accept the most confident predictions so that at most a share of the accepted ones is wrong.

    The statement is about all accepted predictions as they are, those of the check included.

    Args:
        check: A complete check of fixed size, drawn from all items without a label.
        predictions: Predictions that were fixed before the draw: by item, or in the order of ``check.items``.
        confidence: As for :func:`accept_corrected`.
        at_most: Largest acceptable share of wrong predictions among the accepted ones. It is taken as the decimal
            number that it prints as.
        shares: The sets to try, as rising shares of all items, fixed before the draw; the first is the start set, which
            has to pass. :func:`accepted_shares` if left out.
        tolerance: For numbers, the largest error that is not wrong.
        parts: Number of statements that this check is used for; each gets its part of ``check.alpha_spent``.
        model: Name of the model or of its predictions.

    Raises:
        InvalidTypeError: The check or the confidence is of the wrong type.
        InvalidValueError: The check is sequential or not complete, or an argument is out of range.

    Examples:
        >>> confidence = [1.0 - item / 1000 for item in range(1000)]
        >>> check = Check(tuple(range(5, 1000, 10)), pool=1000)
        >>> check = check.tell({item: "a" for item in check.items})
        >>> predictions = ["a" if item < 700 else "b" for item in check.items]
        >>> print(accept_share(check, predictions, confidence, at_most=0.08))
        Of the 700 items with a confidence of at least 0.301, at most 8 % are predicted wrong (95 % confidence). 270
        items are left for people.
    """
    sample = _Sample.of_check(check, predictions, confidence, tolerance=tolerance, parts=parts, model=model)
    limit = exact_share(at_most, "at_most")
    if shares is None:
        shares = accepted_shares(check.size, check.pool, at_most, alpha=sample.alpha)
    sizes = [exact_share(share, "shares") for share in shares]
    if not sizes or any(later <= earlier for earlier, later in pairwise([Fraction(0), *sizes])):
        raise InvalidValueError(f"shares must be at least one share above 0, rising, not {tuple(shares)!r}")
    falling = np.sort(np.concatenate([sample.checked, sample.unchecked]))[::-1]
    accepted = math.inf
    for share in sizes:
        threshold = float(falling[math.ceil(share * check.pool) - 1])
        items = int(np.searchsorted(-falling, -threshold, side="right"))
        inside = sample.checked >= threshold
        bound = upper_bound(int(np.sum(sample.faults & inside)), int(inside.sum()), items, sample.alpha)
        if bound > math.floor(limit * items):
            break
        accepted = threshold
    below = falling[falling < accepted]
    return sample.part("share", float(below[0]) if len(below) else -math.inf, at_most=float(at_most))


def accepted_shares(checked: int, pool: int, at_most: float, *, alpha: float) -> tuple[float, ...]:
    """The sets that :func:`accept_share` tries, as shares of all items.

    The start set is half of all items, or more: it should contain 1.1 times as many items of the check as prove the
    goal if all of them are right. The other sets are larger by 5 % of all items each.

    Args:
        checked: Size of the check.
        pool: Number of items from which it is drawn.
        at_most: Largest acceptable share of wrong predictions among the accepted ones.
        alpha: Error probability of the statement.

    Examples:
        >>> accepted_shares(400, 3000, 0.05, alpha=0.025)
        (0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0)
        >>> accepted_shares(100, 3000, 0.05, alpha=0.025)
        (0.8, 0.85, 0.9, 0.95, 1.0)
    """
    items, size = pool_size(pool), whole(checked, "checked", least=1)
    allowed = math.floor(exact_share(at_most, "at_most") * items)
    # The largest sample without a wrong item that does not prove the goal: the distribution is symmetric in its sizes.
    needed = 0 if allowed >= items else upper_bound(0, allowed + 1, items, probability(alpha, "alpha")) + 1
    start = min(Fraction(1), max(_START, _START_FACTOR * needed / size))
    return tuple(step / _STEPS for step in range(math.ceil(start * _STEPS), _STEPS + 1))


@dataclass(frozen=True)
class _Sample:
    """The confidences of a pool, and the answers of a check of it.

    Attributes:
        check: The check.
        checked: Confidence of each item of the check.
        unchecked: Confidence of each other item of the pool.
        faults: Whether the prediction of each item of the check is wrong, or it cannot be labelled.
        alpha: Error probability of the statement.
        tolerance: For numbers, the largest error that is not wrong.
        model: Name of the model.
    """

    check: Check
    checked: Floats
    unchecked: Floats
    faults: NDArray[np.bool_]
    alpha: float
    tolerance: float | None
    model: str

    @staticmethod
    def of_check(  # noqa: PLR0913 - the arguments of both functions
        check: Check, predictions: Any, confidence: Any, *, tolerance: float | None, parts: int, model: str
    ) -> "_Sample":
        require_fixed_size(check, "to accept a part of the predictions")
        _, alpha, _ = complete_evidence(check, predictions, parts, "wrong", model)
        faults = check.faults(predictions, tolerance=tolerance)
        checked, unchecked = _confidences(check, confidence)
        wrong = np.array([faults[item] for item in check.items], dtype=bool)
        return _Sample(check, checked, unchecked, wrong, alpha, tolerance, model)

    def part(
        self, goal: AcceptanceGoal, above: float, *, allowed: int | None = None, at_most: float | None = None
    ) -> AcceptedPart:
        """The part with all items whose confidence is above a number."""
        inside = self.checked > above
        values = np.concatenate([self.checked[inside], self.unchecked[self.unchecked > above]])
        if allowed is None:
            allowed = math.floor(exact_share(at_most, "at_most") * len(values))
        absent = np.array([item in self.check.unlabelable for item in self.check.items])
        return AcceptedPart(
            goal,
            self.check.pool,
            self.check.size,
            float(values.min()) if len(values) else None,
            len(values),
            int(inside.sum()),
            int(np.sum(self.faults & inside)),
            allowed,
            self.alpha,
            1.0 - self.check.alpha,
            at_most,
            int(np.sum(absent & inside)),
            self.tolerance,
            self.check.number,
            self.model,
        )


def _place(values: Floats, place: int) -> float:
    """The largest number but so many; minus infinity if there are not so many."""
    return float(np.sort(values)[::-1][place]) if place < len(values) else -math.inf


def _confidences(check: Check, confidence: Any) -> tuple[Floats, Floats]:
    """Confidences of the items of a check, and of the other items of its pool."""
    if isinstance(confidence, Mapping):
        if missing := [item for item in check.items if item not in confidence]:
            raise InvalidValueError(f"confidence must cover every item of the check; {missing[0]} is missing")
        drawn = set(check.items)
        checked = floats([confidence[item] for item in check.items], "confidence")
        others = floats([value for item, value in confidence.items() if item not in drawn], "confidence")
    else:
        values = floats(confidence, "confidence")
        if values.ndim != 1 or len(values) <= max(check.items):
            raise InvalidValueError(
                f"confidence must be a series that covers item {max(check.items)} of the check; give a mapping of "
                "items to confidences if the items of the pool are not 0, 1, 2, ..."
            )
        checked = values[list(check.items)]
        others = np.delete(values, list(check.items))
    if len(checked) + len(others) != check.pool:
        raise InvalidValueError(
            f"confidence must be given for each of the {check.pool:,} items from which the check was drawn, not for "
            f"{len(checked) + len(others):,}"
        )
    if not (np.isfinite(checked).all() and np.isfinite(others).all()):
        raise InvalidValueError("confidence must be finite numbers; give items without one the lowest confidence")
    return checked, others


def _require(holds: bool, name: str, requirement: str, value: Any) -> None:
    if not holds:
        raise InvalidValueError(f"{name} must be {requirement}, not {value!r}")
