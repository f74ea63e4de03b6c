import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice import ErrorStability, Step
from suffice.cli.demo_command import label_pool
from suffice.errors import InvalidValueError
from suffice.forecast import Forecast, LearningCurve, features, labels_left, value_after
from suffice.tables.example_data import Task, demo_task
from tests.thoroughness import examples


@given(st.floats(1.2, 1.8), st.integers(5, 200), st.floats(0.02, 0.5))
def test_on_an_exact_power_law_of_typical_slope_the_interval_holds_the_truth(
    slope: float, start: int, threshold: float
) -> None:
    n = np.arange(start, 3 * start + 40)
    values = (n / start) ** -slope
    truth = math.ceil(start * threshold ** (-1 / slope)) - int(n[-1])
    forecast = labels_left(n, values, threshold)
    if truth < 1 or forecast is None:
        return
    assert forecast.low <= truth <= forecast.high


@given(
    st.lists(st.floats(0, 10), min_size=4, max_size=60),
    st.floats(1e-4, 1.0),
    st.integers(1, 50),
)
def test_any_curve_gets_an_ordered_forecast_or_none(values: list[float], threshold: float, start: int) -> None:
    forecast = labels_left(start + np.arange(len(values)), values, threshold)
    if forecast is not None:
        least = 0 if values[-1] <= threshold else 1
        assert least <= forecast.low <= forecast.labels <= forecast.high


@given(st.floats(0.02, 0.3), st.floats(0.02, 0.3))
def test_a_lower_threshold_takes_more_labels(a: float, b: float) -> None:
    n = np.arange(20, 120)
    low, high = sorted((a, b))
    near, far = (labels_left(n, (n / 20) ** -1.0, t) for t in (high, low))
    if near is not None and far is not None:
        assert near.labels <= far.labels


def test_nothing_is_made_up() -> None:
    n = np.arange(20, 60)
    assert labels_left(n[:3], np.ones(3), 0.5) is None
    assert labels_left(n, np.ones(40), 1e-6) is None
    assert labels_left(n, 20 / n, 0.0) is None
    assert labels_left([], [], 0.5) is None


def test_a_curve_that_is_there_needs_no_more() -> None:
    n = np.arange(20, 60)
    assert labels_left(n, 20 / n, 0.5) == Forecast(0, 0, 0, 1.0)
    assert str(labels_left(n, 20 / n, 0.5)) == "0 more labels"
    for bad in (-0.1, math.nan):
        with pytest.raises(InvalidValueError, match="threshold must be a number of at least 0"):
            labels_left(n, 20 / n, bad)


def test_a_curve_that_was_under_the_threshold_already_is_near_it() -> None:
    n = np.arange(20, 60)
    forecast = labels_left(n, np.where(n == 40, 0.01, 1.0), 0.05)
    assert forecast is not None
    assert forecast.labels < 20


@pytest.mark.parametrize(
    ("counts", "values", "words"),
    [
        ([1, 2, 3, 4], [1.0, 1.0], "same length"),
        ([[1, 2], [3, 4]], [[1.0, 1.0], [1.0, 1.0]], "same length"),
        ([1, 2, 2, 4], [1.0] * 4, "rise from step to step"),
        ([0, 1, 2, 3], [1.0] * 4, "positive"),
        ([1, 2, 3, 4], [1.0, math.nan, 1.0, 1.0], "finite"),
    ],
)
def test_bad_curves_are_named(counts: list[int], values: list[float], words: str) -> None:
    with pytest.raises(InvalidValueError, match=words):
        labels_left(counts, values, 0.1)


def test_it_reads_as_a_person_would_say_it() -> None:
    assert str(Forecast(40, 25, 90)) == "about 40 more labels (25 to 90)"
    assert str(Forecast(1, 1, 3)) == "about 1 more label (1 to 3)"
    assert str(Forecast(437, 211, 1249)) == "about 440 more labels (210 to 1,200)"
    assert str(Forecast(1, 1, 1, 1.0)) == "1 more label"


SEEDS = range(200, 208)


@pytest.mark.slow
def test_on_replayed_runs_the_interval_holds_the_truth_in_70_to_90_percent() -> None:
    """Runs of the demonstration's two models that choose what to label, with seeds unseen by the calibration.

    The full measurement is benchmarks/forecast_coverage.py.
    """
    covered: list[float] = []
    for kind in ("regression", "classification"):
        for seed in SEEDS:
            rng = np.random.default_rng(seed)
            covered.extend(_coverage(_chosen(demo_task(kind, rng), rng)))
    assert len(covered) >= 5 * len(SEEDS)
    assert 0.7 <= float(np.mean(covered)) <= 0.9


def _coverage(steps: list[Step]) -> list[float]:
    """Share of covered truths at moments fixed beforehand, for each threshold that the run crosses."""
    judge = ErrorStability(0.0)
    verdicts = [judge.observe(step) for step in steps]
    counts = np.array([v.n_labelled for v in verdicts if v.ready])
    values = np.array([v.value for v in verdicts if v.ready], dtype=float)
    shares = []
    for threshold in (0.5, 0.3, 0.2, 0.1):
        crossed = np.flatnonzero(values <= threshold)
        if not len(crossed):
            continue
        end, hits = int(crossed[0]), []
        for t in (t for t in (4, 6, 9, 13, 18, 26, 37, 53, 75, 107) if t < end):
            forecast = labels_left(counts[: t + 1], values[: t + 1], threshold)
            if forecast is not None:
                hits.append(forecast.low <= counts[end] - counts[t] <= forecast.high)
        shares.extend([float(np.mean(hits))] if hits else [])
    return shares


def _chosen(task: Task, rng: np.random.Generator) -> list[Step]:
    """The steps of a run that chooses what to label, as they are seen after the newest replay."""
    for progress in label_pool(task, ErrorStability(0.0), rng):
        if progress.n_labelled >= 250:
            break
    return progress.trace.steps()


@given(st.lists(st.floats(0, 10), min_size=4, max_size=60), st.floats(1e-4, 1.0), st.integers(0, 200))
def test_no_forecast_exceeds_what_is_left(values: list[float], threshold: float, left: int) -> None:
    n = 20 + np.arange(len(values))
    capped, free = labels_left(n, values, threshold, left=left), labels_left(n, values, threshold)
    if capped is not None:
        assert capped.low <= capped.labels <= capped.high <= left
    if free is not None and free.high <= left:
        assert capped == free


@given(st.lists(st.floats(0, 10), min_size=4, max_size=60), st.floats(1e-6, 1.0))
def test_an_interval_that_says_nothing_is_not_given(values: list[float], threshold: float) -> None:
    found = labels_left(20 + np.arange(len(values)), values, threshold)
    assert found is None or found.high <= 30 * max(found.low, 1)


def test_the_rest_of_the_pool_makes_a_far_forecast_possible() -> None:
    n = np.arange(20, 60)
    assert labels_left(n, np.ones(40), 1e-6) is None
    assert labels_left(n, np.ones(40), 1e-6, left=50) == Forecast(50, 50, 50)
    assert labels_left(n, np.ones(40), 1e-6, left=0) == Forecast(0, 0, 0, 1.0)
    for bad in (-1, 2.5, "all"):
        with pytest.raises(InvalidValueError, match="left must be a whole number, 0 or more"):
            labels_left(n, np.ones(40), 0.5, left=bad)  # type: ignore[arg-type]


@examples(80)
@given(
    curve=st.lists(st.floats(1e-3, 10.0), min_size=4, max_size=60),
    labels=st.integers(1, 400),
)
def test_the_value_after_some_labels_is_where_the_line_of_the_forecast_is(curve: list[float], labels: int) -> None:
    counts = np.arange(20.0, 20.0 + len(curve))
    value = value_after(counts, curve, labels)
    assert value is not None
    distance = np.exp(features(counts, np.array(curve), value)[2]) - 0.05
    np.testing.assert_allclose(distance, np.log1p(labels / counts[-1]), rtol=1e-9)
    assert value <= min(curve)


def test_no_value_is_made_up() -> None:
    assert value_after([10, 11, 12], [1.0, 0.9, 0.8], 5) is None
    assert value_after([10, 11, 12, 13], [1.0, 0.9, 0.8, 0.7], 400) is None
    assert value_after([10, 11, 12, 13], [1.0, 0.9, 0.8, 0.7], 0) == pytest.approx(0.7)
    # A dip to nothing leaves nothing.
    assert value_after([10, 11, 12, 13], [1.0, 0.9, 0.0, 0.7], 5) == pytest.approx(0.0, abs=1e-300)
    with pytest.raises(InvalidValueError, match="labels must be a whole number"):
        value_after([10, 11, 12, 13], [1.0, 0.9, 0.8, 0.7], -1)
    with pytest.raises(InvalidValueError, match="rise"):
        value_after([10, 11, 11, 13], [1.0, 0.9, 0.8, 0.7], 5)
    assert labels_left([10, 11, 12, 13], [1.0, 0.9, 0.8, 0.7], 0.1) is not None


# --- the learning curve ---

curves = st.builds(LearningCurve, st.integers(1, 1000), st.floats(0.001, 1.0), st.floats(1e-6, 0.05))


@given(curves, st.integers(1, 2000))
@examples(100)
def test_the_labels_to_an_error_reach_it(curve: LearningCurve, more: int) -> None:
    aim = curve.error_after(more)
    if curve.fall_after(more) < 1e-9:
        return
    labels = curve.labels_to(aim, 10**6)
    assert labels is not None
    assert abs(labels - more) <= 1
    assert curve.labels_to(aim, labels - 1) is None


@given(curves, st.floats(0.0, 5000.0))
@examples(100)
def test_a_curve_falls_by_its_falls(curve: LearningCurve, more: float) -> None:
    step = 1e-4 * (curve.n_labelled + more) / max(1.0, curve.power)
    fallen = (curve.error_after(more) - curve.error_after(more + step)) / step
    assert fallen == pytest.approx(curve.fall_after(more + step / 2.0), rel=1e-3, abs=1e-7)
    assert 0.0 <= curve.error_after(more + step) <= curve.error_after(more) <= curve.error


def test_a_curve_without_a_fall_or_an_error() -> None:
    flat = LearningCurve(100, 0.2, 0.0)
    assert (flat.error_after(50), flat.fall_after(50), flat.labels_to(0.1, 1000), flat.labels_to(0.2, 0)) == (
        0.2, 0.0, None, 0,
    )  # fmt: skip
    assert LearningCurve(100, 0.0, 0.1).error_after(1) == 0.0
