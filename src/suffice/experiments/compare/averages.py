"""Averages in which every data set weighs the same, and how sure they are."""

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.arguments import whole
from suffice.special import Floats

# Sums of weights that should be equal may differ by this much.
_SHARE_ROUNDING = 1e-12


def equal_weights(groups: Sequence[Hashable]) -> Floats:
    """Weights that add up to 1, the same for every group and the same within it.

    Examples:
        >>> equal_weights(["a", "a", "b"])
        array([0.25, 0.25, 0.5 ])
    """
    sizes = Counter(groups)
    return np.array([1.0 / (len(sizes) * sizes[group]) for group in groups])


def weighted_quantile(values: Any, weights: Any, share: float) -> float:
    """The value that a share of the weight lies at or below; half way to the next where that is exactly the share.

    With equal weights and a share of one half it is the usual median.

    Examples:
        >>> weighted_quantile([3.0, 1.0, 2.0], [0.25, 0.5, 0.25], 0.5), weighted_quantile([3.0, 1.0], [1, 1], 0.9)
        (1.5, 3.0)
    """
    order = np.argsort(values, kind="stable")
    sorted_values = np.asarray(values, dtype=np.float64)[order]
    below = np.cumsum(np.asarray(weights, dtype=np.float64)[order])
    below /= below[-1]
    at = int(np.argmax(below >= share - _SHARE_ROUNDING))
    exactly = abs(below[at] - share) <= _SHARE_ROUNDING and at + 1 < len(below)
    return float(sorted_values[at] if not exactly else 0.5 * (sorted_values[at] + sorted_values[at + 1]))


def mean_by_group(values: Any, groups: Sequence[Hashable]) -> Floats:
    """Means in which every group weighs the same, of those values that are there (not NaN), ``rows``.

    Args:
        values: ``rows x items``.
        groups: The group of each item.

    Examples:
        >>> mean_by_group([[1.0, 3.0, 6.0], [1.0, np.nan, 2.0]], ["a", "a", "b"])
        array([4. , 1.5])
    """
    table = np.asarray(values, dtype=np.float64)
    sums, counts = _by_group(table, np.unique(np.asarray(groups), return_inverse=True)[1])
    return _mean_of_means(sums, counts)


def resampled_means(
    values: Any, data: Sequence[Hashable], seeds: Sequence[Hashable], *, resamples: int = 1000, seed: int = 0
) -> Floats:
    """Means as :func:`mean_by_group` gives them, of runs drawn again with replacement: data sets, then seeds in each.

    All runs of a data set with the same seed are drawn together, since they share their data and first labels. Every
    row is averaged over the same drawn runs, so that differences between rows are paired.

    Args:
        values: ``rows x runs``, NaN where a row has no such run.
        data: Data set of each run.
        seeds: Seed of each run.
        resamples: How many times to draw.
        seed: Seed of the drawing.

    Returns:
        ``rows x resamples``; NaN where nothing that a row has was drawn.

    Examples:
        >>> resampled_means([[1.0, 1.0, 1.0]], ["a", "a", "b"], [0, 1, 0], resamples=3)
        array([[1., 1., 1.]])
    """
    table, rng = np.asarray(values, dtype=np.float64), np.random.default_rng(seed)
    names = list(dict.fromkeys(data))
    within = [list(dict.fromkeys(s for d, s in zip(data, seeds, strict=True) if d == name)) for name in names]
    most = max(map(len, within))
    places = np.array(
        [names.index(d) * most + within[names.index(d)].index(s) for d, s in zip(data, seeds, strict=True)]
    )
    sums, counts = (part.reshape(len(table), len(names), most) for part in _by_group(table, places, len(names) * most))
    means = np.empty((len(table), whole(resamples, "resamples", least=1)))
    for number in range(means.shape[1]):
        drawn = rng.integers(len(names), size=len(names))
        times = np.array([_times(len(within[d]), most, rng) for d in drawn])
        means[:, number] = _mean_of_means(
            np.einsum("rds,ds->rd", sums[:, drawn], times), np.einsum("rds,ds->rd", counts[:, drawn], times)
        )
    return means


def interval(resampled: Floats, share: float = 0.9) -> list[float] | None:
    """The middle of drawn means that holds a share of them; None if there are none (all are NaN).

    Examples:
        >>> [round(end, 6) for end in interval(np.arange(101.0))]
        [5.0, 95.0]
    """
    there = resampled[~np.isnan(resampled)]
    if not len(there):
        return None
    return [float(end) for end in np.quantile(there, [0.5 - share / 2.0, 0.5 + share / 2.0])]


def _times(size: int, most: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """How often each of ``size`` seeds comes when as many are drawn with replacement."""
    return np.bincount(rng.integers(size, size=size), minlength=most)


def _by_group(table: Floats, places: NDArray[np.intp], count: int | None = None) -> tuple[Floats, Floats]:
    """Sums and numbers of the values that are there, ``rows x groups``."""
    groups = int(places.max()) + 1 if count is None else count
    member = np.zeros((table.shape[1], groups))
    member[np.arange(table.shape[1]), places] = 1.0
    there = ~np.isnan(table)
    return np.where(there, table, 0.0) @ member, there @ member


def _mean_of_means(sums: Floats, counts: Floats) -> Floats:
    there = counts > 0
    means = np.divide(sums, counts, out=np.zeros_like(sums), where=there)
    groups = there.sum(axis=1)
    return np.asarray(np.divide(means.sum(axis=1), groups, out=np.full(len(sums), np.nan), where=groups > 0))
