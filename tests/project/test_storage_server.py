"""A database server that comes and goes, that is set in its own way, and whose password nobody sees."""

import threading
import time
from contextlib import closing
from typing import Any

import pytest

from suffice.errors import InvalidValueError, SufficeError
from suffice.project.create import has_project, open_project
from suffice.project.events import EventKind
from suffice.project.labelling_project import ConflictError, Project
from suffice.project.storage import Database, StorageError, sa
from tests.project.making_projects import make
from tests.project.postgres_server import PASSWORD


def labels(project: Project) -> list[int | None]:
    return [event.item for event in project.events() if event.kind is EventKind.labelled]


def test_a_server_that_is_set_to_be_hasty_waits_all_the_same(postgres: Any) -> None:
    hasty = "%20-csynchronous_commit%3Doff%20-cdefault_transaction_isolation%3Dserializable"
    with make(postgres.new_place() + hasty) as project, project.journal.database.exclusive() as connection:
        assert connection.execute(sa.text("SHOW synchronous_commit")).scalar() == "on"
        assert connection.execute(sa.text("SHOW transaction_isolation")).scalar() == "read committed"


def test_a_server_that_only_reads(postgres: Any) -> None:
    place = postgres.new_place()
    with make(place) as project:
        project.label(0, "cat", person="ann")
    with open_project(place + "%20-cdefault_transaction_read_only%3Don") as project:
        assert project.state().n_labelled == 1
        with pytest.raises(StorageError, match="is read-only: nothing can be written"):
            project.label(1, "cat", person="ann")


def test_a_database_of_another_program_is_left_alone(postgres: Any) -> None:
    place = postgres.new_place()
    name = place.rpartition("%3D")[2]
    postgres.execute(f"CREATE TABLE {name}.items (x int)")
    assert not has_project(place)
    with pytest.raises(ConflictError, match=r"has tables of another program .* \(items\)"):
        make(place)
    with closing(Database(place)) as database, database.reading() as connection:
        assert database.tables(connection) == {"items"}
    with pytest.raises(SufficeError, match="there is no project in"):
        open_project(place)


# --- a server that comes and goes ---


def test_a_server_that_was_started_anew_between_two_calls(postgres: Any) -> None:
    with make(postgres.new_place()) as project:
        project.label(0, "cat", person="ann", request="r0")
        postgres.stop("immediate")
        with pytest.raises(StorageError) as caught:
            project.label(1, "cat", person="ann", request="r1")
        assert PASSWORD not in str(caught.value)
        postgres.start()
        assert not project.label(1, "cat", person="ann", request="r1").repeated
        assert project.label(0, "cat", person="ann", request="r0").repeated
        postgres.stop("fast")
        postgres.start()
        assert project.state().n_labelled == 2
        assert labels(project) == [0, 1]


@pytest.mark.parametrize("committed", [False, True])
def test_a_connection_that_is_lost_at_the_commit(
    postgres: Any, committed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    with make(postgres.new_place()) as project:
        dialect = project.journal.database._engine.dialect
        commit = dialect.do_commit

        def lose(connection: Any) -> None:
            if committed:
                commit(connection)
            own = connection.dbapi_connection
            postgres.execute(f"SELECT pg_terminate_backend({own.info.backend_pid})")
            commit(connection)
            own.execute("SELECT 1")

        with monkeypatch.context() as patch:
            patch.setattr(dialect, "do_commit", lose)
            with pytest.raises(StorageError, match="was lost, so it is not known whether this was written; try again"):
                project.label(0, "cat", person="ann", request="r")
        assert project.label(0, "cat", person="ann", request="r") == (2, 0, committed)
        assert labels(project) == [0]


def test_a_writer_that_dies_lets_the_others_go_on(postgres: Any) -> None:
    with make(postgres.new_place()) as project, closing(Database(project_url(postgres))) as other:
        held, done = threading.Event(), threading.Event()

        def hold() -> None:
            with other.exclusive() as connection:
                pid = connection.execute(sa.text("SELECT pg_backend_pid()")).scalar()
                held.set()
                time.sleep(0.2)
                postgres.execute(f"SELECT pg_terminate_backend({pid})")
                connection.execute(sa.text("SELECT 1"))

        def hold_and_be_told() -> None:
            with pytest.raises(StorageError, match="was lost"):
                hold()
            done.set()

        thread = threading.Thread(target=hold_and_be_told)
        thread.start()
        assert held.wait(30)
        assert project.label(0, "cat", person="ann").seq == 2
        thread.join()
        assert done.is_set()


def project_url(postgres: Any) -> str:
    """The place that was made last."""
    return str(postgres.url(schema=f"pets{postgres._made}"))


# --- passwords ---


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ann:sesame@127.0.0.1:1/pets",
        "postgresql://ann@127.0.0.1:1/pets?password=sesame",
        "postgres://ann:sesame@127.0.0.1:1/pets?sslpassword=sesame",
        "postgresql+psycopg://ann:sesame@127.0.0.1:1/pets",
        "postgresql://ann:sesame@127.0.0.1:port/pets",
        "postgresql://ann:open@sesame@127.0.0.1:1/pets",
        "postgresql://ann:sesame/open@127.0.0.1:1/pets",
        "postgresql://ann:sesame@127.0.0.1:1/pets?sslmode=nonsense",
        "postgresql://ann:sesame@127.0.0.1:1/pets?nonsense=1",
        "mysql://ann:sesame@127.0.0.1:1/pets",
        "nonsense://ann:sesame@127.0.0.1/pets",
        "://ann:sesame@127.0.0.1/pets",
        "postgresql://ann:sesame@[::1/pets",
    ],
)
def test_no_message_holds_a_password(url: str) -> None:
    for use in (open_project, has_project, make):
        with pytest.raises(SufficeError) as caught:
            use(url)
        assert "sesame" not in str(caught.value)
        assert caught.value.__cause__ is None or "sesame" not in str(caught.value.__cause__)


def test_a_wrong_password_and_a_database_that_is_not_there(postgres: Any) -> None:
    for url in (postgres.url().replace(PASSWORD, "wrong-sesame"), postgres.url("nowhere")):
        with pytest.raises(StorageError, match="cannot be used now: ") as caught:
            open_project(url)
        assert "sesame" not in str(caught.value)


def test_a_database_that_is_neither() -> None:
    with pytest.raises(InvalidValueError, match=r"a project is a folder or a PostgreSQL database .* not one of mysql"):
        open_project("mysql://ann@host/pets")
    with pytest.raises(InvalidValueError, match="this is not the URL of a database"):
        open_project("postgresql://ann@host:port/pets")
