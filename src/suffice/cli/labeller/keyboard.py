"""Single keys from the terminal, decoded to names."""

import codecs
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final, NoReturn, Protocol

#: Names of keys that are no letters; any other key is its character.
ENTER: Final = "enter"
BACKSPACE: Final = "backspace"
ESCAPE: Final = "escape"
UP: Final = "up"
DOWN: Final = "down"
PAGE_UP: Final = "page up"
PAGE_DOWN: Final = "page down"
UNDO: Final = "undo"
CLEAR: Final = "clear"
END: Final = "end of input"
#: What a key is called that stands for a text that was pasted.
PASTED: Final = "pasted: "

#: What control characters mean.
CONTROLS: Final = {
    "\r": ENTER,
    "\n": ENTER,
    "\x7f": BACKSPACE,
    "\x08": BACKSPACE,
    "\x04": END,
    "\x15": CLEAR,
    "\x1a": UNDO,
}
_SEQUENCES: Final = {
    "[A": UP,
    "OA": UP,
    "[B": DOWN,
    "OB": DOWN,
    "[5~": PAGE_UP,
    "[6~": PAGE_DOWN,
    "OM": ENTER,
}
_PASTE_BEGINS: Final = "[200~"
_PASTE_ENDS: Final = "\x1b[201~"
_LONGEST_PASTE: Final = 10_000


class KeyDecoder:
    r"""Turns the bytes that a terminal sends into keys, also where they come in pieces.

    Examples:
        >>> decoder = KeyDecoder()
        >>> decoder.feed(b"a\x1b[A\xc3"), decoder.feed(b"\xa9\r")
        (['a', 'up'], ['é', 'enter'])
        >>> decoder.feed(b"\x1b"), decoder.flush()
        ([], ['escape'])
    """

    def __init__(self, encoding: str = "utf-8") -> None:
        self._decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
        self._rest = ""

    @property
    def waiting(self) -> bool:
        """Whether a key has begun to come and is not whole yet."""
        return bool(self._rest)

    def feed(self, sent: bytes) -> list[str]:
        """Take in what came, and return the keys that are whole."""
        self._rest += self._decoder.decode(sent)
        keys = []
        while self._rest:
            key, length = self._first()
            if not length:
                break
            self._rest = self._rest[length:]
            if key:
                keys.append(key)
        return keys

    def flush(self) -> list[str]:
        """Nothing more will come: what looked like the beginning of a sequence is the escape key."""
        rest, self._rest = self._rest, ""
        if not rest:
            return []
        return [_pasted(rest[1 + len(_PASTE_BEGINS) :])] if rest[1:].startswith(_PASTE_BEGINS) else [ESCAPE]

    def _first(self) -> tuple[str, int]:
        """The first key and how many characters it is; 0 where it is not whole, no name where it means nothing."""
        first = self._rest[0]
        if first != "\x1b":
            return CONTROLS.get(first, first if first.isprintable() else ""), 1
        rest = self._rest[1:]
        if rest.startswith(_PASTE_BEGINS):
            end = rest.find(_PASTE_ENDS)
            return ("", 0) if end < 0 else (_pasted(rest[len(_PASTE_BEGINS) : end]), 1 + end + len(_PASTE_ENDS))
        if rest[:1] not in ("[", "O"):
            # Alt and a letter, or the escape key and then another.
            return (ESCAPE, 1) if rest else ("", 0)
        last = next((at for at, letter in enumerate(rest[1:], start=1) if "@" <= letter <= "~"), None)
        return ("", 0) if last is None else (_SEQUENCES.get(rest[: last + 1], ""), last + 2)


def _pasted(text: str) -> str:
    return PASTED + "".join(letter if letter.isprintable() else " " for letter in text[:_LONGEST_PASTE]).strip()


# A terminal sends a sequence in one go: what has not come after this many seconds will not come.
_ESCAPE_WAIT: Final = 0.05


class Keyboard(Protocol):
    """Where keys come from."""

    def read(self, timeout: float) -> list[str]:
        """Keys that were pressed, waiting at most so many seconds for the first."""

    def drop(self) -> None:
        """Forget what was pressed and not read yet."""


@contextmanager
def open_keyboard() -> Iterator[Keyboard]:
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
