"""The application of one project, and the server that listens until it is stopped."""

import errno
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final
from warnings import filterwarnings

import uvicorn
from fastapi import Depends, FastAPI
from fastapi.security import HTTPBearer
from starlette.middleware import Middleware
from starlette.types import ASGIApp

import suffice
from suffice.errors import InvalidValueError, SufficeError
from suffice.project.background_learner import BackgroundLearner
from suffice.project.labelling_project import Project
from suffice.web.context import AppContext, require_permission
from suffice.web.http_errors import SafeHeaders, add_problem_handlers
from suffice.web.routes import file_router, labelling_router, page_router, reading_router, session_router
from suffice.web.security import Access, BodyLimit, Gate, Sessions

_ABOUT = (
    "Labels for a project, and a word when it is enough. Whatever the page does, a script can do here. Where a token "
    "is needed, a script sends it as Authorization: Bearer TOKEN; where there are accounts, that of a personal link. A "
    "browser sends the csrf value of /api/project as "
    "X-Suffice-CSRF with everything that it posts."
)


def create_app(project: Project, background: BackgroundLearner, access: Access) -> FastAPI:
    """Make the application of a project.

    Args:
        project: The project.
        background: Learns its labels; started and closed by the caller.
        access: Who may come in.
    """
    sessions = Sessions(project, access)
    app = FastAPI(
        title="suffice",
        version=suffice.__version__,
        description=_ABOUT,
        openapi_url="/api/openapi.json",
        # Their pages load from elsewhere, and a project has to work without a network.
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        middleware=[Middleware(SafeHeaders), Middleware(Gate, access=access, sessions=sessions), Middleware(BodyLimit)],
    )
    app.state.context = AppContext(project, background, access, sessions)
    # The gate checks the token; this says so in the OpenAPI.
    needed: list[Any] = [] if access.token is None else [Depends(HTTPBearer(auto_error=False))]
    routers = [labelling_router, reading_router, file_router]
    for router in routers:
        app.include_router(router, dependencies=[*needed, Depends(require_permission)])
    others = [session_router, page_router]
    for router in others:
        app.include_router(router)
    add_problem_handlers(app, [route for router in (*routers, *others) for route in router.routes])
    # FastAPI prepares routes when they are first needed, and silences this warning of its own meanwhile, which another
    # thread could undo.
    filterwarnings("ignore", r"The '\w+' attribute with value .* was provided to the `Field\(\)` function")
    return app


# What is being answered when the server is told to stop gets so many seconds.
_GRACE_SECONDS: Final = 10
_HIGHEST_PORT: Final = 65535
_BACKLOG: Final = 128


def serve_on(app: ASGIApp, listener: socket.socket, host: str, ready: Callable[[str], None]) -> None:
    """Serve an application until SIGINT or SIGTERM, then answer what is under way and return.

    Args:
        app: The application.
        listener: A socket that listens already.
        host: The address that it listens on.
        ready: Called with the URL once requests are answered.
    """
    server = _Server(
        uvicorn.Config(
            app,
            log_level="warning",
            # Addresses are not written down: the token stands in one.
            access_log=False,
            lifespan="off",
            ws="none",
            server_header=False,
            # Nothing depends on where a request claims to come from.
            proxy_headers=False,
            # So many are taken in at a turn; each that finds no file left is logged.
            backlog=_BACKLOG,
            timeout_graceful_shutdown=_GRACE_SECONDS,
        ),
        lambda: ready(url_of(host, listener.getsockname()[1])),
    )
    with _stopped_by_signals(server):
        server.run(sockets=[listener])


@contextmanager
def listening(host: str, port: int) -> Iterator[socket.socket]:
    """A socket that listens on an address, so that nobody else can take it any more.

    Args:
        host: The address.
        port: The port; 0 for any that is free.

    Raises:
        InvalidValueError: The port is none.
        SufficeError: The port is in use, or the address cannot be listened on.
    """
    if not 0 <= port <= _HIGHEST_PORT:
        raise InvalidValueError(f"--port must be a whole number from 0 to {_HIGHEST_PORT}, not {port}")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
    except (OSError, UnicodeError) as error:
        raise SufficeError(f"--host {host} is no address of this machine: {_reason(error)}; try 127.0.0.1") from None
    with listener:
        try:
            if os.name == "posix":
                # A server that stopped a moment ago does not keep its port. Elsewhere this would share one in use.
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            # Only a port that is listened on is surely nobody else's; whoever comes before the server runs waits.
            listener.listen(_BACKLOG)
        except OSError as error:
            raise SufficeError(_refusal(error, host, port)) from None
        yield listener


def url_of(host: str, port: int) -> str:
    """The address to open in a browser on this machine.

    Examples:
        >>> url_of("0.0.0.0", 8000), url_of("::1", 8000)
        ('http://127.0.0.1:8000/', 'http://[::1]:8000/')
    """
    name = {"0.0.0.0": "127.0.0.1", "": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://[{name}]:{port}/" if ":" in name else f"http://{name}:{port}/"


class _Server(uvicorn.Server):
    """A server that says when it is ready."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        self._ready()


@contextmanager
def _stopped_by_signals(server: uvicorn.Server) -> Iterator[None]:
    """Let SIGINT and SIGTERM stop the server, and the program go on after it.

    uvicorn takes both while it runs and then raises them again; there they find these handlers, not Python's own.
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
        return f"port {port} on {host} is not yours to use: ports below 1024 need an administrator; give --port 8000"
    return f"{host} cannot be listened on: {_reason(error)}; give --host 127.0.0.1, or an address of this machine"


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)
