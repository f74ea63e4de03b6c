"""A background thread that learns the labels of a project, so that nobody waits for the model."""

import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from types import TracebackType
from typing import Any, Final, NamedTuple, Protocol

from numpy.typing import NDArray

from suffice.criteria import Verdict
from suffice.errors import SufficeError
from suffice.numerics import Floats
from suffice.presentation.decision_words import CATCHING_UP
from suffice.project.learned_files import LearnedFiles
from suffice.project.learning_status import LearningStatus, Predictions
from suffice.project.project_learner import Predictor, ProjectLearner, reason, suspicious_labels
from suffice.project.settings import Settings
from suffice.project.state import Answer, ProjectState
from suffice.project.status_summary import decision_of
from suffice.session.decision import Decision
from suffice.session.suspicious_labels import SuspiciousLabel

# Seconds between two checks of the journal for events of other processes.
_POLL: Final = 1.0
# During long learning: seconds between two published statuses, and between two choices of the best items.
_PUBLISH, _CHOOSE = 1.0, 4.0
# A person counts as active for this many seconds after an action; items are prepared for active people.
_ACTIVE: Final = 600.0
_LEAST_QUEUE, _MOST_QUEUE, _ITEMS_A_PERSON = 4, 100, 3
# Seconds to wait at the end for a computation that cannot be interrupted.
_LEAVING: Final = 10.0
# Minimal time between two saved states: in seconds, and as a multiple of the time that saving takes.
_KEEP, _KEEP_SHARE = 30.0, 50.0
# Predictions for all items are computed after this many idle seconds; and seconds allowed for them at the end.
_IDLE, _LAST_PREDICTIONS = 10.0, 2.0


class LearnableProject(Protocol):
    """The interface of a project that the background learner uses."""

    @property
    def settings(self) -> Settings:
        """Settings of the project."""

    @property
    def X(self) -> Floats:  # noqa: N802 - the field's own name
        """Features of its items."""

    @property
    def lock(self) -> AbstractContextManager[Any]:
        """Lock to hold while the state is read."""

    def state(self) -> ProjectState:
        """Present state."""

    def advise(self, decision: Decision) -> bool:
        """Record a change of the decision to stop."""


class _PendingWork(NamedTuple):
    """Labels to learn, settings, number of items to keep ready, and whether there is advice to stop.

    ``items`` is the number of items. When items are added, the model learns all labels again.
    """

    answers: list[Answer]
    queue: int
    advised: bool
    settings: Settings
    items: int


def queue_size(people: int, left: int) -> int:
    """Number of items to prepare: a few for each person, so that people do not wait while the model learns.

    Args:
        people: Number of people who label.
        left: Number of items that are neither labelled nor skipped.

    Examples:
        >>> queue_size(1, 1000), queue_size(20, 1000), queue_size(20, 7)
        (4, 60, 7)
    """
    return min(max(_LEAST_QUEUE, _ITEMS_A_PERSON * people), _MOST_QUEUE, left)


class BackgroundLearner:
    """Learns the labels of a project in a separate thread, keeps items ready, and records the advice to stop.

    If learning fails, ``learning_status`` contains the reason, and learning is tried again when labels change.
    Labelling is not interrupted. The saved state is read at the start. The state is saved when all labels are learned,
    and at the end.

    Args:
        project: The project.
        files: Files for the saved state; nothing is saved if left out.

    Attributes:
        learning_status: Results for the labels learned so far. It is replaced, never modified, so reading it needs no
            lock.
    """

    def __init__(self, project: LearnableProject, files: LearnedFiles | None = None) -> None:
        self._project, self._files = project, files
        self.learning_status = LearningStatus()
        self._news = threading.Condition()
        self._woken = self._closing = False
        # The number of answers that could not be learned; -1 while learning works.
        self._given_up = -1
        # Number of answers that a check withholds.
        self._held = 0
        self._project_learner: ProjectLearner | None = None
        self._in_use = threading.Lock()
        self._done: _PendingWork | None = None
        # Cache of the newest ranking of labels, with its model and answers.
        self._reviewing = threading.Lock()
        self._reviewed: tuple[str, list[Answer], list[SuspiciousLabel]] | None = None
        # Whether the model has learned other answers than the published ones, for a check.
        self._ahead = False
        # Number of rounds, and the last round after which all answers were learned or had failed.
        self._rounds = self._settled = 0
        # Whether all labels are being learned again from the first on; intermediate results are then not shown.
        self._afresh = True
        self._chosen = float("-inf")
        # Results that were read from files, and their answers, until the learner has learned as many.
        self._reopened: tuple[LearningStatus, _PendingWork] | None = None
        # Number of answers in the state that was read from files.
        self._resumed = 0
        # Time of the last new answer; the answers that were saved last, when, and how long that took.
        self._changed = self._kept_at = float("-inf")
        self._kept_work: _PendingWork | None = None
        self._predicted_work: _PendingWork | None = None
        self._keep_seconds = 0.0
        self._thread = threading.Thread(target=self._run, name="suffice background learner", daemon=True)

    def __enter__(self) -> "BackgroundLearner":
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def start(self) -> None:
        """Start the thread."""
        if not self._thread.is_alive():
            self._thread.start()

    def close(self) -> None:
        """Stop the thread. Unfinished learning is dropped, because it can be repeated from the journal."""
        with self._news:
            self._closing = True
            self._news.notify_all()
        if self._thread.is_alive():
            self._thread.join(_LEAVING)

    def wake(self) -> None:
        """Signal a new event in the journal. Without it, the event is read within a second."""
        with self._news:
            self._woken = True
            self._news.notify_all()

    def wait(self, n_answers: int, timeout: float) -> bool:
        """Wait until the model has learned.

        Args:
            n_answers: Minimal number of learned labels and skips, including those that a check withholds.
            timeout: Maximal waiting time in seconds.

        Returns:
            Whether it has learned them. If the model cannot learn, the method returns False immediately.
        """
        with self._news:
            self._news.wait_for(
                lambda: self._closing or max(self.learning_status.n_answers, self._given_up) + self._held >= n_answers,
                timeout,
            )
            return self.learning_status.n_answers + self._held >= n_answers

    def wait_settled(self, timeout: float) -> bool:
        """Wait until all present events of the journal are learned, including corrections and undone answers.

        Args:
            timeout: Maximal waiting time in seconds.

        Returns:
            Whether all are learned.
        """
        with self._news:
            wanted = self._rounds + 1
            self._woken = True
            self._news.notify_all()
            self._news.wait_for(lambda: self._closing or self._settled >= wanted, timeout)
            return self._settled >= wanted and self._given_up < 0

    @property
    def gave_up(self) -> bool:
        """Whether the model cannot learn the present labels; ``learning_status`` contains the reason."""
        return self._given_up >= 0

    def predictions(self) -> Predictions:
        """Predictions for all items by the present model; learning continues meanwhile.

        Raises:
            SufficeError: The model has not started.
        """
        with self._in_use:
            project_learner = self._begun_learner()
            predictor, settings, answers = (
                project_learner.predictor(),
                project_learner.settings,
                project_learner.answers,
            )
        kept = None if self._files is None else self._files.predictions(settings, answers)
        return predictor.predict(self._project.X) if kept is None else kept

    def predictor(self) -> Predictor:
        """A copy of the present model for predictions; it does not change while more is learned.

        Raises:
            SufficeError: The model has not started.
        """
        with self._in_use:
            return self._begun_learner().predictor()

    def _begun_learner(self) -> ProjectLearner:
        if self._project_learner is None:
            raise SufficeError(
                self.learning_status.problem or "the model has no prediction yet: it has not begun to learn"
            )
        return self._project_learner

    def suspicious_labels(self) -> list[SuspiciousLabel]:
        """The labels learned so far, ranked by how unlikely they are; the model continues to learn meanwhile.

        Raises:
            SufficeError: The model has not started.
        """
        with self._in_use:
            project_learner = self._begun_learner()
            predictor, answers, model = project_learner.predictor(), project_learner.answers, project_learner.model
        # One thread at a time: threads that wait here get the result of the first from the cache.
        with self._reviewing:
            if self._reviewed is None or self._reviewed[:2] != (model, answers):
                self._reviewed = model, answers, suspicious_labels((predictor, answers), self._project.X)
            return self._reviewed[2]

    def predicted_labels(self, model: str, answers: list[Answer]) -> NDArray[Any]:
        """Predictions for all items by the model after some answers, for a check.

        Args:
            model: Name of the model.
            answers: Labels and skips, in order.

        Raises:
            SufficeError: There are too few labels, or the model cannot learn them.
        """
        with self._in_use:
            # If no check starts, the model may have learned answers that are withheld.
            self._ahead = True
            project_learner = self._learner_of(self._project.settings.using(model), answers)
            project_learner.follow(answers)
            predictor = project_learner.predictor()
        return predictor.predict(self._project.X).labels

    def keep(self) -> bool:
        """Save the state, and return whether it was saved. A failure has no other effect."""
        if self._files is None:
            return False
        with self._in_use:
            project_learner, work = self._project_learner, self._done
            if project_learner is None or not project_learner.n_answers:
                return False
            settled = work is not None and not self._ahead and project_learner.answers == work.answers
            start = time.monotonic()
            try:
                kept = project_learner.keep_in(self._files, self.learning_status if settled else None)
            except Exception:
                # The state can be learned again.
                kept = False
            self._kept_at, self._kept_work = time.monotonic(), work
            self._keep_seconds = self._kept_at - start
        return kept

    def _keep_if_due(self) -> None:
        """Save the state at intervals, and the predictions after some idle time."""
        now = time.monotonic()
        if self._done is None or self._files is None or not self._files.kept:
            return
        if self._kept_work != self._done:
            if now - self._kept_at >= max(_KEEP, _KEEP_SHARE * self._keep_seconds):
                self.keep()
        elif self._predicted_work != self._done and now - self._changed >= _IDLE:
            self._keep_predictions(lambda: self._closing or self._woken)

    def _keep_last(self) -> None:
        """Save unsaved state at the end, and the predictions if they take little time."""
        if self._files is None or not self._files.kept:
            return
        if self._kept_work is None or self._kept_work != self._done:
            self.keep()
        end = time.monotonic() + _LAST_PREDICTIONS
        if self._done is not None and self._predicted_work != self._done:
            self._keep_predictions(lambda: time.monotonic() > end)

    def _keep_predictions(self, patience: Callable[[], bool]) -> None:
        """Save the predictions for all items, unless interrupted."""
        with self._in_use:
            project_learner, work = self._project_learner, self._done
            if project_learner is None or self._files is None or not project_learner.begun:
                return
            predictor, settings, answers = (
                project_learner.predictor(),
                project_learner.settings,
                project_learner.answers,
            )
        parts: list[Predictions] = []
        try:
            if self._files.predictions(settings, answers) is None:
                for part in predictor.parts(self._project.X):
                    if patience():
                        return
                    parts.append(part)
                self._files.keep_predictions(settings, answers, Predictions.joined(parts))
        except Exception:
            # The predictions can be computed again.
            parts.clear()
        self._predicted_work = work

    def _run(self) -> None:
        while not self._closing:
            try:
                behind = self._round()
            except Exception as error:
                # The journal could not be read or written; try again in the next round.
                self._done, behind = None, False
                self._publish(replace(self.learning_status, problem=_sentence(error)))
            if not behind:
                self._keep_if_due()
                self._rest()
        self._keep_last()

    def _round(self) -> bool:
        """Learn for about a second and publish the results; return whether there are more answers to learn."""
        with self._news:
            self._rounds += 1
        number, work = self._rounds, self._pending_work()
        if work == self._done and not self._ahead:
            self._settle(number)
            return False
        self._changed = time.monotonic()
        try:
            if self._project_learner is None:
                self._reopen(work)
            learning_status = self._learned(work)
        except Exception as error:
            # Do not try again before the answers change.
            self._done, self._given_up, self._afresh = work, len(work.answers), True
            self._publish(replace(self.learning_status, problem=_sentence(error)))
            self._settle(number)
            return False
        if self._closing:
            return False
        self._afresh |= learning_status.n_answers < self.learning_status.n_answers
        behind = learning_status.verdict is not None and learning_status.n_answers < len(work.answers)
        self._given_up = -1 if learning_status.verdict is not None else len(work.answers)
        self._afresh |= learning_status.verdict is None
        if behind and self._afresh:
            known = self._reopened_status(work)
            on_the_way = known or _on_the_way(learning_status, len(work.answers))
            learning_status = replace(on_the_way, queue=learning_status.queue)
        self._publish(learning_status)
        if behind:
            return True
        if self._reopened is not None and self._reopened_status(work) and self._resumed == len(work.answers):
            # There is nothing new to write.
            self._kept_work = work
        self._reopened = None
        self._afresh = learning_status.verdict is None
        if learning_status.verdict is not None:
            self._advise(learning_status, work)
        self._done = work
        self._settle(number)
        return False

    def _reopen(self, work: _PendingWork) -> None:
        """Publish saved results for exactly these answers."""
        found = None if self._files is None else self._files.status(work.settings, work.answers)
        if found is not None:
            self._reopened = found, work
            self._publish(found)

    def _reopened_status(self, work: _PendingWork) -> LearningStatus | None:
        """The results from files, while they belong to the first of the answers."""
        if self._reopened is None:
            return None
        found, before = self._reopened
        same = work.settings.learns_like(before.settings) and work.answers[: len(before.answers)] == before.answers
        return found if same else None

    def _advise(self, learning_status: LearningStatus, work: _PendingWork) -> None:
        """Record the decision to stop or to continue, if it differs from the journal."""
        decision = decision_of(learning_status, work.settings, learning_status.n_labelled)
        if decision.stop != work.advised:
            self._project.advise(decision)

    def _settle(self, number: int) -> None:
        with self._news:
            self._settled = number
            self._news.notify_all()

    def _pending_work(self) -> _PendingWork:
        since = time.time() - _ACTIVE
        with self._project.lock:
            state = self._project.state()
            people = sum(each.last >= since for each in state.people.values())
            settings = self._project.settings.using(state.model)
            learned = state.learned()
            self._held = state.n_labelled + state.n_skipped - len(learned)
            # The model has not learned withheld answers, so it may choose items that are answered already.
            size = min(queue_size(people, state.left) + max(0, self._held), _MOST_QUEUE)
            return _PendingWork(learned, size, state.advice is not None, settings, len(self._project.X))

    def _learned(self, work: _PendingWork) -> LearningStatus:
        with self._in_use:
            self._ahead = False
            project_learner = self._learner_of(work.settings, work.answers)
            project_learner.follow(work.answers, patience=self._patience(_PUBLISH))
            due = project_learner.n_answers == len(work.answers) or time.monotonic() - self._chosen > _CHOOSE
            if self._closing:
                return self.learning_status
            learning_status = project_learner.learning_status(queue=work.queue if due else 0)
        if not due:
            return replace(learning_status, queue=self.learning_status.queue)
        self._chosen = time.monotonic()
        return learning_status

    def _learner_of(self, settings: Settings, answers: list[Answer]) -> ProjectLearner:
        """The learner with these settings. A new learner continues from the saved state for these answers."""
        X, known = self._project.X, self._project_learner
        if known is None or not known.settings.learns_like(settings) or known.n_items != len(X):
            self._project_learner = ProjectLearner(settings, X)
            if self._files is not None:
                self._resumed = self._project_learner.resume_from(self._files, answers)
        assert self._project_learner is not None
        return self._project_learner

    def _patience(self, seconds: float) -> Callable[[], bool]:
        end = time.monotonic() + seconds
        return lambda: self._closing or time.monotonic() > end

    def _publish(self, learning_status: LearningStatus) -> None:
        with self._news:
            self.learning_status = learning_status
            self._news.notify_all()

    def _rest(self) -> None:
        with self._news:
            self._news.wait_for(lambda: self._woken or self._closing, _POLL)
            self._woken = False


def _on_the_way(learning_status: LearningStatus, n_answers: int) -> LearningStatus:
    """Status while all labels are learned again: the progress, without a verdict."""
    reason = f"the model is learning the labels again, {learning_status.n_answers:,} of {n_answers:,} so far"
    undecided = Verdict(
        stop=False,
        value=None,
        threshold=None,
        ready=False,
        reason=reason,
        rule=CATCHING_UP,
        n_labelled=learning_status.n_labelled,
    )
    return replace(learning_status, verdict=undecided, forecast=None, stopped_at=None, decision=None)


def _sentence(error: Exception) -> str:
    return f"The model does not follow the labels: {reason(error)}. No label is lost, and it is tried again."
