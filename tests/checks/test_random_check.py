"""Checks: the draw, the answers, the guarantees, the error probability that is spent, and the JSON form."""

import json
import math
from collections import Counter
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from suffice.checks import Check, EvaluationGrid, Guarantee, PredictedItems, spent_alpha, upper_bound
from suffice.errors import InvalidTypeError, InvalidValueError
from tests.thoroughness import thorough


def generator(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def answered(size: int = 100, pool: int = 4600, wrong: int = 3) -> tuple[Check, dict[int, str]]:
    """A complete check of classes, and predictions of which some are wrong."""
    check = Check.draw(np.arange(pool), size, generator())
    labels = {item: "spam" if item % 2 else "ham" for item in check.items}
    predictions = dict(labels)
    for item in check.items[:wrong]:
        predictions[item] = "other"
    return check.tell(labels), predictions


def test_spent_alpha_adds_up_to_alpha() -> None:
    assert spent_alpha(1, 0.05) == 0.025
    assert math.isclose(sum(spent_alpha(j, 0.05) for j in range(1, 10_000)), 0.05, rel_tol=2e-4)
    assert sum(Fraction(spent_alpha(j, 0.05)) for j in range(1, 1000)) < Fraction(0.05)
    with pytest.raises(InvalidValueError, match="number must be a whole number, 1 or more"):
        spent_alpha(0)
    with pytest.raises(InvalidValueError, match="alpha must be"):
        spent_alpha(1, 1.5)


def test_the_doubling_grid() -> None:
    grid = EvaluationGrid.doubling(30, 240)
    assert grid.sizes == (30, 60, 120, 240)
    assert grid.alpha_each == 0.05 / 4
    assert [grid.due(n) for n in (0, 29, 30, 119, 500)] == [None, None, 30, 60, 240]
    assert EvaluationGrid.doubling(30, 239).sizes == (30, 60, 120)
    assert EvaluationGrid.doubling(30, 30).sizes == (30,)
    with pytest.raises(InvalidValueError, match="last must be at least first=30"):
        EvaluationGrid.doubling(30, 29)
    with pytest.raises(InvalidValueError, match="sizes must be at least one size, rising"):
        EvaluationGrid((30, 30))


def test_the_draw_is_uniform_without_replacement() -> None:
    rng = generator(1)
    drawn = Counter(frozenset(Check.draw([5, 7, 8, 11, 2], 2, rng).items) for _ in range(2000))
    assert set(drawn) == {frozenset(pair) for pair in combinations([5, 7, 8, 11, 2], 2)}
    # Ten pairs, 200 draws each on average; five standard deviations.
    assert all(abs(number - 200) < 67 for number in drawn.values())
    assert Check.draw(np.arange(50), 50, rng).pending != tuple(range(50))
    assert Check.draw(np.arange(900), 9, generator(3)) == Check.draw(np.arange(900), 9, generator(3))


def test_a_check_is_answered_step_by_step() -> None:
    check = Check.draw(np.arange(10, 60), 4, generator())
    first, second, third, fourth = check.items
    assert check.pending == check.items
    told = check.tell({second: "a"}).cannot_label([fourth])
    assert told.pending == (first, third)
    assert check.pending == check.items
    assert not told.complete
    done = told.tell({first: "b", third: np.str_("a")})
    assert done.complete
    assert done.pending == ()
    assert done.labels == {second: "a", first: "b", third: "a"}
    assert done.unlabelable == {fourth}


def test_the_guarantee_is_that_of_the_counts() -> None:
    check, predictions = answered()
    guarantee = check.guarantee(predictions, model="round 12")
    assert guarantee == Guarantee.of_error(3, 100, 4600, alpha=0.025, confidence=0.95, model="round 12")
    assert check.guarantee([predictions[item] for item in check.items], model="round 12") == guarantee
    assert check.guarantee(np.array([predictions[item] for item in check.items]), model="round 12") == guarantee
    assert check.guarantee(predictions, parts=5).alpha == 0.005


def test_later_checks_spend_less() -> None:
    alphas = [Check.draw(np.arange(9), 2, generator(), number=j, alpha=0.06).alpha_spent for j in (1, 2, 3)]
    assert alphas == [0.03, 0.01, 0.005]


def test_a_corrected_answer_changes_the_guarantee_at_the_same_alpha() -> None:
    check, predictions = answered()
    before = check.guarantee(predictions)
    item = check.items[0]
    after = check.correct(item, "other").guarantee(predictions)
    assert (before.wrong, after.wrong) == (3, 2)
    assert after.alpha == before.alpha
    skipped = check.correct(item, None)
    assert skipped.complete
    assert (skipped.guarantee(predictions).wrong, skipped.guarantee(predictions).unlabelable) == (2, 1)
    assert skipped.correct(item, check.labels[item]).guarantee(predictions) == before


def test_renamed_and_merged_classes() -> None:
    check, predictions = answered()
    renamed = check.renamed({"spam": "junk", "other": "junk"})
    assert set(renamed.labels.values()) == {"junk", "ham"}
    names = {"spam": "junk", "other": "junk"}
    merged = renamed.guarantee({item: names.get(name, name) for item, name in predictions.items()})
    wrong = sum(check.labels[item] == "ham" for item in check.items[:3])
    assert merged.wrong == wrong


def test_an_aborted_check_gives_nothing_and_stays_spent() -> None:
    check = Check.draw(np.arange(90), 3, generator(), number=2)
    aborted = check.tell({check.items[0]: "a"}).abort()
    assert aborted.aborted
    assert not aborted.complete
    assert aborted.alpha_spent == check.alpha_spent
    with pytest.raises(InvalidValueError, match="an aborted check gives no guarantee"):
        aborted.guarantee(["a"] * 3)
    with pytest.raises(InvalidValueError, match="an aborted check takes no answers"):
        aborted.tell({check.items[1]: "a"})
    complete, _ = answered()
    with pytest.raises(InvalidValueError, match="a complete check cannot be aborted"):
        complete.abort()


def test_items_that_cannot_be_labelled() -> None:
    check = Check.draw(np.arange(500), 50, generator())
    items = check.items
    done = check.tell(dict.fromkeys(items[2:], "a")).cannot_label(items[:2])
    assert done.guarantee(["a"] * 50).wrong_at_most == upper_bound(2, 50, 500, 0.025)
    excluded = done.guarantee(["a"] * 50, unlabelable_as="excluded")
    assert excluded.wrong_at_most == upper_bound(0, 48, 498, 0.025)
    assert "not counting items that cannot be labelled" in str(excluded)


def test_numbers_within_a_tolerance_and_the_tolerance_for_a_share() -> None:
    check = Check.draw(np.arange(2000), 80, generator())
    done = check.tell({item: float(k) for k, item in enumerate(check.items)})
    predictions = np.zeros(80)
    within = done.guarantee(predictions, tolerance=75.0)
    assert (within.quantity, within.wrong) == ("within", 4)
    assert within == Guarantee.within(np.arange(80.0), 75.0, 2000, alpha=0.025, confidence=0.95)
    share = done.tolerance_guarantee(predictions, 0.2)
    assert share == Guarantee.of_tolerance(np.arange(80.0), 0.2, 2000, alpha=0.025, confidence=0.95)
    with pytest.raises(InvalidValueError, match="a prediction must be a finite number, not 'a'"):
        done.guarantee(["a"] * 80, tolerance=1.0)


def test_precision_and_recall_of_a_class() -> None:
    check = Check((0, 1, 2, 3, 4, 5), pool=60)
    truth: dict[int, Any] = {0: "a", 1: "a", 2: "b", 3: "a", 4: "b"}
    done = check.tell(truth).cannot_label([5])
    predictions = ["a", "a", "a", "b", "b", "a"]
    stated: Any = {"alpha": 0.025, "confidence": 0.95}
    precision = done.precision_guarantee(predictions, "a", predicted=20)
    assert precision == Guarantee.of_precision("a", 1, 4, 20, unlabelable=1, **stated)
    assert done.recall_guarantee("a", found=9) == Guarantee.of_recall("a", 9, 3, 6, 60, unlabelable=1, **stated)
    recall = done.recall_guarantee("a", found=9, predictions=predictions, predicted=20)
    assert recall == Guarantee.of_recall("a", 9, 1, 2, 40, predicted=PredictedItems(20, 4, 2), **stated)
    with pytest.raises(InvalidValueError, match="1 of 6 items could not be labelled, which is more than 10\u00a0%"):
        done.recall_guarantee("a", 9, predictions=predictions, predicted=20, unlabelable_as="excluded")
    larger = Check(tuple(range(10)), pool=60).tell({**truth, **dict.fromkeys(range(6, 10), "b")}).cannot_label([5])
    longer = [*predictions, *["b"] * 4]
    excluded = larger.recall_guarantee("a", 9, predictions=longer, predicted=20, unlabelable_as="excluded")
    assert excluded.predicted == PredictedItems(19, 3, 2, excluded=1)
    counted = excluded.all_counted
    assert counted == larger.recall_guarantee("a", 9, predictions=longer, predicted=20)
    assert excluded.value >= counted.value
    assert "not counting items that cannot be labelled (at least 32 % if they count as wrong)" in str(excluded)
    with pytest.raises(InvalidValueError, match="predicted must be from 4 to 58"):
        done.precision_guarantee(predictions, "a", predicted=3)
    with pytest.raises(InvalidValueError, match="predictions and predicted must be given together"):
        done.recall_guarantee("a", found=9, predictions=predictions)


@pytest.mark.no_cover
@pytest.mark.parametrize("wrong", [0, 2, 5])
def test_repeated_checks_hold_together(wrong: int) -> None:
    """A user repeats checks of six items until one looks good; few runs have a false guarantee."""
    rng, false, runs, alpha = generator(wrong), 0, 300 if thorough() else 100, 0.3
    labels = dict.fromkeys(range(14), "right")
    predictions = {item: "wrong" if item < wrong else "right" for item in range(14)}
    for _ in range(runs):
        for number in range(1, 6):
            check = Check.draw(np.arange(14), 6, rng, number=number, alpha=alpha)
            check = check.tell({item: labels[item] for item in check.items})
            guarantee = check.guarantee(predictions)
            if guarantee.value <= 0.25 or number == 5:
                false += guarantee.wrong_at_most < wrong
                break
    assert false <= alpha * runs


def test_checks_survive_json() -> None:
    check = Check.draw(np.arange(90), 5, generator(), number=3, alpha=0.1)
    one, two, three, *_ = check.items
    for each in (check, check.tell({one: "a", two: 3, three: 2.5}), check.cannot_label([two]), check.abort()):
        restored = Check.from_dict(json.loads(json.dumps(each.to_dict())))
        assert restored == each
        assert list(restored.labels.items()) == list(each.labels.items())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"items": None}, "lacks the fields items"),
        ({"items": [1, 1]}, "items must be at least one index, each once"),
        ({"items": []}, "items must be at least one index"),
        ({"items": 4}, "must have lists of items"),
        ({"pool": 1}, "pool must be from 2"),
        ({"labels": [[9, "a"]]}, "only items of the check can be answered; these are not: 9"),
        ({"labels": [[7, "a"]], "unlabelable": [7]}, "these are both: 7"),
        ({"labels": [[7, None]]}, "a label must be a text or a finite number"),
        ({"labels": [[7, math.inf]]}, "a label must be a text or a finite number"),
        ({"number": 0}, "number must be a whole number"),
        ({"alpha": 0.0}, "alpha must be"),
        ({"aborted": "no"}, "aborted must be True or False"),
        ({"colour": "red"}, "unknown fields: colour"),
        ({"format": 9}, "must have format 1"),
    ],
)
def test_changed_files_are_rejected(changes: dict[str, Any], message: str) -> None:
    saved = {**Check((7, 3), pool=10).to_dict(), **changes}
    with pytest.raises(InvalidValueError, match=message):
        Check.from_dict({key: value for key, value in saved.items() if value is not None})


def test_wrong_use_is_named() -> None:
    rng = generator()
    with pytest.raises(InvalidValueError, match="size must be at most the 3 unlabelled items, not 4"):
        Check.draw([1, 2, 3], 4, rng)
    with pytest.raises(InvalidValueError, match="size must be a whole number, 1 or more"):
        Check.draw([1, 2, 3], 0, rng)
    with pytest.raises(InvalidValueError, match="unlabelled must name each item once"):
        Check.draw([1, 2, 2], 2, rng)
    with pytest.raises(InvalidTypeError, match="unlabelled must be a series of indices"):
        Check.draw([0.5, 1.5], 1, rng)
    with pytest.raises(InvalidTypeError, match=r"rng must be a numpy.random.Generator"):
        Check.draw([1, 2], 1, 0)  # type: ignore[arg-type]
    check = Check((7, 3), pool=10).tell({7: "a"})
    with pytest.raises(InvalidValueError, match=r"all its 2 items have an answer; 1 item still to label: 3"):
        check.guarantee(["a", "a"])
    with pytest.raises(InvalidValueError, match="these items have an answer already; use correct: 7"):
        check.tell({7: "b"})
    with pytest.raises(InvalidValueError, match="item 3 has no answer that could be corrected"):
        check.correct(3, "a")
    with pytest.raises(InvalidValueError, match="only items of the check can be answered"):
        check.tell({8: "a"})
    done = check.tell({3: "b"})
    with pytest.raises(InvalidValueError, match="predictions must be one for each of the 2 items, not 1"):
        done.guarantee(["a"])
    with pytest.raises(InvalidValueError, match="predictions must cover every item of the check; missing: 3"):
        done.guarantee({7: "a"})
