"""How fast `suffice.acquisition.batchbald` is: against its authors' code, and where that comes from.

One thread; every ratio is measured in one run. The authors' `batchbald_redux` runs once, in float64 as in its own
example, ours several times. Steps of theirs by samples are timed on a tenth of the pool, times ten. With SUFFICE_DATA
set the probabilities are those of a network on MNIST, else random numbers of the same shape.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import importlib
import time
from functools import partial
from typing import Any

import numpy as np
import torch

from batchbald_data import Probabilities, early, exchangeable, trained
from suffice.acquisition import BatchBALD, bald, batchbald
from suffice.acquisition.batchbald import Configurations
from suffice.acquisition.scores import ArrayCandidates
from tables import publish, table
from timing import seconds

#: Configurations of ours count the classes of the candidate; samples of theirs are of the batch alone.
CONFIGURATIONS, SAMPLES = 100_000, 10_000
SPEED = ["N = 59,000, K = 20, C = 10", "suffice", "batchbald_redux", "ratio", "wanted"]
PARTS = [
    "pool",
    "picks",
    "every gain",
    "lazy",
    "first pass of it",
    "arithmetic",
    "laziness",
    "gains worked out",
    "bounded",
]
ERROR = ["error of a gain next to 8 picks, nats", "largest gain", "suffice", "batchbald_redux"]


def logarithms(probs: Probabilities) -> Any:
    # Theirs has no zeros: 0 log 0 is not a number there.
    return torch.from_numpy(np.log(np.maximum(probs.astype(np.float64), 1e-40)))


def redux(probs: Probabilities, size: int) -> tuple[list[int], float]:
    """Picks of theirs, and how long they took."""
    module, logs = importlib.import_module("batchbald_redux.batchbald"), logarithms(probs)
    start = time.perf_counter()
    found = module.get_batchbald_batch(logs, size, SAMPLES, dtype=torch.float64)
    return found.indices, time.perf_counter() - start


def redux_gains(probs: Probabilities, picks: Any, which: Any, seed: int = 0) -> Any:
    """Gains of some candidates by their samples."""
    batchbald_module = importlib.import_module("batchbald_redux.batchbald")
    module = importlib.import_module("batchbald_redux.joint_entropy")
    torch.manual_seed(seed)
    logs = logarithms(probs[picks])
    chosen = logarithms(probs[which])
    sampled = module.SampledJointEntropy.sample(logs.exp(), SAMPLES)
    entropies = sampled.compute_batch(chosen, output_entropies_B=torch.empty(len(which), dtype=torch.float64))
    given = batchbald_module.compute_conditional_entropy(chosen)
    return (entropies - sampled.compute() - given).numpy()


def redux_late_step(probs: Probabilities, picks: Any) -> float:
    """How long one of their steps by samples takes."""
    part = np.arange(0, len(probs), 10)
    return 10.0 * seconds(lambda: redux_gains(probs, picks, part), times=1)


def speed_rows(name: str, probs: Probabilities) -> list[list[str]]:
    rows, took = [], {}
    for size, wanted in ((4, 200), (5, 100)):
        picks, took[size] = redux(probs, size)
        batch = batchbald(probs, size, configurations=CONFIGURATIONS)
        assert batch.indices.tolist() == picks, f"redux picks {picks}, suffice {batch.indices}"
        ours = seconds(partial(batchbald, probs, size, configurations=CONFIGURATIONS))
        rows.append(row(f"{name}, {size} picks, exact, the same", ours, took[size], wanted))
    batch = batchbald(probs, 10, configurations=CONFIGURATIONS)
    ours = seconds(partial(batchbald, probs, 10, configurations=CONFIGURATIONS), times=3)
    theirs = took[5] + 5 * redux_late_step(probs, batch.indices[:7])
    rows.append(row(f"{name}, 10 picks, {10 - batch.exact} of them by samples", ours, theirs, 20))
    return rows


def row(work: str, ours: float, theirs: float, wanted: int) -> list[str]:
    return [work, f"{ours:.2f} s", f"{theirs:.0f} s", f"**{theirs / ours:.0f}x**", f"{wanted}x"]


def part_row(name: str, probs: Probabilities, size: int) -> list[str]:
    """Every gain against the lazy choice, with the same picks."""

    def run(*, lazy: bool) -> BatchBALD:
        return batchbald(probs, size, configurations=CONFIGURATIONS, lazy=lazy)

    batch, every = run(lazy=True), run(lazy=False)
    assert batch.indices.tolist() == every.indices.tolist(), f"lazy {batch}, eager {every}"
    lazy = seconds(lambda: run(lazy=True), times=3)
    eager = seconds(lambda: run(lazy=False), times=1)
    first = seconds(lambda: bald(probs))
    plain = step_ratio(probs, batch.indices[:4])
    return [
        name,
        f"{size}",
        f"{eager:.1f} s",
        f"{lazy:.2f} s",
        f"{100 * first / lazy:.0f} %",
        f"{plain:.1f}x",
        f"{eager / lazy:.0f}x",
        f"{batch.evaluated:,} of {every.evaluated:,}",
        f"{batch.bounded:,}",
    ]


def step_ratio(probs: Probabilities, picks: Any) -> float:
    """Time of theirs over ours for the gains of a twentieth of the pool next to 4 picks, with all configurations."""
    module = importlib.import_module("batchbald_redux.joint_entropy")
    which = np.arange(0, len(probs), 20)
    chosen, out = logarithms(probs[which]), torch.empty(len(which), dtype=torch.float64)
    theirs = module.ExactJointEntropy.empty(probs.shape[1], dtype=torch.float64).add_variables(logarithms(probs[picks]))
    pool, labels = ArrayCandidates(probs), followed(probs, picks, SAMPLES)
    weights = pool.weights(labels.rows)
    return seconds(lambda: theirs.compute_batch(chosen, output_entropies_B=out), times=1) / seconds(
        lambda: pool.information(which, weights), times=1
    )


def followed(probs: Probabilities, picks: Any, most: int, seed: int = 0) -> Configurations:
    pool, labels = ArrayCandidates(probs), Configurations.of_nothing(probs.shape[1])
    rng = np.random.default_rng(seed)
    for pick in picks:
        labels = labels.joined(pool.one(int(pick)), most=most, negligible=1e-14, rng=rng)
    return labels


def error_row(name: str, probs: Probabilities) -> list[str]:
    """Root mean square error next to 8 picks, of 32 candidates and 5 seeds, against 1,000,000 configurations."""
    picks = batchbald(probs, 8, configurations=CONFIGURATIONS).indices
    which = np.argsort(-bald(probs))[::500][:32]
    pool = ArrayCandidates(probs)

    def ours(most: int, seed: int) -> Any:
        return pool.information(which, pool.weights(followed(probs, picks, most, seed).rows))

    true = ours(1_000_000, 99)
    found = [np.array([ours(SAMPLES, seed) for seed in range(5)])]
    found.append(np.array([redux_gains(probs, picks, which, seed) for seed in range(5)]))
    errors = [float(np.sqrt(((gains - true) ** 2).mean())) for gains in found]
    return [name, f"{true.max():.3f}", *(f"{error:.1e}" for error in errors)]


def main() -> None:
    torch.set_num_threads(1)
    nets = {"trained net": trained(), "net after 5 steps": early()}
    speed = [entry for name, probs in nets.items() for entry in speed_rows(name, probs)]
    pools = {**nets, "all drawn alike": exchangeable()}
    parts = [part_row(name, probs, size) for size in (4, 5) for name, probs in pools.items()]
    parts.append(part_row("trained net", nets["trained net"], 10))
    errors = [error_row(name, probs) for name, probs in pools.items()]
    publish("batchbald", "\n\n".join([table(SPEED, speed), table(PARTS, parts), table(ERROR, errors)]))


if __name__ == "__main__":
    main()
