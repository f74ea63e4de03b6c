"""Fragments of HTML from plain values: a card for notebooks, a curve, and Markdown that is safe to show."""

from collections.abc import Sequence
from functools import cache
from html import escape
from typing import TYPE_CHECKING, Any, Final

from suffice.presentation.charts import Chart, svg

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

# Colours that are readable on light and on dark pages, with no assumption on the page.
_STYLE: Final = """
.suffice-card { border: 1px solid rgba(128,128,128,.45); border-left-width: 5px; border-radius: 6px;
  padding: .6em .9em; max-width: 52em; color: inherit; background: transparent; }
.suffice-card.stop { border-left-color: #2e9e5b; }
.suffice-card.go-on { border-left-color: #3b82c4; }
.suffice-card.undecided { border-left-color: #8a8a8a; }
.suffice-card p { margin: 0 0 .5em 0; font-weight: 600; }
.suffice-card table { border-collapse: collapse; background: transparent; }
.suffice-card td, .suffice-card th { text-align: left; padding: .1em 1em .1em 0; border: 0; background: transparent;
  vertical-align: top; color: inherit; }
.suffice-card th { font-weight: normal; opacity: .75; white-space: nowrap; }
.suffice-card svg { display: block; max-width: 100%; height: auto; margin-top: .5em; color: inherit; }
.suffice-card svg text { font: 13px system-ui, sans-serif; fill: currentColor; stroke: none; }
.suffice-card svg path { fill: none; stroke: currentColor; stroke-opacity: .22; stroke-width: 1; }
.suffice-card svg .axis { stroke-opacity: .6; }
.suffice-card svg .curve { stroke: #3b82c4; stroke-opacity: 1; stroke-width: 2.2; }
.suffice-card svg .now { fill: #3b82c4; }
.suffice-card svg .limit { stroke: #cf7a1c; stroke-opacity: 1; stroke-width: 1.5; stroke-dasharray: 6 4; }
.suffice-card svg .limit-name { fill: #cf7a1c; }
.suffice-card svg .stop { stroke: #2e9e5b; stroke-opacity: 1; stroke-width: 1.5; }
.suffice-card svg .stop-name { fill: #2e9e5b; }
"""


def card(heading: str, rows: Sequence[tuple[str, str]], *, tone: str = "", chart: str = "") -> str:
    """A heading with a table of names and values. All text is escaped.

    Args:
        heading: The heading, a sentence.
        rows: Names and values.
        tone: ``"stop"``, ``"go on"``, ``"undecided"`` or nothing: the colour of the left border.
        chart: A result of :func:`curve`.

    Examples:
        >>> fragment = card("Stop <now>.", [("model", "<b>")], tone="stop")
        >>> "Stop &lt;now&gt;." in fragment, "<td>&lt;b&gt;</td>" in fragment, "<b>" in fragment
        (True, True, False)
    """
    table = "".join(f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in rows)
    kind = escape(f"suffice-card {tone.replace(' ', '-')}".strip())
    body = f"<table>{table}</table>" if rows else ""
    return f'<style>{_STYLE}</style><div class="{kind}"><p>{escape(heading)}</p>{body}{chart}</div>'


def paragraphs(sentences: Sequence[str], *, first_bold: bool = False) -> list[str]:
    """Each sentence as a paragraph. All text is escaped.

    Examples:
        >>> paragraphs(["Stop <now>.", "Or go on."], first_bold=True)
        ['<p><b>Stop &lt;now&gt;.</b></p>', '<p>Or go on.</p>']
    """
    shown = [escape(sentence, quote=False) for sentence in sentences]
    return [f"<p><b>{each}</b></p>" if first_bold and not k else f"<p>{each}</p>" for k, each in enumerate(shown)]


def curve(
    name: str,
    line: Sequence[tuple[float, float]],
    limit: Sequence[tuple[float, float]] = (),
    stop: int | None = None,
) -> str:
    """A chart of values against the number of labels; empty if there are fewer than two values.

    Args:
        name: Name of the values.
        line: Labels and values.
        limit: Labels, and the limit that the value is compared with there.
        stop: Labels at the first stop, or None.

    Examples:
        >>> curve("error", [(10, 0.5)]), curve("error", [(10, 0.5), (20, 0.25)]).startswith("<svg")
        ('', True)
    """
    if len(line) < 2:
        return ""
    return svg(Chart(f"{name} against the number of labels", name, line, limit=limit, stop=stop), 560, 230)


# Headings of a page come first.
_LEVELS_DOWN, _DEEPEST = 2, 6


def markdown_html(text: str) -> str:
    r"""Return Markdown as HTML.

    Headings, lists, emphasis, code, quotes, tables and links are rendered. HTML in the text is shown as text. Links
    open in a new tab, which cannot reach the page; links to scripts are shown as text.

    Args:
        text: CommonMark, with tables.

    Examples:
        >>> print(markdown_html("# Spam\n\nA mail that *nobody* asked for <script>"), end="")
        <h3>Spam</h3>
        <p>A mail that <em>nobody</em> asked for &lt;script&gt;</p>
        >>> print(markdown_html("[no](javascript:alert(1))"), end="")
        <p>[no](javascript:alert(1))</p>
    """
    parser = _parser()
    tokens = parser.parse(text)
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(int(token.tag[1:]) + _LEVELS_DOWN, _DEEPEST)}"
        for child in token.children or ():
            if child.type == "link_open":
                child.attrSet("target", "_blank")
                child.attrSet("rel", "noopener noreferrer nofollow")
    html: Any = parser.renderer.render(tokens, parser.options, {})
    return str(html)


@cache
def _parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": False}).enable("table").disable(["image", "html_block", "html_inline"])
