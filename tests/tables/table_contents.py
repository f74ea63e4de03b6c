"""The contents of tables as plain lists, for tests of the readers."""

from pathlib import Path
from typing import Any

import numpy as np

from suffice.tables.file_reader import read_columns
from suffice.tables.table_columns import TableColumns, Texts

Plain = list[float | str | None]


def read(content: str | bytes, name: str = "table.csv") -> TableColumns:
    """Write a file and read it."""
    Path(name).write_bytes(content.encode() if isinstance(content, str) else content)
    return read_columns(Path(name))


def plain(col: "np.ndarray[Any, Any] | Texts") -> Plain:
    """A column as a list, None where missing."""
    if isinstance(col, Texts):
        return [col.levels[code] if code >= 0 else None for code in col.codes]
    return [None if np.isnan(value) else float(value) for value in col]


def content(file: TableColumns) -> dict[str, Plain]:
    """The columns by name."""
    return {name: plain(col) for name, col in zip(file.names, file.columns, strict=True)}


def cells(file: TableColumns) -> list[tuple[str, ...]]:
    """The cells of each row; those of each column are the same."""
    rows = [*map(tuple, file.cells())]
    assert [*zip(*map(file.cells_of, file.names), strict=True)] == rows
    return rows
