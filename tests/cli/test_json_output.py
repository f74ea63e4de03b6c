"""``--json``: every command that has it has a schema, and errors are JSON."""

import json
import re
import signal
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import typer
from typer.testing import CliRunner

from suffice import errors
from suffice.cli.app import COMMANDS, _loaded_command, app
from suffice.cli.json_output import ERROR, code_of, schema_files, schema_of, tell_error, wants_json
from suffice.errors import InvalidValueError, SufficeError
from suffice.project import create_project
from tests.json_schemas import problems
from tests.processes import run_suffice, start_suffice

RUN = CliRunner()


def commands_with_json() -> list[str]:
    """All commands and subcommands with the option --json, as they are typed."""
    found = []
    for name in COMMANDS:
        command = _loaded_command(name)
        inner = getattr(command, "commands", None)
        listed = {name: command} if inner is None else {f"{name} {each}": part for each, part in inner.items()}
        found += [each for each, part in listed.items() if any("--json" in option.opts for option in part.params)]
    return found


def told(*arguments: str, **more: Any) -> dict[str, Any]:
    """The error of a command, which is one line of standard error; standard output is empty."""
    done = run_suffice(*arguments, **more)
    assert done.stdout == ""
    error: dict[str, Any] = json.loads(done.stderr.splitlines()[-1])
    assert problems(ERROR, error) == []
    assert error["exit_status"] == done.returncode
    return error


def test_every_command_with_json_has_a_schema_and_no_other() -> None:
    assert sorted(schema_files()) == sorted([*commands_with_json(), ERROR])
    assert len(schema_files()) > 25


@pytest.mark.parametrize("command", schema_files())
def test_a_schema_is_valid_and_closed(command: str) -> None:
    schema = schema_of(command)
    jsonschema_rs.meta.validate(schema)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    for form in schema.get("anyOf", [schema.get("items", schema)]):
        # A key that the documentation does not have is an error.
        assert form["additionalProperties"] is False
        assert set(form["required"]) <= form["properties"].keys()
    assert problems(command, {"no such key": 1}) != []


def test_the_command_lists_and_prints_schemas() -> None:
    assert RUN.invoke(app, ["schema"]).stdout.splitlines() == list(schema_files())
    assert json.loads(RUN.invoke(app, ["schema", "accounts", "list"]).stdout) == schema_of("accounts list")
    unknown = RUN.invoke(app, ["schema", "nothing"]).exception
    assert isinstance(unknown, InvalidValueError)
    assert "no schema of 'nothing'; there are: demo, label" in str(unknown)
    group = str(RUN.invoke(app, ["schema", "accounts"]).exception)
    assert group.partition("there are: ")[2].split(", ") == [
        f"accounts {name}" for name in ("add", "list", "remove", "reset", "role")
    ]


@pytest.mark.parametrize(
    "command",
    [["status"], ["classes"], ["switch", "--model", "forest"], ["repair"], ["accounts", "list"], ["export"], ["check"]],
    ids=lambda command: command[0],
)
def test_a_missing_project_is_told_in_the_same_way_by_all_commands(command: list[str]) -> None:
    done = RUN.invoke(app, [*command, "nowhere"]).exception
    assert type(done) is SufficeError
    assert (
        str(done)
        == "there is no project in 'nowhere', nor in nowhere.suffice beside it; suffice label DATA creates one"
    )


def test_a_table_that_cannot_be_read_is_an_invalid_value_also_for_predictions(tmp_path: Path) -> None:
    with create_project(tmp_path / "sides.suffice", {"x": range(40)}, classes=["left", "right"]) as project:
        for item in range(20):
            project.label(item, "left" if item < 10 else "right", person="ann")
    done = RUN.invoke(app, ["predict", str(tmp_path / "sides.suffice"), str(tmp_path / "gone.csv")]).exception
    assert isinstance(done, InvalidValueError)
    assert "there is no file" in str(done)


def test_an_error_is_json() -> None:
    error = told("status", "nowhere", "--json")
    assert error["code"] == "failed"
    assert error["error"].startswith("there is no project in 'nowhere'")
    assert told("run", "x.csv", "--target", "a", "--json")["code"] == "invalid_value"
    plain = run_suffice("status", "nowhere")
    assert plain.stderr.startswith("suffice: there is no project in 'nowhere'")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["status", "--json"], "Missing argument"),
        (["status", "p", "--jso", "--json"], "No such option: --jso"),
        (["statu", "--json"], "No such command 'statu'"),
        (["review", "p", "--most", "many", "--json"], "Invalid value for"),
        (["data", "list", "--json=3"], "--json"),
        (["accounts", "add", "p", "ann", "--json"], "'--role'. Choose from: label, review, manage"),
    ],
    ids=lambda value: "" if isinstance(value, str) else value[0],
)
def test_wrong_options_are_json(arguments: list[str], sentence: str) -> None:
    error = told(*arguments)
    assert (error["code"], error["exit_status"]) == ("usage", 2)
    assert sentence in error["error"]


def test_an_unexpected_error_is_json_after_its_traceback() -> None:
    done = run_suffice("status", "p", "--json", function="tests.cli.test_json_output:main_with_a_defect")
    *before, last = done.stderr.splitlines()
    assert before[0] == "Traceback (most recent call last):"
    assert json.loads(last) == {"error": "unexpected KeyError: 'gone'", "code": "unexpected", "exit_status": 1}
    assert (done.returncode, done.stdout) == (1, "")


def main_with_a_defect() -> None:
    """The command ``suffice``, in which ``suffice status`` has a defect."""
    from suffice.cli import main, project_commands

    def status(place: str, as_json: bool = typer.Option(False, "--json")) -> None:  # noqa: ARG001
        raise KeyError("gone")

    project_commands.status_command = status
    main()


def test_an_interrupt_is_json() -> None:
    with start_suffice("label", "-", "--json", function="tests.cli.test_json_output:main_that_waits") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "waiting\n"
        process.send_signal(signal.SIGINT)
        _, said = process.communicate()
    error = json.loads(said.splitlines()[-1])
    assert (error["error"], error["code"]) == ("interrupted", "interrupted")
    assert error["exit_status"] == process.returncode


def main_that_waits() -> None:
    """The command ``suffice``, in which ``suffice label`` waits."""
    import time

    from suffice.cli import label_commands, main

    def label(place: str, as_json: bool = typer.Option(False, "--json")) -> None:  # noqa: ARG001
        print("waiting", flush=True)
        time.sleep(60.0)

    label_commands.label_command = label
    main()


def test_every_kind_of_error_is_in_the_schema() -> None:
    codes = {entry["const"] for entry in schema_of(ERROR)["properties"]["code"]["oneOf"]}
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, SufficeError)]
    assert {code_of(kind) for kind in kinds} <= codes
    assert codes - {code_of(kind) for kind in kinds} == {"usage", "output", "interrupted", "unexpected"}


def test_the_page_has_every_code() -> None:
    page = (Path(__file__).parents[2] / "docs" / "json.md").read_text()
    rows = re.findall(r"^\| (`[a-z_`, ]+`) \|", page, re.MULTILINE)
    listed = [code for row in rows for code in re.findall(r"`(\w+)`", row)]
    assert sorted(listed) == sorted(entry["const"] for entry in schema_of(ERROR)["properties"]["code"]["oneOf"])


def test_the_commands_of_the_page_name_keys_of_the_schemas() -> None:
    page = (Path(__file__).parents[2] / "docs" / "json.md").read_text()
    for command, path in re.findall(r"suffice (\w+) \S+ --json \| jq (?:-r )?\.(\w+)", page):
        schema = schema_of(command)
        assert any(path in form["properties"] for form in schema.get("anyOf", [schema]))
    for asked in re.findall(r"^suffice schema (.*?) +#", page, re.MULTILINE):
        assert asked.strip() in {*schema_files(), ""}


def test_errors_without_json_are_sentences(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["suffice", "status"])
    assert tell_error("no", "failed") == 1
    monkeypatch.setattr("sys.argv", ["suffice", "status", "--json"])
    assert tell_error("no", "failed", 2) == 2
    assert capsys.readouterr().err == 'suffice: no\n{"error": "no", "code": "failed", "exit_status": 2}\n'
    assert not wants_json([])
