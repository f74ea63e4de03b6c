"""The backend of models with Gaussian noise: Gaussian processes and ridge regression, exact and incremental."""

from typing import Any, ClassVar, Final

import numpy as np

from suffice.acquisition import RANDOM_SHARES, Chooser, Indices, require_known
from suffice.divergence import in_units_of_noise
from suffice.engines.tracked_rows import FollowedError
from suffice.engines.variance_pool import LargestVariance
from suffice.engines.variance_reduction import LargestReduction
from suffice.learner.backend import Backend, LabelHistory, RunSettings, SingleLabelTerms, StepResults, register_backend
from suffice.learner.gaussian_evidence import GaussianEvidence
from suffice.learner.gaussian_points import GaussianPoints, ProcessPoints, RidgePoints
from suffice.learner.step_inputs import LOSS_FIELDS, REST_FIELDS
from suffice.models.gaussian_state import block_of
from suffice.models.inputs import targets
from suffice.models.regression import BayesianRidge, GaussianProcess, GaussianRegressor, RegressionPrior
from suffice.numerics import Floats

# Number of labels whose factor is computed at once when the history is replayed.
_LONGEST: Final = 256


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
    fixed_attributes = Backend.fixed_attributes | {"_points"}
    points_type: ClassVar[type[GaussianPoints]]
    _chooser: Chooser

    def __init__(self, model: GaussianRegressor, settings: RunSettings) -> None:
        self._model, self._settings = model, settings
        self._points = self.points_type(model, settings, require_known(settings.acquisition, "regression"))
        self._state: Any = None
        self._y = np.zeros(len(settings.X))
        self._history = LabelHistory([], [])
        self._skipped: list[int] = []
        self._random: set[int] = set()
        # Set if picks depend on the posterior; it is then the chooser.
        self._planner: LargestVariance | LargestReduction | None = None
        self._test: FollowedError | None = None
        self._evidence = GaussianEvidence(settings.step_inputs)
        self._prior: RegressionPrior | None = None
        self._learned_at = 0

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
        self._evidence.take(indices)

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
            self._learn_prior(len(indices))
            self._replay()
        except Exception:
            self._history = LabelHistory([], [])
            raise
        assert self._prior is not None
        self._evidence.remember(len(indices), self._prior.scaling)

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
        assert self._prior is not None
        self._chooser.take(indices)
        # If hyper-parameters will be learned again now, the gain is computed with the model after that.
        if self.until_relearning() == 0:
            return result
        return self._evidence.with_gain(result, len(self._history.indices), self._prior.scaling)

    def until_relearning(self) -> int | None:
        """Number of labels until they have doubled since hyper-parameters were learned."""
        return max(0, 2 * self._learned_at - len(self._history.indices)) if self._model.learns else None

    def relearn(self) -> StepResults:
        """Learn hyper-parameters again, and replay the history with them."""
        n = len(self._history.indices)
        self._learn_prior(n)
        history = self._replay()
        assert self._prior is not None
        with_gain = self._evidence.with_gain(history, n, self._prior.scaling)
        assert isinstance(with_gain, StepResults)
        return with_gain

    def correct(self, index: int, y: Any) -> StepResults:
        """Change a label and replay the history; hyper-parameters learned from it are learned again."""
        earlier, self._y[index] = self._y[index], targets([y])[0]
        try:
            return self._corrected(index)
        except Exception:
            self._y[index] = earlier
            self._corrected(index)
            raise

    def _corrected(self, index: int) -> StepResults:
        if index in self._history.indices[: self._learned_at]:
            self._learn_prior(self._learned_at)
        return self._replay()

    def fitted(self) -> Any:
        """The current model as an independent estimator."""
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

    def _learn_prior(self, n: int) -> None:
        """Hyper-parameters from the first ``n`` labels."""
        indices = self._history.indices[:n]
        random = np.array([i in self._random for i in indices]) if self._random else None
        self._prior = self._model.prior(self._points.features[indices], self._y[indices], self._prior, random)
        self._learned_at = n
        # If all labels are the same, their variance is 0 and errors cannot be compared with it.
        self._evidence.label_variance = float(self._y[indices].var()) or 1.0

    def _replay(self) -> StepResults:
        """Compute posterior, pool and test set again from the first label with the present prior."""
        assert self._prior is not None
        indices = np.array(self._history.indices, dtype=np.intp)
        capacity = max(len(indices), self._settings.expected)
        points, skipped = self._points, np.array(self._skipped, dtype=np.intp)
        self._state = self._prior.start(points.features.shape[1], capacity)
        # Free the old posterior and its points first, because there may not be memory for both.
        self.__dict__.pop("_chooser", None)
        self._planner = self._test = None
        self._evidence.release()
        if points.fixed is None:
            self._planner = self._chooser = points.planner(self._state, capacity)
        else:
            self._chooser = points.fixed
        self._test = points.labelled_set(self._state, self._prior, self._settings.test, capacity)
        self._evidence.follow(points, self._state, self._prior, capacity)
        self._evidence.take(skipped)
        self._learn_initial(indices[: self._history.sizes[0]])
        results = []
        for span, together in self._history.spans(_LONGEST):
            results.append(self._extend(indices[span], None, together=together))
        self._chooser.take(indices)
        self._chooser.skip(skipped)
        return StepResults.joined(results)

    def _learn_initial(self, indices: Indices) -> None:
        """Learn the initial labels, whose results are not needed."""
        self._extend(indices, None, together=True)

    def _extend(self, indices: Indices, planned: Any, *, together: bool) -> StepResults | SingleLabelTerms:
        assert self._prior is not None
        block = block_of(self._state, self._points.features[indices]) if planned is None else planned
        scaling = self._prior.scaling
        extension = self._state.extend(block, scaling.apply(self._y[indices]))
        # First the operations that can fail; then the test set, which cannot be undone.
        terms = extension.terms()
        pair = extension.together() if together else None
        error = predictive = np.zeros(0)
        if self._test is not None:
            error, predictive = (values * scaling.scale**2 for values in self._test.follow(extension.white))
        measures = self._evidence.after(indices, extension, terms, scaling, together=together)
        if pair is not None:
            return StepResults(pair, error[-1:], measures=measures, predictive_error=predictive[-1:])
        if not measures:
            return SingleLabelTerms(terms[0], terms[1], error, predictive)
        return StepResults(in_units_of_noise(*terms), error, measures=measures, predictive_error=predictive)


@register_backend(GaussianProcess)
class ProcessBackend(GaussianBackend):
    """Gaussian processes: memory grows with labels times points."""

    default_acquisition = "variance-reduction"
    default_random_share = RANDOM_SHARES["regression"]
    device_acquisitions = frozenset({"variance", "variance-reduction"})
    device_rows = True
    worker_acquisitions = frozenset({"variance", "variance-reduction", "random", "order"})
    points_type = ProcessPoints


@register_backend(BayesianRidge)
class RidgeBackend(GaussianBackend):
    """Ridge regression: memory grows with features times points."""

    # No acquisition was better than random labels for a linear model, which is almost never the true model.
    default_acquisition = "random"
    disk_pools = True
    worker_acquisitions = frozenset({"random", "order"})
    points_type = RidgePoints

    def _learn_initial(self, indices: Indices) -> None:
        assert self._prior is not None
        self._state.learn(self._points.features[indices], self._prior.scaling.apply(self._y[indices]))
        for followed in (self._test, self._evidence, self._planner):
            if followed is not None:
                followed.jump()
        self._evidence.take(indices)
