"""What ``suffice run`` and ``suffice audit`` share: table read, model chosen, labels replayed, result told."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn
from threadpoolctl import threadpool_limits

from suffice.arguments import real, whole
from suffice.cli.choices import ModelName, TaskName
from suffice.cli.problems import problem
from suffice.cli.rule_options import RuleOptions, chosen_rule, require_provided_fields
from suffice.cli.table_summary import RunFinding, as_json, curves, introduce, summarise
from suffice.criteria import Criterion
from suffice.data import Table, read_table
from suffice.data.table import Kind
from suffice.errors import InvalidValueError, SufficeError
from suffice.files import require_writable, write_whole
from suffice.models.factory import MODEL_FAMILIES, basis_size, make_model, model_description, model_names
from suffice.report.run_figure import draw_run, require_writable_figure
from suffice.trace import Trace

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
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON, and nothing else.")]


@dataclass(frozen=True)
class Order:
    """What a command was asked for; the fields are its options.

    Attributes:
        command: Name of the command, for the default figure.
        rule: What was said of the stopping rule.
        most: Labels to go to at most; 0 for all.
        test: Share of the rows held back to measure the error on; 0 for none.
        seed: Seed of that split, and of a network.
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


@dataclass(frozen=True)
class Job:
    """What there is to label.

    Attributes:
        model: A model of :mod:`suffice.models`, or a pipeline that ends in one.
        X: The pool.
        y: Its labels.
        test: Test inputs and labels; both None where there are none.
        rule: The stopping rule, whose needs are to be recorded.
        labels: How many labels to go to.
        progress: To be called with the steps done and to do, or None.
    """

    model: Any
    X: Any
    y: Any
    test: tuple[Any, Any]
    rule: Criterion
    labels: int
    progress: Callable[[int, int], None] | None


def counts(model: ModelName | None, initial: int | None, batch: int | None) -> tuple[int, int]:
    """Labels before the first step, and at each step; what is left out depends on the model."""
    first, size = (50, 5) if model is ModelName.dropout else (10, 1)
    return first if initial is None else initial, size if batch is None else batch


def conduct(order: Order, label: Callable[[Job], Trace]) -> None:
    """Read the table, have it labelled, and tell the result in the ways that were asked for.

    Raises:
        InvalidValueError: An option or the table cannot be used.
        SufficeError: A file that was asked for cannot be written.
    """
    try:
        _conduct(order, label)
    except KeyboardInterrupt:
        again = f"Run suffice {order.command} to start again."
        typer.echo(f"suffice: interrupted; no file was left half-written. {again}", err=True)
        raise typer.Exit(1) from None


def _conduct(order: Order, label: Callable[[Job], Trace]) -> None:
    chosen_rule(order.rule)  # refuses a bad one before anything is read
    _require_counts(order)
    path = order.figure or Path(f"suffice-{order.command}.png")
    failure = problem(lambda: require_writable_figure(path), raised=order.figure is not None)
    if order.save is not None:
        _require_writable_run(order.save)
    # Off a terminal nobody wants lines broken at a width that is not there.
    console = Console(quiet=order.as_json, highlight=False)
    console.soft_wrap = not console.is_terminal
    # A second thread gets in the way of the first where fits are small.
    with threadpool_limits(limits=1):
        finding = _find(order, label, console)
    summarise(console, finding)
    failure = failure or problem(lambda: write_whole(path, lambda at: draw_run(curves(finding), at)), raised=False)
    console.print(f"No figure: {failure}" if failure else f"Figure: {path}", markup=False)
    unsaved = (
        ""
        if order.save is None
        else problem(lambda: write_whole(Path(order.save or ""), finding.trace.save), raised=False)
    )
    saved = None if order.save is None or unsaved else order.save
    if saved:
        console.print(f"Run saved: {saved}", markup=False)
    if order.as_json:
        typer.echo(json.dumps(as_json(finding, None if failure else path, saved)))
    # Asked for by name, a file that could not be written is a failure; but only now, with the result shown.
    if failures := [each for each in (failure if order.figure else "", unsaved) if each]:
        raise SufficeError("; ".join(failures))


def chosen_model(kind: Kind, order: Order, y: Any) -> tuple[ModelName, str, Any]:
    """Return the model's name, what to call it, and the estimator.

    Raises:
        InvalidValueError: The model that was asked for does not fit the task, or takes no basis.
    """
    name = order.model or ModelName(model_names(kind)[0])
    task = MODEL_FAMILIES[name].task
    if task != kind:
        fitting = " or ".join(f"--model {each}" for each in model_names(kind))
        meaning = "a class" if task == "classification" else "a number"
        raise InvalidValueError(
            f"--model {name} is for {task}, and the task is {kind}; use {fitting}, or --task {task} if the target is "
            f"{meaning}"
        )
    basis = basis_size(name, order.basis, argument="--basis")
    # All classes are known from the start, as they would be to whoever labels.
    classes = np.unique(y).tolist() if kind == "classification" else None
    return name, model_description(name, basis), make_model(name, classes=classes, basis=basis, seed=order.seed)


def _find(order: Order, label: Callable[[Job], Trace], console: Console) -> RunFinding:
    task: Kind | None = None if order.task is None else order.task.value
    with _bar(console, "reading", BarColumn()):
        table = read_table(order.data, order.target, task=task, ignore=order.ignore)
    pool, test = _split(order, len(table.y))
    name, words, model = chosen_model(table.kind, order, table.y)
    rule = chosen_rule(order.rule, name)
    require_provided_fields(rule, model, name)
    introduce(console, order.data, order.target, table, f"{words}; {_about_rows(order, len(pool), len(test))}")
    held_back = (table.X[test], table.y[test]) if len(test) else (None, None)
    labels = min(order.most or len(pool), len(pool))
    columns = BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with _bar(console, "labelling", *columns) as progress:
        trace = label(Job(model, table.X[pool], table.y[pool], held_back, rule, labels, progress))
    verdicts = trace.replay(rule)
    stop = next((step for step, verdict in enumerate(verdicts) if verdict.stop), None)
    at = sorted({len(verdicts) - 1 if stop is None else stop, len(verdicts) - 1})
    accuracy = _accuracies(model, table, (pool, test), trace, at) if table.kind == "classification" else []
    return RunFinding(
        title=f"{order.data.name}: {order.target}",
        table=table,
        model=name.value,
        pool=len(pool),
        initial=order.initial,
        batch=order.batch,
        trace=trace,
        rule=rule,
        verdicts=verdicts,
        stop=stop,
        accuracy=accuracy if len(test) else [],
        unmet=_unmet(table, pool, trace, at[0]) if table.kind == "classification" else 0,
        named=order.rule.named,
    )


def _unmet(table: Table, pool: Any, trace: Trace, step: int) -> int:
    """Classes of which no label was bought up to a step."""
    return len(np.unique(table.y)) - len(np.unique(table.y[_bought(pool, trace, step)]))


def _bought(pool: Any, trace: Trace, step: int) -> Any:
    """Rows of the table that were labelled up to a step."""
    return pool[np.concatenate([trace.initial, trace.indices[: step + 1].ravel()])]


def _accuracies(model: Any, table: Table, rows: tuple[Any, Any], trace: Trace, steps: list[int]) -> list[float]:
    """Share of the test rows whose class is predicted right after each of some steps."""
    if "accuracy" in trace.measures:
        return [float(trace.measures["accuracy"][step]) for step in steps]
    return [_accuracy(model, table, rows, trace, step) for step in steps]


def _accuracy(model: Any, table: Table, rows: tuple[Any, Any], trace: Trace, step: int) -> float:
    """Share of the test rows whose class is predicted right, with the labels bought up to a step."""
    from sklearn.base import clone

    pool, test = rows
    if not len(test):
        return 0.0
    bought = _bought(pool, trace, step)
    fitted = clone(model).fit(table.X[bought], table.y[bought])
    return float(np.mean(fitted.predict(table.X[test]) == table.y[test]))


def _about_rows(order: Order, pool: int, test: int) -> str:
    if order.command == "audit":
        return f"{pool} rows in the order of the file"
    return f"{pool} rows to label" + (f" and {test} to measure the error on" if test else "")


def _require_counts(order: Order) -> None:
    initial, batch = whole(order.initial, "--initial", least=1), whole(order.batch, "--batch", least=1)
    whole(order.most, "--most", least=0)
    whole(order.seed, "--seed", least=0)
    real(order.test, "--test", "from 0 (no test set) to below 1", lambda x: 0.0 <= x < 1.0)
    if 0 < order.most < initial + batch:
        least = f"{initial + batch}, for {initial} initial labels and a step of {batch}"
        raise InvalidValueError(f"--most must be 0 (no limit) or at least {least}; not {order.most}")


def _split(order: Order, rows: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return which rows are labelled and which are held back, both in the order of the file."""
    held_back = max(1, round(order.test * rows)) if order.test else 0
    pool = rows - held_back
    if pool < order.initial + order.batch:
        less = f", of which {held_back} are held back for the test: {pool} are left" if held_back else ""
        short = (
            f"fewer than the {order.initial} initial labels"
            if pool < order.initial
            else f"too few for {order.initial} initial labels and a step of {order.batch}"
        )
        remedy = "label more, or lower --initial" + (", --batch or --test" if held_back else " or --batch")
        raise InvalidValueError(f"{order.data} has {rows} rows with a target{less}, {short}; {remedy}")
    # Not the seed alone, from which the run draws its first labels: the two should have nothing to do with each other.
    shuffled = np.random.default_rng([order.seed, 1]).permutation(rows)
    return np.sort(shuffled[held_back:]).astype(np.intp), np.sort(shuffled[:held_back]).astype(np.intp)


@contextmanager
def _bar(console: Console, what: str, *columns: ProgressColumn) -> Iterator[Callable[[int, int], None] | None]:
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
