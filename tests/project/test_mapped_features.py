"""Features of large projects: a NumPy file beside the project, from which a learner reads batches."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from suffice.engines import disk_rows
from suffice.errors import SufficeError
from suffice.project import open_project, storage
from suffice.project.project_learner import ProjectLearner
from suffice.project.storage import mapped_features, sa
from tests.project.making_projects import make, some_items


@pytest.fixture(autouse=True)
def _large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "MAPPED_FEATURES", 0)
    # Blocks of 10 rows of 3 numbers.
    monkeypatch.setattr(storage, "_BLOCK", 240)


def files(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir() if "features" in each.name)


def test_the_features_are_those_of_the_project(tmp_path: Path) -> None:
    with make(tmp_path / "p", 47) as project:
        X = project.X
        assert isinstance(X, np.memmap)
        np.testing.assert_array_equal(X, some_items(47).X)
        assert len(files(tmp_path / "p")) == 1
    with open_project(tmp_path / "p") as again:
        np.testing.assert_array_equal(again.X, some_items(47).X)
    assert len(files(tmp_path / "p")) == 1
    assert (tmp_path / "p" / files(tmp_path / "p")[0]).stat().st_mode & 0o077 == 0


def test_small_features_are_read_into_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "MAPPED_FEATURES", 47 * 3 * 8)
    with make(tmp_path / "p", 47) as project:
        assert not isinstance(project.X, np.memmap)
        assert not files(tmp_path / "p")


@pytest.mark.parametrize("damage", ["shorter", "longer", "changed", "empty", "another kind"])
def test_a_file_that_is_damaged_is_written_again(tmp_path: Path, damage: str) -> None:
    with make(tmp_path / "p", 47) as project:
        assert isinstance(project.X, np.memmap)
    file = tmp_path / "p" / files(tmp_path / "p")[0]
    content = file.read_bytes()
    bad = {
        "shorter": content[:-8],
        "longer": content + b"x",
        "changed": content[:-1] + bytes([content[-1] ^ 1]),
        "empty": b"",
        "another kind": b"PK" + content,
    }
    file.write_bytes(bad[damage])
    with open_project(tmp_path / "p") as project:
        np.testing.assert_array_equal(project.X, some_items(47).X)
    assert file.read_bytes() == content


def test_damaged_blocks_are_reported(tmp_path: Path) -> None:
    with make(tmp_path / "p", 47) as project:
        with project.journal.database.exclusive() as connection:
            table = storage.features_table
            numbers = connection.execute(sa.select(table.c.numbers).where(table.c.block == 2)).scalar_one()
            new = sa.update(table).where(table.c.block == 2).values(numbers=b"\0" + numbers[1:])
            connection.execute(new)
        with pytest.raises(SufficeError, match="block 2 of the features does not have its checksum"):
            _ = project.X
        assert not files(tmp_path / "p")


def test_where_the_file_cannot_be_written_features_are_read_into_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(storage, "_write_mapped", full)
    with make(tmp_path / "p", 47) as project:
        assert not isinstance(project.X, np.memmap)
        np.testing.assert_array_equal(project.X, some_items(47).X)


def test_items_that_are_added_make_another_file(tmp_path: Path) -> None:
    with make(tmp_path / "p", 47) as project:
        before = files(tmp_path / "p"), project.X[:, 0].sum()
        more = some_items(5)
        with project.journal.database.exclusive() as connection:
            storage.write_contents(connection, more, after=47)
            # Until the project knows of them, its features are those in memory.
            assert mapped_features(connection, 47, tmp_path / "p" / storage.FILE) is None
        with project.journal.database.reading() as connection:
            found = mapped_features(connection, 52, tmp_path / "p" / storage.FILE)
        np.testing.assert_array_equal(found, np.concatenate([some_items(47).X, more.X]))
        assert len(files(tmp_path / "p")) == 1
        assert files(tmp_path / "p") != before[0]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("model", ["logistic", "kernel"])
def test_a_learner_asks_for_the_same_items(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str) -> None:
    monkeypatch.setattr(disk_rows, "_SMALL_SHARE", 0.0)
    found = []
    for most in (0, 10**9):
        monkeypatch.setattr(storage, "MAPPED_FEATURES", most)
        labels: Any = {k: ("cat", "dog")[k % 2] for k in range(30)}
        with make(tmp_path / f"p{most}", 400, labels=labels, model=model) as project:
            assert isinstance(project.X, np.memmap) == (most == 0)
            learner = ProjectLearner(project.settings, project.X)
            learner.follow(project.state().learned())
            status = learner.learning_status(queue=20)
            predicted = learner.predict(project.X)
            found.append((status.queue, status.errors, status.verdict, predicted.labels.tolist()))
    assert len(found[0][0]) == 20
    assert found[0] == found[1]
