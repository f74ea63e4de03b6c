"""How the text of a data set comes from what its public home hands out.

A recipe yields candidates and the recorded checksum decides, for which sheet or which line endings is not certain.
"""

import io
import re
import zipfile
from collections.abc import Callable, Iterator
from itertools import product
from xml.etree import ElementTree

from suffice.data.archives import unpacked

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
