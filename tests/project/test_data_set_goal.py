"""The goal of a project about all final labels: what a check fixes, what voids it, and what changes afterwards."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from suffice.checks import spent_alpha
from suffice.errors import InvalidValueError, SufficeError
from suffice.presentation.text_format import utc_date
from suffice.project.create import open_project
from suffice.project.data_set_goal import ProjectLabels
from suffice.project.events import EventKind
from suffice.project.labelling_project import ConflictError, Project
from suffice.project.learning_status import Predictions
from suffice.project.project_check import unpacked_order, unpacked_predictions, unpacked_shares
from suffice.project.state import Answer
from suffice.project.status_summary import sequential_curves, status
from tests.project.labelled_projects import label_some, learned, of_feature
from tests.project.making_projects import CLASSES, make

SIZE = 120
LABELLED = 30
#: Items whose prediction is wrong.
WRONG = (40, 41, 77)


def truth(item: int) -> str:
    return CLASSES[item % 2]


def predict(model: str, answers: list[Answer]) -> Predictions:
    """Predictions that are right but for a few items, with probabilities."""
    del model, answers
    labels = np.array([CLASSES[2] if item in WRONG else truth(item) for item in range(SIZE)])
    sure = np.linspace(0.5, 0.99, SIZE)
    p = np.where(labels[:, None] == np.array(CLASSES), sure[:, None], (1.0 - sure[:, None]) / 2.0)
    return Predictions(labels, 1.0 - sure, p)


def goal_project(place: Path, n: int = SIZE, at_most: float | None = 0.1, **changes: Any) -> Project:
    return make(place, n, **{"of": "all", "at_most": at_most, "initial": 4, **changes})


@pytest.fixture(scope="module")
def unchanged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project of which a quarter is labelled, which is copied for each test."""
    place = tmp_path_factory.mktemp("unchanged") / "pets.suffice"
    with goal_project(place) as made:
        for item in range(LABELLED):
            made.label(item, truth(item), person="ann")
    return place


@pytest.fixture
def project(unchanged: Path, tmp_path: Path) -> Iterator[Project]:
    with open_project(shutil.copytree(unchanged, tmp_path / "pets.suffice")) as opened:
        yield opened


def answer(project: Project, most: int = SIZE, person: str = "bob") -> list[int]:
    """Answer items of the open check, as many as wanted, with the truth."""
    given: list[int] = []
    while len(given) < most and len(project.state().checks.pending()):
        (asked,) = project.next(person)
        assert asked.why
        project.label(asked.position, truth(asked.position), person=person)
        given.append(asked.position)
    return given


def checked(project: Project, **asked: Any) -> list[int]:
    """Prove the goal by a check; the items of the check."""
    project.start_check(person="ann", predict=predict, **asked)
    return answer(project)


def contents(final: ProjectLabels) -> list[Any]:
    return [final.labels, final.source, final.person, final.at, str(final), np.nan_to_num(final.probability).tolist()]


# From the goal to the final labels.


def test_final_labels_are_those_of_people_and_of_the_check(project: Project) -> None:
    with pytest.raises(SufficeError, match="no check has proven that at most 10 % of all labels are wrong; 90 items"):
        project.final_labels()
    items = checked(project)
    final, check = project.final_labels(), project.checks()[0]
    assert check.state == "complete"
    assert check.draw.terms is not None
    assert (check.draw.terms.allowed, check.draw.terms.pool, check.draw.terms.corrected) == (12, 90, True)
    assert final.guarantee == project.reached_goal().guarantee  # type: ignore[union-attr]
    assert (final.guarantee.rows, final.guarantee.by_people) == (SIZE, LABELLED + len(items))
    assert final.guarantee.wrong_at_most == 12
    for item in range(SIZE):
        source = "person" if item < LABELLED else "check" if item in items else "model"
        assert final.source[item] == source
        assert final.person[item] == {"person": "ann", "check": "bob", "model": ""}[source]
        assert bool(final.at[item]) == (source != "model")
        assert np.isnan(final.probability[item]) == (source != "model")
        assert final.labels[item] == (predict("", []).labels[item] if source == "model" else truth(item))
    given = [item for item in range(SIZE) if final.source[item] == "model"]
    assert final.probability[given] == pytest.approx(np.linspace(0.5, 0.99, SIZE)[given], abs=5e-5)
    assert list(final.to_frame().columns) == ["label", "source", "probability", "person", "at"]


def test_the_same_project_has_the_same_final_labels(project: Project, tmp_path: Path) -> None:
    checked(project)
    before = contents(project.final_labels())
    with open_project(tmp_path / "pets.suffice") as again:
        assert contents(again.final_labels()) == before
    assert contents(project.final_labels()) == before


def test_what_must_be_fixed_is_in_the_journal_before_the_first_answer(project: Project) -> None:
    project.skip(99, person="ann")
    project.start_check(person="ann", predict=predict, expected=0.03)
    event = project.events()[-1]
    assert event.kind is EventKind.check_started
    data = event.data
    assert (data["of"], data["at_most"], data["annotator_error"], data["corrected"]) == ("all", 0.1, 0.0, True)
    terms = data["terms"]
    # A skipped item has no final label: 119 are left, 89 without a label.
    assert (terms["allowed"], terms["pool"], terms["alpha"]) == (11, 89, spent_alpha(1, 0.05))
    assert terms["planned"] >= 1
    assert sorted(unpacked_order(data["order"])) == [item for item in range(LABELLED, SIZE) if item != 99]
    unlabelled = range(LABELLED, SIZE)
    assert unpacked_predictions(data["predictions"], CLASSES, 90).tolist() == [
        predict("", []).labels[item] for item in unlabelled
    ]
    shares = np.linspace(0.5, 0.99, SIZE)[LABELLED:]
    assert unpacked_shares(data["probabilities"], 90) == pytest.approx(shares, abs=1e-4)


def test_the_number_of_wrong_labels_is_that_of_the_rows_at_the_start(project: Project) -> None:
    project.start_check(person="ann", predict=predict)
    project.add_items({"text": ["new"] * 40, "number": ["1"] * 40}, person="ann", features=np.zeros((40, 3)))
    answer(project)
    reached = project.reached_goal()
    assert reached is not None
    assert (reached.guarantee.rows, reached.guarantee.allowed, reached.added) == (SIZE, 12, 40)


def test_without_a_model_of_its_own_probabilities_are_not_known(project: Project) -> None:
    project.start_check(person="ann", predict=lambda model, answers: predict(model, answers).labels)
    answer(project)
    assert np.isnan(project.final_labels().probability).all()


def test_nearly_all_labels_by_people_need_no_check(tmp_path: Path) -> None:
    with goal_project(tmp_path / "few.suffice", 40) as project:
        label_some(project, range(36))
        reached = project.reached_goal()
        assert reached is not None
        assert reached.check is None
        with pytest.raises(InvalidValueError, match="nothing to check"):
            project.start_check(person="ann")
        final = project.final_labels()
        assert final.source == ["person"] * 36 + ["model"] * 4
        assert (final.guarantee.wrong_at_most, final.guarantee.confidence) == (4, 1.0)
        assert contents(final) == contents(project.final_labels())
        label_some(project, range(36, 40))
        assert project.final_labels().guarantee.wrong_at_most == 0


def test_numbers_have_a_tolerance(tmp_path: Path) -> None:
    with goal_project(tmp_path / "numbers.suffice", 200, task="regression", tolerance=0.5) as project:
        label_some(project, range(30))
        project.start_check(person="ann")
        while len(pending := project.state().checks.pending()):
            label_some(project, pending[:1].tolist())
        final = project.final_labels()
        assert final.guarantee.tolerance == 0.5
        assert np.isnan(final.probability).all()
        far = [abs(float(label) - float(of_feature(project, item))) > 0.5 for item, label in enumerate(final.labels)]
        assert sum(far) <= final.guarantee.wrong_at_most == 20
        project.change_settings({"tolerance": 0.25}, person="ann")
        with pytest.raises(SufficeError, match="no check has proven"):
            project.final_labels()


def test_a_check_of_another_goal_proves_the_goal_only_if_it_is_stricter(project: Project) -> None:
    checked(project, at_most=0.05, of="all")
    assert project.reached_goal() is not None
    project.change_settings({"at_most": 0.02}, person="ann")
    assert project.reached_goal() is None
    project.change_settings({"at_most": 0.08}, person="ann")
    assert project.reached_goal() is not None
    project.change_settings({"annotator_error": 0.01}, person="ann")
    assert project.reached_goal() is None


def test_a_check_of_the_rest_proves_nothing_about_all_labels(project: Project) -> None:
    checked(project, at_most=0.1, of="rest")
    assert project.guarantee() is not None
    assert project.reached_goal() is None


# What is fixed before a check, and what voids it.


def test_later_labels_and_another_model_do_not_change_the_delivered_predictions(project: Project) -> None:
    checked(project)
    before = project.final_labels()
    rest = [item for item in range(SIZE) if before.source[item] == "model"]
    # The new labels contradict the model.
    for item in rest[:10]:
        project.label(item, CLASSES[2], person="ann")
    project.switch_model("kernel", person="ann")
    after = project.final_labels()
    assert [after.labels[item] for item in rest[10:]] == [before.labels[item] for item in rest[10:]]
    assert [after.labels[item] for item in rest[:10]] == [CLASSES[2]] * 10
    assert (after.guarantee.by_people, after.guarantee.wrong_at_most) == (before.guarantee.by_people + 10, 12)
    assert [after.source[item] for item in rest[:10]] == ["person"] * 10


def test_labels_of_earlier_checks_never_count_as_sample_again(project: Project) -> None:
    project.start_check(person="ann", predict=predict)
    first = answer(project, 15)
    project.abort_check(person="ann")
    assert project.reached_goal() is None
    second = checked(project)
    check = project.checks()[-1]
    assert set(check.draw.items).isdisjoint(first)
    assert check.draw.pool == 90 - 15
    final = project.final_labels()
    assert {final.source[item] for item in first} == {"person"}
    assert {final.source[item] for item in second} == {"check"}


def test_a_check_that_is_given_up_spends_its_error_probability(project: Project) -> None:
    project.start_check(person="ann", predict=predict)
    project.abort_check(person="ann")
    project.start_check(person="ann", predict=predict)
    draw = project.checks()[-1].draw
    assert draw.terms is not None
    assert (draw.number, draw.terms.alpha) == (2, spent_alpha(2, 0.05))


def test_two_projects_of_the_same_rows_share_the_error_probability(project: Project, tmp_path: Path) -> None:
    checked(project)
    with goal_project(tmp_path / "again.suffice") as other:
        label_some(other, range(LABELLED))
        other.start_check(person="ann", predict=predict, earlier_checks=1)
        draw = other.checks()[0].draw
        assert draw.terms is not None
        assert (draw.number, draw.terms.alpha) == (2, spent_alpha(2, 0.05))
        answer(other)
        assert other.final_labels().guarantee.proof.number == 2  # type: ignore[union-attr]


def test_answers_outside_the_order_count_when_their_turn_comes(project: Project) -> None:
    project.start_check(person="ann", predict=predict)
    last = project.checks()[0].draw.items[::-1]
    for item in last[:20]:
        project.label(item, truth(item), person="ann")
    assert project.reached_goal() is None
    assert project.checks()[0].progress["answered"] == 0  # type: ignore[index]
    answer(project)
    assert project.reached_goal() is not None


def test_the_limit_of_a_proven_check_is_given_beyond_its_end(project: Project) -> None:
    answered = len(checked(project))
    curves = sequential_curves(project.checks()[0])
    limits = dict(curves["limits"])
    assert max(limits) == curves["horizon"] > answered
    at_end = [limit for at, limit in curves["limits"] if at <= answered][-1]
    assert curves["counts"][-1][1] <= at_end


def test_what_is_missing_follows_the_newest_check(project: Project) -> None:
    checked(project)
    project.add_class("newt", person="ann")
    said = goal_of(project)["missing"]
    assert said.endswith("start another check")
    project.start_check(person="ann", predict=predict)
    assert "of the check have no answer" in goal_of(project)["missing"]
    with pytest.raises(SufficeError, match="of the check have no answer"):
        project.final_labels()
    project.abort_check(person="ann")
    assert "a later check was given up; start another check" in goal_of(project)["missing"]


def test_opinions_of_people_say_how_many_labels_may_be_wrong(project: Project) -> None:
    checked(project)
    reached = project.reached_goal()
    assert reached is not None
    assert "If 5 % of the" in reached.sentences()[1].replace("\u00a0", " ")
    # Every tenth second opinion differs: about 5 % of the labels of one person are wrong.
    for item in range(LABELLED):
        project.label(item, CLASSES[2] if item % 10 == 0 else truth(item), person="eve")
    reached = project.reached_goal()
    assert reached is not None
    assert reached.seen is not None
    assert "By the opinions of several people, about" in reached.sentences()[1]


def test_a_wrong_answer_adds_items_and_the_check_always_ends(project: Project) -> None:
    project.start_check(person="ann", predict=predict)
    while len(pending := project.state().checks.pending()):
        project.label(int(pending[0]), CLASSES[2] if pending[0] not in WRONG else CLASSES[0], person="ann")
    # All answers are wrong: only as many items are left as may be wrong.
    final = project.final_labels()
    assert final.source.count("model") == 12
    assert final.guarantee.wrong_at_most == 12


def test_items_that_nobody_can_label_are_left_out_and_count_as_wrong_answers(project: Project) -> None:
    project.start_check(person="ann", predict=predict)
    needed = project.checks()[0].progress["needed"]  # type: ignore[index]
    skipped = int(project.state().checks.pending()[0])
    project.skip(skipped, person="ann")
    assert project.checks()[0].progress["needed"] > needed - 1  # type: ignore[index]
    answer(project)
    # 12 of the other 119 labels are more than 10 %.
    assert project.reached_goal() is None
    goal = goal_of(project)
    assert (goal["reached"], goal["check_open"]) == (None, False)
    said = "A check has proven 11 %, at most 12 of 119 labels, and the goal is 10 %: 1 row that nobody could label does"
    assert said in " ".join(goal["sentences"])
    with pytest.raises(SufficeError, match="a check has proven 11 %, at most 12 of 119 labels, and the goal is 10 %"):
        project.final_labels()
    # A wrong prediction that people correct is one less.
    right, wrong = (
        next(item for item in range(SIZE) if item not in project.state().labels.by_item and (item in WRONG) is each)
        for each in (False, True)
    )
    project.label(right, truth(right), person="ann")
    assert project.reached_goal() is None
    project.label(wrong, truth(wrong), person="ann")
    final = project.final_labels()
    assert (final.labels[skipped], final.source[skipped]) == (None, "")
    assert (final.guarantee.rows, final.guarantee.left_out, final.guarantee.wrong_at_most) == (SIZE - 1, 1, 11)
    assert "People found 1 more wrong afterwards, which is corrected too." in final.guarantee.evidence
    assert "One row could not be labelled and is not covered." in str(final)


def test_a_proof_that_is_too_little_is_enough_when_the_row_is_labelled(project: Project) -> None:
    project.start_check(person="ann", predict=predict)
    skipped = int(project.state().checks.pending()[0])
    project.skip(skipped, person="ann")
    answer(project)
    assert project.reached_goal() is None
    project.label(skipped, truth(skipped), person="ann")
    assert project.final_labels().guarantee.wrong_at_most == 12


def test_another_check_proves_what_the_first_one_did_not(project: Project) -> None:
    project.start_check(person="ann", predict=predict)
    project.skip(int(project.state().checks.pending()[0]), person="ann")
    answer(project)
    project.start_check(person="ann", predict=predict)
    first, second = project.checks()
    assert second.draw.terms is not None
    assert (second.draw.terms.allowed, second.draw.number) == (11, 2)
    assert second.record.alpha_spent < first.record.alpha_spent
    with pytest.raises(SufficeError, match=r"of the check ha(s|ve) no answer"):
        project.final_labels()
    answer(project)
    assert project.final_labels().guarantee.wrong_at_most <= 11


# Afterwards.


def test_a_corrected_answer_of_the_check_is_computed_again(project: Project) -> None:
    items = checked(project)
    wanted = next(item for item in items if item not in WRONG)
    project.correct(wanted, CLASSES[2], person="ann")
    assert project.reached_goal() is None
    with pytest.raises(SufficeError, match=r"of the check ha(s|ve) no answer; answer"):
        project.final_labels()
    more = answer(project)
    assert more
    final = project.final_labels()
    assert (final.labels[wanted], final.source[wanted]) == (CLASSES[2], "check")
    project.correct(wanted, truth(wanted), person="ann")
    assert project.final_labels().labels[wanted] == truth(wanted)


def test_a_corrected_label_of_another_item_changes_that_label_only(project: Project) -> None:
    checked(project)
    before = project.final_labels()
    project.correct(3, CLASSES[2], person="bob")
    after = project.final_labels()
    assert after.guarantee == before.guarantee
    assert [item for item in range(SIZE) if after.labels[item] != before.labels[item]] == [3]
    assert after.person[3] == "bob"


def test_an_undone_answer_of_the_check_is_missing(project: Project) -> None:
    checked(project)
    project.undo(person="bob")
    assert project.reached_goal() is None
    answer(project)
    assert project.reached_goal() is not None


def test_a_label_that_is_taken_back_must_be_given_again(project: Project) -> None:
    checked(project)
    project.take_back(5, person="ann")
    with pytest.raises(SufficeError, match="1 label was taken back since the check started, and nothing covers its"):
        project.final_labels()
    project.label(5, CLASSES[2], person="bob")
    assert project.final_labels().labels[5] == CLASSES[2]
    project.take_back(5, person="bob")
    project.skip(5, person="bob")
    assert project.reached_goal() is None
    with pytest.raises(SufficeError, match="at most 12 of 119 labels, and the goal is 10 %"):
        project.final_labels()


def test_a_later_label_that_is_taken_back_leaves_the_covered_prediction(project: Project) -> None:
    checked(project)
    before = project.final_labels()
    item = before.source.index("model")
    project.label(item, CLASSES[2], person="ann")
    assert project.final_labels().source[item] == "person"
    project.take_back(item, person="ann")
    assert contents(project.final_labels()) == contents(before)


def test_an_item_that_was_skipped_before_the_check_is_not_covered(project: Project) -> None:
    project.skip(60, person="ann")
    checked(project)
    assert project.final_labels().labels[60] is None
    project.take_back(60, person="ann")
    with pytest.raises(SufficeError, match="taken back"):
        project.final_labels()
    project.label(60, CLASSES[2], person="ann")
    final = project.final_labels()
    assert (final.labels[60], final.guarantee.rows) == (CLASSES[2], SIZE)


def test_a_renamed_class_is_renamed_in_the_final_labels(project: Project) -> None:
    checked(project)
    before = project.final_labels()
    project.rename_class(CLASSES[0], "tiger", person="ann")
    after = project.final_labels()
    assert after.labels == ["tiger" if label == CLASSES[0] else label for label in before.labels]
    assert str(after) == str(before)


def test_merged_classes_are_merged_in_the_final_labels(project: Project) -> None:
    checked(project)
    before = project.final_labels()
    project.merge_classes([CLASSES[0], CLASSES[2]], CLASSES[0], person="ann")
    project.rename_class(CLASSES[0], "tiger", person="ann")
    after = project.final_labels()
    merged = {CLASSES[0]: "tiger", CLASSES[2]: "tiger", CLASSES[1]: CLASSES[1]}
    assert after.labels == [merged[label] for label in before.labels]
    assert after.guarantee == before.guarantee
    assert "Classes were merged since the check" in str(after)


def test_other_classes_need_another_check(project: Project) -> None:
    checked(project)
    project.add_class("fox", person="ann")
    with pytest.raises(SufficeError, match="classes were added or removed since the check"):
        project.final_labels()
    checked(project)
    assert project.final_labels().guarantee.proof.number == 2  # type: ignore[union-attr]


def test_new_rows_are_not_covered(project: Project) -> None:
    checked(project)
    before = project.final_labels()
    added = {"text": ["new"] * 3, "number": ["1"] * 3}
    project.add_items(added, person="ann", features=np.zeros((3, 3)))
    project.label(SIZE + 1, CLASSES[0], person="ann")
    final = project.final_labels()
    assert final.guarantee == before.guarantee
    assert final.reached.added == 3
    assert final.labels[SIZE:] == [None, CLASSES[0], None]
    assert final.source[SIZE:] == ["", "person", ""]
    day = utc_date(final.reached.as_dict()["at"])
    assert final.reached.sentences()[2] == f"This covers the {SIZE} rows of {day}; 3 new ones are not covered."
    # If people label nearly everything, no check is necessary for the new rows.
    for item in range(SIZE + 3):
        if project.state().label_of(item) is None and project.state().left > 12:
            project.label(item, CLASSES[0], person="ann")
    reached = project.reached_goal()
    assert reached is not None
    assert (reached.added, reached.guarantee.rows) == (0, SIZE + 3)


# Settings.


def test_settings_of_a_project_without_a_goal_are_written_as_before(tmp_path: Path) -> None:
    with make(tmp_path / "pets.suffice", at_most=0.1) as project:
        names = {"of", "annotator_error", "correction_cost", "tolerance"}
        assert names.isdisjoint(project.settings.as_dict())
        assert project.settings.goal is None
        project.change_settings({"of": "all", "annotator_error": 0.02}, person="ann")
    with open_project(tmp_path / "pets.suffice") as again:
        assert (again.settings.of, again.settings.annotator_error) == ("all", 0.02)
        again.change_settings({"at_most": None}, person="ann")
        assert names.isdisjoint(again.settings.as_dict())


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"of": "some"}, 'of must be "rest" or "all"'),
        ({"of": "all", "at_most": None}, "needs a share"),
        ({"of": "all", "annotator_error": 0.1}, "leaves nothing of the goal"),
        ({"of": "all", "annotator_error": -0.1}, "annotator_error must be"),
        ({"of": "all", "correction_cost": 0.0}, "correction_cost must be a number above 0"),
        ({"of": "all", "tolerance": 1.0}, r"a tolerance \(--tolerance\) is for"),
        ({"annotator_error": 0.01}, "annotator_error is for a goal about all labels"),
        ({"correction_cost": 0.5}, "correction_cost is for a goal about all labels"),
        ({"of": "all", "at_most": 1.5}, "at_most must be"),
    ],
)
def test_bad_goals_are_refused(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    with make(tmp_path / "pets.suffice", at_most=0.1) as project, pytest.raises(InvalidValueError, match=said):
        project.change_settings(changes, person="ann")


def test_goals_of_numbers(tmp_path: Path) -> None:
    with make(tmp_path / "numbers.suffice", task="regression", at_most=12.0) as project:
        with pytest.raises(InvalidValueError, match="at_most must be a number above 0 and below 1"):
            project.change_settings({"of": "all", "tolerance": 1.0}, person="ann")
        with pytest.raises(InvalidValueError, match="needs a tolerance"):
            project.change_settings({"of": "all", "at_most": 0.1}, person="ann")
        project.change_settings({"of": "all", "at_most": 0.1, "tolerance": 1.0}, person="ann")
        project.change_settings({"of": "rest", "at_most": 12.0}, person="ann")
        assert project.settings.tolerance is None


def test_the_size_of_a_check_does_not_go_with_a_goal(project: Project) -> None:
    with pytest.raises(InvalidValueError, match="of='all' is for a check with at_most"):
        project.start_check(10, person="ann", of="all", predict=predict)
    project.start_check(10, person="ann", predict=predict)
    assert project.checks()[0].draw.asked.of == "rest"
    with pytest.raises(ConflictError):
        project.start_check(person="ann", predict=predict)


# Status.


def goal_of(project: Project) -> dict[str, Any]:
    _, learning_status = learned(project)
    goal: dict[str, Any] = status(project, learning_status)["goal"]
    return goal


def test_a_project_without_such_a_goal_has_none_in_its_status(tmp_path: Path) -> None:
    with make(tmp_path / "pets.suffice", at_most=0.1) as project:
        assert status(project, learned(project)[1])["goal"] is None


def test_the_status_follows_the_goal(tmp_path: Path) -> None:
    with goal_project(tmp_path / "pets.suffice", 300) as project:
        assert goal_of(project)["plan"] is None
        label_some(project, range(60))
        goal = goal_of(project)
        assert (goal["rows"], goal["by_people"], goal["allowed"], goal["check_open"]) == (300, 60, 30, False)
        plan = goal["plan"]
        assert goal["expected_total"] == plan["by_people_at_end"] == goal["by_people"] + goal["more_labels"]
        assert goal["predicted"] == 300 - goal["expected_total"]
        assert [n for n, _ in goal["history"]] == sorted({n for n, _ in goal["history"]})
        assert goal["history"][-1] == [60, goal["expected_total"]]
        assert goal["missing"].startswith("the goal is not reached")
        assert plan["sentence"] in goal["sentences"]
        project.start_check(person="ann")
        started = goal_of(project)
        assert started["check_open"]
        assert started["plan"]["check_now"]
        label_some(project, project.state().checks.pending()[:20].tolist())
        going = goal_of(project)
        assert going["by_people"] == 80
        assert going["more_labels"] < started["more_labels"]
        assert going["history"][:-1] == started["history"][:-1]
        assert "more answers in the check" in going["sentences"][1]
        assert going["plan"]["sentence"] == going["sentences"][1]
        while len(pending := project.state().checks.pending()):
            label_some(project, pending[:1].tolist())
        ended = goal_of(project)
        assert ended["reached"]["statement"] == str(project.final_labels().guarantee)
        assert (ended["more_labels"], ended["missing"], ended["plan"]) == (0, "", None)
        assert ended["history"][-1] == [ended["by_people"], ended["expected_total"]]
        told = status(project, learned(project)[1])
        assert told["decision"]["answer"] == "enough"
        assert told["decision"]["target_guaranteed"]
        # The statement does not depend on the current model, nor on a later check.
        project.start_check(10, person="ann")
        assert status(project, learned(project)[1])["decision"]["answer"] == "enough"
        project.abort_check(person="ann")
        label_some(project, [next(item for item in range(300) if project.state().label_of(item) is None)])
        assert status(project, learned(project)[1])["decision"]["answer"] == "enough"


def test_the_hours_are_those_of_the_people(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from suffice.project import journal as journal_module
    from tests.project.test_state import Clock

    clock = Clock()
    monkeypatch.setattr(journal_module, "time", clock)
    with goal_project(tmp_path / "pets.suffice", 300) as project:
        for item in range(40):
            clock.now += 9000.0 if item == 20 else 12.0
            label_some(project, [item])
        goal = goal_of(project)
        assert goal["seconds_per_label"] == pytest.approx(12.0)
        assert goal["hours"] == pytest.approx(goal["more_labels"] * 12.0 / 3600.0)


def test_opinions_of_two_people_show_an_annotator_error(tmp_path: Path) -> None:
    with goal_project(tmp_path / "pets.suffice", 300) as project:
        label_some(project, range(60))
        assert goal_of(project)["annotator_error_seen"] is None
        for item in range(40):
            right = of_feature(project, item)
            other = next(name for name in CLASSES if name != right)
            project.label(item, other if item < 4 else right, person="bob")
        goal = goal_of(project)
        # They differ on a tenth of the items.
        assert goal["annotator_error_seen"] == {"share": 0.0528, "both": 40, "different": 4}
        assert "does not cover mistakes of people" in goal["sentences"][-2]
        assert "about 5.3 % of the labels of one person are wrong" in goal["sentences"][-1]
        project.change_settings({"annotator_error": 0.05}, person="ann")
        stated = goal_of(project)
        assert (stated["allowed"], goal["allowed"]) == (15, 30)
        assert "which leaves 5 % for predictions" in stated["sentences"][-2]
        assert "more than the 5 % that is stated" in stated["sentences"][-1]
        project.change_settings({"at_most": 0.051}, person="ann")
        assert "exceeds the goal" in goal_of(project)["sentences"][-1]


def test_later_checks_are_planned_with_their_own_error_probability(tmp_path: Path) -> None:
    with goal_project(tmp_path / "pets.suffice", 300) as project:
        label_some(project, range(60))
        before = goal_of(project)["plan"]
        for _ in range(3):
            project.start_check(person="ann")
            project.abort_check(person="ann")
        assert goal_of(project)["plan"]["check_size"] > before["check_size"]


def test_the_advice_to_stop_follows_the_goal(tmp_path: Path) -> None:
    from suffice.project.background_learner import BackgroundLearner

    with goal_project(tmp_path / "pets.suffice", 200) as project, BackgroundLearner(project) as background:
        label_some(project, range(60))
        assert background.wait_settled(60.0)
        assert project.state().advice is None
        project.start_check(person="ann", predict=background.predictions_after)
        while len(pending := project.state().checks.pending()):
            label_some(project, pending[:1].tolist())
        assert background.wait_settled(60.0)
        assert project.state().advice is not None
