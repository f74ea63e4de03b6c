"""Predictions of any fitted model for items of any pool: class probabilities, committees, means and deviations."""

import inspect
from collections.abc import Sequence
from copy import copy
from typing import Any, Final

import numpy as np
from scipy.special import expit

from suffice.acquisition import Indices
from suffice.learner.class_predictions import ClassPredictions
from suffice.learner.model_posterior import ComparedPosteriors, KnownPosterior, ModelPosterior
from suffice.learner.number_predictions import NumberPredictions, number_predictions
from suffice.learner.pool_model import PoolModel, PoolRows, Predict, has_method, require_fitted
from suffice.numerics import Floats

# Number of items for which standard deviations are tried.
_TRIED_ITEMS: Final = 50

__all__ = ["ComparedPosteriors", "FittedModel", "KnownPosterior", "NumberPredictions", "PoolRows", "Predict"]


class FittedModel:
    """The interface of a monitor to a fitted model: its capabilities, and its predictions for items of a pool.

    Args:
        model: The model.
        predict: As for :class:`suffice.StopMonitor`.
        pool: The pool.

    Attributes:
        task: ``"classification"`` or ``"regression"``.
        gives_probabilities: Whether it predicts class probabilities.
        gives_deviation: Whether it predicts numbers with their standard deviations.
        label_variance: For a model of numbers without standard deviations: the variance of all labels, which stands for
            that of each label. None if it is not known.
        class_predictions: Its class probabilities.
        posterior: Its posterior.
    """

    def __init__(self, model: Any, predict: Predict | None, pool: PoolRows) -> None:
        self.label_variance: float | None = None
        source, first = PoolModel(model, predict, pool), np.array([0])
        require_fitted(model, lambda: model.predict(source.rows(first)) if predict is None else source.answer(first))
        self._connect(source)
        if predict is not None:
            answer = source.answer(np.array([0]))
            self.gives_probabilities = not isinstance(answer, tuple)
            self.task = "classification" if self.gives_probabilities else "regression"
            self.gives_deviation = self.task == "regression" and self._states_deviation()
            return
        self.gives_probabilities = has_method(model, "predict_proba")
        self.task = "classification" if self.gives_probabilities or _has_classes(model) else "regression"
        returned = self.task == "regression" and _returns_deviation(source.last_step)
        self.gives_deviation = returned and self._states_deviation()

    def _states_deviation(self) -> bool:
        """Whether a deviation is above 0 for some item; a model that states 0 for all of them knows none."""
        return bool((self.numbers(np.arange(min(_TRIED_ITEMS, len(self._source.pool)))).variance > 0.0).any())

    def _connect(self, source: PoolModel) -> None:
        """Take predictions and posterior from a model."""
        self._source = source
        self.class_predictions, self.posterior = ClassPredictions(source), ModelPosterior(source)

    def frozen(self) -> "FittedModel | None":
        """The same object with a copy of the model, which later fits do not change; None if it cannot be copied."""
        source = self._source.frozen()
        if source is None:
            return None
        twin = copy(self)
        twin._connect(source)
        return twin

    def with_model(self, model: Any) -> "FittedModel":
        """Another model in place of this one, with the same pool and function."""
        return FittedModel(model, self._source.predict, self._source.pool)

    @property
    def name(self) -> str:
        """What to call the model."""
        return self._source.name

    @property
    def asks_function(self) -> bool:
        """Whether the caller's function predicts."""
        return self._source.predict is not None

    @property
    def model(self) -> Any:
        """The model itself."""
        return self._source.model

    @property
    def last_step(self) -> Any:
        """The last step of a pipeline, or the model itself."""
        return self._source.last_step

    @property
    def transformers(self) -> list[Any]:
        """The steps of a pipeline before the last one."""
        return self._source.transformers

    def rows(self, items: Indices) -> Any:
        """Items in the form of the pool."""
        return self._source.rows(items)

    def transformed(self, items: Indices) -> Any:
        """Inputs of items for the last step of a pipeline, without the names of columns."""
        return self._source.transformed(items)

    def numbers(self, items: Indices) -> NumberPredictions:
        """Means and variances of items."""
        return number_predictions(self._source, items, self.label_variance)

    def doubts(self, items: Indices) -> Floats | None:
        r"""What stands for the probability of a wrong prediction of a classifier without probabilities.

        It is :math:`1 / (1 + e^d)`, where :math:`d` is the difference of the two largest values of the decision
        function, or its absolute value for two classes. None if there is no such function.
        """
        if self._source.predict is not None or not has_method(self.model, "decision_function"):
            return None
        if not len(items):
            return np.zeros(0)
        values = np.asarray(self.model.decision_function(self.rows(items)), dtype=np.float64)
        if values.ndim == 1:
            return np.asarray(expit(-np.abs(values)))
        ordered = np.sort(values, axis=1)
        return np.asarray(expit(ordered[:, -2] - ordered[:, -1]))

    def assume_label_variance(self, labels: Sequence[Any]) -> None:
        """Take the variance of all labels for that of each label, if the model predicts no standard deviation."""
        if self.task == "regression" and not self.gives_deviation:
            self.label_variance = float(np.var(labels)) or 1.0

    @property
    def gives_numbers(self) -> bool:
        """Whether it predicts numbers with variances, its own or that of all labels."""
        return self.gives_deviation or self.label_variance is not None

    def predicted(self, items: Indices, labels: Sequence[Any]) -> Any:
        """The predicted class or number of each item, in the user's classes and units.

        Args:
            items: The items.
            labels: All labels so far, which may name the classes.
        """
        if self._source.predict is None:
            return np.asarray(self._source.model.predict(self._source.rows(items)))
        if self.task == "regression":
            return self.numbers(items).mean
        names = self.class_predictions.classes(labels)
        codes = self.class_predictions.probabilities(items, range(len(names)), len(names)).argmax(axis=1)
        return np.array([names[code] for code in codes.tolist()])

    def answers(self, items: Indices) -> Any:
        """Result of the caller's function for items, as one array."""
        return np.asarray(self._source.answer(items))


def _has_classes(model: Any) -> bool:
    """Whether a model knows classes; those of some regressors are empty."""
    classes = getattr(model, "classes_", None)
    return classes is not None and np.size(np.asarray(classes, dtype=object)) > 0


def _returns_deviation(model: Any) -> bool:
    try:
        return "return_std" in inspect.signature(model.predict).parameters
    except (AttributeError, TypeError, ValueError):
        return False
