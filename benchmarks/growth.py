"""How the time of a run grows with labels, pool and features, and how near it is to what the processor could do."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np

import suffice as sf
from suffice.models import BayesianLogistic, BayesianRidge, GaussianProcess
from tables import publish, table


def taken(model: Any, steps: int, m: int, d: int) -> float:
    """Median time of a run on random numbers, without a test set."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(m, d))
    y = np.sin(X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=m)
    labels = (y > 0.0).astype(int) if isinstance(model, BayesianLogistic) else y
    times = []
    for _ in range(3):
        start = time.perf_counter()
        sf.simulate(model, X, labels, initial=50, steps=steps)
        times.append(time.perf_counter() - start)
    return median(times)


def exponent(work: Callable[[int], float], sizes: list[int]) -> str:
    """Slope of log time over log size."""
    slope = np.polyfit(np.log(sizes), np.log([work(size) for size in sizes]), 1)[0]
    return f"{slope:.2f}"


def peak() -> float:
    """Operations a second of a large matrix product."""
    A = np.random.default_rng(0).normal(size=(1500, 1500))
    times = []
    for _ in range(5):
        start = time.perf_counter()
        A @ A
        times.append(time.perf_counter() - start)
    return float(2.0 * 1500**3 / median(times))


def main() -> None:
    process, ridge = GaussianProcess(2.0, 0.1), BayesianRidge(1.0, 10.0)
    logistic = BayesianLogistic(alpha=1.0, fit_intercept=False)
    rows = [
        [
            "Gaussian process",
            exponent(lambda n: taken(process, n, 10_000, 6), [500, 1000, 2000]),
            exponent(lambda m: taken(process, 500, m, 6), [10_000, 20_000, 40_000]),
            exponent(lambda d: taken(process, 500, 10_000, d), [4, 8, 16]),
            _share(taken(process, 1000, 20_000, 6), 1000.0**2 * 20_000),
        ],
        [
            "ridge",
            exponent(lambda n: taken(ridge, n, 20_000, 100), [1000, 2000, 4000]),
            exponent(lambda m: taken(ridge, 1000, m, 100), [10_000, 20_000, 40_000]),
            exponent(lambda d: taken(ridge, 1000, 20_000, d), [50, 100, 200]),
            _share(taken(ridge, 2000, 20_000, 100), 2.0 * 2000 * 19_000 * 100),
        ],
        [
            "logistic",
            exponent(lambda n: taken(logistic, n, 40_000, 20), [500, 1000, 2000]),
            exponent(lambda m: taken(logistic, 500, m, 20), [20_000, 80_000, 320_000]),
            exponent(lambda d: taken(logistic, 500, 40_000, d), [15, 30, 60]),
            "",
        ],
    ]
    publish("growth", table(["model", "labels n", "pool m", "features", "share of peak"], rows))


def _share(seconds: float, operations: float) -> str:
    """Operations that the algorithm cannot do without, against what a large matrix product could do in that time."""
    return f"{100.0 * operations / seconds / peak():.0f} %"


if __name__ == "__main__":
    main()
