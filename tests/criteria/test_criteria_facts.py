"""Facts of probabilities: by hand, against plain loops, at the ends of their ranges."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import entropy

from suffice import LabelWorth, Step
from suffice.criteria import committee_agreement, entropies, expected_f, margins, pool_facts, worth_facts
from suffice.errors import InvalidTypeError, InvalidValueError
from suffice.numerics import Floats


@st.composite
def tables(draw: st.DrawFn, least: int = 1) -> Floats:
    rows, classes = draw(st.integers(least, 8)), draw(st.integers(1, 5))
    weights = draw(arrays(np.float64, (rows, classes), elements=st.sampled_from([0.0, 1e-9, 0.1, 0.5, 1.0, 3.0])))
    weights[weights.sum(axis=1) == 0.0] = 1.0
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


@given(tables())
def test_entropies_are_scipys(p: Floats) -> None:
    assert entropies(p) == pytest.approx(entropy(p, axis=1), abs=1e-12)
    assert (entropies(p) >= 0.0).all()
    assert (entropies(p) <= math.log(p.shape[1]) + 1e-12).all()


def test_entropies_of_rounded_probabilities() -> None:
    assert entropies([[1.0 + 1e-7, -1e-7]]).tolist() == [0.0]
    assert entropies(np.array([[1.0, 0.0]], dtype=np.float16)).tolist() == [0.0]
    assert entropies(np.zeros((0, 3))).shape == (0,)


@given(tables())
def test_margins_are_the_two_largest(p: Floats) -> None:
    found = [sorted(row)[-1] - sorted(row)[-2] if len(row) > 1 else 1.0 for row in p.tolist()]
    assert margins(p).tolist() == found


def f_of(p: Floats, k: int) -> float:
    """F of a class, item by item."""
    true = false = missed = 0.0
    for row in p:
        if int(np.argmax(row)) == k:
            true, false = true + row[k], false + 1.0 - row[k]
        else:
            missed += row[k]
    return 1.0 if true + false + missed == 0.0 else 2.0 * true / (2.0 * true + false + missed)


@given(tables())
def test_the_expected_f_is_that_of_plain_loops(p: Floats) -> None:
    scores = [f_of(p, k) for k in range(p.shape[1])]
    assert expected_f(p) == pytest.approx(scores[1] if len(scores) == 2 else np.mean(scores), abs=1e-12)
    assert 0.0 <= expected_f(p) <= 1.0


def test_the_expected_f_by_hand() -> None:
    # Positive: items 1 and 3. TP = .8 + .6, FP = .2 + .4, FN = .3.
    assert expected_f([[0.2, 0.8], [0.7, 0.3], [0.4, 0.6]]) == pytest.approx(2.8 / (2.8 + 0.6 + 0.3))
    # Sure and right throughout; and a class that neither comes nor is expected.
    assert expected_f([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]) == 1.0
    # A positive that is never predicted, but expected now and then: nothing found.
    assert expected_f([[0.9, 0.1], [0.8, 0.2]]) == 0.0


def test_the_expected_f_comes_true() -> None:
    """Labels drawn from the probabilities give, on average, the F that was expected."""
    rng = np.random.default_rng(0)
    p = rng.uniform(size=4000)
    positive = p > 0.5
    found = []
    for _ in range(50):
        labels = rng.random(4000) < p
        true = np.count_nonzero(labels & positive)
        found.append(2.0 * true / (labels.sum() + positive.sum()))
    assert expected_f(np.column_stack([1.0 - p, p])) == pytest.approx(np.mean(found), abs=0.003)


@given(tables(), st.data())
def test_pool_facts_are_their_definitions(p: Floats, data: st.DataObject) -> None:
    before = data.draw(st.lists(st.integers(0, p.shape[1] - 1), min_size=len(p), max_size=len(p)))
    facts = pool_facts(p, before=before)
    H = [entropy(row) for row in p]
    assert facts["pool_max_entropy"] == pytest.approx(max(H), abs=1e-12)
    share = np.mean(H) / math.log(p.shape[1]) if p.shape[1] > 1 else 0.0
    assert facts["pool_uncertainty"] == pytest.approx(share, abs=1e-12)
    assert facts["pool_risk"] == pytest.approx(np.mean([1.0 - max(row) for row in p]), abs=1e-12)
    assert facts["pool_margin"] == min(margins(p))
    assert facts["pool_confidence_variance"] == pytest.approx(np.var([max(row) for row in p]), abs=1e-12)
    assert facts["pool_f"] == expected_f(p)
    assert facts["pool_changes"] == sum(int(np.argmax(row)) != was for row, was in zip(p, before, strict=True))
    # All of it is what a step takes.
    step = Step(n_labelled=3, **facts)
    assert all(getattr(step, name) == value for name, value in facts.items())
    assert "pool_changes" not in pool_facts(p)


@given(tables(least=2))
def test_pool_facts_do_not_depend_on_the_order_of_items(p: Floats) -> None:
    one, other = pool_facts(p), pool_facts(p[::-1])
    assert one == pytest.approx(other, abs=1e-12)
    twice = pool_facts(np.concatenate([p, p]))
    assert twice == pytest.approx(one, abs=1e-12)


def test_an_empty_pool_has_nothing_to_say() -> None:
    with pytest.raises(InvalidValueError, match="the pool is empty"):
        pool_facts(np.zeros((0, 2)))


@pytest.mark.parametrize("before", [[0], [0, 1, 1], [[0, 1]], 3])
def test_a_class_for_each_item(before: Any) -> None:
    with pytest.raises(InvalidValueError, match="before must hold a class for each of the 2 items"):
        pool_facts([[0.9, 0.1], [0.4, 0.6]], before=before)


@pytest.mark.parametrize("facts", [entropies, margins, expected_f, pool_facts])
def test_probabilities_are_a_table(facts: Any) -> None:
    for bad in ([0.5, 0.5], 0.5, np.zeros((2, 0)), [[[0.5]]]):
        with pytest.raises(
            InvalidValueError, match="probabilities must be a table with one row per item; its shape is"
        ):
            facts(bad)
    with pytest.raises(InvalidTypeError, match="probabilities must be"):
        facts([["a", "b"]])


class TestCommittees:
    def test_all_alike_or_as_apart_as_can_be(self) -> None:
        assert committee_agreement(np.ones((4, 3), dtype=int), 2) == 1.0
        assert committee_agreement([[0, 0], [1, 1]], 2) == 0.0
        assert committee_agreement([[0], [1], [2]], 3) == pytest.approx(0.0, abs=1e-15)
        # Three members cannot spread over four classes: three of them is as far as they go.
        assert committee_agreement([[0], [1], [3]], 4) == pytest.approx(0.0, abs=1e-15)

    def test_by_hand(self) -> None:
        # Item 1: 3 of 4 alike, item 2: all alike.
        spread = -(0.75 * math.log(0.75) + 0.25 * math.log(0.25)) / math.log(2.0)
        assert committee_agreement([[0, 1], [0, 1], [0, 1], [1, 1]], 2) == pytest.approx(1.0 - spread / 2.0)

    def test_one_member_or_one_class_agrees(self) -> None:
        assert committee_agreement([[0, 1, 2]], 3) == 1.0
        assert committee_agreement([[0, 0], [0, 0]], 1) == 1.0

    @given(st.integers(1, 6), st.integers(1, 6), st.integers(1, 4), st.integers(0, 1000))
    def test_against_plain_loops(self, members: int, items: int, classes: int, seed: int) -> None:
        votes = np.random.default_rng(seed).integers(classes, size=(members, items))
        most = math.log(min(classes, members)) or 1.0
        spread = [entropy([votes[:, i].tolist().count(k) for k in range(classes)]) for i in range(items)]
        found = committee_agreement(votes, classes)
        assert found == pytest.approx(1.0 - np.mean(spread) / most, abs=1e-12)
        # Which class and which member it was does not matter.
        assert committee_agreement((classes - 1 - votes)[::-1], classes) == pytest.approx(found, abs=1e-12)

    @pytest.mark.parametrize("bad", [[0, 1], [[0.0, 1.0]], np.zeros((0, 3), dtype=int), [[]], [["a"]]])
    def test_votes_are_a_table_of_classes(self, bad: Any) -> None:
        with pytest.raises(InvalidValueError, match="votes must be classes as whole numbers"):
            committee_agreement(bad, 2)

    @pytest.mark.parametrize("bad", [[[2]], [[-1]]])
    def test_votes_are_for_classes_that_are_there(self, bad: Any) -> None:
        with pytest.raises(InvalidValueError, match="votes must be from 0 to 1"):
            committee_agreement(bad, 2)


class TestWorthFacts:
    def test_by_hand(self) -> None:
        draws = np.array([[[1.0, 0.0], [0.6, 0.4]], [[0.9, 0.1], [0.3, 0.7]]])
        found: dict[str, Any] = worth_facts(draws.mean(axis=1), earlier=[1, 1], draws=draws)
        assert found["unlabelled_error"] == pytest.approx(0.5 * (0.2 + 0.4))
        # Of the first item every draw says the same class; of the second, knowing the draw is worth 0.8 - 0.6.
        assert found["reducible_error"] == pytest.approx(0.5 * 0.2)
        assert found["recent_gain"] == pytest.approx(0.5 * (0.8 - 0.2) + 0.5 * (0.6 - 0.4))
        step = Step(n_labelled=12, pool_size=100, **found)
        assert LabelWorth().observe(step).value is not None

    def test_what_is_not_known_is_as_large_as_what_is(self) -> None:
        p, draws = [[0.6, 0.4]], [[[0.9, 0.1], [0.3, 0.7]]]
        assert worth_facts(p, earlier=[1])["reducible_error"] == pytest.approx(0.2)
        assert worth_facts(p, draws=draws)["recent_gain"] == pytest.approx(0.2)
        with pytest.raises(InvalidValueError, match="requires earlier, draws, or both"):
            worth_facts(p)

    @pytest.mark.parametrize("earlier", [[2], [-1], [0, 1], [0.5], []])
    def test_classes_that_are_no_columns_are_refused(self, earlier: list[float]) -> None:
        with pytest.raises(InvalidValueError, match="earlier must hold a column of probabilities, 0 to 1"):
            worth_facts([[0.5, 0.5]], earlier=earlier)

    @pytest.mark.parametrize("draws", [[[0.5, 0.5]], [[[0.5, 0.3, 0.2]]], [[[0.5, 0.5]]] * 2])
    def test_draws_of_another_shape_are_refused(self, draws: Any) -> None:
        with pytest.raises(InvalidValueError, match="draws must be of shape 1 x D x 2"):
            worth_facts([[0.5, 0.5]], draws=draws)


@pytest.mark.parametrize("p", [[[0.9, 0.2]], [[0.9, math.nan]], [[1.5, -0.5]]])
def test_what_are_no_probabilities_is_refused(p: list[list[float]]) -> None:
    with pytest.raises(InvalidValueError, match="each row must add up to 1"):
        pool_facts(p)
