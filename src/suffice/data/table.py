"""Columns to numbers: what a model needs of a table, and in sentences what was done to it."""

import math
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from suffice.data.reading import Column, Columns, Texts, as_number, read_columns
from suffice.errors import InvalidValueError
from suffice.special import Floats

Kind = Literal["regression", "classification"]

_MOST_CLASSES: Final = 1000
_MOST_CATEGORIES: Final = 30
# From this share on "every row" has a value of its own, or "every value" is a number: a few slips happen.
_NEARLY_ALL: Final = 0.95
_ROW_NUMBER: Final = re.compile(r"(.*[ _.-])?(id|index)|column 1|unnamed: 0|__index_level_0__", re.IGNORECASE)
_ISO_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?)?")
_BOOLEAN: Final = {"true": 1.0, "yes": 1.0, "false": 0.0, "no": 0.0}
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


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


class _Features(NamedTuple):
    # What one column became; no names where it was left out.
    X: Floats
    names: tuple[str, ...]
    notes: tuple[str, ...]


def read_table(path: Path, target: str, *, task: Kind | None = None, ignore: Sequence[str] = ()) -> Table:
    r"""Read a CSV or Parquet file and make each column but the target into features, by its type.

    - Numbers, and ISO dates as days: missing values get the median, then ``(x - mean) / deviation``. Infinite values
      count as missing.
    - ``true``/``false`` and ``yes``/``no``: 1 and 0.
    - Texts of three words or more on average, most of them different or more than 50: TF-IDF and its largest singular
      components ``z``, at most 50, all times one factor ``c`` with ``mean_i |c z_i|^2 = 1``. Their sizes among each
      other stay as they are, and a text weighs as much as one standardised number.
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
    label = _named_column(file, target, path)
    unused = {target, *_ignored(file, ignore, target, path)}
    rows = np.flatnonzero(label.codes >= 0 if isinstance(label, Texts) else np.isfinite(label))
    notes = [*file.notes, *_first_line_notes(file)]
    if dropped := len(label) - len(rows):
        notes.append(f"{_count(dropped, 'row')} without a target {'was' if dropped == 1 else 'were'} left out")

    def place(row: int) -> str:
        return file.place(int(rows[row]))

    y, kind, about = _labels(label[rows], target, task, place)
    inputs = zip(file.names, file.columns, strict=True)
    features = [_features(name, column[rows], place) for name, column in inputs if name not in unused]
    notes += [*about, *(note for feature in features for note in feature.notes)]
    columns = tuple(name for feature in features for name in feature.names)
    if not columns:
        wanted = f"{path}: besides the target {target!r} at least one column is required that can be used"
        raise InvalidValueError(f"{wanted}; {'; '.join(notes[:10]) or 'there is none'}")
    return Table(np.hstack([feature.X for feature in features]), y, kind, columns, tuple(notes), rows)


def _count(number: int, noun: str) -> str:
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number} {noun if number == 1 else plural}"


def _short(text: str) -> str:
    return repr(text if len(text) <= 40 else f"{text[:37]}...")


def _named_column(file: Columns, wanted: str, path: Path) -> Column:
    if wanted in file.names:
        return file.columns[file.names.index(wanted)]
    lower = {name.lower(): name for name in file.names}
    guess = "".join(f" Did you mean {_short(lower[name])}?" for name in get_close_matches(wanted.lower(), lower, n=1))
    more = f" and {len(file.names) - 20} more" if len(file.names) > 20 else ""
    columns = ", ".join(map(_short, file.names[:20])) + more
    raise InvalidValueError(f"{path} has no column {wanted!r}.{guess} Its columns, by the first line, are {columns}")


def _ignored(file: Columns, ignore: Sequence[str], target: str, path: Path) -> Sequence[str]:
    """Return the names of columns to leave out, each of them in the file and not the target."""
    names = [ignore] if isinstance(ignore, str) else ignore
    for name in names:
        _named_column(file, name, path)
        if name == target:
            raise InvalidValueError(f"column {name!r} is the target, so it cannot be ignored as well")
    return names


def _first_line_notes(file: Columns) -> list[str]:
    found = zip(file.names, file.columns, strict=True)
    same = [name for name, column in found if isinstance(column, Texts) and name in column.levels]
    why = "is the name of a column and also a value in it; if so, add a first line that names the columns"
    return [f"the first line may be data: {_short(same[0])} {why}"] if same else []


def _labels(label: Column, name: str, task: Kind | None, place: Callable[[int], str]) -> tuple[Any, Kind, list[str]]:
    """Return the target as numbers or as names of classes, which of the two, and notes."""
    values = np.arange(len(label.levels)) if isinstance(label, Texts) else np.unique(label)
    if len(values) < 2:
        came = "one value only" if len(values) else "no value at all"
        raise InvalidValueError(f"target {name!r} has {came}; two different ones are required to learn anything")
    if isinstance(label, Texts):
        if task == "regression":
            came = f"{_not_a_number(label, place)}; correct it, leave it empty, or use --task classification"
            raise InvalidValueError(f"target {name!r} must hold numbers for regression, but {came}")
        _require_classes(label, name, place)
        return np.array(label.levels)[label.codes], "classification", []
    whole = bool(np.all(values == np.floor(values)))
    few = len(values) == 2 or (whole and len(values) <= 20)
    if task == "regression" or (task is None and not few):
        return label, "regression", []
    about = f"target {name!r} has {len(values)} distinct"
    if len(values) > _MOST_CLASSES:
        raise InvalidValueError(f"{about} numbers, more than {_MOST_CLASSES} classes; use --task regression")
    notes = [f"{about} whole numbers, taken as classes; --task regression takes them as numbers"]
    names = np.array([str(int(v)) if v == np.floor(v) else repr(float(v)) for v in values])
    return names[np.searchsorted(values, label)], "classification", notes if task is None and len(values) > 2 else []


def _not_a_number(texts: Texts, place: Callable[[int], str]) -> str:
    code = next(k for k, level in enumerate(texts.levels) if as_number(level) is None)
    return f"{place(int(np.argmax(texts.codes == code)))} holds {_short(texts.levels[code])}"


def _require_classes(label: Texts, name: str, place: Callable[[int], str]) -> None:
    n, classes = len(label), len(label.levels)
    if classes > _MOST_CLASSES or (classes > 10 and classes >= 0.9 * n):
        raise InvalidValueError(
            f"target {name!r} has {classes} different values in {n} rows, and not all are numbers "
            f"({_not_a_number(label, place)}): this looks like an identifier or free text. "
            f"Choose a target of numbers, or of at most {_MOST_CLASSES} classes with several rows each"
        )


def _left_out(n: int, *notes: str) -> _Features:
    return _Features(np.empty((n, 0)), (), notes)


def _features(name: str, column: Column, place: Callable[[int], str]) -> _Features:
    """Return what a column becomes, by its type."""
    if isinstance(column, Texts):
        days = _days(column)
        return _words(name, column, place) if days is None else _numeric(name, days, dates=True)
    whole = np.all(column == np.floor(column))
    if whole and _ROW_NUMBER.fullmatch(name) and len(np.unique(column)) == len(column):
        return _left_out(len(column), f"column {name!r} left out: a different value in every row")
    return _numeric(name, column)


def _words(name: str, texts: Texts, place: Callable[[int], str]) -> _Features:
    n, present, distinct, counts = len(texts), int(np.sum(texts.codes >= 0)), len(texts.levels), texts.counts
    truth = [_BOOLEAN.get(level.lower(), np.nan) for level in texts.levels]
    if present == n and set(truth) == {0.0, 1.0}:
        return _Features(np.array(truth)[texts.codes][:, None], (name,), (f"column {name!r}: yes and no, as 1 and 0",))
    words = np.dot([len(level.split()) for level in texts.levels], counts) / present
    if words >= 3 and (distinct > 0.5 * n or distinct > 50):
        return _text(name, texts)
    numbers = np.dot([as_number(level) is not None for level in texts.levels], counts)
    slip = _not_a_number(texts, place) if numbers >= _NEARLY_ALL * present else ""
    why = [f"column {name!r} is not taken as numbers: {slip}"] if slip else []
    if distinct >= _NEARLY_ALL * present and distinct > 1:
        where = "every row" if distinct == n else f"nearly every row ({distinct} in {n})"
        return _left_out(n, *why, f"column {name!r} left out: a different value in {where}")
    categories = _categories(name, texts)
    return categories._replace(notes=(*why, *categories.notes))


def _days(texts: Texts) -> Floats | None:
    """Return ISO dates as days since 1970 (UTC), NaN where missing; or None where some value is not such a date."""
    if not all(map(_ISO_DATE.fullmatch, texts.levels)):
        return None
    with suppress(ValueError):
        moments = map(datetime.fromisoformat, texts.levels)
        days = [((m if m.tzinfo else m.replace(tzinfo=UTC)) - _EPOCH) / timedelta(days=1) for m in moments]
        return np.array([*days, np.nan])[texts.codes]
    return None


def _numeric(name: str, values: Floats, *, dates: bool = False) -> _Features:
    finite = np.isfinite(values)
    infinite, missing = int(np.isinf(values).sum()), int(np.sum(~finite))
    notes = [f"column {name!r}: dates, as days"] * dates
    if missing == len(values):
        return _left_out(missing, f"column {name!r} has no value at all, left out")
    if values[finite].min() == values[finite].max():
        return _left_out(len(values), f"column {name!r} has one value only, left out")
    # Times a power of 2, which is exact, so that neither a sum nor a square overflows.
    exponent = int(np.frexp(np.abs(values[finite]).max())[1])
    scaled = np.ldexp(values, -exponent)
    if missing:
        median = np.median(scaled[finite])
        scaled[~finite] = median
        middle = float(np.ldexp(median, exponent))
        shown = str(np.datetime64(math.floor(middle), "D")) if dates else f"{middle:.6g}"
        among = f" ({infinite} of them infinite)" if infinite else ""
        notes.append(f"column {name!r}: {_count(missing, 'missing value')}{among} filled with the median {shown}")
    # From the first value on, so that a small spread around a large mean keeps its digits.
    shifted = scaled - scaled[0]
    return _Features(((shifted - shifted.mean()) / shifted.std())[:, None], (name,), tuple(notes))


def _categories(name: str, texts: Texts) -> _Features:
    order = np.argsort(-texts.counts, kind="stable")
    rare, missing = len(order[_MOST_CATEGORIES:]), int(np.sum(texts.codes < 0))
    if len(order) == 1 and not missing:
        return _left_out(len(texts), f"column {name!r} has one value only, left out")
    kept = [texts.levels[k] for k in order[:_MOST_CATEGORIES]]
    # A value that itself says "other" or "missing" shares the column of the others or of the missing.
    kept += ["other"] * (rare > 0) + ["missing"] * (missing > 0)
    position = {category: k for k, category in enumerate(dict.fromkeys(kept))}
    chosen = [position[level if level in position else "other"] for level in texts.levels]
    others = f" for the {_MOST_CATEGORIES} most frequent, the others together as 'other'" if rare else ""
    gone = f"; {_count(missing, 'missing value')} as 'missing'" if missing else ""
    note = f"column {name!r}: {_count(len(order), 'category')}, one-hot{others}{gone}"
    X = np.eye(len(position))[np.array([*chosen, position.get("missing", 0)])[texts.codes]]
    return _Features(X, tuple(f"{name}={category}" for category in position), (note,))


def _text(name: str, texts: Texts) -> _Features:
    from sklearn.decomposition import TruncatedSVD

    weights = _word_weights([texts.levels[code] if code >= 0 else "" for code in texts.codes])
    if weights is None:
        return _left_out(len(texts), f"column {name!r} left out: text of fewer than two different words")
    svd = TruncatedSVD(min(50, *weights.shape), random_state=0)
    # Where all texts have the same words there is no variance, and its share is 0/0.
    with np.errstate(invalid="ignore"):
        Z = svd.fit_transform(weights)
    Z = Z[:, svd.singular_values_ > 1e-10 * svd.singular_values_[0]]
    if np.ptp(Z, axis=0).max() < 1e-10:
        return _left_out(len(texts), f"column {name!r} left out: text with the same words in every row")
    missing = int(np.sum(texts.codes < 0))
    empty = f"; {_count(missing, 'missing value')} as empty text" if missing else ""
    share = 100.0 * svd.explained_variance_ratio_.sum()
    note = f"column {name!r}: text, TF-IDF and SVD, {Z.shape[1]} components ({share:.0f} % of the variance){empty}"
    names = tuple(f"{name}[{k}]" for k in range(Z.shape[1]))
    return _Features(Z * (np.sqrt(len(Z)) / np.linalg.norm(Z)), names, (note,))


def _word_weights(texts: Sequence[str]) -> Any:
    """Return TF-IDF of the words in at least two texts, or else of all words; None if these are fewer than two."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    for least in (2, 1):
        with suppress(ValueError):
            weights = TfidfVectorizer(sublinear_tf=True, min_df=least).fit_transform(texts)
            if weights.shape[1] > 1:
                return weights
    return None
