"""Columns of a table: numbers or texts, from a file or from data in memory, with the same rules for all."""

import math
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import date
from itertools import count, islice
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from suffice.errors import InvalidTypeError, InvalidValueError
from suffice.numerics import Floats
from suffice.tables.table_cells import CellColumns, TableCells

#: Cells that mean "missing", after spaces around them are removed.
MISSING: Final = frozenset({"", "NA", "N/A", "#N/A", "NaN", "nan", "null", "NULL", "None", "?"})


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
        numbers = []
        for level in self.levels:
            number = as_number(level.replace(decimal, "."))
            if number is None:
                return None
            numbers.append(number)
        return np.array([*numbers, math.nan], dtype=np.float64)[self.codes]

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
        cells: Returns the cells of each data row as they are in the file, empty where missing. By default they are not
            stored, because numbers as text take several times the memory; then the content is parsed again.
        header: What names the columns in the file, such as "first line"; empty if the names are not in a row.
        column_cells: The cells of one column, by its number, if they can be read without those of the others.
        of_cells: Whether it is known that the columns are those of :func:`column` of the cells.
    """

    names: tuple[str, ...]
    columns: tuple[Column, ...]
    notes: tuple[str, ...]
    place: Callable[[int], str]
    cells: Callable[[], TableCells]
    header: str = ""
    column_cells: Callable[[int], Sequence[str]] | None = None
    of_cells: bool = False

    def __len__(self) -> int:
        return len(self.columns[0]) if self.columns else 0

    def __getitem__(self, name: str) -> Column:
        return self.columns[self.names.index(name)]

    def texts(self, name: str) -> Texts:
        """Return a column as texts, even if all of them are numbers."""
        column = self[name]
        return column if isinstance(column, Texts) else as_texts(self.cells_of(name))

    def cells_of(self, name: str) -> Sequence[str]:
        """Return the cells of a column as they are in the file, empty where missing."""
        k = self.names.index(name)
        return self.cells().column(k) if self.column_cells is None else self.column_cells(k)

    def selected(self, names: Sequence[str], rows: NDArray[np.intp]) -> "TableColumns":
        """Return some columns at some rows; the notes are left out."""

        def cells() -> TableCells:
            every = self.cells().selected([self.names.index(name) for name in names])
            if np.array_equal(rows, np.arange(len(every))):
                return every
            return CellColumns([_at(every.column(k), rows) for k in range(len(names))], len(rows))

        def column_cells(k: int) -> list[str]:
            return _at(self.cells_of(names[k]), rows)

        columns = tuple(self[name][rows] for name in names)
        return TableColumns(
            tuple(names),
            columns,
            (),
            lambda row: self.place(int(rows[row])),
            cells,
            self.header,
            None if self.column_cells is None else column_cells,
        )


def _at(cells: Sequence[str], rows: NDArray[np.intp]) -> list[str]:
    return [cells[row] for row in rows.tolist()]


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


def as_texts(cells: Sequence[str], missing: Set[str] = MISSING) -> Texts:
    """Return cells as texts, even if all of them are numbers.

    Args:
        cells: The cells.
        missing: Cells that mean "missing", after spaces around them are removed.

    Examples:
        >>> as_texts(["7", " 7", "NA"]).levels
        ('7',)
    """
    # One dictionary, and no loop in Python: a text that is not in it yet gets the next code.
    codes = defaultdict(count().__next__, dict.fromkeys(missing, -1))
    found = np.fromiter(map(codes.__getitem__, map(str.strip, cells)), np.intp, len(cells))
    return Texts(tuple(islice(codes, len(missing), None)), found)


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
        data: :class:`TableColumns`, which are returned unchanged; a mapping from column names to values; a pandas
            or polars DataFrame; or a Hugging Face ``Dataset``, whose class labels become their names. Values are
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
    distinct = distinct_names([str(name) for name in names], "the data")
    columns = tuple(map(_from_values, values))
    lengths = {name: len(column) for name, column in zip(distinct, columns, strict=True)}
    if len(set(lengths.values())) > 1:
        raise InvalidValueError(f"the columns of the data must have the same length; the lengths are {lengths}")

    def cells() -> CellColumns:
        return CellColumns([*map(_cell_texts, values)])

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
    return [cell_text(value) for value in values]


def cell_text(value: Any) -> str:
    """Return a value as the text of a cell in a CSV file."""
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        return "" if math.isnan(value) else number_name(value)
    text = value.isoformat() if isinstance(value, date) else str(value)
    # numpy and pandas have missing dates, and pandas a missing value for all types.
    return "" if text in {"None", "NaT", "<NA>"} else text


def distinct_names(names: Sequence[str], source: object) -> tuple[str, ...]:
    """Return the names of the columns of a source.

    Raises:
        InvalidValueError: Two are the same.
    """
    name, times = Counter(names).most_common(1)[0] if names else ("", 0)
    if times > 1:
        remedy = "rename them, or add a first line of names if there is none"
        raise InvalidValueError(f"{source}: {times} columns are named {name!r}, and names must be distinct; {remedy}")
    return tuple(names)
