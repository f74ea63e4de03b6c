"""Predictions for labels by models that have not learned them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np

from suffice.models.logistic import BayesianLogistic
from suffice.models.predictive import guessed_places, guesses, log_probabilities
from suffice.models.regression import GaussianRegressor
from suffice.numerics import Floats
from suffice.saved_state import decoded_array, encoded_array


class LeftOut(NamedTuple):
    """Losses of some labels under a model without each of them.

    Attributes:
        losses: 0 or 1 for classes, squared residuals for numbers.
        expected: What the model expects of them.
        comparable: Cross entropies for classes, squared residuals for numbers.
    """

    losses: Floats
    expected: Floats
    comparable: Floats


@dataclass(frozen=True, eq=False)
class StoredLeftOut:
    """Predictions for some labels of a model, each left out of it, in place of the model itself.

    Attributes:
        places: Positions of the labels in the order in which the model has learned them, rising.
        guessed: Those of the positions that correct the confidence of a classifier.
        codes: For classes, the column of each label in ``logs``.
        logs: For classes, log probabilities without the label, ``n x K``.
        classes: The class of each column.
        squares: For numbers, the squared residual of each label.
        variances: For numbers, the variance that the model expects of each label.
    """

    places: Any
    guessed: Any
    codes: Any = None
    logs: Any = None
    classes: tuple[Any, ...] = ()
    squares: Any = None
    variances: Any = None

    @staticmethod
    def of_model(model: Any, places: Any) -> "StoredLeftOut | None":
        """The predictions of a model for these labels and those that it needs itself; None if it leaves none out."""
        if isinstance(model, GaussianRegressor):
            every = np.arange(model.n_labels_)
            losses = left_out(model, every)
            assert losses is not None
            return StoredLeftOut(every, every[:0], squares=losses.losses, variances=losses.expected)
        if isinstance(model, BayesianLogistic):
            guessed = guessed_places(model.state_)
            stored = np.union1d(guessed, places).astype(np.intp)
            logits, codes = guesses(model.state_, stored)
            logs, classes = log_probabilities(logits), tuple(model.classes_.tolist())
            return StoredLeftOut(stored, guessed, codes, logs, classes)
        return None

    def state_dict(self) -> dict[str, Any]:
        """The predictions as JSON values."""
        return {spec.name: encoded_array(getattr(self, spec.name)) for spec in fields(self)} | {
            "classes": list(self.classes)
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> "StoredLeftOut":
        """Restore :meth:`state_dict`."""
        values = {name: decoded_array(value) for name, value in state.items()}
        return cls(**{**values, "classes": tuple(state["classes"])})


def leaves_out(model: Any) -> bool:
    """Whether labels can be left out of a model in closed form."""
    return isinstance(model, GaussianRegressor | BayesianLogistic | StoredLeftOut)


def has_learned(model: Any, X: Floats, y: Any) -> bool:
    """Whether a model that leaves labels out has learned exactly these labels, in this order.

    Args:
        model: A fitted Gaussian process, ridge or logistic regression of suffice.
        X: Inputs, ``n x D``.
        y: Labels.
    """
    if isinstance(model, GaussianRegressor):
        same = model.X_.shape == X.shape and np.allclose(model.X_, X)
        return bool(same and np.allclose(model.y_, np.asarray(y, dtype=np.float64)))
    rows, codes = model.state_.labelled()
    features = model.features(X)
    same = rows.shape == features.shape and np.allclose(rows, features)
    return bool(same and np.array_equal(np.asarray(model.classes_)[codes], np.asarray(y)))


def left_out_logs(model: Any, places: Any) -> tuple[Floats, Any]:
    """Log probabilities of some labels of a classifier, each left out of it, and their columns."""
    if isinstance(model, StoredLeftOut):
        rows = np.searchsorted(model.places, places)
        return model.logs[rows], model.codes[rows]
    logits, codes = guesses(model.state_, places)
    return log_probabilities(logits), codes


def left_out(model: Any, places: Any) -> LeftOut | None:
    """Losses of the labels at some positions, each left out of a model; None if the model cannot leave labels out."""
    if not leaves_out(model):
        return None
    if isinstance(model, StoredLeftOut) and model.logs is None:
        rows = np.searchsorted(model.places, places)
        return LeftOut(model.squares[rows], model.variances[rows], model.squares[rows])
    if isinstance(model, GaussianRegressor):
        mean, variance = model.prior_.left_out(model.features(model.X_), model.y_)
        squares = (model.y_ - mean)[places] ** 2
        return LeftOut(squares, variance[places], squares)
    logs, codes = left_out_logs(model, places)
    p = np.exp(logs)
    wrong = (p.argmax(axis=1) != codes).astype(np.float64)
    return LeftOut(wrong, 1.0 - p.max(axis=1), np.asarray(-logs[np.arange(len(codes)), codes]))


def left_out_losses(model: Any) -> Floats | None:
    """Losses of all labels of a fitted model, each left out of it: 0 or 1 for classes, squared residuals for numbers.

    Returns:
        The losses in the order in which the labels were learned; None for a model that cannot leave labels out.
    """
    if not isinstance(model, GaussianRegressor | BayesianLogistic):
        return None
    losses = left_out(model, np.arange(model.n_labels_))
    return None if losses is None else losses.losses


def leaves_classes_out(model: Any) -> bool:
    """Whether a model leaves labels out and predicts classes."""
    return isinstance(model, BayesianLogistic) or (isinstance(model, StoredLeftOut) and model.logs is not None)


class HeldOutPrediction(NamedTuple):
    """Prediction for an item by a model that has not learned its label.

    Attributes:
        label: The class or the number.
        expected: The loss that the model expected: the probability of all other classes, the variance of the label.
            None if the model does not provide it.
        logs: Log probability of each class; None for numbers, and if the model does not provide them.
        n_labels: Number of labels that the model had learned; 0 if it is not known.
    """

    label: Any
    expected: float | None
    logs: Mapping[Any, float] | None = None
    n_labels: int = 0


def class_predictions(p: Floats, classes: Sequence[Any], n_labels: int = 0) -> list[HeldOutPrediction]:
    """Predictions from class probabilities, ``n x K``, with the class of each column."""
    logs = np.log(np.maximum(p, np.finfo(np.float64).tiny))
    return [
        HeldOutPrediction(
            classes[int(row.argmax())], float(1.0 - row.max()), dict(zip(classes, log, strict=True)), n_labels
        )
        for row, log in zip(p, logs.tolist(), strict=True)
    ]


def number_predictions(mean: Floats, variance: Floats | None, n_labels: int = 0) -> list[HeldOutPrediction]:
    """Predictions from means and variances of labels, ``n`` each."""
    variances = [None] * len(mean) if variance is None else variance.tolist()
    return [HeldOutPrediction(m, v, None, n_labels) for m, v in zip(mean.tolist(), variances, strict=True)]


def predictions_of(model: Any, X: Any, task: str, n_labels: int = 0) -> list[HeldOutPrediction]:
    """Predictions of a fitted model with ``predict_proba`` or ``predict(X, return_std=True)``."""
    if task == "classification":
        return class_predictions(model.predict_proba(X), model.classes_.tolist(), n_labels)
    mean, deviation = model.predict(X, return_std=True)
    variance = np.asarray(deviation, dtype=np.float64) ** 2
    return number_predictions(np.asarray(mean, dtype=np.float64), variance, n_labels)
