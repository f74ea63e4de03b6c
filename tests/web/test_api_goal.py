"""A goal about all labels through the API: settings, status, check, and sentences for what cannot be used."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI

from suffice import LabelWorth
from suffice.web.http_messages import DataSetAnswer, FinishPlanAnswer, GoalAnswer, PresentModelAnswer
from tests.web.test_api_checks import label, post, status_of
from tests.web.web_projects import Script, make_project, running_app, script_of


@pytest.fixture
def app(tmp_path: Path) -> Iterator[FastAPI]:
    made = make_project(tmp_path / "project", 160, rule=LabelWorth().state_dict(), at_most=0.1, of="all")
    with running_app(made) as app:
        yield app


@pytest.fixture
def script(app: FastAPI) -> Script:
    return script_of(app)


def test_from_the_first_label_to_the_reached_goal(app: FastAPI, script: Script) -> None:
    goal = status_of(script)["goal"]
    assert (goal["rows"], goal["by_people"], goal["plan"], goal["reached"]) == (160, 0, None, None)
    label(app, script, 30)
    told = status_of(script)
    goal = told["goal"]
    assert set(goal) == set(GoalAnswer.model_fields)
    assert set(goal["plan"]) == set(FinishPlanAnswer.model_fields)
    assert told["decision"]["finish"] == goal["plan"]
    assert (goal["allowed"], goal["of"], goal["check_open"]) == (16, "all", False)
    assert goal["expected_total"] == goal["by_people"] + goal["more_labels"]
    # The check is that of the settings.
    assert post(script, "checks").status_code == 200
    check = status_of(script)["check"]
    assert (check["of"], check["at_most"], check["corrected"]) == ("all", 0.1, True)
    told = status_of(script)
    assert told["goal"]["check_open"]
    assert told["words"][0].startswith("A check is running: about ")
    assert told["words"][1] == told["check"]["sentence"]
    while status_of(script)["check"]["state"] == "open":
        label(app, script, 1)
    told = status_of(script)
    reached = told["goal"]["reached"]
    assert set(DataSetAnswer.model_fields) <= set(reached)
    assert (reached["wrong_at_most"], reached["rows"], reached["check"]) == (16, 160, 1)
    assert told["decision"]["answer"] == "enough"
    assert told["decision"]["data_set"]["statement"] == reached["statement"]
    # The words state it once.
    assert [words for words in told["words"] if "16 of all 160 labels" in words] == [told["words"][0]]
    assert told["guarantee"]["sentences"] == reached["sentences"]
    # The statement stays when labelling goes on.
    label(app, script, 5)
    assert status_of(script)["goal"]["reached"]["by_people"] == reached["by_people"] + 5


def test_the_model_that_is_chosen_on_the_labels(tmp_path: Path) -> None:
    made = make_project(
        tmp_path / "project", 500, rule=LabelWorth().state_dict(), at_most=0.1, of="all", choose_model=True
    )
    for asked in made.next("Ann", 104):
        a, b = made.X[asked.position]
        made.label(asked.position, "spam" if a * b > 0.0 else "ham", person="Ann")
    with running_app(made) as app:
        script, background = script_of(app), app.state.context.background
        assert background.wait_settled(60.0)
        model = status_of(script)["model"]
        assert set(model) == set(PresentModelAnswer.model_fields)
        assert model["name"] == model["choice"]["model"] != "logistic"
        assert (model["choice"]["compared_at"], model["choice"]["next_at"]) == (100, 200)
        history = script.get("/api/settings").json()["history"]
        assert [(each["person"], each["words"]) for each in history] == [
            ("suffice", f"switched the model to {model['name']}")
        ]
        offered = [each["name"] for each in script.get("/api/project").json()["models"]]
        assert offered == ["logistic", "kernel", "components", "forest", "boosting"]
        assert post(script, "model", model="boosting").status_code == 200
        model = status_of(script)["model"]
        assert model == {"name": "boosting", "description": "gradient-boosted trees", "reason": "", "choice": None}


def test_the_goal_is_a_setting(tmp_path: Path) -> None:
    with running_app(make_project(tmp_path / "project", 40, rule=LabelWorth().state_dict())) as app:
        script = script_of(app)
        told = script.get("/api/settings").json()
        assert [told[name] for name in ("at_most", "of", "annotator_error", "correction_cost", "tolerance")] == [
            *(None, "rest", 0.0, 1.0, None)
        ]
        assert status_of(script)["goal"] is None
        sent = {"at_most": 0.05, "of": "all", "annotator_error": 0.01, "correction_cost": 0.5}
        assert post(script, "settings", **sent).status_code == 200
        told = script.get("/api/settings").json()
        assert {name: told[name] for name in sent} == sent
        assert "what the target is about from “rest” to “all”" in told["history"][0]["words"]
        assert status_of(script)["goal"]["annotator_error"] == 0.01
        assert post(script, "settings", of="rest").status_code == 200
        assert script.get("/api/settings").json()["annotator_error"] == 0.0


@pytest.mark.parametrize(
    ("path", "sent", "word"),
    [
        ("settings", {"of": "some"}, "rest"),
        ("settings", {"of": "all", "at_most": 0.1, "annotator_error": 0.1}, "leaves nothing"),
        ("settings", {"correction_cost": 0}, "correction_cost"),
        ("settings", {"tolerance": 1.0}, "tolerance"),
        ("checks", {"at_most": 0.1, "of": "some"}, "rest"),
        ("checks", {"at_most": 0.1, "of": "all", "annotator_error": 2}, "annotator_error"),
        ("checks", {"size": 10, "of": "all"}, "at_most"),
        ("checks", {"at_most": 0.1, "of": "rest", "annotator_error": 0.01}, "annotator_error"),
    ],
)
def test_bad_values_are_answered_with_a_sentence(script: Script, path: str, sent: dict[str, Any], word: str) -> None:
    answer = post(script, path, **sent)
    assert (answer.status_code, word in answer.json()["detail"]) == (422, True), answer.json()
