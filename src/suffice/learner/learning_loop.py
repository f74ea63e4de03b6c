"""Learning labels with a backend, one step at a time, and applying the rule of a session to each step."""

import base64
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from suffice.acquisition import Indices
from suffice.criteria import Verdict
from suffice.errors import SufficeError
from suffice.learner.backend import Backend, ItemSelection, StepResults
from suffice.learner.prepare import PreparedModel
from suffice.learner.step_inputs import SCREENING_FIELDS, relevant_estimates
from suffice.models.inputs import as_labels
from suffice.models.kernels import KernelFeatures
from suffice.models.logistic import BayesianLogistic
from suffice.models.principal import PrincipalFeatures
from suffice.models.regression import BayesianRidge, GaussianProcess
from suffice.numerics import Floats
from suffice.saved_objects import SavedObjects, restored_objects, saved_objects
from suffice.saved_state import decoded_array, encoded_array, plain_value
from suffice.session.held_out import HeldOutPrediction, number_predictions, predictions_of
from suffice.session.recorded_steps import Relearned, StepRecord, joined_measures
from suffice.session.session import Session
from suffice.session.session_labels import RULE_ITEMS, SKIPPED, sampled_items
from suffice.session.standing_stop import Cause

# Names of base classes of scikit-learn with their model families; importing the classes takes long.
_TREES: Final = {"BaseForest": "forest", "BaseHistGradientBoosting": "boosting"}
# Largest size of the arrays of a saved backend, in bytes. A larger one learns its labels again when it is restored.
_MOST_BYTES: Final = 2**28


class CountedFields:
    """Fields of a step that are counted, without the model.

    Args:
        used: The fields that the rule uses.
        session: The session.
        costs: Cost of the label of each item.
        validated: Number of labels of the validation set.
        seconds: Returns the time since the start.
    """

    def __init__(
        self, used: frozenset[str], session: Session, costs: Floats, validated: int, seconds: Callable[[], float]
    ) -> None:
        self.used, self._session, self._costs, self._validated = used, session, costs, validated
        self._seconds = seconds

    def now(self, random_labels: Callable[[], int]) -> dict[str, Any]:
        """The fields after the last label, as arrays of one entry."""
        labels = self._session.labels
        counters: dict[str, Callable[[], Any]] = {
            "cost": lambda: float(self._costs[list(labels.everything)].sum()),
            "seconds": self._seconds,
            "pool_size": lambda: labels.size,
            "validation_labels": lambda: self._validated,
            "random_labels": random_labels,
            "classes_seen": lambda: len(set(labels.learned.values())),
        }
        counted = {name: np.array([count()]) for name, count in counters.items() if name in self.used}
        if self.used & SCREENING_FIELDS:
            counted |= {name: values[-1:] for name, values in self._relevant().items() if name in self.used}
        return counted

    def along(self) -> dict[str, Any]:
        """The fields that depend on labels, after each label, because a label was changed."""
        counted: dict[str, Any] = {}
        if self.used & SCREENING_FIELDS:
            counted = {name: values for name, values in self._relevant().items() if name in self.used}
        if "classes_seen" in self.used:
            labels = np.asarray(as_labels(list(self._session.labels.learned.values())))
            _, first = np.unique(labels, return_index=True)
            counted["classes_seen"] = np.cumsum(np.isin(np.arange(len(labels)), first))
        return counted

    def _relevant(self) -> dict[str, Any]:
        """The numbers of found and of estimated relevant items after each label."""
        labels = self._session.labels
        relevance = [bool(label == self._session.positive) for label in labels.learned.values()]
        random = set(labels.random)
        drawn = [item in random for item in labels.learned]
        return {
            "relevant_found": np.cumsum(relevance),
            "estimated_relevant": relevant_estimates(relevance, drawn, labels.size),
        }


class LearningLoop:
    """Learns the labels of a session with a backend, and applies the rule to each step.

    Args:
        session: The session.
        backend: Learns labels.
        selection: Chooses items.
        X: Inputs of the pool, as the backend takes them.
        first: Items that are asked for before the model starts.
        counted: Fields that are counted.

    Attributes:
        record: What was measured at each step.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - the parts of a loop
        self,
        session: Session,
        backend: Backend,
        selection: ItemSelection,
        X: Any,
        first: Indices,
        counted: CountedFields,
    ) -> None:
        self.session, self.backend, self.selection, self.first = session, backend, selection, first
        self.record = StepRecord()
        self._X, self._counted = X, counted
        self._calibration = 1.0
        # The calls of the backend, from which it can be restored.
        self._calls: list[list[Any]] = []
        session.estimates.task = backend.task
        session.rule_verdict = self.undecided()

    @property
    def begun(self) -> bool:
        """Whether the model has learned its initial labels."""
        return self.record.begun > 0

    @property
    def marked_random(self) -> list[int]:
        """The items that were marked as random, see :meth:`mark_random`."""
        return [item for kind, *values in self._calls if kind == "random" for item in values[0]]

    def mark_random(self, items: Indices) -> None:
        """Record that items were drawn at random; before their labels are learned."""
        if len(items):
            self._calls.append(["random", items.tolist()])
            self.backend.mark_random(items)

    def learn(self, items: Indices, given: NDArray[Any], drawn: Indices) -> Verdict:
        """Learn labels as one step.

        Args:
            items: The items.
            given: Their labels.
            drawn: Those of the items that were drawn at random.
        """
        session, labels = self.session, self.session.labels
        if not self.begun:
            before = labels.status[items].copy()
            labels.add(items.tolist(), given, drawn.tolist())
            try:
                self._begin()
            except BaseException:
                labels.undo(items, before, len(drawn))
                raise
            return session.conclude(self.undecided())
        predicted = self.predictions(drawn)
        result = StepResults.joined([self.backend.learn(items, given, together=True)])
        self._calls.append(["learn", items.tolist(), [plain_value(label) for label in given]])
        self.add(items, given, drawn, predicted)
        self.selection.take(items)
        history = self.backend.relearn() if self.backend.until_relearning() == 0 else None
        return self.judge(len(items), result, history, random=len(drawn) > 0)

    def predictions(self, drawn: Indices) -> list[HeldOutPrediction]:
        """Predictions of the current model for random items, before it learns their labels."""
        if not len(drawn):
            return []
        return BackendView(self.backend, self._X, self.session.labels.learned).predictions(drawn)

    def add(self, items: Indices, given: Any, drawn: Indices, predicted: Sequence[HeldOutPrediction]) -> None:
        """Add labels that the backend has learned to the session.

        Args:
            items: The items.
            given: Their labels.
            drawn: Those of the items that were drawn at random.
            predicted: The result of :meth:`predictions` for them.
        """
        session, losses = self.session, self.session.estimates.losses
        session.labels.version += 1
        session.labels.add(items.tolist(), given, drawn.tolist())
        losses.budget.count_fit(len(session.labels.learned))
        losses.record(dict(zip(drawn.tolist(), predicted, strict=True)))
        for item in drawn.tolist():
            losses.label(item, session.labels.learned[item])

    def start(self, items: Indices, given: Any, drawn: Indices) -> None:
        """Add the initial labels, which the backend has learned, to the session.

        Args:
            items: The items.
            given: Their labels.
            drawn: Those of the items that were drawn at random.
        """
        self.session.labels.add(items.tolist(), given, drawn.tolist())
        self.session.estimates.losses.budget.count_fit(len(items))
        self.record.begun = len(items)
        self.session.conclude(self.undecided())

    def _begin(self) -> None:
        """Start the model when there are enough labels."""
        labels = self.session.labels
        values = np.asarray(as_labels(list(labels.learned.values())))
        if len(labels.learned) < len(self.first) and labels.left:
            self.backend.check(values)
            return
        items = np.array(list(labels.learned), dtype=np.intp)
        self.backend.begin(items, values)
        self.session.estimates.losses.budget.count_fit(len(items))
        self._calls.append(["begin", items.tolist(), values.tolist()])
        self.selection.begin(items)
        self.record.begun = len(items)
        skipped = np.flatnonzero(labels.status == SKIPPED)
        if len(skipped):
            self._skip_in_backend(skipped)

    def judge(self, size: int, result: StepResults, history: StepResults | None, *, random: bool) -> Verdict:
        """Record a step, and apply the rule to it.

        Args:
            size: Number of its labels.
            result: What the backend has measured.
            history: All steps, if hyper-parameters were learned again after it.
            random: Whether some of its labels are random.
        """
        record, backend, estimates = self.record, self.backend, self.session.estimates
        labels = self.session.labels
        counted = self._counted.now(lambda: estimates.losses.count(backend.judged_model(), labels.random))
        record.add(size, result, counted)
        if "calibration" in self._counted.used:
            # Only random labels change it, and leaving labels out is expensive.
            if random:
                self._calibration = self._ratio()
            record.set_last(calibration=self._calibration)
        if history is not None:
            return self._replaced(history, "relearned")
        return self._concluded(self.session.judge(record.last_step()))

    def _ratio(self) -> float:
        """The calibration of the rule by random labels."""
        labels, losses = self.session.labels, self.session.estimates.losses
        view = BackendView(self.backend, self._X, labels.learned)
        losses.refresh(view, labels.learned, labels.random)
        return losses.ratio(view, view.rule_items(labels.size), labels.learned, labels.random)

    def _replaced(self, history: StepResults, change: Cause) -> Verdict:
        """Replace the whole history, and apply the rule to it again."""
        if len(history.kl_new_old):
            self.record.replace(history, self.backend.revises)
        return self._concluded(self.session.rejudge(self.record.steps(), self.undecided(), change=change))

    def _concluded(self, verdict: Verdict) -> Verdict:
        steps = self.session.history.steps
        if steps and self.session.estimates.share:
            self.session.estimates.reducible_error = steps[-1].reducible_error or 0.0
        return verdict

    def correct(self, item: int, label: Any) -> Verdict:
        """Change a label that was learned, in the whole history."""
        session = self.session
        history = self.backend.correct(item, label) if self.begun else None
        if self.begun:
            self._calls.append(["correct", item, plain_value(label)])
        session.labels.learned[item] = label
        self.selection.corrected()
        session.estimates.losses.label(item, label)
        if history is not None:
            session.labels.version += 1
            self.record.recount(self._counted.along())
            self._replaced(history, "corrected")
        return session.rule_verdict

    def skip(self, items: Indices) -> Verdict:
        """Never choose these items again."""
        labels = self.session.labels
        before = labels.status[items].copy()
        labels.mark(items, SKIPPED)
        try:
            self.selection.skip(items)
            if self.begun:
                self._skip_in_backend(items)
            elif not labels.left and labels.learned:
                self._begin()
        except BaseException:
            labels.mark(items, before)
            raise
        return self.session.rule_verdict

    def _skip_in_backend(self, items: Indices) -> None:
        self.backend.skip(items)
        self._calls.append(["skip", items.tolist()])

    def undecided(self) -> Verdict:
        """The verdict before the rule can judge."""
        n, wanted = len(self.session.labels.learned), len(self.first)
        reason = (
            f"{n} of the {wanted} labels that the model starts from"
            if not self.begun
            else "the model has learned its first labels and chooses from here on"
        )
        return Verdict(
            stop=False, value=None, threshold=None, ready=False, reason=reason, rule="ActiveLearner", n_labelled=n
        )

    # Saving.

    def state_dict(self) -> dict[str, Any]:
        """The loop as JSON values."""
        record = self.record
        return {
            "session": self.session.state_dict(),
            "record": {
                "begun": record.begun,
                "sizes": list(record.sizes),
                "kl_new_old": list(record.kl_new_old),
                "kl_old_new": list(record.kl_old_new),
                "estimated": record.estimated,
                "measures": _packed(record.measures),
                "relearned": [
                    [seen.step, encoded_array(seen.kl_new_old), encoded_array(seen.kl_old_new), _encoded(seen.measures)]
                    for seen in record.relearned
                ],
            },
            "calibration": self._calibration,
            "count": self.selection.count,
            "calls": self._calls,
            "backend": self._saved_backend(),
        }

    def _saved_backend(self) -> dict[str, Any] | None:
        """The backend itself, if it consists of known objects; otherwise it learns its labels again."""
        if not self.begun:
            return None
        try:
            saved = saved_objects(self.backend.progress(), most_bytes=_MOST_BYTES)
        except SufficeError:
            return None
        return {"text": saved.text, "numbers": base64.b64encode(saved.numbers.tobytes()).decode("ascii")}

    def load_state(self, state: Mapping[str, Any], owner: Any) -> None:
        """Restore :meth:`state_dict` into a new loop with the same arguments.

        Args:
            state: The result of :meth:`state_dict`.
            owner: The learner, which receives the labels of checks.
        """
        record, saved = self.record, state["record"]
        record.begun, record.sizes, record.estimated = saved["begun"], list(saved["sizes"]), saved["estimated"]
        record.kl_new_old, record.kl_old_new = list(saved["kl_new_old"]), list(saved["kl_old_new"])
        record.measures = _unpacked(saved["measures"])
        record.relearned = [
            Relearned(step, decoded_array(new_old), decoded_array(old_new), _decoded(measures))
            for step, new_old, old_new, measures in saved["relearned"]
        ]
        self.session.load_state(state["session"], record.steps() if record.sizes else [], owner)
        self._calibration = float(state["calibration"])
        labels = self.session.labels
        self._restore_backend(state)
        if self.begun:
            self.selection.begin(np.array(list(labels.learned), dtype=np.intp))
        self.selection.skip(np.array(labels.skipped, dtype=np.intp))
        self.selection.resume(state["count"])
        verdicts = self.session.history.verdicts
        self._concluded(self.session.conclude(verdicts[-1] if verdicts else self.undecided()))

    def _restore_backend(self, state: Mapping[str, Any]) -> None:
        self._calls = [list(call) for call in state["calls"]]
        if state["backend"] is not None:
            numbers = np.frombuffer(base64.b64decode(state["backend"]["numbers"], validate=True), dtype=np.uint8)
            self.backend.resume(restored_objects(SavedObjects(state["backend"]["text"], numbers)))
            return
        for kind, *values in self._calls:
            self._repeat(kind, values)

    def _repeat(self, kind: str, values: list[Any]) -> None:
        """Repeat a call of the backend."""
        backend = self.backend
        if kind == "correct":
            backend.correct(values[0], np.asarray(as_labels(values[1:]))[0])
            return
        items = np.array(values[0], dtype=np.intp)
        if kind in ("begin", "learn"):
            labels = np.asarray(as_labels(values[1]))
            if kind == "begin":
                backend.begin(items, labels)
                return
            backend.learn(items, labels, together=True)
            if backend.until_relearning() == 0:
                backend.relearn()
        elif kind == "skip":
            backend.skip(items)
        elif kind == "random":
            backend.mark_random(items)
        else:
            raise ValueError(f"{kind!r} is no call of a backend")


class BackendView:
    """The current model of a backend, as far as estimates of the error need it.

    Args:
        backend: The backend.
        X: Inputs of the pool, as the backend takes them.
        labels: All learned labels by item, in the order learned.
    """

    def __init__(self, backend: Backend, X: Any, labels: Mapping[int, Any]) -> None:
        self._backend, self._X, self._labels = backend, X, labels

    @property
    def task(self) -> str:
        """``"classification"`` or ``"regression"``."""
        return self._backend.task

    def judged_model(self) -> Any:
        """The model without its pipeline."""
        return self._backend.judged_model()

    def learned_order(self) -> list[int]:
        """The labelled items in the order in which the model has learned them."""
        return list(self._labels)

    def rule_items(self, size: int) -> Indices:
        """The unlabelled items over which the inputs of rules are averaged, of a pool of this size."""
        items = sampled_items(size, RULE_ITEMS[self.task])
        return items[~np.isin(items, list(self._labels))]

    def inputs(self, items: Any) -> Any:
        """Inputs of items for :meth:`judged_model`."""
        return self._X[np.asarray(items, dtype=np.intp)]

    def expected_losses(self, items: Indices) -> Floats | None:
        """The loss that the model expects of each item; None if it does not provide it."""
        expected = [prediction.expected for prediction in self.predictions(items)]
        return None if None in expected else np.array(expected, dtype=np.float64)

    def predictions(self, items: Indices) -> list[HeldOutPrediction]:
        """Predictions for items that the model has not learned."""
        return self._predictions(self.judged_model(), items, len(self._labels))

    def predictions_without(self, items: Indices) -> list[HeldOutPrediction] | None:
        """Predictions for learned items by the model fitted again without them; None if that is not possible."""
        model = self._backend.refitted_without(items)
        return None if model is None else self._predictions(model, items, len(self._labels) - len(items))

    def _predictions(self, model: Any, items: Indices, n_labels: int) -> list[HeldOutPrediction]:
        inputs = self.inputs(items)
        if self.task == "regression" and not self._backend.gives_deviation:
            mean = np.asarray(model.predict(inputs), dtype=np.float64)
            return number_predictions(mean, None, n_labels)
        return predictions_of(model, inputs, self.task, n_labels)

    def expected_errors(self, items: Indices) -> tuple[Floats, Floats] | None:
        """The errors that the model expects of items, and their reducible parts; None if these are not known."""
        return self._backend.expected_errors(items)

    def class_probabilities(self, items: Indices) -> tuple[list[Any], Floats]:
        """The classes that the model knows, and their probabilities, ``n x K``."""
        model = self.judged_model()
        classes = model.classes_.tolist()
        return classes, model.predict_proba(self.inputs(items)) if len(items) else np.zeros((0, len(classes)))


class LearnerView(BackendView):
    """The current model of a learner; see :class:`suffice.session.model_view.ModelView`.

    Args:
        loop: The loop.
        prepared: The model and its pipeline.
        X: Inputs of the pool, as the backend takes them.
        compared: Inputs for the comparison with other models: those before the pipeline, if they are numbers.
        name: What the model is called in a guarantee.
        predict: Predictions of a fitted model for items.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - the parts of a learner
        self,
        loop: LearningLoop,
        prepared: PreparedModel,
        X: Any,
        compared: Any,
        name: str,
        predict: Callable[[Any, Indices], Any],
    ) -> None:
        super().__init__(loop.backend, X, loop.session.labels.learned)
        self._loop, self._prepared, self._compared = loop, prepared, compared
        self._name, self._predict = name, predict

    @property
    def name(self) -> str:
        """What the model is called in a guarantee."""
        return self._name

    @property
    def family(self) -> str:
        """Its name among :data:`suffice.models.factory.MODEL_FAMILIES`, or an empty text."""
        return family_name(self._prepared)

    def frozen(self, items: Indices) -> tuple[Any, Any]:
        """The fitted model with its pipeline, independent of the learner, and its predictions for items."""
        fitted = self._loop.backend.fitted()
        predictions = self._predict(fitted, items) if len(items) else np.zeros(0)
        return self._prepared.joined(fitted), predictions

    def compared_inputs(self, items: Indices) -> Any:
        """Inputs of items for a comparison with other models."""
        return self._compared[items]


def family_name(prepared: PreparedModel) -> str:
    """Name of the model family of a model, from :data:`suffice.models.factory.MODEL_FAMILIES`."""
    steps: Iterable[Any] = [] if prepared.transform is None else [step for _, step in prepared.transform.steps]
    return model_family(prepared.model, list(steps))


def model_family(model: Any, transformers: list[Any]) -> str:
    """Name of the model family of a model after transformers, from :data:`suffice.models.factory.MODEL_FAMILIES`."""
    if any(isinstance(step, KernelFeatures) for step in transformers):
        return "kernel"
    if any(isinstance(step, PrincipalFeatures) for step in transformers):
        return "components"
    if isinstance(model, GaussianProcess):
        return "gp"
    if transformers:
        return ""
    for kind, name in ((BayesianRidge, "ridge"), (BayesianLogistic, "logistic")):
        if isinstance(model, kind):
            return name
    return next((_TREES[base.__name__] for base in type(model).__mro__ if base.__name__ in _TREES), "")


def _packed(rows: Sequence[Mapping[str, Any]]) -> Any:
    """Measures of each step as JSON values: one array for each name if all steps have the same form."""
    forms = {
        tuple((name, np.shape(values), np.asarray(values).dtype.str) for name, values in row.items()) for row in rows
    }
    if len(forms) == 1 and rows[0]:
        return _encoded(joined_measures(rows))
    return [_encoded(row) for row in rows]


def _unpacked(saved: Any) -> list[Mapping[str, Any]]:
    """Restore the result of :func:`_packed`."""
    if isinstance(saved, list):
        return [_decoded(row) for row in saved]
    columns = _decoded(saved)
    steps = len(next(iter(columns.values()), ()))
    return [{name: values[k : k + 1] for name, values in columns.items()} for k in range(steps)]


def _encoded(measures: Mapping[str, Any]) -> dict[str, Any]:
    return {name: encoded_array(np.asarray(values)) for name, values in measures.items()}


def _decoded(measures: Mapping[str, Any]) -> dict[str, Any]:
    return {name: decoded_array(values) for name, values in measures.items()}
