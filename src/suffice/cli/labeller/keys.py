"""Keys by name, from what a terminal sends."""

import codecs
from typing import Final

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
