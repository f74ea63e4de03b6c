"""The learner of a project. Its results depend only on the labels, their order, and which of them were random."""

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from typing import Any, Final

import numpy as np

from suffice.checks.standing_finish import spacing
from suffice.criteria import Budget, ErrorStability, Verdict
from suffice.errors import SufficeError
from suffice.learner import ActiveLearner
from suffice.learner.refitted import fit_due, refitted
from suffice.models.factory import MODEL_FAMILIES
from suffice.models.inputs import as_labels
from suffice.models.threads import one_thread
from suffice.numerics import Floats
from suffice.presentation.error_words import worsening_sentence
from suffice.project.item_learner import ItemLearner, reason
from suffice.project.item_predictor import ItemPredictor
from suffice.project.learned_files import MOST_BYTES, Checkpoint, LearnedFiles
from suffice.project.learning_status import ErrorEstimate, LearningStatus, Point, Predictions
from suffice.project.predictor import Predictor, require_model
from suffice.project.settings import Settings
from suffice.project.state import Answer
from suffice.saved_objects import NotSavableError, restored_objects, saved_objects
from suffice.session.decision import DecisionNumbers
from suffice.session.error_estimate import error_now
from suffice.session.suspicious_labels import SuspiciousLabel
from suffice.session.suspicious_labels import suspicious_labels as ranked_labels

# A checkpoint is saved if learning since the last one took this many times as long as saving it; and its size limit.
_WORTH_KEEPING: Final = 20.0
_MOST_KEPT: Final = 2**27


def thinned(checkpoints: Sequence[Checkpoint]) -> list[Checkpoint]:
    """Remove old checkpoints: one is kept for each doubling of the distance from the newest.

    Args:
        checkpoints: The checkpoints in the order in which they were made; at least one.

    Examples:
        >>> from suffice.saved_objects import saved_objects
        >>> made = [Checkpoint(n, saved_objects(None, most_bytes=0)) for n in range(0, 105, 5)]
        >>> [each.n_answers for each in thinned(made)]
        [0, 25, 65, 85, 95, 100]
    """
    newest = checkpoints[-1].n_answers
    every = spacing(newest)
    # The oldest checkpoint of each distance is kept, so that there is always one to take its place later.
    by_distance = {((newest - each.n_answers) // every).bit_length(): each for each in reversed(checkpoints)}
    kept: list[Checkpoint] = []
    size = 0
    for each in sorted(by_distance.values(), key=lambda each: -each.n_answers):
        size += each.saved.numbers.nbytes + len(each.saved.text)
        if not kept or size <= _MOST_KEPT:
            kept.append(each)
    return kept[::-1]


class ErrorTracker:
    """Records the estimated error of a learner's model, every few labels.

    The learner takes one label at a time, so an estimate depends on the labels and on which of them were random, and
    not on when it was read.

    Args:
        learner: The learner. It learns each label before the tracker.
        initial: Number of labels with which the learner's model starts.

    Attributes:
        n: Number of labels learned.
        warning: A sentence if labels have made the model worse; otherwise empty.
    """

    def __init__(self, learner: ActiveLearner, initial: int) -> None:
        self._learner, self._initial = learner, initial
        self._estimates: list[ErrorEstimate] = []
        # Cache of the estimate for a number of labels without a recorded estimate, because it is read several times.
        self._newest: ErrorEstimate | None = None
        self.n = 0
        self.warning = ""

    @property
    def begun(self) -> bool:
        """Whether the learner has a model. If no items are left, it starts with fewer labels."""
        return self.n >= self._initial or (self.n > 0 and not self._learner.left)

    def labels_learned(self, number: int) -> None:
        """Count labels that the learner has just learned as one step, and record an estimate if one is due."""
        self.n += number
        if self.begun and self.n % spacing(self.n) == 0:
            self._estimates.append(self._estimate())

    def errors(self, n_checked: int = 0) -> tuple[ErrorEstimate, ...]:
        """The recorded estimates and the current one; empty before the model has started.

        Args:
            n_checked: Number of labels that the learner counts now and has not learned.
        """
        if self.begun and n_checked:
            return (*self._estimates, self._estimate(n_checked))
        if not self.begun or (self._estimates and self._estimates[-1].n_labelled == self.n):
            return tuple(self._estimates)
        if self._newest is None or self._newest.n_labelled != self.n:
            self._newest = self._estimate()
        return (*self._estimates, self._newest)

    def state_dict(self) -> dict[str, Any]:
        """The estimates as JSON values."""
        return {
            "estimates": [list(estimate.__dict__.values()) for estimate in self._estimates],
            "newest": None if self._newest is None else list(self._newest.__dict__.values()),
            "n": self.n,
            "warning": self.warning,
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Restore :meth:`state_dict`."""
        self._estimates = [ErrorEstimate(*values) for values in state["estimates"]]
        self._newest = None if state["newest"] is None else ErrorEstimate(*state["newest"])
        self.n, self.warning = state["n"], state["warning"]

    @property
    def newest_value(self) -> float:
        """The value of the newest estimate at the learned labels, without more fits."""
        with self._learner.with_checked({}, random=()):
            return self.errors()[-1].value

    def model(self) -> tuple[Any, Any]:
        """The transformer of features into inputs, or None; and a copy of the model as it is now.

        Raises:
            SufficeError: The learner has no model yet.
        """
        model = self._learner.current_model
        transform, model = (model[:-1], model[-1]) if hasattr(model, "steps") else (None, model)
        return transform, deepcopy(model)

    def _estimate(self, n_checked: int = 0) -> ErrorEstimate:
        worse = self._learner.worsening()
        self.warning = "" if worse is None else worsening_sentence(worse.random_labels)
        error = error_now(self._learner.error_estimate(), share=self._learner.share)
        return ErrorEstimate(self.n + n_checked, *error)


# Pools up to this size are kept in double precision, which takes twice the memory.
_SMALL_POOL: Final = 20_000


class ProjectLearner(ItemLearner):
    """Learns the labels of a project in their order, and applies its stopping rule.

    Two learners learn the same labels, and which items were drawn at random. The judge learns one label per step and
    never chooses items. So its verdict is a function of the labels, skips and random items, exactly to the last bit: it
    does not depend on the order of calls or on restarts. The picker chooses items; it learns new labels when items are
    requested. An object of this class must not be used by several threads at once.

    A model that is fitted again to all labels, such as a forest, is not fitted for each label: see
    :func:`suffice.learner.refitted.fit_due`.
    Labels that wait for the next fit count as labels of a check do: the decision counts them, and the model predicts
    those that are random. Predictions are made by a model that is fitted to all labels.

    Args:
        settings: Settings of the project.
        X: Features of its items, ``n x D``.
        compare: Whether the model is compared with others once the rule says stop, which takes a few seconds each time.
            Predictions do not depend on it.

    Raises:
        InvalidValueError: The model is not known, or does not fit the task.

    Examples:
        >>> from suffice import ErrorStability
        >>> rule = ErrorStability().state_dict()
        >>> settings = Settings("demo", "regression", (), "y", "table", ("x",), None, "gp", rule)
        >>> X = np.linspace(-2.0, 2.0, 100)[:, None]
        >>> project_learner = ProjectLearner(settings, X)
        >>> project_learner.follow([Answer(item, float(np.sin(X[item, 0]))) for item in range(0, 100, 8)])
        >>> learning_status = project_learner.learning_status(queue=3)
        >>> learning_status.n_labelled, len(learning_status.queue), learning_status.verdict.ready
        (13, 3, False)
    """

    def __init__(self, settings: Settings, X: Floats, *, compare: bool = True) -> None:
        super().__init__(settings, X)
        self._compares = compare
        self._model = settings.estimator()
        self._refits = MODEL_FAMILIES[settings.model].estimator
        self._failed: list[Answer] | None = None
        self._start_over()

    def _start_over(self) -> None:
        self._answers = []
        # The last of them, which wait for the next fit; and a model that was fitted to all of them, with their number.
        self._waiting: list[Answer] = []
        self._newest: tuple[int, Any] | None = None
        self._checked = ([], 0)
        self._judge: ActiveLearner | None = None
        self._tracker: ErrorTracker | None = None
        self._picker: ActiveLearner | None = None
        self._picker_knows = 0
        self._problem = self._no_queue = ""
        # Whether the state was partly read from a checkpoint.
        self._resumed = False
        # Earlier states of the learner, in case a label is changed; and when the last was saved, and how long it took.
        self._checkpoints: list[Checkpoint] = []
        self._checkpointed, self._checkpoint_seconds = time.perf_counter(), 0.0

    @property
    def begun(self) -> bool:
        """Whether the model has the labels that it starts from."""
        return self._tracker is not None and self._tracker.begun

    def follow(
        self,
        answers: Sequence[Answer],
        *,
        checked: Sequence[Answer] = (),
        patience: Callable[[], bool] | None = None,
    ) -> None:
        """See :meth:`ItemLearner.follow`."""
        wanted = list(answers)
        self._learn(wanted, patience)
        self._checked = list(checked), len(wanted)

    def _learn(self, wanted: list[Answer], patience: Callable[[], bool] | None) -> None:
        """Learn new answers; see :meth:`follow`."""
        if self._failed is not None and wanted == self._failed:
            return
        if self._failed is not None:
            self._start_over()
        elif wanted[: len(self._answers)] != self._answers:
            self._go_back(wanted)
        self._failed = None
        try:
            judge = self._begin()
            for answer in wanted[len(self._answers) :]:
                if patience is not None and patience():
                    return
                self._tell(judge, answer)
                self._keep_checkpoint()
        # After any error, labelling continues without the model.
        except Exception as error:
            resumed = self._resumed
            self._start_over()
            if resumed:
                # The saved state may be damaged, so learn again without it.
                self._learn(wanted, patience)
                return
            self._failed = wanted
            self._problem = (
                f"The model cannot learn: {reason(error)}. No label is lost; it is tried again when labels change."
            )

    def _go_back(self, wanted: Sequence[Answer]) -> None:
        """Go back to the newest checkpoint before the first answer that has changed, or to the start."""
        same = next((n for n, pair in enumerate(zip(wanted, self._answers, strict=False)) if pair[0] != pair[1]), None)
        unchanged = min(len(wanted), len(self._answers)) if same is None else same
        if unchanged >= self._n_learned:
            self._waiting = self._answers[self._n_learned : unchanged]
            self._answers = self._answers[:unchanged]
            self._picker = self._newest = None
            return
        checkpoints = [each for each in self._checkpoints if each.n_answers <= unchanged]
        if not checkpoints or not self._resume(wanted, checkpoints):
            self._start_over()

    @property
    def _n_learned(self) -> int:
        """Number of answers that the judge has learned."""
        return len(self._answers) - len(self._waiting)

    def learning_status(self, *, queue: int = 0) -> LearningStatus:
        """State of the learning.

        Args:
            queue: Number of items to choose next. There may be fewer if few items are left or the model cannot choose.
        """
        if self._judge is None and self._failed is None:
            self.follow(self._answers)
        if self._judge is None or self._tracker is None:
            return LearningStatus(problem=self._problem)
        judge, checked = self._judge, self.checked if self._tracker.begun else []
        goal, n_labelled = self._settings.goal, self._tracker.n + _n_labels(self._waiting)
        counted = [*self._waiting, *checked]
        labels = {answer.item: answer.label for answer in counted if answer.label is not None}
        random = [answer.item for answer in counted if answer.random]
        skipped = [answer.item for answer in counted if answer.label is None]
        with judge.with_checked(labels, random=random, skipped=skipped):
            errors = self._tracker.errors(len(labels))
            numbers = self._numbers(judge) if errors else None
            verdict, stop = judge.verdict, judge.standing_stop
        # Before the status is built, because it also reports a failure of the picker.
        asked = self._ask(queue)
        return LearningStatus(
            n_answers=len(self._answers),
            n_labelled=n_labelled,
            verdict=verdict,
            curve=_curve(judge.verdicts),
            forecast=verdict.forecast,
            errors=errors,
            queue=asked,
            problem=self._no_queue,
            warning=self._tracker.warning,
            stopped_at=None if stop is None else stop.n_labelled,
            numbers=numbers,
            n_checked=len(checked),
            finish_totals=() if goal is None else judge.finish_totals(goal, self._settings.tolerance),
        )

    def _numbers(self, judge: ActiveLearner) -> DecisionNumbers:
        """The numbers of the decision, with the standing advice."""
        settings = self._settings
        if settings.goal is not None:
            return judge.finish_numbers(settings.goal, settings.tolerance)
        return judge.decision_numbers(settings.at_most, compare=self._compares, recall=self._recall)

    def _due(self, judge: ActiveLearner) -> bool:
        """Whether a decision would update the standing advice, or the standing plan."""
        settings = self._settings
        if settings.goal is not None:
            return judge.finish_due(settings.goal, settings.tolerance)
        return judge.decision_due(settings.at_most, compare=self._compares)

    @property
    def _recall(self) -> float | None:
        """The recall to be reached, in a screening."""
        return None if self._settings.positive is None else self._settings.recall

    def resume_from(self, files: LearnedFiles, answers: Sequence[Answer]) -> int:
        """See :meth:`ItemLearner.resume_from`."""
        checkpoints = files.checkpoints(self._settings, answers)
        while checkpoints and not self._resume(answers, checkpoints):
            del checkpoints[-1]
        return len(self._answers)

    def keep_in(self, files: LearnedFiles, learning_status: LearningStatus | None = None) -> bool:
        """See :meth:`ItemLearner.keep_in`."""
        if learning_status is not None:
            files.keep_status(self._settings, self._answers, learning_status, self.checked)
        newest = self._checkpoint() if files.kept else None
        if newest is None:
            return False
        if self.begun:
            files.keep_predictor(self._settings, self._answers, self.predictor())
        n = newest.n_answers
        earlier = [each for each in self._checkpoints if n - each.n_answers >= min(spacing(n), n)]
        return files.keep_learner(self._settings, self._answers, newest, earlier[-1] if earlier else None)

    def predictions_kept_in(self, files: LearnedFiles, X: Floats) -> Predictions:
        """See :meth:`ItemLearner.predictions_kept_in`."""
        predictions = self.predict(X)
        files.keep_predictions(self._settings, self._answers, predictions)
        return predictions

    def _checkpoint(self) -> Checkpoint | None:
        """The present state of the learner; None if it cannot be saved or cannot learn."""
        if self._judge is None or self._tracker is None or self._failed is not None:
            return None
        state = {"learner": self._judge.state_dict(), "tracker": self._tracker.state_dict()}
        try:
            saved = saved_objects(state, most_bytes=MOST_BYTES)
        except NotSavableError:
            return None
        return Checkpoint(self._n_learned, saved) if len(saved.text) <= MOST_BYTES else None

    def _keep_checkpoint(self) -> None:
        """Save the present state in case a later label is changed, if that is cheap."""
        n, start = self._n_learned, time.perf_counter()
        last = self._checkpoints[-1].n_answers if self._checkpoints else 0
        if n - last < spacing(n) or start - self._checkpointed < _WORTH_KEEPING * self._checkpoint_seconds:
            return
        found = self._checkpoint()
        self._checkpointed = time.perf_counter()
        self._checkpoint_seconds = self._checkpointed - start
        if found is not None:
            self._checkpoints = thinned([*self._checkpoints, found])

    def _resume(self, answers: Sequence[Answer], checkpoints: Sequence[Checkpoint]) -> bool:
        """Continue from the last checkpoint, made after the first of these answers; return False if it is damaged."""
        newest = checkpoints[-1]
        self._start_over()
        try:
            state = restored_objects(newest.saved)
            model, pool = self._model, self._pool_rows()
            judge = ActiveLearner.from_state(state["learner"], model, pool)
            tracker = ErrorTracker(judge, self._initial)
            tracker.load_state(state["tracker"])
            self._judge, self._tracker = judge, tracker
        # A file can be damaged in any way.
        except Exception:
            self._start_over()
            return False
        self._failed, self._resumed = None, True
        self._answers, self._checkpoints = list(answers[: newest.n_answers]), list(checkpoints)
        return True

    def predictor(self) -> Predictor:
        """A copy of the current model for predictions; it does not change while more is learned.

        Raises:
            SufficeError: The model has not started.
        """
        if self._tracker is None or not self._tracker.begun:
            raise SufficeError(
                self._problem
                or f"the model has no prediction yet: it begins with {self._initial} labels, and there are "
                f"{0 if self._tracker is None else self._tracker.n}"
            )
        classes, judge = self._settings.classes, self._judge
        ratios = tuple(judge.class_ratio(name) for name in classes) if judge is not None and classes else None
        if not self._refits:
            return Predictor(*self._tracker.model(), classes, ratios)
        deviation = None if classes else self._tracker.newest_value
        return Predictor(None, self._newest_model(), classes, ratios, deviation)

    def _newest_model(self) -> Any:
        """The model fitted to all labels, also to those that wait."""
        assert self._tracker is not None
        if not _n_labels(self._waiting):
            return self._tracker.model()[1]
        if self._newest is None or self._newest[0] != len(self._answers):
            labels = {answer.item: answer.label for answer in self._answers if answer.label is not None}
            X, y = np.asarray(self._X[list(labels)], dtype=np.float64), np.asarray(as_labels(list(labels.values())))
            with one_thread():
                fitted = refitted(self._model, X, y, classes=self._settings.task == "classification")
            self._newest = len(self._answers), fitted
        return self._newest[1]

    def _begin(self) -> ActiveLearner:
        if self._judge is None:
            self._judge = self._learner("order")
            self._tracker = ErrorTracker(self._judge, self._initial)
        return self._judge

    def _learner(self, acquisition: str | None) -> ActiveLearner:
        settings, size = self._settings, len(self._X)
        rule = settings.criterion() if acquisition == "order" else Budget(size) if self._refits else None
        return ActiveLearner(
            self._model,
            self._pool_rows(),
            criterion=rule,
            acquisition=acquisition,
            # The project draws the random items.
            random_share=0.0,
            seed=settings.pick_seed,
            initial=self._initial,
            positive=settings.positive,
            may_miss=settings.may_miss,
            dtype=np.float64 if size <= _SMALL_POOL else np.float32,
        )

    def _pool_rows(self) -> Any:
        # A learner reads a memory map in batches. Transformers are fitted to all rows at once.
        return np.asarray(self._X) if hasattr(self._model, "steps") else self._X

    def _tell(self, judge: ActiveLearner, answer: Answer) -> None:
        assert self._tracker is not None
        self._answers.append(answer)
        self._waiting.append(answer)
        if self._refits and self._tracker.begun and judge.left > len(self._waiting):
            n = self._tracker.n + _n_labels(self._waiting)
            if answer.label is None or not fit_due(n):
                return
        self._learn_waiting(judge, self._tracker)

    def _learn_waiting(self, judge: ActiveLearner, tracker: ErrorTracker) -> None:
        """Learn the answers that wait, as one step."""
        waiting, self._waiting = self._waiting, []
        if skips := [answer.item for answer in waiting if answer.label is None]:
            judge.skip(skips)
        if labels := [answer for answer in waiting if answer.label is not None]:
            items, given, random = zip(*labels, strict=True)
            judge.tell(list(items), list(given), random=list(random))
            tracker.labels_learned(len(labels))
            if tracker.begun and self._due(judge):
                # Decisions build on each other, so they are made at the same labels in every process.
                self._numbers(judge)

    def _ask(self, size: int) -> tuple[int, ...]:
        """The most useful items, by a picker that learns the new labels; none if it fails.

        A regressor of scikit-learn does not say where it is uncertain: then all items are drawn at random.
        """
        if size < 1 or self._no_queue or (self._refits and self._settings.task == "regression"):
            return ()
        try:
            if self._picker is None:
                self._picker, self._picker_knows = self._learner(None), 0
            picker, fresh = self._picker, self._answers[self._picker_knows :]
            if skips := [answer.item for answer in fresh if answer.label is None]:
                picker.skip(skips)
            if labels := [answer for answer in fresh if answer.label is not None]:
                items, given, random = zip(*labels, strict=True)
                picker.tell(list(items), list(given), random=list(random))
            self._picker_knows = len(self._answers)
            if not picker.left:
                return ()
            with warnings.catch_warnings():
                # This warning, that picks may differ by rounding, does not concern people who label.
                warnings.filterwarnings("ignore", "the largest variance of the pool is below")
                return tuple(int(item) for item in picker.ask(min(size, picker.left)))
        except Exception as error:
            self._picker = None
            self._no_queue = f"The model learns but cannot choose: {reason(error)}. Items are asked for at random."
            return ()


def _n_labels(answers: Sequence[Answer]) -> int:
    return sum(answer.label is not None for answer in answers)


def suspicious_labels(
    learned: ItemLearner | tuple[ItemPredictor, Sequence[Answer]], X: Floats
) -> list[SuspiciousLabel]:
    """Labels that a model has learned, ranked by their probability under models without them, the least likely first.

    Args:
        learned: The learner; or the model with the answers that it has learned.
        X: Features of all items, ``n x D``.

    Raises:
        SufficeError: The model has not started, or the predictions were made elsewhere.
    """
    predictor, answers = learned if isinstance(learned, tuple) else (learned.predictor(), learned.answers)
    model = require_model(predictor).model
    labels = {answer.item: answer.label for answer in answers if answer.label is not None}
    return ranked_labels(model, X[list(labels)], labels)


def _curve(verdicts: Sequence[Verdict]) -> tuple[Point, ...]:
    """The values and thresholds that a rule compared."""
    compared = [verdict for verdict in map(_compared, verdicts) if verdict is not None]
    return tuple(Point(shown.n_labelled, shown.value, shown.threshold) for shown in compared if shown.value is not None)


def _compared(verdict: Verdict) -> Verdict | None:
    """The verdict with a number: this one, or otherwise one of its parts, preferably that of the paper's rule."""
    if verdict.value is not None:
        return verdict
    parts = [part for part in map(_compared, verdict.parts) if part is not None]
    return next((part for part in parts if part.rule == ErrorStability.__name__), parts[0] if parts else None)
