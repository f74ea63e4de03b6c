"""The folder of the data sets.

Not from ``pooch.os_cache``: reading data sets must work without pooch.
"""

import os
import sys
from pathlib import Path

from suffice.errors import SufficeError


def data_folder() -> Path:
    """The folder named by ``SUFFICE_DATA`` if that is set, else ``suffice/data`` in the user's cache folder.

    The cache folder is ``XDG_CACHE_HOME`` or ``~/.cache``; ``~/Library/Caches`` on macOS; ``LOCALAPPDATA`` on Windows.
    The folder need not exist.

    Raises:
        SufficeError: The user has no home folder, and ``SUFFICE_DATA`` is not set.
    """
    try:
        if chosen := os.environ.get("SUFFICE_DATA"):
            return Path(chosen).expanduser().absolute()
        return _cache_folder() / "suffice" / "data"
    except RuntimeError as error:
        raise SufficeError(f"no folder for data: {error} Set SUFFICE_DATA to the folder to use") from None


def _cache_folder() -> Path:
    if sys.platform == "win32":
        return _absolute("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return _absolute("XDG_CACHE_HOME") or Path.home() / ".cache"


def _absolute(variable: str) -> Path | None:
    """The folder that a variable names; a relative one does not count, as the XDG specification has it."""
    folder = Path(os.environ.get(variable, ""))
    return folder if folder.is_absolute() else None
