"""The paper's tables: the real ones where they are, and that nothing is read unchecked."""

import os
from pathlib import Path

import numpy as np
import pytest

from suffice.errors import CorruptDataError, InvalidValueError, MissingDataError
from suffice_research.data.catalogue import SETS, FileState, set_status
from suffice_research.data.set_readers import NumericColumns, read_columns

DATA = os.environ.get("SUFFICE_DATA")
TABLES = [name for name, each in SETS.items() if each.holds == "numbers"]


def real(name: str) -> NumericColumns:
    if DATA is None:
        pytest.skip(f"{name}: SUFFICE_DATA is not set")
    if any(status.state is FileState.missing for status in set_status(name)):
        pytest.skip(f"{name}: not in the folder that SUFFICE_DATA names")
    return read_columns(name)


@pytest.mark.parametrize("name", TABLES)
def test_every_table_is_whole(name: str) -> None:
    table, about = real(name), SETS[name]
    assert table.names == about.columns
    assert table.values.shape == (about.rows, len(about.columns))
    assert table.values.dtype == np.float64
    assert table.values.flags.c_contiguous
    assert table.values.flags.writeable
    assert np.isfinite(table.values).all()
    # No column is constant, as one read from the wrong place may be.
    assert np.ptp(table.values, axis=0).min() > 0.0


@pytest.mark.parametrize(
    ("name", "first", "last"),
    [
        ("power_plant", [8.34, 40.77, 1010.84, 90.01, 480.48], [23.68, 51.3, 1011.86, 71.24, 451.67]),
        ("protein", [17.284, 13558.3], [18.827, 12732.4]),
        ("gas_emission", [4.5878, 1018.7], [6.0392, 1028.8]),
        ("grid_stability", [2.95906002455997, 3.07988520422811], [6.53052661542757, 6.78178989860924]),
        ("skin", [74.0, 85.0, 123.0, 1.0], [255.0, 255.0, 255.0, 2.0]),
        ("htru2", [140.5625, 55.68378214], [57.0625, 85.79734025]),
    ],
)
def test_the_first_and_the_last_row(name: str, first: list[float], last: list[float]) -> None:
    values = real(name).values
    assert values[0, : len(first)].tolist() == first
    assert values[-1, : len(last)].tolist() == last


def test_what_is_known_of_the_columns() -> None:
    htru2 = real("htru2")
    assert htru2.values[:, htru2.names.index("class")].sum() == 1639  # pulsars, as published
    skin = real("skin")
    assert np.unique(skin.values[:, 3], return_counts=True)[1].tolist() == [50_859, 194_198]
    grid = real("grid_stability_c")
    stab, stabf, p = (grid.values[:, [grid.names.index(c) for c in names]] for names in (["stab"], ["stabf"], ["p1"]))
    np.testing.assert_array_equal(stabf == 1.0, stab < 0.0)
    others = grid.values[:, [grid.names.index(f"p{node}") for node in (2, 3, 4)]]
    np.testing.assert_allclose(p[:, 0], -others.sum(axis=1), rtol=1e-12)


def test_years_come_one_after_the_other() -> None:
    values = real("gas_emission").values
    starts = np.cumsum([0, 7411, 7628, 7152, 7158])
    assert values[starts, 0].tolist() == [4.5878, 6.8594, 9.3779, 8.8358, 1.9532]


def test_names_that_are_no_tables() -> None:
    with pytest.raises(InvalidValueError, match=r"there is no data set 'skn'\. Did you mean skin\?"):
        read_columns("skn")
    with pytest.raises(InvalidValueError, match=r"mnist is images, not a table; .*read_mnist"):
        read_columns("mnist")
    with pytest.raises(
        InvalidValueError, match=r"sms_spam is texts, not a table; .*suffice_research\.data\.read_texts"
    ):
        read_columns("sms_spam")
    with pytest.raises(
        InvalidValueError, match=r"adult is a table with words in it, .*suffice_research\.data\.read_words"
    ):
        read_columns("adult")


def test_nothing_is_read_unchecked(tmp_path: Path) -> None:
    with pytest.raises(MissingDataError, match="suffice data fetch skin"):
        read_columns("skin", tmp_path)
    (tmp_path / "uci").mkdir()
    (tmp_path / "uci" / "skin.txt").write_text("1\t2\t3\t1\r\n")
    with pytest.raises(CorruptDataError, match=r"skin\.txt is corrupt"):
        read_columns("skin", tmp_path)
