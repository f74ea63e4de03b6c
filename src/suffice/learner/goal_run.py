"""A run to a finished data set on labelled data: labels of people, a check, and predictions for the rest."""

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from suffice.arguments import whole
from suffice.checks import ScreeningGuarantee
from suffice.checks.standing_finish import spacing
from suffice.criteria import Budget
from suffice.errors import InvalidValueError
from suffice.learner.active import ActiveLearner
from suffice.learner.model_choice import ModelChoice
from suffice.learner.own_acquisition import AcquisitionFunction
from suffice.learner.pool_model import PoolRows
from suffice.learner.prepare import prepare
from suffice.learner.step_inputs import positive_class
from suffice.models.inputs import as_labels
from suffice.presentation.text_format import count
from suffice.session.error_estimate import checked_tolerance
from suffice.session.finish import MODEL, FinalLabels
from suffice.session.goals import Goal, checked_goal

# A rule is not used: the goal decides when to stop.
_NO_RULE: Final = Budget(10**9)


class PlannedTotal(NamedTuple):
    """What the plan expected at one moment of a run.

    Attributes:
        n_labelled: Number of labels at that moment.
        total: Expected number of labels by people at the end, those of the check included.
    """

    n_labelled: int
    total: int


class UsedModel(NamedTuple):
    """A model of a run.

    Attributes:
        name: Its name.
        n_labelled: Number of labels from which on it was used.
    """

    name: str
    n_labelled: int


@dataclass(frozen=True, eq=False)
class FinishedRun:
    """A simulated run to a finished data set.

    Attributes:
        final: All final labels, and what is guaranteed about them.
        true_wrong: Number of final labels that are wrong; for numbers, that are off by more than the tolerance. In a
            screening, number of items of the class that are missed.
        in_check: Number of answers of the check.
        planned: What the plan expected at each decision.
        models: The models that were used, in order.

    Examples:
        >>> from suffice.models import BayesianLogistic
        >>> X = np.random.default_rng(0).normal(size=(150, 2)); y = np.where(X[:, 0] > 0.0, "right", "left")
        >>> run = finished_run(BayesianLogistic(), X, y, 0.1, seed=0)
        >>> isinstance(run, FinishedRun), run.true_wrong / 150 == run.true_share <= 0.1
        (True, True)
    """

    final: FinalLabels
    true_wrong: int
    in_check: int
    planned: tuple[PlannedTotal, ...]
    models: tuple[UsedModel, ...]

    @property
    def true_share(self) -> float:
        """Share of all final labels that is wrong; in a screening, share of all items of the class that is missed."""
        guarantee = self.final.guarantee
        items = guarantee.found + self.true_wrong if isinstance(guarantee, ScreeningGuarantee) else guarantee.rows
        return self.true_wrong / max(items, 1)

    def __str__(self) -> str:
        fault = "missed" if isinstance(self.final.guarantee, ScreeningGuarantee) else "wrong"
        said = f"In truth {self.true_wrong:,} {'is' if self.true_wrong == 1 else 'are'} {fault}."
        checked = f"{count(self.in_check, 'label')} of people {'was' if self.in_check == 1 else 'were'} in the check."
        return f"{self.final} {checked} {said}".replace("\u00a0", " ")


def finished_run(  # noqa: PLR0913 - all but four by keyword
    model: Any,
    X: Any,
    y: Any,
    at_most: float,
    *,
    tolerance: float | None = None,
    annotator_error: float = 0.0,
    correction_cost: float = 1.0,
    confidence: float = 0.95,
    acquisition: str | AcquisitionFunction | None = None,
    random_share: float | None = None,
    initial: int = 10,
    batch: int | None = None,
    seed: int | None = None,
    positive: Any = None,
    progress: Callable[[int, int], None] | None = None,
) -> FinishedRun:
    """Simulate the labelling of a data set until at most a given share of all final labels is wrong.

    The labels are known. A learner asks for them as :meth:`suffice.ActiveLearner.decision` with ``of="all"`` advises,
    a check covers the rest, and the model predicts it.

    Args:
        model: As for :class:`suffice.ActiveLearner`; or a :class:`suffice.learner.ModelChoice`, which chooses between
            models on the labels so far, until the check. It is not changed.
        X: Inputs, ``m x D``.
        y: Their labels.
        at_most: Largest acceptable share of wrong labels among all final labels.
        tolerance: For numbers: a value is wrong if it is off by more than this.
        annotator_error: Share of the labels by people that may be wrong; it is subtracted from ``at_most``. The labels
            of the simulation are right.
        correction_cost: Cost of an answer in the check relative to a label.
        confidence: Confidence of the guarantee.
        acquisition: As for :class:`suffice.ActiveLearner`.
        random_share: As for :class:`suffice.ActiveLearner`.
        initial: Number of labels at random before the model chooses.
        batch: Number of labels at each step; if left out, 5 up to 400 labels, and twice as many for each doubling.
        seed: As for :class:`suffice.ActiveLearner`.
        positive: For a screening: the class that is looked for. The likeliest items come first, and ``at_most`` is the
            share of all items of the class that may be missed.
        progress: Called now and then with the labels so far and the number that the plan expects in all.

    Raises:
        InvalidValueError: An argument cannot be used.

    Examples:
        >>> from suffice.models import BayesianLogistic
        >>> X = np.random.default_rng(0).normal(size=(1000, 3)); y = np.where(X[:, 0] > 0.0, "right", "left")
        >>> run = finished_run(BayesianLogistic(), X, y, 0.05, seed=0)
        >>> run.final.guarantee.by_people < 300, run.true_wrong <= 50
        (True, True)
        >>> y = np.where(X[:, 0] > 0.8, "relevant", "other")
        >>> run = finished_run(BayesianLogistic(), X, y, 0.1, positive="relevant", seed=0)
        >>> run.final.guarantee.by_people < 600, run.final.guarantee.recall_at_least >= 0.9
        (True, True)
    """
    goal = checked_goal("all", at_most, annotator_error, correction_cost, class_name=positive_class(positive))
    return _GoalRun(
        model,
        X,
        y,
        goal,
        tolerance=tolerance,
        confidence=confidence,
        batch=None if batch is None else whole(batch, "batch", least=1),
        settings={
            "acquisition": acquisition,
            "random_share": random_share,
            "seed": seed,
            "initial": initial,
            "positive": goal.class_name,
        },
        progress=progress,
    ).finished()


class _GoalRun:
    """A run; arguments as for :func:`finished_run`, and ``settings`` of the learner."""

    def __init__(  # noqa: PLR0913 - as above
        self,
        model: Any,
        X: Any,
        y: Any,
        goal: Goal,
        *,
        tolerance: float | None,
        confidence: float,
        batch: int | None,
        settings: dict[str, Any],
        progress: Callable[[int, int], None] | None,
    ) -> None:
        self._X, self._y, self._goal, self._batch = X, np.asarray(as_labels(y)), goal, batch
        rows = X.shape[0] if hasattr(X, "shape") else len(X)
        if len(self._y) != rows:
            raise InvalidValueError(f"X has {rows} rows and y {len(self._y)} labels; one label for each row is needed")
        # The choice of one run does not affect another one.
        self._choice = copy(model) if isinstance(model, ModelChoice) else None
        first = model if self._choice is None else self._choice.model
        share = prepare(first, X).backend.task == "classification"
        self._tolerance, self._confidence = checked_tolerance(tolerance, share=share), confidence
        if not share and self._tolerance is None:
            raise InvalidValueError("the model predicts numbers: give tolerance, the largest error that is not wrong")
        self._settings, self._progress = settings, progress
        self._learner = ActiveLearner(first, X, criterion=_NO_RULE, **settings)
        self._planned: list[PlannedTotal] = []
        self._models = [UsedModel(type(first).__name__ if self._choice is None else self._choice.name, 0)]

    def finished(self) -> FinishedRun:
        """Label, check and predict."""
        goal, in_check = self._goal, 0
        options: dict[str, Any] = {"tolerance": self._tolerance, "annotator_error": goal.annotator_error}
        while True:
            learner = self._learner
            decision = learner.decision(goal.at_most, of="all", correction_cost=goal.answer_cost, **options)
            if decision.stop:
                break
            plan = decision.finish
            if plan is not None:
                self._planned.append(PlannedTotal(decision.n_labelled, plan.by_people_at_end))
                if self._progress is not None:
                    self._progress(decision.n_labelled, plan.by_people_at_end)
            check_now = plan is not None and plan.check_now
            if self._switched(decision.n_labelled, before_check=check_now):
                continue
            if check_now:
                check = learner.check(at_most=goal.at_most, of="all", confidence=self._confidence, **options)
                while check.open:
                    check.tell(self._y[check.pending])
                in_check += len(check.record.labels)
                continue
            size = spacing(decision.n_labelled) if self._batch is None else self._batch
            items = learner.ask(self._settings["initial"] if plan is None else size)
            learner.tell(items, self._y[items])
        final = self._learner.final_labels(goal.at_most, **options)
        wrong = self._wrong(final)
        return FinishedRun(final, wrong, in_check, tuple(self._planned), tuple(self._models))

    def _switched(self, n_labelled: int, *, before_check: bool) -> bool:
        """Whether another model is better from now on; it learns the labels so far."""
        choice, old = self._choice, self._learner
        if choice is None or old.checks or not choice.due(n_labelled, before_check=before_check):
            return False
        items = np.array(old.labelled, dtype=np.intp)
        drawn = np.isin(items, old.random_items)
        better = choice.better(PoolRows(self._X).rows(items), self._y[items], drawn)
        if better is None:
            return False
        # No check was started, so nothing is spent.
        self._learner = ActiveLearner(choice.model, self._X, criterion=_NO_RULE, **self._settings | {"initial": items})
        self._learner.tell(items, self._y[items], random=drawn)
        self._models.append(UsedModel(better, n_labelled))
        return True

    def _wrong(self, final: FinalLabels) -> int:
        """Number of final labels that are wrong, or of items of the class that nobody has read."""
        if self._goal.class_name is not None:
            unread = [item for item, source in enumerate(final.source) if source == MODEL]
            return int(np.sum(self._y[unread] == self._goal.class_name))
        given = [item for item, source in enumerate(final.source) if source]
        labels, truth = np.asarray(as_labels([final.labels[item] for item in given])), self._y[given]
        if self._tolerance is None:
            return int(np.sum(labels != truth))
        return int(np.sum(np.abs(labels.astype(np.float64) - truth.astype(np.float64)) > self._tolerance))
