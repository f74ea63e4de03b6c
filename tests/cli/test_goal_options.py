"""Options for a goal about all labels: of new projects, of existing ones, and of checks."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from suffice import RecallTest
from suffice.cli.app import app
from suffice.project.create import open_project
from tests.project.labelled_projects import label_some
from tests.project.making_projects import make

RUN = CliRunner()
SCREENING = ["--of", "all", "--at-most", "5%", "--positive", "spam"]


def run(*arguments: str, lines: str = "") -> Any:
    return RUN.invoke(app, arguments, input=lines)


@pytest.fixture
def mails(tmp_path: Path) -> str:
    texts = [f"{'free prize money' if k % 3 else 'lunch at home'} {k}" for k in range(40)]
    (tmp_path / "mails.csv").write_text("\n".join(["body", *texts]), encoding="utf-8")
    return str(tmp_path / "mails.csv")


def new(mails: str, *options: str) -> Any:
    return run("label", mails, "--text", "body", "--classes", "ham,spam", *options, "--json")


def test_a_new_project_has_the_goal(mails: str) -> None:
    result = new(mails, "--at-most", "5%", "--of", "all", "--annotator-error", "1%", "--correction-cost", "0.5")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["goal"]["allowed"] == 1
    with open_project(mails.replace(".csv", ".suffice")) as project:
        goal = project.settings.goal
        assert goal is not None
        assert (goal.at_most, goal.of, goal.annotator_error, goal.answer_cost) == (0.05, "all", 0.01, 0.5)
    # The same command continues it; another goal is refused.
    assert new(mails, "--at-most", "5%", "--of", "all").exit_code == 0
    assert new(mails).exit_code == 0
    for other in (["--of", "rest"], ["--at-most", "10%"], ["--annotator-error", "2%", "--of", "all"]):
        assert "on the page, under Settings" in str(new(mails, *other).exception)


def test_a_new_project_screens_to_the_goal(mails: str) -> None:
    result = new(mails, *SCREENING)
    assert result.exit_code == 0, result.output
    goal = json.loads(result.stdout)["goal"]
    assert (goal["class_name"], goal["found"], goal["allowed"]) == ("spam", 0, 0)
    with open_project(mails.replace(".csv", ".suffice")) as project:
        assert project.settings.goal is not None
        assert (project.settings.goal.class_name, project.settings.recall) == ("spam", 0.95)
        assert not project.settings.choose_model
    # The same command continues it; another goal is refused.
    assert new(mails, *SCREENING).exit_code == 0
    assert "on the page, under Settings" in str(new(mails, "--at-most", "10%", "--of", "all").exception)


def test_a_goal_of_numbers_has_a_tolerance(tmp_path: Path) -> None:
    table = tmp_path / "houses.csv"
    table.write_text("\n".join(["size", *map(str, range(60))]), encoding="utf-8")
    options = ["label", str(table), "--target", "price", "--regression", "--at-most", "5%", "--of", "all", "--json"]
    assert "needs a tolerance (--tolerance)" in str(run(*options).exception)
    assert run(*options, "--tolerance", "2.5").exit_code == 0
    with open_project(tmp_path / "houses.suffice") as project:
        assert (project.settings.at_most, project.settings.of, project.settings.tolerance) == (0.05, "all", 2.5)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--of", "all"], "--of all needs --at-most"),
        (["--of", "some", "--at-most", "5%"], "--of must be rest or all, not 'some'"),
        (["--annotator-error", "1%", "--at-most", "5%"], "--annotator-error is for a goal about all labels"),
        (["--correction-cost", "0.5"], "--correction-cost is for a goal about all labels"),
        (["--of", "all", "--at-most", "5%", "--annotator-error", "5%"], "must be below --at-most"),
        (["--of", "all", "--at-most", "5%", "--correction-cost", "0"], "--correction-cost must be a number above 0"),
        (["--of", "all", "--at-most", "5"], "write 5% for 5 percent"),
        (["--of", "all", "--positive", "spam"], "--of all needs --at-most"),
        (["--at-most", "5%", "--positive", "spam"], "--at-most is not used with --positive"),
        ([*SCREENING, "--recall", "90%"], "--recall does not go with --of all"),
        ([*SCREENING, "--model", "auto"], "--model auto compares models by their errors"),
        ([*SCREENING, "--annotator-error", "1%"], "--annotator-error does not apply to a screening"),
        ([*SCREENING, "--correction-cost", "0.5"], "--correction-cost does not apply to a screening"),
        ([*SCREENING, "--mistake-cost", "2"], "--mistake-cost is not used with --positive"),
    ],
)
def test_bad_goals_make_no_project(mails: str, options: list[str], said: str) -> None:
    result = new(mails, *options)
    assert result.exit_code != 0
    assert said in str(result.exception)
    assert not Path(mails.replace(".csv", ".suffice")).exists()


@pytest.fixture(scope="module")
def unchanged_pets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with labels, which is copied for each test."""
    place = tmp_path_factory.mktemp("unchanged") / "pets.suffice"
    with make(place, 200, initial=4, at_most=0.1, of="all") as project:
        label_some(project, range(40))
    return place


@pytest.fixture
def pets(unchanged_pets: Path, tmp_path: Path) -> str:
    return str(shutil.copytree(unchanged_pets, tmp_path / "pets.suffice"))


def test_the_check_of_the_goal(pets: str) -> None:
    lines = run("check", pets).stdout.splitlines()
    assert lines[0] == "Goal: at most 10 % of all 200 labels are wrong (20)."
    assert lines[-1] == f"To start the check: suffice check {pets} --of all"
    started = run("check", pets, "--of", "all").stdout
    assert "until it is proven that at most 10 % of all labels are wrong." in " ".join(started.split())
    with open_project(pets) as project:
        while len(pending := project.state().checks.pending()):
            label_some(project, pending[:1].tolist())
        assert project.final_labels().guarantee.wrong_at_most == 20
    assert run("check", pets).stdout.startswith("Guaranteed: at most 20 of all 200 labels are wrong, 10 %")
    told = json.loads(run("status", pets, "--json").stdout)
    assert told["goal"]["reached"]["wrong_at_most"] == 20


def test_the_check_of_a_screening(tmp_path: Path) -> None:
    place = str(tmp_path / "some.suffice")
    rule = RecallTest(0.8).state_dict()
    with make(place, 60, initial=4, at_most=0.2, of="all", positive="cat", recall=0.8, rule=rule) as project:
        label_some(project, range(40))
        found = sum(label == "cat" for label in project.state().labels.by_item.values())
    lines = run("check", place).stdout.splitlines()
    assert lines[0].startswith(f"Goal: at most 20 % of the items of class 'cat' are missed; {found} are found")
    assert lines[-1] == f"To start the check: suffice check {place} --of all"
    # A size is that of a check of the recall.
    sized = json.loads(run("check", place, "--size", "3", "--json").stdout)["check"]
    assert (sized["quantity"], sized["class_name"], sized["sequential"]) == ("recall", "cat", None)
    run("check", place, "--abort")
    started = " ".join(run("check", place, "--of", "all").stdout.split())
    assert "until it is proven that at most 20 % of the items of class 'cat' are missed." in started
    with open_project(place) as project:
        while len(pending := project.state().checks.pending()):
            label_some(project, pending[:1].tolist())
        statement = str(project.final_labels().guarantee)
    assert run("check", place).stdout.startswith(f"Guaranteed: {statement[:1].lower()}{statement[1:]}")
    told = json.loads(run("status", place, "--json").stdout)
    assert told["goal"]["reached"]["recall_at_least"] >= 0.8
    assert told["goal"]["reached"]["missed_at_most"] == told["goal"]["reached"]["allowed"]
    done = run("export", place, "--final", str(tmp_path / "final.csv"))
    assert done.exit_code == 0, done.output
    rows = (tmp_path / "final.csv").read_text(encoding="utf-8").splitlines()
    assert len(rows) == 61


def test_a_check_of_a_stricter_goal(pets: str) -> None:
    told = json.loads(run("check", pets, "--at-most", "5%", "--annotator-error", "1%", "--json").stdout)
    assert (told["check"]["of"], told["check"]["at_most"], told["check"]["annotator_error"]) == ("all", 0.05, 0.01)
    assert told["check"]["sequential"]["allowed"] == 8


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--of", "some", "--at-most", "5%"], "--of must be rest or all"),
        (["--size", "20", "--of", "all"], "leave them out with --size"),
        (["--at-most", "5%", "--of", "rest", "--annotator-error", "1%"], "--annotator-error is for a goal"),
        (["--at-most", "5%", "--annotator-error", "6%"], "leaves nothing of the goal"),
        (["--at-most", "100%"], "must be a share above 0 and below 1, such as 5% or 0.05, not '100%'"),
        (["--abort", "--of", "all"], "--abort ends the open check"),
    ],
)
def test_bad_options_of_a_check(pets: str, options: list[str], said: str) -> None:
    result = run("check", pets, *options)
    assert result.exit_code != 0
    assert said in str(result.exception)


def test_a_rule_is_refused_with_a_goal_that_decides_alone(mails: str) -> None:
    for option in (["--threshold", "0.1"], ["--rule", "StabilizingPredictions"], ["--mistake-cost", "5"]):
        result = new(mails, "--at-most", "5%", "--of", "all", *option)
        assert f"{option[0]} is not used with --of all, where the goal decides when to stop" in str(result.exception)
