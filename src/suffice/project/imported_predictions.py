"""Predictions that were imported from a file, as the journal keeps them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from suffice.project.events import Label
from suffice.project.project_check import packed_predictions, unpacked_predictions


class PredictedLabel(NamedTuple):
    """A prediction that was imported: the label, its probability or None, and the name of the file that it is from."""

    label: Label
    probability: float | None
    source: str


def prediction_data(
    predictions: Mapping[int, Label], probabilities: Mapping[int, float], classes: Sequence[str], source: str
) -> dict[str, Any]:
    """Data of imported predictions for the journal, as JSON values.

    Args:
        predictions: The prediction for each item.
        probabilities: Its probability, where it is known.
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
