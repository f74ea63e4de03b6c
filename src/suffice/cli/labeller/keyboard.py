"""The keyboard of the terminal: keys one at a time, without Enter, and the terminal given back as it was."""

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final, NoReturn, Protocol

from suffice.cli.labeller.keys import CONTROLS, DOWN, END, ESCAPE, PAGE_DOWN, PAGE_UP, UP, KeyDecoder

# A terminal sends a sequence in one go: what has not come after this many seconds will not come.
_ESCAPE_WAIT: Final = 0.05


class Keyboard(Protocol):
    """Where keys come from."""

    def read(self, timeout: float) -> list[str]:
        """Keys that were pressed, waiting at most so many seconds for the first."""

    def drop(self) -> None:
        """Forget what was pressed and not read yet."""


@contextmanager
def keyboard() -> Iterator[Keyboard]:
    """The keyboard of the terminal, which is as it was before once this is left, however it is left."""
    with _ended_by_signals(), _keys() as keys:
        yield keys


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Leave by an exception where a signal would end the process with the terminal in disorder."""

    def leave(number: int, _: FrameType | None) -> NoReturn:
        raise SystemExit(128 + number)

    # Windows has no SIGHUP.
    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    previous: dict[int, Any] = {number: signal.signal(number, leave) for number in numbers}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


if sys.platform != "win32":
    import select
    import termios
    import tty

    class _PosixKeyboard:
        """Reads keys of a terminal by its file descriptor."""

        def __init__(self, fd: int, encoding: str) -> None:
            self._fd, self._decoder = fd, KeyDecoder(encoding)

        def read(self, timeout: float) -> list[str]:
            until = time.monotonic() + timeout
            while True:
                wait = _ESCAPE_WAIT if self._decoder.waiting else max(0.0, until - time.monotonic())
                if not select.select([self._fd], [], [], wait)[0]:
                    return self._decoder.flush()
                sent = self._sent()
                keys = self._decoder.feed(sent) if sent else [END]
                if keys:
                    return keys

        def drop(self) -> None:
            while select.select([self._fd], [], [], 0.0)[0] and self._sent():
                pass
            self._decoder.flush()

        def _sent(self) -> bytes:
            try:
                return os.read(self._fd, 65536)
            except OSError:
                # The terminal is gone.
                return b""

    @contextmanager
    def _keys() -> Iterator[Keyboard]:
        fd = sys.stdin.fileno()
        before = termios.tcgetattr(fd)
        try:
            tty.setcbreak(fd)
            mode = termios.tcgetattr(fd)
            # Ctrl-Z undoes here; a labeller that is put to sleep would leave its screen behind.
            mode[6][termios.VSUSP] = b"\x00"
            termios.tcsetattr(fd, termios.TCSANOW, mode)
            _ask_for_marked_pastes(on=True)
            yield _PosixKeyboard(fd, sys.stdin.encoding or "utf-8")
        finally:
            termios.tcsetattr(fd, termios.TCSAFLUSH, before)
            _ask_for_marked_pastes(on=False)

    def _ask_for_marked_pastes(*, on: bool) -> None:
        """Have the terminal say where a paste begins and ends, so that it is not taken for many keys."""
        sys.stdout.write(f"\x1b[?2004{'h' if on else 'l'}")
        sys.stdout.flush()

else:
    import msvcrt

    _WINDOWS: Final = {"H": UP, "P": DOWN, "I": PAGE_UP, "Q": PAGE_DOWN}

    class _WindowsKeyboard:
        """Reads keys of a Windows console."""

        def read(self, timeout: float) -> list[str]:
            until = time.monotonic() + timeout
            while not msvcrt.kbhit():
                if time.monotonic() >= until:
                    return []
                time.sleep(0.01)
            keys: list[str] = []
            while msvcrt.kbhit():
                letter = msvcrt.getwch()
                if letter == "\x03":
                    raise KeyboardInterrupt
                if letter in "\x00\xe0":
                    key = _WINDOWS.get(msvcrt.getwch(), "")
                elif letter == "\x1b":
                    key = ESCAPE
                else:
                    key = CONTROLS.get(letter, letter if letter.isprintable() else "")
                keys += [key] if key else []
            return keys

        def drop(self) -> None:
            while msvcrt.kbhit():
                msvcrt.getwch()

    @contextmanager
    def _keys() -> Iterator[Keyboard]:
        yield _WindowsKeyboard()
