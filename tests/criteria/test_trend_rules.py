import json
import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice import Criterion, Step, Verdict
from suffice.criteria.trend import DropInConfidence, PerformanceConvergence, UncertaintyConvergence, VarianceModel
from suffice.errors import InvalidValueError, MissingInputError
from suffice.testing import check_criterion
from tests.every_rule import made_up_steps

RULES: dict[str, Callable[[], Criterion]] = {
    "DropInConfidence": lambda: DropInConfidence(2),
    "DropInConfidence, one round": lambda: DropInConfidence(1),
    "VarianceModel": VarianceModel,
    "VarianceModel, extended": lambda: VarianceModel(2, 0.3),
    "PerformanceConvergence": lambda: PerformanceConvergence(5, 0.05),
    "UncertaintyConvergence": lambda: UncertaintyConvergence(5, 0.2),
    "together": lambda: (PerformanceConvergence(4, 0.1) | UncertaintyConvergence(7, 0.1)) & VarianceModel(1),
}


@pytest.mark.parametrize("name", RULES)
def test_conformance(name: str) -> None:
    check_criterion(RULES[name], made_up_steps(35, seed=7))


def confidences(values: list[float]) -> list[Step]:
    return [Step(n_labelled=11 + t, stop_confidence=value) for t, value in enumerate(values)]


def variances(values: list[float]) -> list[Step]:
    return [Step(n_labelled=11 + t, pool_confidence_variance=value) for t, value in enumerate(values)]


def scores(values: list[float], *, first: int = 11, batch: int = 1) -> list[Step]:
    return [Step(n_labelled=first + batch * t, pool_f=value) for t, value in enumerate(values)]


def odds_of(entropy: float) -> float:
    """The probability of two that has this entropy, by halving."""
    low, high = 0.5, 1.0
    for _ in range(80):
        middle = (low + high) / 2
        spread = -sum(q * math.log(q) for q in (middle, 1.0 - middle) if q > 0.0)
        low, high = (middle, high) if spread > entropy else (low, middle)
    return low


def selections(batches: list[list[float]], *, first: int = 11) -> list[Step]:
    """Steps that selected examples of given entropies, up to log 2."""
    steps, n = [], first - 1
    for entropies in batches:
        n += len(entropies)
        p = np.array([[odds_of(h), 1.0 - odds_of(h)] for h in entropies]).reshape(-1, 2)
        steps.append(Step(n_labelled=n, selected_probabilities=p))
    return steps


def answers(rule: Criterion, steps: list[Step]) -> list[Verdict]:
    return [rule.observe(step) for step in steps]


def stops(rule: Criterion, steps: list[Step]) -> list[bool]:
    return [verdict.stop for verdict in answers(rule, steps)]


# ---- consecutive falls


def test_three_falls_in_a_row_and_no_fewer() -> None:
    run = confidences([0.7, 0.8, 0.75, 0.74, 0.76, 0.75, 0.74, 0.73, 0.72])
    verdicts = answers(DropInConfidence(), run)
    assert [v.value for v in verdicts] == [0, 0, 1, 2, 0, 1, 2, 3, 4]
    assert [v.stop for v in verdicts] == [False] * 7 + [True, True]
    assert {v.threshold for v in verdicts} == {3.0}
    assert [v.ready for v in verdicts] == [False] + [True] * 8
    assert verdicts[0].reason.endswith("known for one round only, and a fall needs two")
    assert verdicts[1].reason == "the mean confidence on the stop set has not fallen, and 3 falls are required"
    assert verdicts[2].reason == "the mean confidence on the stop set has fallen once, and 3 falls are required"
    assert (
        verdicts[7].reason
        == "the mean confidence on the stop set has fallen 3 times in a row, and 3 falls are required"
    )


def test_a_value_that_stays_is_no_fall() -> None:
    assert stops(DropInConfidence(2), confidences([0.9, 0.8, 0.8, 0.7, 0.6])) == [False, False, False, False, True]
    assert not any(stops(DropInConfidence(1), confidences([0.9] * 20)))
    assert not any(stops(VarianceModel(1), variances([0.1] * 20)))


def first_fall(values: Any, rounds: int) -> int:
    """By brute force: the number of values seen when the last ``rounds`` + 1 fall throughout."""
    return next(
        t + 1
        for t in range(rounds, len(values))
        if all(after < before for before, after in pairwise(values[t - rounds : t + 1]))
    )


def waited(rule: Criterion, steps: list[Step]) -> int:
    return next(t for t, step in enumerate(steps, start=1) if rule.observe(step).stop)


def expected_wait(rounds: int) -> float:
    """Values of white noise until the first ``rounds`` falls in a row: 1 / (sum over j of 1/(kj)! - 1/(kj + 1)!)."""
    k = rounds + 1
    return 1.0 / math.fsum(1.0 / math.factorial(k * j) - 1.0 / math.factorial(k * j + 1) for j in range(12))


@pytest.mark.no_cover
@pytest.mark.parametrize(
    ("make", "steps", "rounds"), [(DropInConfidence, confidences, 3), (VarianceModel, variances, 2)]
)
def test_on_white_noise_the_count_begins_again(
    make: Callable[[int], Criterion], steps: Callable[[list[float]], list[Step]], rounds: int
) -> None:
    rng = np.random.default_rng(0)
    found, never_reset = [], []
    for _ in range(400):
        noise = rng.random(600)
        found.append(waited(make(rounds), steps(noise[: first_fall(noise, rounds)].tolist())))
        assert found[-1] == first_fall(noise, rounds)
        never_reset.append(int(np.flatnonzero(np.diff(noise) < 0)[rounds - 1]) + 2)
    # 29.98 for 3 falls and 7.92 for 2; a count that goes on after a rise comes to about twice the falls plus one.
    error = np.std(found) / math.sqrt(len(found))
    assert abs(np.mean(found) - expected_wait(rounds)) < 4.0 * error
    assert np.mean(never_reset) < 2 * rounds + 1.5 < np.mean(found)


def test_the_expected_wait_is_known() -> None:
    assert expected_wait(3) == pytest.approx(29.98, abs=0.01)
    assert expected_wait(1) == pytest.approx(math.e)


def test_a_number_that_rises_is_never_stopped() -> None:
    rising = [t / 60 for t in range(60)]
    assert not any(stops(DropInConfidence(1), confidences(rising)))
    assert not any(stops(VarianceModel(1), variances(rising)))


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=30), st.integers(1, 4))
def test_a_fall_that_goes_on_keeps_stopping(values: list[float], rounds: int) -> None:
    down = sorted(set(values), reverse=True)
    for verdicts in (
        answers(DropInConfidence(rounds), confidences(down)),
        answers(VarianceModel(rounds), variances(down)),
    ):
        assert [v.stop for v in verdicts] == [t >= rounds for t in range(len(down))]
        assert all(v.value is not None and math.isfinite(v.value) for v in verdicts)


def test_the_basic_variance_model_by_hand() -> None:
    verdicts = answers(VarianceModel(), variances([0.02, 0.04, 0.03, 0.035, 0.03, 0.02, 0.01]))
    assert [v.value for v in verdicts] == [0, 0, 1, 0, 1, 2, 3]
    assert [v.stop for v in verdicts] == [False] * 5 + [True, True]
    assert verdicts[5].reason == (
        "the variance of the confidence over the pool has fallen 2 times in a row, and 2 falls are required"
    )


def test_the_extended_variance_model_wants_more_than_a_share_of_the_peak() -> None:
    # 0.5 of the peak 0.5 is 0.25: on it is not enough.
    verdicts = answers(VarianceModel(2, fall=0.5), variances([0.125, 0.5, 0.375, 0.25, 0.125, 0.25, 0.1875, 0.125]))
    assert [v.stop for v in verdicts] == [False, False, False, False, True, False, False, True]
    assert verdicts[3].reason.endswith("it has lost 0.5 of its largest value, not more than the required 0.5")
    assert verdicts[4].reason.endswith("it has lost 0.75 of its largest value, more than the required 0.5")
    # Deep enough, but risen last: no stop.
    assert verdicts[5].reason.startswith("the variance of the confidence over the pool has not fallen")


@given(st.lists(st.integers(0, 64), min_size=1, max_size=25), st.integers(1, 3), st.integers(0, 7))
def test_the_variance_model_is_its_definition(values: list[int], rounds: int, eighths: int) -> None:
    found = stops(VarianceModel(rounds, eighths / 8), variances([v / 64 for v in values]))
    for t, stop in enumerate(found):
        falls = t >= rounds and all(b < a for a, b in pairwise(values[t - rounds : t + 1]))
        peak = max(values[: t + 1])
        assert stop == (falls and 8 * (peak - values[t]) > eighths * peak)


def test_a_variance_of_zero_throughout_is_not_a_fall() -> None:
    verdicts = answers(VarianceModel(1, 0.5), variances([0.0] * 4))
    assert not any(v.stop for v in verdicts)
    assert all("nan" not in v.reason for v in verdicts)


# ---- windows of labels


def test_performance_by_hand() -> None:
    rule = PerformanceConvergence(window=2, threshold=0.125)
    verdicts = answers(rule, scores([0.25, 0.5, 0.5, 0.75, 0.625, 0.75, 0.75, 0.75]))
    assert [v.ready for v in verdicts] == [False] * 3 + [True] * 5
    # means of two: .375 .5 .625 .6875 .6875 .75 .75 from the second value on
    assert [v.value for v in verdicts] == [None, None, None, 0.25, 0.1875, 0.0625, 0.0625, 0.0625]
    assert [v.stop for v in verdicts] == [False] * 5 + [True, True, True]
    assert verdicts[0].reason == "two windows of 2 labels are compared, and the rule has seen 1 so far"
    assert verdicts[3].reason == (
        "the mean of the expected F score on the pool rose by 0.25 from one window of 2 labels to the next, "
        "not below the threshold 0.125"
    )
    assert verdicts[5].reason.endswith("below the threshold 0.125, and the newest value is the highest so far")


def test_a_gain_on_the_threshold_or_below_zero_does_not_stop() -> None:
    on = answers(PerformanceConvergence(1, 0.25), scores([0.5, 0.75]))[-1]
    assert (on.value, on.stop) == (0.25, False)
    fell = answers(PerformanceConvergence(1, 0.25), scores([0.75, 0.5]))[-1]
    assert (fell.value, fell.stop) == (-0.25, False)
    assert "fell by 0.25" in fell.reason
    still = answers(PerformanceConvergence(1, 0.25), scores([0.75, 0.75]))[-1]
    assert (still.value, still.stop) == (0.0, True)


def test_the_newest_score_must_be_the_highest_of_the_whole_run() -> None:
    # 0.9 lies further back than both windows, and is remembered all the same.
    verdicts = answers(PerformanceConvergence(2, 0.1), scores([0.9, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5]))
    assert not any(v.stop for v in verdicts)
    assert verdicts[-1].value == 0.0
    assert verdicts[-1].reason.endswith("but the newest value is not the highest so far")


def test_uncertainty_by_hand_falls_where_performance_rises() -> None:
    rule = UncertaintyConvergence(window=2, threshold=0.1)
    run = selections([[0.6], [0.5], [0.3], [0.2], [0.19], [0.17], [0.4], [0.16]])
    verdicts = answers(rule, run)
    assert [v.ready for v in verdicts] == [False] * 3 + [True] * 5
    # medians of two, from the second value on: .55 .4 .25 .195 .18 .285 .28
    expected = [0.3, 0.205, 0.07, -0.09, -0.1]
    assert [v.value for v in verdicts[3:]] == pytest.approx(expected, abs=1e-9)
    assert [v.stop for v in verdicts] == [False] * 5 + [True, False, False]
    assert verdicts[3].reason.startswith("the median entropy of the selected examples fell by 0.3 from one window")
    assert verdicts[5].reason.endswith("below the threshold 0.1, and the newest value is the lowest so far")
    assert verdicts[6].reason == (
        "the median entropy of the selected examples rose by 0.09 from one window of 2 labels to the next"
    )


def test_the_newest_uncertainty_must_be_the_lowest_of_the_whole_run() -> None:
    verdicts = answers(UncertaintyConvergence(2, 0.1), selections([[0.1]] + [[0.5]] * 6))
    assert not any(v.stop for v in verdicts)
    assert verdicts[-1].value == 0.0
    assert verdicts[-1].reason.endswith("but the newest value is not the lowest so far")
    assert stops(UncertaintyConvergence(2, 0.1), selections([[0.5]] * 6)) == [False] * 3 + [True] * 3


def test_every_selected_example_counts_once() -> None:
    """Medians over examples, not of the medians of steps."""
    rule = UncertaintyConvergence(window=4, threshold=0.2)
    verdict = answers(rule, selections([[0.6], [0.5, 0.5, 0.6], [0.1], [0.3, 0.4, 0.5]], first=1))[-1]
    # {.6 .5 .5 .6} has .55; {.1 .3 .4 .5} has .35
    assert verdict.value == pytest.approx(0.2, abs=1e-9)
    assert not verdict.stop


def test_windows_are_counted_in_labels_whatever_the_batch() -> None:
    # Batches of 5 from 10 labels on, windows of 10: at n the steps (n - 10, n] are two.
    values = [0.0, 0.125, 0.25, 0.375, 0.5, 0.5, 0.5]
    verdicts = answers(PerformanceConvergence(10, 0.2), scores(values, first=10, batch=5))
    # first judged once n - 10 + 1 >= 20: at 30, with 25, 30 against 15, 20
    assert [v.n_labelled for v in verdicts if v.ready] == [30, 35, 40]
    assert [v.value for v in verdicts if v.ready] == [0.25, 0.1875, 0.0625]


def test_a_batch_wider_than_the_window_is_undecided_and_says_so() -> None:
    verdicts = answers(PerformanceConvergence(100, 0.1), scores([0.5] * 10, first=10, batch=250))
    assert not any(v.ready for v in verdicts)
    assert "batches should be smaller than the window" in verdicts[-1].reason
    # As wide as the window is no trouble.
    assert answers(PerformanceConvergence(100, 0.1), scores([0.5] * 10, first=10, batch=100))[-1].stop


def test_an_empty_selection_is_undecided_and_leaves_no_trace() -> None:
    run = selections([[0.5]] * 5)
    rule = UncertaintyConvergence(2, 0.1)
    answers(rule, run)
    before = json.dumps(rule.state_dict())
    verdict = rule.observe(Step(n_labelled=15, selected_probabilities=np.empty((0, 2))))
    assert (verdict.ready, verdict.stop, verdict.value) == (False, False, None)
    assert "no example was selected" in verdict.reason
    assert json.dumps(rule.state_dict()) == before


@pytest.mark.parametrize("value", [0.1, 0.7, 0.9, 1.0])
def test_scores_that_are_equal_have_no_gain_to_the_last_digit(value: float) -> None:
    # Windows of unequal sizes, of which rounded means would differ.
    counts = [1, 2, 3, 5, 8, 9, 10, 11, 14, 17, 20]
    verdicts = answers(PerformanceConvergence(7), [Step(n_labelled=n, pool_f=value) for n in counts])
    assert [v.value for v in verdicts if v.ready] == [0.0] * 3
    assert [v.stop for v in verdicts if v.ready] == [True] * 3


@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 8)), min_size=1, max_size=60),
    st.integers(1, 6),
)
def test_performance_is_its_definition_and_the_state_stays_small(run: list[tuple[int, int]], window: int) -> None:
    rule = PerformanceConvergence(window, 0.3)
    seen: dict[int, float] = {}
    n, highest = 1, 0.0
    for bought, eighths in run:
        n, score = n + bought, eighths / 8
        seen[n], highest = score, max(highest, score)
        verdict = rule.observe(Step(n_labelled=n, pool_f=score))
        last = [f for count, f in seen.items() if n - window < count <= n]
        previous = [f for count, f in seen.items() if n - 2 * window < count <= n - window]
        assert verdict.ready == (bool(previous) and min(seen) <= n - 2 * window + 1)
        if verdict.ready:
            gain = float(np.mean(last) - np.mean(previous))
            assert verdict.value == pytest.approx(gain, abs=1e-12)
            if min(abs(gain), abs(gain - 0.3)) > 1e-9:
                assert verdict.stop == (0.0 < gain < 0.3 and score == highest)
        assert len(rule.counts) == len(rule.values) <= 2 * window


@given(st.lists(st.floats(0.5, 1.0), min_size=1, max_size=60), st.integers(1, 6))
def test_uncertainty_keeps_no_more_than_two_windows_and_no_nan(odds: list[float], window: int) -> None:
    rule = UncertaintyConvergence(window, 0.3)
    for n, p in enumerate(odds):
        verdict = rule.observe(Step(n_labelled=n, selected_probabilities=np.array([[p, 1.0 - p]])))
        assert verdict.value is None or math.isfinite(verdict.value)
        assert verdict.ready == (n + 1 >= 2 * window)
        assert len(rule.counts) == len(rule.values) <= 2 * window


def test_the_defaults_are_the_papers() -> None:
    assert DropInConfidence() == DropInConfidence(3)
    assert VarianceModel() == VarianceModel(2, 0.0)
    for rule in (PerformanceConvergence(), UncertaintyConvergence()):
        assert (rule.window, rule.threshold) == (100, 5e-5)
    verdicts = answers(PerformanceConvergence(), scores([1.0 - 0.9**t for t in range(220)], first=11))
    assert next(v.n_labelled for v in verdicts if v.ready) == 210


def test_a_score_that_goes_on_rising_is_never_stopped() -> None:
    assert not any(stops(PerformanceConvergence(3, 0.01), scores([t / 100 for t in range(100)])))
    falling = selections([[0.69 - 0.01 * t] for t in range(60)])
    assert not any(stops(UncertaintyConvergence(3, 0.01), falling))


@pytest.mark.parametrize(
    ("make", "arguments", "words"),
    [
        (DropInConfidence, {"rounds": 0}, "rounds must be a whole number, 1 or more"),
        (DropInConfidence, {"rounds": 1.5}, "rounds must be a whole number"),
        (VarianceModel, {"rounds": True}, "rounds must be a whole number"),
        (VarianceModel, {"fall": 1.0}, "fall must be a number from 0 to below 1, not 1.0"),
        (VarianceModel, {"fall": -0.1}, "fall must be a number from 0 to below 1"),
        *(
            (make, arguments, words)
            for make in (PerformanceConvergence, UncertaintyConvergence)
            for arguments, words in (
                ({"window": 0}, "window must be a whole number, 1 or more"),
                ({"window": "wide"}, "window must be a whole number"),
                ({"threshold": 0.0}, "threshold must be a number above 0, not 0.0"),
                ({"threshold": math.nan}, "threshold must be a number above 0"),
            )
        ),
    ],
)
def test_bad_arguments_are_named(make: Any, arguments: dict[str, object], words: str) -> None:
    with pytest.raises(InvalidValueError, match=words):
        make(**arguments)


@pytest.mark.parametrize(
    ("rule", "field"),
    [
        (DropInConfidence(), "stop_confidence"),
        (VarianceModel(), "pool_confidence_variance"),
        (PerformanceConvergence(), "pool_f"),
        (UncertaintyConvergence(), "selected_probabilities"),
    ],
)
def test_what_is_missing_is_named(rule: Criterion, field: str) -> None:
    with pytest.raises(MissingInputError, match=f"{type(rule).__name__} requires {field}"):
        rule.observe(Step(n_labelled=3))
