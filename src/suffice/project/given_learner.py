"""The place of the model in a project whose predictions were made elsewhere: nothing is learned."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from suffice.checks import spent_alpha
from suffice.checks.given_finish import GivenErrors, expected_errors, given_plan, least_sure
from suffice.checks.made_elsewhere import GivenPredictions
from suffice.checks.random_check import is_wrong
from suffice.checks.standing_finish import StandingFinish
from suffice.criteria import Verdict
from suffice.numerics import Floats
from suffice.project.item_learner import ItemLearner
from suffice.project.item_predictor import ItemPredictor
from suffice.project.learning_status import ErrorEstimate, LearningStatus, Predictions
from suffice.project.prediction_settings import given_predictions
from suffice.project.settings import Settings
from suffice.project.state import Answer
from suffice.session.decision import DecisionNumbers, ErrorNow

# Rows of the predictions that are read at a time.
_ROWS = 65_536


@dataclass(frozen=True, eq=False)
class GivenPredictor(ItemPredictor):
    """Returns predictions that were made elsewhere.

    Attributes:
        settings: Settings of the project.
    """

    settings: Settings

    def parts(self, X: Floats) -> Iterator[Predictions]:
        """The predictions, one batch at a time."""
        assert self.settings.checked is not None
        for start in range(0, max(len(X), 1), _ROWS):
            found = given_predictions(self.settings.checked, self.settings.classes, X[start : start + _ROWS])
            unknown = np.full(len(found), np.nan)
            yield Predictions(found.first, unknown if found.probability is None else 1.0 - found.probability, None)


class GivenLearner(ItemLearner):
    """Follows the answers of a project whose predictions were made elsewhere.

    It counts how many predictions are wrong, and plans labels and a check for a goal about all labels. Without such a
    goal there is nothing to plan: the check decides.

    Args:
        settings: Settings of the project.
        X: Features of its items, which contain the predictions.
    """

    def __init__(self, settings: Settings, X: Floats) -> None:
        assert settings.checked is not None
        super().__init__(settings, X)
        self._given: GivenPredictions = given_predictions(settings.checked, settings.classes, np.asarray(X))
        self._standing, self._planned_for = StandingFinish(), 0

    @property
    def begun(self) -> bool:
        """Whether there are predictions; they are not saved again."""
        return False

    def follow(
        self,
        answers: Sequence[Answer],
        *,
        checked: Sequence[Answer] = (),
        patience: Callable[[], bool] | None = None,  # noqa: ARG002 - nothing takes long
    ) -> None:
        """Take note of the answers; see :meth:`ItemLearner.follow`."""
        wanted = list(answers)
        if wanted[: len(self._answers)] != self._answers:
            self._standing, self._planned_for = StandingFinish(), 0
        self._answers, self._checked = wanted, (list(checked), len(wanted))
        self._plan()

    def _plan(self) -> None:
        """Make the plans that are due, at the same labels in every process."""
        goal = self._settings.goal
        if goal is None:
            return
        while self._planned_for < len(self._answers):
            self._planned_for += 1
            known = self._answers[: self._planned_for]
            labels = sum(answer.label is not None for answer in known)
            if known[-1].label is None or labels < self._initial or not self._standing.due(labels):
                continue
            self._standing = given_plan(
                self._standing,
                self._errors(known),
                at_most=goal.at_most,
                by_people=labels,
                alpha=spent_alpha(self._settings.earlier_checks + 1, round(1.0 - self._settings.confidence, 15)),
                annotator_error=goal.annotator_error,
                answer_cost=goal.answer_cost,
            )

    def _errors(self, answers: Sequence[Answer]) -> GivenErrors:
        """How likely each prediction is wrong, by some answers."""
        predictions, tolerance = self._given.first, self._settings.tolerance
        wrong = {
            answer.item: is_wrong(answer.label, predictions[answer.item], tolerance)
            for answer in answers
            if answer.label is not None
        }
        drawn = {answer.item for answer in answers if answer.random and answer.label is not None}
        return expected_errors(self._given.probability, wrong, drawn, len(self._given))

    def learning_status(self, *, queue: int = 0) -> LearningStatus:
        """State of the work: the plan for the goal, and the items of which the predictions are least sure."""
        answers, checked = self._answers, self.checked
        labels = sum(answer.label is not None for answer in answers)
        every = labels + sum(answer.label is not None for answer in checked)
        left = len(self._given) - len(answers) - len(checked)
        goal, settings = self._settings.goal, self._settings
        verdict = Verdict(False, None, None, True, "", "RandomCheck", labels)
        numbers = DecisionNumbers(every, max(left, 0), share=True, at_most=settings.at_most)
        errors: tuple[ErrorEstimate, ...] = ()
        problem = ""
        if goal is not None:
            plan = None if self._standing.plan is None else self._standing.now(labels)
            numbers = DecisionNumbers(every, max(left, 0), share=True, at_most=goal.at_most, of=goal.of, finish=plan)
            if labels >= self._initial:
                found = self._errors([*answers, *checked])
                drawn = sum(answer.random for answer in (*answers, *checked) if answer.label is not None)
                value = float(found.shares.mean()) if len(found.shares) else 0.0
                numbers = DecisionNumbers(**{**vars(numbers), "error": ErrorNow(value, found.low, found.high, drawn)})
                errors = (ErrorEstimate(every, value, found.low, found.high, drawn),)
                if found.judgement is not None and found.judgement.orders is False:
                    problem = str(found.judgement)
        taken = {answer.item for answer in (*answers, *checked)}
        wanted = queue if goal is not None else 0
        chosen = least_sure(self._given.probability, taken, len(self._given), wanted)
        return LearningStatus(
            n_answers=len(answers),
            n_labelled=labels,
            verdict=verdict,
            errors=errors,
            queue=tuple(chosen.tolist()),
            problem=problem,
            numbers=numbers,
            n_checked=len(checked),
            finish_totals=self._standing.totals,
        )

    def predictor(self) -> GivenPredictor:
        """The predictions that were made elsewhere."""
        return GivenPredictor(self._settings)
