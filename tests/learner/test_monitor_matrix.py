"""StopMonitor beside every classifier and regressor of scikit-learn: a verdict, an estimate, a decision and a check."""

import json
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import all_estimators

import suffice as sf
from suffice.errors import MissingInputError

_RNG = np.random.default_rng(0)
# Whole numbers, for categorical naive Bayes. Every one occurs among the first labels.
X = _RNG.integers(0, 4, size=(160, 4)).astype(float)
CLASSES = (X[:, 0] + X[:, 1] + _RNG.normal(size=160) > 3.0).astype(int)
# Above 0, for the regressions of counts and times.
NUMBERS = 5.0 + X[:, 0] + 0.5 * X[:, 1] + 0.3 * _RNG.normal(size=160)
ROUNDS = (40, 50, 60)

#: What an estimator needs besides its defaults, to be fitted to these data at all, or fast.
SETTINGS: dict[str, dict[str, Any]] = {
    "FixedThresholdClassifier": {"estimator": LogisticRegression()},
    "OneVsOneClassifier": {"estimator": LogisticRegression()},
    "OneVsRestClassifier": {"estimator": LogisticRegression()},
    "OutputCodeClassifier": {"estimator": LogisticRegression()},
    "SelfTrainingClassifier": {"estimator": LogisticRegression()},
    "TunedThresholdClassifierCV": {"estimator": LogisticRegression(), "thresholds": 10, "cv": 2},
    "StackingClassifier": {"estimators": [("a", LogisticRegression()), ("b", DecisionTreeClassifier())]},
    "VotingClassifier": {"estimators": [("a", LogisticRegression()), ("b", DecisionTreeClassifier())]},
    "StackingRegressor": {"estimators": [("a", LinearRegression())]},
    "VotingRegressor": {"estimators": [("a", LinearRegression())]},
    "RadiusNeighborsClassifier": {"radius": 9.0},
    "RadiusNeighborsRegressor": {"radius": 9.0},
    "CCA": {"n_components": 1},
    "PLSCanonical": {"n_components": 1},
    "QuantileRegressor": {"alpha": 0.01},
    "LogisticRegressionCV": {"Cs": 2, "cv": 2},
    **{f"HistGradientBoosting{kind}": {"max_iter": 10} for kind in ("Classifier", "Regressor")},
    **{
        f"{family}{kind}": {"n_estimators": 10}
        for family in ("AdaBoost", "ExtraTrees", "GradientBoosting", "RandomForest")
        for kind in ("Classifier", "Regressor")
    },
}
#: They take several outputs or one input only.
OTHER_DATA = {
    *("MultiOutputClassifier", "ClassifierChain", "MultiOutputRegressor", "RegressorChain", "IsotonicRegression"),
    *("MultiTaskElasticNet", "MultiTaskElasticNetCV", "MultiTaskLasso", "MultiTaskLassoCV"),
}
FAST = {
    *("GaussianNB", "LinearSVC", "SVC", "RidgeClassifier", "KNeighborsClassifier", "Perceptron", "NearestCentroid"),
    *("LinearRegression", "Ridge", "Lasso", "ElasticNet", "HuberRegressor", "KernelRidge", "SVR", "NuSVR", "LinearSVR"),
    *("KNeighborsRegressor", "DecisionTreeRegressor", "ExtraTreeRegressor", "SGDRegressor", "PLSRegression", "Lars"),
    *("DummyRegressor", "BayesianRidge", "TransformedTargetRegressor"),
}
HAVE_VARIANCE = {"ARDRegression", "BayesianRidge", "GaussianProcessRegressor"}


def every(kind: str) -> list[Any]:
    found = [(name, made) for name, made in all_estimators(kind) if name not in OTHER_DATA and hasattr(made, "predict")]
    return [pytest.param(*each, id=each[0], marks=() if each[0] in FAST else pytest.mark.slow) for each in found]


@pytest.fixture(autouse=True)
def _no_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def followed(model: Any, labels: Any, rule: sf.Criterion) -> sf.StopMonitor:
    monitor = sf.StopMonitor(X, rule, seed=0)
    for n in ROUNDS:
        monitor.update(clone(model).fit(X[:n], labels[:n]), range(n), labels[:n], random=range(n))
    return monitor


def works(monitor: sf.StopMonitor, labels: Any, tolerance: float | None) -> None:
    """The estimate, the decision, the check and the saved state of a monitor."""
    estimate = monitor.error_estimate()
    # Refits that are worse than the models of the user are not used; the labels of the first update are not, then.
    assert estimate.random_labels in {ROUNDS[-1], ROUNDS[-1] - ROUNDS[0]}
    assert estimate.low < estimate.value < estimate.high
    again = sf.StopMonitor.from_state(json.loads(json.dumps(monitor.state_dict())), X)
    assert str(again.decision()) == str(monitor.decision())
    check = monitor.check(30, tolerance=tolerance)
    assert check.tell(labels[check.indices]) is not None


@pytest.mark.parametrize(("name", "made"), every("classifier"))
def test_every_classifier(name: str, made: Any) -> None:
    model = made(**SETTINGS.get(name, {}))
    if hasattr(clone(model).fit(X, CLASSES), "predict_proba"):
        assert followed(model, CLASSES, sf.LabelWorth()).rule_verdict.ready
    else:
        with pytest.raises(MissingInputError, match=r"^LabelWorth requires .*Rules that work: .*Budget"):
            followed(model, CLASSES, sf.LabelWorth())
    works(followed(model, CLASSES, sf.Budget(100)), CLASSES, None)


@pytest.mark.parametrize(("name", "made"), every("regressor"))
def test_every_regressor(name: str, made: Any) -> None:
    model = made(**SETTINGS.get(name, {}))
    monitor = followed(model, NUMBERS, sf.LabelWorth())
    assert monitor.rule_verdict.ready
    works(monitor, NUMBERS, 1.0)
    if name in HAVE_VARIANCE:
        assert followed(model, NUMBERS, sf.MaxVariance(0.1)).rule_verdict.ready
        return
    with pytest.raises(
        MissingInputError, match=r"^MaxVariance requires pool_variance: .*Rules that work: .*LabelWorth"
    ):
        followed(model, NUMBERS, sf.MaxVariance(0.1))
    with pytest.raises(MissingInputError, match=r"^ErrorStability requires kl_new_old, kl_old_new: .*Rules that work"):
        followed(model, NUMBERS, sf.ErrorStability(0.5))


def test_a_pipeline_that_only_predicts_numbers() -> None:
    monitor = followed(make_pipeline(StandardScaler(), LinearRegression()), NUMBERS, sf.LabelWorth())
    works(monitor, NUMBERS, 1.0)
    # The residuals of random labels: about the true mean squared error.
    model = LinearRegression().fit(X[:60], NUMBERS[:60])
    truth = float(np.mean((model.predict(X[60:]) - NUMBERS[60:]) ** 2))
    estimate = monitor.error_estimate()
    assert estimate.low < truth < 2.0 * estimate.high


@pytest.mark.slow
def test_the_interval_for_numbers_without_deviations_holds_the_truth() -> None:
    inside = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        inputs = rng.normal(size=(600, 3))
        labels = inputs[:, 0] * inputs[:, 1] + rng.choice([0.2, 1.0]) * rng.standard_t(5, size=600)
        monitor = sf.StopMonitor(inputs, sf.Budget(999))
        for n in (20, 40, 60, 80):
            model = LinearRegression().fit(inputs[:n], labels[:n])
            monitor.update(model, range(n), labels[:n], random=range(n))
        estimate = monitor.error_estimate()
        truth = float(np.mean((model.predict(inputs[80:]) - labels[80:]) ** 2))
        inside.append(estimate.low <= truth <= estimate.high)
    assert 0.8 <= np.mean(inside) <= 1.0
