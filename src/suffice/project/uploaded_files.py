"""Files that somebody sends to create a project: where they are stored, what they contain, and the new project."""

import gzip
import re
import secrets
import shutil
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import IO, Any, Final, Literal
from zipfile import BadZipFile, ZipFile

import numpy as np

from suffice.errors import InvalidValueError, MissingExtraError, SufficeError
from suffice.files import PRIVATE_FILE, PRIVATE_FOLDER
from suffice.presentation.text_format import count, shortened
from suffice.project.archives import ArchiveLimits, require_safe_entries, unpacked_files
from suffice.project.column_roles import ColumnGuess, ColumnLabels, Role, guessed_columns, id_column
from suffice.project.create import CreationOptions, has_project, make_project
from suffice.project.events import printable, shown
from suffice.project.images import image_paths
from suffice.project.labelling_project import ConflictError
from suffice.project.read_items import ReadingOptions, TableSource, TargetColumn, read_labels, read_source
from suffice.project.storage import StorageError, StorageFullError
from suffice.tables.file_reader import table_format, without_ending
from suffice.tables.table import are_classes
from suffice.tables.table_columns import Texts

#: The folder of uploads, in a folder of projects: on the same disk, so that files are moved and not copied.
UPLOADS: Final = ".suffice-uploads"
#: What can be uploaded, for a sentence.
UPLOAD_KINDS: Final = "CSV, TSV, Excel (.xlsx), JSON lines (.jsonl), Parquet, or a ZIP archive of images"
# Rows of a table that are shown before a project is created, and characters of a cell.
_SHOWN_ROWS: Final = 5
_SHOWN_CHARACTERS: Final = 200
_SHOWN_IMAGES: Final = 8
# Files that are named in a note, and folders whose names may be classes.
_MOST_NAMED: Final = 5
_MOST_CLASS_FOLDERS: Final = 50
# Seconds after which an upload that nobody used is removed, and one of a server that was killed.
_KEPT_SECONDS: Final = 3600.0
_ABANDONED_SECONDS: Final = 24 * 3600.0
# Uploads at a time; the oldest is removed.
_MOST_UPLOADS: Final = 8
# Bytes that stay free on the disk.
_SPARE_BYTES: Final = 2**26
_PART: Final = 2**20
_LONGEST_NAME: Final = 100
_NOT_IN_NAMES: Final = re.compile(r'[\x00-\x1f\x7f<>:"/\\|?*]+')
# Names of devices on Windows.
_DEVICES: Final = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)
_ZIP: Final = ".zip"


@dataclass(frozen=True)
class UploadLimits:
    """Limits of an uploaded file.

    Attributes:
        size: Bytes of the file.
        table: Bytes of a table after unpacking.
        rows: Rows of a table.
        columns: Columns of a table.
        lines: Lines of a table as text; a text in quotes may have several.
        archive: Those of an archive.
    """

    size: int = 100 * 2**20
    table: int = 2**28
    rows: int = 500_000
    columns: int = 2_000
    lines: int = 5_000_000
    archive: ArchiveLimits = field(default_factory=ArchiveLimits)


class NoUploadError(SufficeError):
    """There is no such upload, or not any more."""


class UploadTooLargeError(InvalidValueError):
    """An uploaded file exceeds a limit of its size."""


@dataclass(frozen=True)
class UploadContent:
    """What an uploaded file contains.

    Attributes:
        kind: Whether the items are rows of a table, or images.
        data: The table, or the folder of images.
        size: Number of items.
        columns: The columns of the table, with their guessed roles.
        rows: The first rows.
        images: The first images; names relative to the folder.
        notes: Sentences about how the file was read.
    """

    kind: Literal["table", "images"]
    data: Path
    size: int
    columns: tuple[ColumnGuess, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    images: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class ProjectWish:
    """The project that somebody wants from an upload.

    Attributes:
        name: Name of the project; its folder is NAME.suffice.
        roles: Role of each column; for a column that is left out, the guessed one.
        classes: The classes; empty for those in the column of labels.
        numbers: Whether labels are numbers.
        target: What a label is called, if no column holds labels.
        person: Who creates the project.
    """

    name: str
    roles: Mapping[str, Role] = field(default_factory=dict)
    classes: tuple[str, ...] = ()
    numbers: bool = False
    target: str = ""
    person: str | None = None


@dataclass(eq=False)
class Upload:
    """A file that is being sent, or was sent.

    Attributes:
        id: Its identifier, which cannot be guessed.
        name: Its name on the machine of the sender.
        folder: Where it is stored.
        content: What it contains, after it was read.
        made: Name of the project that was created from it.
        progress: What is done for its project now, how much of it is done, and of how much; 0 if that is not known.
    """

    id: str
    name: str
    folder: Path
    content: UploadContent | None = None
    made: str | None = None
    progress: tuple[str, int, int] = ("", 0, 0)
    used: float = field(default_factory=time.monotonic)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def report(self, what: str, done: int, total: int) -> None:
        """Store the progress."""
        self.used = time.monotonic()
        self.progress = what, done, total

    @property
    def file(self) -> Path:
        """The file as it was sent."""
        return self.folder / f"upload{ending_of(self.name)}"

    @property
    def unpacked(self) -> Path:
        """The folder with the files of an archive."""
        return self.folder / "files"


def base_name(name: str) -> str:
    r"""The name of a file without the folders that the sender may have written before it.

    Examples:
        >>> base_name("../data\\mails.csv")
        'mails.csv'
    """
    return re.split(r"[/\\]", name)[-1].strip()


def ending_of(name: str) -> str:
    """The ending of the name of a file that can be uploaded.

    Args:
        name: The name, without folders.

    Raises:
        InvalidValueError: It is no such file.

    Examples:
        >>> ending_of("mails.CSV.gz"), ending_of("pets.zip")
        ('.csv.gz', '.zip')
        >>> ending_of("mails.docx")
        Traceback (most recent call last):
        ...
        suffice.errors.InvalidValueError: 'mails.docx' cannot be read; upload CSV, TSV, Excel (.xlsx), ...
    """
    if name.lower().endswith(_ZIP):
        return _ZIP
    if not printable(name) or name != base_name(name):
        raise InvalidValueError(f"the file needs a name without control characters, not {shown(name)}; rename it")
    if table_format(Path(name)) is None:
        raise InvalidValueError(f"{shown(name)} cannot be read; upload {UPLOAD_KINDS}")
    return name[len(without_ending(Path(name))) :].lower()


def checked_name(name: str) -> str:
    """Return the name of a new project without spaces around it.

    Raises:
        InvalidValueError: It cannot be the name of a folder on every system.

    Examples:
        >>> checked_name(" mails ")
        'mails'
    """
    found = name.strip()
    unusable = found.startswith(".") or found.endswith(".") or _NOT_IN_NAMES.search(found) or _DEVICES.fullmatch(found)
    if not found or len(found.encode("utf-8", "replace")) > _LONGEST_NAME or unusable or not printable(found):
        raise InvalidValueError(
            f"the name of the project must have 1 to {_LONGEST_NAME} letters, digits or spaces, without any of "
            f'< > : " / \\ | ? * and without a dot at its ends, not {shown(name)}'
        )
    return found


def suggested_name(name: str) -> str:
    r"""A name for a project from the name of a file.

    Examples:
        >>> suggested_name("C:\\data\\mails.csv.gz"), suggested_name("pets.zip"), suggested_name(".csv")
        ('mails', 'pets', 'project')
    """
    file = base_name(name)
    stem = without_ending(Path(file)) if not file.lower().endswith(_ZIP) else file[: -len(_ZIP)]
    stem = _NOT_IN_NAMES.sub("_", stem).strip(" .").encode("utf-8", "replace")[:_LONGEST_NAME].decode("utf-8", "ignore")
    try:
        return checked_name(stem)
    except InvalidValueError:
        return "project"


class UploadStore:
    """Uploads in a folder of projects. Each is removed when its project is created, when it fails, or after an hour.

    Args:
        folder: The folder of projects.
        limits: Limits of each file.
    """

    def __init__(self, folder: Path, limits: UploadLimits | None = None) -> None:
        self.limits = limits or UploadLimits()
        self._folder = folder / UPLOADS
        self._projects = folder
        self._uploads: dict[str, Upload] = {}
        self._lock = threading.Lock()

    def start(self, name: str, size: int | None) -> Upload:
        """Prepare to store a file.

        Args:
            name: Its name.
            size: Its size in bytes, if it is known.

        Raises:
            InvalidValueError: It is no file that can be uploaded, or too large.
            ConflictError: Too many are being sent.
            StorageError: It cannot be stored.
        """
        name = base_name(name)
        ending_of(name)
        if size is not None and size > self.limits.size:
            raise self.too_large()
        self._remove_old()
        if len(self._uploads) >= _MOST_UPLOADS:
            raise ConflictError(f"{_MOST_UPLOADS} files are being sent; try again in a minute")
        self._require_room(size or 0)
        upload = Upload(secrets.token_urlsafe(24), name, self._folder / secrets.token_hex(8))
        try:
            self._folder.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
            upload.folder.mkdir(mode=PRIVATE_FOLDER)
        except OSError as error:
            raise StorageError(
                f"nothing can be written to the folder of projects: {error.strerror or error}; make it writable"
            ) from None
        with self._lock:
            self._uploads[upload.id] = upload
        return upload

    @contextmanager
    def writing(self, upload: Upload) -> Iterator[Callable[[bytes], None]]:
        """Write the bytes of a file as they come; the upload is removed if that fails or is aborted.

        Raises:
            UploadTooLargeError: It has too many bytes.
            StorageFullError: The disk is full.
        """
        try:
            with upload.lock, _private(upload.file) as file:
                size = 0

                def write(part: bytes) -> None:
                    nonlocal size
                    size += len(part)
                    if size > self.limits.size:
                        raise self.too_large()
                    file.write(part)

                yield write
            if not size:
                raise InvalidValueError(f"the file {shown(upload.name)} is empty; choose another one")
        except OSError as error:
            self.discard(upload.id)
            raise StorageFullError(
                f"the file cannot be stored: {error.strerror or error}; make room on the disk and upload it again"
            ) from None
        except BaseException:
            self.discard(upload.id)
            raise

    def read(self, upload: Upload) -> UploadContent:
        """Read a file that was sent completely; the upload is removed if that fails.

        Raises:
            InvalidValueError: It cannot be read, or exceeds a limit; the message says what to do.
            MissingExtraError: A package is required that is not installed.
        """
        try:
            with upload.lock, _plain_words(upload):
                upload.content = _content(upload, self.limits)
                return upload.content
        except BaseException:
            self.discard(upload.id)
            raise

    def get(self, id: str) -> Upload:
        """Return an upload.

        Raises:
            NoUploadError: There is none.
        """
        upload = self._uploads.get(id)
        if upload is None:
            raise NoUploadError("this file is not there any more; choose it again")
        upload.used = time.monotonic()
        return upload

    def create(self, upload: Upload, wish: ProjectWish) -> str:
        """Create the project from a file that was read, and remove the file.

        Args:
            upload: The upload.
            wish: The project.

        Returns:
            The name of the folder of the project. If the project was created before, its name is returned again.

        Raises:
            InvalidValueError: The file cannot be used in this way; nothing is created, and the upload stays.
            ConflictError: There is a project or a folder of this name.
        """
        with upload.lock, _plain_words(upload):
            if upload.made is None:
                if upload.content is None:
                    raise NoUploadError("this file is not there any more; choose it again")
                upload.made = _create(self._projects, upload, upload.content, wish)
                shutil.rmtree(upload.folder, ignore_errors=True)
                self._remove_empty()
            return upload.made

    def discard(self, id: str) -> None:
        """Remove an upload; nothing happens if there is none."""
        with self._lock:
            upload = self._uploads.pop(id, None)
        if upload is not None:
            shutil.rmtree(upload.folder, ignore_errors=True)
            self._remove_empty()

    def clear(self) -> None:
        """Remove all uploads."""
        for id in [*self._uploads]:
            self.discard(id)

    def too_large(self) -> UploadTooLargeError:
        """The error for a file with too many bytes."""
        return UploadTooLargeError(
            f"a file must have at most {self.limits.size / 2**20:,.0f} MiB; make the project from a larger one with "
            "the command suffice serve FILE"
        )

    def _require_room(self, size: int) -> None:
        with suppress(OSError):
            if shutil.disk_usage(self._projects).free < size + _SPARE_BYTES:
                raise StorageFullError(
                    "the disk of the folder of projects is full; make room and upload the file again"
                )

    def _remove_old(self) -> None:
        """Remove uploads that nobody uses, and those of servers that were killed."""
        now = time.monotonic()
        with self._lock:
            by_age = sorted(self._uploads.values(), key=lambda upload: upload.used)
        old = [upload for upload in by_age if now - upload.used > _KEPT_SECONDS]
        old += [upload for upload in by_age[: max(0, len(by_age) - _MOST_UPLOADS + 1)] if upload not in old]
        for upload in old:
            # One that is being sent, read or made into a project is kept.
            if upload.lock.acquire(blocking=False):
                upload.lock.release()
                self.discard(upload.id)
        own = {upload.folder for upload in by_age}
        with suppress(OSError):
            for folder in self._folder.iterdir():
                if folder not in own and time.time() - folder.stat().st_mtime > _ABANDONED_SECONDS:
                    shutil.rmtree(folder, ignore_errors=True)

    def _remove_empty(self) -> None:
        with suppress(OSError):
            self._folder.rmdir()


@contextmanager
def _private(path: Path) -> Iterator[IO[bytes]]:
    with path.open("xb") as file:
        path.chmod(PRIVATE_FILE)
        yield file


def _content(upload: Upload, limits: UploadLimits) -> UploadContent:
    """What an upload contains."""
    if upload.file.suffix != _ZIP:
        return _table_content(upload.file, limits, images=False)
    upload.unpacked.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
    images, tables, left_out = unpacked_files(upload.file, shown(upload.name), upload.unpacked, limits.archive)
    upload.file.unlink()
    if len(tables) > 1:
        some = ", ".join(tables[:5])
        raise InvalidValueError(f"{shown(upload.name)} holds {len(tables)} tables ({some}); upload one of them alone")
    if tables:
        content = _table_content(upload.unpacked / tables[0], limits, images=bool(images))
        return replace(content, notes=(*content.notes, *_left_out_notes(left_out)))
    if len(images) < 2:
        raise InvalidValueError(
            f"{shown(upload.name)} holds {count(len(images), 'image')} and no table; at least 2 images are required"
        )
    notes = (*_left_out_notes(left_out), *_folder_notes(images))
    return UploadContent("images", upload.unpacked, len(images), images=tuple(images[:_SHOWN_IMAGES]), notes=notes)


def _left_out_notes(names: Sequence[str]) -> list[str]:
    """A note about files of an archive that are not used."""
    left = f"{count(len(names), 'file')} {'was' if len(names) == 1 else 'were'} left out"
    return [f"{left}: {_some_names(names)}"] if names else []


def _folder_notes(images: Sequence[str]) -> list[str]:
    """A note if the images are in folders whose names may be their classes."""
    folders = sorted({Path(image).parent.as_posix() for image in images})
    if "." in folders or not 2 <= len(folders) <= _MOST_CLASS_FOLDERS:
        return []
    return [
        f"the images are in {len(folders)} folders ({_some_names([Path(each).name for each in folders])}); if these "
        "names are classes: they are not used as labels"
    ]


def _some_names(names: Sequence[str]) -> str:
    return ", ".join(shortened(name, 80) for name in names[:_MOST_NAMED]) + ", ..." * (len(names) > _MOST_NAMED)


def _table_content(path: Path, limits: UploadLimits, *, images: bool) -> UploadContent:
    _require_small_table(path, limits)
    source = read_source(path, ReadingOptions())
    rows = source.rows
    if len(rows) > limits.rows or len(source.file.names) > limits.columns:
        raise _too_many(limits)
    guesses = guessed_columns(source.file, rows, lambda name: _labels_in(source, name), images=images)
    missing = [note for guess in guesses if guess.role == "image" for note in _missing_images(source, guess.name)]
    return UploadContent(
        "table",
        path,
        len(rows),
        columns=tuple(guesses),
        rows=tuple(tuple(_shown_cell(cell) for cell in row) for row in islice(iter(rows), _SHOWN_ROWS)),
        notes=(*source.notes, *missing),
    )


def _missing_images(source: TableSource, name: str) -> list[str]:
    """A note about the first image that a column names and the archive does not contain."""
    folder = source.path.parent
    try:
        image_paths(folder, source.cells(name), source.file.place)
    except InvalidValueError as error:
        return [_without_folder(str(error), folder)]
    return []


def _without_folder(message: str, folder: Path) -> str:
    """A message about the files of an archive without the place where they were unpacked."""
    for path in (folder.resolve(), folder):
        message = re.sub(rf"the folder {re.escape(str(path))}(?![^/;]).*?(?=;|$)", "the archive", message)
        message = message.replace(f"{path}/", "").replace("into that folder", "into the archive")
    return message


def _shown_cell(cell: str) -> str:
    return cell if len(cell) <= _SHOWN_CHARACTERS else f"{cell[: _SHOWN_CHARACTERS - 1]}…"


def _labels_in(source: TableSource, name: str) -> ColumnLabels:
    """What the labels are if a column holds them."""
    column = source.file[name]
    if isinstance(column, Texts):
        if len(column.levels) > _MOST_LEVELS:
            return ColumnLabels(problem=f"it holds {len(column.levels):,} different texts")
    elif not are_classes(np.unique(finite := column[np.isfinite(column)])) and len(finite):
        return ColumnLabels(count=len(finite))
    try:
        found = read_labels(TargetColumn(name, source.cells(name), column, source.file.place), ReadingOptions())
    except InvalidValueError as error:
        empty = not (column.levels if isinstance(column, Texts) else len(finite))
        return ColumnLabels(problem="" if empty else _in_plain_words(str(error)))
    return ColumnLabels(found.classes, len(found.labels))


# Different texts above which a column is not read as labels.
_MOST_LEVELS: Final = 1000


def _too_many(limits: UploadLimits) -> InvalidValueError:
    return InvalidValueError(
        f"the table must have at most {limits.rows:,} rows and {limits.columns:,} columns; leave some out, or make the "
        "project with the command suffice serve FILE"
    )


def _require_small_table(path: Path, limits: UploadLimits) -> None:
    """Raise an error for a table that is too large, before it is read into memory."""
    found = table_format(path)
    with path.open("rb") as file:
        start = file.read(8)
    if found == "parquet":
        _require_small_parquet(path, limits)
    elif start.startswith(b"PK"):
        try:
            with ZipFile(path) as archive:
                archive_limits = ArchiveLimits(limits.archive.entries, limits.table, limits.archive.ratio)
                require_safe_entries(archive.infolist(), path.stat().st_size, "the workbook", archive_limits)
        except (BadZipFile, OSError, ValueError) as error:
            raise (
                error
                if isinstance(error, InvalidValueError)
                else InvalidValueError(f"the workbook cannot be read: {error}; save it again in Excel or LibreOffice")
            ) from None
    else:
        _require_small_text(path, limits, packed=start.startswith(b"\x1f\x8b"), lines=found == "csv")


def _require_small_text(path: Path, limits: UploadLimits, *, packed: bool, lines: bool) -> None:
    size = ends = 0
    first = True
    try:
        with gzip.open(path) if packed else path.open("rb") as file:
            while part := file.read(_PART):
                size += len(part)
                ends += part.count(b"\n")
                if size > limits.table:
                    raise InvalidValueError(
                        f"the table unpacks to more than {limits.table / 2**20:,.0f} MiB; leave rows or columns out"
                    )
                head = part.partition(b"\n")[0]
                if first and lines and max(map(head.count, (b",", b";", b"\t", b"|"))) >= limits.columns:
                    raise _too_many(limits)
                first = False
                if ends > limits.lines:
                    raise _too_many(limits)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InvalidValueError(f"the file cannot be unpacked: {error}; pack it again and upload it again") from None


def _require_small_parquet(path: Path, limits: UploadLimits) -> None:
    """Raise an error for a Parquet file whose cells would fill the memory; equal texts may be stored once."""
    try:
        arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
        compute = import_module("pyarrow.compute")
    except ImportError:
        raise MissingExtraError("pyarrow", "parquet", "Reading Parquet") from None
    try:
        about = parquet.read_metadata(path)
        if about.num_rows > limits.rows or about.num_columns > limits.columns:
            raise _too_many(limits)
        stated = sum(about.row_group(k).total_byte_size for k in range(about.num_row_groups))
        size = stated
        texts = [
            about.schema.column(k).path
            for k in range(about.num_columns)
            if about.schema.column(k).physical_type == "BYTE_ARRAY"
        ]
        if stated <= limits.table and texts:
            file = parquet.ParquetFile(path, read_dictionary=texts)
            for batch in file.iter_batches(batch_size=_ROWS_AT_ONCE):
                for column in batch.columns:
                    size += column.nbytes
                    if arrow.types.is_dictionary(column.type):
                        lengths = compute.binary_length(column.dictionary)
                        size += compute.sum(compute.take(lengths, column.indices)).as_py() or 0
                if size > limits.table:
                    break
    except InvalidValueError:
        raise
    except (OSError, ValueError, arrow.ArrowException) as error:
        raise InvalidValueError(f"it is not a Parquet file that can be read: {error}") from None
    if size > limits.table:
        raise InvalidValueError(
            f"the table unpacks to more than {limits.table / 2**20:,.0f} MiB; leave rows or columns out"
        )


_ROWS_AT_ONCE: Final = 10_000


def _create(projects: Path, upload: Upload, content: UploadContent, wish: ProjectWish) -> str:
    """Create a project, and return the name of its folder."""
    name = checked_name(wish.name)
    place = projects / f"{name}.suffice"
    if place.exists() or has_project(place):
        raise ConflictError(f"there is a project with the name {shown(name)} already; give another name")
    options = _options(content, wish)
    if not content.data.is_relative_to(upload.unpacked):
        data = content.data.with_name(f"{name}{ending_of(content.data.name)}")
        content.data.rename(data)
        try:
            make_project(place, data, options, name=name, progress=upload.report).close()
        finally:
            data.rename(content.data)
        return place.name
    # The project needs the images as long as it exists, in a folder beside it.
    kept = projects / name
    if kept.exists():
        raise ConflictError(f"there is a folder with the name {shown(name)} already; give another name")
    upload.unpacked.rename(kept)
    try:
        make_project(
            place, kept / content.data.relative_to(upload.unpacked), options, name=name, progress=upload.report
        ).close()
    except BaseException as error:
        try:
            kept.rename(upload.unpacked)
        except OSError:
            # The upload was discarded meanwhile.
            shutil.rmtree(kept, ignore_errors=True)
        if isinstance(error, InvalidValueError):
            raise InvalidValueError(_without_folder(str(error), kept)) from error.__cause__
        raise
    return place.name


def _options(content: UploadContent, wish: ProjectWish) -> CreationOptions:
    """The options of a project from the roles of its columns.

    Raises:
        InvalidValueError: They contradict each other.
    """
    roles: dict[str, Role] = {guess.name: guess.role for guess in content.columns}
    if unknown := [name for name in wish.roles if name not in roles]:
        raise InvalidValueError(f"the file has no column {shown(unknown[0])}")
    roles |= wish.roles
    by_role: dict[Role, list[str]] = {}
    for name, role in roles.items():
        by_role.setdefault(role, []).append(name)
    for role in ("text", "image", "id", "label"):
        if len(names := by_role.get(role, [])) > 1:
            raise InvalidValueError(
                f"{shown(names[0])} and {shown(names[1])} are both chosen as {_ROLE_WORDS[role]}; choose one of them"
            )
    one = {role: names[0] for role, names in by_role.items()}
    # A column of this name is read as the id without being chosen.
    called = id_column([guess.name for guess in content.columns if guess.role == "id"])
    if called is not None and "id" not in one and roles[called] == "feature":
        raise InvalidValueError(
            f"{shown(called)} is different in each row, so no model can use it; leave it out, or choose it as the id"
        )
    if wish.classes and wish.numbers:
        raise InvalidValueError("labels are classes or numbers; choose one of them")
    return CreationOptions(
        classes=wish.classes or None,
        regression=wish.numbers,
        text=one.get("text"),
        image=one.get("image"),
        id=one.get("id"),
        target=one.get("label", wish.target.strip() or None),
        ignore=tuple(by_role.get("ignored", ())),
        person=wish.person,
    ).checked()


_ROLE_WORDS: Final = {"text": "the text", "image": "the image", "id": "the id", "label": "the label"}
# What messages for the command line say, and what is said on the page.
_PLAIN: Final = (
    (
        re.compile(r"give the classes as --classes a,b,c, or --regression if labels are numbers"),
        "write the classes, or choose numbers",
    ),
    (re.compile(r"; if a column holds labels already, name it with --target"), ""),
    (
        re.compile(r"write them as --classes a,b,c, and a name that holds a comma in double quotes"),
        "write one class in each line",
    ),
    (re.compile(r"Name another column with --target, or "), "Choose another column as the label, or "),
    (
        re.compile(r"name a column of text with --text, or give features with --features FILE\.npy"),
        "use another column",
    ),
    (re.compile(r"; give features that tell them apart with --features FILE\.npy"), ""),
    (re.compile(r"add it to --classes"), "add it to the classes"),
    (re.compile(r"; give --(target|image) .+? (if it holds labels|to show them)"), ""),
    (re.compile(r"--regression takes them as numbers"), "choose numbers if they are not classes"),
    (re.compile(r"give --classes if labels are classes"), "write the classes if labels are classes"),
    (re.compile(r"given as --target"), "chosen as the label"),
    (re.compile(r"--classes: "), ""),
    (re.compile(r"--(classes|target|text|image|id|ignore)\b"), r"\1"),
)


def _in_plain_words(sentence: str) -> str:
    """A message without options of the command line."""
    for option, words in _PLAIN:
        sentence = option.sub(words, sentence)
    return sentence


@contextmanager
def _plain_words(upload: Upload) -> Iterator[None]:
    """Replace options and temporary paths in error messages."""
    try:
        yield
    except (MissingExtraError, NoUploadError):
        raise
    except SufficeError as error:
        message = _in_plain_words(str(error))
        for path in (upload.file, upload.unpacked, upload.folder):
            message = message.replace(f"{path}/", "").replace(str(path), upload.name)
        # A sentence begins with a capital, and the name of a file does not.
        message = f"the file {message}" if re.match(r"[^ ]+\.\w+(:| )", message) else message
        raise type(error)(message) from error.__cause__


def described(content: UploadContent) -> dict[str, Any]:
    """What an upload contains, as JSON values without the place where it is stored."""
    return {
        "kind": content.kind,
        "size": content.size,
        "columns": [
            {
                "name": guess.name,
                "role": guess.role,
                "reason": guess.reason,
                "classes": list(guess.labels.classes),
                "labels": guess.labels.count,
                "problem": guess.labels.problem,
            }
            for guess in content.columns
        ],
        "rows": [list(row) for row in content.rows],
        "images": list(content.images),
        "notes": [_in_plain_words(note) for note in content.notes],
    }
