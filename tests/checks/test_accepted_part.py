"""Accepting the most confident predictions: the rules, their exact levels for both goals, and the JSON form."""

import json
import math
from collections import defaultdict
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache
from itertools import combinations, pairwise
from typing import Any, Final

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice.checks import AcceptedPart, Check, SequentialTerms, accept_corrected, accept_share, accepted_shares
from suffice.checks.hypergeometric import largest_count, upper_bound
from suffice.errors import InvalidTypeError, InvalidValueError
from tests.checks import exact
from tests.thoroughness import examples, thorough

Rule = Callable[[tuple[int, ...], tuple[bool, ...]], int]

#: Confidences of nine items, from the most confident one; some are equal.
DISTINCT: Final = tuple(range(9, 0, -1))
TIED: Final = (9, 9, 8, 7, 7, 7, 6, 5, 5)


def accepted(accept: Any, confidence: tuple[int, ...], alpha: float, goal: Any, **more: Any) -> Rule:
    """The number of accepted items, for a sample and whether its items are wrong, by the public function."""

    @cache
    def rule(sample: tuple[int, ...], wrong: tuple[bool, ...]) -> int:
        check = Check(sample, pool=len(confidence), alpha=alpha).tell(dict.fromkeys(sample, "right"))
        predictions = ["wrong" if each else "right" for each in wrong]
        return int(accept(check, predictions, confidence, goal, **more).accepted)

    return rule


def levels(rule: Rule, pool: int, size: int, is_false: Callable[[int, int, int], bool]) -> Iterator[Fraction]:
    """The share of all samples with a false statement, for all configurations of wrong items.

    ``is_false`` takes the numbers of accepted items, of wrong ones among them, and of those that are not in the sample.
    """
    samples = list(combinations(range(pool), size))
    for truth in range(1 << pool):
        wrong = [bool(truth >> item & 1) for item in range(pool)]
        below = np.concatenate([[0], np.cumsum(wrong)])
        false = 0
        for sample in samples:
            part = rule(sample, tuple(wrong[item] for item in sample))
            inside = [item for item in sample if item < part]
            false += is_false(part, int(below[part]), int(below[part]) - sum(wrong[item] for item in inside))
        yield Fraction(false, len(samples))


# The level.


SETTINGS: Final = [
    (7, 4, 1, 0.6, False),
    (7, 3, 2, 0.8, True),
    *(
        [
            (8, 5, 0, 0.9, False),
            (8, 5, 1, 0.5, True),
            (8, 4, 2, 0.4, False),
            (9, 4, 3, 0.7, True),
            (9, 5, 1, 0.6, False),
        ]
    ),
]


@pytest.mark.parametrize(
    ("pool", "size", "allowed", "alpha", "tied"),
    [*SETTINGS[:2], *(pytest.param(*case, marks=pytest.mark.slow) for case in SETTINGS[2:])],
)
def test_at_most_as_many_wrong_labels_as_allowed_are_left(
    pool: int, size: int, allowed: int, alpha: float, tied: bool
) -> None:
    confidence = (TIED if tied else DISTINCT)[:pool]
    rule = accepted(accept_corrected, confidence, alpha, allowed)
    found = list(levels(rule, pool, size, lambda part, wrong, left: left > allowed))
    assert max(found) <= Fraction(alpha) / 2
    # A bound that is never false would accept too little.
    assert max(found) > 0


@pytest.mark.no_cover
@pytest.mark.parametrize(
    ("pool", "size", "at_most", "alpha", "tied"),
    [
        (7, 4, 0.5, 0.6, False),
        (7, 4, 0.3, 0.9, True),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in [
                (8, 5, 0.4, 0.8, False),
                (8, 4, 0.5, 0.9, True),
                (9, 4, 0.6, 0.8, True),
            ]
        ),
    ],
)
def test_at_most_a_share_of_the_accepted_predictions_is_wrong(
    pool: int, size: int, at_most: float, alpha: float, tied: bool
) -> None:
    confidence = (TIED if tied else DISTINCT)[:pool]
    limit = Fraction(repr(at_most))
    for shares in (None, (0.25, 0.5, 0.75, 1.0)):
        rule = accepted(accept_share, confidence, alpha, at_most, shares=shares)
        found = list(levels(rule, pool, size, lambda part, wrong, left: wrong > limit * part))
        assert max(found) <= Fraction(alpha) / 2


def level(
    passes: Callable[[int, int, int], bool],
    truth: list[int],
    size: int,
    is_false: Callable[[int, int, int], bool],
    *,
    in_order: bool = False,
) -> Fraction:
    """The exact probability of a false statement about the largest set that passes, for one configuration.

    ``passes`` takes the numbers of items of a set, and of its checked and wrong ones. All samples are counted, item by
    item: by the number of checked items so far, of wrong ones, and whether the last set that passed is a false one.
    With ``in_order`` the sets after one that does not pass are left out.
    """
    ways, found = {(0, 0, False, True): 1}, 0
    for items, bad in enumerate(truth, start=1):
        found += bad
        following: dict[tuple[int, int, bool, bool], int] = defaultdict(int)
        for (checked, wrong, false, going), number in ways.items():
            for m, k in ((checked, wrong), (checked + 1, wrong + bad)):
                if m <= size <= m + len(truth) - items:
                    ok = going and passes(items, m, k)
                    state = is_false(items, found, found - k) if ok else false
                    following[m, k, state, going and (ok or not in_order)] += number
        ways = following
    assert sum(ways.values()) == math.comb(len(truth), size)
    return Fraction(sum(number for (_, _, false, _), number in ways.items() if false), math.comb(len(truth), size))


def just_too_many(limit: Fraction, pool: int) -> list[int]:
    """A configuration in which every set has one wrong item too many."""
    truth: list[int] = []
    for items in range(1, pool + 1):
        truth.append(int(sum(truth) <= limit * items))
    return truth


POOL: Final = 60
CHECKED: Final = 30
LIMIT: Final = Fraction(1, 5)


@cache
def bound(items: int, checked: int, wrong: int) -> int:
    return upper_bound(wrong, checked, items, 0.05)


def too_many(items: int, wrong: int, _: int) -> bool:
    return wrong > LIMIT * items


def test_the_rule_for_a_share_in_a_larger_pool() -> None:
    truth = just_too_many(LIMIT, POOL)
    for start in (5, 20, 50):
        passes = cache(lambda n, m, k, start=start: n < start or bound(n, m, k) <= LIMIT * n)

        def false(items: int, wrong: int, _: int, start: int = start) -> bool:
            return items >= start and too_many(items, wrong, 0)

        assert level(passes, truth, CHECKED, false, in_order=True) <= Fraction(0.05)


@pytest.mark.no_cover
def test_simpler_rules_for_a_share_are_false_too_often() -> None:
    truth = just_too_many(LIMIT, POOL)
    # The largest set whose own bound is low enough, without those before it.
    assert level(lambda n, m, k: bound(n, m, k) <= LIMIT * n, truth, CHECKED, too_many) > Fraction(9, 100)
    # A bound that is compared with a share of all items, and not of the accepted ones.
    assert level(lambda n, m, k: bound(n, m, k) <= LIMIT * POOL, truth, CHECKED, too_many) > Fraction(9, 10)
    # The share of wrong items in the sample.
    assert level(lambda n, m, k: m > 0 and k <= LIMIT * m, truth, CHECKED, too_many) > Fraction(8, 10)


@pytest.mark.parametrize("allowed", [5, 8])
def test_the_rule_for_corrected_items_in_a_larger_pool(allowed: int) -> None:
    most = largest_count(allowed, CHECKED, POOL, 0.05)
    assert most >= 0
    reached = by_sample = Fraction(0)
    for share in (Fraction(1, 10), LIMIT, Fraction(1, 2), Fraction(1)):
        truth = (
            just_too_many(share, POOL) if share < 1 else [1] * (allowed + most + 1) + [0] * (POOL - allowed - most - 1)
        )

        def left(_: int, __: int, wrong_left: int) -> bool:
            return wrong_left > allowed

        exact_level = level(lambda n, m, k: k <= most, truth, CHECKED, left)
        assert exact_level <= Fraction(0.05)
        reached = max(reached, exact_level)
        # The share of wrong items in the sample, as a rule.
        in_sample = level(lambda n, m, k: m > 0 and k * (n - m) <= allowed * m, truth, CHECKED, left)
        by_sample = max(by_sample, in_sample)
    assert by_sample > Fraction(2, 10)
    # The level of the test itself, which the last configuration attains.
    assert reached == exact.cdf(POOL, allowed + most + 1, CHECKED, most)


def test_items_that_cannot_be_labelled_count_as_wrong() -> None:
    """Of the accepted items outside the check, at most B are wrong or cannot be labelled."""
    pool, size, allowed, alpha = 7, 4, 1, 0.8

    @cache
    def part(sample: tuple[int, ...], kinds: str) -> int:
        labelled = {item: "right" for item, kind in zip(sample, kinds, strict=True) if kind != "u"}
        check = Check(sample, pool=pool, alpha=alpha).tell(labelled)
        check = check.cannot_label([item for item in sample if item not in labelled])
        predictions = ["wrong" if kind == "w" else "right" for kind in kinds]
        found = accept_corrected(check, predictions, DISTINCT[:pool], allowed)
        inside = [kind for item, kind in zip(sample, kinds, strict=True) if item < found.accepted]
        assert (found.unlabelable, found.wrong) == (inside.count("u"), len(inside) - inside.count("r"))
        return found.accepted

    samples = list(combinations(range(pool), size))
    for kinds in ("uwwuwww", "wuuwwur", "rruwwuw", "wwwuuuu", "rrrruww"):
        false = 0
        for sample in samples:
            end = part(sample, "".join(kinds[item] for item in sample))
            false += sum(kinds[item] != "r" for item in range(end) if item not in sample) > allowed
        assert Fraction(false, len(samples)) <= Fraction(alpha) / 2


# The rules.


@given(st.integers(1, 40), st.sampled_from([0.02, 0.1, 0.3, 0.6]), st.data())
@examples(100)
def test_the_largest_count_is_that_of_its_definition(pool: int, alpha: float, data: st.DataObject) -> None:
    checked = data.draw(st.integers(1, pool))
    allowed = data.draw(st.integers(0, pool))

    def holds(wrong: int) -> bool:
        items = allowed + wrong + 1
        return items > pool or exact.cdf(pool, items, checked, wrong) <= Fraction(alpha)

    found = [wrong for wrong in range(checked + 1) if holds(wrong)]
    # What holds for a number holds for smaller ones.
    assert found == list(range(len(found)))
    assert largest_count(allowed, checked, pool, alpha) == len(found) - 1


@st.composite
def checked_pools(draw: st.DrawFn) -> tuple[list[float], Check, dict[int, str], list[bool]]:
    """Confidences with ties, a check with items that cannot be labelled, and predictions."""
    pool = draw(st.integers(1, 40))
    confidence = draw(
        st.lists(st.sampled_from([0.1, 0.2, 0.25, 0.5, 0.7, 0.9, 0.95, 1.0]), min_size=pool, max_size=pool)
    )
    sample = draw(st.lists(st.integers(0, pool - 1), min_size=1, max_size=pool, unique=True))
    kinds = draw(st.lists(st.sampled_from("rrrrwu"), min_size=len(sample), max_size=len(sample)))
    check = Check(tuple(sample), pool=pool, alpha=draw(st.sampled_from([0.05, 0.4, 0.9])))
    absent = [item for item, kind in zip(sample, kinds, strict=True) if kind == "u"]
    check = check.tell({item: "x" for item in sample if item not in absent}).cannot_label(absent)
    predictions = {item: "y" if kind == "w" else "x" for item, kind in zip(sample, kinds, strict=True)}
    return confidence, check, predictions, [kind != "r" for kind in kinds]


def sets_of(confidence: list[float]) -> list[float]:
    """All thresholds, the largest one first, and one that accepts nothing."""
    return [math.inf, *sorted(set(confidence), reverse=True)]


@given(checked_pools(), st.integers(0, 10))
@examples(150)
def test_the_largest_set_with_few_wrong_items_is_accepted(case: Any, allowed: int) -> None:
    confidence, check, predictions, faults = case
    found = accept_corrected(check, predictions, dict(enumerate(confidence)), allowed)
    limit = max(
        (
            k
            for k in range(check.size + 1)
            if allowed + k + 1 > check.pool
            or exact.cdf(check.pool, allowed + k + 1, check.size, k) <= Fraction(check.alpha_spent)
        ),
        default=-1,
    )
    best = math.inf
    for threshold in sets_of(confidence):
        wrong = sum(bad for item, bad in zip(check.items, faults, strict=True) if confidence[item] >= threshold)
        inside = [item for item, each in enumerate(confidence) if each >= threshold]
        if wrong <= limit or len(set(inside) - set(check.items)) <= allowed:
            best = threshold
    assert found.threshold == (None if best == math.inf else best)
    assert found.accepted == sum(each >= best for each in confidence)
    assert found.accepted + found.left + sum(confidence[item] < best for item in check.items) == check.pool
    assert AcceptedPart.from_dict(json.loads(json.dumps(found.to_dict()))) == found
    assert accept_corrected(check, predictions, confidence, allowed) == found


@given(checked_pools(), st.sampled_from([0.0, 0.05, 0.29, 0.5, 1.0]), st.booleans())
@examples(150)
def test_all_sets_up_to_the_accepted_one_pass(case: Any, at_most: float, usual: bool) -> None:
    confidence, check, predictions, faults = case
    shares = accepted_shares(check.size, check.pool, at_most, alpha=check.alpha_spent) if usual else (0.1, 0.29, 0.7)
    found = accept_share(check, predictions, confidence, at_most, shares=None if usual else shares)
    falling, best = sorted(confidence, reverse=True), math.inf
    for share in shares:
        threshold = falling[math.ceil(Fraction(repr(share)) * check.pool) - 1]
        items = sum(each >= threshold for each in confidence)
        inside = [bad for item, bad in zip(check.items, faults, strict=True) if confidence[item] >= threshold]
        bound = exact.upper(sum(inside), len(inside), items, check.alpha_spent)
        if bound > Fraction(repr(at_most)) * items:
            break
        best = threshold
    assert found.threshold == (None if best == math.inf else best)
    assert found.accepted == sum(each >= best for each in confidence)
    assert found.allowed == math.floor(Fraction(repr(at_most)) * found.accepted)
    assert AcceptedPart.from_dict(json.loads(json.dumps(found.to_dict()))) == found


@given(st.integers(1, 500), st.integers(1, 200_000), st.sampled_from([0.0, 0.01, 0.05, 0.3, 1.0]))
@examples(100)
def test_the_start_set_has_enough_checked_items(checked: int, pool: int, at_most: float) -> None:
    shares = accepted_shares(checked, pool, at_most, alpha=0.025)
    assert shares[-1] == 1.0
    assert all(round(20 * (second - first)) == 1 for first, second in pairwise(shares))
    allowed = math.floor(Fraction(repr(at_most)) * pool)
    needed = next((m for m in range(min(checked, pool) + 1) if upper_bound(0, m, pool, 0.025) <= allowed), None)
    assert shares[0] >= 0.5
    if len(shares) > 1:
        assert needed is not None
        assert shares[0] * checked >= 1.1 * needed - 1e-9


# Many items.


def test_many_items() -> None:
    rng = np.random.default_rng(0)
    confidence = rng.random(200_000).round(4)
    check = Check.draw(np.arange(200_000), 1000, rng)
    wrong = rng.random(200_000) < 0.2 * (1.0 - confidence) ** 2
    check = check.tell(dict.fromkeys(check.items, "x"))
    predictions = {item: "y" if wrong[item] else "x" for item in check.items}
    corrected = accept_corrected(check, predictions, confidence, allowed=10_000)
    assert corrected.threshold is not None
    assert 100_000 < corrected.accepted < 200_000
    assert wrong[confidence >= corrected.threshold].sum() <= 10_000
    shared = accept_share(check, predictions, confidence, at_most=0.05)
    assert shared.threshold is not None
    accepted_items = confidence >= shared.threshold
    assert accepted_items.sum() == shared.accepted
    assert wrong[accepted_items].mean() <= 0.05
    assert shared.accepted > 100_000


# Sentences and files.


def answered(number: int = 1, wrong: int = 0) -> tuple[Check, list[str]]:
    check = Check(tuple(range(0, 400, 2)), pool=400, number=number)
    predictions = ["b" if place < wrong else "a" for place in range(200)]
    return check.tell(dict.fromkeys(check.items, "a")), predictions


def test_sentences() -> None:
    check, predictions = answered(number=2)
    confidence = [1.0 - item / 400 for item in range(400)]
    everything = accept_corrected(check, predictions, confidence, 10, model="rules")
    assert str(everything) == (
        "Of the 200 items with a confidence of at least 0.0025 that are not in the check, at most 10 are predicted "
        "wrong (95 % confidence; check 2 of these items). 0 items are left for people. So at most 10 of all 400 labels "
        "are wrong."
    )
    assert everything.evidence == (
        "A random check of 200 of 400 items contains 200 of the accepted part, of which 0 are wrong. The items that "
        "the check found wrong have the labels of people. The predictions are those of this model: rules."
    )
    nothing = accept_share(*answered(wrong=30), confidence, 0.05)
    assert nothing.threshold is None
    assert str(nothing) == (
        "No prediction can be accepted: the check does not show for any part that at most 5 % are predicted wrong. 200 "
        "items are left for people."
    )
    assert "No prediction can be accepted" in nothing._repr_html_()
    numbers = check.renamed({"a": 3.0})
    off = accept_share(numbers, [3.4] * 200, confidence, 0.1, tolerance=0.5)
    assert "at most 10 % are predicted off by more than 0.5" in str(off)
    assert off.left == 0


def test_bad_arguments_are_named() -> None:
    check, predictions = answered()
    confidence = [0.5] * 400
    terms = SequentialTerms(40, 4, 10, check.alpha_spent)
    with pytest.raises(InvalidValueError, match="draw a check of fixed size to accept a part of the predictions"):
        accept_share(Check((1, 2), 40, sequential=terms), ["a"] * 2, [0.5] * 40, 0.1)
    with pytest.raises(InvalidTypeError, match=r"that of a learner is check\.record"):
        accept_corrected(None, predictions, confidence, 3)  # type: ignore[arg-type]
    with pytest.raises(InvalidValueError, match="gives a guarantee when all its 3 items have an answer"):
        accept_corrected(Check((1, 2, 3), 40), ["a"] * 3, [0.5] * 40, 3)
    with pytest.raises(InvalidValueError, match="allowed must be a whole number, 0 or more"):
        accept_corrected(check, predictions, confidence, -1)
    with pytest.raises(InvalidValueError, match=r"confidence must be given for each of the 400 items .* not for 399"):
        accept_corrected(check, predictions, confidence[1:], 3)
    with pytest.raises(InvalidValueError, match="confidence must be a series that covers item 398"):
        accept_corrected(check, predictions, confidence[:300], 3)
    with pytest.raises(InvalidValueError, match="confidence must cover every item of the check; 0 is missing"):
        accept_corrected(check, predictions, {1: 0.5}, 3)
    with pytest.raises(InvalidValueError, match="confidence must be finite numbers; give items without one the lowest"):
        accept_corrected(check, predictions, [math.nan, *confidence[1:]], 3)
    with pytest.raises(InvalidTypeError, match="confidence must be a real number or an array"):
        accept_corrected(check, predictions, ["high"] * 400, 3)
    with pytest.raises(InvalidValueError, match="at_most must be a number from 0 to 1"):
        accept_share(check, predictions, confidence, 1.5)
    for shares in ((), (0.0, 0.5), (0.5, 0.5), (0.6, 0.5)):
        with pytest.raises(InvalidValueError, match="shares must be at least one share above 0, rising"):
            accept_share(check, predictions, confidence, 0.1, shares=shares)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"goal": "beauty"}, 'goal must be "corrected" or "share"'),
        ({"wrong": 80}, "80 wrong among 200 do not prove the statement"),
        ({"allowed": 41}, "allowed must be 80, by at_most, not 41"),
        ({"threshold": None}, "threshold must be None if nothing is accepted, and only then"),
        ({"accepted": 199}, "checked must not exceed pool"),
        ({"pool": 399}, "accepted must be at most 399, not 400"),
        ({"checked": 150}, "accepted_checked must be at most checked=150"),
        ({"at_most": None}, "at_most must be a share for the goal 'share' only"),
        ({"confidence": 0.99}, "confidence must be at most 1 - alpha"),
        ({"colour": "red"}, "unknown fields: colour"),
    ],
)
def test_changed_files_are_rejected(changes: dict[str, Any], message: str) -> None:
    saved = accept_share(*answered(wrong=20), [0.5] * 400, 0.2).to_dict()
    assert saved["accepted"] == 400
    with pytest.raises(InvalidValueError, match=message):
        AcceptedPart.from_dict({**saved, **changes})


@pytest.mark.slow
def test_the_start_set_decides_how_much_is_accepted() -> None:
    """The comparison of sets in the documentation of the module."""
    rng = np.random.default_rng(1)
    pool, checked, draws = 3000, 200, 100 if thorough() else 30
    place = (np.arange(pool) + 0.5) / pool
    wrong = rng.random(pool) < 0.5 * place**4
    found: dict[Any, float] = {}
    for _ in range(draws):
        check = Check.draw(np.arange(pool), checked, rng)
        check = check.tell(dict.fromkeys(check.items, "x"))
        predictions = {item: "y" if wrong[item] else "x" for item in check.items}
        for shares in (None, (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)):
            part = accept_share(check, predictions, 1.0 - place, 0.05, shares=shares)
            found[shares] = found.get(shares, 0.0) + part.accepted / pool / draws
    usual, from_a_tenth = found.values()
    assert usual > 0.4
    assert from_a_tenth < 0.1
