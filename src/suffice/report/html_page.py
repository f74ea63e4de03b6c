"""Self-contained HTML pages with light, dark and print styles, and their tables, which can be Markdown or CSV too."""

import csv
import io
import re
from base64 import b64encode
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from suffice.errors import MissingExtraError, SufficeError
from suffice.files import write_bytes_whole
from suffice.report.figures import Drawn

if TYPE_CHECKING:
    from jinja2 import Environment


class PageFigure(NamedTuple):
    """A figure as a page holds it.

    Attributes:
        name: Its id in the page.
        title: What it shows.
        caption: How to read it.
        alt: What one would see, in words.
        width: Of the picture, in pixels.
        height: Of the picture, in pixels.
        png: The picture in base64.
    """

    name: str
    title: str
    caption: str
    alt: str
    width: int
    height: int
    png: str


def page_figure(drawn: Drawn) -> PageFigure:
    """A figure with the picture from its file.

    Raises:
        SufficeError: Its file cannot be read.
    """
    try:
        content = drawn.png.read_bytes()
    except OSError as error:
        raise SufficeError(f"the figure {drawn.png} cannot be read: {error.strerror or error}") from None
    # A PNG begins with its size. With the size in the page, the text does not move while the picture is decoded.
    width, height = (int.from_bytes(content[at : at + 4]) for at in (16, 20))
    return PageFigure(drawn.name, drawn.title, drawn.caption, drawn.alt, width, height, b64encode(content).decode())


def require_jinja2(extra: str = "label") -> None:
    """Check that pages can be made.

    Args:
        extra: The extra of suffice to name in the error; it brings what else the command needs.

    Raises:
        MissingExtraError: Jinja2 is not installed.
    """
    try:
        import jinja2  # noqa: F401 - only whether it is there
    except ImportError:
        raise MissingExtraError("Jinja2", extra, "the report") from None


def rendered(template: str, *, package: str = "suffice.report", **values: Any) -> str:
    """A page from a template.

    Args:
        template: Name of the template in the folder ``templates`` of the package.
        package: The package; its templates can use those of ``suffice.report``.
        **values: What the template shows. Every text is escaped.

    Raises:
        MissingExtraError: Jinja2 is not installed.

    Examples:
        >>> page = rendered("page.html.jinja", title="Runs & rules", headings={"first": "<First>"})
        >>> "<h1>Runs &amp; rules</h1>" in page, '<li><a href="#first">&lt;First&gt;</a></li>' in page
        (True, True)
    """
    require_jinja2()
    return _environment(package).get_template(template).render(**values)


def write_page(path: Path, page: str) -> None:
    """Write a page, completely or not at all.

    Raises:
        SufficeError: It cannot be written.
    """
    # A name from a file system may hold a lone surrogate, which UTF-8 cannot encode.
    write_bytes_whole(path, page.encode("utf-8", "backslashreplace"))


@cache
def _environment(package: str) -> "Environment":
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=ChoiceLoader([PackageLoader(name) for name in dict.fromkeys((package, "suffice.report"))]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


#: Placeholder of an empty cell.
NOTHING: Final = "-"

_NUMBER: Final = r"-?(?:\d[\d.]*(?:e[+-]?\d+)?|inf|nan)"
_END: Final = rf"(?:{_NUMBER}|never|no fall)"
_NUMERIC: Final = re.compile(
    rf"{_END}(?: \({_END} to {_END}\)| \(\d+ of \d+ sets\)| of \d+)?(?:; \d+ undefined)?"
    rf"|[+]{_NUMBER}|{_NUMBER} to {_NUMBER}"
)
#: Texts that may occur in a column of numbers.
_SILENT: Final = frozenset({NOTHING, "undefined"})
#: A longer cell is broken into lines.
_LONG: Final = 40
#: A spreadsheet treats a cell that begins with one of these characters as a formula.
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
        """Kind of each column for the style sheet: ``number``, ``words`` (long texts), or empty."""
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
    """A text with all Markdown characters escaped."""
    return _MARKUP.sub(r"\\\1", " ".join(cell.split()))


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
