"""Events of a labelling project, which never change once written, and the validation of their contents."""

import math
import unicodedata
from collections.abc import Mapping
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
            :meth:`suffice.project.class_change.ClassChange.event_data`; a change of other settings has ``settings``,
            those that are new, and ``before``, the same ones as they were. An item that is asked for as a new one, and
            not for a second opinion or once more, has also ``random`` (whether it was drawn at random) and ``started``
            (whether the model had its first labels then).
            A label or correction has ``saw_prediction`` if the person saw a prediction for the item, and ``imported``
            if it came from a file. A label that was confirmed has the ``label``. For predictions that were imported see
            :func:`suffice.project.imported_predictions.prediction_data`. Items that were added have ``first`` (the
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
