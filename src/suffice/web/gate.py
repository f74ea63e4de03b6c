"""The gate of the server: passes a request to the application, or refuses it."""

from collections.abc import Callable
from typing import Final
from urllib.parse import parse_qs

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from suffice.errors import SufficeError
from suffice.project.accounts import Account
from suffice.web.access import Access
from suffice.web.cookies import cookies_of, set_cookie
from suffice.web.digests import same_text
from suffice.web.guesses import LONG_TOKEN, address_of, delay_guess
from suffice.web.http_messages import problem, problem_page, status_of
from suffice.web.sessions import Sessions, too_many_from_network

#: The header by which the page proves that a request comes from it.
CSRF_HEADER: Final = "X-Suffice-CSRF"
#: Paths that need no token, for load balancers.
OPEN_PATHS: Final = frozenset({"/health"})
#: Paths for signing in with a password, and for signing out.
SIGN_IN_PATH: Final = "/sign-in"
SIGN_OUT_PATH: Final = "/sign-out"
#: Header of a refusal that can be resolved by signing in; the page then shows its form.
SIGN_IN_HEADER: Final = "X-Suffice-Sign-In"
_SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})


def is_encrypted(request: Request) -> bool:
    """Whether a request came by TLS, to this server or to a trusted proxy."""
    return request.url.scheme == "https"


class Gate:
    """Passes a request to the application, or refuses it.

    Without accounts, everybody who knows the token may do everything; without a token, everybody on this machine.
    With accounts, people sign in. The token of the server then is the owner's, who may do everything too.

    Args:
        app: The application.
        access: Access rules of the server.
        sessions: People with accounts.
        prefix: Path of the application on the server, which is removed from requests before; empty for the root.
    """

    def __init__(self, app: ASGIApp, access: Access, sessions: Sessions, prefix: str = "") -> None:
        self._app, self._access, self._sessions, self._prefix = app, access, sessions, prefix

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        answer = await self._answer(Request(scope))
        await (self._app if answer is None else answer)(scope, receive, send)

    async def _answer(self, request: Request) -> Response | None:
        """The refusal of a request; None if it is allowed."""
        host = request.headers.get("host", "")
        if not self._access.serves(host):
            return problem(403, f"this server answers to localhost only, not to {host or 'no name'!r}")
        free = self._access.token is None and _is_of_page(request) and not _asked_token(request)
        if free or request.url.path in OPEN_PATHS:
            return None
        try:
            accounts = await self._sessions.accounts()
            return await (self._with_accounts(request, accounts) if accounts else self._without_accounts(request))
        except SufficeError as error:
            return problem(status_of(error), str(error))

    async def _without_accounts(self, request: Request) -> Response | None:
        cookie = False
        if self._access.token is not None:
            value = self._access.cookie_value
            cookie = any(same_text(each, value) for each in cookies_of(request.headers, self._access.cookie_name))
            if (answer := await self._without_token(request, cookie=cookie)) is not None:
                return answer
        if request.method in _SAFE_METHODS:
            return None
        return self._foreign(request.headers, self._access.csrf, cookie=cookie)

    async def _without_token(self, request: Request, *, cookie: bool) -> Response | None:
        asked, given = _asked_token(request), _bearer(request.headers)
        if asked or given is not None:
            token = asked[0] if asked else given or ""
            wrong = await self._wrong(request, token, _WRONG_TOKEN, right=self._access.knows(token))
            return self._welcome(secure=is_encrypted(request)) if wrong is None and asked else wrong
        if cookie:
            return None
        return _refusal(request)(
            401, "a token is needed: open the address that suffice serve printed, or send it as Authorization: Bearer"
        )

    async def _with_accounts(self, request: Request, accounts: tuple[Account, ...]) -> Response | None:
        headers, given = request.headers, _bearer(request.headers)
        if asked := _asked_token(request):
            return await self._by_link(request, asked[0], accounts)
        if _is_of_page(request):
            return None
        if given is None:
            visitor = await self._sessions.visitor(headers, accounts, address_of(request))
        else:
            visitor = self._sessions.with_token(given, accounts)
            if (wrong := await self._wrong(request, given, _WRONG_LINK, right=visitor is not None)) is not None:
                return wrong
        request.state.visitor, request.state.accounts = visitor, accounts
        if request.url.path == SIGN_IN_PATH:
            return self._foreign(headers, None, cookie=False)
        if visitor is None:
            return _not_signed_in()
        safe = request.method in _SAFE_METHODS
        return None if safe else self._foreign(headers, visitor.csrf, cookie=given is None)

    async def _wrong(self, request: Request, token: str, sentence: str, *, right: bool) -> Response | None:
        """The refusal of a wrong token, and of a right token after too many wrong ones from the same network.

        A long right token is always accepted: it cannot be guessed, and other people in the same network cannot lock
        its owner out.
        """
        guesses, address = self._sessions.limits.networks, address_of(request)
        seconds = guesses.wait_for(address)
        if right and (not seconds or len(token) >= LONG_TOKEN):
            return None
        if seconds:
            answer = _refusal(request)(429, too_many_from_network(seconds))
            answer.headers["Retry-After"] = str(seconds)
            return answer
        guesses.note_wrong(address)
        await delay_guess()
        return _refusal(request)(401, sentence)

    async def _by_link(self, request: Request, token: str, accounts: tuple[Account, ...]) -> Response:
        """Sign a person in with a personal link, and remove its token from the address."""
        visitor = self._sessions.with_token(token, accounts)
        wrong = await self._wrong(request, token, _WRONG_LINK, right=visitor is not None)
        if visitor is None or wrong is not None:
            return wrong or _not_signed_in()
        page = RedirectResponse(f"{self._prefix}/", status_code=303)
        start, address = self._sessions.start, address_of(request)
        return await run_in_threadpool(start, page, visitor.account, address, secure=is_encrypted(request))

    def _welcome(self, *, secure: bool) -> Response:
        """Store in a cookie that the token was right, and remove the token from the address."""
        answer = RedirectResponse(f"{self._prefix}/", status_code=303)
        set_cookie(answer, self._access.cookie_name, self._access.cookie_value, secure=secure)
        return answer

    def _foreign(self, headers: Headers, csrf: str | None, *, cookie: bool) -> Response | None:
        """Refuse requests that another web site makes a browser send. Requests of scripts are allowed."""
        origin = headers.get("origin")
        if origin is not None and origin.partition("://")[2].lower() != headers.get("host", "").lower():
            return problem(403, f"this was sent by a page of {origin[:200]!r}, not by a page of this server")
        if csrf is None or (origin is None and "sec-fetch-site" not in headers and not cookie):
            return None
        if not same_text(headers.get(CSRF_HEADER, ""), csrf):
            return problem(403, f"the header {CSRF_HEADER} must hold the csrf value of /api/project: reload the page")
        return None


_WRONG_TOKEN: Final = "the token is wrong: open the address that suffice serve printed when it started"
_WRONG_LINK: Final = "this link is not valid any more, or never was: ask a manager of the project for a new one"


def _refusal(request: Request) -> Callable[[int, str], Response]:
    """Form of a refusal: a page for a person, JSON for a script."""
    return problem_page if request.url.path == "/" else problem


def _not_signed_in() -> Response:
    answer = problem(401, "sign in first: open the page, or send the token of a personal link as Authorization: Bearer")
    answer.headers[SIGN_IN_HEADER] = "needed"
    return answer


def _is_of_page(request: Request) -> bool:
    """Whether a file of the page is requested. They contain no project data, and signing in needs them."""
    path = request.url.path
    of_page = path in {"/", "/api/openapi.json"} or path.startswith("/static/")
    return of_page and request.method in _SAFE_METHODS


def _asked_token(request: Request) -> list[str]:
    """The token in the address of the page, if there is one."""
    if request.url.path != "/" or request.method != "GET":
        return []
    try:
        return parse_qs(request.url.query, max_num_fields=100).get("token", [])
    except ValueError:
        return []


def _bearer(headers: Headers) -> str | None:
    """The token that a script sends, if there is one."""
    scheme, _, given = headers.get("authorization", "").partition(" ")
    return given.strip() if scheme.lower() == "bearer" else None
