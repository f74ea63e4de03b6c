"""Checks through the API: offers, start, answers, guarantee, files, and a sentence for everything that can go wrong."""

import json
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI

from suffice import LabelWorth
from suffice.checks import Guarantee
from suffice.project.labelling_project import Project
from suffice.web.http_messages import GuaranteeAnswer
from tests.web.web_projects import Script, make_project, running_app, script_of


def new_project(folder: Path) -> Project:
    return make_project(folder / "project", 120, rule=LabelWorth().state_dict(), at_most=0.3)


@pytest.fixture
def app(tmp_path: Path) -> Iterator[FastAPI]:
    with running_app(new_project(tmp_path)) as app:
        yield app


@pytest.fixture
def script(app: FastAPI) -> Script:
    return script_of(app)


def post(script: Script, path: str, **body: Any) -> Any:
    return script.post(f"/api/{path}", json={"person": "Ann", **body})


def truth(app: FastAPI, item: int) -> str:
    return "spam" if app.state.context.project.X[item, 0] > 0.0 else "ham"


def label(app: FastAPI, script: Script, n: int) -> list[bool]:
    """Label the next items; whether each was one of a check."""
    of_check = []
    for _ in range(n):
        (item,) = post(script, "next", n=1).json()["items"]
        of_check.append(item["check"])
        sent = post(script, "labels", item=item["item"], label=truth(app, item["item"]))
        assert sent.status_code == 200
    assert app.state.context.background.wait_settled(30.0)
    return of_check


def status_of(script: Script) -> dict[str, Any]:
    told: dict[str, Any] = script.get("/api/status").json()
    return told


def test_from_the_offer_to_the_guarantee_and_its_files(app: FastAPI, script: Script) -> None:
    assert label(app, script, 20) == [False] * 20
    offers = script.get("/api/checks/offers").json()
    assert (offers["pool"], offers["number"], offers["at_most"], offers["alpha"]) == (100, 1, 0.3, 0.025)
    assert [row["size"] for row in offers["rows"]] == sorted(row["size"] for row in offers["rows"])
    assert script.get("/api/checks/offers?size=30").json()["offers"][0]["size"] == 30
    assert status_of(script)["check"] is None

    started = post(script, "checks", size=30, request="one")
    assert (started.status_code, started.json()["repeated"]) == (200, False)
    again = post(script, "checks", size=30, request="one").json()
    assert (again["seq"], again["repeated"]) == (started.json()["seq"], True)
    check = status_of(script)["check"]
    assert (check["state"], check["size"], check["pool"], check["n_labelled"]) == ("open", 30, 100, 20)
    refused = post(script, "checks", size=10)
    assert (refused.status_code, "a check is open" in refused.json()["detail"]) == (409, True)
    assert script.get("/api/export/guarantee").status_code == 409

    assert label(app, script, 30) == [True] * 30
    told = status_of(script)
    guarantee = told["guarantee"]
    assert (told["check"]["state"], told["check"]["proves"]) == ("complete", True)
    assert (guarantee["checked"], guarantee["pool"], guarantee["remaining"]) == (30, 100, 70)
    assert guarantee["about_present_model"]
    assert told["words"][0] == guarantee["sentences"][0]
    file = json.loads(script.get("/api/export/guarantee").content)
    assert file["statement"] == guarantee["statement"]
    assert script.get("/api/export/checked-predictions").status_code == 409
    rows = script.get("/api/export/predictions").text.splitlines()
    assert len(rows) == 71

    assert label(app, script, 1) == [False]
    assert not status_of(script)["guarantee"]["about_present_model"]
    assert script.get("/api/export/checked-predictions?format=jsonl").status_code == 200


@pytest.mark.slow
def test_a_check_that_is_given_up(app: FastAPI, script: Script) -> None:
    label(app, script, 20)
    assert post(script, "checks/abort").status_code == 409
    assert post(script, "checks", size=10).status_code == 200
    label(app, script, 4)
    gone = post(script, "checks/abort", request="stop")
    assert gone.status_code == 200
    assert post(script, "checks/abort", request="stop").json()["repeated"]
    told = status_of(script)
    assert (told["check"]["state"], told["guarantee"]) == ("aborted", None)
    # The next one has another error probability.
    assert script.get("/api/checks/offers").json()["alpha"] == pytest.approx(0.05 / 6)


@pytest.fixture(scope="module")
def labelled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Script]:
    """A project with labels, for several tests that change nothing."""
    with running_app(new_project(tmp_path_factory.mktemp("labelled"))) as app:
        label(app, script_of(app), 20)
        yield script_of(app)


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({}, 422, "size"),
        ({"size": 0}, 422, "size"),
        ({"size": 2.5}, 422, "size"),
        ({"size": "ten"}, 422, "size"),
        ({"size": 101}, 422, "100 unlabelled items"),
        ({"size": 10, "share": 1.5}, 422, "share"),
        ({"size": 10, "tolerance": -1.0}, 422, "tolerance"),
        ({"size": 10, "tolerance": 1.0}, 422, "tolerance"),
        ({"size": 10, "recall_of": "eggs"}, 422, "recall_of"),
        ({"size": 10, "recall_of": "ham", "precision_of": "ham"}, 422, "one quantity"),
        ({"size": 10, "confidence": 0.0}, 422, "confidence"),
        ({"size": 10, "sise": 3}, 422, "sise"),
    ],
)
def test_what_cannot_be_checked_is_said_in_a_sentence(
    labelled: Script, body: dict[str, Any], status: int, words: str
) -> None:
    answer = post(labelled, "checks", **body)
    assert answer.status_code == status
    assert words in answer.json()["detail"]
    assert status_of(labelled)["check"] is None


def test_before_the_model_has_started_there_is_nothing_to_check(script: Script) -> None:
    assert script.get("/api/checks/offers").status_code == 409
    refused = post(script, "checks", size=5)
    assert refused.status_code == 409
    assert "no prediction yet" in refused.json()["detail"]
    assert script.get("/api/checks/offers?size=0").status_code == 422


def test_a_check_of_numbers_needs_a_tolerance(tmp_path: Path) -> None:
    changes: dict[str, Any] = {"task": "regression", "classes": (), "model": "gp", "rule": LabelWorth().state_dict()}
    with running_app(make_project(tmp_path / "project", 60, **changes)) as app:
        script = script_of(app)
        for _ in range(12):
            (item,) = post(script, "next", n=1).json()["items"]
            post(script, "labels", item=item["item"], label=float(app.state.context.project.X[item["item"], 0]))
        assert app.state.context.background.wait_settled(30.0)
        answer = script.get("/api/checks/offers")
        assert (answer.status_code, "tolerance" in answer.json()["detail"]) == (422, True)
        assert script.get("/api/checks/offers?tolerance=0.5&size=20").json()["rows"][0]["size"] == 20
        assert post(script, "checks", size=20, tolerance=0.5).status_code == 200
        assert status_of(script)["check"]["quantity"] == "within"


def test_a_check_for_a_target_from_its_offer_to_its_proof(app: FastAPI, script: Script) -> None:
    assert script.get("/api/checks/sequential-offer?at_most=0.2").status_code == 409
    label(app, script, 20)
    offer = script.get("/api/checks/sequential-offer?at_most=0.2").json()
    assert (offer["pool"], offer["allowed"], offer["number"], offer["alpha"]) == (100, 20, 1, 0.025)
    least = f"At least {offer['least']} "
    assert offer["sentences"][0].startswith("The check ends by itself when it is proven that at most 20 of the 100 ")
    assert least in offer["sentences"][0]
    assert offer["check"]["low"] <= offer["check"]["size"] <= offer["check"]["high"] <= 100
    assert post(script, "checks", at_most=0.2).status_code == 200
    told = status_of(script)
    assert told["check"]["expected"] == pytest.approx(offer["expected"])
    assert told["check"]["sequential"]["needed"] == told["check"]["size"] == offer["least"]
    # The decision has the sentence of the check, and no other number of items.
    assert told["decision"]["sentences"][1] == told["check"]["sentence"]
    assert told["words"].count(told["check"]["sentence"]) == 1
    assert "still to answer" not in " ".join(told["words"])
    assert told["decision"]["outlook_note"] == "This is computed again when the check has ended."
    while status_of(script)["check"]["state"] == "open":
        assert label(app, script, 1) == [True]
    told = status_of(script)
    assert (told["check"]["sequential"]["state"], told["check"]["sentence"]) == ("proven", "")
    assert (told["guarantee"]["value"], told["guarantee"]["allowed"]) == (0.2, 20)
    rows = script.get("/api/labels?limit=200").json()["rows"]
    assert sum(row["in_check"] for row in rows) == told["check"]["sequential"]["answered"]
    # What is no share is refused.
    for bad in ("0", "1", "x"):
        assert script.get(f"/api/checks/sequential-offer?at_most={bad}").status_code == 422
    assert script.get("/api/checks/sequential-offer?at_most=0.2&tolerance=1").status_code == 422


def test_the_status_has_every_field_of_a_guarantee() -> None:
    assert {each.name for each in fields(Guarantee)} <= set(GuaranteeAnswer.model_fields)


def test_a_second_guarantee_is_in_the_status(app: FastAPI, script: Script) -> None:
    label(app, script, 20)
    for number in (1, 2):
        assert post(script, "checks", size=5).status_code == 200
        assert label(app, script, 5) == [True] * 5
        answer = script.get("/api/status")
        assert answer.status_code == 200
        assert (answer.json()["guarantee"]["check"], answer.json()["guarantee"]["number"]) == (number, number)


def test_a_corrected_answer_is_in_the_status(app: FastAPI, script: Script) -> None:
    label(app, script, 20)
    post(script, "checks", size=10)
    asked = [item["item"] for item in post(script, "next", n=10).json()["items"]]
    for item in asked:
        right = truth(app, item)
        said = {"spam": "ham", "ham": "spam"}[right] if item == asked[0] else right
        assert post(script, "labels", item=item, label=said).status_code == 200
    assert post(script, "corrections", item=asked[0], label=truth(app, asked[0])).status_code == 200
    guarantee = status_of(script)["guarantee"]
    assert guarantee["corrections"] == 1
    assert "by the first answers, before 1 answer was corrected" in guarantee["statement"]
