"""A copy of a project's model, for predictions. It is saved, so that predicting needs none of what learns."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from suffice.errors import SufficeError
from suffice.models.threads import one_thread
from suffice.numerics import Floats
from suffice.project.item_predictor import ItemPredictor
from suffice.project.learning_status import Predictions

# Limits of a batch of predictions, in rows and operations: SciPy's triangular solver blocks other threads.
_FEWEST_ROWS, _MOST_ROWS, _OPERATIONS = 256, 4096, 10**8


@dataclass(frozen=True, eq=False)
class Predictor(ItemPredictor):
    """A copy of a model after some number of labels, for predictions.

    Attributes:
        transform: Transformer of features into inputs of the model, or None.
        model: The fitted model.
        classes: The project's classes; empty for numbers.
        class_ratios: As of :class:`suffice.project.learning_status.Predictions`.
        deviation: For a model of numbers without standard deviations: the one that stands for that of each label.
    """

    transform: Any
    model: Any
    classes: tuple[str, ...]
    class_ratios: tuple[float, ...] | None = None
    deviation: float | None = None

    def parts(self, X: Floats) -> Iterator[Predictions]:
        """The predictions of :meth:`predict`, one batch at a time."""
        # Estimators of scikit-learn take much less time for each row.
        width = max(self.model.n_labels_, self.model.n_features_in_) if hasattr(self.model, "n_labels_") else 1
        rows = int(np.clip(_OPERATIONS // width**2, _FEWEST_ROWS, _MOST_ROWS))
        return (self._predict(X[k : k + rows]) for k in range(0, max(len(X), 1), rows))

    @one_thread()
    def _predict(self, X: Floats) -> Predictions:
        if not len(X):
            none = np.zeros(0)
            return Predictions(
                none.astype(str) if self.classes else none,
                none,
                np.zeros((0, len(self.classes))) if self.classes else None,
            )
        inputs = X if self.transform is None else self.transform.transform(X)
        if self.deviation is not None:
            return Predictions(np.asarray(self.model.predict(inputs)), np.full(len(X), self.deviation), None)
        if not self.classes:
            mean, deviation = self.model.predict(inputs, return_std=True)
            return Predictions(mean, deviation, None)
        # Trees know the classes of their labels only.
        known = {name: column for column, name in enumerate(self.model.classes_.tolist())}
        found, p = self.model.predict_proba(inputs), np.zeros((len(X), len(self.classes)))
        for at, name in enumerate(self.classes):
            if name in known:
                p[:, at] = found[:, known[name]]
        predictions = Predictions.of_classes(self.classes, p)
        return predictions._replace(class_ratios=self.class_ratios)


def require_model(predictor: ItemPredictor) -> Predictor:
    """The same predictor if it has a model.

    Raises:
        SufficeError: The predictions were made elsewhere.
    """
    if isinstance(predictor, Predictor):
        return predictor
    raise SufficeError("the predictions of this project were made elsewhere, so it has no model")
