"""Numbers of the checks of a set of items. All checks of the same items share one error probability.

A set of items is identified by a digest of its rows, so that the number does not depend on the object that draws the
check: several learners, monitors and models of the same items count together.
"""

import json
import pickle
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

import numpy as np
import scipy
from numpy.typing import NDArray

from suffice.arguments import whole
from suffice.checks.hypergeometric import probability
from suffice.checks.random_check import spent_alpha
from suffice.errors import InvalidTypeError, InvalidValueError, SufficeError
from suffice.files import write_bytes_whole
from suffice.presentation.text_format import count
from suffice.saved_state import restored, sealed

_FORMAT: Final = "suffice-check-registry-1"
# The name of the items of an object that has a registry of its own.
_OWN: Final = "own"
# Cells that are hashed at a time.
_BLOCK_CELLS: Final = 1 << 20
_Codes = NDArray[np.uint64]


@dataclass
class _Entry:
    """The checks of one set of items.

    Attributes:
        alpha: Error probability of all checks together; None before the first.
        earlier: Number of checks that were started elsewhere.
        checks: An identifier of each check that was started here.
        running: Identifiers of running checks, which use the whole error probability; at most one.
    """

    alpha: float | None = None
    earlier: int = 0
    checks: list[str] = field(default_factory=list)
    running: list[str] = field(default_factory=list)

    @property
    def started(self) -> int:
        return self.earlier + len(self.checks) + len(self.running)

    def state_dict(self) -> dict[str, Any]:
        return {
            "alpha": self.alpha,
            "earlier": self.earlier,
            "checks": list(self.checks),
            "running": list(self.running),
        }

    @staticmethod
    def from_state(saved: Mapping[str, Any]) -> "_Entry":
        alpha = saved["alpha"]
        return _Entry(
            None if alpha is None else probability(alpha, "alpha"),
            whole(saved["earlier"], "earlier", least=0),
            [str(name) for name in saved["checks"]],
            [str(name) for name in saved["running"]],
        )

    def require_alpha(self, alpha: float) -> None:
        if self.alpha is not None and abs(alpha - self.alpha) > 1e-12:
            raise InvalidValueError(
                f"alpha must be {self.alpha:.10g} (confidence {1.0 - self.alpha:.10g}), as for the first check of "
                f"these items, because all checks share it; not {alpha!r}"
            )

    def joined(self, other: "_Entry") -> "_Entry":
        """The checks of both, each once."""
        if other.alpha is not None:
            self.require_alpha(other.alpha)
        found = _Entry(
            other.alpha if self.alpha is None else self.alpha,
            max(self.earlier, other.earlier),
            list(dict.fromkeys([*self.checks, *other.checks])),
            list(dict.fromkeys([*self.running, *other.running])),
        )
        if found.running and found.started > 1:
            raise InvalidValueError(
                "a running check uses the whole error probability of its items, and the registry has other checks of "
                "them; leave the registry out"
            )
        return found


class CheckRegistry:
    """Counts the checks that were started of each set of items. They share the error probability of these items.

    Check number j of a set of items spends ``alpha / (j (j + 1))``, whichever object draws it and whichever model it is
    about. So the guarantees of all of them hold together, and the best of them may be kept. Give one registry to all
    learners and monitors of the same items: ``ActiveLearner(..., checks=registry)``. Save it beside the labels.

    A check counts when it is drawn, also if it is aborted. A running check (``check_share``) uses the whole error
    probability: it needs items without earlier checks, and no other check of the same items can be started after it.

    Examples:
        >>> import numpy as np
        >>> from suffice.checks import Check, rows_digest
        >>> X = np.random.default_rng(0).normal(size=(400, 2))
        >>> registry, items = CheckRegistry(), rows_digest(X)
        >>> number = registry.start(items)
        >>> check = Check.draw(np.arange(400), size=50, rng=np.random.default_rng(0), number=number)
        >>> registry.start(rows_digest(X[::-1]))  # the same items in another order
        2
        >>> registry
        CheckRegistry(2 checks of 1 set of items)
    """

    def __init__(self) -> None:
        self._entries: dict[str, _Entry] = {}

    def __repr__(self) -> str:
        started = sum(entry.started for entry in self._entries.values())
        return f"CheckRegistry({count(started, 'check')} of {count(len(self._entries), 'set')} of items)"

    def started(self, items: str) -> int:
        """Number of checks of a set of items so far, aborted ones included.

        Args:
            items: The digest of the items, see :func:`rows_digest`.
        """
        return self._entry(items).started

    def alpha(self, items: str) -> float | None:
        """Error probability of all checks of a set of items together; None before the first.

        Args:
            items: The digest of the items.
        """
        return self._entry(items).alpha

    def next_alpha(self, items: str, *, alpha: float | None = None) -> float:
        """Error probability of the next check of a set of items.

        Args:
            items: The digest of the items.
            alpha: Error probability of all checks together; that of the first check, or 0.05, if left out.
        """
        entry = self._entry(items)
        return spent_alpha(entry.started + 1, self._shared(entry, alpha))

    def start(self, items: str, *, alpha: float | None = None) -> int:
        """Count a check that is drawn now, and return its number.

        Args:
            items: The digest of the items.
            alpha: Error probability of all checks of these items together; that of the first check, or 0.05, if left
                out.

        Raises:
            InvalidValueError: It is not that of the first check, or a running check uses all of it. Nothing is counted.
        """
        entry = self._entry(items)
        shared = self._shared(entry, alpha)
        _require_no_running(entry)
        entry.alpha, name = shared, secrets.token_hex(8)
        self._entries[items] = entry
        entry.checks.append(name)
        return entry.earlier + entry.checks.index(name) + 1

    def add_earlier(self, items: str, number: int) -> None:
        """Count checks that were started elsewhere, without this registry.

        Args:
            items: The digest of the items.
            number: How many there were.

        Raises:
            InvalidValueError: It is below 0, or a running check uses the whole error probability of the items.
        """
        entry, more = self._entry(items), whole(number, "number", least=0)
        if more:
            _require_no_running(entry)
            entry.earlier += more
            self._entries[items] = entry

    def _shared(self, entry: _Entry, alpha: float | None) -> float:
        if alpha is None:
            return 0.05 if entry.alpha is None else entry.alpha
        entry.require_alpha(probability(alpha, "alpha"))
        return alpha

    def _entry(self, items: str) -> _Entry:
        """The entry of a set of items; one that is not stored yet if there was no check."""
        if not isinstance(items, str):
            raise InvalidTypeError(
                f"items must be the digest of a set of items, rows_digest(X), not {type(items).__name__}"
            )
        return self._entries.get(items) or _Entry()

    # Saving.

    def state_dict(self) -> dict[str, Any]:
        """Return the registry as JSON values; :meth:`from_state` restores it."""
        return sealed(_FORMAT, {"items": {items: entry.state_dict() for items, entry in self._entries.items()}})

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> "CheckRegistry":
        """Restore a registry from :meth:`state_dict`.

        Args:
            state: The result of ``state_dict``, also after a round trip through JSON.

        Raises:
            InvalidValueError: It is not such a result, or is damaged.
        """

        def restore(content: Mapping[str, Any]) -> "CheckRegistry":
            registry = cls()
            for items, saved in content["items"].items():
                registry._entries[str(items)] = _Entry.from_state(saved)
            return registry

        return restored(_FORMAT, state, "CheckRegistry.state_dict", restore)

    def save(self, path: Path | str) -> None:
        """Write the registry to a file, completely or not at all.

        Args:
            path: The file, which is replaced.

        Raises:
            SufficeError: It cannot be written.
        """
        write_bytes_whole(Path(path), (json.dumps(self.state_dict(), indent=1) + "\n").encode())

    @classmethod
    def load(cls, path: Path | str) -> "CheckRegistry":
        """Read a registry from a file of :meth:`save`.

        Args:
            path: The file.

        Raises:
            SufficeError: It cannot be read.
            InvalidValueError: It is not such a file, or is damaged.

        Examples:
            >>> from tempfile import TemporaryDirectory
            >>> registry = CheckRegistry()
            >>> number = registry.start("3-0-0")
            >>> with TemporaryDirectory() as folder:
            ...     registry.save(f"{folder}/checks.json")
            ...     CheckRegistry.load(f"{folder}/checks.json")
            CheckRegistry(1 check of 1 set of items)
        """
        try:
            text = Path(path).read_text(encoding="utf-8")
        except OSError as error:
            raise SufficeError(
                f"the registry of checks {path} cannot be read: {error.strerror or error}; for items without earlier "
                "checks use CheckRegistry()"
            ) from None
        except UnicodeDecodeError:
            text = ""
        try:
            state = json.loads(text)
        except ValueError:
            raise InvalidValueError(f"{path} is not a registry of checks, which CheckRegistry.save writes") from None
        return cls.from_state(state)


class RegisteredItems:
    """One set of items in a registry: what an object that draws checks of them needs.

    Args:
        registry: The registry; None for one of its own.
        items: The digest of the items, for a given registry.
        earlier: Number of checks of the items that were started elsewhere.
    """

    def __init__(self, registry: CheckRegistry | None = None, items: str = _OWN, *, earlier: int = 0) -> None:
        self._own = registry is None
        self._registry, self._items = CheckRegistry() if registry is None else registry, items
        self._running: str | None = None
        self._registry.add_earlier(items, earlier)

    @property
    def started(self) -> int:
        """Number of checks of the items so far."""
        return self._registry.started(self._items)

    @property
    def alpha(self) -> float | None:
        """Error probability of all checks of the items together; None before the first."""
        return self._registry.alpha(self._items)

    def require_free(self) -> None:
        """Raise an error if a running check uses the whole error probability of the items.

        Raises:
            InvalidValueError: There is one.
        """
        _require_no_running(self._registry._entry(self._items))

    def start(self, alpha: float) -> int:
        """Count a check and return its number; see :meth:`CheckRegistry.start`."""
        return self._registry.start(self._items, alpha=alpha)

    def start_running(self, alpha: float) -> None:
        """Count a running check, which uses the whole error probability of the items.

        Args:
            alpha: The error probability.

        Raises:
            InvalidValueError: There were other checks of the items. Nothing is counted.
        """
        entry = self._registry._entry(self._items)
        if entry.started:
            raise InvalidValueError(
                "check_share uses the whole error probability of the items, and "
                f"{count(entry.started, 'check')} of them {'was' if entry.started == 1 else 'were'} started before; "
                "leave check_share out, and check on demand"
            )
        entry.require_alpha(alpha)
        self._running = secrets.token_hex(8)
        entry.alpha, entry.running = alpha, [self._running]
        self._registry._entries[self._items] = entry

    def extended(self, X: Any) -> "RegisteredItems":
        """The items together with more items, which count the checks so far as theirs.

        Args:
            X: All rows, the new ones included.

        Raises:
            InvalidValueError: The registry has a running check of all these items, or another error probability.
        """
        if self._own:
            return self
        found = RegisteredItems(self._registry, rows_digest(X))
        found.load_state(self.state_dict())
        return found

    def state_dict(self) -> dict[str, Any]:
        """The checks of the items as JSON values."""
        return self._registry._entry(self._items).state_dict()

    def load_state(self, saved: Mapping[str, Any]) -> None:
        """Restore :meth:`state_dict`. In a given registry, checks that it has already are not counted again.

        Raises:
            InvalidValueError: The error probabilities differ, or a running check and other checks exclude each other.
        """
        entry = _Entry.from_state(saved)
        if not self._own:
            known = _Entry.from_state(self.state_dict())
            known.running = [name for name in known.running if name != self._running]
            entry = known.joined(entry)
        self._registry._entries[self._items] = entry


def registered_items(checks: Any, earlier_checks: Any, X: Any) -> RegisteredItems:
    """The items of a pool in the registry that a user has given, or in a new one.

    Args:
        checks: A registry, or None.
        earlier_checks: Number of checks of these items that were started before.
        X: The pool; its digest is computed only if a registry is given.

    Raises:
        InvalidTypeError: ``checks`` is not a registry, or the items cannot be identified.
        InvalidValueError: Both are given, or the number is below 0.
    """
    earlier = whole(earlier_checks, "earlier_checks", least=0)
    if checks is None:
        return RegisteredItems(earlier=earlier)
    if not isinstance(checks, CheckRegistry):
        raise InvalidTypeError(f"checks must be a suffice.checks.CheckRegistry, not {type(checks).__name__}")
    if earlier:
        raise InvalidValueError(
            "earlier_checks cannot be combined with checks, because a registry counts the earlier checks itself; leave "
            "one of them out, or count them with registry.add_earlier(rows_digest(X), number)"
        )
    return RegisteredItems(checks, rows_digest(X))


def _require_no_running(entry: _Entry) -> None:
    if entry.running:
        raise InvalidValueError(
            "a running check of these items uses the whole error probability, so that there is none for other checks"
        )


# Digests.


def rows_digest(X: Any) -> str:
    """A digest of the rows of a pool: the same items have the same digest, in any order.

    It has the number of rows, and the sum and the exclusive or of a 64-bit hash of each row. All rows are read, in
    blocks. Numbers count by their value as float64, so that an array, a sparse matrix and a table with the same values
    have the same digest. Names of columns do not count, and their order does. Features that are computed again on
    another processor can differ in their last digits, and then have another digest: load the saved features instead.
    The digest identifies items; it does not protect against someone who makes other items with the same digest on
    purpose.

    Args:
        X: An array, a pandas or polars DataFrame, a sparse matrix, a tensor, a pool on disk, or a series of texts or
            other objects.

    Raises:
        InvalidTypeError: The rows cannot be read, or objects in them cannot be compared by content.

    Examples:
        >>> import numpy as np
        >>> X = np.arange(12.0).reshape(4, 3)
        >>> rows_digest(X) == rows_digest(X[[2, 0, 3, 1]]), rows_digest(X) == rows_digest(X[:3])
        (True, False)
        >>> rows_digest(["good", "bad"]) == rows_digest(["bad", "good"])
        True
    """
    size, total, parity = 0, 0, 0
    for codes in _row_codes(X):
        mixed = _mixed(codes)
        size += len(mixed)
        total = (total + int(np.sum(mixed, dtype=np.uint64))) % (1 << 64)
        parity ^= int(np.bitwise_xor.reduce(mixed)) if len(mixed) else 0
    return f"{size}-{total:016x}-{parity:016x}"


def _row_codes(X: Any) -> Iterator[_Codes]:
    """A code of each row, in blocks: the sum of the codes of its cells, each times the number of its column."""
    if callable(getattr(X, "batches", None)):
        for _, rows in X.batches():
            yield _table_codes(np.asarray(rows))
        return
    if isinstance(X, str | bytes | Mapping) or not (hasattr(X, "__len__") or hasattr(X, "shape")):
        raise InvalidTypeError(f"X must be an array, a table or a series of items, not {type(X).__name__}")
    X = X.tocsr() if scipy.sparse.issparse(X) else _as_array(X)
    shape = getattr(X, "shape", None) or (len(X),)
    step = max(1, _BLOCK_CELLS // max(1, int(np.prod(shape[1:]))))
    for start in range(0, int(shape[0]), step):
        yield _block_codes(X, start, min(start + step, int(shape[0])))


def _as_array(X: Any) -> Any:
    """A list of numbers, or of lists of numbers, as an array; everything else as it is."""
    if isinstance(X, list | tuple) and len(X) and not isinstance(X[0], str | bytes):
        try:
            array = np.asarray(X)
        except ValueError:
            return X
        return array if array.dtype.kind in "fiub" else X
    return X


def _block_codes(X: Any, start: int, end: int) -> _Codes:
    if scipy.sparse.issparse(X):
        block: Any = X[start:end]
        block.sum_duplicates()
        cells = _number_codes(block.data) * _multipliers(X.shape[1])[block.indices]
        sums = np.append(np.zeros(1, dtype=np.uint64), np.cumsum(cells, dtype=np.uint64))
        return np.asarray(sums[block.indptr[1:]] - sums[block.indptr[:-1]])
    if isinstance(X, np.ndarray) or hasattr(X, "detach"):
        rows = X[start:end]
        return _table_codes(np.asarray(rows.detach().cpu() if hasattr(rows, "detach") else rows))
    if hasattr(X, "columns") and (hasattr(X, "iloc") or hasattr(X, "to_numpy")):
        part = X.iloc[start:end] if hasattr(X, "iloc") else X[start:end]
        columns = [part.iloc[:, j] if hasattr(part, "iloc") else part[:, j] for j in range(part.shape[1])]
        codes = np.zeros(end - start, dtype=np.uint64)
        for column, multiplier in zip(columns, _multipliers(len(columns)), strict=True):
            codes += _column_codes(np.asarray(column)) * multiplier
        return codes
    if hasattr(X, "iloc"):
        return _table_codes(np.asarray(X.iloc[start:end]))
    # A table of pyarrow, or a series of objects.
    arrow = hasattr(X, "to_pylist")
    values = X.slice(start, end - start).to_pylist() if arrow else [X[k] for k in range(start, end)]
    return _object_codes(values) * _multipliers(1)


def _table_codes(rows: NDArray[Any]) -> _Codes:
    """Codes of the rows of an array of any dimension."""
    flat = rows.reshape(len(rows), -1)
    if flat.dtype.kind in "fiub":
        return np.asarray(_number_codes(flat) @ _multipliers(flat.shape[1]))
    columns = [_column_codes(flat[:, j]) * m for j, m in enumerate(_multipliers(flat.shape[1]))]
    return np.asarray(np.sum(columns, axis=0, dtype=np.uint64))


def _column_codes(column: NDArray[Any]) -> _Codes:
    if column.dtype.kind in "fiub":
        return _number_codes(column)
    if column.dtype.kind in "Mm":
        return _number_codes(column.astype(np.int64))
    return _object_codes(column.tolist())


def _number_codes(values: NDArray[Any]) -> _Codes:
    """Codes of numbers by their value as float64; 0 has the code 0, so that empty cells of a sparse matrix count."""
    # Adding 0 turns -0 into 0.
    numbers = np.asarray(values, dtype=np.float64) + 0.0
    numbers[np.isnan(numbers)] = np.nan
    bits = numbers.view(np.uint64)
    # The low bits of a product depend on the low bits only, which are 0 for most numbers.
    return np.asarray((bits ^ (bits >> np.uint64(32))) * np.uint64(0x9E3779B97F4A7C15))


def _object_codes(values: list[Any]) -> _Codes:
    """Codes of texts and other objects by their content."""
    known: dict[str, int] = {}
    codes = np.zeros(len(values), dtype=np.uint64)
    for place, value in enumerate(values):
        if isinstance(value, str):
            if value not in known:
                known[value] = _hashed(b"text" + value.encode("utf-8", "surrogatepass"))
            codes[place] = known[value]
        elif value is None or isinstance(value, bool | int | float | np.integer | np.floating | np.bool_):
            codes[place] = _number_codes(np.array([np.nan if value is None else value], dtype=np.float64))[0]
        else:
            codes[place] = _hashed(_content(value))
    return codes


def _content(value: Any) -> bytes:
    """The content of an object as bytes."""
    if isinstance(value, str):
        return b"text" + value.encode("utf-8", "surrogatepass")
    if isinstance(value, bytes | bytearray):
        return b"data" + bytes(value)
    if isinstance(value, Mapping):
        value = [part for key in sorted(value, key=str) for part in (str(key), value[key])]
    if isinstance(value, list | tuple):
        parts = [_content(part) for part in value]
        return b"list" + b"".join(len(part).to_bytes(8, "little") + part for part in parts)
    if hasattr(value, "detach"):
        value = np.asarray(value.detach().cpu())
    if callable(getattr(value, "tobytes", None)):
        # An array, or an image.
        return f"{getattr(value, 'shape', getattr(value, 'size', ''))}".encode() + bytes(value.tobytes())
    try:
        return b"other" + pickle.dumps(value, protocol=4)
    except Exception:
        raise InvalidTypeError(
            f"items with a {type(value).__name__} cannot be identified by their content; give earlier_checks, the "
            "number of earlier checks of these items, instead of a registry"
        ) from None


def _hashed(content: bytes) -> int:
    return int.from_bytes(blake2b(content, digest_size=8).digest(), "little")


def _multipliers(columns: int) -> _Codes:
    """An odd number for each column."""
    return _mixed(np.arange(1, columns + 1, dtype=np.uint64)) | np.uint64(1)


def _mixed(codes: _Codes) -> _Codes:
    """Codes whose bits all depend on all bits of the given ones (splitmix64)."""
    mixed = codes + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(mixed ^ (mixed >> np.uint64(31)))
