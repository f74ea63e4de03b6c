"""The choice between several models on the labels so far, while labelling goes on."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from sklearn.base import clone

from suffice.errors import InvalidValueError
from suffice.models.factory import make_model
from suffice.models.inputs import as_labels
from suffice.numerics import Floats

# Number of labels at the first comparison; it is repeated each time that the number has doubled.
_FIRST: Final = 50
_FOLDS: Final = 5


class ModelChoice:
    """Models for classes that are compared on the labels so far; the best one is used.

    Args:
        models: The models by name; the first one is used until the first comparison.

    Attributes:
        name: Name of the model in use.
    """

    def __init__(self, models: Mapping[str, Any]) -> None:
        if not models:
            raise InvalidValueError("models must have at least one model")
        self._models = dict(models)
        self.name = next(iter(self._models))
        self._next = _FIRST

    @classmethod
    def of_classes(
        cls, classes: Sequence[Any], *, components: Sequence[tuple[int, int]] = (), seed: int = 0
    ) -> "ModelChoice":
        """The choice between the models for classes that learn fast."""
        return cls({"logistic": make_model("logistic", classes=classes, components=components), "forest": make_model("forest", seed=seed)})

    @property
    def names(self) -> list[str]:
        """Names of the models."""
        return list(self._models)

    @property
    def model(self) -> Any:
        """The model in use, without labels."""
        return self._models[self.name]

    def due(self, n_labelled: int) -> bool:
        """Whether the models are to be compared at a number of labels."""
        return len(self._models) > 1 and n_labelled >= self._next

    def better(self, X: Any, y: Any, random: Any) -> str | None:
        return None
