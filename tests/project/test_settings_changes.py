"""Settings that are changed later: who changed what, validation, and what the rule says of the same labels."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from suffice import LabelWorth
from suffice.errors import InvalidValueError
from suffice.presentation.project_words import setting_change_sentence
from suffice.project.background_learner import BackgroundLearner
from suffice.project.create import create_project, open_project
from suffice.project.events import EventKind
from suffice.project.labelling_project import ConflictError, Project
from suffice.project.project_learner import ProjectLearner
from tests.project.making_projects import make
from tests.project.test_class_changes import bands, label_some


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    with make(tmp_path / "pets.suffice", rule=LabelWorth().state_dict()) as project:
        yield project


def test_every_setting_is_changed_written_and_read_again(project: Project) -> None:
    before = project.settings
    changes: dict[str, Any] = {
        "name": " Pets 2 ",
        "guidelines": "# How\r\n\r\n- *look*",
        "descriptions": {"eel": "a long fish", "cat": "", "dog": " barks "},
        "label_cost": 2,
        "mistake_cost": 5.0,
        "at_most": 0.05,
        "overlap": 0.25,
    }
    receipt = project.change_settings(changes, person="ann", request="one")
    assert project.change_settings(changes, person="ann", request="one").repeated
    now = project.settings
    assert (now.name, now.guidelines, now.at_most, now.overlap) == ("Pets 2", "# How\n\n- *look*", 0.05, 0.25)
    assert now.descriptions == {"dog": "barks", "eel": "a long fish"}
    assert now.costs() == (2.0, 5.0)
    assert now.criterion() == LabelWorth(label_cost=2.0, mistake_cost=5.0)
    assert project.first_settings == before
    with open_project(Path(project.place).parent) as other:
        assert other.settings == now
        assert other.state().revision == receipt.seq
        assert [event.person for event in other.setting_changes()] == ["ann"]
    project.change_settings({"at_most": None}, person="bob")
    assert project.settings.at_most is None
    with pytest.raises(ConflictError, match="nothing changes"):
        project.change_settings({"overlap": 0.25, "label_cost": 2.0}, person="ann")
    words = [setting_change_sentence(event.kind.value, event.data) for event in project.setting_changes()]
    assert words[0] == "changed the target error from 0.05 to none"
    assert "the cost of a label from 1 to 2; the cost of a mistake from 1 to 5" in words[1]
    assert "the name from “pets” to “Pets 2”; the guidelines; descriptions of classes" in words[1]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"name": ""}, "name must be 1 to 200 characters"),
        ({"name": "a\nb"}, "name must be 1 to 200 characters without control characters"),
        ({"guidelines": "x" * 20_001}, "guidelines must be 0 to 20,000 characters .* not 20,001 characters"),
        ({"guidelines": 3}, "guidelines must be"),
        ({"descriptions": {"cow": "moo"}}, "descriptions has 'cow', which is none of the classes: cat, dog, eel"),
        ({"descriptions": {"cat": "x" * 501}}, "a description must be 0 to 500 characters"),
        ({"descriptions": ["cat"]}, "descriptions must be a text for each class"),
        ({"label_cost": 0.0}, "label_cost must be .*above 0"),
        ({"mistake_cost": float("nan")}, "mistake_cost must be"),
        ({"at_most": 1.0}, "at_most must be .*above 0 and below 1, a share of wrong predictions"),
        ({"overlap": 1.5}, "overlap must be .*from 0 to 1"),
        ({"seed": 3}, "'seed' cannot be changed; what can is name, guidelines"),
    ],
)
def test_values_that_cannot_be_used_are_answered(project: Project, changes: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidValueError, match=words):
        project.change_settings(changes, person="ann")
    assert [event.kind for event in project.events()] == [EventKind.made]


def test_a_rule_without_costs_has_none_to_change(tmp_path: Path) -> None:
    with make(tmp_path / "p") as project:
        assert project.settings.costs() is None
        with pytest.raises(InvalidValueError, match="the rule ErrorStability weighs no costs"):
            project.change_settings({"label_cost": 2.0}, person="ann")
    with make(tmp_path / "q", rule=LabelWorth(error_cost=100.0).state_dict()) as project:
        assert project.settings.costs() == (1.0, None)
        project.change_settings({"label_cost": 2.0}, person="ann")
        assert project.settings.criterion() == LabelWorth(error_cost=100.0, label_cost=2.0)
        project.change_settings({"mistake_cost": 3.0}, person="ann")
        assert project.settings.criterion() == LabelWorth(label_cost=2.0, mistake_cost=3.0)


def test_descriptions_follow_their_classes(project: Project) -> None:
    told = {"cat": "meows", "dog": "barks", "eel": "swims"}
    project.change_settings({"descriptions": told}, person="ann")
    project.rename_class("cat", "tiger", person="ann")
    project.merge_classes(["eel"], "dog", person="ann")
    assert project.settings.descriptions == {"tiger": "meows", "dog": "barks"}
    project.rename_class("dog", "x", person="bob")
    assert project.settings.descriptions == {"tiger": "meows", "x": "barks"}


@pytest.mark.slow
def test_other_costs_judge_the_same_labels_anew(tmp_path: Path) -> None:
    with bands(tmp_path / "p", rule=LabelWorth().state_dict()) as project:
        label_some(project, 30)
        with BackgroundLearner(project, project.learned_files) as background:
            assert background.wait_settled(60.0)
            cheap = background.learning_status
            project.change_settings({"label_cost": 1000.0}, person="ann")
            assert background.wait_settled(60.0)
            dear = background.learning_status
        assert cheap.verdict is not None
        assert dear.verdict is not None
        assert cheap.verdict.threshold != dear.verdict.threshold
        fresh = ProjectLearner(project.current_settings, project.X)
        fresh.follow(project.state().answers())
        found = fresh.learning_status()
        assert (found.verdict, found.stopped_at) == (dear.verdict, dear.stopped_at)
        assert dear.stopped_at is not None
        # The name changes nothing in what is learned.
        kept = project.current_settings
        project.change_settings({"name": "other"}, person="ann")
        assert project.current_settings.learns_like(kept)


def test_a_project_is_made_with_guidelines(tmp_path: Path) -> None:
    with create_project(tmp_path / "p", {"x": [1, 2, 3]}, classes=["a", "b"], guidelines="*look*") as project:
        assert project.settings.guidelines == "*look*"
    with pytest.raises(InvalidValueError, match="guidelines must be"):
        create_project(tmp_path / "q", {"x": [1, 2, 3]}, classes=["a", "b"], guidelines="x" * 20_001)
