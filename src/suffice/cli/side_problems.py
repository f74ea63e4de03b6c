"""Warnings about failures that must not lose a result, printed at the end."""

from collections.abc import Callable

from suffice.errors import SufficeError


def problem(action: Callable[[], None], *, raised: bool) -> str:
    """Why an action failed, in words; or nothing. With ``raised`` the error goes on."""
    try:
        action()
    except SufficeError as error:
        if raised:
            raise
        return str(error)
    return ""
