"""The files of a SQLite database: the file itself, its write-ahead log, and the memory that its processes share.

All processes that use a database must have the same three files open. If one of them is removed or replaced, SQLite
does not notice it. Then a process writes to a log that nobody else can find, or two processes write to the same log
without seeing each other's locks. If the log is cut off, SQLite writes behind the gap, and nothing there is found
again. If the shared memory is cut off, SQLite takes old pages for new ones. :class:`OpenFiles` notices all this, and
lets only one process at a time write.
"""

import ctypes
import os
import sqlite3
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import ClassVar, Final, NamedTuple

from suffice.errors import SufficeError

if sys.platform != "win32":
    import fcntl

#: Seconds to wait for another writer.
PATIENCE: Final = 30
# Seconds between two tries to become the only writer: at first, and at most.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.0005, 0.02


def log_of(file: Path) -> Path:
    """The write-ahead log of a SQLite file."""
    return file.with_name(f"{file.name}-wal")


def shared_memory_of(file: Path) -> Path:
    """The file of the memory that the processes of a SQLite file share."""
    return file.with_name(f"{file.name}-shm")


def has_log(file: Path) -> bool:
    """Whether a SQLite file has a write-ahead log with data that are not yet in the main file."""
    log = log_of(file)
    return log.exists() and log.stat().st_size > 0


def identity(file: Path) -> tuple[int, int] | None:
    """Identity of a file, which changes if another file takes its name; None if there is none."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _size(file: Path) -> int:
    """Bytes of a file; 0 if there is none."""
    try:
        return file.stat().st_size
    except OSError:
        return 0


def _start(log: Path) -> bytes:
    """The first bytes of a log, which differ each time that it is started again; empty if it is."""
    try:
        with log.open("rb") as file:
            return file.read(32)
    except OSError:
        return b""


def _is_blank(size: int, start: bytes) -> bool:
    """Whether a log has data, but nothing at its start, as after a write behind the end of a log that was cut off."""
    return size > 0 and not any(start)


def _has_gap(file: Path) -> bool:
    """Whether a part of a file was never written, as after a write behind its end."""
    if not hasattr(os, "SEEK_HOLE"):
        return False
    with suppress(OSError):
        opened = os.open(file, os.O_RDONLY)
        try:
            return os.lseek(opened, 0, os.SEEK_HOLE) < os.fstat(opened).st_size
        finally:
            os.close(opened)
    return False


@contextmanager
def only_writer(file: Path) -> Iterator[None]:
    """Exclude other writers by a lock on the folder, which is still there if a file is removed.

    Where folders cannot be locked, as on Windows, the locks of SQLite alone are used.

    Args:
        file: The SQLite file.

    Raises:
        StorageError: Another program has the lock for too long.
    """
    if sys.platform == "win32":
        yield
        return
    folder: int | None = None
    with suppress(OSError):
        folder = os.open(file.absolute().parent, os.O_RDONLY)
    if folder is None:
        yield
        return
    try:
        if not _locked(folder):
            raise StorageError(busy_sentence(str(file)))
        yield
    finally:
        # This also releases the lock.
        os.close(folder)


def _locked(folder: int) -> bool:
    """Lock a folder where that is possible; False if another program has the lock for too long."""
    end, pause = time.monotonic() + PATIENCE, _FIRST_PAUSE
    while time.monotonic() < end:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(pause)
            pause = min(2.0 * pause, _LONGEST_PAUSE)
        except OSError:
            return True
        else:
            return True
    return False


def busy_sentence(place: str) -> str:
    """What is said if another program writes for too long."""
    return f"another program has been writing to {place} for {PATIENCE} seconds; try again"


class StorageError(SufficeError):
    """The place of a project cannot be read or written now."""


class _Identities(NamedTuple):
    """Identities of the log and of the shared memory."""

    log: tuple[int, int] | None
    memory: tuple[int, int] | None

    @classmethod
    def of(cls, file: Path) -> "_Identities":
        return cls(identity(log_of(file)), identity(shared_memory_of(file)))


# The log is moved into the main file after so many writes of a process, or when it has grown by so many bytes.
_WRITES_BEFORE_MOVE, _BYTES_BEFORE_MOVE = 250, 2**22
_MAY_BE_LOST: Final = "what was acknowledged last may be lost; start again"


class OpenFiles:
    """The files that a process has open, kept open by a connection that only moves the log into the main file.

    Args:
        file: The SQLite file. Its log and its shared memory are made if there are none.
    """

    # Files whose connections were not closed, because other processes use another shared memory. This process would use
    # its old one again.
    _left_open: ClassVar[set[tuple[int, int] | None]] = set()

    def __init__(self, file: Path) -> None:
        self.require_usable(file)
        self._file = file
        address = f"{file.absolute().as_uri()}?mode=rw"
        self._connection = sqlite3.connect(
            address, uri=True, timeout=PATIENCE, check_same_thread=False, isolation_level=None
        )
        # With a reference more, Python does not close the connection at its end. The last connection to close moves the
        # log into the main file, which must not happen if another process uses other files.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._connection))
        self._connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        self._opened = _Identities.of(file)
        log = log_of(file)
        self._log_size, self._log_name = _size(log), _start(log)
        self._has_gap = _has_gap(log)
        # SQLite takes such a log for an empty one, and starts it again. So it may be what is left after a repair.
        self._was_blank = _is_blank(self._log_size, self._log_name)
        self._writes, self._moved_size = 0, self._log_size
        self._memory_size = _size(shared_memory_of(file))
        self._is_damaged = False

    @classmethod
    def require_usable(cls, file: Path) -> None:
        """Raise an error for a file that this process would use with an old shared memory.

        Raises:
            StorageError: It would.
        """
        if identity(file) in cls._left_open:
            raise StorageError(
                f"files of {file} were removed or replaced while this program had it open; start the program again"
            )

    def problem(self, *, written: bool) -> str:
        """What is wrong with the files, and what became of the data; empty if nothing is.

        If the log is gone, its data are moved into the main file: the log exists as long as it is open.

        Args:
            written: Whether something has been written since the files were compared last.
        """
        now = _Identities.of(self._file)
        this = "it is not known whether this was written" if written else "this was not written"
        if now == self._opened:
            return f"{cut}: {this}, and {_MAY_BE_LOST}" if (cut := self.cut_off()) else ""
        gone, busy = shared_memory_of(self._file), 0
        if now.log != self._opened.log:
            gone = log_of(self._file)
            try:
                busy = self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
            except sqlite3.Error:
                busy = 1
        saved = (
            "what was acknowledged could not be saved; stop what else uses the project and try again"
            if busy
            else "all that was acknowledged is saved; start again"
        )
        return f"{gone} was removed or replaced while the project was open: {this}, and {saved}"

    def move_log(self) -> None:
        """Move the log into the main file after some writes; call it after :meth:`problem`.

        SQLite would do it at the end of a transaction, and would copy a gap of a log that was cut off during that.
        """
        self._writes += 1
        if self._writes < _WRITES_BEFORE_MOVE and self._log_size < self._moved_size + _BYTES_BEFORE_MOVE:
            return
        self._writes, self._moved_size = 0, self._log_size
        # What a reader still needs is moved the next time.
        with suppress(sqlite3.Error):
            self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()

    def unreadable(self) -> str:
        """What to say if a part of the files is gone. They are not moved into each other afterwards."""
        self._is_damaged = True
        return f"a part of {self._file} or of its log was cut off while the project was open: {_MAY_BE_LOST}"

    def cut_off(self) -> str:
        """Which file was cut off; empty if none was."""
        memory = shared_memory_of(self._file)
        if _Identities.of(self._file) != self._opened:
            # What was removed is another matter.
            return ""
        if not self._is_damaged and _size(memory) >= self._memory_size and not self._is_log_cut_off():
            return ""
        self._is_damaged = True
        gone = memory if _size(memory) < self._memory_size else log_of(self._file)
        return f"{gone} was cut off while the project was open"

    def _is_log_cut_off(self) -> bool:
        """Whether the log became shorter, although it has data that are not in the main file.

        If another process has written behind the gap, the log is longer again, and the gap shows it. A gap is found if
        it is larger than a block of the file system, where that knows gaps.
        """
        log = log_of(self._file)
        size, name = _size(log), _start(log)
        if _is_blank(size, name) and not self._was_blank:
            return True
        self._was_blank = _is_blank(size, name)
        # A log that was started again has other numbers at its start. All that it had is in the main file.
        if size >= self._log_size or (size and name != self._log_name):
            self._log_size, self._log_name = size, name
            return not self._has_gap and _has_gap(log)
        if size == 0:
            # Another program may have moved all data into the main file. Otherwise this reads a part of the log that is
            # gone, and fails before it writes anything.
            with suppress(sqlite3.Error):
                if self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()[:2] == (0, 0):
                    self._log_size = 0
                    return False
        return True

    def close(self) -> None:
        """Close the connection, unless that would write to other files or from a log that is cut off."""
        if identity(self._file) is not None and not self._is_closable():
            self._left_open.add(identity(self._file))
            return
        self._connection.close()
        ctypes.pythonapi.Py_DecRef(ctypes.py_object(self._connection))

    def _is_closable(self) -> bool:
        now = _Identities.of(self._file)
        if self._is_damaged or now.memory != self._opened.memory:
            return False
        return now.log != self._opened.log or not self.cut_off()
