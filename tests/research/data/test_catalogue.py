"""The paper's data sets as they are recorded, where they lie, and whether they are there and right."""

import dataclasses
import hashlib
import os
import re
import sys
from pathlib import Path

import pytest

from suffice.errors import CorruptDataError, InvalidValueError, MissingDataError, SufficeError
from suffice_research.data import catalogue
from suffice_research.data.catalogue import (
    PAPER_SETS,
    SETS,
    DataFile,
    DataSet,
    FileSource,
    FileState,
    checked_contents,
    data_folder,
    data_set,
    require_set,
    set_status,
)
from suffice_research.data.set_readers import mnist_folder

DATA = os.environ.get("SUFFICE_DATA")
ONE = b"1 2\n3 4\n"
TWO = b"5 6\n"


def recorded(path: str, content: bytes) -> DataFile:
    return DataFile(path, hashlib.sha256(content).hexdigest(), len(content), (FileSource("https://localhost/x"),))


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> DataSet:
    """A data set of two small files, known as ``small``."""
    files = recorded("uci/one.txt", ONE), recorded("uci/two.txt", TWO)
    about = dataclasses.replace(SETS["skin"], name="small", columns=("a", "b"), rows=3, files=files)
    monkeypatch.setattr(catalogue, "SETS", {"small": about})
    return about


def stored(folder: Path, one: bytes = ONE, two: bytes = TWO) -> Path:
    (folder / "uci").mkdir(parents=True)
    (folder / "uci" / "one.txt").write_bytes(one)
    (folder / "uci" / "two.txt").write_bytes(two)
    return folder


def test_the_eight_data_sets_of_the_paper() -> None:
    grids = ["grid_stability", "grid_stability_c"]
    names = ["power_plant", "protein", "gas_emission", *grids, "skin", "htru2", "mnist"]
    assert list(PAPER_SETS) == names
    assert [each.name for each in PAPER_SETS.values()] == names
    # Rows and features as counted in the files; the paper has a row and a feature less for HTRU2.
    assert [each.rows for each in PAPER_SETS.values()] == [9568, 45730, 36733, 10000, 10000, 245057, 17898, 70000]
    assert [each.features for each in PAPER_SETS.values()] == [4, 9, 8, 11, 11, 3, 8, 784]
    assert SETS["grid_stability"].files == SETS["grid_stability_c"].files
    with pytest.raises(TypeError):
        SETS["mine"] = SETS["skin"]  # type: ignore[index]
    with pytest.raises(dataclasses.FrozenInstanceError):
        SETS["skin"].rows = 0  # type: ignore[misc]


def test_four_sets_beyond_the_paper_come_after_it() -> None:
    extra_sets = ["sms_spam", "newsgroups", "letter", "adult"]
    assert list(SETS) == [*PAPER_SETS, *extra_sets]
    assert [SETS[name].rows for name in extra_sets] == [5574, 18846, 20000, 32561]
    assert [SETS[name].features for name in extra_sets] == [1, 1, 16, 14]
    assert [name for name in SETS if not SETS[name].models] == extra_sets


@pytest.mark.parametrize("each", SETS.values(), ids=list(SETS))
def test_records_are_complete(each: DataSet) -> None:
    assert each.features < len(each.columns) or each.name == "mnist"
    assert len(set(each.columns)) == len(each.columns)
    assert each.home.startswith("http")
    assert bool(each.models) == (each.name in PAPER_SETS)
    for file in each.files:
        assert re.fullmatch(r"[0-9a-f]{64}", file.sha256)
        assert re.fullmatch(r"(uci|mnist|text|tables)/[\w.-]+", file.path)
        assert all(re.fullmatch(r"[0-9a-f]{64}", each) for each in file.also)
        assert file.size > 0
        assert all(source.address.startswith("https://") for source in file.sources)


@pytest.mark.skipif(DATA is None, reason="the paper's data sets: SUFFICE_DATA is not set")
@pytest.mark.parametrize("name", SETS)
def test_the_real_files_are_as_recorded(name: str) -> None:
    for status in set_status(name):
        if status.state is FileState.missing:
            pytest.skip(f"{status}")
        assert status.state is FileState.right, str(status)
        assert (status.sha256, status.size) == (status.file.sha256, status.file.size)


def test_an_unknown_name_is_answered_with_the_near_one_and_all() -> None:
    with pytest.raises(InvalidValueError, match=r"'power-plnt'. Did you mean power_plant\? .* power_plant, protein,"):
        data_set("power-plnt")
    with pytest.raises(InvalidValueError, match=r"there is no data set 'iris'. The data sets are power_plant"):
        data_set("iris")


def test_a_set_that_is_there_and_right(small: DataSet, tmp_path: Path) -> None:
    require_set("small", stored(tmp_path))
    assert checked_contents("small", tmp_path) == (ONE, TWO)
    assert [status.state for status in set_status("small", tmp_path)] == [FileState.right, FileState.right]
    assert str(set_status("small", tmp_path)[0]).endswith("one.txt is there and right")
    assert small.files[0].size == set_status("small", tmp_path)[0].size


@pytest.mark.usefixtures("small")
def test_a_set_that_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUFFICE_DATA", str(tmp_path))
    with pytest.raises(MissingDataError) as caught:
        require_set("small")
    path = tmp_path / "uci" / "one.txt"
    assert f"data set small: {path} is missing (and 1 more of its files). Run: suffice data fetch small," in str(
        caught.value
    )
    stored(tmp_path)
    path.unlink()
    with pytest.raises(MissingDataError, match=r"one\.txt is missing\. Run"):
        require_set("small")
    # In another folder than the one that the command would fetch to.
    with pytest.raises(MissingDataError, match=r"suffice data fetch small with SUFFICE_DATA set to .*elsewhere, or"):
        require_set("small", tmp_path / "elsewhere")
    # A file stands where a folder should.
    with pytest.raises(MissingDataError, match=r"one\.txt is missing"):
        require_set("small", tmp_path / "uci" / "two.txt")


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("came", [b"", ONE[:-1], ONE + b"\n", b"1 2\n3 5\n", bytes(3_000_000)])
def test_a_file_that_is_corrupt(came: bytes, tmp_path: Path) -> None:
    stored(tmp_path, one=came)
    with pytest.raises(CorruptDataError) as caught:
        require_set("small", tmp_path)
    should, found = (f"{hashlib.sha256(each).hexdigest()} ({len(each)} bytes)" for each in (ONE, came))
    path = tmp_path / "uci" / "one.txt"
    assert f"{path} is corrupt: its SHA-256 checksum should be {should} and is {found}." in str(caught.value)
    assert "Run: suffice data fetch small" in str(caught.value)
    assert [status.state for status in set_status("small", tmp_path)] == [FileState.corrupt, FileState.right]


def test_a_file_packed_in_another_way_is_as_good(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    other = ONE + TWO  # longer than the file of the record
    file = dataclasses.replace(recorded("uci/one.txt", ONE), also=(hashlib.sha256(other).hexdigest(),))
    monkeypatch.setattr(catalogue, "SETS", {"small": dataclasses.replace(SETS["skin"], name="small", files=(file,))})
    for content in (ONE, other):
        (stored(tmp_path / str(len(content))) / "uci" / "one.txt").write_bytes(content)
        assert checked_contents("small", tmp_path / str(len(content))) == (content,)
    (tmp_path / str(len(ONE)) / "uci" / "one.txt").write_bytes(TWO)
    with pytest.raises(CorruptDataError) as caught:
        require_set("small", tmp_path / str(len(ONE)))
    should = f"should be {file.sha256} ({len(ONE)} bytes) or {file.also[0]} and is {hashlib.sha256(TWO).hexdigest()}"
    assert should in str(caught.value)


@pytest.mark.usefixtures("small")
def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    path = stored(tmp_path) / "uci" / "one.txt"
    path.unlink()
    path.mkdir()
    with pytest.raises(CorruptDataError, match=r"one\.txt cannot be read: "):
        require_set("small", tmp_path)


def test_mnist_is_checked_before_it_is_read(tmp_path: Path) -> None:
    with pytest.raises(MissingDataError, match=r"train-images-idx3-ubyte\.gz is missing \(and 3 more"):
        mnist_folder(tmp_path)
    if DATA is not None and (Path(DATA) / "mnist").is_dir():
        assert mnist_folder() == Path(DATA).absolute() / "mnist"


def test_the_folder_that_was_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUFFICE_DATA", str(tmp_path / "data"))
    assert data_folder() == tmp_path / "data"
    monkeypatch.setenv("SUFFICE_DATA", "here")
    assert data_folder() == Path.cwd() / "here"
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.setenv("SUFFICE_DATA", "~/data")
    assert data_folder() == tmp_path / "data"


@pytest.mark.parametrize(
    ("platform", "variable", "chosen", "otherwise"),
    [
        ("linux", "XDG_CACHE_HOME", "cache", "home/.cache"),
        ("darwin", "XDG_CACHE_HOME", "home/Library/Caches", "home/Library/Caches"),
        ("win32", "LOCALAPPDATA", "cache", "home/AppData/Local"),
    ],
)
def test_the_users_cache_folder(
    platform: str, variable: str, chosen: str, otherwise: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.delenv("SUFFICE_DATA", raising=False)
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "home")
    monkeypatch.setenv(variable, str(tmp_path / "cache"))
    assert data_folder() == tmp_path / chosen / "suffice" / "data"
    for useless in ("", "relative/cache"):
        monkeypatch.setenv(variable, useless)
        assert data_folder() == tmp_path / otherwise / "suffice" / "data"


def test_no_home_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", homeless)
    for variable in ("SUFFICE_DATA", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(variable, raising=False)
    with pytest.raises(SufficeError, match="Set SUFFICE_DATA to the folder to use"):
        data_folder()
