"""Labels for other programs: tasks of Label Studio, data sets of Hugging Face, and a saved pipeline."""

import json
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import joblib
import numpy as np
import pytest

from suffice.errors import SufficeError
from suffice.project.create import create_project
from suffice.project.exported_files import label_studio_configuration, label_studio_file, write_dataset
from suffice.project.learned_project import learned_project
from suffice.project.learning_status import Predictions
from tests.cli.test_project_commands import said, told
from tests.project.labelled_projects import busy_project
from tests.project.making_projects import about, make


@pytest.fixture
def place(tmp_path: Path) -> Path:
    x = np.random.default_rng(0).normal(size=60).tolist()
    with create_project(tmp_path / "sides", {"x": x}, classes=["left", "right"]) as project:
        for item in range(30):
            project.label(item, "left" if x[item] < 0 else "right", person="ann")
    return tmp_path / "sides"


def test_tasks_have_labels_as_annotations_and_predictions_as_such(tmp_path: Path) -> None:
    with busy_project(tmp_path / "pets.suffice") as project:
        predictions = learned_project(project).predict(project.X)
        file = label_studio_file(project, predictions)
        tasks = json.loads(file.content)
        assert (file.rows, len(tasks)) == (120, 120)
        assert tasks[0]["data"] == {"item_id": "id-0", "text": "pet 0 🐌", "number": project.item(0).cells[1][1]}
        both = tasks[14]["annotations"]
        assert [(each["created_username"], each["result"][0]["value"]) for each in both] == [
            ("ann", {"choices": [project.state().label_of(14)]}),
            ("bob", {"choices": ["eel"]}),
        ]
        corrected = tasks[20]["annotations"]
        assert [each["ground_truth"] for each in corrected] == [False, True]
        assert corrected[1]["result"] == [
            {"from_name": "label", "to_name": "item", "type": "choices", "value": {"choices": ["eel"]}}
        ]
        guess = tasks[60]["predictions"][0]
        assert guess["result"][0]["value"]["choices"] == [predictions.labels[60]]
        assert guess["score"] == pytest.approx(1.0 - predictions.uncertainty[60])
        assert "annotations" not in tasks[60]
        assert "predictions" not in tasks[14]
        assert "predictions" not in json.loads(label_studio_file(project).content)[60]
        names = ET.fromstring(label_studio_configuration(project.settings).content)
        assert [each.get("value") for each in names.iter("Choice")] == ["cat", "dog", "eel"]
        assert [(each.tag, each.get("name")) for each in names] == [("Text", "item"), ("Choices", "label")]


def test_numbers_and_tables(tmp_path: Path) -> None:
    with make(tmp_path / "n.suffice", 20, task="regression", shown="table", main=None) as project:
        project.label(3, 2.5, person="ann")
        some = Predictions(np.zeros(20), np.ones(20), None)
        tasks = json.loads(label_studio_file(project, some).content)
        assert tasks[3]["annotations"][0]["result"][0]["value"] == {"number": 2.5}
        assert tasks[4]["predictions"][0]["result"][0]["type"] == "number"
        assert set(tasks[0]["data"]) == {"item_id", "cells"}
    root = ET.fromstring(label_studio_configuration(about("regression", shown="table", main=None)).content)
    assert [(each.tag, each.get("value")) for each in root] == [("Table", "$cells"), ("Number", None)]


def test_names_of_classes_and_columns_do_not_break_the_configuration() -> None:
    odd = about(classes=('<b> & "c"', "d"), columns=("item_id", "text"))
    root = ET.fromstring(label_studio_configuration(odd).content)
    assert [each.get("value") for each in root.iter("Choice")] == ['<b> & "c"', "d"]


def test_a_data_set_of_hugging_face(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved: dict[str, Any] = {}

    class Dataset:
        @staticmethod
        def from_dict(table: Any, features: Any) -> Any:
            saved.update(table=table, features=features)
            return SimpleNamespace(save_to_disk=lambda folder: saved.update(folder=folder))

    fake = SimpleNamespace(
        Dataset=Dataset, Features=dict, Value=lambda kind: kind, ClassLabel=lambda names: ("class", names)
    )
    with busy_project(tmp_path / "pets.suffice") as project:
        monkeypatch.setitem(sys.modules, "datasets", None)
        with pytest.raises(SufficeError, match="pip install datasets"):
            write_dataset(project, tmp_path / "hf")
        monkeypatch.setitem(sys.modules, "datasets", fake)
        assert write_dataset(project, tmp_path / "hf") == 40
    assert saved["folder"] == str(tmp_path / "hf")
    assert saved["features"]["animal"] == ("class", ["cat", "dog", "eel"])
    assert saved["features"]["random"] == "bool"
    assert list(saved["table"]) == list(saved["features"])
    assert len(saved["table"]["animal"]) == 40


def test_real_data_sets_are_read_again(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    with busy_project(tmp_path / "pets.suffice") as project:
        write_dataset(project, tmp_path / "hf")
    assert datasets.load_from_disk(str(tmp_path / "hf")).features["animal"].names == ["cat", "dog", "eel"]


def test_the_command_writes_tasks_and_the_model(place: Path, tmp_path: Path) -> None:
    model, out = tmp_path / "model.joblib", tmp_path / "out"
    found = told("export", str(place), "--format", "label-studio", "--out", str(out), "--model", str(model))
    assert found["label_studio"] == {"path": str(out / "label-studio.json"), "rows": 60}
    assert sorted(path.name for path in out.iterdir()) == [
        *("label-studio.json", "label-studio.xml", "labels.csv", "predictions.csv", "report.html"),
    ]
    assert joblib.load(model).predict({"x": [-3.0, 3.0]}).tolist() == ["left", "right"]
    lines = said("export", str(place), "--model", str(model)).splitlines()
    assert f"Model: {model}. Load it with joblib, and only if you trust its author." in lines


def test_predict_and_add(place: Path, tmp_path: Path) -> None:
    new, out = tmp_path / "new.csv", tmp_path / "answers.jsonl"
    new.write_text("x,note\n-3,a\n3,b\n")
    assert told("predict", str(place), str(new), "-o", str(out)) == {"path": str(out), "rows": 2, "notes": []}
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [(row["x"], row["label"]) for row in rows] == [("-3", "left"), ("3", "right")]
    with pytest.raises(SufficeError, match="must end in"):
        said("predict", str(place), str(new), "-o", str(tmp_path / "x.xls"))
    trial = told("add", str(place), str(new), "--check")
    assert (trial["added"], trial["size"], trial["written"], trial["notes"]) == (2, 60, False, [])
    added = said("add", str(place), str(new)).strip()
    assert added.splitlines()[0] == "2 items were added, 0 with a label; the project has 62."
    assert told("status", str(place))["size"] == 62
