"""Many runs, one after the other or in parallel, each saved when it finishes; and their progress on the terminal."""

import json
import multiprocessing
import os
import pickle
import platform
import shlex
import signal
import sys
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from importlib.metadata import version
from multiprocessing.connection import wait as wait_for
from pathlib import Path
from queue import Empty
from threading import Thread
from types import TracebackType
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

import numpy as np
import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from suffice import __version__
from suffice.errors import InvalidValueError, SufficeError
from suffice.files import write_whole
from suffice.models.threads import one_thread
from suffice.trace import Trace

#: Called at intervals with the number of steps done and the total number of steps.
StepProgress: TypeAlias = Callable[[int, int], None]

# Steps between two progress messages of a run.
_EVERY = 50
# Size in bytes above which a file is read by the workers, because reading takes time.
_LARGE = 1_000_000


class RunJob(Protocol):
    """A requested run. Implementations are frozen dataclasses at module level, so that a worker can receive them."""

    @property
    def name(self) -> str:
        """Name for people."""

    @property
    def stem(self) -> str:
        """Name of its files, without their suffixes; two jobs share it only if they are the same run."""

    @property
    def identity(self) -> str:
        """Identity of the results of the run. A run that was saved with another identity is repeated."""

    @property
    def steps(self) -> int | None:
        """Number of steps; None if it is not known in advance."""

    @property
    def data(self) -> str:
        """Name of the data that it reads; :meth:`ready` is called for one of the jobs with the same data."""

    @property
    def alone(self) -> bool:
        """Whether it needs the whole machine; others run in parallel, each on one thread."""

    def ready(self) -> None:
        """Check, before any run, that its data are there.

        Raises:
            SufficeError: The data are missing or damaged.
        """

    def run(self, traces: Path, progress: StepProgress | None) -> Trace:
        """Run it.

        Args:
            traces: Folder of the traces; it may save checkpoints there, named after its stem.
            progress: Called from time to time with the number of steps done and the number to do.

        Raises:
            SufficeError: The run failed.
        """


J = TypeVar("J", bound=RunJob)
R = TypeVar("R")
F_contra = TypeVar("F_contra", contravariant=True)


@dataclass(frozen=True)
class SkippedRun(Generic[J]):
    """A run that could not be carried out, and the reason."""

    job: J
    reason: str


@dataclass(frozen=True)
class RunWatcher(Generic[F_contra]):
    """Functions to call while runs are carried out.

    Attributes:
        moved: Called with a run's number and the number of steps done.
        ended: Called with a run's number and its result.
    """

    moved: Callable[[int, int], None]
    ended: Callable[[int, F_contra], None]


def kept_about(path: Path) -> Mapping[str, Any] | None:
    """Return the description of a saved run (:attr:`suffice.Trace.about`) without reading its arrays.

    Returns:
        The description; None if the file is missing, damaged or not a saved run.

    Examples:
        >>> kept_about(Path("no-such-run.npz")) is None
        True
    """
    try:
        with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
            return dict(json.loads(str(file["text"]))["about"])
    except Exception:
        # A damaged file can raise any error.
        return None


def is_kept(job: RunJob, traces: Path) -> bool:
    """Return whether a run with the same identity is saved; only the description is read."""
    about = kept_about(_file(job, traces))
    return about is not None and about.get("identity") == job.identity


def kept(job: RunJob, traces: Path) -> Trace | None:
    """Return the saved trace of a run with the same identity; None if there is none."""
    if not is_kept(job, traces):
        return None
    try:
        return Trace.load(_file(job, traces))
    except InvalidValueError:
        return None


def _file(job: RunJob, traces: Path) -> Path:
    return traces / f"{job.stem}.npz"


def carry_out(job: RunJob, traces: Path, moved: StepProgress | None = None) -> Trace:
    """Run a job and save its trace, or read the trace if it is saved already.

    Args:
        job: What to run.
        traces: Folder of the traces.
        moved: Called from time to time with the number of steps done and the number to do.

    Returns:
        The trace; its ``about`` has the job's ``identity`` and the ``seconds`` that the run took.

    Raises:
        SufficeError: The run failed: data are missing or damaged, an extra is missing, the disk is full.
    """
    trace = kept(job, traces)
    if trace is not None:
        return trace
    start = time.perf_counter()
    with nullcontext() if job.alone else one_thread():
        trace = job.run(traces, moved)
    # Rounded here, so that a saved run reports the same figure.
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
    """Carry out runs in parallel; saved runs are not run again.

    Args:
        jobs: What to run.
        traces: Folder of the traces; it is created if it is missing.
        workers: Number of runs at the same time.
        watcher: Called as the runs proceed.
        read: Computes the result from a job and its trace. It is called in the process that ran the job, so that a
            large trace need not be sent; it must be a function at module level, which a worker can import.

    Returns:
        The result of each job, in the order of the jobs.

    Raises:
        SufficeError: The folder cannot be created, or a worker was killed.
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
        found |= _run_in_parallel(small, traces, workers, watcher, read)
    for number, job in enumerate(jobs):
        if number not in found:
            found[number] = _attempt(job, traces, _step_progress(number, watcher), read)
            watcher.ended(number, found[number])
    return [found[number] for number in range(len(jobs))]


def _without_data(jobs: Mapping[int, J]) -> dict[int, str]:
    """Return the runs whose data are missing or damaged, with the reason; each data set is checked once."""
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
    """Return the result of a run, or the reason why it was skipped."""
    try:
        return read(job, carry_out(job, traces, moved))
    except SufficeError as error:
        return SkippedRun(job, str(error))


def _step_progress(number: int, watcher: RunWatcher[Any]) -> StepProgress:
    return lambda done, _: watcher.moved(number, done)


def _run_in_parallel(
    jobs: Mapping[int, J],
    traces: Path,
    workers: int,
    watcher: RunWatcher[R | SkippedRun[J]],
    read: Callable[[J, Trace], R],
) -> dict[int, R | SkippedRun[J]]:
    # Spawned, because a fork would copy the locks of threads of the numerical libraries.
    context = multiprocessing.get_context("spawn")
    moves: Any = context.Queue()
    found: dict[int, R | SkippedRun[J]] = {}
    with _pool(min(workers, len(jobs)), context, moves) as pool:
        futures: dict[Future[bytes], int] = {
            pool.submit(_attempt_in_worker, number, job, traces, read): number for number, job in jobs.items()
        }
        left = set(futures)
        while left:
            done, left = wait(left, timeout=0.2, return_when=FIRST_COMPLETED)
            for number, steps in _drained(moves):
                # A progress message may arrive after the result.
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
            "a worker was killed, perhaps for lack of memory; the runs that are done are kept. The same command "
            "continues from there; try it with --jobs 1"
        ) from None


@contextmanager
def _pool(workers: int, context: Any, moves: Any) -> Iterator[ProcessPoolExecutor]:
    others = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_begin, initargs=(moves,))
    try:
        yield pool
    except BaseException:
        # After an error or Ctrl-C: do not wait for the current runs.
        for process in set(multiprocessing.active_children()) - others:
            process.terminate()
        # A worker may have written a part of a message. The reading thread would wait for the rest while the pipe is
        # open, and this process would wait for that thread at its end.
        results: Any = getattr(pool, "_result_queue", None)
        if results is not None:
            results._writer.close()
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    pool.shutdown()


_moves: Any = None


def _begin(moves: Any) -> None:
    """Set up a worker before its first run. The parent process handles Ctrl-C."""
    global _moves  # noqa: PLW0603 - a worker is started with it and keeps it for all its runs
    _moves = moves
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_the_parent, daemon=True).start()


def _end_with_the_parent() -> None:
    """End a worker whose parent was killed; otherwise it would finish its run and then wait forever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait_for([parent.sentinel])
        os._exit(1)


def _attempt_in_worker(number: int, job: J, traces: Path, read: Callable[[J, Trace], R]) -> bytes:
    """Return the result of a run, compressed to fit into one write to a pipe.

    If a worker is terminated while it writes a longer message, the reader of the pipe waits for the rest.
    """
    told = 0

    def moved(done: int, total: int) -> None:
        nonlocal told
        if done >= told + _EVERY or done == total:
            told = done
            _moves.put((number, done))

    # Reading uses one thread too: other workers run at the same time.
    with one_thread():
        return zlib.compress(pickle.dumps(_attempt(job, traces, moved, read)), 9)


def _drained(moves: Any) -> Iterator[tuple[int, int]]:
    while True:
        try:
            yield moves.get_nowait()
        except Empty:
            return


def processors() -> int:
    """Return the number of processors that this process may use."""
    usable = getattr(os, "sched_getaffinity", None)
    return len(usable(0)) if usable is not None else os.cpu_count() or 1


def require_folder(out: Path) -> None:
    """Create the folder for results, and check before the runs that it can be written to.

    Raises:
        SufficeError: It is a file, cannot be created, or cannot be written to.
    """
    if out.exists() and not out.is_dir():
        raise SufficeError(f"{out} is a file, where --out needs a folder; move it away, or name another folder")
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SufficeError(f"the folder {out} cannot be made: {error.strerror or error}") from None
    if not os.access(out, os.W_OK):
        raise SufficeError(f"the folder {out} is read-only; name another with --out")


def tell_skipped(skipped: Iterable[tuple[str, str]]) -> None:
    """Print which runs were skipped, and why; each reason once.

    Args:
        skipped: Name and reason of each.
    """
    given = list(skipped)
    for reason in dict.fromkeys(why for _, why in given):
        names = dict.fromkeys(name for name, why in given if why == reason)
        typer.echo(f"suffice: skipped {', '.join(names)}: {reason}", err=True)


def completed_list(incomplete: str, names: Iterable[str]) -> list[str]:
    """Completions for the last name of a list with commas; typer drops names with another prefix.

    Names with spaces would need quotes, and are left out.

    Args:
        incomplete: What was typed so far.
        names: All names that the list can hold.

    Examples:
        >>> completed_list("gp,r", ["ridge", "logistic"])
        ['gp,ridge', 'gp,logistic']
    """
    before, comma, _ = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in names if " " not in name]


def provenance() -> list[tuple[str, str]]:
    """Return the command that makes a report, and the versions it uses."""
    parts = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "scikit-learn"))
    return [
        ("Command", shlex.join(["suffice", *sys.argv[1:]])),
        ("Versions", f"suffice {__version__}, Python {platform.python_version()}, {parts}"),
    ]


RunResult = TypeVar("RunResult")


class RunsView(Generic[RunResult]):
    """Shows the progress of the runs, and a summary of each.

    Args:
        console: Where to show it.
        jobs: The runs.
        summary: Returns the line to print for the result of a run.
    """

    def __init__(self, console: Console, jobs: "Sequence[RunJob]", summary: Callable[[RunResult], str]) -> None:
        self._console, self._jobs, self._summary = console, jobs, summary
        self._shown: dict[int, TaskID] = {}
        terminal = console.is_terminal and not console.is_dumb_terminal and not console.quiet
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        self._progress = Progress(*columns, console=console) if terminal else None
        self._all = self._progress.add_task("runs", total=len(jobs)) if self._progress else None

    def __enter__(self) -> "RunsView[RunResult]":
        if self._progress is not None:
            self._progress.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._progress is not None:
            self._progress.__exit__(kind, error, trace)

    def moved(self, number: int, steps: int) -> None:
        """Show that a run has done some steps."""
        if self._progress is None:
            return
        if number not in self._shown:
            job = self._jobs[number]
            self._shown[number] = self._progress.add_task(escape(job.name), total=job.steps)
        self._progress.update(self._shown[number], completed=steps)

    def ended(self, number: int, found: "RunResult | SkippedRun[Any]") -> None:
        """Show that a run has ended."""
        if not isinstance(found, SkippedRun):
            self._console.print(escape(f"{self._jobs[number].name}: {self._summary(found)}"))
        if self._progress is not None and self._all is not None:
            self._progress.advance(self._all)
            if number in self._shown:
                self._progress.remove_task(self._shown.pop(number))


def interrupted(jobs: "Sequence[RunJob]", out: Path, traces: Path) -> str:
    """Return the message after Ctrl-C: how many runs are saved, and how to continue.

    Args:
        jobs: The requested runs.
        out: The folder that the command was given.
        traces: The folder of the traces in it.
    """
    done = sum(is_kept(job, traces) for job in jobs)
    runs = f"{done} of {len(jobs)} runs are kept in {out}"
    return f"interrupted; {runs}, and the same command continues from there"
