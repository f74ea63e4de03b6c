"""The curve of any rule: on a terminal as it happens and at the end."""

import io
import math

from rich.console import Console

from suffice import ExpectedCost, PerformanceConvergence, Step
from suffice.cli.demo_command import LiveView
from suffice.cli.rule_options import RuleValues
from suffice.criteria import Verdict
from suffice.presentation.charts import number_chart


def worths(errors: list[float]) -> list[Verdict]:
    rule = ExpectedCost(1000.0, 1.0, window=1)
    return [rule.observe(Step(n_labelled=n, expected_error=e)) for n, e in enumerate(errors, start=11)]


def test_a_rising_curve_on_a_linear_scale() -> None:
    lines = number_chart([math.nan, 0.0, 0.5, 1.0], [0.5] * 4, log=False, width=8, height=5)
    assert [line[8:] for line in lines] == ["      ••", "", "╌╌╌╌••╌╌", "", "  ••"]
    assert [line[:6].strip() for line in lines] == ["1", "0.75", "0.5", "0.25", "0"]


def test_a_value_beside_its_threshold_is_drawn_beside_its_line() -> None:
    lines = number_chart([0.0, 0.989, 0.991, 0.99], [0.99] * 4, log=False, width=4, height=5, plain=True)
    assert [line[8:] for line in lines] == ["  *", "---*", " *", "", "*"]


def test_a_threshold_that_moves_is_a_curve_too() -> None:
    lines = number_chart([0.0, 1.0], [1.0, 0.0], log=False, width=2, height=3)
    assert [line[8:] for line in lines] == ["╌•", "", "•╌"]


def test_numbers_that_are_all_the_same() -> None:
    assert len(number_chart([0.0], [0.0], log=False, width=20, height=5)) == 5


def test_a_log_scale_only_where_all_is_above_zero_and_far_apart() -> None:
    assert RuleValues("R", [100.0, 1.0], [1.0, 1.0]).log
    assert not RuleValues("R", [100.0, 0.0], [1.0, 1.0]).log
    assert not RuleValues("R", [100.0, -1.0], [1.0, 1.0]).log
    assert not RuleValues("R", [0.9, 0.95], [0.99, 0.99]).log
    assert not RuleValues("R", [math.nan], [math.nan]).log


def test_the_live_view_of_a_rule_of_costs() -> None:
    screen = Console(file=io.StringIO(), force_terminal=True, width=80)
    with LiveView(screen, 200, 1.0) as view:
        view.show(worths([1.0 / n for n in range(1, 40)]))
    shown = screen.file.getvalue()  # type: ignore[attr-defined]
    for words in ("49 of 200 labelled", "worth of a label, and its cost 1", "•"):
        assert words in shown
    assert "ratio" not in shown


def test_the_live_view_of_a_rule_without_a_number_shows_its_words() -> None:
    screen = Console(file=io.StringIO(), force_terminal=True, width=80)
    verdict = PerformanceConvergence().observe(Step(n_labelled=11, pool_f=0.5))
    with LiveView(screen, 200, 0.0) as view:
        view.show([verdict])
    shown = screen.file.getvalue()  # type: ignore[attr-defined]
    assert "┤" not in shown
    assert " ".join(verdict.reason.split()[:4]) in " ".join(shown.replace("│", " ").split())
