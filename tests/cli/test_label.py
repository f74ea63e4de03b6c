"""`suffice label` as a person meets it: through a real terminal, and by lines through a pipe."""

import codecs
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from suffice.project.create import open_project
from suffice.project.events import EventKind
from tests.processes import ForkedProcess, run_suffice, start_suffice

# The terminal becomes that of the program's session, so that Ctrl-C is a signal to it.
MAIN = "import fcntl, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); from suffice.cli import main; main()"
PATIENCE = 120.0
CONTROL = re.compile(r"\x1b\[([?<>]?[\d;]*)\$?([A-Za-z])|\r|\n|[^\x1b\r\n]")
UNFINISHED = re.compile(r"\x1b(\[[?<>]?[\d;]*\$?)?$")


class Terminal:
    """A terminal with somebody before it: shows what a program prints, and presses keys.

    Only what Textual and rich use is understood. With ``forked=False`` the program is started from nothing, and
    takes all its encodings from the environment.
    """

    def __init__(
        self, arguments: list[str], *, columns: int = 80, lines: int = 24, forked: bool = True, **environment: str
    ) -> None:
        self.columns, self.lines = columns, lines
        self._master, slave = pty.openpty()
        self.resize(columns, lines)
        self.before = termios.tcgetattr(slave)
        self._slave = slave
        unwanted = ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR")
        given = {name: value for name, value in os.environ.items() if name not in unwanted}
        given |= {"TERM": "xterm-256color", "PYTHONUTF8": "1"} | environment
        self.process: ForkedProcess | subprocess.Popen[bytes]
        if forked:
            self.process = start_suffice(
                "label", *arguments, stdin=slave, stdout=slave, stderr=slave, env=given, terminal=True
            )
        else:
            command = [sys.executable, "-c", MAIN, "label", *arguments]
            self.process = subprocess.Popen(
                command, stdin=slave, stdout=slave, stderr=slave, env=given, start_new_session=True
            )
        self._grid = [[" "] * columns for _ in range(lines)]
        self._at, self._rest = (0, 0), ""
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self.whole = False
        self.styles: set[str] = set()

    def resize(self, columns: int, lines: int) -> None:
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self.columns, self.lines = columns, lines
        self._grid = [[" "] * columns for _ in range(lines)]

    def text(self) -> str:
        return "\n".join("".join(line).rstrip() for line in self._grid)

    def press(self, keys: str) -> None:
        self.send(keys.encode())

    def send(self, sent: bytes) -> None:
        os.write(self._master, sent)

    def until(self, shown: str | Callable[[str], bool], what: str = "") -> str:
        """Wait until something is on the screen."""
        holds = shown if callable(shown) else lambda text: shown in text
        end = time.monotonic() + PATIENCE
        while True:
            heard = self._listen(0.05)
            # A screen that is still being painted is not looked at.
            if not heard and holds(self.text()):
                return self.text()
            if time.monotonic() > end or (not heard and self.process.poll() is not None):
                raise AssertionError(f"{what or shown} was never shown:\n{self.text()}")

    def end(self) -> int:
        """Wait for the end of the program and return its exit code."""
        end = time.monotonic() + PATIENCE
        while self.process.poll() is None and time.monotonic() < end:
            self._listen(0.1)
        while self._listen(0.1):
            pass
        return self.process.wait(1.0)

    def restored(self) -> bool:
        """Whether the terminal is as it was before the program."""
        return termios.tcgetattr(self._slave) == self.before and not self.whole

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._master)
        os.close(self._slave)

    def _listen(self, seconds: float) -> bool:
        if not select.select([self._master], [], [], seconds)[0]:
            return False
        sent = self._rest + self._decoder.decode(os.read(self._master, 65536))
        # What has not come whole is taken with what comes next.
        whole = UNFINISHED.sub("", sent)
        self._rest = sent[len(whole) :]
        for found in CONTROL.finditer(whole):
            self._take(found)
        return True

    def _take(self, found: re.Match[str]) -> None:
        row, column = self._at
        letter = found[0]
        if found[2]:
            self._obey(found[1], found[2])
        elif letter == "\r":
            self._at = row, 0
        elif letter == "\n":
            if row + 1 == self.lines:
                self._grid = [*self._grid[1:], [" "] * self.columns]
            self._at = min(row + 1, self.lines - 1), column
        elif len(letter) == 1:
            if row < self.lines and column < self.columns:
                self._grid[row][column] = letter
            self._at = row, column + 1

    def _obey(self, numbers: str, order: str) -> None:
        if order == "H":
            row, column = (int(number) for number in (numbers or "1;1").split(";"))
            self._at = row - 1, column - 1
        elif order == "m":
            self.styles.add(numbers)
        elif order == "J":
            self._grid = [[" "] * self.columns for _ in range(self.lines)]
        elif numbers == "?1049":
            self.whole = order == "h"
            self._grid, self._at = [[" "] * self.columns for _ in range(self.lines)], (0, 0)


@pytest.fixture
def terminal() -> Iterator[Callable[..., Terminal]]:
    opened: list[Terminal] = []

    def begin(*arguments: str, **options: Any) -> Terminal:
        opened.append(Terminal(list(arguments), **options))
        return opened[-1]

    yield begin
    for each in opened:
        each.close()


def table(name: str = "t.csv", rows: int = 60) -> None:
    numbers = np.random.default_rng(0).normal(size=(rows, 3))
    lines = ["key,a,b,c", *(f"item-{k:03},{','.join(f'{v:.3f}' for v in row)}" for k, row in enumerate(numbers))]
    Path(name).write_text("\n".join(lines) + "\n", encoding="utf-8")


def done(n: int, size: int = 60) -> str:
    return f"{n} of {size} labelled"


def labels_of(place: str = "t.suffice") -> dict[str, Any]:
    """The labels that count, by the names of the items."""
    with open_project(place) as project:
        return {project.item(item).id: label for item, label, _ in project.state().answers() if label is not None}


def shown_item(text: str) -> str:
    """The item on the screen, or nothing while there is none."""
    found = re.search(r"─ item-\d{3} ", text)
    return found[0].strip("─ ") if found else ""


def next_item(screen: Terminal, n: int, before: Iterable[str]) -> str:
    """The item that is shown once there are so many labels."""
    return shown_item(screen.until(lambda text: done(n) in text and shown_item(text) not in ("", *before), done(n)))


@pytest.mark.slow
def test_twelve_items_by_keys_with_undo_skip_and_correction(terminal: Callable[..., Terminal]) -> None:
    table()
    screen = terminal("t.csv", "--classes", "ham,spam", "--id", "key", "--person", "Zoë")
    text = screen.until(done(0))
    assert screen.whole
    assert "Zoë" in text
    assert "Too early to say" in text
    given: dict[str, str] = {}
    for k in range(12):
        key = "12"[k % 2]
        item = next_item(screen, k, given)
        given[item] = {"1": "ham", "2": "spam"}[key]
        screen.press(key)
    text = screen.until(done(12))
    last, other = list(given)[-1], list(given)[-2]
    screen.press("u")
    assert shown_item(screen.until("is undone")) == last
    screen.until(done(11))
    screen.press("1")
    screen.until(done(12))
    given[last] = "ham"
    skipped = shown_item(screen.text())
    screen.press("s")
    screen.until("1 skipped")
    screen.press("c")
    text = screen.until("which label is to be corrected")
    number = next(line for line in text.splitlines() if other in line).split("│")[1].split()[0]
    screen.press(number)
    screen.until(f"correct {other}")
    screen.press("2" if given[other] == "ham" else "1")
    given[other] = "spam" if given[other] == "ham" else "ham"
    screen.until(f"{other} is corrected to {given[other]}")
    screen.press("x")
    screen.until("is not a key here")
    screen.press("?")
    screen.until("take back your newest label")
    screen.press("?")
    screen.press("q")
    assert screen.end() == 0
    assert screen.restored()
    assert "Go on with: suffice label t.suffice" in screen.text()
    assert labels_of() == given
    with open_project("t.suffice") as project:
        assert [project.item(each.item).id for each in project.state().skipped()] == [skipped]
        assert {event.person for event in project.events() if event.kind is EventKind.labelled} == {"Zoë"}


def test_a_number_is_typed_and_what_is_none_is_answered_beside_it(terminal: Callable[..., Terminal]) -> None:
    table()
    screen = terminal("t.csv", "--regression", "--target", "price", "--id", "key")
    item = shown_item(screen.until(done(0)))
    screen.press("nan")
    screen.until("is neither a number nor a key here")
    for bad in ("1,5", "1e999", "--2"):
        screen.press(bad + "\r")
        screen.until("is not a number; a label is a finite number")
        screen.press("\x15")
        screen.until(lambda text: "is not a number" not in text, "an empty line")
    screen.press("\x1b[200~ -12.75\x1b[201~")
    screen.until("price: -12.75")
    screen.press("0\x7f\r")
    screen.until(done(1))
    # Ctrl-D leaves as q does.
    screen.press("\x04")
    assert screen.end() == 0
    assert screen.restored()
    assert labels_of() == {item: -12.75}


@pytest.mark.slow
def test_a_resized_window_is_filled_anew(terminal: Callable[..., Terminal]) -> None:
    table()
    screen = terminal("t.csv", "--classes", "ham,spam", columns=100, lines=30)
    screen.until("Too early to say")
    for columns, lines in ((40, 20), (120, 40), (20, 8)):
        screen.resize(columns, lines)
        os.killpg(screen.process.pid, signal.SIGWINCH)
        screen.until(lambda text: "0 of 60" in text.splitlines()[0], "the first line of a small window")
        screen.press("x")
        text = screen.until("is not a key")
        assert max(map(len, text.splitlines())) <= columns
        screen.press("\x1b")
        screen.until(lambda text: "is not a key" not in text, "nothing said")
    screen.press("1")
    screen.until("1 of 60")
    screen.press("q")
    assert screen.end() == 0


@pytest.mark.slow
def test_bytes_that_are_no_text_are_left_out_and_no_colour_is_used_where_none_is_wanted(
    terminal: Callable[..., Terminal],
) -> None:
    table()
    screen = terminal("t.csv", "--classes", "ham,spam", NO_COLOR="1")
    screen.until(done(0))
    screen.send(b"\xff\xfe")
    # The thread that reads keys begins anew.
    time.sleep(0.5)
    screen.press("2")
    screen.until(done(1))
    screen.press("q")
    assert screen.end() == 0
    assert {"0", "1", "7", "39", "49"} >= {code for codes in screen.styles for code in codes.split(";")} - {"2", ""}
    assert "Traceback" not in screen.text()


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 0), (signal.SIGTERM, 143)])
def test_an_interrupt_leaves_the_terminal_as_it_was(
    terminal: Callable[..., Terminal], number: signal.Signals, code: int
) -> None:
    table()
    screen = terminal("t.csv", "--classes", "ham,spam")
    screen.until(done(0))
    screen.press("1")
    screen.until(done(1))
    if number is signal.SIGINT:
        screen.press("\x03")
    else:
        screen.process.send_signal(number)
    assert screen.end() == code
    assert screen.restored()
    assert len(labels_of()) == 1
    assert "Traceback" not in screen.text()


@pytest.mark.slow
def test_killed_in_the_middle_and_resumed_with_everything_there(terminal: Callable[..., Terminal]) -> None:
    table()
    first = terminal("t.csv", "--classes", "ham,spam", "--id", "key")
    given: list[str] = []
    for k in range(7):
        item = next_item(first, k, given)
        given.append(item)
        first.press("1")
    waiting = next_item(first, 7, given)
    first.process.send_signal(signal.SIGKILL)
    assert first.end() == -signal.SIGKILL
    second = terminal("t.csv", "--classes", "ham,spam", "--id", "key")
    # The item that was before the person when the program died is before them again.
    assert next_item(second, 7, given) == waiting
    second.press("\x1a")
    assert shown_item(second.until(done(6))) == given[-1]
    second.press("q")
    assert second.end() == 0
    assert labels_of() == dict.fromkeys(given[:-1], "ham")


@pytest.mark.slow
def test_many_classes_are_typed_by_their_beginning(terminal: Callable[..., Terminal]) -> None:
    table()
    names = ["sparrow", "robin", "blackbird", "great tit", "blue tit", "magpie", "jay", "crow", "raven", "starling"]
    screen = terminal("t.csv", "--classes", ",".join(names), "--id", "key", TERM="xterm")
    item = shown_item(screen.until(done(0)))
    screen.press("r\r")
    screen.until("may be robin, raven")
    screen.press("a\r")
    screen.until(done(1))
    second = shown_item(screen.text())
    screen.press("3\r")
    screen.until(done(2))
    # Some class begins with s, so skipping takes a colon.
    screen.press(":s")
    screen.until("1 skipped")
    screen.press("q")
    assert screen.end() == 0
    assert labels_of() == {item: "raven", second: "blackbird"}


@pytest.mark.slow
def test_a_terminal_of_plain_letters_is_enough(terminal: Callable[..., Terminal]) -> None:
    words = ["house", "garden", "river", "bridge", "street"]
    texts = [f"Grüße 🐌 \x1b[31m {words[k % 5]} {words[k % 3]} {words[k // 7]}" for k in range(30)]
    Path("t.csv").write_text("text,who\n" + "\n".join(f"{text},[red]x" for text in texts), encoding="utf-8")
    ascii_only = {"PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii", "LC_ALL": "C", "PYTHONCOERCECLOCALE": "0"}
    screen = terminal("t.csv", "--text", "text", "--classes", "ham,spam", columns=40, forked=False, **ascii_only)
    # The item may be painted after the header.
    text = screen.until(lambda shown: "0 of 30" in shown and "Gr" in shown, "the first item")
    assert text.isascii()
    assert "[red]x" in text
    screen.press("1")
    screen.until("1 of 30")
    screen.press("q")
    assert screen.end() == 0


@pytest.mark.slow
def test_that_one_can_stop_is_said_and_one_may_go_on(terminal: Callable[..., Terminal]) -> None:
    table()
    # No label is worth what it costs.
    rule = ["--regression", "--error-cost", "0.000001", "--label-cost", "1000"]
    found = run("t.csv", *rule, lines="1\n2\n" * 16)
    # The labels have nothing to do with the items: the error is large, and the model may be at its limit.
    stops = ("You can stop now", "More labels are not worth their", "More labels will not help")
    assert any(stop in found.stdout for stop in stops)
    screen = terminal("t.csv", *rule)
    text = screen.until(lambda text: any(stop in text for stop in stops), "a stop")
    assert "q to stop, or continue" in text
    screen.press("1.5\r")
    screen.until(done(33))
    screen.press("q")
    assert screen.end() == 0
    with open_project("t.suffice") as project:
        assert EventKind.advised in {event.kind for event in project.events()}


@pytest.mark.slow
def test_images_are_pictures(terminal: Callable[..., Terminal]) -> None:
    from PIL import Image

    Path("photos").mkdir()
    for k in range(12):
        Image.fromarray(np.full((40, 60, 3), (20 * k, 100, 255 - 20 * k), dtype=np.uint8)).save(f"photos/{k:02}.png")
    screen = terminal("photos", "--classes", "red,blue")
    text = screen.until("60 x 40 pixels")
    assert "▀" * 30 in text
    screen.press("1")
    screen.until(done(1, 12))
    screen.press("q")
    assert screen.end() == 0
    assert Path("photos.suffice").is_dir()


def run(*arguments: str, lines: str = "") -> subprocess.CompletedProcess[str]:
    return run_suffice("label", *arguments, lines=lines)


@pytest.mark.slow
def test_only_the_full_screen_needs_textual_and_says_how_to_install_it(
    terminal: Callable[..., Terminal], monkeypatch: pytest.MonkeyPatch
) -> None:
    table()
    absent = "import sys; sys.modules['textual'] = None; "
    code = f"{absent}from suffice.cli import main; main()"
    for arguments in (("label", "t.csv", "--classes", "ham,spam"), ("status", "t.suffice")):
        command = [sys.executable, "-c", code, *arguments]
        found = subprocess.run(command, input="ham\n", capture_output=True, text=True, check=True)
        assert "1 of 60" in found.stdout
    monkeypatch.setitem(globals(), "MAIN", absent + MAIN)
    screen = terminal("t.csv", "--classes", "ham,spam", columns=200, forked=False)
    assert screen.end() == 1
    assert "Labelling on the whole screen needs textual, which is not installed" in screen.text()
    assert "-m pip install" in screen.text()


def test_lines_from_a_pipe() -> None:
    table()
    lines = "ham\n2\nHAM\n\nperhaps\ns\nspam\nu\nspam\n"
    found = run("t.csv", "--classes", "ham,spam", lines=lines)
    assert (found.returncode, found.stderr) == (0, "")
    assert "'perhaps' is none of the classes; they are ham, spam" in found.stdout
    assert "You gave 4 labels; 4 of 60 items are labelled, 1 skipped" in found.stdout
    assert found.stdout.count(" is skipped\n") == 1
    assert "Go on with: suffice label t.suffice" in found.stdout
    assert list(labels_of().values()) == ["ham", "spam", "ham", "spam"]


def test_numbers_from_a_pipe_and_json_at_the_end() -> None:
    table()
    numbers = [f"{k / 3:.3f}" for k in range(14)]
    found = run("t.csv", "--regression", "--json", lines="nan\ninf\n" + "\n".join(numbers) + "\nq\n1\n")
    assert found.returncode == 0
    told = json.loads(found.stdout)
    assert found.stderr.count("is not a number") == 2
    assert (told["given"], told["n_labelled"], told["learned"], told["behind"]) == (14, 14, 14, 0)
    assert told["verdict"]["rule"] == told["decision"]["rule"] == "LabelWorth"
    assert sorted(labels_of().values()) == [float(number) for number in numbers]


def test_all_items_labelled_ends_by_itself() -> None:
    table(rows=5)
    found = run("t.csv", "--classes", "a,b", lines="1\n2\n" * 9)
    assert found.returncode == 0
    assert "Nothing is left to label for you." in found.stdout
    assert "5 of 5 items are labelled" in found.stdout


def test_a_class_called_like_a_command_is_meant() -> None:
    table()
    found = run("t.csv", "--classes", 's,q,"u, v"', lines='s\nq\n"u, v"\nu, v\n:s\n:q\n1\n')
    assert found.returncode == 0
    assert list(labels_of().values()) == ["s", "q", "u, v"]
    assert "1 skipped" in found.stdout
