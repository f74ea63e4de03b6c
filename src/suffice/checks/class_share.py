r"""How common a class is in a pool: exact limits from a random check.

Of :math:`M` items, :math:`T` belong to the class, and :math:`k` of :math:`m` checked ones. Two forms, of which one is
chosen before the draw:

- *Pooled*: :math:`L(\alpha/2; M, m, k) \le T \le U(\alpha/2; M, m, k)`, with the hypergeometric bounds of
  :mod:`suffice.checks.hypergeometric`.
- *Split by prediction*: the items that are predicted as the class and the others have limits of their own, at
  :math:`\alpha/4` each, and the limits are added. This is narrower only if the predictions are accurate and the class
  is common.

An item that cannot be labelled may or may not belong to the class: it counts as not of the class in :math:`L`, and as
of the class in :math:`U`.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Final

from numpy.typing import ArrayLike

from suffice.arguments import whole
from suffice.checks.guarantee import known_fields
from suffice.checks.hypergeometric import check_counts, exact_share, lower_bound, probability, upper_bound
from suffice.checks.planner import first_not, pool_size
from suffice.checks.random_check import (
    Check,
    Label,
    complete_evidence,
    require_fixed_size,
    require_possible,
    values_by_item,
)
from suffice.errors import InvalidValueError
from suffice.presentation.html_parts import card
from suffice.presentation.prediction_words import share_evidence, share_plan_sentence, share_sentence

# Numbers that follow from the counts, in the JSON form.
_DERIVED: Final = ("least", "most", "low", "high", "rows")
# A search for a size that has not ended after this number of intervals continues by bisection.
_MOST_INTERVALS: Final = 200


@dataclass(frozen=True)
class SharePart:
    """A part of a pool, and the items of it that a check contains.

    Attributes:
        pool: Number of items in the part.
        checked: Number of them in the check.
        found: Number of these that belong to the class.
        unlabelable: Number of the checked items that could not be labelled.

    Examples:
        >>> SharePart(pool=600, checked=40, found=38)
        SharePart(pool=600, checked=40, found=38, unlabelable=0)
    """

    pool: int
    checked: int
    found: int
    unlabelable: int = 0

    def __post_init__(self) -> None:
        for name in ("pool", "checked", "found", "unlabelable"):
            whole(getattr(self, name), name, least=0)
        check_counts(self.found + self.unlabelable, self.checked, self.pool, what="found and unlabelable together")


@dataclass(frozen=True)
class ClassShare:
    r"""How common a class is in a pool, with the stated confidence.

    Use one of the constructors, :meth:`of_counts` and :meth:`of_check`.

    Attributes:
        class_name: The class.
        parts: The whole pool; or, if the limits are split by prediction, the items that are predicted as the class, and
            the others.
        alpha: Probability with which the statement may be false, that of both limits together.
        confidence: The confidence that is stated.
        labelled_before: Number of items outside the pool that people labelled before; the statement includes these.
        found_before: Number of them that belong to the class.
        number: Number of the check among all checks of these items, from 1.
        model: Name of the model or of its predictions, if the limits are split.

    Examples:
        >>> share = ClassShare.of_counts("spam", found=24, checked=200, pool=4600, found_before=90, labelled_before=400)
        >>> print(share)
        Between 455 and 881 of the 5,000 items (9.1 to 17.7 %) belong to class 'spam' (95 % confidence).
        >>> share.least, share.most, share.high
        (455, 881, 0.1762)
    """

    class_name: str
    parts: tuple[SharePart, ...]
    alpha: float
    confidence: float
    labelled_before: int = 0
    found_before: int = 0
    number: int = 1
    model: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.class_name, str) or not isinstance(self.model, str):
            raise InvalidValueError(
                f"class_name and model must be texts, not {self.class_name!r} and {self.model!r}; convert them with str"
            )
        if len(self.parts) not in (1, 2) or not all(isinstance(part, SharePart) for part in self.parts):
            raise InvalidValueError(f"parts must be one or two SharePart, not {self.parts!r}")
        probability(self.confidence, "confidence")
        if self.confidence > 1.0 - probability(self.alpha, "alpha") + 1e-12:
            raise InvalidValueError(
                f"confidence must be at most 1 - alpha = {1.0 - self.alpha!r}, not {self.confidence!r}"
            )
        whole(self.number, "number", least=1)
        before = whole(self.labelled_before, "labelled_before", least=0)
        if whole(self.found_before, "found_before", least=0) > before:
            raise InvalidValueError(f"found_before must be at most labelled_before={before}, not {self.found_before!r}")
        if not self.pool:
            raise InvalidValueError("parts must have at least one item; label nothing, and count the known items")
        object.__setattr__(self, "parts", tuple(self.parts))

    @classmethod
    def of_counts(  # noqa: PLR0913 - keyword arguments with defaults
        cls,
        class_name: str,
        found: int,
        checked: int,
        pool: int,
        *,
        alpha: float = 0.05,
        confidence: float | None = None,
        unlabelable: int = 0,
        labelled_before: int = 0,
        found_before: int = 0,
    ) -> "ClassShare":
        """Pooled limits from the counts of a random sample.

        Args:
            class_name: The class.
            found: ``k``, the number of items of the class in the sample.
            checked: ``m``, the size of the sample, with items that could not be labelled.
            pool: ``M``, the number of items from which it was drawn.
            alpha: Probability with which the statement may be false.
            confidence: The confidence that is stated; ``1 - alpha`` if left out.
            unlabelable: Number of items of the sample that could not be labelled.
            labelled_before: Number of items outside the pool that people labelled before.
            found_before: Number of them that belong to the class.

        Raises:
            InvalidValueError: An argument is out of range.
        """
        part = SharePart(pool, checked, found, unlabelable)
        stated = 1.0 - probability(alpha, "alpha") if confidence is None else confidence
        return cls(class_name, (part,), alpha, stated, labelled_before, found_before)

    @classmethod
    def of_check(  # noqa: PLR0913 - keyword arguments with defaults
        cls,
        check: Check,
        class_name: Label,
        *,
        predictions: Mapping[int, Any] | Sequence[Any] | ArrayLike | None = None,
        predicted: int | None = None,
        labelled_before: int = 0,
        found_before: int = 0,
        parts: int = 1,
        model: str = "",
    ) -> "ClassShare":
        """Limits from a check: pooled, or split by prediction if ``predictions`` are given.

        Decide between both before the first answer. :func:`plan_share` computes the number of labels for each.

        Args:
            check: A complete check of fixed size, whose answers are the true classes.
            class_name: The class.
            predictions: For limits that are split: predictions that were fixed before the draw, by item or in the order
                of ``check.items``.
            predicted: Number of items of the pool that are predicted as the class; required with ``predictions``.
            labelled_before: Number of items outside the pool that people labelled before.
            found_before: Number of them that belong to the class.
            parts: Number of statements that this check is used for; each gets its part of ``check.alpha_spent``.
            model: Name of the model or of its predictions.

        Raises:
            InvalidTypeError: ``check`` is not a check.
            InvalidValueError: The check is sequential or not complete, or an argument is out of range.

        Examples:
            >>> check = Check(tuple(range(8)), pool=40, alpha=0.4).tell({item: "ham" for item in range(6)})
            >>> check = check.tell({6: "spam"}).cannot_label([7])
            >>> print(ClassShare.of_check(check, "spam"))
            Between 1 and 20 of the 40 items (2 to 50 %) belong to class 'spam' (60 % confidence).
            >>> guessed = ["ham"] * 6 + ["spam"] * 2
            >>> print(ClassShare.of_check(check, "spam", predictions=guessed, predicted=5))
            Between 1 and 17 of the 40 items (2 to 43 %) belong to class 'spam' (60 % confidence).
        """
        require_fixed_size(check, "for the share of a class")
        if (predictions is None) != (predicted is None):
            raise InvalidValueError("predictions and predicted must be given together, or neither")
        _, alpha, _ = complete_evidence(check, [None] * check.size, parts, "wrong", model)
        chosen: list[list[int]] = [list(check.items)]
        pools = [check.pool]
        if predictions is not None and predicted is not None:
            values = values_by_item(check, predictions)
            inside = [item for item in check.items if values[item] == class_name]
            require_possible(check, predicted, len(inside))
            chosen = [inside, [item for item in check.items if values[item] != class_name]]
            pools = [predicted, check.pool - predicted]
        made = tuple(
            SharePart(
                size,
                len(items),
                sum(item in check.labels and check.labels[item] == class_name for item in items),
                sum(item in check.unlabelable for item in items),
            )
            for items, size in zip(chosen, pools, strict=True)
        )
        before = labelled_before, found_before
        return cls(str(class_name), made, alpha, 1.0 - check.alpha, *before, check.number, model)

    # What is guaranteed.

    @property
    def split(self) -> bool:
        """Whether the limits are split by prediction."""
        return len(self.parts) == 2

    @property
    def pool(self) -> int:
        """``M``, the number of items from which the check was drawn."""
        return sum(part.pool for part in self.parts)

    @property
    def checked(self) -> int:
        """``m``, the number of items in the check."""
        return sum(part.checked for part in self.parts)

    @property
    def found(self) -> int:
        """``k``, the number of items of the class in the check."""
        return sum(part.found for part in self.parts)

    @property
    def unlabelable(self) -> int:
        """Number of items of the check that could not be labelled."""
        return sum(part.unlabelable for part in self.parts)

    @property
    def rows(self) -> int:
        """How many items the statement is about, those of the pool and those labelled before it."""
        return self.pool + self.labelled_before

    @property
    def _alpha_of_limit(self) -> float:
        return self.alpha / (2 * len(self.parts))

    @cached_property
    def least(self) -> int:
        """Lower limit of the number of items of the class."""
        alpha = self._alpha_of_limit
        limits = (lower_bound(part.found, part.checked, part.pool, alpha) for part in self.parts)
        return self.found_before + sum(limits)

    @cached_property
    def most(self) -> int:
        """Upper limit of the number of items of the class."""
        alpha = self._alpha_of_limit
        limits = (upper_bound(part.found + part.unlabelable, part.checked, part.pool, alpha) for part in self.parts)
        return self.found_before + sum(limits)

    @property
    def low(self) -> float:
        """Lower limit of the share of the class."""
        return self.least / self.rows

    @property
    def high(self) -> float:
        """Upper limit of the share of the class."""
        return self.most / self.rows

    # Sentences.

    def __str__(self) -> str:
        names = ("least", "most", "rows", "class_name", "confidence", "number")
        return share_sentence({name: getattr(self, name) for name in names})

    @property
    def evidence(self) -> str:
        """The sample behind the statement, in sentences."""
        names = ("pool", "checked", "found", "unlabelable", "split", "labelled_before", "found_before", "model")
        return share_evidence({name: getattr(self, name) for name in names})

    def _repr_html_(self) -> str:
        """The statement and its evidence, for notebooks."""
        return card(str(self), [("evidence", self.evidence)], tone="stop")

    # JSON.

    def to_dict(self) -> dict[str, Any]:
        """Return the share as JSON values, with its statement and limits for other programs.

        Examples:
            >>> share = ClassShare.of_counts("spam", found=24, checked=200, pool=4600)
            >>> share.to_dict()["least"], ClassShare.from_dict(share.to_dict()) == share
            (365, True)
        """
        values = {**asdict(self), "parts": [asdict(part) for part in self.parts]}
        return {**values, "statement": str(self), **{name: getattr(self, name) for name in _DERIVED}}

    @staticmethod
    def from_dict(saved: Mapping[str, Any]) -> "ClassShare":
        """Restore a share from :meth:`to_dict`.

        Args:
            saved: The result of :meth:`to_dict`.

        Raises:
            InvalidValueError: A field is missing, unknown or out of range, or a saved limit does not follow from the
                saved counts.
        """
        values = known_fields(ClassShare, saved, derived={"statement", *_DERIVED})
        if not isinstance(values["parts"], Sequence) or isinstance(values["parts"], str):
            raise InvalidValueError("parts of a saved ClassShare must be a list")
        values["parts"] = tuple(SharePart(**known_fields(SharePart, part)) for part in values["parts"])
        share = ClassShare(**values)
        for name in ("least", "most"):
            if saved.get(name, getattr(share, name)) != getattr(share, name):
                raise InvalidValueError(f"{name} must be {getattr(share, name)}, by the counts, not {saved[name]!r}")
        return share


@dataclass(frozen=True)
class SharePlan:
    """The size of a check for the share of a class.

    Attributes:
        labels: Least size of which the limits are so close, for the typical number of items of the class.
        width: Largest distance between the limits, as a share of the pool.
        expected: Expected share of the class.
        pool: Number of items.
        alpha: Probability with which the statement may be false.
        predicted: For limits that are split by prediction, the number of items that are predicted as the class.
        right: Expected number of these that belong to it.

    Examples:
        >>> plan_share(0.05, expected=0.5, pool=2000).labels
        872
    """

    labels: int
    width: float
    expected: float
    pool: int
    alpha: float
    predicted: int | None = None
    right: int | None = None

    def __str__(self) -> str:
        return share_plan_sentence(asdict(self))


def plan_share(  # noqa: PLR0913 - keyword arguments with defaults
    width: float,
    expected: float,
    pool: int,
    *,
    alpha: float = 0.05,
    predicted: int | None = None,
    right: int | None = None,
) -> SharePlan:
    r"""Number of labels that a check takes for limits of the share of a class that are close enough.

    The plan's ``labels`` is the least :math:`m` at which :math:`U - L \le` ``width`` :math:`\cdot M` for the typical
    number of items of the class in the check, which is the mean, rounded. The limits are exact. About half of all
    checks have limits that are slightly farther apart. If a check takes many thousands of labels, the plan can be
    slightly larger than the least size.

    With ``predicted`` and ``right`` the plan is for limits that are split by prediction. Compare both plans before the
    draw, and decide then. The plan assumes that the check contains predicted items in proportion.

    Args:
        width: Largest acceptable distance between the limits, as a share of the pool, above 0 and at most 1.
        expected: Expected share of the class, from 0 to 1.
        pool: ``M``, the number of items from which the check is drawn.
        alpha: Probability with which the statement may be false; for a check in a sequence, see :func:`spent_alpha`.
        predicted: Number of items of the pool that are predicted as the class, for limits that are split.
        right: Expected number of these that belong to the class.

    Raises:
        InvalidValueError: An argument is out of range.

    Examples:
        >>> print(plan_share(0.08, expected=0.2, pool=5000))
        A check of 376 of 5,000 items typically gives an interval of at most 8 percentage points for the share of the
        class (95 % confidence), if 20 % belong to it.
        >>> plan_share(0.08, expected=0.2, pool=5000, predicted=1000, right=950).labels
        148
    """
    size, level = pool_size(pool), probability(alpha, "alpha")
    distance, share = exact_share(width, "width"), exact_share(expected, "expected")
    if not distance:
        raise InvalidValueError(f"width must be a number above 0 and at most 1, not {width!r}")
    of_class = _nearest(share * size)
    parts = [(size, of_class)]
    if (predicted is None) != (right is None):
        raise InvalidValueError("predicted and right must be given together, or neither")
    if predicted is not None and right is not None:
        named, hits = whole(predicted, "predicted", least=0), whole(right, "right", least=0)
        if not (named <= size and hits <= min(named, of_class) and of_class - hits <= size - named):
            raise InvalidValueError(
                f"predicted={named} and right={hits} do not fit {of_class} items of the class among {size}; give "
                "numbers of items of the pool"
            )
        parts = [(named, hits), (size - named, of_class - hits)]
    most = math.floor(distance * size)

    def all_fail(first: int, last: int) -> bool:
        """Whether the limits are too far apart at all sizes of an interval.

        Both counts of a part, of the class and of the others, do not fall with its size, and a bound does not rise with
        the size of the sample. So no distance is below that of the counts at the first size with the last size.
        """
        return _distance(parts, size, first, last, level / (2 * len(parts))) > most

    labels = first_not(all_fail, size, _MOST_INTERVALS)
    # Without items that have no label, the distance is 0.
    return SharePlan(size if labels is None else labels, float(width), float(expected), size, level, predicted, right)


def _distance(parts: Sequence[tuple[int, int]], pool: int, first: int, last: int, alpha: float) -> int:
    """The distance between the limits at a size; of an interval of sizes, one that is not above any of theirs."""
    total, begin, end, before = 0, 0, 0, 0
    for items, of_class in parts:
        # The sizes of the parts: those of both parts together, less those of the first one.
        before += items
        fewest, most = (_nearest(Fraction(size * before, pool)) - done for size, done in ((first, begin), (last, end)))
        begin, end = begin + fewest, end + most
        if items:
            typical = _nearest(Fraction(fewest * of_class, items))
            total += upper_bound(typical, most, items, alpha) - items
            total += upper_bound(fewest - typical, most, items, alpha)
    return total


def _nearest(value: Fraction) -> int:
    """The nearest whole number; a half is rounded up."""
    return math.floor(value + Fraction(1, 2))
