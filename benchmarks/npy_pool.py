"""Picks of logistic regression from a memory-mapped .npy file, beside the time to read the file once.

The pool has 8 features in double precision. Each batch of labels is asked for and told; the time is that of the
process, one thread, and the file is in the cache of the operating system. Reading is one pass over the file by the
reader of the package, and a plain sum over the memory map. With ``--write`` the table is written.

Run: ``python benchmarks/npy_pool.py`` (0.64 GB of disk and some minutes; ``--small`` takes seconds).
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import suffice as sf
from suffice.engines import NpyPool
from tables import publish, table

FEATURES, CHUNK, INITIAL, BATCHES = 8, 10**6, 10, 20
HEADER = ["items", "labels a batch", "plain sum", "one pass", "ask and tell", "of a pass", "passes", "longest batch"]


def written(path: Path, rows: int) -> None:
    """Write a pool of normal features, chunk by chunk."""
    mapped = np.lib.format.open_memmap(path, mode="w+", dtype=np.float64, shape=(rows, FEATURES))
    rng = np.random.default_rng(0)
    for start in range(0, rows, CHUNK):
        mapped[start : start + CHUNK] = rng.normal(size=(min(CHUNK, rows - start), FEATURES))
    mapped.flush()


def timed(work: Any) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def measured(path: Path, batch: int, limit: int) -> list[str]:
    """Times of batches of labels from a pool on disk, after some initial labels at random."""
    mapped = np.load(path, mmap_mode="r")
    pool = NpyPool(path, memory_limit=limit)

    def one_pass() -> None:
        for _ in pool.batches():
            pass

    plain = min(timed(mapped.sum) for _ in range(3))
    read = min(timed(one_pass) for _ in range(3))
    weights = np.random.default_rng(1).normal(size=FEATURES)
    noise = np.random.default_rng(2)
    learner = sf.ActiveLearner(sf.models.BayesianLogistic(alpha=1.0), pool, seed=0)
    first = np.arange(INITIAL)
    learner.tell(first, (pool[first] @ weights + noise.logistic(size=INITIAL) > 0.0).astype(int))
    passes = pool.passes

    def label() -> None:
        items = learner.ask(batch)
        learner.tell(items, (pool[items] @ weights + noise.logistic(size=batch) > 0.0).astype(int))

    taken = [timed(label) for _ in range(BATCHES)]
    mean = sum(taken) / BATCHES
    cells = [f"{plain:.2f} s", f"{read:.2f} s", f"{mean:.2f} s", f"**{mean / read:.1f}x**"]
    return [f"{len(pool):,}", str(batch), *cells, f"{pool.passes - passes} in {BATCHES}", f"{max(taken):.2f} s"]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--small", action="store_true", help="a small pool")
    given, _ = parser.parse_known_args()
    rows = 10**5 if given.small else 10**7
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pool.npy"
        written(path, rows)
        publish("disk-npy", table(HEADER, [measured(path, batch, 54 * rows) for batch in (1, 10, 100)]))


if __name__ == "__main__":
    main()
