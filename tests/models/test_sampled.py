"""Predictions that come as draws, judged: numbers computed by hand, arrays and tensors alike."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import log_softmax, logsumexp

from suffice.models.predictive import calibration_error, quality
from suffice.numerics import Floats


def draws(seed: int, rows: int, k: int, classes: int, scale: float = 2.0) -> tuple[Floats, Any]:
    rng = np.random.default_rng(seed)
    logits = scale * rng.normal(size=(rows, k, classes))
    return np.asarray(log_softmax(logits, axis=2)), rng.integers(classes, size=rows)


def test_two_rows_by_hand() -> None:
    probabilities = np.array([[[0.9, 0.1], [0.7, 0.3]], [[0.4, 0.6], [0.2, 0.8]]])
    found = quality(np.log(probabilities), [0, 0])
    assert found.error == pytest.approx(-np.mean(np.log([0.9, 0.7, 0.4, 0.2])), rel=1e-12)
    assert found.accuracy == 0.5
    # Confidences 0.8 (right) and 0.7 (wrong) lie in bins of their own.
    assert found.calibration_error == pytest.approx((0.2 + 0.7) / 2, rel=1e-12)


def test_the_class_is_that_of_the_averaged_prediction() -> None:
    # Two of three draws say class 1, barely; the average says class 0.
    probabilities = np.array([[[0.9, 0.1], [0.49, 0.51], [0.49, 0.51]]])
    assert quality(np.log(probabilities), [0]).accuracy == 1.0
    assert quality(np.log(probabilities), [1]).accuracy == 0.0


def test_calibration_by_hand() -> None:
    confidence = np.array([0.95, 0.95, 0.95, 0.95, 0.55, 0.55])
    right = np.array([True, True, True, False, True, False])
    assert calibration_error(confidence, right) == pytest.approx((4 * 0.2 + 2 * 0.05) / 6, rel=1e-12)
    assert calibration_error(np.array([1.0, 1.0]), np.array([True, True])) == 0.0
    assert calibration_error(np.array([1.0, 0.94]), np.array([False, True])) == pytest.approx((1.0 - 0.06) / 2)


def test_bins_are_fifteenths() -> None:
    # In one bin, what is too sure and what is not sure enough cancel; in two, they add up.
    right = np.array([True, False])
    assert calibration_error(np.array([0.601, 0.659]), right) == pytest.approx(abs(1.0 - 0.601 - 0.659) / 2)
    assert calibration_error(np.array([0.599, 0.659]), right) == pytest.approx((0.401 + 0.659) / 2)
    assert calibration_error(np.array([0.61, 0.68]), right) == pytest.approx((0.39 + 0.68) / 2)
    assert calibration_error(np.array([0.21, 0.259]), right) == pytest.approx(abs(1.0 - 0.21 - 0.259) / 2)


@given(st.integers(0, 10_000), st.integers(1, 40), st.integers(1, 6), st.integers(1, 5))
def test_properties(seed: int, rows: int, k: int, classes: int) -> None:
    log_draws, codes = draws(seed, rows, k, classes)
    found = quality(log_draws, codes)
    averaged = logsumexp(log_draws, axis=1) - np.log(k)
    of_average = -float(averaged[np.arange(rows), codes].mean())
    # Jensen: the mean of the losses is no lower than the loss of the mean.
    assert found.error >= of_average - 1e-12
    assert found.error == pytest.approx(-np.mean([log_draws[i, :, c] for i, c in enumerate(codes)]), abs=1e-12)
    assert 0.0 <= found.calibration_error <= 1.0
    assert found.accuracy * rows == pytest.approx(np.sum(averaged.argmax(axis=1) == codes))
    # The order of rows and of draws does not matter.
    order = np.random.default_rng(seed).permutation(rows)
    assert quality(log_draws[order], codes[order]) == pytest.approx(found, abs=1e-12)
    assert quality(log_draws[:, ::-1], codes) == pytest.approx(found, abs=1e-12)


@given(st.integers(0, 10_000), st.integers(0, 10_000))
def test_the_calibration_error_is_at_least_the_overall_gap(seed: int, other: int) -> None:
    rng = np.random.default_rng([seed, other])
    confidence = rng.random(50)
    right = rng.random(50) < confidence
    assert calibration_error(confidence, right) >= abs(right.mean() - confidence.mean()) - 1e-12


def test_one_draw_has_the_loss_of_its_prediction() -> None:
    log_draws, codes = draws(3, 30, 1, 4)
    assert quality(log_draws, codes).error == pytest.approx(-log_draws[np.arange(30), 0, codes].mean())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_tensors_are_judged_like_arrays(dtype: torch.dtype) -> None:
    log_draws, codes = draws(5, 200, 7, 10)
    expected = quality(log_draws, codes)
    found = quality(torch.tensor(log_draws, dtype=dtype), codes)
    assert found.accuracy == expected.accuracy
    assert found == pytest.approx(expected, rel=1e-5 if dtype == torch.float32 else 1e-12)
    assert all(type(value) is float for value in (*found, *expected))


def test_a_prediction_that_is_sure_and_wrong_costs_without_end() -> None:
    with np.errstate(divide="ignore"):
        log_draws = np.log(np.array([[[0.0, 1.0]], [[1.0, 0.0]]]))
    found = quality(log_draws, [0, 0])
    assert (found.error, found.accuracy) == (np.inf, 0.5)
