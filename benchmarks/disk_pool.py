"""Picks of logistic regression from a pool in Parquet: memory, passes over the file, and time per pick.

The pool has 16 features in float32. The file is written to a temporary folder and deleted afterwards. Each measurement
is a process of its own, so that its peak memory is that of the operating system. With ``--write`` the table is written.

Run: ``nice -n 5 python benchmarks/disk_pool.py`` (about 1.3 GB of disk and 25 minutes; ``--small`` takes a minute).
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

import suffice as sf
from suffice.engines import ParquetPool
from tables import publish, table

pa: Any = import_module("pyarrow")
pq: Any = import_module("pyarrow.parquet")
FEATURES, CHUNK, LIMIT = 16, 10**6, 2**30


def written(path: Path, rows: int) -> None:
    """Write a pool of normal features."""
    schema = pa.schema([(f"x{k}", pa.float32()) for k in range(FEATURES)])
    with pq.ParquetWriter(path, schema, use_dictionary=False) as writer:
        for number, start in enumerate(range(0, rows, CHUNK)):
            size = min(CHUNK, rows - start)
            block = np.random.default_rng([0, number]).standard_normal((FEATURES, size), dtype=np.float32)
            writer.write_table(pa.table(list(block), schema=schema), row_group_size=250_000)


def labels(rows: Any, items: Any) -> list[int]:
    """Labels of a logistic model; the noise of an item is always the same."""
    weights = np.random.default_rng(1).normal(size=FEATURES)
    noise = [np.random.default_rng([2, int(item)]).logistic() for item in items]
    return [int(value > 0.0) for value in rows @ weights + np.array(noise)]


def measured(path: Path, picks: int, limit: int) -> dict[str, Any]:
    """One run: from the pool in memory where the limit is 0."""
    pool = ParquetPool(path, memory_limit=limit or LIMIT)
    X: Any = pool if limit else pool.array()
    start = time.perf_counter()
    learner = sf.ActiveLearner(sf.models.BayesianLogistic(), X, seed=0)
    first = learner.ask(10)
    learner.tell(first, labels(X[first], first))
    opened, begun = time.perf_counter() - start, time.perf_counter()
    for _ in range(picks):
        item = learner.ask()
        learner.tell(item, labels(X[item], item))
    return {
        "opened": opened,
        "seconds": time.perf_counter() - begun,
        "passes": pool.passes,
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        "labelled": [int(item) for item in learner.labelled],
    }


def in_process(path: Path, picks: int, limit: int) -> dict[str, Any]:
    command = [sys.executable, __file__, "--measure", str(path), str(picks), str(limit)]
    answer = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(answer.stdout)
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--measure", nargs=3, help="one measurement: file, picks, memory limit")
    parser.add_argument("--small", action="store_true", help="small pools")
    given, _ = parser.parse_known_args()
    if given.measure:
        print(json.dumps(measured(Path(given.measure[0]), int(given.measure[1]), int(given.measure[2]))))
        return
    scale = 100 if given.small else 1
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pool.parquet"
        m, picks = 2 * 10**7 // scale, 200
        written(path, m)
        found = in_process(path, picks, LIMIT // scale)
        size = path.stat().st_size / 1e9
        text = (
            f"Pool of {m:,} x {FEATURES} in Parquet, {size:.2f} GB, two classes, {picks} picks after 10 labels at "
            f"random (every fifth pick is random too): {found['seconds'] + found['opened']:.0f} s in all, of which "
            f"{found['opened']:.0f} s to check the numbers and learn the first labels; {found['passes']} passes over "
            f"the file; peak memory of the process {found['memory']:.2f} GiB.\n"
        )
        print(text, flush=True)
        rows = []
        for m in (10**5 // scale, 10**6 // scale, 10**7 // scale):
            written(path, m)
            # About as much of each pool fits into memory as of the largest one.
            disk, memory = in_process(path, 50, 54 * m), in_process(path, 50, 0)
            rows.append(
                [
                    f"{m:,}",
                    f"{20 * memory['seconds']:.0f}",
                    f"{20 * disk['seconds']:.0f}",
                    str(disk["passes"]),
                    f"{memory['memory']:.2f}",
                    f"{disk['memory']:.2f}",
                    "yes" if disk["labelled"] == memory["labelled"] else "no",
                ]
            )
            print(rows[-1], flush=True)
    header = ["items", "memory, ms per pick", "disk, ms per pick", "passes in 50 picks"]
    header += ["memory, peak GiB", "disk, peak GiB", "same picks"]
    publish("disk-pool", text + "\n" + table(header, rows))


if __name__ == "__main__":
    main()
