"""Columns to features by their type, with a sentence about each conversion."""

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from suffice.errors import InvalidValueError
from suffice.numerics import Floats
from suffice.tables.table_columns import Column, TableColumns, Texts, as_number

ColumnKind = Literal["number", "date", "boolean", "category", "text"]

_MOST_CATEGORIES: Final = 30
# Different values of a column whose words are counted.
_COUNTED_TEXTS: Final = 10_000
# The share of rows that counts as "nearly every row": a column may contain a few errors.
_NEARLY_ALL: Final = 0.95
_ROW_NUMBER: Final = re.compile(r"(.*[ _.-])?(id|index)|column 1|unnamed: 0|__index_level_0__", re.IGNORECASE)
_ISO_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?)?")
# Dates in other forms are read as words.
_OTHER_DATE: Final = re.compile(r"(\d{4}([./-])\d\d?\2\d\d?|\d\d?([./-])\d\d?\3(\d\d){1,2})([T ]\d\d?:.*)?")
_BOOLEAN: Final = {"true": 1.0, "yes": 1.0, "false": 0.0, "no": 0.0}
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Features(NamedTuple):
    """Features of a table or of images.

    Attributes:
        X: Features, ``n x d``.
        names: Names of the ``d`` features; empty if nothing could be used.
        notes: Descriptions of the conversions, in sentences for the user.
        transformer: Fitted transformer, which returns the same features for new rows. None if the features were given.
        components: First column and column after the last of each group of components that a classifier chooses from.
    """

    X: Floats
    names: tuple[str, ...]
    notes: tuple[str, ...]
    transformer: Any = None
    components: tuple[tuple[int, int], ...] = ()


class ColumnType(NamedTuple):
    """Type of a column.

    Attributes:
        kind: None if the column is left out.
        notes: Sentences about the decision, for the user.
        categories: For a column of categories: the values that have their own features, in the order of the features.
    """

    kind: ColumnKind | None
    notes: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()


def counted(number: int, noun: str) -> str:
    """Return a number and a noun, in the plural if needed.

    Examples:
        >>> counted(1, "row"), counted(2, "category")
        ('1 row', '2 categories')
    """
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number} {noun if number == 1 else plural}"


def short(text: str) -> str:
    """Return at most 40 characters of a text, in quotes."""
    return repr(text if len(text) <= 40 else f"{text[:37]}...")


def not_a_number(texts: Texts, place: Callable[[int], str]) -> str:
    """Return the position and the text of the first value that is not a number."""
    return _first_at(texts, next(k for k, level in enumerate(texts.levels) if as_number(level) is None), place)


def _first_at(texts: Texts, code: int, place: Callable[[int], str]) -> str:
    return f"{place(int(np.argmax(texts.codes == code)))} holds {short(texts.levels[code])}"


def column_type(name: str, column: Column, place: Callable[[int], str]) -> ColumnType:
    """Return the type of a column; :func:`suffice.tables.table.read_table` lists the rules.

    Args:
        name: Name of the column.
        column: Its values.
        place: Position of a row in the file, for notes.

    Examples:
        >>> column_type("size", np.array([1.0, 2.0, 3.0]), str).kind
        'number'
        >>> column_type("id", np.array([1.0, 2.0, 3.0]), str).notes
        ("column 'id' left out: a different value in every row",)
    """
    if isinstance(column, Texts):
        days = _days(column)
        return _word_type(name, column, place) if days is None else _number_type(name, days, "date")
    whole = np.all(column == np.floor(column))
    if whole and _ROW_NUMBER.fullmatch(name) and len(np.unique(column)) == len(column):
        return ColumnType(None, (f"column {name!r} left out: a different value in every row",))
    return _number_type(name, column, "number")


def _number_type(name: str, numbers: Floats, kind: ColumnKind) -> ColumnType:
    finite = numbers[np.isfinite(numbers)]
    if not len(finite):
        return ColumnType(None, (f"column {name!r} has no value at all, left out",))
    if finite.min() == finite.max():
        return ColumnType(None, (f"column {name!r} has one value only, left out",))
    return ColumnType(kind)


def is_text(column: Column) -> bool:
    """Whether a column is text: most values different or more than 50 of them, and on average three words or more.

    Of many different values, words are counted in about 10,000 that are evenly spaced.
    """
    if not isinstance(column, Texts):
        return False
    n, distinct = len(column), len(column.levels)
    if not (distinct > 0.5 * n or distinct > 50):
        return False
    step = 1 + distinct // _COUNTED_TEXTS
    levels, counts = column.levels[::step], column.counts[::step]
    words = np.fromiter(map(len, map(str.split, levels)), np.intp, len(levels))
    return bool(np.dot(words, counts) >= 3 * counts.sum())


def _word_type(name: str, texts: Texts, place: Callable[[int], str]) -> ColumnType:
    n, present, distinct, counts = len(texts), int(np.sum(texts.codes >= 0)), len(texts.levels), texts.counts
    if present == n and set(map(_truth, texts.levels)) == {0.0, 1.0}:
        return ColumnType("boolean", (f"column {name!r}: yes and no, as 1 and 0",))
    if is_text(texts):
        return ColumnType("text")
    numbers = np.dot([as_number(level) is not None for level in texts.levels], counts)
    slip = not_a_number(texts, place) if numbers >= _NEARLY_ALL * present else ""
    why = (f"column {name!r} is not taken as numbers: {slip}",) if slip else _form_notes(name, texts, place)
    if distinct >= _NEARLY_ALL * present and distinct > 1:
        where = "every row" if distinct == n else f"nearly every row ({distinct} in {n})"
        return ColumnType(None, (*why, f"column {name!r} left out: a different value in {where}"))
    found = _category_type(name, texts)
    return found._replace(notes=(*why, *found.notes))


def _form_notes(name: str, texts: Texts, place: Callable[[int], str]) -> tuple[str, ...]:
    """A note about a column whose values are all numbers with a comma, or dates in another form than is read."""
    if texts.levels and texts.numbers(decimal=",") is not None:
        return (f"column {name!r} is not taken as numbers: {not_a_number(texts, place)}; write 1.5 in place of 1,5",)
    if texts.levels and all(map(_OTHER_DATE.fullmatch, texts.levels)):
        first = _first_at(texts, int(texts.codes[texts.codes >= 0][0]), place)
        return (f"column {name!r} is not taken as dates: {first}; write dates as 2024-02-29",)
    return ()


def _category_type(name: str, texts: Texts) -> ColumnType:
    order = np.argsort(-texts.counts, kind="stable")
    rare, missing = len(order[_MOST_CATEGORIES:]), int(np.sum(texts.codes < 0))
    if len(order) == 1 and not missing:
        return ColumnType(None, (f"column {name!r} has one value only, left out",))
    kept = [texts.levels[k] for k in order[:_MOST_CATEGORIES]]
    # A value "other" or "missing" in the data shares the feature of the other or of the missing values.
    kept += ["other"] * (rare > 0) + ["missing"] * (missing > 0)
    others = f" for the {_MOST_CATEGORIES} most frequent, the others together as 'other'" if rare else ""
    gone = f"; {counted(missing, 'missing value')} as 'missing'" if missing else ""
    note = f"column {name!r}: {counted(len(order), 'category')}, one-hot{others}{gone}"
    return ColumnType("category", (note,), tuple(dict.fromkeys(kept)))


def _days(texts: Texts) -> Floats | None:
    """Return ISO dates as days since 1970 (UTC), NaN where missing; or None if some value is not such a date."""
    days = []
    for level in texts.levels:
        day = _day(level)
        if day is None:
            return None
        days.append(day)
    return np.array([*days, np.nan], dtype=np.float64)[texts.codes]


def _day(text: str) -> float | None:
    if not _ISO_DATE.fullmatch(text):
        return None
    with suppress(ValueError):
        moment = datetime.fromisoformat(text)
        return ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - _EPOCH) / timedelta(days=1)
    return None


def _truth(text: str) -> float | None:
    return _BOOLEAN.get(text.lower())


# Required content of a column, and the function that reads it.
_READERS: Final[dict[str, tuple[str, Callable[[str], float | None]]]] = {
    "number": ("numbers", as_number),
    "date": ("ISO dates such as 2024-02-29", _day),
    "boolean": ("yes and no, or true and false", _truth),
}


def column_values(table: TableColumns, name: str, found: ColumnType) -> NDArray[Any]:
    """Return the values of a column as its type requires.

    Args:
        table: Rows that may be new: their values may have another type than ``found``.
        name: Name of the column.
        found: Type of the column.

    Returns:
        Numbers, dates (days since 1970) and booleans (1 and 0) as float64, NaN where missing; categories and texts as
        an array of str, empty where missing. A number in a column of categories is the category of the same value.

    Raises:
        InvalidValueError: A value is not a number, date or boolean, and the column requires it.
    """
    column = table[name]
    if found.kind in {"category", "text"}:
        texts = table.texts(name)
        levels = texts.levels if isinstance(column, Texts) else _category_names(texts.levels, found.categories)
        return np.array([*levels, ""], dtype=object)[texts.codes]
    if not isinstance(column, Texts) and (found.kind == "number" or np.isnan(column).all()):
        return column
    texts = table.texts(name)
    required, read = _READERS[str(found.kind)]
    values = [read(level) for level in texts.levels]
    if None in values:
        wrong = _first_at(texts, values.index(None), table.place)
        required = f"column {name!r} must hold {required}"
        raise InvalidValueError(f"{required}, but {wrong}; correct it or leave it empty")
    return np.array([*values, np.nan], dtype=np.float64)[texts.codes]


def _category_names(levels: Sequence[str], categories: Sequence[str]) -> list[str]:
    """Return numbers as the categories of the same value: 7.0 is the category 7, if there is no category 7.0."""
    known = {as_number(category): category for category in reversed(categories)}
    return [level if level in categories else known.get(as_number(level), level) for level in levels]


def shortened(name: str, column: Column, most: int, place: Callable[[int], str]) -> tuple[Column, tuple[str, ...]]:
    """Return a column with at most the first ``most`` characters of each text, and a note if one is longer."""
    long = [k for k, level in enumerate(column.levels) if len(level) > most] if isinstance(column, Texts) else []
    if not isinstance(column, Texts) or not long:
        return column, ()
    rows = np.flatnonzero(np.isin(column.codes, long))
    others = len(rows) - 1
    what = place(int(rows[0])) + (f" and {counted(others, 'other')}" if others else "")
    longer = f"{'are' if others else 'is'} longer than {most:,} characters; the model reads the first {most:,}"
    levels = tuple(level[:most] for level in column.levels)
    return Texts(levels, column.codes), (f"column {name!r}: {what} {longer}",)
