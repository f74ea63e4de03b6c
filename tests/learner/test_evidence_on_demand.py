"""A run computes what its rule reads, and nothing else; evidence of the default rule waits until it is read."""

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression

import suffice as sf
from suffice.criteria import EntropyMax, ExpectedCost
from suffice.criteria.prediction_statistics import POOL_FIELDS
from suffice.engines.tracked_rows import FollowedVariance
from suffice.errors import MissingInputError
from suffice.learner import class_evidence, simulation
from suffice.learner.class_predictions import ClassPredictions
from suffice.learner.prepare import provided_fields
from suffice.learner.simulation import CheckedRun
from suffice.learner.step_inputs import (
    REST_FIELDS,
    SELECTED_FIELDS,
    STOP_SET_FIELDS,
    LaplacePredictor,
    RecentGain,
    SampledPredictor,
)
from suffice.learner.stop_monitor import StopMonitor
from suffice.models import BayesianLogistic, BayesianRidge, DropoutNetwork, GaussianProcess
from suffice.session.random_losses import RandomLabelLosses
from suffice.session.recorded_steps import DIVERGENCES, STEP_FIELDS
from suffice.trace import DeferredMeasures, Trace
from tests.thoroughness import crossed

FROM_PROBABILITIES = SELECTED_FIELDS | POOL_FIELDS | STOP_SET_FIELDS | REST_FIELDS | {"train_error"}
FROM_VOTES = frozenset({"selected_agreement", "stop_agreement"})
# Where evidence is computed, and the fields of a step for which it is.
PLACES: list[tuple[Any, str, frozenset[str]]] = [
    (FollowedVariance, "follow", REST_FIELDS | {"expected_error", "pool_variance", "pool_gain"}),
    (LaplacePredictor, "errors", REST_FIELDS),
    (LaplacePredictor, "probabilities", FROM_PROBABILITIES - REST_FIELDS),
    (LaplacePredictor, "votes", FROM_VOTES),
    (LaplacePredictor, "gains", frozenset({"pool_gain"})),
    (SampledPredictor, "errors", REST_FIELDS),
    (SampledPredictor, "probabilities", FROM_PROBABILITIES - REST_FIELDS),
    (SampledPredictor, "votes", FROM_VOTES),
    (SampledPredictor, "gains", frozenset({"pool_gain"})),
    (ClassPredictions, "errors", REST_FIELDS),
    (ClassPredictions, "probabilities", FROM_PROBABILITIES),
    (ClassPredictions, "gains", frozenset({"pool_gain"})),
    (StopMonitor, "update", FROM_PROBABILITIES),
    (RecentGain, "since_half", REST_FIELDS),
    (RandomLabelLosses, "ratio", frozenset({"calibration"})),
    (class_evidence, "divergence_from_prior", frozenset({"kl_prior", "train_error"})),
]
# What networks record of their training at every step.
OF_TRAINING = {"loss", "contributions"}
FAMILIES: dict[str, Callable[[], Any]] = {
    "process": lambda: GaussianProcess(1.0, 0.1),
    "learning process": GaussianProcess,
    "ridge": lambda: BayesianRidge(1.0, 10.0),
    "logistic": lambda: BayesianLogistic(alpha=1.0),
    "network": lambda: DropoutNetwork(hidden=(4,), samples=3, epochs=2),
    "classifier": LogisticRegression,
    "forest": lambda: RandomForestClassifier(5),
    "regressor": LinearRegression,
}
RULES: dict[str, Callable[[], sf.Criterion]] = {
    "paper": lambda: sf.ErrorStability(0.05),
    "budget": lambda: sf.Budget(1000),
    "fraction": lambda: sf.PoolFraction(1.0),
    "worth": sf.LabelWorth,
    "stable": sf.StabilizingPredictions,
    "uncertainty": sf.OverallUncertainty,
    "entropy": lambda: EntropyMax(0.0),
    "expected cost": lambda: ExpectedCost(1.0, 1e-9),
}
# Families with the rules whose evidence they provide.
CASES = [
    (family, rule)
    for family in FAMILIES
    for rule in RULES
    if RULES[rule]().needs() <= provided_fields(FAMILIES[family]())
]


def data(model: Any, m: int = 60) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(m, 3)).astype(np.float32)
    values = X[:, 0] + 0.3 * rng.normal(size=m)
    regresses = isinstance(model, GaussianProcess | BayesianRidge | LinearRegression)
    return X, values if regresses else np.where(values > 0.0, "yes", "no")


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> set[int]:
    """Numbers of the places whose code has run."""
    numbers: set[int] = set()

    def noted(number: int, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            numbers.add(number)
            return function(*arguments, **options)

        return call

    for number, (owner, name, _) in enumerate(PLACES):
        monkeypatch.setattr(owner, name, noted(number, getattr(owner, name)))
    return numbers


def only_read(called: set[int], rule: sf.Criterion) -> None:
    """No place has run that serves none of the fields that the rule reads."""
    for number in called:
        owner, name, fields = PLACES[number]
        assert fields & rule.reads(), f"{owner.__name__}.{name} was called for {type(rule).__name__}"


@pytest.mark.no_cover
@pytest.mark.parametrize(("family", "rule"), CASES)
class TestNothingElseIsComputed:
    def test_in_a_recorded_run(self, family: str, rule: str, called: set[int]) -> None:
        model, asked = FAMILIES[family](), RULES[rule]()
        X, y = data(model)
        trace = sf.simulate(model, X, y, initial=np.arange(12), steps=3, acquisition="order", record=asked)
        only_read(called, asked)
        assert STEP_FIELDS & set(trace.measures) <= asked.reads()
        assert set(trace.measures) - STEP_FIELDS <= OF_TRAINING
        assert not isinstance(trace.measures, DeferredMeasures)

    def test_in_a_run_that_the_rule_ends(self, family: str, rule: str, called: set[int]) -> None:
        model, asked = FAMILIES[family](), RULES[rule]()
        X, y = data(model)
        trace = sf.simulate(model, X, y, initial=np.arange(12), steps=3, acquisition="order", rule=asked)
        only_read(called, asked)
        assert STEP_FIELDS & set(trace.measures) <= asked.reads()

    def test_in_a_loop(self, family: str, rule: str, called: set[int]) -> None:
        model, asked = FAMILIES[family](), RULES[rule]()
        X, y = data(model)
        learner = sf.ActiveLearner(model, X, criterion=asked, initial=np.arange(12), acquisition="order")
        for items in (np.arange(12), [12], [13], [14, 15]):
            learner.tell(items, y[items])
        only_read(called, asked)
        assert STEP_FIELDS & set(learner.trace().measures) <= asked.reads()


def test_every_place_serves_some_rule(called: set[int]) -> None:
    # Otherwise the tests above would pass for evidence that is computed elsewhere.
    for make in FAMILIES.values():
        model = make()
        X, y = data(model)
        sf.simulate(model, X, y, initial=12, steps=3, acquisition="random", record="all", stop_set=10)
    missed = {f"{PLACES[number][0].__name__}.{PLACES[number][1]}" for number in set(range(len(PLACES))) - called}
    assert not missed


@pytest.mark.no_cover
@pytest.mark.parametrize(
    ("options", "family"),
    crossed(
        [{}, {"random_share": 0.3}, {"batch": 3}, {"acquisition": "random"}],
        ["process", "learning process", "ridge", "logistic"],
        every=2,
    ),
)
def test_evidence_of_the_default_rule_waits_until_it_is_read(
    family: str, options: dict[str, Any], called: set[int]
) -> None:
    model = FAMILIES[family]()
    X, y = data(model, 120)
    trace = sf.simulate(model, X, y, steps=30, X_test=X[:20], y_test=y[:20], **options)
    assert not called
    assert isinstance(trace.measures, DeferredMeasures)
    assert sf.LabelWorth().needs() <= trace.recorded
    # These read counts and losses only.
    trace.replay(sf.ErrorStability(0.05))
    trace.replay(sf.PoolFraction(0.5))
    assert "unlabelled_error" in trace.measures
    trace._repr_html_()
    assert not called
    asked = sf.simulate(model, X, y, steps=30, record=sf.LabelWorth(), X_test=X[:20], y_test=y[:20], **options)
    assert trace.indices.tolist() == asked.indices.tolist()
    assert set(trace.measures) == set(asked.measures)
    for name, values in asked.measures.items():
        np.testing.assert_allclose(trace.measures[name], values, rtol=1e-7, atol=1e-10, err_msg=name)
    for past, revised in zip(asked.relearned, trace.relearned, strict=True):
        assert set(past.measures) == set(revised.measures)
        for name, values in past.measures.items():
            np.testing.assert_allclose(revised.measures[name], values, rtol=1e-7, atol=1e-10, err_msg=name)
    verdicts = [run.replay(sf.LabelWorth()) for run in (trace, asked)]
    assert [verdict.stop for verdict in verdicts[0]] == [verdict.stop for verdict in verdicts[1]]


def test_the_labels_are_learned_again_only_once(monkeypatch: pytest.MonkeyPatch) -> None:
    times: list[int] = []
    repeat = simulation.RunRecorder.repeat

    def counted(recorder: simulation.RunRecorder, steps: simulation.SavedSteps) -> None:
        times.append(1)
        repeat(recorder, steps)

    monkeypatch.setattr(simulation.RunRecorder, "repeat", counted)
    X, y = data(GaussianProcess())
    trace = sf.simulate(GaussianProcess(), X, y, steps=25)
    assert not times
    trace.steps()
    trace.replay(sf.LabelWorth())
    assert times == [1]


def test_the_original_may_change_before_evidence_is_read() -> None:
    model = GaussianProcess(1.0, 0.1)
    X, y = data(model)
    asked = sf.simulate(model, X, y, steps=9, record=sf.LabelWorth())
    given = X.copy()
    trace = sf.simulate(model, given, y, steps=9)
    given[:] = 0.0
    np.testing.assert_allclose(trace.measures["unlabelled_error"], asked.measures["unlabelled_error"])


def test_copies_and_files_have_the_evidence(tmp_path: Path) -> None:
    X, y = data(BayesianLogistic())
    trace = sf.simulate(BayesianLogistic(), X, y, steps=12)
    twins = [copy.deepcopy(trace), pickle.loads(pickle.dumps(trace))]
    trace.save(tmp_path / "run.npz")
    for twin in [*twins, Trace.load(tmp_path / "run.npz")]:
        assert type(twin.measures) is dict
        assert twin.replay(sf.LabelWorth()) == trace.replay(sf.LabelWorth())


def test_nothing_is_deferred_if_nothing_is_recorded() -> None:
    X, y = data(GaussianProcess())
    trace = sf.simulate(GaussianProcess(1.0, 0.1), X, y, steps=5, record=())
    assert dict(trace.measures) == {}
    with pytest.raises(MissingInputError, match="record=LabelWorth"):
        trace.replay(sf.LabelWorth())


def test_watched_names_may_not_be_those_of_deferred_evidence() -> None:
    X, y = data(GaussianProcess())
    with pytest.raises(sf.errors.InvalidValueError, match="recent_gain"):
        sf.simulate(GaussianProcess(1.0, 0.1), X, y, steps=5, watch=lambda _: {"recent_gain": 1.0})


ENDING: dict[str, sf.Criterion] = {
    "budget": sf.Budget(23),
    "the whole pool": sf.Budget(1000),
    "fraction": sf.PoolFraction(0.3),
    "paper": sf.ErrorStability(0.3),
    "paper or budget": sf.ErrorStability(0.2, calibration=3) | sf.Budget(40),
    "worth": sf.LabelWorth(mistake_cost=0.1),
    "cost": sf.CostLimit(20.0),
}


@pytest.mark.no_cover
@pytest.mark.one_in(3)
@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize(
    ("family", "rule"),
    [
        (family, rule)
        for family in ("process", "learning process", "ridge", "logistic", "classifier")
        for rule in ENDING
        if ENDING[rule].needs() <= provided_fields(FAMILIES[family]())
    ],
)
def test_a_rule_ends_a_run_where_it_ends_a_loop(family: str, rule: str, batch: int) -> None:
    model, ending = FAMILIES[family](), ENDING[rule]
    X, y = data(model, 90)
    blocks = sf.simulate(model, X, y, rule=ending, batch=batch, seed=1)
    loop = CheckedRun(model, X, y, ending, batch=batch, seed=1).trace(None)
    assert blocks.about == loop.about
    assert blocks.initial.tolist() == loop.initial.tolist()
    assert blocks.indices.ravel().tolist() == loop.indices.ravel().tolist()
    assert blocks.n_labelled.tolist() == loop.n_labelled.tolist()
    assert blocks.random_items.tolist() == loop.random_items.tolist()
    if not isinstance(model, LogisticRegression):
        np.testing.assert_allclose(blocks.kl_new_old, loop.kl_new_old, rtol=1e-6, atol=1e-12)
    assert [past.step for past in blocks.relearned] == [past.step for past in loop.relearned]
    assert set(blocks.measures) == set(loop.measures)
    for name in set(blocks.measures) - {"seconds"}:
        np.testing.assert_allclose(blocks.measures[name], loop.measures[name], rtol=1e-6, atol=1e-9, err_msg=name)
    assert [verdict.stop for verdict in blocks.replay(ending)] == [verdict.stop for verdict in loop.replay(ending)]


def test_a_time_limit_is_applied_to_every_label() -> None:
    X, y = data(BayesianRidge())
    trace = sf.simulate(BayesianRidge(1.0, 1.0), X, y, rule=sf.TimeLimit(1e-9))
    assert len(trace) == 1


def test_a_run_that_a_rule_ends_reports_progress() -> None:
    X, y = data(BayesianRidge())
    seen: list[tuple[int, int]] = []
    trace = sf.simulate(
        BayesianRidge(1.0, 1.0), X, y, rule=sf.Budget(30), progress=lambda done, steps: seen.append((done, steps))
    )
    assert seen[-1] == (len(trace), 50) == (20, 50)


def test_an_estimator_without_evidence_has_no_monitor_to_update(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(StopMonitor, "update")
    X, y = data(LogisticRegression())
    trace = sf.simulate(LogisticRegression(), X, y, steps=4, record=sf.Budget(10))
    assert len(trace) == 4


def test_divergences_are_the_only_evidence_of_the_paper() -> None:
    assert sf.ErrorStability(0.05).needs() == DIVERGENCES
    assert sf.Budget(5).reads() == frozenset()
