"""The database of a project, SQLite or PostgreSQL: connections, and tables for items, features and events."""

import hashlib
import json
import os
import re
import sqlite3
import zlib
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from glob import escape
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from suffice.errors import InvalidValueError, MissingExtraError, SufficeError
from suffice.files import file_mode
from suffice.numerics import Floats
from suffice.project.events import Draft, Event, EventKind
from suffice.project.items import Item, ItemProgress, Items, no_progress
from suffice.project.settings import Settings
from suffice.project.sqlite_files import (
    PATIENCE,
    OpenFiles,
    StorageError,
    busy_sentence,
    has_log,
    identity,
    only_writer,
)

# All modules import SQLAlchemy from here, so that the error message is the same everywhere.
try:
    import sqlalchemy as sa
    from sqlalchemy import URL, Connection, Engine
except ImportError:
    raise MissingExtraError("SQLAlchemy", "label", "A labelling project") from None

__all__ = ["Connection", "StorageError", "sa"]

#: Seconds to wait for the answer of a server.
_ANSWER: Final = 10
# Parts of a URL that must not be shown.
_SECRET: Final = ("password", "sslpassword")


def is_writable(file: Path) -> bool:
    """Whether a file can be written. Its folder must be writable too, because SQLite writes other files to it."""
    return os.access(file, os.W_OK) and os.access(file.absolute().parent, os.W_OK)


def sync_folder(folder: Path) -> None:
    """Flush a folder to the disk, so that its file names survive a power failure. No effect on some systems."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def sqlite_engine(file: Path, *, new: bool, read_only: bool) -> Engine:
    """The engine for a SQLite file.

    Args:
        file: The file.
        new: Whether the file is created if it does not exist.
        read_only: Whether the file is only read. Then no other file is written to its folder either.
    """

    def connect() -> sqlite3.Connection:
        mode = _reading(file) if read_only else "mode=rwc" if new else "mode=rw"
        address = f"{file.absolute().as_uri()}?{mode}"
        return sqlite3.connect(address, uri=True, timeout=PATIENCE, check_same_thread=False)

    # A file that is only read may be changed by another process, so it is opened again each time.
    pool = sa.pool.NullPool if read_only else sa.pool.QueuePool
    engine = sa.create_engine(sa.URL.create("sqlite", database=str(file)), creator=connect, poolclass=pool)

    @sa.event.listens_for(engine, "connect")
    def _connected(connection: Any, record: Any) -> None:
        # Transactions are started explicitly by this module, not implicitly by Python.
        connection.isolation_level = None
        record.info["file"] = identity(file)
        # A new file is thrown away if it is not filled completely. A file that is not a project is not changed.
        mode = connection.execute(f"PRAGMA journal_mode{'=MEMORY' if new else ''}").fetchone()[0]
        # Committed data are on the disk, also after a power failure. Without a log (in some network folders), the
        # removal of a file must be on the disk too.
        connection.execute(f"PRAGMA synchronous={'FULL' if mode == 'wal' else 'EXTRA'}")

    @sa.event.listens_for(engine, "begin")
    def _begun(connection: Connection) -> None:
        connection.exec_driver_sql(connection.get_execution_options().get("begin", "BEGIN"))

    return engine


def postgres_engine(url: str) -> Engine:
    """The engine for a PostgreSQL database.

    Raises:
        InvalidValueError: It is not the URL of one.
        MissingExtraError: A required package is not installed.
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
            # A server may be configured to acknowledge before it has written.
            off = "current_setting('synchronous_commit') = 'off'"
            cursor.execute(f"SELECT set_config('synchronous_commit', 'on', false) WHERE {off}")
            cursor.execute(f"SET lock_timeout TO '{PATIENCE}s'")
        connection.commit()

    return engine


def postgres_url(url: str) -> URL:
    """The URL of a PostgreSQL database, with the driver that is used here.

    Raises:
        InvalidValueError: It is not the URL of one. The message omits the URL, because it may contain a password.
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
    """A URL without passwords, for messages.

    Examples:
        >>> without_password(postgres_url("postgres://ann:secret@db/pets?password=secret&sslmode=require"))
        'postgresql://ann@db/pets?sslmode=require'
    """
    shown = URL.create("postgresql", address.username, None, address.host, address.port, address.database)
    query = {name: value for name, value in address.query.items() if name not in _SECRET}
    return shown.set(query=query).render_as_string(hide_password=True)


def _reading(file: Path) -> str:
    # A log is read with its file, which needs further files in the folder; without a log no other file is needed.
    return "mode=ro" if has_log(file) else "mode=ro&immutable=1"


#: The file in a project's folder.
FILE: Final = "project.sqlite"
#: Version of the layout of the tables; see :mod:`suffice.project.create`.
LAYOUT: Final = 3
# Key of the PostgreSQL lock that serialises the writers of a project within its schema.
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
    sa.Column("digest", sa.Text, nullable=False),
)
items_table = sa.Table(
    "items",
    _TABLES,
    sa.Column("position", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("id", sa.Text, nullable=False),
    sa.Column("cells", sa.Text, nullable=False),
    sa.Column("checksum", sa.BigInteger, nullable=False),
)
features_table = sa.Table(
    "features",
    _TABLES,
    sa.Column("block", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("width", sa.BigInteger, nullable=False),
    sa.Column("numbers", sa.LargeBinary, nullable=False),
    sa.Column("checksum", sa.BigInteger, nullable=False),
)
#: Names of the tables of a project.
TABLES: Final = frozenset(_TABLES.tables)


class StorageFullError(StorageError):
    """The storage of a project is full; nothing was written."""


class Head(NamedTuple):
    """The last event that a process has written, recorded in a file next to the file of a project.

    It is written after the event, without waiting for the disk. It is never ahead of the journal, so a journal that
    ends before it has lost events. SQLite does not detect this: it treats a missing or damaged write-ahead file as
    empty.
    """

    seq: int
    digest: str


def _head_file(file: Path) -> Path:
    return file.with_name(f"{file.name}-head")


def write_head(file: Path, head: Head) -> None:
    """Record the last event in a file next to the file of a project. A failure is ignored.

    The file is overwritten in one step and always has the same length. So a process that is killed leaves the record of
    this event or of the one before it, and a full disk does not prevent it.
    """
    with suppress(OSError):
        noted = os.open(_head_file(file), os.O_WRONLY | os.O_CREAT | _BINARY, file_mode(file.parent))
        try:
            line = f"{head.seq:0{_DIGITS}} {head.digest}\n".encode()
            os.write(noted, line)
            if os.fstat(noted).st_size > len(line):
                os.ftruncate(noted, len(line))
        finally:
            os.close(noted)


# Digits of the number in that file, and the flag without which Windows changes the end of its line.
_DIGITS: Final = 18
_BINARY: Final[int] = getattr(os, "O_BINARY", 0)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, file_mode(Path(path).parent))


def remove_head(file: Path) -> None:
    """Remove the record of the last event."""
    _head_file(file).unlink(missing_ok=True)


def read_head(file: Path) -> Head | None:
    """The recorded last event; None if there is none, or if it cannot be read."""
    try:
        found = re.fullmatch(rb"(\d{1,18}) ([0-9a-f]{64})\n", _head_file(file).read_bytes())
    except OSError:
        return None
    return None if found is None else Head(int(found[1]), found[2].decode())


#: Errors that are raised by reading data that suffice has not written.
NOT_AS_WRITTEN: Final = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    StopIteration,
    TypeError,
    ValueError,
)


@contextmanager
def undamaged(place: str) -> Iterator[None]:
    """Turn errors from reading invalid data into the message that the project is damaged.

    Args:
        place: Location of the project, for the message.

    Raises:
        StorageError: The data are not in the form that suffice writes.
    """
    try:
        yield
    except SufficeError:
        raise
    except NOT_AS_WRITTEN as error:
        why = f"{type(error).__name__}: {error}".splitlines()[0][:200]
        raise StorageError(
            f"{place} is damaged: something in it is not as it was written ({why}); take it from a backup, or see what "
            "can be recovered: suffice repair"
        ) from error


class Database:
    """The database with the tables of one project.

    Every write is one transaction that is on the disk before it is acknowledged. Writers are serialised, including
    writers of other processes.

    Args:
        place: The SQLite file, or the URL of a PostgreSQL database.
        new: Whether the file is created if it does not exist.
        full: Whether the disk of the file is full, so that it can only be read.

    Attributes:
        file: The SQLite file, or None.
        place: Location of the database, for messages.
        read_only: Whether the project can only be read, because the file or its folder is not writable, or the disk is
            full.
    """

    def __init__(self, place: Path | str, *, new: bool = False, full: bool = False) -> None:
        self._files: OpenFiles | None = None
        self._new, self._full = new, full
        if isinstance(place, Path):
            self.file: Path | None = place
            self.place = str(place)
            self.read_only = full or not (new or is_writable(place))
            self._engine = sqlite_engine(place, new=new, read_only=self.read_only)
            if not (new or self.read_only):
                sa.event.listen(self._engine, "connect", lambda connection, _: self._keep_open(connection))
        else:
            self.file, self.read_only = None, False
            self._engine = postgres_engine(place)
            self.place = without_password(self._engine.url)

    @contextmanager
    def exclusive(self) -> Iterator[Connection]:
        """An exclusive write transaction; committed at the end, or rolled back."""
        if self.read_only:
            raise StorageError(self._read_only())
        with self._sentences(), self._only_writer() as heads, self._engine.connect() as connection:
            connection.info.pop("head", None)
            own = connection.execution_options(begin="BEGIN IMMEDIATE")
            with own.begin():
                if self.file is None:
                    connection.execute(sa.text(f"SELECT pg_advisory_xact_lock({_LOCK}, hashtext(current_schema()))"))
                elif connection.info["file"] != identity(self.file):
                    # Writing would succeed, but the data would be lost.
                    raise StorageError(
                        f"{self.place} was moved, removed or replaced while it was open: this was not written; put it "
                        "back, then start again"
                    )
                yield own
                # This rolls back.
                if self._files is not None and (cut := self._files.cut_off()):
                    raise StorageError(f"{cut}: this was not written; start again")
            heads.append(connection.info.pop("head", None))
        # A new file is created under another name first.
        if self.file is not None and self._new:
            self._use_log()

    @contextmanager
    def _only_writer(self) -> Iterator[list[Head | None]]:
        """Exclude other writers, and raise an error if files of a SQLite database are not those that it had.

        They are compared before something is written, because it would be lost, and afterwards, before it is
        acknowledged. The last event is recorded before another writer can write the next one.

        Yields:
            A list for the last event that is written.
        """
        heads: list[Head | None] = []
        if self.file is None or self._new:
            yield heads
            return
        with only_writer(self.file):
            self._require_files(written=False)
            yield heads
            self._require_files(written=True)
            for head in heads:
                if head is not None:
                    write_head(self.file, head)
            if self._files is not None:
                self._files.move_log()

    def _require_files(self, *, written: bool) -> None:
        # A file that is gone itself is noticed by the caller.
        if self._files is None or self.file is None or identity(self.file) is None:
            return
        if problem := self._files.problem(written=written):
            raise StorageError(problem)

    def _keep_open(self, connection: Any) -> None:
        """Keep the files of a SQLite database open from the first connection on. They decide when the log is moved."""
        connection.execute("PRAGMA wal_autocheckpoint=0")
        if self._files is None and self.file is not None:
            self._files = OpenFiles(self.file)

    def _use_log(self) -> None:
        """Give a new file a write-ahead log, with which readers do not wait for writers.

        It gets one after it was filled, because all rows would be written to the log first, which takes a third more
        time. Where there can be no log, as in some network folders, the file is used without one.
        """
        with closing(self._engine.raw_connection()) as connection, suppress(sqlite3.OperationalError):
            connection.execute("PRAGMA journal_mode=WAL")

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection for reading, which does not block writers."""
        with self._sentences(), self._engine.connect() as connection:
            yield connection

    def tables(self, connection: Connection) -> set[str]:
        """Names of the tables that are there."""
        return set(sa.inspect(connection).get_table_names())

    def make_tables(self, connection: Connection) -> None:
        """Create the tables of a project that do not exist."""
        _TABLES.create_all(connection, checkfirst=False)
        connection.execute(sa.insert(about_table), [{"key": "layout", "value": str(LAYOUT)}])

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()
        if self._files is not None:
            self._files.close()
            self._files = None

    @contextmanager
    def _sentences(self) -> Iterator[None]:
        try:
            yield
        except sa.exc.DBAPIError as error:
            raise self._sentence(error) from error
        except sa.exc.TimeoutError as error:
            raise StorageError(f"{self.place} is too busy; try again") from error

    def _sentence(self, error: sa.exc.DBAPIError) -> StorageError:
        """Message for a database error."""
        cause = error.orig
        extended = getattr(cause, "sqlite_errorcode", 0)
        code = extended & 0xFF
        state = getattr(cause, "sqlstate", None) or ""
        if code == sqlite3.SQLITE_FULL or extended in _NO_ROOM or state == "53100":
            found = "takes no more (a quota, or a fault)" if extended in _NO_ROOM else "is full"
            return StorageFullError(
                f"the disk of {self.place} {found}: this was not written, all before it was; make room and try again"
            )
        if extended == sqlite3.SQLITE_IOERR_SHORT_READ and self._files is not None:
            return StorageError(self._files.unreadable())
        if error.connection_invalidated or state in _CUT_OFF:
            return StorageError(
                f"the connection to {self.place} was lost, so it is not known whether this was written; try again: "
                "what is sent again under the same name is not written twice"
            )
        busy = busy_sentence(self.place)
        sentences = {
            sqlite3.SQLITE_BUSY: busy,
            "55P03": busy,
            sqlite3.SQLITE_READONLY: self._read_only(),
            "25006": self._read_only(),
            sqlite3.SQLITE_NOTADB: f"{self.place} is not a project: it is no SQLite file",
            sqlite3.SQLITE_CORRUPT: f"{self.place} is damaged; take it from a backup, or see what can be recovered: "
            "suffice repair",
            sqlite3.SQLITE_CANTOPEN: f"{self.place} cannot be opened: is it there, and may you read it?",
        }
        said = str(cause).strip().splitlines()
        return StorageError(
            sentences.get(code)
            or sentences.get(state)
            or f"{self.place} cannot be used now: {said[0] if said else cause}"
        )

    def _read_only(self) -> str:
        if self._full:
            return (
                f"the disk of {self.place} was full when it was opened, so it can only be read; make room, start again"
            )
        return f"{self.place} is read-only: nothing can be written; make it writable, or copy it"


# Errors of an exhausted quota, and of no space for SQLite's own files.
_NO_ROOM: Final = frozenset({sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_SHMSIZE})
# Error codes of a server that shuts down or closes the connection.
_CUT_OFF: Final = frozenset({"57P01", "57P02", "08003", "08006"})


# Bytes of features in one value. SQLite and PostgreSQL allow up to a gigabyte, and hold a value in memory.
_BLOCK = 2**24
# Values in one query; SQLite allows at most 32,766.
_AT_ONCE = 5000
# Items are read as one range if the range has at most this multiple of their number.
_CLOSE = 4


# Plain SQL for many rows at once: SQLAlchemy takes three times as long for a million rows.
_INSERT_ITEMS: Final = "INSERT INTO items (position, id, cells, checksum) VALUES "
# Rows of one statement; older versions of SQLite allow 999 values.
_ROWS_OF_INSERT: Final = 200


def write_contents(
    connection: Connection, items: Items, *, after: int = 0, progress: ItemProgress = no_progress
) -> None:
    """Write items and their features, if these are computed already.

    Args:
        connection: Connection in an exclusive write transaction.
        items: The items.
        after: Number of existing items.
        progress: Receives the number of items written.
    """
    numbered = enumerate(zip(items.ids, items.cells.json_rows(), strict=True), start=after)
    # In parts, because all rows at once would need a multiple of the memory of the items.
    while part := list(islice(numbered, _AT_ONCE)):
        rows = [(k, name, text, item_checksum(k, name, text)) for k, (name, text) in part]
        if connection.dialect.name == "sqlite":
            for start in range(0, len(rows), _ROWS_OF_INSERT):
                some = rows[start : start + _ROWS_OF_INSERT]
                values = ", ".join(["(?, ?, ?, ?)"] * len(some))
                connection.exec_driver_sql(_INSERT_ITEMS + values, tuple(chain.from_iterable(some)))
        else:
            columns = [column.name for column in items_table.columns]
            connection.execute(sa.insert(items_table), [dict(zip(columns, row, strict=True)) for row in rows])
        progress("writing the items", part[-1][0] + 1 - after, len(items))
    if items.deferred is None:
        write_features(connection, items.X)


def write_features(connection: Connection, features: Floats) -> None:
    """Write features of items that have none yet, ``n x D``.

    Args:
        connection: Connection in an exclusive write transaction.
        features: Features of the items, in their order.
    """
    X = np.ascontiguousarray(features, dtype="<f8")
    rows_at_once = max(1, _BLOCK // (8 * X.shape[1]))
    last = connection.execute(sa.select(sa.func.max(features_table.c.block))).scalar()
    first = 0 if last is None else int(last) + 1
    for k, start in enumerate(range(0, len(X), rows_at_once), start=first):
        numbers = X[start : start + rows_at_once].tobytes()
        block = {"block": k, "width": X.shape[1], "numbers": numbers}
        connection.execute(sa.insert(features_table), {**block, "checksum": block_checksum(k, X.shape[1], numbers)})


def remove_features(connection: Connection) -> None:
    """Remove all features, in an exclusive write transaction."""
    connection.execute(sa.delete(features_table))


def item_checksum(position: int, name: str, cells: str) -> int:
    """A checksum of an item: CRC-32 of its position, its name and its cells as JSON."""
    return zlib.crc32(f"{position}\n{name}\n{cells}".encode())


def block_checksum(block: int, width: int, numbers: bytes) -> int:
    """A checksum of a block of features: CRC-32 of its number, its width and its bytes."""
    return zlib.crc32(numbers, zlib.crc32(f"{block}\n{width}\n".encode()))


def read_features(connection: Connection, size: int) -> Floats:
    """Features of the first items, ``n x D``; other processes may be adding items.

    Raises:
        ValueError: The number of rows is smaller, or differs from the number of items.
    """
    before = count_items(connection)
    found = connection.execute(sa.select(features_table).order_by(features_table.c.block))
    blocks = []
    for k, row in enumerate(found):
        if row.block != k or row.checksum != block_checksum(row.block, row.width, row.numbers):
            raise ValueError(f"block {k} of the features does not have its checksum")
        blocks.append(np.frombuffer(row.numbers, dtype="<f8").reshape(-1, int(row.width)))
    X = np.concatenate(blocks).astype(np.float64)
    # Items are added together with their features, but this may happen between these queries.
    if len(X) < size or (len(X) != before and before == count_items(connection)):
        raise ValueError(f"features of {len(X)} items, and there are {before}")
    return X[:size]


#: Features of more bytes than this are also stored in a NumPy file, and mapped into memory.
MAPPED_FEATURES: Final = 2**28


def mapped_features(connection: Connection, size: int, file: Path) -> Floats | None:
    """Features of all items from a NumPy file in the folder of the project, which is written if it does not exist.

    Its pages are read when they are needed, and a learner reads them in batches. The file can be removed; it is then
    written again.

    Args:
        connection: Connection for reading.
        size: Number of items.
        file: The file of the project.

    Returns:
        The features, read-only; None if they are not large, if items are being added, or if the file cannot be written.
    """
    lengths = sa.func.length(features_table.c.numbers)
    chosen = features_table.c.block, features_table.c.width, features_table.c.checksum, lengths
    blocks = connection.execute(sa.select(*chosen).order_by(features_table.c.block)).all()
    width = int(blocks[0][1]) if blocks else 0
    if sum(row[3] for row in blocks) != 8 * size * width or 8 * size * width <= MAPPED_FEATURES:
        return None
    name = hashlib.sha256(repr([tuple(map(int, row)) for row in blocks]).encode()).hexdigest()[:16]
    mapped = file.with_name(f"{file.stem}-features-{name}.npy")
    try:
        if not _is_intact(mapped, blocks):
            _write_mapped(connection, blocks, mapped, (size, width))
            for old in file.parent.glob(f"{escape(file.stem)}-features-*.npy"):
                if old != mapped:
                    old.unlink(missing_ok=True)
        found: Floats = np.load(mapped, mmap_mode="r", allow_pickle=False)
    except (OSError, EOFError):
        return None
    return found if found.shape == (size, width) else None


def _is_intact(mapped: Path, blocks: Sequence[Any]) -> bool:
    """Whether a file has the features of these blocks, by their checksums."""
    if not mapped.is_file():
        return False
    with mapped.open("rb") as file:
        try:
            np.lib.format.read_magic(file)
            np.lib.format.read_array_header_1_0(file)
        except ValueError:
            return False
        return all(row[2] == block_checksum(row[0], row[1], file.read(row[3])) for row in blocks) and not file.read(1)


def _write_mapped(connection: Connection, blocks: Sequence[Any], mapped: Path, shape: tuple[int, int]) -> None:
    part = mapped.with_name(f".{mapped.name}.{os.getpid()}")
    try:
        with open(part, "wb", opener=_private) as file:
            header = {"descr": "<f8", "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(file, header)
            for row in blocks:
                wanted = sa.select(features_table.c.numbers).where(features_table.c.block == row[0])
                numbers = connection.execute(wanted).scalar_one()
                if row[2] != block_checksum(row[0], row[1], numbers):
                    raise ValueError(f"block {row[0]} of the features does not have its checksum")
                file.write(numbers)
        part.replace(mapped)
    finally:
        part.unlink(missing_ok=True)


def features_checksum(connection: Connection) -> str:
    """A checksum of the features of all items."""
    found = hashlib.sha256()
    for row in connection.execute(sa.select(features_table).order_by(features_table.c.block)):
        found.update(f"{row.block}:{row.width}:{len(row.numbers)}:".encode())
        found.update(row.numbers)
    return found.hexdigest()


def read_items_at(connection: Connection, positions: Sequence[int], settings: Settings) -> list[Item]:
    """Items at some positions, in that order."""
    found: dict[int, Any] = {}
    wanted = list(dict.fromkeys(positions))
    for start in range(0, len(wanted), _AT_ONCE):
        part = wanted[start : start + _AT_ONCE]
        rows = connection.execute(sa.select(items_table).where(items_table.c.position.in_(part)))
        found.update((int(row.position), row) for row in rows)
    return [_item(found[position], settings) for position in positions]


def read_rows_at(connection: Connection, positions: Sequence[int], width: int) -> list[tuple[str, ...]]:
    """Names of items at some positions, each with its cells, in that order; fast for many.

    Args:
        connection: Connection for reading.
        positions: The items.
        width: Number of cells of an item.

    Raises:
        LookupError: There is no item at a position.
        ValueError: An item has another number of cells.
    """
    found: dict[int, tuple[str, ...]] = {}
    columns = [items_table.c.position, items_table.c.id, items_table.c.cells, items_table.c.checksum]
    for start in range(0, len(positions), _AT_ONCE):
        part = positions[start : start + _AT_ONCE]
        first, last, place = min(part), max(part), items_table.c.position
        close = last - first < _CLOSE * len(part)
        rows = connection.execute(
            sa.select(*columns).where(place.between(first, last) if close else place.in_(part))
        ).all()
        for row in rows:
            _require_checksum(*row)
        cells = json.loads(f"[{','.join([row[2] for row in rows])}]")
        found.update({row[0]: (row[1], *each) for row, each in zip(rows, cells, strict=True)})
    listed = [found[position] for position in positions]
    if any(len(row) != width + 1 for row in listed):
        raise ValueError(f"an item does not have {width} cells")
    return listed


def read_ids(connection: Connection) -> dict[str, int]:
    """Positions of all items by name."""
    return {name: item for item, name in connection.execute(sa.select(items_table.c.position, items_table.c.id))}


def find_id(connection: Connection, name: str) -> int | None:
    """Position of the first item of a name, or None."""
    query = sa.select(items_table.c.position).where(items_table.c.id == name).order_by(items_table.c.position)
    found = connection.execute(query.limit(1)).scalar()
    return None if found is None else int(found)


# Files up to this size are verified completely when they are opened; of larger files only the journal is.
_CHECKED_WHOLE: Final = 2**29


def require_intact(database: Database, connection: Connection) -> None:
    """Run SQLite's check of the structure of the file.

    Raises:
        ValueError: It is damaged.
    """
    if database.file is None:
        return
    whole = database.file.stat().st_size <= _CHECKED_WHOLE
    for check in ["integrity_check(events)", *(["quick_check"] if whole else [])]:
        found = connection.exec_driver_sql(f"PRAGMA {check}").scalars().first()
        if found != "ok":
            raise ValueError(str(found))


def count_items(connection: Connection) -> int:
    """Number of items."""
    return int(connection.execute(sa.select(sa.func.count()).select_from(items_table)).scalar_one())


def _require_checksum(position: int, name: str, cells: str, checksum: int) -> None:
    if checksum != item_checksum(position, name, cells):
        raise ValueError(f"item {position} does not have its checksum")


def _item(row: Any, settings: Settings) -> Item:
    _require_checksum(row.position, row.id, row.cells, row.checksum)
    cells = tuple(zip(settings.columns, json.loads(row.cells), strict=True))
    image = dict(cells).get(settings.main or "") if settings.shown == "image" else None
    if settings.checked is not None:
        # People answer without knowing the prediction.
        cells = tuple(cell for cell in cells if cell[0] not in settings.checked.hidden)
    return Item(int(row.position), row.id, cells, image)


# Built once, because it is used for every request.
_LATER_EVENTS = sa.select(events_table).where(events_table.c.seq > sa.bindparam("after")).order_by(events_table.c.seq)


def read_events(connection: Connection, after: int = 0) -> list[Event]:
    """Events in order, from the one after a number on."""
    rows = connection.execute(_LATER_EVENTS, {"after": after}).all()
    before = "" if after == 0 else None
    for row in rows:
        # The event before the first one was not read, so its digest cannot be verified.
        if before is not None and row.digest != chained(before, *row[:-1]):
            raise ValueError(f"event {row.seq} does not have its checksum")
        before = row.digest
    # Parsing one JSON text is much faster than parsing one per event.
    data = json.loads(f"[{','.join([row.data for row in rows])}]")
    return [_event(row, each) for row, each in zip(rows, data, strict=True)]


def write_events(connection: Connection, drafts: Sequence[Draft], *, last: Event | None, at: float) -> list[Event]:
    """Write events after the last one; they are valid when the transaction is committed.

    Args:
        connection: Connection in an exclusive write transaction.
        drafts: The events to write.
        last: The last event in the journal; None if there is none.
        at: Time of the events.
    """
    events, rows = list[Event](), list[dict[str, Any]]()
    after, digest = (0, "") if last is None else (last.seq, last.digest)
    for seq, draft in enumerate(drafts, start=after + 1):
        data = json.dumps(dict(draft.data), allow_nan=False)
        digest = chained(digest, seq, draft.kind.value, draft.item, draft.person, at, data, draft.request)
        event = Event(draft.kind, draft.person, draft.item, draft.data, draft.request, seq=seq, at=at, digest=digest)
        events.append(event)
        rows.append(
            {
                "seq": seq,
                "kind": event.kind.value,
                "item": event.item,
                "person": event.person,
                "at": at,
                "data": data,
                "request": event.request,
                "digest": digest,
            }
        )
    if events:
        connection.execute(sa.insert(events_table), rows)
        connection.info["head"] = Head(events[-1].seq, digest)
    return events


def chained(  # noqa: PLR0913, PLR0917 - the columns of an event
    before: str,
    seq: int,
    kind: str,
    item: int | None,
    person: str,
    at: float,
    data: str,
    request: str | None,
) -> str:
    """A checksum of an event and of all before it: SHA-256 of the digest of the event before it and of its columns.

    Args:
        before: The digest of the event before it; empty for the first one.
        seq: Its number.
        kind: Its kind.
        item: Its item.
        person: Who did it.
        at: When.
        data: Its data, as the JSON that is stored.
        request: Name of the request.
    """
    row = json.dumps([before, int(seq), kind, None if item is None else int(item), person, float(at), data, request])
    return hashlib.sha256(row.encode()).hexdigest()


def _event(row: Any, data: Any) -> Event:
    seq, kind, item, person, at, _, request, digest = row
    known = _KINDS.get(kind) or EventKind(kind)
    return Event(known, person, item, data, request, seq=int(seq), at=float(at), digest=digest)


_KINDS: Final = {kind.value: kind for kind in EventKind}
