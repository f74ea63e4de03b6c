"""The statement about a finished data set: its numbers, what it does not cover, and no text that runs."""

import re
from pathlib import Path

import numpy as np
import pytest

from suffice.project.final_files import final_digest
from suffice.project.labelling_project import Project
from suffice.report.statement_page import statement_contents, statement_page
from tests.project.test_data_set_goal import LABELLED, SIZE, answer, checked, goal_project, predict, truth
from tests.project.test_final_files import half_labelled
from tests.reading import Reader
from tests.report.test_project_report import is_whole


def read_statement(project: Project) -> Reader:
    page = statement_page(project, project.final_labels())
    read = Reader(page)
    is_whole(read, page)
    return read


def words(read: Reader) -> str:
    return " ".join(read.text.replace("\u00a0", " ").split())


def test_the_numbers_of_the_statement(tmp_path: Path) -> None:
    with half_labelled(tmp_path / "pets.suffice") as project:
        items = checked(project)
        read, digest = read_statement(project), final_digest(project, project.final_labels())
        found = project.checks()[0].progress
        assert found is not None
        text = words(read)
        assert "At most 12 of all 120 labels (10 %) are wrong." in text
        assert "Confidence: 95 %." in text
        assert "the probability of this is at most 5 %" in text
        assert "Random check number 1 of these rows" in text
        assert f"At that time {SIZE - LABELLED} rows had no label of a person." in text
        assert f"{len(items)} of these were drawn at random and labelled by people" in text
        assert found["wrong"] == 0
        assert f"None of the {len(items)} predictions was wrong." in text
        people = LABELLED + len(items)
        assert f"Labels of people count as right. If 5 % of the {people} labels of people are wrong" in text
        assert digest in text
        for said in ("Errors of people.", "Wrong answers in the check.", "Other rows.", "Later changes."):
            assert said in text
        assert [name for name in read.ids if name != "main"] == [
            *("guaranteed", "sources", "checked", "people", "not-covered", "about")
        ]
        # The same project gives the same page.
        assert statement_page(project, project.final_labels()) == statement_page(project, project.final_labels())


def people(project: Project) -> list[tuple[str, int, int]]:
    """Rows of the table of people: name, labels, and those in the check."""
    return [(row.name, row.labels, row.in_check) for row in statement_contents(project, project.final_labels()).people]


def test_who_labelled(tmp_path: Path) -> None:
    with half_labelled(tmp_path / "pets.suffice") as project:
        items = checked(project)
        assert sorted(people(project)) == [("ann", LABELLED, 0), ("bob", len(items), len(items))]
        # Many people are shown together.
        left = [item for item in range(LABELLED, SIZE) if item not in items]
        for k, item in enumerate(left[:14]):
            project.label(item, truth(item), person=f"person {k:02d}")
        assert people(project)[-1] == ("4 other people", 4, 0)
        assert "4 other people" in words(read_statement(project))


def test_stated_errors_of_people(tmp_path: Path) -> None:
    with half_labelled(tmp_path / "pets.suffice", annotator_error=0.05) as project:
        items = checked(project)
        people = LABELLED + len(items)
        text, most = words(read_statement(project)), project.final_labels().guarantee.wrong_at_most
        assert most == 6 + people * 5 // 100
        assert f"At most {most} of all 120 labels" in text
        assert "At most 5 % of the labels of people are taken to be wrong" in text
        assert f"at most {most - 6}, those of the check included" in text
        assert "More errors of people than stated." in text
        assert "Labels of people count as right." not in text


def test_without_a_check(tmp_path: Path) -> None:
    with goal_project(tmp_path / "pets.suffice") as project:
        for item in range(SIZE - 10):
            project.label(item, truth(item), person="ann")
        text = words(read_statement(project))
        assert "At most 10 of all 120 labels (8.4 %) are wrong." in text
        assert "no check was necessary" in text
        assert "Wrong answers in the check" not in text


def test_checks_that_were_given_up_and_rows_that_nobody_could_label(tmp_path: Path) -> None:
    with half_labelled(tmp_path / "pets.suffice") as project:
        project.start_check(person="ann", predict=predict)
        answer(project, 2)
        project.abort_check(person="ann")
        project.skip(60, person="ann")
        skipped = project.start_check(person="ann", predict=predict) and int(project.state().checks.pending()[0])
        project.skip(skipped, person="ann")
        items = answer(project)
        text = words(read_statement(project))
        assert f"{len(items) + 1} of these were drawn at random and shown to people" in text
        assert f"People labelled {len(items)}; 1 could not be labelled." in text
        assert re.search(rf" of the {len(items)} predictions (was|were) wrong\.", text)
        assert "The row without a label counts as wrong." in text
        assert "Random check number 2" in text
        assert "An earlier check of these rows proved nothing." in text
        assert "2 rows that nobody could label: they have no label in the final file." in text


def test_rows_that_were_added_later(tmp_path: Path) -> None:
    with half_labelled(tmp_path / "pets.suffice") as project:
        checked(project)
        project.add_items({"text": ["new"] * 2, "number": ["1"] * 2}, person="ann", features=np.zeros((2, 3)))
        project.label(SIZE, truth(0), person="eve")
        text = words(read_statement(project))
        assert "2 rows that were added after the check: they are not covered." in text
        assert "At most 12 of all 120 labels" in text
        assert "eve" not in [name for name, _, _ in people(project)]


@pytest.mark.parametrize("name", ["<script>alert(1)</script>", "a & b", "x" * 300])
def test_no_name_is_run(tmp_path: Path, name: str) -> None:
    with half_labelled(tmp_path / "pets.suffice", name=name[:200]) as project:
        checked(project)
        read_statement(project)
