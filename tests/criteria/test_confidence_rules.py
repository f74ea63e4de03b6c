import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice import Criterion, Step, Verdict, criterion_from_dict
from suffice.criteria.agreement import ThresholdUpdate
from suffice.criteria.base import Comparison, apart
from suffice.criteria.confidence_and_accuracy import (
    EntropyMax,
    MarginExhaustion,
    MaxConfidence,
    MaxVariance,
    MinExpectedError,
    OverallUncertainty,
    selected_entropies,
)
from suffice.errors import InvalidValueError, MissingInputError
from suffice.testing import check_criterion
from tests.every_rule import made_up_steps

LOG2 = math.log(2.0)

RULES: dict[str, Callable[[], Criterion]] = {
    "MaxConfidence": lambda: MaxConfidence(0.3),
    "EntropyMax": lambda: EntropyMax(0.5),
    "MinExpectedError": lambda: MinExpectedError(0.1),
    "OverallUncertainty": lambda: OverallUncertainty(0.3),
    "MarginExhaustion": lambda: MarginExhaustion(0.1),
    "MaxVariance": lambda: MaxVariance(0.1),
    "together": lambda: (EntropyMax() & OverallUncertainty().patience(2)) | MaxVariance(0.05).after(20),
}

# A field of a step, and a rule that compares it with a limit: the tests of one test them all.
ONE_NUMBER: list[tuple[str, Callable[[float], Criterion], str]] = [
    ("pool_max_entropy", EntropyMax, "<="),
    ("pool_risk", MinExpectedError, "<="),
    ("pool_uncertainty", OverallUncertainty, "<"),
    ("pool_margin", MarginExhaustion, ">="),
]


def told(rule: Criterion, **fields: Any) -> Verdict:
    return rule.observe(Step(n_labelled=20, **fields))


def selected(*rows: list[float]) -> Step:
    return Step(n_labelled=20, selected_probabilities=np.array(rows).reshape(len(rows), -1))


@pytest.mark.parametrize("name", RULES)
def test_conformance(name: str) -> None:
    check_criterion(RULES[name], made_up_steps(35, seed=5))


@pytest.mark.parametrize(("name", "make", "relation"), ONE_NUMBER, ids=[each[0] for each in ONE_NUMBER])
def test_below_on_and_above_the_limit(name: str, make: Callable[[float], Criterion], relation: str) -> None:
    verdicts = [told(make(0.25), **{name: value}) for value in (0.125, 0.25, 0.5)]
    expected = {"<=": [True, True, False], "<": [True, False, False], ">=": [False, True, True]}
    assert [v.stop for v in verdicts] == expected[relation]
    assert [v.value for v in verdicts] == [0.125, 0.25, 0.5]
    assert {v.threshold for v in verdicts} == {0.25}
    assert all(v.ready for v in verdicts)
    words = {
        "<=": ["is at most", "is at most", "is above"],
        "<": ["is below", "is not below", "is not below"],
        ">=": ["is below", "is at least", "is at least"],
    }
    for verdict, said in zip(verdicts, words[relation], strict=True):
        assert f"{said} the {'band' if relation == '>=' else 'threshold'} 0.25" in verdict.reason


@given(
    st.sampled_from(ONE_NUMBER),
    st.lists(st.floats(0.0, 1.0), min_size=1, max_size=20),
    st.floats(0.01, 0.99),
)
def test_a_model_that_only_grows_surer_is_not_told_to_go_on_again(
    case: tuple[str, Callable[[float], Criterion], str], values: list[float], limit: float
) -> None:
    name, make, relation = case
    rule = make(limit)
    stops = [told(rule, **{name: value}).stop for value in sorted(values, reverse=relation != ">=")]
    assert stops == sorted(stops)


@pytest.mark.parametrize(
    "make", [EntropyMax, MinExpectedError, OverallUncertainty, MaxConfidence, MaxVariance, lambda: MarginExhaustion(1)]
)
def test_a_model_that_stays_unsure_is_never_stopped(make: Callable[[], Criterion]) -> None:
    even = np.full((3, 2), 0.5)
    rule = make()
    for n in range(50):
        verdict = rule.observe(
            Step(
                n_labelled=n,
                selected_probabilities=even,
                pool_max_entropy=LOG2,
                pool_risk=0.5,
                pool_uncertainty=1.0,
                pool_margin=0.0,
                pool_variance=3.0,
            )
        )
        assert not verdict.stop
        assert verdict.ready


def test_the_defaults_are_the_literatures() -> None:
    assert [MaxConfidence().threshold, EntropyMax().threshold, MinExpectedError().threshold] == [0.001, 0.01, 0.01]
    assert [OverallUncertainty().threshold, MaxVariance().threshold] == [0.05, 0.1]
    with pytest.raises(TypeError, match="band"):
        MarginExhaustion()  # type: ignore[call-arg]


def test_max_confidence_looks_at_the_least_sure_of_the_batch() -> None:
    rule = MaxConfidence(threshold=0.4)
    sure, less = [0.99, 0.01], [0.9, 0.1]
    by_hand = -(0.9 * math.log(0.9) + 0.1 * math.log(0.1))  # 0.3251
    verdict = rule.observe(selected(sure, less))
    assert verdict.value == pytest.approx(by_hand, rel=1e-14)
    assert verdict.stop
    assert not rule.observe(selected(sure, less, [0.5, 0.5])).stop
    # three classes, evenly: log 3
    assert rule.observe(selected([1 / 3, 1 / 3, 1 / 3])).value == pytest.approx(math.log(3.0))


def test_max_confidence_wants_less_than_the_threshold() -> None:
    entropy = float(selected_entropies(selected([0.5, 0.5]))[0])
    assert not MaxConfidence(entropy).observe(selected([0.5, 0.5])).stop
    assert MaxConfidence(math.nextafter(entropy, 1.0)).observe(selected([0.5, 0.5])).stop


def test_an_empty_selection_is_undecided() -> None:
    verdict = MaxConfidence().observe(Step(n_labelled=5, selected_probabilities=np.empty((0, 2))))
    assert not verdict.ready
    assert not verdict.stop
    assert verdict.value is None
    assert "no example was selected" in verdict.reason


def test_probabilities_off_by_a_rounding_have_finite_entropies() -> None:
    rows = np.array([[1.0 + 5e-7, -5e-7], [1.0, 0.0]])
    assert selected_entropies(Step(n_labelled=5, selected_probabilities=rows)).tolist() == [0.0, 0.0]
    half = np.array([[1.001, 0.0]], dtype=np.float16)
    assert selected_entropies(Step(n_labelled=5, selected_probabilities=half)).tolist() == [0.0]


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=8), st.floats(1e-6, 1.0))
def test_max_confidence_is_that_all_are_below(odds: list[float], threshold: float) -> None:
    verdict = MaxConfidence(threshold).observe(selected(*([p, 1.0 - p] for p in odds)))
    terms = [[q for q in (p, 1.0 - p) if q > 0.0] for p in odds]
    each = [-sum(q * math.log(q) for q in row) for row in terms]
    assert verdict.value == pytest.approx(max(each), abs=1e-15)
    if abs(max(each) - threshold) > 1e-12:
        assert verdict.stop == all(entropy < threshold for entropy in each)


def test_no_pool_point_within_the_margin_of_a_support_vector_machine() -> None:
    rule = MarginExhaustion(1.0)
    assert [told(rule, pool_margin=f).stop for f in (0.0, 0.999, 1.0, 2.5)] == [False, False, True, True]
    # a probabilistic model: the user's band
    assert told(MarginExhaustion(0.6), pool_margin=0.8 - 0.2).stop == (0.8 - 0.2 >= 0.6)


def test_variance_relative_to_its_first_value() -> None:
    rule = MaxVariance(threshold=0.25)
    verdicts = [told(rule, pool_variance=v) for v in (4.0, 8.0, 2.0, 1.0, 0.5)]
    assert [v.value for v in verdicts] == [1.0, 2.0, 0.5, 0.25, 0.125]
    assert [v.stop for v in verdicts] == [False, False, False, True, True]
    assert all(v.ready for v in verdicts)
    assert "relative to the first, 0.25, is at most the threshold 0.25" in verdicts[3].reason


def test_a_first_variance_of_zero_means_nothing_is_uncertain() -> None:
    rule = MaxVariance()
    assert [told(rule, pool_variance=0.0).stop, told(rule, pool_variance=0.0).value] == [True, 0.0]
    # What comes later has a scale of its own: no x/0.
    later = [told(rule, pool_variance=v) for v in (2.0, 0.5, 0.0)]
    assert [v.value for v in later] == [1.0, 0.25, 0.0]
    assert [v.stop for v in later] == [False, False, True]


def test_a_variance_that_explodes_has_a_finite_ratio() -> None:
    rule = MaxVariance()
    told(rule, pool_variance=1e-300)
    verdict = told(rule, pool_variance=1e300)
    assert verdict.value is not None
    assert math.isfinite(verdict.value)
    assert not verdict.stop


@pytest.mark.parametrize(
    ("make", "words", "bad"),
    [
        (MaxConfidence, "threshold must be a number above 0", [0.0, -0.1]),
        (EntropyMax, "threshold must be a number of at least 0", [-0.1]),
        (MinExpectedError, "threshold must be a number from 0 to 1", [-0.1, 1.1]),
        (OverallUncertainty, "threshold must be a number above 0 and at most 1", [0.0, 1.1]),
        (MarginExhaustion, "band must be a number above 0", [0.0, -1.0]),
        (MaxVariance, "threshold must be a number from 0 to below 1", [-0.1, 1.0]),
    ],
)
def test_bad_arguments_are_named(make: Callable[[Any], Criterion], words: str, bad: list[float]) -> None:
    for value in (*bad, math.nan, math.inf, "low", True, None):
        with pytest.raises(InvalidValueError, match=words):
            make(value)


def test_what_is_missing_is_named() -> None:
    for name, make in RULES.items():
        if name != "together":
            (needed,) = make().needs()
            with pytest.raises(MissingInputError, match=f"{name} requires {needed}"):
                make().observe(Step(n_labelled=3))


@pytest.mark.parametrize("make", [MaxConfidence, EntropyMax, MinExpectedError, OverallUncertainty, MaxVariance])
def test_tightening_lowers_the_threshold_and_is_saved(make: Callable[..., Any]) -> None:
    rule = make(0.5)
    rule.tighten(0.5)
    assert rule.threshold == 0.25
    rule.tighten(0.5)
    assert criterion_from_dict(json.loads(json.dumps(rule.state_dict()))) == make(0.125)
    for bad in (0.0, 1.0, 2.0, -1.0, math.nan, "half"):
        with pytest.raises(InvalidValueError, match="factor must be a number between 0 and 1"):
            rule.tighten(bad)
    for _ in range(3000):
        rule.tighten(0.5)
    # However often, the rule can be saved and brought back: its threshold is never rounded to 0.
    assert criterion_from_dict(rule.state_dict()) == rule
    assert rule.threshold == math.ulp(0.0)


def test_a_threshold_of_zero_stays_when_tightened() -> None:
    rule = EntropyMax(0.0)
    rule.tighten(0.9)
    assert rule.threshold == 0.0
    assert told(rule, pool_max_entropy=0.0).stop


@pytest.mark.parametrize("make", [MaxConfidence, EntropyMax, MinExpectedError, OverallUncertainty, MaxVariance])
def test_each_can_be_inside_a_threshold_update(make: Callable[..., Any]) -> None:
    def update() -> Criterion:
        return ThresholdUpdate(make(0.3))

    check_criterion(update, made_up_steps(80, seed=5))
    rule = ThresholdUpdate(make(0.3))
    for step in made_up_steps(80, seed=5):
        rule.observe(step)
    rule.reset()
    assert rule.base == make(0.3)


def test_two_numbers_are_printed_so_that_they_differ() -> None:
    assert apart(0.25, 0.25) == ("0.25", "0.25")
    assert apart(1.0 / 3.0, 0.5) == ("0.333", "0.5")
    assert apart(0.0500004, 0.05) == ("0.0500004", "0.05")
    value = math.nextafter(0.05, 1.0)
    assert apart(value, 0.05) == (repr(value), "0.05")
    assert Comparison("risk", "<=").sentence(0.05 + 1e-9, 0.05) == (
        "the risk, 0.050000001, is above the threshold 0.05"
    )
