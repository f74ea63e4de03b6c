"""Access control and limits of the server: who may do what, how large a request is, and how many connections there are.

uvicorn has settings for the time that a connection stays open between two requests and for the size of a header. It has
no time limit for a header or a body, and its limit of connections refuses new connections while idle ones stay open. So
a subclass of its protocol closes connections that wait too long. If there are too many connections, it closes the one
that has waited longest. So people who label can always connect.
"""

import asyncio
import hashlib
import hmac
import ipaddress
import logging
import math
import os
import re
import secrets
import socket
import time
from base64 import urlsafe_b64encode
from collections import Counter, deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, Protocol
from urllib.parse import parse_qs

import h11
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request, cookie_parser
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from suffice.errors import InvalidValueError, SufficeError
from suffice.files import PRIVATE_FILE
from suffice.project.accounts import (
    SCRYPT,
    Account,
    Role,
    account_with_link,
    account_with_password,
    folded,
    permits,
)
from suffice.web.http_messages import problem, problem_page, status_of

try:
    import resource
except ImportError:  # Windows has no such limit.
    resource = None  # type: ignore[assignment]

_LOG: Final = logging.getLogger("uvicorn.error")
#: Connections that are accepted at a time. The limit can be exceeded briefly by this number.
ACCEPTED_AT_ONCE: Final = 32
# File descriptors for the database, the files of the model and the program, and for connections accepted at once.
_SPARE_DESCRIPTORS: Final = 96 + ACCEPTED_AT_ONCE
_MOST_CONNECTIONS: Final = 512
_FEWEST_CONNECTIONS: Final = 16
_LOG_SECONDS: Final = 60.0
# Minimal number of bytes of a response that a client must read within the time limit.
_LEAST_PROGRESS: Final = 1024
# Minimal number of bytes of an upload that a client must send within the time limit of a body.
_LEAST_UPLOADED: Final = 64 * 1024


@dataclass(frozen=True)
class ConnectionLimits:
    """Limits of the number and the waiting times of connections.

    Attributes:
        connections: Connections in all.
        per_address: Connections of one address.
        header_seconds: Time for the header of a request, from the first moment of a connection or the first byte.
        body_seconds: Time for the body of a request.
        idle_seconds: Time that a connection stays open between two requests.
        stalled_seconds: Time after which a client that reads nothing of its answer is given up.
        upload_paths: Paths of uploads. Their body may take longer, as long as bytes arrive.
    """

    connections: int = _MOST_CONNECTIONS
    per_address: int = _MOST_CONNECTIONS // 2
    header_seconds: float = 10.0
    body_seconds: float = 20.0
    idle_seconds: int = 15
    stalled_seconds: float = 30.0
    upload_paths: frozenset[str] = frozenset()


def connection_limits(descriptors: int | None = None) -> ConnectionLimits:
    """Limits that leave enough file descriptors for the database.

    Args:
        descriptors: Files that this process may open; asked of the system if left out.

    Examples:
        >>> connection_limits(256).connections, connection_limits(1024).connections, connection_limits(100).connections
        (128, 512, 16)
    """
    if descriptors is None:
        found = _MOST_CONNECTIONS * 2 if resource is None else resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        # The system returns -1 if there is no limit.
        descriptors = found if found > 0 else _MOST_CONNECTIONS * 2
    most = min(_MOST_CONNECTIONS, max(_FEWEST_CONNECTIONS, descriptors - _SPARE_DESCRIPTORS))
    return ConnectionLimits(connections=most, per_address=most // 2)


def network_of(address: str) -> str:
    """Unit that counts as one address: an IPv4 address, or a 64-bit network of IPv6.

    Examples:
        >>> network_of("192.0.2.7"), network_of("::ffff:192.0.2.7"), network_of("2001:db8::1:2"), network_of("?")
        ('192.0.2.7', '192.0.2.7', '2001:db8::/64', '?')
    """
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    mapped = found.ipv4_mapped
    return str(ipaddress.ip_network((found, 64), strict=False)) if mapped is None else str(mapped)


class Remarks(logging.Filter):
    """Limits log messages of frequent events to one per minute, with the number of events.

    Args:
        clock: Returns seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._counts: Counter[str] = Counter()
        self._said: dict[str, float] = {}

    def note(self, sentence: str) -> None:
        """Count an event.

        Args:
            sentence: What; ``{}`` stands for how often since it was last written.
        """
        self._counts[sentence] += 1
        if self._is_due(sentence):
            _LOG.warning("%s", sentence.format(self._counts.pop(sentence)), extra={"noted": True})

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a record is written: a warning of one kind, and an error without a traceback, once a minute."""
        if getattr(record, "noted", False) or (record.exc_info and record.name != "asyncio"):
            return True
        return self._is_due(str(record.msg).partition("\n")[0])

    def _is_due(self, key: str) -> bool:
        now = self._clock()
        if now - self._said.get(key, float("-inf")) < _LOG_SECONDS:
            return False
        self._said[key] = now
        return True


_TIMED_OUT = "Closed {} connection(s) that did not send a whole request in time."
_STALLED = "Closed {} connection(s) that did not read their answer."
_MADE_ROOM = "Too many connections: closed {} that waited for a request to be sent, those that waited longest first."
_REFUSED = "Too many connections: refused {} because all others are being answered."

Phase = Literal["header", "body", "answer", "idle", "closing"]


class ConnectionGuard:
    """The connections of a server. Connections that wait for their client are in the order of their waiting time.

    Args:
        limits: The limits.
        remarks: Writes what happens.
        trusted: Addresses of proxies: many people come from them, so they have no separate limit.
    """

    def __init__(self, limits: ConnectionLimits, remarks: Remarks, trusted: Iterable[str] = ()) -> None:
        self.limits, self.remarks = limits, remarks
        self._trusted = {network_of(each) for each in trusted}
        self._waiting: dict[GuardedProtocol, None] = {}
        self._counts: Counter[str] = Counter()
        #: Descriptors of the connections.
        self.descriptors: set[int] = set()

    def admit(self, connection: "GuardedProtocol") -> bool:
        """Count a new connection, close another one if there are too many, and return whether the new one may stay."""
        address = connection.address
        self._counts[address] += 1
        crowded = address not in self._trusted and self._counts[address] > self.limits.per_address
        if not crowded and self._counts.total() <= self.limits.connections:
            return True
        # The address with the most connections loses one.
        most = address if crowded else self._counts.most_common(1)[0][0]
        victim = next((each for each in self._waiting if each.address == most), None)
        if victim is None and not crowded:
            victim = next(iter(self._waiting), None)
        if victim is None:
            self.remarks.note(_REFUSED)
            return False
        self.remarks.note(_MADE_ROOM)
        victim.give_up()
        # It is closed soon; until then no other connection must be closed for the same reason.
        self.forget(victim)
        return True

    def forget(self, connection: "GuardedProtocol") -> None:
        """Remove a connection from the count."""
        self._waiting.pop(connection, None)
        if connection.counted:
            connection.counted = False
            self._counts[connection.address] -= 1
            if not self._counts[connection.address]:
                del self._counts[connection.address]

    def waits(self, connection: "GuardedProtocol", *, waits: bool) -> None:
        """Record that a connection starts or stops waiting for its client."""
        self._waiting.pop(connection, None)
        if waits:
            self._waiting[connection] = None


class GuardedProtocol(H11Protocol):
    """A connection that is closed when its client keeps it waiting.

    Args:
        guard: All connections.
        arguments: Those of uvicorn's protocol.
    """

    def __init__(self, *, guard: ConnectionGuard, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._guard = guard
        self._phase: Phase | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._unread = self._received = self._received_before = 0
        self._descriptor = -1
        self.address = ""
        self.counted = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept a connection, or refuse it."""
        super().connection_made(transport)
        self.address, self.counted = network_of(self.client[0] if self.client else ""), True
        found = transport.get_extra_info("socket")
        self._descriptor = -1 if found is None else found.fileno()
        self._guard.descriptors.add(self._descriptor)
        if self._guard.admit(self):
            self._enter("header")
        else:
            self._answer(503, "Service Unavailable", "too many connections; try again in a moment")
            self._enter("closing")

    def connection_lost(self, exc: Exception | None) -> None:
        """Handle the end of the connection."""
        self._cancel()
        self._guard.descriptors.discard(self._descriptor)
        self._guard.forget(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Receive a part of a request."""
        self._received += len(data)
        super().data_received(data)
        self._follow(received=True)

    def on_response_complete(self) -> None:
        """Wait for the next request, or for the rest of a request that was answered early."""
        super().on_response_complete()
        self._follow()

    def pause_writing(self) -> None:
        """Wait for a client that does not read."""
        super().pause_writing()
        self._unread = self.transport.get_write_buffer_size()
        self._arm(self._guard.limits.stalled_seconds)

    def resume_writing(self) -> None:
        """Continue when the client reads again."""
        super().resume_writing()
        phase, self._phase = self._phase, None
        if phase is not None:
            self._enter(phase)

    def shutdown(self) -> None:
        """Close when the server stops, without waiting for the rest of a request."""
        if self._phase in {"header", "body"}:
            self.give_up()
        else:
            super().shutdown()

    def give_up(self) -> None:
        """Close the connection at once."""
        self.transport.abort()

    def _follow(self, *, received: bool = False) -> None:
        """Determine what the connection waits for, and set its time limit."""
        theirs = self.conn.their_state
        if self.transport.is_closing():
            self._enter("closing")
        elif theirs is h11.SEND_BODY:
            self._enter("body")
        elif self.cycle is not None and not self.cycle.response_complete:
            self._enter("answer")
        elif received or self._phase is None or self.conn.trailing_data[0]:
            self._enter("header")
        else:
            self._enter("idle")

    def _enter(self, phase: Phase) -> None:
        if phase == self._phase:
            # The time limit counts from the start.
            return
        self._phase = phase
        self._guard.waits(self, waits=phase in {"header", "body", "idle"})
        limits = self._guard.limits
        self._unread = self.transport.get_write_buffer_size()
        if phase == "header":
            self._arm(limits.header_seconds)
        elif phase == "body":
            self._received_before = self._received
            self._arm(limits.body_seconds)
        elif phase == "closing" or self._unread:
            self._arm(limits.stalled_seconds)
        else:
            # uvicorn closes idle connections itself.
            self._cancel()

    def _arm(self, seconds: float) -> None:
        self._cancel()
        self._timer = self.loop.call_later(seconds, self._expired)

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _expired(self) -> None:
        """Close the connection, unless its client reads a long answer slowly."""
        unread, before = self.transport.get_write_buffer_size(), self._unread
        if self._phase == "body" and self._uploads():
            self._received_before = self._received
            self._arm(self._guard.limits.body_seconds)
        elif self._phase in {"header", "body"} and not unread:
            silent = self._phase == "header" and not self.conn.trailing_data[0]
            if not silent:
                # Browsers open connections for later use; these are not reported.
                self._guard.remarks.note(_TIMED_OUT)
                self._answer(408, "Request Timeout", "the request was not sent in time")
            self.transport.close()
            self._enter("closing")
        elif unread and before - unread < _LEAST_PROGRESS:
            self._guard.remarks.note(_STALLED)
            self.give_up()
        elif unread:
            self._unread = unread
            self._arm(self._guard.limits.stalled_seconds)

    def _uploads(self) -> bool:
        """Whether a file arrives that somebody may send: the request is not answered yet, so it is not refused."""
        answered = self.cycle is None or self.cycle.response_started
        if answered or self.scope is None or self.scope["path"] not in self._guard.limits.upload_paths:
            return False
        return self._received - self._received_before >= _LEAST_UPLOADED

    def _answer(self, status: int, reason: str, sentence: str) -> None:
        """Send the reason, unless a response has started, and close."""
        body = f'{{"detail": "{sentence}"}}'
        head = [
            f"HTTP/1.1 {status} {reason}",
            "Content-Type: application/json",
            f"Content-Length: {len(body)}",
            "Connection: close",
            "Retry-After: 1",
        ]
        if self.cycle is None or not self.cycle.response_started or self.cycle.response_complete:
            self.transport.write("\r\n".join([*head, "", body]).encode())
        self.transport.close()


class LimitedListener(socket.socket):
    """A listening socket with a limit of open connections, including those with an unfinished TLS handshake.

    The guard counts a connection with TLS only after its handshake. So this class closes the oldest connection that the
    guard has not counted if there are too many.

    Attributes:
        most: Connections that may be open.
        is_known: Whether a descriptor is that of a connection after its handshake.
    """

    most: int | None = None
    is_known: Callable[[int], bool] = staticmethod(lambda _: False)

    def __init__(self, *arguments: Any, **others: Any) -> None:
        super().__init__(*arguments, **others)
        self._accepted: list[socket.socket] = []

    def accept(self) -> tuple[socket.socket, Any]:
        """Accept the next connection."""
        connection, address = super().accept()
        if self.most is None:
            return connection, address
        self._accepted = [each for each in self._accepted if each.fileno() >= 0]
        if len(self._accepted) >= self.most:
            oldest = next((each for each in self._accepted if not self.is_known(each.fileno())), None)
            if oldest is None:
                connection.close()
                raise ConnectionAbortedError("too many connections")
            # The event loop detects the end, and closes it.
            _shut_down(oldest)
        self._accepted.append(connection)
        return connection, address


def _shut_down(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        # The client has closed it already.
        return


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


#: The header by which the page proves that a request comes from it.
CSRF_HEADER: Final = "X-Suffice-CSRF"
#: Paths that need no token, for load balancers.
OPEN_PATHS: Final = frozenset({"/health"})
#: Paths for signing in with a password, and for signing out.
SIGN_IN_PATH: Final = "/sign-in"
SIGN_OUT_PATH: Final = "/sign-out"
#: Header of a refusal that can be resolved by signing in; the page then shows its form.
SIGN_IN_HEADER: Final = "X-Suffice-Sign-In"
#: The role that each route needs if there are accounts. A route that is not listed needs ``manage``.
ROUTE_ROLES: Final[dict[tuple[str, str], Role]] = {
    ("GET", "/api/project"): "label",
    ("GET", "/api/status"): "label",
    ("GET", "/api/labels"): "label",
    ("GET", "/api/items"): "label",
    ("GET", "/api/items/{item}"): "label",
    ("GET", "/api/items/{item}/image"): "label",
    ("POST", "/api/next"): "label",
    ("POST", "/api/labels"): "label",
    ("POST", "/api/skips"): "label",
    ("POST", "/api/unsure"): "label",
    ("POST", "/api/corrections"): "label",
    ("POST", "/api/undo"): "label",
    ("POST", "/api/predictions"): "label",
    ("GET", "/api/review"): "review",
    ("GET", "/api/people"): "review",
    ("POST", "/api/confirmations"): "review",
    ("GET", "/api/settings"): "manage",
    ("POST", "/api/settings"): "manage",
    ("POST", "/api/classes"): "manage",
    ("POST", "/api/model"): "manage",
    ("POST", "/api/imports"): "manage",
    ("POST", "/api/items"): "manage",
    ("GET", "/api/checks/offers"): "manage",
    ("GET", "/api/checks/recall-offers"): "manage",
    ("GET", "/api/checks/sequential-offer"): "manage",
    ("POST", "/api/checks"): "manage",
    ("POST", "/api/checks/abort"): "manage",
    ("GET", "/api/export/labels"): "manage",
    ("GET", "/api/export/skipped"): "manage",
    ("GET", "/api/export/predictions"): "manage",
    ("GET", "/api/export/checked-predictions"): "manage",
    ("GET", "/api/export/guarantee"): "manage",
    ("GET", "/api/export/rows"): "manage",
    ("GET", "/api/final"): "manage",
    ("GET", "/api/final/statement"): "manage",
    ("GET", "/api/checks/statement"): "manage",
    ("GET", "/api/report"): "manage",
}
_SHORTEST_TOKEN: Final = 16
_LONGEST_TOKEN: Final = 200
# Minimal length of a token that cannot be guessed; generated tokens have at least this length.
_LONG_TOKEN: Final = 32
_COOKIE_SECONDS: Final = 30 * 24 * 3600
_SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_HOST: Final = re.compile(r"(?:\[(?P<six>[0-9A-Fa-f:.]+)\]|(?P<name>[A-Za-z0-9_.-]+))(?::[0-9]{0,5})?")
# Seconds of delay after a wrong token; other clients are served meanwhile.
_GUESS_SECONDS: Final = 0.3


class GuessLimit:
    """Counts wrong tokens and passwords by address, over all connections.

    An address that has sent too many is refused for some time, also with a right token. Requests from an address
    without wrong tokens are always processed, so that nobody is locked out by guesses from other addresses. While there
    are many guesses in total, the limit of each address is lower.

    Args:
        each: Wrong ones that an address may send in a row; it gets one more in each ``seconds``.
        crowded: The same while there are many in all.
        total: Wrong ones of all addresses within a minute that are many.
        seconds: Time after which one is forgotten.
        clock: Returns seconds.

    Examples:
        >>> limit = GuessLimit(each=2, clock=lambda: 0.0)
        >>> limit.note_wrong("192.0.2.1"); limit.note_wrong("192.0.2.1")
        >>> limit.wait_for("192.0.2.1"), limit.wait_for("192.0.2.2")
        (6, 0)
    """

    def __init__(
        self,
        each: int = 20,
        crowded: int = 3,
        total: int = 200,
        seconds: float = 6.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._each, self._crowded, self._total, self._seconds, self._clock = each, crowded, total, seconds, clock
        # For each address the time until which its wrong tokens count; expired entries are removed at intervals.
        self._until: dict[str, float] = {}
        self._recent: deque[float] = deque(maxlen=total)

    def wait_for(self, address: str) -> int:
        """Whole seconds for which an address is refused; 0 if it is not."""
        now = self._clock()
        owed = self._until.get(network_of(address), now) - now
        many = len(self._recent) == self._total and now - self._recent[0] < 60.0
        spare = owed - ((self._crowded if many else self._each) - 1) * self._seconds
        return max(0, math.ceil(spare))

    def note_wrong(self, address: str) -> None:
        """Count a wrong token or password."""
        now, key = self._clock(), network_of(address)
        self._recent.append(now)
        self._until[key] = max(now, self._until.get(key, now)) + self._seconds
        if len(self._until) > _MOST_ADDRESSES:
            self._until = {name: until for name, until in self._until.items() if until > now}


# Number of stored addresses above which those without recent guesses are removed.
_MOST_ADDRESSES: Final = 10_000


def address_of(request: Request) -> str:
    """The address of the sender of a request; the client's address if a trusted proxy states it."""
    return "" if request.client is None else request.client.host


def is_encrypted(request: Request) -> bool:
    """Whether a request came by TLS, to this server or to a trusted proxy."""
    return request.url.scheme == "https"


@dataclass(frozen=True)
class Access:
    """Access rules of the server.

    Attributes:
        host: The address that is listened on.
        token: What everybody has to know, or None where everybody on this machine can come in.
        csrf: What the page sends with everything that changes something.
    """

    host: str = "127.0.0.1"
    token: str | None = field(default=None, repr=False)
    csrf: str = field(default="", repr=False)

    @property
    def cookie_name(self) -> str:
        """Name of the cookie. It depends on the token, because all ports of a machine share their cookies."""
        return f"suffice_{self._derived('name')[:12]}"

    @property
    def cookie_value(self) -> str:
        """The value of the cookie; the token cannot be computed from it."""
        return self._derived("cookie")

    def knows(self, token: str) -> bool:
        """Whether a token is right; the comparison takes constant time."""
        return hmac.compare_digest(_bytes(token), _bytes(self.token or ""))

    def serves(self, host: str) -> bool:
        """Whether the Host of a request is allowed.

        Without a token, a web site could point its own name at this machine and read everything (DNS rebinding). With a
        token it cannot, because the cookie belongs to the name that a person opened.

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
    """Return the access rules for an address and a token.

    Args:
        host: The address to listen on.
        token: What everybody has to know, or None to let everybody on this machine come in, and nobody else.

    Raises:
        InvalidValueError: Other machines could connect without a token, or the token is easy to guess.

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
                "leave --no-token out"
            )
        return Access(host=host, csrf=secrets.token_urlsafe(24))
    if not _SHORTEST_TOKEN <= len(token) <= _LONGEST_TOKEN or not all("!" <= letter <= "~" for letter in token):
        raise InvalidValueError(
            f"the token (SUFFICE_TOKEN) must be {_SHORTEST_TOKEN} to {_LONGEST_TOKEN} letters, digits or signs of "
            f"ASCII without spaces, but it has {len(token)} characters; without SUFFICE_TOKEN a good one is made"
        )
    # Derived from the token, so that an open page continues to work after a restart with the same token.
    return Access(host=host, token=token, csrf=_derived(token, "csrf"))


def made_token() -> str:
    """A random token."""
    return secrets.token_urlsafe(24)


#: The file with the token for this machine, in the folder of a project.
TOKEN_FILE: Final = "token"


def kept_token(folder: Path | None) -> str:
    """The token of a project for this machine. It is stored with the project, so that bookmarks work after a restart.

    Only the owner can read the file. The owner can read the project too, so the file reveals nothing new.

    Args:
        folder: The folder of the project; None if it has none. Then, and where the file cannot be used, the token is a
            new one.
    """
    if folder is None:
        return made_token()
    file, token = folder / TOKEN_FILE, made_token()
    try:
        # Never use a file that another user has created or can read.
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE_FILE)
    except FileExistsError:
        return _read_token(file) or token
    except OSError:
        return token
    with suppress(OSError), open(handle, "w", encoding="ascii") as written:
        written.write(token)
    return token


def _read_token(file: Path) -> str | None:
    """A stored token, if it is valid and nobody else can have read or written it."""
    try:
        handle = os.open(file, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
        with open(handle, encoding="ascii") as kept:
            found = os.fstat(handle)
            text = kept.read(_LONGEST_TOKEN + 1).strip()
    except (OSError, ValueError):
        return None
    own = os.name != "posix" or (found.st_uid == os.geteuid() and not found.st_mode & 0o077)
    return text if own and re.fullmatch(r"[A-Za-z0-9_-]{32,200}", text) else None


def is_loopback(host: str) -> bool:
    """Whether an address can be reached only from this machine.

    Examples:
        >>> is_loopback("localhost"), is_loopback("127.0.0.1"), is_loopback("0.0.0.0"), is_loopback("")
        (True, True, False, False)
    """
    try:
        return host.lower() == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def host_name(host: str) -> str:
    """The name in a Host header, without the port; empty if it is invalid.

    Examples:
        >>> host_name("LocalHost:8000"), host_name("[::1]"), host_name("a@b:1"), host_name("::1:x")
        ('localhost', '::1', '', '')
    """
    found = _HOST.fullmatch(host)
    return "" if found is None else (found["six"] or found["name"]).lower()


@dataclass(frozen=True)
class Visitor:
    """A signed-in person, if there are accounts.

    Attributes:
        name: Name of the account; None for the owner, who came by the server's own token.
        role: What they may do.
        stamp: Follows from the password or link of the account; empty for the owner.
        csrf: What their page sends with everything that changes something.
    """

    name: str | None
    role: Role
    stamp: str = field(repr=False)
    csrf: str = field(repr=False)

    def require(self, method: str, route: str, person: object, accounts: Iterable[Account]) -> None:
        """Raise an error for actions that the role does not allow, and for requests in the name of another person.

        Args:
            method: The HTTP method.
            route: The route, as in :data:`ROUTE_ROLES`.
            person: The name that is sent; None if there is none.
            accounts: All accounts.

        Raises:
            HTTPException: 403.
        """
        needed = ROUTE_ROLES.get((method, route), "manage")
        if not permits(self.role, needed):
            raise HTTPException(
                403,
                f"this needs the role {needed}, and your account has the role {self.role}; ask somebody who manages "
                "the project",
            )
        if not isinstance(person, str):
            return
        if self.name is not None and person.strip() != self.name:
            raise HTTPException(403, f"you are signed in as {self.name!r}, so person must be that name")
        # The name of an account can be used only by the person who has signed in to it.
        if self.name is None and any(folded(person) == folded(each.name) for each in accounts):
            raise HTTPException(
                403, f"{person.strip()!r} is the name of an account; sign in to use it, or take another"
            )


# Number of passwords that are verified at the same time; each needs memory and a processor.
_PASSWORDS_AT_ONCE: Final = 2
# Maximal waiting time in seconds while other people sign in.
_SIGN_IN_PATIENCE: Final = 5.0
_LOOK_AGAIN: Final = 0.05


class HasAccounts(Protocol):
    """What has accounts: a project."""

    @property
    def place(self) -> str:
        """Its location."""

    def accounts(self) -> tuple[Account, ...]:
        """The present accounts."""


class Sessions:
    """Sessions of people with accounts, as signed cookies. Nothing is stored on the disk.

    A cookie contains the account, the end of the session, and a signature over both and over the hash of the password
    or link in the journal. So a session ends when the account is removed or gets a new password or link, also from the
    command line.

    The key of the signatures is derived from the token of the server, so that sessions survive a restart with the same
    token. The derivation is slow, so that the token cannot be guessed from a session. Without a token the key is new at
    each start.

    Args:
        project: The project with its accounts.
        access: Who may come in otherwise.
    """

    def __init__(self, project: HasAccounts, access: Access) -> None:
        self._project, self._access = project, access
        self._key = secrets.token_bytes(32) if access.token is None else b""
        self._ended: dict[str, float] = {}
        self._names: set[tuple[str, str]] = set()
        self._looking = 0
        #: Counts wrong tokens and passwords.
        self.guesses = GuessLimit()

    @property
    def cookie_name(self) -> str:
        """Name of the cookie. It depends on the project, because all ports of a machine share their cookies."""
        return f"suffice_session_{hashlib.sha256(_bytes(self._project.place)).hexdigest()[:12]}"

    async def accounts(self) -> tuple[Account, ...]:
        """The present accounts, including changes by other processes."""
        return await run_in_threadpool(self._accounts)

    def _accounts(self) -> tuple[Account, ...]:
        found = self._project.accounts()
        if found:
            self.prepare()
        return found

    def prepare(self) -> None:
        """Derive the key of the signatures, which takes some time; needed once before a cookie is verified."""
        if not self._key:
            token = _bytes(self._access.token or "")
            self._key = hashlib.scrypt(token, salt=b"suffice sessions", **SCRYPT, dklen=32)

    def continue_from(self, before: "Sessions") -> None:
        """Take over the sessions of the same project from before it was closed."""
        self._key, self._ended, self.guesses = before._key, before._ended, before.guesses

    def visitor(self, account: Account | None) -> Visitor:
        """The person of an account; for None, the owner, who used the token of the server."""
        if account is None:
            return Visitor(None, "manage", "", self._signature(f"csrf {_subject(None)}"))
        csrf = self._signature(f"csrf {_subject(account.name)} {account.stamp}")
        return Visitor(account.name, account.role, account.stamp, csrf)

    def with_token(self, token: str, accounts: Iterable[Account]) -> Visitor | None:
        """The person of a token: of the server's token, or of a personal link."""
        if self._access.token is not None and self._access.knows(token):
            return self.visitor(None)
        found = account_with_link(accounts, token)
        return None if found is None else self.visitor(found)

    def with_cookie(self, headers: Headers, accounts: Iterable[Account]) -> Visitor | None:
        """The person of the session cookie of a request, if the session is valid."""
        known = {_subject(each.name): each for each in accounts}
        for value in _cookies(headers, self.cookie_name):
            subject, _, rest = value.partition(".")
            until, _, signature = rest.partition(".")
            if subject not in known and subject != _subject(None):
                continue
            visitor = self.visitor(known.get(subject))
            right = hmac.compare_digest(_bytes(signature), _bytes(self._signed(visitor, until)))
            if right and value not in self._ended and float(until.partition("-")[0]) > time.time():
                return visitor
        return None

    def start(self, answer: Response, visitor: Visitor, *, secure: bool) -> Response:
        """Start a session for an authenticated person. A browser sends a secure cookie only with TLS."""
        # Two sessions that start at the same time differ, so that each can be ended separately.
        until = f"{int(time.time()) + _COOKIE_SECONDS}-{secrets.token_hex(8)}"
        value = f"{_subject(visitor.name)}.{until}.{self._signed(visitor, until)}"
        _set_cookie(answer, self.cookie_name, value, secure=secure)
        return answer

    def end(self, answer: Response, headers: Headers) -> Response:
        """End the session of a request; its cookie is invalid while this server runs."""
        now = time.time()
        self._ended = {value: until for value, until in self._ended.items() if until > now}
        # The sessions were valid at that time, so none of them lasts longer.
        self._ended |= dict.fromkeys(_cookies(headers, self.cookie_name), now + _COOKIE_SECONDS)
        answer.delete_cookie(self.cookie_name, path="/", httponly=True, samesite="lax")
        return answer

    async def sign_in(self, name: str, password: str, address: str) -> Visitor:
        """The person with a name and password. Requests for one name and address are processed one after the other.

        Raises:
            HTTPException: 401, there is no such account or the password is wrong, without saying which; 429, too many
                sign in, or too many wrong ones came from the address; 409, there are no accounts.
        """
        accounts = await self.accounts()
        if not accounts:
            raise HTTPException(409, "this project has no accounts, so nobody needs to sign in")
        if seconds := self.guesses.wait_for(address):
            raise HTTPException(429, _too_many(seconds), {"Retry-After": str(seconds)})
        # Guesses from other addresses do not delay the owner of a name.
        key = folded(name), network_of(address)
        await self._wait(lambda: key not in self._names)
        self._names.add(key)
        try:
            await self._wait(lambda: self._looking < _PASSWORDS_AT_ONCE)
            self._looking += 1
            try:
                found = await run_in_threadpool(account_with_password, accounts, name, password)
            finally:
                self._looking -= 1
            if found is not None:
                return self.visitor(found)
            self.guesses.note_wrong(address)
            await asyncio.sleep(_GUESS_SECONDS)
        finally:
            self._names.discard(key)
        raise HTTPException(401, "the name or the password is wrong")

    async def _wait(self, free: Callable[[], bool]) -> None:
        end = time.monotonic() + _SIGN_IN_PATIENCE
        while not free():
            if time.monotonic() > end:
                raise HTTPException(429, "too many people sign in at this moment; try again in a while")
            await asyncio.sleep(_LOOK_AGAIN)

    def _signed(self, visitor: Visitor, until: str) -> str:
        return self._signature(f"session {_subject(visitor.name)} {visitor.stamp} {until}")

    def _signature(self, text: str) -> str:
        return hmac.new(self._key, _bytes(text), hashlib.sha256).hexdigest()


def _subject(name: str | None) -> str:
    """A name, encoded for a cookie; the owner has none."""
    return "owner" if name is None else f"a-{urlsafe_b64encode(_bytes(name)).decode().rstrip('=')}"


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
        except SufficeError as error:
            return problem(status_of(error), str(error))
        return await (self._with_accounts(request, accounts) if accounts else self._without_accounts(request))

    async def _without_accounts(self, request: Request) -> Response | None:
        cookie = False
        if self._access.token is not None:
            cookie = _cookie(request.headers, self._access.cookie_name, self._access.cookie_value)
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
            visitor = self._sessions.with_cookie(headers, accounts)
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
        """The refusal of a wrong token, and of a right token after too many wrong ones from the same address.

        A long right token is always accepted: it cannot be guessed, and other people with the same address cannot lock
        its owner out.
        """
        guesses, address = self._sessions.guesses, address_of(request)
        seconds = guesses.wait_for(address)
        if right and (not seconds or len(token) >= _LONG_TOKEN):
            return None
        if seconds:
            answer = _refusal(request)(429, _too_many(seconds))
            answer.headers["Retry-After"] = str(seconds)
            return answer
        guesses.note_wrong(address)
        await asyncio.sleep(_GUESS_SECONDS)
        return _refusal(request)(401, sentence)

    async def _by_link(self, request: Request, token: str, accounts: tuple[Account, ...]) -> Response:
        """Sign a person in with a personal link, and remove its token from the address."""
        visitor = self._sessions.with_token(token, accounts)
        wrong = await self._wrong(request, token, _WRONG_LINK, right=visitor is not None)
        if visitor is None or wrong is not None:
            return wrong or _not_signed_in()
        page = RedirectResponse(f"{self._prefix}/", status_code=303)
        return self._sessions.start(page, visitor, secure=is_encrypted(request))

    def _welcome(self, *, secure: bool) -> Response:
        """Store in a cookie that the token was right, and remove the token from the address."""
        answer = RedirectResponse(f"{self._prefix}/", status_code=303)
        _set_cookie(answer, self._access.cookie_name, self._access.cookie_value, secure=secure)
        return answer

    def _foreign(self, headers: Headers, csrf: str | None, *, cookie: bool) -> Response | None:
        """Refuse requests that another web site makes a browser send. Requests of scripts are allowed."""
        origin = headers.get("origin")
        if origin is not None and origin.partition("://")[2].lower() != headers.get("host", "").lower():
            return problem(403, f"this was sent by a page of {origin[:200]!r}, not by a page of this server")
        if csrf is None or (origin is None and "sec-fetch-site" not in headers and not cookie):
            return None
        if not hmac.compare_digest(_bytes(headers.get(CSRF_HEADER, "")), _bytes(csrf)):
            return problem(403, f"the header {CSRF_HEADER} must hold the csrf value of /api/project: reload the page")
        return None


_WRONG_TOKEN: Final = "the token is wrong: open the address that suffice serve printed when it started"
_WRONG_LINK: Final = "this link is not valid any more, or never was: ask a manager of the project for a new one"


def _refusal(request: Request) -> Callable[[int, str], Response]:
    """Form of a refusal: a page for a person, JSON for a script."""
    return problem_page if request.url.path == "/" else problem


def _too_many(seconds: int) -> str:
    return f"too many wrong tokens or passwords came from this address; try again in {seconds} seconds"


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


def _cookies(headers: Headers, name: str) -> list[str]:
    # The header includes cookies of other programs on this machine, and some of them are malformed.
    found = (cookie_parser(line).get(name) for line in headers.getlist("cookie"))
    return [each for each in found if each is not None]


def _cookie(headers: Headers, name: str, value: str) -> bool:
    return any(hmac.compare_digest(_bytes(each), _bytes(value)) for each in _cookies(headers, name))


def _set_cookie(answer: Response, name: str, value: str, *, secure: bool) -> None:
    answer.set_cookie(name, value, max_age=_COOKIE_SECONDS, httponly=True, samesite="lax", path="/", secure=secure)


def _derived(token: str, purpose: str) -> str:
    return hmac.new(_bytes(token), f"suffice {purpose}".encode(), hashlib.sha256).hexdigest()


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
