"""Changes of the error: Fisher's test, its exact level, and the first answers of sequential checks."""

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from fractions import Fraction
from functools import cache
from itertools import combinations, product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice.checks import ErrorChange, SequentialCheck, SequentialTerms, error_change, fixed_answers
from suffice.errors import InvalidTypeError, InvalidValueError
from tests.checks import exact
from tests.thoroughness import examples, some, thorough


def p_value(k1: int, m1: int, k2: int, m2: int) -> Fraction:
    """The definition, in rational numbers."""
    found = exact.pmf(m1 + m2, k1 + k2, m1, k1)
    all_of_them = (exact.pmf(m1 + m2, k1 + k2, m1, k) for k in range(m1 + 1))
    return sum((each for each in all_of_them if each <= found), Fraction(0))


def test_small_tables_are_exact() -> None:
    for m1, m2 in product(range(1, 9), repeat=2):
        for k1, k2 in product(range(m1 + 1), range(m2 + 1)):
            found = error_change((k1, m1), (k2, m2)).p_value
            assert found == pytest.approx(float(p_value(k1, m1, k2, m2)), rel=1e-12)


@given(st.integers(1, 3000), st.integers(1, 3000), st.data())
@examples(100)
def test_larger_tables_agree_with_scipy(m1: int, m2: int, data: st.DataObject) -> None:
    from scipy.stats import fisher_exact

    k1, k2 = data.draw(st.integers(0, m1)), data.draw(st.integers(0, m2))
    change = error_change((k1, m1), (k2, m2))
    expected = float(fisher_exact([[k1, m1 - k1], [k2, m2 - k2]]).pvalue)
    assert change.p_value == pytest.approx(expected, rel=1e-6, abs=1e-290)
    assert change.p_value == pytest.approx(error_change((k2, m2), (k1, m1)).p_value, rel=1e-9)
    # Right and wrong may be exchanged.
    assert change.p_value == pytest.approx(error_change((m1 - k1, m1), (m2 - k2, m2)).p_value, rel=1e-9)
    assert change.shares == (k1 / m1, k2 / m2)
    assert ErrorChange.from_dict(json.loads(json.dumps(change.to_dict()))) == change


def test_many_answers() -> None:
    """The product of a hundred thousand ratios is accurate: the probabilities of both sides are equal."""
    one = error_change((50_000, 10**6), (50_600, 10**6))
    other = error_change((50_600, 10**6), (50_000, 10**6))
    assert one.p_value == pytest.approx(other.p_value, rel=1e-9)
    spread = math.sqrt(2 * 50_300 * (1 - 0.0503))
    assert one.p_value == pytest.approx(math.erfc(599 / spread / math.sqrt(2)), rel=1e-3)


def test_the_level_is_at_most_alpha() -> None:
    """For all numbers of wrong items among those that were checked, each choice of them is equally likely."""
    for m1, m2 in product(range(1, 13 if thorough() else 9), repeat=2):
        for wrong in range(m1 + m2 + 1):
            counts = range(max(0, wrong - m2), min(wrong, m1) + 1)
            values = {k1: error_change((k1, m1), (wrong - k1, m2)).p_value for k1 in counts}
            for alpha in (0.01, 0.05, 0.2, 0.5):
                level = sum((exact.pmf(m1 + m2, wrong, m1, k1) for k1 in counts if values[k1] <= alpha), Fraction(0))
                assert level <= Fraction(alpha)


# Sequential checks.


def end(terms: SequentialTerms, wrong: list[bool]) -> int:
    """The number of answers at which a check ends, by a proof or because too many are wrong."""
    check = SequentialCheck(terms, range(terms.pool))
    while check.state == "open":
        check.tell(wrong[check.answered])
    return check.answered


TERMS = [
    SequentialTerms(9, 3, 4, 0.3),
    SequentialTerms(9, 3, 4, 0.3, corrected=True),
    SequentialTerms(9, 5, 3, 0.2),
    SequentialTerms(9, 1, 6, 0.4, corrected=True),
    SequentialTerms(9, 0, 6, 0.5),
    SequentialTerms(8, 2, 8, 0.1, corrected=True),
]


@pytest.mark.parametrize("terms", some(TERMS, every=3))
def test_no_check_proves_its_target_with_fewer_answers(terms: SequentialTerms) -> None:
    fixed = fixed_answers(terms)
    proofs = []
    for wrong in product([False, True], repeat=terms.pool):
        answers = end(terms, list(wrong))
        failed = sum(wrong[:answers]) > terms.allowed and not terms.corrected
        if not failed:
            proofs.append(answers)
    assert min(proofs) == fixed
    # A check with corrections cannot fail, so that it always has these answers.
    assert not terms.corrected or len(proofs) == 2**terms.pool


@cache
def ends(terms: SequentialTerms) -> dict[tuple[bool, ...], int]:
    return {wrong: end(terms, list(wrong)) for wrong in product([False, True], repeat=terms.pool)}


def placements(terms: SequentialTerms, checked: int, wrong: int) -> Iterator[tuple[int, tuple[bool, ...]]]:
    """The wrong items in a check of a first batch of as many items, and the answers of a second one in their order.

    If both batches come from the same source, each placement of the wrong items is equally likely.
    """
    for chosen in combinations(range(checked + terms.pool), wrong):
        places = {place - checked for place in chosen}
        yield sum(place < 0 for place in places), tuple(place in places for place in range(terms.pool))


@pytest.mark.parametrize("terms", some(TERMS, every=3))
def test_the_first_answers_of_a_sequential_check_are_a_sample_of_fixed_size(terms: SequentialTerms) -> None:
    checked, fixed, alpha = 5, fixed_answers(terms), 0.2
    changed = cache(lambda *case: error_change(case[:2], case[2:], alpha=alpha).changed)
    for wrong in range(1, checked + terms.pool):
        false = total = 0
        for first, answers in placements(terms, checked, wrong):
            total += 1
            # A check that failed earlier is not compared.
            if ends(terms)[answers] >= fixed:
                false += changed(first, checked, sum(answers[:fixed]), fixed)
        assert Fraction(false, total) <= Fraction(alpha), wrong


def stops(terms: SequentialTerms, share: float) -> Iterator[tuple[int, int, float]]:
    """Answers, wrong ones and probability of each end of a check, if each answer is wrong with the same probability."""
    reached = {0: 1.0}
    for answers, limit in enumerate(terms.limits(terms.pool).tolist(), start=1):
        following: dict[int, float] = defaultdict(float)
        for wrong, likely in reached.items():
            following[wrong] += likely * (1.0 - share)
            following[wrong + 1] += likely * share
        ended = {wrong for wrong in following if wrong <= limit or wrong > terms.allowed}
        yield from ((answers, wrong, following[wrong]) for wrong in ended)
        reached = {wrong: likely for wrong, likely in following.items() if wrong not in ended and likely > 1e-9}


def test_all_answers_of_a_sequential_check_are_not() -> None:
    """A check that ends when its answers look good shows changes that are none."""
    terms, checked, share, alpha = SequentialTerms(100, 20, 20, 0.05), 200, 0.2, 0.05
    fixed = fixed_answers(terms)

    def likely(wrong: int, answers: int) -> float:
        return math.comb(answers, wrong) * share**wrong * (1.0 - share) ** (answers - wrong)

    def level(ends: Iterable[tuple[int, int, float]]) -> float:
        found = 0.0
        for answers, wrong, probability in ends:
            if probability > 1e-5:
                # Almost all numbers of wrong answers in a check of 200 are among these.
                numbers = (k for k in range(15, 70) if error_change((k, checked), (wrong, answers)).p_value <= alpha)
                found += probability * sum(likely(k, checked) for k in numbers)
        return found

    assert level(stops(terms, share)) > 0.06
    assert level((fixed, wrong, likely(wrong, fixed)) for wrong in range(fixed + 1)) <= alpha


@given(st.integers(1, 3000), st.data())
@examples(60)
def test_fixed_answers_are_the_first_ones_with_a_limit(pool: int, data: st.DataObject) -> None:
    allowed, planned = data.draw(st.integers(0, pool - 1)), data.draw(st.integers(1, pool))
    for corrected in (False, True):
        terms = SequentialTerms(pool, allowed, planned, 0.025, corrected)
        fixed = fixed_answers(terms)
        limits = terms.limits(fixed)
        assert limits[-1] >= 0
        assert (limits[:-1] < 0).all()


def test_terms_without_a_check() -> None:
    assert fixed_answers(SequentialTerms(9, 9, 4, 0.3)) == 0
    with pytest.raises(InvalidTypeError, match=r"give check\.terms or check\.sequential"):
        fixed_answers(3)  # type: ignore[arg-type]


@pytest.mark.slow
def test_terms_that_cannot_be_proven() -> None:
    with pytest.raises(InvalidValueError, match="cannot prove with 100,000 answers"):
        fixed_answers(SequentialTerms(10**9, 3, 4, 0.3))


# Sentences and files.


def test_sentences() -> None:
    assert str(error_change((3, 150), (30, 1200))) == (
        "No change of the error is visible: 3 of 150 checked predictions were wrong, then 30 of 1,200 (2 % and 2.5 %, "
        "p = 1)."
    )
    assert str(error_change((3, 150), (60, 150))) == (
        "The error has changed: 3 of 150 checked predictions were wrong, then 60 of 150 (2 % and 40 %, p < 0.001)."
    )
    assert error_change((2, 100), (12, 100), alpha=0.01).changed is False


@pytest.mark.parametrize(
    ("first", "error", "message"),
    [
        (3, InvalidTypeError, r"first must be a number of wrong predictions and a number of answers, .*\(3, 100\)"),
        ((1, 2, 3), InvalidTypeError, "first must be a number of wrong predictions"),
        ((5, 4), InvalidValueError, r"first\[0\] must not exceed checked"),
        ((0, 0), InvalidValueError, r"first\[1\], the number of answers, must be from 1"),
        ((0.5, 4), InvalidValueError, r"first\[0\] must be a whole number"),
        (("a", 4), InvalidTypeError, r"first\[0\] must be a whole number"),
    ],
)
def test_bad_arguments_are_named(first: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        error_change(first, (3, 100))


def test_changed_files_are_rejected() -> None:
    saved = error_change((2, 100), (12, 100)).to_dict()
    with pytest.raises(InvalidValueError, match=r"p_value must be 0\.01"):
        ErrorChange.from_dict({**saved, "p_value": 0.02})
    with pytest.raises(InvalidValueError, match="lacks the fields first"):
        ErrorChange.from_dict({key: value for key, value in saved.items() if key != "first"})
    with pytest.raises(InvalidValueError, match="alpha must be a number above 0"):
        ErrorChange.from_dict({**saved, "alpha": 0.0})
