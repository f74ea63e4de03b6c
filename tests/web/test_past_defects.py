"""Past defects of the server: cookies of other programs, files of an outdated model, huge images."""

import csv
import io
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI

from suffice.project import background_learner as background_module
from suffice.project.background_learner import BackgroundLearner
from suffice.project.labelling_project import Project
from suffice.project.project_learner import ProjectLearner
from suffice.report.project_report import report_page
from suffice.web import routes
from suffice.web.access import granted_access
from tests.web.web_projects import TOKEN, Script, make_image_project, make_project, running_app, script_of

LONG = 60.0
OTHERS = ['prefs={"dark":true}', "a[]=1", "flag", "x=hello world", "b=(c)", 'q="open', "=", "é=1", "n=1; n=2"]


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FastAPI]:
    folder = tmp_path_factory.mktemp("cookies")
    with running_app(make_project(folder / "project"), granted_access("0.0.0.0", TOKEN)) as app:
        yield app


@pytest.mark.one_in(9)
@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("order", ["{other}; {ours}", "{ours}; {other}", "{other}; {ours}; {other}"])
def test_cookies_of_other_programs_lock_nobody_out(guarded: FastAPI, other: str, order: str) -> None:
    access = granted_access("0.0.0.0", TOKEN)
    ours = f"{access.cookie_name}={access.cookie_value}"
    sent = order.format(other=other, ours=ours).encode()
    script = script_of(guarded)
    assert script.get("/api/project", headers=[(b"cookie", sent)]).status_code == 200
    # Beside a wrong one of ours they open nothing.
    wrong = order.format(other=other, ours=f"{ours}x").encode()
    assert script.get("/api/project", headers=[(b"cookie", wrong)]).status_code == 401
    assert script.get("/api/project", headers=[(b"cookie", other.encode())]).status_code == 401


class Held:
    """A background learner that does not look at the journal until it may, or until somebody waits for all of it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.go = threading.Event()
        self.go.set()
        self.until_waited_for = True
        look, wait_settled, held = BackgroundLearner._pending_work, BackgroundLearner.wait_settled, self

        def gated(background: BackgroundLearner) -> Any:
            assert held.go.wait(LONG)
            return look(background)

        def waited(background: BackgroundLearner, timeout: float) -> bool:
            if held.until_waited_for:
                held.go.set()
            return wait_settled(background, timeout)

        monkeypatch.setattr(BackgroundLearner, "_pending_work", gated)
        monkeypatch.setattr(BackgroundLearner, "wait_settled", waited)
        monkeypatch.setattr(background_module, "_POLL", 0.02)


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[Held]:
    held = Held(monkeypatch)
    yield held
    held.go.set()


@pytest.fixture
def app(tmp_path: Path, held: Held) -> Iterator[FastAPI]:
    """A server whose model has learned twelve labels."""
    with running_app(make_project(tmp_path / "project")) as app:
        try:
            for item in range(12):
                project_of(app).label(item, "spam" if item % 2 else "ham", person="Ann")
            assert background_of(app).wait_settled(LONG)
            yield app
        finally:
            held.go.set()


def project_of(app: FastAPI) -> Project:
    project = app.state.context.project
    assert isinstance(project, Project)
    return project


def background_of(app: FastAPI) -> BackgroundLearner:
    background = app.state.context.background
    assert isinstance(background, BackgroundLearner)
    return background


def correct(script: Script) -> None:
    body = {"person": "Bob", "item": 3, "label": "ham", "request": "mend"}
    assert script.post("/api/corrections", json=body).status_code == 200


def learned(project: Project) -> ProjectLearner:
    project_learner = ProjectLearner(project.settings, project.X)
    project_learner.follow(project.state().answers())
    return project_learner


def predicted(text: str) -> dict[str, float]:
    """How unsure the model is of each item."""
    rows = list(csv.DictReader(io.StringIO(text)))
    column = next(name for name in rows[0] if "uncertain" in name)
    return {row["id"]: float(row[column]) for row in rows}


def test_predictions_right_after_a_correction_are_those_of_the_corrected_model(app: FastAPI, held: Held) -> None:
    script = script_of(app)
    before = predicted(script.get("/api/export/predictions").text)
    held.go.clear()
    correct(script)
    answer = script.get("/api/export/predictions")
    assert answer.status_code == 200
    found = predicted(answer.text)
    uncertainty = learned(project_of(app)).predict(project_of(app).X).uncertainty
    assert found == pytest.approx({f"mail-{item}": uncertainty[item] for item in range(12, 30)}, abs=1e-6)
    assert found != pytest.approx(before, abs=1e-6)


def test_the_report_right_after_a_correction_is_that_of_the_corrected_model(app: FastAPI, held: Held) -> None:
    script = script_of(app)
    stale = background_of(app).learning_status
    held.go.clear()
    correct(script)
    answer = script.get("/api/report")
    assert answer.status_code == 200
    assert (
        background_of(app).learning_status.errors == learned(project_of(app)).learning_status().errors != stale.errors
    )
    shown = report_page(project_of(app), background_of(app).learning_status)
    assert shown != report_page(project_of(app), stale)
    assert answer.text == shown


@pytest.mark.parametrize("path", ["/api/export/predictions", "/api/report"])
def test_a_model_that_is_still_learning_is_not_taken_home(
    app: FastAPI, held: Held, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routes, "_EXPORT_WAIT", 0.01)
    script = script_of(app)
    held.go.clear()
    held.until_waited_for = False
    correct(script)
    answer = script.get(path)
    assert answer.status_code == 409
    assert answer.json()["detail"].startswith("the model is still learning the last labels and corrections")
    # Labels are there without the model.
    assert script.get("/api/export/labels").status_code == 200
    held.go.set()
    monkeypatch.setattr(routes, "_EXPORT_WAIT", LONG)
    assert script.get(path).status_code == 200


@pytest.mark.parametrize("path", ["/api/export/predictions", "/api/report"])
def test_a_model_that_cannot_choose_is_waited_for_like_any_other(
    app: FastAPI, held: Held, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("suffice.project.project_learner.ActiveLearner.ask", fails)
    monkeypatch.setattr(routes, "_EXPORT_WAIT", 0.01)
    script = script_of(app)
    correct(script)
    assert background_of(app).wait_settled(LONG)
    assert "cannot choose" in background_of(app).learning_status.problem
    held.go.clear()
    held.until_waited_for = False
    project_of(app).correct(5, "ham", person="Bob")
    assert script.get(path).status_code == 409


def test_a_second_opinion_can_be_declined_on_the_page(tmp_path: Path) -> None:
    with running_app(make_project(tmp_path / "project", 6, overlap=1.0)) as app:
        script = script_of(app)
        project_of(app).label(2, "spam", person="Ann")
        assert script.post("/api/next", json={"person": "Bob"}).json()["items"][0]["item"] == 2
        body = {"person": "Bob", "item": 2, "request": "no"}
        assert script.post("/api/skips", json=body).json()["repeated"] is False
        assert script.post("/api/skips", json=body).json()["repeated"] is True
        items = script.post("/api/next", json={"person": "Bob", "n": 6}).json()["items"]
        assert {each["item"] for each in items} == {0, 1, 3, 4, 5}
        assert script.get("/api/status").json()["n_skipped"] == 0
        refused = script.post("/api/skips", json={"person": "Ann", "item": 2, "request": "own"})
        assert (refused.status_code, "Ann has labelled this item" in refused.json()["detail"]) == (409, True)


def test_an_image_that_is_too_large_to_send(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routes, "_LARGEST_IMAGE", 1 << 20)
    root = tmp_path / "images"
    root.mkdir()
    for name, size in (("fits.png", 1 << 20), ("large.png", (1 << 20) + 1)):
        with open(root / name, "wb") as file:
            file.truncate(size)
    with running_app(make_image_project(tmp_path / "project", root, {0: "fits.png", 1: "large.png"})) as app:
        script = script_of(app)
        assert script.get("/api/items/0/image").status_code == 200
        answer = script.get("/api/items/1/image")
        assert answer.status_code == 404
        assert answer.json()["detail"] == "the image 'large.png' cannot be shown: it is larger than 1 MiB"


def test_a_label_that_is_too_large_is_answered_with_a_sentence(tmp_path: Path) -> None:
    changes: dict[str, Any] = {"task": "regression", "classes": (), "model": "ridge"}
    with running_app(make_project(tmp_path / "project", **changes)) as app:
        body = {"person": "Ann", "item": 2, "label": 1.7e308, "request": "big"}
        answer = script_of(app).post("/api/labels", json=body)
        assert answer.status_code == 422
        assert "too large for a label; take another unit" in answer.json()["detail"]
