"""The whole screen of the terminal labeller, drawn from what is to be shown."""

from typing import Final, NamedTuple

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.layout import Layout
from rich.panel import Panel
from rich.text import Text

from suffice.cli.labeller.answers import command_keys, direct_keys
from suffice.cli.labeller.footer import footer, typed_classes
from suffice.cli.labeller.item_lines import item_lines
from suffice.cli.labeller.paper import Viewport, wrapped
from suffice.cli.labeller.progress_lines import can_stop, first_lines, progress_lines
from suffice.cli.labeller.view import LabellerView, Mode, shown_label

# From this width on, the item and the progress stand side by side.
_WIDE: Final = 72
# An item with fewer lines, its frame included, cannot be seen.
_LEAST: Final = 4
_STOP: Final = "You can stop now"


class ScreenRegions(NamedTuple):
    """How a screen is divided.

    Attributes:
        item: For the item, its frame included.
        progress: For the progress likewise, or None where it does not fit.
        beside: Whether the two stand side by side.
        footer: The lines at the bottom.
    """

    item: Viewport
    progress: Viewport | None
    beside: bool
    footer: list[Text]


def screen_regions(view: LabellerView, viewport: Viewport) -> ScreenRegions:
    """Divide a screen: side by side where it is wide enough, else one above the other."""
    below = footer(view, viewport.part(viewport.width, max(3, min(viewport.height // 3, 8))))
    height = max(1, viewport.height - 1 - len(below))
    if viewport.width >= _WIDE:
        right = max(35, min(52, viewport.width * 2 // 5))
        return ScreenRegions(viewport.part(viewport.width - right, height), viewport.part(right, height), True, below)
    # All of the first sentence, or nothing; and no empty lines below what is said.
    most = max(height // 3, 2 + first_lines(view, viewport.width - 4))
    under = 2 + len(progress_lines(view, viewport.part(viewport.width - 4, most - 2)))
    if height - under < _LEAST:
        return ScreenRegions(viewport.part(viewport.width, height), None, False, below)
    return ScreenRegions(
        viewport.part(viewport.width, height - under), viewport.part(viewport.width, under), False, below
    )


def rendered_screen(view: LabellerView, viewport: Viewport) -> RenderableType:
    """The screen.

    Args:
        view: What is to be shown.
        viewport: The area, which is filled.
    """
    regions = screen_regions(view, viewport)
    screen, body = Layout(), Layout(name="body")
    screen.split_column(
        Layout(_header(view, viewport), size=1), body, Layout(Group(*regions.footer), size=len(regions.footer))
    )
    if regions.progress is None:
        body.update(_item(view, regions.item))
    elif regions.beside:
        right = Layout(_progress(view, regions.progress), size=regions.progress.width)
        body.split_row(Layout(_item(view, regions.item)), right)
    else:
        under = Layout(_progress(view, regions.progress), size=regions.progress.height)
        body.split_column(Layout(_item(view, regions.item)), under)
    return screen


def last_top(view: LabellerView, viewport: Viewport) -> int:
    """The line of the item that comes first on the screen when its end is shown."""
    if view.item is None or view.mode in (Mode.help, Mode.pick):
        return 0
    inner = _inside(screen_regions(view, viewport).item)
    return max(0, len(item_lines(view, inner)) - inner.height)


def _inside(viewport: Viewport) -> Viewport:
    """What a frame leaves."""
    return viewport.part(viewport.width - 4, viewport.height - 2)


def _header(view: LabellerView, viewport: Viewport) -> Text:
    counts = view.counts
    skipped = f", {counts.skipped:,} skipped" if counts.skipped else ""
    done = f"{counts.labelled:,} of {counts.size:,}"
    name = view.settings.name
    right = viewport.cut(
        f"{view.person} · {done} labelled{skipped}" if viewport.width >= 60 else done, viewport.width - 2
    )
    if can_stop(view.learning_status) and viewport.width < _WIDE:
        # Where the screen is narrow, this may be all that is said of it.
        name, right = _STOP, right if len(_STOP) + len(right) + 4 <= viewport.width else ""
    left = viewport.cut(name, max(0, viewport.width - cell_len(right) - 4))
    gap = " " * max(1, viewport.width - cell_len(left) - cell_len(right) - 2)
    line = Text(style="reverse", no_wrap=True).append(" ").append(left, "bold").append(gap)
    return line.append(right).append(" ")


def _item(view: LabellerView, viewport: Viewport) -> Panel:
    inner = _inside(viewport)
    if view.mode is Mode.help:
        return _panel("keys", _help(view, inner), viewport)
    if view.mode is Mode.pick:
        return _panel("which label is to be corrected?", _given(view, inner), viewport)
    if view.item is None:
        words = "Nothing is left to label for you: every item is labelled, skipped, or with somebody else."
        return _panel("done", [Text(line) for line in wrapped(words, inner.width)], viewport)
    lines = item_lines(view, inner)
    top = max(0, min(view.top, len(lines) - inner.height))
    shown = lines[top : top + inner.height]
    where = f"lines {top + 1} to {top + len(shown)} of {len(lines)}" if len(lines) > inner.height else ""
    why = view.why if view.mode is Mode.label else ""
    both = "; ".join(filter(None, (where, why)))
    title = f"correct {view.item.id}" if view.mode is Mode.correct else view.item.id
    # Where one has to read on matters more than why it is this one.
    return _panel(title, shown, viewport, subtitle=both if len(both) <= inner.width - 2 or not where else where)


def _progress(view: LabellerView, viewport: Viewport) -> Panel:
    inner = _inside(viewport)
    stop = can_stop(view.learning_status)
    lines = progress_lines(view, inner)
    title = "it is enough" if stop else "is it enough?"
    return _panel(
        title,
        lines,
        viewport,
        style="bold green" if stop else "dim",
        subtitle="q leaves, a label goes on" if stop else "",
    )


def _panel(title: str, lines: list[Text], viewport: Viewport, *, style: str = "dim", subtitle: str = "") -> Panel:
    width = max(1, viewport.width - 6)
    return Panel(
        Group(*lines[: max(0, viewport.height - 2)]),
        title=Text(viewport.cut(title, width), "bold green" if style == "bold green" else "not dim bold"),
        title_align="left",
        subtitle=Text(viewport.cut(subtitle, width), "dim") if subtitle else None,
        subtitle_align="left",
        border_style=style,
        width=viewport.width,
        height=viewport.height,
    )


def _given(view: LabellerView, viewport: Viewport) -> list[Text]:
    """The newest labels, each with the key that picks it."""
    lines = []
    for k, given in enumerate(view.given):
        line = (
            Text(no_wrap=True)
            .append(f" {(k + 1) % 10} ", "reverse")
            .append(f" {viewport.cut(shown_label(given.label), 20)}", "bold")
        )
        about = f"{given.id}: {given.summary}" + (f" ({given.person})" if given.person != view.person else "")
        line.append("  ").append(viewport.cut(about, max(0, viewport.width - line.cell_len - 2)), "dim")
        lines.append(line)
    return lines


def _help(view: LabellerView, viewport: Viewport) -> list[Text]:
    keys = command_keys(typed_classes(view))
    if view.settings.task == "regression":
        answer = ("0-9", "type the number, then Enter; - and 1e3 are possible")
    elif direct_keys(view.settings.classes):
        answer = ("1-9", "label the item with the class of that key")
    else:
        answer = ("a-z", "type a class's number or the beginning of its name, then Enter")
    rows = [
        answer,
        (keys["skip"], "never ask for this item again, and learn nothing of it"),
        (keys["undo"], "take back your newest label, skip or correction (also Ctrl-Z)"),
        (keys["correct"], "change one of the last ten labels"),
        (keys["quit"], "leave; every label is on the disk already (also Ctrl-C and Ctrl-D)"),
        ("up down", "move in a long item (also j and k, Page Up and Page Down)"),
    ]
    lines = []
    for key, meaning in rows:
        head, *rest = wrapped(meaning, max(10, viewport.width - 9))
        lines.append(Text(no_wrap=True).append(f"{key:<9}", "bold").append(head))
        lines += [Text(f"{'':9}{line}") for line in rest]
    return lines
