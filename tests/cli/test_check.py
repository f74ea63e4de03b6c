"""`suffice check`: what it starts, says and refuses; and what the other commands say of checks."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from suffice.checks.sequential_terms import planned_answers
from suffice.cli.app import app
from suffice.project.create import open_project
from tests.project.labelled_projects import label_some
from tests.project.making_projects import make
from tests.thoroughness import some

RUN = CliRunner()


def said(*arguments: str, code: int = 0) -> str:
    """What a command prints, or why it could not be done."""
    result = RUN.invoke(app, arguments)
    if code:
        assert result.exception is not None
        assert result.stdout == ""
        return str(result.exception)
    assert result.exit_code == 0, result.output
    return result.stdout


def told(*arguments: str) -> dict[str, Any]:
    """What a command prints as JSON, and nothing else."""
    answer: dict[str, Any] = json.loads(said(*arguments, "--json"))
    return answer


def new_project(folder: Path) -> str:
    """A project with labels."""
    with make(folder / "pets.suffice", 280, initial=4, at_most=0.2) as project:
        label_some(project, range(20))
    return str(folder / "pets.suffice")


@pytest.fixture(scope="module")
def unchanged_pets(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A project for several tests that change nothing."""
    return new_project(tmp_path_factory.mktemp("pets"))


@pytest.fixture
def pets(unchanged_pets: str, tmp_path: Path) -> str:
    return str(shutil.copytree(unchanged_pets, tmp_path / "pets.suffice"))


def test_a_project_with_few_items_left_is_told_to_label_them(tmp_path: Path) -> None:
    with make(tmp_path / "few.suffice", 40, initial=4) as project:
        label_some(project, range(20))
    lines = said("check", str(tmp_path / "few.suffice")).splitlines()
    assert lines[-1] == "A check is of no use for 20 unlabelled items: label all of them instead."
    assert told("check", str(tmp_path / "few.suffice"))["offers"]["rows"] == []


@pytest.mark.slow
def test_after_a_guaranteed_target_no_further_label_is_suggested(pets: str) -> None:
    with open_project(pets) as project:
        label_some(project, range(20, 60))
    said("check", pets, "--size", "150")
    finish(pets)
    assert told("status", pets)["decision"]["target_guaranteed"]
    assert said("status", pets).splitlines()[-1] == f"Take the results: suffice export {pets}"
    assert "Go on with" not in said("status", pets)


def finish(place: str) -> None:
    """Label the items of the open check, until it ends."""
    with open_project(place) as project:
        while pending := project.state().checks.pending().tolist():
            label_some(project, pending)


def finish_one(place: str) -> None:
    """Label the first item of the open check."""
    with open_project(place) as project:
        label_some(project, project.state().checks.pending().tolist()[:1])


def test_without_a_size_it_says_what_checks_would_cost_and_starts_nothing(pets: str) -> None:
    lines = said("check", pets).splitlines()
    assert lines[1].startswith("Estimate: about ")
    assert "of the predictions for the 260 unlabelled items are wrong" in lines[1]
    assert [line.split(":")[0] for line in lines if line.startswith("- ")][:3] != []
    assert any(line.startswith("A check until at most 20 % is proven, your target, takes about ") for line in lines)
    assert lines[-1] == f"To start one: suffice check {pets} --at-most 20%"
    offers = told("check", pets)["offers"]
    assert [each["size"] for each in offers["offers"]] == [50, 100, 200]
    assert (offers["number"], offers["pool"], offers["at_most"], offers["confidence"]) == (1, 260, 0.2, 0.95)
    assert offers["alpha"] == 0.025
    assert sorted(each["at_most"] for each in offers["offers"]) == [each["at_most"] for each in offers["offers"]][::-1]
    with open_project(pets) as project:
        assert project.checks() == []


def test_a_check_from_its_start_to_its_guarantee(pets: str) -> None:
    lines = said("check", pets, "--size", "30", "--person", "ann").splitlines()
    assert lines[0] == "Check 1 is started: 30 of 260 unlabelled items, drawn at random."
    assert lines[1] == "Check: 0 of 30 random items answered. The guarantee is stated when all are answered."
    assert lines[2] == f"Label its items, which come first: suffice label {pets} or suffice serve {pets}"
    assert lines[3] == f"Give it up: suffice check {pets} --abort"
    assert said("check", pets).splitlines() == lines[1:]
    assert told("check", pets)["check"]["state"] == "open"
    status = said("status", pets).splitlines()
    assert status[1].startswith("A check is running: about")
    assert status[2].startswith("30 random items still to answer.")
    assert f"Stop the check: suffice check {pets} --abort" in status
    finish(pets)
    found = told("check", pets)
    assert found["guarantee"]["about_present_model"]
    assert said("check", pets).splitlines()[0] == found["guarantee"]["sentences"][0]
    assert said("status", pets).splitlines()[1] == found["guarantee"]["sentences"][0]
    assert told("status", pets)["guarantee"] == found["guarantee"]
    assert found["offers"]["alpha"] == pytest.approx(0.05 / 6)


def test_a_check_for_a_target_ends_when_it_is_proven(pets: str) -> None:
    with open_project(pets) as project:
        label_some(project, range(20, 40))
    lines = said("check", pets, "--at-most", "20%", "--expected", "3%").splitlines()
    assert lines[0] == (
        "Check 1 is started: 240 unlabelled items in random order, until at most 20 % wrong predictions are proven. "
        "The check is planned for 3 % wrong."
    )
    found = told("check", pets)["check"]
    assert (found["expected"], found["sequential"]["planned"]) == (0.03, planned_answers(48, 0.03, 240, 0.025))
    needed = found["sequential"]["needed"]
    words = (
        f"Check: 0 answers, 0 wrong predictions. The target is proven if the next {needed} predictions are all right."
    )
    assert found["sentence"] == lines[1] == words
    assert (found["size"], found["at_most"], found["sequential"]["allowed"]) == (needed, 0.2, 48)
    finish(pets)
    done = told("check", pets)
    assert done["check"]["sequential"]["state"] == "proven"
    assert done["guarantee"]["statement"] == (
        "At most 20 % of the predictions for the 240 items that were unlabelled at the start of the check are wrong "
        "(95 % confidence)."
    )
    assert told("status", pets)["decision"]["target_guaranteed"]


def test_a_check_for_a_target_is_given_up(pets: str) -> None:
    said("check", pets, "--at-most", "0.1%")
    finish_one(pets)
    found = told("check", pets, "--abort")
    assert (found["check"]["state"], found["check"]["sequential"]["state"]) == ("aborted", "given up")
    assert "The check was given up after 1 answer: it proves nothing." in said("status", pets)
    assert told("check", pets, "--at-most", "20%", "--earlier-checks", "2")["check"]["number"] == 4


@pytest.mark.parametrize("skips", some([6, 0], every=2))
def test_the_status_and_the_check_plan_the_same_size(pets: str, skips: int) -> None:
    with open_project(pets) as project:
        label_some(project, range(20, 100))
        for item in range(100, 100 + skips):
            project.skip(item, person="ann")
    plan = told("status", pets)["decision"]["plan"]
    assert plan["check_now"]
    words = ("size", "low", "high")
    expected = {name: plan[f"check_{name}"] for name in words}
    assert f"takes about {expected['size']} random labels" in said("status", pets)
    offered = told("check", pets)["offers"]["target_check"]
    assert {name: offered[name] for name in words} == expected
    assert told("check", pets, "--at-most", "20%")["check"]["state"] == "open"
    assert told("check", pets, "--abort")["check"]["state"] == "aborted"
    # A later check spends less error probability, and the plans know that.
    later = told("status", pets)["decision"]["plan"]
    assert later["check_size"] > plan["check_size"]
    offered = told("check", pets)["offers"]["target_check"]
    assert {name: offered[name] for name in words} == {name: later[f"check_{name}"] for name in words}


def test_aborting(pets: str) -> None:
    assert said("check", pets, "--abort", code=1) == "no check is open, so there is none to abort"
    said("check", pets, "--size", "5")
    assert said("check", pets, "--abort").startswith("The check is aborted. It proves nothing")
    with open_project(pets) as project:
        assert [check.state for check in project.checks()] == ["aborted"]


def test_what_a_class_costs_is_said_first(pets: str) -> None:
    offers = told("check", pets, "--recall-of", "cat")["offers"]
    assert (offers["quantity"], offers["class_name"], offers["pool"]) == ("recall", "cat", 260)
    assert [each["at_least"] for each in offers["offers"]] == [0.8, 0.9, 0.95]
    sizes = [each["size"] or 260 for each in offers["offers"]]
    assert sizes == sorted(sizes)
    lines = said("check", pets, "--recall-of", "cat").splitlines()
    assert lines[:-1] == offers["sentences"]
    assert lines[-1].startswith(f"To start one: suffice check {pets} --recall-of cat --size ")
    precision = told("check", pets, "--precision-of", "dog")["offers"]
    with open_project(pets) as project:
        assert project.checks() == []
        project.start_check(1, person="ann", precision_of="dog")
        assert precision["pool"] == project.checks()[0].record.pool


def test_other_quantities(pets: str, tmp_path: Path) -> None:
    found = told("check", pets, "--size", "20", "--recall-of", "cat", "--exclude-unlabelable", "--confidence", "90%")
    check = found["check"]
    assert (check["quantity"], check["class_name"], check["unlabelable_as"]) == ("recall", "cat", "excluded")
    assert check["confidence"] == pytest.approx(0.9)
    finish(pets)
    assert "of the items of class 'cat' are labelled or predicted as such" in said("status", pets)
    first = said("check", pets, "--size", "20", "--precision-of", "dog").splitlines()[0]
    assert first.startswith("Check 2 is started: 20 of ")
    assert first.endswith("unlabelled items predicted as 'dog', drawn at random.")
    place = str(tmp_path / "numbers.suffice")
    with make(place, 200, task="regression", initial=4) as project:
        label_some(project, range(30))
    assert "are off by more than 0.5" in said("check", place, "--tolerance", "0.5")
    assert said("check", place, "--at-most", "40%", "--tolerance", "0.5").startswith("Check 1 is started: ")
    finish(place)
    assert "are off by more than 0.5" in said("status", place).splitlines()[1]
    assert told("check", place, "--share", "20%", "--size", "50")["check"]["quantity"] == "tolerance"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--size", "0"], "--size must be a whole number, 1 or more"),
        (["--size", "261"], "size must be at most the 260 unlabelled items, not 261"),
        (["--size", "5", "--at-most", "5%"], "--at-most starts a check that ends by itself, and --size one"),
        (["--at-most", "7"], "--at-most must be a share above 0 and below 1, such as 5% or 0.05, not '7'; write 7%"),
        (["--at-most", "few"], "--at-most must be a share above 0 and below 1"),
        (["--at-most", "5%", "--recall-of", "cat"], "--at-most starts a check of the error; for --recall-of"),
        (["--recall-of", "cat", "--precision-of", "cat"], "give --recall-of or --precision-of, not both"),
        (["--precision-of", "cow"], "the class must be one of those of the project, 'cat', 'dog', 'eel'; not 'cow'"),
        (["--share", "5%"], "the size of a check with --share is not planned; give it with --size"),
        (["--size", "5", "--recall-of", "cow"], "recall_of must be one of the classes"),
        (["--size", "5", "--recall-of", "cat", "--precision-of", "cat"], "a check guarantees one quantity"),
        (["--size", "5", "--tolerance", "1"], "tolerance cannot be checked: the model predicts classes"),
        (["--tolerance", "1"], "tolerance is for numbers, and the labels of this project are classes"),
        (["--size", "5", "--confidence", "1"], "--confidence must be a share above 0 and below 1"),
        (["--abort", "--size", "5"], "--abort ends the open check, and takes no other options"),
        (["--abort", "--exclude-unlabelable"], "--abort ends the open check, and takes no other options"),
        (["--size", "5", "--person", " "], "the name of a person must be 1 to 64 characters"),
    ],
)
def test_what_cannot_be_done_is_said_and_nothing_is_spent(
    unchanged_pets: str, options: list[str], sentence: str
) -> None:
    assert sentence in said("check", unchanged_pets, *options, code=2)
    with open_project(unchanged_pets) as project:
        assert project.checks() == []


def test_a_second_check_and_a_project_without_a_model_are_refused(pets: str, tmp_path: Path) -> None:
    said("check", pets, "--size", "5")
    for options in (["--size", "5"], ["--at-most", "5%"]):
        assert "a check is open: 5 of its 5 items have no answer" in said("check", pets, *options, code=1)
    place = str(tmp_path / "new.suffice")
    make(place).close()
    assert "the error is not estimated yet" in said("check", place, code=1)
    assert "it begins with 10 labels, and there are 0" in said("check", place, "--size", "5", code=1)
    make(tmp_path / "numbers.suffice", task="regression").close()
    why = said("check", str(tmp_path / "numbers.suffice"), code=2)
    assert why.startswith("a check of numbers needs --tolerance")
    assert "there is no project" in said("check", str(tmp_path / "none.suffice"), code=1)


def test_lines_mark_items_of_a_check_and_end_with_the_guarantee(pets: str) -> None:
    said("check", pets, "--size", "3")
    result = RUN.invoke(app, ["label", pets, "--person", "bob"], input="cat\ns\nu\ncat\ncat\nq\n")
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    marked = [line for line in lines if "drawn at random for the check" in line]
    assert len(marked) == 5
    assert any(line.endswith("; undone: label it again; drawn at random for the check)") for line in marked)
    after = [line for line in lines if line.startswith("Guaranteed: at most ")]
    # Once when the check was complete, and once at the end.
    assert len(after) == 2


def test_the_wanted_error_has_two_names(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("x\n" + "".join(f"{k}\n" for k in range(30)), encoding="utf-8")
    for name, option in (("a", "--at-most"), ("b", "--target-error")):
        place = str(tmp_path / f"{name}.suffice")
        arguments = [str(tmp_path / "t.csv"), "--classes", "u,v", option, "5%", "--project", place]
        assert RUN.invoke(app, ["label", *arguments], input="q\n").exit_code == 0
        with open_project(place) as project:
            assert project.settings.at_most == 0.05


def test_exports_and_the_report_begin_with_the_guarantee(pets: str) -> None:
    folder = Path(pets) / "export"
    assert told("export", pets)["guarantee"] is None
    assert "What is guaranteed" not in (folder / "report.html").read_text(encoding="utf-8")
    said("check", pets, "--size", "30")
    finish(pets)
    found = told("export", pets)
    assert found["guarantee"]["path"] == str(folder / "guarantee.json")
    assert found["checked_predictions"] is None
    statement = json.loads((folder / "guarantee.json").read_text(encoding="utf-8"))["statement"]
    page = (folder / "report.html").read_text(encoding="utf-8").replace("\u00a0", " ")
    assert page.index("What is guaranteed") < page.index(statement) < page.index('id="summary"')
    # Once as the first thing, once in the table of checks.
    assert page.count(statement) == 2
    assert "The predictions of another model." in page
    # More than half of the labels are those of the check, drawn at random.
    assert "the model chose some of the items" in page
    with open_project(pets) as project:
        label_some(project, [item for item in range(280) if project.state().labels.is_open(item)][:1])
    lines = said("export", pets, "--format", "jsonl").splitlines()
    assert f"Checked predictions: {folder / 'checked_predictions.jsonl'} (260 rows)" in lines
    assert f"Guarantee: {folder / 'guarantee.json'}" in lines
    page = (folder / "report.html").read_text(encoding="utf-8").replace("\u00a0", " ")
    assert "The current model is different and has no guarantee until it is checked." in page
    # It comes after the decision, which is about the current model, in the page and in its list of contents.
    assert page.index('id="summary"') < page.index(f"Guaranteed for an earlier model: {statement[:1].lower()}")
    assert page.index('href="#summary"') < page.index('href="#guaranteed"')
    # An answer of the check is undone, so nothing is guaranteed any more.
    with open_project(pets) as project:
        project.undo(person="ann")
        project.undo(person="ann")
    assert said("export", pets).splitlines()[-2].endswith("The file guarantee.json there is of an earlier export.")
