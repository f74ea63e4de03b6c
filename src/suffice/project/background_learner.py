"""A background thread that learns the labels of a project, so that nobody waits for the model."""

import threading
import time
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

from suffice.criteria import Verdict
from suffice.presentation.decision_words import CATCHING_UP
from suffice.project.background_features import WAITING, BackgroundFeatures
from suffice.project.item_learner import reason
from suffice.project.item_predictor import ItemPredictor
from suffice.project.learned_files import LearnedFiles
from suffice.project.learning_status import LearningStatus, Predictions
from suffice.project.model_selection import chooses_model, compared_models
from suffice.project.shared_learner import LearnableProject, LearnerSaver, LearningWork, SharedLearner
from suffice.project.state import Answer
from suffice.project.status_summary import check_status, decision_of
from suffice.session.decision import Decision

if TYPE_CHECKING:
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


class SavedResults:
    """Results that were read from files, until the learner has learned as many answers.

    Args:
        files: The files, or None.
    """

    def __init__(self, files: LearnedFiles | None) -> None:
        self._files = files
        self._status: LearningStatus | None = None
        self._work: LearningWork | None = None

    def read(self, work: LearningWork) -> LearningStatus | None:
        """Read the results for exactly the answers of some work; None if there are none."""
        self._status = None if self._files is None else self._files.status(work.settings, work.answers, work.checked)
        self._work = work
        return self._status

    def status_of(self, work: LearningWork) -> LearningStatus | None:
        """The results that were read, if their answers are the first of the work; otherwise None."""
        before = self._work
        if before is None or not work.settings.learns_like(before.settings):
            return None
        return self._status if work.answers[: len(before.answers)] == before.answers else None

    def contain(self, work: LearningWork) -> bool:
        """Whether results were read, and are those of some work."""
        before = self._work
        if self._status is None or before is None or not work.settings.learns_like(before.settings):
            return False
        return (work.answers, work.checked) == (before.answers, before.checked)

    def forget(self) -> None:
        """Drop the results."""
        self._status = self._work = None


class BackgroundLearner:
    """Learns the labels of a project in a separate thread, keeps items ready, and records the advice to stop.

    If learning fails, ``learning_status`` contains the reason, and learning is tried again when labels change.
    Labelling is not interrupted. The saved state is read at the start. The state is saved when all labels are learned,
    from time to time while many are being learned, and at the end.

    Args:
        project: The project.
        files: Files for the saved state; nothing is saved if left out.

    Attributes:
        learning_status: Results for the labels learned so far. It is replaced, never modified, so reading it needs no
            lock.
        learner: The learner.
    """

    def __init__(self, project: LearnableProject, files: LearnedFiles | None = None) -> None:
        self._project = project
        self.learning_status = LearningStatus()
        self.learner = SharedLearner(project, files, self._why_no_model)
        self._saver, self._saved_results = LearnerSaver(self.learner, files), SavedResults(files)
        self._news = threading.Condition()
        self._features = BackgroundFeatures(project, self.wake)
        self._woken = self._closing = False
        # The work that is complete, or failed, and the number of answers that could not be learned; -1 if none.
        self._done: LearningWork | None = None
        self._given_up = -1
        # Answers on which models could not be compared.
        self._not_compared: list[Answer] | None = None
        # Number of answers that an open check withholds.
        self._held = 0
        # Number of rounds, and the last round after which all answers were learned or had failed.
        self._rounds = self._settled = 0
        # Whether all labels are being learned again from the first on; intermediate results are then not shown.
        self._afresh = True
        # Times of the last choice of the best items, and of the last new answer.
        self._chosen_at = self._changed_at = float("-inf")
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
            n_answers: Minimal number of labels and skips that the results count; those that an open check withholds
                are included.
            timeout: Maximal waiting time in seconds.

        Returns:
            Whether it has learned them. If the model cannot learn, the method returns False immediately.
        """
        with self._news:
            self._news.wait_for(
                lambda: self._closing or max(self._n_counted, self._given_up) + self._held >= n_answers, timeout
            )
            return self._n_counted + self._held >= n_answers

    @property
    def _n_counted(self) -> int:
        """Number of answers that the published results count: those learned, and those of a complete check."""
        return self.learning_status.n_answers + self.learning_status.n_checked

    def wait_ended(self, timeout: float) -> bool:
        """Wait until all present events of the journal are learned, or it is known that they cannot be learned.

        Args:
            timeout: Maximal waiting time in seconds.

        Returns:
            Whether nothing is left to learn. While the features of the items are computed, nothing can be learned.
        """
        with self._news:
            wanted = self._rounds + 1
            self._woken = True
            self._news.notify_all()
            self._news.wait_for(lambda: self._closing or self._settled >= wanted, timeout)
            return self._settled >= wanted

    def wait_settled(self, timeout: float) -> bool:
        """Wait until all present events of the journal are learned, including corrections and undone answers.

        Args:
            timeout: Maximal waiting time in seconds.

        Returns:
            Whether all are learned.
        """
        return self.wait_ended(timeout) and not self.gave_up

    @property
    def gave_up(self) -> bool:
        """Whether the model cannot learn the current labels; ``learning_status`` contains the reason."""
        return self._given_up >= 0

    def predictions(self) -> Predictions:
        """Predictions for all items by the current model; learning continues meanwhile.

        Raises:
            SufficeError: The model has not started.
        """
        return self.learner.predictions()

    def predictor(self) -> ItemPredictor:
        """A copy of the current model for predictions; it does not change while more is learned.

        Raises:
            SufficeError: The model has not started.
        """
        return self.learner.copy().predictor

    def suspicious_labels(self) -> "list[SuspiciousLabel]":
        """The labels learned so far, ranked by how unlikely they are; the model continues to learn meanwhile.

        Raises:
            SufficeError: The model has not started.
        """
        return self.learner.suspicious_labels()

    def predictions_after(self, model: str, answers: list[Answer]) -> Predictions:
        """Predictions for all items by the model after some answers, for a check.

        Args:
            model: Name of the model.
            answers: Labels and skips, in order.

        Raises:
            SufficeError: There are too few labels, or the model cannot learn them.
        """
        return self.learner.predictions_after(model, answers)

    def keep(self) -> bool:
        """Save the state, and return whether it was saved. A failure has no other effect."""
        return self._saver.save(self._done, self.learning_status)

    def _run(self) -> None:
        while not self._closing:
            try:
                behind = self._round()
            except Exception as error:
                # The journal could not be read or written; try again in the next round.
                self._done, behind = None, False
                self._publish(replace(self.learning_status, problem=_sentence(error)))
            if behind:
                self._saver.save_part_if_due(self._done, self.learning_status)
            else:
                self._saver.save_if_due(
                    self._done,
                    self.learning_status,
                    idle_since=self._changed_at,
                    interrupted=lambda: self._closing or self._woken,
                )
                with self._news:
                    self._news.wait_for(lambda: self._woken or self._closing, _POLL)
                    self._woken = False
        self._saver.save_last(self._done, self.learning_status)

    def _round(self) -> bool:
        """Learn for about a second and publish the results; return whether there are more answers to learn."""
        with self._news:
            self._rounds += 1
        number = self._rounds
        # First, because the settings of the model depend on the features.
        missing = self._features.missing()
        work = self._pending_work()
        if missing:
            self._wait_for_features(work)
        if missing or (work == self._done and not self.learner.ahead):
            self._settle(number)
            return False
        self._changed_at = time.monotonic()
        try:
            if not self.learner.started and (saved_status := self._saved_results.read(work)) is not None:
                self._publish(saved_status)
            learning_status = self._learned(work)
        except Exception as error:
            # Do not try again before the answers change.
            self._done, self._given_up, self._afresh = work, len(work.answers) + len(work.checked), True
            self._publish(replace(self.learning_status, problem=_sentence(error)))
            self._settle(number)
            return False
        if self._closing:
            return False
        started = learning_status.verdict is not None
        behind = started and learning_status.n_answers < len(work.answers)
        self._given_up = -1 if started else len(work.answers) + len(work.checked)
        self._afresh |= learning_status.n_answers < self.learning_status.n_answers or not started
        saved_status = self._saved_results.status_of(work)
        if behind and self._afresh:
            shown = saved_status or _on_the_way(learning_status, len(work.answers))
            learning_status = replace(shown, queue=learning_status.queue)
        decision = self._decision(learning_status, work) if started and not behind else None
        # Before the results are seen, because nothing is compared once somebody has started a check.
        if started and self._switched(work, decision):
            return True
        self._publish(learning_status)
        if behind:
            return True
        if self._saved_results.contain(work) and self.learner.n_resumed == len(work.answers):
            # There is nothing new to write.
            self._saver.note_saved(work)
        self._saved_results.forget()
        self._afresh = not started
        # Record the decision to stop or to continue, if it differs from the journal.
        if decision is not None and decision.stop != work.advised:
            self._project.advise(decision)
        self._done = work
        self._settle(number)
        return False

    def _why_no_model(self) -> str:
        """Why there is no model, in a sentence; empty if no reason is known."""
        status = self.learning_status
        waits = not status.problem and self._project.features_missing
        return WAITING if waits else status.problem

    def _wait_for_features(self, work: LearningWork) -> None:
        """Publish that the model waits for the features of the items. Nobody waits for it meanwhile."""
        learning_status = self._features.learning_status()
        self._given_up = len(work.answers) + len(work.checked)
        if learning_status != self.learning_status:
            self._publish(learning_status)

    def _decision(self, learning_status: LearningStatus, work: LearningWork) -> Decision:
        """The decision to stop. That for a goal about all labels depends on the checks in the journal."""
        if work.settings.goal is None:
            return decision_of(learning_status, work.settings, learning_status.n_labelled)
        with self._project.lock:
            state = self._project.state()
            size, checks = state.labels.size - state.n_skipped, check_status(state, work.settings)
            return decision_of(learning_status, work.settings, state.n_labelled, size=size, checks=checks)

    def _switched(self, work: LearningWork, decision: Decision | None) -> bool:
        """Compare models if that is due, because the model is chosen on the labels; return whether it has changed.

        Args:
            work: All answers; the current model need not have learned them.
            decision: The decision; None if it does not count all answers yet.
        """
        with self._project.lock:
            state = self._project.state()
            if work.answers == self._not_compared or not chooses_model(state, self._project.settings):
                return False
            compared = 0 if state.comparison is None else state.comparison.n_labelled
        before_check = decision is not None and decision.finish is not None and decision.finish.check_now
        options: dict[str, Any] = {"compared": compared, "before_check": before_check}
        try:
            found = compared_models(work.settings, work.answers, self._project.X, **options)
        except Exception:
            # The current model stays; do not try again before the answers change.
            self._not_compared = work.answers
            return False
        if found is None or not self._project.settings_editor.record_comparison(found, work.settings.model):
            return False
        return found.model != work.settings.model

    def _settle(self, number: int) -> None:
        with self._news:
            self._settled = number
            self._news.notify_all()

    def _pending_work(self) -> LearningWork:
        since = time.time() - _ACTIVE
        with self._project.lock:
            state = self._project.state()
            people = sum(person.last >= since for person in state.people.values())
            settings = self._project.settings.using(state.model)
            learned, checked = state.learned(), state.checked()
            withheld = state.n_labelled + state.n_skipped - len(learned)
            self._held = withheld - len(checked)
            # The model has not learned withheld answers, so it may choose items that are answered already.
            size = min(queue_size(people, state.left) + max(0, withheld), _MOST_QUEUE)
            return LearningWork(learned, size, state.advice is not None, settings, self._project.size, checked)

    def _learned(self, work: LearningWork) -> LearningStatus:
        with self.learner.learning(work.settings, work.answers) as learner:
            end = time.monotonic() + _PUBLISH
            learner.follow(work.answers, checked=work.checked, patience=lambda: self._closing or time.monotonic() > end)
            due = learner.n_answers == len(work.answers) or time.monotonic() - self._chosen_at > _CHOOSE
            if self._closing:
                return self.learning_status
            learning_status = learner.learning_status(queue=work.queue if due else 0)
        if not due:
            return replace(learning_status, queue=self.learning_status.queue)
        self._chosen_at = time.monotonic()
        return learning_status

    def _publish(self, learning_status: LearningStatus) -> None:
        with self._news:
            self.learning_status = learning_status
            self._news.notify_all()


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
    return replace(learning_status, verdict=undecided, forecast=None, stopped_at=None, numbers=None)


def _sentence(error: Exception) -> str:
    return f"The model does not follow the labels: {reason(error)}. No label is lost, and it is tried again."
