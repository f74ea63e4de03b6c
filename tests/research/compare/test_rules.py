"""The catalogue: every rule is in it, with settings from loose to strict and the literature's among them."""

import inspect
import sys
from typing import Any

import numpy as np
import pytest

import suffice.criteria
from suffice.criteria import Budget, Criterion, ErrorStability
from suffice.criteria.base import geometric_grid
from suffice.errors import InvalidValueError
from suffice.learner.class_backend import ClassBackend
from suffice.learner.gaussian_backend import GaussianBackend
from suffice.learner.step_inputs import COUNTED_FIELDS, VALIDATION_FIELDS
from suffice.trace import DIVERGENCES, Trace
from suffice_research.compare.scoring import first_stops
from suffice_research.recommendation.compared_rules import Entry, catalogue, cost_entry, for_trace
from tests.every_rule import OF_OPTIMISATION, OF_SCREENING
from tests.research.compare.compare_runs import REAL, made_up_run, real_run

ENTRIES = catalogue()
RULES = [entry for entry in ENTRIES if entry.make is not None]
COMPOSED = {"After", "AllOf", "AnyOf", "Patience"}


def named(name: str) -> Entry:
    return next(entry for entry in ENTRIES if entry.name == name)


def test_every_rule_of_suffice_is_compared() -> None:
    known = {
        name
        for name in suffice.criteria.__all__
        if inspect.isclass(given := getattr(suffice.criteria, name)) and issubclass(given, Criterion)
    }
    compared = {type(entry.rule(entry.settings[0])).__name__ for entry in RULES}
    # Recorded runs have neither a positive class nor a least value to find.
    assert known - COMPOSED - OF_SCREENING - OF_OPTIMISATION - {"Criterion"} == compared


def test_names_are_different_and_the_references_are_there() -> None:
    names = [entry.name for entry in ENTRIES]
    assert len(set(names)) == len(names)
    references = {entry.name for entry in ENTRIES if entry.kind == "reference"}
    spent = {"Budget", "PoolFraction", "CostLimit", "TimeLimit"}
    assert references == spent | {"AtOnce", "Never", "RandomStop", "Oracle"}
    assert {entry.name for entry in ENTRIES if entry.make is None} == {"RandomStop", "Oracle"}


@pytest.mark.parametrize("entry", [entry for entry in RULES if entry.swept], ids=lambda entry: entry.name)
def test_settings_are_many_and_the_rule_can_be_made_at_each(entry: Entry) -> None:
    assert 12 <= len(entry.settings) <= 25
    assert entry.default in entry.settings
    assert len({repr(entry.rule(setting)) for setting in entry.settings}) == len(entry.settings)


@pytest.mark.parametrize("entry", [entry for entry in RULES if entry.sense], ids=lambda entry: entry.name)
def test_settings_go_from_loose_to_strict(entry: Entry) -> None:
    steps = np.diff(entry.limits)
    assert (steps > 0).all() if entry.sense == "at least" else (steps < 0).all()


#: What the papers, or practice, take: the name of the entry with the setting.
LITERATURE = {
    "ErrorStability": 0.05,
    "ErrorStability tight": 0.05,
    "MaxConfidence": 0.001,
    "EntropyMax": 0.01,
    "MinExpectedError": 0.01,
    "ThresholdUpdate of MinExpectedError": 0.01,
    "OverallUncertainty": 0.05,
    "SelectedAccuracy": 0.9,
    "DropInConfidence": 3,
    "PerformanceConvergence": 5e-5,
    "UncertaintyConvergence": 5e-5,
    "VarianceModel": 2,
    "VarianceModel extended": 0.5,
    "SelectionAgreement": 1.0,
    "StabilizingPredictions": 0.99,
    "KappaCertificate": 0.99,
    "PredictedFChange": 0.05,
}


@pytest.mark.parametrize(("name", "default"), LITERATURE.items())
def test_defaults_are_those_of_the_literature(name: str, default: Any) -> None:
    assert named(name).default == default


def test_other_defaults_are_those_of_the_rules() -> None:
    for entry in RULES:
        rule = entry.rule(entry.default) if entry.swept else None
        parameters = inspect.signature(type(rule)).parameters if rule is not None else {}
        own = parameters[entry.parameter].default if entry.parameter in parameters else inspect.Parameter.empty
        if own is not inspect.Parameter.empty and entry.name != "VarianceModel extended":
            assert own == entry.default, entry.name


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_tasks_are_those_whose_models_can_tell_what_is_needed(entry: Entry) -> None:
    counted = COUNTED_FIELDS | DIVERGENCES | VALIDATION_FIELDS
    can = {
        "regression": entry.needs() <= GaussianBackend.step_fields | counted,
        "classification": entry.needs() <= ClassBackend.step_fields | counted,
    }
    assert set(entry.tasks) == {task for task, able in can.items() if able}


def test_a_run_is_compared_on_what_it_recorded() -> None:
    for name in REAL:
        kind = "classification" if name.startswith("logistic") else "regression"
        assert [entry.name for entry in for_trace(real_run(name))] == [e.name for e in ENTRIES if kind in e.tasks]
    assert [entry.name for entry in for_trace(made_up_run())] == [entry.name for entry in ENTRIES]
    bare = {entry.name for entry in for_trace(Trace.of_divergences([0.1], [0.1], first=5))}
    assert "HeldOutPlateau" not in bare
    assert "ErrorStability" in bare


def test_validation_labels_are_charged() -> None:
    trace = real_run("gp")
    charged = {entry.name: entry.extra_labels(trace) for entry in for_trace(trace)}
    assert {name for name, extra in charged.items() if extra} == {"HeldOutPlateau"}
    assert charged["HeldOutPlateau"] == 40


def test_rules_of_costs_are_told_both() -> None:
    entry = next(each for each in catalogue([20.0, 200.0]) if each.name == "ErrorStability of costs")
    rule = entry.rule(200.0)
    assert isinstance(rule, ErrorStability)
    assert (rule.threshold, rule.bound, rule.relative) == (1.0 / 200.0, "tight", False)
    assert entry.limits.tolist() == [1.0 / 20.0, 1.0 / 200.0]
    told: list[tuple[float, float]] = []

    def make(error_cost: float, label_cost: float) -> Criterion:
        told.append((error_cost, label_cost))
        return Budget(1)

    cost_entry("mine", make, [30.0]).rule(30.0)
    assert told == [(30.0, 1.0)]


def test_never_means_never() -> None:
    assert repr(named("Never").rule(None)) == repr(Budget(sys.maxsize))


@pytest.mark.parametrize("name", REAL)
def test_at_once_means_at_the_first_step(name: str) -> None:
    entry = named("AtOnce")
    assert (entry.kind, entry.swept, entry.needs()) == ("reference", False, named("Never").needs())
    assert list(first_stops(real_run(name), entry).values()) == [0]


def test_a_grid_holds_its_ends_and_the_others() -> None:
    assert geometric_grid(1.0, 100.0, 3, 7.0) == (1.0, 7.0, 10.0, 100.0)
    assert geometric_grid(0.5, 0.005, 3) == (0.5, 0.05, 0.005)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"settings": (1, 1), "default": 1}, "different values"),
        ({"settings": (), "default": 1}, "different values"),
        ({"settings": (1, 2), "default": 3}, "none of its settings"),
    ],
)
def test_entries_that_make_no_sense(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        Entry(name="mine", kind="threshold", make=Budget, **options)


def test_a_reference_that_is_no_rule_makes_none() -> None:
    with pytest.raises(InvalidValueError, match="Oracle is no rule"):
        named("Oracle").rule(None)
