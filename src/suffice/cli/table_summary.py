"""What was found on somebody's table: in words, as JSON, and as curves to draw."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from rich.console import Console

from suffice.cli.rule_values import RuleValues
from suffice.criteria import Criterion, ExpectedCost, LabelWorth, Verdict
from suffice.data import Table
from suffice.experiments.compare.costs import CostedRun, cost_curve, optimal_steps
from suffice.presentation.messages import (
    RATIO_RULE,
    best_stop_sentence,
    classes_without_labels_sentence,
    labels_saved_sentence,
    run_accuracy_sentence,
    run_enough_sentence,
    run_error_sentence,
    run_not_enough_sentence,
    with_labels,
)
from suffice.presentation.number_format import count
from suffice.presentation.text_chart import chart
from suffice.report.run_figure import RunCurves
from suffice.trace import Trace

_ERROR_NAME = {
    "regression": "test error (root mean square, with the model's own variance)",
    "classification": "test error (cross entropy, expected over the model's own uncertainty)",
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
        accuracy: Of the predictions at the stop and at the end, for classes with a test set; else empty.
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
    accuracy: list[float]
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
        run, ratio = CostedRun.of(self.trace), rule.error_cost / rule.label_cost
        costs, step = cost_curve(run, ratio), optimal_steps(run, [ratio])[0]
        dearer = float(costs[self.last] - costs[step])
        return Best(self.n_labelled[step], rule.label_cost * dearer, dearer / float(costs[step]))

    @cached_property
    def error(self) -> list[float]:
        """The error on the test set after each step, in the target's units or in nats; empty without a test set."""
        error = np.sqrt(self.trace.error) if self.table.kind == "regression" else self.trace.error
        return [float(e) for e in error]

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
    if found.error_name is not None:
        at_stop = found.error[found.last] if stopped else None
        console.print(run_error_sentence(found.error_name, at_stop, found.error[-1], at_end))
    if found.accuracy:
        console.print(run_accuracy_sentence(found.accuracy[0] if stopped else None, found.accuracy[-1], at_end))
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
    error = _plain(found.error)
    return {
        "task": found.table.kind,
        "model": found.model,
        "acquisition": found.trace.about.get("acquisition"),
        "rows": len(found.table.y),
        "pool": found.pool,
        "features": found.table.X.shape[1],
        "initial": found.initial,
        "batch": found.batch,
        "stopped": found.stop is not None,
        "labels": n,
        "saved": 0 if found.stop is None else found.pool - n,
        "error_at_stop": error[found.last] if error and found.stop is not None else None,
        "error_at_end": error[-1] if error else None,
        "error_name": found.error_name,
        "accuracy_at_stop": found.accuracy[0] if found.accuracy and found.stop is not None else None,
        "accuracy_at_end": found.accuracy[-1] if found.accuracy else None,
        "classes_not_met": found.unmet,
        **_judged(found, verdict),
        "threshold": verdict.threshold,
        "reason": verdict.reason,
        "certificate": None if verdict.certificate is None else str(verdict.certificate),
        "forecast": left,
        "notes": list(found.table.notes),
        "figure": None if figure is None else str(figure),
        "saved_trace": None if saved_trace is None else str(saved_trace),
        "curve": {"n_labelled": found.n_labelled, **_judged_curve(found), "error": error},
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
    return RunCurves(
        title=found.title,
        n_labelled=found.n_labelled,
        error=found.error,
        error_name=found.error_name or "",
        value=found.ratio if ratio else number.values,
        value_name=number.name,
        threshold=thresholds,
        stop=found.stop,
        complete=found.n_labelled[-1] == found.pool,
        scale="ratio" if ratio else "log" if number.log else "linear",
        threshold_name=number.threshold_name,
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
