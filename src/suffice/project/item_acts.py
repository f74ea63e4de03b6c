"""Labels, skips and corrections of a project that were not undone, by item and by person."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from suffice.project.events import ClassChange, Event, EventKind, Label


class Opinion(NamedTuple):
    """Label of an item by one person."""

    person: str
    label: Label
    at: float


class ItemActs:
    """Labels, skips and corrections that were not undone.

    The label that counts is the newest correction of an item, or its first label if there is no correction.

    Examples:
        >>> acts = ItemActs()
        >>> acts.add(Event(EventKind.labelled, "ann", 2, {"label": "spam"}, seq=1))
        >>> acts.add(Event(EventKind.corrected, "bob", 2, {"label": "ham"}, seq=2))
        >>> acts.deciding(2).data["label"], acts.newest_of("ann").data["label"]
        ('ham', 'spam')
    """

    def __init__(self) -> None:
        self._by_item: dict[int, list[Event]] = {}
        self._by_person: dict[str, list[Event]] = {}
        self._n_counting: Counter[str] = Counter()
        # Items that nobody has corrected, with the people who labelled them, by the number of these people. An item is
        # the last one when its number has changed.
        self._uncorrected: dict[int, dict[int, tuple[str, ...]]] = {}

    def add(self, act: Event) -> None:
        """Add a label, a skip or a correction."""
        assert act.item is not None
        self._count_deciding(act.item, -1)
        self._by_item.setdefault(act.item, []).append(act)
        self._by_person.setdefault(act.person, []).append(act)
        self._count_deciding(act.item, 1)
        self._note_opinions(act.item)

    def undo(self, event: Event) -> None:
        """Remove the act that an event undoes."""
        assert event.item is not None
        undone = next(act for act in self._by_item[event.item] if act.seq == event.data["of"])
        self._count_deciding(event.item, -1)
        self._by_item[event.item].remove(undone)
        self._by_person[event.person].remove(undone)
        self._count_deciding(event.item, 1)
        self._note_opinions(event.item)

    def of_item(self, item: int) -> tuple[Event, ...]:
        """Labels, skips and corrections of an item, in order."""
        return tuple(self._by_item.get(item, ()))

    def of_person(self, person: str) -> tuple[Event, ...]:
        """Labels, skips and corrections of a person, in order."""
        return tuple(self._by_person.get(person, ()))

    def newest_of(self, person: str) -> Event | None:
        """The last label, skip or correction of a person."""
        acts = self._by_person.get(person)
        return acts[-1] if acts else None

    def n_counting_of(self, person: str) -> int:
        """Number of items whose label that counts is by a person."""
        return self._n_counting[person]

    def has_label_of(self, person: str) -> bool:
        """Whether a person has given a label or a correction, also if it does not count."""
        return any(act.kind is not EventKind.skipped for act in self._by_person.get(person, ()))

    def label_by(self, item: int, person: str) -> Event | None:
        """The label that a person gave an item."""
        return self._first(item, person, EventKind.labelled)

    def skip_by(self, item: int, person: str) -> Event | None:
        """The event by which a person skipped an item."""
        return self._first(item, person, EventKind.skipped)

    def deciding(self, item: int) -> Event | None:
        """The event whose label counts: the newest correction, or otherwise the first label."""
        acts = self._by_item.get(item, ())
        corrections = [act for act in acts if act.kind is EventKind.corrected]
        labels = [act for act in acts if act.kind is EventKind.labelled]
        return corrections[-1] if corrections else labels[0] if labels else None

    def opinions(self, item: int) -> tuple[Opinion, ...]:
        """Labels of an item by all people, in order."""
        labels = (act for act in self._by_item.get(item, ()) if act.kind is EventKind.labelled)
        return tuple(Opinion(act.person, act.data["label"], act.at) for act in labels)

    def has_correction(self, item: int) -> bool:
        """Whether the label that counts is a correction."""
        return any(act.kind is EventKind.corrected for act in self._by_item.get(item, ()))

    def is_only_of(self, item: int, person: str) -> bool:
        """Whether all labels and corrections of an item are by one person."""
        return all(act.person == person for act in self._by_item.get(item, ()) if act.kind is not EventKind.skipped)

    def can_answer_after_undo(self, act: Event) -> bool:
        """Whether a person who undoes an act can answer for its item: not if they have another label."""
        assert act.item is not None
        return act.kind is not EventKind.corrected and self.label_by(act.item, act.person) in (None, act)

    def missing_opinions(self, person: str, wanted: int) -> Iterator[int]:
        """Items that fewer people than wanted have labelled, at least one, and not this person.

        Items that somebody has corrected, or that this person has skipped, are left out.

        Args:
            person: The person.
            wanted: Number of opinions that are wanted.

        Returns:
            The items, those with the most opinions first.
        """
        for number in range(wanted - 1, 0, -1):
            for item, people in self._uncorrected.get(number, {}).items():
                if person not in people and self.skip_by(item, person) is None:
                    yield item

    def uses_class(self, name: str) -> bool:
        """Whether a label of this class was given, including labels that do not count."""
        return any(act.data.get("label") == name for acts in self._by_item.values() for act in acts)

    def change_classes(self, change: ClassChange) -> None:
        """Give all labels their new names."""

        def renamed(act: Event) -> Event:
            label = act.data.get("label")
            new = change.answer(label)
            return act if new == label else replace(act, data={**act.data, "label": new})

        self._by_item = {item: [renamed(act) for act in acts] for item, acts in self._by_item.items()}
        self._by_person = {person: [renamed(act) for act in acts] for person, acts in self._by_person.items()}

    def _first(self, item: int, person: str, kind: EventKind) -> Event | None:
        acts = self._by_item.get(item, ())
        return next((act for act in acts if act.person == person and act.kind is kind), None)

    def _count_deciding(self, item: int, change: int) -> None:
        """Add a number to the count of the person whose label of an item counts."""
        act = self.deciding(item)
        if act is not None:
            self._n_counting[act.person] += change

    def _note_opinions(self, item: int) -> None:
        people = tuple(act.person for act in self._by_item[item] if act.kind is EventKind.labelled)
        for number in (len(people) - 1, len(people), len(people) + 1):
            self._uncorrected.get(number, {}).pop(item, None)
        if people and not self.has_correction(item):
            self._uncorrected.setdefault(len(people), {})[item] = people
