"""Cells that any database and any page can hold."""

import re
from collections.abc import Sequence
from typing import Final

# Tab and line ends are text; the others break terminals, and PostgreSQL holds no NUL, UTF-8 no half of a letter.
_UNSAFE: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
_REPLACEMENT: Final = "\N{REPLACEMENT CHARACTER}"


def clean(text: str) -> str:
    r"""Return a text with control characters and halves of letters replaced.

    Characters 128 to 159 are control characters that nobody writes; they come of files in Windows-1252 that were read
    as Latin-1, and become what they are there.

    Examples:
        >>> clean("a\x00b"), clean("\x93quoted\x94"), clean("two\nlines")
        ('a\ufffdb', '\u201cquoted\u201d', 'two\nlines')
    """
    return _UNSAFE.sub(_replaced, text)


def clean_rows(rows: Sequence[Sequence[str]]) -> list[Sequence[str]]:
    """Return rows of cells, each cell clean."""
    # A search in the whole row first, because hardly any row holds such a character.
    return [tuple(map(clean, row)) if _UNSAFE.search("".join(row)) else row for row in rows]


def _replaced(found: re.Match[str]) -> str:
    code = ord(found[0])
    return bytes([code]).decode("cp1252", "replace") if 0x80 <= code < 0xA0 else _REPLACEMENT
