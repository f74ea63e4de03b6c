"""What somebody waits for who labels in the terminal: for the first item, and from a key to the next item.

``suffice label`` runs in a pseudo-terminal: labels are written to the disk, the model learns in the background, the
screen is drawn. A key comes 0.2 seconds after the item that it is for, and says what is true of it.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import fcntl
import math
import pty
import re
import select
import struct
import subprocess
import sys
import tempfile
import termios
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

import suffice as sf
from suffice.project.create import write_project
from suffice.project.items import Items
from suffice.project.settings import Settings
from suffice.tables.table_cells import CellColumns
from tables import publish, table

KEYS = 100
PACE = 0.2
FEATURES = 20
COLUMNS, LINES = 120, 40
#: Milliseconds that nobody should wait longer than.
LIMIT = 200.0
_CONTROL = re.compile(rb"\x1b\[[?<>=]?[\d;:]*\$?[@-~]")


class Terminal:
    """A pseudo-terminal with ``suffice label`` in it.

    Args:
        place: The project.
    """

    def __init__(self, place: Path) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
        environment = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor"}
        command = [sys.executable, "-m", "suffice", "label", str(place)]
        self._process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, env=environment)
        os.close(slave)
        self._sent = b""

    def press(self, keys: str) -> None:
        """Send keys."""
        self._sent = b""
        os.write(self._master, keys.encode())

    def until(self, words: str) -> str:
        """Wait until something is drawn, and return all that was drawn since the last key."""
        while words.encode() not in (drawn := _CONTROL.sub(b"", self._sent)):
            self._sent += os.read(self._master, 65536)
        return drawn.decode(errors="replace")

    def rest(self, seconds: float) -> str:
        """Wait, and return all that was drawn since the last key."""
        end = time.perf_counter() + seconds
        while (left := end - time.perf_counter()) > 0:
            if select.select([self._master], [], [], min(left, 1.0))[0]:
                self._sent += os.read(self._master, 65536)
        return _CONTROL.sub(b"", self._sent).decode(errors="replace")

    def close(self) -> None:
        """Leave."""
        self.press("q")
        # Reading fails once the other end is closed.
        with suppress(OSError):
            self.rest(math.inf)
        self._process.wait()
        os.close(self._master)


def data(size: int, classes: int) -> tuple[Items, Settings, list[Any]]:
    """Items, what they are about, and their true labels."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(size, FEATURES))
    value = X[:, 0] + np.sin(2.0 * X[:, 1]) + 0.3 * rng.normal(size=size)
    names = tuple(str(k) for k in range(classes))
    columns = tuple(f"feature {k + 1}" for k in range(FEATURES))
    cells = tuple(tuple(f"{number:.3f}" for number in row) for row in X)
    task: Any = "classification" if classes else "regression"
    model, threshold = ("logistic", 0.1) if classes else ("gp", 0.05)
    rule = sf.ErrorStability(threshold).state_dict()
    settings = Settings("table.csv", task, names, "label", "table", columns, None, model, rule)
    ids = tuple(f"row {k + 1}" for k in range(size))
    items = Items("table", ids, columns, CellColumns.of_rows(cells), None, X, task, names, {}, ())
    shares: Any = np.linspace(0.0, 1.0, classes + 1)[1:-1] if classes else []
    y = np.digitize(value, np.quantile(value, shares)).tolist() if classes else value.tolist()
    return items, settings, y


def waits(size: int, classes: int) -> tuple[float, np.typing.NDArray[np.float64]]:
    """Seconds to the first item, and milliseconds from each key to the next item."""
    items, settings, y = data(size, classes)
    found = []
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "p.suffice"
        write_project(place, settings, items).close()
        begun = time.perf_counter()
        terminal = Terminal(place)
        terminal.until(f"0 of {size:,} labelled")
        start = time.perf_counter() - begun
        for k in range(KEYS):
            shown = re.findall(r"row (\d+) ", terminal.rest(PACE))
            label = y[int(shown[-1]) - 1]
            pressed = time.perf_counter()
            terminal.press(f"{label:.3f}\r" if isinstance(label, float) else str(label))
            terminal.until(f"{k + 1:,} of {size:,} labelled")
            found.append(1e3 * (time.perf_counter() - pressed))
        terminal.close()
    return start, np.array(found)


def main() -> None:
    rows = []
    for name, classes in (("two classes", 2), ("ten classes", 10), ("numbers", 0)):
        for size in (1_000, 10_000, 100_000):
            start, taken = waits(size, classes)
            figures = (np.median(taken), np.quantile(taken, 0.95), taken.max())
            late = f"{np.sum(taken > LIMIT)} of {len(taken)}"
            pool = f"{size:,} x {FEATURES}"
            rows.append([name, pool, f"{start:.1f} s", *(f"{figure:.0f} ms" for figure in figures), late])
            print(" ".join(rows[-1]), flush=True)
    header = ["labels", "pool", "first item", "median", "95 %", "longest", f"over {LIMIT:.0f} ms"]
    publish("labelling-keys", table(header, rows))


if __name__ == "__main__":
    main()
