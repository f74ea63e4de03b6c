"""Jobs of any kind carried out: kept, taken up again, side by side; with workers killed, and with data missing."""

import io
import multiprocessing
import os
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest

from suffice.errors import SufficeError
from suffice.trace import Trace
from suffice_research import runner
from suffice_research.runner import RunJob, RunWatcher, SkippedRun, carry_out, carry_out_all, is_kept, kept, kept_about
from tests.processes import environment

# A worker imports this module by its name, from the same path as this process.
from tests.research.toy_jobs import (
    Seen,
    Toy,
    after_news_of_toy_1,
    broken,
    half_a_message,
    killed_after_toy_1,
    no_room,
    noted,
    refused,
    seen,
)

TRACES = Path("traces")
Found: TypeAlias = Seen | SkippedRun[Toy]
TOYS = [Toy(number) for number in range(3)]


class Told:
    """What a watcher was told."""

    def __init__(self) -> None:
        self.moved: list[tuple[int, int]] = []
        self.ended: list[tuple[int, Found]] = []

    @property
    def watcher(self) -> RunWatcher[Found]:
        return RunWatcher(lambda *news: self.moved.append(news), self._end)

    def _end(self, number: int, found: Found) -> None:
        self.ended.append((number, found))
        Path(f"told-{number}").touch()


def all_of(jobs: Sequence[Toy], workers: int = 1, told: Told | None = None) -> list[Found]:
    return carry_out_all(jobs, TRACES, workers, (told or Told()).watcher, seen)


def read_ones(found: Sequence[Found]) -> list[Seen]:
    assert all(isinstance(each, Seen) for each in found), found
    return [each for each in found if isinstance(each, Seen)]


def totals(found: Sequence[Found]) -> list[tuple[int, float]]:
    return [(each.number, each.total) for each in read_ones(found)]


# ------------------------------------------------------------------------------------------------ runs that are kept


def test_a_second_call_runs_nothing_and_reads_the_same() -> None:
    first, told = all_of(TOYS), Told()
    assert noted("ran") == ["0", "1", "2"]
    assert all_of(TOYS, told=told) == first
    assert noted("ran") == ["0", "1", "2"]
    assert told.ended == list(enumerate(first))
    assert told.moved == []
    # What is kept needs no data.
    assert noted("asked") == ["numbers"]


def test_what_is_kept_says_which_run_it_is_and_how_long_it_took() -> None:
    TRACES.mkdir()
    made = carry_out(TOYS[0], TRACES)
    assert (made.about["identity"], made.about["seconds"] >= 0.0) == (TOYS[0].identity, True)
    again = carry_out(TOYS[0], TRACES)
    assert again.about["seconds"] == made.about["seconds"]
    assert again.measures["noise"].tolist() == made.measures["noise"].tolist()
    about = kept_about(TRACES / "toy-0.npz")
    assert about is not None
    assert about == again.about
    assert [path.name for path in TRACES.iterdir()] == ["toy-0.npz"]
    assert noted("ran") == ["0"]


def test_a_run_of_an_older_identity_is_run_again() -> None:
    first = all_of(TOYS)
    newer = [TOYS[0], replace(TOYS[1], version=2), TOYS[2]]
    assert [is_kept(job, TRACES) for job in newer] == [True, False, True]
    assert kept(newer[1], TRACES) is None
    second = all_of(newer)
    assert noted("ran") == ["0", "1", "1", "2"]
    assert [a == b for a, b in zip(first, second, strict=True)] == [True, False, True]
    assert [is_kept(job, TRACES) for job in (newer[1], TOYS[1])] == [True, False]


def test_a_job_that_is_interrupted_leaves_what_was_done_before_it() -> None:
    def stop(number: int, _: Found) -> None:
        if number == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        carry_out_all(TOYS, TRACES, 1, RunWatcher(lambda *_: None, stop), seen)
    assert [is_kept(job, TRACES) for job in TOYS] == [True, True, False]
    assert [number for number, _ in totals(all_of(TOYS))] == [0, 1, 2]
    assert noted("ran") == ["0", "1", "2"]


def spoil(path: Path) -> None:
    """Flip a byte in the middle of the largest array, where the text does not tell."""
    with zipfile.ZipFile(path) as file:
        entry = file.getinfo("measure_noise.npy")
    content = bytearray(path.read_bytes())
    content[entry.header_offset + entry.compress_size // 2] ^= 0xFF
    path.write_bytes(bytes(content))


def test_a_damaged_array_is_found_when_it_is_read_and_the_run_run_again() -> None:
    first = all_of(TOYS)
    spoil(TRACES / "toy-1.npz")
    # The text alone is right, and quickly read.
    assert is_kept(TOYS[1], TRACES)
    assert kept(TOYS[1], TRACES) is None
    assert totals(all_of(TOYS)) == totals(first)
    assert noted("ran") == ["0", "1", "1", "2"]
    assert kept(TOYS[1], TRACES) is not None


def one_array() -> bytes:
    np.save(file := io.BytesIO(), np.arange(3))
    return file.getvalue()


def saved(write: Callable[[Path], object]) -> Path:
    write(path := Path("toy-0.npz"))
    return path


@pytest.mark.parametrize(
    "write",
    [
        lambda path: None,
        lambda path: path.mkdir(),
        lambda path: path.write_bytes(b""),
        lambda path: path.write_text("this is no run"),
        lambda path: np.arange(3).tofile(path),
        lambda path: path.write_bytes(one_array()),
        lambda path: np.savez(path, numbers=np.arange(3)),
        lambda path: np.savez(path, text=np.array("no JSON")),
        lambda path: np.savez(path, text=np.array('["a list"]')),
        lambda path: np.savez(path, text=np.array('{"about": 3}')),
    ],
    ids=["nothing", "folder", "empty", "words", "numbers", "one array", "no text", "no JSON", "a list", "a number"],
)
def test_what_is_none_of_these_files(write: Callable[[Path], object]) -> None:
    assert kept_about(saved(write)) is None
    assert not is_kept(TOYS[0], Path())
    assert kept(TOYS[0], Path()) is None


def test_a_run_that_nobody_named_is_not_this_one() -> None:
    path = saved(Trace.of_divergences([0.1], [0.1], first=1).save)
    assert kept_about(path) == {}
    assert not is_kept(TOYS[0], Path())


# ------------------------------------------------------------------------------------------- runs that cannot be done


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_job_whose_data_are_missing_is_skipped_by_name_and_the_others_go_on(workers: int) -> None:
    jobs = [TOYS[0], Toy(1, data="missing"), Toy(2, data="missing"), Toy(3), Toy(4, no_room)]
    found = all_of(jobs, workers, told := Told())
    reason = "the data of toys are missing; make some"
    assert [each.job.name for each in found if isinstance(each, SkippedRun)] == ["toy 1", "toy 2", "toy 4"]
    assert found[1:3] == [SkippedRun(jobs[1], reason), SkippedRun(jobs[2], reason)]
    assert found[4] == SkippedRun(jobs[4], "no more room")
    assert [number for number, _ in totals([found[0], found[3]])] == [0, 3]
    # Before anything is run, and each data set is looked at once.
    assert told.ended[:2] == [(1, found[1]), (2, found[2])]
    assert sorted(number for number, _ in told.ended) == [0, 1, 2, 3, 4]
    assert noted("asked") == ["missing", "numbers"]
    assert noted("ran") == ["0", "3", "4"]


def test_a_run_that_cannot_be_done_does_not_stop_the_others() -> None:
    jobs = [Toy(0, no_room), TOYS[1], TOYS[2]]
    found = all_of(jobs)
    assert found[0] == SkippedRun(jobs[0], "no more room")
    assert [number for number, _ in totals(found[1:])] == [1, 2]
    # It is tried again the next time, and the others are not.
    assert [number for number, _ in totals(all_of(TOYS))] == [0, 1, 2]
    assert noted("ran") == ["0", "0", "1", "2"]


def test_a_trace_that_cannot_be_read_is_kept_all_the_same() -> None:
    found = carry_out_all(TOYS[:1], TRACES, 1, Told().watcher, refused)
    assert found == [SkippedRun(TOYS[0], "30 steps of toy 0 are too few")]
    assert is_kept(TOYS[0], TRACES)


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_mistake_in_a_job_is_not_hidden(workers: int) -> None:
    with pytest.raises(ZeroDivisionError, match="a mistake in the job"):
        all_of([Toy(0, broken), TOYS[1]], workers)


def test_a_folder_that_cannot_be_made() -> None:
    TRACES.write_text("a file")
    with pytest.raises(SufficeError, match="the runs cannot be kept in traces: File exists"):
        all_of(TOYS)


# --------------------------------------------------------------------------------------------------- several at once


def test_results_come_in_the_order_of_the_jobs_whichever_ends_first() -> None:
    # Toy 0 ends after the watcher heard of toy 1: two that end within one poll come in any order.
    jobs = [Toy(0, after_news_of_toy_1), Toy(1), Toy(2)]
    found = all_of(jobs, 2, told := Told())
    assert [number for number, _ in totals(found)] == [0, 1, 2]
    ended = [number for number, _ in told.ended]
    assert sorted(ended) == [0, 1, 2]
    assert ended.index(1) < ended.index(0)
    assert {found for _, found in told.ended} == set(found)
    assert set(told.moved) <= {(number, steps) for number in range(3) for steps in (10, 30)}
    # In other processes, which do what this one does.
    assert os.getpid() not in {each.process for each in read_ones(found)}
    assert totals(carry_out_all(TOYS, Path("alone"), 1, Told().watcher, seen)) == totals(found)


@pytest.mark.slow
def test_a_job_that_takes_the_whole_machine_waits_for_the_others() -> None:
    jobs = [Toy(0, alone=True), Toy(1), Toy(2)]
    found = all_of(jobs, 2, told := Told())
    assert [each.process == os.getpid() for each in read_ones(found)] == [True, False, False]
    assert told.ended[-1] == (0, found[0])


def test_only_a_job_that_takes_the_whole_machine_has_more_than_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    limited: list[str] = []

    @contextmanager
    def limit() -> Iterator[None]:
        limited.extend(noted("ran"))
        yield
        limited.extend(noted("ran"))

    monkeypatch.setattr(runner, "one_thread", limit)
    TRACES.mkdir()
    carry_out(Toy(0, alone=True), TRACES)
    assert limited == []
    carry_out(TOYS[1], TRACES)
    assert limited == ["0", "0", "1"]


@pytest.mark.slow
def test_workers_read_what_is_kept_where_that_is_work(monkeypatch: pytest.MonkeyPatch) -> None:
    first = all_of(TOYS)
    assert {each.process for each in read_ones(all_of(TOYS, 2))} == {os.getpid()}
    monkeypatch.setattr(runner, "_LARGE", 1000)
    again = all_of(TOYS, 2)
    assert os.getpid() not in {each.process for each in read_ones(again)}
    assert totals(again) == totals(first)
    assert noted("ran") == ["0", "1", "2"]


class News:
    """Takes the place of the queue between a worker and the process that asked."""

    def __init__(self) -> None:
        self.put_in: list[tuple[int, int]] = []
        self.put = self.put_in.append


def test_a_worker_tells_how_far_it_is_wherever_its_blocks_end(monkeypatch: pytest.MonkeyPatch) -> None:
    ends, news = (4, 38, 68, 101, 155, 290, 310, 499, 551, 600), News()
    monkeypatch.setattr(runner, "_moves", news)
    TRACES.mkdir()
    runner._attempt_in_worker(7, Toy(0, blocks=ends), TRACES, seen)
    # Each fifty steps that the blocks let see are worth a word; each word is true, and the last one comes.
    assert news.put_in[-1] == (7, 600)
    assert len(news.put_in) >= 6
    assert set(news.put_in) <= {(7, done) for done in ends}


def test_a_worker_that_is_killed_is_told_in_a_sentence_and_what_is_done_is_kept() -> None:
    jobs = [Toy(0, killed_after_toy_1), Toy(1)]
    Path("deadly").touch()
    with pytest.raises(SufficeError, match=r"^a worker was killed.*The same command continues from there"):
        all_of(jobs, 2)
    assert [is_kept(job, TRACES) for job in jobs] == [False, True]
    Path("deadly").unlink()
    assert [number for number, _ in totals(all_of(jobs, 2))] == [0, 1]
    assert noted("ran") == ["0", "0", "1"]


#: Two at once, of which the second and the third never end. A worker reads this file too.
INTERRUPTED = """
import sys
from pathlib import Path

from suffice_research.runner import RunWatcher, carry_out_all
from tests.research.toy_jobs import Toy, endless, seen

if __name__ == "__main__":
    jobs = [Toy(0), Toy(1, endless), Toy(2, endless)]
    try:
        carry_out_all(jobs, Path("traces"), 2, RunWatcher(lambda *_: None, lambda *_: None), seen)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
        sys.exit(3)
"""


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_ends_the_workers_and_what_is_done_is_kept() -> None:
    Path("script.py").write_text(INTERRUPTED)
    command, pipe = [sys.executable, "script.py"], subprocess.PIPE
    with subprocess.Popen(
        command, stdout=pipe, stderr=pipe, text=True, start_new_session=True, env=environment()
    ) as process:
        assert process.stdout is not None
        assert [process.stdout.readline() for _ in range(2)] == ["endless\n"] * 2
        # As a terminal does it: all of them are told.
        os.killpg(process.pid, signal.SIGINT)
        try:
            # All that it started write to the same pipe: it ends when the last of them does.
            said, complaint = process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            pytest.fail("the workers go on after an interrupt")
    assert (process.returncode, said) == (3, "interrupted\n")
    assert "Traceback" not in complaint
    jobs: list[RunJob] = [Toy(number) for number in range(3)]
    assert [is_kept(job, TRACES) for job in jobs] == [True, False, False]


def test_half_a_message_of_a_worker_that_is_ended_is_not_waited_for() -> None:
    context, threads = multiprocessing.get_context("spawn"), list[Any]()
    with suppress(KeyboardInterrupt), runner._pool(1, context, context.Queue()) as pool:
        half = pool.submit(half_a_message, "told")
        # The interpreter waits for this thread when it ends.
        threads.append(vars(pool)["_executor_manager_thread"])
        while not Path("told").exists():
            assert not half.done(), half.exception()
            time.sleep(0.01)
        raise KeyboardInterrupt
    threads[0].join(60.0)
    assert not threads[0].is_alive()
