"""Text made safe for display, on one line or wrapped."""

import unicodedata
from functools import lru_cache
from io import StringIO
from typing import Final

from rich.console import Console
from rich.text import Text

# Marks that turn the direction of writing, and could show something else than is there.
_TURNING: Final = frozenset(map(chr, (*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x061C)))
_LINE_ENDS: Final = {"\r\n": "\n", "\r": "\n", "\u2028": "\n", "\u2029": "\n", "\x85": "\n", "\t": "    "}
_PLAIN: Final = {
    "\u2026": "...",
    "\u00b7": "-",
    "\u2013": "-",
    "\u2014": "-",
    "\u2018": "'",
    "\u2019": "'",
    "\u201c": '"',
    "\u201d": '"',
    "\u00a0": " ",
}


def visible(text: str, encoding: str = "utf-8") -> str:
    r"""A text with every control character made visible, and with letters that the terminal has not replaced.

    Lines stay lines, and tabs become spaces.

    Args:
        text: Any text.
        encoding: The encoding of the terminal.

    Examples:
        >>> visible("a\x1b[31mb\r\nc\td")
        'a␛[31mb\nc    d'
        >>> visible("a\x1b\u202e…é", "ascii")
        'a^[?...?'
    """
    for end, newline in _LINE_ENDS.items():
        text = text.replace(end, newline)
    plain = not encoding.lower().replace("-", "").startswith("utf")
    if text.isascii() and text.replace("\n", "").isprintable():
        return text
    shown = "".join(_letter(letter, plain) for letter in text)
    if not plain:
        return shown
    for letter, instead in _PLAIN.items():
        shown = shown.replace(letter, instead)
    return shown.encode(encoding, "replace").decode(encoding)


def one_line(text: str, encoding: str = "utf-8") -> str:
    r"""A text on one line, as :func:`visible` shows it.

    Examples:
        >>> one_line("  two\n lines ")
        'two lines'
    """
    return " ".join(visible(text, encoding).split())


def _letter(letter: str, plain: bool) -> str:
    code = ord(letter)
    if letter == "\n":
        return letter
    if code < 32 or code == 127:
        # The pictures of control characters, and how a terminal of old names them.
        return f"^{chr(code ^ 64)}" if plain else chr(0x2421 if code == 127 else 0x2400 + code)
    return "\ufffd" if letter in _TURNING or unicodedata.category(letter) in {"Cc", "Cs"} else letter


_UNBROKEN: Final = "\ue0a0"


@lru_cache(maxsize=256)
def wrapped(text: str, width: int) -> tuple[str, ...]:
    """A text broken into lines of at most so many columns, between words where that can be.

    Examples:
        >>> wrapped("one two three", 8)
        ('one two', 'three')
    """
    # To rich a space at which a line must not be broken is one like any other.
    kept = text.replace("\u00a0", _UNBROKEN)
    lines = Text(kept).wrap(_console(), max(1, width), tab_size=4)
    return tuple(line.plain.rstrip().replace(_UNBROKEN, " ") for line in lines) or ("",)


@lru_cache(maxsize=1)
def _console() -> Console:
    # Only for its rules of wrapping; nothing is printed.
    return Console(file=StringIO(), width=80, legacy_windows=False)
