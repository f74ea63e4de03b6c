"""Markdown as HTML: what it may hold, and that nothing else gets through."""

import re
from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st

from suffice.presentation.html_parts import markdown_html

TAGS = {
    *("p", "h3", "h4", "h5", "h6", "ul", "ol", "li", "em", "strong", "code", "pre", "blockquote", "hr", "br", "a"),
    *("table", "thead", "tbody", "tr", "th", "td"),
}


class Tags(HTMLParser):
    """All tags of a page with their attributes."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def test_what_guidelines_need_is_rendered() -> None:
    text = "# A\n\n###### B\n\n1. one\n2. *two*\n\n- **three** `four`\n\n> five\n\n| a |\n|---|\n| b |\n\n```\nsix\n```"
    html = markdown_html(text)
    for part in ("<h3>A</h3>", "<h6>B</h6>", "<ol>", "<em>two</em>", "<strong>three</strong>", "<code>four</code>"):
        assert part in html
    assert {tag for tag, _ in Tags(html).found} <= TAGS
    link = Tags(markdown_html("[here](https://example.org/?a=1&b=2)")).found[1]
    assert link == (
        "a",
        {"href": "https://example.org/?a=1&b=2", "target": "_blank", "rel": "noopener noreferrer nofollow"},
    )


HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "[x](javascript:alert(1))",
    "[x](vbscript:alert(1))",
    "[x](data:text/html;base64,PHNjcmlwdD4=)",
    "[x](&#106;avascript:alert(1))",
    "![x](https://example.org/tracker.png)",
    "<javascript:alert(1)>",
    '[x](https://example.org "\\" onmouseover=\\"alert(1)")',
    "<div\nonclick=alert(1)>",
    "[x]: javascript:alert(1)\n\n[x]",
]


def assert_harmless(html: str) -> None:
    for tag, attributes in Tags(html).found:
        assert tag in TAGS
        assert set(attributes) <= {"href", "title", "target", "rel", "class", "style", "start"}
        assert re.fullmatch(r"(text-align:(left|right|center))?", attributes.get("style") or "")
        href = (attributes.get("href") or "").strip().lower()
        assert not re.match(r"(javascript|vbscript|data|file):", href)


def test_nothing_else_gets_through() -> None:
    for text in HOSTILE:
        assert_harmless(markdown_html(text))
    assert_harmless(markdown_html("\n\n".join(HOSTILE)))


@given(
    st.lists(st.sampled_from([*HOSTILE, "*", "`", "[", "]", "(", ")", "<", ">", "\n", "# ", "- ", '"', "a", "&#x3c;"]))
)
def test_no_mixture_does(parts: list[str]) -> None:
    assert_harmless(markdown_html("".join(parts)))
