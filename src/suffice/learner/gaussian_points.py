"""Where the points of a model with Gaussian noise are: pool, test set, and the other items that it follows."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from suffice.acquisition import label_free_chooser
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
from suffice.engines.tracked_rows import FeatureRows, FollowedError, FollowedRows, KernelRows, linear_error
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
from suffice.learner.backend import RunSettings
from suffice.learner.step_inputs import REST_FIELDS
from suffice.models.inputs import targets
from suffice.models.regression import GaussianRegressor, RegressionPrior
from suffice.numerics import Floats
from suffice.session.session_labels import RULE_ITEMS


class GaussianPoints(ABC):
    """The points of a run, and the engines that follow a posterior on them. Base of the two classes below.

    Args:
        model: A regressor; it is not changed.
        settings: Pool, acquisition and test set.
        name: Name of the acquisition.

    Attributes:
        features: Features of the pool: an array, or rows on disk, on workers or on a device.
        fixed: The chooser, if picks do not depend on the posterior.

    Raises:
        NotEnoughMemoryError: Pool, test set and posterior exceed the memory.
    """

    def __init__(self, model: GaussianRegressor, settings: RunSettings, name: str) -> None:
        self._model, self._settings, self._name = model, settings, name
        self.features: Any = self._all_features(settings.X)
        model.check(self.features.shape[1])
        self.fixed = label_free_chooser(name, in_memory_for(name, self.features), settings.rng)
        self._require_memory()

    def _all_features(self, X: Any) -> Any:
        """Features of the whole pool."""
        if isinstance(X, DiskRows):
            return X.mapped(self._model.features)
        return np.asarray(self._model.features(X), dtype=np.float64)

    def planner(self, state: Any, capacity: int) -> LargestVariance | LargestReduction:
        """The chooser that depends on the posterior."""
        if self._name == "variance-reduction":
            return LargestReduction(state, self._sums(state, capacity, self._settings.dtype))
        return LargestVariance(state, self._pool(state, capacity), len(self.features))

    def labelled_set(self, state: Any, prior: RegressionPrior, given: Any, capacity: int) -> FollowedError | None:
        """Inputs and labels whose errors follow the posterior; None without them."""
        if given is None:
            return None
        X, y = given
        rows = self.rows(state, self._model.features(X), capacity, np.float64)
        return FollowedError(rows, prior.scaling.apply(targets(y)))

    def in_memory(self) -> Floats:
        """The features of the whole pool in memory."""
        features = self.features
        if isinstance(features, DiskRows):
            return features.array("following every pool item")
        return features if isinstance(features, np.ndarray) else features.array()

    @abstractmethod
    def rows(self, state: Any, points: Floats, capacity: int, dtype: Any) -> FollowedRows:
        """Points whose predictions are updated with the posterior."""

    def _pool(self, state: Any, capacity: int) -> VariancePool:
        """The pool, scored by its variance."""
        dtype = self._settings.dtype
        return MemoryPool(self.rows(state, self.features, capacity, dtype), dtype)

    @abstractmethod
    def _sums(self, state: Any, capacity: int, dtype: Any) -> ReductionPool:
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
        m = len(self.features)
        inputs = self._settings.step_inputs
        followed = [part[1] for part in (self._settings.test, inputs.validation) if part is not None]
        followed += [] if inputs.stop is None else [inputs.stop]
        tests = sum(map(len, followed))
        tests += min(m, RULE_ITEMS["regression"]) if inputs.about(REST_FIELDS) else 0
        tests += m if inputs.about({"pool_variance", "pool_gain"}) else 0
        # A pool on a device uses the memory of that device; a pool on disk needs little memory.
        follows = self.fixed is None and self._settings.device is None
        if isinstance(self.features, WorkerRows):
            # The workers hold the pool; this process stores a few numbers for each item.
            follows = False
            require_memory(PER_ITEM * m, f"a pool of {m:,} items on workers, {PER_ITEM} bytes for each here,")
            self._require_workers(self.features, size)
        elif isinstance(self.features, DiskRows):
            require_disk_memory(self.features)
            follows = follows and self._name == "variance-reduction"
        needed, extent = self._memory(m * size * follows, tests)
        require_memory(
            needed, f"following {m} pool items and {tests} other items {extent}", halved=follows and not single
        )

    def _require_workers(self, rows: WorkerRows, itemsize: int) -> None:
        """Raise an error before the first label if parts of the pool exceed the memory of the workers."""
        del itemsize
        rows.require_room(0, "the pool")


class ProcessPoints(GaussianPoints):
    """Points of a Gaussian process: memory grows with labels times points.

    Attributes:
        sample: The points over which the mean variance is computed; None for other acquisitions.
    """

    def __init__(self, model: GaussianRegressor, settings: RunSettings, name: str) -> None:
        super().__init__(model, settings, name)
        # Drawn once, so that it is the same after hyper-parameters are learned again; other acquisitions draw nothing.
        self.sample = sample_of(len(self.features), settings.rng) if name == "variance-reduction" else None

    def _all_features(self, X: Any) -> Any:
        # A kernel is evaluated on the inputs themselves, so a pool on a device stays there.
        return X if not isinstance(X, DiskRows | np.ndarray) else super()._all_features(X)

    def rows(self, state: Any, points: Floats, capacity: int, dtype: Any) -> KernelRows:
        """Points whose predictions are updated with the posterior."""
        return KernelRows(state, points, capacity, dtype)

    def _pool(self, state: Any, capacity: int) -> VariancePool:
        device, single = self._settings.device, self._settings.dtype == np.float32
        if isinstance(self.features, WorkerRows):
            return ShardedPool(state, self._shards(Shard, self._shard_prior(state, capacity)), single=single)
        if device is None:
            return super()._pool(state, capacity)
        from suffice.engines.torch_pools import TorchPool

        return TorchPool(state, self._device_points(), device, single=single)

    def _sums(self, state: Any, capacity: int, dtype: Any) -> ReductionPool:
        assert self.sample is not None
        if isinstance(self.features, WorkerRows):
            prior = SumsPrior(self._shard_prior(state, capacity), self.features[self.sample])
            return ShardedSums(state, self._shards(SumsShard, prior))
        if self._settings.device is not None:
            from suffice.engines.torch_pools import TorchSums

            device, single = self._settings.device, dtype == np.float32
            return TorchSums(state, self._device_points(), self.sample, capacity, device, single=single)
        return KernelSums(state, self.rows(state, self.features, capacity, dtype), self.sample, capacity, dtype)

    def _device_points(self) -> Any:
        """The pool as a tensor on the device, or as an array that is copied there."""
        return self.features if isinstance(self.features, np.ndarray) else self.features.tensor

    def _shard_prior(self, state: Any, capacity: int) -> ShardPrior:
        return ShardPrior(tuple(state.kernel.length_scale), state.noise, capacity, np.dtype(self._settings.dtype).name)

    def _shards(self, make: type[Shard], prior: Any) -> Callable[[], Shards]:
        """A function that creates the shards on the workers; called at the first pick."""
        rows = self.features
        return lambda: DaskShards(rows.client, rows.parts, rows.sizes, prior, make=make)

    def _require_workers(self, rows: WorkerRows, itemsize: int) -> None:
        labels = self._settings.expected
        if self.fixed is not None:
            super()._require_workers(rows, itemsize)
            return
        per_row = shard_memory(rows.shape[1], labels, itemsize, sums=self._name == "variance-reduction")
        rows.require_room(per_row, f"following the pool over {labels} labels")

    def _memory(self, pool_bytes: int, others: int) -> tuple[int, str]:
        labels = self._settings.expected
        needed = 8 * labels * labels + labels * (pool_bytes + 8 * others)
        if self._name == "variance-reduction" and self._settings.device is None:
            needed += sample_memory(len(self.features), labels)
        return needed, f"over {labels} labels"


class RidgePoints(GaussianPoints):
    """Points of ridge regression: memory grows with features times points."""

    def labelled_set(self, state: Any, prior: RegressionPrior, given: Any, capacity: int) -> FollowedError | None:
        """Inputs and labels whose errors follow the posterior, at a cost that does not depend on their number."""
        del capacity
        if given is None:
            return None
        X, y = given
        return linear_error(state, self._model.features(X), prior.scaling.apply(targets(y)))

    def rows(self, state: Any, points: Floats, capacity: int, dtype: Any) -> FeatureRows:
        """Points whose predictions are updated with the posterior."""
        del capacity
        return FeatureRows(state, points, dtype)

    def _pool(self, state: Any, capacity: int) -> VariancePool:
        features = self.features
        return DiskPool(state, features) if isinstance(features, DiskRows) else super()._pool(state, capacity)

    def _sums(self, state: Any, capacity: int, dtype: Any) -> ReductionPool:
        return FeatureSums(state, self.rows(state, self.in_memory(), capacity, dtype), dtype)

    def _memory(self, pool_bytes: int, others: int) -> tuple[int, str]:
        features = self.features.shape[1]
        return features * (pool_bytes + 8 * (others + self._settings.expected)), f"of {features} features"
