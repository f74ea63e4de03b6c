"""A process that writes events of all kinds to a project until it is killed."""

import json
import os
import random
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

from suffice.errors import SufficeError
from suffice.project.create import create_project, open_project
from suffice.project.labelling_project import Project
from suffice.session.decision import Decision

#: Variable that names the file of acknowledgements.
ACKNOWLEDGED = "SUFFICE_TEST_ACKNOWLEDGED"
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
    return {
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


def act_until_killed(place: str, _: socket.socket) -> None:
    """Write events of all kinds; after each, append number and digest of the newest event to a file."""
    rng = random.Random(os.getpid())
    file = os.open(os.environ[ACKNOWLEDGED], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    with open_project(place) as project:
        while True:
            possible = acts(project, rng)
            accounts = len(project.accounts())
            for name in ("role", "secret") * (not accounts) + ("leave",) * (accounts < 4):
                del possible[name]
            # What does not fit the project now is refused, as it is for people.
            with suppress(SufficeError):
                possible[rng.choice(list(possible))]()
            newest = project.events()[-1]
            os.write(file, f"{json.dumps([newest.seq, newest.digest, project.size])}\n".encode())
