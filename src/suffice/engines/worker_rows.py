"""Rows of a pool on the workers of a Dask cluster: their sources, and checks of the memory."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from copy import copy
from importlib import import_module
from logging import CRITICAL
from typing import Any, Final

import numpy as np

from suffice.engines.disk_rows import MEMORY_LIMIT, DiskRows, Indices, StoredRows, figure, free_memory, rows_on_disk
from suffice.errors import InvalidTypeError, InvalidValueError, MissingExtraError, NotEnoughMemoryError, SufficeError
from suffice.models.inputs import require_finite
from suffice.numerics import Floats

#: Time limit for a worker to be available, in seconds.
PATIENCE: Final = 120.0
# Number of rows that a worker reads from a file at a time.
_SPAN: Final = 2**18
# How often Dask recomputes a part of a collection if its worker was lost.
_RETRIES: Final = 5

# Setting of Dask: environment variables of new workers.
_ENVIRONMENT: Final = "distributed.nanny.pre-spawn-environ"

RowFunction = Callable[[Floats], Any]


class WorkerRows(DiskRows):
    """Rows of a pool on the workers of a Dask cluster, in as many parts as there are workers.

    Each part is read, mapped and checked on a worker. Only a few rows, by index, are sent to this process. If a worker
    is lost, its part is created again from the source: the array in this process, the file, or the tasks of the
    collection.

    Args:
        client: A ``distributed.Client``.
        source: An array in memory, rows on disk that the workers can read too, or rows of a Dask collection.

    Attributes:
        starts: Number of the first row of each part, and at the end the number of rows.
    """

    def __init__(self, client: Any, source: Any) -> None:
        self.client, self.source = client, source
        self.columns = source.columns if isinstance(source, DiskRows) else None
        self.shape = len(source), source.shape[1]
        if isinstance(source, CollectionRows):
            self.starts = source.starts
        else:
            parts = min(len(source), len(_workers(client)))
            self.starts = np.linspace(0, len(source), parts + 1).astype(np.intp)
        self._held: dict[int, tuple[str, Any]] = {}
        # The functions that are applied to rows, and the rows before the last function, whose parts are reused.
        self._functions: tuple[RowFunction, ...] = ()
        self._before: WorkerRows | None = None

    @property
    def small(self) -> bool:
        """False: the pool stays on the workers."""
        return False

    @property
    def sizes(self) -> list[int]:
        """Number of rows of each part."""
        return [int(size) for size in np.diff(self.starts)]

    @property
    def parts(self) -> "list[WorkerPart]":
        """The parts, in the order of their rows."""
        return [WorkerPart(self, k) for k in range(len(self.starts) - 1)]

    @property
    def plain(self) -> Floats | None:
        """The rows as an array in this process, if that is their source."""
        return None if self._functions or isinstance(self.source, DiskRows) else self.source

    def mapped(self, function: RowFunction, *, selects: bool = False) -> "WorkerRows":
        """The rows after a function of rows, which the workers compute."""
        del selects
        # The parts stay the same, also if a worker was lost meanwhile.
        found = copy(self)
        found._before, found._held, found._functions = self, {}, (*self._functions, function)
        found.shape, found.finite = (len(self), found._mapped(self.source[:1]).shape[1]), False
        return found

    def batches(self) -> Iterator[tuple[int, Floats]]:
        """All rows in order, through this process."""
        if isinstance(self.source, DiskRows):
            for start, block in self.source.batches():
                yield start, self._mapped(block)
            return
        for start in range(0, len(self), self.batch_rows):
            yield start, self._mapped(self.source[start : start + self.batch_rows])

    def rows(self, indices: Any) -> Floats:
        """Some rows, in this process."""
        return self._mapped(self.source[np.asarray(indices, dtype=np.intp)])

    def require_finite(self, name: str) -> None:
        """Raise an error for numbers that are not finite; the workers check them."""
        columns = None if self._functions else self.columns
        places = spread(len(self.parts), _workers(self.client))
        checked = [
            self.client.submit(_checked, part.on(place), columns, name, int(start), pure=False)
            for part, place, start in zip(self.parts, places, self.starts, strict=False)
        ]
        self.client.gather(checked)
        self.finite = True

    def require_room(self, per_row: int, what: str) -> None:
        """Raise an error before any label if a pool does not fit into the memory of the workers.

        Args:
            per_row: Bytes for each row, in addition to the row itself.
            what: Purpose of the memory, for the error.

        Raises:
            NotEnoughMemoryError: It does not fit; the message states the numbers.
        """
        row = per_row + 8 * (self.shape[1] + (self.source.shape[1] if self._functions else 0))
        workers = _workers(self.client)
        places = spread(len(self.parts), workers)
        needed: dict[str, int] = dict.fromkeys(workers, 0)
        for place, size in zip(places, self.sizes, strict=True):
            needed[place] += row * size
        info = self.client.scheduler_info(n_workers=-1)["workers"]
        free = self.client.run(free_memory)
        hosts: dict[str, list[str]] = {}
        for place in workers:
            hosts.setdefault(info[place].get("host", place), []).append(place)
        for place in workers:
            limit = info[place].get("memory_limit") or 0
            used = int(info[place].get("metrics", {}).get("memory", 0))
            if limit and needed[place] > limit - used:
                there = f"{figure(max(0, limit - used))} of a limit of {figure(limit)}"
                raise self._no_room(row, what, f"the worker {place} would need {figure(needed[place])}", there)
        for host, here in hosts.items():
            left, total = min(free.get(place, 0) for place in here), sum(needed[place] for place in here)
            if total > left:
                who = f"{len(here)} of the workers, on {host}, would need {figure(total)}"
                raise self._no_room(row, what, who, figure(left))

    def _no_room(self, row: int, what: str, needed: str, free: str) -> NotEnoughMemoryError:
        return NotEnoughMemoryError(
            f"{what} takes {row:,} bytes for each of {len(self):,} rows on {len(self.parts)} workers: {needed} of "
            f"memory, and {free} are free. More workers on other machines, dtype='float32', fewer labels or a smaller "
            "pool would help"
        )

    def _mapped(self, block: Any) -> Floats:
        return _apply(np.asarray(block, dtype=np.float64), self._functions)

    def on(self, k: int, place: str) -> Any:
        """A future of the rows of a part, on a worker if that is possible."""
        known = self._held.get(k)
        if known is not None and known[0] == place and known[1].status in ("pending", "finished"):
            return known[1]
        first, last = int(self.starts[k]), int(self.starts[k + 1])
        there = {"workers": [place], "allow_other_workers": True, "pure": False}
        if self._before is not None:
            found = self.client.submit(_apply, self._before.on(k, place), self._functions[-1:], **there)
        elif isinstance(self.source, CollectionRows):
            found = self.source.futures[k]
        elif isinstance(self.source, DiskRows):
            found = self.client.submit(_read_part, self.source, first, last, **there)
        else:
            block = np.ascontiguousarray(self.source[first:last], dtype=np.float64)
            found = self.client.scatter(block, workers=[place], hash=False)
        self._held[k] = place, found
        return found


class WorkerPart:
    """A part of the rows on workers.

    Args:
        rows: All rows.
        number: Number of the part.
    """

    def __init__(self, rows: WorkerRows, number: int) -> None:
        self._rows, self._number = rows, number

    def __len__(self) -> int:
        return self._rows.sizes[self._number]

    def on(self, place: str) -> Any:
        """A future of its rows, on a worker if that is possible."""
        return self._rows.on(self._number, place)


class CollectionRows(StoredRows):
    """Rows of a Dask array or a Dask DataFrame, kept by the workers.

    Args:
        client: A ``distributed.Client``.
        collection: The array, ``m x D`` numbers, or the DataFrame of numbers.

    Attributes:
        futures: The rows of each part.
        starts: Number of the first row of each part, and at the end the number of rows.

    Raises:
        InvalidValueError: It is not a table of numbers of at least one row.
    """

    def __init__(self, client: Any, collection: Any) -> None:
        super().__init__(MEMORY_LIMIT)
        delayed: Any = import_module("dask.delayed").delayed
        self._client = client
        array = _as_dask_array(collection)
        self.columns = [str(name) for name in collection.columns] if hasattr(collection, "columns") else None
        lengths = [int(size) for size in array.chunks[0]]
        self.shape = sum(lengths), int(array.shape[1])
        if not self.shape[0] or not self.shape[1]:
            raise InvalidValueError(
                f"X_pool must be a table of at least one row, but the shape of the collection is {self.shape}"
            )
        blocks = array.rechunk({1: -1}).to_delayed().ravel().tolist()
        groups = _groups(lengths, len(_workers(client)))
        self.starts = np.array([0, *np.cumsum([sum(lengths[k] for k in group) for group in groups])], dtype=np.intp)
        joined = [delayed(_joined)([blocks[k] for k in group]) for group in groups]
        self.futures: list[Any] = client.compute(joined, retries=_RETRIES)

    def _blocks(self) -> Iterator[Floats]:
        for k, future in enumerate(self.futures):
            size = int(self.starts[k + 1] - self.starts[k])
            for first in range(0, size, self.batch_rows):
                yield self._client.submit(_span_of, future, first, first + self.batch_rows, pure=False).result()

    def _read(self, indices: Indices) -> Floats:
        found = np.empty((len(indices), self.shape[1]))
        owner = np.searchsorted(self.starts, indices, side="right") - 1
        parts = np.unique(owner).tolist()
        asked = [
            self._client.submit(_rows_of, self.futures[k], indices[owner == k] - self.starts[k], pure=False)
            for k in parts
        ]
        for k, rows in zip(parts, self._client.gather(asked), strict=True):
            found[owner == k] = rows
        return found


def _as_dask_array(collection: Any) -> Any:
    """A Dask collection as an array of two axes and known length."""
    if hasattr(collection, "to_dask_array"):
        kinds = getattr(collection, "dtypes", None)
        if kinds is None or not hasattr(collection, "columns"):
            raise InvalidValueError("X_pool must have two axes; select columns as a DataFrame: frame[['x']]")
        for name, kind in kinds.items():
            if getattr(kind, "kind", "O") not in "fiub":
                raise InvalidValueError(
                    f"X_pool must be a table of numbers, and column {name!r} of the DataFrame is {kind}; select the "
                    "columns of numbers"
                )
        return collection.to_dask_array(lengths=True)
    if not hasattr(collection, "chunks") or not hasattr(collection, "dtype"):
        raise InvalidTypeError(
            f"X_pool must be a Dask array or a Dask DataFrame, not {type(collection).__name__}; other collections can "
            "be turned into one: dask.array.from_delayed"
        )
    if collection.ndim != 2 or collection.dtype.kind not in "fiub":
        raise InvalidValueError(
            f"X_pool must be a table of numbers, and the Dask array has {collection.ndim} axes of {collection.dtype}"
        )
    if any(np.isnan(size) for size in collection.shape):
        collection = collection.compute_chunk_sizes()
    return collection


def _groups(lengths: Sequence[int], most: int) -> list[list[int]]:
    """Return consecutive chunks in at most ``most`` groups of about equal numbers of rows; no group is empty."""
    ends, total = np.cumsum(lengths), sum(lengths)
    middles = ends - np.array(lengths) / 2.0
    numbers = np.minimum((middles / max(1, total) * most).astype(int), most - 1)
    found = [np.flatnonzero(numbers == k).tolist() for k in range(most)]
    return [group for group in found if sum(lengths[k] for k in group)]


def _joined(blocks: Sequence[Any]) -> Floats:
    return np.ascontiguousarray(np.concatenate([np.asarray(each, dtype=np.float64) for each in blocks]))


def _apply(rows: Floats, functions: Sequence[RowFunction]) -> Floats:
    for function in functions:
        found = function(rows)
        rows = np.ascontiguousarray(found.toarray() if hasattr(found, "toarray") else found, dtype=np.float64)
    return rows


def _read_part(source: DiskRows, first: int, last: int) -> Floats:
    """Read some rows of a file, on the worker that runs this function."""
    if missing := [path for path in source.files if not path.exists()]:
        raise SufficeError(
            f"a worker cannot read {missing[0]}: the file of a pool must be where all workers can read it, under the "
            "same path. Put it on a shared file system, or give the pool as a Dask collection"
        )
    found = np.empty((last - first, source.shape[1]))
    for start in range(first, last, _SPAN):
        found[start - first : start - first + _SPAN] = source[start : min(start + _SPAN, last)]
    return found


def _checked(rows: Floats, columns: list[str] | None, name: str, first: int) -> None:
    require_finite(rows, columns, name, first)


def _span_of(rows: Floats, first: int, last: int) -> Floats:
    return rows[first:last]


def _rows_of(rows: Floats, indices: Indices) -> Floats:
    return rows[indices]


def spread(parts: int, workers: Sequence[str]) -> list[str]:
    """Return the worker of each part: equal numbers of parts on each, in the order of the workers."""
    return [workers[k % len(workers)] for k in range(parts)]


def _workers(client: Any) -> list[str]:
    """Return the addresses of the workers, after waiting until there is one.

    Raises:
        SufficeError: There is no worker within the time limit.
    """
    end = time.monotonic() + PATIENCE
    while not (found := sorted(client.scheduler_info(n_workers=-1)["workers"])):
        if time.monotonic() > end:
            raise SufficeError(f"the Dask cluster has had no worker for {PATIENCE:.0f} s; start some")
        time.sleep(0.1)
    return found


def is_collection(X: Any) -> bool:
    """Whether inputs are a collection of Dask."""
    return hasattr(X, "__dask_graph__") and hasattr(X, "__dask_keys__")


def rows_on_workers(client: Any, X: Any) -> WorkerRows | None:
    """Return the pool on the workers of a cluster if a client or a Dask collection is given; None otherwise.

    Args:
        client: A ``distributed.Client``, or None for the default one if the pool is a Dask collection.
        X: The pool: a Dask collection, a path, rows on disk, or anything that is a table of numbers.

    Raises:
        MissingExtraError: Dask's package ``distributed`` is not installed.
        InvalidTypeError: The client is something else.
        InvalidValueError: There is no client, or the pool is not a table of numbers.
    """
    if isinstance(X, WorkerRows):
        return X
    if client is None and not is_collection(X):
        return None
    try:
        distributed: Any = import_module("distributed")
    except ImportError:
        raise MissingExtraError("distributed", "dask", "A pool on the workers of a cluster") from None
    if client is None:
        try:
            client = distributed.default_client()
        except ValueError:
            raise InvalidValueError(
                "X_pool is a Dask collection, and there is no client for its workers: start one, client = "
                "distributed.Client(), or give client=; collection.compute() gives the pool in memory"
            ) from None
    if not isinstance(client, distributed.Client) or client.asynchronous:
        came = "an asynchronous one" if isinstance(client, distributed.Client) else f"{type(client).__name__}"
        raise InvalidTypeError(f"client must be a distributed.Client that is not asynchronous, not {came}")
    if any(place.startswith("inproc:") for place in _workers(client)):
        raise InvalidValueError(
            "the workers of client are threads of this process, where a pool on workers has no use: start them as "
            "processes, distributed.Client(processes=True), or leave client out"
        )
    if is_collection(X):
        return WorkerRows(client, CollectionRows(client, X))
    on_disk = rows_on_disk(X)
    if on_disk is not None and on_disk.files:
        return WorkerRows(client, on_disk)
    # A copy, because the caller may change the original, and a lost part is created again from it.
    array = np.array(X, dtype=np.float64) if isinstance(X, np.ndarray | list | tuple) else None
    if array is None and hasattr(X, "to_numpy"):
        try:
            array = np.array(X.to_numpy(), dtype=np.float64)
        except (TypeError, ValueError):
            array = None
    if array is None or array.ndim != 2 or not array.size:
        raise InvalidValueError(
            "X_pool on the workers of a cluster must be a table of numbers of at least one row: an array, a .npy file, "
            "a Parquet file or folder, a Dask array or a Dask DataFrame; leave client out for other pools"
        )
    return WorkerRows(client, array)


@contextmanager
def local_client(workers: int) -> Iterator[Any]:
    """Start a cluster of worker processes on this machine, yield its client, and close it at the end of the context.

    Each worker has one thread, ignores Ctrl-C, and keeps freed memory for the next block of picks. By default Dask
    returns it to the system at once, which takes a fifth more time.

    Args:
        workers: Number of workers.

    Raises:
        MissingExtraError: Dask's package ``distributed`` is not installed.
    """
    try:
        distributed, config = import_module("distributed"), import_module("dask.config")
    except ImportError:
        raise MissingExtraError("distributed", "dask", "A pool on the workers of a cluster") from None
    options: dict[str, Any] = {"n_workers": workers, "threads_per_worker": 1, "dashboard_address": ":0"}
    options["silence_logs"] = CRITICAL
    # Ctrl-C is sent to all processes of a terminal; the workers are ended by this one.
    options["preload"] = ["import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"]
    environment = dict(config.get(_ENVIRONMENT, {}))
    environment.pop("MALLOC_TRIM_THRESHOLD_", None)
    with ExitStack() as stack:
        with config.set({_ENVIRONMENT: environment}):
            cluster = stack.enter_context(distributed.LocalCluster(**options))
        yield stack.enter_context(distributed.Client(cluster, set_as_default=False))
