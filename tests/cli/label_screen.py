"""The full-screen labeller without a terminal, for tests: presses keys, and reads what is shown."""

import asyncio
from types import TracebackType

from suffice.cli.label_app import LabelApp
from suffice.cli.labeller import Labeller

# What Textual calls keys that have no letter or whose letter is a name in Python.
_NAMES = {"?": "question_mark", ":": "colon", ".": "full_stop", "-": "minus", "\r": "enter"}


class LabelScreen:
    """A :class:`LabelApp` that runs as long as the context is open.

    Args:
        labeller: The person and their item.
        width: Columns.
        height: Lines.
        plain: Whether only ASCII is shown.
    """

    def __init__(self, labeller: Labeller, width: int = 80, height: int = 24, *, plain: bool = False) -> None:
        self.app = LabelApp(labeller, plain=plain)
        self._runner = asyncio.Runner()
        self._context = self.app.run_test(size=(width, height))

    def __enter__(self) -> "LabelScreen":
        self._pilot = self._runner.run(self._context.__aenter__())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._runner.run(self._context.__aexit__(kind, error, trace))
        finally:
            self._runner.close()

    def press(self, *keys: str) -> str:
        """Press keys, one after the other, and return what is shown then."""
        for key in keys:
            self._runner.run(self._pilot.press(_NAMES.get(key, key)))
        return self.text()

    def send(self, *keys: str) -> str:
        """Press keys at once, before any of them is handled."""
        from textual.events import Key

        async def post() -> None:
            for key in keys:
                self.app.post_message(Key(_NAMES.get(key, key), key if len(key) == 1 else None))
            await self._pilot.pause()

        self._runner.run(post())
        return self.text()

    def paste(self, text: str) -> str:
        """Paste a text."""
        from textual.events import Paste

        async def post() -> None:
            self.app.post_message(Paste(text))
            await self._pilot.pause()

        self._runner.run(post())
        return self.text()

    def resize(self, width: int, height: int) -> str:
        """Change the size of the terminal."""
        self._runner.run(self._pilot.resize_terminal(width, height))
        return self.text()

    def look(self) -> str:
        """Let the screen be brought up to date without a key."""
        self.app.show()
        return self.text()

    def lines(self) -> list[str]:
        """The lines on the screen."""
        self._runner.run(self._pilot.pause())
        return [strip.text for strip in self.app.screen._compositor.render_strips()]

    def text(self) -> str:
        """What is on the screen."""
        return "\n".join(line.rstrip() for line in self.lines())

    def words(self) -> str:
        """What is on the screen, without the frames and with one space between words."""
        return " ".join(self.text().translate(dict.fromkeys(map(ord, "─│╭╮╰╯"), " ")).split())
