"""The API: what it answers, and a sentence for everything that can go wrong."""

import csv
import io
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import numpy as np
import pytest
from fastapi import FastAPI

from suffice.criteria import Certificate, RecallTest, Verdict
from suffice.errors import InvalidValueError, MissingExtraError, SufficeError
from suffice.forecast import Forecast
from suffice.project.background_learner import BackgroundLearner
from suffice.project.label_writer import LabelWriter
from suffice.project.labelling_project import ConflictError, Project
from suffice.project.learning_status import ErrorEstimate, LearningStatus, Point
from suffice.project.storage import StorageError, StorageFullError
from suffice.web.access import granted_access
from suffice.web.http_messages import REPORT_POLICY, problem_page, status_of
from suffice.web.request_limits import LARGEST_BODY
from suffice.web.routes import assets
from suffice.web.server import create_app
from tests.web.web_projects import ODD, Script, make_image_project, make_project, running_app, script_of


@pytest.fixture
def app(tmp_path: Path) -> Iterator[FastAPI]:
    with running_app(make_project(tmp_path / "project")) as app:
        yield app


@pytest.fixture
def script(app: FastAPI) -> Script:
    return script_of(app)


@pytest.fixture(scope="module")
def steady(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Script]:
    """A script at a server of its own, for tests that change nothing."""
    with running_app(make_project(tmp_path_factory.mktemp("steady") / "project")) as app:
        yield script_of(app)


def project_of(app: FastAPI) -> Project:
    project = app.state.context.project
    assert isinstance(project, Project)
    return project


def background_of(app: FastAPI) -> BackgroundLearner:
    background = app.state.context.background
    assert isinstance(background, BackgroundLearner)
    return background


def post(script: Script, path: str, **body: Any) -> dict[str, Any]:
    answer = script.post(f"/api/{path}", json=body)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def refusal(script: Script, path: str, **body: Any) -> tuple[int, str]:
    # As ASCII: half of a letter can be written in JSON, but not in UTF-8.
    content = json.dumps(body).encode("ascii")
    answer = script.post(f"/api/{path}", content=content, headers={"Content-Type": "application/json"})
    assert list(answer.json()) == ["detail"]
    return answer.status_code, answer.json()["detail"]


def kind_of(position: int) -> str:
    return "spam" if position % 2 else "ham"


def label_some(script: Script, number: int, person: str = "Ann") -> list[int]:
    """Label items as the page does, one after the other; return which."""
    done = []
    for step in range(number):
        (item,) = post(script, "next", person=person)["items"]
        post(
            script, "labels", person=person, item=item["item"], label=kind_of(item["item"]), request=f"{person} {step}"
        )
        done.append(item["item"])
    return done


def test_the_project_says_what_it_is_about(steady: Script) -> None:
    told = steady.get("/api/project").json()
    assert told["name"] == "mails.csv"
    assert (told["task"], told["classes"], told["target"]) == ("classification", ["spam", "ham"], "kind")
    assert (told["shown"], told["columns"], told["main"], told["size"]) == ("table", ["size", "word"], None, 30)
    assert (told["model"], told["rule"], told["threshold"]) == ("logistic", "ErrorStability", 0.1)
    assert len(told["csrf"]) >= 20


def test_the_next_item_stays_until_it_is_answered(script: Script) -> None:
    first, again = (post(script, "next", person="Ann") for _ in range(2))
    (item,) = first["items"]
    assert first == again
    assert first["left"] == 30
    assert set(item) == {"item", "id", "cells", "image", "until", "why", "check"}
    assert item["id"] == f"mail-{item['item']}"
    others = post(script, "next", person="Bob", n=5)["items"]
    assert len(others) == 5
    assert item["item"] not in {each["item"] for each in others}


def test_asking_for_more_than_there_is(script: Script) -> None:
    taken = [each["item"] for name in ("Ann", "Bob") for each in post(script, "next", person=name, n=20)["items"]]
    assert sorted(taken) == list(range(30))
    assert post(script, "next", person="Cay") == {"items": [], "left": 30}


def test_a_label_is_written_once_however_often_it_is_sent(app: FastAPI, script: Script) -> None:
    sent = {"person": "Ann", "item": 3, "label": "spam", "request": "a"}
    first = post(script, "labels", **sent)
    assert first == {"seq": first["seq"], "item": 3, "repeated": False, "behind": ANY}
    assert first["behind"] in (0, 1)
    assert post(script, "labels", **sent) == first | {"repeated": True, "behind": ANY}
    assert project_of(app).state().n_labelled == 1
    status, sentence = refusal(script, "labels", **sent | {"item": 4})
    assert (status, "used before" in sentence) == (409, True)


def test_skip_correct_and_undo(script: Script) -> None:
    post(script, "labels", person="Ann", item=3, label="spam")
    post(script, "skips", person="Ann", item=4, request="s")
    post(script, "corrections", person="Bob", item=3, label="ham", request="c")
    rows = script.get("/api/labels").json()["rows"]
    assert [(row["item"], row["label"], row["person"], row["corrected"], row["skipped"]) for row in rows] == [
        (3, "ham", "Bob", True, False),
        (4, None, "Ann", False, True),
    ]
    undone = post(script, "undo", person="Ann", request="u")
    assert undone["item"] == 4
    assert post(script, "undo", person="Ann", request="u") == undone | {"repeated": True, "behind": ANY}
    assert [each["item"] for each in post(script, "next", person="Ann")["items"]] == [4]
    assert post(script, "undo", person="Bob")["item"] == 3
    assert refusal(script, "undo", person="Bob") == (409, "there is nothing of Bob to undo")


def test_a_person_is_known_by_the_name_without_spaces_around(app: FastAPI, script: Script) -> None:
    post(script, "labels", person="  Zoë 🐌 ", item=0, label="ham")
    assert list(project_of(app).state().people)[-1] == "Zoë 🐌"


@pytest.mark.parametrize(
    ("path", "body", "status", "words"),
    [
        ("labels", {"item": 3, "label": "eggs"}, 422, "'eggs' is none of the classes; they are spam, ham"),
        ("labels", {"item": 3, "label": 1}, 422, "none of the classes"),
        ("labels", {"item": 30, "label": "spam"}, 404, "there is no item 30; the project has items 0 to 29"),
        ("corrections", {"item": 2**31, "label": "spam"}, 404, "there is no item 2147483648"),
        ("skips", {"item": 30}, 404, "there is no item 30"),
        ("corrections", {"item": 5, "label": "spam"}, 409, "this item has no label to correct"),
        ("labels", {"item": -1, "label": "spam"}, 422, "item must be the number of an item"),
        ("labels", {"item": 2**31 + 1, "label": "spam"}, 422, "not 2147483649"),
        ("labels", {"item": "3", "label": "spam"}, 422, "not '3'"),
        ("labels", {"item": 3.5, "label": "spam"}, 422, "not 3.5"),
        ("labels", {"item": True, "label": "spam"}, 422, "not true"),
        ("labels", {"item": None, "label": "spam"}, 422, "not null"),
        ("labels", {"item": 3}, 422, "label is missing; it must be the name of a class"),
        ("labels", {"item": 3, "label": True}, 422, "label must be the name of a class"),
        ("labels", {"item": 3, "label": ["spam"]}, 422, "not a list"),
        ("labels", {"item": 3, "label": "x" * 1001}, 422, "label must be the name of a class (up to 1000 characters)"),
        ("labels", {"item": 3, "label": "spam", "request": ""}, 422, "request must be 1 to 100 characters"),
        ("labels", {"item": 3, "label": "spam", "request": "x" * 101}, 422, "request must be 1 to 100 characters"),
        ("labels", {"item": 3, "label": "spam", "request": "a\nb"}, 422, "request must be 1 to 100 characters"),
        ("labels", {"item": 3, "label": "spam", "request": 7}, 422, "not 7"),
        (
            "labels",
            {"item": 3, "label": "spam", "colour": 1},
            422,
            "'colour' is not a field of this request; leave it out",
        ),
        ("next", {"n": 0}, 422, "n must be a whole number from 1 to 20, not 0"),
        ("next", {"n": 21}, 422, "not 21"),
        ("next", {"n": "2"}, 422, "not '2'"),
        ("next", {"person": ""}, 422, "person must be a name of 1 to 64 characters"),
        ("next", {"person": " \t "}, 422, "person must be a name of 1 to 64 characters"),
        ("next", {"person": "\u2003"}, 422, "person must be a name of 1 to 64 characters"),
        ("next", {"person": "x" * 65}, 422, "person must be a name of 1 to 64 characters"),
        ("next", {"person": "a\u0000b"}, 422, "not 'a\\x00b'"),
        ("next", {"person": "\ud800"}, 422, "not '\\ud800'"),
        ("next", {"person": "\x85"}, 422, "person must be a name"),
        ("next", {"person": 1}, 422, "not 1"),
        ("undo", {"person": {}}, 422, "not a dict"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_sentence(
    steady: Script, path: str, body: dict[str, Any], status: int, words: str
) -> None:
    answered, sentence = refusal(steady, path, **{"person": "Ann"} | body)
    assert (answered, words in sentence) == (status, True), sentence
    assert steady.get("/api/status").json()["n_labelled"] == 0


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        (b'{"person": "a", "item": 1, "label": NaN}', 422, "label must be"),
        (b'{"person": "a", "item": 1, "label": -Infinity}', 422, "label must be"),
        (b'{"person": "a", "item": 1, "label": 1e999}', 422, "label must be"),
        (b'{"person": "a", "item": NaN, "label": 1}', 422, "item must be"),
        (b'{"person": "a", "item": 1e308, "label": 1}', 422, "item must be"),
        (b'{"person": "a", "item": 1, "label": "\\ud800"}', 422, "label must be"),
        (b'{"person": "\\udc00", "item": 1, "label": 1}', 422, "person must be"),
        (b'{"\\ud800": 1, "person": "a", "item": 1, "label": 1}', 422, "JSON object"),
        (b'{"person": "a", "item": 1, "label": ' + b"9" * 1000 + b"}", 422, "label must be"),
        (b'{"person": "a", "item": 1, "label": ' + b"9" * 5000 + b"}", 400, "JSON in UTF-8"),
        (b"[" * 50_000, 400, "not nested too deeply"),
        (b'{"person": "a", "item": 1, "label": ' + b"[" * 500 + b"]" * 500 + b"}", 422, "not a list"),
        (b"\xff\xfe{", 400, "JSON in UTF-8"),
        (b"{", 422, "the body must be JSON, but"),
        (b"", 422, "the body must be a JSON object"),
        (b"null", 422, "the body must be a JSON object"),
        (b"[]", 422, "the body must be a JSON object"),
        (b'"text"', 422, "the body must be a JSON object"),
    ],
)
def test_bodies_that_are_no_json_or_hold_no_numbers(steady: Script, body: bytes, status: int, words: str) -> None:
    answer = steady.post("/api/labels", content=body, headers={"Content-Type": "application/json"})
    assert (answer.status_code, words in answer.json()["detail"]) == (status, True), answer.text


def test_numbers_as_labels(tmp_path: Path) -> None:
    changes: dict[str, Any] = {"task": "regression", "classes": (), "model": "gp", "target": "price"}
    with running_app(make_project(tmp_path / "prices", **changes)) as app:
        script = script_of(app)
        for item, label in enumerate([3, -2.5, "1e3", 0]):
            post(script, "labels", person="Ann", item=item, label=label)
        assert [row["label"] for row in script.get("/api/labels").json()["rows"]] == [0.0, 1000.0, -2.5, 3.0]
        for wrong in ("3,5", "nan", "inf", "", "1_000"):
            assert refusal(script, "labels", person="Ann", item=9, label=wrong)[0] == 422
        assert script.get("/api/status").json()["classes"] == []
        assert script.get("/api/status").json()["error"]["unit"] == "root mean squared"


def test_a_screening_says_what_is_found(tmp_path: Path) -> None:
    screening: dict[str, Any] = {"positive": "spam", "recall": 0.5, "random_share": 0.0}
    rule = RecallTest(0.5, confidence=0.5).state_dict()
    with running_app(make_project(tmp_path / "spam", rule=rule, **screening)) as app:
        script = script_of(app)
        for item in range(20):
            post(script, "labels", person="Ann", item=item, label="spam" if item % 5 == 0 else "ham")
        assert background_of(app).wait(20, 60)
        told = script.get("/api/status").json()
    decision = told["decision"]
    assert decision["screening"]["found"] == 4
    assert decision["screening"]["positive"] == "spam"
    assert "20 of 30 items are screened" in " ".join(decision["sentences"])
    assert decision["error_figure"].startswith("4 of ")


def test_a_whole_number_may_have_a_point(script: Script) -> None:
    answer = script.post(
        "/api/skips", content=b'{"person": "Ann", "item": 7.0}', headers={"Content-Type": "application/json"}
    )
    assert answer.json()["item"] == 7


@pytest.mark.parametrize("said", [True, False])
def test_a_body_may_have_64_kib(script: Script, said: bool) -> None:
    def sent(size: int) -> Any:
        body = b'{"person": "Ann"}'.ljust(size)
        return body if said else iter([body[:1000], body[1000:]])

    headers = {"Content-Type": "application/json"}
    assert script.post("/api/next", content=sent(LARGEST_BODY), headers=headers).status_code == 200
    answer = script.post("/api/next", content=sent(LARGEST_BODY + 1), headers=headers)
    assert (answer.status_code, "at most 65536 bytes" in answer.json()["detail"]) == (413, True)
    lying = script.post("/api/next", content=b"{}", headers=headers | {"Content-Length": "many"})
    assert lying.status_code == 413


@pytest.mark.parametrize("path", ["/api/items/-1", "/api/items/x", "/api/items/2147483649", "/api/items/1e3"])
def test_numbers_of_items_in_addresses(steady: Script, path: str) -> None:
    for each in (path, f"{path}/image"):
        answer = steady.get(each)
        assert (answer.status_code, "item must be the number" in answer.json()["detail"]) == (422, True)


def test_items_as_they_are_but_not_endless(steady: Script) -> None:
    values = [steady.get(f"/api/items/{k}").json()["cells"][1]["value"] for k in range(3)]
    assert values == list(ODD[:3])
    long = steady.get("/api/items/3").json()
    assert (long["cells"][1]["cut"], len(long["cells"][1]["value"]), long["image"]) == (True, 20_000, None)
    assert not long["cells"][0]["cut"]
    assert steady.get("/api/items/30").status_code == 404
    assert steady.get("/api/items/3/image").json()["detail"] == "item 3 has no image"


def test_the_table_of_labels(script: Script) -> None:
    for item in range(12):
        post(script, "labels", person="Ann" if item % 2 else "Bob", item=item, label=kind_of(item))
    post(script, "labels", person="Cay", item=5, label="ham")
    post(script, "skips", person="Cay", item=20)
    post(script, "corrections", person="Cay", item=6, label="spam")

    def rows(**asked: Any) -> tuple[int, list[int]]:
        told = script.get("/api/labels", params=asked).json()
        return told["total"], [row["item"] for row in told["rows"]]

    total, items = rows()
    assert (total, len(items), set(items[:2])) == (13, 13, {6, 20})
    assert rows(limit=3, offset=12) == (13, items[12:])
    assert rows(offset=2**31) == (13, [])
    assert rows(only="skipped") == (1, [20])
    assert rows(only="corrected") == (1, [6])
    assert rows(only="disagreed") == (1, [5])
    assert rows(search="WORD 7") == (1, [7])
    assert rows(search="mail-11") == (1, [11])
    assert rows(search="cay") == (2, items[:2])
    assert rows(search="<SCRIPT>") == (1, [1])
    assert rows(search="nothing like it") == (0, [])
    row = script.get("/api/labels", params={"only": "disagreed"}).json()["rows"][0]
    assert [(each["person"], each["label"]) for each in row["opinions"]] == [("Ann", "spam"), ("Cay", "ham")]
    assert row["majority"] is None
    people = {each["name"]: each for each in script.get("/api/people").json()["people"]}
    assert (people["Cay"]["compared"], people["Cay"]["same"], people["Cay"]["by_chance"]) == (1, 0, False)
    assert people["Ann"]["sentences"][0].startswith(f"{people['Ann']['answers']} answers")
    assert row["at"].endswith("Z")
    long = script.get("/api/labels", params={"search": "mail-3"}).json()["rows"][0]
    assert len(long["summary"]) == 200


@pytest.mark.parametrize(
    ("asked", "name"),
    [
        ("limit=0", "limit"),
        ("limit=201", "limit"),
        ("offset=-1", "offset"),
        ("only=none", "only"),
        ("limit=x", "limit"),
    ],
)
def test_parts_of_the_table_that_there_cannot_be(steady: Script, asked: str, name: str) -> None:
    answer = steady.get(f"/api/labels?{asked}")
    assert (answer.status_code, answer.json()["detail"].startswith(f"{name} must be ")) == (422, True)
    assert steady.get("/api/labels", params={"search": "x" * 201}).status_code == 422


def test_the_status_follows_the_labels(app: FastAPI, script: Script) -> None:
    before = script.get("/api/status").json()
    assert (before["n_labelled"], before["left"], before["curve"], before["advice"]) == (0, 30, [], None)
    label_some(script, 14)
    assert background_of(app).wait(14, 60)
    told = script.get("/api/status").json()
    assert (told["n_labelled"], told["learned"], told["behind"], told["left"]) == (14, 14, 0, 16)
    assert sum(each["count"] for each in told["classes"]) == 14
    assert [each["labels"] for each in told["people"] if each["name"] == "Ann"] == [14]
    assert told["verdict"]["rule"] == "ErrorStability"
    assert told["verdict"]["sentence"]
    assert told["words"]
    assert told["curve"]
    assert told["problem"] == ""


def test_what_is_no_number_becomes_null(tmp_path: Path) -> None:
    nan, inf = float("nan"), float("inf")
    verdict = Verdict(
        stop=True,
        value=nan,
        threshold=inf,
        ready=True,
        reason="half of a letter, \ud800, is in the reason",
        rule="ErrorStability",
        n_labelled=3,
        certificate=Certificate("It is sure.", "Nothing."),
    )
    learning_status = LearningStatus(
        n_answers=3,
        n_labelled=3,
        verdict=verdict,
        curve=(Point(2, 0.5, None), Point(3, 0.25, inf)),
        forecast=Forecast(labels=4, low=2, high=9),
        errors=(ErrorEstimate(3, 0.1, 0.0, 0.4),),
        problem="",
    )
    with make_project(tmp_path / "project") as project:
        background = BackgroundLearner(project)
        background.learning_status = learning_status
        told = script_of(create_app(project, background, granted_access("127.0.0.1"))).get("/api/status").json()
    assert (told["verdict"]["value"], told["verdict"]["threshold"], told["verdict"]["stop"]) == (None, None, True)
    assert told["verdict"]["certificate"] == {"statement": "It is sure.", "assumption": "Nothing."}
    assert told["curve"] == [[2, 0.5, None], [3, 0.25, None]]
    assert told["error"]["estimates"] == [[3, 0.1, 0.0, 0.4]]
    assert told["forecast"]["high"] == 9


def test_the_best_item_is_waited_for_by_a_person_who_is_alone(script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[int] = []

    def wait(_: BackgroundLearner, calls: int, timeout: float) -> bool:
        waited.append(calls)
        return timeout > 0.0

    monkeypatch.setattr(BackgroundLearner, "wait", wait)
    post(script, "labels", person="Ann", item=3, label="spam")
    post(script, "skips", person="Ann", item=4)
    post(script, "next", person="Ann")
    assert waited == [2]
    post(script, "next", person="Bob")
    post(script, "next", person="Ann")
    assert waited == [2]


def test_labels_to_take_home(script: Script) -> None:
    for item in range(3):
        post(script, "labels", person="Ann", item=item, label=kind_of(item))
    answer = script.get("/api/export/labels")
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert answer.headers["content-disposition"] == 'attachment; filename="labels.csv"'
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert [row["kind"] for row in rows] == ["ham", "spam", "ham"]
    assert rows[0]["word"] == "'=1+1"
    lines = script.get("/api/export/labels", params={"format": "jsonl"}).text.splitlines()
    assert json.loads(lines[0])["word"] == "=1+1"
    parquet = script.get("/api/export/labels", params={"format": "parquet"})
    assert (parquet.content[:4], parquet.headers["content-disposition"]) == (
        b"PAR1",
        'attachment; filename="labels.parquet"',
    )
    wrong = script.get("/api/export/labels", params={"format": "exe"})
    assert (wrong.status_code, wrong.json()["detail"]) == (422, "format must be csv, jsonl or parquet, not 'exe'")


def test_predictions_to_take_home(app: FastAPI, script: Script) -> None:
    early = script.get("/api/export/predictions")
    assert early.status_code == 409
    assert early.json()["detail"]
    label_some(script, 12)
    assert background_of(app).wait(12, 60)
    answer = script.get("/api/export/predictions")
    assert answer.headers["content-disposition"] == 'attachment; filename="predictions.csv"'
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert len(rows) == 18
    assert {row["kind"] for row in rows} <= {"spam", "ham"}
    assert all(0.0 <= float(row["uncertainty"]) <= 1.0 for row in rows)


def test_parquet_without_pyarrow(steady: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    answer = steady.get("/api/export/labels", params={"format": "parquet"})
    assert (answer.status_code, "-m pip install 'pyarrow>=" in answer.json()["detail"]) == (501, True)


def test_the_report_is_a_page_that_loads_nothing(script: Script) -> None:
    label_some(script, 6)
    answer = script.get("/api/report")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["content-security-policy"] == REPORT_POLICY
    assert "content-disposition" not in answer.headers
    assert "<!DOCTYPE html>" in answer.text
    assert "<script" not in answer.text


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (StorageFullError("the disk is full"), 507),
        (StorageError("somebody else is writing"), 503),
        (ConflictError("it has a label"), 409),
        (InvalidValueError("n is wrong"), 422),
        (MissingExtraError("pyarrow", "parquet", "Parquet"), 501),
        (SufficeError("it cannot be done"), 503),
    ],
)
def test_errors_of_the_project_become_answers(
    steady: Script, monkeypatch: pytest.MonkeyPatch, error: SufficeError, status: int
) -> None:
    def failing(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(LabelWriter, "label", failing)
    assert refusal(steady, "labels", person="Ann", item=1, label="spam") == (status, str(error))
    assert status_of(error) == status


def test_a_damaged_project_is_an_answer_too(script: Script, tmp_path: Path) -> None:
    folder = tmp_path / "project"
    for file in folder.iterdir():
        # SQLite maps its -shm file into memory: truncating it would end the process with SIGBUS.
        if not file.name.endswith("-shm"):
            file.write_bytes(b"no database")
    answer = script.post("/api/next", json={"person": "Ann"})
    assert answer.status_code == 503
    assert "project" in answer.json()["detail"]


@pytest.mark.parametrize("method", ["get", "put", "delete", "patch", "options"])
def test_what_can_be_done_where(steady: Script, method: str) -> None:
    answer = getattr(steady, method)("/api/next")
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
    assert answer.json()["detail"] == f"{method.upper()} is not possible here; use POST"
    both = steady.delete("/api/labels")
    assert (both.status_code, both.headers["allow"]) == (405, "GET, POST")


@pytest.mark.parametrize("path", ["/nothing", "/api", "/api/", "/api/project/", "/docs", "/redoc", "/openapi.json"])
def test_what_is_not_there(steady: Script, path: str) -> None:
    answer = steady.get(path)
    assert (answer.status_code, answer.json()["detail"].startswith(f"there is nothing at {path};")) == (404, True)


def test_the_page_and_its_files(steady: Script) -> None:
    page = steady.get("/")
    assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    names = [name for name in assets() if not name.endswith(".html")]
    assert any(name.endswith(".js") for name in names)
    for name in names:
        answer = steady.get(f"/static/{name}")
        assert (answer.status_code, answer.headers["cache-control"]) == (200, "no-cache")
        again = steady.get(f"/static/{name}", headers={"If-None-Match": answer.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize(
    "path",
    [
        "/static/",
        "/static/../app.py",
        "/static/%2e%2e/app.py",
        "/static/..%2fapp.py",
        "/static/%2e%2e%2f%2e%2e%2f__init__.py",
        "/static/..\\app.py",
        "/static//etc/passwd",
        "/static/%2fetc%2fpasswd",
        "/static/index.html",
        "/static/api.js%00",
        "/static/.",
        "/static/sub/api.js",
        "//etc/passwd",
    ],
)
def test_no_other_file_is_served(steady: Script, path: str) -> None:
    answer = steady.get(f"http://127.0.0.1:8000{path}")
    assert (answer.status_code, list(answer.json())) == (404, ["detail"])


def test_images_of_the_project_and_no_others(tmp_path: Path) -> None:
    root, outside = tmp_path / "images", tmp_path / "images-private"
    (root / "sub").mkdir(parents=True)
    outside.mkdir()
    (root / "a.png").write_bytes(b"\x89PNG a")
    (root / "sub" / "b.JPG").write_bytes(b"jpeg b")
    (root / "bad.svg").write_text("<svg onload='alert(1)'/>")
    (root / "page.html").write_text("<script>alert(1)</script>")
    (root / "folder.png").mkdir()
    (outside / "secret.png").write_bytes(b"secret")
    (root / "link.png").symlink_to(outside / "secret.png")
    (root / "inner.png").symlink_to(root / "a.png")
    (root / "odd.png").symlink_to(root / "bad.svg")
    (root / "loop.png").symlink_to(root / "loop.png")
    os.mkfifo(root / "pipe.png")
    paths = [
        "a.png",
        "sub/b.JPG",
        "inner.png",
        "../images-private/secret.png",
        str(outside / "secret.png"),
        "link.png",
        "bad.svg",
        "odd.png",
        "page.html",
        "folder.png",
        "pipe.png",
        "loop.png",
        "gone.png",
        "a.png\u0001",
        "x" * 5000 + ".png",
        "",
    ]
    with running_app(make_image_project(tmp_path / "project", root, dict(enumerate(paths)))) as app:
        script = script_of(app)
        answers = [script.get(f"/api/items/{item}/image") for item in range(len(paths))]
        assert [answer.status_code for answer in answers] == [200] * 3 + [404] * (len(paths) - 3)
        assert [answer.headers["content-type"] for answer in answers[:3]] == ["image/png", "image/jpeg", "image/png"]
        assert answers[2].content == b"\x89PNG a"
        assert all(b"secret" not in answer.content.replace(b"secret.png", b"") for answer in answers)
        assert "outside the folder" in answers[3].json()["detail"]
        assert "not there any more" in answers[12].json()["detail"]
        assert script.get("/api/items/0").json()["image"] == "/api/items/0/image"
        assert script.get(f"/api/items/{len(paths) - 1}").json()["image"] is None


def test_an_image_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "images"
    root.mkdir()
    (root / "a.png").write_bytes(b"a")

    def denied(_: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    with running_app(make_image_project(tmp_path / "project", root, {0: "a.png", 1: "a.png"})) as app:
        monkeypatch.setattr(Path, "read_bytes", denied)
        answer = script_of(app).get("/api/items/0/image")
    assert (answer.status_code, "Permission denied" in answer.json()["detail"]) == (404, True)


def test_a_sentence_on_a_page_is_escaped() -> None:
    page = problem_page(401, "<script>alert(1)</script> is no token")
    assert b"<script>" not in page.body
    assert b"&lt;script&gt;" in page.body


def test_many_people_at_once_get_different_items(app: FastAPI) -> None:
    from concurrent.futures import ThreadPoolExecutor

    def label(name: str) -> list[int]:
        return label_some(script_of(app), 3, name)

    names = [f"person {k}" for k in range(8)]
    with ThreadPoolExecutor(8) as pool:
        done = [item for items in pool.map(label, names) for item in items]
    assert len(done) == len(set(done)) == 24
    assert project_of(app).state().n_labelled == 24


def test_the_same_labels_come_out_as_went_in(app: FastAPI, script: Script) -> None:
    rng = np.random.default_rng(0)
    items = rng.permutation(30)[:20].tolist()
    for item in items:
        post(script, "labels", person="Ann", item=item, label=kind_of(item))
    with project_of(app).lock:
        calls = [(call.item, call.label) for call in project_of(app).state().answers()]
    assert calls == [(item, kind_of(item)) for item in items]


def test_classes_are_changed_for_everybody(app: FastAPI, script: Script) -> None:
    post(script, "labels", person="Ann", item=0, label="spam")
    before = script.get("/api/project").json()
    change = {"person": "Ann", "classes": ["wanted", "unwanted", "other"], "before": ["spam", "ham"]}
    moved = {"spam": "unwanted", "ham": "wanted"}
    receipt = post(script, "classes", **change, moved=moved, request="one")
    assert not receipt["repeated"]
    assert post(script, "classes", **change, moved=moved, request="one")["repeated"]
    after = script.get("/api/project").json()
    assert after["classes"] == ["wanted", "unwanted", "other"]
    assert after["revision"] == receipt["seq"] > before["revision"] == 0
    assert script.get("/api/status").json()["revision"] == receipt["seq"]
    assert script.get("/api/labels").json()["rows"][0]["label"] == "unwanted"
    late = script.post(
        "/api/classes", json={"person": "Bob", "classes": ["spam", "ham", "x"], "before": ["spam", "ham"]}
    )
    assert late.status_code == 409
    assert "the classes were changed meanwhile and are now wanted, unwanted, other" in late.json()["detail"]
    old = script.post("/api/labels", json={"person": "Bob", "item": 1, "label": "spam"})
    assert old.status_code == 422
    assert "is none of the classes; they are wanted, unwanted, other" in old.json()["detail"]
    again = {"person": "Bob", "before": after["classes"]}
    for classes, words in ((["a"], "2 to 200 classes"), (["a", "a"], "is there twice"), ([" ", "b"], "1 to 200 char")):
        answer = script.post("/api/classes", json={**again, "classes": classes})
        assert (answer.status_code, words in answer.json()["detail"]) == (422, True)
    assert background_of(app).wait_settled(30.0)


def test_whoever_is_unsure_says_why(script: Script) -> None:
    assert script.get("/api/export/skipped").status_code == 409
    post(script, "unsure", person="Ann", item=7, reason="looks like both")
    post(script, "skips", person="Ann", item=8, reason="empty")
    post(script, "skips", person="Ann", item=9)
    rows = script.get("/api/labels?only=unsure").json()["rows"]
    assert [(row["item"], row["person"], row["unsure"], row["reason"]) for row in rows] == [
        (7, "Ann", True, "looks like both"),
    ]
    assert script.get("/api/labels?only=skipped&search=empty").json()["total"] == 1
    assert script.get("/api/labels?only=skipped").json()["total"] == 3
    assert script.get("/api/status").json()["n_unsure"] == 1
    assert "looks like both" in script.get("/api/export/skipped").text
    for path in ("unsure", "skips"):
        long = script.post(f"/api/{path}", json={"person": "Ann", "item": 1, "reason": "x" * 501})
        assert (long.status_code, "reason" in long.json()["detail"]) == (422, True)


def test_settings_are_changed_for_everybody(app: FastAPI, script: Script) -> None:
    before = script.get("/api/settings").json()
    assert (before["label_cost"], before["overlap"], before["history"], before["guidelines"]) == (None, 0.0, [], "")
    post(script, "settings", person="Ann", guidelines="# Look\n\n<b>twice</b>", descriptions={"spam": "unwanted"})
    post(script, "settings", person="Bob", name="Mails", overlap=0.5, at_most=0.1)
    found = script.get("/api/settings").json()
    assert (found["name"], found["overlap"], found["at_most"]) == ("Mails", 0.5, 0.1)
    assert [(each["person"], each["words"]) for each in found["history"]] == [
        (
            "Bob",
            "changed the name from “mails.csv” to “Mails”; the target error from none to 0.1; "
            "the overlap from 0 to 0.5",
        ),
        ("Ann", "changed the guidelines; descriptions of classes"),
    ]
    project = script.get("/api/project").json()
    assert project["guidelines_html"] == "<h3>Look</h3>\n<p>&lt;b&gt;twice&lt;/b&gt;</p>\n"
    assert project["descriptions"] == {"spam": "unwanted"}
    assert project["name"] == "Mails"
    post(script, "settings", person="Ann", at_most=None)
    assert script.get("/api/settings").json()["at_most"] is None
    for body, status_code, words in (
        ({"overlap": 2.0}, 422, "overlap must be a number from 0 to 1"),
        ({"label_cost": 2.0}, 422, "the rule ErrorStability weighs no costs"),
        ({"name": "Mails"}, 409, "nothing changes"),
        ({}, 409, "nothing changes"),
        ({"seed": 1}, 422, "seed"),
    ):
        answer = script.post("/api/settings", json={"person": "Ann", **body})
        assert (answer.status_code, words in answer.json()["detail"]) == (status_code, True), answer.json()
    assert background_of(app).wait_settled(30.0)
