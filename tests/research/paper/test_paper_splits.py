"""Which rows are test, pool and first labels: against the authors' own runs, and by the numbers of the rows."""

import os
import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from suffice_research.data.protocols import CORRECTED, PUBLISHED, ColumnRoles, Experiment
from suffice_research.data.set_readers import Samples
from suffice_research.paper import experiments
from suffice_research.paper.experiments import DataSplit, choose, corrected_split, published_rows, published_split
from tests.thoroughness import some

FOLDER = os.environ.get("SUFFICE_REFERENCE")
TABLES = [name for name in PUBLISHED if name != "bdnn/mnist"]
#: What the authors' three scripts draw from: rows of each set and size of its pool, in their order; first labels.
SCRIPTS = {
    "gpr": ([(9568, 5000), (45730, 5000), (36733, 5000), (10000, 5000)], 10),
    "brr": ([(9568, 7568), (45730, 10000), (36733, 10000), (10000, 8000)], 10),
    "blr": ([(10000, 5000), (245057, 240057), (17897, 12897)], 100),
}


@pytest.mark.skipif(FOLDER is None, reason="reference runs: SUFFICE_REFERENCE is not set")
@pytest.mark.parametrize("name", ["gpr/power_plant", "brr/power_plant", "blr/grid_stability_c"])
def test_rows_are_those_of_the_authors(name: str) -> None:
    model, data = name.split("/")
    run = np.load(Path(FOLDER or "") / f"{model.upper()}_{data}.npz")
    order, initial = published_rows(PUBLISHED[name])
    assert order.tolist() == run["row_order"].tolist()
    assert set(initial.tolist()) == set(run["initial"].tolist())
    assert PUBLISHED[name].test == run["test_size"]
    assert PUBLISHED[name].pool_size == run["pool_size"]


def drawn(model: str, seed: int) -> Iterator[tuple[list[int], list[int]]]:
    """A script as it is: Python's own generator, seeded once, then one data set after the other."""
    sizes, first = SCRIPTS[model]
    before = random.getstate()
    try:
        random.seed(seed)
        for n, pool in sizes:
            yield random.sample(range(n), n), random.sample(range(pool), first)
    finally:
        random.setstate(before)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("model", list(SCRIPTS))
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_rows_are_drawn_one_set_after_the_other(model: str, seed: int) -> None:
    experiments = [each for each in PUBLISHED.values() if each.model == model]
    for each, (order, initial) in zip(experiments, drawn(model, seed), strict=True):
        found = published_rows(each, seed)
        assert found[0].tolist() == order
        assert found[1].tolist() == initial


@pytest.mark.slow
def test_a_set_asked_for_alone_has_the_rows_that_it_has_among_all() -> None:
    among_all = {each.name: each for each in choose("published", None)}
    for name in ("gpr/grid_stability", "brr/gas_emission", "blr/htru2"):
        (alone,) = choose("published", name)
        for found, expected in zip(published_rows(alone), published_rows(among_all[name]), strict=True):
            assert found.tolist() == expected.tolist()


def test_rows_do_not_depend_on_what_is_done_with_them() -> None:
    record = PUBLISHED["gpr/protein"]
    other = replace(record, steps=20, thresholds=(0.5,), noise_floor=1.0, view=record.view._replace(target="RMSD"))
    for found, expected in zip(published_rows(other), published_rows(record), strict=True):
        assert found.tolist() == expected.tolist()


def test_the_sizes_of_the_one_that_is_asked_for_count() -> None:
    record = PUBLISHED["blr/htru2"]
    whole = replace(record, view=record.view._replace(rows_lost=0))
    assert sorted(published_rows(whole)[0].tolist()) == list(range(17_898))
    assert sorted(published_rows(record)[0].tolist()) == list(range(17_897))
    fewer = replace(PUBLISHED["gpr/protein"], pool=50, initial=7)
    assert len(published_rows(fewer)[1]) == 7
    assert published_rows(fewer)[1].max() < 50


def test_python_s_own_generator_is_left_alone() -> None:
    before = random.getstate()
    published_rows(PUBLISHED["gpr/power_plant"])
    assert random.getstate() == before


def test_an_experiment_that_no_script_has() -> None:
    with pytest.raises(KeyError, match="gpr/skin"):
        published_rows(replace(PUBLISHED["gpr/protein"], data="skin"))


# ------------------------------------------------------------------------------------------------- whole splits


@pytest.fixture
def numbered(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Data sets whose rows hold their own numbers; what was asked for is noted."""
    asked: list[Any] = []

    def samples(data: str, view: ColumnRoles, folder: Path | None = None) -> Samples:
        asked.append((data, view, folder))
        rows = CORRECTED_ROWS[data] - view.rows_lost
        return Samples(np.arange(rows, dtype=float)[:, None], np.arange(rows))

    monkeypatch.setattr(experiments, "read_samples", samples)
    return asked


CORRECTED_ROWS = {
    "power_plant": 9568,
    "protein": 45730,
    "gas_emission": 36733,
    "grid_stability": 10000,
    "grid_stability_c": 10000,
    "skin": 245057,
    "htru2": 17898,
}


def rows(split: DataSplit) -> dict[str, list[int]]:
    found = {}
    for name in ("test", "pool", "outside"):
        part = getattr(split, name)
        # An input stays with its target.
        assert part.inputs[:, 0].astype(int).tolist() == part.target.tolist()
        found[name] = part.target.tolist()
    return {**found, "initial": split.initial.tolist()}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", some(TABLES, every=2))
def test_a_published_split(numbered: list[Any], name: str) -> None:
    experiment, folder = PUBLISHED[name], Path("somewhere")
    found = rows(published_split(experiment, 1, folder))
    order, initial = published_rows(experiment, 1)
    end = experiment.test + experiment.pool_size
    assert found["test"] == order[: experiment.test].tolist()
    assert found["pool"] == order[experiment.test : end].tolist()
    assert found["outside"] == []
    assert found["initial"] == initial.tolist()
    assert numbered == [(experiment.data, experiment.view, folder)]


def check(found: dict[str, list[int]], experiment: Experiment) -> None:
    sizes = (experiment.test, experiment.outside, experiment.pool_size)
    assert tuple(len(found[part]) for part in ("test", "outside", "pool")) == sizes
    together = [row for part in ("test", "outside", "pool") for row in found[part]]
    assert len(set(together)) == len(together)
    assert 0 <= min(together) <= max(together) < experiment.rows
    assert len(set(found["initial"])) == experiment.initial
    assert 0 <= min(found["initial"]) <= max(found["initial"]) < experiment.pool_size


@pytest.mark.usefixtures("numbered")
@pytest.mark.parametrize("name", TABLES)
def test_a_corrected_split_has_no_row_twice(name: str) -> None:
    experiment = CORRECTED[name]
    assert experiment.outside == 1000
    check(rows(corrected_split(experiment, 0)), experiment)


@pytest.mark.usefixtures("numbered")
def test_seeds_of_corrected_splits_differ_in_everything_and_repeat() -> None:
    experiment = CORRECTED["gpr/power_plant"]
    found = [rows(corrected_split(experiment, seed)) for seed in range(10)]
    assert rows(corrected_split(experiment, 3)) == found[3]
    for part in ("test", "pool", "outside", "initial"):
        assert len({tuple(each[part]) for each in found}) == 10
    # About as many test rows are shared by two seeds as chance shares: 2000 of 9568 twice, 418 of them expected.
    shared = [len(set(a["test"]) & set(b["test"])) for a, b in pairwise(found)]
    assert all(330 < each < 510 for each in shared)


@pytest.mark.usefixtures("numbered")
def test_both_arms_of_a_corrected_run_share_their_split() -> None:
    bought, outside = (replace(CORRECTED["brr/protein"], hyperparameters=arm) for arm in ("bought", "outside"))
    assert rows(corrected_split(bought, 4)) == rows(corrected_split(outside, 4))


def test_a_folder_and_a_view_are_passed_on(numbered: list[Any]) -> None:
    record, folder = CORRECTED["blr/htru2"], Path("elsewhere")
    corrected_split(record, 0, folder)
    assert numbered == [("htru2", record.view, folder)]
