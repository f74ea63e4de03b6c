"""How long it takes to replay every stopping rule on a recorded run, and how large the record is."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import time
from dataclasses import fields, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import suffice as sf
from suffice.criteria import pool_facts
from suffice.testing import example_steps
from suffice.trace import Trace
from suffice_research.compare.scoring import Replayer, RunCase, scores
from suffice_research.recommendation.compared_rules import for_trace
from tables import publish, table

STEPS, STOP_SET, POOL = 3000, 2000, 500
# The plain replays are timed on the first steps only: they take minutes.
PLAIN_STEPS = 300


def made_up(steps: int) -> Trace:
    """A run with every field of a step: a classifier of two classes that moves less and less, in all its digits."""
    names = [spec.name for spec in fields(sf.Step) if spec.name not in ("n_labelled", "estimated")]
    few = example_steps(100)
    columns = {name: np.array([getattr(step, name) for step in few]) for name in names}
    measures: dict[str, Any] = {name: np.resize(each, (steps, *each.shape[1:])) for name, each in columns.items()}
    rng = np.random.default_rng(0)
    logits = (
        2.0 * rng.normal(size=STOP_SET) + rng.normal(size=(steps, STOP_SET)) / np.sqrt(1.0 + np.arange(steps))[:, None]
    )
    p = 1.0 / (1.0 + np.exp(logits))
    stop = np.stack([p, 1.0 - p], axis=2).astype(np.float16)
    pool = stop[:, :POOL]
    classes = pool.argmax(axis=2)
    for t in range(steps):
        for name, value in pool_facts(pool[t], before=classes[max(t - 1, 0)]).items():
            measures[name][t] = value
    counts = np.arange(1, steps + 1)
    measures |= {"stop_probabilities": stop, "stop_confidence": stop.max(axis=2).mean(axis=1, dtype=np.float64)}
    measures |= {"seconds": 0.5 * counts, "cost": 10.0 + counts, "expected_error": 0.1 + 1.0 / counts}
    pair = measures.pop("kl_new_old"), measures.pop("kl_old_new")
    error: Any = 0.1 + 1.0 / (1.0 + 0.05 * counts)
    return replace(Trace.of_divergences(*pair, first=10), error=error, predictive_error=error, measures=measures)


def first(trace: Trace, count: int) -> Trace:
    names = ("indices", "n_labelled", "kl_new_old", "kl_old_new", "error", "predictive_error", "wrong_share")
    measures = {name: values[:count] for name, values in trace.measures.items()}
    return replace(trace, measures=measures, **{name: getattr(trace, name)[:count] for name in names})


def plain_seconds(trace: Trace) -> float:
    """Every setting of every rule by a replay of its own."""
    start = time.process_time()
    for entry in for_trace(trace):
        if entry.make is not None:
            for setting in entry.settings:
                trace.replay(entry.rule(setting))
    return time.process_time() - start


def our_seconds(trace: Trace) -> float:
    start = time.process_time()
    replayer = Replayer(trace)
    for entry in for_trace(trace):
        if entry.make is not None:
            replayer.replay(entry)
    return time.process_time() - start


def megabytes(trace: Trace) -> float:
    with TemporaryDirectory() as folder:
        path = Path(folder, "run.npz")
        trace.save(path)
        return path.stat().st_size / 1e6


def main() -> None:
    trace = made_up(STEPS)
    entries = [entry for entry in for_trace(trace) if entry.make is not None]
    settings = sum(len(entry.settings) for entry in entries)
    taken, short = our_seconds(trace), first(trace, PLAIN_STEPS)
    ratio = plain_seconds(short) / our_seconds(short)
    start = time.process_time()
    scores(RunCase("made up", "none", 0), trace)
    judged = time.process_time() - start
    replayer = Replayer(trace)
    replayer.replay(entries[0])
    replayer.replay(next(entry for entry in entries if entry.name == "Budget"))
    rows = []
    for entry in entries:
        start = time.process_time()
        found = replayer.replay(entry)
        seconds = time.process_time() - start
        rows.append(
            [entry.name, str(len(entry.settings)), f"{1e6 * found.seconds_per_step:.0f}", f"{1e3 * seconds:.0f}"]
        )
    head = (
        f"{len(entries)} rules with {settings} settings in all, on a run of {STEPS} steps with a stop set of {STOP_SET}"
        f" items and two classes: {taken:.1f} s for all replays, {judged:.1f} s with all scores. One replay of its own "
        f"for each setting takes {ratio:.0f} times as long (on the first {PLAIN_STEPS} steps, in the same run). "
        f"The record is {megabytes(trace):.1f} MB on disk."
    )
    header = ["rule", "settings", "of the rule alone, microseconds a step", "all settings, ms"]
    publish("replay", head + "\n\n" + table(header, rows))


if __name__ == "__main__":
    main()
