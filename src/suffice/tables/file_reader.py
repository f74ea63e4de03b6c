"""Files to columns: CSV with Python's reader, Parquet with pyarrow."""

# Why not a CSV reader of a library: none of the dependencies has a suitable one. numpy.genfromtxt and loadtxt do not
# read quoted cells that span lines; pyarrow is an extra, and its CSV reader does not detect the separator, stray quotes
# or decimal commas. Python's csv module does the parsing. The code here adds what it does not do: separator, encoding,
# quotes that never close, cells over its length limit, and errors with line numbers.

import csv
import gzip
import io
import json
import math
import os
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from importlib import import_module
from itertools import islice
from pathlib import Path
from threading import RLock
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from suffice.errors import InvalidTypeError, InvalidValueError, MissingExtraError
from suffice.numerics import Floats

#: Cells that mean "missing", after spaces around them are removed.
MISSING: Final = frozenset({"", "NA", "N/A", "#N/A", "NaN", "nan", "null", "NULL", "None", "?"})
_DELIMITERS: Final = ",;\t|"
_LINES_TO_SNIFF: Final = 50
# A longer cell is either a whole document or the text after a quote that never closes.
_LONG_CELL: Final = 131_072
_FIELD_SIZE_LOCK: Final = RLock()


@dataclass(frozen=True, eq=False)
class Texts:
    """A column in which some value is not a number: the distinct values, and the index of each row's (-1: missing)."""

    levels: tuple[str, ...]
    codes: NDArray[np.intp]

    @property
    def counts(self) -> NDArray[np.intp]:
        """Return the number of rows with each level."""
        return np.bincount(self.codes[self.codes >= 0], minlength=len(self.levels)).astype(np.intp)

    def numbers(self, *, decimal: str = ".") -> Floats | None:
        """Return the column as numbers, NaN where missing; or None if some value is not a number."""
        numbers = [as_number(level.replace(decimal, ".")) for level in self.levels]
        return None if None in numbers else np.array([*numbers, math.nan], dtype=np.float64)[self.codes]

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, rows: NDArray[np.intp]) -> "Column":
        kept, codes = np.unique(self.codes[rows], return_inverse=True)
        gone = int(np.sum(kept < 0))
        texts = Texts(tuple(self.levels[k] for k in kept[gone:]), codes.astype(np.intp) - gone)
        # The values that are not numbers may all be in other rows.
        numbers = texts.numbers()
        return texts if numbers is None else numbers


Column = Floats | Texts


@dataclass(frozen=True, eq=False)
class TableColumns:
    """The columns of a table.

    Attributes:
        names: Distinct names of the columns.
        columns: Numbers (NaN where missing), or texts; all of the same length.
        notes: Sentences about how the file was read, for the user.
        place: Position of a data row (from 0) in the file: "line 7".
        cells: Parses the content again and returns the cells of each data row as they are in the file, empty where
            missing. They are not stored, because numbers as text take several times the memory. Those of a large
            Parquet file are :class:`ParquetCells`.
    """

    names: tuple[str, ...]
    columns: tuple[Column, ...]
    notes: tuple[str, ...]
    place: Callable[[int], str]
    cells: Callable[[], Sequence[Sequence[str]]]

    def __len__(self) -> int:
        return len(self.columns[0]) if self.columns else 0

    def __getitem__(self, name: str) -> Column:
        return self.columns[self.names.index(name)]

    def texts(self, name: str) -> Texts:
        """Return a column as texts, even if all of them are numbers."""
        column, k = self[name], self.names.index(name)
        return column if isinstance(column, Texts) else as_texts([row[k] for row in self.cells()])

    def selected(self, names: Sequence[str], rows: NDArray[np.intp]) -> "TableColumns":
        """Return some columns at some rows; the notes are left out."""

        def cells() -> list[Sequence[str]]:
            every, chosen = self.cells(), [self.names.index(name) for name in names]
            return [[every[row][k] for k in chosen] for row in rows]

        columns = tuple(self[name][rows] for name in names)
        return TableColumns(tuple(names), columns, (), lambda row: self.place(int(rows[row])), cells)


def as_number(text: str) -> float | None:
    """Return the number that a text represents, or None. ``1_000`` is a number in Python, but a name in a table.

    Examples:
        >>> as_number(" 1e3 "), as_number("1_000"), as_number("a")
        (1000.0, None, None)
    """
    try:
        return None if "_" in text else float(text)
    except ValueError:
        return None


def number_name(value: float) -> str:
    """Return a number as text, whole numbers without a decimal point.

    Examples:
        >>> number_name(7.0), number_name(0.5)
        ('7', '0.5')
    """
    number = float(value)
    return str(int(number)) if number.is_integer() else repr(number)


def as_texts(cells: Sequence[str]) -> Texts:
    """Return cells as texts, even if all of them are numbers.

    Examples:
        >>> as_texts(["7", " 7", "NA"]).levels
        ('7',)
    """
    levels: dict[str, int] = {}
    code: dict[str, int] = {}
    # Work on distinct values, because most tables repeat a few words many times.
    for cell in dict.fromkeys(cells):
        text = cell.strip()
        code[cell] = -1 if text in MISSING else levels.setdefault(text, len(levels))
    return Texts(tuple(levels), np.fromiter(map(code.__getitem__, cells), np.intp, len(cells)))


def column(values: Sequence[str]) -> Column:
    """Return cells as numbers if every cell that is not missing is a number, else as texts.

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
    texts = as_texts(values)
    found = texts.numbers()
    return texts if found is None else found


def is_path(data: Any) -> bool:
    """Whether data is the path of a file or folder."""
    return isinstance(data, str | os.PathLike)


def table_columns(data: Any) -> TableColumns:
    """Return data in memory as the columns of a table, with the same rules as for a file.

    Args:
        data: :class:`TableColumns`, which are returned unchanged; a mapping from column names to values; a DataFrame of
            pandas or polars; or a ``Dataset`` of Hugging Face, whose class labels become their names. Values are
            numbers, texts, booleans, dates or None. NaN, None and the texts that mean "missing" in a CSV file are
            missing values; texts that are all numbers become numbers.

    Raises:
        InvalidValueError: The columns have different lengths or the same name.
        InvalidTypeError: The data is something else.

    Examples:
        >>> table = table_columns({"size": [1, None, 3], "fuel": ["gas", "diesel", "NA"]})
        >>> table["size"], table["fuel"].levels
        (array([ 1., nan,  3.]), ('gas', 'diesel'))
    """
    if isinstance(data, TableColumns):
        return data
    # Tables are recognised by their attributes, because no package of tables is a dependency.
    if isinstance(data, Mapping) and hasattr(data, "column_names"):
        raise InvalidTypeError(f"a {type(data).__name__} holds several data sets; give one of them: {list(data)}")
    if isinstance(data, Mapping):
        names, values = list(data), list(data.values())
    elif hasattr(data, "columns") and hasattr(data, "iloc"):
        names, values = list(data.columns), [data.iloc[:, k] for k in range(len(data.columns))]
    elif hasattr(data, "columns") and hasattr(data, "get_columns"):
        names, values = list(data.columns), list(data.get_columns())
    elif hasattr(data, "column_names") and hasattr(data, "features") and hasattr(data, "__len__"):
        names, values = list(data.column_names), [_dataset_values(data, name) for name in data.column_names]
    else:
        raise InvalidTypeError(
            f"a table must be a DataFrame or a mapping from column names to values, not {type(data).__name__}; wrap "
            "other tables in a DataFrame"
        )
    distinct = _distinct([str(name) for name in names], "the data")
    columns = tuple(map(_from_values, values))
    lengths = {name: len(column) for name, column in zip(distinct, columns, strict=True)}
    if len(set(lengths.values())) > 1:
        raise InvalidValueError(f"the columns of the data must have the same length; the lengths are {lengths}")

    def cells() -> list[Sequence[str]]:
        return [*zip(*map(_cell_texts, values), strict=True)]

    return TableColumns(distinct, columns, (), lambda row: f"row {row + 1}", cells)


def _dataset_values(data: Any, name: str) -> list[Any]:
    """The values of a column of a data set of Hugging Face, with names of classes in place of their codes."""
    values, classes = list(data[name]), getattr(data.features[name], "names", None)
    if classes is None:
        return values
    # A row without a label has the code -1.
    return [None if code is None or code < 0 else classes[code] for code in values]


def _from_values(values: Any) -> Column:
    if isinstance(values, Texts):
        return values
    # Also the number types of pandas that have missing values; a cell of these that is missing is NaN.
    if getattr(getattr(values, "dtype", None), "kind", "") in {"i", "u", "f"}:
        converted = values.to_numpy(np.float64, na_value=math.nan) if hasattr(values, "to_numpy") else values
        return np.array(converted, dtype=np.float64)
    return column(_cell_texts(values))


def _cell_texts(values: Any) -> list[str]:
    if isinstance(values, Texts):
        return [values.levels[code] if code >= 0 else "" for code in values.codes]
    return [_cell_text(value) for value in values]


def _cell_text(value: Any) -> str:
    """Return a value as the text of a cell in a CSV file."""
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        return "" if math.isnan(value) else number_name(value)
    text = value.isoformat() if isinstance(value, date) else str(value)
    # numpy and pandas have missing dates, and pandas a missing value for all types.
    return "" if text in {"None", "NaT", "<NA>"} else text


def read_columns(path: Path, progress: Callable[[int, int], None] | None = None) -> TableColumns:
    """Read a table: Parquet if the name ends in .parquet or .pq, CSV (also gzipped) otherwise.

    Args:
        path: The file.
        progress: Called with the number of rows read and the number of all rows, for a large Parquet file.

    Raises:
        InvalidValueError: There is no such file, it cannot be read, or it is not a table.
        MissingExtraError: It is Parquet, and pyarrow is not installed.
    """
    if path.suffix.lower() not in {".parquet", ".pq"}:
        return _read_csv(_content(path), path)
    if path.is_file() and path.stat().st_size > LARGE_PARQUET:
        return _read_large_parquet(path, progress)
    return _read_parquet(_content(path), path)


#: Parquet files of more bytes than this are read column by column, and their cells a batch at a time.
LARGE_PARQUET: Final = 2**24


def read_chunks(path: Path, rows: int = 10_000) -> Iterator[TableColumns]:
    """Read a table as :func:`read_columns` does, some rows at a time, so that it need not fit into memory.

    A CSV file of more than 32 MiB is not searched for quotes that never close; a Parquet file is read in its own
    batches. The positions of rows in messages are those in the file.

    Args:
        path: The file.
        rows: Rows at a time.

    Raises:
        InvalidValueError: There is no such file, it cannot be read, or it is not a table.
        MissingExtraError: It is Parquet, and pyarrow is not installed.
    """
    if path.suffix.lower() in {".parquet", ".pq"}:
        yield from _parquet_chunks(path, rows)
        return
    first = 0
    small = path.is_file() and path.stat().st_size <= _WHOLE_FILE
    lines, delimiter = _small_csv(path) if small else _large_csv(path)
    reader = iter(lines)
    with _field_limit(_LONGEST_STREAMED):
        names = _names(next(reader, []), path)
    while True:
        with _field_limit(_LONGEST_STREAMED):
            part = list(islice(reader, rows))
        if not part:
            break
        yield _chunk(part, names, path, first, delimiter)
        first += len(part)
    if not first:
        raise InvalidValueError(f"{path} holds one line only; a line of column names and lines of data are required")


# Files up to this size are read at once, and the longest cell of others.
_WHOLE_FILE: Final = 2**25
_LONGEST_STREAMED: Final = 2**27


def _small_csv(path: Path) -> tuple[Iterator[list[str]], str]:
    text, _ = _decoded(_content(path), path)
    with _long_cells(text):
        delimiter = "\t" if re.search(r"\.tsv(\.gz)?$", path.name.lower()) else _delimiter(text)
        rows, _ = _rows(text, delimiter, path)
    return iter(rows), delimiter


def _large_csv(path: Path) -> tuple[Iterator[list[str]], str]:
    try:
        with path.open("rb") as file:
            packed = file.read(2) == b"\x1f\x8b"
        opened: Any = gzip.open if packed else Path.open
        with opened(path, "rt", encoding="utf-8-sig", newline="") as stream:
            start = "".join(islice(stream, _LINES_TO_SNIFF))
    except FileNotFoundError:
        raise InvalidValueError(f"there is no file {path}; check the name and the folder") from None
    except IsADirectoryError:
        raise InvalidValueError(f"{path} is a folder; name the CSV or Parquet file in it") from None
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise InvalidValueError(f"{path} cannot be read: {error}; save it as CSV in UTF-8") from None
    delimiter = "\t" if re.search(r"\.tsv(\.gz)?$", path.name.lower()) else _delimiter(start)

    def lines() -> Iterator[list[str]]:
        try:
            with opened(path, "rt", encoding="utf-8-sig", newline="") as stream:
                found = csv.reader(stream, delimiter=delimiter, skipinitialspace=True)
                yield from (cells for cells in found if _filled(cells))
        except (OSError, EOFError, zlib.error, UnicodeDecodeError, csv.Error) as error:
            raise InvalidValueError(f"{path} cannot be read: {error}; save it as CSV in UTF-8") from None

    return lines(), delimiter


def _chunk(rows: list[list[str]], names: tuple[str, ...], path: Path, first: int, delimiter: str) -> TableColumns:
    """Some rows of a CSV file."""

    def place(row: int) -> str:
        return f"row {first + row + 1}"

    wrong = next((k for k, cells in enumerate(rows) if len(cells) != len(names)), None)
    if wrong is not None:
        raise InvalidValueError(
            f"{path}, {place(wrong)}: the number of cells is {len(rows[wrong])}, and of column names {len(names)}. "
            f"They must be the same; a cell that holds the separator {delimiter!r} must be in double quotes"
        )
    columns = [column(values) for values in zip(*rows, strict=True)]
    if delimiter == ";":
        _take_decimal_commas(names, columns, [])
    return TableColumns(names, tuple(columns), (), place, lambda: [*rows])


def _parquet_chunks(path: Path, rows: int) -> Iterator[TableColumns]:
    try:
        arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError:
        raise MissingExtraError("pyarrow", "parquet", "Reading Parquet") from None
    try:
        file = parquet.ParquetFile(path)
        batches = file.iter_batches(batch_size=rows)
        first = 0
        for batch in batches:
            table = arrow.Table.from_batches([batch])
            names = _distinct(table.column_names, path)
            texts = [_arrow_texts(arrow, values) for values in table.columns]
            columns = tuple(_from_arrow(arrow, values) for values in table.columns)
            cells: list[Sequence[str]] = [*zip(*texts, strict=True)]
            yield TableColumns(names, columns, (), _row_after(first), lambda cells=cells: cells)  # type: ignore[misc]
            first += table.num_rows
    except FileNotFoundError:
        raise InvalidValueError(f"there is no file {path}; check the name and the folder") from None
    except (OSError, ValueError) as error:
        raise InvalidValueError(f"{path} is not a Parquet file that can be read: {error}") from None


def _row_after(first: int) -> Callable[[int], str]:
    return lambda row: f"row {first + row + 1}"


def _content(path: Path) -> bytes:
    try:
        data = path.read_bytes()
        # Detect gzip by the first bytes: the file name does not always end in .gz.
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


def _read_csv(data: bytes, path: Path) -> TableColumns:
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
            f"They must be the same; a cell that holds the separator {delimiter!r} must be in double quotes"
        )
    columns = [column(values) for values in zip(*rows[1:], strict=True)]
    if quoting == csv.QUOTE_NONE:
        notes.append("double quotes are read as plain characters, because they do not enclose cells")
    if delimiter == ";":
        _take_decimal_commas(names, columns, notes)
    return TableColumns(names, tuple(columns), tuple(notes), lambda row: line(row + 1), cells)


def _decoded(data: bytes, path: Path) -> tuple[str, list[str]]:
    if b"\0" in data:
        raise InvalidValueError(
            f"{path} is not text: it contains NUL bytes. Save it as CSV in UTF-8, "
            "or as Parquet with a name that ends in .parquet"
        )
    try:
        return data.decode("utf-8-sig"), []
    except UnicodeDecodeError:
        return data.decode("latin-1"), ["the file is not in UTF-8; it was read as Latin-1"]


@contextmanager
def _long_cells(text: str) -> Iterator[None]:
    """Allow cells as long as the text."""
    with _field_limit(len(text)):
        yield


@contextmanager
def _field_limit(length: int) -> Iterator[None]:
    """Allow cells of ``length`` characters. The limit is global in Python, so it is restored afterwards."""
    with _FIELD_SIZE_LOCK:
        before = csv.field_size_limit()
        csv.field_size_limit(max(before, length))
        try:
            yield
        finally:
            csv.field_size_limit(before)


def _reader(text: str, delimiter: str, **options: Any) -> Any:
    # With newline="" the csv module handles every line end (CR, LF, CRLF), also inside quotes.
    return csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=True, **options)


def _delimiter(text: str) -> str:
    """Return the separator with which most of the first 50 lines have as many cells as the first line."""

    def score(delimiter: str) -> tuple[float, int]:
        try:
            lengths = [len(cells) for cells in islice(_reader(text, delimiter), _LINES_TO_SNIFF) if _filled(cells)]
        except csv.Error:
            return 0.0, 0
        width = lengths[0] if lengths else 0
        return (lengths.count(width) / len(lengths), width) if width > 1 else (0.0, 0)

    return max(_DELIMITERS, key=score)


def _filled(cells: Sequence[str]) -> bool:
    return len(cells) > 1 or any(cell.strip() for cell in cells)


def _line(reader: Any, row: int) -> str:
    """Return the line (from 1) on which a row starts; rows count from 0, without blank lines."""
    start = 1
    for cells in reader:
        row -= _filled(cells)
        if row < 0:
            break
        start = reader.line_num + 1
    return f"line {start}"


def _rows(text: str, delimiter: str, path: Path) -> tuple[list[list[str]], int]:
    """Return the rows that are not blank, and the csv module's quoting mode.

    A text such as an SMS may contain a quote that never closes; read as CSV, the cell would include the next lines.
    Quotes are therefore read as plain characters if (1) some row spans several lines with quoting, (2) without quoting
    every line has the same number of cells, more than one, and (3) the quotes break the rules of CSV or the separator
    is a tab, which is rare inside a cell.
    """
    rows, spread, problem = _parsed(_reader(text, delimiter))
    broken = _parsed(_reader(text, delimiter, strict=True))[2] if spread else ""
    long = next((k for k, cells in enumerate(rows) if max(map(len, cells)) > _LONG_CELL), None) if broken else None
    if long is not None:
        problem = f"{_line(_reader(text, delimiter), long)}: a field larger than {_LONG_CELL} characters ({broken})"
    if problem or (spread and (delimiter == "\t" or broken)):
        lines, _, trouble = _parsed(_reader(text, delimiter, quoting=csv.QUOTE_NONE))
        if not trouble and len(set(map(len, lines))) == 1 < len(lines[0]):
            return lines, csv.QUOTE_NONE
    if problem:
        raise InvalidValueError(f"{path}, {problem}; is a double quote opened and never closed?")
    return rows, csv.QUOTE_MINIMAL


def _parsed(reader: Any) -> tuple[list[list[str]], bool, str]:
    """Return the rows that are not blank, whether some row spans several lines, and the error message or ""."""
    rows: list[list[str]] = []
    problem = ""
    try:
        rows.extend(reader)
    except csv.Error as error:
        problem = f"line {reader.line_num}: {error}"
    return [cells for cells in rows if _filled(cells)], reader.line_num > len(rows), problem


def _names(cells: Sequence[str], path: Path) -> tuple[str, ...]:
    """Return the column names. An empty name, as pandas writes for its index, becomes "column" and its position."""
    if all(as_number(cell) is not None for cell in cells):
        missing = "the first line holds numbers only, so there are no column names"
        raise InvalidValueError(f"{path}: {missing}. Add a first line that names the columns")
    return _distinct([cell.strip() or f"column {k}" for k, cell in enumerate(cells, start=1)], path)


def _distinct(names: Sequence[str], source: Path | str) -> tuple[str, ...]:
    name, times = Counter(names).most_common(1)[0] if names else ("", 0)
    if times > 1:
        remedy = "rename them, or add a first line of names if there is none"
        raise InvalidValueError(f"{source}: {times} columns are named {name!r}, and names must be distinct; {remedy}")
    return tuple(names)


def _take_decimal_commas(names: Sequence[str], columns: list[Column], notes: list[str]) -> None:
    """Read 3,14 as a number. Only for files separated by semicolons: in others 3,140 may be three thousand."""
    for k, texts in enumerate(columns):
        numbers = texts.numbers(decimal=",") if isinstance(texts, Texts) else None
        if numbers is not None:
            columns[k] = numbers
            notes.append(f"column {names[k]!r}: commas read as decimal points")


def _read_parquet(data: bytes, path: Path) -> TableColumns:
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

    return TableColumns(tuple(columns), tuple(columns.values()), tuple(notes), lambda row: f"row {row + 1}", cells)


# Rows of a Parquet file whose cells are in memory at a time.
_BATCH: Final = 50_000


class ParquetCells(Sequence[Sequence[str]]):
    """The cells of a Parquet file as texts. Every iteration reads the file, a batch at a time.

    Args:
        path: The file. It must not change.
        columns: Numbers of the columns.
        size: Number of rows.
    """

    def __init__(self, path: Path, columns: Sequence[int], size: int) -> None:
        self._path, self._columns, self._size = path, tuple(columns), size
        found = path.stat()
        self._known = found.st_size, found.st_mtime_ns

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Sequence[str]]:
        for texts in self.batches():
            yield from zip(*texts, strict=True)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            return list(islice(self, *key.indices(len(self))))
        place = range(len(self))[key]
        return next(islice(self, place, None))

    def batches(self) -> Iterator[list[list[str]]]:
        """The cells of each column, some rows at a time.

        Raises:
            InvalidValueError: The file was changed meanwhile.
        """
        arrow = import_module("pyarrow")
        for batch in self._read():
            yield [_arrow_texts(arrow, batch.column(k)) for k in range(batch.num_columns)]

    def _read(self) -> Iterator[Any]:
        """Yield batches of Arrow, with the columns in the order of ``columns``."""
        file = _opened_parquet(self._path)
        names = [file.schema_arrow.names[k] for k in self._columns]
        for batch in file.iter_batches(batch_size=_BATCH, columns=names):
            found = self._path.stat()
            if (found.st_size, found.st_mtime_ns) != self._known:
                raise InvalidValueError(f"{self._path} was changed while it was read; try again")
            yield batch.select(names)

    def json_rows(self) -> Iterator[str]:
        """The cells of each row as a list of JSON, as :mod:`json` writes it."""
        if self.text_columns():
            as_json = json.JSONEncoder(ensure_ascii=False).encode
            yield from map(as_json, self)
            return
        compute = import_module("pyarrow.compute")
        # Numbers need no escapes. All rows of a batch are joined at once.
        for batch in self._read():
            texts = [_number_texts(compute, batch.column(k)) for k in range(batch.num_columns)]
            between = [part for text in texts for part in ('", "', text)][1:]
            yield from compute.binary_join_element_wise('["', *between, '"]', "").to_pylist()

    def selected(self, columns: Sequence[int]) -> "ParquetCells":
        """The cells of some of the columns, by their numbers among these."""
        return ParquetCells(self._path, [self._columns[k] for k in columns], self._size)

    def text_columns(self) -> list[int]:
        """Numbers of the columns, among these, whose cells are not numbers by their type in the file."""
        arrow, schema = import_module("pyarrow"), _opened_parquet(self._path).schema_arrow
        return [
            k for k, number in enumerate(self._columns) if not _is_number(arrow, _kind(arrow, schema.field(number)))
        ]

    def column(self, k: int) -> list[str]:
        """All cells of one column."""
        return [text for texts in self.selected([k]).batches() for text in texts[0]]


def _opened_parquet(path: Path) -> Any:
    try:
        return import_module("pyarrow.parquet").ParquetFile(path)
    except ImportError:
        raise MissingExtraError("pyarrow", "parquet", "Reading Parquet") from None
    except PermissionError:
        raise InvalidValueError(f"{path} may not be read: permission denied; make it readable first") from None
    except (OSError, ValueError) as error:
        raise InvalidValueError(f"{path} is not a Parquet file that can be read: {error}") from None


def _read_large_parquet(path: Path, progress: Callable[[int, int], None] | None) -> TableColumns:
    """Read a Parquet file column by column, so that no cell is a Python object."""
    file = _opened_parquet(path)
    arrow, size = import_module("pyarrow"), int(file.metadata.num_rows)
    names = _distinct(file.schema_arrow.names, path)
    if not size:
        raise InvalidValueError(f"{path} holds no rows; column names and rows of data are required")
    columns: dict[str, Column] = {}
    notes, kept = [], []
    for k, name in enumerate(names):
        kind = file.schema_arrow.field(k).type
        try:
            columns[name] = _column_of(arrow, file.read(columns=[file.schema_arrow.names[k]]).column(0))
            kept.append(k)
        except arrow.ArrowException as error:
            if isinstance(error, OSError):
                raise InvalidValueError(f"{path} is not a Parquet file that can be read: {error}") from None
            notes.append(f"column {name!r} left out: {kind} is neither numbers nor text")
        if progress is not None:
            # Columns are read one after the other; the progress is converted to a number of rows.
            progress(size * (k + 1) // len(names), size)
    cells = ParquetCells(path, kept, size)
    return TableColumns(
        tuple(columns), tuple(columns.values()), tuple(notes), lambda row: f"row {row + 1}", lambda: cells
    )


def _column_of(arrow: Any, values: Any) -> Column:
    """As :func:`_from_arrow`; texts are compared by Arrow, and only distinct ones become Python objects."""
    kind = _kind(arrow, values)
    if _is_number(arrow, kind):
        return _from_arrow(arrow, values)
    encoded = values.cast(kind).cast(arrow.string()).dictionary_encode().unify_dictionaries()
    if not encoded.num_chunks:
        return column([])
    levels = _arrow_texts(arrow, encoded.chunk(0).dictionary)
    codes = np.concatenate([part.indices.fill_null(len(levels)).to_numpy() for part in encoded.chunks])
    distinct = as_texts([*levels, ""])
    texts = Texts(distinct.levels, distinct.codes[codes])
    found = texts.numbers()
    return texts if found is None else found


def _from_arrow(arrow: Any, values: Any) -> Column:
    kind = _kind(arrow, values)
    if _is_number(arrow, kind):
        return np.array(values.cast(kind).cast(arrow.float64(), safe=False).to_numpy(), dtype=np.float64)
    return column(_arrow_texts(arrow, values))


def _number_texts(compute: Any, values: Any) -> Any:
    """Numbers as texts of Arrow, empty where missing, as :func:`_arrow_texts` writes them."""
    arrow = import_module("pyarrow")
    return compute.fill_null(values.cast(_kind(arrow, values)).cast(arrow.string()), "")


def _is_number(arrow: Any, kind: Any) -> bool:
    return any(getattr(arrow.types, f"is_{name}")(kind) for name in ("integer", "floating", "decimal"))


def _kind(arrow: Any, values: Any) -> Any:
    return values.type.value_type if arrow.types.is_dictionary(values.type) else values.type


def _arrow_texts(arrow: Any, values: Any) -> list[str]:
    # Dates become ISO dates and booleans "true" and "false", as in a CSV file.
    texts = values.cast(_kind(arrow, values)).cast(arrow.string())
    try:
        return [text or "" for text in texts.to_pylist()]
    except UnicodeDecodeError:
        # Parquet files may contain text that is not valid UTF-8.
        return [(text or b"").decode("utf-8", "replace") for text in texts.cast(arrow.binary()).to_pylist()]
