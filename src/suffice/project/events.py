"""Events of a labelling project, which never change once written: contents, validation, and changes of classes."""

import math
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final

from suffice.errors import InvalidValueError
from suffice.project.settings import Settings

#: A label as it is kept: the name of a class, or a number.
Label = str | float


class EventKind(StrEnum):
    """The kinds of events."""

    made = "project made"
    asked = "item asked"
    labelled = "labelled"
    skipped = "skipped"
    corrected = "corrected"
    undone = "undone"
    confirmed = "label confirmed"
    prediction_shown = "prediction shown"
    predictions_imported = "predictions imported"
    items_added = "items added"
    advised = "stop advised"
    withdrawn = "stop withdrawn"
    resumed = "resumed"
    model_changed = "model changed"
    check_started = "check started"
    check_aborted = "check aborted"
    classes_changed = "classes changed"
    settings_changed = "settings changed"
    account_made = "account made"
    account_role_changed = "account role changed"
    account_secret_changed = "account secret changed"
    account_removed = "account removed"
    lost = "event lost"


#: Events that a person can undo.
ACTS = frozenset({EventKind.labelled, EventKind.skipped, EventKind.corrected})


@dataclass(frozen=True)
class Draft:
    """An event that is to be written.

    Attributes:
        kind: What happens.
        person: Who does it; empty for the program itself.
        item: Position of the item that it is about, or None.
        data: What else is to be known, as JSON values: ``label`` of labels and corrections, ``until`` and ``why``
            of an item asked, ``of`` (the number of another event) of one undone, ``n_labelled`` and ``reason`` of
            advice, ``model`` (its name) of a change of the model, ``reason`` and ``unsure`` of a skip, where there
            are. For a check that starts see :meth:`suffice.project.project_check.CheckDraw.event_data`; one that is
            aborted has its ``number``. For a change of the classes see
            :meth:`suffice.project.events.ClassChange.event_data`; a change of other settings has ``settings``,
            those that are new, and ``before``, the same ones as they were. An item that is asked for as a new one, and
            not for a second opinion or once more, has also ``random`` (whether it was drawn at random) and ``started``
            (whether the model had its first labels then).
            A label or correction has ``saw_prediction`` if the person saw a prediction for the item, and ``imported``
            if it came from a file. A label that was confirmed has the ``label``. For predictions that were imported see
            :func:`suffice.project.state.prediction_data`. Items that were added have ``first`` (the
            position of the first one), ``count`` and ``source``. Events of accounts have the ``name`` of the account;
            those that make it or change it have also its ``role``, or what is kept of its ``password`` or ``link``.
        request: A name that the sender chose for it: what is sent again under the same name is not done again.
    """

    kind: EventKind
    person: str = ""
    item: int | None = None
    data: Mapping[str, Any] = field(default_factory=dict)
    request: str | None = None


@dataclass(frozen=True)
class Event(Draft):
    """An event that is written.

    Attributes:
        seq: Its number in the journal, from 1, without gaps.
        at: When it was written, in seconds since 1970.
        digest: A checksum of the event and of all before it; see :func:`suffice.project.storage.chained`.
    """

    seq: int = 0
    at: float = 0.0
    digest: str = ""

    @property
    def when(self) -> str:
        """The moment, to the second, in UTC.

        Examples:
            >>> Event(EventKind.resumed, seq=1, at=0.0).when
            '1970-01-01T00:00:00Z'
        """
        return moment(self.at)


def moment(at: float) -> str:
    """Seconds since 1970 as a moment in UTC, to the second."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


#: Most characters of the reason for a skip.
LONGEST_REASON: Final = 500
_LONGEST_NAME = 64
_LONGEST_REQUEST = 100
_LARGEST = 1e100


def checked_label(settings: Settings, value: Any) -> Label:
    """Return a label as it is kept, or say what is wrong with it.

    Args:
        settings: Settings of the project.
        value: A class by its name, or a number or its text.

    Raises:
        InvalidValueError: It is none of the classes, or no finite number.

    Examples:
        >>> about = Settings("p", "regression", (), "y", "table", ("a",), None, "gp", {})
        >>> checked_label(about, " 2.50 ")
        2.5
    """
    if settings.task == "classification":
        name = value.strip() if isinstance(value, str) else value
        if not isinstance(name, str) or name not in settings.classes:
            some = ", ".join(settings.classes[:20]) + (", ..." if len(settings.classes) > 20 else "")
            raise InvalidValueError(f"{shown(value)} is none of the classes; they are {some}")
        return name
    number = _number(value)
    if number is None:
        raise InvalidValueError(f"{shown(value)} is not a number; a label is a finite number such as 3.5")
    # Beyond this, squares of labels are no numbers any more.
    if abs(number) > _LARGEST:
        raise InvalidValueError(f"{shown(value)} is too large for a label; take another unit")
    return number


def checked_person(name: Any) -> str:
    """Return the name of a person, or say what is wrong with it.

    Raises:
        InvalidValueError: It is empty, longer than 64 characters, or holds what is no letter.
    """
    text = name.strip() if isinstance(name, str) else ""
    if not 1 <= len(text) <= _LONGEST_NAME or not printable(text):
        raise InvalidValueError(
            f"the name of a person must be 1 to {_LONGEST_NAME} characters without control characters, not "
            f"{shown(name)}"
        )
    return text


def checked_reason(reason: Any) -> str:
    r"""Return why somebody did something as one line, or say what is wrong with it.

    Raises:
        InvalidValueError: It is no text, longer than 500 characters, or holds what is no letter.

    Examples:
        >>> checked_reason(" two animals\nin one picture ")
        'two animals in one picture'
    """
    text = " ".join(reason.split()) if isinstance(reason, str) else None
    if text is None or len(text) > LONGEST_REASON or not printable(text):
        raise InvalidValueError(
            f"reason must be at most {LONGEST_REASON} characters without control characters, not {shown(reason)}"
        )
    return text


def checked_request(request: Any) -> str | None:
    """Return the name of a request, None for none, or say what is wrong with it.

    Raises:
        InvalidValueError: It is empty, longer than 100 characters, or holds what is no letter.
    """
    if request is None:
        return None
    if not isinstance(request, str) or not 1 <= len(request) <= _LONGEST_REQUEST or not printable(request):
        raise InvalidValueError(
            f"request must be 1 to {_LONGEST_REQUEST} characters without control characters, not {shown(request)}"
        )
    return request


def printable(text: str) -> bool:
    r"""Whether a text holds neither control characters nor half of a letter.

    Examples:
        >>> printable("Zoë 🐌"), printable("a\x00b"), printable("\ud800")
        (True, False, False)
    """
    return not any(unicodedata.category(letter) in {"Cc", "Cs"} for letter in text)


def shown(value: Any) -> str:
    """The received value, shortened for a sentence."""
    text = ascii(value) if isinstance(value, str) and not printable(value) else repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value) if not isinstance(value, str) or "_" not in value else math.nan
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


#: Most classes of a project.
MOST_CLASSES: Final = 200
#: Most characters of the name of a class.
LONGEST_CLASS: Final = 200


@dataclass(frozen=True)
class ClassChange:
    """The classes before and after a change, and which old class becomes which new one.

    Each old class has at most one successor: the class that it is moved to, or else the class of the same name. A class
    with one predecessor is kept or renamed, one with several is merged from them, and one without any is added. An old
    class without a successor is removed.

    Args:
        before: Names of the classes, in order.
        after: Names of the classes afterwards, in order.
        moved: Old names with the names that their labels have afterwards.

    Examples:
        >>> change = ClassChange(("cat", "dog", "eel"), ("cat", "fish", "pet"), {"dog": "cat", "eel": "fish"})
        >>> change.merged, change.renamed, change.added, change.removed
        (('cat',), {'eel': 'fish'}, ('pet',), ())
        >>> change.label("dog"), change.keeps_answers
        ('cat', False)
    """

    before: tuple[str, ...]
    after: tuple[str, ...]
    moved: Mapping[str, str]

    @staticmethod
    def checked(before: Sequence[str], after: Sequence[str], moved: Mapping[str, str]) -> "ClassChange":
        """A change whose names can be used.

        Raises:
            InvalidValueError: A name cannot be used, or a class is moved from or to one that is not there.
        """
        # Names that are there already may come from a table and are taken as they are.
        names = [name if name in before or not isinstance(name, str) else name.strip() for name in after]
        for name in names:
            fits = isinstance(name, str) and 1 <= len(name) <= LONGEST_CLASS and printable(name)
            if name not in before and not fits:
                raise InvalidValueError(
                    f"the name of a class must be 1 to {LONGEST_CLASS} characters without control characters, not "
                    f"{shown(name)}"
                )
        if not 2 <= len(names) <= max(MOST_CLASSES, len(before)):
            raise InvalidValueError(f"a project needs 2 to {MOST_CLASSES} classes, and these are {len(names)}")
        twice = next((name for name, number in Counter(names).items() if number > 1), None)
        if twice is not None:
            raise InvalidValueError(f"the class {shown(twice)} is there twice; classes must be distinct")
        targets = {old: new if new in before or not isinstance(new, str) else new.strip() for old, new in moved.items()}
        for old, new in targets.items():
            if old not in before:
                raise InvalidValueError(f"the project has no class {shown(old)}; it has {_listed(before)}")
            if new not in names:
                raise InvalidValueError(f"{shown(old)} is moved to {shown(new)}, which is none of the new classes")
        return ClassChange(tuple(before), tuple(names), {old: new for old, new in targets.items() if old != new})

    @staticmethod
    def from_event_data(data: Mapping[str, Any]) -> "ClassChange":
        """Create it from the result of :meth:`event_data`."""
        return ClassChange(tuple(data["before"]), tuple(data["classes"]), dict(data["moved"]))

    def event_data(self) -> dict[str, Any]:
        """Data for the journal, as JSON values."""
        return {"before": list(self.before), "classes": list(self.after), "moved": dict(self.moved)}

    def label(self, name: str) -> str:
        """The name that a label has afterwards."""
        return self.moved.get(name, name)

    def _origins(self) -> dict[str, list[str]]:
        origins: dict[str, list[str]] = {name: [] for name in self.after}
        for name in self.before:
            if self.label(name) in origins:
                origins[self.label(name)].append(name)
        return origins

    @property
    def added(self) -> tuple[str, ...]:
        """Classes that were not there."""
        return tuple(name for name, old in self._origins().items() if not old)

    @property
    def merged(self) -> tuple[str, ...]:
        """Classes that take in the labels of several."""
        return tuple(name for name, old in self._origins().items() if len(old) > 1)

    @property
    def renamed(self) -> dict[str, str]:
        """Old names of classes that have another name, with that name."""
        return {old[0]: name for name, old in self._origins().items() if len(old) == 1 and old[0] != name}

    @property
    def kept(self) -> dict[str, str]:
        """Old names of classes that are neither merged nor removed, with the names that they have afterwards."""
        return {old[0]: name for name, old in self._origins().items() if len(old) == 1}

    @property
    def removed(self) -> tuple[str, ...]:
        """Classes that are there no more, and whose labels go nowhere."""
        return tuple(name for name in self.before if self.label(name) not in self.after)

    def descriptions(self, before: Mapping[str, str]) -> dict[str, str]:
        """Descriptions of the classes afterwards; a class that others are merged into keeps its own."""
        moved = {self.label(name): text for name, text in before.items() if self.label(name) in self.after}
        own = {name: text for name, text in before.items() if name in self.after and self.label(name) == name}
        return {**moved, **own}

    @property
    def keeps_answers(self) -> bool:
        """Whether every answer means what it meant before: classes are only renamed or reordered."""
        return not (self.added or self.merged or self.removed)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")
