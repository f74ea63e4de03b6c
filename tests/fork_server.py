"""A process that imports modules once and forks others, which need not import them again.

Run as a program, with one end of a socket pair as standard input. Each request comes on it with four descriptors:
standard input, output and error of the new process, and a socket. On that socket the process number is told, and the
exit status when the process has ended. At the end of the requests, all processes that are left are killed.
"""

import atexit
import fcntl
import gc
import io
import json
import locale
import os
import select
import signal
import socket
import struct
import sys
import termios
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib import import_module
from types import ModuleType
from typing import Final, NoReturn

NUMBER: Final = struct.Struct("!I")


@dataclass(frozen=True)
class Request:
    """What a process is to do.

    Attributes:
        function: What to call, without arguments: ``"module:name"``.
        arguments: What follows the first entry of ``sys.argv``.
        environment: All environment variables.
        folder: The working directory.
        modules: Modules to import before the fork, so that later processes have them too.
        session: Whether it starts a session of its own.
        terminal: Whether standard input becomes the terminal of that session, so that Ctrl-C is a signal to it.
    """

    function: str
    arguments: list[str]
    environment: dict[str, str]
    folder: str
    modules: list[str]
    session: bool
    terminal: bool


def send_request(control: socket.socket, request: Request, descriptors: list[int]) -> None:
    """Ask a fork server for a process."""
    body = json.dumps(asdict(request)).encode()
    socket.send_fds(control, [NUMBER.pack(len(body))], descriptors)
    control.sendall(body)


def _receive_request(control: socket.socket) -> tuple[Request, list[int]] | None:
    head, descriptors, _, _ = socket.recv_fds(control, NUMBER.size, 4)
    if not head:
        return None
    body = b""
    while len(body) < NUMBER.unpack(head)[0]:
        body += control.recv(65536)
    return Request(**json.loads(body)), list(descriptors)


def main() -> None:
    """Fork processes until nobody asks for more."""
    control = socket.socket(fileno=os.dup(0))
    woken, wake = socket.socketpair()
    wake.setblocking(False)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
    told: dict[int, socket.socket] = {}
    while True:
        ready, _, _ = select.select([control, woken], [], [])
        if woken in ready:
            woken.recv(4096)
            _tell_ended(told)
        if control in ready:
            asked = _receive_request(control)
            if asked is None:
                break
            request, descriptors = asked
            _load(request.modules)
            child = os.fork()
            if not child:
                # Only what is left of its own after this is known to the new process.
                for each in (control, woken, wake, *told.values()):
                    each.close()
                _begin(request, descriptors)
            told[child] = socket.socket(fileno=descriptors[3])
            told[child].sendall(NUMBER.pack(child))
            for descriptor in descriptors[:3]:
                os.close(descriptor)
    for child in told:
        os.kill(child, signal.SIGKILL)
    signal.set_wakeup_fd(-1)
    for each in (control, woken, wake, *told.values()):
        each.close()


def _tell_ended(told: dict[int, socket.socket]) -> None:
    while told:
        child, status = os.waitpid(-1, os.WNOHANG)
        if not child:
            return
        with told.pop(child) as listener, suppress(BrokenPipeError):
            listener.sendall(NUMBER.pack(status))


def _load(modules: list[str]) -> None:
    new = [name for name in modules if name not in sys.modules]
    for name in new:
        # What is missing is a matter for the process itself.
        with suppress(ImportError):
            import_module(name)
    if new:
        # A collection in a child would otherwise write to every object, and copy all memory.
        gc.collect()
        gc.freeze()


def _begin(request: Request, descriptors: list[int]) -> NoReturn:
    """Be the new process."""
    code = 1
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if request.session:
            os.setsid()
        os.close(descriptors.pop())
        for standard, descriptor in enumerate(descriptors):
            os.dup2(descriptor, standard)
        for descriptor in descriptors:
            os.close(descriptor)
        if request.terminal:
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        os.chdir(request.folder)
        os.environ.clear()
        os.environ.update(request.environment)
        _open_streams()
        sys.argv[1:] = request.arguments
        # As in a process started with -c: multiprocessing then has no module to import in its workers.
        sys.modules["__main__"] = ModuleType("__main__")
        module, name = request.function.split(":")
        code = _exit_code(getattr(import_module(module), name))
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def _open_streams() -> None:
    """Open the three standard streams as Python does it."""
    encoding, _, errors = os.environ.get("PYTHONIOENCODING", "").partition(":")
    encoding = encoding or ("utf-8" if os.environ.get("PYTHONUTF8") == "1" else locale.getencoding())
    errors = errors or "strict"
    at_once = bool(os.environ.get("PYTHONUNBUFFERED"))
    sys.stdin = sys.__stdin__ = open(0, encoding=encoding, errors=errors, closefd=False)  # type: ignore[misc] # noqa: SIM115
    for number, name in ((1, "stdout"), (2, "stderr")):
        raw = io.FileIO(number, "w", closefd=False)
        stream = io.TextIOWrapper(
            io.BufferedWriter(raw),
            encoding=encoding,
            errors=errors if number == 1 else "backslashreplace",
            line_buffering=number == 2 or raw.isatty(),
            write_through=at_once,
        )
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def _exit_code(function: Callable[[], object]) -> int:
    """Call a function as the whole of a program, and return the exit code."""
    code = 0
    try:
        function()
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            code = end.code or 0
        else:
            print(end.code, file=sys.stderr)
            code = 1
    except KeyboardInterrupt:
        traceback.print_exc()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    except BaseException:
        traceback.print_exc()
        code = 1
    # What the interpreter does at the end: wait for threads, call what is registered, write what is left.
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
    except OSError:
        traceback.print_exc()
        code = 120
    sys.stderr.flush()
    return code & 0xFF


if __name__ == "__main__":
    main()
