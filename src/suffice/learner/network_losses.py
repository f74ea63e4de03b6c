"""Losses of a network on labelled sets: the test set and the validation set."""

from typing import Any, Final

import numpy as np

from suffice.divergence import KLPair
from suffice.errors import InvalidValueError
from suffice.learner.backend import RunSettings, StepResults
from suffice.learner.network_chooser import TESTING, mask_seed
from suffice.models import DropoutNetwork
from suffice.models.predictive import quality
from suffice.numerics import Floats

_ESTIMATED: Final = {
    "dropout": "the divergence tells how far training has moved the weights, not what the labels tell",
    "last-layer": "the divergence is that of the last layer alone, and training moves the features before it too",
}


class NetworkLosses:
    """Measures a network on the test set and on the validation set, always with the same masks.

    Args:
        model: The network, which is trained elsewhere.
        settings: Test set and validation set.
    """

    def __init__(self, model: DropoutNetwork, settings: RunSettings) -> None:
        self._model, self._settings = model, settings
        self._test: tuple[Any, Any] | None = None

    def results(self, pair: KLPair, measures: dict[str, Floats]) -> StepResults:
        """Results of a round with the losses on the test set, if there is one."""
        estimated = _ESTIMATED[self._model.approximation]
        if self._settings.test is None:
            return StepResults(pair, np.zeros(0), estimated, measures)
        X, y = self._settings.test
        if self._test is None:
            self._test = self._model.machine_.tensor(X), np.asarray(y)
        is_known = np.isin(self._test[1], self._model.classes_)
        if not is_known.any():
            raise InvalidValueError(
                "no class of y_test has been labelled yet; give the model its classes, classes=[...]"
            )
        inputs = self._test[0] if is_known.all() else self._test[0][np.flatnonzero(is_known)]
        draws = self._model.log_draws(inputs, self._model.samples, mask_seed(self._model, TESTING))
        # The loss of an unknown class is not finite, so losses and calibration are measured on the other rows; rows of
        # unknown classes count as wrong predictions.
        measured = quality(draws, np.searchsorted(self._model.classes_, self._test[1][is_known]))
        accuracy = measured.accuracy * float(is_known.mean())
        measures |= {"accuracy": np.array([accuracy]), "calibration_error": np.array([measured.calibration_error])}
        return StepResults(
            pair,
            np.array([measured.error]),
            estimated,
            measures,
            predictive_error=np.array([measured.log_loss]),
            wrong_share=np.array([1.0 - accuracy]),
        )

    def on_validation(self) -> float:
        """The log loss on the validation set."""
        X, y = self._settings.step_inputs.validation or (None, None)
        is_known = np.isin(np.asarray(y), self._model.classes_)
        if not is_known.any():
            raise InvalidValueError("no class of validation has been labelled yet; give the model its classes")
        inputs = self._model.machine_.tensor(np.asarray(X)[is_known])
        draws = self._model.log_draws(inputs, self._model.samples, mask_seed(self._model, TESTING))
        return quality(draws, np.searchsorted(self._model.classes_, np.asarray(y)[is_known])).log_loss
