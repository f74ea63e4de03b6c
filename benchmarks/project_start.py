"""The start of a labelling project and predictions of new rows, against another checkout in the same run.

Each time is that of a process of its own, as people start it: ``suffice serve`` until the page has answered with the
first item, also of a project that exists, and ``suffice predict`` for five rows, elapsed and of the processor. Requests
of the page are measured right after the first item, while features are computed. Runs of both checkouts alternate. The
table has medians, and their ratio; on a busy machine the times of the processor are more reliable. They are read from
``/proc``, on Linux.

Run: ``python benchmarks/project_start.py --reference FOLDER --write``.
"""

import argparse
import csv
import json
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, Final
from urllib.request import Request, urlopen

import numpy as np

from tables import publish, table

HERE: Final = Path(__file__).parents[1]
LABELS, NEW_ROWS, REQUESTS = 60, 5, 10
# Runs of each measurement; there are fewer if they take longer together than this many seconds.
RUNS, LONGEST = 3, 30.0
# Seconds after which a run is given up.
LIMIT = 180.0
DATA: Final = {"texts": 10_000, "rows": 100_000, "million": 1_000_000}
WORDS: Final = {"texts": "texts", "rows": "table rows", "million": "table rows"}


def write_texts(file: Path, count: int) -> None:
    rng = np.random.default_rng(0)
    shares = 1.0 / np.arange(1, 20_001)
    words = rng.choice(20_000, size=(count, 80), p=shares / shares.sum())
    with file.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["body"])
        writer.writerows([" ".join(f"w{word}" for word in row[: 40 + k % 41])] for k, row in enumerate(words.tolist()))


def write_rows(file: Path, count: int) -> None:
    rng = np.random.default_rng(0)
    numbers, colours = rng.normal(size=(count, 8)).round(4), rng.choice(["red", "green", "blue"], size=(count, 2))
    with file.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow([*(f"x{k}" for k in range(8)), "colour", "other"])
        writer.writerows((*row, *words) for row, words in zip(numbers.tolist(), colours.tolist(), strict=True))


def environment(checkout: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(checkout / "src"), "OMP_NUM_THREADS": "1"}


def processor_seconds(process: int) -> float:
    """Of a running process, with all of its threads."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def timed(found: dict[str, list[float]], name: str) -> Iterator[None]:
    start = time.perf_counter()
    yield
    found.setdefault(name, []).append(time.perf_counter() - start)


@contextmanager
def served(
    checkout: Path, arguments: list[str], found: dict[str, list[float]], step: str
) -> Iterator[Callable[..., Any]]:
    """Serve a project, note the time until the page has an item, and yield a function that sends requests."""
    begun = time.perf_counter()
    server = subprocess.Popen(
        [sys.executable, "-m", "suffice", "serve", *arguments, "--port", "0", "--json", "--no-token"],
        stdout=subprocess.PIPE,
        env=environment(checkout),
        text=True,
        start_new_session=True,
    )
    try:
        assert server.stdout is not None
        url = json.loads(server.stdout.readline())["url"]

        def ask(path: str, body: Any = None) -> Any:
            data = None if body is None else json.dumps(body).encode()
            with urlopen(Request(url + path, data, {"Content-Type": "application/json"}), timeout=LIMIT) as answer:
                return json.load(answer)

        ask("api/next", {"person": "ann"})
        found.setdefault(step, []).append(time.perf_counter() - begun)
        found.setdefault(f"{step}, of the processor", []).append(processor_seconds(server.pid))
        yield ask
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait()


def started(checkout: Path, file: Path, folder: Path, found: dict[str, list[float]]) -> None:
    """Make and serve a project, ask the page for items and for the status, and open the project again."""
    place = folder / f"{time.monotonic_ns()}.suffice"
    arguments = [str(file), "--classes", "a,b", "--project", str(place)]
    with served(checkout, arguments, found, "first item after the command") as ask:
        for k in range(REQUESTS):
            with timed(found, "next item, while features are computed"):
                ask("api/next", {"person": f"person {k}"})
            with timed(found, "status, while features are computed"):
                ask("api/status")
    with served(checkout, [str(place)], found, "next item, opened again"):
        pass


def label(place: str, file: str) -> None:
    """Make a project with labels, without a saved state of its learner."""
    from suffice.project import create_project

    with create_project(place, file, classes=["a", "b"]) as project:
        X = project.X
        weights = np.random.default_rng(0).normal(size=X.shape[1])
        for _ in range(LABELS):
            item = project.next("ann")[0].position
            project.label(item, "a" if X[item] @ weights > 0 else "b", person="ann")


def predicted(checkout: Path, place: Path, new: Path, found: dict[str, list[float]], name: str) -> None:
    command = [sys.executable, "-m", "suffice", "predict", str(place), str(new), "-o", str(new.with_suffix(".jsonl"))]
    before = os.times()
    try:
        with timed(found, name):
            subprocess.run(command, env=environment(checkout), check=True, stdout=subprocess.DEVNULL, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        found.setdefault(name, []).append(math.inf)
    after = os.times()
    spent = after.children_user + after.children_system - before.children_user - before.children_system
    found.setdefault(f"{name}, of the processor", []).append(spent)


def repeated(checkouts: list[Path], call: Callable[[int], None]) -> None:
    """Call a function for each checkout in turn, several times unless that takes long."""
    spent = [0.0] * len(checkouts)
    for run in range(RUNS):
        for k in range(len(checkouts)):
            if run and spent[k] * (run + 1) / run > LONGEST:
                continue
            start = time.perf_counter()
            call(k)
            spent[k] += time.perf_counter() - start
    print(f"measured after {spent} s", file=sys.stderr, flush=True)


def measured(name: str, checkouts: list[Path]) -> list[list[str]]:
    """The lines of one size: the reference first, if there is one."""
    found: list[dict[str, list[float]]] = [{} for _ in checkouts]
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        file, new = folder / "items.csv", folder / "new.csv"
        (write_texts if name == "texts" else write_rows)(file, DATA[name])
        with file.open() as stream, new.open("w") as few:
            few.writelines(next(stream) for _ in range(NEW_ROWS + 1))
        places = [folder / f"{k}.suffice" for k in range(len(checkouts))]
        repeated(checkouts, lambda k: started(checkouts[k], file, folder, found[k]))
        if name != "million":
            for checkout, place in zip(checkouts, places, strict=True):
                command = [sys.executable, __file__, "--label", str(place), str(file)]
                subprocess.run(command, env=environment(checkout), check=True)
            for k, checkout in enumerate(checkouts):
                predicted(checkout, places[k], new, found[k], f"predict {NEW_ROWS} rows, the first time")
            again = f"predict {NEW_ROWS} rows again"
            # Where the first prediction takes long because nothing is saved, the next one takes as long.
            quick = [k for k in range(len(checkouts)) if k == len(checkouts) - 1 or max(spent(found[k])) < LONGEST]
            repeated(
                checkouts, lambda k: predicted(checkouts[k], places[k], new, found[k], again) if k in quick else None
            )
    what = f"{DATA[name]:,} {WORDS[name]}"
    return [line(what, step, [each.get(step) for each in found]) for step in found[-1]]


def spent(found: dict[str, list[float]]) -> list[float]:
    """Seconds of the first prediction."""
    return next(times for step, times in found.items() if step.startswith("predict"))


def line(what: str, step: str, times: list[list[float] | None]) -> list[str]:
    medians = [None if each is None else median(each) for each in times]
    shown = [shown_seconds(each) for each in medians]
    before, now = medians[0], medians[-1]
    if len(times) == 1:
        return [what, step, *shown]
    if before is None or now is None or math.isinf(before):
        return [what, step, *shown, ""]
    return [what, step, *shown, f"{now / before:.2f}"]


def shown_seconds(seconds: float | None) -> str:
    if seconds is None:
        return ""
    if math.isinf(seconds):
        return f"more than {LIMIT:.0f}"
    return f"{seconds:.3f}" if seconds < 1.0 else f"{seconds:.1f}"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--reference", type=Path, help="another checkout to compare with")
    parser.add_argument("--sizes", nargs="+", choices=[*DATA], default=["texts", "rows"])
    parser.add_argument("--label", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--write", action="store_true", help="write docs/measured/project-start.md")
    given = parser.parse_args()
    if given.label is not None:
        label(*given.label)
        return
    checkouts = [HERE] if given.reference is None else [given.reference.resolve(), HERE]
    header = ["data", "step", "seconds"]
    if given.reference is not None:
        header = ["data", "step", "seconds with the reference", "seconds now", "ratio"]
    lines = list[list[str]]()
    for name in given.sizes:
        lines += measured(name, checkouts)
        publish("project-start", table(header, lines))


if __name__ == "__main__":
    main()
