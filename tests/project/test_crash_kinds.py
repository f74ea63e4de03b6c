"""Nothing acknowledged is ever lost, whatever kind of event was written when the process was killed."""

import json
import random
import re
import time
from collections import Counter
from pathlib import Path

import pytest

from suffice.project.create import open_project
from suffice.project.events import EventKind
from tests.project.crash_acts import ACKNOWLEDGED, SIZE, made
from tests.project.crash_checks import Mother
from tests.project.making_projects import picture, replayed


# In parts, because a journal that has grown takes longer to open.
@pytest.mark.slow
@pytest.mark.parametrize(("times", "seed"), [(40, 1)])
def test_processes_killed_while_they_write_events_of_all_kinds(
    place: str, times: int, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(place)
    times = times * 3 // 7 if "://" in place else times
    told, rng, awaited = tmp_path / "acknowledged", random.Random(seed), 0
    monkeypatch.setenv(ACKNOWLEDGED, str(told))
    with Mother(place, "acts", tmp_path / "log") as mother:
        for _ in range(times):
            server, before = mother.start(), told.stat().st_size if told.exists() else 0
            if rng.random() < 0.9:
                awaited += 1
                for _ in range(15_000):
                    if told.exists() and told.stat().st_size > before:
                        break
                    time.sleep(0.002)
                else:
                    raise AssertionError((tmp_path / "log").read_text())
            time.sleep(rng.expovariate(1.0 / 0.02))
            mother.kill(server)
    assert (tmp_path / "log").read_text() == ""
    # A process can be killed in the middle of a line; the event of an incomplete line was not acknowledged.
    lines = re.findall(r'\[\d+, "[0-9a-f]{64}", \d+\]', told.read_text())
    assert len(lines) > told.read_text().count("[") - times
    acknowledged = [json.loads(line) for line in lines]
    with open_project(place) as project:
        events, size = project.events(), project.size
        assert picture(project.state(), size, 0.0) == picture(replayed(events, SIZE), size, 0.0)
    # The chain of digests makes each acknowledgement one of everything before it.
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    for seq, digest, _ in acknowledged:
        assert events[seq - 1].digest == digest
    numbers = [seq for seq, _, _ in acknowledged]
    assert numbers == sorted(numbers)
    # What was added is there as a whole: items with their event.
    added = [event for event in events if event.kind is EventKind.items_added]
    assert size == SIZE + 2 * len(added)
    assert [event.data["first"] for event in added] == [SIZE + 2 * k for k in range(len(added))]
    assert max(each for _, _, each in acknowledged) <= size
    assert len(acknowledged) >= awaited > times / 2
    # How much is written between two kills depends on the machine.
    if len(acknowledged) > 600:
        seen = Counter(event.kind for event in events[: numbers[-1]])
        assert set(EventKind) - set(seen) == {EventKind.lost}  # only a repair writes it
