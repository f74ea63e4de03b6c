"""How many answers a check takes, against sequential checks that are drawn, and what a sample has shown."""

from fractions import Fraction
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice.checks import answer_table, plan, plan_answers, sample_bounds, sequential, spent_alpha
from suffice.checks.answer_plan import HIGH, LOW, MIDDLE
from suffice.errors import InvalidTypeError, InvalidValueError
from tests.thoroughness import examples


def answers_of_a_check(pool: int, wrong_items: int, seed: int, *, corrected: bool, expected: float) -> int | None:
    """The number of answers after which a drawn check has proven that at most 10 % are wrong."""
    check = sequential(0.1, pool, seed=seed, corrected=corrected, expected=expected)
    order = check.next(pool).tolist()
    for number, item in enumerate(order, start=1):
        check = check.tell([item < wrong_items])
        if check.guarantee is not None:
            return number
    return None


@pytest.mark.no_cover
@pytest.mark.one_in(3)
@pytest.mark.parametrize(("wrong_items", "corrected"), [(9, False), (0, False), (5, False), (24, True), (5, True)])
def test_the_quantiles_are_those_of_drawn_checks(wrong_items: int, *, corrected: bool) -> None:
    pool, runs = 150, 200
    made = plan_answers(0.1, wrong_items / pool, pool, corrected=corrected)
    numbers = [
        answers_of_a_check(pool, wrong_items, seed, corrected=corrected, expected=wrong_items / pool)
        for seed in range(runs)
    ]
    for level, stated in ((LOW, made.low), (MIDDLE, made.median), (HIGH, made.high)):
        assert stated is not None
        within = np.mean([number is not None and number <= stated for number in numbers])
        before = np.mean([number is not None and number < stated for number in numbers])
        # Four standard deviations of a share of the runs.
        margin = 4.0 * (0.25 / runs) ** 0.5
        assert before - margin <= level <= within + margin
    assert min(filter(None, numbers)) >= made.fewest


@given(
    st.integers(20, 3000), st.floats(0.01, 0.5), st.floats(0.0, 1.0), st.booleans(), st.sampled_from([0.05, 0.01, 0.2])
)
@examples(60)
def test_a_plan_is_consistent(pool: int, at_most: float, part: float, corrected: bool, alpha: float) -> None:
    made = plan_answers(at_most, at_most * part, pool, alpha=alpha, corrected=corrected)
    assert made.alpha == spent_alpha(1, alpha)
    assert made.confidence == 1.0 - alpha
    known = [number for number in (made.fewest, made.low, made.median, made.high) if number is not None]
    assert known == sorted(known)
    assert 0 <= known[0] <= known[-1] <= pool
    if not corrected:
        fixed = plan(at_most, at_most * part, pool, alpha=made.alpha, items="all")
        assert made.fixed == fixed.labels
    assert str(made).endswith(".")
    assert made.as_dict()["median"] == made.median


def test_without_wrong_predictions_all_checks_are_equally_long() -> None:
    made = plan_answers(0.05, 0.0, 4600)
    assert made.fewest == made.low == made.median == made.high


def test_a_target_below_the_share_is_not_proven() -> None:
    made = plan_answers(0.05, 0.06, 20_000)
    assert (made.low, made.median, made.high, made.fixed) == (None, None, None, None)
    assert "cannot be proven if 6 % are wrong" in str(made)
    # When people correct what is found, it is only a matter of work.
    corrected = plan_answers(0.05, 0.06, 20_000, corrected=True)
    assert corrected.median is not None
    assert 0 < corrected.median < 20_000


def test_a_table_has_growing_numbers() -> None:
    made = answer_table(0.05, 4600)
    assert [plan.expected for plan in made] == [0.0, 0.01, 0.02, 0.03, 0.04]
    medians = [plan.median or 0 for plan in made]
    assert min(medians) > 0
    assert medians == sorted(medians)
    assert answer_table(0.05, 4600, number=2)[0].fewest > made[0].fewest


def exact_limit(pool: int, checked: int, wrong: int, alpha: Fraction) -> int:
    """The largest number of wrong items with which so few wrong ones in the sample are not too unlikely."""

    def at_most(items: int) -> Fraction:
        ways = sum(comb(items, k) * comb(pool - items, checked - k) for k in range(wrong + 1))
        return Fraction(ways, comb(pool, checked))

    return max(items for items in range(wrong, pool - checked + wrong + 1) if at_most(items) > alpha)


@given(st.integers(1, 60), st.data())
@examples(60)
def test_a_sample_has_the_exact_limits(pool: int, data: st.DataObject) -> None:
    checked = data.draw(st.integers(1, pool))
    wrong = data.draw(st.integers(0, checked))
    found = sample_bounds(pool, checked, wrong)
    most = exact_limit(pool, checked, wrong, Fraction(1, 20))
    least = pool - exact_limit(pool, checked, checked - wrong, Fraction(1, 20))
    assert (found.at_most, found.at_least) == (most / pool, least / pool)
    rest = pool - checked
    assert found.remaining_at_most == ((most - wrong) / rest if rest else None)
    assert str(found).endswith(".")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (0, "None of the 300 checked ones are wrong. Of the other 19,700, at most 1 % are wrong."),
        (1, "1 of the 300 checked ones is wrong, 0.33 %. With the same confidence at least"),
        (7, "7 of the 300 checked ones are wrong, 2.3 %."),
    ],
)
def test_the_words_of_a_sample(wrong: int, said: str) -> None:
    assert said in str(sample_bounds(20_000, 300, wrong))


def test_a_sample_of_everything() -> None:
    assert str(sample_bounds(60, 60, 3)) == "All 60 predictions were checked, and 3 are wrong, 5 %."


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0.0, 0.0, 100), "at_most must be a number above 0 and below 1"),
        ((1.0, 0.0, 100), "at_most must be a number above 0 and below 1"),
        ((0.05, 1.5, 100), "expected must be a number from 0 to 1"),
        ((0.05, float("nan"), 100), "expected must be a number from 0 to 1"),
        ((0.05, 0.02, 0), "pool must be"),
        ((0.05, 0.02, 10**13), "pool must be at most"),
        ((0.00001, 0.0, 10**9), "allow more"),
    ],
)
def test_plans_that_cannot_be_made(arguments: tuple[float, float, int], message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        plan_answers(*arguments)


def test_samples_that_cannot_be() -> None:
    with pytest.raises(InvalidValueError, match="wrong must not exceed checked"):
        sample_bounds(100, 10, 11)
    with pytest.raises(InvalidValueError, match="checked must not exceed pool"):
        sample_bounds(100, 101, 1)
    with pytest.raises(InvalidValueError, match="checked must be"):
        sample_bounds(100, 0, 0)
    with pytest.raises((InvalidTypeError, InvalidValueError), match="wrong must be"):
        sample_bounds(100, 10, 1.5)  # type: ignore[arg-type]
