"""Checks of a learner: the draw, the frozen model, the answers, the guarantee, and what is learned when."""

import copy
import pickle
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtr
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import suffice as sf
from suffice.checks import Check, Guarantee, PredictedItems, plan, spent_alpha, upper_bound
from suffice.errors import InvalidValueError, SufficeError
from suffice.learner import ErrorGuarantee, ModelCheck
from suffice.models import BayesianLogistic, BayesianRidge, GaussianProcess
from suffice.session.session import Session
from tests.thoroughness import examples, thorough


def classes(m: int = 200, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, 2))
    return X, np.where(X[:, 0] + 0.8 * rng.normal(size=m) > 0.0, "spam", "ham")


def numbers(m: int = 200, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, 2))
    return X, X[:, 0] + 0.3 * rng.normal(size=m)


def labelled(X: Any, y: Any, n: int = 20, model: Any = None, **options: Any) -> sf.ActiveLearner:
    """A learner with some labels."""
    model = BayesianLogistic(alpha=1.0) if model is None else model
    learner = sf.ActiveLearner(model, X, **{"criterion": sf.Budget(len(X)), "seed": 0, **options})
    while len(learner.labelled) < n:
        items = learner.ask(10)
        learner.tell(items, y[items])
    return learner


def wrong_at(check: ModelCheck, y: Any) -> int:
    """Wrong predictions of the frozen model in the sample."""
    predicted = dict(zip(check.unlabelled.tolist(), check.predictions.tolist(), strict=True))
    return sum(predicted[item] != y[item] for item in check.record.items)


# The draw and the frozen model.


def test_the_guarantee_is_that_of_the_counts() -> None:
    X, y = classes()
    learner = labelled(X, y)
    model, rest = learner.model, np.setdiff1d(np.arange(200), learner.labelled)
    check = learner.check(40)
    assert (check.record.pool, check.record.size, check.n_labelled) == (180, 40, 20)
    assert check.unlabelled.tolist() == rest.tolist()
    assert check.predictions.tolist() == model.predict(X[rest]).tolist() == check.model.predict(X[rest]).tolist()
    assert (check.guarantee, learner.guarantee) == (None, None)
    found = check.tell(y[check.indices])
    assert found == check.guarantee
    assert found is not None
    wrong = int(np.sum(model.predict(X[check.indices]) != y[check.indices]))
    assert found == Guarantee.of_error(wrong, 40, 180, alpha=0.025, confidence=0.95, model=found.model)
    assert found.wrong_at_most == upper_bound(wrong, 40, 180, 0.025)
    assert found.model == "BayesianLogistic(alpha=1.0) at 20 labels"


def test_the_draw_is_a_stream_of_its_own() -> None:
    X, y = classes()
    with_check, without = labelled(X, y, seed=5), labelled(X, y, seed=5)
    check = with_check.check(30)
    again = Check.draw(check.unlabelled, 30, np.random.default_rng([5, 18]))
    assert check.indices.tolist() == list(again.items)
    check.abort()
    assert with_check.ask(20).tolist() == without.ask(20).tolist()


def test_a_generator_as_seed() -> None:
    X, y = classes()
    checks = [labelled(X, y, seed=np.random.default_rng(3)).check(30) for _ in range(2)]
    assert checks[0].indices.tolist() == checks[1].indices.tolist()


def test_a_pipeline_predicts_inputs_as_they_came() -> None:
    X, y = classes()
    learner = labelled(100.0 * X, y, model=make_pipeline(StandardScaler(), BayesianLogistic(alpha=1.0)))
    check = learner.check(30)
    assert check.predictions.tolist() == check.model.predict(100.0 * X[check.unlabelled]).tolist()


def test_labels_are_learned_when_labelling_goes_on() -> None:
    X, y = classes()
    learner = labelled(X, y)
    before, check = learner.model.predict_proba(X), learner.check(40)
    random_labels = learner.random_labels
    check.tell(y[check.indices])
    assert learner.model.predict_proba(X).tolist() == before.tolist()
    assert len(learner.labelled) == len(learner.labels) == 60
    assert learner.left == 140
    newest = learner.guarantee
    assert newest is not None
    assert newest.about_present_model
    assert str(newest) == str(check.guarantee)
    asked = learner.ask()
    assert not np.isin(asked, check.indices).any()
    assert learner.random_labels == random_labels + 40
    assert learner.random_items[-40:] == check.indices.tolist()
    assert learner.model.predict_proba(X).tolist() != before.tolist()
    newest = learner.guarantee
    assert newest is not None
    assert not newest.about_present_model
    assert str(newest).endswith(
        "This is about the model at 20 labels. The current model is different and has no guarantee until it is checked."
    )
    assert check.guarantee == newest.guarantee


def test_the_labels_are_one_step_of_random_labels() -> None:
    X, y = classes()
    learner, twin = labelled(X, y), labelled(X, y)
    check = learner.check(40)
    check.tell(y[check.indices])
    item = learner.ask()
    learner.tell(item, y[item])
    twin.tell(check.indices, y[check.indices], random=True)
    twin.tell(item, y[item])
    assert learner.labelled == twin.labelled
    assert learner.model.predict_proba(X).tolist() == twin.model.predict_proba(X).tolist()
    assert learner.error_estimate() == twin.error_estimate()
    assert [v.n_labelled for v in learner.verdicts] == [v.n_labelled for v in twin.verdicts]


def test_labels_in_parts_and_in_any_order() -> None:
    X, y = classes()
    learner = labelled(X, y)
    check = learner.check(30)
    items = check.indices[::-1]
    assert check.tell({int(i): y[i] for i in items[:10]}) is None
    assert len(check.pending) == 20
    assert learner.labelled == labelled(X, y).labelled
    found = check.tell(y[check.pending])
    assert found is not None
    assert found.wrong == wrong_at(check, y)


def test_open_items_are_not_asked_for() -> None:
    X, y = classes()
    for model, data in ((BayesianLogistic(alpha=1.0), classes()), (GaussianProcess(1.0, 0.1), numbers())):
        X, y = data
        learner = labelled(X, y, model=model)
        check = learner.check(150, tolerance=0.5 if y.dtype.kind == "f" else None)
        while learner.left > 150:
            items = learner.ask(10)
            assert not np.isin(items, check.indices).any()
            assert len(items) == min(10, learner.left - 150)
            learner.tell(items, y[items])
        with pytest.raises(SufficeError, match="every item that is left belongs to the open check"):
            learner.ask()
        found = check.tell(y[check.indices])
        assert found is not None
        assert found.pool == 180
        assert learner.left == 0
        assert learner.verdict.stop
        assert learner.guarantee is not None
        assert not learner.guarantee.about_present_model


def test_checks_share_alpha() -> None:
    X, y = classes()
    learner = labelled(X, y)
    for number in (1, 2, 3):
        check = learner.check(10, confidence=0.9 if number == 1 else None)
        if number == 2:
            check.abort()
            continue
        found = check.tell(y[check.indices])
        assert found is not None
        assert found.alpha == pytest.approx(spent_alpha(number, 0.1))
        assert found.confidence == pytest.approx(0.9)
    assert [check.aborted for check in learner.checks] == [False, True, False]
    with pytest.raises(InvalidValueError, match=r"confidence must be 0\.9, as for the first check"):
        learner.check(10, confidence=0.95)


def test_an_aborted_check_gives_labels_but_no_guarantee() -> None:
    X, y = classes()
    learner = labelled(X, y)
    check = learner.check(40)
    told = [*check.indices[:5].tolist(), int(check.indices[9])]
    check.tell({item: y[item] for item in told})
    check.abort()
    assert check.guarantee is None
    assert learner.guarantee is None
    assert learner.labelled[-6:] == told
    # Only labels without a gap before them are a random sample.
    assert learner.random_items[-5:] == told[:5]
    assert told[5] not in learner.random_items
    assert learner.left == 174
    for answer in (check.tell, check.cannot_label):
        with pytest.raises(InvalidValueError, match="was aborted"):
            answer({})
    with pytest.raises(InvalidValueError, match="was aborted"):
        check.abort()
    assert learner.check(10).record.alpha_spent == spent_alpha(2)


def test_an_earlier_guarantee_survives_an_aborted_check_without_labels() -> None:
    X, y = classes()
    learner = labelled(X, y)
    first = learner.check(20)
    first.tell(y[first.indices])
    learner.check(10).abort()
    assert learner.guarantee is not None
    assert learner.guarantee.check is first
    assert not learner.guarantee.about_present_model


# Corrections and items that cannot be labelled.


def test_a_correction_recomputes_the_guarantee() -> None:
    X, y = classes()
    learner = labelled(X, y)
    check = learner.check(40)
    found = check.tell(y[check.indices])
    assert found is not None
    item = int(check.indices[3])
    other = "ham" if y[item] == "spam" else "spam"
    moved = 1 if wrong_at(check, y) < wrong_at(check, np.where(np.arange(200) == item, other, y)) else -1
    learner.correct(item, other)
    assert learner.guarantee is not None
    assert learner.guarantee.about_present_model
    corrected: Any = {"corrections": 1, "wrong_at_first": found.wrong}
    assert check.guarantee == Guarantee.of_error(
        found.wrong + moved, 40, 180, alpha=0.025, confidence=0.95, model=found.model, **corrected
    )
    learner.ask()
    assert learner.labels[item] == other
    learner.correct(item, y[item])
    assert check.guarantee == found
    assert learner.labels[item] == y[item]


def test_a_correction_of_another_label_changes_the_model() -> None:
    X, y = classes()
    learner = labelled(X, y)
    check = learner.check(40)
    found = check.tell(y[check.indices])
    item = learner.labelled[0]
    learner.correct(item, "ham" if y[item] == "spam" else "spam")
    assert learner.guarantee is not None
    assert not learner.guarantee.about_present_model
    assert check.guarantee == found


def test_an_answer_of_an_open_check_is_corrected() -> None:
    X, y = classes()
    learner = labelled(X, y)
    check = learner.check(3)
    a, b, c = check.indices.tolist()
    check.tell({a: "ham"})
    check.cannot_label(b)
    learner.correct(a, "spam")
    learner.correct(b, "ham")
    check.correct(a, None)
    assert check.record.labels == {b: "ham"}
    assert check.record.unlabelable == {a}
    with pytest.raises(InvalidValueError, match="has no label to correct"):
        learner.correct(c, "ham")
    check.tell({c: "ham"})
    assert learner.skipped == [a]
    with pytest.raises(InvalidValueError, match="is complete"):
        check.correct(c, "spam")


def test_items_that_cannot_be_labelled_count_as_wrong_or_not_at_all() -> None:
    X, y = classes()
    for how in ("wrong", "excluded"):
        learner = labelled(X, y)
        check = learner.check(40, unlabelable_as=how)
        check.cannot_label(check.indices[:3])
        found = check.tell(y[check.pending])
        assert found is not None
        assert (found.unlabelable, found.unlabelable_as, found.pool) == (3, how, 180)
        assert learner.skipped == sorted(check.indices[:3].tolist())
        assert len(learner.labelled) == 57
        # An item that turns out to have a label has the answer that counts.
        item = int(check.indices[0])
        learner.tell(item, y[item])
        assert check.guarantee is not None
        assert check.guarantee.unlabelable == 2


def test_skipped_items_are_in_the_pool_unless_excluded() -> None:
    X, y = classes()
    learner = labelled(X, y)
    skipped = np.setdiff1d(np.arange(200), learner.labelled)[:90]
    learner.skip(skipped)
    check = copy.deepcopy(learner).check(180)
    assert check.record.pool == 180
    assert sorted(check.indices.tolist()) == np.setdiff1d(check.unlabelled, skipped).tolist()
    found = check.tell(y[check.indices])
    assert found is not None
    assert found.unlabelable == 90
    assert found.wrong_at_most == 90 + found.wrong
    check = learner.check(90, unlabelable_as="excluded")
    assert check.record.pool == 90
    assert len(check.unlabelled) == 180
    assert not np.isin(check.indices, skipped).any()
    with pytest.raises(SufficeError, match="a check is open"):
        learner.check(1)


def test_a_check_of_skipped_items_only_is_complete_at_once() -> None:
    X, y = classes(30)
    learner = labelled(X, y, 10)
    learner.skip(np.setdiff1d(np.arange(30), learner.labelled))
    check = learner.check(5)
    assert check.complete
    assert check.guarantee is not None
    assert check.guarantee.value == 1.0
    assert len(check.indices) == 0
    with pytest.raises(InvalidValueError, match="there is no unlabelled item that was not skipped to check"):
        learner.check(5, unlabelable_as="excluded")


# Other quantities.


def test_recall() -> None:
    X, y = classes()
    learner = labelled(X, y)
    seen = sum(label == "spam" for label in learner.labels.values())
    check = learner.check(60, recall_of="spam")
    found = check.tell(y[check.indices])
    assert found is not None
    sample = {item: check.predictions[np.searchsorted(check.unlabelled, item)] for item in check.indices.tolist()}
    spam = [item for item, predicted in sample.items() if predicted == "spam"]
    number = int(np.sum(check.predictions == "spam"))
    right, new = sum(y[item] == "spam" for item in spam), sum(y[i] == "spam" and i not in spam for i in sample)
    expected = Guarantee.of_recall(
        "spam",
        seen,
        new,
        60 - len(spam),
        180 - number,
        predicted=PredictedItems(number, len(spam), right),
        alpha=0.025,
        confidence=0.95,
        model=found.model,
    )
    assert found == expected
    # The label of an item that was found before counts too.
    item = next(item for item in learner.labelled if y[item] == "spam")
    learner.correct(item, "ham")
    assert check.guarantee is not None
    assert check.guarantee.found == seen - 1


def test_recall_of_annotators() -> None:
    X, y = classes()
    learner = labelled(X, y)
    seen = sum(label == "spam" for label in learner.labels.values())
    check = learner.check(60, recall_of="spam", predicted_as_found=False)
    found = check.tell(y[check.indices])
    assert found is not None
    new = int(np.sum(y[check.indices] == "spam"))
    assert found == Guarantee.of_recall("spam", seen, new, 60, 180, alpha=0.025, confidence=0.95, model=found.model)


def test_precision_is_drawn_from_the_predicted_items() -> None:
    X, y = classes()
    learner = labelled(X, y)
    check = learner.check(30, precision_of="spam")
    assert (learner.model.predict(X[check.indices]) == "spam").all()
    found = check.tell(y[check.indices])
    assert found is not None
    wrong, number = int(np.sum(y[check.indices] != "spam")), int(np.sum(check.predictions == "spam"))
    assert found == Guarantee.of_precision("spam", wrong, 30, number, alpha=0.025, confidence=0.95, model=found.model)
    random_items = learner.random_items
    learner.ask()
    assert learner.random_items == random_items
    with pytest.raises(InvalidValueError, match=r"predicted as 'spam'\), not 150$"):
        learner.check(150, precision_of="spam")


@pytest.mark.parametrize("model", [GaussianProcess(1.0, 0.1), BayesianRidge(1.0, 10.0)])
def test_numbers(model: Any) -> None:
    X, y = numbers()
    learner = labelled(X, y, model=model)
    check = learner.check(60, tolerance=0.5)
    found = check.tell(y[check.indices])
    residuals = y[check.indices] - learner.model.predict(X[check.indices])
    assert found is not None
    stated = {"confidence": 0.95, "model": found.model}
    assert found == Guarantee.within(residuals, 0.5, 180, alpha=0.025, **stated)  # type: ignore[arg-type]
    check = learner.check(60, share=0.2)
    found = check.tell(y[check.indices])
    residuals = y[check.indices] - check.model.predict(X[check.indices])
    assert found is not None
    again = Guarantee.of_tolerance(residuals, 0.2, 120, alpha=spent_alpha(2), confidence=0.95, model=found.model)
    assert found.tolerance == pytest.approx(again.tolerance)
    assert found.wrong_at_most == again.wrong_at_most


def test_a_share_that_cannot_be_proven() -> None:
    X, y = numbers()
    learner = labelled(X, y, model=GaussianProcess(1.0, 0.1))
    with pytest.raises(InvalidValueError, match="is too small for share"):
        learner.check(5, share=0.05)
    assert learner.checks == []
    check = learner.check(40, share=0.1)
    check.cannot_label(check.indices[:20])
    assert check.tell(y[check.pending]) is None
    assert check.complete
    assert learner.guarantee is None


def test_a_new_class_is_wrong() -> None:
    X, y = classes()
    learner = labelled(X, y)
    check = learner.check(20)
    found = check.tell(np.where(np.arange(20) < 2, "eggs", y[check.indices]))
    assert found is not None
    assert found.wrong == 2 + sum(check.model.predict(X[check.indices[2:]]) != y[check.indices[2:]])
    assert learner.check(20, recall_of="eggs").record.number == 2


# Planning, the decision, and copies.


def test_check_size_is_the_plan() -> None:
    X, y = classes(1000)
    learner = labelled(X, y, 60)
    expected = learner.error_estimate().value
    assert learner.check_size(0.4) == plan(0.4, expected, 940, alpha=0.025).labels
    check = learner.check(20)
    check.tell(y[check.indices])
    again = learner.error_estimate().value
    assert learner.check_size(0.4, probability=0.5) == plan(0.4, again, 920, alpha=0.05 / 6, probability=0.5).labels
    assert learner.check_size(0.0) is None
    with pytest.raises(InvalidValueError, match="at_most must be a number from 0 to 1"):
        learner.check_size(2.0)
    with pytest.raises(InvalidValueError, match="the model predicts numbers: give tolerance"):
        labelled(*numbers(), model=GaussianProcess(1.0, 0.1)).check_size(0.1)
    with pytest.raises(InvalidValueError, match="tolerance is for numbers"):
        learner.check_size(0.1, tolerance=1.0)


def test_the_share_beyond_a_tolerance_is_that_of_the_predictive_distribution() -> None:
    X, y = numbers(1000)
    learner = labelled(X, y, 60, GaussianProcess(1.0, 0.1), initial=np.arange(10), acquisition="variance")
    rest = np.setdiff1d(np.arange(1000), learner.labelled)
    _, deviation = learner.model.predict(X[rest], return_std=True)
    expected = float((2.0 * ndtr(-0.5 / deviation)).mean())
    found = learner.error_estimate(tolerance=0.5)
    assert found.random_labels == 0
    assert found.value == pytest.approx(expected, rel=1e-9)
    assert learner.check_size(0.4, tolerance=0.5) == plan(0.4, found.value, 940, alpha=0.025).labels
    # Random labels calibrate it: here the residuals are larger than the model expects.
    items = learner.ask(40)
    learner.tell(items, y[items] + np.where(np.arange(40) % 2 == 0, 3.0, -3.0), random=True)
    again = learner.error_estimate(tolerance=0.5)
    assert again.random_labels == 40
    assert again.value > 1.5 * again.model_alone


def test_the_plan_follows_from_the_estimate() -> None:
    X, y = classes(1000)
    learner = labelled(X, y, 60, criterion=sf.Budget(1000))
    with pytest.raises(SufficeError, match="the model has no label yet"):
        sf.ActiveLearner(BayesianLogistic(), X, seed=0).guarantee_plan(0.4)
    found = learner.guarantee_plan(0.4)
    estimate = learner.error_estimate()
    assert (found.n_labelled, found.pool, found.alpha, found.error) == (60, 940, 0.025, estimate.value)
    assert (found.low, found.high) == (estimate.low, estimate.high)
    # Every model family says which part of its error is reducible; it falls with the number of labels.
    later = labelled(X, y, 300).guarantee_plan(0.4)
    assert estimate.value >= found.reducible > later.reducible > 0.0
    check = learner.check(20)
    check.tell(y[check.indices])
    again = learner.guarantee_plan(0.4)
    assert (again.n_labelled, again.pool, again.alpha) == (80, 920, 0.05 / 6)
    assert learner.guarantee_plan(0.0).expected_total is None


@pytest.mark.parametrize("model", [GaussianProcess(1.0, 0.1), BayesianRidge(alpha=1.0, beta=10.0)])
def test_the_plan_for_numbers(model: Any) -> None:
    X, y = numbers(1000)
    learner = labelled(X, y, 40, model)
    found = learner.guarantee_plan(0.3, tolerance=0.5)
    assert found.error == learner.error_estimate(tolerance=0.5).value
    assert found.error >= found.reducible > 0.0
    assert found.expected_total is not None
    with pytest.raises(InvalidValueError, match="give tolerance"):
        learner.guarantee_plan(0.3)


def test_a_few_labels_do_not_show_that_nothing_is_wrong() -> None:
    X, y = classes(1000)
    learner = sf.ActiveLearner(BayesianLogistic(alpha=1.0), X, seed=0)
    items = np.flatnonzero(y == "spam")[:10]
    learner.tell(items, y[items])
    plan = learner.guarantee_plan(0.2)
    assert learner.error_estimate().value < 0.2
    assert plan.error == 0.3
    assert plan.reducible >= 0.3 - learner.error_estimate().value
    assert not plan.check_now
    sure = labelled(*numbers(), 40, GaussianProcess(1.0, 0.1))
    # Half an error among the random labels, at least.
    assert sure.random_labels == 25
    assert sure.error_estimate(tolerance=100.0).value == sure.guarantee_plan(0.2, tolerance=100.0).error == 0.5 / 26


def test_no_plan_when_nothing_is_left() -> None:
    X, y = classes(30)
    learner = labelled(X, y, 30)
    with pytest.raises(SufficeError, match="nothing left to check"):
        learner.guarantee_plan(0.3)


def test_the_decision_begins_with_the_guarantee() -> None:
    X, y = classes()
    learner = labelled(X, y)
    assert learner.decision().guarantee is None
    assert "guarantee" not in learner.decision().as_dict()
    check = learner.check(40)
    found = check.tell(y[check.indices])
    decision = learner.decision()
    assert decision.guarantee == found
    assert (decision.n_labelled, decision.unlabelled) == (60, 140)
    statement = str(found)
    assert str(decision).startswith(f"Guaranteed: a{statement[1:]} ")
    assert decision.as_dict()["guarantee"]["statement"] == statement
    learner.ask()
    assert learner.decision().guarantee is None
    assert not str(learner.decision()).startswith("Guaranteed")


def test_the_rule_stops_at_the_guarantee() -> None:
    X, y = classes(1000)
    learner = sf.ActiveLearner(BayesianLogistic(alpha=1.0), X, criterion=ErrorGuarantee(0.4), seed=0)
    while not learner.verdict.stop:
        size = learner.check_size(0.4) if len(learner.labelled) >= 30 else None
        if size is not None and size <= 100:
            check = learner.check(size)
            check.tell(y[check.indices])
        else:
            items = learner.ask(10)
            learner.tell(items, y[items])
    newest = learner.guarantee
    assert newest is not None
    assert newest.about_present_model
    assert newest.guarantee.value <= 0.4
    assert learner.verdict.value == newest.guarantee.value
    assert learner.verdict.n_labelled == len(learner.labelled) < 300
    assert learner.decision(compare=False).stop
    # Another model has no guarantee.
    learner.ask()
    assert not learner.verdict.stop


def test_a_failed_check_and_a_correction_are_judged() -> None:
    X, y = classes()
    learner = sf.ActiveLearner(BayesianLogistic(alpha=1.0), X, criterion=ErrorGuarantee(0.05) | sf.Budget(190), seed=0)
    items = learner.ask(10)
    learner.tell(items, y[items])
    check = learner.check(185)
    check.tell(check.model.predict(X[check.indices]))
    assert learner.verdict.stop
    for item in check.indices[:60].tolist():
        learner.correct(item, "eggs")
    assert check.guarantee is not None
    assert check.guarantee.wrong == 60
    assert [part.stop for part in learner.verdict.parts] == [False, True]


def test_a_pickled_learner_goes_on() -> None:
    X, y = classes()
    learner = labelled(X, y)
    check = learner.check(20)
    check.tell({int(i): y[i] for i in check.indices[:10]})
    other = pickle.loads(pickle.dumps(learner))
    for each in (learner, other):
        last = each.checks[-1]
        last.tell(y[last.pending])
    assert other.guarantee.guarantee == learner.guarantee.guarantee  # type: ignore[union-attr]
    assert other.ask(5).tolist() == learner.ask(5).tolist()
    assert other.check(10).indices.tolist() == learner.check(10).indices.tolist()


@pytest.mark.slow
def test_a_network() -> None:
    pytest.importorskip("torch")
    from suffice.models import DropoutNetwork

    X, y = classes(80)
    model = DropoutNetwork(hidden=(8,), epochs=5, warm_epochs=2, samples=4, device="cpu")
    learner = labelled(X, y, model=model)
    check = learner.check(20)
    predictions = check.predictions.tolist()
    assert predictions == check.model.predict(X[check.unlabelled]).tolist()
    assert not np.isin(learner.ask(5), check.indices).any()
    random_labels = learner.random_labels
    found = check.tell(y[check.indices])
    assert found is not None
    assert found.wrong == wrong_at(check, y)
    assert learner.random_labels == random_labels + 20
    items = learner.ask(2)
    learner.tell(items, y[items])
    assert learner.random_labels >= random_labels + 20
    assert check.predictions.tolist() == predictions
    assert check.model.predict(X[check.unlabelled]).tolist() == predictions


# Bad inputs.


def test_bad_sizes_and_quantities() -> None:
    X, y = classes()
    learner = sf.ActiveLearner(BayesianLogistic(), X, seed=0)
    with pytest.raises(SufficeError, match="the model has no label yet"):
        learner.check(10)
    learner = labelled(X, y)
    bad: list[tuple[dict[str, Any], str]] = [
        *(
            ({"m": m}, rf"m, the number of items to check, must be a whole number from 1 to 180 \(.*\), not {m!r}$")
            for m in (0, -1, 181, 1.5, True)
        ),
        ({}, "a check needs at_most, .*, or m, the number of items to check; neither is given"),
        ({"m": 9, "at_most": 0.1}, "; both are given"),
        ({"at_most": 1.5}, "at_most must be a number from 0 to 1"),
        ({"at_most": 0.1, "recall_of": "ham"}, "at_most is for the share of wrong predictions, not for recall"),
        ({"at_most": 0.1, "unlabelable_as": "excluded"}, "counts items that cannot be labelled as wrong"),
        ({"m": 9, "corrected": True}, "corrected=True is for a check with at_most"),
        ({"m": 181}, r"\(there are 180 unlabelled items\)"),
        ({"m": 180, "precision_of": "ham"}, r"\(there are \d+ unlabelled items predicted as 'ham'\), not 180"),
        ({"m": 5, "recall_of": "eggs"}, "recall_of must be one of the classes that the model knows, 'ham', 'spam'"),
        ({"m": 5, "precision_of": 3}, "precision_of must be one of the classes"),
        ({"m": 5, "recall_of": "ham", "precision_of": "ham"}, "one quantity"),
        ({"m": 5, "tolerance": 1.0}, "tolerance cannot be checked: the model predicts classes"),
        ({"m": 5, "unlabelable_as": "right"}, "unlabelable_as must be"),
        ({"m": 5, "confidence": 1.0}, "confidence must be a number above 0 and below 1"),
    ]
    for options, message in bad:
        with pytest.raises(InvalidValueError, match=message):
            learner.check(**options)
    assert learner.checks == []
    learner = labelled(*numbers(), model=GaussianProcess(1.0, 0.1))
    for options, message in (
        ({"m": 5}, "a check of numbers needs tolerance"),
        ({"m": 5, "recall_of": "ham"}, "recall_of cannot be checked: the model predicts numbers"),
        ({"m": 5, "tolerance": -1.0}, "tolerance must be a number of at least 0"),
        ({"m": 5, "share": 1.0}, "share must be a number above 0 and below 1"),
    ):
        with pytest.raises(InvalidValueError, match=message):
            learner.check(**options)


def test_bad_answers_change_nothing() -> None:
    X, y = classes()
    learner = labelled(X, y, model=BayesianLogistic(alpha=1.0, classes=["ham", "spam"]))
    check = learner.check(5)
    record, (a, b) = check.record, check.indices.tolist()[:2]
    outside = int(np.setdiff1d(check.unlabelled, check.indices)[0])
    bad: list[tuple[Any, str]] = [
        ({a: "eggs"}, "which is not in classes"),
        ({a: None}, "every item needs a class"),
        ({a: "ham", outside: "ham"}, "only items of the check can be answered"),
        (["ham"], "labels must be one for each of the 5 pending items"),
        ({"a": "ham"}, "must be indices of items of the check"),
    ]
    for labels, message in bad:
        with pytest.raises(InvalidValueError, match=message):
            check.tell(labels)
    with pytest.raises(InvalidValueError, match=r"give indices, e\.g\. np\.flatnonzero\(mask\)"):
        check.cannot_label(np.zeros(len(X), dtype=bool))
    with pytest.raises(InvalidValueError, match="only items of the check"):
        check.cannot_label(outside)
    with pytest.raises(InvalidValueError, match=f"item {a} belongs to the open check; answer it with check.tell"):
        learner.tell(a, "ham")
    with pytest.raises(InvalidValueError, match=f"item {a} belongs to the open check; answer it with check.cannot"):
        learner.skip(a)
    assert check.record == record
    check.tell({a: "ham"})
    with pytest.raises(InvalidValueError, match="have an answer already"):
        check.tell({a: "ham"})
    with pytest.raises(InvalidValueError, match="have an answer already"):
        check.cannot_label([a, b])
    with pytest.raises(InvalidValueError, match="which is not in classes"):
        learner.correct(a, "eggs")
    found = check.tell(y[check.pending])
    with pytest.raises(InvalidValueError, match="is complete"):
        check.abort()
    with pytest.raises(InvalidValueError, match="is complete"):
        check.tell({b: "ham"})
    with pytest.raises(InvalidValueError, match="has a label already"):
        learner.tell(b, "ham")
    assert check.guarantee == found


# Coverage, and any order of calls.


@pytest.mark.no_cover
def test_exact_coverage_on_a_small_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    """Over all samples of 3 out of 11 items, the guarantee is false with at most its error probability."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(21, 2))
    falsified = 0
    for flipped in (0, 3, 6) if thorough() else (6,):
        y = np.where(X[:, 0] > 0.0, "spam", "ham")
        learner = labelled(X, y, 10)
        rest = np.setdiff1d(np.arange(21), learner.labelled)
        for item in rest[:flipped]:
            y[item] = "ham" if y[item] == "spam" else "spam"
        frozen, predicted = learner._session.frozen(learner._required_view()), learner.model.predict(X) == "spam"
        wrong = int(np.sum(frozen.predictions != y[rest]))
        monkeypatch.setattr(Session, "frozen", lambda *_, frozen=frozen, **__: frozen)
        for quantity, alpha in (("error", 0.4), ("recall", 0.6)):
            false, samples = 0, list(combinations(rest.tolist(), 3))
            for sample in samples:
                monkeypatch.setattr(
                    Check,
                    "draw",
                    lambda pool, *_, items=sample, alpha=alpha, **__: Check(items, len(pool), alpha=alpha),
                )
                one = copy.deepcopy(learner)
                check = one.check(3, recall_of="spam" if quantity == "recall" else None, confidence=1.0 - alpha)
                check.tell(y[check.indices])
                found = check.guarantee
                assert found is not None
                assert found.alpha == pytest.approx(alpha / 2)
                if quantity == "error":
                    false += wrong > found.wrong_at_most
                else:
                    spam = y == "spam"
                    known = np.isin(np.arange(21), [*learner.labelled, *sample])
                    false += float((spam & (known | predicted)).sum() / spam.sum()) < found.value - 1e-12
            assert false <= alpha / 2 * len(samples)
            falsified += false
        monkeypatch.undo()
    # The error probability is used, so a bound that is too small would be noticed.
    assert falsified


@examples(40)
@given(st.data())
def test_any_order_of_calls(data: st.DataObject) -> None:
    """The guarantee is that of the answers that count, and the learner knows each label once."""
    X, y = classes(60)
    learner = labelled(X, y, 10)
    answers: dict[int, str] = {item: str(y[item]) for item in learner.labelled}
    spent = 0
    for _ in range(data.draw(st.integers(1, 12))):
        check = learner.checks[-1] if learner.checks and learner.checks[-1].open else None
        calls = ["ask", "skip", "correct"] + (["tell", "cannot", "abort", "finish"] if check else ["check"])
        call = data.draw(st.sampled_from(calls))
        if call == "check" and learner.left:
            learner.check(data.draw(st.integers(1, learner.left)))
            spent += 1
        elif call in ("tell", "finish") and check is not None:
            items = check.pending[: 1 if call == "tell" else None].tolist()
            answers |= {item: str(y[item]) for item in items}
            check.tell({item: y[item] for item in items})
        elif call == "cannot" and check is not None:
            check.cannot_label(check.pending[:1])
        elif call == "abort" and check is not None:
            check.abort()
        elif call in ("ask", "skip"):
            held = 0 if check is None else len(check.indices)
            if learner.left > held:
                items = learner.ask(3)
                if call == "ask":
                    learner.tell(items, y[items])
                    answers |= {int(item): str(y[item]) for item in items}
                else:
                    learner.skip(items)
        elif call == "correct":
            item = data.draw(st.sampled_from(sorted(answers)))
            answers[item] = data.draw(st.sampled_from(["ham", "spam"]))
            learner.correct(item, answers[item])
        _agree(learner, answers)
    assert [check.record.number for check in learner.checks] == list(range(1, spent + 1))


def _agree(learner: sf.ActiveLearner, answers: dict[int, str]) -> None:
    check = learner.checks[-1] if learner.checks else None
    waiting = set(check.record.labels) if check is not None and check.open else set()
    assert {item: str(label) for item, label in learner.labels.items()} == {
        item: label for item, label in answers.items() if item not in waiting
    }
    assert len(learner.labelled) == len(set(learner.labelled))
    for each in learner.checks:
        assert all(answers[item] == label for item, label in each.record.labels.items() if not each.aborted)
        if each.complete:
            predicted = dict(zip(each.unlabelled.tolist(), each.predictions.tolist(), strict=True))
            wrong = sum(predicted[item] != answers[item] for item in each.record.labels)
            found = each.guarantee
            assert found is not None
            assert (found.wrong, found.unlabelable) == (wrong, len(each.record.unlabelable))
            assert found.alpha == spent_alpha(each.record.number)
        else:
            assert each.guarantee is None
