"""Nothing acknowledged is ever lost: servers killed at hundreds of random moments, under load."""

import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from suffice.errors import SufficeError
from suffice.session.database import StorageError
from suffice.session.events import ACTS, Event, EventKind
from suffice.session.learning import Follower
from suffice.session.making import open_project
from suffice.session.project import Project
from suffice.session.state import Call

sys.path.append(str(Path(__file__).parent))
import crash_parent
from crash_clients import Client, Lines, Web, true_label
from making_projects import make, picture, replayed

pytest_plugins = ["project_places"]

SIZE = 4000
PEOPLE = ("ann", "bob", "carol", "dan")
KINDS = {
    "label": EventKind.labelled,
    "skip": EventKind.skipped,
    "correct": EventKind.corrected,
    "undo": EventKind.undone,
}


class Mother:
    """The process that forks the servers."""

    def __init__(self, place: str, kind: str, log: Path) -> None:
        command = [sys.executable, crash_parent.__file__, place, kind, str(log)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        self.port = int(self._read())

    def start(self) -> int:
        """Fork a server."""
        return int(self._ask("start"))

    def kill(self, server: int) -> None:
        """Kill a server, at once and whatever it is doing."""
        import os
        import signal

        os.kill(server, signal.SIGKILL)
        assert self._ask(f"reap {server}") == "reaped"

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(30)
        self._process.stdout.close()

    def _ask(self, line: str) -> str:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()
        return self._read()

    def _read(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()


@contextmanager
def under_load(port: int, connect: type[Lines] | type[Web]) -> Iterator[list[Client]]:
    """People who label until the end, who then wait for an answer to what they sent last."""
    clients = [Client(person, seed, port, connect) for seed, person in enumerate(PEOPLE)]
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


def kill_many_times(mother: Mother, clients: list[Client], times: int, *, at_once: int) -> None:
    """Kill servers at random moments, some before they have answered anything; then leave one running."""
    rng = random.Random(7)
    servers = [mother.start() for _ in range(at_once)]
    for _ in range(times):
        if rng.random() < 0.85:
            wait_for_an_answer(clients, acknowledged(clients))
        time.sleep(min(0.15, 0.005 + rng.expovariate(25.0)))
        mother.kill(servers.pop(0))
        servers.append(mother.start())


def check_journal(place: str, clients: list[Client]) -> None:
    """Everything acknowledged is there once, as it was sent; and there is nothing that nobody has sent."""
    assert [client.failed for client in clients] == [[] for _ in clients]
    with open_project(place) as project:
        events = project.events()
        assert picture(project.state(), SIZE, 0.0) == picture(replayed(events, SIZE), SIZE, 0.0)
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    by_request = {event.request: event for event in events if event.request is not None}
    assert set(Counter(event.request for event in events if event.request).values()) <= {1}
    sent = {request: message for client in clients for request, message in client.sent.items()}
    for event in events:
        if event.kind in ACTS or event.kind is EventKind.undone:
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


def check_verdict(place: str, tmp_path: Path) -> Any:
    """The verdict is that of a project that was never interrupted; return it."""
    with open_project(place) as project:
        calls = project.state().calls()
        assert calls == plainly_told(project.events())
        broken = Follower(project.settings, project.X)
        broken.follow(calls)
        verdict = broken.insight().verdict
        unbroken = make(tmp_path / "unbroken.suffice", SIZE, task="regression")
        assert unbroken.settings == project.settings
    follower = Follower(unbroken.settings, unbroken.X)
    for k, (item, label) in enumerate(calls):
        if label is None:
            unbroken.skip(item, person="eve")
        else:
            unbroken.label(item, label, person="eve")
        if k % 100 == 0:
            follower.follow(unbroken.state().calls())
    follower.follow(unbroken.state().calls())
    unbroken.close()
    assert follower.insight().verdict == verdict
    assert verdict is not None
    assert verdict.n_labelled == sum(label is not None for _, label in calls)
    return verdict


def plainly_told(events: list[Event]) -> list[Call]:
    """What the events come to, gone through item by item."""
    undone = {event.data["of"] for event in events if event.kind is EventKind.undone}
    told: dict[int, Call] = {}
    for item in {event.item for event in events if event.kind in ACTS}:
        acts = [event for event in events if event.item == item and event.kind in ACTS and event.seq not in undone]
        labels = [act for act in acts if act.kind is EventKind.labelled]
        corrections = [act for act in acts if act.kind is EventKind.corrected]
        if not acts:
            continue
        assert item is not None
        # The order is that of the first act that still stands: nobody here labels what another has.
        counting = (corrections or labels[:1] or [None])[-1]
        told[acts[0].seq] = Call(item, None if counting is None else counting.data["label"])
    return [told[seq] for seq in sorted(told)]


def test_servers_killed_at_two_hundred_moments(place: str, tmp_path: Path) -> None:
    make(place, SIZE, task="regression").close()
    log = tmp_path / "log"
    mother = Mother(place, "web", log)
    try:
        with under_load(mother.port, Web) as clients:
            kill_many_times(mother, clients, 200, at_once=1)
            wait_for_an_answer(clients, acknowledged(clients))
        check_journal(place, clients)
        verdict = check_verdict(place, tmp_path)
        served = served_verdict(mother.port)
        assert (served["stop"], served["value"]) == (verdict.stop, verdict.value)
    finally:
        mother.close()
    assert not log.exists() or log.read_text() == ""
    assert acknowledged(clients) > 200
    assert sum(client.broken for client in clients) > 200


def served_verdict(port: int) -> dict[str, Any]:
    """What the page shows once the model has learned everything."""
    web = Web(port)
    for _ in range(600):
        status = web.ask("GET", "/api/status")
        if status["behind"] == 0 and status["verdict"] is not None:
            break
        time.sleep(0.1)
    web.close()
    assert status["behind"] == 0
    found: dict[str, Any] = status["verdict"]
    return found
