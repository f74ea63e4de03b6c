"""The step inputs of logistic regression, other than divergences: computed only if they are wanted."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from suffice.acquisition import Indices
from suffice.criteria import relevance_facts
from suffice.learner.backend import StepResults
from suffice.learner.class_points import ClassPoints
from suffice.learner.step_inputs import (
    RELEVANCE_FIELDS,
    ClassInputCollector,
    LaplacePredictor,
    StepInputs,
)
from suffice.models.laplace import divergence_from_prior
from suffice.session.recorded_steps import stacked


class ClassEvidence:
    """Computes the wanted step inputs after each step, and keeps those of past steps.

    Step inputs are not computed again, because that would read the whole pool once for each past step.

    Args:
        wanted: The wanted fields.
        size: Number of items of the pool.

    Attributes:
        collector: Computes the fields that any classifier can provide.
    """

    def __init__(self, wanted: StepInputs, size: int) -> None:
        self._wanted = wanted
        self.collector = ClassInputCollector(wanted, size)
        self._past: list[dict[str, Any]] = []

    @property
    def steps(self) -> int:
        """Number of past steps."""
        return len(self._past)

    def added(  # noqa: PLR0913 - the parts of a model, all but two by keyword
        self,
        result: StepResults,
        steps: int,
        *,
        predictor: LaplacePredictor,
        codes: Sequence[int],
        points: ClassPoints,
        labelled: Indices,
    ) -> StepResults:
        """The results with the step inputs of the last steps, which have just been learned.

        Args:
            result: Divergences and losses.
            steps: Number of new steps.
            predictor: Predictions of the current model.
            codes: Columns of the labels of the last step.
            points: Features, pool and validation set.
            labelled: All labelled items.
        """
        names = self._wanted.names
        posterior = predictor.posterior
        fields = self.collector.after(predictor, codes)
        if points.validation is not None:
            fields["validation_error"] = points.validation.losses(posterior).log_loss
        if self._wanted.about({"kl_prior", "train_error"}):
            fields |= _training_inputs(posterior)
        if self._wanted.about(RELEVANCE_FIELDS):
            is_labelled = np.zeros(len(points.features), dtype=bool)
            is_labelled[labelled] = True
            fields |= relevance_facts(points.relevance_of_pool(posterior), is_labelled)
        self._past.extend([{name: value for name, value in fields.items() if name in names}] * steps)
        return self.with_past(result)

    def with_past(self, result: StepResults) -> StepResults:
        """The results with the inputs of the last steps as they were computed at the time."""
        return replace(result, measures=stacked(self._past[-len(result.kl_new_old) :]))


def _training_inputs(posterior: Any) -> dict[str, float]:
    """Divergence from the prior, and the error of a label drawn from the prediction, for the labelled items."""
    features, codes = posterior.labelled()
    rows = np.arange(len(codes))
    p = LaplacePredictor(posterior, features, list(range(posterior.n_classes))).probabilities(rows)
    return {"kl_prior": divergence_from_prior(posterior), "train_error": float(1.0 - p[rows, codes].mean())}
