"""Columns of predictions made elsewhere: classes or numbers, probabilities and groups, without missing values."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.errors import InvalidValueError
from suffice.numerics import Floats
from suffice.project.settings import Settings
from suffice.tables.table_columns import Column, TableColumns, Texts, number_name


def predicted_column(file: TableColumns, name: str, *, constant: bool = False) -> Column:
    """A column of predictions without missing values, and with several different ones unless ``constant``."""
    values = file[name]
    missing = np.flatnonzero(values.codes < 0 if isinstance(values, Texts) else np.isnan(values))
    if len(missing):
        others = f" and {len(missing) - 1:,} more rows" if len(missing) > 1 else ""
        raise InvalidValueError(
            f"{file.place(int(missing[0]))}{others}: column {name!r} has no prediction; fill it in, or leave these "
            "rows out of the file"
        )
    levels = values.levels if isinstance(values, Texts) else np.unique(values)
    if len(levels) == 1 and len(file) > 1 and not constant:
        raise InvalidValueError(
            f"column {name!r} has the same prediction {_shown(levels[0])} in all {len(file):,} rows; name another "
            "column with --prediction"
        )
    return values


def _shown(value: Any) -> str:
    return repr(value if isinstance(value, str) else number_name(float(value)))[:80]


def class_codes(values: Column) -> tuple[tuple[str, ...], NDArray[np.intp]]:
    """The different values of a column as texts, and the number of the value of each row; -1 if it is missing."""
    if isinstance(values, Texts):
        return values.levels, values.codes
    levels, codes = np.unique(values, return_inverse=True)
    return tuple(map(number_name, levels.tolist())), codes.astype(np.intp)


def probability_column(file: TableColumns, name: str) -> Floats:
    """A column of numbers from 0 to 1."""
    values = file[name]
    if isinstance(values, Texts):
        raise InvalidValueError(f"--probability: column {name!r} has texts; it must have numbers from 0 to 1")
    bad = np.flatnonzero(~((values >= 0.0) & (values <= 1.0)))
    if len(bad):
        row = int(bad[0])
        value = "no number" if np.isnan(values[row]) else number_name(float(values[row]))
        raise InvalidValueError(
            f"--probability: {file.place(row)} has {value} in column {name!r}, and a probability is from 0 to 1"
        )
    return np.asarray(values, dtype=np.float64)


def group_codes(file: TableColumns, name: str) -> tuple[tuple[str, ...], Floats]:
    """The groups of a column, and the number of the group of each row."""
    values = file[name]
    missing = np.flatnonzero(values.codes < 0 if isinstance(values, Texts) else np.isnan(values))
    if len(missing):
        raise InvalidValueError(
            f"--group: {file.place(int(missing[0]))} has no value in column {name!r}; give these rows a group too"
        )
    levels, codes = class_codes(values)
    if len(levels) > 1000 or len(levels) == len(file):
        raise InvalidValueError(
            f"--group: column {name!r} has {len(levels):,} different values; at most 1,000 groups are possible, each "
            "with several rows"
        )
    return levels, codes.astype(np.float64)


def added_features(settings: Settings, table: TableColumns) -> Floats:
    """The features of rows that are added to a project with predictions made elsewhere.

    Args:
        settings: Settings of the project.
        table: The rows, with the columns of the project.

    Raises:
        InvalidValueError: A value is missing, or the project does not have its class or group.
    """
    checked = settings.checked
    assert checked is not None
    parts: list[Floats] = []
    for name in checked.columns:
        values = predicted_column(table, name, constant=True)
        if checked.answer == "verdict":
            parts.append(np.zeros(len(table)))
        elif settings.classes:
            parts.append(_known(values, settings.classes, f"column {name!r} has the prediction", "classes"))
        elif isinstance(values, Texts):
            raise InvalidValueError(f"column {name!r} has texts, and the predictions of this project are numbers")
        else:
            parts.append(values)
    if checked.probability is not None:
        parts.append(probability_column(table, checked.probability))
    if checked.group is not None:
        parts.append(_known(table[checked.group], checked.groups, f"column {checked.group!r} has", "groups"))
    return np.column_stack(parts)


def _known(values: Column, names: Sequence[str], what: str, kind: str) -> Floats:
    places = {name: place for place, name in enumerate(names)}
    levels, codes = class_codes(values)
    unknown = [level for level in levels if level.strip() not in places]
    if unknown or (codes < 0).any():
        raise InvalidValueError(
            f"{what} {unknown[0] if unknown else 'nothing in a row'!r}, which is none of the {kind} of the project: "
            f"{', '.join(names[:20])}; check such rows in a project of their own"
        )
    return np.array([places[level.strip()] for level in levels], dtype=np.float64)[codes]
