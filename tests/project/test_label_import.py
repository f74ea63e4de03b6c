"""Labels and predictions from files: matching of rows, conflicts, repetition, and what is reported."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from suffice.errors import InvalidValueError
from suffice.project.create import create_project, open_project
from suffice.project.events import EventKind
from suffice.project.exported_files import labels_file
from suffice.project.labelling_project import ConflictError, Project
from tests.project.making_projects import make


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    """20 items with the ids id-0 to id-19; the first three are labelled by ann."""
    with make(tmp_path / "pets.suffice", 20) as found:
        for item, label in enumerate(("cat", "dog", "eel")):
            found.label(item, label, person="ann")
        yield found


def table(**changes: Any) -> dict[str, list[Any]]:
    return {"id": ["id-0", "id-1", "id-5", "id-6"], "kind": ["cat", "cat", "eel", "dog"], **changes}


def labels_of(project: Project) -> dict[int, Any]:
    with project.lock:
        return {each.item: each.label for each in project.state().labelled()}


def test_by_default_labels_that_are_there_are_kept(project: Project) -> None:
    report = project.import_labels(table(), label="kind", person="bob")
    assert labels_of(project) == {0: "cat", 1: "dog", 2: "eel", 5: "eel", 6: "dog"}
    assert (report.rows, report.matched, report.labelled, report.same, report.kept) == (4, 4, 2, 1, 1)
    assert report.written
    events = [event for event in project.events() if event.kind is EventKind.labelled and event.item == 5]
    assert (events[0].person, events[0].data) == ("bob", {"label": "eel", "imported": True})
    assert not any(answer.random for answer in project.state().answers())


def test_labels_are_replaced_by_corrections(project: Project) -> None:
    report = project.import_labels(table(), label="kind", person="bob", conflicts="replace")
    assert report.replaced == 1
    assert labels_of(project)[1] == "cat"
    assert project.state().labelled()[1].corrected


def test_labels_are_added_as_opinions(project: Project) -> None:
    report = project.import_labels(table(), label="kind", person="bob", conflicts="opinion")
    assert (report.opinions, report.labelled, report.kept) == (2, 2, 0)
    assert labels_of(project)[1] == "dog"
    assert [(each.person, each.label) for each in project.state().acts.opinions(1)] == [("ann", "dog"), ("bob", "cat")]
    # Ann has said what she says of the item.
    other = project.import_labels(table(), label="kind", person="ann", conflicts="opinion")
    assert (other.same, other.kept, other.opinions) == (1, 1, 2)


@pytest.mark.parametrize("conflicts", ["keep", "replace", "opinion"])
def test_importing_again_changes_nothing(project: Project, conflicts: Any) -> None:
    project.import_labels(table(), label="kind", person="bob", conflicts=conflicts)
    before = project.events()
    report = project.import_labels(table(), label="kind", person="bob", conflicts=conflicts)
    assert project.events() == before
    assert not report.written
    assert report.labelled == report.replaced == report.opinions == 0


def test_a_trial_writes_nothing_and_tells_the_same(project: Project) -> None:
    before = project.events()
    trial = project.import_labels(table(), label="kind", person="bob", check=True)
    assert project.events() == before
    assert trial.sentences(trial=True)[-1] == "Nothing was written: this was a trial run."
    assert trial.as_dict() | {"written": True} == project.import_labels(table(), label="kind", person="bob").as_dict()


def test_what_cannot_be_used_is_counted(project: Project) -> None:
    found = {
        "id": ["id-7", "nobody", "id-8", "id-9", "id-9", "id-10", "id-10", " id-11 "],
        "kind": ["cow", "cat", "", "cat", "dog", "eel", "eel", "cat"],
    }
    report = project.import_labels(found, label="kind", person="bob")
    assert labels_of(project) == {0: "cat", 1: "dog", 2: "eel", 10: "eel", 11: "cat"}
    assert (report.matched, report.unmatched, report.unmatched_examples) == (7, 1, ("'nobody'",))
    assert (report.unknown, report.empty, report.contradictory) == ({"cow": 1}, 1, 1)
    assert "Rows with a label that cannot be used: 1 (cow 1)." in report.sentences()


def test_rows_are_matched_by_their_order_or_text(tmp_path: Path) -> None:
    texts = ["one two", "three four", "one two", "=1+1", "five"]
    with create_project(tmp_path / "texts", texts, classes=["0", "1"]) as project:
        report = project.import_labels({"text": ["one two", "'=1+1"], "y": [1.0, 0]}, label="y", person="ann")
        assert report.matched_by == "text"
        assert labels_of(project) == {0: "1", 2: "1", 3: "0"}
        report = project.import_labels({"y": ["0", "1", "0", "", "1"]}, label="y", person="ann")
        assert (report.matched_by, report.labelled, report.kept, report.empty) == ("row", 2, 2, 1)
        assert labels_of(project) == {0: "1", 2: "1", 3: "0", 1: "1", 4: "1"}
        report = project.import_labels({"words": ["five"], "y": ["0"]}, label="y", person="b", id="words", by="text")
        assert report.kept == 1
        # Items without names are numbered from 1.
        assert project.import_labels({"id": [5], "y": ["1"]}, label="y", person="b").same == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"label": "knd"}, "has no column 'knd'. Did you mean 'kind'"),
        ({"id": "name"}, "has no column 'name'"),
        ({"by": "row"}, "has 4 rows and the project 20 items"),
        ({"by": "number"}, "by must be id, row or text"),
        ({"conflicts": "win"}, "conflicts must be keep, replace or opinion"),
        ({"person": " "}, "the name of a person"),
        ({"by": "text"}, "has no column 'text'"),
    ],
)
def test_wrong_arguments_are_answered_and_change_nothing(project: Project, arguments: Any, message: str) -> None:
    before = project.events()
    with pytest.raises(InvalidValueError, match=message):
        project.import_labels(table(), **{"label": "kind", "person": "bob", **arguments})
    assert project.events() == before


def test_a_file_is_read_as_data_of_a_project_are(tmp_path: Path) -> None:
    with make(tmp_path / "n.suffice", 20, task="regression") as project:
        file = tmp_path / "labels.csv"
        file.write_text("id;y\nid-3;1,5\nid-4;x\nid-5;NA\nid-6;2,25\n")
        # One word makes the column one of words, in which commas are no decimal points.
        with pytest.raises(InvalidValueError, match=r"1,5 1.* Write numbers, with a point"):
            project.import_labels(file, label="y", person="ann")
        file.write_text("id;y\nid-3;1,5\nid-5;NA\nid-6;2,25\n")
        assert project.import_labels(file, label="y", person="ann").labelled == 2
        assert labels_of(project) == {3: 1.5, 6: 2.25}
        with pytest.raises(InvalidValueError, match="there is no file"):
            project.import_labels(tmp_path / "none.csv", label="y", person="ann")


def test_exported_labels_can_be_imported_into_the_same_data(project: Project, tmp_path: Path) -> None:
    file = tmp_path / "labels.csv"
    file.write_bytes(labels_file(project, "csv").content)
    with make(tmp_path / "other.suffice", 20) as other:
        assert other.import_labels(file, label="animal", person="ann").labelled == 3
        assert labels_of(other) == labels_of(project)


def test_items_of_the_open_check_are_left_out(tmp_path: Path) -> None:
    with make(tmp_path / "p.suffice", 60) as project:
        for item in range(20):
            project.label(item, ("cat", "dog")[item % 2], person="ann")
        project.start_check(5, person="ann")
        drawn = project.checks()[0].draw.items
        found = {"id": [f"id-{item}" for item in range(20, 60)], "kind": ["cat"] * 40}
        report = project.import_labels(found, label="kind", person="bob")
        assert (report.in_check, report.labelled) == (5, 35)
        assert all(project.state().labels.is_open(item) for item in drawn)


@pytest.mark.parametrize(
    ("wrong", "cause"),
    [
        (lambda name: name.replace("-", "-0"), "leading zeros"),
        (lambda name: f"{name}.0", "decimal places"),
        (str.upper, "upper and lower case"),
        (lambda name: name.replace("-", " -"), "spaces"),
        (lambda name: name.replace("-", "_"), None),
    ],
)
def test_ids_that_match_no_item_are_shown_beside_those_of_the_project(project: Project, wrong: Any, cause: Any) -> None:
    before, found = project.events(), table(id=[wrong(name) for name in table()["id"]])
    with pytest.raises(InvalidValueError, match="no row of the data belongs to an item") as caught:
        project.import_labels(found, label="kind", person="bob")
    said = str(caught.value)
    assert f"in column 'id': {wrong('id-0')!r}, {wrong('id-1')!r}" in said
    assert "in the project: 'id-0', 'id-1'" in said
    assert cause is None or f"They differ in {cause}" in said
    assert ("4 rows would belong to items" in said) == (cause is not None)
    assert project.events() == before


def test_conflicts_are_counted_and_shown(project: Project) -> None:
    said_of: dict[Any, str] = {"keep": "keeps its own", "opinion": "are opinions", "replace": "replace those"}
    for conflicts, words in said_of.items():
        report = project.import_labels(table(), label="kind", person="bob", conflicts=conflicts, check=True)
        assert (report.conflicting, report.conflicting_examples) == (1, ("'id-1' (project: dog, file: cat)",))
        said = next(each for each in report.sentences() if each.startswith("Conflicts"))
        assert "1, such as 'id-1' (project: dog, file: cat)" in said
        assert words in said
    # As opinions, equal labels of another person are written too.
    assert report.added == 3
    project.import_predictions(table(), prediction="kind", person="bob")
    again = project.import_predictions(table(kind=["dog", "cat", "eel", "dog"]), prediction="kind", person="bob")
    assert (again.conflicting, again.conflicting_examples) == (1, ("'id-0' (project: cat, file: dog)",))


def test_a_request_is_processed_once_also_after_the_project_is_reopened(project: Project) -> None:
    rows, features = {"id": ["new"], "text": ["a new pet"], "number": [1.0], "animal": ["cat"]}, project.X[:1].copy()
    calls: dict[str, Any] = {
        "labels": lambda of, **more: of.importer.import_labels(table(), label="kind", person="bob", **more),
        "nothing to write": lambda of, **more: of.importer.import_labels(
            {"id": ["id-0"], "kind": ["cat"]}, label="kind", person="bob", **more
        ),
        "predictions": lambda of, **more: of.importer.import_predictions(
            table(), prediction="kind", person="bob", **more
        ),
        "items": lambda of, **more: of.importer.add_items(rows, person="bob", features=features, **more),
    }
    first = {name: call(project, request=name).as_dict() for name, call in calls.items()}
    assert first["labels"]["written"]
    assert not first["nothing to write"]["written"]
    project.correct(5, "dog", person="ann")
    with open_project(project.place) as other:
        for reader in (project, other):
            before = reader.events()
            again = {name: call(reader, request=name).as_dict() for name, call in calls.items()}
            assert again == {name: report | {"repeated": True} for name, report in first.items()}
            assert reader.events() == before
        # The same name for something else, and by somebody else.
        with pytest.raises(ConflictError, match="was used before, for something else"):
            calls["items"](other, request="labels")
        with pytest.raises(ConflictError, match="was used before"):
            other.import_labels(table(), label="kind", person="eve", request="labels")
    # A trial run writes nothing, so its request is not remembered.
    assert not calls["labels"](project, check=True, request="trial").written
    assert "trial" not in project.state().messages


def test_predictions_are_kept_and_used_for_nothing(project: Project) -> None:
    found = table(**{"p(cat)": [0.9, 0.8, 0.1, 0.2], "p(eel)": [0.1, 0.1, 0.75, 0.1]})
    before = project.state().answers()
    report = project.import_predictions(found, prediction="kind", person="bob", source="old model")
    assert (report.predicted, report.written) == (4, True)
    state = project.state()
    assert state.answers() == before
    assert state.predictions.imported(5) == ("eel", 0.75, "old model")
    assert state.predictions.imported(6) == ("dog", None, "old model")
    assert state.predictions.imported(7) is None
    again = project.import_predictions(found, prediction="kind", person="bob", source="old model")
    assert (again.predicted, again.same, again.written) == (0, 4, False)
    with open_project(project.place) as other:
        assert other.state().predictions.imported(5) == ("eel", 0.75, "old model")
        assert other.state().predictions.n_imported == 4
    newer = {"id": ["id-5"], "kind": ["cat"], "sure": [0.5]}
    project.import_predictions(newer, prediction="kind", person="bob", probability="sure")
    assert project.state().predictions.imported(5) == ("cat", 0.5, "predictions")
    assert project.state().predictions.n_imported == 4


def test_predicted_numbers(tmp_path: Path) -> None:
    with make(tmp_path / "n.suffice", 20, task="regression") as project:
        project.import_predictions({"id": ["id-3"], "y": [1.5]}, prediction="y", person="ann")
        assert project.state().predictions.imported(3) == (1.5, None, "predictions")


@pytest.mark.slow
def test_many_labels_are_imported_in_one_step(tmp_path: Path) -> None:
    texts = [f"text number {k}" for k in range(3000)]
    with create_project(tmp_path / "texts", texts, classes=["a", "b"]) as project:
        seq = project.state().seq
        project.import_labels({"text": texts, "y": ["a", "b"] * 1500}, label="y", person="ann")
        assert project.state().seq == seq + 3000
        assert len({event.at for event in project.events(seq)}) == 1


def test_labels_that_are_not_classes_are_named_with_the_difference(project: Project) -> None:
    before = len(project.events())
    with pytest.raises(InvalidValueError, match=r"no label of .* can be used.*Cat 2.*'Cat' differs"):
        project.import_labels(table(kind=["Cat", "Cat", "EEL", ""]), label="kind", person="bob")
    with pytest.raises(InvalidValueError, match=r"no label of .* can be used.*The classes are 'cat', 'dog', 'eel'"):
        project.import_labels(table(kind=["yes", "no", "no", "no"]), label="kind", person="bob")
    assert len(project.events()) == before
    report = project.import_labels(table(kind=["cat", "Dog", "eel", "dog"]), label="kind", person="bob", check=True)
    assert (report.unknown, "upper and lower case only" in report.notes[-1]) == ({"Dog": 1}, True)


def test_rows_that_differ_from_their_items_are_noticed(tmp_path: Path) -> None:
    data: dict[str, list[Any]] = {
        "id": [f"r{k}" for k in range(20)],
        "body": [f"text {k} of some words" for k in range(20)],
        "size": list(range(20)),
    }
    with create_project(tmp_path / "p.suffice", data, classes=["a", "b"], text="body") as project:
        fits = {**data, "size": [f"{k}.0" for k in range(20)], "kind": ["a"] * 20}
        assert not project.import_labels(fits, label="kind", person="bob", check=True).notes
        # The ids are those of the rows before.
        shifted = {**fits, "id": [f"r{k}" for k in range(1, 21)]}
        (note,) = project.import_labels(shifted, label="kind", person="bob", check=True).notes
        assert note == (
            "19 of 19 compared rows differ from their items in column 'body', such as 'r1'; check that the ids are "
            "those of this project"
        )
        # A cell that is left empty says nothing.
        assert not project.import_labels({**fits, "size": [""] * 20}, label="kind", person="bob", check=True).notes
        # A few texts may have been corrected.
        corrected = {**fits, "body": [*data["body"][:15], *(f"better {k}" for k in range(5))]}
        assert not project.import_labels(corrected, label="kind", person="bob", check=True).notes
