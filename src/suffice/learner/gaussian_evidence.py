"""The step inputs of a model with Gaussian noise, other than divergences: computed only if they are wanted."""

from dataclasses import replace
from typing import Any, Final

import numpy as np

from suffice.acquisition import Indices
from suffice.engines.tracked_rows import FollowedError, FollowedVariance
from suffice.learner.backend import SingleLabelTerms, StepResults
from suffice.learner.gaussian_points import GaussianPoints
from suffice.learner.step_inputs import REST_FIELDS, RecentGain, StepInputs
from suffice.models.gaussian_state import Extension, Scaling
from suffice.models.regression import RegressionPrior
from suffice.numerics import Floats
from suffice.session.session_labels import RULE_ITEMS, sampled_items

_LOSSES: Final = ("selected_loss", "selected_expected_loss")


class GaussianEvidence:
    """Follows the items that the wanted step inputs need, and computes the inputs after each label.

    Args:
        wanted: The wanted fields. Nothing is followed for others.

    Attributes:
        label_variance: Variance of the labels from which hyper-parameters were learned, the scale of errors.
    """

    def __init__(self, wanted: StepInputs) -> None:
        self._wanted = wanted
        self._validation: FollowedError | None = None
        self._stop_set: FollowedVariance | None = None
        self._all: FollowedVariance | None = None
        self._rest: FollowedVariance | None = None
        # Items that are tracked for the error of the unlabelled items, and the position of each item among them or -1.
        self._rest_items: Indices = np.zeros(0, dtype=np.intp)
        self._rest_place: Indices = np.zeros(0, dtype=np.intp)
        self._recent = RecentGain()
        self.label_variance = 1.0

    def release(self) -> None:
        """Free the memory of the followed items."""
        self._validation = self._stop_set = self._all = self._rest = None

    def follow(self, points: GaussianPoints, state: Any, prior: RegressionPrior, capacity: int) -> None:
        """Start to follow a posterior without labels."""
        wanted, features = self._wanted, points.features
        if wanted.validation is not None:
            self._validation = points.labelled_set(state, prior, wanted.validation, capacity)
        if wanted.about({"expected_error"}):
            self._stop_set = FollowedVariance(points.rows(state, features[wanted.stop], capacity, np.float64))
        if wanted.about({"pool_variance", "pool_gain"}):
            self._all = FollowedVariance(points.rows(state, points.in_memory(), capacity, np.float64))
        if wanted.about(REST_FIELDS):
            m = len(features)
            self._rest_items = sampled_items(m, RULE_ITEMS["regression"])
            self._rest_place = np.full(m, -1, dtype=np.intp)
            self._rest_place[self._rest_items] = np.arange(len(self._rest_items))
            self._rest = FollowedVariance(points.rows(state, features[self._rest_items], capacity, np.float64))

    def take(self, indices: Indices) -> None:
        """Leave items out of the unlabelled ones."""
        if self._all is not None:
            self._all.take(indices)
        if self._rest is not None:
            places = self._rest_place[indices]
            self._rest.take(places[places >= 0])

    def jump(self) -> None:
        """Update to the posterior of a linear model, without the labels in between."""
        for followed in (self._validation, self._stop_set, self._all, self._rest):
            if followed is not None:
                followed.jump()

    def after(
        self, indices: Indices, extension: Extension, terms: tuple[Floats, Floats], scaling: Scaling, *, together: bool
    ) -> dict[str, Floats]:
        """The wanted step inputs after each of some labels, or after all of them, in the units of the targets.

        Args:
            indices: The items.
            extension: The effect of their labels.
            terms: Latent variance and squared residual of each label, in units of the noise variance.
            scaling: Standardisation of the targets.
            together: Whether the labels are one step.
        """
        if not self._wanted.names:
            return {}
        white, noise, scale = extension.white, extension.noise, scaling.scale**2
        if together and self._wanted.about(_LOSSES):
            # Labels of one step are compared with the predictions before all of them.
            lower = extension.block.lower
            terms = np.sum(lower**2, axis=1) / noise - 1.0, (lower @ white) ** 2 / noise
        # Squared residual of each label, and its expected value.
        fields = {_LOSSES[0]: terms[1] * noise * scale, _LOSSES[1]: (terms[0] + 1.0) * noise * scale}
        if self._validation is not None:
            fields["validation_error"] = self._validation.follow(white).predictive * scale
        if self._stop_set is not None:
            # If the model is correct, the expectation of (y - mean)^2 is s + noise.
            fields["expected_error"] = (self._stop_set.follow(len(white)).mean + noise) * scale
        if self._all is not None:
            largest = self._all.follow(len(white), indices).largest
            fields |= {"pool_variance": largest * scale, "pool_gain": 0.5 * np.log1p(largest / noise)}
        if self._rest is not None:
            reducible = self._rest.follow(len(white), self._rest_place[indices], white).free_mean
            fields |= {
                "unlabelled_error": (reducible + noise) * scale,
                "reducible_error": reducible * scale,
                "error_scale": np.full(len(white), self.label_variance),
            }
        wanted = {name: values for name, values in fields.items() if name in self._wanted.names}
        return {name: _of_step(name, values) for name, values in wanted.items()} if together else wanted

    def remember(self, n_labelled: int, scaling: Scaling) -> None:
        """Store the predictions after the initial labels, for the recent gain."""
        if self._rest is not None:
            self._recent.keep(n_labelled, self._means(self._rest, scaling))

    def with_gain(
        self, result: StepResults | SingleLabelTerms, n_labelled: int, scaling: Scaling
    ) -> StepResults | SingleLabelTerms:
        """The results with the gain since half of the labels, for the last step only."""
        if self._rest is None or "recent_gain" not in self._wanted.names:
            return result
        joined, means = StepResults.joined([result]), self._means(self._rest, scaling)
        gain = np.zeros(len(joined.kl_new_old))
        if len(gain):
            gain[-1] = self._recent.since_half(n_labelled, lambda past: float(np.mean((means - past) ** 2)))
        self._recent.keep(n_labelled, means)
        return replace(joined, measures={**joined.measures, "recent_gain": gain})

    @staticmethod
    def _means(rest: FollowedVariance, scaling: Scaling) -> Floats:
        """Predictions for the items that are tracked for the error of the unlabelled items."""
        return np.asarray(scaling.centre + scaling.scale * rest.mean)


def _of_step(name: str, values: Floats) -> Floats:
    """A step input of several labels that form one step: losses are averaged, others are those after the last label."""
    return np.array([values.mean()]) if name in _LOSSES else values[-1:]
