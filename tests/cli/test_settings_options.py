"""Options that are declared as fields of dataclasses."""

import dataclasses
import inspect
from dataclasses import dataclass, field
from typing import Annotated, Any, get_args

import pytest
import typer
from typer.testing import CliRunner

from suffice.cli.project_options import ProjectOptions
from suffice.cli.settings_options import Before, option_names, settings_of, with_settings
from suffice.cli.table_commands import audit_command, run_command
from suffice.project.create import CreationOptions

RUN = CliRunner()


@dataclass(frozen=True, kw_only=True)
class Costs:
    label_cost: Annotated[float, typer.Option(help="Cost of a label.")] = 1.0
    error_cost: Annotated[float | None, typer.Option(help="Cost of an error.")] = None


@dataclass(frozen=True)
class Job:
    data: Annotated[str, typer.Argument(help="The file.")]
    costs: Costs = field(default_factory=Costs)
    positive: Annotated[str | None, typer.Option(help="The class."), Before("error_cost")] = None


def called(*arguments: str) -> tuple[int, list[Any], str]:
    """Call a command with these settings; return the exit code, what the command received, and the output."""
    received: list[Any] = []

    @with_settings
    def command(job: Job, as_json: Annotated[bool, typer.Option("--json")] = False) -> None:
        """Do something."""
        received.extend([job, as_json])

    app = typer.Typer()
    app.command()(command)
    result = RUN.invoke(app, arguments)
    return result.exit_code, received, result.output


def test_a_command_receives_its_settings() -> None:
    assert called("a.csv", "--label-cost", "2", "--positive", "yes", "--json") == (
        0,
        [Job("a.csv", Costs(label_cost=2.0), "yes"), True],
        "",
    )
    assert called("a.csv")[1] == [Job("a.csv"), False]


def test_a_wrong_option_is_refused() -> None:
    assert called()[0] == 2
    assert called("a.csv", "--label-cost", "much")[0] == 2


def test_the_help_has_the_description_and_the_order_of_the_options() -> None:
    shown = called("--help")[2]
    assert "Do something." in shown
    options = ["--label-cost", "--positive", "--error-cost", "--json"]
    assert sorted(options, key=shown.index) == options


def test_two_options_of_one_name_are_refused() -> None:
    def command(job: Job, costs: Costs) -> None:
        """Never called."""

    with pytest.raises(TypeError, match="declares the options error_cost, label_cost more than once"):
        with_settings(command)


def test_settings_from_names() -> None:
    assert settings_of(Job, data="a", error_cost=3.0) == Job("a", Costs(error_cost=3.0))
    with pytest.raises(TypeError, match="Job has no option colour"):
        settings_of(Job, data="a", colour="red")
    with pytest.raises(TypeError, match="data"):
        settings_of(Job, label_cost=2.0)


def test_every_option_of_a_new_project_is_an_option_of_the_command() -> None:
    fields = {each.name for each in dataclasses.fields(CreationOptions)}
    assert fields <= set(option_names(ProjectOptions))


@pytest.mark.parametrize("command", [run_command, audit_command])
def test_every_option_is_described(command: Any) -> None:
    for option in inspect.signature(command).parameters.values():
        described = [part for part in get_args(option.annotation) if hasattr(part, "help")]
        assert len(described) == 1, option.name
        assert described[0].help, option.name
