"""Who may read the files of a project: their owner alone, unless the folder was given to a group on purpose."""

import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

#: Modes of folders and files that only their owner can read.
PRIVATE_FOLDER: Final = 0o700
PRIVATE_FILE: Final = 0o600
# The same with the group.
_SHARED_FOLDER: Final = 0o2770
_SHARED_FILE: Final = 0o660


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
