"""Labelling by lines: the progress is stated from time to time, and the advice when it changes."""

import io
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from suffice.cli import labeller as labeller_module
from suffice.cli.labeller import Labeller, label_by_lines, learn_last_answers, opened_labeller
from suffice.project import Project
from suffice.project.project_learner import ProjectLearner
from tests.project.labelled_projects import label_some, of_feature
from tests.project.making_projects import make


def answers(project: Project, labeller: Labeller, number: int) -> Iterator[str]:
    """The right label of each item that is asked for, as lines."""
    for _ in range(number):
        if labeller.item is None:
            return
        yield f"{of_feature(project, labeller.item.position)}\n"


def said_by_lines(project: Project, number: int) -> list[str]:
    """What is printed while so many items are labelled, without the items themselves."""
    printed = io.StringIO()
    with opened_labeller(project, "ann", by_keys=False) as labeller:
        label_by_lines(labeller, Console(file=printed, width=400), answers(project, labeller, number))
    return [line.replace("\u00a0", " ") for line in printed.getvalue().splitlines()]


def test_the_progress_is_stated_when_the_advice_changes_and_every_ten_labels(tmp_path: Path) -> None:
    with make(tmp_path / "pets.suffice", 120) as project:
        lines = said_by_lines(project, 45)
    labelled, stated = 0, []
    for line in lines:
        labelled += " is " in line and line.startswith("id-")
        if line.startswith(("Too early to say: ", "Keep labelling: ", "You can stop now: ", "The model is being")):
            stated.append(labelled)
    assert labelled == 45
    assert stated == sorted(set(stated))
    # Before the first label nothing is stated, because nothing has changed.
    assert all(0 < after - before <= 10 for before, after in zip([0, *stated], [*stated, 45], strict=True) if after)
    assert any(line.startswith(("Keep labelling: ", "You can stop now: ")) for line in lines)


def test_the_progress_of_a_check_is_stated_beside_each_item(tmp_path: Path) -> None:
    with make(tmp_path / "pets.suffice", 60) as project:
        label_some(project, range(20))
        project.start_check(3, person="ann")
        lines = said_by_lines(project, 3)
        guarantee = project.guarantee()
    progress = [line for line in lines if line.startswith("Check: ")]
    assert [line.partition(" of 3")[0] for line in progress] == ["Check: 0", "Check: 1", "Check: 2"]
    assert guarantee is not None
    assert sum(line.startswith("Guaranteed: ") for line in lines) == 1


def slow_learning(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every answer takes a while to learn."""
    tell = ProjectLearner._tell

    def slowly(self: ProjectLearner, *given: Any) -> None:
        time.sleep(0.1)
        tell(self, *given)

    monkeypatch.setattr(ProjectLearner, "_tell", slowly)
    monkeypatch.setattr(labeller_module, "_PROGRESS", 0.05)
    monkeypatch.setattr(labeller_module, "_PROGRESS_LINE", 0.0)


@pytest.mark.parametrize("on_terminal", [False, True])
def test_the_last_answers_are_learned_with_progress(
    on_terminal: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow_learning(monkeypatch)
    printed = io.StringIO()
    console = Console(file=printed, width=400, force_terminal=on_terminal, color_system=None)
    with make(tmp_path / "pets.suffice", 60) as project:
        label_some(project, range(20))
        with opened_labeller(project, "ann", by_keys=False) as labeller:
            learn_last_answers(labeller, console, 60.0)
            assert labeller.background.learning_status.n_answers == 20
    told = printed.getvalue()
    assert "The model is learning: " in told
    assert "All answers are saved. Ctrl-C ends this; the model learns the others when the project is opened" in told
    learned = [int(number) for number in re.findall(r"(\d+) of the last (?:\d+) answers are learned", told)]
    assert len(set(learned)) > 1
    assert learned == sorted(learned)


def test_nothing_is_said_where_nothing_is_left_to_learn(tmp_path: Path) -> None:
    printed = io.StringIO()
    with make(tmp_path / "pets.suffice", 60) as project:
        label_some(project, range(3))
        with opened_labeller(project, "ann", by_keys=False) as labeller:
            labeller.caught_up(60.0)
            learn_last_answers(labeller, Console(file=printed), 60.0)
    assert printed.getvalue() == ""


def test_learning_ends_at_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow_learning(monkeypatch)
    with make(tmp_path / "pets.suffice", 60) as project:
        label_some(project, range(40))
        with opened_labeller(project, "ann", by_keys=False) as labeller:
            assert 0 < [*labeller.unlearned_at_end(0.3)][-1] <= 40
