"""Predicted numbers of any fitted model for items of a pool, with their variances."""

from typing import Final, NamedTuple

import numpy as np

from suffice.acquisition import Indices
from suffice.errors import InvalidValueError
from suffice.learner.pool_model import PoolModel
from suffice.models.regression import GaussianRegressor
from suffice.numerics import Floats

# Number of items for which a kernel matrix is in memory at a time.
_ROWS: Final = 512


class NumberPredictions(NamedTuple):
    """Predicted numbers of some items.

    Attributes:
        mean: Predictions, ``N``.
        variance: Variances of the labels, ``N``.
        latent: Variances of the noise-free values, ``N``; None if the model does not tell noise apart.
    """

    mean: Floats
    variance: Floats
    latent: Floats | None


def number_predictions(source: PoolModel, items: Indices, label_variance: float | None = None) -> NumberPredictions:
    """Means and variances of items.

    Args:
        source: The model and its pool.
        items: The items.
        label_variance: The variance of every label, for a model that predicts no standard deviation.

    Raises:
        InvalidValueError: The model or the caller's function returned something else.
    """
    if not len(items):
        return NumberPredictions(np.zeros(0), np.zeros(0), np.zeros(0))
    if source.predict is not None:
        answer = source.answer(items)
        if label_variance is not None:
            answer = answer[0], np.full(len(items), label_variance**0.5)
    elif label_variance is not None:
        mean = np.asarray(source.model.predict(source.rows(items)), dtype=np.float64)
        answer = mean, np.full(len(items), label_variance**0.5)
    else:
        answer = source.model.predict(source.rows(items), return_std=True)
    who = "predict" if source.predict is not None else f"{source.name}.predict"
    mean, deviation = (np.asarray(values, dtype=np.float64) for values in answer)
    if mean.shape != (len(items),) or deviation.shape != (len(items),):
        raise InvalidValueError(
            f"{who} must return a mean and a standard deviation for each of {len(items)} items; their shapes "
            f"are {mean.shape} and {deviation.shape}"
        )
    if not np.isfinite(mean).all() or not np.isfinite(deviation).all() or (deviation < 0.0).any():
        raise InvalidValueError(f"{who} returned a number that is not finite, or a deviation below 0")
    variance = deviation**2
    latent = _latent_variance(source, items, variance) if label_variance is None else None
    return NumberPredictions(mean, variance, latent)


def _latent_variance(source: PoolModel, items: Indices, variance: Floats) -> Floats | None:
    """Variances of the noise-free values; None if the model does not provide them."""
    if source.predict is not None:
        return None
    last_step = source.last_step
    if isinstance(last_step, GaussianRegressor):
        return np.asarray(last_step.latent(source.transformed(items))[1])
    names = {(base.__module__.partition(".")[0], base.__name__) for base in type(last_step).__mro__}
    if names & {("sklearn", "BayesianRidge"), ("sklearn", "ARDRegression")}:
        return np.asarray(np.maximum(variance - 1.0 / last_step.alpha_, 0.0))
    if ("sklearn", "GaussianProcessRegressor") in names:
        X, kernel = np.asarray(source.transformed(items)), last_step.kernel_
        # A kernel omits white noise if it is called with two arguments, and includes it with one argument.
        parts = [X[k : k + _ROWS] for k in range(0, len(X), _ROWS)]
        white = np.concatenate([kernel.diag(part) - np.diag(kernel(part, part)) for part in parts])
        scale = float(np.squeeze(last_step._y_train_std)) ** 2
        return np.asarray(np.maximum(variance - white * scale, 0.0))
    return None
