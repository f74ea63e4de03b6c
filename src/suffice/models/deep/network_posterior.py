"""Posteriors of the last layer of a fitted dropout network, and log probabilities under draws of a posterior."""

from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.models.deep.network_training import class_outputs

if TYPE_CHECKING:
    from suffice.models.deep.trained_module import LabelledFeatures


def is_of_last_layer(model: Any) -> bool:
    """Whether the posterior of a network is that of its last layer."""
    return bool(model.approximation == "last-layer")


def labelled_features(model: Any) -> "LabelledFeatures":
    """Return the inputs of the last layer for all labelled rows, with the present weights of the other layers."""
    from suffice.models.deep.trained_module import LabelledFeatures

    machine = model.machine_
    codes = np.searchsorted(model.classes_, model.y_)
    return LabelledFeatures(machine.features(machine.tensor(model.X_)), codes, machine.structure.outputs)


def last_layer_after(model: Any, n: int) -> Any:
    """Return the Laplace posterior of the last layer after the first ``n`` labels only, on the present features."""
    from suffice.models.deep.trained_module import last_layer

    return last_layer(labelled_features(model), model.alpha, n)


def last_layer_before_and_after(model: Any, n: int) -> tuple[Any, Any]:
    """Return the last layer's posteriors after the first ``n`` labels and after all, on the present features."""
    from suffice.models.deep.trained_module import last_layer

    labelled = labelled_features(model)
    state = last_layer(labelled, model.alpha, n)
    before = state.posterior()
    return before, state.extend(labelled.rows[n:], labelled.codes[n:]).posterior()


def posterior_log_draws(model: Any, inputs: Any, draws: int, seed: int) -> Any:
    """Log probabilities under draws of the posterior, ``N x k x C``: an array or a tensor on the device.

    Args:
        model: The fitted network.
        inputs: Rows as a tensor.
        draws: Number of draws.
        seed: Seed of the draws.
    """
    if len(model.classes_) == 1:
        return np.zeros((len(inputs), draws, 1))
    if not is_of_last_layer(model):
        logs, outputs = model.machine_.log_draws(inputs, draws, seed), class_outputs(model)
        return logs if np.array_equal(outputs, np.arange(len(outputs))) else logs[:, :, outputs.tolist()]
    from suffice.models.deep.trained_module import last_layer_draws

    return last_layer_draws(model.last_layer(), model.machine_.features(inputs), draws, seed)
