"""Guarantees: their numbers, their sentences, and their JSON form."""

import json
from fractions import Fraction
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice.checks import Guarantee, PredictedItems, lower_bound, upper_bound
from suffice.errors import InvalidValueError
from tests.checks import exact
from tests.thoroughness import crossed, examples

EVERY_KIND = [
    Guarantee.of_error(3, 100, 4600),
    Guarantee.of_error(3, 100, 4600, alpha=0.025, confidence=0.95, unlabelable=2, model="logistic regression"),
    Guarantee.of_error(3, 100, 4600, unlabelable=2, unlabelable_as="excluded"),
    Guarantee.of_error(3, 10, 10),
    Guarantee.of_precision("spam", 1, 40, 640),
    Guarantee.of_precision("spam", 0, 7, 7),
    Guarantee.of_recall("spam", 49, 0, 2526, 4000),
    Guarantee.of_recall("spam", 49, 1, 300, 4000, predicted=PredictedItems(90, 20, 19), unlabelable=1),
    Guarantee.within([0.5, -2.0, 1.0] * 20, 1.5, 5000),
    Guarantee.of_tolerance([0.5, -2.0, 1.0] * 20, 0.1, 5000),
]


def test_sentences() -> None:
    ends = " (95 % confidence)."
    assert [str(each) for each in EVERY_KIND] == [
        "At most 7.7 % of the predictions for the 4,500 unlabelled items are wrong" + ends,
        "At most 12 % of the predictions for the 4,500 unlabelled items are wrong" + ends,
        "At most 7.8 % of the predictions for the 4,500 unlabelled items are wrong, not counting items that cannot be "
        "labelled (at most 11 % if they count as wrong)" + ends,
        "At most 30 % of the predictions for the 10 items are wrong" + ends,
        "At least 88 % of the 600 unlabelled items predicted as 'spam' belong to that class" + ends,
        "At least 100 % of the 7 items predicted as 'spam' belong to that class" + ends,
        "Annotators have found at least 96 % of the items of class 'spam'" + ends,
        "At least 56 % of the items of class 'spam' are labelled or predicted as such" + ends,
        "At most 45 % of the predictions for the 4,940 unlabelled items are off by more than 1.5" + ends,
        "At most 10 % of the predictions for the 4,940 unlabelled items are off by more than 2" + ends,
    ]


def test_the_evidence_names_sample_and_model() -> None:
    assert EVERY_KIND[1].evidence == (
        "A random check of 100 of 4,600 items found 3 with a wrong prediction. 2 items could not be labelled and count "
        "as wrong. The predictions are those of this model: logistic regression."
    )
    assert EVERY_KIND[7].evidence == (
        "A random check of 300 of 4,000 items found 1 of the class. 1 item could not be labelled and counts as an item "
        "of the class. Of 90 other items predicted as the class, 20 were checked and 19 belong to it."
    )
    assert "counts as not wrong" in Guarantee.of_error(0, 9, 90, unlabelable=1, unlabelable_as="excluded").evidence


@given(st.integers(1, 300), st.data())
@examples(100)
def test_no_sentence_says_more_than_the_bound(pool: int, data: st.DataObject) -> None:
    checked = data.draw(st.integers(0, pool - 1))
    wrong = data.draw(st.integers(0, checked))
    for guarantee in (Guarantee.of_error(wrong, checked, pool), Guarantee.of_precision("a", wrong, checked, pool)):
        said = Fraction(str(guarantee).split()[2]) / 100
        missing = Fraction(guarantee.wrong_at_most - wrong, pool - checked)
        if guarantee.upper:
            assert missing <= said <= missing * Fraction(11, 10) + Fraction(1, 10**12)
        else:
            assert missing <= 1 - said <= missing * Fraction(11, 10) + Fraction(1, 10**12)


def test_numbers_of_the_error() -> None:
    guarantee = EVERY_KIND[0]
    bound = upper_bound(3, 100, 4600, 0.05)
    assert guarantee.wrong_at_most == bound
    assert guarantee.value == (bound - 3) / 4500
    assert guarantee.value_for_all == bound / 4600
    assert guarantee.remaining == 4500
    assert guarantee.upper


def test_items_that_cannot_be_labelled_count_as_wrong_unless_excluded() -> None:
    assert EVERY_KIND[1].wrong_at_most == upper_bound(5, 100, 4600, 0.025)
    assert EVERY_KIND[1].value == (upper_bound(5, 100, 4600, 0.025) - 5) / 4500
    assert EVERY_KIND[2].wrong_at_most == upper_bound(3, 98, 4598, 0.05)
    assert EVERY_KIND[2].remaining == 4500


def test_numbers_of_the_recall() -> None:
    annotators = Guarantee.of_recall("a", found=30, new=2, checked=500, pool=900)
    missed = upper_bound(2, 500, 900, 0.05) - 2
    assert annotators.value == annotators.value_for_all == 32 / (32 + missed)
    assert not annotators.upper
    predicted = PredictedItems(90, 20, 19)
    both = Guarantee.of_recall("a", found=30, new=2, checked=500, pool=900, predicted=predicted)
    found, missed = 32 + lower_bound(19, 20, 90, 0.025), upper_bound(2, 500, 900, 0.025) - 2
    assert both.value == found / (found + missed)
    # An item that cannot be labelled may belong to the class, and is not found.
    unknown = Guarantee.of_recall("a", found=30, new=2, checked=500, pool=900, unlabelable=1)
    assert unknown.value == 32 / (30 + upper_bound(3, 500, 900, 0.05))
    assert Guarantee.of_recall("a", found=0, new=0, checked=5, pool=5).value == 1.0


def test_the_recall_plan_of_a_rare_class_gives_its_recall() -> None:
    assert Guarantee.of_recall("a", found=49, new=0, checked=2526, pool=4000).value >= 0.95
    assert Guarantee.of_recall("a", found=49, new=0, checked=2525, pool=4000).value < 0.95


def test_within_a_tolerance_counts_residuals_above_it() -> None:
    guarantee = Guarantee.within([1.0, -1.0, 1.1, -3.0], 1.0, 50, unlabelable=1)
    assert (guarantee.wrong, guarantee.checked, guarantee.unlabelable) == (2, 5, 1)
    assert guarantee.wrong_at_most == upper_bound(3, 5, 50, 0.05)


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("share", "residuals"),
    crossed(
        [0.2, 0.5, 0.75],
        [[1, 2, 3, 4, 5, 6, 7, 8, 9], [1, 1, 2, 2, 2, 2, 5, 5, 9], [3] * 9],
        every=3,
    ),
)
def test_tolerances_hold_for_the_share(share: float, residuals: list[int]) -> None:
    """Over all samples of all sizes, ties included: a false tolerance has probability at most alpha."""
    alpha, pool = 0.3, len(residuals)
    for size in range(1, pool):
        false = total = 0
        for sample in combinations(range(pool), size):
            total += 1
            try:
                guarantee = Guarantee.of_tolerance([residuals[i] for i in sample], share, pool, alpha=alpha)
            except InvalidValueError:
                continue
            assert guarantee.value <= share
            assert guarantee.tolerance is not None
            beyond = sum(residuals[i] > guarantee.tolerance for i in range(pool) if i not in sample)
            false += beyond > share * (pool - size)
        assert Fraction(false, total) <= Fraction(alpha)


def test_the_tolerance_is_the_largest_residual_that_is_allowed() -> None:
    residuals = [float(i) for i in range(200)]
    guarantee = Guarantee.of_tolerance(residuals, 0.1, 4600)
    allowed = max(k for k in range(200) if upper_bound(k, 200, 4600, 0.05) - k <= 440)
    assert guarantee.wrong == allowed
    assert guarantee.tolerance == 199.0 - allowed
    unknown = Guarantee.of_tolerance(residuals, 0.1, 4602, unlabelable=2)
    assert unknown.tolerance == 201.0 - max(k for k in range(202) if upper_bound(k, 202, 4602, 0.05) - k <= 440)
    excluded = Guarantee.of_tolerance(residuals, 0.1, 4602, unlabelable=2, unlabelable_as="excluded")
    assert excluded.tolerance == guarantee.tolerance
    everything = Guarantee.of_tolerance([1.0, 2.0, 3.0, 4.0], 0.5, 4)
    assert everything.tolerance == 2.0
    assert (
        str(everything) == "At most 50 % of the predictions for the 4 items are off by more than 2 (95 % confidence)."
    )


def test_a_check_that_is_too_small_for_a_share_says_so() -> None:
    with pytest.raises(
        InvalidValueError, match=r"a check of 20 items is too small for share=0.1 of 4,600 items; about 29"
    ):
        Guarantee.of_tolerance([1.0] * 20, 0.1, 4600)
    with pytest.raises(InvalidValueError, match="of which 3 could not be labelled, is too small"):
        Guarantee.of_tolerance([1.0] * 27, 0.1, 4600, unlabelable=3)


@pytest.mark.parametrize("predicted_share", [0, 3, 5])
def test_recall_and_precision_hold_for_all_samples(predicted_share: int) -> None:
    """Nine unlabelled items of which four belong to the class; the model finds some of them and adds a wrong one."""
    alpha, pool = 0.3, 9
    truth = [True] * 4 + [False] * 5
    predicted = (
        [i in {0, 1, 4, 5, 6} and i < 3 + predicted_share for i in range(pool)] if predicted_share else [False] * 9
    )
    counts = {True: sum(predicted), False: pool - sum(predicted)}
    for size in range(1, pool):
        false_recall = false_precision = total = 0
        for sample in combinations(range(pool), size):
            total += 1
            inside = [i for i in sample if predicted[i]]
            rest = [i for i in sample if not predicted[i]]
            group = (
                PredictedItems(counts[True], len(inside), sum(truth[i] for i in inside)) if predicted_share else None
            )
            new = sum(truth[i] for i in rest)
            recall = Guarantee.of_recall("a", 2, new, len(rest), counts[False], predicted=group, alpha=alpha)
            found = 2 + sum(truth[i] and (predicted[i] or i in sample) for i in range(pool))
            false_recall += Fraction(found, 6) < Fraction(recall.value).limit_denominator(10**6)
            wrong = sum(not truth[i] for i in inside)
            precision = Guarantee.of_precision("a", wrong, len(inside), counts[True], alpha=alpha)
            left = [i for i in range(pool) if predicted[i] and i not in sample]
            right = sum(truth[i] for i in left)
            false_precision += bool(left) and right < precision.value * len(left) - 1e-9
        assert Fraction(false_recall, total) <= Fraction(alpha)
        assert Fraction(false_precision, total) <= Fraction(alpha)


@pytest.mark.parametrize("pool", [5, 8])
@pytest.mark.parametrize("unlabelable_as", ["wrong", "excluded"])
def test_the_error_holds_where_items_cannot_be_labelled(pool: int, unlabelable_as: Any) -> None:
    """Two items cannot be labelled; for each number of wrong ones, over all outcomes."""
    alpha = 0.2
    for truth in range(pool - 1):
        kinds = ["unlabelable"] * 2 + ["wrong"] * truth + ["right"] * (pool - 2 - truth)
        for size in range(1, pool):
            false = total = 0
            for sample in combinations(range(pool), size):
                drawn = [kinds[i] for i in sample]
                guarantee = Guarantee.of_error(
                    drawn.count("wrong"),
                    size,
                    pool,
                    alpha=alpha,
                    unlabelable=drawn.count("unlabelable"),
                    unlabelable_as=unlabelable_as,
                )
                bad = truth + 2 if unlabelable_as == "wrong" else truth
                left = bad - drawn.count("wrong") - (drawn.count("unlabelable") if unlabelable_as == "wrong" else 0)
                total += 1
                false += left > guarantee.value * (pool - size) + 1e-9
            assert Fraction(false, total) <= Fraction(alpha)


def test_enumeration_agrees_with_the_probabilities() -> None:
    samples = list(combinations(range(7), 3))
    share = Fraction(sum(sum(i < 2 for i in sample) == 0 for sample in samples), len(samples))
    assert share == exact.pmf(7, 2, 3, 0)


@pytest.mark.parametrize("guarantee", EVERY_KIND)
def test_guarantees_survive_json(guarantee: Guarantee) -> None:
    saved = json.loads(json.dumps(guarantee.to_dict()))
    assert Guarantee.from_dict(saved) == guarantee
    assert saved["statement"] == str(guarantee)
    assert saved["value"] == guarantee.value


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"checked": None}, "lacks the fields checked"),
        ({"checked": -1}, "checked must be a whole number"),
        ({"wrong": 101}, "wrong and unlabelable together must not exceed checked"),
        ({"pool": 50}, "checked must not exceed pool"),
        ({"alpha": 2.0}, "alpha must be a number above 0 and below 1"),
        ({"confidence": 0.99}, "confidence must be at most 1 - alpha"),
        ({"quantity": "beauty"}, "quantity must be one of error, within"),
        ({"unlabelable_as": "right"}, 'unlabelable_as must be "wrong" or "excluded"'),
        ({"class_name": "spam"}, "class_name must be None for 'error'"),
        ({"model": 7}, "model must be a text"),
        ({"wrong_at_most": 7}, "wrong_at_most must be 346, by the counts"),
        ({"colour": "red"}, "unknown fields: colour"),
        ({"format": 2}, "must have format 1"),
        ({"quantity": "recall"}, "class_name must be a text, not None"),
        ({"quantity": "within"}, "tolerance must be a number of at least 0"),
    ],
)
def test_changed_files_are_rejected(changes: dict[str, Any], message: str) -> None:
    saved = {**EVERY_KIND[0].to_dict(), **changes}
    with pytest.raises(InvalidValueError, match=message):
        Guarantee.from_dict({key: value for key, value in saved.items() if value is not None})


def test_other_bad_values_are_rejected() -> None:
    with pytest.raises(InvalidValueError, match="must be a mapping"):
        Guarantee.from_dict([])  # type: ignore[arg-type]
    with pytest.raises(InvalidValueError, match=r"predicted.right must not exceed checked"):
        Guarantee.of_recall("a", 1, 0, 5, 10, predicted=PredictedItems(9, 3, 4))
    with pytest.raises(InvalidValueError, match="residuals must be a series of finite numbers"):
        Guarantee.within([[1.0]], 1.0, 10)
    with pytest.raises(InvalidValueError, match="tolerance must be a number of at least 0"):
        Guarantee.within([1.0], -1.0, 10)
    with pytest.raises(InvalidValueError, match="share must be a number above 0 and below 1"):
        Guarantee.of_tolerance([1.0], 1.0, 10)
