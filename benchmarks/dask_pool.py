"""Picks of a Gaussian process from a pool on the workers of a Dask cluster, beside one process with the pool in memory.

Both keep rows in single precision. Each run is a process of its own, and runs alternate. The time per row, the time of
an exchange and the messages give a calculated plan for a billion rows. With ``--write`` the result is written.

Run: ``OMP_NUM_THREADS=1 python benchmarks/dask_pool.py`` (8 minutes and 12 GB of memory; ``--small`` takes a minute).
"""

import argparse
import json
import os
import subprocess
import sys
import time
from typing import Any, NamedTuple

import numpy as np

from suffice.engines import KernelRows, MemoryPool
from suffice.engines.sharded_pool import DaskShards, Shard, ShardedPool, ShardPrior, shard_memory
from suffice.engines.variance_pool import LargestVariance
from suffice.engines.worker_rows import WorkerRows, local_client
from suffice.models.gaussian_state import KernelState
from suffice.models.kernels import GaussianKernel
from tables import publish, table

FEATURES, NOISE, LENGTH, WORKERS, WIDTH = 8, 0.01, 2.0, 2, 512


class Picked(NamedTuple):
    """What a run of picks took.

    Attributes:
        items: The picks.
        blocks: Planned blocks, one exchange each.
        seconds: From the pool where it is kept to the last pick.
        processor: Seconds of processor time of the processes that follow the pool.
        start: Seconds to bring the pool there.
        sent: Bytes to all shards.
        received: Bytes from them.
    """

    items: list[int]
    blocks: int
    seconds: float
    processor: float
    start: float
    sent: int = 0
    received: int = 0


def points(m: int) -> Any:
    return np.random.default_rng(0).standard_normal((m, FEATURES), dtype=np.float32).astype(np.float64)


def new_state(n: int) -> KernelState:
    return KernelState(GaussianKernel((LENGTH,)), NOISE, FEATURES, capacity=n + 8)


def planned(state: KernelState, pool: Any, size: int, n: int) -> tuple[list[int], int]:
    planner, found, blocks = LargestVariance(state, pool, size), list[int](), 0
    while len(found) < n:
        new = planner.propose(n - len(found))
        block = planner.block(new)
        assert block is not None
        state.extend(block, np.zeros(len(new)))
        planner.take(new)
        found += new.tolist()
        blocks += 1
    return found, blocks


def in_memory(m: int, n: int) -> Picked:
    X, state = points(m), new_state(n)
    start, processor = time.perf_counter(), time.process_time()
    pool = MemoryPool(KernelRows(state, X, n, np.float32), np.float32)
    opened = time.perf_counter() - start
    found, blocks = planned(state, pool, m, n)
    # The last block is followed too: workers are told of it with the next question, which nobody asks.
    return Picked(found, blocks, time.perf_counter() - start - opened, time.process_time() - processor, opened)


def on_workers(m: int, n: int) -> Picked:
    X, state = points(m), new_state(n)
    with local_client(WORKERS) as client:
        # The first use of a worker imports modules.
        client.run(_warm)
        start = time.perf_counter()
        rows = WorkerRows(client, X)
        prior = ShardPrior((LENGTH,), NOISE, n, "float32")
        shards = DaskShards(client, rows.parts, rows.sizes, prior)
        opened = time.perf_counter() - start
        before = sum(client.run(time.process_time).values())
        start = time.perf_counter()
        found, blocks = planned(state, ShardedPool(state, shards, single=True), m, n)
        seconds = time.perf_counter() - start
        processor = sum(client.run(time.process_time).values()) - before
    return Picked(found, blocks, seconds, processor, opened, shards.bytes_sent, shards.bytes_received)


def _warm() -> None:
    Shard(0, np.zeros((4, FEATURES)), ShardPrior((LENGTH,), NOISE, 4, "float32"))


def exchange_times(counts: tuple[int, ...], n: int, repeats: int) -> dict[int, tuple[float, float]]:
    """Median processor time of this process for an exchange with so many small shards, and for planning a block."""
    found: dict[int, tuple[float, float]] = {}
    with local_client(WORKERS) as client:
        client.run(_warm)
        for count in counts:
            X = points(1024 * count)
            parts = np.split(X, count)
            prior = ShardPrior((LENGTH,), NOISE, n, "float32")
            shards = DaskShards(client, parts, [1024] * count, prior)
            state, taken, exchanges = new_state(n), list[float](), list[float]()
            step = shards.step

            def timed(*given: Any, step: Any = step, exchanges: list[float] = exchanges) -> Any:
                begun = time.process_time()
                answer = step(*given)
                exchanges.append(time.process_time() - begun)
                return answer

            shards.step = timed  # type: ignore[method-assign,assignment]
            pool = ShardedPool(state, shards, single=True)
            planner = LargestVariance(state, pool, 10**6)
            for _ in range(repeats):
                begun, before = time.process_time(), len(exchanges)
                new = planner.propose(40)
                taken.append(time.process_time() - begun - sum(exchanges[before:]))
                block = planner.block(new)
                assert block is not None
                state.extend(block, np.zeros(len(new)))
                planner.take(planner.propose(WIDTH))
            found[count] = float(np.median(exchanges)), float(np.median(taken))
    return found


def measured(kind: str, m: int, n: int) -> Picked:
    """One run, in a process of its own."""
    command = [sys.executable, __file__, "--measure", kind, str(m), str(n)]
    answer = subprocess.run(command, check=True, capture_output=True, text=True)
    return Picked(*json.loads(answer.stdout.splitlines()[-1]))


def plan(per_row: float, blocks: int, exchange: tuple[float, float, float], n: int) -> str:
    """The calculated plan for a billion rows.

    Args:
        per_row: Seconds for each row of a worker, for all picks.
        blocks: Number of blocks.
        exchange: Seconds of this process for an exchange without shards, for each shard, and for planning a block.
        n: Picks.
    """
    fixed, each, planning = exchange
    m, header = 10**9, ["workers", "memory of a worker, GB", "s for rows", "s for exchanges and planning", "s in all"]
    header.append("sent and received, MB")
    per_item = 8 * FEATURES + shard_memory(FEATURES, n, 4)
    sent = 8 * n * (FEATURES + (n + 1) / 2)
    back = blocks * WIDTH * 8 * (FEATURES + 2)
    rows = []
    for workers in (25, 100, 400, 1600):
        compute, overhead = per_row * m / workers, blocks * (fixed + each * workers + planning)
        rows.append(
            [
                f"{workers:,}",
                f"{per_item * m / workers / 1e9:.1f}",
                f"{compute:.0f}",
                f"{overhead:.1f}",
                f"{compute + overhead:.0f}",
                f"{workers * sent / 1e6:.0f} and {workers * back / 1e6:.0f}",
            ]
        )
    best = float(np.sqrt(per_row * m / (blocks * each)))
    return (
        f"Calculated for 1,000,000,000 x {FEATURES}, {n} picks in {blocks} blocks, single precision, with "
        f"{1e6 * per_row:.2f} us of a worker for each of its rows, and in the process of the learner "
        f"{1e3 * fixed:.1f} ms for an exchange, {1e3 * each:.2f} ms more for each worker, and {1e3 * planning:.0f} ms "
        "to plan a block:\n\n"
        + table(header, rows)
        + f"\n\nMore workers make it faster up to about {best:,.0f}; from there on the messages of this process take "
        f"longer than the rows. With 100 workers, {blocks * (fixed + 100 * each + planning):.1f} s of "
        f"{per_row * m / 100 + blocks * (fixed + 100 * each + planning):.0f} s are not spent on rows. "
        "This process keeps up to 64 bytes for each item, 64 GB."
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--measure", nargs=3, help="one run: memory or dask, rows, picks")
    parser.add_argument("--small", action="store_true", help="small pools")
    parser.add_argument("--repeats", type=int, default=3, help="runs of the smaller pool")
    given, _ = parser.parse_known_args()
    if given.measure:
        kind, m, n = given.measure[0], int(given.measure[1]), int(given.measure[2])
        print(json.dumps((in_memory if kind == "memory" else on_workers)(m, n)))
        return
    scale, n = (100, 200) if given.small else (1, 500)
    rows, seconds_per_row, blocks = [], 0.0, 1
    for m, repeats in ((10**6 // scale, given.repeats), (5 * 10**6 // scale, 1)):
        runs: dict[str, list[Picked]] = {"memory": [], "dask": []}
        for _ in range(repeats):
            for kind, found in runs.items():
                found.append(measured(kind, m, n))
        one, two = ([run.seconds for run in runs[kind]] for kind in runs)
        used = [float(np.median([run.processor for run in runs[kind]])) for kind in runs]
        first, last = runs["memory"][0], runs["dask"][-1]
        blocks = last.blocks
        seconds_per_row = float(np.median([run.processor for run in runs["dask"]])) / m
        same = "yes" if all(run.items == first.items for kind in runs for run in runs[kind]) else "no"
        rows.append(
            [
                f"{m:,} x {FEATURES}",
                f"{np.median(one):.1f}",
                f"{np.median(two):.1f}",
                f"{np.median(two) / np.median(one):.2f}",
                f"{used[1] / used[0]:.2f}",
                f"{np.median([run.start for run in runs['dask']]):.1f}",
                str(blocks),
                f"{last.sent / blocks / 1e3:.0f}",
                f"{last.received / blocks / 1e3:.0f}",
                same,
            ]
        )
        print(rows[-1], flush=True)
    header = ["pool", "in memory, s", f"{WORKERS} workers, s", "ratio", "ratio of processor time", "pool to workers, s"]
    header += ["blocks", "kB sent per block", "kB received per block", "same picks"]
    times = exchange_times((2, 16, 64), n, 8)
    counts = sorted(times)
    slope = (times[counts[-1]][0] - times[counts[0]][0]) / (counts[-1] - counts[0])
    fixed = max(0.0, times[counts[0]][0] - counts[0] * slope)
    planning = float(np.median([each for _, each in times.values()]))
    said = ", ".join(f"{count} shards {1e3 * times[count][0]:.1f} ms" for count in counts)
    text = (
        f"{n} picks of largest variance, single precision, {WORKERS} workers and this process on "
        f"{os.cpu_count()} shared processors. Other work on them affects seconds, and processor time less. Median of "
        f"{given.repeats} for the smaller pool, one run of the larger. One message goes to each worker and one comes "
        "back for each block.\n\n"
        + table(header, rows)
        + f"\n\nProcessor time of the process of the learner (with the scheduler) for one exchange: {said}.\n\n"
        + plan(seconds_per_row, blocks, (fixed, slope, planning), n)
    )
    publish("dask-pool", text)


if __name__ == "__main__":
    main()
