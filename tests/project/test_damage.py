"""Damage of the files of a project is noticed, and what can be verified is recovered."""

import fcntl
import json
import os
import random
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from threading import Event, Thread
from typing import Any

import numpy as np
import pandas as pd
import pytest

from suffice.errors import SufficeError
from suffice.presentation.project_words import damage_sentences
from suffice.project import create_project, storage
from suffice.project.create import open_project
from suffice.project.events import EventKind
from suffice.project.labelling_project import Project
from suffice.project.repair import LABELS_FILE, repair_project
from suffice.project.storage import FILE, Head, StorageError, read_head, sa
from tests.project.making_projects import make
from tests.project.project_workers import begin, finish, start
from tests.thoroughness import some

SIZE = 40


def labelled(folder: Path, labels: int = 12) -> Path:
    """A project with labels, corrections, a skip and changed settings."""
    place = folder / "pets.suffice"
    texts = [f"the {'cat' if k % 2 else 'dog'} number {k} sits on the mat" for k in range(SIZE)]
    with create_project(place, texts, classes=["cat", "dog"]) as project:
        for k in range(labels):
            project.label(k, "cat" if k % 2 else "dog", person="ann", request=f"r{k}")
        project.correct(3, "dog", person="bob")
        project.undo(person="bob")
        project.skip(20, person="ann", reason="blurred")
        project.add_class("eel", person="ann")
        project.change_settings({"guidelines": "Look *twice*."}, person="ann")
    return place


def contents(project: Project) -> Any:
    """Everything that a project holds, as plain values."""
    with project.lock:
        state = project.state()
        answers, revision = [tuple(each) for each in state.answers()], state.revision
    events = [(each.seq, each.kind, each.person, each.item, dict(each.data), each.at) for each in project.events()]
    items = [(item.position, item.id, item.cells) for item in project.items(range(project.size))]
    return answers, revision, events, items, project.settings, project.X.tobytes()


def opened(place: Path) -> Any:
    """What a project holds, or the sentence that refuses it."""
    try:
        with open_project(place) as project:
            found = contents(project)
            # What is asked for by name goes through an index.
            assert project.label(0, "dog", person="ann", request="r0").repeated
            return found
    except SufficeError as error:
        return str(error)


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return labelled(tmp_path_factory.mktemp("pristine"))


@pytest.fixture
def place(pristine: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(pristine, tmp_path / pristine.name))


@pytest.fixture(scope="module")
def with_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project whose last labels are in the write-ahead file, as after a power cut."""
    folder = tmp_path_factory.mktemp("log")
    place = labelled(folder, 5)
    with open_project(place) as project:
        for k in range(20, 30):
            project.label(k, "cat", person="bob")
        return Path(shutil.copytree(place, folder / "cut.suffice"))


@pytest.mark.parametrize("seed", some(list(range(10)), every=10))
@pytest.mark.parametrize("name", [FILE, f"{FILE}-wal", f"{FILE}-head"])
def test_every_flipped_bit_is_noticed_or_harmless(
    pristine: Path, with_log: Path, tmp_path: Path, name: str, seed: int
) -> None:
    source = pristine if name == FILE else with_log
    expected, rng, noticed = opened(Path(shutil.copytree(source, tmp_path / "expected"))), random.Random(seed), 0
    assert not isinstance(expected, str)
    original = (source / name).read_bytes()
    for number in range(30):
        place = Path(shutil.copytree(source, tmp_path / f"{number}"))
        at, bit = rng.randrange(len(original)), rng.randrange(8)
        flipped = bytearray(original)
        flipped[at] ^= 1 << bit
        (place / name).write_bytes(flipped)
        found = opened(place)
        assert isinstance(found, str) or found == expected, (at, bit)
        noticed += isinstance(found, str)
        shutil.rmtree(place)
    assert noticed >= 3


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE events SET data = '{\"label\": \"dog\"}' WHERE kind = 'labelled' AND item = 1",
        "UPDATE events SET person = 'eve' WHERE seq = 4",
        "UPDATE events SET at = at + 1 WHERE seq = 5",
        "UPDATE events SET item = 30 WHERE seq = 6",
        "UPDATE events SET digest = (SELECT digest FROM events WHERE seq = 3) WHERE seq = 4",
        "DELETE FROM events WHERE seq = (SELECT max(seq) FROM events)",
        "UPDATE items SET cells = '[\"another text\"]' WHERE position = 2",
        "UPDATE items SET id = 'x' WHERE position = 2",
        "UPDATE features SET numbers = zeroblob(length(numbers))",
        "DELETE FROM items WHERE position = 39",
    ],
)
def test_what_was_changed_by_hand_is_noticed(place: Path, statement: str) -> None:
    with closing(sqlite3.connect(place / FILE)) as connection, connection:
        connection.execute(statement)
    found = opened(place)
    assert isinstance(found, str)
    assert "suffice repair" in found


def test_a_write_ahead_file_that_is_removed_loses_nothing(tmp_path: Path) -> None:
    place = labelled(tmp_path, 5)
    with open_project(place) as project:
        project.label(30, "cat", person="ann")
        project.label(31, "dog", person="ann")
        (place / f"{FILE}-wal").unlink()
        for _ in range(2):
            with pytest.raises(StorageError, match=r"-wal was removed or replaced while .*acknowledged is saved"):
                project.label(32, "cat", person="ann")
    with open_project(place) as project:
        assert [project.state().label_of(k) for k in (30, 31, 32)] == ["cat", "dog", None]
        project.label(32, "cat", person="ann")


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_a_write_ahead_file_that_is_cut_off_is_noticed_and_the_rest_is_kept(tmp_path: Path, share: float) -> None:
    place = labelled(tmp_path, 5)
    log = place / f"{FILE}-wal"
    with open_project(place) as project:
        for k in range(30, 40):
            project.label(k, "cat", person="ann")
        os.truncate(log, int(share * log.stat().st_size))
        for _ in range(2):
            with pytest.raises(StorageError, match=r"was cut off while .*acknowledged last may be lost"):
                project.label(29, "cat", person="ann")
        main = (place / FILE).read_bytes()
    # Nothing is moved from such a file into the main file.
    assert (place / FILE).read_bytes() == main
    with pytest.raises(StorageError, match="start the program again"):
        open_project(place)
    place = Path(shutil.copytree(place, tmp_path / "as a new process finds it"))
    with pytest.raises(StorageError, match=r"events are missing.*suffice repair"):
        open_project(place)
    assert repair_project(place).repaired
    with open_project(place) as project:
        assert (project.state().n_labelled > 5) == (share > 0.0)
        assert project.state().label_of(29) is None


def test_a_write_ahead_file_that_is_cut_off_while_something_is_written_is_noticed(tmp_path: Path) -> None:
    place = labelled(tmp_path, 5)
    with open_project(place) as project:
        for k in range(30, 40):
            project.label(k, "cat", person="ann")
        cut = False

        def cut_off(*_: object) -> None:
            # After the last comparison; SQLite writes behind the gap, so that the file is as long as before.
            nonlocal cut
            os.truncate(place / f"{FILE}-wal", 0)
            cut = True

        sa.event.listen(project.journal.database._engine, "commit", cut_off)
        with pytest.raises(StorageError, match=r"-wal was cut off while .* it is not known whether this was written"):
            project.label(29, "cat", person="ann")
        assert cut


@pytest.mark.parametrize("left", [0, 16_384])
def test_a_shared_memory_that_is_cut_off_is_noticed_and_nothing_is_lost(tmp_path: Path, left: int) -> None:
    place = labelled(tmp_path, 5)
    with open_project(place) as project:
        for k in range(30, 40):
            project.label(k, "cat", person="ann")
        database = project.journal.database
        with database.exclusive() as connection:
            connection.exec_driver_sql("SELECT 1")
        assert database._files is not None
        os.truncate(place / f"{FILE}-shm", left)
        assert database._files.cut_off().endswith("-shm was cut off while the project was open")
        # Reading from it could end this process.
        copy = Path(shutil.copytree(place, tmp_path / "as a new process finds it"))
        os.truncate(place / f"{FILE}-shm", 32_768)
    with open_project(copy) as project:
        assert project.state().n_labelled == 15


def test_a_write_ahead_file_that_another_program_has_emptied_is_no_damage(tmp_path: Path) -> None:
    place = labelled(tmp_path, 5)
    with open_project(place) as project:
        project.label(30, "cat", person="ann")
        with closing(sqlite3.connect(place / FILE)) as other:
            assert other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone() == (0, 0, 0)
        assert (place / f"{FILE}-wal").stat().st_size == 0
        project.label(31, "cat", person="ann")
    with open_project(place) as project:
        assert [project.state().label_of(k) for k in (30, 31)] == ["cat", "cat"]


def test_a_blank_log_that_is_left_is_started_again(tmp_path: Path) -> None:
    """As after a repair, if a program had written behind the end of a log that was cut off."""
    place = labelled(tmp_path, 5)
    (place / f"{FILE}-wal").write_bytes(bytes(50_000))
    for k in (30, 31):
        with open_project(place) as project:
            project.label(k, "cat", person="ann")
            project.label(k + 2, "cat", person="ann")
    with open_project(place) as project:
        assert [project.state().label_of(k) for k in range(30, 34)] == ["cat"] * 4


@pytest.mark.parametrize("ending", ["-wal", "-shm"])
def test_a_file_that_is_removed_before_the_first_write_is_noticed(tmp_path: Path, ending: str) -> None:
    place = labelled(tmp_path, 5)
    with open_project(place) as project:
        (place / f"{FILE}{ending}").unlink()
        with pytest.raises(StorageError, match=rf"{ending} was removed or replaced while .*this was not written"):
            project.label(32, "cat", person="ann")
    rest = start("label", str(place), "eve", "60")
    begin(rest)
    assert 32 in [item for item, *_ in finish(rest)]


def test_a_file_that_is_removed_while_something_is_written_is_noticed(tmp_path: Path) -> None:
    place = labelled(tmp_path, 5)
    with (
        open_project(place) as project,
        pytest.raises(StorageError, match=r"-shm was removed or replaced .* it is not known whether"),
        project.journal.database.exclusive(),
    ):
        (place / f"{FILE}-shm").unlink()


def test_two_processes_without_the_same_shared_memory_lose_nothing(tmp_path: Path) -> None:
    place = tmp_path / "pets.suffice"
    make(place, 60).close()
    with open_project(place) as project:
        for k in range(10):
            project.label(59 - k, "cat", person="ann")
        (place / f"{FILE}-shm").unlink()
        # Another process makes a new one, so that the two do not see each other's locks.
        worker = start("label", str(place), "bob", "10")
        begin(worker)
        acknowledged = [item for item, *_ in finish(worker)]
        with pytest.raises(StorageError, match=r"-shm was removed or replaced while .*acknowledged is saved"):
            project.label(0, "cat", person="ann")
    for opens in (open_project, repair_project):
        with pytest.raises(StorageError, match="start the program again"):
            opens(place)
    # A new process finds all that was acknowledged: only the other items are left.
    rest = start("label", str(place), "eve", "60")
    begin(rest)
    left = [item for item, *_ in finish(rest)]
    assert sorted([*acknowledged, *left]) == list(range(50))


def test_events_that_are_missing_at_the_end_are_noticed(tmp_path: Path) -> None:
    place = labelled(tmp_path, 5)
    with open_project(place) as project:
        project.label(30, "cat", person="ann")
        kept = (place / FILE).read_bytes()
        project.label(31, "dog", person="ann")
        project.label(32, "dog", person="ann")
        last = project.state().seq
    # As if the write-ahead file with the last labels were lost together with the process.
    (place / FILE).write_bytes(kept)
    with closing(sqlite3.connect(place / FILE)) as connection:
        there = connection.execute("SELECT max(seq) FROM events").fetchone()[0]
    with pytest.raises(StorageError, match=f"its last {last - there} events are missing.*suffice repair"):
        open_project(place)
    report = repair_project(place, check=True)
    assert (report.intact, report.missing_events, report.repaired) == (False, last - there, False)
    assert repair_project(place).repaired
    with open_project(place) as project:
        assert project.state().seq == there
    assert repair_project(place).intact


def damage(place: Path, statement: str) -> None:
    with closing(sqlite3.connect(place / FILE)) as connection, connection:
        connection.execute(statement)


def test_a_damaged_event_is_lost_and_the_others_are_kept(place: Path) -> None:
    with open_project(place) as project:
        expected = {k: project.state().label_of(k) for k in range(SIZE)}
        (lost,) = (event for event in project.events() if event.kind is EventKind.labelled and event.item == 7)
    damage(place, f'UPDATE events SET data = \'{{"label": "dog"}}\' WHERE seq = {lost.seq}')
    with pytest.raises(StorageError, match=f"event {lost.seq} does not have its checksum"):
        open_project(place)
    report = repair_project(place, check=True)
    assert (report.lost_events, report.damaged_items, report.repaired) == ((lost.seq,), (), False)
    report = repair_project(place)
    assert report.repaired
    assert report.kept is not None
    assert report.kept.exists()
    with open_project(place) as project:
        assert {k: project.state().label_of(k) for k in range(SIZE)} == {**expected, 7: None}
        assert project.settings.guidelines == "Look *twice*."
        assert project.label(0, "dog", person="ann", request="r0").repeated
        project.label(7, "cat", person="ann")
    assert repair_project(place).intact


@pytest.mark.parametrize("which", ["seq = 5", "seq = (SELECT max(seq) FROM events)"])
def test_a_damaged_digest_loses_nothing(place: Path, which: str) -> None:
    with open_project(place) as project:
        expected = contents(project)
    digest = "(CASE substr(digest, 1, 1) WHEN '0' THEN '1' ELSE '0' END) || substr(digest, 2)"
    damage(place, f"UPDATE events SET digest = {digest} WHERE {which}")
    with pytest.raises(StorageError, match="suffice repair"):
        open_project(place)
    report = repair_project(place, check=True)
    assert (report.intact, len(report.damaged_digests), report.lost_events) == (False, 1, ())
    assert "1 event has a damaged checksum and is kept" in " ".join(damage_sentences(report.as_dict(), "pets"))
    assert repair_project(place).repaired
    with open_project(place) as project:
        assert contents(project) == expected
    assert repair_project(place).intact


@pytest.mark.parametrize(
    ("change", "lost"),
    [
        ("UPDATE events SET data = '{}', digest = 'x' WHERE seq = (SELECT max(seq) FROM events)", 1),
        ("UPDATE events SET person = 'eve' WHERE seq > (SELECT max(seq) FROM events) - 3", 3),
        ("UPDATE events SET seq = 1000000000000 WHERE seq = (SELECT max(seq) FROM events)", 1),
    ],
)
def test_damaged_events_at_the_end_are_lost_and_the_project_opens(place: Path, change: str, lost: int) -> None:
    with open_project(place) as project:
        before = contents(project)[2]
    with closing(sqlite3.connect(place / FILE)) as database, database:
        database.execute(change)
    assert isinstance(opened(place), str)
    report = repair_project(place)
    last = before[-1][0]
    assert report.repaired
    assert report.lost_events == tuple(range(last - lost + 1, last + 1))
    assert report.missing_events == 0
    with open_project(place) as project:
        after = contents(project)[2]
        assert after[: last - lost] == before[: last - lost]
        assert [event[1] for event in after[last - lost :]] == [EventKind.lost] * lost
        project.label(30, "dog", person="ann")
    assert repair_project(place, check=True).intact


def test_an_event_that_depends_on_a_lost_one_is_lost_too(place: Path) -> None:
    with open_project(place) as project:
        (undone,) = (event for event in project.events() if event.kind is EventKind.undone)
        corrected = undone.data["of"]
        assert undone.seq == corrected + 1
    damage(place, f"UPDATE events SET person = 'eve' WHERE seq = {corrected}")
    report = repair_project(place)
    assert report.lost_events == (corrected, corrected + 1)
    with open_project(place) as project:
        assert project.state().label_of(3) == "cat"


def test_a_damaged_item_keeps_its_label(place: Path) -> None:
    damage(place, "UPDATE items SET cells = '[\"another text\"]' WHERE position = 2")
    report = repair_project(place)
    assert report.damaged_items == (2,)
    with open_project(place) as project:
        assert project.item(2).id == "damaged item 2"
        assert project.state().label_of(2) == "dog"
        assert project.item(3).cells[0][1].startswith("the cat number 3")


@pytest.mark.parametrize(
    "statement",
    ["UPDATE features SET numbers = zeroblob(length(numbers))", "UPDATE events SET data = '{}' WHERE seq = 1"],
)
def test_labels_are_saved_where_the_project_cannot_be_repaired(place: Path, statement: str) -> None:
    damage(place, statement)
    before = (place / FILE).read_bytes()
    report = repair_project(place)
    assert not report.repaired
    assert report.labels_file == place / LABELS_FILE
    rows = report.labels_file.read_text(encoding="utf-8").splitlines()
    assert len(rows) == 13
    assert rows[2].startswith("1,")
    assert (place / FILE).read_bytes() == before


def test_pages_that_cannot_be_read_lose_only_what_is_on_them(tmp_path: Path) -> None:
    place = tmp_path / "many.suffice"
    numbers = pd.DataFrame({"x": np.arange(6000.0) % 7})
    with create_project(place, numbers, classes=["a", "b"]) as project:
        project.label(5, "a", person="ann")
    file = place / FILE
    content = bytearray(file.read_bytes())
    with closing(sqlite3.connect(file)) as connection:
        size = connection.execute("PRAGMA page_size").fetchone()[0]
        root = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'items'").fetchone()[0]
        leaf = int.from_bytes(content[(root - 1) * size + 12 + 2 * 3 :][:2], "big")
        page = int.from_bytes(content[(root - 1) * size + leaf :][:4], "big")
    content[(page - 1) * size : (page - 1) * size + 8] = b"\xff" * 8
    file.write_bytes(content)
    report = repair_project(place)
    assert report.structure
    assert report.repaired
    assert 0 < len(report.damaged_items) < 1000
    with open_project(place) as project:
        assert project.state().label_of(5) == "a"
        assert len(project.items(range(6000))) == 6000


def test_the_last_row_before_a_page_that_cannot_be_read_is_kept(tmp_path: Path) -> None:
    place = tmp_path / "many.suffice"
    with create_project(place, [f"text {k}" for k in range(300)], classes=["a", "b"]) as project:
        for k in range(200):
            project.label(k, "a", person="ann")
    file = place / FILE
    content = bytearray(file.read_bytes())
    with closing(sqlite3.connect(file)) as connection:
        size = connection.execute("PRAGMA page_size").fetchone()[0]
        root = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'events'").fetchone()[0]
    # The cell of the first leaf in the interior page: its page, and its highest row as a variable-length number.
    start = (root - 1) * size
    cell = start + int.from_bytes(content[start + 12 : start + 14], "big")
    second = start + int.from_bytes(content[start + 14 : start + 16], "big")
    last, page = content[cell + 4], int.from_bytes(content[second : second + 4], "big")
    assert last < 128
    content[(page - 1) * size : (page - 1) * size + 8] = b"\xff" * 8
    file.write_bytes(content)
    report = repair_project(place)
    assert report.repaired
    assert min(report.lost_events) == last + 1


def test_a_file_that_is_shorter_than_it_says_is_read_as_far_as_possible(place: Path) -> None:
    """As if the process was killed while the log was moved into the file, and the log was removed."""
    file = place / FILE
    with closing(sqlite3.connect(file)) as connection:
        size = connection.execute("PRAGMA page_size").fetchone()[0]
    content = bytearray(file.read_bytes())
    content[28:32] = (len(content) // size + 1).to_bytes(4, "big")
    file.write_bytes(content)
    with pytest.raises(StorageError, match=r"is damaged.*suffice repair"):
        open_project(place)
    report = repair_project(place)
    assert (report.repaired, report.lost_events, report.damaged_items) == (True, (), ()), report
    with open_project(place) as project:
        assert project.state().label_of(0) == "dog"


def test_bad_places(tmp_path: Path) -> None:
    with pytest.raises(SufficeError, match="there is no project in"):
        repair_project(tmp_path)
    with pytest.raises(SufficeError, match="backups of its database"):
        repair_project("postgresql://ann@localhost/pets")
    (tmp_path / FILE).write_text("no database at all" * 100)
    with pytest.raises(SufficeError, match=r"nothing in .* can be read"):
        repair_project(tmp_path)


def test_the_last_event_is_noted_and_a_damaged_note_is_ignored_or_noticed(place: Path) -> None:
    head = read_head(place / FILE)
    with open_project(place) as project:
        last = project.state().last
        assert last is not None
        assert head == (last.seq, last.digest)
    note = place / f"{FILE}-head"
    for text in ("", "17", "x y\n", "\xff\n"):
        note.write_text(text, encoding="latin-1")
        assert not isinstance(opened(place), str)
    note.write_text("x" * 1000)
    with open_project(place) as project:
        project.label(30, "cat", person="ann")
        last = project.state().last
        assert last is not None
    assert read_head(place / FILE) == (last.seq, last.digest)
    note.write_text(f"{last.seq} {'0' * 64}\n", encoding="ascii")
    assert "it has other events" in opened(place)
    report = repair_project(place)
    assert (report.other_events, report.repaired, report.kept) == (True, True, None)
    assert "the note is damaged" in " ".join(damage_sentences(report.as_dict(), "pets"))
    assert not isinstance(opened(place), str)


def test_the_report_is_json(place: Path) -> None:
    assert json.loads(json.dumps(repair_project(place).as_dict()))["intact"] is True


def test_the_note_of_the_last_event_is_never_empty_while_events_are_written(place: Path) -> None:
    note = place / f"{FILE}-head"
    with open_project(place) as project:
        # A process can be killed between any two steps: the note is overwritten in one.
        opened = os.open(note, os.O_RDONLY)
        try:
            lengths, stop = set(), Event()

            def look() -> None:
                while not stop.is_set():
                    lengths.add(os.fstat(opened).st_size)

            project.label(30, "cat", person="ann")
            looking = Thread(target=look)
            looking.start()
            for k in range(31, 39):
                project.label(k, "cat", person="ann")
            stop.set()
            looking.join()
        finally:
            os.close(opened)
    assert lengths == {note.stat().st_size}


def test_the_last_event_is_noted_before_another_process_can_write(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    locked = []

    def write(file: Path, _: Head) -> None:
        folder = os.open(file.parent, os.O_RDONLY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
            locked.append(False)
        except BlockingIOError:
            locked.append(True)
        finally:
            os.close(folder)

    monkeypatch.setattr(storage, "write_head", write)
    with open_project(place) as project:
        project.label(30, "cat", person="ann")
    assert locked == [True]
