"""The options of ErrorStability that are not the paper's: mean of logs, calibration in labels, median scale."""

import json
import math
import statistics
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice import ErrorStability, Step, Trace, criterion_from_dict
from suffice.bounds import risk_gap
from suffice.criteria.base import rule_info
from suffice.errors import InvalidValueError

PAIRS = st.lists(st.tuples(st.floats(1e-9, 10), st.floats(1e-9, 10)), min_size=1, max_size=40)


def steps(pairs: list[tuple[float, float]], start: int = 11, batch: int = 1) -> list[Step]:
    return [Step(n_labelled=start + batch * t, kl_new_old=a, kl_old_new=b) for t, (a, b) in enumerate(pairs)]


def bounds(pairs: list[tuple[float, float]]) -> list[float]:
    return [risk_gap(a) + risk_gap(b) for a, b in pairs]


@given(PAIRS, st.integers(1, 6), st.integers(2, 8))
def test_the_mean_is_that_of_the_logs_of_the_last_ratios(pairs: list[tuple[float, float]], m: int, k: int) -> None:
    rule = ErrorStability(0.3, calibration=m, average=k)
    verdicts = [rule.observe(step) for step in steps(pairs)]
    r = bounds(pairs)
    for t, verdict in enumerate(verdicts):
        last = [value / min(r[:m]) for value in r[m : t + 1]][-k:]
        assert verdict.ready == (len(last) == k)
        if last:
            assert verdict.value == pytest.approx(math.exp(sum(map(math.log, last)) / len(last)), rel=1e-9)
        else:
            assert verdict.value == 1.0
        assert verdict.stop == (verdict.ready and verdict.value is not None and verdict.value <= 0.3)


def test_one_dip_does_not_stop_a_mean() -> None:
    pairs = [(0.5, 0.5)] * 15 + [(1e-12, 1e-12)] + [(0.5, 0.5)] * 15
    paper, mean = ErrorStability(0.05), ErrorStability(0.05, average=10)
    assert any(paper.observe(step).stop for step in steps(pairs))
    assert not any(mean.observe(step).stop for step in steps(pairs))


@pytest.mark.parametrize("relative", [True, False])
def test_a_step_without_change_has_a_finite_log(relative: bool) -> None:
    rule = ErrorStability(0.05, calibration=1, average=2, relative=relative)
    verdicts = [rule.observe(step) for step in steps([(0.5, 0.5), (0.5, 0.5), (0.0, 0.0), (0.0, 0.0)])]
    scale = 2 * risk_gap(0.5) if relative else 1.0
    assert verdicts[2].value == pytest.approx(math.sqrt(2 * risk_gap(0.5) / scale * 1e-7 / scale))
    assert verdicts[3].value == pytest.approx(1e-7 / scale)
    assert verdicts[3].stop
    json.dumps(rule.state_dict(), allow_nan=False)


def test_extreme_divergences_have_a_finite_mean() -> None:
    rule = ErrorStability(0.05, calibration=1, average=3, scale="median")
    for step in steps([(1e-13, 1e-13), *[(1.7e308, 1.7e308)] * 4, (1e-320, 1e-320)]):
        verdict = rule.observe(step)
        assert verdict.value is not None
        assert math.isfinite(verdict.value)


@given(PAIRS, st.integers(1, 12))
def test_with_one_label_a_step_labels_are_steps(pairs: list[tuple[float, float]], m: int) -> None:
    by_steps, by_labels = ErrorStability(0.3, calibration=m), ErrorStability(0.3, calibration_labels=m)
    for step in steps(pairs):
        one, other = by_steps.observe(step), by_labels.observe(step)
        assert (one.stop, one.ready, one.value) == (other.stop, other.ready, other.value)


@pytest.mark.parametrize(("batch", "period"), [(1, 10), (3, 4), (5, 2), (10, 1), (50, 1)])
def test_a_period_in_labels_has_fewer_steps_with_larger_batches(batch: int, period: int) -> None:
    rule = ErrorStability(0.3, calibration_labels=10)
    verdicts = [rule.observe(step) for step in steps([(0.5, 0.5)] * 12, start=100, batch=batch)]
    assert [verdict.ready for verdict in verdicts] == [t >= period for t in range(12)]
    first = "it is judged from the next step on" if batch >= 10 else "label 1 of the 10 that set the scale"
    assert batch in (3, 5, 10, 50) or first in verdicts[0].reason


@given(PAIRS, st.integers(1, 8))
def test_the_scale_is_the_median_of_the_first_changes(pairs: list[tuple[float, float]], m: int) -> None:
    rule = ErrorStability(0.3, calibration=m, scale="median")
    verdicts = [rule.observe(step) for step in steps(pairs)]
    r = bounds(pairs)
    for t in range(m, len(pairs)):
        assert verdicts[t].value == pytest.approx(r[t] / statistics.median(r[:m]), rel=1e-12)


def test_a_step_without_change_is_no_part_of_the_median() -> None:
    rule = ErrorStability(0.1, calibration=3, scale="median")
    for step in steps([(0.5, 0.5), (0.0, 0.0), (0.3, 0.3)]):
        rule.observe(step)
    assert rule.gamma == pytest.approx(risk_gap(0.5) + risk_gap(0.3))


OPTIONS: list[dict[str, Any]] = [
    {"average": 3},
    {"calibration_labels": 4},
    {"scale": "median"},
    {"average": 4, "calibration_labels": 7, "scale": "median"},
    {"average": 3, "relative": False},
]


@pytest.mark.parametrize("options", OPTIONS)
def test_one_by_one_all_at_once_resumed_and_replayed_are_the_same(options: dict[str, Any]) -> None:
    rng = np.random.default_rng(0)
    pairs = [(float(a), float(b)) for a, b in rng.lognormal(-3, 2, size=(30, 2))]
    run = steps(pairs, batch=2)
    made = [ErrorStability(0.2, calibration=5, **options) for _ in range(2)]
    one_by_one = [made[0].observe(step) for step in run]
    assert made[1].observe_all(run) == one_by_one
    for cut in (0, 1, 4, 6, 9, 20):
        rule = ErrorStability(0.2, calibration=5, **options)
        rule.observe_all(run[:cut])
        saved = json.loads(json.dumps(rule.state_dict(), allow_nan=False))
        revived = criterion_from_dict(saved)
        assert revived.state_dict() == saved
        assert revived.observe_all(run[cut:]) == one_by_one[cut:]
    trace = Trace.of_divergences(*np.array(pairs).T, first=10)
    rule = ErrorStability(0.2, calibration=5, **options)
    assert trace.replay(rule) == [rule.observe(step) for step in steps(pairs)]


def test_the_defaults_are_saved_as_they_always_were() -> None:
    rule = ErrorStability()
    rule.observe_all(steps([(0.5, 0.5)] * 12))
    saved = rule.state_dict()
    assert set(saved["params"]) == {"threshold", "calibration", "bound", "relative", "delta"}
    assert set(saved["state"]) == {"steps", "gamma", "n_labelled", "values"}
    assert criterion_from_dict(saved) == rule


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"average": 0}, "average must be a whole number, 1 or more, not 0"),
        ({"average": 2.5}, "average must be a whole number"),
        ({"calibration_labels": 0}, "calibration_labels must be a whole number, 1 or more, not 0"),
        ({"scale": "mean"}, "scale must be 'minimum' or 'median', not 'mean'"),
        ({"scale": "median", "relative": False}, "which relative=False does not use; leave them out"),
        ({"calibration_labels": 3, "relative": False}, "which relative=False does not use; leave them out"),
        ({"average": 2, "delta": 0.1}, "use it with average=1"),
    ],
)
def test_bad_options_are_named(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidValueError, match=words):
        ErrorStability(**arguments)


def test_a_verdict_on_a_mean_reads_well() -> None:
    rule = ErrorStability(0.05, calibration=2, average=3)
    texts = [str(rule.observe(step)) for step in steps([(0.5, 0.5)] * 4 + [(1e-6, 1e-6)] * 4)]
    assert texts[3] == "Go on (undecided) at 14 labels: 2 of the 3 error ratios that are averaged are available."
    assert texts[4].startswith(
        "Go on at 15 labels: the mean error ratio of the last 3 steps 0.107 is above the threshold 0.05."
    )
    assert (
        texts[7] == "Stop at 18 labels: the mean error ratio of the last 3 steps 0.00122 is at most the threshold 0.05."
    )


def test_each_option_is_compared_alone() -> None:
    made = {
        form.name: form.make(0.05) for form in rule_info(ErrorStability).compared if form.make and form.kind != "cost"
    }
    assert made["ErrorStability mean of 10"] == ErrorStability(average=10)
    assert made["ErrorStability by labels"] == ErrorStability(calibration_labels=10)
    assert made["ErrorStability median"] == ErrorStability(scale="median")


def test_the_forecast_is_that_of_the_mean_and_of_the_pool() -> None:
    rng = np.random.default_rng(1)
    rule = ErrorStability(0.05, average=5)
    for t in range(60):
        kl = float(0.5 * ((t + 1) / 5) ** -1.5 * rng.lognormal())
        verdict = rule.observe(Step(n_labelled=11 + t, kl_new_old=kl, kl_old_new=kl, pool_size=100))
    assert len(rule.values) == 60 - 10 - 4
    assert verdict.forecast is not None
    assert verdict.forecast.high <= 100 - 70
