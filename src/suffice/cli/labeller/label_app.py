"""Labelling by keys on the whole screen, with Textual."""

import asyncio
import codecs
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
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
from textual.message import Message as Event
from textual.widgets import Input, Static

from suffice.cli.labeller.label_widgets import (
    WIDE,
    ClassList,
    Content,
    Header,
    ItemPanel,
    ProgressPanel,
    ShownItem,
    Standing,
    cell_lines,
    cut,
    item_lines,
)
from suffice.cli.labeller.labeller import COMMANDS, Given, Labeller, command_keys, direct_keys, shown_label, typed_class
from suffice.cli.labeller.visible_text import one_line, wrapped
from suffice.errors import SufficeError
from suffice.project.events import Label, checked_label
from suffice.project.items import Item

_LONGEST: Final = 200
# What a number can begin with, and the colon before a command.
_BEGINNINGS: Final = frozenset("0123456789+-.eE:")
_GIVEN: Final = 10
# Seconds after which the screen is brought up to date without a key: the model may have learned something.
_LOOK: Final = 0.25
_NOTHING_LEFT: Final = "Nothing is left to label for you: every item is labelled, skipped, or with somebody else."


class Mode(Enum):
    """Meaning of the keys at present."""

    label = "label"
    pick = "pick"
    correct = "correct"
    help = "help"


class AnswerInput(Input):
    """The line in which a number or the beginning of a class is typed, where a class has no key of its own."""

    app: "LabelApp"

    def on_key(self, event: Key) -> None:
        """Type a key, unless it is a command."""
        if self.app.press(event):
            event.stop()
            event.prevent_default()

    def on_paste(self, event: Paste) -> None:
        """Type what is pasted, without control characters."""
        event.text = one_line(event.text)

    def watch_value(self, value: str) -> None:
        """Show the classes that may be meant."""
        self.app.typed(value)

    def restricted(self) -> None:
        """Say that nothing longer is taken."""
        self.app.say(f"more than {_LONGEST} characters are no label", bad=True)


_DRIVER: type[Driver] | None = None
if sys.platform != "win32":
    from textual.drivers.linux_driver import LinuxDriver

    class _PosixDriver(LinuxDriver):
        """A terminal that may send bytes that are no UTF-8; they are left out."""

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
        # The moment from which the item is shown: what was pressed before it is not meant for it.
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
        """Show the first item, and go on looking what others do and what the model learns."""
        # Windows has no such signals for an event loop.
        if not self.is_headless and sys.platform != "win32":
            for number, code in ((signal.SIGINT, 0), (signal.SIGTERM, 143), (signal.SIGHUP, 129)):
                asyncio.get_running_loop().add_signal_handler(number, partial(self.exit, return_code=code))
        self.show()
        self.set_interval(_LOOK, self.show)

    def say(self, sentence: str, *, bad: bool = False) -> None:
        """Say something about the last key: what was done, or what could not be done."""
        words = one_line(sentence)
        self._said.update(words, layout=False)
        self._said.set_class(bad, "-bad")
        self._said.set_class(cell_len(words) > self.size.width - 2, "-long")

    def typed(self, text: str) -> None:
        """Show the classes that may be meant by what was typed."""
        self._class_list.typed = text
        self.say("")

    def show(self) -> None:
        """Show where the labelling stands, with what others did and what the model has learned meanwhile."""
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
            # What was typed for one item is not for the other.
            self._shown, self._since = item, Event().time
            self._answer.clear()
        standing = Standing(
            self._settings, labeller.person, self._counts, labeller.background.learning_status, self._plain
        )
        self._header.standing = self._progress.standing = self._class_list.standing = standing
        answering = self._mode in (Mode.label, Mode.correct) and item is not None
        # What is not displayed could not be focused when the next key comes.
        self._class_list.display = answering
        self._answer_line.set_class(not answering, "-idle")
        why = labeller.why if self._mode is Mode.label and item is not None else ""
        if (drawn := (self._mode, item, why, labeller.picture(item), self.size.width)) != self._drawn:
            self._drawn = drawn
            self._panel.show(*self._content(item), why)
            self._keys.update(self._command_line(), layout=False)

    def on_key(self, event: Key) -> None:
        """Do what a key asks for."""
        self.press(event)

    def on_paste(self) -> None:
        """A paste is no answer where classes have keys."""
        if self._direct:
            self.say("pasted text is not used as keys", bad=True)

    def press(self, event: Key) -> bool:
        """Do what a key asks for.

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
                raise SufficeError(f"{letter!r} is no number and no key here; ? shows the keys")
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
        """Choose the label that is to be corrected."""
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
                f"{repr(letter) if letter.isprintable() and letter else key} is no key here; ? shows the keys"
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
        """To the item that is to be labelled, with nothing typed."""
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
            return Text("done"), lambda size: [*map(Text, wrapped(_NOTHING_LEFT, size.width))]
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
            (keys["skip"], "never ask for this item again, and learn nothing of it"),
            (keys["undo"], "take back your newest label, skip or correction (also Ctrl-Z)"),
            (keys["correct"], "change one of the last ten labels"),
            (keys["quit"], "leave; every label is on the disk already (also Ctrl-C and Ctrl-D)"),
            ("up down", "move in a long item (also j and k, Page Up and Page Down)"),
        ]


def label_by_keys(labeller: Labeller) -> None:
    """Label until the person leaves; the terminal is as it was before afterwards.

    Args:
        labeller: The person and their item.
    """
    labeller.ask()
    with _short_turns(), _plain_letters() as plain:
        app = LabelApp(labeller, plain=plain)
        app.run(mouse=False)
    if app.return_code:
        raise SystemExit(app.return_code)


# Seconds: threads take turns more often, so that a key does not wait for the one that learns.
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
    """Characters that a terminal does not have, replaced by as many columns of others."""
    assert isinstance(error, UnicodeEncodeError)
    letters = error.object[error.start : error.end].translate(_PLAIN)
    return "".join(letter if letter.isascii() else "?" * cell_len(letter) for letter in letters), error.end


@contextmanager
def _plain_letters() -> Iterator[bool]:
    """Replace what the encoding of the terminal does not have, and tell whether that may be needed."""
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
