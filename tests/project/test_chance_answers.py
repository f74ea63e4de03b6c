"""The test of answers by chance: its expectations, its false alarms exactly, and how soon it notices."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from suffice.project.chance_answers import (
    FALSE_ALARMS,
    LEAST_AGREEMENT,
    ComparedAnswer,
    chance_of,
    chance_test,
    false_alarms_of,
)


def factor(same: bool, chance: float) -> float:
    return math.exp(chance_test([ComparedAnswer(same, chance)]).evidence)


@pytest.mark.parametrize("chance", [0.01, 0.1, 0.5, 0.9, 0.99])
def test_the_evidence_is_a_supermartingale(chance: float) -> None:
    for agreement in (LEAST_AGREEMENT, 0.5, 0.8, 1.0):
        same = chance + agreement * (1.0 - chance)
        expected = same * factor(True, chance) + (1.0 - same) * factor(False, chance)
        assert expected == pytest.approx(1.0) if agreement == LEAST_AGREEMENT else expected < 1.0
    # By chance it grows on average.
    assert chance * math.log(factor(True, chance)) + (1.0 - chance) * math.log(factor(False, chance)) > 0.0


@pytest.mark.parametrize("classes", [2, 3, 10])
def test_false_alarms_at_every_look_are_enumerated(classes: int) -> None:
    """The exact probability that the evidence is ever large enough, within 1,500 comparisons with a look at each."""
    limit, chance, runs = false_alarms_of(0), 1.0 / classes, 1500
    same = chance + LEAST_AGREEMENT * (1.0 - chance)
    up, down = math.log(factor(False, chance)), math.log(factor(True, chance))
    # Probability of each number of the same labels, without an alarm so far.
    open_runs, alarms = np.zeros(runs + 1), 0.0
    open_runs[0] = 1.0
    counts = np.arange(runs + 1)
    for n in range(1, runs + 1):
        open_runs[1:] = open_runs[1:] * (1.0 - same) + open_runs[:-1] * same
        open_runs[0] *= 1.0 - same
        reached = (counts * down + (n - counts) * up >= -math.log(limit)) & (counts <= n)
        alarms += open_runs[reached].sum()
        open_runs[reached] = 0.0
    assert alarms + open_runs.sum() == pytest.approx(1.0)
    assert 0.3 * limit < alarms <= limit


def test_all_people_together_have_one_probability() -> None:
    shares = [Fraction(false_alarms_of(place)).limit_denominator(10**9) for place in range(500)]
    assert all(share > 0 for share in shares)
    assert sum(shares) < FALSE_ALARMS
    assert float(sum(shares)) == pytest.approx(FALSE_ALARMS, rel=1e-3)


def test_the_probability_by_chance_is_that_of_all_outcomes() -> None:
    chances = [0.5, 0.2, 0.9, 0.35]
    for count in range(5):
        expected = sum(
            math.prod(p if hit else 1.0 - p for p, hit in zip(chances, hits, strict=True))
            for hits in itertools.product([0, 1], repeat=4)
            if sum(hits) >= count
        )
        found = chance_test([ComparedAnswer(k < count, p) for k, p in enumerate(chances)])
        assert found.probability == pytest.approx(expected)
        assert found.expected == pytest.approx(sum(chances))
        assert (found.compared, found.same) == (4, count)


def answers(classes: int, agreement: float, n: int, rng: np.random.Generator) -> list[ComparedAnswer]:
    """The comparisons of a person with equally frequent classes, whose answers are otherwise drawn at random."""
    truth, drawn = rng.integers(classes, size=(2, n))
    given = np.where(rng.random(n) < agreement, truth, drawn)
    counts = np.zeros(classes, dtype=int)
    found = []
    for k, (one, other) in enumerate(zip(given.tolist(), truth.tolist(), strict=True)):
        found.append(ComparedAnswer(one == other, chance_of(int(counts[other]), k, classes)))
        counts[one] += 1
    return found


# Comparisons after which 90 % of such people are noticed, as measured with 400 runs.
@pytest.mark.parametrize(("classes", "enough"), [(2, 300), (5, 115)])
def test_answers_at_random_are_noticed_and_careful_ones_are_not(classes: int, enough: int) -> None:
    rng, limit = np.random.default_rng(1), false_alarms_of(0)
    noticed = sum(chance_test(answers(classes, 0.0, enough, rng)).is_alarm(limit) for _ in range(60))
    assert noticed >= 45
    # Hard items: agreement of 0.35, far from full.
    assert not any(chance_test(answers(classes, 0.35, enough, rng)).is_alarm(limit) for _ in range(60))


def test_always_the_same_class_is_chance_too() -> None:
    rng, found = np.random.default_rng(2), []
    for k, other in enumerate((rng.random(400) < 0.3).tolist()):
        found.append(ComparedAnswer(not other, chance_of(0 if other else k, k, 2)))
    assert chance_test(found).is_alarm(false_alarms_of(0))
