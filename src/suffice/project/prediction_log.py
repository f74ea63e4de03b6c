"""Predictions that were imported into a project, and which predictions people have seen."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from suffice.project.events import ClassChange, Label
from suffice.project.project_check import packed_predictions, unpacked_predictions


class PredictedLabel(NamedTuple):
    """An imported prediction: the label, its probability or None, and the name of the imported file."""

    label: Label
    probability: float | None
    source: str


def prediction_data(
    predictions: Mapping[int, Label], probabilities: Mapping[int, float], classes: Sequence[str], source: str
) -> dict[str, Any]:
    """Data of imported predictions for the journal, as JSON values.

    Args:
        predictions: The prediction for each item.
        probabilities: Probabilities of the predictions, as far as they are known.
        classes: Classes of the project; empty for numbers.
        source: Name of the file.

    Examples:
        >>> data = prediction_data({7: "ham", 2: "spam"}, {2: 0.5}, ("ham", "spam"), "old.csv")
        >>> dict(predictions_of(data))[2]
        PredictedLabel(label='spam', probability=0.5, source='old.csv')
    """
    items = sorted(predictions)
    predicted = np.array([predictions[item] for item in items], dtype=object if classes else np.float64)
    shares = np.array([probabilities.get(item, -1.0) for item in items])
    return {
        "source": source,
        "items": items,
        "classes": list(classes),
        "predictions": packed_predictions(predicted, classes),
        "probabilities": packed_predictions(shares, ()) if probabilities else None,
    }


def predictions_of(data: Mapping[str, Any]) -> Iterator[tuple[int, PredictedLabel]]:
    """The predictions of :func:`prediction_data`, each with its item.

    Raises:
        ValueError: The data is damaged.
    """
    items = data["items"]
    labels = unpacked_predictions(data["predictions"], tuple(data["classes"]), len(items)).tolist()
    packed = data.get("probabilities")
    shares: NDArray[Any] = np.full(len(items), -1.0) if packed is None else unpacked_predictions(packed, (), len(items))
    for item, label, share in zip(items, labels, shares.tolist(), strict=True):
        yield int(item), PredictedLabel(label, None if share < 0.0 else round(share, 9), str(data["source"]))


class PredictionLog:
    """Imported predictions, and who was shown a prediction for which item."""

    def __init__(self) -> None:
        self._imported: dict[int, PredictedLabel] = {}
        self._shown_to: dict[int, set[str]] = {}

    @property
    def n_imported(self) -> int:
        """Items with an imported prediction."""
        return len(self._imported)

    def imported(self, item: int) -> PredictedLabel | None:
        """The newest imported prediction for an item, or None."""
        return self._imported.get(item)

    def was_shown(self, item: int, person: str) -> bool:
        """Whether a person was shown a prediction for an item."""
        return person in self._shown_to.get(item, ())

    def add_imported(self, data: Mapping[str, Any]) -> None:
        """Add the predictions of :func:`prediction_data`."""
        self._imported.update(predictions_of(data))

    def add_shown(self, item: int, person: str) -> None:
        """Record that a person was shown a prediction for an item."""
        self._shown_to.setdefault(item, set()).add(person)

    def change_classes(self, change: ClassChange) -> None:
        """Give the predictions their new names. Predictions of a removed class are removed."""
        self._imported = {
            item: prediction._replace(label=change.label(str(prediction.label)))
            for item, prediction in self._imported.items()
            if prediction.label not in change.removed
        }
