"""The arguments of an update of a monitor, validated: the model or its predictions, all labels, and random items."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from suffice.acquisition import Indices
from suffice.arguments import real
from suffice.errors import InvalidTypeError, InvalidValueError
from suffice.learner.label_sets import GivenSets, column_names, is_label_matrix, label_codes, set_classifier
from suffice.learner.model_predictions import FittedModel, PoolRows, Predict
from suffice.learner.pool_predictions import (
    SOURCES,
    GivenAnswers,
    KnownSoFar,
    PoolPredictions,
    given_predictions,
    given_probabilities,
    is_function,
    predicted_by,
    right_or_wrong,
)
from suffice.learner.prepare import checked_indices
from suffice.models.inputs import as_labels, is_missing
from suffice.models.logistic import class_labels


class GivenArguments(NamedTuple):
    """The arguments of an update as the caller gave them; see :meth:`suffice.StopMonitor.update`."""

    model: Any
    indices: Any
    labels: Any
    random: Any
    probabilities: Any
    predictions: Any
    classes: Any
    correct: Any


@dataclass(frozen=True, eq=False)
class UpdateArguments:
    """What the arguments of an update say.

    Attributes:
        fitted: The model, or predictions in place of one.
        labels: All labels by item as plain values, in the order of their first updates; sets of classes as texts.
        items: The labelled items in the order of the caller.
        drawn: Those that the caller says were drawn at random.
        answers: Whether predictions were right, by item, in place of labels; or None.
        names: For sets of classes, the name of each class.
    """

    fitted: FittedModel
    labels: dict[int, Any]
    items: Indices
    drawn: set[int]
    answers: dict[int, bool] | None
    names: list[Any]


class _Source(NamedTuple):
    """The model or predictions, labels in the form of the caller, answers, and names of classes."""

    model: Any
    labels: Any
    answers: dict[int, bool] | None
    names: list[Any]


@dataclass(frozen=True, eq=False)
class ArgumentReader:
    """Reads the arguments of an update; it depends on what was given before.

    Attributes:
        pool: The pool.
        predict: The caller's function, or None.
        positive: The positive class of a screening, or None.
        may_miss: Classes that may be missed.
        task: The task of the updates before; None before the first one.
        right_or_wrong: Whether the updates before were with ``correct=``.
        names: For sets of classes, the names of the classes so far.
        columns: The class of each column of the model before.
        learned: The labels of the update before, by item.
        everything: The same with labels of checks.
        checked: The labels of checks, by item.
    """

    pool: PoolRows
    predict: Predict | None
    positive: Any
    may_miss: Sequence[Any]
    task: str | None
    right_or_wrong: bool
    names: list[Any]
    columns: list[Any]
    learned: Mapping[int, Any]
    everything: Mapping[int, Any]
    checked: Mapping[int, Any]

    def read(self, given: GivenArguments) -> UpdateArguments:
        """The arguments, validated.

        Raises:
            InvalidTypeError: An argument is of a wrong kind.
            InvalidValueError: An argument cannot be used.
            SufficeError: The model is not fitted.
        """
        self._require_one_source(given)
        items = checked_indices(given.indices, len(self.pool), "indices")
        source = self._source(given, items)
        fitted = self._checked_model(source.model)
        labels = self._plain_labels(source.labels, items, fitted.task)
        fitted.assume_label_variance(list(labels.values()))
        return UpdateArguments(fitted, labels, items, _drawn(given.random, items), source.answers, source.names)

    def _require_one_source(self, given: GivenArguments) -> None:
        """Raise an error for arguments that are missing or do not go together."""
        sources = sum(
            source is not None for source in (given.model, given.probabilities, given.predictions, given.correct)
        )
        if sources != 1:
            raise InvalidValueError(f"update takes one of {SOURCES}, and {sources or 'none'} came")
        if given.indices is None:
            raise InvalidValueError("update requires indices, all items that are labelled")
        if given.correct is None and given.labels is None:
            raise InvalidValueError("update requires labels, one for each of indices")
        if given.correct is not None and given.labels is not None:
            raise InvalidValueError("correct takes the place of labels; leave labels out")
        if isinstance(given.model, np.ndarray | list | tuple):
            raise InvalidTypeError(
                "model must be a fitted model or a function; give class probabilities as probabilities=, and predicted "
                "classes or numbers as predictions="
            )
        self._require_same_kind(answers=given.correct is not None)

    def _require_same_kind(self, *, answers: bool) -> None:
        """Raise an error if right and wrong answers do not fit the updates before or the settings."""
        if self.task is not None and self.right_or_wrong != answers:
            now = "labels" if self.right_or_wrong else "correct="
            raise InvalidValueError(
                f"the updates before were with {'correct=' if self.right_or_wrong else 'labels'}, and this one with "
                f"{now}; use a new StopMonitor"
            )
        if answers and self._about_classes:
            raise InvalidValueError(
                f"{self._about_classes} is about classes, and correct= says only whether predictions are right; leave "
                f"{self._about_classes} out, or give predictions= and labels"
            )

    @property
    def _about_classes(self) -> str:
        """The name of a setting that is about classes; empty if there is none."""
        if self.positive is not None:
            return "positive"
        return "may_miss" if self.may_miss else ""

    def _source(self, given: GivenArguments, items: Indices) -> _Source:
        """The model or its predictions, and the labels."""
        if given.correct is not None:
            answers = self._all_answers(given.correct, items)
            flags = [answers.get(item, self.everything.get(item, True)) for item in items.tolist()]
            return _Source(GivenAnswers(len(self.pool)), flags, answers, [])
        labels = given.labels
        labels = labels if hasattr(labels, "__len__") or not hasattr(labels, "__iter__") else list(labels)
        of_sets = is_label_matrix(labels)
        if self.task is not None and of_sets != bool(self.names):
            now, then = ("sets of classes", "one each") if of_sets else ("one each", "sets of classes")
            raise InvalidValueError(f"labels are {now}, and those before were {then}; use a new StopMonitor")
        if not of_sets:
            return _Source(self._single(given, labels), labels, None, [])
        names = column_names(self.names or None if given.classes is None else given.classes, labels)
        return _Source(self._of_sets(given, len(names)), label_codes(labels), None, names)

    def _single(self, given: GivenArguments, labels: Any) -> Any:
        """The model of one class or number for each item, or its predictions."""
        known = KnownSoFar(len(self.pool), labels, self.columns, self.task)
        probabilities, predictions, who = given.probabilities, given.predictions, ""
        if given.model is not None and self.predict is None and is_function(given.model):
            answer, who = predicted_by(given.model, self.pool), "the result of the function"
            is_table = not isinstance(answer, tuple) and np.ndim(answer) >= 2
            probabilities, predictions = (answer, None) if is_table else (None, answer)
        if probabilities is not None:
            return given_probabilities(probabilities, given.classes, known, who or "probabilities")
        if predictions is not None:
            return given_predictions(predictions, given.classes, known, who or "predictions")
        if given.classes is not None:
            raise InvalidValueError("classes is for probabilities= and predictions=; leave it out with a model")
        return given.model

    def _of_sets(self, given: GivenArguments, width: int) -> Any:
        """The model of sets of classes, or its predictions as texts."""
        model = given.model
        if given.probabilities is not None or (model is not None and (self.predict is not None or is_function(model))):
            raise InvalidValueError(
                "labels are sets of classes; give a classifier that predicts a matrix of 0 and 1, or such a matrix for "
                "all items as predictions="
            )
        if self._about_classes:
            name = self._about_classes
            raise InvalidValueError(f"{name} is for one class for each item, and labels are sets; leave {name} out")
        if given.predictions is None:
            return set_classifier(model, self.pool.rows(np.arange(1)), width)
        codes = label_codes(given.predictions, "predictions", width)
        if len(codes) != len(self.pool):
            raise InvalidValueError(
                f"predictions must have a row for each of the {len(self.pool):,} items of the pool, not {len(codes):,}"
            )
        return GivenSets(codes)

    def _all_answers(self, correct: Any, items: Indices) -> dict[int, bool]:
        """Whether the predictions for items were right, with the answers of checks."""
        known = {item: bool(self.checked[item]) for item in items.tolist() if item in self.checked}
        return {**known, **right_or_wrong(correct, items)}

    def _checked_model(self, model: Any) -> FittedModel:
        """The fitted model, or predictions, if they are of the same kind as those before."""
        if isinstance(model, PoolPredictions):
            fitted = FittedModel(model, None, PoolRows(np.arange(len(self.pool))))
        else:
            fitted = FittedModel(model, self.predict, self.pool)
        if self.task is not None and fitted.task != self.task:
            raise InvalidValueError(
                f"{fitted.name} is for {fitted.task}, and the model before was for {self.task}; use a new StopMonitor"
            )
        if self.positive is not None and fitted.task != "classification":
            raise InvalidValueError(
                f"positive is a class, {self.positive!r}, and {fitted.name} predicts numbers; leave positive out"
            )
        if self.may_miss and fitted.task != "classification":
            raise InvalidValueError(
                f"may_miss holds classes, {list(self.may_miss)!r}, and {fitted.name} predicts numbers; leave it out"
            )
        return fitted

    def _plain_labels(self, labels: Any, items: Indices, task: str) -> dict[int, Any]:
        """Labels by item as plain values, in the order of their first updates."""
        listed = isinstance(labels, np.ndarray) or not hasattr(labels, "__iter__")
        values = np.asarray(as_labels(labels if listed else list(labels)))
        if values.shape != items.shape:
            raise InvalidValueError(
                f"labels must be one for each of the {len(items)} items of indices; their shape is {values.shape}"
            )
        if values.dtype.kind not in "USiub":
            missing = [k for k, label in enumerate(values.tolist()) if is_missing(label)]
            if missing:
                label, item = values.tolist()[missing[0]], items[missing[0]]
                raise InvalidValueError(f"labels holds {label!r} for item {item}; leave out items without a label")
        if task == "classification":
            plain = class_labels(values).tolist()
        else:
            plain = [real(label, f"the label of item {item}") for item, label in zip(items, values, strict=True)]
        by_item = dict(zip(items.tolist(), plain, strict=True))
        earlier = {item: by_item[item] for item in self.learned if item in by_item}
        return {**earlier, **by_item}


def _drawn(random: Any, items: Indices) -> set[int]:
    """The items that were drawn at random."""
    given = np.atleast_1d(np.asarray(random))
    if not given.size:
        return set()
    if given.dtype.kind == "b" and given.shape in ((1,), items.shape):
        return set(items[np.broadcast_to(given, items.shape)].tolist())
    if given.dtype.kind not in "iu" or given.ndim != 1:
        came = f"a mask of {given.size} flags for {len(items)} items" if given.dtype.kind == "b" else repr(random)
        raise InvalidValueError(
            f"random must be some of indices, or one flag for each of them, not {came}; give indices, e.g. "
            "np.flatnonzero(mask)"
        )
    if other := sorted(set(given.tolist()).difference(items.tolist())):
        raise InvalidValueError(f"random holds item {other[0]}, which is not in indices")
    return set(given.tolist())
