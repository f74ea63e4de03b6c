"""Checks of the settings and inputs of a dropout network, without importing torch before it is needed."""

from typing import Any, Final

from suffice.arguments import real, sizes, whole
from suffice.errors import InvalidValueError, MissingExtraError
from suffice.numerics import Floats

_NAMES: Final = ("mlp", "mnist")
_APPROXIMATIONS: Final = ("dropout", "last-layer")
_PRECISIONS: Final = ("auto", "float32", "bfloat16")


def require_torch() -> Any:
    """Import and return torch.

    Raises:
        MissingExtraError: It is not installed; the message says how to install it.
    """
    try:
        import torch
    except ImportError:
        raise MissingExtraError("torch", "torch", "A dropout network") from None
    return torch


def check_settings(model: Any) -> None:
    """Raise an error that names the parameter, if a parameter of a network is invalid.

    Raises:
        MissingExtraError: torch is not installed.
        InvalidValueError: A parameter out of range.
    """
    if not isinstance(model.network, require_torch().nn.Module) and model.network not in _NAMES:
        raise InvalidValueError(
            f"network must be one of {', '.join(_NAMES)}, or a torch.nn.Module, not {model.network!r}"
        )
    for name, allowed in (("approximation", _APPROXIMATIONS), ("precision", _PRECISIONS)):
        if getattr(model, name) not in allowed:
            raise InvalidValueError(f"{name} must be one of {', '.join(allowed)}, not {getattr(model, name)!r}")
    for name in ("epochs", "train_samples", "samples"):
        whole(getattr(model, name), name, least=1)
    for name in ("warm_epochs", "batch_size"):
        if getattr(model, name) is not None:
            whole(getattr(model, name), name, least=1)
    real(model.learning_rate, "learning_rate", "above 0 and at most 1e30", lambda x: 0.0 < x <= 1e30)
    real(model.sigma, "sigma", "above 0", lambda x: x > 0.0)
    real(model.weight_decay, "weight_decay", "0 or above", lambda x: x >= 0.0)
    real(model.dropout, "dropout", "above 0 and below 1", lambda p: 0.0 < p < 1.0)
    if model.alpha is not None:
        real(model.alpha, "alpha", "above 0, or None", lambda x: x > 0.0)
    sizes(model.hidden, "hidden")
    if model.input_shape is not None:
        sizes(model.input_shape, "input_shape")
    whole(model.seed, "seed", least=0)
    from suffice.models.deep.trained_module import device_of

    device_of(model)


def require_row_shape(model: Any, inputs: Floats) -> None:
    """Raise an error if rows do not have the shape that a network was fitted with.

    Raises:
        InvalidValueError: Another shape, and the network has no shape of its own.
    """
    fitted, given = model.X_.shape[1:], inputs.shape[1:]
    if fitted != given and model.input_shape is None and model.network != "mnist":
        raise InvalidValueError(
            f"each row of X must have the shape {fitted} that the model was fitted with, not {given}"
        )
