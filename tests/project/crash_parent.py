"""A process that has everything imported and forks servers of one project, which its parent kills.

Its arguments are ``PLACE web|lines|acts|record LOG``. It prints its port, then forks a server for each line "start"
that it reads, and prints its process number; for "reap NUMBER" it waits for the end of one.
"""

import asyncio
import gc
import json
import os
import signal
import socket
import socketserver
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import uvicorn

from suffice.errors import SufficeError
from suffice.project.background_learner import BackgroundLearner
from suffice.project.create import open_project, write_project
from suffice.project.labelling_project import Project
from suffice.project.storage import StorageError
from suffice.web.access import Access
from suffice.web.server import create_app, listening, serve_on
from tests.project.crash_acts import act_and_record, act_once, act_until_killed
from tests.project.making_projects import about, some_items


def serve_web(place: str, listener: socket.socket) -> None:
    """Serve as ``suffice serve`` does."""
    project = open_project(place)
    background = BackgroundLearner(project)
    app = create_app(project, background, Access())
    with background:
        serve_on(app, listener, "127.0.0.1", lambda _: None)


def answer(project: Project, asked: dict[str, Any]) -> dict[str, Any]:
    """Do what one line says, and give what the API would."""
    kind, person = asked.pop("kind"), asked.pop("person")
    try:
        if kind == "next":
            items = project.next(person)
            return {"status": 200, "items": [{"item": each.position, "until": each.until} for each in items]}
        if "item" in asked:
            asked["position"] = asked.pop("item")
        if kind == "start_check":
            asked |= {"tolerance": 0.5, "predict": lambda *_: project.X[:, 0]}
        seq, item, repeated = getattr(project, kind)(person=person, **asked)
        return {"status": 200, "seq": seq, "item": item, "repeated": repeated}
    except StorageError as error:
        return {"status": 503, "detail": str(error)}
    except SufficeError as error:
        return {"status": 409, "detail": str(error)}


def serve_lines(place: str, listener: socket.socket) -> None:
    """Serve the project itself: a line of JSON for a line of JSON, a thread for each who connects."""
    project = open_project(place)

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            for line in self.rfile:
                self.wfile.write(json.dumps(answer(project, json.loads(line))).encode() + b"\n")

    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler, bind_and_activate=False)
    server.daemon_threads = True
    server.socket.close()
    server.socket = listener
    server.serve_forever()


async def ask(app: Any, path: str, body: bytes) -> None:
    """Have one request answered without a server."""
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST" if body else "GET",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": b"",
        "headers": [(b"host", b"127.0.0.1"), (b"content-type", b"application/json")],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 1),
    }
    statuses = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        statuses.append(message.get("status"))

    await app(scope, receive, send)
    assert statuses[0] == 200


def warm_up(kind: str) -> None:
    """Have everything imported and made that a server would when it starts."""
    with tempfile.TemporaryDirectory() as folder:
        project = write_project(Path(folder) / "x", about("regression"), some_items(5, task="regression"))
        app = create_app(project, BackgroundLearner(project), Access())
        uvicorn.Config(app, lifespan="off", ws="none").load()
        for path, body in (("/health", b""), ("/api/next", b'{"person": "ann"}'), ("/api/status", b"")):
            asyncio.run(ask(app, path, body))
        asyncio.run(ask(app, "/api/labels", b'{"person": "ann", "item": 0, "label": 1, "request": "r"}'))
        project.close()
        if kind in {"acts", "record"}:
            act_once(f"{folder}/y")
    # Only a process of one thread can be forked without harm.
    for _ in range(1000):
        if threading.active_count() == 1:
            return
        time.sleep(0.01)
    raise AssertionError(threading.enumerate())


def fork(place: str, serve: Callable[[str, socket.socket], None], listener: socket.socket, log: str) -> int:
    """Fork a server."""
    child = os.fork()
    if child:
        return child
    # A child must never go on as if it were its parent.
    try:
        errors = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.dup2(errors, 1)
        os.dup2(errors, 2)
        serve(place, listener)
    except BaseException:
        import traceback

        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(1)


def fork_servers() -> None:
    """Fork servers until nobody asks for more."""
    place, kind, log = sys.argv[1:]
    warm_up(kind)
    # What is there already is not looked at again by every child, which would copy it.
    gc.collect()
    gc.freeze()
    children = set()
    serve = {"web": serve_web, "lines": serve_lines, "acts": act_until_killed, "record": act_and_record}[kind]
    with listening("127.0.0.1", 0) as listener:
        print(listener.getsockname()[1], flush=True)
        for line in sys.stdin:
            if line == "start\n":
                child = fork(place, serve, listener, log)
                children.add(child)
                print(child, flush=True)
            else:
                child = int(line.split()[1])
                os.waitpid(child, 0)
                children.discard(child)
                print("reaped", flush=True)
    for child in children:
        os.kill(child, signal.SIGKILL)
