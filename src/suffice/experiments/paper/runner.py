"""Runs of the paper carried out: what one of them needs, how it is run, and what is reported of it."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TypeAlias

from suffice.data.checking import require_set
from suffice.experiments import runner
from suffice.experiments.paper.outcome import Outcome, measure
from suffice.experiments.paper.plan import Job
from suffice.experiments.paper.runs import run_experiment
from suffice.trace import Trace


@dataclass(frozen=True)
class Run(Job):
    """A job of the paper that can be carried out; see :class:`suffice.experiments.runner.Job`."""

    @classmethod
    def of(cls, job: Job) -> "Run":
        """The run of a job."""
        return cls(**{each.name: getattr(job, each.name) for each in fields(job)})

    @property
    def steps(self) -> int:
        """Acquisitions that it makes."""
        return self.experiment.step_count

    @property
    def data(self) -> str:
        """Name of its data set."""
        return self.experiment.data

    @property
    def alone(self) -> bool:
        """A network takes the whole machine, or the one GPU."""
        return self.experiment.model == "bdnn"

    def ready(self) -> None:
        """Make sure that the files of its data set are there and right.

        Raises:
            MissingDataError: One is not there.
            CorruptDataError: One is not what it should be.
        """
        require_set(self.data)

    def run(self, traces: Path, progress: runner.Moved | None) -> Trace:
        """Run it; a network's run is kept after every round, until it is done, to go on from."""
        if not self.alone:
            return run_experiment(self.experiment, self.seed, progress=progress)
        checkpoint = traces / f"{self.stem}.checkpoint"
        trace = run_experiment(self.experiment, self.seed, checkpoint=checkpoint, progress=progress)
        checkpoint.unlink(missing_ok=True)
        return trace


Skipped: TypeAlias = runner.Skipped[Run]
Watcher: TypeAlias = runner.Watcher[Outcome | Skipped]


def kept(job: Job, traces: Path) -> Trace | None:
    """The run as it was kept, if it was, and if it is still what is asked for."""
    return runner.kept(Run.of(job), traces)


def measured(run: Run, trace: Trace) -> Outcome:
    """What is reported of a run that was carried out."""
    seconds = float(trace.about.get("seconds", 0.0))
    return measure(run.experiment, trace, seed=run.seed, arm=run.arm, seconds=seconds)


def carry_out(job: Job, traces: Path, moved: runner.Moved | None = None) -> Outcome:
    """Run a job and keep its trace, or take the trace that is there already; see :mod:`suffice.experiments.runner`."""
    run = Run.of(job)
    return measured(run, runner.carry_out(run, traces, moved))


def carry_out_all(jobs: Sequence[Job], traces: Path, workers: int, watcher: Watcher) -> list[Outcome | Skipped]:
    """Carry out runs, several at once; see :func:`suffice.experiments.runner.carry_out_all`."""
    return runner.carry_out_all([Run.of(job) for job in jobs], traces, workers, watcher, measured)
