"""Labels that are sets of classes: matrices of 0 and 1, and the same as texts such as ``"0110"``."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, clone

from suffice.checks.guarantee import Guarantee
from suffice.checks.random_check import require_fixed_size
from suffice.errors import InvalidValueError, SufficeError
from suffice.learner.pool_model import as_array, require_fitted
from suffice.learner.pool_predictions import GivenClasses
from suffice.models.inputs import require_single_labels
from suffice.session.model_check import ModelCheck

# A single column is a list of labels in another shape.
_FEWEST_COLUMNS: Final = 2
_BINARIZE: Final = (
    "labels holds sets of classes; give a matrix of 0 and 1 with a column for each class, as "
    "sklearn.preprocessing.MultiLabelBinarizer makes it"
)


def is_label_matrix(labels: Any) -> bool:
    """Whether labels have several columns.

    Raises:
        InvalidValueError: They are lists or sets of classes.
    """
    if issparse(labels):
        return bool(labels.shape[1] >= _FEWEST_COLUMNS)
    if not hasattr(labels, "shape") and hasattr(labels, "__iter__"):
        labels = list(labels)
        if any(isinstance(label, set | frozenset | list | tuple) for label in labels):
            try:
                require_single_labels(labels)
            except InvalidValueError:
                raise InvalidValueError(_BINARIZE) from None
    shape = np.shape(as_array(labels))
    return len(shape) == 2 and shape[1] >= _FEWEST_COLUMNS


def label_codes(matrix: Any, who: str = "labels", width: int | None = None) -> Any:
    """The rows of a matrix of 0 and 1 as texts.

    Args:
        matrix: The matrix, also sparse or a table.
        who: What to call it in messages.
        width: Its number of columns, if known.

    Raises:
        InvalidValueError: It is no such matrix.

    Examples:
        >>> label_codes([[0, 1, 1], [0, 0, 0]]).tolist()
        ['011', '000']
    """
    try:
        dense = matrix.toarray() if issparse(matrix) else np.asarray(as_array(matrix))
    except ValueError:  # rows of different lengths
        dense = np.zeros(0)
    if dense.ndim != 2 or (width is not None and dense.shape[1] != width):
        wanted = "a column for each class" if width is None else f"{width} columns, one for each class"
        raise InvalidValueError(f"{who} must be a matrix of 0 and 1 with {wanted}; the shape is {dense.shape}")
    if dense.dtype.kind not in "biuf" or not np.isin(dense, (0, 1)).all():
        raise InvalidValueError(
            f"{who} must be 0 or 1 for each item and class; for other structured answers give correct=, or use one "
            "StopMonitor for each column"
        )
    digits = np.where(dense.astype(bool), "1", "0")
    return np.array(["".join(row) for row in digits.tolist()], dtype=f"U{dense.shape[1]}")


def label_matrix(codes: Any) -> Any:
    """The matrix of 0 and 1 of :func:`label_codes`.

    Examples:
        >>> label_matrix(["011", "000"]).tolist()
        [[0, 1, 1], [0, 0, 0]]
    """
    return np.array([[int(digit) for digit in code] for code in np.asarray(codes).tolist()], dtype=np.intp)


class SetClassifier(BaseEstimator):  # type: ignore[misc]
    """A fitted classifier of sets of classes as one whose classes are the sets, as texts.

    Args:
        estimator: The classifier, which predicts a matrix of 0 and 1.
        width: Number of classes.
    """

    def __init__(self, estimator: Any, width: int) -> None:
        self.estimator, self.width = estimator, width

    @property
    def shown_name(self) -> str:
        """What to call it in messages."""
        steps = getattr(self.estimator, "steps", None)
        return type(steps[-1][1] if steps else self.estimator).__name__

    @property
    def classes_(self) -> Any:
        """The numbers of the columns."""
        return np.arange(self.width)

    def __sklearn_is_fitted__(self) -> bool:
        """Always true: the estimator was tried before."""
        return True

    def fit(self, X: Any, y: Any) -> "SetClassifier":
        """Fit a copy of the estimator.

        Args:
            X: Inputs.
            y: Sets as texts.
        """
        self.estimator = clone(self.estimator).fit(X, label_matrix(y))
        return self

    def predict(self, X: Any) -> Any:
        """The sets of some inputs, as texts."""
        return label_codes(self.estimator.predict(X), f"the predictions of {self.shown_name}", self.width)


class GivenSets(GivenClasses):
    """The predicted set of classes of all items, as texts."""


def set_classifier(model: Any, first: Any, width: int) -> SetClassifier:
    """A fitted classifier of sets of classes, tried on some items.

    Args:
        model: The classifier.
        first: Inputs of some items.
        width: Number of classes.

    Raises:
        InvalidValueError: It does not predict a matrix of 0 and 1 with as many columns.
        SufficeError: It is not fitted.
    """
    require_fitted(model, lambda: model.predict(first))
    wrapped = SetClassifier(model, width)
    wrapped.predict(first)
    return wrapped


def column_names(classes: Any, labels: Any) -> list[Any]:
    """The name of each class: as given, the names of the columns of a table, or their numbers.

    Raises:
        InvalidValueError: The names are not one for each column, or not different.
    """
    width = labels.shape[1] if hasattr(labels, "shape") else len(next(iter(labels)))
    named = getattr(labels, "columns", None) if classes is None else classes
    names = list(range(width)) if named is None else np.asarray(list(named)).tolist()
    if len(names) != width or len(set(names)) < width:
        raise InvalidValueError(
            f"classes must be {width} different names, one for each column of labels, not {names!r}"
        )
    return names


def guarantees_by_class(check: ModelCheck, names: Sequence[Any]) -> dict[Any, Guarantee]:
    """Guarantees for each class of sets from one check, each with its part of the error probability.

    Args:
        check: A complete check of fixed size.
        names: The name of each class.

    Raises:
        SufficeError: The check is not complete.
        InvalidValueError: It is a sequential check.
    """
    if not check.complete:
        raise SufficeError("the check is not complete; give all its answers with check.tell")
    require_fixed_size(check.record, "guarantees for each class")
    predicted = dict(zip(check.unlabelled.tolist(), check.predictions.tolist(), strict=True))
    found: dict[Any, Guarantee] = {}
    for column, name in enumerate(names):
        part = replace(
            check.record,
            labels=_column_of(check.record.labels, column),
            first_answers=_column_of(check.record.first_answers, column),
        )
        values = {item: predicted[item][column] for item in check.record.items}
        stated = "" if check.guarantee is None else check.guarantee.model
        counted = check.asked.unlabelable_as
        found[name] = part.guarantee(values, parts=len(names), unlabelable_as=counted, model=stated)
    return found


def _column_of(labels: Mapping[int, Any], column: int) -> dict[int, Any]:
    """One digit of each label."""
    return {item: None if code is None else code[column] for item, code in labels.items()}
