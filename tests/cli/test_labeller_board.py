"""What each key does to a project, and what is shown then."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from suffice import ErrorStability
from suffice.cli.labeller import keyboard
from suffice.cli.labeller.key_handler import KeyHandler
from suffice.cli.labeller.labeller import Labeller
from suffice.cli.labeller.view import Message, Mode
from suffice.errors import InvalidValueError
from suffice.project.create import write_project
from suffice.project.items import Items
from suffice.project.labelling_project import Project
from suffice.project.learning_status import LearningStatus
from suffice.project.settings import Settings

RULE = ErrorStability(0.1).state_dict()
MAILS = Settings(
    "mails.csv", "classification", ("ham", "spam"), "kind", "text", ("subject", "body"), "body", "logistic", RULE
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
    items = Items(about.shown, ids, about.columns, cells, about.main, X, about.task, about.classes, {}, ())
    with write_project("p.suffice", about, items) as made:
        yield made


def key_handler_of(project: Project) -> KeyHandler:
    labeller = Labeller(project, Still(), "ann")  # type: ignore[arg-type]
    labeller.ask()
    return KeyHandler(labeller)


def test_keys_label_and_say_so(project: Project) -> None:
    key_handler = key_handler_of(project)
    first = key_handler.view().item
    assert first is not None
    assert key_handler.press("2")
    shown = key_handler.view()
    assert (shown.counts.labelled, shown.counts.classes, shown.message.text) == (1, (0, 1), f"{first.id} is spam")
    assert not key_handler.press("7")
    assert key_handler.view().message == Message("'7' is no key here; ? shows the keys", bad=True)
    key_handler.press(f"{keyboard.PASTED}1212")
    assert key_handler.view().message.text == "what is pasted is not taken for keys"
    key_handler.press(keyboard.UNDO)
    assert key_handler.view().item == first
    key_handler.press("u")
    assert "there is nothing of ann to undo" in key_handler.view().message.text
    key_handler.press("c")
    assert key_handler.view().message == Message("there is no label to correct yet", bad=True)
    key_handler.press(keyboard.END)
    assert key_handler.left


def test_a_correction_can_be_left_and_undone(project: Project) -> None:
    key_handler = key_handler_of(project)
    first = key_handler.view().item
    assert first is not None
    key_handler.press("1")
    waiting = key_handler.view().item
    for key in ("c", "5"):
        key_handler.press(key)
    assert "press the number before a label" in key_handler.view().message.text
    key_handler.press("1")
    assert (key_handler.view().mode, key_handler.view().item) == (Mode.correct, first)
    key_handler.press("s")
    assert "Esc goes back" in key_handler.view().message.text
    key_handler.press(keyboard.ESCAPE)
    assert (key_handler.view().mode, key_handler.view().item) == (Mode.label, waiting)
    for key in "c12":
        key_handler.press(key)
    assert project.state().label_of(first.position) == "spam"
    key_handler.press("u")
    assert key_handler.view().message.text == f"the correction of {first.id} is undone"
    assert (key_handler.view().item, project.state().label_of(first.position)) == (waiting, "ham")


@pytest.mark.parametrize("project", [PRICES], indirect=True)
def test_a_number_is_typed_letter_by_letter(project: Project) -> None:
    key_handler = key_handler_of(project)
    for key in ["1", "2", keyboard.BACKSPACE, ".", "5", "x", keyboard.ENTER]:
        key_handler.press(key)
    assert key_handler.view().typed == "1.5x"
    assert key_handler.view().message.bad
    for key in [keyboard.BACKSPACE, keyboard.ENTER]:
        key_handler.press(key)
    assert (key_handler.view().typed, project.state().n_labelled) == ("", 1)
    key_handler.press(f"{keyboard.PASTED}{'9' * 300}")
    assert "more than 200 characters are no label" in key_handler.view().message.text
    key_handler.press(keyboard.ENTER)
    assert "type something first" in key_handler.view().message.text
    key_handler.press("s")
    assert key_handler.view().counts.skipped == 1


def test_when_nothing_is_left_it_is_said(project: Project) -> None:
    key_handler = key_handler_of(project)
    for _ in range(30):
        assert key_handler.view().item is not None
        key_handler.press("1")
    assert key_handler.view().item is None
    key_handler.press("1")
    assert key_handler.view().message.text == "there is no item to label now"
    key_handler.press("u")
    assert key_handler.view().item is not None


def test_what_cannot_be_written_is_said_and_the_item_stays(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    key_handler = key_handler_of(project)
    before = key_handler.view().item

    def full(*_: object, **__: object) -> None:
        raise InvalidValueError("the disk is full")

    with monkeypatch.context() as broken:
        broken.setattr(project, "label", full)
        assert not key_handler.press("1")
    assert key_handler.view().message == Message("the disk is full", bad=True)
    assert key_handler.view().item == before
    key_handler.press("1")
    assert key_handler.view().counts.labelled == 1


def test_what_was_labelled_in_another_window_is_left_behind(project: Project) -> None:
    key_handler, other = key_handler_of(project), key_handler_of(project)
    first = key_handler.view().item
    assert other.view().item == first
    assert other.press("2")
    assert key_handler.press("1")
    shown = key_handler.view()
    assert "has labelled item" in shown.message.text
    assert shown.message.bad
    assert shown.item is not None
    assert shown.item != first
    assert (shown.counts.labelled, shown.counts.classes) == (1, (0, 1))


def test_a_label_that_is_saved_is_said_to_be_so_when_the_next_item_cannot_be_had(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    key_handler = key_handler_of(project)

    def full(*_: object, **__: object) -> None:
        raise InvalidValueError("the disk is full")

    with monkeypatch.context() as broken:
        broken.setattr(project, "next", full)
        key_handler.press("1")
        assert (
            key_handler.view().message.text == "that is saved, but the next item cannot be asked for: the disk is full"
        )
    assert key_handler.view().counts.labelled == 1
    monkeypatch.setattr("suffice.cli.labeller.labeller._ASK_AGAIN", 0.0)
    assert key_handler.view().item is not None
