"""Decisions: which answer follows from what, in words that do not contradict each other."""

import json
import math
from dataclasses import replace
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn.linear_model import BayesianRidge as SkBayesianRidge
from sklearn.naive_bayes import GaussianNB

import suffice as sf
from suffice.checks import Guarantee, plan_total
from suffice.criteria import Verdict
from suffice.forecast import Forecast
from suffice.learner.learning_loop import family_name
from suffice.learner.prepare import prepare
from suffice.models import BayesianLogistic, BayesianRidge, GaussianProcess
from suffice.models.factory import make_model
from suffice.presentation.decision_words import decision_words
from suffice.session.advice import AdviceByTarget, StandingAdvice
from suffice.session.decision import (
    Alternative,
    Decision,
    DecisionNumbers,
    ErrorNow,
    RareClass,
    decide,
    fall_per_label,
    more_labels_error,
    trivial_error,
)
from suffice.session.model_comparison import better_model
from suffice.session.standing_stop import Cause, ScarceClass, StopWithdrawal
from tests.thoroughness import examples

pytestmark = pytest.mark.usefixtures("all_trees")

STOP = Verdict(
    stop=True, value=0.5, threshold=1.0, ready=True, reason="a label is worth 0.5", rule="LabelWorth", n_labelled=200
)
GO_ON = replace(STOP, stop=False)
ABOUT = DecisionNumbers(200, 1000, True, since=200, error=ErrorNow(0.05, 0.03, 0.08, 40), baseline=0.4, common="ham")
CLEAR = Alternative("kernel", "logistic regression on kernel features", 0.02, 0.05, 40)


@pytest.mark.parametrize(
    ("verdict", "changes", "answer"),
    [
        (None, {}, "too early"),
        (replace(STOP, stop=False, ready=False), {}, "too early"),
        (GO_ON, {"since": None}, "keep going"),
        (STOP, {}, "enough"),
        (STOP, {"unlabelled": 0}, "complete"),
        (STOP, {"at_most": 0.04}, "keep going"),
        (STOP, {"at_most": 0.04, "since": 100}, "keep going"),
        (STOP, {"at_most": 0.02}, "keep going"),
        (STOP, {"at_most": 0.02, "least_error": 0.019}, "keep going"),
        (STOP, {"at_most": 0.02, "least_error": 0.021}, "limit"),
        (STOP, {"at_most": 0.05}, "enough"),
        (STOP, {"error": ErrorNow(0.37, 0.3, 0.5, 40)}, "limit"),
        # An error that is not well known yet does not say that the model is at its limit.
        (STOP, {"error": ErrorNow(0.37, 0.3, 0.5, 12), "n_labelled": 60, "since": 60}, "enough"),
        (STOP, {"error": ErrorNow(0.37, 0.3, 0.5, 20), "n_labelled": 60, "since": 60}, "limit"),
        (STOP, {"error": ErrorNow(0.37, 0.3, 0.5, 12)}, "limit"),
        (STOP, {"error": ErrorNow(0.2, 0.1, 0.3, 12)}, "enough"),
        (STOP, {"alternative": CLEAR}, "limit"),
        (STOP, {"alternative": CLEAR._replace(clear=False)}, "enough"),
        (GO_ON, {"held_back": ScarceClass("spam", 2, 5, 628)}, "keep going"),
        (STOP, {"n_labelled": 0, "unlabelled": 0}, "complete"),
    ],
)
def test_answers(verdict: Any, changes: dict[str, Any], answer: str) -> None:
    found = decide(verdict, replace(ABOUT, **changes))
    assert found.answer == answer
    assert found.stop == (answer in ("enough", "limit", "complete"))


errors = st.one_of(
    st.none(),
    st.tuples(st.floats(0.0, 1.0), st.floats(0.0, 1.0), st.floats(0.0, 1.0), st.integers(0, 60)).map(
        lambda each: ErrorNow(each[0], min(each[1:3]), max(each[1:3]), each[3])
    ),
)
decisions = st.builds(
    Decision,
    answer=st.just("too early"),
    n_labelled=st.integers(0, 5000),
    unlabelled=st.integers(0, 10**6),
    share=st.booleans(),
    since=st.one_of(st.none(), st.integers(1, 5000)),
    error=errors,
    baseline=st.one_of(st.none(), st.floats(0.0, 1.0)),
    common=st.just("ham"),
    at_most=st.one_of(st.none(), st.floats(0.0, 1.0)),
    forecast=st.one_of(st.none(), st.builds(Forecast, labels=st.just(40), low=st.just(20), high=st.just(90))),
    error_then=st.one_of(st.none(), st.floats(0.0, 1.0)),
    alternative=st.one_of(st.none(), st.just(CLEAR), st.just(CLEAR._replace(clear=False))),
    held_back=st.one_of(st.none(), st.just(ScarceClass("spam", 1, 5, 473))),
    withdrawn=st.one_of(
        st.none(), st.builds(StopWithdrawal, st.just(120), st.just(134), st.sampled_from(get_args(Cause)))
    ),
    rare_class=st.one_of(
        st.none(),
        st.builds(
            RareClass,
            st.just("spam"),
            st.integers(0, 30),
            st.floats(0.0, 0.1),
            st.one_of(st.none(), st.floats(0.0, 1.0)),
            st.none(),
            st.none(),
        ),
        st.builds(
            RareClass,
            st.just("spam"),
            st.integers(0, 30),
            st.floats(0.0, 0.1),
            st.floats(0.0, 1.0),
            st.just(0.0),
            st.floats(0.1, 1.0),
        ),
    ),
)


@given(st.sampled_from([None, STOP, GO_ON, replace(GO_ON, ready=False)]), decisions)
@examples(100)
def test_any_decision_is_said_in_sentences(verdict: Any, about: Decision) -> None:
    found = decide(verdict, about)
    values = json.loads(json.dumps(found.as_dict()))
    words = decision_words(values, initial=10)
    assert words.sentences
    for sentence in words.sentences:
        assert sentence[0].isupper()
        assert sentence.endswith((".", "!", "?"))
        assert "None" not in sentence
        assert "nan" not in sentence
    text = " ".join(words.sentences)
    # Green comes with the error, if it is known, and with nothing that asks for more labels.
    if found.answer == "enough" and found.error is not None:
        assert words.tone == ("limit" if found.large_error else "good")
        assert "unlabelled item" in words.sentences[0]
        assert "more labels (" not in text
    assert ("You can stop" in text) == (found.answer == "enough" and not found.large_error)
    assert str(found) == " ".join(decision_words(values).sentences)


def test_what_more_labels_bring() -> None:
    # On a curve 0.1 + a n^(-1/3) with 0.2 now, the error after 8 times the labels is 0.15.
    curve_fall = 0.1 / 3.0 / 100.0
    assert more_labels_error(ErrorNow(0.2, 0.1, 0.3), curve_fall, 100, 700, None) == pytest.approx(0.15)
    # For numbers, the squared error falls by the square of the scale times the fall.
    after = more_labels_error(ErrorNow(0.2, 0.1, 0.3), curve_fall, 100, 700, 0.4)
    assert after == pytest.approx(math.sqrt(0.2**2 - 0.4**2 * 0.05))
    about: dict[str, Any] = {"unlabelled_error": 0.2, "reducible_error": 0.1, "recent_gain": 0.06, "error_scale": 1.0}
    step = sf.Step(n_labelled=100, pool_size=600, calibration=0.5, **about)
    rule = sf.LabelWorth(mistake_cost=2.0)
    verdict = rule.observe(step)
    # The mistake of the labelled item itself is not among those of the other items.
    assert fall_per_label(rule, verdict) == pytest.approx(0.5 * 0.11 / 100)
    assert fall_per_label(rule, replace(verdict, n_labelled=99)) is None
    with_error_cost = sf.LabelWorth(100.0)
    assert fall_per_label(with_error_cost, with_error_cost.observe(step)) is None
    assert fall_per_label(sf.ErrorStability(), GO_ON) is None


def test_trivial_predictions() -> None:
    assert trivial_error(np.array([1.0, 2.0, 6.0]), share=False)[0] == pytest.approx(np.std([1.0, 2.0, 6.0]))
    assert trivial_error(["a"], share=True) == (None, None)


def rings(n: int = 600, seed: int = 0) -> tuple[Any, Any]:
    X = np.random.default_rng(seed).normal(size=(n, 2))
    return X, np.where(np.linalg.norm(X, axis=1) < 1.1, "in", "out")


def labelled(model: Any, X: Any, y: Any, n: int) -> sf.ActiveLearner:
    learner = sf.ActiveLearner(model, X, criterion=sf.Budget(n))
    while not learner.verdict.stop:
        items = learner.ask()
        learner.tell(items, y[items])
    return learner


def test_a_boundary_that_the_model_cannot_represent_is_its_limit() -> None:
    X, y = rings()
    found = labelled(BayesianLogistic(alpha=1.0), X, y, 120).decision()
    assert found.answer == "limit"
    assert found.alternative is not None
    assert found.alternative.error < 0.5 * found.alternative.present
    assert "the current model " in str(found)
    # With the model that it names there is no such limit.
    switched = labelled(make_model("kernel"), X, y, 120).decision()
    assert switched.answer == "enough"
    assert switched.error is not None
    assert found.error is not None
    assert switched.error.value < 0.5 * found.error.value


def test_a_model_that_fits_is_not_blamed() -> None:
    X = np.random.default_rng(1).normal(size=(600, 3))
    y = np.where(X @ np.array([1.0, -2.0, 0.5]) > 0.0, "right", "left")
    assert labelled(BayesianLogistic(alpha=1.0), X, y, 100).decision().answer == "enough"


@pytest.mark.one_in(2)
@pytest.mark.parametrize("model", [GaussianProcess(), BayesianRidge()])
def test_numbers(model: Any) -> None:
    X = np.random.default_rng(1).normal(size=(300, 2))
    y = 3.0 * np.sin(2.0 * X[:, 0] * X[:, 1]) + 0.1 * np.random.default_rng(2).normal(size=300)
    found = labelled(model, X, y, 100).decision()
    assert found.answer == ("limit" if isinstance(model, BayesianRidge) else "enough")
    if found.alternative is not None:
        assert found.alternative.name in ("gp", "forest")
    assert found.error is not None
    # The root of the mean squared error, like the spread of the labels.
    assert found.baseline == pytest.approx(y.std(), rel=0.3)


def test_trees_are_compared_with_other_models_too() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 30))
    random = np.ones(120, dtype=bool)
    y = np.where(X.sum(axis=1) > 0.0, "more", "less")
    found = better_model(ExtraTreesClassifier(20, random_state=0).fit(X, y), X, y, random, present="forest")
    assert found is not None
    assert (found.name, found.clear, found.labels) == ("logistic", True, 120)
    assert found.error < 0.5 * found.present
    numbers = X.sum(axis=1)
    forest = ExtraTreesRegressor(20, random_state=0).fit(X, numbers)
    better = better_model(forest, X, numbers, random, present="forest")
    assert better is not None
    assert better.name in ("gp", "ridge")
    # Any other estimator is not compared, nor are inputs with gaps, which the other models do not take.
    assert better_model(forest, X, numbers, random) is None
    gaps = np.where(X > 2.5, np.nan, X)
    boosted = HistGradientBoostingRegressor(max_iter=5).fit(gaps, numbers)
    assert better_model(boosted, gaps, numbers, random, present="boosting") is None


def test_a_learner_knows_the_family_of_its_model() -> None:
    X, _ = rings(40)
    for model, name in (
        (BayesianLogistic(), "logistic"),
        (make_model("kernel"), "kernel"),
        (make_model("logistic", basis=3), ""),
        (ExtraTreesClassifier(3, random_state=0), "forest"),
        (HistGradientBoostingClassifier(max_iter=2), "boosting"),
        (GaussianNB(), ""),
    ):
        assert family_name(prepare(model, X)) == name
    for model, name in ((BayesianRidge(), "ridge"), (GaussianProcess(), "gp"), (SkBayesianRidge(), "")):
        assert family_name(prepare(model, X)) == name


def test_too_few_labels_are_not_compared() -> None:
    X, y = rings()
    learner = labelled(BayesianLogistic(alpha=1.0), X, y, 29)
    assert learner.better_model() is None
    model = BayesianLogistic(alpha=1.0).fit(X[:40], np.array(["in"] * 40))
    assert better_model(model, X[:40], np.array(["in"] * 40), np.ones(40, dtype=bool)) is None


def test_before_the_first_labels() -> None:
    X, y = rings(40)
    learner = sf.ActiveLearner(BayesianLogistic(), X)
    assert learner.decision().answer == "too early"
    learner.tell(np.arange(5), y[:5])
    assert learner.decision().error is None


def planned(error: float, *, reducible: float = 0.02, n: int = 300, pool: int = 4000) -> Any:
    return plan_total(0.05, error, reducible=min(reducible, error), n_labelled=n, pool=pool, alpha=0.025)


def about_target(error: float, **given: Any) -> DecisionNumbers:
    estimate = ErrorNow(error, 0.5 * error, 2.0 * error, 40)
    fields: dict[str, Any] = {"error": estimate, "at_most": 0.05, "plan": planned(error), "baseline": 0.4, "since": 280}
    return replace(DecisionNumbers(300, 4000, True), **fields | given)


def test_a_check_is_proposed_when_it_is_likely_to_show_the_target() -> None:
    for verdict in (GO_ON, STOP):
        now = decide(verdict, about_target(0.01, plan=planned(0.01, reducible=0.0)))
        words = decision_words(now.as_dict())
        assert (now.answer, words.headline, words.tone) == ("keep going", "Time for a check", "on")
        assert now.plan is not None
        assert "A check of these 4,000 items takes about " in str(now)
        assert "and proves your target of at most 5 % with a probability of 100 %." in str(now).replace("\u00a0", " ")
        assert words.outlook[1][0].replace("\u00a0", " ") == "at most 5 %"


def test_labels_before_the_check_are_announced_with_the_total() -> None:
    later = decide(STOP, about_target(0.06, plan=planned(0.06, reducible=0.045)))
    assert later.answer == "keep going"
    assert later.plan is not None
    assert later.plan.more_labels
    assert "more labels, then a check of" in str(later)
    assert "labels in all" in str(later)
    # The forecast of the rule is not about the target.
    assert later.forecast is None


def test_a_target_is_out_of_reach_if_a_check_shows_it() -> None:
    unlikely = about_target(0.2, plan=planned(0.2, reducible=0.01))
    found = decide(STOP, unlikely)
    assert found.answer == "keep going"
    assert not found.target_out_of_reach
    why = "more labels are expected to lower the error to 19 % at best."
    assert f"No check is likely to prove your target of at most 5 % soon: {why}" in str(found).replace("\u00a0", " ")
    never = decide(STOP, replace(unlikely, least_error=0.12))
    words = decision_words(never.as_dict())
    assert (never.answer, words.tone, words.headline) == (
        "limit",
        "limit",
        "Your target is out of reach for this model",
    )
    shown = "A check has shown that more than 5 % of its predictions are wrong."
    assert shown in str(never).replace("\u00a0", " ")
    # While the rule says go on, it is not at its limit.
    assert decide(GO_ON, replace(unlikely, least_error=0.12)).answer == "keep going"


def test_a_guaranteed_target_is_enough_whatever_the_rule_says() -> None:
    proof = Guarantee.of_error(2, 300, 4300, alpha=0.025, confidence=0.95)
    for verdict in (GO_ON, STOP):
        numbers = about_target(0.02, guarantee=proof)
        found = decide(verdict, numbers)
        words = decision_words(found.as_dict())
        assert (found.answer, words.headline, words.tone) == ("enough", "Your target is guaranteed", "good")
        # What is guaranteed is not the estimate.
        assert (
            words.sentences[1]
            .replace("\u00a0", " ")
            .startswith("Your target is guaranteed: you asked for at most 5 % of wrong predictions; about 2 %")
        )
        # The error is the estimate, which counts the labels of the check.
        assert found.error == numbers.error
        assert found.plan is None


def test_a_check_that_misses_the_target_says_go_on() -> None:
    proof = Guarantee.of_error(30, 300, 4300, alpha=0.025, confidence=0.95)
    found = decide(STOP, about_target(0.1, guarantee=proof))
    assert found.answer == "keep going"
    assert "The check has not shown your target of at most 5 %" in str(found).replace("\u00a0", " ")
    assert "about 10 %" in str(found)
    # Without a target, the rule decides.
    assert decide(STOP, about_target(0.02, guarantee=proof, at_most=None, plan=None)).answer == "enough"


def test_an_error_close_to_the_target_is_not_enough() -> None:
    close = planned(0.048, reducible=0.0)
    assert close.expected_total is None
    for n in (300, 839, 3000):
        doubt = decide(STOP, replace(about_target(0.048, plan=close), n_labelled=n))
        assert doubt.answer == "keep going"
        assert "at best, which is close to the target." in str(doubt)


def test_an_error_above_the_target_is_no_limit() -> None:
    unclear = about_target(0.08, plan=planned(0.08, reducible=0.01))
    assert unclear.above_target
    assert not unclear.target_expected
    for n in (129, 130, 3000):
        assert decide(STOP, replace(unclear, since=30, n_labelled=n)).answer == "keep going"
    assert decide(STOP, replace(unclear, error=ErrorNow(0.08, 0.065, 0.1, 40))).answer == "keep going"


def test_a_target_of_numbers_that_was_out_of_reach_stays_so() -> None:
    error = ErrorNow(0.35, 0.28, 0.42, 40)
    about = replace(ABOUT, share=False, common=None, baseline=1.0, error=error, at_most=0.3, since=180)
    assert decide(STOP, about).answer == "keep going"
    assert decide(STOP, replace(about, out_of_reach=True)).answer == "limit"
    # A stop after few labels says little: there are at least 100 labels to find out.
    assert decide(STOP, replace(about, since=30, n_labelled=129)).answer == "keep going"
    assert decide(STOP, replace(about, since=30, n_labelled=130)).answer == "limit"
    assert decide(STOP, replace(about, error=ErrorNow(0.35, 0.31, 0.42, 40))).answer == "limit"


def advised(*plans: Any, since: int | None = 280, start: StandingAdvice | None = None) -> StandingAdvice:
    """The advice after some plans, five labels apart, that follow an estimate without a check."""
    advice = StandingAdvice(n_labelled=295) if start is None else start
    for plan in plans:
        n = advice.n_labelled + 5
        advice = advice.next(about_target(plan.error, n_labelled=n, since=since), replace(plan, n_labelled=n))
    return advice


def test_a_check_is_advised_after_two_plans_and_stays_advised() -> None:
    check, never = planned(0.01, reducible=0.0), planned(0.2, reducible=0.01)
    once, twice = advised(check), advised(check, check)
    assert (once.check_seen, once.check_advised, twice.check_advised) == (True, False, True)
    assert not advised(check, never, check).check_advised
    assert advised(check, check, check).check_advised
    assert not advised(check, check, never).check_advised
    # Until then, some more labels come first.
    waiting = once.applied(about_target(0.01), pool=4000)
    assert waiting.plan is not None
    assert waiting.plan.more_labels == 5
    later = once.applied(about_target(0.01, n_labelled=303), pool=3997).plan
    assert later is not None
    assert (later.more_labels, later.n_labelled, later.pool) == (2, 303, 3997)
    now = twice.applied(about_target(0.01, n_labelled=305), pool=4000).plan
    assert now is not None
    assert now.check_now


def test_a_check_is_advised_by_one_plan_if_the_last_one_is_old_or_there_was_none() -> None:
    check = planned(0.01, reducible=0.0)
    for start in (StandingAdvice(), StandingAdvice(n_labelled=200)):
        assert start.next(about_target(0.01), check).check_advised
    # A model that has just started is not trusted.
    assert not StandingAdvice().next(about_target(0.01, n_labelled=15), replace(check, n_labelled=15)).check_advised


def test_plans_do_not_put_a_target_of_classes_out_of_reach() -> None:
    check, later, never = planned(0.01, reducible=0.0), planned(0.06, reducible=0.045), planned(0.2, reducible=0.01)
    for plans in ((never,), (never, later), (never, check, check), (check, never)):
        assert not advised(*plans).out_of_reach
    assert decide(STOP, advised(never).applied(about_target(0.06), pool=4000)).answer == "keep going"


def test_advice_is_updated_at_multiples_of_five_labels() -> None:
    assert StandingAdvice().due(7)
    advice = StandingAdvice(n_labelled=33)
    assert [n for n in range(33, 46) if advice.due(n)] == list(range(35, 46))
    assert not StandingAdvice(n_labelled=35).due(39)
    # More labels are further apart.
    assert [StandingAdvice(n_labelled=800).due(n) for n in (810, 819, 820)] == [False, False, True]


def test_each_target_has_its_own_advice() -> None:
    memory, advice = AdviceByTarget(), StandingAdvice(300, planned(0.01), True, True)
    memory.keep(0.05, advice)
    assert memory.of(0.05, 305) == memory.of(0.05, 300) == advice
    # Labels were taken back, or there is another target.
    assert memory.of(0.05, 299) == memory.of(0.1, 305) == StandingAdvice()
    again = AdviceByTarget.from_state(json.loads(json.dumps(memory.state_dict())))
    assert again.of(0.05, 305) == advice


def test_a_target_of_numbers_is_out_of_reach_without_a_plan() -> None:
    def answers(*errors: float) -> list[str]:
        found = StandingAdvice()
        said: list[str] = []
        for value in errors:
            error = ErrorNow(value, 0.8 * value, 1.2 * value, 40)
            about = replace(ABOUT, share=False, common=None, baseline=1.0, error=error, at_most=0.3)
            found = found.next(about, None)
            said.append(decide(STOP, found.applied(about, pool=1000)).answer)
        return said

    assert answers(0.35, 0.5, 0.35, 0.25) == ["keep going", "limit", "limit", "enough"]


def test_a_model_that_may_be_better_does_not_bring_a_target_back_into_reach() -> None:
    maybe = CLEAR._replace(clear=False)
    out = about_target(0.2, plan=planned(0.2, reducible=0.01), least_error=0.1, alternative=maybe)
    found = decide(STOP, out)
    assert (found.answer, found.alternative) == ("limit", None)
    assert "Another model" not in str(found)
    assert decide(STOP, replace(out, alternative=CLEAR)).alternative == CLEAR
    # Without a target it does not matter.
    assert decide(STOP, replace(ABOUT, alternative=maybe)).alternative is None


def test_an_error_near_the_trivial_one_stays_so_until_it_is_clearly_lower() -> None:
    def near(*errors: float) -> bool:
        found = StandingAdvice()
        for error in errors:
            found = found.next(replace(ABOUT, error=ErrorNow(error, error, error, 40), baseline=0.4), None)
        return found.near_trivial

    assert not near(0.35)
    assert near(0.37)
    assert near(0.37, 0.35)
    assert not near(0.37, 0.35, 0.31)
    assert not near(0.37, 0.31, 0.35)
    assert decide(STOP, replace(ABOUT, near_trivial=True)).answer == "limit"


def test_an_error_that_rounds_to_the_target_is_not_said_to_be_that() -> None:
    just_above = about_target(0.0502, plan=planned(0.0502, reducible=0.0), n_labelled=560, least_error=0.0501)
    assert "You asked for at most 5 %, which is slightly less." in str(decide(STOP, just_above)).replace("\u00a0", " ")


@pytest.mark.parametrize(("share", "value", "large"), [(True, 0.19, False), (True, 0.21, True), (False, 0.25, False)])
def test_a_large_error_is_never_green(share: bool, value: float, large: bool) -> None:
    about = replace(ABOUT, share=share, error=ErrorNow(value, 0.5 * value, 1.5 * value, 40))
    found = decide(STOP, about)
    words = decision_words(found.as_dict())
    assert found.answer == "enough"
    assert (words.tone, words.headline) == (
        ("limit", "More labels are not worth their cost") if large else ("good", "You can stop now")
    )
    assert ("too large for you" in str(found)) == large
    # The lead is not repeated, and no sentence refers to a subject of the one before.
    assert str(found).count("not worth their cost") == 1
    assert not any(sentence.startswith("Each is ") for sentence in words.sentences)
