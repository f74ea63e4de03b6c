"""Nothing acknowledged is ever lost: two processes on one project, killed; and a database server without power."""

from pathlib import Path
from typing import Any

import pytest

from suffice.project.create import open_project
from suffice.project.events import EventKind
from suffice.project.labelling_project import Project
from tests.project.crash_checks import (
    RULE,
    SIZE,
    Mother,
    acknowledged,
    check_journal,
    check_verdict,
    kill_many_times,
    under_load,
    wait_for_an_answer,
)
from tests.project.crash_clients import Lines
from tests.project.crash_parent import answer
from tests.project.making_projects import make
from tests.project.postgres_server import Server


@pytest.mark.one_in(2)
@pytest.mark.parametrize("times", [8, pytest.param(100, marks=pytest.mark.slow)])
def test_two_processes_on_one_project_killed_at_random_moments(place: str, times: int, tmp_path: Path) -> None:
    make(place, SIZE, task="regression", rule=RULE).close()
    times = times // 2 if "://" in place else times
    with Mother(place, "lines", tmp_path / "log") as mother:
        with under_load(lambda: Lines(mother.port)) as clients:
            kill_many_times(mother, clients, times, at_once=2, mean=0.01)
        check_journal(place, clients)
    assert (tmp_path / "log").read_text() == ""
    assert acknowledged(clients) > (times if times >= 50 else 0)


@pytest.mark.slow
def test_checks_of_a_project_whose_servers_are_killed(place: str, tmp_path: Path) -> None:
    with make(place, SIZE, task="regression", rule=RULE, lease=0.2) as project:
        project.start_check(6, person="ann", tolerance=0.5, predict=lambda *_: project.X[:, 0], request="ann-first")
    with Mother(place, "lines", tmp_path / "log") as mother:
        with under_load(lambda: Lines(mother.port), checks=0.2) as clients:
            clients[0].sent["ann-first"] = {"kind": "start_check", "person": "ann", "size": 6}
            kill_many_times(mother, clients, 100, at_once=2, mean=0.03)
        check_journal(place, clients)
    with open_project(place) as project:
        checks = project.checks()
        started = [event for event in project.events() if event.kind is EventKind.check_started]
    # Each request started one check, and no check began while another was open: at most the newest is open now.
    assert [event.data["number"] for event in started] == list(range(1, len(checks) + 1))
    assert len({event.request for event in started}) == len(checks)
    assert len(checks) > 1
    assert all(check.state != "open" for check in checks[:-1])
    refused = {request for client in clients for request in client.refused}
    assert not refused & {event.request for event in started}
    assert (tmp_path / "log").read_text() == ""


class Direct:
    """No connection: the project itself."""

    def __init__(self, project: Project) -> None:
        self._project = project

    def send(self, message: dict[str, Any]) -> dict[str, Any]:
        found = answer(self._project, dict(message))
        if found["status"] == 503:
            # Some do not try again.
            raise ConnectionError(found["detail"])
        return found

    def close(self) -> None:
        """Nothing to hang up."""


@pytest.mark.slow
def test_a_database_server_that_loses_its_power_again_and_again(postgres: Server, tmp_path: Path) -> None:
    place = postgres.new_place()
    with make(place, SIZE, task="regression", rule=RULE) as project:
        with under_load(lambda: Direct(project)) as clients:
            for _ in range(5):
                wait_for_an_answer(clients, acknowledged(clients) + 5)
                postgres.stop("immediate")
                postgres.start()
            wait_for_an_answer(clients, acknowledged(clients))
        check_journal(place, clients)
    check_verdict(place, tmp_path)
    assert sum(client.broken for client in clients) > 5
