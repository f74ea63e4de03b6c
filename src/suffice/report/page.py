"""A page to be read from top to bottom, with everything that it shows inside: nothing is fetched from elsewhere."""

from base64 import b64encode
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

from suffice.errors import SufficeError
from suffice.files import write_bytes_whole
from suffice.report.sheet import STYLE
from suffice.report.style import Drawn


class Section(NamedTuple):
    """A part of a page.

    Attributes:
        key: What links call it; a word without spaces, and of no other part.
        heading: Its heading, as text.
        html: What it holds.
    """

    key: str
    heading: str
    html: str


def write_page(path: Path, page: str) -> None:
    """Write a page, whole or not at all.

    Raises:
        SufficeError: It cannot be written.
    """
    # A name out of somebody's file system may hold what is no letter.
    write_bytes_whole(path, page.encode("utf-8", "backslashreplace"))


def page_of(title: str, sections: Sequence[Section]) -> str:
    """The page with a heading, links to its parts, and these.

    Examples:
        >>> page = page_of("Runs & rules", [Section("first", "First", "<p>A word.</p>")])
        >>> "<h1>Runs &amp; rules</h1>" in page, '<li><a href="#first">First</a></li>' in page
        (True, True)
    """
    links = "\n".join(f'<li><a href="#{each.key}">{escape(each.heading)}</a></li>' for each in sections)
    body = "\n".join(
        f'<section id="{each.key}" aria-labelledby="{each.key}-heading">\n'
        f'<h2 id="{each.key}-heading">{escape(each.heading)}</h2>\n{each.html}\n</section>'
        for each in sections
    )
    heading = escape(title)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<title>{heading}</title>
<style>{STYLE}</style>
</head>
<body>
<header>
<h1>{heading}</h1>
<nav aria-labelledby="contents"><h2 id="contents">On this page</h2>
<ol>
{links}
</ol></nav>
</header>
<main>
{body}
</main>
</body>
</html>
"""


def figure_html(drawn: Drawn) -> str:
    """A figure with its caption; the picture stands in the page itself.

    Raises:
        SufficeError: Its file cannot be read.
    """
    try:
        content = drawn.png.read_bytes()
    except OSError as error:
        raise SufficeError(f"the figure {drawn.png} cannot be read: {error.strerror or error}") from None
    # Its size stands in its first bytes, and keeps the page from jumping while it is read.
    width, height = (int.from_bytes(content[at : at + 4]) for at in (16, 20))
    end = "" if drawn.title.endswith("?") else "."
    return (
        f'<figure id="{escape(drawn.name)}">\n<div class="card" role="region" tabindex="0" '
        f'aria-label="{escape(drawn.title)}"><img alt="{escape(drawn.alt)}" width="{width}" height="{height}" '
        f'src="data:image/png;base64,{b64encode(content).decode()}"></div>\n'
        f"<figcaption><strong>{escape(drawn.title)}{end}</strong> {escape(drawn.caption)}</figcaption>\n</figure>"
    )


def left_out_html(left_out: Iterable[tuple[str, str]]) -> str:
    """The runs that are missing from a page, each with the reason."""
    lines = "\n".join(f"<li><code>{escape(run)}</code>: {escape(reason)}</li>" for run, reason in left_out)
    return f"<p>These runs are missing from everything above.</p>\n<ul>\n{lines}\n</ul>"


def pairs_html(pairs: Iterable[tuple[str, str]]) -> str:
    """Names with what is to be said of each.

    Examples:
        >>> print(pairs_html([("Runs", "1 < 2")]))
        <dl class="terms">
        <dt>Runs</dt><dd>1 &lt; 2</dd>
        </dl>
    """
    lines = "\n".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in pairs)
    return f'<dl class="terms">\n{lines}\n</dl>'
