"""The requested runs of the paper: planned, carried out, and recognised when already saved."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TypeAlias

from suffice.errors import InvalidValueError
from suffice.research import runner
from suffice.research.data.catalogue import PAPER_SETS, SETS
from suffice.research.data.folder import require_set
from suffice.research.data.protocols import MODELS, PROTOCOLS, PUBLISHED, Experiment
from suffice.research.paper.experiments import arms, run_experiment
from suffice.research.paper.outcome import RunOutcome, measure
from suffice.research.runner import StepProgress
from suffice.trace import Trace

# To be raised whenever the code makes a model's runs come out otherwise: what was kept before is then run again.
_VERSIONS = {"gpr": 2, "brr": 2, "blr": 2, "bdnn": 1}
# Settings that a run does not depend on, only what is read from it. (A network's run keeps both of its errors.)
_MEASURED_LATER = frozenset({"thresholds", "calibration", "counted_from", "correlation", "stops"})
_MEASURED_LATER_OF_NETWORKS = _MEASURED_LATER | {"loss", "protocol", "hyperparameters"}


@dataclass(frozen=True)
class PaperRun:
    """A requested run of the paper; a :class:`suffice.research.runner.RunJob`.

    Attributes:
        experiment: What to run.
        seed: Its seed.
        arm: What its hyper-parameters are learned from, where the experiment compares several answers.
        variant: What differs from the protocol; None for a run as the protocol says.
        shared: Whether it is the same run as that of the protocol, and only the measures differ.
    """

    experiment: Experiment
    seed: int
    arm: str | None = None
    variant: str | None = None
    shared: bool = False

    @property
    def name(self) -> str:
        """Name for people."""
        arm = f", hyper-parameters from labels {self.arm}" if self.arm else ""
        variant = f", {self.variant}" if self.variant else ""
        return f"{self.experiment.protocol} {self.experiment.name}, seed {self.seed}{arm}{variant}"

    @property
    def stem(self) -> str:
        """Base name of its files."""
        run = self.experiment
        variant = None if self.shared else self.variant
        parts = (run.protocol, run.model, run.data, self.arm, self.seed, variant)
        return "-".join(str(part).replace(" ", "_") for part in parts if part is not None)

    @property
    def identity(self) -> str:
        """Differs whenever settings of the run or its data do, or the code is said to: an older run is run again."""
        model = self.experiment.model
        later = _MEASURED_LATER_OF_NETWORKS if model == "bdnn" else _MEASURED_LATER
        settings = {name: value for name, value in asdict(self.experiment).items() if name not in later}
        files = [each.sha256 for each in SETS[self.experiment.data].files]
        text = json.dumps([_VERSIONS[model], settings, self.seed, files], default=dict, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def steps(self) -> int:
        """Number of acquisitions."""
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
        """Check that the files of its data set are there and right.

        Raises:
            MissingDataError: A file is missing.
            CorruptDataError: A file has the wrong checksum.
        """
        require_set(self.data)

    def run(self, traces: Path, progress: StepProgress | None) -> Trace:
        """Run it. A network saves a checkpoint after every round, until it is done, to continue from."""
        if not self.alone:
            return run_experiment(self.experiment, self.seed, progress=progress)
        checkpoint = traces / f"{self.stem}.checkpoint"
        trace = run_experiment(self.experiment, self.seed, checkpoint=checkpoint, progress=progress)
        checkpoint.unlink(missing_ok=True)
        return trace


def choose(protocol: str, only: str | None) -> list[Experiment]:
    """The experiments of a protocol, or some of them.

    Args:
        protocol: ``published`` or ``corrected``.
        only: Names with commas between: ``gpr/power_plant``, a whole model (``gpr``) or a whole data set.

    Raises:
        InvalidValueError: A name that fits nothing.

    Examples:
        >>> [each.name for each in choose("published", "gpr/protein,skin")]
        ['gpr/protein', 'blr/skin']
    """
    every = PROTOCOLS[protocol]
    if only is None:
        return list(every.values())
    wanted = [name.strip().lower() for name in only.split(",") if name.strip()]
    if not wanted:
        raise InvalidValueError("--only is empty; name experiments such as gpr/power_plant, with commas between them")
    for name in wanted:
        if not any(name in (each.name, each.model, each.data) for each in every.values()):
            raise InvalidValueError(_unknown(name))
    return [each for each in every.values() if {each.name, each.model, each.data} & set(wanted)]


def plan(experiments: Iterable[Experiment], seeds: int | None = None) -> list[PaperRun]:
    """The runs of some experiments, seed by seed.

    Args:
        experiments: What to run.
        seeds: How many; 1 under the published protocol (the authors' seed) and 10 under the corrected one if left out.

    Examples:
        >>> [job.seed for job in plan([PUBLISHED["gpr/protein"]], 2)]
        [1, 2]
    """
    return [
        PaperRun(setting, seed, arm)
        for each in experiments
        for seed in _seeds(each.protocol, seeds)
        for arm, setting in arms(each)
    ]


def _seeds(protocol: str, seeds: int | None) -> Sequence[int]:
    if protocol == "published":
        return range(1, 1 + (1 if seeds is None else seeds))
    return range(10 if seeds is None else seeds)


def _unknown(name: str) -> str:
    known = [*PUBLISHED, *MODELS, *PAPER_SETS]
    near = get_close_matches(name, known, n=1)
    guess = f" Did you mean {near[0]}?" if near else ""
    return f"--only names {name!r}, which is none of the experiments.{guess} They are {', '.join(PUBLISHED)}"


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
    """Carry out runs, several at once; see :func:`suffice.research.runner.carry_out_all`."""
    return runner.carry_out_all(runs, traces, workers, watcher, measured)
