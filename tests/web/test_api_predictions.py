"""Checks of predictions made elsewhere through the API: what people get to see, their answers, and the statement."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI

from suffice.checks import SequentialTerms
from suffice.web.http_messages import CheckedAnswer, ResultAnswer
from tests.project.prediction_projects import made, rows
from tests.web.web_projects import Script, running_app, script_of

#: Numbers that occur in hidden columns only.
PREDICTED, CONFIDENCE = 90_000.125, 0.314159


@pytest.fixture
def table() -> dict[str, list[Any]]:
    return rows(120)[1]


def post(script: Script, path: str, **sent: Any) -> Any:
    return script.post(f"/api/{path}", json={"person": "ann", **sent})


def asked(script: Script) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = post(script, "next", n=5).json()["items"]
    return items


@pytest.fixture
def blind(tmp_path: Path) -> Iterator[FastAPI]:
    n = 100
    numbers = {
        "id": [f"row {k}" for k in range(n)],
        "body": [f"some text with number {k}" for k in range(n)],
        "llm": [PREDICTED + k for k in range(n)],
        "p": [CONFIDENCE] * n,
    }
    project = made(tmp_path / "numbers", numbers, tolerance=0.5, at_most=None, probability="p")
    with running_app(project) as app:
        yield app


def test_no_answer_of_the_server_has_a_hidden_prediction(blind: FastAPI) -> None:
    script = script_of(blind)
    assert post(script, "checks", size=10).status_code == 200
    texts = []
    for each in asked(script):
        texts.append(str(each))
        assert post(script, "labels", item=each["item"], label=1.5).status_code == 200
    texts += [script.get(f"/api/items/{item}").text for item in range(100)]
    paths = [
        "project",
        "status",
        "labels",
        "review",
        "settings",
        "report",
        "labels?search=90000",
        "labels?search=0.314159",
    ]
    for path in paths:
        answer = script.get(f"/api/{path}")
        assert answer.status_code in {200, 409}, (path, answer.text)
        texts.append(answer.text)
        if "search" in path:
            assert answer.json()["rows"] == [], "a search tells what is hidden"
    for text in texts:
        assert "90000" not in text.replace(",", "")
        assert "0.314159" not in text
    assert len(script.get("/api/labels").json()["rows"]) == 5


def test_a_check_from_its_start_to_its_statement(tmp_path: Path, table: dict[str, list[Any]]) -> None:
    with running_app(made(tmp_path / "a", table, at_most=None, group="topic", show=("topic",))) as app:
        script = script_of(app)
        project, told = script.get("/api/project").json(), script.get("/api/status").json()
        assert set(project["checked"]) == set(CheckedAnswer.model_fields)
        assert project["checked"]["group"] == "topic"
        assert (told["result"], told["decision"]["headline"]) == (None, "Start a check")
        assert asked(script) == []
        early = script.get("/api/checks/statement")
        assert (early.status_code, "no check has ended" in early.json()["detail"]) == (409, True)
        assert post(script, "checks").status_code == 422
        assert post(script, "checks", size=1000).status_code == 422
        assert post(script, "checks", size=30, at_most=0.2).status_code == 200
        assert post(script, "checks", size=30).status_code == 409
        while items := asked(script):
            for each in items:
                assert {cell["name"] for cell in each["cells"]} == {"body", "topic"}
                assert script.get("/api/checks/statement").status_code == 409
                assert post(script, "labels", item=each["item"], label=table["llm"][each["item"]]).status_code == 200
        result = script.get("/api/status").json()["result"]
        assert set(result) == set(ResultAnswer.model_fields)
        assert (result["complete"], result["checked"], result["wrong"]) == (True, 30, 0)
        assert set(result["groups"]) == {"news", "sport"}
        page = script.get("/api/checks/statement")
        assert page.status_code == 200
        assert page.headers["content-type"].startswith("text/html")
        assert result["sentences"][-1] in page.text


@pytest.mark.parametrize(("given", "planned"), [({}, 0.1), ({"expected": 0.02}, 0.02), ({"expected": 0.0}, 0.0)])
def test_a_check_is_planned_for_an_expected_share(
    tmp_path: Path, table: dict[str, list[Any]], given: dict[str, float], planned: float
) -> None:
    with running_app(made(tmp_path / "a", table, at_most=None)) as app:
        script = script_of(app)
        assert post(script, "checks", at_most=0.2, expected=1.0).status_code == 422
        written = post(script, "checks", at_most=0.2, **given).json()
        assert written["behind"] == 0
        check = script.get("/api/status").json()["check"]
        terms = SequentialTerms.of_share(0.2, pool=check["pool"], alpha=0.025, expected=planned)
        assert (check["expected"], check["sequential"]["planned"]) == (planned, terms.planned)
        assert check["plan_words"].startswith("The check is planned for ")


UNUSED: list[tuple[str, Any]] = [
    ("tolerance", 3.0),
    ("share", 0.1),
    ("annotator_error", 0.01),
    ("unlabelable_as", "excluded"),
    ("predicted_as_found", False),
]


@pytest.mark.parametrize(("name", "value"), UNUSED)
def test_what_a_check_of_predictions_does_not_use_is_refused(
    tmp_path: Path, table: dict[str, list[Any]], name: str, value: Any
) -> None:
    project = made(tmp_path / "a", table, at_most=None)
    with running_app(project) as app:
        script = script_of(app)
        answer = post(script, "checks", size=10, **{name: value})
        assert answer.status_code == 422
        assert f"{name} is not used in a check of predictions made elsewhere" in answer.json()["detail"]
        assert not project.checks()
        # The usual values are no request.
        assert post(script, "checks", size=10, unlabelable_as="wrong", predicted_as_found=True).status_code == 200


def test_the_tolerance_of_the_project_may_be_sent(blind: FastAPI) -> None:
    script = script_of(blind)
    assert post(script, "checks", size=10, tolerance=0.25).status_code == 422
    assert post(script, "checks", size=10, tolerance=0.5).status_code == 200


def test_a_check_for_a_goal_has_the_settings_of_the_project(tmp_path: Path, table: dict[str, list[Any]]) -> None:
    conditions = {"confidence": 0.99, "earlier_checks": 5}
    project = made(tmp_path / "a", table, of="all", first_check=conditions)
    with running_app(project) as app:
        script = script_of(app)
        assert post(script, "checks", of="all", size=10).status_code == 422
        assert post(script, "checks").status_code == 200
        (check,) = project.checks()
        assert (check.draw.number, check.draw.alpha) == (6, 0.01)


def test_an_answer_with_a_correction(tmp_path: Path, table: dict[str, list[Any]]) -> None:
    project = made(tmp_path / "a", table, at_most=None, answer="verdict")
    with running_app(project) as app:
        script = script_of(app)
        assert post(script, "checks", size=2).status_code == 200
        first, second = asked(script)
        assert {cell["name"]: cell["value"] for cell in first["cells"]}["llm"] == table["llm"][first["item"]]
        refused = post(script, "labels", item=first["item"], label="right", correction="that")
        assert (refused.status_code, "a correction is for" in refused.json()["detail"]) == (422, True)
        assert post(script, "labels", item=first["item"], label="wrong", correction="x" * 20_001).status_code == 422
        assert post(script, "labels", item=first["item"], label="wrong", correction="that").status_code == 200
        assert post(script, "labels", item=second["item"], label="right").status_code == 200
        assert project.state().labels.corrections == {first["item"]: "that"}
        assert post(script, "corrections", item=second["item"], label="wrong", correction="this").status_code == 200
        assert script.get("/api/status").json()["result"]["wrong"] == 2
        assert project.state().labels.corrections == {first["item"]: "that", second["item"]: "this"}


def test_there_is_no_model_to_change(blind: FastAPI) -> None:
    script = script_of(blind)
    assert script.get("/api/project").json()["models"] == []
    assert post(script, "model", model="ridge").status_code == 422


def test_a_project_with_a_model_has_no_such_statement(tmp_path: Path) -> None:
    from tests.web.web_projects import make_project

    with running_app(make_project(tmp_path / "mails")) as app:
        script = script_of(app)
        answer = script.get("/api/checks/statement")
        assert (answer.status_code, "has a model of its own" in answer.json()["detail"]) == (409, True)
        assert script.get("/api/project").json()["checked"] is None
        assert script.get("/api/status").json()["result"] is None
