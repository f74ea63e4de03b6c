"""Processes that tests fork end, and say what they say, as any other process does."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.processes import ForkedProcess

PIPE = subprocess.PIPE


def leave() -> None:
    print(sys.argv[1], os.environ.get("PLACE"), Path.cwd())
    sys.exit(3)


def leave_with_words() -> None:
    sys.exit("no way on")


def fail() -> None:
    raise ZeroDivisionError("a mistake")


def echo() -> None:
    for line in sys.stdin:
        print(line.upper(), end="")


def wait() -> None:
    print("here", flush=True)
    time.sleep(600)


def forked(name: str, *arguments: str, **variables: str) -> ForkedProcess:
    environment = {**os.environ, **variables}
    return ForkedProcess(f"{__name__}:{name}", arguments, stdin=PIPE, stdout=PIPE, stderr=PIPE, env=environment)


def test_arguments_environment_folder_and_exit_code(tmp_path: Path) -> None:
    with forked("leave", "Grüße", PLACE="here") as process:
        assert process.communicate() == (f"Grüße here {tmp_path}\n", "")
        assert (process.returncode, process.poll(), process.wait()) == (3, 3, 3)
    with forked("leave", "again") as process:
        assert process.communicate()[0] == f"again None {tmp_path}\n"


def test_an_error_is_shown_and_the_exit_code_is_1() -> None:
    with forked("leave_with_words") as process:
        assert (process.communicate(), process.returncode) == (("", "no way on\n"), 1)
    with forked("fail") as process:
        assert process.communicate()[1].endswith("ZeroDivisionError: a mistake\n")
        assert process.returncode == 1


def test_what_is_sent_is_read_however_long_it_is() -> None:
    with forked("echo") as process:
        assert process.communicate("a line\n" * 50_000)[0] == "A LINE\n" * 50_000


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_signal_ends_it(number: signal.Signals) -> None:
    with forked("wait") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "here\n"
        assert process.poll() is None
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.01)
        process.send_signal(number)
        assert process.wait(60) == -number
