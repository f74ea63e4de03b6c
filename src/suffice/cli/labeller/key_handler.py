"""The effect of each key, and the loop of full-screen labelling."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from rich.console import Console
from rich.live import Live

from suffice.cli.labeller import keyboard
from suffice.cli.labeller.keyboard import Keyboard, open_keyboard
from suffice.cli.labeller.labeller import COMMANDS, Labeller, command_keys, direct_keys, typed_class
from suffice.cli.labeller.screen import last_top, rendered_screen
from suffice.cli.labeller.view import Given, LabellerView, Message, Mode, shown_label
from suffice.cli.labeller.viewport import Viewport
from suffice.errors import SufficeError
from suffice.project.events import Label, checked_label
from suffice.project.items import Item

_LONGEST = 200
_NUMBER = frozenset("0123456789+-.eE")
_PAGE = 10
_GIVEN = 10


class KeyHandler:
    """Takes keys and shows where the labelling stands.

    Args:
        labeller: The person and their item.

    Attributes:
        left: Whether the person wants to leave.
        lowest: The line of the item that comes first when its end is shown; who paints it knows.
    """

    def __init__(self, labeller: Labeller) -> None:
        self._labeller, self.left, self.lowest = labeller, False, 0
        self._settings = labeller.project.settings
        self._direct = direct_keys(self._settings.classes)
        self._typed_classes = () if self._direct else self._settings.classes
        self._mode, self._typed, self._message, self._top = Mode.label, "", Message(), 0
        self._given: tuple[Given, ...] = ()
        self._chosen: Item | None = None
        self._colon = False
        by_key = {key: name for name, key in command_keys(self._typed_classes).items()}
        self._at_once = {key: name for key, name in by_key.items() if len(key) == 1}
        self._view = LabellerView(
            self._settings, labeller.person, labeller.counts(), labeller.background.learning_status
        )

    def view(self) -> LabellerView:
        """What is to be shown now, with what others did and what the model has learned meanwhile."""
        counts, before = self._view.counts, self._labeller.item
        try:
            self._labeller.ask_again()
            counts = self._labeller.counts()
        except SufficeError as error:
            self._message = Message(str(error), bad=True)
        if self._labeller.item is not before:
            self._typed, self._message = "", Message()
        item = self._chosen or self._labeller.item
        self._view = LabellerView(
            self._settings,
            self._labeller.person,
            counts,
            self._labeller.background.learning_status,
            item=item,
            why=self._labeller.why,
            picture=self._labeller.picture(item),
            top=self._top,
            mode=self._mode,
            typed=(":" if self._colon else "") + self._typed,
            message=self._message,
            given=self._given,
        )
        return self._view

    def press(self, key: str) -> bool:
        """Do what a key asks for.

        Returns:
            Whether another item is shown now, so that keys that were pressed before it was seen are not for it.
        """
        before = self._chosen or self._labeller.item
        try:
            self._press(key)
        except SufficeError as error:
            self._message = Message(str(error), bad=True)
        after = self._chosen or self._labeller.item
        if after is not before:
            # What was typed for one item is not for the other.
            self._top, self._typed = 0, ""
        return after is not before

    def _press(self, key: str) -> None:
        if key == keyboard.END:
            self.left = True
        elif self._mode is Mode.help or key == keyboard.ESCAPE:
            self._back()
        elif key in (keyboard.UP, keyboard.DOWN, keyboard.PAGE_UP, keyboard.PAGE_DOWN):
            self._move({keyboard.UP: -1, keyboard.DOWN: 1, keyboard.PAGE_UP: -_PAGE, keyboard.PAGE_DOWN: _PAGE}[key])
        elif self._mode is Mode.pick:
            self._pick(key)
        elif key == keyboard.UNDO:
            self._command("undo")
        elif not self._is_command(key):
            self._answer(key)

    def _is_command(self, key: str) -> bool:
        """Do a command if the key is one."""
        if self._colon:
            self._colon = False
            if key in COMMANDS:
                self._command(COMMANDS[key])
                return True
        if self._typed:
            return False
        if key == ":":
            self._colon = True
            return True
        if key in self._at_once:
            self._command(self._at_once[key])
            return True
        if key in ("j", "k") and not self._begins(key):
            self._move(1 if key == "j" else -1)
            return True
        return False

    def _begins(self, letter: str) -> bool:
        return any(name[:1].casefold() == letter for name in self._typed_classes)

    def _command(self, name: str) -> None:
        self._typed = ""
        if name == "quit":
            self.left = True
        elif name == "help":
            self._mode, self._message = Mode.help, Message()
        elif self._mode is Mode.correct:
            self._message = Message("this label is being corrected; Esc goes back", bad=True)
        elif name == "skip":
            self._skip()
        elif name == "undo":
            self._message = Message(self._labeller.undo())
        else:
            self._given = self._labeller.newest(_GIVEN)
            if not self._given:
                raise SufficeError("there is no label to correct yet")
            self._mode, self._message = Mode.pick, Message()

    def _skip(self) -> None:
        item = self._labeller.item
        self._labeller.skip()
        self._message = Message(f"{item.id} is skipped" if item is not None else "")

    def _pick(self, key: str) -> None:
        """Choose the label that is to be corrected."""
        wanted = "1234567890".find(key) if len(key) == 1 else -1
        if not 0 <= wanted < len(self._given):
            raise SufficeError("press the number before a label, or Esc to go back")
        given = self._given[wanted]
        self._chosen = self._labeller.project.item(given.item)
        self._mode, self._message = Mode.correct, Message(f"now it is {shown_label(given.label)}; what should it be?")

    def _answer(self, key: str) -> None:
        if self._direct:
            self._answer_key(key)
        elif key == keyboard.ENTER:
            self._answer_typed()
        elif key == keyboard.BACKSPACE:
            self._typed, self._message = self._typed[:-1], Message()
        elif key == keyboard.CLEAR:
            self._typed, self._message = "", Message()
        else:
            self._type(key)

    def _answer_key(self, key: str) -> None:
        if key.startswith(keyboard.PASTED):
            raise SufficeError("what is pasted is not taken for keys")
        if key not in self._direct:
            name = f"{key!r}" if len(key) == 1 else key
            raise SufficeError(f"{name} is no key here; ? shows the keys")
        self._give(self._settings.classes[self._direct.index(key)])

    def _answer_typed(self) -> None:
        if not self._typed.strip():
            raise SufficeError("type something first, then Enter")
        if self._settings.task == "regression":
            label = checked_label(self._settings, self._typed)
        else:
            label = typed_class(self._typed, self._settings.classes)
        self._give(label)

    def _type(self, key: str) -> None:
        text = key.removeprefix(keyboard.PASTED) if key.startswith(keyboard.PASTED) else key if len(key) == 1 else ""
        # Letters are let through where a number has begun, so that what is wrong can be said at its end.
        if self._settings.task == "regression" and not self._typed and text[:1] not in _NUMBER:
            raise SufficeError(f"{text[:20]!r} is no number and no key here; ? shows the keys")
        if len(self._typed) + len(text) > _LONGEST:
            raise SufficeError(f"more than {_LONGEST} characters are no label")
        self._typed, self._message = self._typed + text, Message()

    def _give(self, label: Label) -> None:
        """Label the item that is shown, or correct it."""
        if self._mode is Mode.correct and self._chosen is not None:
            item = self._chosen
            self._labeller.correct(item.position, label)
            self._back()
            self._message = Message(f"{item.id} is corrected to {shown_label(label)}")
            return
        current = self._labeller.item
        self._labeller.label(label)
        self._typed = ""
        self._message = Message(f"{current.id} is {shown_label(label)}" if current is not None else "")

    def _back(self) -> None:
        """To the item that is to be labelled, with nothing typed."""
        self._mode, self._chosen, self._given, self._typed, self._message = Mode.label, None, (), "", Message()
        self._colon = False

    def _move(self, lines: int) -> None:
        self._top = max(0, min(self._top + lines, self.lowest))


# Seconds without a key after which the screen is looked at again: the model may have learned something.
_LOOK: Final = 0.25
_TURN: Final = 0.001


def label_by_keys(labeller: Labeller, console: Console) -> None:
    """Label until the person leaves; the terminal is as it was before afterwards.

    Args:
        labeller: The person and their item.
        console: The terminal.
    """
    labeller.ask()
    key_handler = KeyHandler(labeller)
    with open_keyboard() as keys, Live(console=console, screen=True, auto_refresh=False) as live:
        follow(key_handler, keys, console, live)


def follow(key_handler: KeyHandler, keys: Keyboard, console: Console, live: Live) -> None:
    """Draw the screen and handle keys until the person leaves."""
    shown = None
    with _in_turns():
        while not key_handler.left:
            view, viewport = key_handler.view(), Viewport.of(console)
            if (view, viewport) != shown:
                live.update(rendered_screen(view, viewport), refresh=True)
                key_handler.lowest = last_top(view, viewport)
                shown = view, viewport
            for key in keys.read(_LOOK):
                if key_handler.press(key):
                    # What was pressed before the next item was seen is not meant for it.
                    keys.drop()
                    break


@contextmanager
def _in_turns() -> Iterator[None]:
    """Let threads take turns more often: a key should not wait for the one that learns."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(_TURN)
    try:
        yield
    finally:
        sys.setswitchinterval(before)
