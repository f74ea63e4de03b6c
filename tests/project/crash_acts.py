"""Processes that write events of all kinds to a project until they are killed."""

import json
import os
import random
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from suffice.errors import SufficeError
from suffice.project import journal as journal_module
from suffice.project import sqlite_files
from suffice.project.create import create_project, open_project
from suffice.project.events import Event
from suffice.project.journal import ProjectJournal
from suffice.project.labelling_project import Project
from suffice.project.storage import StorageError
from suffice.session.decision import Decision

#: Variable that names the file of acknowledgements.
ACKNOWLEDGED = "SUFFICE_TEST_ACKNOWLEDGED"
#: Variable that names a file: while it exists, the clocks of the writers jump.
CLOCKS = "SUFFICE_TEST_CLOCKS"
#: Number of items at first.
SIZE = 40


def made(place: str) -> None:
    """Make the project: a table with two columns, because rows are added to it."""
    rows = {"x": [k / SIZE for k in range(SIZE)], "y": [k % 7 for k in range(SIZE)]}
    create_project(place, rows, classes=["a", "b", "c"]).close()


def acts(project: Project, rng: random.Random) -> dict[str, Callable[[], Any]]:
    """One way to write each kind of event, on what the project holds now."""
    state, person = project.state(), rng.choice(["ann", "bob"])
    classes, accounts = project.settings.classes, project.accounts()
    names = [account.name for account in accounts]
    one: Any = rng.choice(accounts) if accounts else None
    item, label = rng.randrange(project.size), rng.choice(classes)
    fresh = f"n{rng.randrange(10**9)}"
    labelled = [answer.item for answer in state.answers() if answer.label is not None] or [item]
    known = rng.choice(labelled)
    answer: Any = "keep going" if state.advice else "enough"
    stop = Decision(state.n_learned, project.size, share=True, answer=answer)
    other = "kernel" if project.current_settings.model == "logistic" else "logistic"
    # The classes stay few: one is added, renamed or merged.
    merged = (classes[:-1], {classes[-1]: classes[0]}) if len(classes) > 3 else ([*classes, fresh], {})
    predictions = {"id": [str(item + 1)], "guess": [label], "p": [rng.uniform(0.5, 1.0)]}
    found: dict[str, Callable[[], Any]] = {
        "ask": lambda: project.next(person),
        "label": lambda: project.label(item, label, person=person),
        "skip": lambda: project.skip(item, person=person),
        "unsure": lambda: project.unsure(item, person=person, reason=fresh),
        "correct": lambda: project.correct(known, label, person=person),
        "undo": lambda: project.undo(person=person),
        "confirm": lambda: project.confirm(known, person=person),
        "show": lambda: project.show_prediction(item, person=person),
        "predictions": lambda: project.import_predictions(
            predictions, prediction="guess", probability="p", id="id", by="id", person=person
        ),
        "labels": lambda: project.import_labels(
            {"id": [str(item + 1)], "kind": [label]}, label="kind", id="id", by="id", person=person, conflicts="replace"
        ),
        "received": lambda: project.import_labels(
            {"id": [str(item + 1)], "kind": [label]}, label="kind", id="id", by="id", person=person, request=fresh
        ),
        "rows": lambda: project.add_items({"x": [0.5, 0.25], "y": [1, 2], "label": ["", label]}, person=person),
        "advise": lambda: project.advise(stop),
        "resume": lambda: project.resume(person),
        "model": lambda: project.switch_model(other, person=person),
        "check": lambda: project.start_check(2, person=person, predict=lambda *_: np.array([label] * project.size)),
        "abort": lambda: project.abort_check(person=person),
        "classes": lambda: project.change_classes(*merged, person=person),
        "settings": lambda: project.change_settings({"guidelines": fresh}, person=person),
        "account": lambda: project.add_account(fresh, role="label", person=person),
        "role": lambda: project.change_role(one.name, "review" if one.role == "label" else "label", person=person),
        "secret": lambda: project.reset_account(rng.choice(names), person=person),
        # Some accounts stay, to be changed.
        "leave": lambda: project.remove_account(names[3], person=person),
    }
    for name in ("role", "secret") * (not names) + ("leave",) * (len(names) < 4):
        del found[name]
    return found


def one_act(project: Project, rng: random.Random) -> Callable[[], Any]:
    """One of these ways, at random."""
    possible = acts(project, rng)
    return possible[rng.choice(list(possible))]


def act_once(place: str) -> None:
    """Make a project and write events of all kinds to it, so that everything is imported that this needs."""
    made(place)
    with open_project(place) as project:
        for act in acts(project, random.Random(0)).values():
            with suppress(SufficeError):
                act()


def act_until_killed(place: str, _: socket.socket) -> None:
    """Write events of all kinds; after each, append number and digest of the newest event to a file."""
    rng = random.Random(os.getpid())
    file = os.open(os.environ[ACKNOWLEDGED], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    with open_project(place) as project:
        while True:
            # What does not fit the project now is refused, as it is for people.
            with suppress(SufficeError):
                one_act(project, rng)()
            newest = project.events()[-1]
            os.write(file, f"{json.dumps([newest.seq, newest.digest, project.size])}\n".encode())


class JumpingClock:
    """In place of the module ``time``: the system clock is set to other times, and the monotonic clock is not.

    Args:
        rng: Chooses the times.
        jumps: The clock jumps while this file exists.
    """

    # Back by a year, an hour and three seconds; forwards by an hour, thirty years, and beyond the year 9999.
    _JUMPS = (-3.2e7, -3600.0, -3.0, 3600.0, 9.5e8, 2.6e11, 1e15)

    def __init__(self, rng: random.Random, jumps: Path) -> None:
        self._rng, self._jumps, self._offset = rng, jumps, 0.0

    def time(self) -> float:
        if not self._jumps.exists():
            self._offset = 0.0
        elif self._rng.random() < 0.1:
            self._offset = self._rng.choice(self._JUMPS)
        return time.time() + self._offset

    def monotonic(self) -> float:
        return time.monotonic()


def act_and_record(place: str, _: socket.socket) -> None:
    """Write events of all kinds; append a line of JSON to a file for each acknowledgement and each fault.

    That of an acknowledgement has the process, the monotonic clock before the write, and number and digest of each
    event. That of a fault has the process, the clock and the message.
    """
    rng = random.Random(os.getpid())
    journal_module.time = JumpingClock(rng, Path(os.environ[CLOCKS]))  # type: ignore[attr-defined, assignment]
    file = os.open(os.environ[ACKNOWLEDGED], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    write = ProjectJournal._write

    def record(*line: Any) -> None:
        # What cannot be noted because files may not grow counts as not acknowledged.
        with suppress(OSError):
            os.write(file, f"\n{json.dumps([os.getpid(), *line])}\n".encode())

    def recorded(journal: ProjectJournal, decide: Any) -> tuple[list[Event], Any]:
        began = time.monotonic()
        events, result = write(journal, decide)
        record(began, [[event.seq, event.digest] for event in events])
        return events, result

    ProjectJournal._write = recorded  # type: ignore[assignment]
    # The log is moved into the main file often, so that a process is killed then, too.
    sqlite_files._WRITES_BEFORE_MOVE = 20
    try:
        with open_project(place) as project:
            while True:
                try:
                    one_act(project, rng)()
                except StorageError as error:
                    record(time.monotonic(), str(error))
                except SufficeError:
                    pass
                # The other writers and the faults have their turn.
                time.sleep(0.001 * rng.random())
    except SufficeError as error:
        record(time.monotonic(), f"not opened: {error}")
        time.sleep(3600)
