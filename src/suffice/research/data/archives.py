"""Extraction of files from archives, and conversion of each source to the text that we use."""

import io
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product
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


Recipe = Callable[[bytes], Iterator[bytes]]

_ENDINGS = (b"\n", b"\r\n", b"\r")
_NAMESPACE = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"


def as_it_is(content: bytes) -> Iterator[bytes]:
    """Yield the bytes themselves."""
    yield content


def blanks_for_commas(content: bytes) -> Iterator[bytes]:
    """Yield a table without its first line, with a blank instead of each comma."""
    yield b"\n".join(content.splitlines()[1:]).replace(b",", b" ")


def classes_as_numbers(content: bytes) -> Iterator[bytes]:
    """Yield a table with 0 for ``unstable`` and 1 for ``stable``, which may stand in quotes."""
    yield re.sub(rb'"?\b(un)?stable\b"?', lambda found: b"0" if found[1] else b"1", content)


def with_names(*names: str) -> Recipe:
    r"""Return the recipe for a table with a first line of names, all words in quotes, and ``NA`` for ``?``.

    Args:
        *names: Of the columns.

    Examples:
        >>> recipe = with_names("age", "work")
        >>> list(recipe(b"39, Private\n54, ?\n\n"))
        [b'"age","work"\n39,"Private"\n54,NA']
    """
    header = ",".join(f'"{name}"' for name in names).encode()

    def cell(text: bytes) -> bytes:
        value = text.strip()
        return b"NA" if value == b"?" else value if re.fullmatch(rb"-?\d+", value) else b'"%s"' % value

    def recipe(content: bytes) -> Iterator[bytes]:
        lines = (b",".join(map(cell, line.split(b","))) for line in content.splitlines() if line.strip())
        yield b"\n".join([header, *lines])

    return recipe


def sheets(content: bytes) -> Iterator[bytes]:
    """Yield each sheet of a workbook (.xlsx) as tab-separated text, without its first line.

    Raises:
        CorruptDataError: It is no such workbook.
    """
    with zipfile.ZipFile(io.BytesIO(content)) as book:
        for entry in sorted(book.infolist(), key=lambda entry: entry.filename):
            if re.fullmatch(r"xl/worksheets/[^/]+\.xml", entry.filename):
                yield _tab_separated(unpacked(book, entry))


def _tab_separated(sheet: bytes) -> bytes:
    rows = list(ElementTree.fromstring(sheet).iter(f"{_NAMESPACE}row"))[1:]
    # A workbook holds 40.770000000000003 and shows 40.77: 15 digits are what it shows.
    lines = ("\t".join(f"{float(cell.text or ''):.15g}" for cell in row.iter(f"{_NAMESPACE}v")) for row in rows)
    return "\n".join(filter(None, lines)).encode()


def with_line_endings(content: bytes) -> Iterator[bytes]:
    """Yield a text as it is, then with each kind of line ending, with and without a final one."""
    yield content
    lines = content.splitlines()
    for ending, final in product(_ENDINGS, (True, False)):
        yield ending.join(lines) + (ending if final else b"")
