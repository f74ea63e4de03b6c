"""The content of files: bytes, lines of text, and cells of columns, for the readers of all formats."""

import codecs
import gzip
import io
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from suffice.errors import InvalidValueError
from suffice.tables.table_cells import CellColumns
from suffice.tables.table_columns import Column, TableColumns, as_number, column, distinct_names

#: The formats of tables, for messages.
FORMATS: Final = "CSV, Excel, JSON lines or Parquet"
#: Rows that are converted to columns at a time: so few that they stay in the cache of the processor.
BLOCK: Final = 500
#: Most cells of a table whose rows need not have all columns: a few bytes for each row could otherwise fill the memory.
MOST_CELLS: Final = 250_000_000
# Files up to this size are read at once, even if they could be read some rows at a time.
_WHOLE_FILE: Final = 2**25
# Bytes that are examined at a time.
_PART: Final = 2**20
# Encodings other than UTF-8, and how messages name them.
_OTHER_ENCODINGS: Final = {"cp1252": "Windows-1252", "latin-1": "Latin-1"}
# Windows-1252 has characters, such as the euro sign, for these bytes, which are control characters in Latin-1; and it
# has none for the second ones.
_ONLY_CP1252: Final = re.compile(rb"[\x80-\x9f]")
_NOT_CP1252: Final = re.compile(rb"[\x81\x8d\x8f\x90\x9d]")
# A column with more distinct texts than this keeps each of its texts.
_MOST_SHARED: Final = 2**16


def content_of(path: Path) -> bytes:
    """Return the content of a file, unpacked if it is gzipped.

    Raises:
        InvalidValueError: It cannot be read.
    """
    try:
        data = path.read_bytes()
        # Detect gzip by the first bytes: the file name does not always end in .gz.
        data = gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data
    except FileNotFoundError:
        raise InvalidValueError(f"there is no file {path}; check the name and the folder") from None
    except IsADirectoryError:
        raise InvalidValueError(f"{path} is a folder; name the table in it: a {FORMATS} file") from None
    except PermissionError:
        raise InvalidValueError(f"{path} may not be read: permission denied; make it readable first") from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InvalidValueError(f"{path} cannot be unpacked: {error}; copy or download it again") from None
    except (OSError, ValueError) as error:
        raise InvalidValueError(f"{path} cannot be read: {error}") from None
    return data


class TextContent(NamedTuple):
    """A text as bytes, which take less memory than a str.

    Attributes:
        data: The bytes.
        encoding: UTF-8; if the bytes are not UTF-8, Windows-1252 if they have characters of it, else Latin-1.
    """

    data: bytes
    encoding: str

    @property
    def notes(self) -> list[str]:
        """A sentence about the encoding, if it is not UTF-8."""
        name = _OTHER_ENCODINGS.get(self.encoding)
        return [] if name is None else [f"the file is not in UTF-8; it was read as {name}"]

    def lines(self) -> io.TextIOWrapper:
        """Return the lines with their ends (CR, LF or CRLF)."""
        return io.TextIOWrapper(io.BytesIO(self.data), encoding=self.encoding, newline="")


def text_content(data: bytes, path: Path, kind: str) -> TextContent:
    """Return the text of a file, which is of this kind.

    Raises:
        InvalidValueError: It is not text.
    """
    if b"\0" in data:
        raise InvalidValueError(
            f"{path} is not text: it contains NUL bytes. Save it as {kind} in UTF-8, as Parquet with a name that ends "
            "in .parquet, or as an Excel workbook with a name that ends in .xlsx"
        )
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        if not data.isascii():
            for start in range(0, len(data), _PART):
                decoder.decode(data[start : start + _PART], final=start + _PART >= len(data))
    except UnicodeDecodeError:
        return TextContent(data, "cp1252" if _ONLY_CP1252.search(data) and not _NOT_CP1252.search(data) else "latin-1")
    return TextContent(data, "utf-8-sig")


def is_small(path: Path) -> bool:
    """Whether a file is read at once, even if it could be read some rows at a time."""
    return path.is_file() and path.stat().st_size <= _WHOLE_FILE


def text_stream(path: Path, kind: str) -> Callable[[], Any]:
    """Return a function that opens a text in UTF-8, also a gzipped one, whose lines are read one by one.

    Raises:
        InvalidValueError: It cannot be read.
    """
    try:
        with path.open("rb") as file:
            packed = file.read(2) == b"\x1f\x8b"
    except FileNotFoundError:
        raise InvalidValueError(f"there is no file {path}; check the name and the folder") from None
    except IsADirectoryError:
        raise InvalidValueError(f"{path} is a folder; name the table in it: a {FORMATS} file") from None
    except OSError as error:
        raise unreadable(path, error, kind) from None
    opened: Any = gzip.open if packed else Path.open
    return lambda: opened(path, "rt", encoding="utf-8-sig", newline="")


#: Errors that occur while the lines of a :func:`text_stream` are read.
STREAM_ERRORS: Final = (OSError, EOFError, zlib.error, UnicodeDecodeError)


def unreadable(path: Path, error: Exception, kind: str) -> InvalidValueError:
    """Return the error for a text of this kind that cannot be read."""
    return InvalidValueError(f"{path} cannot be read: {error}; save it as {kind} in UTF-8")


class CellColumn:
    """The cells of a column, added some at a time. While few texts are distinct, equal ones are the same object.

    Examples:
        >>> column = CellColumn(1)
        >>> column.add(["a", "b"])
        >>> column.cells
        ['', 'a', 'b']
    """

    __slots__ = ("_known", "cells")

    def __init__(self, empty: int = 0) -> None:
        self.cells = [""] * empty
        self._known: dict[str, str] | None = {}

    def add(self, part: Sequence[str]) -> None:
        """Add cells at the end."""
        if self._known is None:
            self.cells.extend(part)
            return
        self.cells.extend(map(self._known.setdefault, part, part))
        if len(self._known) > _MOST_SHARED:
            self._known = None


def whole_text(text: str) -> str:
    r"""Return a text with surrogates joined to characters; a surrogate without its other half cannot be written.

    Examples:
        >>> whole_text("\ud83d\ude00") == "\U0001f600", whole_text("a\ud83d") == "a\ufffd"
        (True, True)
    """
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def require_few_cells(rows: int, columns: int, path: Path) -> None:
    """Raise an error if a table has more cells than can be read."""
    if rows * columns > MOST_CELLS:
        raise InvalidValueError(
            f"{path} has {columns:,} different columns in {rows:,} rows or more, and at most {MOST_CELLS:,} cells are "
            "read; leave columns out, or save it as CSV or Parquet"
        )


def converted_columns(
    cells: list[list[str]], *, keep_cells: bool
) -> tuple[tuple[Column, ...], Callable[[], CellColumns] | None]:
    """Convert cells to numbers or texts.

    Args:
        cells: The cells of each column. The list is emptied.
        keep_cells: Whether to keep the cells. Otherwise those of a column are released when it has been converted.

    Returns:
        The columns, and a function that returns the cells if they are kept.
    """
    kept = CellColumns(cells) if keep_cells else None
    cells.reverse()
    columns = []
    while cells:
        columns.append(column(cells.pop()))
    return tuple(columns), None if kept is None else lambda: kept


def header_names(cells: Sequence[str], path: Path, header: str) -> tuple[str, ...]:
    """Return the names in the first row; an empty one, as pandas writes for its index, becomes "column" and its number.

    Args:
        cells: The cells of the row.
        path: The file.
        header: What the row is called, such as "first line".

    Raises:
        InvalidValueError: They are numbers, or two are the same.
    """
    if all(as_number(cell) is not None for cell in cells):
        missing = f"the {header} holds numbers only, so there are no column names"
        raise InvalidValueError(f"{path}: {missing}. Add a {header} that names the columns")
    return distinct_names([cell.strip() or f"column {k}" for k, cell in enumerate(cells, start=1)], path)


def row_after(first: int) -> Callable[[int], str]:
    """Return the function that names the position of a row after ``first`` others."""
    return lambda row: f"row {first + row + 1}"


def chunks_of(table: TableColumns, columns: Sequence[list[str]], size: int) -> Iterator[TableColumns]:
    """Yield ``size`` rows at a time of a table with these columns of cells."""

    def some(first: int) -> TableColumns:
        parts = [cells[first : first + size] for cells in columns]
        found = tuple(map(column, parts))
        return TableColumns(
            table.names,
            found,
            () if first else table.notes,
            lambda row: table.place(first + row),
            lambda: CellColumns(parts),
            table.header,
        )

    return map(some, range(0, len(table), size))
