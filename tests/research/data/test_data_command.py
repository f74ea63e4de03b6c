"""`suffice data`: what there is, what is missing, and how it is fetched."""

import dataclasses
import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from suffice.cli.app import app
from suffice.errors import InvalidValueError, SufficeError
from suffice_research.data import catalogue
from suffice_research.data.catalogue import SETS, DataFile, FileSource

RUN = CliRunner()
FILES = {"one": b"1 2\n3 4\n", "two": b"5 6\n"}


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The data folder, and two small data sets known as ``one`` and ``two``, of one file and of both."""
    gone = "http://127.0.0.1:9"  # where nothing ever answers
    files = [
        DataFile(f"uci/{name}.txt", hashlib.sha256(text).hexdigest(), len(text), (FileSource(f"{gone}/{name}.txt"),))
        for name, text in FILES.items()
    ]
    small = dataclasses.replace(SETS["skin"], columns=("a", "b"), rows=2)
    known = {"one": dataclasses.replace(small, name="one", files=tuple(files[:1]))}
    known |= {"two": dataclasses.replace(small, name="two", files=tuple(files))}
    monkeypatch.setattr(catalogue, "SETS", known)
    pytest.importorskip("pooch", reason="pooch is not installed")
    monkeypatch.setattr("pooch.core.time.sleep", lambda seconds: None)
    monkeypatch.setenv("SUFFICE_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    (tmp_path / "copy" / "uci").mkdir(parents=True)
    for name, text in FILES.items():
        (tmp_path / "copy" / "uci" / f"{name}.txt").write_bytes(text)
    return tmp_path / "copy"


def invoke(*arguments: str, code: int = 0) -> Any:
    done = RUN.invoke(app, ["data", *arguments])
    assert done.exit_code == code, (done.output, done.exception)
    return done


def result(*arguments: str, code: int = 0) -> Any:
    done = invoke(*arguments, "--json", code=code)
    assert done.stderr == ""
    return json.loads(done.stdout)


def test_list_of_the_paper(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SUFFICE_DATA", str(tmp_path))
    shown = invoke("list").stdout.splitlines()
    assert shown[0].split() == ["name", "rows", "x", "features", "models", "there", "title"]
    assert [line.split()[0] for line in shown[1:-1]] == list(SETS)
    assert "power_plant       9568 x 4         gpr, brr  no     Combined Cycle Power Plant" in shown
    assert shown[-1] == f"Folder: {tmp_path}"
    found = result("list")
    assert found["folder"] == str(tmp_path)
    assert [each["name"] for each in found["sets"]] == list(SETS)
    first = found["sets"][0]
    assert (first["rows"], first["features"], first["models"], first["right"]) == (9568, 4, ["gpr", "brr"], False)
    assert (first["files"][0]["state"], first["files"][0]["size"]) == ("missing", 308680)


def test_list_says_what_is_there(folder: Path) -> None:
    (folder / "uci").mkdir(parents=True)
    (folder / "uci" / "one.txt").write_bytes(FILES["one"])
    one, two = invoke("list").stdout.splitlines()[1:3]
    assert "  yes  " in one
    assert "1 of 2 files" in two
    (folder / "uci" / "two.txt").write_bytes(b"6 5\n")
    assert "corrupt" in invoke("list").stdout.splitlines()[2]
    assert [each["right"] for each in result("list")["sets"]] == [True, False]


def test_fetch_and_check(folder: Path, copy: Path) -> None:
    shown = invoke("fetch", "one", "--from", str(copy)).stdout.splitlines()
    assert shown == [f"one: {folder / 'uci' / 'one.txt'} stored", "1 of 1 file there and right"]
    assert invoke("check", "one").stdout.splitlines() == [f"one: {folder / 'uci' / 'one.txt'} is there and right"]
    failed = invoke("check", code=1).stdout
    assert f"two: {folder / 'uci' / 'two.txt'} is missing" in failed
    assert "Run: suffice data fetch two\n" in failed
    (folder / "uci" / "one.txt").write_bytes(b"corrupt")
    found = result("check", "one", code=1)["sets"][0]
    assert (found["right"], found["files"][0]["state"]) == (False, "corrupt")
    assert found["files"][0]["actual_sha256"] == hashlib.sha256(b"corrupt").hexdigest()
    assert found["files"][0]["sha256"] in found["files"][0]["problem"]
    shown = invoke("fetch", "--from", str(copy)).stdout.splitlines()
    assert shown == [
        f"one: {folder / 'uci' / 'one.txt'} was corrupt, and is replaced",
        f"two: {folder / 'uci' / 'two.txt'} stored",
        "2 of 2 files there and right",
    ]
    assert result("fetch", "two", "one") == {
        "done": True,
        "files": [
            {"name": "two", "path": str(folder / "uci" / f"{name}.txt"), "what": "there", "problem": None}
            for name in FILES
        ],
    }
    assert [each["right"] for each in result("check")["sets"]] == [True, True]


def test_without_a_network_each_file_gets_a_sentence(folder: Path) -> None:
    done = invoke("fetch", code=1)
    for name in FILES:
        by_hand = f"download http://127.0.0.1:9/{name}.txt and save it as {folder / 'uci' / f'{name}.txt'}"
        assert by_hand in done.stderr
    assert done.stderr.count("127.0.0.1:9 cannot be reached") == 2
    assert done.stdout.splitlines() == ["0 of 2 files there and right"]
    found = result("fetch", "one", code=1)
    assert (found["done"], found["files"][0]["what"]) == (False, "failed")
    assert "cannot be reached" in found["files"][0]["problem"]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("command", ["fetch", "check"])
def test_an_unknown_name_is_wrong_use(command: str) -> None:
    done = RUN.invoke(app, ["data", command, "one", "tow"])
    assert isinstance(done.exception, InvalidValueError)
    assert str(done.exception) == "there is no data set 'tow'. Did you mean two? The data sets are one, two"


@pytest.mark.usefixtures("folder")
def test_a_copy_that_is_nowhere_is_wrong_use() -> None:
    done = RUN.invoke(app, ["data", "fetch", "--from", "nowhere"])
    assert isinstance(done.exception, InvalidValueError)
    assert "not 'nowhere'" in str(done.exception)


def test_a_folder_that_cannot_be_made(folder: Path, copy: Path) -> None:
    folder.touch()
    done = RUN.invoke(app, ["data", "fetch", "one", "--from", str(copy)])
    assert isinstance(done.exception, SufficeError)
    assert "set SUFFICE_DATA to a folder that can be written to" in str(done.exception)


@pytest.mark.usefixtures("folder")
def test_a_bar_where_there_is_a_terminal(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Quiet(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:
            pass

        def do_GET(self) -> None:
            content = (copy / self.path[1:]).read_bytes()
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "200")
    with ThreadingHTTPServer(("127.0.0.1", 0), Quiet) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        address = f"http://127.0.0.1:{server.server_address[1]}"
        shown = invoke("fetch", "one", "--from", address).stdout
        monkeypatch.delenv("FORCE_COLOR")
        plain = invoke("fetch", "two", "--from", address).stdout
        server.shutdown()
        thread.join()
    assert "one.txt stored" in shown
    assert "downloading" not in shown
    assert f"downloading {address}/uci/two.txt" in plain
    assert "\x1b" not in plain


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals are those of POSIX")
@pytest.mark.usefixtures("interruptible")
def test_interrupted_and_run_again(tmp_path: Path) -> None:
    """A real Ctrl-C in the middle of a download; the second run asks for the rest."""
    content, half, hold, asked = bytes(400_000), threading.Event(), threading.Event(), []

    class Slow(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:
            pass

        def do_GET(self) -> None:
            asked.append(self.headers.get("Range", ""))
            start = int(asked[-1][6:-1] or 0) if asked[-1] else 0
            self.send_response(206 if start else 200)
            self.send_header("ETag", '"1"')
            self.send_header("Content-Length", str(len(content) - start))
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
            self.end_headers()
            if not start and not half.is_set():
                self.wfile.write(content[:200_000])
                self.wfile.flush()
                half.set()
                hold.wait(60.0)
            else:
                self.wfile.write(content[start:])

    with ThreadingHTTPServer(("127.0.0.1", 0), Slow) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        address = f"http://127.0.0.1:{server.server_address[1]}"
        command = [
            sys.executable,
            "-c",
            "from suffice.cli import main; main()",
            "data",
            "fetch",
            "skin",
            "--from",
            address,
        ]
        environment, pipe = os.environ | {"SUFFICE_DATA": str(tmp_path / "data")}, subprocess.PIPE
        with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=environment) as first:
            assert half.wait(60.0)
            assert first.stdout is not None
            line = first.stdout.readline()
            first.send_signal(signal.SIGINT)
            _, told = first.communicate(timeout=60.0)
        hold.set()
        second = subprocess.run(command, capture_output=True, check=False, text=True, env=environment)
        server.shutdown()
        thread.join()
    assert line == f"downloading {address}/uci/skin.txt\n"
    assert first.returncode == 1
    assert told == "suffice: interrupted; what has come so far is kept, and the same command continues from there\n"
    assert asked[1].startswith("bytes=")
    # What came is not the real file, which is said; and it is no longer kept.
    assert second.returncode == 1
    assert "its SHA-256 checksum should be e30c0a84" in second.stderr
    assert [path.name for path in (tmp_path / "data").rglob("*") if path.is_file()] == []


@pytest.mark.parametrize("command", ["list", "fetch", "check"])
def test_help_has_an_example(command: str) -> None:
    shown = RUN.invoke(app, ["data", command, "--help"], env={"COLUMNS": "80"}).output
    assert f"Example: suffice data {command}" in shown


def test_help_loads_nothing_heavy() -> None:
    code = """
import sys
from suffice.cli.app import app
app(["data", "--help"], standalone_mode=False)
heavy = ["sklearn", "torch", "matplotlib", "pooch", "requests", "urllib.request", "suffice_research.data.download"]
print([name for name in heavy if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
