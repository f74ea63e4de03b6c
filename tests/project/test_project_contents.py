"""What a project keeps comes back as it was, and what cannot be kept is refused with a sentence."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from suffice.errors import InvalidValueError, SufficeError
from suffice.project.create import has_project, open_project, write_project
from suffice.project.events import EventKind
from suffice.project.labelling_project import ConflictError, Project
from tests.project.making_projects import COLUMNS, about, make, some_items


@pytest.fixture
def plain(tmp_path: Path) -> Iterator[Project]:
    """In a file: for what is decided before the place is looked at."""
    with make(tmp_path / "plain.suffice") as project:
        yield project


def kinds(project: Project) -> list[EventKind]:
    return [event.kind for event in project.events()]


def open_project_of(project: Project) -> Project:
    """The same place, opened once more."""
    return Project(project.journal.database, project.size)


# --- what was made is there ---


def test_a_project_is_there_when_it_is_opened_again(place: str) -> None:
    assert not has_project(place)
    items = some_items(50, {3: "dog", 7: "cat"})
    with write_project(place, about(overlap=0.25, notes=("a", "b")), items, person="ann") as made:
        assert (made.size, made.state().n_labelled) == (50, 2)
    assert has_project(place)
    with open_project(place) as project:
        assert project.settings == about(overlap=0.25, notes=("a", "b"))
        assert project.size == 50
        assert np.array_equal(project.X, items.X)
        assert [project.item(k).id for k in (0, 49)] == ["id-0", "id-49"]
        assert project.item(8).cells == tuple(zip(COLUMNS, items.cells[8], strict=True))
        assert [item.position for item in project.items([5, 2, 5])] == [5, 2, 5]
        state = project.state()
        assert [state.label_of(k) for k in (3, 7, 0)] == ["dog", "cat", None]
        assert [(row.person, row.label) for row in state.labelled()] == [("pets.csv", "dog"), ("pets.csv", "cat")]
        assert state.made is not None
        assert state.made.person == "ann"


def test_labels_of_the_file_are_checked_before_anything_is_made(place: str) -> None:
    with pytest.raises(InvalidValueError, match="'horse' is none of the classes"):
        make(place, 5, labels={2: "horse"})
    assert not has_project(place)


def test_a_project_without_items_is_refused(place: str) -> None:
    with pytest.raises(InvalidValueError, match="at least one item"):
        make(place, 0)
    assert not has_project(place)


def test_there_is_one_project_in_a_place(place: str) -> None:
    make(place, 5, labels={0: "cat"}).close()
    with pytest.raises(ConflictError, match=r"there is a project in .* already"):
        make(place, 9)
    with open_project(place) as project:
        assert (project.size, project.state().n_labelled) == (5, 1)


@pytest.mark.parametrize("rows", [1, 2047, 2049])
def test_features_come_back_to_the_last_bit(rows: int, tmp_path: Path) -> None:
    items = some_items(rows)
    with write_project(tmp_path / "x.suffice", about(), items) as project:
        assert project.X.dtype == np.float64
        assert project.X.tobytes() == items.X.tobytes()


def test_wide_features_are_kept_in_many_blocks(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("suffice.project.storage._BLOCK", 100)
    items = some_items(23)
    with write_project(place, about(), items) as project:
        assert np.array_equal(project.X, items.X)


@pytest.mark.parametrize("n", [10_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_many_thousand_items(place: str, n: int) -> None:
    with make(place, n, labels={5: "cat"}) as project:
        assert project.X.shape == (n, 3)
        assert project.item(n - 1).id == f"id-{n - 1}"
        assert len(project.items(range(0, n, 9))) == len(range(0, n, 9))
        first = project.next("ann", 3)
        project.label(first[0].position, "dog", person="ann")
        assert project.state().left == n - 2
    with open_project(place) as project:
        assert project.size == n
        assert project.next("ann", 2) == [each._replace(new=False, random=None) for each in first[1:]]


# --- bad input ---


@pytest.mark.parametrize("name", ["", "   ", "x" * 65, "a\nb", "a\x00b", "\ud800", None, 7])
def test_a_name_that_is_none(plain: Project, name: Any) -> None:
    for send in (
        lambda: plain.next(name),
        lambda: plain.label(0, "cat", person=name),
        lambda: plain.undo(person=name),
        lambda: plain.resume(name),
    ):
        with pytest.raises(InvalidValueError, match="the name of a person must be 1 to 64 characters"):
            send()
    assert kinds(plain) == [EventKind.made]


@pytest.mark.parametrize("request_name", ["", "x" * 101, "a\tb", "\udfff", 7])
def test_a_request_that_is_none(plain: Project, request_name: Any) -> None:
    with pytest.raises(InvalidValueError, match="request must be 1 to 100 characters"):
        plain.label(0, "cat", person="ann", request=request_name)
    with pytest.raises(InvalidValueError, match="request must be 1 to 100 characters"):
        plain.undo(person="ann", request=request_name)
    assert kinds(plain) == [EventKind.made]


@pytest.mark.parametrize(
    "label", ["horse", "", "CAT", 1, None, float("nan"), True, "x" * 1000, "'; DROP TABLE events; --"]
)
def test_a_class_that_is_none(plain: Project, label: Any) -> None:
    with pytest.raises(InvalidValueError, match="is none of the classes; they are cat, dog, eel"):
        plain.label(0, label, person="ann")
    assert kinds(plain) == [EventKind.made]


@pytest.mark.parametrize("position", [-1, 20, True, 1.0, "1", None, 2**70])
def test_an_item_that_is_none(plain: Project, position: Any) -> None:
    for send in (
        lambda: plain.label(position, "cat", person="ann"),
        lambda: plain.skip(position, person="ann"),
        lambda: plain.item(position),
    ):
        with pytest.raises(InvalidValueError, match=r"there is no item .*; the project has items 0 to 19"):
            send()


@pytest.mark.parametrize("name", ["Zoë 🐌", "' OR 1=1 --", "%s", "{}", "x" * 64, "ann@example.org"])
def test_a_name_is_kept_as_it_is(plain: Project, name: str) -> None:
    plain.label(0, "cat", person=f"  {name} ", request=name)
    with open_project_of(plain) as other:
        assert other.state().labelled()[0].person == name
        assert other.label(0, "cat", person=name, request=name).repeated


@pytest.mark.parametrize("n", [0, -1, 1.5, True])
def test_how_many_items_is_a_whole_number(plain: Project, n: Any) -> None:
    with pytest.raises(SufficeError, match="n must be"):
        plain.next("ann", n)


def test_numbers_come_back_to_the_last_bit(place: str) -> None:
    numbers = {
        "3.5": 3.5,
        2: 2.0,
        " -1e-300 ": -1e-300,
        0.1 + 0.2: 0.1 + 0.2,
        "-1e100": -1e100,
    }
    with make(place, task="regression") as project:
        for item, (given, kept) in enumerate(numbers.items()):
            project.label(item, given, person="ann", request=f"r{item}")  # type: ignore[arg-type]
            assert project.label(item, kept, person="ann", request=f"r{item}").repeated
    with open_project(place) as project:
        found = [project.state().label_of(item) for item in range(len(numbers))]
        assert all(isinstance(each, float) for each in found)
        assert found == list(numbers.values())


def test_a_number_that_is_none(tmp_path: Path) -> None:
    with make(tmp_path / "n.suffice", task="regression") as project:
        for label in ("3,5", "nan", "inf", float("inf"), "1_000", "", None, True, "cat", 10**400, [1.0]):
            with pytest.raises(InvalidValueError, match=r"is not a number; a label is a finite number such as 3\.5"):
                project.label(0, label, person="ann")  # type: ignore[arg-type]
        with pytest.raises(InvalidValueError, match="is too large for a label"):
            project.label(0, "1e101", person="ann")
        assert kinds(project) == [EventKind.made]
