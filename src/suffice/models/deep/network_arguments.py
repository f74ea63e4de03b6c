"""Checks of a network's arguments that work without torch, and the check for torch itself."""

from collections.abc import Iterable
from typing import Any

from suffice.arguments import whole
from suffice.errors import InvalidValueError, MissingExtraError


def sizes(value: Any, name: str) -> tuple[int, ...]:
    """Return several sizes as whole numbers, or say what is wrong with them."""
    if not isinstance(value, Iterable) or isinstance(value, str):
        raise InvalidValueError(f"{name} must be several whole numbers, such as (64, 64), not {value!r}")
    return tuple(whole(size, name, least=1) for size in value)


def require_torch() -> Any:
    """Return torch, or say how to get it.

    Raises:
        MissingExtraError: It is not installed.
    """
    try:
        import torch
    except ImportError:
        raise MissingExtraError("torch", "torch", "A dropout network") from None
    return torch
