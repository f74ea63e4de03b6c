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

#: A stored label: the name of a class, or a number.
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
    rows_received = "rows received"
    advised = "stop advised"
    withdrawn = "stop withdrawn"
    resumed = "resumed"
    model_changed = "model changed"
    models_compared = "models compared"
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
    """An event before it is written.

    Attributes:
        kind: Kind of the event.
        person: The person who acts; empty for the program itself.
        item: Position of the item, or None.
        data: Further data as JSON values. Labels and corrections have ``label``; requested items ``until`` and ``why``;
            undone events ``of`` (the number of the undone event); advice ``n_labelled`` and ``reason``; a change of
            the model ``model`` (its name); a comparison of models ``n_labelled``, ``errors`` (the error of each, by
            name) and ``model`` (the one that is used from then on); a skip ``reason`` and ``unsure`` if they were
            given. For the start of a check see :meth:`suffice.project.project_check.CheckDraw.event_data`; an aborted
            check has its ``number``. For a change of the classes see
            :meth:`suffice.project.events.ClassChange.event_data`. A change of other settings has ``settings`` (the new
            values) and ``before`` (their old values); the one that is written with the features of the items has also
            ``features``, their number. An item that is requested as a new item, and not for a second opinion or again,
            has also ``random`` (whether it was drawn at random) and ``started`` (whether the model had its first labels
            then). A label or correction has ``saw_prediction`` if the person saw a prediction for the item, and
            ``imported`` if it was read from a file. A confirmed label has ``label``. For imported predictions see
            :func:`suffice.project.prediction_log.prediction_data`. Added items have ``first`` (the position of the
            first item), ``count`` and ``source``. Received rows, which are written only for a message with a
            ``request``, have the ``digest`` of the rows, the ``options`` and the ``reply``. Events of accounts have the
            ``name`` of the account; events that create or change an account have also its ``role``, or the hash of its
            ``password`` or ``link``.
        request: A name that the sender chose for the message. A message with a known name is not processed again.
    """

    kind: EventKind
    person: str = ""
    item: int | None = None
    data: Mapping[str, Any] = field(default_factory=dict)
    request: str | None = None


@dataclass(frozen=True)
class Event(Draft):
    """An event in the journal.

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
        """Time of the event in UTC, to the second.

        Examples:
            >>> Event(EventKind.resumed, seq=1, at=0.0).when
            '1970-01-01T00:00:00Z'
        """
        return moment(self.at)


# Seconds since 1970 of the first and of the last second of a date.
_FIRST_MOMENT: Final = -62135596800.0
_LAST_MOMENT: Final = 253402300799.0


def moment(at: float) -> str:
    """Seconds since 1970 as a time in UTC, to the second; for a clock that was wrong, the nearest of years 1 to 9999.

    Examples:
        >>> moment(0.0), moment(1e15), moment(-1e15)
        ('1970-01-01T00:00:00Z', '9999-12-31T23:59:59Z', '0001-01-01T00:00:00Z')
    """
    found = datetime.fromtimestamp(min(max(at, _FIRST_MOMENT), _LAST_MOMENT), UTC)
    return f"{found:%Y}".zfill(4) + f"{found:-%m-%dT%H:%M:%SZ}"


#: Maximal number of characters of the reason for a skip.
LONGEST_REASON: Final = 500
_LONGEST_NAME = 64
_LONGEST_REQUEST = 100
_LARGEST = 1e100


def checked_label(settings: Settings, value: Any) -> Label:
    """Return a label in stored form, or raise an error that names the problem.

    Args:
        settings: Settings of the project.
        value: A class by its name, or a number or its text.

    Raises:
        InvalidValueError: The value is not one of the classes, or not a finite number.

    Examples:
        >>> about = Settings("p", "regression", (), "y", "table", ("a",), None, "gp", {})
        >>> checked_label(about, " 2.50 ")
        2.5
    """
    if settings.task == "classification":
        name = value.strip() if isinstance(value, str) else value
        if not isinstance(name, str) or name not in settings.classes:
            some = ", ".join(settings.classes[:20]) + (", ..." if len(settings.classes) > 20 else "")
            if isinstance(value, list | tuple | set | frozenset):
                some += "; an item has one class: make a project for each class, or check sets of classes as right or "
                some += "wrong answers with suffice.StopMonitor"
            raise InvalidValueError(f"{shown(value)} is none of the classes; they are {some}")
        return name
    number = _number(value)
    if number is None:
        raise InvalidValueError(f"{shown(value)} is not a number; a label is a finite number such as 3.5")
    # Squares of larger labels would overflow.
    if abs(number) > _LARGEST:
        raise InvalidValueError(f"{shown(value)} is too large for a label; take another unit")
    return number


def checked_person(name: Any) -> str:
    """Return a valid name of a person, or raise an error that names the problem.

    Raises:
        InvalidValueError: It is empty, longer than 64 characters, or contains control characters or surrogates.
    """
    text = name.strip() if isinstance(name, str) else ""
    if not 1 <= len(text) <= _LONGEST_NAME or not printable(text):
        raise InvalidValueError(
            f"the name of a person must be 1 to {_LONGEST_NAME} characters without control characters, not "
            f"{shown(name)}"
        )
    return text


def checked_reason(reason: Any) -> str:
    r"""Return the reason for an action as one line, or raise an error that names the problem.

    Raises:
        InvalidValueError: It is not a text, longer than 500 characters, or contains control characters or surrogates.

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
    """Return a valid name of a request, or None if there is none; otherwise raise an error.

    Raises:
        InvalidValueError: It is empty, longer than 100 characters, or contains control characters or surrogates.
    """
    if request is None:
        return None
    if not isinstance(request, str) or not 1 <= len(request) <= _LONGEST_REQUEST or not printable(request):
        raise InvalidValueError(
            f"request must be 1 to {_LONGEST_REQUEST} characters without control characters, not {shown(request)}"
        )
    return request


def printable(text: str) -> bool:
    r"""Whether a text contains neither control characters nor surrogates.

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


#: Maximal number of classes of a project.
MOST_CLASSES: Final = 200
#: Maximal number of characters of the name of a class.
LONGEST_CLASS: Final = 200


@dataclass(frozen=True)
class ClassChange:
    """The classes before and after a change, and the mapping from old to new classes.

    Each old class has at most one successor: the class to which it is moved, or otherwise the class of the same name. A
    class with one predecessor is kept or renamed, one with several is merged from them, and one without any is added.
    An old class without a successor is removed.

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
        """A change with validated names.

        Raises:
            InvalidValueError: A name cannot be used, or a class is moved from or to a class that does not exist.
        """
        # Existing names may have been read from a table and are not validated again.
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

    def answer(self, label: Label | None) -> Label | None:
        """An answer afterwards: a class by its name, or None for a skipped item. Numbers do not change."""
        return self.label(label) if isinstance(label, str) else label

    def _origins(self) -> dict[str, list[str]]:
        origins: dict[str, list[str]] = {name: [] for name in self.after}
        for name in self.before:
            if self.label(name) in origins:
                origins[self.label(name)].append(name)
        return origins

    @property
    def added(self) -> tuple[str, ...]:
        """Added classes."""
        return tuple(name for name, old in self._origins().items() if not old)

    @property
    def merged(self) -> tuple[str, ...]:
        """Classes into which several classes are merged."""
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
        """Removed classes, without a successor."""
        return tuple(name for name in self.before if self.label(name) not in self.after)

    def descriptions(self, before: Mapping[str, str]) -> dict[str, str]:
        """Descriptions of the classes afterwards; a class that others are merged into keeps its own."""
        moved = {self.label(name): text for name, text in before.items() if self.label(name) in self.after}
        own = {name: text for name, text in before.items() if name in self.after and self.label(name) == name}
        return {**moved, **own}

    @property
    def keeps_answers(self) -> bool:
        """Whether all answers keep their meaning, because classes are only renamed or reordered."""
        return not (self.added or self.merged or self.removed)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")
