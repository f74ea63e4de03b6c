"""The history of settings: the changes in the journal, which is not read again for it."""

from pathlib import Path

import pytest

from suffice.project.create import open_project
from suffice.project.events import EventKind
from suffice.project.journal import ProjectJournal
from tests.project.making_projects import make

CHANGES = {EventKind.settings_changed, EventKind.classes_changed, EventKind.model_changed}


def test_the_history_has_the_changes_of_the_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with make(tmp_path / "p") as project:
        names = ["dog", "hound"]
        for turn in range(3):
            project.label(turn, "cat", person="ann")
            project.change_settings({"guidelines": f"Look {turn} times."}, person="ann")
            project.rename_class(names[turn % 2], names[(turn + 1) % 2], person="ann")
            project.switch_model(("kernel", "logistic")[turn % 2], person="bob")
        changed = [event for event in reversed(project.events()) if event.kind in CHANGES]
        assert project.setting_changes() == changed
        assert len(changed) == 9
        with monkeypatch.context() as without:
            without.setattr(ProjectJournal, "events", None)
            assert project.setting_changes() == changed
    with open_project(tmp_path / "p") as again:
        assert again.setting_changes() == changed
        # A list of its own.
        again.setting_changes().clear()
        assert again.setting_changes() == changed
