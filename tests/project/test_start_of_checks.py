"""The start of a check of predictions made elsewhere does no work that it does not need."""

import subprocess
import sys
from pathlib import Path

from suffice.checks import SequentialTerms
from suffice.project.checked_predictions import PredictionOptions, make_prediction_project
from suffice.project.create import open_project
from suffice.project.prediction_results import newest_result, start_first_check, start_prediction_check
from suffice.project.read_items import ReadingOptions


def test_a_check_starts_without_a_library_of_models() -> None:
    modules = "suffice.project.checked_predictions, suffice.project.prediction_results"
    code = f"import sys, {modules}; print(*({{'sklearn', 'pandas'}} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "\n"


def test_answers_of_a_check_are_known_after_the_project_is_opened_again(tmp_path: Path) -> None:
    table = {"body": [f"text {row}" for row in range(60)], "llm": ["a", "b"] * 30}
    place = tmp_path / "answers.check.suffice"
    reading, options = ReadingOptions(text="body"), PredictionOptions(("llm",))
    with make_prediction_project(place, table, reading, options, target={"at_most": 0.2}, seed=0) as project:
        start_first_check(project, "Ann")
        for _ in range(3):
            (item,) = project.next("Ann", 1)
            # Every answer is "a", so that some predictions are wrong.
            project.label(item.position, "a", person="Ann")
        before = newest_result(project)
    with open_project(place) as project:
        after = newest_result(project)
    assert before is not None
    assert after is not None
    assert (after.to_dict(), after.checked) == (before.to_dict(), 3)
    assert after.wrong["llm"] > 0


def test_the_first_check_is_planned_for_the_share_of_the_settings(tmp_path: Path) -> None:
    table = {"body": [f"text {row}" for row in range(60)], "llm": ["a", "b"] * 30}
    reading, options = ReadingOptions(text="body"), PredictionOptions(("llm",))
    target = {"at_most": 0.2, "expected": 0.05}
    with make_prediction_project(tmp_path / "p", table, reading, options, target=target) as project:
        assert project.settings.expected == 0.05
        start_first_check(project, "Ann")
        (check,) = project.checks()
        assert check.draw.asked.expected == 0.05
        assert check.draw.terms == SequentialTerms.of_share(0.2, pool=60, alpha=0.025, expected=0.05)
        project.abort_check(person="Ann")
        # Another target is planned for half of it, unless a share is given.
        for at_most, given, planned in ((0.3, None, 0.15), (0.3, 0.1, 0.1), (0.2, None, 0.05)):
            start_prediction_check(project, person="Ann", at_most=at_most, expected=given)
            assert project.checks()[-1].draw.asked.expected == planned
            project.abort_check(person="Ann")
