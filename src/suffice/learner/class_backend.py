"""The backend of logistic regression: Laplace posteriors of two classes or many."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from suffice.acquisition import RANDOM_SHARES, Indices, RandomOrder, label_free_chooser, require_known
from suffice.divergence import KLPair
from suffice.engines.disk_rows import in_memory_for
from suffice.errors import InvalidValueError
from suffice.learner.backend import (
    Backend,
    LabelHistory,
    RunSettings,
    StepResults,
    StepTestedLater,
    register_backend,
)
from suffice.learner.class_evidence import ClassEvidence
from suffice.learner.class_points import ClassPoints, SetLosses
from suffice.learner.step_inputs import CLASSIFIER_FIELDS, RELEVANCE_FIELDS, LaplacePredictor
from suffice.models.inputs import as_labels
from suffice.models.laplace import divergences, laplace, learn_alpha
from suffice.models.logistic import BayesianLogistic, class_labels
from suffice.numerics import Floats


@register_backend(BayesianLogistic)
class ClassBackend(Backend):
    """Learns classes with one prior and one set of classes, until either of them changes.

    A new class adds weights to the posterior, which can then not be compared with the previous posterior. So the
    history is replayed with the larger set of classes, as after learning hyper-parameters.

    Args:
        model: A classifier; it is not changed.
        settings: Pool, acquisition and test set.
    """

    task = "classification"
    step_fields = CLASSIFIER_FIELDS | {"kl_prior", "train_error"}
    screening_fields = RELEVANCE_FIELDS
    # For two classes the picks are those of the entropy; for many, the entropy depends on all classes.
    default_acquisition = "margin"
    default_random_share = RANDOM_SHARES["classification"]
    disk_pools = True
    device_acquisitions = frozenset({"entropy", "margin", "map-entropy", "bald"})
    worker_acquisitions = device_acquisitions | {"random", "order"}
    replays = True
    fixed_attributes = Backend.fixed_attributes | {"_points"}

    def __init__(self, model: BayesianLogistic, settings: RunSettings) -> None:
        self._model, self._settings = model, settings
        name = require_known(settings.acquisition, "classification")
        if name == "relevance" and settings.positive is None:
            raise InvalidValueError("acquisition 'relevance' asks for one class first: give positive=, the class")
        self._points = ClassPoints(model, settings, name)
        self._n_components: int | None = None
        self._history = LabelHistory([], [])
        self._labels: list[Any] = []
        features = self._points.features
        self._fixed = label_free_chooser(name, in_memory_for(name, features), settings.rng)
        # A class without a label has no probability, so the first item of the positive class is searched at random.
        self._unseen = RandomOrder(len(features), settings.rng) if name == "relevance" else None
        self._taken: list[int] = []
        self._classes = np.zeros(0)
        self._alpha = 1.0
        self._codes: dict[Any, int] = {}
        self._learned_at = 0
        self._stale = False
        self._evidence = ClassEvidence(settings.step_inputs, len(features))
        # Classes in the order of their first labels, so that the column of a class never changes.
        self._order: list[Any] = []

    def batch(self, size: int) -> Indices:
        """The items of largest score."""
        if self._unseen is not None and not any(label == self._settings.positive for label in self._labels):
            return self._unseen.batch(size)
        if self._fixed is not None:
            return self._fixed.batch(size)
        assert self._points.pool is not None
        return self._points.pool.nearest(self._state, size)

    def skip(self, indices: Indices) -> None:
        """Exclude items."""
        self._taken.extend(int(i) for i in indices)
        self._evidence.collector.take(indices)
        for chooser in (self._fixed, self._unseen):
            if chooser is not None:
                chooser.skip(indices)
        if self._points.pool is not None:
            self._points.pool.take(indices)

    def check(self, y: Any) -> None:
        """Raise an error for a label that is missing, that is not one of the given classes, or a number among words."""
        class_labels(y, self._model.classes)
        if self._labels:
            class_labels(as_labels([self._labels[0], *np.asarray(as_labels(y)).tolist()]))

    def begin(self, indices: Indices, y: Any) -> None:
        """Learn prior and posterior from the initial labels."""
        self.check(y)
        self._add(indices, y, together=True)
        try:
            self._start()
            self._evidence.collector.begin(self._predictor(), len(indices))
        except Exception:
            self._history, self._labels = LabelHistory([], []), []
            raise

    def learn(self, indices: Indices, y: Any, *, together: bool) -> StepResults | StepTestedLater:
        """Learn labels with the present prior."""
        labels = np.asarray(y)
        codes = [self._codes.get(label) for label in labels.tolist()]
        groups = [slice(0, len(indices))] if together else [slice(k, k + 1) for k in range(len(indices))]
        if None in codes:
            self.check(y)
            self._evidence.collector.before(self._predictor(), indices)
            self._add(indices, y, together=together)
            # The results of these steps are computed when the history is replayed, which is due now.
            self._stale = True
            missing = np.full(len(groups), np.nan)
            error = missing if self._points.test is not None else np.zeros(0)
            return StepResults(KLPair(missing, missing), error, predictive_error=error, wrong_share=error)
        results: list[StepResults | StepTestedLater] = []
        try:
            for group in groups:
                self._evidence.collector.before(self._predictor(), indices[group])
                results.append(self._extend(indices[group], np.array(codes[group])))
        except Exception:
            self._replay()
            raise
        self._add(indices, y, together=together)
        if len(results) == 1 and not self._settings.step_inputs.names:
            return results[0]
        joined = StepResults.joined(results)
        return joined if self.until_relearning() == 0 else self._with_inputs(joined, len(groups))

    def until_relearning(self) -> int | None:
        """Number of labels until they have doubled since the prior was learned; 0 after a new class."""
        if self._stale:
            return 0
        return max(0, 2 * self._learned_at - len(self._labels)) if self._model.learns else None

    def relearn(self) -> StepResults:
        """Learn the prior and choose the components again, with the classes known so far, and replay the history."""
        due = self._model.learns and len(self._labels) >= 2 * self._learned_at
        # A new class changes the shape of the posterior, but not when the prior is learned again.
        history = self._start() if due else self._start(self._learned_at, keep=True)
        if len(history.kl_new_old) > self._evidence.steps:
            return self._with_inputs(history, 1)
        return self._evidence.with_past(history)

    def correct(self, index: int, y: Any) -> StepResults:
        """Change a label and replay the history; a prior that was learned from it is learned again."""
        self.check([y])
        place = self._history.indices.index(index)
        earlier, self._labels[place] = self._labels[place], y
        # The set of classes may have changed, so pool and test set are created again too.
        keep = place >= self._learned_at
        try:
            return self._evidence.with_past(self._start(self._learned_at, keep=keep))
        except Exception:
            self._labels[place] = earlier
            self._start(self._learned_at, keep=keep)
            raise

    def fitted(self) -> Any:
        """The current model as an independent estimator."""
        rows, labels = self._history.indices, np.asarray(self._labels)
        return self._model.at(
            self._settings.X[rows], labels, self._alpha, self._learned_at, n_components=self._n_components
        )

    def current_model(self) -> Any:
        """The model with the posterior of this backend; valid until the next label."""
        rows, labels = self._history.indices, np.asarray(self._labels)
        return self._model.at(
            self._settings.X[rows], labels, self._alpha, self._learned_at, self._state, self._n_components
        )

    def resume(self, progress: Mapping[str, Any]) -> None:
        """Continue exactly from the output of :meth:`progress`."""
        super().resume(progress)
        self._points.pool = None
        if self._history.indices:
            self._points.use_components(self._n_components)
            self._points.make_sets(self._classes, np.array(self._taken, dtype=np.intp))

    def expected_errors(self, rows: Indices) -> tuple[Floats, Floats]:
        """The probabilities of a wrong prediction, and their reducible parts."""
        errors = self._predictor().errors(rows)
        return errors.total, errors.reducible

    def _predictor(self) -> LaplacePredictor:
        columns = [self._codes.get(label, -1) for label in self._order]
        if len(self._codes) == 1:
            # The first free column stands for unknown classes.
            columns = [0, 1] if len(columns) == 1 else _with_one_more(columns)
        return LaplacePredictor(self._state, self._points.features, columns)

    def _with_inputs(self, result: StepResults, steps: int) -> StepResults:
        """The results with the step inputs of the last steps, which have just been learned."""
        if not self._settings.step_inputs.names:
            return result
        size, indices = self._history.sizes[-1], np.array(self._history.indices, dtype=np.intp)
        codes = [self._order.index(label) for label in np.asarray(self._labels[-size:]).tolist()]
        return self._evidence.added(
            result, steps, predictor=self._predictor(), codes=codes, points=self._points, labelled=indices
        )

    def _add(self, indices: Indices, y: Any, *, together: bool) -> None:
        self._history.add(indices, together=together)
        self._labels.extend(np.asarray(y))
        self._take(indices)

    def _take(self, indices: Indices) -> None:
        self._taken.extend(int(i) for i in indices)
        self._evidence.collector.take(indices)
        for chooser in (self._fixed, self._unseen, self._points.pool):
            if chooser is not None:
                chooser.take(indices)

    def _start(self, n: int | None = None, *, keep: bool = False) -> StepResults:
        """Learn prior and components from the first ``n`` labels (default: all), or keep them; replay the history."""
        self._classes = self._model.known_classes(self._labels)
        self._codes = {label: code for code, label in enumerate(self._classes.tolist())}
        self._order += [label for label in self._classes.tolist() if label not in self._order]
        self._stale = False
        self._learned_at = len(self._labels) if n is None else n
        if self._model.alpha is not None:
            self._alpha = float(self._model.alpha)
        if self._model.learns and not keep:
            codes = np.searchsorted(self._classes, np.asarray(self._labels[: self._learned_at]))
            features = self._points.all_features[self._history.indices[: self._learned_at]]
            size, learn = max(2, len(self._classes)), self._model.alpha is None
            if self._points.capacity is None:
                self._alpha = learn_alpha(features, codes, size, self._alpha)
            else:
                chosen = self._points.capacity.choose(features, codes, size, self._alpha, learn=learn)
                self._n_components, self._alpha = chosen
                self._points.use_components(self._n_components)
        self._points.make_sets(self._classes, np.array(self._taken, dtype=np.intp))
        return self._replay()

    def _replay(self) -> StepResults:
        indices = np.array(self._history.indices, dtype=np.intp)
        codes = np.searchsorted(self._classes, np.asarray(self._labels))
        n, sizes = self._history.sizes[0], self._history.sizes
        features = self._points.features[indices[:n]]
        self._state = laplace(features, codes[:n], max(2, len(self._classes)), self._alpha)
        self._before = self._state.snapshot()
        results: list[StepResults | StepTestedLater] = []
        at = n
        for number, size in enumerate(sizes[1:], start=2):
            # Losses on the test set are those at the time, except for the last step.
            last = number == len(sizes)
            results.append(self._extend(indices[at : at + size], codes[at : at + size], tested=last))
            at += size
        return StepResults.joined(results)

    def _extend(self, indices: Indices, codes: Any, *, tested: bool = True) -> StepResults | StepTestedLater:
        old, test = self._before, self._points.test if tested else None
        self._state.extend(self._points.features[indices], codes)
        self._before = self._state.snapshot()
        pair = divergences(old, self._before)
        divergence = KLPair(np.atleast_1d(pair.new_old), np.atleast_1d(pair.old_new))
        if test is None:
            return StepResults(divergence, np.zeros(0))
        waiting = test.later(self._state)
        if waiting is not None:
            return StepTestedLater(divergence, lambda: _test_results(divergence, waiting.values()))
        return _test_results(divergence, test.losses(self._state))


def _test_results(divergence: KLPair, losses: SetLosses) -> StepResults:
    error, averaged = losses
    return StepResults(
        divergence,
        np.array([error]),
        predictive_error=np.array([averaged.log_loss]),
        wrong_share=np.array([averaged.wrong_share]),
    )


def _with_one_more(columns: list[int]) -> list[int]:
    free = columns.index(-1)
    return [*columns[:free], 1, *columns[free + 1 :]]
