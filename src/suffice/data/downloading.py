"""Downloads that go on where they were interrupted."""

import hashlib
import http.client
import re
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Final, NamedTuple, Self
from urllib.parse import urlsplit

from suffice.errors import SufficeError

#: Called with an address, the bytes of it that have come, and how many there are, or None where that is not known.
Progress = Callable[[str, int, int | None], None]

_TIMEOUT: Final = 30.0
_CHUNK: Final = 1 << 16
#: Answers that may be another one in a moment.
_BUSY: Final = {408, 429, 500, 502, 503, 504}


class DownloadError(SufficeError):
    """An address does not give what it should; another one may."""


class _BrokenError(Exception):
    """A connection failed; with ``again`` it may help to try once more, without ``reached`` it never was one."""

    def __init__(self, reason: str, *, again: bool = True, reached: bool = True) -> None:
        super().__init__(reason)
        self.again = again
        self.reached = reached


class Download(NamedTuple):
    """A whole download: where it lies, and whether it was put together from several answers."""

    path: Path
    resumed: bool


class Downloads:
    """Downloads into a folder; what has come of one is kept in a ``.part`` file until it was made use of.

    As a context, those that are whole are removed at its end, unless it ends with an error.

    Args:
        folder: Where to keep them; it is made when first needed.
        progress: Told of each piece that comes, or None.
        pauses: Seconds to wait before the second, the third, ... attempt.
    """

    def __init__(
        self, folder: Path, *, progress: Progress | None = None, pauses: tuple[float, ...] = (1.0, 3.0)
    ) -> None:
        self._folder = folder
        self._progress = progress
        self._pauses = pauses
        self._whole: dict[str, Download] = {}
        self._out_of_reach: dict[str, str] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if kind is None:
            for address in list(self._whole):
                self.discard(address)

    def get(self, address: str, most: int) -> Download:
        """Download an address, or the rest of it, or nothing where it is whole already.

        Args:
            address: Of the file, ``http`` or ``https``.
            most: Bytes that it may have at most.

        Raises:
            DownloadError: It cannot be had from there.
            SufficeError: It cannot be written.
        """
        if address not in self._whole:
            part = self._part(address)
            try:
                self._whole[address] = self._persist(address, part, most)
            except OSError as error:
                raise SufficeError(f"{part} cannot be written: {error.strerror or error}") from None
        return self._whole[address]

    def discard(self, address: str) -> None:
        """Forget a download, whole or not, so that it begins anew if it is needed again."""
        self._whole.pop(address, None)
        part = self._part(address)
        with suppress(OSError):
            _forget(part)
            part.parent.rmdir()  # fails, as it should, where there are others

    def _part(self, address: str) -> Path:
        name = re.sub(r"[^\w.+-]", "_", urlsplit(address).path.rpartition("/")[2])
        # Several addresses end in the same name.
        return self._folder / f"{name}.{hashlib.sha256(address.encode()).hexdigest()[:8]}.part"

    def _persist(self, address: str, part: Path, most: int) -> Download:
        """Try several times, each time for the rest."""
        host = urlsplit(address).netloc
        if host in self._out_of_reach:
            raise DownloadError(self._out_of_reach[host])
        for pause in (*self._pauses, None):
            try:
                return self._attempt(address, part, most)
            except _BrokenError as error:
                if pause is None or not error.again:
                    if not error.reached:
                        self._out_of_reach[host] = str(error)
                    kept = part.exists() and part.stat().st_size > 0
                    more = "; what has come is kept, and the same command goes on from there" if kept else ""
                    raise DownloadError(f"{error}{more}") from None
                time.sleep(pause)
        raise AssertionError("the last attempt returns or raises")  # pragma: no cover

    def _attempt(self, address: str, part: Path, most: int) -> Download:
        response, start = _answer(address, part)
        if response is None:
            return Download(part, resumed=True)
        with response:
            part.parent.mkdir(parents=True, exist_ok=True)
            length = response.headers.get("Content-Length", "")
            total = start + int(length) if length.isascii() and length.isdecimal() else None
            if not start:
                _note(part).write_text(_version(response), encoding="utf-8")
            done = start
            with part.open("ab" if start else "wb") as stream:
                for piece in _pieces(response, address) if (total or 0) <= most else ():
                    done += stream.write(piece)
                    if self._progress:
                        self._progress(address, done, total)
                    if done > most:
                        break
        if max(done, total or 0) > most:
            self.discard(address)
            raise DownloadError(f"{address} gives more than {most} bytes, which cannot be the file that is meant")
        if done < (total or 0):
            raise _BrokenError(f"the connection to {urlsplit(address).netloc} broke off after {done} of {total} bytes")
        return Download(part, resumed=start > 0)


def _note(part: Path) -> Path:
    """Where it is written which version of a file a part belongs to."""
    return part.with_suffix(".version")


def _forget(part: Path) -> None:
    part.unlink(missing_ok=True)
    _note(part).unlink(missing_ok=True)


def _version(response: Any) -> str:
    """Return what a server calls this version of a file: its strong tag, else when it last changed, else nothing."""
    tag: str = response.headers.get("ETag", "")
    return tag if tag.startswith('"') else response.headers.get("Last-Modified", "")


def _answer(address: str, part: Path) -> tuple[Any, int]:
    """Ask for the rest of a file; return the answer and where it starts, or no answer where there is no rest."""
    have = part.stat().st_size if part.exists() else 0
    version = _note(part).read_text(encoding="utf-8") if have and _note(part).exists() else ""
    asked = {"Range": f"bytes={have}-"} if have else {}
    # Where the file is another one by now, the server is to send all of it.
    asked |= {"If-Range": version} if version else {}
    try:
        response = _opened(address, asked)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == 416 and have:
            if error.headers.get("Content-Range") == f"bytes */{have}":
                return None, have
            _forget(part)
            return _answer(address, part)
        if error.code in _BUSY:
            raise _BrokenError(f"{address} answers {error.code} ({error.reason})") from None
        raise DownloadError(f"{address} answers {error.code} ({error.reason})") from None
    if response.status == 200:
        return response, 0
    goes_on = re.match(rf"bytes {have}-", response.headers.get("Content-Range", ""))
    if response.status == 206 and have and goes_on and _version(response) in ("", version):
        return response, have
    response.close()
    if not have:
        raise DownloadError(f"{address} answers {response.status}, where 200 is required")
    _forget(part)
    return _answer(address, part)


def _opened(address: str, headers: dict[str, str]) -> Any:
    from suffice import __version__

    headers = {"User-Agent": f"suffice/{__version__}", "Accept-Encoding": "identity", **headers}
    try:
        return urllib.request.urlopen(urllib.request.Request(address, headers=headers), timeout=_TIMEOUT)
    except urllib.error.HTTPError:
        raise
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        why = f"{urlsplit(address).netloc} cannot be reached: {getattr(reason, 'strerror', None) or reason}"
        # A name that is not known will not be known in a second: most likely there is no network at all.
        raise _BrokenError(why, again=not isinstance(reason, socket.gaierror), reached=False) from None


def _pieces(response: Any, address: str) -> Iterator[bytes]:
    # Errors of reading alone are caught here: those of writing to the disk are of the same kind.
    while True:
        try:
            piece = response.read(_CHUNK)
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "strerror", None) or error
            raise _BrokenError(f"the connection to {urlsplit(address).netloc} broke off: {reason}") from None
        if not piece:
            return
        yield piece
