"""The backend of models with Gaussian noise: Gaussian processes and ridge regression, exact and incremental."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from suffice.acquisition import Chooser, Indices, label_free_chooser, require_known
from suffice.divergence import in_units_of_noise
from suffice.engines.disk_rows import PER_ITEM, DiskRows, in_memory_for, require_disk_memory, require_memory
from suffice.engines.sharded_pool import (
    DaskShards,
    Shard,
    ShardedPool,
    ShardedSums,
    ShardPrior,
    Shards,
    SumsPrior,
    SumsShard,
    shard_memory,
)
from suffice.engines.tracked_rows import (
    FeatureRows,
    FollowedError,
    FollowedRows,
    FollowedVariance,
    KernelRows,
    linear_error,
)
from suffice.engines.variance_pool import DiskPool, LargestVariance, MemoryPool, VariancePool
from suffice.engines.variance_reduction import (
    FeatureSums,
    KernelSums,
    LargestReduction,
    ReductionPool,
    sample_memory,
    sample_of,
)
from suffice.engines.worker_rows import WorkerRows
from suffice.learner.backend import Backend, LabelHistory, RunSettings, SingleLabelTerms, StepResults, register_backend
from suffice.learner.step_inputs import LOSS_FIELDS, REST_FIELDS, RecentGain
from suffice.models.gaussian_state import block_of
from suffice.models.inputs import targets
from suffice.models.regression import BayesianRidge, GaussianProcess, GaussianRegressor, RegressionPrior
from suffice.numerics import Floats

_LOSSES = ("selected_loss", "selected_expected_loss")
# Number of labels whose factor is computed at once when the history is replayed.
_LONGEST = 256
# Maximal number of items whose variance is tracked for the error of the unlabelled items.
_REST_ITEMS = 1000


class GaussianBackend(Backend):
    """Learns labels with Gaussian noise, with one prior until it is learned again. Base of the two backends below.

    Args:
        model: A regressor; it is not changed.
        settings: Pool, acquisition and test set.
    """

    task = "regression"
    step_fields = LOSS_FIELDS | REST_FIELDS | {"pool_variance", "pool_gain", "expected_error"}
    # The recent gain uses predictions that were made at the time, so it is not computed again.
    revised_fields = (step_fields | {"validation_error"}) - {"recent_gain"}
    replays = True
    fixed_attributes = Backend.fixed_attributes | {"_name", "_features", "_sample"}

    def __init__(self, model: GaussianRegressor, settings: RunSettings) -> None:
        self._model, self._settings = model, settings
        self._name = require_known(settings.acquisition, "regression")
        self._state: Any = None
        self._features: Any = self._all_features(settings.X)
        model.check(self._features.shape[1])
        self._y = np.zeros(len(settings.X))
        self._history = LabelHistory([], [])
        self._skipped: list[int] = []
        self._random: set[int] = set()
        self._fixed = label_free_chooser(self._name, in_memory_for(self._name, self._features), settings.rng)
        # Set if picks depend on the posterior.
        self._planner: LargestVariance | LargestReduction | None = None
        self._require_memory()
        self._test: FollowedError | None = None
        self._validation: FollowedError | None = None
        self._stop_set: FollowedVariance | None = None
        self._all: FollowedVariance | None = None
        self._rest: FollowedVariance | None = None
        # Items that are tracked for the error of the unlabelled items, and the position of each item among them or -1.
        self._rest_items: Indices = np.zeros(0, dtype=np.intp)
        self._rest_place: Indices = np.zeros(0, dtype=np.intp)
        self._label_variance = 1.0
        self._recent = RecentGain()
        self._prior: RegressionPrior | None = None
        self._learned_at = 0

    def _all_features(self, X: Any) -> Any:
        """Features of the whole pool."""
        if isinstance(X, DiskRows):
            return X.mapped(self._model.features)
        return np.asarray(self._model.features(X), dtype=np.float64)

    @property
    def revises(self) -> frozenset[str]:
        """Variances of past steps depend on the prior."""
        return self._settings.step_inputs.names & self.revised_fields

    def propose(self, most: int) -> Indices:
        """The next picks that do not depend on labels still to be learned."""
        return self._chooser.propose(most)

    def batch(self, size: int) -> Indices:
        """Picks to be labelled together."""
        return self._chooser.batch(size)

    def skip(self, indices: Indices) -> None:
        """Exclude items."""
        self._skipped.extend(int(i) for i in indices)
        self._chooser.skip(indices)
        if self._all is not None:
            self._all.take(indices)
        if self._rest is not None:
            self._rest.take(self._places(indices))

    def mark_random(self, indices: Indices) -> None:
        """Record items that were drawn at random; their labels decide whether new hyper-parameters are accepted."""
        self._random.update(int(i) for i in indices)

    def check(self, y: Any) -> None:
        """Raise an error for a label that is not a number."""
        targets(y)

    def begin(self, indices: Indices, y: Any) -> None:
        """Learn hyper-parameters and posterior from the initial labels."""
        self._y[indices] = targets(y)
        self._history.add(indices, together=True)
        try:
            self._start()
        except Exception:
            self._history = LabelHistory([], [])
            raise
        if self._rest is not None:
            self._recent.keep(len(self._history.indices), self._rest_means())

    def learn(self, indices: Indices, y: Any, *, together: bool) -> StepResults | SingleLabelTerms:
        """Learn labels with the present prior."""
        self._y[indices] = targets(y)
        planned = None if self._planner is None else self._planner.block(indices)
        mark: Any = self._state.mark()
        try:
            result = self._extend(indices, planned, together=together)
        except Exception:
            self._state.rewind(mark)
            raise
        self._history.add(indices, together=together)
        self._chooser.take(indices)
        # If hyper-parameters will be learned again now, the gain is computed with the model after that.
        return result if self.until_relearning() == 0 else self._with_gain(result)

    def until_relearning(self) -> int | None:
        """Number of labels until they have doubled since hyper-parameters were learned."""
        return max(0, 2 * self._learned_at - len(self._history.indices)) if self._model.learns else None

    def relearn(self) -> StepResults:
        """Learn hyper-parameters again, and replay the history with them."""
        found = self._with_gain(self._start())
        assert isinstance(found, StepResults)
        return found

    def correct(self, index: int, y: Any) -> StepResults:
        """Change a label and replay the history; hyper-parameters learned from it are learned again."""
        kept, self._y[index] = self._y[index], targets([y])[0]
        try:
            return self._corrected(index)
        except Exception:
            self._y[index] = kept
            self._corrected(index)
            raise

    def _corrected(self, index: int) -> StepResults:
        if index in self._history.indices[: self._learned_at]:
            self._learn_prior(self._learned_at)
        return self._replay()

    def fitted(self) -> Any:
        """The present model as an independent estimator."""
        assert self._prior is not None
        rows = self._history.indices
        return self._model.at(self._settings.X[rows], self._y[rows], self._prior, self._learned_at)

    def current_model(self) -> Any:
        """The model with the posterior of this backend; valid until the next label."""
        assert self._prior is not None
        rows = self._history.indices
        return self._model.at(self._settings.X[rows], self._y[rows], self._prior, self._learned_at, self._state)

    def expected_errors(self, rows: Indices) -> tuple[Floats, Floats]:
        """The variances of labels and of the noise-free values."""
        assert self._prior is not None
        _, latent = self.current_model().latent(self._settings.X[rows])
        return latent + self._prior.scaling.scale**2 * self._state.noise, latent

    def _rest_means(self) -> Floats:
        """Predictions for the items that are tracked for the error of the unlabelled items."""
        assert self._prior is not None
        assert self._rest is not None
        centre, scale = self._prior.scaling
        return np.asarray(centre + scale * self._rest.mean)

    def _with_gain(self, result: StepResults | SingleLabelTerms) -> StepResults | SingleLabelTerms:
        """The results with the gain since half of the labels, for the last step only."""
        if self._rest is None or "recent_gain" not in self._settings.step_inputs.names:
            return result
        found, n, means = StepResults.joined([result]), len(self._history.indices), self._rest_means()
        gain = np.zeros(len(found.kl_new_old))
        if len(gain):
            gain[-1] = self._recent.since_half(n, lambda past: float(np.mean((means - past) ** 2)))
        self._recent.keep(n, means)
        return replace(found, measures={**found.measures, "recent_gain": gain})

    def _start(self) -> StepResults:
        self._learn_prior(len(self._history.indices))
        return self._replay()

    def _learn_prior(self, n: int) -> None:
        """Hyper-parameters from the first ``n`` labels."""
        indices = self._history.indices[:n]
        random = np.array([i in self._random for i in indices]) if self._random else None
        self._prior = self._model.prior(self._features[indices], self._y[indices], self._prior, random)
        self._learned_at = n
        # If all labels are the same, their variance is 0 and errors cannot be compared with it.
        self._label_variance = float(self._y[indices].var()) or 1.0

    def _replay(self) -> StepResults:
        """Compute posterior, pool and test set again from the first label with the present prior."""
        assert self._prior is not None
        indices = np.array(self._history.indices, dtype=np.intp)
        capacity = max(len(indices), self._settings.expected)
        self._state = self._prior.start(self._features.shape[1], capacity)
        # Free the old posterior and its points first, because there may not be memory for both.
        self.__dict__.pop("_chooser", None)
        self._planner = None
        self._test = self._validation = self._stop_set = self._all = self._rest = None
        self._chooser = self._new_chooser(capacity)
        self._test = self._new_test(self._settings.test, capacity)
        self._watch(capacity)
        self._learn_initial(indices[: self._history.sizes[0]])
        results = []
        for span, together in self._history.spans(_LONGEST):
            results.append(self._extend(indices[span], None, together=together))
        self._chooser.take(indices)
        self._chooser.skip(np.array(self._skipped, dtype=np.intp))
        return StepResults.joined(results)

    def _learn_initial(self, indices: Indices) -> None:
        """Learn the initial labels, whose results are not needed."""
        self._extend(indices, None, together=True)

    def _extend(self, indices: Indices, planned: Any, *, together: bool) -> StepResults | SingleLabelTerms:
        assert self._prior is not None
        block = block_of(self._state, self._features[indices]) if planned is None else planned
        extension = self._state.extend(block, self._prior.scaling.apply(self._y[indices]))
        # First the operations that can fail; then the test set, which cannot be undone.
        terms = extension.terms()
        pair = extension.together() if together else None
        error = predictive = np.zeros(0)
        if self._test is not None:
            scale = self._prior.scaling.scale**2
            error, predictive = (each * scale for each in self._test.follow(extension.white))
        lower = extension.block.lower
        if pair is not None and self._settings.step_inputs.about(_LOSSES):
            # Labels of one step are compared with the predictions before all of them.
            terms = (
                np.sum(lower**2, axis=1) / self._state.noise - 1.0,
                (lower @ extension.white) ** 2 / self._state.noise,
            )
        measures = self._label_inputs(indices, extension.white, terms)
        if pair is not None:
            last = {name: _of_step(name, values) for name, values in measures.items()}
            return StepResults(pair, error[-1:], measures=last, predictive_error=predictive[-1:])
        if not measures:
            return SingleLabelTerms(terms[0], terms[1], error, predictive)
        return StepResults(in_units_of_noise(*terms), error, measures=measures, predictive_error=predictive)

    def _watch(self, capacity: int) -> None:
        """Start to track the items that the wanted step inputs need."""
        inputs = self._settings.step_inputs
        if inputs.validation is not None:
            self._validation = self._new_test(inputs.validation, capacity)
        if inputs.about({"expected_error"}):
            self._stop_set = FollowedVariance(self._rows(self._features[inputs.stop], capacity, np.float64))
        if inputs.about({"pool_variance", "pool_gain"}):
            self._all = FollowedVariance(self._rows(self._in_memory(), capacity, np.float64))
            self._all.take(np.array(self._skipped, dtype=np.intp))
        if inputs.about(REST_FIELDS):
            m = len(self._features)
            self._rest_items = np.sort(np.random.default_rng(0).permutation(m)[:_REST_ITEMS])
            self._rest_place = np.full(m, -1, dtype=np.intp)
            self._rest_place[self._rest_items] = np.arange(len(self._rest_items))
            self._rest = FollowedVariance(self._rows(self._features[self._rest_items], capacity, np.float64))
            self._rest.take(self._places(np.array(self._skipped, dtype=np.intp)))

    def _places(self, indices: Indices) -> Indices:
        """Positions of the given items among the tracked items; items that are not tracked are left out."""
        places = self._rest_place[indices]
        return np.asarray(places[places >= 0])

    def _label_inputs(self, indices: Indices, white: Floats, terms: tuple[Floats, Floats]) -> dict[str, Floats]:
        """The wanted step inputs after each of some labels, in the units of the targets."""
        assert self._prior is not None
        scale, noise = self._prior.scaling.scale**2, self._state.noise
        # Squared residual of each label, and its expected value.
        found = {_LOSSES[0]: terms[1] * noise * scale, _LOSSES[1]: (terms[0] + 1.0) * noise * scale}
        if self._validation is not None:
            found["validation_error"] = self._validation.follow(white).predictive * scale
        if self._stop_set is not None:
            # If the model is correct, the expectation of (y - mean)^2 is s + noise.
            found["expected_error"] = (self._stop_set.follow(len(white)).mean + noise) * scale
        if self._all is not None:
            largest = self._all.follow(len(white), indices).largest
            found |= {"pool_variance": largest * scale, "pool_gain": 0.5 * np.log1p(largest / noise)}
        if self._rest is not None:
            reducible = self._rest.follow(len(white), self._rest_place[indices], white).free_mean
            found |= {
                "unlabelled_error": (reducible + noise) * scale,
                "reducible_error": reducible * scale,
                "error_scale": np.full(len(white), self._label_variance),
            }
        return {name: values for name, values in found.items() if name in self._settings.step_inputs.names}

    def _new_chooser(self, capacity: int) -> Chooser:
        if self._fixed is not None:
            return self._fixed
        if self._name == "variance-reduction":
            self._planner = LargestReduction(self._state, self._sums(capacity, self._settings.dtype))
        else:
            self._planner = LargestVariance(self._state, self._pool(capacity), len(self._features))
        return self._planner

    def _new_test(self, given: Any, capacity: int) -> FollowedError | None:
        if given is None or self._prior is None:
            return None
        X, y = given
        rows = self._rows(self._model.features(X), capacity, np.float64)
        return FollowedError(rows, self._prior.scaling.apply(targets(y)))

    def _in_memory(self) -> Floats:
        """The features of the whole pool in memory."""
        features = self._features
        if isinstance(features, DiskRows):
            return features.array("following every pool item")
        return features if isinstance(features, np.ndarray) else features.array()

    def _pool(self, capacity: int) -> VariancePool:
        """The pool, scored by its variance."""
        dtype = self._settings.dtype
        return MemoryPool(self._rows(self._features, capacity, dtype), dtype)

    @abstractmethod
    def _rows(self, points: Floats, capacity: int, dtype: Any) -> FollowedRows:
        """Points whose predictions are updated with the posterior."""

    @abstractmethod
    def _sums(self, capacity: int, dtype: Any) -> ReductionPool:
        """The pool, scored by the decrease of its mean variance."""

    @abstractmethod
    def _memory(self, pool_bytes: int, others: int) -> tuple[int, str]:
        """Bytes needed to track pool and other points, and how they are used.

        Args:
            pool_bytes: Bytes of one number for each pool item; 0 if the pool is not followed.
            others: Number of other items to follow.
        """

    def _require_memory(self) -> None:
        """Raise an error before the first label if pool, test set and posterior exceed the memory."""
        size, single = np.dtype(self._settings.dtype).itemsize, self._settings.dtype == np.float32
        m = len(self._features)
        inputs = self._settings.step_inputs
        followed = [part[1] for part in (self._settings.test, inputs.validation) if part is not None]
        followed += [] if inputs.stop is None else [inputs.stop]
        tests = sum(map(len, followed))
        tests += min(m, _REST_ITEMS) if inputs.about(REST_FIELDS) else 0
        tests += m if inputs.about({"pool_variance", "pool_gain"}) else 0
        # A pool on a device uses the memory of that device; a pool on disk needs little memory.
        follows = self._fixed is None and self._settings.device is None
        if isinstance(self._features, WorkerRows):
            # The workers hold the pool; this process stores a few numbers for each item.
            follows = False
            require_memory(PER_ITEM * m, f"a pool of {m:,} items on workers, {PER_ITEM} bytes for each here,")
            self._require_workers(self._features, size)
        elif isinstance(self._features, DiskRows):
            require_disk_memory(self._features)
            follows = follows and self._name == "variance-reduction"
        needed, extent = self._memory(m * size * follows, tests)
        require_memory(
            needed, f"following {m} pool items and {tests} other items {extent}", halved=follows and not single
        )

    def _require_workers(self, rows: WorkerRows, itemsize: int) -> None:
        """Raise an error before the first label if parts of the pool exceed the memory of the workers."""
        del itemsize
        rows.require_room(0, "the pool")


@register_backend(GaussianProcess)
class ProcessBackend(GaussianBackend):
    """Gaussian processes: memory grows with labels times points."""

    default_acquisition = "variance-reduction"
    default_random_share = 0.2
    device_acquisitions = frozenset({"variance", "variance-reduction"})
    device_rows = True
    worker_acquisitions = frozenset({"variance", "variance-reduction", "random", "order"})

    def __init__(self, model: GaussianRegressor, settings: RunSettings) -> None:
        super().__init__(model, settings)
        # Drawn once, so that it is the same after hyper-parameters are learned again; other acquisitions draw nothing.
        reduces = self._name == "variance-reduction"
        self._sample = sample_of(len(self._features), settings.rng) if reduces else None

    def _all_features(self, X: Any) -> Any:
        # A kernel is evaluated on the inputs themselves, so a pool on a device stays there.
        return X if not isinstance(X, DiskRows | np.ndarray) else super()._all_features(X)

    def _rows(self, points: Floats, capacity: int, dtype: Any) -> KernelRows:
        return KernelRows(self._state, points, capacity, dtype)

    def _pool(self, capacity: int) -> VariancePool:
        device, single = self._settings.device, self._settings.dtype == np.float32
        if isinstance(self._features, WorkerRows):
            prior = self._shard_prior(capacity)
            return ShardedPool(self._state, self._shards(Shard, prior), single=single)
        if device is None:
            return super()._pool(capacity)
        from suffice.engines.torch_pools import TorchPool

        return TorchPool(self._state, self._device_points(), device, single=single)

    def _sums(self, capacity: int, dtype: Any) -> ReductionPool:
        assert self._sample is not None
        if isinstance(self._features, WorkerRows):
            prior = SumsPrior(self._shard_prior(capacity), self._features[self._sample])
            return ShardedSums(self._state, self._shards(SumsShard, prior))
        if self._settings.device is not None:
            from suffice.engines.torch_pools import TorchSums

            device, single = self._settings.device, dtype == np.float32
            return TorchSums(self._state, self._device_points(), self._sample, capacity, device, single=single)
        return KernelSums(self._state, self._rows(self._features, capacity, dtype), self._sample, capacity, dtype)

    def _device_points(self) -> Any:
        """The pool as a tensor on the device, or as an array that is copied there."""
        return self._features if isinstance(self._features, np.ndarray) else self._features.tensor

    def _shard_prior(self, capacity: int) -> ShardPrior:
        state = self._state
        return ShardPrior(tuple(state.kernel.length_scale), state.noise, capacity, np.dtype(self._settings.dtype).name)

    def _shards(self, make: type[Shard], prior: Any) -> Callable[[], Shards]:
        """A function that creates the shards on the workers; called at the first pick."""
        rows = self._features
        return lambda: DaskShards(rows.client, rows.parts, rows.sizes, prior, make=make)

    def _require_workers(self, rows: WorkerRows, itemsize: int) -> None:
        labels = self._settings.expected
        if self._fixed is not None:
            super()._require_workers(rows, itemsize)
            return
        per_row = shard_memory(rows.shape[1], labels, itemsize, sums=self._name == "variance-reduction")
        rows.require_room(per_row, f"following the pool over {labels} labels")

    def _memory(self, pool_bytes: int, others: int) -> tuple[int, str]:
        labels = self._settings.expected
        needed = 8 * labels * labels + labels * (pool_bytes + 8 * others)
        if self._name == "variance-reduction" and self._settings.device is None:
            needed += sample_memory(len(self._features), labels)
        return needed, f"over {labels} labels"


@register_backend(BayesianRidge)
class RidgeBackend(GaussianBackend):
    """Ridge regression: memory grows with features times points."""

    # No acquisition was better than random labels for a linear model, which is almost never the true model.
    default_acquisition = "random"
    disk_pools = True
    worker_acquisitions = frozenset({"random", "order"})

    def _pool(self, capacity: int) -> VariancePool:
        features = self._features
        return DiskPool(self._state, features) if isinstance(features, DiskRows) else super()._pool(capacity)

    def _new_test(self, given: Any, capacity: int) -> FollowedError | None:
        del capacity
        if given is None or self._prior is None:
            return None
        X, y = given
        return linear_error(self._state, self._model.features(X), self._prior.scaling.apply(targets(y)))

    def _learn_initial(self, indices: Indices) -> None:
        assert self._prior is not None
        self._state.learn(self._features[indices], self._prior.scaling.apply(self._y[indices]))
        for followed in (self._test, self._validation, self._stop_set, self._all, self._rest, self._planner):
            if followed is not None:
                followed.jump()
        if self._rest is not None:
            self._rest.take(self._places(indices))
        if self._all is not None:
            self._all.take(indices)

    def _rows(self, points: Floats, capacity: int, dtype: Any) -> FeatureRows:
        del capacity
        return FeatureRows(self._state, points, dtype)

    def _sums(self, capacity: int, dtype: Any) -> ReductionPool:
        return FeatureSums(self._state, self._rows(self._in_memory(), capacity, dtype), dtype)

    def _memory(self, pool_bytes: int, others: int) -> tuple[int, str]:
        features = self._features.shape[1]
        return features * (pool_bytes + 8 * (others + self._settings.expected)), f"of {features} features"


def _of_step(name: str, values: Floats) -> Floats:
    """A step input of several labels that form one step: losses are averaged, others are those after the last label."""
    return np.array([values.mean()]) if name in _LOSSES else values[-1:]
