"""From the parameters of a dropout network to the network itself."""

import copy
from typing import Any

import numpy as np
import torch

from suffice.errors import InvalidValueError
from suffice.models.deep.machine import SHAPES, Machine, Plan, network_by_name
from suffice.models.deep.settings import sizes
from suffice.models.deep.training import Recipe
from suffice.special import Floats


def device_of(model: Any) -> torch.device:
    """Where a model runs: as it says, or on a GPU if there is one.

    Raises:
        InvalidValueError: There is no such device.
    """
    try:
        device = torch.device(model.device or ("cuda" if torch.cuda.is_available() else "cpu"))
    except (RuntimeError, TypeError) as error:
        raise InvalidValueError(f"device must be a name that torch knows, such as cpu or cuda: {error}") from None
    try:
        torch.zeros(1, device=device).item()
    except (RuntimeError, AssertionError, NotImplementedError):
        raise InvalidValueError(
            f"device is {model.device!r}, which torch does not find here; use device='cpu'"
        ) from None
    return device


def new_machine(model: Any, inputs: Floats, labels: Any) -> tuple[Machine, Any]:
    """A network that has learned nothing, and the classes that it tells apart.

    Args:
        model: The estimator.
        inputs: Rows to learn from.
        labels: Their classes, or all classes there are.

    Raises:
        InvalidValueError: A module that does not fit the classes or the approximation.
    """
    by_name = isinstance(model.network, str)
    plan = _plan(model, SHAPES.get(model.network) if by_name else None)
    if by_name:
        classes = known_classes(model, labels, 0)
        size = (int(np.prod(inputs.shape[1:])), max(2, len(classes)))
        hidden = sizes(model.hidden, "hidden")
        module: Any = network_by_name(model.network, size, hidden, float(model.dropout), plan.seed)
        machine = Machine(module, plan, inputs)
    else:
        machine = Machine(copy.deepcopy(model.network).float(), plan, inputs)
        classes = known_classes(model, labels, machine.structure.outputs)
    of_last_layer = model.approximation == "last-layer"
    if not of_last_layer and not machine.structure.dropped:
        raise InvalidValueError(
            "network has no dropout layer, so every draw would be the same; add torch.nn.Dropout before a layer, or "
            "use approximation='last-layer'"
        )
    if of_last_layer and not machine.structure.head:
        raise InvalidValueError("network does not end in a plain (linear) layer; use approximation='dropout'")
    return machine, classes


def known_classes(model: Any, labels: Any, outputs: int) -> Any:
    """The classes, sorted; a module of the user's own tells apart as many as it has ``outputs``.

    Raises:
        InvalidValueError: There are not as many.
    """
    seen = np.unique(labels if model.classes is None else np.asarray(model.classes))
    if isinstance(model.network, str):
        return seen
    if model.classes is None and seen.dtype.kind in "iu" and seen[0] >= 0 and seen[-1] < outputs:
        return np.arange(outputs)
    if len(seen) == outputs:
        return seen
    raise InvalidValueError(
        f"network has {outputs} outputs, but there are {len(seen)} classes; give classes=[...] with one for each "
        "output, in their order"
    )


def _plan(model: Any, shape: tuple[int, ...] | None) -> Plan:
    device = device_of(model)
    mixed = model.precision == "bfloat16" or (model.precision == "auto" and device.type == "cuda")
    autocast = torch.bfloat16 if mixed else None
    if model.input_shape is not None:
        shape = sizes(model.input_shape, "input_shape")
    return Plan(
        shape=shape,
        device=device,
        autocast=autocast,
        recipe=Recipe(model.epochs, model.batch_size, model.train_samples, autocast),
        learning_rate=float(model.learning_rate),
        weight_decay=float(model.weight_decay),
        keep_optimizer=bool(model.keep_optimizer),
        seed=int(model.seed),
    )
