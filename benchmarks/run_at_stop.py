"""What `suffice run` states at the stop, and what it measures on the rows that were held back.

The command is called on data sets of classes that were not used for the stopping rule, as a user would call it: with a
CSV file, the default price, and half of the rows to measure the error. The sets are the *last* ones of
``evaluation_sets.py``, with at most 3000 rows.

    python benchmarks/run_at_stop.py [--sets pima wells] [--seeds 2] [--processes 2] [--write]
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import csv
import json
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, Final

import numpy as np

from evaluation_sets import evaluation_set, group_names
from tables import publish, table

ROWS: Final = 3000
LABELS: Final = 600


def run(folder: Path, job: tuple[str, int]) -> tuple[list[str], tuple[float, float, float, float]]:
    """One call: a row of the table; the estimate, the ends of its interval and the measured error."""
    name, seed = job
    data = evaluation_set(name)
    X, y = data.X[:ROWS], data.y[:ROWS]
    path = folder / f"{name}-{seed}.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*(f"x{column}" for column in range(X.shape[1])), "label"])
        writer.writerows([*values, f"class {label}"] for values, label in zip(X.tolist(), y, strict=True))
    options = ["--target", "label", "--test", "0.5", "--seed", str(seed), "--most", str(LABELS), "--json"]
    figure = ["--figure", str(path.with_suffix(".png"))]
    command = [sys.executable, "-m", "suffice", "run", str(path), *options, *figure]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    answer: dict[str, Any] = json.loads(done.stdout)
    error, true = answer["decision"]["error"], answer["wrong_share_at_stop"]
    numbers = (error["value"], error["low"], error["high"], true)
    stop = f"{answer['labels']}{'' if answer['stopped'] else ' (no stop)'}"
    cells = [name, f"{len(X):,}", str(len(np.unique(y))), str(seed), stop, str(error["random_labels"])]
    cells += [f"{numbers[0]:.3f}", f"{numbers[1]:.3f} to {numbers[2]:.3f}", f"{true:.3f}"]
    print(*cells, sep=", ", flush=True)
    return [*cells, f"{answer['best_in_hindsight']['regret']:.2f}"], numbers


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="+", default=group_names("classification", "last"))
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(given.processes) as pool:
        found = list(pool.map(partial(run, Path(folder)), product(given.sets, range(given.seeds))))
    head = ["data", "rows", "classes", "seed", "labels at the stop", "random", "estimate", "interval", "measured"]
    publish("run-at-stop", table([*head, "regret on these rows"], [cells for cells, _ in found]))
    value, low, high, true = np.array([numbers for _, numbers in found]).T
    held = (low <= true) & (true <= high)
    print(
        f"{held.sum()} of {len(held)} intervals held; mean distance {np.abs(value - true).mean():.3f}; mean difference "
        f"{(value - true).mean():.3f}; mean width {(high - low).mean():.2f}"
    )


if __name__ == "__main__":
    main()
