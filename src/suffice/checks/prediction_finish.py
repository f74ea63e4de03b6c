"""From given predictions to a finished data set: people label the least sure rows, and a check covers the others."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from suffice.arguments import real, whole
from suffice.checks.data_set import DataSetGuarantee
from suffice.checks.finish_plan import FinishPlan, allowed_wrong, joint_answers
from suffice.checks.given_finish import expected_errors, given_plan, least_sure
from suffice.checks.given_predictions import PredictedColumns, class_text, is_missing
from suffice.checks.guarantee import Guarantee
from suffice.checks.random_check import Check, is_wrong, sequential_progress, spent_alpha
from suffice.checks.random_source import CHECK_STREAM, check_rng
from suffice.checks.sequential_terms import SequentialTerms
from suffice.checks.standing_finish import StandingFinish
from suffice.errors import InvalidValueError, SufficeError
from suffice.presentation.check_words import sequential_words
from suffice.presentation.goal_words import short_sentence
from suffice.presentation.text_format import count, is_or_are

# Rows that are drawn at random first, and afterwards one of so many.
_INITIAL: Final = 10
_EVERY: Final = 5


class PredictionFinish:
    """Labels of people and given predictions, of which at most a share is wrong in the end.

    :meth:`GivenPredictions.finish` returns it. People label the rows of which the predictions are least sure, and some
    at random. When the plan says so, a check of the other rows starts. What it finds wrong is corrected, and it ends by
    itself. Predictions are replaced only by the answers of people.

    Rows that nobody can label leave the data set. If the number of wrong labels that the check has proven is then more
    than the goal allows of the others, people go on, and another check starts with an error probability of its own.

    Args:
        given: One column of predictions; with a probability, the least sure rows are known.
        at_most: Largest acceptable share of wrong labels among all rows, from 0 to 1.
        confidence: Confidence of the guarantee.
        earlier_checks: Number of checks of these rows before.
        annotator_error: Share of the labels by people that may be wrong; it is subtracted from ``at_most``.
        answer_cost: Cost of an answer in the check, relative to a label.
        tolerance: For numbers: the largest error that is not wrong.
        seed: For reproducible draws; drawn from the operating system if left out.

    Attributes:
        given: As given.
        labels: The labels of people by row; None for a row that nobody could label.

    Raises:
        InvalidValueError: An argument is out of range, or there are several columns.

    Examples:
        >>> from suffice.checks import of_predictions
        >>> truth = ["spam" if row % 4 == 0 else "ham" for row in range(1000)]
        >>> llm = [label if row % 5 else "ham" for row, label in enumerate(truth)]
        >>> sure = [0.6 if row % 5 == 0 else 0.95 for row in range(1000)]
        >>> work = of_predictions(llm, sure).finish(at_most=0.02, seed=0)
        >>> guarantee = work.run(lambda row: truth[row])
        >>> guarantee.wrong_at_most, guarantee.by_people < 500
        (20, True)
    """

    def __init__(  # noqa: PLR0913 - all but one by keyword
        self,
        given: PredictedColumns,
        *,
        at_most: float,
        confidence: float = 0.95,
        earlier_checks: int = 0,
        annotator_error: float = 0.0,
        answer_cost: float = 1.0,
        tolerance: float | None = None,
        seed: int | None = None,
    ) -> None:
        if len(given.columns) > 1:
            raise InvalidValueError("a data set is finished with one column of predictions; give one, not several")
        if given.numbers == (tolerance is None):
            need = "give tolerance, the largest error that is not wrong" if given.numbers else "leave tolerance out"
            kind = "numbers" if given.numbers else "classes"
            raise InvalidValueError(f"the predictions are {kind}; {need}")
        real(confidence, "confidence", "above 0 and below 1", lambda x: 0.0 < x < 1.0)
        # This raises an error if the labels of people alone exceed the goal.
        allowed_wrong(at_most, len(given), annotator_error)
        self.given, self._tolerance = given, tolerance
        self._at_most, self._annotator_error = float(at_most), float(annotator_error)
        self._cost = real(answer_cost, "answer_cost", "above 0", lambda x: x > 0.0)
        self._alpha, self._number = round(1.0 - confidence, 15), whole(earlier_checks, "earlier_checks", least=0) + 1
        rng = check_rng(seed, CHECK_STREAM, self._number)
        # The order of random rows before the check; the check has an order of its own.
        self._random_order = rng.permutation(len(given))
        self._rng = rng
        self.labels: dict[int, Any] = {}
        self._random: set[int] = set()
        self._standing = StandingFinish()
        self._check: Check | None = None
        # What the last check has proven, and the rows that it is about.
        self._proof: Guarantee | None = None
        self._proven_about: frozenset[int] = frozenset()
        self._pool: list[int] = []
        self._order: list[int] = []
        self._asked: list[int] = []

    # Questions and answers.

    @property
    def open(self) -> bool:
        """Whether answers are missing."""
        return self.guarantee is None

    @property
    def checking(self) -> bool:
        """Whether the check has started."""
        return self._check is not None

    @property
    def plan(self) -> FinishPlan | None:
        """The plan now; None before the first, and once the check has started."""
        if self._check is not None or self._standing.plan is None:
            return None
        return self._standing.now(self._by_people)

    @property
    def _by_people(self) -> int:
        return sum(label is not None for label in self.labels.values())

    def next(self, number: int = 1) -> NDArray[np.intp]:
        """The next rows to label. A repeated call returns the same rows until they are answered."""
        size = whole(number, "number", least=1)
        if not self.open:
            return np.zeros(0, dtype=np.intp)
        if self._check is None and self._due():
            self._start()
        if self._check is not None:
            return np.array(self._check.pending[:size], dtype=np.intp)
        while len(self._asked) < size and len(self._asked) + len(self.labels) < len(self.given):
            self._asked.append(self._choice())
        return np.array(self._asked[:size], dtype=np.intp)

    def _choice(self) -> int:
        """The next row before the check."""
        taken = self.labels.keys() | set(self._asked)
        if len(taken) >= _INITIAL and len(taken) % _EVERY:
            found = least_sure(self.given.probability, taken, len(self.given), 1)
            if len(found):
                return int(found[0])
        row = next(int(row) for row in self._random_order if int(row) not in taken)
        self._random.add(row)
        return row

    def tell(self, answers: Any) -> DataSetGuarantee | None:
        """Record labels.

        Args:
            answers: Labels by row, or those of the rows that :meth:`next` returned, in that order. None for a row that
                nobody can label; it has no final label.

        Returns:
            The guarantee, if the goal is reached.

        Raises:
            InvalidValueError: The goal is reached, or there are more answers than rows that were asked for.
        """
        if not self.open:
            raise InvalidValueError("the goal is reached, and no more labels are needed")
        asked = self._asked if self._check is None else list(self._check.pending)
        if isinstance(answers, Mapping):
            told = {int(row): label for row, label in answers.items()}
        else:
            single = isinstance(answers, str | bytes) or not isinstance(answers, Iterable)
            values = [answers] if single else list(answers)
            if len(values) > len(asked):
                answers, rows = count(len(values), "answer"), count(len(asked), "row")
                raise InvalidValueError(f"{answers} {is_or_are(len(values))} given for the {rows} asked for")
            told = dict(zip(asked, values, strict=False))
        if outside := [row for row in told if not 0 <= row < len(self.given) or row in self.labels]:
            raise InvalidValueError(f"row {outside[0]} does not exist, or has an answer already")
        self.labels |= {row: _label(value, numbers=self.given.numbers) for row, value in told.items()}
        self._asked = [row for row in self._asked if row not in told]
        if self._check is not None:
            self._check = self._checked(self._check)
            self._end(self._check)
        return self.guarantee

    def run(self, ask: Callable[[int], Any]) -> DataSetGuarantee:
        """Ask for labels until the goal is reached.

        Args:
            ask: Returns the label of a row.
        """
        while self.open:
            row = int(self.next()[0])
            self.tell({row: ask(row)})
        assert self.guarantee is not None
        return self.guarantee

    # The check.

    def _due(self) -> bool:
        """Whether to check now; the plan is made again when it is due."""
        people = self._by_people
        if len(self.labels) >= min(_INITIAL, len(self.given)) and self._standing.due(people):
            wrong = self._wrong()
            errors = expected_errors(self.given.probability, wrong, self._random, len(self.given))
            self._standing = given_plan(
                self._standing,
                errors,
                at_most=self._at_most,
                by_people=people,
                alpha=spent_alpha(self._number, self._alpha),
                annotator_error=self._annotator_error,
                answer_cost=self._cost,
            )
        return self._standing.plan is not None and self._standing.now(people).check_now

    def _wrong(self) -> dict[int, bool]:
        values = self.given.first
        return {
            row: is_wrong(label, values[row], self._tolerance)
            for row, label in self.labels.items()
            if label is not None
        }

    def _start(self) -> None:
        rest = np.setdiff1d(np.arange(len(self.given)), list(self.labels))
        rows, spent = len(self.given) - self._left_out, spent_alpha(self._number, self._alpha)
        allowed = allowed_wrong(self._at_most, rows, self._annotator_error)
        assert self._standing.plan is not None
        wrong = min(self._standing.plan.wrong_at_check, 0.8 * allowed)
        planned = int(joint_answers([len(rest)], allowed, [wrong], spent)[0])
        terms = SequentialTerms(len(rest), allowed, max(1, planned), spent, corrected=True)
        terms.require_provable()
        self._order = rest[self._rng.permutation(len(rest))[: terms.longest]].tolist()
        self._pool = rest.tolist()
        first = tuple(self._order[: terms.proof([]) or 1])
        record = Check(first, len(rest), self._number, self._alpha, sequential=terms)
        self._asked, self._check = [], self._checked(record)

    def _checked(self, record: Check) -> Check:
        """The check with the labels so far, and the rows that they require."""
        predicted = dict(zip(self._order, self.given.first[self._order].tolist(), strict=True))
        while True:
            fresh = [row for row in record.pending if row in self.labels]
            if not fresh:
                return record
            known = {row: self.labels[row] for row in fresh if self.labels[row] is not None}
            record = record.tell(known).cannot_label(row for row in fresh if self.labels[row] is None)
            record = record.reaching(self._order, predicted, tolerance=self._tolerance)

    def _end(self, record: Check) -> None:
        """Keep what a check has proven; if that is less than the goal, another check is next."""
        if not record.complete:
            return
        predicted = dict(zip(self._order, self.given.first[self._order].tolist(), strict=True))
        self._proof = record.guarantee({row: predicted[row] for row in record.items}, tolerance=self._tolerance)
        self._proven_about = frozenset(self._pool) - frozenset(record.items)
        if self.guarantee is None:
            self._check, self._order, self._number = None, [], self._number + 1
            self._standing = StandingFinish()

    # Results.

    @property
    def _left_out(self) -> int:
        return sum(label is None for label in self.labels.values())

    @property
    def guarantee(self) -> DataSetGuarantee | None:
        """What is guaranteed about all final labels; None before the goal is reached."""
        proven = self._proven
        if proven is not None and proven.reached:
            return proven
        counted = self._counted()
        allowed = allowed_wrong(self._at_most, counted["rows"], self._annotator_error)
        if counted["rows"] - counted["by_people"] > allowed:
            return None
        return DataSetGuarantee(proof=None, allowed=allowed, **counted)

    @property
    def _proven(self) -> DataSetGuarantee | None:
        """What the last check has proven about the labels that there are now, which may be less than the goal."""
        if self._proof is None:
            return None
        made = DataSetGuarantee(proof=self._proof, allowed=self._proof.allowed or 0, **self._counted())
        if made.reached:
            return made
        return made.after_corrections(sum(wrong for row, wrong in self._wrong().items() if row in self._proven_about))

    def _counted(self) -> dict[str, Any]:
        people, left_out = self._by_people, self._left_out
        return {
            "rows": len(self.given) - left_out,
            "by_people": people,
            "at_most": self._at_most,
            "annotator_error": self._annotator_error,
            "left_out": left_out,
            "tolerance": self._tolerance,
        }

    def final_labels(self) -> list[Any]:
        """The label of each row: that of people, otherwise the prediction; None for a row that nobody could label.

        Raises:
            SufficeError: The goal is not reached.
        """
        if self.guarantee is None:
            raise SufficeError("the goal is not reached yet; label the rows that next() returns")
        labels: list[Any] = self.given.first.tolist()
        for row, label in self.labels.items():
            labels[row] = label
        return labels

    def __str__(self) -> str:
        if self.guarantee is not None:
            return str(self.guarantee)
        if self._check is not None:
            predicted = dict(zip(self._order, self.given.first[self._order].tolist(), strict=True))
            return sequential_words(sequential_progress(self._check, predicted, self._tolerance) or {})
        so_far = f"{count(len(self.labels), 'label')} so far." if self.plan is None else str(self.plan)
        return so_far if self._proven is None else f"{short_sentence(self._proven.to_dict())} {so_far}"


def _label(value: Any, *, numbers: bool) -> Any:
    if is_missing(value):
        return None
    return real(value, "a label") if numbers else class_text(value)
