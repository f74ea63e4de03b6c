"""Judges a run in the process that carried it out, so that its record need not be sent."""

from collections.abc import Collection
from dataclasses import dataclass

from suffice.errors import SufficeError
from suffice.experiments.compare.guarantees import BoundCoverage, guarantees
from suffice.experiments.compare.recording import MODELS, RecordingJob, RecordingSettings, prepared
from suffice.experiments.compare.rules import for_trace
from suffice.experiments.compare.scoring import RuleScore, RunCase, scores
from suffice.trace import Trace


@dataclass(frozen=True, eq=False)
class JudgedRun:
    """The results of a run for the comparison.

    Attributes:
        case: Which run.
        scores: Where each rule would have stopped, and what that would have cost.
        guarantees: How often bounds held; nothing without classes.
        first_error: Error after the first step.
        seconds: What the run took when it was recorded.
    """

    case: RunCase
    scores: tuple[RuleScore, ...]
    guarantees: tuple[BoundCoverage, ...]
    first_error: float
    seconds: float


def judged(job: RecordingJob, trace: Trace, rules: Collection[str]) -> JudgedRun:
    """Replay rules on a run, and compare what they guarantee with the truth.

    Args:
        job: The run.
        trace: Its record.
        rules: Names of the rules; those that need what the run cannot have (classes) are left out.
    """
    case = RunCase(job.data, job.model, job.seed, job.batch, variant(job.setting))
    entries = [entry for entry in for_trace(trace) if entry.name in rules]
    return JudgedRun(
        case,
        tuple(scores(case, trace, entries=entries)),
        _guarantees(job, trace),
        float(trace.error[0]),
        float(trace.about.get("seconds", 0.0)),
    )


def variant(setting: RecordingSettings) -> str:
    """What of a setting is no matter of size but of kind, in words; nothing if it is all as usual.

    Examples:
        >>> variant(RecordingSettings()), variant(RecordingSettings(noise=0.1, stop_set=200))
        ('', 'noise 0.1, stop set 200')
    """
    said = [f"noise {setting.noise:g}"] if setting.noise else []
    said += [f"imbalance {setting.imbalance:g}"] if setting.imbalance is not None else []
    said += [f"stop set {setting.stop_set}"] if setting.stop_set != RecordingSettings().stop_set else []
    return ", ".join(said)


def run_summary(found: JudgedRun) -> str:
    """Return the summary of a run, on one line."""
    one = found.scores[0]
    labels = int(max(score.labels.max() for score in found.scores if score.rule == "Never"))
    errors = f"error {found.first_error:.3g} to {one.best_error:.3g} at best"
    return f"{labels} labels, {errors}, good from {one.good_labels:.0f} labels on; {found.seconds:.1f} s"


def _guarantees(job: RecordingJob, trace: Trace) -> tuple[BoundCoverage, ...]:
    if MODELS[job.model] != "classification":
        return ()
    try:
        made = prepared(job)
    except SufficeError:
        # The run was kept, but its data are here no longer: all else can be judged without them.
        return ()
    return tuple(guarantees(trace, made.task.y_pool, made.stop_set, classes=made.model.classes))
