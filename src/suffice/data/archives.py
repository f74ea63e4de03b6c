"""Reads a file from a zip archive, or from an archive within it, up to a size limit.

``pooch.Unzip`` does neither: it does not open archives within archives, and it has no size limit.
"""

import io
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Final
from xml.etree import ElementTree

from suffice.errors import CorruptDataError

#: Several times what the largest file of a data set has; an archive that unpacks to more is not the one that is meant.
MOST_BYTES: Final = 64 * 2**20


@contextmanager
def understood(what: str) -> Iterator[None]:
    """Say in a sentence, instead of a traceback, what is wrong with an archive or a workbook.

    Args:
        what: The archive, as the subject of the sentence.

    Raises:
        CorruptDataError: It cannot be read as what it should be.
    """
    try:
        yield
    except (zipfile.BadZipFile, zlib.error, EOFError, ElementTree.ParseError, ValueError, KeyError) as error:
        raise CorruptDataError(f"{what} cannot be read: it is damaged or cut short ({error})") from None
    except (RuntimeError, NotImplementedError) as error:
        # An encrypted one, or packed in a way that is not known here.
        raise CorruptDataError(f"{what} cannot be unpacked: {error}") from None


def require_no_page(path: Path) -> None:
    """Say so where a web page came instead of a file, as it does from a network that wants a login first.

    Args:
        path: What came.

    Raises:
        CorruptDataError: It is a web page.
    """
    with path.open("rb") as stream:
        start = stream.read(1024).lstrip().lower()
    if start.startswith((b"<!doctype html", b"<html")):
        raise CorruptDataError("what came is a web page, not the file; see what a browser shows there")


def member(archive: Path, name: str) -> bytes:
    """Return a file in a zip archive, whichever folder of it or archive in it holds the file.

    Args:
        archive: The zip archive.
        name: The file's name, without folders.

    Raises:
        CorruptDataError: It is no zip archive, or has no such file, or one that is far too long.
    """
    with understood("the zip archive that came"), zipfile.ZipFile(archive) as book:
        found = _found(book, name, deeper=True)
    if found is None:
        raise CorruptDataError(f"the zip archive that came has no file {name}")
    return found


def _found(book: zipfile.ZipFile, name: str, *, deeper: bool) -> bytes | None:
    entries = [entry for entry in book.infolist() if not entry.is_dir()]
    for entry in entries:
        if PurePosixPath(entry.filename).name == name:
            return unpacked(book, entry)
    for entry in entries if deeper else ():
        if entry.filename.lower().endswith(".zip"):
            with zipfile.ZipFile(io.BytesIO(unpacked(book, entry))) as inner:
                if (found := _found(inner, name, deeper=False)) is not None:
                    return found
    return None


def unpacked(book: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    """Return the bytes of a file in an archive.

    Args:
        book: The archive.
        entry: Which of its files.

    Raises:
        CorruptDataError: It is far longer than any file of a data set.
    """
    # What the archive says of the length may be a lie, so no more is read than that.
    with book.open(entry) as stream:
        content = stream.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        most = f"more than {MOST_BYTES // 2**20} MiB, far more than any of these data sets"
        raise CorruptDataError(f"{entry.filename} in the zip archive that came unpacks to {most}")
    return content
