"""Which runs of the paper are asked for, what they are called, and when two of them are the same."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from suffice.errors import InvalidValueError
from suffice_research.data.catalogue import SETS
from suffice_research.data.protocols import CORRECTED, MODELS, PUBLISHED, Experiment
from suffice_research.paper import experiments as planning
from suffice_research.paper.claims import erratum_runs
from suffice_research.paper.experiments import PaperRun, choose, plan


def names(found: Sequence[Experiment]) -> list[str]:
    return [each.name for each in found]


def test_experiments_are_chosen_by_name_model_or_data_set() -> None:
    assert names(choose("published", None)) == list(PUBLISHED)
    assert choose("corrected", None) == list(CORRECTED.values())
    assert names(choose("published", "gpr/power_plant")) == ["gpr/power_plant"]
    assert names(choose("published", "blr")) == ["blr/grid_stability_c", "blr/skin", "blr/htru2"]
    assert names(choose("corrected", "power_plant")) == ["gpr/power_plant", "brr/power_plant"]
    assert choose("corrected", "skin") == [CORRECTED["blr/skin"]]
    # Names are whole: grid_stability is not grid_stability_c.
    assert names(choose("published", "grid_stability")) == ["gpr/grid_stability", "brr/grid_stability"]


def test_order_case_blanks_and_doubles_do_not_matter() -> None:
    expected = ["gpr/protein", "blr/skin", "bdnn/mnist"]
    assert names(choose("published", "mnist,skin,gpr/protein")) == expected
    assert names(choose("published", " GPR/Protein , SKIN,, bdnn,gpr/protein ")) == expected


@pytest.mark.parametrize("only", ["", "  ", ",", " , ,"])
def test_nothing_asked_for(only: str) -> None:
    with pytest.raises(InvalidValueError, match=r"--only is empty; .*gpr/power_plant"):
        choose("published", only)


@pytest.mark.parametrize(
    ("name", "guess"),
    [
        ("gpr/powerplant", "gpr/power_plant"),
        ("skn", "skin"),
        ("gp", "gpr"),
        ("HTRU", "htru2"),
        ("brr/skin", "blr/skin"),
    ],
)
def test_an_unknown_name_is_told_with_the_nearest(name: str, guess: str) -> None:
    with pytest.raises(InvalidValueError) as told:
        choose("published", f"gpr,{name}")
    assert repr(name.lower()) in str(told.value)
    assert f"Did you mean {guess}" in str(told.value)
    assert str(told.value).endswith(", ".join(PUBLISHED))


def test_an_unknown_name_like_none() -> None:
    with pytest.raises(InvalidValueError, match="which is none of the experiments") as told:
        choose("corrected", "zzzzzzzz")
    assert "Did you mean" not in str(told.value)


def test_seeds_and_arms() -> None:
    assert [(job.seed, job.arm) for job in plan([PUBLISHED["gpr/protein"]])] == [(1, None)]
    assert [job.seed for job in plan([PUBLISHED["bdnn/mnist"]], 3)] == [1, 2, 3]
    jobs = plan([CORRECTED["blr/skin"]])
    assert [(job.seed, job.arm) for job in jobs] == [(seed, arm) for seed in range(10) for arm in ("bought", "outside")]
    for job in jobs:
        assert job.experiment.hyperparameters == job.arm
        assert replace(job.experiment, hyperparameters="bought") == CORRECTED["blr/skin"]
    # A network has no hyper-parameters to learn, so only one way to run.
    assert [(job.seed, job.arm) for job in plan([CORRECTED["bdnn/mnist"]], 2)] == [(0, None), (1, None)]


def test_no_two_runs_share_a_file_or_a_name() -> None:
    jobs = plan([*PUBLISHED.values(), *CORRECTED.values()], 3)
    changed = [job for base in jobs if base.experiment.protocol == "published" for _, job in erratum_runs(base)]
    every = [*jobs, *(job for job in changed if not job.shared)]
    assert len({job.stem for job in every}) == len(every)
    assert len({job.name for job in [*jobs, *changed]}) == len(jobs) + len(changed)
    assert all(re.fullmatch(r"[\w+-]+", job.stem) for job in every)
    # Those of a network are the same under both protocols, and only measured otherwise.
    small = [job for job in every if job.experiment.model != "bdnn"]
    assert len({job.identity for job in small}) == len(small)
    seeds = {job.identity: job.seed for job in every if job.experiment.model == "bdnn"}
    assert sorted(seeds.values()) == [0, 1, 2, 3]


def test_a_run_that_is_only_measured_otherwise_has_the_file_of_the_run() -> None:
    job = PaperRun(PUBLISHED["brr/power_plant"], 1, variant="one step more")
    assert job.stem == "published-brr-power_plant-1-one_step_more"
    assert job.name == "published brr/power_plant, seed 1, one step more"
    shared = replace(job, shared=True)
    assert shared.stem == PaperRun(PUBLISHED["brr/power_plant"], 1).stem == "published-brr-power_plant-1"
    # People are told what it is all the same.
    assert shared.name == job.name


# --------------------------------------------------------------------------------------------------- identity

BASE = PaperRun(CORRECTED["blr/htru2"], 3, "bought")
SETTINGS: list[dict[str, Any]] = [
    {"protocol": "published"}, {"model": "brr"}, {"data": "skin"}, {"test": 4999}, {"pool": 700}, {"initial": 99},
    {"steps": 20}, {"batch": 2}, {"outside": 999}, {"hyperparameters": "outside"}, {"centres": 4}, {"bandwidth": 0.5},
    {"noise_floor": 0.1}, {"iterations": 10}, {"inverse_precision": 1.0}, {"information": "C"},
    {"covariance": "printed"}, {"intercept": "out"}, {"loss": "both"},
    {"view": BASE.experiment.view._replace(rows_lost=1)},
    {"view": BASE.experiment.view._replace(inputs=BASE.experiment.view.inputs[1:])},
    {"view": BASE.experiment.view._replace(positive=0.0)},
]  # fmt: skip
READ_LATER: list[dict[str, Any]] = [
    {"thresholds": (0.5,)}, {"calibration": 3}, {"counted_from": 4}, {"correlation": 0.5}, {"stops": {"0.2": 3}},
]  # fmt: skip


@pytest.mark.parametrize("changes", SETTINGS, ids=lambda changes: next(iter(changes)))
def test_another_setting_is_another_run(changes: dict[str, Any]) -> None:
    assert replace(BASE, experiment=replace(BASE.experiment, **changes)).identity != BASE.identity


@pytest.mark.parametrize("changes", READ_LATER, ids=lambda changes: next(iter(changes)))
def test_what_is_only_read_from_a_run_does_not_make_it_another(changes: dict[str, Any]) -> None:
    assert replace(BASE, experiment=replace(BASE.experiment, **changes)).identity == BASE.identity


def test_every_setting_is_thought_of() -> None:
    named = {name for changes in (*SETTINGS, *READ_LATER) for name in changes}
    assert named == set(Experiment.__dataclass_fields__)


def test_seed_data_and_version_make_another_run(monkeypatch: pytest.MonkeyPatch) -> None:
    before = BASE.identity
    assert replace(BASE, seed=4).identity != before
    (file,) = SETS["htru2"].files
    other = replace(SETS["htru2"], files=(replace(file, sha256="0" * 64),))
    with monkeypatch.context() as patch:
        patch.setattr(planning, "SETS", {**SETS, "htru2": other})
        assert BASE.identity != before
    with monkeypatch.context() as patch:
        patch.setitem(planning._VERSIONS, "blr", 99)
        assert BASE.identity != before
    with monkeypatch.context() as patch:
        # Another model's code is not this one's.
        patch.setitem(planning._VERSIONS, "gpr", 99)
        assert BASE.identity == before
    assert set(planning._VERSIONS) == set(MODELS)
    assert BASE.identity == before


# ------------------------------------------------------------------------------------------- of a network's run

NETWORK = PaperRun(PUBLISHED["bdnn/mnist"], 3)
#: Both errors are kept with the run, and there is nothing to be learned beforehand.
READ_LATER_OF_A_NETWORK: list[dict[str, Any]] = [
    *READ_LATER, {"loss": "expected"}, {"protocol": "corrected"}, {"hyperparameters": "bought"},
]  # fmt: skip


@pytest.mark.parametrize("changes", READ_LATER_OF_A_NETWORK, ids=lambda changes: next(iter(changes)))
def test_what_is_only_read_from_a_network(changes: dict[str, Any]) -> None:
    assert replace(NETWORK, experiment=replace(NETWORK.experiment, **changes)).identity == NETWORK.identity


@pytest.mark.parametrize("changes", [{"initial": 999}, {"steps": 20}, {"batch": 2}, {"test": 99}], ids=str)
def test_another_setting_is_another_run_of_a_network(changes: dict[str, Any]) -> None:
    assert replace(NETWORK, experiment=replace(NETWORK.experiment, **changes)).identity != NETWORK.identity


def test_the_protocols_differ_only_in_how_they_measure_a_network() -> None:
    corrected = PaperRun(CORRECTED["bdnn/mnist"], 3)
    assert corrected.identity == NETWORK.identity
    assert corrected.stem != NETWORK.stem
    assert replace(corrected, seed=4).identity != NETWORK.identity
