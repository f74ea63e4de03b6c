"""Many runs shown as they go on, on a terminal and elsewhere."""

import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from suffice.trace import Trace
from suffice_research.runner import RunsView, SkippedRun, StepProgress, carry_out, interrupted


@dataclass(frozen=True)
class Named:
    """A job that does nothing worth showing."""

    name: str
    steps: int | None = 500
    data: str = ""
    alone: bool = False

    @property
    def stem(self) -> str:
        return self.name.replace(" ", "-")

    @property
    def identity(self) -> str:
        return self.name

    def ready(self) -> None:
        pass

    def run(self, traces: Path, progress: StepProgress | None) -> Trace:
        assert traces.is_dir()
        assert progress is None
        return Trace.of_divergences([0.1], [0.1], first=1)


JOBS = [Named("one [red] run"), Named("another", steps=None)]


def summary(found: float) -> str:
    return f"{found:.2f} [/]"


def shown(**options: Any) -> str:
    console = Console(file=(screen := io.StringIO()), width=120, highlight=False, _environ={}, **options)
    with RunsView(console, JOBS, summary) as view:
        view.moved(0, 250)
        view.moved(1, 7)
        if view._progress is not None:
            view._progress.refresh()
        view.ended(1, 0.125)
        view.ended(0, SkippedRun(JOBS[0], "no more room"))
    return screen.getvalue()


def test_a_terminal_has_a_bar_for_each_run_and_one_for_all() -> None:
    page = shown(force_terminal=True)
    for words in ("one [red] run", "250/500", "7/?", "another: 0.12 [/]", "0/2", "2/2"):
        assert words in page


@pytest.mark.parametrize("options", [{}, {"force_terminal": False}])
def test_elsewhere_a_line_tells_what_came_of_a_run(options: dict[str, Any]) -> None:
    # Who is told of the runs that were skipped, and how, is the command's business.
    assert shown(**options) == "another: 0.12 [/]\n"


def test_nothing_is_shown_where_the_rows_go_to_the_terminal() -> None:
    assert shown(force_terminal=True, quiet=True) == ""


def test_an_interrupt_says_how_much_is_kept() -> None:
    (traces := Path("out/traces")).mkdir(parents=True)
    carry_out(JOBS[1], traces)
    said = interrupted(JOBS, Path("out"), traces)
    assert said == "interrupted; 1 of 2 runs are kept in out, and the same command continues from there"
