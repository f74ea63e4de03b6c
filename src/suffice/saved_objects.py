"""Objects as JSON and one array of bytes, restored to the last bit: without pickle, and for known classes only."""

import json
from functools import cached_property
from importlib import import_module
from itertools import chain
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from suffice.errors import SufficeError

#: Modules whose classes are saved and restored. An object of any other class is refused.
MODULES: Final = frozenset(
    {
        "suffice.acquisition.scores",
        "suffice.checks.data_set",
        "suffice.checks.finish_plan",
        "suffice.checks.guarantee",
        "suffice.checks.planner",
        "suffice.criteria.base",
        "suffice.criteria.label_worth",
        "suffice.criteria.step_and_verdict",
        "suffice.criteria.trend",
        "suffice.engines.tracked_rows",
        "suffice.forecast",
        "suffice.learner.backend",
        "suffice.learner.class_evidence",
        "suffice.learner.gaussian_evidence",
        "suffice.learner.step_inputs",
        "suffice.models.gaussian_state",
        "suffice.models.kernels",
        "suffice.models.labelled_loss",
        "suffice.models.laplace",
        "suffice.models.logistic",
        "suffice.models.newton_search",
        "suffice.models.regression",
        "suffice.project.learning_status",
        "suffice.project.predictor",
        "suffice.session.advice",
        "suffice.session.decision",
        "suffice.session.error_estimate",
        "suffice.session.guarantee_rules",
        "suffice.session.held_out",
        "suffice.session.recorded_steps",
        "suffice.session.standing_stop",
        "suffice.trace",
    }
)
# Arrays start at multiples of this number of bytes.
_ALIGNED: Final = 64
# A view of a larger array is saved with the larger array, if that has at most this multiple of its size plus bytes.
_LARGER, _MORE = 4, 2**16


# Errors that damaged contents may raise.
_DAMAGED: Final = (
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    RecursionError,
    StopIteration,
    SufficeError,
    TypeError,
)


class NotSavableError(SufficeError):
    """An object that cannot be saved: its class is not known, or it is too large."""


class SavedObjects:
    """Objects in a form that can be written to a file.

    Attributes:
        text: JSON: the structure, with texts and single numbers.
        numbers: The contents of all arrays, one after the other, as bytes.
    """

    def __init__(self, text: str, numbers: NDArray[np.uint8]) -> None:
        self.text, self.numbers = text, numbers


def saved_objects(value: Any, *, most_bytes: int) -> SavedObjects:
    """Save plain values, arrays, and objects of the classes of :data:`MODULES`.

    Objects that are referred to several times stay one object. Arrays keep their memory layout, so that the same
    operations give the same bits. A single NaN loses its sign. Values of ``cached_property`` are left out, because
    they are computed again.

    Args:
        value: The objects.
        most_bytes: Largest size of all arrays together.

    Raises:
        NotSavableError: An object is of another class, or the arrays are too large.

    Examples:
        >>> saved = saved_objects({"weights": np.array([0.1, np.nan]), "n": (1, 2.5)}, most_bytes=1000)
        >>> restored_objects(saved)
        {'weights': array([0.1, nan]), 'n': (1, 2.5)}
    """
    writer = _Writer(most_bytes)
    text = json.dumps(writer.node(value), separators=(",", ":"))
    return SavedObjects(text, np.frombuffer(bytes(writer.numbers), dtype=np.uint8))


def restored_objects(saved: SavedObjects) -> Any:
    """Restore the objects that were passed to :func:`saved_objects`.

    No constructor and no other code of the objects runs.

    Raises:
        ValueError: The form is damaged.
    """
    try:
        return _Reader(saved.numbers).value(json.loads(saved.text))
    except _DAMAGED as error:
        raise ValueError(f"saved objects are damaged: {type(error).__name__}: {error}") from None


# Every node that is not a plain value is a list whose first entry is one of these.
_LIST, _TUPLE, _DICT, _SET, _FROZENSET, _SLICE = "list", "tuple", "dict", "set", "frozenset", "slice"
_ARRAY, _VIEW, _SCALAR, _OBJECT, _NAMED, _AGAIN = "array", "view", "scalar", "object", "named", "again"
_DTYPE: Final = "dtype"
_PLAIN: Final = frozenset({bool, int, float, str})
# Kinds of numbers and texts that an array can hold.
_KINDS: Final = frozenset("biufUS")


class _Writer:
    def __init__(self, most_bytes: int) -> None:
        self.numbers = bytearray()
        self._most = most_bytes
        # Number of each object that may be referenced again. Objects are kept alive, so that no other has the same id.
        self._known: dict[int, int] = {}
        self._kept: list[Any] = []

    def node(self, value: Any) -> Any:
        kind = type(value)
        if value is None or kind in _PLAIN:
            return value
        if id(value) in self._known:
            return [_AGAIN, self._known[id(value)]]
        if isinstance(value, np.ndarray):
            return self._array(value)
        if isinstance(value, np.generic | np.dtype | tuple | frozenset | slice):
            return self._unchanging(value, kind)
        self._remember(value)
        if kind in (list, set, dict):
            parts = value if kind is list else sorted(value, key=repr) if kind is set else chain(*value.items())
            return [kind.__name__, *map(self.node, parts)]
        return [_OBJECT, _class_name(kind), {name: self.node(each) for name, each in _attributes(value).items()}]

    def _unchanging(self, value: Any, kind: type) -> Any:
        """Whether an object cannot change, so that copies are equivalent."""
        if kind is tuple:
            return [_TUPLE, *map(self.node, value)]
        if isinstance(value, tuple):
            return [_NAMED, _class_name(kind), *map(self.node, value)]
        if isinstance(value, np.bytes_):
            raise NotSavableError("single bytes are not saved")
        if isinstance(value, np.generic):
            return [_SCALAR, _checked_type(value.dtype).str, value.item()]
        if isinstance(value, np.dtype):
            return [_DTYPE, _checked_type(value).str]
        if kind is slice:
            return [_SLICE, value.start, value.stop, value.step]
        return [_FROZENSET, *map(self.node, sorted(value, key=repr))]

    def _remember(self, value: Any) -> None:
        self._known[id(value)] = len(self._kept)
        self._kept.append(value)

    def _array(self, array: NDArray[Any]) -> Any:
        owner = array.base
        if owner is None or not _is_owner(owner, array):
            self._remember(array)
            return self._whole(array)
        inside = self.node(owner)
        self._remember(array)
        start = array.__array_interface__["data"][0] - owner.__array_interface__["data"][0]
        return [_VIEW, inside, list(array.shape), list(array.strides), start]

    def _whole(self, array: NDArray[Any]) -> Any:
        _checked_type(array.dtype)
        order = "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"
        self.numbers.extend(bytes(-len(self.numbers) % _ALIGNED))
        start = len(self.numbers)
        if start + array.nbytes > self._most:
            raise NotSavableError(f"the arrays take more than {self._most:,} bytes")
        self.numbers += array.tobytes(order=order)  # type: ignore[arg-type]
        return [_ARRAY, array.dtype.str, order, list(array.shape), start]


class _Reader:
    def __init__(self, numbers: NDArray[np.uint8]) -> None:
        self._numbers = numbers
        self._known: list[Any] = []

    def value(self, node: Any) -> Any:
        if not isinstance(node, list):
            return node
        tag, parts = node[0], node[1:]
        read = getattr(self, f"_{tag}") if tag in _TAGS else None
        if read is None:
            raise ValueError(f"saved objects are damaged: {tag!r} is no kind of value")
        return read(parts)

    def _list(self, parts: list[Any]) -> list[Any]:
        made: list[Any] = []
        self._known.append(made)
        made.extend(map(self.value, parts))
        return made

    def _dict(self, parts: list[Any]) -> dict[Any, Any]:
        made: dict[Any, Any] = {}
        self._known.append(made)
        given = iter(parts)
        for key in given:
            name = self.value(key)
            made[name] = self.value(next(given))
        return made

    def _set(self, parts: list[Any]) -> set[Any]:
        made: set[Any] = set()
        self._known.append(made)
        made.update(map(self.value, parts))
        return made

    def _tuple(self, parts: list[Any]) -> tuple[Any, ...]:
        return tuple(map(self.value, parts))

    def _frozenset(self, parts: list[Any]) -> frozenset[Any]:
        return frozenset(map(self.value, parts))

    def _slice(self, parts: list[Any]) -> slice:
        return slice(*parts)

    def _dtype(self, parts: list[Any]) -> "np.dtype[Any]":
        return _checked_type(np.dtype(parts[0]))

    def _scalar(self, parts: list[Any]) -> Any:
        return _checked_type(np.dtype(parts[0])).type(parts[1])

    def _named(self, parts: list[Any]) -> Any:
        kind = _class_of(parts[0])
        if not (issubclass(kind, tuple) and len(kind._fields) == len(parts) - 1):  # type: ignore[attr-defined]
            raise ValueError(f"saved objects are damaged: {kind.__name__} has other fields")
        return tuple.__new__(kind, map(self.value, parts[1:]))

    def _object(self, parts: list[Any]) -> Any:
        kind = _class_of(parts[0])
        if issubclass(kind, tuple | type | BaseException):
            raise ValueError(f"saved objects are damaged: {kind.__name__} is no class of objects")
        made = object.__new__(kind)
        self._known.append(made)
        for name, each in parts[1].items():
            made.__dict__[name] = self.value(each)
        return made

    def _again(self, parts: list[Any]) -> Any:
        return self._known[parts[0]]

    def _array(self, parts: list[Any]) -> NDArray[Any]:
        name, order, shape, start = parts
        kind = _checked_type(np.dtype(name))
        size = int(np.prod(shape, dtype=object)) if shape else 1
        if start < 0 or size < 0 or start + size * kind.itemsize > len(self._numbers):
            raise ValueError("saved objects are damaged: an array ends after the numbers")
        flat = np.frombuffer(self._numbers, kind, size, start) if size * kind.itemsize else np.empty(size, kind)
        # A copy is writable, and independent of the bytes.
        made = np.array(flat.reshape(shape, order=order), order=order)
        self._known.append(made)
        return made

    def _view(self, parts: list[Any]) -> NDArray[Any]:
        owner, shape, strides, start = self.value(parts[0]), *parts[1:]
        buffer = owner if owner.flags.c_contiguous else owner.T
        # The constructor raises an error if the array exceeds the buffer.
        made: NDArray[Any] = np.ndarray(shape, owner.dtype, buffer=buffer, offset=start, strides=strides)
        self._known.append(made)
        return made


_TAGS: Final = frozenset(
    {_LIST, _TUPLE, _DICT, _SET, _FROZENSET, _SLICE, _ARRAY, _VIEW, _SCALAR, _OBJECT, _NAMED, _AGAIN, _DTYPE}
)


def _is_owner(owner: Any, array: NDArray[Any]) -> bool:
    """Whether an array is saved as a view of a larger array."""
    if not isinstance(owner, np.ndarray) or owner.dtype != array.dtype:
        return False
    return owner.nbytes <= _LARGER * array.nbytes + _MORE and (owner.flags.c_contiguous or owner.flags.f_contiguous)


def _attributes(value: Any) -> dict[str, Any]:
    """The attributes of an object that are not computed from others."""
    kind = type(value)
    if not hasattr(value, "__dict__"):
        raise NotSavableError(f"an object of the class {kind.__name__} has no attributes to save")
    return {
        name: each
        for name, each in value.__dict__.items()
        if not isinstance(getattr(kind, name, None), cached_property)
    }


def _checked_type(kind: "np.dtype[Any]") -> "np.dtype[Any]":
    if kind.kind not in _KINDS or kind.hasobject:
        raise NotSavableError(f"arrays of {kind} are not saved")
    return kind


def _class_name(kind: type) -> str:
    if kind.__module__ not in MODULES or getattr(import_module(kind.__module__), kind.__qualname__, None) is not kind:
        raise NotSavableError(f"the class {kind.__module__}.{kind.__qualname__} is not one that is saved")
    return f"{kind.__module__}.{kind.__qualname__}"


def _class_of(name: str) -> type:
    module, _, own = name.rpartition(".")
    if module not in MODULES:
        raise ValueError(f"saved objects are damaged: {name!r} is no class that is saved")
    kind = getattr(import_module(module), own)
    if not isinstance(kind, type) or kind.__module__ != module:
        raise ValueError(f"saved objects are damaged: {name!r} is no class that is saved")
    return kind
