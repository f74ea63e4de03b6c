"""The final file and its statement through the API."""

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi import FastAPI

from suffice import LabelWorth
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


def reach(app: FastAPI, script: Script) -> None:
    """Label and check until the goal is reached."""
    label(app, script, 30)
    assert post(script, "checks").status_code == 200
    while status_of(script)["goal"]["reached"] is None:
        label(app, script, 1)


def test_before_the_goal_is_reached(app: FastAPI, script: Script) -> None:
    label(app, script, 10)
    for path in ("/api/final", "/api/final/statement"):
        answer = script.get(path)
        assert answer.status_code == 409
        assert answer.json()["detail"] == status_of(script)["goal"]["missing"]


def test_the_final_file_and_its_statement(app: FastAPI, script: Script) -> None:
    reach(app, script)
    answer = script.get("/api/final")
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert answer.headers["content-disposition"] == 'attachment; filename="final.csv"'
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert [row["id"] for row in rows] == [f"mail-{k}" for k in range(160)]
    assert rows[0]["word"] == "'=1+1"
    assert script.get("/api/final?bom=true").content == b"\xef\xbb\xbf" + answer.content
    sheet = script.get("/api/final?format=xlsx")
    assert sheet.headers["content-disposition"] == 'attachment; filename="final.xlsx"'
    assert sheet.headers["content-type"].endswith("spreadsheetml.sheet")
    lines = script.get("/api/final?format=jsonl").text.splitlines()
    assert [json.loads(line)["source"] for line in lines] == [row["source"] for row in rows]
    assert script.get("/api/final?format=parquet").content[:4] == b"PAR1"
    statement = script.get("/api/final/statement")
    assert statement.headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in statement.headers["content-security-policy"]
    assert "At most 16 of all 160 labels" in statement.text
    # The file stays the same while people go on labelling, but for their labels.
    before = {row["id"]: row["label"] for row in rows}
    label(app, script, 3)
    after = list(csv.DictReader(io.StringIO(script.get("/api/final").text)))
    assert {row["id"]: row["label"] for row in after if row["source"] == "model"}.items() <= before.items()


def test_formats_that_are_not_known(script: Script) -> None:
    wrong = script.get("/api/final", params={"format": "exe"})
    assert (wrong.status_code, wrong.json()["detail"]) == (422, "format must be csv, xlsx, jsonl or parquet, not 'exe'")


def test_all_rows_before_the_goal_is_reached(app: FastAPI, script: Script) -> None:
    early = list(csv.DictReader(io.StringIO(script.get("/api/export/rows").text)))
    assert [row["label"] for row in early] == [""] * 160
    label(app, script, 30)
    answer = script.get("/api/export/rows?bom=true")
    assert answer.headers["content-disposition"] == 'attachment; filename="all-rows.csv"'
    rows = list(csv.DictReader(io.StringIO(answer.content.decode("utf-8-sig"))))
    assert sorted(row["source"] for row in rows) == ["model"] * 130 + ["person"] * 30
    assert script.get("/api/export/rows?format=xlsx").content[:2] == b"PK"
    assert script.get("/api/export/rows?format=exe").status_code == 422
