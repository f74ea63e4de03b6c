"""Self-contained HTML pages with light, dark and print styles."""

from base64 import b64encode
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from suffice.errors import MissingExtraError, SufficeError
from suffice.files import write_bytes_whole
from suffice.report.figure_style import Drawn

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
    """Write a page, whole or not at all.

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
