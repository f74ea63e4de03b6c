"""What is guaranteed about a whole data set: labels by people, and predictions that a check has covered.

In a screening it is guaranteed how many items of a class people have found.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from math import ceil, floor
from typing import Any, Final

from suffice.checks.guarantee import Guarantee, known_fields
from suffice.errors import InvalidValueError
from suffice.presentation.guarantee_words import wrong_labels_words
from suffice.presentation.html_parts import card
from suffice.presentation.text_format import count, is_or_are, percent, percent_at_least, percent_at_most

_DERIVED: Final = frozenset({"statement", "value", "wrong_at_most", "confidence", "predicted"})


@dataclass(frozen=True)
class DataSetGuarantee:
    """At most a known number of all final labels of a data set is wrong.

    Labels by people count as right, or a stated share of them counts as wrong. The check proves how many predictions
    are wrong at most. This number is fixed when the check starts. Rows that nobody can label leave the data set, so
    that it may be more than the goal allows of the others: see :attr:`reached`.

    Attributes:
        rows: Number of final labels.
        by_people: Number of them that people gave, those of the check included.
        proof: What the check has proven about the items that were unlabelled when it started; None if no check was
            necessary, because people labelled all items but the number that may be wrong.
        allowed: Largest number of wrong predictions: what the check allows, or the goal if there is no check.
        at_most: The goal: the largest acceptable share of wrong labels.
        annotator_error: Share of the labels by people that may be wrong.
        left_out: Number of items without a final label, because nobody could label them.
        tolerance: For numbers, the largest error that is not wrong.

    Examples:
        >>> from suffice.checks import SequentialTerms
        >>> terms = SequentialTerms(800, 50, planned=100, alpha=0.025, corrected=True)
        >>> proof = Guarantee.of_proof(terms, wrong=2, checked=120, confidence=0.95)
        >>> print(DataSetGuarantee(rows=1000, by_people=310, proof=proof, allowed=50, at_most=0.05))
        At most 50 of all 1,000 labels are wrong, 5 % (95 % confidence): 310 are by people, which count as right, and
        690 are predictions.
    """

    rows: int
    by_people: int
    proof: Guarantee | None
    allowed: int
    at_most: float
    annotator_error: float = 0.0
    left_out: int = 0
    tolerance: float | None = None

    def __post_init__(self) -> None:
        for name in ("rows", "by_people", "allowed", "left_out"):
            _require_count(getattr(self, name), name)
        if self.by_people > self.rows:
            raise InvalidValueError(f"by_people={self.by_people} must be at most rows={self.rows}")
        if self.proof is not None and not self.proof.corrected:
            raise InvalidValueError("proof must be that of a check with corrections")
        if self.proof is None and self.predicted > self.allowed:
            raise InvalidValueError(
                f"without a check at most {self.allowed:,} predictions are allowed, not {self.predicted:,}"
            )

    @property
    def predicted(self) -> int:
        """Number of final labels that are predictions."""
        return self.rows - self.by_people

    @property
    def wrong_at_most(self) -> int:
        r"""Largest number of wrong labels among all final labels, those of people included.

        If at most a share :math:`a` of the :math:`n` labels by people is wrong, these are at most
        :math:`\lfloor a n \rfloor`.
        """
        return self._predictions_wrong + floor(_exact(self.annotator_error) * self.by_people)

    @property
    def _predictions_wrong(self) -> int:
        """Largest number of wrong predictions."""
        most = self.allowed if self.proof is None else min(self.allowed, self.proof.allowed or 0)
        return min(self.predicted, most)

    @property
    def value(self) -> float:
        """The same as a share of all final labels."""
        return self.wrong_at_most / self.rows if self.rows else 0.0

    @property
    def reached(self) -> bool:
        """Whether at most the share of the goal is wrong among the final labels that there are, without rounding."""
        return self.wrong_at_most <= _exact(self.at_most) * self.rows

    def after_corrections(self, found: int) -> "DataSetGuarantee":
        """The guarantee when people have found more wrong predictions among the rows that the check left unlabelled.

        If at most :math:`B` of these predictions were wrong, at most :math:`B - j` are when :math:`j` are corrected.

        Args:
            found: ``j``, the number of wrong predictions that have the label of a person now.
        """
        return self if self.proof is None else replace(self, allowed=max(0, (self.proof.allowed or 0) - found))

    @property
    def confidence(self) -> float:
        """Confidence of the statement; 1 if no check was necessary."""
        return 1.0 if self.proof is None else self.proof.confidence

    def __str__(self) -> str:
        if not self.predicted and not self.annotator_error:
            return f"All {count(self.rows, 'label')} are by people, which count as right."
        sure = "" if self.proof is None else f" ({percent_at_least(self.confidence)} confidence)"
        people = "which count as right"
        if self.annotator_error:
            people = f"of which at most {percent(self.annotator_error)} are taken to be wrong"
        counted = {"wrong_at_most": self.wrong_at_most, "rows": self.rows, "tolerance": self.tolerance}
        most, share = wrong_labels_words(counted), f", {percent_at_most(self.value)}" if self.wrong_at_most else ""
        given = f"{self.by_people:,} {is_or_are(self.by_people)} by people, {people}"
        predicted = f"{self.predicted:,} {'is a prediction' if self.predicted == 1 else 'are predictions'}"
        said = f"{most[:1].upper()}{most[1:]}{share}{sure}: {given}, and {predicted}."
        return said.replace("\u00a0", " ")

    @property
    def evidence(self) -> str:
        """The check behind the statement, in sentences."""
        if self.proof is None:
            predicted = f"Only {count(self.predicted, 'label')} of {self.rows:,} "
            predicted += "is a prediction" if self.predicted == 1 else "are predictions"
            said = [f"{predicted if self.predicted else 'No label is a prediction'}; no check was necessary."]
        else:
            said = [self.proof.evidence]
            if self.proof.wrong:
                said.append("Where the check found an error, the person's label is used.")
            if more := max(0, (self.proof.allowed or 0) - self.allowed):
                said.append(f"People found {more:,} more wrong afterwards, which {is_or_are(more)} corrected too.")
        if self.left_out:
            left_out = f"{count(self.left_out, 'item')} could not be labelled"
            said.append(f"{left_out}, and {is_or_are(self.left_out)} not included.")
        return " ".join(said)

    def _repr_html_(self) -> str:
        """The statement and its evidence, for notebooks."""
        return card(str(self), [("evidence", self.evidence)], tone="stop")

    def to_dict(self) -> dict[str, Any]:
        """The guarantee as JSON values, with its statement and numbers for other programs."""
        return _as_dict(self, _DERIVED)

    @staticmethod
    def from_dict(saved: Mapping[str, Any]) -> "DataSetGuarantee":
        """Restore a guarantee from :meth:`to_dict`.

        Raises:
            InvalidValueError: A field is missing, unknown or out of range, or the saved number does not follow from
                the others.
        """
        made = DataSetGuarantee(**_restored(DataSetGuarantee, saved, _DERIVED))
        # Earlier versions rounded the wrong labels of people up.
        earlier = made._predictions_wrong + ceil(_exact(made.annotator_error) * made.by_people)
        if saved.get("wrong_at_most", made.wrong_at_most) not in (made.wrong_at_most, earlier):
            raise InvalidValueError(f"wrong_at_most must be {made.wrong_at_most}, by the counts")
        return made


_SCREENING_DERIVED: Final = frozenset(
    {"statement", "value", "missed_at_most", "recall_at_least", "confidence", "predicted"}
)


@dataclass(frozen=True)
class ScreeningGuarantee:
    """People have found at least a known share of all items of a class.

    Labels by people count as right. The check proves how many items of the class are missed at most among those that
    nobody has read. The guarantee is about this class only: predictions for the other items may be wrong.

    Attributes:
        class_name: The class.
        rows: Number of items, without those that nobody could label.
        by_people: Number of them that people have read, those of the check included.
        found: Number of these that are of the class.
        proof: What the check has proven about the items that nobody had read when it started; None if no check was
            necessary, because people have read all items but the number that may be missed.
        allowed: Number of items of the class that may be missed by the check, or by the goal if there is no check.
        at_most: The goal: the largest acceptable share of missed items among all items of the class.
        left_out: Number of items that nobody could label.

    Examples:
        >>> from suffice.checks import SequentialTerms
        >>> terms = SequentialTerms(5400, 16, planned=800, alpha=0.025, corrected=True)
        >>> proof = Guarantee.of_proof(terms, 0, 1200, class_name="yes", found=312, confidence=0.95)
        >>> print(ScreeningGuarantee("yes", 6000, by_people=1800, found=312, proof=proof, allowed=16, at_most=0.05))
        People have found at least 95.1 % of the items of class 'yes' (95 % confidence): 312 found, at most 16 missed
        among the 4,200 items that nobody read.
    """

    class_name: str
    rows: int
    by_people: int
    found: int
    proof: Guarantee | None
    allowed: int
    at_most: float
    left_out: int = 0

    def __post_init__(self) -> None:
        for name in ("rows", "by_people", "found", "allowed", "left_out"):
            _require_count(getattr(self, name), name)
        if not self.found <= self.by_people <= self.rows:
            raise InvalidValueError(
                f"found={self.found} must be at most by_people={self.by_people}, and that at most rows={self.rows}"
            )
        if self.proof is not None and not (self.proof.corrected and self.proof.quantity == "recall"):
            raise InvalidValueError("proof must be that of a check of a screening")
        if self.proof is None and self.predicted > self.allowed:
            raise InvalidValueError(
                f"without a check at most {self.allowed:,} items may be unread, not {self.predicted:,}"
            )

    @property
    def predicted(self) -> int:
        """Number of items that nobody has read; their final labels are predictions."""
        return self.rows - self.by_people

    @property
    def missed_at_most(self) -> int:
        """Largest number of items of the class among those that nobody has read."""
        most = self.allowed if self.proof is None else min(self.allowed, self.proof.allowed or 0)
        return min(self.predicted, most)

    @property
    def wrong_at_most(self) -> int:
        """The same as :attr:`missed_at_most`, for programs that handle a :class:`DataSetGuarantee` too."""
        return self.missed_at_most

    @property
    def annotator_error(self) -> float:
        """Share of the labels by people that may be wrong: 0, because it does not apply to a screening."""
        return 0.0

    @property
    def tolerance(self) -> float | None:
        """None, because the labels of a screening are classes."""
        return None

    @property
    def recall_at_least(self) -> float:
        """The least share of all items of the class that is found."""
        total = self.found + self.missed_at_most
        return self.found / total if total else 1.0

    @property
    def value(self) -> float:
        """The largest share of all items of the class that is missed."""
        total = self.found + self.missed_at_most
        return self.missed_at_most / total if total else 0.0

    @property
    def reached(self) -> bool:
        """Whether at most the share of the goal is missed, without rounding."""
        return self.missed_at_most <= _exact(self.at_most) * (self.found + self.missed_at_most)

    @property
    def confidence(self) -> float:
        """Confidence of the statement; 1 if no check was necessary."""
        return 1.0 if self.proof is None else self.proof.confidence

    def __str__(self) -> str:
        sure = "" if self.proof is None else f" ({percent_at_least(self.confidence)} confidence)"
        name, found = repr(self.class_name), f"{self.found:,} found"
        if not self.predicted:
            return f"People have found all items of class {name}: {found}, and all items are read."
        least = percent_at_least(self.recall_at_least)
        others = f"the {count(self.predicted, 'item')} that nobody read"
        said = f"People have found at least {least} of the items of class {name}{sure}: {found}, at most "
        return f"{said}{self.missed_at_most:,} missed among {others}.".replace("\u00a0", " ")

    @property
    def evidence(self) -> str:
        """The check behind the statement, and what it is not about, in sentences."""
        if self.proof is None:
            said = [
                f"{count(self.predicted, 'item')} of {self.rows:,} {is_or_are(self.predicted)} unread; no check was "
                "necessary."
            ]
        else:
            said = [self.proof.evidence]
        if self.left_out:
            left_out = f"{count(self.left_out, 'item')} could not be labelled"
            said.append(f"{left_out}, and {is_or_are(self.left_out)} not included.")
        if self.predicted:
            said.append(
                f"The guarantee is about class {self.class_name!r} only: the labels of items that nobody read "
                "are predictions, which may be wrong."
            )
        return " ".join(said)

    def _repr_html_(self) -> str:
        """The statement and its evidence, for notebooks."""
        return card(str(self), [("evidence", self.evidence)], tone="stop")

    def to_dict(self) -> dict[str, Any]:
        """The guarantee as JSON values, with its statement and numbers for other programs."""
        return _as_dict(self, _SCREENING_DERIVED)

    @staticmethod
    def from_dict(saved: Mapping[str, Any]) -> "ScreeningGuarantee":
        """Restore a guarantee from :meth:`to_dict`.

        Raises:
            InvalidValueError: A field is missing, unknown or out of range, or the saved number does not follow from
                the others.
        """
        made = ScreeningGuarantee(**_restored(ScreeningGuarantee, saved, _SCREENING_DERIVED))
        if saved.get("missed_at_most", made.missed_at_most) != made.missed_at_most:
            raise InvalidValueError(f"missed_at_most must be {made.missed_at_most}, by the counts")
        return made


#: What is guaranteed at the end: about all final labels, or about a class that was looked for.
FinalGuarantee = DataSetGuarantee | ScreeningGuarantee


def final_guarantee(saved: Mapping[str, Any]) -> FinalGuarantee:
    """Restore either guarantee from its ``to_dict``.

    Raises:
        InvalidValueError: As for both.
    """
    return (ScreeningGuarantee if "class_name" in saved else DataSetGuarantee).from_dict(saved)


def _as_dict(made: FinalGuarantee, derived: frozenset[str]) -> dict[str, Any]:
    values = {name: value for name, value in asdict(made).items() if value is not None}
    if made.proof is not None:
        values["proof"] = made.proof.to_dict()
    return {**values, "statement": str(made), **{name: getattr(made, name) for name in derived - {"statement"}}}


def _restored(kind: Any, saved: Mapping[str, Any], derived: frozenset[str]) -> dict[str, Any]:
    values = known_fields(kind, {"proof": None, **saved}, derived=derived)
    if values["proof"] is not None:
        values["proof"] = Guarantee.from_dict(values["proof"])
    return values


def _require_count(value: Any, name: str) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise InvalidValueError(f"{name} must be a whole number of at least 0, not {value!r}")


def _exact(share: float) -> Fraction:
    """The decimal number that a share prints as."""
    return Fraction(repr(float(share)))
