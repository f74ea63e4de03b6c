"""Labels that a batch may get together: configurations, weighed by the samples of the posterior.

A configuration ``s`` of the labels of the picks has, with sample ``k``, the weight
``W[s, k] = p(w_k) p(y_1 = s_1 | w_k) p(y_2 = s_2 | w_k) ...``. What a further label tells about the parameters is
``sum_s m_s I_s``: the mass of a configuration times the mutual information under its posterior of the samples. Three
facts about it do all the work here:

* ``I_s`` is at most ``min(log C, H[w | s])``, whatever the candidate; so a configuration's *worth*, its mass times
  that, says what is lost without it.
* The sum is linear in configurations; so any random choice among them with weights that are right on average leaves it
  right on average.
* Merging configurations (adding their weights) can only raise it, for entropy is concave; so few merged ones give an
  upper bound for little work.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from suffice.acquisition.candidates import TINY, plogp
from suffice.acquisition.choosers import Indices
from suffice.special import Floats

# Part of the average worth that each unit of mass is given when configurations are drawn: without it, one whose
# posterior is nearly settled would be drawn rarely and then with a huge weight.
_DEFENSIVE: Final = 0.1
# Sizes of merged sets: the least, and from one to the next.
_LEAST_MERGED: Final = 32
_GROWTH: Final = 4


@dataclass(frozen=True)
class Configurations:
    """Configurations of the labels of some picks.

    Attributes:
        rows: Weight of configuration and sample together, ``S x K``; masses are above 0.
        exact: Whether none was left to chance.

    Examples:
        >>> pick, rng = np.array([[0.9, 0.1], [0.2, 0.8]]), np.random.default_rng(0)
        >>> Configurations.of_nothing(2).joined(pick, most=100, negligible=0.0, rng=rng).rows.round(2)
        array([[0.45, 0.1 ],
               [0.05, 0.4 ]])
    """

    rows: Floats
    exact: bool = True

    @classmethod
    def of_nothing(cls, samples: int) -> "Configurations":
        """The one configuration of no labels."""
        return cls(np.full((1, samples), 1.0 / samples))

    def joined(self, pick: Floats, *, most: int, negligible: float, rng: np.random.Generator) -> "Configurations":
        """Configurations with one label more, at most ``most`` of them.

        Left out are those worth no more than ``negligible`` nats together. Where more than ``most`` remain, the
        worthiest stay as they are and the others are drawn, so that every weight is right on average.

        Args:
            pick: Probabilities of the label under each sample, ``K x C``.
            most: How many there may be.
            negligible: What may be lost.
            rng: Draws.

        Reference: [FearnheadClifford2003], for how they are drawn.
        """
        mass = self.rows @ pick
        # Mass times entropy of the posterior, by m log m - sum_k w log w with w = W p: no S C x K array is needed.
        doubt = plogp(mass) - plogp(self.rows) @ pick - self.rows @ plogp(pick)
        worth = np.maximum(np.minimum(doubt, mass * np.log(pick.shape[1])), 0.0).ravel()
        ordered = np.sort(worth)
        lost = int(np.searchsorted(np.cumsum(ordered), negligible, side="right"))
        if lost == len(ordered):
            return Configurations(self.rows[:0], self.exact)
        kept = np.flatnonzero((worth >= ordered[lost]) & (mass.ravel() > 0.0))
        if len(kept) <= most:
            return Configurations(self._children(kept, pick), self.exact)
        masses, worths = mass.ravel()[kept], worth[kept]
        chances = worths + _DEFENSIVE * masses * (worths.sum() / masses.sum())
        drawn, factors = resampled(chances, most, rng)
        return Configurations(self._children(kept[drawn], pick) * factors[:, None], exact=False)

    def _children(self, which: Indices, pick: Floats) -> Floats:
        parents, labels = np.divmod(which, pick.shape[1])
        return np.asarray(self.rows[parents] * pick.T[labels])

    def doubt(self) -> float:
        """What there is left to know about the samples once the labels are known, ``H[w | y]``, in nats."""
        return max(float(plogp(self.rows.sum(axis=1)).sum() - plogp(self.rows).sum()), 0.0)

    def merged(self) -> list[Floats]:
        """Merged configurations in growing numbers, ``G x K`` each; none where there are few to begin with.

        Each is put together with those that make the same sample likeliest, or the same two; what loses most by it
        stays alone. The loss is mass times divergence from the posterior of all that make the same sample likeliest.
        """
        count, samples = self.rows.shape
        size, sets = max(_LEAST_MERGED, samples + samples // 2), []
        if 2 * size > count:
            return []
        first = self.rows.argmax(axis=1)
        others = self.rows.copy()
        np.put_along_axis(others, first[:, None], -1.0, axis=1)
        _, pair = np.unique(first * samples + others.argmax(axis=1), return_inverse=True)
        loss = _loss(self.rows, first)
        worst, dearest = np.argsort(-loss, kind="stable"), np.argsort(-np.bincount(pair, loss), kind="stable")
        while 2 * size <= count:
            # Numbers of groups: samples first, then pairs of them, then single configurations.
            room = size - samples
            taken = dearest[: room // 2]
            alone = worst[: room - len(taken)]
            groups = np.where(np.isin(pair, taken), samples + pair, first)
            groups[alone] = samples + len(dearest) + np.arange(len(alone))
            sets.append(_summed(self.rows, groups))
            size *= _GROWTH
        return sets


def resampled(chances: Floats, size: int, rng: np.random.Generator) -> tuple[Indices, Floats]:
    r"""Choose about ``size`` of more items, each with a factor that is 1 on average over the draws.

    With :math:`\kappa` such that :math:`\sum_i \min(1, c_i / \kappa)` is ``size``, items of
    :math:`c_i \ge \kappa` stay, with factor 1; of the others, laid out along a line by their chances, one is drawn in
    every stretch of length :math:`\kappa`, with factor :math:`\kappa / c_i`.

    Deviation: the draws of the paper share one random number; here each stretch has its own, for the children of
    configurations repeat with a period, and equal steps fall in with it.

    Args:
        chances: Above 0.
        size: How many; fewer than there are items.
        rng: Draws.

    Returns:
        Indices in increasing order, and factors.

    Reference: [FearnheadClifford2003], the optimal resampling.

    Examples:
        >>> items, factors = resampled(np.array([8.0, 1.0, 1.0, 1.0, 1.0]), 3, np.random.default_rng(0))
        >>> items, factors
        (array([0, 2, 3]), array([1., 2., 2.]))
    """
    ordered = np.sort(chances)[::-1]
    after = np.cumsum(ordered[:0:-1])[::-1][:size]
    # c_i (size - i) < c_i + c_(i+1) + ...: from here on, chances are below kappa.
    first = int(np.argmax(ordered[:size] * np.arange(size - 1, -1, -1) < after))
    light = np.flatnonzero(chances <= ordered[first])
    drawing = size - (len(chances) - len(light))
    ends = np.cumsum(chances[light])
    points = (np.arange(drawing) + rng.random(drawing)) * (ends[-1] / drawing)
    times = np.bincount(np.searchsorted(ends[:-1], points, side="right"), minlength=len(light))
    factors = np.ones(len(chances))
    factors[light] = times * (ends[-1] / drawing) / chances[light]
    chosen = np.flatnonzero(factors)
    return chosen, factors[chosen]


def _loss(rows: Floats, groups: Indices) -> Floats:
    """Mass of each configuration times the divergence of its posterior from that of its group, numbered by sample."""
    sums = np.zeros((rows.shape[1], rows.shape[1]))
    np.add.at(sums, groups, rows)
    shares = sums / np.maximum(sums.sum(axis=1, keepdims=True), TINY)
    return np.asarray(
        plogp(rows).sum(axis=1) - plogp(rows.sum(axis=1)) - (rows * np.log(shares + TINY)[groups]).sum(axis=1)
    )


def _summed(rows: Floats, groups: Indices) -> Floats:
    order = np.argsort(groups, kind="stable")
    starts = np.flatnonzero(np.diff(groups[order], prepend=-1))
    return np.asarray(np.add.reduceat(rows[order], starts, axis=0))
