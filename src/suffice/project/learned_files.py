"""Files next to the journal that store what a model has learned, to reopen a project quickly.

The files are a cache: they are used only if they belong to exactly the answers, settings, features and program at hand,
and can be deleted at any time. If they are damaged, the model learns from the journal again. Objects are stored as JSON
and one array of bytes, and restored to the last bit: without pickle, and for known classes only.
"""

import hashlib
import json
import os
import platform
import shutil
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache, cached_property
from importlib import import_module
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import Any, Final, NamedTuple
from zipfile import ZIP_STORED, ZipFile

import numpy as np
from numpy.typing import NDArray

import suffice
from suffice.errors import SufficeError
from suffice.files import file_mode, make_folder
from suffice.project.learning_status import LearningStatus, Predictions
from suffice.project.settings import Settings
from suffice.project.state import Answer
from suffice.project.storage import sync_folder

#: Modules whose classes are saved and restored. An object of any other class is refused.
MODULES: Final = frozenset(
    {
        "suffice.acquisition.scores",
        "suffice.checks.guarantee",
        "suffice.checks.planner",
        "suffice.criteria.base",
        "suffice.criteria.label_worth",
        "suffice.criteria.step_and_verdict",
        "suffice.criteria.trend",
        "suffice.decision",
        "suffice.engines.tracked_rows",
        "suffice.forecast",
        "suffice.learner.backend",
        "suffice.learner.error_estimate",
        "suffice.learner.guarantee_rules",
        "suffice.learner.step_inputs",
        "suffice.models.gaussian_state",
        "suffice.models.kernels",
        "suffice.models.laplace",
        "suffice.models.regression",
        "suffice.project.learning_status",
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


#: The subfolder of a project.
FOLDER: Final = "learned"
# Version of the file format.
_FORM: Final = 1
_STATUS, _PREDICTIONS, _LEARNER, _EARLIER = "status.npz", "predictions.npz", "learner.npz", "earlier-learner.npz"
#: Largest size of the arrays of a file, in bytes; larger states are not saved.
MOST_BYTES: Final = 2**28
# Bytes that must stay free on the disk for labels.
_SPARE: Final = 2**26
# Seconds after which an incomplete file is removed.
_ABANDONED: Final = 3600.0
# Parts of the package that do not affect learning.
_OTHER_PARTS: Final = frozenset({"cli", "integrations", "report", "testing.py", "web"})


class Checkpoint(NamedTuple):
    """State of a learner after some answers.

    Attributes:
        n_answers: Labels and skips that it had learned.
        saved: Result of :meth:`suffice.project.project_learner.ProjectLearner.progress`.
    """

    n_answers: int
    saved: SavedObjects


class LearnedFiles:
    """The files with what a model has learned: its results, its predictions, and the learner itself.

    Files are written completely or not at all. Nothing is saved if the folder is not writable or the disk is nearly
    full. No method raises an error because of a file. Several processes may use the same folder; the newest file is
    kept.

    Args:
        folder: Folder of the files; None if nothing is saved.
        features: Returns a checksum of the features of all items.

    Examples:
        >>> from tempfile import TemporaryDirectory
        >>> folder = TemporaryDirectory()
        >>> files = LearnedFiles(Path(folder.name), lambda: "checksum")
        >>> settings = Settings("p", "regression", (), "y", "table", ("a",), None, "gp", {})
        >>> files.keep_status(settings, [Answer(3, 0.5)], LearningStatus(n_answers=1, n_labelled=1))
        True
        >>> files.status(settings, [Answer(3, 0.5)])
        LearningStatus(n_answers=1, n_labelled=1, verdict=None, ...)
        >>> print(files.status(settings, [Answer(3, 0.6)]))
        None
        >>> folder.cleanup()
    """

    def __init__(self, folder: Path | None, features: Callable[[], str]) -> None:
        self._folder, self._features = folder, features
        self._checksum: str | None = None

    def features_changed(self) -> None:
        """Signal that the features of the items have changed."""
        self._checksum = None

    @property
    def kept(self) -> bool:
        """Whether there is a folder for files."""
        return self._folder is not None

    def status(self, settings: Settings, answers: Sequence[Answer]) -> LearningStatus | None:
        """The results after exactly these answers, or None.

        Args:
            settings: Settings of the project, with the model that learns.
            answers: Labels and skips, in order.
        """
        value = self._read(_STATUS, settings, answers)
        return value if isinstance(value, LearningStatus) and value.n_answers == len(answers) else None

    def keep_status(self, settings: Settings, answers: Sequence[Answer], learning_status: LearningStatus) -> bool:
        """Save the results after some answers; return whether they were saved.

        Args:
            settings: As for :meth:`status`.
            answers: As for :meth:`status`.
            learning_status: The results. They are not saved if the model could not learn.
        """
        if learning_status.problem or learning_status.n_answers != len(answers):
            return False
        return self._keep(_STATUS, settings, answers, learning_status)

    def predictions(self, settings: Settings, answers: Sequence[Answer]) -> Predictions | None:
        """The predictions for all items after exactly these answers, or None; arguments as for :meth:`status`."""
        found = self._read(_PREDICTIONS, settings, answers)
        try:
            return None if found is None else _unpacked(settings, found)
        except (AttributeError, LookupError, TypeError, ValueError):
            return None

    def keep_predictions(self, settings: Settings, answers: Sequence[Answer], predictions: Predictions) -> bool:
        """Save the predictions for all items after some answers; return whether they were saved."""
        return self._keep(_PREDICTIONS, settings, answers, _packed(settings, predictions))

    def checkpoints(self, settings: Settings, answers: Sequence[Answer]) -> list[Checkpoint]:
        """Saved learners after these answers or the first of them; the learner with most answers is the last.

        Arguments as for :meth:`status`.
        """
        found = []
        for name in (_EARLIER, _LEARNER):
            about, saved = self._open(name, lambda about: self._is_prefix(about, settings, answers))
            if saved is not None:
                found.append(Checkpoint(int(about["n_answers"]), saved))
        return sorted(found, key=lambda each: each.n_answers)

    def keep_learner(
        self, settings: Settings, answers: Sequence[Answer], newest: Checkpoint, earlier: Checkpoint | None = None
    ) -> bool:
        """Save a learner, and an earlier state in case a label is changed; return whether the newest was saved.

        Args:
            settings: As for :meth:`status`.
            answers: Labels and skips, in order; at least those that the learner has learned.
            newest: The learner.
            earlier: The same learner after fewer answers.
        """
        if not self.kept:
            return False
        if earlier is not None:
            self._write(_EARLIER, self._described(settings, answers[: earlier.n_answers]), earlier.saved)
        return self._write(_LEARNER, self._described(settings, answers[: newest.n_answers]), newest.saved)

    def _keep(self, name: str, settings: Settings, answers: Sequence[Answer], value: Any) -> bool:
        if not self.kept:
            return False
        try:
            saved = saved_objects(value, most_bytes=MOST_BYTES)
        except NotSavableError:
            return False
        return self._write(name, self._described(settings, answers), saved)

    def _described(self, settings: Settings, answers: Sequence[Answer]) -> dict[str, Any]:
        """Everything that the contents of a file depend on, as checksums."""
        if self._checksum is None:
            self._checksum = self._features()
        basis = {"settings": settings.learned_part(), "features": self._checksum, "program": _program()}
        return {
            "form": _FORM,
            "n_answers": len(answers),
            "basis": _checksum(json.dumps(basis, sort_keys=True)),
            "answers": _checksum(json.dumps(list(answers))),
        }

    def _is_prefix(self, about: Mapping[str, Any], settings: Settings, answers: Sequence[Answer]) -> bool:
        """Whether a file belongs to the first of some answers."""
        n_answers = about["n_answers"]
        return 0 <= n_answers <= len(answers) and about == self._described(settings, answers[:n_answers])

    def _read(self, name: str, settings: Settings, answers: Sequence[Answer]) -> Any:
        """The contents of a file if they depend on exactly these values; otherwise None."""
        _, saved = self._open(name, lambda about: about == self._described(settings, answers))
        try:
            return None if saved is None else restored_objects(saved)
        except ValueError:
            return None

    def _open(self, name: str, wanted: Callable[[dict[str, Any]], bool]) -> tuple[dict[str, Any], SavedObjects | None]:
        """Header and contents of a file; None for contents that are damaged or do not belong to the project."""
        if self._folder is None:
            return {}, None
        try:
            with ZipFile(self._folder / name) as file:
                # Compressed contents could have any size after decompression.
                if any(each.compress_type != ZIP_STORED for each in file.infolist()):
                    return {}, None
                about = json.loads(_bytes_of(file, "about").tobytes())
                if about["form"] != _FORM or not wanted(about):
                    return {}, None
                text, numbers = _bytes_of(file, "text"), _bytes_of(file, "numbers")
                return about, SavedObjects(text.tobytes().decode(), numbers)
        # A file can be damaged in any way; then the answers are learned again.
        except Exception:
            return {}, None

    def _write(self, name: str, about: Mapping[str, Any], saved: SavedObjects) -> bool:
        """Write a file completely, or not at all."""
        if self._folder is None:
            return False
        part = self._folder / f".{name}.{os.getpid()}-{threading.get_ident()}"
        try:
            if not self._folder.parent.is_dir():
                return False
            make_folder(self._folder)
            if shutil.disk_usage(self._folder).free < saved.numbers.nbytes + len(saved.text) + _SPARE:
                return False
            contents = {"about": _as_bytes(json.dumps(about)), "text": _as_bytes(saved.text), "numbers": saved.numbers}
            with open(part, "wb", opener=self._opened) as file:
                np.savez(file, **contents)  # type: ignore[arg-type]
                file.flush()
                os.fsync(file.fileno())
            part.replace(self._folder / name)
            sync_folder(self._folder)
            self._remove_abandoned()
        except OSError:
            return False
        finally:
            with suppress(OSError):
                part.unlink(missing_ok=True)
        return True

    def _opened(self, path: str, flags: int) -> int:
        """Open a new file that only its owner can read, or the group of a shared project."""
        assert self._folder is not None
        return os.open(path, flags, file_mode(self._folder))

    def _remove_abandoned(self) -> None:
        """Remove incomplete files of killed processes."""
        assert self._folder is not None
        for each in self._folder.glob(".*.npz.*"):
            if time.time() - each.stat().st_mtime > _ABANDONED:
                each.unlink(missing_ok=True)


def _bytes_of(file: ZipFile, name: str) -> NDArray[np.uint8]:
    with file.open(f"{name}.npy") as member:
        found: NDArray[np.uint8] = np.lib.format.read_array(member, allow_pickle=False)
        # The checksum of a member is verified when its end is read.
        if found.dtype != np.uint8 or found.ndim != 1 or member.read():
            raise ValueError(f"{name} does not hold bytes")
    return found


def _as_bytes(text: str) -> NDArray[np.uint8]:
    return np.frombuffer(text.encode(), dtype=np.uint8)


def _checksum(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@cache
def _program() -> dict[str, Any]:
    """Versions of the program and the libraries, and the processor: the last bits of a result depend on them."""
    package = Path(suffice.__file__).parent
    files = sorted(path.relative_to(package) for path in package.rglob("*.py"))
    source = hashlib.sha256()
    for each in files:
        if each.parts[0] not in _OTHER_PARTS:
            source.update(str(each.as_posix()).encode() + b"\0" + (package / each).read_bytes())
    return {
        "suffice": suffice.__version__,
        "source": source.hexdigest(),
        "libraries": [np.__version__, version("scipy"), version("scikit-learn")],
        "machine": platform.machine(),
        "processor": np.show_config(mode="dicts").get("SIMD Extensions", {}),
    }


def _packed(settings: Settings, predictions: Predictions) -> dict[str, Any]:
    """Predictions as arrays. For classes only the probabilities, because the others follow from them."""
    if settings.classes:
        return {"probabilities": predictions.probabilities}
    return {"labels": predictions.labels, "uncertainty": predictions.uncertainty}


def _unpacked(settings: Settings, packed: Mapping[str, Any]) -> Predictions:
    if settings.classes:
        p = packed["probabilities"]
        if p.ndim != 2 or p.shape[1] != len(settings.classes):
            raise ValueError("probabilities of other classes")
        return Predictions.of_classes(settings.classes, p)
    return Predictions(packed["labels"], packed["uncertainty"], None)
