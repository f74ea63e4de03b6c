"""Guarantees: statements about unlabelled items that a check proves, with their evidence."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Final, Literal, TypedDict, Unpack, get_args

import numpy as np
from numpy.typing import ArrayLike

from suffice.arguments import floats, real, whole
from suffice.checks.hypergeometric import check_counts, largest_count, lower_bound, probability, upper_bound
from suffice.checks.planner import plan
from suffice.checks.sequential_terms import SequentialTerms
from suffice.errors import InvalidValueError
from suffice.presentation.html_parts import card
from suffice.presentation.text_format import count, number_at_most, percent_at_least, percent_at_most

#: What a guarantee can be about.
Quantity = Literal["error", "within", "tolerance", "recall", "precision"]
#: How an item of the check that cannot be labelled counts: as a wrong prediction, or not at all.
UnlabelableAs = Literal["wrong", "excluded"]

_FORMAT: Final = 1


class Circumstances(TypedDict, total=False):
    """The parts of a guarantee other than its counts; see :class:`Guarantee`."""

    confidence: float
    model: str
    unlabelable: int
    unlabelable_as: UnlabelableAs
    corrections: int
    wrong_at_first: int | None
    number: int
    group: str | None


@dataclass(frozen=True)
class PredictedItems:
    """The unlabelled items that are predicted as a class, and those of them that a check contains.

    Attributes:
        pool: Number of unlabelled items that are predicted as the class.
        checked: Number of them in the check.
        right: Number of these that belong to the class.
        excluded: Number of items that are left out of ``pool`` and ``checked``, because they could not be labelled.
    """

    pool: int
    checked: int
    right: int
    excluded: int = 0


@dataclass(frozen=True)
class Guarantee:
    r"""A statement about unlabelled items that a random check proves.

    The statement holds with probability at least ``1 - alpha``. It is about the predictions of one frozen model for
    the items that were unlabelled when the check was drawn; it is about no other model and no other items. Use one of
    the constructors: :meth:`of_error`, :meth:`of_recall`, :meth:`of_precision`, :meth:`within` and
    :meth:`of_tolerance`.

    Attributes:
        quantity: What is guaranteed: ``"error"``, the share of wrong predictions; ``"within"``, the share of
            predictions that are off by more than a given tolerance; ``"tolerance"``, the tolerance that at most a given
            share of the predictions exceeds; ``"recall"`` or ``"precision"`` of a class.
        pool: ``M``, the number of unlabelled items from which the sample was drawn: all of them; for the precision of a
            class, those predicted as the class; for its recall, those that do not count as found.
        checked: ``m``, the number of items in the sample.
        wrong: ``k``, the number of wrong items in the sample: wrong predictions; for the recall of a class, its items
            that only the check found.
        alpha: Probability with which the bound may fail.
        confidence: The confidence that is stated; ``1 - alpha``, or less if several checks share one error probability.
        model: Name of the model or of its predictions.
        unlabelable: Number of items in the sample that could not be labelled.
        unlabelable_as: How these count: as ``"wrong"``, or ``"excluded"``, which means that an item that cannot be
            labelled is not wrong.
        class_name: The class, for recall and precision.
        tolerance: Largest acceptable distance between prediction and truth, for ``"within"`` and ``"tolerance"``.
        share: The share that was fixed in advance, for ``"tolerance"``.
        found: Number of items of the class that annotators had found before the check, for recall.
        predicted: The items predicted as the class, for recall if these count as found too.
        allowed: ``B``, for a sequential check: the number of wrong items that was fixed before its first answer. What
            is proven is that at most so many are wrong, whatever the sample contains.
        corrected: For a sequential check, whether the items that it found wrong are corrected. Then at most ``allowed``
            of the other items are wrong.
        corrections: Number of answers that were corrected after they had been given.
        wrong_at_first: ``k`` with the first answer of each item, if the corrections changed it; see :attr:`at_first`.
        number: Number of the check among all checks of these items, from 1.
        group: Name of the group that the items belong to, for one of several statements about groups of items; see
            :func:`suffice.checks.by_group`.

    Examples:
        >>> guarantee = Guarantee.of_error(wrong=2, checked=200, pool=4818)
        >>> print(guarantee)
        At most 3.2 % of the predictions for the 4,618 unlabelled items are wrong (95 % confidence).
        >>> guarantee.wrong_at_most, round(guarantee.value, 4), round(guarantee.value_for_all, 4)
        (147, 0.0314, 0.0305)
    """

    quantity: Quantity
    pool: int
    checked: int
    wrong: int
    alpha: float
    confidence: float
    model: str = ""
    unlabelable: int = 0
    unlabelable_as: UnlabelableAs = "wrong"
    class_name: str | None = None
    tolerance: float | None = None
    share: float | None = None
    found: int | None = None
    predicted: PredictedItems | None = None
    allowed: int | None = None
    corrected: bool = False
    corrections: int = 0
    wrong_at_first: int | None = None
    number: int = 1
    group: str | None = None

    def __post_init__(self) -> None:
        _require(
            self.quantity in get_args(Quantity), "quantity", f"one of {', '.join(get_args(Quantity))}", self.quantity
        )
        for name in ("pool", "checked", "wrong", "unlabelable"):
            whole(getattr(self, name), name, least=0)
        check_counts(self.wrong + self.unlabelable, self.checked, self.pool, what="wrong and unlabelable together")
        probability(self.alpha, "alpha")
        probability(self.confidence, "confidence")
        # A confidence computed as 1 - alpha may be rounded.
        stated = self.confidence <= 1.0 - self.alpha + 1e-12
        _require(stated, "confidence", f"at most 1 - alpha = {1.0 - self.alpha!r}", self.confidence)
        _require(isinstance(self.model, str), "model", "a text", self.model)
        as_known = self.unlabelable_as in get_args(UnlabelableAs)
        _require(as_known, "unlabelable_as", '"wrong" or "excluded"', self.unlabelable_as)
        for name, needed_by in _NEEDED_BY.items():
            value = getattr(self, name)
            if self.quantity not in needed_by:
                _require(value is None, name, f"None for {self.quantity!r}", value)
            elif name != "predicted":
                _VALIDATED[name](value)
        if self.predicted is not None:
            sample = self.predicted
            for name in ("pool", "checked", "right", "excluded"):
                whole(getattr(sample, name), f"predicted.{name}", least=0)
            check_counts(sample.right, sample.checked, sample.pool, what="predicted.right")
        whole(self.corrections, "corrections", least=0)
        whole(self.number, "number", least=1)
        if self.wrong_at_first is not None:
            first = whole(self.wrong_at_first, "wrong_at_first", least=0)
            check_counts(first, self.checked, self.pool, what="wrong_at_first")
        if self.group is not None:
            _require(isinstance(self.group, str), "group", "a text", self.group)
            about_error = self.upper and self.allowed is None
            _require(about_error, "group", "None for recall, precision and sequential checks", self.group)
        if self.allowed is not None:
            whole(self.allowed, "allowed", least=0)
            _require(self.unlabelable_as == "wrong", "unlabelable_as", '"wrong" for a sequential check', "excluded")

    # Constructors.

    @classmethod
    def of_error(
        cls, wrong: int, checked: int, pool: int, *, alpha: float = 0.05, **stated: Unpack[Circumstances]
    ) -> "Guarantee":
        r"""The share of wrong predictions is at most :math:`(U(\alpha; M, m, k) - k) / (M - m)`.

        Args:
            wrong: ``k``, the number of wrong predictions in the check, among the items that could be labelled.
            checked: ``m``, the size of the check, with the items that could not be labelled.
            pool: ``M``, the number of unlabelled items from which it was drawn.
            alpha: Probability with which the bound may fail.
            **stated: ``confidence``, ``model``, ``unlabelable`` and ``unlabelable_as``, as for :class:`Guarantee`.

        Raises:
            InvalidValueError: An argument is out of range.

        Examples:
            >>> print(Guarantee.of_error(3, 100, 4600, alpha=0.025, confidence=0.95, unlabelable=1))
            At most 10 % of the predictions for the 4,500 unlabelled items are wrong (95 % confidence).
        """
        return cls(quantity="error", pool=pool, checked=checked, wrong=wrong, **_common(alpha, stated))

    @classmethod
    def of_proof(  # noqa: PLR0913 - keyword arguments with defaults
        cls,
        terms: SequentialTerms,
        wrong: int,
        checked: int,
        *,
        tolerance: float | None = None,
        class_name: str | None = None,
        found: int = 0,
        **stated: Unpack[Circumstances],
    ) -> "Guarantee":
        """What a sequential check has proven: at most ``terms.allowed`` of its items are wrong.

        Args:
            terms: The terms of the check.
            wrong: Number of wrong predictions among the answers, without those that could not be labelled. In a
                screening, number of items of the class.
            checked: Number of answers at which the target was proven.
            tolerance: For numbers, the largest error that is not wrong.
            class_name: For a screening, the class that is looked for: the check counts its items as wrong, and what is
                proven is a recall.
            found: For a screening, the number of items of the class that people had found before the check.
            **stated: ``confidence``, ``model`` and ``unlabelable``, as for :class:`Guarantee`.

        Raises:
            InvalidValueError: So many answers with so many wrong ones do not prove the target, or an argument is out of
                range.

        Examples:
            >>> terms = SequentialTerms.of_share(0.05, pool=3000, alpha=0.025, planned=100)
            >>> print(Guarantee.of_proof(terms, wrong=0, checked=87, confidence=0.95))
            At most 5 % of the predictions for the 3,000 items that were unlabelled at the start of the check are wrong
            (95 % confidence).
            >>> terms = SequentialTerms(4500, allowed=16, planned=800, alpha=0.025, corrected=True)
            >>> print(Guarantee.of_proof(terms, 0, 1100, class_name="yes", found=311, confidence=0.95))
            Annotators have found at least 95.1 % of the items of class 'yes' (95 % confidence).
        """
        counted = wrong + stated.get("unlabelable", 0)
        whole(checked, "checked", least=0)
        least = terms.limits(checked)[-1] if 0 < checked <= terms.longest else -1
        if counted > least and (checked or terms.allowed < terms.pool):
            raise InvalidValueError(f"{counted} wrong among {count(checked, 'answer')} do not prove the target")
        if class_name is not None and not terms.corrected:
            raise InvalidValueError("the terms of a screening must be those of a check with corrections")
        quantity: Quantity = "error" if tolerance is None else "within"
        return cls(
            quantity=quantity if class_name is None else "recall",
            pool=terms.pool,
            checked=checked,
            wrong=wrong,
            tolerance=tolerance,
            class_name=class_name,
            found=None if class_name is None else found,
            allowed=terms.allowed,
            corrected=terms.corrected,
            **_common(terms.alpha, stated),
        )

    @classmethod
    def of_precision(
        cls,
        class_name: str,
        wrong: int,
        checked: int,
        pool: int,
        *,
        alpha: float = 0.05,
        **stated: Unpack[Circumstances],
    ) -> "Guarantee":
        r"""The precision of a predicted class is at least :math:`1 - (U(\alpha; M, m, k) - k) / (M - m)`.

        Given how many items of a check are predicted as the class, these are a random sample of all items predicted as
        the class. Several classes share the error probability: give each its own part of ``alpha``.

        Args:
            class_name: The class.
            wrong: ``k``, the number of items among these that do not belong to the class.
            checked: ``m``, the number of items of the check that are predicted as the class.
            pool: ``M``, the number of unlabelled items that are predicted as the class.
            alpha: Probability with which the bound may fail.
            **stated: ``confidence``, ``model``, ``unlabelable`` and ``unlabelable_as``, as for :class:`Guarantee`.

        Raises:
            InvalidValueError: An argument is out of range.

        Examples:
            >>> print(Guarantee.of_precision("spam", wrong=1, checked=40, pool=640))
            At least 88 % of the 600 unlabelled items predicted as 'spam' belong to that class (95 % confidence).
        """
        common = _common(alpha, stated)
        return cls(quantity="precision", pool=pool, checked=checked, wrong=wrong, class_name=class_name, **common)

    @classmethod
    def of_recall(  # noqa: PLR0913 - keyword arguments with defaults
        cls,
        class_name: str,
        found: int,
        new: int,
        checked: int,
        pool: int,
        *,
        predicted: PredictedItems | None = None,
        alpha: float = 0.05,
        **stated: Unpack[Circumstances],
    ) -> "Guarantee":
        r"""A lower bound on the share of the items of a class that are found.

        If only the items that annotators saw count as found, the recall is at least
        :math:`(F + k) / (F + U(\alpha; M, m, k))`. If items predicted as the class count as found too, it is at least
        :math:`(F + k + L) / (F + L + U(\alpha/2; M, m, k))`, where :math:`M`, :math:`m` and :math:`k` are about the
        other items only, and :math:`L` is the lower bound, at :math:`\alpha/2`, on the number of items of the class
        among those predicted.

        Args:
            class_name: The class.
            found: ``F``, the number of its items among the labels before the check.
            new: ``k``, the number of its items that the check found in the sample of ``pool``.
            checked: ``m``, the size of that sample, with the items that could not be labelled.
            pool: ``M``, the number of unlabelled items that do not count as found: all of them, or, if ``predicted`` is
                given, those that are not predicted as the class.
            predicted: The items predicted as the class, if these count as found.
            alpha: Probability with which the guarantee may be false.
            **stated: ``confidence``, ``model``, ``unlabelable`` and ``unlabelable_as``, as for :class:`Guarantee`. An
                item of the sample that could not be labelled counts as an item of the class that is not found.

        Raises:
            InvalidValueError: An argument is out of range.

        Examples:
            >>> print(Guarantee.of_recall("relevant", found=49, new=0, checked=2526, pool=4000))
            Annotators have found at least 96 % of the items of class 'relevant' (95 % confidence).
        """
        return cls(
            quantity="recall",
            pool=pool,
            checked=checked,
            wrong=new,
            class_name=class_name,
            found=found,
            predicted=predicted,
            **_common(alpha, stated),
        )

    @classmethod
    def within(
        cls, residuals: ArrayLike, tolerance: float, pool: int, *, alpha: float = 0.05, **stated: Unpack[Circumstances]
    ) -> "Guarantee":
        r"""The share of predictions that are off by more than a tolerance is at most :math:`(U - k) / (M - m)`.

        Args:
            residuals: Truth less prediction for the items of the check that could be labelled, shape (n,).
            tolerance: Largest acceptable absolute residual, fixed in advance.
            pool: ``M``, the number of unlabelled items from which the check was drawn.
            alpha: Probability with which the bound may fail.
            **stated: ``confidence``, ``model``, ``unlabelable`` and ``unlabelable_as``, as for :class:`Guarantee`.

        Raises:
            InvalidValueError: An argument is out of range.

        Examples:
            >>> residuals = [0.3, -1.2, 0.1, 0.8] * 15
            >>> print(Guarantee.within(residuals, tolerance=1.0, pool=1060))
            At most 37 % of the predictions for the 1,000 unlabelled items are off by more than 1 (95 % confidence).
        """
        sizes = _absolute(residuals)
        limit = _tolerance(tolerance)
        return cls(
            quantity="within",
            pool=pool,
            checked=len(sizes) + stated.get("unlabelable", 0),
            wrong=int(np.count_nonzero(sizes > limit)),
            tolerance=limit,
            **_common(alpha, stated),
        )

    @classmethod
    def of_tolerance(
        cls, residuals: ArrayLike, share: float, pool: int, *, alpha: float = 0.05, **stated: Unpack[Circumstances]
    ) -> "Guarantee":
        r"""The tolerance that at most a share of the predictions exceeds.

        Let :math:`k` be the largest count with :math:`U(\alpha; M, m, k) - k \le s (M - m)`. The :math:`(k + 1)`-th
        largest absolute residual of the check is a tolerance that at most a share :math:`s` of the remaining items
        exceeds.

        Args:
            residuals: Truth less prediction for the items of the check that could be labelled, shape (n,).
            share: ``s``, fixed in advance, above 0 and below 1.
            pool: ``M``, the number of unlabelled items from which the check was drawn.
            alpha: Probability with which the guarantee may be false.
            **stated: ``confidence``, ``model``, ``unlabelable`` and ``unlabelable_as``, as for :class:`Guarantee`.

        Raises:
            InvalidValueError: An argument is out of range, or the check is too small for the share.

        Examples:
            >>> residuals = [i / 100 for i in range(100)]
            >>> print(Guarantee.of_tolerance(residuals, share=0.1, pool=4600))
            At most 10 % of the predictions for the 4,500 unlabelled items are off by more than 0.95 (95 % confidence).
        """
        common = _common(alpha, stated)
        part = probability(share, "share")
        missing = whole(stated.get("unlabelable", 0), "unlabelable", least=0)
        # An item that cannot be labelled has an infinite residual, or is left out.
        sizes = np.sort(_absolute(residuals))[::-1]
        excluded = common["unlabelable_as"] == "excluded"
        absent, far = (missing, 0) if excluded else (0, missing)
        size, sample = whole(pool, "pool", least=1) - absent, len(sizes) + far
        check_counts(0, sample, size)
        allowed = _allowed_count(part, sample, size, common["alpha"])
        if allowed < far:
            raise InvalidValueError(_too_small(part, sample, size, common["alpha"], far))
        return cls(
            quantity="tolerance",
            pool=pool,
            checked=len(sizes) + missing,
            wrong=allowed - far,
            tolerance=float(sizes[allowed - far]),
            share=part,
            **common,
        )

    # What is guaranteed.

    @property
    def remaining(self) -> int:
        """Number of items that remain unlabelled after the check, among those that it was drawn from."""
        return self.pool - self.checked

    @cached_property
    def wrong_at_most(self) -> int:
        """``U``: upper bound on the number of wrong items among all ``pool`` items, the sample included.

        If a sequential check corrects what it finds wrong, those items are not counted. For the recall of a class that
        a sequential check proves, it is the number of items of the class that nobody has found.
        """
        if self.allowed is not None and self.quantity == "recall":
            # An item that cannot be labelled counts against the proof; it was read, so that it is not missed.
            return min(self.remaining, self.allowed)
        if self.allowed is not None:
            # An item that cannot be labelled is not corrected.
            return min(self.pool, self.allowed + (self.unlabelable if self.corrected else 0))
        return upper_bound(*self._counts, self.alpha if self.predicted is None else 0.5 * self.alpha)

    @property
    def value(self) -> float:
        """The guaranteed number, about the items that remain unlabelled.

        It is the largest share of wrong predictions (``"error"``, ``"within"`` and ``"tolerance"``), the least
        precision, or the least recall. A sequential check proves a share of all its items, so that its number is about
        all of them, as :attr:`value_for_all` is.
        """
        if self.allowed is not None:
            return self.value_for_all
        return self._number(self.wrong_at_most - self._counts[0], self.remaining)

    @property
    def value_for_all(self) -> float:
        """The same number about all items that were unlabelled when the check was drawn; the same for recall."""
        return self._number(self.wrong_at_most, self._counts[2])

    @property
    def at_first(self) -> "Guarantee | None":
        """The guarantee by the first answers; None if corrections have not lowered the number of wrong ones.

        People tend to correct only the answers that disagree with the model. The corrected number may then be too low;
        this one is not.
        """
        if self.wrong_at_first is None or self.wrong_at_first <= self.wrong or self.allowed is not None:
            return None
        return replace(self, wrong=self.wrong_at_first, wrong_at_first=None)

    @property
    def all_counted(self) -> "Guarantee | None":
        """The guarantee with items that could not be labelled counted as wrong; None if these are not excluded."""
        sample = self.predicted
        absent = 0 if sample is None else sample.excluded
        if self.unlabelable_as == "wrong" or not self.unlabelable + absent:
            return None
        if sample is not None:
            sample = PredictedItems(sample.pool + absent, sample.checked + absent, sample.right)
        return replace(self, unlabelable_as="wrong", predicted=sample)

    @property
    def without_evidence(self) -> bool:
        """Whether no item was checked that counts, so that every item may be wrong."""
        return self.allowed is None and not self._counts[1]

    @property
    def upper(self) -> bool:
        """Whether :attr:`value` is an upper bound; recall and precision are bounded from below."""
        return self.quantity not in {"recall", "precision"}

    def _number(self, wrong: int, items: int) -> float:
        if self.quantity == "recall":
            return self._recall()
        share = wrong / items if items else 0.0
        return share if self.upper else 1.0 - share

    @property
    def predicted_recall(self) -> float:
        r"""For the recall of predictions that stay as they are: the least share of the class that is predicted as such.

        It is :math:`L / (L + U)`, with the bounds of :meth:`of_recall`. Unlike :attr:`value`, it does not count the
        items of the class that the check found among the others.

        Examples:
            >>> sample = PredictedItems(pool=100, checked=50, right=48)
            >>> made = Guarantee.of_recall("spam", 0, new=6, checked=40, pool=80, predicted=sample)
            >>> round(made.predicted_recall, 3), round(made.value, 3)
            (0.817, 0.872)
        """
        known = self._predicted_right
        return known / (known + self.wrong_at_most) if known + self.wrong_at_most else 1.0

    @property
    def _predicted_right(self) -> int:
        """The least number of items of the class among those predicted as it."""
        sample = self.predicted
        return 0 if sample is None else lower_bound(sample.right, sample.checked, sample.pool, 0.5 * self.alpha)

    def _recall(self) -> float:
        found = (self.found or 0) + self.wrong + self._predicted_right
        missed = self.wrong_at_most - (self.wrong if self.allowed is None else 0)
        return found / (found + missed) if found + missed else 1.0

    @property
    def _counts(self) -> tuple[int, int, int]:
        """Wrong items, sample and pool of the bound, with the items that could not be labelled taken into account."""
        if self.unlabelable_as == "wrong":
            return self.wrong + self.unlabelable, self.checked, self.pool
        return self.wrong, self.checked - self.unlabelable, self.pool - self.unlabelable

    # Sentences.

    def __str__(self) -> str:
        if self.group is not None and self.without_evidence:
            why = "none of its checked items could be labelled" if self.checked else "none of them was checked"
            return f"Nothing is guaranteed for the {self._items}: {why}."
        apart = ""
        if self.all_counted is not None:
            apart += f", not counting items that cannot be labelled ({self.all_counted._bound} if they count as wrong)"
        if self.at_first is not None:
            apart += f"; {self.at_first._bound} by the first answers, before {self._corrections}"
        elif self.allowed is not None and self.wrong_at_first is not None:
            apart += f"; by the first answers, before {self._corrections}, this is not proven"
        sure = f"{percent_at_least(self.confidence)} confidence"
        if self.number > 1:
            sure += f"; check {self.number} of these items"
        return f"{self._statement()}{apart} ({sure}).".replace("\u00a0", " ")

    @property
    def _bound(self) -> str:
        """The guaranteed number in words."""
        value = self.value if self.remaining else self.value_for_all
        return f"at most {percent_at_most(value)}" if self.upper else f"at least {percent_at_least(value)}"

    @property
    def _corrections(self) -> str:
        return f"{count(self.corrections, 'answer')} {'was' if self.corrections == 1 else 'were'} corrected"

    def _statement(self) -> str:
        if self.allowed is not None and self.quantity != "recall":
            return self._proof_statement()
        if self.quantity == "recall":
            least = f"at least {percent_at_least(self.value)} of the items of class {self.class_name!r}"
            if self.predicted is None:
                return f"Annotators have found {least}"
            return f"{least[:1].upper()}{least[1:]} are labelled or predicted as such"
        # Without remaining items the statement is about all of them.
        value = self.value if self.remaining else self.value_for_all
        if self.quantity == "precision":
            those = f"the {self._items} predicted as {self.class_name!r}"
            return f"At least {percent_at_least(value)} of {those} belong to that class"
        fault = "wrong" if self.tolerance is None else f"off by more than {number_at_most(self.tolerance)}"
        most = percent_at_most(value if self.share is None else self.share)
        return f"At most {most} of the predictions for the {self._items} are {fault}"

    @property
    def _items(self) -> str:
        """The items that the statement is about: the unlabelled ones, or all if none of them is left."""
        items = count(self.remaining, "unlabelled item") if self.remaining else count(self.pool, "item")
        return items if self.group is None else f"{items} of group {self.group!r}"

    def _proof_statement(self) -> str:
        """What a sequential check has proven, about the items that were unlabelled when it started."""
        items = f"the {count(self.pool, 'item')} that {'was' if self.pool == 1 else 'were'} unlabelled at the start of "
        items += "the check"
        most = percent_at_most(self.value)
        if self.corrected:
            return f"Of {items}, at most {most} are {self._fault} after its corrections"
        return f"At most {most} of the predictions for {items} are {self._fault}"

    @property
    def evidence(self) -> str:
        """The sample behind the statement, in sentences.

        Examples:
            >>> print(Guarantee.of_error(2, 100, 4718, unlabelable=1, model="round 12").evidence)
            A random check of 100 of 4,718 items found 2 with a wrong prediction. 1 item could not be labelled and
            counts as wrong. The predictions are those of this model: round 12.
        """
        what = {"recall": "of the class", "precision": "of another class"}.get(self.quantity, "with a wrong prediction")
        what = what if self.tolerance is None else self._fault
        if self.allowed is not None:
            said = [self._drawn_words(), self._proven_words(self.allowed)]
        else:
            items = count(self.pool, "item") + ("" if self.group is None else f" of group {self.group!r}")
            said = [f"A random check of {self.checked:,} of {items} found {self.wrong:,} {what}."]
        if self.unlabelable:
            how = "wrong" if self.unlabelable_as == "wrong" else "not wrong"
            one = self.unlabelable == 1
            if self.quantity == "recall" and self.unlabelable_as == "wrong":
                how = "an item of the class" if one else "items of the class"
            counts = "counts" if one else "count"
            said.append(f"{count(self.unlabelable, 'item')} could not be labelled and {counts} as {how}.")
        if self.predicted is not None:
            sample = self.predicted
            said.append(
                f"Of {count(sample.pool, 'other item')} predicted as the class, {sample.checked:,} were checked and "
                f"{sample.right:,} belong to it."
            )
        if self.corrections:
            said.append(f"{self._corrections[:1].upper()}{self._corrections[1:]} afterwards.")
        if self.model and not (self.quantity == "recall" and self.allowed is not None):
            said.append(f"The predictions are those of this model: {self.model}.")
        return " ".join(said)

    @property
    def _fault(self) -> str:
        return "wrong" if self.tolerance is None else f"off by more than {number_at_most(self.tolerance)}"

    def _drawn_words(self) -> str:
        """What a sequential check has drawn and found, as a sentence."""
        drawn = f"{self.checked:,} of the {count(self.pool, 'item')} {'was' if self.checked == 1 else 'were'} drawn"
        what, fault = ("items", "of the class") if self.quantity == "recall" else ("predictions", self._fault)
        these = f"these {what}" if self.checked == 1 else f"these {self.checked:,} {what}"
        found = f"{self.wrong:,} of {these}" if self.wrong else f"none of {these}"
        return f"A random check: {drawn} and answered, and {found} {'was' if self.wrong < 2 else 'were'} {fault}."

    def _proven_words(self, allowed: int) -> str:
        """What a sequential check has proven about all items, as a sentence."""
        most, are = f"at most {allowed:,}", "is" if allowed == 1 else "are"
        if self.quantity == "recall":
            return f"Proven: {most} of the class {are} missed."
        which = "other predictions" if self.corrected else f"{self.pool:,} predictions"
        return f"Proven: {most} of the {which} {are} {self._fault}."

    def _repr_html_(self) -> str:
        """The statement and its evidence, for notebooks."""
        return card(str(self), [("evidence", self.evidence)], tone="stop")

    # JSON.

    def to_dict(self) -> dict[str, Any]:
        """Return the guarantee as JSON values, with its statement and value for other programs.

        Examples:
            >>> saved = Guarantee.of_error(3, 100, 4600).to_dict()
            >>> saved["statement"]
            'At most 7.7 % of the predictions for the 4,500 unlabelled items are wrong (95 % confidence).'
            >>> saved["wrong_at_most"], Guarantee.from_dict(saved).wrong
            (346, 3)
        """
        return {
            "format": _FORMAT,
            **{
                name: value
                for name, value in asdict(self).items()
                if value is not None
                and (value or name not in ("corrected", "corrections"))
                and (name != "number" or value > 1)
            },
            "statement": str(self),
            "value": self.value,
            "wrong_at_most": self.wrong_at_most,
            "remaining": self.remaining,
        }

    @staticmethod
    def from_dict(saved: Mapping[str, Any]) -> "Guarantee":
        """Restore a guarantee from :meth:`to_dict`.

        Args:
            saved: The result of :meth:`to_dict`.

        Raises:
            InvalidValueError: A field is missing, unknown or out of range, or the saved bound does not follow from the
                saved counts.
        """
        values = known_fields(Guarantee, saved, derived={"statement", "value", "wrong_at_most", "remaining"})
        if values.get("predicted") is not None:
            values["predicted"] = PredictedItems(**known_fields(PredictedItems, values["predicted"]))
        guarantee = Guarantee(**values)
        bound = saved.get("wrong_at_most", guarantee.wrong_at_most)
        _require(bound == guarantee.wrong_at_most, "wrong_at_most", f"{guarantee.wrong_at_most}, by the counts", bound)
        return guarantee


def known_fields(kind: Any, saved: Any, derived: frozenset[str] | set[str] = frozenset()) -> dict[str, Any]:
    """Return the fields of a dataclass from saved JSON values, without the format and derived fields.

    Raises:
        InvalidValueError: Fields are missing or unknown, or the format is not known.
    """
    name = kind.__name__
    if not isinstance(saved, Mapping):
        raise InvalidValueError(f"a saved {name} must be a mapping of field names to values, not {saved!r}")
    if saved.get("format", _FORMAT) != _FORMAT:
        raise InvalidValueError(f"a saved {name} must have format {_FORMAT}, not {saved['format']!r}; update suffice")
    known = {field.name for field in fields(kind)}
    required = {field.name for field in fields(kind) if _is_required(field)}
    values = {key: value for key, value in saved.items() if key not in derived and key != "format"}
    if unknown := sorted(set(values) - known):
        raise InvalidValueError(f"a saved {name} has unknown fields: {', '.join(map(str, unknown))}")
    if missing := sorted(required - set(values)):
        raise InvalidValueError(f"a saved {name} lacks the fields {', '.join(missing)}")
    return values


def _is_required(field: Any) -> bool:
    from dataclasses import MISSING

    return field.default is MISSING and field.default_factory is MISSING


def _require(holds: bool, name: str, requirement: str, value: Any) -> None:
    if not holds:
        raise InvalidValueError(f"{name} must be {requirement}, not {value!r}")


def _tolerance(value: Any) -> float:
    return real(value, "tolerance", "of at least 0", lambda x: x >= 0.0)


_NEEDED_BY: Final[dict[str, set[str]]] = {
    "class_name": {"recall", "precision"},
    "tolerance": {"within", "tolerance"},
    "share": {"tolerance"},
    "found": {"recall"},
    "predicted": {"recall"},
}
_VALIDATED: Final[dict[str, Any]] = {
    "class_name": lambda value: _require(isinstance(value, str), "class_name", "a text", value),
    "tolerance": _tolerance,
    "share": lambda value: probability(value, "share"),
    "found": lambda value: whole(value, "found", least=0),
}


def _common(alpha: float, stated: Circumstances) -> dict[str, Any]:
    level = probability(alpha, "alpha")
    values: dict[str, Any] = {"alpha": level, "confidence": 1.0 - level, "unlabelable_as": "wrong", **stated}
    return values


def _absolute(residuals: ArrayLike) -> "np.typing.NDArray[np.float64]":
    values = np.abs(floats(residuals, "residuals"))
    if values.ndim != 1 or not np.isfinite(values).all():
        raise InvalidValueError(f"residuals must be a series of finite numbers, not {residuals!r}")
    return values


def _allowed_count(share: float, checked: int, pool: int, alpha: float) -> int:
    """The largest number of items in the check that may exceed the tolerance, or -1."""
    part = Fraction(repr(share))
    if checked == pool:
        return min(math.floor(part * pool), checked - 1)
    return largest_count(math.floor(part * (pool - checked)), checked, pool, alpha)


def _too_small(share: float, checked: int, pool: int, alpha: float, unlabelable: int) -> str:
    needed = plan(share, unlabelable / checked if checked else 0.0, pool, alpha=alpha).labels
    remedy = "label all of them" if needed is None else f"about {needed:,} are needed"
    because = f", of which {unlabelable} could not be labelled," if unlabelable else ""
    return f"a check of {count(checked, 'item')}{because} is too small for share={share!r} of {pool:,} items; {remedy}"
