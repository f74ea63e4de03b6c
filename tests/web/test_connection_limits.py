"""Slow, idle and too many connections, while somebody labels."""

import http.client
import io
import logging
import signal
import socket
import ssl
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from starlette.types import Receive, Scope, Send

from suffice.web import connections
from suffice.web.connections import ConnectionLimits, Remarks, connection_limits, network_of
from suffice.web.server import ServerOptions, listening, serve_on
from tests.web.test_serving import Server, posted, served

LIMITS = ConnectionLimits(
    connections=12, per_address=10, header_seconds=0.4, body_seconds=0.6, idle_seconds=1, stalled_seconds=0.5
)
HEAD = b"GET / HTTP/1.1\r\nHost: here\r\n"
POST = b"POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 100\r\n\r\n"


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers with the length of the body, or with many bytes; to /refuse before it has read the body."""
    length, more = 0, scope["path"] != "/refuse"
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        length, more = length + len(message.get("body", b"")), message.get("more_body", False)
    body = b"x" * 30_000_000 if scope["path"] == "/large" else str(length).encode()
    headers = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


@contextmanager
def running(options: ServerOptions) -> Iterator[int]:
    """A server in a thread; its port."""
    ready = threading.Event()
    with listening("127.0.0.1", 0) as listener:
        port = int(listener.getsockname()[1])

        def serve() -> None:
            serve_on(application, listener, "127.0.0.1", lambda _: ready.set(), options)

        stopped = pytest.MonkeyPatch()
        servers: list[Any] = []
        stopped.setattr("suffice.web.server._stopped_by_signals", lambda server: _noted(server, servers))
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            assert ready.wait(30.0)
            yield port
        finally:
            servers[0].should_exit = True
            thread.join(30.0)
            stopped.undo()
            assert not thread.is_alive()


@contextmanager
def _noted(server: Any, servers: list[Any]) -> Iterator[None]:
    servers.append(server)
    yield


@pytest.fixture
def port() -> Iterator[int]:
    with running(ServerOptions(limits=LIMITS)) as found:
        yield found


def connected(port: int, sent: bytes = b"") -> socket.socket:
    found = socket.create_connection(("127.0.0.1", port), timeout=10.0)
    found.sendall(sent)
    return found


def rest(connection: socket.socket) -> bytes:
    """All that still comes until the connection is closed."""
    parts = []
    try:
        while part := connection.recv(65536):
            parts.append(part)
    except ConnectionResetError:
        pass
    return b"".join(parts)


def answered(port: int) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10.0)
    try:
        connection.request("GET", "/")
        return connection.getresponse().status
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("sent", "seconds", "said"),
    [
        (b"", 0.4, b""),
        (b"GET", 0.4, b"408"),
        (HEAD + b"X-", 0.4, b"408"),
        (POST, 0.6, b"408"),
        (POST + b"x" * 50, 0.6, b"408"),
        (HEAD + b"\r\n", 1.0, b"200"),
        (HEAD + b"\r\n" + HEAD, 0.4, b"408"),
        (POST.replace(b"/ ", b"/refuse "), 0.6, b"200"),
    ],
)
def test_a_client_that_keeps_the_server_waiting_is_closed(port: int, sent: bytes, seconds: float, said: bytes) -> None:
    began = time.monotonic()
    with connected(port, sent) as connection:
        found = rest(connection)
    assert said in found
    assert bool(found) == bool(said)
    assert seconds - 0.05 <= time.monotonic() - began < seconds + 5.0
    assert answered(port) == 200


@pytest.mark.parametrize("sent", [HEAD, POST])
def test_a_byte_now_and_then_gains_no_time(port: int, sent: bytes) -> None:
    began = time.monotonic()
    with connected(port, sent) as connection:
        connection.settimeout(0.1)
        while time.monotonic() - began < 8.0:
            try:
                connection.sendall(b"x")
                if not connection.recv(100):
                    break
            except TimeoutError:
                continue
            except OSError:
                break
    assert time.monotonic() - began < 6.0


def test_somebody_who_reads_nothing_is_closed_and_somebody_who_reads_slowly_is_not(port: int) -> None:
    with connected(port, HEAD.replace(b"/", b"/large", 1) + b"\r\n") as lazy:
        time.sleep(1.5)
        assert len(rest(lazy)) < 30_000_000
    with connected(port, HEAD.replace(b"/", b"/large", 1) + b"Connection: close\r\n\r\n") as slow:
        taken = 0
        while part := slow.recv(2_000_000):
            taken += len(part)
            if taken < 12_000_000:
                time.sleep(0.1)
        assert taken > 30_000_000


def test_whoever_waited_longest_makes_room_for_the_newest(port: int) -> None:
    with ExitStack() as stack:
        idle = [stack.enter_context(connected(port, HEAD)) for _ in range(LIMITS.per_address)]
        time.sleep(0.1)
        assert answered(port) == 200
        assert rest(idle[0]) == b""
        # The others are still there.
        idle[-1].sendall(b"\r\n")
        assert idle[-1].recv(15) == b"HTTP/1.1 200 OK"
        for _ in range(50):
            stack.enter_context(connected(port))
        assert answered(port) == 200


def test_who_is_being_answered_is_not_closed_and_others_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = threading.Event()

    async def busy(scope: Scope, _: Receive, send: Send) -> None:
        import asyncio

        while scope["path"] == "/busy" and not slow.is_set():
            await asyncio.sleep(0.02)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})

    monkeypatch.setattr("tests.web.test_connection_limits.application", busy)
    with running(ServerOptions(limits=LIMITS)) as port, ExitStack() as stack:
        requests = HEAD.replace(b"/", b"/busy", 1) + b"Connection: close\r\n\r\n"
        mine = [stack.enter_context(connected(port, requests)) for _ in range(LIMITS.per_address)]
        time.sleep(0.3)
        with connected(port) as refused:
            assert rest(refused).startswith(b"HTTP/1.1 503 ")
        slow.set()
        assert all(rest(each).startswith(b"HTTP/1.1 200 ") for each in mine)
        assert answered(port) == 200


def test_one_address_leaves_room_for_others(port: int) -> None:
    with ExitStack() as stack:
        mine = [stack.enter_context(connected(port, HEAD)) for _ in range(LIMITS.per_address)]
        other = socket.socket()
        stack.enter_context(other)
        other.settimeout(10.0)
        other.bind(("127.0.0.2", 0))
        other.connect(("127.0.0.1", port))
        for _ in range(30):
            stack.enter_context(connected(port))
        other.sendall(HEAD + b"Connection: close\r\n\r\n")
        assert rest(other).startswith(b"HTTP/1.1 200 ")
        assert rest(mine[0]) == b""


def test_what_happens_often_is_written_once_a_minute() -> None:
    now = [0.0]
    remarks = Remarks(lambda: now[0])
    written = logging.StreamHandler(io.StringIO())
    connections._LOG.addHandler(written)
    for _ in range(5):
        remarks.note("Closed {} connection(s).")
    now[0] = 61.0
    remarks.note("Closed {} connection(s).")
    connections._LOG.removeHandler(written)
    assert written.stream.getvalue() == "Closed 1 connection(s).\nClosed 5 connection(s).\n"

    def record(text: str, **others: Any) -> logging.LogRecord:
        return logging.makeLogRecord({"name": "uvicorn.error", "msg": text, **others})

    assert [remarks.filter(record("Invalid HTTP request received.")) for _ in range(3)] == [True, False, False]
    assert all(remarks.filter(record("Exception in ASGI application", exc_info=(1, 2, 3))) for _ in range(3))
    now[0] = 122.0
    assert remarks.filter(record("Invalid HTTP request received."))


def test_limits_leave_descriptors_for_the_database() -> None:
    for descriptors in (128, 256, 512, 1024, 65536):
        limits = connection_limits(descriptors)
        assert 16 <= limits.connections <= max(16, descriptors - 128)
        assert 1 <= limits.per_address <= limits.connections
    assert connection_limits().connections >= 16
    assert network_of("fe80::1%eth0") == "fe80::/64"


def certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate of 127.0.0.1 and its key."""
    import shutil
    import subprocess

    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    cert, key = folder / "cert.pem", folder / "key.pem"
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=127.0.0.1"
    files = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(cert)]
    subprocess.run([*command.split(), *files], check=True, capture_output=True)
    return cert, key


def test_half_of_a_tls_handshake_keeps_nobody_out(tmp_path: Path) -> None:
    from dataclasses import replace

    from suffice.web.server import server_options

    cert, key = certificate(tmp_path)
    options = replace(server_options(cert, key), limits=LIMITS)
    trusted = ssl.create_default_context(cafile=str(cert))
    with running(options) as port, ExitStack() as stack:
        half = [stack.enter_context(connected(port)) for _ in range(200)]
        connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=10.0, context=trusted)
        connection.request("GET", "/")
        assert connection.getresponse().read() == b"0"
        connection.close()
        assert rest(half[0]) == b""


# A whole server under attack.


def labels_during(server: Server, attack: Callable[[int], None], seconds: float) -> list[float]:
    """Seconds that labels took while something happened to the server."""
    from urllib.parse import urlsplit

    port = urlsplit(server.url).port
    assert port is not None
    attack(port)
    took, end, number = [], time.monotonic() + seconds, 0
    while time.monotonic() < end:
        item = posted(server, "next", person="Ann")["items"][0]["item"]
        began = time.monotonic()
        posted(server, "labels", person="Ann", item=item, label="spam" if item % 2 else "ham", request=f"r{number}")
        took.append(time.monotonic() - began)
        number += 1
        time.sleep(0.1)
    return took


def under_attack(tmp_path: Path, idle: int, half: int, slow: int, seconds: float) -> list[float]:
    """Seconds that labels took while there were idle connections, half-sent requests and bodies of a byte a second."""
    mails = tmp_path / "mails.csv"
    mails.write_text("size,words\n" + "".join(f"{k / 7:.3f},{k * k % 11}\n" for k in range(400)))
    done = threading.Event()
    with ExitStack() as stack:
        server = stack.enter_context(served(str(mails), "--classes", "spam,ham"))

        def attack(port: int) -> None:
            for _ in range(idle):
                stack.enter_context(connected(port))
            for _ in range(half):
                stack.enter_context(connected(port, b"GET /api/status HTTP/1.1\r\nHost: here\r\nX-"))
            request = f"POST /api/labels HTTP/1.1\r\nHost: here\r\nAuthorization: Bearer {server.token}\r\n"
            head = f"{request}Content-Type: application/json\r\nContent-Length: 5000\r\n\r\n".encode()
            dripping = [stack.enter_context(connected(port, head)) for _ in range(slow)]

            def drip() -> None:
                while not done.wait(1.0):
                    for each in dripping:
                        try:
                            each.send(b" ")
                        except OSError:
                            continue

            thread = threading.Thread(target=drip)
            thread.start()
            stack.callback(thread.join)
            stack.callback(done.set)

        took = labels_during(server, attack, seconds)
        done.set()
        time.sleep(0.1)
        server.process.send_signal(signal.SIGTERM)
        said = server.process.communicate(timeout=60)[0]
        assert said.count("\n") <= 6, said[:2000]
    return took


@pytest.mark.slow
def test_labels_are_acknowledged_under_attack(tmp_path: Path) -> None:
    took = under_attack(tmp_path, 60, 60, 60, 1.0)
    assert max(took) < 1.0


@pytest.mark.slow
@pytest.mark.parametrize(("idle", "half", "slow"), [(1100, 0, 0), (0, 260, 0), (0, 0, 300), (1100, 260, 300)])
def test_labels_are_acknowledged_under_a_large_attack(tmp_path: Path, idle: int, half: int, slow: int) -> None:
    took = under_attack(tmp_path, idle, half, slow, 30.0 if idle and half and slow else 10.0)
    print(f"{len(took)} labels, median {statistics.median(took):.3f} s, worst {max(took):.3f} s")
    assert max(took) < 1.0
