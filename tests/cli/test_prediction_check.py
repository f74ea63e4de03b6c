"""`suffice check FILE --prediction COLUMN`: the whole way, every refusal, and what a program reads."""

import csv
import json
import os
from collections.abc import Callable
from pathlib import Path
from shutil import rmtree
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from suffice.checks import SequentialTerms
from suffice.cli.app import app
from suffice.errors import InvalidValueError, SufficeError
from suffice.files import digest_of
from suffice.project.create import open_project
from suffice.project.status_summary import check_status
from tests.project.prediction_projects import SECRET, rows

RUN = CliRunner()
KEYS = {"guaranteed", "checked", "wrong", "at_most", "confidence_level", "groups"}


def write_csv(path: Path, table: dict[str, list[Any]]) -> str:
    with path.open("w", newline="", encoding="utf-8") as file:
        out = csv.writer(file)
        out.writerow(table)
        out.writerows(zip(*table.values(), strict=True))
    return str(path)


def called(*arguments: str, lines: list[str] | None = None) -> Result:
    return RUN.invoke(app, ["check", *arguments], input="".join(f"{line}\n" for line in lines or []))


def told(*arguments: str, code: int = 0, lines: list[str] | None = None) -> dict[str, Any]:
    result = called(*arguments, "--json", lines=lines)
    assert result.exit_code == code, (result.output, result.exception)
    answer: dict[str, Any] = json.loads(result.stdout)
    assert answer.keys() >= KEYS
    return answer


def refused(*arguments: str) -> str:
    """Why a command does nothing: `suffice` prints this with exit status 2."""
    result = called(*arguments)
    assert isinstance(result.exception, SufficeError), (result.output, result.exception)
    return str(result.exception)


@pytest.fixture
def table() -> dict[str, list[Any]]:
    truth, found = rows(200)
    return {**found, "truth": truth}


@pytest.fixture
def answers(tmp_path: Path, table: dict[str, list[Any]]) -> str:
    """A file without known answers."""
    return write_csv(tmp_path / "answers.csv", {name: values for name, values in table.items() if name != "truth"})


@pytest.fixture
def known(tmp_path: Path, table: dict[str, list[Any]]) -> str:
    """A file with the right answers."""
    return write_csv(tmp_path / "known.csv", table)


def drawn(place: str, label: Callable[[int], str]) -> list[str]:
    """An answer for each row that the open check may ask for, in its order."""
    with open_project(place) as project:
        check = project.state().checks.open_check
        assert check is not None
        return [label(item) for item in check.items]


# Known answers.


def test_known_answers_need_nobody(known: str, tmp_path: Path, table: dict[str, list[Any]]) -> None:
    found = told(known, "--prediction", "llm", "--at-most", "10%", "--truth", "truth", "--seed", "0")
    assert found["guaranteed"]
    assert (found["at_most"], found["confidence_level"]) == (0.1, 0.95)
    again = told(known, "--prediction", "llm", "--at-most", "10%", "--truth", "truth", "--seed", "0")
    assert again == found
    missed = told(known, "--prediction", "llm", "--at-most", "0.5%", "--truth", "truth", "--seed", "0", code=1)
    assert missed["complete"]
    assert not missed["guaranteed"]
    grouped = told(known, "--prediction", "llm", "--size", "100", "--truth", "truth", "--group", "topic")
    assert set(grouped["groups"]) == {"news", "sport"}
    accepted = told(
        known,
        "--prediction",
        "llm",
        "--truth",
        "truth",
        "--probability",
        "p",
        "--accept",
        "accepted",
        "--at-most",
        "10%",
    )
    assert accepted["accepted"]["accepted"] > 0
    for option in ("--share-of", "--recall-of", "--precision-of"):
        assert told(known, "--prediction", "llm", "--truth", "truth", option, "spam")["complete"]
    # Nothing is kept.
    assert [path.name for path in tmp_path.iterdir()] == ["known.csv"]
    assert table["truth"]


def test_a_result_is_stated_once_and_does_not_say_how_to_go_on(answers: str, table: dict[str, list[Any]]) -> None:
    common = ["--prediction", "llm", "--size", "30", "--group", "topic", "--seed", "0"]
    begun = told(answers, *common, lines=["q"])
    place = begun["project"]
    assert f"Go on with: suffice check {place}" in " ".join(RUN.invoke(app, ["status", place]).output.split("\n"))
    result = called(place, lines=drawn(place, lambda item: str(table["truth"][item])))
    printed = " ".join(result.output.split())
    assert "No more rows are asked for" in printed
    assert "A random check of 30 rows" in printed
    assert "Guaranteed: " not in printed
    assert printed.count("of the predictions for the") == 1
    status = RUN.invoke(app, ["status", place]).output
    assert "Take the results: suffice export" in status
    assert "Go on with" not in status


@pytest.mark.parametrize(
    ("options", "expected"), [([], 0.05), (["--expected", "2%"], 0.02), (["--expected", "0"], 0.0)]
)
def test_a_check_is_planned_as_suffice_plan_says(answers: str, options: list[str], expected: float) -> None:
    planned = RUN.invoke(app, ["plan", "--pool", "200", "--at-most", "10%", *options, "--json"]).stdout
    sentences = json.loads(planned)["sentences"]
    result = called(answers, "--prediction", "llm", "--at-most", "10%", *options, lines=["q"])
    said = " ".join(result.output.replace("\u00a0", " ").split())
    assert " ".join(sentence for sentence in sentences if "fixed size" not in sentence) in said
    found = told(answers, "--prediction", "llm", "--at-most", "10%", lines=["q"])
    assert found["expected"] == pytest.approx(expected)
    with open_project(found["project"]) as project:
        (check,) = project.checks()
        terms, settings = check.draw.terms, project.settings
        assert settings.expected == (expected if options else None)
        newest = check_status(project.state(), settings).check
        assert newest is not None
        assert newest["expected"] == found["expected"]
    assert terms == SequentialTerms.of_share(0.1, pool=200, alpha=0.025, expected=expected)
    if not options:
        return
    # The same command goes on, and another share asks for another check.
    assert told(answers, "--prediction", "llm", "--at-most", "10%", *options, lines=["q"])["checked"] == 0
    assert "--expected 4% asks for another one" in refused(answers, "--prediction", "llm", "--expected", "4%")


def test_a_finished_check_is_not_drawn_again_for_another_plan(answers: str, table: dict[str, list[Any]]) -> None:
    common = ["--prediction", "llm", "--at-most", "20%", "--seed", "0"]
    place = told(answers, *common, lines=["q"])["project"]
    done = called(place, lines=drawn(place, lambda item: str(table["truth"][item])))
    assert done.exit_code == 0, done.output
    assert told(answers, *common, "--expected", "3%")["complete"]
    with open_project(place) as project:
        assert len(project.checks()) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--size", "50", "--expected", "2%"], "leave it out with --size and --of all"),
        (["--at-most", "5%", "--of", "all", "--expected", "2%"], "leave it out with --size and --of all"),
        (["--at-most", "5%", "--expected", "2"], "--expected must be a share of at least 0 and below 1"),
    ],
)
def test_an_expected_share_is_for_a_target(answers: str, options: list[str], message: str) -> None:
    assert message in refused(answers, "--prediction", "llm", *options)


@pytest.mark.parametrize("options", [["--budget", "10"], ["--group", "topic", "--budget", "10"]])
def test_a_check_of_known_answers_that_proves_nothing_has_status_1(
    tmp_path: Path, table: dict[str, list[Any]], options: list[str]
) -> None:
    # Nobody can go on with it, because there is no project.
    path = write_csv(tmp_path / "known.csv", table)
    result = called(path, "--prediction", "llm", "--at-most", "20%", "--truth", "truth", *options, "--json")
    assert result.exit_code == 1, result.output
    assert json.loads(result.stdout)["guaranteed"] is False


def test_some_known_answers_are_the_sample(tmp_path: Path, table: dict[str, list[Any]]) -> None:
    table["truth"] = [label if row % 2 else "" for row, label in enumerate(table["truth"])]
    path = write_csv(tmp_path / "some.csv", table)
    result = called(path, "--prediction", "llm", "--at-most", "20%", "--truth", "truth", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["checked"] == 100
    assert "holds if they are a random sample of all rows" in result.stderr
    for option in ("--size", "--budget"):
        assert "are for a check that is drawn now" in refused(
            path, "--prediction", "llm", "--truth", "truth", "--at-most", "20%", option, "10"
        )
    assert "--precision-of needs a sample of the rows of that class" in refused(
        path, "--prediction", "llm", "--truth", "truth", "--precision-of", "ham"
    )


def test_a_statement_is_written_about_known_answers(known: str, tmp_path: Path, table: dict[str, list[Any]]) -> None:
    common = ["--prediction", "llm", "--truth", "truth", "--at-most", "20%", "--statement"]
    page = tmp_path / "statement.html"
    assert told(known, *common, str(page))["statement_file"] == str(page)
    text = page.read_text(encoding="utf-8")
    assert "At most 20" in text
    assert "known.csv, 200 rows" in text
    assert "were drawn at random, and answered from column &#39;truth&#39; of the file" in text
    table["truth"] = [label if row % 2 else "" for row, label in enumerate(table["truth"])]
    told(write_csv(tmp_path / "some.csv", table), *common, str(page))
    text = page.read_text(encoding="utf-8")
    assert "suffice did not draw it" in text
    assert "their number was fixed before anybody saw an answer" in text


def test_people_are_simulated_until_the_goal_about_all_labels_is_reached(
    known: str, tmp_path: Path, table: dict[str, list[Any]]
) -> None:
    common = ["--prediction", "llm", "--probability", "p", "--of", "all", "--at-most", "10%", "--seed", "0"]
    result = called(known, *common, "--truth", "truth", "--json")
    assert result.exit_code == 0, (result.output, result.exception)
    found = json.loads(result.stdout)
    assert found["guaranteed"]
    assert found["labelled_by_people"] + found["predicted"] == found["rows"] == 200
    assert (found["at_most"], found["confidence_level"]) == (0.1, 0.95)
    assert found["true_wrong"] <= found["wrong_at_most"] <= 20
    printed = called(known, *common, "--truth", "truth").output
    assert found["sentences"][0] in " ".join(printed.split())
    assert "--budget is not used with --truth and --of all" in refused(known, *common, "--truth", "truth", "--budget=3")
    table["truth"][7] = ""
    some = write_csv(tmp_path / "some.csv", table)
    assert "has no answer in 1 row; fill them in" in refused(some, *common, "--truth", "truth")


def test_a_class_may_be_called_none(tmp_path: Path) -> None:
    llm = ["None", "bug", "1.0"] * 40
    table = {"body": [f"text {k}" for k in range(120)], "llm": llm, "truth": ["bug", *llm[1:]]}
    path = write_csv(tmp_path / "answers.csv", table)
    common = ["--prediction", "llm", "--classes", "None,bug,1"]
    found = told(path, *common, "--truth", "truth", "--size", "120")
    assert (found["checked"], found["wrong"]) == (120, 1)
    found = told(path, *common, "--at-most", "20%", lines=["q"])
    more = write_csv(tmp_path / "more.csv", {"body": ["new", "newer"], "llm": ["bug", "None"], "truth": ["", ""]})
    with open_project(tmp_path / "answers.check.suffice") as project:
        assert set(project.settings.classes) == {"None", "bug", "1"}
        assert project.add_items(more, person="ann") == 2


def test_confidences_may_be_percentages(known: str, tmp_path: Path, table: dict[str, list[Any]]) -> None:
    common = ["--prediction", "llm", "--truth", "truth", "--accept", "accepted", "--at-most", "10%", "--seed", "0"]
    shares = told(known, *common, "--probability", "p")
    table["p"] = [f"{100 * p:.4f}%" for p in table["p"]]
    percents = told(write_csv(tmp_path / "percents.csv", table), *common, "--probability", "p")
    assert percents["accepted"]["accepted"] == shares["accepted"]["accepted"]


def test_other_commands_find_the_check_beside_the_file(answers: str) -> None:
    called(answers, "--prediction", "llm", "--at-most", "20%")
    done = RUN.invoke(app, ["status", answers])
    assert done.exit_code == 0
    assert done.output == RUN.invoke(app, ["status", answers.replace(".csv", ".check.suffice")]).output


def test_classes_that_differ_in_case_only_are_noted(tmp_path: Path) -> None:
    table = {"body": [f"text {k}" for k in range(60)], "llm": ["bug", "Bug", "ham"] * 20}
    path = write_csv(tmp_path / "answers.csv", table)
    result = called(path, "--prediction", "llm", "--at-most", "20%")
    assert "the classes 'Bug' and 'bug' differ in upper and lower case or spaces only" in result.output


# Questions in the terminal.


def test_a_blind_check_from_the_file_to_the_statement(
    answers: str, tmp_path: Path, table: dict[str, list[Any]]
) -> None:
    place = str(tmp_path / "answers.check.suffice")
    begun = told(answers, "--prediction", "llm", "--at-most", "10%", "--text", "body", "--id", "id", "--seed", "0")
    assert (begun["checked"], begun["complete"], begun["guaranteed"]) == (0, False, False)
    lines = drawn(place, lambda row: table["truth"][row])
    # The input ends in the middle, and what was answered is kept.
    shown = called(place, lines=lines[:7])
    assert shown.exit_code == 0
    assert SECRET not in shown.output.replace(f"{SECRET} (", "").replace(f"is {SECRET}", "")
    assert told(place)["checked"] == 7
    # A budget ends the questions.
    assert told(place, "--budget", "3", lines=lines[7:])["checked"] == 10
    # The file may be named again, with its options.
    found = told(answers, "--prediction", "llm", "--at-most", "10%", lines=lines[10:])
    while not found["complete"]:
        found = told(place, lines=[table["truth"][row] for row in _pending(place)])
    assert found["guaranteed"]
    statement = Path(found["statement_file"])
    assert statement == tmp_path / "answers.statement.html"
    assert "At most 10" in statement.read_text(encoding="utf-8")
    # Once it has ended, it says the same again.
    again = told(place)
    assert {name: again[name] for name in KEYS} == {name: found[name] for name in KEYS}
    assert "At most 10 % of the predictions" in called(answers).output


def _pending(place: str) -> tuple[int, ...]:
    with open_project(place) as project:
        return project.checks()[-1].record.pending


def test_a_verdict_check_and_new_rows(answers: str, tmp_path: Path) -> None:
    place = str(tmp_path / "answers.check.suffice")
    options = ["--prediction", "llm", "--at-most", "5%", "--answer", "verdict", "--id", "id", "--seed", "0"]
    found = told(answers, *options, lines=["right"] * 200)
    assert found["guaranteed"]
    assert (found["wrong"], found["answer"]) == (0, "verdict")
    more = write_csv(tmp_path / "more.csv", rows(150, seed=1)[1])
    found = told(place, "--add", more, lines=["wrong"] * 200, code=1)
    assert found["rows"] == 150
    assert not found["guaranteed"]
    assert found["wrong"] == found["checked"] > 0


def test_new_rows_are_compared_with_the_rows_before(answers: str, tmp_path: Path, table: dict[str, list[Any]]) -> None:
    place = str(tmp_path / "answers.check.suffice")
    more_truth, more = rows(150, seed=1)
    truth = [*table["truth"], *more_truth]
    added = write_csv(tmp_path / "more.csv", more)
    told(answers, "--prediction", "llm", "--text", "body", "--at-most", "20%", "--id", "id", "--seed", "0")
    assert "--at-most 3% asks for another one" in refused(place, "--add", added, "--at-most", "3%")
    output = called(place, "--add", added).output
    assert "150 rows are added as rows 201 to 350. The open check of rows 1 to 200 is finished first" in output
    first = told(place, lines=drawn(place, lambda row: truth[row]))
    assert (first["change"], len(first["batches"])) == (None, 1)
    assert "It does not cover the 150 items that were added" not in first["sentences"]
    told(place)
    found = told(place, lines=drawn(place, lambda row: truth[row]))
    assert [(each["first_row"], each["last_row"]) for each in found["batches"]] == [(1, 200), (201, 350)]
    assert [each["rows"] for each in found["batches"]] == [200, 150]
    assert all(each["guaranteed"] for each in found["batches"])
    change = found["change"]
    assert change["sentences"][0] == "Rows 1 to 200 and rows 201 to 350 are compared."
    for part, sample in zip(change["batches"], (change["first"], change["second"]), strict=True):
        assert part["compared"] == sample[1] <= part["answers"]
    fewer = any(part["compared"] < part["answers"] for part in change["batches"])
    assert fewer == any("because their number was fixed before" in line for line in change["sentences"])
    lines = called(place).output.splitlines()
    assert "Rows 201 to 350:" in lines
    assert change["sentences"][0] in lines
    page = Path(found["statement_file"]).read_text(encoding="utf-8")
    assert "answers.csv, 200 rows" in page
    assert "more.csv, 150 rows, rows 201 to 350" in page
    assert digest_of(Path(added)) in page


def test_a_changed_source_is_noted(answers: str, tmp_path: Path, table: dict[str, list[Any]]) -> None:
    place = str(tmp_path / "answers.check.suffice")
    told(answers, "--prediction", "llm", "--at-most", "20%")
    note = "answers.csv has changed since the project was made"
    assert note not in called(place).stderr
    del table["truth"]
    table["llm"][5] = "ham" if table["llm"][5] == "spam" else "spam"
    write_csv(Path(answers), table)
    result = called(place, "--json")
    assert result.exit_code == 0
    assert note in result.stderr
    Path(answers).unlink()
    assert note not in called(place).stderr


def test_the_size_of_a_check_is_said_before_the_first_question(answers: str, tmp_path: Path) -> None:
    def output(*options: str) -> str:
        result = called(answers, "--prediction", "llm", *options)
        assert result.exit_code == 0, (result.output, result.exception)
        rmtree(tmp_path / "answers.check.suffice")
        return result.output

    strict = output("--group", "topic", "--at-most", "1%")
    assert "answers of 200 rows. Nearly all rows are needed" in strict
    assert "3 bounds that hold together" in strict
    for options in (["--budget", "40"], ["--group", "topic", "--budget", "40"], ["--size", "40"]):
        said = output(*options)
        assert "This check takes 40 answers of 200 rows." in said
        assert "Nearly all" not in said
    assert "This check takes" not in output("--at-most", "20%")
    assert "--size, the number of answers" in refused(answers, "--prediction", "llm", "--group", "topic")


def test_a_budget_is_the_size_of_a_simulated_check(known: str) -> None:
    common = ["--prediction", "llm", "--truth", "truth", "--seed", "0"]
    for options in (["--budget", "40"], ["--group", "topic", "--at-most", "20%", "--budget", "40"]):
        found = called(known, *common, *options, "--json")
        result = json.loads(found.stdout)
        assert (result["checked"], result["complete"]) == (40, True)
    assert told(known, *common, "--at-most", "5%", "--budget", "7", code=1)["checked"] == 7


def test_a_second_check_states_its_smaller_share_of_the_error_probability(
    answers: str, tmp_path: Path, table: dict[str, list[Any]]
) -> None:
    place = str(tmp_path / "answers.check.suffice")
    first = called(answers, "--prediction", "llm", "--at-most", "20%", "--seed", "0")
    assert "This is check" not in first.output
    assert told(place, lines=drawn(place, lambda row: table["truth"][row]))["guaranteed"]
    second = called(place, "--at-most", "15%")
    assert (
        "This is check 2 of these rows: its share of the error probability is 0.83 %, after 2.5 % for the first, so it "
        "takes more answers. What was proven before stays proven.\n"
    ) in second.output
    # Nothing is stated again when the check continues.
    assert "This is check" not in called(place).output


def test_a_check_of_another_quantity(answers: str, tmp_path: Path) -> None:
    found = told(answers, "--prediction", "llm", "--precision-of", "spam", "--budget", "9", lines=["spam"] * 9)
    assert (found["complete"], found["checked"], found["wrong"]) == (True, 9, 0)
    place = str(tmp_path / "answers.check.suffice")
    assert told(place, "--share-of", "ham", "--size", "12", lines=["ham"] * 12)["share"] is not None
    for quantity in ("recall", "precision"):
        found = told(place, f"--{quantity}-of", "ham", "--size", "12", lines=["ham"] * 12)
        assert found["columns"]["llm"]["guarantee"]["quantity"] == quantity
    # The same command shows the same result, and another one starts a check.
    assert told(place, "--precision-of", "ham") == found
    assert told(place) == found
    assert told(place, "--at-most", "20%")["complete"] is False
    with open_project(place) as project:
        assert len(project.checks()) == 5


def test_how_common_a_class_is_has_no_target(answers: str, known: str, tmp_path: Path) -> None:
    both = ["--share-of", "ham", "--at-most", "5%"]
    message = "--at-most is a target for wrong predictions, and --share-of states how common a class is"
    assert message in refused(known, "--prediction", "llm", "--truth", "truth", *both)
    assert message in refused(answers, "--prediction", "llm", *both)
    # The target of the project is not one of this check.
    told(answers, "--prediction", "llm", "--at-most", "20%", "--size", "5", code=1, lines=["ham"] * 5)
    place = str(tmp_path / "answers.check.suffice")
    found = told(place, "--share-of", "ham", "--size", "12", lines=["ham"] * 12)
    assert (found["share"]["class_name"], found["at_most"], found["guaranteed"]) == ("ham", None, True)


def test_the_target_of_a_check_is_that_of_its_start(answers: str, tmp_path: Path) -> None:
    place = str(tmp_path / "answers.check.suffice")
    options = ["--prediction", "llm", "--probability", "p", "--accept", "accepted", "--at-most", "30%", "--size", "60"]
    found = told(answers, *options, "--answer", "verdict", lines=["right"] * 60)
    with open_project(place) as project:
        # The result says what the check has shown; every item could be labelled.
        check = check_status(project.state(), project.settings).check
        assert check is not None
        assert (check["state"], check["sentence"]) == ("complete", "")
        project.change_settings({"at_most": 0.01}, person="ann")
    assert told(place)["at_most"] == 0.3
    assert told(place)["accepted"] == found["accepted"]


@pytest.mark.no_cover
def test_a_goal_about_all_labels_ends_with_a_final_file(tmp_path: Path) -> None:
    truth, found = rows(40, error=0.1)
    path, place = write_csv(tmp_path / "answers.csv", found), str(tmp_path / "answers.check.suffice")
    options = [
        "--prediction",
        "llm",
        "--probability",
        "p",
        "--at-most",
        "20%",
        "--of",
        "all",
        "--id",
        "id",
        "--seed",
        "0",
    ]
    told_now = told(path, *options, lines=[])
    for _ in range(200):
        if told_now["guaranteed"]:
            break
        with open_project(place) as project:
            # The terminal asks for the same row.
            asked = project.next("terminal")
        told_now = told(
            place, "--person", "terminal", "--budget", "1", lines=[truth[asked[0].position]] if asked else []
        )
    assert told_now["guaranteed"]
    assert told_now["wrong_at_most"] <= 8
    final = tmp_path / "final.csv"
    assert RUN.invoke(app, ["export", place, "--final", str(final)]).exit_code == 0
    with final.open(encoding="utf-8") as file:
        labels = [row["label"] for row in csv.DictReader(file)]
    assert sum(mine != yours for mine, yours in zip(labels, truth, strict=True)) <= 8
    # What was hidden is in the final file.
    assert SECRET in final.read_text(encoding="utf-8")


GOAL = ["--prediction", "llm", "--probability", "p", "--at-most", "10%", "--of", "all", "--id", "id", "--seed", "0"]


def test_a_check_for_a_goal_has_the_stated_confidence_and_earlier_checks(tmp_path: Path) -> None:
    _, found = rows(150, error=0.0)
    path, place = write_csv(tmp_path / "answers.csv", found), str(tmp_path / "answers.check.suffice")
    first = told(path, *GOAL, "--answer", "verdict", "--earlier-checks", "5", "--confidence", "99%", lines=[])
    assert (first["confidence_level"], first["guaranteed"]) == (0.99, False)
    # A later call changes the number, and keeps the confidence.
    told(place, "--earlier-checks", "7", lines=[])
    answered = called(place, lines=["right"] * 150)
    assert answered.exit_code == 0, answered.output
    # The goal ends the work.
    assert "Your goal is reached, and no more labels are needed." in answered.output
    with open_project(place) as project:
        (check,) = project.checks()
        assert (check.draw.number, check.draw.alpha) == (8, 0.01)
        assert check.record.alpha_spent == pytest.approx(0.01 / 72)
        n_labelled = project.state().n_labelled
        reached = project.reached_goal()
        assert reached is not None
        assert n_labelled == reached.guarantee.by_people < 150
    last = told(place, lines=["right"] * 150)
    assert (last["confidence_level"], last["labelled_by_people"]) == (0.99, n_labelled)
    page = Path(last["statement_file"]).read_text(encoding="utf-8")
    assert "column llm" in page
    assert "predicted by the model" not in page
    assert "The model predicted" not in page
    assert "confidence must be 0.99, as for the first check" in refused(place, "--confidence", "95%")
    # Somebody who opens the project again goes on.
    more = RUN.invoke(app, ["label", place, "--json"], input="right\nq\n")
    assert more.exit_code == 0, more.output
    assert json.loads(more.stdout)["given"] == 1


@pytest.mark.parametrize("option", ["--size", "--share-of", "--recall-of", "--precision-of", "--accept"])
def test_a_goal_has_no_other_check(answers: str, tmp_path: Path, option: str) -> None:
    given = {"--size": "10", "--accept": "all"}.get(option, "spam")
    assert f"{option} is not used with --of all" in refused(answers, *GOAL, option, given)
    assert [each.name for each in tmp_path.iterdir()] == ["answers.csv"]


# Refusals.


BAD: list[tuple[list[str], str]] = [
    (["--prediction", "gpt", "--at-most", "5%"], "--prediction"),
    (["--prediction", "same", "--at-most", "5%"], "column 'same' has the same prediction 'ham' in all 200 rows"),
    (
        ["--prediction", "gaps", "--at-most", "5%"],
        "column 'gaps' has no prediction; fill it in, or leave these rows out",
    ),
    (["--prediction", "llm", "--prediction", "llm", "--at-most", "5%"], "--prediction names a column twice"),
    (["--prediction", "llm", "--at-most", "many"], "--at-most"),
    (["--prediction", "llm", "--at-most", "500"], "--at-most"),
    (["--prediction", "llm"], "give --at-most"),
    (
        ["--prediction", "llm", "--at-most", "5%", "--probability", "topic"],
        "column 'topic' has texts; it must have numbers",
    ),
    (["--prediction", "llm", "--at-most", "5%", "--probability", "big"], "a probability is from 0 to 1"),
    (["--prediction", "llm", "--at-most", "5%", "--probability", "none"], "--probability"),
    (["--prediction", "llm", "--at-most", "5%", "--probability", "llm"], "given as --prediction and as --probability"),
    (["--prediction", "llm", "--at-most", "5%", "--group", "id"], "--group: column 'id' has 200 different values"),
    (["--prediction", "llm", "--at-most", "5%", "--group", "none"], "--group"),
    (["--prediction", "llm", "--at-most", "5%", "--spans", "p"], "--spans must be two columns, as in start,end"),
    (["--prediction", "llm", "--at-most", "5%", "--spans", "topic,p", "--text", "body"], "column 'topic' has texts"),
    (["--prediction", "llm", "--at-most", "5%", "--spans", "big,p", "--text", "none"], "--text"),
    (
        ["--prediction", "llm", "--at-most", "5%", "--accept", "all"],
        "--accept needs --probability, the confidence in each prediction",
    ),
    (["--prediction", "llm", "--at-most", "5%", "--accept", "most"], "--accept must be all or accepted, not 'most'"),
    (["--prediction", "llm", "--at-most", "5%", "--answer", "guess"], "--answer must be blind or verdict, not 'guess'"),
    (["--prediction", "llm", "--at-most", "5%", "--id", "topic"], "--id"),
    (["--prediction", "llm", "--at-most", "5%", "--text", "llm"], "given as --prediction and as --text"),
    (["--prediction", "llm", "--at-most", "5%", "--ignore", "llm"], "--ignore"),
    (["--prediction", "llm", "--at-most", "5%", "--tolerance", "1"], "--tolerance is for numbers"),
    (["--prediction", "llm", "--at-most", "5%", "--budget", "0"], "--budget"),
    (["--prediction", "llm", "--size", "900"], "--size must be at most the 200 rows, not 900"),
    (["--prediction", "llm", "--recall-of", "newt"], "--recall-of must be one of the predicted classes"),
    (["--prediction", "llm", "--at-most", "5%", "--of", "some"], "--of"),
    (["--prediction", "llm", "--of", "all"], "--of all needs --at-most"),
    (
        ["--prediction", "llm", "--at-most", "5%", "--share", "5%"],
        "--share is not used with predictions made elsewhere",
    ),
    (["--prediction", "llm", "--at-most", "5%", "--truth", "nowhere"], "--truth"),
    (["--prediction", "llm", "--at-most", "5%", "--truth", "llm"], "given as --prediction and as --truth"),
    (["--prediction", "llm", "--at-most", "5%", "--truth", "topic"], "which is none of the predicted classes"),
    (["--prediction", "llm", "--at-most", "5%", "--truth", "topic", "--group", "topic"], "as --group and as --truth"),
    (["--prediction", "llm", "--at-most", "5%", "--truth", "topic", "--project", "a"], "--project is of no use"),
    (["--prediction", "llm", "--at-most", "5%", "--truth", "topic", "--annotator-error", "1%"], "give --of all too"),
    (["--prediction", "llm", "--at-most", "5%", "--truth", "empty"], "column 'empty' has no answer in any row"),
    (["--prediction", "llm", "--at-most", "5%", "--truth", "topic", "--id", "topic"], "as --id and as --truth"),
    (["--prediction", "llm", "--at-most", "5%", "--truth", "body", "--id", "topic"], "must name each item differently"),
    (["--prediction", "llm", "--truth", "topic", "--of", "all"], "--of all needs --at-most"),
    (["--prediction", "llm", "--at-most", "5%", "--classes", "ham,spam"], "--classes leaves out 'zebrafinch'"),
    (
        ["--prediction", "llm", "--at-most", "5%", "--classes", "ham,spam", "--truth", "topic"],
        "--classes leaves out 'zebrafinch'",
    ),
    (["--prediction", "llm", "--at-most", "5%", "--truth", "loud"], "only upper and lower case or spaces differ from"),
    (["--prediction", "absent", "--at-most", "5%"], "has 'None', which is read as empty"),
    (["--prediction", "llm", "--at-most", "5%", "--probability", "percent"], "divide the column by 100"),
    (["--prediction", "llm", "--at-most", "120%"], "such as 5% or 0.05, not '120%'"),
    (["--prediction", "llm", "--prediction", "topic", "--at-most", "5%", "--accept", "all"], "--accept is for one"),
    (["--prediction", "llm", "--share-of", "ham", "--answer", "verdict"], "with --answer blind"),
    (["--prediction", "llm", "--recall-of", "ham", "--precision-of", "ham"], "give --recall-of or --precision-of"),
    (["--prediction", "p", "--at-most", "5%"], "give --tolerance, the largest error"),
    (["--prediction", "p", "--at-most", "5%", "--truth", "big"], "give --tolerance, the largest error"),
    (["--probability", "p"], "--probability is for --prediction; name the column of predictions too"),
    (["--budget", "3"], "name the column of predictions to check with --prediction"),
]


@pytest.mark.parametrize(("options", "message"), BAD)
def test_bad_input_is_refused_and_leaves_nothing_behind(
    tmp_path: Path, table: dict[str, list[Any]], options: list[str], message: str
) -> None:
    del table["truth"]
    table |= {"same": ["ham"] * 200, "gaps": ["ham", "", *["spam"] * 198], "big": [k / 100 for k in range(200)]}
    table |= {"empty": [""] * 200, "loud": [str(name).upper() for name in table["llm"]]}
    table |= {"absent": ["None", *["ham", "spam"] * 99, "ham"], "percent": [96.7] * 200}
    path = write_csv(tmp_path / "answers.csv", table)
    assert message in refused(path, *options)
    assert [each.name for each in tmp_path.iterdir()] == ["answers.csv"]


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    for name, text in (("empty.csv", ""), ("header.csv", "id,llm\n"), ("one.csv", "id,llm\n1,a\n")):
        (tmp_path / name).write_text(text)
    (tmp_path / "twice.csv").write_text("id,llm\n1,a\n1,b\n")
    common = ["--prediction", "llm", "--at-most", "5%"]
    before = sorted(path.name for path in tmp_path.iterdir())
    assert "empty" in refused(str(tmp_path / "empty.csv"), *common)
    assert "holds one line only" in refused(str(tmp_path / "header.csv"), *common)
    assert "'1'" in refused(str(tmp_path / "twice.csv"), *common, "--id", "id")
    assert "nowhere.csv" in refused(str(tmp_path / "nowhere.csv"), *common)
    assert sorted(path.name for path in tmp_path.iterdir()) == before


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="everybody may write here")
def test_a_folder_that_is_read_only_is_refused(answers: str, tmp_path: Path) -> None:
    tmp_path.chmod(0o555)
    try:
        assert "--project" in refused(answers, "--prediction", "llm", "--at-most", "5%")
    finally:
        tmp_path.chmod(0o755)


def test_what_was_drawn_stays_as_it_is(answers: str, tmp_path: Path, table: dict[str, list[Any]]) -> None:
    common = ["--prediction", "llm", "--at-most", "10%", "--id", "id", "--seed", "0"]
    told(answers, *common)
    place = str(tmp_path / "answers.check.suffice")
    told(place, lines=[table["truth"][row] for row in _pending(place)[:5]])
    changes: list[tuple[list[str], str]] = [
        (["--prediction", "topic"], "has --prediction"),
        (["--prediction", "llm", "--probability", "p"], "has no --probability, and p is asked for"),
        (["--prediction", "llm", "--answer", "verdict"], "has --answer blind, and verdict is asked for"),
        (["--prediction", "llm", "--of", "all"], "has --of rest, and all is asked for"),
    ]
    for options, message in changes:
        assert message in refused(answers, *options, "--at-most", "10%")
    others: list[tuple[list[str], str]] = [
        (["--at-most", "1%", "--confidence", "99%"], "--at-most 1% asks for another one"),
        (["--at-most", "10%", "--confidence", "99%"], "--confidence 99% asks for another one"),
        (["--at-most", "10%", "--earlier-checks", "2"], "--earlier-checks 2 asks for another one"),
        (["--size", "50"], "--size 50 asks for another one"),
        (["--share-of", "ham"], "--share-of ham asks for another one"),
        (["--text", "body"], "has no --text, and body is asked for"),
        (["--show", "topic"], "has no --show, and topic is asked for"),
        (["--ignore", "topic"], "has no --ignore, and topic is asked for"),
        (["--seed", "1"], "has --seed 0, and 1 is asked for"),
        (["--classes", "ham,eel"], "has --classes ham, spam, zebrafinch, and eel, ham is asked for"),
    ]
    for options, message in others:
        assert message in refused(answers, "--prediction", "llm", *options), options
    assert "or end it without a result: suffice check" in refused(place, "--at-most", "3%")
    same = ["--at-most", "10%", "--confidence", "95%", "--classes", "zebrafinch,spam,ham"]
    assert told(place, *same)["checked"] == 5
    del table["truth"]
    kept = Path(answers).read_bytes()
    write_csv(Path(answers), {**table, "llm": ["ham" if k != 7 else "spam" for k in range(200)]})
    assert "has changed since the project" in refused(answers, *common)
    write_csv(Path(answers), {name: values[:-1] for name, values in table.items()})
    assert "put new rows into a file of their own, and add them" in refused(answers, *common)
    Path(answers).write_bytes(kept)
    assert told(answers, *common)["checked"] == 5


def test_ctrl_c_keeps_the_answers(answers: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from suffice.cli import labeller

    done, number = labeller._done, 0

    def interrupted(*arguments: Any) -> bool:
        nonlocal number
        number += 1
        if number > 4:
            raise KeyboardInterrupt
        return done(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(labeller, "_done", interrupted)
        common = ["--prediction", "llm", "--at-most", "10%", "--answer", "verdict"]
        assert called(answers, *common, lines=["right"] * 50).exit_code != 2
    assert told(str(tmp_path / "answers.check.suffice"))["checked"] == 4


def test_a_check_is_given_up(answers: str, tmp_path: Path) -> None:
    told(answers, "--prediction", "llm", "--at-most", "10%", "--id", "id")
    place = str(tmp_path / "answers.check.suffice")
    result = called(place, "--abort")
    assert result.exit_code == 0, (result.output, result.exception)
    with open_project(place) as project:
        assert project.checks()[0].record.aborted
    told(place, "--at-most", "10%")
    with open_project(place) as project:
        assert project.checks()[1].draw.number == 2


def test_people_see_what_they_need_and_nothing_that_tells_the_prediction(
    tmp_path: Path, table: dict[str, list[Any]]
) -> None:
    table |= {"rules": [*table["llm"][:-1], "ham"], "gold": table["truth"], "mood": ["calm", "loud"] * 100}
    del table["truth"]
    path, place = write_csv(tmp_path / "answers.csv", table), tmp_path / "answers.check.suffice"

    def seen(*options: str) -> tuple[set[str], str]:
        result = called(path, "--prediction", "llm", "--at-most", "10%", *options)
        assert result.exit_code == 0, (result.output, result.exception)
        with open_project(place) as project:
            names = {name for name, _ in project.item(0).cells}
        rmtree(place)
        return names, result.output

    # With --text nothing else, with a note.
    names, output = seen("--text", "body", "--probability", "p", "--group", "topic")
    assert names == {"body"}
    assert "people see 'body', and no other column; --show COLUMN shows one more" in output
    assert seen("--text", "body", "--show", "mood", "--show", "p")[0] == {"body", "mood", "p"}
    assert seen("--text", "body", "--answer", "verdict", "--probability", "p")[0] == {"body", "llm"}
    # Without it, all but what is like the predictions.
    names, output = seen("--probability", "p")
    assert names == {"body", "topic", "mood"}
    for name in ("rules", "gold"):
        assert f"column '{name}' is not shown, because its values are like the predictions" in output
    for options, message in (
        (["--show", "nowhere"], "--show"),
        (["--show", "llm"], "--show names the column 'llm', which is checked"),
        (["--show", "mood", "--ignore", "mood"], "given as --show and as --ignore"),
    ):
        assert message in refused(path, "--prediction", "llm", "--at-most", "10%", *options)


def test_verdicts_and_corrections_are_typed(tmp_path: Path) -> None:
    table: dict[str, list[Any]] = {
        "body": [f"first line {k}\nsecond line" for k in range(60)],
        "start": [6] * 60,
        "end": [10] * 59 + [999],
        "llm": [f"a name {k}" for k in range(60)],
    }
    path, place = write_csv(tmp_path / "answers.csv", table), str(tmp_path / "answers.check.suffice")
    options = ["--prediction", "llm", "--size", "60", "--text", "body", "--spans", "start,end"]
    result = called(path, *options, lines=["y", "N", "= the right name", "=", "right", "wrong", "u", "q"])
    assert result.exit_code == 0, (result.output, result.exception)
    assert "is the prediction right? y (right), n (wrong), or = and what is right instead" in result.output
    assert "  body: first [[line]] " in result.output
    assert "\n    second line" in result.output
    assert "  start:" not in result.output
    assert "= is followed by what is right" in result.output
    with open_project(place) as project:
        labels = project.state().labels
        assert [labels.by_item[item] for item in project.checks()[0].record.items[:4]] == [
            "right",
            "wrong",
            "wrong",
            "right",
        ]
        assert list(labels.corrections.values()) == ["the right name"]


def test_the_status_of_a_check_is_not_about_a_model(answers: str, tmp_path: Path) -> None:
    place = str(tmp_path / "answers.check.suffice")
    called(answers, "--prediction", "llm", "--size", "9", lines=["ham"] * 5)
    shown = RUN.invoke(app, ["status", place]).output
    assert f"Go on with: suffice check {place}" in " ".join(shown.split("\n"))
    called(place, lines=["ham"] * 4)
    shown = RUN.invoke(app, ["status", place]).output
    assert "The model has learned" not in shown
    for option in ("--final", "--statement"):
        result = RUN.invoke(app, ["export", place, option, str(tmp_path / "x.csv")])
        assert "final labels need a goal about all labels" in str(result.exception)


def test_a_project_that_is_not_there_is_wrong_use(answers: str, tmp_path: Path) -> None:
    common = ["--prediction", "llm", "--at-most", "5%"]
    nowhere = str(tmp_path / "no" / "x.suffice")
    for arguments in ([nowhere], [str(tmp_path / "x.check.suffice")], [answers, *common, "--project", nowhere]):
        result = called(*arguments)
        assert isinstance(result.exception, InvalidValueError)
    assert "suffice check FILE --prediction COLUMN" in refused(nowhere)
