"""A table of words and numbers as Markdown, HTML or CSV."""

import csv
import io
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

#: What stands where there is nothing to say.
NOTHING: Final = "-"

_NUMBER: Final = r"-?(?:\d[\d.]*(?:e[+-]?\d+)?|inf|nan)"
_END: Final = rf"(?:{_NUMBER}|never|no fall)"
_NUMERIC: Final = re.compile(
    rf"{_END}(?: \({_END} to {_END}\)| \(\d+ of \d+ sets\)| of \d+)?(?:; \d+ undefined)?"
    rf"|[+]{_NUMBER}|{_NUMBER} to {_NUMBER}"
)
#: What may stand in a column of numbers and is none.
_SILENT: Final = frozenset({NOTHING, "undefined"})
#: A longer cell is broken into lines.
_LONG: Final = 40
#: A spreadsheet takes a cell that begins with one of these for a formula.
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
_MARKUP: Final = re.compile(r"([\\`*_\[\]<>|])")


@dataclass(frozen=True)
class ReportTable:
    """A table.

    Attributes:
        name: Of its file, without an ending.
        title: What it shows.
        head: Names of the columns.
        rows: Cells, row by row, as they are to be read.
        note: What one has to know to read it.
    """

    name: str
    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""

    def markdown(self) -> str:
        """The table as Markdown, with its title above and its note below.

        Examples:
            >>> print(ReportTable("t", "Sizes", ("set", "rows"), (("skin", "245057"),)).markdown())
            **Sizes**
            <BLANKLINE>
            | set | rows |
            | --- | ---: |
            | skin | 245057 |
            <BLANKLINE>
        """
        rule = ("---:" if kind == "number" else "---" for kind in self.column_kinds())
        lines = [f"**{plain(self.title)}**", "", _line(map(plain, self.head)), _line(rule)]
        lines += [_line(map(plain, row)) for row in self.rows]
        if self.note:
            lines += ["", plain(self.note)]
        return "\n".join(lines) + "\n"

    def csv(self) -> str:
        r"""The table as comma-separated values (RFC 4180), with no cell that a spreadsheet would run.

        Write it with ``newline=""``: its lines end in ``\r\n`` already.

        Examples:
            >>> ReportTable("t", "", ("set", "r"), (("=1+1", "-0.5"),)).csv()
            "set,r\r\n'=1+1,-0.5\r\n"
        """
        text = io.StringIO()
        csv.writer(text).writerows([_harmless(cell) for cell in row] for row in (self.head, *self.rows))
        return text.getvalue()

    def column_kinds(self) -> list[str]:
        """How each column is set, for the style sheet: ``number``, ``words`` (long texts), or empty."""
        return [self._kind(at) for at in range(len(self.head))]

    def _kind(self, at: int) -> str:
        """Whether a column holds a ``number`` a line and nothing else that says something, or many ``words``."""
        cells = {row[at] for row in self.rows} - {""}
        if cells and all(map(_NUMERIC.fullmatch, cells - _SILENT)):
            return "number"
        return "words" if max(map(len, cells), default=0) > _LONG else ""


def _harmless(cell: str) -> str:
    return f"'{cell}" if cell.startswith(_FORMULA) and cell != NOTHING and not _NUMERIC.fullmatch(cell) else cell


def plain(cell: str) -> str:
    """A text in which Markdown finds nothing to take for its own."""
    return _MARKUP.sub(r"\\\1", " ".join(cell.split()))


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
