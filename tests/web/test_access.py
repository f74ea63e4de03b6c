"""Who may come in, and what another web site cannot make a browser do."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from fastapi import FastAPI

from suffice.errors import InvalidValueError
from suffice.web.access import Access, granted_access, host_name, is_loopback, made_token
from suffice.web.http_messages import PAGE_POLICY, SECURITY_HEADERS
from tests.web.web_projects import TOKEN, csrf_of, make_project, running_app, script_of

NEXT = {"person": "Ann"}


@pytest.fixture(scope="module")
def apps(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, FastAPI]]:
    """One application for this machine alone, and one behind a token."""
    folder = tmp_path_factory.mktemp("access")
    with ExitStack() as stack:
        yield {
            "local": stack.enter_context(running_app(make_project(folder / "local"))),
            "token": stack.enter_context(running_app(make_project(folder / "token"), granted_access("0.0.0.0", TOKEN))),
        }


@pytest.fixture
def local(apps: dict[str, FastAPI]) -> FastAPI:
    return apps["local"]


@pytest.fixture
def guarded(apps: dict[str, FastAPI]) -> FastAPI:
    return apps["token"]


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.7", "::", "", "example.org", "localhost.example.org"])
def test_others_are_not_let_in_without_a_token(host: str) -> None:
    with pytest.raises(InvalidValueError, match=r"--host .* refuses without a token: leave --no-token out"):
        granted_access(host)
    assert granted_access(host, TOKEN).token == TOKEN


@pytest.mark.parametrize(
    "token", ["", "short", "x" * 15, "with a space in it", "ünïcödé-is-not-for-headers", "x" * 201]
)
def test_a_token_has_to_be_hard_to_guess(token: str) -> None:
    with pytest.raises(InvalidValueError, match="must be 16 to 200 letters"):
        granted_access("127.0.0.1", token)


def test_tokens_are_made_anew_and_are_shown_nowhere() -> None:
    assert made_token() != made_token()
    access = granted_access("0.0.0.0", made_token())
    assert access.token is not None
    assert access.token not in repr(access)
    assert access.token not in access.cookie_value + access.cookie_name + access.csrf
    assert len({access.cookie_value, access.csrf, access.cookie_name}) == 3
    assert granted_access("127.0.0.1").csrf != granted_access("127.0.0.1").csrf


def test_loopback_addresses() -> None:
    assert all(map(is_loopback, ["127.0.0.1", "127.8.8.8", "::1", "localhost", "LOCALHOST"]))
    assert not any(map(is_loopback, ["", "0.0.0.0", "::", "10.0.0.1", "example.org", "127.0.0.1.example.org"]))


@pytest.mark.parametrize(
    "host", ["a@127.0.0.1", "localhost/x", "localhost?x", "localhost:port", "localhost#", "[::1", "[::1].x", "::1", ""]
)
def test_what_is_no_host_names_nobody(host: str) -> None:
    assert host_name(host) == ""
    assert not Access().serves(host)
    assert not Access(host="").serves(host)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:9", "localhost", "LOCALHOST:8000", "[::1]:8000"])
def test_this_machine_is_served(local: FastAPI, host: str) -> None:
    assert script_of(local, Host=host).get("/api/project").status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example:8000", "localhost.evil.example", "[::1].x"])
@pytest.mark.parametrize("path", ["/", "/api/project", "/static/api.js", "/health", "/nothing"])
def test_a_web_site_that_points_its_name_here_is_refused(local: FastAPI, host: str, path: str) -> None:
    answer = script_of(local, Host=host).get(path)
    assert answer.status_code == 403
    assert "answers to localhost only" in answer.json()["detail"]


def test_the_host_that_was_asked_for_is_served_too() -> None:
    assert Access(host="127.0.0.5").serves("127.0.0.5:8000")
    assert not Access(host="127.0.0.5").serves("127.0.0.6:8000")
    assert Access(host="0.0.0.0", token=TOKEN).serves("labels.example.org")


@pytest.mark.parametrize("path", ["/api/project", "/api/status", "/api/openapi.json", "/static/api.js", "/nothing"])
def test_without_the_token_there_is_nothing(guarded: FastAPI, path: str) -> None:
    answer = script_of(guarded).get(path)
    assert answer.status_code == 401
    assert "a token is needed" in answer.json()["detail"]


def test_a_person_without_the_token_sees_a_page(guarded: FastAPI) -> None:
    for answer in (
        script_of(guarded).get("/"),
        script_of(guarded).get("/?token=wrong"),
        script_of(guarded).get("/?token="),
    ):
        assert answer.status_code == 401
        assert answer.headers["content-type"].startswith("text/html")
        assert "suffice serve printed" in answer.text
        assert "set-cookie" not in answer.headers


def test_a_load_balancer_needs_no_token(guarded: FastAPI) -> None:
    script = script_of(guarded, Host="10.0.0.1")
    assert script.get("/health").json() == {"ok": True}
    assert script.head("/health").status_code == 200


def test_the_token_becomes_a_cookie_and_leaves_the_address(guarded: FastAPI) -> None:
    browser = script_of(guarded, Host="labels.example.org")
    answer = browser.get(f"/?token={TOKEN}", follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"]
    assert TOKEN not in cookie
    parts = {part.strip().lower() for part in cookie.split(";")[1:]}
    assert {"httponly", "samesite=lax", "path=/", f"max-age={30 * 24 * 3600}"} <= parts
    with_cookie = script_of(guarded, Cookie=cookie.partition(";")[0])
    assert "<!DOCTYPE html>" in with_cookie.get("/").text
    assert with_cookie.get("/api/project").status_code == 200


@pytest.mark.parametrize(
    "cookie", ["suffice_x=1", "{name}=", "{name}=0000", "{name}", ";;;=", "{name}=\udc80", '{name}="\\']
)
def test_a_wrong_cookie_opens_nothing(guarded: FastAPI, cookie: str) -> None:
    name = granted_access("0.0.0.0", TOKEN).cookie_name
    sent = cookie.format(name=name).encode("utf-8", "surrogateescape")
    answer = script_of(guarded).get("/api/project", headers=[(b"cookie", sent)])
    assert answer.status_code == 401


def test_two_servers_of_one_machine_do_not_share_a_cookie() -> None:
    assert granted_access("0.0.0.0", TOKEN).cookie_name != granted_access("0.0.0.0", TOKEN + "x").cookie_name


def test_a_script_sends_the_token_in_a_header(guarded: FastAPI) -> None:
    assert script_of(guarded, Authorization=f"Bearer {TOKEN}").post("/api/next", json=NEXT).status_code == 200
    assert script_of(guarded, Authorization=f"bearer {TOKEN}").get("/api/status").status_code == 200
    for wrong in ("Bearer wrong", "Bearer ", f"Basic {TOKEN}", TOKEN, f"Bearer {TOKEN}x"):
        assert script_of(guarded, Authorization=wrong).get("/api/status").status_code == 401
    raw = script_of(guarded).get("/api/status", headers=[(b"authorization", b"Bearer \xff\xfe")])
    assert raw.status_code == 401


def test_the_token_counts_at_the_front_door_only(guarded: FastAPI) -> None:
    assert script_of(guarded).get(f"/api/project?token={TOKEN}").status_code == 401
    assert script_of(guarded).post(f"/?token={TOKEN}", json={}).status_code == 401


def test_the_openapi_says_that_a_token_is_needed(guarded: FastAPI, local: FastAPI) -> None:
    script = script_of(guarded, Authorization=f"Bearer {TOKEN}")
    described = script.get("/api/openapi.json").json()
    assert described["components"]["securitySchemes"]["HTTPBearer"]["scheme"] == "bearer"
    assert described["paths"]["/api/next"]["post"]["security"] == [{"HTTPBearer": []}]
    assert "securitySchemes" not in script_of(local).get("/api/openapi.json").json()["components"]


@pytest.mark.one_in(5)
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Origin": "{here}"}, 403),
        ({"Sec-Fetch-Site": "same-origin"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Origin": "{here}", "X-Suffice-CSRF": "{csrf}"}, 200),
        ({"Origin": "{here}", "Sec-Fetch-Site": "same-origin", "X-Suffice-CSRF": "{csrf}"}, 200),
        ({"Sec-Fetch-Site": "same-origin", "X-Suffice-CSRF": "{csrf}"}, 200),
        ({"Origin": "{here}", "X-Suffice-CSRF": ""}, 403),
        ({"Origin": "{here}", "X-Suffice-CSRF": "{csrf}x"}, 403),
        ({"Origin": "https://{host}", "X-Suffice-CSRF": "{csrf}"}, 200),
        ({"Origin": "http://evil.example", "X-Suffice-CSRF": "{csrf}"}, 403),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "http://127.0.0.1:9999", "X-Suffice-CSRF": "{csrf}"}, 403),
        ({"Origin": "null", "X-Suffice-CSRF": "{csrf}"}, 403),
        ({"Origin": "", "X-Suffice-CSRF": "{csrf}"}, 403),
    ],
)
@pytest.mark.parametrize("kind", ["local", "cookie"])
def test_only_our_page_can_post_from_a_browser(
    apps: dict[str, FastAPI], kind: str, headers: dict[str, str], status: int
) -> None:
    access = granted_access("0.0.0.0", TOKEN)
    own = {} if kind == "local" else {"Cookie": f"{access.cookie_name}={access.cookie_value}"}
    browser = script_of(apps["local" if kind == "local" else "token"], **own)
    said = {"here": "http://127.0.0.1:8000", "host": "127.0.0.1:8000", "csrf": csrf_of(browser)}
    sent = {name: value.format(**said) for name, value in headers.items()}
    # A cookie is a browser's, also where nothing else gives it away.
    expected = 403 if kind == "cookie" and not headers else status
    for path in ("next", "labels", "skips", "corrections", "undo"):
        body = {"person": f"Zoe {path}"} if path == "next" else {}
        answer = browser.post(f"/api/{path}", json=body, headers=sent)
        assert (answer.status_code == 403) == (expected == 403), (path, answer.text)
        if path == "next":
            assert answer.status_code == expected
    assert browser.get("/api/status", headers=sent).status_code == 200


def test_a_form_of_another_web_site_is_no_json(local: FastAPI) -> None:
    script = script_of(local)
    body = b'{"person": "Ann"}'
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""):
        answer = script.post("/api/next", content=body, headers={"Content-Type": kind} if kind else {})
        assert (answer.status_code, answer.json()["detail"]) == (
            415,
            "the Content-Type of a POST must be application/json",
        )
    with_charset = script.post("/api/next", content=body, headers={"Content-Type": "Application/JSON; charset=utf-8"})
    assert with_charset.status_code == 200


def test_every_answer_has_the_headers(local: FastAPI, guarded: FastAPI) -> None:
    script = script_of(local)
    answers = [
        *(
            script.get(path)
            for path in ("/", "/api/project", "/api/items/99", "/api/openapi.json", "/health", "/nothing")
        ),
        script.post("/api/next", json={}),
        script.post("/api/next", content=b"x"),
        script.post("/api/next", json={"person": "x" * 70_000}),
        script.put("/api/next"),
        script_of(local, Host="evil.example").get("/"),
        script_of(guarded).get("/"),
        script_of(guarded).get(f"/?token={TOKEN}", follow_redirects=False),
        script.post("/api/next", json=NEXT, headers={"Origin": "http://evil.example"}),
    ]
    assert sorted({answer.status_code for answer in answers}) == [200, 303, 401, 403, 404, 405, 413, 415, 422]
    for answer in answers:
        for name, value in SECURITY_HEADERS.items():
            assert answer.headers[name] == value, (answer.status_code, name)
        assert "access-control-allow-origin" not in answer.headers
    assert "'unsafe" not in PAGE_POLICY


def test_an_error_that_nobody_thought_of_has_the_headers_too(local: FastAPI, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("a secret")

    monkeypatch.setattr("suffice.web.routes.status", broken)
    answer = script_of(local).get("/api/status")
    assert answer.status_code == 500
    assert "secret" not in answer.text
    assert answer.json()["detail"].startswith("an internal error occurred")
    assert {name: answer.headers[name] for name in SECURITY_HEADERS} == SECURITY_HEADERS
