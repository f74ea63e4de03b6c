"""Parquet files to columns, with pyarrow."""

import json
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any, Final

import numpy as np

from suffice.errors import InvalidValueError, MissingExtraError
from suffice.tables.file_content import content_of, row_after
from suffice.tables.table_cells import CellColumns, TableCells
from suffice.tables.table_columns import Column, TableColumns, Texts, as_texts, column, distinct_names

#: Parquet files of more bytes than this are read column by column, and their cells a batch at a time.
LARGE_PARQUET: Final = 2**24


def read_parquet(path: Path, progress: Callable[[int, int], None] | None = None) -> TableColumns:
    """Read a Parquet file; see :func:`suffice.tables.file_reader.read_columns`."""
    large = path.is_file() and path.stat().st_size > LARGE_PARQUET
    return _read_large_parquet(path, progress) if large else _read_parquet(content_of(path), path)


def parquet_chunks(path: Path, rows: int) -> Iterator[TableColumns]:
    """Read some rows at a time; see :func:`suffice.tables.file_reader.read_chunks`."""
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
            names = distinct_names(table.column_names, path)
            texts = [arrow_texts(arrow, values) for values in table.columns]
            columns = tuple(_from_arrow(arrow, values) for values in table.columns)
            cells = CellColumns(texts)
            yield TableColumns(names, columns, (), row_after(first), lambda cells=cells: cells)  # type: ignore[misc]
            first += table.num_rows
    except FileNotFoundError:
        raise InvalidValueError(f"there is no file {path}; check the name and the folder") from None
    except (OSError, ValueError) as error:
        raise InvalidValueError(f"{path} is not a Parquet file that can be read: {error}") from None


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
    for name, values in zip(distinct_names(table.column_names, path), table.columns, strict=True):
        try:
            columns[name] = _from_arrow(arrow, values)
        except arrow.ArrowException:
            notes.append(f"column {name!r} left out: {values.type} is neither numbers nor text")

    def cells() -> CellColumns:
        again = read()
        return CellColumns([arrow_texts(arrow, again.column(name)) for name in columns])

    def column_cells(k: int) -> list[str]:
        return arrow_texts(arrow, read().column([*columns][k]))

    return TableColumns(
        tuple(columns), tuple(columns.values()), tuple(notes), row_after(0), cells, column_cells=column_cells
    )


# Rows of a Parquet file whose cells are in memory at a time.
_BATCH: Final = 50_000


class ParquetCells(TableCells):
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
            yield [arrow_texts(arrow, batch.column(k)) for k in range(batch.num_columns)]

    def _read(self) -> Iterator[Any]:
        """Yield batches of Arrow, with the columns in the order of ``columns``."""
        file = opened_parquet(self._path)
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
        arrow, schema = import_module("pyarrow"), opened_parquet(self._path).schema_arrow
        return [
            k for k, number in enumerate(self._columns) if not _is_number(arrow, _kind(arrow, schema.field(number)))
        ]

    def changed(self, change: Callable[[list[str]], list[str]]) -> TableCells:
        """See :meth:`TableCells.changed`. Columns are read one at a time, and stay in the file if none changes."""
        parts = (texts[0] for k in self.text_columns() for texts in self.selected([k]).batches())
        if all(change(part) is part for part in parts):
            return self
        return CellColumns([self.column(k) for k in range(len(self._columns))], self._size).changed(change)

    def column(self, k: int) -> list[str]:
        """All cells of one column."""
        return [text for texts in self.selected([k]).batches() for text in texts[0]]


def opened_parquet(path: Path) -> Any:
    """Open a Parquet file.

    Raises:
        MissingExtraError: pyarrow is not installed.
        InvalidValueError: It cannot be read.
    """
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
    file = opened_parquet(path)
    arrow, size = import_module("pyarrow"), int(file.metadata.num_rows)
    names = distinct_names(file.schema_arrow.names, path)
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
        tuple(columns), tuple(columns.values()), tuple(notes), row_after(0), lambda: cells, column_cells=cells.column
    )


def _column_of(arrow: Any, values: Any) -> Column:
    """As :func:`_from_arrow`; texts are compared by Arrow, and only distinct ones become Python objects."""
    kind = _kind(arrow, values)
    if _is_number(arrow, kind):
        return _from_arrow(arrow, values)
    encoded = _as_strings(arrow, values).dictionary_encode().unify_dictionaries()
    if not encoded.num_chunks:
        return column([])
    levels = arrow_texts(arrow, encoded.chunk(0).dictionary)
    codes = np.concatenate([part.indices.fill_null(len(levels)).to_numpy() for part in encoded.chunks])
    distinct = as_texts([*levels, ""])
    texts = Texts(distinct.levels, distinct.codes[codes])
    found = texts.numbers()
    return texts if found is None else found


def _from_arrow(arrow: Any, values: Any) -> Column:
    kind = _kind(arrow, values)
    if _is_number(arrow, kind):
        return np.array(values.cast(kind).cast(arrow.float64(), safe=False).to_numpy(), dtype=np.float64)
    return column(arrow_texts(arrow, values))


def _number_texts(compute: Any, values: Any) -> Any:
    """Numbers as texts of Arrow, empty where missing, as :func:`arrow_texts` writes them."""
    arrow = import_module("pyarrow")
    return compute.fill_null(values.cast(_kind(arrow, values)).cast(arrow.string()), "")


def _is_number(arrow: Any, kind: Any) -> bool:
    return any(getattr(arrow.types, f"is_{name}")(kind) for name in ("integer", "floating", "decimal"))


def _kind(arrow: Any, values: Any) -> Any:
    return values.type.value_type if arrow.types.is_dictionary(values.type) else values.type


def _as_strings(arrow: Any, values: Any) -> Any:
    """Values as strings of Arrow; a date without a time of day is written without one, as from an Excel sheet."""
    kind = _kind(arrow, values)
    texts = values.cast(kind).cast(arrow.string())
    if not arrow.types.is_timestamp(kind) or kind.tz is not None:
        return texts
    return import_module("pyarrow.compute").replace_substring_regex(texts, r"( 00:00:00)?(\.0+)?$", "")


def arrow_texts(arrow: Any, values: Any) -> list[str]:
    """Values of Arrow as texts, empty where missing."""
    # Dates become ISO dates and booleans "true" and "false", as in a CSV file.
    texts = _as_strings(arrow, values)
    try:
        return [text or "" for text in texts.to_pylist()]
    except UnicodeDecodeError:
        # Parquet files may contain text that is not valid UTF-8.
        return [(text or b"").decode("utf-8", "replace") for text in texts.cast(arrow.binary()).to_pylist()]
