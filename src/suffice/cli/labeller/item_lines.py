"""An item as lines: a row as names and values, a text as a text, an image as a picture."""

from typing import Final

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from suffice.cli.labeller.paper import Viewport, wrapped
from suffice.cli.labeller.pictures import drawn
from suffice.cli.labeller.view import LabellerView
from suffice.cli.labeller.visible import visible

#: Longer lines are hard to read.
COMFORTABLE: Final = 76
# Nobody reads more of a cell, and breaking it into lines would take longer than a key may.
_LONGEST: Final = 20_000
_WIDEST_NAME: Final = 24
# So many lines about a text, such as its subject, come before it; more of them come after it.
_HEAD: Final = 4


def item_lines(view: LabellerView, viewport: Viewport) -> list[Text]:
    """All lines of the item of a view, also those that do not fit.

    Args:
        view: What is shown; it has an item.
        viewport: The area.
    """
    item = view.item
    assert item is not None
    main = view.settings.main
    others = [(name, value) for name, value in item.cells if name != main]
    lines: list[Text] = []
    if view.settings.shown == "text":
        text = dict(item.cells).get(main or "", "")
        lines += [Text(line, no_wrap=True) for line in wrapped(_cut(text, viewport), min(viewport.width, COMFORTABLE))]
        above = _cells(others, viewport)
        if 0 < len(above) <= _HEAD:
            return [*above, Text(), *lines]
    elif view.settings.shown == "image":
        # The picture takes the space that the cells below it leave, as long as it stays large enough to be seen.
        below = _cells(others, viewport)
        lines += _image(
            view, viewport.part(viewport.width, max(viewport.height - len(below) - 2, viewport.height * 2 // 3))
        )
    if lines and others:
        lines.append(Text())
    return lines + _cells(others, viewport)


def _cells(cells: list[tuple[str, str]], viewport: Viewport) -> list[Text]:
    """Names and values, side by side; where the area is narrow, values below their names."""
    names = [viewport.cut(name, min(_WIDEST_NAME, max(8, viewport.width // 3))) for name, _ in cells]
    wide = max(map(cell_len, names), default=0)
    lines: list[Text] = []
    for name, (_, value) in zip(names, cells, strict=True):
        shown = _cut(value, viewport)
        head, *rest = wrapped(shown, max(8, min(viewport.width - wide - 2, COMFORTABLE))) if shown.strip() else ("",)
        first = Text(no_wrap=True).append(set_cell_size(name, wide), "dim").append("  ")
        lines.append(first.append(head) if shown.strip() else first.append("-", "dim"))
        lines += [Text(" " * (wide + 2) + line, no_wrap=True) for line in rest]
    return lines


def _image(view: LabellerView, viewport: Viewport) -> list[Text]:
    item, picture = view.item, view.picture
    assert item is not None
    name = item.image or ""
    if picture is None or picture.problem:
        what = "the picture is being read" if picture is None else f"No picture: {picture.problem}"
        said = wrapped(visible(what, viewport.encoding), viewport.width)
        return [Text(viewport.cut(name, viewport.width), "dim"), Text(), *(Text(line, "yellow") for line in said)]
    plain = viewport.plain or not viewport.colours
    across, down = picture.size
    head = [Text(viewport.cut(f"{name}, {across} x {down} pixels", viewport.width), "dim"), Text()]
    lines = drawn(picture, viewport.width, max(4, viewport.height - len(head)), plain=plain)
    return head + lines


def _cut(value: str, viewport: Viewport) -> str:
    """A value as it is shown, and how much of it is not."""
    if len(value) <= _LONGEST:
        return visible(value, viewport.encoding)
    return f"{visible(value[:_LONGEST], viewport.encoding)}\n({len(value):,} characters; the rest is not shown)"
