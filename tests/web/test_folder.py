"""A server of a folder of projects: the list, uploads, new projects, and who may do what."""

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from suffice.checks import plan_answers
from suffice.checks.annotation_budget import annotation_budget
from suffice.project import accounts as accounts_module
from suffice.project.project_folder import ProjectFolder
from suffice.project.uploaded_files import UPLOADS, UploadLimits
from suffice.web import guesses, open_projects
from suffice.web.access import Access, granted_access
from suffice.web.connections import ConnectionLimits
from suffice.web.folder_server import UPLOAD_PATHS, FolderApp, folder_app
from suffice.web.server import ServerOptions
from tests.web.test_connection_limits import connected, rest, running
from tests.web.web_projects import TOKEN, Script, make_project, script_of

MAILS = b"id,body,label\n" + b"".join(
    b"%d,text number %d of %s words,%s\n" % (k, k, b"many" if k % 3 else b"few", [b"spam", b"ham", b""][k % 3])
    for k in range(12)
)
BINARY = {"Content-Type": "application/octet-stream"}
FOR_BROWSERS = {"Sec-Fetch-Site": "same-origin"}


@pytest.fixture(autouse=True)
def _cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(accounts_module.SCRYPT, "n", 16)
    monkeypatch.setattr(guesses, "_GUESS_SECONDS", 0.01)


@contextmanager
def folder_in(path: Path, access: Access | None = None, limits: UploadLimits | None = None) -> Iterator[FolderApp]:
    with folder_app(ProjectFolder(path), access or granted_access("127.0.0.1"), "me", limits) as app:
        yield app


def talk(app: FolderApp, **headers: str) -> Script:
    return script_of(app, **headers)  # type: ignore[arg-type]


def upload(script: Script, content: bytes = MAILS, name: str = "mails.csv", **headers: str) -> Any:
    return script.post("/api/uploads", params={"file": name}, content=content, headers=BINARY | headers)


def create(script: Script, sent: dict[str, Any], **more: Any) -> Any:
    return script.post("/api/projects", json={"upload": sent["upload"], "name": sent["name"], **more})


def listed(script: Script) -> dict[str, dict[str, Any]]:
    answer = script.get("/api/projects")
    assert answer.status_code == 200, answer.text
    return {line["folder"]: line for line in answer.json()["projects"]}


def test_from_an_upload_to_the_first_label(tmp_path: Path) -> None:
    with folder_in(tmp_path) as app:
        script = talk(app)
        assert script.get("/").text.count("projects.js") == 1
        assert script.get("/static/projects.js").status_code == script.get("/static/upload.js").status_code == 200
        wrong = script.delete("/api/projects")
        assert (wrong.status_code, wrong.headers["allow"]) == (405, "GET, POST")
        empty = script.get("/api/projects").json()
        assert (empty["projects"], empty["refusal"]) == ([], "")
        sent = upload(script).json()
        assert (sent["name"], sent["kind"], sent["size"]) == ("mails", "table", 12)
        assert [column["role"] for column in sent["columns"]] == ["id", "text", "label"]
        assert listed(script) == {}
        made = create(script, sent, person="Ann")
        assert (made.status_code, made.json()) == (200, {"folder": "mails.suffice", "path": "p/mails.suffice/"})
        assert create(script, sent).json() == made.json()
        told = script.get("/api/uploads/progress", params={"upload": sent["upload"]}).json()
        assert (bool(told.pop("what")), told.pop("folder"), set(told)) == (True, "mails.suffice", {"done", "total"})
        assert script.get("/api/uploads/progress", params={"upload": "x"}).status_code == 404
        here = f"/{made.json()['path']}"
        assert script.get(here).text.count("main.js") == 1
        assert script.get(here[:-1], follow_redirects=False).headers["location"] == here
        project = script.get(f"{here}api/project").json()
        assert (project["name"], project["classes"], project["size"]) == ("mails", ["ham", "spam"], 12)
        asked = script.post(f"{here}api/next", json={"person": "Ann"}).json()["items"][0]
        label = {"person": "Ann", "item": asked["item"], "label": "spam"}
        assert script.post(f"{here}api/labels", json=label).status_code == 200
        line = listed(script)["mails.suffice"]
        assert (line["name"], line["n_labelled"], line["size"], line["state"]) == ("mails", 9, 12, "ok")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mails.suffice"]


def test_images_have_the_address_of_their_project(tmp_path: Path) -> None:
    from tests.project.test_uploaded_files import IMAGES, archive

    with folder_in(tmp_path) as app:
        script = talk(app)
        sent = upload(script, archive(IMAGES), "my pets.zip").json()
        assert sent["images"][0] == "pets/0.png"
        shown = {"upload": sent["upload"]}
        assert script.get("/api/uploads/images/0", params=shown).headers["content-type"] == "image/png"
        assert script.get("/api/uploads/images/9", params=shown).status_code == 404
        assert create(script, sent, classes=["cat", "dog"]).json()["path"] == "p/my%20pets.suffice/"
        asked = script.post("/p/my%20pets.suffice/api/next", json={"person": "Ann"}).json()["items"][0]
        assert asked["image"] == f"/p/my%20pets.suffice/api/items/{asked['item']}/image"
        assert script.get(asked["image"]).headers["content-type"] == "image/png"


def test_what_is_wrong_is_said_and_the_upload_stays(tmp_path: Path) -> None:
    with folder_in(tmp_path, limits=UploadLimits(size=1000, rows=20)) as app:
        script = talk(app)
        # With and without a stated length.
        for content in (b"x" * 1001, iter([b"x" * 600] * 2)):
            answer = script.post("/api/uploads", params={"file": "a.csv"}, content=content, headers=BINARY)
            assert (answer.status_code, answer.headers["connection"]) == (413, "close")
        assert (
            upload(script, b"a,b\n" + b"1,2\n" * 21).json()["detail"].startswith("the table must have at most 20 rows")
        )
        assert upload(script, name="a.docx").status_code == 422
        assert script.post("/api/uploads", params={"file": "a.csv"}, content=b"x").status_code == 415
        assert script.post("/api/uploads", content=MAILS, headers=BINARY).json()["detail"].startswith("file is missing")
        assert not (tmp_path / UPLOADS).exists()
        sent = upload(script).json()
        refused: list[tuple[dict[str, Any], str]] = [
            ({"roles": {"body": "nix"}}, "roles must be"),
            ({"roles": {"nix": "text"}}, "no column 'nix'"),
            ({"name": "a/b"}, "the name of the project must"),
            ({"classes": ["spam"]}, "at least 2 classes"),
            ({"classes": ["spam", "eggs"]}, "is none of the classes"),
            ({"person": "\t"}, "person must be"),
            ({"extra": 1}, "not a field of this request"),
        ]
        for more, words in refused:
            answer = create(script, sent, **more)
            assert answer.status_code == 422, more
            assert words in answer.json()["detail"], answer.json()
        assert listed(script) == {}
        assert create(script, sent).status_code == 200
        again = upload(script).json()
        assert create(script, again).status_code == 409
        assert script.post("/api/uploads/discard", json={"upload": again["upload"]}).json() == {"ok": True}
        gone = create(script, again)
        assert (gone.status_code, gone.json()["detail"]) == (404, "this file is not there any more; choose it again")


def test_nobody_uploads_without_the_token(tmp_path: Path) -> None:
    with folder_in(tmp_path, granted_access("0.0.0.0", TOKEN)) as app:
        stranger = talk(app)
        for path in ("/", "/api/projects", "/p/mails.suffice/", "/p/mails.suffice/api/project", "/static/projects.js"):
            assert stranger.get(path).status_code == 401, path
        assert upload(stranger).status_code == 401
        assert stranger.post("/api/projects", json={}).status_code == 401
        assert not (tmp_path / UPLOADS).exists()
        owner = talk(app, Authorization=f"Bearer {TOKEN}")
        assert create(owner, upload(owner).json()).status_code == 200
        assert stranger.get("/p/mails.suffice/api/project").status_code == 401
        # With the address that was printed, a browser gets a cookie for all projects.
        page = talk(app, **FOR_BROWSERS)
        assert page.get(f"/?token={TOKEN}", follow_redirects=False).headers["location"] == "/"
        assert page.get("/p/mails.suffice/api/project").status_code == 200
        assert page.get(f"/p/mails.suffice/?token={TOKEN}", follow_redirects=False).headers["location"] == (
            "/p/mails.suffice/"
        )
        csrf = page.get("/api/projects").json()["csrf"]
        assert upload(page, name="b.csv").status_code == 403
        assert upload(page, name="b.csv", **{"X-Suffice-CSRF": csrf}).status_code == 200
        assert (
            upload(page, name="b.csv", **{"X-Suffice-CSRF": csrf, "Origin": "http://evil.example"}).status_code == 403
        )
        assert page.post("/api/projects", json={}).status_code == 403


def test_without_a_token_only_this_machine_is_served(tmp_path: Path) -> None:
    make_project(tmp_path / "mails.suffice").close()
    with folder_in(tmp_path) as app:
        for path in ("/", "/api/projects", "/p/mails.suffice/", "/p/mails.suffice/api/project"):
            assert talk(app, Host="evil.example").get(path).status_code == 403, path
        assert upload(talk(app, Host="evil.example")).status_code == 403
        page = talk(app, **FOR_BROWSERS)
        assert upload(page).status_code == 403
        assert upload(talk(app, Origin="http://evil.example")).status_code == 403
        assert page.get("/p/none.suffice/").status_code == 404
        make_project(tmp_path / "100% #1?.suffice").close()
        odd = listed(page)["100% #1?.suffice"]["path"]
        assert page.get(f"/{odd}api/project").json()["size"] == 30
        assert page.get(f"/{odd[:-1]}?token=x", follow_redirects=False).headers["location"] == f"/{odd}?token=x"
        assert "All projects" in page.get("/p/none.suffice/").text
        for path in ("/p/..%2Foutside/", "/p/./api/project", "/p//api/project", "/p/%00/"):
            assert page.get(path).status_code == 404, path


def test_accounts_hide_a_project_from_the_list(tmp_path: Path) -> None:
    with make_project(tmp_path / "team.suffice", name="Secret name") as project:
        project.label(0, "spam", person="Ann")
        project.add_account("Ann", role="manage", person="me", password="correct horse")
        link = project.add_account("Bob", role="label", person="me")
    make_project(tmp_path / "open.suffice").close()
    hidden = {"name": "team", "kind": "", "n_labelled": None, "size": None, "last": None, "state": "accounts"}
    with folder_in(tmp_path, granted_access("0.0.0.0", TOKEN)) as app:
        page = talk(app)
        page.get(f"/?token={TOKEN}")
        csrf = page.get("/api/projects").json()["csrf"]
        assert listed(page)["team.suffice"].items() >= hidden.items()
        assert [*listed(page)] == ["open.suffice", "team.suffice"]
        refused = page.get("/p/team.suffice/api/project")
        assert (refused.status_code, refused.headers["X-Suffice-Sign-In"]) == (401, "needed")
        entry = {"person": "Ann", "password": "correct horse"}
        assert page.post("/p/team.suffice/sign-in", json=entry).status_code == 200
        assert listed(page)["team.suffice"].items() >= {"name": "Secret name", "n_labelled": 1, "size": 30}.items()
        own = page.get("/p/team.suffice/api/project").json()["csrf"]
        page.post("/p/team.suffice/sign-out", json={}, headers={"X-Suffice-CSRF": own})
        assert listed(page)["team.suffice"].items() >= hidden.items()
        assert page.get("/p/open.suffice/api/project").json()["csrf"] == csrf
        # A personal link admits to its project alone.
        bob = talk(app)
        assert bob.get(f"/p/team.suffice/?token={link}", follow_redirects=False).headers["location"] == (
            "/p/team.suffice/"
        )
        assert bob.get("/p/team.suffice/api/project").json()["account"]["name"] == "Bob"
        assert bob.get("/api/projects").status_code == bob.get("/p/open.suffice/api/project").status_code == 401
        assert upload(bob).status_code == 401
        # The token of the server belongs to the owner.
        assert listed(talk(app, Authorization=f"Bearer {TOKEN}"))["team.suffice"]["n_labelled"] == 1
        # A cookie that nobody has signed shows nothing.
        name = next(cookie for cookie in bob.cookies if cookie.startswith("suffice_session"))
        page.cookies.set(name, f"owner.{int(time.time()) + 1000}-x.{'0' * 64}")
        assert listed(page)["team.suffice"].items() >= hidden.items()


def test_sessions_outlive_the_closing_of_a_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_projects.OpenProjects.__init__, "__defaults__", (1,))
    with make_project(tmp_path / "team.suffice") as project:
        project.add_account("Ann", role="manage", person="me", password="correct horse")
    make_project(tmp_path / "open.suffice").close()
    with folder_in(tmp_path) as app:
        page, opened = talk(app), app.context.opened
        page.post("/p/team.suffice/sign-in", json={"person": "Ann", "password": "correct horse"})
        copied = dict(page.cookies)
        assert [*opened.learned()] == ["team.suffice"]
        assert page.get("/p/open.suffice/api/project").status_code == 200
        assert [*opened.learned()] == ["open.suffice"]
        assert listed(page)["team.suffice"]["size"] == 30
        own = page.get("/p/team.suffice/api/project").json()["csrf"]
        page.post("/p/team.suffice/sign-out", json={}, headers={"X-Suffice-CSRF": own})
        page.get("/p/open.suffice/api/project")
        page.cookies.update(copied)
        assert page.get("/p/team.suffice/api/project").status_code == 401


def test_a_project_that_cannot_be_opened_or_is_gone(tmp_path: Path) -> None:
    make_project(tmp_path / "mails.suffice").close()
    (tmp_path / "noise.suffice").mkdir()
    (tmp_path / "noise.suffice" / "project.sqlite").write_bytes(b"noise" * 1000)
    with folder_in(tmp_path, granted_access("0.0.0.0", TOKEN)) as app:
        owner, stranger = talk(app, Authorization=f"Bearer {TOKEN}"), talk(app)
        answer = owner.get("/p/noise.suffice/api/project")
        assert (answer.status_code, answer.json()["detail"].endswith("it is no SQLite file")) == (503, True)
        assert "All projects" in owner.get("/p/noise.suffice/").text
        assert stranger.get("/p/noise.suffice/").status_code == 401
        assert {name: line["state"] for name, line in listed(owner).items()} == {
            "mails.suffice": "ok",
            "noise.suffice": "unreadable",
        }
        assert owner.get("/p/mails.suffice/api/project").json()["size"] == 30
        # Another project of the same name.
        (tmp_path / "mails.suffice").rename(tmp_path / "old.suffice")
        assert owner.get("/p/mails.suffice/api/project").status_code == 404
        make_project(tmp_path / "mails.suffice", 20).close()
        assert owner.get("/p/mails.suffice/api/project").json()["size"] == 20
        assert owner.get("/p/old.suffice/api/project").json()["size"] == 30


def test_nothing_is_created_in_a_folder_that_is_read_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ProjectFolder, "read_only", property(lambda _: True))
    with folder_in(tmp_path) as app:
        script = talk(app)
        assert "is read-only; make it writable" in script.get("/api/projects").json()["refusal"]
        assert upload(script).status_code == 409
        assert create(script, {"upload": "x", "name": "x"}).status_code == 409
    assert [*tmp_path.iterdir()] == []


def test_an_aborted_upload_leaves_nothing(tmp_path: Path) -> None:
    sent: list[Any] = []
    messages: list[dict[str, Any]] = [
        {"type": "http.request", "body": b"a,b\n" * 500_000, "more_body": True},
        {"type": "http.disconnect"},
    ]

    async def receive() -> dict[str, Any]:
        if len(messages) == 1:
            assert len([*(tmp_path / UPLOADS).rglob("upload.csv")]) == 1
        return messages.pop(0)

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [(b"host", b"localhost"), (b"content-type", b"application/octet-stream")]
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/api/uploads",
        "query_string": b"file=a.csv",
        "headers": headers,
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 8000),
        "scheme": "http",
        "root_path": "",
        "http_version": "1.1",
    }
    # The browser of other tests leaves an event loop in this thread.
    with folder_in(tmp_path) as app, ThreadPoolExecutor(1) as pool:
        pool.submit(lambda: asyncio.run(app(scope, receive, send))).result()
    assert [*tmp_path.iterdir()] == []


def test_an_upload_may_take_longer_than_other_requests() -> None:
    limits = ConnectionLimits(body_seconds=0.5, upload_paths=UPLOAD_PATHS)
    part, parts = b"x" * 40_000, 8
    with running(ServerOptions(limits=limits)) as port:
        for path, expected in (("/api/uploads", b"200"), ("/other", b"408")):
            head = f"POST {path} HTTP/1.1\r\nHost: here\r\nContent-Length: {len(part) * parts}\r\n\r\n"
            with connected(port, head.encode()) as connection:
                for _ in range(parts):
                    try:
                        connection.sendall(part)
                    except (BrokenPipeError, ConnectionResetError):
                        break
                    time.sleep(0.12)
                connection.settimeout(3.0)
                assert connection.recv(65536).split()[1] == expected, path
        # One that sends a few bytes at a time is closed.
        with connected(port, b"POST /api/uploads HTTP/1.1\r\nHost: here\r\nContent-Length: 1000\r\n\r\n") as slow:
            stop = threading.Event()

            def trickle() -> None:
                while not stop.wait(0.1):
                    try:
                        slow.sendall(b"x")
                    except OSError:
                        return

            thread = threading.Thread(target=trickle)
            thread.start()
            try:
                assert b"408" in rest(slow)[:20]
            finally:
                stop.set()
                thread.join()


def test_everything_is_in_the_openapi(tmp_path: Path) -> None:
    with folder_in(tmp_path) as app:
        described = talk(app).get("/api/openapi.json").json()
    operations = {(method, path): each for path, found in described["paths"].items() for method, each in found.items()}
    assert set(operations) == {
        ("get", "/api/plan"),
        ("get", "/api/projects"),
        ("post", "/api/projects"),
        ("post", "/api/uploads"),
        ("post", "/api/uploads/discard"),
        ("get", "/api/uploads/images/{number}"),
        ("get", "/api/uploads/progress"),
        ("get", "/health"),
    }
    for (method, path), operation in operations.items():
        assert operation["description"], path
        if path != "/health":
            assert {"200", "401", "403", "413", "422", "503"} <= set(operation["responses"]), path
        if method == "post":
            assert {"415", "507"} <= set(operation["responses"]), path
    documented = (Path(__file__).parents[2] / "docs" / "http.md").read_text(encoding="utf-8")
    for method, path in operations:
        assert f"`{method.upper()} {path.replace('{number}', '0')}" in documented, path
    assert json.dumps(described)


def test_a_check_is_planned_without_a_project(tmp_path: Path) -> None:
    with folder_in(tmp_path) as app:
        script = talk(app)
        asked: dict[str, Any] = {"pool": 2000, "prove": 0.05, "expected": 0.02, "seconds": 8}
        told = script.get("/api/plan", params=asked).json()
        assert told == annotation_budget(2000, at_most=0.05, expected=0.02).as_dict(8.0)
        told = script.get("/api/plan", params={"pool": 2000, "checked": 300, "wrong": 7, "prove": 0.04}).json()
        assert told == annotation_budget(2000, at_most=0.04, counts=(300, 7)).as_dict()
        corrected: dict[str, Any] = {"pool": 2000, "prove": 0.05, "expected": 0.06, "corrected": "true"}
        told = script.get("/api/plan", params=corrected).json()
        assert told["plan"] == plan_answers(0.05, 0.06, 2000, corrected=True).as_dict()


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({}, "pool is missing; it must be the number of predictions"),
        ({"pool": 0}, "pool must be the number of predictions"),
        ({"pool": 900, "prove": 0.001}, "prove must be the share of wrong predictions to prove, from 0.005"),
        ({"pool": 900, "prove": "nan"}, "prove must be"),
        ({"pool": 900, "prove": 0.05, "expected": 1.0}, "expected must be"),
        ({"pool": 900, "prove": 0.05, "seconds": 0}, "seconds must be"),
        ({"pool": 900, "checked": 9, "wrong": 10}, "wrong must not exceed checked"),
        ({"pool": 900, "checked": 901, "wrong": 1}, "checked must not exceed pool"),
    ],
)
def test_a_plan_that_cannot_be_made_is_refused(tmp_path: Path, asked: dict[str, Any], sentence: str) -> None:
    with folder_in(tmp_path) as app:
        answer = talk(app).get("/api/plan", params=asked)
        assert answer.status_code == 422
        assert sentence in answer.json()["detail"]
