"""The source of randomness of checks. It is separate from that of other choices, so that checks do not affect these."""

from secrets import randbits
from typing import Final

import numpy as np

#: Numbers of the random streams for checks, for the order of a running check, and for checks of projects.
CHECK_STREAM: Final = 18
RUNNING_STREAM: Final = 19
PROJECT_STREAM: Final = 13


def check_rng(seed: int | np.random.Generator | None, *stream: int) -> np.random.Generator:
    """The random generator of checks.

    Args:
        seed: With a number, the draws can be repeated. With a generator, they depend on its state. With None, they are
            different at each call, so that nobody can know the items of a check before it is drawn.
        *stream: Numbers that separate this generator from others with the same seed.
    """
    if isinstance(seed, np.random.Generator):
        return np.random.default_rng(seed.integers(0, 2**32, size=8))
    return np.random.default_rng([randbits(128) if seed is None else int(seed), *stream])
