"""A project that screens to a goal: settings, check, what voids it, status, statement and final labels."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import suffice as sf
from suffice.checks import ScreeningGuarantee, allowed_missed
from suffice.errors import InvalidValueError, SufficeError
from suffice.project import create_project, open_project
from suffice.project.data_set_goal import ProjectLabels
from suffice.project.events import EventKind
from suffice.project.labelling_project import Project
from suffice.project.learning_status import Predictions
from suffice.project.settings import Settings
from suffice.project.state import Answer
from suffice.project.status_summary import status
from suffice.report.project_report import report_page
from suffice.report.statement_page import statement_contents, statement_page
from tests.project.labelled_projects import learned
from tests.project.making_projects import CLASSES, make

CAT, DOG, EEL = CLASSES
SIZE = 120
READ = 60
#: A cat among the items that nobody has read before the check.
HIDDEN = 77


def truth(item: int) -> str:
    return CAT if item == HIDDEN or (item < 40 and item % 2 == 0) else (DOG, EEL)[item % 2]


FOUND = sum(truth(item) == CAT for item in range(READ))


def predict(model: str, answers: list[Answer]) -> Predictions:
    """Predictions that are wrong for every second item, which does not matter to a screening."""
    del model, answers
    labels = np.array([CAT if item % 2 else EEL for item in range(SIZE)])
    p = np.where(labels[:, None] == np.array(CLASSES), 0.8, 0.1)
    return Predictions(labels, np.full(SIZE, 0.2), p)


def goal_project(place: Path, n: int = SIZE, **changes: Any) -> Project:
    given = {"positive": CAT, "recall": 0.8, "of": "all", "at_most": 0.2, "initial": 4}
    return make(place, n, **{**given, "rule": sf.RecallTest(0.8).state_dict(), **changes})


@pytest.fixture(scope="module")
def unchanged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project of which half is read, which is copied for each test."""
    place = tmp_path_factory.mktemp("unchanged") / "pets.suffice"
    with goal_project(place) as made:
        for item in range(READ):
            made.label(item, truth(item), person="ann")
    return place


@pytest.fixture
def project(unchanged: Path, tmp_path: Path) -> Iterator[Project]:
    with open_project(shutil.copytree(unchanged, tmp_path / "pets.suffice")) as opened:
        yield opened


def answer(project: Project, most: int = SIZE) -> list[int]:
    """Answer items of the open check, as many as wanted, with the truth."""
    given: list[int] = []
    while len(given) < most and len(pending := project.state().checks.pending()):
        project.label(int(pending[0]), truth(int(pending[0])), person="bob")
        given.append(int(pending[0]))
    return given


def checked(project: Project) -> list[int]:
    project.start_check(person="ann", predict=predict)
    return answer(project)


def screened(final: ProjectLabels) -> ScreeningGuarantee:
    assert isinstance(final.guarantee, ScreeningGuarantee)
    return final.guarantee


def goal_of(project: Project) -> dict[str, Any]:
    goal: dict[str, Any] = status(project, learned(project)[1])["goal"]
    return goal


# From the goal to the final labels.


def test_the_check_proves_how_many_are_missed(project: Project) -> None:
    with pytest.raises(
        SufficeError, match="no check has proven that at most 20 % of the items of class 'cat' are miss"
    ):
        project.final_labels()
    items = checked(project)
    final, check = project.final_labels(), project.checks()[0]
    found = screened(final)
    assert check.draw.terms is not None
    assert (check.draw.terms.allowed, check.draw.terms.pool) == (allowed_missed(0.2, FOUND), SIZE - READ)
    n_found = FOUND + (HIDDEN in items)
    assert (found.class_name, found.found, found.rows, found.by_people) == (CAT, n_found, SIZE, READ + len(items))
    assert found.missed_at_most == 5
    assert found.recall_at_least == n_found / (n_found + 5)
    for item in range(SIZE):
        source = "person" if item < READ else "check" if item in items else "model"
        assert final.source[item] == source
        assert final.labels[item] == (predict("", []).labels[item] if source == "model" else truth(item))
    assert "This is about class 'cat' only" in str(final)


def test_what_is_fixed_is_in_the_journal(project: Project, tmp_path: Path) -> None:
    project.start_check(person="ann", predict=predict, expected=0.02)
    event = project.events()[-1]
    assert event.kind is EventKind.check_started
    data = event.data
    assert (data["quantity"], data["class_name"], data["predicted_as_found"]) == ("recall", CAT, False)
    assert (data["of"], data["at_most"], data["corrected"], data["terms"]["allowed"]) == ("all", 0.2, True, 5)
    answer(project)
    before = project.final_labels()
    with open_project(tmp_path / "pets.suffice") as again:
        assert again.final_labels().guarantee == before.guarantee
        assert again.final_labels().labels == before.labels


def test_items_of_the_class_make_the_check_longer(project: Project) -> None:
    project.start_check(person="ann", predict=predict)
    needed = project.checks()[0].progress["needed"]  # type: ignore[index]
    first = int(project.state().checks.pending()[0])
    project.label(first, CAT, person="bob")
    progress = project.checks()[0].progress
    assert progress is not None
    assert (progress["wrong"], progress["class_name"]) == (1, CAT)
    assert progress["needed"] > needed - 1
    # The others do not count, whatever was predicted.
    answer(project, 3)
    assert project.checks()[0].progress["wrong"] == 1  # type: ignore[index]


def test_the_check_always_ends(project: Project) -> None:
    project.start_check(person="ann", predict=predict)
    while len(pending := project.state().checks.pending()):
        project.label(int(pending[0]), CAT, person="bob")
    # All are of the class: only as many items are left as may be missed.
    final = project.final_labels()
    assert final.source.count("model") == 5
    assert screened(final).missed_at_most == 5


def test_an_item_that_nobody_can_label_counts_as_of_the_class(project: Project) -> None:
    project.start_check(person="ann", predict=predict)
    skipped = int(project.state().checks.pending()[0])
    project.skip(skipped, person="ann")
    assert project.checks()[0].progress["wrong"] == 1  # type: ignore[index]
    answer(project)
    found = screened(project.final_labels())
    assert (found.left_out, found.rows) == (1, SIZE - 1)
    assert "1 item could not be labelled and counts as an item of the class" in found.evidence


def test_nearly_all_items_read_need_no_check(tmp_path: Path) -> None:
    with goal_project(tmp_path / "few.suffice", 80) as project:
        for item in range(76):
            project.label(item, truth(item), person="ann")
        reached = project.reached_goal()
        assert reached is not None
        assert reached.check is None
        assert isinstance(reached.guarantee, ScreeningGuarantee)
        assert (reached.guarantee.missed_at_most, reached.guarantee.confidence) == (4, 1.0)
        assert (
            "no more than the number of rows of class 'cat'"
            in statement_contents(project, project.final_labels()).facts[0]
        )


# Afterwards.


def test_a_corrected_answer_is_computed_again(project: Project) -> None:
    items = checked(project)
    wanted = next(item for item in items if truth(item) != CAT)
    project.correct(wanted, CAT, person="ann")
    assert project.reached_goal() is None
    with pytest.raises(SufficeError, match=r"of the check ha(s|ve) no answer"):
        project.final_labels()
    answer(project)
    assert project.final_labels().labels[wanted] == CAT


def test_finds_that_are_corrected_may_lose_the_goal(project: Project) -> None:
    checked(project)
    before = screened(project.final_labels()).found
    cats = [item for item in range(READ) if truth(item) == CAT]
    project.correct(cats[0], DOG, person="bob")
    # With 20 finds and 5 that may be missed, 20 % are missed at most; with 19 finds it is more.
    assert (project.reached_goal() is None) == (before - 1 < 20)
    for item in cats[1:6]:
        project.correct(item, DOG, person="bob")
    assert project.reached_goal() is None
    with pytest.raises(SufficeError, match="labels were corrected since the check started, and fewer items"):
        project.final_labels()
    project.correct(cats[0], CAT, person="bob")
    for item in cats[1:6]:
        project.correct(item, CAT, person="bob")
    assert screened(project.final_labels()).found == before


def test_an_undone_answer_is_missing_and_a_label_taken_back_is_not_covered(project: Project) -> None:
    checked(project)
    project.undo(person="bob")
    assert project.reached_goal() is None
    answer(project)
    assert project.reached_goal() is not None
    project.take_back(4, person="ann")
    with pytest.raises(SufficeError, match="1 label was taken back since the check started"):
        project.final_labels()
    assert project.guarantee() is None
    project.label(4, truth(4), person="ann")
    assert project.reached_goal() is not None


def test_new_rows_are_not_covered(project: Project) -> None:
    checked(project)
    before = project.final_labels()
    project.add_items({"text": ["new"] * 3, "number": ["1"] * 3}, person="ann", features=np.zeros((3, 3)))
    project.label(SIZE + 1, CAT, person="ann")
    final = project.final_labels()
    assert final.guarantee == before.guarantee
    assert "3 new ones are not covered." in str(final)


def test_a_renamed_class_stays_the_class(project: Project) -> None:
    checked(project)
    before = screened(project.final_labels())
    project.rename_class(CAT, "tiger", person="ann")
    assert project.settings.positive == "tiger"
    after = screened(project.final_labels())
    assert (after.class_name, after.found, after.missed_at_most) == ("tiger", before.found, before.missed_at_most)
    assert "of class 'tiger'" in str(after)


def test_other_classes_may_be_merged_but_not_the_class(project: Project) -> None:
    checked(project)
    before = screened(project.final_labels())
    project.merge_classes([DOG, EEL], DOG, person="ann")
    project.rename_class(CAT, "tiger", person="ann")
    after = project.final_labels()
    assert screened(after).found == before.found
    assert "of class 'tiger'" in str(after)
    assert "Other classes were merged since the check" in str(after)
    assert set(after.labels) == {"tiger", DOG}


def test_a_class_that_is_merged_with_another_needs_another_check(project: Project) -> None:
    checked(project)
    project.merge_classes([CAT, EEL], CAT, person="ann")
    assert project.reached_goal() is None
    with pytest.raises(SufficeError, match="start another check"):
        project.final_labels()


def test_added_classes_need_another_check(project: Project) -> None:
    checked(project)
    project.add_class("fox", person="ann")
    with pytest.raises(SufficeError, match="classes were added or removed since the check"):
        project.final_labels()


def test_a_check_of_another_goal(project: Project) -> None:
    checked(project)
    project.change_settings({"at_most": 0.1}, person="ann")
    assert project.reached_goal() is None
    project.change_settings({"at_most": 0.3}, person="ann")
    assert project.reached_goal() is not None
    # A check of fixed size about the recall, and a target for the rest, are others.
    project.start_check(10, person="ann", recall_of=CAT, predicted_as_found=False, predict=predict)
    assert project.checks()[-1].draw.terms is None
    project.abort_check(person="ann")
    project.start_check(person="ann", at_most=0.9, of="rest", predict=predict)
    assert project.checks()[-1].draw.asked.quantity == "error"


# Settings.


def test_a_project_is_created_with_the_goal(tmp_path: Path) -> None:
    table = {"a": np.arange(30.0).tolist()}
    given: dict[str, Any] = {"classes": ["yes", "no"], "positive": "yes", "at_most": 0.05, "of": "all"}
    with create_project(tmp_path / "p.suffice", table, **given) as project:
        settings = project.settings
        assert (settings.positive, settings.recall, settings.random_share) == ("yes", 0.95, 0.0)
        assert settings.criterion() == sf.RecallTest(0.95)
        assert settings.goal is not None
        assert settings.goal.class_name == "yes"
        assert Settings.from_dict(json.loads(json.dumps(settings.as_dict()))) == settings
        project.change_settings({"at_most": None}, person="ann")
        assert project.settings.goal is None
        project.change_settings({"at_most": 0.1, "of": "all"}, person="ann")
        assert (project.settings.at_most, project.settings.of) == (0.1, "all")
    for changes, said in (
        ({"annotator_error": 0.01}, "annotator_error does not apply to a screening"),
        ({"correction_cost": 0.5}, "correction_cost does not apply to a screening"),
        ({"recall": 0.9}, "recall does not go with of"),
        ({"at_most": None}, "needs a share"),
    ):
        with pytest.raises(InvalidValueError, match=said):
            create_project(tmp_path / "q.suffice", table, **{**given, **changes})
    assert not (tmp_path / "q.suffice").exists()


def test_changes_that_do_not_apply_are_refused(project: Project) -> None:
    for changes in ({"annotator_error": 0.01}, {"correction_cost": 0.5}):
        with pytest.raises(InvalidValueError, match="does not apply to a screening"):
            project.change_settings(changes, person="ann")
    with pytest.raises(InvalidValueError, match="does not apply to a screening"):
        project.start_check(person="ann", annotator_error=0.01, predict=predict)
    with pytest.raises(InvalidValueError, match="recall_of is not for the goal of a screening"):
        project.start_check(person="ann", at_most=0.1, of="all", recall_of=DOG, predict=predict)


# Status and pages.


def test_the_status_follows_the_goal(tmp_path: Path) -> None:
    with goal_project(tmp_path / "pets.suffice", 200) as project:

        def cat(item: int) -> str:
            return CAT if float(project.X[item, 0]) > 0.8 else DOG

        assert goal_of(project)["plan"] is None
        order = np.argsort(-project.X[:, 0]).tolist()
        for item in [*order[::25], *order[:60]]:
            if project.state().label_of(item) is None:
                project.label(item, cat(item), person="ann")
        goal = goal_of(project)
        found = sum(label == CAT for label in project.state().labels.by_item.values())
        assert (goal["class_name"], goal["found"], goal["rows"]) == (CAT, found, 200)
        assert goal["allowed"] == allowed_missed(0.2, found)
        assert goal["sentences"][0] == (
            f"Goal: at most 20 % of the items of class 'cat' are missed; {found} are found, so that "
            f"{goal['allowed']} may be missed."
        )
        assert goal["plan"]["sentence"] in goal["sentences"]
        assert goal["check_sentences"][2] == (
            "Answer without the prediction. An item that you skip counts as an item of the class."
        )
        assert goal["annotator_error_seen"] is None
        told = status(project, learned(project)[1])
        assert told["decision"]["screening"]["found"] == found
        assert told["decision"]["error_figure"].startswith(f"{found} of ≈ ")
        project.start_check(person="ann")
        told = status(project, learned(project)[1])
        assert (told["check"]["target_words"], told["goal"]["check_open"]) == (
            "at most 20\u00a0% of class 'cat' missed",
            True,
        )
        assert told["check"]["how_to_answer"].endswith("it then counts as an item of the class.")
        assert "of class 'cat'. The target is proven if none of the next" in told["check"]["sentence"]
        assert told["check"]["sequential"]["class_name"] == CAT
        while len(pending := project.state().checks.pending()):
            project.label(int(pending[0]), cat(int(pending[0])), person="ann")
        told = status(project, learned(project)[1])
        reached = told["goal"]["reached"]
        assert reached["statement"] == str(project.final_labels().guarantee)
        assert reached["figure_note"] == "of cat found, guaranteed"
        assert (told["goal"]["missing"], told["decision"]["answer"]) == ("", "enough")
        # The words state it once.
        assert sum("about class 'cat' only" in words for words in told["words"]) == 1
        assert told["guarantee"]["figure"] == reached["figure"]
        page = report_page(project, learned(project)[1])
        assert "of the items of class &#39;cat&#39; are missed" in page
        assert "eople have found at least" in page


def test_the_statement_to_print(project: Project) -> None:
    project.skip(SIZE - 1, person="ann")
    items = checked(project)
    final = project.final_labels()
    found = screened(final)
    told = statement_contents(project, final)
    assert told.statement.startswith("People have found at least ")
    assert told.statement.endswith(
        f"of the rows of class 'cat': {found.found} found, at most 5 missed among the {found.predicted} rows that "
        "nobody read."
    )
    assert f"{FOUND} rows of class 'cat' were found, so that 5 may be missed." in told.facts[0]
    assert told.facts[1].startswith(f"{len(items)} of the rows that nobody had read were drawn at random")
    assert told.counted == "of class 'cat'"
    assert [row.name for row in told.sources] == ["person", "check", "model", ""]
    assert told.sources[0].wrong == f"{FOUND}, found"
    assert told.sources[-1].wrong == f"{found.found} found, at most 5 missed"
    assert any(
        line.startswith("Other classes. The statement is about the rows of class 'cat'.") for line in told.not_covered
    )
    assert dict(told.about)["Goal"].replace("\u00a0", " ") == "at most 20 % of the items of class 'cat' are missed"
    page = statement_page(project, final)
    assert "at most 5 missed among the" in page
    assert "of class &#39;cat&#39;</th>" in page
