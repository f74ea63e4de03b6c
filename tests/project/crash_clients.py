"""People who label without pause, and remember everything that was acknowledged to them."""

import http.client
import json
import random
import socket
import threading
from collections.abc import Callable
from typing import Any, Protocol

PATHS = {
    "next": "/api/next",
    "label": "/api/labels",
    "skip": "/api/skips",
    "correct": "/api/corrections",
    "undo": "/api/undo",
}


class Connection(Protocol):
    """A way to a server."""

    def send(self, message: dict[str, Any]) -> dict[str, Any]:
        """Send something to do, and wait for the answer."""

    def close(self) -> None:
        """Hang up."""


class Lines:
    """A connection on which a line is answered by a line."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self._file = self._socket.makefile("rb")

    def send(self, message: dict[str, Any]) -> dict[str, Any]:
        self._socket.sendall(json.dumps(message).encode() + b"\n")
        line = self._file.readline()
        if not line.endswith(b"\n"):
            raise ConnectionError
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        self._file.close()
        self._socket.close()


class Web:
    """A connection to the API."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def send(self, message: dict[str, Any]) -> dict[str, Any]:
        body = {name: value for name, value in message.items() if name != "kind"}
        return self.ask("POST", PATHS[message["kind"]], body)

    def ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        content = None if body is None else json.dumps(body).encode()
        headers = {} if body is None else {"Content-Type": "application/json"}
        self._connection.request(method, path, content, headers)
        answer = self._connection.getresponse()
        return {**json.loads(answer.read()), "status": answer.status}

    def close(self) -> None:
        self._connection.close()


class Client(threading.Thread):
    """One person: asks, labels, skips, corrects and undoes, and tries again what was not acknowledged.

    Args:
        person: The name, which is also the seed of what is done.
        connect: Makes a connection.
        labels: The label of each item.
        checks: How often to start a check, or to abort the open one, instead of anything else.
    """

    def __init__(
        self, person: str, connect: Callable[[], Connection], labels: list[float], checks: float = 0.0
    ) -> None:
        super().__init__(daemon=True)
        self._checks = checks
        self.person, self._connect, self._labels = person, connect, labels
        self._rng = random.Random(person)
        self.sent: dict[str, dict[str, Any]] = {}
        self.acknowledged: list[tuple[dict[str, Any], dict[str, Any]]] = []
        self.asked: list[dict[str, Any]] = []
        self.refused: list[str] = []
        self.failed: list[Any] = []
        self.broken = 0
        self.leaving = threading.Event()
        self._item: int | None = None
        self._mine: list[int] = []

    def run(self) -> None:
        connection: Connection | None = None
        pending: dict[str, Any] | None = None
        while not self.failed and not (self.leaving.is_set() and pending is None):
            pending = pending or self._choose()
            try:
                connection = connection or self._connect()
                answer = connection.send(pending)
            except (OSError, http.client.HTTPException, ValueError):
                # Killed: perhaps before it was written, perhaps after. Most try again under the same name.
                self.broken += 1
                if connection is not None:
                    connection.close()
                connection = None
                if self._rng.random() < 0.3:
                    pending = None
                continue
            if answer["status"] == 503:
                continue
            self._take(pending, answer)
            pending = None
        if connection is not None:
            connection.close()

    def _choose(self) -> dict[str, Any]:
        if self._checks and self._rng.random() < self._checks:
            return self._new("start_check", size=3) if self._rng.random() < 0.75 else self._new("abort_check")
        chance = self._rng.random()
        if chance < 0.06 and self._mine:
            item = self._rng.choice(self._mine)
            return self._new("correct", item=item, label=self._labels[item] + self._rng.choice([0.0, 0.5]))
        if chance < 0.12 and self._mine:
            return self._new("undo")
        if self._item is None:
            return {"kind": "next", "person": self.person}
        if chance < 0.2:
            return self._new("skip", item=self._item)
        return self._new("label", item=self._item, label=self._labels[self._item])

    def _new(self, kind: str, **content: Any) -> dict[str, Any]:
        request = f"{self.person}-{len(self.sent)}"
        self.sent[request] = {"kind": kind, "person": self.person, "request": request, **content}
        return self.sent[request]

    def _take(self, message: dict[str, Any], answer: dict[str, Any]) -> None:
        status = answer["status"]
        if status == 200 and message["kind"] == "next":
            if not answer["items"]:
                self._mine = self._mine or [0]
                return
            self._item = answer["items"][0]["item"]
            self.asked.append(answer["items"][0])
            return
        if status == 200:
            self.acknowledged.append((message, answer))
            if message["kind"] == "label":
                self._mine.append(message["item"])
        elif status == 409:
            self.refused.append(message["request"])
        else:
            self.failed.append((message, answer))
        self._item = None
