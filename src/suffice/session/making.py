"""Projects are made whole or not at all, and opened as they are."""

import os
import time
from pathlib import Path

import sqlalchemy as sa

from suffice.errors import SufficeError
from suffice.session.contents import count_items, write_contents
from suffice.session.database import FILE, LAYOUT, Database, about_table
from suffice.session.events import Draft, EventKind
from suffice.session.items import Items
from suffice.session.journal import write_events
from suffice.session.labels import checked_label
from suffice.session.layouts import require_layout
from suffice.session.project import ConflictError, Project
from suffice.session.settings import Settings


def is_url(place: str | Path) -> bool:
    """Whether a place is the URL of a database rather than a folder."""
    return isinstance(place, str) and "://" in place


def project_file(folder: str | Path) -> Path:
    """The file of the project in a folder; a file stands for itself."""
    path = Path(folder)
    return path if path.is_file() or path.suffix == ".sqlite" else path / FILE


def create_project(place: str | Path, settings: Settings, items: Items, *, person: str = "") -> Project:
    """Make a project with its items, their features and the labels that are there already.

    Args:
        place: A folder, which is made if it is not there, or the URL of a PostgreSQL database.
        settings: What it is about.
        items: What is to be labelled.
        person: Who makes it.

    Raises:
        ConflictError: There is a project already.
        SufficeError: It cannot be made there; then nothing is left behind.
    """
    labels = {item: checked_label(settings, label) for item, label in items.labels.items()}
    drafts = [Draft(EventKind.made, person, data={"settings": settings.as_dict()})]
    drafts += [Draft(EventKind.labelled, settings.source, item, {"label": label}) for item, label in labels.items()]
    if is_url(place):
        database = Database(str(place))
        _fill(database, items, drafts)
        return Project(database, len(items))
    file = project_file(place)
    made = _make_folder(file.parent)
    was_there = file.exists()
    database = Database(file)
    try:
        _fill(database, items, drafts)
    except BaseException:
        database.close()
        if not was_there:
            for each in (file, *file.parent.glob(f"{file.name}-*")):
                each.unlink(missing_ok=True)
        if made:
            file.parent.rmdir()
        raise
    return Project(database, len(items))


def open_project(place: str | Path) -> Project:
    """Open a project, and bring it up to date if it was made by an older version.

    Args:
        place: Its folder, its file, or the URL of its database.

    Raises:
        SufficeError: There is no project, or it cannot be opened.
    """
    if is_url(place):
        database = Database(str(place))
    else:
        file = project_file(place)
        if not file.is_file():
            raise SufficeError(f"there is no project in {place}; suffice label DATA.csv makes one")
        database = Database(file)
    try:
        require_layout(database)
        with database.reading() as connection:
            size = count_items(connection)
        return Project(database, size)
    except BaseException:
        database.close()
        raise


def has_project(place: str | Path) -> bool:
    """Whether there is a project at a place.

    Raises:
        SufficeError: The place cannot be read.
    """
    if not is_url(place) and not project_file(place).is_file():
        return False
    database = Database(str(place) if is_url(place) else project_file(place))
    try:
        with database.reading() as connection:
            return "about" in database.tables(connection)
    finally:
        database.close()


def _make_folder(folder: Path) -> bool:
    try:
        made = not folder.is_dir()
        folder.mkdir(exist_ok=True)
    except FileNotFoundError:
        raise SufficeError(f"the folder {folder.absolute().parent} for the project does not exist") from None
    except OSError as error:
        raise SufficeError(
            f"the folder {folder} for the project cannot be made: {error.strerror or error}; give another place with "
            "--project"
        ) from None
    if not os.access(folder, os.W_OK):
        raise SufficeError(f"the folder {folder} is read-only; give another place for the project with --project")
    return made


def _fill(database: Database, items: Items, drafts: list[Draft]) -> None:
    with database.exclusive() as connection:
        if "about" in database.tables(connection):
            raise ConflictError(f"there is a project in {database.place} already; open it, or give another place")
        database.make_tables(connection)
        connection.execute(sa.insert(about_table), [{"key": "layout", "value": str(LAYOUT)}])
        write_contents(connection, items)
        write_events(connection, drafts, after=0, at=time.time())
