"""Predictions that were made elsewhere, read from columns of any kind, and what can be done with them."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from suffice.arguments import floats
from suffice.checks.given_predictions import PredictedColumns, class_text, is_missing
from suffice.checks.prediction_check import PredictionCheck
from suffice.checks.prediction_finish import PredictionFinish
from suffice.errors import InvalidTypeError, InvalidValueError
from suffice.numerics import Floats

#: Name of a single column of predictions.
ONE_COLUMN: Final = "prediction"
# Largest number of groups for which guarantees are stated together.
_MOST_GROUPS: Final = 1000
# Up to so many different whole numbers are classes.
_MOST_CODES: Final = 20


class GivenPredictions(PredictedColumns):
    """Predictions that were made elsewhere, one for each row; :func:`of_predictions` returns it.

    Attributes:
        columns: The predictions of each maker by its name, all of the same length: texts, or numbers.
        probability: Confidence of the first column in each of its predictions, from 0 to 1; None if it is not known.
        groups: Group of each row; None if there are none.
        numbers: Whether the predictions are numbers.

    Examples:
        >>> from suffice.checks import GivenPredictions, of_predictions
        >>> given = of_predictions(["a", "b", "a"])
        >>> isinstance(given, GivenPredictions), given.numbers, [len(column) for column in given.columns.values()]
        (True, False, [3])
    """

    def check(self, **options: Any) -> PredictionCheck:
        """Draw a random check of the predictions; see :class:`suffice.checks.PredictionCheck` for the options."""
        return PredictionCheck(self._read_for(options), **options)

    def finish(self, **options: Any) -> PredictionFinish:
        """Make a data set of which at most a share is wrong; see :class:`suffice.checks.PredictionFinish`."""
        return PredictionFinish(self._read_for(options), **options)

    def _read_for(self, options: Mapping[str, Any]) -> "GivenPredictions":
        """The predictions as classes, if they are codes of classes and no tolerance says that they are numbers."""
        if not self.numbers or options.get("tolerance") is not None or not all(map(_are_codes, self.columns.values())):
            return self
        columns = {name: _texts(values.tolist(), name) for name, values in self.columns.items()}
        return GivenPredictions(columns, self.probability, self.groups)


def of_predictions(predicted: Any, probability: Any = None, groups: Any = None) -> GivenPredictions:
    """Predictions that were made elsewhere, to be checked by people.

    No model is needed. A random check proves how many of the predictions are wrong at most.

    Args:
        predicted: The prediction for each row: classes or other texts, or numbers. At most 20 different whole numbers
            are codes of classes, unless a check has a ``tolerance``. A list, an array, or a column of a pandas, polars
            or Arrow table. Several makers of predictions are compared if it is a mapping from names to such columns, or
            a DataFrame.
        probability: Confidence in each prediction of the first column, from 0 to 1.
        groups: Group of each row, for a guarantee for each group. Groups must be known before the check, such as the
            predicted class or the source of a row; the true class is not.

    Raises:
        InvalidTypeError: Something is not a column.
        InvalidValueError: The columns have different lengths, there are no rows, or a value is missing or out of range.

    Examples:
        A language model has labelled 2,000 rows. People label rows that are drawn at random, until it is proven that
        at most 5 % of the predictions are wrong:

        >>> truth = ["spam" if row % 7 == 0 else "ham" for row in range(2000)]
        >>> llm = ["ham" if row % 70 == 0 else label for row, label in enumerate(truth)]
        >>> check = of_predictions(llm).check(at_most=0.05, seed=0)
        >>> result = check.run(lambda row: truth[row])
        >>> print(result)
        At most 5 % of the predictions for the 2,000 rows are wrong (95 % confidence). A random check ended after 152
        answers, with 1 wrong prediction.
    """
    columns = _columns(predicted)
    size = len(next(iter(columns.values())))
    if not size:
        raise InvalidValueError("predicted must have at least one row")
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        raise InvalidValueError(f"the columns of predicted must have the same length; the lengths are {lengths}")
    numbers = all(_is_numeric(values) for values in columns.values())
    convert = _numbers if numbers else _texts
    made = {name: convert(values, _argument(name)) for name, values in columns.items()}
    shares = None if probability is None else _probabilities(probability, size)
    names = None if groups is None else _texts(_values(groups, "groups"), "groups")
    if names is not None and len(names) != size:
        raise InvalidValueError(f"groups must have one value for each of the {size:,} rows, not {len(names):,}")
    found = GivenPredictions(made, shares, names, numbers)
    if len(found.group_sizes) > _MOST_GROUPS:
        raise InvalidValueError(
            f"groups has {len(found.group_sizes):,} different values, and at most {_MOST_GROUPS:,} groups can be "
            "guaranteed together; is it an identifier?"
        )
    return found


def _columns(predicted: Any) -> dict[str, list[Any]]:
    if isinstance(predicted, Mapping):
        columns = dict(predicted.items())
    elif hasattr(predicted, "columns") and hasattr(predicted, "iloc"):
        columns = {name: predicted.iloc[:, k] for k, name in enumerate(predicted.columns)}
    elif hasattr(predicted, "get_columns"):
        columns = {column.name: column for column in predicted.get_columns()}
    elif hasattr(predicted, "column_names") and hasattr(predicted, "column"):
        columns = {name: predicted.column(name) for name in predicted.column_names}
    else:
        columns = {ONE_COLUMN: predicted}
    if not columns:
        raise InvalidValueError("predicted must have at least one column")
    return {str(name): _values(values, _argument(str(name))) for name, values in columns.items()}


def _argument(name: str) -> str:
    """A column of predictions in a message."""
    return "predicted" if name == ONE_COLUMN else f"predicted[{name!r}]"


def _values(column: Any, name: str) -> list[Any]:
    """A column as a list of Python values."""
    for method in ("to_pylist", "tolist", "to_list"):
        if callable(getattr(column, method, None)):
            found = getattr(column, method)()
            break
    else:
        if isinstance(column, str | bytes) or not isinstance(column, Iterable):
            raise InvalidTypeError(f"{name} must be a series of values, not {type(column).__name__}")
        found = list(column)
    if not isinstance(found, Sequence):
        raise InvalidTypeError(f"{name} must be a series of values, not {type(column).__name__}")
    if any(isinstance(value, list | tuple) for value in found):
        raise InvalidTypeError(f"{name} must be a series of single values, and some are lists; give one column")
    return list(found)


def _is_numeric(values: list[Any]) -> bool:
    """Whether all values that are not missing are numbers, and there is one."""
    known = [value for value in values if not is_missing(value)]
    numeric = all(isinstance(value, int | float | np.number) and not isinstance(value, bool) for value in known)
    return bool(known) and numeric


def _are_codes(values: NDArray[Any]) -> bool:
    """Whether numbers are codes of classes: at most 20 different whole ones."""
    distinct = np.unique(values)
    return len(distinct) <= _MOST_CODES and bool((distinct == np.floor(distinct)).all())


def _numbers(values: list[Any], name: str) -> NDArray[Any]:
    bad = [row for row, value in enumerate(values) if is_missing(value) or not math.isfinite(value)]
    if bad:
        raise InvalidValueError(_missing(name, bad[0], len(bad)))
    return np.array(values, dtype=np.float64)


def _texts(values: list[Any], name: str) -> NDArray[Any]:
    """Values as texts; a missing value is refused."""
    bad = [row for row, value in enumerate(values) if is_missing(value)]
    if bad:
        raise InvalidValueError(_missing(name, bad[0], len(bad)))
    found = np.empty(len(values), dtype=object)
    found[:] = [class_text(value) for value in values]
    return found


def _missing(name: str, row: int, number: int) -> str:
    others = f" and {number - 1:,} more" if number > 1 else ""
    return f"{name} has no value at row {row}{others}; leave such rows out, or fill them first"


def _probabilities(probability: Any, size: int) -> Floats:
    found = floats(_values(probability, "probability"), "probability")
    if found.shape != (size,):
        raise InvalidValueError(f"probability must have one value for each of the {size:,} rows, not {len(found):,}")
    bad = np.flatnonzero(~((found >= 0.0) & (found <= 1.0)))
    if len(bad):
        at = int(bad[0])
        raise InvalidValueError(
            f"probability must be from 0 to 1; row {at} has {float(found[at])!r}; divide percentages by 100"
        )
    return found
