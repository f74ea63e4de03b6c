"""Projects of older and later versions: brought up to date whole or not at all, with what was there kept aside."""

import re
import shutil
import signal
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from suffice.errors import SufficeError, upgrade_advice
from suffice.project import create
from suffice.project.create import open_project, project_file
from suffice.project.storage import Database, sa
from tests.project.making_projects import make, picture
from tests.project.project_workers import begin, finish, start

SIZE = 12
FIRST_LAYOUT = """
CREATE TABLE first (
    seq BIGINT PRIMARY KEY, kind TEXT NOT NULL, item BIGINT, person TEXT NOT NULL, at DOUBLE PRECISION NOT NULL,
    data TEXT NOT NULL
);
INSERT INTO first SELECT seq, kind, item, person, at, data FROM events;
DROP TABLE events;
ALTER TABLE items DROP COLUMN checksum;
ALTER TABLE features DROP COLUMN checksum;
ALTER TABLE first RENAME TO events;
UPDATE about SET value = '1' WHERE key = 'layout'
"""


def database_of(place: str) -> Database:
    return Database(place if "://" in place else project_file(place))


def execute(place: str, statements: str) -> None:
    with closing(database_of(place)) as database, database.exclusive() as connection:
        for statement in statements.split(";"):
            connection.execute(sa.text(statement))


def files_in(place: str) -> list[str]:
    """The files of a project, without the note of its last event."""
    return sorted(each.name for each in Path(place).iterdir() if each.name != "project.sqlite-head")


def ask(place: str, question: str) -> list[tuple[Any, ...]]:
    with closing(database_of(place)) as database, database.reading() as connection:
        return [tuple(row) for row in connection.execute(sa.text(question))]


def layout(place: str) -> str:
    return str(ask(place, "SELECT value FROM about WHERE key = 'layout'")[0][0])


@pytest.fixture
def expected(place: str) -> dict[str, Any]:
    """What a project of the first layout, that is made at the place, comes to."""
    with make(place, SIZE, labels={1: "dog"}) as project:
        project.next("ann", 2)
        project.label(3, "cat", person="ann")
        # Without names of requests, what was sent twice could be there twice.
        project.label(4, "eel", person="bob")
        project.correct(4, "dog", person="ann")
        project.skip(5, person="bob")
        project.label(6, "cat", person="bob")
        project.undo(person="bob")
        found = picture(project.state(), SIZE, 0.0)
    execute(place, FIRST_LAYOUT)
    assert layout(place) == "1"
    return found


def test_an_older_project_is_brought_up_to_date_and_goes_on(place: str, expected: dict[str, Any]) -> None:
    with open_project(place) as project:
        assert picture(project.state(), SIZE, 0.0) == expected
        written = project.label(8, "cat", person="ann", request="r")
        assert project.label(8, "cat", person="ann", request="r") == (written.seq, 8, True)
    assert layout(place) == "3"
    execute(place, "INSERT INTO events VALUES (100, 'resumed', NULL, 'x', 0.0, '{}', NULL, '')")
    with pytest.raises(SufficeError, match=r"(?i)unique"):
        execute(place, "INSERT INTO events VALUES (101, 'resumed', NULL, 'x', 0.0, '{}', 'r', '')")


def test_what_was_there_is_kept_aside_and_can_be_read(place: str, expected: dict[str, Any], tmp_path: Path) -> None:
    before = ask(place, "SELECT * FROM events ORDER BY seq")
    with open_project(place) as project:
        project.label(8, "cat", person="ann")
    if "://" in place:
        assert ask(place, "SELECT * FROM events_layout_1 ORDER BY seq") == before
        return
    assert files_in(place) == ["project-layout-1.sqlite", "project.sqlite"]
    kept = Path(place) / "project-layout-1.sqlite"
    connection = sqlite3.connect(kept)
    assert connection.execute("SELECT * FROM events ORDER BY seq").fetchall() == before
    assert connection.execute("SELECT value FROM about").fetchall() == [("1",)]
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()
    # Put back in its place, it is a project again.
    (tmp_path / "back").mkdir()
    shutil.copy(kept, tmp_path / "back" / "project.sqlite")
    with open_project(tmp_path / "back") as project:
        assert picture(project.state(), SIZE, 0.0) == expected


@pytest.mark.usefixtures("expected")
def test_opening_it_again_changes_nothing(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    open_project(place).close()
    before = ask(place, "SELECT * FROM events ORDER BY seq")

    def never(*_: Any) -> None:
        raise AssertionError

    monkeypatch.setattr(create, "_keep_aside", never)
    monkeypatch.setattr(Database, "exclusive", never)
    open_project(place).close()
    assert ask(place, "SELECT * FROM events ORDER BY seq") == before


@pytest.mark.usefixtures("expected")
def test_two_processes_that_open_it_at_once_bring_it_up_to_date_once(place: str) -> None:
    workers = [start("open", place) for _ in range(2)]
    for worker in workers:
        begin(worker)
    assert [finish(worker) for worker in workers] == [3, 3]
    assert layout(place) == "3"


def test_what_cannot_be_kept_aside_is_not_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = str(tmp_path / "pets.suffice")
    make(place, SIZE, labels={1: "dog"}).close()
    execute(place, FIRST_LAYOUT)
    in_the_way = Path(place) / "project-layout-1.sqlite"
    in_the_way.mkdir()
    before = ask(place, "SELECT * FROM events")
    with pytest.raises(SufficeError, match=r"cannot be kept aside as .*project-layout-1\.sqlite before it is brought"):
        open_project(place)
    assert (layout(place), ask(place, "SELECT * FROM events")) == ("1", before)
    assert files_in(place) == ["project-layout-1.sqlite", "project.sqlite"]
    in_the_way.rmdir()

    def full(*_: Any) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(create, "_copy", full)
        with pytest.raises(SufficeError, match=r"cannot be kept aside .* database or disk is full"):
            open_project(place)
    assert layout(place) == "1"
    open_project(place).close()
    assert layout(place) == "3"


@pytest.mark.parametrize("moment", ["copying", "kept aside", "changed"])
def test_a_process_killed_while_at_it_leaves_the_older_project(
    place: str, expected: dict[str, Any], moment: str
) -> None:
    if "://" in place and moment == "copying":
        pytest.skip("in PostgreSQL nothing is copied outside the transaction")
    before = ask(place, "SELECT * FROM events ORDER BY seq")
    worker = start("migrate", place, moment)
    begin(worker)
    assert worker.wait(60) == -signal.SIGKILL
    worker.communicate()
    assert (layout(place), ask(place, "SELECT * FROM events ORDER BY seq")) == ("1", before)
    with open_project(place) as project:
        assert picture(project.state(), SIZE, 0.0) == expected
    assert layout(place) == "3"
    if "://" not in place:
        assert files_in(place) == ["project-layout-1.sqlite", "project.sqlite"]


def test_a_step_that_fails_leaves_the_older_project(place: str, expected: dict[str, Any]) -> None:
    # A table of this name is in the way of the index.
    execute(place, "CREATE TABLE events_request (x BIGINT)")
    with pytest.raises(SufficeError, match="events_request"):
        open_project(place)
    assert layout(place) == "1"
    execute(place, "DROP TABLE events_request")
    with open_project(place) as project:
        assert picture(project.state(), SIZE, 0.0) == expected


def test_a_project_of_a_later_version_is_left_alone(place: str) -> None:
    make(place, SIZE).close()
    execute(place, "UPDATE about SET value = '4' WHERE key = 'layout'")
    before = ask(place, "SELECT * FROM events")
    later = r"was made by a later version of suffice \(layout 4, .*\); "
    with pytest.raises(SufficeError, match=later + re.escape(upgrade_advice())):
        open_project(place)
    assert (layout(place), ask(place, "SELECT * FROM events")) == ("4", before)


@pytest.mark.parametrize("value", ["0", "", "two", "²", "-1"])
def test_a_layout_that_is_none_is_no_project(value: str, tmp_path: Path) -> None:
    place = str(tmp_path / "pets.suffice")
    make(place, SIZE).close()
    execute(place, f"UPDATE about SET value = '{value}' WHERE key = 'layout'")
    with pytest.raises(SufficeError, match="there is no project in"):
        open_project(place)
