"""A small HTTP server that answers as Label Studio 1.23.2 does, for the parts of its API that suffice uses.

It is a recording and not Label Studio: the fields of its answers are those that the real server gave once, in
``recorded/label_studio_1_23_2.json``. ``test_label_studio.py`` is about the real server.
"""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

RECORDED: Final[dict[str, dict[str, Any]]] = json.loads(
    (Path(__file__).parent / "recorded" / "label_studio_1_23_2.json").read_text()
)["answers"]
TOKEN: Final = "0123456789abcdef0123456789abcdef01234567"
PERSONAL_TOKEN: Final = "aaaa.bbbb.cccc"
CONFIG: Final = RECORDED["project"]["answer"]["label_config"]


class RefusedError(Exception):
    """An answer that is an error."""

    def __init__(self, name: str) -> None:
        self.status, self.answer = RECORDED[name]["status"], RECORDED[name]["answer"]


def recorded(name: str, **changes: Any) -> dict[str, Any]:
    """An answer as it was recorded, with other values."""
    found: dict[str, Any] = deepcopy(RECORDED[name]["answer"])
    unknown = set(changes) - set(found)
    assert not unknown, f"Label Studio gives no {unknown}"
    return found | changes


class RecordedServer:
    """The state of the small server.

    Attributes:
        url: Its address.
        project: The project, which has number 1.
        tasks: The tasks by number, with annotations and predictions.
        requests: The method and path of every request.
        status: A status with which every request is answered instead, or 0.
        location: Where a redirect goes.
        accesses: Access tokens that were made of the personal one.
    """

    def __init__(self, texts: list[Any], config: str = CONFIG, field: str = "text") -> None:
        self.url, self.status, self.location = "", 0, ""
        self.project = recorded("project", id=1, label_config=config, description="Ours.", expert_instruction="")
        self.tasks: dict[int, dict[str, Any]] = {}
        self.webhooks: dict[int, dict[str, Any]] = {}
        self.users = [recorded_user(1, "ann@example.com"), recorded_user(2, "bob@example.com")]
        self.requests: list[tuple[str, str]] = []
        self.accesses = 0
        self.called: Callable[[dict[str, Any]], None] = lambda _: None
        self._number = 0
        for text in texts:
            self.add_task({field: text})

    def number(self) -> int:
        self._number += 1
        return self._number

    def add_task(self, data: dict[str, Any]) -> int:
        task = deepcopy(RECORDED["tasks"]["answer"]["tasks"][0])
        number = self.number()
        self.tasks[number] = task | {"id": number, "data": data, "annotations": [], "predictions": [], "project": 1}
        return number

    def annotate(self, task: int, label: str | None, user: int = 1, **changes: Any) -> int:
        """Do what a person does in Label Studio; None skips the task."""
        number = self.number()
        result = [] if label is None else [_choice(label)]
        made = recorded("annotation", id=number, task=task, completed_by=user, result=result, **changes)
        made |= {"was_cancelled": label is None, "created_at": f"2026-11-17T00:{number // 60:02}:{number % 60:02}.0Z"}
        self.tasks[task]["annotations"].append(made)
        self.called({"action": "ANNOTATION_CREATED", "annotation": made})
        return number

    def change(self, annotation: int, label: str) -> None:
        for task in self.tasks.values():
            for each in task["annotations"]:
                if each["id"] == annotation:
                    each["result"] = [_choice(label)]
                    self.called({"action": "ANNOTATION_UPDATED", "annotation": each})

    def delete(self, annotation: int) -> None:
        for task in self.tasks.values():
            task["annotations"] = [each for each in task["annotations"] if each["id"] != annotation]
        self.called({"action": "ANNOTATIONS_DELETED", "annotations": [{"id": annotation}]})

    def predictions(self, version: str = "suffice") -> dict[int, dict[str, Any]]:
        """Predictions of a model version, by task."""
        return {
            number: each
            for number, task in self.tasks.items()
            for each in task["predictions"]
            if each["model_version"] == version
        }

    def next_task(self) -> int:
        """The task that the real server would serve: the lowest score of the project's model version."""
        found = {
            number: each["score"]
            for number, each in self.predictions(self.project["model_version"]).items()
            if not self.tasks[number]["annotations"]
        }
        return min(found, key=found.__getitem__)

    def answer(self, method: str, path: str, query: dict[str, str], sent: Any) -> tuple[int, Any]:
        """Answer a request."""
        parts = path.strip("/").split("/")
        if parts[:2] == ["api", "token"]:
            if sent != {"refresh": PERSONAL_TOKEN}:
                raise RefusedError("wrong token")
            self.accesses += 1
            return 200, {"access": f"access-{self.accesses}"}
        if parts[:2] == ["data", "upload"]:
            return 200, None
        kind, number = parts[1], int(parts[2]) if len(parts) > 2 else None
        answer: tuple[int, Any] = getattr(self, f"_{kind}")(method, number, query, sent)
        return answer

    def _projects(self, method: str, number: int | None, _: dict[str, str], sent: Any) -> tuple[int, Any]:
        if number is None:
            return 200, RECORDED["projects"]["answer"] | {"results": [self.project]}
        if number != 1:
            raise RefusedError("missing")
        if method == "PATCH":
            unknown = set(sent) - set(RECORDED["project"]["answer"])
            assert not unknown, unknown
            version = sent.get("model_version")
            if version is not None and not self.predictions(version):
                raise RefusedError("unknown version")
            self.project |= sent
        every = [each for task in self.tasks.values() for each in task["annotations"]]
        counts = {
            "task_number": len(self.tasks),
            "total_annotations_number": sum(not each["was_cancelled"] for each in every),
            "skipped_annotations_number": sum(each["was_cancelled"] for each in every),
        }
        return 200, self.project | counts

    def _tasks(self, _: str, number: int | None, query: dict[str, str], __: Any) -> tuple[int, Any]:
        if number is not None:
            if number not in self.tasks:
                raise RefusedError("missing")
            return 200, self.tasks[number]
        page, size = int(query["page"]), int(query["page_size"])
        found = sorted(self.tasks.values(), key=lambda task: int(task["id"]))
        part = found[(page - 1) * size : page * size]
        if not part and page > 1:
            raise RefusedError("missing")
        return 200, RECORDED["tasks"]["answer"] | {"total": len(found), "tasks": part}

    def _predictions(self, method: str, number: int | None, _: dict[str, str], sent: Any) -> tuple[int, Any]:
        if method == "POST":
            made = recorded("prediction", id=self.number(), **sent)
            self.tasks[sent["task"]]["predictions"].append(made)
            return 201, made
        assert method == "DELETE"
        found = [task for task in self.tasks.values() if any(each["id"] == number for each in task["predictions"])]
        if not found:
            raise RefusedError("missing")
        found[0]["predictions"] = [each for each in found[0]["predictions"] if each["id"] != number]
        return 204, None

    def _users(self, *_: Any) -> tuple[int, Any]:
        return 200, self.users

    def _webhooks(self, method: str, number: int | None, _: dict[str, str], sent: Any) -> tuple[int, Any]:
        if method == "POST":
            made = recorded("webhook", id=self.number(), **sent)
            self.webhooks[made["id"]] = made
            return 201, made
        if method == "DELETE":
            del self.webhooks[number or 0]
            return 204, None
        return 200, list(self.webhooks.values())


def recorded_user(number: int, email: str) -> dict[str, Any]:
    user: dict[str, Any] = RECORDED["users"]["answer"][0] | {"id": number, "email": email}
    return user


def _choice(label: str) -> dict[str, Any]:
    return {"from_name": "label", "to_name": "item", "type": "choices", "value": {"choices": [label]}}


@contextmanager
def served(state: RecordedServer) -> Iterator[RecordedServer]:
    """Serve the state on a port of this machine."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _handle(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            parts = urlsplit(self.path)
            state.requests.append((self.command, parts.path))
            known = {f"Token {TOKEN}", f"Bearer access-{state.accesses}"}
            try:
                if state.status:
                    status, answer = state.status, None
                elif self.headers.get("Authorization") not in known and not parts.path.startswith("/api/token"):
                    raise RefusedError("wrong token")
                else:
                    sent = json.loads(body) if body else None
                    status, answer = state.answer(self.command, parts.path, dict(parse_qsl(parts.query)), sent)
            except RefusedError as refused:
                status, answer = refused.status, refused.answer
            content = b"" if answer is None else json.dumps(answer).encode()
            self.send_response(status)
            if 300 <= status < 400:
                self.send_header("Location", state.location)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PATCH = do_DELETE = _handle  # noqa: N815 - the names are those of http.server

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        state.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield state
        finally:
            server.shutdown()
            thread.join()
