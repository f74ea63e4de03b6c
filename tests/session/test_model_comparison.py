"""The comparison of the current model with others while labelling goes on."""

import inspect
import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

import suffice as sf
from suffice.models import BayesianLogistic
from suffice.session import model_comparison, session_estimates
from suffice.session.decision import Alternative, DecisionNumbers, ErrorNow, with_gain
from suffice.session.model_comparison import (
    ComparedLosses,
    RatioPrior,
    UsualError,
    _candidates,
    _compared_estimator,
    better_on_rest,
    comparison_due,
)

X = np.random.default_rng(0).normal(size=(400, 2))
Y = np.where((X**2).sum(axis=1) < 1.4, "in", "out")
FLAT = RatioPrior(
    deviation=1e6,
    far=1e6,
    share_far=0.0,
    handicap=0.0,
    noise=1.0,
    shift=0.0,
    chosen=0.5,
    errors={},
    clearly=0.95,
)


def losses(
    ours: Any, theirs: Any, random: Any = None, *, share: bool = True, present: str = "", name: str = "forest"
) -> ComparedLosses:
    drawn = np.ones(len(ours), dtype=bool) if random is None else np.asarray(random)
    others = {name: np.asarray(theirs, dtype=float)}
    return ComparedLosses(np.asarray(ours, dtype=float), others, drawn, share, 1.0, present)


USUAL = {"logistic": UsualError(0.3, 0.0), "forest": UsualError(-0.2, -0.1), "kernel": UsualError(-0.4, -0.1)}


def wrong(number: int, n: int = 100) -> Any:
    return np.arange(n) < number


def learner(rule: sf.Criterion | None = None, n: int = 0) -> sf.ActiveLearner:
    made = sf.ActiveLearner(BayesianLogistic(), X, criterion=rule or sf.Budget(390), seed=0)
    while len(made.labelled) < n:
        items = made.ask()
        made.tell(items, Y[items])
    return made


def compared_at(last_label: int, left: Any = lambda n: None, *, stopped: bool = False) -> list[int]:
    """The numbers of labels with a comparison, if somebody asks after each label."""
    due: list[int] = []
    for n in range(1, last_label + 1):
        if comparison_due(n, due[-1] if due else None, stopped=stopped and n >= 30, left=left(n)):
            due.append(n)
    return due


def test_comparisons_are_due_when_the_labels_have_grown_by_a_quarter() -> None:
    assert compared_at(100) == [30, 38, 48, 60, 75, 94]
    # A stop that is far does not change that.
    assert compared_at(100, lambda n: 30) == [30, 38, 48, 60, 75, 94]
    assert compared_at(60, stopped=True) == [30, 33, 37, 41, 46, 51, 57]


@given(st.integers(34, 400))
def test_before_an_expected_stop_there_is_a_comparison_with_nearly_as_many_labels(stop: int) -> None:
    due = compared_at(stop - 1, lambda n: stop - n)
    assert stop / 1.21 - 1 <= due[-1] < stop
    assert len(due) <= len(compared_at(stop - 1)) + 1


def test_comparisons_start_again_with_fewer_labels() -> None:
    assert comparison_due(40, 300, stopped=False)
    assert not comparison_due(29, 300, stopped=False)
    assert comparison_due(12, None, stopped=True)


@pytest.mark.parametrize("share", [True, False])
def test_the_losses_of_other_models_depend_on_the_labels_alone(share: bool) -> None:
    # Other tests compute them once for the same labels, see tests.remembered_losses.
    computed = inspect.unwrap(model_comparison.cross_validated_losses)
    assert computed is not model_comparison.cross_validated_losses
    rows, labels = X[:60], Y[:60] if share else X[:60, 0] ** 2 + X[:60, 1]
    names = _candidates(rows, labels, "", share=share)
    assert len(names) >= 3
    for name in names:
        found = []
        for seed in (0, 1):
            np.random.seed(seed)  # noqa: NPY002 - the state that an estimator without a seed would use
            found.append(computed(_compared_estimator(name, labels, share=share), rows, labels, share=share))
        assert found[0].tolist() == found[1].tolist()
        again = model_comparison.cross_validated_losses(
            _compared_estimator(name, labels, share=share), rows, labels, share=share
        )
        assert again.tolist() == found[0].tolist()


def test_the_ratio_is_that_of_the_weighted_losses() -> None:
    rng = np.random.default_rng(1)
    random = rng.random(80) < 0.4
    ours, theirs = rng.random(80) < 0.4, rng.random(80) < 0.2
    found = losses(ours, theirs, random).ratio("forest", FLAT)
    weights = np.where(random, 1.0, 0.5)
    assert found.mean == pytest.approx(math.log((weights @ theirs + 1.0) / (weights @ ours + 1.0)), rel=1e-9)
    # The square root of the mean of squares is the error of numbers.
    squares = rng.gamma(1.0, size=(2, 80))
    numbers = losses(squares[0], squares[1], share=False).ratio("forest", FLAT)
    assert numbers.mean == pytest.approx(0.5 * math.log(squares[1].mean() / squares[0].mean()), rel=1e-9)


def test_the_deviation_is_that_of_many_samples() -> None:
    rng = np.random.default_rng(2)
    sampled = []
    for _ in range(400):
        ours = rng.gamma(1.0, size=300)
        theirs = ours * rng.uniform(0.3, 1.1, 300)
        sampled.append(losses(ours, theirs, share=False).ratio("forest", FLAT))
    deviation = np.std([found.mean for found in sampled])
    assert np.mean([found.deviation for found in sampled]) == pytest.approx(deviation, rel=0.15)


@pytest.mark.parametrize(("errors", "usual_mean"), [({}, 0.0), (USUAL, -0.2 - 0.1 * math.log(2.0) - 0.3)])
@pytest.mark.parametrize("share_far", [0.0, 0.3, 1.0])
def test_the_posterior_of_a_mixture(errors: dict[str, UsualError], usual_mean: float, share_far: float) -> None:
    compared = losses(wrong(40), wrong(10), present="logistic")
    flat = compared.ratio("forest", FLAT)
    usual = RatioPrior(0.2, 1.0, share_far, 0.1, 2.0, 0.2, 0.5, errors, 0.95)
    found = compared.ratio("forest", usual)
    # Bayes' theorem on a grid.
    grid = np.linspace(-8.0, 8.0, 64_001)
    deviation = math.sqrt(2.0 * flat.deviation**2 + 0.2**2)
    prior = (1.0 - share_far) * norm.pdf(grid, usual_mean, 0.2) + share_far * norm.pdf(grid, usual_mean, 1.0)
    p = prior * norm.pdf(flat.mean - 0.1, grid, deviation)
    p /= p.sum()
    mean = float(p @ grid)
    assert found.mean == pytest.approx(mean, abs=1e-4)
    assert found.deviation == pytest.approx(math.sqrt(float(p @ (grid - mean) ** 2)), abs=1e-4)
    assert found.better == pytest.approx(float(p[grid < 0.0].sum()), abs=1e-3)


@given(st.floats(-50.0, 50.0), st.floats(1e-6, 1e6), st.floats(-1.0, 1.0))
def test_the_posterior_is_between_the_usual_ratio_and_the_estimate(estimate: float, error: float, usual: float) -> None:
    prior = FLAT._replace(deviation=0.2, far=1.0, share_far=0.3)
    found = prior.posterior(usual, estimate, error)
    assert min(usual, estimate) - 1e-9 <= found.mean <= max(usual, estimate) + 1e-9
    assert 0.0 < found.deviation < 1.5 * math.hypot(1.0, abs(estimate - usual))
    assert 0.0 <= found.better <= 1.0
    # More certain estimates count more.
    assert abs(prior.posterior(usual, estimate, error / 2.0).mean - estimate) <= abs(found.mean - estimate) + 1e-9


def test_what_is_usual_depends_on_both_models_and_on_the_number_of_labels() -> None:
    usual = FLAT._replace(errors=USUAL)
    assert usual.mean("forest", "logistic", 50) == pytest.approx(-0.5)
    assert usual.mean("forest", "kernel", 100) == pytest.approx(0.2)
    assert usual.mean("logistic", "forest", 100) == pytest.approx(-usual.mean("forest", "logistic", 100))
    # It is not continued beyond the labels that it was fitted to.
    assert usual.mean("forest", "logistic", 10_000) == usual.mean("forest", "logistic", 150)
    assert usual.mean("forest", "logistic", 20) == usual.mean("forest", "logistic", 30)
    # Nothing is usual for a model of the user.
    assert usual.mean("forest", "", 50) == usual.mean("boosting", "logistic", 50) == 0.0


def test_what_is_usual_counts_for_classes_of_known_models() -> None:
    ours, theirs = wrong(30), np.roll(wrong(24), 20)
    ratios = {
        (present, name): losses(ours, theirs, present=present, name=name).ratio(name).mean
        for present, name in [("logistic", "forest"), ("logistic", "boosting"), ("forest", "logistic"), ("", "forest")]
    }
    # A forest is usually better than a linear model, and than boosting with few labels.
    assert ratios["logistic", "forest"] < ratios["", "forest"] < ratios["forest", "logistic"]
    assert ratios["logistic", "forest"] < ratios["logistic", "boosting"]
    numbers = [losses(ours, theirs, share=False, present=present).ratio("forest") for present in ("ridge", "")]
    assert numbers[0] == numbers[1]


@given(st.integers(0, 60), st.integers(0, 60), st.booleans())
def test_only_a_model_with_fewer_wrong_predictions_is_named(ours: int, theirs: int, share: bool) -> None:
    compared = losses(wrong(ours) + 0.01 * (not share), wrong(theirs) + 0.01 * (not share), share=share)
    found = compared.best()
    assert found is None or theirs < ours
    assert compared.ratio("forest").deviation > 0.0


def test_a_clear_difference_is_named_and_a_small_one_is_not() -> None:
    found = losses(wrong(40), wrong(8)).best()
    assert found is not None
    assert (found.name, found.clear, found.error, found.present, found.labels) == ("forest", True, 0.08, 0.4, 100)
    assert found.ratio is not None
    # What is usual moves the ratio towards 1.
    assert 0.2 < found.ratio < 0.7
    assert losses(wrong(40), wrong(39)).best() is None
    # The labels that were chosen alone are no evidence.
    few = np.arange(100) < 14
    unclear = losses(wrong(40), wrong(8), few).best()
    assert unclear is None or not unclear.clear
    assert losses(wrong(40), wrong(8), np.arange(100) < 9).best() is None


def test_a_model_that_was_named_stays_while_it_is_better() -> None:
    named = losses(wrong(30), wrong(8)).best()
    assert named is not None
    assert named.clear
    # Each model is wrong on items of its own, so that the difference is less certain.
    slightly = losses(wrong(30), np.arange(100) >= 80)
    alone, again = slightly.best(), slightly.best(named)
    assert alone is None or not alone.clear
    assert again is not None
    assert again.clear
    # A possibly better model was not named.
    unnamed = slightly.best(named._replace(clear=False))
    assert unnamed is None or not unnamed.clear
    assert losses(wrong(30), np.arange(100) >= 70).best(named) is None


def test_another_name_needs_a_tenth() -> None:
    both = losses(wrong(40), wrong(10))
    compared = both._replace(others={"forest": wrong(11) * 1.0, "kernel": wrong(10) * 1.0})
    first = compared.best()
    assert first is not None
    assert first.name == "kernel"
    after = compared.best(first._replace(name="forest"))
    assert after is not None
    assert after.name == "forest"
    far = both._replace(others={"forest": wrong(20) * 1.0, "kernel": wrong(5) * 1.0})
    changed = far.best(first._replace(name="forest"))
    assert changed is not None
    assert changed.name == "kernel"


def test_models_that_would_take_too_long_are_not_compared() -> None:
    two, many = np.arange(60) % 2, np.arange(60) % 12
    assert _candidates(np.zeros((60, 4)), two, "logistic", share=True) == ["kernel", "forest", "boosting"]
    assert _candidates(np.zeros((60, 4)), two, "boosting", share=True) == ["logistic", "kernel", "forest"]
    assert _candidates(np.zeros((60, 4)), two, "kernel", share=True, trees=False) == ["logistic"]
    assert _candidates(np.zeros((60, 4)), many, "logistic", share=True) == ["forest"]
    assert _candidates(np.zeros((60, 1500)), two, "logistic", share=True) == ["kernel", "components", "forest"]
    assert _candidates(np.zeros((60, 4)), two * 1.0, "gp", share=False) == ["ridge", "forest", "boosting"]
    # A pipeline may end in a linear model.
    assert "logistic" not in _candidates(np.zeros((60, 4)), two, "", share=True)


def test_other_rows_are_compared_without_a_prior() -> None:
    ours = (np.sign(X[200:, 0]) > 0) != (Y[200:] == "in")
    found = better_on_rest(ours, X[:200], Y[:200], X[200:], Y[200:], share=True, present="logistic")
    assert found is not None
    assert found.clear
    assert found.ratio == pytest.approx(found.error / found.present)


# --- in a session ---


def test_a_better_model_is_named_while_labelling_goes_on() -> None:
    found = learner(n=70).decision()
    other = found.alternative
    assert found.answer == "keep going"
    assert found.since is None
    assert other is not None
    assert other.clear
    assert other.name in ("kernel", "forest", "boosting")
    assert found.error is not None
    assert other.ratio is not None
    assert other.error_now == pytest.approx(other.ratio * found.error.value)
    assert other.avoided == round((found.error.value - other.ratio * found.error.value) * found.unlabelled)
    # A budget has no prices.
    assert other.worth is None
    assert "Another model is better" in str(found)
    assert "Switch to that model" in str(found)
    # A decision that does not compare does not name it.
    assert learner(n=70).decision(compare=False).alternative is None


def test_nothing_is_compared_unless_somebody_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[int] = []

    def count(_: Any, inputs: Any, *args: Any, **named: Any) -> None:
        del args, named
        compared.append(len(inputs))

    monkeypatch.setattr(session_estimates, "better_model", count)
    made = learner(sf.ErrorStability(), n=60)
    assert not compared
    made.decision()
    made.decision()
    assert compared == [60]
    asked = learner()
    for n in range(10, 110):
        while len(asked.labelled) < n:
            items = asked.ask()
            asked.tell(items, Y[items])
        asked.decision()
    assert compared == [60, 30, 38, 48, 60, 75, 94]


def test_a_possibly_better_model_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    maybe = Alternative("kernel", "the same on kernel features", 0.2, 0.3, 40, clear=False)
    monkeypatch.setattr(session_estimates, "better_model", lambda *_, **__: maybe)
    assert learner(n=40).decision().alternative is None
    stopped = learner(sf.Budget(40), n=40).decision()
    assert stopped.stop
    assert stopped.alternative is None


def test_a_rule_that_trees_cannot_serve_is_not_offered_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bool] = []
    monkeypatch.setattr(session_estimates, "better_model", lambda *_, **named: asked.append(named["trees"]))
    learner(sf.ErrorStability(), n=30).decision()
    learner(sf.LabelWorth(), n=30).decision()
    assert asked == [False, True]


def test_the_comparison_is_saved() -> None:
    made = learner(n=70)
    found = made.decision()
    state = json.loads(json.dumps(made.state_dict()))
    again = sf.ActiveLearner.from_state(state, BayesianLogistic(), X)
    assert again.decision() == found
    assert not again.decision_due()
    # States of versions without a gain have six values.
    older: list[Any] = list(found.alternative or ())[:6]
    assert Alternative(*older).ratio is None


# --- the gain ---


def test_the_gain_in_labels_and_money() -> None:
    rule, other = sf.LabelWorth(mistake_cost=3.0), Alternative("forest", "a forest", 0.1, 0.2, 50, ratio=0.5)
    about = DecisionNumbers(100, 1000, True, error=ErrorNow(0.2, 0.1, 0.3), alternative=other)
    found = with_gain(about, rule, 0.002, 0.5, 100)
    assert found is not None
    assert (found.error_now, found.saved, found.avoided) == (0.1, 100, 100)
    assert found.worth == pytest.approx(300.0)
    # The current model does not reach it, and the rule is not about prices.
    never = with_gain(about, sf.Budget(10), 0.0005, 0.5, 100)
    assert never is not None
    assert (never.saved, never.worth) == (None, None)
    numbers = DecisionNumbers(100, 1000, False, error=ErrorNow(2.0, 1.0, 3.0), alternative=other)
    priced = with_gain(numbers, rule, None, 4.0, 100)
    assert priced is not None
    # Errors relative to the variance: 4 / 16 and 1 / 16.
    assert (priced.error_now, priced.avoided) == (1.0, None)
    assert priced.worth == pytest.approx(3.0 * 1000 * (4.0 - 1.0) / 16.0)
    assert with_gain(DecisionNumbers(100, 1000, True), rule, 0.1, 0.5, 100) is None
