"""What a session asks of the current model, whatever object holds it."""

from collections.abc import Sequence
from typing import Any, Protocol

from suffice.acquisition import Indices
from suffice.numerics import Floats
from suffice.session.held_out import HeldOutPrediction


class EstimatedModel(Protocol):
    """The current model of a session, for items of the pool, as far as the estimate of its error needs it."""

    def judged_model(self) -> Any:
        """The model without its pipeline, if it can leave its labels out; otherwise any other value."""

    def expected_losses(self, items: Indices) -> Floats | None:
        """The loss that the model expects of each item: the probability of an error, or the variance of the label.

        None if the model does not provide it.
        """

    def predictions(self, items: Indices) -> Sequence[HeldOutPrediction]:
        """Predictions for items that the model has not learned."""

    def predictions_without(self, items: Indices) -> Sequence[HeldOutPrediction] | None:
        """Predictions for learned items by the same model, fitted again without them; None if that is not possible."""

    def class_probabilities(self, items: Indices) -> tuple[list[Any], Floats]:
        """The classes that the model knows, and their probabilities, ``n x K``."""


class ModelView(EstimatedModel, Protocol):
    """The current model of a session, for items of the pool.

    Attributes:
        task: ``"classification"`` or ``"regression"``.
        name: What the model is called in a guarantee.
        family: Its name among :data:`suffice.models.factory.MODEL_FAMILIES`, or an empty text.
    """

    @property
    def task(self) -> str:
        """``"classification"`` or ``"regression"``."""

    @property
    def name(self) -> str:
        """What the model is called in a guarantee."""

    @property
    def family(self) -> str:
        """Its name among :data:`suffice.models.factory.MODEL_FAMILIES`, or an empty text."""

    def learned_order(self) -> Sequence[int]:
        """The labelled items in the order in which :meth:`judged_model` has learned them."""

    def inputs(self, items: Indices) -> Any:
        """Inputs of items for :meth:`judged_model`."""

    def expected_errors(self, items: Indices) -> tuple[Floats, Floats] | None:
        """The errors that the model expects of items, and their reducible parts; None if these are not known."""

    def frozen(self, items: Indices) -> tuple[Any, Any]:
        """The fitted model, independent of the loop, or None; and its predictions for items, as the user sees them."""

    def compared_inputs(self, items: Indices) -> Any:
        """Inputs of items for a comparison with other models; None if the model cannot be compared."""
