"""The paper's data sets for the benchmarks of the learners, or random numbers of their shape."""

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Pool:
    """Standardised inputs and labels, of pool and test set."""

    X: Floats
    y: Any
    X_test: Floats
    y_test: Any


def loaded(name: str, shape: tuple[int, int], test: int, read: Callable[[Path], tuple[Floats, Any]]) -> Pool:
    """The paper's set in random order, cut to a shape; or random numbers of that shape."""
    rng, folder = np.random.default_rng(0), os.environ.get("SUFFICE_DATA")
    if folder is None:
        print(f"{name}: random numbers, for SUFFICE_DATA is not set", file=sys.stderr)
        X = rng.normal(size=(shape[0] + test, shape[1]))
        y = np.sin(X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=len(X))
        y = (y > 0.0).astype(int) if name in ("skin", "grid, classes") else y
    else:
        X, y = read(Path(folder) / "uci")
        order = rng.permutation(len(X))[: shape[0] + test]
        X, y = X[order], y[order]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return Pool(X[test:], y[test:], X[:test], y[:test])


def power(folder: Path) -> tuple[Floats, Floats]:
    values = np.genfromtxt(folder / "power_plant.txt")
    return values[:, :-1], standardised(values[:, -1])


def protein(folder: Path) -> tuple[Floats, Floats]:
    values = np.genfromtxt(folder / "protein.txt")
    return values[:, 1:], standardised(values[:, 0])


def grid(folder: Path, *, classes: bool = False) -> tuple[Floats, Any]:
    lines = (folder / "grid_stability.csv").read_text().splitlines()[1:]
    cells = np.array([[float(cell) for cell in line.replace('"', "").split(",")] for line in lines])
    # The twelve inputs less p1, which the other powers determine.
    inputs = np.delete(cells[:, :12], 4, axis=1)
    return inputs, cells[:, 13].astype(int) if classes else standardised(cells[:, 12])


def skin(folder: Path) -> tuple[Floats, Any]:
    values = np.genfromtxt(folder / "skin.txt")
    return values[:, :-1], (values[:, -1] == 1).astype(int)


def standardised(y: Floats) -> Floats:
    return np.asarray((y - y.mean()) / y.std())
