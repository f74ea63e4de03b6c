"""What a pick by the reduction of the mean variance costs beside one by the largest variance, and what it is worth.

One thread. Processor time, so that other programs matter less. The two forms take turns within one run, and each time
is a median. With SUFFICE_DATA set the paper's data sets are used, else random numbers of the same shape.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np

import suffice as sf
from learner_data import Floats, Pool, grid, loaded, power, protein
from suffice.engines import KernelRows, MemoryPool
from suffice.engines.variance_reduction import KernelSums, LargestReduction, sample_of
from suffice.models import GaussianProcess
from suffice.models.gaussian_state import KernelState, block_of
from suffice.models.kernels import GaussianKernel
from tables import publish, table

LABELS, SAMPLES, SEEDS = (50, 200, 500), (128, 256, 512), 5
# Picks that are timed, around each number of labels, and picks before them: rounding errors build up as they would.
PICKS, BEFORE = 21, 25
WANTED = 3.0
ACQUISITIONS = ("random", "variance", "variance-reduction")


def clocked(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


class Plain:
    """The largest variance, with one pass over the pool for each pick."""

    def __init__(self, X: Floats, length: float, noise: float) -> None:
        self._X, self._state = X, KernelState(GaussianKernel((length,)), noise, X.shape[1], LABELS[-1] + PICKS)
        self._pool = MemoryPool(KernelRows(self._state, X, LABELS[-1] + PICKS, np.float64))

    def learn(self, items: Any) -> None:
        """Labels of some items."""
        self._state.extend(block_of(self._state, self._X[items]), np.zeros(len(items)))
        self._pool.take(items)
        self._pool.follow()

    def pick(self) -> Any:
        """The next item."""
        return self._pool.top(1).indices


class Reduction:
    """The largest reduction of the mean variance."""

    def __init__(self, X: Floats, length: float, noise: float, size: int) -> None:
        self._X, room = X, LABELS[-1] + PICKS
        self._state = KernelState(GaussianKernel((length,)), noise, X.shape[1], room)
        sample = sample_of(len(X), np.random.default_rng(0), size)
        rows = KernelRows(self._state, X, room, np.float64)
        self._chooser = LargestReduction(self._state, KernelSums(self._state, rows, sample, room))

    def learn(self, items: Any) -> None:
        """Labels of some items."""
        self._state.extend(block_of(self._state, self._X[items]), np.zeros(len(items)))
        self._chooser.take(items)

    def pick(self) -> Any:
        """The next item."""
        return self._chooser.propose(1)


def step(form: Plain | Reduction) -> None:
    form.learn(form.pick())


def times(X: Floats, length: float, noise: float, size: int) -> list[tuple[float, float]]:
    """Seconds of a pick of both forms at each number of labels."""
    forms = Plain(X, length, noise), Reduction(X, length, noise, size)
    order, done = np.random.default_rng(1).permutation(len(X)), 0
    found = []
    for n in LABELS:
        for form in forms:
            form.learn(order[done : n - PICKS // 2 - BEFORE])
            for _ in range(BEFORE):
                step(form)
            form.pick()
        taken = [[clocked(lambda form=form: step(form)) for form in forms] for _ in range(PICKS)]  # type: ignore[misc]
        found.append((median(each[0] for each in taken), median(each[1] for each in taken)))
        done = n + PICKS - PICKS // 2
    return found


def cost_rows() -> list[list[str]]:
    sets = (
        (loaded("power plant", (5000, 4), 2000, power), 4.3, 0.065),
        (loaded("protein", (43_730, 9), 2000, protein), 2.0, 0.3),
    )
    rows = []
    for pool, length, noise in sets:
        m = len(pool.X)
        for size in SAMPLES:
            for n, (plain, ours) in zip(LABELS, times(pool.X, length, noise, size), strict=True):
                floor = 1e-6 * m * (8 * n + 4 * size)
                rows.append(
                    [
                        f"{m:,}",
                        str(size),
                        str(n),
                        f"{1e3 * ours:.1f} ms",
                        f"{1e3 * plain:.1f} ms",
                        f"**{ours / plain:.2f}**",
                        f"{floor:.0f} MB",
                        f"{1e-6 * m * 8 * n:.0f} MB",
                    ]
                )
    return rows


def errors(pool: Pool, acquisition: str, counts: tuple[int, ...]) -> Floats:
    """Root mean squared test error at some numbers of labels, for each seed."""
    found = []
    for seed in range(SEEDS):
        learner = sf.ActiveLearner(GaussianProcess(), pool.X, acquisition=acquisition, seed=seed)
        for n in counts:
            while len(learner.labelled) < n:
                item = learner.ask(10 if not learner.labelled else 1)
                learner.tell(item, pool.y[item])
            found.append(float(np.sqrt(np.mean((learner.model.predict(pool.X_test) - pool.y_test) ** 2))))
    return np.array(found).reshape(SEEDS, -1)


def quality_rows() -> list[list[str]]:
    sets = {
        "power plant": loaded("power plant", (5000, 4), 2000, power),
        "protein": loaded("protein", (20_000, 9), 2000, protein),
        "grid": loaded("grid", (8000, 11), 2000, grid),
    }
    rows = []
    for name, pool in sets.items():
        found = {acquisition: errors(pool, acquisition, (100, 200)) for acquisition in ACQUISITIONS}
        for column, n in enumerate((100, 200)):
            cells = [f"{each[:, column].mean():.3f} ({each[:, column].std(ddof=1):.3f})" for each in found.values()]
            rows.append([name, str(n), *cells])
    return rows


def main() -> None:
    cost = table(
        ["pool", "sample", "labels", "a pick", "plain form of `variance`", "ratio", "floor, read", "plain floor, read"],
        cost_rows(),
    )
    quality = table(["pool", "labels", *(f"`{name}`" for name in ACQUISITIONS)], quality_rows())
    text = f"{cost}\n\nWanted: a ratio of {WANTED:g} at most.\n\nTest error by the same labels:\n\n{quality}"
    publish("variance-reduction", text)


if __name__ == "__main__":
    main()
