"""Errors as HTTP status and message, and the security headers of every response."""

import json
from collections.abc import Sequence
from typing import Any, Final

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import BaseRoute, Match, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from suffice.errors import InvalidTypeError, InvalidValueError, MissingExtraError, SufficeError
from suffice.project.accounts import NotAllowedError
from suffice.project.events import shown
from suffice.project.labelling_project import ConflictError
from suffice.project.storage import StorageError, StorageFullError
from suffice.report.html_page import rendered
from suffice.web.schemas import MEANINGS

#: What a page may load: files of this server, and no inline content.
PAGE_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
#: What the report may load: nothing; its style and its figures are inline.
REPORT_POLICY: Final = (
    "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
#: The headers of every answer, unless it has one of that name already.
SECURITY_HEADERS: Final = {
    "Content-Security-Policy": PAGE_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class SafeHeaders:
    """Adds the headers to every answer, also to those of errors.

    Args:
        app: The application.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in SECURITY_HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, with_headers if scope["type"] == "http" else send)


# The first that fits; what is none of them is in the way of everything, and may pass.
_STATUSES: Final[tuple[tuple[type[SufficeError], int], ...]] = (
    (StorageFullError, 507),
    (StorageError, 503),
    (NotAllowedError, 403),
    (ConflictError, 409),
    (MissingExtraError, 501),
    (InvalidValueError, 422),
    (InvalidTypeError, 422),
)


def problem(status: int, sentence: str) -> JSONResponse:
    """An answer that says what went wrong."""
    # A sentence may quote what came, and that may be half of a letter.
    return JSONResponse({"detail": sentence.encode("utf-8", "replace").decode()}, status_code=status)


def problem_page(status: int, sentence: str) -> HTMLResponse:
    """A page that says what went wrong, for a person who opened the address in a browser."""
    page = rendered("problem.html.jinja", package="suffice.web", sentence=f"{sentence[0].upper()}{sentence[1:]}.")
    return HTMLResponse(page, status_code=status)


def status_of(error: SufficeError) -> int:
    """The status of an error that is raised on purpose.

    Examples:
        >>> status_of(InvalidValueError("n must be 1 or more")), status_of(SufficeError("the disk is away"))
        (422, 503)
    """
    return next((status for kind, status in _STATUSES if isinstance(error, kind)), 503)


def add_problem_handlers(app: FastAPI, routes: Sequence[BaseRoute]) -> None:
    """Answer every error of an application with a sentence.

    Args:
        app: The application.
        routes: Its routes, to say what can be done where.
    """

    async def on_suffice(_: Request, error: Exception) -> Response:
        assert isinstance(error, SufficeError)
        return problem(status_of(error), str(error))

    async def on_invalid(_: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        return problem(422, sentence_of(error.errors()))

    async def on_http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        if error.status_code == 405:
            allowed = _allowed(request, routes)
            answer = problem(405, f"{request.method} cannot be done here; {allowed} can")
            answer.headers["Allow"] = allowed
            return answer
        answer = problem(error.status_code, _said(request, error))
        answer.headers.update(error.headers or {})
        return answer

    async def on_anything(_: Request, __: Exception) -> Response:
        answer = problem(500, "something went wrong that should not have; what suffice serve printed says more")
        # This one is made outside of all that adds them.
        answer.headers.update(SECURITY_HEADERS)
        return answer

    app.add_exception_handler(SufficeError, on_suffice)
    app.add_exception_handler(RequestValidationError, on_invalid)
    app.add_exception_handler(HTTPException, on_http)
    app.add_exception_handler(Exception, on_anything)


def sentence_of(errors: Sequence[Any]) -> str:
    """First error of a request, in a sentence.

    Args:
        errors: What pydantic found, one thing or more.

    Examples:
        >>> sentence_of([{"type": "missing", "loc": ("body", "person"), "msg": "Field required", "input": {}}])
        'person is missing; it must be a name of 1 to 64 characters without control characters'
    """
    first = errors[0]
    kind, where = first["type"], [str(part) for part in first["loc"]]
    if kind == "json_invalid":
        return f"the body must be JSON, but {first['ctx']['error']} at character {where[-1]}"
    name = where[1] if len(where) > 1 else "the body"
    if kind == "extra_forbidden":
        return f"{shown(where[-1])} is not known here; leave it out"
    meaning = MEANINGS.get(name)
    if meaning is None:
        return "the body must be a JSON object with the names that /api/openapi.json gives"
    if kind == "missing":
        return f"{name} is missing; it must be {meaning}"
    if name == "password":
        return f"{name} must be {meaning}"
    return f"{name} must be {meaning}, not {_came(first['input'])}"


def _came(value: Any) -> str:
    """The received value, in JSON terms."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    return shown(value) if isinstance(value, str | int | float) else f"a {type(value).__name__}"


def _said(request: Request, error: HTTPException) -> str:
    # Starlette's own words for these two are no sentences.
    if error.status_code == 404 and error.detail == "Not Found":
        return f"there is nothing at {request.url.path[:200]}; /api/openapi.json says what there is"
    if error.status_code == 400:
        return "the body must be JSON in UTF-8, not nested too deeply, without endless numbers"
    return str(error.detail)


def _allowed(request: Request, routes: Sequence[BaseRoute]) -> str:
    """Allowed methods of an address. Starlette itself names those of the first route only."""
    fitting = (route for route in routes if isinstance(route, Route))
    methods = {
        method
        for route in fitting
        if route.matches(dict(request.scope))[0] is not Match.NONE
        for method in route.methods or ()
    }
    return ", ".join(sorted(methods)) or "GET"
