"""Connections to the database of a project: a SQLite file, or PostgreSQL by URL."""

import os
import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from suffice.errors import InvalidValueError, MissingExtraError

# All modules import SQLAlchemy from here, so that the error message is the same everywhere.
try:
    import sqlalchemy as sa
    from sqlalchemy import URL, Connection, Engine
except ImportError:
    raise MissingExtraError("SQLAlchemy", "label", "A labelling project") from None

__all__ = [
    "PATIENCE",
    "Connection",
    "has_log",
    "identity",
    "is_writable",
    "log_of",
    "postgres_engine",
    "postgres_url",
    "sa",
    "sqlite_engine",
    "sqlite_guard",
    "sync_folder",
    "without_password",
]

#: Seconds to wait for somebody else who is writing.
PATIENCE: Final = 30
#: Seconds to wait for a server that does not answer at all.
_ANSWER: Final = 10
# Parts of a URL that must not be shown.
_SECRET: Final = ("password", "sslpassword")


def is_writable(file: Path) -> bool:
    """Whether a file can be written: SQLite writes others beside it, so its folder must be writable too."""
    return os.access(file, os.W_OK) and os.access(file.absolute().parent, os.W_OK)


def has_log(file: Path) -> bool:
    """Whether something that was written last lies beside a SQLite file, and not yet in it."""
    log = log_of(file)
    return log.exists() and log.stat().st_size > 0


def log_of(file: Path) -> Path:
    """The write-ahead file of a SQLite file."""
    return file.with_name(f"{file.name}-wal")


def sqlite_guard(file: Path) -> sqlite3.Connection:
    """A connection to a SQLite file that has opened its write-ahead file, which SQLite keeps while one is open."""
    address = f"{file.absolute().as_uri()}?mode=rw"
    guard = sqlite3.connect(address, uri=True, timeout=PATIENCE, check_same_thread=False, isolation_level=None)
    guard.execute("SELECT count(*) FROM sqlite_master").fetchone()
    return guard


def sync_folder(folder: Path) -> None:
    """Have the names in a folder on the disk, also after a power cut; where a system cannot, it does so by itself."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def sqlite_engine(file: Path, *, new: bool, read_only: bool) -> Engine:
    """The way to a SQLite file.

    Args:
        file: The file.
        new: Whether it is made if it is not there.
        read_only: Whether it is only to be read, and nothing is written beside it either.
    """

    def connect() -> sqlite3.Connection:
        mode = _reading(file) if read_only else "mode=rwc" if new else "mode=rw"
        address = f"{file.absolute().as_uri()}?{mode}"
        return sqlite3.connect(address, uri=True, timeout=PATIENCE, check_same_thread=False)

    # A file that is only read may be written by somebody else: each time, it is looked at anew.
    pool = sa.pool.NullPool if read_only else sa.pool.QueuePool
    engine = sa.create_engine(sa.URL.create("sqlite", database=str(file)), creator=connect, poolclass=pool)

    @sa.event.listens_for(engine, "connect")
    def _connected(connection: Any, record: Any) -> None:
        # Transactions begin where this module says, not where Python guesses.
        connection.isolation_level = None
        record.info["file"] = identity(file)
        # With a write-ahead log, readers do not wait for writers. A file that is not a project is not changed.
        mode = connection.execute(f"PRAGMA journal_mode{'=WAL' if new else ''}").fetchone()[0]
        # What is committed is on the disk, also after a power cut; without a log (in some network folders) the name of
        # a removed file must be as well.
        connection.execute(f"PRAGMA synchronous={'FULL' if mode == 'wal' else 'EXTRA'}")

    @sa.event.listens_for(engine, "begin")
    def _begun(connection: Connection) -> None:
        connection.exec_driver_sql(connection.get_execution_options().get("begin", "BEGIN"))

    return engine


def identity(file: Path) -> tuple[int, int] | None:
    """Identity of a file, which changes if another file takes its name; None if there is none."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def postgres_engine(url: str) -> Engine:
    """The way to a PostgreSQL database.

    Raises:
        InvalidValueError: It is not the URL of one.
        MissingExtraError: What is needed for it is not installed.
    """
    address = postgres_url(url)
    patience = {} if "connect_timeout" in address.query else {"connect_timeout": _ANSWER}
    try:
        engine = sa.create_engine(
            address, connect_args=patience, pool_pre_ping=True, isolation_level="READ COMMITTED", hide_parameters=True
        )
    except ImportError:
        raise MissingExtraError("psycopg", "postgres", "A project in PostgreSQL") from None

    @sa.event.listens_for(engine, "connect")
    def _connected(connection: Any, _: Any) -> None:
        with connection.cursor() as cursor:
            # A server may be set to acknowledge before it has written.
            off = "current_setting('synchronous_commit') = 'off'"
            cursor.execute(f"SELECT set_config('synchronous_commit', 'on', false) WHERE {off}")
            cursor.execute(f"SET lock_timeout TO '{PATIENCE}s'")
        connection.commit()

    return engine


def postgres_url(url: str) -> URL:
    """The URL of a PostgreSQL database, with the driver that is used here.

    Raises:
        InvalidValueError: It is not the URL of one. The message does not hold it: there may be a password in it.
    """
    try:
        address = sa.make_url(url)
    except (sa.exc.ArgumentError, ValueError):
        raise InvalidValueError(
            "this is not the URL of a database; postgresql://user@host:5432/name is one, with characters such as @ "
            "and / in a password written as %40 and %2F"
        ) from None
    if address.get_backend_name() not in {"postgresql", "postgres"}:
        raise InvalidValueError(
            "a project is a folder or a PostgreSQL database (postgresql://user@host/name), not one of "
            f"{address.get_backend_name()}"
        )
    if "@" in (address.host or ""):
        raise InvalidValueError("the URL of the database has @ in its password or host; write it as %40")
    return address.set(drivername="postgresql+psycopg")


def without_password(address: URL) -> str:
    """A URL as it may be shown.

    Examples:
        >>> without_password(postgres_url("postgres://ann:secret@db/pets?password=secret&sslmode=require"))
        'postgresql://ann@db/pets?sslmode=require'
    """
    shown = URL.create("postgresql", address.username, None, address.host, address.port, address.database)
    query = {name: value for name, value in address.query.items() if name not in _SECRET}
    return shown.set(query=query).render_as_string(hide_password=True)


def _reading(file: Path) -> str:
    # What lies in the log is read with it, which needs the files beside it; without a log nothing else is needed.
    return "mode=ro" if has_log(file) else "mode=ro&immutable=1"
