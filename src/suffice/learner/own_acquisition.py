"""Items chosen by a function of the user: its arguments, its scores, and the picks that follow from them."""

import inspect
from collections.abc import Callable, Iterator
from functools import cached_property, partial
from typing import Any, Final

import numpy as np

from suffice.acquisition import Indices
from suffice.engines.disk_rows import DiskRows
from suffice.engines.worker_rows import WorkerRows
from suffice.errors import InvalidTypeError, InvalidValueError, SufficeError
from suffice.learner.pool_model import PoolRows
from suffice.numerics import Floats

#: ``acquisition(model, X_candidates, labelled)`` of a user, with an optional argument ``batch``.
AcquisitionFunction = Callable[..., Any]

# Scores whose relative difference is smaller than this are equal; of less precise numbers, a few units of rounding.
_EQUAL: Final = 1e-9
_UNITS: Final = 16.0
_NO_ITEMS: Final[Indices] = np.zeros(0, dtype=np.intp)


class LabelledRows:
    """The items that the model has learned, as the argument ``labelled`` of an acquisition function.

    Args:
        pool: The pool.
        indices: The items, in the order of their labels.
        y: Their labels.

    Attributes:
        indices: The items, as indices into the pool, in the order of their labels.
        y: Their labels, in the same order.

    Examples:
        >>> labelled = LabelledRows(PoolRows(["good", "bad", "fine"]), np.array([2, 0]), np.array(["yes", "no"]))
        >>> labelled.X, len(labelled)
        (['fine', 'good'], 2)
    """

    def __init__(self, pool: PoolRows, indices: Indices, y: Any) -> None:
        self._pool, self.indices, self.y = pool, indices, y

    def __len__(self) -> int:
        return len(self.indices)

    @cached_property
    def X(self) -> Any:  # noqa: N802 - as the argument X of models
        """Their rows, in the form of the pool."""
        return self._pool.rows(self.indices)


def shown_acquisition(acquisition: Any) -> str | None:
    """What a record calls an acquisition: its name, or ``"function ..."`` for a function.

    Examples:
        >>> shown_acquisition("margin"), shown_acquisition(len)
        ('margin', 'function len')
    """
    return f"function {function_name(acquisition)}" if callable(acquisition) else acquisition


def function_name(function: Any) -> str:
    """The name of a function, or the type of another object that can be called."""
    while isinstance(function, partial):
        function = function.func
    return str(getattr(function, "__name__", type(function).__name__))


def checked_function(acquisition: Any, X_pool: Any, device: Any = None) -> AcquisitionFunction | None:
    """Return the acquisition if it is a function that can be called for this pool; None if it is a name.

    Args:
        acquisition: The acquisition that was given: a name, a function, or None.
        X_pool: The pool.
        device: The device that was given, or None.

    Raises:
        InvalidTypeError: It is a class, or has other arguments.
        InvalidValueError: The rows of the pool are on a device or on workers.
    """
    if not callable(acquisition):
        return None
    function: AcquisitionFunction = acquisition
    name = function_name(acquisition)
    if isinstance(acquisition, type):
        raise InvalidTypeError(f"acquisition must be a name or a function, not the class {name}; give an instance")
    _takes_batch(acquisition)
    here = f"acquisition {name} is a function, which is called with rows in memory or on disk"
    if isinstance(X_pool, WorkerRows):
        raise InvalidValueError(
            f"{here}, not on the workers of a cluster; leave client out and give the pool in memory or on disk, or "
            "name an acquisition"
        )
    if device is not None:
        raise InvalidValueError(f"{here}, not on a device; leave device out, or name an acquisition")
    if getattr(X_pool, "is_cuda", False):
        raise InvalidValueError(f"{here}, and X_pool is on {X_pool.device}; give X_pool.cpu(), or name an acquisition")
    return function


def _takes_batch(function: AcquisitionFunction) -> bool:
    """Whether a function has an argument ``batch``; raises an error if it cannot be called as an acquisition."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        # Some functions in C do not tell their arguments.
        return False
    named = signature.parameters.get("batch")
    batch = named is not None and named.kind in (named.POSITIONAL_OR_KEYWORD, named.KEYWORD_ONLY)
    try:
        signature.bind(None, None, None, **({"batch": None} if batch else {}))
    except TypeError:
        raise InvalidTypeError(
            f"acquisition {function_name(function)} must take (model, X_candidates, labelled), and may take batch; "
            f"its arguments are {signature}"
        ) from None
    return batch


class OwnAcquisition:
    """Chooses the items to which a function of the user gives the largest scores.

    Args:
        function: The function, see :func:`checked_function`.
        X_pool: The pool in the form of the user.
        size: Number of its items.
        model: Returns the current model, with its pipeline.
        labels: Returns the labels of items that the model has learned.
    """

    def __init__(
        self,
        function: AcquisitionFunction,
        X_pool: Any,
        size: int,
        model: Callable[[], Any],
        labels: Callable[[Indices], Any],
    ) -> None:
        self._function, self._name = function, f"acquisition {function_name(function)}"
        self._takes_batch = _takes_batch(function)
        self._X, self._pool = X_pool, PoolRows(X_pool)
        self._model, self._labels = model, labels
        self._free = np.ones(size, dtype=bool)
        self._learned: list[int] = []
        # The last picks and what they are for, so that asking again gives the same items.
        self._asked: Any = None
        self._picked: Indices = _NO_ITEMS

    def take(self, indices: Indices) -> None:
        """Leave items out: they are labelled."""
        self._learned.extend(indices.tolist())
        self.skip(indices)

    def skip(self, indices: Indices) -> None:
        """Leave items out: they will have no label."""
        self._free[indices] = False
        self.forget()

    def forget(self) -> None:
        """Forget the last picks, because the model has changed."""
        self._asked = None

    def batch(self, size: int, drawn: Indices = _NO_ITEMS, held: Indices = _NO_ITEMS) -> Indices:
        """Picks to be labelled together: fewer than ``size`` where the pool ends, or the function excludes the others.

        Args:
            size: How many.
            drawn: Items of the same batch that were drawn at random.
            held: Other items that cannot be chosen now.

        Raises:
            SufficeError: The function raises an error, or excludes all candidates.
            InvalidTypeError: It does not return numbers.
            InvalidValueError: It does not return one number for each candidate, or one of them cannot be used.
        """
        asked = (size, drawn.tolist(), held.tolist())
        if self._asked != asked:
            self._picked = self._chosen(size, drawn, held)
            self._asked = asked
        return self._picked.copy()

    def _chosen(self, size: int, drawn: Indices, held: Indices) -> Indices:
        free = self._free.copy()
        free[drawn] = free[held] = False
        candidates = np.flatnonzero(free)
        if not size or not len(candidates):
            return _NO_ITEMS
        learned = np.array(self._learned, dtype=np.intp)
        labelled = LabelledRows(self._pool, learned, np.asarray(self._labels(learned)))
        model = self._model()
        if not self._takes_batch:
            return np.asarray(candidates[self._best(self._scores(model, candidates, labelled), size)])
        chosen: list[int] = []
        while len(chosen) < size and len(candidates):
            batch = self._pool.rows(np.append(drawn, np.array(chosen, dtype=np.intp)))
            scores = self._scores(model, candidates, labelled, batch=batch)
            if chosen and np.isneginf(scores).all():
                break
            (place,) = self._best(scores, 1)
            chosen.append(int(candidates[place]))
            candidates = np.delete(candidates, place)
        return np.array(chosen, dtype=np.intp)

    def _best(self, scores: Floats, size: int) -> Indices:
        if np.isneginf(scores).all():
            raise SufficeError(
                f"{self._name} excludes all {len(scores):,} candidates (score -inf); give one of them a finite score, "
                "or stop labelling"
            )
        return largest(scores, size)

    def _scores(self, model: Any, candidates: Indices, labelled: LabelledRows, **others: Any) -> Floats:
        """The scores of some items, for a pool on disk a block of rows at a time."""
        parts = [
            self._checked(self._called(model, self._pool.rows(items), labelled, **others), items)
            for items in self._blocks(candidates)
        ]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _blocks(self, candidates: Indices) -> Iterator[Indices]:
        size = self._X.batch_rows if isinstance(self._X, DiskRows) else len(candidates)
        for start in range(0, len(candidates), size):
            yield candidates[start : start + size]

    def _called(self, model: Any, rows: Any, labelled: LabelledRows, **others: Any) -> Any:
        try:
            return self._function(model, rows, labelled, **others)
        # A function of the user can fail in any way.
        except Exception as error:
            raise SufficeError(f"{self._name} raised {type(error).__name__}: {error}") from error

    def _checked(self, given: Any, items: Indices) -> Floats:
        """Scores as an array of numbers, one for each item."""
        given = given.detach().cpu().numpy() if hasattr(given, "detach") else given
        masked = isinstance(given, np.ma.MaskedArray) and np.ma.is_masked(given)
        try:
            array = np.asarray(given)
        except ValueError:
            array = np.asarray(None)
        wanted = f"{self._name} must return one number for each of the {len(items):,} candidates"
        if array.dtype.kind not in "fiub" or masked:
            came = "masked values" if masked else f"a {type(given).__name__} of {array.dtype}"
            raise InvalidTypeError(f"{wanted}, not {came}; return a numpy array of floats")
        if array.shape != items.shape:
            raise InvalidValueError(f"{wanted}, an array of shape {items.shape}; its shape is {array.shape}")
        scores = array if array.dtype.kind == "f" else array.astype(np.float64)
        bad = np.flatnonzero(~(scores < np.inf))
        if len(bad):
            raise InvalidValueError(
                f"{self._name} must return finite numbers, or -inf for items that are not to be chosen; the score of "
                f"item {items[bad[0]]} is {scores[bad[0]]}"
            )
        return np.asarray(scores)


def own_acquisition(
    function: AcquisitionFunction | None, X_pool: Any, prepared: Any, backend: Any, labels: Callable[[Indices], Any]
) -> OwnAcquisition | None:
    """The choice of items by a function of the user; None without a function.

    Args:
        function: The result of :func:`checked_function`.
        X_pool: The pool in the form of the user.
        prepared: The model and its pipeline, a :class:`~suffice.learner.prepare.PreparedModel`.
        backend: Its backend.
        labels: Returns the labels of items that the model has learned.
    """
    if function is None:
        return None
    size = X_pool.shape[0] if hasattr(X_pool, "shape") else len(X_pool)
    return OwnAcquisition(function, X_pool, size, lambda: prepared.joined(backend.current_model()), labels)


def largest(scores: Floats, size: int) -> Indices:
    """Places of the largest scores, the largest first; scores that are equal up to rounding in the order of the places.

    Args:
        scores: Numbers, or -inf for places that are left out.
        size: How many places; there are fewer if too many are left out.

    Examples:
        >>> largest(np.array([0.1 + 0.2, 0.5, 0.3, -np.inf]), 3)
        array([1, 0, 2])
        >>> largest(np.array([0.3, 0.1 + 0.2]), 1)
        array([0])
    """
    equal = max(_EQUAL, _UNITS * float(np.finfo(scores.dtype).eps))
    scores = scores.astype(np.float64)
    count = min(size, int(np.count_nonzero(scores > -np.inf)))
    least = float(np.partition(scores, len(scores) - count)[len(scores) - count]) if count else 0.0
    # No other place can be chosen: the best score that is left is never smaller than this one.
    places = np.flatnonzero(scores >= least - equal * abs(least))
    left, chosen = scores[places], np.zeros(count, dtype=np.intp)
    for k in range(count):
        best = float(left.max())
        first = int(np.argmax(left >= best - equal * abs(best)))
        chosen[k], left[first] = places[first], -np.inf
    return chosen
