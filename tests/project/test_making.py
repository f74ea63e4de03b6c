"""Projects are made whole or not at all, whatever happens in the middle."""

import os
import signal
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from suffice.errors import SufficeError
from suffice.project import create
from suffice.project.create import has_project, open_project, write_project
from suffice.project.events import EventKind
from suffice.project.labelling_project import ConflictError
from suffice.project.storage import FILE, TABLES, Database
from tests.project.making_projects import about, make, some_items
from tests.project.project_workers import begin, start

# --- made whole or not at all ---


def is_empty(place: str) -> bool:
    if "://" not in place:
        return not Path(place).exists()
    with closing(Database(place)) as database, database.reading() as connection:
        return not database.tables(connection) & TABLES


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
@pytest.mark.parametrize("step", ["write_contents", "write_events"])
def test_what_fails_in_the_middle_leaves_nothing(
    place: str, step: str, error: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = getattr(create, step)

    def fail(*arguments: Any, **options: Any) -> None:
        real(*arguments, **options)
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(create, step, fail)
        with pytest.raises(error):
            make(place)
    assert is_empty(place)
    make(place).close()
    assert has_project(place)


def test_a_process_killed_while_making_a_project_leaves_room_for_another_try(place: str) -> None:
    # How long it takes is not known, so the moments go from the first to the last.
    for delay in (0.0, 0.05, 0.1, 0.2, 0.4):
        worker = start("create", place, "20000")
        begin(worker)
        time.sleep(delay)
        worker.kill()
        worker.communicate()
        if worker.returncode != -signal.SIGKILL or has_project(place):
            break
    if not has_project(place):
        write_project(place, about(), some_items(30)).close()
    with open_project(place) as project:
        assert project.size in {30, 20000}
        assert len(project.X) == project.size
        assert [event.kind for event in project.events()] == [EventKind.made]
    if "://" not in place and project.size == 30:
        assert [each.name for each in Path(place).iterdir()] == [FILE]


def test_a_folder_that_is_not_there_or_is_a_file(tmp_path: Path) -> None:
    with pytest.raises(SufficeError, match=r"the folder .*/no for the project does not exist"):
        make(tmp_path / "no" / "pets.suffice")
    (tmp_path / "file").touch()
    with pytest.raises(SufficeError, match="for the project cannot be made"):
        make(tmp_path / "file" / "pets.suffice")


def test_a_name_with_everything_in_it(tmp_path: Path) -> None:
    place = tmp_path / "50% of [pets] #1? 🐌 & co;.suffice"
    with make(place) as project:
        project.label(0, "cat", person="ann")
    assert sorted(each.name for each in place.iterdir()) == [FILE, f"{FILE}-head"]
    with open_project(place) as project:
        assert project.state().n_labelled == 1
    make(tmp_path / "a[b]?#.sqlite").close()
    assert has_project(tmp_path / "a[b]?#.sqlite")


def test_where_files_cannot_have_two_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "link", refuse)
    make(tmp_path / "pets.suffice").close()
    assert [each.name for each in (tmp_path / "pets.suffice").iterdir()] == [FILE]
    with pytest.raises(ConflictError, match="already"):
        make(tmp_path / "pets.suffice")


def test_progress_is_reported_from_reading_to_the_last_item(place: str, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b\n" + "".join(f"{k},{k % 7}\n" for k in range(2500)))
    steps: list[tuple[str, int, int]] = []
    options = create.CreationOptions(classes=("yes", "no"))
    create.make_project(place, path, options, progress=lambda *step: steps.append(step)).close()
    # The features of so many rows are computed later.
    assert steps[0] == ("reading the items", 0, 0)
    written = [done for what, done, total in steps[1:] if (what, total) == ("writing the items", 2500)]
    assert len(written) == len(steps) - 1
    assert written == sorted(written)
    assert written[-1] == 2500
