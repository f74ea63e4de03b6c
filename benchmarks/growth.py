"""How the time of a run grows with labels, pool and features, and how near it is to what the processor could do.

Processor time of one thread. The second table is the time of a label in pools of up to ten million rows. Parts: runs,
pools.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any, Final, NamedTuple

import numpy as np

import suffice as sf
from suffice.models import BayesianLogistic, BayesianRidge, GaussianProcess
from tables import publish, table

RUNS_HEADER: Final = ["model", "labels n", "pool m", "features", "share of peak"]
#: Rows of the pools, and the labels of a run in them.
SIZES: Final = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
POOL_LABELS, POOL_FEATURES = 100, 8


def taken(model: Any, steps: int, m: int, d: int) -> float:
    """Median time of a run on random numbers, without a test set."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(m, d))
    y = np.sin(X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=m)
    labels = (y > 0.0).astype(int) if isinstance(model, BayesianLogistic) else y
    times = []
    for _ in range(3):
        start = time.process_time()
        sf.simulate(model, X, labels, initial=50, steps=steps)
        times.append(time.process_time() - start)
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
        start = time.process_time()
        A @ A
        times.append(time.process_time() - start)
    return float(2.0 * 1500**3 / median(times))


class PoolCase(NamedTuple):
    """A model and how it chooses, and the largest pool that it is measured with."""

    name: str
    model: Any
    acquisition: str
    classes: int
    largest: int


def label_time(case: PoolCase, m: int) -> float:
    """Time of an ask and a tell in a pool of ``m`` rows, after the initial labels; of small pools the median."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(m, POOL_FEATURES))
    y = np.sin(X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=m)
    labels = y if not case.classes else np.digitize(y, np.linspace(-1.0, 1.0, case.classes + 1)[1:-1])
    times = []
    for _ in range(3 if m <= 100_000 else 1):
        learner = sf.ActiveLearner(case.model, X, criterion=sf.Budget(m), acquisition=case.acquisition, seed=0)
        learner.tell(np.arange(50), labels[:50])
        start = time.process_time()
        for _ in range(POOL_LABELS):
            items = learner.ask()
            learner.tell(items, labels[items])
        times.append((time.process_time() - start) / POOL_LABELS)
    return median(times)


def pool_row(case: PoolCase) -> list[str]:
    """Time of a label by the size of the pool; the slope over all sizes, and over the last factor of ten."""
    sizes = [m for m in SIZES if m <= case.largest]
    times = [label_time(case, m) for m in sizes]
    logs, log_times = np.log(sizes), np.log(times)
    slope = np.polyfit(logs, log_times, 1)[0]
    last = (log_times[-1] - log_times[-2]) / (logs[-1] - logs[-2])
    cells = [f"{1e3 * taken:.2f} ms" for taken in times] + ["not run"] * (len(SIZES) - len(sizes))
    row = [case.name, *cells, f"{slope:.2f}", f"{last:.2f}"]
    print(*row, sep=" | ", file=sys.stderr, flush=True)
    return row


def pool_rows() -> list[list[str]]:
    process, ridge = GaussianProcess(2.0, 0.1), BayesianRidge(1.0, 10.0)
    logistic = BayesianLogistic(alpha=1.0)
    # A process keeps a row of the whole pool for each label: 12 GB for ten million rows and 150 labels.
    cases = (
        PoolCase("ridge, `variance`", ridge, "variance", 0, 10_000_000),
        PoolCase("logistic, two classes, `margin`", logistic, "margin", 2, 10_000_000),
        PoolCase("logistic, three classes, `margin`", logistic, "margin", 3, 1_000_000),
        PoolCase("Gaussian process, `variance`", process, "variance", 0, 1_000_000),
        PoolCase("Gaussian process, `variance-reduction`", process, "variance-reduction", 0, 1_000_000),
    )
    return [pool_row(case) for case in cases]


def run_rows() -> list[list[str]]:
    process, ridge = GaussianProcess(2.0, 0.1), BayesianRidge(1.0, 10.0)
    logistic = BayesianLogistic(alpha=1.0, fit_intercept=False)
    return [
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


def main() -> None:
    asked = [part for part in ("runs", "pools") if part in sys.argv] or ["runs", "pools"]
    tables = []
    if "runs" in asked:
        tables.append(table(RUNS_HEADER, run_rows()))
    if "pools" in asked:
        header = ["time of a label, pool of", *(f"{m:,}" for m in SIZES), "slope", "slope of the last two"]
        tables.append(table(header, pool_rows()))
    publish("growth", "\n\n".join(tables))


def _share(seconds: float, operations: float) -> str:
    """Operations that the algorithm cannot do without, against what a large matrix product could do in that time."""
    return f"{100.0 * operations / seconds / peak():.0f} %"


if __name__ == "__main__":
    main()
