"""Runs of the paper carried out: kept, taken up again, side by side; with data missing, and with processes killed."""

import hashlib
import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from suffice.data import catalogue
from suffice.data.catalogue import SETS, DataFile
from suffice.data.checking import State, set_status
from suffice.data.protocols import CORRECTED, PUBLISHED, Experiment
from suffice.errors import SufficeError
from suffice.experiments.paper import runner
from suffice.experiments.paper.outcome import Outcome
from suffice.experiments.paper.plan import Job, plan
from suffice.experiments.paper.runner import Skipped, Watcher, carry_out, carry_out_all, kept
from suffice.experiments.paper.runs import run_experiment
from suffice.trace import Trace

DATA = os.environ.get("SUFFICE_DATA")
TRACES = Path("traces")


# ------------------------------------------------------------------------------- runs that are kept, without data


class Fake:
    """Stands in for the runs themselves, and counts them."""

    def __init__(self) -> None:
        self.ran: list[tuple[str, int]] = []
        self.problem: dict[str, SufficeError] = {}
        self.checkpoints: list[Path | None] = []

    def __call__(
        self, experiment: Experiment, seed: int, *, checkpoint: Path | None = None, progress: Any = None
    ) -> Trace:
        self.ran.append((experiment.name, seed))
        self.checkpoints.append(checkpoint)
        if checkpoint is not None:
            checkpoint.write_text("a round")
        if experiment.name in self.problem:
            raise self.problem[experiment.name]
        rng = np.random.default_rng(seed + 100 * len(experiment.name))
        progress(10, 30)
        progress(30, 30)
        made = Trace.of_divergences(*np.exp(-rng.random((2, 30)).cumsum(axis=1)), first=10)
        return replace(made, error=np.exp(-rng.random(30).cumsum()))


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Fake:
    made = Fake()
    monkeypatch.setattr(runner, "run_experiment", made)
    monkeypatch.setattr(runner, "require_set", lambda name: None)
    return made


class Told:
    """What a watcher was told."""

    def __init__(self) -> None:
        self.moved: list[tuple[int, int]] = []
        self.ended: list[tuple[int, Outcome | Skipped]] = []

    @property
    def watcher(self) -> Watcher:
        return Watcher(lambda *news: self.moved.append(news), lambda *news: self.ended.append(news))


def rows(found: Sequence[Outcome | Skipped]) -> list[dict[str, Any]]:
    """What is reported of each run, but for its time; all must have come to an end."""
    assert all(isinstance(each, Outcome) for each in found), found
    return [{**each.row(), "seconds": None} for each in found if isinstance(each, Outcome)]


def all_of(jobs: Sequence[Job], workers: int = 1, watcher: Watcher | None = None) -> list[Outcome | Skipped]:
    return carry_out_all(jobs, TRACES, workers, watcher or Told().watcher)


JOBS = plan([PUBLISHED["gpr/protein"], CORRECTED["blr/skin"]], 2)


def test_a_second_call_runs_nothing(fake: Fake) -> None:
    first, told = all_of(JOBS), Told()
    assert fake.ran == [("gpr/protein", 1), ("gpr/protein", 2)] + [("blr/skin", seed) for seed in (0, 0, 1, 1)]
    second = all_of(JOBS, watcher=told.watcher)
    assert len(fake.ran) == 6
    # To the digit, and with the time that the run took when it was run.
    assert [each.row() for each in second if isinstance(each, Outcome)] == [
        each.row() for each in first if isinstance(each, Outcome)
    ]
    assert told.ended == list(enumerate(second))
    assert told.moved == []
    assert sorted(path.name for path in TRACES.iterdir()) == sorted(f"{job.stem}.npz" for job in JOBS)


def test_results_come_in_the_order_of_the_jobs(fake: Fake) -> None:
    all_of(JOBS[3:4])
    found, told = all_of(JOBS[::-1], watcher=(seen := Told()).watcher), [(each.seed, each.arm) for each in JOBS[::-1]]
    assert [(each.seed, each.arm) for each in found if isinstance(each, Outcome)] == told
    assert [number for number, _ in seen.ended] == list(range(6))
    assert set(seen.moved) == {(number, steps) for number in (0, 1, 3, 4, 5) for steps in (10, 30)}
    assert len(fake.ran) == 6


def test_thresholds_are_read_from_the_run_that_is_kept(fake: Fake) -> None:
    (first,) = all_of(JOBS[:1])
    other = replace(JOBS[0], experiment=replace(JOBS[0].experiment, thresholds=(0.5, 0.01), calibration=3))
    (second,) = all_of([other])
    assert len(fake.ran) == 1
    assert isinstance(first, Outcome)
    assert isinstance(second, Outcome)
    assert list(second.stops) == ["0.5", "0.01"]
    assert second.error.tolist() == first.error.tolist()
    # A setting that matters: run again, over the file that was there.
    all_of([replace(JOBS[0], experiment=replace(JOBS[0].experiment, noise_floor=0.2))])
    assert len(fake.ran) == 2
    assert kept(JOBS[0], TRACES) is None


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda content: b"",
    "words": lambda content: b"this is no run",
    "half": lambda content: content[: len(content) // 2],
    "last byte lost": lambda content: content[:-1],
}


@pytest.mark.parametrize("damage", list(DAMAGES))
def test_a_damaged_file_is_run_again(fake: Fake, damage: str) -> None:
    first, path = all_of(JOBS[:2]), TRACES / f"{JOBS[0].stem}.npz"
    path.write_bytes(DAMAGES[damage](path.read_bytes()))
    assert rows(all_of(JOBS[:2])) == rows(first)
    assert fake.ran == [("gpr/protein", 1), ("gpr/protein", 2), ("gpr/protein", 1)]
    assert kept(JOBS[0], TRACES) is not None


def test_a_file_with_one_wrong_bit_is_run_again(fake: Fake) -> None:
    first, path = all_of(JOBS[:1]), TRACES / f"{JOBS[0].stem}.npz"
    whole = path.read_bytes()
    for place in range(0, len(whole), 9):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        assert rows(all_of(JOBS[:1])) == rows(first)
    assert len(fake.ran) > 1


def test_a_file_of_somebody_else_is_run_again(fake: Fake) -> None:
    first = all_of(JOBS[:2])
    (TRACES / f"{JOBS[1].stem}.npz").replace(TRACES / f"{JOBS[0].stem}.npz")
    assert rows(all_of(JOBS[:2])) == rows(first)
    assert len(fake.ran) == 4
    Trace.of_divergences([0.1], [0.1], first=1).save(TRACES / f"{JOBS[0].stem}.npz")
    assert rows(all_of(JOBS[:1])) == rows(first[:1])
    np.savez(TRACES / f"{JOBS[0].stem}.npz", numbers=np.arange(3))
    assert rows(all_of(JOBS[:1])) == rows(first[:1])
    assert len(fake.ran) == 6


def test_a_run_that_cannot_be_done_does_not_stop_the_others(fake: Fake) -> None:
    fake.problem = {"gpr/protein": SufficeError("no more room")}
    found = all_of(JOBS, watcher=(told := Told()).watcher)
    assert [type(each) for each in found] == [Skipped] * 2 + [Outcome] * 4
    assert found[0] == Skipped(JOBS[0], "no more room")
    assert told.ended == list(enumerate(found))
    # It is tried again the next time, and the others are not.
    fake.problem = {}
    assert len(rows(all_of(JOBS))) == 6
    assert len(fake.ran) == 8


def test_a_network_has_a_checkpoint_until_it_is_done(fake: Fake) -> None:
    (job,) = plan([PUBLISHED["bdnn/mnist"]])
    fake.problem = {"bdnn/mnist": SufficeError("diverged")}
    assert isinstance(all_of([job])[0], Skipped)
    assert fake.checkpoints == [TRACES / f"{job.stem}.checkpoint"]
    assert (TRACES / f"{job.stem}.checkpoint").exists()
    fake.problem = {}
    all_of([job, JOBS[0]])
    assert fake.checkpoints[-1] is None
    assert not (TRACES / f"{job.stem}.checkpoint").exists()


@pytest.mark.usefixtures("fake")
def test_a_folder_that_cannot_be_made() -> None:
    TRACES.write_text("a file")
    with pytest.raises(SufficeError, match="the runs cannot be kept in traces: File exists"):
        all_of(JOBS)


def test_how_long_a_run_took_is_kept(fake: Fake) -> None:
    TRACES.mkdir()
    first, again = carry_out(JOBS[0], TRACES, lambda *_: None), carry_out(JOBS[0], TRACES)
    assert first.row() == again.row()
    assert len(fake.ran) == 1


class News:
    """Takes the place of the queue between a worker and the process that asked."""

    def __init__(self) -> None:
        self.put_in: list[tuple[int, int]] = []
        self.put = self.put_in.append


def test_a_worker_tells_how_far_it_is_wherever_its_blocks_end(monkeypatch: pytest.MonkeyPatch) -> None:
    ends, news = [4, 38, 68, 101, 155, 290, 310, 499, 551, 600], News()

    def run(experiment: Experiment, seed: int, *, progress: Callable[[int, int], None]) -> Trace:
        for done in ends:
            progress(done, 600)
        return Fake()(experiment, seed, progress=lambda *_: None)

    monkeypatch.setattr(runner, "run_experiment", run)
    monkeypatch.setattr(runner, "_moves", news)
    TRACES.mkdir()
    runner._attempt_apart(7, JOBS[0], TRACES)
    # Each fifty steps that the blocks let see are worth a word; each word is true, and the last one comes.
    assert news.put_in[-1] == (7, 600)
    assert len(news.put_in) >= 6
    assert set(news.put_in) <= {(7, done) for done in ends}


# ------------------------------------------------------------------------------------------------ data sets that fail


@pytest.fixture
def small_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A data folder in which protein, made small, is all there is; and runs that need no data."""
    content = b"1 2 3 4 5 6 7 8 9 10\n"
    file = DataFile("uci/protein.txt", hashlib.sha256(content).hexdigest(), len(content), ())
    monkeypatch.setattr(catalogue, "SETS", {**SETS, "protein": replace(SETS["protein"], files=(file,))})
    monkeypatch.setattr(runner, "run_experiment", Fake())
    monkeypatch.setenv("SUFFICE_DATA", str(tmp_path / "data"))
    path = tmp_path / "data" / "uci" / "protein.txt"
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.usefixtures("small_set")
def test_a_data_set_that_is_missing_is_named_and_the_others_go_on(workers: int) -> None:
    jobs = [JOBS[2], JOBS[0], JOBS[4]]
    found = all_of(jobs, workers, (told := Told()).watcher)
    assert [type(each) for each in found] == [Skipped, Outcome, Skipped]
    for each in (found[0], found[2]):
        assert isinstance(each, Skipped)
        assert "data set skin" in each.reason
        assert "is missing" in each.reason
        assert "suffice data fetch skin" in each.reason
    assert sorted(number for number, _ in told.ended) == [0, 1, 2]


def test_a_data_set_that_is_damaged_is_told_with_both_checksums(small_set: Path) -> None:
    right = hashlib.sha256(small_set.read_bytes()).hexdigest()
    small_set.write_bytes(b"1 2 3 4 5 6 7 8 9 11\n")
    (found,) = all_of(JOBS[:1])
    assert isinstance(found, Skipped)
    assert right in found.reason
    assert hashlib.sha256(small_set.read_bytes()).hexdigest() in found.reason
    assert "protein" in found.reason


def test_a_run_that_is_kept_needs_no_data(small_set: Path) -> None:
    first = all_of(JOBS[:2])
    small_set.unlink()
    assert rows(all_of(JOBS[:2])) == rows(first)


# --------------------------------------------------------------------------------------- real runs, and processes


def real(*wanted: str) -> None:
    for name in wanted:
        if DATA is None:
            pytest.skip(f"{name}: SUFFICE_DATA is not set")
        if any(status.state is State.missing for status in set_status(name)):
            pytest.skip(f"{name}: not in the folder that SUFFICE_DATA names")


def short(name: str, steps: int = 30) -> Experiment:
    return replace(PUBLISHED[name], steps=steps)


def test_two_workers_do_what_one_does() -> None:
    real("power_plant", "grid_stability_c")
    # The first is the slowest, and does not end first.
    jobs = plan([short("blr/grid_stability_c", 200), short("brr/power_plant")], 2)
    jobs += plan([replace(CORRECTED["brr/power_plant"], steps=60)], 1)
    alone, told = carry_out_all(jobs, Path("alone"), 1, Told().watcher), Told()
    together = all_of(jobs, 2, told.watcher)
    assert rows(together) == rows(alone)
    for a, b in zip(alone, together, strict=True):
        assert isinstance(a, Outcome)
        assert isinstance(b, Outcome)
        assert a.ratio.tolist() == b.ratio.tolist()
        assert a.error.tolist() == b.error.tolist()
    assert sorted(number for number, _ in told.ended) == list(range(6))
    assert {found for _, found in told.ended} == set(together)
    assert {number for number, _ in told.moved} <= set(range(6))
    assert {path.name for path in TRACES.iterdir()} == {path.name for path in Path("alone").iterdir()}


#: Three runs, one after the other; the second holds still where it is told to, and waits to be killed.
HELD = """
import sys
from dataclasses import replace
from pathlib import Path
from suffice.data.protocols import PUBLISHED
from suffice.experiments.paper.plan import plan
from suffice.experiments.paper.runner import Watcher, carry_out_all
from suffice.trace import Trace

where, ended, save = sys.argv[1], [], Trace.save

def hold():
    print("held", flush=True)
    sys.stdin.read()

def moved(number, steps):
    if number == 1 and where == "running":
        hold()

def half_saved(trace, path):
    save(trace, path)
    if ended and where == "writing":
        Path(path).write_bytes(Path(path).read_bytes()[:700])
        hold()

Trace.save = half_saved
jobs = plan([replace(PUBLISHED["brr/power_plant"], steps=30)], 3)
carry_out_all(jobs, Path("traces"), 1, Watcher(moved, lambda *news: ended.append(news)))
"""


@pytest.mark.parametrize("where", ["running", "writing"])
def test_a_process_killed_in_the_middle_is_taken_up_again(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real("power_plant")
    jobs = plan([short("brr/power_plant")], 3)
    command, pipe = [sys.executable, "-c", HELD, where], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
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

    monkeypatch.setattr(runner, "run_experiment", counted)
    found = all_of(jobs)
    assert ran == [2, 3]
    assert rows(found) == rows(carry_out_all(jobs, Path("fresh"), 1, Told().watcher))


@pytest.fixture(scope="module")
def told_of_the_killed(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, list[bool]]:
    """What is said when workers are killed, and which runs are kept: one from before, one done, one cut off."""
    real("power_plant", "htru2")
    traces = tmp_path_factory.mktemp("killed")
    jobs = [*plan([short("brr/power_plant")], 2), *plan([PUBLISHED["blr/htru2"]])]
    carry_out_all(jobs[:1], traces, 1, Told().watcher)

    def kill(*_: object) -> None:
        for child in multiprocessing.active_children():
            os.kill(child.pid or 0, signal.SIGKILL)

    # The third run takes seconds, so it is under way when the second ends.
    with pytest.raises(SufficeError) as told:
        carry_out_all([jobs[1], jobs[2], jobs[0]], traces, 2, Watcher(lambda *_: None, kill))
    return str(told.value), [kept(job, traces) is not None for job in jobs]


def test_a_worker_that_is_killed_is_told_in_a_sentence(told_of_the_killed: tuple[str, list[bool]]) -> None:
    said, kept_ones = told_of_the_killed
    assert said.startswith("a worker was killed")
    assert "The same command goes on from there" in said
    assert kept_ones == [True, True, False]
