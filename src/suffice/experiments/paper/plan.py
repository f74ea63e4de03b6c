"""Which runs are asked for, and how each is known again."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from difflib import get_close_matches

from suffice.data.catalogue import PAPER_SETS, SETS
from suffice.data.protocols import MODELS, PROTOCOLS, PUBLISHED, Experiment
from suffice.errors import InvalidValueError
from suffice.experiments.paper.runs import arms

# To be raised whenever the code makes a model's runs come out otherwise: what was kept before is then run again.
_VERSIONS = {"gpr": 2, "brr": 2, "blr": 2, "bdnn": 1}
# Settings that a run does not depend on, only what is read from it. (A network's run keeps both of its errors.)
_MEASURED_LATER = frozenset({"thresholds", "calibration", "counted_from", "correlation", "stops"})
_MEASURED_LATER_OF_NETWORKS = _MEASURED_LATER | {"loss", "protocol", "hyperparameters"}


@dataclass(frozen=True)
class Job:
    """A run that is asked for.

    Attributes:
        experiment: What to run.
        seed: Its seed.
        arm: What its hyper-parameters are learned from, where that is a question.
        variant: What is changed for it, if it is not as the protocol says.
        shared: Whether it is the very run of the protocol, and only measured otherwise.
    """

    experiment: Experiment
    seed: int
    arm: str | None = None
    variant: str | None = None
    shared: bool = False

    @property
    def name(self) -> str:
        """What it is called, for people."""
        arm = f", hyper-parameters from labels {self.arm}" if self.arm else ""
        variant = f", {self.variant}" if self.variant else ""
        return f"{self.experiment.protocol} {self.experiment.name}, seed {self.seed}{arm}{variant}"

    @property
    def stem(self) -> str:
        """What its files are called, without their endings."""
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


def plan(experiments: Iterable[Experiment], seeds: int | None = None) -> list[Job]:
    """The runs of some experiments, seed by seed.

    Args:
        experiments: What to run.
        seeds: How many; 1 under the published protocol (the authors' seed) and 10 under the corrected one if left out.

    Examples:
        >>> [job.seed for job in plan([PUBLISHED["gpr/protein"]], 2)]
        [1, 2]
    """
    return [
        Job(setting, seed, arm)
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
