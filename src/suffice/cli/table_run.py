"""Runs of ``suffice run`` and ``suffice audit``: read the table, replay the labels, report the result."""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn

from suffice.arguments import real, whole
from suffice.cli.rule_options import ModelName, RuleOptions, TaskName, chosen_rule, require_provided_fields
from suffice.cli.rule_values import RuleValues
from suffice.cli.side_problems import problem
from suffice.criteria import Criterion, ExpectedCost, LabelWorth, Verdict
from suffice.errors import InvalidValueError, SufficeError
from suffice.files import require_writable, write_whole
from suffice.models.factory import (
    MODEL_FAMILIES,
    basis_size,
    chooses_components,
    make_model,
    model_description,
    model_names,
)
from suffice.presentation.messages import (
    RATIO_RULE,
    best_stop_sentence,
    classes_without_labels_sentence,
    labels_saved_sentence,
    run_enough_sentence,
    run_error_sentence,
    run_not_enough_sentence,
    run_wrong_share_sentence,
    with_labels,
)
from suffice.presentation.number_format import count
from suffice.presentation.text_chart import chart
from suffice.report.run_figure import WRONG_SHARE_NAME, RunCurves, draw_run, require_writable_figure
from suffice.tables import Table, read_table
from suffice.tables.table import Kind
from suffice.trace import Trace

_ERROR_NAME = {
    "regression": "test error (root mean square)",
    "classification": "test error (cross entropy)",
}


@dataclass(frozen=True, eq=False)
class RunFinding:
    """A run over a table, and where the rule stopped.

    Attributes:
        title: Which table, and which target.
        table: What was read.
        model: Name of the model.
        pool: Rows that could be labelled.
        initial: Labels before the first step.
        batch: Labels at each step.
        trace: The run.
        rule: The stopping rule.
        verdicts: What it said after each step.
        stop: Index of the first step at which it said stop, or None.
        unmet: Classes of the table of which no label was bought up to the stop, or the end.
        named: Whether the rule was asked for, by its name or by costs.
    """

    title: str
    table: Table
    model: str
    pool: int
    initial: int
    batch: int
    trace: Trace
    rule: Criterion
    verdicts: list[Verdict]
    stop: int | None
    unmet: int = 0
    named: bool = False

    @property
    def last(self) -> int:
        """Index of the step that the result speaks of: the stop, or the end."""
        return len(self.verdicts) - 1 if self.stop is None else self.stop

    @cached_property
    def n_labelled(self) -> list[int]:
        """Labels after each step."""
        return [int(n) for n in self.trace.n_labelled]

    @cached_property
    def ratio(self) -> list[float]:
        """The error ratio after each step."""
        return [1.0 if verdict.value is None else verdict.value for verdict in self.verdicts]

    @cached_property
    def compared(self) -> RuleValues:
        """What the rule compared after each step."""
        return RuleValues.of(self.verdicts)

    @cached_property
    def best(self) -> "Best | None":
        """The best stop in hindsight, where costs and a test set say what that is."""
        rule = self.rule
        if not isinstance(rule, LabelWorth | ExpectedCost) or not self.error or not np.isfinite(self.error).all():
            return None
        # Brings scikit-learn, which a wrong option need not wait for.
        from suffice.recommendation.stopping_costs import CostedRun, cost_curve, optimal_steps

        run, ratio = CostedRun.of(self.trace), rule.error_cost / rule.label_cost
        costs, step = cost_curve(run, ratio), optimal_steps(run, [ratio])[0]
        dearer = float(costs[self.last] - costs[step])
        return Best(self.n_labelled[step], rule.label_cost * dearer, dearer / float(costs[step]))

    @cached_property
    def error(self) -> list[float]:
        """The error of the averaged prediction on the test set after each step; empty without a test set.

        For numbers the root of the mean squared error, for classes the cross entropy in nats.
        """
        error = self.trace.predictive_error
        return [float(e) for e in (np.sqrt(error) if self.table.kind == "regression" else error)]

    @cached_property
    def wrong_share(self) -> list[float]:
        """The share of the test set that is predicted wrong after each step; empty for numbers, or without one."""
        return [float(share) for share in self.trace.wrong_share]

    @property
    def error_name(self) -> str | None:
        """What that error is, or None without a test set."""
        return _ERROR_NAME[self.table.kind] if self.error else None


@dataclass(frozen=True)
class Best:
    """The stop of least cost in hindsight.

    Attributes:
        labels: Where it was.
        cheaper: By how much labels and error together cost less there than at the rule's own stop, or at the end.
        regret: That, as a share of what they cost there; of the error, only what is above the least of the run.
    """

    labels: int
    cheaper: float
    regret: float


def introduce(console: Console, data: Path, target: str, table: Table, about: str) -> None:
    """Tell a person what was read and what was made of it, before the run."""
    rows, features = table.X.shape
    classes = f" ({len(np.unique(table.y))} classes)" if table.kind == "classification" else ""
    console.print(f"{data.name}: {count(rows, 'row')}, {count(features, 'feature')}, target {target!r}", markup=False)
    console.print(f"{table.kind.capitalize()}{classes}; model: {about}", markup=False)
    for note in table.notes:
        console.print(f"- {note}", markup=False)


def summarise(console: Console, found: RunFinding) -> None:
    """Tell a person how it came out."""
    verdict, n, end, pool = found.verdicts[found.last], found.n_labelled[found.last], found.n_labelled[-1], found.pool
    at_end, stopped = with_labels(end, pool), found.stop is not None
    _show_chart(console, found)
    if stopped:
        console.print(f"\n{run_enough_sentence(n, pool, verdict.reason)}", style="bold")
        console.print(labels_saved_sentence(n, pool))
    else:
        forecast = None if verdict.forecast is None else str(verdict.forecast)
        console.print(f"\n{run_not_enough_sentence(end, pool, verdict.reason, forecast)}", style="bold")
        if end + found.batch <= pool:
            console.print(f"There are {pool} rows to label: look further with --most, or to the end with --most 0.")
    if found.wrong_share:
        wrong = found.wrong_share[found.last] if stopped else None
        console.print(run_wrong_share_sentence(wrong, found.wrong_share[-1], at_end))
    if found.error_name is not None:
        at_stop = found.error[found.last] if stopped else None
        console.print(run_error_sentence(found.error_name, at_stop, found.error[-1], at_end))
    if found.unmet:
        console.print(classes_without_labels_sentence(found.unmet, len(np.unique(found.table.y))))
    if found.best is not None:
        console.print(best_stop_sentence(found.best.labels, found.best.cheaper))
    if verdict.certificate is not None:
        console.print(f"Certificate: {verdict.certificate}", markup=False)


def as_json(found: RunFinding, figure: Path | None, saved_trace: Path | None) -> dict[str, object]:
    """The result as JSON values."""
    verdict, n, forecast = found.verdicts[found.last], found.n_labelled[found.last], found.verdicts[found.last].forecast
    left = (
        None if forecast is None else {name: getattr(forecast, name) for name in ("labels", "low", "high", "coverage")}
    )
    error, stopped = _plain(found.error), found.stop is not None
    wrong = found.wrong_share
    return {
        "task": found.table.kind,
        "model": found.model,
        "acquisition": found.trace.about.get("acquisition"),
        "random_share": found.trace.about.get("random_share", 0.0),
        "rows": len(found.table.y),
        "pool": found.pool,
        "features": found.table.X.shape[1],
        "initial": found.initial,
        "batch": found.batch,
        "stopped": stopped,
        "labels": n,
        "saved": found.pool - n if stopped else 0,
        "wrong_share_at_stop": wrong[found.last] if wrong and stopped else None,
        "wrong_share_at_end": wrong[-1] if wrong else None,
        "error_at_stop": error[found.last] if error and stopped else None,
        "error_at_end": error[-1] if error else None,
        "error_name": found.error_name,
        "accuracy_at_stop": 1.0 - wrong[found.last] if wrong and stopped else None,
        "accuracy_at_end": 1.0 - wrong[-1] if wrong else None,
        "classes_not_met": found.unmet,
        **_judged(found, verdict),
        "threshold": verdict.threshold,
        "reason": verdict.reason,
        "certificate": None if verdict.certificate is None else str(verdict.certificate),
        "forecast": left,
        "notes": list(found.table.notes),
        "figure": None if figure is None else str(figure),
        "saved_trace": None if saved_trace is None else str(saved_trace),
        "curve": {"n_labelled": found.n_labelled, **_judged_curve(found), "wrong_share": wrong, "error": error},
    }


def _judged(found: RunFinding, verdict: Verdict) -> dict[str, object]:
    """Which rule judged, and the number that it compared."""
    if not found.named:
        return {"ratio": verdict.value}
    rule: dict[str, object] = {"rule": {"name": verdict.rule, **found.rule.state_dict()["params"]}}
    best = None if found.best is None else {name: getattr(found.best, name) for name in ("labels", "cheaper", "regret")}
    return {**rule, "best_in_hindsight": best, "value": verdict.value}


def _judged_curve(found: RunFinding) -> dict[str, object]:
    """That number after each step."""
    if not found.named:
        return {"ratio": _plain(found.ratio)}
    return {"value": _plain(found.compared.values), "threshold": _plain(found.compared.thresholds)}


def curves(found: RunFinding) -> RunCurves:
    """The run as the figure takes it."""
    number, ratio = found.compared, found.verdicts[0].rule == RATIO_RULE
    thresholds = number.thresholds if number.threshold is None else number.threshold
    wrong = found.wrong_share
    return RunCurves(
        title=found.title,
        n_labelled=found.n_labelled,
        error=wrong or found.error,
        error_name=WRONG_SHARE_NAME if wrong else found.error_name or "",
        value=found.ratio if ratio else number.values,
        value_name=number.name,
        threshold=thresholds,
        stop=found.stop,
        complete=found.n_labelled[-1] == found.pool,
        scale="ratio" if ratio else "log" if number.log else "linear",
        threshold_name=number.threshold_name,
        error_is_share=bool(wrong),
    )


def _show_chart(console: Console, found: RunFinding) -> None:
    number, width = found.compared, max(20, min(64, console.width - 10))
    if not number.any:
        return
    plain = not console.encoding.lower().startswith("utf")
    first, last = str(found.n_labelled[0]), f"{found.n_labelled[-1]} labels"
    if found.verdicts[0].rule == RATIO_RULE:
        threshold = number.threshold or 0.0
        # What happens far below the threshold is of no interest and would flatten the rest.
        values = [max(value, threshold / 20.0) for value in found.ratio]
        lines = chart(values, threshold, width=width, height=9, plain=plain)
    else:
        lines = number.chart(width=width, height=9, plain=plain)
    console.print(f"\n{number.caption[0].upper()}{number.caption[1:]}", style="dim")
    console.print("\n".join([*lines, f"{'':8}{first}{last:>{width - len(first)}}"]), style="cyan", markup=False)


def _plain(values: Iterable[float]) -> list[float | None]:
    """JSON knows no infinite numbers."""
    return [value if math.isfinite(value) else None for value in values]


Data = Annotated[Path, typer.Argument(metavar="DATA", help="A CSV or Parquet file whose first line names the columns.")]
Target = Annotated[str, typer.Option(metavar="COLUMN", help="The column to predict.", show_default=False)]
Task = Annotated[
    TaskName | None,
    typer.Option(metavar="TASK", help="regression or classification; by the target's values if left out."),
]
Model = Annotated[
    ModelName | None,
    typer.Option(
        help="The model; gp for regression and logistic for classification if left out. dropout is a network for "
        "classes, and needs torch."
    ),
]
Basis = Annotated[
    int | None, typer.Option(help="Bumps that each feature becomes before the model, 0 for none; 10 for ridge, else 0.")
]
Initial = Annotated[int | None, typer.Option(help="Labels before the first step.", show_default="10; 50 for dropout")]
Batch = Annotated[int | None, typer.Option(help="Labels that come at each step.", show_default="1; 5 for dropout")]
Ignore = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN", help="A column to leave out; may be given several times.", show_default=False),
]
Save = Annotated[Path | None, typer.Option(metavar="TRACE.npz", help="Where to save the run, for suffice.Trace.load.")]


@dataclass(frozen=True)
class RunRequest:
    """What a command was asked for; the fields are its options.

    Attributes:
        command: Name of the command, for the default figure.
        rule: What was said of the stopping rule.
        most: Labels to go to at most; 0 for all.
        test: Share of the rows held back to measure the error on; 0 for none.
        seed: Seed of that split, and of a network.
        random_share: Share of the labels that are drawn at random; None for the recommended one.
    """

    command: str
    data: Path
    target: str
    task: TaskName | None
    model: ModelName | None
    basis: int | None
    rule: RuleOptions
    initial: int
    batch: int
    most: int
    ignore: tuple[str, ...]
    figure: Path | None
    save: Path | None
    as_json: bool
    test: float = 0.0
    seed: int = 0
    random_share: float | None = None


@dataclass(frozen=True, eq=False)
class TableJob:
    """A table that is ready to be labelled.

    Attributes:
        table: The table.
        pool: Rows that can be labelled, in the order of the file.
        test: Rows that are held back to measure the error on.
        name: Name of the model.
        model: A model of :mod:`suffice.models`, or a pipeline that ends in one.
        rule: The stopping rule; what it requires is to be recorded.
        labels: Number of labels at which the run ends.
    """

    table: Table
    pool: NDArray[np.intp]
    test: NDArray[np.intp]
    name: ModelName
    model: Any
    rule: Criterion
    labels: int

    @property
    def pool_features(self) -> Any:
        """Features of the pool."""
        return self.table.X[self.pool]

    @property
    def pool_labels(self) -> Any:
        """Labels of the pool."""
        return self.table.y[self.pool]

    @property
    def test_set(self) -> tuple[Any, Any]:
        """Features and labels of the test rows; both None if there are none."""
        return (self.table.X[self.test], self.table.y[self.test]) if len(self.test) else (None, None)


class RunOutput(NamedTuple):
    """Where the results of a run go.

    Attributes:
        console: The console; quiet if JSON was asked for.
        figure: The file of the figure.
        figure_problem: Why there can be no figure; empty if there can.
    """

    console: Console
    figure: Path
    figure_problem: str


def counts(model: ModelName | None, initial: int | None, batch: int | None) -> tuple[int, int]:
    """Labels before the first step, and at each step; what is left out depends on the model."""
    first, size = (50, 5) if model is ModelName.dropout else (10, 1)
    return first if initial is None else initial, size if batch is None else batch


@contextmanager
def interruptible(command: str) -> Iterator[None]:
    """End the command with a message and exit code 1 if it is interrupted."""
    try:
        yield
    except KeyboardInterrupt:
        again = f"Run suffice {command} to start again."
        typer.echo(f"suffice: interrupted; no file was left half-written. {again}", err=True)
        raise typer.Exit(1) from None


def checked_output(request: RunRequest) -> RunOutput:
    """Check the options and the files to write, before anything is read.

    Raises:
        InvalidValueError: An option cannot be used.
        SufficeError: A file that was asked for cannot be written.
    """
    chosen_rule(request.rule)
    _require_counts(request)
    path = request.figure or Path(f"suffice-{request.command}.png")
    failure = problem(lambda: require_writable_figure(path), raised=request.figure is not None)
    if request.save is not None:
        _require_writable_run(request.save)
    console = Console(quiet=request.as_json, highlight=False)
    # Lines are broken only for a terminal.
    console.soft_wrap = not console.is_terminal
    return RunOutput(console, path, failure)


def read_job(request: RunRequest, console: Console) -> TableJob:
    """Read the table, split its rows, choose model and rule, and print what was read.

    Raises:
        InvalidValueError: The table cannot be used, or the options do not fit it.
    """
    task: Kind | None = None if request.task is None else request.task.value
    with progress_bar(console, "reading", BarColumn()):
        table = read_table(
            request.data, request.target, task=task, ignore=request.ignore, ordered=_chooses_components(request)
        )
    pool, test = _split(request, len(table.y))
    name, description, model = chosen_model(table.kind, request, table.y, table.components)
    rule = chosen_rule(request.rule, name)
    require_provided_fields(rule, model, name)
    about = f"{description}; {_about_rows(request, len(pool), len(test))}"
    introduce(console, request.data, request.target, table, about)
    return TableJob(table, pool, test, name, model, rule, labels=min(request.most or len(pool), len(pool)))


def labelling_bar(console: Console) -> AbstractContextManager[Callable[[int, int], None] | None]:
    """A progress bar of the labels of a run; its value is to be called with the steps done and to do."""
    return progress_bar(console, "labelling", BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())


def found_stop(request: RunRequest, job: TableJob, trace: Trace) -> RunFinding:
    """Replay the rule on a run."""
    verdicts = trace.replay(job.rule)
    stop = next((step for step, verdict in enumerate(verdicts) if verdict.stop), None)
    last = len(verdicts) - 1 if stop is None else stop
    return RunFinding(
        title=f"{request.data.name}: {request.target}",
        table=job.table,
        model=job.name.value,
        pool=len(job.pool),
        initial=request.initial,
        batch=request.batch,
        trace=trace,
        rule=job.rule,
        verdicts=verdicts,
        stop=stop,
        unmet=_unmet(job, trace, last) if job.table.kind == "classification" else 0,
        named=request.rule.named,
    )


def write_results(request: RunRequest, finding: RunFinding, output: RunOutput) -> None:
    """Print the summary, draw the figure, save the run, and print JSON if it was asked for.

    Raises:
        SufficeError: A file that was asked for could not be written; the result has been shown by then.
    """
    console, path, failure = output
    summarise(console, finding)
    failure = failure or problem(lambda: write_whole(path, lambda at: draw_run(curves(finding), at)), raised=False)
    console.print(f"No figure: {failure}" if failure else f"Figure: {path}", markup=False)
    unsaved = (
        ""
        if request.save is None
        else problem(lambda: write_whole(Path(request.save or ""), finding.trace.save), raised=False)
    )
    saved = None if request.save is None or unsaved else request.save
    if saved:
        console.print(f"Run saved: {saved}", markup=False)
    if request.as_json:
        typer.echo(json.dumps(as_json(finding, None if failure else path, saved)))
    if failures := [each for each in (failure if request.figure else "", unsaved) if each]:
        raise SufficeError("; ".join(failures))


def _chooses_components(request: RunRequest) -> bool:
    name = request.model or ModelName(model_names("classification")[0])
    # An option that cannot be used is refused when the model is made.
    return MODEL_FAMILIES[name].basis is not None and not request.basis and chooses_components(name)


def chosen_model(
    kind: Kind, request: RunRequest, y: Any, components: Sequence[tuple[int, int]] = ()
) -> tuple[ModelName, str, Any]:
    """Return the model's name, what to call it, and the estimator.

    Raises:
        InvalidValueError: The model that was asked for does not fit the task, or takes no basis.
    """
    name = request.model or ModelName(model_names(kind)[0])
    task = MODEL_FAMILIES[name].task
    if task != kind:
        fitting = " or ".join(f"--model {each}" for each in model_names(kind))
        meaning = "a class" if task == "classification" else "a number"
        raise InvalidValueError(
            f"--model {name} is for {task}, and the task is {kind}; use {fitting}, or --task {task} if the target is "
            f"{meaning}"
        )
    basis = basis_size(name, request.basis, argument="--basis")
    # All classes are known from the start, as they would be to whoever labels.
    classes = np.unique(y).tolist() if kind == "classification" else None
    model = make_model(name, classes=classes, basis=basis, seed=request.seed, components=components)
    return name, model_description(name, basis), model


def _unmet(job: TableJob, trace: Trace, step: int) -> int:
    """Number of classes without a label up to a step."""
    bought = job.pool[np.concatenate([trace.initial, trace.indices[: step + 1].ravel()])]
    return len(np.unique(job.table.y)) - len(np.unique(job.table.y[bought]))


def _about_rows(request: RunRequest, pool: int, test: int) -> str:
    if request.command == "audit":
        return f"{pool} rows in the order of the file"
    return f"{pool} rows to label" + (f" and {test} to measure the error on" if test else "")


def _require_counts(request: RunRequest) -> None:
    initial, batch = whole(request.initial, "--initial", least=1), whole(request.batch, "--batch", least=1)
    whole(request.most, "--most", least=0)
    whole(request.seed, "--seed", least=0)
    real(request.test, "--test", "from 0 (no test set) to below 1", lambda x: 0.0 <= x < 1.0)
    if request.random_share is not None:
        real(request.random_share, "--random-share", "from 0 to 1", lambda x: 0.0 <= x <= 1.0)
    if 0 < request.most < initial + batch:
        least = f"{initial + batch}, for {initial} initial labels and a step of {batch}"
        raise InvalidValueError(f"--most must be 0 (no limit) or at least {least}; not {request.most}")


def _split(request: RunRequest, rows: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return which rows are labelled and which are held back, both in the order of the file."""
    held_back = max(1, round(request.test * rows)) if request.test else 0
    pool = rows - held_back
    if pool < request.initial + request.batch:
        less = f", of which {held_back} are held back for the test: {pool} are left" if held_back else ""
        short = (
            f"fewer than the {request.initial} initial labels"
            if pool < request.initial
            else f"too few for {request.initial} initial labels and a step of {request.batch}"
        )
        remedy = "label more, or lower --initial" + (", --batch or --test" if held_back else " or --batch")
        raise InvalidValueError(f"{request.data} has {rows} rows with a target{less}, {short}; {remedy}")
    # Not the seed alone, from which the run draws its first labels: the two should have nothing to do with each other.
    shuffled = np.random.default_rng([request.seed, 1]).permutation(rows)
    return np.sort(shuffled[held_back:]).astype(np.intp), np.sort(shuffled[:held_back]).astype(np.intp)


@contextmanager
def progress_bar(console: Console, what: str, *columns: ProgressColumn) -> Iterator[Callable[[int, int], None] | None]:
    """A progress bar where there is a terminal with somebody before it; nothing elsewhere."""
    if not console.is_terminal or console.is_dumb_terminal or console.quiet:
        yield None
        return
    with Progress(TextColumn("{task.description}"), *columns, console=console, transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _require_writable_run(path: Path) -> None:
    """Say before a run, rather than after it, what would keep it from being saved."""
    if path.suffix.lower() != ".npz":
        raise InvalidValueError(f"the file {path} to save the run to must end in .npz")
    require_writable(path, "the run")
