"""``suffice demo``: a simulated person labels real data, and stops when it is enough."""

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer
from rich.console import Console
from threadpoolctl import threadpool_limits

from suffice.cli.choices import BoundName, DemoModel, TaskName
from suffice.cli.live import LiveView
from suffice.cli.problems import problem
from suffice.criteria import ErrorStability, Verdict
from suffice.errors import InvalidValueError, SufficeError
from suffice.experiments.tasks import Task, demo_task, digits_task
from suffice.report.run_figure import RunCurves, draw_run, require_writable_figure

if TYPE_CHECKING:
    from suffice.experiments.demo import Progress

_DEFAULT_FIGURE = Path("suffice-demo.png")
# A person should see it happen; a file or a pipe need not wait.
_SECONDS_A_LABEL = 0.03

_ERROR_NAME = {"regression": "test error (root mean square)", "classification": "test error (cross entropy)"}


@dataclass(frozen=True)
class _Run:
    """A labelling run to the end of the pool, with the moment at which the rule stopped."""

    task: Task
    steps: "list[Progress]"
    verdicts: list[Verdict]
    stop: int | None

    @property
    def last(self) -> int:
        return len(self.verdicts) - 1 if self.stop is None else self.stop

    @property
    def n_labelled(self) -> list[int]:
        return [step.n_labelled for step in self.steps]

    @property
    def errors(self) -> list[float]:
        return [step.error for step in self.steps]


def demo_command(
    task: Annotated[
        TaskName | None,
        typer.Option(
            help="What to predict: a number, or a class.", show_default="regression; classification by dropout"
        ),
    ] = None,
    model: Annotated[
        DemoModel, typer.Option(help="A linear model, or a network with dropout (needs torch; half a minute).")
    ] = DemoModel.linear,
    threshold: Annotated[
        float | None,
        typer.Option(help="Error ratio at which to stop, from 0 to 1.", show_default="0.1; 0.2 for dropout"),
    ] = None,
    bound: Annotated[BoundName, typer.Option(help="Bound on the change of error: the paper's, or the tight one.")] = (
        BoundName.paper
    ),
    seed: Annotated[int, typer.Option(help="Seed of the split and of the first labels.", min=0)] = 0,
    figure: Annotated[
        Path | None, typer.Option(help="Where to write the figure (.png, .pdf, .svg).", show_default="suffice-demo.png")
    ] = None,
    page: Annotated[
        bool,
        typer.Option("--page", help="Label handwritten digits yourself, in the browser, in a project suffice-digits."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON, and nothing else.")] = False,
) -> None:
    """Watch a simulated person label scikit-learn's diabetes, breast-cancer or digits data until it is enough.

    Example: suffice demo --task classification --threshold 0.05

    To label yourself: suffice demo --page
    """
    if page:
        _serve_digits(as_json=as_json)
        return
    rule, path = _rule(model, threshold, bound), figure or _DEFAULT_FIGURE
    _require_network(task, model)
    failure = problem(lambda: require_writable_figure(path), raised=figure is not None)
    # Off a terminal nobody wants lines broken at a width that is not there.
    console = Console(quiet=as_json, highlight=False)
    console.soft_wrap = not console.is_terminal
    rng = np.random.default_rng(seed)
    job = digits_task(rng) if model is DemoModel.dropout else demo_task((task or TaskName.regression).value, rng)
    try:
        # The fits are small: a second thread would only get in the way of the first, and badly on a busy machine.
        with threadpool_limits(limits=1):
            run = _label(job, model, rule, rng, LiveView(console, len(job.y_pool), rule.threshold))
    except KeyboardInterrupt:
        typer.echo("\nsuffice: interrupted. Nothing was written; give the same command to start again.", err=True)
        raise typer.Exit(1) from None
    _summarise(console, run)
    failure = failure or problem(lambda: draw_run(_curves(run, rule.threshold), path), raised=False)
    console.print(f"No figure: {failure}" if failure else f"Figure: {path}", markup=False)
    if as_json:
        typer.echo(json.dumps(_result(run, rule.threshold, None if failure else path)))
    # Asked for by name, a figure that could not be written is a failure; but only now, with the result shown.
    if failure and figure is not None:
        raise SufficeError(failure)


def _serve_digits(*, as_json: bool) -> None:
    """Serve the page with images that anybody can label."""
    from suffice.cli.project_options import ProjectOptions
    from suffice.cli.serve import serve_project
    from suffice.experiments.digit_images import DIGITS, write_digits

    folder = Path("suffice-digits")
    write_digits(folder)
    options = ProjectOptions(str(folder), classes=",".join(DIGITS), target="digit", threshold=0.2)
    serve_project(options, ("127.0.0.1", 0), token=False, open_page=not as_json, as_json=as_json)


def _rule(model: DemoModel, threshold: float | None, bound: BoundName) -> ErrorStability:
    """The rule; for a network it is calibrated by one step, as in the paper."""
    if model is DemoModel.linear:
        return ErrorStability(0.1 if threshold is None else threshold, bound=bound.value)
    return ErrorStability(0.2 if threshold is None else threshold, calibration=1, bound=bound.value)


def _require_network(task: TaskName | None, model: DemoModel) -> None:
    """Refuse what a network cannot do before anything is begun."""
    if model is DemoModel.linear:
        return
    if task is TaskName.regression:
        raise InvalidValueError("--model dropout predicts classes; leave --task out, or use --task classification")
    from suffice.models.deep.settings import require_torch

    require_torch()


def _label(task: Task, model: DemoModel, rule: ErrorStability, rng: np.random.Generator, view: LiveView) -> _Run:
    """Label to the end of the pool, showing it until the rule stops."""
    # Brings scikit-learn, which `suffice --help` need not wait for.
    from suffice.experiments import demo

    label = demo.label_pool if model is DemoModel.linear else demo.label_with_network
    steps: list[Progress] = []
    verdicts: list[Verdict] = []
    stop: int | None = None
    with view:
        for progress in label(task, rule, rng):
            steps.append(progress)
            if stop is None:
                # After a replay the past is seen with the scales of today; a stop that was not taken stays untaken.
                verdicts = list(progress.verdicts)
                view.show(verdicts)
                stop = len(verdicts) - 1 if progress.verdict.stop else None
                if view.animated and model is DemoModel.linear:
                    time.sleep(_SECONDS_A_LABEL)
            else:
                verdicts.append(progress.verdict)
                view.go_on(progress.n_labelled)
    return _Run(task, steps, verdicts, stop)


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
        "data": run.task.name,
        "stopped": run.stop is not None,
        "labels": run.n_labelled[run.last],
        "pool": len(run.task.y_pool),
        "saved": len(run.task.y_pool) - run.n_labelled[run.last],
        "error_at_stop": None if run.stop is None else run.errors[run.last],
        "error_with_all": run.errors[-1],
        "accuracy_at_stop": None if run.stop is None else run.steps[run.last].accuracy,
        "accuracy_with_all": run.steps[-1].accuracy,
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
    if run.steps[-1].accuracy is not None:
        stop = "" if run.stop is None else f"{run.steps[run.last].accuracy:.3f} at the stop, "
        console.print(f"Accuracy: {stop}{run.steps[-1].accuracy:.3f} with all labels.")
    console.print(f"Certificate: {verdict.certificate}")
