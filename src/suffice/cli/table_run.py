"""Input of ``suffice run`` and ``suffice audit``: options, table, model and rule."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple, Protocol

import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from suffice.arguments import real, whole
from suffice.cli.json_output import tell_error
from suffice.cli.rule_options import (
    ModelName,
    RuleOptions,
    RunModelName,
    TaskName,
    chosen_rule,
    figure_option,
    problem,
    require_provided_fields,
    target_error,
)
from suffice.cli.settings_options import Before
from suffice.criteria import Criterion
from suffice.errors import InvalidValueError, NotEnoughMemoryError
from suffice.files import require_writable
from suffice.models.factory import (
    MODEL_FAMILIES,
    DefaultModel,
    basis_size,
    chooses_components,
    default_model,
    make_model,
    model_description,
    model_names,
)
from suffice.presentation.run_words import interrupted_sentence, memory_sentence
from suffice.presentation.text_format import count
from suffice.report.figures import require_writable_figure
from suffice.tables import Table, read_table
from suffice.tables.table import Kind

# Size in bytes from which reading a file takes seconds.
_LARGE_FILE: Final = 10_000_000
# Copies of a table in memory while it becomes features: the file, its columns, those in use, and the features.
_COPIES: Final = 5

Initial = Annotated[int | None, typer.Option(help="Labels before the first step.", show_default="10; 50 for dropout")]
Batch = Annotated[int | None, typer.Option(help="Labels per step.", show_default="1; 5 for dropout")]
Ignore = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN", help="A column to leave out; may be given several times.", show_default=False),
]


@dataclass(frozen=True)
class TableOptions:
    """Options about the table."""

    data: Annotated[
        Path,
        typer.Argument(
            metavar="DATA",
            help="A table: CSV, Excel, JSON lines or Parquet. The first line of a CSV file or row of a sheet names "
            "the columns.",
        ),
    ]
    target: Annotated[str, typer.Option(metavar="COLUMN", help="The column to predict.", show_default=False)]
    task: Annotated[
        TaskName | None,
        typer.Option(metavar="TASK", help="regression or classification; by the target's values if left out."),
    ] = None
    ignore: Annotated[Ignore, Before("figure")] = None


Basis = Annotated[
    int | None,
    typer.Option(help="Number of radial basis functions per feature, 0 for none; 10 for ridge, else 0."),
]
_DEFAULTS: Final = (
    "gp for regression and logistic for classification, components with more than 1000 weights (columns x classes),"
)
_MODEL_KINDS: Final = "forest and boosting are trees; dropout is a network for classes, and needs torch."


@dataclass(frozen=True)
class ModelOptions:
    """Options about the model."""

    model: Annotated[
        ModelName | None,
        typer.Option(help=f"The model; {_DEFAULTS} if left out. {_MODEL_KINDS}"),
    ] = None
    basis: Basis = None


@dataclass(frozen=True)
class RunModelOptions:
    """Options of ``suffice run`` about the model."""

    model: Annotated[
        RunModelName | None,
        typer.Option(
            help=f"The model; {_DEFAULTS} if left out. auto, the default with "
            f"--of all without --positive: the model for classes that is best on the labels so far. {_MODEL_KINDS}",
        ),
    ] = None
    basis: Basis = None

    @property
    def chosen(self) -> ModelOptions:
        """The same options, without a model for auto."""
        return ModelOptions(None if self.model in (None, "auto") else ModelName(self.model), self.basis)


@dataclass(frozen=True)
class OutputOptions:
    """Options about the files to write."""

    figure: Annotated[Path | None, figure_option("run")] = None
    save: Annotated[
        Path | None, typer.Option(metavar="TRACE.npz", help="Where to save the run, for suffice.Trace.load.")
    ] = None


@dataclass(frozen=True)
class RunRequest:
    """A run or an audit of a table, with validated options.

    Attributes:
        command: Name of the command, for the default figure.
        table: Options about the table.
        model: Options about the model.
        rule: Options about the stopping rule.
        output: Files to write.
        initial: Labels before the first step.
        batch: Labels per step.
        most: Labels to go to at most; 0 for all.
        as_json: Whether the result is printed as JSON.
        test: Share of the rows held back to measure the error on; 0 for none.
        seed: Seed of that split, and of a network.
        random_share: Share of the labels that are drawn at random; None for the recommended one.
        to_goal: Whether a goal for all labels decides when to stop. All rows can be labelled, and without a model by
            name several are compared, except in a screening.
        screens: Whether the table is screened for a class.
    """

    command: str
    table: TableOptions
    model: ModelOptions
    rule: RuleOptions
    output: OutputOptions
    initial: int
    batch: int
    most: int
    as_json: bool
    test: float = 0.0
    seed: int = 0
    random_share: float | None = None
    to_goal: bool = False
    screens: bool = False


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
        at_most: The target error, or None.
    """

    table: Table
    pool: NDArray[np.intp]
    test: NDArray[np.intp]
    name: str
    model: Any
    rule: Criterion
    labels: int
    at_most: float | None = None

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
    """Destinations of the results of a run.

    Attributes:
        console: The console; quiet if JSON was asked for.
        figure: The file of the figure.
        figure_problem: Why there can be no figure; empty if there can.
    """

    console: Console
    figure: Path
    figure_problem: str


def counts(model: ModelName | None, initial: int | None, batch: int | None) -> tuple[int, int]:
    """Number of labels before the first step, and at each step; the defaults depend on the model."""
    # Each step of a network or of trees costs a fit.
    refits = model is not None and MODEL_FAMILIES[model].estimator
    first, size = (50, 5) if model == "dropout" else (10, 5 if refits else 1)
    return first if initial is None else initial, size if batch is None else batch


@contextmanager
def interruptible(command: str, checkpoint: Path | None = None) -> Iterator[None]:
    """End the command with a message and exit code 1 if it is interrupted.

    Args:
        command: Its name.
        checkpoint: The file that the labels so far are saved in, if there is one.
    """
    try:
        yield
    except KeyboardInterrupt:
        if checkpoint is not None and checkpoint.exists():
            sentence = interrupted_sentence(str(checkpoint))
        else:
            sentence = f"interrupted; no file was left half-written. Run suffice {command} to start again."
        raise typer.Exit(tell_error(sentence, "interrupted")) from None


def checked_output(request: RunRequest) -> RunOutput:
    """Check the options and the files to write, before anything is read.

    Raises:
        InvalidValueError: An option cannot be used.
        SufficeError: A file that was asked for cannot be written.
    """
    chosen_rule(request.rule)
    target_error(request.rule.at_most, None if request.table.task is None else request.table.task.value)
    _require_counts(request)
    path = request.output.figure or Path(f"suffice-{request.command}.png")
    failure = problem(lambda: require_writable_figure(path), raised=request.output.figure is not None)
    if request.output.save is not None:
        _require_writable_run(request.output.save)
    console = Console(quiet=request.as_json, highlight=False)
    # Lines are broken only for a terminal.
    console.soft_wrap = not console.is_terminal
    return RunOutput(console, path, failure)


def read_job(request: RunRequest, console: Console) -> TableJob:
    """Read the table, split its rows, choose model and rule, and print what was read.

    Raises:
        InvalidValueError: The table cannot be used, or the options do not fit it.
    """
    task: Kind | None = None if request.table.task is None else request.table.task.value
    _require_memory(request.table.data)
    size = request.table.data.stat().st_size if request.table.data.is_file() else 0
    if size > _LARGE_FILE:
        console.print(f"Reading {request.table.data.name}, {size / 1e6:,.0f} MB.", markup=False)
    with progress_bar(console, "reading", BarColumn(), TimeElapsedColumn()):
        table = read_table(
            request.table.data,
            request.table.target,
            task=task,
            ignore=tuple(request.table.ignore or ()),
            ordered=_chooses_components(request),
        )
    pool, test = _split(request, len(table.y))
    name, description, model, reason = chosen_model(table, request)
    if reason:
        table = replace(table, notes=(*table.notes, reason))
    known = None if name == "auto" else ModelName(name)
    rule, at_most = chosen_rule(request.rule, known, table.kind), target_error(request.rule.at_most, table.kind)
    if known is not None and not request.to_goal:
        require_provided_fields(rule, model, known)
    about = f"{description}; {_about_rows(request, len(pool), len(test))}"
    introduce(console, request.table.data, request.table.target, table, about)
    labels = min(request.most or len(pool), len(pool))
    if request.command == "run" and not request.to_goal:
        first = f"{request.initial:,} at random, then {request.batch:,} at each step"
        console.print(f"It simulates up to {count(labels, 'label')}: {first}.", markup=False)
    return TableJob(table, pool, test, name, model, rule, labels=labels, at_most=at_most)


def _require_memory(data: Path) -> None:
    """Raise an error before a Parquet file is read if it exceeds the memory.

    Raises:
        NotEnoughMemoryError: It does not fit; the message has the figures.
    """
    if data.suffix.lower() not in (".parquet", ".pq") or not data.is_file():
        return
    try:
        metadata = import_module("pyarrow.parquet").ParquetFile(data).metadata
    except (ImportError, OSError, ValueError):
        # The reader reports what is wrong.
        return
    # Imported after the options are validated, because it loads scikit-learn.
    from suffice.engines.disk_rows import figure, free_memory

    rows, columns = metadata.num_rows, metadata.num_columns
    needed, free = _COPIES * 8 * rows * columns, free_memory()
    if needed > free:
        raise NotEnoughMemoryError(memory_sentence(data.name, (rows, columns), figure(needed), figure(free)))


def introduce(console: Console, data: Path, target: str, table: Table, about: str) -> None:
    """Print what was read and how it is used, before the run."""
    rows, features = table.X.shape
    classes = f" ({len(np.unique(table.y))} classes)" if table.kind == "classification" else ""
    console.print(f"{data.name}: {count(rows, 'row')}, {count(features, 'feature')}, target {target!r}", markup=False)
    console.print(f"{table.kind.capitalize()}{classes}; model: {about}", markup=False)
    for note in table.notes:
        console.print(f"- {note}", markup=False)


class BarUpdate(Protocol):
    """Sets how far a progress bar is."""

    def __call__(self, done: int, total: int, what: str | None = None) -> None:
        """Show a number of steps done of a total, 0 if it is unknown, and what is done, if that has changed."""


def labelling_bar(console: Console, what: str = "labelling") -> AbstractContextManager[BarUpdate | None]:
    """A progress bar of the labels of a run; its value is to be called with the steps done and to do."""
    return progress_bar(console, what, BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())


def _chooses_components(request: RunRequest) -> bool:
    name = request.model.model or ModelName(model_names("classification")[0])
    # An option that cannot be used is refused when the model is made.
    return MODEL_FAMILIES[name].basis is not None and not request.model.basis and chooses_components(name)


class ChosenModel(NamedTuple):
    """The model of a run.

    Attributes:
        name: Its name.
        description: What to call it.
        model: The estimator, or a choice between several.
        reason: Why it is not the usual one, if none was named; may be empty.
    """

    name: str
    description: str
    model: Any
    reason: str = ""


def chosen_model(table: Table, request: RunRequest) -> ChosenModel:
    """Return the model that was asked for, or that for the task, the columns and the classes.

    Raises:
        InvalidValueError: The model that was asked for does not fit the task, or takes no basis.
    """
    kind, y, components = table.kind, table.y, table.components
    compares = request.to_goal and not request.screens and kind == "classification"
    usual = DefaultModel(model_names(kind)[0])
    if not request.model.basis:
        n_classes = len(np.unique(y)) if kind == "classification" else 0
        usual = default_model(kind, n_features=table.X.shape[1], n_classes=n_classes, components=components)
    if compares and request.model.model is None and not request.model.basis:
        return _chosen_by_labels(request, table, usual.reason)
    name = request.model.model or ModelName(usual.name)
    if kind not in MODEL_FAMILIES[name].tasks:
        (task,) = MODEL_FAMILIES[name].tasks
        fitting = " or ".join(f"--model {other}" for other in model_names(kind))
        meaning = "a class" if task == "classification" else "a number"
        raise InvalidValueError(
            f"--model {name} is for {task}, and the task is {kind}; use {fitting}, or --task {task} if the target is "
            f"{meaning}"
        )
    basis = basis_size(name, request.model.basis, argument="--basis")
    # All classes are known from the start, as they would be to an annotator.
    classes = np.unique(y).tolist() if kind == "classification" else None
    ordered = components if chooses_components(name, basis) else ()
    model = make_model(name, task=kind, classes=classes, basis=basis, seed=request.seed, components=ordered)
    reason = "" if request.model.model else usual.reason
    return ChosenModel(name, model_description(name, basis), model, reason)


def _chosen_by_labels(request: RunRequest, table: Table, reason: str) -> ChosenModel:
    """The models that are compared on the labels so far."""
    # Imported after the options are validated, because it loads scikit-learn.
    from suffice.learner.model_choice import ModelChoice

    classes, width = np.unique(table.y).tolist(), table.X.shape[1]
    choice = ModelChoice.of_classes(classes, n_features=width, components=table.components, seed=request.seed)
    names = ", ".join(choice.names)
    return ChosenModel("auto", f"the best of {len(choice.names)} on the labels so far ({names})", choice, reason)


def _about_rows(request: RunRequest, pool: int, test: int) -> str:
    if request.command == "audit":
        return f"{pool:,} rows in the order of the file"
    return f"{pool:,} rows to label" + (f" and {test:,} to measure the error on" if test else "")


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
    """Return the rows to label and the test rows, both in the order of the file."""
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
        raise InvalidValueError(f"{request.table.data} has {rows} rows with a target{less}, {short}; {remedy}")
    # Another seed than that of the first labels of the run, so that both draws are independent.
    shuffled = np.random.default_rng([request.seed, 1]).permutation(rows)
    return np.sort(shuffled[held_back:]).astype(np.intp), np.sort(shuffled[:held_back]).astype(np.intp)


@contextmanager
def progress_bar(console: Console, what: str, *columns: ProgressColumn) -> Iterator[BarUpdate | None]:
    """A progress bar on an interactive terminal; otherwise nothing."""
    if not console.is_terminal or console.is_dumb_terminal or console.quiet:
        yield None
        return
    with Progress(TextColumn("{task.description}"), *columns, console=console, transient=True) as bar:
        task = bar.add_task(what, total=None)

        def update(done: int, total: int, what: str | None = None) -> None:
            bar.update(task, completed=done, total=total or None, description=what)

        yield update


def _require_writable_run(path: Path) -> None:
    """Raise an error before a run if it could not be saved."""
    if path.suffix.lower() != ".npz":
        raise InvalidValueError(f"the file {path} to save the run to must end in .npz")
    require_writable(path, "the run")


def class_named(name: str, job: TableJob, target: str, option: str = "--positive") -> Any:
    """The class of a name that an option gives, as the table has it.

    Raises:
        InvalidValueError: The target is a number, or no row has the class.
    """
    if job.table.kind != "classification":
        raise InvalidValueError(
            f"{option} is a class, and the target {target!r} is a number; use --task classification if its numbers "
            "are classes"
        )
    classes = np.unique(job.table.y).tolist()
    by_name = {str(value): value for value in classes}
    if name not in by_name:
        near = get_close_matches(name, list(by_name), n=1, cutoff=0.6)
        guess = f" Did you mean {near[0]!r}?" if near else ""
        more = ", ..." if len(by_name) > 10 else ""
        raise InvalidValueError(
            f"{option} must be a class of the column {target!r}, not {name!r}.{guess} The file has "
            f"{', '.join(repr(other) for other in list(by_name)[:10])}{more}"
        )
    return by_name[name]
