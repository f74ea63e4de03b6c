"""Rules of two costs: numbers computed by hand, both directions, windows at their edges, units that do not matter."""

import json
import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice import Criterion, ExpectedCost, Step, Verdict
from suffice.errors import InvalidValueError
from suffice.testing import check_criterion
from tests.every_rule import made_up_steps
from tests.thoroughness import examples

# Labels so far, expected error, loss of the labels just bought, loss that was expected of them.
Row = tuple[int, float, float, float]

RULES: dict[str, Callable[[], Criterion]] = {
    "ExpectedCost": lambda: ExpectedCost(200.0, 1.0, window=5),
    "ExpectedCost, dear errors": lambda: ExpectedCost(1e6, 0.5, window=2.5),
}


@pytest.mark.parametrize("name", RULES)
def test_conformance(name: str) -> None:
    check_criterion(RULES[name], made_up_steps(35, seed=3))


@pytest.mark.parametrize("name", RULES)
def test_they_say_both_on_a_run(name: str) -> None:
    said = {RULES[name]().observe_all(made_up_steps(80, seed=3))[t].stop for t in (6, 79)}
    assert said == {False, True} or "dear" in name


def errors(*pairs: tuple[int, float]) -> list[Step]:
    return [Step(n_labelled=n, expected_error=error) for n, error in pairs]


def worths(*rows: Row) -> list[Step]:
    return [
        Step(n_labelled=n, expected_error=e, selected_loss=came, selected_expected_loss=expected)
        for n, e, came, expected in rows
    ]


def values(rule: Criterion, steps: list[Step]) -> list[float | None]:
    return [verdict.value for verdict in rule.observe_all(steps)]


class TestExpectedCost:
    def test_by_hand(self) -> None:
        rule = ExpectedCost(error_cost=100.0, label_cost=1.5, window=4)
        verdicts = rule.observe_all(errors((10, 1.0), (12, 0.9), (14, 0.8), (16, 0.78), (18, 0.76)))
        assert [v.ready for v in verdicts] == [False, False, True, True, True]
        # A hundred times the fall over four labels: .2, .12, .04.
        assert [v.value for v in verdicts[2:]] == pytest.approx([5.0, 3.0, 1.0])
        assert [v.stop for v in verdicts] == [False, False, False, False, True]
        assert all(v.threshold == 1.5 for v in verdicts)

    def test_from_the_last_step_that_is_far_enough_back(self) -> None:
        """Batches of different sizes: the fall is divided by the labels that it took."""
        steps = errors((10, 1.0), (13, 0.7), (20, 0.5), (22, 0.4), (23, 0.3))
        assert values(ExpectedCost(1.0, 1.0, window=5), steps)[2:] == pytest.approx(
            [(0.7 - 0.5) / 7, (0.7 - 0.4) / 9, (0.7 - 0.3) / 10]
        )
        assert values(ExpectedCost(1.0, 1.0, window=3), steps)[1:] == pytest.approx(
            [(1.0 - 0.7) / 3, (0.7 - 0.5) / 7, (0.7 - 0.4) / 9, (0.5 - 0.3) / 3]
        )

    @pytest.mark.parametrize(("window", "ready"), [(9.0, True), (10.0, True), (10.5, False), (11, False)])
    def test_the_edge_of_the_window(self, window: float, ready: bool) -> None:
        verdict = ExpectedCost(1.0, 1.0, window=window).observe_all(errors((20, 1.0), (30, 0.5)))[-1]
        assert verdict.ready == ready
        assert verdict.value == (0.05 if ready else None)

    def test_at_equality_it_goes_on(self) -> None:
        """A label that is worth just what it costs is bought: "less than" is less than."""
        steps = errors((10, 0.5), (14, 0.25))
        assert not ExpectedCost(16.0, 1.0, window=4).observe_all(steps)[-1].stop
        verdict = ExpectedCost(16.0, math.nextafter(1.0, 2.0), window=4).observe_all(steps)[-1]
        assert verdict.value == 1.0
        assert verdict.stop
        assert "below" in verdict.reason

    def test_an_error_that_rises_is_worth_less_than_nothing(self) -> None:
        verdict = ExpectedCost(10.0, 1.0, window=1).observe_all(errors((10, 0.5), (12, 0.7)))[-1]
        assert verdict.stop
        assert verdict.value == pytest.approx(-1.0)
        assert "a label raises the expected error by 0.1, worth -1, which is below its cost of 1" in verdict.reason

    def test_dearer_labels_stop_earlier_and_dearer_errors_later(self) -> None:
        steps = errors(*((n, 1.0 / n) for n in range(10, 200)))

        def stop(error_cost: float, label_cost: float) -> int:
            verdicts = ExpectedCost(error_cost, label_cost).observe_all(steps)
            return next((v.n_labelled for v in verdicts if v.stop), 999)

        assert stop(1000.0, 1.0) < stop(1000.0, 0.1) < stop(10_000.0, 0.1)
        # The slope of 1/n over the last ten labels is 1 / n (n - 10): 1000 / (n (n - 10)) < 1 from 38 on.
        assert stop(1000.0, 1.0) == next(n for n in range(20, 99) if 1000.0 / (n * (n - 10)) < 1.0)

    def test_negative_errors_are_as_good(self) -> None:
        """A mean log density may be below 0; what counts is how far it falls."""
        shifted = errors((10, -1.0), (20, -1.5))
        assert values(ExpectedCost(1.0, 1.0), shifted)[-1] == pytest.approx(0.05)


@st.composite
def histories(draw: st.DrawFn) -> list[Row]:
    sizes = draw(st.lists(st.integers(1, 12), min_size=1, max_size=30))
    number = st.floats(1e-3, 10.0)
    n, found = draw(st.integers(1, 30)), []
    for size in sizes:
        n += size
        found.append((n, draw(number), draw(number), draw(number)))
    return found


def stops(verdicts: list[Verdict]) -> list[bool]:
    return [verdict.stop for verdict in verdicts]


@pytest.mark.parametrize("kind", [ExpectedCost])
class TestUnitsDoNotMatter:
    @examples(50)
    @given(histories(), st.integers(-20, 20))
    def test_of_money(self, kind: Any, history: list[Row], power: int) -> None:
        """Both costs in cents rather than in euros."""
        steps, k = worths(*history), 2.0**power
        plain, other = (kind(20.0 * f, 0.5 * f).observe_all(steps) for f in (1.0, k))
        assert stops(plain) == stops(other)
        assert [None if v.value is None else v.value * k for v in plain] == [v.value for v in other]

    @examples(50)
    @given(histories(), st.integers(-20, 20))
    def test_of_the_error(self, kind: Any, history: list[Row], power: int) -> None:
        """Errors and losses in square metres rather than in square millimetres, and so what an error costs."""
        k = 2.0**power
        scaled = worths(*((n, k * e, k * came, k * expected) for n, e, came, expected in history))
        plain, other = kind(20.0, 0.5).observe_all(worths(*history)), kind(20.0 / k, 0.5).observe_all(scaled)
        assert stops(plain) == stops(other)
        assert [v.value for v in plain] == [v.value for v in other]

    @examples(50)
    @given(histories(), st.floats(0.01, 100.0))
    def test_of_both_by_any_factor(self, kind: Any, history: list[Row], k: float) -> None:
        scaled = worths(*((n, k * e, k * came, k * expected) for n, e, came, expected in history))
        plain, other = values(kind(20.0, 0.5), worths(*history)), values(kind(20.0 / k, 0.5), scaled)
        assert [v is None for v in plain] == [v is None for v in other]
        assert [v for v in plain if v is not None] == pytest.approx(
            [v for v in other if v is not None], rel=1e-9, abs=1e-12
        )


@pytest.mark.parametrize("kind", [ExpectedCost])
class TestBoth:
    @pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf, "much", None, True])
    def test_costs_are_above_0(self, kind: Any, bad: Any) -> None:
        with pytest.raises(InvalidValueError, match="error_cost must be a number above 0, not"):
            kind(bad, 1.0)
        with pytest.raises(InvalidValueError, match="label_cost must be a number above 0, not"):
            kind(1.0, bad)

    def test_costs_go_first_and_options_by_name(self, kind: Any) -> None:
        with pytest.raises(TypeError):
            kind(1.0, 1.0, 0.5)
        assert repr(kind(2, 1)).startswith(f"{kind.__name__}(error_cost=2.0, label_cost=1.0, window=")

    def test_the_state_is_bounded_by_the_window(self, kind: Any) -> None:
        rule, size = kind(1.0, 1.0), 0
        for step in worths(*((n, 1.0 / n, 0.5, 0.5) for n in range(10, 1500))):
            rule.observe(step)
            if step.n_labelled % 50 != 49:
                continue
            size = max(map(len, rule.state_dict()["state"].values()))
            most = 11 if kind is ExpectedCost else max(3.0, 0.3 * step.n_labelled + 2.0)
            assert size <= most
        assert size == (11 if kind is ExpectedCost else 451)
        json.dumps(rule.state_dict(), allow_nan=False)

    def test_steps_without_labels_leave_nothing_behind(self, kind: Any) -> None:
        rule = kind(1.0, 1.0)
        for step in worths((10, 0.5, 0.5, 0.5), *[(30, 0.4, 0.5, 0.5)] * 300):
            rule.observe(step)
        assert max(map(len, rule.state_dict()["state"].values())) == 2

    def test_of_a_step_without_labels_the_error_counts(self, kind: Any) -> None:
        """What is known of a number of labels is what was said of it last."""
        rule, plain = kind(1.0, 1.0), kind(1.0, 1.0)
        rows: list[Row] = [(20, 0.8, 0.5, 0.5), (40, 0.6, 0.5, 0.5), (60, 0.5, 0.5, 0.5)]
        twice = [rows[0], (40, 0.9, 0.5, 0.5), *rows[1:]]
        assert values(rule, worths(*twice))[2:] == values(plain, worths(*rows))[1:]
        assert rule.state_dict()["state"] == plain.state_dict()["state"]

    @given(st.lists(st.tuples(st.integers(0, 5), st.floats(0.0, 1e100)), min_size=1, max_size=20))
    def test_any_number_gets_a_finite_verdict(self, kind: Any, rows: list[tuple[int, float]]) -> None:
        n, rule = 0, kind(1e250, 1e-250)
        for size, number in rows:
            n += size
            verdict = rule.observe(worths((n, number, number / 3.0, number / 7.0))[0])
            assert verdict.value is None or math.isfinite(verdict.value)
            assert verdict.reason
        json.dumps(rule.state_dict(), allow_nan=False)


@pytest.mark.parametrize("bad", [0.5, 0.0, -1, math.nan, math.inf, "long"])
def test_the_window_of_expected_cost_is_in_labels(bad: Any) -> None:
    with pytest.raises(InvalidValueError, match="window must be a number of at least 1, not"):
        ExpectedCost(1.0, 1.0, window=bad)


def test_an_error_beyond_all_bounds_gets_a_finite_verdict() -> None:
    for kind in (ExpectedCost,):
        rule = kind(1.0, 1.0)
        for step in worths((10, 1e300, 0.5, 0.5), (30, 1e299, 0.5, 0.5)):
            verdict = rule.observe(step)
            assert verdict.value is None or math.isfinite(verdict.value)
