"""What predicts the labels of items: a copy of a model, or the predictions that were made elsewhere."""

from abc import ABC, abstractmethod
from collections.abc import Iterator

from suffice.numerics import Floats
from suffice.project.learning_status import Predictions


class ItemPredictor(ABC):
    """Predicts the labels of items. It does not change while more is learned."""

    @abstractmethod
    def parts(self, X: Floats) -> Iterator[Predictions]:
        """The predictions of :meth:`predict`, one batch at a time."""

    def predict(self, X: Floats) -> Predictions:
        """Predict labels, in batches of at most a few thousand items.

        Args:
            X: Features, ``n x D``.
        """
        return Predictions.joined(list(self.parts(X)))
