"""An area of a terminal: its size, what can be drawn on it, and text broken into lines for it."""

from dataclasses import dataclass
from functools import lru_cache
from io import StringIO
from typing import Final

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

from suffice.cli.labeller.visible import visible

_UNBROKEN: Final = "\ue0a0"


@dataclass(frozen=True)
class Viewport:
    """A rectangle of a terminal.

    Attributes:
        width: Columns.
        height: Lines.
        encoding: Which letters it has.
        colours: Whether it has colours.
    """

    width: int
    height: int
    encoding: str = "utf-8"
    colours: bool = True

    @staticmethod
    def of(console: Console) -> "Viewport":
        """The whole of a terminal as it is now."""
        return Viewport(console.width, console.height, console.encoding, console.color_system is not None)

    @property
    def plain(self) -> bool:
        """Whether there are no letters but the plainest."""
        return not self.encoding.lower().replace("-", "").startswith("utf")

    def part(self, width: int, height: int) -> "Viewport":
        """A smaller rectangle of the same terminal."""
        return Viewport(max(1, width), max(1, height), self.encoding, self.colours)

    def text(self, words: str, style: str = "") -> Text:
        """Words that may hold anything, made safe."""
        return Text(visible(words, self.encoding), style=style)

    def cut(self, words: str, width: int) -> str:
        """Words on one line, cut where they are too long for it."""
        line = " ".join(visible(words, self.encoding).split())
        dots = "..." if self.plain else "…"
        return line if cell_len(line) <= width else f"{set_cell_size(line, max(0, width - len(dots))).rstrip()}{dots}"


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
