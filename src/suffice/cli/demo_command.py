"""``suffice demo``: a simulated person labels real data until the rule stops."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
import typer
from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text
from threadpoolctl import threadpool_limits

from suffice.checks import Check, Guarantee
from suffice.cli.json_output import AsJson, print_json, tell_error
from suffice.cli.rule_options import BoundName, DemoModel, RuleValues, TaskName, figure_option, problem
from suffice.cli.settings_options import with_settings
from suffice.criteria import Criterion, ErrorStability, Verdict
from suffice.errors import InvalidValueError, SufficeError
from suffice.models.factory import make_model
from suffice.presentation.charts import chart
from suffice.presentation.demo_words import (
    demo_next_sentences,
    demo_page_sentence,
    demo_saved_sentence,
    demo_truth_sentence,
    run_error_sentence,
    run_wrong_share_sentence,
)
from suffice.presentation.rule_words import RATIO_RULE
from suffice.report.figures import WRONG_SHARE_NAME, RunCurves, draw_run, require_writable_figure
from suffice.tables.example_data import Task, demo_task, digits_task
from suffice.trace import Trace

if TYPE_CHECKING:
    from suffice.learner import ActiveLearner

#: Number of random labels before the model chooses.
INITIAL = 10
#: The same for a network, and its number of labels per round.
NETWORK_INITIAL, NETWORK_BATCH = 50, 10
#: Number of labels of the random check after the stop, and the minimal number for a check.
CHECK_SIZE, LEAST_CHECK = 60, 30
#: For numbers: the share of the predictions that may exceed the tolerance that the check guarantees.
SHARE_BEYOND = 0.2
#: The error to guarantee for the handwritten digits on the page.
DEMO_PAGE_ERROR = "10%"


# Error on the test set, and the share of wrong predictions for classes.
Errors = tuple[float, float | None]


@dataclass(frozen=True)
class Progress:
    """State of a labelling run after one more label.

    Attributes:
        n_labelled: Labels bought so far.
        error: Error of the averaged prediction on the test set.
        wrong_share: Share of the test set that is predicted wrong; None for numbers.
        verdicts: What the rule says of every step so far: the newest last. Where the model's scales were learned again,
            the past is seen with the new ones.
        trace: The run so far.
        labelled: The labelled items.
        model: The fitted model; it changes with the next label.
    """

    n_labelled: int
    error: float
    wrong_share: float | None
    verdicts: tuple[Verdict, ...]
    trace: Trace
    labelled: tuple[int, ...]
    model: Any

    @property
    def verdict(self) -> Verdict:
        """The current verdict of the rule."""
        return self.verdicts[-1]


def new_model(task: Task) -> Any:
    """The linear model that fits the task."""
    return make_model("ridge", basis=0) if task.kind == "regression" else make_model("logistic")


def label_pool(task: Task, rule: Criterion, rng: np.random.Generator) -> Iterator[Progress]:
    """Yield the state after each label, the most useful item first, to the end of the pool; the caller may stop.

    A label is read only when it is requested: neither model nor rule uses other labels.
    """
    from suffice.learner import ActiveLearner

    first = rng.choice(len(task.X_pool), size=INITIAL, replace=False)
    acquisition = "variance" if task.kind == "regression" else "map-entropy"
    learner = ActiveLearner(new_model(task), task.X_pool, criterion=rule, acquisition=acquisition, initial=first)
    yield from _bought(task, learner, (INITIAL, 1), linear_error)


def label_with_network(task: Task, rule: Criterion, rng: np.random.Generator) -> Iterator[Progress]:
    """The same with a dropout network, which asks for ten labels at a time by BatchBALD."""
    from suffice.learner import ActiveLearner

    first = rng.choice(len(task.X_pool), size=NETWORK_INITIAL, replace=False)
    model = make_model("dropout", classes=np.unique(task.y_pool).tolist(), seed=int(rng.integers(2**31)))
    learner = ActiveLearner(model, task.X_pool, criterion=rule, acquisition="batchbald", initial=first)
    yield from _bought(task, learner, (NETWORK_INITIAL, NETWORK_BATCH), network_error)


def _bought(
    task: Task, learner: "ActiveLearner", counts: tuple[int, int], error_of: Callable[[Task, Any], Errors]
) -> Iterator[Progress]:
    initial, size = counts
    while learner.left:
        items = learner.ask(size if learner.labelled else initial)
        learner.tell(items, task.y_pool[items.tolist()])
        if learner.verdicts:
            labelled, model = tuple(map(int, learner.labelled)), learner.model
            error, wrong = error_of(task, model)
            yield Progress(len(labelled), error, wrong, tuple(learner.verdicts), learner.trace(), labelled, model)


def linear_error(task: Task, model: Any) -> Errors:
    """Root mean squared error in the units of the target; or cross entropy, and the share of wrong predictions."""
    if task.kind == "regression":
        return float(np.sqrt(np.mean((task.y_test - model.predict(task.X_test)) ** 2))), None
    from suffice.models.predictive import AveragedPredictions

    seen = np.isin(task.y_test, model.classes_)
    codes, others = np.searchsorted(model.classes_, task.y_test[seen]), int(np.count_nonzero(~seen))
    rows = model.features(task.X_test[seen])
    return AveragedPredictions(rows, codes, classes=len(model.classes_), unknown=others).losses(model.state_)


def network_error(task: Task, model: Any) -> Errors:
    """Cross entropy of the mean over a network's draws, and the share of wrong predictions."""
    from suffice.models.predictive import quality

    draws = model.log_draws(model.machine_.tensor(task.X_test), model.samples, model.seed)
    measured = quality(draws, np.searchsorted(model.classes_, task.y_test))
    return measured.log_loss, 1.0 - measured.accuracy


_EVERY = 25


class LiveView:
    """Shows the newest verdict, the curve behind it, and how much of the pool is labelled.

    Args:
        console: Where to show it.
        pool: Size of the pool.
        threshold: Where the rule stops.
    """

    def __init__(self, console: Console, pool: int, threshold: float) -> None:
        self._console, self._pool, self._threshold = console, pool, threshold
        self._next = _EVERY
        self._live = Live(console=console, refresh_per_second=20) if self.animated else None

    @property
    def animated(self) -> bool:
        """Whether the output is an interactive terminal."""
        return self._console.is_terminal and not self._console.is_dumb_terminal and not self._console.quiet

    def __enter__(self) -> "LiveView":
        if self._live is not None:
            self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.__exit__(kind, error, trace)

    def show(self, verdicts: list[Verdict]) -> None:
        """Show the state of the run; the newest verdict is the last."""
        newest = verdicts[-1]
        if self._live is not None:
            self._live.update(self._panel(verdicts))
        elif newest.n_labelled >= self._next and not newest.stop:
            self._next = (newest.n_labelled // _EVERY + 1) * _EVERY
            self._console.print(str(newest), soft_wrap=True)

    def go_on(self, n_labelled: int) -> None:
        """Print that the rest of the pool is labelled too, to show the effect of more labels."""
        if self._live is not None:
            self._live.update(Text(f"enough; labelling the rest to compare: {n_labelled} of {self._pool}", style="dim"))

    def _panel(self, verdicts: list[Verdict]) -> Panel:
        newest = verdicts[-1]
        width = max(20, min(64, self._console.width - 16))
        caption, curve = self._curve(verdicts, width)
        count = f"{newest.n_labelled} of {self._pool} labelled"
        bar = Table.grid(padding=(0, 1))
        bar.add_row(ProgressBar(total=self._pool, completed=newest.n_labelled, width=width - 20), count)
        forecast = Text("" if newest.forecast is None else f"{newest.forecast} until it is enough")
        # If there is no number to draw, the reason of the rule is shown instead.
        shown = (Text(caption, style="dim"), Text("\n".join(curve), style="cyan")) if curve else (Text(newest.reason),)
        return Panel(Group(bar, forecast, *shown), title="suffice demo", width=width + 14)

    def _curve(self, verdicts: list[Verdict], width: int) -> tuple[str, list[str]]:
        """A heading and the curve below it."""
        plain = not self._console.encoding.lower().startswith("utf")
        if verdicts[-1].rule == RATIO_RULE:
            values = [v.value for v in verdicts if v.value is not None]
            caption = f"error ratio, and the threshold {self._threshold:g}"
            return caption, chart(values, self._threshold, width=width, height=9, plain=plain)
        compared = RuleValues.of(verdicts)
        return compared.caption, compared.chart(width=width, height=9, plain=plain)


_DEFAULT_FIGURE = Path("suffice-demo.png")
# A delay for people who watch the terminal; without a terminal there is no delay.
_SECONDS_A_LABEL = 0.03

_ERROR_NAME = {"regression": "test error (root mean square)", "classification": "test error (cross entropy)"}


class _CheckOutcome(NamedTuple):
    """The guarantee of a check after the stop, and the true value, which is known in the demonstration.

    Attributes:
        guarantee: For classes, the largest share of wrong predictions; for numbers, the tolerance that at most a fifth
            of the predictions exceeds.
        true_share: The share of the items left unlabelled that are wrong, or beyond the tolerance.
    """

    guarantee: Guarantee
    true_share: float


@dataclass(frozen=True)
class _Run:
    """A labelling run to the end of the pool, with the step at which the rule stopped."""

    task: Task
    steps: "list[Progress]"
    verdicts: list[Verdict]
    stop: int | None
    check: "_CheckOutcome | None" = None

    @property
    def check_labels(self) -> int:
        return 0 if self.check is None else self.check.guarantee.checked

    @property
    def saved(self) -> int:
        """Items that nobody labelled, neither before the stop nor for the check."""
        return len(self.task.y_pool) - self.n_labelled[self.last] - self.check_labels

    @property
    def last(self) -> int:
        return len(self.verdicts) - 1 if self.stop is None else self.stop

    @property
    def n_labelled(self) -> list[int]:
        return [step.n_labelled for step in self.steps]

    @property
    def errors(self) -> list[float]:
        return [step.error for step in self.steps]

    @property
    def wrong_shares(self) -> list[float]:
        """Empty for numbers."""
        return [step.wrong_share for step in self.steps if step.wrong_share is not None]


@dataclass(frozen=True)
class DemoOptions:
    """Options of the demonstration."""

    task: Annotated[
        TaskName | None,
        typer.Option(help="What to predict: a number, or a class.", show_default="classification"),
    ] = None
    model: Annotated[
        DemoModel, typer.Option(help="A linear model, or a network with dropout (needs torch; half a minute).")
    ] = DemoModel.linear
    threshold: Annotated[
        float | None,
        typer.Option(help="Error ratio at which to stop, from 0 to 1.", show_default="0.1; 0.2 for dropout"),
    ] = None
    bound: Annotated[BoundName, typer.Option(help="Bound on the change of error: the paper's, or the tight one.")] = (
        BoundName.paper
    )
    seed: Annotated[int, typer.Option(help="Seed of the split and of the first labels.", min=0)] = 0
    figure: Annotated[Path | None, figure_option("demo")] = None

    def rule(self) -> ErrorStability:
        """The rule; for a network it is calibrated by one step, as in the paper."""
        if self.model is DemoModel.linear:
            return ErrorStability(0.1 if self.threshold is None else self.threshold, bound=self.bound.value)
        threshold = 0.2 if self.threshold is None else self.threshold
        return ErrorStability(threshold, calibration=1, bound=self.bound.value)

    def require_network(self) -> None:
        """Raise an error for options that a network does not support, before the run starts."""
        if self.model is DemoModel.linear:
            return
        if self.task is TaskName.regression:
            raise InvalidValueError("--model dropout predicts classes; leave --task out, or use --task classification")
        from suffice.models.deep.network import require_torch

        require_torch()

    def data(self, rng: np.random.Generator) -> Task:
        """The data to label."""
        if self.model is DemoModel.dropout:
            return digits_task(rng)
        return demo_task((self.task or TaskName.classification).value, rng)


@with_settings
def demo_command(
    options: DemoOptions,
    page: Annotated[
        bool,
        typer.Option("--page", help="Label handwritten digits yourself, in the browser, in a project suffice-digits."),
    ] = False,
    predictions: Annotated[
        bool,
        typer.Option("--predictions", help="Check labels that another model gave, as for those of a language model."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Watch a simulated person label scikit-learn's breast-cancer, diabetes or digits data until it is enough.

    A random check then guarantees the error of the items that stay unlabelled.

    Example: suffice demo --task regression --threshold 0.05

    To label yourself: suffice demo --page

    To check labels of another model: suffice demo --predictions
    """
    if page and predictions:
        raise InvalidValueError("--page and --predictions are two demonstrations; give one of them")
    if predictions:
        from suffice.cli.prediction_demo import run_prediction_demo

        run_prediction_demo(options.seed, as_json=as_json)
        return
    if page:
        _serve_digits(as_json=as_json)
        return
    rule, path = options.rule(), options.figure or _DEFAULT_FIGURE
    options.require_network()
    failure = problem(lambda: require_writable_figure(path), raised=options.figure is not None)
    # Without a terminal, lines are not wrapped.
    console = Console(quiet=as_json, highlight=False)
    console.soft_wrap = not console.is_terminal
    rng = np.random.default_rng(options.seed)
    job = options.data(rng)
    try:
        # Imported after the options are validated, because it loads scikit-learn; the limit of threads needs loaded
        # libraries.
        import_module("suffice.learner")
        # One thread, because the fits are small and more threads would be slower, especially on a busy machine.
        with threadpool_limits(limits=1):
            run = _label(job, options.model, rule, rng, LiveView(console, len(job.y_pool), rule.threshold))
    except KeyboardInterrupt:
        typer.echo(err=True)
        sentence = "interrupted. Nothing was written; give the same command to start again."
        raise typer.Exit(tell_error(sentence, "interrupted")) from None
    _summarise(console, run)
    failure = failure or problem(lambda: draw_run(_curves(run, rule.threshold), path), raised=False)
    console.print(f"No figure: {failure}" if failure else f"Figure: {path}", markup=False)
    console.print("\n" + "\n".join(demo_next_sentences()), markup=False)
    if as_json:
        print_json("demo", _result(run, rule.threshold, None if failure else path))
    # If a requested figure could not be written, the command fails, but only after the result is shown.
    if failure and options.figure is not None:
        raise SufficeError(failure)


def _serve_digits(*, as_json: bool) -> None:
    """Serve the page with images that anybody can label."""
    from suffice.cli.label_commands import PageOptions, serve_project
    from suffice.cli.project_options import ProjectOptions, ProjectRuleOptions
    from suffice.tables.example_data import DIGITS, write_digits

    folder = Path("suffice-digits")
    write_digits(folder)
    options = ProjectOptions(
        data=str(folder),
        classes=",".join(DIGITS),
        target="digit",
        stopping=ProjectRuleOptions(at_most=DEMO_PAGE_ERROR),
    )
    if not as_json:
        typer.echo(demo_page_sentence(DEMO_PAGE_ERROR))
    serve_project(options, PageOptions(port=0, open_page=not as_json), as_json=as_json)
    if not as_json:
        typer.echo("\n".join(demo_next_sentences()))


def _label(task: Task, model: DemoModel, rule: ErrorStability, rng: np.random.Generator, view: LiveView) -> _Run:
    """Label to the end of the pool, showing it until the rule stops."""
    label = label_pool if model is DemoModel.linear else label_with_network
    steps: list[Progress] = []
    verdicts: list[Verdict] = []
    stop: int | None = None
    check: _CheckOutcome | None = None
    with view:
        for progress in label(task, rule, rng):
            steps.append(progress)
            if stop is None:
                # A replay uses the present scales; a stop that it would add in the past is ignored.
                verdicts = list(progress.verdicts)
                view.show(verdicts)
                if progress.verdict.stop:
                    stop, check = len(verdicts) - 1, _checked(task, progress, rng.spawn(1)[0])
                if view.animated and model is DemoModel.linear:
                    time.sleep(_SECONDS_A_LABEL)
            else:
                verdicts.append(progress.verdict)
                view.go_on(progress.n_labelled)
    return _Run(task, steps, verdicts, stop, check)


def _checked(task: Task, progress: Progress, rng: np.random.Generator) -> _CheckOutcome | None:
    """Check the model at the stop on random unlabelled items; None if too few are left."""
    unlabelled = np.setdiff1d(np.arange(len(task.y_pool)), progress.labelled)
    size = min(CHECK_SIZE, len(unlabelled) // 2)
    if size < LEAST_CHECK:
        return None
    # The run continues without these labels, so that its results after the stop do not depend on the check.
    check = Check.draw(unlabelled, size, rng)
    check = check.tell({item: task.y_pool[item].item() for item in check.items})
    predictions = np.asarray(progress.model.predict(task.X_pool[unlabelled]))
    by_item = dict(zip(unlabelled.tolist(), predictions.tolist(), strict=True))
    if task.kind == "regression":
        guarantee = check.tolerance_guarantee(by_item, SHARE_BEYOND)
        wrong = np.abs(predictions - task.y_pool[unlabelled]) > (guarantee.tolerance or 0.0)
    else:
        guarantee = check.guarantee(by_item)
        wrong = predictions != task.y_pool[unlabelled]
    return _CheckOutcome(guarantee, float(np.mean(wrong[~np.isin(unlabelled, check.items)])))


def _curves(run: _Run, threshold: float) -> RunCurves:
    wrong = run.wrong_shares
    return RunCurves(
        title=run.task.name,
        n_labelled=run.n_labelled,
        error=wrong or run.errors,
        error_name=WRONG_SHARE_NAME if wrong else _ERROR_NAME[run.task.kind],
        value=[v.value if v.value is not None else 1.0 for v in run.verdicts],
        value_name="error ratio",
        threshold=threshold,
        stop=run.stop,
        error_is_share=bool(wrong),
        guarantee="" if run.check is None or not wrong else f"{100.0 * run.check.guarantee.value:.2g}\u00a0%",
    )


def _result(run: _Run, threshold: float, figure: Path | None) -> dict[str, object]:
    verdict, wrong = run.verdicts[run.last], run.wrong_shares
    return {
        "task": run.task.kind,
        "data": run.task.name,
        "stopped": run.stop is not None,
        "labels": run.n_labelled[run.last],
        "pool": len(run.task.y_pool),
        "check_labels": run.check_labels,
        "saved": run.saved,
        "guarantee": None if run.check is None else str(run.check.guarantee),
        "guaranteed": None if run.check is None else run.check.guarantee.value,
        "true_share": None if run.check is None else run.check.true_share,
        "wrong_share_at_stop": wrong[run.last] if wrong and run.stop is not None else None,
        "wrong_share_with_all": wrong[-1] if wrong else None,
        "error_at_stop": None if run.stop is None else run.errors[run.last],
        "error_with_all": run.errors[-1],
        "accuracy_at_stop": 1.0 - wrong[run.last] if wrong and run.stop is not None else None,
        "accuracy_with_all": 1.0 - wrong[-1] if wrong else None,
        "error_name": _ERROR_NAME[run.task.kind],
        "ratio": verdict.value,
        "threshold": threshold,
        "reason": verdict.reason,
        "certificate": str(verdict.certificate),
        "figure": None if figure is None else str(figure),
    }


def _summarise(console: Console, run: _Run) -> None:
    verdict, pool = run.verdicts[run.last], len(run.task.y_pool)
    name, errors, wrong, stopped = _ERROR_NAME[run.task.kind], run.errors, run.wrong_shares, run.stop is not None
    if not stopped:
        console.print(f"\n[bold]No stop: all {pool} labels are used up, and {verdict.reason}.[/]")
    else:
        console.print(f"\n[bold]{verdict}[/]")
    if wrong:
        console.print(run_wrong_share_sentence(wrong[run.last] if stopped else None, wrong[-1], "with all labels"))
    console.print(run_error_sentence(name, errors[run.last] if stopped else None, errors[-1], "with all labels"))
    console.print(f"Certificate: {verdict.certificate}")
    if stopped:
        # The most important result is printed last.
        console.print(f"\n[bold]{demo_saved_sentence(pool, run.n_labelled[run.last], run.check_labels)}[/]")
    if run.check is not None:
        statement = str(run.check.guarantee)
        console.print(f"[bold]Guaranteed: {statement[0].lower()}{statement[1:]}[/]")
        console.print(demo_truth_sentence(run.check.true_share, run.check.guarantee.tolerance))
