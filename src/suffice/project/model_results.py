"""Results of the model of a project: pipeline, labels that are likely wrong, final labels, and advice to stop."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from suffice.arguments import whole
from suffice.checks.prediction_check import WRONG
from suffice.presentation.decision_words import decision_words
from suffice.project.check_runner import Predict
from suffice.project.data_set_goal import (
    ProjectLabels,
    ReachedGoal,
    joined_final_labels,
    needs_present_model,
    reached_goal,
)
from suffice.project.events import Draft, EventKind
from suffice.project.journal import ConflictError, ProjectJournal
from suffice.project.learning_status import Predictions
from suffice.project.project_contents import ProjectContents
from suffice.project.settings import Settings
from suffice.project.state import Answer, ProjectState
from suffice.session.decision import Decision

if TYPE_CHECKING:
    from suffice.session.suspicious_labels import SuspiciousLabel

# Maximal number of attempts to predict while other people add labels.
_TRIES: Final = 5


class ModelResults:
    """Results of the model after the current labels, and its advice in the journal.

    Args:
        journal: Journal of the project.
        contents: Contents of the project.
    """

    def __init__(self, journal: ProjectJournal, contents: ProjectContents) -> None:
        self._journal, self._contents = journal, contents

    def pipeline(self) -> Any:
        """The current model as a scikit-learn pipeline; see :meth:`suffice.project.Project.pipeline`."""
        from sklearn.pipeline import Pipeline

        from suffice.project.learned_project import project_predictor
        from suffice.project.predictor import require_model

        predictor = require_model(project_predictor(self._contents))
        features_given = bool(self._contents.made_with.get("features"))
        steps = [] if features_given else [("features", self._contents.transformer())]
        steps += [] if predictor.transform is None else [("inputs", predictor.transform)]
        return Pipeline([*steps, ("model", predictor.model)])

    def suspicious_labels(self, n: int | None = None) -> "list[SuspiciousLabel]":
        """The labels, the least likely first; see :meth:`suffice.project.Project.suspicious_labels`."""
        from suffice.project.learned_project import learned_project
        from suffice.project.project_learner import suspicious_labels

        most = None if n is None else whole(n, "n", least=1)
        ranked = suspicious_labels(learned_project(self._contents), self._contents.X)
        return self.open_to_review(ranked)[:most]

    def open_to_review(self, ranked: "Sequence[SuspiciousLabel]") -> "list[SuspiciousLabel]":
        """The given labels, without those that were changed or confirmed and without items of a check."""
        with self._journal.lock:
            state = self._journal.state()
            return [
                suspicious
                for suspicious in ranked
                if state.label_of(suspicious.item) == suspicious.label
                and not state.labels.is_confirmed(suspicious.item)
                and not state.checks.includes(suspicious.item)
            ]

    def reached_goal(self) -> ReachedGoal | None:
        """What is guaranteed about all final labels; see :meth:`suffice.project.Project.reached_goal`."""
        with self._journal.lock:
            return reached_goal(self._journal.state(), self._journal.settings)

    def final_labels(self, predict: Predict | None = None) -> ProjectLabels:
        """All labels of the project; see :meth:`suffice.project.Project.final_labels`."""
        for attempt in range(_TRIES):
            with self._journal.lock:
                state = self._journal.state()
                if not needs_present_model(state, self._journal.settings):
                    return self._answered(joined_final_labels(state, self._journal.settings, None), state)
                answers, settings = state.learned(), self._contents.current_settings
            if not attempt and predict is None and self._contents.features_missing:
                # The settings of the model depend on the features.
                _ = self._contents.X
                continue
            # Without the lock, because learning and predicting take time.
            found = self._predictions(settings, answers, predict)
            with self._journal.lock:
                state = self._journal.state()
                if state.learned() == answers and state.labels.size == len(found.labels):
                    return self._answered(joined_final_labels(state, self._journal.settings, found), state)
        raise ConflictError("labels come faster than the model learns and predicts; try again when fewer people label")

    def _answered(self, final: ProjectLabels, state: ProjectState) -> ProjectLabels:
        """The final labels; if people said whether predictions are right, these predictions with their corrections."""
        checked, columns = self._journal.settings.checked, self._journal.settings.columns
        if checked is None or checked.answer != "verdict":
            return final
        place, corrections = columns.index(checked.columns[0]) + 1, state.labels.corrections
        predicted = [row[place] for row in self._contents.rows(range(len(final.labels)))]
        labels = [
            None if label is None else corrections.get(item) if label == WRONG else predicted[item]
            for item, label in enumerate(final.labels)
        ]
        return replace(final, labels=labels)

    def _predictions(self, settings: Settings, answers: list[Answer], predict: Predict | None) -> Predictions:
        from suffice.project.learned_project import predictions_after

        contents = self._contents
        if predict is None:
            return predictions_after(settings, contents.X, answers, contents.learned_files)
        found = predict(settings.model, answers)
        return found if isinstance(found, Predictions) else Predictions(found, np.full(len(found), np.nan), None)

    def advise(self, decision: Decision) -> bool:
        """Record a change of the decision to stop; see :meth:`suffice.project.Project.advise`."""
        reason = decision_words(decision.as_dict(), initial=self._journal.settings.initial).sentences[0]
        n_labelled = decision.n_labelled if decision.since is None else decision.since

        def decide(state: ProjectState, _: float) -> tuple[list[Draft], None]:
            advised = state.advice is not None
            if decision.n_labelled != state.n_decided or decision.stop == advised:
                return [], None
            kind = EventKind.advised if decision.stop else EventKind.withdrawn
            return [Draft(kind, data={"n_labelled": n_labelled, "reason": reason})], None

        return bool(self._journal.write(decide)[0])
