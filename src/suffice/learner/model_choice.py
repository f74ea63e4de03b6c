"""The choice between several models on the labels so far, while labelling goes on."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from suffice.arguments import whole
from suffice.errors import InvalidValueError
from suffice.models.factory import default_model, make_model
from suffice.models.inputs import as_labels
from suffice.models.threads import one_thread
from suffice.session.advice import FIRST_COMPARISON
from suffice.session.model_comparison import cross_validated_losses, quick_estimator

# Before a check the models are compared from this number of labels on, if it has grown by this factor.
_BEFORE_CHECK: Final = 50
_GROWN: Final = 1.2
# Weight of a label that was chosen, relative to a random one. The model in use has chosen it because it is unsure.
_CHOSEN: Final = 0.5
# Another model is used if its error is lower by this share, and by this many standard errors of the difference.
_LOWER: Final = 0.1
_DEVIATIONS: Final = 0.5
#: Models for classes between which :meth:`ModelChoice.of_classes` chooses; the first one starts. With many columns and
#: classes, "components" takes its place.
CHOICE: Final = ("logistic", "kernel", "forest")
# Kernel features make a model slow that has a weight of each feature for each class.
_MOST_KERNEL_CLASSES: Final = 10


def choice_names(n_classes: int, first: str = CHOICE[0]) -> list[str]:
    """Names of the models of :data:`CHOICE` that are compared for a number of classes.

    Args:
        n_classes: Number of classes.
        first: Name of the model that starts, from :func:`suffice.models.factory.default_model`.
    """
    return [first, *(name for name in CHOICE[1:] if name != "kernel" or n_classes <= _MOST_KERNEL_CLASSES)]


class ModelChoice:
    r"""Models for classes that are compared on the labels so far; the best one is used.

    They are compared at 100 labels, each time that the number of labels has doubled, and before the check. Each label
    is predicted by a model that is fitted to four fifths of the labels without it. The error is the weighted share of
    wrong predictions: a random label has the weight 1, and a label that was chosen 0.5, because the model in use has
    chosen it for being unsure. Another model replaces the one in use if its error is lower by a tenth, and by half a
    standard error of the difference. The choice is made before the check: a check is about the model that it has
    started with.

    Args:
        models: The models by name; the first one is used until the first comparison.
        quick: Whether they are models of :data:`CHOICE`, in place of which models are compared that fit faster.
        name: Name of the model in use; the first one if left out.
        compared: Number of labels at the last comparison; 0 before the first.

    Attributes:
        name: Name of the model in use.
        compared: Number of labels at the last comparison; 0 before the first.
        errors: Error of each model at the last comparison by this object, by name; empty before it.

    Raises:
        InvalidValueError: There is no model, or none of the given name.

    Examples:
        >>> from sklearn.ensemble import ExtraTreesClassifier
        >>> from suffice.models import BayesianLogistic
        >>> choice = ModelChoice({"linear": BayesianLogistic(), "trees": ExtraTreesClassifier(20, random_state=0)})
        >>> X = np.random.default_rng(0).normal(size=(100, 2)); y = np.where(X[:, 0] * X[:, 1] > 0.0, "a", "b")
        >>> choice.due(100), choice.better(X, y, np.ones(100, dtype=bool)), choice.due(100)
        (True, 'trees', False)
    """

    def __init__(
        self, models: Mapping[str, Any], *, quick: bool = False, name: str | None = None, compared: int = 0
    ) -> None:
        if not models:
            raise InvalidValueError("models must have at least one model")
        if name is not None and name not in models:
            raise InvalidValueError(f"name must be one of {', '.join(models)}, not {name!r}")
        self._models, self._quick = dict(models), quick
        self.compared = whole(compared, "compared", least=0)
        self.name = next(iter(self._models)) if name is None else name
        self.errors: dict[str, float] = {}

    @classmethod
    def of_classes(
        cls,
        classes: Sequence[Any],
        *,
        n_features: int = 0,
        components: Sequence[tuple[int, int]] = (),
        seed: int = 0,
    ) -> "ModelChoice":
        """The choice between logistic regression, the same on kernel features for up to 10 classes, and a forest.

        Args:
            classes: All classes.
            n_features: Number of columns of the inputs. With many columns and classes, logistic regression is the one
                on principal components, see :func:`suffice.models.factory.default_model`.
            components: As for :func:`suffice.models.factory.make_model`, for logistic regression.
            seed: Seed of the forest.
        """
        own: dict[str, dict[str, Any]] = {"logistic": {"components": components}}
        usual = default_model("classification", n_features=n_features, n_classes=len(classes), components=components)
        models = {
            name: make_model(name, classes=classes, seed=seed, **own.get(name, {}))
            for name in choice_names(len(classes), usual.name)
        }
        return cls(models, quick=True)

    @property
    def names(self) -> list[str]:
        """Names of the models."""
        return list(self._models)

    @property
    def model(self) -> Any:
        """The model in use, without labels."""
        return self._models[self.name]

    def due(self, n_labelled: int, *, before_check: bool = False) -> bool:
        """Whether the models are to be compared.

        Args:
            n_labelled: Number of labels.
            before_check: Whether a check would start now.
        """
        return self.due_at(n_labelled, before_check=before_check) is not None

    def due_at(self, n_labelled: int, *, before_check: bool = False) -> int | None:
        """Number of labels, from the first one on, on which the models are to be compared; None if that is not due.

        It does not depend on when one asks: it is the last of 100, 200, 400 and so on, except before a check.

        Args:
            n_labelled: Number of labels.
            before_check: Whether a check would start now.

        Examples:
            >>> choice = ModelChoice({"linear": None, "trees": None})
            >>> choice.due_at(99), choice.due_at(250), choice.due_at(60, before_check=True)
            (None, 200, 60)
        """
        if len(self._models) < 2:
            return None
        least = max(FIRST_COMPARISON, 2 * self.compared)
        if before_check and n_labelled >= min(least, max(_BEFORE_CHECK, math.ceil(_GROWN * self.compared))):
            return n_labelled
        if n_labelled < least:
            return None
        while 2 * least <= n_labelled:
            least *= 2
        return least

    def better(self, X: Any, y: Any, random: Any) -> str | None:
        """Compare the models, and use the best one from now on.

        Args:
            X: Inputs of the labels so far, ``n x D``.
            y: The labels.
            random: Which of them are of items that were drawn at random, ``n``.

        Returns:
            Name of the model that replaces the one in use; None if it stays.
        """
        labels, drawn = np.asarray(as_labels(y)), np.asarray(random, dtype=bool)
        self.compared, self.errors = len(labels), {}
        if len(np.unique(labels)) < 2:
            return None
        weights = np.where(drawn, 1.0, _CHOSEN)
        with one_thread():
            losses = {
                name: cross_validated_losses(
                    quick_estimator(name, labels) if self._quick else model, X, labels, share=True
                )
                for name, model in self._models.items()
            }
        errors = self.errors = {name: float(np.average(loss, weights=weights)) for name, loss in losses.items()}
        best = min(errors, key=lambda name: errors[name])
        difference = weights / weights.mean() * (losses[self.name] - losses[best])
        chance = _DEVIATIONS * float(difference.std()) / math.sqrt(len(labels))
        if errors[best] >= (1.0 - _LOWER) * errors[self.name] or float(difference.mean()) <= chance:
            return None
        self.name = best
        return best
