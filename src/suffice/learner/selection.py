"""Which items to label next: picks of the acquisition, with a share of items drawn at random in between."""

import math
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from suffice.acquisition import Indices, RandomOrder
from suffice.arguments import real
from suffice.learner.backend import Backend

# Products of a share and a count may be below a whole number by rounding.
_ROUNDING: Final = 1e-9


class Picks(NamedTuple):
    """Items to label next.

    Attributes:
        indices: The items, in order.
        random: Whether each was drawn at random from the unlabelled items.
    """

    indices: Indices
    random: NDArray[np.bool_]


def acquisition_and_share(
    backend: type[Backend], acquisition: str | None, share: Any, *, screening: bool = False
) -> tuple[str, float]:
    """Return the name of the acquisition and the share of random labels of a run, with the defaults of the backend.

    An acquisition that is named is used alone unless a share is given. A screening asks for relevant items first, and
    for no random ones.

    Raises:
        InvalidValueError: The share is not a number from 0 to 1.
    """
    if screening and acquisition is None:
        acquisition = "relevance"
    if share is None:
        return acquisition or backend.default_acquisition, 0.0 if acquisition else backend.default_random_share
    checked = real(share, "random_share", "from 0 to 1", lambda x: 0.0 <= x <= 1.0)
    return acquisition or backend.default_acquisition, checked


class ItemSelection:
    """Mixes the picks of a backend with items drawn at random from the unlabelled ones.

    After the initial labels, label number ``k`` (from 1) is a random one where ``floor(k share)`` is larger than
    ``floor((k - 1) share)``: with a share of 0.2 every fifth label. The random items follow one permutation of the
    pool, which does not depend on any label. So, given the items that are unlabelled, each of them is equally likely to
    be the next random item.

    Args:
        backend: Chooses the other items.
        size: Number of items in the pool.
        share: Share of random labels, 0 to 1.
        rng: Source of the permutation; used only if the share is above 0.
        all_random: Whether the picks of the backend are random ones too.
    """

    def __init__(
        self, backend: Backend, size: int, share: float, rng: np.random.Generator, *, all_random: bool = False
    ) -> None:
        self.backend, self._share, self.all_random = backend, share, all_random
        self._order = RandomOrder(size, rng) if share > 0.0 else None
        self._count = 0
        self._held = np.zeros(0, dtype=np.intp)

    def propose(self, most: int) -> Picks:
        """The next picks, as many as do not depend on the labels to come: at least 1, at most ``most``."""
        if len(self._held):
            return self.batch(1)
        if self._order is None:
            return self._chosen(self.backend.propose(most))
        if self._is_random(self._count):
            return Picks(self._order.batch(1), np.ones(1, dtype=bool))
        until = next((k for k in range(1, most) if self._is_random(self._count + k)), most)
        return self._chosen(self.backend.propose(until))

    def batch(self, size: int) -> Picks:
        """Picks to be labelled together; fewer than ``size`` only where the pool ends."""
        if self._order is None:
            return self._chosen(self._not_held(self.backend.batch, size))
        turns = np.array([self._is_random(self._count + k) for k in range(size)])
        drawn = self._not_held(self._order.batch, int(turns.sum()))
        if len(drawn) == size:
            return Picks(drawn, np.ones(size, dtype=bool))
        # The backend does not know of the random items, so it may pick some of them too.
        picked = self._not_held(self.backend.batch, size)
        picked = picked[~np.isin(picked, drawn)]
        size = min(size, len(drawn) + len(picked))
        # Where the pool ends there may be more turns, or more other places, than items for them.
        random = turns[:size]
        extra = int(random.sum()) - len(drawn)
        if extra > 0:
            random[np.flatnonzero(random)[-extra:]] = False
        lack = size - int(random.sum()) - len(picked)
        if lack > 0:
            random[np.flatnonzero(~random)[-lack:]] = True
        indices = np.empty(size, dtype=np.intp)
        indices[random] = drawn[: int(random.sum())]
        indices[~random] = picked[: size - int(random.sum())]
        return Picks(indices, random | self.all_random)

    @property
    def draws_at_random(self) -> bool:
        """Whether some or all labels after the initial ones are random."""
        return self._order is not None or self.all_random

    @property
    def count(self) -> int:
        """Labels after the initial ones."""
        return self._count

    def resume(self, count: int) -> None:
        """Continue after so many labels that came after the initial ones; for a share of 0."""
        self._count = count

    def begin(self, indices: Indices) -> None:
        """Leave out the items of the initial labels."""
        self.skip(indices)

    def take(self, indices: Indices) -> None:
        """Leave out items that are labelled now."""
        self._count += len(indices)
        self.skip(indices)

    def skip(self, indices: Indices) -> None:
        """Leave out items that will have no label."""
        if self._order is not None:
            self._order.skip(indices)

    def hold(self, indices: Indices) -> None:
        """Do not pick these items for now, and no others than these: an empty array ends it."""
        self._held = np.asarray(indices, dtype=np.intp)

    def _not_held(self, picks: Callable[[int], Indices], size: int) -> Indices:
        """The first picks that are not held back; fewer than ``size`` only where the pool ends."""
        wanted = size
        while True:
            picked = np.asarray(picks(wanted))
            if not len(self._held):
                return picked
            free = picked[~np.isin(picked, self._held)]
            if len(free) >= size or len(picked) < wanted:
                return free[:size]
            wanted *= 2

    def _is_random(self, position: int) -> bool:
        """Whether the label at a position after the initial ones, from 0, is a random one."""
        before, after = (math.floor(self._share * count + _ROUNDING) for count in (position, position + 1))
        return after > before

    def _chosen(self, indices: Indices) -> Picks:
        return Picks(np.asarray(indices), np.full(len(indices), self.all_random))
