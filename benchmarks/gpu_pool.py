"""Picks of largest variance from a pool on a graphics card, against the bandwidth limit of the plain algorithm.

The plain algorithm reads all rows once for each pick: ``4 m t`` bytes at pick ``t`` in single precision. The least time
for that is computed from the speed of a reduction over a large array, measured in the same run. With ``--write FILE``
the table is written.

``--classes`` measures entropy and BALD of logistic regression with two and four classes instead. Every pick scores all
points under the posterior after the last label; the least time is that to read the features once. The same is measured
through ``ActiveLearner``: one call of ``ask`` and one of ``tell`` for each label.

Run: ``python benchmarks/gpu_pool.py`` (needs a CUDA device; ``--small`` tries it on any machine).
"""

import argparse
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

import suffice as sf
from suffice.acquisition import class_scores
from suffice.criteria import Budget
from suffice.engines.class_pool import ScoredPool, UncertainPool
from suffice.engines.torch_pools import TorchClasses, TorchPool, TorchSums
from suffice.engines.variance_pool import LargestVariance
from suffice.engines.variance_reduction import SAMPLE, LargestReduction, sample_of
from suffice.models import BayesianLogistic
from suffice.models.gaussian_state import KernelState, block_of
from suffice.models.kernels import GaussianKernel
from suffice.models.laplace import laplace

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
        new = planner.propose(n - len(found))
        block = planner.block(new)
        state.extend(block_of(state, pool.features(new)) if block is None else block, np.zeros(len(new)))
        planner.take(new)
        found += new.tolist()
    wait(points)
    return found, time.perf_counter() - start


def class_picks(points: Any, classes: int, n: int, pool: Any) -> tuple[list[int], float, float]:
    """Picks one by one with labels of a fixed truth, seconds, and seconds of them that the posterior took."""
    labels = partial(true_labels, classes)
    first = points[: 20 * classes].double().cpu().numpy()
    state, found, learning = laplace(first, labels(first), classes, 1.0), list[int](), 0.0
    pool.take(np.arange(len(first)))
    wait(points)
    start = time.perf_counter()
    while len(found) < n:
        new = pool.nearest(state, 1)
        pool.take(new)
        row, before = points[new].double().cpu().numpy(), time.perf_counter()
        state.extend(row, labels(row))
        learning += time.perf_counter() - before
        found += new.tolist()
    wait(points)
    return found, time.perf_counter() - start, learning


def true_labels(classes: int, rows: Any) -> Any:
    """The class of each row under a fixed truth."""
    return np.argmax(rows @ np.random.default_rng(1).normal(size=(classes, rows.shape[1])).T, axis=1)


def learner_time(points: Any, name: str, classes: int, n: int) -> float:
    """Seconds for a label by ``ask`` and ``tell`` of the public learner, median."""
    learner = sf.ActiveLearner(
        BayesianLogistic(), points, acquisition=name, criterion=Budget(len(points)), dtype="float32", random_share=0.0
    )
    first = np.arange(20 * classes)
    learner.tell(first, true_labels(classes, points[: len(first)].double().cpu().numpy()))
    taken = []
    for _ in range(n):
        before = time.perf_counter()
        item = learner.ask()
        asked = time.perf_counter() - before
        label = true_labels(classes, points[torch.as_tensor(item, device=points.device)].double().cpu().numpy())
        before = time.perf_counter()
        learner.tell(item, label)
        taken.append(asked + time.perf_counter() - before)
    return float(np.median(taken))


def class_table(pool: Any, speed: float, scale: int) -> list[str]:
    """The table of entropy and BALD."""
    lines = [
        "| pool | classes | acquisition | picks | ms per pick | of it the posterior | least time to read, ms | ratio | "
        "ms per label, `ActiveLearner` |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    points, n = pool(10**7 // scale), 100
    small = points[: 200_000 // min(scale, 100)]
    limit = 1e3 * 4.0 * points.numel() / speed
    notes = []
    for classes in (2, 4):
        for name in ("entropy", "bald"):
            score = partial(class_scores, name=name)
            class_picks(points, classes, 3, TorchClasses(points, name, score))
            _, seconds, learning = class_picks(points, classes, n, TorchClasses(points, name, score))
            each, told = 1e3 * seconds / n, 1e3 * learner_time(points, name, classes, n)
            lines.append(
                f"| {len(points):,} x {FEATURES} | {classes} | {name} | {n} | {each:.2f} | {1e3 * learning / n:.2f} | "
                f"{limit:.2f} | {each / limit:.1f} | {told:.2f} |"
            )
            print(lines[-1], flush=True)
            rows = small.double().cpu().numpy()
            memory = (
                UncertainPool(rows, averaged=True) if (classes, name) == (2, "entropy") else ScoredPool(rows, score)
            )
            one = class_picks(small, classes, 50, TorchClasses(small, name, score))[0]
            two, taken, _ = class_picks(small, classes, 50, memory)
            same = next((k for k, (a, b) in enumerate(zip(one, two, strict=True)) if a != b), len(one))
            notes.append(f"{name} with {classes} classes {same} of 50 ({1e3 * taken / 50:.1f} ms per pick)")
    text = f"Pool of {len(small):,}: the first picks that are those of numpy in memory in float64: {', '.join(notes)}."
    return [*lines, "", f"{text} Read speed: {speed / 1e12:.2f} TB/s."]


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
    parser.add_argument("--classes", action="store_true", help="entropy and BALD of classifiers")
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

    if given.classes:
        report("\n".join(class_table(pool, speed, scale)), given.write)
        return
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
    title = "picks by the reduction of the mean variance"
    lines += ["", f"| pool | {title} | seconds | bandwidth limit of the plain algorithm, s | ratio |"]
    lines += ["| --- | --- | --- | --- | --- |"]
    reductions(pool(200_000 // scale), 200 // scale, single=True)
    for m, most in ((10**6 // scale, 1000), (10**7 // scale, 1000)):
        n, points = min(most, m // 5), pool(m)
        seconds = reductions(points, n, single=True)[1]
        # All rows, and the covariances with the sample, once for each pick.
        limit = 4.0 * m * n * ((n - 1) / 2.0 + SAMPLE) / speed
        lines.append(f"| {m:,} x {FEATURES} | {n} | {seconds:.2f} | {limit:.2f} | {seconds / limit:.2f} |")
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
    report("\n".join(lines), given.write)


def report(table: str, file: Path | None) -> None:
    print(table)
    if file is not None:
        file.write_text(table + "\n")


if __name__ == "__main__":
    main()
