"""Verification of a project by its checksums, and recovery of the verified parts."""

import csv
import json
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from suffice.errors import SufficeError
from suffice.project.create import is_url, project_file
from suffice.project.events import Draft, Event, EventKind
from suffice.project.sqlite_files import OpenFiles, StorageError, log_of
from suffice.project.state import ProjectState
from suffice.project.storage import (
    LAYOUT,
    NOT_AS_WRITTEN,
    Database,
    Head,
    block_checksum,
    chained,
    features_table,
    item_checksum,
    items_table,
    read_head,
    remove_head,
    sa,
    sync_folder,
    write_events,
    write_head,
)

#: Name of the file with the labels of a project that cannot be repaired.
LABELS_FILE: Final = "recovered-labels.csv"
# Number of rows to try if the end of a table cannot be read.
_MOST_GUESSED: Final = 2**17
_COLUMNS: Final = {
    "events": "seq, kind, item, person, at, data, request, digest",
    "items": "position, id, cells, checksum",
    "features": "block, width, numbers, checksum",
}


@dataclass(frozen=True)
class DamageReport:
    """Damage found in a project, and the repairs.

    Attributes:
        events: Number of events that are verified.
        lost_events: Numbers of the events that are damaged, or that depend on a damaged event.
        missing_events: Number of acknowledged events that are missing at the end.
        damaged_digests: Numbers of the events whose digest is damaged, and nothing else of them. They are not lost.
        other_events: Whether the note of the last event, beside the file, differs from the event of that number: the
            note is damaged, or the file is another one.
        items: Number of items that are verified.
        damaged_items: Positions of items whose id or cells are damaged. Their labels are kept.
        features_damaged: Whether features are damaged.
        structure: Errors that SQLite reports about its structure; empty if there are none.
        repaired: Whether the project was repaired.
        kept: The file to which the damaged project was moved, or None.
        labels_file: The file with the labels of a project that cannot be repaired, or None.
    """

    events: int
    lost_events: tuple[int, ...] = ()
    missing_events: int = 0
    damaged_digests: tuple[int, ...] = ()
    other_events: bool = False
    items: int = 0
    damaged_items: tuple[int, ...] = ()
    features_damaged: bool = False
    structure: str = ""
    repaired: bool = False
    kept: Path | None = None
    labels_file: Path | None = None

    @property
    def intact(self) -> bool:
        """Whether there is no damage."""
        journal = self.lost_events or self.missing_events or self.damaged_digests or self.other_events
        return not (journal or self.damaged_items or self.features_damaged or self.structure)

    @property
    def readable(self) -> bool:
        """Whether all that is in the file is verified, although it is not what was written last."""
        contents = self.lost_events or self.damaged_digests or self.damaged_items or self.features_damaged
        return not (contents or self.structure)

    def as_dict(self) -> dict[str, Any]:
        """The report as JSON values."""
        paths = {name: None if (path := getattr(self, name)) is None else str(path) for name in ("kept", "labels_file")}
        return {"intact": self.intact, **asdict(self), **paths}


def repair_project(path: str | Path, *, check: bool = False) -> DamageReport:
    """Verify a project by its checksums, and recover the verified parts.

    The damaged files are kept under another name. In the repaired project a lost event is replaced by an empty event
    with the same number, and an item with damaged cells has empty cells. If the settings or the features are damaged,
    the project cannot be repaired. Its labels are then written to a file that ``suffice import`` can read.

    No other process may use the project during the call.

    Args:
        path: Folder or file of the project.
        check: Only verify, without repair.

    Raises:
        SufficeError: There is no project, it is in PostgreSQL, an older version made it, or nothing can be read.

    Examples:
        >>> import tempfile
        >>> from suffice.project import create_project
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     create_project(f"{folder}/pets.suffice", ["cat", "dog"], classes=["a", "b"]).close()
        ...     repair_project(f"{folder}/pets.suffice").intact
        True
    """
    if is_url(path):
        raise SufficeError("a project in PostgreSQL is repaired from the backups of its database")
    file = project_file(path)
    if not file.is_file():
        raise SufficeError(f"there is no project in {path}")
    OpenFiles.require_usable(file)
    with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)) as source:
        found = _Contents(source, file)
    report = found.report
    if check or report.intact:
        return report
    if report.readable:
        # The journal is undamaged, but ends too early, or is another one.
        return _accepted(file, found)
    if report.features_damaged or found.settings is None:
        return _with(report, labels_file=_write_labels(file.with_name(LABELS_FILE), found))
    return _rebuilt(file, found)


def _with(report: DamageReport, **changes: Any) -> DamageReport:
    return DamageReport(**{**report.__dict__, **changes})


class _Contents:
    """The readable contents of the file of a project, and which of them are verified."""

    def __init__(self, source: sqlite3.Connection, file: Path) -> None:
        source.text_factory = bytes
        structure = _structure(source)
        # Without this, SQLite reads nothing from a file that is shorter than its first page says, as after a crash
        # while the log was moved into the file, if the log is removed then.
        source.execute("PRAGMA writable_schema=ON")
        rows = {name: list(_readable(source, name)) for name in _COLUMNS}
        items = {row[0]: row for row in rows["items"] if isinstance(row[0], int) and row[0] >= 0}
        if not items and not rows["events"]:
            raise SufficeError(f"nothing in {file} can be read; take it from a backup")
        self.items = {k: row[1:3] for k, row in items.items() if row[3] == _item_checksum(row)}
        self.size = expected = max(items, default=-1) + 1
        head = read_head(file)
        self.events, damaged_digests = _verified_events(rows["events"], head)
        state, lost = _applied(self.events, self.size)
        self.settings = None if state.made is None else state.made.data.get("settings")
        blocks = [row for row in rows["features"] if _block_is_right(row)]
        self.blocks = sorted((row[0], row[1], row[2], row[3]) for row in blocks)
        whole = [row[0] for row in self.blocks] == list(range(len(self.blocks)))
        featured = sum(len(row[2]) // (8 * row[1]) for row in self.blocks)
        last = max(self.events, default=0)
        # Rows after the last verified event are damaged, and their numbers may be damaged too.
        last += sum(not isinstance(row[0], int) or row[0] > last for row in rows["events"])
        noted = None if head is None else self.events.get(head.seq)
        self.report = DamageReport(
            events=len(self.events) - len(lost),
            lost_events=tuple(k for k in range(1, last + 1) if k not in self.events or k in lost),
            missing_events=0 if head is None else max(0, head.seq - last),
            damaged_digests=damaged_digests,
            other_events=noted is not None and head is not None and noted.digest != head.digest,
            items=len(self.items),
            damaged_items=tuple(k for k in range(expected) if k not in self.items),
            # Features that are not computed yet are computed when the project is used.
            features_damaged=not state.features_missing and (not whole or featured != expected or not expected),
            structure=structure,
        )


def _structure(source: sqlite3.Connection) -> str:
    try:
        found = source.execute("PRAGMA integrity_check(1)").fetchone()[0]
        layout = source.execute("SELECT value FROM about WHERE key = 'layout'").fetchone()
    except sqlite3.Error as error:
        return str(error)
    if layout is not None and layout[0].isdigit() and int(layout[0]) < LAYOUT:
        raise SufficeError(
            "this project was made by a version of suffice that wrote no checksums, so nothing in it can be verified; "
            "open it once, with suffice status, to bring it up to date, or take it from a backup"
        )
    text = found.decode("utf-8", "replace")
    return "" if text == "ok" else text.splitlines()[0]


def _readable(source: sqlite3.Connection, table: str) -> Iterator[tuple[Any, ...]]:
    """Rows that SQLite can read. Ranges that cannot be read are halved until the damaged rows are isolated."""
    question = f"SELECT {_COLUMNS[table]} FROM {table} NOT INDEXED WHERE rowid"

    def rows(first: int, last: int) -> Iterator[tuple[Any, ...]]:
        try:
            if first < last:
                found = source.execute(f"{question} BETWEEN ? AND ?", (first, last)).fetchall()
            else:
                # After the row of a range, SQLite looks for the next one, which may be on a damaged page.
                found = source.execute(f"{question} = ?", (first,)).fetchall()
        except sqlite3.Error:
            if first < last:
                middle = (first + last) // 2
                yield from rows(first, middle)
                yield from rows(middle + 1, last)
            return
        yield from found

    try:
        last = source.execute(f"SELECT max(rowid) FROM {table}").fetchone()[0] or 0
    except sqlite3.Error as error:
        if error.sqlite_errorcode not in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_IOERR):
            return  # no database, or without this table
        last = _MOST_GUESSED
    for start in range(1, min(last, 2**26) + 1, 4096):
        yield from rows(start, min(last, start + 4095))


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _item_checksum(row: Sequence[Any]) -> int | None:
    try:
        return item_checksum(row[0], _text(row[1]), _text(row[2]))
    except UnicodeDecodeError:
        return None


def _block_is_right(row: Sequence[Any]) -> bool:
    block, width, numbers, checksum = row
    if not (isinstance(block, int) and isinstance(width, int) and width > 0 and isinstance(numbers, bytes)):
        return False
    return bool(checksum == block_checksum(block, width, numbers))


def _verified_events(rows: Sequence[Sequence[Any]], head: Head | None) -> tuple[dict[int, Event], tuple[int, ...]]:
    """Events whose columns match their own digest, or that of the next event or of the note of the last event.

    Args:
        rows: The rows of the table.
        head: The note of the last event.

    Returns:
        The events by their number, and the numbers of those whose own digest does not match.
    """
    by_seq: dict[int, tuple[Any, ...]] = {}
    for row in rows:
        try:
            seq, kind, item, person, at, data, request, digest = row
            plain = (int(seq), _text(kind), item, _text(person), float(at), _text(data))
            by_seq[int(seq)] = (*plain, None if request is None else _text(request), _text(digest))
        except (UnicodeDecodeError, TypeError, ValueError):
            continue
    found: dict[int, Event] = {}
    damaged: list[int] = []
    digests = {0: ""}
    for seq in sorted(by_seq):
        row = by_seq[seq]
        stored = by_seq[seq - 1][-1] if seq - 1 in by_seq else ""
        later = by_seq.get(seq + 1)
        for before in dict.fromkeys([digests.get(seq - 1, stored), stored]):
            digest = _digest(before, row[:-1])
            follows = later is not None and later[-1] == _digest(digest, later[:-1])
            if digest and (digest == row[-1] or follows or head == (seq, digest)) and row[1] in set(EventKind):
                digests[seq] = digest
                found[seq] = _event(row, digest)
                if digest != row[-1]:
                    damaged.append(seq)
                break
    return found, tuple(damaged)


def _digest(before: str, row: Sequence[Any]) -> str:
    try:
        return chained(before, *row)
    except (TypeError, ValueError):
        return ""


def _event(row: Sequence[Any], digest: str) -> Event:
    seq, kind, item, person, at, data, request, _ = row
    return Event(EventKind(kind), person, item, json.loads(data), request, seq=seq, at=at, digest=digest)


def _applied(events: dict[int, Event], size: int) -> tuple[ProjectState, set[int]]:
    """The state after the events, and the events that cannot be applied because others are lost."""
    state, lost = ProjectState(size), set[int]()
    for seq in range(1, max(events, default=0) + 1):
        event = events.get(seq)
        try:
            if event is not None:
                state.apply(event)
                continue
        except NOT_AS_WRITTEN:
            lost.add(seq)
        state.apply(_empty(seq, 0.0 if event is None else event.at))
    return state, lost


def _empty(seq: int, at: float) -> Event:
    return Event(EventKind.lost, seq=seq, at=at)


def _accepted(file: Path, found: _Contents) -> DamageReport:
    last = found.events[max(found.events)] if found.events else None
    if last is None:
        remove_head(file)
    else:
        write_head(file, Head(last.seq, last.digest))
    return _with(found.report, repaired=True)


def _rebuilt(file: Path, found: _Contents) -> DamageReport:
    """Write the verified parts to a new file, and replace the damaged file by it."""
    part = file.with_name(f".{file.name}.repair-{os.getpid()}")
    with closing(Database(part, new=True)) as database:
        try:
            with database.exclusive() as connection:
                database.make_tables(connection)
                connection.execute(sa.insert(items_table), [_item_row(found, k) for k in range(found.size)])
                names = ("block", "width", "numbers", "checksum")
                blocks = [dict(zip(names, row, strict=True)) for row in found.blocks]
                if blocks:
                    connection.execute(sa.insert(features_table), blocks)
                last: Event | None = None
                bad = set(found.report.lost_events)
                for seq in range(1, max(found.events.keys() | bad) + 1):
                    event = _empty(seq, last.at if last is not None else 0.0) if seq in bad else found.events[seq]
                    draft = Draft(event.kind, event.person, event.item, event.data, event.request)
                    (last,) = write_events(connection, [draft], last=last, at=event.at)
            database.close()
            kept = _moved_away(file)
            part.rename(file)
        finally:
            database.close()
            for each in (part, log_of(part)):
                each.unlink(missing_ok=True)
    assert last is not None
    write_head(file, Head(last.seq, last.digest))
    sync_folder(file.parent)
    return _with(found.report, repaired=True, kept=kept)


def _item_row(found: _Contents, position: int) -> dict[str, Any]:
    if position in found.items:
        name, cells = map(_text, found.items[position])
    else:
        assert found.settings is not None
        name, cells = f"damaged item {position}", json.dumps([""] * len(found.settings["columns"]))
    return {"position": position, "id": name, "cells": cells, "checksum": item_checksum(position, name, cells)}


def _moved_away(file: Path) -> Path:
    """Give the damaged files other names."""
    stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    kept = file.with_name(f"{file.stem}-damaged-{stamp}{file.suffix}")
    if kept.exists():
        raise StorageError(f"{kept} is there already; try again")
    for ending in ("-wal", "-shm"):
        beside = file.with_name(file.name + ending)
        if beside.exists():
            beside.rename(kept.with_name(kept.name + ending))
    file.rename(kept)
    remove_head(file)
    return kept


def _write_labels(to: Path, found: _Contents) -> Path:
    """Write the verified labels: the name of the item if known, its cells, the label and the person."""
    state, _ = _applied(found.events, found.size)
    columns = list((found.settings or {}).get("columns", []))
    with to.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["position", "id", *columns, "label", "person", "at"])
        for each in state.labelled():
            name, cells = map(_text, found.items.get(each.item, ("", json.dumps([""] * len(columns)))))
            values = json.loads(cells)
            writer.writerow([each.item, name, *values[: len(columns)], each.label, each.person, each.at])
    return to
