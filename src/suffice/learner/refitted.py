"""Estimators that are fitted again to other labels."""

import warnings
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.dummy import DummyClassifier


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
