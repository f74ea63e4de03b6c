"""Rounds of random faults: writers start, something fails, the writers are killed, and the journal is compared.

What must hold after each round: every acknowledged event is in the journal. Or, if a fault has destroyed events that
were only in a side file of SQLite, the next start refuses and names ``suffice repair``, and that keeps every
acknowledged event that is still on the disk. An event whose writing began after such a fault must not be acknowledged
unless it is on the disk.
"""

import json
import os
import random
import resource
import shutil
import signal
import sqlite3
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import psycopg

from suffice.errors import SufficeError
from suffice.project.create import open_project
from suffice.project.events import Event
from suffice.project.repair import repair_project
from suffice.project.sqlite_files import log_of, shared_memory_of
from suffice.project.storage import FILE, chained
from tests.project.crash_acts import SIZE, made
from tests.project.crash_checks import Mother
from tests.project.full_disk import fill
from tests.project.making_projects import picture, replayed
from tests.project.postgres_server import Server

#: Faults of a project in SQLite. A side file is removed or cut off while writers use it, or when they were killed.
SQLITE_FAULTS: Final = (
    "none",
    "clock",
    "full disk",
    *("log removed", "memory removed", "both removed", "log cut off", "memory cut off"),
    *("log removed later", "memory removed later", "both removed later", "log cut off later", "memory cut off later"),
)
#: Faults of a project in PostgreSQL, with how often each is taken: a server that is stopped takes longer.
POSTGRES_FAULTS: Final = {
    "none": 3,
    "clock": 3,
    "full disk": 3,
    "connections ended": 3,
    "backend killed": 2,
    "server stopped": 1,
}
# Seconds to wait for what must happen.
_PATIENCE: Final = 60.0
# A log is cut off by at least three pages: a shorter gap that another process fills at once may go unnoticed.
_LEAST_CUT: Final = 3 * 4120
_NOTICED: Final = "while the project was open"


class Acknowledged(NamedTuple):
    """An event whose writer was told that it is written."""

    seq: int
    digest: str
    began: float


@dataclass
class Trouble:
    """The fault of a round.

    Attributes:
        name: Which.
        since: When it was complete, by the monotonic clock.
        loses: Whether it destroys events that are only in the log.
    """

    name: str
    since: float = float("inf")

    @property
    def loses(self) -> bool:
        return self.name.startswith(("log", "both"))

    @property
    def damages(self) -> bool:
        """Whether the next start may refuse. Old pages can be written while the shared memory is cut off."""
        return self.loses or self.name == "memory cut off"


class Rounds:
    """Rounds on one project.

    Args:
        place: The project.
        mother: Forks the writers.
        told: The file to which the writers append.
        clocks: While this file exists, the clocks of the writers jump.
        rng: Chooses the faults.
    """

    def __init__(self, place: str, mother: Mother, told: Path, clocks: Path, rng: random.Random) -> None:
        self.place, self.rng, self.counts = place, rng, Counter[str]()
        self._mother, self._told, self._clocks = mother, told, clocks
        self._acknowledged: dict[int, Acknowledged] = {}
        self._writers: list[int] = []
        self._lines: list[Any] = []
        self._read = 0

    # --- writers ---

    def start(self, at_once: int, *, answers: bool = True) -> None:
        """Start writers, and wait until each of them has written something."""
        self._look()
        if not self._writers and self._told.exists():
            # The limit of the size of files is for this one too.
            os.truncate(self._told, 0)
            self._read = 0
        started = [self._mother.start() for _ in range(at_once)]
        self._writers += started
        if answers:
            since = len(self._lines)
            self._wait(lambda: {line[0] for line in self._lines[since:] if _events(line)} >= set(started))
            time.sleep(min(0.1, self.rng.expovariate(1.0 / 0.03)))

    def kill(self) -> None:
        """Kill all writers at once."""
        for writer in self._writers:
            os.kill(writer, signal.SIGKILL)
        for writer in self._writers:
            self._mother.kill(writer)
        self._writers = []

    def wait_for_refusals(self, words: str) -> None:
        """Wait until each writer was refused with these words."""
        since, writers = self._looked(), set(self._writers)
        self._wait(lambda: {line[0] for line in self._lines[since:] if words in _message(line)} >= writers)

    def wait_for_an_answer(self) -> None:
        """Wait until something is written."""
        since = self._looked()
        self._wait(lambda: any(_events(line) for line in self._lines[since:]))

    def _looked(self) -> int:
        self._look()
        return len(self._lines)

    def _wait(self, reached: Callable[[], bool]) -> None:
        end = time.monotonic() + _PATIENCE
        while time.monotonic() < end:
            self._look()
            if reached():
                return
            time.sleep(0.002)
        raise AssertionError(f"nothing of what must happen in {_PATIENCE:g} s; the last lines: {self._lines[-5:]}")

    def _look(self) -> None:
        if not self._told.exists():
            return
        with self._told.open("rb") as file:
            file.seek(self._read)
            new = file.read()
        whole = new[: new.rfind(b"\n") + 1]
        self._read += len(whole)
        for line in whole.splitlines():
            # A process can be killed in the middle of a line; that was not acknowledged.
            with suppress(ValueError):
                self._lines.append(json.loads(line))

    def _take(self) -> list[Acknowledged]:
        """What was acknowledged in this round."""
        self._look()
        new = [Acknowledged(seq, digest, line[1]) for line in self._lines for seq, digest in _events(line)]
        self.counts["refused"] += sum(bool(_message(line)) for line in self._lines)
        self._lines = []
        self.counts["acknowledged"] += len(new)
        self._acknowledged |= {each.seq: each for each in new}
        return new

    # --- what holds afterwards ---

    def check_kept(self) -> None:
        """Everything acknowledged is in the journal."""
        self._take()
        with open_project(self.place) as project:
            digests = {event.seq: event.digest for event in project.events()}
        assert {seq: digests.get(seq) for seq in self._acknowledged} == {
            seq: each.digest for seq, each in self._acknowledged.items()
        }

    def check_kept_or_refused(self, trouble: Trouble, spare: Path) -> None:
        """Everything acknowledged is in the journal, or the next start refuses and the repair keeps what is there.

        Args:
            trouble: What has failed.
            spare: A folder for copies of the project, so that the next writers find the files as they are.
        """
        self._take()
        on_disk = events_on_disk(Path(self.place), spare, max(self._acknowledged, default=0))
        missing = {
            each for seq, each in self._acknowledged.items() if seq not in on_disk or on_disk[seq][-1] != each.digest
        }
        late = sorted(each.seq for each in missing if each.began > trouble.since)
        assert not late, f"acknowledged after the fault, and not on the disk: {late}"
        assert not missing or trouble.loses, f"lost: {sorted(each.seq for each in missing)}"
        copy, refused = shutil.copytree(self.place, spare / "copy"), ""
        try:
            with open_project(copy) as project:
                digests = {event.seq: event.digest for event in project.events()}
            found = {seq: digests.get(seq) for seq in self._acknowledged}
            assert found == {seq: each.digest for seq, each in self._acknowledged.items()}
        except SufficeError as error:
            refused = str(error)
        if refused:
            assert trouble.damages, refused
            assert "suffice repair" in refused
            self.counts["refused starts"] += 1
            self.counts["lost with the log"] += len(missing)
            self._repair(on_disk)
        shutil.rmtree(copy)

    def _repair(self, on_disk: dict[int, tuple[Any, ...]]) -> None:
        """Repair the project; what is on the disk is there then, except for what the report names."""
        report = repair_project(self.place)
        if not report.repaired:
            # The features or the settings were only in the log, so there are only labels.
            assert report.labels_file is not None
            assert report.features_damaged or 1 in report.lost_events
            self.counts["only labels"] += 1
            self._acknowledged = {}
            shutil.rmtree(self.place)
            made(self.place)
            return
        self.counts["repaired"] += 1
        self.counts["rebuilt"] += report.kept is not None
        for each in Path(self.place).glob("*-damaged-*"):
            each.unlink()
        with open_project(self.place) as project:
            found = {event.seq: (contents(event), event.digest) for event in project.events()}
        for seq, row in on_disk.items():
            before = on_disk[seq - 1][-1] if seq > 1 and seq - 1 in on_disk else ""
            verified = row[-1] == chained(before, seq, *row[:-1])
            if seq in found and found[seq][0] == row[:-1]:
                continue
            # A row whose digest does not follow is damaged; an event that depends on a lost one is lost too.
            assert not verified or seq in report.lost_events, f"event {seq} was on the disk"
            self.counts["lost by their dependence"] += verified
        kept = {seq: each for seq, each in self._acknowledged.items() if seq in found}
        kept = {seq: each for seq, each in kept.items() if seq in on_disk and found[seq][0] == on_disk[seq][:-1]}
        self._acknowledged = {seq: each._replace(digest=found[seq][1]) for seq, each in kept.items()}

    def check_state(self) -> None:
        """The state is what the events come to."""
        with open_project(self.place) as project:
            events, size = project.events(), project.size
            found, expected = picture(project.state(), size, 0.0), picture(replayed(events, SIZE), size, 0.0)
        # The end of a lease depends on the clock of this process.
        names = found.keys() - {"leases", "mine"}
        differ = {name: (found[name], expected[name]) for name in names if found[name] != expected[name]}
        assert not differ, differ
        assert [event.seq for event in events] == list(range(1, len(events) + 1))

    # --- rounds ---

    def sqlite_round(self, fault: str, spare: Path, filling: Path | None) -> None:
        """Write with one or two processes, let something fail, kill them, and compare.

        Args:
            fault: One of :data:`SQLITE_FAULTS`.
            spare: A folder for copies.
            filling: A file that fills the disk of the project; without one, its files may not grow any more.
        """
        trouble, rng, file = Trouble(fault), self.rng, Path(self.place) / FILE
        later = fault.endswith(" later")
        with suppress(FileNotFoundError):
            self._clocks.unlink()
        if fault == "clock":
            self._clocks.touch()
        in_use = not later and trouble.name not in {"none", "clock"}
        self.start(rng.choice([1, 2]), answers=in_use or rng.random() < 0.8)
        if fault == "full disk":
            self._fill_and_make_room(filling, self._stop_growing, self._let_grow)
        elif in_use:
            damage_side_files(file, fault, rng)
            trouble.since = time.monotonic()
            if rng.random() < 0.3 and fault != "log cut off":
                # Another program starts meanwhile. It cannot know how long the log was.
                self.start(1, answers=False)
                time.sleep(0.05)
            elif rng.random() < 0.6 and fault != "memory cut off":
                # Without the memory that they share, processes end.
                self.wait_for_refusals(_NOTICED)
            time.sleep(min(0.1, rng.expovariate(1.0 / 0.03)))
        self.kill()
        if later:
            damage_side_files(file, fault.removesuffix(" later"), rng)
        self.check_kept_or_refused(trouble, spare)

    def postgres_round(self, fault: str, server: Server, filling: Path | None) -> None:
        """Write with one or two processes, let something fail, kill them, and compare.

        Args:
            fault: One of :data:`POSTGRES_FAULTS`.
            server: The database server.
            filling: A file that fills the disk of the events.
        """
        rng = self.rng
        with suppress(FileNotFoundError):
            self._clocks.unlink()
        if fault == "clock":
            self._clocks.touch()
        self.start(rng.choice([1, 2]), answers=fault not in {"none", "clock"} or rng.random() < 0.8)
        if fault == "full disk":
            self._fill_and_make_room(filling, lambda: None, lambda: None)
        elif fault == "connections ended":
            server.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
            )
        elif fault == "backend killed":
            with psycopg.connect(server.url()) as connection:
                found = connection.execute(
                    "SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
                ).fetchall()
            # The server ends all connections then, and starts again.
            os.kill(rng.choice(found)[0], signal.SIGKILL)
        elif fault == "server stopped":
            server.stop("immediate")
            server.start()
        if fault not in {"none", "clock"} and rng.random() < 0.6:
            self.wait_for_an_answer()
        self.kill()
        wait_for_server(server)
        self.check_kept()

    def _fill_and_make_room(self, filling: Path | None, stop: Callable[[], None], go_on: Callable[[], None]) -> None:
        if filling is None:
            stop()
        else:
            fill(filling)
        self.wait_for_refusals("make room and try again")
        if filling is None:
            go_on()
        else:
            filling.unlink()
        if self.rng.random() < 0.5:
            self.wait_for_an_answer()

    def _stop_growing(self) -> None:
        """Let the writers write only to the first pages of their files. A log is often started again from its start."""
        most = self.rng.randrange(33_000, 60_000)
        for writer in self._writers:
            resource.prlimit(writer, resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))

    def _let_grow(self) -> None:
        for writer in self._writers:
            resource.prlimit(writer, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def _events(line: Any) -> list[Any]:
    """The events that a line acknowledges."""
    return line[2] if isinstance(line[2], list) else []


def _message(line: Any) -> str:
    return line[2] if isinstance(line[2], str) else ""


def damage_side_files(file: Path, fault: str, rng: random.Random) -> None:
    """Remove or cut off side files of a SQLite file, where they are."""
    for name, path in (("log", log_of(file)), ("memory", shared_memory_of(file))):
        if not fault.startswith((name, "both")):
            continue
        with suppress(FileNotFoundError):
            if fault.endswith("removed"):
                path.unlink()
            else:
                most = path.stat().st_size - _LEAST_CUT
                os.truncate(path, rng.randrange(most) if most > 0 and rng.random() < 0.7 else 0)


def events_on_disk(place: Path, spare: Path, last: int) -> dict[int, tuple[Any, ...]]:
    """Columns of the events, by number, that SQLite finds in the files of a project that nobody uses.

    Args:
        place: The project.
        spare: A folder for a copy.
        last: The highest number that was acknowledged. More events may be there.
    """
    copy, rows = shutil.copytree(place, spare / "read"), list[Any]()
    question = "SELECT seq, kind, item, person, at, data, request, digest FROM events"
    with closing(sqlite3.connect(copy / FILE)) as connection:
        # A file that is shorter than it says is read, too.
        connection.execute("PRAGMA writable_schema=ON")
        try:
            rows = connection.execute(question).fetchall()
        except sqlite3.Error:
            # A part of the pages is older than the others: each row that can be read.
            for row in range(1, last + 100):
                with suppress(sqlite3.Error):
                    rows += connection.execute(f"{question} NOT INDEXED WHERE rowid = ?", (row,)).fetchall()
    shutil.rmtree(copy)
    return {row[0]: row[1:] for row in rows}


def contents(event: Event) -> tuple[Any, ...]:
    """The columns of an event between its number and its digest."""
    data = json.dumps(dict(event.data))
    return event.kind.value, event.item, event.person, event.at, data, event.request


def wait_for_server(server: Server) -> None:
    """Wait until a server that starts again answers."""
    end = time.monotonic() + _PATIENCE
    while True:
        try:
            server.execute("SELECT 1")
        except psycopg.OperationalError:
            assert time.monotonic() < end
            time.sleep(0.02)
        else:
            return
