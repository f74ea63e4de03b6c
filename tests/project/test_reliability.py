"""Krippendorff's alpha against a published example and a direct computation over all pairs, and its interval."""

import itertools
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suffice.project.reliability import Level, krippendorff_alpha

# Four observers and twelve units; 0 is a missing value. Published: nominal .743, interval .849.
OBSERVERS = (
    (1, 2, 3, 3, 2, 1, 4, 1, 2, 0, 0, 0),
    (1, 2, 3, 3, 2, 2, 4, 1, 2, 5, 0, 3),
    (0, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, 0),
    (1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, 0),
)
UNITS = [[float(value) for value in unit if value] for unit in zip(*OBSERVERS, strict=True)]


def by_pairs(units: Sequence[Sequence[float]], level: Level) -> float:
    """Alpha from all ordered pairs, as it is defined."""

    def difference(one: float, other: float) -> float:
        return float(one != other) if level == "nominal" else (one - other) ** 2

    paired = [unit for unit in units if len(unit) > 1]
    total = sum(map(len, paired))
    values = list(itertools.chain(*paired))
    observed = sum(difference(*pair) / (len(unit) - 1) for unit in paired for pair in itertools.permutations(unit, 2))
    expected = sum(difference(*pair) for pair in itertools.permutations(values, 2)) / (total - 1)
    return 1.0 - observed / expected


@pytest.mark.parametrize(("level", "published"), [("nominal", 0.743), ("interval", 0.849)])
def test_the_published_example(level: Level, published: float) -> None:
    found = krippendorff_alpha(UNITS, level)
    assert found is not None
    assert round(found.alpha, 3) == published
    assert (found.items, found.opinions, found.differ) == (11, 40, 3)


@settings(max_examples=50)
@given(st.lists(st.lists(st.sampled_from([0.0, 1.0, 2.5, 7.0]), max_size=5), max_size=8), st.permutations(range(4)))
def test_all_pairs_give_the_same_in_any_order(units: list[list[float]], order: list[int]) -> None:
    different = len({each for unit in units if len(unit) > 1 for each in unit}) > 1
    for level in ("nominal", "interval"):
        found = krippendorff_alpha(units, level)
        assert (found is not None) == different
        if found is None:
            continue
        assert found.alpha == pytest.approx(by_pairs(units, level), abs=1e-12)
        assert -1.0 <= found.low <= max(found.alpha, -1.0)
        assert found.alpha <= found.high <= 1.0
        turned = [[unit[at] for at in order if at < len(unit)] + unit[4:] for unit in reversed(units)]
        again = krippendorff_alpha(turned, level)
        assert again is not None
        assert again[:3] == pytest.approx(found[:3], abs=1e-9)


def test_the_units_of_numbers_do_not_matter() -> None:
    found = krippendorff_alpha(UNITS, "interval")
    for scale, offset in ((1e-200, 0.0), (1e290, 0.0), (-3.0, 1000.0)):
        again = krippendorff_alpha([[scale * each + offset for each in unit] for unit in UNITS], "interval")
        assert again is not None
        assert found is not None
        assert again[:3] == pytest.approx(found[:3], rel=1e-9)


@pytest.mark.parametrize("level", ["nominal", "interval"])
def test_few_differences_give_no_false_certainty(level: Level) -> None:
    same = [[1.0, 1.0]] * 10 + [[2.0, 2.0]] * 10
    found = krippendorff_alpha(same, level)
    assert found is not None
    # Without a difference on 20 items, up to 16.8 % may differ (one in forty), which is an alpha of 1 - 0.168 / 0.5.
    assert (found.alpha, found.high, found.differ) == (1.0, 1.0, 0)
    assert found.low < 0.9
    if level == "nominal":
        assert found.low < 1.0 - 0.1684 / 0.5
    one = krippendorff_alpha([*same[1:], [1.0, 2.0]], level)
    assert one is not None
    assert one.low < found.low
    assert one.high - one.low > 0.3
    # Of a class that one item has, the agreement is hardly known.
    rare = krippendorff_alpha([[1.0, 1.0]] * 19 + [[2.0, 2.0]], level)
    assert rare is not None
    assert rare.low < 0.5
    assert krippendorff_alpha([[1.0, 1.0]] * 20, level) is None
    assert krippendorff_alpha([[1.0]] * 20, level) is None


@pytest.mark.parametrize(("shares", "alpha"), [((0.5, 0.5), 0.8), ((0.9, 0.1), 0.2), ((0.2,) * 5, 0.95)])
def test_the_interval_contains_the_alpha_of_the_population(shares: tuple[float, ...], alpha: float) -> None:
    # A label is the true class with probability sqrt(alpha), and otherwise drawn from the shares: alpha is exact.
    rng, runs, n = np.random.default_rng(0), 150, 40
    contained = 0
    for _ in range(runs):
        truth, drawn = rng.choice(len(shares), n, p=shares), rng.choice(len(shares), (n, 3), p=shares)
        labels = np.where(rng.random((n, 3)) < np.sqrt(alpha), truth[:, None], drawn)
        known = rng.random((n, 3)) < 0.85
        found = krippendorff_alpha([row[keep].tolist() for row, keep in zip(labels, known, strict=True)], "nominal")
        contained += found is not None and found.low <= alpha <= found.high
    # Of 150 runs with 93 %, fewer than 131 contain it once in a hundred times.
    assert contained >= 131
