"""The estimate of the error for one class of labels that are sets of classes, as texts such as ``"0110"``."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from suffice.acquisition import Indices
from suffice.numerics import Floats
from suffice.session.error_estimate import CalibratedError
from suffice.session.held_out import HeldOutPrediction
from suffice.session.model_view import EstimatedModel
from suffice.session.random_losses import RandomLabelLosses


class OneColumnView:
    """The predictions of a model for one class of a set; see :class:`suffice.session.model_view.EstimatedModel`.

    Args:
        view: The predictions of sets.
        column: The class.
    """

    def __init__(self, view: EstimatedModel, column: int) -> None:
        self._view, self._column = view, column

    def judged_model(self) -> Any:
        """None, because the model cannot leave its labels out."""
        return None

    def expected_losses(self, items: Indices) -> None:
        """None, because the model says nothing about them."""
        del items

    def predictions(self, items: Indices) -> Sequence[HeldOutPrediction]:
        """Whether each item is predicted to have the class."""
        return [said._replace(label=said.label[self._column], logs=None) for said in self._view.predictions(items)]

    def predictions_without(self, items: Indices) -> None:
        """None: nothing is fitted again for a single class."""
        del items

    def class_probabilities(self, items: Indices) -> tuple[list[Any], Floats]:
        """No probabilities."""
        return ["0", "1"], np.zeros((len(items), 0))


def column_of(labels: Mapping[int, Any], column: int) -> dict[int, str]:
    """Whether each label has a class, as "0" or "1"."""
    return {item: code[column] for item, code in labels.items()}


def column_estimate(  # noqa: PLR0913, PLR0917 - the data of a session
    losses: RandomLabelLosses,
    view: EstimatedModel,
    column: int,
    rest: Indices,
    labels: Mapping[int, Any],
    items: Sequence[int],
    unlearned: Mapping[int, Any],
) -> CalibratedError:
    """The share of unlabelled items for which one class is predicted wrong.

    Args:
        losses: Losses of random labels.
        view: The current model.
        column: The class.
        rest: Unlabelled items.
        labels: All labels by item.
        items: The items that were drawn at random.
        unlearned: Labels of random items that the model has not learned.
    """
    learned = column_of(labels, column)
    of_class = losses.of_column(column, learned)
    return of_class.estimate(OneColumnView(view, column), rest, learned, items, unlearned=column_of(unlearned, column))
