"""``suffice audit``: when labelling in this order could have stopped."""

import time
from pathlib import Path
from typing import Annotated, Any, Final

import typer
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
from suffice.cli.run_results import found_audit, write_results
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
    interruptible,
    labelling_bar,
    read_job,
)

# Other orders that are tried, and the seconds that they may take unless they are asked for.
_ORDERS: Final = 5
_MOST_SECONDS: Final = 60.0


def audit_command(
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
    initial: Initial = None,
    batch: Batch = None,
    most: Annotated[int, typer.Option(help="Number of labels to use, from the first row on; 0 for all.")] = 5000,
    orders: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Repeat the audit in this many random orders of the rows, to see how much depends on the order.",
            show_default="5 if that takes less than a minute",
        ),
    ] = None,
    ignore: Ignore = None,
    figure: Annotated[
        Path | None,
        typer.Option(help="Where to write the figure (.png, .pdf, .svg).", show_default="suffice-audit.png"),
    ] = None,
    save: Save = None,
    as_json: AsJson = False,
) -> None:
    """Find out when the labelling of a table could have stopped. Its rows must be in the order of labelling.

    Example: suffice audit labelled.csv --target spam --task classification

    With what labels and mistakes cost you: suffice audit labelled.csv --target spam --label-cost 0.1 --mistake-cost 2
    """
    first, size = counts(model, initial, batch)
    if orders is not None:
        whole(orders, "--orders", least=0)
    request = RunRequest(
        command="audit",
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
        most=most,
        ignore=tuple(ignore or ()),
        figure=figure,
        save=save,
        as_json=as_json,
        target_error=target_error,
    )

    with interruptible("audit"):
        output = checked_output(request)
        # Brings scikit-learn, which a wrong option need not wait for; only loaded libraries can be limited to a thread.
        from suffice.learner import audit
        from suffice.learner.hindsight import audit_orders

        with threadpool_limits(limits=1):
            job = read_job(request, output.console)
            X, y = job.pool_features[: job.labels], job.pool_labels[: job.labels]
            options: dict[str, Any] = {"initial": first, "batch": size}
            since = time.monotonic()
            with labelling_bar(output.console) as progress:
                trace = audit(job.model, X, y, **options, record=job.rule, progress=progress)
            seconds = _ORDERS * (time.monotonic() - since)
            number = (_ORDERS if seconds < _MOST_SECONDS else None) if orders is None else orders
            stops = None
            if number is not None:
                with labelling_bar(output.console, "other orders") as progress:
                    stops = audit_orders(job.model, X, y, job.rule, **options, orders=number, progress=progress)
            write_results(request, found_audit(request, job, trace, stops, orders_seconds=seconds), output)
