"""Picks of largest variance from a pool on a graphics card, against the bandwidth limit of the plain algorithm.

The plain algorithm reads all rows once for each pick: ``4 m t`` bytes at pick ``t`` in single precision. The least time
for that is computed from the speed of a reduction over a large array, measured in the same run. With ``--write FILE``
the table is written.

Run: ``python benchmarks/gpu_pool.py`` (needs a CUDA device; ``--small`` tries it on any machine).
"""

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from suffice.engines.torch_pool import TorchPool, TorchSums
from suffice.engines.variance_pool import LargestVariance
from suffice.engines.variance_reduction import SAMPLE, LargestReduction, sample_of
from suffice.models.gaussian_state import KernelState, block_of
from suffice.models.kernels import GaussianKernel

FEATURES, NOISE, LENGTH = 8, 0.01, 2.0


def picks(points: Any, n: int, *, single: bool) -> tuple[list[int], int, float]:
    """Picks, number of blocks, and seconds from the pool on the device to the last pick, posterior included."""
    state = KernelState(GaussianKernel((LENGTH,)), NOISE, points.shape[1], capacity=n + 8)
    wait(points)
    start = time.perf_counter()
    pool = TorchPool(state, points, single=single)
    planner, found, blocks = LargestVariance(state, pool, len(points)), list[int](), 0
    while len(found) < n:
        new = planner.propose(n - len(found))
        block = planner.block(new)
        assert block is not None
        state.extend(block, np.zeros(len(new)))
        planner.take(new)
        found += new.tolist()
        blocks += 1
    wait(points)
    return found, blocks, time.perf_counter() - start


def reductions(points: Any, n: int, *, single: bool) -> tuple[list[int], float]:
    """Picks by the reduction of the mean variance, and seconds."""
    state = KernelState(GaussianKernel((LENGTH,)), NOISE, points.shape[1], capacity=n + 8)
    sample = sample_of(len(points), np.random.default_rng(0))
    wait(points)
    start = time.perf_counter()
    pool = TorchSums(state, points, sample, n, single=single)
    planner, found = LargestReduction(state, pool), list[int]()
    while len(found) < n:
        new = planner.propose(1)
        state.extend(block_of(state, pool.features(new)), np.zeros(1))
        planner.take(new)
        found += new.tolist()
    wait(points)
    return found, time.perf_counter() - start


def wait(points: Any) -> None:
    if points.is_cuda:
        torch.cuda.synchronize()


def read_speed(device: str, size: int) -> float:
    """Bytes per second of the sum of a large array, the fastest of several."""
    array, taken = torch.ones(size, device=device), []
    for _ in range(8):
        wait(array)
        start = time.perf_counter()
        array.sum()
        wait(array)
        taken.append(time.perf_counter() - start)
    return 4.0 * size / min(taken)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--small", action="store_true", help="small pools, on any machine")
    parser.add_argument("--write", type=Path, help="file for the table")
    given = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cpu" and not given.small:
        raise SystemExit("no CUDA device; --small tries the benchmark on the processor")
    scale = 1000 if given.small else 1
    speed = read_speed(device, 10**7 if given.small else 4 * 10**9)
    generator = torch.Generator(device=device).manual_seed(0)

    def pool(m: int) -> Any:
        return torch.randn((m, FEATURES), generator=generator, device=device)

    picks(pool(20_000), 100, single=True)
    lines = [
        "| pool | picks | blocks | seconds | bandwidth limit of the plain algorithm, s | ratio |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for m, most in ((10**6 // scale, 1000), (10**7 // scale, 1000), (5 * 10**7 // scale, 500)):
        n = min(most, m // 5)
        points = pool(m)
        runs = [picks(points, n, single=True) for _ in range(3)]
        seconds = float(np.median([run[2] for run in runs]))
        limit = 4.0 * m * n * (n - 1) / 2.0 / speed
        lines.append(
            f"| {m:,} x {FEATURES} | {n} | {runs[0][1]} | {seconds:.2f} | {limit:.2f} | {seconds / limit:.2f} |"
        )
        print(lines[-1], flush=True)
        del points, runs
    lines += ["", "| pool | picks by the reduction of the mean variance | seconds | least time to read, s |"]
    lines += ["| --- | --- | --- | --- |"]
    for m, most in ((10**6 // scale, 1000), (10**7 // scale, 1000)):
        n, points = min(most, m // 5), pool(m)
        seconds = reductions(points, n, single=True)[1]
        # All rows, and the covariances with the sample, once for each pick.
        limit = 4.0 * m * n * ((n - 1) / 2.0 + SAMPLE) / speed
        lines.append(f"| {m:,} x {FEATURES} | {n} | {seconds:.2f} | {limit:.2f} |")
        print(lines[-1], flush=True)
        del points
    points = pool(200_000 // scale * (10 if given.small else 1))
    n = min(1000, len(points) // 5)
    one, two = (picks(points, n, single=single)[0] for single in (True, False))
    same = next((k for k, (a, b) in enumerate(zip(one, two, strict=True)) if a != b), n)
    lines += ["", f"Pool of {len(points):,}: the first {same} of {n} picks are those of double precision, and"]
    lines[-1] += f" {len(set(one) & set(two))} of {n} are the same in any order. Read speed: {speed / 1e12:.2f} TB/s."
    n = min(300, n)
    one, two = (reductions(points, n, single=single)[0] for single in (True, False))
    same = next((k for k, (a, b) in enumerate(zip(one, two, strict=True)) if a != b), n)
    lines[-1] += f" By the reduction of the mean variance the first {same} of {n} picks are the same."
    print("\n".join(lines))
    if given.write is not None:
        given.write.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
