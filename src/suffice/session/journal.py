"""The journal of a project: events in order, written once and never changed."""

import json
from collections.abc import Sequence
from typing import Any

from suffice.session.database import events_table
from suffice.session.events import Draft, Event, EventKind
from suffice.session.places import Connection, sa


def read_events(connection: Connection, after: int = 0) -> list[Event]:
    """Events in order, from the one after a number on."""
    wanted = sa.select(events_table).where(events_table.c.seq > after).order_by(events_table.c.seq)
    return [_event(row) for row in connection.execute(wanted)]


def write_events(connection: Connection, drafts: Sequence[Draft], *, after: int, at: float) -> list[Event]:
    """Write events after the last one; they count once the transaction is committed.

    Args:
        connection: Within a transaction during which nobody else writes.
        drafts: What happened.
        after: Number of the last event.
        at: The moment.
    """
    events = [_numbered(draft, after + k, at) for k, draft in enumerate(drafts, start=1)]
    if events:
        connection.execute(sa.insert(events_table), [_row(event) for event in events])
    return events


def _numbered(draft: Draft, seq: int, at: float) -> Event:
    return Event(draft.kind, draft.person, draft.item, draft.data, draft.request, seq=seq, at=at)


def _row(event: Event) -> dict[str, Any]:
    return {
        "seq": event.seq,
        "kind": event.kind.value,
        "item": event.item,
        "person": event.person,
        "at": event.at,
        "data": json.dumps(dict(event.data), allow_nan=False),
        "request": event.request,
    }


def _event(row: Any) -> Event:
    return Event(
        EventKind(row.kind), row.person, row.item, json.loads(row.data), row.request, seq=int(row.seq), at=float(row.at)
    )
