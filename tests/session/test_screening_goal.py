"""A screening to a goal: all items of a class but a share are found, with a learner and with a model of one's own."""

import json
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import suffice as sf
from suffice.checks import ScreeningGuarantee, allowed_missed
from suffice.errors import InvalidValueError, SufficeError
from suffice.models import BayesianLogistic
from suffice.session.decision import Decision
from suffice.session.error_estimate import shifted_shares
from suffice.session.finish import FinalLabels
from tests.thoroughness import thorough

RNG = np.random.default_rng(3)
N = 400
X = RNG.normal(size=(N, 2))
Y = np.where(X[:, 0] + 0.3 * RNG.normal(size=N) > 0.9, "yes", "no")
RELEVANT = int(np.sum(Y == "yes"))
GOAL = 0.1


def learner(n: int = 120, seed: int | None = 0, y: Any = Y, **others: Any) -> sf.ActiveLearner:
    made = sf.ActiveLearner(BayesianLogistic(alpha=1.0), X, seed=seed, positive="yes", **others)
    while len(made.labelled) < n:
        items = made.ask(min(10, n - len(made.labelled)))
        made.tell(items, y[items])
    return made


def answered(check: Any, most: int | None = None, y: Any = Y) -> None:
    """Answer a check with the truth, as far as wanted."""
    while check.open and (most is None or len(check.record.labels) < most):
        left = None if most is None else most - len(check.record.labels)
        check.tell({int(item): y[item] for item in check.pending[:left]})


def finished(made: sf.ActiveLearner, at_most: float = GOAL) -> FinalLabels:
    answered(made.check(at_most=at_most, of="all"))
    return made.final_labels()


def screened(final: FinalLabels) -> ScreeningGuarantee:
    assert isinstance(final.guarantee, ScreeningGuarantee)
    return final.guarantee


def missed(final: FinalLabels, y: Any = Y) -> int:
    return sum(source == "model" and true == "yes" for source, true in zip(final.source, y, strict=True))


def test_a_loop_of_decisions_leads_to_the_goal() -> None:
    made, said = learner(10), []
    while not (decision := made.decision(at_most=GOAL, of="all")).stop:
        said.append(decision)
        assert decision.finish is not None
        if decision.finish.check_now:
            answered(made.check(at_most=GOAL, of="all"))
        else:
            items = made.ask(5)
            made.tell(items, Y[items])
    assert (decision.answer, decision.target_guaranteed) == ("enough", True)
    final = made.final_labels()
    found = screened(final)
    assert found == decision.data_set
    assert found.class_name == "yes"
    assert (found.rows, found.by_people) == (N, len(made.labels))
    assert found.found == made.relevant_found == RELEVANT - missed(final)
    assert missed(final) <= found.missed_at_most <= GOAL * (found.found + found.missed_at_most)
    assert found.recall_at_least >= 1.0 - GOAL
    assert found.by_people < 0.95 * N
    assert str(decision).startswith("Your goal is reached: people have found at least 9")
    assert "about class 'yes' only" in str(decision)
    # What is said on the way, and what is saved.
    assert {each.answer for each in said} == {"keep going"}
    assert all(each.screening is not None and each.error is None for each in said)
    assert said[0].screening is not None
    assert said[0].screening.recall == 0.9
    for each in (said[0], said[-1], decision):
        assert Decision.from_state(json.loads(json.dumps(each.state_dict()))) == each
        assert json.loads(json.dumps(each.as_dict()))["of"] == "all"
    assert "Keep screening: " in str(said[0])
    assert "Your goal: at most 10 % of the items of class 'yes' are missed." in str(said[0]).replace("\u00a0", " ")
    assert said[-1].as_dict()["finish"]["class_name"] == "yes"


def test_people_have_read_all_items_but_predictions() -> None:
    made = learner()
    before = set(made.labelled)
    final = finished(made)
    check = set(made.checks[-1].record.labels)
    for item, (label, source) in enumerate(zip(final.labels, final.source, strict=True)):
        assert source == ("person" if item in before else "check" if item in check else "model")
        assert label == Y[item] or source == "model"
    assert final.source.count("model") == final.guarantee.predicted


def test_the_terms_of_the_check() -> None:
    made = learner()
    check = made.check(at_most=GOAL, of="all")
    terms, n_found = check.record.sequential, made.relevant_found
    assert terms is not None
    assert n_found is not None
    assert (terms.pool, terms.allowed, terms.corrected) == (N - 120, allowed_missed(GOAL, n_found), True)
    assert check.asked.quantity == "recall"
    assert check.asked.relevant == "yes"
    answered(check, 5)
    progress = check.progress
    assert progress is not None
    items = list(check.record.items)[:5]
    assert (progress["class_name"], progress["wrong"]) == ("yes", int(np.sum(Y[items] == "yes")))
    assert "of class 'yes'" in str(check)
    # It is restored with the same terms, and ends in the same way.
    other = sf.ActiveLearner.from_state(json.loads(json.dumps(made.state_dict())), BayesianLogistic(alpha=1.0), X)
    for each in (made, other):
        answered(each.checks[-1])
    assert other.final_labels().guarantee == made.final_labels().guarantee
    assert other.decision(at_most=GOAL, of="all") == made.decision(at_most=GOAL, of="all")


def test_predictions_do_not_matter() -> None:
    # A relevant item counts, whether it was predicted or not; another item does not, also if predicted as relevant.
    made = learner(40)
    check = made.check(at_most=GOAL, of="all")
    predicted = dict(zip(check.unlabelled.tolist(), check.predictions.tolist(), strict=True))
    answered(check)
    assert check.progress is not None
    counted = list(check.record.items)[: check.progress["answered"]]
    assert {predicted[item] for item in counted} == {"yes", "no"}
    assert check.progress["wrong"] == int(np.sum(Y[counted] == "yes"))


def test_without_a_find_everything_is_read_or_proven() -> None:
    nothing = np.full(N, "no")
    made = learner(30, y=nothing)
    decision = made.decision(at_most=0.05, of="all")
    assert decision.finish is not None
    assert (decision.finish.allowed, decision.finish.found) == (0, 0)
    check = made.check(at_most=0.05, of="all")
    assert check.record.sequential is not None
    assert check.record.sequential.allowed == 0
    answered(check, y=nothing)
    found = screened(made.final_labels())
    assert (found.found, found.missed_at_most, found.value) == (0, 0, 0.0)
    # With an error probability of 2.5 %, all but a few items are read.
    assert found.by_people >= 0.97 * N - 1
    one = np.full(N, "no")
    one[int(np.random.default_rng(5).integers(N))] = "yes"
    made = learner(30, seed=3, y=one)
    final_check = made.check(at_most=0.0, of="all")
    answered(final_check, y=one)
    assert screened(made.final_labels()).missed_at_most == 0


def test_the_last_items_need_no_check() -> None:
    made = learner(N - 3)
    decision = made.decision(at_most=GOAL, of="all")
    assert decision.answer == "enough"
    found = screened(made.final_labels(GOAL))
    assert (found.proof, found.predicted, found.missed_at_most, found.confidence) == (None, 3, 3, 1.0)
    with pytest.raises(InvalidValueError, match="allows every item to be missed: there is nothing to check"):
        made.check(at_most=GOAL, of="all")
    items = made.ask(3)
    made.tell(items, Y[items])
    assert made.decision(at_most=GOAL, of="all").answer == "complete"
    assert str(made.final_labels(0.0)).startswith("People have found all items of class 'yes'")


def test_a_corrected_answer_of_the_check_is_counted_again() -> None:
    made = learner()
    finished(made)
    check = made.checks[-1]
    others = [item for item in check.record.items if Y[item] == "no"]
    for item in others:
        made.correct(item, "yes")
    # So many relevant items prove nothing.
    assert made.decision(at_most=GOAL, of="all").answer == "keep going"
    with pytest.raises(SufficeError, match="the goal is not reached"):
        made.final_labels()
    for item in others:
        made.correct(item, "no")
    assert screened(made.final_labels()).recall_at_least >= 0.9


def test_a_label_that_was_no_find_may_lose_the_goal() -> None:
    made = learner()
    before = screened(finished(made))
    finds = [item for item in made.checks[-1]._frozen.labelled if Y[item] == "yes"]
    made.correct(finds[0], "no")
    after = screened(made.final_labels())
    assert (after.found, after.allowed) == (before.found - 1, before.allowed)
    assert after.recall_at_least < before.recall_at_least
    for item in finds[1:]:
        made.correct(item, "no")
    with pytest.raises(SufficeError, match="the goal is not reached"):
        made.final_labels()
    assert made.decision(at_most=GOAL, of="all").answer == "keep going"
    assert made.checks[-1].guarantee is not None


def test_items_that_nobody_can_label() -> None:
    made = learner()
    skipped = made.ask(2)
    made.skip(skipped)
    check = made.check(at_most=GOAL, of="all")
    assert not set(skipped.tolist()) & set(check._order or ())
    first = int(check.pending[0])
    check.cannot_label(first)
    answered(check)
    assert check.progress is not None
    # It counts against the proof, and as neither found nor missed.
    assert check.progress["wrong"] >= 1
    final = made.final_labels()
    found = screened(final)
    assert (found.left_out, found.rows) == (3, N - 3)
    assert found.proof is not None
    assert found.proof.unlabelable == 1
    assert "1 item could not be labelled and counts as an item of the class" in found.evidence
    assert "3 items could not be labelled, and are not included" in found.evidence
    assert found.found == sum(label == "yes" for label in made.labels.values())
    assert all(final.labels[item] is None for item in (*skipped.tolist(), first))


def test_a_check_of_a_stricter_goal_proves_the_goal() -> None:
    made = learner()
    finished(made, GOAL)
    assert made.decision(at_most=0.2, of="all").answer == "enough"
    assert made.final_labels(0.2).guarantee.at_most == GOAL
    with pytest.raises(SufficeError, match="the goal is not reached"):
        made.final_labels(0.01)
    # The share of wrong predictions among the others is another target.
    assert not made.decision(at_most=GOAL).target_guaranteed


def test_a_check_that_is_given_up_spends_its_error_probability() -> None:
    made = learner()
    first = made.check(at_most=GOAL, of="all")
    answered(first, 30)
    first.abort()
    second = made.check(at_most=GOAL, of="all")
    terms = second.record.sequential
    assert terms is not None
    assert terms.alpha == pytest.approx(0.05 / 6)
    assert not set(first.record.labels) & set(second._order or ())
    # What the first one found counts as found.
    assert terms.allowed == allowed_missed(GOAL, made.relevant_found or 0)
    answered(second)
    assert screened(made.final_labels()).proof is not None


def test_a_logistic_regression_in_a_loop_of_its_own() -> None:
    monitor = sf.StopMonitor(X, positive="yes", seed=0)
    rng = np.random.default_rng(0)
    items = rng.choice(N, 20, replace=False).tolist()
    drawn = list(items)
    while True:
        model = LogisticRegression().fit(X[items], Y[items])
        monitor.update(model, items, Y[items], random=drawn)
        decision = monitor.decision(at_most=GOAL, of="all")
        assert decision.finish is not None
        if decision.finish.check_now:
            break
        likely = model.predict_proba(X)[:, list(model.classes_).index("yes")]
        likely[items] = -1.0
        items += np.argsort(-likely, kind="stable")[:8].tolist()
    answered(monitor.check(at_most=GOAL, of="all"))
    final = monitor.final_labels()
    found = screened(final)
    assert missed(final) <= found.missed_at_most
    assert found.recall_at_least >= 0.9
    saved = sf.StopMonitor.from_state(json.loads(json.dumps(monitor.state_dict())), X)
    assert saved.final_labels().guarantee == found
    # A label that is taken back was read before the check, so that the check does not cover its item.
    fewer = [item for item in items if item != items[-1]]
    monitor.update(model, fewer, Y[fewer])
    assert monitor.guarantee is None
    with pytest.raises(SufficeError, match="the goal is not reached"):
        monitor.final_labels()
    monitor.update(model, items, Y[items])
    assert monitor.final_labels().guarantee == found


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"at_most": 0.05, "annotator_error": 0.01}, "annotator_error does not apply to a screening"),
        ({"at_most": 0.05, "correction_cost": 0.5}, "correction_cost does not apply to a screening"),
        ({"at_most": 1.0}, "at_most must be a number at least 0 and below 1"),
        ({"at_most": 0.05, "tolerance": 1.0}, "tolerance is for numbers"),
        ({}, "at_most must be a number from 0 to 1, not None"),
    ],
)
def test_a_goal_that_cannot_be_used_is_refused(asked: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidValueError, match=said):
        learner(20).decision(of="all", **asked)


def test_a_check_that_cannot_be_used_spends_nothing() -> None:
    made = learner(20)
    for asked, said in (
        ({"at_most": 0.1, "annotator_error": 0.01}, "annotator_error does not apply to a screening"),
        ({"at_most": 0.1, "recall_of": "no"}, "recall_of is not for the goal of a screening"),
        ({"at_most": 0.1, "precision_of": "yes"}, "precision_of is not for the goal of a screening"),
        ({"at_most": 0.1, "unlabelable_as": "excluded"}, "leave unlabelable_as"),
        ({"m": 10}, "of='all' is for a check with at_most"),
    ):
        with pytest.raises(InvalidValueError, match=said):
            made.check(of="all", **asked)
    assert made._session.checks.registered.started == 0
    # Without a class that is looked for, a target of a recall is refused as before.
    plain = sf.ActiveLearner(BayesianLogistic(alpha=1.0), X, seed=0)
    items = plain.ask(20)
    plain.tell(items, Y[items])
    with pytest.raises(InvalidValueError, match="not for recall"):
        plain.check(at_most=0.1, of="all", recall_of="yes")


def test_the_estimate_follows_what_was_read_last() -> None:
    made = learner(60)
    view, estimates = made._required_view(), made._session.estimates
    relevant = estimates.relevant_shares(view)
    assert len(relevant.shares) == made.left
    assert (np.diff(relevant.shares) <= 0.0).all()
    assert relevant.low <= relevant.shares.mean() <= relevant.high
    hits, seen = estimates._recent_hits()
    assert seen == 20
    # The mean of the next items is that of the last ones, and of one item of the model.
    classes, p = view.class_probabilities(np.flatnonzero(made._session.labels.status == 0))
    column = np.sort(p[:, classes.index("yes")])[::-1]
    before = min(1.0, estimates.class_ratio(view, "yes")) * column[:20].mean()
    assert relevant.shares[:20].mean() == pytest.approx((hits + before) / 21, abs=0.02)
    # Skipped items are not among them.
    made.skip(made.ask(5))
    assert len(estimates.relevant_shares(made._required_view()).shares) == made.left


def test_a_shift_of_the_first_probabilities() -> None:
    expected = np.sort(np.random.default_rng(0).beta(1.0, 6.0, size=400))[::-1]
    for mean in (0.01, 0.2, 0.6):
        found = shifted_shares(expected, mean, first=50)
        assert found[:50].mean() == pytest.approx(mean, abs=1e-9)
        assert (np.diff(found) <= 1e-12).all()
        odds = np.log(found / (1.0 - found)) - np.log(expected / (1.0 - expected))
        # Log odds count up to 6.
        assert odds[expected > 0.003] == pytest.approx(odds[0], abs=1e-6)


@pytest.mark.no_cover
@pytest.mark.parametrize("hidden", [False, True])
def test_guarantees_are_rarely_false(hidden: bool) -> None:
    # A quarter of the relevant items may look like the items that are least relevant, so that they are ranked last.
    rng, false, runs = np.random.default_rng(1), 0, 40 if thorough() else 20
    for seed in range(runs):
        inputs = rng.normal(size=(100, 1))
        labels = np.where(inputs[:, 0] > 0.6, "yes", "no")
        if hidden:
            relevant = np.flatnonzero(labels == "yes")
            inputs[rng.choice(relevant, len(relevant) // 4, replace=False)] = -3.0
        made = sf.ActiveLearner(BayesianLogistic(alpha=1.0), inputs, seed=seed, positive="yes")
        while len(made.labelled) < 30:
            items = made.ask(10)
            made.tell(items, labels[items])
        check = made.check(at_most=0.2, of="all", confidence=0.8)
        while check.open:
            check.tell({int(item): labels[item] for item in check.pending})
        final = made.final_labels()
        false += missed(final, labels) > 0.2 * np.sum(labels == "yes")
    assert false <= 0.2 * runs
