"""The commands by name, and the conversion of errors to a message and an exit code."""

import os
import re
import sys
from copy import copy
from functools import cache
from importlib import import_module
from typing import Annotated, Any, Final, NamedTuple

import typer
import typer.main
from typer.core import TyperGroup

from suffice import __version__
from suffice.errors import InvalidTypeError, InvalidValueError, MissingResearchError, SufficeError


class CommandEntry(NamedTuple):
    """A command that is imported when it is used.

    Attributes:
        location: Where its function, or its ``typer.Typer`` with subcommands, is: ``"module:name"``. None for a command
            of the distribution suffice-research, which names it as an entry point of the group :data:`GROUP`.
        summary: Its line in the list of commands; the first sentence or paragraph of its own help.
    """

    location: str | None
    summary: str


#: Group of the entry points by which suffice-research adds its commands.
GROUP: Final = "suffice.commands"

#: In the order of ``suffice --help``.
COMMANDS: Final = {
    "demo": CommandEntry(
        "suffice.cli.demo_command:demo_command",
        "Watch a simulated person label scikit-learn's breast-cancer, diabetes or digits data until it is enough.",
    ),
    "label": CommandEntry(
        "suffice.cli.label_commands:label_command",
        "Label your own data in the terminal: create or continue a project, and see when you can stop.",
    ),
    "serve": CommandEntry(
        "suffice.cli.label_commands:serve_command",
        "Label in the browser, alone or with others: create a project, or continue it.",
    ),
    "label-studio": CommandEntry(
        "suffice.cli.label_studio_command:label_studio_command",
        "Connect a project of Label Studio: follow its annotations, order its tasks, and show when people can stop.",
    ),
    "status": CommandEntry(
        "suffice.cli.project_commands:status_command",
        "Show the state of a labelling project: the decision, the estimated error, counts, people, agreement.",
    ),
    "check": CommandEntry(
        "suffice.cli.check_command:check_command",
        "Guarantee how many predictions are wrong, by a random check of the unlabelled items.",
    ),
    "plan": CommandEntry(
        "suffice.cli.plan_command:plan_command",
        "Plan a check without a project: how many answers a target takes, or what a sample has shown.",
    ),
    "switch": CommandEntry(
        "suffice.cli.project_commands:switch_command",
        "Switch a project to another model, which learns all its labels.",
    ),
    "classes": CommandEntry(
        "suffice.cli.project_commands:classes_command",
        "Show the classes of a project, or add, rename, merge, reorder and remove them. No label is lost.",
    ),
    "accounts": CommandEntry(
        "suffice.cli.project_commands:accounts_app",
        "Show the accounts of a project, or add, change and remove them. With accounts, people sign in to the page.",
    ),
    "repair": CommandEntry(
        "suffice.cli.project_commands:repair_command",
        "Verify everything in a labelling project by its checksums, and recover what can be verified.",
    ),
    "review": CommandEntry(
        "suffice.cli.project_commands:review_command",
        "List the labels that are likely wrong: the model judges each label without having learned it.",
    ),
    "import": CommandEntry(
        "suffice.cli.exchange_commands:import_command",
        "Import labels from a file into a project, or predictions of another model.",
    ),
    "add": CommandEntry("suffice.cli.exchange_commands:add_command", "Add rows to a labelling project."),
    "predict": CommandEntry(
        "suffice.cli.exchange_commands:predict_command",
        "Predict the labels of new rows with the model of a project.",
    ),
    "export": CommandEntry(
        "suffice.cli.exchange_commands:export_command",
        "Write the labels, the model's predictions with their uncertainty for all other items, and the report.",
    ),
    "report": CommandEntry(
        "suffice.cli.project_commands:report_command",
        "Write a report as a page: whether you can stop, how large the error is, what was labelled.",
    ),
    "run": CommandEntry(
        "suffice.cli.table_commands:run_command",
        "Find out how many labels of a labelled table would have been enough if they had been bought one by one.",
    ),
    "audit": CommandEntry(
        "suffice.cli.table_commands:audit_command",
        "Find out when the labelling of a table could have stopped. Its rows must be in the order of labelling.",
    ),
    "schema": CommandEntry(
        "suffice.cli.schema_command:schema_command",
        "Print the JSON Schema of what a command prints with --json.",
    ),
    "recommend": CommandEntry(
        None,
        "Find out which stopping rule to use for your data and costs, and what to expect of it.",
    ),
    "reproduce": CommandEntry(
        None,
        "Repeat the experiments of the paper, and write its tables and figures and which claims hold.",
    ),
    "compare": CommandEntry(
        None,
        "Compare stopping rules: label data sets once, replay every rule on the same runs, and rank them by their "
        "cost.",
    ),
    "data": CommandEntry(
        None,
        "List, fetch and check the data sets of the paper and four extra ones.",
    ),
}


class _LazyGroup(TyperGroup):
    """Imports the module of a command when the command is called, or its options are completed."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            error.message = _value_sentence(error)
            raise

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        command = super().get_command(ctx, cmd_name)
        if command is not None and location_if_installed(cmd_name) is None:
            command = copy(command)
            command.help = f"{command.help} (needs suffice-research)"
        return command

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, command, rest = super().resolve_command(ctx, args)
        if name is None or (ctx.resilient_parsing and location_if_installed(name) is None):
            return name, command, rest  # a missing command completes to nothing
        return name, _loaded_command(name), rest


# Of Click, and of Pydantic, with which newer versions of typer read values.
_NOT_A_NUMBER: Final = re.compile(
    r"(?:'(?P<value>.*)' is not a valid|Input should be a valid) (?P<kind>integer|number|float)\b"
)


def _value_sentence(error: typer.BadParameter) -> str:
    """What is wrong with the value of an option, without technical terms."""
    from suffice.cli.argument_names import not_a_number

    message = error.message.removeprefix("Value error, ")
    number = _NOT_A_NUMBER.match(message)
    if number is None:
        return message
    value = number["value"]
    if value is None:
        # Pydantic does not name the value in its sentence.
        details: list[dict[str, Any]] = getattr(error.__cause__, "errors", list)()
        value = details[0].get("input") if details else None
    return message if value is None else not_a_number(str(value), whole=number["kind"] == "integer")


@cache
def _entry_points() -> dict[str, str]:
    """Locations of the commands that other distributions add, by name."""
    from importlib import metadata

    return {entry.name: entry.value for entry in metadata.entry_points(group=GROUP)}


def location_if_installed(name: str) -> str | None:
    """Return the location of a command; None if it needs suffice-research, which is not installed."""
    return COMMANDS[name].location or _entry_points().get(name)


def command_location(name: str) -> str:
    """Return where the function of a command, or its ``typer.Typer`` with subcommands, is: ``"module:name"``.

    Raises:
        MissingResearchError: It is a command of suffice-research, which is not installed.
    """
    location = location_if_installed(name)
    if location is None:
        raise MissingResearchError(f"The command {name}")
    return location


def _loaded_command(name: str) -> Any:
    """Import a command and return it as typer builds it from the function or the group."""
    module, attribute = command_location(name).split(":")
    return _built_command(name, getattr(import_module(module), attribute))


@cache
def _built_command(name: str, function_or_group: Any) -> Any:
    holder = typer.Typer(rich_markup_mode="rich")
    if isinstance(function_or_group, typer.Typer):
        holder.add_typer(function_or_group, name=name)
    else:
        holder.command(name)(function_or_group)
    return typer.main.get_group(holder).commands[name]


app = typer.Typer(
    cls=_LazyGroup,
    help="Know when you have labelled enough.",
    epilog="Exit codes: 0 done, 1 could not be done, 2 invalid arguments.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _not_loaded() -> None:
    """Placeholder of a command in the list of commands; :class:`_LazyGroup` calls the command itself."""


for _name, _entry in COMMANDS.items():
    app.command(_name, help=_entry.summary)(_not_loaded)


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"suffice {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", is_eager=True, callback=_show_version)
    ] = False,
) -> None:
    pass


def run() -> int:
    """Run the command that the arguments name; return the exit code of an error that was answered with a sentence."""
    try:
        if any(given.startswith("--json") for given in sys.argv):
            from suffice.cli.json_output import run_with_json

            return run_with_json(app)
        app(prog_name="suffice")
    except SufficeError as error:
        return _told(error)
    except MemoryError as error:
        from suffice.cli.json_output import tell_error

        return tell_error(f"there is not enough memory: {error or 'a smaller table is needed'}", "not_enough_memory")
    except OSError as error:
        from suffice.cli.json_output import tell_error

        status = tell_error(f"the output cannot be written: {error.strerror or error}", "output")
        # Python would try to write the rest again at exit, and report an error.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return status
    return 0


def _told(error: SufficeError) -> int:
    """Say why a command was not done; return the exit code."""
    from suffice.cli.json_output import code_of, tell_error, wants_json

    status = 2 if isinstance(error, InvalidValueError | InvalidTypeError | MissingResearchError) else 1
    if wants_json():
        return tell_error(str(error), code_of(type(error)), status)
    from rich.console import Console
    from rich.markup import escape

    Console(stderr=True, soft_wrap=True).print(f"[bold red]suffice:[/] {escape(str(error))}", highlight=False)
    return status
