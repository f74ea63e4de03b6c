"""Nothing acknowledged is lost without a message: 300 rounds of random faults, see :mod:`tests.project.fault_rounds`.

The variable ``SUFFICE_FAULT_SEED`` chooses other faults and moments; a failure names its seed and its round.
"""

import os
import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.project.crash_acts import ACKNOWLEDGED, CLOCKS, made
from tests.project.crash_checks import Mother
from tests.project.fault_rounds import POSTGRES_FAULTS, SQLITE_FAULTS, Rounds
from tests.project.full_disk import small_disk
from tests.project.postgres_server import Server

SEED = int(os.environ.get("SUFFICE_FAULT_SEED", "1"))


@contextmanager
def named(seed: str, number: int, fault: str) -> Iterator[None]:
    """Name the seed and the round of a failure."""
    try:
        yield
    except BaseException as error:
        error.add_note(f"seed {seed}, round {number}: {fault}")
        raise


@contextmanager
def rounds_in(place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rng: random.Random) -> Iterator[Rounds]:
    """A new project, and a process that forks its writers."""
    told, clocks, log = tmp_path / "told", tmp_path / "clocks", tmp_path / "log"
    monkeypatch.setenv(ACKNOWLEDGED, str(told))
    monkeypatch.setenv(CLOCKS, str(clocks))
    with Mother(place, "record", log) as mother:
        yield Rounds(place, mother, told, clocks, rng)
    # No writer has ended by anything but a signal; a driver may write a message.
    assert "Traceback" not in (log.read_text() if log.exists() else "")


@pytest.mark.slow
@pytest.mark.parametrize("part", range(6))
def test_random_faults_of_a_project_in_sqlite(part: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # In parts, because a journal that has grown takes longer to open.
    seed, times = f"{SEED}-{part}", 35
    rng, seen, spare = random.Random(seed), Counter[str](), tmp_path / "spare"
    spare.mkdir()
    with small_disk(tmp_path / "disk", 24) as mounted:
        # Half of the parts have a disk that is filled; the files of the others may not grow.
        filling = tmp_path / "disk" / "filling" if mounted and part % 2 else None
        place = str(tmp_path / "disk" / "pets.suffice")
        made(place)
        with rounds_in(place, tmp_path, monkeypatch, rng) as rounds:
            for number in range(times):
                # Each fault, in an order of its own, and again.
                if number % len(SQLITE_FAULTS) == 0:
                    order = rng.sample(SQLITE_FAULTS, len(SQLITE_FAULTS))
                fault = order[number % len(SQLITE_FAULTS)]
                with named(seed, number, fault):
                    rounds.sqlite_round(fault, spare, filling)
                seen[fault] += 1
        rounds.check_state()
    assert set(seen) == set(SQLITE_FAULTS)
    assert rounds.counts["acknowledged"] > 2 * times


@pytest.mark.slow
@pytest.mark.parametrize("part", range(3))
def test_random_faults_of_a_project_in_postgresql(
    part: int, postgres: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seed, times = f"{SEED}-{part}", 30
    rng, place = random.Random(seed), postgres.new_place()
    name, events = place.rpartition("%3D")[2], f"small_{part}"
    with tempfile.TemporaryDirectory() as reached, small_disk(Path(reached) / "disk", 16) as mounted:
        disk = Path(reached) / "disk"
        Path(reached).chmod(0o755)
        made(place)
        weights = {fault: weight for fault, weight in POSTGRES_FAULTS.items() if mounted or fault != "full disk"}
        faults = [fault for fault, weight in weights.items() for _ in range(weight)]
        if mounted:
            shutil.chown(disk, "postgres")
            postgres.execute(f"CREATE TABLESPACE {events} LOCATION '{disk}'")
            postgres.execute(f"ALTER TABLE {name}.events SET TABLESPACE {events}")
        try:
            with rounds_in(place, tmp_path, monkeypatch, rng) as rounds:
                for number in range(times):
                    if number % len(faults) == 0:
                        order = rng.sample(faults, len(faults))
                    fault = order[number % len(faults)]
                    with named(seed, number, fault):
                        rounds.postgres_round(fault, postgres, disk / "filling" if mounted else None)
            rounds.check_state()
        finally:
            if mounted:
                postgres.execute(f"DROP SCHEMA {name} CASCADE")
                postgres.execute(f"DROP TABLESPACE {events}")
    assert rounds.counts["acknowledged"] > 2 * times
