"""The database of a project, SQLite or PostgreSQL: tables for items, features and events."""

import hashlib
import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np

from suffice.errors import SufficeError
from suffice.numerics.special_functions import Floats
from suffice.project import connections
from suffice.project.connections import Connection, sa
from suffice.project.events import EARLIER_KINDS, Draft, Event, EventKind
from suffice.project.items import Item, Items
from suffice.project.settings import Settings

#: The file in a project's folder.
FILE: Final = "project.sqlite"
#: How the tables are laid out; see :mod:`suffice.project.create`.
LAYOUT: Final = 2
#: The layout of a project with kinds of events that versions before 0.11 do not know. The tables are the same; by the
#: number those versions find out that they are too old.
NEWEST_LAYOUT: Final = 3
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
#: Names of the tables of a project.
TABLES: Final = frozenset(_TABLES.tables)


class StorageError(SufficeError):
    """The place of a project cannot be read or written now."""


class StorageFullError(StorageError):
    """There is no room left for the place of a project; what was to be written was not."""


@contextmanager
def undamaged(place: str) -> Iterator[None]:
    """Say of what cannot be understood that the project is damaged.

    Args:
        place: The project, for the sentence.

    Raises:
        StorageError: Something in it is not what suffice writes.
    """
    try:
        yield
    except SufficeError:
        raise
    except (
        ArithmeticError,
        AssertionError,
        AttributeError,
        LookupError,
        StopIteration,
        TypeError,
        ValueError,
    ) as error:
        why = f"{type(error).__name__}: {error}".splitlines()[0][:200]
        raise StorageError(
            f"{place} is damaged: something in it is not as it was written ({why}); take it from a backup"
        ) from error


class Database:
    """A place with the tables of one project.

    Every write is one transaction that is on the disk before it is acknowledged, and writers take turns, also those of
    other processes.

    Args:
        place: The SQLite file, or the URL of a PostgreSQL database.
        new: Whether a file is made if it is not there.

    Attributes:
        file: The SQLite file, or None.
        place: Where it is, for a person.
        read_only: Whether the file or its folder cannot be written, so that it can only be read.
    """

    def __init__(self, place: Path | str, *, new: bool = False) -> None:
        if isinstance(place, Path):
            self.file: Path | None = place
            self.place = str(place)
            self.read_only = not new and not connections.is_writable(place)
            self._engine = connections.sqlite_engine(place, new=new, read_only=self.read_only)
        else:
            self.file, self.read_only = None, False
            self._engine = connections.postgres_engine(place)
            self.place = connections.without_password(self._engine.url)

    @contextmanager
    def exclusive(self) -> Iterator[Connection]:
        """A transaction during which nobody else writes; committed at the end, or as if it had never been."""
        if self.read_only:
            raise StorageError(self._read_only())
        with self._sentences(), self._engine.connect() as connection:
            own = connection.execution_options(begin="BEGIN IMMEDIATE")
            with own.begin():
                if self.file is None:
                    connection.execute(sa.text(f"SELECT pg_advisory_xact_lock({_LOCK}, hashtext(current_schema()))"))
                elif connection.info["file"] != connections.identity(self.file):
                    # It can still be written, but nobody would ever find it.
                    raise StorageError(
                        f"{self.place} was moved, removed or replaced while it was open: this was not written; put it "
                        "back, then start again"
                    )
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
        """Make the tables of a project where there are none of these names."""
        _TABLES.create_all(connection, checkfirst=False)
        connection.execute(sa.insert(about_table), [{"key": "layout", "value": str(LAYOUT)}])

    def close(self) -> None:
        """Let go of the place."""
        self._engine.dispose()

    @contextmanager
    def _sentences(self) -> Iterator[None]:
        try:
            yield
        except sa.exc.DBAPIError as error:
            raise self._sentence(error) from error
        except sa.exc.TimeoutError as error:
            raise StorageError(f"{self.place} is too busy; try again") from error

    def _sentence(self, error: sa.exc.DBAPIError) -> StorageError:
        """What went wrong with the database, for a person."""
        cause = error.orig
        extended = getattr(cause, "sqlite_errorcode", 0)
        code = extended & 0xFF
        state = getattr(cause, "sqlstate", None) or ""
        if code == sqlite3.SQLITE_FULL or extended in _NO_ROOM or state == "53100":
            found = "takes no more (a quota, or a fault)" if extended in _NO_ROOM else "is full"
            return StorageFullError(
                f"the disk of {self.place} {found}: this was not written, all before it was; make room and try again"
            )
        if error.connection_invalidated or state in _CUT_OFF:
            return StorageError(
                f"the connection to {self.place} was lost, so it is not known whether this was written; try again: "
                "what is sent again under the same name is not written twice"
            )
        busy = f"another program has been writing to {self.place} for {connections.PATIENCE} seconds; try again"
        sentences = {
            sqlite3.SQLITE_BUSY: busy,
            "55P03": busy,
            sqlite3.SQLITE_READONLY: self._read_only(),
            "25006": self._read_only(),
            sqlite3.SQLITE_NOTADB: f"{self.place} is not a project: it is no SQLite file",
            sqlite3.SQLITE_CORRUPT: f"{self.place} is damaged; take it from a backup",
            sqlite3.SQLITE_CANTOPEN: f"{self.place} cannot be opened: is it there, and may you read it?",
        }
        said = str(cause).strip().splitlines()
        return StorageError(
            sentences.get(code)
            or sentences.get(state)
            or f"{self.place} cannot be used now: {said[0] if said else cause}"
        )

    def _read_only(self) -> str:
        return f"{self.place} is read-only: nothing can be written; make it writable, or copy it"


# A quota that is used up, or no room for SQLite's own bookkeeping beside the file.
_NO_ROOM: Final = frozenset({sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_SHMSIZE})
# A server that is told to stop says so.
_CUT_OFF: Final = frozenset({"57P01", "57P02", "08003", "08006"})


# Bytes of features in one value: SQLite takes up to a gigabyte, PostgreSQL too, and both want it in memory whole.
_BLOCK = 2**24
# Names in one question; SQLite takes no more than 32,766.
_AT_ONCE = 5000
# Items that lie this close together, as a multiple of their number, are read with all between them.
_CLOSE = 4


def write_contents(connection: Connection, items: Items, *, after: int = 0) -> None:
    """Write items and their features.

    Args:
        connection: Within a transaction during which nobody else writes.
        items: The items.
        after: Number of items that are there already.
    """
    rows = [
        {"position": k, "id": name, "cells": json.dumps(cells, ensure_ascii=False)}
        for k, (name, cells) in enumerate(zip(items.ids, items.cells, strict=True), start=after)
    ]
    connection.execute(sa.insert(items_table), rows)
    X = np.ascontiguousarray(items.X, dtype="<f8")
    rows_at_once = max(1, _BLOCK // (8 * X.shape[1]))
    last = connection.execute(sa.select(sa.func.max(features_table.c.block))).scalar()
    first = 0 if last is None else int(last) + 1
    for k, start in enumerate(range(0, len(X), rows_at_once), start=first):
        block = {"block": k, "width": X.shape[1], "numbers": X[start : start + rows_at_once].tobytes()}
        connection.execute(sa.insert(features_table), block)


def read_features(connection: Connection, size: int) -> Floats:
    """Features of the first items, ``n x D``; others may have been added in this moment.

    Raises:
        ValueError: There are fewer, or not as many as items.
    """
    before = count_items(connection)
    found = connection.execute(sa.select(features_table).order_by(features_table.c.block))
    blocks = [np.frombuffer(row.numbers, dtype="<f8").reshape(-1, int(row.width)) for row in found]
    X = np.concatenate(blocks).astype(np.float64)
    # Items that are added come with their features, but perhaps between these questions.
    if len(X) < size or (len(X) != before and before == count_items(connection)):
        raise ValueError(f"features of {len(X)} items, and there are {before}")
    return X[:size]


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
        connection: To read by.
        positions: The items.
        width: Number of cells of an item.

    Raises:
        LookupError: There is no item at a position.
        ValueError: An item has another number of cells.
    """
    found: dict[int, tuple[str, ...]] = {}
    columns = [items_table.c.position, items_table.c.id, items_table.c.cells]
    for start in range(0, len(positions), _AT_ONCE):
        part = positions[start : start + _AT_ONCE]
        first, last, place = min(part), max(part), items_table.c.position
        close = last - first < _CLOSE * len(part)
        rows = connection.execute(
            sa.select(*columns).where(place.between(first, last) if close else place.in_(part))
        ).all()
        cells = json.loads(f"[{','.join([row[2] for row in rows])}]")
        found.update({row[0]: (row[1], *each) for row, each in zip(rows, cells, strict=True)})
    listed = [found[position] for position in positions]
    if any(len(row) != width + 1 for row in listed):
        raise ValueError(f"an item does not have {width} cells")
    return listed


def read_ids(connection: Connection) -> set[str]:
    """Names of all items."""
    return set(connection.execute(sa.select(items_table.c.id)).scalars())


def count_items(connection: Connection) -> int:
    """Number of items."""
    return int(connection.execute(sa.select(sa.func.count()).select_from(items_table)).scalar_one())


def _item(row: Any, settings: Settings) -> Item:
    cells = tuple(zip(settings.columns, json.loads(row.cells), strict=True))
    image = dict(cells).get(settings.main or "") if settings.shown == "image" else None
    return Item(int(row.position), row.id, cells, image)


# Asked with every request, so it is put together once.
_LATER_EVENTS = sa.select(events_table).where(events_table.c.seq > sa.bindparam("after")).order_by(events_table.c.seq)


def read_events(connection: Connection, after: int = 0) -> list[Event]:
    """Events in order, from the one after a number on."""
    rows = connection.execute(_LATER_EVENTS, {"after": after}).all()
    # One text for all is read much faster than one for each.
    data = json.loads(f"[{','.join([row.data for row in rows])}]")
    return [_event(row, each) for row, each in zip(rows, data, strict=True)]


def write_events(connection: Connection, drafts: Sequence[Draft], *, after: int, at: float) -> list[Event]:
    """Write events after the last one; they count once the transaction is committed.

    Args:
        connection: Within a transaction during which nobody else writes.
        drafts: What happened.
        after: Number of the last event.
        at: The moment.
    """
    events = [_numbered(draft, after + k, at) for k, draft in enumerate(drafts, start=1)]
    if any(event.kind not in EARLIER_KINDS for event in events):
        raise_layout(connection, NEWEST_LAYOUT)
    if events:
        connection.execute(sa.insert(events_table), [_row(event) for event in events])
    return events


def raise_layout(connection: Connection, layout: int) -> None:
    """Write the number of the layout, unless it is there.

    Args:
        connection: Within a transaction during which nobody else writes.
        layout: The number, not below the one that is there.
    """
    there = about_table.c.value != str(layout)
    connection.execute(sa.update(about_table).where(about_table.c.key == "layout", there).values(value=str(layout)))


def _numbered(draft: Draft, seq: int, at: float) -> Event:
    return Event(draft.kind, draft.person, draft.item, draft.data, draft.request, seq=seq, at=at)


def _row(event: Event) -> dict[str, Any]:
    return {
        "seq": event.seq,
        "kind": event.kind.value,
        "item": event.item,
        "person": event.person,
        "at": event.at,
        "data": json.dumps(dict(event.data), allow_nan=False),
        "request": event.request,
    }


def _event(row: Any, data: Any) -> Event:
    seq, kind, item, person, at, _, request = row
    return Event(_KINDS.get(kind) or EventKind(kind), person, item, data, request, seq=int(seq), at=float(at))


_KINDS: Final = {kind.value: kind for kind in EventKind}
