"""Stopping rules for BoTorch and GPyTorch.

:func:`suffice.kl`, :class:`suffice.StopMonitor` and :class:`suffice.learner.OptimisationMonitor` take an ``ExactGP`` of
GPyTorch, such as BoTorch's ``SingleTaskGP``, directly. This module handles the differences in conventions.
"""

from importlib import import_module
from typing import Any

from suffice.arguments import floats
from suffice.criteria import Criterion
from suffice.errors import InvalidTypeError, InvalidValueError, MissingExtraError
from suffice.learner import OptimisationMonitor
from suffice.numerics import Floats

__all__ = ["optimisation_monitor", "predict"]


def optimisation_monitor(bounds: Any, rule: Criterion | None = None, **options: Any) -> OptimisationMonitor:
    """Return a monitor for a loop of BoTorch, which maximises.

    Call ``monitor.update(model)`` with the fitted model after each evaluation.

    Args:
        bounds: The space as BoTorch has it, ``2 x D``: the lowest values, then the highest.
        rule: The stopping rule; that of :class:`suffice.learner.OptimisationMonitor` if left out.
        options: Its other arguments. ``direction`` is ``"maximize"`` if left out.

    Raises:
        InvalidValueError: ``bounds`` has another shape, or an argument is out of range.

    Examples:
        >>> monitor = optimisation_monitor([[0.0, 0.0, 0.0], [1.0, 1.0, 2.0]])
        >>> monitor
        OptimisationMonitor(RegretChange: 0 evaluations, go on)
    """
    table = floats(bounds, "bounds")
    if table.ndim != 2 or len(table) != 2:
        raise InvalidValueError(f"bounds must be 2 x D as in BoTorch, but its shape is {table.shape}")
    return OptimisationMonitor(table.T, rule, **{"direction": "maximize", **options})


def predict(model: Any, X: Any) -> tuple[Floats, Floats]:
    """Return mean and standard deviation of the labels by a model of BoTorch or GPyTorch.

    Give it to :class:`suffice.StopMonitor` as ``predict``: ``StopMonitor(X_pool, rule, predict=predict)``.

    Args:
        model: A ``SingleTaskGP`` of BoTorch, or an ``ExactGP`` of GPyTorch; it is set to evaluation mode.
        X: Inputs, ``N x D``: an array or a tensor.

    Returns:
        Means and standard deviations, the noise included, ``N`` each.

    Raises:
        MissingExtraError: GPyTorch is not installed.
        InvalidTypeError: It is not such a model.
    """
    try:
        torch, gpytorch = import_module("torch"), import_module("gpytorch")
    except ImportError:
        raise MissingExtraError("gpytorch", "", "a model of BoTorch or GPyTorch") from None
    if not isinstance(model, gpytorch.models.ExactGP):
        raise InvalidTypeError(f"model must be an ExactGP of GPyTorch or BoTorch, not {type(model).__name__}")
    inputs = model.train_inputs[0].new_tensor(floats(X, "X"))
    model.eval()
    with torch.no_grad():
        if hasattr(model, "posterior"):
            found = model.posterior(inputs, observation_noise=True)
            mean, variance = found.mean, found.variance
        else:
            model.likelihood.eval()
            found = model.likelihood(model(inputs))
            mean, variance = found.mean, found.variance
    if mean.numel() != len(inputs):
        raise InvalidTypeError(f"model must have one output, and it predicts {tuple(mean.shape)}")
    return floats(mean.reshape(-1), "mean"), floats(variance.reshape(-1).sqrt(), "variance")
