"""What can happen to a labelling project: one event each, never changed once it is written."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

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
    advised = "stop advised"
    withdrawn = "stop withdrawn"
    resumed = "resumed"


#: Events that a person can undo.
ACTS = frozenset({EventKind.labelled, EventKind.skipped, EventKind.corrected})


@dataclass(frozen=True)
class Draft:
    """An event that is to be written.

    Attributes:
        kind: What happens.
        person: Who does it; empty for the program itself.
        item: Position of the item that it is about, or None.
        data: What else is to be known, as JSON values: ``label`` of labels and corrections, ``until`` and ``why`` of
            an item asked, ``of`` (the number of another event) of one undone, ``n_labelled`` and ``reason`` of advice.
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
    """

    seq: int = 0
    at: float = 0.0

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
