"""How servers are killed under load, and how it is seen that nothing was lost."""

import os
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from suffice import ErrorStability
from suffice.project.create import open_project
from suffice.project.events import ACTS, Draft, Event, EventKind
from suffice.project.project_learner import ProjectLearner
from suffice.project.state import Answer
from suffice.project.storage import sa
from tests.processes import POSTGRES_MODULES, SERVER_MODULES, ForkedProcess
from tests.project.crash_clients import Client, Connection
from tests.project.crash_parent import fork_servers
from tests.project.making_projects import make, picture, replayed, some_items
from tests.project.naive_project import NaiveProject

SIZE = 1500
RULE = ErrorStability(threshold=0.3).state_dict()
PEOPLE = ("ann", "bob", "carol", "dan")
KINDS = {
    "label": EventKind.labelled,
    "skip": EventKind.skipped,
    "correct": EventKind.corrected,
    "undo": EventKind.undone,
    "start_check": EventKind.check_started,
    "abort_check": EventKind.check_aborted,
}
#: What only people do.
SENT = {*ACTS, EventKind.undone, EventKind.check_started, EventKind.check_aborted}


class Mother:
    """The process that forks the servers."""

    def __init__(self, place: str, kind: str, log: Path) -> None:
        function, pipe = f"{fork_servers.__module__}:{fork_servers.__name__}", subprocess.PIPE
        modules = [fork_servers.__module__, *SERVER_MODULES, *POSTGRES_MODULES]
        self._process = ForkedProcess(function, [place, kind, str(log)], modules=modules, stdin=pipe, stdout=pipe)
        self.port = int(self._read())

    def start(self) -> int:
        """Fork a server."""
        return int(self._ask("start"))

    def kill(self, server: int) -> None:
        """Kill a server, at once and whatever it is doing."""
        os.kill(server, signal.SIGKILL)
        assert self._ask(f"reap {server}") == "reaped"

    def __enter__(self) -> "Mother":
        return self

    def __exit__(self, *_: object) -> None:
        # At the end of what it reads, it kills the servers that are left.
        self._process.communicate(timeout=30)

    def _ask(self, line: str) -> str:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()
        return self._read()

    def _read(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()


@contextmanager
def under_load(connect: Callable[[], Connection], checks: float = 0.0) -> Iterator[list[Client]]:
    """People who label until the end, who then wait for an answer to what they sent last; some start checks."""
    features = some_items(SIZE, task="regression").X
    labels = [round(float(each), 3) for each in features @ [1.0, -2.0, 0.5] + np.sin(5.0 * features[:, 0])]
    clients = [Client(person, connect, labels, checks) for person in PEOPLE]
    for client in clients:
        client.start()
    yield clients
    for client in clients:
        client.leaving.set()
    for client in clients:
        client.join(60)
        assert not client.is_alive()


def acknowledged(clients: list[Client]) -> int:
    return sum(len(client.acknowledged) for client in clients)


def wait_for_an_answer(clients: list[Client], before: int) -> None:
    for _ in range(30_000):
        if acknowledged(clients) > before or any(client.failed for client in clients):
            return
        time.sleep(0.002)
    raise AssertionError("no server has answered for a minute")


def kill_many_times(mother: Mother, clients: list[Client], times: int, *, at_once: int, mean: float) -> None:
    """Kill servers at random moments, some before they have answered anything; then leave one running.

    Args:
        mother: Who forks them.
        clients: Who is served.
        times: How many are killed.
        at_once: How many run at a time.
        mean: Seconds between the first answer that is seen and the end, in the mean and without the first 5 ms.
    """
    rng = random.Random(7)
    servers = [mother.start() for _ in range(at_once)]
    for _ in range(times):
        if rng.random() < 0.85:
            wait_for_an_answer(clients, acknowledged(clients))
        time.sleep(min(0.15, 0.005 + rng.expovariate(1.0 / mean)))
        mother.kill(servers.pop(0))
        servers.append(mother.start())


def check_journal(place: str, clients: list[Client]) -> None:
    """Everything acknowledged is there once, as it was sent; and there is nothing that nobody has sent."""
    assert [client.failed for client in clients] == [[] for _ in clients]
    with open_project(place) as project:
        events = project.events()
        assert picture(project.state(), SIZE, 0.0) == picture(replayed(events, SIZE), SIZE, 0.0)
        told, plain = project.state().answers(), plainly_told(events)
        assert [answer[:2] for answer in told] == [answer[:2] for answer in plain]
        # Which ones a check has drawn at random is tested elsewhere.
        assert project.checks() or told == plain
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    by_request = {event.request: event for event in events if event.request is not None}
    assert set(Counter(event.request for event in events if event.request).values()) <= {1}
    sent = {request: message for client in clients for request, message in client.sent.items()}
    for event in events:
        if event.kind in SENT:
            assert event.request is not None
            check_same(event, sent[event.request])
        else:
            assert event.person in {"", *PEOPLE}
    for client in clients:
        numbers = []
        for message, answer in client.acknowledged:
            event = events[answer["seq"] - 1]
            check_same(event, message)
            assert event.item == answer["item"]
            # What was said before in other words is not written again, but then it is there.
            assert event.request == message["request"] or (answer["repeated"] and message["request"] not in by_request)
            numbers += [] if answer["repeated"] else [answer["seq"]]
        assert numbers == sorted(set(numbers))
        assert not by_request.keys() & set(client.refused)
        leases = {(event.item, event.data.get("until")) for event in events if event.person == client.person}
        assert {(each["item"], each["until"]) for each in client.asked} <= leases


def check_same(event: Event, message: dict[str, Any]) -> None:
    assert event.kind is KINDS[message["kind"]]
    assert event.person == message["person"]
    assert "item" not in message or event.item == message["item"]
    assert event.data.get("label") == message.get("label")
    assert event.data.get("size") == message.get("size")


def check_verdict(place: str, tmp_path: Path) -> Any:
    """The verdict is that of a project that was never interrupted; return it."""
    with open_project(place) as project:
        answers = project.state().answers()
        broken = ProjectLearner(project.settings, project.X)
        broken.follow(answers)
        verdict = broken.learning_status().verdict
        unbroken = make(tmp_path / "unbroken.suffice", SIZE, task="regression", rule=RULE)
        sa.event.listen(
            unbroken.journal.database._engine, "checkout", lambda each, *_: each.execute("PRAGMA synchronous=OFF")
        )
        assert unbroken.settings == project.settings
    project_learner = ProjectLearner(unbroken.settings, unbroken.X)
    for k, (item, label, drawn) in enumerate(answers):
        # That it was drawn at random, or not, is written when it is asked for.
        data = {"until": 0.0, "why": "", "random": drawn, "started": True}
        unbroken.journal.write(lambda *_, item=item, data=data: ([Draft(EventKind.asked, "eve", item, data)], None))
        if label is None:
            unbroken.skip(item, person="eve")
        else:
            unbroken.label(item, label, person="eve")
        if k % 100 == 0:
            project_learner.follow(unbroken.state().answers())
    project_learner.follow(unbroken.state().answers())
    unbroken.close()
    assert project_learner.learning_status().verdict == verdict
    assert verdict is not None
    assert verdict.n_labelled == sum(answer.label is not None for answer in answers)
    return verdict


def plainly_told(events: list[Event]) -> list[Answer]:
    """What the events come to by the plain telling of the rules."""
    naive = NaiveProject(SIZE, 600.0)
    for event in events:
        if event.kind is EventKind.asked and "random" in event.data:
            assert event.item is not None
            naive.drawn[event.item] = event.data["random"]
        if event.kind is EventKind.undone:
            assert naive.undo(event.person, event.at) == event.item
        elif event.kind in ACTS:
            assert event.item is not None
            do = {EventKind.labelled: naive.label, EventKind.skipped: naive.skip, EventKind.corrected: naive.correct}
            said = [event.data["label"]] if "label" in event.data else []
            assert do[event.kind](event.person, event.item, *said, event.at)  # type: ignore[operator]
    return [Answer(item, naive.label_of(item), naive.drawn.get(item, False)) for item in naive.done]
