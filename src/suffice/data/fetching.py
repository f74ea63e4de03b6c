"""Fetches data sets from their public homes, or from a copy, into the data folder."""

import hashlib
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

from suffice.data.archives import MOST_BYTES, member, require_no_page, understood
from suffice.data.catalogue import DataFile, DataSet, FileSource, data_set
from suffice.data.checking import FileState, FileStatus, file_status
from suffice.data.downloading import DownloadError, DownloadProgress, Downloads
from suffice.data.folder import data_folder
from suffice.data.recipes import as_it_is, with_line_endings
from suffice.errors import CorruptDataError, InvalidValueError, SufficeError
from suffice.files import write_bytes_whole


class FetchStatus(StrEnum):
    """Result of fetching a file."""

    there = "there"
    stored = "stored"
    replaced = "replaced"
    failed = "failed"


@dataclass(frozen=True)
class FetchResult:
    """Result of fetching a file of a data set.

    Attributes:
        name: Name of the data set.
        file: The file.
        path: Where it belongs.
        what: Whether it was there, was stored, replaced a corrupt file, or could not be fetched.
        problem: Why it could not be fetched, and how to get it by hand; empty if it was.
    """

    name: str
    file: DataFile
    path: Path
    what: FetchStatus
    problem: str = ""


def fetch(
    names: Iterable[str],
    folder: Path | None = None,
    *,
    mirror: str | None = None,
    progress: DownloadProgress | None = None,
    retries: int = 2,
) -> Iterator[FetchResult]:
    """Fetch the missing and corrupt files of some data sets; yield the result of each file as soon as it is known.

    A file is stored only if its checksum is the recorded one. The next call continues an interrupted download.

    Args:
        names: Names of the data sets.
        folder: The data folder; :func:`suffice.data.folder.data_folder` if left out. It is created if it is missing.
        mirror: An address or a folder that holds the files, in folders as here or as their public homes hand them out;
            the public homes if left out.
        progress: Called with an address, the number of bytes received, and the total (None if not known).
        retries: How often to try again after a connection failed.

    Raises:
        InvalidValueError: There is no data set of some name, or the mirror is neither an address nor a folder.
        SufficeError: The data folder cannot be written to.
    """
    wanted = [data_set(name) for name in dict.fromkeys(names)]
    base = None if mirror is None else _base(mirror)
    return _fetch(wanted, data_folder() if folder is None else folder, base, progress, retries)


def _fetch(
    wanted: list[DataSet], place: Path, base: str | None, progress: DownloadProgress | None, retries: int
) -> Iterator[FetchResult]:
    # Several files come from one download, and two data sets are the same file.
    files: dict[str, tuple[DataSet, DataFile]] = {}
    for each in wanted:
        for file in each.files:
            files.setdefault(file.path, (each, file))
    with TemporaryDirectory(prefix="suffice-") as folder:
        downloads = Downloads(Path(folder), place / "downloads", progress=progress, retries=retries)
        for each, file in files.values():
            yield _outcome(each, file_status(file, place), base, downloads)


def _base(mirror: str) -> str:
    """Return the address or the folder that holds a copy, without a final slash."""
    if _is_address(mirror):
        try:
            host = urlsplit(mirror).netloc
        except ValueError as error:
            raise InvalidValueError(f"{mirror!r} is no address: {error}") from None
        if not host:
            raise InvalidValueError(f"{mirror!r} is no address: it names no host")
        return mirror.rstrip("/")
    if mirror and Path(mirror).expanduser().is_dir():
        return str(Path(mirror).expanduser())
    required = "an address that begins with http:// or https://, or a folder that exists"
    raise InvalidValueError(f"what to fetch from must be {required}, not {mirror!r}")


def _is_address(text: str) -> bool:
    return text.startswith(("http://", "https://"))


def _outcome(wanted: DataSet, before: FileStatus, base: str | None, downloads: Downloads) -> FetchResult:
    file, path = before.file, before.path
    if before.state is FileState.right:
        return FetchResult(wanted.name, file, path, FetchStatus.there)
    _require_place(path)
    problems: list[SufficeError] = []
    for source in file.sources if base is None else _copies(file, base):
        try:
            content = _content(file, source, downloads)
        except (DownloadError, CorruptDataError) as error:
            problems.append(error)
        else:
            write_bytes_whole(path, content)
            what = FetchStatus.stored if before.state is FileState.missing else FetchStatus.replaced
            return FetchResult(wanted.name, file, path, what)
    if base is not None:
        # A mirror needs one of the names only: the one that is there but wrong matters most, then the first.
        problems = [error for error in problems if isinstance(error, CorruptDataError)] or problems[:1]
    if file_status(file, path.parents[len(Path(file.path).parts) - 1]).state is FileState.right:
        # Another process has fetched it in the meantime.
        return FetchResult(wanted.name, file, path, FetchStatus.there)
    told = "; ".join(dict.fromkeys(map(str, problems)))
    return FetchResult(wanted.name, file, path, FetchStatus.failed, f"{told}. {by_hand(wanted, file, path)}")


def by_hand(wanted: DataSet, file: DataFile, path: Path) -> str:
    """Return instructions to get a file by hand, for a machine without a network.

    Args:
        wanted: The data set.
        file: Its file.
        path: Where it belongs.
    """
    source = file.sources[0]
    if not source.member:
        return f"By hand: download {source.address} and save it as {path}"
    if source.recipe is as_it_is:
        return f"By hand: save {source.member} out of {source.address} ({wanted.home}) as {path}"
    run = f"suffice data fetch {wanted.name} --from FOLDER"
    return f"By hand: download {source.address} ({wanted.home}) to a folder and run {run}, which makes {path} of it"


def _copies(file: DataFile, base: str) -> Iterator[FileSource]:
    """Yield the places of a file in a mirror: as it is stored here, then as each public home provides it."""
    yield FileSource(f"{base}/{file.path}")
    for source in file.sources:
        yield replace(source, address=f"{base}/{source.address.rpartition('/')[2]}")


def _require_place(path: Path) -> None:
    """Check before a download that the file can be stored."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = f"{error.strerror or error}; set SUFFICE_DATA to a folder that can be written to"
        raise SufficeError(f"the folder {path.parent} cannot be made: {reason}") from None
    if path.is_dir():
        raise SufficeError(f"{path} is a folder, where a file belongs; move it away")
    if not os.access(path.parent, os.W_OK):
        reason = "it is read-only; set SUFFICE_DATA to a folder that can be written to"
        raise SufficeError(f"the folder {path.parent} cannot be written to: {reason}")


def _content(file: DataFile, source: FileSource, downloads: Downloads) -> bytes:
    """Return the bytes of a file from a source, if they are right."""
    if not _is_address(source.address):
        return _made(file, source, Path(source.address))
    # A text may come with longer line endings than it is stored with.
    most = MOST_BYTES if source.member else 2 * file.size
    path = downloads.path(source.address, most)
    try:
        return _made(file, source, path)
    except CorruptDataError:
        path.unlink()
        raise


def _made(file: DataFile, source: FileSource, path: Path) -> bytes:
    """Return what the recipe makes from a file or archive, if its checksum is right."""
    try:
        if path.stat().st_size > MOST_BYTES:
            raise CorruptDataError(f"{path} is larger than any of these data sets")
        require_no_page(path)
        raw = member(path, source.member) if source.member else path.read_bytes()
    except CorruptDataError as error:
        raise CorruptDataError(f"{source.address}: {error}") from None
    except OSError as error:
        raise DownloadError(f"{path} cannot be read: {error.strerror or error}") from None
    actual = ""
    with understood(f"{source.member or 'what came'} from {source.address}"):
        for text in source.recipe(raw):
            for candidate in with_line_endings(text):
                digest = hashlib.sha256(candidate).hexdigest()
                if digest in (file.sha256, *file.also):
                    return candidate
                actual = actual or f"{digest} ({len(candidate)} bytes)"
    raise CorruptDataError(
        f"{source.address} does not give {file.path}: its SHA-256 checksum should be {file.expected} and is {actual}; "
        f"nothing was stored. It may be another version by now: suffice data fetch --from takes a copy from elsewhere"
    )
