"""Text of items as a terminal may show it: nothing in it is taken for an order, and nothing is hidden."""

import unicodedata
from typing import Final

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
