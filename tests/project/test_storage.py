"""Places that fail: full, read-only, damaged, locked, moved, gone for a while. A sentence each, and nothing lost."""

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from suffice.errors import SufficeError
from suffice.project import create, sqlite_files, storage
from suffice.project.create import has_project, open_project
from suffice.project.events import EventKind
from suffice.project.labelling_project import ConflictError, Project
from suffice.project.storage import FILE, Database, StorageError, StorageFullError, sa
from tests.project import full_disk
from tests.project.full_disk import fill
from tests.project.making_projects import make, picture
from tests.project.project_workers import begin, finish, start


@pytest.fixture
def reached_by_all() -> Iterator[Path]:
    """A folder that everybody can look into."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.fixture
def folder(reached_by_all: Path) -> Path:
    """A place for a project."""
    return reached_by_all / "pets.suffice"


def labels(project: Project) -> list[int | None]:
    return [event.item for event in project.events() if event.kind is EventKind.labelled]


# --- what is acknowledged is on the disk ---


def test_every_connection_waits_for_the_disk(tmp_path: Path) -> None:
    with make(tmp_path / "pets.suffice") as project, ExitStack() as stack:
        database = project.journal.database
        connections = [stack.enter_context(database.reading()) for _ in range(4)]
        connections.append(stack.enter_context(database.exclusive()))
        for connection in connections:
            assert connection.execute(sa.text("PRAGMA journal_mode")).scalar() == "wal"
            assert connection.execute(sa.text("PRAGMA synchronous")).scalar() == 2


def test_without_a_log_the_name_of_a_removed_file_is_waited_for_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class NoLog(sqlite3.Connection):
        """As in a network folder."""

        def execute(self, statement: str, *arguments: Any) -> sqlite3.Cursor:
            return super().execute(statement.replace("journal_mode=WAL", "journal_mode"), *arguments)

    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *a, **b: connect(*a, **b, factory=NoLog))
    with make(tmp_path / "pets.suffice") as project:
        project.label(0, "cat", person="ann")
        with project.journal.database.reading() as connection:
            assert connection.execute(sa.text("PRAGMA journal_mode")).scalar() == "delete"
            assert connection.execute(sa.text("PRAGMA synchronous")).scalar() == 3


# --- full ---


def check_full_and_room_again(project: Project, limit: Any, lift: Any) -> None:
    """Label until the disk is full, make room, go on: nothing is lost, and what was refused is not there."""
    project.label(0, "cat", person="ann", request="r0")
    limit()
    done = 1

    def label_all() -> None:
        nonlocal done
        while done < project.size:
            project.label(done, "cat", person="ann", request=f"r{done}" + "x" * 80)
            done += 1

    def change_all() -> None:
        for _ in range(500):
            project.next("bob", 20)
            project.undo(person="ann")
            project.label(done - 1, "dog", person="ann")

    with pytest.raises(StorageFullError, match=r"the disk of .* is full: this was not written, all before it was"):
        label_all()
    assert project.state().n_labelled == done
    with pytest.raises(StorageFullError):
        change_all()
    before = project.events()
    lift()
    assert project.events()[: len(before)] == before
    state = project.state()
    assert [state.label_of(item) is not None for item in range(done - 1)] == [True] * (done - 1)
    assert not project.label(done, "cat", person="ann", request=f"r{done}" + "x" * 80).repeated
    events = project.events()
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    again = Project(project.journal.database, project.size)
    assert picture(again.state(), project.size, 0.0) == picture(project.state(), project.size, 0.0)


def test_a_full_database(tmp_path: Path) -> None:
    with make(tmp_path / "pets.suffice", 400) as project:
        pages = 0
        wanted = 2**30

        def set_limit(connection: Any, *_: Any) -> None:
            connection.execute(f"PRAGMA max_page_count={wanted}")

        sa.event.listen(project.journal.database._engine, "checkout", set_limit)
        with project.journal.database.reading() as connection:
            pages = int(connection.execute(sa.text("PRAGMA page_count")).scalar() or 0)

        def limit() -> None:
            nonlocal wanted
            wanted = pages + 4

        def lift() -> None:
            nonlocal wanted
            wanted = 2**30

        check_full_and_room_again(project, limit, lift)


@pytest.fixture
def small_disk(reached_by_all: Path) -> Iterator[Path]:
    """A disk of two megabytes, where this may be made."""
    folder = reached_by_all / "disk"
    with full_disk.small_disk(folder, 2) as mounted:
        if not mounted:
            pytest.skip("a small disk cannot be mounted here: not root, or mount is refused")
        yield folder


def test_a_full_disk(small_disk: Path) -> None:
    filling = small_disk / "filling"
    with make(small_disk / "pets.suffice", 400) as project:
        check_full_and_room_again(project, lambda: fill(filling), filling.unlink)


def test_a_project_on_a_full_disk_is_read(small_disk: Path) -> None:
    place = small_disk / "pets.suffice"
    with make(place, 40) as project:
        project.label(7, "cat", person="ann")
    filling = small_disk / "filling"
    fill(filling)
    with open_project(place) as project:
        assert labels(project) == [7]
        with pytest.raises(StorageError, match="was full when it was opened, so it can only be read"):
            project.label(8, "cat", person="ann")
    filling.unlink()
    with open_project(place) as project:
        project.label(8, "cat", person="ann")
        assert labels(project) == [7, 8]


@pytest.mark.slow
def test_a_disk_that_is_too_small_for_a_project(small_disk: Path) -> None:
    with pytest.raises(StorageFullError, match="is full"):
        make(small_disk / "pets.suffice", 50_000)
    assert list(small_disk.iterdir()) == []
    make(small_disk / "pets.suffice", 50).close()
    assert has_project(small_disk / "pets.suffice")


def test_a_full_disk_of_a_server(small_disk: Path, postgres: Any) -> None:
    shutil.chown(small_disk, "postgres")
    place = postgres.new_place()
    name = place.rpartition("%3D")[2]
    postgres.execute(f"CREATE TABLESPACE small_{name} LOCATION '{small_disk}'")
    filling = small_disk / "filling"
    try:
        with make(place, 400) as project:
            postgres.execute(f"ALTER TABLE {name}.events SET TABLESPACE small_{name}")
            check_full_and_room_again(project, lambda: fill(filling), filling.unlink)
    finally:
        postgres.execute(f"DROP SCHEMA {name} CASCADE")
        postgres.execute(f"DROP TABLESPACE small_{name}")


@pytest.mark.slow
def test_a_file_that_may_not_grow(tmp_path: Path) -> None:
    place = tmp_path / "pets.suffice"
    make(place, 400).close()
    worker = start("limit", str(place), "200000")
    begin(worker)
    found = finish(worker)
    assert found["refused"].startswith("StorageFullError: the disk of ")
    assert found["done"] > 5
    assert (found["repeated"], found["n"]) == (False, found["done"] + 1)
    with open_project(place) as project:
        assert labels(project) == list(range(found["n"]))


# --- read-only ---


def look(place: Path) -> dict[str, Any]:
    """What somebody finds who may not write there."""
    worker = start("look", str(place))
    begin(worker)
    found = finish(worker)
    assert isinstance(found, dict)
    return found


@pytest.fixture
def closed(folder: Path) -> Iterator[Path]:
    """A project with a label in a folder that nobody may write to."""
    with make(folder, labels={3: "dog"}) as project:
        project.label(0, "cat", person="ann")
    freeze(folder)
    yield folder
    folder.chmod(0o755)


def freeze(folder: Path) -> None:
    for each in folder.iterdir():
        each.chmod(0o444)
    folder.chmod(0o555)


def test_a_project_in_a_read_only_folder_can_be_looked_at(closed: Path) -> None:
    found = look(closed)
    assert found["n_labelled"] == 2
    assert found["cells"] == [["text", "pet 0 🐌"], ["number", "0.0"]]
    assert found["written"].startswith("StorageError: ")
    assert found["written"].endswith("is read-only: nothing can be written; make it writable, or copy it")
    assert sorted(each.name for each in closed.iterdir()) == [FILE, f"{FILE}-head"]


def test_what_a_killed_process_wrote_is_seen_in_a_read_only_folder(folder: Path) -> None:
    left = folder.with_name("left")
    with make(folder) as project:
        project.label(0, "cat", person="ann")
        # As they lie after kill -9: the label is in the log only.
        shutil.copytree(folder, left)
    assert sorted(each.name for each in left.iterdir()) == [FILE, f"{FILE}-head", f"{FILE}-shm", f"{FILE}-wal"]
    freeze(left)
    assert look(left)["n_labelled"] == 1
    left.chmod(0o755)
    (left / f"{FILE}-shm").unlink()
    left.chmod(0o555)
    # Rather a sentence than a project without its last labels.
    assert "cannot be opened" in look(left)["opened"]
    left.chmod(0o755)


def test_a_project_that_somebody_else_is_writing_can_be_looked_at(folder: Path) -> None:
    with make(folder) as project:
        for each in folder.iterdir():
            each.chmod(0o644)
        folder.chmod(0o755)
        project.label(0, "cat", person="ann")
        if os.geteuid():
            pytest.skip("only root can be somebody else")
        found = look(folder)
        assert found["n_labelled"] == 1
        assert "is read-only" in found["written"]
        assert project.label(2, "cat", person="ann").seq == 3


def test_a_read_only_file_in_a_folder_that_can_be_written(closed: Path) -> None:
    closed.chmod(0o777)
    found = look(closed)
    assert found["n_labelled"] == 2
    assert "is read-only" in found["written"]
    assert sorted(each.name for each in closed.iterdir()) == [FILE, f"{FILE}-head"]


def test_an_older_project_in_a_read_only_folder(folder: Path) -> None:
    make(folder).close()
    with closing(sqlite3.connect(folder / FILE)) as connection:
        connection.execute("UPDATE about SET value = '1'")
        connection.commit()
    freeze(folder)
    assert (
        "by an older version of suffice and must be brought up to date, but it is read-only" in look(folder)["opened"]
    )
    folder.chmod(0o755)


def test_a_project_that_may_not_be_read(closed: Path) -> None:
    (closed / FILE).chmod(0o000)
    assert "cannot be opened: is it there, and may you read it?" in look(closed)["opened"]


# --- damaged, locked, moved ---


@pytest.mark.parametrize("content", [b"not a database, but long enough to be looked at\n" * 100, b"PK\x03\x04"])
def test_a_file_that_is_no_database(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "pets.sqlite"
    file.write_bytes(content)
    for use in (open_project, has_project, make):
        with pytest.raises(StorageError, match=r"pets\.sqlite is not a project: it is no SQLite file"):
            use(file)
    assert file.read_bytes() == content


def test_a_file_that_is_not_a_project(tmp_path: Path) -> None:
    empty = tmp_path / "empty.sqlite"
    empty.touch()
    other = tmp_path / "other.sqlite"
    with closing(sqlite3.connect(other)) as connection:
        connection.execute("CREATE TABLE items (x)")
    for file in (empty, other):
        before = file.read_bytes()
        assert not has_project(file)
        with pytest.raises(SufficeError, match="there is no project in"):
            open_project(file)
        with pytest.raises(ConflictError, match="exists already, and is not a project"):
            make(file)
        assert file.read_bytes() == before
        assert {each.name for each in tmp_path.iterdir()} == {"empty.sqlite", "other.sqlite"}


@pytest.mark.parametrize("left", [0, 300, 4096, 40_960, 50_000, -4096, -1])
def test_a_truncated_file(tmp_path: Path, left: int) -> None:
    make(tmp_path / "pets.suffice", 2000).close()
    file = tmp_path / "pets.suffice" / FILE
    os.truncate(file, left if left >= 0 else file.stat().st_size + left)
    with pytest.raises(
        SufficeError, match=r"is damaged.* take it from a backup|is no SQLite file|there is no project in"
    ):
        open_project(file)


def test_there_is_nothing(tmp_path: Path) -> None:
    assert not has_project(tmp_path / "no.suffice")
    for place in (tmp_path / "no.suffice", tmp_path):
        with pytest.raises(SufficeError, match=r"there is no project in .*; suffice label DATA\.csv creates one"):
            open_project(place)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.one_in(2)
def test_a_place_that_somebody_else_keeps_to_themselves(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (storage, sqlite_files):
        monkeypatch.setattr(module, "PATIENCE", 0.2)
    make(place).close()
    with (
        open_project(place) as project,
        closing(Database(place if "://" in place else create.project_file(place))) as other,
    ):
        with other.exclusive():
            assert project.state().n_labelled == 0
            with pytest.raises(
                StorageError, match=r"another program has been writing to .* for 0.2 seconds; try again"
            ):
                project.label(0, "cat", person="ann", request="r")
        assert not project.label(0, "cat", person="ann", request="r").repeated


def test_more_readers_than_connections(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with make(place) as project, ExitStack() as stack:
        monkeypatch.setattr(project.journal.database._engine.pool, "_timeout", 0.1)
        for _ in range(15):
            stack.enter_context(project.journal.database.reading())
        with pytest.raises(StorageError, match="is too busy; try again"):
            project.state()


@pytest.mark.parametrize("fate", ["moved", "removed", "replaced", "folder removed"])
def test_a_file_that_is_gone_is_not_written_to(tmp_path: Path, fate: str) -> None:
    place = tmp_path / "pets.suffice"
    with make(place) as project:
        project.label(0, "cat", person="ann")
        if fate == "folder removed":
            shutil.rmtree(place)
        elif fate == "removed":
            (place / FILE).unlink()
        else:
            (place / FILE).rename(tmp_path / "elsewhere")
        if fate == "replaced":
            make(tmp_path / "other.suffice").close()
            shutil.copy(tmp_path / "other.suffice" / FILE, place / FILE)
        with pytest.raises(
            StorageError, match="was moved, removed or replaced while it was open: this was not written"
        ):
            project.label(1, "cat", person="ann")
    # No empty file in its place, which would look as if nothing had been labelled.
    assert (place / FILE).exists() == (fate == "replaced")


def test_a_file_that_is_gone_is_not_made_anew(tmp_path: Path) -> None:
    database = Database(tmp_path / "no.sqlite")
    with pytest.raises(StorageError, match="cannot be opened"), database.reading():
        pass
    database.close()
    assert list(tmp_path.iterdir()) == []
