"""Progress of many runs: bars on a terminal, a line for each run elsewhere; and the message after Ctrl-C."""

from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

if TYPE_CHECKING:
    from suffice.experiments.runner import RunJob, SkippedRun

RunResult = TypeVar("RunResult")


class RunsView(Generic[RunResult]):
    """Shows the progress of the runs, and a summary of each.

    Args:
        console: Where to show it.
        jobs: The runs.
        summary: Returns the line to print for the result of a run.
    """

    def __init__(self, console: Console, jobs: "Sequence[RunJob]", summary: Callable[[RunResult], str]) -> None:
        self._console, self._jobs, self._summary = console, jobs, summary
        self._shown: dict[int, TaskID] = {}
        terminal = console.is_terminal and not console.is_dumb_terminal and not console.quiet
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        self._progress = Progress(*columns, console=console) if terminal else None
        self._all = self._progress.add_task("runs", total=len(jobs)) if self._progress else None

    def __enter__(self) -> "RunsView[RunResult]":
        if self._progress is not None:
            self._progress.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._progress is not None:
            self._progress.__exit__(kind, error, trace)

    def moved(self, number: int, steps: int) -> None:
        """Show that a run has done some steps."""
        if self._progress is None:
            return
        if number not in self._shown:
            job = self._jobs[number]
            self._shown[number] = self._progress.add_task(escape(job.name), total=job.steps)
        self._progress.update(self._shown[number], completed=steps)

    def ended(self, number: int, found: "RunResult | SkippedRun[Any]") -> None:
        """Show that a run has ended."""
        from suffice.experiments.runner import SkippedRun

        if not isinstance(found, SkippedRun):
            self._console.print(escape(f"{self._jobs[number].name}: {self._summary(found)}"))
        if self._progress is not None and self._all is not None:
            self._progress.advance(self._all)
            if number in self._shown:
                self._progress.remove_task(self._shown.pop(number))


def interrupted(jobs: "Sequence[RunJob]", out: Path, traces: Path) -> str:
    """Return the message after Ctrl-C: how many runs are saved, and how to continue.

    Args:
        jobs: The requested runs.
        out: The folder that the command was given.
        traces: The folder of the traces in it.
    """
    from suffice.experiments.runner import is_kept

    done = sum(is_kept(job, traces) for job in jobs)
    runs = f"{done} of {len(jobs)} runs are kept in {out}"
    return f"suffice: interrupted; {runs}, and the same command goes on from there"
