"""Whether a confidence orders errors: the AUC, the exact test, its level, and when nothing is said."""

import json
import math
from fractions import Fraction
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice.checks import judged_confidence
from suffice.errors import InvalidTypeError, InvalidValueError
from tests.thoroughness import examples, thorough


def pairs(confidence: Any, wrong: Any) -> Fraction:
    """The AUC, pair by pair."""
    low = [c for c, bad in zip(confidence, wrong, strict=True) if bad]
    high = [c for c, bad in zip(confidence, wrong, strict=True) if not bad]
    return sum((Fraction((a > b) - (a < b) + 1, 2) for a, b in product(high, low)), Fraction(0)) / (
        len(low) * len(high)
    )


def p_value(confidence: Any, wrong: Any) -> Fraction:
    """The share of all choices of as many wrong items that have at least this AUC."""
    found, choices = pairs(confidence, wrong), list(combinations(range(len(wrong)), sum(wrong)))
    return Fraction(
        sum(pairs(confidence, [item in chosen for item in range(len(wrong))]) >= found for chosen in choices),
        len(choices),
    )


@given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=2, max_size=9))
@examples(150)
def test_few_items_are_exact(items: list[tuple[int, bool]]) -> None:
    confidence, wrong = [float(c) for c, _ in items], [bad for _, bad in items]
    judged = judged_confidence(confidence, wrong)
    if sum(wrong) in (0, len(wrong)):
        assert (judged.orders, judged.auc, judged.p_value) == (None, None, None)
        return
    assert judged.auc == pytest.approx(float(pairs(confidence, wrong)), abs=1e-12)
    assert judged.p_value == pytest.approx(float(p_value(confidence, wrong)), rel=1e-10)
    # Only the order counts.
    other = judged_confidence([math.exp(each) for each in confidence], wrong)
    assert (other.auc, other.p_value) == (judged.auc, judged.p_value)


@given(st.integers(1, 60), st.integers(1, 60), st.integers(0, 10**6))
@examples(60)
def test_items_without_ties_agree_with_scipy(n_wrong: int, n_right: int, seed: int) -> None:
    from scipy.stats import mannwhitneyu

    confidence = np.random.default_rng(seed).normal(size=n_wrong + n_right)
    wrong = np.arange(n_wrong + n_right) < n_wrong
    expected = mannwhitneyu(confidence[~wrong], confidence[wrong], alternative="greater", method="exact")
    judged = judged_confidence(confidence, wrong)
    assert judged.p_value == pytest.approx(float(expected.pvalue), rel=1e-9)
    assert judged.auc == pytest.approx(float(expected.statistic) / (n_wrong * n_right))


@pytest.mark.parametrize("confidence", [range(9), [1, 1, 1, 2, 2, 3, 4, 4, 4], [0] * 8 + [1], [2] * 9])
@pytest.mark.parametrize("alpha", [0.05, 0.2])
def test_the_level_is_at_most_alpha(confidence: Any, alpha: float) -> None:
    """If confidence and errors are unrelated, every choice of the wrong items is equally likely."""
    for n_wrong in range(1, 9):
        choices = list(combinations(range(9), n_wrong))
        false = sum(
            judged_confidence(list(confidence), [item in chosen for item in range(9)], alpha=alpha).orders is True
            for chosen in choices
        )
        assert Fraction(false, len(choices)) <= Fraction(alpha)


def test_many_items_are_compared_with_random_choices() -> None:
    from scipy.stats import mannwhitneyu

    rng = np.random.default_rng(0)
    for n_wrong, n_right, shift in ((20, 3000, 0.3), (300, 900, 0.1), (900, 300, 0.1), (5000, 5000, 0.0)):
        confidence = np.concatenate([rng.normal(size=n_wrong) - shift, rng.normal(size=n_right)])
        wrong = np.arange(len(confidence)) < n_wrong
        expected = float(mannwhitneyu(confidence[~wrong], confidence[wrong], alternative="greater").pvalue)
        judged = judged_confidence(confidence, wrong)
        assert judged.p_value is not None
        # Four standard deviations of 4,999 draws, and the levels of the confidence.
        assert abs(judged.p_value - expected) < 4.0 * math.sqrt(expected / 4999) + 0.005
        assert judged.p_value == judged_confidence(confidence, wrong).p_value


def test_ties_do_not_break_the_test_of_many_items() -> None:
    """Forty of 2,000 items have a low confidence, and the others the same: one of 5 wrong ones is among them."""
    confidence = [0.0] * 40 + [1.0] * 1960
    judged = judged_confidence(confidence, [True] + [False] * 1994 + [True] * 4 + [False])
    exact = 1.0 - math.comb(1960, 5) / math.comb(2000, 5)
    assert exact > 0.09
    # The normal approximation is 0.002.
    assert judged.p_value == pytest.approx(exact, abs=4.0 * math.sqrt(exact / 4999))
    assert judged.orders is None


def test_when_nothing_is_said() -> None:
    falling = np.linspace(1.0, 0.0, 60)
    last = np.arange(60) >= 58
    assert judged_confidence(falling, last).orders is None
    assert judged_confidence(falling, last).p_value == pytest.approx(1 / math.comb(60, 2))
    assert judged_confidence(falling, np.arange(60) >= 57).orders is True
    spread = np.arange(60) % 7 == 3
    assert spread.sum() == 9
    # 9 * 51 / 61 is below 8, and 10 * 50 / 61 is above.
    assert judged_confidence(falling, spread).orders is None
    assert judged_confidence(falling, spread | (np.arange(60) == 30)).orders is False
    assert judged_confidence(falling, np.arange(60) < 20).orders is False


def test_no_order_is_stated_only_if_one_would_probably_be_visible() -> None:
    """With an AUC of 0.75, at the smallest numbers with which no order may be stated."""
    rng, runs = np.random.default_rng(3), 600 if thorough() else 150
    shift = 0.9539  # the square root of 2 times the quantile of 0.75
    wrong = np.arange(60) < 10
    orders = [judged_confidence(rng.normal(size=60) - shift * wrong, wrong).orders for _ in range(runs)]
    assert None not in orders
    assert 0.75 < np.mean(np.array(orders, dtype=bool)) < 0.91


def test_sentences_and_json() -> None:
    judged = judged_confidence([0.1, 0.2, 0.3, 0.4, 0.5, 0.6], [True, True, True, False, False, False])
    assert str(judged) == (
        "The confidence orders errors: a wrong prediction is less sure than a right one in 100 % of all pairs (3 "
        "wrong, 3 right, p = 0.05)."
    )
    assert json.loads(json.dumps(judged.to_dict()))["statement"] == str(judged)
    assert judged.to_dict()["auc"] == 1.0
    assert "in 0 % of all pairs" in str(judged_confidence(np.arange(60), np.arange(60) >= 40))


def test_bad_arguments_are_named() -> None:
    with pytest.raises(InvalidTypeError, match="wrong must be a series of True and False, not of int"):
        judged_confidence([0.1, 0.2], np.array([0, 1]))
    with pytest.raises(InvalidValueError, match=r"must be series of the same length, not of shapes \(2,\) and \(3,\)"):
        judged_confidence([0.1, 0.2], [True, False, True])
    with pytest.raises(InvalidValueError, match="confidence must be finite numbers"):
        judged_confidence([0.1, math.nan], [True, False])
    with pytest.raises(InvalidTypeError, match="confidence must be a real number or an array"):
        judged_confidence(["low", "high"], [True, False])
    with pytest.raises(InvalidValueError, match="alpha must be a number above 0 and below 1"):
        judged_confidence([0.1, 0.2], [True, False], alpha=1.0)
