"""The public ``simulate`` on a pool in the memory of a graphics card, against the engine that makes its picks.

The engine is timed from the pool on the device to the last label: candidates, planned blocks, posterior. ``simulate``
does the same and everything around it: it validates and copies the pool, records every step, and applies a rule.
``record=Budget`` records what the rule reads, ``rule=Budget`` ends the run by it; the pool is a tensor on the device,
in the last row an array in memory that is copied there. Median of several runs, taken in turn; every run must make the
picks of the engine. With ``--write FILE`` the table is written.

Run: ``python benchmarks/gpu_simulate.py --rows 10000000 --picks 1000`` (on a CUDA device if there is one;
``--device cpu --rows 200000 --picks 100`` tries it on any machine).
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch

import suffice as sf
from suffice.engines.torch_pools import TorchPool
from suffice.engines.variance_pool import LargestVariance
from suffice.models import GaussianProcess
from suffice.models.gaussian_state import KernelState, block_of
from suffice.models.kernels import GaussianKernel
from suffice.models.threads import one_thread
from tables import table

FEATURES, NOISE, LENGTH, INITIAL = 8, 0.01, 2.0, 8
HEADER = ["run", "seconds", "ratio to the engine"]


def engine_picks(points: Any, y: Any, n: int, *, single: bool) -> list[int]:
    """The picks of the engine alone, with the labels learned block by block."""
    state = KernelState(GaussianKernel((LENGTH,)), NOISE, points.shape[1], capacity=INITIAL + n)
    pool = TorchPool(state, points, single=single)
    planner, first, picks = LargestVariance(state, pool, len(points)), np.arange(INITIAL), list[int]()
    state.extend(block_of(state, pool.features(first)), y[first])
    planner.take(first)
    while len(picks) < n:
        items = planner.propose(n - len(picks))
        block = planner.block(items)
        assert block is not None
        state.extend(block, y[items])
        planner.take(items)
        picks += items.tolist()
    return picks


def simulated_picks(points: Any, y: Any, n: int, dtype: Any, **asked: Any) -> list[int]:
    """The picks of the public call."""
    trace = sf.simulate(
        GaussianProcess(LENGTH, NOISE),
        points,
        y,
        initial=np.arange(INITIAL),
        acquisition="variance",
        dtype=dtype,
        **asked,
    )
    assert len(trace) == n
    return [int(item) for item in trace.indices]


def timed(work: Callable[[], list[int]], device: str) -> tuple[list[int], float]:
    """The result, and seconds until the device has finished."""
    _wait(device)
    start = time.perf_counter()
    picks = work()
    _wait(device)
    return picks, time.perf_counter() - start


def _wait(device: str) -> None:
    if torch.device(device).type == "cuda":
        torch.cuda.synchronize()


def measured(given: argparse.Namespace) -> str:
    """The table."""
    device, n, single = given.device, given.picks, not given.double
    generator = torch.Generator(device=device).manual_seed(0)
    points = torch.randn((given.rows, FEATURES), generator=generator, device=device)
    # The targets have mean 0 and deviation 1, as the model's prior.
    y = (2.0**0.5 * torch.sin(2.0 * points[:, 0])).double().cpu().numpy()
    host = points.cpu().numpy()
    dtype = np.float32 if single else np.float64

    def engine() -> list[int]:
        with one_thread():
            return engine_picks(points, y, n, single=single)

    def run(X: Any, **asked: Any) -> Callable[[], list[int]]:
        return lambda: simulated_picks(X, y, n, dtype, device=device, **asked)

    works = {
        "engine": engine,
        "simulate": run(points, steps=n),
        "simulate, record=()": run(points, steps=n, record=()),
        "simulate, record=Budget": run(points, steps=n, record=sf.Budget(INITIAL + n)),
        "simulate, rule=Budget": run(points, rule=sf.Budget(INITIAL + n)),
        "simulate, pool copied from memory": run(host, steps=n),
    }
    # The first calls load libraries and kernels.
    for work in works.values():
        timed(work, device)
    seconds: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(given.repeat):
        expected: list[int] = []
        for name, work in works.items():
            picks, taken = timed(work, device)
            seconds[name].append(taken)
            expected = expected or picks
            assert picks == expected, f"{name} picks otherwise"
    base = median(seconds["engine"])
    rows = [
        [name, f"{median(taken):.3f}", "" if name == "engine" else f"{median(taken) / base:.2f}"]
        for name, taken in seconds.items()
    ]
    where = torch.cuda.get_device_name() if torch.device(device).type == "cuda" else "processor"
    kind = "single" if single else "double"
    note = f"{n:,} picks from {given.rows:,} x {FEATURES}, {kind} precision, {where}; median of {given.repeat} runs."
    return f"{table(HEADER, rows)}\n\n{note}"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=10**7, help="rows of the pool")
    parser.add_argument("--picks", type=int, default=1000, help="labels after the initial ones")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu", help="device of torch")
    parser.add_argument("--double", action="store_true", help="double precision")
    parser.add_argument("--repeat", type=int, default=5, help="runs of each kind")
    parser.add_argument("--write", type=Path, help="file for the table")
    given = parser.parse_args()
    text = measured(given)
    print(text)
    if given.write is not None:
        given.write.write_text(text + "\n")


if __name__ == "__main__":
    main()
