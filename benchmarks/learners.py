"""How fast the learners are: against refitting at every step, against the plain incremental loop, and how time grows.

One thread; every ratio is measured in one run. References that would take hours are timed at a few steps and integrated.
With SUFFICE_DATA set the paper's data sets are used, else random numbers of the same shape.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np
from numpy.typing import NDArray

import suffice as sf
from learner_references import (
    plain_process,
    plain_ridge_step,
    process_step,
    sklearn_logistic_step,
)
from suffice.models import BayesianLogistic, BayesianRidge, GaussianProcess, RadialBasis
from tables import publish, table

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Pool:
    """Standardised inputs and labels, pool and test."""

    X: Floats
    y: Floats
    X_test: Floats
    y_test: Floats


def loaded(name: str, shape: tuple[int, int], test: int, read: Callable[[Path], Floats]) -> Pool:
    """The paper's set, or random numbers of its shape; the target is the last column."""
    rng, folder = np.random.default_rng(0), os.environ.get("SUFFICE_DATA")
    if folder is None:
        values = rng.normal(size=(shape[0] + test, shape[1] + 1))
        values[:, -1] += np.sin(values[:, 0]) + values[:, 1]
        print(f"{name}: random numbers, for SUFFICE_DATA is not set", file=sys.stderr)
    else:
        values = read(Path(folder) / "uci")
        values = values[rng.permutation(len(values))][: shape[0] + test]
    X = (values[:, :-1] - values[:, :-1].mean(axis=0)) / values[:, :-1].std(axis=0)
    y = values[:, -1]
    return Pool(X[test:], y[test:], X[:test], y[:test])


def power(folder: Path) -> Floats:
    values = np.genfromtxt(folder / "power_plant.txt")
    values[:, -1] = (values[:, -1] - values[:, -1].mean()) / values[:, -1].std()
    return values


def protein(folder: Path) -> Floats:
    values = np.roll(np.genfromtxt(folder / "protein.txt"), -1, axis=1)
    values[:, -1] = (values[:, -1] - values[:, -1].mean()) / values[:, -1].std()
    return values


def grid(folder: Path, *, classes: bool = False) -> Floats:
    lines = (folder / "grid_stability.csv").read_text().splitlines()[1:]
    cells = np.array([[float(c) for c in line.replace('"', "").split(",")] for line in lines])
    inputs = np.delete(cells[:, :12], 4, axis=1)
    target = cells[:, 13 if classes else 12]
    if not classes:
        target = (target - target.mean()) / target.std()
    return np.column_stack([inputs, target])


def skin(folder: Path) -> Floats:
    values = np.genfromtxt(folder / "skin.txt")
    values[:, -1] = values[:, -1] == 1
    return values


def seconds(work: Callable[[], object], times: int = 3) -> float:
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return median(taken)


def integrated(step: Callable[[int], object], counts: list[int]) -> float:
    """Time of all steps from the first count to the last, from the time of a few."""
    at = [seconds(lambda n=n: step(n)) for n in counts]  # type: ignore[misc]
    return float(np.trapezoid(at, counts))


def process_rows() -> list[list[str]]:
    small = loaded("power plant", (5000, 4), 2000, power)
    large = loaded("protein", (43_730, 9), 2000, protein)
    rows = []
    for name, pool, length, noise in (("5000 x 4", small, 4.3, 0.065), ("43,730 x 9", large, 2.0, 0.3)):
        model = GaussianProcess(length_scale=length, noise=noise)
        initial = np.arange(10)
        ours = seconds(
            lambda m=model, p=pool: sf.simulate(  # type: ignore[misc]
                m, p.X, p.y, initial=np.arange(10), steps=1000, X_test=p.X_test, y_test=p.y_test
            )
        )
        picks: list[int] = []
        plain = seconds(
            lambda p=pool, q=picks: q.extend(plain_process(p, np.arange(10), 1000, length, noise)),  # type: ignore[misc]
            1,
        )
        trace = sf.simulate(model, pool.X, pool.y, initial=initial, steps=1000)
        assert trace.indices.tolist() == picks[:1000], "the plain loop picks differently"
        if pool is small:
            order = np.concatenate([initial, trace.indices])
            refit = integrated(
                lambda n, o=order, p=pool: process_step(p, o[:n], length, noise),  # type: ignore[misc]
                [10, 100, 250, 500, 750, 1010],
            )
            rows.append(_row(f"GP, 1000 picks from {name}", ours, "scikit-learn refitted at every step", refit, 250))
        rows.append(_row(f"GP, 1000 picks from {name}", ours, "plain incremental", plain, 2.5 if pool is small else 5))
    return rows


def ridge_rows() -> list[list[str]]:
    pool = loaded("grid", (8000, 11), 2000, grid)
    basis = RadialBasis(10).fit(pool.X)
    phi, phi_test = basis.transform(pool.X), basis.transform(pool.X_test)
    model = BayesianRidge(alpha=1.0, beta=20.0)
    ours = seconds(
        lambda: sf.simulate(model, phi, pool.y, initial=np.arange(10), steps=7990, X_test=phi_test, y_test=pool.y_test)
    )
    order = np.random.default_rng(0).permutation(8000)
    features = Pool(phi, pool.y, phi_test, pool.y_test)
    whole = integrated(lambda n: plain_ridge_step(features, order[:n], 1.0, 20.0), [10, 500, 2000, 4000, 6000, 8000])
    name = "ridge, 7990 picks from 8000 x 110"
    return [_row(name, ours, "posterior and pool recomputed at every step", whole, 200)]


def logistic_rows() -> list[list[str]]:
    rows = []
    for name, pool, least in (
        ("240,057 x 15", loaded("skin", (240_057, 3), 5000, skin), 60),
        ("5000 x 55", loaded("grid, classes", (5000, 11), 5000, lambda f: grid(f, classes=True)), 40),
    ):
        y, y_test = (
            (labels > np.median(labels)).astype(int) if len(np.unique(labels)) > 2 else labels.astype(int)
            for labels in (pool.y, pool.y_test)
        )
        basis = RadialBasis(5).fit(pool.X)
        phi, phi_test = basis.transform(pool.X), basis.transform(pool.X_test)
        model = BayesianLogistic(alpha=1.0, fit_intercept=False)

        def ours(phi: Floats = phi, y: Floats = y, phi_test: Floats = phi_test, y_test: Floats = y_test) -> sf.Trace:
            return sf.simulate(model, phi, y, initial=np.arange(100), steps=3000, X_test=phi_test, y_test=y_test)

        taken = seconds(ours)
        trace = ours()
        order = np.concatenate([trace.initial, trace.indices])
        refit = integrated(
            lambda n, o=order, p=pool, t=y, b=basis, tt=y_test: sklearn_logistic_step(p, o[:n], t, tt, b),  # type: ignore[misc]
            [100, 500, 1000, 2000, 3100],
        )
        rows.append(
            _row(
                f"logistic, 3000 picks from {name}",
                taken,
                "scikit-learn refitted, basis and pool recomputed",
                refit,
                least,
            )
        )
    return rows


def _row(work: str, ours: float, reference: str, theirs: float, least: float) -> list[str]:
    return [work, f"{ours:.2f} s", reference, f"{theirs:.1f} s", f"**{theirs / ours:.1f}x**", f"{least:g}x"]


def main() -> None:
    parts = {"gp": process_rows, "ridge": ridge_rows, "logistic": logistic_rows}
    chosen = [name for name in parts if name in sys.argv] or list(parts)
    rows = [row for name in chosen for row in parts[name]()]
    publish(
        "learners",
        table(["work, with the error on a test set", "suffice", "reference", "takes", "ratio", "wanted"], rows),
    )


if __name__ == "__main__":
    main()
