"""What a person waits for: the time of one ask and one tell."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import time
from typing import Any

import numpy as np

import suffice as sf
from suffice.models import BayesianLogistic, BayesianRidge, GaussianProcess
from tables import publish, table

LABELS = 330


def waits(model: Any, shape: tuple[int, int], classes: int) -> np.typing.NDArray[np.float64]:
    """Milliseconds of each ask and tell."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=shape)
    value = X[:, 0] + np.sin(X[:, 1]) + 0.3 * rng.normal(size=len(X))
    y = value if not classes else np.digitize(value, np.linspace(-1.0, 1.0, classes + 1)[1:-1])
    learner, taken = sf.ActiveLearner(model, X, criterion=sf.Budget(10 * LABELS)), []
    for _ in range(LABELS):
        start = time.perf_counter()
        item = learner.ask()
        learner.tell(item, y[item])
        taken.append(1e3 * (time.perf_counter() - start))
    return np.array(taken)


def main() -> None:
    jobs = (
        ("Gaussian process, learned", GaussianProcess(), (5000, 4), 0),
        ("ridge, learned", BayesianRidge(fit_intercept=True), (20_000, 30), 0),
        ("logistic, two classes", BayesianLogistic(1.0), (50_000, 20), 2),
        ("logistic, three classes", BayesianLogistic(1.0), (20_000, 20), 3),
    )
    rows = []
    for name, model, shape, classes in jobs:
        taken = waits(model, shape, classes)
        figures = (np.median(taken), np.quantile(taken, 0.95), taken.max())
        rows.append([name, f"{shape[0]:,} x {shape[1]}", *(f"{figure:.1f} ms" for figure in figures)])
    publish("waiting", table(["model", "pool", "median", "95 %", "longest"], rows))


if __name__ == "__main__":
    main()
