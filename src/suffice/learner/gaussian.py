"""The course of a run with Gaussian noise: Gaussian processes and ridge regression, exact and incremental."""

from typing import Any

import numpy as np

from suffice.acquisition import Chooser, Indices, label_free_chooser, require_known
from suffice.engines.memory import require_memory
from suffice.engines.pool import MemoryPool
from suffice.engines.rows import FeatureRows, KernelRows
from suffice.engines.test_set import FollowedError
from suffice.engines.variance import LargestVariance
from suffice.learner.course import History, Labels, Outcome, Setting
from suffice.models.inputs import targets
from suffice.models.latent import KernelState, WeightState, block_of
from suffice.models.regression import GaussianRegressor, RegressionPrior
from suffice.special import Floats

# Labels whose factor is made at once when the past is replayed.
_LONGEST = 256


class GaussianCourse:
    """Labels with Gaussian noise, under one prior until it is learned again.

    Args:
        model: A regressor; it is not changed.
        setting: Pool, acquisition and test set.
    """

    def __init__(self, model: GaussianRegressor, setting: Setting) -> None:
        self._model, self._setting = model, setting
        self._name = require_known(setting.acquisition, "regression")
        self._features = np.asarray(model.features(setting.X), dtype=np.float64)
        self._y = np.zeros(len(setting.X))
        self._history = History([], [])
        self._skipped: list[int] = []
        self._fixed = self._label_free_chooser()
        self._test: FollowedError | None = None
        self._prior: RegressionPrior | None = None
        self._learned_at = 0

    def propose(self, most: int) -> Indices:
        """The next picks, as far as no label matters to them."""
        return self._chooser.propose(most)

    def batch(self, size: int) -> Indices:
        """Picks to be labelled together."""
        return self._chooser.batch(size)

    def skip(self, indices: Indices) -> None:
        """Leave items out."""
        self._skipped.extend(int(i) for i in indices)
        self._chooser.take(indices)

    def check(self, y: Any) -> None:
        """Refuse a label that is no number."""
        targets(y)

    def begin(self, indices: Indices, y: Any) -> None:
        """Learn hyper-parameters and posterior from the initial labels."""
        self._y[indices] = targets(y)
        self._history.add(indices, together=True)
        self._start()

    def learn(self, indices: Indices, y: Any, *, together: bool) -> Outcome | Labels:
        """Learn labels under the prior at hand."""
        self._y[indices] = targets(y)
        self._history.add(indices, together=together)
        planned = self._chooser.block(indices) if isinstance(self._chooser, LargestVariance) else None
        outcome = self._extend(indices, planned, together=together)
        self._chooser.take(indices)
        return outcome

    def until_relearning(self) -> int | None:
        """Labels until they have doubled since hyper-parameters were learned."""
        return max(0, 2 * self._learned_at - len(self._history.indices)) if self._model.learns else None

    def relearn(self) -> Outcome:
        """Learn hyper-parameters again, and replay the past under them."""
        return self._start()

    def correct(self, index: int, y: Any) -> Outcome:
        """Change a label and replay; hyper-parameters learned from it are learned again, from the same items."""
        self._y[index] = targets([y])[0]
        if self._model.learns and index in self._history.indices[: self._learned_at]:
            self._learn_prior(self._learned_at)
        return self._replay()

    def fitted(self) -> Any:
        """The model as it stands, as an estimator of its own."""
        assert self._prior is not None
        rows = self._history.indices
        return self._model.at(self._setting.X[rows], self._y[rows], self._prior, self._learned_at)

    def _start(self) -> Outcome:
        self._learn_prior(len(self._history.indices))
        return self._replay()

    def _learn_prior(self, n: int) -> None:
        """Hyper-parameters from the first ``n`` labels."""
        indices = self._history.indices[:n]
        self._prior = self._model.prior(self._features[indices], self._y[indices], self._prior)
        self._learned_at = n

    def _replay(self) -> Outcome:
        """Everything from the first label under the prior at hand: posterior, pool, test set."""
        assert self._prior is not None
        indices = np.array(self._history.indices, dtype=np.intp)
        capacity = max(len(indices), self._setting.expected)
        self._state = self._prior.start(self._features.shape[1], capacity)
        self._chooser = self._new_chooser(capacity)
        self._test = self._new_test(capacity)
        first = indices[: self._history.sizes[0]]
        outcomes = []
        self._extend(first, None, together=True)
        for span, together in self._history.spans(_LONGEST):
            outcomes.append(self._extend(indices[span], None, together=together))
        self._chooser.take(np.append(indices, self._skipped).astype(np.intp))
        return Outcome.joined(outcomes)

    def _extend(self, indices: Indices, planned: Any, *, together: bool) -> Outcome | Labels:
        assert self._prior is not None
        block = block_of(self._state, self._features[indices]) if planned is None else planned
        extension = self._state.extend(block, self._prior.scaling.apply(self._y[indices]))
        error = np.zeros(0)
        if self._test is not None:
            error = self._test.follow(extension.white) * self._prior.scaling.scale**2
        return Outcome(extension.together(), error[-1:]) if together else Labels(*extension.terms(), error)

    def _label_free_chooser(self) -> Chooser | None:
        return label_free_chooser(self._name, self._features, self._setting.rng)

    def _new_chooser(self, capacity: int) -> Chooser:
        if self._fixed is not None:
            return self._fixed
        rows = self._rows(self._features, capacity, "the pool")
        return LargestVariance(self._state, MemoryPool(rows, self._setting.dtype), len(self._features))

    def _new_test(self, capacity: int) -> FollowedError | None:
        if self._setting.test is None or self._prior is None:
            return None
        X, y = self._setting.test
        rows = self._rows(self._model.features(X), capacity, "the test set")
        return FollowedError(rows, self._prior.scaling.apply(targets(y)))

    def _rows(self, points: Floats, capacity: int, what: str) -> KernelRows | FeatureRows:
        dtype = np.dtype(self._setting.dtype)
        if isinstance(self._state, WeightState):
            require_memory(points.size * dtype.itemsize, f"following {what}, {len(points)} x {points.shape[1]}")
            return FeatureRows(self._state, points, dtype)
        assert isinstance(self._state, KernelState)
        require_memory(
            len(points) * capacity * dtype.itemsize,
            f"following {what}, {len(points)} points over {capacity} labels,",
            halved=dtype == np.float64,
        )
        return KernelRows(self._state, points, capacity, dtype)
