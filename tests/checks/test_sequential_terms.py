"""Sequential checks: exact levels of the limits, numbers of labels, huge pools, and the check object."""

import json
import math
import random
from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice.checks import (
    Check,
    Guarantee,
    SequentialCheck,
    SequentialTerms,
    sequential,
    sequential_limits,
    spent_alpha,
)
from suffice.checks.sequential_terms import planned_answers, proof_probabilities
from suffice.errors import InvalidTypeError, InvalidValueError
from tests.thoroughness import examples, thorough

ALPHAS: Final = (0.001, 0.01, 0.025, 0.05, 0.1, 0.3)


def first_proofs(limits: Any) -> Iterator[tuple[int, int, int]]:
    """Answers, wrong answers and number of orders of right and wrong answers that first prove the target there."""
    orders, most = {0: 1}, int(limits.max())
    for t, limit in enumerate(limits.tolist(), start=1):
        following: dict[int, int] = {}
        for wrong, number in orders.items():
            for count in (wrong, wrong + 1):
                # Orders with more wrong answers than any limit never prove anything.
                if count <= most:
                    following[count] = following.get(count, 0) + number
        yield from ((t, count, number) for count, number in following.items() if count <= limit)
        orders = {count: number for count, number in following.items() if count > limit}


def proof_probability(
    proofs: list[tuple[int, int, int]], pool: int, wrong_items: int, allowed: int | None = None
) -> Fraction:
    """The probability of a proof; with ``allowed``, of one that leaves more wrong items than that."""
    ways = sum(
        number * math.comb(pool - t, wrong_items - k)
        for t, k, number in proofs
        if 0 <= wrong_items - k <= pool - t and (allowed is None or wrong_items - k > allowed)
    )
    return Fraction(ways, math.comb(pool, wrong_items))


def settings_of(number: int, largest: int, seed: int) -> Iterator[tuple[int, int, int, float]]:
    """Small pools with an allowed number, a planned size and an error probability."""
    rng = random.Random(seed)
    for _ in range(number):
        pool = rng.randint(1, largest)
        yield pool, rng.randint(0, pool - 1), rng.randint(1, pool + 5), rng.choice(ALPHAS)


def limits_of(pool: int, allowed: int, planned: int, alpha: float, *, corrected: bool, last: int | None = None) -> Any:
    return sequential_limits(
        pool=pool, allowed=allowed, planned=planned, alpha=alpha, last=last or pool, corrected=corrected
    )


# The level.


@pytest.mark.parametrize("corrected", [False, True])
def test_the_level_is_never_above_alpha(corrected: bool) -> None:
    # Every order of answers is counted with whole numbers, for every number of wrong items that is too large.
    largest = Fraction(0)
    for pool, allowed, planned, alpha in settings_of(3000 if thorough() else 500, 60, seed=3):
        proofs = list(first_proofs(limits_of(pool, allowed, planned, alpha, corrected=corrected)))
        for wrong_items in range(allowed + 1, pool + 1):
            level = proof_probability(proofs, pool, wrong_items, allowed if corrected else None)
            assert level <= Fraction(alpha), (pool, allowed, planned, alpha, wrong_items)
            largest = max(largest, level / Fraction(alpha))
    # The limits are not lower than they need to be.
    assert largest > Fraction(97, 100)


def test_every_number_that_is_allowed_is_proven_at_the_end() -> None:
    for pool, allowed, planned, alpha in settings_of(300, 40, seed=4):
        limits = limits_of(pool, allowed, planned, alpha, corrected=False)
        assert limits[-1] == allowed
        proofs = list(first_proofs(limits))
        for wrong_items in range(allowed + 1):
            assert proof_probability(proofs, pool, wrong_items) == 1


def test_a_check_with_corrections_always_ends() -> None:
    for pool, allowed, planned, alpha in settings_of(300, 40, seed=5):
        limits = limits_of(pool, allowed, planned, alpha, corrected=True)
        # When only as many items are left as may be wrong, every number of wrong answers proves the target.
        left = np.arange(pool - 1, -1, -1)
        assert (limits[left <= allowed] == np.arange(1, pool + 1)[left <= allowed]).all()
        proofs = list(first_proofs(limits))
        for wrong_items in range(pool + 1):
            assert proof_probability(proofs, pool, wrong_items) == 1


def spendable(t: int, planned: int, alpha: float) -> float:
    if t <= planned:
        return alpha * 0.75 * float((t / planned) ** 1.5)
    return alpha * (0.75 + 0.25 * (1.0 - planned / t))


def simple_limits(pool: int, allowed: int, planned: int, alpha: float) -> list[int]:
    """The recursion over all numbers of wrong answers, as it is stated."""
    items, reached, spent, limits = allowed + 1, {0: 1.0}, 0.0, []
    for t in range(1, pool + 1):
        left = pool - t + 1
        reached = {
            k: reached.get(k, 0.0) * (1.0 - (items - k) / left) + reached.get(k - 1, 0.0) * (items - k + 1) / left
            for k in range(t + 1)
        }
        limit = -1
        while limit < t and spent + reached[limit + 1] <= spendable(t, min(planned, pool), alpha) * (1.0 - 1e-12):
            limit += 1
            spent += reached[limit]
            reached[limit] = 0.0
        limits.append(limit)
    return limits


def hypergeometric(pool: int, wrong_items: int, t: int, k: int) -> float:
    if not max(0, t - (pool - wrong_items)) <= k <= min(wrong_items, t):
        return 0.0
    return math.comb(wrong_items, k) * math.comb(pool - wrong_items, t - k) / math.comb(pool, t)


def joint_limits(pool: int, allowed: int, planned: int, alpha: float) -> list[int]:
    """The joint boundary, with every probability computed anew."""
    unproven, starts, weights, limits = {0: 1.0}, list[int](), list[float](), list[int]()
    for t in range(1, pool + 1):
        unproven = {k: (1.0 - k / t) * unproven.get(k, 0.0) + (k / t) * unproven.get(k - 1, 0.0) for k in range(t + 1)}
        if pool - t <= allowed:
            limits.append(t)
            continue
        while (level := len(starts)) <= t:
            items = allowed + level + 1
            before = sum(hypergeometric(pool, items, start, i) * weights[i] for i, start in enumerate(starts))
            new = hypergeometric(pool, items, t, level) * unproven[level]
            if before + new > spendable(t, min(planned, pool), alpha) * (1.0 - 1e-12):
                break
            starts.append(t)
            weights.append(unproven[level])
            unproven[level] = 0.0
        limits.append(len(starts) - 1)
    return limits


@pytest.mark.parametrize("corrected", [False, True])
def test_the_limits_are_those_of_the_direct_recursion(corrected: bool) -> None:
    direct = joint_limits if corrected else simple_limits
    for pool, allowed, planned, alpha in settings_of(200 if thorough() else 60, 80, seed=6):
        limits = limits_of(pool, allowed, planned, alpha, corrected=corrected)
        assert limits.tolist() == direct(pool, allowed, planned, alpha), (pool, allowed, planned, alpha)


#: The least share of alpha that is spent at the planned size, where something is proven there.
SPENT: Final = 0.4


def spent_too_little(pool: int, allowed: int, planned: int) -> bool:
    """The settings in which less than .4 of alpha is spent at the planned size.

    - All items are planned and none may be wrong: right answers to all of them cannot be false.
    - At most 15 answers are planned: the probability of no wrong answer falls in large steps (.38 with 15 of 3,000).
    """
    return (planned == pool and allowed == 0) or planned <= 15


@pytest.mark.no_cover
@pytest.mark.parametrize(
    "pool", [50, 100, 300, *(pytest.param(size, marks=pytest.mark.slow) for size in (1000, 3000, 10_000))]
)
def test_the_planned_size_uses_the_error_probability(pool: int) -> None:
    compared, exceptions = 0, 0
    for at_most in (0.01, 0.02, 0.05, 0.1, 0.2, 0.3):
        allowed = math.floor(Fraction(repr(at_most)) * pool)
        for alpha in (0.025, 0.05, 0.05 / 6):
            usual = planned_answers(allowed, 0.5 * at_most, pool, alpha)
            for planned in {max(1, min(pool, round(factor * usual))) for factor in (0.5, 1.0, 2.0)}:
                for corrected in (False, True):
                    terms = SequentialTerms(pool, allowed, planned, alpha, corrected)
                    if terms.limits(planned)[-1] < 0 or (corrected and pool - planned <= allowed):
                        continue
                    # With corrections, all proofs up to here are false if there are one more than all these allow.
                    wrong_items = allowed + 1 + (int(terms.limits(planned)[-1]) if corrected else 0)
                    spent = proof_probabilities(terms, [wrong_items], planned)[0, -1] / alpha
                    if spent_too_little(pool, allowed, planned):
                        exceptions += spent < SPENT
                        continue
                    compared += 1
                    assert spent >= SPENT, (terms, spent)
                    assert spent <= 0.75
    assert compared > 30
    assert exceptions <= 3


def test_the_exceptions_of_the_planned_size() -> None:
    few = SequentialTerms(3000, 900, 15, 0.025)
    assert proof_probabilities(few, [901], 15)[0, -1] / 0.025 == pytest.approx(0.381, abs=0.001)
    everything = SequentialTerms(50, 0, 50, 0.05 / 6)
    assert everything.limits(50)[-1] == 0
    assert proof_probabilities(everything, [1], 50)[0, -1] == pytest.approx(0.0, abs=1e-12)


# What a check takes.


@pytest.mark.parametrize(
    ("wrong_items", "simple", "corrected"), [(60, 282, 228), (90, 676, 373), (120, 1757, 582), (140, 2763, 748)]
)
def test_the_mean_number_of_labels(wrong_items: int, simple: int, corrected: int) -> None:
    for form, labels in ((False, simple), (True, corrected)):
        found = mean_labels(SequentialTerms(3000, 150, 200, 0.025, form), wrong_items)
        assert round(found) == labels


def test_a_check_with_corrections_ends_with_too_many_wrong_items() -> None:
    assert round(mean_labels(SequentialTerms(3000, 150, 200, 0.025, corrected=True), 200)) == 1246


def mean_labels(terms: SequentialTerms, wrong_items: int) -> float:
    proven = proof_probabilities(terms, [wrong_items], terms.pool)[0]
    assert proven[-1] == pytest.approx(1.0, abs=1e-9)
    return 1.0 + float(np.sum(1.0 - proven[:-1]))


@pytest.mark.parametrize("corrected", [False, True])
def test_the_probabilities_of_a_proof_are_exact(corrected: bool) -> None:
    for pool, allowed, planned, alpha in settings_of(40, 40, seed=7):
        terms = SequentialTerms(pool, allowed, planned, alpha, corrected)
        proofs = list(first_proofs(terms.limits(pool)))
        items = list(range(pool + 1))
        found = proof_probabilities(terms, items, pool)
        for last in (1, pool // 2 or 1, pool):
            early = [proof for proof in proofs if proof[0] <= last]
            exact = [float(proof_probability(early, pool, wrong)) for wrong in items]
            assert found[:, last - 1] == pytest.approx(exact, abs=1e-9)


def test_nothing_needs_to_be_checked() -> None:
    assert proof_probabilities(SequentialTerms(10, 10, 3, 0.05), [4, 10], 3).tolist() == [[1.0] * 3] * 2
    assert planned_answers(10, 0.1, 10, 0.05) == 1
    assert SequentialTerms(10, 10, 3, 0.05).proof([]) == SequentialTerms(10, 12, 3, 0.05).proof([True] * 10) == 0


# Huge pools, and small error probabilities.


def exact_level(limits: Any, pool: int, wrong_items: int) -> Fraction:
    """The probability of a proof if the pool is too large for binomial coefficients."""
    total, by_size = Fraction(0), dict[int, list[tuple[int, int]]]()
    for t, k, number in first_proofs(limits):
        by_size.setdefault(t, []).append((k, number))
    falling = [1]
    for j in range(len(limits)):
        falling.append(falling[-1] * (pool - j))
    wrong, right = [1], [1]
    for j in range(len(limits)):
        wrong.append(wrong[-1] * (wrong_items - j))
        right.append(right[-1] * (pool - wrong_items - j))
    for t, found in by_size.items():
        total += Fraction(sum(number * wrong[k] * right[t - k] for k, number in found), falling[t])
    return total


@pytest.mark.parametrize("alpha", [1e-12, 1e-6, 0.025])
@pytest.mark.parametrize("pool", [10**4, 10**9, 10**12])
def test_the_level_of_huge_pools_and_small_probabilities(pool: int, alpha: float) -> None:
    allowed = pool // 10
    planned = planned_answers(allowed, 0.03, pool, alpha)
    # Three quarters of alpha may be spent up to the planned size.
    least, most = Fraction(3, 5) * Fraction(alpha), Fraction(3, 4) * Fraction(alpha)
    limits = limits_of(pool, allowed, planned, alpha, corrected=False, last=planned)
    assert least < exact_level(limits, pool, allowed + 1) <= most
    # With corrections a proof is false with at most c wrong answers if c + 1 more are wrong than allowed.
    limits = limits_of(pool, allowed, planned, alpha, corrected=True, last=planned)
    end = int(limits[-1])
    for level in (0, 1, end // 2, end):
        false = exact_level(np.minimum(limits, level), pool, allowed + level + 1)
        assert (least if level == end else 0) < false <= most


def certified(terms: SequentialTerms, last: int) -> int:
    """Verify every limit without corrections by the recursion in extended precision; return the last one."""
    limits, items = terms.limits(last), terms.allowed + 1
    reached, low, spent = np.ones(1, dtype=np.longdouble), 0, np.longdouble(0.0)
    for t, limit in enumerate(limits.tolist(), start=1):
        counts = low + np.arange(len(reached), dtype=np.longdouble)
        moved = reached * ((items - counts) / np.longdouble(terms.pool - t + 1))
        following = np.append(reached - moved, np.longdouble(0.0))
        following[1:] += moved
        absorbed = max(0, limit + 1 - low)
        spent += following[:absorbed].sum()
        target = spendable(t, terms.planned, terms.alpha)
        assert spent <= target
        # One wrong answer more would be too many.
        assert spent + following[absorbed] > target * (1.0 - 1e-8)
        reached, low = following[absorbed:], low + absorbed
        reached = reached[: max(1, np.count_nonzero(np.cumsum(reached[::-1])[::-1] > 1e-40))]
    return int(limits[-1])


@pytest.mark.slow
def test_a_pool_of_a_billion_and_100_000_answers() -> None:
    assert certified(SequentialTerms(10**9, 10**7, 2000, 1e-12), 100_000) == 753


@pytest.mark.slow
@pytest.mark.parametrize(("alpha", "end"), [(0.025, 874)])
def test_a_pool_of_a_billion_with_corrections(alpha: float, end: int) -> None:
    pool, allowed, planned, last = 10**9, 10**7, 2000, 100_000
    limits = limits_of(pool, allowed, planned, alpha, corrected=True, last=last)
    assert limits[-1] == end
    starts = np.searchsorted(limits, np.arange(end + 1))  # the answers before the one at which a level is allowed
    # The probabilities that a number of wrong answers came without a proof, in extended precision.
    unproven, weights, before = np.zeros(end + 1, dtype=np.longdouble), list[Any](), list[Any]()
    unproven[0] = 1.0
    share = np.arange(end + 1, dtype=np.longdouble)
    for t in range(1, last + 1):
        lower = np.append(np.longdouble(0.0), unproven[:-1])
        earlier, unproven = unproven, (1.0 - share / t) * unproven + share / t * lower
        while len(weights) <= end and starts[len(weights)] + 1 == t:
            level = len(weights)
            before.append(earlier[level] if level < t else np.longdouble(0.0))
            weights.append(unproven[level])
            unproven[level] = 0.0
    steps = np.arange(last, dtype=np.longdouble)
    for level in (0, 1, 2, 10, 100, 400, end):
        items = allowed + level + 1
        # Logarithms of C(t, k), and of the products of the shares of wrong and right items that are left.
        factorial = np.append(np.longdouble(0.0), np.cumsum(np.log(steps + 1)))
        wrong = np.append(np.longdouble(0.0), np.cumsum(np.log((items - steps) / pool)))
        right = np.append(np.longdouble(0.0), np.cumsum(np.log((pool - items - steps) / pool)))
        every = np.append(np.longdouble(0.0), np.cumsum(np.log((pool - steps) / pool)))

        def likely(t: Any, k: Any) -> Any:
            chosen = factorial[t] - factorial[k] - factorial[t - k]  # noqa: B023 - used in this round only
            return np.exp(chosen + wrong[k] + right[t - k] - every[t])  # noqa: B023

        levels, t = np.arange(level), int(starts[level]) + 1
        earlier_levels = np.sum(likely(starts[:level] + 1, levels) * np.array(weights[:level], dtype=np.longdouble))
        spent = earlier_levels + likely(np.array(t), np.array(level)) * weights[level]
        assert spent <= spendable(t, planned, alpha) * (1.0 + 1e-9)
        # One answer earlier it would have been too much.
        sooner = earlier_levels + likely(np.array(t - 1), np.array(level)) * before[level]
        assert sooner > spendable(t - 1, planned, alpha) * (1.0 - 1e-7)


@pytest.mark.parametrize("corrected", [False, True])
def test_longer_limits_begin_with_the_shorter_ones(corrected: bool) -> None:
    longest = limits_of(5000, 200, 150, 0.025, corrected=corrected, last=5000)
    for last in (1, 2, 150, 256, 257, 1000, 4999):
        shorter = limits_of(5000, 200, 150, 0.025, corrected=corrected, last=last)
        assert shorter.tolist() == longest[:last].tolist()


def test_the_limits_can_be_changed_by_the_caller() -> None:
    limits = limits_of(100, 5, 30, 0.05, corrected=False)
    limits[:] = 99
    assert limits_of(100, 5, 30, 0.05, corrected=False)[-1] == 5


# Properties.


@st.composite
def _settings(draw: st.DrawFn) -> dict[str, Any]:
    pool = draw(st.integers(1, 400))
    return {
        "pool": pool,
        "allowed": draw(st.integers(0, pool + 3)),
        "planned": draw(st.integers(1, pool + 3)),
        "alpha": draw(st.floats(1e-9, 0.9)),
        "last": draw(st.integers(1, pool)),
        "corrected": draw(st.booleans()),
    }


@given(_settings())
@examples(300)
def test_limits_never_fall_and_are_possible(case: dict[str, Any]) -> None:
    limits = sequential_limits(**case)
    assert limits.shape == (case["last"],)
    assert (np.diff(limits) >= 0).all()
    assert (limits >= -1).all()
    assert (limits <= np.arange(1, case["last"] + 1)).all()


@given(_settings())
@examples(300)
def test_more_that_is_allowed_does_not_lower_the_limits(case: dict[str, Any]) -> None:
    more = sequential_limits(**{**case, "allowed": case["allowed"] + 1})
    limits = sequential_limits(**case)
    # The error probability is spent in steps: the limit of one answer may be lower where an earlier one is higher.
    lower = more < limits
    assert all((more[:t] > limits[:t]).any() for t in np.flatnonzero(lower))


@given(_settings(), st.data())
@examples(200)
def test_the_proof_is_the_first_crossing(case: dict[str, Any], data: st.DataObject) -> None:
    terms = SequentialTerms(case["pool"], case["allowed"], case["planned"], case["alpha"], case["corrected"])
    wrong = data.draw(st.lists(st.booleans(), max_size=case["pool"]))
    limits = sequential_limits(**{**case, "last": case["pool"]})
    counts = np.cumsum([*wrong, *[False] * (case["pool"] - len(wrong))])
    crossed = np.flatnonzero(counts <= limits)
    expected = 0 if case["allowed"] >= case["pool"] else int(crossed[0]) + 1 if len(crossed) else None
    assert terms.proof(wrong) == expected


# Arguments.


@pytest.mark.parametrize(
    ("changed", "error", "words"),
    [
        ({"pool": 0}, InvalidValueError, "pool must be a whole number, 1 or more"),
        ({"pool": 10**13}, InvalidValueError, "pool must be at most 1,000,000,000,000"),
        ({"pool": "a"}, (InvalidTypeError, InvalidValueError), "pool must be"),
        ({"allowed": -1}, InvalidValueError, "allowed must be a whole number, 0 or more"),
        ({"allowed": 1.5}, (InvalidTypeError, InvalidValueError), "allowed must be"),
        ({"planned": 0}, InvalidValueError, "planned must be a whole number, 1 or more"),
        ({"alpha": 0.0}, InvalidValueError, "alpha must be"),
        ({"alpha": 1.0}, InvalidValueError, "alpha must be"),
        ({"alpha": math.nan}, InvalidValueError, "alpha must be"),
        ({"last": 0}, InvalidValueError, "last must be a whole number, 1 or more"),
        ({"last": 101}, InvalidValueError, "last must be at most pool=100, not 101"),
        ({"corrected": 1}, InvalidTypeError, "corrected must be True or False"),
    ],
)
def test_arguments_that_cannot_be_used(changed: dict[str, Any], error: Any, words: str) -> None:
    arguments = {"pool": 100, "allowed": 5, "planned": 30, "alpha": 0.05, "last": 50, **changed}
    with pytest.raises(error, match=words):
        sequential_limits(**arguments)


def test_everything_may_be_wrong() -> None:
    for allowed in (100, 120):
        limits = limits_of(100, allowed, 30, 0.05, corrected=False, last=50)
        assert limits.tolist() == list(range(1, 51))


def test_shares_are_decimal_numbers() -> None:
    # 0.29 x 100 is 28.999999999999996 in floating point.
    assert SequentialTerms.of_share(0.29, pool=100, alpha=0.05).allowed == 29
    assert SequentialTerms.of_share(1.0, pool=100, alpha=0.05).allowed == 100
    assert SequentialTerms.of_share(0.0, pool=100, alpha=0.05).allowed == 0
    assert SequentialTerms.of_share(np.float64(0.07), pool=100, alpha=0.05, planned=7).planned == 7
    with pytest.raises(InvalidValueError, match="at_most must be a number from 0 to 1"):
        SequentialTerms.of_share(1.01, pool=100, alpha=0.05)
    with pytest.raises(InvalidValueError, match="expected must be a number from 0 to 1"):
        SequentialTerms.of_share(0.1, pool=100, alpha=0.05, expected=-0.1)


@pytest.mark.slow
def test_a_target_that_cannot_be_proven() -> None:
    terms = SequentialTerms(10**9, 0, 1000, 0.05)
    assert terms.longest == 100_000
    assert terms.proof([]) is None
    with pytest.raises(InvalidValueError, match="cannot prove with 100,000 answers that at most 0 are wrong"):
        terms.require_provable()
    with pytest.raises(InvalidValueError, match="cannot prove with 100,000 answers"):
        sequential(0.0, 10**9)


# The check object.


def run(check: SequentialCheck, wrong: list[bool | None]) -> SequentialCheck:
    """The answers one by one, until the check ends."""
    for answer in wrong:
        if check.state != "open":
            break
        check.tell(answer)
    return check


def test_a_check_is_told_until_it_is_proven() -> None:
    check = sequential(0.05, 3000, planned=100, seed=0)
    assert (check.state, check.answered, check.n_wrong, check.needed) == ("open", 0, 0, 82)
    assert (check.guarantee, check.proven) == (None, False)
    first = check.next(4)
    assert first.tolist() == check.items[:4].tolist()
    assert check.tell(True) is check
    assert check.next(3).tolist() == first[1:].tolist()
    assert (check.needed, str(check)) == (
        124,
        "Check: 1 answer, 1 wrong prediction. The target is proven if the next 124 predictions are all right.",
    )
    check.tell([False] * 123)
    assert str(check) == "Check: 124 answers, 1 wrong prediction. The target is proven if the next prediction is right."
    check.tell(False)
    assert (check.state, check.proven, check.needed) == ("proven", True, 0)
    found = check.guarantee
    assert found is not None
    assert (found.checked, found.wrong, found.allowed, found.wrong_at_most) == (125, 1, 150, 150)
    assert (found.alpha, found.confidence, found.value, found.value_for_all) == (0.025, 0.95, 0.05, 0.05)
    said = (
        "At most 5 % of the predictions for the 3,000 items that were unlabelled at the start of the check are wrong "
    )
    assert str(check) == str(found) == f"{said}(95 % confidence)."
    assert found.evidence == (
        "A random check: 125 of the 3,000 items were drawn and answered, and 1 of these 125 predictions was wrong. "
        "Proven: at most 150 of the 3,000 predictions are wrong."
    )
    assert repr(check) == "SequentialCheck(125 answers of 3,000 items, proven)"
    with pytest.raises(InvalidValueError, match="the check is proven and takes no more answers"):
        check.tell(False)
    with pytest.raises(InvalidValueError, match="the check is proven already"):
        check.give_up()


@pytest.mark.parametrize("corrected", [False, True])
def test_batches_are_as_good_as_single_answers(corrected: bool) -> None:
    rng = np.random.default_rng(0)
    for seed in range(20):
        wrong = (rng.random(400) < rng.choice([0.0, 0.02, 0.05, 0.1])).tolist()
        single, batches = (sequential(0.08, 400, corrected=corrected, seed=seed) for _ in range(2))
        run(single, wrong)
        while batches.state == "open":
            size = int(rng.integers(1, 60))
            batches.tell(wrong[batches.answered : batches.answered + size])
        assert (batches.state, batches.guarantee) == (single.state, single.guarantee)
        assert batches.wrong[: single.answered] == single.wrong
        # A batch may go on after the answer with which the check fails, but not after the proof.
        assert batches.answered == single.answered or batches.state == "failed"


def test_answers_after_the_proof_are_not_taken() -> None:
    check = sequential(0.05, 3000, planned=100, seed=0).tell([False] * 82 + [True] * 50)
    assert (check.answered, check.n_wrong, check.state) == (82, 0, "proven")


def test_too_many_wrong_answers() -> None:
    check = sequential(0.05, 100, seed=0).tell([True] * 5)
    assert check.state == "open"
    check.tell(True)
    assert (check.state, check.needed, check.guarantee) == ("failed", None, None)
    too_many = "That is too many: the check cannot prove its target any more."
    assert str(check) == f"Check: 6 answers, 6 wrong predictions. {too_many}"
    with pytest.raises(InvalidValueError, match="the check is failed and takes no more answers"):
        check.tell(False)


def test_with_corrections_many_wrong_answers_are_not_too_many() -> None:
    check = sequential(0.05, 100, corrected=True, seed=0).tell([True] * 50)
    assert check.state == "open"
    run(check, [True] * 50)
    assert (check.state, check.answered) == ("proven", 95)
    assert str(check.guarantee) == (
        "Of the 100 items that were unlabelled at the start of the check, at most 5 % are wrong after its corrections "
        "(95 % confidence)."
    )


def test_an_item_that_cannot_be_labelled_counts_as_wrong() -> None:
    absent, wrong = (sequential(0.05, 3000, planned=100, seed=0).tell([first]) for first in (None, True))
    assert (absent.n_wrong, absent.needed) == (wrong.n_wrong, wrong.needed) == (1, 124)
    found = absent.tell([False] * 124).guarantee
    assert found is not None
    assert (found.wrong, found.unlabelable, found.wrong_at_most) == (0, 1, 150)
    assert "1 item could not be labelled and counts as wrong." in found.evidence


def test_an_item_that_cannot_be_labelled_is_not_corrected() -> None:
    check = sequential(0.05, 3000, planned=100, corrected=True, seed=0).tell([None, True])
    found = run(check, [False] * 3000).guarantee
    assert found is not None
    assert (found.allowed, found.wrong_at_most, found.corrected) == (150, 151, True)
    assert found.value == 151 / 3000


def test_an_answer_is_corrected() -> None:
    check = sequential(0.05, 3000, planned=100, seed=0).tell([True] + [False] * 100)
    assert check.state == "open"
    check.correct(0, False)
    # The target was proven by fewer answers than there are.
    assert (check.state, check.answered) == ("proven", 101)
    found = check.guarantee
    assert found is not None
    assert (found.checked, found.wrong, found.corrections, found.wrong_at_first) == (82, 0, 1, 1)
    assert str(found).endswith(
        "; by the first answers, before 1 answer was corrected, this is not proven (95 % confidence)."
    )
    assert found.at_first is None
    check.correct(0, None).correct(0, True)
    assert (check.state, check.first_answers) == ("open", {})
    check.tell([False] * 24)
    assert str(check.guarantee) == str(sequential(0.05, 3000, planned=100, seed=0).tell([False] * 82).guarantee)


def test_a_correction_after_the_proof() -> None:
    check = sequential(0.05, 3000, planned=100, seed=0).tell([False] * 82)
    check.correct(5, True)
    assert (check.state, check.guarantee, check.needed) == ("open", None, 43)
    check.tell([False] * 43)
    found = check.guarantee
    assert found is not None
    # The first answers prove the target, too.
    assert (found.wrong, found.corrections, found.wrong_at_first) == (1, 1, None)
    assert "first answers" not in str(found)
    assert found.evidence.endswith("1 answer was corrected afterwards.")
    for position in (126, -1):
        with pytest.raises(InvalidValueError, match="position must be"):
            check.correct(position, False)
    with pytest.raises(InvalidTypeError, match="an answer must be True"):
        check.correct(0, "wrong")  # type: ignore[arg-type]


def test_answers_after_an_earlier_proof_are_no_evidence() -> None:
    check = sequential(0.05, 3000, planned=100, seed=0)
    check.tell([True] * 8 + [False] * 80 + [True] * 10)
    for position in range(8):
        check.correct(position, False)
    found = check.guarantee
    assert found is not None
    assert (found.checked, found.wrong, found.corrections, found.wrong_at_first) == (82, 0, 8, 8)


def test_a_check_is_given_up() -> None:
    check = sequential(0.05, 3000, planned=100, seed=0).tell([False] * 10)
    assert check.give_up() is check
    assert (check.state, check.guarantee, check.proven) == ("given up", None, False)
    assert str(check) == "The check was given up after 10 answers: it proves nothing."
    with pytest.raises(InvalidValueError, match="the check is given up and takes no more answers"):
        check.tell(False)
    with pytest.raises(InvalidValueError, match="the check is given up already"):
        check.give_up()


def test_nothing_to_check() -> None:
    check = sequential(1.0, 7, seed=0)
    assert (check.state, check.needed) == ("proven", 0)
    assert check.guarantee is not None
    assert check.guarantee.checked == 0


def test_items_are_drawn_from_those_given() -> None:
    check = sequential(0.2, [5, 9, 2, 30, 7, 8, 11, 12], seed=3)
    assert sorted(check.items.tolist()) == [2, 5, 7, 8, 9, 11, 12, 30]
    assert check.items.tolist() == sequential(0.2, np.array([5, 9, 2, 30, 7, 8, 11, 12]), seed=3).items.tolist()
    others = {tuple(sequential(0.2, 50).items.tolist()) for _ in range(3)}
    assert len(others) == 3
    assert len(sequential(0.05, 10**9, seed=0).items) == 100_000


def test_later_checks_have_less_error_probability() -> None:
    needed = [sequential(0.05, 3000, number=number, seed=0).terms.alpha for number in (1, 2, 3)]
    assert needed == [spent_alpha(number) for number in (1, 2, 3)]
    assert sequential(0.05, 3000, alpha=0.2, seed=0).tell([False] * 100).guarantee is not None


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"at_most": 1.5}, InvalidValueError, "at_most must be a number from 0 to 1"),
        ({"pool": 0}, InvalidValueError, "pool must be a whole number, 1 or more"),
        ({"pool": [1.5]}, InvalidTypeError, "pool must be a number of items or a series of indices"),
        ({"pool": [[1]]}, InvalidTypeError, "pool must be a number of items or a series of indices"),
        ({"pool": []}, InvalidValueError, "pool must name at least one item, each once"),
        ({"pool": [3, 3]}, InvalidValueError, "pool must name at least one item, each once"),
        ({"number": 0}, InvalidValueError, "number must be a whole number, 1 or more"),
        ({"alpha": 2.0}, InvalidValueError, "alpha must be"),
        ({"planned": 0}, InvalidValueError, "planned must be a whole number, 1 or more"),
    ],
)
def test_checks_that_cannot_be_drawn(arguments: dict[str, Any], error: Any, words: str) -> None:
    with pytest.raises(error, match=words):
        sequential(**{"at_most": 0.1, "pool": 100, **arguments})


@pytest.mark.parametrize("answers", [2, 1.5, "wrong", [False, 2], [0.0], object()])
def test_answers_that_cannot_be_used(answers: Any) -> None:
    check = sequential(0.1, 100, seed=0)
    with pytest.raises(InvalidTypeError, match=r"an answer must be True \(wrong\), False \(right\) or None"):
        check.tell(answers)
    assert check.answered == 0


def test_more_answers_than_items() -> None:
    with pytest.raises(InvalidValueError, match="only 20 items are left to answer"):
        sequential(0.1, 20, seed=0).tell([False] * 21)
    assert sequential(0.1, 20, seed=0).tell(np.array([0, 1, 0])).wrong == [False, True, False]


# Saved checks.


@pytest.mark.parametrize("corrected", [False, True])
def test_a_saved_check_continues(corrected: bool) -> None:
    whole = sequential(0.1, 200, corrected=corrected, number=2, seed=1)
    again = sequential(0.1, 200, corrected=corrected, number=2, seed=1)
    answers: list[bool | None] = [False, True, None, *[False] * 197]
    for place, answer in enumerate(answers):
        if whole.state != "open":
            break
        for check in (whole, again):
            check.tell(answer)
            if place == 10:
                check.correct(1, False)
        again = SequentialCheck.from_state(json.loads(json.dumps(again.state_dict())))
        assert again.state_dict() == whole.state_dict()
        assert again.progress() == whole.progress()
    assert whole.state == "proven"
    assert again.guarantee == whole.guarantee
    given_up = SequentialCheck.from_state(sequential(0.1, 200, seed=1).give_up().state_dict())
    assert given_up.state == "given up"


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"format": 2}, "must be a mapping of format 1"),
        ({"items": None}, "items must be a series of whole numbers"),
        ({"items": [1, 2]}, "must have the items of its random order, each once"),
        ({"items": [3] * 30}, "must have the items of its random order, each once"),
        ({"items": ["a"] * 30}, "items must be a series of whole numbers"),
        ({"wrong": [False] * 31}, "must have the items of its random order"),
        ({"wrong": ["no"]}, "an answer must be True"),
        ({"wrong": 5}, "cannot be used"),
        ({"first_answers": [[0, True]]}, "wrong field first_answers or given_up"),
        ({"first_answers": [0]}, "cannot be used"),
        ({"given_up": "no"}, "wrong field first_answers or given_up"),
        ({"number": 0}, "number must be a whole number, 1 or more"),
        ({"number": 2}, "must have its error probability"),
        ({"alpha": 0.1}, "must have its error probability"),
        ({"alpha": None}, "alpha must be"),
        ({"terms": {"pool": 30}}, "lacks the fields"),
        ({"terms": None}, "must be a mapping"),
    ],
)
def test_damaged_states_are_refused(changed: dict[str, Any], words: str) -> None:
    saved = sequential(0.1, 30, seed=0).state_dict()
    with pytest.raises(InvalidValueError, match=words):
        SequentialCheck.from_state({**saved, **changed})


def test_a_state_without_a_field_is_refused() -> None:
    saved = sequential(0.1, 30, seed=0).state_dict()
    for name in saved:
        less = {key: value for key, value in saved.items() if key != name}
        with pytest.raises(InvalidValueError, match="format" if name == "format" else f"lacks the field {name}"):
            SequentialCheck.from_state(less)
    with pytest.raises(InvalidValueError, match="must be a mapping of format 1"):
        SequentialCheck.from_state(None)  # type: ignore[arg-type]


@pytest.mark.parametrize("corrected", [False, True])
def test_a_guarantee_as_json(corrected: bool) -> None:
    check = sequential(0.1, 500, corrected=corrected, seed=0).tell([None, True])
    found = run(check, [False] * 500).guarantee
    assert found is not None
    saved = json.loads(json.dumps(found.to_dict()))
    assert saved["statement"] == str(found)
    assert (saved["allowed"], saved["wrong_at_most"], saved.get("corrected", False)) == (
        50,
        51 if corrected else 50,
        corrected,
    )
    assert Guarantee.from_dict(saved) == found
    with pytest.raises(InvalidValueError, match="wrong_at_most must be"):
        Guarantee.from_dict({**saved, "wrong_at_most": 49})


def test_only_proofs_are_guarantees() -> None:
    terms = SequentialTerms(3000, 150, 100, 0.025)
    assert Guarantee.of_proof(terms, 0, 82).wrong_at_most == 150
    for wrong, checked in ((0, 81), (1, 124), (0, 0), (0, 3001)):
        with pytest.raises(InvalidValueError, match="do not prove the target"):
            Guarantee.of_proof(terms, wrong, checked)
    with pytest.raises(InvalidValueError, match="checked must be a whole number"):
        Guarantee.of_proof(terms, 0, -1)
    with pytest.raises(InvalidValueError, match="do not prove the target"):
        Guarantee.of_proof(terms, 0, 82, unlabelable=1)
    with pytest.raises(InvalidValueError, match="unlabelable_as must be"):
        Guarantee.of_proof(terms, 0, 90, unlabelable_as="excluded")
    found = Guarantee.of_proof(terms, 1, 130, tolerance=0.5, confidence=0.95)
    assert str(found).startswith("At most 5 % of the predictions for the 3,000 items that were unlabelled at the start")
    assert str(found).endswith("are off by more than 0.5 (95 % confidence).")


# Checks with labels.


def drawn(pool: int = 3000, at_most: float = 0.05, planned: int = 100, **options: Any) -> tuple[Check, list[int]]:
    """A sequential check with its first items, and its random order."""
    terms = SequentialTerms.of_share(at_most, pool=pool, alpha=0.025, planned=planned, **options)
    order = np.random.default_rng(1).permutation(pool).tolist()
    return Check(tuple(order[: terms.proof([])]), pool, sequential=terms), order


def told(check: Check, places: Any, label: str = "right") -> Check:
    return check.tell({check.items[place]: label for place in places})


PREDICTED: Final = dict.fromkeys(range(3000), "right")


def test_a_check_reaches_for_the_items_that_it_needs() -> None:
    check, order = drawn()
    assert check.size == 82
    assert check.reaching(order, PREDICTED) == check
    check = told(check, [0], "wrong").reaching(order, PREDICTED)
    assert check.items == tuple(order[:125])
    check = told(check, range(1, 124)).reaching(order, PREDICTED)
    assert check.pending == (order[124],)
    with pytest.raises(InvalidValueError, match="a check gives a guarantee when all"):
        check.guarantee(PREDICTED)
    check = told(check, [124]).reaching(order, PREDICTED)
    assert check.complete
    found = check.guarantee(PREDICTED, model="a model")
    assert (found.allowed, found.checked, found.wrong, found.model) == (150, 125, 1, "a model")


def test_items_in_any_order() -> None:
    check, order = drawn()
    # The last items come first: the target is proven when the first ones are there.
    check = told(check, range(20, 82)).reaching(order, PREDICTED)
    assert not check.complete
    check = told(check, range(20)).reaching(order, PREDICTED)
    assert check.complete
    assert check.guarantee(PREDICTED).checked == 82


def test_a_correction_makes_fewer_items_necessary() -> None:
    check, order = drawn()
    check = told(check, [0], "wrong").reaching(order, PREDICTED)
    check = check.correct(order[0], "right").reaching(order, PREDICTED)
    assert check.items == tuple(order[:82])
    # An item that was answered before its turn stays.
    check = told(check, [0], "wrong") if order[0] not in check.labels else check.correct(order[0], "wrong")
    check = told(check.reaching(order, PREDICTED), [100])
    check = check.correct(order[0], "right").reaching(order, PREDICTED)
    assert check.items == tuple(order[:101])
    check = told(check, range(1, 82)).reaching(order, PREDICTED)
    assert check.complete
    assert check.items == (*order[:82], order[100])
    assert check.guarantee(PREDICTED).checked == 82


def test_too_many_wrong_items() -> None:
    check, order = drawn(pool=60, at_most=0.05, planned=40)
    check = told(check, range(4), "wrong").reaching(order, PREDICTED)
    assert check.items == tuple(order[:4])
    assert check.complete
    with pytest.raises(InvalidValueError, match="the sequential check has ended without a proof of its target"):
        check.guarantee(PREDICTED)


def test_items_that_cannot_be_labelled() -> None:
    check, order = drawn()
    check = check.cannot_label([order[3]]).reaching(order, PREDICTED)
    assert check.size == 125
    check = check.tell(dict.fromkeys(check.pending, "right")).reaching(order, PREDICTED)
    found = check.guarantee(PREDICTED)
    assert (found.wrong, found.unlabelable) == (0, 1)
    with pytest.raises(InvalidValueError, match="a sequential check proves one target, and counts all its items"):
        check.guarantee(PREDICTED, unlabelable_as="excluded")
    with pytest.raises(InvalidValueError, match="a sequential check proves one target, and counts all its items"):
        check.guarantee(PREDICTED, parts=2)


def test_numbers_within_a_tolerance() -> None:
    check, order = drawn()
    predicted = dict.fromkeys(range(3000), 1.0)
    check = check.tell(dict.fromkeys(check.items, 1.4)).reaching(order, predicted, tolerance=0.5)
    found = check.guarantee(predicted, tolerance=0.5)
    assert (found.quantity, found.tolerance, found.allowed) == ("within", 0.5, 150)
    with pytest.raises(InvalidValueError, match="the sequential check has ended without a proof"):
        check.guarantee(predicted, tolerance=0.3)


def test_only_sequential_checks_reach() -> None:
    with pytest.raises(InvalidValueError, match="the size of this check is fixed"):
        Check((1, 2), 10).reaching([1, 2], {1: 0, 2: 0})
    terms = SequentialTerms(10, 1, 5, 0.025)
    for changed in ({"pool": 11}, {"number": 2}, {"alpha": 0.1}):
        arguments: dict[str, Any] = {"items": (1, 2), "pool": 10, "sequential": terms, **changed}
        with pytest.raises(InvalidValueError, match="the terms of a sequential check must have its pool"):
            Check(**arguments)


def test_first_answers_of_a_sequential_check() -> None:
    check, order = drawn()
    check = told(check, [0, 1], "wrong").reaching(order, PREDICTED)
    check = check.correct(order[0], "right").correct(order[1], "right").reaching(order, PREDICTED)
    check = check.tell(dict.fromkeys(check.pending, "right")).reaching(order, PREDICTED)
    assert check.first_answers == {order[0]: "wrong", order[1]: "wrong"}
    found = check.guarantee(PREDICTED)
    assert (found.checked, found.wrong, found.corrections, found.wrong_at_first) == (82, 0, 2, 2)
    assert str(found) == (
        "At most 5 % of the predictions for the 3,000 items that were unlabelled at the start of the check are wrong; "
        "by the first answers, before 2 answers were corrected, this is not proven (95 % confidence)."
    )
    assert Guarantee.from_dict(json.loads(json.dumps(found.to_dict()))) == found


def test_first_answers_of_a_check_of_fixed_size() -> None:
    check = Check.draw(np.arange(3000), 100, np.random.default_rng(0))
    check = told(told(check, range(5), "wrong"), range(5, 100))
    for item in check.items[:2]:
        check = check.correct(item, "right")
    found = check.guarantee(PREDICTED)
    assert (found.wrong, found.wrong_at_first, found.corrections) == (3, 5, 2)
    assert found.at_first is not None
    assert found.at_first == Guarantee.of_error(5, 100, 3000, alpha=0.025, confidence=0.95, corrections=2)
    first, last = (f"{100 * each.value:.2g} %" for each in (found.at_first, found))
    assert float(first.split()[0]) > float(last.split()[0])
    assert "by the first answers, before 2 answers were corrected" in str(found)
    # Corrections that make the number larger need no second bound.
    worse = check.correct(check.items[50], "wrong").correct(check.items[51], "wrong").correct(check.items[52], "wrong")
    assert worse.guarantee(PREDICTED).at_first is None
    assert "first answers" not in str(worse.guarantee(PREDICTED))


def test_a_check_with_its_terms_as_json() -> None:
    check, order = drawn(corrected=True)
    check = told(check, [0], "wrong").reaching(order, PREDICTED).correct(order[0], "right")
    assert Check.from_state(json.loads(json.dumps(check.state_dict()))) == check
    for damaged in ({"pool": 3000}, 5, {**check.state_dict()["sequential"], "alpha": 0.1}):
        with pytest.raises(InvalidValueError):
            Check.from_state({**check.state_dict(), "sequential": damaged})


@pytest.mark.no_cover
@pytest.mark.parametrize("corrected", [False, True])
def test_a_check_and_a_sequential_check_agree(corrected: bool) -> None:
    rng = np.random.default_rng(2)
    for seed in range(10):
        flags = rng.random(300) < 0.06
        single = sequential(0.1, 300, corrected=corrected, seed=seed)
        order = single.items.tolist()
        check = Check(tuple(order[: single.terms.proof([])]), 300, sequential=single.terms)
        while check.pending:
            item = check.pending[0]
            check = check.tell({item: "wrong" if flags[item] else "right"})
            check = check.reaching(order, dict.fromkeys(range(300), "right"))
        run(single, flags[order].tolist())
        assert check.guarantee(dict.fromkeys(range(300), "right")) == single.guarantee


@pytest.mark.no_cover
@pytest.mark.parametrize(("pool", "share"), [(40, 0.05), (60, 0.2), (25, 0.3)])
def test_few_proofs_are_false(pool: int, share: float) -> None:
    # The whole object, not only its limits: one too many is wrong.
    terms = SequentialTerms.of_share(share, pool=pool, alpha=0.1)
    rng, false, runs = np.random.default_rng(5), 0, 2000
    flags = np.arange(pool) <= terms.allowed
    for _ in range(runs):
        check = SequentialCheck(terms, rng.permutation(pool), alpha=0.2)
        false += check.tell(flags[check.items].tolist()).state == "proven"
    assert false <= 0.1 * runs + 4.0 * math.sqrt(0.09 * runs)


def test_limits_of_neighbouring_levels_are_monotone_in_the_error_probability() -> None:
    limits = [limits_of(500, 25, 100, alpha, corrected=False) for alpha in (0.01, 0.05, 0.2)]
    for lower, higher in pairwise(limits):
        assert (lower <= higher).mean() > 0.99


def proven_step_by_step(terms: SequentialTerms, wrong_items: int, last: int) -> list[float]:
    """The probability of a proof within each number of answers, one answer after the other."""
    limits, reached, proven = terms.limits(last), {0: 1.0}, 0.0
    found = []
    for t in range(1, last + 1):
        left, following = terms.pool - t + 1, dict[int, float]()
        for count, p in reached.items():
            share = min(max(wrong_items - count, 0), left) / left
            following[count] = following.get(count, 0.0) + p * (1.0 - share)
            following[count + 1] = following.get(count + 1, 0.0) + p * share
        proven += sum(p for count, p in following.items() if count <= limits[t - 1])
        reached = {count: p for count, p in following.items() if count > limits[t - 1] and p > 0.0}
        found.append(proven)
    return found


@given(
    st.integers(1, 400),
    st.sampled_from([0.0, 0.001, 0.01, 0.05, 0.1, 0.3, 0.7]),
    st.sampled_from([0.025, 0.001, 0.2]),
    st.booleans(),
    st.data(),
)
@examples(60)
def test_answers_between_two_limits_are_taken_at_once(
    pool: int, share: float, alpha: float, corrected: bool, data: st.DataObject
) -> None:
    planned, last, wrong = (data.draw(st.integers(least, pool)) for least in (1, 1, 0))
    terms = SequentialTerms.of_share(share, pool=pool, alpha=alpha, planned=planned, corrected=corrected)
    found = proof_probabilities(terms, [wrong], last)[0]
    if terms.allowed >= terms.pool:
        assert found.tolist() == [1.0] * last
    else:
        assert found.tolist() == pytest.approx(proven_step_by_step(terms, wrong, last), abs=1e-9)
