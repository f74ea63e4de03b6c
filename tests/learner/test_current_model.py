"""The model of a learner without a fit: the same predictions, and nothing is learned for it."""

from typing import Any

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from suffice import ActiveLearner
from suffice.errors import SufficeError
from suffice.models import BayesianLogistic, BayesianRidge, GaussianProcess

MODELS: dict[str, Any] = {
    "process": GaussianProcess(),
    "ridge in a pipeline": make_pipeline(StandardScaler(), BayesianRidge()),
    "two classes": BayesianLogistic(alpha=1.0),
    "three classes": BayesianLogistic(),
}


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", list(MODELS))
def test_it_predicts_what_the_fitted_model_predicts(name: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y: Any = X[:, 0] - X[:, 1] + 0.1 * rng.normal(size=60)
    if "classes" in name:
        y = np.digitize(y, [0.0] if name == "two classes" else [-0.5, 0.5])
    learner = ActiveLearner(MODELS[name], X, initial=8)
    with pytest.raises(SufficeError, match="the model has no label yet: 8 are wanted"):
        _ = learner.current_model
    while len(learner.labelled) < 30:
        i = learner.ask()
        learner.tell(i, y[i])
        if len(learner.labelled) < 8:
            continue
        current, fitted = learner.current_model, learner.model
        found, expected = current.predict(X, return_std=True), fitted.predict(X, return_std=True)
        np.testing.assert_allclose(found[0], expected[0], rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(found[1], expected[1], rtol=1e-6)
        assert type(current) is type(fitted)
        current, fitted = (each[-1] if hasattr(each, "steps") else each for each in (current, fitted))
        assert current.get_params().keys() == fitted.get_params().keys()
        assert current.learned_at_ == fitted.learned_at_
        assert current.n_labels_ == len(learner.labelled)
        np.testing.assert_array_equal(current.y_, fitted.y_)
