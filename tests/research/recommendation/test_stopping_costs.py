"""What a stop costs: numbers computed by hand, plain loops, and what must hold for any run."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice.errors import InvalidValueError
from suffice.trace import Trace
from suffice_research.recommendation.stopping_costs import (
    RATIOS,
    CostedRun,
    cost_curve,
    first_good,
    optimal_steps,
    paid_steps,
    random_regrets,
    regret,
    regrets,
    smoothed,
    width,
)
from tests.research.compare.compare_runs import REAL, real_run

RUN = CostedRun([10, 11, 12, 13], [0.5, 0.25, 0.125, 0.1875])
ERRORS = st.lists(st.floats(0.0, 10.0), min_size=1, max_size=60)
SOME_RATIOS = st.lists(st.floats(0.01, 1e6), min_size=1, max_size=5)


def run_of(errors: list[float], first: int = 10, batch: int = 1) -> CostedRun:
    return CostedRun(first + batch * np.arange(1, len(errors) + 1), errors)


def test_the_costs_by_hand() -> None:
    # 80 times the error above the best, 0.125; and the labels.
    assert cost_curve(RUN, 80.0).tolist() == [40.0, 21.0, 12.0, 18.0]
    assert cost_curve(RUN, [80.0, 8.0]).tolist() == [[40.0, 21.0, 12.0, 18.0], [13.0, 12.0, 12.0, 13.5]]


def test_the_regret_by_hand() -> None:
    assert regret(RUN, 1, 80.0) == (21.0 - 12.0) / 12.0
    assert regret(RUN, None, 80.0) == (18.0 - 12.0) / 12.0
    assert regret(RUN, 2, 80.0, extra=6) == 6.0 / 12.0
    assert regrets(RUN, [0, None], [80.0, 8.0], extra=3).tolist() == [[31 / 12, 4 / 12], [9 / 12, 4.5 / 12]]


def test_a_random_stop_is_the_mean_over_all_steps() -> None:
    assert random_regrets(RUN, [80.0])[0] == pytest.approx((28 + 9 + 0 + 6) / 4 / 12)


@given(ERRORS, SOME_RATIOS)
def test_a_random_stop_is_the_mean_of_every_regret(errors: list[float], ratios: list[float]) -> None:
    run = run_of(errors)
    every = regrets(run, list(range(len(run))), ratios)
    assert random_regrets(run, ratios) == pytest.approx(every.mean(axis=0), rel=1e-9, abs=1e-9)


def test_the_grid_of_ratios() -> None:
    assert len(RATIOS) == 13
    assert (RATIOS[0], RATIOS[3], RATIOS[6], RATIOS[-1]) == (10.0, 100.0, 1000.0, 100_000.0)
    assert np.diff(np.log10(RATIOS)) == pytest.approx(np.full(12, 1 / 3), abs=1e-3)


@given(ERRORS, SOME_RATIOS, st.integers(1, 50))
def test_no_stop_is_better_than_the_best(errors: list[float], ratios: list[float], batch: int) -> None:
    run = run_of(errors, batch=batch)
    every = regrets(run, [*range(len(run)), None], ratios)
    assert (every >= 0.0).all()
    best = optimal_steps(run, ratios)
    assert every[best, np.arange(len(ratios))].tolist() == [0.0] * len(ratios)
    # Never to stop is to stop at the last step.
    assert every[-1].tolist() == every[-2].tolist()


@given(ERRORS, SOME_RATIOS, st.floats(-5.0, 5.0))
def test_a_constant_added_to_the_error_changes_nothing(errors: list[float], ratios: list[float], more: float) -> None:
    one, other = run_of(errors), run_of([error + more for error in errors])
    stops = list(range(len(one)))
    # Rounding of the sum, times what an error costs.
    assert regrets(other, stops, ratios) == pytest.approx(
        regrets(one, stops, ratios), abs=1e-14 * max(ratios), rel=1e-9
    )


@given(ERRORS, st.floats(0.1, 1e5), st.integers(0, 500))
def test_labels_beside_the_run_are_paid_for(errors: list[float], ratio: float, extra: int) -> None:
    run = run_of(errors)
    least = cost_curve(run, ratio).min()
    assert regret(run, 0, ratio, extra=extra) == pytest.approx(regret(run, 0, ratio) + extra / least)


@given(ERRORS, st.lists(st.floats(0.01, 1e6), min_size=2, max_size=6))
def test_dearer_errors_never_make_an_earlier_stop_the_best(errors: list[float], ratios: list[float]) -> None:
    run = run_of(errors)
    steps = optimal_steps(run, sorted(ratios))
    assert (np.diff(steps) >= 0).all()


def test_the_best_steps_by_hand() -> None:
    # At 8 the steps 1 and 2 both cost 12: the first counts.
    assert optimal_steps(RUN, [1.0, 8.0, 80.0]).tolist() == [0, 1, 2]


def test_whether_costs_are_wide_enough() -> None:
    falling = run_of(np.linspace(1.0, 0.0, 101).tolist(), first=0)
    narrow, wide = width([falling], [1.0, 10.0]), width([falling], [1.0, 1000.0])
    assert (narrow.first, narrow.settled, narrow.wide) == (1.0, 0.0, False)
    assert (wide.best_at, wide.first, wide.settled, wide.wide) == ((0.0, 1.0), 1.0, 1.0, True)
    dear = width([falling], [1000.0, 10000.0])
    assert (dear.first, dear.settled, dear.wide) == (0.0, 1.0, False)
    two = width([falling, run_of([0.0, 1.0, 1.0])], [1.0, 1000.0])
    assert (two.best_at, two.settled) == ((0.0, 0.5), 1.0)


def plain_mean(errors: list[float], t: int) -> float:
    half = max(1, int(0.05 * len(errors))) // 2
    half = min(half, t, len(errors) - 1 - t)
    part = errors[t - half : t + half + 1]
    return sum(part) / len(part)


@given(st.lists(st.floats(0.0, 10.0), min_size=1, max_size=130))
def test_smoothing_is_that_of_a_plain_loop(errors: list[float]) -> None:
    plain = [plain_mean(errors, t) for t in range(len(errors))]
    assert smoothed(errors) == pytest.approx(plain, rel=1e-9, abs=1e-9)


def test_the_smoothing_window_shrinks_at_both_ends() -> None:
    # 100 steps: five of them, two on either side.
    found = smoothed(np.arange(100.0) ** 2)
    assert found[0] == 0.0
    assert found[1] == pytest.approx((0 + 1 + 4) / 3)
    assert found[2] == pytest.approx((0 + 1 + 4 + 9 + 16) / 5)
    assert found[99] == pytest.approx(99.0**2)
    # Below 40 steps nothing is smoothed.
    assert smoothed([3.0, 1.0, 2.0]).tolist() == [3.0, 1.0, 2.0]


def test_the_first_good_step_by_hand() -> None:
    # Within 5 % of 0.2: at most 0.21.
    assert first_good(CostedRun([1, 2, 3, 4, 5], [0.4, 0.22, 0.21, 0.2, 0.3])) == 2
    assert first_good(CostedRun([1], [0.0])) == 0
    # One lucky step among noise is not what smoothing finds: the mean over three steps is.
    noisy = np.full(60, 0.3)
    noisy[10], noisy[40:] = 0.19, 0.2
    assert first_good(CostedRun(np.arange(1, 61), noisy)) == 41


@given(ERRORS)
def test_the_first_good_step_is_good_and_none_before_is(errors: list[float]) -> None:
    run = run_of(errors)
    curve, good = smoothed(run.error), first_good(run)
    assert curve[good] <= 1.05 * curve.min() + 1e-12
    assert (curve[:good] > 1.05 * curve.min() - 1e-12).all()


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", REAL)
def test_real_runs_can_be_judged(name: str) -> None:
    trace = real_run(name)
    run = CostedRun.of(trace)
    assert run.n_labelled.tolist() == trace.n_labelled.tolist()
    own = trace.wrong_share if len(trace.wrong_share) else trace.predictive_error
    assert run.best_error == own.min()
    other = CostedRun.of(trace, error=trace.measures["validation_error"])
    assert other.best_error == trace.measures["validation_error"].min()


@pytest.mark.parametrize(
    ("labels", "error"),
    [([], []), ([1, 2], [0.1]), ([[1]], [[0.1]]), ([1, 2], [0.1, np.nan]), ([0, 1], [0.1, 0.1]), ([2, 1], [0.1, 0.1])],
)
def test_runs_that_cannot_be_judged(labels: Any, error: Any) -> None:
    with pytest.raises(InvalidValueError, match="n_labelled"):
        CostedRun(labels, error)


def test_a_run_without_a_test_set_says_what_is_missing() -> None:
    with pytest.raises(InvalidValueError, match="give simulate a test set"):
        CostedRun.of(Trace.of_divergences([0.1], [0.1], first=5))


def test_stops_outside_a_run() -> None:
    assert paid_steps(RUN, [0, None, 3]).tolist() == [0, 3, 3]
    for stop in (-1, 4):
        with pytest.raises(InvalidValueError, match="from 0 to 3"):
            regret(RUN, stop, 1.0)
