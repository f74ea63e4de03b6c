"""Inputs that numpy would turn into numbers which they are not are refused, by whatever way they come."""

import datetime
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import suffice as sf
from suffice.errors import InvalidValueError
from suffice.models import BayesianLogistic, BayesianRidge, GaussianProcess
from suffice.models.inputs import LARGEST, as_labels, require_numbers, targets

pl: Any = pytest.importorskip("polars", reason="polars is not installed")

X = np.random.default_rng(0).normal(size=(40, 2))
CLASSES, NUMBERS = np.where(X[:, 0] > 0.0, "a", "b"), X[:, 0].copy()
MASK = np.zeros(X.shape, dtype=bool)
MASK[3, 1] = True


def fitted(model: Any, inputs: Any, labels: Any) -> Any:
    return model.fit(inputs, labels)


def told(model: Any, inputs: Any, labels: Any) -> Any:
    learner = sf.ActiveLearner(model, inputs)
    first = learner.ask(20)
    return learner.tell(first, labels[first])


def simulated(model: Any, inputs: Any, labels: Any) -> Any:
    return sf.simulate(model, inputs, labels, steps=5)


WAYS = [fitted, told, simulated]
MODELS = [(BayesianLogistic, CLASSES), (BayesianRidge, NUMBERS), (GaussianProcess, NUMBERS)]
each_way = pytest.mark.parametrize("way", WAYS)
each_model = pytest.mark.parametrize(("model", "labels"), MODELS)


def dated() -> Any:
    return pd.DataFrame({"x": X[:, 0], "day": pd.date_range("2020-01-01", periods=len(X))})


NO_NUMBERS: dict[str, tuple[Any, str]] = {
    "masked": (np.ma.masked_array(X, MASK), "masked array with 1 masked values, the first in row 3; fill them"),
    "dates": (np.full(X.shape, "2020-01-01", dtype="M8[D]"), "holds dates; put what turns them into numbers"),
    "durations": (np.ones(X.shape).astype("m8[s]"), "holds durations"),
    "texts": (np.full(X.shape, "1"), "holds texts"),
    "bytes": (np.full(X.shape, b"1"), "holds texts"),
    "lists of texts": ([["1", "2"]] * len(X), "holds texts"),
    "objects": (np.full(X.shape, "1", dtype=object), "holds texts"),
    "dates as objects": (np.full(X.shape, datetime.date(2020, 1, 1), dtype=object), "holds dates"),
    "pandas dates": (dated(), "holds dates in column 'day'"),
    "pandas texts": (pd.DataFrame({"x": X[:, 0], "name": ["1"] * len(X)}), "holds texts in column 'name'"),
    "pandas categories": (pd.DataFrame({"c": pd.Categorical(["1"] * len(X))}), "holds texts in column 'c'"),
    "polars texts": (pl.DataFrame({"x": X[:, 0], "name": ["1"] * len(X)}), "holds texts"),
}


@pytest.mark.parametrize("name", NO_NUMBERS)
@each_model
@each_way
def test_what_is_no_number_is_refused(way: Callable[..., Any], model: Any, labels: Any, name: str) -> None:
    inputs, words = NO_NUMBERS[name]
    with pytest.raises(InvalidValueError, match=words):
        way(model(), inputs, labels)


@each_model
@each_way
def test_complex_numbers_are_refused(way: Callable[..., Any], model: Any, labels: Any) -> None:
    with pytest.raises(ValueError, match=r"[Cc]omplex"):
        way(model(), X + 1j, labels)


@pytest.mark.parametrize("value", [1.01 * LARGEST, 1e155, -1e200, 1e308])
@each_model
@each_way
def test_features_beyond_the_largest_are_refused(
    way: Callable[..., Any], model: Any, labels: Any, value: float
) -> None:
    inputs = X.copy()
    inputs[7, 1] = value
    with pytest.raises(
        InvalidValueError, match=r"which is beyond 1e\+100, at row 7, column 1. Give the column in other"
    ):
        way(model(), inputs, labels)


@pytest.mark.parametrize("model", [BayesianRidge, GaussianProcess])
@each_way
def test_labels_beyond_the_largest_are_refused(way: Callable[..., Any], model: Any) -> None:
    with pytest.raises(InvalidValueError, match="which is beyond 1e\\+100, at row 0; give the labels in other units"):
        way(model(), X, np.where(np.arange(len(X)) >= 0, 1e200, NUMBERS))


@each_model
@each_way
def test_masked_labels_are_refused(way: Callable[..., Any], model: Any, labels: Any) -> None:
    with pytest.raises(InvalidValueError, match=r"labels are masked in \d+ places; leave out the items"):
        way(model(), X, np.ma.masked_array(labels, np.arange(len(X)) >= 0))


@each_way
def test_the_largest_numbers_are_taken(way: Callable[..., Any]) -> None:
    way(BayesianRidge(), X, NUMBERS * LARGEST / np.abs(NUMBERS).max())


def test_numbers_in_any_form_are_taken() -> None:
    masked = np.ma.masked_array(X, np.zeros(X.shape, dtype=bool))
    for inputs in (X.tolist(), X.astype(object), X > 0.0, masked, pd.DataFrame(X), pl.DataFrame(X)):
        require_numbers(inputs)
        told(BayesianLogistic(), inputs, CLASSES)
    assert as_labels(np.ma.masked_array([1, 2], [False, False])).tolist() == [1, 2]
    assert targets([LARGEST, -LARGEST]).tolist() == [LARGEST, -LARGEST]


def test_other_models_in_a_learner_have_the_same_checks() -> None:
    for name, (inputs, words) in NO_NUMBERS.items():
        with pytest.raises(InvalidValueError, match=words):
            sf.ActiveLearner(LogisticRegression(), inputs)
        assert name
