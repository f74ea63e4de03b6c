"""Losses of cross-validation that are computed once for the same estimator and labels.

A decision compares the model with others, each of which is fitted to ten parts of the labels. That takes longer than
everything else in most tests of projects, and several objects in one test compare the same models on the same labels.
The losses depend on the arguments only, which a test of :mod:`tests.session.test_model_comparison` checks.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, Final

import joblib
from sklearn.base import clone

from suffice.numerics import Floats

#: What is replaced.
PLACE: Final = "suffice.session.model_comparison.cross_validated_losses"


def remembered(computed: Callable[..., Floats]) -> Callable[..., Floats]:
    """Return a function with the same results that computes them once for equal arguments."""
    found: dict[str, Floats] = {}

    @wraps(computed)
    def losses(estimator: Any, X: Any, labels: Any, **options: Any) -> Floats:
        key = joblib.hash((clone(estimator), X, labels, options))
        assert key is not None
        if key not in found:
            found[key] = computed(estimator, X, labels, **options)
        return found[key].copy()

    return losses
