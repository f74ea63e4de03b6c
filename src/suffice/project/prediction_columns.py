"""Columns of predictions made elsewhere: classes or numbers, probabilities and groups, without missing values."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from suffice.errors import InvalidValueError
from suffice.numerics import Floats
from suffice.presentation.text_format import count
from suffice.project.settings import Settings
from suffice.tables.table_columns import MISSING, Column, TableColumns, Texts, as_number, as_texts, number_name


def class_column(file: TableColumns, name: str, classes: Sequence[str] = ()) -> Column:
    """A column, in which a text such as None or N/A is missing unless it is one of the classes.

    Args:
        file: The table.
        name: The column.
        classes: Classes that were named.
    """
    named = MISSING & set(classes)
    if not named:
        return file[name]
    found = as_texts(file.cells_of(name), MISSING - named)
    numbers = {level: as_number(level) for level in found.levels if level not in classes}
    names = [level if numbers.get(level) is None else number_name(numbers[level] or 0.0) for level in found.levels]
    levels = tuple(dict.fromkeys(names))
    places = {level: place for place, level in enumerate(levels)}
    return Texts(levels, np.array([*(places[level] for level in names), -1], dtype=np.intp)[found.codes])


def predicted_column(
    file: TableColumns, name: str, classes: Sequence[str] = (), *, constant: bool = False, complete: bool = True
) -> Column:
    """A column of predictions without missing values, and with several different ones unless ``constant``.

    Args:
        file: The table.
        name: The column.
        classes: Classes that were named; all must be there if ``complete``.
        constant: Whether the same prediction in all rows is allowed.
        complete: Whether the named classes must be all that are predicted.
    """
    values = class_column(file, name, classes)
    missing = np.flatnonzero(values.codes < 0 if isinstance(values, Texts) else np.isnan(values))
    if len(missing):
        row = int(missing[0])
        others = f" and {count(len(missing) - 1, 'more row')}" if len(missing) > 1 else ""
        text = file.cells_of(name)[row].strip()
        what = "has no prediction" if not text else f"has {text!r}, which is read as empty"
        remedy = "fill it in, or leave these rows out of the file"
        if text:
            remedy += "; if it is a class, name all classes with --classes"
        raise InvalidValueError(f"{file.place(row)}{others}: column {name!r} {what}; {remedy}")
    distinct = len(values.levels if isinstance(values, Texts) else np.unique(values))
    if distinct == 1 and len(file) > 1 and not constant:
        raise InvalidValueError(
            f"column {name!r} has the same prediction {_shown(class_codes(values)[0][0])} in all {len(file):,} rows; "
            "name another column with --prediction"
        )
    unknown = [level for level in class_codes(values)[0] if level.strip() not in classes] if classes else []
    if unknown and complete:
        raise InvalidValueError(
            f"--classes leaves out {_shown(unknown[0])}, which column {name!r} predicts; name all classes"
        )
    return values


def _shown(value: str) -> str:
    return repr(value)[:80]


def class_codes(values: Column) -> tuple[tuple[str, ...], NDArray[np.intp]]:
    """The different values of a column as texts, and the number of the value of each row; -1 if it is missing."""
    if isinstance(values, Texts):
        return values.levels, values.codes
    known = ~np.isnan(values)
    codes = np.full(len(values), -1, dtype=np.intp)
    levels, codes[known] = np.unique(values[known], return_inverse=True)
    return tuple(map(number_name, levels.tolist())), codes


def probability_column(file: TableColumns, name: str) -> Floats:
    """A column of numbers from 0 to 1, or of percentages such as 93%."""
    values = file[name]
    if isinstance(values, Texts):
        percents = [as_number(level[:-1].replace(",", ".")) for level in values.levels if level.endswith("%")]
        if len(percents) < len(values.levels) or None in percents:
            raise InvalidValueError(
                f"--probability: column {name!r} has texts; it must have numbers from 0 to 1, or percentages such as "
                "93% in all rows"
            )
        values = np.array([*(number or 0.0 for number in percents), np.nan], dtype=np.float64)[values.codes] / 100.0
    bad = np.flatnonzero(~((values >= 0.0) & (values <= 1.0)))
    if len(bad):
        row = int(bad[0])
        value = "no number" if np.isnan(values[row]) else number_name(float(values[row]))
        remedy = "; divide the column by 100" if 1.0 < values[row] <= 100.0 and np.nanmax(values) <= 100.0 else ""
        raise InvalidValueError(
            f"--probability: {file.place(row)} has {value} in column {name!r}, and a probability is from 0 to 1{remedy}"
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
        values = predicted_column(table, name, settings.classes, constant=True, complete=False)
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
