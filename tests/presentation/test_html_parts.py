"""Fragments of HTML for notebooks."""

from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st

from suffice.presentation.html_parts import card, curve


class Reader(HTMLParser):
    """Collects the elements of a fragment, and the text of its heading and cells."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: list[str] = []
        self.open: list[str] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len(attrs) <= 1
        self.elements.append(tag)
        self.open.append(tag)
        if tag in ("p", "th", "td"):
            self.texts.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("p", "th", "td"):
            self.texts[-1] += data


@given(st.text(), st.lists(st.tuples(st.text(), st.text()), max_size=3))
def test_text_stays_text(heading: str, rows: list[tuple[str, str]]) -> None:
    reader = Reader()
    reader.feed(card(heading, rows))
    reader.close()
    table = [] if not rows else ["table", *["tr", "th", "td"] * len(rows)]
    assert reader.elements == ["style", "div", "p", *table]
    assert reader.open == []
    told = [heading, *(text for row in rows for text in row)]
    assert reader.texts == told


def test_a_chart_needs_two_values() -> None:
    assert curve("error", []) == ""
    drawn = curve("a < b", [(10, 0.5), (20, 0.25)], [(10, 0.3), (20, 0.3)], 20)
    assert "a &lt; b" in drawn
    assert "a < b" not in drawn
    assert drawn in card("Stop.", [], tone="stop", chart=drawn)
