"""What a caller gave a model, as arrays that can be computed with; or an error that names the row and the column."""

from functools import cache
from inspect import signature
from typing import Any, TypeVar, cast

import numpy as np

# scikit-learn is imported by the functions that use it: to open a project takes none of them, and it takes seconds.
from suffice.errors import InvalidValueError
from suffice.numerics.special_functions import Floats

Model = TypeVar("Model")


def training_inputs(model: Any, X: Any, y: Any, *, reset: bool = True, dtype: Any = np.float64) -> tuple[Floats, Any]:
    """Return inputs (``n x D``) and labels (as they came, ``n``), checked as scikit-learn would.

    Args:
        model: The estimator, which is told how many features it was fitted with.
        X: Inputs.
        y: Labels, numbers or classes.
        reset: Whether these inputs decide the number of features; else they must agree with it.
        dtype: Number type of the inputs; in single precision, which networks take, rows may have any shape.

    Raises:
        InvalidValueError: A NaN or an infinite entry: the message names its row and column.
        ValueError: Anything else that scikit-learn refuses.
    """
    from sklearn.utils.validation import column_or_1d

    if y is None:
        raise InvalidValueError(f"{type(model).__name__} requires y to be passed, but the target y is None")
    inputs = _checked(model, X, reset=reset, dtype=dtype)
    labels = column_or_1d(y, warn=True)
    if len(labels) != len(inputs):
        raise InvalidValueError(f"X has {len(inputs)} rows and y has {len(labels)}; they must match")
    return inputs, labels


def prediction_inputs(model: Any, X: Any, *, dtype: Any = np.float64) -> Floats:
    """Return inputs to predict for, ``m x D``, checked against those the model was fitted with."""
    return _checked(model, X, reset=False, dtype=dtype)


def _checked(model: Any, X: Any, *, reset: bool, dtype: Any) -> Floats:
    from sklearn.utils.validation import validate_data

    names, any_shape = column_names(X), dtype is np.float32
    # Numbers too large for single precision become infinite, and are refused as such.
    with np.errstate(over="ignore"):
        inputs = validate_data(model, X, reset=reset, dtype=dtype, ensure_all_finite=False, allow_nd=any_shape)
    require_finite(inputs.reshape(len(inputs), -1), names)
    return cast(Floats, inputs)


def targets(y: Any) -> Floats:
    """Return regression targets as float64, or say which one is no number.

    Examples:
        >>> targets([1, 2.5])
        array([1. , 2.5])
    """
    from sklearn.utils.validation import check_array

    values = np.asarray(y)
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
    bad = np.flatnonzero(~np.isfinite(numbers))
    if len(bad):
        raise InvalidValueError(f"y contains {_what(numbers[bad[0]])} at row {bad[0]}; every label must be a number")
    return numbers


def as_labels(y: Any) -> Any:
    """Labels as an array that does not turn what is missing among words into a word.

    Examples:
        >>> as_labels(["ham", float("nan")])
        array(['ham', nan], dtype=object)
    """
    words = [isinstance(label, str) for label in y] if isinstance(y, list | tuple) else []
    if any(words) and not all(words):
        labels = np.empty(len(y), dtype=object)
        labels[:] = y
        return labels
    return y


def is_missing(label: Any) -> bool:
    """Whether a label is None, NaN, or what pandas takes for missing."""
    if label is None:
        return True
    try:
        return bool(label != label)  # noqa: PLR0124 - only NaN is not itself
    except TypeError:  # pandas.NA does not say whether it is itself
        return True


@cache
def _parameter_names(kind: type) -> list[str]:
    return list(signature(kind).parameters)


def unfitted(model: Model) -> Model:
    """A model of the same parameters that has learned nothing.

    The parameters are not copied, which scikit-learn's ``clone`` does: it takes longer than to learn a label.
    """
    kind: Any = type(model)
    return cast(Model, kind(**{name: getattr(model, name) for name in _parameter_names(kind)}))


def column_names(X: Any) -> list[str] | None:
    """Names of the columns, where ``X`` is a table that has them."""
    names = getattr(X, "columns", None)
    return None if names is None else [str(name) for name in names]


def require_finite(X: Floats, names: list[str] | None = None, what: str = "X") -> None:
    """Refuse a NaN or an infinite entry by its row and column; ``what`` is what to call the table.

    Raises:
        InvalidValueError: There is one.

    Examples:
        >>> require_finite(np.array([[0.0, np.nan]]), ["age", "height"])
        Traceback (most recent call last):
        ...
        suffice.errors.InvalidValueError: X contains NaN at row 0, column 1 ('height'). Remove the row, or fill in...
    """
    # A sum is finite unless an entry is not (or it overflows, which the second look clears up).
    if np.isfinite(np.sum(X)) or np.isfinite(X).all():
        return
    row, column = (int(k) for k in np.argwhere(~np.isfinite(X))[0])
    name = f" ({names[column]!r})" if names else ""
    raise InvalidValueError(
        f"{what} contains {_what(X[row, column])} at row {row}, column {column}{name}. "
        "Remove the row, or fill in the value, with scikit-learn's SimpleImputer for example."
    )


def _what(value: float) -> str:
    return "NaN" if np.isnan(value) else "an infinity (inf)"
