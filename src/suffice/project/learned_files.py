"""Files next to the journal that store what a model has learned, to reopen a project quickly.

The files are a cache: they are used only if they belong to exactly the answers, settings, features and program at hand,
and can be deleted at any time. If they are damaged, the model learns from the journal again.
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
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, NamedTuple
from zipfile import ZIP_STORED, ZipFile

import numpy as np
from numpy.typing import NDArray

import suffice
from suffice.files import file_mode, make_folder
from suffice.project.item_predictor import ItemPredictor
from suffice.project.learning_status import LearningStatus, Predictions
from suffice.project.settings import Settings
from suffice.project.state import Answer
from suffice.project.storage import sync_folder
from suffice.saved_objects import NotSavableError, SavedObjects, restored_objects, saved_objects

#: The subfolder of a project.
FOLDER: Final = "learned"
# Version of the file format.
_FORM: Final = 1
_STATUS, _PREDICTIONS, _LEARNER, _EARLIER = "status.npz", "predictions.npz", "learner.npz", "earlier-learner.npz"
_PREDICTOR: Final = "predictor.npz"
_TRANSFORMER: Final = "transformer.npz"
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

    def status(
        self, settings: Settings, answers: Sequence[Answer], checked: Sequence[Answer] = ()
    ) -> LearningStatus | None:
        """The results after exactly these answers, or None.

        Args:
            settings: Settings of the project, with the model that learns.
            answers: Labels and skips, in order.
            checked: Answers of a complete check that the model has not learned.
        """
        value = self._read(_STATUS, settings, answers, checked)
        return value if isinstance(value, LearningStatus) and value.n_answers == len(answers) else None

    def keep_status(
        self,
        settings: Settings,
        answers: Sequence[Answer],
        learning_status: LearningStatus,
        checked: Sequence[Answer] = (),
    ) -> bool:
        """Save the results after some answers; return whether they were saved.

        Args:
            settings: As for :meth:`status`.
            answers: As for :meth:`status`.
            learning_status: The results. They are not saved if the model could not learn.
            checked: As for :meth:`status`.
        """
        if learning_status.problem or learning_status.n_answers != len(answers):
            return False
        return self._keep(_STATUS, settings, answers, learning_status, checked)

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

    def predictor(self, settings: Settings, answers: Sequence[Answer]) -> ItemPredictor | None:
        """The model after exactly these answers, for predictions, or None; arguments as for :meth:`status`."""
        value = self._read(_PREDICTOR, settings, answers)
        return value if isinstance(value, ItemPredictor) else None

    def keep_predictor(self, settings: Settings, answers: Sequence[Answer], predictor: ItemPredictor) -> bool:
        """Save the model after some answers; return whether it was saved. Models of other libraries are not."""
        return self._keep(_PREDICTOR, settings, answers, predictor)

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

    def transformer(self, made: str) -> Any:
        """The state of the transformer of rows into features, or None.

        Args:
            made: A checksum of all that it was fitted to.
        """
        about = self._about({"made": made, "program": _software()})
        _, saved = self._open(_TRANSFORMER, lambda found: found == about)
        try:
            return None if saved is None else restored_objects(saved)
        except ValueError:
            return None

    def keep_transformer(self, made: str, state: Any) -> bool:
        """Save the state of the transformer, plain values and arrays; return whether it was saved.

        Args:
            made: As for :meth:`transformer`.
            state: The state.
        """
        if not self.kept:
            return False
        try:
            saved = saved_objects(state, most_bytes=MOST_BYTES)
        except NotSavableError:
            return False
        return self._write(_TRANSFORMER, self._about({"made": made, "program": _software()}), saved)

    def _keep(
        self, name: str, settings: Settings, answers: Sequence[Answer], value: Any, checked: Sequence[Answer] = ()
    ) -> bool:
        if not self.kept:
            return False
        try:
            saved = saved_objects(value, most_bytes=MOST_BYTES)
        except NotSavableError:
            return False
        return self._write(name, self._described(settings, answers, checked), saved)

    def _described(
        self, settings: Settings, answers: Sequence[Answer], checked: Sequence[Answer] = ()
    ) -> dict[str, Any]:
        """Everything that the contents of a file depend on, as checksums."""
        if self._checksum is None:
            self._checksum = self._features()
        basis = {"settings": settings.learned_part(), "features": self._checksum, "program": _program()}
        return self._about(basis, answers, checked)

    @staticmethod
    def _about(
        basis: Mapping[str, Any], answers: Sequence[Answer] = (), checked: Sequence[Answer] = ()
    ) -> dict[str, Any]:
        """The header of a file."""
        return {
            "form": _FORM,
            "n_answers": len(answers),
            "basis": _checksum(json.dumps(basis, sort_keys=True)),
            "answers": _checksum(json.dumps(list(answers))),
            "checked": _checksum(json.dumps(list(checked))),
        }

    def _is_prefix(self, about: Mapping[str, Any], settings: Settings, answers: Sequence[Answer]) -> bool:
        """Whether a file belongs to the first of some answers."""
        n_answers = about["n_answers"]
        return 0 <= n_answers <= len(answers) and about == self._described(settings, answers[:n_answers])

    def _read(self, name: str, settings: Settings, answers: Sequence[Answer], checked: Sequence[Answer] = ()) -> Any:
        """The contents of a file if they depend on exactly these values; otherwise None."""
        _, saved = self._open(name, lambda about: about == self._described(settings, answers, checked))
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
def _software() -> dict[str, Any]:
    """Versions of the program and the libraries."""
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
    }


def _program() -> dict[str, Any]:
    """Versions of the software, and the processor: the last bits of what a model has learned depend on them.

    The transformer of rows does not: on each processor it is the one that made the stored features.
    """
    processor = np.show_config(mode="dicts").get("SIMD Extensions", {})
    return {**_software(), "machine": platform.machine(), "processor": processor}


def _packed(settings: Settings, predictions: Predictions) -> dict[str, Any]:
    """Predictions as arrays. For classes only the probabilities, because the others follow from them."""
    if settings.classes:
        return {"probabilities": predictions.probabilities, "class_ratios": predictions.class_ratios}
    return {"labels": predictions.labels, "uncertainty": predictions.uncertainty}


def _unpacked(settings: Settings, packed: Mapping[str, Any]) -> Predictions:
    if settings.classes:
        p = packed["probabilities"]
        if p.ndim != 2 or p.shape[1] != len(settings.classes):
            raise ValueError("probabilities of other classes")
        return Predictions.of_classes(settings.classes, p)._replace(class_ratios=packed["class_ratios"])
    return Predictions(packed["labels"], packed["uncertainty"], None)
