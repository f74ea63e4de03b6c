"""After a check, text, curve, JSON and report of a project state one error, which counts the labels of the check."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from textual.geometry import Size

from suffice.cli.label_app import Standing, progress_lines
from suffice.cli.labeller import Counts
from suffice.cli.project_options import learned_project
from suffice.project.background_learner import BackgroundLearner
from suffice.project.create import open_project
from suffice.project.labelling_project import Project
from suffice.project.learning_status import LearningStatus
from suffice.project.status_summary import status
from suffice.report.project_report import error_chart, project_report_contents, report_page
from tests.project.labelled_projects import label_some, learned
from tests.project.making_projects import make
from tests.project.test_switching import LABELS, N, circle
from tests.reading import Reader

BEFORE, SIZE = 61, 100


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    """A project with random labels only, and a check of it that has no answers."""
    with circle(tmp_path / "p", BEFORE) as made:
        made.start_check(SIZE, person="ann")
        yield made


def check_items(project: Project) -> list[int]:
    return list(project.checks()[-1].record.items)


def answer(project: Project, items: list[int]) -> None:
    for item in items:
        project.label(item, LABELS[item], person="ann")


def words(text: str) -> str:
    return " ".join(text.replace("\u00a0", " ").split())


def assert_one_error(project: Project, results: LearningStatus, n_labelled: int, random_labels: int) -> dict[str, Any]:
    """All places state the same error, interval, number of labels and number of random labels; return the status."""
    current: dict[str, Any] = json.loads(json.dumps(status(project, results), allow_nan=False))
    decision, curve = current["decision"], current["error"]["estimates"]
    error = decision["error"]
    assert curve[-1] == [decision["n_labelled"], error["value"], error["low"], error["high"]]
    assert current["error"]["random_labels"] == error["random_labels"] == random_labels
    assert decision["n_labelled"] == n_labelled
    # The text.
    value = f"{100.0 * error['value']:.0f}"
    assert words(decision["error_figure"]) == f"{value} %"
    assert f"after {n_labelled} labels" in decision["error_note"]
    assert f"estimated from {random_labels} labels of items drawn at random" in decision["error_note"]
    sentences = words(" ".join(current["words"]))
    shares = re.findall(r"about ([\d.]+) % of the [\d,]+ unlabelled items are predicted wrong", sentences)
    assert shares == [value]
    # The report.
    report = words(Reader(report_page(project, results)).text)
    assert f"{value} % {words(decision['error_note'])}" in report
    assert set(re.findall(r"bout ([\d.]+) % of the [\d,]+ unlabelled items", report)) == {value}
    assert f"corrected with {random_labels} labels" in report
    chart = error_chart(project_report_contents(project, results))
    assert list(chart.line[-1]) == [n_labelled, error["value"]]
    assert list(chart.band[-1]) == [n_labelled, error["low"], error["high"]]
    return current


@pytest.mark.slow
def test_text_curve_json_and_report_state_one_error(project: Project) -> None:
    items = check_items(project)
    _, results = learned(project)
    before = assert_one_error(project, results, BEFORE, BEFORE)
    answer(project, items[:-1])
    _, results = learned(project)
    # Answers of an open check change nothing.
    current = assert_one_error(project, results, BEFORE, BEFORE)
    assert current["decision"]["error"] == before["decision"]["error"]
    answer(project, items[-1:])
    _, results = learned(project)
    current = assert_one_error(project, results, BEFORE + SIZE, BEFORE + SIZE)
    assert current["decision"]["error"] != before["decision"]["error"]
    assert current["decision"]["unlabelled"] == N - BEFORE - SIZE
    assert (current["learned"], current["held"], current["behind"]) == (BEFORE, SIZE, 0)
    # The guarantee is the statement of the check alone.
    guarantee = current["guarantee"]
    assert (guarantee["checked"], guarantee["about_present_model"]) == (SIZE, True)
    assert guarantee["value"] > current["decision"]["error"]["value"]
    # The number of random labels stays when they are learned.
    (asked,) = project.next("ann")
    answer(project, [asked.position])
    _, results = learned(project)
    assert results.n_labelled == BEFORE + SIZE + 1
    assert_one_error(project, results, BEFORE + SIZE + 1, BEFORE + SIZE + 1)


def test_an_undone_answer_opens_the_check_again(project: Project) -> None:
    _, before = learned(project)
    answer(project, check_items(project))
    _, complete = learned(project)
    assert complete != before
    project.undo(person="ann")
    assert project.state().checked() == []
    _, again = learned(project)
    assert again == before


def test_a_corrected_answer_of_a_complete_check_counts(project: Project) -> None:
    items = check_items(project)
    answer(project, items)
    _, before = learned(project)
    project.correct(items[3], "outside" if LABELS[items[3]] == "inside" else "inside", person="ann")
    _, after = learned(project)
    assert after.n_labelled == before.n_labelled == BEFORE
    assert after.errors[-1].value != before.errors[-1].value
    assert_one_error(project, after, BEFORE + SIZE, BEFORE + SIZE)


def test_an_aborted_check_is_learned(project: Project) -> None:
    answer(project, check_items(project)[:10])
    project.abort_check(person="ann")
    assert project.state().checked() == []
    _, results = learned(project)
    assert (results.n_labelled, results.n_checked) == (BEFORE + 10, 0)
    assert_one_error(project, results, BEFORE + 10, BEFORE + 10)


def test_skipped_items_of_a_check_are_not_random_labels(project: Project) -> None:
    items = check_items(project)
    answer(project, items[2:])
    for item in items[:2]:
        project.skip(item, person="ann")
    _, results = learned(project)
    assert results.n_checked == SIZE
    current = assert_one_error(project, results, BEFORE + SIZE - 2, BEFORE + SIZE - 2)
    assert current["decision"]["unlabelled"] == N - BEFORE - SIZE


def test_labels_of_a_check_of_a_predicted_class_are_not_random(tmp_path: Path) -> None:
    with circle(tmp_path / "p", BEFORE) as project:
        project.start_check(20, person="ann", precision_of="inside")
        answer(project, check_items(project))
        _, results = learned(project)
        assert_one_error(project, results, BEFORE + 20, BEFORE)


def test_numbers_have_one_error_too(tmp_path: Path) -> None:
    with make(tmp_path / "p", 120, initial=4, task="regression", random_share=1.0) as project:
        for asked in project.next("ann", 30):
            label_some(project, [asked.position])
        project.start_check(40, person="ann", tolerance=0.5)
        label_some(project, check_items(project))
        _, results = learned(project)
        current = status(project, results)
        error = current["decision"]["error"]
        assert current["error"]["estimates"][-1] == [70, error["value"], error["low"], error["high"]]
        assert (current["decision"]["n_labelled"], error["random_labels"]) == (70, 70)


def test_the_terminal_states_the_same(project: Project) -> None:
    answer(project, check_items(project))
    _, results = learned(project)
    figure = status(project, results)["decision"]["error_figure"]
    standing = Standing(project.settings, "ann", Counts(BEFORE + SIZE, 0, N, ()), results)
    shown = words(" ".join(line.plain for line in progress_lines(standing, Size(200, 40))))
    assert f"about {words(figure)}" in shown


def without_comparison(status: LearningStatus) -> Any:
    """The numbers of a decision, and the better model that is named, without how many labels it was compared on.

    Models are compared after a round of learning, which ends after a second.
    """
    assert status.numbers is not None
    better = status.numbers.alternative
    named = None if better is None else (better.name, better.clear)
    return replace(status.numbers, alternative=None), named


@pytest.mark.slow
def test_saved_results_are_the_same_after_a_restart(project: Project, tmp_path: Path) -> None:
    with BackgroundLearner(project, project.learned_files) as background:
        assert background.wait_settled(60)
        opened = background.learning_status
        answer(project, check_items(project))
        # The answers of a complete check are waited for.
        assert background.wait(BEFORE + SIZE, 60)
        complete = background.learning_status
        assert complete.n_checked == SIZE
        assert complete != opened
    _, by_hand = learned(project)
    assert (by_hand.errors, without_comparison(by_hand)) == (complete.errors, without_comparison(complete))
    with open_project(tmp_path / "p") as again:
        state = again.state()
        saved = again.learned_files.status(again.settings, state.learned(), state.checked())
        assert saved == complete
        assert again.learned_files.status(again.settings, state.learned()) is None
        assert learned_project(again, "p").learning_status == complete
        assert_one_error(again, saved, BEFORE + SIZE, BEFORE + SIZE)
        with BackgroundLearner(again, again.learned_files) as background:
            assert background.wait_settled(60)
            assert background.learning_status == complete
            # Labelling continues: the labels of the check are learned as random labels.
            (asked,) = again.next("ann")
            answer(again, [asked.position])
            assert background.wait_settled(60)
            later = background.learning_status
        assert (later.n_labelled, later.n_checked) == (BEFORE + SIZE + 1, 0)
        _, by_hand = learned(again)
        assert (later.errors, without_comparison(later)) == (by_hand.errors, without_comparison(by_hand))
        assert_one_error(again, later, BEFORE + SIZE + 1, BEFORE + SIZE + 1)


def test_the_advice_in_the_journal_counts_the_check(project: Project) -> None:
    with BackgroundLearner(project) as background:
        answer(project, check_items(project))
        assert background.wait(BEFORE + SIZE, 60)
        assert background.wait_settled(60)
        decision = background.learning_status.decision
    assert decision is not None
    assert decision.n_labelled == project.state().n_decided == BEFORE + SIZE
    assert (project.state().advice is not None) == decision.stop
