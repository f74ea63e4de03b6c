"""A file to columns: CSV by Python's own reader, Parquet by pyarrow.

A column is numbers where every value is one, and texts otherwise. What it means for a model is the business of
:mod:`suffice.data.table`.
"""

import csv
import gzip
import io
import math
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from itertools import islice
from pathlib import Path
from threading import RLock
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from suffice.errors import InvalidValueError, MissingExtraError
from suffice.special import Floats

#: What stands for a value that is not there, spaces around it aside.
MISSING: Final = frozenset({"", "NA", "N/A", "#N/A", "NaN", "nan", "null", "NULL", "None", "?"})
_DELIMITERS: Final = ",;\t|"
_LINES_TO_LOOK_AT: Final = 50
# A cell beyond this is either a whole document or what follows a quote that never closes.
_LONG: Final = 131_072
_LIMIT: Final = RLock()


@dataclass(frozen=True, eq=False)
class Texts:
    """A column of which some value is not a number: distinct values, and which each row holds (-1: it is missing)."""

    levels: tuple[str, ...]
    codes: NDArray[np.intp]

    @property
    def counts(self) -> NDArray[np.intp]:
        """How many rows hold each level."""
        return np.bincount(self.codes[self.codes >= 0], minlength=len(self.levels)).astype(np.intp)

    def numbers(self, *, decimal: str = ".") -> Floats | None:
        """Return the column as numbers, NaN where missing; or None where some value is not a number."""
        numbers = [as_number(level.replace(decimal, ".")) for level in self.levels]
        return None if None in numbers else np.array([*numbers, math.nan], dtype=np.float64)[self.codes]

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, rows: NDArray[np.intp]) -> "Column":
        kept, codes = np.unique(self.codes[rows], return_inverse=True)
        gone = int(np.sum(kept < 0))
        texts = Texts(tuple(self.levels[k] for k in kept[gone:]), codes.astype(np.intp) - gone)
        # What was no number may be gone with the other rows.
        numbers = texts.numbers()
        return texts if numbers is None else numbers


Column = Floats | Texts


@dataclass(frozen=True, eq=False)
class Columns:
    """What a file holds, before anything is said about its use.

    Attributes:
        names: Of the columns, distinct.
        columns: Numbers (NaN where missing), or texts; all of one length.
        notes: What a person should know about the reading, in sentences.
        place: Where in the file a data row (from 0) is: "line 7".
        cells: Reads the file's content once more: the cells of each data row as the file has them, empty where there
            is none. A table of numbers is spared their texts, which take several times the memory.
    """

    names: tuple[str, ...]
    columns: tuple[Column, ...]
    notes: tuple[str, ...]
    place: Callable[[int], str]
    cells: Callable[[], list[Sequence[str]]]


def as_number(text: str) -> float | None:
    """Return the number that a text is, or None; ``1_000`` is a number to Python, but a name in a table.

    Examples:
        >>> as_number(" 1e3 "), as_number("1_000"), as_number("a")
        (1000.0, None, None)
    """
    try:
        return None if "_" in text else float(text)
    except ValueError:
        return None


def column(values: Sequence[str]) -> Column:
    """Return values as numbers if every one that is there is a number, else as texts.

    Examples:
        >>> column(["1", " 2.5", "?"])
        array([1. , 2.5, nan])
        >>> column(["b", "NA", "a", "b "]).levels
        ('b', 'a')
    """
    try:
        numbers = np.fromiter(map(float, values), np.float64, len(values))
        if "_" not in "".join(values):
            return numbers
    except ValueError:
        pass
    levels: dict[str, int] = {}
    code: dict[str, int] = {}
    # By distinct values, because a table holds the same few words again and again.
    for value in dict.fromkeys(values):
        text = value.strip()
        code[value] = -1 if text in MISSING else levels.setdefault(text, len(levels))
    texts = Texts(tuple(levels), np.fromiter(map(code.__getitem__, values), np.intp, len(values)))
    found = texts.numbers()
    return texts if found is None else found


def read_columns(path: Path) -> Columns:
    """Read a table: Parquet where the name ends in .parquet or .pq, CSV (also gzipped) otherwise.

    Raises:
        InvalidValueError: There is no such file, it cannot be read, or it is not a table.
        MissingExtraError: It is Parquet, and pyarrow is not installed.
    """
    read = _read_parquet if path.suffix.lower() in {".parquet", ".pq"} else _read_csv
    return read(_content(path), path)


def _content(path: Path) -> bytes:
    try:
        data = path.read_bytes()
        # By its first bytes, because a gzip file does not always say so in its name.
        data = gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data
    except FileNotFoundError:
        raise InvalidValueError(f"there is no file {path}; check the name and the folder") from None
    except IsADirectoryError:
        raise InvalidValueError(f"{path} is a folder; name the CSV or Parquet file in it") from None
    except PermissionError:
        raise InvalidValueError(f"{path} may not be read: permission denied; make it readable first") from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InvalidValueError(f"{path} cannot be unpacked: {error}; copy or download it again") from None
    except (OSError, ValueError) as error:
        raise InvalidValueError(f"{path} cannot be read: {error}") from None
    return data


def _read_csv(data: bytes, path: Path) -> Columns:
    text, notes = _decoded(data, path)
    with _long_cells(text):
        delimiter = "\t" if re.search(r"\.tsv(\.gz)?$", path.name.lower()) else _delimiter(text)
        rows, quoting = _rows(text, delimiter, path)
    if len(rows) < 2:
        came = "holds one line only" if rows else "is empty"
        raise InvalidValueError(f"{path} {came}; a line of column names and lines of data are required")
    names = _names(rows[0], path)

    def line(row: int) -> str:
        with _long_cells(text):
            return _line(_reader(text, delimiter, quoting=quoting), row)

    def cells() -> list[Sequence[str]]:
        with _long_cells(text):
            return [*_parsed(_reader(text, delimiter, quoting=quoting))[0][1:]]

    if set(map(len, rows)) != {len(names)}:
        row = next(i for i, cells in enumerate(rows) if len(cells) != len(names))
        raise InvalidValueError(
            f"{path}, {line(row)}: the number of cells is {len(rows[row])}, and of column names {len(names)}. "
            f"They must be the same; a cell that holds the separator {delimiter!r} must stand in double quotes"
        )
    columns = [column(values) for values in zip(*rows[1:], strict=True)]
    if quoting == csv.QUOTE_NONE:
        notes.append("double quotes are taken as they stand, because they do not enclose cells")
    if delimiter == ";":
        _take_decimal_commas(names, columns, notes)
    return Columns(names, tuple(columns), tuple(notes), lambda row: line(row + 1), cells)


def _decoded(data: bytes, path: Path) -> tuple[str, list[str]]:
    if b"\0" in data:
        raise InvalidValueError(
            f"{path} is not text: it holds NUL bytes. Required is CSV in UTF-8 (a spreadsheet can save as that), "
            "or Parquet under a name that ends in .parquet"
        )
    try:
        return data.decode("utf-8-sig"), []
    except UnicodeDecodeError:
        return data.decode("latin-1"), ["the file is not in UTF-8; it was read as Latin-1"]


@contextmanager
def _long_cells(text: str) -> Iterator[None]:
    """Let a cell be as long as the text; Python has one limit for the whole process, so it is put back."""
    with _LIMIT:
        before = csv.field_size_limit()
        csv.field_size_limit(max(before, len(text)))
        try:
            yield
        finally:
            csv.field_size_limit(before)


def _reader(text: str, delimiter: str, **options: Any) -> Any:
    # newline="" leaves every kind of line end (CR, LF, CRLF) to the csv module, inside quotes too.
    return csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=True, **options)


def _delimiter(text: str) -> str:
    """Return the separator by which most of the first lines have as many cells as the very first."""

    def score(delimiter: str) -> tuple[float, int]:
        try:
            lengths = [len(cells) for cells in islice(_reader(text, delimiter), _LINES_TO_LOOK_AT) if _filled(cells)]
        except csv.Error:
            return 0.0, 0
        width = lengths[0] if lengths else 0
        return (lengths.count(width) / len(lengths), width) if width > 1 else (0.0, 0)

    return max(_DELIMITERS, key=score)


def _filled(cells: Sequence[str]) -> bool:
    return len(cells) > 1 or any(cell.strip() for cell in cells)


def _line(reader: Any, row: int) -> str:
    """Return the line (from 1) on which a row (from 0, blank lines aside) starts."""
    start = 1
    for cells in reader:
        row -= _filled(cells)
        if row < 0:
            break
        start = reader.line_num + 1
    return f"line {start}"


def _rows(text: str, delimiter: str, path: Path) -> tuple[list[list[str]], int]:
    """Return the rows that are not blank, and whether double quotes enclose cells.

    In a text such as an SMS a quote may open and never close, which would swallow the lines that follow. Quotes are
    therefore plain characters where every line has the cells of a whole row, and yet with quotes some row goes over
    several lines; if besides they break the rules of quoting, or tabs separate, which are rare inside a cell.
    """
    rows, spread, problem = _parsed(_reader(text, delimiter))
    broken = _parsed(_reader(text, delimiter, strict=True))[2] if spread else ""
    long = next((k for k, cells in enumerate(rows) if max(map(len, cells)) > _LONG), None) if broken else None
    if long is not None:
        problem = f"{_line(_reader(text, delimiter), long)}: a field larger than {_LONG} characters ({broken})"
    if problem or (spread and (delimiter == "\t" or broken)):
        lines, _, trouble = _parsed(_reader(text, delimiter, quoting=csv.QUOTE_NONE))
        if not trouble and len(set(map(len, lines))) == 1 < len(lines[0]):
            return lines, csv.QUOTE_NONE
    if problem:
        raise InvalidValueError(f"{path}, {problem}; is a double quote opened and never closed?")
    return rows, csv.QUOTE_MINIMAL


def _parsed(reader: Any) -> tuple[list[list[str]], bool, str]:
    """Return the rows that are not blank, whether one goes over several lines, and what went wrong."""
    rows: list[list[str]] = []
    problem = ""
    try:
        rows.extend(reader)
    except csv.Error as error:
        problem = f"line {reader.line_num}: {error}"
    return [cells for cells in rows if _filled(cells)], reader.line_num > len(rows), problem


def _names(cells: Sequence[str], path: Path) -> tuple[str, ...]:
    """Return the column names; one that is empty, as pandas writes its index, gets its position."""
    if all(as_number(cell) is not None for cell in cells):
        missing = "the first line holds numbers only, so there are no column names"
        raise InvalidValueError(f"{path}: {missing}. Add a first line that names the columns")
    return _distinct([cell.strip() or f"column {k}" for k, cell in enumerate(cells, start=1)], path)


def _distinct(names: Sequence[str], path: Path) -> tuple[str, ...]:
    name, times = Counter(names).most_common(1)[0] if names else ("", 0)
    if times > 1:
        remedy = "rename them, or add a first line of names if there is none"
        raise InvalidValueError(f"{path}: {times} columns are named {name!r}, and names must be distinct; {remedy}")
    return tuple(names)


def _take_decimal_commas(names: Sequence[str], columns: list[Column], notes: list[str]) -> None:
    """Read 3,14 as a number; only where semicolons separate, for elsewhere 3,140 may be three thousand."""
    for k, texts in enumerate(columns):
        numbers = texts.numbers(decimal=",") if isinstance(texts, Texts) else None
        if numbers is not None:
            columns[k] = numbers
            notes.append(f"column {names[k]!r}: commas read as decimal points")


def _read_parquet(data: bytes, path: Path) -> Columns:
    try:
        arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError:
        raise MissingExtraError("pyarrow", "parquet", "Reading Parquet") from None

    def read() -> Any:
        return parquet.ParquetFile(arrow.BufferReader(data)).read()

    try:
        table = read()
    except (OSError, ValueError) as error:
        raise InvalidValueError(f"{path} is not a Parquet file that can be read: {error}") from None
    if table.num_rows == 0:
        raise InvalidValueError(f"{path} holds no rows; column names and rows of data are required")
    columns, notes = {}, []
    for name, values in zip(_distinct(table.column_names, path), table.columns, strict=True):
        try:
            columns[name] = _from_arrow(arrow, values)
        except arrow.ArrowException:
            notes.append(f"column {name!r} left out: {values.type} is neither numbers nor text")

    def cells() -> list[Sequence[str]]:
        again = read()
        return [*zip(*(_arrow_texts(arrow, again.column(name)) for name in columns), strict=True)]

    return Columns(tuple(columns), tuple(columns.values()), tuple(notes), lambda row: f"row {row + 1}", cells)


def _from_arrow(arrow: Any, values: Any) -> Column:
    kind = _kind(arrow, values)
    if any(getattr(arrow.types, f"is_{name}")(kind) for name in ("integer", "floating", "decimal")):
        return np.array(values.cast(kind).cast(arrow.float64(), safe=False).to_numpy(), dtype=np.float64)
    return column(_arrow_texts(arrow, values))


def _kind(arrow: Any, values: Any) -> Any:
    return values.type.value_type if arrow.types.is_dictionary(values.type) else values.type


def _arrow_texts(arrow: Any, values: Any) -> list[str]:
    # Dates become ISO dates, booleans true and false; from there on all is as in a CSV file.
    texts = values.cast(_kind(arrow, values)).cast(arrow.string())
    try:
        return [text or "" for text in texts.to_pylist()]
    except UnicodeDecodeError:
        # Parquet does not check what is written as text.
        return [(text or b"").decode("utf-8", "replace") for text in texts.cast(arrow.binary()).to_pylist()]
