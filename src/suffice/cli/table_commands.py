"""``suffice run`` and ``suffice audit``: how many labels of a labelled table would have been enough.

With ``suffice run --positive`` the table is screened for one class, as if its labels were unknown.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
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
from suffice.checks import Guarantee, plan_recall, spent_alpha
from suffice.cli.finish_table import FinishOptions, finish_table
from suffice.cli.json_output import AsJson, print_json
from suffice.cli.rule_options import (
    MayMiss,
    Recall,
    RuleOptions,
    figure_option,
    problem,
    screening_rule,
    share_of,
)
from suffice.cli.run_results import OFF_SHARE, found_audit, found_run, write_results
from suffice.cli.settings_options import with_settings
from suffice.cli.table_run import (
    Batch,
    Initial,
    ModelOptions,
    OutputOptions,
    RunModelOptions,
    RunRequest,
    TableJob,
    TableOptions,
    checked_output,
    class_named,
    counts,
    interruptible,
    labelling_bar,
    read_job,
)
from suffice.criteria import Criterion, LabelWorth, Verdict
from suffice.errors import CheckpointError, InvalidValueError, MissingExtraError, SufficeError
from suffice.files import write_whole
from suffice.presentation.charts import number_chart
from suffice.presentation.finish_words import NO_CHOICE_IN_SCREENING
from suffice.presentation.run_words import screening_headline, screening_sentences
from suffice.presentation.text_format import count

_RECALL: Final = 0.95
_CONFIDENCE: Final = 0.95
# The model first learns after each label, and later when the number of labels has grown by this share.
_GROWTH: Final = 0.02
# Sizes of checks in the result.
_CHECKS: Final = (100, 300, 1000)
# Options that are about the error of predictions, or about the figure of it.
_OTHERS: Final = ("threshold", "bound", "error_cost", "label_cost", "mistake_cost", "tolerance", "average", "scale")


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


class Engine(StrEnum):
    """Where a pool is kept and scored."""

    memory = "memory"
    dask = "dask"


@dataclass(frozen=True)
class RunOptions:
    """Options of ``suffice run`` about the labels that it simulates."""

    acquisition: Annotated[
        str | None,
        typer.Option(help=f"Which row next: {', '.join(_ACQUISITIONS)}.", autocompletion=lambda: _ACQUISITIONS),
    ] = None
    random_share: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="Share of the labels, from 0 to 1, that are drawn at random instead.",
            show_default="the recommended one; 0 with --acquisition",
        ),
    ] = None
    initial: Initial = None
    batch: Batch = None
    most: Annotated[
        int | None,
        typer.Option(
            help="Labels to simulate at most; 0 for the whole pool.", show_default="1000; 0 with --positive or --of all"
        ),
    ] = None
    test: Annotated[
        float | None,
        typer.Option(help="Share of the rows held back to measure the error on.", show_default="0.2; 0 with --of all"),
    ] = None
    seed: Annotated[int, typer.Option(help="Seed of the split and of the first labels.")] = 0
    may_miss: MayMiss = None


@dataclass(frozen=True)
class ScreeningOptions:
    """Options about screening for a class."""

    positive: Annotated[
        str | None,
        typer.Option(
            metavar="CLASS",
            help="Screen the table for this class: the likeliest rows first, until enough of them are found.",
            show_default=False,
        ),
    ] = None
    recall: Recall = None


@dataclass(frozen=True)
class PoolOptions:
    """Options about the place where the pool is kept and scored, and about its labels."""

    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Where to save the labels during the run; the same command continues from there.",
            show_default="suffice-run.checkpoint for large pools",
        ),
    ] = None
    engine: Annotated[
        Engine | None,
        typer.Option(
            metavar="ENGINE",
            help="Where the pool is kept and scored: memory, or dask for the workers of a Dask cluster.",
            show_default="memory",
        ),
    ] = None
    workers: Annotated[
        int | None,
        typer.Option(help="With --engine dask: workers on this machine.", show_default="one for each processor"),
    ] = None
    scheduler: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="With --engine dask: join the cluster of this scheduler instead, such as tcp://10.0.0.1:8786.",
            show_default=False,
        ),
    ] = None

    @property
    def on_workers(self) -> bool:
        """Whether the pool is on the workers of a Dask cluster.

        Raises:
            InvalidValueError: The options do not fit each other.
        """
        if self.workers is not None:
            whole(self.workers, "--workers", least=1)
            if self.scheduler is not None:
                raise InvalidValueError(
                    "--workers starts workers here, and --scheduler joins others; leave one of them out"
                )
        if self.scheduler is None and self.workers is None:
            return self.engine is Engine.dask
        if self.engine is Engine.memory or (self.engine is None and self.workers is not None):
            given = "--workers" if self.scheduler is None else "--scheduler"
            raise InvalidValueError(f"{given} is for --engine dask: give that too, or leave {given} out")
        return True


@dataclass(frozen=True)
class AuditOptions:
    """Options of ``suffice audit`` about the labels that it uses."""

    initial: Initial = None
    batch: Batch = None
    most: Annotated[int, typer.Option(help="Number of labels to use, from the first row on; 0 for all.")] = 5000
    orders: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Repeat the audit in this many random orders of the rows, to see how much depends on the order.",
            show_default="5 if that takes less than a minute",
        ),
    ] = None


@dataclass(frozen=True)
class AuditOutputOptions(OutputOptions):
    """Options about the files that ``suffice audit`` writes."""

    figure: Annotated[Path | None, figure_option("audit")] = None


@dataclass(frozen=True)
class ScreenedTable:
    """A screening of a table.

    Attributes:
        positive: The class.
        recall: The target recall.
        rule: The rule.
        relevance: Whether each screened row is of the class, in order.
        verdicts: Verdicts of all steps.
        size: All rows.
        relevant: All rows of the class.
    """

    positive: str
    recall: float
    rule: Criterion
    relevance: list[bool]
    verdicts: list[Verdict]
    size: int
    relevant: int

    @property
    def screened(self) -> int:
        """Number of rows screened."""
        return len(self.relevance)

    @property
    def found(self) -> int:
        """Number of rows of the class among them."""
        return sum(self.relevance)

    @property
    def stopped(self) -> bool:
        """Whether the rule said stop."""
        return any(verdict.stop for verdict in self.verdicts)

    def about(self) -> dict[str, Any]:
        """The values in the sentences."""
        rest, alpha = self.size - self.screened, spent_alpha(1, 1.0 - _CONFIDENCE)
        least = plan_recall(self.recall, self.found, 0, rest, alpha=alpha).labels if rest and self.found else None
        sizes = [size for size in _CHECKS if size < (rest if least is None else least)] if self.found else []
        return {
            "positive": self.positive,
            "size": self.size,
            "screened": self.screened,
            "found": self.found,
            "relevant": self.relevant,
            "rule": repr(self.rule),
            "stopped": self.stopped,
            "recall": self.recall,
            "confidence": _CONFIDENCE,
            "checks": [(size, self._guaranteed(size, rest, alpha)) for size in sizes],
            "check_for_recall": least,
        }

    def _guaranteed(self, size: int, rest: int, alpha: float) -> float:
        """The recall that a check of some size guarantees if it finds no row of the class."""
        return Guarantee.of_recall(self.positive, self.found, 0, size, rest, alpha=alpha).value


def screen_table(request: RunRequest, run: RunOptions, screening: ScreeningOptions) -> None:
    """Screen a table for a class, and print the result.

    Raises:
        InvalidValueError: The options or the table cannot be used.
        SufficeError: The run could not be saved; the result has been shown by then.
    """
    assert screening.positive is not None
    recall = share_of(screening.recall, "--recall") if screening.recall is not None else _RECALL
    assert recall is not None
    rule = screening_rule(request.rule.rule, recall)
    _require_fitting(request)
    # The rule of the request concerns the error of predictions; the rule of the screening replaces it.
    request = replace(request, test=0.0, rule=RuleOptions(), output=replace(request.output, figure=None))
    output, save = checked_output(request), request.output.save
    with threadpool_limits(limits=1):
        job = read_job(request, output.console)
        positive = class_named(screening.positive, job, request.table.target)
        learner, verdicts = _screened(request, run, job, rule, positive, output.console)
    result = ScreenedTable(
        positive=screening.positive,
        recall=recall,
        rule=rule,
        relevance=[bool(label == positive) for label in learner.labels.values()],
        verdicts=verdicts,
        size=len(job.pool),
        relevant=int(np.sum(job.pool_labels == positive)),
    )
    _show(output.console, result)
    unsaved = "" if save is None else problem(lambda: write_whole(save, learner.trace().save), raised=False)
    saved = None if unsaved else save
    if saved:
        output.console.print(f"Run saved: {saved}", markup=False)
    if request.as_json:
        print_json("run", _as_json(result, job, saved))
    if unsaved:
        raise SufficeError(unsaved)


def _require_fitting(request: RunRequest) -> None:
    """Raise an error for options that do not apply to a screening."""
    given = [name for name in _OTHERS if getattr(request.rule, name, None) is not None]
    given += ["at_most"] if request.rule.at_most is not None else []
    given += ["figure"] if request.output.figure is not None else []
    if given:
        raise InvalidValueError(
            f"--{given[0].replace('_', '-')} is not used with --positive, which stops by the share of the class that "
            "is found; leave one of them out"
        )


def _screened(
    request: RunRequest, run: RunOptions, job: TableJob, rule: Criterion, positive: Any, console: Console
) -> tuple[Any, list[Verdict]]:
    """The learner at the stop, and all verdicts."""
    # Imported after the options are validated, because it loads scikit-learn.
    from suffice.learner import ActiveLearner

    y = job.pool_labels
    learner = ActiveLearner(
        job.model,
        job.pool_features,
        criterion=rule,
        acquisition=run.acquisition,
        random_share=request.random_share,
        seed=request.seed,
        initial=request.initial,
        positive=positive,
    )
    with labelling_bar(console, "screening") as progress:
        items = learner.ask(request.initial)
        while True:
            verdict = learner.tell(items, y[items])
            done = len(learner.labelled)
            if progress is not None:
                progress(done, job.labels)
            if verdict.stop or done >= job.labels:
                return learner, learner.verdicts
            # Without --batch the number of labels per step grows with the number so far.
            size = max(1, int(_GROWTH * done)) if run.batch is None else request.batch
            items = learner.ask(min(size, job.labels - done))


def _show(console: Console, result: ScreenedTable) -> None:
    """Print the results."""
    gains = np.cumsum(result.relevance).astype(float).tolist()
    width = max(20, min(64, console.width - 10))
    plain = not console.encoding.lower().startswith("utf")
    console.print("\nRelevant rows found, by rows screened", style="dim")
    lines = number_chart(gains, [float("nan")] * len(gains), log=False, width=width, height=9, plain=plain)
    end = count(result.screened, "row")
    console.print("\n".join([*lines, f"{'':8}1{end:>{width - 1}}"]), style="cyan", markup=False)
    reason = result.verdicts[-1].reason if result.verdicts else "the rule has judged no step"
    headline = screening_headline(result.screened, result.size, result.found, stopped=result.stopped, reason=reason)
    console.print(f"\n{headline}", style="bold", markup=False)
    for sentence in screening_sentences(result.about()):
        console.print(sentence, markup=False)
    if result.stopped:
        console.print(f"The rule: {reason}.", style="dim", markup=False)


def _as_json(result: ScreenedTable, job: TableJob, saved: Path | None) -> dict[str, Any]:
    about = result.about()
    last = result.verdicts[-1] if result.verdicts else None
    return {
        "task": job.table.kind,
        "model": job.name,
        **about,
        "rule": {"name": type(result.rule).__name__, **result.rule.state_dict()["params"]},
        "recall_reached": result.found / result.relevant,
        "checks": [{"labels": size, "guaranteed_recall": value} for size, value in about["checks"]],
        "value": None if last is None else last.value,
        "threshold": None if last is None else last.threshold,
        "reason": "" if last is None else last.reason,
        "sentences": screening_sentences(about),
        "notes": list(job.table.notes),
        "saved_trace": None if saved is None else str(saved),
        "curve": {
            "n_labelled": [verdict.n_labelled for verdict in result.verdicts],
            "found": np.cumsum(result.relevance)[[verdict.n_labelled - 1 for verdict in result.verdicts]].tolist(),
            "value": [verdict.value for verdict in result.verdicts],
        },
    }


# Number of rows of a pool from which labels are saved automatically, and the file for them.
_LARGE_POOL: Final = 1_000_000
_AUTOMATIC: Final = Path("suffice-run.checkpoint")
# Seconds to wait for the answer of a scheduler.
_PATIENCE: Final = 10.0


@with_settings
def run_command(
    table: TableOptions,
    model: RunModelOptions,
    rule: RuleOptions,
    finish: FinishOptions,
    run: RunOptions,
    screening: ScreeningOptions,
    output: OutputOptions,
    pool: PoolOptions,
    as_json: AsJson = False,
) -> None:
    """Find out how many labels of a labelled table would have been enough if they had been bought one by one.

    Example: suffice run houses.csv --target price --ignore address

    With what labels and mistakes cost you: suffice run mails.csv --target spam --label-cost 0.5 --mistake-cost 20

    With another rule: suffice run mails.csv --target spam --rule StabilizingPredictions

    Screening for a rare class: suffice run records.csv --target included --positive yes --recall 95%

    At most 5 % of all labels wrong, guaranteed: suffice run mails.csv --target spam --at-most 5% --of all

    All relevant rows but 5 % found, guaranteed: suffice run records.csv --target included --positive yes --at-most 5%
    --of all

    A large pool on four workers: suffice run big.parquet --target y --acquisition variance --engine dask --workers 4
    """
    on_workers, screens = pool.on_workers, screening.positive is not None
    if not screens and screening.recall is not None:
        raise InvalidValueError("--recall is for screening: give --positive CLASS too, the class that is looked for")
    whole_set, chosen = finish.whole, model.chosen
    if whole_set and screening.recall is not None:
        raise InvalidValueError(
            "--recall cannot be combined with --of all, where --at-most is the share of the class that may be missed; "
            "leave one of them out"
        )
    if run.may_miss and (screens or whole_set):
        other = "--positive" if screens else "--of all"
        raise InvalidValueError(
            f"--may-miss cannot be combined with {other}, where no class holds a stop back; leave it out"
        )
    if model.model == "auto" and not whole_set:
        raise InvalidValueError("--model auto is for a goal about all labels: give --of all and --at-most too")
    if model.model == "auto" and screens:
        raise InvalidValueError(NO_CHOICE_IN_SCREENING)
    initial, batch = counts(chosen.model, run.initial, run.batch)
    request = RunRequest(
        command="run",
        table=table,
        model=chosen,
        rule=rule,
        output=output,
        initial=initial,
        batch=batch,
        most=(0 if screens or whole_set else 1000) if run.most is None else run.most,
        as_json=as_json,
        test=(0.0 if whole_set else 0.2) if run.test is None else run.test,
        seed=run.seed,
        random_share=run.random_share,
    )
    if whole_set:
        _require_whole(run, pool)
        with interruptible("run"):
            finish_table(request, finish, screening.positive, acquisition=run.acquisition, batch=run.batch)
    elif screens:
        if on_workers or pool.checkpoint is not None:
            given = "--checkpoint" if pool.checkpoint is not None else "--engine dask"
            raise InvalidValueError(f"{given} cannot be combined with --positive; leave one of them out")
        with interruptible("run"):
            screen_table(request, run, screening)
    else:
        _run_table(request, run, pool)


def _require_whole(run: RunOptions, pool: PoolOptions) -> None:
    """Raise an error for options that do not apply to a goal for all labels."""
    given = {
        "--most": run.most is not None,
        "--test": run.test is not None,
        "--engine dask": pool.on_workers,
        "--checkpoint": pool.checkpoint is not None,
    }
    if others := [option for option, used in given.items() if used]:
        raise InvalidValueError(f"{others[0]} cannot be combined with --of all; leave one of them out")


def _run_table(request: RunRequest, run: RunOptions, pool: PoolOptions) -> None:
    """Simulate the labelling of a table, and print the result."""
    on_workers, checkpoint = pool.on_workers, pool.checkpoint
    saved = _AUTOMATIC if checkpoint is None and on_workers else checkpoint
    with interruptible("run"), ExitStack() as stack:
        output = checked_output(request)
        # Brings scikit-learn, which a wrong option need not wait for; only loaded libraries can be limited to a thread.
        from suffice.learner import simulate

        stack.enter_context(threadpool_limits(limits=1))
        job = read_job(request, output.console)
        X: Any = job.pool_features
        if on_workers:
            _require_able(job, run.acquisition)
            from suffice.engines.worker_rows import rows_on_workers

            X = rows_on_workers(stack.enter_context(_client(pool, output.console)), X)
        if saved is None and len(job.pool) >= _LARGE_POOL:
            saved = _AUTOMATIC
        X_test, y_test = job.test_set
        missed = [class_named(name, job, request.table.target, "--may-miss") for name in run.may_miss or ()]

        def simulated() -> Any:
            with labelling_bar(output.console) as progress:
                return simulate(
                    job.model,
                    X,
                    job.pool_labels,
                    initial=request.initial,
                    steps=(job.labels - request.initial) // request.batch,
                    X_test=X_test,
                    y_test=y_test,
                    acquisition=run.acquisition,
                    random_share=run.random_share,
                    batch=request.batch,
                    seed=run.seed,
                    checkpoint=saved,
                    decide=job.rule,
                    at_most=job.at_most,
                    may_miss=missed,
                    watch=_off_share(job),
                    progress=progress,
                )

        with interruptible("run", saved):
            try:
                trace = simulated()
            except CheckpointError:
                if checkpoint is not None:
                    raise
                # The file was saved automatically by another run.
                _AUTOMATIC.unlink()
                trace = simulated()
        write_results(request, found_run(request, job, trace), output)
        if checkpoint is None and saved is not None:
            saved.unlink(missing_ok=True)


def _require_able(job: TableJob, acquisition: str | None) -> None:
    """Raise an error for a model or an acquisition that cannot use workers, before workers are started."""
    from suffice.learner.backend import backend_type
    from suffice.learner.prepare import final_estimator

    backend = backend_type(final_estimator(job.model))
    if not backend.worker_acquisitions:
        raise InvalidValueError(
            f"--engine dask is for --model gp, ridge and logistic, and the model is {job.name}; leave --engine "
            "out, and the pool is kept in memory"
        )
    if acquisition is not None and acquisition not in backend.worker_acquisitions:
        usable = " or ".join(f"--acquisition {name}" for name in sorted(backend.worker_acquisitions))
        raise InvalidValueError(f"--acquisition {acquisition} cannot use --engine dask; give {usable}")


@contextmanager
def _client(pool: PoolOptions, console: Console) -> Iterator[Any]:
    """A client of a Dask cluster: of the scheduler that is named, or of workers that are started here.

    Raises:
        MissingExtraError: Dask's package ``distributed`` is not installed.
        SufficeError: No scheduler answers.
    """
    scheduler = pool.scheduler
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
    size = pool.workers or cpu_count() or 1
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


# Default number of other orders, and their time limit in seconds if they were not requested.
_ORDERS: Final = 5
_MOST_SECONDS: Final = 60.0


@with_settings
def audit_command(
    table: TableOptions,
    model: ModelOptions,
    rule: RuleOptions,
    labels: AuditOptions,
    output: AuditOutputOptions,
    as_json: AsJson = False,
) -> None:
    """Find out when the labelling of a table could have stopped. Its rows must be in the order of labelling.

    Example: suffice audit labelled.csv --target spam --task classification

    With what labels and mistakes cost you: suffice audit labelled.csv --target spam --label-cost 0.1 --mistake-cost 2
    """
    initial, batch = counts(model.model, labels.initial, labels.batch)
    if labels.orders is not None:
        whole(labels.orders, "--orders", least=0)
    request = RunRequest(
        command="audit",
        table=table,
        model=model,
        rule=rule,
        output=output,
        initial=initial,
        batch=batch,
        most=labels.most,
        as_json=as_json,
    )
    _audit_table(request, labels.orders)


def _audit_table(request: RunRequest, orders: int | None) -> None:
    """Audit the labels of a table, and print the result."""
    with interruptible("audit"):
        output = checked_output(request)
        # Brings scikit-learn, which a wrong option need not wait for; only loaded libraries can be limited to a thread.
        from suffice.learner import audit
        from suffice.learner.hindsight import audit_orders

        with threadpool_limits(limits=1):
            job = read_job(request, output.console)
            X, y = job.pool_features[: job.labels], job.pool_labels[: job.labels]
            options: dict[str, Any] = {"initial": request.initial, "batch": request.batch}
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
