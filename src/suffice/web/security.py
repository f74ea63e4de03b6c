"""Access control and request limits of the server."""

import asyncio
import hashlib
import hmac
import ipaddress
import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import parse_qs

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request, cookie_parser
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from suffice.errors import InvalidValueError
from suffice.web.http_errors import problem, problem_page

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


#: The header in which a page shows that it is ours.
CSRF_HEADER: Final = "X-Suffice-CSRF"
#: What needs no token: a load balancer has none.
OPEN_PATHS: Final = frozenset({"/health"})
_SHORTEST_TOKEN: Final = 16
_LONGEST_TOKEN: Final = 200
_COOKIE_SECONDS: Final = 30 * 24 * 3600
_SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_HOST: Final = re.compile(r"(?:\[(?P<six>[0-9A-Fa-f:.]+)\]|(?P<name>[A-Za-z0-9_.-]+))(?::[0-9]{0,5})?")
# Whoever guesses waits; others are served meanwhile.
_GUESS_SECONDS: Final = 0.3


@dataclass(frozen=True)
class Access:
    """Who may come in.

    Attributes:
        host: The address that is listened on.
        token: What everybody has to know, or None where only this machine can come in.
        csrf: What the page sends with everything that changes something.
    """

    host: str = "127.0.0.1"
    token: str | None = field(default=None, repr=False)
    csrf: str = field(default="", repr=False)

    @property
    def cookie_name(self) -> str:
        """Name of the cookie: of this token alone, as all ports of a machine share their cookies."""
        return f"suffice_{self._derived('name')[:12]}"

    @property
    def cookie_value(self) -> str:
        """What the cookie holds: nothing that the token could be told from."""
        return self._derived("cookie")

    def knows(self, token: str) -> bool:
        """Whether a token is the right one; takes as long for a wrong one."""
        return hmac.compare_digest(_bytes(token), _bytes(self.token or ""))

    def serves(self, host: str) -> bool:
        """Whether the Host of a request is one of ours.

        Without a token a web site could point its own name at this machine and read everything as if it were here. With
        one it cannot: the cookie belongs to the name that a person opened.

        Examples:
            >>> local = Access()
            >>> local.serves("localhost:8000"), local.serves("[::1]:8000"), local.serves("evil.example:8000")
            (True, True, False)
        """
        if self.token is not None:
            return True
        name = host_name(host)
        return name in {"localhost", "127.0.0.1", "::1"} or (name != "" and name == self.host.lower())

    def _derived(self, purpose: str) -> str:
        return _derived(self.token or "", purpose)


def granted_access(host: str, token: str | None = None) -> Access:
    """Decide who may come in.

    Args:
        host: The address to listen on.
        token: What everybody has to know, or None to let this machine alone come in.

    Raises:
        InvalidValueError: Others could come in without a token, or it is easy to guess.

    Examples:
        >>> granted_access("127.0.0.1").token is None
        True
        >>> granted_access("0.0.0.0")
        Traceback (most recent call last):
        ...
        suffice.errors.InvalidValueError: --host 0.0.0.0 lets other machines in, which ... refuses without a token: ...
    """
    if token is None:
        if not is_loopback(host):
            raise InvalidValueError(
                f"--host {host or repr(host)} lets other machines in, which suffice serve refuses without a token: "
                "give --token too, or set SUFFICE_TOKEN"
            )
        return Access(host=host, csrf=secrets.token_urlsafe(24))
    if not _SHORTEST_TOKEN <= len(token) <= _LONGEST_TOKEN or not all("!" <= letter <= "~" for letter in token):
        raise InvalidValueError(
            f"the token (SUFFICE_TOKEN) must be {_SHORTEST_TOKEN} to {_LONGEST_TOKEN} letters, digits or signs of "
            f"ASCII without spaces, but it has {len(token)} characters; --token makes a good one"
        )
    # A page that is open while the server is started again goes on with the same token.
    return Access(host=host, token=token, csrf=_derived(token, "csrf"))


def made_token() -> str:
    """A token that nobody guesses."""
    return secrets.token_urlsafe(24)


def is_loopback(host: str) -> bool:
    """Whether an address can be reached from this machine alone.

    Examples:
        >>> is_loopback("localhost"), is_loopback("127.0.0.1"), is_loopback("0.0.0.0"), is_loopback("")
        (True, True, False, False)
    """
    try:
        return host.lower() == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def host_name(host: str) -> str:
    """The name in a Host header, without the port; empty where it is none.

    Examples:
        >>> host_name("LocalHost:8000"), host_name("[::1]"), host_name("a@b:1"), host_name("::1:x")
        ('localhost', '::1', '', '')
    """
    found = _HOST.fullmatch(host)
    return "" if found is None else (found["six"] or found["name"]).lower()


class Gate:
    """Lets a request through to the application, or answers it.

    Args:
        app: The application.
        access: Who may come in.
    """

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app, self._access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        answer = await self._answer(Request(scope))
        await (self._app if answer is None else answer)(scope, receive, send)

    async def _answer(self, request: Request) -> Response | None:
        """What to say to somebody who may not come in; None to somebody who may."""
        headers = request.headers
        if not self._access.serves(headers.get("host", "")):
            return problem(403, f"this server answers to localhost only, not to {headers.get('host', 'no name')!r}")
        if request.url.path in OPEN_PATHS:
            return None
        cookie = False
        if self._access.token is not None:
            cookie = _cookie(headers, self._access.cookie_name, self._access.cookie_value)
            if (answer := await self._without_token(request, cookie=cookie)) is not None:
                return answer
        if request.method in _SAFE_METHODS:
            return None
        return self._foreign(headers, cookie=cookie)

    async def _without_token(self, request: Request, *, cookie: bool) -> Response | None:
        refuse = problem_page if request.url.path == "/" else problem
        asked = parse_qs(request.url.query, max_num_fields=100).get("token", []) if request.url.path == "/" else []
        if asked and request.method == "GET":
            return self._welcome() if self._access.knows(asked[0]) else await _refused(refuse)
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            return None if self._access.knows(given.strip()) else await _refused(refuse)
        if cookie:
            return None
        return refuse(
            401, "a token is needed: open the address that suffice serve printed, or send it as Authorization: Bearer"
        )

    def _welcome(self) -> Response:
        """Keep in a cookie that the token was right, and take it out of the address."""
        answer = RedirectResponse("/", status_code=303)
        answer.set_cookie(
            self._access.cookie_name,
            self._access.cookie_value,
            max_age=_COOKIE_SECONDS,
            httponly=True,
            samesite="lax",
            path="/",
        )
        return answer

    def _foreign(self, headers: Headers, *, cookie: bool) -> Response | None:
        """Refuse what another web site has a browser send; a script, which sends what no browser leaves out, may."""
        origin = headers.get("origin")
        if origin is not None and origin.partition("://")[2].lower() != headers.get("host", "").lower():
            return problem(403, f"this was sent by a page of {origin[:200]!r}, not by a page of this server")
        if origin is None and "sec-fetch-site" not in headers and not cookie:
            return None
        if not hmac.compare_digest(_bytes(headers.get(CSRF_HEADER, "")), _bytes(self._access.csrf)):
            return problem(403, f"the header {CSRF_HEADER} must hold the csrf value of /api/project: reload the page")
        return None


async def _refused(refuse: Callable[[int, str], Response]) -> Response:
    await asyncio.sleep(_GUESS_SECONDS)
    return refuse(401, "the token is wrong: open the address that suffice serve printed when it started")


def _cookie(headers: Headers, name: str, value: str) -> bool:
    # Cookies of other programs on this machine come along, and not all of them keep to the rules.
    found = (cookie_parser(line).get(name) for line in headers.getlist("cookie"))
    return any(each is not None and hmac.compare_digest(_bytes(each), _bytes(value)) for each in found)


def _derived(token: str, purpose: str) -> str:
    return hmac.new(_bytes(token), f"suffice {purpose}".encode(), hashlib.sha256).hexdigest()


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
