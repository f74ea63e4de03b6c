"""Labelling on the whole screen: a key, the screen as it is then, the next key."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from rich.console import Console
from rich.live import Live

from suffice.cli.labeller.board import Board
from suffice.cli.labeller.desk import Desk
from suffice.cli.labeller.keyboard import Keyboard, keyboard
from suffice.cli.labeller.paper import Paper
from suffice.cli.labeller.screen import last_top, painted

# Seconds without a key after which the screen is looked at again: the model may have learned something.
_LOOK: Final = 0.25
_TURN: Final = 0.001


def label_by_keys(desk: Desk, console: Console) -> None:
    """Label until the person leaves; the terminal is as it was before afterwards.

    Args:
        desk: The person at the project.
        console: The terminal.
    """
    desk.ask()
    board = Board(desk)
    with keyboard() as keys, Live(console=console, screen=True, auto_refresh=False) as live:
        follow(board, keys, console, live)


def follow(board: Board, keys: Keyboard, console: Console, live: Live) -> None:
    """Show where the board stands, and do what the keys say, until the person leaves."""
    shown = None
    with _in_turns():
        while not board.left:
            view, paper = board.view(), Paper.of(console)
            if (view, paper) != shown:
                live.update(painted(view, paper), refresh=True)
                board.lowest = last_top(view, paper)
                shown = view, paper
            for key in keys.read(_LOOK):
                if board.press(key):
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
