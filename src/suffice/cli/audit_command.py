"""``suffice audit``: when labelling in this order could have stopped."""

from pathlib import Path
from typing import Annotated

import typer
from threadpoolctl import threadpool_limits

from suffice.cli.rule_options import (
    AsJson,
    Average,
    Bound,
    BoundName,
    CalibrationLabels,
    ErrorCost,
    LabelCost,
    Rule,
    RuleOptions,
    Scale,
    ScaleName,
    Threshold,
)
from suffice.cli.table_run import (
    Basis,
    Batch,
    Data,
    Ignore,
    Initial,
    Model,
    RunRequest,
    Save,
    Target,
    Task,
    checked_output,
    counts,
    found_stop,
    interruptible,
    labelling_bar,
    read_job,
    write_results,
)


def audit_command(
    data: Data,
    target: Target,
    task: Task = None,
    model: Model = None,
    basis: Basis = None,
    error_cost: ErrorCost = None,
    label_cost: LabelCost = None,
    rule: Rule = None,
    threshold: Threshold = None,
    bound: Bound = BoundName.paper,
    average: Average = 1,
    calibration_labels: CalibrationLabels = None,
    scale: Scale = ScaleName.minimum,
    initial: Initial = None,
    batch: Batch = None,
    most: Annotated[int, typer.Option(help="Labels to look at, from the first row on; 0 for all.")] = 5000,
    ignore: Ignore = None,
    figure: Annotated[
        Path | None,
        typer.Option(help="Where to write the figure (.png, .pdf, .svg).", show_default="suffice-audit.png"),
    ] = None,
    save: Save = None,
    as_json: AsJson = False,
) -> None:
    """Find out when the labelling of a table could have stopped; its rows are in the order they were labelled in.

    Example: suffice audit labelled.csv --target spam --task classification

    With two costs: suffice audit labelled.csv --target spam --error-cost 5000 --label-cost 0.1
    """
    first, size = counts(model, initial, batch)
    request = RunRequest(
        command="audit",
        data=data,
        target=target,
        task=task,
        model=model,
        basis=basis,
        rule=RuleOptions(rule, threshold, bound, error_cost, label_cost, average, calibration_labels, scale),
        initial=first,
        batch=size,
        most=most,
        ignore=tuple(ignore or ()),
        figure=figure,
        save=save,
        as_json=as_json,
    )

    with interruptible("audit"):
        output = checked_output(request)
        # Brings scikit-learn, which a wrong option need not wait for; only loaded libraries can be limited to a thread.
        from suffice.learner import audit

        with threadpool_limits(limits=1):
            job = read_job(request, output.console)
            X, y = job.pool_features[: job.labels], job.pool_labels[: job.labels]
            with labelling_bar(output.console) as progress:
                trace = audit(job.model, X, y, initial=first, batch=size, record=job.rule, progress=progress)
            write_results(request, found_stop(request, job, trace), output)
