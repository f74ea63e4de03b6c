"""Projects are made whole or not at all, and opened as they are."""

import os
import threading
import time
from contextlib import suppress
from glob import escape
from pathlib import Path

from suffice.errors import InvalidValueError, SufficeError
from suffice.session.contents import count_items, write_contents
from suffice.session.database import FILE, TABLES, Database, StorageError, StorageFullError
from suffice.session.events import Draft, EventKind
from suffice.session.items import Items
from suffice.session.journal import write_events
from suffice.session.labels import checked_label
from suffice.session.layouts import require_layout
from suffice.session.places import has_log, sync_folder
from suffice.session.project import ConflictError, Project
from suffice.session.settings import Settings

# The smallest page of SQLite.
_PAGE = 512


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
    if not len(items):
        raise InvalidValueError("a project needs at least one item to label")
    labels = {item: checked_label(settings, label) for item, label in items.labels.items()}
    drafts = [Draft(EventKind.made, person, data={"settings": settings.as_dict()})]
    drafts += [Draft(EventKind.labelled, settings.source, item, {"label": label}) for item, label in labels.items()]
    if is_url(place):
        database = Database(str(place))
        try:
            _fill(database, items, drafts)
            return Project(database, len(items))
        except BaseException:
            database.close()
            raise
    file = project_file(place)
    made = _make_folder(file.parent)
    try:
        _make_file(file, items, drafts)
    except BaseException:
        if made:
            with suppress(OSError):
                file.parent.rmdir()
        raise
    return open_project(file)


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
        _require_whole(database)
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
            return database.tables(connection) >= TABLES
    finally:
        database.close()


def _require_whole(database: Database) -> None:
    # SQLite writes whole pages, and does not notice that a part of the last one is missing.
    file = database.file
    if file is not None and file.stat().st_size % _PAGE and not has_log(file):
        raise StorageError(f"{file} is damaged: its end is missing; take it from a backup, or copy it again")


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


def _make_file(file: Path, items: Items, drafts: list[Draft]) -> None:
    """Make the file of a project beside its place, then put it there whole; never over one that is there."""
    _require_free(file)
    part = file.with_name(f".{file.name}.{os.getpid()}-{threading.get_ident()}")
    database = Database(part, new=True)
    try:
        _fill(database, items, drafts)
        database.close()
        if has_log(part):
            raise StorageFullError(
                f"the disk of {file.parent} is full: the project was not made; make room and try again"
            )
        _put_in_place(part, file)
    finally:
        database.close()
        _remove(file.parent, part.name)
    # What a killed process has left; another that is at it will find this one here.
    _remove(file.parent, f".{file.name}.")
    sync_folder(file.parent)
    sync_folder(file.absolute().parent.parent)


def _require_free(file: Path) -> None:
    if not file.exists():
        return
    if has_project(file):
        raise _there_already(str(file))
    raise ConflictError(f"the file {file} is there already, and is no project; give another place with --project")


def _there_already(place: str) -> ConflictError:
    return ConflictError(f"there is a project in {place} already; open it, or give another place")


def _put_in_place(part: Path, file: Path) -> None:
    try:
        # Unlike a new name for it, this fails where somebody else was faster.
        os.link(part, file)
    except (FileExistsError, FileNotFoundError):
        raise _there_already(str(file)) from None
    except OSError:
        # Some file systems cannot.
        _require_free(file)
        part.rename(file)


def _remove(folder: Path, beginning: str) -> None:
    for each in folder.glob(f"{escape(beginning)}*"):
        each.unlink(missing_ok=True)


def _fill(database: Database, items: Items, drafts: list[Draft]) -> None:
    with database.exclusive() as connection:
        tables = database.tables(connection)
        if tables >= TABLES:
            raise _there_already(database.place)
        if taken := tables & TABLES:
            raise ConflictError(
                f"{database.place} has tables of another program with the names of those of a project "
                f"({', '.join(sorted(taken))}); give another database, or another schema"
            )
        database.make_tables(connection)
        write_contents(connection, items)
        write_events(connection, drafts, after=0, at=time.time())
