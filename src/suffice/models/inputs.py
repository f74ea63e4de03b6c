"""Input validation of models: arrays, or an error that names the row and the column."""

import datetime
from contextlib import suppress
from functools import cache
from inspect import signature
from typing import Any, Final, TypeVar, cast

import numpy as np

# scikit-learn is imported by the functions that use it: the import takes seconds, and opening a project needs none of
# them.
from suffice.errors import InvalidValueError
from suffice.numerics import Floats

#: Largest absolute value of a feature or of a numerical label. Projects have the same limit.
LARGEST: Final = 1e100
Model = TypeVar("Model")


def training_inputs(model: Any, X: Any, y: Any, *, reset: bool = True, dtype: Any = np.float64) -> tuple[Floats, Any]:
    """Return inputs (``n x D``) and labels (unchanged, ``n``), with the checks of scikit-learn.

    Args:
        model: The estimator; its number of features is set or checked.
        X: Inputs.
        y: Labels, numbers or classes.
        reset: Whether these inputs set the number of features; if not, they are checked against it.
        dtype: Number type of the inputs; in single precision, for networks, rows may have any shape.

    Raises:
        InvalidValueError: An entry is NaN or infinite; the message names its row and column.
        ValueError: Another check of scikit-learn fails.
    """
    from sklearn.utils.validation import column_or_1d

    if y is None:
        raise InvalidValueError(f"{type(model).__name__} requires y to be passed, but the target y is None")
    inputs = _checked(model, X, reset=reset, dtype=dtype)
    labels = column_or_1d(as_labels(y), warn=True)
    if len(labels) != len(inputs):
        raise InvalidValueError(f"X has {len(inputs)} rows and y has {len(labels)}; they must match")
    return inputs, labels


def prediction_inputs(model: Any, X: Any, *, dtype: Any = np.float64) -> Floats:
    """Return inputs to predict for, ``m x D``, checked against those the model was fitted with."""
    return _checked(model, X, reset=False, dtype=dtype)


def _checked(model: Any, X: Any, *, reset: bool, dtype: Any) -> Floats:
    from sklearn.utils.validation import validate_data

    if getattr(getattr(X, "dtype", None), "kind", "") != "c":  # scikit-learn raises its own error for complex numbers
        require_numbers(X)
    names, any_shape = column_names(X), dtype is np.float32
    # Numbers too large for single precision become infinite, which raises an error below.
    with np.errstate(over="ignore"):
        inputs = validate_data(model, X, reset=reset, dtype=dtype, ensure_all_finite=False, allow_nd=any_shape)
    require_finite(inputs.reshape(len(inputs), -1), names)
    return cast(Floats, inputs)


def targets(y: Any) -> Floats:
    """Return regression targets as float64, or raise an error that names the one that is not a number.

    Examples:
        >>> targets([1, 2.5])
        array([1. , 2.5])
    """
    if type(y) is np.ndarray and y.dtype == np.float64 and y.ndim == 1 and np.abs(y).max(initial=0.0) <= LARGEST:
        # A fast path for the labels of a loop, which are of this kind and are checked at every step.
        return y
    from sklearn.utils.validation import check_array

    values = np.asarray(as_labels(y))
    if values.dtype.kind == "O":
        missing = [row for row, label in enumerate(values) if is_missing(label)]
        if missing:
            raise InvalidValueError(f"y contains NaN at row {missing[0]}; every label must be a number")
        values = np.asarray(values.tolist())
    if values.dtype.kind not in "biuf":
        raise InvalidValueError(
            f"y must hold numbers for a regression, but holds {values.dtype}; say which class model"
        )
    numbers = cast(Floats, check_array(values, ensure_2d=False, dtype=np.float64, ensure_all_finite=False))
    bad = np.flatnonzero(~(np.abs(numbers) <= LARGEST))
    if len(bad):
        value, row = numbers[bad[0]], bad[0]
        remedy = "give the labels in other units" if np.isfinite(value) else "every label must be a number"
        raise InvalidValueError(f"y contains {_what(value)} at row {row}; {remedy}")
    return numbers


#: What to do with labels that are sets of classes.
SETS_OF_CLASSES: Final = (
    "for sets of classes give suffice.StopMonitor a matrix of 0 and 1 with a column for each class, or use one learner "
    "or project for each class"
)


def require_single_labels(y: Any) -> None:
    """Raise an error for labels that are sets or lists of different lengths.

    Raises:
        InvalidValueError: They are.

    Examples:
        >>> require_single_labels(["ham", "spam"])
    """
    if not isinstance(y, list | tuple):
        return
    lengths = {len(label) if isinstance(label, list | tuple) else -1 for label in y}
    if len(lengths) > 1 or any(isinstance(label, set | frozenset) for label in y):
        raise InvalidValueError(f"each label must be one class or number; {SETS_OF_CLASSES}")


def as_labels(y: Any) -> Any:
    """Return labels as an array in which missing values among strings do not become strings.

    Raises:
        InvalidValueError: A label is masked, where numpy would use the value under the mask, or is a set or list.

    Examples:
        >>> as_labels(["ham", float("nan")])
        array(['ham', nan], dtype=object)
    """
    require_single_labels(y)
    if isinstance(y, np.ma.MaskedArray) and np.ma.is_masked(y):
        raise InvalidValueError(
            f"labels are masked in {int(np.ma.getmaskarray(y).sum())} places; leave out the items that have no label"
        )
    words = [isinstance(label, str) for label in y] if isinstance(y, list | tuple) else []
    if any(words) and not all(words):
        labels = np.empty(len(y), dtype=object)
        labels[:] = y
        return labels
    return y


def is_missing(label: Any) -> bool:
    """Whether a label is None, NaN, or a missing value of pandas."""
    if label is None:
        return True
    try:
        return bool(label != label)  # noqa: PLR0124 - only NaN differs from itself
    except TypeError:  # a comparison with pandas.NA has no truth value
        return True


@cache
def _parameter_names(kind: type) -> list[str]:
    return list(signature(kind).parameters)


def unfitted(model: Model) -> Model:
    """Return an unfitted model with the same parameters.

    Unlike ``clone`` of scikit-learn, it does not copy the parameters. The copy takes longer than learning a label.
    """
    kind: Any = type(model)
    return cast(Model, kind(**{name: getattr(model, name) for name in _parameter_names(kind)}))


def column_names(X: Any) -> list[str] | None:
    """Return the names of the columns, if ``X`` is a table with names."""
    names = getattr(X, "columns", None)
    return None if names is None else [str(name) for name in names]


def require_numbers(X: Any, what: str = "X") -> None:
    """Raise an error for values that numpy would convert to wrong numbers.

    These are masked values (numpy uses the value under the mask), dates (it uses the days since 1970), texts such as
    ``"1"``, and complex numbers (it uses the real part).

    Args:
        X: An array, a list of rows, or a table.
        what: Name of the table in the error.

    Raises:
        InvalidValueError: There is such a value.

    Examples:
        >>> require_numbers(np.array([["1", "2"]]), "X_pool")
        Traceback (most recent call last):
        ...
        suffice.errors.InvalidValueError: X_pool must be a table of numbers, and holds texts; put what...
    """
    if isinstance(X, np.ma.MaskedArray):
        if np.ma.is_masked(X):
            masked = np.argwhere(np.ma.getmaskarray(X))
            raise InvalidValueError(
                f"{what} is a masked array with {len(masked)} masked values, the first in row {masked[0][0]}; fill "
                "them (numpy.ma.filled), or remove their rows"
            )
        return
    columns: dict[str | None, Any] = {}
    if hasattr(X, "dtypes") and hasattr(X, "columns") and hasattr(X, "iloc"):
        columns = {
            str(name): X.iloc[:, k].to_numpy() for k, name in enumerate(X.columns) if X.dtypes.iloc[k].kind in "OMmc"
        }
    else:
        with suppress(TypeError, ValueError):  # rows of different lengths raise an error elsewhere
            columns = {None: np.asarray(X)}
    for name, values in columns.items():
        found = _no_numbers(values)
        if found:
            where = "" if name is None else f" in column {name!r}"
            raise InvalidValueError(
                f"{what} must be a table of numbers, and holds {found}{where}; put what turns them into numbers before "
                "the model, in a Pipeline"
            )


def _no_numbers(values: Any) -> str:
    """Return a word for the kind of the first value that is not a number; empty if all are numbers."""
    kind = values.dtype.kind
    if kind == "O":
        kinds = {type(value) for value in values.ravel()}
        dates = any(
            issubclass(each, datetime.date | datetime.time | datetime.timedelta | np.datetime64) for each in kinds
        )
        texts = any(issubclass(each, str | bytes) for each in kinds)
        kind = "M" if dates else "U" if texts else "c" if any(issubclass(each, complex) for each in kinds) else ""
    return {"U": "texts", "S": "texts", "M": "dates", "m": "durations", "c": "complex numbers"}.get(kind, "")


def require_finite(X: Floats, names: list[str] | None = None, what: str = "X", first: int = 0) -> None:
    """Raise an error for an entry that is NaN, infinite or beyond 1e100; ``what`` is the name of the table.

    ``first`` is the number of the first row, if ``X`` is a part of a table.

    Models square their inputs and sum the squares, which overflows for numbers beyond 1e154.

    Raises:
        InvalidValueError: There is such an entry; the message names its row and column.

    Examples:
        >>> require_finite(np.array([[0.0, np.nan]]), ["age", "height"])
        Traceback (most recent call last):
        ...
        suffice.errors.InvalidValueError: X contains NaN at row 0, column 1 ('height'). Remove the row, or fill in...
    """
    # Comparisons with NaN are False.
    if not X.size or (float(X.max()) <= LARGEST and float(X.min()) >= -LARGEST):
        return
    row, column = (int(k) for k in np.argwhere(~(np.abs(X.astype(np.float64)) <= LARGEST))[0])
    name = f" ({names[column]!r})" if names else ""
    value = X[row, column]
    remedy = (
        "Give the column in other units."
        if np.isfinite(value)
        else "Remove the row, or fill in the value, with scikit-learn's SimpleImputer for example."
    )
    raise InvalidValueError(f"{what} contains {_what(value)} at row {first + row}, column {column}{name}. {remedy}")


def _what(value: float) -> str:
    if np.isfinite(value):
        return f"{value:g}, which is beyond {LARGEST:g},"
    return "NaN" if np.isnan(value) else "an infinity (inf)"
