"""What each key does to a project, and what is shown then."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from suffice import ErrorStability
from suffice.cli.labeller import Labeller, opened_labeller
from suffice.errors import InvalidValueError
from suffice.project.create import write_project
from suffice.project.items import Item, Items
from suffice.project.labelling_project import Project
from suffice.project.learning_status import LearningStatus
from suffice.project.settings import Settings
from suffice.tables.table_cells import CellColumns
from tests.cli.label_screen import LabelScreen
from tests.project.prediction_projects import made, rows

RULE = ErrorStability(0.1).state_dict()
MAILS = Settings(
    "mails.csv", "classification", ("ham", "spam"), "kind", "text", ("subject", "body"), "body", "logistic", RULE
)
BIRDS = replace(
    MAILS, classes=("sparrow", "robin", "blackbird", "tit", "magpie", "jay", "crow", "raven", "wren", "starling")
)
PRICES = replace(MAILS, task="regression", classes=(), model="gp", shown="table", main=None)


class Still:
    """A background learner that learns nothing."""

    learning_status = LearningStatus()

    def wake(self) -> None:
        """Nobody listens."""

    def wait_settled(self, timeout: float) -> bool:
        return timeout < 0.0


@pytest.fixture
def project(request: pytest.FixtureRequest) -> Any:
    about: Settings = getattr(request, "param", MAILS)
    n = 30
    cells = tuple(tuple(f"{name} {k}" for name in about.columns) for k in range(n))
    X = np.random.default_rng(0).normal(size=(n, 2))
    ids = tuple(f"mail-{k}" for k in range(n))
    shown = CellColumns.of_rows(cells)
    items = Items(about.shown, ids, about.columns, shown, about.main, X, about.task, about.classes, {}, ())
    with write_project("p.suffice", about, items) as made:
        yield made


def labeller_of(project: Project, person: str = "ann") -> Labeller:
    labeller = Labeller(project, Still(), person)  # type: ignore[arg-type]
    labeller.ask()
    return labeller


def item_of(labeller: Labeller) -> Item:
    assert labeller.item is not None
    return labeller.item


def full(*_: object, **__: object) -> None:
    raise InvalidValueError("the disk is full")


def test_keys_label_and_say_so(project: Project) -> None:
    labeller = labeller_of(project)
    first = item_of(labeller)
    with LabelScreen(labeller) as screen:
        assert f"─ {first.id} ─" in screen.text()
        text = screen.press("2")
        assert f"{first.id} is spam" in text
        assert "1 of 30 labelled" in text
        assert "ham 0    2  spam 1" in text
        assert "'7' is not a key here; ? shows the keys" in screen.press("7")
        assert "f5 is not a key here" in screen.press("f5")
        assert "pasted text is not used as keys" in screen.paste("1212")
        assert project.state().n_labelled == 1
        assert f"the label of {first.id} is undone" in screen.press("ctrl+z")
        assert labeller.item == first
        assert "there is nothing of ann to undo" in screen.press("u")
        assert "there is no label to correct yet" in screen.press("c")
        assert "1 skipped" in screen.press(":", "s")


@pytest.mark.parametrize("key", ["q", "ctrl+c", "ctrl+d"])
def test_several_keys_leave(project: Project, key: str) -> None:
    with LabelScreen(labeller_of(project)) as screen:
        screen.press("1")
        screen.press(key)
        assert not screen.app.is_running or screen.app._exit
    assert screen.app.return_code == 0
    assert project.state().n_labelled == 1


def test_a_key_that_was_pressed_before_an_item_was_shown_is_not_for_it(project: Project) -> None:
    with LabelScreen(labeller_of(project)) as screen:
        screen.send("1", "2", "2", "s")
        assert project.state().counts() == {"ham": 1}
        assert project.state().n_skipped == 0
        screen.press("2")
        assert project.state().counts() == {"ham": 1, "spam": 1}


def test_a_correction_can_be_left_and_undone(project: Project) -> None:
    labeller = labeller_of(project)
    first = item_of(labeller)
    with LabelScreen(labeller) as screen:
        screen.press("1")
        waiting = item_of(labeller)
        assert "which label is to be corrected?" in screen.press("c")
        assert "press the number before a label" in screen.press("5")
        text = screen.press("1")
        assert f"correct {first.id}" in text
        assert "now it is ham; what should it be?" in text
        assert "Esc goes back" in screen.press("s")
        text = screen.press("escape")
        assert f"─ {waiting.id} ─" in text
        assert "corrected" not in text
        assert f"{first.id} is corrected to spam" in screen.press("c", "1", "2")
        assert project.state().label_of(first.position) == "spam"
        assert f"the correction of {first.id} is undone" in screen.press("u")
        assert (labeller.item, project.state().label_of(first.position)) == (waiting, "ham")


def test_any_key_leaves_the_help(project: Project) -> None:
    with LabelScreen(labeller_of(project)) as screen:
        text = screen.press("?")
        assert "take back your newest label" in text
        assert "any key goes back" in text
        assert "take back" not in screen.press("1")
        assert project.state().n_labelled == 0


@pytest.mark.parametrize("project", [PRICES], indirect=True)
def test_a_number_is_typed_letter_by_letter(project: Project) -> None:
    with LabelScreen(labeller_of(project)) as screen:
        assert "kind: a number, then Enter" in screen.text()
        assert "'n' is neither a number nor a key here" in screen.press("n")
        assert "is neither a number" in screen.press("left", "right", "home")
        text = screen.press("1", "2", "backspace", ".", "5", "x", "\r")
        assert "kind: 1.5x" in text
        assert "is not a number" in text
        assert "is not a number" not in screen.press("backspace")
        screen.press("\r")
        assert [label for _, label, _ in project.state().answers()] == [1.5]
        assert "a label has at most 200 characters" in screen.paste("9" * 300)
        assert "type something first" in screen.press("\r")
        assert "kind: -7␛[31m 5" in screen.paste("-7\x1b[31m\n5")
        screen.press("ctrl+u", "s")
        assert project.state().n_skipped == 1
        screen.press("3", "escape", "u")
        assert (project.state().n_labelled, project.state().n_skipped) == (1, 0)
        screen.press(":", "s")
        assert project.state().n_skipped == 1


@pytest.mark.parametrize("project", [PRICES], indirect=True)
def test_enter_pressed_twice_gives_one_label(project: Project) -> None:
    with LabelScreen(labeller_of(project)) as screen:
        screen.send("4", "enter", "enter", "5", "enter")
        assert [label for _, label, _ in project.state().answers()] == [4.0]
        assert "a number, then Enter" in screen.text()


@pytest.mark.parametrize("project", [BIRDS], indirect=True)
def test_a_class_is_typed_and_a_colon_comes_before_a_command(project: Project) -> None:
    with LabelScreen(labeller_of(project)) as screen:
        text = screen.press("s")
        assert "kind: s" in text
        # Those that may be meant come first.
        assert text.index("starling") < text.index("robin")
        assert "'s' may be sparrow, starling; type more of it" in screen.press("\r")
        screen.press("t", "\r")
        assert project.state().counts() == {"starling": 1}
        assert "1 skipped" in screen.press(":", "s")
        assert "the skip of" in screen.press(":", "u")
        assert "change one of the last ten labels" in (screen.press("?"), screen.words())[1]
        assert "kind:" not in screen.text()
        screen.press("escape", "2", "\r")
        assert project.state().counts() == {"starling": 1, "robin": 1}


def test_a_reached_goal_of_given_predictions_ends_the_questions(tmp_path: Path) -> None:
    truth, table = rows(120, error=0.0)
    with made(tmp_path / "a", table, of="all", probability="p") as project:
        with opened_labeller(project, "ann") as labeller:
            labeller.ask()
            assert 0 < labelled_to_the_end(labeller, truth) < 120
            assert project.reached_goal() is not None
            with LabelScreen(labeller, 120) as screen:
                assert "Your goal is reached, and no more labels are needed." in screen.words()
                # The last label can be undone, and is asked for again.
                screen.press("u")
                assert labelled_to_the_end(labeller, truth) == 1
        with opened_labeller(project, "ann", most=3) as labeller:
            labeller.ask()
            assert labelled_to_the_end(labeller, truth) == 3


def labelled_to_the_end(labeller: Labeller, truth: list[str]) -> int:
    number = 0
    while (item := labeller.item) is not None:
        labeller.label(truth[item.position])
        number += 1
    return number


def test_when_nothing_is_left_it_is_said(project: Project) -> None:
    labeller = labeller_of(project)
    for _ in range(29):
        labeller.label("ham")
    with LabelScreen(labeller, 120) as screen:
        screen.press("1")
        text = screen.words()
        assert "Nothing is left to label for you" in text
        assert "u undo c correct ? help q quit" in text
        assert "s skip" not in text
        assert "there is no item to label now" in screen.press("1")
        screen.press("u")
        assert labeller.item is not None


def test_what_cannot_be_written_is_said_and_the_item_stays(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    labeller = labeller_of(project)
    before = item_of(labeller)
    with LabelScreen(labeller) as screen:
        with monkeypatch.context() as broken:
            broken.setattr(project, "label", full)
            assert "the disk is full" in screen.press("1")
        assert labeller.item == before
        assert "1 of 30 labelled" in screen.press("1")


def test_what_was_labelled_in_another_window_is_left_behind(project: Project) -> None:
    labeller, other = labeller_of(project), labeller_of(project)
    first = item_of(labeller)
    assert other.item == first
    with LabelScreen(labeller) as screen:
        other.label("spam")
        assert "has labelled this item" in screen.press("1")
        assert labeller.item not in (None, first)
        assert project.state().counts() == {"spam": 1}


def test_what_others_do_is_shown_without_a_key(project: Project) -> None:
    with LabelScreen(labeller_of(project)) as screen:
        labeller_of(project, "bob").label("spam")
        assert "1 of 30 labelled" in screen.look()


def test_a_label_that_is_saved_is_said_to_be_so_when_the_next_item_cannot_be_had(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    labeller = labeller_of(project)
    with LabelScreen(labeller, 120) as screen:
        with monkeypatch.context() as broken:
            broken.setattr(project, "next", full)
            text = screen.press("1")
            assert "your answer is saved, but the next item could not be requested: the disk is full" in text
        assert "1 of 30 labelled" in screen.text()
        monkeypatch.setattr("suffice.cli.labeller._ASK_AGAIN", 0.0)
        screen.look()
        assert labeller.item is not None
