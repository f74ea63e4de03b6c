"""Projects that check predictions made elsewhere: what people see, what is proven, and what is refused."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from suffice.checks import Check, of_predictions
from suffice.checks.prediction_check import CheckDesign, PredictionCheck
from suffice.errors import InvalidValueError, SufficeError
from suffice.project.checked_predictions import require_same_rows
from suffice.project.create import open_project
from suffice.project.journal import ConflictError
from suffice.project.labelling_project import Project
from suffice.project.learned_project import learned_project
from suffice.project.prediction_results import (
    changed_error,
    check_result,
    newest_result,
    predictions_of_project,
    start_first_check,
    start_prediction_check,
)
from suffice.project.status_summary import status
from suffice.report.prediction_statement import prediction_statement
from tests.project.prediction_projects import SECRET, answer_all, made, rows


def write_csv(path: Path, table: dict[str, list[Any]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        out = csv.writer(file)
        out.writerow(table)
        out.writerows(zip(*table.values(), strict=True))
    return path


def result_of(project: Project) -> dict[str, Any]:
    found = newest_result(project)
    assert found is not None
    return found.to_dict()


# What a project is made of.


def test_a_file_and_a_table_in_memory_give_the_same_project(tmp_path: Path) -> None:
    _, table = rows(60)
    options: dict[str, Any] = {"probability": "p", "group": "topic"}
    with (
        made(tmp_path / "a", table, **options) as one,
        made(tmp_path / "b", write_csv(tmp_path / "rows.csv", table), **options) as two,
    ):
        for project in (one, two):
            given = predictions_of_project(project)
            assert given.first.tolist() == table["llm"]
            assert given.probability is not None
            assert given.probability.tolist() == table["p"]
            assert given.groups is not None
            assert given.groups.tolist() == table["topic"]
            assert project.settings.checked is not None
            assert project.settings.checked.answer == "blind"
            assert set(project.settings.classes) == {"ham", "spam", SECRET}
            assert project.settings.main == "body"
        assert two.made_with["digest"]


def test_numbers_are_checked_with_a_tolerance(tmp_path: Path) -> None:
    truth = [float(k % 9) + 0.5 for k in range(80)]
    table = {
        "id": list(range(80)),
        "body": [f"some text {k}" for k in range(80)],
        "llm": [x + (k < 3) for k, x in enumerate(truth)],
    }
    with pytest.raises(InvalidValueError, match="give --tolerance, the largest error that is not wrong"):
        made(tmp_path / "a", table)
    with made(tmp_path / "b", table, tolerance=0.25, at_most=0.2) as project:
        start_prediction_check(project, person="ann")
        answer_all(project, lambda row: truth[row])
        result = result_of(project)
        assert result["guaranteed"]
        drawn = project.checks()[0].record.items
        assert result["wrong"] == sum(row < 3 for row in drawn)
        # Another target does not change what is wrong.
        project.change_settings({"at_most": 0.3}, person="ann")
        assert project.settings.tolerance == 0.25
        with pytest.raises(InvalidValueError, match="tolerance cannot be changed"):
            project.change_settings({"tolerance": 3.0}, person="ann")


@pytest.mark.parametrize(
    ("predicted", "answer"),
    [
        ([f"a summary of the text with number {k}" for k in range(60)], "verdict"),
        ([f"tag {k % 51}" for k in range(60)], "verdict"),
        ([f"tag {k % 9}" for k in range(60)], "blind"),
        ([json.dumps({"name": k}) for k in range(60)], "verdict"),
        ([k % 2 for k in range(60)], "blind"),
    ],
)
def test_how_people_answer_follows_from_the_predictions(tmp_path: Path, predicted: list[Any], answer: str) -> None:
    table = {"id": list(range(60)), "body": [f"some text {k}" for k in range(60)], "llm": predicted}
    with made(tmp_path / "a", table) as project:
        checked = project.settings.checked
        assert checked is not None
        assert checked.answer == answer
        assert (
            project.settings.classes[:2] == ("right", "wrong")
            if answer == "verdict"
            else len(project.settings.classes) < 10
        )


def test_marked_parts_are_judged(tmp_path: Path) -> None:
    _, table = rows(60)
    table |= {"start": [4] * 60, "end": [11] * 60}
    with made(tmp_path / "a", table, spans=("start", "end")) as project:
        checked = project.settings.checked
        assert checked is not None
        assert (checked.answer, checked.spans) == ("verdict", ("start", "end"))
    with pytest.raises(InvalidValueError, match="--spans: column 'topic' has texts"):
        made(tmp_path / "b", table, spans=("start", "topic"))
    with pytest.raises(InvalidValueError, match="--spans"):
        made(tmp_path / "b", table, spans=("start", "nowhere"))
    assert not (tmp_path / "b").exists()


def test_a_prediction_is_not_the_text_that_people_read(tmp_path: Path) -> None:
    table = {
        "id": list(range(30)),
        "size": list(range(30)),
        "llm": [f"a long prediction, number {k}" for k in range(30)],
    }
    with made(tmp_path / "a", table, text=None) as project:
        assert project.settings.main is None
    with pytest.raises(InvalidValueError, match="given as --prediction and as --text"):
        made(tmp_path / "b", table, text="llm")


# What people see.


def test_predictions_are_hidden_from_those_who_answer(tmp_path: Path) -> None:
    _, table = rows(60)
    table["p"] = [0.123456] * 30 + [0.654321] * 30
    with made(tmp_path / "a", table, probability="p") as project:
        for position in range(60):
            item = project.item(position)
            shown = json.dumps([item.id, item.cells])
            assert [name for name, _ in item.cells] == ["body"]
            assert SECRET not in shown
            assert "0.123456" not in shown
    with made(tmp_path / "b", table, probability="p", answer="verdict") as project:
        assert dict(project.item(2).cells)["llm"] == SECRET
    with made(tmp_path / "c", table, probability="p", show=("topic",)) as project:
        assert [name for name, _ in project.item(0).cells] == ["body", "topic"]


# Results.


OPTIONS: list[dict[str, Any]] = [
    {},
    {"size": 60, "at_most": None},
    {"share_of": "spam", "size": 60},
    {"recall_of": "spam", "size": 80},
    {"precision_of": "spam", "size": 40},
    {"accept": "all", "size": 90},
    {"accept": "accepted", "size": 90},
]


@pytest.mark.parametrize("options", OPTIONS)
def test_a_result_is_that_of_a_check_of_the_same_answers(tmp_path: Path, options: dict[str, Any]) -> None:
    truth, table = rows(200)
    with made(tmp_path / "a", table, probability="p") as project:
        start_prediction_check(project, person="ann", **options)
        number = answer_all(project, lambda row: truth[row])
        (check,) = project.checks()
        record, found = check.record, check_result(project, check)
        assert number == found.checked == len(record.items)
        given = of_predictions({"llm": table["llm"]}, table["p"])
        design = CheckDesign(**{**options, "at_most": 0.1}).checked(given)
        labels = {row: truth[row] for row in record.items}
        same = Check(record.items, record.pool, 1, 0.05, labels, sequential=record.sequential)
        assert found.to_dict() == PredictionCheck.restored(given, design, same, "blind").result.to_dict()
        assert found.complete


def test_groups_and_columns_share_the_error_probability(tmp_path: Path) -> None:
    truth, table = rows(300)
    table["rules"] = ["ham"] * 150 + ["spam"] * 150
    with made(tmp_path / "a", table, columns=("llm", "rules"), group="topic") as project:
        start_prediction_check(project, person="ann", size=120)
        answer_all(project, lambda row: truth[row])
        result = result_of(project)
        assert set(result["columns"]) == {"llm", "rules"}
        assert set(result["groups"]) == {"news", "sport"}
        # Two columns, each with two groups and the total.
        assert result["columns"]["llm"]["guarantee"]["alpha"] == pytest.approx(0.025 / 6)
        told = project.checks()[0].guarantee
        assert told is not None
        assert told.alpha == pytest.approx(0.025 / 6)


def test_answers_can_be_corrected_undone_and_skipped(tmp_path: Path) -> None:
    truth, table = rows(200, error=0.0)
    with made(tmp_path / "a", table, at_most=None) as project:
        start_prediction_check(project, person="ann", size=40)
        first, second, third = project.checks()[0].record.items[:3]
        wrong = {"ham": "spam", "spam": "ham", SECRET: "ham"}
        answer_all(project, lambda row: None if row == second else wrong[truth[row]] if row == first else truth[row])
        # A skipped row and a wrong one.
        assert (result_of(project)["wrong"], result_of(project)["complete"]) == (2, True)
        project.correct(first, truth[first], person="ann")
        assert result_of(project)["wrong"] == 1
        project.label(second, truth[second], person="ann")
        assert result_of(project)["wrong"] == 0
        project.correct(third, wrong[truth[third]], person="ben")
        assert result_of(project)["wrong"] == 1
        project.undo(person="ben")
        assert result_of(project)["wrong"] == 0


def test_people_answer_together_and_a_project_is_opened_again(tmp_path: Path) -> None:
    truth, table = rows(200)
    with made(tmp_path / "a", table) as project:
        start_first_check(project, "ann")
        # A second call starts nothing.
        start_first_check(project, "ann")
        assert len(project.checks()) == 1
        answer_all(project, lambda row: truth[row], person="ann", most=5)
        answer_all(project, lambda row: truth[row], person="ben", most=5)
        before = result_of(project)
        assert before["checked"] == 10
    with open_project(str(tmp_path / "a")) as project:
        assert result_of(project) == before
        answer_all(project, lambda row: truth[row], person="cem")
        assert result_of(project)["guaranteed"]
        told = status(project, learned_project(project).learning_status())
        assert told["result"]["guaranteed"]
        assert told["decision"]["headline"] == "Your target is guaranteed"
        assert told["words"][0] == result_sentence(project)


def result_sentence(project: Project) -> str:
    found = newest_result(project)
    assert found is not None
    return found.sentences()[0]


def test_only_the_rows_of_a_check_are_asked_for(tmp_path: Path) -> None:
    truth, table = rows(100)
    with made(tmp_path / "a", table, at_most=None) as project:
        assert not project.next("ann")
        with pytest.raises(InvalidValueError, match="give at_most"):
            start_prediction_check(project, person="ann")
        start_prediction_check(project, person="ann", size=10)
        with pytest.raises(ConflictError):
            start_prediction_check(project, person="ann", size=10)
        assert answer_all(project, lambda row: truth[row]) == 10
        assert not project.next("ann")


# New rows.


def test_new_rows_are_checked_on_their_own(tmp_path: Path) -> None:
    truth, table = rows(200)
    later, more = rows(150, error=0.4, seed=1)
    with made(tmp_path / "a", table, at_most=0.2) as project:
        start_prediction_check(project, person="ann")
        answer_all(project, lambda row: truth[row])
        assert changed_error(project.checks()) is None
        assert project.add_items(write_csv(tmp_path / "more.csv", more), person="ann") == 150
        start_prediction_check(project, person="ann")
        first, second = project.checks()
        assert (second.draw.asked.first_item, second.draw.spends_as, second.draw.number) == (200, 1, 2)
        assert second.record.alpha_spent == first.record.alpha_spent
        assert second.record.pool == 150
        answer_all(project, lambda row: (truth + later)[row])
        first, second = project.checks()
        assert min(second.record.items) >= 200
        assert check_result(project, first).guaranteed
        assert not check_result(project, second).guaranteed
        assert check_result(project, second).rows == 150
        change = changed_error(project.checks())
        assert change is not None
        assert "The error has changed" in str(change)
        # The next check of the same rows spends less.
        start_prediction_check(project, person="ann", size=5)
        third = project.checks()[-1]
        assert (third.draw.asked.first_item, third.draw.spends_as) == (200, 2)


def added(number: int, llm: list[str]) -> dict[str, list[str]]:
    return {"body": [f"new {k}" for k in range(number)], "llm": llm, "id": [f"new-{k}" for k in range(number)]}


def test_the_recall_of_a_batch_is_that_of_its_rows(tmp_path: Path) -> None:
    old = {"body": [f"old {k}" for k in range(100)], "llm": ["spam"] * 80 + ["ham"] * 20, "id": [*map(str, range(100))]}
    truth = ["ham"] * 100 + ["spam"] * 60 + ["ham"] * 240
    with made(tmp_path / "p", old, at_most=None) as project:
        start_prediction_check(project, person="ann", size=20)
        answer_all(project, truth.__getitem__)
        project.add_items(added(300, ["spam"] * 6 + ["ham"] * 294), person="ann")
        start_prediction_check(project, person="ann", size=200, recall_of="spam")
        answer_all(project, truth.__getitem__)
        result = newest_result(project)
        assert result is not None
        (made_of,) = result.guarantees.values()
        assert made_of.predicted_recall <= 0.1
        assert "Of the rows of class 'spam' among the 300 rows" in str(result)
        # The number of items that people found is not a recall of the predictions.
        assert project.checks()[-1].guarantee is None
        told = status(project, learned_project(project).learning_status())
        assert told["guarantee"] is None
        assert told["decision"]["sentences"] == result.sentences()


def test_checks_made_elsewhere_count_once_for_each_batch(tmp_path: Path) -> None:
    truth, table = rows(150)
    with made(tmp_path / "p", {name: table[name] for name in ("id", "body", "llm")}, at_most=None) as project:
        for elsewhere in (3, 0):
            start_prediction_check(project, person="ann", size=10, earlier_checks=elsewhere)
            answer_all(project, truth.__getitem__)
        assert [check.draw.spends_as for check in project.checks()] == [4, 5]
        project.add_items(added(100, ["ham"] * 100), person="ann")
        for elsewhere in (3, 0, 2):
            start_prediction_check(project, person="ann", size=10, earlier_checks=elsewhere)
            answer_all(project, [*truth, *["ham"] * 100].__getitem__)
        assert [check.draw.spends_as for check in project.checks()][2:] == [4, 5, 8]


def test_a_second_check_covers_the_rows_without_an_answer(tmp_path: Path) -> None:
    truth, table = rows(150)
    with made(tmp_path / "p", table, at_most=None) as project:
        for _ in range(2):
            start_prediction_check(project, person="ann", size=30)
            answer_all(project, truth.__getitem__)
        page = prediction_statement(project)
    assert "The statement covers the 120 of rows 1 to 150 that had no answer before" in page
    assert "Random check number 2 of these rows" in page


def test_rows_that_nobody_can_answer_are_no_change_of_the_error(tmp_path: Path) -> None:
    table = {"body": [f"old {k}" for k in range(200)], "llm": ["ham", "spam"] * 100, "id": [*map(str, range(200))]}
    with made(tmp_path / "p", table, at_most=None) as project:

        def answer(item: int) -> str | None:
            return None if item % 5 == 0 else ("ham", "spam")[item % 2]

        for _ in range(2):
            # Skipped rows are in both checks, so that the second has a larger share of them.
            start_prediction_check(project, person="ann", size=80)
            answer_all(project, answer)
        project.add_items(added(200, ["ham", "spam"] * 100), person="ann")
        start_prediction_check(project, person="ann", size=80)
        answer_all(project, answer)
        first, _, last = project.checks()
        change = changed_error(project.checks())
        assert change is not None
        assert change.first == (len(first.record.unlabelable), 80)
        assert change.second == (len(last.record.unlabelable), 80)
        assert not change.changed


def test_rows_that_were_added_before_a_check_are_checked_together(tmp_path: Path) -> None:
    _, table = rows(50)
    with made(tmp_path / "a", table) as project:
        for seed in (1, 2):
            project.add_items(write_csv(tmp_path / f"{seed}.csv", rows(30, seed=seed)[1]), person="ann")
        start_prediction_check(project, person="ann", size=20)
        assert project.checks()[0].record.pool == 110
        project.abort_check(person="ann")
        for seed in (3, 4):
            project.add_items(write_csv(tmp_path / f"{seed}.csv", rows(30, seed=seed)[1]), person="ann")
        start_prediction_check(project, person="ann", size=20)
        assert (project.checks()[1].draw.asked.first_item, project.checks()[1].record.pool) == (110, 60)


def test_new_rows_must_have_known_classes(tmp_path: Path) -> None:
    _, table = rows(50)
    _, more = rows(20, seed=1)
    with made(tmp_path / "a", table, group="topic") as project:
        for column, value, message in (
            ("llm", "newt", "column 'llm' has the prediction 'newt', which is none of the classes of the project"),
            ("topic", "art", "column 'topic' has 'art', which is none of the groups of the project"),
            ("llm", "", "column 'llm' has no prediction"),
        ):
            bad = {**more, column: [*more[column][1:], value]}
            with pytest.raises(InvalidValueError, match=message):
                project.add_items(write_csv(tmp_path / "bad.csv", bad), person="ann")
        assert project.size == 50


def test_new_rows_of_numbers_must_have_numbers_and_a_group(tmp_path: Path) -> None:
    table: dict[str, list[Any]] = {
        "id": list(range(60)),
        "body": [f"some text {k}" for k in range(60)],
        "llm": [k % 9 + 0.5 for k in range(60)],
        "topic": [("news", "sport")[k % 2] for k in range(60)],
    }
    more = {**table, "id": list(range(100, 160))}
    with made(tmp_path / "a", table, tolerance=0.5, group="topic") as project:
        with pytest.raises(InvalidValueError, match="column 'llm' has texts, and the predictions of this project are"):
            project.add_items(write_csv(tmp_path / "a.csv", {**more, "llm": ["about 3"] * 60}), person="ann")
        assert project.size == 60
        project.add_items(write_csv(tmp_path / "b.csv", more), person="ann")
        assert project.size == 120
        assert project.X[60:, 0].tolist() == table["llm"]
    with pytest.raises(InvalidValueError, match=r"--group: .* has no value in column 'topic'; give these rows a group"):
        made(tmp_path / "b", {**table, "topic": ["", *table["topic"][1:]]}, tolerance=0.5, group="topic")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"columns": ()}, "--prediction must name the column of predictions"),
        ({"answer": "seen"}, "--answer must be blind or verdict, not 'seen'"),
        ({"columns": ("llm", "topic"), "of": "all"}, "--of all is for one column of predictions"),
        ({"of": "all", "at_most": None}, "--of all needs --at-most"),
        ({"tolerance": 0.5}, "--tolerance is for numbers, and the predictions are classes"),
        ({"tolerance": 0.5, "numbers": True}, "--tolerance is for numbers, and column 'llm' has texts"),
    ],
)
def test_options_that_do_not_fit_are_refused(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    _, table = rows(50)
    with pytest.raises(InvalidValueError, match=message):
        made(tmp_path / "a", table, **options)
    assert not (tmp_path / "a").exists()


def test_too_many_classes_are_checked_by_verdicts_only(tmp_path: Path) -> None:
    table = {
        "id": list(range(260)),
        "body": [f"some text {k}" for k in range(260)],
        "llm": [f"tag {k % 230}" for k in range(260)],
    }
    with pytest.raises(InvalidValueError, match="there are 230 different predictions, more than the 200 classes"):
        made(tmp_path / "a", table, answer="blind")
    with made(tmp_path / "b", table, answer="verdict") as project:
        assert project.settings.classes[:2] == ("right", "wrong")


# A goal about all labels.


def test_the_way_to_a_finished_data_set(tmp_path: Path) -> None:
    truth, table = rows(150, error=0.15)
    with made(tmp_path / "a", table, of="all", at_most=0.06, probability="p") as project:
        with pytest.raises(SufficeError):
            project.final_labels()
        _finish(project, truth)
        reached = project.reached_goal()
        assert reached is not None
        assert reached.guarantee.wrong_at_most <= 9
        final = project.final_labels().labels
        assert sum(label != right for label, right in zip(final, truth, strict=True)) <= 9
        people = project.state().labels.by_item
        assert all(final[row] == truth[row] for row in people)
        assert all(final[row] == table["llm"][row] for row in range(150) if row not in people)
        assert len(people) < 150


def _finish(project: Project, truth: list[Any], **more: Any) -> None:
    for _ in range(100):
        if project.reached_goal() is not None:
            return
        learned = learned_project(project)
        told = status(project, learned.learning_status())
        goal, check = told["goal"], told["check"]
        if goal["plan"] is not None and goal["plan"]["check_now"] and (check is None or check["state"] != "open"):
            start_prediction_check(project, person="ann")
        answer_all(project, lambda row: truth[row], most=5, **more)
    raise AssertionError("the goal is never reached")


def test_the_settings_of_a_goal_hold_for_its_checks(tmp_path: Path) -> None:
    truth, table = rows(200, error=0.15)
    conditions = {"at_most": 0.1, "confidence": 0.98, "earlier_checks": 2}
    with made(tmp_path / "a", table, of="all", probability="p", first_check=conditions) as project:
        assert (project.settings.confidence, project.settings.earlier_checks) == (0.98, 2)
        start_prediction_check(project, person="ann")
        project.abort_check(person="ann")
        # The second check of the project counts the same checks elsewhere once.
        start_prediction_check(project, person="ann")
        project.abort_check(person="ann")
        project.change_settings({"earlier_checks": 4}, person="ann")
        start_prediction_check(project, person="ann")
        project.abort_check(person="ann")
        # What is given with a check counts more than the settings.
        start_prediction_check(project, person="ann", earlier_checks=1)
        assert [check.number for check in project.checks()] == [3, 4, 7, 9]
        assert {check.draw.alpha for check in project.checks()} == {0.02}
        with pytest.raises(InvalidValueError, match=r"confidence must be 0.98, as for the first check"):
            project.change_settings({"confidence": 0.9}, person="ann")
        with pytest.raises(InvalidValueError, match="size is not used in a check for a goal about all labels"):
            start_prediction_check(project, person="ann", size=10)
        _finish(project, truth)
        reached = project.reached_goal()
        assert reached is not None
        assert reached.guarantee.confidence == 0.98
        assert "The predictions are those of column 'llm'." in reached.as_dict()["evidence"]
        assert "this model" not in reached.as_dict()["evidence"]
    with open_project(str(tmp_path / "a")) as project:
        assert (project.settings.confidence, project.settings.earlier_checks) == (0.98, 4)


def test_conditions_of_checks_are_settings_of_a_goal_only(tmp_path: Path) -> None:
    _, table = rows(60)
    with made(tmp_path / "a", table) as project:
        assert not {"confidence", "earlier_checks"} & project.settings.as_dict().keys()
        with pytest.raises(
            InvalidValueError, match="confidence is a setting of a goal about predictions made elsewhere"
        ):
            project.change_settings({"confidence": 0.9}, person="ann")
    for conditions, message in (({"confidence": 1.0}, "confidence"), ({"earlier_checks": -1}, "earlier_checks")):
        with pytest.raises(InvalidValueError, match=message):
            made(tmp_path / "b", table, of="all", first_check=conditions)
    assert not (tmp_path / "b").exists()


def test_rows_that_leave_make_more_labels_necessary(tmp_path: Path) -> None:
    truth, table = rows(180, error=0.15)
    skipped = set(range(0, 180, 4))
    with made(tmp_path / "a", table, of="all", at_most=0.1, probability="p") as project:
        _finish(project, [None if row in skipped else label for row, label in enumerate(truth)])
        reached = project.reached_goal()
        assert reached is not None
        guarantee = reached.guarantee
        assert guarantee.wrong_at_most <= guarantee.rows // 10
        assert guarantee.rows == 180 - guarantee.left_out < 180
        final = project.final_labels().labels
        wrong = sum(label is not None and label != right for label, right in zip(final, truth, strict=True))
        assert wrong <= guarantee.wrong_at_most


def test_verdicts_with_corrections_give_final_texts(tmp_path: Path) -> None:
    n = 120
    right = [f"the right summary of text {k}" for k in range(n)]
    llm = [text if k % 6 else f"a wrong summary {k}" for k, text in enumerate(right)]
    table = {"id": list(range(n)), "body": [f"some text {k}" for k in range(n)], "llm": llm}
    verdicts = ["right" if mine == yours else "wrong" for mine, yours in zip(llm, right, strict=True)]
    corrections = {k: right[k] for k in range(n) if verdicts[k] == "wrong"}
    with made(tmp_path / "a", table, of="all", at_most=0.1) as project:
        with pytest.raises(InvalidValueError, match="its correction is needed"):
            project.label(0, "wrong", person="ann")
        with pytest.raises(InvalidValueError, match="a correction is for a prediction that is wrong"):
            project.label(1, "right", person="ann", correction="other")
        _finish(project, verdicts, correction=corrections)
        final = project.final_labels().labels
        assert sum(mine != yours for mine, yours in zip(final, right, strict=True)) <= 12
        assert all(final[row] == right[row] for row in project.state().labels.by_item)


def test_a_correction_follows_the_answer_that_counts(tmp_path: Path) -> None:
    table = {
        "id": list(range(20)),
        "body": [f"some text {k}" for k in range(20)],
        "llm": [f"a summary {k}" for k in range(20)],
    }
    with made(tmp_path / "a", table, at_most=None) as project:
        start_prediction_check(project, person="ann", size=5)
        row = project.checks()[0].record.items[0]
        project.label(row, "wrong", person="ann", correction=" this ")
        assert project.state().labels.corrections == {row: "this"}
        project.correct(row, "wrong", person="ann", correction="that")
        assert project.state().labels.corrections == {row: "that"}
        project.correct(row, "right", person="ann")
        assert project.state().labels.corrections == {}
        project.undo(person="ann")
        assert project.state().labels.corrections == {row: "that"}
    with open_project(str(tmp_path / "a")) as project:
        assert project.state().labels.corrections == {row: "that"}


# What stays as it is.


def test_the_classes_of_predictions_stay(tmp_path: Path) -> None:
    _, table = rows(50)
    with made(tmp_path / "a", table) as project:
        classes = project.settings.classes
        changes: list[tuple[str, tuple[Any, ...]]] = [
            ("rename_class", ("ham", "eggs")),
            ("reorder_classes", (classes[::-1],)),
            ("merge_classes", (["ham"], "spam")),
            ("remove_class", ("ham",)),
        ]
        for name, arguments in changes:
            with pytest.raises(ConflictError, match="classes can only be added after them"):
                getattr(project, name)(*arguments, person="ann")
        project.add_class("newt", person="ann")
        assert project.settings.classes == (*classes, "newt")
        assert predictions_of_project(project).first.tolist() == table["llm"]
        start_prediction_check(project, person="ann", size=50)
        answer_all(project, lambda _: "newt")
        assert result_of(project)["wrong"] == 50
    with (
        made(tmp_path / "b", table, answer="verdict") as project,
        pytest.raises(ConflictError, match="right and wrong"),
    ):
        project.add_class("unclear", person="ann")


def test_there_is_no_model_to_switch_to(tmp_path: Path) -> None:
    _, table = rows(50)
    with made(tmp_path / "a", table) as project:
        with pytest.raises(InvalidValueError, match="made elsewhere; it has no model"):
            project.switch_model("forest", person="ann")
        with pytest.raises(InvalidValueError, match="of cannot be changed"):
            project.change_settings({"of": "all"}, person="ann")
        with pytest.raises(InvalidValueError, match="at_most must be"):
            project.change_settings({"at_most": 7}, person="ann")


def test_a_file_that_has_changed_is_noticed(tmp_path: Path) -> None:
    _, table = rows(50)
    path = write_csv(tmp_path / "rows.csv", table)
    with made(tmp_path / "a", path) as project:
        require_same_rows(project, path, "a")
        cases = [
            (
                {**table, "llm": [*table["llm"][:-1], "ham" if table["llm"][-1] != "ham" else "spam"]},
                "row 51|has changed",
            ),
            ({**table, "body": ["other", *table["body"][1:]]}, "the row 'row-0-0' has changed"),
            ({name: values[:-1] for name, values in table.items()}, "has 49 rows, and the project a was made with 50"),
            ({**table, "new": ["x"] * 50}, "has other columns"),
        ]
        for other, message in cases:
            with pytest.raises(InvalidValueError, match=message):
                require_same_rows(project, write_csv(path, other), "a")
        # The same rows in another form of the file are the same.
        path.write_text(write_csv(path, table).read_text().replace("\r\n", "\n"))
        require_same_rows(project, path, "a")
