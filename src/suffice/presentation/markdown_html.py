"""Markdown as HTML that is safe to show: no raw HTML, no scripts, no images, links that open elsewhere."""

from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

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
