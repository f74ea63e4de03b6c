"""The final file of a project: all rows in their order, where each label comes from, and the same bytes each time."""

import csv
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from suffice.errors import InvalidValueError, SufficeError
from suffice.project import create_project
from suffice.project.create import open_project
from suffice.project.final_files import all_rows_file, final_digest, final_file, renamed_columns
from suffice.project.labelling_project import Project
from suffice.project.learning_status import Predictions
from suffice.tables.file_writer import harmless
from tests.project.labelled_projects import HOSTILE
from tests.project.test_data_set_goal import LABELLED, SIZE, answer, checked, goal_project, predict, truth

FORMATS: tuple[Any, ...] = ("csv", "xlsx", "jsonl")


def half_labelled(place: Path, **changes: Any) -> Project:
    """A project of which a quarter is labelled."""
    project = goal_project(place, **changes)
    for item in range(LABELLED):
        project.label(item, truth(item), person="ann")
    return project


def lines(project: Project) -> list[dict[str, Any]]:
    """The final file as values."""
    content = final_file(project, project.final_labels(), "jsonl").content
    return [json.loads(line) for line in content.decode().splitlines()]


def test_rows_are_those_of_the_data_in_their_order(tmp_path: Path) -> None:
    with half_labelled(tmp_path / "pets.suffice") as project:
        items = checked(project)
        final = project.final_labels()
        rows = lines(project)
        columns = ["id", *project.settings.columns, "label", "source", "probability", "labelled_by", "labelled_at"]
        assert [list(row) for row in rows] == [columns] * SIZE
        # A column of numbers is one of numbers.
        wanted = [(name, text, float(number)) for name, text, number in project.rows(range(SIZE))]
        assert [tuple(row.values())[: len(columns) - 5] for row in rows] == wanted
        for item, row in enumerate(rows):
            source = "person" if item < LABELLED else "check" if item in items else "model"
            who = {"person": "ann", "check": "bob", "model": None}[source]
            assert (row["label"], row["source"], row["labelled_by"]) == (final.labels[item], source, who)
            assert (row["probability"] is None) == (row["labelled_at"] is not None) == (source != "model")


def test_the_same_project_gives_the_same_file(tmp_path: Path) -> None:
    with half_labelled(tmp_path / "pets.suffice") as project:
        checked(project)
        before = [final_file(project, project.final_labels(), format).content for format in FORMATS]
        digest = final_digest(project, project.final_labels())
    with open_project(tmp_path / "pets.suffice") as again:
        assert [final_file(again, again.final_labels(), format).content for format in FORMATS] == before
        assert final_digest(again, again.final_labels()) == digest
        file = final_file(again, again.final_labels(), "csv", byte_order_mark=True)
        assert (file.name, file.rows, file.content) == ("final.csv", SIZE, b"\xef\xbb\xbf" + before[0])


def test_labels_of_people_after_the_check(tmp_path: Path) -> None:
    with half_labelled(tmp_path / "pets.suffice") as project:
        items = checked(project)
        later = next(item for item in range(LABELLED, SIZE) if item not in items)
        project.label(later, truth(later), person="cat")
        project.correct(0, truth(1), person="dan")
        rows = lines(project)
        assert (rows[later]["source"], rows[later]["labelled_by"]) == ("person", "cat")
        assert (rows[0]["source"], rows[0]["labelled_by"], rows[0]["label"]) == ("person", "dan", truth(1))


def test_skipped_rows_have_no_label(tmp_path: Path) -> None:
    with half_labelled(tmp_path / "pets.suffice") as project:
        project.skip(50, person="ann")
        checked(project)
        row = lines(project)[50]
        assert [row[name] for name in ("label", "source", "probability", "labelled_by")] == [None, None, None, None]


def test_names_of_columns_that_the_data_have_too(tmp_path: Path) -> None:
    names = ("label", "source")
    table = {"id": ["a", "a", "b", "c"] * 10, "label": list(range(40)), "source": ["x", "y"] * 20}
    options: dict[str, Any] = {"classes": ["no", "yes"], "target": "kind", "at_most": 0.2, "of": "all", "seed": 1}
    with create_project(tmp_path / "p.suffice", table, **options) as project:
        for item in range(35):
            project.label(item, "no" if item < 20 else "yes", person="ann")
        row = lines(project)[0]
        # Two rows have the same id, so that it is a column like others, and the rows are numbered.
        assert list(row) == [
            *("id_2", "id", "label", "source"),
            *("label_2", "source_2", "probability", "labelled_by", "labelled_at"),
        ]
        assert (row["id_2"], row["id"], row["label"], row["label_2"]) == (1, "a", 0, "no")
        assert renamed_columns(project) == {name: f"{name}_2" for name in names}


def test_the_column_of_the_ids_keeps_its_name(tmp_path: Path) -> None:
    data = tmp_path / "mails.csv"
    data.write_text("ref,size\n" + "".join(f"r{k},{k}\n" for k in range(40)), encoding="utf-8")
    options: dict[str, Any] = {"classes": ["no", "yes"], "target": "kind", "at_most": 0.2, "of": "all", "seed": 1}
    with create_project(tmp_path / "p.suffice", data, id="ref", **options) as project:
        for item in range(35):
            project.label(item, "no" if item < 20 else "yes", person="ann")
        assert list(lines(project)[3])[:2] == ["ref", "size"]


def test_no_text_is_a_formula(tmp_path: Path) -> None:
    texts = (HOSTILE * 10)[:40]
    options: dict[str, Any] = {"classes": ["=no", "yes"], "target": "kind", "at_most": 0.2, "of": "all", "seed": 1}
    data = {"text": texts, "size": list(range(40))}
    with create_project(tmp_path / "p.suffice", data, **options) as project:
        for item in range(35):
            project.label(item, "=no" if item < 20 else "yes", person="ann")
        final = project.final_labels()
        rows = list(csv.reader(io.StringIO(final_file(project, final, "csv").content.decode(), newline="")))
        assert rows[1][rows[0].index("label")] == "'=no"
        assert all(cell.startswith("'") or harmless(cell) == cell for row in rows for cell in row)
        with zipfile.ZipFile(io.BytesIO(final_file(project, final, "xlsx").content)) as archive:
            sheet = archive.read("xl/worksheets/sheet1.xml")
        assert b"<f" not in sheet
        assert b'preserve">=no<' in sheet


def test_before_the_goal_is_reached(tmp_path: Path) -> None:
    with half_labelled(tmp_path / "pets.suffice") as project:
        project.start_check(person="ann", predict=predict)
        answer(project, 3)
        with pytest.raises(SufficeError, match=r"the goal is not reached: \d+ items of the check have no answer"):
            project.final_labels()


@pytest.mark.parametrize("rest", ["all", "rest"])
def test_all_rows_need_no_goal(tmp_path: Path, rest: str) -> None:
    with half_labelled(tmp_path / "pets.suffice", of=rest) as project:
        project.skip(50, person="ann")
        predictions = predict("", [])
        assert predictions.probabilities is not None
        file = all_rows_file(project, predictions, "jsonl")
        assert (file.name, file.rows) == ("all-rows.jsonl", SIZE)
        rows = [json.loads(line) for line in file.content.decode().splitlines()]
        for item, row in enumerate(rows):
            if item < LABELLED:
                expected: tuple[Any, ...] = (truth(item), "person", None, "ann")
            elif item == 50:
                expected = (None, None, None, None)
            else:
                probable = predictions.probabilities[item].max()
                expected = (predictions.labels[item], "model", pytest.approx(probable), None)
            assert (row["label"], row["source"], row["probability"], row["labelled_by"]) == expected
        # Before the model has begun, the labels of people are there.
        early = [json.loads(line) for line in all_rows_file(project, None, "jsonl").content.decode().splitlines()]
        assert [row["label"] for row in early] == [row["label"] if row["source"] == "person" else None for row in rows]
        with pytest.raises(InvalidValueError, match="there are 5"):
            all_rows_file(project, Predictions(np.array(["cat"] * 5), np.zeros(5), None), "jsonl")
