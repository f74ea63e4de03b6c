"""Remove characters from cells that a database or a page cannot show."""

import re
from collections.abc import Sequence
from typing import Final

# Tabs and line ends are kept. Other control characters break terminals, PostgreSQL rejects NUL, and UTF-8 surrogates.
_UNSAFE_CHARACTER: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
_REPLACEMENT_CHARACTER: Final = "\N{REPLACEMENT CHARACTER}"


def clean(text: str) -> str:
    r"""Return a text with control characters and surrogates replaced.

    Characters 128 to 159 occur when a file in Windows-1252 is read as Latin-1; they become the characters of
    Windows-1252.

    Examples:
        >>> clean("a\x00b"), clean("\x93quoted\x94"), clean("two\nlines")
        ('a\ufffdb', '\u201cquoted\u201d', 'two\nlines')
    """
    return _UNSAFE_CHARACTER.sub(_replacement, text)


def clean_rows(rows: Sequence[Sequence[str]]) -> list[Sequence[str]]:
    """Return rows with every cell clean."""
    # Search the whole row first, because hardly any row contains such a character.
    return [tuple(map(clean, row)) if _UNSAFE_CHARACTER.search("".join(row)) else row for row in rows]


def _replacement(found: re.Match[str]) -> str:
    code = ord(found[0])
    return bytes([code]).decode("cp1252", "replace") if 0x80 <= code < 0xA0 else _REPLACEMENT_CHARACTER
