import math

import numpy as np
import pytest

from suffice.errors import InvalidTypeError, InvalidValueError
from suffice.posteriors import Draws, DropoutLayer, DropoutPosterior, GaussianProcessPosterior


def kernel(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.asarray(np.exp(-0.5 * ((a[:, None] - b[None]) ** 2).sum(-1)))


@pytest.mark.parametrize("keep", [0.0, -0.1, 1.1, math.nan])
def test_layer_refuses_a_keep_that_is_no_probability(keep: float) -> None:
    with pytest.raises(InvalidValueError, match="keep must be a number above 0 and at most 1"):
        DropoutLayer([[1.0]], keep=keep)


@pytest.mark.parametrize("sigma", [0.0, -1.0, math.inf, math.nan])
def test_layer_refuses_a_sigma_that_is_no_deviation(sigma: float) -> None:
    with pytest.raises(InvalidValueError, match="sigma must be a number above 0"):
        DropoutLayer([[1.0]], sigma=sigma)


def test_layer_refuses_weights_without_inputs() -> None:
    with pytest.raises(InvalidValueError, match="outputs x inputs"):
        DropoutLayer([1.0, 2.0])


def test_layer_refuses_biases_that_do_not_fit() -> None:
    with pytest.raises(InvalidValueError, match="bias holds 3 numbers, but weight has 1 outputs"):
        DropoutLayer([[1.0, 2.0]], bias=[1.0, 2.0, 3.0])


def test_convolution_counts_by_channel() -> None:
    layer = DropoutLayer(np.arange(2 * 3 * 5 * 5.0).reshape(2, 3, 5, 5), keep=0.5)
    assert layer.inputs == 3
    assert layer.columns.shape == (3, 50)
    assert np.array_equal(layer.columns[1, :25], layer.weight[0, 1].ravel())


def test_network_needs_layers() -> None:
    with pytest.raises(InvalidValueError, match="at least one"):
        DropoutPosterior([])
    assert len(tuple(DropoutPosterior(DropoutLayer([[1.0]])).layers)) == 1  # type: ignore[arg-type]
    with pytest.raises(InvalidTypeError, match=r"layers\[0\] must be a DropoutLayer"):
        DropoutPosterior([np.eye(2)])  # type: ignore[list-item]


def test_network_samples_have_the_mixtures_moments() -> None:
    network = DropoutPosterior([DropoutLayer([[2.0, 0.0]], [1.0], keep=0.25, sigma=0.5), DropoutLayer([[3.0]])])
    theta = network.sample(50_000, np.random.default_rng(0))
    assert theta.shape == (50_000, 4)
    assert theta.mean(axis=0) == pytest.approx([0.5, 0.0, 1.0, 3.0], abs=0.03)
    assert theta.var(axis=0) == pytest.approx([0.25 + 0.75, 0.25, 0.25, 1.0], rel=0.03)


def test_network_density_integrates_to_one() -> None:
    network = DropoutPosterior([DropoutLayer([[2.0]], [1.0], keep=0.3, sigma=0.7)])
    axis = np.linspace(-6, 9, 600)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    assert np.exp(network.log_density(grid)).sum() * (axis[1] - axis[0]) ** 2 == pytest.approx(1.0, abs=1e-6)


def test_draws_say_what_is_too_few() -> None:
    with pytest.raises(InvalidValueError, match=r"3 draws of 4 parameters; method='gaussian' needs at least 6"):
        Draws(np.zeros((3, 4)), method="gaussian")
    with pytest.raises(InvalidValueError, match="needs at least 6 draws"):
        Draws(np.zeros((5, 1)), method="knn")
    with pytest.raises(InvalidValueError, match="method must be 'gaussian' or 'knn'"):
        Draws(np.zeros((9, 1)), method="guess")  # type: ignore[arg-type]
    with pytest.raises(InvalidValueError, match="k must be a whole number, 1 or more"):
        Draws(np.zeros((9, 1)), method="knn", k=0)


def test_process_latent_equals_the_textbook_formula() -> None:
    rng = np.random.default_rng(0)
    X, y, Z = rng.normal(size=(6, 2)), rng.normal(size=6), rng.normal(size=(4, 2))
    posterior = GaussianProcessPosterior(X, y, noise=0.3, kernel=kernel)
    gain = kernel(Z, X) @ np.linalg.inv(kernel(X, X) + 0.3 * np.eye(6))
    mean, covariance = posterior.latent(Z)
    assert mean == pytest.approx(gain @ y)
    assert covariance == pytest.approx(kernel(Z, Z) - gain @ kernel(X, Z))
    prior_mean, prior = GaussianProcessPosterior(np.zeros((0, 2)), [], noise=0.3, kernel=kernel).latent(Z)
    assert (prior_mean == 0).all()
    assert prior == pytest.approx(kernel(Z, Z))


def test_process_names_bad_arguments() -> None:
    with pytest.raises(InvalidValueError, match="X has 2 rows and y has 1"):
        GaussianProcessPosterior([[0.0], [1.0]], [0.0], noise=1.0, kernel=kernel)
    with pytest.raises(InvalidValueError, match="the smallest is 0"):
        GaussianProcessPosterior([[0.0]], [0.0], noise=0.0, kernel=kernel)
    with pytest.raises(InvalidValueError, match="noise must be one number or 1"):
        GaussianProcessPosterior([[0.0]], [0.0], noise=[1.0, 2.0], kernel=kernel)
    with pytest.raises(InvalidValueError, match="y must be finite"):
        GaussianProcessPosterior([[0.0]], [math.nan], noise=1.0, kernel=kernel)
