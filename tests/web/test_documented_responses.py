"""Responses and files that the documentation shows: their fields exist, have these types, and are explained."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI

from suffice import LabelWorth
from tests.structure import ROOT
from tests.web.web_projects import Script, make_project, running_app, script_of

pytestmark = pytest.mark.slow

HTTP = (ROOT / "docs" / "http-examples.md").read_text(encoding="utf-8")
GUARANTEE = (ROOT / "docs" / "guarantee-project.md").read_text(encoding="utf-8")
CALLS = ("POST /api/next", "POST /api/labels", "GET /api/status", "GET /api/checks/offers", "POST /api/checks")


def section(text: str, title: str) -> str:
    """The text below a heading, up to the next one."""
    found = re.search(rf"^#+ {re.escape(title)}\n(.*?)(?=^##|\Z)", text, flags=re.DOTALL | re.MULTILINE)
    assert found is not None, title
    return found[1]


def examples(title: str) -> list[Any]:
    return [json.loads(each) for each in re.findall(r"^```json\n(.*?)^```", section(HTTP, title), re.DOTALL | re.M)]


def names_in(text: str) -> set[str]:
    """Last parts of the names that a text has in backticks, outside of its examples."""
    words = re.findall(r"`([\w.]+)`", re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE))
    return {word.rpartition(".")[2] for word in words}


def fields_of(value: Any) -> set[str]:
    """The names of all fields in a JSON value."""
    if isinstance(value, dict):
        return set(value).union(*map(fields_of, value.values()))
    return set().union(*map(fields_of, value)) if isinstance(value, list) else set()


def require_same_fields(shown: Any, real: Any, path: str = "") -> None:
    """Every field of an example is in the real value, with a value of the same type."""
    if isinstance(shown, dict):
        assert isinstance(real, dict), path
        for name, value in shown.items():
            assert name in real, f"{path}.{name}"
            require_same_fields(value, real[name], f"{path}.{name}")
    elif isinstance(shown, list):
        assert isinstance(real, list), path
        for value in shown[:1]:
            assert real, f"{path} is empty"
            require_same_fields(value, real[0], f"{path}[0]")
    elif shown is not None and real is not None:
        assert kind(shown) == kind(real), (path, shown, real)


def kind(value: Any) -> str:
    """The type of a plain JSON value; whole numbers are numbers."""
    return "number" if isinstance(value, int | float) and not isinstance(value, bool) else type(value).__name__


def answered(script: Script, app: FastAPI, n: int, truth: Callable[[FastAPI, int], Any]) -> tuple[Any, Any]:
    """The last of so many items, and the receipt of its label."""
    for _ in range(n):
        asked = script.post("/api/next", json={"person": "ann", "n": 1}).json()
        item = asked["items"][0]["item"]
        sent = {"person": "ann", "item": item, "label": truth(app, item)}
        receipt = script.post("/api/labels", json=sent).json()
    assert app.state.context.background.wait_settled(60.0)
    return asked, receipt


def spam_or_ham(app: FastAPI, item: int) -> str:
    return "spam" if app.state.context.project.X[item, 0] > 0.0 else "ham"


def number(app: FastAPI, item: int) -> float:
    return float(app.state.context.project.X[item].sum())


def goal_responses(folder: Path) -> list[Any]:
    """The status of a project with a goal about all labels: before its check, and when the goal is reached."""
    project = make_project(folder / "goal", 120, rule=LabelWorth().state_dict(), at_most=0.2, of="all")
    with running_app(project) as app:
        script = script_of(app)
        answered(script, app, 30, spam_or_ham)
        planned = script.get("/api/status").json()
        assert script.post("/api/checks", json={"person": "ann"}).status_code == 200
        while (told := script.get("/api/status").json())["goal"]["reached"] is None:
            answered(script, app, 1, spam_or_ham)
        return [planned, told]


@pytest.fixture(scope="module")
def responses(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, list[Any]]]:
    """Responses of a running application, by the headings of the documentation."""
    folder = tmp_path_factory.mktemp("documented")
    project = make_project(folder / "project", 300, rule=LabelWorth().state_dict(), at_most=0.3)
    with running_app(project) as app:
        script = script_of(app)
        asked, receipt = answered(script, app, 30, spam_or_ham)
        status = script.get("/api/status").json()
        offers = script.get("/api/checks/offers").json()
        started = script.post("/api/checks", json={"person": "ann", "size": 56, "request": "c1"}).json()
        checked = script.get("/api/status").json()
        assert script.get("/api/export/guarantee").status_code == 409
        answered(script, app, 56, spam_or_ham)
        proven = script.get("/api/status").json()
        goal = goal_responses(folder)
        yield {
            "`POST /api/next`": [asked],
            "`POST /api/labels`": [receipt],
            "`GET /api/status`": [status],
            "`GET /api/checks/offers`": [offers],
            "`POST /api/checks`": [started, checked],
            "The goal": goal,
            "The guarantee": [proven, script.get("/api/export/guarantee").json()],
        }


@pytest.mark.parametrize("title", [*(f"`{call}`" for call in CALLS), "The goal", "The guarantee"])
def test_fields_of_the_example_responses_exist_and_are_explained(title: str, responses: dict[str, list[Any]]) -> None:
    shown, real = examples(title), responses[title]
    assert shown
    for example, response in zip(shown, real, strict=False):
        require_same_fields(example, response)
    if title == "The guarantee":
        # The file has the fields of the status too.
        require_same_fields(dict.fromkeys(shown[0]["guarantee"]), real[1])
    explained = names_in(section(HTTP, title)) | (names_in(FIELDS) if title == "The guarantee" else set())
    assert fields_of(shown) - explained == set()


FIELDS = section(GUARANTEE, "The fields of guarantee.json")
ROWS = {
    name: row
    for names, row in re.findall(r"^\| (`[^|]*) \| (.*) \|$", FIELDS, flags=re.MULTILINE)
    for name in re.findall(r"`(\w+)`", names)
}
CHECKS: dict[str, dict[str, Any]] = {
    "error": {"size": 5},
    "recall": {"size": 10, "recall_of": "spam"},
    "precision": {"size": 5, "precision_of": "spam"},
    "within": {"size": 5, "tolerance": 0.5},
    "tolerance": {"size": 15, "share": 0.5},
}


def exported(
    folder: Path, quantities: Sequence[str], truth: Callable[[FastAPI, int], Any], **changes: Any
) -> list[Any]:
    """The files about guarantees of some quantities, checked one after the other in a new project."""
    found: list[dict[str, Any]] = []
    with running_app(make_project(folder, 200, rule=LabelWorth().state_dict(), **changes)) as app:
        script = script_of(app)
        answered(script, app, 15, truth)
        for quantity in quantities:
            started = script.post("/api/checks", json={"person": "ann", **CHECKS[quantity]})
            assert started.status_code == 200, started.text
            answered(script, app, CHECKS[quantity]["size"], truth)
            found.append(script.get("/api/export/guarantee").json())
    assert [each["quantity"] for each in found] == list(quantities)
    return found


def test_every_field_of_the_file_of_a_guarantee_is_documented(tmp_path: Path) -> None:
    files = exported(tmp_path / "classes", ("error", "recall", "precision"), spam_or_ham)
    numeric: dict[str, Any] = {"task": "regression", "classes": (), "model": "gp"}
    files += exported(tmp_path / "numbers", ("within", "tolerance"), number, **numeric)
    for found in files:
        for name, value in found.items():
            assert name in ROWS, f"{name} of {found['quantity']}"
            assert fields_of(value) - names_in(ROWS[name]) - {name} == set(), name
        at_most = found["wrong_at_most"] - found["wrong"] - found["unlabelable"]
        if found["quantity"] in ("error", "within"):
            assert found["value"] == pytest.approx(at_most / found["remaining"])
        place = found["check"]
        assert found["alpha"] == pytest.approx((1.0 - found["confidence"]) / (place * (place + 1)))
    assert set().union(*files) == ROWS.keys(), "the documentation names fields that no file has"
