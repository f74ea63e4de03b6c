"""The server as a process: ports, tokens, signals, and two of them on one project."""

import errno
import http.client
import importlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import httpx
import pytest
from typer.testing import CliRunner

import suffice.web
from suffice.cli.app import app
from suffice.errors import InvalidValueError, MissingExtraError, SufficeError
from suffice.project.create import open_project
from suffice.web.server import listening, url_of
from tests.processes import ForkedProcess, start_suffice
from tests.web.browsing import call

TOKEN = "correct-horse-battery"
OWN = {"Authorization": f"Bearer {TOKEN}"}


class Server(NamedTuple):
    """A server in a process of its own, and its address."""

    process: ForkedProcess
    url: str
    token: str = ""

    @property
    def headers(self) -> dict[str, str]:
        """What a script sends."""
        return {"Authorization": f"Bearer {self.token}"}

    def ended(self, number: signal.Signals) -> tuple[int, str]:
        """Send a signal; return the exit code and all that was said after the first line."""
        self.process.send_signal(number)
        said = self.process.communicate(timeout=60)[0]
        return self.process.wait(), said


@contextmanager
def served(*options: str, **variables: str) -> Iterator[Server]:
    """``suffice serve`` on any free port, once it is ready."""
    process = start_suffice(
        "serve", *options, "--port", "0", "--json", stderr=subprocess.STDOUT, env={**os.environ, **variables}
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("{"), line + process.stdout.read()
        said = json.loads(line)
        yield Server(process, said["url"].partition("?")[0], said.get("token", variables.get("SUFFICE_TOKEN", "")))
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
def mails(tmp_path: Path) -> Path:
    path = tmp_path / "mails.csv"
    path.write_text("size,words\n" + "".join(f"{k / 7:.3f},{k * k % 11}\n" for k in range(40)))
    return path


def posted(server: Server, path: str, **body: Any) -> dict[str, Any]:
    answer = call("POST", f"{server.url}api/{path}", json=body, headers=server.headers)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def test_labels_outlive_the_server_and_two_can_share_a_project(mails: Path) -> None:
    with served(str(mails), "--classes", "spam,ham") as server:
        first = posted(server, "next", person="Ann")["items"][0]["item"]
        posted(server, "labels", person="Ann", item=first, label="spam", request="a")
        with served(str(mails.with_suffix(".suffice")), SUFFICE_TOKEN=TOKEN) as other:
            assert call("GET", f"{other.url}api/status").status_code == 401
            assert call("GET", f"{other.url}api/status", headers=OWN).json()["n_labelled"] == 1
            second = posted(other, "next", person="Bob")["items"][0]["item"]
            assert second != first
            posted(other, "labels", person="Bob", item=second, label="ham", request="b")
            assert other.ended(signal.SIGINT)[0] == 0
        assert call("GET", f"{server.url}api/status", headers=server.headers).json()["n_labelled"] == 2
        assert server.ended(signal.SIGTERM) == (0, "")
    with open_project(mails.with_suffix(".suffice")) as project:
        assert [call.label for call in project.state().answers()] == ["spam", "ham"]


def test_a_token_is_in_the_address_once_and_in_no_log(mails: Path) -> None:
    with served(str(mails), "--classes", "spam,ham", "--host", "0.0.0.0", "--token") as server:
        address, token = server.url, server.token
        assert len(token) >= 32
        assert call("GET", f"{address}api/project").status_code == 401
        with httpx.Client(follow_redirects=True, verify=False) as browser:
            page = browser.get(f"{address}?token={token}")
            assert (page.status_code, str(page.url)) == (200, address)
            assert browser.get(f"{address}api/project").status_code == 200
        code, said = server.ended(signal.SIGINT)
        assert (code, token in said) == (0, False)


def test_what_comes_over_the_wire_as_it_is(mails: Path) -> None:
    """A browser or a client of Python would tidy these up first."""
    with served(str(mails), "--classes", "spam,ham") as server:
        place = urlsplit(server.url)
        assert place.hostname is not None
        assert place.port is not None
        for path in (
            "/static/../../app.py",
            "/static/%2e%2e/%2e%2e/errors.py",
            "/../etc/passwd",
            "/static//etc/passwd",
        ):
            connection = http.client.HTTPConnection(place.hostname, place.port, timeout=60)
            connection.request("GET", path, headers=server.headers)
            answer = connection.getresponse()
            assert (answer.status, list(json.loads(answer.read()))) == (404, ["detail"])
            connection.close()
        connection = http.client.HTTPConnection(place.hostname, place.port, timeout=60)
        headers = {"Content-Type": "application/json", **server.headers}
        connection.request(
            "POST", "/api/next", body=(b" " * 1000 for _ in range(70)), headers=headers, encode_chunked=True
        )
        answer = connection.getresponse()
        assert (answer.status, "65536" in json.loads(answer.read())["detail"]) == (413, True)
        connection.close()
    with served(str(mails.with_suffix(".suffice")), "--no-token") as server:
        assert (server.token, call("GET", f"{server.url}api/status").status_code) == ("", 200)
        assert call("GET", f"{server.url}health", headers={"Host": "evil.example"}).status_code == 403


def refused(*options: str) -> Exception:
    """Why ``suffice serve`` does not begin."""
    error = CliRunner().invoke(app, ["serve", *options]).exception
    assert isinstance(error, SufficeError)
    return error


def test_nothing_is_made_where_nobody_may_come_in(mails: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    new = (str(mails), "--classes", "spam,ham")
    open_to_all = refused(*new, "--host", "0.0.0.0", "--no-token")
    assert isinstance(open_to_all, InvalidValueError)
    assert "refuses without a token: leave --no-token out" in str(open_to_all)
    with listening("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        assert f"port {port} on 127.0.0.1 is in use" in str(refused(*new, "--port", str(port)))
    monkeypatch.setenv("SUFFICE_TOKEN", "short")
    assert "must be 16 to 200 letters" in str(refused(*new, "--port", "0"))
    assert os.listdir(mails.parent) == ["mails.csv"]


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("fastapi", "uvicorn"):
        with monkeypatch.context() as without:
            without.setitem(sys.modules, package, None)
            with pytest.raises(
                MissingExtraError, match=rf"The page needs {package}.*-m pip install .*'fastapi>=.*'uvicorn>="
            ):
                importlib.reload(suffice.web)


def test_a_port_in_use_and_the_way_out() -> None:
    with listening("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        words = rf"port {port} on 127\.0\.0\.1 is in use; stop what runs there or give --port {port + 1} \(or --port 0 "
        with pytest.raises(SufficeError, match=words), listening("127.0.0.1", port):
            pass
    with listening("127.0.0.1", port) as again:
        assert again.getsockname()[1] == port


@pytest.mark.parametrize("port", [-1, 65536])
def test_a_port_that_is_none(port: int) -> None:
    with pytest.raises(InvalidValueError, match="--port must be a whole number from 0 to 65535"), listening("", port):
        pass


@pytest.mark.parametrize("host", ["no such host", "192.0.2.1", "x" * 300, "a..b"])
def test_a_host_that_is_not_this_machine(host: str) -> None:
    with pytest.raises(SufficeError, match=r"127\.0\.0\.1"), listening(host, 0):
        pass


@pytest.mark.parametrize(
    ("code", "words"),
    [(errno.EACCES, "ports below 1024 need an administrator; give --port 8000"), (errno.EIO, "cannot listen on")],
)
def test_a_port_that_is_not_to_be_had(monkeypatch: pytest.MonkeyPatch, code: int, words: str) -> None:
    def denied(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(socket.socket, "bind", denied)
    with pytest.raises(SufficeError, match=words), listening("127.0.0.1", 80):
        pass


def test_the_address_of_a_server_that_listens_everywhere() -> None:
    assert url_of("0.0.0.0", 8000) == url_of("", 8000) == "http://127.0.0.1:8000/"
    assert url_of("::", 8000) == "http://[::1]:8000/"
    assert url_of("localhost", 80) == "http://localhost:80/"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "name what to label, as in suffice serve mails.csv, or a folder of projects"),
        (["mails.csv", "--projects", "."], "leave one of them out"),
        (["--projects", ".", "--text", "body"], "options about one project, such as text, do not go with --projects"),
        (["--projects", ".", "--at-most", "5%"], "do not go with --projects"),
        (["--projects", "none"], "there is no folder none for --projects; create it first: mkdir none"),
        (["--projects", "postgresql://me@host/labels"], "projects in PostgreSQL are not in a folder"),
        (["--projects", ".", "--host", "0.0.0.0", "--no-token"], "refuses without a token: leave --no-token out"),
    ],
)
def test_options_of_a_folder_of_projects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["serve", *options])
    assert isinstance(done.exception, InvalidValueError)
    assert words in str(done.exception)
    assert [*tmp_path.iterdir()] == []


def test_a_folder_is_served_until_it_is_stopped(tmp_path: Path) -> None:
    process = start_suffice("serve", "--projects", str(tmp_path), "--port", "0", stderr=subprocess.STDOUT)
    try:
        assert process.stdout is not None
        said = process.stdout.readline()
        assert f"0 projects in {tmp_path}. Open http://127.0.0.1:" in said
        url, token = said.split("Open ")[1].split()[0].split("?token=")
        # The token for this machine stays the same, and only its owner can read it.
        kept = tmp_path / "token"
        assert (kept.read_text(), kept.stat().st_mode & 0o077) == (token, 0)
        assert call("GET", f"{url}api/projects", headers={"Authorization": f"Bearer {token}"}).json()["projects"] == []
        process.send_signal(signal.SIGINT)
        assert f"to continue: suffice serve --projects {tmp_path}" in process.communicate(timeout=60)[0]
        assert process.wait() == 0
    finally:
        process.kill()
        process.wait()
