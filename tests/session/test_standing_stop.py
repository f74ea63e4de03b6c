"""How long a stop stands, why it is withdrawn, and which rare classes hold it back."""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from suffice.criteria import Verdict
from suffice.errors import InvalidTypeError, InvalidValueError
from suffice.session.standing_stop import (
    Cause,
    Moment,
    RuleStop,
    ScarceClass,
    StandingStop,
    StopState,
    StopWithdrawal,
    classes_that_may_be_missed,
    clearly_above,
    require_known,
    scarce_class,
)


def verdicts(*values: float, rule: str = "LabelWorth") -> list[Verdict]:
    return [Verdict(value <= 1.0, value, 1.0, True, f"worth {value}", rule, 100 + k) for k, value in enumerate(values)]


@pytest.mark.parametrize(
    ("values", "since"),
    [
        ((1.1, 1.3), None),
        ((0.9, 1.2), 100),
        ((0.9, 1.5, 1.5), 100),
        ((0.9, 2.9), 100),
        ((0.9, 1.51, 1.51), None),
        ((0.9, 3.01), None),
        ((0.9, 2.0, 1.4, 2.0), 100),
        ((0.9, 2.0, 2.0, 0.9), 103),
        ((2.0, 0.9, 0.8, 1.4, 1.49), 101),
    ],
)
def test_a_stop_stands_until_a_label_is_clearly_worth_more_than_it_costs(
    values: tuple[float, ...], since: int | None
) -> None:
    stop = RuleStop(verdicts(*values)).stop
    assert (None if stop is None else stop.n_labelled) == since


def test_a_stop_of_another_rule_always_stands() -> None:
    stop = RuleStop(verdicts(0.9, 9.0, 9.0, rule="ErrorStability")).stop
    assert stop is not None
    assert stop.n_labelled == 100


@pytest.mark.parametrize("size", [40, 200, 600, 5000])
@pytest.mark.parametrize("k", range(5))
def test_a_scarce_class_holds_a_stop_back_until_it_is_likely_below_one_percent(size: int, k: int) -> None:
    def found(n: int) -> ScarceClass | None:
        return scarce_class(["no"] * (n - k) + ["yes"] * k, ["yes", "no"], size)

    share = max(0.01, 5 / size)
    n = next(n for n in range(k + 1, 2000) if binom.cdf(k, n, share) <= 0.05)
    before = found(n - 1) if n - 1 - k >= 5 else None
    assert found(n) is None
    if n - 1 - k >= 5:
        assert before == ScarceClass("yes", k, 5, n)
    assert scarce_class(["no"] * 100 + ["yes"] * k, ["yes", "no"], size, ["yes"]) is None
    assert scarce_class(["no"] * 100 + ["yes"] * 5, ["yes", "no"], size) is None


def test_a_class_like_many_others_does_not_hold_a_stop_back() -> None:
    classes = [f"class {k}" for k in range(25)]
    # In 60 labels many classes of 25 have few labels. That is chance.
    labels = np.random.default_rng(0).choice(classes, 60).tolist()
    assert min(labels.count(name) for name in classes) < 2
    assert scarce_class(labels, classes, 3000) is None
    # One of three classes is rare, and one of ten that never occurs.
    assert scarce_class(["a"] * 20 + ["b"] * 20 + ["c"], ["a", "b", "c"], 3000) == ScarceClass("c", 1, 5, 473)
    ten = [name for name in classes[:9] for _ in range(10)]
    assert scarce_class(ten, classes[:10], 3000) == ScarceClass("class 9", 0, 5, 299)
    # 4 items of each of 25 classes are fewer than 5, however many labels there are.
    assert scarce_class([name for name in classes for _ in range(3)], classes, 100) is None


def test_classes_that_may_be_missed() -> None:
    assert classes_that_may_be_missed("spam") == ("spam",)
    assert classes_that_may_be_missed(np.array([3, 4])) == (3, 4)
    assert classes_that_may_be_missed(()) == ()
    with pytest.raises(InvalidTypeError, match="may_miss must be a class or several, each a text or a number"):
        classes_that_may_be_missed([["spam"]])
    with pytest.raises(InvalidTypeError, match="not None"):
        classes_that_may_be_missed(None)
    require_known(["a"], ["a", "b"])
    require_known(["c"], [])
    with pytest.raises(InvalidValueError, match="may_miss must be one of the classes 'a', 'b', not 'c'"):
        require_known(["a", "c"], ["a", "b"])


def moment(
    values: Sequence[float],
    *,
    rule: str = "LabelWorth",
    change: Cause | None = None,
    classes: str = "ab",
    scarce: ScarceClass | None = None,
    n: int | None = None,
) -> Moment:
    said = verdicts(*values, rule=rule)
    above = clearly_above(said[-2] if len(said) > 1 else None, said[-1])
    at = said[-1].n_labelled if n is None else n
    return Moment(said[-1], RuleStop(said).stop, at, above, change, lambda: frozenset(classes), lambda: scarce)


def after(*moments: Moment) -> StopState:
    state = StopState()
    for now in moments:
        state = state.next(now)
        assert StopState.from_state(json.loads(json.dumps(state.state_dict()))) == state
    return state


SCARCE = ScarceClass("c", 1, 5, 473)


@pytest.mark.parametrize(
    ("moments", "withdrawn"),
    [
        # A value above the limit at two steps.
        ([moment([0.9]), moment([0.9, 2.0]), moment([0.9, 2.0, 2.1])], StopWithdrawal(100, 102, "worth", 2.1)),
        # Other hyper-parameters: the history has no stop.
        ([moment([0.9]), moment([1.4, 1.3], change="relearned")], None),
        ([moment([0.9]), moment([2.4, 2.3], change="relearned")], StopWithdrawal(100, 101, "relearned", 2.3)),
        ([moment([0.9]), moment([4.0], change="corrected")], StopWithdrawal(100, 100, "corrected", 4.0)),
        ([moment([0.9, 0.8]), moment([1.2], change="removed")], StopWithdrawal(101, 100, "removed", 1.2)),
        # Another rule whose history has no stop any more.
        (
            [moment([0.9], rule="Budget"), moment([1.1], rule="Budget", change="relearned")],
            StopWithdrawal(100, 100, "relearned"),
        ),
        ([moment([0.9], rule="Budget"), moment([1.1], rule="Budget")], StopWithdrawal(100, 100, "model")),
        # A new class, if it is scarce.
        (
            [moment([0.9]), moment([0.9, 0.9], classes="abc", scarce=SCARCE)],
            StopWithdrawal(100, 101, "class", 0.9, "c"),
        ),
        ([moment([0.9]), moment([0.9, 0.9], classes="abc")], None),
        # A class that was known at the stop does not withdraw it.
        ([moment([0.9], classes="abc"), moment([0.9, 0.9], classes="abc", scarce=SCARCE)], None),
    ],
)
def test_each_withdrawal_says_what_has_changed(moments: list[Moment], withdrawn: StopWithdrawal | None) -> None:
    state = after(*moments)
    assert state.withdrawn == withdrawn
    assert (state.standing is None) == (withdrawn is not None)


def test_a_stop_is_held_back_and_then_stated() -> None:
    held = after(moment([0.9], scarce=SCARCE), moment([0.9, 1.2], scarce=SCARCE))
    assert held == StopState(held_back=SCARCE)
    said = held.stated(moment([0.9, 1.2]).verdict, 101, left=5, pending=0)
    assert (said.stop, said.ready) == (False, True)
    assert said.reason == (
        "the rule says stop, but only 1 label of class 'c' is known; it waits for 5 of them, or for 473 labels in all"
    )
    stated = held.next(moment([0.9, 1.2, 1.3]))
    assert stated.held_back is None
    assert stated.standing is not None
    assert stated.standing.verdict.n_labelled == 102
    # The rule no longer says stop.
    assert held.next(moment([0.9, 2.0, 2.0], scarce=SCARCE)) == StopState()


def test_a_stop_by_a_guarantee_ends_with_the_model_that_it_is_about() -> None:
    def now(value: float, n: int) -> Moment:
        verdict = Verdict(value <= 1.0, value, 1.0, True, "", "ErrorGuarantee", n)
        return Moment(verdict, None, n, False, None, lambda: frozenset("ab"), lambda: None)

    proven = after(now(0.9, 100))
    assert proven.standing == StandingStop(now(0.9, 100).verdict, frozenset("ab"), proven=True)
    assert after(now(0.9, 100), now(2.0, 101)).withdrawn == StopWithdrawal(100, 101, "guarantee")


def test_what_is_stated() -> None:
    go_on, stop = moment([2.0]).verdict, moment([0.9]).verdict
    state = after(moment([0.9]))

    def stated(about: StopState, verdict: Verdict, **changes: Any) -> tuple[bool, int, str]:
        said = about.stated(verdict, 120, **{"left": 9, "pending": 0, **changes})
        return said.stop, said.n_labelled, said.reason

    assert stated(StopState(), go_on) == (False, 100, "worth 2.0")
    # A stop that stands has its own reason, unless the rule says stop now.
    assert stated(state, go_on) == (True, 120, "worth 0.9")
    assert stated(state, stop) == (True, 100, "worth 0.9")
    assert stated(state, go_on, pending=3) == (False, 120, "the rule says stop, but a check is open")
    ended = "every item of the pool is labelled or skipped; the rule itself: worth 2.0"
    assert stated(StopState(), go_on, left=0, pending=3) == (True, 120, ended)
