"""The way to a finished data set: the standing plan for a goal, and the final labels that a check has proven."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from suffice.checks import (
    DataSetGuarantee,
    FinishPlan,
    Guarantee,
    ScreeningGuarantee,
    plan_finish,
    plan_screening,
)
from suffice.checks.data_set import FinalGuarantee
from suffice.checks.random_check import is_wrong
from suffice.checks.standing_finish import StandingFinish
from suffice.errors import SufficeError
from suffice.numerics import Floats
from suffice.presentation.goal_words import missing_sentence
from suffice.session.goals import Goal
from suffice.session.model_check import CheckedQuantity, ModelCheck, SessionChecks

if TYPE_CHECKING:
    # These load scikit-learn, which a project without a model does not need.
    from suffice.session.model_view import ModelView
    from suffice.session.session_estimates import SessionEstimates
    from suffice.session.session_labels import SessionLabels

#: Who gave a final label: a person before the check or after it, a person in the check, or the model.
PERSON, CHECK, MODEL = "person", "check", "model"


@dataclass(frozen=True, eq=False)
class FinalLabels:
    """All labels of a data set: those of people, and predictions for the other items.

    Attributes:
        labels: The label of each item; None for an item that nobody could label.
        source: Where it comes from: ``"person"``, ``"check"`` (a person, in the check) or ``"model"``; empty without a
            label.
        probability: Probability of each prediction, by the model; NaN for labels of people, and if it is not known.
        guarantee: What is guaranteed about them.
    """

    labels: list[Any]
    source: list[str]
    probability: Floats
    guarantee: FinalGuarantee

    def __str__(self) -> str:
        return str(self.guarantee)

    def to_frame(self) -> Any:
        """The labels as a pandas DataFrame with the columns ``label``, ``source`` and ``probability``."""
        import pandas as pd

        return pd.DataFrame({"label": self.labels, "source": self.source, "probability": self.probability})


class DataSetFinish:
    """Plans and final labels of a session whose goal is a finished data set.

    Args:
        labels: The labels.
        estimates: The estimates.
        checks: The checks.
    """

    def __init__(self, labels: "SessionLabels", estimates: "SessionEstimates", checks: SessionChecks) -> None:
        self._labels, self._estimates, self._checks = labels, estimates, checks
        self._standing: dict[tuple[Goal, float | None], StandingFinish] = {}

    # Plans.

    def plan(self, view: "ModelView", goal: Goal, tolerance: float | None = None) -> FinishPlan:
        """The standing plan for a goal.

        Args:
            view: The current model.
            goal: The goal, about all final labels.
            tolerance: For numbers: the largest error that is not wrong.
        """
        n, key = len(self._labels.everything), (goal, tolerance)
        standing = self._standing_at(key, n)
        if standing.due(n):
            made = self._made(view, goal, tolerance, check_advised=standing.check_advised)
            standing = self._standing[key] = standing.next(n, made, goal.answer_cost)
        return standing.now(n)

    def _standing_at(self, key: tuple[Goal, float | None], n_labelled: int) -> StandingFinish:
        standing = self._standing.get(key, StandingFinish())
        return StandingFinish() if standing.n_labelled > n_labelled else standing

    def due(self, goal: Goal, tolerance: float | None = None) -> bool:
        """Whether :meth:`plan` would make the plan again."""
        n = len(self._labels.everything)
        return self._standing_at((goal, tolerance), n).due(n)

    def totals(self, goal: Goal, tolerance: float | None = None) -> tuple[tuple[int, int], ...]:
        """Number of labels at each plan so far, and the labels by people that it expected at the end."""
        return self._standing_at((goal, tolerance), len(self._labels.everything)).totals

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Forget plans that are made in the context."""
        before = dict(self._standing)
        try:
            yield
        finally:
            self._standing = before

    def _made(self, view: "ModelView", goal: Goal, tolerance: float | None, *, check_advised: bool) -> FinishPlan:
        if goal.class_name is not None:
            relevant = self._estimates.relevant_shares(view)
            return plan_screening(
                goal.at_most,
                relevant.shares,
                class_name=str(goal.class_name),
                found=self._labels.of_class(goal.class_name),
                by_people=len(self._labels.everything),
                alpha=self._checks.next_alpha(),
                low=relevant.low,
                high=relevant.high,
                rest=self._labels.left,
                check_advised=check_advised,
            )
        estimate, shares = self._estimates.wrong_shares(view, tolerance)
        made = plan_finish(
            goal.at_most,
            shares,
            by_people=len(self._labels.everything),
            alpha=self._checks.next_alpha(),
            low=min(1.0, estimate.low),
            high=min(1.0, estimate.high),
            rest=self._labels.left,
            annotator_error=goal.annotator_error,
            answer_cost=goal.answer_cost,
            check_advised=check_advised,
        )
        return replace(made, tolerance=tolerance)

    # The result.

    def proof(self, goal: Goal | None = None) -> ModelCheck | None:
        """The newest check that has proven a goal about all final labels, or None.

        Args:
            goal: The goal; any if left out. A check of a stricter goal proves it as well.
        """
        found = (check for check in reversed(self._checks.checks) if proves_goal(check.asked, goal))
        return next((check for check in found if check.guarantee is not None), None)

    def guarantee(self, goal: Goal | None = None, tolerance: float | None = None) -> FinalGuarantee | None:
        """What is guaranteed about all final labels, or about a class; None if the goal is not reached.

        Args:
            goal: The goal; that of the newest check if left out.
            tolerance: For numbers: the largest error that is not wrong.
        """
        check, labels = self.proof(goal), self._labels
        if check is not None and check.asked.tolerance == tolerance and self._covers(check):
            made = self._proven(check, goal)
            if made.reached:
                return made
        counted = {"by_people": len(labels.everything), "left_out": len(labels.skipped)}
        if goal is None:
            return None
        found = None if goal.class_name is None else labels.of_class(goal.class_name)
        return unchecked_data_set(goal, labels.left, found=found, tolerance=tolerance, **counted)

    def _proven(self, check: ModelCheck, goal: Goal | None) -> FinalGuarantee:
        """What a check has proven about the labels that there are now."""
        assert check.guarantee is not None
        labels, asked = self._labels, check.asked
        made = proven_data_set(
            asked,
            check.guarantee,
            goal=goal,
            rows=labels.size - len(labels.skipped),
            by_people=len(labels.everything),
            left_out=len(labels.skipped),
            found=None if asked.relevant is None else labels.of_class(asked.relevant),
        )
        if made.reached or isinstance(made, ScreeningGuarantee):
            return made
        predicted = dict(zip(check.unlabelled.tolist(), check.predictions.tolist(), strict=True))
        later = labels.everything.keys() & predicted.keys() - set(check.record.items)
        wrong = sum(is_wrong(labels.everything[item], predicted[item], asked.tolerance) for item in later)
        return made.after_corrections(wrong)

    def _covers(self, check: ModelCheck) -> bool:
        """Whether each item without a label was one of those that a check was drawn from; others were taken back."""
        return bool(np.isin(self._labels.left_items, check.covered).all())

    def final_labels(self, view: "ModelView | None", goal: Goal | None, tolerance: float | None = None) -> FinalLabels:
        """All labels: those of people, and for the other items the predictions that the check has covered.

        Args:
            view: The current model, for predictions that need no check.
            goal: The goal; that of the newest check if left out.
            tolerance: For numbers: the largest error that is not wrong.

        Raises:
            SufficeError: The goal is not reached.
        """
        check = self.proof(goal)
        if check is not None and tolerance is None:
            tolerance = check.asked.tolerance
        guarantee = self.guarantee(goal, tolerance)
        if guarantee is None:
            raise SufficeError(self._missing(check, goal))
        answered = set() if check is None else set(check.record.labels)
        covering = None if guarantee.proof is None else check
        people = (self._labels.everything, answered, self._labels.skipped)
        return joined_labels(self._labels.size, self._predictions(view, covering), *people, guarantee)

    def _missing(self, check: ModelCheck | None, goal: Goal | None) -> str:
        """Why there are no final labels, in a sentence."""
        if check is not None and check.guarantee is not None and check.asked.relevant is None and self._covers(check):
            return missing_sentence({"reason": "short", **self._proven(check, goal).to_dict()})
        return 'the goal is not reached: no check has proven it; decision(at_most, of="all") says what is missing'

    def _predictions(self, view: "ModelView | None", check: ModelCheck | None) -> tuple[NDArray[np.intp], Any, Floats]:
        """Items, their predictions, and the probabilities of these."""
        if check is not None:
            items, values, probable = check.unlabelled, check.predictions.tolist(), check.probabilities
        else:
            items = self._labels.unlabelled
            if not len(items) or view is None:
                return np.zeros(0, dtype=np.intp), [], np.zeros(0)
            values = np.asarray(view.frozen(items)[1]).tolist()
            probable = prediction_probabilities(view, items)
        return items, values, np.full(len(items), np.nan) if probable is None else probable

    # Saving.

    def state_dict(self) -> list[dict[str, Any]]:
        """The standing plans as JSON values."""
        return [
            {**asdict(standing), "goal": asdict(goal), "tolerance": tolerance}
            for (goal, tolerance), standing in self._standing.items()
        ]

    def load_state(self, state: Sequence[Mapping[str, Any]]) -> None:
        """Restore :meth:`state_dict`."""
        for saved in state:
            values = dict(saved)
            key = (Goal(**values.pop("goal")), values.pop("tolerance"))
            plan = values.pop("plan")
            totals = tuple((int(n), int(total)) for n, total in values.pop("totals", ()))
            made = None if plan is None else FinishPlan(**plan)
            self._standing[key] = StandingFinish(**values, plan=made, totals=totals)


def proves_goal(asked: CheckedQuantity, goal: Goal | None = None) -> bool:
    """Whether a check with a guarantee proves a goal about all final labels. That of a stricter goal does as well.

    Args:
        asked: What the check is to guarantee.
        goal: The goal; any if left out.
    """
    if asked.of != "all" or asked.at_most is None:
        return False
    if goal is None:
        return True
    same = asked.relevant == goal.class_name
    return same and asked.at_most <= goal.at_most and asked.annotator_error >= goal.annotator_error


def proven_data_set(  # noqa: PLR0913 - all but two by keyword
    asked: CheckedQuantity,
    proven: Guarantee,
    *,
    goal: Goal | None,
    rows: int,
    by_people: int,
    left_out: int,
    found: int | None = None,
) -> FinalGuarantee:
    """What a check has proven about all final labels, or about a class.

    This can be less than the goal: rows that nobody could label have left the data set since the check started, or
    labels of a class that is looked for have been corrected.

    Args:
        asked: What it was to guarantee.
        proven: What it has proven about the items that were unlabelled when it started.
        goal: The goal, which may be less strict than that of the check; that of the check if None.
        rows: Number of final labels.
        by_people: Number of them that people gave.
        left_out: Number of items without a final label.
        found: In a screening, the number of items of the class that people have found.
    """
    assert asked.at_most is not None
    assert proven.allowed is not None
    given: dict[str, Any] = {"rows": rows, "by_people": by_people, "left_out": left_out, "proof": proven}
    given |= {"allowed": proven.allowed, "at_most": asked.at_most}
    made: FinalGuarantee
    if asked.relevant is None:
        made = DataSetGuarantee(**given, annotator_error=asked.annotator_error, tolerance=asked.tolerance)
    else:
        assert found is not None
        made = ScreeningGuarantee(str(asked.relevant), **given, found=found)
    return made if goal is None or made.reached else replace(made, at_most=goal.at_most)


def unchecked_data_set(  # noqa: PLR0913 - all but two by keyword
    goal: Goal,
    left: int,
    *,
    by_people: int,
    left_out: int,
    found: int | None = None,
    tolerance: float | None = None,
) -> FinalGuarantee | None:
    """What holds about all final labels, or about a class, without a check; None if it is not the goal.

    Args:
        goal: The goal.
        left: Number of items without a label.
        by_people: Number of labels by people.
        left_out: Number of items without a final label.
        found: In a screening, the number of items of the class that people have found.
        tolerance: For numbers: the largest error that is not wrong.
    """
    rows = by_people + left
    allowed = goal.allowed(rows, found or 0)
    if left > allowed:
        return None
    if goal.class_name is None:
        return DataSetGuarantee(rows, by_people, None, allowed, goal.at_most, goal.annotator_error, left_out, tolerance)
    name = str(goal.class_name)
    return ScreeningGuarantee(name, rows, by_people, found or 0, None, allowed, goal.at_most, left_out)


def joined_labels(  # noqa: PLR0913, PLR0917 - all of them are needed
    size: int,
    predictions: tuple[NDArray[np.intp], Any, Floats],
    people: Mapping[int, Any],
    answered: Collection[int],
    left_out: Collection[int],
    guarantee: FinalGuarantee,
) -> FinalLabels:
    """Join labels of people and predictions.

    Args:
        size: Number of items.
        predictions: Items, their predictions, and the probabilities of these.
        people: Labels by people, which replace predictions.
        answered: Items that people have labelled in the check.
        left_out: Items without a final label.
        guarantee: What is guaranteed about the labels.
    """
    labels: list[Any] = [None] * size
    source, probability = [""] * size, np.full(size, np.nan)
    items, values, probable = predictions
    for item, label, share in zip(items.tolist(), values, probable.tolist(), strict=True):
        labels[item], source[item], probability[item] = label, MODEL, share
    for item, label in people.items():
        labels[item], source[item], probability[item] = label, CHECK if item in answered else PERSON, np.nan
    for item in left_out:
        labels[item], source[item], probability[item] = None, "", np.nan
    return FinalLabels(labels, source, probability, guarantee)


def prediction_probabilities(view: "ModelView", items: NDArray[np.intp]) -> Floats | None:
    """The probability of the prediction for each item; None for numbers, and if the model does not provide it."""
    if view.task != "classification" or not len(items):
        return None
    return np.asarray(view.class_probabilities(items)[1].max(axis=1))
