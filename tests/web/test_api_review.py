"""The API of the review: unlikely labels, confirmations, predictions on request, and imports."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import pytest
from fastapi import FastAPI

from suffice.project.create import create_project
from suffice.project.events import EventKind
from suffice.project.labelling_project import Project
from suffice.session import suspicious_labels as ranking
from tests.web.web_projects import Script, make_project, running_app, script_of


@pytest.fixture(autouse=True)
def _small_forest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranking, "_TREES", 25)


@pytest.fixture
def app(tmp_path: Path) -> Iterator[FastAPI]:
    with running_app(make_project(tmp_path / "project", 60)) as app:
        yield app


@pytest.fixture
def script(app: FastAPI) -> Script:
    return script_of(app)


def project_of(app: FastAPI) -> Project:
    project = app.state.context.project
    assert isinstance(project, Project)
    return project


def post(script: Script, path: str, **body: Any) -> dict[str, Any]:
    answer = script.post(f"/api/{path}", json=body)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def label_forty(app: FastAPI, wrong: int = 3) -> None:
    project = project_of(app)
    for item in range(40):
        right = project.X[item, 0] > 0.0
        project.label(item, "spam" if right != (item == wrong) else "ham", person="Ann")
    app.state.context.background.wake()
    assert app.state.context.background.wait_settled(60.0)


def test_unlikely_labels_are_listed_until_they_are_confirmed(app: FastAPI, script: Script) -> None:
    assert script.get("/api/review").json()["labels"] == []
    label_forty(app)
    found = script.get("/api/review?most=1").json()
    row = found["labels"][0]
    assert (row["item"], row["id"], row["person"]) == (3, "mail-3", "Ann")
    assert row["prediction"] != row["label"]
    assert row["sentence"].startswith(f"Labelled {row['label']}; without this label the model says")
    assert found["n_labelled"] == 40
    assert "not all of them are wrong" in found["note"].lower()
    done = post(script, "confirmations", person="Ann", item=3, request="r")
    assert post(script, "confirmations", person="Ann", item=3, request="r") == done | {"repeated": True, "behind": ANY}
    assert 3 not in [each["item"] for each in script.get("/api/review").json()["labels"]]
    assert script.post("/api/confirmations", json={"person": "Ann", "item": 50}).status_code == 409
    assert script.post("/api/confirmations", json={"person": "Ann", "item": 500}).status_code == 404
    assert script.get("/api/review?most=0").status_code == 422


def test_disagreements_are_listed_until_they_are_resolved(script: Script) -> None:
    post(script, "labels", person="Ann", item=0, label="spam")
    post(script, "labels", person="Bob", item=0, label="ham")
    post(script, "labels", person="Ann", item=1, label="ham")
    assert [row["item"] for row in script.get("/api/labels?only=unresolved").json()["rows"]] == [0]
    post(script, "corrections", person="Eve", item=0, label="spam")
    assert script.get("/api/labels?only=unresolved").json()["total"] == 0
    assert script.get("/api/labels?only=disagreed").json()["total"] == 1


def test_a_prediction_on_request_is_noted_in_the_journal(app: FastAPI, script: Script) -> None:
    assert post(script, "predictions", person="Bob", item=59) == {"item": 59, "predictions": []}
    label_forty(app)
    post(script, "imports", person="Ann", kind="predictions", source="old", rows=[{"id": "mail-50", "label": "ham"}])
    shown = post(script, "predictions", person="Bob", item=50)["predictions"]
    assert [each["source"] for each in shown] == ["", "old"]
    assert 0.5 <= shown[0]["probability"] <= 1.0
    assert shown[1]["sentence"] == "The file old says ham."
    post(script, "predictions", person="Bob", item=50)
    project = project_of(app)
    events = [event for event in project.events() if event.kind is EventKind.prediction_shown]
    assert [(event.item, event.person) for event in events] == [(59, "Bob"), (50, "Bob")]
    post(script, "labels", person="Bob", item=50, label="ham")
    post(script, "labels", person="Ann", item=59, label="ham")
    post(script, "labels", person="Ann", item=58, label="ham", saw_prediction=True)
    seen = {each.item: each.saw_prediction for each in project.state().labelled()[40:]}
    assert seen == {50: True, 59: False, 58: True}


def test_in_a_check_no_prediction_is_shown(app: FastAPI, script: Script) -> None:
    label_forty(app)
    before = [each.position for each in project_of(app).next("Bob", 1)]
    post(script, "predictions", person="Bob", item=before[0])
    post(script, "checks", person="Ann", size=20)
    answer = script.post("/api/predictions", json={"person": "Ann", "item": 50})
    assert answer.status_code == 409
    assert "belongs to a check" in answer.json()["detail"]
    # Bob has seen one before it was drawn, so Bob cannot answer for it.
    refused = script.post("/api/labels", json={"person": "Bob", "item": before[0], "label": "ham"})
    assert refused.status_code == 409
    assert "has seen a prediction" in refused.json()["detail"]
    post(script, "labels", person="Ann", item=before[0], label="ham")


def test_rows_are_imported(app: FastAPI, script: Script) -> None:
    rows = [{"id": "mail-1", "label": "ham"}, {"id": "mail-2", "label": "egg"}, {"id": "nobody", "label": "ham"}]
    trial = post(script, "imports", person="Ann", rows=rows, check=True)
    assert (trial["labelled"], trial["written"], trial["unknown"], trial["unmatched"]) == (1, False, {"egg": 1}, 1)
    assert project_of(app).state().n_labelled == 0
    assert post(script, "imports", person="Ann", rows=rows)["written"]
    assert project_of(app).state().label_of(1) == "ham"
    assert not post(script, "imports", person="Ann", rows=rows)["written"]
    once = post(script, "imports", person="Ann", rows=rows[:1], conflicts="replace", request="once")
    again = post(script, "imports", person="Ann", rows=rows[:1], conflicts="replace", request="once")
    assert again == once | {"repeated": True}
    other = script.post("/api/imports", json={"person": "Ann", "rows": rows, "request": "once"})
    assert other.status_code == 409
    unknown = script.post("/api/imports", json={"person": "Ann", "rows": [{"id": "mail-01", "label": "ham"}]})
    assert unknown.status_code == 409
    assert "'mail-01'. The ids in the project: 'mail-1'. They differ in leading zeros" in unknown.json()["detail"]
    assert script.post("/api/imports", json={"person": "Ann", "rows": []}).status_code == 422
    assert script.post("/api/imports", json={"person": "Ann", "rows": [{"id": "x"}]}).status_code == 422


def test_rows_are_added(tmp_path: Path) -> None:
    data = {"size": [k / 10 for k in range(20)], "word": ["a", "b"] * 10}
    with running_app(create_project(tmp_path / "p", data, classes=["spam", "ham"], target="kind")) as app:
        script = script_of(app)
        rows = [{"size": 2.5, "word": "a", "kind": "ham"}, {"size": "3", "word": "b"}, {"size": 4, "word": "b"}]
        counts = {"rows": 3, "added": 3, "labelled": 1, "matched": 0, "unmatched": 3, "conflicting": 0}
        trial = post(script, "items", person="Ann", rows=rows, check=True)
        assert trial | counts | {"size": 20, "written": False} == trial
        added = post(script, "items", person="Ann", rows=rows, request="more")
        assert added | counts | {"size": 23, "written": True, "repeated": False} == added
        assert post(script, "items", person="Ann", rows=rows, request="more") == added | {"repeated": True}
        there = script.post("/api/items", json={"person": "Ann", "rows": [{"id": "2", "size": 1, "word": "a"}]})
        assert there.status_code == 422
        assert "the ids of 1 of 1 row already, such as '2'" in there.json()["detail"]
        project = project_of(app)
        assert (project.rows([20])[0][1:], project.state().label_of(20)) == (("2.5", "a"), "ham")
        assert project.rows([22])[0][1:] == ("4", "b")
        for wrong, status in (
            ([], 422),
            ([{}], 422),
            ([{"size": 1}], 422),
            ([{"size": 1, "word": "a", "kind": "egg"}], 422),
            ([{"size": [1], "word": "a"}], 422),
        ):
            answer = script.post("/api/items", json={"person": "Ann", "rows": wrong})
            assert answer.status_code == status, (wrong, answer.text)
        assert project.size == 23
