"""Writing of rows to files for other programs: CSV that is safe in spreadsheets, JSON lines, Parquet."""

import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from io import BytesIO
from pathlib import Path
from string import ascii_letters, digits
from typing import Any, BinaryIO, Final, Literal, NamedTuple
from unicodedata import category, normalize

import numpy as np
from numpy.typing import NDArray

from suffice.errors import MissingExtraError
from suffice.tables.table_formats import FINAL_FORMATS, TABLE_FORMATS, Format, checked_format

#: A cell: a text, a number, a flag, or None.
Cell = str | float | bool | None
Rows = Sequence[Sequence[Cell]]

#: Type of Arrow for each kind of column. Many long texts can exceed the size limit of the plain string type.
ARROW_TYPES: Final = {"text": "large_string", "number": "float64", "count": "int64", "flag": "bool_"}
#: A plain number, with a decimal point or a decimal comma.
_NUMBER: Final = re.compile(r" *[+-]?(?:\d+(?:[.,]\d*)?|[.,]\d+)(?:[eE][+-]?\d+)? *", re.ASCII)
# Characters that require quotes in a CSV file.
_SPECIAL: Final = re.compile('[",\r\n]')
#: A text with such a beginning needs no further check; most texts have one.
_PLAIN: Final = frozenset(["", *ascii_letters, *digits, *'<>()[]{}"!?#$%&*/.,:;'])


class Column(NamedTuple):
    """A column of a file.

    Attributes:
        name: Its name; no two columns share one.
        kind: Type of its cells.
    """

    name: str
    kind: Literal["text", "number", "count", "flag"] = "text"


def encoded(columns: Sequence[Column], chunks: Iterable[Rows], format: Format) -> bytes:
    r"""Write rows as a file.

    Args:
        columns: The columns.
        chunks: The rows, some at a time: each with a cell for every column. Numbers must be finite.
        format: The format of the file.

    Raises:
        MissingExtraError: It is Parquet, and pyarrow is not installed.
        InvalidValueError: The format is not known.

    Examples:
        >>> encoded([Column("id"), Column("price", "number")], [[("=1", 2.5)], [("b", None)]], "csv")
        b"id,price\n'=1,2.5\nb,\n"
        >>> encoded([Column("id"), Column("new", "flag")], [[("=1", True)]], "jsonl")
        b'{"id": "=1", "new": true}\n'
    """
    content = BytesIO()
    TABLE_FORMATS[checked_format(format, FINAL_FORMATS)].write(columns, chunks, content)
    return content.getvalue()


def write_rows(path: Path, columns: Sequence[Column], chunks: Iterable[Rows], format: Format) -> int:
    """Write rows to a file, some at a time, and return their number; the content is that of :func:`encoded`.

    Args:
        path: The file.
        columns: The columns.
        chunks: The rows, some at a time.
        format: The format of the file.

    Raises:
        MissingExtraError: It is Parquet, and pyarrow is not installed.
        InvalidValueError: The format is not known.
    """
    count = 0

    def counted() -> Iterator[Rows]:
        nonlocal count
        for rows in chunks:
            count += len(rows)
            yield rows

    known = TABLE_FORMATS[checked_format(format, FINAL_FORMATS)]
    with path.open("wb") as file:
        known.write(columns, counted(), file)
    return count


def harmless(text: str) -> str:
    """Return the text in a form that is safe in a spreadsheet: after an apostrophe if it could be read as a formula.

    This is the case if, after spaces and invisible characters, it begins with ``= + - @``, with a full-width or small
    form of these, or with a tab, a line break or another control character; unless it is a plain number, also one with
    a decimal comma. Apostrophes at the beginning of such a text are ignored in this check, so that :func:`exact`
    restores every text.

    Examples:
        >>> harmless("=1+1"), harmless("-1.5"), harmless("-1,5"), harmless("'=1+1"), harmless("'tis"), harmless("a = b")
        ("'=1+1", '-1.5', '-1,5', "''=1+1", "'tis", 'a = b')
    """
    return f"'{text}" if _is_risky(text) else text


def exact(cell: str) -> str:
    """Return the text of a cell that :func:`harmless` returned.

    Examples:
        >>> exact("'=1+1"), exact("'tis"), exact("''=1+1")
        ('=1+1', "'tis", "'=1+1")
    """
    return cell[1:] if cell.startswith("'") and _is_risky(cell) else cell


def _is_risky(text: str) -> bool:
    if text[:1] in _PLAIN:
        return False
    bare = text.lstrip("'")
    for letter in bare:
        kind = category(letter)
        if kind[0] != "Z" and kind != "Cf":
            # Compatibility forms of a sign (full-width, small, superscript) are normalised to that sign.
            risky = kind == "Cc" or normalize("NFKC", letter)[0] in "=+-@"
            return risky and _NUMBER.fullmatch(bare) is None
    return False


def write_csv(columns: Sequence[Column], chunks: Iterable[Rows], file: BinaryIO) -> None:
    """Write rows as a CSV that is safe in spreadsheets, see :func:`harmless`."""
    file.write(_line([_quoted(harmless(column.name)) for column in columns]).encode("utf-8", "backslashreplace"))
    for rows in chunks:
        # Cells of one column have the same type and are processed much faster than those of a row.
        lines = map(_line, zip(*map(_shown_column, zip(*rows, strict=True)), strict=True))
        file.write("".join(lines).encode("utf-8", "backslashreplace"))


def _line(cells: Sequence[str]) -> str:
    # An empty line would not be read as a row.
    return f"{','.join(cells)}\n" if len(cells) > 1 or cells[0] else '""\n'


def _quoted(text: str) -> str:
    """Return a text as a cell, in quotes if it contains a separator, a quote or a line break."""
    return '"' + text.replace('"', '""') + '"' if _SPECIAL.search(text) else text


def _shown_column(cells: Sequence[Any]) -> list[str]:
    kinds = set(map(type, cells))
    if kinds == {str}:
        shown = [cell if cell[:1] in _PLAIN else harmless(cell) for cell in cells]
        return list(map(_quoted, shown)) if _SPECIAL.search("".join(shown)) else shown
    if kinds == {float}:
        # The JSON encoder formats numbers like Python, many at a time.
        return f"{json.dumps(cells)[1:-1]}, ".replace(".0, ", ", ").split(", ")[:-1]
    if kinds == {bool}:
        return ["true" if cell else "false" for cell in cells]
    return [_quoted(_shown(cell)) for cell in cells]


def _shown(cell: Cell) -> str:
    if isinstance(cell, str):
        return harmless(cell)
    if cell is None:
        return ""
    return str(cell).lower() if isinstance(cell, bool) else repr(cell).removesuffix(".0")


def write_json_lines(columns: Sequence[Column], chunks: Iterable[Rows], file: BinaryIO) -> None:
    """Write rows as one JSON object a line."""
    names = [column.name for column in columns]
    encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
    for rows in chunks:
        lines = (encode(dict(zip(names, row, strict=True))) + "\n" for row in rows)
        # A lone surrogate, from the name of a file, is written as a JSON escape.
        file.write("".join(lines).encode("utf-8", "backslashreplace"))


def write_parquet(columns: Sequence[Column], chunks: Iterable[Rows], file: BinaryIO) -> None:
    """Write rows as Parquet.

    Raises:
        MissingExtraError: pyarrow is not installed.
    """
    try:
        arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError:
        raise MissingExtraError("pyarrow", "parquet", "Writing Parquet") from None
    types = {kind: getattr(arrow, name)() for kind, name in ARROW_TYPES.items()}
    schema = arrow.schema([(whole_letters(column.name), types[column.kind]) for column in columns])
    with parquet.ParquetWriter(file, schema) as writer:
        for rows in chunks:
            arrays = [
                arrow.array([whole_letters(row[at]) for row in rows], type=field.type)
                for at, field in enumerate(schema)
            ]
            writer.write_table(arrow.Table.from_arrays(arrays, schema=schema))


def whole_letters(cell: Any) -> Any:
    """Return a text without lone surrogates, which UTF-8 cannot encode; other values are returned unchanged."""
    if isinstance(cell, str) and not cell.isascii():
        return cell.encode("utf-8", "backslashreplace").decode()
    return cell


def finite_cells(values: "NDArray[Any]") -> list[Any]:
    """Return cells that every format supports: None in place of NaN and infinity."""
    listed: list[Any] = values.tolist()
    if values.dtype.kind == "f" and np.isfinite(values).all():
        return listed
    return [None if isinstance(value, float) and not math.isfinite(value) else value for value in listed]


def distinct(names: Sequence[str], taken: Iterable[str] = ()) -> list[str]:
    """Return names that differ from each other and from those that are taken, with a number appended if necessary.

    Examples:
        >>> distinct(["id", "label", "id"], taken=["label"])
        ['id', 'label_2', 'id_2']
    """
    used = set(taken)

    def free(name: str) -> str:
        found = next(each for each in _numbered(name) if each not in used)
        used.add(found)
        return found

    return [free(name) for name in names]


def _numbered(name: str) -> Iterator[str]:
    yield name
    number = 2
    while True:
        yield f"{name}_{number}"
        number += 1
