"""Guarantees by group: their bounds, that all of them hold together, their sentences and their JSON form."""

import json
import math
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from itertools import combinations, product
from typing import Any, Final

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice.checks import Check, GroupGuarantees, Guarantee, SequentialTerms, by_group, upper_bound
from suffice.errors import InvalidTypeError, InvalidValueError
from tests.checks import exact
from tests.thoroughness import examples, some

#: Half of it is spent by the first check.
ALPHA: Final = 0.8
NAMES: Final = ("a", "b", "c")


def counted(sizes: tuple[int, ...], checked: tuple[int, ...], wrong: tuple[int, ...], **more: Any) -> GroupGuarantees:
    """The guarantees of a check with given numbers of checked and wrong items in each group."""
    groups = [name for name, number in zip(NAMES, checked, strict=False) for _ in range(number)]
    predictions = [
        "wrong" if k < bad else "right" for number, bad in zip(checked, wrong, strict=True) for k in range(number)
    ]
    check = Check(tuple(range(len(groups))), pool=sum(sizes), alpha=ALPHA)
    check = check.tell(dict.fromkeys(check.items, "right"))
    return by_group(check, predictions, groups, dict(zip(NAMES, sizes, strict=False)), **more)


@cache
def bounds(sizes: tuple[int, ...], checked: tuple[int, ...], wrong: tuple[int, ...]) -> tuple[int, ...]:
    """The bound of each group, and that of all items."""
    found = counted(sizes, checked, wrong)
    return *(found.groups[name].wrong_at_most for name in NAMES[: len(sizes)]), found.total.wrong_at_most


def outcomes(sizes: tuple[int, ...], size: int) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Numbers of checked and of wrong items in each group, for a check of a size."""
    for checked in product(*(range(each + 1) for each in sizes)):
        if sum(checked) == size:
            for wrong in product(*(range(each + 1) for each in checked)):
                yield checked, wrong


def false_share(sizes: tuple[int, ...], truth: tuple[int, ...], size: int, bound: Any) -> Fraction:
    """The share of all samples in which a statement about a group or about all items is false."""
    false = total = 0
    for checked, wrong in outcomes(sizes, size):
        ways = math.prod(
            math.comb(d, k) * math.comb(n - d, m - k) for n, d, m, k in zip(sizes, truth, checked, wrong, strict=True)
        )
        total += ways
        if ways and any(d > most for d, most in zip((*truth, sum(truth)), bound(sizes, checked, wrong), strict=True)):
            false += ways
    assert total == math.comb(sum(sizes), size)
    return Fraction(false, total)


SIZES: Final = [(5, 3), (3, 2, 2), (6, 1), (4, 4), (7, 2), (5, 5), (4, 3, 2), (3, 3, 3), (6, 5), (8, 4), (5, 3, 3)]


@pytest.mark.parametrize("sizes", some(SIZES, every=4))
def test_all_statements_hold_together(sizes: tuple[int, ...]) -> None:
    """For all numbers of wrong items in each group and all samples of all sizes."""
    spent = Fraction(ALPHA) / 2
    for truth in product(*(range(size + 1) for size in sizes)):
        for size in range(1, sum(sizes)):
            assert false_share(sizes, truth, size, bounds) <= spent, (truth, size)


def test_without_sharing_the_error_probability_they_do_not() -> None:
    bound = cache(lambda wrong, checked, pool: upper_bound(wrong, checked, pool, 0.1))

    def not_shared(sizes: tuple[int, ...], checked: tuple[int, ...], wrong: tuple[int, ...]) -> tuple[int, ...]:
        cases = [*zip(wrong, checked, sizes, strict=True), (sum(wrong), sum(checked), sum(sizes))]
        return tuple(bound(*case) for case in cases)

    assert false_share((8, 8, 8), (4, 4, 4), 8, not_shared) > Fraction(13, 100)


def test_the_probabilities_are_those_of_all_samples() -> None:
    """The counts of the enumeration, against samples that are drawn one by one."""
    sizes, truth, size = (3, 2, 2), (2, 0, 1), 4
    group = [name for name, number in zip(NAMES, sizes, strict=True) for _ in range(number)]
    wrong = [k < bad for number, bad in zip(sizes, truth, strict=True) for k in range(number)]
    false = total = 0
    for sample in combinations(range(7), size):
        check = Check(sample, pool=7, alpha=ALPHA).tell(dict.fromkeys(sample, "right"))
        predictions = {item: "wrong" if wrong[item] else "right" for item in range(7)}
        counts = dict(zip(NAMES, sizes, strict=True))
        found = by_group(check, predictions, dict(enumerate(group)), counts)
        total += 1
        false += found.total.wrong_at_most < sum(truth) or any(
            found.groups[name].wrong_at_most < bad for name, bad in zip(NAMES, truth, strict=True)
        )
    assert Fraction(false, total) == false_share(sizes, truth, size, bounds)


@given(st.lists(st.integers(1, 30), min_size=1, max_size=3), st.integers(1, 3), st.data())
@examples(100)
def test_bounds_are_those_of_the_counts(sizes: list[int], columns: int, data: st.DataObject) -> None:
    checked = tuple(data.draw(st.integers(0, size)) for size in sizes)
    if not sum(checked):
        checked = (1, *checked[1:])
    wrong = tuple(data.draw(st.integers(0, number)) for number in checked)
    found = counted(tuple(sizes), checked, wrong, columns=columns)
    alpha = 0.5 * ALPHA / (columns * (len(sizes) + 1))
    for name, *case in zip(NAMES, wrong, checked, sizes, strict=False):
        assert found.groups[name].wrong_at_most == exact.upper(*case, alpha)
        assert found.groups[name].alpha == alpha
        assert found.groups[name].confidence == pytest.approx(1.0 - ALPHA)
    assert found.total.wrong_at_most == exact.upper(sum(wrong), sum(checked), sum(sizes), alpha)
    values = [each.value if each.remaining else each.value_for_all for each in found.groups.values()]
    assert values == sorted(values, reverse=True)
    saved = json.loads(json.dumps(found.to_dict()))
    assert GroupGuarantees.from_dict(saved) == found
    assert list(GroupGuarantees.from_dict(saved).groups) == list(found.groups)


def test_a_group_without_checked_items_has_no_guarantee() -> None:
    found = counted((50, 40, 7), (20, 12, 0), (1, 0, 0))
    empty = found.groups["c"]
    assert (empty.wrong_at_most, empty.value, empty.checked) == (7, 1.0, 0)
    assert str(empty) == "Nothing is guaranteed for the 7 unlabelled items of group 'c': none of them was checked."
    assert next(iter(found.groups)) == "c"
    assert str(found).splitlines()[1:3] == [
        "Together with this, for each group, the worst first:",
        "- 'c': nothing is guaranteed for 7 unlabelled items (0 checked)",
    ]


def test_sentences_name_the_group() -> None:
    found = counted((50, 12), (20, 12), (1, 2))
    assert str(found.total).startswith("At most 20 % of the predictions for the 30 unlabelled items are wrong (19 %")
    assert str(found.groups["a"]) == (
        "At most 20 % of the predictions for the 30 unlabelled items of group 'a' are wrong (19 % confidence)."
    )
    assert str(found.groups["b"]) == (
        "At most 17 % of the predictions for the 12 items of group 'b' are wrong (19 % confidence)."
    )
    assert found.groups["a"].evidence == (
        "A random check of 20 of 50 items of group 'a' found 1 with a wrong prediction."
    )
    assert "'b': at most 17 % of 12 items are wrong (12 checked, 2 wrong)" in str(found)
    assert "at most 17 % of 12 items" in found._repr_html_()


def test_other_guarantees_have_no_group() -> None:
    assert "group" not in Guarantee.of_error(1, 10, 50).to_dict()
    saved = Guarantee.of_error(1, 10, 50, group="a").to_dict()
    assert saved["group"] == "a"
    assert Guarantee.from_dict(saved).group == "a"
    with pytest.raises(InvalidValueError, match="group must be a text"):
        Guarantee.from_dict({**saved, "group": 3})
    with pytest.raises(InvalidValueError, match="group must be None for recall, precision"):
        Guarantee.of_precision("spam", 1, 10, 50, group="a")
    terms = SequentialTerms(3000, 150, 100, 0.025)
    with pytest.raises(InvalidValueError, match="group must be None for recall, precision and sequential checks"):
        Guarantee.of_proof(terms, 0, 87, group="a")


def test_numbers_are_wrong_beyond_a_tolerance() -> None:
    check = Check(tuple(range(20)), pool=60).tell({item: float(item) for item in range(20)})
    predictions = [item + (0.5 if item < 4 else 0.1) for item in range(20)]
    found = by_group(check, predictions, ["a"] * 10 + ["b"] * 10, {"a": 30, "b": 30}, tolerance=0.2)
    assert (found.groups["a"].wrong, found.groups["b"].wrong, found.total.wrong) == (4, 0, 4)
    assert found.groups["a"].quantity == "within"
    assert "are off by more than 0.2" in str(found)


@pytest.mark.parametrize("unlabelable_as", ["wrong", "excluded"])
def test_items_that_cannot_be_labelled(unlabelable_as: Any) -> None:
    check = Check(tuple(range(20)), pool=60, alpha=0.1)
    check = check.tell(dict.fromkeys(range(1, 20), "x")).cannot_label([0])
    groups, sizes = ["a"] + ["b"] * 19, {"a": 10, "b": 50}
    found = by_group(check, ["x"] * 20, groups, sizes, unlabelable_as=unlabelable_as)
    alpha = 0.05 / 3
    assert found.groups["b"].wrong_at_most == exact.upper(0, 19, 50, alpha)
    assert found.groups["a"].unlabelable == 1
    if unlabelable_as == "wrong":
        assert found.groups["a"].wrong_at_most == 10
    else:
        # One tenth of the check is the limit for all items together, so that a group may consist of them.
        assert found.groups["a"].wrong_at_most == 9
        assert str(found.groups["a"]).endswith("group 'a': none of its checked items could be labelled.")
        assert "(1 checked, 1 without a possible label)" in str(found)
    assert found.total.wrong_at_most == (
        exact.upper(1, 20, 60, alpha) if unlabelable_as == "wrong" else exact.upper(0, 19, 59, alpha)
    )


def test_corrected_answers_are_stated_in_their_group() -> None:
    check = Check(tuple(range(30)), pool=90).tell({item: "x" if item else "y" for item in range(30)}).correct(0, "x")
    found = by_group(check, ["x"] * 30, ["a"] * 15 + ["b"] * 15, {"a": 40, "b": 50})
    first = found.groups["a"].at_first
    assert first is not None
    assert (first.wrong, found.groups["a"].corrections) == (1, 1)
    assert found.groups["b"].at_first is None
    assert found.groups["b"].corrections == 0
    assert "before 1 answer was corrected" in str(found.groups["a"])


def test_bad_arguments_are_named() -> None:
    check = Check(tuple(range(10)), pool=40).tell(dict.fromkeys(range(10), "x"))
    predictions, groups, sizes = ["x"] * 10, ["a"] * 5 + ["b"] * 5, {"a": 20, "b": 20}
    terms = SequentialTerms(40, 4, 10, check.alpha_spent)
    with pytest.raises(InvalidValueError, match="draw a check of fixed size for statements about groups"):
        by_group(Check((1, 2), 40, sequential=terms), ["x"] * 2, ["a"] * 2, sizes)
    with pytest.raises(InvalidTypeError, match=r"that of a learner is check\.record"):
        by_group(None, predictions, groups, sizes)  # type: ignore[arg-type]
    with pytest.raises(InvalidValueError, match="gives a guarantee when all its 10 items have an answer"):
        by_group(Check(tuple(range(10)), pool=40), predictions, groups, sizes)
    with pytest.raises(InvalidTypeError, match="sizes must be a mapping of each group to its number of items"):
        by_group(check, predictions, groups, [20, 20])  # type: ignore[arg-type]
    with pytest.raises(InvalidValueError, match=r"sizes must add up to the 40 items .* not to 41; count every item"):
        by_group(check, predictions, groups, {"a": 20, "b": 21})
    with pytest.raises(InvalidValueError, match=r"sizes\['c'\] must be a whole number, 1 or more"):
        by_group(check, predictions, groups, {**sizes, "c": 0})
    with pytest.raises(InvalidValueError, match="at least the 5 checked items of group 'b', not 0"):
        by_group(check, predictions, groups, {"a": 40})
    with pytest.raises(InvalidValueError, match="at least the 5 checked items of group 'b', not 4"):
        by_group(check, predictions, groups, {"a": 36, "b": 4})
    with pytest.raises(InvalidTypeError, match="a group must be a text, not 1; convert it with str"):
        by_group(check, predictions, [1] * 10, sizes)
    with pytest.raises(InvalidValueError, match="groups must be one for each of the 10 items, not 3"):
        by_group(check, predictions, ["a"] * 3, sizes)
    with pytest.raises(InvalidValueError, match="groups must cover every item of the check; missing: 1"):
        by_group(check, predictions, {0: "a"}, sizes)
    with pytest.raises(InvalidValueError, match="columns must be a whole number, 1 or more"):
        by_group(check, predictions, groups, sizes, columns=0)
    assert by_group(check, predictions, np.array(groups), sizes) == by_group(check, predictions, groups, sizes)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda saved: saved.pop("total"), "lacks the fields total"),
        (lambda saved: saved.update(groups="a"), "must be a list of guarantees"),
        (lambda saved: saved["groups"].pop(), "pool of the groups must add up to 62, not 50"),
        (lambda saved: saved["groups"][0].update(group="b"), "must have different names"),
        (lambda saved: saved["groups"][0].update(alpha=0.01, wrong_at_most=28), "must have its name, and the alpha"),
        (lambda saved: saved["total"].update(group="a"), "total must be a guarantee for all items"),
    ],
)
def test_changed_files_are_rejected(change: Any, message: str) -> None:
    saved = json.loads(json.dumps(counted((50, 12), (20, 12), (5, 2)).to_dict()))
    change(saved)
    for part in (*saved.get("groups", []), saved.get("total")):
        if isinstance(part, dict):
            part.pop("wrong_at_most")
    with pytest.raises(InvalidValueError, match=message):
        GroupGuarantees.from_dict(saved)
