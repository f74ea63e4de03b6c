"""The random sample over which a monitor averages its statistics of a large pool."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from suffice.acquisition import Indices
from suffice.learner.step_inputs import StopSet

#: The largest pool whose statistics are computed over all unlabelled items.
WHOLE_POOL: Final = 100_000
#: Number of items of the sample of a larger pool.
SAMPLE_ITEMS: Final = 2000
# If a smaller share of the sample is unlabelled, few items of the pool are, and all of them are used.
_LEAST_SHARE: Final = 0.1


@dataclass(frozen=True, eq=False)
class PoolSample:
    """The items over which averages and counts of a pool are computed; statistics of all items if there are none.

    Attributes:
        size: Number of items of the pool.
        items: The sample, rising: a stop set of 2000 items, of which the unlabelled ones are used. Empty for a pool of
            at most 100,000 items.
    """

    size: int
    items: Indices

    @classmethod
    def draw(cls, size: int, seed: int, *, wanted: bool) -> "PoolSample":
        """Draw the sample, which follows from the size of the pool and the seed.

        Args:
            size: Number of items of the pool.
            seed: The seed.
            wanted: Whether it is needed.
        """
        drawn = wanted and size > WHOLE_POOL
        return cls(size, StopSet.draw(size, SAMPLE_ITEMS, seed=seed).indices if drawn else np.zeros(0, dtype=np.intp))

    def places(self, labelled: Collection[int]) -> Indices | None:
        """Positions in the sample of its unlabelled items; None if all unlabelled items of the pool are to be used.

        Args:
            labelled: The labelled items.
        """
        if not len(self.items):
            return None
        taken = np.isin(self.items, np.fromiter(labelled, dtype=np.intp, count=len(labelled)))
        left = np.flatnonzero(~taken)
        return left if len(left) >= _LEAST_SHARE * len(self.items) else None

    def codes_of_sample(self, codes: Any) -> Any:
        """Codes of the items of the sample from those of the sample or of the whole pool."""
        return codes[self.items] if len(codes) == self.size else codes

    def codes_of_all(self, codes: Any) -> Any:
        """Codes of all items from those of the sample or of the whole pool; -1 for items without one."""
        if len(codes) == self.size:
            return codes
        found = np.full(self.size, -1)
        found[self.items] = codes
        return found
