"""A small disk that a test fills."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def small_disk(folder: Path, megabytes: int) -> Iterator[bool]:
    """Mount a small disk in a new folder; False where it cannot be mounted: not as root, or mount is refused."""
    folder.mkdir()
    mounted = not os.geteuid() and not os.system(f"mount -t tmpfs -o size={megabytes}m tmpfs '{folder}' 2> /dev/null")
    try:
        yield mounted
    finally:
        if mounted:
            os.system(f"umount -l '{folder}'")


def fill(file: Path) -> None:
    """Take all the room that there is."""
    with file.open("wb", buffering=0) as filling:
        try:
            while filling.write(b"x" * 4096):
                pass
        except OSError as error:
            assert error.errno == errno.ENOSPC  # noqa: PT017 - what else could end it
