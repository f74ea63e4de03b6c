"""The blocks of commands in README and pages."""

import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from typing import Final

ROOT: Final = Path(__file__).parents[1]
PAGES: Final = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
_FENCE: Final = re.compile(r"^( *)(`{3,})([^\n`]*)\n(.*?)^\1\2 *$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """What is between two fences.

    Attributes:
        language: What follows the first fence, such as ``bash`` or ``{toctree}``.
        text: The lines between, without their common indentation.
        line: The line of the first fence.
    """

    language: str
    text: str
    line: int

    def commands(self) -> list[str]:
        """Return the lines of the block that a shell reads as commands: joined where they continue, no comments."""
        joined = self.text.replace("\\\n", " ").splitlines()
        return [line.strip() for line in joined if line.strip() and not line.strip().startswith("#")]


def blocks(page: Path) -> list[Block]:
    """Return all blocks of a page in their order."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(found[3].strip(), dedent(found[4]), text.count("\n", 0, found.start()) + 1)
        for found in _FENCE.finditer(text)
    ]


def shell_blocks(page: Path) -> list[Block]:
    """Return the blocks of commands of a page."""
    return [block for block in blocks(page) if block.language == "bash"]


def commands_in_sentences(page: Path) -> list[list[str]]:
    """Return the arguments of commands ``suffice`` in the sentences of a page; some have no file or value."""
    text = _FENCE.sub("", page.read_text(encoding="utf-8"))
    found = (" ".join(each.split()) for each in re.findall(r"(?<!`)`(suffice [^`]+)`(?!`)", text))
    return [shlex.split(each)[1:] for each in found if "..." not in each]


def suffice_arguments(page: Path) -> list[list[str]]:
    """Return the arguments of all commands ``suffice`` of a page, without comments and what follows a pipe."""
    lines = [line for block in shell_blocks(page) for line in block.commands()]
    parts = [part.strip() for line in lines for part in re.split(r"\|\|?|&&|\$\(|\)", line)]
    return [shlex.split(part.partition(" 2> ")[0], comments=True)[1:] for part in parts if part.startswith("suffice ")]
