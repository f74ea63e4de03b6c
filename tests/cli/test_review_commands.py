"""The commands around labels: review, import."""

import json
from pathlib import Path

import pytest

from suffice.errors import InvalidValueError
from suffice.project.create import open_project
from suffice.session import suspicious_labels as ranking
from tests.cli.test_project_commands import said, told
from tests.processes import run_suffice
from tests.project.labelled_projects import label_some
from tests.project.making_projects import make


@pytest.fixture
def pets(tmp_path: Path) -> Path:
    with make(tmp_path / "pets.suffice", 80) as project:
        label_some(project, range(1, 40))
        project.label(0, "eel", person="bob")
    return tmp_path / "pets.suffice"


def test_review_lists_unlikely_labels(pets: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranking, "_TREES", 25)
    found = told("review", str(pets), "-n", "3")
    assert found["labels"][0]["item"] == 0
    lines = said("review", str(pets)).splitlines()
    assert lines[0] == found["sentence"].replace("; the 3 least likely are listed", "")
    assert lines[1].startswith("id-0: pet 0")
    assert lines[2].startswith("  Labelled eel; without this label the model says")
    assert lines[2].endswith("By bob.")


def test_labels_and_predictions_are_imported(pets: Path, tmp_path: Path) -> None:
    file = tmp_path / "more.csv"
    file.write_text("id,kind\nid-50,cat\nid-51,cow\nid-0,cat\n")
    asked = ["import", str(pets), str(file), "--id", "id", "--label", "kind", "--person", "Eve"]
    trial = told(*asked, "--check")
    assert (trial["labelled"], trial["kept"], trial["written"]) == (1, 1, False)
    assert said(*asked, "--conflicts", "replace").splitlines() == [
        "3 of 3 rows belong to items, matched by id.",
        "Items: 1 newly labelled, 1 with a replaced label.",
        "Rows that belong to no item: 0.",
        "Conflicts with what the project has: 1, such as 'id-0' (project: eel, file: cat). Those of the file replace "
        "those of the project.",
        "Rows with a label that cannot be used: 1 (cow 1).",
        "The classes are 'cat', 'dog', 'eel'.",
    ]
    assert told("import", str(pets), str(file), "--prediction", "kind", "--person", "Eve")["predicted"] == 2
    with open_project(pets) as project:
        assert (project.state().label_of(50), project.state().label_of(0)) == ("cat", "cat")
        assert project.state().predictions.imported(50) == ("cat", None, "more.csv")


def test_import_wants_labels_or_predictions(pets: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidValueError, match="either --label"):
        said("import", str(pets), str(tmp_path / "x.csv"))
    with pytest.raises(InvalidValueError, match="there is no file"):
        said("import", str(pets), str(tmp_path / "x.csv"), "--label", "y")


def test_a_file_whose_ids_match_nothing_is_refused(pets: Path, tmp_path: Path) -> None:
    file = tmp_path / "other.csv"
    file.write_text("id,kind\nID-50,cat\nID-51,dog\n")
    command = ("import", str(pets), str(file), "--id", "id", "--label", "kind", "--person", "Eve")
    result = run_suffice(*command)
    assert result.returncode == 2
    assert "'ID-50', 'ID-51'. The ids in the project: 'id-50', 'id-51'" in result.stderr
    assert "upper and lower case" in result.stderr


def test_json_is_one_object(pets: Path) -> None:
    assert json.loads(said("review", str(pets), "--json"))["n_labelled"] == 40
