"""Predictions that a user gives in place of a model, and the arguments of an update that hold them."""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from suffice.acquisition import Indices
from suffice.errors import InvalidTypeError, InvalidValueError
from suffice.learner.class_predictions import SUM_TOLERANCE
from suffice.learner.pool_model import PoolRows, as_array, has_method
from suffice.models.inputs import as_labels
from suffice.models.logistic import class_labels
from suffice.numerics import Floats

# A function predicts this many items at a time.
_ROWS: Final = 4096
#: The arguments of an update of which one is given.
SOURCES: Final = "model, probabilities=, predictions= or correct="


class KnownSoFar(NamedTuple):
    """What a monitor knows when predictions are given to it.

    Attributes:
        size: Number of items of the pool.
        labels: All labels so far, as the user gave them.
        columns: The class of each column of the update before.
        task: ``"classification"`` or ``"regression"`` if an earlier update has shown it.
    """

    size: int
    labels: Any
    columns: list[Any]
    task: str | None


class PoolPredictions:
    """Predictions for all items of a pool in place of a model. The "inputs" of an item are its number.

    Attributes:
        shown_name: What to call them in messages and guarantees.
    """

    shown_name = "the given table"

    def __deepcopy__(self, memo: Any) -> "PoolPredictions":
        """Itself, because it is never changed."""
        return self


class GivenProbabilities(PoolPredictions):
    """Class probabilities of all items, ``N x C``, and the class of each column.

    Args:
        table: The validated probabilities.
        classes: The classes.
    """

    def __init__(self, table: Floats, classes: Any) -> None:
        self._table, self.classes_ = table, classes

    def predict_proba(self, items: Any) -> Floats:
        """The rows of some items."""
        return np.asarray(self._table[items])

    def predict(self, items: Any) -> Any:
        """The most probable class of some items."""
        return self.classes_[self._table[items].argmax(axis=1)]


class GivenCommittee(GivenProbabilities):
    """Class probabilities of all items by each member of a committee, ``N x K x C``, whose average is predicted.

    Args:
        members: The validated probabilities.
        classes: The classes.
    """

    def __init__(self, members: Floats, classes: Any) -> None:
        super().__init__(members.mean(axis=1), classes)
        self._members = members

    def sample_proba(self, items: Any, seed: int) -> Floats:
        """The probabilities of some items by each member; the seed is not needed."""
        del seed
        return np.asarray(self._members[items])


class GivenClasses(PoolPredictions):
    """The predicted class of all items.

    Args:
        predicted: The class of each item.
    """

    def __init__(self, predicted: Any) -> None:
        self._predicted, self.classes_ = predicted, np.unique(predicted)

    def predict(self, items: Any) -> Any:
        """The classes of some items."""
        return self._predicted[items]


class GivenAnswers(GivenClasses):
    """Stands for a model of which only is known whether its answers were right: every answer is expected to be right.

    Args:
        size: Number of items of the pool.
    """

    shown_name = "the model"

    def __init__(self, size: int) -> None:
        super().__init__(np.ones(size, dtype=bool))
        self.classes_ = np.array([True, False])


class GivenNumbers(PoolPredictions):
    """The predicted number of all items.

    Args:
        mean: The numbers.
    """

    def __init__(self, mean: Floats) -> None:
        self._mean = mean

    def predict(self, items: Any) -> Floats:
        """The numbers of some items."""
        return np.asarray(self._mean[items])


class GivenDistributions(PoolPredictions):
    """The predicted number of all items, with its standard deviation.

    Args:
        mean: The numbers.
        deviation: Their standard deviations.
    """

    def __init__(self, mean: Floats, deviation: Floats) -> None:
        self._mean, self._deviation = mean, deviation

    def predict(self, items: Any, return_std: bool = False) -> Any:
        """The numbers of some items, with standard deviations if asked."""
        return (self._mean[items], self._deviation[items]) if return_std else self._mean[items]


def given_probabilities(
    probabilities: Any, classes: Any, known: KnownSoFar, who: str = "probabilities"
) -> GivenProbabilities:
    """Class probabilities of all items of a pool, validated.

    Args:
        probabilities: As the user gave them: ``N x C``, or those of ``K`` members of a committee, ``N x K x C``.
        classes: The class of each column, or None: the names of the columns of a DataFrame if they are classes,
            otherwise those of the update before if they are as many, otherwise the classes of the labels in sorted
            order, or the numbers of the columns if the labels are such numbers.
        known: What is known so far.
        who: What to call them in messages.

    Raises:
        InvalidValueError: They are no probabilities, or their columns cannot be named.
    """
    table = _numbers(probabilities, who, "class probabilities, N x C or N x K x C")
    if table.ndim not in (2, 3) or len(table) != known.size or 0 in table.shape:
        raise InvalidValueError(
            f"{who} must be of shape N x C, or N x K x C for K members of a committee, with a row for each of the N = "
            f"{known.size:,} items of the pool, labelled and unlabelled; their shape is {table.shape}"
        )
    unusable = (table < -1e-9).any(axis=-1) | (np.abs(table.sum(axis=-1) - 1.0) > SUM_TOLERANCE)
    if unusable.any():
        place = np.unravel_index(int(unusable.argmax()), unusable.shape)
        where = f"row {place[0]:,}" if len(place) == 1 else f"row {place[0]:,} of member {place[1]}"
        raise InvalidValueError(
            f"{who} must hold no number below 0, and each row must add up to 1; {where} is {_shown(table[place])}"
        )
    kind = GivenProbabilities if table.ndim == 2 else GivenCommittee
    named = _frame_classes(probabilities, classes, known, who)
    return kind(table, _named_columns(table.shape[-1], classes if named is None else named, known, who))


def _frame_classes(probabilities: Any, classes: Any, known: KnownSoFar, who: str) -> list[Any] | None:
    """The classes that the columns of a DataFrame are named after, in their order; None if the names are no classes.

    Raises:
        InvalidValueError: ``classes`` has the same names in another order.
    """
    names = [str(name) for name in getattr(probabilities, "columns", ())]
    if len(set(names)) < len(names) or names == [str(k) for k in range(len(names))]:
        return None
    given = class_labels(known.labels) if classes is None else _class_names(classes)
    wanted = {str(each): each for each in [*(known.columns if classes is None else ()), *given.tolist()]}
    if not wanted or not set(wanted) <= set(names):
        return None
    if classes is not None:
        if len(wanted) == len(names) and [*wanted] != names:
            raise InvalidValueError(
                f"classes is {[*wanted]}, and the columns of {who} are named {names}; leave classes out, or give the "
                "order of the columns"
            )
        return None
    # A class without a label is known by its name only.
    texts = all(isinstance(each, str) for each in wanted.values())
    return [wanted.get(name, name) for name in names] if texts or len(wanted) == len(names) else None


def _named_columns(width: int, classes: Any, known: KnownSoFar, who: str) -> Any:
    """The class of each column."""
    if classes is not None:
        named = _class_names(classes)
        if len(named) != width:
            raise InvalidValueError(f"classes names {len(named)} columns, and {who} has {width}; name each column")
        return named
    if len(known.columns) == width:
        return _class_names(known.columns)
    seen = np.unique(class_labels(known.labels))
    if len(seen) == width:
        return seen
    if seen.dtype.kind in "iu" and len(seen) and seen[0] >= 0 and seen[-1] < width:
        return np.arange(width)
    raise InvalidValueError(
        f"{who} has {width} columns, and the labels are of {len(seen)} classes; give classes=, the class of each column"
    )


def _class_names(classes: Any) -> Any:
    """The names of classes, each once."""
    if isinstance(classes, str) or not hasattr(classes, "__len__"):
        raise InvalidTypeError(f"classes must be a list of classes, not {classes!r}")
    names = class_labels(classes if isinstance(classes, np.ndarray) else list(classes))
    if len(set(names.tolist())) < len(names):
        raise InvalidValueError(f"classes names a class twice: {names.tolist()}")
    return names


def given_predictions(predictions: Any, classes: Any, known: KnownSoFar, who: str = "predictions") -> PoolPredictions:
    """Predicted classes or numbers of all items of a pool, validated.

    Text and flags are classes. Whole numbers are classes if the labels are whole numbers too. All other numbers are
    numbers, unless ``classes`` or an earlier update says otherwise.

    Args:
        predictions: As the user gave them: one for each item, or ``(mean, std)``.
        classes: All classes, or None.
        known: What is known so far.
        who: What to call them in messages.

    Raises:
        InvalidValueError: They cannot be used.
    """
    size = known.size
    if isinstance(predictions, tuple) and len(predictions) == 2 and np.ndim(as_array(predictions[0])) == 1:
        mean, deviation = (_numbers(part, who, "(mean, std), one of each for each item") for part in predictions)
        if mean.shape != (size,) or deviation.shape != (size,):
            raise InvalidValueError(
                f"{who} must be (mean, std) with one of each for each of the {size:,} items of the pool; their shapes "
                f"are {mean.shape} and {deviation.shape}"
            )
        if (deviation < 0.0).any():
            raise InvalidValueError(f"{who} holds a standard deviation below 0")
        return GivenDistributions(mean, deviation)
    plain = as_array(predictions)
    values = np.asarray(
        as_labels(plain if isinstance(plain, np.ndarray) or not hasattr(plain, "__iter__") else list(plain))
    )
    if values.ndim == 2 and len(values) == size and values.shape[1] > 1:
        raise InvalidValueError(
            f"{who} must be one class or number for each item, and their shape is {values.shape}; give class "
            "probabilities as probabilities=. For sets of classes, boxes and other structured answers give correct="
        )
    if values.shape != (size,):
        raise InvalidValueError(
            f"{who} must be one for each of the {size:,} items of the pool, labelled and unlabelled; their shape is "
            f"{values.shape}"
        )
    if _are_classes(values, classes, known):
        named = class_labels(values)
        if classes is not None:
            strangers = set(named.tolist()).difference(_class_names(classes).tolist())
            if strangers:
                raise InvalidValueError(f"{who} holds {min(strangers, key=str)!r}, which is not one of classes=")
        return GivenClasses(named.copy())
    return GivenNumbers(_numbers(values, who, "numbers or classes"))


def _are_classes(values: Any, classes: Any, known: KnownSoFar) -> bool:
    """Whether predictions are classes."""
    if classes is not None or values.dtype.kind not in "iuf":
        return True
    if known.task is not None:
        return known.task == "classification"
    return values.dtype.kind in "iu" and np.asarray(as_labels(known.labels)).dtype.kind in "iu"


def _numbers(values: Any, who: str, form: str) -> Floats:
    """A copy of finite numbers."""
    try:
        numbers = np.array(as_array(values), dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidValueError(f"{who} must be {form}; it holds something that is not a number") from None
    if not np.isfinite(numbers).all():
        where = tuple(np.argwhere(~np.isfinite(numbers))[0].tolist())
        place = where[0] if len(where) == 1 else where
        raise InvalidValueError(f"{who} must be finite numbers, and holds {numbers[where]} at {place}")
    return numbers


def _shown(row: Floats) -> str:
    """A row of numbers, for a message."""
    return str(np.round(row[:6], 4).tolist()) + (" ..." if len(row) > 6 else "")


def is_function(model: Any) -> bool:
    """Whether something that is given as a model is a function that predicts."""
    predicts = has_method(model, "predict") or has_method(model, "predict_proba")
    return callable(model) and not isinstance(model, type) and not predicts


def predicted_by(function: Callable[[Any], Any], pool: PoolRows) -> Any:
    """What a function of the caller predicts for all items of a pool, which it is given in parts.

    Returns:
        An array with one row for each item; or a tuple of two of them.

    Raises:
        InvalidValueError: It does not return a prediction for each item.
    """
    parts: list[Any] = []
    for start in range(0, len(pool), _ROWS):
        items = np.arange(start, min(start + _ROWS, len(pool)))
        answer = function(pool.rows(items))
        part = tuple(map(as_array, answer)) if isinstance(answer, tuple) else (as_array(answer),)
        if any(np.ndim(each) == 0 or len(each) != len(items) for each in part):
            shapes = " and ".join(str(np.shape(each)) for each in part)
            raise InvalidValueError(
                f"the function must return a prediction for each of the {len(items):,} items that it is given: class "
                "probabilities, N x C or N x K x C, classes, numbers, or (mean, std); the shape of what it returned is "
                f"{shapes}"
            )
        parts.append(part)
    joined = tuple(np.concatenate([np.asarray(as_labels(each)) for each in same]) for same in zip(*parts, strict=True))
    return joined[0] if len(joined) == 1 else joined


def right_or_wrong(correct: Any, items: Indices) -> dict[int, bool]:
    """Whether the predictions for some items were right, by item, as far as it is known.

    Args:
        correct: True or False by item, or one for each of ``items``, in which None stands for an item without a
            prediction.
        items: The labelled items.

    Raises:
        InvalidValueError: It holds another item or another value.
    """
    if isinstance(correct, Mapping):
        pairs = list(correct.items())
        known = set(items.tolist())
        for item, _ in pairs:
            if isinstance(item, bool) or not isinstance(item, int | np.integer) or int(item) not in known:
                raise InvalidValueError(
                    f"correct holds item {item!r}, which is not in indices; give its index there too"
                )
    else:
        values = correct.tolist() if isinstance(correct, np.ndarray) else as_array(correct)
        if isinstance(values, str) or not hasattr(values, "__iter__") or len(list(values)) != len(items):
            raise InvalidValueError(
                f"correct must be True or False by item, as a dictionary, or one for each of the {len(items):,} items "
                "of indices"
            )
        pairs = list(zip(items.tolist(), list(values), strict=True))
    return {int(item): flag(value, f"correct of item {item}") for item, value in pairs if value is not None}


def flag(value: Any, name: str) -> bool:
    """Return True or False.

    Args:
        value: What was given: also 0 and 1.
        name: What it is, for the message.

    Raises:
        InvalidValueError: It is something else.
    """
    if isinstance(value, bool | np.bool_) or (isinstance(value, int | np.integer) and value in (0, 1)):
        return bool(value)
    raise InvalidValueError(f"{name} must be True (the prediction was right) or False, not {value!r}")
