"""CSV files to columns, with Python's csv module."""

# Why not a CSV reader of a library: none of the dependencies has a suitable one. numpy.genfromtxt and loadtxt do not
# read quoted cells that span lines; pyarrow is an extra, and its CSV reader does not detect the separator, stray quotes
# or decimal commas. Python's csv module does the parsing. The code here adds what it does not do: separator, encoding,
# quotes that never close, cells over its length limit, and errors with line numbers.

import csv
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from threading import RLock
from typing import Any, Final, NamedTuple

from suffice.errors import InvalidValueError
from suffice.tables.csv_titles import without_titles
from suffice.tables.file_content import (
    BLOCK,
    STREAM_ERRORS,
    CellColumn,
    TextContent,
    content_of,
    converted_columns,
    header_names,
    is_small,
    row_after,
    text_content,
    text_stream,
    unreadable,
)
from suffice.tables.table_cells import CellColumns
from suffice.tables.table_columns import Column, TableColumns, Texts, column

_DELIMITERS: Final = ",;\t|"
_LINES_TO_SNIFF: Final = 50
# A longer cell is either a whole document or the text after a quote that never closes.
_LONG_CELL: Final = 131_072
_FIELD_SIZE_LOCK: Final = RLock()
# The longest cell of a file that is read some rows at a time.
_LONGEST_STREAMED: Final = 2**27
_HEADER: Final = "first line"


class _Rows(NamedTuple):
    """The rows of a text that are not blank.

    Attributes:
        first: The cells of the first row; empty if there is none.
        columns: The cells of the others, by column; incomplete if a row is ``wrong``.
        size: Number of rows after the first.
        wrong: The first row with another number of cells than the first row, and this number; rows count from 0.
        spread: Whether some row spans several lines.
        problem: The error message, or "".
    """

    first: list[str]
    columns: list[list[str]]
    size: int
    wrong: tuple[int, int] | None
    spread: bool
    problem: str


class _CsvText(NamedTuple):
    """A text and how it is parsed."""

    text: TextContent
    delimiter: str
    quoting: int = csv.QUOTE_MINIMAL
    titles: str = ""

    def reader(self, **options: Any) -> Any:
        # With newline="" the csv module handles every line end (CR, LF, CRLF), also inside quotes.
        settings = {"delimiter": self.delimiter, "quoting": self.quoting, **options}
        return csv.reader(self.text.lines(), skipinitialspace=True, **settings)

    def line(self, row: int) -> str:
        """The line (from 1) on which a row starts; rows count from 0, without blank lines."""
        with _long_cells(self.text):
            return _line(self.reader(), row)

    def cells(self) -> CellColumns:
        """The cells of each row after the first."""
        with _long_cells(self.text):
            return CellColumns(_parsed(self.reader()).columns)

    def column_cells(self, k: int) -> list[str]:
        """The cells of one column, without the first row."""
        found = CellColumn()
        with _long_cells(self.text):
            rows = filter(_filled, self.reader())
            next(rows)
            while part := [cells[k] for cells in islice(rows, BLOCK)]:
                found.add(part)
        return found.cells


def read_csv(path: Path, *, keep_cells: bool = False) -> TableColumns:
    """Read a CSV file; see :func:`suffice.tables.file_reader.read_columns`."""
    source, rows = _small_csv(path)
    header = f"{_HEADER} below the titles" if source.titles else _HEADER
    names, notes = header_names(rows.first, path, header), source.text.notes
    notes += [source.titles] if source.titles else []
    found, kept = converted_columns(rows.columns, keep_cells=keep_cells)
    columns = [*found]
    if source.quoting == csv.QUOTE_NONE:
        notes.append("double quotes are read as plain characters, because they do not enclose cells")
    if source.delimiter == ";":
        _take_decimal_commas(names, columns, notes)
    return TableColumns(
        names,
        tuple(columns),
        tuple(notes),
        lambda row: source.line(row + 1),
        kept or source.cells,
        header,
        kept().column if kept else source.column_cells,
        of_cells=source.delimiter != ";",
    )


def csv_chunks(path: Path, rows: int) -> Iterator[TableColumns]:
    """Read some rows at a time; see :func:`suffice.tables.file_reader.read_chunks`."""
    reader, delimiter = _small_rows(path) if is_small(path) else _large_rows(path)
    first = 0
    with _field_limit(_LONGEST_STREAMED):
        names = header_names(next(reader, []), path, _HEADER)
    while True:
        with _field_limit(_LONGEST_STREAMED):
            part = list(islice(reader, rows))
        if not part:
            break
        yield _chunk(part, names, path, first, delimiter)
        first += len(part)
    if not first:
        raise InvalidValueError(f"{path} holds one line only; a line of column names and lines of data are required")


def _small_rows(path: Path) -> tuple[Iterator[Sequence[str]], str]:
    source, rows = _small_csv(path)
    return chain([rows.first], CellColumns(rows.columns)), source.delimiter


def _large_rows(path: Path) -> tuple[Iterator[Sequence[str]], str]:
    opened = text_stream(path, "CSV")
    try:
        with opened() as stream:
            start = "".join(islice(stream, _LINES_TO_SNIFF))
    except STREAM_ERRORS as error:
        raise unreadable(path, error, "CSV") from None
    delimiter = _delimiter(TextContent(start.encode(), "utf-8"), path)

    def rows() -> Iterator[Sequence[str]]:
        try:
            with opened() as stream:
                yield from filter(_filled, csv.reader(stream, delimiter=delimiter, skipinitialspace=True))
        except (*STREAM_ERRORS, csv.Error) as error:
            raise unreadable(path, error, "CSV") from None

    return rows(), delimiter


def _chunk(rows: list[Sequence[str]], names: tuple[str, ...], path: Path, first: int, delimiter: str) -> TableColumns:
    """Some rows of a CSV file."""
    place = row_after(first)
    wrong = next((k for k, cells in enumerate(rows) if len(cells) != len(names)), None)
    if wrong is not None:
        raise _wrong_number(f"{path}, {place(wrong)}", len(rows[wrong]), len(names), delimiter)
    columns = [column(values) for values in zip(*rows, strict=True)]
    if delimiter == ";":
        _take_decimal_commas(names, columns, [])
    return TableColumns(names, tuple(columns), (), place, lambda: CellColumns.of_rows(rows), _HEADER)


def _wrong_number(place: str, cells: int, names: int, delimiter: str) -> InvalidValueError:
    return InvalidValueError(
        f"{place}: the number of cells is {cells}, and of column names {names}. "
        f"They must be the same; a cell that holds the separator {delimiter!r} must be in double quotes"
    )


def _small_csv(path: Path) -> tuple[_CsvText, _Rows]:
    """Return a file that is read at once, and its rows.

    Raises:
        InvalidValueError: It has no rows, or one with another number of cells than the first row.
    """
    text, titles = without_titles(text_content(content_of(path), path, "CSV"))
    with _long_cells(text):
        source, rows = _rows(_CsvText(text, _delimiter(text, path)), path)
    if not rows.size:
        came = "holds one line only" if rows.first else "is empty"
        raise InvalidValueError(f"{path} {came}; a line of column names and lines of data are required")
    if rows.wrong is not None:
        header_names(rows.first, path, _HEADER)
        row, cells = rows.wrong
        raise _wrong_number(f"{path}, {source.line(row)}", cells, len(rows.first), source.delimiter)
    return source._replace(titles=titles), rows


@contextmanager
def _long_cells(text: TextContent) -> Iterator[None]:
    """Allow cells as long as the text."""
    with _field_limit(len(text.data)):
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


def _delimiter(text: TextContent, path: Path) -> str:
    """Return the separator: a tab by the name of the file, else the one that fits the first 50 lines best.

    It is the one with which most of these lines have as many cells as the first line.
    """
    if re.search(r"\.tsv(\.gz)?$", path.name.lower()):
        return "\t"

    def score(delimiter: str) -> tuple[float, int]:
        rows = _CsvText(text, delimiter).reader()
        try:
            lengths = [len(cells) for cells in islice(rows, _LINES_TO_SNIFF) if _filled(cells)]
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


def _rows(source: _CsvText, path: Path) -> tuple[_CsvText, _Rows]:
    """Return the rows that are not blank, and how the text was parsed.

    A text such as an SMS may contain a quote that never closes; read as CSV, the cell would include the next lines.
    Quotes are therefore read as plain characters if (1) some row spans several lines with quoting, (2) without quoting
    every line has the same number of cells, more than one, and (3) the quotes break the rules of CSV or the separator
    is a tab, which is rare inside a cell.
    """
    rows = _parsed(source.reader())
    problem, broken = rows.problem, _broken(source) if rows.spread else ""
    long = _first_long(source) if broken else None
    if long is not None:
        problem = f"{source.line(long)}: a field larger than {_LONG_CELL} characters ({broken})"
    if problem or (rows.spread and (source.delimiter == "\t" or broken)):
        plain = source._replace(quoting=csv.QUOTE_NONE)
        lines = _parsed(plain.reader())
        if not lines.problem and lines.wrong is None and len(lines.first) > 1:
            return plain, lines
    if problem:
        raise InvalidValueError(f"{path}, {problem}; is a double quote opened and never closed?")
    return source, rows


def _broken(source: _CsvText) -> str:
    """Return what is wrong with the quotes of a text by the rules of CSV, or ""."""
    reader = source.reader(strict=True)
    try:
        for _ in reader:
            pass
    except csv.Error as error:
        return f"line {reader.line_num}: {error}"
    return ""


def _first_long(source: _CsvText) -> int | None:
    """Return the number of the first row (from 0, without blank lines) with a long cell."""
    rows = enumerate(filter(_filled, source.reader()))
    return next((k for k, cells in rows if max(map(len, cells)) > _LONG_CELL), None)


def _parsed(reader: Any) -> _Rows:
    first: list[str] = []
    columns: list[CellColumn] = []
    every, size, problem = 0, 0, ""
    wrong: tuple[int, int] | None = None
    try:
        while block := list(islice(reader, BLOCK)):
            every += len(block)
            if len(first) < 2 or set(map(len, block)) != {len(first)}:
                block = list(filter(_filled, block))
                if not first and block:
                    first, *block = block
                    columns = [CellColumn() for _ in first]
                if wrong is None:
                    rows = enumerate(block, start=size + 1)
                    wrong = next(((row, len(cells)) for row, cells in rows if len(cells) != len(first)), None)
            if wrong is None:
                # Blocks become columns at once: a list of cells for each row would take more than the cells.
                for found, part in zip(columns, zip(*block, strict=True), strict=False):
                    found.add(part)
            size += len(block)
    except csv.Error as error:
        problem = f"line {reader.line_num}: {error}"
    return _Rows(first, [found.cells for found in columns], size, wrong, reader.line_num > every, problem)


def _take_decimal_commas(names: Sequence[str], columns: list[Column], notes: list[str]) -> None:
    """Read 3,14 as a number. Only for files separated by semicolons: in others 3,140 may be three thousand."""
    for k, texts in enumerate(columns):
        numbers = texts.numbers(decimal=",") if isinstance(texts, Texts) else None
        if numbers is not None:
            columns[k] = numbers
            notes.append(f"column {names[k]!r}: commas read as decimal points")
