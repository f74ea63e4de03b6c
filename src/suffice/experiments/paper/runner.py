"""Runs of the paper carried out and measured; see :mod:`suffice.experiments.runner`."""

from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

from suffice.experiments import runner
from suffice.experiments.paper.outcome import RunOutcome, measure
from suffice.experiments.paper.plan import PaperRun
from suffice.trace import Trace

SkippedPaperRun: TypeAlias = runner.SkippedRun[PaperRun]
PaperRunWatcher: TypeAlias = runner.RunWatcher[RunOutcome | SkippedPaperRun]


def measured(run: PaperRun, trace: Trace) -> RunOutcome:
    """Return the measures of a run, given its trace."""
    seconds = float(trace.about.get("seconds", 0.0))
    return measure(run.experiment, trace, seed=run.seed, arm=run.arm, seconds=seconds)


def measured_run(run: PaperRun, traces: Path, progress: runner.StepProgress | None = None) -> RunOutcome:
    """Carry out a run, unless its trace is saved already, and return its measures."""
    return measured(run, runner.carry_out(run, traces, progress))


def measured_runs(
    runs: Sequence[PaperRun], traces: Path, workers: int, watcher: PaperRunWatcher
) -> list[RunOutcome | SkippedPaperRun]:
    """Carry out runs, several at once; see :func:`suffice.experiments.runner.carry_out_all`."""
    return runner.carry_out_all(runs, traces, workers, watcher, measured)
