"""A large Parquet file in the memory of workers of a Dask cluster: one worker, two, and two of which one is killed.

The public ``ActiveLearner`` with logistic regression picks by entropy; each worker reads its part of the file. In the
third run a worker is killed after a third of the picks; it is replaced, and its part of the file is read again. The
runs must make the same picks. With ``--write`` the result is written.

Run: ``OMP_NUM_THREADS=1 python benchmarks/dask_parquet.py`` (20 million rows: 6 GB of memory; ``--rows`` and
``--picks`` change the size).
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np

import suffice as sf
from suffice.criteria import Budget
from suffice.engines.worker_rows import local_client
from suffice.models import BayesianLogistic
from tables import publish, table

pa, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
FEATURES, AT_ONCE, FIRST = 8, 500_000, 20
RUNS = (("one worker", 1, False), ("two workers", 2, False), ("two workers, one is killed", 2, True))


class Run(NamedTuple):
    """What a run took.

    Attributes:
        items: The picks.
        seconds: Of each pick and its label.
        start: Seconds until the first labels are learned.
        sent: Bytes to all workers for a pick.
        received: Bytes from them.
    """

    items: list[int]
    seconds: list[float]
    start: float
    sent: float
    received: float


def write_pool(folder: Path, rows: int) -> None:
    """Write the pool as Parquet, and the class of each row."""
    rng, truth = np.random.default_rng(0), np.random.default_rng(1).normal(size=FEATURES)
    names = [f"x{k}" for k in range(FEATURES)]
    schema = pa.schema([(name, pa.float32()) for name in names])
    classes = np.empty(rows, dtype=np.int8)
    with parquet.ParquetWriter(folder / "pool.parquet", schema) as writer:
        for start in range(0, rows, AT_ONCE):
            block = rng.standard_normal((min(AT_ONCE, rows - start), FEATURES), dtype=np.float32)
            classes[start : start + len(block)] = block @ truth + 0.5 * rng.standard_normal(len(block)) > 0.0
            writer.write_table(pa.table([block[:, k] for k in range(FEATURES)], schema=schema))
    np.save(folder / "classes.npy", classes)


def kill_a_worker(client: Any) -> None:
    place = next(iter(client.scheduler_info()["workers"]))
    os.kill(client.run(os.getpid, workers=[place])[place], signal.SIGKILL)


def picks(folder: Path, workers: int, n: int, *, killed: bool) -> Run:
    classes, taken, items = np.load(folder / "classes.npy", mmap_mode="r"), list[float](), list[int]()
    with local_client(workers) as client:
        begun = time.perf_counter()
        learner = sf.ActiveLearner(
            BayesianLogistic(),
            str(folder / "pool.parquet"),
            client=client,
            acquisition="entropy",
            criterion=Budget(len(classes)),
            random_share=0.0,
        )
        first = np.arange(FIRST)
        learner.tell(first, classes[first])
        start = time.perf_counter() - begun
        for k in range(n):
            if killed and k == n // 3:
                kill_a_worker(client)
            begun = time.perf_counter()
            item = learner.ask()
            learner.tell(item, classes[item])
            taken.append(time.perf_counter() - begun)
            items += item.tolist()
        shards = learner._loop.backend._points.pool.shards  # type: ignore[attr-defined]
        return Run(items, taken, start, shards.bytes_sent / n, shards.bytes_received / n)


def measured(folder: Path, workers: int, n: int, *, killed: bool) -> Run:
    """A run in a process of its own."""
    command = [sys.executable, __file__, "--measure", str(folder), str(workers), str(n), str(int(killed))]
    answer = subprocess.run(command, check=True, capture_output=True, text=True)
    return Run(*json.loads(answer.stdout.splitlines()[-1]))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--measure", nargs=4, help="one run: folder, workers, picks, whether a worker is killed")
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--picks", type=int, default=30)
    given, _ = parser.parse_known_args()
    if given.measure:
        folder, workers, n, killed = given.measure
        print(json.dumps(picks(Path(folder), int(workers), int(n), killed=killed == "1")))
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_pool(folder, given.rows)
        size = (folder / "pool.parquet").stat().st_size
        runs = {title: measured(folder, workers, given.picks, killed=killed) for title, workers, killed in RUNS}
    one = runs["one worker"]
    rows = [
        [
            title,
            f"{run.start:.1f}",
            f"{1e3 * median(run.seconds):.0f}",
            f"{median(run.seconds) / median(one.seconds):.2f}",
            f"{max(run.seconds):.1f}",
            f"{run.sent / 1e3:.2f} and {run.received / 1e3:.2f}",
            "yes" if run.items == one.items else "no",
        ]
        for title, run in runs.items()
    ]
    header = ["run", "first labels, s", "ms per pick", "ratio", "longest pick, s", "kB per pick, sent and received"]
    text = (
        f"Pool of {given.rows:,} x {FEATURES} in Parquet, {size / 1e9:.2f} GB, logistic regression of two classes, "
        f"{given.picks} picks by entropy after {FIRST} labels, {os.cpu_count()} processors, one thread for each "
        "process; medians of the picks of one run.\n\n" + table([*header, "same picks"], rows)
    )
    publish("dask-parquet", text)


if __name__ == "__main__":
    main()
