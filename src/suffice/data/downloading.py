"""Downloads with pooch that continue where they were interrupted."""

import hashlib
import re
import shutil
import socket
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from suffice.errors import MissingExtraError, SufficeError

if TYPE_CHECKING:
    import requests

#: Called with an address, the number of bytes received, and the total number, or None where that is not known.
DownloadProgress = Callable[[str, int, int | None], None]

_TIMEOUT: Final = 30.0
#: Fewer bytes than this are lost where a connection breaks off.
_CHUNK: Final = 1 << 13
#: Status codes that may be different a moment later.
_BUSY: Final = {408, 429, 500, 502, 503, 504}


class DownloadError(SufficeError):
    """An address does not provide the file; another one may."""


class Downloads:
    """Complete downloads in one folder, parts of interrupted ones in another.

    pooch stores complete files and tries again after a bad connection, but begins each attempt at the first byte. So
    our own downloader keeps what it received in a ``.part`` file and requests only the rest, even in a later process.

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
            MissingExtraError: pooch is not installed.
            SufficeError: The file cannot be written.
        """
        try:
            import pooch
            import requests
        except ImportError:
            raise MissingExtraError("pooch", "research", "Downloading data sets") from None
        if (host := urlsplit(address).netloc) in self._unreachable:
            raise DownloadError(self._unreachable[host])
        pooch.get_logger().setLevel("WARNING")
        # Several addresses end in the same name.
        name = re.sub(r"[^\w.+-]", "_", urlsplit(address).path.rpartition("/")[2])
        name = f"{name}.{hashlib.sha256(address.encode()).hexdigest()[:8]}"
        part = self._parts / f"{name}.part"
        # No checksum: the recorded one is that of the file made from the download.
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
        # Without a version, it would go unnoticed that the file has changed in between.
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
            # An unknown host stays unknown: most likely there is no network at all. A wrong address stays wrong.
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
                what = f"{what}; what has come is kept, and the same command goes on from there"
            else:
                _forget(part)
            raise requests.ConnectionError(what)


def _version_file(part: Path) -> Path:
    """Return the path of the note that says which version of a file a part belongs to."""
    return part.with_suffix(".version")


def _version(response: "requests.Response") -> str:
    """Return what the server calls this version of a file: its strong tag, else its date, else nothing."""
    tag = response.headers.get("ETag", "")
    return tag if tag.startswith('"') else response.headers.get("Last-Modified", "")


def _forget(part: Path) -> None:
    part.unlink(missing_ok=True)
    _version_file(part).unlink(missing_ok=True)
    with suppress(OSError):
        part.parent.rmdir()  # fails where there are other parts
