"""The backend of logistic regression: Laplace posteriors of two classes or many."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, cast

import numpy as np

from suffice.acquisition import Indices, RandomOrder, class_scores, label_free_chooser, require_known
from suffice.criteria import relevance_facts
from suffice.divergence import KLPair
from suffice.engines.class_pool import ClassPool, ScoredPool, UncertainPool
from suffice.engines.disk_rows import DiskRows, blocks_of, in_memory_for, require_disk_memory, require_memory
from suffice.engines.sharded_pool import ClassPrior, ClassShard, DaskShards, ShardedClasses
from suffice.engines.worker_rows import WorkerRows
from suffice.errors import InvalidValueError
from suffice.learner.backend import Backend, LabelHistory, RunSettings, StepResults, register_backend
from suffice.learner.step_inputs import (
    CLASSIFIER_FIELDS,
    RELEVANCE_FIELDS,
    ClassInputCollector,
    LaplacePredictor,
)
from suffice.models.inputs import as_labels
from suffice.models.laplace import divergence_from_prior, divergences, laplace, learn_alpha
from suffice.models.logistic import BayesianLogistic, class_labels
from suffice.models.predictive import (
    AveragedPredictions,
    BinaryCrossEntropy,
    ClassLosses,
    SoftmaxCrossEntropy,
    moderated,
    moderated_logits,
    probabilities,
)
from suffice.numerics import Floats
from suffice.session.recorded_steps import stacked

# Bytes of scores, flags and numbers on a worker for each point.
_ON_WORKERS = 64
# Acquisitions with the same ranking for two classes: by the distance of the predictive probability from 1/2.
_BY_EVENNESS = {"entropy": True, "margin": True, "map-entropy": False}


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
    default_random_share = 0.2
    disk_pools = True
    device_acquisitions = frozenset({"entropy", "margin", "map-entropy", "bald"})
    worker_acquisitions = device_acquisitions | {"random", "order"}
    replays = True
    fixed_attributes = Backend.fixed_attributes | {
        "_name",
        "_all_features",
        "_features",
        "_capacity",
        "_pool",
        "_test",
        "_validation",
    }

    def __init__(self, model: BayesianLogistic, settings: RunSettings) -> None:
        self._model, self._settings = model, settings
        self._name = require_known(settings.acquisition, "classification")
        if self._name == "relevance" and settings.positive is None:
            raise InvalidValueError("acquisition 'relevance' asks for one class first: give positive=, the class")
        # All features, and the features in use: only the first components if the model chooses their number.
        self._all_features: Any = (
            settings.X.mapped(model.features, selects=True)
            if isinstance(settings.X, DiskRows)
            else np.asarray(model.features(settings.X), dtype=np.float64)
        )
        self._features: Any = self._all_features
        model.check(settings.X.shape[1])
        self._capacity = model.capacity(settings.X.shape[1])
        self._n_components: int | None = None
        if isinstance(self._features, WorkerRows):
            # Memory for a column-major copy of the points, and a few numbers per point.
            self._features.require_room(8 * self._features.shape[1] + _ON_WORKERS, "scoring the pool")
        elif isinstance(self._features, DiskRows):
            require_disk_memory(self._features)
        else:
            require_memory(2 * self._features.nbytes, f"following {len(self._features)} pool items")
        self._history = LabelHistory([], [])
        self._labels: list[Any] = []
        self._fixed = label_free_chooser(self._name, in_memory_for(self._name, self._features), settings.rng)
        # A class without a label has no probability, so the first item of the positive class is searched at random.
        size = len(self._features)
        self._unseen = RandomOrder(size, settings.rng) if self._name == "relevance" else None
        self._taken: list[int] = []
        self._classes = np.zeros(0)
        self._alpha = 1.0
        self._codes: dict[Any, int] = {}
        self._learned_at = 0
        self._stale = False
        self._collector = ClassInputCollector(settings.step_inputs, len(self._features))
        # Classes in the order of their first labels, so that the column of a class never changes.
        self._order: list[Any] = []
        # Step inputs are not computed again, because that would read the whole pool once for each past step.
        self._past_inputs: list[dict[str, Any]] = []

    def batch(self, size: int) -> Indices:
        """The items of largest score."""
        if self._unseen is not None and not any(label == self._settings.positive for label in self._labels):
            return self._unseen.batch(size)
        return self._fixed.batch(size) if self._fixed is not None else self._pool.nearest(self._state, size)

    def skip(self, indices: Indices) -> None:
        """Exclude items."""
        self._taken.extend(int(i) for i in indices)
        self._collector.take(indices)
        for chooser in (self._fixed, self._unseen):
            if chooser is not None:
                chooser.skip(indices)
        self._pool.take(indices)

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
            self._collector.begin(self._predictor(), len(indices))
        except Exception:
            self._history, self._labels = LabelHistory([], []), []
            raise

    def learn(self, indices: Indices, y: Any, *, together: bool) -> StepResults:
        """Learn labels with the present prior."""
        labels = np.asarray(y)
        codes = [self._codes.get(label) for label in labels.tolist()]
        groups = [slice(0, len(indices))] if together else [slice(k, k + 1) for k in range(len(indices))]
        if None in codes:
            self.check(y)
            self._collector.before(self._predictor(), indices)
            self._add(indices, y, together=together)
            # The results of these steps are computed when the history is replayed, which is due now.
            self._stale = True
            missing = np.full(len(groups), np.nan)
            error = missing if self._test is not None else np.zeros(0)
            return StepResults(KLPair(missing, missing), error, predictive_error=error, wrong_share=error)
        results = []
        try:
            for group in groups:
                self._collector.before(self._predictor(), indices[group])
                results.append(self._extend(indices[group], np.array(codes[group])))
        except Exception:
            self._replay()
            raise
        self._add(indices, y, together=together)
        found = StepResults.joined(results)
        return found if self.until_relearning() == 0 else self._with_inputs(found, len(groups))

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
        return (
            self._with_inputs(history, 1)
            if len(history.kl_new_old) > len(self._past_inputs)
            else self._with_past(history)
        )

    def correct(self, index: int, y: Any) -> StepResults:
        """Change a label and replay the history; a prior that was learned from it is learned again."""
        self.check([y])
        place = self._history.indices.index(index)
        kept, self._labels[place] = self._labels[place], y
        # The set of classes may have changed, so pool and test set are created again too.
        keep = place >= self._learned_at
        try:
            return self._with_past(self._start(self._learned_at, keep=keep))
        except Exception:
            self._labels[place] = kept
            self._start(self._learned_at, keep=keep)
            raise

    def fitted(self) -> Any:
        """The present model as an independent estimator."""
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
        self.__dict__.pop("_pool", None)
        if self._history.indices:
            self._features = self._used(self._all_features)
            self._make_sets()

    def expected_errors(self, rows: Indices) -> tuple[Floats, Floats]:
        """The probabilities of a wrong prediction, and their reducible parts."""
        found = self._predictor().errors(rows)
        return found.total, found.reducible

    def _predictor(self) -> LaplacePredictor:
        columns = [self._codes.get(label, -1) for label in self._order]
        if len(self._codes) == 1:
            # The first free column stands for unknown classes.
            columns = [0, 1] if len(columns) == 1 else _with_one_more(columns)
        return LaplacePredictor(self._state, self._features, columns)

    def _with_inputs(self, result: StepResults, steps: int) -> StepResults:
        """The results with the step inputs of the last steps, which have just been learned."""
        if not self._settings.step_inputs.names:
            return result
        size = self._history.sizes[-1]
        codes = [self._order.index(label) for label in np.asarray(self._labels[-size:]).tolist()]
        found = self._collector.after(self._predictor(), codes)
        if self._validation is not None:
            found["validation_error"] = self._validation.losses(self._state).log_loss
        if self._settings.step_inputs.about({"kl_prior", "train_error"}):
            found |= self._training_inputs()
        if self._settings.step_inputs.about(RELEVANCE_FIELDS):
            found |= self._relevance_inputs()
        wanted = {name: value for name, value in found.items() if name in self._settings.step_inputs.names}
        self._past_inputs.extend([wanted] * steps)
        return self._with_past(result)

    def _with_past(self, result: StepResults) -> StepResults:
        inputs = stacked(self._past_inputs[-len(result.kl_new_old) :])
        return replace(result, measures=inputs)

    def _training_inputs(self) -> dict[str, float]:
        """Divergence from the prior, and the error of a label drawn from the prediction, for the labelled items."""
        features, codes = self._state.labelled()
        p = LaplacePredictor(self._state, features, list(range(max(2, len(self._classes))))).probabilities(
            np.arange(len(codes))
        )
        error = float(1.0 - p[np.arange(len(codes)), codes].mean())
        return {"kl_prior": divergence_from_prior(self._state), "train_error": error}

    def _relevance_inputs(self) -> dict[str, float]:
        """Sums over probabilities of the positive class, for labelled and for unlabelled items."""
        p = np.zeros(len(self._features))
        if self._settings.positive in self._codes:
            for start, block in blocks_of(self._features):
                p[start : start + len(block)] = self._relevance(self._state, block)
        labelled = np.zeros(len(p), dtype=bool)
        labelled[self._history.indices] = True
        return relevance_facts(p, labelled)

    def _relevance(self, posterior: Any, features: Floats) -> Floats:
        """The averaged probability of the positive class."""
        code = self._codes[self._settings.positive]
        return np.asarray(probabilities(moderated_logits(posterior, features))[:, code])

    def _add(self, indices: Indices, y: Any, *, together: bool) -> None:
        self._history.add(indices, together=together)
        self._labels.extend(np.asarray(y))
        self._take(indices)

    def _take(self, indices: Indices) -> None:
        self._taken.extend(int(i) for i in indices)
        self._collector.take(indices)
        for chooser in (self._fixed, self._unseen, getattr(self, "_pool", None)):
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
            features = self._all_features[self._history.indices[: self._learned_at]]
            size, learn = max(2, len(self._classes)), self._model.alpha is None
            if self._capacity is None:
                self._alpha = learn_alpha(features, codes, size, self._alpha)
            else:
                chosen = self._capacity.choose(features, codes, size, self._alpha, learn=learn)
                self._n_components, self._alpha = chosen
                self._features = self._used(self._all_features)
        self._make_sets()
        return self._replay()

    def _make_sets(self) -> None:
        """Create pool, test set and validation set for the present features and classes."""
        self._pool = self._new_pool()
        self._test = self._new_test()
        validation = self._known_rows(self._settings.step_inputs.validation, "validation")
        self._validation = None if validation is None else self._averaged(validation)

    def _replay(self) -> StepResults:
        indices = np.array(self._history.indices, dtype=np.intp)
        codes = np.searchsorted(self._classes, np.asarray(self._labels))
        n = self._history.sizes[0]
        self._state = laplace(self._features[indices[:n]], codes[:n], max(2, len(self._classes)), self._alpha)
        self._before = self._state.snapshot()
        test, self._test = self._test, None
        results, at = [], n
        for number, size in enumerate(self._history.sizes[1:], start=2):
            if number == len(self._history.sizes):
                self._test = test
            results.append(self._extend(indices[at : at + size], codes[at : at + size]))
            at += size
        self._test = test
        return StepResults.joined(results)

    def _extend(self, indices: Indices, codes: Any) -> StepResults:
        old = self._before
        self._state.extend(self._features[indices], codes)
        self._before = self._state.snapshot()
        pair = divergences(old, self._before)
        divergence = KLPair(np.atleast_1d(pair.new_old), np.atleast_1d(pair.old_new))
        if self._test is None:
            return StepResults(divergence, np.zeros(0))
        error, losses = self._test.losses(self._state)
        return StepResults(
            divergence,
            np.array([error]),
            predictive_error=np.array([losses.log_loss]),
            wrong_share=np.array([losses.wrong_share]),
        )

    def _new_pool(self) -> ClassPool:
        pool: ClassPool
        kept = getattr(self, "_pool", None)
        elsewhere = isinstance(self._features, WorkerRows) or self._settings.device is not None
        if elsewhere and kept is not None and kept.source is self._features:
            # The points are stored already.
            return cast(ClassPool, kept)
        if isinstance(self._features, WorkerRows):
            pool = self._worker_pool(self._features)
        elif self._settings.device is not None:
            pool = self._device_pool(self._settings.device)
        elif self._name == "relevance":
            pool = ScoredPool(self._features, self._relevance)
        elif len(self._classes) <= 2 and self._name in _BY_EVENNESS:
            if isinstance(kept, UncertainPool) and kept.source is self._features:
                # Its data about the points are valid for any posterior, and reading the file again takes longer.
                return kept
            pool = UncertainPool(self._features, averaged=_BY_EVENNESS[self._name])
        else:
            pool = ScoredPool(self._features, partial(class_scores, name=self._name))
        pool.take(np.array(self._taken, dtype=np.intp))
        return pool

    def _worker_pool(self, rows: WorkerRows) -> ClassPool:
        prior = ClassPrior(partial(class_scores, name=self._name), _BY_EVENNESS.get(self._name))

        def shards() -> DaskShards:
            return DaskShards(rows.client, rows.parts, rows.sizes, prior, make=ClassShard)

        return ShardedClasses(shards, prior, rows)

    def _device_pool(self, device: str) -> ClassPool:
        from suffice.engines.torch_pools import TorchClasses

        score = partial(class_scores, name=self._name)
        return TorchClasses(self._features, self._name, score, device, single=self._settings.dtype == np.float32)

    def _used(self, features: Any) -> Any:
        """The features in use; a view if these are the first columns."""
        if self._capacity is None or self._n_components is None:
            return features
        chosen = self._capacity.columns(self._n_components)
        if isinstance(features, DiskRows):
            return features.mapped(lambda block: block[:, chosen], selects=True)
        return features[:, chosen]

    def _new_test(self) -> "_ClassTest | None":
        rows = self._known_rows(self._settings.test, "y_test")
        if rows is None:
            return None
        kind = BinaryCrossEntropy if len(self._classes) <= 2 else SoftmaxCrossEntropy
        return _ClassTest(rows.features, kind(rows.features, rows.codes), self._averaged(rows))

    def _averaged(self, rows: "_KnownRows") -> AveragedPredictions:
        return AveragedPredictions(rows.features, rows.codes, classes=len(self._classes), unknown=rows.unknown)

    def _known_rows(self, given: Any, name: str) -> "_KnownRows | None":
        """The rows of a labelled set whose classes are known; None without a set."""
        if given is None:
            return None
        X, y = given
        features: Floats = self._used(self._model.features(X))
        known = np.isin(np.asarray(y), self._classes)
        if not known.any():
            raise InvalidValueError(
                f"no class of {name} has been labelled yet; give the model its classes, classes=[...]"
            )
        # The loss of a class without labels is infinite, so the loss is measured on the other rows.
        codes = np.searchsorted(self._classes, np.asarray(y)[known])
        return _KnownRows(np.ascontiguousarray(features[known]), codes, int(np.count_nonzero(~known)))


class _KnownRows(NamedTuple):
    """Features and codes of rows whose classes are known, and the number of other rows."""

    features: Floats
    codes: Any
    unknown: int


class _ClassTest(NamedTuple):
    """Losses on the test set: of the posterior, and of the averaged prediction."""

    features: Floats
    expected: BinaryCrossEntropy | SoftmaxCrossEntropy
    averaged: AveragedPredictions

    def losses(self, posterior: Any) -> tuple[float, ClassLosses]:
        """The expected error, and the losses of the averaged prediction."""
        if isinstance(self.expected, SoftmaxCrossEntropy):
            return self.expected.error(posterior), self.averaged.losses(posterior)
        # For two classes both are computed from the same variances, which take most of the time.
        mean, variance = posterior.latent(self.features)
        return self.expected.error_of(mean, variance), self.averaged.losses_of(moderated(mean, variance))


def _with_one_more(columns: list[int]) -> list[int]:
    free = columns.index(-1)
    return [*columns[:free], 1, *columns[free + 1 :]]
