"""From given predictions to a finished data set: what is asked, and how many labels are wrong in the end."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from suffice.checks import allowed_wrong, of_predictions
from suffice.checks.prediction_finish import PredictionFinish
from suffice.errors import InvalidValueError, SufficeError
from tests.thoroughness import thorough


def world(n: int, error: float, seed: int, *, ordered: bool = True) -> tuple[list[str], list[str], list[float]]:
    """True classes, predictions and confidences; errors are where the confidence is low if it is ordered."""
    rng = np.random.default_rng(seed)
    truth, doubt = rng.choice(["a", "b"], n), rng.random(n)
    wrong = rng.random(n) < (2 * error * doubt if ordered else error)
    llm = np.where(wrong, np.where(truth == "a", "b", "a"), truth)
    return truth.tolist(), llm.tolist(), (1.0 - doubt / 2).tolist()


def asked(truth: list[Any]) -> Callable[[int], Any]:
    return lambda row: truth[row]


def final_errors(work: PredictionFinish, truth: list[Any]) -> int:
    return sum(label is not None and label != right for label, right in zip(work.final_labels(), truth, strict=True))


@pytest.mark.no_cover
@pytest.mark.parametrize("sure", [True, False])
def test_no_more_labels_are_wrong_than_allowed(sure: bool) -> None:
    for seed in range(30 if thorough() else 3):
        truth, llm, confidence = world(400, 0.15, seed)
        work = of_predictions(llm, confidence if sure else None).finish(at_most=0.05, seed=seed)
        guarantee = work.run(asked(truth))
        assert guarantee.wrong_at_most <= 20
        assert final_errors(work, truth) <= 20
        assert guarantee.by_people == len(work.labels) < 400
        assert guarantee.rows == 400
        # What people said is final.
        assert all(work.final_labels()[row] == truth[row] for row in work.labels)


@pytest.mark.no_cover
def test_a_good_confidence_saves_labels() -> None:
    truth, llm, confidence = world(1000, 0.15, 0)
    known, unknown = (of_predictions(llm, each).finish(at_most=0.05, seed=0) for each in (confidence, None))
    assert known.run(asked(truth)).by_people < unknown.run(asked(truth)).by_people


def test_next_is_stable_and_asks_no_row_twice() -> None:
    truth, llm, confidence = world(300, 0.1, 0)
    work = of_predictions(llm, confidence).finish(at_most=0.05, seed=0)
    seen: set[int] = set()
    while work.open:
        rows = work.next(3)
        assert work.next(3).tolist() == rows.tolist()
        assert work.next(1).tolist() == rows[:1].tolist()
        assert not seen & set(rows.tolist())
        work.tell([truth[row] for row in rows])
        seen |= set(rows.tolist())
    assert work.next().tolist() == []
    assert seen == set(work.labels)
    with pytest.raises(InvalidValueError, match="the goal is reached, and no more labels are needed"):
        work.tell(["a"])


def test_the_order_of_the_check_is_drawn_after_its_terms_are_fixed() -> None:
    truth, llm, confidence = world(300, 0.1, 0)
    work = of_predictions(llm, confidence).finish(at_most=0.05, seed=0)
    while not work.checking:
        before = work._rng.bit_generator.state
        assert not work._order, "nobody knows which rows the check will ask for"
        row = int(work.next()[0])
        if not work.checking:
            work.tell({row: truth[row]})
    assert work._rng.bit_generator.state != before
    labelled = set(work.labels)
    # The check is about all rows without a label, and asks for none of the others.
    assert work._check is not None
    terms = work._check.sequential
    assert terms is not None
    assert terms.pool == 300 - len(labelled)
    assert terms.allowed == allowed_wrong(0.05, 300)
    assert not labelled & set(work._order)
    assert len(set(work._order)) == len(work._order) == terms.longest
    # The same labels with another seed are checked in another order.
    assert work.next(5).tolist() == work._order[:5]


def test_rows_that_nobody_can_label_are_left_out() -> None:
    truth, llm, _ = world(200, 0.1, 1)
    work = of_predictions(llm).finish(at_most=0.1, seed=1)
    guarantee = work.run(lambda row: None if row % 10 == 0 else truth[row])
    left = [row for row, label in work.labels.items() if label is None]
    assert left
    assert guarantee.left_out == len(left)
    assert guarantee.rows == 200 - len(left)
    assert [row for row, label in enumerate(work.final_labels()) if label is None] == sorted(left)
    assert guarantee.value <= 0.1
    assert final_errors(work, truth) <= guarantee.wrong_at_most


def test_the_goal_is_reached_by_the_rows_that_are_left() -> None:
    short = 0
    for seed in range(40 if thorough() else 8):
        truth, llm, confidence = world(180, 0.1, seed)
        doubtful = np.random.default_rng(seed).random(180) < 0.3
        work = of_predictions(llm, confidence).finish(at_most=0.05, seed=seed)
        while work.open:
            row = int(work.next()[0])
            work.tell({row: None if doubtful[row] else truth[row]})
            if work.open and work._proof is not None and work._check is None:
                short += 1
                assert "A check has proven" in str(work)
                assert "and the goal is 5 %" in str(work)
                with pytest.raises(SufficeError, match="the goal is not reached yet"):
                    work.final_labels()
        guarantee = work.guarantee
        assert guarantee is not None
        assert guarantee.reached
        assert guarantee.wrong_at_most <= 0.05 * guarantee.rows
        assert guarantee.rows == 180 - guarantee.left_out
        assert final_errors(work, truth) <= guarantee.wrong_at_most
    assert short, "no check has proven too little"


def test_numbers_may_be_off_by_the_tolerance() -> None:
    rng = np.random.default_rng(0)
    truth = rng.normal(size=300)
    guess = truth + np.where(rng.random(300) < 0.2, 3.0, 0.2)
    work = of_predictions(guess).finish(at_most=0.1, tolerance=1.0, seed=0)
    guarantee = work.run(asked(truth.tolist()))
    off = np.abs(np.array(work.final_labels()) - truth) > 1.0
    assert off.sum() <= guarantee.wrong_at_most <= 30


def test_a_goal_that_no_prediction_can_miss_needs_no_label() -> None:
    work = of_predictions(["a"] * 20).finish(at_most=1.0)
    assert not work.open
    assert work.guarantee is not None
    assert work.final_labels() == ["a"] * 20


def test_a_goal_of_no_error_needs_every_label() -> None:
    truth, llm, _ = world(40, 0.2, 0)
    work = of_predictions(llm).finish(at_most=0.0, seed=0)
    assert work.run(asked(truth)).by_people == 40
    assert work.final_labels() == truth


def test_the_work_is_described() -> None:
    truth, llm, _ = world(300, 0.05, 0)
    work = of_predictions(llm).finish(at_most=0.1, seed=0)
    assert str(work) == "0 labels so far."
    with pytest.raises(SufficeError, match="the goal is not reached yet"):
        work.final_labels()
    while not work.checking:
        work.tell({int(work.next()[0]): truth[int(work.next()[0])]})
        assert str(work)
    assert "wrong" in str(work)
    work.run(asked(truth))
    assert str(work) == str(work.guarantee)


def test_bad_input_is_refused_and_changes_nothing() -> None:
    given = of_predictions(["a", "b"] * 50)
    with pytest.raises(InvalidValueError, match="one column of predictions"):
        of_predictions({"x": ["a"], "y": ["b"]}).finish(at_most=0.1)
    with pytest.raises(InvalidValueError, match="leave tolerance out"):
        given.finish(at_most=0.1, tolerance=1.0)
    with pytest.raises(InvalidValueError, match="give tolerance"):
        of_predictions([1.0, 2.5]).finish(at_most=0.1)
    for options in ({"at_most": 2.0}, {"at_most": 0.1, "confidence": 0.0}, {"at_most": 0.1, "answer_cost": 0.0}):
        with pytest.raises(InvalidValueError, match=next(reversed(options))):
            given.finish(**options)
    work = given.finish(at_most=0.1, seed=0)
    work.next(1)
    with pytest.raises(InvalidValueError, match="2 answers are given for the 1 row asked for"):
        work.tell(["a", "b"])
    for row in (-1, 100):
        with pytest.raises(InvalidValueError, match=f"row {row} does not exist, or has an answer already"):
            work.tell({row: "a"})
    assert not work.labels
    row = int(work.next()[0])
    work.tell({row: "a"})
    with pytest.raises(InvalidValueError, match=f"row {row} does not exist, or has an answer already"):
        work.tell({row: "b"})
    assert work.labels == {row: "a"}


def false_finishes(number: int) -> int:
    """How often more labels are wrong than the goal allows, for predictions that are wrong slightly too often."""
    false = 0
    for seed in range(number):
        truth, llm, _ = world(60, 0.3, seed, ordered=False)
        work = of_predictions(llm).finish(at_most=0.2, confidence=0.6, seed=seed)
        work.run(asked(truth))
        false += final_errors(work, truth) > 12
    return false


@pytest.mark.no_cover
@pytest.mark.parametrize("number", [50, pytest.param(400, marks=pytest.mark.slow)])
def test_few_finished_data_sets_have_too_many_wrong_labels(number: int) -> None:
    # The check spends half of 1 - confidence.
    level = 0.2
    assert false_finishes(number) <= level * number + 3 * (level * (1 - level) * number) ** 0.5
