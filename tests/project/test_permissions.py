"""Files of a project can be read by their owner only."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from suffice.files import file_mode, is_shared, make_folder, make_private
from suffice.project.background_learner import BackgroundLearner
from suffice.project.create import open_project
from tests.project.labelled_projects import label_some
from tests.project.making_projects import make

pytestmark = pytest.mark.skipif(os.name != "posix", reason="this system has no such permissions")


@pytest.fixture(autouse=True)
def generous() -> Iterator[None]:
    """Let everybody read new files, as on many systems."""
    before = os.umask(0o022)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def modes(folder: Path) -> dict[str, int]:
    return {str(each.relative_to(folder)): mode(each) for each in [folder, *folder.rglob("*")]}


def test_a_new_project_is_its_owners_while_it_is_used_and_afterwards(tmp_path: Path) -> None:
    folder = tmp_path / "pets.suffice"
    with make(folder, 40) as project:
        label_some(project, range(20))
        with BackgroundLearner(project, project.learned_files) as background:
            background.wait_settled(30.0)
            background.keep()
        during = modes(folder)
    assert {"project.sqlite", "project.sqlite-wal", "project.sqlite-shm", "learned"} <= set(during)
    for found in (during, modes(folder)):
        assert {name: oct(each) for name, each in found.items() if each & 0o077} == {}


def test_an_older_project_is_tightened_when_it_is_opened(tmp_path: Path) -> None:
    folder = tmp_path / "pets.suffice"
    make(folder, 40).close()
    beside = folder / "notes.txt"
    beside.write_text("mine")
    learned = folder / "learned"
    learned.mkdir(exist_ok=True)
    for each in (folder, learned):
        each.chmod(0o755)
    for each in (folder / "project.sqlite", beside):
        each.chmod(0o644)
    open_project(folder).close()
    assert modes(folder) == {".": 0o700, "project.sqlite": 0o600, "learned": 0o700, "notes.txt": 0o644}


def test_a_group_that_was_let_in_keeps_its_access(tmp_path: Path) -> None:
    folder = tmp_path / "pets.suffice"
    make(folder, 40).close()
    folder.chmod(0o2775)
    (folder / "project.sqlite").chmod(0o664)
    with open_project(folder) as project:
        label_some(project, range(20))
        with BackgroundLearner(project, project.learned_files) as background:
            background.wait_settled(30.0)
            background.keep()
        found = modes(folder)
    assert is_shared(folder)
    assert {name: oct(each) for name, each in found.items() if each & 0o007 or not each & 0o060} == {}
    assert found["."] == 0o2770
    assert mode(folder / "learned") == 0o2770


def test_what_is_somebody_elses_or_not_there_stays_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "pets"
    folder.mkdir(mode=0o755)
    target = tmp_path / "target"
    target.write_text("")
    (folder / "link").symlink_to(target)
    make_private(folder, ["link", "nothing"])
    assert (mode(folder), mode(target)) == (0o700, 0o644)
    folder.chmod(0o755)
    monkeypatch.setattr(os, "geteuid", lambda: folder.stat().st_uid + 1)
    make_private(folder, [])
    assert mode(folder) == 0o755
    make_private(tmp_path / "nothing", [])
    assert not is_shared(tmp_path / "nothing")
    make_folder(folder)
    assert (mode(folder), file_mode(folder)) == (0o755, 0o600)
