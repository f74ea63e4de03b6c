"""Files that are written whole or not at all."""

import os
from collections.abc import Callable
from pathlib import Path

from suffice.errors import SufficeError


def require_writable(path: Path, what: str) -> None:
    """Say before a long work, rather than after it, what would keep its file from being written.

    Args:
        path: The file.
        what: What is to be written there, as the subject of the sentence.

    Raises:
        SufficeError: It is a folder, or its own folder does not exist or cannot be written to.
    """
    folder = path.absolute().parent
    reason = "it is a folder" if path.is_dir() else ""
    if not folder.is_dir():
        reason = f"the folder {folder} does not exist"
    elif not os.access(folder, os.W_OK):
        reason = f"the folder {folder} is read-only"
    if reason:
        raise SufficeError(f"{what} cannot be saved to {path}: {reason}")


def write_whole(path: Path, write: Callable[[Path], None], *, part: Path | None = None) -> None:
    """Write a file whole or not at all, also when interrupted: beside it first, then in its place.

    Args:
        path: The file.
        write: Writes to the path that it is given.
        part: Where to write first; a name of this process's own if left out. A fixed one does not pile up where a
            process is killed again and again.

    Raises:
        SufficeError: It cannot be written.
    """
    final = path.resolve()
    part = part or final.with_name(f".{final.stem}.{os.getpid()}{final.suffix}")
    try:
        if path.exists() and not path.is_file():
            # A device is written to as it is; a folder says that it is one.
            write(path)
            return
        write(part)
        part.replace(final)
    except SufficeError as error:
        raise SufficeError(str(error).replace(str(part), str(path))) from None
    except OSError as error:
        raise SufficeError(f"{path} cannot be written: {error.strerror or error}") from None
    finally:
        part.unlink(missing_ok=True)


def write_bytes_whole(path: Path, content: bytes) -> None:
    """Write what a file is to hold, whole or not at all.

    Raises:
        SufficeError: It cannot be written.
    """

    def write(part: Path) -> None:
        part.write_bytes(content)

    write_whole(path, write)
