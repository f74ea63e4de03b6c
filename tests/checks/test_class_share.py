"""Share of a class: exact limits and their level in both forms, plans, sentences and the JSON form."""

import json
import math
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from itertools import combinations, product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice.checks import Check, ClassShare, SequentialTerms, SharePart, plan_share
from suffice.errors import InvalidTypeError, InvalidValueError
from tests.checks import exact
from tests.thoroughness import examples, some, thorough


def limits(parts: tuple[SharePart, ...], alpha: float) -> tuple[int, int]:
    share = ClassShare("x", parts, alpha, 1.0 - alpha)
    return share.least, share.most


@cache
def part_limits(pool: int, checked: int, found: int, unlabelable: int, alpha: float) -> tuple[int, int]:
    return limits((SharePart(pool, checked, found, unlabelable),), alpha)


def draws(pool: int, of_class: int, unknown: int, checked: int) -> Iterator[tuple[int, int, int]]:
    """Items of the class and items that cannot be labelled in a sample, and the number of such samples."""
    for found, absent in product(range(min(of_class, checked) + 1), range(min(unknown, checked) + 1)):
        if found + absent <= checked:
            rest = math.comb(pool - of_class - unknown, checked - found - absent)
            yield found, absent, math.comb(of_class, found) * math.comb(unknown, absent) * rest


# The level.


@pytest.mark.parametrize("alpha", [0.1, 0.4])
@pytest.mark.parametrize("pool", some([4, 7, 9, 10, 11, 12], every=3))
def test_pooled_limits_hold(pool: int, alpha: float) -> None:
    """For all numbers of items of the class and of items without a label, and all samples of all sizes.

    An item that cannot be labelled may or may not belong to the class, so that the limits must hold for both.
    """
    largest = Fraction(0)
    for of_class, checked in product(range(pool + 1), range(1, pool)):
        for unknown in range(pool - of_class + 1):
            false = 0
            for found, absent, ways in draws(pool, of_class, unknown, checked):
                least, most = part_limits(pool, checked, found, absent, alpha)
                false += ways * (least > of_class or most < of_class + unknown)
            level = Fraction(false, math.comb(pool, checked))
            assert level <= Fraction(alpha), (of_class, unknown, checked)
            largest = max(largest, level)
    assert alpha < 0.4 or largest > Fraction(1, 10)


@pytest.mark.parametrize("alpha", [0.2, 0.6])
@pytest.mark.parametrize("pools", some([(3, 5), (4, 4), (2, 7), (5, 5), (0, 6), (4, 6)], every=2))
def test_split_limits_hold(pools: tuple[int, int], alpha: float) -> None:
    """The same for limits that are split by prediction; the check contains any number of items of each part."""
    unknowns = [(0, 0), (1, 0), (0, 1), (1, 2)] if thorough() else [(0, 0), (1, 1)]
    split_limits = cache(limits)
    for truth, unknown in product(product(*(range(size + 1) for size in pools)), unknowns):
        if any(t + u > size for t, u, size in zip(truth, unknown, pools, strict=True)):
            continue
        for checked in range(1, sum(pools)):
            false = total = 0
            for inside in range(max(0, checked - pools[1]), min(pools[0], checked) + 1):
                sizes = inside, checked - inside
                for first, second in product(
                    *(draws(*case) for case in zip(pools, truth, unknown, sizes, strict=True))
                ):
                    parts = tuple(
                        SharePart(pool, size, k, u)
                        for pool, size, (k, u, _) in zip(pools, sizes, (first, second), strict=True)
                    )
                    least, most = split_limits(parts, alpha)
                    total += first[2] * second[2]
                    false += first[2] * second[2] * (least > sum(truth) or most < sum(truth) + sum(unknown))
            assert total == math.comb(sum(pools), checked)
            assert Fraction(false, total) <= Fraction(alpha), (truth, unknown, checked)


def test_with_the_whole_error_probability_for_each_limit_they_do_not_hold() -> None:
    alpha, pool = 0.4, 9
    levels = []
    for of_class, checked in product(range(pool + 1), range(1, pool)):
        false = sum(
            ways * (exact.lower(k, checked, pool, alpha) > of_class or exact.upper(k, checked, pool, alpha) < of_class)
            for k, _, ways in draws(pool, of_class, 0, checked)
        )
        levels.append(Fraction(false, math.comb(pool, checked)))
    assert max(levels) > Fraction(alpha)


# The limits.


@given(st.integers(1, 40), st.data())
@examples(100)
def test_limits_are_those_of_every_possible_number(pool: int, data: st.DataObject) -> None:
    checked = data.draw(st.integers(0, pool))
    found = data.draw(st.integers(0, checked))
    absent = data.draw(st.integers(0, checked - found))
    before = data.draw(st.integers(0, 20))
    known = data.draw(st.integers(0, before))
    share = ClassShare.of_counts(
        "x", found, checked, pool, alpha=0.1, unlabelable=absent, labelled_before=before, found_before=known
    )
    assert share.least == known + exact.lower(found, checked, pool, 0.05)
    assert share.most == known + exact.upper(found + absent, checked, pool, 0.05)
    assert share.found + known <= share.least <= share.most
    assert share.most <= known + found + absent + pool - checked
    assert share.rows == pool + before
    assert 0.0 <= share.low <= share.high <= 1.0
    saved = json.loads(json.dumps(share.to_dict()))
    assert ClassShare.from_dict(saved) == share
    assert saved["statement"] == str(share)


def test_the_check_is_counted() -> None:
    """The same limits from every sample of a pool with a class, predictions and items without a label."""
    truth = ["x", "x", "y", "y", None, "y", "x"]
    predictions = dict(enumerate(["x", "y", "x", "y", "x", "y", "y"]))
    for sample in combinations(range(7), 4):
        check = Check(sample, pool=7, alpha=0.4)
        check = check.tell({item: label for item in sample if (label := truth[item]) is not None})
        check = check.cannot_label([item for item in sample if truth[item] is None])
        pooled = ClassShare.of_check(check, "x", labelled_before=5, found_before=2)
        found = sum(truth[item] == "x" for item in sample)
        assert pooled.parts == (SharePart(7, 4, found, int(4 in sample)),)
        assert pooled.least == 2 + exact.lower(found, 4, 7, 0.1)
        assert pooled.alpha == 0.2
        assert pooled.confidence == 0.6
        split = ClassShare.of_check(check, "x", predictions=predictions, predicted=3, parts=2)
        inside = [item for item in sample if predictions[item] == "x"]
        counts = len(inside), sum(truth[item] == "x" for item in inside), int(4 in sample)
        assert split.parts[0] == SharePart(3, *counts)
        assert split.parts[1] == SharePart(4, 4 - counts[0], found - counts[1], 0)
        assert split.least == sum(exact.lower(part.found, part.checked, part.pool, 0.025) for part in split.parts)
        assert split.split
        assert not pooled.split


def test_splitting_helps_if_predictions_are_accurate_and_the_class_is_common() -> None:
    """One fifth of 5,000 items belongs to the class; a check of 400 typically has these numbers."""
    pooled = ClassShare.of_counts("x", 80, 400, 5000)
    for accuracy, narrower in ((0.95, True), (0.8, False)):
        right, wrong = round(80 * accuracy), round(320 * (1.0 - accuracy))
        named = right + wrong
        parts = (
            SharePart(named * 5000 // 400, named, right),
            SharePart(5000 - named * 5000 // 400, 400 - named, 80 - right),
        )
        split = ClassShare("x", parts, 0.05, 0.95)
        assert (split.most - split.least < pooled.most - pooled.least) == narrower


# Plans.


def typical_width(parts: list[tuple[int, int]], size: int, alpha: float) -> int:
    """The distance between the limits for the mean numbers, rounded, by the definition."""
    pool, total, begun = sum(items for items, _ in parts), 0, 0
    before = 0
    for items, of_class in parts:
        before += items
        checked = math.floor(Fraction(size * before, pool) + Fraction(1, 2)) - begun
        begun += checked
        if items:
            found = math.floor(Fraction(checked * of_class, items) + Fraction(1, 2))
            level = alpha / (2 * len(parts))
            total += exact.upper(found, checked, items, level) - exact.lower(found, checked, items, level)
    return total


@given(
    st.integers(1, 25), st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.8, 1.0]), st.sampled_from([0.05, 0.2, 0.29, 0.5, 1.0])
)
@examples(100)
def test_the_plan_is_the_least_size(pool: int, expected: float, width: float) -> None:
    of_class = math.floor(Fraction(repr(expected)) * pool + Fraction(1, 2))
    found = plan_share(width, expected, pool, alpha=0.2).labels
    enough = [
        size for size in range(pool + 1) if typical_width([(pool, of_class)], size, 0.2) <= Fraction(repr(width)) * pool
    ]
    assert found == enough[0]


@given(st.integers(0, 12), st.integers(0, 12), st.data())
@examples(60)
def test_the_plan_of_split_limits_is_the_least_size(first: int, second: int, data: st.DataObject) -> None:
    pool = first + second
    if not pool:
        return
    right, others = data.draw(st.integers(0, first)), data.draw(st.integers(0, second))
    share = data.draw(st.sampled_from([0.1, 0.3, 0.6]))
    made = plan_share(share, (right + others) / pool, pool, alpha=0.4, predicted=first, right=right)
    parts = [(first, right), (second, others)]
    enough = [size for size in range(pool + 1) if typical_width(parts, size, 0.4) <= Fraction(repr(share)) * pool]
    assert made.labels == enough[0]


def test_plans_of_large_pools() -> None:
    for pool, width, expected in ((5000, 0.08, 0.2), (10**6, 0.01, 0.001), (10**9, 0.02, 0.5)):
        labels = plan_share(width, expected, pool).labels
        of_class = round(expected * pool)

        def distance(size: int, pool: int = pool, of_class: int = of_class) -> float:
            share = ClassShare.of_counts("x", math.floor(size * of_class / pool + 0.5), size, pool)
            return share.high - share.low

        assert distance(labels) <= width < distance(labels - 1)


def test_plans_in_words() -> None:
    plan = plan_share(0.08, 0.2, 5000, predicted=1000, right=950)
    assert str(plan) == (
        "A check of 148 of 5,000 items typically gives an interval of at most 8 percentage points for the share of the "
        "class (95 % confidence), if 20 % belong to it and 950 of the 1,000 that are predicted as the class are right."
    )
    with pytest.raises(InvalidValueError, match="width must be a number above 0 and at most 1"):
        plan_share(0.0, 0.2, 5000)
    with pytest.raises(InvalidValueError, match="predicted and right must be given together"):
        plan_share(0.1, 0.2, 5000, predicted=3)
    for predicted, right in ((6000, 900), (1000, 1001), (2000, 1001), (4900, 100)):
        with pytest.raises(InvalidValueError, match="do not fit 1000 items of the class among 5000"):
            plan_share(0.1, 0.2, 5000, predicted=predicted, right=right)
    with pytest.raises(InvalidValueError, match="pool must be a whole number"):
        plan_share(0.1, 0.2, 0)


# Sentences and files.


def test_sentences() -> None:
    share = ClassShare.of_counts("spam", 24, 200, 4600, unlabelable=1, labelled_before=400, found_before=90)
    assert str(share) == (
        "Between 455 and 907 of the 5,000 items (9.1 to 18.2 %) belong to class 'spam' (95 % confidence)."
    )
    assert share.evidence == (
        "A random check of 200 of 4,600 items found 24 of the class. 1 item could not be labelled: it counts as not of "
        "the class in the lower limit, and as of the class in the upper one. Of 400 items that were labelled before, "
        "90 are of the class."
    )
    assert "Between 455 and 907" in share._repr_html_()
    everything = ClassShare.of_counts("spam", 1, 9, 9)
    assert str(everything) == "Exactly 1 of the 9 items (11 %) belongs to class 'spam' (95 % confidence)."
    check = Check((0, 1), pool=2, number=3).tell({0: 1, 1: 2})
    split = ClassShare.of_check(check, 1, predictions=[1, 1], predicted=2, model="rules")
    assert str(split).endswith("belongs to class '1' (95 % confidence; check 3 of these items).")
    assert split.evidence.endswith(
        "Items that are predicted as the class and the others have limits of their own, which were added. The "
        "predictions are those of this model: rules."
    )


@given(st.integers(1, 5000), st.data())
@examples(100)
def test_no_sentence_says_more_than_the_limits(pool: int, data: st.DataObject) -> None:
    checked = data.draw(st.integers(0, min(pool, 300)))
    found = data.draw(st.integers(0, checked))
    share = ClassShare.of_counts("x", found, checked, pool)
    if share.least == share.most:
        return
    words = str(share).partition("(")[2].split()
    low, high = Fraction(words[0]) / 100, Fraction(words[2]) / 100
    least, most = Fraction(share.least, pool), Fraction(share.most, pool)
    tiny = Fraction(1, 10**12)
    assert low <= least + tiny
    assert high >= most - tiny
    assert high - low <= (most - least) * Fraction(13, 10) + tiny


def test_bad_arguments_are_named() -> None:
    check = Check((0, 1), pool=9).tell({0: "x", 1: "y"})
    terms = SequentialTerms(40, 4, 10, Check((1, 2), 40).alpha_spent)
    with pytest.raises(InvalidValueError, match="draw a check of fixed size for the share of a class"):
        ClassShare.of_check(Check((1, 2), 40, sequential=terms), "x")
    with pytest.raises(InvalidTypeError, match=r"that of a learner is check\.record"):
        ClassShare.of_check(None, "x")  # type: ignore[arg-type]
    with pytest.raises(InvalidValueError, match="predictions and predicted must be given together"):
        ClassShare.of_check(check, "x", predictions=["x", "y"])
    with pytest.raises(InvalidValueError, match="predicted must be from 1 to 8, by the check's items, not 9"):
        ClassShare.of_check(check, "x", predictions=["x", "y"], predicted=9)
    with pytest.raises(InvalidValueError, match="gives a guarantee when all its 2 items have an answer"):
        ClassShare.of_check(Check((0, 1), pool=9), "x")
    with pytest.raises(InvalidValueError, match="found_before must be at most labelled_before=3"):
        ClassShare.of_check(check, "x", labelled_before=3, found_before=4)
    with pytest.raises(InvalidValueError, match="found and unlabelable together must not exceed checked"):
        ClassShare.of_counts("x", 3, 4, 9, unlabelable=2)
    with pytest.raises(InvalidValueError, match="confidence must be at most 1 - alpha"):
        ClassShare.of_counts("x", 3, 4, 9, confidence=0.99)
    with pytest.raises(InvalidValueError, match="class_name and model must be texts"):
        ClassShare.of_counts(3, 3, 4, 9)  # type: ignore[arg-type]
    with pytest.raises(InvalidValueError, match="parts must have at least one item"):
        ClassShare.of_counts("x", 0, 0, 0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"least": 3}, "least must be 365, by the counts, not 3"),
        ({"most": 3}, "most must be 791, by the counts, not 3"),
        ({"parts": "all"}, "parts of a saved ClassShare must be a list"),
        ({"parts": []}, "parts must be one or two SharePart"),
        ({"parts": [{"pool": 4}]}, "a saved SharePart lacks the fields checked, found"),
        ({"colour": "red"}, "unknown fields: colour"),
        ({"number": 0}, "number must be a whole number"),
    ],
)
def test_changed_files_are_rejected(changes: dict[str, Any], message: str) -> None:
    saved = ClassShare.of_counts("spam", 24, 200, 4600).to_dict()
    with pytest.raises(InvalidValueError, match=message):
        ClassShare.from_dict({**saved, **changes})
