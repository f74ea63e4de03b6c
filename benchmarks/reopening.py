"""How long the commands take to reopen a labelling project, without and with the files of what was learned.

Each command runs as a process of its own, imports included. "Without" has the folder ``learned`` removed first.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import suffice as sf
from suffice.project.background_learner import BackgroundLearner
from suffice.project.create import open_project, write_project
from suffice.project.events import Draft, EventKind
from suffice.project.items import Items
from suffice.project.learned_files import FOLDER
from suffice.project.settings import Settings
from suffice.project.storage import FILE, Database, read_events, write_events
from suffice.tables.table_cells import CellColumns
from tables import publish, table

COMMANDS = ("status", "report", "export")
CLASSES = 6


class Size(NamedTuple):
    """A project: items, features, labels, and whether it is a text, whose components the model chooses from."""

    items: int
    features: int
    labels: int
    text: bool


SMALL, LARGE = Size(5_000, 165, 381, True), Size(100_000, 20, 5_000, False)


class Taken(NamedTuple):
    """Seconds of a process: by the clock, and of the processor."""

    clock: float
    processor: float

    def __str__(self) -> str:
        return f"{self.processor:.1f} s ({self.clock:.1f} s)"


def data(size: Size) -> tuple[Items, Settings, list[str]]:
    """Items of six classes, what they are about, and their true labels."""
    rng = np.random.default_rng(0)
    # Components of a text carry less and less.
    scale = 1.0 / np.sqrt(1.0 + np.arange(size.features)) if size.text else np.ones(size.features)
    X = rng.normal(size=(size.items, size.features)) * scale
    scores = 2.0 * X @ rng.normal(size=(size.features, CLASSES)) + rng.gumbel(size=(size.items, CLASSES))
    names = tuple(f"class {k + 1}" for k in range(CLASSES))
    columns = ("text", "number")
    cells = tuple((f"item {k} of a table with some words in each cell", f"{row[0]:.3f}") for k, row in enumerate(X))
    components = ((0, size.features),) if size.text else ()
    settings = Settings(
        "table.csv",
        "classification",
        names,
        "label",
        "table",
        columns,
        None,
        "logistic",
        sf.LabelWorth().state_dict(),
        components=components,
    )
    ids = tuple(f"row {k + 1}" for k in range(size.items))
    shown = CellColumns.of_rows(cells)
    items = Items("table", ids, columns, shown, None, X, "classification", names, {}, (), components=components)
    return items, settings, [names[k] for k in scores.argmax(axis=1)]


def make(place: Path, size: Size) -> list[str]:
    """Write a project with its labels; every fifth item was drawn at random."""
    items, settings, y = data(size)
    write_project(place, settings, items).close()
    drafts, order = [], np.random.default_rng(1).permutation(size.items)[: size.labels].tolist()
    for k, item in enumerate(order):
        started = k >= settings.initial
        about = {"until": 0.0, "why": "", "random": k % 5 == 0 or not started, "started": started}
        drafts.append(Draft(EventKind.asked, "ann", item, about))
        drafts.append(Draft(EventKind.labelled, "ann", item, {"label": y[item]}))
    database = Database(place / FILE)
    with database.exclusive() as connection:
        write_events(connection, drafts, last=read_events(connection)[-1], at=time.time())
    database.close()
    return y


def run(command: str, place: Path) -> Taken:
    """Run a command of the command line."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([sys.executable, "-m", "suffice", command, str(place)], check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Taken(time.perf_counter() - start, processor)


def best(command: str, place: Path, times: int = 3) -> Taken:
    """The quickest of several runs."""
    return min((run(command, place) for _ in range(times)), key=lambda taken: taken.processor)


def files_size(place: Path) -> int:
    return sum(file.stat().st_size for file in (place / FOLDER).iterdir())


class Served(NamedTuple):
    """What a server does with a project that is reopened.

    Attributes:
        shown: Seconds until the last results are shown.
        chosen: Seconds until the model has chosen the next items.
        written: Seconds to write results and learner, while nobody labels.
        quiet: Milliseconds until each label is acknowledged.
        busy: The same while files are written all the time.
    """

    shown: float
    chosen: float
    written: float
    quiet: Any
    busy: Any


def served(place: Path, y: list[str], keys: int = 60) -> Served:
    """Reopen a project as a server does, write its files, and label."""
    with open_project(place) as project:
        answers, start = len(project.state().learned()), time.perf_counter()
        with BackgroundLearner(project, project.learned_files) as background:
            assert background.wait(answers, 3600.0)
            shown = time.perf_counter() - start
            assert background.wait_settled(3600.0)
            chosen, taken = time.perf_counter() - start, []
            for _ in range(7):
                began = time.perf_counter()
                assert background.keep()
                taken.append(time.perf_counter() - began)

            def wait(pause: float) -> float:
                time.sleep(pause)
                item = project.next("ann", queue=background.learning_status.queue)[0].position
                pressed = time.perf_counter()
                project.label(item, y[item], person="ann")
                background.wake()
                return 1e3 * (time.perf_counter() - pressed)

            quiet, done = np.array([wait(0.2) for _ in range(keys)]), threading.Event()

            def write() -> None:
                while not done.is_set():
                    background.keep()

            writer = threading.Thread(target=write)
            writer.start()
            busy = np.array([wait(0.2) for _ in range(keys)])
            done.set()
            writer.join()
    return Served(shown, chosen, float(np.median(taken)), quiet, busy)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--labels", type=int, help="labels of the large project, to try it out")
    parser.add_argument("--keep", type=Path, help="a folder in which the projects stay")
    given = parser.parse_known_args()[0]
    rows, waits = [], []
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.keep or Path(temporary)
        folder.mkdir(exist_ok=True)
        large = LARGE if given.labels is None else LARGE._replace(labels=given.labels)
        for size in (SMALL, large):
            name = f"{size.labels:,} labels of {size.items:,} items, {CLASSES} classes"
            place = folder / f"{size.labels}.suffice"
            y = make(place, size) if not place.exists() else data(size)[2]
            for command in COMMANDS:
                # The other commands take as long again to learn the labels.
                without = "as status"
                if command == "status":
                    shutil.rmtree(place / FOLDER, ignore_errors=True)
                    without = str(run(command, place))
                if command == "export":
                    run(command, place)
                found = best(command, place)
                rows.append([name, command, without, str(found)])
                print(" ".join(rows[-1]), flush=True)
            megabytes = files_size(place) / 1e6
            found_by = served(place, y)
            seconds = [f"{each:.1f} s" for each in (found_by.written, found_by.shown, found_by.chosen)]
            figures = [f"{np.median(each):.0f} ms, {each.max():.0f} ms" for each in (found_by.quiet, found_by.busy)]
            waits.append([name, f"{megabytes:.1f} MB", *seconds, *figures])
            print(" ".join(waits[-1]), flush=True)
    first = table(["project", "command", "without", "with what was learned"], rows)
    header = ["project", "files", "written in", "results shown after", "items chosen after", "label acknowledged after"]
    second = table([*header, "while files are written"], waits)
    publish("reopening", f"{first}\n\n{second}")


if __name__ == "__main__":
    main()
