"""How tests read what people will: a page of HTML, and the words in a figure."""

from collections.abc import Iterator
from html.parser import HTMLParser
from itertools import combinations
from typing import Any

VOID = {"meta", "img", "br", "hr", "link", "input"}


class Reader(HTMLParser):
    """Reads a page and complains where a tag is not closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.addresses: list[str] = []
        self.alts: list[str] = []
        self.text = ""
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.tags.append(tag)
        self.ids += [given["id"]] if "id" in given else []
        self.addresses += [given[name] for name in ("src", "href", "srcset", "data") if name in given]
        if tag == "img":
            self.alts.append(given["alt"])
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.text += data


def require_readable(figure: Any) -> None:
    """No words of a figure lie on others, and none are cut off."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas: Any = FigureCanvasAgg(figure)
    renderer = canvas.get_renderer()
    # Laid out as it would be drawn; the pixels themselves are not needed.
    figure.draw_without_rendering()
    boxes = [(text.get_text(), text.get_window_extent(renderer).padded(-1.0)) for text in words(figure)]
    clashes = [(one, other) for (one, here), (other, there) in combinations(boxes, 2) if here.overlaps(there)]
    assert len(boxes) > 10
    assert clashes == []
    width, height = figure.bbox.size
    for text, box in boxes:
        assert box.x0 >= 0, text
        assert box.y0 >= 0, text
        assert box.x1 <= width, text
        assert box.y1 <= height, text


def words(figure: Any) -> Iterator[Any]:
    """Everything that is written in a figure and can be seen."""
    shown = [axis for axis in figure.axes if axis.get_visible()]
    named = [*figure.texts, *(text for legend in figure.legends for text in legend.get_texts())]
    for axis in [*shown, *(inner for outer in shown for inner in outer.child_axes)]:
        named += [axis.xaxis.label, axis.yaxis.label, axis.title, axis._left_title, axis._right_title, *axis.texts]
        for side in (axis.xaxis, axis.yaxis):
            low, high = sorted(side.get_view_interval())
            for minor in (False, True):
                places = side.get_ticklocs(minor=minor)
                labels = side.get_ticklabels(minor=minor)
                named += [text for at, text in zip(places, labels, strict=False) if low <= at <= high]
    yield from (text for text in named if text.get_visible() and text.get_text())
