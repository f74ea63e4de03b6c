"""Checks of the same items by several learners and monitors: numbers, error probabilities, seeds and saved states."""

import json
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

import suffice as sf
from suffice.checks import CheckRegistry, rows_digest
from suffice.errors import InvalidTypeError, InvalidValueError
from suffice.models import BayesianLogistic

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 2))
Y = np.where(X[:, 0] + 0.3 * RNG.normal(size=300) > 0.0, "right", "left")


def learner(labels: int = 20, **options: Any) -> sf.ActiveLearner:
    made = sf.ActiveLearner(BayesianLogistic(alpha=1.0), X, criterion=sf.Budget(300), **options)
    for _ in range(labels // 10):
        items = made.ask(10)
        made.tell(items, Y[items])
    return made


class FixedModel:
    """A model whose predictions are given; it predicts items by their number."""

    def __init__(self, predictions: Any, classes: Any) -> None:
        self.predictions, self.classes_ = predictions, np.unique(classes)
        assert len(self.classes_) == 2

    def predict_proba(self, rows: Any) -> Any:
        return np.where((self.predictions[np.ravel(rows)] == self.classes_[0])[:, None], [0.9, 0.1], [0.1, 0.9])

    def predict(self, rows: Any) -> Any:
        return self.predictions[np.ravel(rows)]


def monitor(pool: Any, predictions: Any, truth: Any, **options: Any) -> sf.StopMonitor:
    made = sf.StopMonitor(pool, sf.Budget(len(pool)), estimate_time=0.0, **options)
    made.update(FixedModel(predictions, truth), np.arange(4), truth[:4])
    return made


# Numbers.


def test_learners_and_monitors_of_the_same_items_share_the_error_probability() -> None:
    registry = CheckRegistry()
    first, second = learner(checks=registry), learner(checks=registry, seed=3)
    assert first.check(20).record.number == 1
    check = second.check(20)
    assert (check.record.number, check.record.alpha_spent) == (2, 0.05 / 6)
    fitted = BayesianLogistic(alpha=1.0).fit(X[:20], Y[:20])
    other = sf.StopMonitor(X[::-1].copy()[::-1], sf.Budget(300), checks=registry)
    other.update(fitted, np.arange(20), Y[:20])
    assert other.check(20).record.number == 3
    assert registry.started(rows_digest(X)) == 3
    # Aborted checks count, and refused ones do not.
    check.abort()
    with pytest.raises(InvalidValueError, match="m, the number of items to check"):
        second.check(1000)
    assert second.check(20).record.number == 4


def test_the_plan_uses_the_next_error_probability() -> None:
    registry = CheckRegistry()
    first, second = learner(checks=registry, seed=0), learner(checks=registry, seed=0)
    before = second.check_size(at_most=0.6)
    first.check(20)
    after = second.check_size(at_most=0.6)
    assert before is not None
    assert after is not None
    assert after > before
    assert learner(earlier_checks=1, seed=0).check_size(at_most=0.6) == after


def test_earlier_checks() -> None:
    made = learner(earlier_checks=2)
    check = made.check(20)
    assert (check.record.number, check.record.alpha_spent) == (3, 0.05 / 12)
    assert monitor(np.arange(300), Y, Y, earlier_checks=1).check(10).record.number == 2
    with pytest.raises(InvalidValueError, match="earlier_checks cannot be combined with checks"):
        learner(checks=CheckRegistry(), earlier_checks=1)
    with pytest.raises(InvalidValueError, match="earlier_checks cannot be combined with checks"):
        sf.StopMonitor(X, checks=CheckRegistry(), earlier_checks=1)
    with pytest.raises(InvalidTypeError, match="CheckRegistry"):
        learner(checks=[])


def test_the_first_check_fixes_the_confidence() -> None:
    registry = CheckRegistry()
    learner(checks=registry).check(20, confidence=0.9)
    other = learner(checks=registry)
    with pytest.raises(InvalidValueError, match=r"confidence must be 0\.9, as for the first check"):
        other.check(20, confidence=0.95)
    assert registry.started(rows_digest(X)) == 1
    assert other.check(20).record.alpha == 0.1


def test_a_check_says_its_number() -> None:
    made = learner(earlier_checks=1, seed=0)
    check = made.check(20)
    assert repr(check) == "ModelCheck(20 items of 280, check 2 of these items, 20 pending)"
    assert str(check) == "Check 2 of these items: 20 of 20 answers are missing."
    check.tell(Y[check.indices])
    assert str(check) == str(check.guarantee)
    assert str(check.guarantee).endswith("(95 % confidence; check 2 of these items).")
    aborted = made.check(10)
    aborted.abort()
    assert str(aborted) == "Check 3 of these items: aborted; it guarantees nothing."
    target = made.check(at_most=0.4)
    assert str(target).startswith("Check 4 of these items: 0 answers, 0 wrong predictions.")


# Running checks.


def test_a_running_check_excludes_others() -> None:
    registry = CheckRegistry()
    made = learner(checks=registry, check_share=0.2)
    with pytest.raises(InvalidValueError, match="a running check of these items uses the whole error probability"):
        learner(checks=registry).check(20)
    with pytest.raises(InvalidValueError, match=r"check_share uses the whole error probability .* 1 check of them was"):
        learner(checks=registry, check_share=0.2)
    with pytest.raises(InvalidValueError, match="2 checks of them were started before"):
        learner(earlier_checks=2, check_share=0.2)
    again = sf.ActiveLearner.from_state(
        json.loads(json.dumps(made.state_dict())), BayesianLogistic(alpha=1.0), X, checks=registry
    )
    assert registry.started(rows_digest(X)) == 1
    kept = [{**each.state_dict(), "seconds": 0.0, "checksum": ""} for each in (made, again)]
    assert kept[0] == kept[1]
    other = CheckRegistry()
    learner(checks=other).check(20)
    with pytest.raises(InvalidValueError, match="the registry has other checks of them"):
        sf.ActiveLearner.from_state(made.state_dict(), BayesianLogistic(alpha=1.0), X, checks=other)


# Saved states.


def test_a_restored_learner_goes_on_counting() -> None:
    registry = CheckRegistry()
    for made in (learner(checks=registry), learner(earlier_checks=1)):
        check = made.check(10)
        check.tell(Y[check.indices])
        made.check(10)
        number = made.checks[-1].record.number
        state = json.loads(json.dumps(made.state_dict()))
        again = sf.ActiveLearner.from_state(state, BayesianLogistic(alpha=1.0), X)
        again.checks[-1].abort()
        assert again.check(10).record.number == number + 1
    # With the registry again, its two checks are not counted twice.
    assert registry.started(rows_digest(X)) == 2
    state = learner(checks=registry).state_dict()
    again = sf.ActiveLearner.from_state(state, BayesianLogistic(alpha=1.0), X, checks=registry)
    assert again.check(10).record.number == 3
    # A learner that counted alone is added to the checks of others.
    alone = learner()
    alone.check(10)
    added = sf.ActiveLearner.from_state(alone.state_dict(), BayesianLogistic(alpha=1.0), X, checks=registry)
    added.checks[-1].abort()
    assert added.check(10).record.number == 5
    with pytest.raises(InvalidValueError, match="earlier_checks is saved with the learner"):
        sf.ActiveLearner.from_state(state, BayesianLogistic(alpha=1.0), X, earlier_checks=2)


def test_a_restored_monitor_goes_on_counting() -> None:
    registry, pool = CheckRegistry(), np.arange(300)
    made = monitor(pool, Y, Y, checks=registry)
    first = made.check(10)
    first.tell(Y[first.indices])
    state = json.loads(json.dumps(made.state_dict()))
    assert sf.StopMonitor.from_state(state, pool).check(10).record.number == 2
    assert registry.started(rows_digest(pool)) == 1
    again = sf.StopMonitor.from_state(state, pool, checks=registry)
    assert again.check(10).record.number == 2
    assert monitor(pool, Y, Y, checks=registry).check(10).record.number == 3


def test_a_state_without_a_registry_is_read() -> None:
    """Earlier versions counted the checks of one object."""
    made = learner(seed=0)
    check = made.check(10)
    check.tell(Y[check.indices])
    saved = made._session.checks.state_dict()
    del saved["registered"]
    other = learner(labels=0, seed=0)
    other._session.checks.load_state({**saved, "alpha": 0.05}, other)
    assert (other._session.checks.registered.started, other._session.checks.alpha()) == (1, 0.05)


# Seeds.


@pytest.mark.draws_anew
def test_without_a_seed_picks_are_those_of_seed_0_and_checks_differ() -> None:
    made = [learner(), learner(), learner(seed=0)]
    assert made[0].labelled == made[1].labelled == made[2].labelled
    drawn = [set(each.check(30).indices.tolist()) for each in made]
    assert drawn[0] != drawn[1]
    assert drawn[0] != drawn[2]
    assert all(each.ask(5).tolist() for each in made)
    assert drawn[2] == set(learner(seed=0).check(30).indices.tolist())
    running = [learner(check_share=0.2)._session.running for _ in range(2)]
    assert all(each is not None for each in running)
    assert running[0] is not None
    assert running[1] is not None
    assert running[0].order.tolist() != running[1].order.tolist()
    watched = [monitor(np.arange(300), Y, Y) for _ in range(2)]
    assert set(watched[0].check(30).indices.tolist()) != set(watched[1].check(30).indices.tolist())


def test_a_learner_without_a_seed_can_be_saved() -> None:
    made = learner()
    check = made.check(10)
    check.tell(Y[check.indices])
    again = sf.ActiveLearner.from_state(made.state_dict(), BayesianLogistic(alpha=1.0), X)
    assert again.check(20).indices.tolist() == made.check(20).indices.tolist()
    assert again.ask(3).tolist() == made.ask(3).tolist()
    with pytest.raises(InvalidValueError, match="random generator cannot be saved"):
        learner(seed=np.random.default_rng(0)).state_dict()


@pytest.mark.draws_anew
def test_simulated_runs_take_no_seed() -> None:
    runs = [sf.simulate(BayesianLogistic(alpha=1.0), X, Y, steps=10, check=40, seed=seed) for seed in (None, None, 0)]
    assert runs[0].indices.tolist() == runs[1].indices.tolist() == runs[2].indices.tolist()
    assert len({run.checks[0].items for run in runs}) == 3
    audits = [
        sf.audit(BayesianLogistic(alpha=1.0), X, Y, check=40, rule=sf.Budget(50), seed=seed) for seed in (0, 0, None)
    ]
    assert audits[0].checks[0].items == audits[1].checks[0].items != audits[2].checks[0].items


# Users who keep the best of several models.


@pytest.mark.slow
def test_the_best_of_ten_models_with_separate_monitors() -> None:
    """False guarantees with monitors that count alone, and with one registry (nominal: 5 %)."""
    runs, pool, wrong, checked = 80, np.arange(250), 25, 50
    rng, false = np.random.default_rng(0), {"alone": 0, "registry": 0}
    for _ in range(runs):
        truth = np.where(rng.random(250) < 0.5, "a", "b")
        truth[:2] = "a", "b"
        other = np.where(truth == "a", "b", "a")
        models = []
        for _ in range(10):
            faults = rng.permutation(np.arange(4, 250))[:wrong]
            models.append(np.where(np.isin(pool, faults), other, truth))
        for kind, registry in (("alone", None), ("registry", CheckRegistry())):
            bounds = []
            for predictions in models:
                check = monitor(pool, predictions, truth, checks=registry, seed=int(rng.integers(2**31))).check(checked)
                found = check.tell(truth[check.indices])
                assert found is not None
                bounds.append(found.wrong_at_most)
            false[kind] += min(bounds) < wrong
    assert false["alone"] > 0.08 * runs
    assert false["registry"] <= binom.ppf(0.999, runs, 0.05)
