"""Older layouts of the tables, and how each becomes the next; what was there before is kept aside."""

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Final

from suffice.errors import SufficeError, upgrade_advice
from suffice.session.database import LAYOUT, Database, about_table
from suffice.session.places import Connection, sa, sync_folder


def require_layout(database: Database) -> None:
    """Bring an older project up to date; nothing is done to one that is.

    Raises:
        SufficeError: There is no project, it was made by a later version, or it cannot be kept aside first.
    """
    with database.reading() as connection:
        found = layout_of(database, connection)
    if found == LAYOUT:
        return
    if found > LAYOUT:
        raise SufficeError(
            f"{database.place} was made by a later version of suffice (layout {found}, this one knows up to {LAYOUT}); "
            f"{upgrade_advice()}"
        )
    if database.read_only:
        raise SufficeError(
            f"{database.place} was made by an older version of suffice and must be brought up to date, but it is "
            "read-only; make it writable, or copy it"
        )
    with database.exclusive() as connection:
        # Somebody else may have done it meanwhile.
        found = layout_of(database, connection)
        if found < LAYOUT:
            _keep_aside(database, connection, found)
        for layout in range(found, LAYOUT):
            _STEPS[layout](connection)
        connection.execute(sa.update(about_table).where(about_table.c.key == "layout").values(value=str(LAYOUT)))


def layout_of(database: Database, connection: Connection) -> int:
    """The layout of a project's tables.

    Raises:
        SufficeError: There is no project.
    """
    if "about" in database.tables(connection):
        found = connection.execute(sa.select(about_table.c.value).where(about_table.c.key == "layout")).scalar()
        if found is not None and found.isdecimal() and int(found) >= min(_STEPS):
            return int(found)
    raise SufficeError(f"there is no project in {database.place}; suffice label DATA.csv makes one")


def _keep_aside(database: Database, connection: Connection, layout: int) -> None:
    if database.file is None:
        connection.execute(sa.text(f"CREATE TABLE IF NOT EXISTS events_layout_{layout} AS TABLE events"))
        return
    kept = database.file.with_name(f"{database.file.stem}-layout-{layout}{database.file.suffix}")
    # Nobody else is at it within this transaction; a killed process may have left half of one.
    part = kept.with_name(f".{kept.name}.part")
    try:
        part.unlink(missing_ok=True)
        # Read beside the transaction that holds everybody else off, so it is what was there before.
        _copy(database.file, part)
        part.replace(kept)
        sync_folder(kept.parent)
    except (OSError, sqlite3.Error) as error:
        raise SufficeError(
            f"the project cannot be kept aside as {kept} before it is brought up to date: {error}"
        ) from None
    finally:
        part.unlink(missing_ok=True)


def _copy(file: Path, to: Path) -> None:
    source, target = sqlite3.connect(file), sqlite3.connect(to)
    try:
        source.backup(target)
    finally:
        source.close()
        target.close()
    with to.open("rb+") as written:
        os.fsync(written.fileno())


def _name_requests(connection: Connection) -> None:
    """Layout 1 had no names of requests: what was sent twice was written twice."""
    connection.execute(sa.text("ALTER TABLE events ADD COLUMN request TEXT"))
    connection.execute(sa.text("CREATE UNIQUE INDEX events_request ON events (request)"))


_STEPS: Final[dict[int, Callable[[Connection], None]]] = {1: _name_requests}
