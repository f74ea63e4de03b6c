"""Classes that are added, renamed, merged, reordered and removed: labels, undoing, checks, guarantees, the model."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suffice import ErrorStability
from suffice.errors import InvalidValueError
from suffice.project.background_learner import BackgroundLearner
from suffice.project.create import create_project, open_project, write_project
from suffice.project.events import ClassChange, Event, EventKind
from suffice.project.items import Items
from suffice.project.labelling_project import ConflictError, Project
from suffice.project.prediction_log import prediction_data
from suffice.project.project_check import ProjectCheck
from suffice.project.project_learner import ProjectLearner
from suffice.project.settings import Settings
from suffice.project.state import Answer, ProjectState
from suffice.project.status_summary import check_status, status
from suffice.tables.table_cells import CellColumns
from tests.project.making_projects import make, picture, replayed


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    with make(tmp_path / "pets.suffice") as project:
        yield project


def labels(project: Project) -> dict[int, Any]:
    return {answer.item: answer.label for answer in project.state().answers()}


def test_a_class_is_added_renamed_merged_reordered_and_removed(project: Project) -> None:
    for item, name in enumerate(("cat", "dog", "eel", "dog")):
        project.label(item, name, person="ann")
    project.add_class("  fox ", person="ann")
    assert list(project.settings.classes) == ["cat", "dog", "eel", "fox"]
    project.label(4, "fox", person="bob")
    project.rename_class("dog", "hound", person="ann")
    assert labels(project) == {0: "cat", 1: "hound", 2: "eel", 3: "hound", 4: "fox"}
    project.merge_classes(["fox", "eel"], "hound", person="ann")
    assert list(project.settings.classes) == ["cat", "hound"]
    assert labels(project) == {0: "cat", 1: "hound", 2: "hound", 3: "hound", 4: "hound"}
    assert project.state().counts() == {"cat": 1, "hound": 4}
    project.add_class("dog", person="ann")
    project.reorder_classes(["dog", "hound", "cat"], person="ann")
    assert list(project.settings.classes) == ["dog", "hound", "cat"]
    # The name is free for another class, and old labels are not of it.
    assert project.state().counts().get("dog", 0) == 0
    project.remove_class("dog", person="ann")
    assert list(project.settings.classes) == ["hound", "cat"]
    # The journal has the names that were given.
    given = [event.data["label"] for event in project.events() if event.kind is EventKind.labelled]
    assert given == ["cat", "dog", "eel", "dog", "fox"]


def test_a_merge_into_a_new_name_takes_the_first_place(project: Project) -> None:
    project.merge_classes(["dog", "eel"], "other", person="ann")
    assert project.settings.classes == ("cat", "other")


def test_names_are_swapped(project: Project) -> None:
    project.label(0, "cat", person="ann")
    project.label(1, "dog", person="ann")
    project.change_classes(["cat", "dog", "eel"], {"cat": "dog", "dog": "cat"}, person="ann")
    assert labels(project) == {0: "dog", 1: "cat"}


def test_a_single_label_is_undone_after_a_change(project: Project) -> None:
    project.label(0, "dog", person="ann")
    project.label(1, "dog", person="ann")
    project.correct(0, "eel", person="bob")
    project.merge_classes(["eel"], "cat", person="ann")
    project.rename_class("dog", "hound", person="ann")
    assert labels(project) == {0: "cat", 1: "hound"}
    project.undo(person="bob")
    assert labels(project) == {0: "hound", 1: "hound"}
    project.undo(person="ann")
    assert labels(project) == {0: "hound"}
    assert [opinion.label for opinion in project.state().acts.opinions(0)] == ["hound"]
    assert project.state().counts() == {"hound": 1}


def test_a_label_that_is_sent_again_after_a_change_is_known(project: Project) -> None:
    project.label(0, "dog", person="ann", request="one")
    project.rename_class("dog", "hound", person="ann")
    assert project.label(0, "dog", person="ann", request="one").repeated
    assert project.label(0, "hound", person="ann").repeated
    with pytest.raises(InvalidValueError, match="'dog' is none of the classes; they are cat, hound, eel"):
        project.label(1, "dog", person="ann")
    with pytest.raises(ConflictError, match="was used before"):
        project.label(0, "cat", person="ann", request="one")


def test_what_cannot_be_changed_is_answered(project: Project) -> None:
    project.label(0, "cat", person="ann")
    project.correct(0, "dog", person="ann")
    before = len(project.events())
    for classes, moved, error, words in (
        (["cat", "dog"], {"eel": "fox"}, InvalidValueError, "'eel' is moved to 'fox', which is none of the new"),
        (["cat", "dog"], {"fox": "dog"}, InvalidValueError, "the project has no class 'fox'; it has cat, dog, eel"),
        (["cat"], {}, InvalidValueError, "needs 2 to 200 classes, and these are 1"),
        (["cat", "dog", "cat"], {}, InvalidValueError, "the class 'cat' is there twice"),
        (["cat", "dog", " "], {}, InvalidValueError, "the name of a class must be 1 to 200 characters"),
        (["cat", "dog", "x" * 201], {}, InvalidValueError, "the name of a class must be 1 to 200 characters"),
        (["cat", "dog", "e\x00l"], {}, InvalidValueError, "without control characters"),
        (["cat", "dog", "eel"], {}, ConflictError, "has exactly these classes already"),
        (["cat", "eel"], {}, ConflictError, "the class 'dog' has labels, so it cannot be removed; merge it"),
        # A label that a correction hides could come back.
        (["dog", "eel"], {}, ConflictError, "the class 'cat' has labels"),
    ):
        with pytest.raises(error, match=words):
            project.change_classes(classes, moved, person="ann")
    with pytest.raises(ConflictError, match="merge the two instead"):
        project.rename_class("dog", "cat", person="ann")
    with pytest.raises(ConflictError, match="has the class 'cat' already"):
        project.add_class("cat", person="ann")
    with pytest.raises(InvalidValueError, match="order must name each class once"):
        project.reorder_classes(["cat", "dog"], person="ann")
    with pytest.raises(InvalidValueError, match="the project has no class 'fox'"):
        project.remove_class("fox", person="ann")
    assert len(project.events()) == before


def test_numbers_have_no_classes(tmp_path: Path) -> None:
    with (
        make(tmp_path / "numbers.suffice", task="regression") as project,
        pytest.raises(InvalidValueError, match="the labels of this project are numbers"),
    ):
        project.change_classes(["a", "b"], person="ann")


def test_two_people_at_once(project: Project) -> None:
    seen = project.settings.classes
    with open_project(Path(project.place).parent) as other:
        other.add_class("fox", person="bob")
        # Within the other process the change is known at once.
        assert other.settings.classes == (*seen, "fox")
    with pytest.raises(ConflictError, match="the classes were changed meanwhile and are now cat, dog, eel, fox"):
        project.change_classes([*seen, "gnu"], person="ann", before=seen)
    receipt = project.change_classes(["fox", *seen], person="ann", before=(*seen, "fox"), request="one")
    assert not receipt.repeated
    assert project.change_classes(["fox", *seen], person="ann", before=(*seen, "fox"), request="one").repeated
    # A label of another process is checked against the classes of now.
    with pytest.raises(InvalidValueError, match="is none of the classes; they are fox"):
        project.label(0, "gnu", person="ann")


def test_a_reopened_project_is_the_same(project: Project) -> None:
    for item, name in enumerate(("cat", "dog", "eel", "dog")):
        project.label(item, name, person="ann")
    project.rename_class("cat", "dog 2", person="ann")
    project.merge_classes(["dog"], "eel", person="bob")
    project.rename_class("dog 2", "dog", person="ann")
    now = project.state().last
    assert now is not None
    expected = picture(project.state(), project.size, now.at)
    assert expected["answers"] == [Answer(0, "dog"), Answer(1, "eel"), Answer(2, "eel"), Answer(3, "eel")]
    assert picture(replayed(project.events(), project.size), project.size, now.at) == expected
    with open_project(Path(project.place).parent) as other:
        assert other.settings == project.settings
        assert other.settings.classes == ("dog", "eel")


NAMES = st.sampled_from("abcdef")


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_any_changes_are_those_of_a_plain_mapping(data: st.DataObject) -> None:
    """Against a dict of labels in which each change replaces the values."""
    state, seq = ProjectState(6), 0
    classes: tuple[str, ...] = ("a", "b", "c")
    oracle: dict[int, str] = {}
    acts: list[tuple[int, int]] = []
    for _ in range(data.draw(st.integers(1, 12))):
        seq += 1
        kind = data.draw(st.sampled_from(["label", "undo", "change"]))
        if kind == "label":
            free = [item for item in range(6) if item not in oracle]
            if not free:
                seq -= 1
                continue
            item, label = data.draw(st.sampled_from(free)), data.draw(st.sampled_from(classes))
            state.apply(Event(EventKind.labelled, "ann", item, {"label": label}, seq=seq))
            oracle[item] = label
            acts.append((seq, item))
        elif kind == "undo" and acts:
            of, item = acts.pop(data.draw(st.integers(0, len(acts) - 1)))
            state.apply(Event(EventKind.undone, "ann", item, {"of": of}, seq=seq))
            del oracle[item]
        else:
            after = data.draw(st.lists(NAMES, min_size=2, max_size=4, unique=True))
            moved = {name: data.draw(st.sampled_from(after)) for name in classes if data.draw(st.booleans())}
            # Every label goes somewhere.
            moved |= {name: after[0] for name in classes if name not in after and name not in moved}
            change = ClassChange.checked(classes, after, moved)
            state.apply(Event(EventKind.classes_changed, "ann", data=change.event_data(), seq=seq))
            oracle = {item: moved.get(label, label) for item, label in oracle.items()}
            classes = tuple(after)
    assert {answer.item: answer.label for answer in state.answers()} == oracle
    counts = {name: list(oracle.values()).count(name) for name in set(oracle.values())}
    assert state.counts() == counts
    for item, label in oracle.items():
        act = state.acts.label_by(item, "ann")
        assert act is not None
        assert act.data["label"] == label


# The model.


def bands(folder: Path, classes: tuple[str, ...] = ("low", "middle", "high"), **changes: Any) -> Project:
    """Items on a line, in three bands; every item has a feature of its own."""
    x = np.linspace(-1.0, 1.0, 120)
    values: dict[str, Any] = {
        **{"name": "bands", "task": "classification", "classes": classes, "target": "band", "shown": "table"},
        **{"columns": ("x",), "main": None, "model": "logistic", "rule": ErrorStability().state_dict()},
        "initial": 6,
    }
    settings = Settings(**(values | changes))
    cells = tuple((f"{value:.3f}",) for value in x)
    ids = tuple(map(str, range(len(x))))
    X = np.stack([x, x**2], axis=1)
    items = Items("table", ids, ("x",), CellColumns.of_rows(cells), None, X, "classification", classes, {}, ())
    return write_project(folder, settings, items)


def band(item: int) -> int:
    return 0 if item < 40 else 1 if item < 80 else 2


def label_some(project: Project, number: int) -> None:
    names = project.settings.classes
    for _ in range(number):
        item = project.next("ann")[0].position
        project.label(item, names[band(item)], person="ann")


def learned(project: Project) -> ProjectLearner:
    learner = ProjectLearner(project.current_settings, project.X)
    learner.follow(project.state().learned())
    return learner


@pytest.mark.one_in(2)
@pytest.mark.parametrize("model", ["logistic", "kernel"])
def test_the_model_does_not_depend_on_names_and_their_order(tmp_path: Path, model: str) -> None:
    with bands(tmp_path / "one", model=model) as project:
        label_some(project, 15)
        before = learned(project).predict(project.X)
        project.change_classes(["a", "m", "z"], {"low": "z", "middle": "m", "high": "a"}, person="ann")
        after = learned(project).predict(project.X)
    names = {"low": "z", "middle": "m", "high": "a"}
    assert [names[name] for name in before.labels] == list(after.labels)
    assert before.probabilities is not None
    assert after.probabilities is not None
    np.testing.assert_allclose(after.probabilities, before.probabilities[:, ::-1], rtol=1e-6, atol=1e-9)


def test_the_background_learner_follows_and_kept_results_are_not_of_other_classes(tmp_path: Path) -> None:
    with bands(tmp_path / "one") as project:
        label_some(project, 12)
        with BackgroundLearner(project, project.learned_files) as background:
            assert background.wait_settled(60.0)
            assert background.keep()
            project.merge_classes(["high"], "middle", person="ann")
            assert background.wait_settled(60.0)
            found = background.predictions()
            assert set(found.labels) <= {"low", "middle"}
            assert found.probabilities is not None
            assert found.probabilities.shape == (120, 2)
            assert background.learning_status.problem == ""
            live = background.learning_status
        # Exactly what a project learns that has had these classes from the start.
        answers = project.state().answers()
        fresh = ProjectLearner(project.current_settings, project.X)
        fresh.follow(answers)
        assert fresh.learning_status().errors == live.errors
        told = status(project, live)
        assert [each["name"] for each in told["classes"]] == ["low", "middle"]
        assert told["revision"] == project.state().revision > 0
        # What was kept of three classes is not taken for two.
        kept = project.learned_files.status(project.current_settings, answers)
        assert kept is None or kept.errors == live.errors
        project.rename_class("middle", "rest", person="ann")
        assert project.learned_files.status(project.current_settings, project.state().answers()) is None


# Checks and guarantees.


def checked(project: Project, size: int = 30, **quantity: Any) -> None:
    """Label, start a check and complete it."""
    label_some(project, 12)
    project.start_check(size, person="ann", **quantity)
    label_some(project, size)


def right_item(check: ProjectCheck, name: str | None = None) -> int:
    """An item of a check whose prediction is right, of a class or of any."""
    predicted = check.draw.prediction_of(check.draw.items)
    right = [item for item, found in predicted.items() if check.record.labels[item] == found]
    return next(item for item in right if name is None or predicted[item] == name)


def test_a_renamed_class_changes_no_guarantee(tmp_path: Path) -> None:
    with bands(tmp_path / "one") as project:
        checked(project, recall_of="high")
        before = project.guarantee()
        assert before is not None
        assert before.about_present_model
        project.rename_class("high", "above", person="ann")
        project.reorder_classes(["above", "low", "middle"], person="ann")
        after = project.guarantee()
        assert after is not None
        assert after.about_present_model
        assert after.check.classes_since == "same"
        assert after.guarantee.value == before.guarantee.value
        assert after.guarantee.class_name == "above"
        assert str(after) == str(before).replace("high", "above")
        # The model still learns what it had learned when it was checked.
        assert project.state().n_learned == 12


def test_a_merge_keeps_the_error_as_it_was_computed(tmp_path: Path) -> None:
    with bands(tmp_path / "one") as project:
        label_some(project, 8)
        project.start_check(30, person="ann")
        names = project.settings.classes
        for k in range(30):
            item = project.next("ann")[0].position
            # Some answers are others than any model could know.
            project.label(item, names[(band(item) + (k % 3 == 0)) % 3], person="ann")
        before = project.guarantee()
        assert before is not None
        assert before.guarantee.wrong > 0
        project.merge_classes(["middle"], "high", person="ann")
        after = project.guarantee()
        assert after is not None
        assert not after.about_present_model
        assert after.check.classes_since == "merged"
        assert (after.guarantee.value, after.guarantee.wrong) == (before.guarantee.value, before.guarantee.wrong)
        assert after.as_dict()["classes"] == ["low", "middle", "high"]
        assert "classes were merged since, which can only lower the share of wrong predictions" in str(after)
        # The present error of the same predictions is not larger.
        draw = after.check.draw
        merged = {"low": "low", "middle": "high", "high": "high"}
        now = sum(
            merged[str(predicted)] != project.state().label_of(item)
            for item, predicted in draw.prediction_of(draw.items).items()
        )
        assert now <= after.guarantee.wrong
        # The model learns everything again.
        assert project.state().n_learned == project.state().n_labelled
        assert check_status(project.state(), project.settings).proven is None


def test_a_guarantee_of_a_merged_class_is_of_its_time(tmp_path: Path) -> None:
    with bands(tmp_path / "one") as project:
        checked(project, recall_of="high")
        project.merge_classes(["middle"], "high", person="ann")
        found = project.guarantee()
        assert found is not None
        assert not found.about_present_model
        assert "the classes were changed since" in str(found)


def test_added_classes_make_a_guarantee_one_of_its_time(tmp_path: Path) -> None:
    with bands(tmp_path / "one") as project:
        checked(project)
        before = project.guarantee()
        project.add_class("other", person="ann")
        after = project.guarantee()
        assert before is not None
        assert after is not None
        assert after.check.classes_since == "changed"
        assert not after.about_present_model
        assert after.guarantee.value == before.guarantee.value
        assert "the classes of that time; the classes were changed since" in str(after)
        # A correction to the new class is a wrong prediction.
        project.correct(right_item(after.check), "other", person="ann")
        corrected = project.guarantee()
        assert corrected is not None
        assert corrected.guarantee.wrong == before.guarantee.wrong + 1


def test_a_name_that_is_used_again_is_another_class_for_a_check(tmp_path: Path) -> None:
    with bands(tmp_path / "one") as project:
        checked(project)
        before = project.guarantee()
        assert before is not None
        item = right_item(before.check, "high")
        project.merge_classes(["high"], "middle", person="ann")
        project.add_class("high", person="ann")
        assert project.guarantee() is not None
        project.correct(item, "high", person="ann")
        after = project.guarantee()
        assert after is not None
        assert after.guarantee.wrong == before.guarantee.wrong + 1
        assert after.check.record.labels[item] == "high (later class)"
        project.undo(person="ann")
        again = project.guarantee()
        assert again is not None
        assert again.guarantee.wrong == before.guarantee.wrong


def test_an_open_check_allows_new_names_only(tmp_path: Path) -> None:
    with bands(tmp_path / "one") as project:
        label_some(project, 12)
        project.start_check(20, person="ann", precision_of="high")
        label_some(project, 5)
        refusal = r"a check is open.*complete the check or stop it first"
        with pytest.raises(ConflictError, match=refusal):
            project.add_class("other", person="ann")
        with pytest.raises(ConflictError, match=refusal):
            project.merge_classes(["low"], "high", person="ann")
        project.rename_class("high", "above", person="ann")
        label_some(project, 15)
        found = project.guarantee()
        assert found is not None
        assert found.guarantee.class_name == "above"
        assert found.about_present_model
        project.add_class("other", person="ann")
        label_some(project, 1)
        project.start_check(10, person="ann")
        project.abort_check(person="ann")
        project.remove_class("other", person="ann")


def test_an_answer_that_is_undone_after_a_change_opens_the_check_again(tmp_path: Path) -> None:
    with bands(tmp_path / "one") as project:
        checked(project, 10)
        project.add_class("other", person="ann")
        project.undo(person="ann")
        assert project.guarantee() is None
        label_some(project, 1)
        found = project.guarantee()
        assert found is not None
        assert found.check.classes_since == "changed"


def test_the_class_that_a_screening_looks_for_keeps_its_role(tmp_path: Path) -> None:
    with make(tmp_path / "p", positive="dog", recall=0.9) as project:
        project.add_class("fox", person="ann")
        project.rename_class("dog", "hound", person="ann")
        assert project.settings.positive == "hound"
        with pytest.raises(ConflictError, match="is the class that is looked for, so it cannot be removed"):
            project.remove_class("hound", person="ann")
        project.merge_classes(["hound", "fox"], "canine", person="ann")
        assert project.settings.positive == "canine"
        with open_project(Path(project.place).parent) as other:
            assert other.settings == project.settings


def test_confirmed_labels_and_imported_predictions_follow(project: Project) -> None:
    project.label(0, "dog", person="ann")
    project.confirm(0, person="bob")
    data = prediction_data({1: "dog", 2: "eel", 3: "cat"}, {1: 0.9}, ("cat", "dog", "eel"), "other.csv")
    state = project.state()
    state.apply(Event(EventKind.predictions_imported, "ann", data=data, seq=state.seq + 1))
    change = ClassChange.checked(("cat", "dog", "eel"), ("cat", "hound"), {"dog": "hound"})
    state.apply(Event(EventKind.classes_changed, "ann", data=change.event_data(), seq=state.seq + 1))
    assert state.labels.is_confirmed(0)
    assert state.label_of(0) == "hound"
    found = [state.predictions.imported(item) for item in (1, 2, 3)]
    assert [None if each is None else each.label for each in found] == ["hound", None, "cat"]


def test_features_of_new_rows_do_not_depend_on_later_classes(tmp_path: Path) -> None:
    texts = [f"word{k % 7} word{k % 11} word{k % 13} some text" for k in range(60)]
    with create_project(tmp_path / "p", {"text": texts}, classes=["a", "b"], text="text") as project:
        before = project.transformer()
        for name in "cdefgh":
            project.add_class(name, person="ann")
        assert type(project.transformer()) is type(before)
