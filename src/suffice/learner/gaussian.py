"""The course of a run with Gaussian noise: Gaussian processes and ridge regression, exact and incremental."""

from typing import Any

import numpy as np

from suffice.acquisition import Chooser, Indices, label_free_chooser, require_known
from suffice.divergence.observations import in_units_of_noise
from suffice.engines.followed_error import FollowedError
from suffice.engines.followed_variance import FollowedVariance
from suffice.engines.memory import require_memory
from suffice.engines.pool import MemoryPool
from suffice.engines.rows import FeatureRows, KernelRows
from suffice.engines.variance import LargestVariance
from suffice.learner.course import History, Labels, Outcome, Setting
from suffice.learner.facts import OF_NUMBERS
from suffice.models.inputs import targets
from suffice.models.latent import KernelState, WeightState, block_of
from suffice.models.process import GaussianProcess
from suffice.models.regression import GaussianRegressor, RegressionPrior
from suffice.special import Floats

_LOSSES = ("selected_loss", "selected_expected_loss")
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
        model.check(self._features.shape[1])
        self._y = np.zeros(len(setting.X))
        self._history = History([], [])
        self._skipped: list[int] = []
        self._fixed = label_free_chooser(self._name, self._features, setting.rng)
        self._require_memory()
        self._test: FollowedError | None = None
        self._validation: FollowedError | None = None
        self._stop_set: FollowedVariance | None = None
        self._all: FollowedVariance | None = None
        self._prior: RegressionPrior | None = None
        self._learned_at = 0

    @property
    def revises(self) -> frozenset[str]:
        """Variances of the past follow from the prior, and come with the divergences."""
        return self._setting.facts.names & (OF_NUMBERS | {"validation_error"})

    def propose(self, most: int) -> Indices:
        """The next picks, as far as no label matters to them."""
        return self._chooser.propose(most)

    def batch(self, size: int) -> Indices:
        """Picks to be labelled together."""
        return self._chooser.batch(size)

    def skip(self, indices: Indices) -> None:
        """Leave items out."""
        self._skipped.extend(int(i) for i in indices)
        self._chooser.skip(indices)
        if self._all is not None:
            self._all.take(indices)

    def check(self, y: Any) -> None:
        """Refuse a label that is no number."""
        targets(y)

    def begin(self, indices: Indices, y: Any) -> None:
        """Learn hyper-parameters and posterior from the initial labels."""
        self._y[indices] = targets(y)
        self._history.add(indices, together=True)
        try:
            self._start()
        except Exception:
            self._history = History([], [])
            raise

    def learn(self, indices: Indices, y: Any, *, together: bool) -> Outcome | Labels:
        """Learn labels under the prior at hand."""
        self._y[indices] = targets(y)
        planned = self._chooser.block(indices) if isinstance(self._chooser, LargestVariance) else None
        mark: Any = self._state.mark()
        try:
            outcome = self._extend(indices, planned, together=together)
        except Exception:
            self._state.rewind(mark)
            raise
        self._history.add(indices, together=together)
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
        kept, self._y[index] = self._y[index], targets([y])[0]
        try:
            return self._corrected(index)
        except Exception:
            self._y[index] = kept
            self._corrected(index)
            raise

    def _corrected(self, index: int) -> Outcome:
        if index in self._history.indices[: self._learned_at]:
            self._learn_prior(self._learned_at)
        return self._replay()

    def fitted(self) -> Any:
        """The model as it stands, as an estimator of its own."""
        assert self._prior is not None
        rows = self._history.indices
        return self._model.at(self._setting.X[rows], self._y[rows], self._prior, self._learned_at)

    def current_model(self) -> Any:
        """The model with the posterior of this course; valid until the next label."""
        assert self._prior is not None
        rows = self._history.indices
        return self._model.at(self._setting.X[rows], self._y[rows], self._prior, self._learned_at, self._state)

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
        # What followed the old posterior goes before its successor comes: both would not fit where one just does.
        self.__dict__.pop("_chooser", None)
        self._test = self._validation = self._stop_set = self._all = None
        self._chooser = self._new_chooser(capacity)
        self._test = self._new_test(self._setting.test, capacity)
        self._watch(capacity)
        self._learn_initial(indices[: self._history.sizes[0]])
        outcomes = []
        for span, together in self._history.spans(_LONGEST):
            outcomes.append(self._extend(indices[span], None, together=together))
        self._chooser.take(indices)
        self._chooser.skip(np.array(self._skipped, dtype=np.intp))
        return Outcome.joined(outcomes)

    def _learn_initial(self, indices: Indices) -> None:
        """Take in the first labels, of which no account is given."""
        assert self._prior is not None
        if isinstance(self._state, KernelState):
            self._extend(indices, None, together=True)
            return
        self._state.learn(self._features[indices], self._prior.scaling.apply(self._y[indices]))
        for followed in (self._test, self._validation, self._stop_set, self._all):
            if followed is not None:
                followed.jump()
        if self._all is not None:
            self._all.take(indices)
        if isinstance(self._chooser, LargestVariance):
            self._chooser.jump()

    def _extend(self, indices: Indices, planned: Any, *, together: bool) -> Outcome | Labels:
        assert self._prior is not None
        block = block_of(self._state, self._features[indices]) if planned is None else planned
        extension = self._state.extend(block, self._prior.scaling.apply(self._y[indices]))
        # First what can fail; then the test set, which does not go back.
        terms = extension.terms()
        pair = extension.together() if together else None
        error = np.zeros(0)
        if self._test is not None:
            error = self._test.follow(extension.white) * self._prior.scaling.scale**2
        lower = extension.block.lower
        if pair is not None and self._setting.facts.about(_LOSSES):
            # Of labels that came together each is seen as it was before all of them.
            terms = (
                np.sum(lower**2, axis=1) / self._state.noise - 1.0,
                (lower @ extension.white) ** 2 / self._state.noise,
            )
        measures = self._told(indices, extension.white, terms)
        if pair is not None:
            last = {name: _of_step(name, values) for name, values in measures.items()}
            return Outcome(pair, error[-1:], measures=last)
        return Outcome(in_units_of_noise(*terms), error, measures=measures) if measures else Labels(*terms, error)

    def _watch(self, capacity: int) -> None:
        """Begin to follow what is to be told of each step, and nothing else."""
        facts = self._setting.facts
        if facts.validation is not None:
            self._validation = self._new_test(facts.validation, capacity)
        if facts.about({"expected_error"}):
            self._stop_set = FollowedVariance(self._rows(self._features[facts.stop], capacity, np.float64))
        if facts.about({"pool_variance", "pool_gain"}):
            self._all = FollowedVariance(self._rows(self._features, capacity, np.float64))
            self._all.take(np.array(self._skipped, dtype=np.intp))

    def _told(self, indices: Indices, white: Floats, terms: tuple[Floats, Floats]) -> dict[str, Floats]:
        """What is to be told after each of some labels, in the units of the targets."""
        assert self._prior is not None
        scale, noise = self._prior.scaling.scale**2, self._state.noise
        # Squared residual of each label, and what was expected of it.
        found = {_LOSSES[0]: terms[1] * noise * scale, _LOSSES[1]: (terms[0] + 1.0) * noise * scale}
        if self._validation is not None:
            found["validation_error"] = self._validation.follow(white) * scale
        if self._stop_set is not None:
            # What the error is where labels fall as predicted: (y - mean)^2 is s + noise, and s comes on top.
            found["expected_error"] = (2.0 * self._stop_set.follow(len(white)).mean + noise) * scale
        if self._all is not None:
            largest = self._all.follow(len(white), indices).largest
            found |= {"pool_variance": largest * scale, "pool_gain": 0.5 * np.log1p(largest / noise)}
        return {name: values for name, values in found.items() if name in self._setting.facts.names}

    def _new_chooser(self, capacity: int) -> Chooser:
        if self._fixed is not None:
            return self._fixed
        rows = self._rows(self._features, capacity, self._setting.dtype)
        return LargestVariance(self._state, MemoryPool(rows, self._setting.dtype), len(self._features))

    def _new_test(self, given: Any, capacity: int) -> FollowedError | None:
        if given is None or self._prior is None:
            return None
        X, y = given
        rows = self._rows(self._model.features(X), capacity, np.float64)
        return FollowedError(rows, self._prior.scaling.apply(targets(y)))

    def _rows(self, points: Floats, capacity: int, dtype: Any) -> KernelRows | FeatureRows:
        if isinstance(self._state, WeightState):
            return FeatureRows(self._state, points, dtype)
        assert isinstance(self._state, KernelState)
        return KernelRows(self._state, points, capacity, dtype)

    def _require_memory(self) -> None:
        """Say before the first label if pool, test set and posterior will not fit."""
        size, single = np.dtype(self._setting.dtype).itemsize, self._setting.dtype == np.float32
        m, labels = len(self._features), self._setting.expected
        facts = self._setting.facts
        followed = [part[1] for part in (self._setting.test, facts.validation) if part is not None]
        followed += [] if facts.stop is None else [facts.stop]
        followed += [self._features] if facts.about({"pool_variance", "pool_gain"}) else []
        tests, follows = sum(map(len, followed)), self._fixed is None
        if isinstance(self._model, GaussianProcess):
            needed = 8 * labels * labels + labels * (m * size * follows + 8 * tests)
            what = f"following {m} pool items and {tests} other items over {labels} labels"
        else:
            needed = self._features.shape[1] * (m * size * follows + 8 * (tests + labels))
            what = f"following {m} pool items and {tests} other items of {self._features.shape[1]} features"
        require_memory(needed, what, halved=follows and not single)


def _of_step(name: str, values: Floats) -> Floats:
    """What is told of a step of several labels: its losses are means, all else is as after the last."""
    return np.array([values.mean()]) if name in _LOSSES else values[-1:]
