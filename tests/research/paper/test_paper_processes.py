"""Runs of the paper in several processes: what two do together, and what is left when one of them is killed."""

import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from suffice.errors import SufficeError
from suffice.trace import Trace
from suffice_research.data.catalogue import FileState, set_status
from suffice_research.data.protocols import CORRECTED, PUBLISHED, Experiment
from suffice_research.paper import experiments as planning
from suffice_research.paper.experiments import PaperRunWatcher, SkippedPaperRun, measured_runs, plan, run_experiment
from suffice_research.paper.outcome import RunOutcome
from suffice_research.runner import kept
from tests.processes import ForkedProcess

DATA = os.environ.get("SUFFICE_DATA")
TRACES = Path("traces")


class Told:
    """What a watcher was told."""

    def __init__(self) -> None:
        self.moved: list[tuple[int, int]] = []
        self.ended: list[tuple[int, RunOutcome | SkippedPaperRun]] = []

    @property
    def watcher(self) -> PaperRunWatcher:
        return PaperRunWatcher(lambda *news: self.moved.append(news), lambda *news: self.ended.append(news))


def rows(found: Sequence[RunOutcome | SkippedPaperRun]) -> list[dict[str, Any]]:
    """What is reported of each run, but for its time; all must have come to an end."""
    assert all(isinstance(each, RunOutcome) for each in found), found
    return [{**each.row(), "seconds": None} for each in found if isinstance(each, RunOutcome)]


def real(*wanted: str) -> None:
    for name in wanted:
        if DATA is None:
            pytest.skip(f"{name}: SUFFICE_DATA is not set")
        if any(status.state is FileState.missing for status in set_status(name)):
            pytest.skip(f"{name}: not in the folder that SUFFICE_DATA names")


def short(name: str, steps: int = 30) -> Experiment:
    return replace(PUBLISHED[name], steps=steps)


@pytest.mark.slow
def test_two_workers_do_what_one_does() -> None:
    real("power_plant", "grid_stability_c")
    # The first is the slowest, and does not end first.
    jobs = plan([short("blr/grid_stability_c", 200), short("brr/power_plant")], 2)
    jobs += plan([replace(CORRECTED["brr/power_plant"], steps=60)], 1)
    alone, told = measured_runs(jobs, Path("alone"), 1, Told().watcher), Told()
    together = measured_runs(jobs, TRACES, 2, told.watcher)
    assert rows(together) == rows(alone)
    for a, b in zip(alone, together, strict=True):
        assert isinstance(a, RunOutcome)
        assert isinstance(b, RunOutcome)
        assert a.ratio.tolist() == b.ratio.tolist()
        assert a.error.tolist() == b.error.tolist()
    assert sorted(number for number, _ in told.ended) == list(range(6))
    assert {found for _, found in told.ended} == set(together)
    assert {number for number, _ in told.moved} <= set(range(6))
    assert {path.name for path in TRACES.iterdir()} == {path.name for path in Path("alone").iterdir()}


def held() -> None:
    """Make three runs, one after the other; the second holds still where it is told to, and waits to be killed."""
    where, ended, save = sys.argv[1], list[object](), Trace.save

    def hold() -> None:
        print("held", flush=True)
        sys.stdin.read()

    def moved(number: int, _: int) -> None:
        if number == 1 and where == "running":
            hold()

    def half_saved(trace: Trace, path: str | Path) -> None:
        save(trace, path)
        if ended and where == "writing":
            Path(path).write_bytes(Path(path).read_bytes()[:700])
            hold()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Trace, "save", half_saved)
        jobs = plan([short("brr/power_plant")], 3)
        measured_runs(jobs, TRACES, 1, PaperRunWatcher(moved, lambda *news: ended.append(news)))


@pytest.mark.parametrize("where", ["running", "writing"])
def test_a_process_killed_in_the_middle_is_taken_up_again(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real("power_plant")
    jobs = plan([short("brr/power_plant")], 3)
    pipe = subprocess.PIPE
    with ForkedProcess(f"{__name__}:{held.__name__}", [where], stdin=pipe, stdout=pipe) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert process.returncode == -signal.SIGKILL
    # A file is there whole or not at all.
    assert [path.name for path in TRACES.glob("[!.]*")] == [f"{jobs[0].stem}.npz"]
    ran: list[int] = []

    def counted(experiment: Experiment, seed: int, **options: Any) -> Trace:
        ran.append(seed)
        return run_experiment(experiment, seed, **options)

    monkeypatch.setattr(planning, "run_experiment", counted)
    found = measured_runs(jobs, TRACES, 1, Told().watcher)
    assert ran == [2, 3]
    assert rows(found) == rows(measured_runs(jobs, Path("fresh"), 1, Told().watcher))


@pytest.fixture(scope="module")
def told_of_the_killed(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, list[bool]]:
    """What is said when workers are killed, and which runs are kept: one from before, one done, one cut off."""
    real("power_plant", "htru2")
    traces = tmp_path_factory.mktemp("killed")
    jobs = [*plan([short("brr/power_plant")], 2), *plan([PUBLISHED["blr/htru2"]])]
    measured_runs(jobs[:1], traces, 1, Told().watcher)

    def kill(*_: object) -> None:
        for child in multiprocessing.active_children():
            os.kill(child.pid or 0, signal.SIGKILL)

    # The third run takes seconds, so it is under way when the second ends.
    with pytest.raises(SufficeError) as told:
        measured_runs([jobs[1], jobs[2], jobs[0]], traces, 2, PaperRunWatcher(lambda *_: None, kill))
    return str(told.value), [kept(job, traces) is not None for job in jobs]


@pytest.mark.slow
def test_a_worker_that_is_killed_is_told_in_a_sentence(told_of_the_killed: tuple[str, list[bool]]) -> None:
    said, kept_ones = told_of_the_killed
    assert said.startswith("a worker was killed")
    assert "The same command continues from there" in said
    assert kept_ones == [True, True, False]


#: Two runs at once that never end. A worker reads this file too, and so has the same runs.
ENDLESS = """
import os
import time
from pathlib import Path
from suffice_research.data.protocols import PUBLISHED
from suffice_research.paper import experiments as planning
from suffice_research.paper.experiments import PaperRunWatcher, measured_runs, plan

def endless(*args, **options):
    os.write(1, f"{os.getpid()}\\n".encode())
    while True:
        time.sleep(0.05)

planning.run_experiment, planning.require_set = endless, lambda name: None
if __name__ == "__main__":
    jobs = plan([PUBLISHED["brr/power_plant"]], 2)
    measured_runs(jobs, Path("traces"), 2, PaperRunWatcher(print, print))
"""


@pytest.mark.slow
def test_workers_end_with_the_process_that_asked() -> None:
    Path("endless.py").write_text(ENDLESS)
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "endless.py"], stdout=pipe, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        workers = {int(process.stdout.readline()) for _ in range(2)}
        assert len(workers) == 2
        assert process.pid not in workers
        process.send_signal(signal.SIGKILL)
        try:
            # All that it started write to the same pipe: it ends when the last of them does.
            process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            for worker in workers:
                os.kill(worker, signal.SIGKILL)
            pytest.fail("the workers go on without the process that asked for them")
    assert process.returncode == -signal.SIGKILL
