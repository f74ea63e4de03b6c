"""The learner of a project for several threads: one learns, others predict, and its state is saved to files."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from suffice.errors import SufficeError
from suffice.numerics import Floats
from suffice.project.item_learner import ItemLearner
from suffice.project.item_predictor import ItemPredictor
from suffice.project.learned_files import LearnedFiles
from suffice.project.learned_project import project_learner
from suffice.project.learning_status import LearningStatus, Predictions
from suffice.project.settings import Settings
from suffice.project.settings_editor import SettingsEditor
from suffice.project.state import Answer, ProjectState
from suffice.session.decision import Decision

if TYPE_CHECKING:
    from suffice.session.suspicious_labels import SuspiciousLabel

# Minimal time between two saved states: in seconds, and as a multiple of the time that saving takes.
_KEEP, _KEEP_SHARE = 30.0, 50.0
# Predictions for all items are computed after this many idle seconds; and seconds allowed for them at the end.
_IDLE, _LAST_PREDICTIONS = 10.0, 2.0
_NEVER: Final = float("-inf")


class LearnableProject(Protocol):
    """The interface of a project that the background learner uses."""

    @property
    def settings(self) -> Settings:
        """Settings of the project."""

    @property
    def X(self) -> Floats:  # noqa: N802 - the field's own name
        """Features of its items; they are computed if they are missing."""

    @property
    def features_missing(self) -> bool:
        """Whether the features of its items are not computed yet."""

    @property
    def size(self) -> int:
        """Number of its items."""

    @property
    def lock(self) -> AbstractContextManager[Any]:
        """Lock to hold while the state is read."""

    def state(self) -> ProjectState:
        """Present state."""

    @property
    def settings_editor(self) -> SettingsEditor:
        """Changes the model of the project."""

    def advise(self, decision: Decision) -> bool:
        """Record a change of the decision to stop."""


class LearningWork(NamedTuple):
    """Labels to learn, settings, number of items to keep ready, and whether there is advice to stop.

    ``items`` is the number of items. When items are added, the model learns all labels again. ``checked`` are answers
    of a complete check, which the results count before the model learns them.
    """

    answers: list[Answer]
    queue: int
    advised: bool
    settings: Settings
    items: int
    checked: list[Answer]


class ModelCopy(NamedTuple):
    """A copy of a model for predictions, with the settings and answers that it has learned."""

    predictor: ItemPredictor
    settings: Settings
    answers: list[Answer]


class SharedLearner:
    """The learner of a project, which several threads use.

    Args:
        project: The project.
        files: Files with the saved state; None if there are none.
        problem: Returns the reason why the model cannot learn, for error messages; empty if there is none.

    Attributes:
        ahead: Whether the model has learned other answers than the last work, for a check.
        n_resumed: Number of answers in the state that was read from files.
    """

    def __init__(self, project: LearnableProject, files: LearnedFiles | None, problem: Callable[[], str]) -> None:
        self._project, self._files, self._problem = project, files, problem
        self._learner: ItemLearner | None = None
        self._in_use = threading.Lock()
        self.ahead, self.n_resumed = False, 0
        # Cache of the newest ranking of labels, with its model and answers.
        self._ranking = threading.Lock()
        self._ranked: tuple[str, list[Answer], list[SuspiciousLabel]] | None = None

    @property
    def started(self) -> bool:
        """Whether learning has started."""
        return self._learner is not None

    @property
    def n_answers(self) -> int:
        """Number of answers learned so far; 0 before learning has started."""
        return 0 if self._learner is None else self._learner.n_answers

    @property
    def learned(self) -> tuple[Settings, list[Answer], list[Answer]] | None:
        """Settings, and the answers learned and counted so far; None before learning has started."""
        learner = self._learner
        return None if learner is None else (learner.settings, learner.answers, learner.checked)

    @contextmanager
    def learning(self, settings: Settings, answers: list[Answer]) -> Iterator[ItemLearner]:
        """The learner with these settings, for this thread only.

        Args:
            settings: The settings, with the model.
            answers: The answers to learn. A new learner continues from the saved state for these answers.
        """
        with self._in_use:
            self.ahead = False
            yield self._learner_of(settings, answers)

    def copy(self) -> ModelCopy:
        """A copy of the model for predictions; it does not change while more is learned.

        Raises:
            SufficeError: Learning has not started.
        """
        with self._in_use:
            if self._learner is None:
                raise SufficeError(self._problem() or "the model has no prediction yet: it has not begun to learn")
            return ModelCopy(self._learner.predictor(), self._learner.settings, self._learner.answers)

    def predictions(self) -> Predictions:
        """Predictions for all items, from the files if they contain them.

        Raises:
            SufficeError: The model has not started.
        """
        predictor, settings, answers = self.copy()
        saved = None if self._files is None else self._files.predictions(settings, answers)
        return predictor.predict(self._project.X) if saved is None else saved

    def suspicious_labels(self) -> "list[SuspiciousLabel]":
        """The labels learned so far, ranked by how unlikely they are.

        Raises:
            SufficeError: The model has not started.
        """
        from suffice.project.project_learner import suspicious_labels

        predictor, settings, answers = self.copy()
        # One thread at a time: threads that wait here get the result of the first from the cache.
        with self._ranking:
            if self._ranked is None or self._ranked[:2] != (settings.model, answers):
                ranked = suspicious_labels((predictor, answers), self._project.X)
                self._ranked = settings.model, answers, ranked
            return self._ranked[2]

    def predictions_after(self, model: str, answers: list[Answer]) -> Predictions:
        """Predictions for all items by the model after some answers, for a check.

        Args:
            model: Name of the model.
            answers: Labels and skips, in order.

        Raises:
            SufficeError: There are too few labels, or the model cannot learn them.
        """
        # Before the lock, because they may have to be computed.
        X = self._project.X
        with self._in_use:
            # If no check starts, the model may have learned answers that are withheld.
            self.ahead = True
            learner = self._learner_of(self._project.settings.using(model), answers)
            learner.follow(answers)
            predictor = learner.predictor()
        return predictor.predict(X)

    def save(self, files: LearnedFiles, status: LearningStatus, done: LearningWork | None) -> bool:
        """Save the state, and return whether it was saved. A failure has no other effect.

        Args:
            files: The files to write.
            status: Results for ``done``.
            done: The work that is complete; None if there are more answers to learn.
        """
        with self._in_use:
            learner = self._learner
            if learner is None or not learner.n_answers:
                return False
            learned = (learner.answers, learner.checked)
            complete = done is not None and not self.ahead and learned == (done.answers, done.checked)
            try:
                return learner.keep_in(files, status if complete else None)
            except Exception:
                # The state can be learned again.
                return False

    def save_predictions(self, files: LearnedFiles, interrupted: Callable[[], bool]) -> bool:
        """Save the predictions for all items, and return whether that is done; False if it was interrupted.

        Args:
            files: The files to write.
            interrupted: Returns whether to give up; it is called for each batch of items.
        """
        with self._in_use:
            learner = self._learner
            if learner is None or not learner.begun:
                return False
            predictor, settings, answers = learner.predictor(), learner.settings, learner.answers
        parts: list[Predictions] = []
        try:
            if files.predictions(settings, answers) is None:
                for part in predictor.parts(self._project.X):
                    if interrupted():
                        return False
                    parts.append(part)
                files.keep_predictions(settings, answers, Predictions.joined(parts))
        except Exception:
            # The predictions can be computed again.
            parts.clear()
        return True

    def _learner_of(self, settings: Settings, answers: list[Answer]) -> ItemLearner:
        X, learner = self._project.X, self._learner
        if learner is None or not learner.settings.learns_like(settings) or learner.n_items != len(X):
            learner = self._learner = project_learner(settings, X)
            if self._files is not None:
                self.n_resumed = learner.resume_from(self._files, answers)
        return learner


class LearnerSaver:
    """Saves the state of a learner to files: at intervals, and at the end.

    Predictions for all items are saved after some idle time.

    Args:
        learner: The learner.
        files: The files; nothing is saved if there are none.
    """

    def __init__(self, learner: SharedLearner, files: LearnedFiles | None) -> None:
        self._learner, self._files = learner, files if files is not None and files.kept else None
        # The work whose state was saved last, when, and how long that took; and the work whose predictions were saved.
        # More may have been learned since then without completing any work.
        self._saved: LearningWork | None = None
        self._saved_learned: tuple[Settings, list[Answer], list[Answer]] | None = None
        self._saved_at, self._seconds = _NEVER, 0.0
        self._begun_at = time.monotonic()
        self._predicted: LearningWork | None = None

    def save(self, done: LearningWork | None, status: LearningStatus) -> bool:
        """Save the state, and return whether it was saved.

        Args:
            done: The work that is complete, or None.
            status: Its results.
        """
        if self._files is None or not self._learner.n_answers:
            return False
        start = time.monotonic()
        saved = self._learner.save(self._files, status, done)
        self._saved, self._saved_learned, self._saved_at = done, self._learner.learned, time.monotonic()
        self._seconds = self._saved_at - start
        return saved

    def note_saved(self, work: LearningWork) -> None:
        """Record that the files contain the state for some work already."""
        self._saved, self._saved_learned = work, self._learner.learned

    def save_if_due(
        self, done: LearningWork | None, status: LearningStatus, *, idle_since: float, interrupted: Callable[[], bool]
    ) -> None:
        """Save the state if the last time is long ago, and the predictions if there was no new answer for a while.

        Args:
            done: The work that is complete, or None.
            status: Its results.
            idle_since: Time of the last new answer, by the monotonic clock.
            interrupted: Returns whether to give up predictions because there is something to learn.
        """
        if self._files is None or done is None:
            return
        now = time.monotonic()
        if self._saved != done:
            if now - self._saved_at >= max(_KEEP, _KEEP_SHARE * self._seconds):
                self.save(done, status)
        elif self._predicted != done and now - idle_since >= _IDLE:
            self._save_predictions(done, interrupted)

    def save_part_if_due(self, done: LearningWork | None, status: LearningStatus) -> None:
        """Save the state during long learning, so that little is lost if the process is killed.

        Args:
            done: The work that was complete last, or None.
            status: Its results.
        """
        since = time.monotonic() - max(self._saved_at, self._begun_at)
        if since >= max(_KEEP, _KEEP_SHARE * self._seconds) and self._saved_learned != self._learner.learned:
            self.save(done, status)

    def save_last(self, done: LearningWork | None, status: LearningStatus) -> None:
        """Save unsaved state at the end, and the predictions if they take little time."""
        if self._saved is None or self._saved != done or self._saved_learned != self._learner.learned:
            self.save(done, status)
        end = time.monotonic() + _LAST_PREDICTIONS
        if done is not None and self._predicted != done:
            self._save_predictions(done, lambda: time.monotonic() > end)

    def _save_predictions(self, done: LearningWork, interrupted: Callable[[], bool]) -> None:
        if self._files is not None and self._learner.save_predictions(self._files, interrupted):
            self._predicted = done
