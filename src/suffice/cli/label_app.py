"""Labelling by keys on the whole screen, with Textual: the header, the item, the progress, the classes and the keys."""

import asyncio
import codecs
import math
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import ClassVar, Final

from rich.cells import cell_len
from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Horizontal
from textual.driver import Driver
from textual.events import Key, Paste
from textual.geometry import Size
from textual.message import Message as Event
from textual.reactive import reactive
from textual.widget import Widget
from textual.widgets import Input, Static

from suffice.cli.labeller import (
    COMMANDS,
    TONE_STYLES,
    Counts,
    Given,
    Labeller,
    command_keys,
    direct_keys,
    possible_classes,
    shown_label,
    typed_class,
)
from suffice.cli.rule_options import RuleValues
from suffice.cli.terminal_display import Picture, drawn, one_line, visible, wrapped
from suffice.errors import SufficeError
from suffice.presentation.charts import chart, number_chart
from suffice.presentation.decision_words import DecisionWords
from suffice.presentation.rule_words import RATIO_RULE
from suffice.project.events import Label, checked_label
from suffice.project.items import Item
from suffice.project.learning_status import LearningStatus
from suffice.project.settings import Settings
from suffice.project.status_summary import decision_in_words, decision_of, learning_sentences

#: Returns the lines of a widget for the available area; there may be more lines than fit.
Content = Callable[[Size], list[Text]]
#: Width from which the progress is shown beside the item.
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
        return decision_of(*self._subject(), size=self._size(), checks=self.counts.checks).stop

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
        """The line, in the available width."""
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
        # On a small screen this is the only place for it.
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
    """A text on one line, with an ellipsis if it exceeds a width."""
    line = Text(one_line(text))
    line.truncate(width, overflow="ellipsis")
    return Text().append(line.plain, style)


# Longer lines are hard to read.
_COMFORTABLE: Final = 76
# Longer cells are cut, because wrapping them would delay the response to a key.
_LONGEST_VALUE: Final = 20_000
_WIDEST_NAME: Final = 24
# Maximal number of lines of other cells before a text, such as its subject; if there are more, they follow the text.
_HEAD: Final = 4


class ItemPanel(Widget):
    """The item in a frame, scrolled by keys; if there are more lines, the lower edge states which are shown."""

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
        """Wrap the lines again."""
        self._lines = self._content(self.size)
        self.move(0)

    def move(self, by: int) -> None:
        """Scroll by a number of lines, as far as there are lines, and show which lines are visible."""
        height, lines = self.size.height, len(self._lines)
        self._top = max(0, min(self._top + by, lines - height))
        where = f"lines {self._top + 1} to {min(self._top + height, lines)} of {lines}" if lines > height else ""
        both = "; ".join(filter(None, (where, self._why)))
        # The visible lines are more important than the reason for the item.
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
        # The picture gets the height that the cells leave, but at least two thirds.
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
    """The shown part of a value, and the number of omitted characters."""
    if len(value) <= _LONGEST_VALUE:
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
    """A widget with the height of its lines, which updates the layout of the screen when the height changes."""

    standing: reactive[Standing | None] = reactive(None)

    def fit(self) -> None:
        """Update the height if it has changed."""
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
        """Show the decision on the frame, in the colour of its tone."""
        if self.standing is not None:
            words = self.standing.words()
            self.border_title = cut(words.headline, 60)
            self.border_subtitle = "q to stop, or continue" if self.standing.stop else ""
            self.set_class(words.tone == "good", "-good")
            self.set_class(words.tone == "limit", "-limit")
            self.fit()


# Minimal and maximal number of lines of a useful chart.
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
    """Whether there are values to draw: the error, or otherwise the values that the rule compares."""
    return len(learning_status.errors) > 1 or any(math.isfinite(point.value) for point in learning_status.curve)


def _height(said: list[tuple[str, ...]]) -> int:
    return sum(map(len, said)) + max(0, len(said) - 1)


def _curve(standing: Standing, columns: int, height: int) -> list[Text]:
    """The estimated error over the labels, or otherwise the values of the rule, with a caption."""
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
    """A line of the chart; the curve has another style than the threshold and the axis."""
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
    """The classes side by side, the matching ones first; the last line states how many do not fit.

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
        # A class whose name is its key is shown once.
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


_LONGEST: Final = 200
# Characters that start a number, and the colon before a command.
_BEGINNINGS: Final = frozenset("0123456789+-.eE:")
_GIVEN: Final = 10
# Seconds between two updates of the screen without a key, because the model may have learned labels.
_LOOK: Final = 0.25
_TAKEN: Final = ": every item is labelled, skipped, or with somebody else"


class Mode(Enum):
    """Meaning of the keys at present."""

    label = "label"
    pick = "pick"
    correct = "correct"
    help = "help"


class AnswerInput(Input):
    """The input line for a number or the beginning of a class, if classes have no keys."""

    app: "LabelApp"

    def on_key(self, event: Key) -> None:
        """Type a key, unless it is a command."""
        if self.app.press(event):
            event.stop()
            event.prevent_default()

    def on_paste(self, event: Paste) -> None:
        """Insert pasted text without control characters."""
        event.text = one_line(event.text)

    def watch_value(self, value: str) -> None:
        """Show the matching classes."""
        self.app.typed(value)

    def restricted(self) -> None:
        """Report that the input is too long."""
        self.app.say(f"a label has at most {_LONGEST} characters", bad=True)


_DRIVER: type[Driver] | None = None
if sys.platform != "win32":
    from textual.drivers.linux_driver import LinuxDriver

    class _PosixDriver(LinuxDriver):
        """A terminal driver that ignores bytes that are not valid UTF-8."""

        def run_input_thread(self) -> None:
            """Read keys until the end."""
            while not self.exit_event.is_set():
                with suppress(UnicodeDecodeError):
                    super().run_input_thread()

    _DRIVER = _PosixDriver


class LabelApp(App[None]):
    """The full screen.

    Args:
        labeller: The person and their item.
        plain: Whether the terminal has no characters but those of ASCII.
    """

    CSS = """
    Screen { overflow: hidden; background: ansi_default; color: ansi_default; }
    #header { height: 1; text-style: reverse; }
    #body { height: 1fr; layout: vertical; }
    #item { width: 1fr; height: 1fr; min-height: 3; }
    #item, #progress {
        padding: 0 1; border: round ansi_bright_black; border-title-color: ansi_default; border-title-style: bold;
        border-subtitle-color: ansi_default; border-subtitle-style: dim; border-subtitle-align: left;
        text-wrap: nowrap; text-overflow: ellipsis;
    }
    #progress { height: auto; }
    .-wide #body { layout: horizontal; }
    .-wide #progress { width: 40%; min-width: 35; max-width: 52; height: 100%; }
    .-narrow.-short #progress { display: none; }
    #progress.-good { border: round ansi_green; border-title-color: ansi_green; }
    #progress.-limit { border: round ansi_yellow; border-title-color: ansi_yellow; }
    #classes, #answer, #message, #commands { padding: 0 1; height: auto; }
    #commands { height: 1; text-wrap: nowrap; }
    #answer.-idle { height: 0; }
    #name { width: auto; max-width: 33%; height: 1; text-style: bold; }
    AnswerInput, AnswerInput:focus { width: 1fr; height: 1; border: none; padding: 0; background: ansi_default; }
    #message { height: 1; max-height: 3; text-style: dim; }
    #message.-long { height: auto; }
    .-short #message { max-height: 2; }
    #message.-bad { text-style: bold; color: ansi_red; }
    """
    ENABLE_COMMAND_PALETTE = False
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (WIDE, "-wide")]  # noqa: RUF012
    VERTICAL_BREAKPOINTS = [(0, "-short"), (14, "-tall")]  # noqa: RUF012
    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+c,ctrl+d,ctrl+q", "quit", priority=True, show=False)]

    def __init__(self, labeller: Labeller, *, plain: bool = False) -> None:
        # The colours of the terminal, which may be light or dark.
        super().__init__(ansi_color=True, driver_class=_DRIVER)
        self._labeller, self._plain, self._settings = labeller, plain, labeller.project.settings
        self._direct = direct_keys(self._settings.classes)
        self._typed_classes = () if self._direct else self._settings.classes
        self._commands = command_keys(self._typed_classes)
        self._mode = Mode.label
        self._given: tuple[Given, ...] = ()
        self._chosen: Item | None = None
        self._shown: Item | None = None
        self._drawn: object = None
        self._counts = labeller.counts()
        # The time at which the item was shown; keys that were pressed earlier do not apply to it.
        self._since = 0.0
        self._header, self._panel = Header(id="header"), ItemPanel(id="item")
        self._progress, self._class_list = ProgressPanel(id="progress"), ClassList(id="classes")
        numbers = self._settings.task == "regression"
        hint = "a number, then Enter" if numbers else "number or beginning, then Enter"
        self._answer = AnswerInput(placeholder=hint, max_length=_LONGEST, compact=True, select_on_focus=False)
        self._answer.cursor_blink = False
        name = Static(Text(f"{one_line(self._settings.target or 'label')}: "), id="name")
        self._answer_line = Horizontal(name, self._answer, id="answer")
        self._said, self._keys = Static(id="message", markup=False), Static(id="commands", markup=False)

    def compose(self) -> ComposeResult:
        """The header, the item beside or above the progress, the classes, the answer, and the commands."""
        yield self._header
        yield Container(self._panel, self._progress, id="body")
        yield self._class_list
        if not self._direct:
            yield self._answer_line
        yield self._said
        yield self._keys

    def on_mount(self) -> None:
        """Show the first item, and start the regular updates about other people and the model."""
        # Windows has no such signals for an event loop.
        if not self.is_headless and sys.platform != "win32":
            for number, code in ((signal.SIGINT, 0), (signal.SIGTERM, 143), (signal.SIGHUP, 129)):
                asyncio.get_running_loop().add_signal_handler(number, partial(self.exit, return_code=code))
        self.show()
        self.set_interval(_LOOK, self.show)

    def say(self, sentence: str, *, bad: bool = False) -> None:
        """Show a message about the result of the last key."""
        words = one_line(sentence)
        self._said.update(words, layout=False)
        self._said.set_class(bad, "-bad")
        self._said.set_class(cell_len(words) > self.size.width - 2, "-long")

    def typed(self, text: str) -> None:
        """Show the classes that match the typed text."""
        self._class_list.typed = text
        self.say("")

    def show(self) -> None:
        """Show the progress of the labelling, including the work of other people and the state of the model."""
        labeller, before = self._labeller, self._labeller.item
        try:
            labeller.ask_again()
            self._counts = labeller.counts()
        except SufficeError as error:
            self.say(str(error), bad=True)
        if labeller.item is not before:
            self.say("")
        item = self._chosen or labeller.item
        if item is not self._shown:
            # Text that was typed for one item does not apply to the next.
            self._shown, self._since = item, Event().time
            self._answer.clear()
        standing = Standing(
            self._settings, labeller.person, self._counts, labeller.background.learning_status, self._plain
        )
        self._header.standing = self._progress.standing = self._class_list.standing = standing
        answering = self._mode in (Mode.label, Mode.correct) and item is not None
        # A hidden widget could not have the focus at the next key.
        self._class_list.display = answering
        self._answer_line.set_class(not answering, "-idle")
        why = labeller.why if self._mode is Mode.label and item is not None else ""
        if (drawn := (self._mode, item, why, labeller.picture(item), self.size.width)) != self._drawn:
            self._drawn = drawn
            self._panel.show(*self._content(item), why)
            self._keys.update(self._command_line(), layout=False)

    def on_key(self, event: Key) -> None:
        """Carry out the action of a key."""
        self.press(event)

    def on_paste(self) -> None:
        """Ignore a paste if classes have keys."""
        if self._direct:
            self.say("pasted text is not used as keys", bad=True)

    def press(self, event: Key) -> bool:
        """Carry out the action of a key.

        Returns:
            Whether it is done; otherwise the key is for the line in which an answer is typed.
        """
        if event.time < self._since:
            return True
        try:
            done = self._press(event.key, event.character or "")
        except SufficeError as error:
            self.say(str(error), bad=True)
            done = True
        if done:
            self.show()
        return done

    def _press(self, key: str, letter: str) -> bool:
        moves = {"up": -1, "down": 1, "pageup": -10, "pagedown": 10}
        typed = self._answer.value
        if key == "escape" or self._mode is Mode.help:
            self._back()
        elif key in moves:
            self._panel.move(moves[key])
        elif self._mode is Mode.pick:
            self._pick(letter)
        elif key == "ctrl+z":
            self._command("undo")
        elif letter in COMMANDS and (typed == ":" or (not typed and letter in self._commands.values())):
            self._command(COMMANDS[letter])
        elif letter in ("j", "k") and not typed and not any(n[:1].casefold() == letter for n in self._typed_classes):
            self._panel.move(1 if letter == "j" else -1)
        elif self._direct:
            self._answer_key(key, letter)
        elif key == "enter":
            self._answer_typed(typed)
        else:
            if (
                self._settings.task == "regression"
                and not typed
                and letter
                and letter.isprintable()
                and letter not in _BEGINNINGS
            ):
                raise SufficeError(f"{letter!r} is neither a number nor a key here; ? shows the keys")
            return False
        return True

    def _command(self, name: str) -> None:
        self._answer.clear()
        if name == "quit":
            self.exit()
        elif name == "help":
            self._mode = Mode.help
            self.say("")
        elif self._mode is Mode.correct:
            raise SufficeError("this label is being corrected; Esc goes back")
        elif name == "skip":
            item = self._labeller.item
            self._labeller.skip()
            self.say(f"{item.id} is skipped" if item is not None else "")
        elif name == "undo":
            self.say(self._labeller.undo())
        else:
            self._given = self._labeller.newest(_GIVEN)
            if not self._given:
                raise SufficeError("there is no label to correct yet")
            self._mode = Mode.pick
            self.say("")

    def _pick(self, letter: str) -> None:
        """Choose the label to correct."""
        wanted = "1234567890".find(letter) if letter else -1
        if not 0 <= wanted < len(self._given):
            raise SufficeError("press the number before a label, or Esc to go back")
        given = self._given[wanted]
        self._chosen, self._mode = self._labeller.project.item(given.item), Mode.correct
        self.say(f"now it is {shown_label(given.label)}; what should it be?")

    def _answer_key(self, key: str, letter: str) -> None:
        if letter == ":":
            # The letter of a command may follow.
            return
        if letter not in self._direct:
            raise SufficeError(
                f"{repr(letter) if letter.isprintable() and letter else key} is not a key here; ? shows the keys"
            )
        self._give(self._settings.classes[self._direct.index(letter)])

    def _answer_typed(self, typed: str) -> None:
        if not typed.strip():
            raise SufficeError("type something first, then Enter")
        numbers = self._settings.task == "regression"
        self._give(checked_label(self._settings, typed) if numbers else typed_class(typed, self._settings.classes))

    def _give(self, label: Label) -> None:
        """Label the item that is shown, or correct it."""
        if self._mode is Mode.correct and self._chosen is not None:
            item = self._chosen
            self._labeller.correct(item.position, label)
            self._back()
            self.say(f"{item.id} is corrected to {shown_label(label)}")
            return
        current = self._labeller.item
        self._labeller.label(label)
        self._answer.clear()
        self.say(f"{current.id} is {shown_label(label)}" if current is not None else "")

    def _back(self) -> None:
        """Return to the item to label, with an empty input line."""
        self._mode, self._chosen, self._given = Mode.label, None, ()
        self._answer.clear()
        self.say("")

    def _content(self, item: Item | None) -> tuple[Text, Content]:
        """Content and title of the frame of the item."""
        if self._mode is Mode.help:
            return Text("keys"), lambda size: cell_lines(self._help(), size.width, "bold")
        if self._mode is Mode.pick:
            return Text("which label is to be corrected?"), lambda _: self._given_labels()
        if item is None:
            said = self._labeller.nothing_left(_TAKEN)
            return Text("done"), lambda size: [*map(Text, wrapped(said, size.width))]
        title = f"correct {item.id}" if self._mode is Mode.correct else item.id
        shown = ShownItem(item, self._settings, self._labeller.picture(item), self._plain or self.no_color)
        return cut(title, 60), partial(item_lines, shown)

    def _command_line(self) -> Text:
        if self._mode is Mode.help:
            return Text("any key goes back", "dim")
        if self._mode is not Mode.label:
            return Text.assemble(("Esc", "bold"), (" back", "dim"))
        line, left = Text(no_wrap=True), self._labeller.item is not None
        for name in [name for name in self._commands if left or name != "skip"]:
            line.append(self._commands[name], "bold").append(f" {name}{' ' if self.size.width < 50 else '  '}", "dim")
        return line

    def _given_labels(self) -> list[Text]:
        """The newest labels, each with the key that picks it."""
        lines = []
        for k, given in enumerate(self._given, start=1):
            line = Text.assemble((f" {k % 10} ", "reverse"), " ", cut(shown_label(given.label), 20, "bold"), "  ")
            who = f" ({given.person})" if given.person != self._labeller.person else ""
            lines.append(line.append(one_line(f"{given.id}: {given.summary}{who}"), "dim"))
        return lines

    def _help(self) -> list[tuple[str, str]]:
        """Each key and what it does."""
        keys = self._commands
        if self._settings.task == "regression":
            answer = ("0-9", "type the number, then Enter; - and 1e3 are possible")
        elif self._direct:
            answer = ("1-9", "label the item with the class of that key")
        else:
            answer = ("a-z", "type a class's number or the beginning of its name, then Enter")
        return [
            answer,
            (keys["skip"], "never ask for this item again, and learn nothing from it"),
            (keys["undo"], "take back your newest label, skip or correction (also Ctrl-Z)"),
            (keys["correct"], "change one of the last ten labels"),
            (keys["quit"], "leave; every label is on the disk already (also Ctrl-C and Ctrl-D)"),
            ("up down", "move in a long item (also j and k, Page Up and Page Down)"),
        ]


def label_by_keys(labeller: Labeller) -> None:
    """Label until the person leaves, then restore the terminal.

    Args:
        labeller: The person and their item.
    """
    labeller.ask()
    with _short_turns(), _plain_letters() as plain:
        app = LabelApp(labeller, plain=plain)
        app.run(mouse=False)
    if app.return_code:
        raise SystemExit(app.return_code)


# Switch interval of threads in seconds; it is short, so that a key does not wait for the learning thread.
_TURN: Final = 0.001


@contextmanager
def _short_turns() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(_TURN)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


_HANDLER: Final = "suffice.plain"
_PLAIN: Final = str.maketrans("─│╭╮╰╯…·▀•", "-|++++.-#*")


def _replaced(error: UnicodeError) -> tuple[str, int]:
    """Replacements for characters that a terminal does not support, with the same number of columns."""
    assert isinstance(error, UnicodeEncodeError)
    letters = error.object[error.start : error.end].translate(_PLAIN)
    return "".join(letter if letter.isascii() else "?" * cell_len(letter) for letter in letters), error.end


@contextmanager
def _plain_letters() -> Iterator[bool]:
    """Replace characters that the encoding of the terminal does not support; return whether this may be needed."""
    # Textual writes to this stream.
    stream = sys.__stderr__
    if stream is None or stream.encoding.lower().replace("-", "").startswith("utf"):
        yield False
        return
    codecs.register_error(_HANDLER, _replaced)
    before = stream.errors
    stream.reconfigure(errors=_HANDLER)
    try:
        yield True
    finally:
        stream.reconfigure(errors=before)
