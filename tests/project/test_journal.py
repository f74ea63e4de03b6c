"""The journal: numbered without gaps, written once, never changed, and noticed when it is another one."""

from collections.abc import Iterator

import pytest

from suffice.project.events import Draft, Event, EventKind
from suffice.project.labelling_project import Project
from suffice.project.storage import Connection, Database, StorageError, read_events, sa, write_events
from tests.project.making_projects import make


@pytest.fixture
def project(place: str) -> Iterator[Project]:
    with make(place) as project:
        yield project


def last_of(connection: Connection) -> Event:
    return read_events(connection)[-1]


@pytest.fixture
def database(project: Project) -> Database:
    return project.journal.database


def test_events_come_back_as_they_were_written(database: Database) -> None:
    drafts = [
        Draft(EventKind.labelled, "Zoë 🐌", 3, {"label": "a,'\"\\ \x00 \ud800 🐈"}, "r'1"),
        Draft(EventKind.labelled, "", None, {"label": 0.1 + 0.2, "list": [1, None, True], "deep": {"a": {}}}),
        Draft(EventKind.advised, data={"n_labelled": 10**12, "reason": "x" * 100_000}),
    ]
    with database.exclusive() as connection:
        written = write_events(connection, drafts, last=last_of(connection), at=1_700_000_000.123456)
    with database.reading() as connection:
        assert read_events(connection, after=1) == written
        assert [event.seq for event in read_events(connection)] == [1, 2, 3, 4]
        assert read_events(connection, after=4) == []
    assert [event.at for event in written] == [1_700_000_000.123456] * 3


def test_nothing_to_write_writes_nothing(database: Database) -> None:
    with database.exclusive() as connection:
        assert write_events(connection, [], last=last_of(connection), at=0.0) == []
        assert len(read_events(connection)) == 1


def test_events_of_a_transaction_that_fails_were_never_there(database: Database) -> None:
    def fail() -> None:
        with database.exclusive() as connection:
            write_events(connection, [Draft(EventKind.resumed, "ann")] * 3, last=last_of(connection), at=0.0)
            assert len(read_events(connection)) == 4
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    with database.reading() as connection:
        assert len(read_events(connection)) == 1


@pytest.mark.parametrize(
    ("seq", "request_name"),
    [pytest.param(1, None, id="a number"), pytest.param(3, "r", id="the name of a request")],
)
def test_the_place_itself_takes_nothing_twice(project: Project, seq: int, request_name: str | None) -> None:
    project.label(0, "cat", person="ann", request="r")
    before = project.events()

    def write() -> None:
        draft = Draft(EventKind.labelled, "bob", 1, {"label": "dog"}, request_name)
        with project.journal.database.exclusive() as connection:
            write_events(connection, [draft], last=before[seq - 2] if seq > 1 else None, at=0.0)

    with pytest.raises(StorageError, match=r"(?i)unique"):
        write()
    assert project.events() == before


def test_what_is_not_json_is_not_written(database: Database) -> None:
    def write() -> None:
        with database.exclusive() as connection:
            draft = Draft(EventKind.labelled, "a", 0, {"label": float("nan")})
            write_events(connection, [draft], last=last_of(connection), at=0.0)

    with pytest.raises(ValueError, match="JSON compliant"):
        write()
    with database.reading() as connection:
        assert len(read_events(connection)) == 1


def test_a_journal_that_lost_events_is_not_written_on(project: Project) -> None:
    project.label(0, "cat", person="ann")
    project.label(1, "dog", person="ann")
    with project.journal.database.exclusive() as connection:
        connection.execute(sa.text("DELETE FROM events WHERE seq = 3"))
    with pytest.raises(StorageError, match="is not the one that was read before"):
        project.label(2, "eel", person="ann")
    with pytest.raises(StorageError, match="is not the one that was read before"):
        project.state()
    # As it is now, it can be gone on with.
    again = Project(project.journal.database, project.size)
    assert again.label(2, "eel", person="ann").seq == 3


def test_a_journal_of_another_course_is_not_written_on(project: Project) -> None:
    project.label(0, "cat", person="ann")
    with project.journal.database.exclusive() as connection:
        last = last_of(connection)
        connection.execute(sa.text("UPDATE events SET person = 'bob' WHERE seq = 2"))
        write_events(connection, [Draft(EventKind.resumed, "bob")], last=last, at=0.0)
    with pytest.raises(StorageError, match="is not the one that was read before"):
        project.label(2, "eel", person="ann")
    with pytest.raises(StorageError, match="event 2 does not have its checksum"):
        project.events()


def test_a_journal_without_a_beginning_is_refused(project: Project) -> None:
    with project.journal.database.exclusive() as connection:
        connection.execute(sa.text("DELETE FROM events"))
    with pytest.raises(Exception, match="has no beginning; take the project from a backup"):
        Project(project.journal.database, project.size)


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param("DELETE FROM events WHERE seq = 2", id="an event is missing"),
        pytest.param("UPDATE events SET kind = 'unheard of' WHERE seq = 2", id="a kind that is none"),
        pytest.param("UPDATE events SET data = '{' WHERE seq = 2", id="half of an event"),
        pytest.param("UPDATE events SET data = '{}' WHERE seq = 2", id="a label that is missing"),
        pytest.param("UPDATE events SET item = 20 WHERE seq = 2", id="an item that is none"),
        pytest.param("UPDATE events SET item = NULL WHERE seq = 2", id="no item"),
        pytest.param("UPDATE events SET data = '{\"of\": 99}' WHERE seq = 3", id="undone what never was"),
        pytest.param('UPDATE events SET data = \'{"settings": {"name": 1}}\' WHERE seq = 1', id="no settings"),
    ],
)
def test_a_damaged_journal_is_said_to_be_damaged(project: Project, damage: str) -> None:
    project.label(0, "cat", person="ann")
    project.undo(person="ann")
    with project.journal.database.exclusive() as connection:
        # A colon would be the name of something to be filled in.
        connection.exec_driver_sql(damage)
    with pytest.raises(StorageError, match=r"is damaged: .* take it from a backup"):
        Project(project.journal.database, project.size)


@pytest.mark.parametrize(
    "damage", ["UPDATE features SET width = 7", "UPDATE items SET cells = '[1]'", "DELETE FROM items"]
)
def test_damaged_contents_are_said_to_be_damaged(project: Project, damage: str) -> None:
    with project.journal.database.exclusive() as connection:
        connection.exec_driver_sql(damage)
    with pytest.raises(StorageError, match=r"is damaged: .* take it from a backup"):
        _ = project.X if "features" in damage else project.item(3)
    # Labelling goes on: the journal is whole.
    assert project.label(0, "cat", person="ann").seq == 2
