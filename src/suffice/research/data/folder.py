"""The data folder, and the status of the files in it."""

import hashlib
import os
import sys
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import BinaryIO

from suffice.errors import CorruptDataError, MissingDataError, SufficeError
from suffice.research.data.catalogue import DataFile, DataSet, data_set


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


class FileState(StrEnum):
    """State of a file of a data set."""

    right = "right"
    missing = "missing"
    corrupt = "corrupt"


@dataclass(frozen=True)
class FileStatus:
    """State of a file of a data set, with the reason.

    Attributes:
        file: The file as it should be.
        path: Where it belongs.
        state: Whether it is there and right, missing, or corrupt.
        sha256: The checksum of what is there; nothing where it is missing or cannot be read.
        size: The length in bytes of what is there; None where it is missing or cannot be read.
        reason: Why it cannot be read; nothing where it can.
    """

    file: DataFile
    path: Path
    state: FileState
    sha256: str = ""
    size: int | None = None
    reason: str = ""

    def __str__(self) -> str:
        if self.state is FileState.right:
            return f"{self.path} is there and right"
        if self.state is FileState.missing:
            return f"{self.path} is missing"
        if self.reason:
            return f"{self.path} cannot be read: {self.reason}"
        came = f"{self.sha256} ({self.size} bytes)"
        return f"{self.path} is corrupt: its SHA-256 checksum should be {self.file.expected} and is {came}"


def set_status(name: str, folder: Path | None = None) -> tuple[FileStatus, ...]:
    """Return the status of each file of a data set.

    Args:
        name: Name of the data set.
        folder: The data folder; :func:`suffice.research.data.folder.data_folder` if left out.

    Raises:
        InvalidValueError: There is no data set of that name.
    """
    place = data_folder() if folder is None else folder
    return tuple(_inspect(file, place)[0] for file in data_set(name).files)


def file_status(file: DataFile, folder: Path) -> FileStatus:
    """Return the status of one file in a data folder."""
    return _inspect(file, folder)[0]


def require_set(name: str, folder: Path | None = None) -> None:
    """Check that all files of a data set are there and right.

    Args:
        name: Name of the data set.
        folder: The data folder; :func:`suffice.research.data.folder.data_folder` if left out.

    Raises:
        InvalidValueError: There is no data set of that name.
        MissingDataError: A file is not there; the message says where it belongs and how to get it.
        CorruptDataError: A file is not what it should be; the message holds both checksums and the remedy.
    """
    checked_contents(name, folder)


def checked_contents(name: str, folder: Path | None = None) -> tuple[bytes, ...]:
    """Return the bytes of each file of a data set, the very ones whose checksum was found right.

    Args:
        name: Name of the data set.
        folder: The data folder; :func:`suffice.research.data.folder.data_folder` if left out.

    Raises:
        InvalidValueError: There is no data set of that name.
        MissingDataError: A file is not there.
        CorruptDataError: A file is not what it should be.
    """
    wanted, place = data_set(name), data_folder() if folder is None else folder
    found = [_inspect(file, place) for file in wanted.files]
    statuses = [status for status, _ in found]
    if missing := [status for status in statuses if status.state is FileState.missing]:
        others = f" (and {len(missing) - 1} more of its files)" if len(missing) > 1 else ""
        where = f"put it there from a machine that has it ({wanted.home})"
        raise MissingDataError(f"data set {name}: {missing[0]}{others}. {_remedy(wanted, place)}, or {where}")
    if corrupt := [status for status in statuses if status.state is FileState.corrupt]:
        raise CorruptDataError(f"data set {name}: {corrupt[0]}. {_remedy(wanted, place)}, which replaces it")
    return tuple(content for _, content in found)


def _remedy(wanted: DataSet, folder: Path) -> str:
    elsewhere = "" if folder.absolute() == data_folder() else f" with SUFFICE_DATA set to {folder.absolute()}"
    return f"Run: suffice data fetch {wanted.name}{elsewhere}"


def _inspect(file: DataFile, folder: Path) -> tuple[FileStatus, bytes]:
    """Return the status of a file, and its bytes if it is right."""
    path = folder.joinpath(*file.path.split("/"))
    try:
        with path.open("rb") as stream:
            return _compare(file, path, stream)
    except (FileNotFoundError, NotADirectoryError):
        return FileStatus(file, path, FileState.missing), b""
    except OSError as error:
        return FileStatus(file, path, FileState.corrupt, reason=error.strerror or str(error)), b""


def _compare(file: DataFile, path: Path, stream: BinaryIO) -> tuple[FileStatus, bytes]:
    # One byte more than there should be is enough to see that a file is too long, however long it is.
    # (Another packing of the same files may be somewhat longer.)
    content = stream.read(file.size * (2 if file.also else 1) + 1)
    digest, size = hashlib.sha256(content), len(content)
    while rest := stream.read(1 << 20):
        digest.update(rest)
        size += len(rest)
    right = digest.hexdigest() in (file.sha256, *file.also)
    status = FileStatus(file, path, FileState.right if right else FileState.corrupt, digest.hexdigest(), size)
    return status, content if right else b""
