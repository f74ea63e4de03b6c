"""``suffice demo``: a simulated person labels real data, and stops when it is enough."""

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from threadpoolctl import threadpool_limits

from suffice.cli.choices import BoundName, TaskName
from suffice.cli.live import LiveView
from suffice.cli.problems import problem
from suffice.criteria import ErrorStability, Verdict
from suffice.errors import SufficeError
from suffice.experiments.tasks import Task, demo_task
from suffice.report.run_figure import RunCurves, draw_run, require_writable_figure

_DEFAULT_FIGURE = Path("suffice-demo.png")
# A person should see it happen; a file or a pipe need not wait.
_SECONDS_A_LABEL = 0.03

_ERROR_NAME = {"regression": "test error (root mean square)", "classification": "test error (cross entropy)"}


@dataclass(frozen=True)
class _Run:
    """A labelling run to the end of the pool, with the moment at which the rule stopped."""

    task: Task
    n_labelled: list[int]
    errors: list[float]
    verdicts: list[Verdict]
    stop: int | None

    @property
    def last(self) -> int:
        return len(self.verdicts) - 1 if self.stop is None else self.stop


def demo_command(
    task: Annotated[
        TaskName, typer.Option(help="What to predict: a number, or one of two classes.")
    ] = TaskName.regression,
    threshold: Annotated[float, typer.Option(help="Error ratio at which to stop, from 0 to 1.")] = 0.1,
    bound: Annotated[BoundName, typer.Option(help="Bound on the change of error: the paper's, or the tight one.")] = (
        BoundName.paper
    ),
    seed: Annotated[int, typer.Option(help="Seed of the split and of the first labels.", min=0)] = 0,
    figure: Annotated[
        Path | None, typer.Option(help="Where to write the figure (.png, .pdf, .svg).", show_default="suffice-demo.png")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON, and nothing else.")] = False,
) -> None:
    """Watch a simulated person label scikit-learn's diabetes or breast-cancer data until it is enough.

    Example: suffice demo --task classification --threshold 0.05
    """
    rule = ErrorStability(threshold, bound=bound.value)
    path = figure or _DEFAULT_FIGURE
    failure = problem(lambda: require_writable_figure(path), raised=figure is not None)
    # Off a terminal nobody wants lines broken at a width that is not there.
    console = Console(quiet=as_json, highlight=False)
    console.soft_wrap = not console.is_terminal
    rng = np.random.default_rng(seed)
    job = demo_task(task.value, rng)
    try:
        # The fits are small: a second thread would only get in the way of the first, and badly on a busy machine.
        with threadpool_limits(limits=1):
            run = _label(job, rule, rng, LiveView(console, len(job.y_pool), threshold))
    except KeyboardInterrupt:
        console.print("\nInterrupted. Nothing was written; run [bold]suffice demo[/] to start again.")
        raise typer.Exit(1) from None
    _summarise(console, run)
    failure = failure or problem(lambda: draw_run(_curves(run, threshold), path), raised=False)
    console.print(f"No figure: {failure}" if failure else f"Figure: {path}", markup=False)
    if as_json:
        typer.echo(json.dumps(_result(run, threshold, None if failure else path)))
    # Asked for by name, a figure that could not be written is a failure; but only now, with the result shown.
    if failure and figure is not None:
        raise SufficeError(failure)


def _label(task: Task, rule: ErrorStability, rng: np.random.Generator, view: LiveView) -> _Run:
    """Label to the end of the pool, showing it until the rule stops."""
    from suffice.experiments.demo import label_pool  # brings scikit-learn, which `suffice --help` need not wait for

    n_labelled: list[int] = []
    errors: list[float] = []
    verdicts: list[Verdict] = []
    stop: int | None = None
    with view:
        for progress in label_pool(task, rule, rng):
            n_labelled.append(progress.n_labelled)
            errors.append(progress.error)
            if stop is None:
                # After a replay the past is seen with the scales of today; a stop that was not taken stays untaken.
                verdicts = list(progress.verdicts)
                view.show(verdicts)
                stop = len(verdicts) - 1 if progress.verdict.stop else None
                if view.animated:
                    time.sleep(_SECONDS_A_LABEL)
            else:
                verdicts.append(progress.verdict)
    return _Run(task, n_labelled, errors, verdicts, stop)


def _curves(run: _Run, threshold: float) -> RunCurves:
    return RunCurves(
        title=run.task.name,
        n_labelled=run.n_labelled,
        error=run.errors,
        error_name=_ERROR_NAME[run.task.kind],
        value=[v.value if v.value is not None else 1.0 for v in run.verdicts],
        value_name="error ratio",
        threshold=threshold,
        stop=run.stop,
    )


def _result(run: _Run, threshold: float, figure: Path | None) -> dict[str, object]:
    verdict = run.verdicts[run.last]
    return {
        "task": run.task.kind,
        "stopped": run.stop is not None,
        "labels": run.n_labelled[run.last],
        "pool": len(run.task.y_pool),
        "saved": len(run.task.y_pool) - run.n_labelled[run.last],
        "error_at_stop": None if run.stop is None else run.errors[run.last],
        "error_with_all": run.errors[-1],
        "error_name": _ERROR_NAME[run.task.kind],
        "ratio": verdict.value,
        "threshold": threshold,
        "reason": verdict.reason,
        "certificate": str(verdict.certificate),
        "figure": None if figure is None else str(figure),
    }


def _summarise(console: Console, run: _Run) -> None:
    verdict, pool, n = run.verdicts[run.last], len(run.task.y_pool), run.n_labelled[run.last]
    error, best, name = run.errors[run.last], run.errors[-1], _ERROR_NAME[run.task.kind].capitalize()
    if run.stop is None:
        console.print(f"\n[bold]No stop: all {pool} labels are used up, and {verdict.reason}.[/]")
        console.print(f"{name}: {best:.4g} with all labels.")
    else:
        console.print(f"\n[bold]{verdict}[/]")
        console.print(f"Labels saved: {pool - n} of {pool} ({100.0 * (pool - n) / pool:.0f}\u00a0%).")
        change = f"{100.0 * (error - best) / best:+.1f}\u00a0%"
        console.print(f"{name}: {error:.4g} at the stop, {best:.4g} with all labels ({change}).")
    console.print(f"Certificate: {verdict.certificate}")
