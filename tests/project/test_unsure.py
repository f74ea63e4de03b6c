"""People who are unsure of an item: no label, no further question, a list for review."""

import csv
import io
from collections.abc import Iterator
from pathlib import Path

import pytest

from suffice.errors import InvalidValueError
from suffice.project.events import EventKind
from suffice.project.exported_files import skipped_file
from suffice.project.labelling_project import ConflictError, Project
from suffice.project.learning_status import LearningStatus
from suffice.project.state import Answer, SkippedItem
from suffice.project.status_summary import status
from tests.project.making_projects import make, picture, replayed


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    with make(tmp_path / "pets.suffice", overlap=1.0) as made:
        yield made


def test_an_unsure_item_is_like_a_skipped_one_and_is_listed(project: Project) -> None:
    item = project.next("ann")[0].position
    project.unsure(item, person="ann", reason="  a cat\n or a dog? ", request="one")
    assert project.unsure(item, person="ann", reason="a cat or a dog?", request="one").repeated
    blurred, other = [k for k in range(3) if k != item][:2]
    project.skip(blurred, person="bob", reason="blurred")
    project.skip(other, person="bob")
    state = project.state()
    assert [(each.item, each.person, each.unsure, each.reason) for each in state.skipped()] == [
        (item, "ann", True, "a cat or a dog?"),
        (blurred, "bob", False, "blurred"),
        (other, "bob", False, ""),
    ]
    assert (state.n_labelled, state.n_skipped, state.label_of(item)) == (0, 3, None)
    assert state.answers()[0] == Answer(item, None, True)
    told = status(project, LearningStatus())
    assert (told["n_skipped"], told["n_unsure"]) == (3, 1)
    # The journal says it as a skip, so that an older program understands it.
    event = next(event for event in project.events() if event.kind is EventKind.skipped)
    assert dict(event.data) == {"unsure": True, "reason": "a cat or a dog?"}
    assert item not in [each.position for each in project.next("ann", 20)]
    assert item not in [each.position for each in project.next("bob", 20)]
    now = state.last
    assert now is not None
    assert picture(replayed(project.events(), 20), 20, now.at) == picture(state, 20, now.at)


def test_somebody_labels_it_later_or_it_is_undone(project: Project) -> None:
    project.skip(3, person="bob")
    project.unsure(3, person="ann", reason="hm")
    assert project.state().skipped()[0] == SkippedItem(3, "ann", project.state().skipped()[0].at, True, "hm")
    project.undo(person="ann")
    assert not project.state().skipped()[0].unsure
    project.unsure(3, person="ann")
    project.label(3, "eel", person="ann")
    assert project.state().skipped() == []
    assert project.state().label_of(3) == "eel"
    with pytest.raises(ConflictError, match="has labelled this item; undo or correct that, it cannot be skipped"):
        project.unsure(3, person="ann")


@pytest.mark.parametrize("reason", ["x" * 501, 3, "a\x00b"])
def test_reasons_that_cannot_be_used_are_answered(project: Project, reason: str) -> None:
    for write in (project.skip, project.unsure):
        with pytest.raises(InvalidValueError, match="reason must be at most 500 characters"):
            write(0, person="ann", reason=reason)
    project.skip(0, person="ann", reason="x" * 500)


def test_a_check_counts_it_as_unlabelable(project: Project) -> None:
    for item in range(10):
        project.label(item, ("cat", "dog", "eel")[item % 3], person="ann")
    project.start_check(5, person="ann")
    for _ in range(5):
        project.unsure(project.next("ann")[0].position, person="ann")
    found = project.guarantee()
    assert found is not None
    assert found.guarantee.unlabelable == 5
    assert "5 items could not be labelled" in found.guarantee.evidence


def test_the_export_says_who_and_why(project: Project) -> None:
    assert skipped_file(project, "csv") is None
    project.unsure(4, person="ann", reason="=1+1, or 2")
    project.skip(5, person="bob")
    file = skipped_file(project, "csv")
    assert file is not None
    assert (file.name, file.rows) == ("skipped.csv", 2)
    rows = list(csv.DictReader(io.StringIO(file.content.decode())))
    assert [(row["id"], row["skipped_by"], row["unsure"]) for row in rows] == [
        ("id-4", "ann", "true"),
        ("id-5", "bob", "false"),
    ]
    # No program takes it for a formula.
    assert rows[0]["reason"] == "'=1+1, or 2"
    lines = skipped_file(project, "jsonl")
    assert lines is not None
    assert b'"reason": "=1+1, or 2"' in lines.content
