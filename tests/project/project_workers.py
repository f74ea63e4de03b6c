"""Other processes that work on a project, with what to do as arguments."""

import json
import os
import pwd
import signal
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from suffice.errors import SufficeError
from suffice.project import create as create_module
from suffice.project.create import open_project, write_project
from tests.processes import POSTGRES_MODULES, ForkedProcess
from tests.project.making_projects import CLASSES, about, some_items


def start(*arguments: str) -> ForkedProcess:
    """Start a process that does something; it says "ready" and waits for a line before it begins."""
    pipe = subprocess.PIPE
    modules = [__name__, *POSTGRES_MODULES]
    process = ForkedProcess(f"{__name__}:main", arguments, modules=modules, stdin=pipe, stdout=pipe, cwd="/")
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n", process.wait()
    return process


def begin(process: ForkedProcess) -> None:
    """Let a process that was started begin."""
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()


def finish(process: ForkedProcess) -> Any:
    """What a process came to."""
    said, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    return json.loads(said)


def label(place: str, person: str, count: str) -> list[tuple[int, str, int]]:
    """Label so many items, and tell what was acknowledged."""
    done = []
    with open_project(place) as project:
        for k in range(int(count)):
            asked = project.next(person)
            if not asked:
                break
            item, said = asked[0].position, CLASSES[k % 3]
            receipt = project.label(item, said, person=person, request=f"{person}-{k}")
            assert not receipt.repeated
            done.append((item, said, receipt.seq))
    return done


def create(place: str, n: str) -> str:
    """Make a project."""
    try:
        write_project(place, about(), some_items(int(n))).close()
    except SufficeError as error:
        return type(error).__name__
    return "made"


def look(place: str) -> dict[str, Any]:
    """Open a project as somebody who may not write to it, look at it, and try to write to it."""
    with tempfile.TemporaryDirectory() as folder:
        # Whatever is imported on the way may lie where nobody else can read.
        write_project(Path(folder) / "x", about(), some_items(3)).close()
        look_at(f"{folder}/x")
    if os.geteuid() == 0:
        nobody = pwd.getpwnam("nobody")
        os.setgroups([])
        os.setgid(nobody.pw_gid)
        os.setuid(nobody.pw_uid)
    return look_at(place)


def look_at(place: str) -> dict[str, Any]:
    """Open a project, look at it, and try to write to it."""
    try:
        with open_project(place) as project:
            n_labelled = project.state().n_labelled
            found: dict[str, Any] = {"n_labelled": n_labelled, "cells": project.item(0).cells, "X": project.X.sum()}
            try:
                project.label(1, "cat", person="nob")
            except SufficeError as error:
                found["written"] = f"{type(error).__name__}: {error}"
            else:
                found["written"] = "yes"
            return found
    except SufficeError as error:
        return {"opened": f"{type(error).__name__}: {error}"}


def open_and_count(place: str) -> int:
    """Open a project, whatever its layout, and count its labels."""
    with open_project(place) as project:
        return project.state().n_labelled


def die_while_migrating(place: str, moment: str) -> str:
    """Be killed at a moment of bringing a project up to date."""

    def die() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    step = create_module._STEPS[1]

    def killed(connection: Any) -> None:
        if moment == "kept aside":
            die()
        step(connection)
        if moment == "changed":
            die()

    create_module._STEPS[1] = killed
    if moment == "copying":
        create_module._copy = lambda *_: die()
    open_project(place).close()
    return "alive"


def limit_files(place: str, size: str) -> dict[str, Any]:
    """Label until a file may not grow any more, then again after the limit is lifted."""
    import resource

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with open_project(place) as project:
        done, refused = 0, ""
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(size), hard))
        while not refused:
            try:
                project.label(done, "cat", person="ann", request=f"r{done}")
                done += 1
            except SufficeError as error:
                refused = f"{type(error).__name__}: {error}"
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        again = project.label(done, "cat", person="ann", request=f"r{done}")
        return {"done": done, "refused": refused, "repeated": again.repeated, "n": project.state().n_labelled}


COMMANDS: dict[str, Callable[..., Any]] = {
    "label": label,
    "create": create,
    "look": look,
    "open": open_and_count,
    "migrate": die_while_migrating,
    "limit": limit_files,
}


def main() -> None:
    """Do what the arguments say."""
    warnings.simplefilter("error")
    print("ready", flush=True)
    sys.stdin.readline()
    print(json.dumps(COMMANDS[sys.argv[1]](*sys.argv[2:])))
