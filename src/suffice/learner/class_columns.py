"""The classes of a monitored classifier in a fixed order, and the columns of its predictions among them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from suffice.errors import InvalidValueError
from suffice.learner.available_fields import predicts_classes_only
from suffice.learner.model_predictions import FittedModel
from suffice.learner.pool_predictions import GivenAnswers, GivenClasses
from suffice.learner.update_memory import ClassColumns

# Names in a message.
_SHOWN_NAMES: Final = 5


def columns_of(
    fitted: FittedModel, labels: Mapping[int, Any], known: Sequence[Any], *, predicted: bool
) -> ClassColumns:
    """All classes so far in a fixed order, and the position of each column of the model among them.

    Args:
        fitted: The model.
        labels: All labels by item.
        known: The classes of the updates before, which keep their places.
        predicted: Whether classes that a model without probabilities can predict need a place.

    Raises:
        InvalidValueError: No label is of a class that the model predicts.
    """
    if fitted.task != "classification":
        return ClassColumns([], [])
    if isinstance(fitted.model, GivenAnswers):
        return ClassColumns(fitted.model.classes_.tolist(), [])
    of_columns = fitted.class_predictions.classes(list(labels.values())) if fitted.gives_probabilities else []
    named = fitted.model.classes_.tolist() if type(fitted.model) is GivenClasses else of_columns
    labelled = _in_order(set(labels.values()))
    if named and labelled and not set(named).intersection(labelled):
        raise InvalidValueError(
            f"no label is of a class that {fitted.name} predicts: the labels are {_some(labelled)}, and its "
            f"classes {_some(named)}; give the labels that it was fitted to"
        )
    if predicted and predicts_classes_only(fitted):
        labelled = _in_order({*labelled, *fitted.model.classes_.tolist()})
    classes = list(dict.fromkeys([*known, *of_columns, *labelled]))
    return ClassColumns(classes, [classes.index(name) for name in of_columns])


def _in_order(classes: Iterable[Any]) -> list[Any]:
    return sorted(classes, key=lambda label: (str(type(label)), label))


def _some(names: Sequence[Any]) -> str:
    """The first names of a series, for a message."""
    shown = ", ".join(map(repr, names[:_SHOWN_NAMES]))
    return shown if len(names) <= _SHOWN_NAMES else f"{shown}, ..."
