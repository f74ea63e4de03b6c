"""Sessions in the database of a project: they outlive the server, and end when they must, in all processes."""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from starlette.datastructures import Headers
from starlette.responses import Response

from suffice.project import accounts as accounts_module
from suffice.project import storage
from suffice.project.accounts import Account
from suffice.project.create import has_project, open_project
from suffice.project.labelling_project import Project
from suffice.project.project_folder import ProjectFolder
from suffice.project.repair import repair_project
from suffice.project.storage import FILE, LAYOUT, StorageError, StorageFullError, about_table, sa
from suffice.project.stored_sessions import StoredSession, StoredSessions, session_digest
from suffice.web import guesses, sessions
from suffice.web.access import Access, granted_access
from suffice.web.folder_server import folder_app
from suffice.web.guesses import AccountLimit
from suffice.web.sessions import SessionMemory, Sessions
from tests.project.conftest import place, postgres
from tests.project.making_projects import make
from tests.web.test_serving import Server, served
from tests.web.web_projects import TOKEN, Script, make_project, running_app, script_of

__all__ = ["place", "postgres"]

PASSWORD = "correct horse"


@pytest.fixture(autouse=True)
def _cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(accounts_module.SCRYPT, "n", 16)
    monkeypatch.setattr(guesses, "_GUESS_SECONDS", 0.0)


def make_team(place: str) -> None:
    """A project with the accounts of Ann and Bob, who have the same password."""
    with make(place) as project:
        project.add_account("Ann", role="manage", person="me", password=PASSWORD)
        project.add_account("Bob", role="label", person="me", password=PASSWORD)


@contextmanager
def serving(place: str | Path, access: Access | None = None) -> Iterator[FastAPI]:
    """The application of a server that has just started."""
    with running_app(open_project(place), access or granted_access("0.0.0.0", TOKEN)) as app:
        yield app


def attempt(app: FastAPI, person: str = "Ann", password: str = PASSWORD, address: str = "192.0.2.1") -> Any:
    browser = Script(app, base_url="http://127.0.0.1:8000", client=(address, 1))
    return browser.post("/sign-in", json={"person": person, "password": password})


def signed_in(app: FastAPI, person: str = "Ann") -> dict[str, str]:
    """The cookie of somebody who has just signed in."""
    answer = attempt(app, person)
    assert answer.status_code == 200, answer.text
    return dict(answer.cookies)


def opened(app: FastAPI, cookies: dict[str, str]) -> Script:
    """A browser with a cookie."""
    browser = script_of(app)
    browser.cookies.update(cookies)
    return browser


def status(app: FastAPI, cookies: dict[str, str]) -> int:
    return opened(app, cookies).get("/api/project").status_code


def sign_out(app: FastAPI, cookies: dict[str, str]) -> None:
    browser = opened(app, cookies)
    csrf = browser.get("/api/project").json()["csrf"]
    assert browser.post("/sign-out", json={}, headers={"X-Suffice-CSRF": csrf}).json() == {"ok": True}


def rows(project: Project) -> list[Any]:
    with project.journal.database.reading() as connection:
        if "suffice_sessions" not in project.journal.database.tables(connection):
            return []
        return list(connection.execute(sa.text("SELECT * FROM suffice_sessions ORDER BY ends")))


def stored(digest: str, account: str | None = "Ann", ends: float = 1e12) -> StoredSession:
    return StoredSession(digest, account, "binding", ends)


def test_a_session_outlives_the_server_and_its_end_does_too(place: str) -> None:
    make_team(place)
    with serving(place) as app:
        mine, other = signed_in(app), signed_in(app)
        csrf = opened(app, mine).get("/api/project").json()["csrf"]
        owner = script_of(app)
        assert owner.get(f"/?token={TOKEN}", follow_redirects=False).status_code == 303
    with serving(place) as app:
        # A page that was open before the restart can save an answer.
        browser = opened(app, mine)
        headers = {"Origin": "http://127.0.0.1:8000", "X-Suffice-CSRF": csrf}
        assert browser.post("/api/next", json={"person": "Ann"}, headers=headers).status_code == 200
        assert status(app, dict(owner.cookies)) == 200
        sign_out(app, mine)
        assert status(app, mine) == 401
    with serving(place) as app:
        assert (status(app, mine), status(app, other)) == (401, 200)


def test_a_session_ends_in_all_processes(place: str) -> None:
    make_team(place)
    with serving(place) as first, serving(place) as second:
        cookies = signed_in(first)
        assert status(second, cookies) == 200
        sign_out(second, cookies)
        assert (status(first, cookies), status(second, cookies)) == (401, 401)


def test_the_cookie_of_a_person_who_signed_out_stays_invalid_in_every_process(tmp_path: Path) -> None:
    """The attack on the last release: two servers of one project, and one that is started again."""
    place = str(tmp_path / "p")
    make_team(place)

    def code(server: Server, cookies: dict[str, str]) -> int:
        with httpx.Client(timeout=60, cookies=cookies) as client:
            return client.get(f"{server.url}api/project").status_code

    with served(place) as first, served(place) as second:
        with httpx.Client(timeout=60) as client:
            client.post(f"{first.url}sign-in", json={"person": "Ann", "password": PASSWORD})
            other = dict(client.cookies)
            client.cookies.clear()
            client.post(f"{first.url}sign-in", json={"person": "Ann", "password": PASSWORD})
            mine = dict(client.cookies)
            csrf = client.get(f"{first.url}api/project").json()["csrf"]
            assert code(second, mine) == 200
            client.post(f"{first.url}sign-out", json={}, headers={"X-Suffice-CSRF": csrf})
        assert (code(first, mine), code(second, mine), code(second, other)) == (401, 401, 200)
    with served(place) as again:
        assert (code(again, mine), code(again, other)) == (401, 200)


CHANGES = {
    "removed": lambda project: project.remove_account("Bob", person="me"),
    "link": lambda project: project.reset_account("Bob", person="me"),
    "password": lambda project: project.reset_account("Bob", person="me", password=PASSWORD),
}


@pytest.mark.parametrize("change", list(CHANGES))
def test_a_change_of_the_account_ends_its_sessions_for_good(tmp_path: Path, change: str) -> None:
    place = str(tmp_path / "p")
    make_team(place)
    with serving(place) as app:
        ann, bob = signed_in(app), signed_in(app, "Bob")
    with open_project(place) as project:
        CHANGES[change](project)
        if change == "removed":
            project.add_account("Bob", role="label", person="me", password=PASSWORD)
    with serving(place) as app:
        assert (status(app, ann), status(app, bob)) == (200, 401)


def test_another_token_of_the_server_ends_the_sessions_of_its_owner_only(tmp_path: Path) -> None:
    place = str(tmp_path / "p")
    make_team(place)
    with serving(place) as app:
        ann, browser = signed_in(app), script_of(app)
        browser.get(f"/?token={TOKEN}", follow_redirects=False)
        owner = dict(browser.cookies)
        assert status(app, owner) == 200
    for access in (granted_access("0.0.0.0", f"{TOKEN}x"), granted_access("127.0.0.1")):
        with serving(place, access) as app:
            assert (status(app, ann), status(app, owner)) == (200, 401)
    with serving(place) as app:
        assert status(app, owner) == 200


def test_the_database_contains_no_secret(tmp_path: Path) -> None:
    make_team(str(tmp_path / "p"))
    with serving(tmp_path / "p") as app:
        cookies = signed_in(app)
        browser = script_of(app)
        browser.get(f"/?token={TOKEN}", follow_redirects=False)
        secrets = [TOKEN, PASSWORD, *cookies.values(), *dict(browser.cookies).values()]
        project = app.state.context.project
        assert len(rows(project)) == 2
    written = b"".join(path.read_bytes() for path in (tmp_path / "p").iterdir() if path.is_file())
    assert not [secret for secret in secrets if secret.encode() in written]
    # What a session is bound to does not follow from the database: the token of the server may be short.
    digests = [session_digest(TOKEN), session_digest(f"owner {TOKEN}")]
    assert not [digest for digest in digests if digest.encode() in written]


def test_sessions_end_by_themselves_and_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = str(tmp_path / "p")
    make_team(place)
    with serving(place) as app:
        cookies = signed_in(app)
        later = time.time() + 31 * 24 * 3600
        monkeypatch.setattr(sessions, "time", SimpleNamespace(time=lambda: later, monotonic=time.monotonic))
        assert status(app, cookies) == 401
        signed_in(app, "Bob")
        assert [row.account for row in rows(app.state.context.project)] == ["Bob"]


def test_an_account_has_a_limited_number_of_sessions(place: str) -> None:
    make_team(place)
    with open_project(place) as project:
        found = project.stored_sessions
        found.add(stored("owner", None), now=0.0)
        found.add(stored("of-bob", "Bob", 1.0), now=0.0)
        for k in range(6):
            found.add(stored(f"s{k}", ends=100.0 + k), now=0.0, most=4)
        assert {session.digest for session in found.find([*(f"s{k}" for k in range(6)), "owner", "of-bob"])} == {
            *("s2", "s3", "s4", "s5", "owner", "of-bob"),
        }
        found.add(stored("later", None), now=102.5)
        assert len(rows(project)) == 5
        found.remove(["s3", "owner", "nothing"])
        assert [row.digest for row in rows(project)] == ["s4", "s5", "later"]


@pytest.mark.no_cover
@pytest.mark.parametrize("attacks", [1_000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_many_sessions_and_their_ends_leave_little(attacks: int, tmp_path: Path) -> None:
    make_team(str(tmp_path / "p"))
    with open_project(tmp_path / "p") as project:
        running = Sessions(project, granted_access("0.0.0.0", TOKEN))
        (ann, _) = project.accounts()
        name = running.cookie_name
        for k in range(attacks):
            # Each cookie is one that nobody has, as most of those of an attack.
            request = Headers({"cookie": f"{name}={k:043}"})
            running.end(Response(), request)
        assert (len(running.memory), rows(project)) == (0, [])
        for _ in range(150):
            answer = running.start(Response(), ann, "192.0.2.1", secure=False)
        value = answer.headers["set-cookie"].partition(";")[0]
        assert len(rows(project)) == 100
        assert running.with_cookie(Headers({"cookie": value}), project.accounts()) is not None
        running.end(Response(), Headers({"cookie": value}))
        assert running.with_cookie(Headers({"cookie": value}), project.accounts()) is None
        assert (len(running.memory), len(rows(project))) == (0, 99)


def test_memory_has_a_fixed_number_of_entries() -> None:
    memory = SessionMemory(50)
    for k in range(10_000):
        memory.add(stored(f"s{k}", f"account {k}", ends=100.0 + k), now=0.0)
        memory.note_ended([stored(f"e{k}", ends=100.0 + k)], now=0.0)
    assert len(memory) == 100
    assert [session.digest for session in memory.find(["s0", "s9949", "s9950", "s9999"])] == ["s9950", "s9999"]
    assert (memory.has_ended("e9949"), memory.has_ended("e9950")) == (False, True)
    memory.add(stored("last", ends=1e9), now=1e6)
    memory.note_ended([], now=1e6)
    assert len(memory) == 1
    memory = SessionMemory()
    for k in range(150):
        memory.add(stored(f"s{k}", ends=100.0 + k), now=0.0)
    assert len(memory) == 100
    assert [session.digest for session in memory.find(["s49", "s50"])] == ["s50"]


def test_a_project_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "p"
    make_team(str(place))
    with serving(place) as app:
        before, database = signed_in(app), app.state.context.project.journal.database
        monkeypatch.setattr(database, "read_only", True)
        cookies = signed_in(app)
        assert (status(app, cookies), len(rows(app.state.context.project))) == (200, 1)
        sign_out(app, cookies)
        sign_out(app, before)
        assert (status(app, cookies), status(app, before)) == (401, 401)
        assert len(rows(app.state.context.project)) == 1
        # As soon as the database can be written, the end is written too.
        monkeypatch.setattr(database, "read_only", False)
        again = signed_in(app)
        assert (len(rows(app.state.context.project)), len(app.state.context.sessions.memory)) == (1, 0)
    with serving(place) as app:
        assert (status(app, before), status(app, again)) == (401, 200)


def test_a_disk_that_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise StorageFullError("the disk is full")

    make_team(str(tmp_path / "p"))
    with serving(tmp_path / "p") as app:
        with monkeypatch.context() as patched:
            patched.setattr(StoredSessions, "add", full)
            patched.setattr(StoredSessions, "remove", full)
            cookies = signed_in(app)
            assert status(app, cookies) == 200
        assert status(app, cookies) == 200
        sign_out(app, cookies)
        assert status(app, cookies) == 401


def test_a_server_that_only_reads(postgres: Any) -> None:
    place = postgres.new_place()
    make_team(place)
    with serving(place) as app:
        before = signed_in(app)
    with serving(place + "%20-cdefault_transaction_read_only%3Don") as app:
        cookies = signed_in(app)
        assert status(app, cookies) == 200
        sign_out(app, cookies)
        assert status(app, cookies) == 401
    with serving(place) as app:
        assert status(app, before) == 200


def test_a_folder_that_is_read_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "p"
    make_team(str(place))
    with serving(place) as app:
        before = signed_in(app)
    # An administrator may write everywhere, whatever the mode.
    monkeypatch.setattr(storage, "is_writable", lambda _: False)
    place.chmod(0o500)
    try:
        written = {path.name: path.read_bytes() for path in place.iterdir()}
        with serving(place) as app:
            assert status(app, before) == 200
            cookies = signed_in(app)
            assert status(app, cookies) == 200
            sign_out(app, cookies)
            assert (status(app, cookies), status(app, before)) == (401, 200)
        assert {path.name: path.read_bytes() for path in place.iterdir()} == written
    finally:
        place.chmod(0o700)


def test_projects_with_sessions_stay_projects_of_all_versions(tmp_path: Path) -> None:
    place = tmp_path / "p"
    make_team(str(place))
    with open_project(place) as project, project.journal.database.reading() as connection:
        # Nothing is written before somebody signs in.
        assert project.journal.database.tables(connection) == {"about", "events", "items", "features"}
        assert project.stored_sessions.find(["x"]) == []
    with serving(place) as app:
        cookies = signed_in(app, "Bob")
    assert has_project(place)
    with open_project(place) as project, project.journal.database.reading() as connection:
        assert connection.execute(sa.select(about_table.c.value)).scalars().all() == [str(LAYOUT)]
    assert repair_project(place, check=True).intact
    damaging = sqlite3.connect(place / FILE)
    damaging.execute("UPDATE events SET data = replace(data, 'Ann', 'Eve') WHERE data LIKE '%Ann%'")
    damaging.commit()
    damaging.close()
    assert repair_project(place).repaired
    with serving(place) as app:
        # A repaired project has no sessions; people sign in again.
        assert status(app, cookies) == 401
        assert status(app, signed_in(app, "Bob")) == 200


def test_damaged_sessions_are_told(tmp_path: Path) -> None:
    make_team(str(tmp_path / "p"))
    with open_project(tmp_path / "p") as project:
        project.stored_sessions.add(stored("a"), now=0.0)
        with project.journal.database.exclusive() as connection:
            connection.execute(sa.text("UPDATE suffice_sessions SET ends = 'soon'"))
        with pytest.raises(StorageError, match="is damaged"):
            project.stored_sessions.find(["a"])


# The list of projects of a folder.


def test_the_list_shows_a_project_after_a_restart_without_opening_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with make_project(tmp_path / "team.suffice", name="Secret name") as project:
        project.add_account("Ann", role="manage", person="me", password=PASSWORD)

    def name_in_list(browser: Script) -> str:
        (line,) = browser.get("/api/projects").json()["projects"]
        return str(line["name"])

    def restarted() -> Any:
        return folder_app(ProjectFolder(tmp_path), granted_access("127.0.0.1"), "me")

    with restarted() as app:
        page = script_of(app)
        page.post("/p/team.suffice/sign-in", json={"person": "Ann", "password": PASSWORD})
        cookies = dict(page.cookies)
        assert name_in_list(page) == "Secret name"
    with restarted() as app:
        page = opened(app, cookies)
        assert name_in_list(page) == "Secret name"
        assert app.context.opened.learned() == {}
        own = page.get("/p/team.suffice/api/project").json()["csrf"]
        page.post("/p/team.suffice/sign-out", json={}, headers={"X-Suffice-CSRF": own})
    with restarted() as app:
        assert name_in_list(opened(app, cookies)) == "team"
        monkeypatch.setattr(StoredSessions, "find", lambda *_: (_ for _ in ()).throw(StorageError("away")))
        assert name_in_list(opened(app, cookies)) == "team"


def test_sessions_in_memory_outlive_the_closing_of_a_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from suffice.web import open_projects

    def full(*_: Any, **__: Any) -> None:
        raise StorageFullError("the disk is full")

    monkeypatch.setattr(open_projects.OpenProjects.__init__, "__defaults__", (1,))
    monkeypatch.setattr(StoredSessions, "add", full)
    with make_project(tmp_path / "team.suffice", name="Secret name") as project:
        project.add_account("Ann", role="manage", person="me", password=PASSWORD)
    make_project(tmp_path / "open.suffice").close()
    with folder_app(ProjectFolder(tmp_path), granted_access("127.0.0.1"), "me") as app:
        page = script_of(app)  # type: ignore[arg-type]
        page.post("/p/team.suffice/sign-in", json={"person": "Ann", "password": PASSWORD})
        assert page.get("/p/open.suffice/api/project").status_code == 200
        assert [*app.context.opened.learned()] == ["open.suffice"]
        names = [line["name"] for line in page.get("/api/projects").json()["projects"]]
        assert "Secret name" in names
        assert page.get("/p/team.suffice/api/project").status_code == 200


# Wrong passwords.


def test_all_addresses_of_this_machine_share_a_budget(tmp_path: Path) -> None:
    make_team(str(tmp_path / "p"))
    with serving(tmp_path / "p") as app:
        statuses = [attempt(app, "Ann", "wrong", f"127.0.{k}.1").status_code for k in range(30)]
        assert statuses == [401] * 20 + [429] * 10
        assert attempt(app, "Ann", PASSWORD, "127.200.0.1").status_code == 429
        assert attempt(app, "Ann", PASSWORD, "192.0.2.1").status_code == 200


def test_an_account_has_a_budget_for_all_networks_and_nobody_is_locked_out(tmp_path: Path) -> None:
    make_team(str(tmp_path / "p"))
    with serving(tmp_path / "p") as app:
        limits = app.state.context.sessions.limits
        now = [0.0]
        limits.accounts = AccountLimit(each=10, clock=lambda: now[0])
        home, elsewhere = "198.51.100.1", "203.0.113.1"
        assert attempt(app, "Ann", address=home).status_code == 200
        statuses = [attempt(app, " ANN", "wrong", f"192.0.{k}.1").status_code for k in range(15)]
        assert statuses == [401] * 10 + [429] * 5
        refused = attempt(app, "Ann", address=elsewhere)
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "60")
        assert "too many wrong passwords were sent for this name" in refused.json()["detail"]
        # Ann works where she worked before, and Bob is another one.
        assert attempt(app, "Ann", address="198.51.100.77").status_code == 200
        assert attempt(app, "Bob", address=elsewhere).status_code == 200
        # Her own network has its own limit.
        assert [attempt(app, "Ann", "wrong", home).status_code for _ in range(25)][-1] == 429
        # A name without an account has the same answers.
        statuses = [attempt(app, "Eve", "wrong", f"192.1.{k}.1").status_code for k in range(15)]
        assert statuses == [401] * 10 + [429] * 5
        now[0] = 2000.0
        assert attempt(app, "Ann", address=elsewhere).status_code == 200


def test_a_session_makes_its_network_known_after_a_restart(tmp_path: Path) -> None:
    make_team(str(tmp_path / "p"))
    with serving(tmp_path / "p") as app:
        cookies = signed_in(app)
    with serving(tmp_path / "p") as app:
        limits = app.state.context.sessions.limits
        limits.accounts = AccountLimit(each=1, clock=lambda: 0.0)
        assert attempt(app, "Ann", "wrong", "192.0.3.1").status_code == 401
        assert attempt(app, "Ann", PASSWORD, "198.51.100.1").status_code == 429
        browser = Script(app, base_url="http://127.0.0.1:8000", client=("198.51.100.2", 1), cookies=cookies)
        assert browser.get("/api/project").status_code == 200
        assert attempt(app, "Ann", PASSWORD, "198.51.100.1").status_code == 200


def test_known_networks_are_stored(place: str) -> None:
    make_team(place)
    home, elsewhere = "198.51.100.1", "203.0.113.1"
    with serving(place) as app:
        cookies = dict(attempt(app, "Ann", address=home).cookies)
        sign_out(app, cookies)
    with serving(place) as app:
        app.state.context.sessions.limits.accounts = AccountLimit(each=1, clock=lambda: 0.0)
        for name in ("Ann", "Bob", "Eve"):
            assert attempt(app, name, "wrong", "192.0.3.1").status_code == 401
        assert attempt(app, "ann ", address="198.51.100.2").status_code == 200
        # Each account has its own networks.
        assert [attempt(app, name, address=home).status_code for name in ("Bob", "Eve")] == [429, 429]
        assert attempt(app, "Ann", address=elsewhere).status_code == 429
        app.state.context.project.reset_account("Ann", person="me", password=PASSWORD)
    with serving(place) as app:
        app.state.context.sessions.limits.accounts = AccountLimit(each=1, clock=lambda: 0.0)
        assert attempt(app, "Ann", "wrong", "192.0.3.1").status_code == 401
        assert attempt(app, "Ann", address=home).status_code == 429


def test_stored_networks_are_limited_and_have_no_addresses(tmp_path: Path) -> None:
    make_team(str(tmp_path / "p"))
    with open_project(tmp_path / "p") as project:
        found, day = project.stored_sessions, 24 * 3600.0
        assert not found.knows_network("n0", now=0.0)
        for k in range(30):
            found.add(stored(f"s{k}"), now=float(k), network=f"n{k}")
        found.add(stored("again"), now=30.0, network="n12")
        found.add(stored("bob", "Bob"), now=31.0, network="of Bob")
        kept = [k for k in range(30) if found.knows_network(f"n{k}", now=31.0)]
        assert kept == [*range(10, 30)]
        assert found.knows_network("n12", now=90 * day + 29.0)
        assert not found.knows_network("n13", now=90 * day + 29.0)
        found.add(stored("later"), now=90 * day + 29.0, network="new")
        with project.journal.database.reading() as connection:
            left = connection.execute(sa.text("SELECT digest FROM suffice_networks")).scalars().all()
        assert sorted(left) == ["n12", "new", "of Bob"]
    with serving(tmp_path / "p") as app:
        attempt(app, address="203.0.113.77")
    written = b"".join(path.read_bytes() for path in (tmp_path / "p").iterdir() if path.is_file())
    assert b"203.0.113" not in written


def test_10_000_addresses_leave_tables_of_a_fixed_size(tmp_path: Path) -> None:
    make_team(str(tmp_path / "p"))
    with open_project(tmp_path / "p") as project:
        limits = Sessions(project, Access()).limits
        for k in range(12_000):
            limits.networks.note_wrong(f"10.{k // 250}.{k % 250}.1")
            limits.networks.note_wrong(f"127.{k // 65536}.{k // 256 % 256}.{k % 256}")
            limits.accounts.note_wrong(("p", f"name {k}"))
            limits.accounts.note_right(("p", f"name {k}"), f"10.{k // 250}.{k % 250}.1")
        assert max(len(limits.networks), len(limits.accounts)) <= 10_000


def test_the_account_of_a_link_cannot_be_locked_out(tmp_path: Path) -> None:
    with make_project(tmp_path / "p") as project:
        project.add_account("Ann", role="manage", person="me", password=PASSWORD)
        link = project.add_account("Bob", role="label", person="me")
    with serving(tmp_path / "p") as app:
        app.state.context.sessions.limits.accounts = AccountLimit(each=1)
        for k in range(25):
            attempt(app, "Bob", "wrong", f"192.0.2.{k}")
        browser = Script(app, base_url="http://127.0.0.1:8000", client=("192.0.2.1", 1))
        assert browser.get(f"/?token={link}", follow_redirects=False).status_code == 303
        assert browser.get("/api/project").json()["account"]["name"] == "Bob"


def test_the_binding_is_that_of_the_account(tmp_path: Path) -> None:
    """A row that somebody has changed to another account is not a session."""
    make_team(str(tmp_path / "p"))
    with serving(tmp_path / "p") as app:
        cookies = signed_in(app, "Bob")
        project = app.state.context.project
        for change in ("'Ann'", "NULL", "'Eve'"):
            with project.journal.database.exclusive() as connection:
                connection.execute(sa.text(f"UPDATE suffice_sessions SET account = {change}"))
            assert status(app, cookies) == 401
        assert isinstance(project.accounts()[0], Account)
