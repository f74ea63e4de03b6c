"""Runs grouped as reported: by experiment in the paper's order, then by seed."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf, isnan
from statistics import median
from types import MappingProxyType
from typing import Final, NamedTuple

import numpy as np

from suffice.numerics import Floats
from suffice.research.data.protocols import MODELS, PUBLISHED
from suffice.research.paper.outcome import RunOutcome

#: What the paper calls the data sets.
_TITLES: Final = MappingProxyType(
    {
        "power_plant": "Power plant",
        "protein": "Protein",
        "gas_emission": "Gas emission",
        "grid_stability": "Grid stability (r)",
        "grid_stability_c": "Grid stability (c)",
        "skin": "Skin",
        "htru2": "HTRU2",
        "mnist": "MNIST",
    }
)
_EXPERIMENTS: Final = tuple(PUBLISHED)
#: The first of an experiment's thresholds are the paper's, the others those of its script.
_THRESHOLDS: Final = {each.model: tuple(f"{value:g}" for value in each.thresholds[:3]) for each in PUBLISHED.values()}
_ARMS: Final = ("bought", None, "outside")


class MedianAndRange(NamedTuple):
    """Median and range of some numbers."""

    median: float
    lowest: float
    highest: float
    number: int


def middle(values: Iterable[float]) -> float:
    """Median; where one is infinite, for never, the larger of the two in the middle of an even number.

    Examples:
        >>> middle([1.0, 2.0]), middle([1.0, float("inf")])
        (1.5, inf)
    """
    given = sorted(values)
    return given[len(given) // 2] if inf in given else float(median(given))


def spread(values: Iterable[float]) -> MedianAndRange | None:
    """Median and range; None of nothing. Infinity, for never, is beyond every number.

    Examples:
        >>> spread([3.0, 1.0, float("inf")])
        MedianAndRange(median=3.0, lowest=1.0, highest=inf, number=3)
    """
    given = sorted(values)
    return MedianAndRange(middle(given), given[0], given[-1], len(given)) if given else None


@dataclass(frozen=True)
class RunGroup:
    """The runs of one experiment and one arm.

    Attributes:
        model: ``gpr``, ``brr``, ``blr`` or ``bdnn``.
        data: Name of the data set.
        arm: What hyper-parameters were learned from, or None.
        outcomes: One for each seed, in the order of the seeds; at least one.
    """

    model: str
    data: str
    arm: str | None
    outcomes: tuple[RunOutcome, ...]

    @property
    def name(self) -> str:
        """Model and data set."""
        return f"{self.model}/{self.data}"

    @property
    def title(self) -> str:
        """The data set as the paper calls it."""
        return _TITLES.get(self.data, self.data)

    @property
    def letter(self) -> str:
        """The letter of the experiment in the paper's figure of scatter plots; nothing for one that is not there."""
        return "abcdefghijkl"[_EXPERIMENTS.index(self.name)] if self.name in _EXPERIMENTS else ""

    @property
    def thresholds(self) -> tuple[str, ...]:
        """The paper's thresholds, largest first."""
        return _THRESHOLDS[self.model]

    @property
    def published(self) -> float | None:
        """The correlation that the paper gives."""
        return self.outcomes[0].published_correlation

    @property
    def correlations(self) -> list[float]:
        """Of the runs in which it is defined."""
        found = (each.correlation for each in self.outcomes)
        return [value for value in found if value is not None and not isnan(value)]

    @property
    def typical(self) -> RunOutcome:
        """The run whose correlation is the middle one, the lower of two; the first if none is defined."""
        ranked = sorted(self.correlations)
        lower = ranked[(len(ranked) - 1) // 2] if ranked else None
        return next((each for each in self.outcomes if each.correlation == lower), self.outcomes[0])

    def labels(self, steps: int) -> Floats:
        """Labels at hand after each of so many steps."""
        return self.outcomes[0].initial + _batch(self.name) * np.arange(1.0, steps + 1.0)

    def stops(self, threshold: str) -> list[float]:
        """Labels at hand when each run stopped; infinity if it never did."""
        batch = _batch(self.name)
        return [
            inf if (at := each.stops[threshold]) is None else each.initial + batch * (at + 1.0)
            for each in self.outcomes
        ]

    def stopped(self, threshold: str) -> int:
        """Number of runs with a stop."""
        return sum(each.stops[threshold] is not None for each in self.outcomes)

    def excesses(self, threshold: str) -> list[float]:
        """Excess error at the stop of each run; infinity if it never stopped, or if its error never fell."""
        found = (each.excess(threshold) for each in self.outcomes)
        return [inf if value is None or isnan(value) else value for value in found]


def grouped(outcomes: Iterable[RunOutcome], protocol: str) -> list[RunGroup]:
    """The runs of a protocol in the paper's order, of one experiment those with ``bought`` labels first."""
    found: dict[tuple[str, str, str | None], list[RunOutcome]] = {}
    for each in outcomes:
        if each.protocol == protocol:
            found.setdefault((each.model, each.data, each.arm), []).append(each)
    ordered = sorted(found, key=lambda key: (_rank(f"{key[0]}/{key[1]}"), key[1], _ARMS.index(key[2])))
    return [RunGroup(*key, tuple(sorted(found[key], key=lambda each: each.seed))) for key in ordered]


def main_arms(groups: Iterable[RunGroup]) -> list[RunGroup]:
    """Of each experiment the first arm that there is: ``bought`` before ``outside``."""
    first: dict[str, RunGroup] = {}
    for each in groups:
        first.setdefault(each.name, each)
    return list(first.values())


def of_model(groups: Iterable[RunGroup], model: str) -> list[RunGroup]:
    """Those of one model."""
    return [each for each in groups if each.model == model]


def on_several_sets(groups: Iterable[RunGroup]) -> list[RunGroup]:
    """Those of models that were tried on more than one data set, so that places can be compared."""
    given = list(groups)
    return [runs for runs in given if any(each.model == runs.model and each.data != runs.data for each in given)]


def other_arm(groups: Sequence[RunGroup], runs: RunGroup) -> RunGroup | None:
    """The same experiment in the other arm, where there is one."""
    return next((each for each in groups if each.name == runs.name and each.arm != runs.arm), None)


def has_two_arms(groups: Iterable[RunGroup]) -> bool:
    """Whether hyper-parameters came from bought labels here and from outside there."""
    return {"bought", "outside"} <= {each.arm for each in groups}


def told_arm(groups: Iterable[RunGroup]) -> str:
    """Source of the hyper-parameters of some runs, as a sentence; empty if there is no choice."""
    arms = {each.arm for each in groups} - {None}
    words = {"bought": "bought labels", "outside": "labels outside the run"}
    return f" Hyper-parameters from {words[str(arms.pop())]}." if len(arms) == 1 else ""


def _batch(name: str) -> int:
    return PUBLISHED[name].batch if name in PUBLISHED else 1


def _rank(name: str) -> tuple[int, int]:
    model = list(MODELS).index(name.partition("/")[0])
    return model, _EXPERIMENTS.index(name) if name in _EXPERIMENTS else len(_EXPERIMENTS)
