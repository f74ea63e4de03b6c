"""Accounts on the server: signing in, sessions, and what each role may do."""

import json
import re
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

import pytest
from fastapi import FastAPI

from suffice.project import accounts as accounts_module
from suffice.project.accounts import ROLES, Role, permits
from suffice.project.background_learner import BackgroundLearner
from suffice.project.create import open_project
from suffice.project.labelling_project import Project
from suffice.project.stored_sessions import session_digest
from suffice.web import guesses, sessions, visitors
from suffice.web.access import Access, granted_access
from suffice.web.server import create_app
from suffice.web.visitors import ROUTE_ROLES
from tests.web.web_projects import TOKEN, Script, make_project, running_app, script_of

PASSWORD = "correct horse"
SIGN_IN = "X-Suffice-Sign-In"


@pytest.fixture(autouse=True)
def _cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    """What follows is about the rules, not about the cost of a guess."""
    monkeypatch.setitem(accounts_module.SCRYPT, "n", 16)
    monkeypatch.setattr(guesses, "_GUESS_SECONDS", 0.01)


class Team(NamedTuple):
    """A project with an account for each role, named after it, and a script for each."""

    project: Project
    app: FastAPI
    tokens: dict[str, str]

    def script(self, role: str) -> Script:
        """A script that sends the token of a personal link, or of the server."""
        return script_of(self.app, Authorization=f"Bearer {self.tokens[role]}")


@contextmanager
def team_in(folder: Path, access: Access | None = None) -> Iterator[Team]:
    with ExitStack() as stack:
        project = make_project(folder)
        app = stack.enter_context(running_app(project, access or granted_access("0.0.0.0", TOKEN)))
        tokens: dict[str, str] = {
            role: project.add_account(role, role=role, person="me") or "" for role in reversed(ROLES)
        }
        yield Team(project, app, {**tokens, "owner": TOKEN})


@pytest.fixture
def team(tmp_path: Path) -> Iterator[Team]:
    with team_in(tmp_path / "p") as found:
        yield found


@pytest.fixture(scope="module")
def steady(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    """For tests that change nothing that others notice."""
    with team_in(tmp_path_factory.mktemp("accounts") / "p") as found:
        yield found


def signed_in(app: FastAPI, person: str, password: str = PASSWORD) -> Script:
    """A browser of somebody who has signed in by a password; it sends what a browser sends."""
    browser = script_of(app, Origin="http://127.0.0.1:8000")
    answer = browser.post("/sign-in", json={"person": person, "password": password})
    assert answer.status_code == 200, answer.text
    browser.headers["X-Suffice-CSRF"] = browser.get("/api/project").json()["csrf"]
    return browser


@cache
def routes() -> list[tuple[str, str]]:
    described = create_app(cast(Project, None), cast(BackgroundLearner, None), Access()).openapi()
    return [
        (method.upper(), path)
        for path, methods in described["paths"].items()
        for method in methods
        if path != "/health"
    ]


def test_every_route_has_a_role() -> None:
    assert set(routes()) == set(ROUTE_ROLES), "each route of the OpenAPI needs a role in ROUTE_ROLES, and no others do"
    assert {ROUTE_ROLES[each] for each in routes()} == set(ROLES)


def test_what_each_role_may_do_is_what_is_documented() -> None:
    of_role: dict[str, set[str]] = {role: set() for role in ROLES}
    for (method, path), role in ROUTE_ROLES.items():
        of_role[role].add(f"{method} {path.removeprefix('/api/')}")
    assert of_role["label"] == {
        *("GET project", "GET status", "GET labels", "GET items", "GET items/{item}", "GET items/{item}/image"),
        *("POST next", "POST labels", "POST skips", "POST unsure", "POST corrections", "POST undo", "POST predictions"),
    }
    assert of_role["review"] == {"GET review", "GET people", "POST confirmations"}
    assert {path.split(" ")[1].split("/")[0] for path in of_role["manage"]} == {
        *("settings", "classes", "model", "imports", "items", "checks", "export", "final", "report"),
    }


def called(script: Script, method: str, path: str, person: str) -> Any:
    where = path.replace("{item}", "0")
    return script.get(where) if method == "GET" else script.post(where, json={"person": person})


@pytest.mark.no_cover
@pytest.mark.parametrize("role", [*ROLES, "owner"])
def test_each_route_is_open_to_its_roles_and_closed_to_others(steady: Team, role: str) -> None:
    script = steady.script(role)
    for method, path in routes():
        needed = ROUTE_ROLES[method, path]
        answer = called(script, method, path, "somebody" if role == "owner" else role)
        if role == "owner" or permits(cast(Role, role), needed):
            assert answer.status_code in {200, 404, 409, 422}, (method, path, answer.text)
        else:
            assert answer.status_code == 403, (method, path, answer.text)
            assert answer.json()["detail"].startswith(f"this needs the role {needed}, and your account has the role")


def test_a_route_that_is_not_listed_needs_the_role_manage(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(visitors.ROUTE_ROLES, ("GET", "/api/status"))
    answers = {role: team.script(role).get("/api/status").status_code for role in ROLES}
    assert answers == {"label": 403, "review": 403, "manage": 200}


def test_strangers_reach_nothing(steady: Team) -> None:
    stranger = script_of(steady.app)
    for method, path in routes():
        answer = called(stranger, method, path, "manage")
        assert (answer.status_code, answer.headers.get(SIGN_IN)) == (401, "needed"), path
        assert answer.json()["detail"].startswith("sign in first: open the page")
    for path in ("/nothing", "/api/nothing"):
        assert stranger.get(path).status_code == 401
    assert stranger.post("/sign-out", json={}).status_code == 401
    # They see the form, and that it runs.
    assert "<!DOCTYPE html>" in stranger.get("/").text
    assert stranger.get("/static/signin.js").status_code == 200
    assert stranger.get("/health").json() == {"ok": True}


def test_without_accounts_nothing_of_this_is_there(tmp_path: Path) -> None:
    with running_app(make_project(tmp_path / "p")) as app:
        script = script_of(app)
        assert script.get("/api/project").json()["account"] is None
        answer = script.post("/sign-in", json={"person": "Ann", "password": PASSWORD})
        assert (answer.status_code, answer.json()["detail"]) == (
            409,
            "this project has no accounts, so nobody needs to sign in",
        )
        assert script.post("/api/next", json={"person": "anybody"}).status_code == 200
        assert script.get("/?token=whatever", follow_redirects=False).status_code == 200


def test_the_name_is_that_of_the_account(team: Team) -> None:
    for role in ROLES:
        for other in ("somebody", "owner", *(set(ROLES) - {role})):
            answer = team.script(role).post("/api/labels", json={"person": other, "item": 0, "label": "ham"})
            assert answer.status_code == 403
            assert answer.json()["detail"] == f"you are signed in as '{role}', so person must be that name"
    assert team.project.state().n_labelled == 0
    assert team.script("label").post("/api/labels", json={"person": " label", "item": 0, "label": "ham"}).is_success
    # The owner is no account, and cannot label under the name of one.
    for name in ("label", "LABEL", " Manage"):
        answer = team.script("owner").post("/api/labels", json={"person": name, "item": 1, "label": "ham"})
        assert answer.status_code == 403
        assert "is the name of an account; sign in to use it" in answer.json()["detail"]
    assert team.script("owner").post("/api/labels", json={"person": "Zoe", "item": 1, "label": "ham"}).is_success
    assert [each.person for each in team.project.state().labelled()] == ["label", "Zoe"]


def test_an_odd_body_is_refused_as_ever(steady: Team) -> None:
    script = steady.script("manage")
    for body in (b"[]", b"7", b"null", b'{"person": 3}', b"{}"):
        answer = script.post("/api/next", content=body, headers={"Content-Type": "application/json"})
        assert answer.status_code == 422, body
    assert script.post("/api/next", content=b"x", headers={"Content-Type": "application/json"}).status_code == 422
    assert script.post("/api/next", content=b"{}", headers={"Content-Type": "text/plain"}).status_code == 415


def test_who_labels_corrects_their_own_labels_and_sees_no_others(team: Team) -> None:
    label, review = team.script("label"), team.script("review")

    def posted(script: Script, path: str, **body: Any) -> int:
        return script.post(f"/api/{path}", json=body).status_code

    assert posted(label, "labels", person="label", item=0, label="ham") == 200
    assert posted(label, "corrections", person="label", item=0, label="spam") == 200
    assert posted(review, "labels", person="review", item=1, label="ham") == 200
    assert posted(label, "labels", person="label", item=1, label="spam") == 200
    assert posted(review, "skips", person="review", item=2) == 200
    assert posted(label, "unsure", person="label", item=3, reason="dark") == 200
    for body, status in ((b"", 422), (b"{", 422), (b"[1]", 422), (b"\xff", 400)):
        refused = label.post("/api/labels", content=body, headers={"content-type": "application/json"})
        assert refused.status_code == status, body
    answer = label.post("/api/corrections", json={"person": "label", "item": 1, "label": "spam"})
    assert answer.status_code == 403
    detail = "somebody else has labelled this item too; to correct that, the role review is needed"
    assert answer.json()["detail"] == detail
    mine = label.get("/api/labels").json()
    assert [(row["item"], row["label"]) for row in mine["rows"]] == [(3, None), (0, "spam")]
    assert label.get("/api/labels?only=disagreed").json()["total"] == 0
    assert "review" not in json.dumps(mine)
    everything = review.get("/api/labels").json()
    assert [row["item"] for row in everything["rows"]] == [3, 2, 1, 0]
    assert review.get("/api/labels?only=disagreed").json()["total"] == 1
    assert posted(review, "corrections", person="review", item=0, label="ham") == 200
    # Now it counts for somebody else.
    assert posted(label, "corrections", person="label", item=0, label="spam") == 403
    assert posted(label, "undo", person="label") == 200


# Sessions.


def test_signing_in_by_a_password(team: Team) -> None:
    team.project.add_account("Ann", role="review", person="me", password=PASSWORD)
    browser = script_of(team.app, Origin="http://127.0.0.1:8000")
    answer = browser.post("/sign-in", json={"person": "ann ", "password": PASSWORD})
    assert answer.json() == {"name": "Ann", "role": "review"}
    cookie = answer.headers["set-cookie"]
    parts = {part.strip().lower() for part in cookie.split(";")[1:]}
    assert {"httponly", "samesite=lax", "path=/", f"max-age={30 * 24 * 3600}"} <= parts
    assert PASSWORD not in cookie
    told = browser.get("/api/project").json()
    assert told["account"] == {"name": "Ann", "role": "review"}
    # A page sends the value that it was told, and no other.
    assert browser.post("/api/next", json={"person": "Ann"}).status_code == 403
    owner = granted_access("0.0.0.0", TOKEN).csrf
    for wrong in ("", "x", owner):
        assert browser.post("/api/next", json={"person": "Ann"}, headers={"X-Suffice-CSRF": wrong}).status_code == 403
    good = {"X-Suffice-CSRF": told["csrf"]}
    assert browser.post("/api/next", json={"person": "Ann"}, headers=good).status_code == 200
    foreign = {**good, "Origin": "http://evil.example"}
    assert browser.post("/api/next", json={"person": "Ann"}, headers=foreign).status_code == 403


def test_another_web_site_cannot_sign_anybody_in(team: Team) -> None:
    team.project.add_account("Ann", role="review", person="me", password=PASSWORD)
    sent = {"person": "Ann", "password": PASSWORD}
    browser = script_of(team.app)
    assert browser.post("/sign-in", json=sent, headers={"Origin": "http://evil.example"}).status_code == 403
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    assert browser.post("/sign-in", content=json.dumps(sent), headers=form).status_code == 415
    assert browser.get("/sign-in").status_code in {401, 405}


def test_a_wrong_password_and_an_unknown_name_have_the_same_answer(team: Team) -> None:
    team.project.add_account("Ann", role="review", person="me", password=PASSWORD)
    answers = {
        (found.status_code, found.text, tuple(sorted(found.headers)))
        for person, password in (("Ann", "wrong"), ("Eve", PASSWORD), ("label", PASSWORD), ("Ann", ""), ("Ann", "\x00"))
        for found in [script_of(team.app).post("/sign-in", json={"person": person, "password": password})]
    }
    ((status, text, headers),) = answers
    assert (status, json.loads(text)) == (401, {"detail": "the name or the password is wrong"})
    assert "set-cookie" not in headers


def test_looking_for_an_unknown_name_takes_as_long(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    hashed: list[tuple[Any, ...]] = []
    real = accounts_module._scrypt

    def noted(password: str, salt: bytes, n: int, r: int, p: int) -> bytes:
        hashed.append((n, r, p))
        return real(password, salt, n, r, p)

    team.project.add_account("Ann", role="review", person="me", password=PASSWORD)
    monkeypatch.setattr(accounts_module, "_scrypt", noted)
    for person in ("Ann", "Eve", "label"):
        script_of(team.app).post("/sign-in", json={"person": person, "password": "wrong"})
    assert hashed == [(16, 8, 5)] * 3


@pytest.mark.parametrize(
    "sent", [{}, {"person": "Ann"}, {"person": "Ann", "password": 12345678}, {"person": "Ann", "password": "s3" * 600}]
)
def test_what_is_no_password_is_not_repeated(team: Team, sent: dict[str, Any]) -> None:
    answer = script_of(team.app).post("/sign-in", json=sent)
    assert answer.status_code == 422
    assert "s3s3" not in answer.text
    assert "12345678" not in answer.text


def test_guesses_for_one_name_wait_for_each_other(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guesses, "_GUESS_SECONDS", 0.2)
    statuses: list[int] = []

    def guess(person: str) -> None:
        statuses.append(script_of(team.app).post("/sign-in", json={"person": person, "password": "wrong"}).status_code)

    def seconds(people: list[str]) -> float:
        began = time.monotonic()
        threads = [Thread(target=guess, args=(person,)) for person in people]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return time.monotonic() - began

    assert seconds(["Ann", "ann", "ANN "]) >= 0.6
    assert statuses == [401] * 3
    monkeypatch.setattr(sessions, "_SIGN_IN_PATIENCE", 0.05)
    running = team.app.state.context.sessions
    running._names.add(("ann", "testclient"))
    guess("Ann")
    running._names.clear()
    running._looking = 2
    guess("Ann")
    running._looking = 0
    guess("Ann")
    assert statuses[3:] == [429, 429, 401]
    assert (running._names, running._looking) == (set(), 0)


def test_a_personal_link_becomes_a_session_and_leaves_the_address(team: Team) -> None:
    browser = script_of(team.app, Origin="http://127.0.0.1:8000")
    answer = browser.get(f"/?token={team.tokens['label']}", follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    assert team.tokens["label"] not in answer.headers["set-cookie"]
    assert browser.get("/api/project").json()["account"] == {"name": "label", "role": "label"}
    for wrong in ("wrong", team.tokens["label"][:-1]):
        refused = script_of(team.app).get(f"/?token={wrong}", follow_redirects=False)
        assert refused.status_code == 401
        assert "This link is not valid any more" in refused.text
        assert "set-cookie" not in refused.headers
        assert script_of(team.app, Authorization=f"Bearer {wrong}").get("/api/status").status_code == 401


def test_the_token_of_the_server_is_the_owners(team: Team) -> None:
    browser = script_of(team.app)
    answer = browser.get(f"/?token={TOKEN}", follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    assert browser.get("/api/project").json()["account"] == {"name": None, "role": "manage"}
    assert browser.get("/api/settings").status_code == 200
    # A cookie from before there were accounts is no longer enough.
    access = granted_access("0.0.0.0", TOKEN)
    before = script_of(team.app, Cookie=f"{access.cookie_name}={access.cookie_value}")
    assert before.get("/api/status").status_code == 401


def test_signing_out_ends_the_session(team: Team) -> None:
    team.project.add_account("Ann", role="review", person="me", password=PASSWORD)
    browser, other = signed_in(team.app, "Ann"), signed_in(team.app, "Ann")
    copied = dict(browser.cookies)
    assert browser.post("/sign-out", json={}, headers={"X-Suffice-CSRF": "x"}).status_code == 403
    answer = browser.post("/sign-out", json={})
    assert answer.json() == {"ok": True}
    assert browser.get("/api/project").status_code == 401
    thief = script_of(team.app)
    thief.cookies.update(copied)
    assert thief.get("/api/project").status_code == 401
    # Another session of the same account goes on.
    assert other.get("/api/project").status_code == 200


CHANGES = {
    "removed": lambda project: project.remove_account("Ann", person="me"),
    "new link": lambda project: project.reset_account("Ann", person="me"),
    "new password": lambda project: project.reset_account("Ann", person="me", password="another one"),
    "same password": lambda project: project.reset_account("Ann", person="me", password=PASSWORD),
}


@pytest.mark.parametrize("change", list(CHANGES))
def test_what_another_process_changes_counts_at_the_next_request(team: Team, change: str) -> None:
    team.project.add_account("Ann", role="review", person="me", password=PASSWORD)
    browser = signed_in(team.app, "Ann")
    assert browser.post("/api/next", json={"person": "Ann"}).status_code == 200
    with open_project(team.project.place) as other:
        CHANGES[change](other)
    answer = browser.post("/api/next", json={"person": "Ann"})
    assert (answer.status_code, answer.headers.get(SIGN_IN)) == (401, "needed")
    if change == "removed":
        # The name alone brings no session back.
        with open_project(team.project.place) as other:
            other.add_account("Ann", role="review", person="me", password=PASSWORD)
        assert browser.get("/api/status").status_code == 401


def test_another_role_counts_at_the_next_request(team: Team) -> None:
    team.project.add_account("Ann", role="label", person="me", password=PASSWORD)
    browser = signed_in(team.app, "Ann")
    revision = browser.get("/api/status").json()["revision"]
    changes: list[tuple[Role, int]] = [("manage", 200), ("review", 403)]
    for role, status in changes:
        with open_project(team.project.place) as other:
            other.change_role("Ann", role, person="me")
        assert browser.get("/api/settings").status_code == status
        assert browser.get("/api/project").json()["account"]["role"] == role
    # By this a page that is open notices.
    assert browser.get("/api/status").json()["revision"] > revision


def test_the_first_account_closes_the_page_and_the_last_one_opens_it(tmp_path: Path) -> None:
    with running_app(make_project(tmp_path / "p")) as app, open_project(tmp_path / "p") as other:
        script = script_of(app)
        assert script.post("/api/next", json={"person": "anybody"}).status_code == 200
        other.add_account("Ann", role="manage", person="me")
        assert script.post("/api/next", json={"person": "anybody"}).status_code == 401
        other.remove_account("Ann", person="me")
        assert script.post("/api/next", json={"person": "anybody"}).status_code == 200


@pytest.mark.parametrize(
    "forged",
    [
        "",
        "owner",
        # As cookies were before sessions were stored.
        "owner.99999999999.00",
        "a-QW5u.99999999999-0123456789abcdef.{digest}",
        "{digest}",
        "{value}0",
        "0{value}",
        "{short}",
        "{short}!",
        "{value}.{digest}",
        "{other}",
        "a-\udc80.1.2",
    ],
)
def test_a_forged_session_is_none(team: Team, forged: str) -> None:
    team.project.add_account("Ann", role="manage", person="me", password=PASSWORD)
    ((name, value),) = dict(signed_in(team.app, "Ann").cookies).items()
    digest, other = session_digest(value), value[:-1] + ("A" if value[-1] != "A" else "B")
    sent = forged.format(value=value, digest=digest, short=value[:-1], other=other)
    header = f"{name}={sent}".encode("utf-8", "surrogateescape")
    assert script_of(team.app).get("/api/project", headers=[(b"cookie", header)]).status_code == 401
    right = [(b"cookie", f"{name}={value}".encode())]
    assert script_of(team.app).get("/api/project", headers=right).status_code == 200


def test_a_session_ends_by_itself(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    team.project.add_account("Ann", role="manage", person="me", password=PASSWORD)
    browser = signed_in(team.app, "Ann")
    day = 24 * 3600
    monkeypatch.setattr(sessions, "time", SimpleNamespace(time=lambda: time.time() + 29 * day))
    assert browser.get("/api/project").status_code == 200
    monkeypatch.setattr(sessions, "time", SimpleNamespace(time=lambda: time.time() + 31 * day))
    sent = {"Cookie": "; ".join(f"{name}={value}" for name, value in browser.cookies.items())}
    assert script_of(team.app, **sent).get("/api/project").status_code == 401


def test_two_projects_do_not_share_a_session(tmp_path: Path) -> None:
    access = granted_access("0.0.0.0", TOKEN)
    with team_in(tmp_path / "a", access) as one, team_in(tmp_path / "b", access) as two:
        browser = script_of(one.app)
        browser.get(f"/?token={one.tokens['manage']}")
        assert browser.get("/api/project").status_code == 200
        other = script_of(two.app)
        other.cookies.update(dict(browser.cookies))
        assert other.get("/api/project").status_code == 401


def test_a_database_that_is_away_lets_nobody_in(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    from suffice.project.storage import StorageError

    def away(*_: Any) -> None:
        raise StorageError("the disk is away")

    monkeypatch.setattr(team.project, "accounts", away)
    for script in (script_of(team.app), team.script("manage")):
        answer = script.get("/api/status")
        assert (answer.status_code, answer.json()["detail"]) == (503, "the disk is away")


def test_no_hash_and_no_secret_leaves(team: Team, capfd: pytest.CaptureFixture[str]) -> None:
    team.project.add_account("Ann", role="manage", person="me", password=PASSWORD)
    team.project.reset_account("Ann", person="me", password="battery staple")
    script = team.script("manage")
    for item in range(8):
        script.post("/api/labels", json={"person": "manage", "item": item, "label": ("ham", "spam")[item % 2]})
    kept = {
        value
        for event in team.project.events()
        for kind in ("password", "link")
        for value in event.data.get(kind, {}).values()
        if isinstance(value, str)
    }
    assert len(kept) == 7
    secrets = {*kept, *team.tokens.values(), PASSWORD, "battery staple"}
    gets = [path for method, path in routes() if method == "GET"]
    for path in [*gets, "/", "/api/openapi.json"]:
        for format in ("csv", "jsonl") if "export" in path else ("",):
            answer = script.get(path.replace("{item}", "0"), params={"format": format} if format else {})
            said = answer.text + json.dumps(dict(answer.headers))
            assert not [each for each in secrets if each in said], path
    captured = capfd.readouterr()
    assert not [each for each in secrets if each in captured.out + captured.err]


def test_the_table_of_roles_is_in_the_documentation() -> None:
    page = (Path(__file__).parents[2] / "docs" / "label-people.md").read_text(encoding="utf-8")
    assert re.search(r"\| `label` \|", page)
    assert re.search(r"\| `review` \|", page)
    assert re.search(r"\| `manage` \|", page)
