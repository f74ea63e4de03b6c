"""Predictions of the model of the previous update for items that were labelled since."""

from collections.abc import Mapping, Set
from typing import Any

import numpy as np

from suffice.acquisition import Indices
from suffice.learner.model_predictions import FittedModel
from suffice.learner.monitor_round import MonitorView, RememberedModel
from suffice.learner.update_memory import ClassColumns, EarlierRow


def predicted_before(
    kept: FittedModel | RememberedModel, view: MonitorView, columns: ClassColumns, items: list[int], *, votes: bool
) -> dict[int, EarlierRow]:
    """Predictions of the previous model for items that it has not learned.

    Args:
        kept: A copy of the model, or its predictions.
        view: The same as a view.
        columns: Where the classes of the model are.
        items: The items, at least one.
        votes: Whether the votes of a committee are needed.
    """
    where, n = np.array(items, dtype=np.intp), len(view.learned_order())
    table, ballots = _table(kept, view, columns, where, votes=votes)
    if not table.shape[1]:
        made = zip(items, view.predictions(where), strict=True)
        return {
            item: EarlierRow(
                label=prediction.label,
                variance=prediction.expected or 0.0,
                n_labels=n,
                provided=prediction.expected is not None,
            )
            for item, prediction in made
        }
    if view.task == "regression":
        provided = kept.provided if isinstance(kept, RememberedModel) else kept.gives_deviation
        rows = zip(items, table.tolist(), strict=True)
        return {
            item: EarlierRow(mean=mean, variance=variance, n_labels=n, provided=provided)
            for item, (mean, variance) in rows
        }
    cast = [None] * len(items) if ballots is None else [tuple(column) for column in ballots.T.tolist()]
    return {
        item: EarlierRow(tuple(row), ballot, n_labels=n)
        for item, row, ballot in zip(items, table.tolist(), cast, strict=True)
    }


def _table(
    kept: FittedModel | RememberedModel, view: MonitorView, columns: ClassColumns, where: Indices, *, votes: bool
) -> tuple[Any, Any]:
    """Class probabilities, or means and variances; without columns if there are none. And votes of a committee."""
    if isinstance(kept, RememberedModel):
        places = kept.places(where)
        return kept.table[places], None if kept.votes is None else kept.votes[:, places]
    if view.task == "regression":
        mean, variance, _ = kept.numbers(where)
        return np.column_stack([mean, variance]), None
    if not kept.gives_probabilities:
        return np.zeros((len(where), 0)), None
    width = len(columns.classes)
    table = kept.class_predictions.probabilities(where, columns.places, width)
    return table, kept.class_predictions.votes(where, columns.places, width) if votes else None


def answered_before(
    answers: Mapping[int, bool], drawn: Set[int], known: Set[int], n_learned: int
) -> dict[int, EarlierRow]:
    """Predictions of the previous model for random items of which it is said now whether they were right.

    Args:
        answers: Whether predictions were right, by item.
        drawn: Items that were drawn at random.
        known: Items whose answers are known from earlier updates.
        n_learned: Number of labels of the previous model.
    """
    row = EarlierRow(label=True, n_labels=n_learned, provided=False)
    return {item: row for item in answers if item in drawn and item not in known}


def uses_own_model(kept: FittedModel, fitted: FittedModel, sample: Indices, answers: Any) -> bool:
    """Whether a function uses the model that it is given.

    It does not if its result for the copy of the previous model has changed to that of the current model.

    Args:
        kept: A copy of the previous model.
        fitted: The current model.
        sample: Some items.
        answers: What the function returned for these items and the previous model then.
    """
    again, now = (model.answers(sample) for model in (kept, fitted))
    return not np.array_equal(again, now) or np.array_equal(again, answers)
