"""The paper's experiments as records: columns, splits and settings, as published and as corrected."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final, Literal, NamedTuple

from suffice_research.data.catalogue import PAPER_SETS, SETS


class ColumnRoles(NamedTuple):
    """The columns that are inputs, and the column that is predicted.

    Attributes:
        inputs: Names of the input columns; all are standardised.
        target: Name of the column that is predicted.
        positive: The value that is class 1, every other being class 0; None for a number.
        standardised: Whether a numeric target is standardised.
        rows_lost: Rows at the start of the file that are left out.

    Examples:
        >>> ColumnRoles(inputs=("rooms", "age"), target="price").standardised
        True
    """

    inputs: tuple[str, ...]
    target: str
    positive: float | None = None
    standardised: bool = True
    rows_lost: int = 0


@dataclass(frozen=True)
class Experiment:
    """One model on one data set.

    Attributes:
        protocol: ``published`` or ``corrected``.
        model: ``gpr``, ``brr``, ``blr`` or ``bdnn``.
        data: Name of the data set.
        view: Which columns.
        test: Rows to test on.
        pool: Rows to choose labels from, at most; all the rest if None.
        initial: Labels at the start.
        steps: Acquisitions, at most.
        batch: Labels an acquisition.
        thresholds: Those of the paper first, then those of the script.
        calibration: Steps that the first ratio is the minimum of.
        counted_from: First step, from 0, that counts for the correlation: the last that the ratio is calibrated by, but
            for the authors' network, where all do.
        outside: Labels kept out of the run, which one arm learns its hyper-parameters from.
        hyperparameters: What they are learned from: the ``pool`` before the run starts (labels that nobody has bought),
            the labels ``bought`` so far, or labels ``outside`` the run.
        centres: Centres of the basis.
        bandwidth: Width of the basis in steps between centres.
        noise_floor: Least noise variance of the process, where it is bounded.
        iterations: Of the evidence's fixed point, where they do not go on until it is reached.
        inverse_precision: C of the logistic regression, where it is set by hand.
        information: What the logistic posterior adds to the information of the labels: ``C``, where it should be the
            prior ``precision``.
        covariance: Whether the covariance of the logistic posterior is the ``inverse`` of the information, or the
            information itself (as ``printed``).
        intercept: Whether the logistic posterior leaves the intercept ``out`` or has it ``in``.
        loss: What counts as error of a class: the cross entropy of the positive class alone (``one class``), of both at
            the most probable weights (``both``), or its mean over the posterior (``expected``); of a network's
            probabilities taken for logits (``softmax twice``).
        correlation: What was published, if it was.
        stops: At which acquisition the published run stopped, where the paper tells.
    """

    protocol: Literal["published", "corrected"]
    model: str
    data: str
    view: ColumnRoles
    test: int
    pool: int | None
    initial: int
    steps: int
    thresholds: tuple[float, ...]
    batch: int = 1
    calibration: int = 10
    counted_from: int = 9
    outside: int = 0
    hyperparameters: Literal["pool", "bought", "outside"] = "bought"
    centres: int = 0
    bandwidth: float = 1.0
    noise_floor: float | None = None
    iterations: int | None = None
    inverse_precision: float | None = None
    information: Literal["C", "precision"] = "precision"
    covariance: Literal["inverse", "printed"] = "inverse"
    intercept: Literal["out", "in"] = "in"
    loss: Literal["one class", "both", "expected", "softmax twice"] = "expected"
    correlation: float | None = None
    stops: Mapping[str, int | None] | None = None

    @property
    def name(self) -> str:
        """Model and data set, as the command names them."""
        return f"{self.model}/{self.data}"

    @property
    def rows(self) -> int:
        """Rows of the data set that are used."""
        return SETS[self.data].rows - self.view.rows_lost

    @property
    def pool_size(self) -> int:
        """Rows of the pool."""
        rest = self.rows - self.test - self.outside
        return rest if self.pool is None else min(self.pool, rest)

    @property
    def step_count(self) -> int:
        """Largest number of acquisitions for the size of the pool."""
        return min(self.steps, (self.pool_size - self.initial) // self.batch)


#: Names of the models in the paper.
MODELS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "gpr": "Gaussian process regression",
        "brr": "Bayesian ridge regression",
        "blr": "Bayesian logistic regression",
        "bdnn": "Bayesian deep neural network",
    }
)

#: Explanation of the short names of the models in names of runs and in figures.
RUN_NAMES: Final = f"In names of runs, {', '.join(f'{short} is {name}' for short, name in MODELS.items())}."
SHORT_NAMES: Final = f"{', '.join(f'{short.upper()} is {name}' for short, name in MODELS.items())}."

_AFTER_FIRST: Final = {name: each.columns[1:] for name, each in PAPER_SETS.items()}
_GRID_INPUTS: Final = tuple(name for name in SETS["grid_stability"].columns[:12] if name != "p1")

#: Columns that the authors' loader used: it reads the first column of a CSV as an index and drops it, and the first row
#: of HTRU2 as a header.
PUBLISHED_VIEWS: Final[Mapping[str, ColumnRoles]] = MappingProxyType(
    {
        "power_plant": ColumnRoles(("AT", "V", "AP", "RH"), "PE"),
        "protein": ColumnRoles(("RMSD", "F1", "F2", "F3", "F4", "F5", "F6", "F7", "F8"), "F9"),
        "gas_emission": ColumnRoles(_AFTER_FIRST["gas_emission"], "CDP"),
        "grid_stability": ColumnRoles(_AFTER_FIRST["grid_stability"][:-2], "stab", standardised=False),
        "grid_stability_c": ColumnRoles(_AFTER_FIRST["grid_stability_c"][:-2], "stabf", positive=0.0),
        "skin": ColumnRoles(("B", "G", "R"), "class", positive=1.0),
        "htru2": ColumnRoles(_AFTER_FIRST["htru2"][:-1], "class", positive=1.0, rows_lost=1),
        "mnist": ColumnRoles((), "digit"),
    }
)

#: The columns that the paper describes, by the names on the pages of the data sets.
CORRECTED_VIEWS: Final[Mapping[str, ColumnRoles]] = MappingProxyType(
    {
        "power_plant": ColumnRoles(("AT", "V", "AP", "RH"), "PE"),
        "protein": ColumnRoles(("F1", "F2", "F3", "F4", "F5", "F6", "F7", "F8", "F9"), "RMSD"),
        "gas_emission": ColumnRoles(("AT", "AP", "AH", "AFDP", "GTEP", "TIT", "TAT", "CDP"), "TEY"),
        "grid_stability": ColumnRoles(_GRID_INPUTS, "stab"),
        "grid_stability_c": ColumnRoles(_GRID_INPUTS, "stabf", positive=1.0),
        "skin": ColumnRoles(("B", "G", "R"), "class", positive=1.0),
        "htru2": ColumnRoles(SETS["htru2"].columns[:-1], "class", positive=1.0),
        "mnist": ColumnRoles((), "digit"),
    }
)


def _published(model: str, data: str, **settings: object) -> Experiment:
    models: dict[str, dict[str, object]] = {
        "gpr": {"test": 2000, "pool": 5000, "initial": 10, "steps": 1000, "thresholds": (0.05, 0.04, 0.03)},
        "brr": {
            "test": 2000,
            "pool": 10_000,
            "initial": 10,
            "thresholds": (0.02, 0.015, 0.01, 0.05, 0.04, 0.03),
            "centres": 10,
            "bandwidth": 0.5,
            "iterations": 10,
        },
        "blr": {
            "test": 5000,
            "pool": None,
            "initial": 100,
            "steps": 3000,
            "thresholds": (0.3, 0.2, 0.1, 0.15),
            "centres": 5,
            "bandwidth": 0.5,
            "information": "C",
            "intercept": "out",
            "loss": "one class",
        },
        # The first training is the first of the paper's 100 rounds.
        "bdnn": {
            "test": 10_000,
            "pool": None,
            "initial": 1000,
            "steps": 99,
            "batch": 5,
            "thresholds": (0.2, 0.15, 0.1),
            "counted_from": 0,
            "loss": "softmax twice",
            "stops": {"0.2": 67, "0.15": None, "0.1": None},
        },
    }
    # The authors' minimum is over m + 1 steps: eleven, or two for the network.
    published_settings = {"calibration": 2 if model == "bdnn" else 11, "counted_from": 10, "hyperparameters": "pool"}
    merged = {**published_settings, **models[model], **settings}
    return Experiment("published", model, data, PUBLISHED_VIEWS[data], **merged)  # type: ignore[arg-type]


#: In the order of the authors' scripts, which draw all their random numbers one after the other.
PUBLISHED: Final[Mapping[str, Experiment]] = MappingProxyType(
    {
        each.name: each
        for each in (
            _published("gpr", "power_plant", noise_floor=1e-3, correlation=0.9482),
            _published("gpr", "protein", noise_floor=1e-3, correlation=0.9695),
            _published("gpr", "gas_emission", noise_floor=1e-1, correlation=0.9823),
            _published("gpr", "grid_stability", noise_floor=1e-1, correlation=0.9971),
            _published("brr", "power_plant", steps=2000, correlation=0.9898),
            _published("brr", "protein", steps=2000, correlation=0.9795),
            _published("brr", "gas_emission", steps=1000, correlation=0.9854),
            _published("brr", "grid_stability", steps=8000, correlation=0.9970),
            _published("blr", "grid_stability_c", inverse_precision=100.0, correlation=0.9303),
            _published("blr", "skin", inverse_precision=0.001, correlation=0.9870),
            _published("blr", "htru2", inverse_precision=1.0, correlation=0.2434),
            _published("bdnn", "mnist", correlation=0.9564),
        )
    }
)


def _corrected(published: Experiment) -> Experiment:
    deep = published.model == "bdnn"
    return replace(
        published,
        protocol="corrected",
        view=CORRECTED_VIEWS[published.data],
        calibration=1 if deep else 10,
        counted_from=0 if deep else 9,
        outside=0 if deep else 1000,
        hyperparameters="bought",
        bandwidth=1.0,
        noise_floor=None,
        iterations=None,
        inverse_precision=None,
        information="precision",
        intercept="in",
        loss="expected",
    )


CORRECTED: Final[Mapping[str, Experiment]] = MappingProxyType(
    {name: _corrected(each) for name, each in PUBLISHED.items()}
)
#: Names of the two protocols in headings.


def spelled_model(model: str) -> str:
    """Name of a model of the paper, with its short name.

    Examples:
        >>> spelled_model("gpr")
        'Gaussian process regression (GPR)'
    """
    return f"{MODELS[model]} ({model.upper()})"


TITLES: Final[Mapping[str, str]] = MappingProxyType({"published": "As published", "corrected": "Corrected"})
PROTOCOLS: Final[Mapping[str, Mapping[str, Experiment]]] = MappingProxyType(
    {"published": PUBLISHED, "corrected": CORRECTED}
)
