"""The way to a finished data set: what is fixed before a check, what voids it, and what changes afterwards."""

import json
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier

import suffice as sf
from suffice.checks import CheckRegistry
from suffice.errors import InvalidValueError, SufficeError
from suffice.models import BayesianLogistic, GaussianProcess
from suffice.session.decision import Decision
from suffice.session.error_estimate import shifted_shares
from suffice.session.finish import FinalLabels
from tests.thoroughness import thorough

RNG = np.random.default_rng(7)
X = RNG.normal(size=(500, 3))
# One in eight labels is not what the features say.
Y = np.where((X[:, 0] > 0.0) ^ (RNG.random(500) < 0.12), "right", "left")
GOAL = 0.1


def learner(n: int = 60, seed: int | None = 0, **others: Any) -> sf.ActiveLearner:
    made = sf.ActiveLearner(BayesianLogistic(alpha=1.0), X, seed=seed, **others)
    while len(made.labelled) < n:
        items = made.ask(min(10, n - len(made.labelled)))
        made.tell(items, Y[items])
    return made


def answered(check: Any, most: int | None = None) -> None:
    """Answer a check with the truth, as far as wanted."""
    while check.open and (most is None or len(check.record.labels) < most):
        check.tell({int(item): Y[item] for item in check.pending[:1]})


def finished(made: sf.ActiveLearner, at_most: float = GOAL, **others: Any) -> FinalLabels:
    answered(made.check(at_most=at_most, of="all", **others))
    return made.final_labels()


def wrong(final: FinalLabels) -> int:
    return sum(label is not None and label != true for label, true in zip(final.labels, Y, strict=True))


def test_a_loop_of_decisions_leads_to_the_goal() -> None:
    made, said = learner(10), []
    while not (decision := made.decision(at_most=GOAL, of="all")).stop:
        said.append(decision)
        plan = decision.finish
        if plan is not None and plan.check_now:
            answered(made.check(at_most=GOAL, of="all"))
        else:
            items = made.ask(5)
            made.tell(items, Y[items])
    assert decision.answer == "enough"
    assert decision.target_guaranteed
    assert decision.data_set is not None
    final = made.final_labels()
    assert final.guarantee == decision.data_set
    assert final.guarantee.rows == 500
    assert final.guarantee.allowed == 50
    assert wrong(final) <= 50
    assert final.guarantee.by_people == len(made.labels) < 450
    assert {each.answer for each in said} == {"keep going"}
    assert not any(each.target_out_of_reach or each.above_target for each in said)
    assert all(each.of == "all" and each.plan is None for each in said)
    # A decision can be saved, and its JSON values have the plan.
    for each in (said[-1], decision):
        assert Decision.from_state(json.loads(json.dumps(each.state_dict()))) == each
    assert said[-1].as_dict()["finish"]["rows"] == 500
    assert "finish" not in made.decision(at_most=GOAL).as_dict()


def test_sources_and_probabilities() -> None:
    made = learner()
    before = set(made.labelled)
    final = finished(made)
    check = set(made.checks[-1].record.labels)
    for item, (label, source, probability) in enumerate(
        zip(final.labels, final.source, final.probability, strict=True)
    ):
        assert source == ("person" if item in before else "check" if item in check else "model")
        assert (label == Y[item]) or source == "model"
        assert (0.5 <= probability <= 1.0) if source == "model" else np.isnan(probability)
    assert final.source.count("model") == final.guarantee.predicted
    frame = final.to_frame()
    assert list(frame.columns) == ["label", "source", "probability"]
    assert len(frame) == 500
    assert str(final) == str(final.guarantee)


def test_what_is_learned_after_the_check_does_not_change_the_predictions() -> None:
    made = learner()
    final = finished(made)
    items = made.ask(40)
    # The model learns wrong labels for items that the check left to it.
    made.tell(items, np.where(Y[items] == "left", "right", "left"))
    later = made.final_labels()
    for item in range(500):
        if item in set(items.tolist()):
            assert (later.source[item], final.source[item]) == ("person", "model")
        else:
            assert (later.labels[item], later.source[item]) == (final.labels[item], final.source[item])
    assert later.guarantee.by_people == final.guarantee.by_people + 40
    assert later.guarantee.allowed == final.guarantee.allowed


def test_everything_is_fixed_before_the_first_answer() -> None:
    made = learner()
    check = made.check(at_most=GOAL, of="all")
    terms, order, predictions = check.record.sequential, list(check._order or ()), check.predictions.tolist()
    assert terms is not None
    assert (terms.pool, terms.allowed, terms.corrected, terms.alpha) == (440, 50, True, 0.025)
    assert sorted(order) == check.unlabelled.tolist()
    answered(check, 30)
    assert check.record.sequential == terms
    assert list(check._order or ()) == order
    assert check.predictions.tolist() == predictions
    saved = json.loads(json.dumps(made.state_dict()))
    other = sf.ActiveLearner.from_state(saved, BayesianLogistic(alpha=1.0), X)
    for each in (made, other):
        answered(each.checks[-1])
    assert other.final_labels().labels == made.final_labels().labels
    assert other.final_labels().guarantee == made.final_labels().guarantee


def test_the_goal_is_not_reached_before_a_check_proves_it() -> None:
    made = learner()
    with pytest.raises(SufficeError, match="the goal is not reached: no check has proven it"):
        made.final_labels()
    check = made.check(at_most=GOAL, of="all")
    answered(check, 20)
    assert made.decision(at_most=GOAL, of="all").answer == "keep going"
    with pytest.raises(SufficeError, match="the goal is not reached"):
        made.final_labels(GOAL)
    # A check of the unlabelled items proves nothing about all labels.
    check.abort()
    answered(made.check(at_most=0.4))
    with pytest.raises(SufficeError, match="the goal is not reached"):
        made.final_labels(GOAL)


def test_a_check_of_a_stricter_goal_proves_the_goal() -> None:
    made = learner()
    finished(made, 0.1)
    assert made.decision(at_most=0.2, of="all").answer == "enough"
    assert made.final_labels(0.2).guarantee.at_most == 0.1
    assert made.decision(at_most=0.05, of="all").answer == "keep going"
    with pytest.raises(SufficeError, match="the goal is not reached"):
        made.final_labels(0.05)


def test_a_check_that_is_given_up_spends_its_error_probability_and_its_answers_are_no_sample() -> None:
    made = learner()
    first = made.check(at_most=GOAL, of="all")
    answered(first, 40)
    first.abort()
    given = set(first.record.labels)
    second = made.check(at_most=GOAL, of="all")
    assert second.record.sequential is not None
    assert second.record.sequential.alpha == pytest.approx(0.05 / 6)
    assert second.record.number == 2
    assert not given & set(second._order or ())
    assert second.record.sequential.pool == 500 - 60 - len(given)
    # The allowance is a share of all rows, and does not change.
    assert second.record.sequential.allowed == 50
    answered(second)
    final = made.final_labels()
    assert {final.source[item] for item in given} == {"person"}
    assert final.guarantee.proof is not None
    assert final.guarantee.proof.number == 2


def test_checks_of_another_object_count() -> None:
    registry = CheckRegistry()
    finished(learner(checks=registry))
    again = finished(learner(checks=registry))
    assert again.guarantee.proof is not None
    assert again.guarantee.proof.number == 2
    assert again.guarantee.proof.alpha == pytest.approx(0.05 / 6)
    assert again.guarantee.confidence == 0.95


def test_a_corrected_answer_of_the_check_is_counted_again() -> None:
    made = learner()
    final = finished(made)
    assert final.guarantee.proof is not None
    check = made.checks[-1]
    right = [item for item in check.record.items if check._predicted[item] == Y[item]]
    for item in right:
        made.correct(item, "left" if Y[item] == "right" else "right")
    # So many wrong answers prove nothing.
    assert made.decision(at_most=GOAL, of="all").answer == "keep going"
    with pytest.raises(SufficeError, match="the goal is not reached"):
        made.final_labels()
    for item in right:
        made.correct(item, Y[item])
    assert made.final_labels().guarantee.wrong_at_most == 50


def test_a_corrected_label_of_a_person_is_delivered() -> None:
    made = learner()
    item = made.labelled[0]
    finished(made)
    made.correct(item, "left" if Y[item] == "right" else "right")
    final = made.final_labels()
    assert (final.labels[item] != Y[item], final.source[item]) == (True, "person")


def test_items_that_nobody_can_label_are_left_out() -> None:
    made = learner()
    skipped = made.ask(4)
    made.skip(skipped)
    check = made.check(at_most=GOAL, of="all")
    assert check.record.sequential is not None
    assert (check.record.sequential.pool, check.record.sequential.allowed) == (436, 49)
    assert not set(skipped.tolist()) & set(check._order or ())
    first = int(check.pending[0])
    check.cannot_label(first)
    answered(check)
    assert check.progress is not None
    # It counts as wrong, and is not delivered.
    assert check.progress["wrong"] >= 1
    final = made.final_labels()
    assert final.guarantee.left_out == 5
    assert final.guarantee.rows == 495
    assert final.guarantee.wrong_at_most == 49
    for item in (*skipped.tolist(), first):
        assert (final.labels[item], final.source[item]) == (None, "")
    assert sum(label is not None for label in final.labels) == 495


def test_the_last_items_need_no_check() -> None:
    made = learner(455)
    decision = made.decision(at_most=GOAL, of="all")
    assert decision.answer == "enough"
    final = made.final_labels(GOAL)
    assert final.guarantee.proof is None
    assert (final.guarantee.predicted, final.guarantee.wrong_at_most, final.guarantee.confidence) == (45, 45, 1.0)
    assert wrong(final) <= 45
    with pytest.raises(InvalidValueError, match="allows every prediction to be wrong: there is nothing to check"):
        made.check(at_most=GOAL, of="all")
    assert made._session.checks.registered.started == 0
    for _ in range(5):
        items = made.ask(9)
        made.tell(items, Y[items])
    assert made.decision(at_most=GOAL, of="all").answer == "complete"
    assert set(made.final_labels(0.0).source) == {"person"}


def test_labels_of_people_that_may_be_wrong_reduce_the_allowance() -> None:
    made = learner()
    check = made.check(at_most=GOAL, of="all", annotator_error=0.04)
    assert check.record.sequential is not None
    assert check.record.sequential.allowed == 30
    answered(check)
    final = made.final_labels()
    assert final.guarantee.annotator_error == 0.04
    assert final.guarantee.wrong_at_most == 30 + 4 * final.guarantee.by_people // 100
    assert final.guarantee.value <= GOAL
    # People that are right keep the goal as well; the other way round nothing is proven.
    assert made.decision(at_most=GOAL, of="all").answer == "enough"
    other = learner()
    finished(other)
    assert other.decision(at_most=GOAL, of="all", annotator_error=0.04).answer == "keep going"


def test_numbers_within_a_tolerance() -> None:
    rng = np.random.default_rng(3)
    inputs = rng.uniform(-2.0, 2.0, size=(300, 1))
    values = np.sin(2.0 * inputs[:, 0]) + 0.1 * rng.normal(size=300)
    made = sf.ActiveLearner(GaussianProcess(length_scale=0.7, noise=0.01), inputs, seed=0, acquisition="variance")
    while not (decision := made.decision(at_most=0.1, of="all", tolerance=0.2)).stop:
        if decision.finish is not None and decision.finish.check_now:
            check = made.check(at_most=0.1, of="all", tolerance=0.2)
            while check.open:
                check.tell({int(item): values[item] for item in check.pending[:1]})
        else:
            items = made.ask(5)
            made.tell(items, values[items])
    final = made.final_labels()
    far = sum(abs(label - true) > 0.2 for label, true in zip(final.labels, values, strict=True))
    assert far <= final.guarantee.wrong_at_most <= 30
    assert final.guarantee.tolerance == 0.2
    assert "are off by more than 0.2" in str(final)
    assert final.guarantee.by_people < 250
    assert np.isnan(final.probability).all()
    with pytest.raises(InvalidValueError, match="give tolerance"):
        made.decision(at_most=0.05, of="all")


def test_a_forest_in_a_loop_of_its_own() -> None:
    monitor, forest = sf.StopMonitor(X, seed=0), RandomForestClassifier(30, min_samples_leaf=3, random_state=0)
    rng = np.random.default_rng(0)
    items = rng.choice(500, 20, replace=False).tolist()
    drawn = list(items)
    while True:
        forest.fit(X[items], Y[items])
        monitor.update(forest, items, Y[items], random=drawn)
        decision = monitor.decision(at_most=0.2, of="all")
        assert decision.finish is not None
        if decision.finish.check_now:
            break
        unsure = forest.predict_proba(X).max(axis=1)
        unsure[items] = np.inf
        items += np.argsort(unsure, kind="stable")[:8].tolist()
        extra = int(rng.choice(np.setdiff1d(np.arange(500), items)))
        items.append(extra)
        drawn.append(extra)
    answered(monitor.check(at_most=0.2, of="all"))
    final = monitor.final_labels()
    assert wrong(final) <= 100
    saved = sf.StopMonitor.from_state(json.loads(json.dumps(monitor.state_dict())), X)
    assert saved.final_labels().labels == final.labels
    np.testing.assert_array_equal(saved.final_labels().probability, final.probability)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"at_most": 0.05, "of": "everything"}, 'of must be "rest" or "all", not \'everything\''),
        ({"of": "all"}, "at_most must be a number from 0 to 1, not None"),
        ({"at_most": 1.5, "of": "all"}, "at_most must be a number from 0 to 1"),
        ({"at_most": 0.05, "of": "all", "annotator_error": 0.05}, "leaves nothing of the goal of 5 %"),
        ({"at_most": 0.05, "annotator_error": 0.01}, 'annotator_error is for a goal about all labels; give of="all"'),
        ({"at_most": 0.05, "correction_cost": 0.5}, 'correction_cost is for a goal about all labels; give of="all"'),
        ({"at_most": 0.05, "of": "all", "correction_cost": 0.0}, "correction_cost must be a number above 0"),
        ({"at_most": 0.05, "tolerance": 1.0}, 'tolerance is for a goal about all labels; give of="all"'),
        ({"at_most": 0.05, "of": "all", "tolerance": 1.0}, "tolerance is for numbers"),
    ],
)
def test_a_goal_that_cannot_be_used_is_refused(asked: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidValueError, match=said):
        learner(20).decision(**asked)


def test_a_check_for_a_goal_that_cannot_be_used_spends_nothing() -> None:
    made = learner(20)
    for asked, said in (
        ({"m": 10, "of": "all"}, "of='all' is for a check with at_most"),
        ({"m": 10, "annotator_error": 0.1}, "annotator_error=0.1 is for a check with at_most"),
        ({"at_most": 0.1, "of": "all", "annotator_error": 0.2}, "leaves nothing of the goal"),
        ({"at_most": 0.1, "of": "some"}, "of must be"),
        ({"at_most": 0.1, "of": "all", "unlabelable_as": "excluded"}, "counts items that cannot be labelled as wrong"),
    ):
        with pytest.raises(InvalidValueError, match=said):
            made.check(**asked)
    assert made._session.checks.registered.started == 0


def test_before_the_model_starts_it_is_too_early() -> None:
    made = sf.ActiveLearner(BayesianLogistic(alpha=1.0), X, seed=0)
    decision = made.decision(at_most=GOAL, of="all")
    assert (decision.answer, decision.finish) == ("too early", None)
    assert str(decision)


def test_a_plan_changes_slowly() -> None:
    made, totals = learner(30), []
    while len(made.labelled) < 90:
        plan = made.decision(at_most=0.05, of="all").finish
        assert plan is not None
        totals.append((plan.by_people, plan.more_labels, plan.by_people_at_end))
        items = made.ask()
        made.tell(items, Y[items])
    # Between two estimates, each label reduces the labels that are left by one.
    same = sum(before[1] - after[1] == 1 and before[2] == after[2] for before, after in pairwise(totals))
    assert same >= 0.75 * len(totals)
    other = sf.ActiveLearner.from_state(json.loads(json.dumps(made.state_dict())), BayesianLogistic(alpha=1.0), X)
    assert other.decision(at_most=0.05, of="all") == made.decision(at_most=0.05, of="all")


@pytest.mark.no_cover
def test_guarantees_are_rarely_false() -> None:
    # The model does not matter: its predictions are wrong by chance.
    rng, false, runs = np.random.default_rng(1), 0, 60 if thorough() else 30
    inputs = rng.normal(size=(80, 1))
    for seed in range(runs):
        labels = np.where(rng.random(80) < 0.25, "b", "a")
        made = sf.ActiveLearner(BayesianLogistic(alpha=1.0), inputs, seed=seed)
        while len(made.labelled) < 12:
            items = made.ask(6)
            made.tell(items, labels[items])
        check = made.check(at_most=0.1, of="all", confidence=0.8)
        while check.open:
            check.tell({int(item): labels[item] for item in check.pending[:1]})
        final = made.final_labels()
        false += sum(label != true for label, true in zip(final.labels, labels, strict=True)) > 8
    assert false <= 0.2 * runs


def test_shifted_probabilities_keep_their_order_and_have_the_mean() -> None:
    expected = np.random.default_rng(0).beta(1.0, 6.0, size=400)
    for mean in (0.01, 0.1, 0.5, 0.9):
        found = shifted_shares(expected, mean)
        assert found.mean() == pytest.approx(mean, abs=1e-9)
        assert (np.argsort(found, kind="stable") == np.argsort(expected, kind="stable")).mean() > 0.95
    assert shifted_shares(np.zeros(5), 0.2) == pytest.approx(0.2)
