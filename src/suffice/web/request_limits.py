"""The limit of the size of a request."""

from typing import Final

from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from suffice.web.http_messages import problem

#: Maximal number of bytes of the body of a request.
LARGEST_BODY: Final = 64 * 1024


class BodyLimit:
    """Refuses a request whose body is too large, also if its length is not stated; reads no more than the limit.

    Args:
        app: The application.
        largest: Bytes that a body may have.
        streamed: Paths whose handlers read the body themselves, and limit it.
    """

    def __init__(self, app: ASGIApp, largest: int = LARGEST_BODY, streamed: frozenset[str] = frozenset()) -> None:
        self._app, self._largest, self._streamed = app, largest, streamed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http" or scope["path"] in self._streamed:
            await self._app(scope, receive, send)
            return
        try:
            body = await self._body(Request(scope, receive))
        except ClientDisconnect:
            return
        if body is None:
            answer = problem(413, f"the body of a request must have at most {self._largest} bytes; send less at once")
            # The rest of the body is not read.
            answer.headers["Connection"] = "close"
            await answer(scope, receive, send)
            return
        given = False

        async def again() -> Message:
            nonlocal given
            if given:
                return await receive()
            given = True
            return {"type": "http.request", "body": body, "more_body": False}

        await self._app(scope, again, send)

    async def _body(self, request: Request) -> bytes | None:
        """The whole body, or None if it is too large."""
        said = request.headers.get("content-length", "0")
        if not said.isdecimal() or int(said[:20]) > self._largest:
            return None
        parts = bytearray()
        async for part in request.stream():
            parts += part
            if len(parts) > self._largest:
                return None
        return bytes(parts)
