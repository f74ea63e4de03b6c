"""A pool of classes scored anew for every pick, where no bound on how scores move is known."""

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from suffice.engines.pool import Indices
from suffice.special import Floats

_ROWS: Final = 4096


class ScoredPool:
    """A pool in memory, scored as a whole at every pick.

    Args:
        features: ``m x J``.
        score: Of a posterior and the features of some rows, how useful the label of each would be.
    """

    def __init__(self, features: Floats, score: Callable[[Any, Floats], Floats]) -> None:
        self._features, self._score = features, score
        self._free = np.ones(len(features), dtype=bool)

    def nearest(self, posterior: Any, n: int) -> Indices:
        """The ``n`` points of largest score, largest first; ties to the lowest index."""
        rows = np.flatnonzero(self._free)
        parts = [rows[k : k + _ROWS] for k in range(0, len(rows), _ROWS)]
        score = np.concatenate([np.zeros(0), *(self._score(posterior, self._features[part]) for part in parts)])
        # Scores equal up to rounding are ties.
        best = float(score.max(initial=0.0)) or 1.0
        order = np.argsort(-np.round(score / best, 11), kind="stable")
        return rows[order[:n]]

    def take(self, indices: Indices) -> None:
        """Leave points out from now on."""
        self._free[indices] = False
