"""Checks of predictions made elsewhere: each result is that of the underlying function, and none is false too often."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scipy.stats import hypergeom

from suffice.checks import (
    Check,
    ClassShare,
    GivenPredictions,
    SequentialTerms,
    accept_corrected,
    accept_share,
    allowed_wrong,
    by_group,
    of_predictions,
    spent_alpha,
    upper_bound,
)
from suffice.checks.prediction_check import DEFAULT_SIZE, PredictionCheck, PredictionResult
from suffice.errors import InvalidValueError
from tests.thoroughness import thorough

CLASSES = ["eel", "ham", "spam"]


def world(n: int = 600, error: float = 0.06, seed: int = 0) -> tuple[list[str], list[str], list[float], list[str]]:
    """True classes, predictions, confidences and groups of some rows."""
    rng = np.random.default_rng(seed)
    truth = rng.choice(CLASSES, n, p=[0.1, 0.6, 0.3])
    doubt = rng.random(n)
    # Errors are where the doubt is largest, mostly.
    wrong = rng.random(n) < 2 * error * doubt
    other = rng.choice(CLASSES, n)
    llm, sure = np.where(wrong, other, truth), 1.0 - doubt / 2
    return truth.tolist(), llm.tolist(), sure.tolist(), ["xyz"[k % 3] for k in range(n)]


def asked(truth: list[Any]) -> Callable[[int], Any]:
    return lambda row: truth[row]


def record_of(check: PredictionCheck, truth: list[Any]) -> Check:
    """The same sample with the same answers, built from nothing but the drawn rows."""
    rows = check.record.items
    return Check(rows, check.record.pool, check.record.number, check.record.alpha, {row: truth[row] for row in rows})


def predicted_of(check: PredictionCheck, column: str = "prediction") -> dict[int, Any]:
    return {row: check.given.columns[column][row] for row in check.record.items}


# Each quantity is that of its function.


def test_a_check_of_fixed_size_is_the_guarantee_of_its_sample() -> None:
    truth, llm, *_ = world()
    check = of_predictions(llm).check(size=150, seed=3, confidence=0.9, earlier_checks=1)
    result = check.run(asked(truth))
    expected = record_of(check, truth).guarantee(predicted_of(check))
    assert result.guarantees == {"prediction": expected}
    assert expected.alpha == pytest.approx(spent_alpha(2, 0.1))
    faults = sum(truth[row] != llm[row] for row in check.record.items)
    assert (result.checked, result.wrong, result.pending) == (150, {"prediction": faults}, 0)
    assert faults > 0
    assert result.guaranteed


def test_several_columns_share_the_error_probability() -> None:
    truth, llm, *_ = world()
    rules = [label if row % 4 else "eel" for row, label in enumerate(truth)]
    check = of_predictions({"rules": rules, "llm": llm}).check(size=150, seed=3)
    result = check.run(asked(truth))
    record = record_of(check, truth)
    assert result.guarantees == {
        name: record.guarantee(predicted_of(check, name), parts=2) for name in ("rules", "llm")
    }
    assert result.best == "llm"
    assert result.to_dict()["wrong"] == result.wrong["llm"] < result.wrong["rules"]


@pytest.mark.parametrize("columns", [1, 2])
def test_groups_are_those_of_by_group(columns: int) -> None:
    truth, llm, _, groups = world()
    makers = {"llm": llm, "same": llm} if columns == 2 else {"llm": llm}
    check = of_predictions(makers, groups=groups).check(size=200, seed=1)
    result = check.run(asked(truth))
    record = record_of(check, truth)
    named = {row: groups[row] for row in record.items}
    expected = by_group(record, predicted_of(check, "llm"), named, check.given.group_sizes, columns=columns)
    assert result.guarantees["llm"] == expected.total
    assert result.groups["llm"] == expected.groups
    assert {name: each["wrong_at_most"] for name, each in result.to_dict()["groups"].items()} == {
        name: each.wrong_at_most for name, each in expected.groups.items()
    }


def test_the_share_of_a_class_is_that_of_class_share() -> None:
    truth, llm, *_ = world()
    check = of_predictions(llm).check(share_of="spam", seed=1)
    result = check.run(asked(truth))
    assert check.design.size == DEFAULT_SIZE == result.checked
    assert result.share == ClassShare.of_check(record_of(check, truth), "spam")
    assert result.guaranteed
    # A class that is never predicted can be stated too, if it is named, so that a typing error is noticed.
    with pytest.raises(InvalidValueError, match=r"share_of must be one of the predicted classes.* name classes"):
        of_predictions(llm).check(share_of="newt", size=50, seed=1)
    named = of_predictions(llm).check(share_of="newt", classes=["newt"], size=50, seed=1)
    assert named.run(asked(truth)).share is not None


def test_the_share_of_a_class_has_no_target() -> None:
    _, llm, *_ = world()
    with pytest.raises(InvalidValueError, match=r"share_of states how common a class is; leave at_most out"):
        of_predictions(llm).check(share_of="spam", at_most=0.05, seed=1)


def test_a_class_may_be_a_truth_value_or_a_number() -> None:
    truth = [row % 2 == 0 for row in range(200)]
    share = of_predictions(truth).check(share_of=True, size=60, seed=0).run(lambda row: truth[row]).share
    assert share is not None
    assert share.least <= 100 <= share.most


@pytest.mark.parametrize("name", ["share_of", "recall_of", "precision_of"])
def test_verdicts_tell_no_classes(name: str) -> None:
    with pytest.raises(InvalidValueError, match=f"{name} needs the class of each row"):
        of_predictions(["a", "b"] * 50).check(**{name: "a"}, size=20, answer="verdict")


def corrected(check: PredictionCheck, truth: Sequence[Any], rows: Iterable[int]) -> PredictionResult:
    """The result when the answers of some rows were corrected to the truth."""
    record = check.record
    for row in rows:
        record = record.correct(row, truth[row])
    return PredictionCheck.restored(check.given, check.design, record, check.answer).result


@pytest.mark.parametrize("options", [{}, {"share_of": "a"}, {"accept": "accepted", "at_most": 0.2}])
def test_corrections_are_stated_with_the_first_answers(options: dict[str, Any]) -> None:
    truth, llm = ["a", "b"] * 200, ["a", "b"] * 200
    given = of_predictions(llm, [0.9] * 200 + [0.6] * 200)
    check = given.check(size=100, seed=0, **options)
    # At first, 8 rows are answered wrongly.
    mistaken = [row for row in check.record.items if truth[row] == "a"][:8]
    first = check.run(lambda row: "b" if row in mistaken else truth[row])
    assert (first.corrections, first.at_first) == (0, None)
    result = corrected(check, truth, mistaken[::2])
    assert result.corrections == 4
    assert result.at_first is not None
    assert result.at_first.sentences() == first.sentences()
    before = first.sentences()[0]
    shown = "The first answers show the same." if result.sentences()[0] == before else f"By the first answers: {before}"
    assert f"4 answers were corrected. {shown}" in str(result)
    same = corrected(check, ["c"] * 400, mistaken[:1])
    assert "1 answer was corrected. The first answers show the same." in str(same)


def test_a_proof_by_corrected_answers_says_that_the_first_ones_do_not_prove_it() -> None:
    truth = ["a", "b"] * 200
    check = of_predictions(truth).check(at_most=0.1, seed=0)
    first = check.run(lambda row: "b" if len(check.record.labels) % 4 == 0 else truth[row])
    assert first.complete
    assert not first.guaranteed
    wrong = [row for row in check.record.items if check.record.labels[row] != truth[row]]
    result = corrected(check, truth, wrong)
    assert result.guaranteed
    assert "The first answers do not prove it." in str(result)


def test_each_part_says_whether_it_proves_the_target() -> None:
    truth, llm, _, groups = world()
    check = of_predictions({"llm": llm, "same": llm}, groups=groups).check(size=200, at_most=0.181, seed=1)
    result = check.run(asked(truth))
    told = result.to_dict()
    reached = {name: each["at_most"] <= 0.181 for name, each in told["groups"].items()}
    assert {name: each["reaches_target"] for name, each in told["groups"].items()} == reached
    assert set(reached.values()) == {True, False}
    said = str(result)
    for name, reaches in reached.items():
        line = said[said.index(f"Group {name!r}") :]
        assert line[: line.index(".", line.index("in the check"))].endswith(
            "target proven" if reaches else "not proven"
        )
    assert result.guaranteed == any(each["reaches_target"] for each in told["columns"].values())
    assert "The target is about all rows together." in said
    assert (
        "reaches_target"
        in of_predictions(llm).check(size=50, seed=1).run(asked(truth)).to_dict()["columns"]["prediction"]
    )


@pytest.mark.parametrize(
    ("number", "sentence"),
    [(6, ""), (10, ""), (11, "The bound of 1 other group is not"), (12, "The bounds of 2 other groups are not")],
)
def test_up_to_ten_groups_are_named(number: int, sentence: str) -> None:
    groups = [f"g{row % number}" for row in range(1200)]
    said = str(of_predictions(["a"] * 1200, groups=groups).check(size=200, seed=0).run(lambda _: "a"))
    assert said.count("Group 'g") == min(number, 10)
    assert sentence in said
    assert ("other group" in said) == bool(sentence)


@pytest.mark.parametrize(("useful", "orders"), [(True, True), (False, False)])
def test_an_accepted_part_says_whether_the_confidence_orders_errors(useful: bool, orders: bool) -> None:
    rng = np.random.default_rng(0)
    wrong = rng.random(2000) < 0.15
    confidence = np.where(wrong & useful, 0.5, 0.8) + 0.2 * rng.random(2000)
    llm = np.where(wrong, "b", "a").tolist()
    result = of_predictions(llm, confidence).check(accept="all", at_most=0.05, size=400, seed=0).run(lambda _: "a")
    assert result.judgement is not None
    assert result.judgement.orders is orders
    assert str(result.judgement) in str(result)
    assert "If people label them, at most 100 of all 2,000 labels are wrong" in str(result)


def test_few_whole_numbers_are_classes_unless_there_is_a_tolerance() -> None:
    codes = [1, 2, 3, 1] * 100
    result = of_predictions(codes).check(size=50, seed=0).run(lambda row: codes[row])
    assert result.wrong == {"prediction": 0}
    assert of_predictions(codes).check(size=50, tolerance=1.0, seed=0).given.numbers
    assert of_predictions(codes).finish(at_most=0.1, seed=0).run(lambda row: codes[row]).wrong_at_most <= 40


def test_rows_that_nobody_can_label_are_stated() -> None:
    result = of_predictions(["a", "b"] * 100).check(size=40, seed=0).run(lambda _: None)
    assert (result.unlabelable, result.wrong["prediction"]) == (40, 40)
    assert "40 rows of the check could not be labelled and count as wrong." in str(result)


def test_recall_is_that_of_the_sample() -> None:
    truth, llm, *_ = world()
    check = of_predictions(llm).check(recall_of="spam", size=250, at_most=0.3, seed=1)
    result = check.run(asked(truth))
    expected = record_of(check, truth).recall_guarantee(
        "spam", 0, predictions=predicted_of(check), predicted=llm.count("spam")
    )
    assert result.guarantees == {"prediction": expected}
    assert result.guaranteed == (expected.predicted_recall >= 0.7)


def test_recall_of_predictions_does_not_count_what_the_check_found() -> None:
    # All rows are checked, so that the recall is known.
    truth, llm = ["spam"] * 10 + ["ham"] * 10, ["spam"] * 6 + ["ham"] * 14
    result = of_predictions(llm).check(recall_of="spam", size=20, at_most=0.3, seed=0).run(asked(truth))
    (made,) = result.guarantees.values()
    assert made.predicted_recall == 0.6
    assert not result.guaranteed
    assert result.sentences()[0] == "It is not proven that at most 30 % are missed."
    assert "Of the rows of class 'spam' among the 20 rows, at least 60 % are predicted as such" in str(result).replace(
        "\xa0", " "
    )


def test_precision_is_that_of_a_sample_of_the_predicted_rows() -> None:
    truth, llm, *_ = world()
    check = of_predictions(llm).check(precision_of="spam", size=100, at_most=0.2, seed=1)
    result = check.run(asked(truth))
    assert check.record.pool == llm.count("spam")
    assert all(llm[row] == "spam" for row in check.record.items)
    expected = record_of(check, truth).precision_guarantee(predicted_of(check), "spam", check.record.pool)
    assert result.guarantees == {"prediction": expected}
    assert result.guaranteed == (expected.value >= 0.8)
    few = of_predictions(["a"] * 5 + ["b"] * 900)
    assert sorted(few.check(precision_of="a").record.items) == [0, 1, 2, 3, 4]
    with pytest.raises(InvalidValueError, match="size must be at most the 5 rows predicted as 'a', not 6"):
        few.check(precision_of="a", size=6)


def test_an_accepted_part_is_that_of_its_function() -> None:
    truth, llm, sure, _ = world(error=0.08)
    for accept, share in (("all", 0.04), ("accepted", 0.1)):
        check = of_predictions(llm, sure).check(accept=accept, at_most=share, size=250, seed=1)
        result = check.run(asked(truth))
        record, predicted = record_of(check, truth), predicted_of(check)
        if accept == "all":
            expected = accept_corrected(record, predicted, sure, allowed_wrong(share, 600))
        else:
            expected = accept_share(record, predicted, sure, share)
        assert result.accepted == expected
        assert 0 < expected.accepted < 600
        assert result.guaranteed
        assert result.to_dict()["accepted"]["evidence"] == expected.evidence


def test_numbers_are_wrong_beyond_the_tolerance() -> None:
    truth = [float(row % 7) for row in range(300)]
    guess = [value + (0.5 if row % 10 else 1.5) for row, value in enumerate(truth)]
    check = of_predictions(guess).check(size=100, tolerance=1.0, seed=0)
    result = check.run(asked(truth))
    assert result.guarantees == {"prediction": record_of(check, truth).guarantee(predicted_of(check), tolerance=1.0)}
    assert result.wrong == {"prediction": sum(row % 10 == 0 for row in check.record.items)}


# Sequential checks.


def test_a_check_for_a_target_ends_at_the_proof_of_its_terms() -> None:
    for seed in range(5):
        truth, llm, *_ = world(error=0.03, seed=seed)
        check = of_predictions(llm).check(at_most=0.08, seed=seed)
        terms = SequentialTerms.of_share(0.08, pool=600, alpha=spent_alpha(1, 0.05))
        assert check.record.sequential == terms
        answers: list[bool] = []
        while check.open:
            row = int(check.next()[0])
            answers.append(truth[row] != llm[row])
            check.tell({row: truth[row]})
            # Without a further error the proof needs all rows that are known to be needed.
            assert terms.proof(answers) == len(check.record.items) or not check.open
        proof = terms.proof(answers)
        assert check.result.guaranteed == (proof == len(answers))
        if proof is not None:
            assert check.result.guarantees["prediction"].checked == proof
        assert check.result.checked == len(answers)


def test_a_target_that_is_missed_is_not_proven() -> None:
    truth, llm, *_ = world(error=0.3)
    result = of_predictions(llm).check(at_most=0.02, seed=0).run(asked(truth))
    assert result.complete
    assert not result.guaranteed
    assert not result.guarantees
    assert result.to_dict()["wrong_at_most"] is None
    assert result.sentences()[0] == "It is not proven that at most 2 % are wrong."


def test_a_budget_pauses_and_the_check_continues() -> None:
    truth, llm, *_ = world(error=0.03)
    whole = of_predictions(llm).check(at_most=0.08, seed=0)
    parts = of_predictions(llm).check(at_most=0.08, seed=0)
    at_once = whole.run(asked(truth))
    first = parts.run(asked(truth), budget=10)
    assert (first.checked, first.complete, first.guaranteed) == (10, False, False)
    for _ in range(100):
        if not parts.open:
            break
        parts.run(asked(truth), budget=7)
    assert parts.result.to_dict() == at_once.to_dict()
    with pytest.raises(InvalidValueError, match="the check has ended; draw another one"):
        parts.tell(["ham"])


def test_next_is_stable_and_answers_may_come_in_any_order() -> None:
    truth, llm, *_ = world()
    check = of_predictions(llm).check(size=20, seed=0)
    assert check.next(5).tolist() == check.next(5).tolist() == list(check.record.items[:5])
    check.tell({row: truth[row] for row in reversed(check.next(20)[10:])})
    assert check.next(20).tolist() == list(check.record.items[:10])
    check.tell([truth[row] for row in check.next(10)])
    other = of_predictions(llm).check(size=20, seed=0)
    assert other.run(asked(truth)).to_dict() == check.result.to_dict()


def test_the_draw_depends_on_the_seed_and_on_the_number_of_the_check() -> None:
    _, llm, *_ = world()
    given = of_predictions(llm)
    drawn = [given.check(size=20, **each).record.items for each in ({"seed": 0}, {"seed": 0}, {"seed": 1})]
    drawn.append(given.check(size=20, seed=0, earlier_checks=1).record.items)
    assert drawn[0] == drawn[1]
    assert len(set(drawn)) == 3


# Answers.


def test_a_verdict_is_worth_the_same_as_a_label() -> None:
    truth, llm, *_ = world(error=0.03)
    blind = of_predictions(llm).check(at_most=0.08, seed=0)
    judged = of_predictions(llm).check(at_most=0.08, seed=0, answer="verdict")
    told, said = blind.run(asked(truth)).to_dict(), judged.run(lambda row: truth[row] == llm[row]).to_dict()
    assert said.pop("answer") == "verdict"
    assert told.pop("answer") == "blind"
    assert told == said
    fixed = of_predictions(llm).check(size=30, seed=0, answer="verdict")
    result = fixed.run(lambda row: np.bool_(truth[row] == llm[row]))
    assert result.wrong == {"prediction": sum(truth[row] != llm[row] for row in fixed.record.items)}


def test_a_verdict_must_be_yes_or_no() -> None:
    check = of_predictions(["a", "b"]).check(size=2, seed=0, answer="verdict")
    for bad in ("right", 1, 0.0):
        with pytest.raises(InvalidValueError, match=r"a verdict must be True \(right\), False \(wrong\) or None"):
            check.tell([bad])
    assert check.result.checked == 0


@pytest.mark.parametrize("answer", ["blind", "verdict"])
@pytest.mark.parametrize("missing", [None, float("nan")])
def test_an_answer_that_nobody_knows_counts_as_wrong(answer: str, missing: Any) -> None:
    check = of_predictions(["a"] * 50).check(size=50, answer=answer)
    right = "a" if answer == "blind" else True
    result = check.run(lambda row: missing if row < 4 else right)
    assert result.wrong == {"prediction": 4}
    assert result.guarantees["prediction"].unlabelable == 4


def test_an_answer_is_compared_as_text() -> None:
    # A column of numbers and texts is one of classes; its answers may have any type.
    check = of_predictions([1.0, 2, "x"]).check(size=3)
    result = check.run(lambda row: [1, 2.0, "x"][row])
    assert result.wrong == {"prediction": 0}


def test_bad_answers_change_nothing() -> None:
    check = of_predictions(["a", "b", "c"]).check(size=2, seed=0)
    outside = next(row for row in range(3) if row not in check.record.items)
    before = check.record
    with pytest.raises(InvalidValueError, match="3 answers are given for 2 open rows; give fewer"):
        check.tell(["a", "b", "c"])
    with pytest.raises(InvalidValueError, match="not"):
        check.tell({outside: "a"})
    assert check.record == before
    numbers = of_predictions([1.0, 2.5]).check(size=2, tolerance=0.0)
    with pytest.raises(InvalidValueError, match="a label"):
        numbers.tell([float("inf")])
    assert numbers.result.checked == 0


# Options.


BAD: list[tuple[Mapping[str, Any], str]] = [
    ({}, "give at_most, the largest acceptable share of wrong predictions, or size"),
    ({"at_most": -0.1}, "at_most must be"),
    ({"at_most": 5}, "at_most must be"),
    ({"at_most": 1.0}, "at_most=1.0 allows every prediction to be wrong"),
    ({"size": 0}, "size must be"),
    ({"size": 601}, "size must be at most the 600 rows, not 601"),
    ({"size": 10, "confidence": 1.0}, "confidence must be"),
    ({"size": 10, "earlier_checks": -1}, "earlier_checks must be"),
    ({"size": 10, "tolerance": 0.1}, "tolerance is for numbers"),
    ({"recall_of": "newt"}, "recall_of must be one of the predicted classes 'eel', 'ham', 'spam', not 'newt'"),
    ({"precision_of": "newt"}, "precision_of must be one of the predicted classes"),
    ({"recall_of": "eel", "share_of": "eel"}, "a check proves one quantity; give share_of or recall_of, not both"),
    ({"accept": "most", "at_most": 0.1}, 'accept must be "all" or "accepted"'),
    ({"accept": "all", "at_most": 0.1}, "accept needs the probability of each prediction"),
    ({"size": 10, "answer": "guess"}, 'answer must be "blind" or "verdict"'),
]


@pytest.mark.parametrize(("options", "message"), BAD)
def test_bad_options_are_refused(options: Mapping[str, Any], message: str) -> None:
    _, llm, *_ = world()
    with pytest.raises(InvalidValueError) as caught:
        of_predictions(llm).check(**options)
    assert message in str(caught.value)


def test_options_that_do_not_fit_the_predictions_are_refused() -> None:
    _, llm, sure, groups = world()
    several = of_predictions({"a": llm, "b": llm}, sure)
    cases: list[tuple[GivenPredictions, Mapping[str, Any], str]] = [
        (several, {"share_of": "eel"}, "share_of is for one column of predictions"),
        (several, {"size": 10, "answer": "verdict"}, "verdicts are about one column"),
        (of_predictions(llm, sure), {"accept": "all"}, "accept needs at_most"),
        (of_predictions(llm, sure, groups), {"accept": "all", "at_most": 0.1}, "leave groups out"),
        (of_predictions(llm, None, groups), {"share_of": "ham"}, "leave groups out, or share_of"),
        (of_predictions(llm, None, groups), {"recall_of": "ham"}, "leave groups out, or recall_of"),
        (of_predictions([1.0, 2.0, 2.5]), {"size": 1}, "give tolerance"),
        (of_predictions([1.0, 2.0, 2.5]), {"size": 1, "tolerance": -1.0}, "tolerance must be"),
        (of_predictions([1.0, 2.0, 2.5]), {"size": 1, "tolerance": 1.0, "share_of": "1"}, "share_of is for classes"),
    ]
    for given, options, message in cases:
        with pytest.raises(InvalidValueError) as caught:
            given.check(**options)
        assert message in str(caught.value)


def test_a_result_has_the_keys_that_other_programs_read() -> None:
    truth, llm, *_ = world()
    result = of_predictions(llm).check(at_most=0.2, seed=0).run(asked(truth)).to_dict()
    assert {"guaranteed", "checked", "wrong", "at_most", "confidence_level", "groups"} <= result.keys()
    assert result["groups"] == {}


# No statement is false too often.


@pytest.mark.no_cover
@pytest.mark.parametrize("wrong", [3, 8])
def test_every_draw_from_a_tiny_pool_is_counted(wrong: int) -> None:
    # The drawn order stays, and the wrong rows are at all places: each is as likely. At most 2 of 12 may be wrong.
    places = list(combinations(range(12), wrong))
    results = []
    for at in places:
        truth = ["b" if row in at else "a" for row in range(12)]
        results.append(of_predictions(["a"] * 12).check(at_most=0.2, confidence=0.2, seed=0).run(asked(truth)))
    false = sum(result.guaranteed for result in results)
    # The first check spends half of 0.8.
    assert Fraction(false, len(places)) <= Fraction(4, 10)
    if wrong == 3:
        assert false, "the test shows nothing"


def false_guarantees(number: int, **options: Any) -> int:
    """How often a target is proven that one wrong row too many makes false."""
    false = 0
    for seed in range(number):
        rng = np.random.default_rng([seed, 7])
        pool = int(rng.integers(10, 60))
        wrong = int(options["at_most"] * pool) + 1
        truth = ["b"] * wrong + ["a"] * (pool - wrong)
        false += of_predictions(["a"] * pool).check(seed=seed, **options).run(asked(truth)).guaranteed
    return false


@pytest.mark.no_cover
@pytest.mark.parametrize("options", [{"at_most": 0.3}, {"at_most": 0.3, "size": 9}, {"at_most": 0.1}])
def test_few_guarantees_are_false_at_the_boundary(options: dict[str, Any]) -> None:
    # The level of the first check is half of 1 - confidence.
    number = 3000 if thorough() else 100
    level = 0.1
    false = false_guarantees(number, confidence=1.0 - 2 * level, **options)
    assert false <= level * number + 3 * (level * (1 - level) * number) ** 0.5


@pytest.mark.parametrize("target", [0.05, 0.1])
def test_the_planned_size_is_about_all_rows(target: float) -> None:
    """A planned check of groups proves the target with a probability of 80 % if half of it is true, and no larger."""
    rows, wrong = 800, round(0.5 * target * 800)
    check = of_predictions(["a", "b"] * 400, groups=["x", "y", "z", "x"] * 200).check(at_most=target, seed=0)
    size, alpha = check.record.size, spent_alpha(1) / 4
    allowed = allowed_wrong(target, rows)
    proving = [k for k in range(size + 1) if upper_bound(k, size, rows, alpha) <= allowed]
    assert hypergeom(rows, wrong, size).cdf(max(proving)) >= 0.8
    smaller = [k for k in range(size) if upper_bound(k, size - 1, rows, alpha) <= allowed]
    assert hypergeom(rows, wrong, size - 1).cdf(max(smaller)) < 0.8
