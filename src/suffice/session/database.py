"""Where a project is kept: one SQLite file, or one PostgreSQL database; the same few tables in both."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from suffice.errors import InvalidValueError, MissingExtraError, SufficeError

try:
    import sqlalchemy as sa
    from sqlalchemy import Connection, Engine
    from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError
except ImportError:
    raise MissingExtraError("SQLAlchemy", "label", "A labelling project") from None

#: The file in a project's folder.
FILE: Final = "project.sqlite"
#: How the tables are laid out; see :mod:`suffice.session.layouts`.
LAYOUT: Final = 2
#: Seconds to wait for somebody else who is writing.
_PATIENCE: Final = 30
# Writers of one project take turns by this lock of PostgreSQL, within its schema.
_LOCK: Final = 0x5FF1CE

_TABLES = sa.MetaData()
about_table = sa.Table(
    "about", _TABLES, sa.Column("key", sa.Text, primary_key=True), sa.Column("value", sa.Text, nullable=False)
)
events_table = sa.Table(
    "events",
    _TABLES,
    sa.Column("seq", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("item", sa.BigInteger),
    sa.Column("person", sa.Text, nullable=False),
    sa.Column("at", sa.Double, nullable=False),
    sa.Column("data", sa.Text, nullable=False),
    sa.Column("request", sa.Text, unique=True),
)
items_table = sa.Table(
    "items",
    _TABLES,
    sa.Column("position", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("id", sa.Text, nullable=False),
    sa.Column("cells", sa.Text, nullable=False),
)
features_table = sa.Table(
    "features",
    _TABLES,
    sa.Column("block", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("width", sa.BigInteger, nullable=False),
    sa.Column("numbers", sa.LargeBinary, nullable=False),
)


class StorageError(SufficeError):
    """The place of a project cannot be read or written now."""


class StorageFullError(StorageError):
    """There is no room left for the place of a project; what was to be written was not."""


class Database:
    """A place with the tables of one project.

    Every write is one transaction that is on the disk before it is acknowledged, and writers take turns, also those of
    other processes.

    Args:
        place: The SQLite file, or the URL of a PostgreSQL database.
    """

    def __init__(self, place: Path | str) -> None:
        self.file = place if isinstance(place, Path) else None
        self._engine = _sqlite(place) if isinstance(place, Path) else _postgres(place)
        self.place = str(place) if self.file is not None else self._engine.url.render_as_string(hide_password=True)

    @contextmanager
    def exclusive(self) -> Iterator[Connection]:
        """A transaction during which nobody else writes; committed at the end, or as if it had never been."""
        with self._sentences(), self._engine.connect() as connection:
            own = connection.execution_options(begin="BEGIN IMMEDIATE")
            with own.begin():
                if self.file is None:
                    connection.execute(sa.text(f"SELECT pg_advisory_xact_lock({_LOCK}, hashtext(current_schema()))"))
                yield own

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection to read by, beside whoever writes."""
        with self._sentences(), self._engine.connect() as connection:
            yield connection

    def tables(self, connection: Connection) -> set[str]:
        """Names of the tables that are there."""
        return set(sa.inspect(connection).get_table_names())

    def make_tables(self, connection: Connection) -> None:
        """Make the tables of a project that has none."""
        _TABLES.create_all(connection)

    def close(self) -> None:
        """Let go of the place."""
        self._engine.dispose()

    @contextmanager
    def _sentences(self) -> Iterator[None]:
        try:
            yield
        except DBAPIError as error:
            raise self._sentence(error) from error

    def _sentence(self, error: DBAPIError) -> StorageError:
        """What went wrong with the database, for a person."""
        cause = error.orig
        code = getattr(cause, "sqlite_errorcode", 0) & 0xFF
        state = getattr(cause, "sqlstate", None) or ""
        if code == sqlite3.SQLITE_FULL or state == "53100":
            return StorageFullError(
                f"the disk of {self.place} is full: this was not written, all before it was; make room and try again"
            )
        sentences = {
            sqlite3.SQLITE_BUSY: f"another program has been writing to {self.place} for {_PATIENCE} seconds; try again",
            sqlite3.SQLITE_READONLY: f"{self.place} is read-only: nothing can be written; make it writable, or copy it",
            sqlite3.SQLITE_NOTADB: f"{self.place} is not a project: it is no SQLite file",
            sqlite3.SQLITE_CORRUPT: f"{self.place} is damaged; take it from a backup",
            sqlite3.SQLITE_CANTOPEN: f"{self.place} cannot be opened: is its folder there, and writable?",
        }
        said = str(cause).strip().splitlines()
        return StorageError(sentences.get(code) or f"{self.place} cannot be used now: {said[0] if said else cause}")


def _sqlite(file: Path) -> Engine:
    engine = sa.create_engine(
        sa.URL.create("sqlite", database=str(file)), connect_args={"timeout": _PATIENCE, "check_same_thread": False}
    )

    @sa.event.listens_for(engine, "connect")
    def _connected(connection: Any, _: Any) -> None:
        # Transactions begin where this module says, not where Python guesses.
        connection.isolation_level = None
        # Readers go on while somebody writes; and what is committed is on the disk, also after a power cut.
        if not _read_only(connection):
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=FULL")

    @sa.event.listens_for(engine, "begin")
    def _begun(connection: Connection) -> None:
        connection.exec_driver_sql(connection.get_execution_options().get("begin", "BEGIN"))

    return engine


def _read_only(connection: Any) -> bool:
    return bool(connection.execute("PRAGMA query_only").fetchone()[0])


def _postgres(url: str) -> Engine:
    try:
        address = sa.make_url(url)
        if address.get_backend_name() != "postgresql":
            raise InvalidValueError(
                f"a project is a folder or a PostgreSQL database (postgresql://user@host/name), not "
                f"{address.render_as_string(hide_password=True)}"
            )
        engine = sa.create_engine(address.set(drivername="postgresql+psycopg"), pool_pre_ping=True)
    except (ArgumentError, NoSuchModuleError):
        raise InvalidValueError(f"{url!r} is not the URL of a database; postgresql://user@host/name is one") from None
    except ImportError:
        raise MissingExtraError("psycopg", "postgres", "A project in PostgreSQL") from None

    @sa.event.listens_for(engine, "connect")
    def _connected(connection: Any, _: Any) -> None:
        with connection.cursor() as cursor:
            # A server may be set to acknowledge before it has written.
            cursor.execute("SET synchronous_commit TO on")
        connection.commit()

    return engine
