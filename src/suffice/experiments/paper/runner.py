"""Runs carried out one after the other or several at once, each kept as soon as it is done."""

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing.connection import wait as wait_for
from pathlib import Path
from queue import Empty
from threading import Thread
from typing import Any

from suffice.data.checking import require_set
from suffice.errors import InvalidValueError, SufficeError
from suffice.experiments.paper.outcome import Outcome, measure
from suffice.experiments.paper.plan import Job
from suffice.experiments.paper.runs import run_experiment
from suffice.files import write_whole
from suffice.models.threads import one_thread
from suffice.trace import Trace

# Steps between two words on how far a run is: often enough to see, seldom enough to cost nothing.
_EVERY = 50


@dataclass(frozen=True)
class Skipped:
    """A run that could not be carried out, and why."""

    job: Job
    reason: str


@dataclass(frozen=True)
class Watcher:
    """What is told while runs go on.

    Attributes:
        moved: Called with a run's number and the steps that it has done.
        ended: Called with a run's number and what came of it.
    """

    moved: Callable[[int, int], None]
    ended: Callable[[int, Outcome | Skipped], None]


def kept(job: Job, traces: Path) -> Trace | None:
    """The run as it was kept, if it was, and if it is still what is asked for."""
    try:
        trace = Trace.load(traces / f"{job.stem}.npz")
    except InvalidValueError:
        return None
    return trace if trace.about.get("identity") == job.identity else None


def carry_out(job: Job, traces: Path, moved: Callable[[int, int], None] | None = None) -> Outcome:
    """Run a job and keep its trace, or take the trace that is there already.

    Args:
        job: What to run.
        traces: Folder of the traces.
        moved: Called now and then with the steps done and to do.

    Raises:
        SufficeError: It cannot be done: data that are missing or damaged, an extra that is missing, a full disk.
    """
    trace = kept(job, traces)
    if trace is None:
        start = time.perf_counter()
        trace = _run(job, traces, moved)
        # Rounded, so that it reads well; what was kept is told again to the digit.
        about = {**trace.about, "identity": job.identity, "seconds": round(time.perf_counter() - start, 3)}
        trace = replace(trace, about=about)
        write_whole(traces / f"{job.stem}.npz", trace.save)
    return measure(job.experiment, trace, seed=job.seed, arm=job.arm, seconds=float(trace.about.get("seconds", 0.0)))


def _run(job: Job, traces: Path, moved: Callable[[int, int], None] | None) -> Trace:
    if job.experiment.model != "bdnn":
        with one_thread():
            return run_experiment(job.experiment, job.seed, progress=moved)
    checkpoint = traces / f"{job.stem}.checkpoint"
    trace = run_experiment(job.experiment, job.seed, checkpoint=checkpoint, progress=moved)
    checkpoint.unlink(missing_ok=True)
    return trace


def carry_out_all(jobs: Sequence[Job], traces: Path, workers: int, watcher: Watcher) -> list[Outcome | Skipped]:
    """Carry out runs, several at once; what is kept already is not run again.

    Args:
        jobs: What to run.
        traces: Folder of the traces; it is made where it is missing.
        workers: How many runs at once.
        watcher: Who is told.

    Returns:
        What came of each job, in the order of the jobs, whichever ended first.

    Raises:
        SufficeError: The folder cannot be made, or a worker was killed.
    """
    try:
        traces.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SufficeError(f"the runs cannot be kept in {traces}: {error.strerror or error}") from None
    found: dict[int, Outcome | Skipped] = {}
    to_run = {number: job for number, job in enumerate(jobs) if kept(job, traces) is None}
    for number, reason in _without_data(to_run).items():
        found[number] = Skipped(jobs[number], reason)
        watcher.ended(number, found[number])
    # A network takes the whole machine, or the one GPU.
    small = {number: job for number, job in to_run.items() if number not in found and job.experiment.model != "bdnn"}
    if workers > 1 and len(small) > 1:
        found |= _side_by_side(small, traces, workers, watcher)
    for number, job in enumerate(jobs):
        if number not in found:
            found[number] = attempt(job, traces, _told(number, watcher))
            watcher.ended(number, found[number])
    return [found[number] for number in range(len(jobs))]


def _without_data(jobs: dict[int, Job]) -> dict[int, str]:
    """Runs whose data set is missing or damaged, with the reason; each data set is looked at once."""
    reasons: dict[str, str] = {}
    for data in dict.fromkeys(job.experiment.data for job in jobs.values()):
        try:
            require_set(data)
        except SufficeError as error:
            reasons[data] = str(error)
    return {number: reasons[job.experiment.data] for number, job in jobs.items() if job.experiment.data in reasons}


def attempt(job: Job, traces: Path, moved: Callable[[int, int], None] | None = None) -> Outcome | Skipped:
    """Carry out a run, or say why it cannot be."""
    try:
        return carry_out(job, traces, moved)
    except SufficeError as error:
        return Skipped(job, str(error))


def _told(number: int, watcher: Watcher) -> Callable[[int, int], None]:
    return lambda done, _: watcher.moved(number, done)


def _side_by_side(jobs: dict[int, Job], traces: Path, workers: int, watcher: Watcher) -> dict[int, Outcome | Skipped]:
    # Started afresh: a fork would copy the locks of whatever threads the numerical libraries keep.
    context = multiprocessing.get_context("spawn")
    moves: Any = context.Queue()
    found: dict[int, Outcome | Skipped] = {}
    with _pool(min(workers, len(jobs)), context, moves) as pool:
        futures: dict[Future[Outcome | Skipped], int] = {
            pool.submit(_attempt_apart, number, job, traces): number for number, job in jobs.items()
        }
        left = set(futures)
        while left:
            done, left = wait(left, timeout=0.2, return_when=FIRST_COMPLETED)
            for number, steps in _drained(moves):
                # A word may come later than the result.
                if number not in found:
                    watcher.moved(number, steps)
            for future in done:
                number = futures[future]
                found[number] = _result(future)
                watcher.ended(number, found[number])
    return found


def _result(future: "Future[Outcome | Skipped]") -> Outcome | Skipped:
    try:
        return future.result()
    except BrokenProcessPool:
        raise SufficeError(
            "a worker was killed, perhaps for want of memory; the runs that are done are kept. The same command goes "
            "on from there; try it with --jobs 1"
        ) from None


@contextmanager
def _pool(workers: int, context: Any, moves: Any) -> Iterator[ProcessPoolExecutor]:
    others = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_begin, initargs=(moves,))
    try:
        yield pool
    except BaseException:
        # Whatever went wrong, or Ctrl-C: what runs now is not waited for.
        for process in set(multiprocessing.active_children()) - others:
            process.terminate()
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    pool.shutdown()


_moves: Any = None


def _begin(moves: Any) -> None:
    """In a worker, before its first run: Ctrl-C is the business of the process that asked."""
    global _moves  # noqa: PLW0603 - a worker is started with it and keeps it for all its runs
    _moves = moves
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_the_parent, daemon=True).start()


def _end_with_the_parent() -> None:
    """A worker whose parent was killed would go on to the end of its run, and then wait for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait_for([parent.sentinel])
        os._exit(1)


def _attempt_apart(number: int, job: Job, traces: Path) -> Outcome | Skipped:
    told = 0

    def moved(done: int, total: int) -> None:
        nonlocal told
        if done >= told + _EVERY or done == total:
            told = done
            _moves.put((number, done))

    return attempt(job, traces, moved)


def _drained(moves: Any) -> Iterator[tuple[int, int]]:
    while True:
        try:
            yield moves.get_nowait()
        except Empty:
            return
