"""The records of the paper's experiments against what paper, scripts and files say; and the data that they name."""

import os
from collections.abc import Callable
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from suffice.errors import InvalidValueError, MissingDataError
from suffice.numerics import Floats
from suffice_research.data.catalogue import SETS
from suffice_research.data.protocols import (
    CORRECTED,
    CORRECTED_VIEWS,
    MODELS,
    PROTOCOLS,
    PUBLISHED,
    PUBLISHED_VIEWS,
    TITLES,
    ColumnRoles,
)
from suffice_research.data.set_readers import read_samples, read_set
from tests.thoroughness import crossed

DATA = os.environ.get("SUFFICE_DATA")
TABLES = [name for name in PUBLISHED_VIEWS if name != "mnist"]
REGRESSION = ("power_plant", "protein", "gas_emission", "grid_stability")

#: Rows, test rows, rows of the pool, first labels, acquisitions; of the published runs, in their order.
SIZES = {
    "gpr/power_plant": (9568, 2000, 5000, 10, 1000),
    "gpr/protein": (45730, 2000, 5000, 10, 1000),
    "gpr/gas_emission": (36733, 2000, 5000, 10, 1000),
    "gpr/grid_stability": (10000, 2000, 5000, 10, 1000),
    "brr/power_plant": (9568, 2000, 7568, 10, 2000),
    "brr/protein": (45730, 2000, 10000, 10, 2000),
    "brr/gas_emission": (36733, 2000, 10000, 10, 1000),
    "brr/grid_stability": (10000, 2000, 8000, 10, 7990),
    "blr/grid_stability_c": (10000, 5000, 5000, 100, 3000),
    "blr/skin": (245057, 5000, 240057, 100, 3000),
    "blr/htru2": (17897, 5000, 12897, 100, 3000),
    "bdnn/mnist": (70000, 10000, 60000, 1000, 99),
}
#: The same of the corrected runs, which keep 1000 labels outside; only what differs.
SIZES_CORRECTED = {
    "brr/power_plant": (9568, 2000, 6568, 10, 2000),
    "brr/grid_stability": (10000, 2000, 7000, 10, 6990),
    "blr/grid_stability_c": (10000, 5000, 4000, 100, 3000),
    "blr/skin": (245057, 5000, 239057, 100, 3000),
    "blr/htru2": (17898, 5000, 11898, 100, 3000),
}
CORRELATIONS = [0.9482, 0.9695, 0.9823, 0.9971, 0.9898, 0.9795, 0.9854, 0.9970, 0.9303, 0.9870, 0.2434, 0.9564]
#: Features in the paper's table of data sets; of gas emission it has 8, where the script takes 10.
FEATURES = [4, 9, 8, 11, 11, 3, 7, 784]

GRID = ("tau1", "tau2", "tau3", "tau4", "p1", "p2", "p3", "p4", "g1", "g2", "g3", "g4", "stab", "stabf")
GAS = ("AT", "AP", "AH", "AFDP", "GTEP", "TIT", "TAT", "TEY", "CDP", "CO", "NOX")


def test_the_runs_in_the_order_of_the_scripts() -> None:
    assert list(PUBLISHED) == list(CORRECTED) == list(SIZES)
    assert [each.correlation for each in PUBLISHED.values()] == CORRELATIONS
    assert PROTOCOLS == {"published": PUBLISHED, "corrected": CORRECTED}
    # What is reported comes in this order, under these headings.
    assert list(PROTOCOLS) == list(TITLES)
    assert list(MODELS) == list(dict.fromkeys(each.model for each in PUBLISHED.values()))
    for protocol, records in PROTOCOLS.items():
        for name, each in records.items():
            assert (each.protocol, each.name) == (protocol, name)
            assert each.model in MODELS
            assert each.data in SETS


@pytest.mark.parametrize("name", list(SIZES))
def test_sizes(name: str) -> None:
    for each, expected in ((PUBLISHED[name], SIZES[name]), (CORRECTED[name], SIZES_CORRECTED.get(name, SIZES[name]))):
        assert (each.rows, each.test, each.pool_size, each.initial, each.step_count) == expected
        assert each.batch == (5 if each.model == "bdnn" else 1)
        # No row serves twice, and the pool has a label for every acquisition.
        assert each.test + each.outside + each.pool_size <= each.rows
        assert each.initial + each.step_count * each.batch <= each.pool_size


def test_thresholds_of_the_paper_come_before_those_of_the_script() -> None:
    expected = {
        "gpr": (0.05, 0.04, 0.03),
        "brr": (0.02, 0.015, 0.01, 0.05, 0.04, 0.03),
        "blr": (0.3, 0.2, 0.1, 0.15),
        "bdnn": (0.2, 0.15, 0.1),
    }
    for records in PROTOCOLS.values():
        for each in records.values():
            assert each.thresholds == expected[each.model]
    # The network stops at round 67 for 0.2, and never for the others.
    assert PUBLISHED["bdnn/mnist"].stops == {"0.2": 67, "0.15": None, "0.1": None}


def test_settings_of_the_scripts() -> None:
    for each in PUBLISHED.values():
        # gamma is the minimum over m + 1 steps, m = 10, or 1 for the network; the ratio is 1 until then, and from the
        # last of these steps on it counts. The network's counts from the first.
        assert (each.calibration, each.counted_from) == ((2, 0) if each.model == "bdnn" else (11, 10))
        assert each.iterations == (10 if each.model == "brr" else None)
        assert each.outside == 0
        assert (each.centres, each.bandwidth) == {"brr": (10, 0.5), "blr": (5, 0.5)}.get(each.model, (0, 1.0))
        if each.model in ("gpr", "brr"):
            assert each.hyperparameters == "pool"
    floors = [PUBLISHED[f"gpr/{data}"].noise_floor for data in REGRESSION]
    assert floors == [1e-3, 1e-3, 1e-1, 1e-1]
    assert [each.inverse_precision for each in PUBLISHED.values() if each.model == "blr"] == [100.0, 0.001, 1.0]
    for each in PUBLISHED.values():
        if each.model == "blr":
            assert (each.information, each.intercept, each.loss) == ("C", "out", "one class")
            # The paper prints the information for the covariance; the script inverts it.
            assert each.covariance == "inverse"
    assert [name for name, each in PUBLISHED.items() if each.loss == "softmax twice"] == ["bdnn/mnist"]


#: What the corrected record changes, by model; the columns where they were wrong.
CHANGED = {
    "gpr": {"protocol", "calibration", "counted_from", "outside", "hyperparameters", "noise_floor"},
    "brr": {"protocol", "calibration", "counted_from", "outside", "hyperparameters", "bandwidth", "iterations"},
    "blr": {"protocol", "calibration", "counted_from", "outside", "hyperparameters", "bandwidth", "inverse_precision",
            "information", "intercept", "loss"},
    "bdnn": {"protocol", "calibration", "hyperparameters", "loss"},
}  # fmt: skip
RIGHT_ALREADY = {"power_plant", "skin", "mnist"}


@pytest.mark.parametrize("name", list(SIZES))
def test_corrected_differs_where_it_should_and_nowhere_else(name: str) -> None:
    published, corrected = PUBLISHED[name], CORRECTED[name]
    differ = {each.name for each in fields(published) if getattr(published, each.name) != getattr(corrected, each.name)}
    assert differ == CHANGED[published.model] | (set() if published.data in RIGHT_ALREADY else {"view"})
    assert (corrected.calibration, corrected.counted_from) == ((1, 0) if corrected.model == "bdnn" else (10, 9))
    assert corrected.outside == (0 if corrected.model == "bdnn" else 1000)
    assert corrected.hyperparameters == "bought"
    assert corrected.bandwidth == 1.0
    assert corrected.noise_floor is corrected.inverse_precision is corrected.iterations is None
    assert (corrected.information, corrected.covariance) == ("precision", "inverse")
    assert (corrected.intercept, corrected.loss) == ("in", "expected")


def test_published_columns_by_position_in_the_authors_reading() -> None:
    # Reading a CSV with its first column as an index leaves these.
    gas, grid, htru2 = (SETS[name].columns[1:] for name in ("gas_emission", "grid_stability", "htru2"))
    assert PUBLISHED_VIEWS["gas_emission"] == ColumnRoles(gas, gas[7])
    assert len(gas) == 10
    assert PUBLISHED_VIEWS["gas_emission"].target in PUBLISHED_VIEWS["gas_emission"].inputs
    assert PUBLISHED_VIEWS["grid_stability"] == ColumnRoles(grid[:-2], grid[-2], standardised=False)
    assert PUBLISHED_VIEWS["grid_stability_c"] == ColumnRoles(grid[:-2], grid[-1], positive=0.0)
    assert PUBLISHED_VIEWS["htru2"] == ColumnRoles(htru2[:-1], htru2[-1], positive=1.0, rows_lost=1)
    # Files without names keep their first column, and the last one is the target.
    for name in ("power_plant", "protein"):
        assert PUBLISHED_VIEWS[name] == ColumnRoles(SETS[name].columns[:-1], SETS[name].columns[-1])
    assert PUBLISHED_VIEWS["skin"] == ColumnRoles(("B", "G", "R"), "class", positive=1.0)


def test_columns_by_name() -> None:
    assert SETS["gas_emission"].columns == GAS
    assert SETS["grid_stability"].columns == SETS["grid_stability_c"].columns == GRID
    assert PUBLISHED_VIEWS["gas_emission"].inputs == GAS[1:]
    assert PUBLISHED_VIEWS["gas_emission"].target == "CDP"
    assert PUBLISHED_VIEWS["protein"].inputs[0] == "RMSD"
    assert PUBLISHED_VIEWS["protein"].target == "F9"
    assert "tau1" not in PUBLISHED_VIEWS["grid_stability"].inputs
    assert "profile_mean" not in PUBLISHED_VIEWS["htru2"].inputs
    assert CORRECTED_VIEWS["gas_emission"] == ColumnRoles(
        ("AT", "AP", "AH", "AFDP", "GTEP", "TIT", "TAT", "CDP"), "TEY"
    )
    assert CORRECTED_VIEWS["protein"] == ColumnRoles(tuple(f"F{k}" for k in range(1, 10)), "RMSD")
    without_p1 = ("tau1", "tau2", "tau3", "tau4", "p2", "p3", "p4", "g1", "g2", "g3", "g4")
    assert CORRECTED_VIEWS["grid_stability"] == ColumnRoles(without_p1, "stab")
    assert CORRECTED_VIEWS["grid_stability_c"] == ColumnRoles(without_p1, "stabf", positive=1.0)
    assert CORRECTED_VIEWS["htru2"] == ColumnRoles(SETS["htru2"].columns[:8], "class", positive=1.0)


def test_features_as_in_the_papers_table() -> None:
    # Where the authors lost a column, their table counts what is left: 11 of grid stability, 7 of HTRU2.
    found = {name: len(view.inputs) or 784 for name, view in PUBLISHED_VIEWS.items()}
    assert found.pop("gas_emission") == 10
    assert list(found.values()) == FEATURES[:2] + FEATURES[3:]
    corrected = {name: len(CORRECTED_VIEWS[name].inputs) for name in TABLES}
    assert corrected == {name: SETS[name].features for name in TABLES}
    for view in (*CORRECTED_VIEWS.values(), *(PUBLISHED_VIEWS[name] for name in TABLES if name != "gas_emission")):
        assert view.target not in view.inputs
        assert len(set(view.inputs)) == len(view.inputs)


@pytest.mark.parametrize("records", [PUBLISHED, CORRECTED, PROTOCOLS, MODELS, TITLES, PUBLISHED_VIEWS, CORRECTED_VIEWS])
def test_records_cannot_be_changed(records: Any) -> None:
    with pytest.raises(TypeError):
        records["gpr/power_plant"] = None


# ---------------------------------------------------------------------------------------------------- the files


def _rows(paths: list[str], names: int, separator: str | None) -> list[list[float]]:
    """Numbers of text files, line by line, ``names`` lines left out at the start of each."""
    found = []
    for path in paths:
        text = (Path(DATA or "") / "uci" / path).read_text()
        lines = [line for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n") if line.strip()]
        found += [[float(word) for word in line.split(separator)] for line in lines[names:]]
    return found


READINGS: dict[str, Callable[[], list[list[float]]]] = {
    "power_plant": lambda: _rows(["power_plant.txt"], 0, None),
    "protein": lambda: _rows(["protein.txt"], 0, None),
    "gas_emission": lambda: _rows([f"gas_emission_{year}.csv" for year in range(2011, 2016)], 1, ","),
    "grid_stability": lambda: _rows(["grid_stability.csv"], 1, ","),
    "grid_stability_c": lambda: _rows(["grid_stability.csv"], 1, ","),
    "skin": lambda: _rows(["skin.txt"], 0, None),
    "htru2": lambda: _rows(["htru2.csv"], 0, ","),
}


@cache
def plain(name: str) -> Floats:
    """The whole table, read without the package."""
    if DATA is None:
        pytest.skip(f"{name}: SUFFICE_DATA is not set")
    try:
        return np.array(READINGS[name](), dtype=np.float64)
    except FileNotFoundError:
        pytest.skip(f"{name}: not in the folder that SUFFICE_DATA names")


def scaled(values: Floats) -> Floats:
    centred = values - values.sum(axis=0) / len(values)
    return np.asarray(centred / np.sqrt((centred**2).sum(axis=0) / len(values)))


#: Columns by their number in the file: inputs, target.
PUBLISHED_COLUMNS = {
    "power_plant": ([0, 1, 2, 3], 4),
    "protein": (list(range(9)), 9),
    "gas_emission": (list(range(1, 11)), 8),
    "grid_stability": (list(range(1, 12)), 12),
    "grid_stability_c": (list(range(1, 12)), 13),
    "skin": ([0, 1, 2], 3),
    "htru2": (list(range(1, 8)), 8),
}
CORRECTED_COLUMNS = {
    "power_plant": ([0, 1, 2, 3], 4),
    "protein": (list(range(1, 10)), 0),
    "gas_emission": ([0, 1, 2, 3, 4, 5, 6, 8], 7),
    "grid_stability": ([0, 1, 2, 3, 5, 6, 7, 8, 9, 10, 11], 12),
    "grid_stability_c": ([0, 1, 2, 3, 5, 6, 7, 8, 9, 10, 11], 13),
    "skin": ([0, 1, 2], 3),
    "htru2": (list(range(8)), 8),
}


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("protocol", "name"), crossed(["published", "corrected"], TABLES, every=2))
def test_samples_are_the_columns_of_the_file(protocol: str, name: str) -> None:
    published = protocol == "published"
    view = (PUBLISHED_VIEWS if published else CORRECTED_VIEWS)[name]
    columns, target = (PUBLISHED_COLUMNS if published else CORRECTED_COLUMNS)[name]
    table = plain(name)[1 if published and name == "htru2" else 0 :]
    found = read_samples(name, view)
    assert found.inputs.shape == (len(table), len(columns))
    np.testing.assert_allclose(found.inputs, scaled(table[:, columns]), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found.inputs.mean(axis=0), 0.0, atol=1e-9)
    np.testing.assert_allclose(found.inputs.std(axis=0), 1.0, rtol=1e-9)
    values = table[:, target]
    if name in REGRESSION:
        as_it_is = published and name == "grid_stability"
        np.testing.assert_allclose(found.target, values if as_it_is else scaled(values), rtol=1e-9, atol=1e-9)
    else:
        positive = 0.0 if published and name == "grid_stability_c" else 1.0
        assert found.target.dtype.kind == "i"
        np.testing.assert_array_equal(found.target, [1 if value == positive else 0 for value in values])


def test_classes_are_counted_right() -> None:
    for name, published, corrected in (
        ("skin", 50_859, 50_859),
        ("htru2", 1639, 1639),
        ("grid_stability_c", 6380, 3620),
    ):
        plain(name)
        counts = [int(read_samples(name, views[name]).target.sum()) for views in (PUBLISHED_VIEWS, CORRECTED_VIEWS)]
        assert counts == [published, corrected]


def test_the_row_that_htru2_loses_is_the_first() -> None:
    table = plain("htru2")
    view = CORRECTED_VIEWS["htru2"]
    lost, whole = read_samples("htru2", view._replace(rows_lost=1)), read_samples("htru2", view)
    assert (len(lost.inputs), len(whole.inputs)) == (17_897, 17_898)
    # The mean is that of the rows that are left.
    np.testing.assert_allclose(lost.inputs[0], (table[1] - table[1:].mean(axis=0))[:8] / table[1:].std(axis=0)[:8])
    np.testing.assert_array_equal(lost.target, whole.target[1:])


def test_missing_data_are_named(tmp_path: Path) -> None:
    with pytest.raises(MissingDataError, match="suffice data fetch skin"):
        read_samples("skin", PUBLISHED_VIEWS["skin"], tmp_path)


@pytest.mark.parametrize("name", [pytest.param("protein", marks=pytest.mark.slow), "htru2"])
def test_a_set_by_its_name_is_the_right_one_unless_asked_otherwise(name: str) -> None:
    plain(name)
    for found, view in (
        (read_set(name), CORRECTED_VIEWS[name]),
        (read_set(name, "corrected"), CORRECTED_VIEWS[name]),
        (read_set(name, "published"), PUBLISHED_VIEWS[name]),
    ):
        expected = read_samples(name, view)
        np.testing.assert_array_equal(found.inputs, expected.inputs)
        np.testing.assert_array_equal(found.target, expected.target)


def test_sets_and_protocols_that_there_are_not(tmp_path: Path) -> None:
    with pytest.raises(InvalidValueError, match="protocol must be corrected or published, not 'both'"):
        read_set("skin", "both")
    with pytest.raises(InvalidValueError, match=r"there is no data set 'skn'\. Did you mean skin\?"):
        read_set("skn")
    with pytest.raises(InvalidValueError, match="mnist is images"):
        read_set("mnist")
    with pytest.raises(MissingDataError, match="suffice data fetch htru2"):
        read_set("htru2", folder=tmp_path)
