"""`suffice status`, `suffice export` and `suffice report`: what they say, what they write, and what they refuse."""

import csv
import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from suffice.cli.app import app
from suffice.cli.project_options import Reading
from suffice.errors import MissingExtraError, SufficeError
from suffice.project.background_learner import BackgroundLearner
from suffice.project.create import open_project
from suffice.project.learning_status import LearningStatus
from suffice.project.people import people_summary
from suffice.project.status_summary import status
from tests.processes import run_suffice
from tests.project.labelled_projects import busy_project, label_some, learned
from tests.project.making_projects import make
from tests.reading import Reader
from tests.thoroughness import some

RUN = CliRunner()


def said(*arguments: str) -> str:
    """What a command prints; it must be done."""
    result = RUN.invoke(app, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def told(*arguments: str) -> dict[str, Any]:
    """What a command prints as JSON, and nothing else."""
    answer: dict[str, Any] = json.loads(said(*arguments, "--json"))
    return answer


@pytest.fixture
def pets(tmp_path: Path) -> Path:
    """A project beside its data."""
    busy_project(tmp_path / "pets.suffice").close()
    (tmp_path / "pets.csv").write_text("text,number\n", encoding="utf-8")
    return tmp_path / "pets.suffice"


def test_status_is_what_the_api_says(pets: Path) -> None:
    with open_project(pets) as project:
        found = told("status", str(pets))
        with project.lock:
            assert found.pop("team") == people_summary(project.state(), project.settings)
        assert found == json.loads(json.dumps(status(project, learned(project)[1])))


def test_status_tells_a_person_all_of_it(pets: Path) -> None:
    text = said("status", str(pets))
    with open_project(pets) as project:
        words = status(project, learned(project)[1])["words"]
        with project.lock:
            counts = project.state().counts()
    lines = text.splitlines()
    assert lines[0] == "pets: 40 of 120 items labelled, 2 skipped, 78 left."
    # A terminal shows plain spaces.
    assert lines[1 : 1 + len(words)] == [sentence.replace("\u00a0", " ") for sentence in words]
    assert f"Classes: cat {counts['cat']}, dog {counts['dog']}, eel {counts['eel']}" in lines
    assert "People: ann 37, pets.csv (with the data) 2, Zoë <b> 1, bob 0" in lines
    assert any(
        line.startswith("Two people labelled the same 5 items, and 4 items got the same label from all. ")
        for line in lines
    )
    assert any(line.startswith("ann: 38 answers") for line in lines)
    assert any(line.startswith("Last activity: ") and line.endswith(" UTC (skipped).") for line in lines)
    assert f"Go on with: suffice label {pets}" in lines
    assert f"Take the results: suffice export {pets}" in lines


def test_status_of_numbers_and_of_an_empty_project(tmp_path: Path) -> None:
    busy_project(tmp_path / "n.suffice", task="regression").close()
    text = said("status", str(tmp_path / "n.suffice"))
    assert "Two people labelled the same 5 items; on average two numbers are " in text
    assert "Classes" not in text
    make(tmp_path / "empty.suffice").close()
    lines = said("status", str(tmp_path / "empty.suffice")).splitlines()
    assert lines[0] == "pets: 0 of 20 items labelled, 20 left."
    assert lines[1] == "Too early to say: 10 more labels are needed before the model starts."
    assert lines[2:4] == ["Model: Bayesian logistic regression.", "Classes: cat 0, dog 0, eel 0"]
    assert lines[4].endswith("(project made).")


def test_a_project_is_found_by_its_folder_its_file_and_its_data(pets: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = [told("status", str(place)) for place in (pets, pets / "project.sqlite", pets.with_suffix(".csv"))]
    assert found[0] == found[1] == found[2]
    monkeypatch.chdir(pets)
    assert told("status", ".") == found[0]


def test_status_is_asked_while_people_label(pets: Path) -> None:
    with open_project(pets) as project, BackgroundLearner(project) as background:
        asked = project.next("ann")[0].position
        assert told("status", str(pets))["n_labelled"] == 40
        project.label(asked, "cat", person="ann")
        background.wake()
        assert told("status", str(pets))["n_labelled"] == 41
        assert project.next("bob")


def test_nothing_is_written_by_asking(pets: Path) -> None:
    with open_project(pets) as project:
        before = project.events()
        said("status", str(pets))
        said("export", str(pets))
        said("report", str(pets))
        assert project.events() == before


@pytest.mark.parametrize("command", ["status", "export", "report"])
def test_where_there_is_no_project_it_says_so(tmp_path: Path, command: str) -> None:
    (tmp_path / "empty.suffice").mkdir()
    (tmp_path / "photos").mkdir()
    (tmp_path / "mails.csv").write_text("a\n1\n", encoding="utf-8")
    for name in ("nothing", "empty.suffice", "photos", "mails.csv", "no/such/folder.suffice"):
        with pytest.raises(SufficeError, match=r"there is no project in .*; suffice label DATA"):
            RUN.invoke(app, [command, str(tmp_path / name)], catch_exceptions=False)
    assert list((tmp_path / "empty.suffice").iterdir()) == []


def test_what_is_no_project_is_not_taken_for_one(tmp_path: Path) -> None:
    file = tmp_path / "project.sqlite"
    file.write_bytes(b"this is not a database, though long enough to look like one" * 99)
    with pytest.raises(SufficeError, match="project"):
        RUN.invoke(app, ["status", str(file)], catch_exceptions=False)
    with pytest.raises(SufficeError) as caught:
        RUN.invoke(app, ["status", "mysql://ann:sesame@host/pets"], catch_exceptions=False)
    assert "sesame" not in str(caught.value)


def test_a_terminal_is_given_no_orders_by_a_name(tmp_path: Path) -> None:
    make(tmp_path / "p.suffice", name="evil\x1b[2J\nname").close()
    assert "evil␛[2J name: 0 of 20" in said("status", str(tmp_path / "p.suffice"))


@pytest.mark.parametrize("format", some(["csv", "jsonl", "parquet"], every=2))
def test_export_writes_labels_predictions_and_the_report(pets: Path, format: str) -> None:
    found = told("export", str(pets), "--format", format)
    folder = pets / "export"
    tables = {f"{name}.{format}" for name in ("labels", "skipped", "predictions")}
    assert {each.name for each in folder.iterdir()} == {*tables, "report.html"}
    assert found["skipped"]["rows"] >= 1
    assert found == {
        "skipped": {"path": str(folder / f"skipped.{format}"), "rows": found["skipped"]["rows"]},
        "folder": str(folder),
        "format": format,
        "left_out": "",
        "labels": {"path": str(folder / f"labels.{format}"), "rows": 40},
        "predictions": {"path": str(folder / f"predictions.{format}"), "rows": 80},
        "checked_predictions": None,
        "guarantee": None,
        "dataset": None,
        "label_studio": None,
        "model": None,
        "report": {"path": str(folder / "report.html")},
    }
    assert "Labelling report: pets" in Reader((folder / "report.html").read_text(encoding="utf-8")).text
    # What it wrote before it replaces, and says so to a person.
    lines = said("export", str(pets), "--format", format).splitlines()
    assert lines == [
        f"Labels: {folder / f'labels.{format}'} (40 rows)",
        f"Skipped: {folder / f'skipped.{format}'} (2 rows)",
        f"Predictions: {folder / f'predictions.{format}'} (80 rows)",
        f"Report: {folder / 'report.html'}",
    ]


def test_export_keeps_what_is_in_a_folder_of_somebodys_own(pets: Path, tmp_path: Path) -> None:
    folder = tmp_path / "a" / "results"
    said("export", str(pets), "--out", str(folder))
    (folder / "labels.csv").write_text("mine", encoding="utf-8")
    (folder / "notes.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(
        SufficeError, match=r"there is labels\.csv, skipped\.csv, predictions\.csv, report\.html already.*--force"
    ):
        RUN.invoke(app, ["export", str(pets), "--out", str(folder)], catch_exceptions=False)
    assert (folder / "labels.csv").read_text(encoding="utf-8") == "mine"
    said("export", str(pets), "--out", str(folder), "--force")
    rows = list(csv.DictReader(io.StringIO((folder / "labels.csv").read_text(encoding="utf-8"))))
    assert len(rows) == 40
    assert (folder / "notes.txt").read_text(encoding="utf-8") == "mine"


def test_before_the_model_has_begun_there_are_no_predictions(tmp_path: Path) -> None:
    place = tmp_path / "p.suffice"
    with make(place) as project:
        label_some(project, range(3))
    found = told("export", str(place))
    assert found["predictions"] is None
    assert found["left_out"] == (
        "No predictions: the model has no prediction yet: it begins with 10 labels, and there are 3."
    )
    assert {each.name for each in (place / "export").iterdir()} == {"labels.csv", "report.html"}
    (place / "export" / "predictions.csv").write_text("old", encoding="utf-8")
    assert "The file predictions.csv there is of an earlier export." in said("export", str(place))


def test_labels_come_out_where_there_can_be_no_model(tmp_path: Path) -> None:
    place = tmp_path / "p.suffice"
    with make(place, model="oracle") as project:
        label_some(project, range(12))
    found = told("export", str(place))
    assert found["labels"]["rows"] == 12
    assert "model must be one of" in found["left_out"]
    assert "There is no model: model must be one of" in said("status", str(place))
    assert "There is no model" in Reader((place / "export" / "report.html").read_text(encoding="utf-8")).text


def test_labels_come_out_where_the_rule_is_not_there(tmp_path: Path) -> None:
    place = tmp_path / "p.suffice"
    with make(place, rule={"rule": "mine.OwnRule", "params": {}, "state": {}}) as project:
        label_some(project, range(12))
    assert told("export", str(place))["labels"]["rows"] == 12
    page = Reader((place / "export" / "report.html").read_text(encoding="utf-8"))
    assert "certif" not in page.text
    assert "no stopping rule is named 'mine.OwnRule'" in page.text


def test_export_says_what_is_in_its_way(pets: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(SufficeError, match="file is a file, not a folder; name another one with --out"):
        RUN.invoke(app, ["export", str(pets), "--out", str(tmp_path / "file")], catch_exceptions=False)
    with pytest.raises(SufficeError, match="cannot be made: Not a directory; name another one with --out"):
        RUN.invoke(app, ["export", str(pets), "--out", str(tmp_path / "file" / "deep")], catch_exceptions=False)
    (pets / "export" / "labels.csv").mkdir(parents=True)
    with pytest.raises(SufficeError, match=r"labels\.csv cannot be saved to .*: it is a folder"):
        RUN.invoke(app, ["export", str(pets)], catch_exceptions=False)
    assert RUN.invoke(app, ["export", str(pets), "--format", "xlsx"]).exit_code == 2
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"-m pip install 'pyarrow>="):
        RUN.invoke(app, ["export", str(pets), "--format", "parquet", "--out", "new"], catch_exceptions=False)
    assert list(Path("new").iterdir()) == []


def test_the_report_is_written_where_it_is_asked_for(pets: Path, tmp_path: Path) -> None:
    assert said("report", str(pets)) == f"Report: {pets / 'export' / 'report.html'}\n"
    page = (pets / "export" / "report.html").read_text(encoding="utf-8")
    own = tmp_path / "quarterly report.html"
    own.write_text("old", encoding="utf-8")
    assert told("report", str(pets), "--out", str(own)) == {"report": str(own)}
    assert own.read_text(encoding="utf-8") == page
    assert "What is not guaranteed" in Reader(page).text
    with pytest.raises(SufficeError, match=r"the report cannot be saved to .*does not exist"):
        RUN.invoke(app, ["report", str(pets), "--out", str(tmp_path / "no" / "r.html")], catch_exceptions=False)


def test_files_of_a_project_in_a_database_go_to_the_folder_where_one_is(pets: Path) -> None:
    with open_project(pets) as project:
        found = Reading(project, "postgresql://ann:sesame@host/pets", project.settings, [], LearningStatus())
        assert found.folder == Path("pets-export")


def test_an_error_is_a_sentence_and_an_exit_code(tmp_path: Path) -> None:
    done = run_suffice("status", str(tmp_path / "nothing"))
    assert done.returncode == 1
    assert done.stderr.startswith("suffice: there is no project in")
    assert "Traceback" not in done.stderr


def test_the_model_is_switched_and_everything_uses_it(tmp_path: Path) -> None:
    pets = tmp_path / "pets.suffice"
    with make(pets, 40) as project:
        label_some(project, range(15))
    text = said("switch", str(pets), "--model", "kernel", "--person", "ann")
    assert "The model is now Bayesian logistic regression on kernel features; it was Bayesian logistic" in text
    assert "Model: Bayesian logistic regression on kernel features." in said("status", str(pets))
    assert told("status", str(pets))["model"]["name"] == "kernel"
    said("export", str(pets), "--out", str(pets.parent / "out"))
    page = (pets.parent / "out" / "report.html").read_text(encoding="utf-8")
    assert "kernel features (until it was switched: Bayesian logistic regression)" in page
    assert told("switch", str(pets), "--model", "logistic") == {"model": "logistic", "before": "kernel"}


@pytest.mark.parametrize(
    ("model", "code", "answer"),
    [
        ("logistic", 1, "the project uses the model logistic already"),
        ("gp", 2, "the model gp is for regression, and this is a project of classification; use logistic or kernel"),
        ("tree", 2, "model must be one of gp, ridge, logistic, kernel, components, forest, boosting, not 'tree'"),
    ],
)
def test_models_that_a_project_cannot_have_are_answered(pets: Path, model: str, code: int, answer: str) -> None:
    result = run_suffice("switch", str(pets), "--model", model)
    assert result.returncode == code
    assert answer in " ".join(result.stderr.split())


def test_classes_are_shown_and_changed(pets: Path) -> None:
    before = told("classes", str(pets))
    names = [each["name"] for each in before["classes"]]
    assert names == ["cat", "dog", "eel"]
    counts = {each["name"]: each["labels"] for each in before["classes"]}
    assert f"cat: {counts['cat']} label" in said("classes", str(pets))
    assert "The classes are changed; all labels stay." in said("classes", str(pets), "--add", "fox", "--person", "ann")
    said("classes", str(pets), "--rename", "cat", "tiger")
    said("classes", str(pets), "--merge", "dog", "--into", "eel")
    said("classes", str(pets), "--remove", "fox")
    after = told("classes", str(pets), "--order", "eel,tiger")
    assert after == {
        "classes": [
            {"name": "eel", "labels": counts["dog"] + counts["eel"]},
            {"name": "tiger", "labels": counts["cat"]},
        ],
        "before": ["tiger", "eel"],
    }
    assert [each["name"] for each in told("status", str(pets))["classes"]] == ["eel", "tiger"]


@pytest.mark.parametrize(
    ("options", "code", "answer"),
    [
        (("--add", "cat"), 2, "the class 'cat' is there twice"),
        (("--rename", "cat", "dog"), 1, "the project has the class 'dog' already; merge the two instead"),
        (("--merge", "cat"), 2, "--merge and --into belong together"),
        (("--add", "fox", "--remove", "cat"), 2, "--add and --remove cannot be done at once"),
        (("--remove", "cat"), 1, "the class 'cat' has labels, so it cannot be removed; merge it into another one"),
        (("--order", "cat,dog"), 2, "order must name each class once; the classes are cat, dog, eel"),
    ],
)
def test_changes_that_classes_cannot_have_are_answered(
    pets: Path, options: tuple[str, ...], code: int, answer: str
) -> None:
    result = run_suffice("classes", str(pets), *options)
    assert result.returncode == code
    assert answer in " ".join(result.stderr.split())
