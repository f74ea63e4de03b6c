"""Training rounds of a dropout network: all labels, new classes, and no change if a round fails."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np


@contextmanager
def unchanged_on_failure(model: Any) -> Iterator[None]:
    """Undo all changes of a model if the block does not complete, also after an interrupt."""
    attributes, trained = dict(model.__dict__), model.machine_.kept() if hasattr(model, "machine_") else None
    try:
        yield
    except BaseException:
        model.__dict__.clear()
        model.__dict__.update(attributes)
        if trained is not None:
            model.machine_.put_back(trained)
        raise


def train_round(model: Any, epochs: int) -> None:
    """Train on all labels of a model, from its present weights."""
    machine = model.machine_
    codes = class_outputs(model)[np.searchsorted(model.classes_, model.y_)]
    model.losses_ = machine.train(machine.tensor(model.X_), codes, epochs, round_number=model.rounds_)
    model.rounds_ += 1


def add_classes(model: Any, labels: Any) -> bool:
    """Add outputs for new classes, and return whether there are any; nothing is trained.

    Raises:
        InvalidValueError: The network has no output for a class.
    """
    from suffice.models.deep.trained_module import known_classes

    # A class that has no labels any more after a correction stays, because the network has an output for it.
    everything = np.concatenate([model.classes_, labels])
    classes = known_classes(model, everything, model.machine_.structure.outputs)
    if len(classes) == len(model.classes_):
        return False
    places = np.searchsorted(classes, model.classes_)
    model.machine_.widen(places, max(2, len(classes)), round_number=model.rounds_)
    model.classes_ = classes
    return True


def class_outputs(model: Any) -> Any:
    """Return the output for each class; the outputs of a module are in the order of the ``classes`` given."""
    given = None if isinstance(model.network, str) else model.classes
    return np.arange(len(model.classes_)) if given is None else np.argsort(np.asarray(given), kind="stable")
