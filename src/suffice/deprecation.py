"""Names of earlier versions that still work, with a warning: one function for calls, one table for modules.

A deprecated name works until :data:`REMOVED_IN`. Its ``DeprecationWarning`` says what to use instead, and is located at
the line of the user's program.
"""

import sys
import warnings
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import FrameType, ModuleType
from typing import Any, Final, ParamSpec, TypeVar

#: The version that removes what is deprecated.
REMOVED_IN: Final = "1.2.0"
#: Modules of earlier versions, and what has their names now. Modules inside of them have moved with them.
MOVED: Final = {
    "suffice.decision": "suffice.session.decision",
    "suffice.learner.suspicious_labels": "suffice.session.suspicious_labels",
    "suffice.models.deep.sampling": "suffice.models.deep.trained_module",
    "suffice.recommendation": "suffice_research.recommendation",
    "suffice.research": "suffice_research",
}
_RESEARCH: Final = "suffice_research"
_P = ParamSpec("_P")
_T = TypeVar("_T")


def warn_deprecated(name: str, remedy: str) -> None:
    """Warn that a name is deprecated, at the line outside of suffice that uses it.

    Args:
        name: What is deprecated, as the subject of the sentence.
        remedy: What to do instead, as a clause.

    Examples:
        >>> with warnings.catch_warnings(record=True) as caught:
        ...     warnings.simplefilter("always")
        ...     warn_deprecated("StopMonitor.from_state_dict", "use StopMonitor.from_state")
        >>> print(caught[0].message)
        StopMonitor.from_state_dict is deprecated and will be removed in suffice 1.2.0; use StopMonitor.from_state
    """
    frame = sys._getframe(1)
    while frame.f_back is not None and _is_internal(frame):
        frame = frame.f_back
    warnings.warn_explicit(
        f"{name} is deprecated and will be removed in suffice {REMOVED_IN}; {remedy}",
        DeprecationWarning,
        filename=frame.f_code.co_filename,
        lineno=frame.f_lineno,
        module=frame.f_globals.get("__name__", "__main__"),
        registry=frame.f_globals.setdefault("__warningregistry__", {}),
    )


def without_argument(name: str, remedy: str) -> Callable[[Callable[_P, _T]], Callable[_P, _T]]:
    """Make a decorator for a function of which an argument has no effect any more: it is accepted with a warning.

    Args:
        name: The keyword argument.
        remedy: As for :func:`warn_deprecated`.

    Examples:
        >>> @without_argument("speed", "leave it out")
        ... def double(x):
        ...     return 2 * x
        >>> with warnings.catch_warnings(record=True) as caught:
        ...     warnings.simplefilter("always")
        ...     double(3, speed=1)
        6
        >>> print(caught[0].message)
        the argument speed of double is deprecated and will be removed in suffice 1.2.0; leave it out
    """

    def decorate(function: Callable[_P, _T]) -> Callable[_P, _T]:
        @wraps(function)
        def call(*args: _P.args, **kwargs: _P.kwargs) -> _T:
            if name in kwargs:
                del kwargs[name]
                warn_deprecated(f"the argument {name} of {function.__name__}", remedy)
            return function(*args, **kwargs)

        return call

    return decorate


def is_moved(module: str) -> bool:
    """Whether a module of an earlier version has another name now.

    Examples:
        >>> is_moved("suffice.research.data"), is_moved("suffice.session.decision")
        (True, False)
    """
    return any(module == old or module.startswith(f"{old}.") for old in MOVED)


def find_moved_modules() -> None:
    """Let ``import`` find modules under their earlier names, once in a process."""
    if not any(getattr(each, "__name__", "") == MovedModules.__name__ for each in sys.meta_path):
        sys.meta_path.append(MovedModules)


class MovedModules:
    """Finds modules under their earlier names; one of ``sys.meta_path``, after those of Python."""

    @staticmethod
    def find_spec(name: str, *_: Any) -> ModuleSpec | None:
        """The specification of a module that has moved, or None."""
        if not is_moved(name):
            return None
        # It is no subclass of importlib.abc.Loader, whose import takes as long as that of suffice.
        return ModuleSpec(name, _MovedLoader(name), is_package=True)  # type: ignore[arg-type]


class _MovedLoader:
    """Makes a module whose names are those of the module that has replaced it."""

    def __init__(self, name: str) -> None:
        old = next(each for each in MOVED if name == each or name.startswith(f"{each}."))
        self._new = MOVED[old] + name.removeprefix(old)

    def create_module(self, _: ModuleSpec) -> None:
        """Let Python make the module."""

    def exec_module(self, module: ModuleType) -> None:
        """Take the names from the new module, and warn."""
        if self._new.startswith(_RESEARCH) and find_spec(_RESEARCH) is None:
            raise import_module("suffice.errors").MissingResearchError(module.__name__)
        current = import_module(self._new)
        warn_deprecated(module.__name__, f"use {self._new}")
        # Names are looked up when they are used, as in a module that loads its parts then.
        module.__getattr__ = lambda name: getattr(current, name)  # type: ignore[method-assign]
        module.__doc__ = current.__doc__
        if hasattr(current, "__all__"):
            module.__all__ = current.__all__  # type: ignore[attr-defined]


def _is_internal(frame: FrameType) -> bool:
    return frame.f_globals.get("__name__", "").partition(".")[0] in {"suffice", "importlib"}
