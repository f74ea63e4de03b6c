"""The widgets of the full-screen labeller: the header, the item, the progress and the classes."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from rich.cells import cell_len
from rich.text import Text
from textual.geometry import Size
from textual.reactive import reactive
from textual.widget import Widget

from suffice.cli.labeller.labeller import TONE_STYLES, Counts, direct_keys, possible_classes
from suffice.cli.labeller.pictures import Picture, drawn
from suffice.cli.labeller.visible_text import one_line, visible, wrapped
from suffice.cli.rule_options import RuleValues
from suffice.presentation.charts import chart, number_chart
from suffice.presentation.messages import RATIO_RULE, DecisionWords
from suffice.project.items import Item
from suffice.project.learning_status import LearningStatus
from suffice.project.settings import Settings
from suffice.project.status_summary import decision_in_words, learning_sentences

#: The lines of something, for the area that there is; they may be more than fit.
Content = Callable[[Size], list[Text]]
#: From this width on, the progress is beside the item.
WIDE: Final = 72


@dataclass(frozen=True)
class Standing:
    """Progress of a project, and the decision about it.

    Attributes:
        settings: The settings of the project.
        person: Who labels.
        counts: How many items are labelled.
        learning_status: The decision and the estimates of the model.
        plain: Whether the terminal has no characters but those of ASCII.
    """

    settings: Settings
    person: str
    counts: Counts
    learning_status: LearningStatus
    plain: bool = False

    @property
    def stop(self) -> bool:
        """Whether the decision is to stop."""
        decision = self.learning_status.decision
        return decision is not None and decision.stop

    def words(self) -> DecisionWords:
        """The decision in words, as all other displays show it."""
        return decision_in_words(*self._subject(), size=self._size(), checks=self.counts.checks)

    def sentences(self) -> list[str]:
        """The decision in sentences, the most important first; a number and its unit stay on one line."""
        said = learning_sentences(*self._subject(), size=self._size(), checks=self.counts.checks)
        return [visible(sentence).replace(" %", "\u00a0%") for sentence in said]

    def _subject(self) -> tuple[LearningStatus, Settings, int]:
        return self.learning_status, self.settings, self.counts.labelled

    def _size(self) -> int:
        return self.counts.size - self.counts.skipped


class Header(Widget):
    """One line: the name of the project, the person and the number of labels; the decision where there is no panel."""

    standing: reactive[Standing | None] = reactive(None)

    def render(self) -> Text:
        """The line, in the width that there is."""
        return Text() if self.standing is None else header_line(self.standing, self.size.width)


def header_line(standing: Standing, width: int) -> Text:
    """The line of the header.

    Args:
        standing: The state of the project.
        width: Columns.
    """
    counts = standing.counts
    name, right = one_line(standing.settings.name), f"{counts.labelled:,} of {counts.size:,}"
    if width >= 60:
        skipped = f", {counts.skipped:,} skipped" if counts.skipped else ""
        right = f"{one_line(standing.person)} · {right} labelled{skipped}"
    if standing.stop and width < WIDE:
        # Where the screen is small, nothing else says it.
        words = standing.words()
        error = words.error_figure.replace("\u00a0", " ")
        what = "found" if standing.settings.positive else "wrong" if standing.settings.classes else "off"
        name = f"{words.headline} ({error} {what})" if error else words.headline
        right = right if cell_len(name) + cell_len(right) + 4 <= width else ""
    left = Text(" ").append_text(cut(name, max(0, width - cell_len(right) - 4), "bold"))
    line = left.append(" " * max(1, width - left.cell_len - cell_len(right) - 1)).append(f"{right} ")
    line.truncate(width)
    return line


def cut(text: str, width: int, style: str = "") -> Text:
    """A text on one line, with an ellipsis where it is longer than a width."""
    line = Text(one_line(text))
    line.truncate(width, overflow="ellipsis")
    return Text().append(line.plain, style)


# Longer lines are hard to read.
_COMFORTABLE: Final = 76
# Nobody reads more of a cell, and breaking it into lines would take longer than a key may.
_LONGEST: Final = 20_000
_WIDEST_NAME: Final = 24
# So many lines about a text, such as its subject, come before it; more of them come after it.
_HEAD: Final = 4


class ItemPanel(Widget):
    """The item in a frame, moved by keys; the lower edge says which lines are shown where there are more."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._content: Content = lambda _: []
        self._why, self._top = "", 0
        self._lines: list[Text] = []

    def show(self, title: Text, content: Content, why: str = "") -> None:
        """Show something else, from its beginning.

        Args:
            title: What it is.
            content: Its lines, for the area that there is.
            why: Why it is this item.
        """
        self.border_title, self._content, self._why, self._top = title, content, why, 0
        self.on_resize()

    def on_resize(self) -> None:
        """Break the lines anew."""
        self._lines = self._content(self.size)
        self.move(0)

    def move(self, by: int) -> None:
        """Move down so many lines, or up, as far as there are lines, and say which are shown."""
        height, lines = self.size.height, len(self._lines)
        self._top = max(0, min(self._top + by, lines - height))
        where = f"lines {self._top + 1} to {min(self._top + height, lines)} of {lines}" if lines > height else ""
        both = "; ".join(filter(None, (where, self._why)))
        # Which lines there are matters more than why it is this item.
        self.border_subtitle = Text(both if cell_len(both) <= self.size.width - 2 or not where else where)
        self.refresh()

    def render(self) -> Text:
        """The lines that are shown."""
        return Text("\n").join(self._lines[self._top : self._top + self.size.height])


@dataclass(frozen=True)
class ShownItem:
    """An item and its picture, if it has one and it is read."""

    item: Item
    settings: Settings
    picture: Picture | None = None
    plain: bool = False


def item_lines(shown: ShownItem, size: Size) -> list[Text]:
    """All lines of an item, also those that do not fit.

    Args:
        shown: The item.
        size: The area, which a picture fills.
    """
    settings, cells = shown.settings, shown.item.cells
    others = cell_lines([(name, value) for name, value in cells if name != settings.main], size.width)
    if settings.shown == "text":
        text = _shortened(dict(cells).get(settings.main or "", ""))
        lines = [*map(Text, wrapped(text, min(size.width, _COMFORTABLE)))]
        if 0 < len(others) <= _HEAD:
            return [*others, Text(), *lines]
    elif settings.shown == "image":
        # The picture takes the space that the cells leave, as long as it stays large enough to be seen.
        lines = _picture_lines(shown, Size(size.width, max(size.height - len(others) - 2, size.height * 2 // 3)))
    else:
        return others
    return [*lines, Text(), *others] if others else lines


def cell_lines(cells: Sequence[tuple[str, str]], width: int, style: str = "dim") -> list[Text]:
    """Names and values, side by side.

    Args:
        cells: The names and values.
        width: Columns; what is longer is broken into lines.
        style: How names are shown.
    """
    names = [cut(name, min(_WIDEST_NAME, max(8, width // 3)), style) for name, _ in cells]
    wide = max((name.cell_len for name in names), default=0) + 2
    lines: list[Text] = []
    for name, (_, value) in zip(names, cells, strict=True):
        head, *rest = wrapped(_shortened(value), max(8, min(width - wide, _COMFORTABLE))) if value.strip() else ("-",)
        name.pad_right(wide - name.cell_len)
        lines += [name.append(head, "" if value.strip() else "dim"), *(Text(" " * wide + line) for line in rest)]
    return lines


def _shortened(value: str) -> str:
    """A value as it is shown, and how much of it is not."""
    if len(value) <= _LONGEST:
        return visible(value)
    return f"{visible(value[:_LONGEST])}\n({len(value):,} characters; the rest is not shown)"


def _picture_lines(shown: ShownItem, size: Size) -> list[Text]:
    name, picture = shown.item.image or "", shown.picture
    if picture is None or picture.problem:
        what = "the picture is being read" if picture is None else f"No picture: {picture.problem}"
        said = [Text(line, "yellow") for line in wrapped(visible(what), size.width)]
        return [cut(name, size.width, "dim"), Text(), *said]
    head = cut(f"{name}, {picture.size[0]} x {picture.size[1]} pixels", size.width, "dim")
    return [head, Text(), *drawn(picture, size.width, max(4, size.height - 2), plain=shown.plain)]


class _Fitted(Widget):
    """A widget that is as high as its lines need, and arranges the screen anew when that changes."""

    standing: reactive[Standing | None] = reactive(None)

    def fit(self) -> None:
        """Change the height, if it has to be another."""
        height = self.styles.height
        if height is not None and height.is_auto:
            needed = self.get_content_height(self.container_size, self.app.size, self.size.width)
            self.refresh(layout=needed != self.size.height)


class ProgressPanel(_Fitted):
    """The decision in a frame: as many of its sentences as fit, and the curve of the error."""

    def render(self) -> Text:
        """The lines, in the space that there is."""
        return Text() if self.standing is None else Text("\n").join(progress_lines(self.standing, self.size))

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:  # noqa: ARG002
        """The lines below an item: a third of the screen, but all of the first sentence."""
        if self.standing is None:
            return 0
        first = len(wrapped(self.standing.sentences()[0], width))
        return len(progress_lines(self.standing, Size(width, max(viewport.height // 3 - 4, first))))

    def watch_standing(self) -> None:
        """Put the answer on the frame, in the colour of its tone."""
        if self.standing is not None:
            words = self.standing.words()
            self.border_title = cut(words.headline, 60)
            self.border_subtitle = "q leaves, a label goes on" if self.standing.stop else ""
            self.set_class(words.tone == "good", "-good")
            self.set_class(words.tone == "limit", "-limit")
            self.fit()


# A chart of fewer lines shows nothing, and of more nothing more.
_LOWEST: Final = 5
_HIGHEST: Final = 18
# Columns of the axis; lines of the caption, of the numbers below it, and an empty one.
_AXIS: Final = 9
_AROUND: Final = 3
_COLOURS: Final = {"•": "cyan", "*": "cyan", "╌": "yellow", "-": "yellow"}


def progress_lines(standing: Standing, size: Size) -> list[Text]:
    """The most important sentences and the curve, as far as they fit.

    Args:
        standing: The state of the project.
        size: The area.
    """
    said = [wrapped(sentence, size.width) for sentence in standing.sentences()]
    least = _LOWEST + _AROUND if _has_curve(standing.learning_status) and size.width >= _AXIS + 12 else 0
    # The first two sentences matter more than the curve; the others less.
    while len(said) > 1 and _height(said) + (least if len(said) > 2 else 0) > size.height:
        said.pop()
    height = size.height - _height(said) - _AROUND
    lines = [Text(line, TONE_STYLES[standing.words().tone]) for line in said[0]]
    for paragraph in said[1:]:
        lines += [Text(), *map(Text, paragraph)]
    return lines + (_curve(standing, size.width, min(height, _HIGHEST)) if least and height >= _LOWEST else [])


def _has_curve(learning_status: LearningStatus) -> bool:
    """Whether there is something to draw: the error, or else what the rule compares."""
    return len(learning_status.errors) > 1 or any(math.isfinite(point.value) for point in learning_status.curve)


def _height(said: list[tuple[str, ...]]) -> int:
    return sum(map(len, said)) + max(0, len(said) - 1)


def _curve(standing: Standing, columns: int, height: int) -> list[Text]:
    """The estimated error over the labels, or else what the rule compares, with a caption and the numbers of labels."""
    learning_status, plain, width = standing.learning_status, standing.plain, max(8, columns - _AXIS)
    if len(learning_status.errors) > 1:
        errors = [each for each in learning_status.errors if math.isfinite(each.value)]
        share = bool(standing.settings.classes)
        values = [100.0 * each.value if share else each.value for each in errors]
        none = [math.nan] * len(values)
        drawing = number_chart([*values], none, log=False, width=width, height=height, plain=plain)
        caption = name = "estimated error, % wrong" if share else "estimated error"
        at = [each.n_labelled for each in errors]
    else:
        points = [point for point in learning_status.curve if math.isfinite(point.value)]
        rule, values = type(standing.settings.criterion()).__name__, [point.value for point in points]
        found = RuleValues(rule, values, [math.nan if p.threshold is None else p.threshold for p in points])
        if rule == RATIO_RULE and found.threshold is not None:
            drawing = chart(values, found.threshold, width=width, height=height, plain=plain)
        else:
            drawing = found.chart(width=width, height=height, plain=plain)
        caption, name, at = found.caption, found.name, [point.n_labelled for point in points]
    first, last = f"{at[0]:,}", f"{at[-1]:,} labels"
    axis = f"{'':>8}{first}{last:>{max(1, width - len(first))}}" if len(at) > 1 else f"{'':>8}{last}"
    head = cut(caption if len(caption) <= columns else name, columns, "dim")
    return [Text(), head, *map(_coloured, drawing), Text(axis, "dim")]


def _coloured(line: str) -> Text:
    """A line of the chart, the curve apart from the threshold and the axis."""
    axis = max(line.find("┤"), line.find("|")) + 1
    return Text.assemble((line[:axis], "dim"), *((letter, _COLOURS.get(letter, "")) for letter in line[axis:]))


_LONGEST_CLASS: Final = 24
_GAP: Final = 3


class ClassList(_Fitted):
    """The classes, each with its key or number and how often it was given, on as few lines as they need.

    Attributes:
        standing: The state of the project.
        typed: What was typed: the classes that it may mean come first.
    """

    typed: reactive[str] = reactive("")

    def watch_standing(self) -> None:
        """Take as many lines as are needed now."""
        self.fit()

    def watch_typed(self) -> None:
        """Take as many lines as are needed now."""
        self.fit()

    def render(self) -> Text:
        """The lines, in the space that there is."""
        return Text("\n").join(self._lines(self.size))

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:  # noqa: ARG002
        """As many lines as they need, but at most a third of a screen."""
        return len(self._lines(Size(width, max(1, min(viewport.height // 3, 8) - 2))))

    def _lines(self, size: Size) -> list[Text]:
        return [] if self.standing is None else class_lines(self.standing, self.typed, size)


def class_lines(standing: Standing, typed: str, size: Size) -> list[Text]:
    """The classes side by side, those that may be meant first; the last line says how many do not fit.

    Args:
        standing: The state of the project.
        typed: What was typed.
        size: The area.
    """
    classes = standing.settings.classes
    keys, counts = direct_keys(classes), standing.counts.classes or (0,) * len(classes)
    possible = set(possible_classes(typed, classes)) if typed and not typed.isdigit() else set(classes)
    order = sorted(range(len(classes)), key=lambda k: classes[k] not in possible)
    lines: list[Text] = []
    for at, k in enumerate(order):
        meant = classes[k] in possible
        chip = Text().append(f" {keys[k] if keys else k + 1} ", "reverse" if meant else "dim")
        # A class that is its own key need not be said twice.
        if not keys or keys[k] != classes[k]:
            chip.append(" ").append_text(cut(classes[k], _LONGEST_CLASS, "" if meant else "dim"))
        chip.append(f" {counts[k]:,}", "dim")
        if lines and lines[-1].cell_len + _GAP + chip.cell_len <= size.width:
            lines[-1].append(" " * _GAP).append_text(chip)
        elif len(lines) < size.height:
            lines.append(chip)
        else:
            more = f" and {len(classes) - at} more"
            lines[-1].truncate(max(0, size.width - len(more)))
            lines[-1].append(more, "dim")
            break
    return lines
