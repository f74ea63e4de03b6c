"""A table of words and numbers, in the three forms that people take it away in."""

import csv
import io
import re
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
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
class Table:
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
            >>> print(Table("t", "Sizes", ("set", "rows"), (("skin", "245057"),)).markdown())
            **Sizes**
            <BLANKLINE>
            | set | rows |
            | --- | ---: |
            | skin | 245057 |
            <BLANKLINE>
        """
        rule = ("---:" if self._kind(at) == "number" else "---" for at in range(len(self.head)))
        lines = [f"**{plain(self.title)}**", "", _line(map(plain, self.head)), _line(rule)]
        lines += [_line(map(plain, row)) for row in self.rows]
        if self.note:
            lines += ["", plain(self.note)]
        return "\n".join(lines) + "\n"

    def csv(self) -> str:
        r"""The table as comma-separated values (RFC 4180), with no cell that a spreadsheet would run.

        Write it with ``newline=""``: its lines end in ``\r\n`` already.

        Examples:
            >>> Table("t", "", ("set", "r"), (("=1+1", "-0.5"),)).csv()
            "set,r\r\n'=1+1,-0.5\r\n"
        """
        text = io.StringIO()
        csv.writer(text).writerows([_harmless(cell) for cell in row] for row in (self.head, *self.rows))
        return text.getvalue()

    def html(self) -> str:
        """The table as HTML, in a box of its own that scrolls where the page is narrow."""
        sides = [f' class="{kind}"' if (kind := self._kind(at)) else "" for at in range(len(self.head))]
        head = "".join(map('<th scope="col"{}>{}</th>'.format, sides, map(escape, self.head)))
        body = "\n".join(
            f"<tr>{''.join(map('<td{}>{}</td>'.format, sides, map(escape, row)))}</tr>" for row in self.rows
        )
        note = f'\n<p class="note">{escape(self.note)}</p>' if self.note else ""
        return (
            # The box takes the focus, so that it can be scrolled by keys.
            f'<div class="box" role="region" tabindex="0" aria-label="{escape(self.title)}">\n'
            f"<table>\n<caption><span>{escape(self.title)}</span></caption>\n"
            f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>\n</div>{note}"
        )

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
