"""Labelling on the whole screen: a key, the screen as it is then, the next key."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from rich.console import Console
from rich.live import Live

from suffice.cli.labeller.board import KeyHandler
from suffice.cli.labeller.desk import Labeller
from suffice.cli.labeller.keyboard import Keyboard, keyboard
from suffice.cli.labeller.paper import Viewport
from suffice.cli.labeller.screen import last_top, rendered_screen

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
    with keyboard() as keys, Live(console=console, screen=True, auto_refresh=False) as live:
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
