"""Items that people were asked for: reservations, reasons, and which items were drawn at random."""

from typing import NamedTuple

from suffice.project.events import Event


class Lease(NamedTuple):
    """Reservation of an item for a person, with its end."""

    person: str
    until: float


class AssignedItems:
    """Items that people were asked for and have not answered, and the random items among all that were asked for.

    Attributes:
        drawn: Items that were drawn at random when they were last asked for as new items, or by a past check.
        n_asked: Number of new items that were requested since the model started.
        n_random: Number of these items that were drawn at random.
    """

    def __init__(self) -> None:
        self.drawn: set[int] = set()
        self.n_asked = self.n_random = 0
        self._leases: dict[int, Lease] = {}
        self._of_person: dict[str, dict[int, None]] = {}
        self._why: dict[int, str] = {}

    def assign(self, event: Event) -> None:
        """Apply the event by which a person was asked for an item."""
        assert event.item is not None
        self._lend(event, str(event.data.get("why", "")))
        if "random" not in event.data:
            return
        random, started = bool(event.data["random"]), bool(event.data.get("started"))
        if random:
            self.drawn.add(event.item)
        else:
            self.drawn.discard(event.item)
        self.n_asked += started
        self.n_random += started and random

    def assign_again(self, event: Event) -> None:
        """Apply the event by which a person has undone an answer: the item comes before all others of the person."""
        assert event.item is not None
        self._lend(event, "taken back")
        self._of_person[event.person] = {event.item: None} | self._of_person[event.person]

    def _lend(self, event: Event, why: str) -> None:
        assert event.item is not None
        item, lease = event.item, Lease(event.person, float(event.data["until"]))
        before = self._leases.get(item)
        if before is not None and before.person != lease.person:
            self.release(item)
        # A renewed lease of the same person keeps its place.
        self._leases[item] = lease
        self._of_person.setdefault(lease.person, {})[item] = None
        self._why[item] = why

    def release(self, item: int) -> None:
        """End the reservation of an item."""
        lease = self._leases.pop(item, None)
        if lease is not None:
            del self._of_person[lease.person][item]
            self._why.pop(item, None)

    def end_lease_at(self, item: int, until: float) -> None:
        """Set the end of the lease of an item, for callers whose clock differs from that of the journal."""
        lease = self._leases.get(item)
        if lease is not None:
            self._leases[item] = lease._replace(until=until)

    def lease_of(self, item: int) -> Lease | None:
        """The last lease of an item that was not answered, expired or not."""
        return self._leases.get(item)

    def valid_leases(self, now: float) -> dict[int, Lease]:
        """Leases that are valid at a time, by item."""
        return {item: lease for item, lease in self._leases.items() if lease.until > now}

    def of_person(self, person: str) -> list[tuple[int, Lease]]:
        """Unanswered items of a person, with expired or valid leases, items whose answer was undone first."""
        return [(item, self._leases[item]) for item in self._of_person.get(person, ())]

    def why(self, item: int) -> str:
        """Reason for the last request of an item."""
        return self._why.get(item, "")
