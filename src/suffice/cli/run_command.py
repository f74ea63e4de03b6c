"""``suffice run``: how many labels of a labelled table would have been enough."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from enum import StrEnum
from importlib import import_module
from os import cpu_count
from pathlib import Path
from typing import Annotated, Any, Final

import numpy as np
import typer
from rich.console import Console
from threadpoolctl import threadpool_limits

from suffice.arguments import whole
from suffice.cli.rule_options import (
    AsJson,
    Average,
    Bound,
    CalibrationLabels,
    ErrorCost,
    LabelCost,
    MistakeCost,
    Rule,
    RuleOptions,
    Scale,
    TargetError,
    Threshold,
    Tolerance,
)
from suffice.cli.run_results import OFF_SHARE, found_run, write_results
from suffice.cli.screening_run import ScreeningRequest, screen_table
from suffice.cli.table_run import (
    BarUpdate,
    Basis,
    Batch,
    Data,
    Ignore,
    Initial,
    Model,
    RunRequest,
    Save,
    TableJob,
    Target,
    Task,
    checked_output,
    counts,
    interruptible,
    labelling_bar,
    read_job,
)
from suffice.criteria import LabelWorth
from suffice.errors import CheckpointError, InvalidValueError, MissingExtraError, SufficeError
from suffice.presentation.text_format import count

_ACQUISITIONS: Final = (
    "variance",
    "variance-reduction",
    "entropy",
    "margin",
    "bald",
    "relevance",
    "batchbald",
    "random",
    "k-centre",
    "order",
)

# Rows of a pool from which on labels are saved without being asked for, and where.
_LARGE_POOL: Final = 1_000_000
_AUTOMATIC: Final = Path("suffice-run.checkpoint")
# Seconds until a scheduler must have answered.
_PATIENCE: Final = 10.0


class Engine(StrEnum):
    """Where a pool is kept and scored."""

    memory = "memory"
    dask = "dask"


def run_command(
    data: Data,
    target: Target,
    task: Task = None,
    model: Model = None,
    basis: Basis = None,
    label_cost: LabelCost = None,
    mistake_cost: MistakeCost = None,
    tolerance: Tolerance = None,
    target_error: TargetError = None,
    error_cost: ErrorCost = None,
    rule: Rule = None,
    threshold: Threshold = None,
    bound: Bound = None,
    average: Average = None,
    calibration_labels: CalibrationLabels = None,
    scale: Scale = None,
    acquisition: Annotated[
        str | None,
        typer.Option(help=f"Which row next: {', '.join(_ACQUISITIONS)}.", autocompletion=lambda: _ACQUISITIONS),
    ] = None,
    random_share: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="Share of the labels, from 0 to 1, that are drawn at random instead.",
            show_default="the recommended one; 0 with --acquisition",
        ),
    ] = None,
    initial: Initial = None,
    batch: Batch = None,
    most: Annotated[
        int | None,
        typer.Option(help="Labels to simulate at most; 0 for the whole pool.", show_default="1000; 0 with --positive"),
    ] = None,
    test: Annotated[float, typer.Option(help="Share of the rows held back to measure the error on.")] = 0.2,
    seed: Annotated[int, typer.Option(help="Seed of the split and of the first labels.")] = 0,
    positive: Annotated[
        str | None,
        typer.Option(
            metavar="CLASS",
            help="Screen the table for this class: the likeliest rows first, until enough of them are found.",
            show_default=False,
        ),
    ] = None,
    recall: Annotated[
        str | None,
        typer.Option(metavar="SHARE", help="With --positive: the share of the class to find.", show_default="95%"),
    ] = None,
    ignore: Ignore = None,
    figure: Annotated[
        Path | None, typer.Option(help="Where to write the figure (.png, .pdf, .svg).", show_default="suffice-run.png")
    ] = None,
    save: Save = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Where to save the labels during the run; the same command continues from there.",
            show_default="suffice-run.checkpoint for large pools",
        ),
    ] = None,
    engine: Annotated[
        Engine | None,
        typer.Option(
            metavar="ENGINE",
            help="Where the pool is kept and scored: memory, or dask for the workers of a Dask cluster.",
            show_default="memory",
        ),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(help="With --engine dask: workers on this machine.", show_default="one for each processor"),
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="With --engine dask: join the cluster of this scheduler instead, such as tcp://10.0.0.1:8786.",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Find out how many labels of a labelled table would have been enough if they had been bought one by one.

    Example: suffice run houses.csv --target price --ignore address

    With what labels and mistakes cost you: suffice run mails.csv --target spam --label-cost 0.5 --mistake-cost 20

    With another rule: suffice run mails.csv --target spam --rule StabilizingPredictions

    Screening for a rare class: suffice run records.csv --target included --positive yes --recall 95%

    A large pool on four workers: suffice run big.parquet --target y --acquisition variance --engine dask --workers 4
    """
    on_workers = _on_workers(engine, workers, scheduler)
    if positive is None and recall is not None:
        raise InvalidValueError("--recall is for screening: give --positive CLASS too, the class that is looked for")
    first, size = counts(model, initial, batch)
    request = RunRequest(
        command="run",
        data=data,
        target=target,
        task=task,
        model=model,
        basis=basis,
        rule=RuleOptions(
            rule,
            threshold,
            bound,
            error_cost,
            label_cost,
            average,
            calibration_labels,
            scale,
            mistake_cost,
            tolerance,
        ),
        initial=first,
        batch=size,
        most=(1000 if positive is None else 0) if most is None else most,
        ignore=tuple(ignore or ()),
        figure=figure,
        save=save,
        as_json=as_json,
        test=test,
        seed=seed,
        random_share=random_share,
        target_error=target_error,
    )
    if positive is not None:
        if on_workers or checkpoint is not None:
            given = "--checkpoint" if checkpoint is not None else "--engine dask"
            raise InvalidValueError(f"{given} cannot be combined with --positive; leave one of them out")
        wanted = ScreeningRequest(positive, recall, acquisition, growing=batch is None)
        with interruptible("run"):
            screen_table(request, wanted)
        return

    saved = _AUTOMATIC if checkpoint is None and on_workers else checkpoint
    with interruptible("run"), ExitStack() as stack:
        output = checked_output(request)
        # Brings scikit-learn, which a wrong option need not wait for; only loaded libraries can be limited to a thread.
        from suffice.learner import simulate

        stack.enter_context(threadpool_limits(limits=1))
        job = read_job(request, output.console)
        X: Any = job.pool_features
        if on_workers:
            _require_able(job, acquisition)
            from suffice.engines.worker_rows import rows_on_workers

            X = rows_on_workers(stack.enter_context(_client(workers, scheduler, output.console)), X)
        if saved is None and len(job.pool) >= _LARGE_POOL:
            saved = _AUTOMATIC
        X_test, y_test = job.test_set

        def run(progress: BarUpdate | None) -> Any:
            return simulate(
                job.model,
                X,
                job.pool_labels,
                initial=first,
                steps=(job.labels - first) // size,
                X_test=X_test,
                y_test=y_test,
                acquisition=acquisition,
                random_share=random_share,
                batch=size,
                seed=seed,
                checkpoint=saved,
                record=job.rule,
                watch=_off_share(job),
                progress=progress,
            )

        with interruptible("run", saved):
            try:
                with labelling_bar(output.console) as progress:
                    trace = run(progress)
            except CheckpointError:
                if checkpoint is not None:
                    raise
                # It was saved without being asked for, by a run that is not this one.
                _AUTOMATIC.unlink()
                with labelling_bar(output.console) as progress:
                    trace = run(progress)
        write_results(request, found_run(request, job, trace, X), output)
        if checkpoint is None and saved is not None:
            saved.unlink(missing_ok=True)


def _on_workers(engine: Engine | None, workers: int | None, scheduler: str | None) -> bool:
    """Whether the pool is on the workers of a Dask cluster.

    Raises:
        InvalidValueError: The options do not fit each other.
    """
    if workers is not None:
        whole(workers, "--workers", least=1)
        if scheduler is not None:
            raise InvalidValueError(
                "--workers starts workers here, and --scheduler joins others; leave one of them out"
            )
    if scheduler is None and workers is None:
        return engine is Engine.dask
    if engine is Engine.memory or (engine is None and workers is not None):
        given = "--workers" if scheduler is None else "--scheduler"
        raise InvalidValueError(f"{given} is for --engine dask: give that too, or leave {given} out")
    return True


def _require_able(job: TableJob, acquisition: str | None) -> None:
    """Refuse a model or an acquisition that cannot use workers, before any is started."""
    from suffice.learner.backend import backend_type
    from suffice.learner.prepare import final_estimator

    backend = backend_type(final_estimator(job.model))
    if not backend.worker_acquisitions:
        raise InvalidValueError(
            f"--engine dask is for --model gp and --model logistic, and the model is {job.name.value}; leave --engine "
            "out, and the pool is kept in memory"
        )
    if acquisition is not None and acquisition not in backend.worker_acquisitions:
        known = " or ".join(f"--acquisition {name}" for name in sorted(backend.worker_acquisitions))
        raise InvalidValueError(f"--acquisition {acquisition} cannot use --engine dask; give {known}")


@contextmanager
def _client(workers: int | None, scheduler: str | None, console: Console) -> Iterator[Any]:
    """A client of a Dask cluster: of the scheduler that is named, or of workers that are started here.

    Raises:
        MissingExtraError: Dask's package ``distributed`` is not installed.
        SufficeError: No scheduler answers.
    """
    try:
        distributed: Any = import_module("distributed")
    except ImportError:
        raise MissingExtraError("distributed", "dask", "--engine dask") from None
    if scheduler is not None:
        try:
            client = distributed.Client(scheduler, timeout=_PATIENCE, set_as_default=False)
        except (OSError, ValueError) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise SufficeError(
                f"--scheduler {scheduler}: no Dask scheduler answers there ({reason}); start one with dask scheduler, "
                "and give the address that it prints"
            ) from None
        with client:
            console.print(f"Joined the Dask cluster at {scheduler}.", markup=False)
            yield client
        return
    size = workers or cpu_count() or 1
    from suffice.engines.worker_rows import local_client

    with local_client(size) as client:
        console.print(f"Started a Dask cluster of {count(size, 'worker')} on this machine.", markup=False)
        yield client


def _off_share(job: TableJob) -> Callable[[Any], dict[str, float]] | None:
    """Function to record after each step for the tolerance of the rule; None if it has none."""
    X, y = job.test_set
    tolerance = job.rule.tolerance if isinstance(job.rule, LabelWorth) else None
    if tolerance is None or X is None:
        return None
    return lambda model: {OFF_SHARE: float(np.mean(np.abs(model.predict(X) - y) > tolerance))}
