r"""Krippendorff's alpha: how far any number of people agree beyond chance, with missing opinions.

With :math:`m_u` opinions on item :math:`u`, :math:`N = \sum_u m_u` over the items with at least two, and the difference
:math:`\delta(x, y)` of two labels (1 for two classes, :math:`(x - y)^2` for two numbers),

.. math::

    \alpha = 1 - \frac{D_o}{D_e}, \qquad
    D_o = \frac{1}{N} \sum_u \frac{1}{m_u - 1} \sum_{i \ne j} \delta(x_{ui}, x_{uj}), \qquad
    D_e = \frac{1}{N (N - 1)} \sum_{x \ne y} \delta(x, y),

where the last sum is over all pairs of the :math:`N` opinions. It is 1 if all agree, and about 0 if labels do not
depend on the items.
"""

import math
from collections.abc import Sequence
from typing import Any, Final, Literal, NamedTuple

import numpy as np

from suffice.numerics import Floats

Level = Literal["nominal", "interval"]

#: Confidence of the intervals.
CONFIDENCE: Final = 0.95
# Items that are added for the interval: so many on which people differ, and so many on which they agree.
_ADDED: Final = 2.0
# With fewer items on which people differ, the size of their differences is not taken from these alone.
_FEW: Final = 3


class Reliability(NamedTuple):
    """Krippendorff's alpha with an interval.

    Attributes:
        alpha: Its value, at most 1.
        low: Lower limit of the interval (95 % confidence), at least -1.
        high: Upper limit.
        items: Items with at least two opinions.
        opinions: Opinions on these items.
        differ: Number of these items on which not all opinions are the same.
    """

    alpha: float
    low: float
    high: float
    items: int
    opinions: int
    differ: int


class _Terms(NamedTuple):
    """Sums over the opinions of each item, and their expectation.

    Attributes:
        counts: Number of opinions of each item.
        differences: Mean difference of two opinions of each item, times the number of its opinions.
        distances: Sum over the opinions of each item of the mean difference to all opinions.
        spread: Mean difference of two opinions of any items, each paired with itself too.
        step: Mean difference of two opinions that are not the same.
    """

    counts: Floats
    differences: Floats
    distances: Floats
    spread: float
    step: float


def krippendorff_alpha(opinions: Sequence[Sequence[Any]], level: Level) -> Reliability | None:
    """Krippendorff's alpha with an interval for 95 % confidence.

    The interval is that of a ratio of two means over independent items, with the t distribution. For classes, and for
    numbers as one of two, four items are added before: two on which people differ, and two on which they agree, so that
    it is not a single point if few or no items differ. For numbers it is joined with the interval without them, whose
    lower limit is that of log(1 - alpha), because squared differences are skewed.

    Args:
        opinions: The labels of each item by different people. Items with fewer than two are left out.
        level: ``"nominal"`` for classes, ``"interval"`` for numbers.

    Returns:
        None if no item has two opinions, or all opinions are the same: there is nothing to compare with then.

    Reference: [Krippendorff2011].

    Examples:
        >>> found = krippendorff_alpha([["a", "a"], ["a", "b"], ["b", "b"], ["b", "b", "b"], ["a"]], "nominal")
        >>> round(found.alpha, 3), found.items, found.opinions, found.differ
        (0.556, 4, 9, 1)
    """
    compared = [list(each) for each in opinions if len(each) > 1]
    if len({each for labels in compared for each in labels}) < 2:
        return None
    measure = _nominal_terms if level == "nominal" else _interval_terms
    terms = measure(compared)
    differ, total = int(np.count_nonzero(terms.differences)), float(terms.counts.sum())
    expected = terms.spread * total / (total - 1.0)
    value = 1.0 - float(terms.differences.sum()) / total / expected
    limits = [_limits_with_added_items(terms, compared if level == "nominal" else [], differ)]
    if level == "interval" and differ and len(compared) > 2:
        limits.append(_limits(terms))
    low, high = min(each[0] for each in limits), max(each[1] for each in limits) if differ else 1.0
    return Reliability(value, max(-1.0, min(low, value)), min(1.0, max(high, value)), len(compared), int(total), differ)


def _nominal_terms(opinions: Sequence[Sequence[Any]]) -> _Terms:
    table = _class_counts(opinions)
    counts, shares = table.sum(axis=1), table.sum(axis=0) / table.sum()
    differences = (counts**2 - (table**2).sum(axis=1)) / (counts - 1.0)
    return _Terms(counts, differences, table @ (1.0 - shares), float(shares @ (1.0 - shares)), 1.0)


def _class_counts(opinions: Sequence[Sequence[Any]]) -> Floats:
    codes = {name: at for at, name in enumerate(dict.fromkeys(each for labels in opinions for each in labels))}
    table = np.zeros((len(opinions), len(codes)))
    for row, labels in zip(table, opinions, strict=True):
        for each in labels:
            row[codes[each]] += 1.0
    return table


def _interval_terms(opinions: Sequence[Sequence[Any]]) -> _Terms:
    counts = np.array([len(labels) for labels in opinions], dtype=np.float64)
    values = np.array([float(each) for labels in opinions for each in labels])
    # Alpha does not depend on the units; squares and sums of large numbers could overflow.
    values /= np.abs(values).max()
    values -= values.mean()
    values /= np.abs(values).max()
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]]).astype(np.intp)
    means = np.repeat(np.add.reduceat(values, starts) / counts, counts.astype(np.intp))
    within = np.add.reduceat((values - means) ** 2, starts)
    variance = float((values**2).mean())
    distances = np.add.reduceat(values**2, starts) + counts * variance
    # Differences that are zero up to rounding are zero.
    same = np.array([len(set(labels)) == 1 for labels in opinions])
    differences = np.where(same, 0.0, 2.0 * within * counts / (counts - 1.0))
    shares = np.unique(values, return_counts=True)[1] / len(values)
    return _Terms(counts, differences, distances, 2.0 * variance, 2.0 * variance / float(shares @ (1.0 - shares)))


def _limits_with_added_items(terms: _Terms, classes: Sequence[Sequence[Any]], differ: int) -> tuple[float, float]:
    """Limits after four items were added, each with the mean number of opinions.

    For classes, those on which people agree are spread equally over the classes, so that a rare class is not taken for
    rarer than it may be. ``classes`` is empty for numbers.
    """
    mean_count = float(terms.counts.mean())
    size = float(terms.differences[terms.differences > 0.0].mean()) if differ else 0.0
    if differ < _FEW:
        # One opinion differs from all others.
        size = max(size, 2.0 * terms.step)
    n, total = len(terms.counts) + 2.0 * _ADDED, float(terms.counts.sum()) + 2.0 * _ADDED * mean_count
    if classes:
        table = _class_counts(classes)
        sums, kinds = table.sum(axis=0), table.shape[1]
        shares = (sums + _ADDED * mean_count * (1.0 / kinds + sums / sums.sum())) / total
        spread, distances = float(shares @ (1.0 - shares)), table @ (1.0 - shares)
        agreeing, weights = mean_count * (1.0 - shares), np.full(kinds, _ADDED / kinds)
    else:
        spread, distances = terms.spread, terms.distances
        agreeing, weights = np.array([mean_count * spread]), np.array([_ADDED])
    ratio = (float(terms.differences.sum()) + _ADDED * size) / total / (spread * total / (total - 1.0))
    own = terms.differences - ratio * (2.0 * distances - spread * terms.counts)
    squares = float(own @ own) + _ADDED * (size - ratio * spread * mean_count) ** 2
    squares += float(weights @ (ratio * (2.0 * agreeing - spread * mean_count)) ** 2)
    error = math.sqrt(squares * n / (n - 1.0)) / total / spread
    reach = _quantile(n - 1.0) * error
    return 1.0 - ratio - reach, 1.0 - ratio + reach


def _limits(terms: _Terms) -> tuple[float, float]:
    """Limits without added items: below by the logarithm of 1 - alpha, above by alpha."""
    n, total = len(terms.counts), float(terms.counts.sum())
    ratio = float(terms.differences.sum()) / total / terms.spread
    own = terms.differences - ratio * (2.0 * terms.distances - terms.spread * terms.counts)
    reach = _quantile(n - 1.0) * math.sqrt(float(own @ own) * n / (n - 1.0)) / total / terms.spread
    return 1.0 - ratio * math.exp(min(reach / ratio, 50.0)), 1.0 - ratio + reach


def _quantile(freedom: float) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(freedom, 0.5 + 0.5 * CONFIDENCE))
