"""``suffice run``: how many labels of a labelled table would have been enough."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Final

import numpy as np
import typer
from threadpoolctl import threadpool_limits

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
from suffice.errors import InvalidValueError

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
    as_json: AsJson = False,
) -> None:
    """Find out how many labels of a labelled table would have been enough if they had been bought one by one.

    Example: suffice run houses.csv --target price --ignore address

    With what labels and mistakes cost you: suffice run mails.csv --target spam --label-cost 0.5 --mistake-cost 20

    With another rule: suffice run mails.csv --target spam --rule StabilizingPredictions

    Screening for a rare class: suffice run records.csv --target included --positive yes --recall 95%
    """
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
        wanted = ScreeningRequest(positive, recall, acquisition, growing=batch is None)
        with interruptible("run"):
            screen_table(request, wanted)
        return

    with interruptible("run"):
        output = checked_output(request)
        # Brings scikit-learn, which a wrong option need not wait for; only loaded libraries can be limited to a thread.
        from suffice.learner import simulate

        with threadpool_limits(limits=1):
            job = read_job(request, output.console)
            X_test, y_test = job.test_set
            with labelling_bar(output.console) as progress:
                trace = simulate(
                    job.model,
                    job.pool_features,
                    job.pool_labels,
                    initial=first,
                    steps=(job.labels - first) // size,
                    X_test=X_test,
                    y_test=y_test,
                    acquisition=acquisition,
                    random_share=random_share,
                    batch=size,
                    seed=seed,
                    record=job.rule,
                    watch=_off_share(job),
                    progress=progress,
                )
            write_results(request, found_run(request, job, trace), output)


def _off_share(job: TableJob) -> Callable[[Any], dict[str, float]] | None:
    """Function to record after each step for the tolerance of the rule; None if it has none."""
    X, y = job.test_set
    tolerance = job.rule.tolerance if isinstance(job.rule, LabelWorth) else None
    if tolerance is None or X is None:
        return None
    return lambda model: {OFF_SHARE: float(np.mean(np.abs(model.predict(X) - y) > tolerance))}
