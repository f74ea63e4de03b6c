"""A labelling project from a large Parquet file: time and memory of making, opening and using it.

Each step runs in a process of its own. Peak memory is what the system reports for the process, in GB of 1e9 bytes. The
least time to make a project is measured in the same run: the time to write its bytes to the same disk, and the time to
insert as many rows of the same length into an empty SQLite file.

Run: ``python benchmarks/large_project.py --rows 1000000 20000000 --write docs/measured/large-project.md``.
"""

import argparse
import json
import os
import resource
import sqlite3
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

COLUMNS, PART = 4, 1_000_000


def write_parquet(file: Path, rows: int) -> None:
    arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    rng, writer = np.random.default_rng(0), None
    for start in range(0, rows, PART):
        X = rng.normal(size=(min(PART, rows - start), COLUMNS)).astype(np.float32)
        table = arrow.table({f"x{k}": X[:, k] for k in range(COLUMNS)})
        writer = writer or parquet.ParquetWriter(file, table.schema)
        writer.write_table(table, row_group_size=250_000)
    assert writer is not None
    writer.close()


class Clock:
    """Wall and processor seconds since it was made or asked last."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    def __call__(self) -> tuple[float, float]:
        """The two times."""
        wall, cpu = time.perf_counter(), time.process_time()
        found = wall - self._wall, cpu - self._cpu
        self._wall, self._cpu = wall, cpu
        return found


def made(file: Path, folder: Path) -> dict[str, Any]:
    from suffice.project import create_project

    clock = Clock()
    create_project(folder, file, classes=["a", "b"]).close()
    return {"made": clock()}


def used(folder: Path) -> dict[str, Any]:
    from suffice.project import open_project
    from suffice.project.project_learner import ProjectLearner

    clock, found = Clock(), dict[str, Any]()
    with open_project(folder) as project:
        found["opened"] = clock()
        X = project.X
        found["features"] = clock()

        def label(**options: Any) -> tuple[tuple[float, float], tuple[float, float]]:
            clock()
            item = project.next("ann", 1, **options)[0].position
            given = clock()
            project.label(item, "a" if X[item, 0] + 0.5 * X[item, 1] > 0.0 else "b", person="ann")
            return given, clock()

        at_random = [label() for _ in range(12)]
        found["random item"] = tuple(np.median([given for given, _ in at_random], axis=0))
        found["label"] = tuple(np.median([kept for _, kept in at_random], axis=0))
        clock()
        learner = ProjectLearner(project.settings, X)
        learner.follow(project.state().learned())
        status = learner.learning_status(queue=4)
        found["first choice"] = clock()
        chosen, again = [], []
        for _ in range(8):
            chosen.append(label(queue=status.queue)[0])
            learner.follow(project.state().learned())
            status = learner.learning_status(queue=4)
            again.append(clock())
        found["chosen item"], found["next choice"] = (tuple(np.median(each, axis=0)) for each in (chosen, again))
    return found


def floors(folder: Path, rows: int) -> tuple[tuple[float, float], tuple[float, float]]:
    """Times to write as many bytes as a project has, and to insert as many rows into SQLite."""
    project = folder / "project.sqlite"
    size, block, clock = project.stat().st_size, os.urandom(2**24), Clock()
    with (folder / "bytes").open("wb") as file:
        for _ in range(size // len(block)):
            file.write(block)
        os.fsync(file.fileno())
    written = clock()
    (folder / "bytes").unlink()
    with sqlite3.connect(project) as connection:
        text = connection.execute("SELECT cells FROM items WHERE position = 1").fetchone()[0]
    clock()
    with sqlite3.connect(folder / "plain.sqlite") as connection:
        connection.execute("CREATE TABLE items (position INTEGER PRIMARY KEY, id TEXT, cells TEXT, checksum INTEGER)")
        values = ((k, "12345678", text, 12345678) for k in range(rows))
        connection.executemany("INSERT INTO items VALUES (?, ?, ?, ?)", values)
    inserted = clock()
    (folder / "plain.sqlite").unlink()
    return written, inserted


def in_a_process(*arguments: Any) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, __file__, "--step", *map(str, arguments)], check=True, stdout=subprocess.PIPE, text=True
    )
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def measured(rows: int) -> list[str]:
    with TemporaryDirectory(dir=".") as place:
        file, folder = Path(place) / "rows.parquet", Path(place) / "project"
        write_parquet(file, rows)
        made_in, used_in = in_a_process("made", file, folder), in_a_process("used", folder)
        size = (folder / "project.sqlite").stat().st_size
        written, inserted = floors(folder, rows)
    every = made_in | used_in
    lines = [
        f"| make the project ({size / 1e9:.1f} GB) | {_seconds(every['made'])} | {made_in['peak']:.1f} |",
        f"| least time for that: write its bytes; insert its rows | {_seconds(written)}; {_seconds(inserted)} | |",
    ]
    for name, words in (
        ("opened", "open it"),
        ("features", "map its features, the first time"),
        ("random item", "next item at random"),
        ("label", "write a label"),
        ("first choice", "learn 12 labels and choose 4 items, the first time"),
        ("next choice", "learn a label and choose 4 items, in the background"),
        ("chosen item", "next item that is chosen already"),
    ):
        peak = f"{used_in['peak']:.1f}" if name == "chosen item" else ""
        lines.append(f"| {words} | {_seconds(every[name])} | {peak} |")
    return [f"| **{rows:,} x {COLUMNS}** | | |", *lines]


def _seconds(pair: Any) -> str:
    return " (".join(f"{each:.1f}" if each >= 1.0 else f"{each:.3f}" for each in pair) + ")"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 20_000_000])
    parser.add_argument("--write", type=Path, help="file for the table")
    parser.add_argument("--step", nargs="+", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.step:
        step, *paths = given.step
        found = (made if step == "made" else used)(*map(Path, paths))
        found["peak"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
        print(json.dumps(found))
        return
    lines = ["| step | seconds (of one processor) | peak memory, GB |", "| --- | --- | --- |"]
    for rows in given.rows:
        lines += measured(rows)
        print("\n".join(lines), flush=True)
    if given.write is not None:
        given.write.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
