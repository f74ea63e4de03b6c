"""Addresses that are none, answers that no server should give, and files that somebody else stores in between."""

import hashlib
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from suffice.errors import InvalidValueError
from suffice_research.data import catalogue
from suffice_research.data.catalogue import SETS, DataFile, FileSource
from suffice_research.data.download import FetchResult, FetchStatus, fetch

CONTENT = bytes(range(256)) * 300
Answer = Callable[[BaseHTTPRequestHandler], None]


@contextmanager
def serving(answer: Answer) -> Iterator[str]:
    """A server that answers whatever it is asked by ``answer``; its address."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:
            pass

        def do_GET(self) -> None:
            answer(self)

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{http.server_address[1]}"
        finally:
            http.shutdown()
            thread.join()


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Makes a data set known as ``mine``, of one file, from some addresses."""
    pytest.importorskip("pooch", reason="pooch is not installed")
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr("pooch.core.time.sleep", lambda seconds: None)

    def make(*addresses: str) -> None:
        sources = tuple(map(FileSource, addresses))
        file = DataFile("uci/mine.bin", hashlib.sha256(CONTENT).hexdigest(), len(CONTENT), sources)
        monkeypatch.setattr(catalogue, "SETS", {"mine": replace(SETS["skin"], name="mine", files=(file,))})

    return make


def fetched(folder: Path, **options: Any) -> FetchResult:
    (outcome,) = fetch(["mine"], folder, **options)
    return outcome


# ------------------------------------------------------------------------------------------ addresses that are none


@pytest.mark.parametrize("mirror", ["http://[bad", "https://[::1/data", "http://a]b", "http://"])
def test_a_mirror_whose_address_is_none(mirror: str, known: Callable[..., None], tmp_path: Path) -> None:
    known("http://localhost/a.bin")
    with pytest.raises(InvalidValueError, match="is no address: ") as told:
        fetch(["mine"], tmp_path, mirror=mirror)
    assert repr(mirror) in str(told.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("mirror", ["http://localhost:port", "https:// "])
def test_a_mirror_that_nobody_can_reach(mirror: str, known: Callable[..., None], tmp_path: Path) -> None:
    known("http://localhost/a.bin")
    outcome = fetched(tmp_path, mirror=mirror)
    assert outcome.what is FetchStatus.failed
    assert "cannot be reached" in outcome.problem


# -------------------------------------------------------------------------------------- lengths that are no numbers


@pytest.mark.parametrize("length", ["²", "1²", "-5", "", "many", "0x10", "1e3"], ids=ascii)
def test_a_length_that_is_no_number_is_ignored(length: str, known: Callable[..., None], tmp_path: Path) -> None:
    told: list[int | None] = []

    def answer(request: BaseHTTPRequestHandler) -> None:
        head = b"HTTP/1.0 200 OK\r\nContent-Length: " + length.encode("latin-1") + b"\r\n\r\n"
        request.wfile.write(head + CONTENT)

    with serving(answer) as address:
        known(f"{address}/a.bin")
        outcome = fetched(tmp_path, progress=lambda _, done, total: told.append(total))
    assert (outcome.what, outcome.problem) == (FetchStatus.stored, "")
    assert outcome.path.read_bytes() == CONTENT
    assert set(told) == {None}


# --------------------------------------------------------------------------------- somebody else in the meantime


def test_a_file_that_somebody_else_stored_meanwhile_is_there(known: Callable[..., None], tmp_path: Path) -> None:
    path, asked = tmp_path / "uci" / "mine.bin", []

    def refuse(request: BaseHTTPRequestHandler) -> None:
        asked.append(request.path)
        path.write_bytes(CONTENT)
        request.send_error(404)

    with serving(refuse) as address:
        known(f"{address}/a.bin", f"{address}/b.bin")
        outcome = fetched(tmp_path)
    assert (outcome.what, outcome.problem, outcome.path) == (FetchStatus.there, "", path)
    assert asked == ["/a.bin", "/b.bin"]


def test_what_somebody_else_stored_counts_only_if_it_is_right(known: Callable[..., None], tmp_path: Path) -> None:
    def refuse(request: BaseHTTPRequestHandler) -> None:
        (tmp_path / "uci" / "mine.bin").write_bytes(CONTENT[:-1])
        request.send_error(404)

    with serving(refuse) as address:
        known(f"{address}/a.bin")
        outcome = fetched(tmp_path)
    assert outcome.what is FetchStatus.failed
    assert "answers 404" in outcome.problem
