"""The application of one project, and the server that listens until it is stopped."""

import errno
import logging
import os
import signal
import socket
import ssl
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final, NamedTuple
from warnings import filterwarnings

import uvicorn
from fastapi import APIRouter, Depends, FastAPI
from fastapi.security import HTTPBearer
from starlette.middleware import Middleware
from starlette.routing import BaseRoute
from starlette.types import ASGIApp

import suffice
from suffice.errors import InvalidValueError, SufficeError
from suffice.project.background_learner import BackgroundLearner
from suffice.project.labelling_project import Project
from suffice.web.access import Access
from suffice.web.connections import (
    ACCEPTED_AT_ONCE,
    ConnectionGuard,
    ConnectionLimits,
    LimitedListener,
    Remarks,
    connection_limits,
    guarded_protocol,
)
from suffice.web.gate import Gate
from suffice.web.http_messages import SafeHeaders, add_problem_handlers
from suffice.web.request_limits import BodyLimit
from suffice.web.routes import (
    AppContext,
    file_router,
    labelling_router,
    page_router,
    reading_router,
    require_permission,
    session_router,
)
from suffice.web.sessions import Sessions

_ABOUT = (
    "Labels for a project, and a message when you can stop. The API offers everything that the page does. If a token "
    "is needed, a script sends it as Authorization: Bearer TOKEN; where there are accounts, that of a personal link. A "
    "browser sends the csrf value of /api/project as "
    "X-Suffice-CSRF with everything that it posts."
)


# Routers whose requests need a permission, and the others.
_CHECKED_ROUTERS: Final = (labelling_router, reading_router, file_router)
_OPEN_ROUTERS: Final = (session_router, page_router)


@cache
def _routes(*, with_token: bool) -> list[BaseRoute]:
    """The routes of all applications of this process. FastAPI prepares them once, which takes 0.07 s."""
    together = APIRouter()
    # The gate verifies the token; this declares it in the OpenAPI document.
    needed = [Depends(HTTPBearer(auto_error=False))] if with_token else []
    for router in _CHECKED_ROUTERS:
        together.include_router(router, dependencies=[*needed, Depends(require_permission)])
    for router in _OPEN_ROUTERS:
        together.include_router(router)
    return together.routes


def create_app(project: Project, background: BackgroundLearner, access: Access, prefix: str = "") -> FastAPI:
    """Create the application of a project.

    Args:
        project: The project.
        background: Learns its labels; started and closed by the caller.
        access: Access rules of the server.
        prefix: Path of the application on the server, percent-encoded, which is removed from requests before.
    """
    sessions = Sessions(project, access)
    app = FastAPI(
        title="suffice",
        version=suffice.__version__,
        description=_ABOUT,
        openapi_url="/api/openapi.json",
        # FastAPI's documentation pages load files from other servers, and a project must work without a network.
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        routes=_routes(with_token=access.token is not None),
        middleware=[
            Middleware(SafeHeaders),
            Middleware(Gate, access=access, sessions=sessions, prefix=prefix),
            Middleware(BodyLimit),
        ],
    )
    app.state.context = AppContext(project, background, access, sessions, prefix=prefix)
    add_problem_handlers(app, [route for router in (*_CHECKED_ROUTERS, *_OPEN_ROUTERS) for route in router.routes])
    # FastAPI prepares routes at their first use and suppresses this warning during that time, which another thread
    # could undo.
    filterwarnings("ignore", r"The '\w+' attribute with value .* was provided to the `Field\(\)` function")
    return app


# Seconds for requests that are being processed when the server stops.
_GRACE_SECONDS: Final = 10
_HIGHEST_PORT: Final = 65535
# Length of the system's queue of connections that are not yet accepted.
_QUEUE: Final = 1024
# Bytes of a header, which includes cookies of other programs on this machine.
_LARGEST_HEADER: Final = 32 * 1024
# Python's default switch interval of threads is 5 ms.
_TURN_SECONDS: Final = 0.0005


class TlsCertificate(NamedTuple):
    """A certificate for TLS, as PEM.

    Attributes:
        cert: File with the certificate and those that it follows from.
        key: File with its private key, without a password; None if that is in the file of the certificate.
    """

    cert: Path
    key: Path | None


@dataclass(frozen=True)
class ServerOptions:
    """Network options of a server.

    Attributes:
        tls: TlsCertificate for its connections; None for plain HTTP.
        proxies: Addresses of proxies whose X-Forwarded-For and X-Forwarded-Proto are trusted.
        limits: Limits for its connections; those that suit this process if left out.
    """

    tls: TlsCertificate | None = None
    proxies: tuple[str, ...] = ()
    limits: ConnectionLimits | None = None


def server_options(cert: Path | None = None, key: Path | None = None, proxies: tuple[str, ...] = ()) -> ServerOptions:
    """Options of a server from the options of the command.

    Args:
        cert: File with the certificate and those that it follows from, as PEM.
        key: File with its private key, as PEM, without a password; the certificate's own if left out.
        proxies: Addresses of trusted proxies.

    Raises:
        InvalidValueError: A file cannot be used, or a proxy is not an address.

    Examples:
        >>> server_options(proxies=("10.0.0.1",)).proxies
        ('10.0.0.1',)
        >>> server_options(proxies=("proxy.example",))
        Traceback (most recent call last):
        ...
        suffice.errors.InvalidValueError: --trusted-proxy must be an IP address such as 10.0.0.1, not 'proxy.example'
    """
    for each in proxies:
        try:
            ip_address(each)
        except ValueError:
            raise InvalidValueError(
                f"--trusted-proxy must be an IP address such as 10.0.0.1, not {each[:100]!r}"
            ) from None
    if cert is None:
        if key is not None:
            raise InvalidValueError("--tls-key needs --tls-cert: give the file with the certificate too")
        return ServerOptions(proxies=proxies)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        # An empty password, because otherwise the terminal would ask for the password of an encrypted key.
        context.load_cert_chain(cert, key, password="")
    except (OSError, ValueError) as error:
        files = f"--tls-cert {cert}" + ("" if key is None else f" and --tls-key {key}")
        raise InvalidValueError(
            f"{files} must be files in PEM format with a certificate and its private key, without a password: "
            f"{_reason(error)}"
        ) from None
    return ServerOptions(tls=TlsCertificate(cert, key), proxies=proxies)


def serve_on(
    app: ASGIApp,
    listener: socket.socket,
    host: str,
    ready: Callable[[str], None],
    options: ServerOptions | None = None,
) -> None:
    """Serve an application until SIGINT or SIGTERM, then finish the running requests and return.

    Args:
        app: The application.
        listener: A socket that listens already.
        host: The address that it listens on.
        ready: Called with the URL once requests are answered.
        options: How it is reached.
    """
    options = options or ServerOptions()
    limits, remarks = options.limits or connection_limits(), Remarks()
    guard = ConnectionGuard(limits, remarks, options.proxies)
    config = uvicorn.Config(
        app,
        http=guarded_protocol(guard),
        log_level="warning",
        # Addresses are not logged, because one contains the token.
        access_log=False,
        lifespan="off",
        ws="none",
        server_header=False,
        # The stated origin of a request is trusted only if it comes from a trusted proxy.
        proxy_headers=bool(options.proxies),
        forwarded_allow_ips=list(options.proxies),
        h11_max_incomplete_event_size=_LARGEST_HEADER,
        timeout_keep_alive=limits.idle_seconds,
        timeout_graceful_shutdown=_GRACE_SECONDS,
        # How many connections are accepted at a turn, which are fewer than the system keeps.
        backlog=ACCEPTED_AT_ONCE,
        **_tls_settings(options.tls),
    )
    url = url_of(host, listener.getsockname()[1], tls=options.tls is not None)
    server = _Server(config, lambda: _accept(listener, guard, lambda: ready(url)))
    with _stopped_by_signals(server), _seldom_repeated(remarks), _quick_turns():
        server.run(sockets=[listener])


@contextmanager
def _quick_turns() -> Iterator[None]:
    """Shorten the switch interval of threads, because a label waits for several intervals while a report is built."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(_TURN_SECONDS)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


@contextmanager
def _seldom_repeated(remarks: Remarks) -> Iterator[None]:
    """Limit repeated messages in the logs of uvicorn and asyncio to one per minute."""
    loggers = [logging.getLogger(name) for name in ("uvicorn.error", "asyncio")]
    for each in loggers:
        each.addFilter(remarks)
    try:
        yield
    finally:
        for each in loggers:
            each.removeFilter(remarks)


@contextmanager
def listening(host: str, port: int) -> Iterator[socket.socket]:
    """A socket that listens on an address and so reserves its port.

    Args:
        host: The address.
        port: The port; 0 for any that is free.

    Raises:
        InvalidValueError: The port is not a valid number.
        SufficeError: The port is in use, or the address cannot be listened on.
    """
    if not 0 <= port <= _HIGHEST_PORT:
        raise InvalidValueError(f"--port must be a whole number from 0 to {_HIGHEST_PORT}, not {port}")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = LimitedListener(family, kind, protocol)
    except (OSError, UnicodeError) as error:
        reason = _reason(error)
        raise SufficeError(f"--host {host} is not an address of this machine: {reason}; try 127.0.0.1") from None
    with listener:
        try:
            if os.name == "posix":
                # The port of a server that has just stopped can be used again. On Windows this would share a port in
                # use.
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            # Listening reserves the port. Clients that connect before the server runs wait.
            listener.listen(_QUEUE)
        except OSError as error:
            raise SufficeError(_refusal(error, host, port)) from None
        yield listener


def url_of(host: str, port: int, *, tls: bool = False) -> str:
    """The address to open in a browser on this machine.

    Examples:
        >>> url_of("0.0.0.0", 8000), url_of("::1", 8000), url_of("lab7", 443, tls=True)
        ('http://127.0.0.1:8000/', 'http://[::1]:8000/', 'https://lab7:443/')
    """
    name = {"0.0.0.0": "127.0.0.1", "": "127.0.0.1", "::": "::1"}.get(host, host)
    scheme = "https" if tls else "http"
    return f"{scheme}://[{name}]:{port}/" if ":" in name else f"{scheme}://{name}:{port}/"


def _tls_settings(tls: TlsCertificate | None) -> dict[str, Any]:
    """The settings of uvicorn for TLS. Without a list of ciphers, those of Python are used in all its versions."""
    return {} if tls is None else {"ssl_certfile": tls.cert, "ssl_keyfile": tls.key, "ssl_ciphers": ""}


def _accept(listener: socket.socket, guard: ConnectionGuard, ready: Callable[[], None]) -> None:
    """Start to limit connections, and signal that requests are answered."""
    if isinstance(listener, LimitedListener):
        listener.most = guard.limits.connections + ACCEPTED_AT_ONCE
        listener.is_known = guard.descriptors.__contains__
    # uvicorn has shortened the queue to the number that is accepted at a turn.
    listener.listen(_QUEUE)
    ready()


class _Server(uvicorn.Server):
    """A server that calls a function when it has started."""

    def __init__(self, config: uvicorn.Config, started: Callable[[], None]) -> None:
        super().__init__(config)
        self._when_started = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._when_started()


@contextmanager
def _stopped_by_signals(server: uvicorn.Server) -> Iterator[None]:
    """Let SIGINT and SIGTERM stop the server, and let the program continue after it.

    uvicorn handles both while it runs and then raises them again; then these handlers receive them instead of Python's.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(*_: Any) -> None:
        server.should_exit = True

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _refusal(error: OSError, host: str, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        other = port + 1 if port < _HIGHEST_PORT else 8001
        return (
            f"port {port} on {host} is in use; stop what runs there or give --port {other} (or --port 0 for any free "
            "one)"
        )
    if error.errno in {errno.EACCES, errno.EPERM}:
        return f"permission denied for port {port} on {host}: ports below 1024 need an administrator; give --port 8000"
    return f"cannot listen on {host}: {_reason(error)}; give --host 127.0.0.1, or an address of this machine"


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)
