"""LabelWorth: numbers computed by hand, units, costs, tolerance, averaging, bad inputs, states of earlier versions."""

import json
import math
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from suffice import LabelWorth, Step, Verdict, criterion_from_dict
from suffice.errors import InvalidValueError
from suffice.forecast import LearningCurve
from suffice.testing import check_criterion
from tests.every_rule import made_up_steps
from tests.thoroughness import examples


def step(n: int = 100, **given: Any) -> Step:
    """A step of a classifier with a pool of 1,100 items."""
    fields: dict[str, Any] = {
        "pool_size": 1100,
        "unlabelled_error": 0.2,
        "reducible_error": 0.1,
        "recent_gain": 0.06,
        "error_scale": 1.0,
        "calibration": 0.5,
    }
    return Step(n_labelled=n, **{**fields, **given})


def worth(rule: LabelWorth, *steps: Step) -> float:
    value = rule.observe_all(list(steps))[-1].value
    assert value is not None
    return value


@pytest.mark.parametrize(
    "make",
    [
        LabelWorth,
        lambda: LabelWorth(30.0, 1.0),
        lambda: LabelWorth(mistake_cost=3.0, label_cost=0.5),
        lambda: LabelWorth(tolerance=0.5),
    ],
)
def test_conformance(make: Any) -> None:
    check_criterion(make, made_up_steps(35, seed=3))


def test_by_hand() -> None:
    # 1,000 unlabelled items; (0.5 x 0.1 + 0.06) / 2 / 100 of them become right.
    # The item itself is wrong with probability 0.5 x 0.2.
    assert worth(LabelWorth(), step()) == pytest.approx(1000 * 0.5 * 0.11 / 100 + 0.1)
    assert worth(LabelWorth(mistake_cost=4.0), step()) == pytest.approx(4 * (1000 * 0.5 * 0.11 / 100 + 0.1))
    assert worth(LabelWorth(30.0, 2.0), step()) == pytest.approx(30.0 * 0.5 * 0.11 / 100)


def test_the_first_labels_are_worth_a_share_of_the_whole_error() -> None:
    certain = step(10, reducible_error=0.0, recent_gain=0.0)
    assert worth(LabelWorth(), certain) == pytest.approx(1090 * 2.0 * 0.5 * 0.2 / 100 + 0.1)


def test_irreducible_error_buys_nothing() -> None:
    noisy = [step(n, unlabelled_error=0.5, reducible_error=0.0, recent_gain=0.0) for n in range(60, 70)]
    assert LabelWorth().observe_all(noisy)[-1].stop


def test_mistakes_of_the_labelled_items_by_hand() -> None:
    rule, costs = LabelWorth(), LabelWorth(mistake_cost=4.0)
    steps = [step(40, selected_wrong=0.5), step(60, selected_wrong=0.5), step(100, selected_wrong=0.25)]
    # At 60 labels 20 items were predicted before, 10 of them wrong; at 100 labels those since 50 labels count: 60, 20.
    own = 0.75 * (20.0 + 0.1) / (60.0 + 1.0)
    other = 1000 * math.exp(rule_level([40, 60, 100], [0.15 * 0.05 + 0.9 * 0.06] * 3)) / 100.0 ** (4.0 / 3.0)
    assert worth(rule, *steps) == pytest.approx(other + own)
    assert worth(costs, *steps) == pytest.approx(4.0 * (other + own))
    # With all labels older than half of them, only the expected error is left.
    late = step(300, selected_wrong=None)
    assert rule.observe(late).value == pytest.approx(
        800 * math.exp(rule_level([40, 60, 100, 300], [0.15 * 0.05 + 0.9 * 0.06] * 4)) / 300.0 ** (4.0 / 3.0)
        + 0.75 * 0.1
    )


def rule_level(counts: Sequence[int], gains: Sequence[float]) -> float:
    """The average of the logarithms of the falls, each times the labels to the power of 4/3."""
    values = [math.log(gain / n) + 4.0 / 3.0 * math.log(n) for n, gain in zip(counts, gains, strict=True)]
    level = values[0]
    for before, n, value in zip(counts, counts[1:], values[1:], strict=False):
        level += (1.0 - math.exp(-(n - before) / max(5.0, 0.1 * n))) * (value - level)
    return level


@given(
    st.lists(st.tuples(st.integers(1, 12), st.none() | st.floats(0.0, 1.0)), min_size=2, max_size=40),
    st.integers(2, 30),
)
def test_mistakes_of_the_newer_half_count(batches: list[tuple[int, float | None]], first: int) -> None:
    """The share of mistakes, from single labels instead of cumulative sums."""
    rule, n = LabelWorth(mistake_cost=1e-9), first
    labels: list[tuple[int, int, float]] = []
    rule.observe(step(n, selected_wrong=0.3, pool_size=1100))
    for size, wrong in batches:
        n += size
        verdict = rule.observe(step(n, selected_wrong=wrong, pool_size=1100))
        if wrong is not None:
            labels.append((n, size, wrong * size))
        recent = [(size, mistakes) for at, size, mistakes in labels if at > 0.5 * n]
        q = (sum(mistakes for _, mistakes in recent) + 0.1) / (sum(size for size, _ in recent) + 1.0)
        known = wrong is not None or bool(labels)
        own = 0.75 * q if known else 0.1
        assert verdict.value is not None
        assert verdict.value == pytest.approx(1e-9 * (rule.fall * (1100 - n) + own), rel=1e-9)


def test_a_label_that_was_predicted_wrong_is_worth_more() -> None:
    values = [
        worth(LabelWorth(), *(step(n, selected_wrong=wrong) for n in range(90, 101))) for wrong in (0.0, 0.25, 0.5, 1.0)
    ]
    assert values == sorted(values)
    assert values[-1] - values[0] == pytest.approx(0.75 * 10.0 / 11.0)


def test_mistakes_of_a_repeated_count_are_counted_once() -> None:
    steps = [step(90, selected_wrong=0.0), step(95, selected_wrong=0.4), step(100, selected_wrong=0.2)]
    once, again = LabelWorth(), LabelWorth()
    once.observe_all(steps)
    again.observe_all([steps[0], steps[1], steps[1], step(95), steps[2]])
    assert once.state_dict()["state"]["mistakes"] == again.state_dict()["state"]["mistakes"] == [0.0, 2.0, 3.0]
    assert once.state_dict()["state"]["predicted"] == again.state_dict()["state"]["predicted"] == [0, 5, 10]


def test_mistakes_do_not_count_for_numbers_and_the_cost_of_an_error() -> None:
    for params, scale in (({"tolerance": 0.5}, 1.0), ({}, 8.0), ({"error_cost": 30.0}, 1.0)):
        values = [
            worth(LabelWorth(**params), *(step(n, selected_wrong=wrong, error_scale=scale) for n in (90, 95, 100)))
            for wrong in (None, 0.0, 1.0)
        ]
        assert values[0] == values[1] == values[2]


def test_states_with_impossible_mistakes_are_refused() -> None:
    rule = LabelWorth()
    rule.observe_all([step(n, selected_wrong=0.5) for n in (50, 60, 70)])
    saved = rule.state_dict()
    assert criterion_from_dict(saved).state_dict() == saved
    for name, series in (("mistakes", [0.0, 11.0, 12.0]), ("mistakes", [0.0, 5.0, 4.0]), ("predicted", [0, 10])):
        with pytest.raises(InvalidValueError):
            criterion_from_dict({**saved, "state": {**saved["state"], name: series}})


def test_states_of_1_0_0_continue_with_their_history() -> None:
    rule = LabelWorth(mistake_cost=3.0)
    rule.observe_all([step(n) for n in (50, 60, 70)])
    saved = rule.state_dict()
    for name in ("predicted", "mistakes"):
        del saved["state"][name]
    restored = criterion_from_dict(saved)
    assert isinstance(restored, LabelWorth)
    assert (restored.mistake_cost, restored.counts, restored.mistakes) == (3.0, [50, 60, 70], [0.0, 0.0, 0.0])
    assert restored.observe(step(80)) == rule.observe(step(80))


def test_numbers_are_relative_to_the_variance_of_the_labels() -> None:
    one: dict[str, Any] = {"unlabelled_error": 4.0, "reducible_error": 2.0, "recent_gain": 1.0, "calibration": 1.0}
    assert worth(LabelWorth(), step(error_scale=8.0, **one)) == pytest.approx(
        1000 * 0.5 * (3.0 / 8.0) / 100 + 4.0 / 8.0
    )
    # An item that is predicted worse than by the mean counts for more than one wrong prediction.
    worse: dict[str, Any] = {**one, "unlabelled_error": 24.0}
    assert worth(LabelWorth(), step(error_scale=8.0, **worse)) == pytest.approx(1000 * 0.5 * (3.0 / 8.0) / 100 + 3.0)
    # With the cost of an error there is nothing relative.
    assert worth(LabelWorth(50.0), step(error_scale=8.0, **one)) == pytest.approx(50 * 0.5 * 3.0 / 100)


def test_numbers_outside_of_a_tolerance_are_wrong() -> None:
    given_: dict[str, Any] = {
        "unlabelled_error": 2.0,
        "reducible_error": 0.5,
        "recent_gain": 0.25,
        "calibration": 1.5,
        "error_scale": 9.0,
    }

    def share(variance: float) -> float:
        return float(2.0 * norm.cdf(-1.2 / math.sqrt(variance)))

    reducible, gain = share(3.0) - share(3.0 - 0.75), share(3.25) - share(3.0)
    expected = 1000 * max(0.5 * (reducible + gain), 2.0 * share(3.0) / 100) / 100 + share(3.0)
    assert worth(LabelWorth(tolerance=1.2), step(**given_)) == pytest.approx(expected)


def test_one_step_alone_never_stops() -> None:
    rule = LabelWorth()
    low = [
        rule.observe(step(n, reducible_error=1e-9, recent_gain=1e-9, unlabelled_error=1e-9)) for n in (50, 51, 52, 53)
    ]
    assert [(each.ready, each.stop) for each in low] == [(False, False)] + [(True, True)] * 3
    assert "too few labels" in low[0].reason


def test_poor_classifiers_are_judged_with_doubt_before_40_labels() -> None:
    for error, stop in ((0.41, [False, False, True]), (0.39, [False, True, True])):
        about = {"reducible_error": 1e-9, "recent_gain": 1e-9, "unlabelled_error": error, "calibration": 1.0}
        verdicts = LabelWorth(mistake_cost=0.3).observe_all([step(n, **about) for n in (20, 39, 40)])
        assert [verdict.stop for verdict in verdicts] == stop
        assert [verdict.ready for verdict in verdicts] == [False, True, True]
    waiting = LabelWorth(mistake_cost=0.3).observe_all(
        [step(n, **{**about, "unlabelled_error": 0.41}) for n in (20, 39)]
    )
    # Twice the error, at most 1, falls like 1/n.
    assert waiting[-1].value == pytest.approx(0.3 * ((1100 - 39) * 0.82 / 39 + 0.41))
    assert "is expected, at the very best, to avoid" in waiting[-1].reason
    assert "not below its cost" in waiting[-1].reason


@given(st.lists(st.floats(0.0, 1.0), min_size=2, max_size=40), st.floats(1e-3, 100.0))
def test_it_is_not_too_early_again(errors: list[float], price: float) -> None:
    steps = [
        step(10 + 2 * at, unlabelled_error=error, reducible_error=0.5 * error, recent_gain=0.1 * error, calibration=1.0)
        for at, error in enumerate(errors)
    ]
    verdicts = LabelWorth(mistake_cost=price).observe_all(steps)
    stated = [verdict for verdict in verdicts if not verdict.stop]
    assert [verdict.ready for verdict in stated] == sorted(verdict.ready for verdict in stated)
    # The value agrees with the decision, as soon as there is one.
    assert all(
        (verdict.value < 1.0) == verdict.stop for verdict in verdicts if verdict.ready and verdict.value is not None
    )


def test_numbers_are_judged_with_doubt_before_20_labels() -> None:
    for scale, ready in ((1.0, True), (8.0, False)):
        rule = LabelWorth()
        about = {"reducible_error": 1e-9, "recent_gain": 1e-9, "unlabelled_error": 1e-9, "error_scale": scale}
        verdicts = [rule.observe(step(n, **about)) for n in (10, 13, 19, 20)]
        assert [each.ready for each in verdicts] == [False, ready, ready, True]
    with_tolerance = LabelWorth(tolerance=0.5).observe_all([step(n, unlabelled_error=1e-9) for n in (10, 19)])
    assert not with_tolerance[-1].ready


@pytest.mark.parametrize(
    ("error", "most"),
    [(0.2, 0.25), (0.4, 0.4), (1.0, 1.0), (0.0, 0.25)],
)
def test_the_first_step_stops_where_even_the_whole_error_is_not_worth_a_label(error: float, most: float) -> None:
    # Twice the calibrated error, from a quarter to all of the items, falls like 1/n from 20 labels on.
    at = step(20, unlabelled_error=error, reducible_error=0.0, recent_gain=0.0)
    dearest = most / 20
    below = LabelWorth(0.99 / dearest, 1.0).observe(at)
    assert (below.stop, below.ready) == (True, True)
    assert "at the very best" in below.reason
    assert "worth 0.99, which is below its cost of 1" in below.reason
    above = LabelWorth(1.01 / dearest, 1.0).observe(at)
    assert (above.stop, above.ready) == (False, False)
    # With the cost of a wrong prediction, that of the labelled item counts too.
    mistake = 1.0 / (1080 * dearest + 0.5 * error)
    assert LabelWorth(mistake_cost=0.99 * mistake).observe(at).stop
    assert not LabelWorth(mistake_cost=1.01 * mistake).observe(at).ready


def test_the_first_step_of_numbers_compares_with_the_variance_of_the_labels() -> None:
    at = step(20, unlabelled_error=0.2, reducible_error=0.0, recent_gain=0.0, error_scale=8.0)
    # A quarter of the variance is 2.
    assert LabelWorth(0.99 * 20 / 2.0).observe(at).stop
    assert not LabelWorth(1.01 * 20 / 2.0).observe(at).stop
    # If all labels are equal, nothing is known of it.
    assert not LabelWorth(1e-6).observe(step(20, unlabelled_error=0.0, error_scale=0.0)).ready


def test_a_dip_of_one_step_does_not_stop() -> None:
    rule = LabelWorth(mistake_cost=1.5)
    for n in range(100, 120):
        before = rule.observe(step(n, reducible_error=0.3))
    dip = rule.observe(step(120, reducible_error=0.01, recent_gain=0.01))
    assert not before.stop
    assert not dip.stop


def averaged(counts: Sequence[int], falls: Sequence[float]) -> float:
    """The average of logarithms that fall like n^(4/3), each with the median of three steps if they are close."""
    logs = [math.log(fall) + 4.0 / 3.0 * math.log(n) for n, fall in zip(counts, falls, strict=True)]
    level = logs[0]
    for at in range(1, len(logs)):
        close = at >= 2 and counts[at] - counts[at - 2] < 5
        newest = sorted(logs[at - 2 : at + 1])[1] if close else logs[at]
        share = 1.0 - math.exp(-(counts[at] - counts[at - 1]) / max(5.0, 0.1 * counts[at]))
        level = (1.0 - share) * level + share * newest
    return math.exp(level - 4.0 / 3.0 * math.log(counts[-1]))


@pytest.mark.parametrize(
    "counts", [list(range(100, 107)), [20, 30, 40, 50, 60, 70, 80], [50, 51, 60, 61, 62, 110, 160]]
)
def test_falls_are_averaged_by_labels(counts: list[int]) -> None:
    reducible = [0.1, 0.2, 0.4, 0.1, 0.3, 0.2, 0.1]
    steps = [
        step(n, reducible_error=r, recent_gain=0.0, calibration=1.0, unlabelled_error=0.0)
        for n, r in zip(counts, reducible, strict=True)
    ]
    falls = [0.5 * r / n for n, r in zip(counts, reducible, strict=True)]
    assert worth(LabelWorth(1.0, 1.0), *steps) == pytest.approx(averaged(counts, falls))


@given(st.integers(1, 50))
@examples(20)
def test_a_batch_counts_by_its_labels(batch: int) -> None:
    # On the curve of the rule the average does not depend on how many labels come at once.
    def at(n: int) -> Step:
        part = 0.5 * (20 / n) ** (1.0 / 3.0)
        return step(n, reducible_error=part, recent_gain=part, calibration=1.0)

    rule = LabelWorth()
    last = rule.observe_all([at(n) for n in range(20, 401, batch)])[-1].n_labelled
    assert rule.fall == pytest.approx(0.5 * (20 / last) ** (1.0 / 3.0) / last)


def test_a_step_without_new_labels_replaces_the_last() -> None:
    once, twice = LabelWorth(), LabelWorth()
    twice.observe(step(100, reducible_error=0.9))
    assert twice.observe(step(100)).value == once.observe(step(100)).value
    assert twice.counts == [100]


def test_labels_that_become_fewer_are_refused() -> None:
    rule = LabelWorth()
    rule.observe(step(100))
    with pytest.raises(InvalidValueError, match="n_labelled fell from 100 to 99"):
        rule.observe(step(99))


@given(st.floats(1e-6, 1e6), st.floats(1e-6, 1e6), st.floats(0.0, 1.0), st.floats(0.0, 1.0), st.integers(1, 1000))
@examples(50)
def test_units_of_money_do_not_matter(mistake: float, label: float, reducible: float, gain: float, n: int) -> None:
    at = step(n, reducible_error=reducible, recent_gain=gain)
    one, other = LabelWorth(mistake_cost=mistake, label_cost=label), LabelWorth(mistake_cost=mistake / label)
    for _ in range(3):
        first, second = one.observe(at), other.observe(at)
    assert first.value == pytest.approx((second.value or 0.0) * label, rel=1e-9)


@given(st.floats(0.01, 100.0), st.floats(1.0, 10.0))
@examples(50)
def test_dearer_mistakes_never_stop_sooner(mistake: float, factor: float) -> None:
    steps = [step(n, reducible_error=5.0 / n, recent_gain=5.0 / n) for n in range(20, 400, 5)]
    cheap, dear = (
        next((t for t, each in enumerate(LabelWorth(mistake_cost=cost).observe_all(steps)) if each.stop), len(steps))
        for cost in (mistake, mistake * factor)
    )
    assert cheap <= dear


def test_nothing_left_to_label_is_worth_nothing() -> None:
    rule = LabelWorth()
    for n in (1098, 1099, 1100):
        verdict = rule.observe(step(n))
    assert verdict.stop
    assert verdict.value is not None
    assert verdict.value < 1e-3


@given(st.lists(st.floats(0.0, 1e308), min_size=3, max_size=3), st.floats(0.0, 1e308), st.floats(0.0, 1e308))
@examples(50)
def test_any_number_gets_a_finite_verdict(errors: list[float], scale: float, calibration: float) -> None:
    given_: dict[str, Any] = dict(zip(("unlabelled_error", "reducible_error", "recent_gain"), errors, strict=True))
    for rule in (LabelWorth(), LabelWorth(1e300), LabelWorth(tolerance=1e-300)):
        for n in (1, 2, 3):
            verdict = rule.observe(step(n, error_scale=scale, calibration=calibration, **given_))
            assert verdict.value is not None
            assert math.isfinite(verdict.value)


@pytest.mark.parametrize("name", ["error_cost", "label_cost", "mistake_cost", "tolerance"])
@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf, "much"])
def test_costs_are_above_0(name: str, bad: Any) -> None:
    with pytest.raises(InvalidValueError, match=f"{name} must be"):
        LabelWorth(**{name: bad})


def test_a_label_that_pays_for_its_own_item_is_always_worth_it() -> None:
    rule = LabelWorth(mistake_cost=20.0)
    for n in range(900, 910):
        verdict = rule.observe(step(n, reducible_error=0.0, recent_gain=0.0))
    assert not verdict.stop
    assert verdict.forecast is not None
    assert verdict.forecast.labels == 1100 - 909


def test_labelling_everything_is_forecast_for_few_items_only() -> None:
    """The mistakes of the labelled items end sooner than the curve says, which no data so far show."""
    for left, stated in ((30, True), (300, False)):
        rule = LabelWorth(mistake_cost=50.0)
        verdicts = rule.observe_all([step(n, selected_wrong=0.4, pool_size=100 + left) for n in (80, 90, 100)])
        assert not verdicts[-1].stop
        assert (verdicts[-1].forecast is not None) == stated
        assert verdicts[-1].forecast is None or verdicts[-1].forecast.labels == left


def test_a_stop_that_depends_on_the_error_itself_is_not_forecast() -> None:
    # The item of each label alone pays for it, but only just.
    rule = LabelWorth(mistake_cost=11.0)
    for n in range(900, 910):
        verdict = rule.observe(step(n, reducible_error=0.0, recent_gain=0.0))
    assert not verdict.stop
    assert verdict.forecast is None


def test_two_ways_to_say_what_errors_cost() -> None:
    with pytest.raises(InvalidValueError, match="error_cost or mistake_cost"):
        LabelWorth(1.0, mistake_cost=1.0)


@pytest.mark.parametrize(
    ("rule", "scale", "words"),
    [
        (
            LabelWorth(),
            1.0,
            "avoid 0.65 wrong predictions among the 1,000 unlabelled items, worth 0.65, which is below",
        ),
        (
            LabelWorth(mistake_cost=2.0),
            1.0,
            "avoid 0.65 wrong predictions among the 1,000 unlabelled items, worth 1.3",
        ),
        (LabelWorth(), 2.0, "lower the squared error of the 1,000 unlabelled items by 0.032"),
        (LabelWorth(10.0), 1.0, "lower the error by 0.00055, worth 0.0055, which is below its cost of 1"),
    ],
)
def test_the_reason_has_the_units_of_the_user(rule: LabelWorth, scale: float, words: str) -> None:
    for n in (97, 98, 99, 100):
        # The same curve at each step.
        factor = (100 / n) ** (1.0 / 3.0)
        given_: dict[str, Any] = {"reducible_error": 0.1 * factor, "recent_gain": 0.06 * factor, "error_scale": scale}
        reason = rule.observe(step(n, **given_)).reason
    assert words in reason


@pytest.mark.parametrize(
    ("params", "state", "now"),
    [
        (
            {"error_cost": 1000.0, "label_cost": 2.0, "window": 0.3, "caution": 10.0},
            {"counts": [10], "errors": [0.5], "losses": [0.0], "expected_losses": [0.0]},
            LabelWorth(1000.0, 2.0),
        ),
        (
            {"error_cost": None, "label_cost": 1.0, "mistake_cost": 5.0, "tolerance": 0.5},
            {"counts": [10, 11], "worths": [3.0, 2.0], "values": [0.5, 0.4]},
            LabelWorth(mistake_cost=5.0, tolerance=0.5),
        ),
    ],
)
def test_a_rule_of_an_earlier_version_starts_anew_with_its_costs(params: Any, state: Any, now: LabelWorth) -> None:
    restored = criterion_from_dict(json.loads(json.dumps({"rule": "LabelWorth", "params": params, "state": state})))
    assert restored.state_dict() == now.state_dict()


def on_the_curve(rule: LabelWorth, first: int, last: int, amplitude: float = 1.0) -> list[Verdict]:
    """Verdicts on a run whose error falls by amplitude x n^(-1/3), as the rule expects."""
    steps = []
    for n in range(first, last + 1):
        part = amplitude * n ** (-1.0 / 3.0) / 3.0
        about = {"unlabelled_error": 0.02 + 3.0 * part, "reducible_error": part, "recent_gain": part}
        steps.append(step(n, calibration=1.0, **about))
    return rule.observe_all(steps)


@pytest.mark.no_cover
@pytest.mark.parametrize("price", [0.3, 1.0, 3.0])
def test_a_forecast_is_where_the_rule_stops_on_its_own_curve(price: float) -> None:
    verdicts = on_the_curve(LabelWorth(mistake_cost=price), 10, 1099)
    stop = next(verdict.n_labelled for verdict in verdicts if verdict.stop)
    for verdict in verdicts[5 : stop - 11]:
        if verdict.forecast is not None:
            assert verdict.n_labelled + verdict.forecast.labels == pytest.approx(stop, abs=2)
            assert verdict.forecast.low <= verdict.forecast.labels <= verdict.forecast.high
    assert sum(verdict.forecast is not None for verdict in verdicts[: stop - 10]) > 10


def test_a_forecast_counts_the_first_labels_that_are_waited_for() -> None:
    # The estimates say that no label is worth its cost, but for numbers they do not count before 20 labels.
    about = {"reducible_error": 1e-9, "recent_gain": 1e-9, "unlabelled_error": 1e-9, "error_scale": 8.0}
    verdicts = LabelWorth().observe_all([step(n, **about) for n in range(10, 21)])
    assert verdicts[-1].stop
    for left, verdict in zip(range(10, 0, -1), verdicts, strict=False):
        assert verdict.forecast is not None
        assert verdict.forecast.labels == left


def test_the_end_of_the_pool_is_forecast() -> None:
    verdicts = on_the_curve(LabelWorth(mistake_cost=100.0), 10, 600)
    assert verdicts[-1].forecast is not None
    assert verdicts[-1].forecast.labels == 500
    # Far ahead, nothing is forecast.
    assert verdicts[5].forecast is None


@given(st.floats(0.1, 100.0), st.integers(10, 400), st.floats(0.0, 1.0), st.floats(0.0, 1.0), st.floats(0.0, 1.0))
@examples(100)
def test_labels_of_a_forecast_pay(price: float, n: int, error: float, reducible: float, gain: float) -> None:
    # What the labels of a forecast avoid on the curve of the rule is worth at least what they cost.
    rule = LabelWorth(mistake_cost=price)
    about = {"unlabelled_error": error, "reducible_error": reducible * error, "recent_gain": gain * error}
    verdicts = rule.observe_all([step(n + k, calibration=1.0, **about) for k in range(5)])
    forecast, count = verdicts[-1].forecast, n + 4
    if verdicts[-1].stop or forecast is None:
        return
    curve, left = LearningCurve(count, max(error, 1e-300), rule.fall), 1100 - count
    after = curve.error_after(forecast.labels - 1)
    avoided = error * left - after * (left - forecast.labels + 1)
    assert price * avoided >= (forecast.labels - 1) * (1.0 - 1e-9)
