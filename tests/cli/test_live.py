import io

from rich.console import Console

from suffice import ErrorStability
from suffice.cli.demo_command import LiveView
from suffice.presentation.charts import chart
from suffice.testing import example_steps


def test_chart_marks_the_fall_and_the_threshold() -> None:
    lines = chart([1.0, 0.1, 0.01], 0.1, width=9, height=3)
    assert [line[8:] for line in lines] == ["•••", "╌╌╌•••╌╌╌", "      •••"]
    assert [line[:6].strip() for line in lines] == ["1", "0.1", "0.01"]


def test_chart_without_line_drawing_characters() -> None:
    assert [line[7:] for line in chart([1.0, 0.1, 0.01], 0.1, width=9, height=3, plain=True)] == [
        "|***",
        "|---***---",
        "|      ***",
    ]


def test_a_dumb_terminal_gets_lines() -> None:
    assert not LiveView(Console(file=io.StringIO(), force_terminal=True, _environ={"TERM": "dumb"}), 200, 0.05).animated


def test_chart_of_one_value_and_of_zeros() -> None:
    assert len(chart([1.0], 0.05, width=20, height=5)) == 5
    assert len(chart([0.0, 0.0, 1.0], 0.0, width=20, height=5)) == 5


def test_live_view_on_a_terminal_shows_count_curve_and_forecast() -> None:
    screen = Console(file=io.StringIO(), force_terminal=True, width=80)
    rule = ErrorStability(0.05, calibration=4)
    verdicts = [rule.observe(step) for step in example_steps(40)]
    with LiveView(screen, 200, 0.05) as view:
        assert view.animated
        view.show(verdicts)
    shown = screen.file.getvalue()  # type: ignore[attr-defined]
    for words in ("50 of 200 labelled", "until it is enough", "error ratio", "•"):
        assert words in shown


def test_live_view_elsewhere_prints_a_line_now_and_then() -> None:
    page = Console(file=io.StringIO(), width=200)
    rule = ErrorStability(0.0, calibration=4)
    verdicts = []
    with LiveView(page, 200, 0.0) as view:
        for step in example_steps(60):
            verdicts.append(rule.observe(step))
            view.show(verdicts)
    assert page.file.getvalue().count("Go on at") == 2  # type: ignore[attr-defined]
