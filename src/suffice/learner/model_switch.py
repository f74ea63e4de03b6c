"""Another model for a learner: models by name, and the steps in which a model learns the labels so far."""

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

from suffice.learner.prepare import PreparedModel
from suffice.learner.refitted import fit_due
from suffice.models.factory import MODEL_FAMILIES, ModelTask, make_model

# Models that take no sparse inputs.
_DENSE: Final = frozenset({"kernel", "boosting"})


class NamedModel(NamedTuple):
    """A model by the name of its family.

    Attributes:
        name: One of :data:`suffice.models.factory.MODEL_FAMILIES`.
        classes: All classes, if they are known.
    """

    name: str
    classes: list[Any] | None = None

    @classmethod
    def beside(cls, name: str, present: PreparedModel) -> "NamedModel":
        """A model with the classes that the current model was given.

        Args:
            name: As the attribute.
            present: The current model.
        """
        classes = getattr(present.model, "classes", None)
        return cls(name, None if classes is None else list(classes))

    def made(self, present: PreparedModel, *, plain: bool) -> Any:
        """The model, without labels.

        Args:
            present: The current model, whose transformers stay in front.
            plain: Whether its inputs are numbers before any transformer: the model takes these.

        Raises:
            InvalidValueError: There is no such model, or it has another task.
        """
        task: ModelTask = present.backend.task
        interactive = self.name in MODEL_FAMILIES and not MODEL_FAMILIES[self.name].estimator
        classes = self.classes if task == "classification" and interactive else None
        model = make_model(self.name, task=task, classes=classes)
        if plain or present.transform is None:
            return model
        own = model.steps if isinstance(model, Pipeline) else [("model", model)]
        between = [("dense", FunctionTransformer(dense))] if self.name in _DENSE else []
        return Pipeline([*[(name, clone(step)) for name, step in present.transform.steps], *between, *own])


def dense(X: Any) -> Any:
    """A sparse matrix as an array; anything else as it is."""
    return X.toarray() if issparse(X) else X


def learning_steps(items: Sequence[int], sizes: Sequence[int], *, refits: bool) -> Iterator[Sequence[int]]:
    """Divide labels into the steps in which a model learns them.

    Args:
        items: The labelled items, in the order in which they were learned.
        sizes: Number of labels of each step so far, the initial labels first.
        refits: Whether the model is fitted again at each step. It is then fitted only where
            :func:`suffice.learner.refitted.fit_due` says so, and at the end.

    Examples:
        >>> list(learning_steps([3, 1, 4, 7], [2, 1, 1], refits=False))
        [[3, 1], [4], [7]]
        >>> list(map(len, learning_steps(range(13), [10, 1, 1, 1], refits=True)))
        [10, 3]
    """
    begin = end = 0
    for k, size in enumerate(sizes):
        end += size
        if k and k < len(sizes) - 1 and refits and not fit_due(end):
            continue
        if end > begin:
            yield items[begin:end]
        begin = end
