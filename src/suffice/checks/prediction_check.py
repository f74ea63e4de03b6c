"""A random check of predictions that were made elsewhere: rows, answers, and what they prove."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from suffice.arguments import real, whole
from suffice.checks.accepted_part import AcceptedPart, accept_corrected, accept_share
from suffice.checks.class_share import ClassShare
from suffice.checks.confidence_judgement import JudgedConfidence, judged_confidence
from suffice.checks.finish_plan import allowed_wrong
from suffice.checks.given_predictions import AnswerWay, PredictedColumns, class_text, is_missing
from suffice.checks.group_guarantees import by_group
from suffice.checks.guarantee import Guarantee
from suffice.checks.planner import plan
from suffice.checks.random_check import Check, sequential_progress, spent_alpha
from suffice.checks.random_source import CHECK_STREAM, check_rng
from suffice.checks.sequential_terms import SequentialTerms, planned_share
from suffice.errors import InvalidValueError
from suffice.presentation.given_words import result_sentences
from suffice.presentation.html_parts import card
from suffice.presentation.text_format import count, is_or_are

#: Which part of the predictions is accepted: so many that at most a number of wrong ones is left (people label the
#: others), or so many that at most a share of the accepted ones is wrong.
AcceptGoal = Literal["all", "accepted"]
#: Number of answers of a check of fixed size if no target says how many are needed.
DEFAULT_SIZE: Final = 300
#: Answers about a prediction that people see.
RIGHT, WRONG = "right", "wrong"


@dataclass(frozen=True)
class CheckDesign:
    """What a check of given predictions is to prove; fixed before the draw.

    Attributes:
        at_most: Largest acceptable share of wrong predictions; None if there is no target.
        size: Number of rows to draw; None for a check that ends when the target is proven.
        expected: Expected share of wrong predictions, to plan the check; half of ``at_most`` if None.
        confidence: Confidence of all statements together.
        earlier_checks: Number of checks of the same rows before this one.
        tolerance: For numbers: the largest error that is not wrong.
        share_of: Class whose share of all rows is stated; None for none.
        recall_of: Class whose recall is guaranteed; None for none.
        precision_of: Class whose precision is guaranteed; None for none.
        accept: Whether to accept the most confident part of the predictions, and by which goal.
    """

    at_most: float | None = None
    size: int | None = None
    expected: float | None = None
    confidence: float = 0.95
    earlier_checks: int = 0
    tolerance: float | None = None
    share_of: str | None = None
    recall_of: str | None = None
    precision_of: str | None = None
    accept: AcceptGoal | None = None

    def checked(
        self, given: PredictedColumns, *, answer: AnswerWay = "blind", classes: Sequence[str] = ()
    ) -> "CheckDesign":
        """The validated design, with the size of a check of fixed size.

        Args:
            given: The predictions.
            answer: How people answer.
            classes: Further classes that are not predicted.

        Raises:
            InvalidValueError: An option is out of range, or does not fit the predictions or the other options.
        """
        share = None
        if self.at_most is not None:
            share = real(self.at_most, "at_most", "from 0 to 1", lambda x: 0.0 <= x <= 1.0)
        real(self.confidence, "confidence", "above 0 and below 1", lambda x: 0.0 < x < 1.0)
        number = whole(self.earlier_checks, "earlier_checks", least=0) + 1
        self._require_task(given)
        self._require_class(given, answer, classes)
        quantities = [name for name in ("share_of", "recall_of", "precision_of", "accept") if getattr(self, name)]
        if len(quantities) > 1:
            raise InvalidValueError(f"a check proves one quantity; give {quantities[0]} or {quantities[1]}, not both")
        if self.share_of is not None and share is not None:
            raise InvalidValueError(
                "at_most is a target for wrong predictions, and share_of states how common a class is; leave at_most "
                "out, or make a check of its own for each"
            )
        if quantities and len(given.columns) > 1:
            raise InvalidValueError(f"{quantities[0]} is for one column of predictions; give one, not several")
        if quantities and given.groups is not None:
            raise InvalidValueError(
                f"{quantities[0]} is stated for all rows, and groups are for the share of wrong predictions; leave "
                f"groups out, or {quantities[0]}"
            )
        if self.accept is not None:
            self._require_acceptable(given, share)
        if share is None and not quantities and self.size is None:
            raise InvalidValueError(
                "give at_most, the largest acceptable share of wrong predictions, or size, the number of answers"
            )
        pool = self.pool(given)
        if self.size is not None:
            if whole(self.size, "size", least=1) > pool:
                which = "" if self.precision_of is None else f" predicted as {self.precision_of!r}"
                raise InvalidValueError(f"size must be at most the {pool:,} rows{which}, not {self.size!r}")
            return CheckDesign(**{**vars(self), "at_most": share})
        if self.sequential(given):
            return CheckDesign(**{**vars(self), "at_most": share})
        alpha = spent_alpha(number, self.alpha) / self.parts(given)
        size = min(DEFAULT_SIZE, pool)
        if share is not None and not quantities:
            # The predictions stay as they are, so that the target is about all rows, those of the check included.
            planned = plan(share, planned_share(share, self.expected), len(given), alpha=alpha, items="all")
            size = len(given) if planned.labels is None else planned.labels
        return CheckDesign(**{**vars(self), "at_most": share, "size": size})

    @property
    def alpha(self) -> float:
        """Error probability of all checks of the same rows together; 1 - 0.95 is exactly 0.05."""
        return round(1.0 - self.confidence, 15)

    def sequential(self, given: PredictedColumns) -> bool:
        """Whether the check ends when the target is proven, instead of having a fixed size."""
        others = self.share_of or self.recall_of or self.precision_of or self.accept
        return self.size is None and not others and self.parts(given) == 1

    def terms(self, given: PredictedColumns) -> SequentialTerms | None:
        """The terms of a check that ends when the target is proven; None for a check of fixed size.

        Raises:
            InvalidValueError: No number of answers proves the target, or there is nothing to prove.
        """
        if not self.sequential(given):
            return None
        assert self.at_most is not None
        spent = spent_alpha(self.earlier_checks + 1, self.alpha)
        terms = SequentialTerms.of_share(self.at_most, pool=len(given), alpha=spent, expected=self.expected)
        if terms.allowed >= terms.pool:
            raise InvalidValueError(
                f"at_most={self.at_most!r} allows every prediction to be wrong: there is nothing to check; give a "
                "smaller share"
            )
        terms.require_provable()
        return terms

    def pool(self, given: PredictedColumns) -> int:
        """Number of rows from which the check is drawn."""
        return len(given) if self.precision_of is None else int((given.first == self.precision_of).sum())

    @staticmethod
    def parts(given: PredictedColumns) -> int:
        """Number of statements that hold together."""
        return len(given.columns) * (len(given.group_sizes) + 1 if given.groups is not None else 1)

    def _require_task(self, given: PredictedColumns) -> None:
        if given.numbers:
            if self.tolerance is None:
                raise InvalidValueError(
                    "the predictions are numbers; give tolerance, the largest error that is not wrong"
                )
            real(self.tolerance, "tolerance", "of at least 0", lambda x: x >= 0.0)
            for name in ("share_of", "recall_of", "precision_of"):
                if getattr(self, name) is not None:
                    raise InvalidValueError(f"{name} is for classes, and the predictions are numbers; leave it out")
        elif self.tolerance is not None:
            raise InvalidValueError("tolerance is for numbers, and the predictions are classes; leave it out")

    def _require_class(self, given: PredictedColumns, answer: AnswerWay, classes: Sequence[str]) -> None:
        """Raise an error if a class is not known, or if the answers will not tell the classes of rows."""
        for name in ("share_of", "recall_of", "precision_of"):
            value = getattr(self, name)
            if value is None:
                continue
            if answer == "verdict":
                raise InvalidValueError(
                    f"{name} needs the class of each row, and verdicts only say whether a prediction is right; let "
                    'people label without seeing the predictions, with answer="blind"'
                )
            known = list(dict.fromkeys([*given.classes, *(classes if name == "share_of" else ())]))
            if value not in known:
                some = ", ".join(map(repr, known[:10])) + (", ..." if len(known) > 10 else "")
                more = "; name classes that are never predicted with classes" if name == "share_of" else ""
                raise InvalidValueError(f"{name} must be one of the predicted classes {some}, not {value!r}{more}")

    def _require_acceptable(self, given: PredictedColumns, share: float | None) -> None:
        if self.accept not in ("all", "accepted"):
            raise InvalidValueError(f'accept must be "all" or "accepted", not {self.accept!r}')
        if given.probability is None:
            raise InvalidValueError("accept needs the probability of each prediction, to know which are most confident")
        if share is None:
            raise InvalidValueError("accept needs at_most, the largest acceptable share of wrong labels")


@dataclass(frozen=True, eq=False)
class PredictionResult:
    """What a check of given predictions has shown.

    Attributes:
        rows: Number of rows with a prediction.
        checked: Number of answers.
        wrong: Number of wrong predictions among them, by column.
        at_most: The target; None if there is none.
        confidence_level: Confidence of all statements together.
        complete: Whether the check has ended.
        guarantees: The guarantee of each column; empty before the end, and if nothing is proven.
        groups: For each column, the guarantee of each group.
        share: How common a class is, or None.
        accepted: The accepted part of the predictions, or None.
        progress: Progress of a check that ends when the target is proven; None for a fixed size.
        answer: How people answered.
        pending: Number of answers that are missing, as far as it is known.
        unlabelable: Number of rows that nobody could label; they count as wrong.
        corrections: Number of answers that were corrected after they had been given.
        at_first: The result by the first answers, if some were corrected; otherwise None.
        judgement: For an accepted part, whether the confidence orders errors; otherwise None.
    """

    rows: int
    checked: int
    wrong: Mapping[str, int]
    at_most: float | None
    confidence_level: float
    complete: bool
    guarantees: Mapping[str, Guarantee] = field(default_factory=dict)
    groups: Mapping[str, Mapping[str, Guarantee]] = field(default_factory=dict)
    share: ClassShare | None = None
    accepted: AcceptedPart | None = None
    progress: Mapping[str, Any] | None = None
    answer: AnswerWay = "blind"
    pending: int = 0
    unlabelable: int = 0
    corrections: int = 0
    at_first: "PredictionResult | None" = None
    judgement: JudgedConfidence | None = None

    @property
    def guaranteed(self) -> bool:
        """Whether the check has proven what was asked for: the target, or without a target any statement.

        A target is about all rows together, also if there are groups, and about one column at least.
        """
        if not self.complete:
            return False
        if self.accepted is not None:
            return self.accepted.accepted > 0
        if self.share is not None:
            return True
        if self.at_most is None:
            return bool(self.guarantees)
        return any(self._reaches(each) for each in self.guarantees.values())

    def _reaches(self, guarantee: Guarantee) -> bool | None:
        """Whether a guarantee proves the target; None without a target."""
        if self.at_most is None:
            return None
        if guarantee.quantity == "recall":
            return guarantee.predicted_recall >= 1.0 - self.at_most
        if guarantee.quantity == "precision":
            return guarantee.value_for_all >= 1.0 - self.at_most
        return guarantee.value_for_all <= self.at_most

    @property
    def best(self) -> str | None:
        """The column with the lowest bound; None if nothing is proven."""
        bounds = {name: each.value_for_all for name, each in self.guarantees.items()}
        return min(bounds, key=lambda name: bounds[name]) if bounds else None

    def sentences(self) -> list[str]:
        """The result in words, the most important first."""
        return result_sentences(self.to_dict())

    def __str__(self) -> str:
        return " ".join(self.sentences())

    def to_dict(self) -> dict[str, Any]:
        """The result as JSON values."""
        best = self.best
        first = next(iter(self.wrong), "")
        main = None if best is None else self.guarantees[best]
        return {
            "guaranteed": self.guaranteed,
            "rows": self.rows,
            "checked": self.checked,
            "wrong": self.wrong.get(best or first, 0),
            "wrong_at_most": None if main is None else main.wrong_at_most,
            "at_most": self.at_most,
            "confidence_level": self.confidence_level,
            "complete": self.complete,
            "pending": self.pending,
            "answer": self.answer,
            "unlabelable": self.unlabelable,
            "corrections": self.corrections,
            "at_first": None if self.at_first is None else self.at_first.to_dict(),
            "columns": {
                name: {
                    "wrong": wrong,
                    "guarantee": _guarantee_values(self.guarantees[name]) if name in self.guarantees else None,
                    "reaches_target": self._reaches(self.guarantees[name]) if name in self.guarantees else None,
                }
                for name, wrong in self.wrong.items()
            },
            "groups": {
                name: {**_group_values(each), "reaches_target": self._reaches(each)}
                for name, each in self.groups.get(best or first, {}).items()
            },
            "judged_confidence": None if self.judgement is None else self.judgement.to_dict(),
            "share": _with_evidence(self.share),
            "accepted": _with_evidence(self.accepted),
            "progress": None if self.progress is None else dict(self.progress),
        }


def _with_evidence(statement: ClassShare | AcceptedPart | None) -> dict[str, Any] | None:
    return None if statement is None else {**statement.to_dict(), "evidence": statement.evidence}


def _guarantee_values(guarantee: Guarantee) -> dict[str, Any]:
    # Its statement is about the items of a project; the sentences of a result are about rows.
    values = {name: value for name, value in guarantee.to_dict().items() if name != "statement"}
    return values if guarantee.quantity != "recall" else {**values, "predicted_recall": guarantee.predicted_recall}


def _group_values(guarantee: Guarantee) -> dict[str, Any]:
    return {
        "rows": guarantee.pool,
        "checked": guarantee.checked,
        "wrong": guarantee.wrong,
        "wrong_at_most": guarantee.wrong_at_most,
        "at_most": guarantee.value_for_all,
    }


class PredictionCheck:
    """A random check of predictions that stay as they are; :meth:`GivenPredictions.check` returns it.

    With a target and one column of predictions, the check ends by itself as soon as the target is proven. It can be
    paused at any time. A check of several columns, of groups, of a class or of an accepted part has a fixed size.

    Args:
        given: The predictions.
        seed: For a reproducible draw; drawn from the operating system if left out.
        answer: How people answer: ``"blind"`` if they label without seeing the prediction, ``"verdict"`` if they see it
            and say whether it is right.
        classes: Further classes that are never predicted, for ``share_of``.
        **options: Fields of :class:`suffice.checks.prediction_check.CheckDesign`, such as ``at_most`` or ``size``.

    Attributes:
        given: As given.
        design: The design, with the size of a check of fixed size.
        record: The drawn rows and their answers.

    Raises:
        InvalidValueError: An option cannot be used.

    Examples:
        >>> from suffice.checks import of_predictions
        >>> check = of_predictions(["a", "b"] * 500).check(size=100, seed=0)
        >>> rows = check.next(100)
        >>> print(check.tell(["a" if row % 2 == 0 else "b" for row in rows]))
        At most 3.4 % of the predictions for the 1,000 rows are wrong (95 % confidence). A random check of 100 rows
        found 0 wrong.
    """

    def __init__(
        self,
        given: PredictedColumns,
        *,
        seed: int | None = None,
        answer: AnswerWay = "blind",
        classes: Iterable[Any] = (),
        **options: Any,
    ) -> None:
        if answer not in ("blind", "verdict"):
            raise InvalidValueError(f'answer must be "blind" or "verdict", not {answer!r}')
        if answer == "verdict" and len(given.columns) > 1:
            raise InvalidValueError("verdicts are about one column of predictions; compare several with blind labels")
        for name in ("share_of", "recall_of", "precision_of"):
            if options.get(name) is not None:
                options[name] = class_text(options[name])
        self.given, self.answer = given, answer
        self.design = CheckDesign(**options).checked(given, answer=answer, classes=[*map(class_text, classes)])
        design, pool = self.design, self._pool()
        number, alpha = design.earlier_checks + 1, design.alpha
        rng = check_rng(seed, CHECK_STREAM, number)
        terms = design.terms(given)
        size = design.size if terms is None else terms.longest
        self._order = pool[rng.choice(len(pool), size=size, replace=False, shuffle=True)]
        first = self._order if terms is None else self._order[:1]
        self.record = self._reaching(Check(tuple(first.tolist()), len(pool), number, alpha, sequential=terms))

    @classmethod
    def restored(
        cls, given: PredictedColumns, design: CheckDesign, record: Check, answer: AnswerWay
    ) -> "PredictionCheck":
        """A check from its parts, to state its results.

        Args:
            given: The predictions.
            design: The design, with the size of a check of fixed size.
            record: The drawn rows and their answers; those that its answers require, if it is sequential.
            answer: How people answer.
        """
        check = cls.__new__(cls)
        check.given, check.design, check.record, check.answer = given, design, record, answer
        check._order = np.array(record.items, dtype=np.intp)
        return check

    def _pool(self) -> NDArray[np.intp]:
        rows = np.arange(len(self.given), dtype=np.intp)
        if self.design.precision_of is None:
            return rows
        return np.asarray(rows[self.given.first == self.design.precision_of])

    # Questions and answers.

    @property
    def open(self) -> bool:
        """Whether answers are missing."""
        return bool(self.record.pending) and not self.record.aborted

    def next(self, number: int = 1) -> NDArray[np.intp]:
        """The next rows to answer, in the drawn order; at most as many as are certainly needed."""
        return np.array(self.record.pending[: whole(number, "number", least=1)], dtype=np.intp)

    def tell(self, answers: Any) -> PredictionResult:
        """Record answers.

        Args:
            answers: The labels of the next rows in order, or by row; with ``answer="verdict"`` whether each prediction
                is right. None for a row that cannot be labelled, which counts as wrong.

        Returns:
            The result so far.

        Raises:
            InvalidValueError: The check has ended, or there are more answers than open rows, or an answer cannot be
                used: nothing is recorded.
        """
        self._take(answers)
        return self.result

    def _take(self, answers: Any) -> None:
        if not self.open:
            raise InvalidValueError("the check has ended; draw another one")
        if isinstance(answers, Mapping):
            told = dict(answers.items())
        else:
            single = isinstance(answers, str | bytes) or not isinstance(answers, Iterable)
            values = [answers] if single else list(answers)
            if len(values) > len(self.record.pending):
                given, rows = count(len(values), "answer"), count(len(self.record.pending), "open row")
                raise InvalidValueError(f"{given} {is_or_are(len(values))} given for {rows}; give fewer")
            told = dict(zip(self.record.pending, values, strict=False))
        labels = {int(row): self._label(value) for row, value in told.items()}
        record = self.record.tell({row: label for row, label in labels.items() if label is not None})
        self.record = self._reaching(record.cannot_label(row for row, label in labels.items() if label is None))

    def run(self, ask: Callable[[int], Any], budget: int | None = None) -> PredictionResult:
        """Ask for answers until the check ends.

        Args:
            ask: Returns the answer for a row.
            budget: Number of answers at most in this call; the check can be continued.

        Returns:
            The result.
        """
        asked = 0
        while self.open and (budget is None or asked < budget):
            row = int(self.next()[0])
            self._take({row: ask(row)})
            asked += 1
        return self.result

    def _label(self, value: Any) -> Any:
        if is_missing(value):
            return None
        if self.answer == "verdict":
            if not isinstance(value, bool | np.bool_):
                raise InvalidValueError(f"a verdict must be True (right), False (wrong) or None, not {value!r}")
            return RIGHT if value else WRONG
        if self.given.numbers:
            return real(value, "a label")
        return class_text(value)

    def _predicted(self, column: str) -> dict[int, Any]:
        rows = self.record.items
        if self.answer == "verdict":
            return dict.fromkeys(rows, RIGHT)
        return dict(zip(rows, self.given.columns[column][list(rows)].tolist(), strict=True))

    def _reaching(self, record: Check) -> Check:
        if record.sequential is None:
            return record
        column = next(iter(self.given.columns))
        order = self._order.tolist()
        predicted = dict.fromkeys(order, RIGHT)
        if self.answer != "verdict":
            predicted = dict(zip(order, self.given.columns[column][self._order].tolist(), strict=True))
        return record.reaching(order, predicted, tolerance=self.design.tolerance)

    # Results.

    @property
    def result(self) -> PredictionResult:
        """What the answers prove so far."""
        design, record, given = self.design, self.record, self.given
        column = next(iter(given.columns))
        complete = record.complete and not record.pending
        faults = {name: record.faults(self._predicted(name), tolerance=design.tolerance) for name in given.columns}
        pending = set(record.pending)
        answered = [row for row in record.items if row not in pending]
        values: dict[str, Any] = {
            "rows": len(given),
            "checked": len(answered),
            "wrong": {name: sum(found[row] for row in answered) for name, found in faults.items()},
            "at_most": design.at_most,
            "confidence_level": design.confidence,
            "complete": complete,
            "progress": sequential_progress(record, self._predicted(column), design.tolerance),
            "answer": self.answer,
            "pending": len(pending),
            "unlabelable": len(record.unlabelable),
            "corrections": len(record.first_answers),
        }
        if complete:
            values |= {**self._proven(), "at_first": self._at_first()}
        return PredictionResult(**values)

    def _at_first(self) -> PredictionResult | None:
        """The result by the first answers; None if no answer was corrected."""
        record = self.record
        if not record.first_answers:
            return None
        labels = {**record.labels, **record.first_answers}
        first = replace(
            record,
            labels={row: label for row, label in labels.items() if label is not None},
            unlabelable=record.unlabelable - set(record.first_answers)
            | {row for row, label in record.first_answers.items() if label is None},
            first_answers={},
        )
        return PredictionCheck.restored(self.given, self.design, first, self.answer).result

    def _proven(self) -> dict[str, Any]:
        """The statements of a complete check."""
        design, record, given = self.design, self.record, self.given
        column = next(iter(given.columns))
        if design.share_of is not None:
            return {"share": ClassShare.of_check(record, design.share_of)}
        if design.recall_of is not None:
            predicted = int((given.first == design.recall_of).sum())
            made = record.recall_guarantee(
                design.recall_of, 0, predictions=self._predicted(column), predicted=predicted
            )
            return {"guarantees": {column: made}}
        if design.precision_of is not None:
            made = record.precision_guarantee(self._predicted(column), design.precision_of, record.pool)
            return {"guarantees": {column: made}}
        if design.accept is not None:
            assert given.probability is not None
            faults = record.faults(self._predicted(column), tolerance=design.tolerance)
            drawn = list(record.items)
            judgement = judged_confidence(given.probability[drawn], [faults[row] for row in drawn])
            return {"accepted": self._accepted(column), "judgement": judgement}
        if given.groups is not None:
            groups = dict(zip(record.items, given.groups[list(record.items)].tolist(), strict=True))
            found = {
                name: by_group(
                    record,
                    self._predicted(name),
                    groups,
                    given.group_sizes,
                    tolerance=design.tolerance,
                    columns=len(given.columns),
                )
                for name in given.columns
            }
            return {
                "guarantees": {name: each.total for name, each in found.items()},
                "groups": {name: each.groups for name, each in found.items()},
            }
        parts = len(given.columns)
        made_of = {}
        for name in given.columns:
            try:
                options: dict[str, Any] = {} if parts == 1 else {"parts": parts}
                made_of[name] = record.guarantee(self._predicted(name), tolerance=design.tolerance, **options)
            except InvalidValueError:
                if record.sequential is None:
                    raise
        return {"guarantees": made_of}

    def _accepted(self, column: str) -> AcceptedPart:
        assert self.given.probability is not None
        assert self.design.at_most is not None
        share, options = self.design.at_most, dict[str, Any](tolerance=self.design.tolerance)
        evidence = self.record, self._predicted(column), self.given.probability
        if self.design.accept == "all":
            return accept_corrected(*evidence, allowed_wrong(share, len(self.given)), **options)
        return accept_share(*evidence, share, **options)

    def __str__(self) -> str:
        return str(self.result)

    def _repr_html_(self) -> str:
        """What the check has shown, for notebooks."""
        result = self.result
        first, *rest = result.sentences()
        return card(first, [("", sentence) for sentence in rest], tone="stop" if result.guaranteed else "go on")

    def __repr__(self) -> str:
        answered = len(self.record.items) - len(self.record.pending)
        return f"PredictionCheck({self.given!r}, {count(answered, 'answer')})"
