"""Types of the cells of a final file: numbers in columns of texts, and the types of a Parquet file."""

import re
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import Any, Final

from suffice.tables.file_writer import ARROW_TYPES, Cell, Column, Rows, finite_cells, whole_letters
from suffice.tables.parquet_reader import arrow_texts, opened_parquet
from suffice.tables.table_columns import MISSING

# A number whose form says that it is one: "007" is a name.
_WHOLE: Final = re.compile(r"-?(?:0|[1-9][0-9]{0,17})", re.ASCII)
_DECIMAL: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,2})?", re.ASCII)
# Numbers with more digits lose some of them as floating-point numbers.
_MOST_DIGITS: Final = 15


def with_number_columns(columns: Sequence[Column], chunks: Iterable[Rows]) -> list[Column]:
    """The columns, with those of texts that hold numbers only as columns of numbers.

    A column is one of numbers if each cell that is not missing is a number, and one is.

    Args:
        columns: The columns.
        chunks: The rows, some at a time.

    Examples:
        >>> rows = [("007", "1.50", "2"), ("8", "", "NA")]
        >>> [column.kind for column in with_number_columns([Column("id"), Column("a"), Column("b")], [rows])]
        ['text', 'number', 'count']
    """
    kinds: dict[int, str] = {k: "" for k, column in enumerate(columns) if column.kind == "text"}
    for rows in chunks:
        if not any(kind != "text" for kind in kinds.values()):
            break
        for k in [k for k, kind in kinds.items() if kind != "text"]:
            found = {_kind(row[k]) for row in rows} - {""}
            kinds[k] = _joined({kinds[k], *found} - {""})
    return [
        column._replace(kind=kinds[k]) if kinds.get(k) in ("count", "number") else column  # type: ignore[arg-type]
        for k, column in enumerate(columns)
    ]


def typed_chunks(columns: Sequence[Column], chunks: Iterable[Rows]) -> Iterator[Rows]:
    """The rows with numbers for the texts in columns of numbers, and None for empty cells.

    Args:
        columns: The columns, see :func:`with_number_columns`.
        chunks: The rows, some at a time.

    Examples:
        >>> columns = [Column("a"), Column("b", "number"), Column("c", "count")]
        >>> [*typed_chunks(columns, [[("", "1.50", "2"), ("x", "NA", "?")]])]
        [[(None, 1.5, 2), ('x', None, None)]]
    """
    kinds = [column.kind for column in columns]
    for rows in chunks:
        yield [tuple(map(_typed, row, kinds)) for row in rows]


def parquet_cells(path: Path, names: Sequence[str]) -> list[list[Cell]]:
    """The cells of some columns of a Parquet file, with numbers, flags and None as such; others are texts.

    Args:
        path: The file.
        names: Names of the columns.
    """
    arrow = import_module("pyarrow")
    table = opened_parquet(path).read().select(list(names))
    return [_cells_of(arrow, values) for values in table.columns]


def extended_parquet(path: Path, names: Sequence[str], columns: Sequence[Column], rows: Rows) -> bytes:
    """Columns of a Parquet file, with their types and missing values, and further columns, as a Parquet file.

    Args:
        path: The file.
        names: Names of its columns that are written.
        columns: The further columns.
        rows: Their cells, for each row of the file.
    """
    arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    # Metadata of other programs name columns that are not written.
    table = opened_parquet(path).read().select(list(names)).replace_schema_metadata(None)
    for k, column in enumerate(columns):
        kind = getattr(arrow, ARROW_TYPES[column.kind])()
        values = arrow.array([whole_letters(row[k]) for row in rows], type=kind)
        table = table.append_column(arrow.field(whole_letters(column.name), kind), values)
    content = BytesIO()
    parquet.write_table(table, content)
    return content.getvalue()


def _cells_of(arrow: Any, values: Any) -> list[Cell]:
    kind = values.type
    if arrow.types.is_boolean(kind) or arrow.types.is_integer(kind):
        cells: list[Cell] = values.to_pylist()
        return cells
    if arrow.types.is_floating(kind):
        return finite_cells(values.to_numpy())
    missing = values.is_null().to_pylist()
    return [None if gone else text for text, gone in zip(arrow_texts(arrow, values), missing, strict=True)]


def _kind(cell: Cell) -> str:
    """The kind of column that a cell belongs to; empty for a missing cell."""
    if not isinstance(cell, str):
        return "" if cell is None else "text"
    text = cell.strip()
    if text in MISSING:
        return ""
    if _WHOLE.fullmatch(text):
        return "count"
    number = _DECIMAL.fullmatch(text)
    return "number" if number and len(re.sub("[^0-9]", "", text)) <= _MOST_DIGITS else "text"


def _joined(kinds: set[str]) -> str:
    if kinds == {"count", "number"}:
        return "number"
    return kinds.pop() if len(kinds) == 1 else "text" if kinds else ""


def _typed(cell: Cell, kind: str) -> Cell:
    if not isinstance(cell, str):
        return cell
    if kind not in ("count", "number"):
        return cell or None
    text = cell.strip()
    return None if text in MISSING else int(text) if kind == "count" else float(text)
