"""The screen of the terminal labeller, drawn from a view."""

import math
from typing import Final, NamedTuple

from rich.cells import cell_len, set_cell_size
from rich.console import Group, RenderableType
from rich.layout import Layout
from rich.panel import Panel
from rich.text import Text

from suffice.cli.labeller.labeller import command_keys, direct_keys, possible_classes
from suffice.cli.labeller.pictures import drawn
from suffice.cli.labeller.view import TONE_STYLES, LabellerView, Mode, shown_label
from suffice.cli.labeller.viewport import Viewport, visible, wrapped
from suffice.cli.rule_values import RuleValues
from suffice.presentation.messages import RATIO_RULE, DecisionWords
from suffice.presentation.text_chart import chart, number_chart
from suffice.project.learning_status import LearningStatus
from suffice.project.status_summary import decision_in_words, learning_sentences

_LONGEST_CLASS: Final = 24
_GAP: Final = 3
_MOST_LINES: Final = 3


def footer(view: LabellerView, viewport: Viewport) -> list[Text]:
    """The classes and their keys, the line where something is typed, and the commands.

    Args:
        view: What is shown.
        viewport: The area; the classes take what the other two lines leave, as far as they need it.
    """
    answering = view.mode in (Mode.label, Mode.correct) and view.item is not None
    prompt = _prompt(view, viewport, answering=answering)
    chips = _fitted(_chips(view, viewport), viewport, max(1, viewport.height - 1 - len(prompt))) if answering else []
    return [*chips, *prompt, _commands(view, viewport)]


def typed_classes(view: LabellerView) -> tuple[str, ...]:
    """The classes of a project whose classes are typed; none where they have keys, or labels are numbers."""
    return () if direct_keys(view.settings.classes) else view.settings.classes


def _chips(view: LabellerView, viewport: Viewport) -> list[Text]:
    """One piece for each class: its key or number, its name, and how often it was given."""
    classes = view.settings.classes
    keys = direct_keys(classes)
    counts = view.counts.classes or (0,) * len(classes)
    possible = set(possible_classes(view.typed, classes)) if view.typed and not view.typed.isdigit() else set(classes)
    chips: list[tuple[bool, Text]] = []
    for k, (name, count) in enumerate(zip(classes, counts, strict=True)):
        style = "" if name in possible else "dim"
        chip = Text(no_wrap=True).append(f" {keys[k] if keys else k + 1} ", "reverse" if not style else "dim")
        # A class that is its own key need not be said twice.
        if not keys or keys[k] != name:
            chip.append(f" {viewport.cut(name, _LONGEST_CLASS)}", style)
        chips.append((name not in possible, chip.append(f" {count:,}", "dim")))
    # Those that may be meant come first, for there may not be space for all.
    return [chip for _, chip in sorted(chips, key=lambda each: each[0])]


def _fitted(chips: list[Text], viewport: Viewport, most: int) -> list[Text]:
    """Pieces side by side on as many lines as they need, or say how many do not fit."""
    lines: list[Text] = []
    for at, chip in enumerate(chips):
        if lines and lines[-1].cell_len + _GAP + chip.cell_len <= viewport.width:
            lines[-1] = Text.assemble(lines[-1], " " * _GAP, chip, no_wrap=True)
        elif len(lines) < most:
            lines.append(Text.assemble(" ", chip, no_wrap=True))
        else:
            more = f" and {len(chips) - at} more"
            lines[-1].truncate(max(0, viewport.width - len(more)))
            lines[-1].append(more, "dim")
            break
    return lines


def _prompt(view: LabellerView, viewport: Viewport, *, answering: bool) -> list[Text]:
    """What is being typed, with the answer to it beside; or below, where it is long."""
    line = Text(no_wrap=True)
    numbers = view.settings.task == "regression"
    if answering and (numbers or typed_classes(view)):
        name = viewport.cut(view.settings.target or "label", max(8, viewport.width // 3))
        line.append(f" {name}: ", "bold").append(viewport.text(view.typed)).append(" ", "reverse")
        if not view.typed and not view.message.text:
            hint = "a number, then Enter" if numbers else "number or beginning, then Enter"
            line.append(viewport.cut(hint, max(0, viewport.width - line.cell_len - 1)), "dim")
    style = "bold red" if view.message.bad else "dim"
    said = Text(viewport.cut(view.message.text, len(view.message.text)), style)
    if line.cell_len + 1 + said.cell_len <= viewport.width:
        return [line.append(" ").append(said)]
    below = [Text(f" {each}", style, no_wrap=True) for each in wrapped(said.plain, viewport.width - 2)[:_MOST_LINES]]
    return [line, *below] if line else below


def _commands(view: LabellerView, viewport: Viewport) -> Text:
    if view.mode is Mode.help:
        return Text(" any key goes back", "dim")
    keys = command_keys(typed_classes(view))
    if view.mode is Mode.label:
        names = list(keys) if view.item is not None else ["undo", "correct", "help", "quit"]
    else:
        names = []
    line = Text(no_wrap=True)
    if view.mode is not Mode.label:
        line.append(" Esc", "bold").append(" back", "dim")
    needed = sum(cell_len(f" {keys[name]} {name}") for name in names)
    gap = " " if needed + len(names) <= viewport.width else ""
    for name in names:
        line.append(f" {keys[name]}", "bold").append(f" {name}{gap}", "dim")
    return line


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


# A chart of fewer lines shows nothing, and of more nothing more.
_LOWEST: Final = 5
_HIGHEST: Final = 18
# The axis takes these, and the caption and the numbers below it take two lines and an empty one.
_AXIS: Final = 9
_AROUND: Final = 3
_COLOURS: Final = {"•": "cyan", "*": "cyan", "╌": "yellow", "-": "yellow"}


def decision_words_of(view: LabellerView) -> DecisionWords:
    """The decision in words, as it is shown everywhere."""
    counts = view.counts
    size = counts.size - counts.skipped
    return decision_in_words(view.learning_status, view.settings, counts.labelled, size=size, checks=counts.checks)


def _is_stop(view: LabellerView) -> bool:
    decision = view.learning_status.decision
    return decision is not None and decision.stop


def progress_lines(view: LabellerView, viewport: Viewport) -> list[Text]:
    """As much as fits: the sentences that matter most, and the curve.

    Args:
        view: What is shown.
        viewport: The area.
    """
    said = [wrapped(sentence, viewport.width) for sentence in _said(view, viewport)]
    least = _LOWEST + _AROUND if has_curve(view.learning_status) and viewport.width >= _AXIS + 12 else 0
    # The first two sentences matter more than the curve; the others less.
    while len(said) > 1 and _height(said) + (least if len(said) > 2 else 0) > viewport.height:
        said.pop()
    height = viewport.height - _height(said) - _AROUND
    curve = _curve(view, viewport.part(viewport.width, min(height, _HIGHEST))) if least and height >= _LOWEST else []
    style = TONE_STYLES[decision_words_of(view).tone]
    lines = [Text(line, style) for line in said[0]] if said else []
    for paragraph in said[1:]:
        lines += [Text(), *map(Text, paragraph)]
    return lines + curve


def first_lines(view: LabellerView, width: int) -> int:
    """How many lines of some width the first sentence takes."""
    return len(wrapped(next(iter(_said(view, Viewport(width, 1))), ""), width))


def has_curve(learning_status: LearningStatus) -> bool:
    """Whether there is something to draw: the error, or else what the rule compares."""
    return len(learning_status.errors) > 1 or any(math.isfinite(point.value) for point in learning_status.curve)


def _said(view: LabellerView, viewport: Viewport) -> list[str]:
    counts = view.counts
    size = counts.size - counts.skipped
    said = learning_sentences(view.learning_status, view.settings, counts.labelled, size=size, checks=counts.checks)
    # Wrapped, a number should not lose its unit.
    return [visible(sentence, viewport.encoding).replace(" %", "\u00a0%") for sentence in said]


def _height(said: list[tuple[str, ...]]) -> int:
    return sum(map(len, said)) + max(0, len(said) - 1)


def _curve(view: LabellerView, viewport: Viewport) -> list[Text]:
    """The estimated error over the labels, or else what the rule compares, with a caption and the numbers of labels."""
    if len(view.learning_status.errors) > 1:
        return _error_curve(view, viewport)
    points = [point for point in view.learning_status.curve if math.isfinite(point.value)]
    rule = type(view.settings.criterion()).__name__
    values = [point.value for point in points]
    thresholds = [math.nan if point.threshold is None else point.threshold for point in points]
    found = RuleValues(rule, values, thresholds)
    width, height = max(8, viewport.width - _AXIS), max(3, viewport.height)
    if rule == RATIO_RULE and found.threshold is not None:
        drawing = chart(values, found.threshold, width=width, height=height, plain=viewport.plain)
    else:
        drawing = found.chart(width=width, height=height, plain=viewport.plain)
    first, last = f"{points[0].n_labelled:,}", f"{points[-1].n_labelled:,} labels"
    axis = f"{'':>8}{first}{last:>{max(1, width - len(first))}}" if len(points) > 1 else f"{'':>8}{last}"
    return [
        Text(),
        Text(
            found.caption if len(found.caption) <= viewport.width else viewport.cut(found.name, viewport.width), "dim"
        ),
        *map(_coloured, drawing),
        Text(axis, "dim", no_wrap=True),
    ]


def _error_curve(view: LabellerView, viewport: Viewport) -> list[Text]:
    errors = [each for each in view.learning_status.errors if math.isfinite(each.value)]
    share = bool(view.settings.classes)
    values = [100.0 * each.value if share else each.value for each in errors]
    width, height = max(8, viewport.width - _AXIS), max(3, viewport.height)
    none = [math.nan] * len(values)
    drawing = number_chart([*values], none, log=False, width=width, height=height, plain=viewport.plain)
    first, last = f"{errors[0].n_labelled:,}", f"{errors[-1].n_labelled:,} labels"
    axis = f"{'':>8}{first}{last:>{max(1, width - len(first))}}"
    caption = "estimated error, % wrong" if share else "estimated error"
    return [
        Text(),
        Text(viewport.cut(caption, viewport.width), "dim"),
        *map(_coloured, drawing),
        Text(axis, "dim", no_wrap=True),
    ]


def _coloured(line: str) -> Text:
    """A line of the chart, the curve apart from the threshold and the axis."""
    axis = max(line.find("┤"), line.find("|")) + 1
    return Text.assemble((line[:axis], "dim"), *((letter, _COLOURS.get(letter, "")) for letter in line[axis:]))


# From this width on, the item and the progress stand side by side.
_WIDE: Final = 72
# An item with fewer lines, its frame included, cannot be seen.
_LEAST: Final = 4


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
    if _is_stop(view) and viewport.width < _WIDE:
        # Where the screen is narrow, this may be all that is said of it.
        words = decision_words_of(view)
        error = words.error_figure.replace("\u00a0", " ")
        what = "found" if view.settings.positive else "wrong" if view.settings.classes else "off"
        name = f"{words.headline} ({error} {what})" if error else words.headline
        right = right if len(name) + len(right) + 4 <= viewport.width else ""
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
    stop, words = _is_stop(view), decision_words_of(view)
    lines = progress_lines(view, inner)
    style = TONE_STYLES[words.tone]
    return _panel(
        words.headline,
        lines,
        viewport,
        style=style if style != "bold" else "dim",
        subtitle="q leaves, a label goes on" if stop else "",
    )


def _panel(title: str, lines: list[Text], viewport: Viewport, *, style: str = "dim", subtitle: str = "") -> Panel:
    width = max(1, viewport.width - 6)
    return Panel(
        Group(*lines[: max(0, viewport.height - 2)]),
        title=Text(viewport.cut(title, width), "not dim bold" if style == "dim" else style),
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
