"""The goal of a screening: what may be missed, the plan, the level of the check, and what is guaranteed at its end."""

import json
import math
from bisect import bisect_right
from fractions import Fraction
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice.checks import (
    Check,
    DataSetGuarantee,
    FinishPlan,
    Guarantee,
    ScreeningGuarantee,
    SequentialTerms,
    allowed_missed,
    plan_screening,
)
from suffice.checks.data_set import final_guarantee
from suffice.checks.finish_plan import joint_answers
from suffice.checks.sequential_terms import proof_probabilities
from suffice.errors import InvalidValueError

ALPHA = 0.025


# What may be missed.


@given(st.integers(0, 5000), st.integers(0, 99))
def test_the_number_that_may_be_missed_is_the_largest_that_keeps_the_goal(found: int, percent: int) -> None:
    goal, missed = Fraction(percent, 100), allowed_missed(percent / 100, found)
    # The check finds none: missed of found + missed. With one more, the goal would not be kept.
    assert missed <= goal * (found + missed)
    assert missed + 1 > goal * (found + missed + 1)


@given(st.integers(0, 300), st.integers(0, 99), st.integers(0, 300), st.data())
def test_what_the_check_finds_only_helps(found: int, percent: int, new: int, data: st.DataObject) -> None:
    missed = data.draw(st.integers(0, allowed_missed(percent / 100, found)))
    assert missed <= Fraction(percent, 100) * (found + new + missed)


def test_decimal_shares_are_exact() -> None:
    # In floating point, 0.05 / 0.95 * 19 is below 1.
    assert [allowed_missed(0.05, 19), allowed_missed(0.05, 18), allowed_missed(0.1, 9)] == [1, 0, 1]
    assert allowed_missed(0.5, 7) == 7
    assert allowed_missed(0.0, 1000) == 0


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ((1.0, 10), "at_most must be a number at least 0 and below 1"),
        ((-0.1, 10), "at_most must be"),
        ((float("nan"), 10), "at_most"),
        ((0.1, -1), "found must be a whole number"),
    ],
)
def test_numbers_out_of_range_are_refused(values: tuple[Any, ...], said: str) -> None:
    with pytest.raises(InvalidValueError, match=said):
        allowed_missed(*values)


# The level, exactly.


def level(pool: int, found: int, goal: float, alpha: float, of_class: int) -> Fraction:
    """The probability that a check ends with a false statement, over all orders of the items."""
    allowed = allowed_missed(goal, found)
    terms = SequentialTerms(pool, allowed, planned=max(1, pool // 2), alpha=alpha, corrected=True)
    limits, false = terms.limits(pool).tolist(), 0
    for places in combinations(range(1, pool + 1), of_class):
        # Read on until the answers so far prove the goal.
        for t in range(1, pool + 1):
            new = bisect_right(places, t)
            if new <= limits[t - 1]:
                break
        false += of_class - new > Fraction(str(goal)) * (found + of_class)
    return Fraction(false, math.comb(pool, of_class))


@pytest.mark.parametrize(("pool", "found"), list(product((5, 8, 11), (0, 1, 4, 12))))
@pytest.mark.parametrize("goal", [0.1, 0.2, 0.5])
def test_the_level_of_the_statement_for_all_orders(pool: int, found: int, goal: float) -> None:
    if allowed_missed(goal, found) >= pool:
        return
    alpha = 0.25
    assert max(level(pool, found, goal, alpha, of_class) for of_class in range(pool + 1)) <= Fraction(alpha)


def test_the_level_is_not_always_zero() -> None:
    # Otherwise the test above could not fail.
    assert max(level(11, 4, 0.2, 0.25, of_class) for of_class in range(12)) > Fraction(1, 20)


def test_the_level_of_larger_pools_by_recursion() -> None:
    alpha = 0.1
    for pool, found, goal in ((40, 19, 0.05), (40, 60, 0.05), (30, 0, 0.05)):
        allowed = allowed_missed(goal, found)
        terms = SequentialTerms(pool, allowed, planned=pool // 3, alpha=alpha, corrected=True)
        limits = terms.limits(pool)
        for of_class in range(pool + 1):
            reached, false = {0: Fraction(1)}, Fraction(0)
            for t in range(1, pool + 1):
                following: dict[int, Fraction] = {}
                for k, p in reached.items():
                    share = Fraction(of_class - k, pool - t + 1)
                    for new, part in ((k + 1, share), (k, 1 - share)):
                        if part:
                            following[new] = following.get(new, Fraction(0)) + p * part
                for k in [k for k in following if k <= limits[t - 1]]:
                    ended = following.pop(k)
                    false += ended * (of_class - k > Fraction(str(goal)) * (found + of_class))
                reached = following
            assert not reached, "every check ends"
            assert false <= Fraction(alpha)


def test_a_check_counts_items_of_the_class() -> None:
    # All orders of a small pool, by the object itself: its end is that of the terms.
    terms = SequentialTerms(6, 1, planned=3, alpha=0.3, corrected=True)
    for of_class in range(7):
        for places in combinations(range(6), of_class):
            labels = {item: "yes" if item in places else "no" for item in range(6)}
            check = Check((0,), 6, alpha=0.6, sequential=terms).reaching(range(6), {}, class_name="yes")
            while check.pending:
                check = check.tell({check.pending[0]: labels[check.pending[0]]})
                check = check.reaching(range(6), {}, class_name="yes")
            proven = check.found_guarantee("yes", found=3)
            wrong = [labels[item] == "yes" for item in range(6)]
            assert (proven.checked, proven.wrong) == (check.size, sum(wrong[: check.size]))
            assert terms.proof(wrong[: check.size]) == check.size
            assert terms.proof(wrong[: check.size - 1]) != check.size - 1
            assert proven.wrong_at_most == min(1, 6 - check.size)


# The plan.


@given(
    st.lists(st.floats(0.0, 1.0), min_size=1, max_size=300),
    st.integers(0, 300),
    st.data(),
    st.sampled_from([0.0, 0.02, 0.05, 0.1, 0.5]),
)
def test_a_plan_is_possible(shares: list[float], by_people: int, data: st.DataObject, at_most: float) -> None:
    found = data.draw(st.integers(0, by_people))
    plan = plan_screening(at_most, shares, class_name="yes", found=found, by_people=by_people, alpha=ALPHA)
    assert (plan.rows, plan.by_people, plan.found) == (by_people + len(shares), by_people, found)
    assert plan.wrong == pytest.approx(sum(shares))
    assert 0.0 <= plan.wrong_at_check <= plan.wrong + 1e-9
    assert plan.check_low <= plan.check_size <= plan.check_high
    # More is found before the check, so that more may be missed then.
    assert allowed_missed(at_most, found) <= plan.allowed
    assert plan.allowed <= allowed_missed(at_most, found + math.floor(plan.wrong - plan.wrong_at_check + 1e-6))
    assert plan.more_labels + plan.check_size <= len(shares) + 1
    assert plan.by_people_at_end + plan.predicted == plan.rows
    assert FinishPlan(**json.loads(json.dumps(plan.__dict__))) == plan


def ranked(n: int = 2000, of_class: int = 60) -> Any:
    """Probabilities of a ranking that is nearly right."""
    return np.concatenate([np.full(of_class, 0.9), np.full(n - of_class, 0.001)])


def test_likely_items_are_read_before_the_check() -> None:
    plan = plan_screening(0.05, ranked(), class_name="yes", found=140, by_people=200, alpha=ALPHA)
    assert 50 <= plan.more_labels <= 120
    assert not plan.check_now
    later = plan_screening(0.05, ranked()[60:], class_name="yes", found=194, by_people=260, alpha=ALPHA)
    assert later.check_now
    assert later.by_people_at_end == pytest.approx(plan.by_people_at_end, rel=0.1)
    # A larger share that may be missed takes less.
    wide = plan_screening(0.2, ranked(), class_name="yes", found=140, by_people=200, alpha=ALPHA)
    assert wide.by_people_at_end < 0.6 * plan.by_people_at_end


def test_the_plan_has_the_fewest_items() -> None:
    shares = np.linspace(0.9, 0.0, 1500) ** 6
    plan = plan_screening(0.05, shares, class_name="yes", found=50, by_people=100, alpha=ALPHA)
    totals = []
    for more in range(0, 1400, 20):
        found, left = 50 + math.floor(shares[:more].sum()), shares[more:].sum()
        answers = joint_answers([1500 - more], allowed_missed(0.05, found), [left], ALPHA)[0]
        totals.append(100 + more + answers)
    assert plan.by_people_at_end <= 1.02 * min(totals)


def test_without_a_find_nearly_everything_is_read() -> None:
    plan = plan_screening(0.05, [0.001] * 400, class_name="yes", found=0, by_people=20, alpha=ALPHA)
    assert plan.allowed == 0
    assert plan.by_people_at_end > 380


def test_when_no_more_are_left_than_may_be_missed_nothing_is_checked() -> None:
    plan = plan_screening(0.1, [0.5] * 11, class_name="yes", found=100, by_people=200, alpha=ALPHA)
    assert (plan.more_labels, plan.check_size, plan.allowed) == (0, 0, 11)
    assert "No check is necessary" in str(plan)


def test_a_later_check_must_save_items() -> None:
    shares = np.linspace(0.8, 0.0, 600) ** 4
    for n in range(50, 400, 50):
        found = n // 2
        given_values: dict[str, Any] = {"class_name": "yes", "found": found, "by_people": n, "alpha": ALPHA}
        plan = plan_screening(0.05, shares, **given_values)
        advised = plan_screening(0.05, shares, **given_values, check_advised=True)
        assert advised.more_labels <= plan.more_labels


def test_the_typical_number_of_answers_is_near_the_exact_mean() -> None:
    for pool, allowed, of_class in ((1500, 8, 0), (1500, 8, 5), (3000, 15, 10), (800, 3, 1)):
        (typical,) = joint_answers([pool], [allowed], [of_class], ALPHA)
        terms = SequentialTerms(pool, allowed, round(typical), ALPHA, corrected=True)
        proven = proof_probabilities(terms, [of_class], pool)[0]
        mean = 1.0 + float((1.0 - proven[:-1]).sum())
        assert 0.6 * mean < typical < 1.5 * mean
    several = joint_answers([1500, 3000], [8, 15], [5, 10], ALPHA)
    single = [joint_answers([1500], 8, [5], ALPHA)[0], joint_answers([3000], 15, [10], ALPHA)[0]]
    assert several.tolist() == single


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"found": 101}, "found must be at most by_people=100"),
        ({"found": -1}, "found must be a whole number"),
        ({"at_most": 1.0}, "at_most must be a number at least 0 and below 1"),
        ({"alpha": 0.0}, "alpha"),
        ({"rest": 10**13}, "there must be at most"),
    ],
)
def test_a_plan_that_cannot_be_made_is_refused(changes: dict[str, Any], said: str) -> None:
    values = {"at_most": 0.05, "class_name": "yes", "found": 50, "by_people": 100, "alpha": ALPHA, **changes}
    with pytest.raises(InvalidValueError, match=said):
        plan_screening(values.pop("at_most"), [0.1] * 50, **values)


def test_the_sentence_of_a_plan() -> None:
    plan = FinishPlan(0.05, 4000, 620, 16, 30.0, 20.0, 60.0, 300, 150, 90, 400, 4.0, "yes", 312)
    assert str(plan) == (
        "620 items read so far, 312 of class 'yes' found. Next: about 300 more, then a check of about 150 items "
        "(between 90 and 400). The other 2,900 need not be read."
    )
    assert plan.as_dict()["class_name"] == "yes"
    assert str(plan.after(920)).startswith("920 items read so far")
    # Other plans have no such values.
    assert "class_name" not in FinishPlan(0.05, 4000, 620, 200, 300.0, 200.0, 400.0, 300, 150, 90, 400).as_dict()


# The guarantee.


def proof(found: int = 312, pool: int = 5400, allowed: int = 16, wrong: int = 0, **stated: Any) -> Guarantee:
    terms = SequentialTerms(pool, allowed, planned=800, alpha=ALPHA, corrected=True)
    checked = terms.proof([True] * (wrong + stated.get("unlabelable", 0)))
    assert checked is not None
    return Guarantee.of_proof(terms, wrong, checked, class_name="yes", found=found, confidence=0.95, **stated)


def made(**changes: Any) -> ScreeningGuarantee:
    given_values: dict[str, Any] = {"class_name": "yes", "rows": 6000, "by_people": 1800, "found": 312}
    return ScreeningGuarantee(**{**given_values, "proof": proof(), "allowed": 16, "at_most": 0.05, **changes})


def test_a_guarantee_of_a_screening() -> None:
    found = made()
    assert str(found) == (
        "People have found at least 95.1 % of the items of class 'yes' (95 % confidence): 312 found, at most 16 missed "
        "among the 4,200 items that nobody read."
    )
    assert (found.predicted, found.missed_at_most, found.wrong_at_most, found.confidence) == (4200, 16, 16, 0.95)
    assert found.recall_at_least == 312 / 328
    assert found.value == 16 / 328
    assert found.recall_at_least + found.value == pytest.approx(1.0)
    assert found.reached
    assert "none of these 1,103 items was of the class. Proven: at most 16 of the class are missed." in found.evidence
    assert "about class 'yes' only" in found.evidence
    assert "People have found" in found._repr_html_()
    saved = json.loads(json.dumps(found.to_dict()))
    assert ScreeningGuarantee.from_dict(saved) == final_guarantee(saved) == found
    for name in ("found", "missed_at_most", "recall_at_least", "rows", "by_people", "predicted", "confidence", "value"):
        assert saved[name] == getattr(found, name)
    assert saved["proof"]["quantity"] == "recall"
    assert isinstance(final_guarantee(DataSetGuarantee(10, 9, None, 1, 0.1).to_dict()), DataSetGuarantee)


def test_items_that_nobody_could_label_are_stated() -> None:
    found = made(proof=proof(wrong=1, unlabelable=2), left_out=2)
    assert found.proof is not None
    assert found.proof.wrong_at_most == 16
    assert "2 items could not be labelled and count as items of the class" in found.evidence
    assert "2 items could not be labelled, and are not included" in found.evidence


def test_all_items_are_read() -> None:
    found = made(by_people=6000)
    assert (found.missed_at_most, found.recall_at_least, found.value) == (0, 1.0, 0.0)
    assert str(found) == "People have found all items of class 'yes': 312 found, and all items are read."
    none = made(by_people=6000, found=0)
    assert (none.recall_at_least, none.reached) == (1.0, True)


def test_without_a_check_no_more_are_unread_than_may_be_missed() -> None:
    found = made(by_people=5990, proof=None)
    assert (found.missed_at_most, found.confidence) == (10, 1.0)
    assert "confidence" not in str(found)
    assert "no check was necessary" in found.evidence
    assert ScreeningGuarantee.from_dict(found.to_dict()) == found
    with pytest.raises(InvalidValueError, match="without a check at most 16 items may be unread, not 17"):
        made(by_people=5983, proof=None)


def test_corrected_labels_may_lose_the_goal() -> None:
    # 16 of 320 are exactly 5 %; with one item less it is more.
    assert made(found=304).reached
    assert not made(found=303).reached


def test_a_false_guarantee_is_refused() -> None:
    with pytest.raises(InvalidValueError, match="found=400 must be at most by_people=300"):
        made(found=400, by_people=300)
    with pytest.raises(InvalidValueError, match="rows must be a whole number"):
        made(rows=-1)
    terms = SequentialTerms(5400, 16, planned=800, alpha=ALPHA, corrected=True)
    checked = terms.proof([])
    assert checked is not None
    other = Guarantee.of_proof(terms, wrong=0, checked=checked, confidence=0.95)
    with pytest.raises(InvalidValueError, match="proof must be that of a check of a screening"):
        made(proof=other)
    with pytest.raises(InvalidValueError, match="missed_at_most must be 16"):
        ScreeningGuarantee.from_dict({**made().to_dict(), "missed_at_most": 3})
    with pytest.raises(InvalidValueError, match="unknown fields: other"):
        ScreeningGuarantee.from_dict({**made().to_dict(), "other": 1})
    simple = SequentialTerms(5400, 16, planned=800, alpha=ALPHA)
    enough = simple.proof([])
    assert enough is not None
    with pytest.raises(InvalidValueError, match="a check with corrections"):
        Guarantee.of_proof(simple, 0, enough, class_name="yes", found=3)
    with pytest.raises(InvalidValueError, match="do not prove the target"):
        Guarantee.of_proof(terms, 40, checked, class_name="yes", found=3)


def test_a_check_of_fixed_size_has_another_guarantee() -> None:
    with pytest.raises(InvalidValueError, match="use recall_guarantee"):
        Check((0, 1), 4).tell({0: "yes", 1: "no"}).found_guarantee("yes", found=1)
