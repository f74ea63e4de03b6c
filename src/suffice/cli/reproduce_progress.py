"""Many runs as they go on: bars on a terminal, a line for each elsewhere."""

from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

if TYPE_CHECKING:
    from suffice.experiments.paper.outcome import Outcome
    from suffice.experiments.paper.plan import Job
    from suffice.experiments.paper.runner import Skipped


class RunsView:
    """Shows how far the runs are, and what came of each.

    Args:
        console: Where to show it.
        jobs: The runs.
    """

    def __init__(self, console: Console, jobs: "Sequence[Job]") -> None:
        self._console, self._jobs = console, jobs
        self._shown: dict[int, TaskID] = {}
        terminal = console.is_terminal and not console.is_dumb_terminal and not console.quiet
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        self._progress = Progress(*columns, console=console) if terminal else None
        self._all = self._progress.add_task("runs", total=len(jobs)) if self._progress else None

    def __enter__(self) -> "RunsView":
        if self._progress is not None:
            self._progress.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._progress is not None:
            self._progress.__exit__(kind, error, trace)

    def moved(self, number: int, steps: int) -> None:
        """A run has done so many steps."""
        if self._progress is None:
            return
        if number not in self._shown:
            job = self._jobs[number]
            self._shown[number] = self._progress.add_task(escape(job.name), total=job.experiment.step_count)
        self._progress.update(self._shown[number], completed=steps)

    def ended(self, number: int, found: "Outcome | Skipped") -> None:
        """A run has ended."""
        from suffice.experiments.paper.outcome import Outcome

        if isinstance(found, Outcome):
            self._console.print(escape(f"{self._jobs[number].name}: {_summary(found)}"))
        if self._progress is not None and self._all is not None:
            self._progress.advance(self._all)
            if number in self._shown:
                self._progress.remove_task(self._shown.pop(number))


def _summary(found: "Outcome") -> str:
    correlation = "undefined" if found.correlation is None else f"{found.correlation:.4f}"
    published = "" if found.published_correlation is None else f" (published {found.published_correlation:.4f})"
    stops = ", ".join(f"{name} {'never' if at is None else f'at {at}'}" for name, at in list(found.stops.items())[:3])
    return f"correlation {correlation}{published}; stops {stops}; {found.seconds:.1f} s"
