"""Sheets of Excel workbooks (XLSX) to columns, with openpyxl."""

import re
import warnings
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from importlib import import_module
from io import BytesIO
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import IO, Any, Final, NamedTuple
from xml.etree import ElementTree
from zipfile import BadZipFile, ZipFile

from suffice.errors import InvalidValueError, MissingExtraError, SufficeError
from suffice.tables.file_content import (
    BLOCK,
    CellColumn,
    chunks_of,
    content_of,
    header_names,
    require_few_cells,
    whole_text,
)
from suffice.tables.table_cells import CellColumns
from suffice.tables.table_columns import TableColumns, cell_text, column

_ZIP: Final = b"PK\x03\x04"
_OLE: Final = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_HEADER: Final = "first row"
#: Most bytes of an unpacked workbook: a small file can unpack to any size.
MOST_UNPACKED: Final = 2**30
# Lines of a cover, or above the names of the columns; and characters of each that are shown.
_MOST_TITLES: Final = 10
_TITLE_SHOWN: Final = 60
# The limit of the format.
_MOST_ROWS: Final = 1_048_576
_ERRORS: Final = frozenset(
    {
        *("#NULL!", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#N/A", "#GETTING_DATA", "#SPILL!"),
        *("#CALC!", "#FIELD!", "#BLOCKED!", "#UNKNOWN!", "#CONNECT!", "#BUSY!", "#EXTERNAL!", "#PYTHON!"),
    }
)
_ESCAPED: Final = re.compile("_x([0-9A-Fa-f]{4})_")
# The tags of formulas and of merged cells, with or without a prefix; "<" is escaped in texts.
_SPECIAL_TAG: Final = re.compile(rb"<(?:[\w.-]{1,40}:)?(?:f|mergeCell)[\s/>]")
_LONGEST_TAG: Final = 60
# Bytes of a sheet that are searched at a time, and at the start of a part for a declaration of entities, which expand.
_PART: Final = 2**20
_START: Final = 2**12
_SAVE_AGAIN: Final = "open it in Excel or LibreOffice, and save it as an Excel workbook (.xlsx) or as CSV"


class _Sheet(NamedTuple):
    """The rows of a sheet that are not empty.

    Attributes:
        head: The texts of the first of these rows, by column (from 0), without empty ones.
        columns: The cells of the others, by column; columns without a name and a value are left out.
        numbers: The number in the sheet (from 1) of each row, the first included.
        errors: The number of error values in a column, and the first of them with its row.
        titles: The lines above the row of column names, which are left out.
    """

    head: dict[int, str]
    columns: dict[int, list[str]]
    numbers: list[int]
    errors: dict[int, tuple[int, str]]
    titles: list[str]


def is_excel(path: Path) -> bool:
    """Whether a file whose name has an ending of Excel is no text: some programs name texts .xls."""
    if path.suffix.lower() != ".xls":
        return True
    try:
        with path.open("rb") as file:
            return file.read(8).startswith((_ZIP, _OLE))
    except OSError:
        return True


def read_excel(path: Path) -> TableColumns:
    """Read a sheet of an Excel workbook; see :func:`suffice.tables.file_reader.read_columns`.

    It is the first sheet that is neither hidden nor empty; a cover with a few lines before a table is left out. Its
    first row that is not empty names the columns, or the first below titles, which have one cell each. Empty rows, and
    columns without a name and a value, are left out. A cell is the value without its format: a number, a text, ``true``
    or ``false``, or a date as ``2024-02-29`` or ``2024-02-29T12:30:00``. Formulas are not computed: the value that is
    stored with a formula is read. Error values such as ``#DIV/0!`` are missing, with a note.

    Raises:
        InvalidValueError: It is no workbook that can be read, unpacks to more than 1 GiB, has no data, has merged
            cells, or has a formula without a value; the message says what to do.
        MissingExtraError: openpyxl is not installed.
    """
    return _read(path)[0]


def excel_chunks(path: Path, rows: int) -> Iterator[TableColumns]:
    """Read some rows at a time; see :func:`suffice.tables.file_reader.read_chunks`."""
    yield from chunks_of(*_read(path), rows)


def _read(path: Path) -> tuple[TableColumns, list[list[str]]]:
    with _workbook(content_of(path), path) as book:
        chosen, others = _chosen_sheet(book, path)
        found, special = _cells(chosen, path), _special_cells(chosen)
        computed_later = special.formulas and _is_computed_later(book)
    place = f"{path}, sheet {chosen.title!r}"
    if special.empty is not None:
        raise InvalidValueError(
            f"{place}, cell {special.empty}: the formula has no stored value; open the file in Excel or LibreOffice, "
            "which compute it, and save it"
        )
    if not found.columns or len(found.numbers) < 2:
        raise InvalidValueError(f"{place}, holds one row only; a row of column names and rows of data are required")
    _require_single_cells(special.merged, found, place)
    header = f"{_HEADER} below the titles" if found.titles else _HEADER
    names = header_names([found.head.get(k, "") for k in found.columns], path, header)
    notes = [
        *_sheet_notes(chosen, others),
        *_title_notes(found),
        *_error_notes(dict(zip(found.columns, names, strict=True)), found.errors),
    ]
    if computed_later:
        notes.append(
            f"{special.formulas:,} stored values of formulas were read, and the file asks that they are computed when "
            "it is opened: open it in Excel or LibreOffice and save it, so that they are right"
        )
    cells = [*found.columns.values()]
    table = TableColumns(
        names,
        tuple(map(column, cells)),
        tuple(notes),
        lambda row: f"row {found.numbers[row + 1]}",
        lambda: CellColumns(cells),
        header,
        cells.__getitem__,
    )
    return table, cells


@contextmanager
def _workbook(data: bytes, path: Path) -> Iterator[Any]:
    """Open a workbook. Errors that occur while it is read say that the file is damaged."""
    if data.startswith(_OLE):
        encrypted = "EncryptedPackage".encode("utf-16-le") in data
        came = "is protected by a password" if encrypted else "is a workbook of the old Excel format (.xls)"
        how = "open it in Excel, remove the password under File > Info, and save it" if encrypted else _SAVE_AGAIN
        raise InvalidValueError(f"{path} {came}, which cannot be read; {how}")
    if not data.startswith(b"PK"):
        came = "is empty" if not data else "is not an Excel workbook"
        raise InvalidValueError(f"{path} {came}; if it is a text, give it a name that ends in .csv, else {_SAVE_AGAIN}")
    _require_safe_archive(data, path)
    try:
        openpyxl = import_module("openpyxl")
    except ImportError:
        raise MissingExtraError("openpyxl", "excel", "Reading Excel workbooks") from None
    try:
        with warnings.catch_warnings():
            # About styles, and about dates that are not valid, which are error values.
            warnings.simplefilter("ignore")
            book = openpyxl.load_workbook(BytesIO(data), read_only=True, data_only=True, keep_links=False)
            try:
                yield book
            finally:
                book.close()
    except (SufficeError, MemoryError):
        raise
    except Exception as error:
        # A damaged file causes errors of any kind in openpyxl.
        raise _damaged(path, error) from None


def _require_safe_archive(data: bytes, path: Path) -> None:
    """Raise an error if an archive is not a workbook, or expands to a size that fills the memory."""
    try:
        with ZipFile(BytesIO(data)) as archive:
            entries = {entry.filename: entry.file_size for entry in archive.infolist()}
            # The sizes in an archive limit what is unpacked.
            if sum(entries.values()) <= MOST_UNPACKED:
                starts = [archive.open(name).read(_START) for name in entries if name.endswith((".xml", ".rels"))]
    except (BadZipFile, OSError, RuntimeError, ValueError, zlib.error) as error:
        raise _damaged(path, error) from None
    if "xl/workbook.bin" in entries:
        raise InvalidValueError(f"{path} is a binary workbook (.xlsb), which cannot be read; {_SAVE_AGAIN}")
    if "[Content_Types].xml" not in entries:
        raise InvalidValueError(f"{path} is an archive but not an Excel workbook; {_SAVE_AGAIN}")
    if sum(entries.values()) > MOST_UNPACKED:
        raise InvalidValueError(
            f"{path} unpacks to {sum(entries.values()) / 2**20:,.0f} MiB, and at most {MOST_UNPACKED / 2**20:,.0f} MiB "
            "are read; remove what is not part of the table, or save it as CSV or Parquet"
        )
    if any(b"<!DOCTYPE" in start for start in starts):
        raise _damaged(path, ValueError("it declares a document type, which no workbook does"))


def _damaged(path: Path, error: Exception) -> InvalidValueError:
    said = " ".join(str(error).split()) or type(error).__name__
    return InvalidValueError(
        f"{path} is not an Excel workbook that can be read: {said[:200]}; copy or download it again, or {_SAVE_AGAIN}"
    )


def _chosen_sheet(book: Any, path: Path) -> tuple[Any, list[Any]]:
    """Return the first sheet that is neither hidden nor empty nor a cover, and the other sheets that are not empty.

    A cover has a few lines of text in one column, and a later sheet has a table of several columns.
    """
    for sheet in book.worksheets:
        # Some programs write wrong dimensions.
        sheet.reset_dimensions()
    starts = {sheet: [*islice(_filled_rows(sheet, path), _MOST_TITLES + 2)] for sheet in book.worksheets}
    filled = [sheet for sheet, rows in starts.items() if rows]
    visible = [sheet for sheet in filled if sheet.sheet_state == "visible"]
    tables = (sheet for sheet in visible if not _is_cover(starts[sheet]) and _is_wide(starts[sheet]))
    chosen = visible[0] if visible else None
    if chosen is not None and _is_cover(starts[chosen]):
        chosen = next(tables, chosen)
    if chosen is None and filled:
        raise InvalidValueError(
            f"{path}: all sheets with data are hidden, such as {filled[0].title!r}; unhide the one to read "
            "(right-click on the tab of a sheet > Unhide), and save the file"
        )
    if chosen is None:
        raise InvalidValueError(f"{path} has no sheet with data; a row of column names and rows of data are required")
    return chosen, [sheet for sheet in filled if sheet is not chosen]


def _is_cover(rows: Sequence[tuple[int, tuple[Any, ...]]]) -> bool:
    """Whether the first rows of a sheet are all of its rows, and have one cell each."""
    return len(rows) <= _MOST_TITLES and all(_filled_cells(values) == 1 for _, values in rows)


def _is_wide(rows: Sequence[tuple[int, tuple[Any, ...]]]) -> bool:
    """Whether several of the first rows of a sheet have several cells."""
    return sum(_filled_cells(values) > 1 for _, values in rows) > 1


def _filled_cells(values: Sequence[Any]) -> int:
    return sum(not _is_empty(value) for value in values)


def _without_titles(
    rows: Iterator[tuple[int, tuple[Any, ...]]],
) -> tuple[list[str], Iterator[tuple[int, tuple[Any, ...]]]]:
    """The titles above the names of the columns, and the rows from the names on.

    Titles are rows with one cell above a row of several texts, the names, if the row below these has several cells too.
    """
    start = list(islice(rows, _MOST_TITLES + 2))
    at = next((k for k, (_, values) in enumerate(start) if _filled_cells(values) > 1), 0)
    names = start[at][1] if start else ()
    texts = all(isinstance(value, str) or _is_empty(value) for value in names)
    if not (at and texts and at + 1 < len(start) and _filled_cells(start[at + 1][1]) > 1):
        at = 0
    titles = [_text(next(value for value in values if not _is_empty(value))) for _, values in start[:at]]
    return titles, chain(start[at:], rows)


def _sheet_notes(chosen: Any, others: Sequence[Any]) -> list[str]:
    if not others:
        return []
    named = [f"{sheet.title!r}{'' if sheet.sheet_state == 'visible' else ' (hidden)'}" for sheet in others]
    listed = ", ".join(named[:10]) + (f" and {len(named) - 10} more" if len(named) > 10 else "")
    return [
        f"the sheet {chosen.title!r} was read, and others with data were not: {listed}; to read another one, move it "
        "to the front or save it in its own file"
    ]


def _filled_rows(sheet: Any, path: Path) -> Iterator[tuple[int, tuple[Any, ...]]]:
    """Yield the number (from 1) and the values of each row that is not empty, up to its last cell with a value."""
    for number, values in enumerate(sheet.iter_rows(values_only=True), start=1):
        if number > _MOST_ROWS:
            raise _damaged(path, ValueError(f"it has more than {_MOST_ROWS:,} rows, the most that a sheet can have"))
        end = len(values)
        while end and values[end - 1] is None:
            end -= 1
        if not all(map(_is_empty, values[:end])):
            yield number, values[:end]


def _is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())


def _cells(sheet: Any, path: Path) -> _Sheet:
    titles, rows = _without_titles(_filled_rows(sheet, path))
    first, values = next(rows)
    head = {k: _text(value) for k, value in enumerate(values) if not _is_empty(value)}
    columns, errors = {k: CellColumn() for k in head}, dict[int, tuple[int, str]]()
    error_cells: frozenset[tuple[int, int]] | None = None
    numbers = [first]
    while block := list(islice(rows, BLOCK)):
        parts = [*zip_longest(*(values for _, values in block))]
        places = [number for number, _ in block]
        for k, part in enumerate(parts):
            # A column without a name is there from its first value on.
            if k not in columns and not all(map(_is_empty, part)):
                columns[k] = CellColumn(len(numbers) - 1)
            if k in columns:
                texts = [*map(_text, part)]
                if not _ERRORS.isdisjoint(texts):
                    # Few sheets have error values, and the types of cells take time to read.
                    error_cells = _error_cells(sheet) if error_cells is None else error_cells
                    _take_errors(texts, errors, k, places, error_cells)
                columns[k].add(texts)
        for k, cells in columns.items():
            if k >= len(parts):
                cells.add([""] * len(block))
        numbers += places
        require_few_cells(len(numbers), len(columns), path)
    return _Sheet(head, {k: columns[k].cells for k in sorted(columns)}, numbers, errors, titles)


def _error_cells(sheet: Any) -> frozenset[tuple[int, int]]:
    """The row (from 1) and the column (from 0) of each cell with an error value; a text such as ``#REF!`` is none."""
    return frozenset(
        (number, k)
        for number, row in enumerate(sheet.iter_rows(), start=1)
        for k, cell in enumerate(row)
        if cell.data_type == "e"
    )


def _take_errors(
    texts: list[str],
    errors: dict[int, tuple[int, str]],
    k: int,
    numbers: Sequence[int],
    error_cells: frozenset[tuple[int, int]],
) -> None:
    """Remove the error values of a column."""
    for place, text in enumerate(texts):
        if text in _ERRORS and (numbers[place], k) in error_cells:
            count, first = errors.get(k, (0, f"{text} in row {numbers[place]}"))
            errors[k] = count + 1, first
            texts[place] = ""


def _title_notes(found: _Sheet) -> list[str]:
    if not found.titles:
        return []
    listed = ", ".join(repr(" ".join(title.split())[:_TITLE_SHOWN]) for title in found.titles)
    return [f"row {found.numbers[0]} names the columns; what stands above it was left out: {listed}"]


def _error_notes(names: dict[int, str], errors: dict[int, tuple[int, str]]) -> list[str]:
    return [
        f"column {names[k]!r}: {count:,} error {'value' if count == 1 else 'values'} read as missing, such as {first}; "
        "correct the formulas if there should be values"
        for k, (count, first) in errors.items()
    ]


def _text(value: Any) -> str:
    """Return a value of a sheet as the text of a cell in a CSV file."""
    if isinstance(value, str):
        return _unescaped(value) if "_x" in value else value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime) and not (value.hour or value.minute or value.second or value.microsecond):
        return value.date().isoformat()
    if isinstance(value, timedelta):
        minutes, seconds = divmod(value.total_seconds(), 60)
        return f"{minutes // 60:.0f}:{minutes % 60:02.0f}:{seconds:06.3f}".removesuffix(".000")
    return cell_text(value)


def _unescaped(text: str) -> str:
    r"""Return a text with its escaped characters.

    Examples:
        >>> _unescaped("a_x000D_b_x005F_x000D_c")
        'a\rb_x000D_c'
    """
    return whole_text(_ESCAPED.sub(lambda found: chr(int(found[1], 16)), text))


class _Special(NamedTuple):
    """Number of formulas, the first cell with a formula but no stored value, and ranges of merged cells."""

    formulas: int
    empty: str | None
    merged: list[str]


def _special_cells(sheet: Any) -> _Special:
    with sheet._get_source() as source:
        found = _has_special(source)
    if not found:
        return _Special(0, None, [])
    with sheet._get_source() as source:
        return _parsed_special(source)


def _has_special(source: IO[bytes]) -> bool:
    """Whether there is the tag of a formula or of merged cells. Most sheets have none and are not parsed again."""
    end = b""
    while part := source.read(_PART):
        if _SPECIAL_TAG.search(end + part):
            return True
        end = part[-_LONGEST_TAG:]
    return False


def _parsed_special(source: IO[bytes]) -> _Special:
    formulas, empty, merged = 0, None, []
    rows: Any = None
    for event, element in ElementTree.iterparse(source, events=("start", "end")):
        tag = element.tag.rpartition("}")[2]
        if event == "start":
            rows = element if tag == "sheetData" else rows
        elif tag == "c":
            parts = {part.tag.rpartition("}")[2]: part.text for part in element}
            formulas += "f" in parts
            # A formula whose value is an empty text has the type "str".
            if "f" in parts and not parts.get("v") and element.get("t") != "str":
                empty = empty or element.get("r") or "?"
        elif tag == "row":
            rows.clear()
        elif tag == "mergeCell":
            merged.append(element.get("ref", ""))
    return _Special(formulas, empty, merged)


def _is_computed_later(book: Any) -> bool:
    """Whether the program that wrote a workbook asks that its formulas are computed when it is opened."""
    parts = [name for name in book._archive.namelist() if re.fullmatch(r"xl/workbook\d*\.xml", name)]
    return any(re.search(rb"""fullCalcOnLoad=['"](1|true)['"]""", book._archive.read(name)) for name in parts)


def _require_single_cells(merged: Sequence[str], found: _Sheet, place: str) -> None:
    """Raise an error if cells of a table are merged: the value of all is in the first one only."""
    boundaries = import_module("openpyxl.utils").range_boundaries
    for each in merged:
        left, top, right, bottom = boundaries(each)
        below = top > found.numbers[-1] or bottom < found.numbers[0]
        beside = not any(left <= k + 1 <= right for k in found.columns)
        if not below and not beside:
            raise InvalidValueError(
                f"{place}: the cells {each} are merged, and each cell of a table needs its own value; unmerge them "
                "(Home > Merge & Center), fill in the values, and remove titles above the row of column names"
            )
