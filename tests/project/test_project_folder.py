"""The list of the projects of a folder: each in one line, and no project hides another."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from suffice.errors import InvalidValueError
from suffice.presentation.check_words import guarantee_figure
from suffice.presentation.decision_words import STOPS
from suffice.project import project_folder
from suffice.project.background_learner import BackgroundLearner
from suffice.project.create import create_project, open_project
from suffice.project.project_folder import ProjectFolder, ProjectSummary
from suffice.project.status_summary import status
from suffice.project.storage import FILE
from tests.web.web_projects import make_project


def lines(folder: ProjectFolder) -> dict[str, ProjectSummary]:
    return {line.folder: line for line in folder.summaries({})}


def test_each_project_has_a_line(tmp_path: Path) -> None:
    with make_project(tmp_path / "mails.suffice", name="Mails") as project:
        for item in range(3):
            project.label(item, "spam", person="ann")
        at = project.state().people["ann"].last
    houses = {"size": [1.0, 2.0, 3.0]}
    create_project(tmp_path / "houses.suffice", houses, regression=True, target="price").close()
    (tmp_path / "no project").mkdir()
    (tmp_path / ".hidden.suffice").mkdir()
    folder = ProjectFolder(tmp_path)
    found = lines(folder)
    assert [*found] == ["houses.suffice", "mails.suffice"]
    mails, house = found["mails.suffice"], found["houses.suffice"]
    assert (mails.state, mails.name, mails.kind) == ("ok", "Mails", "Table, 2 classes")
    assert (mails.n_labelled, mails.size, mails.last) == (3, 30, at)
    assert mails.statement == "Open it to see what to do next."
    assert (house.kind, house.statement, house.done) == ("Table, numbers", "No label yet.", False)
    # Nothing is read again until it changes.
    assert lines(folder)["mails.suffice"] is mails
    with open_project(tmp_path / "mails.suffice") as project:
        project.label(3, "ham", person="bob")
    assert lines(folder)["mails.suffice"].n_labelled == 4
    folder.close()


def test_a_damaged_an_old_and_a_locked_project_do_not_hide_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(project_folder, "_PATIENCE", 1.0)
    make_project(tmp_path / "good.suffice").close()
    (tmp_path / "noise.suffice").mkdir()
    (tmp_path / "noise.suffice" / FILE).write_bytes(b"noise" * 1000)
    make_project(tmp_path / "cut.suffice").close()
    cut = tmp_path / "cut.suffice" / FILE
    content = cut.read_bytes()
    cut.write_bytes(content[:8192])
    make_project(tmp_path / "locked.suffice").close()
    make_project(tmp_path / "old.suffice").close()
    with closing(sqlite3.connect(tmp_path / "old.suffice" / FILE)) as other, other:
        other.execute("UPDATE about SET value = '2' WHERE key = 'layout'")
    before = (tmp_path / "old.suffice" / FILE).read_bytes()
    folder = ProjectFolder(tmp_path)
    with closing(sqlite3.connect(tmp_path / "locked.suffice" / FILE, isolation_level=None)) as writer:
        # Readers wait where another program keeps the file for itself.
        writer.execute("PRAGMA journal_mode=DELETE")
        writer.execute("PRAGMA locking_mode=EXCLUSIVE")
        writer.execute("BEGIN EXCLUSIVE")
        found = lines(folder)
        states = {name: line.state for name, line in found.items()}
        assert states == {
            "good.suffice": "ok",
            "noise.suffice": "unreadable",
            "cut.suffice": "unreadable",
            "locked.suffice": "busy",
            "old.suffice": "older",
        }
        writer.execute("ROLLBACK")
    assert found["noise.suffice"].statement.startswith("The file noise.suffice/project.sqlite is not a project")
    assert str(tmp_path) not in found["noise.suffice"].statement
    assert "is damaged" in found["cut.suffice"].statement
    assert "being read" in found["locked.suffice"].statement
    assert "updated when you open it" in found["old.suffice"].statement
    assert (tmp_path / "old.suffice" / FILE).read_bytes() == before
    # What was repaired is listed at the next look.
    shutil.rmtree(tmp_path / "noise.suffice")
    cut.write_bytes(content)
    while (later := lines(folder))["locked.suffice"].state == "busy":
        pass
    assert {later[name].state for name in ("cut.suffice", "locked.suffice", "good.suffice")} == {"ok"}
    folder.close()


def test_the_result_is_stated(tmp_path: Path) -> None:
    def spam_or_ham(item: int) -> str:
        return "spam" if project.X[item, 0] > 0.0 else "ham"

    with make_project(tmp_path / "proven.suffice", 200) as project, BackgroundLearner(project) as background:
        for item in range(30):
            project.label(item, spam_or_ham(item), person="ann")
        assert background.wait_settled(60.0)
        learned = background.learning_status
        summary = project_folder.summary_of("proven.suffice", project, learned)
        decision = status(project, learned)["decision"]
        assert (summary.statement, summary.done) == (f"{decision['headline']}.", decision["answer"] in STOPS)
        project.start_check(20, person="ann", predict=background.predictions_after)
        for asked in project.next("ann", 20):
            project.label(asked.position, spam_or_ham(asked.position), person="ann")
        guarantee = project.guarantee()
        assert guarantee is not None
        figure, note = guarantee_figure(guarantee.guarantee.to_dict())
        # A guarantee does not depend on what the model has learned since.
        for known in (background.learning_status, None):
            assert project_folder.summary_of("p", project, known).statement == f"{figure} {note}."
        # One of an earlier model is not one of the project as it is.
        labelled = project.state().labels.by_item
        for item in [item for item in range(project.size) if item not in labelled][:5]:
            project.label(item, spam_or_ham(item), person="ann")
        assert background.wait_settled(60.0)
        learned = background.learning_status
        told = status(project, learned)
        assert told["guarantee"]["about_present_model"] is False
        assert project_folder.summary_of("p", project, learned).statement == f"{told['decision']['headline']}."
    with make_project(tmp_path / "screen.suffice", positive="spam") as project:
        assert project_folder.kind_in_words(project.settings) == "Table, search for spam"


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda path: path / "none", "there is no folder .* create it first: mkdir"),
        (lambda path: path / "file", "must be a folder, and .* is a file"),
        (lambda path: path / "p", "is one project; serve it with suffice serve"),
        (lambda _: "postgresql://me@host/labels", "projects in PostgreSQL are not in a folder"),
    ],
)
def test_what_is_no_folder_of_projects(tmp_path: Path, make: object, words: str) -> None:
    (tmp_path / "file").touch()
    make_project(tmp_path / "p").close()
    assert callable(make)
    with pytest.raises(InvalidValueError, match=words):
        ProjectFolder(make(tmp_path))


def test_an_empty_folder_and_names_outside_of_it(tmp_path: Path) -> None:
    make_project(tmp_path / "outside.suffice").close()
    (tmp_path / "in").mkdir()
    folder = ProjectFolder(tmp_path / "in")
    assert folder.summaries({}) == []
    for name in ("../outside.suffice", "..", ".", "", "a\0b", str(tmp_path / "outside.suffice"), "..\\outside.suffice"):
        assert folder.file_of(name) is None
    folder.close()
