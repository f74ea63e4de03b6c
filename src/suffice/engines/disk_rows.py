"""Pools on disk: rows of NumPy and Parquet files, read in batches or by index, and whether a run fits into memory."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from mmap import mmap
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple
from zlib import crc32

import numpy as np

from suffice.arguments import whole
from suffice.errors import InvalidValueError, MissingExtraError, NotEnoughMemoryError, SufficeError
from suffice.models.inputs import require_finite
from suffice.numerics import Floats

Indices = np.typing.NDArray[np.intp]

#: Default limit of the memory for rows of a pool on disk, in bytes.
MEMORY_LIMIT: Final = 2**30
# Largest size of a batch of rows as float64, in bytes. Smaller batches stay in the processor's cache, but each batch of
# a Parquet file takes time of its own.
_BATCH: Final = 2**23
_BATCH_OF_NUMBERS: Final = 2**20
# Share of the memory limit for rows that were read by index, and bytes of the Python objects for each of them. Rules
# use the same few thousand items after every label, so at least this many bytes are kept.
_CACHED_SHARE: Final = 1 / 32
_CACHED_LEAST: Final = 2**20
_OVERHEAD: Final = 200
# A pool whose rows take at most this share of the limit is kept in memory, because a learner makes a few copies.
_SMALL_SHARE: Final = 1 / 4
_PARQUET: Final = (".parquet", ".pq")
# A row group is kept in memory if at least this many of its rows are read and it takes at most this share of the limit.
_MANY_ROWS: Final = 64
_GROUP_SHARE: Final = 1 / 8


class DiskRows(ABC):
    """Rows of a pool that is not in memory, as float64. Base class of :class:`NpyPool` and :class:`ParquetPool`.

    ``rows[indices]`` is an array in memory. Rows that were read last are kept, so that labelled items are read once.

    Attributes:
        shape: Number of rows and of columns.
        columns: Names of the columns, or None.
        memory_limit: Largest size of rows in memory, in bytes. The few numbers that are kept for each row do not count.
        passes: Number of passes over all rows.
        finite: Whether all numbers are known to be finite.
        single: Whether float32 holds every number exactly.
    """

    shape: tuple[int, int]
    columns: list[str] | None = None
    memory_limit: int = MEMORY_LIMIT
    passes: int = 0
    finite: bool = False
    single: bool = False
    _batch_bytes: ClassVar[int] = _BATCH

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> Floats:
        return self.rows(np.arange(*key.indices(len(self))) if isinstance(key, slice) else key)

    @property
    def batch_rows(self) -> int:
        """Largest number of rows in a batch."""
        return max(256, min(self._batch_bytes, self.memory_limit // 8) // (8 * max(1, self.shape[1])))

    @abstractmethod
    def batches(self) -> Iterator[tuple[int, Floats]]:
        """All rows in order: the number of the first one, and a block of at most :attr:`batch_rows`."""

    @abstractmethod
    def rows(self, indices: Any) -> Floats:
        """Some rows, ``n x D``."""

    @property
    def small(self) -> bool:
        """Whether the pool may be kept in memory as a whole."""
        return 8 * self.shape[0] * self.shape[1] <= _SMALL_SHARE * self.memory_limit

    def array(self, purpose: str = "the pool in memory") -> Floats:
        """All rows in memory.

        Raises:
            NotEnoughMemoryError: They do not fit; this is checked before they are read.
        """
        require_memory(8 * self.shape[0] * self.shape[1], f"{purpose}, {self.shape[0]} x {self.shape[1]} numbers,")
        found = np.empty(self.shape)
        for start, block in self.batches():
            found[start : start + len(block)] = block
        return found

    def fingerprint(self) -> str:
        """Return an identifier of these rows that needs no full pass: their number, and a checksum of some of them."""
        some = self.rows(np.unique(np.linspace(0, len(self) - 1, 64).astype(np.intp)))
        return f"{self.shape[0]}x{self.shape[1]} with checksum {crc32(some.tobytes()):08x} of some rows"

    @property
    def files(self) -> list[Path]:
        """Return the files that contain the rows; none if they are not in files."""
        return []

    def mapped(self, function: Callable[[Floats], Any], *, selects: bool = False) -> "DiskRows":
        """The rows after a function of rows; see :class:`MappedRows`."""
        return MappedRows(self, function, selects=selects)

    def require_finite(self, name: str) -> None:
        """Raise an error for numbers that are not finite.

        Args:
            name: Name of the table in the error.

        Raises:
            InvalidValueError: There is such a number; the message names its row and column.
        """
        for start, block in self.batches():
            require_finite(block, self.columns, name, start)
        self.finite = True


class MappedRows(DiskRows):
    """Rows of a pool on disk after a function of rows, such as the features of a model.

    Args:
        source: The rows to transform.
        function: Returns the transformed rows, ``n x J``, of a block of rows, ``n x D``.
        selects: Whether it only adds, drops or repeats columns, so that numbers are not changed.
    """

    def __init__(self, source: DiskRows, function: Callable[[Floats], Any], *, selects: bool = False) -> None:
        self._source, self._function, self.single = source, function, selects and source.single
        self.shape = len(source), self._mapped(source[:1]).shape[1]
        self.memory_limit = source.memory_limit

    @property
    def batch_rows(self) -> int:
        """Largest number of rows in a batch."""
        return self._source.batch_rows

    @property
    def passes(self) -> int:  # type: ignore[override]
        """Number of passes over all rows."""
        return self._source.passes

    def batches(self) -> Iterator[tuple[int, Floats]]:
        """All rows in order, mapped."""
        for start, block in self._source.batches():
            yield start, self._mapped(block)

    def rows(self, indices: Any) -> Floats:
        """Some rows, mapped."""
        return self._mapped(self._source.rows(indices))

    def _mapped(self, block: Floats) -> Floats:
        found = self._function(block)
        return np.asarray(found.toarray() if hasattr(found, "toarray") else found, dtype=np.float64)


class StoredRows(DiskRows):
    """Rows that are read from their storage. Those that were read last are kept in memory.

    Args:
        memory_limit: Largest size of rows in memory, in bytes.
    """

    def __init__(self, memory_limit: Any) -> None:
        self.memory_limit = whole(memory_limit, "memory_limit", least=1)
        self._kept: dict[int, Floats] = {}

    def batches(self) -> Iterator[tuple[int, Floats]]:
        """All rows in order."""
        self.passes += 1
        start = 0
        for block in self._blocks():
            yield start, block
            start += len(block)
        if start != len(self):
            raise self._changed(f"it has {start} rows in all, not {len(self)}")

    def rows(self, indices: Any) -> Floats:
        """Some rows."""
        wanted = np.asarray(indices, dtype=np.intp)
        if len(wanted) and not (wanted.min() >= 0 and wanted.max() < len(self)):
            raise IndexError(f"rows are 0 to {len(self) - 1}; {wanted.min()} to {wanted.max()} were asked for")
        kept_bytes = max(_CACHED_LEAST, int(self.memory_limit * _CACHED_SHARE))
        room = max(64, kept_bytes // (8 * self.shape[1] + _OVERHEAD))
        if len(wanted) > room // 2:
            different, places = np.unique(wanted, return_inverse=True)
            return self._read(different)[places]
        # The oldest rows are first; a row that is read again is moved to the end.
        kept = {index: self._kept.pop(index) for index in set(wanted.tolist()) if index in self._kept}
        missing = np.array(sorted(set(wanted.tolist()) - kept.keys()), dtype=np.intp)
        if len(missing):
            kept |= zip(missing.tolist(), self._read(missing), strict=True)
        self._kept |= kept
        for index in list(self._kept)[: max(0, len(self._kept) - room)]:
            del self._kept[index]
        found = np.empty((len(wanted), self.shape[1]))
        for place, index in enumerate(wanted.tolist()):
            found[place] = kept[index]
        return found

    @abstractmethod
    def _blocks(self) -> Iterator[Floats]:
        """All rows in order, as blocks."""

    @abstractmethod
    def _read(self, indices: Indices) -> Floats:
        """Some rows; the indices are different and rising. Each row is an array that may be kept."""

    def _changed(self, how: str) -> SufficeError:
        return SufficeError(
            f"the pool has changed since it was opened: {how}. Picks and labels belong to the old rows: restore it, or "
            "start again with the new one"
        )


class _FileRows(StoredRows):
    """Rows of files, which must not change."""

    def __init__(self, files: Sequence[Path], memory_limit: Any) -> None:
        super().__init__(memory_limit)
        self._files = list(files)
        self._known = [_size_and_time(path) for path in self._files]

    @property
    def files(self) -> list[Path]:
        """The files."""
        return self._files

    def __getstate__(self) -> dict[str, Any]:
        # For workers, which may have another working directory, and read the files themselves.
        return {**self.__dict__, "_kept": {}, "_files": [path.absolute() for path in self._files]}

    def _require_unchanged(self, number: int) -> Path:
        """Return the path of a file, after a check that it has not changed.

        Raises:
            SufficeError: The file has changed.
        """
        path, (size, time) = self._files[number], self._known[number]
        found = _size_and_time(path)
        if found[0] < 0:
            raise self._changed(f"{path}: it is not there any more")
        if found[0] != size:
            raise self._changed(f"{path}: it had {size:,} bytes and has {found[0]:,}")
        if found[1] != time:
            raise self._changed(f"{path}: it was written again")
        return path


def _size_and_time(path: Path) -> tuple[int, int]:
    """Size and time of the last change of a file; -1 if it is not there."""
    try:
        found = path.stat()
    except OSError:
        return -1, -1
    return found.st_size, found.st_mtime_ns


class NpyPool(_FileRows):
    """A pool in a NumPy file, ``m x D`` numbers, as ``numpy.save`` writes it.

    It is read without a memory map, so that pages of the file do not count as memory of the process.

    Args:
        path: The file.
        memory_limit: Largest size of rows in memory, in bytes.

    Raises:
        InvalidValueError: The file is not a table of numbers.

    Examples:
        >>> import tempfile
        >>> from pathlib import Path
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     np.save(Path(folder) / "pool.npy", np.arange(6.0).reshape(3, 2))
        ...     pool = NpyPool(Path(folder) / "pool.npy")
        ...     pool.shape, pool[[2, 0]]
        ((3, 2), array([[4., 5.],
               [0., 1.]]))
    """

    _batch_bytes = _BATCH_OF_NUMBERS

    def __init__(self, path: Any, *, memory_limit: int = MEMORY_LIMIT) -> None:
        file = Path(path)
        try:
            mapped = np.load(file, mmap_mode="r", allow_pickle=False)
        except FileNotFoundError:
            raise InvalidValueError(f"X_pool: there is no file {file}") from None
        except (ValueError, EOFError, OSError) as error:
            raise InvalidValueError(f"X_pool: {file} is not a NumPy file (.npy) of numbers: {error}") from None
        if not isinstance(mapped, np.memmap):
            raise InvalidValueError(f"X_pool: {file} holds several arrays; save one with numpy.save")
        if mapped.ndim != 2 or not mapped.size or mapped.dtype.kind not in "fiub":
            raise InvalidValueError(
                f"X_pool: {file} must hold a table of numbers of at least one row, and holds {mapped.dtype} of shape "
                f"{mapped.shape}"
            )
        super().__init__([file], memory_limit)
        self._set(mapped)

    @classmethod
    def of_map(cls, mapped: "np.memmap[Any, Any]") -> "NpyPool":
        """The pool in the file of a memory map that was made from a whole file or a part of it, not by slicing."""
        pool = cls.__new__(cls)
        assert mapped.filename is not None
        _FileRows.__init__(pool, [Path(mapped.filename)], MEMORY_LIMIT)
        pool._set(mapped)
        return pool

    def _set(self, mapped: "np.memmap[Any, Any]") -> None:
        self.shape = mapped.shape[0], mapped.shape[1]
        self._dtype, self._offset = mapped.dtype, int(mapped.offset)
        self._by_rows = bool(mapped.flags.c_contiguous)
        self.single = bool(np.can_cast(self._dtype, np.float32, "safe"))

    def _blocks(self) -> Iterator[Floats]:
        path, size = self._require_unchanged(0), self.batch_rows
        with _opened(path) as file:
            for start in range(0, len(self), size):
                self._require_unchanged(0)
                yield self._span(file, start, min(start + size, len(self)))

    def _read(self, indices: Indices) -> Floats:
        path, found = self._require_unchanged(0), np.empty((len(indices), self.shape[1]))
        # Consecutive rows are read at once.
        ends = np.flatnonzero(np.diff(indices, append=-1) != 1) + 1
        with _opened(path) as file:
            first = 0
            for end in ends.tolist():
                found[first:end] = self._span(file, int(indices[first]), int(indices[end - 1]) + 1)
                first = end
        return found

    def _span(self, file: Any, start: int, stop: int) -> Floats:
        """Rows from ``start`` to ``stop``."""
        (m, width), size = self.shape, self._dtype.itemsize
        count = stop - start
        if self._by_rows:
            numbers = self._numbers(file, start * width * size, count * width)
            return np.asarray(numbers.reshape(count, width), dtype=np.float64)
        return np.column_stack(
            [self._numbers(file, (k * m + start) * size, count).astype(np.float64) for k in range(width)]
        )

    def _numbers(self, file: Any, at: int, count: int) -> Any:
        file.seek(self._offset + at)
        data = file.read(count * self._dtype.itemsize)
        if len(data) != count * self._dtype.itemsize:
            raise self._changed(f"{self._files[0]}: it ends early")
        return np.frombuffer(data, dtype=self._dtype)


def _opened(path: Path) -> Any:
    try:
        return path.open("rb")
    except OSError as error:
        raise SufficeError(f"the pool cannot be read: {path}: {error.strerror or error}") from None


class _ArrayRows(DiskRows):
    """Rows of a memory map that is a view of another one. Pages that were read count as memory for a while."""

    def __init__(self, mapped: Any) -> None:
        self._mapped, self.shape, self.passes = mapped, (mapped.shape[0], mapped.shape[1]), 0

    def batches(self) -> Iterator[tuple[int, Floats]]:
        """All rows in order."""
        self.passes += 1
        for start in range(0, len(self), self.batch_rows):
            yield start, np.array(self._mapped[start : start + self.batch_rows], dtype=np.float64)

    def rows(self, indices: Any) -> Floats:
        """Some rows."""
        return np.array(self._mapped[np.asarray(indices, dtype=np.intp)], dtype=np.float64)


class _Group(NamedTuple):
    """A row group: number of its file, its number in the file, its first row in the pool, and its number of rows."""

    file: int
    number: int
    start: int
    size: int


class ParquetPool(_FileRows):
    """A pool in a Parquet file, or in all Parquet files of a folder in the order of their paths.

    Batches are read with Arrow. To read a row by its index, its row group is read up to that row.

    Args:
        path: The file or the folder. Names that begin with a dot or an underscore are left out.
        columns: Names of the columns to use, in this order; all if left out. They must be numbers.
        memory_limit: Largest size of rows in memory, in bytes.

    Raises:
        InvalidValueError: There is no file, a column is missing or holds no numbers, or there are no rows.
        MissingExtraError: pyarrow is not installed.

    Examples:
        >>> import tempfile
        >>> from pathlib import Path
        >>> import pyarrow, pyarrow.parquet
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     table = pyarrow.table({"name": ["a", "b"], "x": [0.5, 1.5], "y": [1, 2]})
        ...     pyarrow.parquet.write_table(table, Path(folder) / "pool.parquet")
        ...     pool = ParquetPool(Path(folder) / "pool.parquet", columns=["y", "x"])
        ...     pool.shape, pool[[1]]
        ((2, 2), array([[2. , 1.5]]))
    """

    columns: list[str]

    def __init__(self, path: Any, columns: Sequence[str] | None = None, *, memory_limit: int = MEMORY_LIMIT) -> None:
        place = Path(path)
        super().__init__(_parquet_files(place), memory_limit)
        if isinstance(columns, str) or (columns is not None and not len(columns)):
            raise InvalidValueError(f"columns must be a list of at least one name of a column, not {columns!r}")
        self._metadata: list[Any] = []
        schemas: list[Any] = []
        # The complete row group from which many rows were read last; the next rows are often in it too.
        self._last: tuple[int, Floats] | None = None
        self._groups: list[_Group] = []
        names = None if columns is None else [str(name) for name in columns]
        start = 0
        for number, file in enumerate(self._files):
            found = self._open(number)
            names = _number_columns(found.schema_arrow, names, file)
            self._metadata.append(found.metadata)
            schemas.append(found.schema_arrow)
            for k in range(found.metadata.num_row_groups):
                self._groups.append(_Group(number, k, start, found.metadata.row_group(k).num_rows))
                start += self._groups[-1].size
        assert names is not None
        if not start:
            raise InvalidValueError(f"X_pool must be a table of at least one row, and {place} has none")
        self.columns, self.shape = names, (start, len(names))
        self.single = all(_exact_in_single(schema.field(name).type) for schema in schemas for name in names)
        self._starts = np.array([group.start for group in self._groups], dtype=np.intp)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_last": None, "_metadata": []}

    def _open(self, number: int) -> Any:
        path = self._require_unchanged(number)
        known = self._metadata[number] if number < len(self._metadata) else None
        try:
            # Pages are read when they are needed, because a row group may be larger than memory.
            return _parquet().ParquetFile(path, metadata=known, buffer_size=2**20, pre_buffer=False)
        except (OSError, ValueError) as error:
            raise InvalidValueError(f"X_pool: {path} is not a Parquet file that can be read: {error}") from None

    def _blocks(self) -> Iterator[Floats]:
        for number in range(len(self._files)):
            yield from self._file_blocks(number, None)

    def _file_blocks(self, number: int, groups: list[int] | None) -> Iterator[Floats]:
        """Blocks of some row groups of a file, or of all of it."""
        options = {"batch_size": self.batch_rows, "columns": self.columns, "use_threads": False}
        try:
            for batch in self._open(number).iter_batches(row_groups=groups, **options):
                # The file may have changed since the last batch.
                self._require_unchanged(number)
                block = np.empty((self.shape[1], batch.num_rows))
                for k, name in enumerate(self.columns):
                    block[k] = batch.column(name).to_numpy(zero_copy_only=False)
                yield block.T
        except (OSError, ValueError) as error:
            if isinstance(error, SufficeError):
                raise
            self._require_unchanged(number)
            raise SufficeError(f"the pool cannot be read: {self._files[number]}: {error}") from None

    def _read(self, indices: Indices) -> Floats:
        found = np.empty((len(indices), self.shape[1]))
        # An empty group has the same first row as the next one, so the last group with this first row has the row.
        places = np.searchsorted(self._starts, indices, side="right") - 1
        for place in np.unique(places).tolist():
            group = self._groups[place]
            here = np.flatnonzero(places == place)
            local, at = indices[here] - group.start, 0
            if self._keeps(place, len(here)) and self._last is not None:
                found[here] = self._last[1][local]
                continue
            for block in self._file_blocks(group.file, [group.number]):
                inside = (local >= at) & (local < at + len(block))
                found[here[inside]] = block[local[inside] - at]
                at += len(block)
                if at > local[-1]:
                    break
        return found

    def _keeps(self, place: int, wanted: int) -> bool:
        """Return whether a row group is in memory; it is read first if enough rows are wanted and it is not large."""
        group = self._groups[place]
        if self._last is not None and self._last[0] == place:
            self._require_unchanged(group.file)
            return True
        if wanted < _MANY_ROWS or 8 * group.size * self.shape[1] > _GROUP_SHARE * self.memory_limit:
            return False
        self._last = None
        self._last = place, np.concatenate(list(self._file_blocks(group.file, [group.number])))
        return True


def _parquet() -> Any:
    try:
        return import_module("pyarrow.parquet")
    except ImportError:
        raise MissingExtraError("pyarrow", "parquet", "A pool in Parquet") from None


def _parquet_files(place: Path) -> list[Path]:
    if place.is_file():
        return [place]
    if not place.is_dir():
        raise InvalidValueError(f"X_pool: there is no file or folder {place}")
    found = [
        file
        for file in place.rglob("*")
        if file.suffix.lower() in _PARQUET
        and file.is_file()
        and not any(part.startswith((".", "_")) for part in file.relative_to(place).parts)
    ]
    if not found:
        raise InvalidValueError(
            f"X_pool: the folder {place} has no Parquet file; their names must end in .parquet or .pq"
        )
    return sorted(found)


def _exact_in_single(kind: Any) -> bool:
    types = import_module("pyarrow").types
    small = (types.is_float32, types.is_float16, types.is_int8, types.is_int16, types.is_uint8, types.is_uint16)
    return types.is_boolean(kind) or any(is_kind(kind) for is_kind in small)


def _number_columns(schema: Any, wanted: list[str] | None, file: Path) -> list[str]:
    """Return the names of the columns to use, after a check that they exist and contain numbers."""
    types = import_module("pyarrow").types
    names = schema.names if wanted is None else wanted
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidValueError(f"X_pool: the column {twice!r} comes twice in {file}; every name must be different")
    if not names:
        raise InvalidValueError(f"X_pool: {file} has no column")
    for name in names:
        if name not in schema.names:
            raise InvalidValueError(
                f"X_pool: {file} has no column {name!r}; it has {', '.join(map(repr, schema.names[:20]))}"
            )
        kind = schema.field(name).type
        if not (types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)):
            holds = "texts" if types.is_string(kind) or types.is_large_string(kind) else f"values of type {kind}"
            raise InvalidValueError(
                f"X_pool must be a table of numbers, and holds {holds} in column {name!r} of {file}; name the columns "
                "of numbers: suffice.engines.ParquetPool(path, columns=[...])"
            )
    return list(names)


#: Bytes that learner and engine keep for each item: scores, an order, flags.
PER_ITEM: Final = 64


def require_disk_memory(source: DiskRows) -> None:
    """Raise an error before the first label if the data that is kept for a pool on disk does not fit into memory.

    Raises:
        NotEnoughMemoryError: It does not fit.
    """
    m = len(source)
    rows = min(source.memory_limit, 8 * m * source.shape[1])
    require_memory(
        PER_ITEM * m + rows, f"a pool of {m:,} items on disk, {PER_ITEM} bytes for each and {rows:,} for rows,"
    )


def blocks_of(features: Floats | DiskRows) -> Iterator[tuple[int, Floats]]:
    """Yield all rows in order: the number of the first one, and a block; an array in memory is one block."""
    if isinstance(features, DiskRows):
        yield from features.batches()
    else:
        yield 0, features


def in_memory_for(acquisition: str, features: Any) -> Any:
    """Features for an acquisition that uses no model: all of them in memory if distances are needed.

    Raises:
        NotEnoughMemoryError: They do not fit.
    """
    if acquisition == "k-centre" and isinstance(features, DiskRows):
        return features.array("the acquisition 'k-centre', which measures distances")
    return features


def rows_on_disk(X: Any) -> DiskRows | None:
    """The rows of a pool on disk: of a path, a memory map of a table of numbers, or such rows; None for others.

    Raises:
        InvalidValueError: There is no such file, or its format is not supported.
    """
    if isinstance(X, DiskRows):
        return X
    if isinstance(X, str | Path):
        path = Path(X)
        if path.suffix.lower() == ".npy":
            return NpyPool(path)
        if path.suffix.lower() in _PARQUET or path.is_dir():
            return ParquetPool(path)
        raise InvalidValueError(
            f"X_pool is a path, {str(path)!r}, and must end in .npy, .parquet or .pq, or be a folder of Parquet files"
        )
    if isinstance(X, np.memmap) and X.ndim == 2 and X.size and X.dtype.kind in "fiub":
        # A view has the name and the offset of the map that it was made from. Changes of a private map are not in the
        # file.
        base: Any = X.base
        whole_map = isinstance(base, mmap) and X.filename is not None and X.mode != "c"
        return NpyPool.of_map(X) if whole_map and (X.flags.c_contiguous or X.flags.f_contiguous) else _ArrayRows(X)
    return None


def free_memory() -> int:
    """Return the bytes that can be allocated without swapping."""
    # Imported here, because it takes 50 ms, and most commands never ask.
    import psutil

    return psutil.virtual_memory().available


def require_memory(needed: int, what: str, *, halved: bool = False) -> None:
    """Raise an error with the numbers if there is not enough free memory.

    Args:
        needed: Bytes.
        what: Purpose of the memory, for the error.
        halved: Whether single precision would need half of it.

    Raises:
        NotEnoughMemoryError: More memory is needed than is free.

    Examples:
        >>> require_memory(10**15, "following the pool")
        Traceback (most recent call last):
        ...
        suffice.errors.NotEnoughMemoryError: following the pool needs 1,000,000.0 GB of memory, and ... GB are free...
    """
    free = free_memory()
    if needed <= free:
        return
    remedy = "dtype='float32', which takes about half, fewer steps" if halved else "fewer steps"
    raise NotEnoughMemoryError(
        f"{what} needs {figure(needed)} of memory, and {figure(free)} are free: {remedy} or a smaller pool would help"
    )


def figure(size: float) -> str:
    """Return a number of bytes as text with a unit.

    Examples:
        >>> figure(2_500_000_000)
        '2.5 GB'
    """
    return f"{size / 1e9:,.1f} GB" if size >= 1e9 else f"{size / 1e6:,.1f} MB"
