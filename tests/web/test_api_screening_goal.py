"""The goal of a screening through the API: settings, status, check, final file and statement."""

import csv
import io
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi import FastAPI

from suffice import RecallTest
from suffice.web.http_messages import DataSetAnswer, FinishPlanAnswer, GoalAnswer
from tests.web.test_api_checks import label, post, status_of
from tests.web.web_projects import Script, make_project, running_app, script_of


@pytest.fixture
def app(tmp_path: Path) -> Iterator[FastAPI]:
    given = {"positive": "spam", "recall": 0.8, "of": "all", "at_most": 0.2, "random_share": 0.0}
    with running_app(make_project(tmp_path / "project", 90, rule=RecallTest(0.8).state_dict(), **given)) as app:
        yield app


@pytest.fixture
def script(app: FastAPI) -> Script:
    return script_of(app)


def test_from_the_first_item_to_the_statement(app: FastAPI, script: Script) -> None:
    label(app, script, 50)
    told = status_of(script)
    goal = told["goal"]
    assert set(goal) == set(GoalAnswer.model_fields)
    assert set(goal["plan"]) == set(FinishPlanAnswer.model_fields)
    assert (goal["class_name"], goal["plan"]["class_name"], goal["plan"]["found"]) == ("spam", "spam", goal["found"])
    assert goal["allowed"] == goal["found"] // 4
    assert told["decision"]["screening"]["recall"] == 0.8
    assert "are missed" in goal["missing"]
    answer = script.get("/api/final/statement")
    assert (answer.status_code, answer.json()["detail"]) == (409, goal["missing"])
    # The check is that of the settings.
    assert post(script, "checks").status_code == 200
    check = status_of(script)["check"]
    assert (check["quantity"], check["class_name"], check["of"], check["at_most"]) == ("recall", "spam", "all", 0.2)
    assert check["sequential"]["class_name"] == "spam"
    assert check["sequential"]["allowed"] == goal["allowed"]
    assert check["target_words"].endswith("of class 'spam' missed")
    while status_of(script)["check"]["state"] == "open":
        label(app, script, 1)
    told = status_of(script)
    reached = told["goal"]["reached"]
    assert set(DataSetAnswer.model_fields) <= set(reached)
    assert (reached["class_name"], reached["missed_at_most"], reached["wrong_at_most"]) == (
        "spam",
        goal["allowed"],
        None,
    )
    assert reached["recall_at_least"] >= 0.8
    assert reached["figure"].startswith("≥ ")
    assert told["decision"]["answer"] == "enough"
    assert told["decision"]["data_set"]["statement"] == reached["statement"]
    statement = script.get("/api/final/statement")
    assert statement.status_code == 200
    shown = statement.text.replace("&#39;", "'").replace("\u00a0", " ")
    unread = reached["predicted"]
    assert (
        f"{reached['found']} found, at most {goal['allowed']} missed among the {unread} rows that nobody read." in shown
    )
    assert "The statement is about the rows of class 'spam'." in shown
    rows = list(csv.DictReader(io.StringIO(script.get("/api/final").text)))
    read = [row for row in rows if row["source"] in ("person", "check")]
    assert sum(row["label"] == "spam" for row in read) == reached["found"]
    assert len(rows) - len(read) == unread
    report = script.get("/api/report")
    assert "of the items of class &#39;spam&#39; are missed" in report.text


def test_the_goal_is_a_setting_of_a_screening(script: Script) -> None:
    told = script.get("/api/settings").json()
    assert (told["positive"], told["of"], told["at_most"]) == ("spam", "all", 0.2)
    refused = post(script, "settings", annotator_error=0.01)
    assert (refused.status_code, "does not apply to a screening" in refused.json()["detail"]) == (422, True)
    assert post(script, "settings", of="rest", at_most=None).status_code == 200
    assert status_of(script)["goal"] is None
    assert post(script, "settings", of="all", at_most=0.1).status_code == 200
    assert status_of(script)["goal"]["class_name"] == "spam"


def test_a_check_that_cannot_be_used_is_answered_with_a_sentence(app: FastAPI, script: Script) -> None:
    label(app, script, 20)
    for sent, word in (
        ({"at_most": 0.1, "of": "all", "annotator_error": 0.01}, "does not apply to a screening"),
        ({"at_most": 0.1, "of": "all", "recall_of": "ham"}, "recall_of is not for the goal of a screening"),
        ({"at_most": 0.1, "of": "all", "unlabelable_as": "excluded"}, "unlabelable_as"),
    ):
        answer = post(script, "checks", **sent)
        assert (answer.status_code, word in answer.json()["detail"]) == (422, True), answer.json()
    assert status_of(script)["check"] is None
