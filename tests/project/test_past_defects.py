"""Past defects of a project, its model and its messages, which must not come back."""

import io
import json
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from suffice import ErrorStability
from suffice.cli.app import run
from suffice.cli.labeller import label_by_lines, opened_labeller
from suffice.cli.terminal_display import read_picture
from suffice.errors import InvalidValueError
from suffice.forecast import Forecast
from suffice.project import background_learner as background_module
from suffice.project.background_learner import BackgroundLearner
from suffice.project.create import open_project
from suffice.project.events import EventKind, checked_label
from suffice.project.labelling_project import ConflictError, Project
from suffice.project.learning_status import LearningStatus
from suffice.project.project_learner import ProjectLearner
from suffice.project.read_items import ReadingOptions, read_items
from suffice.project.state import Answer
from suffice.project.status_summary import status
from suffice.project.storage import FILE, StorageError
from suffice.session.decision import Decision
from tests.project.decided import decision
from tests.project.labelled_projects import label_some, learned, of_feature
from tests.project.making_projects import CLASSES, about, make

Image: Any = pytest.importorskip("PIL.Image", reason="images: Pillow is not installed")
# Seconds after which a test gives up; nothing takes that long.
LONG = 60.0
LABELS = 20


# The model that follows


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A project with labels and a skip, and a rule that soon has something to say."""
    monkeypatch.setattr(background_module, "_POLL", 0.02)
    rule = ErrorStability(threshold=0.5, calibration=3).state_dict()
    with make(tmp_path / "pets.suffice", 60, initial=5, rule=rule) as made:
        label_some(made, range(LABELS))
        made.skip(LABELS, person="ann")
        yield made


class Gate:
    """Keeps a background learner from looking at the journal, or from going on with what it saw."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.open, self.inside = threading.Event(), threading.Event()
        self.open.set()
        self.leave: Callable[[BackgroundLearner], bool] | None = None
        look, gate = BackgroundLearner._pending_work, self

        def gated(background: BackgroundLearner) -> Any:
            assert gate.open.wait(LONG)
            seen = look(background)
            if gate.leave is not None:
                gate.inside.set()
                _until(lambda: gate.leave is None or gate.leave(background) or background._closing)
                gate.leave = None
            return seen

        monkeypatch.setattr(BackgroundLearner, "_pending_work", gated)


def _until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + LONG
    while not holds():
        assert time.monotonic() < end, "it did not come to that"
        time.sleep(0.002)


def _one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> list[LearningStatus]:
    """Let project learners learn one label a round; what background learners say from now on."""
    follow, publish, said = ProjectLearner.follow, BackgroundLearner._publish, []

    def slowly(self: ProjectLearner, answers: list[Answer], **_: Any) -> None:
        given = iter([False, True])
        follow(self, answers, patience=lambda: next(given))

    def noted(self: BackgroundLearner, learning_status: LearningStatus) -> None:
        said.append(learning_status)
        publish(self, learning_status)

    monkeypatch.setattr(ProjectLearner, "follow", slowly)
    monkeypatch.setattr(BackgroundLearner, "_publish", noted)
    return said


def _other(project: Project, item: int) -> str:
    return next(name for name in CLASSES if name != project.state().label_of(item))


def _correct(project: Project) -> None:
    project.correct(3, _other(project, 3), person="bob")


def _undo_and_label(project: Project) -> None:
    project.undo(person="ann")
    project.undo(person="ann")
    project.label(LABELS - 1, "eel", person="ann")
    project.skip(LABELS, person="ann")


CHANGES = pytest.mark.parametrize("change", [_correct, _undo_and_label])


def _is_that_of_now(background: BackgroundLearner, project: Project) -> None:
    """The background learner says and predicts what one says that has just learned everything."""
    project_learner, expected = learned(project)
    found = background.learning_status
    assert (found.n_answers, found.n_labelled, found.verdict) == (
        expected.n_answers,
        expected.n_labelled,
        expected.verdict,
    )
    assert (found.curve, found.errors) == (expected.curve, expected.errors)
    assert (found.forecast, found.decision, found.problem) == (expected.forecast, expected.decision, "")
    now, then = background.predictions(), project_learner.predict(project.X)
    np.testing.assert_array_equal(now.probabilities, then.probabilities)


@pytest.mark.slow
@CHANGES
def test_a_change_that_leaves_the_count_is_waited_for(
    project: Project, change: Callable[[Project], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate(monkeypatch)
    with BackgroundLearner(project) as background:
        assert background.wait_settled(LONG)
        _is_that_of_now(background, project)
        before = background.predictions()
        gate.open.clear()
        change(project)
        assert background.wait(LABELS + 1, 0.0)
        assert not background.wait_settled(0.05)
        gate.open.set()
        assert background.wait_settled(LONG)
        _is_that_of_now(background, project)
        assert not np.array_equal(before.uncertainty, background.predictions().uncertainty)


@CHANGES
def test_a_look_from_before_the_change_does_not_count(
    project: Project, change: Callable[[Project], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate(monkeypatch)
    with BackgroundLearner(project) as background:
        assert background.wait_settled(LONG)
        # The next look is held until somebody waits, which is after the change.
        gate.leave = lambda held: held._woken
        assert gate.inside.wait(LONG)
        change(project)
        assert background.wait_settled(LONG)
        _is_that_of_now(background, project)


def test_whoever_waits_for_a_slow_model_gets_all_of_it(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    with BackgroundLearner(project) as background:
        assert background.wait_settled(LONG)
        with monkeypatch.context() as patch:
            _one_at_a_time(patch)
            _correct(project)
            assert background.wait_settled(LONG)
        _is_that_of_now(background, project)


def test_a_model_that_gave_up_is_not_settled(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any, **__: Any) -> None:
        raise np.linalg.LinAlgError("it is singular")

    with BackgroundLearner(project) as background:
        assert background.wait_settled(LONG)
        with monkeypatch.context() as patch:
            patch.setattr("suffice.project.project_learner.ActiveLearner.tell", fails)
            _correct(project)
            assert not background.wait_settled(LONG)
            assert "it is singular" in background.learning_status.problem
            assert not background.wait_settled(LONG)
        label_some(project, [30])
        assert background.wait_settled(LONG)
        _is_that_of_now(background, project)


def test_one_that_is_closed_or_was_not_started_never_settles(project: Project) -> None:
    background = BackgroundLearner(project)
    assert not background.wait_settled(0.01)
    with background:
        assert background.wait_settled(LONG)
    assert not background.wait_settled(LONG)


def _advice(project: Project) -> list[EventKind]:
    kinds = (event.kind for event in project.events())
    return [kind for kind in kinds if kind in (EventKind.advised, EventKind.withdrawn)]


def _say_how_far_they_are(parts: list[LearningStatus], answers: int) -> None:
    for part in parts:
        assert part.verdict is not None
        assert (part.verdict.stop, part.verdict.ready, part.verdict.value) == (False, False, None)
        assert (part.forecast, part.decision) == (None, None)
        assert part.verdict.reason == f"the model is learning the labels again, {part.n_answers} of {answers} so far"


@pytest.mark.one_in(2)
@pytest.mark.parametrize("from_the_start", [True, False])
def test_nothing_is_said_of_a_part_while_the_past_is_learned_again(
    project: Project, from_the_start: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = LABELS + 1
    advise, told = Project.advise, []

    def noted(self: Project, decision: Decision) -> bool:
        told.append(decision)
        return advise(self, decision)

    background = BackgroundLearner(project)
    with monkeypatch.context() as patch:
        if not from_the_start:
            background.start()
            assert background.wait_settled(LONG)
        patch.setattr(Project, "advise", noted)
        before, said = len(_advice(project)), _one_at_a_time(patch)
        if from_the_start:
            background.start()
        else:
            project.correct(0, _other(project, 0), person="bob")
        assert background.wait_settled(LONG)
    parts = [each for each in said if each.n_answers < answers]
    assert [each.n_answers for each in parts] == list(range(1, answers))
    _say_how_far_they_are(parts, answers)
    # Advice is of all labels, or there is none.
    assert [each.n_labelled for each in told] in ([], [LABELS])
    assert len(_advice(project)) - before == len(told)
    _is_that_of_now(background, project)
    background.close()
    # A part does have something to say, which nobody was to hear.
    project_learner, ready = ProjectLearner(project.settings, project.X), []
    for n in range(1, answers):
        project_learner.follow(project.state().answers()[:n])
        verdict = project_learner.learning_status().verdict
        assert verdict is not None
        ready.append(verdict.ready)
    assert any(ready)


def test_new_labels_are_judged_one_by_one_on_the_way(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    with BackgroundLearner(project) as background:
        assert background.wait_settled(LONG)
        with monkeypatch.context() as patch:
            said = _one_at_a_time(patch)
            label_some(project, range(30, 34))
            assert background.wait_settled(LONG)
        _is_that_of_now(background, project)
    assert all(each.verdict is not None and each.verdict.ready for each in said)


def test_after_a_failure_nothing_is_said_of_a_part_either(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any, **__: Any) -> None:
        raise np.linalg.LinAlgError("it is singular")

    with BackgroundLearner(project) as background:
        assert background.wait_settled(LONG)
        with monkeypatch.context() as patch:
            patch.setattr("suffice.project.project_learner.ActiveLearner.tell", fails)
            label_some(project, [30])
            assert not background.wait_settled(LONG)
        with monkeypatch.context() as patch:
            said = _one_at_a_time(patch)
            label_some(project, [31])
            assert background.wait_settled(LONG)
        _is_that_of_now(background, project)
    parts = [each for each in said if each.verdict is not None and each.n_answers < LABELS + 3]
    assert not any(each.verdict.ready for each in parts if each.verdict is not None)
    _say_how_far_they_are(parts, LABELS + 3)


# Damaged projects


def _blob(file: sqlite3.Connection) -> bytes:
    return bytes(file.execute("SELECT numbers FROM features").fetchone()[0])


def _without_task(file: sqlite3.Connection) -> None:
    made = json.loads(file.execute("SELECT data FROM events WHERE seq = 1").fetchone()[0])
    del made["settings"]["task"]
    file.execute("UPDATE events SET data = ? WHERE seq = 1", [json.dumps(made)])


def _sql(statement: str, *values: Any) -> Callable[[sqlite3.Connection], None]:
    return lambda file: _done(file, statement, *values)


def _done(file: sqlite3.Connection, statement: str, *values: Any) -> None:
    assert file.execute(statement, values).rowcount


JOURNAL: dict[str, Callable[[sqlite3.Connection], None]] = {
    "a gap": _sql("DELETE FROM events WHERE seq = 4"),
    "an unknown kind": _sql("UPDATE events SET kind = 'sung' WHERE seq = 4"),
    "bad JSON": _sql("UPDATE events SET data = '{\"label\": ' WHERE seq = 4"),
    "data that are no table": _sql("UPDATE events SET data = '[1]' WHERE seq = 4"),
    "an item out of range": _sql("UPDATE events SET item = 20 WHERE seq = 4"),
    "an item below zero": _sql("UPDATE events SET item = -1 WHERE seq = 4"),
    "no item": _sql("UPDATE events SET item = NULL WHERE seq = 4"),
    "an undo of nothing": _sql("UPDATE events SET kind = 'undone', data = '{\"of\": 3}' WHERE seq = 4"),
    "an undo of no event": _sql("UPDATE events SET kind = 'undone', item = 2, data = '{\"of\": 99}' WHERE seq = 6"),
    "no label": _sql("UPDATE events SET data = '{}' WHERE seq = 4"),
    "a list for a label": _sql("UPDATE events SET data = '{\"label\": [1]}' WHERE seq = 4"),
    "settings without a task": _without_task,
    "no settings": _sql("UPDATE events SET data = '{}' WHERE seq = 1"),
    "a seed that is none": _sql('UPDATE events SET data = replace(data, \'"seed": 0\', \'"seed": "x"\')'),
}
FEATURES: dict[str, Callable[[sqlite3.Connection], None]] = {
    "features too short": lambda file: _done(file, "UPDATE features SET numbers = ?", _blob(file)[:-24]),
    "features of half a number": lambda file: _done(file, "UPDATE features SET numbers = ?", _blob(file)[:-3]),
    "features of another width": _sql("UPDATE features SET width = 7"),
    "features of no width": _sql("UPDATE features SET width = 0"),
    "no features": _sql("DELETE FROM features"),
    "an item missing": _sql("DELETE FROM items WHERE position = 19"),
}
CELLS: dict[str, Callable[[sqlite3.Connection], None]] = {
    "cells too short": _sql("UPDATE items SET cells = '[\"one\"]' WHERE position = 2"),
    "cells that are no JSON": _sql("UPDATE items SET cells = 'x' WHERE position = 2"),
    "an item missing in between": _sql("UPDATE items SET position = 40 WHERE position = 2"),
}


def _damaged(folder: Path, damage: Callable[[sqlite3.Connection], None]) -> Path:
    with make(folder / "pets.suffice") as project:
        label_some(project, range(12))
    file = sqlite3.connect(folder / "pets.suffice" / FILE)
    damage(file)
    file.commit()
    file.close()
    return folder / "pets.suffice"


def _says_so(place: Path, error: StorageError) -> None:
    said = str(error)
    assert said.startswith(f"{place / FILE} is damaged: ")
    assert said.endswith("; take it from a backup, or see what can be recovered: suffice repair")
    assert len(said.splitlines()) == 1


def _command(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["suffice", *arguments])
    try:
        return run()
    except SystemExit as left:
        return int(left.code or 0)


@pytest.mark.parametrize("damage", JOURNAL.values(), ids=JOURNAL)
def test_a_damaged_journal_is_a_sentence(
    tmp_path: Path,
    damage: Callable[[sqlite3.Connection], None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    place = _damaged(tmp_path, damage)
    with pytest.raises(StorageError) as caught:
        open_project(place)
    _says_so(place, caught.value)
    assert _command(monkeypatch, "status", str(place)) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err == f"suffice: {caught.value}\n"


@pytest.mark.parametrize("damage", FEATURES.values(), ids=FEATURES)
def test_damaged_features_are_a_sentence(
    tmp_path: Path,
    damage: Callable[[sqlite3.Connection], None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    place = _damaged(tmp_path, damage)
    with open_project(place) as project, pytest.raises(StorageError) as caught:
        _ = project.X
    _says_so(place, caught.value)
    # Labels can be counted without a model.
    assert _command(monkeypatch, "status", str(place)) == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[1] == f"There is no model: {caught.value}."
    assert err.strip() == ""


@pytest.mark.parametrize("damage", CELLS.values(), ids=CELLS)
def test_damaged_cells_are_a_sentence(
    tmp_path: Path,
    damage: Callable[[sqlite3.Connection], None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    place = _damaged(tmp_path, damage)
    with open_project(place) as project:
        assert project.item(3).id == "id-3"
        with pytest.raises(StorageError) as caught:
            project.items([1, 2, 3])
    _says_so(place, caught.value)
    # Where the labels go with their cells, there is no way around it.
    assert _command(monkeypatch, "export", str(place), "--out", str(tmp_path / "out")) == 1
    out, err = capsys.readouterr()
    assert len((out + err).strip().splitlines()) == 1
    assert "is damaged" in err


@pytest.mark.parametrize(
    "damage",
    [
        "a gap",
        "an unknown kind",
        "an item out of range",
        "an undo of nothing",
        "no label",
    ],
)
def test_damage_that_comes_while_a_project_is_open_stays_said(tmp_path: Path, damage: str) -> None:
    with make(tmp_path / "pets.suffice") as project:
        label_some(project, range(2))
        assert project.state().seq == 3
        with open_project(tmp_path / "pets.suffice") as other:
            label_some(other, range(2, 5), person="bob")
        file = sqlite3.connect(tmp_path / "pets.suffice" / FILE)
        JOURNAL[damage](file)
        file.commit()
        file.close()
        for _ in range(3):
            with pytest.raises(StorageError, match="is damaged"):
                project.state()
            with pytest.raises(StorageError, match="is damaged"):
                project.label(9, "cat", person="ann")


# Images


def test_an_image_that_would_unpack_to_too_much_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "pictures"
    folder.mkdir()
    Image.new("1", (10_000, 5_001), 1).save(folder / "huge.png")
    Image.new("RGB", (8, 8), "red").save(folder / "small.png")
    with pytest.raises(InvalidValueError) as caught:
        read_items(folder, ReadingOptions(classes=("a", "b")))
    assert str(caught.value) == (
        f"the image {folder / 'huge.png'} cannot be read: it has 10,000 x 5,001 pixels, more than 50,000,000; "
        "mend it, or take it out"
    )


def test_a_picture_never_starts_a_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[Any] = []

    def refused(*command: Any, **_: Any) -> None:
        started.append(command)
        raise OSError("no program is started here")

    for name in ("check_call", "Popen", "run", "call", "check_output"):
        monkeypatch.setattr(subprocess, name, refused)
    path = tmp_path / "drawing.png"
    path.write_bytes(
        b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 20 20\n%%EndComments\n0 0 20 20 rectfill\nshowpage\n"
    )
    picture = read_picture(path)
    assert started == []
    assert picture.pixels is None
    assert picture.problem.startswith("it cannot be read: cannot identify image file")


# Labels and words


@pytest.mark.parametrize("value", [1.1e100, -1.1e100, 1.7e308, "1e101", "-1e200"])
def test_labels_whose_squares_are_no_numbers_are_refused(value: Any) -> None:
    with pytest.raises(InvalidValueError, match=r"too large for a label; take another unit"):
        checked_label(about("regression"), value)


def test_large_labels_that_can_be_reckoned_with_are_taken() -> None:
    assert [checked_label(about("regression"), value) for value in (1e100, "-1e100", 0.0)] == [1e100, -1e100, 0.0]


def test_what_will_hardly_be_enough_is_said() -> None:
    some, all_of_them = Forecast(10, 5, 30), "It may take all of the remaining items."
    for unlabelled in (1, 4, 10):
        assert str(decision(forecast=some, unlabelled=unlabelled)).endswith(all_of_them)
    assert "About 10 more labels (5 to 30)" in str(decision(forecast=some, unlabelled=11))


def test_items_that_were_skipped_are_not_left(tmp_path: Path) -> None:
    with make(tmp_path / "pets.suffice", 40) as project:
        label_some(project, range(15))
        for item in range(20, 30):
            project.skip(item, person="ann")
        _, found = learned(project)
        told = status(project, found)
    assert told["left"] == told["decision"]["unlabelled"] == 15


# Being asked


def test_a_clock_that_ran_ahead_holds_an_item_no_longer_than_a_lease(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time()
    with make(tmp_path / "pets.suffice", 12, lease=600.0) as project:
        with monkeypatch.context() as patch:
            patch.setattr("suffice.project.journal.time.time", lambda: now + 365 * 86400.0)
            held = {each.position for each in project.next("ann", 8)}
        assert len(held) == 8
        asked = project.next("bob", 12)
        assert {each.position for each in asked} == set(range(12)) - held
        assert all(each.until < now + 3600.0 for each in asked)
        # What is given out now is held too.
        assert project.next("eve", 12) == []
    # So it is for a process that reads the journal later; there, the time of a lease is over at some time.
    with open_project(tmp_path / "pets.suffice") as project:
        assert project.next("eve", 12) == []
        later = time.monotonic() + 601.0
        monkeypatch.setattr("suffice.project.journal.time.monotonic", lambda: later)
        monkeypatch.setattr("suffice.project.journal.time.time", lambda: now + 601.0)
        assert {each.position for each in project.next("eve", 12)} == set(range(12))


def test_a_second_opinion_can_be_declined_by_lines(tmp_path: Path) -> None:
    with make(tmp_path / "pets.suffice", 12, overlap=1.0) as project:
        label_some(project, [4, 7])
        printed = io.StringIO()
        console = Console(file=printed, width=200)
        with opened_labeller(project, "bob") as labeller:
            label_by_lines(labeller, console, ["s\n", "s\n", "s\n", "q\n"])
        lines = [line.split(" (")[0] for line in printed.getvalue().splitlines() if line.startswith("id-")]
        shown = [line for line in lines if not line.endswith("skipped")]
        assert {shown[0], shown[1]} == {"id-4", "id-7"}
        assert len(set(shown)) == 4
        assert sum(line.endswith(" is skipped") for line in printed.getvalue().splitlines()) == 3
        assert "cannot" not in printed.getvalue()
        state = project.state()
        assert (state.n_labelled, state.n_skipped) == (2, 1)
        assert [state.label_of(item) for item in (4, 7)] == [of_feature(project, item) for item in (4, 7)]
        # Neither of them comes back, also not for bob at another terminal; eve is still asked.
        assert not {4, 7} & {each.position for each in project.next("bob", 12)}
        assert {each.position for each in project.next("eve", 2)} == {4, 7}


def test_declining_is_done_once_and_can_be_undone(tmp_path: Path) -> None:
    with make(tmp_path / "pets.suffice", 12, overlap=1.0) as project:
        label_some(project, [4])
        first = project.skip(4, person="bob")
        assert project.skip(4, person="bob") == (first.seq, 4, True)
        with pytest.raises(ConflictError, match="ann has labelled this item; undo or correct that"):
            project.skip(4, person="ann")
        project.undo(person="bob")
        assert project.next("bob")[0].position == 4
        project.label(4, "eel", person="bob")
        assert len(project.state().acts.opinions(4)) == 2
