"""What a session asks of the current model, whatever object holds it."""

from collections.abc import Sequence
from typing import Any, Protocol

from suffice.acquisition import Indices
from suffice.numerics import Floats


class ModelView(Protocol):
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

    def judged_model(self) -> Any:
        """The model without its pipeline, if it can leave its labels out; otherwise any other value."""

    def learned_order(self) -> Sequence[int]:
        """The labelled items in the order in which :meth:`judged_model` has learned them."""

    def inputs(self, items: Indices) -> Any:
        """Inputs of items for :meth:`judged_model`."""

    def expected_losses(self, items: Indices) -> Floats:
        """The loss that the model expects of each item: the probability of an error, or the variance of the label."""

    def expected_errors(self, items: Indices) -> tuple[Floats, Floats] | None:
        """The errors that the model expects of items, and their reducible parts; None if these are not known."""

    def class_probabilities(self, items: Indices) -> tuple[list[Any], Floats]:
        """The classes that the model knows, and their probabilities, ``n x K``."""

    def frozen(self, items: Indices) -> tuple[Any, Any]:
        """The fitted model, independent of the loop, or None; and its predictions for items, as the user sees them."""

    def compared_inputs(self, items: Indices) -> Any:
        """Inputs of items for a comparison with other models; None if the model cannot be compared."""
