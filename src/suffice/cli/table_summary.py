"""What was found on somebody's table: in words, as JSON, and as curves to draw."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from rich.console import Console

from suffice.cli.chart import chart
from suffice.criteria import Verdict
from suffice.data import Table
from suffice.report.run_figure import RunCurves
from suffice.trace import Trace

_ERROR_NAME = {
    "regression": "test error (root mean square, with the model's own variance)",
    "classification": "test error (cross entropy, expected over the model's own uncertainty)",
}


@dataclass(frozen=True, eq=False)
class Finding:
    """A run over a table, and where the rule stopped.

    Attributes:
        title: Which table, and which target.
        table: What was read.
        model: Name of the model.
        pool: Rows that could be labelled.
        initial: Labels before the first step.
        batch: Labels at each step.
        trace: The run.
        verdicts: What the rule said after each step.
        stop: Index of the first step at which it said stop, or None.
        accuracy: Of the predictions at the stop and at the end, for classes with a test set; else empty.
        unmet: Classes of the table of which no label was bought up to the stop, or the end.
    """

    title: str
    table: Table
    model: str
    pool: int
    initial: int
    batch: int
    trace: Trace
    verdicts: list[Verdict]
    stop: int | None
    accuracy: list[float]
    unmet: int = 0

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
    def error(self) -> list[float]:
        """The error on the test set after each step, in the target's units or in nats; empty without a test set."""
        error = np.sqrt(self.trace.error) if self.table.kind == "regression" else self.trace.error
        return [float(e) for e in error]

    @property
    def error_name(self) -> str | None:
        """What that error is, or None without a test set."""
        return _ERROR_NAME[self.table.kind] if self.error else None


def introduce(console: Console, data: Path, target: str, table: Table, about: str) -> None:
    """Tell a person what was read and what was made of it, before the run."""
    rows, features = table.X.shape
    classes = f" ({len(np.unique(table.y))} classes)" if table.kind == "classification" else ""
    console.print(f"{data.name}: {_count(rows, 'row')}, {_count(features, 'feature')}, target {target!r}", markup=False)
    console.print(f"{table.kind.capitalize()}{classes}; model: {about}", markup=False)
    for note in table.notes:
        console.print(f"- {note}", markup=False)


def summarise(console: Console, found: Finding) -> None:
    """Tell a person how it came out."""
    verdict, n, end, pool = found.verdicts[found.last], found.n_labelled[found.last], found.n_labelled[-1], found.pool
    at_end = f"with {'all ' if end == pool else ''}{end} labels"
    _show_chart(console, found)
    if found.stop is None:
        left = "" if verdict.forecast is None else f" {str(verdict.forecast).capitalize()}."
        console.print(f"\nNot enough {at_end.replace('with', 'within')}: {verdict.reason}.{left}", style="bold")
        if end + found.batch <= pool:
            console.print(f"There are {pool} rows to label: look further with --most, or to the end with --most 0.")
    else:
        console.print(f"\nEnough at {n} of {pool} labels: {verdict.reason}.", style="bold")
        console.print(
            f"Labels that would have been saved: {pool - n} of {pool} ({100.0 * (pool - n) / pool:.3g}\u00a0%)."
        )
    if found.error_name is not None:
        error, last = found.error[found.last], found.error[-1]
        change = f" ({100.0 * (error - last) / last:+.1f}\u00a0%)" if last > 0.0 else ""
        stop = "" if found.stop is None else f"{error:.4g} at the stop, "
        console.print(f"{found.error_name.capitalize()}: {stop}{last:.4g} {at_end}{change if stop else ''}.")
    if found.accuracy:
        stop = "" if found.stop is None else f"{found.accuracy[0]:.3f} at the stop, "
        console.print(f"Accuracy of the predictions: {stop}{found.accuracy[-1]:.3f} {at_end}.")
    if found.unmet:
        classes = len(np.unique(found.table.y))
        console.print(f"Beware: no label of {found.unmet} of the {classes} classes has been bought up to there.")
    console.print(f"Certificate: {verdict.certificate}", markup=False)


def as_json(found: Finding, figure: Path | None, saved_trace: Path | None) -> dict[str, object]:
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
        "ratio": verdict.value,
        "threshold": verdict.threshold,
        "reason": verdict.reason,
        "certificate": str(verdict.certificate),
        "forecast": left,
        "notes": list(found.table.notes),
        "figure": None if figure is None else str(figure),
        "saved_trace": None if saved_trace is None else str(saved_trace),
        "curve": {"n_labelled": found.n_labelled, "ratio": _plain(found.ratio), "error": error},
    }


def curves(found: Finding) -> RunCurves:
    """The run as the figure takes it."""
    return RunCurves(
        title=found.title,
        n_labelled=found.n_labelled,
        error=found.error,
        error_name=found.error_name or "",
        value=found.ratio,
        value_name="error ratio",
        threshold=found.verdicts[0].threshold or 0.0,
        stop=found.stop,
        complete=found.n_labelled[-1] == found.pool,
    )


def _show_chart(console: Console, found: Finding) -> None:
    width, threshold = max(20, min(64, console.width - 10)), found.verdicts[0].threshold or 0.0
    plain = not console.encoding.lower().startswith("utf")
    first, last = str(found.n_labelled[0]), f"{found.n_labelled[-1]} labels"
    # What happens far below the threshold is of no interest and would flatten the rest.
    values = [max(value, threshold / 20.0) for value in found.ratio]
    lines = chart(values, threshold, width=width, height=9, plain=plain)
    console.print(f"\nError ratio, and the threshold {threshold:g}", style="dim")
    console.print("\n".join([*lines, f"{'':8}{first}{last:>{width - len(first)}}"]), style="cyan", markup=False)


def _plain(values: Iterable[float]) -> list[float | None]:
    """JSON knows no infinite numbers."""
    return [value if math.isfinite(value) else None for value in values]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"
