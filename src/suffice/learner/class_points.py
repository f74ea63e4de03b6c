"""The points of logistic regression: features of the pool, the engine that scores it, test set and validation set."""

from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np

from suffice.acquisition import Indices, class_scores
from suffice.engines.class_pool import ClassPool, ScoredPool, UncertainPool
from suffice.engines.disk_rows import DiskRows, blocks_of, require_disk_memory, require_memory
from suffice.engines.sharded_pool import ClassPrior, ClassShard, DaskShards, ShardedClasses
from suffice.engines.worker_rows import WorkerRows
from suffice.errors import InvalidValueError
from suffice.learner.backend import RunSettings
from suffice.models.laplace import GrowingPosterior, Snapshot, latent
from suffice.models.latent_series import FEWEST, LatentSeries, most_together
from suffice.models.logistic import BayesianLogistic
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

# Bytes of scores, flags and numbers on a worker for each point.
_ON_WORKERS: Final = 64
# Number of logits whose losses are computed at a time.
_VALUES: Final = 1 << 14
# Acquisitions with the same ranking for two classes: by the distance of the predictive probability from 1/2.
_BY_EVENNESS: Final = {"entropy": True, "margin": True, "map-entropy": False}


class ClassPoints:
    """The points of a run, with the features in use and the known classes. They follow from model and settings.

    Args:
        model: A classifier; it is not changed.
        settings: Pool, acquisition and test set.
        name: Name of the acquisition.

    Attributes:
        features: The features in use: only the first components if the model chooses their number.
        all_features: All features.
        capacity: Chooses the number of components; None if the model does not.
        pool: The pool, scored for the acquisition; None before the classes are known.
        test: The test set, or None.
        validation: The validation set, or None.

    Raises:
        NotEnoughMemoryError: The pool exceeds the memory.
    """

    def __init__(self, model: BayesianLogistic, settings: RunSettings, name: str) -> None:
        self._model, self._settings, self._name = model, settings, name
        self.all_features: Any = (
            settings.X.mapped(model.features, selects=True)
            if isinstance(settings.X, DiskRows)
            else np.asarray(model.features(settings.X), dtype=np.float64)
        )
        self.features: Any = self.all_features
        model.check(settings.X.shape[1])
        self.capacity = model.capacity(settings.X.shape[1])
        self._n_components: int | None = None
        self._classes: Any = np.zeros(0)
        self.pool: ClassPool | None = None
        self.test: ClassTest | None = None
        self.validation: AveragedPredictions | None = None
        if isinstance(self.features, WorkerRows):
            # Memory for a column-major copy of the points, and a few numbers per point.
            self.features.require_room(8 * self.features.shape[1] + _ON_WORKERS, "scoring the pool")
        elif isinstance(self.features, DiskRows):
            require_disk_memory(self.features)
        else:
            require_memory(2 * self.features.nbytes, f"following {len(self.features)} pool items")

    def use_components(self, n_components: int | None) -> None:
        """Use only the first components."""
        self._n_components = n_components
        self.features = self._used(self.all_features)

    def make_sets(self, classes: Any, taken: Indices) -> None:
        """Create pool, test set and validation set for the present features and classes.

        Args:
            classes: The known classes, sorted.
            taken: Items that cannot be chosen.
        """
        self._classes = classes
        self.pool = self._new_pool(taken)
        self.test = self._new_test()
        validation = self._known_rows(self._settings.step_inputs.validation, "validation")
        self.validation = None if validation is None else self._averaged(validation)

    def relevance(self, posterior: Any, features: Floats) -> Floats:
        """The averaged probability of the positive class."""
        code = self._classes.tolist().index(self._settings.positive)
        return np.asarray(probabilities(moderated_logits(posterior, features))[:, code])

    def relevance_of_pool(self, posterior: Any) -> Floats:
        """The probability of the positive class of all items; 0 before it has a label."""
        p = np.zeros(len(self.features))
        if self._settings.positive in self._classes.tolist():
            for start, block in blocks_of(self.features):
                p[start : start + len(block)] = self.relevance(posterior, block)
        return p

    def _new_pool(self, taken: Indices) -> ClassPool:
        pool: ClassPool
        present = self.pool
        elsewhere = isinstance(self.features, WorkerRows) or self._settings.device is not None
        if elsewhere and present is not None and present.source is self.features:
            # The points are stored already.
            return present
        if isinstance(self.features, WorkerRows):
            pool = self._worker_pool(self.features)
        elif self._settings.device is not None:
            pool = self._device_pool(self._settings.device)
        elif self._name == "relevance":
            pool = ScoredPool(self.features, self.relevance)
        elif len(self._classes) <= 2 and self._name in _BY_EVENNESS:
            if isinstance(present, UncertainPool) and present.source is self.features:
                # Its data about the points are valid for any posterior, and reading the file again takes longer.
                return present
            pool = UncertainPool(self.features, averaged=_BY_EVENNESS[self._name])
        else:
            pool = ScoredPool(self.features, partial(class_scores, name=self._name))
        pool.take(taken)
        return pool

    def _worker_pool(self, rows: WorkerRows) -> ClassPool:
        prior = ClassPrior(partial(class_scores, name=self._name), _BY_EVENNESS.get(self._name))

        def shards() -> DaskShards:
            return DaskShards(rows.client, rows.parts, rows.sizes, prior, make=ClassShard)

        return ShardedClasses(shards, prior, rows)

    def _device_pool(self, device: str) -> ClassPool:
        from suffice.engines.torch_pools import TorchClasses

        score = partial(class_scores, name=self._name)
        return TorchClasses(self.features, self._name, score, device, single=self._settings.dtype == np.float32)

    def _used(self, features: Any) -> Any:
        """The features in use; a view if these are the first columns."""
        if self.capacity is None or self._n_components is None:
            return features
        chosen = self.capacity.columns(self._n_components)
        if isinstance(features, DiskRows):
            return features.mapped(lambda block: block[:, chosen], selects=True)
        return features[:, chosen]

    def _new_test(self) -> "ClassTest | None":
        rows = self._known_rows(self._settings.test, "y_test")
        if rows is None:
            return None
        kind = BinaryCrossEntropy if len(self._classes) <= 2 else SoftmaxCrossEntropy
        return ClassTest(rows.features, kind(rows.features, rows.codes), self._averaged(rows))

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


class SetLosses(NamedTuple):
    """Losses on the test set after a label.

    Attributes:
        error: Posterior mean of the loss.
        averaged: Losses of the averaged prediction.
    """

    error: float
    averaged: ClassLosses


class WaitingLosses:
    """Losses of one posterior, computed when they are read, together with those of other posteriors that wait.

    Args:
        test: The test set.
        state: The posterior.
    """

    def __init__(self, test: "ClassTest", state: Snapshot) -> None:
        self._test: ClassTest | None = test
        self.state: Snapshot | None = state
        self._values: SetLosses | None = None

    def values(self) -> SetLosses:
        """The losses."""
        if self._test is not None:
            self._test.settle()
        assert self._values is not None
        return self._values

    def settle(self, values: SetLosses) -> None:
        """Store the losses. The posterior is not needed any more."""
        self._values, self._test, self.state = values, None, None


class ClassTest:
    """Losses on the test set: of the posterior, and of the averaged prediction.

    Args:
        features: Rows of known classes, ``m x J``.
        expected: Their expected loss.
        averaged: Their losses of the averaged prediction.
    """

    def __init__(
        self, features: Floats, expected: BinaryCrossEntropy | SoftmaxCrossEntropy, averaged: AveragedPredictions
    ) -> None:
        self._features, self._expected, self._averaged = features, expected, averaged
        self._waiting: list[WaitingLosses] = []
        self._series: LatentSeries | None = None
        self._most = most_together(features) if isinstance(expected, BinaryCrossEntropy) else 0

    def losses(self, posterior: GrowingPosterior) -> SetLosses:
        """The losses under a posterior."""
        if isinstance(self._expected, SoftmaxCrossEntropy):
            return SetLosses(self._expected.error(posterior), self._averaged.losses(posterior))
        mean, variance = posterior.latent(self._features)
        return self._binary_losses(mean[None], variance[None])[0]

    def later(self, posterior: GrowingPosterior) -> WaitingLosses | None:
        """The losses under the present posterior, computed when they are read; None if that would not be faster."""
        if not self._most:
            return None
        waiting = WaitingLosses(self, posterior.snapshot())
        self._waiting.append(waiting)
        if len(self._waiting) >= self._most:
            self.settle()
        return waiting

    def settle(self) -> None:
        """Compute all losses that wait."""
        waiting, self._waiting = self._waiting, []
        states = [entry.state for entry in waiting if entry.state is not None]
        if self._series is None and len(states) == self._most:
            self._series = LatentSeries(self._features)
        if self._series is not None and len(states) >= FEWEST:
            means, variances = self._series.of(states)
            losses = self._binary_losses(means, variances)
        else:
            latents = [latent(state, 1, self._features) for state in states]
            losses = [self._binary_losses(mean[None], variance[None])[0] for mean, variance in latents]
        for entry, values in zip(waiting, losses, strict=True):
            entry.settle(values)

    def _binary_losses(self, means: Floats, variances: Floats) -> list[SetLosses]:
        """The losses under each of ``k`` posteriors, from ``k x m`` means and variances of two classes."""
        # For two classes both are computed from the same variances, which take most of the time.
        assert isinstance(self._expected, BinaryCrossEntropy)
        losses: list[SetLosses] = []
        # A few posteriors at a time, so that intermediate results stay in the CPU cache.
        at_once = max(1, _VALUES // max(1, means.shape[1]))
        for first in range(0, len(means), at_once):
            mean, variance = means[first : first + at_once], variances[first : first + at_once]
            averaged = self._averaged.losses_of_two(moderated(mean, variance))
            errors = self._expected.errors_of(mean, variance).tolist()
            losses.extend(SetLosses(*both) for both in zip(errors, averaged, strict=True))
        return losses
