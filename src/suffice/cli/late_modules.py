"""Modules that are loaded when something of them is used.

scikit-learn imports ``scipy.stats`` for a few functions that most commands never call. Loading it takes longer than
scikit-learn itself, and about a fourth of the time of a short command. So while a command runs, another object stands
in its place until somebody reads an attribute of it. A program that imports suffice is not affected.
"""

import sys
from importlib import import_module
from threading import Lock
from types import ModuleType
from typing import Any, Final

_REPLACING: Final = Lock()


class LateModule(ModuleType):
    """Stands in the place of a module, and loads it when an attribute of it is read.

    Args:
        name: Full name of the module.

    Examples:
        >>> LateModule("colorsys").rgb_to_hsv(1.0, 0.0, 0.0)
        (0.0, 1.0, 1.0)
    """

    def __getattr__(self, name: str) -> Any:
        """The attribute of the module, which is loaded now if it was not."""
        with _REPLACING:
            if sys.modules.get(self.__name__) is self:
                del sys.modules[self.__name__]
        return getattr(import_module(self.__name__), name)


def load_late(name: str) -> None:
    """Let a module be loaded when something of it is used, unless it is loaded already.

    Args:
        name: Full name of the module.
    """
    sys.modules.setdefault(name, LateModule(name))
