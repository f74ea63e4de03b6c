"""Requests that are answered in this process, without a network, in one event loop: a thousand in a second or two."""

import asyncio
from collections.abc import Mapping
from types import TracebackType
from typing import Any, NamedTuple
from urllib.parse import unquote


class Message(NamedTuple):
    """A request.

    Attributes:
        method: Its method.
        target: Its path and its query, percent-encoded.
        body: Its body.
        headers: Its headers.
    """

    method: str
    target: str
    body: bytes = b""
    headers: Mapping[str, str] = {}


class Reply(NamedTuple):
    """What was answered."""

    status: int
    headers: dict[str, str]
    body: bytes


class InProcess:
    """Asks applications in this process.

    Args:
        host: The host that all requests name.
    """

    def __init__(self, host: str = "testserver") -> None:
        self._host = host
        self._runner = asyncio.Runner()

    def __enter__(self) -> "InProcess":
        self._runner.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._runner.__exit__(kind, error, trace)

    def ask(self, app: Any, message: Message, **more: str) -> Reply:
        """Send a request and wait for the answer.

        Args:
            app: The application.
            message: The request.
            more: Further headers.
        """
        return self._runner.run(self._answered(app, message, more))

    async def _answered(self, app: Any, message: Message, more: Mapping[str, str]) -> Reply:
        path, _, query = message.target.partition("?")
        headers = {"host": self._host, **{name.lower(): value for name, value in (message.headers | more).items()}}
        if message.body or message.method == "POST":
            headers["content-length"] = str(len(message.body))
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": message.method,
            "scheme": "http",
            "path": unquote(path),
            "raw_path": path.encode("latin-1"),
            "root_path": "",
            "query_string": query.encode("latin-1"),
            "headers": [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 1),
        }
        sent: list[dict[str, Any]] = []
        asked = False

        async def receive() -> dict[str, Any]:
            nonlocal asked
            if asked:
                return {"type": "http.disconnect"}
            asked = True
            return {"type": "http.request", "body": message.body, "more_body": False}

        async def send(part: dict[str, Any]) -> None:
            sent.append(part)

        await app(scope, receive, send)
        start = sent[0]
        given = {name.decode("latin-1"): value.decode("latin-1") for name, value in start["headers"]}
        return Reply(start["status"], given, b"".join(part.get("body", b"") for part in sent[1:]))
