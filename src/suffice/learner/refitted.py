"""Estimators that are fitted again to other labels."""

import warnings
from typing import Any, Final

import numpy as np
from sklearn.base import clone
from sklearn.dummy import DummyClassifier

from suffice.checks.standing_finish import spacing

# A model that is fitted again is fitted as often as estimates are made at this many times the labels.
_FIT_SPACING: Final = 4


def can_be_fitted_again(model: Any) -> bool:
    """Whether a model is an estimator whose settings can be copied and that can be fitted."""
    return hasattr(model, "fit") and hasattr(model, "get_params") and not isinstance(model, type)


def refitted(model: Any, X: Any, labels: Any, *, classes: bool) -> Any:
    """A copy of an estimator with the same settings, fitted to some labels.

    Many classifiers cannot be fitted to labels of one class, or predict probabilities of two classes then, as gradient
    boosting of scikit-learn does. That class is then predicted for every item.

    Args:
        model: The estimator, fitted or not; it is not changed.
        X: Inputs in the form that the estimator takes.
        labels: Their labels.
        classes: Whether labels are classes.
    """
    with warnings.catch_warnings():
        # With few labels many estimators warn at every step, for example about convergence or classes with few labels.
        warnings.simplefilter("ignore")
        if classes and len(np.unique(labels)) == 1:
            try:
                fitted = clone(model).fit(X, labels)
            except ValueError:
                fitted = None
            if fitted is None or _predicts_more_classes(fitted, X):
                return DummyClassifier(strategy="prior").fit(np.zeros((len(labels), 1)), labels)
            return fitted
        return clone(model).fit(X, labels)


def _predicts_more_classes(fitted: Any, X: Any) -> bool:
    """Whether a classifier that knows one class predicts probabilities of more."""
    predict = getattr(fitted, "predict_proba", None)
    return predict is not None and np.shape(predict(X[:1]))[-1] != 1


def fit_due(n: int) -> bool:
    """Whether a model that is fitted again to all labels is fitted at a number of labels.

    It is fitted every 5 labels up to 100, every 10 up to 200, and so on. So its results depend on the labels alone, and
    the number of fits grows by 10 for each doubling of the labels.

    Args:
        n: Number of labels.

    Examples:
        >>> [n for n in range(85, 151) if fit_due(n)]
        [85, 90, 95, 100, 110, 120, 130, 140, 150]
    """
    return n % spacing(_FIT_SPACING * n) == 0
