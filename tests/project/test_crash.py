"""Nothing acknowledged is ever lost: servers killed at random moments, under load."""

import time
from pathlib import Path

import pytest

from tests.project.crash_checks import (
    RULE,
    SIZE,
    Mother,
    acknowledged,
    check_journal,
    check_verdict,
    kill_many_times,
    under_load,
)
from tests.project.crash_clients import Web
from tests.project.making_projects import make


def served_verdict(port: int, expected: tuple[bool, float | None]) -> tuple[bool, float | None]:
    """What the page shows once the model has learned everything, also what was corrected and undone."""
    web = Web(port)
    found: tuple[bool, float | None] = (False, None)
    for _ in range(300):
        verdict = web.ask("GET", "/api/status")["verdict"]
        if verdict is not None:
            found = verdict["stop"], verdict["value"]
        if found == expected:
            break
        time.sleep(0.1)
    web.close()
    return found


@pytest.mark.slow
def test_servers_killed_at_random_moments(place: str, tmp_path: Path) -> None:
    make(place, SIZE, task="regression", rule=RULE).close()
    times = 20 if "://" in place else 40
    with Mother(place, "web", tmp_path / "log") as mother:
        with under_load(lambda: Web(mother.port)) as clients:
            kill_many_times(mother, clients, times, at_once=1, mean=0.04)
        check_journal(place, clients)
        verdict = check_verdict(place, tmp_path)
        expected = verdict.stop, verdict.value
        assert served_verdict(mother.port, expected) == expected
    assert (tmp_path / "log").read_text() == ""
    assert acknowledged(clients) > times
    assert sum(client.broken for client in clients) > times
