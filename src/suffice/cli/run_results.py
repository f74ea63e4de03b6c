"""Results of ``suffice run`` and ``suffice audit``: the summary, the JSON and the curves of the figure."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console

from suffice.cli.json_output import print_json
from suffice.cli.rule_options import RuleValues, problem
from suffice.cli.table_run import RunOutput, RunRequest, TableJob
from suffice.criteria import Criterion, ExpectedCost, LabelWorth, Verdict
from suffice.criteria.label_worth import total_costs
from suffice.errors import InvalidValueError, SufficeError
from suffice.files import write_whole
from suffice.presentation.audit_words import (
    audit_error_sentence,
    audit_headline,
    audit_orders_sentences,
    orders_skipped_sentence,
    unlike_random_sentence,
    unseen_classes_sentence,
)
from suffice.presentation.charts import chart, number_chart
from suffice.presentation.decision_words import decision_words
from suffice.presentation.error_words import worsening_sentence
from suffice.presentation.rule_words import RATIO_RULE, details_sentence
from suffice.presentation.run_words import (
    best_stop_sentence,
    classes_without_labels_sentence,
    counted_costs,
    labels_saved_sentence,
    measured_target_sentence,
    off_share_sentence,
    raise_cost_sentence,
    run_headline,
    trivial_error_words,
    true_error_sentence,
    try_sentence,
    with_labels,
)
from suffice.presentation.text_format import number
from suffice.report.figures import WRONG_SHARE_NAME, RunCurves, draw_run
from suffice.tables import Table
from suffice.trace import Trace

if TYPE_CHECKING:
    from suffice.learner.hindsight import AuditedStop
    from suffice.session.decision import Decision

_ERROR_NAME = {
    "regression": "test error (root mean square)",
    "classification": "test error (cross entropy)",
}
#: What ``suffice run --tolerance`` measures after each step.
OFF_SHARE = "share off by more than the tolerance"

# An error at the end of at most this share of that at the stop is clearly lower.
_CLEARLY_LOWER = 0.8
# A stop or an error differs from random orders if it is larger or smaller than all of them by this factor.
_FAR = 2.0


@dataclass(frozen=True, eq=False)
class RunFinding:
    """A run over a table, and where it stopped.

    Attributes:
        command: ``run`` or ``audit``.
        title: Which table, and which target.
        table: What was read.
        model: Name of the model.
        pool: Rows that could be labelled.
        test: Rows that the error was measured on.
        initial: Labels before the first step.
        batch: Labels at each step.
        trace: The run.
        rule: The stopping rule.
        verdicts: What it said after each step.
        stop: Index of the step at which the decision was to stop, or None.
        decision: The decision there, or at the end; None for an audit without a stop.
        warning: That labels had made the model worse, in a sentence; may be empty.
        unmet: Classes of the table of which no label was bought up to the stop, or the end.
        test_baseline: Error of the trivial prediction on the test rows, in words; may be empty.
        audited: The stop of an audit and its errors; None for a run.
        orders: The stops of an audit in other orders; None where they were not tried.
        orders_seconds: How long that would have taken.
    """

    command: str
    title: str
    table: Table
    model: str
    pool: int
    test: int
    initial: int
    batch: int
    trace: Trace
    rule: Criterion
    verdicts: list[Verdict]
    stop: int | None
    decision: "Decision | None"
    warning: str = ""
    unmet: int = 0
    test_baseline: str = ""
    audited: "AuditedStop | None" = None
    orders: "Sequence[AuditedStop] | None" = None
    orders_seconds: float = 0.0

    @property
    def last(self) -> int:
        """Index of the step of the result: the stop, or the last step."""
        return len(self.verdicts) - 1 if self.stop is None else self.stop

    @property
    def share(self) -> bool:
        """Whether errors are shares of wrong predictions."""
        return self.table.kind == "classification"

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
        """The values that the rule compared after each step."""
        return RuleValues.of(self.verdicts)

    @cached_property
    def best(self) -> "Best | None":
        """The best stop in hindsight, if there are costs and a test set."""
        error = self._counted_error()
        if error is None or not len(error) or not np.isfinite(error).all():
            return None
        rule = self.rule
        assert isinstance(rule, LabelWorth | ExpectedCost)
        if rule.error_cost is not None:
            costs = rule.label_cost * np.array(self.n_labelled) + rule.error_cost * error
        else:
            assert isinstance(rule, LabelWorth)
            mistake = 1.0 if rule.mistake_cost is None else rule.mistake_cost
            costs = total_costs(self.n_labelled, error, self.pool, label_cost=rule.label_cost, mistake_cost=mistake)
        step = int(np.argmin(costs))
        return Best(self.n_labelled[step], float(costs[step]), float(costs[self.last]))

    def _counted_error(self) -> Any:
        """The error of the test rows after each step that the rule's costs are about; None if there is none."""
        rule, trace = self.rule, self.trace
        if isinstance(rule, ExpectedCost):
            return trace.predictive_error
        if not isinstance(rule, LabelWorth) or not self.error:
            return None
        if self.share:
            return trace.wrong_share
        if rule.tolerance is not None:
            return trace.measures.get(OFF_SHARE)
        if rule.error_cost is not None:
            return trace.predictive_error
        return trace.predictive_error / max(float(np.var(self.table.y)), 1e-300)

    @property
    def counted(self) -> str:
        """Costs of labels and errors, in words."""
        rule = self.rule
        assert isinstance(rule, LabelWorth | ExpectedCost)
        mistake = None
        if isinstance(rule, ExpectedCost):
            what = "a cross entropy of 1" if self.share else "a mean squared error of 1"
        elif rule.tolerance is not None:
            off = f"prediction that is off by more than {number(rule.tolerance)}"
            what = f"a share of 1 of every {off}" if rule.error_cost is not None else f"{off} among the other rows"
        elif rule.error_cost is not None:
            what = "a share of wrong predictions of 1" if self.share else "a mean squared error of 1"
        elif self.share:
            what = "wrong prediction among the other rows"
        else:
            what = "other row that is predicted no better than by the mean (in proportion to the squared error)"
        if isinstance(rule, LabelWorth) and rule.error_cost is None:
            mistake = 1.0 if rule.mistake_cost is None else rule.mistake_cost
        return counted_costs(rule.label_cost, mistake, rule.error_cost, what=what)

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
    def shown_error(self) -> list[float]:
        """The error that is shown first: the share of wrong predictions, or the root of the mean squared error."""
        return self.wrong_share if self.share else self.error

    @property
    def error_name(self) -> str | None:
        """Name of :attr:`error`, or None without a test set."""
        return _ERROR_NAME[self.table.kind] if self.error else None


@dataclass(frozen=True)
class Best:
    """The stop of least cost in hindsight.

    Attributes:
        labels: Where it was.
        cost: What labels and errors together cost there.
        cost_at_stop: What they cost at the stop of the run, or at its end.
    """

    labels: int
    cost: float
    cost_at_stop: float

    @property
    def regret(self) -> float:
        """How much more the stop of the run costs, as a share of the least cost."""
        return (self.cost_at_stop - self.cost) / self.cost if self.cost > 0.0 else 0.0


def summarise(console: Console, finding: RunFinding) -> None:
    """Print the results."""
    classes, audited = len(np.unique(finding.table.y)), finding.command == "audit"
    if finding.unmet and audited:
        stopped = finding.audited is not None and finding.audited.n_labelled is not None
        warning = unseen_classes_sentence(finding.unmet, classes, stopped=stopped)
        console.print(f"\n{warning}", style="bold", markup=False)
    _show_chart(console, finding)
    if audited:
        _summarise_audit(console, finding)
    else:
        _summarise_run(console, finding)
    if finding.unmet and not audited:
        console.print(classes_without_labels_sentence(finding.unmet, classes))
    if finding.warning:
        console.print(f"Warning: {finding.warning}")
    certificate = finding.verdicts[finding.last].certificate
    if certificate is not None:
        console.print(f"Certificate: {certificate}", markup=False)


def _summarise_run(console: Console, finding: RunFinding) -> None:
    decision, verdict, n, end = (
        finding.decision,
        finding.verdicts[finding.last],
        finding.n_labelled[finding.last],
        finding.pool,
    )
    assert decision is not None
    stopped = finding.stop is not None
    answer = decision.answer if stopped else "keep going"
    limited = decision.hardly_better or decision.alternative is not None
    by_cost = decision.large_error if answer == "enough" else not limited
    shown = "check" if stopped and not decision.stop else answer
    headline = run_headline(shown, n, end, verdict.reason, by_cost=by_cost)
    console.print(f"\n{headline}", style="bold", markup=False)
    if decision.answer in ("keep going", "enough", "limit"):
        for sentence in decision_words(decision.as_dict()).sentences:
            console.print(sentence, markup=False)
    other = decision.alternative
    if other is not None and other.clear:
        console.print(try_sentence(other.name, command=finding.command))
    if finding.shown_error:
        errors = finding.shown_error[finding.last] if stopped else None, finding.shown_error[-1]
        last = with_labels(finding.n_labelled[-1], finding.pool)
        sentence = true_error_sentence(errors, last, finding.test, share=finding.share, baseline=finding.test_baseline)
        console.print(sentence, markup=False)
        if errors[0] is not None and decision.at_most is not None:
            console.print(measured_target_sentence(errors[0], decision.at_most, share=finding.share), markup=False)
        off, rule = finding.trace.measures.get(OFF_SHARE), finding.rule
        if off is not None and isinstance(rule, LabelWorth) and rule.tolerance is not None:
            shares = float(off[finding.last]) if stopped else None, float(off[-1])
            console.print(off_share_sentence(shares, last, rule.tolerance), markup=False)
        _say_whether_more_helps(console, finding, *errors, rows=finding.test)
    if stopped:
        console.print(labels_saved_sentence(n, finding.pool))
    elif n + finding.batch <= finding.pool:
        console.print(
            f"There are {finding.pool:,} rows to label: look further with --most, or to the end with --most 0."
        )
    if finding.best is not None:
        here, best = (n, finding.best.cost_at_stop), (finding.best.labels, finding.best.cost)
        console.print(best_stop_sentence(finding.counted, here, best, stopped=stopped), markup=False)
    if stopped:
        console.print(details_sentence(decision.rule, decision.reason), style="dim", markup=False)


def _summarise_audit(console: Console, finding: RunFinding) -> None:
    verdict, stop = finding.verdicts[finding.last], finding.audited
    assert stop is not None
    decision = stop.decision
    answer = "" if decision is None else decision.answer
    headline = audit_headline(stop.n_labelled, finding.n_labelled[-1], verdict.reason)
    console.print(f"\n{headline}", style="bold", markup=False)
    if stop.n_labelled is None:
        if verdict.forecast is not None:
            console.print(f"It would take {verdict.forecast} (extrapolated).", markup=False)
    else:
        console.print(labels_saved_sentence(stop.n_labelled, finding.pool))
    if stop.error is not None:
        console.print(audit_error_sentence(stop.error, stop.error_at_end, stop.rows, share=finding.share))
    if decision is not None and answer == "limit":
        console.print(decision_words(decision.as_dict()).remedy, markup=False)
        if decision.alternative is not None:
            console.print(try_sentence(decision.alternative.name, command=finding.command))
        _say_whether_more_helps(console, finding, stop.error, stop.error_at_end, rows=stop.rows)
    if finding.orders is None:
        console.print(orders_skipped_sentence(5, finding.orders_seconds))
    elif finding.orders:
        stops = [order.n_labelled for order in finding.orders]
        errors = [order.error for order in finding.orders if order.error is not None]
        for sentence in audit_orders_sentences(stops, errors, share=finding.share):
            console.print(sentence)
        if _is_unlike(stop.n_labelled, [labels for labels in stops if labels]) or _is_unlike(stop.error, errors):
            console.print(unlike_random_sentence())


def _is_unlike(value: float | None, others: Sequence[float]) -> bool:
    """Whether a number is far from all others: more than twice as large, or less than half."""
    if value is None or not others:
        return False
    return value > _FAR * max(others) or _FAR * value < min(others)


def _say_whether_more_helps(
    console: Console, finding: RunFinding, at_stop: float | None, at_end: float | None, *, rows: int
) -> None:
    """If the target error is not reached, say whether more labels would have lowered it, by more than chance."""
    decision = finding.decision
    if decision is None or not decision.above_target or at_stop is None or at_end is None:
        return
    rule = finding.verdicts[0].rule
    if finding.best is not None and finding.best.labels <= finding.n_labelled[finding.last]:
        # With these costs, fewer labels would have been better.
        return
    # For shares, two standard errors of what is measured on these rows.
    chance = 2.0 * math.sqrt(at_stop * (1.0 - at_stop) / max(rows, 1)) if finding.share else 0.0
    clearly = at_end < min(_CLEARLY_LOWER * at_stop, at_stop - chance)
    if clearly and rule in (RATIO_RULE, LabelWorth.__name__):
        console.print(raise_cost_sentence(ratio=rule == RATIO_RULE))


def as_json(finding: RunFinding, figure: Path | None, saved_trace: Path | None) -> dict[str, object]:
    """The result as JSON values."""
    verdict, n, forecast = (
        finding.verdicts[finding.last],
        finding.n_labelled[finding.last],
        finding.verdicts[finding.last].forecast,
    )
    left = (
        None if forecast is None else {name: getattr(forecast, name) for name in ("labels", "low", "high", "coverage")}
    )
    error, stopped = _plain(finding.error), finding.stop is not None
    wrong, decision = finding.wrong_share, finding.decision
    ratio = verdict.rule == RATIO_RULE
    values = {"value": _plain(finding.compared.values), "threshold": _plain(finding.compared.thresholds)}
    values |= {"ratio": _plain(finding.ratio)} if ratio else {}
    return {
        "task": finding.table.kind,
        "model": finding.model,
        "acquisition": finding.trace.about.get("acquisition"),
        "random_share": finding.trace.about.get("random_share", 0.0),
        "rows": len(finding.table.y),
        "pool": finding.pool,
        "features": finding.table.X.shape[1],
        "initial": finding.initial,
        "batch": finding.batch,
        "stopped": stopped,
        "labels": n,
        "saved": finding.pool - n if stopped else 0,
        "decision": None if decision is None else decision.as_dict(),
        "sentences": [] if decision is None else decision_words(decision.as_dict()).sentences,
        "warning": finding.warning,
        "wrong_share_at_stop": wrong[finding.last] if wrong and stopped else None,
        "wrong_share_at_end": wrong[-1] if wrong else None,
        "error_at_stop": error[finding.last] if error and stopped else None,
        "error_at_end": error[-1] if error else None,
        "error_name": finding.error_name,
        "accuracy_at_stop": 1.0 - wrong[finding.last] if wrong and stopped else None,
        "accuracy_at_end": 1.0 - wrong[-1] if wrong else None,
        "classes_not_met": finding.unmet,
        "rule": {"name": verdict.rule, **finding.rule.state_dict()["params"]},
        "best_in_hindsight": None
        if finding.best is None
        else {name: getattr(finding.best, name) for name in ("labels", "cost", "cost_at_stop", "regret")},
        "value": verdict.value,
        **({"ratio": verdict.value} if ratio else {}),
        "threshold": verdict.threshold,
        "reason": verdict.reason if decision is None or not stopped else decision.reason,
        "certificate": None if verdict.certificate is None else str(verdict.certificate),
        "forecast": left,
        **({} if finding.audited is None else _audit_json(finding)),
        "notes": list(finding.table.notes),
        "figure": None if figure is None else str(figure),
        "saved_trace": None if saved_trace is None else str(saved_trace),
        "curve": {"n_labelled": finding.n_labelled, **values, "wrong_share": wrong, "error": error},
    }


def _audit_json(finding: RunFinding) -> dict[str, object]:
    assert finding.audited is not None
    names = ("n_labelled", "rows", "error", "error_at_end")
    return {
        "later_rows": {name: getattr(finding.audited, name) for name in names[1:]},
        "orders": None
        if finding.orders is None
        else [{name: asdict(order)[name] for name in names[:3]} for order in finding.orders],
    }


def curves(finding: RunFinding) -> RunCurves:
    """The run as the figure takes it."""
    compared, ratio = finding.compared, finding.verdicts[0].rule == RATIO_RULE
    thresholds = compared.thresholds if compared.threshold is None else compared.threshold
    wrong = finding.wrong_share
    return RunCurves(
        title=finding.title,
        n_labelled=finding.n_labelled,
        error=wrong or finding.error,
        error_name=WRONG_SHARE_NAME if wrong else finding.error_name or "",
        value=finding.ratio if ratio else compared.values,
        value_name=compared.name,
        threshold=thresholds,
        stop=finding.stop,
        complete=finding.n_labelled[-1] == finding.pool,
        scale="ratio" if ratio else "log" if compared.log else "linear",
        threshold_name=compared.threshold_name,
        error_is_share=bool(wrong),
    )


def _show_chart(console: Console, finding: RunFinding) -> None:
    compared, width = finding.compared, max(20, min(64, console.width - 10))
    plain = not console.encoding.lower().startswith("utf")
    size: dict[str, Any] = {"width": width, "height": 9, "plain": plain}
    first, last = str(finding.n_labelled[0]), f"{finding.n_labelled[-1]} labels"
    errors = finding.shown_error
    if finding.verdicts[0].rule == LabelWorth.__name__ and errors and np.isfinite(errors).all():
        # The error comes first; what the rule compares is in the figure.
        values = [100.0 * error for error in errors] if finding.share else errors
        caption = "Wrong predictions among the test rows, %" if finding.share else "Error on the test rows (RMSE)"
        lines = number_chart(values, [math.nan] * len(values), log=False, **size)
    elif not compared.any:
        return
    elif finding.verdicts[0].rule == RATIO_RULE:
        caption, threshold = compared.caption, compared.threshold or 0.0
        # The axis is cut far below the threshold, because smaller values would flatten the rest.
        lines = chart([max(value, threshold / 20.0) for value in finding.ratio], threshold, **size)
    else:
        caption, lines = compared.caption, compared.chart(**size)
    console.print(f"\n{caption[0].upper()}{caption[1:]}", style="dim")
    console.print("\n".join([*lines, f"{'':8}{first}{last:>{width - len(first)}}"]), style="cyan", markup=False)


def _plain(values: Iterable[float]) -> list[float | None]:
    """The values, with None for numbers that are not finite, which JSON cannot represent."""
    return [value if math.isfinite(value) else None for value in values]


def found_run(request: RunRequest, job: TableJob, trace: Trace) -> RunFinding:
    """Replay the rule on a run, and find the decision at its stop.

    Args:
        request: What was asked for.
        job: The table.
        trace: The run, with its decisions.

    Raises:
        InvalidValueError: The run has no step.
    """
    # Imported after the options are validated, because it loads scikit-learn.
    from suffice.session.decision import trivial_error

    if not trace.decisions:
        raise InvalidValueError("the run has no step; there is nothing to decide")
    verdicts, made = trace.replay(job.rule), trace.decisions[-1]
    step, decision, worse = made.step if made.ends else None, made.decision, made.worsening
    last = len(verdicts) - 1 if step is None else step
    share, baseline = job.table.kind == "classification", ""
    if len(job.test) > 1:
        error, common = trivial_error(job.table.y[job.test], share=share)
        baseline = "" if error is None else trivial_error_words(error, share=share, common=common or "")
    return RunFinding(
        **_about(request, job, trace, verdicts),
        stop=step,
        decision=decision,
        warning="" if worse is None else worsening_sentence(worse.random_labels),
        unmet=_unmet(job, trace, last),
        test_baseline=baseline,
    )


def found_audit(
    request: RunRequest,
    job: TableJob,
    trace: Trace,
    orders: "Sequence[AuditedStop] | None",
    *,
    orders_seconds: float = 0.0,
) -> RunFinding:
    """Replay the rule on an audited run, and measure the error of the rows after its stop."""
    from suffice.learner.hindsight import audited_stop

    verdicts = trace.replay(job.rule)
    X, y = job.pool_features[: job.labels], job.pool_labels[: job.labels]
    audited = audited_stop(job.model, X, y, trace, job.rule, at_most=job.at_most, verdicts=verdicts)
    stop = next((step for step, verdict in enumerate(verdicts) if verdict.stop), None)
    return RunFinding(
        **_about(request, job, trace, verdicts),
        stop=stop,
        decision=audited.decision,
        unmet=_unmet(job, trace, len(verdicts) - 1 if stop is None else stop),
        audited=audited,
        orders=orders,
        orders_seconds=orders_seconds,
    )


def _about(request: RunRequest, job: TableJob, trace: Trace, verdicts: list[Verdict]) -> dict[str, Any]:
    """Fields of a finding about the run itself."""
    return {
        "command": request.command,
        "title": f"{request.table.data.name}: {request.table.target}",
        "table": job.table,
        "model": job.name,
        "pool": len(job.pool),
        "test": len(job.test),
        "initial": request.initial,
        "batch": request.batch,
        "trace": trace,
        "rule": job.rule,
        "verdicts": verdicts,
    }


def _unmet(job: TableJob, trace: Trace, step: int) -> int:
    """Number of classes without a label up to a step; 0 for numbers."""
    if job.table.kind != "classification":
        return 0
    bought = job.pool[np.concatenate([trace.initial, trace.indices[: step + 1].ravel()])]
    return len(np.unique(job.table.y)) - len(np.unique(job.table.y[bought]))


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
        if request.output.save is None
        else problem(lambda: write_whole(Path(request.output.save or ""), finding.trace.save), raised=False)
    )
    saved = None if request.output.save is None or unsaved else request.output.save
    if saved:
        console.print(f"Run saved: {saved}", markup=False)
    if request.as_json:
        print_json(request.command, as_json(finding, None if failure else path, saved))
    if failures := [reason for reason in (failure if request.output.figure else "", unsaved) if reason]:
        raise SufficeError("; ".join(failures))
