"""What a monitor remembers of its updates: arrival of labels, earlier predictions, and data for comparisons."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from suffice.learner.model_predictions import KnownPosterior
from suffice.learner.step_inputs import RecentGain
from suffice.saved_state import decoded_array, encoded_array
from suffice.session.held_out import HeldOutPrediction, class_predictions, number_predictions


class EarlierRow(NamedTuple):
    """Prediction of the previous model for an item that was labelled since.

    Attributes:
        probabilities: Of the classes known then; None for numbers.
        votes: The class that each member of a committee votes for, if the rule asks for it.
        mean: The prediction, for numbers.
        variance: The variance of the label, for numbers; the doubt, for a classifier without probabilities.
        label: The predicted class, for a classifier without probabilities.
        n_labels: Number of labels of the model; 0 if it is not known.
        provided: Whether the variance is that of the model, and not that of all labels or missing.
    """

    probabilities: tuple[float, ...] | None = None
    votes: tuple[int, ...] | None = None
    mean: float = 0.0
    variance: float = 0.0
    label: Any = None
    n_labels: int = 0
    provided: bool = True

    def prediction(self, classes: Sequence[Any]) -> HeldOutPrediction:
        """The same, for the losses of random labels."""
        if self.label is not None:
            return HeldOutPrediction(self.label, self.variance if self.provided else None, None, self.n_labels)
        if self.probabilities is None:
            variance = np.array([self.variance]) if self.provided else None
            return number_predictions(np.array([self.mean]), variance, self.n_labels)[0]
        p, names = np.array([self.probabilities]), list(classes[: len(self.probabilities)])
        return class_predictions(p, names, self.n_labels)[0]


class ClassColumns(NamedTuple):
    """All classes so far in a fixed order, and the position of each column of the model among them."""

    classes: list[Any]
    places: list[int]

    @property
    def of_model(self) -> list[Any]:
        """The class of each column of the model."""
        return [self.classes[place] for place in self.places]


class UpdateMark(NamedTuple):
    """Data of an update for comparison with later updates.

    Attributes:
        n_labelled: Labels then.
        serial: Number of the update.
        codes: The class predicted for each item of the pool, or of the sample of a large pool; -1 for items without a
            prediction. None if it is not needed.
        posterior: The posterior, or None.
        labels: The labels as they were then, by item, if posteriors are compared.
    """

    n_labelled: int
    serial: int
    codes: Any = None
    posterior: KnownPosterior | None = None
    labels: Mapping[int, Any] | None = None

    @property
    def shortened(self) -> "UpdateMark":
        """The same without data for comparisons."""
        return UpdateMark(self.n_labelled, self.serial)

    def with_items(self, size: int, more: int) -> "UpdateMark":
        """The same for a pool with more items at the end; codes of a sample are forgotten, because it is drawn again.

        Args:
            size: Number of items before.
            more: Number of new items.
        """
        if self.codes is None or len(self.codes) < size:
            return self._replace(codes=None)
        return self._replace(codes=np.append(self.codes, np.full(more, -1)))


@dataclass
class UpdateMemory:
    """What a monitor remembers of its updates.

    Attributes:
        columns: Classes and columns of the last model.
        arrival: The number of the update of each label, by item.
        order: The items of the last update in the order of the caller.
        earlier: Predictions for labelled items before their labels were known.
        marks: Data of updates for comparisons.
        recent: Earlier predictions of a sample.
        calibration: The last calibration.
        names: For labels that are sets of classes, the name of each class.
        model_name: What the last model is called.
    """

    columns: ClassColumns = field(default_factory=lambda: ClassColumns([], []))
    arrival: dict[int, int] = field(default_factory=dict)
    order: list[int] = field(default_factory=list)
    earlier: dict[int, EarlierRow] = field(default_factory=dict)
    marks: list[UpdateMark] = field(default_factory=list)
    recent: RecentGain = field(default_factory=RecentGain)
    calibration: float = 1.0
    names: list[Any] = field(default_factory=list)
    model_name: str = "model"

    def marks_before(self, n_labelled: int) -> list[UpdateMark]:
        """The marks of updates with fewer labels."""
        return [mark for mark in self.marks if mark.n_labelled < n_labelled]

    def extended(self, size: int, more: int) -> "UpdateMemory":
        """The same for a pool with more items at the end; the recent gain starts again.

        Args:
            size: Number of items before.
            more: Number of new items.
        """
        marks = [mark.with_items(size, more) for mark in self.marks]
        return UpdateMemory(**{**self.__dict__, "marks": marks, "recent": RecentGain()})

    def state(self) -> dict[str, Any]:
        """The memory as JSON values."""
        return {
            "classes": self.columns.classes,
            "columns": self.columns.places,
            "arrival": [[item, serial] for item, serial in self.arrival.items()],
            "order": self.order,
            "earlier": [[item, *row] for item, row in self.earlier.items()],
            "marks": [
                [mark.n_labelled, mark.serial, encoded_array(mark.codes), mark.labels and list(mark.labels.items())]
                for mark in self.marks
            ],
            "recent": self.recent.state(),
            "calibration": self.calibration,
            "columns_of_labels": self.names,
            "model": self.model_name,
        }

    @classmethod
    def from_state(cls, saved: Mapping[str, Any], task: str | None) -> "UpdateMemory":
        """Restore :meth:`state`.

        Args:
            saved: The saved values.
            task: ``"classification"`` or ``"regression"``; None before the first update.
        """
        earlier: dict[int, EarlierRow] = {}
        for item, probabilities, votes, *others in saved["earlier"]:
            p, ballot = (None if values is None else tuple(values) for values in (probabilities, votes))
            earlier[item] = EarlierRow(p, ballot, *others)
        marks = []
        for n, serial, codes, *labels in saved["marks"]:
            labelled = dict(map(tuple, labels[0])) if labels and labels[0] is not None else None
            marks.append(UpdateMark(n, serial, decoded_array(codes), None, labelled))
        recent = RecentGain()
        recent.restore(saved["recent"], np.float64 if task == "regression" else np.intp)
        return cls(
            columns=ClassColumns(list(saved["classes"]), list(saved["columns"])),
            arrival=dict(map(tuple, saved["arrival"])),
            order=list(saved["order"]),
            earlier=earlier,
            marks=marks,
            recent=recent,
            calibration=saved["calibration"],
            names=list(saved.get("columns_of_labels", ())),
            model_name=saved["model"],
        )
