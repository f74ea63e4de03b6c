"""Tables to the inputs and labels of a model."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from suffice.errors import InvalidValueError
from suffice.numerics import Floats
from suffice.tables.column_features import counted, not_a_number, short
from suffice.tables.file_reader import read_columns
from suffice.tables.table_columns import Column, TableColumns, Texts, number_name

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
        notes: Descriptions of the conversions of the columns, in sentences for the user.
        rows: The data row of the file (from 0, without blank lines) of each row of ``X``.
        transformer: Fitted :class:`~suffice.tables.transformers.TableTransformer`; ``transform`` of new rows with the
            same columns returns their features.
        components: First column and column after the last of each text whose components a classifier chooses from.
    """

    X: Floats
    y: Any
    kind: Kind
    columns: tuple[str, ...]
    notes: tuple[str, ...]
    rows: NDArray[np.intp]
    transformer: Any = None
    components: tuple[tuple[int, int], ...] = ()


def read_table(
    path: Path, target: str, *, task: Kind | None = None, ignore: Sequence[str] = (), ordered: bool = False
) -> Table:
    r"""Read a table from a file, and convert every column except the target to features, by its type.

    - Numbers, and ISO dates as days: missing and infinite values become the median, then ``(x - mean) / deviation``.
    - ``true``/``false`` and ``yes``/``no`` without missing values: 1 and 0.
    - Texts of three words or more on average, most of them different or more than 50: TF-IDF and its largest singular
      components ``z``, at most 50, all multiplied by one factor so that the largest standard deviation among them is 1.
      Their relative sizes do not change, and the largest has the weight of one standardised number. With ``ordered``
      and classes: up to 400 components of words, word pairs and character n-grams, see
      :class:`~suffice.tables.transformers.NgramComponents`.
    - Other words: a 0/1 column for each of the 30 most frequent, one for ``other``, one for ``missing``.
    - Left out: columns with one value, and identifiers (a different word in nearly every row, whole numbers as ``id``).

    Rows without a target are left out first. Otherwise the target has no influence on the features.

    Args:
        path: The file, see :func:`suffice.tables.file_reader.read_columns`.
        target: Name of the column to predict.
        task: Whether the target is a number or a class. By default numbers are classes if there are two different ones,
            or at most 20 and all of them whole.
        ignore: Names of columns to leave out.
        ordered: Whether the model is a classifier that chooses how many ordered components it uses: the logistic
            regression of :func:`suffice.models.factory.make_model` with ``components``.

    Raises:
        InvalidValueError: The file is not such a table; the message says what to do.
        MissingExtraError: It is Parquet or an Excel workbook, and the package that reads it is not installed.

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
        >>> table.transformer.transform({"power": [60], "fuel": ["gas"]})
        array([[0., 1., 0.]])
    """
    from suffice.models.capacity import most_components
    from suffice.tables.transformers import TableTransformer, table_features

    if task not in {None, "regression", "classification"}:
        raise InvalidValueError(f"task must be 'regression' or 'classification', not {task!r}")
    file = read_columns(Path(path))
    label = named_column(file, target, path)
    unused = {target, *_ignored(file, ignore, target, path)}
    rows = np.flatnonzero(label.codes >= 0 if isinstance(label, Texts) else np.isfinite(label))
    notes = [*file.notes, *first_line_notes(file)]
    if dropped := len(label) - len(rows):
        notes.append(f"{counted(dropped, 'row')} without a target {'was' if dropped == 1 else 'were'} left out")

    inputs = file.selected([name for name in file.names if name not in unused], rows)
    y, kind, about = _labels(label[rows], target, task, lambda row: file.place(int(rows[row])))
    most = most_components(len(np.unique(y)), len(y)) if ordered and kind == "classification" else None
    features = table_features(inputs, TableTransformer(components=most))
    notes += [*about, *features.notes]
    if not features.names:
        wanted = f"{path}: besides the target {target!r} at least one column is required that can be used"
        raise InvalidValueError(f"{wanted}; {'; '.join(notes[:10]) or 'there is none'}")
    return Table(features.X, y, kind, features.names, tuple(notes), rows, features.transformer, features.components)


def named_column(file: TableColumns, wanted: str, path: Path) -> Column:
    """Return a column by its name.

    Raises:
        InvalidValueError: There is no such column; the message contains the nearest name and the others.
    """
    if wanted in file.names:
        return file[wanted]
    lower = {name.lower(): name for name in file.names}
    guess = "".join(f" Did you mean {short(lower[name])}?" for name in get_close_matches(wanted.lower(), lower, n=1))
    if set(wanted.split(",")) <= set(file.names):
        guess = " Name each column with an option of its own."
    more = f" and {len(file.names) - 20} more" if len(file.names) > 20 else ""
    columns = ", ".join(map(short, file.names[:20])) + more
    by = f", by the {file.header}," if file.header else ""
    raise InvalidValueError(f"{path} has no column {wanted!r}.{guess} Its columns{by} are {columns}")


def _ignored(file: TableColumns, ignore: Sequence[str], target: str, path: Path) -> Sequence[str]:
    """Return the names of columns to leave out; each must be in the file and not be the target."""
    names = [ignore] if isinstance(ignore, str) else ignore
    for name in names:
        named_column(file, name, path)
        if name == target:
            raise InvalidValueError(f"column {name!r} is the target, so it cannot be ignored as well")
    return names


def first_line_notes(file: TableColumns) -> list[str]:
    """Return a note if the line or row of names looks like data rather than names of columns."""
    if not file.header:
        return []
    found = zip(file.names, file.columns, strict=True)
    same = [name for name, column in found if isinstance(column, Texts) and name in column.levels]
    why = "is the name of a column and also a value in it; if so, add a"
    return (
        [f"the {file.header} may be data: {short(same[0])} {why} {file.header} that names the columns"] if same else []
    )


def _labels(label: Column, name: str, task: Kind | None, place: Callable[[int], str]) -> tuple[Any, Kind, list[str]]:
    """Return the target as numbers or names of classes, the task, and notes."""
    values = np.arange(float(len(label.levels))) if isinstance(label, Texts) else np.unique(label)
    if len(values) < 2:
        came = "one value only" if len(values) else "no value at all"
        raise InvalidValueError(f"target {name!r} has {came}; two different ones are required to learn anything")
    if isinstance(label, Texts):
        if task == "regression":
            came = f"{not_a_number(label, place)}; correct it, leave it empty, or use --task classification"
            raise InvalidValueError(f"target {name!r} must hold numbers for regression, but {came}")
        _require_classes(label, name, place)
        return np.array(label.levels)[label.codes], "classification", alike_notes(label.levels)
    if task == "regression" or (task is None and not are_classes(values)):
        return label, "regression", []
    about = f"target {name!r} has {len(values)} distinct"
    if len(values) > _MOST_CLASSES:
        raise InvalidValueError(f"{about} numbers, more than {_MOST_CLASSES} classes; use --task regression")
    notes = [f"{about} whole numbers, taken as classes; --task regression takes them as numbers"]
    names = np.array([number_name(value) for value in values])
    return names[np.searchsorted(values, label)], "classification", notes if task is None and len(values) > 2 else []


def are_classes(values: Floats) -> bool:
    """Whether distinct numbers are taken as classes: if there are two, or at most 20 whole ones.

    Examples:
        >>> are_classes(np.array([0.5, 1.5])), are_classes(np.array([0.5, 1.5, 2.5]))
        (True, False)
    """
    return len(values) == 2 or (bool(np.all(values == np.floor(values))) and len(values) <= 20)


def folded_name(name: str) -> str:
    """The name of a class without regard to upper and lower case and to spaces.

    Examples:
        >>> folded_name(" Very  Good")
        'very good'
    """
    return " ".join(name.split()).casefold()


def alike_notes(classes: Sequence[str]) -> list[str]:
    """Notes about classes that are probably the same.

    Examples:
        >>> alike_notes(["bug", "Bug", "billing"])
        ["the classes 'bug' and 'Bug' differ in upper and lower case or spaces only, and are counted as different"]
    """
    first: dict[str, str] = {}
    pairs = [(first.setdefault(folded_name(name), name), name) for name in classes]
    return [
        f"the classes {one!r} and {other!r} differ in upper and lower case or spaces only, and are counted as different"
        for one, other in pairs
        if one != other
    ]


def _require_classes(label: Texts, name: str, place: Callable[[int], str]) -> None:
    n, classes = len(label), len(label.levels)
    if classes > _MOST_CLASSES or (classes > 10 and classes >= 0.9 * n):
        raise InvalidValueError(
            f"target {name!r} has {classes} different values in {n} rows, and not all are numbers "
            f"({not_a_number(label, place)}): this looks like an identifier or free text. "
            f"Choose a target of numbers, or of at most {_MOST_CLASSES} classes with several rows each"
        )
