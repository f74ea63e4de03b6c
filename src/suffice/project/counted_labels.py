"""The label that counts for each item of a project, and which items are open, labelled or skipped."""

from collections import Counter
from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from suffice.project.events import ClassChange, Event, Label
from suffice.project.project_check import ItemsBefore

_OPEN, _LABELLED, _SKIPPED = 0, 1, 2
_STATUS_TYPE: Final = np.int8


class Answer(NamedTuple):
    """Answer for a learner: an item, its label or None if skipped, and whether it was drawn at random."""

    item: int
    label: Label | None
    random: bool = False


class CountedLabels:
    """The label that counts for each item.

    An item keeps its place in the order of labelling when its label is corrected.

    Args:
        size: Number of items.

    Attributes:
        informed: Items whose label that counts was given by somebody who saw a prediction for the item.
        corrections: What is right for items whose prediction is wrong, as far as people have said it.
    """

    def __init__(self, size: int) -> None:
        self.informed: set[int] = set()
        self.corrections: dict[int, str] = {}
        self._status = np.full(size, _OPEN, dtype=_STATUS_TYPE)
        # The label of each answered item, or None if it is skipped, in the order in which a learner learns.
        self._labels: dict[int, Label | None] = {}
        self._counts: Counter[Label] = Counter()
        # Confirmed labels, each with who has confirmed it last.
        self._confirmed: dict[int, tuple[Label, str]] = {}

    @property
    def size(self) -> int:
        """Number of items."""
        return len(self._status)

    @property
    def n_labelled(self) -> int:
        """Items with a label."""
        return len(self._labels) - self.n_skipped

    @property
    def n_skipped(self) -> int:
        """Items that were skipped."""
        return int(np.count_nonzero(self._status == _SKIPPED))

    @property
    def left(self) -> int:
        """Items neither labelled nor skipped."""
        return len(self._status) - len(self._labels)

    @property
    def by_item(self) -> Mapping[int, Label | None]:
        """The label of each answered item, or None if it is skipped, in the order of labelling."""
        return self._labels

    def label_of(self, item: int) -> Label | None:
        """The label that counts, or None."""
        return self._labels.get(item)

    def is_open(self, item: int) -> bool:
        """Whether an item is neither labelled nor skipped."""
        return bool(self._status[item] == _OPEN)

    def is_skipped(self, item: int) -> bool:
        """Whether an item was skipped, and has no label."""
        return bool(self._status[item] == _SKIPPED)

    def is_confirmed(self, item: int) -> bool:
        """Whether somebody has confirmed the label that counts."""
        return self.confirmed_by(item) is not None

    def confirmed_by(self, item: int) -> str | None:
        """Who has confirmed the label that counts, the last person; None if nobody has."""
        label, person = self._confirmed.get(item, (None, None))
        return person if label is not None and label == self.label_of(item) else None

    def open_among(self, items: NDArray[np.intp]) -> NDArray[np.intp]:
        """The given items without those that are labelled or skipped, in the same order."""
        return np.asarray(items[self._status[items] == _OPEN])

    def counts(self) -> dict[Label, int]:
        """Number of items of each label."""
        return {label: count for label, count in self._counts.items() if count}

    def items_before(self, size: int | None = None) -> ItemsBefore:
        """The items with and without a label, for a check that starts now.

        Args:
            size: Number of items at that time; all if left out. Later items are added by later events.
        """
        status = self._status[:size]
        labelled = tuple(item for item, label in self._labels.items() if label is not None)
        skipped = frozenset(np.flatnonzero(status == _SKIPPED).tolist())
        return ItemsBefore(len(status), labelled, np.flatnonzero(status != _LABELLED), skipped)

    def update(self, item: int, deciding: Event | None, *, skipped: bool) -> None:
        """Set the label that counts, and its place in the order.

        Args:
            item: The item.
            deciding: The event whose label counts, or None.
            skipped: Whether somebody has skipped the item, if it has no label.
        """
        before, status = self._status[item], _LABELLED if deciding is not None else _SKIPPED if skipped else _OPEN
        label = None if deciding is None else deciding.data["label"]
        if before == _LABELLED:
            self._counts[self._labels[item]] -= 1  # type: ignore[index]
        if status != before:
            self._labels.pop(item, None)
        if status != _OPEN:
            self._labels[item] = label
        if label is not None:
            self._counts[label] += 1
        self._status[item] = status
        if deciding is not None and deciding.data.get("saw_prediction"):
            self.informed.add(item)
        else:
            self.informed.discard(item)

        correction = None if deciding is None else deciding.data.get("correction")
        if correction:
            self.corrections[item] = correction
        else:
            self.corrections.pop(item, None)

    def confirm(self, item: int, label: Label, person: str) -> None:
        """Record that a label is correct, and who says so; this does not hold for other labels of the item."""
        self._confirmed[item] = label, person

    def extend(self, size: int) -> None:
        """Add items up to a number. Items that existed when the project was opened are included already."""
        missing = size - len(self._status)
        if missing > 0:
            self._status = np.concatenate([self._status, np.full(missing, _OPEN, dtype=_STATUS_TYPE)])

    def change_classes(self, change: ClassChange) -> None:
        """Give all labels their new names."""
        self._labels = {item: change.answer(label) for item, label in self._labels.items()}
        self._counts = Counter(label for label in self._labels.values() if label is not None)
        self._confirmed = {
            item: (change.label(str(label)), person) for item, (label, person) in self._confirmed.items()
        }
