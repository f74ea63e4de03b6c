"""The command ``suffice`` for shells that run the commands of pages.

The shell finds a small program of this name, which hands its arguments and streams to this process. Here the command
is run as in other tests. A server is started, used and stopped: a simulated person labels at it if the true labels are
known, and starts a check when the page says so; then it is interrupted, as with Ctrl-C.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any, Final, Self

from tests.processes import start_suffice
from tests.simulated_person import SimulatedPerson

#: Labels that the person gives if the project has no goal about all labels.
_LABELS: Final = 20
_STEP: Final = 10
_LARGEST: Final = 2**16
_PROGRAM: Final = """#!{python} -SE
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as here:
    here.connect({address!r})
    socket.send_fds(here, [json.dumps([os.getcwd(), *sys.argv[1:]]).encode()], [0, 1, 2])
    status = here.recv(1)
sys.exit(status[0] if status else 70)
"""


class SufficeOnPages:
    """Runs ``suffice`` for a shell, while it is open.

    Args:
        folder: An empty folder for the program; a shell must have it in its ``PATH``.
        labels: The true labels of tables, by their names without the ending.

    Attributes:
        errors: What went wrong besides commands that failed.
    """

    errors: list[Exception]

    def __init__(self, folder: Path, labels: Mapping[str, Sequence[str]]) -> None:
        self.errors = []
        self._labels = labels
        # The path of a socket has a hundred characters at most.
        self._place = TemporaryDirectory(prefix="s")
        address = Path(self._place.name, "s")
        program = folder / "suffice"
        program.write_text(_PROGRAM.format(python=sys.executable, address=str(address)), encoding="utf-8")
        program.chmod(0o755)
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(address))
        self._listener.listen()
        self._thread = threading.Thread(target=self._serve_programs, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()
        self._place.cleanup()

    def _serve_programs(self) -> None:
        while True:
            try:
                program, _ = self._listener.accept()
            except OSError:
                return
            with program:
                message, streams, *_ = socket.recv_fds(program, _LARGEST, 3)
                folder, *arguments = json.loads(message)
                try:
                    status = self._run(arguments, folder, streams)
                except Exception as error:
                    self.errors.append(error)
                    status = 70
                finally:
                    for stream in streams:
                        os.close(stream)
                program.send(bytes([status]))

    def _run(self, arguments: list[str], folder: str, streams: list[int]) -> int:
        """Run a command with the streams of the program, and return its exit status."""
        if arguments[:1] == ["serve"]:
            with served(arguments, folder, stderr=streams[2]) as ready:
                if ready is not None:
                    self._use(arguments, ready)
            return 0 if ready is not None else 1
        with start_suffice(*arguments, stdin=streams[0], stdout=streams[1], stderr=streams[2], cwd=folder) as process:
            return process.wait()

    def _use(self, arguments: list[str], ready: dict[str, str]) -> None:
        """Ask whether the server runs; label if the true labels are known."""
        url = ready["url"].partition("?")[0]
        with urllib.request.urlopen(f"{url}health", timeout=60) as answer:
            assert answer.status == 200
        labels = self._labels.get(Path(arguments[1]).name.partition(".")[0])
        if labels is None or "--host" in arguments:
            return
        person = SimulatedPerson(url, labels, ready["token"])
        if "--of" in arguments:
            _reach_the_goal(person, len(labels))
        else:
            person.label(_LABELS)


@contextmanager
def served(arguments: Sequence[str], folder: str, *, stderr: int = subprocess.PIPE) -> Iterator[dict[str, str] | None]:
    """Start a server at a free port.

    Args:
        arguments: Those of ``suffice``.
        folder: Where it is started.
        stderr: Where its messages go.

    Yields:
        Its address and token; None if it could not start.
    """
    with start_suffice(*arguments, "--port", "0", "--json", stderr=stderr, cwd=folder) as server:
        assert server.stdout is not None
        ready = server.stdout.readline()
        yield json.loads(ready) if ready else None
        server.send_signal(signal.SIGINT)
        server.communicate()


def _reach_the_goal(person: SimulatedPerson, size: int) -> None:
    """Label, and start a check when it is time, until the goal is reached."""
    found: Any = {"n_labelled": 0}
    while found["n_labelled"] < size:
        found = person.label(_STEP)
        if found["goal"]["reached"] is not None:
            return
        if found["goal"]["plan"] and found["goal"]["plan"]["check_now"] and not found["goal"]["check_open"]:
            person.ask("api/checks", person="Ann")
    raise AssertionError(f"all {size} rows are labelled, and the goal is not reached")
