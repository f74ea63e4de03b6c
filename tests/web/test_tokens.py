"""Tokens on this machine, wrong ones that are repeated, and cookies behind TLS."""

import os
import stat
import subprocess
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient as Script
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from suffice.errors import InvalidValueError
from suffice.web import guesses
from suffice.web.access import TOKEN_FILE, granted_access, kept_token, made_token
from suffice.web.connections import network_of
from suffice.web.guesses import AccountLimit, NetworkLimit
from suffice.web.server import server_options
from tests.processes import start_suffice
from tests.web.test_connection_limits import certificate
from tests.web.test_serving import posted, served
from tests.web.web_projects import TOKEN, make_project, running_app

LONG = made_token()


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guesses, "_GUESS_SECONDS", 0.0)


@pytest.fixture(params=[TOKEN, LONG], ids=["short", "long"])
def guarded(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[FastAPI, str]]:
    with running_app(make_project(tmp_path / "p"), granted_access("0.0.0.0", request.param)) as app:
        yield app, request.param


def script(app: FastAPI, token: str | None = None, address: str = "192.0.2.1") -> Script:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    return Script(app, base_url="http://127.0.0.1:8000", headers=headers, client=(address, 1))


def test_repeated_wrong_tokens_are_refused_whatever_the_connection(guarded: tuple[FastAPI, str]) -> None:
    app, token = guarded
    statuses = [script(app, f"wrong-{k}").get("/api/status").status_code for k in range(30)]
    assert statuses == [401] * 20 + [429] * 10
    answer = script(app).get("/?token=wrong")
    assert answer.status_code == 429
    assert "too many wrong tokens" in answer.text.lower()
    assert 1 <= int(answer.headers["retry-after"]) <= 6
    # A short token might be guessed, so it is refused as well; a long one cannot.
    assert script(app, token).get("/api/status").status_code == (429 if token == TOKEN else 200)
    # Clients from other addresses, or with a cookie, are still admitted.
    assert script(app, token, "198.51.100.2").get("/api/status").status_code == 200
    access = granted_access("0.0.0.0", token)
    cookie = {"Cookie": f"{access.cookie_name}={access.cookie_value}"}
    assert script(app).get("/api/status", headers=cookie).status_code == 200
    assert script(app).get("/health").status_code == 200


@pytest.mark.slow
def test_repeated_wrong_passwords_and_links_are_refused(tmp_path: Path) -> None:
    project = make_project(tmp_path / "p")
    link = project.add_account("Bob", role="manage", person="Bob")
    project.add_account("Ann", role="label", person="Bob", password="correct horse")
    assert link is not None
    with running_app(project, granted_access("0.0.0.0", TOKEN)) as app:
        wrong = [
            script(app).post("/sign-in", json={"person": "Ann", "password": f"wrong {k}"}).status_code for k in range(5)
        ]
        assert wrong == [401] * 5
        # One is forgotten in 6 seconds, and a busy machine may take longer for all of them.
        guesses = takewhile(lambda k: script(app, "wrong").get("/api/status").status_code == 401, range(200))
        assert 15 <= len(list(guesses)) < 200
        right = {"person": "Ann", "password": "correct horse"}
        refused = script(app).post("/sign-in", json=right)
        assert (refused.status_code, "retry-after" in refused.headers) == (429, True)
        assert script(app).get("/?token=wrong", follow_redirects=False).status_code == 429
        assert script(app).get(f"/?token={link}", follow_redirects=False).status_code == 303
        assert script(app, link).get("/api/status").status_code == 200
        # Ann at home signs in all the same.
        assert script(app, address="198.51.100.9").post("/sign-in", json=right).status_code == 200


def test_guesses_are_forgotten_and_many_in_all_leave_fewer_to_each() -> None:
    now = [0.0]
    limit = NetworkLimit(each=4, crowded=2, total=10, seconds=6.0, clock=lambda: now[0])
    for _ in range(4):
        assert limit.wait_for("a") == 0
        limit.note_wrong("a")
    assert limit.wait_for("a") == 6
    now[0] = 6.0
    assert limit.wait_for("a") == 0
    limit.note_wrong("a")
    assert limit.wait_for("a") == 6
    now[0] = 100.0
    for k in range(10):
        limit.note_wrong(f"192.0.{k}.1")
    limit.note_wrong("192.0.1.1")
    assert (limit.wait_for("192.0.0.1"), limit.wait_for("192.0.1.1"), limit.wait_for("192.0.77.1")) == (0, 6, 0)
    # One person has a whole network of IPv6.
    for k in range(4):
        limit.note_wrong(f"2001:db8::{k}")
    assert limit.wait_for("2001:db8::ffff") > 0
    assert limit.wait_for("2001:db8:1::") == 0
    now[0] = 1000.0
    assert limit.wait_for("192.0.1.1") == 0


def test_the_tables_of_guesses_have_a_fixed_number_of_entries() -> None:
    now = [0.0]
    clock = lambda: now[0]  # noqa: E731
    limit = NetworkLimit(most=5, clock=clock)
    for k in range(20):
        now[0] += 10.0
        limit.note_wrong(f"192.0.{k}.1")
    # Those without recent guesses are forgotten.
    assert len(limit) <= 5
    limit, accounts = NetworkLimit(clock=clock), AccountLimit(clock=clock)
    for _ in range(30):
        limit.note_wrong("198.51.100.1")
        accounts.note_wrong("ann")
    for k in range(11_000):
        limit.note_wrong(f"10.{k // 250}.{k % 250}.1")
        accounts.note_wrong(f"name {k}")
        accounts.note_right(f"name {k}", f"10.{k // 250}.{k % 250}.1")
    assert max(len(limit), len(accounts)) <= 10_000
    # Many others with few guesses do not push out one with many.
    assert limit.wait_for("198.51.100.1") > 0
    for k in range(100):
        accounts.note_wrong("ann")
        accounts.note_right("ann", f"10.0.{k}.1")
    assert [accounts.wait_for("ann", f"10.0.{k}.1") > 0 for k in (79, 80, 99)] == [True, False, False]


def test_the_whole_of_a_network_has_one_budget() -> None:
    limit = NetworkLimit(clock=lambda: 0.0)
    for k in range(20):
        limit.note_wrong(f"127.0.{k}.1")
    for address in ("127.0.0.1", "127.255.255.254", "::1", "::ffff:127.0.0.1", "::ffff:127.9.9.9"):
        assert limit.wait_for(address) == 6, address
    for k in range(20):
        limit.note_wrong(f"192.0.2.{k}")
    assert limit.wait_for("192.0.2.255") == limit.wait_for("::ffff:192.0.2.1") == 6
    assert limit.wait_for("192.0.3.1") == 0
    # Connections are counted by address.
    assert network_of("127.0.0.2") != network_of("127.0.0.1")


def test_the_token_of_this_machine_stays_the_same_and_is_its_owners(tmp_path: Path) -> None:
    first = kept_token(tmp_path)
    file = tmp_path / TOKEN_FILE
    assert kept_token(tmp_path) == first == file.read_text()
    assert len(first) >= 32
    if os.name == "posix":
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        # One that others could read is not used.
        file.chmod(0o644)
        assert kept_token(tmp_path) != first
        file.chmod(0o600)
    for odd in ("", "short", "with a space" * 5, "x" * 300, "ä" * 40):
        file.write_text(odd, encoding="utf-8")
        assert kept_token(tmp_path) not in {odd, first}
    file.unlink()
    (tmp_path / "elsewhere").write_text(first)
    file.symlink_to(tmp_path / "elsewhere")
    assert kept_token(tmp_path) != first
    assert kept_token(None) != kept_token(None)
    assert kept_token(tmp_path / "nothing") != kept_token(tmp_path / "nothing")


@pytest.fixture
def mails(tmp_path: Path) -> Path:
    path = tmp_path / "mails.csv"
    path.write_text("size,words\n" + "".join(f"{k / 7:.3f},{k * k % 11}\n" for k in range(40)))
    return path


def test_other_users_of_this_machine_need_the_token_and_a_page_outlives_the_server(mails: Path) -> None:
    with served(str(mails), "--classes", "spam,ham") as server:
        assert httpx.get(f"{server.url}api/project").status_code == 401
        posted(server, "next", person="Ann")
        first = server.token
        with httpx.Client(follow_redirects=True) as browser:
            assert browser.get(f"{server.url}?token={first}").status_code == 200
            cookies = dict(browser.cookies)
    with served(str(mails.with_suffix(".suffice"))) as again:
        assert again.token == first
        assert httpx.get(f"{again.url}api/project", cookies=cookies, timeout=60).status_code == 200
    # For other machines it is another one each time.
    with served(str(mails.with_suffix(".suffice")), "--host", "0.0.0.0") as open_to_all:
        assert open_to_all.token not in {"", first}


def test_cookies_are_secure_behind_tls(mails: Path, tmp_path: Path) -> None:
    cert, key = certificate(tmp_path)
    options = ("--classes", "spam,ham", "--tls-cert", str(cert), "--tls-key", str(key))
    import ssl

    with served(str(mails), *options) as server:
        assert server.url.startswith("https://127.0.0.1:")
        with httpx.Client(verify=ssl.create_default_context(cafile=str(cert)), timeout=60) as browser:
            answer = browser.get(f"{server.url}?token={server.token}")
            assert answer.status_code == 303
            assert "; Secure" in answer.headers["set-cookie"]
            assert browser.get(f"{server.url}api/project").status_code == 200


@pytest.mark.parametrize("accounts", [False, True])
def test_a_trusted_proxy_tells_the_address_and_that_tls_is_used(tmp_path: Path, accounts: bool) -> None:
    project = make_project(tmp_path / "p")
    if accounts:
        project.add_account("Ann", role="manage", person="Ann")
    with running_app(project, granted_access("0.0.0.0", LONG)) as app:
        # As serve_on has uvicorn do it.
        proxied = ProxyHeadersMiddleware(app, ["10.0.0.1"])  # type: ignore[arg-type]

        def opened(address: str, **headers: str) -> str:
            client = Script(proxied, base_url="http://127.0.0.1:8000", client=(address, 1), headers=headers)  # type: ignore[arg-type]
            answer = client.get(f"/?token={LONG}", follow_redirects=False)
            assert answer.status_code == 303
            return str(answer.headers["set-cookie"])

        forwarded = {"X-Forwarded-Proto": "https", "X-Forwarded-For": "192.0.2.7"}
        assert "; Secure" in opened("10.0.0.1", **forwarded)
        assert "; Secure" not in opened("10.0.0.1")
        assert "; Secure" not in opened("10.0.0.2", **forwarded)
        limit = app.state.context.sessions.limits.networks
        for _ in range(20):
            client = Script(proxied, base_url="http://127.0.0.1:8000", client=("10.0.0.1", 1), headers=forwarded)  # type: ignore[arg-type]
            assert client.get("/api/status", headers={"Authorization": "Bearer wrong"}).status_code == 401
        assert (limit.wait_for("192.0.2.7") > 0, limit.wait_for("10.0.0.1")) == (True, 0)


def test_files_that_are_no_certificate_and_proxies_that_are_no_address(tmp_path: Path) -> None:
    text = tmp_path / "text.pem"
    text.write_text("no certificate")
    with pytest.raises(InvalidValueError, match="must be files in PEM format with a certificate and its private key"):
        server_options(text)
    with pytest.raises(InvalidValueError, match=r"--tls-cert .*nothing"):
        server_options(tmp_path / "nothing.pem")
    with pytest.raises(InvalidValueError, match="--tls-key needs --tls-cert"):
        server_options(None, text)
    for proxy in ("proxy.example", "", "10.0.0.0/8"):
        with pytest.raises(InvalidValueError, match="--trusted-proxy must be an IP address"):
            server_options(proxies=(proxy,))
    cert, key = certificate(tmp_path)
    assert server_options(cert, key).tls is not None
    locked = tmp_path / "locked.pem"
    command = ["openssl", "ec", "-aes128", "-passout", "pass:secret", "-in", str(key), "-out", str(locked)]
    subprocess.run(command, check=True, capture_output=True)
    with pytest.raises(InvalidValueError, match="without a password"):
        server_options(cert, locked)


def test_the_address_that_is_printed_has_the_token(mails: Path) -> None:
    process = start_suffice("serve", str(mails), "--classes", "spam,ham", "--port", "0", stderr=subprocess.STDOUT)
    try:
        assert process.stdout is not None
        line = next(line for line in iter(process.stdout.readline, "") if line.startswith("Open "))
    finally:
        process.kill()
        process.communicate()
    token = line.partition("?token=")[2].split(" ")[0]
    assert token == (mails.with_suffix(".suffice") / TOKEN_FILE).read_text()
