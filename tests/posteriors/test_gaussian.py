import math
from typing import Any

import numpy as np
import pytest

from suffice.errors import InvalidTypeError, InvalidValueError, NotPositiveDefiniteError
from suffice.posteriors import Gaussian

COVARIANCE = np.array([[2.0, 0.6], [0.6, 1.0]])


def test_one_parameter_may_be_given_as_numbers() -> None:
    assert Gaussian(0.5, 2.0).dimension == 1
    assert Gaussian(0.5, diagonal=2.0).dimension == 1


def test_it_is_a_value() -> None:
    mean = np.zeros(2)
    posterior = Gaussian(mean, COVARIANCE)
    mean[0] = 9.0
    assert posterior.mean[0] == 0.0
    with pytest.raises(ValueError, match="read-only"):
        posterior.mean[0] = 1.0
    with pytest.raises(ValueError, match="read-only"):
        posterior.factor[0, 0] = 1.0
    with pytest.raises(AttributeError):
        posterior.mean = mean  # type: ignore[misc]


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({}, InvalidValueError, "exactly one of .*; none came"),
        ({"covariance": COVARIANCE, "precision": COVARIANCE}, InvalidValueError, "covariance and precision came"),
        ({"covariance": np.eye(3)}, InvalidValueError, r"covariance must have shape \(2, 2\)"),
        ({"covariance": [[1.0, 0.9], [0.1, 1.0]]}, InvalidValueError, r"not symmetric: entry \(0, 1\) is 0.9"),
        ({"covariance": [[1.0, math.nan], [0.1, 1.0]]}, InvalidValueError, r"nan at index \(0, 1\)"),
        ({"covariance": [[1.0, 2.0], [2.0, 1.0]]}, NotPositiveDefiniteError, "covariance is not positive definite"),
        ({"precision": [[1.0, 1.0], [1.0, 1.0]]}, NotPositiveDefiniteError, "precision is not positive definite"),
        ({"cholesky": [[1.0, 2.0], [0.0, 1.0]]}, InvalidValueError, "lower triangular"),
        ({"cholesky": [[1.0, 0.0], [0.0, 0.0]]}, InvalidValueError, "positive diagonal"),
        ({"diagonal": [1.0, 0.0]}, InvalidValueError, "entry 1 is 0.0"),
        ({"diagonal": [1.0]}, InvalidValueError, r"shape \(2,\)"),
        ({"covariance": "wide"}, InvalidTypeError, "covariance must be a real number or an array of them"),
    ],
)
def test_bad_arguments_are_named(arguments: dict[str, object], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        Gaussian([0.0, 1.0], **arguments)  # type: ignore[arg-type]


def test_mean_must_be_finite_and_flat() -> None:
    with pytest.raises(InvalidValueError, match="mean must be finite"):
        Gaussian([0.0, math.inf], COVARIANCE)
    with pytest.raises(InvalidValueError, match="mean must have 1 dimension"):
        Gaussian(np.zeros((2, 2)), COVARIANCE)


def test_single_precision_matrices_may_be_as_asymmetric_as_their_type() -> None:
    rng = np.random.default_rng(0)
    half = rng.normal(size=(20, 5)).astype(np.float32)
    assert Gaussian(np.zeros(5), half.T @ half).dimension == 5


@pytest.mark.parametrize("how", ["covariance", "precision", "cholesky", "diagonal"])
def test_samples_and_density_agree_with_the_description(how: str) -> None:
    from scipy.stats import multivariate_normal

    covariance = np.diag([2.0, 1.0]) if how == "diagonal" else COVARIANCE
    given: Any = {
        "covariance": covariance,
        "precision": np.linalg.inv(covariance),
        "cholesky": np.linalg.cholesky(covariance),
        "diagonal": np.diag(covariance),
    }[how]
    posterior = Gaussian([1.0, -1.0], **{how: given})
    theta = posterior.sample(40_000, np.random.default_rng(0))
    assert theta.mean(axis=0) == pytest.approx([1.0, -1.0], abs=0.05)
    assert np.cov(theta.T) == pytest.approx(covariance, abs=0.06)
    expected = multivariate_normal([1.0, -1.0], covariance).logpdf(theta[:10])
    assert posterior.log_density(theta[:10]) == pytest.approx(expected)


@pytest.mark.parametrize("scale", [1e-250, 1e-200, 1e155, 1e250])
def test_scale_is_no_obstacle(scale: float) -> None:
    rough = COVARIANCE * (1 + 1e-15 * np.array([[0.0, 1.0], [0.0, 0.0]]))
    assert Gaussian([0.0, 0.0], scale * rough).factor == pytest.approx(np.sqrt(scale) * np.linalg.cholesky(COVARIANCE))
    with pytest.raises(InvalidValueError, match="not symmetric"):
        Gaussian([0.0, 0.0], scale * np.array([[2.0, 0.6], [0.5, 1.0]]))


def test_copies_are_values_too() -> None:
    import copy
    import pickle

    posterior = Gaussian([0.0, 1.0], COVARIANCE)
    for twin in (copy.deepcopy(posterior), pickle.loads(pickle.dumps(posterior))):
        with pytest.raises(ValueError, match="read-only"):
            twin.mean[0] = 1.0


def test_what_is_no_covariance_is_named() -> None:
    with pytest.raises(InvalidTypeError, match="covariance must be a real number"):
        Gaussian([0.0, 1.0], COVARIANCE * (1 + 1j))
    with pytest.raises(InvalidTypeError, match="covariance must be a real number"):
        Gaussian([0.0, 1.0], [[1.0, 2.0], [3.0]])
    with pytest.raises(InvalidValueError, match="at least one parameter"):
        Gaussian([], np.zeros((0, 0)))


def test_a_tensor_with_gradients_is_taken_as_numbers() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    mean = torch.zeros(2, requires_grad=True)
    assert Gaussian(mean, torch.tensor(COVARIANCE)).dimension == 2
