"""Tables in memory: pandas and polars DataFrames, and mappings from column names to values."""

import math
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from suffice.errors import InvalidTypeError, InvalidValueError
from suffice.tables.file_reader import TableColumns, column


def is_path(data: Any) -> bool:
    """Whether data is the path of a file or folder."""
    return isinstance(data, str | os.PathLike)


def in_memory_columns(data: Any) -> TableColumns:
    """Return the columns of a DataFrame (pandas or polars) or of a mapping from names to values.

    A value is read as the text that it would be in a CSV file; None, NaN and the missing values of pandas are empty.

    Raises:
        InvalidTypeError: The data is something else.
        InvalidValueError: There are no columns, two have the same name, or they differ in length.

    Examples:
        >>> table = in_memory_columns({"size": [1, None, 3.5], "fuel": ["gas", "diesel", "gas"]})
        >>> table.columns[0], table.cells()[1]
        (array([1. , nan, 3.5]), ('', 'diesel'))
    """
    # DataFrames are recognised by their methods, because neither package is a dependency.
    if isinstance(data, Mapping):
        names, values = list(data), list(data.values())
    elif hasattr(data, "columns") and hasattr(data, "iloc"):
        names, values = list(data.columns), [data.iloc[:, k] for k in range(len(data.columns))]
    elif hasattr(data, "columns") and hasattr(data, "get_columns"):
        names, values = list(data.columns), list(data.get_columns())
    else:
        raise InvalidTypeError(
            "data must be a DataFrame, a list of texts, or the path of a file or folder, not "
            f"{type(data).__name__}; wrap other tables in a DataFrame"
        )
    distinct = [str(name) for name in names]
    name, times = Counter(distinct).most_common(1)[0] if distinct else ("", 0)
    if times > 1:
        raise InvalidValueError(f"the data has {times} columns named {name!r}, and names must be distinct; rename them")
    texts = [[_cell(value) for value in each] for each in values]
    lengths = {name: len(each) for name, each in zip(distinct, texts, strict=True)}
    if not lengths or max(lengths.values()) == 0:
        raise InvalidValueError(f"the data has no {'rows' if lengths else 'columns'}; at least 2 items are required")
    if len(set(lengths.values())) > 1:
        raise InvalidValueError(f"the columns of the data must have the same length; the lengths are {lengths}")

    def cells() -> list[Sequence[str]]:
        return [*zip(*texts, strict=True)]

    return TableColumns(tuple(distinct), tuple(map(column, texts)), (), lambda row: f"row {row + 1} of the data", cells)


def _cell(value: Any) -> str:
    """A value as the text that a CSV file would have."""
    if isinstance(value, str):
        return value
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, date):
        text = value.isoformat()
    elif isinstance(value, float) and value.is_integer():
        # pandas stores whole numbers as floats where one is missing.
        text = str(int(value))
    else:
        text = str(value)
    # Missing dates, and the missing value of pandas for all types.
    return "" if text in {"NaT", "<NA>"} else text
