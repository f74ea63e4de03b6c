"""Sequential checks of learners and monitors: from open to proven, failed or given up, and what is learned when."""

import json
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import suffice as sf
from suffice.checks import Guarantee, SequentialTerms
from suffice.errors import InvalidValueError, SufficeError
from suffice.learner import ErrorGuarantee, ModelCheck
from suffice.models import BayesianLogistic, BayesianRidge

OTHER = {"spam": "ham", "ham": "spam"}


def classes(m: int = 300, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, 2))
    return X, np.where(X[:, 0] + 0.3 * rng.normal(size=m) > 0.0, "spam", "ham")


def labelled(X: Any, y: Any, n: int = 30, model: Any = None, **options: Any) -> sf.ActiveLearner:
    """A learner with some labels."""
    model = BayesianLogistic(alpha=1.0) if model is None else model
    learner = sf.ActiveLearner(model, X, **{"criterion": sf.Budget(len(X)), "seed": 0, **options})
    while len(learner.labelled) < n:
        items = learner.ask(10)
        learner.tell(items, y[items])
    return learner


def monitored(X: Any, y: Any, n: int = 40, rule: Any = None, **options: Any) -> sf.StopMonitor:
    """A monitor with some labels, the first items of the pool."""
    monitor = sf.StopMonitor(X, sf.Budget(len(X)) if rule is None else rule, seed=0, **options)
    monitor.update(LogisticRegression().fit(X[:n], y[:n]), np.arange(n), y[:n], random=True)
    return monitor


def predicted(check: ModelCheck) -> dict[int, Any]:
    return dict(zip(check.unlabelled.tolist(), check.predictions.tolist(), strict=True))


def answered(check: ModelCheck, number: int, *, wrong: bool = False) -> list[int]:
    """Answer the next items, all right or all wrong; return them."""
    items: list[int] = check.pending[:number].tolist()
    guess = predicted(check)
    check.tell({item: OTHER[guess[item]] if wrong else guess[item] for item in items})
    return items


def progress(check: ModelCheck) -> dict[str, Any]:
    found = check.progress
    assert found is not None
    return found


def state(check: ModelCheck) -> tuple[str, int, int, int | None]:
    found = progress(check)
    return found["state"], found["answered"], found["wrong"], found["needed"]


# From open to proven.


def test_a_check_is_proven() -> None:
    X, y = classes()
    learner = labelled(X, y)
    model = learner.model
    check = learner.check(at_most=0.2)
    terms = check.record.sequential
    assert terms is not None
    assert (terms.pool, terms.allowed, terms.alpha, terms.corrected) == (270, 54, 0.025, False)
    needed = terms.proof([])
    assert state(check) == ("open", 0, 0, needed)
    assert len(check.pending) == check.record.size == needed
    assert (check.open, check.guarantee, learner.guarantee) == (True, None, None)
    # One answer at a time, in the order in which the items were drawn.
    flags: list[bool] = []
    while check.open:
        item = int(check.pending[0])
        flags.append(bool(model.predict(X[[item]])[0] != y[item]))
        found = check.tell({item: y[item]})
        assert check.complete == (found is not None)
    assert terms.proof(flags) == len(flags)
    assert state(check) == ("proven", len(flags), sum(flags), 0)
    assert found == check.guarantee
    name = "BayesianLogistic(alpha=1.0) at 30 labels"
    assert found == Guarantee.of_proof(terms, sum(flags), len(flags), confidence=0.95, model=name)
    assert str(found) == (
        "At most 20 % of the predictions for the 270 items that were unlabelled at the start of the check are wrong "
        "(95 % confidence)."
    )
    ended = f"A random check: {len(flags)} of the 270 items were drawn and answered, and {sum(flags) or 'none'} of "
    assert found.evidence.startswith(ended)
    newest = learner.guarantee
    assert newest is not None
    assert newest.about_present_model
    with pytest.raises(InvalidValueError, match="the check is complete"):
        check.tell({0: "spam"})


def test_the_expected_error_plans_the_check() -> None:
    X, y = classes()
    learner = labelled(X, y)
    expected = learner.error_estimate().value
    check = learner.check(at_most=0.2)
    terms = SequentialTerms.of_share(0.2, pool=270, alpha=0.025, expected=expected)
    assert check.record.sequential is not None
    assert abs(check.record.sequential.planned - terms.planned) <= 3


def test_a_wrong_answer_adds_items() -> None:
    X, y = classes()
    learner = labelled(X, y)
    check = learner.check(at_most=0.2)
    first = check.indices.tolist()
    answered(check, 5)
    (item,) = answered(check, 1, wrong=True)
    assert state(check)[:3] == ("open", 6, 1)
    assert check.indices.tolist()[: len(first)] == first
    assert len(check.indices) > len(first)
    assert len(check.pending) == state(check)[3]
    # None of these items is asked for.
    assert not np.isin(learner.ask(len(X) - 30 - len(check.indices)), check.indices).any()
    assert item in check.indices


def test_all_answers_at_once() -> None:
    X, y = classes()
    one, many = labelled(X, y), labelled(X, y)
    single, batches = one.check(at_most=0.15), many.check(at_most=0.15)
    while single.open:
        item = int(single.pending[0])
        single.tell({item: y[item]})
    while batches.open:
        batches.tell(y[batches.pending])
    assert single.record.items == batches.record.items
    assert single.guarantee == batches.guarantee
    assert single.progress == batches.progress


def test_the_labels_are_learned_as_random_labels() -> None:
    X, y = classes()
    learner = labelled(X, y)
    check, before = learner.check(at_most=0.2), learner.random_labels
    while check.open:
        check.tell(y[check.pending])
    checked = check.record.size
    assert len(learner.labels) == 30 + checked
    items = learner.ask(2)
    assert learner.random_labels == before + checked
    assert learner.random_items[-checked:] == check.indices.tolist()
    learner.tell(items, y[items])
    newest = learner.guarantee
    assert newest is not None
    assert not newest.about_present_model
    assert len(learner.labelled) == len(set(learner.labelled)) == 32 + checked


def test_too_many_wrong_answers() -> None:
    X, y = classes(100)
    learner = labelled(X, y)
    check = learner.check(at_most=0.05)
    assert progress(check)["allowed"] == 3
    answered(check, 3, wrong=True)
    assert state(check)[0] == "open"
    answered(check, 1, wrong=True)
    assert state(check) == ("failed", 4, 4, None)
    assert (check.complete, check.guarantee, learner.guarantee) == (True, None, None)
    # Labelling goes on, and the next check has less error probability.
    items = learner.ask(3)
    learner.tell(items, y[items])
    assert len(learner.labelled) == 37
    again = learner.check(at_most=0.3)
    assert again.record.number == 2
    assert again.record.sequential is not None
    assert again.record.sequential.alpha == pytest.approx(0.05 / 6)


def test_a_check_with_corrections_does_not_fail() -> None:
    X, y = classes(100)
    learner = labelled(X, y)
    check = learner.check(at_most=0.05, corrected=True)
    answered(check, 4, wrong=True)
    assert state(check)[0] == "open"
    while check.open:
        answered(check, 100)
    assert check.guarantee is not None
    assert (check.guarantee.corrected, check.guarantee.allowed) == (True, 3)
    assert str(check.guarantee).startswith(
        "Of the 70 items that were unlabelled at the start of the check, at most 4.3 % are wrong after its corrections"
    )


def test_a_target_that_needs_no_check() -> None:
    X, y = classes(100)
    learner = labelled(X, y)
    with pytest.raises(
        InvalidValueError, match=r"at_most=1.0 allows every item to be wrong: there is nothing to check"
    ):
        learner.check(at_most=1.0)
    assert learner.checks == []
    # No wrong item is allowed: all but a few have to be checked.
    check = learner.check(at_most=0.0)
    assert progress(check)["allowed"] == 0
    assert 60 < len(check.pending) <= 70


def test_the_rule_stops_at_the_proof() -> None:
    X, y = classes()
    learner = labelled(X, y, criterion=ErrorGuarantee(at_most=0.2))
    check, before = learner.check(at_most=0.2), learner.verdict
    while check.open:
        answered(check, 100)
    assert [before.stop, learner.verdict.stop] == [False, True]
    assert learner.decision(at_most=0.2).answer == "enough"


# Items outside the order.


def test_an_item_that_the_learner_labelled_counts_when_its_turn_comes() -> None:
    X, y = classes()
    learner = labelled(X, y)
    check = learner.check(at_most=0.2)
    order, size, guess = check._order, check.record.size, predicted(check)
    assert order is not None
    # The next item of the order is labelled outside the check; its prediction is wrong.
    outside = order[size + 1]
    learner.tell(outside, OTHER[guess[outside]])
    assert outside not in check.indices
    assert state(check)[:3] == ("open", 0, 0)
    answered(check, 1, wrong=True)
    # The wrong answer extends the check to the item, which is not asked for again, but counts.
    assert outside in check.indices
    assert outside not in check.pending
    while check.open:
        answered(check, 1)
    found = check.guarantee
    assert found is not None
    assert found.wrong == 2
    assert check.record.labels[outside] == OTHER[guess[outside]]
    # It is learned once.
    assert learner.labelled.count(outside) == 1
    items = learner.ask(2)
    learner.tell(items, y[items])
    assert learner.labelled.count(outside) == 1
    assert len(learner.labelled) == len(set(learner.labelled)) == 30 + found.checked + 2
    assert outside not in learner.random_items


def test_an_item_before_its_turn_is_no_evidence() -> None:
    X, y = classes()
    learner = labelled(X, y)
    check = learner.check(at_most=0.2)
    order, size = check._order, check.record.size
    assert order is not None
    (first,) = answered(check, 1, wrong=True)
    larger, guess = check.record.size, predicted(check)
    # Later items are answered before earlier ones.
    for item in order[size + 3 : larger]:
        check.tell({item: OTHER[guess[item]]})
    check.correct(first, guess[first])
    while check.open:
        answered(check, 1)
    found = check.guarantee
    assert found is not None
    assert (found.checked, found.wrong) == (size, 0)
    assert check.random_prefix == order[:size]
    # A correction after the proof: the items after the gap still do not count.
    learner.correct(first, OTHER[guess[first]])
    assert check.guarantee is None
    assert state(check) == ("failed", size, 1, None)
    # All labels are learned.
    items = learner.ask(1)
    assert set(check.record.items) <= set(learner.labelled)
    assert not np.isin(items, check.record.items).any()


def test_every_item_that_is_left_belongs_to_the_check() -> None:
    X, y = classes(60)
    learner = labelled(X, y)
    check = learner.check(at_most=0.2)
    order, size, guess = check._order, check.record.size, predicted(check)
    assert order is not None
    for item in order[size:]:
        learner.tell(item, guess[item])
    # Labelled items are among those that a wrong answer adds.
    answered(check, 1, wrong=True)
    assert check.record.size > size
    assert len(check.pending) == size - 1
    with pytest.raises(SufficeError, match="every item that is left belongs to the open check"):
        learner.ask()
    while check.open:
        answered(check, 1)
    assert state(check)[0] == "proven"


def test_items_of_the_check_are_answered_with_the_check() -> None:
    X, y = classes()
    learner = labelled(X, y)
    check = learner.check(at_most=0.2)
    with pytest.raises(InvalidValueError, match=r"belongs to the open check; answer it with check.tell"):
        learner.tell(check.pending[0], "spam")
    with pytest.raises(InvalidValueError, match=r"belongs to the open check; answer it with check.cannot_label"):
        learner.skip(check.pending[0])


def test_skipped_items_count_as_wrong_in_their_turn() -> None:
    X, y = classes()
    learner, twin = labelled(X, y), labelled(X, y)
    order = twin.check(at_most=0.2)._order
    assert order is not None
    learner.skip(order[3])
    check = learner.check(at_most=0.2)
    assert check._order == order
    assert order[3] in check.record.items
    assert order[3] not in check.indices
    answered(check, 3)
    # The skipped item has its turn at once.
    assert state(check)[:3] == ("open", 4, 1)
    while check.open:
        answered(check, 100)
    found = check.guarantee
    assert found is not None
    assert (found.wrong, found.unlabelable) == (0, 1)
    assert "1 item could not be labelled and counts as wrong." in found.evidence


def test_items_that_cannot_be_labelled_are_skipped_afterwards() -> None:
    X, y = classes()
    learner = labelled(X, y)
    check = learner.check(at_most=0.2)
    item = int(check.pending[0])
    check.cannot_label(item)
    assert state(check)[:3] == ("open", 1, 1)
    while check.open:
        answered(check, 100)
    assert item in learner.skipped
    # It can be labelled later, and the check is evaluated again.
    learner.tell(item, predicted(check)[item])
    found = check.guarantee
    assert found is not None
    assert (found.wrong, found.unlabelable, found.corrections) == (0, 0, 1)


# Corrections.


def test_a_correction_while_the_check_is_open() -> None:
    X, y = classes()
    learner = labelled(X, y)
    check = learner.check(at_most=0.2)
    size = check.record.size
    (item,) = answered(check, 1, wrong=True)
    guess = predicted(check)[item]
    check.correct(item, guess)
    assert state(check) == ("open", 1, 0, size - 1)
    assert check.record.size == size
    learner.correct(item, OTHER[guess])
    assert state(check)[:3] == ("open", 1, 1)
    check.correct(item, None)
    assert state(check)[:3] == ("open", 1, 1)
    check.correct(item, guess)
    while check.open:
        answered(check, 100)
    assert str(check.guarantee).endswith(
        "are wrong; by the first answers, before 1 answer was corrected, this is not proven (95 % confidence)."
    )


def test_a_correction_proves_the_target() -> None:
    X, y = classes()
    learner = labelled(X, y)
    check = learner.check(at_most=0.2)
    size = check.record.size
    (item,) = answered(check, 1, wrong=True)
    answered(check, size)
    assert check.open
    learner.correct(item, predicted(check)[item])
    assert state(check) == ("proven", size, 0, 0)
    assert learner.guarantee is not None


@pytest.mark.parametrize("learned", [False, True])
def test_a_correction_after_the_proof(learned: bool) -> None:
    X, y = classes()
    learner = labelled(X, y)
    check = learner.check(at_most=0.2)
    items = []
    while check.open:
        items += answered(check, 100)
    if learned:
        more = learner.ask(2)
        learner.tell(more, y[more])
    guess = predicted(check)[items[0]]
    learner.correct(items[0], OTHER[guess])
    assert (check.guarantee, learner.guarantee) == (None, None)
    assert state(check) == ("failed", len(items), 1, None)
    learner.correct(items[0], guess)
    assert check.guarantee is not None
    assert check.guarantee.corrections == 0
    assert learner.labels[items[0]] == guess


def test_a_label_outside_the_order_is_corrected_in_both() -> None:
    X, y = classes()
    learner = labelled(X, y)
    check = learner.check(at_most=0.2)
    order, size, guess = check._order, check.record.size, predicted(check)
    assert order is not None
    outside = order[size]
    learner.tell(outside, guess[outside])
    answered(check, 1, wrong=True)
    assert outside in check.record.labels
    learner.correct(outside, OTHER[guess[outside]])
    assert learner.labels[outside] == check.record.labels[outside] == OTHER[guess[outside]]
    while check.open:
        answered(check, 1)
    assert check.guarantee is not None
    assert check.guarantee.wrong == 2
    learner.correct(outside, guess[outside])
    assert check.guarantee is not None
    assert (check.guarantee.wrong, learner.labels[outside]) == (1, guess[outside])


# Giving up.


def test_a_check_is_given_up() -> None:
    X, y = classes()
    learner = labelled(X, y)
    check, before = learner.check(at_most=0.2), learner.random_labels
    items = answered(check, 5)
    items += answered(check, 1, wrong=True)
    check.abort()
    assert state(check)[:3] == ("given up", 6, 1)
    assert (check.guarantee, learner.guarantee) == (None, None)
    # The answers are learned as random labels.
    assert learner.random_labels == before + 6
    assert set(items) <= set(learner.labelled)
    with pytest.raises(InvalidValueError, match="the check was aborted"):
        check.tell({items[0]: "spam"})
    assert learner.check(at_most=0.2).record.number == 2


# Numbers.


def test_numbers_within_a_tolerance() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 2))
    y = X[:, 0] + 0.3 * rng.normal(size=300)
    learner = labelled(X, y, model=BayesianRidge())
    with pytest.raises(InvalidValueError, match="a check of numbers needs tolerance"):
        learner.check(at_most=0.1)
    with pytest.raises(InvalidValueError, match="at_most is for the share of wrong predictions, not for tolerance"):
        learner.check(at_most=0.1, share=0.1)
    check = learner.check(at_most=0.1, tolerance=1.0)
    guess = predicted(check)
    first = int(check.pending[0])
    check.tell({first: guess[first] + 1.01})
    assert state(check)[:3] == ("open", 1, 1)
    while check.open:
        check.tell({int(item): y[item] for item in check.pending})
    found = check.guarantee
    assert found is not None
    assert (found.quantity, found.tolerance, found.allowed) == ("within", 1.0, 27)
    assert str(found) == (
        "At most 10 % of the predictions for the 270 items that were unlabelled at the start of the check are off by "
        "more than 1 (95 % confidence)."
    )


# Monitors.


def test_a_monitor_checks_sequentially() -> None:
    X, y = classes()
    monitor = monitored(X, y, rule=ErrorGuarantee(at_most=0.2))
    check = monitor.check(at_most=0.2)
    assert state(check)[:3] == ("open", 0, 0)
    (item,) = answered(check, 1, wrong=True)
    while check.open:
        answered(check, 100)
    found = check.guarantee
    assert found is not None
    assert (found.wrong, found.pool, found.allowed) == (1, 260, 52)
    assert monitor.verdict.stop
    # The labels come back with the next update, and are random ones.
    items = [*range(40), *check.indices.tolist()]
    labels = np.array([*y[:40], *[check.record.labels[each] for each in check.indices.tolist()]])
    monitor.update(LogisticRegression().fit(X[items], labels), items, labels, random=True)
    assert check.guarantee == found
    assert monitor.random_labels == len(items)
    # A corrected label in an update is a correction of the check.
    labels[40] = OTHER[labels[40]]
    assert items[40] == item
    monitor.update(LogisticRegression().fit(X[items], labels), items, labels, random=True)
    again = check.guarantee
    assert again is not None
    assert (again.wrong, again.corrections) == (0, 1)


def test_labels_of_a_monitor_outside_the_order() -> None:
    X, y = classes()
    monitor = monitored(X, y)
    check = monitor.check(at_most=0.2)
    order, size, guess = check._order, check.record.size, predicted(check)
    assert order is not None
    outside = order[size]
    items, labels = [*range(40), outside], np.append(y[:40], OTHER[guess[outside]])
    monitor.update(LogisticRegression().fit(X[items], labels), items, labels)
    answered(check, 1, wrong=True)
    assert outside in check.record.labels
    # A label that was counted already is corrected by an update.
    labels[-1] = guess[outside]
    monitor.update(LogisticRegression().fit(X[items], labels), items, labels)
    assert check.record.labels[outside] == guess[outside]
    while check.open:
        answered(check, 1)
    assert check.guarantee is not None
    assert check.guarantee.wrong == 1
    assert len(monitor.labels) == 40 + check.guarantee.checked


def test_a_monitor_fails_and_gives_up() -> None:
    X, y = classes(100)
    monitor = monitored(X, y)
    check = monitor.check(at_most=0.05)
    answered(check, 4, wrong=True)
    assert state(check) == ("failed", 4, 4, None)
    again = monitor.check(at_most=0.3)
    answered(again, 2)
    again.abort()
    assert state(again)[:2] == ("given up", 2)
    assert monitor.guarantee is None


# Saved and restored in the middle.


def restored(learner: sf.ActiveLearner, X: Any) -> tuple[sf.ActiveLearner, ModelCheck]:
    saved = json.loads(json.dumps(learner.state_dict()))
    again = sf.ActiveLearner.from_state(saved, BayesianLogistic(alpha=1.0), X)
    return again, again.checks[-1]


@pytest.mark.parametrize("corrected", [False, True])
def test_a_learner_is_saved_in_the_middle_of_a_check(corrected: bool) -> None:
    X, y = classes(200)
    whole, again = labelled(X, y), labelled(X, y)
    checks = [learner.check(at_most=0.15, corrected=corrected) for learner in (whole, again)]
    order = checks[0]._order
    assert order is not None
    outside, step = order[checks[0].record.size + 2], 0
    while checks[0].open:
        for learner, check in zip((whole, again), checks, strict=True):
            item, guess = int(check.pending[0]), predicted(check)
            if step == 2:
                check.cannot_label(item)
            else:
                check.tell({item: OTHER[guess[item]] if step in (1, 4) else guess[item]})
            if step == 3:
                check.correct(check.record.items[1], guess[check.record.items[1]])
            if step == 0:
                learner.tell(outside, y[outside])
        again, checks[1] = restored(again, X)
        assert checks[1].record == checks[0].record
        assert checks[1].progress == checks[0].progress
        assert checks[1]._order == order
        step += 1
    assert checks[0].guarantee is not None
    assert checks[1].guarantee == checks[0].guarantee
    assert again.guarantee is not None
    assert again.labels == whole.labels
    assert again.ask(5).tolist() == whole.ask(5).tolist()
    assert again.random_items == whole.random_items
    assert again.check(at_most=0.3)._order == whole.check(at_most=0.3)._order


@pytest.mark.parametrize("how", ["failed", "given up", "with a gap"])
def test_checks_that_have_ended_are_restored(how: str) -> None:
    X, y = classes(100)
    learner = labelled(X, y)
    check = learner.check(at_most=0.05 if how == "failed" else 0.2)
    if how == "with a gap":
        size = check.record.size
        (first,) = answered(check, 1, wrong=True)
        last = int(check.pending[-1])
        check.tell({last: predicted(check)[last]})
        answered(check, size - 1)
        check.correct(first, predicted(check)[first])
        assert state(check)[0] == "proven"
        assert check.record.items[-1] == last
        learner.correct(first, OTHER[predicted(check)[first]])
    else:
        answered(check, 4, wrong=True)
        if how == "given up":
            check.abort()
    again, same = restored(learner, X)
    assert same.record == check.record
    assert (same.progress, same.guarantee) == (check.progress, check.guarantee)
    assert again.labels == learner.labels
    assert again.ask(3).tolist() == learner.ask(3).tolist()


def test_a_monitor_is_saved_in_the_middle_of_a_check() -> None:
    X, y = classes(200)
    monitors = [monitored(X, y) for _ in range(2)]
    checks = [monitor.check(at_most=0.2) for monitor in monitors]
    for wrong in (False, True, False):
        for check in checks:
            answered(check, 2, wrong=wrong)
        saved = json.loads(json.dumps(monitors[1].state_dict()))
        monitors[1] = sf.StopMonitor.from_state(saved, X)
        checks[1] = monitors[1].checks[-1]
        assert checks[1].record == checks[0].record
        assert checks[1].progress == checks[0].progress
    while checks[0].open:
        for check in checks:
            answered(check, 1)
    assert checks[0].guarantee is not None
    assert checks[1].guarantee == checks[0].guarantee
    assert monitors[1].labels == monitors[0].labels


# The level.


@pytest.mark.slow
def test_few_guarantees_are_false() -> None:
    # One prediction too many is wrong; learners with other seeds draw other orders.
    X, y = classes(60)
    false, runs = 0, 60
    for seed in range(runs):
        learner = labelled(X, y, n=10, seed=seed)
        check = learner.check(at_most=0.2, confidence=0.8)
        guess, pool = predicted(check), check.unlabelled.tolist()
        allowed = progress(check)["allowed"]
        wrong = set(pool[: allowed + 1])
        while check.open:
            item = int(check.pending[0])
            check.tell({item: OTHER[guess[item]] if item in wrong else guess[item]})
        false += check.guarantee is not None
    # The first check may be false with a probability of 0.1.
    assert false <= 14
