"""Jobs for the tests of the runner. In a module of their own, which a worker can import."""

import os
import signal
import struct
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from suffice.errors import SufficeError
from suffice.trace import Trace
from suffice_research.runner import StepProgress


def nothing(_: Path) -> None:
    pass


def no_room(_: Path) -> None:
    raise SufficeError("no more room")


def broken(_: Path) -> None:
    raise ZeroDivisionError("a mistake in the job")


def after_toy_1(traces: Path) -> None:
    while not (traces / "toy-1.npz").exists():
        time.sleep(0.01)


def after_news_of_toy_1(_: Path) -> None:
    while not Path("told-1").exists():
        time.sleep(0.01)


def killed_after_toy_1(traces: Path) -> None:
    after_toy_1(traces)
    if Path("deadly").exists():
        os.kill(os.getpid(), signal.SIGKILL)


def endless(_: Path) -> None:
    os.write(1, b"endless\n")
    while True:
        time.sleep(0.05)


@dataclass(frozen=True)
class Toy:
    """A job that notes in files that it was asked and run, and does a deed while it runs."""

    number: int
    deed: Callable[[Path], None] = nothing
    version: int = 1
    data: str = "numbers"
    alone: bool = False
    blocks: tuple[int, ...] = (10, 30)

    @property
    def name(self) -> str:
        return f"toy {self.number}"

    @property
    def stem(self) -> str:
        return f"toy-{self.number}"

    @property
    def identity(self) -> str:
        return f"{self.number} in version {self.version}"

    @property
    def steps(self) -> int:
        return self.blocks[-1]

    def ready(self) -> None:
        note("asked", self.data)
        if self.data == "missing":
            raise SufficeError("the data of toys are missing; make some")

    def run(self, traces: Path, progress: StepProgress | None) -> Trace:
        note("ran", self.number)
        self.deed(traces)
        for done in self.blocks:
            if progress is not None:
                progress(done, self.steps)
        rng = np.random.default_rng([self.number, self.version])
        made = Trace.of_divergences(*np.exp(-rng.random((2, 30)).cumsum(axis=1)), first=10)
        # What cannot be sent from a worker: only what is read from the trace may come back.
        return replace(made, about={"unsendable": lambda: None}, measures={"noise": rng.random((30, 100))})


def note(where: str, what: object) -> None:
    with Path(f"{where}.txt").open("a") as file:
        file.write(f"{what}\n")


def noted(where: str) -> list[str]:
    """What was noted, in the order of the alphabet: workers note it in any."""
    path = Path(f"{where}.txt")
    return sorted(path.read_text().split()) if path.exists() else []


class Seen(NamedTuple):
    """What is read from a toy's trace, and by which process."""

    number: int
    total: float
    process: int


def seen(job: Toy, trace: Trace) -> Seen:
    return Seen(job.number, float(trace.kl_new_old.sum() + trace.measures["noise"].sum()), os.getpid())


def refused(job: Toy, trace: Trace) -> Seen:
    raise SufficeError(f"{len(trace)} steps of {job.name} are too few")


def half_a_message(told: str) -> None:
    """Write the beginning of a long result, and hold still."""
    frame: Any = sys._getframe()
    while "result_queue" not in frame.f_locals:
        frame = frame.f_back
    os.write(frame.f_locals["result_queue"]._writer.fileno(), struct.pack("!i", 1000) + b"half")
    Path(told).touch()
    time.sleep(600.0)
