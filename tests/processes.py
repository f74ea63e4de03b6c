"""How tests start other Python processes.

Most of the time of a short process goes into imports. :class:`ForkedProcess` starts one that has its modules already:
it is forked by a process that is kept for that purpose, see :mod:`tests.fork_server`. A test that is about starting up
uses :mod:`subprocess`.
"""

import atexit
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import IO, Final

from suffice.cli.app import COMMANDS, command_location
from tests import smaller_work
from tests.fork_server import NUMBER, Request, send_request

ROOT = Path(__file__).parents[1]

#: What nearly all commands import when they are used.
COMMON_MODULES: Final = (
    "suffice.cli.app",
    "suffice.session.model_comparison",
    "suffice.tables.transformers",
)
_OPTIONS: Final = ("pydantic.main", "pydantic.type_adapter", "rich.markdown", "typer.rich_utils")
_FIGURES: Final = ("matplotlib.figure", "matplotlib.backends.backend_agg", "sklearn.datasets")
_PROJECTS: Final = ("suffice.project.background_learner", "suffice.project.create", "sqlalchemy.dialects.sqlite")
#: What a project in PostgreSQL imports besides.
POSTGRES_MODULES: Final = ("psycopg", "sqlalchemy.dialects.postgresql.psycopg")
#: What a server of a project imports.
SERVER_MODULES: Final = (*_PROJECTS, "suffice.web.server", "uvicorn.protocols.http.h11_impl", "uvicorn.lifespan.off")
_MODULES: Final = {
    "audit": _FIGURES,
    "demo": _FIGURES,
    "recommend": ("suffice_research.recommendation",),
    "label": (*_PROJECTS, "suffice.cli.label_app"),
    "run": _FIGURES,
    "serve": SERVER_MODULES,
    "status": _PROJECTS,
}


def environment() -> dict[str, str]:
    """Return the environment of a Python process that can import ``tests`` from any working directory."""
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


@cache
def _fork_server() -> socket.socket:
    """Start the process that forks others; it ends with this one."""
    control, other = socket.socketpair()
    with other:
        command = [sys.executable, "-m", "tests.fork_server"]
        server = subprocess.Popen(command, stdin=other.fileno(), stdout=subprocess.DEVNULL, env=environment(), cwd=ROOT)

    def end() -> None:
        control.close()
        server.wait()

    atexit.register(end)
    return control


class ForkedProcess:
    """A process that calls a function; otherwise like :class:`subprocess.Popen`, with texts in UTF-8.

    SIGINT interrupts it, even where this process ignores that signal.

    Args:
        function: What to call, without arguments: ``"module:name"``.
        arguments: What follows the first entry of ``sys.argv``.
        modules: Modules to import before the fork.
        stdin: None for that of this process, a descriptor, or ``subprocess.PIPE``.
        stdout: Likewise.
        stderr: Likewise, or ``subprocess.STDOUT``.
        env: The environment; that of this process if left out.
        cwd: The working directory; that of this process if left out.
        start_new_session: Whether it has a session of its own.
        terminal: Whether standard input becomes the terminal of that session.
    """

    def __init__(
        self,
        function: str,
        arguments: Sequence[str] = (),
        *,
        modules: Sequence[str] = (),
        stdin: int | None = None,
        stdout: int | None = None,
        stderr: int | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | Path | None = None,
        start_new_session: bool = False,
        terminal: bool = False,
    ) -> None:
        self.returncode: int | None = None
        self.stdin: IO[str] | None = None
        self.stdout: IO[str] | None = None
        self.stderr: IO[str] | None = None
        ends, given = [], [0, 1, 2]
        if stdin == subprocess.PIPE:
            given[0], ours = os.pipe()
            ends.append(given[0])
            self.stdin = open(ours, "w", encoding="utf-8")  # noqa: SIM115
        elif stdin is not None:
            given[0] = stdin
        for number, asked in ((1, stdout), (2, stderr)):
            if asked == subprocess.PIPE:
                ours, given[number] = os.pipe()
                ends.append(given[number])
                setattr(self, ("stdout", "stderr")[number - 1], open(ours, encoding="utf-8"))  # noqa: SIM115
            elif asked == subprocess.STDOUT:
                given[number] = given[1]
            elif asked is not None:
                given[number] = asked
        request = Request(
            function=function,
            arguments=list(arguments),
            environment=dict(os.environ if env is None else env),
            folder=str(cwd or Path.cwd()),
            modules=list(modules),
            session=start_new_session,
            terminal=terminal,
        )
        self._news, other = socket.socketpair()
        with other:
            send_request(_fork_server(), request, [*given, other.fileno()])
        for end in ends:
            os.close(end)
        self.pid = self._told()

    def poll(self) -> int | None:
        """The exit code, or None while it runs."""
        if self.returncode is None and select.select([self._news], [], [], 0)[0]:
            self.wait()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end, and return the exit code."""
        if self.returncode is None:
            if not select.select([self._news], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("a forked process", timeout or 0.0)
            self.returncode = os.waitstatus_to_exitcode(self._told())
            self._news.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send it a signal, if it runs."""
        if self.poll() is None:
            # It may end at this moment.
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        """End it at once, if it runs."""
        self.send_signal(signal.SIGKILL)

    def communicate(self, said: str | None = None, timeout: float | None = None) -> tuple[str, str]:
        """Send something to its standard input, read everything, and wait for its end."""
        texts = ["", ""]

        def read(k: int, stream: IO[str]) -> None:
            texts[k] = stream.read()

        streams = [(k, stream) for k, stream in enumerate((self.stdout, self.stderr)) if stream and not stream.closed]
        readers = [threading.Thread(target=read, args=each, daemon=True) for each in streams]
        for reader in readers:
            reader.start()
        if self.stdin is not None and not self.stdin.closed:
            try:
                self.stdin.write(said or "")
                self.stdin.close()
            except BrokenPipeError:
                pass
        for reader in readers:
            reader.join(timeout)
            if reader.is_alive():
                raise subprocess.TimeoutExpired("a forked process", timeout or 0.0)
        self.wait(timeout)
        self._close()
        return texts[0], texts[1]

    def __enter__(self) -> "ForkedProcess":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            # Whatever went wrong, it may be that the process never ends by itself.
            self.kill()
        self._close()
        self.wait()

    def _close(self) -> None:
        for stream in (self.stdin, self.stdout, self.stderr):
            if stream is not None:
                stream.close()

    def _told(self) -> int:
        """A number that the process that forks has sent."""
        sent = self._news.recv(NUMBER.size, socket.MSG_WAITALL)
        assert len(sent) == NUMBER.size, "the process that forks others has ended"
        found: int = NUMBER.unpack(sent)[0]
        return found


def start_suffice(
    *arguments: str,
    stdin: int | None = None,
    stdout: int | None = subprocess.PIPE,
    stderr: int | None = subprocess.PIPE,
    env: Mapping[str, str] | None = None,
    terminal: bool = False,
    function: str | None = None,
    cwd: str | Path | None = None,
) -> ForkedProcess:
    """Start ``suffice`` with arguments, as a user does it; with ``terminal`` in a session of its own."""
    usual = "suffice.cli:main" if smaller_work.all_trees else "tests.smaller_work:main_with_smaller_forests"
    function = function or usual
    command = arguments[0] if arguments else ""
    own = (command_location(command).split(":")[0],) if command in COMMANDS else ()
    return ForkedProcess(
        function,
        arguments,
        modules=(*COMMON_MODULES, *_OPTIONS, *_MODULES.get(command, ()), *own),
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        env=env,
        cwd=cwd,
        start_new_session=terminal,
        terminal=terminal,
    )


def run_suffice(
    *arguments: str, lines: str = "", function: str | None = None, **variables: str
) -> "subprocess.CompletedProcess[str]":
    """Run ``suffice`` with arguments to its end, as a user does it, in the current folder.

    Args:
        arguments: What follows the name of the command.
        lines: What is sent to it.
        function: What the process calls, if it is not what the command calls.
        variables: Environment variables besides those of this process.
    """
    env = {**os.environ, **variables}
    with start_suffice(*arguments, stdin=subprocess.PIPE, env=env, function=function) as process:
        stdout, stderr = process.communicate(lines)
        return subprocess.CompletedProcess(["suffice", *arguments], process.wait(), stdout, stderr)
