"""What somebody waits for who labels in the terminal: from a key to the next item on the screen.

Everything is as in ``suffice label`` but the keyboard: labels are written to the disk, the model learns in the
background, the screen is painted. A key comes every 0.2 seconds, and says what is true of the item that is shown.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.live import Live

import suffice as sf
from suffice.cli.labeller.key_handler import KeyHandler, follow
from suffice.cli.labeller.keyboard import END, ENTER
from suffice.cli.labeller.labeller import Labeller, opened_labeller
from suffice.project.create import write_project
from suffice.project.items import Items
from suffice.project.settings import Settings
from tables import publish, table

KEYS = 100
PACE = 0.2
FEATURES = 20
#: Milliseconds that nobody should wait longer than.
LIMIT = 200.0


class Hand:
    """Presses a key now and then, and looks at the clock."""

    def __init__(self, labeller: Labeller, y: Any) -> None:
        self._desk, self._y = labeller, y
        self._pressed: float | None = None
        self.waits: list[float] = []

    def read(self, timeout: float) -> list[str]:
        """The keys for the item that is shown, once enough time has passed."""
        now = time.perf_counter()
        if self._pressed is not None:
            self.waits.append(1e3 * (now - self._pressed))
            self._pressed = None
        if len(self.waits) == KEYS or self._desk.item is None:
            return [END]
        time.sleep(min(PACE, timeout))
        label = self._y[self._desk.item.position]
        self._pressed = time.perf_counter()
        return [*f"{label:.3f}", ENTER] if isinstance(label, float) else [str(label)]

    def drop(self) -> None:
        """Nothing is pressed too early."""


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
    items = Items("table", ids, columns, cells, None, X, task, names, {}, ())
    shares: Any = np.linspace(0.0, 1.0, classes + 1)[1:-1] if classes else []
    y = np.digitize(value, np.quantile(value, shares)).tolist() if classes else value.tolist()
    return items, settings, y


def waits(size: int, classes: int) -> np.typing.NDArray[np.float64]:
    """Milliseconds from each key to the next item."""
    items, settings, y = data(size, classes)
    with tempfile.TemporaryDirectory() as folder, Path(os.devnull).open("w") as nowhere:
        console = Console(file=nowhere, force_terminal=True, width=120, height=40, color_system="truecolor")
        with (
            write_project(Path(folder) / "p.suffice", settings, items) as project,
            opened_labeller(project, "ann") as labeller,
        ):
            labeller.ask()
            hand = Hand(labeller, y)
            with Live(console=console, screen=True, auto_refresh=False) as live:
                follow(KeyHandler(labeller), hand, console, live)
    return np.array(hand.waits)


def main() -> None:
    rows = []
    for name, classes in (("two classes", 2), ("ten classes", 10), ("numbers", 0)):
        for size in (1_000, 10_000, 100_000):
            taken = waits(size, classes)
            figures = (np.median(taken), np.quantile(taken, 0.95), taken.max())
            late = f"{np.sum(taken > LIMIT)} of {len(taken)}"
            rows.append([name, f"{size:,} x {FEATURES}", *(f"{figure:.0f} ms" for figure in figures), late])
            print(" ".join(rows[-1]), flush=True)
    header = ["labels", "pool", "median", "95 %", "longest", f"over {LIMIT:.0f} ms"]
    publish("labelling-keys", table(header, rows))


if __name__ == "__main__":
    main()
