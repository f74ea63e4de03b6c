"""Runs carried out one after the other or several at once, each kept as soon as it is done."""

import json
import multiprocessing
import os
import pickle
import signal
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from multiprocessing.connection import wait as wait_for
from pathlib import Path
from queue import Empty
from threading import Thread
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

import numpy as np

from suffice.errors import InvalidValueError, SufficeError
from suffice.files import write_whole
from suffice.models.threads import one_thread
from suffice.trace import Trace

#: Told now and then the steps done and to do.
StepProgress: TypeAlias = Callable[[int, int], None]

# Steps between two words on how far a run is: often enough to see, seldom enough to cost nothing.
_EVERY = 50
# Bytes. What is kept in a larger file is work to read, and is left to the workers too.
_LARGE = 1_000_000


class RunJob(Protocol):
    """A run that is asked for; a frozen dataclass of a module's own, so that it can be sent to a worker."""

    @property
    def name(self) -> str:
        """What it is called, for people."""

    @property
    def stem(self) -> str:
        """What its files are called, without their endings; two jobs share it only where they are the same run."""

    @property
    def identity(self) -> str:
        """Differs whenever the run would come out otherwise: what was kept under another is run again."""

    @property
    def steps(self) -> int | None:
        """Steps that it takes; None where that is not known beforehand."""

    @property
    def data(self) -> str:
        """Name of the data that it reads; of the jobs that share it only one is asked whether it is ready."""

    @property
    def alone(self) -> bool:
        """Whether it takes the whole machine; others run side by side, each on one thread."""

    def ready(self) -> None:
        """Make sure, before anything is run, that its data are there.

        Raises:
            SufficeError: They are missing or damaged.
        """

    def run(self, traces: Path, progress: StepProgress | None) -> Trace:
        """Run it.

        Args:
            traces: Folder of the traces, where it may keep files of its own, named after its stem, to go on from.
            progress: Called now and then with the steps done and to do.

        Raises:
            SufficeError: It cannot be done.
        """


J = TypeVar("J", bound=RunJob)
R = TypeVar("R")
F_contra = TypeVar("F_contra", contravariant=True)


@dataclass(frozen=True)
class SkippedRun(Generic[J]):
    """A run that could not be carried out, and why."""

    job: J
    reason: str


@dataclass(frozen=True)
class RunWatcher(Generic[F_contra]):
    """What is told while runs go on.

    Attributes:
        moved: Called with a run's number and the steps that it has done.
        ended: Called with a run's number and what came of it.
    """

    moved: Callable[[int, int], None]
    ended: Callable[[int, F_contra], None]


def kept_about(path: Path) -> Mapping[str, Any] | None:
    """What run a file holds (:attr:`suffice.Trace.about`), without its arrays: quick however large it is.

    Returns:
        None where there is no such file, or it is damaged or none of these.

    Examples:
        >>> kept_about(Path("no-such-run.npz")) is None
        True
    """
    try:
        with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
            return dict(json.loads(str(file["text"]))["about"])
    except Exception:
        # A damaged file fails in whatever way its bytes happen to lead to.
        return None


def is_kept(job: RunJob, traces: Path) -> bool:
    """Whether the run was kept and is still what is asked for, as far as its file says without being read whole."""
    about = kept_about(_file(job, traces))
    return about is not None and about.get("identity") == job.identity


def kept(job: RunJob, traces: Path) -> Trace | None:
    """The run as it was kept, if it was, and if it is still what is asked for."""
    if not is_kept(job, traces):
        return None
    try:
        return Trace.load(_file(job, traces))
    except InvalidValueError:
        return None


def _file(job: RunJob, traces: Path) -> Path:
    return traces / f"{job.stem}.npz"


def carry_out(job: RunJob, traces: Path, moved: StepProgress | None = None) -> Trace:
    """Run a job and keep its trace, or take the trace that is there already.

    Args:
        job: What to run.
        traces: Folder of the traces.
        moved: Called now and then with the steps done and to do.

    Returns:
        The trace; its ``about`` has the job's ``identity`` and the ``seconds`` that the run took.

    Raises:
        SufficeError: It cannot be done: data that are missing or damaged, an extra that is missing, a full disk.
    """
    trace = kept(job, traces)
    if trace is not None:
        return trace
    start = time.perf_counter()
    with nullcontext() if job.alone else one_thread():
        trace = job.run(traces, moved)
    # Rounded, so that it reads well; what was kept is told again to the digit.
    about = {**trace.about, "identity": job.identity, "seconds": round(time.perf_counter() - start, 3)}
    trace = replace(trace, about=about)
    write_whole(_file(job, traces), trace.save)
    return trace


def carry_out_all(
    jobs: Sequence[J],
    traces: Path,
    workers: int,
    watcher: RunWatcher[R | SkippedRun[J]],
    read: Callable[[J, Trace], R],
) -> list[R | SkippedRun[J]]:
    """Carry out runs, several at once; what is kept already is not run again.

    Args:
        jobs: What to run.
        traces: Folder of the traces; it is made where it is missing.
        workers: How many runs at once.
        watcher: Who is told.
        read: What is wanted of a job's trace. It is called where the job was run, so that a large trace stays there;
            so it is a function of a module, which a worker can find by name.

    Returns:
        What came of each job, in the order of the jobs, whichever ended first.

    Raises:
        SufficeError: The folder cannot be made, or a worker was killed.
    """
    try:
        traces.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SufficeError(f"the runs cannot be kept in {traces}: {error.strerror or error}") from None
    found: dict[int, R | SkippedRun[J]] = {}
    to_run = {number: job for number, job in enumerate(jobs) if not is_kept(job, traces)}
    for number, reason in _without_data(to_run).items():
        found[number] = SkippedRun(jobs[number], reason)
        watcher.ended(number, found[number])
    small = {
        number: job
        for number, job in enumerate(jobs)
        if number not in found and not job.alone and (number in to_run or _is_large(_file(job, traces)))
    }
    if workers > 1 and len(small) > 1:
        found |= _side_by_side(small, traces, workers, watcher, read)
    for number, job in enumerate(jobs):
        if number not in found:
            found[number] = _attempt(job, traces, _told(number, watcher), read)
            watcher.ended(number, found[number])
    return [found[number] for number in range(len(jobs))]


def _without_data(jobs: Mapping[int, J]) -> dict[int, str]:
    """Runs whose data are missing or damaged, with the reason; each data set is looked at once."""
    reasons: dict[str, str] = {}
    for data, job in {job.data: job for job in jobs.values()}.items():
        try:
            job.ready()
        except SufficeError as error:
            reasons[data] = str(error)
    return {number: reasons[job.data] for number, job in jobs.items() if job.data in reasons}


def _is_large(path: Path) -> bool:
    try:
        return path.stat().st_size > _LARGE
    except OSError:
        return False


def _attempt(job: J, traces: Path, moved: StepProgress, read: Callable[[J, Trace], R]) -> R | SkippedRun[J]:
    """Carry out a run and read it, or say why it cannot be."""
    try:
        return read(job, carry_out(job, traces, moved))
    except SufficeError as error:
        return SkippedRun(job, str(error))


def _told(number: int, watcher: RunWatcher[Any]) -> StepProgress:
    return lambda done, _: watcher.moved(number, done)


def _side_by_side(
    jobs: Mapping[int, J],
    traces: Path,
    workers: int,
    watcher: RunWatcher[R | SkippedRun[J]],
    read: Callable[[J, Trace], R],
) -> dict[int, R | SkippedRun[J]]:
    # Started afresh: a fork would copy the locks of whatever threads the numerical libraries keep.
    context = multiprocessing.get_context("spawn")
    moves: Any = context.Queue()
    found: dict[int, R | SkippedRun[J]] = {}
    with _pool(min(workers, len(jobs)), context, moves) as pool:
        futures: dict[Future[bytes], int] = {
            pool.submit(_attempt_apart, number, job, traces, read): number for number, job in jobs.items()
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


def _result(future: "Future[bytes]") -> Any:
    try:
        return pickle.loads(zlib.decompress(future.result()))
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


def _attempt_apart(number: int, job: J, traces: Path, read: Callable[[J, Trace], R]) -> bytes:
    """What came of a run, small enough to go through a pipe in one piece.

    A worker that is ended while it writes a longer message leaves half of it in the pipe, and whoever reads it waits
    for the rest.
    """
    told = 0

    def moved(done: int, total: int) -> None:
        nonlocal told
        if done >= told + _EVERY or done == total:
            told = done
            _moves.put((number, done))

    # Reading takes its one thread too, where others run beside it.
    with one_thread():
        return zlib.compress(pickle.dumps(_attempt(job, traces, moved, read)), 9)


def _drained(moves: Any) -> Iterator[tuple[int, int]]:
    while True:
        try:
            yield moves.get_nowait()
        except Empty:
            return
