"""``suffice plan``: checks are planned without a project."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from suffice.checks import answer_table, plan_answers, sample_bounds
from suffice.cli.app import app
from suffice.errors import InvalidValueError

RUN = CliRunner()


def planned(*arguments: str) -> dict[str, Any]:
    done = RUN.invoke(app, ["plan", *arguments, "--json"], catch_exceptions=False)
    assert done.exit_code == 0
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def test_a_target_is_planned_as_in_python() -> None:
    result = planned("--pool", "20000", "--expected", "2%", "--at-most", "5%")
    assert result["plan"] == plan_answers(0.05, 0.02, 20_000).as_dict()
    assert result["table"] == [plan.as_dict() for plan in answer_table(0.05, 20_000, expected=0.02)]
    assert result["sample"] is None
    assert result["sentences"][0].startswith("To prove that at most 5 % of 20,000 predictions are wrong")
    told = RUN.invoke(app, ["plan", "--pool", "20000", "--expected", "2%", "--at-most", "0.05"]).stdout
    for sentence in result["sentences"]:
        assert " ".join(sentence.split()) in " ".join(told.replace("\u00a0", " ").split())
    assert "8 of 10 checks" in told


def test_without_an_expected_share_half_of_the_target_is_planned_for() -> None:
    result = planned("--pool", "20000", "--at-most", "5%")
    assert result["plan"] == plan_answers(0.05, None, 20_000).as_dict() == plan_answers(0.05, 0.025, 20_000).as_dict()
    assert result["table"] == [plan.as_dict() for plan in answer_table(0.05, 20_000)]
    assert {plan["planned_for"] for plan in result["table"]} == {0.025}
    assert result["sentences"][-1] == "The check is planned for 2.5 % wrong, half of the target."


def test_a_sample_is_stated_as_in_python() -> None:
    result = planned("--pool", "20000", "--checked", "300", "--wrong", "7", "--confidence", "90%")
    assert result["sample"] == sample_bounds(20_000, 300, 7, alpha=0.1).as_dict()
    assert (result["plan"], result["table"]) == (None, [])
    assert "90 % confidence" in result["sentences"][0]


def test_a_sample_that_proves_a_target_needs_no_check() -> None:
    result = planned("--pool", "20000", "--checked", "300", "--wrong", "7", "--at-most", "5%")
    assert result["sentences"][-1] == "That proves the target of at most 5 %."
    assert result["plan"] is None


def test_a_sample_that_does_not_counts_as_a_check() -> None:
    result = planned("--pool", "20000", "--checked", "300", "--wrong", "12", "--at-most", "5%", "--seconds", "8")
    assert "That does not prove the target of at most 5 %. For a new check:" in result["sentences"]
    assert result["plan"] == plan_answers(0.05, 0.04, 20_000, number=2).as_dict()
    assert " hours" in " ".join(result["sentences"])


def test_corrections_make_any_target_provable() -> None:
    assert planned("--pool", "900", "--expected", "9%", "--at-most", "5%")["plan"]["median"] is None
    result = planned("--pool", "900", "--expected", "9%", "--at-most", "5%", "--of", "all", "--earlier-checks", "1")
    assert result["plan"] == plan_answers(0.05, 0.09, 900, number=2, corrected=True).as_dict()
    assert result["plan"]["median"] is not None


@pytest.mark.parametrize(("of", "shown"), [("predictions", True), ("all", False)])
def test_a_column_without_numbers_is_left_out(of: str, shown: bool) -> None:
    told = RUN.invoke(app, ["plan", "--pool", "900", "--at-most", "5%", "--of", of, "--seconds", "8"])
    header = next(line for line in told.stdout.splitlines() if "8 of 10 checks" in line)
    assert ("fixed size" in header) == shown
    assert header.split()[-1] == "time"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give --at-most, the share of wrong predictions to prove, or --checked and --wrong"),
        (["--at-most", "5"], "--at-most must be a share above 0 and below 1, .* write 5% for 5 percent"),
        (["--at-most", "5%", "--expected", "-1"], "--expected must be a share of at least 0 and below 1"),
        (["--at-most", "5%", "--of", "rest"], "--of must be predictions or all, not 'rest'"),
        (["--at-most", "5%", "--confidence", "1"], "--confidence must be a share above 0"),
        (["--at-most", "5%", "--seconds", "0"], "--seconds must be a number above 0"),
        (["--at-most", "5%", "--earlier-checks", "-1"], "--earlier-checks must be"),
        (["--checked", "30"], "--checked and --wrong go together"),
        (["--wrong", "3"], "--checked and --wrong go together"),
        (["--checked", "30", "--wrong", "31"], "wrong must not exceed checked"),
        (["--checked", "30", "--wrong", "3", "--expected", "2%"], "--expected needs --at-most"),
        (["--checked", "30", "--wrong", "3", "--of", "all"], "--of needs --at-most"),
    ],
)
def test_what_cannot_be_planned_is_refused(arguments: list[str], message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        RUN.invoke(app, ["plan", "--pool", "900", *arguments], catch_exceptions=False)


def test_the_page_shows_what_the_commands_print() -> None:
    page = (Path(__file__).parents[2] / "docs" / "annotation-budget.md").read_text(encoding="utf-8")
    shown = re.findall(r"```bash\nsuffice (plan .*?)\n```\n\n```text\n(.*?)```", page, re.DOTALL)
    assert len(shown) == 2
    for command, output in shown:
        told = RUN.invoke(app, command.split(), catch_exceptions=False).stdout.replace("\u00a0", " ")
        assert told.split() == output.split()
    asked = re.search(
        r"`suffice (plan --pool 20000\s+--at-most 5% --expected 6% --of all)` states about ([\d,]+)", page
    )
    assert asked is not None
    told = RUN.invoke(app, asked[1].split(), catch_exceptions=False).stdout
    assert f"takes about {asked[2]} answers" in " ".join(told.replace("\u00a0", " ").split())


def test_a_pool_or_a_table_is_required(tmp_path: Path) -> None:
    table = tmp_path / "answers.csv"
    table.write_text("text,llm\nx,a\ny,b\n", encoding="utf-8")
    with pytest.raises(InvalidValueError, match="give the number of predictions, as in --pool 20000, or a table"):
        RUN.invoke(app, ["plan", "--at-most", "5%"], catch_exceptions=False)
    with pytest.raises(InvalidValueError, match="pool must be"):
        RUN.invoke(app, ["plan", "--pool", "0", "--at-most", "5%"], catch_exceptions=False)
    with pytest.raises(InvalidValueError, match=r"--pool 900 and the rows of .*answers\.csv are two numbers of"):
        RUN.invoke(app, ["plan", str(table), "--pool", "900", "--at-most", "5%"], catch_exceptions=False)


def test_the_rows_of_a_table_are_counted(tmp_path: Path) -> None:
    table = tmp_path / "answers.csv"
    table.write_text("text,llm\n" + "x,a\n" * 900, encoding="utf-8")
    assert planned(str(table), "--at-most", "5%") == planned("--pool", "900", "--at-most", "5%")
    told = RUN.invoke(app, ["plan", str(table), "--at-most", "5%"], catch_exceptions=False).stdout
    assert "answers.csv has 900 rows; each counts as one prediction." in " ".join(told.split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--pool", "6k"], "'--pool': '6k' is not a whole number; write it with digits only, such as 6000"),
        (["--pool", "6,000"], "'6,000' is not a whole number; write it with digits only, such as 6000"),
        (["--pool", "2.5"], "'2.5' is not a whole number; write it with digits only, such as 200"),
        (["--seconds", "0,5"], "'0,5' is not a number; write it with digits and a decimal point, such as 0.5"),
        (["--seconds", "8s"], "'8s' is not a number; write it with digits and a decimal point, such as 0.5"),
    ],
)
def test_a_value_that_is_not_a_number_is_refused_with_an_example(arguments: list[str], message: str) -> None:
    refused = RUN.invoke(app, ["plan", *arguments], catch_exceptions=False)
    assert refused.exit_code == 2
    assert message in " ".join(refused.output.replace("\u2502", " ").split())
