"""Simulated labelling runs of three kinds of model on many data sets, as the divergences that a rule would see."""

import os
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn import datasets
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

from suffice import kl
from suffice.divergence import batch, one_observation
from suffice.posteriors import Gaussian

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Run:
    """One run: the name of model and data, the labels after each step, and both divergences of each step."""

    name: str
    n_labelled: NDArray[np.intp]
    kl_new_old: Floats
    kl_old_new: Floats


@dataclass(frozen=True, eq=False)
class Data:
    """Standardised inputs and a target: standardised too, or 0 and 1."""

    name: str
    X: Floats
    y: Floats


def standardised(X: Floats) -> Floats:
    X = X[:, X.std(axis=0) > 0]
    return np.asarray((X - X.mean(axis=0)) / X.std(axis=0))


def regression_sets(rng: np.random.Generator) -> Iterator[Data]:
    seed = int(rng.integers(1 << 30))
    diabetes = datasets.load_diabetes()
    made = {
        "diabetes": (diabetes.data, diabetes.target),
        "friedman1": datasets.make_friedman1(3000, noise=1.0, random_state=seed),
        "friedman2": datasets.make_friedman2(3000, noise=100.0, random_state=seed),
        "friedman3": datasets.make_friedman3(3000, noise=0.1, random_state=seed),
        "linear": datasets.make_regression(3000, 20, n_informative=8, noise=20.0, random_state=seed),
    }
    wave = rng.uniform(-2, 2, size=(3000, 2))
    made["waves"] = (wave, np.sin(3 * wave[:, 0]) + np.cos(2 * wave[:, 1]) + 0.1 * rng.normal(size=3000))
    for name, (X, y) in made.items():
        yield Data(name, standardised(X), (y - y.mean()) / y.std())


def classification_sets(rng: np.random.Generator) -> Iterator[Data]:
    cancer, digits, wine = datasets.load_breast_cancer(), datasets.load_digits(), datasets.load_wine()
    yield Data("cancer", standardised(cancer.data), cancer.target.astype(float))
    yield Data("digits: odd", standardised(digits.data), (digits.target % 2).astype(float))
    yield Data("wine: first", standardised(wine.data), (wine.target == 0).astype(float))
    for k in range(3):
        X, y = datasets.make_classification(
            3000, 10 + 5 * k, n_informative=5, class_sep=0.5 + 0.5 * k, random_state=int(rng.integers(1 << 30))
        )
        yield Data(f"made {k}", standardised(X), y.astype(float))


def paper_folder() -> Path | None:
    folder = os.environ.get("SUFFICE_DATA")
    return Path(folder) / "uci" if folder and (Path(folder) / "uci").is_dir() else None


def paper_regression_sets() -> Iterator[Data]:
    folder = paper_folder()
    if folder is None:
        return
    power = np.genfromtxt(folder / "power_plant.txt")
    protein = np.genfromtxt(folder / "protein.txt")
    gas = np.concatenate(
        [np.genfromtxt(path, delimiter=",", skip_header=1) for path in sorted(folder.glob("gas_emission_*.csv"))]
    )
    grid = np.genfromtxt(folder / "grid_stability.csv", delimiter=",", skip_header=1)
    for name, X, y in (
        ("power plant", power[:, :-1], power[:, -1]),
        ("protein", protein[:, 1:], protein[:, 0]),
        ("gas emission", gas[:, [0, 1, 2, 3, 4, 5, 6, 8]], gas[:, 7]),
        ("grid stability", np.delete(grid[:, :12], 4, axis=1), grid[:, 12]),
    ):
        yield Data(name, standardised(X), (y - y.mean()) / y.std())


def paper_classification_sets() -> Iterator[Data]:
    folder = paper_folder()
    if folder is None:
        return
    grid = np.genfromtxt(folder / "grid_stability.csv", delimiter=",", skip_header=1)
    skin, htru2 = np.genfromtxt(folder / "skin.txt"), np.genfromtxt(folder / "htru2.csv", delimiter=",")
    yield Data("grid stability", standardised(np.delete(grid[:, :12], 4, axis=1)), (grid[:, 12] < 0).astype(float))
    yield Data("skin", standardised(skin[:, :-1]), (skin[:, -1] == 1).astype(float))
    yield Data("HTRU2", standardised(htru2[:, :-1]), htru2[:, -1])


def radial_basis(X: Floats, centres: int) -> Floats:
    grid = np.linspace(X.min(), X.max(), centres)
    return np.asarray(np.exp(-0.5 * ((X[:, :, None] - grid) / (grid[1] - grid[0])) ** 2).reshape(len(X), -1))


def process_run(data: Data, initial: int, steps: int, rng: np.random.Generator, *, at_random: bool = False) -> Run:
    """Gaussian process, largest variance first, as a pivoted Cholesky factorisation of the pool's kernel."""
    X, y, m = data.X, data.y, len(data.X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        learned = GaussianProcessRegressor(RBF(2.0) + WhiteKernel(0.1, (1e-3, 1e3))).fit(X[:200], y[:200]).kernel_
    scale, noise = learned.k1.length_scale, learned.k2.noise_level
    order, rows = rng.choice(m, initial, replace=False), np.zeros((initial + steps, m))
    variance, mean, free, squares = np.ones(m), np.zeros(m), np.ones(m, dtype=bool), (X**2).sum(axis=1)
    latent, residual = np.zeros(initial + steps), np.zeros(initial + steps)
    for t in range(initial + steps):
        score = rng.random(m) if at_random else variance
        j = int(order[t]) if t < initial else int(np.argmax(np.where(free, score, -1.0)))
        free[j] = False
        latent[t], residual[t] = max(variance[j], 0.0), y[j] - mean[j]
        kernel = np.exp(-0.5 * np.maximum(squares + squares[j] - 2.0 * X @ X[j], 0.0) / scale**2)
        rows[t] = (kernel - rows[:t, j] @ rows[:t]) / np.sqrt(latent[t] + noise)
        mean += rows[t] * residual[t] / np.sqrt(latent[t] + noise)
        variance -= rows[t] ** 2
    pair = one_observation(latent[initial:], residual[initial:], noise)
    how = ", at random" if at_random else ""
    return Run(f"Gaussian process{how}, {data.name}", initial + 1 + np.arange(steps), pair.new_old, pair.old_new)


def evidence(phi: Floats, y: Floats) -> tuple[float, float]:
    alpha, beta, gram = 1.0, 1.0, phi.T @ phi
    eigenvalues = np.maximum(np.linalg.eigvalsh(gram), 0.0)
    for _ in range(20):
        w = np.linalg.solve(beta * gram + alpha * np.eye(len(gram)), beta * phi.T @ y)
        tau = float((beta * eigenvalues / (beta * eigenvalues + alpha)).sum())
        alpha, beta = tau / float(w @ w), (len(y) - tau) / float(((y - phi @ w) ** 2).sum())
    return alpha, beta


def ridge_run(data: Data, initial: int, steps: int, size: int, rng: np.random.Generator) -> Run:
    """Ridge regression on radial basis functions, largest variance first, ``size`` labels a step."""
    phi, y = radial_basis(data.X, 10), data.y
    alpha, beta = evidence(phi[:300], y[:300])
    covariance, w, free = np.eye(phi.shape[1]) / alpha, np.zeros(phi.shape[1]), np.ones(len(phi), dtype=bool)
    variance = (phi**2).sum(axis=1) / alpha
    first, pairs = rng.choice(len(phi), initial, replace=False), []
    for step in range(steps + 1):
        chosen: list[int] = []
        before, old_w = covariance, w
        for k in range(size if step else initial):
            j = int(np.argmax(np.where(free, variance, -1.0))) if step else int(first[k])
            free[j] = False
            chosen.append(j)
            gain = covariance @ phi[j]
            total = phi[j] @ gain + 1.0 / beta
            w = w + gain * (y[j] - phi[j] @ w) / total
            covariance = covariance - np.outer(gain, gain) / total
            variance = variance - (phi @ gain) ** 2 / total
        if step:
            points = phi[chosen]
            pairs.append(batch(points @ before @ points.T, y[chosen] - points @ old_w, 1.0 / beta))
    suffix = f", {size} a step" if size > 1 else ""
    new_old, old_new = np.array(pairs, dtype=np.float64).T
    return Run(f"ridge{suffix}, {data.name}", initial + size * (1 + np.arange(steps)), new_old, old_new)


def logistic_run(  # noqa: PLR0913
    data: Data, initial: int, steps: int, size: int, rng: np.random.Generator, *, at_random: bool = False
) -> Run:
    """Logistic regression with Laplace's approximation, nearest to even odds first, ``size`` labels a step."""
    phi = np.column_stack([np.ones(len(data.X)), data.X])
    w, labelled = np.zeros(phi.shape[1]), [int(i) for i in rng.choice(len(phi), initial, replace=False)]
    free = np.ones(len(phi), dtype=bool)
    posterior: Gaussian | None = None
    new_old, old_new = [], []
    for step in range(steps + 1):
        if step:
            odds = np.where(free, rng.random(len(phi)) if at_random else np.abs(phi @ w), np.inf)
            labelled.extend(int(i) for i in np.argsort(odds, kind="stable")[:size])
        free[labelled] = False
        rows, t = phi[labelled], data.y[labelled]
        for _ in range(100):
            p = expit(rows @ w)
            gradient, information = rows.T @ (p - t) + w, (rows * (p * (1 - p))[:, None]).T @ rows + np.eye(len(w))
            if np.linalg.norm(gradient) < 1e-10 * len(t):
                break
            w = w - np.linalg.solve(information, gradient)
        old, posterior = posterior, Gaussian(w, precision=information)
        if old is not None:
            new_old.append(float(kl(posterior, old)))
            old_new.append(float(kl(old, posterior)))
    suffix = (f", {size} a step" if size > 1 else "") + (", at random" if at_random else "")
    n_labelled = initial + size * (1 + np.arange(steps))
    return Run(f"logistic{suffix}, {data.name}", n_labelled, np.array(new_old), np.array(old_new))


def sample(data: Data, size: int, rng: np.random.Generator) -> Data:
    rows = rng.permutation(len(data.X))[:size]
    return Data(data.name, data.X[rows], data.y[rows])


def runs(seed: int, *, paper: bool = False) -> Iterator[Run]:
    """All runs of a seed, on made and embedded data sets, or on the paper's."""
    rng = np.random.default_rng(seed)
    for data in paper_regression_sets() if paper else regression_sets(rng):
        part = sample(data, 4000, rng)
        initial, steps = int(rng.choice([5, 10, 20])), min(600, len(part.X) - 40)
        yield process_run(part, initial, steps, rng)
        yield ridge_run(part, initial, min(1200, len(part.X) - 40), 1, rng)
        yield ridge_run(part, initial, min(120, (len(part.X) - 40) // 5), 5, rng)
    for data in paper_classification_sets() if paper else classification_sets(rng):
        part = sample(data, 3000, rng)
        initial = int(rng.choice([5, 10, 20]))
        yield logistic_run(part, initial, min(400, len(part.X) - 40), 1, rng)
        yield logistic_run(part, initial, min(80, (len(part.X) - 40) // 5), 5, rng)


def random_runs(seed: int) -> Iterator[Run]:
    """Runs that label at random, on the made and embedded data sets."""
    rng = np.random.default_rng(seed)
    for data in regression_sets(rng):
        part = sample(data, 4000, rng)
        yield process_run(part, 10, min(600, len(part.X) - 40), rng, at_random=True)
    for data in classification_sets(rng):
        part = sample(data, 3000, rng)
        yield logistic_run(part, 10, min(400, len(part.X) - 40), 1, rng, at_random=True)
