"""Every model passes the conformance suite that is shipped for models."""

from typing import Any

import numpy as np
import pytest

from suffice.models import BayesianLogistic, BayesianRidge, GaussianProcess
from suffice.testing import MODEL_CHECKS, check_model

RNG = np.random.default_rng(0)
X = RNG.normal(size=(24, 3))
NUMBERS = X[:, 0] + 0.3 * RNG.normal(size=24)
TWO = np.where(X[:, 0] + 0.5 * RNG.normal(size=24) > 0, "yes", "no")
THREE = np.array(["a", "b", "c"])[np.digitize(X[:, 0] + 0.5 * RNG.normal(size=24), [-0.5, 0.5])]


@pytest.mark.parametrize("check", MODEL_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize(
    ("make", "y"),
    [
        (lambda: GaussianProcess(1.2, 0.1), NUMBERS),
        (lambda: GaussianProcess([1.0, 2.0, 3.0], 0.1), NUMBERS),
        (lambda: BayesianRidge(1.0, 5.0), NUMBERS),
        (lambda: BayesianRidge(1.0, 5.0, fit_intercept=True), NUMBERS),
        (lambda: BayesianLogistic(alpha=1.0), TWO),
        (lambda: BayesianLogistic(alpha=1.0, classes=["a", "b", "c"]), THREE),
    ],
    ids=["process", "process per feature", "ridge", "ridge with constant", "logistic", "many classes"],
)
def test_conformance(make: Any, y: Any, check: Any) -> None:
    check(make, X, y)


class Forgetful(BayesianRidge):
    """Forgets what it observed before."""

    def observe(self, X: Any, y: Any) -> "Forgetful":
        return self.fit(X, y)


class Certain(BayesianRidge):
    """Claims to know."""

    def predict(self, X: Any, return_std: bool = False) -> Any:
        mean = super().predict(X)
        return (mean, np.zeros(len(mean))) if return_std else mean


@pytest.mark.parametrize(("broken", "message"), [(Forgetful, "does not end where"), (Certain, "not above 0")])
def test_broken_models_are_caught(broken: Any, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check_model(lambda: broken(alpha=1.0, beta=5.0), X, NUMBERS)
