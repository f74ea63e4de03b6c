"""How much may be sent at once."""

from typing import Final

from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from suffice.web.problems import problem

#: Bytes that the body of a request may have.
LARGEST_BODY: Final = 64 * 1024


class BodyLimit:
    """Refuses a request whose body is too large, also one that does not say its length; reads no more than that.

    Args:
        app: The application.
        largest: Bytes that a body may have.
    """

    def __init__(self, app: ASGIApp, largest: int = LARGEST_BODY) -> None:
        self._app, self._largest = app, largest

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            body = await self._body(Request(scope, receive))
        except ClientDisconnect:
            return
        if body is None:
            answer = problem(413, f"the body of a request must have at most {self._largest} bytes; send less at once")
            # What is still to come is not read.
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
        """The whole body, or None where it is too large."""
        said = request.headers.get("content-length", "0")
        if not said.isdecimal() or int(said[:20]) > self._largest:
            return None
        parts = bytearray()
        async for part in request.stream():
            parts += part
            if len(parts) > self._largest:
                return None
        return bytes(parts)
