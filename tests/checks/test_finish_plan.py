"""Plans for a goal about a whole data set, and what is guaranteed at its end."""

import json
import math
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice.checks import (
    DataSetGuarantee,
    FinishPlan,
    Guarantee,
    SequentialTerms,
    allowed_wrong,
    plan_finish,
)
from suffice.checks.finish_plan import joint_answers
from suffice.checks.sequential_terms import proof_probabilities
from suffice.errors import InvalidValueError

ALPHA = 0.025


# The allowance.


@given(st.integers(0, 10_000), st.integers(0, 100), st.integers(0, 99))
def test_the_allowance_is_that_of_decimal_numbers(rows: int, goal: int, people: int) -> None:
    if people and people >= goal:
        with pytest.raises(InvalidValueError, match="leaves nothing of the goal"):
            allowed_wrong(goal / 100, rows, people / 100)
        return
    expected = math.floor(Fraction(goal - people, 100) * rows)
    assert allowed_wrong(goal / 100, rows, people / 100) == expected


@pytest.mark.parametrize(
    ("given_values", "said"),
    [
        ((1.5, 10), "at_most must be a number from 0 to 1"),
        ((0.1, -1), "rows must be a whole number"),
        ((0.1, 10, -0.1), "annotator_error must be a number at least 0 and below 1"),
        ((float("nan"), 10), "at_most"),
    ],
)
def test_an_allowance_out_of_range_is_refused(given_values: tuple[Any, ...], said: str) -> None:
    with pytest.raises(InvalidValueError, match=said):
        allowed_wrong(*given_values)


# The typical number of answers.


@pytest.mark.parametrize(("pool", "allowed"), [(300, 15), (1000, 20), (1000, 100), (2000, 100)])
@pytest.mark.parametrize("ratio", [0.25, 0.5, 0.8, 1.0, 1.5])
def test_the_typical_number_of_answers_is_near_the_exact_mean(pool: int, allowed: int, ratio: float) -> None:
    wrong = round(ratio * allowed)
    (typical,) = joint_answers([pool], allowed, [wrong], ALPHA)
    terms = SequentialTerms(pool, allowed, round(typical), ALPHA, corrected=True)
    proven = proof_probabilities(terms, [wrong], pool)[0]
    # The mean is the sum of the probabilities that a check goes on.
    mean = 1.0 + float((1.0 - proven[:-1]).sum())
    assert 0.65 * mean < typical < 1.35 * mean


@given(st.integers(1, 5000), st.integers(0, 500), st.floats(0.0, 1.0))
def test_a_check_ends_when_so_many_items_are_left_as_may_be_wrong(pool: int, allowed: int, share: float) -> None:
    (typical,) = joint_answers([pool], allowed, [share * pool], ALPHA)
    assert 0.0 <= typical <= max(0, pool - allowed) + 1e-9
    (more_wrong,) = joint_answers([pool], allowed, [min(1.0, share + 0.1) * pool], ALPHA)
    assert more_wrong >= typical - 1e-9


# The plan.


@given(
    st.lists(st.floats(0.0, 1.0), min_size=1, max_size=300),
    st.integers(0, 300),
    st.sampled_from([0.0, 0.02, 0.05, 0.1, 0.5, 1.0]),
)
def test_a_plan_is_possible(shares: list[float], by_people: int, at_most: float) -> None:
    plan = plan_finish(at_most, shares, by_people=by_people, alpha=ALPHA)
    assert plan.rows == by_people + len(shares)
    assert plan.allowed == allowed_wrong(at_most, plan.rows)
    assert plan.more_labels >= 0
    assert plan.check_low <= plan.check_size <= plan.check_high
    assert plan.more_labels + plan.check_size <= max(0, len(shares) - plan.allowed) + 1
    assert plan.by_people_at_end + plan.predicted == plan.rows
    assert plan.wrong == pytest.approx(sum(shares))
    if plan.allowed >= len(shares):
        assert (plan.more_labels, plan.check_size) == (0, 0)
    assert FinishPlan(**json.loads(json.dumps(plan.__dict__))) == plan


def test_a_plan_labels_the_doubtful_items_first() -> None:
    plan = plan_finish(0.05, [0.5] * 200 + [0.01] * 800, by_people=100, alpha=ALPHA)
    assert 100 <= plan.more_labels <= 200
    certain = plan_finish(0.05, [0.01] * 1000, by_people=100, alpha=ALPHA)
    assert certain.check_now
    assert certain.by_people_at_end < plan.by_people_at_end
    # What a model learns is not counted, so that a plan without certainty labels nearly everything.
    hopeless = plan_finish(0.05, [0.5] * 1000, by_people=100, alpha=ALPHA)
    assert hopeless.by_people_at_end > 0.85 * 1100
    # Of many items, a sample is enough.
    sample = plan_finish(0.05, [0.5] * 20 + [0.01] * 80, by_people=100, alpha=ALPHA, rest=1000)
    assert sample.more_labels == pytest.approx(plan.more_labels, abs=25)


def test_cheap_answers_lead_to_an_earlier_check() -> None:
    shares = np.linspace(0.6, 0.0, 1000) ** 2
    plans = [plan_finish(0.05, shares, by_people=100, alpha=ALPHA, answer_cost=cost) for cost in (2.0, 1.0, 0.5, 0.2)]
    more = [plan.more_labels for plan in plans]
    assert more == sorted(more, reverse=True)
    assert more[0] > more[-1]
    with pytest.raises(InvalidValueError, match="answer_cost must be a number above 0"):
        plan_finish(0.05, shares, by_people=100, alpha=ALPHA, answer_cost=0.0)


def test_a_later_check_must_save_labels() -> None:
    shares = np.linspace(0.5, 0.0, 600) ** 3
    for by_people in range(50, 600, 50):
        plan = plan_finish(0.05, shares, by_people=by_people, alpha=ALPHA)
        advised = plan_finish(0.05, shares, by_people=by_people, alpha=ALPHA, check_advised=True)
        assert advised.more_labels <= plan.more_labels


def test_the_sentence_of_a_plan() -> None:
    plan = FinishPlan(0.05, 4000, 620, 200, 300.0, 200.0, 400.0, 300, 150, 90, 400)
    assert str(plan) == (
        "620 labels so far. Next: about 300 more, then a check of about 150 items (between 90 and 400). Predictions "
        "supply the other 2,900 labels."
    )
    assert str(plan.after(920)).startswith("920 labels so far. Next: a check of about 150 items (between 90 and 400). ")
    # An interval of one number, and a plan that ends with labels of people only.
    assert "a check of about 150 items. Predictions" in str(replace(plan, check_low=150, check_high=150))
    assert str(replace(plan, check_size=3080)).endswith("Then all labels are by people.")
    assert "Next: about 150 more answers in the check (" in str(replace(plan, check_open=True))
    assert plan.after(700).more_labels == 220


# The guarantee.


def proof(pool: int = 800, allowed: int = 50, **stated: Any) -> Guarantee:
    terms = SequentialTerms(pool, allowed, planned=100, alpha=ALPHA, corrected=True)
    checked = terms.proof([True, True])
    assert checked is not None
    return Guarantee.of_proof(terms, wrong=2, checked=checked, confidence=0.95, **stated)


def test_a_guarantee_for_a_data_set() -> None:
    found = DataSetGuarantee(1000, 300, proof(), 50, 0.05)
    assert (found.predicted, found.wrong_at_most, found.value, found.confidence) == (700, 50, 0.05, 0.95)
    assert str(found) == (
        "At most 50 of all 1,000 labels are wrong, 5 % (95 % confidence): 300 are by people, which count as right, "
        "and 700 are predictions."
    )
    assert "Proven: at most 50 of the other predictions are wrong." in found.evidence
    assert "Where the check found an error, the person's label is used." in found.evidence
    assert DataSetGuarantee.from_dict(json.loads(json.dumps(found.to_dict()))) == found
    assert "At most 50" in found._repr_html_()


def test_labels_of_people_that_may_be_wrong_are_added() -> None:
    found = DataSetGuarantee(1000, 300, proof(allowed=30), 30, 0.05, annotator_error=0.02)
    assert found.wrong_at_most == 30 + 6
    assert "of which at most 2 % are taken to be wrong" in str(found)


def test_wrong_labels_of_people_are_a_whole_number_below_their_share() -> None:
    # At most 4 % of 105 labels are wrong: 4, not 5, which would be more than the goal allows.
    assert allowed_wrong(0.05, 110, 0.04) == 1
    found = DataSetGuarantee(110, 105, proof(pool=20, allowed=1), 1, 0.05, annotator_error=0.04)
    assert (found.wrong_at_most, found.reached) == (5, True)
    assert "At most 5 of all 110 labels are wrong, 4.6 %" in str(found)
    saved = found.to_dict()
    assert DataSetGuarantee.from_dict(saved) == found
    # As earlier versions have written it.
    assert DataSetGuarantee.from_dict({**saved, "wrong_at_most": 6}) == found
    with pytest.raises(InvalidValueError, match="wrong_at_most must be 5"):
        DataSetGuarantee.from_dict({**saved, "wrong_at_most": 4})


def test_what_is_proven_may_be_less_than_the_goal() -> None:
    found = DataSetGuarantee(137, 60, proof(pool=120, allowed=8), 8, 0.05, left_out=43)
    assert not found.reached
    assert "At most 8 of all 137 labels are wrong, 5.9 %" in str(found)
    corrected = found.after_corrections(2)
    assert (corrected.wrong_at_most, corrected.reached) == (6, True)
    assert "People found 2 more wrong afterwards, which are corrected too." in corrected.evidence
    assert DataSetGuarantee.from_dict(json.loads(json.dumps(corrected.to_dict()))) == corrected
    assert found.after_corrections(9).wrong_at_most == 0
    # The exact share, without rounding of floating point numbers.
    assert DataSetGuarantee(100, 50, proof(pool=80, allowed=29), 29, 0.29).reached
    assert not DataSetGuarantee(99, 50, proof(pool=80, allowed=29), 29, 0.29).reached
    assert DataSetGuarantee(0, 0, None, 0, 0.05, left_out=9).reached


@given(st.integers(1, 400), st.data())
def test_a_goal_is_reached_while_all_rows_stay(rows: int, data: st.DataObject) -> None:
    goal, people = data.draw(st.integers(1, 100)), data.draw(st.integers(0, 99))
    if people >= goal:
        return
    allowed = allowed_wrong(goal / 100, rows, people / 100)
    by_people = data.draw(st.integers(max(0, rows - allowed), rows))
    found = DataSetGuarantee(rows, by_people, None, allowed, goal / 100, annotator_error=people / 100)
    assert found.reached
    assert found.wrong_at_most <= Fraction(goal, 100) * rows


@given(st.integers(1, 3000), st.data())
def test_people_and_predictions_together_keep_the_goal(rows: int, data: st.DataObject) -> None:
    goal, people = data.draw(st.integers(1, 100)), data.draw(st.integers(0, 99))
    if people >= goal:
        return
    allowed = allowed_wrong(goal / 100, rows, people / 100)
    by_people = data.draw(st.integers(0, rows))
    # As many predictions are wrong as are allowed, and as many labels of people as were stated.
    wrong = allowed + Fraction(people, 100) * by_people
    assert wrong <= Fraction(goal, 100) * rows


def test_without_a_check_no_more_predictions_are_left_than_may_be_wrong() -> None:
    found = DataSetGuarantee(1000, 960, None, 50, 0.05, left_out=2)
    assert (found.wrong_at_most, found.confidence) == (40, 1.0)
    assert "(95 %" not in str(found)
    assert "no check was necessary" in found.evidence
    assert "2 items could not be labelled, and are not included" in found.evidence
    assert DataSetGuarantee.from_dict(found.to_dict()) == found
    with pytest.raises(InvalidValueError, match="without a check at most 50 predictions are allowed, not 51"):
        DataSetGuarantee(1000, 949, None, 50, 0.05)


def test_a_false_guarantee_is_refused() -> None:
    simple = SequentialTerms(800, 50, planned=100, alpha=ALPHA)
    checked = simple.proof([])
    assert checked is not None
    with pytest.raises(InvalidValueError, match="a check with corrections"):
        DataSetGuarantee(1000, 300, Guarantee.of_proof(simple, wrong=0, checked=checked, confidence=0.95), 50, 0.05)
    with pytest.raises(InvalidValueError, match="by_people=11 must be at most rows=10"):
        DataSetGuarantee(10, 11, None, 5, 0.5)
    with pytest.raises(InvalidValueError, match="rows must be a whole number"):
        DataSetGuarantee(-1, 0, None, 5, 0.5)
    saved = DataSetGuarantee(1000, 300, proof(), 50, 0.05).to_dict()
    with pytest.raises(InvalidValueError, match="wrong_at_most must be 50"):
        DataSetGuarantee.from_dict({**saved, "wrong_at_most": 10})
    with pytest.raises(InvalidValueError, match="unknown fields: other"):
        DataSetGuarantee.from_dict({**saved, "other": 1})


@pytest.mark.parametrize(("pool", "allowed"), list(product((6, 9, 14), (0, 1, 3))))
def test_the_level_of_the_final_statement_by_enumeration(pool: int, allowed: int) -> None:
    # For each number of wrong predictions: the probability that more than ``allowed`` are left when it is proven.
    alpha = 0.2
    terms = SequentialTerms(pool, allowed, planned=max(1, pool // 2), alpha=alpha, corrected=True)
    limits = terms.limits(pool)
    for wrong in range(pool + 1):
        reached, false = {0: Fraction(1)}, Fraction(0)
        for t in range(1, pool + 1):
            following: dict[int, Fraction] = {}
            for k, p in reached.items():
                share = Fraction(wrong - k, pool - t + 1)
                for found, part in ((k + 1, share), (k, 1 - share)):
                    if part:
                        following[found] = following.get(found, Fraction(0)) + p * part
            for k in [k for k in following if k <= limits[t - 1]]:
                ended = following.pop(k)
                false += ended * (wrong - k > allowed)
            reached = following
        assert not reached, "every check ends"
        assert false <= Fraction(alpha)
