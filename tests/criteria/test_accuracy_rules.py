import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice import Criterion, Step, criterion_from_dict
from suffice.criteria.confidence_and_accuracy import HeldOutPlateau, SelectedAccuracy
from suffice.errors import InvalidValueError, MissingInputError
from suffice.testing import check_criterion
from tests.every_rule import made_up_steps

RULES: dict[str, Any] = {
    "SelectedAccuracy": lambda: SelectedAccuracy(0.8, window=10),
    "SelectedAccuracy, one label": lambda: SelectedAccuracy(1.0, window=1),
    "HeldOutPlateau": lambda: HeldOutPlateau(0.01, rounds=4),
    "HeldOutPlateau, one round": lambda: HeldOutPlateau(0.0, rounds=1),
    "together": lambda: SelectedAccuracy(0.7, window=4).patience(2) | HeldOutPlateau(0.002),
}


def batch(right: int, wrong: int, *, n: int = 20) -> Step:
    """A step of which the model had so many labels right, and so many wrong."""
    p = np.tile([0.8, 0.2], (right + wrong, 1))
    return Step(n_labelled=n, selected_probabilities=p, selected_labels=np.array([0] * right + [1] * wrong, dtype=int))


def errors(values: list[float], labels: int = 100) -> list[Step]:
    return [Step(n_labelled=11 + t, validation_error=e, validation_labels=labels) for t, e in enumerate(values)]


def stops(rule: Criterion, steps: list[Step]) -> list[bool]:
    return [rule.observe(step).stop for step in steps]


@pytest.mark.parametrize("name", RULES)
def test_conformance(name: str) -> None:
    check_criterion(RULES[name], made_up_steps(35, seed=6))


def test_the_accuracy_of_a_batch_by_hand() -> None:
    verdicts = [SelectedAccuracy().observe(batch(right, 10 - right)) for right in (8, 9, 10)]
    assert [v.value for v in verdicts] == [0.8, 0.9, 1.0]
    assert [v.stop for v in verdicts] == [False, True, True]
    assert verdicts[0].reason == (
        "the accuracy on the last 10 labels, before they were learned, 0.8, is below the threshold 0.9"
    )
    assert verdicts[1].reason.endswith("0.9, is at least the threshold 0.9")


def test_it_waits_for_a_window_of_labels_and_then_looks_at_the_latest() -> None:
    rule = SelectedAccuracy(0.75, window=4)
    run = [batch(0, 2), batch(1, 1), batch(2, 0), batch(1, 0), batch(3, 1), batch(0, 9), batch(4, 0)]
    verdicts = [rule.observe(step) for step in run]
    assert [v.ready for v in verdicts] == [False, True, True, True, True, True, True]
    # the fewest latest steps with 4 labels: 2+2, 2+2, 2+2+1, 4, 9, 4
    assert [v.value for v in verdicts[1:]] == [1 / 4, 3 / 4, 4 / 5, 3 / 4, 0.0, 1.0]
    assert [v.stop for v in verdicts] == [False, False, True, True, True, False, True]
    assert verdicts[0].value is None
    assert "at least 4 labels, and there are 2 so far" in verdicts[0].reason


def test_a_label_of_a_class_not_met_is_wrong_and_of_equals_the_first_is_predicted() -> None:
    p = np.array([[0.9, 0.1], [0.5, 0.5], [0.5, 0.5], [0.1, 0.9]])
    step = Step(n_labelled=9, selected_probabilities=p, selected_labels=np.array([-1, 0, 1, 1]))
    assert SelectedAccuracy(0.5, window=4).observe(step).value == 0.5


def test_a_step_without_labels_changes_nothing() -> None:
    rule = SelectedAccuracy(0.5, window=2)
    first = rule.observe(batch(2, 0))
    again = rule.observe(batch(0, 0))
    assert (again.value, again.stop, again.ready) == (first.value, first.stop, first.ready) == (1.0, True, True)
    assert not SelectedAccuracy(0.5, window=2).observe(batch(0, 0)).ready


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=40), st.integers(1, 12))
def test_the_window_is_the_fewest_latest_steps_and_the_state_stays_small(
    batches: list[tuple[int, int]], window: int
) -> None:
    rule = SelectedAccuracy(0.6, window=window)
    for t, (right, wrong) in enumerate(batches):
        verdict = rule.observe(batch(right, wrong))
        hits = total = 0
        for good, bad in reversed(batches[: t + 1]):
            if total < window:
                hits, total = hits + good, total + good + bad
        assert verdict.ready == (total >= window)
        assert verdict.value == (hits / total if verdict.ready else None)
        assert len(rule.sizes) == len(rule.right) <= window


def test_a_model_that_is_always_wrong_is_never_stopped() -> None:
    assert not any(stops(SelectedAccuracy(0.01, window=3), [batch(0, 2)] * 30))


def test_tightening_halves_the_mistakes_allowed_and_is_saved() -> None:
    rule = SelectedAccuracy(0.75)
    rule.tighten(0.5)
    assert rule.threshold == 0.875
    assert criterion_from_dict(json.loads(json.dumps(rule.state_dict()))) == SelectedAccuracy(0.875)
    for _ in range(200):
        before = rule.threshold
        rule.tighten(0.5)
        assert before <= rule.threshold <= 1.0
    assert criterion_from_dict(rule.state_dict()) == rule
    with pytest.raises(InvalidValueError, match="factor must be a number between 0 and 1, not 1"):
        rule.tighten(1)


def test_a_plateau_by_hand() -> None:
    rule = HeldOutPlateau(tolerance=0.125, rounds=2)
    #        best before - best of the last two:      .5-.25  .5-.125  .25-.125  .125-.0625
    verdicts = [rule.observe(step) for step in errors([0.5, 0.25, 0.25, 0.125, 0.5, 0.0625])]
    assert [v.ready for v in verdicts] == [False, False, True, True, True, True]
    assert [v.value for v in verdicts[2:]] == [0.25, 0.125, 0.125, 0.0625]
    assert [v.stop for v in verdicts] == [False, False, False, True, True, True]
    assert verdicts[2].reason == (
        "the improvement of the best validation error in the last 2 rounds, 0.25, is above the tolerance 0.125; "
        "13 labels and 100 validation labels are paid for"
    )
    assert "0.125, is at most the tolerance 0.125; 14 labels and 100 validation labels" in verdicts[3].reason


def test_an_error_that_rises_is_a_plateau_too() -> None:
    rule = HeldOutPlateau(tolerance=0.0, rounds=3)
    verdicts = [rule.observe(step) for step in errors([0.25, 0.5, 0.5, 0.5])]
    assert [v.stop for v in verdicts] == [False, False, False, True]
    assert verdicts[3].value == -0.25


def test_an_error_that_keeps_improving_is_never_a_plateau() -> None:
    assert not any(stops(HeldOutPlateau(0.001, rounds=5), errors([1.0 - 0.01 * t for t in range(60)])))


def test_every_reason_charges_the_validation_labels() -> None:
    rule = HeldOutPlateau(rounds=2)
    for step in errors([0.5, 0.4, 0.3, 0.3, 0.3], labels=250):
        assert f"{step.n_labelled} labels and 250 validation labels are paid for" in rule.observe(step).reason
    (one,) = errors([0.5], labels=1)
    assert "and 1 validation label are paid for" in HeldOutPlateau().observe(one).reason


@given(
    st.lists(st.integers(-50, 50), min_size=1, max_size=30),
    st.integers(1, 6),
    st.integers(0, 20),
)
def test_a_plateau_is_its_definition_and_the_state_stays_small(values: list[int], rounds: int, tolerance: int) -> None:
    rule = HeldOutPlateau(float(tolerance), rounds=rounds)
    for t, step in enumerate(errors([float(value) for value in values]), start=1):
        verdict = rule.observe(step)
        assert verdict.ready == (t > rounds)
        if verdict.ready:
            assert verdict.value == min(values[: t - rounds]) - min(values[t - rounds : t])
            assert verdict.stop == (verdict.value <= tolerance)
        assert len(rule.recent) <= rounds


def test_errors_at_the_ends_of_the_numbers_are_finite() -> None:
    rule = HeldOutPlateau(rounds=1)
    verdicts = [rule.observe(step) for step in errors([1.7e308, -1.7e308, 1.7e308])]
    assert all(v.value is None or math.isfinite(v.value) for v in verdicts)
    assert stops(HeldOutPlateau(rounds=1), errors([1.7e308, -1.7e308, 1.7e308])) == [False, False, True]


@pytest.mark.parametrize(
    ("make", "arguments", "words"),
    [
        (SelectedAccuracy, {"threshold": 0.0}, "threshold must be a number above 0 and at most 1, not 0.0"),
        (SelectedAccuracy, {"threshold": 1.1}, "threshold must be a number above 0 and at most 1"),
        (SelectedAccuracy, {"threshold": math.nan}, "threshold must be a number"),
        (SelectedAccuracy, {"window": 0}, "window must be a whole number, 1 or more"),
        (SelectedAccuracy, {"window": 2.5}, "window must be a whole number"),
        (HeldOutPlateau, {"tolerance": -0.1}, "tolerance must be a number of at least 0, not -0.1"),
        (HeldOutPlateau, {"tolerance": "none"}, "tolerance must be a number"),
        (HeldOutPlateau, {"rounds": 0}, "rounds must be a whole number, 1 or more"),
        (HeldOutPlateau, {"rounds": True}, "rounds must be a whole number"),
    ],
)
def test_bad_arguments_are_named(make: Any, arguments: dict[str, object], words: str) -> None:
    with pytest.raises(InvalidValueError, match=words):
        make(**arguments)


def test_what_is_missing_is_named() -> None:
    with pytest.raises(MissingInputError, match="SelectedAccuracy requires selected_labels in"):
        SelectedAccuracy().observe(Step(n_labelled=3, selected_probabilities=np.array([[0.5, 0.5]])))
    with pytest.raises(MissingInputError, match="HeldOutPlateau requires validation_labels in"):
        HeldOutPlateau().observe(Step(n_labelled=3, validation_error=0.1))
