"""The labels of a session: which items are learned, random, skipped, or held back by a check."""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from suffice.acquisition import Indices
from suffice.saved_state import plain_value

# Status of an item.
UNLABELLED: Final = 0
#: The item has a label: the model has learned it, or will learn it when labelling continues after a check.
LABELLED: Final = 1
SKIPPED: Final = 2
#: The item is labelled for a running check, and never learned.
SAMPLED: Final = 3
#: Maximal number of items over which the inputs of rules about unlabelled items are averaged, for each task.
RULE_ITEMS: Final = {"classification": 500, "regression": 1000}


class SessionLabels:
    """The labels of a session.

    Args:
        size: Number of items of the pool.

    Attributes:
        version: Number of times that the model has changed.
        learned: Labels that the model has learned, by item, in the order in which it learned them.
        checked: Labels of a completed check that the model has not learned yet.
        sampled: Labels of a running check, which the model never learns.
        checked_random: Items of ``checked`` that were drawn at random.
        random: Learned items that were drawn at random from the unlabelled ones, in the order of their labels.
        status: Status of each item: 0 unlabelled, 1 labelled, 2 skipped, 3 labelled for a running check. It is
            changed by :meth:`mark` only.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.version = 0
        self.learned: dict[int, Any] = {}
        self.checked: dict[int, Any] = {}
        self.checked_random: list[int] = []
        self.sampled: dict[int, Any] = {}
        self.random: list[int] = []
        self.status: NDArray[np.int8] = np.zeros(size, dtype=np.int8)
        # Kept up to date, because counting reads the status of the whole pool.
        self._left = size
        # A fixed order of the items, drawn at first use: estimates are averaged over the first unlabelled ones.
        self._order: Indices | None = None

    @property
    def everything(self) -> dict[int, Any]:
        """The label of each item, including labels of checks."""
        return {**self.learned, **self.checked, **self.sampled}

    @property
    def without_sample(self) -> dict[int, Any]:
        """The label of each item, without those of a running check."""
        return {**self.learned, **self.checked}

    def of_class(self, class_name: Any) -> int:
        """Number of labels of a class, including labels of checks."""
        return sum(bool(label == class_name) for label in self.everything.values())

    @property
    def unlearned_random(self) -> dict[int, Any]:
        """Labels of random items of complete checks that the model has not learned.

        Those of a running check are not among them: nothing but its own evaluation may depend on them.
        """
        return {item: self.checked[item] for item in self.checked_random if item in self.checked}

    @property
    def left(self) -> int:
        """Number of items that are neither labelled nor skipped."""
        return self._left

    def mark(self, items: Any, status: Any) -> None:
        """Set the status of items.

        Args:
            items: Their indices.
            status: The status of all of them, or one of each.
        """
        changed = np.asarray(items, dtype=np.intp)
        once = np.unique(changed)
        before = np.count_nonzero(self.status[once])
        self.status[changed] = status
        self._left += int(before - np.count_nonzero(self.status[once]))

    @property
    def left_items(self) -> Indices:
        """Items that are neither labelled nor skipped, in rising order."""
        return np.flatnonzero(self.status == UNLABELLED)

    @property
    def unlabelled(self) -> Indices:
        """Items that a check is drawn from: those that are not labelled, in rising order; skipped items included."""
        return np.flatnonzero(self.status != LABELLED)

    @property
    def skipped(self) -> list[int]:
        """Skipped items."""
        return np.flatnonzero(self.status == SKIPPED).tolist()

    def add(self, items: Iterable[int], labels: Iterable[Any], random: Iterable[int] = ()) -> None:
        """Add labels that the model learns.

        Args:
            items: The items.
            labels: Their labels.
            random: Those of the items that were drawn at random.
        """
        added = {int(item): label for item, label in zip(items, labels, strict=True)}
        self.mark(list(added), LABELLED)
        self.learned.update(added)
        self.random.extend(int(item) for item in random)
        for item in added:
            self.checked.pop(item, None)

    def add_checked(self, labels: Mapping[int, Any], random: Iterable[int]) -> None:
        """Add labels of a check that the model has not learned.

        Args:
            labels: The labels by item.
            random: Those of the items that were drawn at random.
        """
        self.checked.update(labels)
        self.checked_random.extend(item for item in random if item in labels)
        self.mark(list(labels), LABELLED)

    def replace(self, learned: Mapping[int, Any], random: Iterable[int]) -> None:
        """Replace all learned labels, for a loop that passes all of them each time.

        Args:
            learned: All labels by item.
            random: Those of the items that were drawn at random.
        """
        self.mark(list(self.learned), UNLABELLED)
        self.learned = dict(learned)
        self.random = list(random)
        self.checked = {item: label for item, label in self.checked.items() if item not in self.learned}
        self.mark([*self.learned, *self.checked], LABELLED)

    def undo(self, items: Indices, before: NDArray[np.int8], random: int) -> None:
        """Remove the last labels, because they could not be learned.

        Args:
            items: Their items.
            before: The status of the items before.
            random: Number of them that were drawn at random.
        """
        for item in items.tolist():
            del self.learned[item]
        del self.random[len(self.random) - random :]
        self.mark(items, before)

    def extend(self, more: int) -> None:
        """Add unlabelled items at the end of the pool. A guarantee of an earlier check does not cover them.

        Args:
            more: How many.
        """
        self.size += more
        self.status = np.append(self.status, np.zeros(more, dtype=np.int8))
        self._left += more
        self.version, self._order = self.version + 1, None

    def some_unlabelled(self, most: int) -> Indices:
        """Items without a label over which estimates are averaged: the first of a fixed order, in rising order.

        The order does not depend on a seed, so that all loops with the same labels use the same items.

        Args:
            most: Maximal number of items.
        """
        if self._order is None:
            self._order = np.random.default_rng(0).permutation(self.size)
        order = self._order
        return np.sort(order[self.status[order] != LABELLED][:most])

    def state_dict(self) -> dict[str, Any]:
        """The labels as JSON values."""
        return {
            "learned": [[item, plain_value(label)] for item, label in self.learned.items()],
            "checked": [[item, plain_value(label)] for item, label in self.checked.items()],
            "checked_random": [item for item in self.checked_random if item in self.checked],
            "random": list(self.random),
            "skipped": self.skipped,
            "sampled": np.flatnonzero(self.status == SAMPLED).tolist(),
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Restore :meth:`state_dict`."""
        self.learned, self.checked = (dict(map(tuple, state[name])) for name in ("learned", "checked"))
        self.checked_random = list(state.get("checked_random", ()))
        self.random = list(state["random"])
        self.mark([*self.learned, *self.checked], LABELLED)
        self.mark(state["skipped"], SKIPPED)
        self.mark(state["sampled"], SAMPLED)


@lru_cache(maxsize=8)
def sampled_items(size: int, most: int) -> Indices:
    """A fixed sample of the pool, in rising order, over whose unlabelled items the inputs of rules are averaged.

    Args:
        size: Number of items of the pool.
        most: Maximal number of items.
    """
    items = np.sort(np.random.default_rng(0).permutation(size)[:most])
    # The same array is returned again, because drawing it takes long for a large pool.
    items.setflags(write=False)
    return items
