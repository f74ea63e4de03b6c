"""An item as lines: a row as names and values, a text as a text, an image as a picture."""

from typing import Final

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from suffice.cli.labeller.paper import Paper, wrapped
from suffice.cli.labeller.pictures import drawn
from suffice.cli.labeller.view import View
from suffice.cli.labeller.visible import visible

#: Longer lines are hard to read.
COMFORTABLE: Final = 76
# Nobody reads more of a cell, and breaking it into lines would take longer than a key may.
_LONGEST: Final = 20_000
_WIDEST_NAME: Final = 24
# So many lines about a text, such as its subject, come before it; more of them come after it.
_HEAD: Final = 4


def item_lines(view: View, paper: Paper) -> list[Text]:
    """All lines of the item of a view, also those for which there is no room.

    Args:
        view: What is shown; it has an item.
        paper: The room.
    """
    item = view.item
    assert item is not None
    main = view.settings.main
    others = [(name, value) for name, value in item.cells if name != main]
    lines: list[Text] = []
    if view.settings.shown == "text":
        text = dict(item.cells).get(main or "", "")
        lines += [Text(line, no_wrap=True) for line in wrapped(_cut(text, paper), min(paper.width, COMFORTABLE))]
        above = _cells(others, paper)
        if 0 < len(above) <= _HEAD:
            return [*above, Text(), *lines]
    elif view.settings.shown == "image":
        # The picture takes the room that the cells below it leave, as long as it stays large enough to be seen.
        below = _cells(others, paper)
        lines += _image(view, paper.part(paper.width, max(paper.height - len(below) - 2, paper.height * 2 // 3)))
    if lines and others:
        lines.append(Text())
    return lines + _cells(others, paper)


def _cells(cells: list[tuple[str, str]], paper: Paper) -> list[Text]:
    """Names and values, side by side; where there is little room, values below their names."""
    names = [paper.cut(name, min(_WIDEST_NAME, max(8, paper.width // 3))) for name, _ in cells]
    wide = max(map(cell_len, names), default=0)
    lines: list[Text] = []
    for name, (_, value) in zip(names, cells, strict=True):
        shown = _cut(value, paper)
        head, *rest = wrapped(shown, max(8, min(paper.width - wide - 2, COMFORTABLE))) if shown.strip() else ("",)
        first = Text(no_wrap=True).append(set_cell_size(name, wide), "dim").append("  ")
        lines.append(first.append(head) if shown.strip() else first.append("-", "dim"))
        lines += [Text(" " * (wide + 2) + line, no_wrap=True) for line in rest]
    return lines


def _image(view: View, paper: Paper) -> list[Text]:
    item, picture = view.item, view.picture
    assert item is not None
    name = item.image or ""
    if picture is None or picture.problem:
        what = "the picture is being read" if picture is None else f"No picture: {picture.problem}"
        said = wrapped(visible(what, paper.encoding), paper.width)
        return [Text(paper.cut(name, paper.width), "dim"), Text(), *(Text(line, "yellow") for line in said)]
    plain = paper.plain or not paper.colours
    across, down = picture.size
    head = [Text(paper.cut(f"{name}, {across} x {down} pixels", paper.width), "dim"), Text()]
    lines = drawn(picture, paper.width, max(4, paper.height - len(head)), plain=plain)
    return head + lines


def _cut(value: str, paper: Paper) -> str:
    """A value as it is shown, and how much of it is not."""
    if len(value) <= _LONGEST:
        return visible(value, paper.encoding)
    return f"{visible(value[:_LONGEST], paper.encoding)}\n({len(value):,} characters; the rest is not shown)"
