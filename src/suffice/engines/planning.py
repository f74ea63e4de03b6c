"""Several picks by variance from one look at the pool, the same that a pick at a time would make."""

from typing import Protocol

import numpy as np

from suffice.engines.pool import Candidates, Indices
from suffice.models.latent import Block
from suffice.special import Floats


class Covariances(Protocol):
    """What planning needs of a posterior."""

    noise: float

    def whiten(self, features: Floats) -> Floats:
        """``W`` for some points."""

    def covariance(self, features: Floats, whitened: Floats) -> Floats:
        """Latent posterior covariance of some points."""


def plan(state: Covariances, candidates: Candidates, most: int) -> tuple[Indices, Block]:
    r"""Pick the largest variance again and again among the candidates, as long as no other point can be larger.

    The variance of a Gaussian model does not depend on the labels, and never grows. So inside the candidates' own
    posterior covariance the picks are made with no label known and no other point looked at: a pick stands while its
    variance is above the largest that the other points had at the start. Ties (up to rounding) go to the lowest index,
    as they would in the plain loop.

    Args:
        state: The posterior.
        candidates: The points of largest variance.
        most: Picks at most.

    Returns:
        The picks (at least one, if there is a candidate), in order, and these points as a block.

    Reference: [IshibashiHino2021] section 5.2, acquisition of models 1 and 3.
    """
    features = candidates.features
    whitened = state.whiten(features) if candidates.whitened is None else candidates.whitened
    covariance = state.covariance(features, whitened)
    indices, noise, tie = candidates.indices, state.noise, candidates.tie
    size = len(indices)
    most = min(most, size)
    variance = np.diag(covariance).copy()
    rows = np.zeros((most, size))
    chosen: list[int] = []
    latent: list[float] = []
    while len(chosen) < most:
        best = float(variance.max())
        j = int(np.argmax(variance >= best - tie))
        if chosen and not _stands(best, int(indices[j]), candidates):
            break
        k = len(chosen)
        s = max(float(variance[j]), 0.0)
        row = (covariance[j] - rows[:k, j] @ rows[:k]) / np.sqrt(s + noise)
        rows[k] = row
        variance -= row * row
        variance[j] = -np.inf
        chosen.append(j)
        latent.append(s)
    lower = np.tril(rows[: len(chosen), chosen].T)
    lower[np.diag_indices(len(chosen))] = np.sqrt(np.array(latent) + noise)
    return indices[chosen], Block(features[chosen], whitened[:, chosen], lower, np.array(latent))


def _stands(best: float, index: int, candidates: Candidates) -> bool:
    if best > candidates.rest + candidates.tie:
        return True
    return best >= candidates.rest - candidates.tie and index < candidates.rest_index
