"""Files that are written completely or not at all, and their permissions.

A project is for its owner alone, unless its folder was given to a group on purpose.
"""

import os
import stat
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

from suffice.errors import SufficeError

#: Modes of folders and files that only their owner can read.
PRIVATE_FOLDER: Final = 0o700
PRIVATE_FILE: Final = 0o600
# The same with the group.
_SHARED_FOLDER: Final = 0o2770
_SHARED_FILE: Final = 0o660


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


def is_shared(folder: Path) -> bool:
    """Whether a folder was given to a group on purpose: it has the set-group-ID bit (``chmod g+s``).

    Without that bit, files that SQLite makes beside the project do not belong to the group, so that sharing does not
    work well anyway. With it, the group keeps the access that it has.
    """
    try:
        return bool(folder.stat().st_mode & stat.S_ISGID)
    except OSError:
        return False


def file_mode(folder: Path) -> int:
    """The mode of a new file in a folder of a project."""
    return _SHARED_FILE if is_shared(folder) else PRIVATE_FILE


def make_folder(folder: Path) -> None:
    """Make a folder in that of a project, unless it is there; only its owner can read it, or the group of a shared one.

    Raises:
        OSError: It cannot be made.
    """
    shared = is_shared(folder.parent)
    with suppress(FileExistsError):
        folder.mkdir(mode=_SHARED_FOLDER if shared else PRIVATE_FOLDER)
        if shared:
            # The mode above is cut by that of the process.
            folder.chmod(_SHARED_FOLDER)


def make_private(folder: Path, names: Iterable[str]) -> None:
    """Let only their owner read the folder and the files of a project.

    What belongs to somebody else stays as it is. Of a folder that is given to a group, see :func:`is_shared`, others
    are kept out, and the group is not. Nothing is done where a system has no such permissions, and no error is raised:
    a project on a file system that cannot keep them can be used.

    Args:
        folder: The folder.
        names: Names of files and folders in it; those that are not there are left out.

    Examples:
        >>> from tempfile import TemporaryDirectory
        >>> temporary = TemporaryDirectory()
        >>> folder = Path(temporary.name) / "pets.suffice"
        >>> folder.mkdir(); folder.chmod(0o755)
        >>> make_private(folder, [])
        >>> oct(folder.stat().st_mode & 0o777)
        '0o700'
        >>> temporary.cleanup()
    """
    if os.name != "posix":
        return
    # Others have nothing to do here; the group has where it was let in.
    kept = 0o770 if is_shared(folder) else 0o700
    _tighten(folder, kept)
    for name in names:
        _tighten(folder / name, kept)


def _tighten(path: Path, kept: int) -> None:
    with suppress(OSError):
        found = path.lstat()
        mode = stat.S_IMODE(found.st_mode)
        wanted = mode & ~(0o777 & ~kept)
        if mode != wanted and found.st_uid == os.geteuid() and not stat.S_ISLNK(found.st_mode):
            path.chmod(wanted)
