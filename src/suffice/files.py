"""Files that are written completely or not at all, and their permissions.

Only the owner of a project has access to it, unless its folder is shared with a group.
"""

import gc
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from suffice.errors import SufficeError

#: Modes of folders and files that only their owner can read.
PRIVATE_FOLDER: Final = 0o700
PRIVATE_FILE: Final = 0o600
# The same with the group.
_SHARED_FOLDER: Final = 0o2770
_SHARED_FILE: Final = 0o660


@contextmanager
def without_collector() -> Iterator[None]:
    """Disable the garbage collector. This saves a quarter of the time for many rows, which have no reference cycles."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def digest_of(path: Path) -> str:
    """The SHA-256 digest of the content of a file.

    Args:
        path: The file.
    """
    from hashlib import file_digest

    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def require_writable(path: Path, what: str) -> None:
    """Raise an error before a long computation if its file cannot be written.

    Args:
        path: The file.
        what: The content to be written, as the subject of the sentence.

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
    """Write a file completely or not at all, also when interrupted: to a temporary file first, which is then renamed.

    Args:
        path: The file.
        write: Writes to a given path.
        part: The temporary file; by default its name is unique for this process. With a fixed name, temporary files do
            not accumulate if a process is killed repeatedly.

    Raises:
        SufficeError: It cannot be written.
    """
    final = path.resolve()
    part = part or final.with_name(f".{final.stem}.{os.getpid()}{final.suffix}")
    try:
        if path.exists() and not path.is_file():
            # A device is written to directly; for a folder, the system raises the error.
            write(path)
            return
        write(part)
        part.replace(final)
    except SufficeError as error:
        if str(part) in str(error):
            error.args = (str(error).replace(str(part), str(path)),)
        raise
    except OSError as error:
        raise SufficeError(f"{path} cannot be written: {error.strerror or error}") from None
    finally:
        part.unlink(missing_ok=True)


def write_bytes_whole(path: Path, content: bytes) -> None:
    """Write the content of a file, completely or not at all.

    Raises:
        SufficeError: It cannot be written.
    """

    def write(part: Path) -> None:
        part.write_bytes(content)

    write_whole(path, write)


def is_shared(folder: Path) -> bool:
    """Whether a folder is shared with a group: it has the set-group-ID bit (``chmod g+s``).

    Without that bit, files that SQLite creates in the folder do not belong to the group, and sharing does not work
    well. With it, the group keeps its access.
    """
    try:
        return bool(folder.stat().st_mode & stat.S_ISGID)
    except OSError:
        return False


def file_mode(folder: Path) -> int:
    """The mode of a new file in a folder of a project."""
    return _SHARED_FILE if is_shared(folder) else PRIVATE_FILE


def make_folder(folder: Path) -> None:
    """Create a folder in that of a project, unless it exists. Only its owner, or the group of a shared one, has access.

    Raises:
        OSError: It cannot be created.
    """
    shared = is_shared(folder.parent)
    with suppress(FileExistsError):
        folder.mkdir(mode=_SHARED_FOLDER if shared else PRIVATE_FOLDER)
        if shared:
            # The umask of the process may remove permissions from the mode above.
            folder.chmod(_SHARED_FOLDER)


def make_private(folder: Path, names: Iterable[str]) -> None:
    """Set the permissions of the folder and the files of a project, so that only their owner can read them.

    Files of another owner are not changed. For a folder that is shared with a group, see :func:`is_shared`, the group
    keeps its access. On a system without such permissions nothing is done, and no error is raised: a project on a file
    system without permissions can be used.

    Args:
        folder: The folder.
        names: Names of files and folders in it; missing ones are ignored.

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
    # Others lose their access; the group keeps it in a shared folder.
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
