"""Columns to numbers: what a model needs of a table, and in sentences what was done to it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from suffice.data.features import column_features, counted, not_a_number, short
from suffice.data.reading import Column, Columns, Texts, read_columns
from suffice.errors import InvalidValueError
from suffice.special import Floats

Kind = Literal["regression", "classification"]

_MOST_CLASSES: Final = 1000


@dataclass(frozen=True, eq=False)
class Table:
    """A labelled table as numbers.

    Attributes:
        X: Features, ``n x D``, no value missing.
        y: The target: numbers for regression, names of classes (str) for classification; whole numbers as "7".
        kind: Regression or classification.
        columns: Names of the ``D`` features: "age", "workclass=Private", "review[0]".
        notes: What was done to the columns and why, in sentences for a person.
        rows: Which data row of the file (from 0, blank lines aside) each row of ``X`` came from.
    """

    X: Floats
    y: Any
    kind: Kind
    columns: tuple[str, ...]
    notes: tuple[str, ...]
    rows: NDArray[np.intp]


def read_table(path: Path, target: str, *, task: Kind | None = None, ignore: Sequence[str] = ()) -> Table:
    r"""Read a CSV or Parquet file and make each column but the target into features, by its type.

    - Numbers, and ISO dates as days: missing values get the median, then ``(x - mean) / deviation``. Infinite values
      count as missing.
    - ``true``/``false`` and ``yes``/``no``: 1 and 0.
    - Texts of three words or more on average, most of them different or more than 50: TF-IDF and its largest singular
      components ``z``, at most 50, all times one factor so that the largest deviation among them is 1. Their sizes
      among each other stay as they are, and the largest weighs as much as one standardised number.
    - Other words: a 0/1 column for each of the 30 most frequent, one for ``other``, one for ``missing``.
    - Left out: columns with one value, and identifiers (a different word in nearly every row, whole numbers as ``id``).

    Only inputs decide on this, never the target; but rows without a target are left out first.

    Args:
        path: The file; its first line holds the names of the columns.
        target: Name of the column to predict.
        task: Whether the target is a number or a class. Left out, numbers are classes where they have two values, or
            are whole and have at most 20.
        ignore: Names of columns to leave out.

    Raises:
        InvalidValueError: The file is not such a table; the message says what to do about it.
        MissingExtraError: It is Parquet, and pyarrow is not installed.

    Examples:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     path = Path(folder) / "cars.csv"
        ...     _ = path.write_text("power,fuel,price\n50,gas,9.5\n,diesel,14.5\n70,gas,12.5\n")
        ...     table = read_table(path, "price")
        >>> table.columns, table.kind
        (('power', 'fuel=gas', 'fuel=diesel'), 'regression')
        >>> print(*table.notes, sep="\n")
        column 'power': 1 missing value filled with the median 60
        column 'fuel': 2 categories, one-hot
    """
    if task not in {None, "regression", "classification"}:
        raise InvalidValueError(f"task must be 'regression' or 'classification', not {task!r}")
    file = read_columns(Path(path))
    label = named_column(file, target, path)
    unused = {target, *_ignored(file, ignore, target, path)}
    rows = np.flatnonzero(label.codes >= 0 if isinstance(label, Texts) else np.isfinite(label))
    notes = [*file.notes, *first_line_notes(file)]
    if dropped := len(label) - len(rows):
        notes.append(f"{counted(dropped, 'row')} without a target {'was' if dropped == 1 else 'were'} left out")

    def place(row: int) -> str:
        return file.place(int(rows[row]))

    y, kind, about = _labels(label[rows], target, task, place)
    inputs = zip(file.names, file.columns, strict=True)
    features = [column_features(name, column[rows], place) for name, column in inputs if name not in unused]
    notes += [*about, *(note for feature in features for note in feature.notes)]
    columns = tuple(name for feature in features for name in feature.names)
    if not columns:
        wanted = f"{path}: besides the target {target!r} at least one column is required that can be used"
        raise InvalidValueError(f"{wanted}; {'; '.join(notes[:10]) or 'there is none'}")
    return Table(np.hstack([feature.X for feature in features]), y, kind, columns, tuple(notes), rows)


def named_column(file: Columns, wanted: str, path: Path) -> Column:
    """Find a column by its name.

    Raises:
        InvalidValueError: There is none; the message holds the nearest name and the others.
    """
    if wanted in file.names:
        return file.columns[file.names.index(wanted)]
    lower = {name.lower(): name for name in file.names}
    guess = "".join(f" Did you mean {short(lower[name])}?" for name in get_close_matches(wanted.lower(), lower, n=1))
    more = f" and {len(file.names) - 20} more" if len(file.names) > 20 else ""
    columns = ", ".join(map(short, file.names[:20])) + more
    raise InvalidValueError(f"{path} has no column {wanted!r}.{guess} Its columns, by the first line, are {columns}")


def _ignored(file: Columns, ignore: Sequence[str], target: str, path: Path) -> Sequence[str]:
    """Return the names of columns to leave out, each of them in the file and not the target."""
    names = [ignore] if isinstance(ignore, str) else ignore
    for name in names:
        named_column(file, name, path)
        if name == target:
            raise InvalidValueError(f"column {name!r} is the target, so it cannot be ignored as well")
    return names


def first_line_notes(file: Columns) -> list[str]:
    """Say so where the first line looks like data rather than names of columns."""
    found = zip(file.names, file.columns, strict=True)
    same = [name for name, column in found if isinstance(column, Texts) and name in column.levels]
    why = "is the name of a column and also a value in it; if so, add a first line that names the columns"
    return [f"the first line may be data: {short(same[0])} {why}"] if same else []


def _labels(label: Column, name: str, task: Kind | None, place: Callable[[int], str]) -> tuple[Any, Kind, list[str]]:
    """Return the target as numbers or as names of classes, which of the two, and notes."""
    values = np.arange(float(len(label.levels))) if isinstance(label, Texts) else np.unique(label)
    if len(values) < 2:
        came = "one value only" if len(values) else "no value at all"
        raise InvalidValueError(f"target {name!r} has {came}; two different ones are required to learn anything")
    if isinstance(label, Texts):
        if task == "regression":
            came = f"{not_a_number(label, place)}; correct it, leave it empty, or use --task classification"
            raise InvalidValueError(f"target {name!r} must hold numbers for regression, but {came}")
        _require_classes(label, name, place)
        return np.array(label.levels)[label.codes], "classification", []
    if task == "regression" or (task is None and not are_classes(values)):
        return label, "regression", []
    about = f"target {name!r} has {len(values)} distinct"
    if len(values) > _MOST_CLASSES:
        raise InvalidValueError(f"{about} numbers, more than {_MOST_CLASSES} classes; use --task regression")
    notes = [f"{about} whole numbers, taken as classes; --task regression takes them as numbers"]
    names = np.array([class_name(value) for value in values])
    return names[np.searchsorted(values, label)], "classification", notes if task is None and len(values) > 2 else []


def are_classes(values: Floats) -> bool:
    """Whether distinct numbers are rather classes: two of them, or at most 20 whole ones.

    Examples:
        >>> are_classes(np.array([0.5, 1.5])), are_classes(np.array([0.5, 1.5, 2.5]))
        (True, False)
    """
    return len(values) == 2 or (bool(np.all(values == np.floor(values))) and len(values) <= 20)


def class_name(value: float) -> str:
    """Name the class that a finite number stands for.

    Examples:
        >>> class_name(7.0), class_name(0.5)
        ('7', '0.5')
    """
    return str(int(value)) if value == np.floor(value) else repr(float(value))


def _require_classes(label: Texts, name: str, place: Callable[[int], str]) -> None:
    n, classes = len(label), len(label.levels)
    if classes > _MOST_CLASSES or (classes > 10 and classes >= 0.9 * n):
        raise InvalidValueError(
            f"target {name!r} has {classes} different values in {n} rows, and not all are numbers "
            f"({not_a_number(label, place)}): this looks like an identifier or free text. "
            f"Choose a target of numbers, or of at most {_MOST_CLASSES} classes with several rows each"
        )
