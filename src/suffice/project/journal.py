"""The journal of a project: its present state, and durable writes by many people, threads and processes."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np

from suffice.errors import InvalidValueError, SufficeError
from suffice.numerics import Floats
from suffice.project.events import Draft, Event
from suffice.project.items import Items
from suffice.project.settings import Settings
from suffice.project.state import ProjectState
from suffice.project.storage import (
    Connection,
    Database,
    StorageError,
    read_events,
    read_ids,
    remove_features,
    undamaged,
    write_contents,
    write_events,
    write_features,
)

# If the system clock differs from the monotonic clock by more seconds than this, it was set to another time.
_JUMP: Final = 2.0


class _Moment(NamedTuple):
    """One point in time by three clocks: the system clock, the clock of the leases, and a monotonic clock."""

    wall: float
    steady: float
    monotonic: float


class _LeaseClock:
    """The clock of the leases: the system clock, without the jumps that occur when the system clock is set.

    Attributes:
        correction: Seconds that were added to the time of the system.
    """

    def __init__(self) -> None:
        self.correction = 0.0
        self._last: _Moment | None = None

    def moment(self) -> _Moment:
        """The present time by all three clocks."""
        wall, monotonic = time.time(), time.monotonic()
        if self._last is not None:
            jumped = (wall - self._last.wall) - (monotonic - self._last.monotonic)
            if abs(jumped) > _JUMP:
                self.correction -= jumped
        self._last = _Moment(wall, wall + self.correction, monotonic)
        return self._last

    def lease_end(self, event: Event, now: _Moment, looked: float) -> float:
        """End of the lease of an event that was read now, by this clock.

        Args:
            event: The event. Its time and ``until`` are by the clock of the process that wrote it.
            now: The present time.
            looked: Time at which the journal was last read, by the monotonic clock. The lease is not older.
        """
        until = float(event.data["until"])
        elapsed = min(max(0.0, now.wall - event.at), now.monotonic - looked)
        by_duration, by_clock = now.steady + max(0.0, until - event.at) - elapsed, until + self.correction
        # Small differences come from rounding, or from clocks of several machines.
        return by_clock if abs(by_duration - by_clock) < _JUMP else by_duration

    def in_wall_time(self, draft: Draft) -> Draft:
        """An event whose lease, if it has one, ends by the system clock."""
        if not self.correction or "until" not in draft.data:
            return draft
        return replace(draft, data={**draft.data, "until": draft.data["until"] - self.correction})


T = TypeVar("T")


class ConflictError(SufficeError):
    """An action that the state of the project does not allow.

    Examples:
        >>> import tempfile
        >>> from suffice.project import ConflictError, create_project
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with create_project(f"{folder}/pets.suffice", ["a cat", "a dog"], classes=["tame", "wild"]) as project:
        ...         try:
        ...             project.abort_check(person="Ann")
        ...         except ConflictError:
        ...             print("no check is open")
        no check is open
    """


class WriteReceipt(NamedTuple):
    """Receipt of a written event.

    Attributes:
        seq: Number of its event.
        position: The item that it is about, or None.
        repeated: Whether the event existed already, and was not written again.

    Examples:
        >>> import tempfile
        >>> from suffice.project import WriteReceipt, create_project
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with create_project(f"{folder}/pets.suffice", ["a cat", "a dog"], classes=["tame", "wild"]) as project:
        ...         receipt = project.label(1, "tame", person="Ann")
        >>> isinstance(receipt, WriteReceipt), receipt.position, receipt.repeated
        (True, 1, False)
    """

    seq: int
    position: int | None
    repeated: bool


class ProjectJournal:
    """The journal of a project, and the state and settings that follow from its events.

    When a write returns, it is on the disk. If it raises an error, nothing was written, with one exception: if the
    connection to a database server was lost, the events may have been written.

    Args:
        database: Database of the project.
        size: Number of items.

    Attributes:
        database: Database of the project.
        place: Location of the project, for messages.
        size: Number of items.
        lock: Hold this lock while reading the state.
        first_settings: The settings that the project was made with.

    Raises:
        SufficeError: The journal has no beginning.
        StorageError: The journal is damaged.
    """

    def __init__(self, database: Database, size: int) -> None:
        self.database, self.place, self.size = database, database.place, size
        self.lock = threading.RLock()
        self._closed = False
        self._state = ProjectState(size)
        self._clock, self._looked = _LeaseClock(), float("-inf")
        self._on_items_added: list[Callable[[], None]] = []
        made = self.state().made
        if made is None:
            raise SufficeError(f"the journal of {self.place} has no beginning; take the project from a backup")
        with undamaged(self.place):
            self.first_settings = Settings.from_dict(made.data["settings"])
        # Cache of the present settings, with the changes that they contain.
        self._changed: tuple[Mapping[str, Any], Settings] = {}, self.first_settings

    @property
    def settings(self) -> Settings:
        """Settings of the project, with the current classes and the original model.

        They belong to the state that was read last. Hold :attr:`lock` to read settings and state that are consistent.
        """
        changes, settings = self._changed
        if changes is not self._state.changes:
            changes = self._state.changes
            settings = self.first_settings.with_changes(changes)
            self._changed = changes, settings
        return settings

    def state(self) -> ProjectState:
        """Present state of the project, with the events of other processes. Hold :attr:`lock` while reading it."""
        with self.lock, self.database.reading() as connection:
            return self._catch_up(connection)

    def events(self, after: int = 0) -> list[Event]:
        """The events after a number."""
        with self.reading() as connection:
            return read_events(connection, after)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection for reading; damaged data raises a :class:`suffice.project.storage.StorageError`."""
        with self.database.reading() as connection, undamaged(self.place):
            yield connection

    def close(self) -> None:
        """Close the database."""
        self._closed = True
        self.database.close()

    def position(self, position: int | None) -> int:
        """Return the position of an existing item.

        Raises:
            InvalidValueError: There is none.
        """
        if isinstance(position, bool) or not isinstance(position, int | np.integer) or not 0 <= position < self.size:
            raise InvalidValueError(f"there is no item {position!r}; the project has items 0 to {self.size - 1}")
        return int(position)

    def require_classes(self, classes: tuple[str, ...]) -> None:
        """Raise an error if the classes are no longer those that were read before.

        Raises:
            ConflictError: They were changed.
        """
        if self.settings.classes != classes:
            raise ConflictError("the classes were changed meanwhile; try again")

    def wall_time(self, steady: float) -> float:
        """A time by the clock of the leases, by the system clock."""
        return steady - self._clock.correction

    def on_items_added(self, call: Callable[[], None]) -> None:
        """Register a function that is called when items were added, by this or another process."""
        self._on_items_added.append(call)

    def write(self, decide: Callable[[ProjectState, float], tuple[list[Draft], T]]) -> tuple[list[Event], T]:
        """Decide and write in one exclusive transaction.

        Args:
            decide: Returns the events to write, and a result. Its arguments are the present state, and the time by the
                clock of the leases.

        Returns:
            The written events, and the result.
        """
        return self._write(lambda state, now, _: decide(state, now.steady))

    def write_once(self, message: Draft, decide: Callable[[ProjectState, float], Draft | Event]) -> WriteReceipt:
        """Write one event, unless a message with the same name was written before.

        Args:
            message: The message. An earlier message with the same name must have the same contents.
            decide: Returns the event to write, or an existing event that makes it unnecessary. The arguments are those
                of :meth:`write`.

        Raises:
            ConflictError: The name was used for another message.
        """

        def decide_once(state: ProjectState, now: float) -> tuple[list[Draft], Event | None]:
            draft = self.earlier_event(state, message) or decide(state, now)
            return ([], draft) if isinstance(draft, Event) else ([draft], None)

        events, existing = self.write(decide_once)
        event = existing or events[0]
        return WriteReceipt(event.seq, event.item, existing is not None)

    @staticmethod
    def earlier_event(state: ProjectState, message: Draft) -> Event | None:
        """The event of an earlier message with the same name, or None.

        Raises:
            ConflictError: The name was used for another message.
        """
        event = None if message.request is None else state.messages.get(message.request)
        if event is None:
            return None
        same_item = message.item is None or event.item == message.item
        same_data = all(event.data.get(key) == value for key, value in message.data.items())
        if event.kind is not message.kind or event.person != message.person or not same_item or not same_data:
            raise ConflictError(
                f"the request {message.request!r} was used before, for something else; each needs a different name"
            )
        return event

    def add_items(self, items: Items, decide: Callable[[ProjectState, Mapping[str, int]], tuple[list[Draft], T]]) -> T:
        """Add items and write events in one exclusive transaction.

        Args:
            items: The items to add.
            decide: Returns the events to write, and a result. If there are no events, no items are added. Its arguments
                are the present state, and the positions of all items by name.
        """

        def add(state: ProjectState, _: _Moment, connection: Connection) -> tuple[list[Draft], T]:
            drafts, result = decide(state, read_ids(connection))
            if drafts:
                write_contents(connection, items, after=state.labels.size)
            return drafts, result

        return self._write(add)[1]

    def add_features(self, features: Floats, draft: Draft) -> bool:
        """Add the features of all items, and write an event, in one exclusive transaction.

        Nothing is written if the project has features already, such as from another process.

        Args:
            features: Features of the items, ``n x D``.
            draft: The event.

        Returns:
            Whether they were written.
        """
        if self._closed:
            # A thread that computed them has not ended with the project.
            return False

        def add(state: ProjectState, _: _Moment, connection: Connection) -> tuple[list[Draft], None]:
            if not state.features_missing:
                return [], None
            # A repaired project may have features without the event.
            remove_features(connection)
            write_features(connection, features)
            return [draft], None

        return bool(self._write(add)[0])

    def _write(
        self, decide: Callable[[ProjectState, _Moment, Connection], tuple[list[Draft], T]]
    ) -> tuple[list[Event], T]:
        with self.lock:
            with self.database.exclusive() as connection:
                state = self._catch_up(connection)
                now = self._clock.moment()
                drafts, result = decide(state, now, connection)
                drafts = [self._clock.in_wall_time(draft) for draft in drafts]
                events = write_events(connection, drafts, last=state.last, at=now.wall)
            # Apply the events only after the transaction is committed.
            for event in events:
                self._apply(event, now, now.monotonic)
            return events, result

    def _catch_up(self, connection: Connection) -> ProjectState:
        """Apply events of other processes, after checking that the last known event is still in the journal."""
        last, now = self._state.last, self._clock.moment()
        with undamaged(self.place):
            events = read_events(connection, max(0, self._state.seq - 1))
        if last is not None and (not events or events.pop(0) != last):
            raise StorageError(
                f"the journal of {self.place} is not the one that was read before, as if it were taken from a backup; "
                "nothing was written; start again"
            )
        with undamaged(self.place):
            for event in events:
                self._apply(event, now, self._looked)
        self._looked = now.monotonic
        return self._state

    def _apply(self, event: Event, now: _Moment, looked: float) -> None:
        state = self._state
        if event.seq != state.seq + 1:
            raise ValueError(f"event {state.seq + 1} is missing")
        if event.item is not None and not 0 <= event.item < self.size:
            raise ValueError(f"event {event.seq} is about item {event.item}, and there are {self.size}")
        state.apply(event)
        if state.labels.size > self.size:
            self.size = state.labels.size
            for call in self._on_items_added:
                call()
        if event.item is not None and "until" in event.data:
            state.assigned.end_lease_at(event.item, self._clock.lease_end(event, now, looked))
