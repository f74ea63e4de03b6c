"""Models by name: what they are made of, what they are called, and what does not go together."""

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from suffice import models
from suffice.cli.rule_options import ModelName
from suffice.errors import InvalidValueError
from suffice.models.factory import MODEL_FAMILIES, ModelTask, basis_size, make_model, model_description, model_names


def test_names_and_tasks() -> None:
    assert list(MODEL_FAMILIES) == list(ModelName)
    assert model_names("regression") == ["gp", "ridge", "forest", "boosting"]
    assert model_names("classification") == ["logistic", "kernel", "components", "dropout", "forest", "boosting"]
    assert [name for name, family in MODEL_FAMILIES.items() if not family.interactive] == ["dropout"]
    assert [name for name, family in MODEL_FAMILIES.items() if family.estimator] == ["forest", "boosting"]


@pytest.mark.parametrize(
    ("name", "options", "shown"),
    [
        ("gp", {}, "GaussianProcess()"),
        ("gp", {"basis": 0}, "GaussianProcess()"),
        ("ridge", {"basis": 0}, "BayesianRidge()"),
        ("logistic", {}, "BayesianLogistic(alpha=1.0)"),
        ("logistic", {"classes": ("b", "a")}, "BayesianLogistic(alpha=1.0, classes=['b', 'a'])"),
    ],
)
def test_models_without_a_basis(name: str, options: dict[str, Any], shown: str) -> None:
    assert repr(make_model(name, **options)) == shown


@pytest.mark.parametrize(("name", "basis", "size"), [("ridge", None, 10), ("ridge", 4, 4), ("logistic", 3, 3)])
def test_models_on_a_basis(name: str, basis: int | None, size: int) -> None:
    transformer, model = (step for _, step in make_model(name, basis=basis).steps)
    assert (type(transformer).__name__, transformer.n_centres) == ("RadialBasis", size)
    # The basis holds the constant of ridge regression already.
    assert model.fit_intercept == (name == "logistic")


@pytest.mark.parametrize(
    ("name", "task", "kind"),
    [
        ("forest", None, "ExtraTreesClassifier"),
        ("forest", "classification", "ExtraTreesClassifier"),
        ("forest", "regression", "ExtraTreesRegressor"),
        ("boosting", None, "HistGradientBoostingClassifier"),
        ("boosting", "regression", "HistGradientBoostingRegressor"),
    ],
)
def test_trees_for_both_tasks(name: str, task: ModelTask | None, kind: str) -> None:
    made = make_model(name, task=task, seed=7)
    assert type(made).__name__ == kind
    assert made.random_state == 7
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    y = X[:, 0] if task == "regression" else np.where(X[:, 0] > 0.0, "yes", "no")
    once, again = (make_model(name, task=task, seed=7).fit(X, y).predict(X).tolist() for _ in range(2))
    assert once == again


def test_the_network() -> None:
    pytest.importorskip("torch")
    network = make_model("dropout", classes=["a", "b"], seed=7)
    changed = {"classes": ["a", "b"], "samples": 10, "device": "cpu", "seed": 7}
    assert network.get_params() == type(network)().get_params() | changed


def test_descriptions() -> None:
    assert model_description("gp") == "a Gaussian process"
    assert model_description("ridge") == "Bayesian ridge regression on 10 radial basis functions per feature"
    assert model_description("ridge", 0) == "Bayesian ridge regression"
    assert model_description("logistic", 1) == "Bayesian logistic regression on 1 radial basis function per feature"
    assert model_description("dropout") == "a network with dropout"
    assert [basis_size(name) for name in MODEL_FAMILIES] == [0, 10, 0, 0, 0, 0, 0, 0]


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        (
            "tree",
            {},
            "model must be one of gp, ridge, logistic, kernel, components, dropout, forest, boosting, not 'tree'",
        ),
        ("gp", {"basis": 3}, "basis goes with the model ridge or logistic, and a Gaussian process takes none"),
        ("dropout", {"basis": 3}, "a network with dropout takes none"),
        ("ridge", {"basis": -1}, "basis must be a whole number, 0 or more, not -1"),
        ("ridge", {"classes": ["a", "b"]}, "classes go with a classifier, and the model ridge is for regression"),
        ("forest", {"classes": ["a"], "task": "regression"}, "classes go with a classifier"),
        ("gp", {"task": "classification"}, "the model gp is for regression, not for classification; use logistic or"),
    ],
)
def test_what_does_not_go_together(name: str, options: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidValueError, match=said):
        make_model(name, **options)


def test_names_are_known_without_scikit_learn() -> None:
    code = (
        "import sys; from suffice.models.factory import model_description; import suffice.project; "
        "model_description('ridge'); import suffice.models; assert 'BayesianRidge' in dir(suffice.models); "
        "print(sorted({'sklearn', 'torch', 'suffice.criteria.step_and_verdict'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    # `import suffice` brings the criteria.
    assert done.stdout.strip() == "['suffice.criteria.step_and_verdict']"
    with pytest.raises(AttributeError, match="no attribute 'Forest'"):
        _ = models.Forest
