"""Downloads of data sets from their sources or from a copy."""

import hashlib
import os
import re
import shutil
import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from suffice.errors import CorruptDataError, InvalidValueError, SufficeError
from suffice.files import write_bytes_whole
from suffice_research.data.catalogue import (
    MOST_BYTES,
    DataFile,
    DataSet,
    FileSource,
    FileState,
    FileStatus,
    as_it_is,
    data_folder,
    data_set,
    file_status,
    member,
    require_no_page,
    understood,
    with_line_endings,
)

if TYPE_CHECKING:
    import requests

#: Called with an address, the number of bytes received, and the total number, or None if that is not known.
DownloadProgress = Callable[[str, int, int | None], None]

_TIMEOUT: Final = 30.0
#: Bytes per read. Fewer bytes than this are lost if a connection breaks.
_CHUNK: Final = 1 << 13
#: Status codes of temporary errors.
_BUSY: Final = {408, 429, 500, 502, 503, 504}


class DownloadError(SufficeError):
    """An address does not provide the file; another one may."""


class Downloads:
    """Complete downloads in one folder, parts of interrupted ones in another.

    pooch stores complete files and tries again after a connection error, but each attempt starts at the first byte. So
    this downloader stores received bytes in a ``.part`` file and requests only the rest, even in a later process.

    Args:
        folder: Where pooch stores complete downloads.
        parts: Where incomplete downloads are kept; it exists only while there are any.
        progress: Called after each piece received, or None.
        retries: Attempts after the first; pooch waits 1, 2, ... seconds before them.
    """

    def __init__(
        self, folder: Path, parts: Path, *, progress: DownloadProgress | None = None, retries: int = 2
    ) -> None:
        self._folder, self._parts, self._progress, self._retries = folder, parts, progress, retries
        self._unreachable: dict[str, str] = {}

    def path(self, address: str, most: int) -> Path:
        """Download an address, unless its file is in the folder, and return the path of the file.

        Args:
            address: Address of the file, ``http`` or ``https``.
            most: The largest permitted number of bytes.

        Raises:
            DownloadError: The address does not provide the file.
            SufficeError: The file cannot be written.
        """
        import pooch
        import requests

        if (host := urlsplit(address).netloc) in self._unreachable:
            raise DownloadError(self._unreachable[host])
        pooch.get_logger().setLevel("WARNING")
        # Several addresses end in the same name.
        name = re.sub(r"[^\w.+-]", "_", urlsplit(address).path.rpartition("/")[2])
        name = f"{name}.{hashlib.sha256(address.encode()).hexdigest()[:8]}"
        part = self._parts / f"{name}.part"
        # Without a checksum, because the recorded checksum is that of the file made from the download.
        retries = self._retries
        files = pooch.Pooch(self._folder, "", registry={name: None}, urls={name: address}, retry_if_failed=retries)
        try:
            return Path(files.fetch(name, downloader=partial(self._download, part=part, most=most)))
        except requests.RequestException as error:
            raise DownloadError(str(error)) from None
        except OSError as error:
            raise SufficeError(f"{part} cannot be written: {error.strerror or error}") from None

    def _download(self, address: str, output_file: str, _: object, *, part: Path, most: int) -> None:
        """Download the rest of a file: a downloader for pooch, which tries again after a ``RequestException``."""
        import requests

        version = _version_file(part).read_text(encoding="utf-8") if _version_file(part).exists() else ""
        # Without a version, a change of the file between two requests could not be detected.
        start = part.stat().st_size if version and part.exists() else 0
        with self._response(address, {"Range": f"bytes={start}-", "If-Range": version} if start else {}) as response:
            answer = f"{address} answers {response.status_code} ({response.reason})"
            content_range = response.headers.get("Content-Range", "")
            if response.status_code in _BUSY:
                raise requests.ConnectionError(answer)
            if response.status_code == 200:
                self._write(response, address, part, 0, most)
            elif not start or response.status_code not in (206, 416):
                raise DownloadError(answer)
            elif content_range.startswith(f"bytes {start}-") and _version(response) in ("", version):
                self._write(response, address, part, start, most)
            elif content_range != f"bytes */{start}":  # which says that the part is complete
                _forget(part)
                raise requests.ConnectionError(f"{address} does not provide the rest of the file")
        shutil.move(part, output_file)
        _forget(part)

    def _response(self, address: str, headers: dict[str, str]) -> "requests.Response":
        import requests

        from suffice import __version__

        host = urlsplit(address).netloc
        headers = {"User-Agent": f"suffice/{__version__}", "Accept-Encoding": "identity", **headers}
        try:
            response = requests.get(address, headers=headers, stream=True, timeout=_TIMEOUT)
        except (requests.RequestException, ValueError) as error:
            cause: BaseException = error
            while inner := cause.__cause__ or cause.__context__:
                cause = inner
            self._unreachable[host] = f"{host} cannot be reached: {getattr(cause, 'strerror', None) or cause}"
            # Not repeated: an unknown host (most likely there is no network) or a wrong address.
            if isinstance(cause, socket.gaierror) or isinstance(error, ValueError):
                raise DownloadError(self._unreachable[host]) from None
            raise requests.ConnectionError(self._unreachable[host]) from None
        self._unreachable.pop(host, None)
        return response

    def _write(self, response: "requests.Response", address: str, part: Path, start: int, most: int) -> None:
        """Append the body of a response to a part, from byte ``start`` on."""
        import requests

        length = response.headers.get("Content-Length", "")
        total = start + int(length) if length.isascii() and length.isdecimal() else None
        done, broken = start, False
        part.parent.mkdir(parents=True, exist_ok=True)
        _version_file(part).write_text(_version(response), encoding="utf-8")
        with part.open("ab" if start else "wb") as stream:
            try:
                for piece in response.iter_content(_CHUNK) if (total or 0) <= most else ():
                    done += stream.write(piece)
                    if self._progress:
                        self._progress(address, done, total)
                    if done > most:
                        break
            except requests.RequestException:
                broken = True
        if max(done, total or 0) > most:
            _forget(part)
            raise DownloadError(f"{address} gives more than {most} bytes, which cannot be the file that is meant")
        if broken or done < (total or 0):
            what = f"the connection to {urlsplit(address).netloc} broke off after {done} of {total or 'unknown'} bytes"
            if done and _version(response):
                what = f"{what}; what has come is kept, and the same command continues from there"
            else:
                _forget(part)
            raise requests.ConnectionError(what)


def _version_file(part: Path) -> Path:
    """Return the path of the file with the version to which a part belongs."""
    return part.with_suffix(".version")


def _version(response: "requests.Response") -> str:
    """Return the version of a file on the server: its strong tag, otherwise its date, otherwise an empty text."""
    tag = response.headers.get("ETag", "")
    return tag if tag.startswith('"') else response.headers.get("Last-Modified", "")


def _forget(part: Path) -> None:
    part.unlink(missing_ok=True)
    _version_file(part).unlink(missing_ok=True)
    with suppress(OSError):
        part.parent.rmdir()  # fails where there are other parts


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
        folder: The data folder; :func:`suffice_research.data.catalogue.data_folder` if left out. Created if missing.
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
    # Several files may be made from one download, and two data sets use the same file.
    files: dict[str, tuple[DataSet, DataFile]] = {}
    for each in wanted:
        for file in each.files:
            files.setdefault(file.path, (each, file))
    with TemporaryDirectory(prefix="suffice-") as folder:
        downloads = Downloads(Path(folder), place / "downloads", progress=progress, retries=retries)
        for each, file in files.values():
            yield _outcome(each, file_status(file, place), base, downloads)


def _base(mirror: str) -> str:
    """Return the address or the folder of a copy, without a final slash."""
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
        # A mirror needs only one of the names. The error of an existing wrong file is reported first, then the first
        # error.
        problems = [error for error in problems if isinstance(error, CorruptDataError)] or problems[:1]
    if file_status(file, path.parents[len(Path(file.path).parts) - 1]).state is FileState.right:
        # Another process has downloaded it meanwhile.
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
    """Yield the paths of a file in a mirror: its path in the data folder, then the names at the public sources."""
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
    """Return the result of the recipe for a file or archive, if its checksum is right."""
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
