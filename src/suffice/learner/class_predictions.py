"""Class probabilities of any fitted model for items of a pool, and the members of its committee."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from scipy.sparse import issparse

from suffice.acquisition import Indices, bald
from suffice.errors import InvalidValueError
from suffice.learner.pool_model import PoolModel, has_method, is_forest
from suffice.learner.step_inputs import ExpectedErrors, LaplacePredictor
from suffice.models.logistic import BayesianLogistic
from suffice.numerics import Floats

# The average of a committee may differ from the prediction of the model by rounding.
_SAME: Final = 1e-6
#: Tolerance of the sum of a row of probabilities, for single precision.
SUM_TOLERANCE: Final = 1e-3
# Members of a committee with a larger mean probability of their class than this are always certain.
_CERTAIN: Final = 0.95
# Number of items for which the predictions of all members of a committee are in memory at a time.
_ROWS: Final = 4096


class ClassPredictions:
    """Class probabilities of a model, with the members of its committee, their votes, and expected errors.

    Args:
        source: The model and its pool.
    """

    def __init__(self, source: PoolModel) -> None:
        self._source = source

    def has_committee(self, items: Indices) -> bool:
        """Whether the model has a committee; an ensemble is tested on some items."""
        if isinstance(self._source.last_step, BayesianLogistic):
            return len(self._source.last_step.classes_) > 1
        return self._with_members(items)[1] is not None

    def classes(self, labels: Sequence[Any]) -> list[Any]:
        """The class of each column of the model's own predictions.

        Args:
            labels: All labels so far. They name the columns if the model does not: their classes in sorted order, or
                the numbers of the columns.

        Raises:
            InvalidValueError: The columns cannot be named.
        """
        declared = getattr(self._source.model, "classes_", None)
        named = None if declared is None else np.asarray(declared).tolist()
        if self._source.predict is None and named is not None:
            if named and isinstance(named[0], list):
                raise InvalidValueError(f"{self._source.name} must predict one class for each item")
            return list(named)
        width = self._averaged(np.array([0])).shape[-1]
        if named is not None and len(named) == width:
            return list(named)
        seen = sorted(set(labels), key=lambda label: (str(type(label)), label))
        if len(seen) == width:
            return list(seen)
        if all(isinstance(label, int) and 0 <= label < width for label in seen):
            return list(range(width))
        raise InvalidValueError(
            f"{self._source.function} returned {width} columns, and the labels are of {len(seen)} classes; give the "
            "model an attribute classes_ with the class of each column"
        )

    def probabilities(self, items: Indices, columns: Sequence[int], width: int) -> Floats:
        """Class probabilities of items, ``N x width``.

        Args:
            items: The items.
            columns: Where each column of the model goes.
            width: Number of columns of the result; 0 in those that no column goes to.
        """
        if not len(items):
            return np.zeros((0, width))
        return _placed(self._averaged(items), columns, width)

    def members(self, items: Indices, columns: Sequence[int], width: int) -> Floats | None:
        """Class probabilities by each member of a committee, ``N x K x width``; None if the model has no committee.

        A committee is what ``predict`` returns with three axes, what ``sample_proba`` of a network draws, or the
        ``estimators_`` of an ensemble, if the prediction of the ensemble is their average.
        """
        _, members = self._with_members(items if len(items) else np.array([0]))
        return None if members is None else _placed(members[: len(items)], columns, width)

    def _averaged(self, items: Indices) -> Floats:
        """Class probabilities, with the columns of the model."""
        if is_forest(self._source.last_step):
            forest, inputs = self._source.last_step, self._source.transformed(items)
            return _average(_tree_probabilities(forest.estimators_, inputs))
        if self._source.predict is None:
            return self._of_classes(self._table(self._source.model.predict_proba(self._source.rows(items)), len(items)))
        p = self._table(self._source.answer(items), len(items))
        return p.mean(axis=1) if p.ndim == 3 else p

    def _of_classes(self, p: Floats) -> Floats:
        """Class probabilities with one column for each class that the model names."""
        named = getattr(self._source.model, "classes_", None)
        if named is None or len(named) == p.shape[1]:
            return p
        if len(named) == 1:
            # If all labels are of one class, LightGBM also returns a column for a second class.
            return np.ones((len(p), 1))
        raise InvalidValueError(
            f"{self._source.function} returned {p.shape[1]} columns, and classes_ of the model has {len(named)} "
            "classes; return one column for each class"
        )

    def _with_members(self, items: Indices) -> tuple[Floats, Floats | None]:
        """Class probabilities, and those by each member of a committee, with the columns of the model."""
        if self._source.predict is not None:
            p = self._table(self._source.answer(items), len(items))
            return (p.mean(axis=1), p) if p.ndim == 3 else (p, None)
        last_step = self._source.last_step
        if is_forest(last_step):
            return _forest_members(last_step, self._source.transformed(items))
        averaged, members = self._averaged(items), None
        if has_method(last_step, "sample_proba"):
            members = np.asarray(last_step.sample_proba(self._source.transformed(items), seed=0), dtype=np.float64)
        elif hasattr(last_step, "estimators_"):
            members = _ensemble_members(last_step, self._source.transformed(items), averaged)
        return averaged, members

    def votes(self, items: Indices, columns: Sequence[int], width: int) -> Any:
        """The class that each member votes for, ``K x N``; None if the model has no committee."""
        if isinstance(self._source.last_step, BayesianLogistic) and len(columns) > 1:
            return self._laplace(items, columns, width).votes(np.arange(len(items)), 10)
        parts = [self.members(part, columns, width) for part in _parts(items)]
        if any(part is None for part in parts):
            return None
        return np.concatenate([part.argmax(axis=2).T for part in parts if part is not None], axis=1)

    def gains(self, items: Indices, columns: Sequence[int], width: int) -> Floats | None:
        """Information gain of each label in nats; None if the model has no committee."""
        if isinstance(self._source.last_step, BayesianLogistic) and len(columns) > 1:
            return self._laplace(items, columns, width).gains(np.arange(len(items)))
        parts = [self.members(part, columns, width) for part in _parts(items)]
        return None if any(part is None for part in parts) else np.concatenate([bald(part) for part in parts])

    def errors(self, items: Indices, columns: Sequence[int], width: int) -> tuple[ExpectedErrors, bool]:
        """Expected errors of items, and whether their reducible part is known; it is 0 if not.

        It is not known without a committee. It is also not known for a committee whose members are always certain, such
        as trees with pure leaves: such a committee does not distinguish noise from uncertainty about the model.
        """
        if isinstance(self._source.last_step, BayesianLogistic) and len(columns) > 1:
            return self._laplace(items, columns, width).errors(np.arange(len(items))), True
        averages, members = self._with_members(items)
        p = _placed(averages, columns, width)
        total = 1.0 - p.max(axis=1)
        if members is None or members.max(axis=2).mean() > _CERTAIN:
            return ExpectedErrors(total, np.zeros(len(p)), p), False
        averaged = members.mean(axis=1).max(axis=1)
        reducible = np.maximum(members.max(axis=2).mean(axis=1) - averaged, 0.0)
        return ExpectedErrors(total, reducible, p), True

    def _laplace(self, items: Indices, columns: Sequence[int], width: int) -> LaplacePredictor:
        """The Laplace posterior of a classifier of suffice."""
        codes = [-1] * width
        for code, column in enumerate(columns):
            codes[column] = code
        X = np.asarray(self._source.transformed(items), dtype=np.float64)
        return LaplacePredictor(self._source.last_step.state_, self._source.last_step.features(X), codes)

    def _table(self, answer: Any, rows: int) -> Floats:
        """Validated class probabilities, ``N x C`` or ``N x K x C``."""
        try:
            p = np.asarray(answer, dtype=np.float64)
        except (TypeError, ValueError):
            p = np.zeros(0)
        who = self._source.function
        axes = (2, 3) if self._source.predict is not None else (2,)
        if p.ndim not in axes or p.shape[0] != rows or 0 in p.shape:
            form = "N x C or N x K x C" if self._source.predict is not None else "N x C"
            raise InvalidValueError(
                f"{who} must return class probabilities of shape {form} for N = {rows} items; its shape is {p.shape}"
            )
        if not (p >= -1e-9).all() or not (np.abs(p.sum(axis=-1) - 1.0) <= SUM_TOLERANCE).all():
            raise InvalidValueError(f"{who} must return probabilities: no number below 0, and each row adds up to 1")
        return p


def _placed(p: Floats, columns: Sequence[int], width: int) -> Floats:
    """Columns in another order, with zeros for missing columns."""
    if list(columns) == list(range(width)):
        return p
    placed = np.zeros((*p.shape[:-1], width))
    placed[..., list(columns)] = p
    return placed


def _parts(items: Indices) -> list[Indices]:
    return [items[k : k + _ROWS] for k in range(0, max(len(items), 1), _ROWS)]


def _forest_members(forest: Any, X: Any) -> tuple[Floats, Floats]:
    """Probabilities by a forest, ``N x C``, and by each of its trees, ``N x K x C``."""
    members = _tree_probabilities(forest.estimators_, X)
    return _average(members), np.stack(members, axis=1)


def _average(members: Sequence[Floats]) -> Floats:
    """The average of the probabilities by trees, added in the order of the forest."""
    total = np.zeros(members[0].shape)
    for p in members:
        total += p
    return total / len(members)


def _tree_probabilities(trees: Sequence[Any], X: Any) -> list[Floats]:
    """Probabilities by each of several trees. The first one validates the inputs for all of them."""
    inputs = X.astype(np.float32).tocsr() if issparse(X) else np.asarray(X, dtype=np.float32)
    first = np.asarray(trees[0].predict_proba(inputs))
    return [first, *(np.asarray(tree.predict_proba(inputs, check_input=False)) for tree in trees[1:])]


def _ensemble_members(model: Any, X: Any, averaged: Floats) -> Floats | None:
    """Probabilities by each of the ``estimators_`` of an ensemble, ``N x K x C``, if it predicts their average."""
    members = getattr(model, "estimators_", None)
    classes = getattr(model, "classes_", None)
    if classes is None or members is None or not len(members):
        return None
    if not all(has_method(member, "predict_proba") and hasattr(member, "classes_") for member in members):
        return None
    parts: Any = getattr(model, "estimators_features_", None)
    if parts is None and all(hasattr(member, "tree_") for member in members):
        probabilities = _tree_probabilities(members, X)
    else:
        inputs = [X if parts is None else X[:, parts[k]] for k in range(len(members))]
        probabilities = [np.asarray(member.predict_proba(rows)) for member, rows in zip(members, inputs, strict=True)]
    # Members have codes or names of classes; a member may lack some classes.
    for names in (list(range(len(classes))), np.asarray(classes).tolist()):
        own_names = [np.asarray(member.classes_).tolist() for member in members]
        if not all(set(own) <= set(names) for own in own_names):
            continue
        table = np.zeros((len(probabilities[0]), len(members), len(names)))
        for k, (p, own) in enumerate(zip(probabilities, own_names, strict=True)):
            table[:, k, [names.index(name) for name in own]] = p
        if averaged.shape == table.shape[::2] and np.abs(table.mean(axis=1) - averaged).max() <= _SAME:
            return table
    return None
