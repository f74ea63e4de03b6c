"""Review of a project: likely wrong labels, confirmations, and labels that were given with a prediction visible."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from suffice.errors import InvalidValueError, SufficeError
from suffice.project.background_learner import BackgroundLearner
from suffice.project.create import open_project
from suffice.project.events import EventKind
from suffice.project.labelling_project import ConflictError, Project
from suffice.project.learned_project import learned_project
from suffice.project.project_learner import suspicious_labels
from suffice.project.review import review
from suffice.session import suspicious_labels as ranking
from tests.project.labelled_projects import label_some, of_feature
from tests.project.making_projects import make


@pytest.fixture(autouse=True)
def _small_forest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranking, "_TREES", 25)


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    """100 items, 60 of them labelled, number 7 wrongly."""
    with make(tmp_path / "pets.suffice", 100) as found:
        label_some(found, [item for item in range(60) if item != 7])
        found.label(7, "eel", person="bob")
        yield found


def test_a_wrong_label_is_listed_until_it_is_confirmed(project: Project) -> None:
    assert project.suspicious_labels(1)[0][:3] == (7, "eel", of_feature(project, 7))
    receipt = project.confirm(7, person="ann", request="r1")
    assert project.confirm(7, person="ann", request="r1") == receipt._replace(repeated=True)
    assert 7 not in [each.item for each in project.suspicious_labels()]
    with open_project(project.place) as again:
        assert 7 not in [each.item for each in again.suspicious_labels()]
        assert again.state().labels.is_confirmed(7)
    # It is the label that was confirmed, and not the item.
    project.correct(7, "cat" if of_feature(project, 7) == "dog" else "dog", person="ann")
    assert not project.state().labels.is_confirmed(7)
    assert 7 in [each.item for each in project.suspicious_labels()]
    project.undo(person="ann")
    assert project.state().labels.is_confirmed(7)


def test_what_can_be_confirmed(project: Project) -> None:
    with pytest.raises(ConflictError, match="this item has no label to confirm"):
        project.confirm(80, person="ann")
    with pytest.raises(InvalidValueError, match="there is no item 100"):
        project.confirm(100, person="ann")
    project.confirm(3, person="ann", request="r")
    with pytest.raises(ConflictError, match="was used before"):
        project.confirm(4, person="ann", request="r")
    with pytest.raises(InvalidValueError, match="n must be"):
        project.suspicious_labels(0)


def test_a_confirmation_changes_neither_answers_nor_what_undo_takes_back(project: Project) -> None:
    before = project.state().answers()
    project.confirm(7, person="ann")
    assert project.state().answers() == before
    assert project.undo(person="ann").position == 59


def test_before_the_model_has_begun_there_is_nothing_to_review(tmp_path: Path) -> None:
    with make(tmp_path / "empty.suffice", 30) as project, pytest.raises(SufficeError, match="no prediction yet"):
        project.suspicious_labels()


def test_the_review_has_the_items_in_words(project: Project) -> None:
    found = review(project, suspicious_labels(learned_project(project), project.X), 5)
    first = found.labels[0]
    assert (first.item, first.id, first.label, first.person) == (7, "id-7", "eel", "bob")
    assert first.sentence.startswith(f"Labelled eel; without this label the model says {first.prediction}")
    assert found.n_labelled == 60
    assert found.total >= len(found.labels) >= 1
    assert all(each.prediction != each.label for each in found.labels)
    assert found.as_dict()["labels"][0]["item"] == 7
    none = review(project, [], 5)
    assert (none.labels, none.sentence) == (
        (),
        "Unlikely labels are listed once there are 20 labels of at least two kinds.",
    )


def test_numbers_are_reviewed_too(tmp_path: Path) -> None:
    with make(tmp_path / "n.suffice", 60, task="regression") as project:
        label_some(project, [item for item in range(40) if item != 5])
        project.label(5, 99.0, person="ann")
        first = review(project, suspicious_labels(learned_project(project), project.X), 3).labels[0]
        assert (first.item, first.label) == (5, 99.0)
        assert "give or take" in first.sentence


def test_items_of_a_check_are_not_listed_and_not_corrected_by_who_saw_a_prediction(project: Project) -> None:
    project.start_check(10, person="ann")
    in_check = [each.position for each in project.next("ann", 10)]
    with pytest.raises(ConflictError, match="belongs to a check"):
        project.label(in_check[0], "cat", person="ann", saw_prediction=True)
    for item in in_check:
        project.label(item, "eel", person="ann")
    # A label outside of the check lets the model learn those of the check.
    outside = next(item for item in range(60, 100) if item not in in_check)
    project.label(outside, of_feature(project, outside), person="ann")
    assert {answer.item for answer in project.state().learned()} >= set(in_check)
    assert not {each.item for each in project.suspicious_labels()} & set(in_check)
    with pytest.raises(ConflictError, match="has seen a prediction for it"):
        project.correct(in_check[0], "cat", person="ann", saw_prediction=True)
    project.correct(in_check[0], "cat", person="ann")


def test_a_label_given_with_the_prediction_visible_is_no_random_label(tmp_path: Path) -> None:
    with make(tmp_path / "p.suffice", 40) as project:
        one, other, third = (each.position for each in project.next("ann", 3))
        project.label(one, "cat", person="ann")
        project.label(other, "cat", person="ann", saw_prediction=True)
        project.label(third, "cat", person="ann")
        random = {answer.item: answer.random for answer in project.state().answers()}
        assert random == {one: True, other: False, third: True}
        # A correction by somebody who saw the prediction counts the same way, and undoing it brings the label back.
        project.correct(third, "dog", person="bob", saw_prediction=True)
        assert not project.state().answers()[2].random
        project.undo(person="bob")
        assert project.state().answers()[2].random
        flags = [(each.random, each.saw_prediction) for each in project.state().labelled()]
        assert flags == [(True, False), (True, True), (True, False)]
        events = [event.data for event in project.events() if event.kind is EventKind.labelled]
        assert events == [{"label": "cat"}, {"label": "cat", "saw_prediction": True}, {"label": "cat"}]


def test_the_background_learner_ranks_the_same_labels_once(project: Project) -> None:
    with BackgroundLearner(project) as background:
        assert background.wait_settled(60.0)
        found = background.suspicious_labels()
        assert found == suspicious_labels(learned_project(project), project.X)
        assert background.suspicious_labels() is found
        project.correct(7, of_feature(project, 7), person="ann")
        assert background.wait_settled(60.0)
        assert background.suspicious_labels() is not found


def test_items_of_a_check_for_a_target_are_not_listed(project: Project) -> None:
    project.start_check(at_most=0.6, person="ann")
    answered = []
    while project.state().checks.open_check is not None:
        item = project.next("ann")[0].position
        project.label(item, of_feature(project, item), person="ann")
        answered.append(item)
    assert project.guarantee() is not None
    outside = next(item for item in range(60, 100) if project.state().label_of(item) is None)
    project.label(outside, of_feature(project, outside), person="ann")
    assert {answer.item for answer in project.state().learned()} >= set(answered)
    assert not {each.item for each in project.suspicious_labels()} & set(answered)
